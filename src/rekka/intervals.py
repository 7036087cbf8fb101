"""How sure is a mean over rows that come in bridges? Means and their intervals, clustered by bridge.

    mean = sum_i d_i / n,   se^2 = G / (G - 1) sum_g (sum_{i in g} (d_i - mean))^2 / n^2,   mean -+ t_{G-1} se

Rows of one bridge share its climate, its traffic and its inspector, so that a bridge counts as one draw, however
many rows it has. G is the number of bridges.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean over ``rows`` rows of ``bridges`` bridges; ``low`` and ``high`` are infinite with fewer than 2."""

    mean: float
    low: float
    high: float
    rows: int
    bridges: int


def mean_interval(values: Array, bridge: NDArray[Any], confidence: float = CONFIDENCE) -> Interval:
    """The mean of values (n,) with its interval; of no rows it is no number."""
    n = len(values)
    if n == 0:
        return Interval(math.nan, -math.inf, math.inf, 0, 0)
    _, group = np.unique(bridge, return_inverse=True)
    bridges = int(group.max()) + 1
    mean = float(values.mean())
    if bridges < 2:
        return Interval(mean, -math.inf, math.inf, n, bridges)
    totals = np.bincount(group, weights=values - mean)
    se = math.sqrt(bridges / (bridges - 1) * float(totals @ totals)) / n
    reach = float(special.stdtrit(bridges - 1, 0.5 + confidence / 2)) * se
    return Interval(mean, mean - reach, mean + reach, n, bridges)
