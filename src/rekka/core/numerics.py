"""Seeded generators, and arithmetic without warnings."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Random generator for what the labels name, independent of other draws."""
    text = "\0".join(map(str, (seed, *labels)))  # a colon may stand in the name of a case
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16]))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings: the result of an overflow or a bad condition is judged by its certificate."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
