"""The compiled steps for arrays of any leading shape, on threads: no covariate and no link comes here."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rekka.model import step_kernel

Array = NDArray[np.float64]

ROWS_A_THREAD = 8192  # below this, handing rows to a thread costs more than it saves


def step(p: Array, theta: Array, h: Array | float) -> None:
    """P (..., K) <- p exp(Q h), in place; theta (..., K-1), h a number or (...)."""
    _run(step_kernel.step_rows, p, theta, h)


def step_integrated(p: Array, theta: Array, h: Array | float, years: Array) -> None:
    """The same, and years (..., K) += the expected time in each state."""
    _run(step_kernel.integrate_rows, p, theta, h, years)


def step_sloped(p: Array, slope: Array, theta: Array, h: Array | float, drive: Array) -> None:
    """The same, and slope (n, K-1, D, K) with it; drive (n, D) moves the log hazards."""
    _run(step_kernel.slope_rows, p, theta, h, slope, drive)


def cross(p: Array, theta: Array, h: Array, state: int, target: float) -> Array:
    """When (n,) in a step of h (n,) years the probability of ``state`` or worse comes to ``target``; p (n, K)."""
    found = np.empty(len(p))
    step_kernel.cross_rows(p, theta, h, state, target, found)
    return found


def _run(kernel: Callable[..., None], p: Array, theta: Array, h: Array | float, *more: Array) -> None:
    """The kernel over all rows, on threads. Arrays to be written to must be whole in memory, as rows of them.

    The years are copied, because an array that can only be read would have every kernel compiled a second time.
    """
    lead = p.shape[:-1]
    given = (p, theta, *more)
    rows = [np.ascontiguousarray(one).reshape(-1, *one.shape[len(lead) :]) for one in given]
    years = np.array(np.broadcast_to(h, lead), dtype=np.float64, order="C").reshape(-1)
    rows.insert(2, years)
    parts = max(1, min(os.cpu_count() or 1, years.size // ROWS_A_THREAD))
    edges = [years.size * part // parts for part in range(parts + 1)]
    if parts == 1:
        kernel(*rows)
        return
    done = _pool().map(lambda edge: kernel(*(one[edge[0] : edge[1]] for one in rows)), pairwise(edges))
    list(done)


@lru_cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="rekka-forecast")
