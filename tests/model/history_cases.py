"""Rows of histories for tests, and the published numbers they are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rekka.model.histories import Chain

REFERENCE = Path(__file__).parents[2].parent / "shared" / "reference"
needs_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason="the published numbers are not here")


def as_chain(
    history: Any, years: Any, state: Any, x: Any = None, bridge: Any = None, dated: bool = False
) -> Chain:
    """Rows of visits that are sorted by history and time; x (visits, p) at each visit."""
    history, years, state = np.asarray(history), np.asarray(years, dtype=float), np.asarray(state) - 1
    x = np.zeros((state.size, 0)) if x is None else np.asarray(x, dtype=float)
    bridge = history if bridge is None else np.asarray(bridge)
    pair = np.flatnonzero(history[1:] == history[:-1])
    alone = np.flatnonzero(~np.isin(history, history[pair]))
    at = np.concatenate([pair, alone])
    end = np.concatenate([state[pair + 1], np.full(alone.size, -1)])
    dt = np.concatenate([years[pair + 1] - years[pair], np.full(alone.size, np.nan)])
    whole = [np.unique(part[at], return_inverse=True)[1] for part in (history, bridge)]
    return Chain(state[at], end, dt, x[at], whole[0], whole[1], years[at] if dated else None)
