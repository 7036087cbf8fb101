"""Reliability curves: forecasts of about so much beside how often it happened.

    mean forecast of a bin beside the observed share,   bins of about as many rows each

Intervals of the shares are clustered by bridge. States are 0-based in arrays, 1-based in the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from rekka.evaluation.intervals import Interval, mean_interval

Array = NDArray[np.float64]
States = NDArray[np.int64]

MOST_BINS = 10
BIN_ROWS = 20  # fewer, and an interval of a share says next to nothing
MOVES = "leaves its start state"
SCHEMA = {
    "event": pl.String,
    "end": pl.Int64,
    "bin": pl.Int64,
    "forecast": pl.Float64,
    "observed": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "rows": pl.Int64,
    "bridges": pl.Int64,
}


class Event(NamedTuple):
    """Something that may happen to the rows ``among``: its probability, and whether it did, (n,) each."""

    name: str
    end: int | None  # 1-based
    among: NDArray[np.bool_]
    forecast: Array
    happened: NDArray[np.bool_]


def tabulate_reliability(
    p: Array, start: States, end: States, bridge: NDArray[np.str_], confidence: float
) -> pl.DataFrame:
    """One row a bin of each event: mean forecast, observed share with its interval, rows, bridges."""
    found = []
    for event in _list_events(p, start, end):
        forecast, names = event.forecast[event.among], bridge[event.among]
        happened = event.happened[event.among].astype(np.float64)
        bins = cut_bins(forecast)
        for number in range(int(bins.max(initial=-1)) + 1):
            here = bins == number
            share = share_interval(happened[here], names[here], confidence)
            found.append((event.name, event.end, number + 1, float(forecast[here].mean()), *share))
    return pl.DataFrame(found, schema=SCHEMA, orient="row")


def _list_events(p: Array, start: States, end: States) -> Iterator[Event]:
    """Leaving the start state, then each end state, among rows for which it is neither certain nor impossible.

    Rows that start in the worst state stay there, and no row ends in a better state than it starts in.
    """
    free = start < p.shape[1] - 1
    yield Event(MOVES, None, free, 1.0 - p[np.arange(start.size), start], end != start)
    for j in range(p.shape[1]):
        yield Event(f"ends in state {j + 1}", j + 1, free & (start <= j), p[:, j], end == j)


def cut_bins(forecast: Array) -> NDArray[np.int64]:
    """The bin of each forecast (n,), from the lowest: at most 10, of 20 rows or more, equal forecasts together."""
    n = forecast.size
    order = np.argsort(forecast, kind="stable")
    ordered = forecast[order]
    size = max(BIN_ROWS, math.ceil(n / MOST_BINS))
    edges = [0]
    for edge in (np.flatnonzero(ordered[1:] > ordered[:-1]) + 1).tolist():  # where a bin may end
        if edge - edges[-1] >= size and n - edge >= BIN_ROWS:
            edges.append(edge)
    bins = np.empty(n, np.int64)
    bins[order] = np.searchsorted(edges, np.arange(n), side="right") - 1
    return bins


def share_interval(happened: Array, bridge: NDArray[np.str_], confidence: float) -> Interval:
    """A share with its interval, within 0 and 1.

    Where all rows are alike there is no spread to judge by; the interval is then the exact one (Clopper and
    Pearson 1934) of as many draws as there are bridges.
    """
    found = mean_interval(happened, bridge, confidence)
    if found.mean not in (0.0, 1.0):
        return found._replace(low=max(found.low, 0.0), high=min(found.high, 1.0))
    reach = float(special.betaincinv(1.0, found.bridges, 0.5 + confidence / 2))
    return found._replace(low=max(found.mean - reach, 0.0), high=min(found.mean + reach, 1.0))
