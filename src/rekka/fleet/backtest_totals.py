"""How many visits were found in each state, beside how many were to be expected, with prediction intervals.

A network is drawn many times: coefficients from their distribution, then every member's way from its origin
through the moments of its later visits. So a total holds the doubt of the parameters and the chance of the
process, and a member that is visited twice is in both totals what it is. Members are independent of each other but
for the coefficients: what strikes a network at once, a hard winter or a new manual, is not in the intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.numerics import generator
from rekka.fleet.backtest_rows import Chains
from rekka.forecast.propagation import YEAR, Walkers
from rekka.forecast.uncertainty import NONE, Spread

Array = NDArray[np.float64]
States = NDArray[np.int64]
Counts = NDArray[np.int64]

NETWORKS = 2000  # drawn: an end of a 95 % interval is then known to within 0.06 standard deviations
MOST_VISITS = 50_000_000  # drawn, beyond one network for each set of coefficients: with so many, chance is small
ROWS_AT_ONCE = 200_000  # members times networks
SCHEMA: dict[str, Any] = {
    "by": pl.String, "group": pl.Int64, "state": pl.Int64, "or_worse": pl.Boolean, "visits": pl.Int64,
    "observed": pl.Int64, "expected": pl.Float64, "predicted_low": pl.Int64, "predicted_high": pl.Int64,
    "inside": pl.Boolean, "expected_no_covariates": pl.Float64, "unchanged": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Network:
    """Members that set out together: x (m, p), states (m,) 0-based, and the visits that they come to."""

    walkers: Walkers  # of the members, with any coefficients
    start: States
    chains: Chains

    def draw(self, coefficients: Array, budget: Array) -> Iterator[tuple[slice, States]]:
        """States (R, B, visits) of R networks with each of the coefficients (B, K-1, p+1), by step of the chains.

        ``budget`` (R, B, m, K) is what a member can bear in each state: it leaves when the hazard, added up since
        it came, is as much. With exponential budgets of mean 1 that is the process itself; nobody can leave K.
        """
        state = np.broadcast_to(self.start, budget.shape[:3]).copy()
        left = np.take_along_axis(budget, state[..., None], axis=3)[..., 0]
        steps = np.searchsorted(self.chains.step, np.arange(int(self.chains.step.max(initial=-1)) + 2))
        for here in (slice(int(first), int(last)) for first, last in pairwise(steps)):
            member = self.chains.member[here]
            walkers = replace(self.walkers, x=self.walkers.x[member], coefficients=coefficients)
            now = state[..., member], left[..., member]
            _live_on(walkers, *now, budget[..., member, :], self.chains.since[here], self.chains.horizon[here])
            state[..., member], left[..., member] = now
            yield here, now[0]


def _live_on(walkers: Walkers, state: States, left: Array, budget: Array, since: Array, until: Array) -> None:
    """Carry states and what is left of budgets (R, B, n), in place, from ``since`` to ``until`` (n,) years.

    Hazards are those of ``walkers``, constant from visit or whole year after the origin to the next of either.
    """
    now = since
    while (now < until).any():
        begun = np.floor(now)
        stop = np.minimum(until, begun + YEAR) if walkers.course.moves else until
        theta = walkers.hazards(now, stop - now)
        theta = np.concatenate([theta, np.zeros((*theta.shape[:2], 1))], axis=2)
        walkers.family.live_through(np.broadcast_to(theta, budget.shape), state, left, budget, stop - now)
        now = stop


def draw_networks(
    network: Network,
    spread: Spread,
    cell: States,
    n_cells: int,
    *,
    seed: int,
    case: str,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Counts | None:
    """How many visits of each cell are in each state, (networks, cells, K), in networks drawn; None of no draws.

    ``on_progress`` is called with the number of networks that are drawn, and of how many.
    """
    if spread.kind == NONE:
        return None
    n_states, drawn = network.walkers.fit.n_states, spread.coefficients[1:]
    repeats = max(1, min(-(-NETWORKS // len(drawn)), MOST_VISITS // (len(drawn) * max(1, cell.size))))
    counts = np.zeros((repeats, len(drawn), n_cells, n_states), np.int64)
    at_once = max(1, ROWS_AT_ONCE // (repeats * max(1, network.start.size)))
    for first in range(0, len(drawn), at_once):
        some = slice(first, min(first + at_once, len(drawn)))
        shape = counts[:, some].shape
        place = np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1) * n_cells
        for here, state in network.draw(drawn[some], _draw_budgets(network, repeats, some, seed, case)):
            where = ((place + cell[here]) * n_states + state).ravel()
            counts[:, some] += np.bincount(where, minlength=counts[:, some].size).reshape(shape)
        on_progress(repeats * some.stop, repeats * len(drawn))
    return counts.reshape(-1, n_cells, n_states)


def _draw_budgets(network: Network, repeats: int, some: slice, seed: int, case: str) -> Array:
    """Exponential budgets (R, B, m, K); each network has a generator of its own, whatever is drawn with it."""
    size = (network.start.size, network.walkers.fit.n_states)
    numbers = [[(repeat, number) for number in range(some.start, some.stop)] for repeat in range(repeats)]
    return np.array(
        [[generator(seed, "backtest", case, *pair).standard_exponential(size) for pair in row] for row in numbers]
    )


@dataclass(frozen=True, eq=False)
class Tally:
    """Visits by period and state at the origin: counts that the totals are made of, each (..., periods, K, K).

    The last axis is the state found, forecast or drawn.
    """

    observed: Array
    expected: Array
    plain: Array | None  # expected without covariates
    drawn: Counts | None  # (networks, ...)

    @property
    def unchanged(self) -> Array:
        """The same if nothing changes."""
        return np.asarray(np.eye(self.observed.shape[1]) * self.observed.sum(axis=2)[..., None])


def count_states(cell: States, n_cells: int, p: Array) -> Array:
    """Probabilities p (v, K) added up by cell, (cells, K)."""
    return np.column_stack([np.bincount(cell, weights=column, minlength=n_cells) for column in p.T])


def tabulate_totals(
    tally: Tally, periods: list[int], kind: str, threshold: int | None, level: float
) -> pl.DataFrame:
    """A line for each group of visits and state, and for the threshold or worse.

    Groups: all; each year or round; all up to it; each state at the origin. ``inside`` says whether what was
    observed lies in the prediction interval.
    """
    n_states = tally.observed.shape[-1]
    lines: list[tuple[Any, ...]] = []
    groups: list[tuple[str, int | None, slice, slice]] = [("all", None, slice(None), slice(None))]
    groups += [(kind, value, slice(at, at + 1), slice(None)) for at, value in enumerate(periods)]
    groups += [(f"up to {kind}", value, slice(0, at + 1), slice(None)) for at, value in enumerate(periods)]
    groups += [("start", k + 1, slice(None), slice(k, k + 1)) for k in range(n_states)]
    for by, group, among, start in groups:
        totals = _Totals.of(tally, among, start)
        if not totals.visits:
            continue
        wanted = [(k, k + 1) for k in range(n_states)]
        asked = [] if threshold is None else [(threshold - 1, n_states)]
        for place, (low, high) in enumerate([*wanted, *asked]):
            worse = place == len(wanted)
            lines.append((by, group, low + 1, worse, totals.visits, *totals.describe(low, high, level)))
    return pl.DataFrame(lines, schema=SCHEMA, orient="row")


@dataclass(frozen=True, eq=False)
class _Totals:
    """The counts of one group of visits, by state found (K,)."""

    observed: Array
    expected: Array
    plain: Array | None
    unchanged: Array
    drawn: Counts | None

    @classmethod
    def of(cls, tally: Tally, periods: slice, starts: slice) -> _Totals:
        here = (..., periods, starts, slice(None))

        def add(counts: NDArray[Any] | None) -> Any:
            return None if counts is None else counts[here].sum(axis=(-3, -2))

        return cls(*map(add, (tally.observed, tally.expected, tally.plain, tally.unchanged, tally.drawn)))

    @property
    def visits(self) -> int:
        return int(self.observed.sum())

    def describe(self, low: int, high: int, level: float) -> tuple[Any, ...]:
        """Of the states low to high - 1, 0-based: the columns from ``observed`` on."""
        observed = int(self.observed[low:high].sum())
        ends: tuple[int | None, int | None, bool | None] = (None, None, None)
        if self.drawn is not None:
            tail = (1.0 - level) / 2
            drawn = self.drawn[:, low:high].sum(axis=1)
            least, most = np.quantile(drawn, [tail, 1.0 - tail], method="inverted_cdf").astype(int).tolist()
            ends = (least, most, least <= observed <= most)
        plain = None if self.plain is None else float(self.plain[low:high].sum())
        expected = float(self.expected[low:high].sum())
        return observed, expected, *ends, plain, int(self.unchanged[low:high].sum())
