"""Years until a state for very many members.

What ``pass_through`` does, without the members that have arrived: most have, long before the last of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rekka.forecast.first_passage import LONGEST, pass_through, stop_at
from rekka.forecast.propagation import YEAR, States, Walkers, catch_up

Array = NDArray[np.float64]

SETTLED = 1e-10  # probability of not having arrived, below which the rest of a mean is taken in closed form
STRIDE = 5  # years after which those who have arrived are left behind


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Mean (B, n) and quantiles (B, n, Q) of the years until a state; the probability (B, n) at the horizon."""

    mean: Array
    quantile: Array
    reached: Array


def find_arrivals(
    walkers: Walkers,
    start: States,
    state: int,
    quantiles: Sequence[float],
    *,
    gap: Array | None = None,
    horizon: int = 0,
    settled: float = SETTLED,
) -> Arrivals:
    """Years until ``state``, 0-based, or worse.

    With ``gap`` (n,) rows set out so many years before time 0, as in ``walk``. A row that is there has 0. Who has
    not arrived with a probability below ``settled`` only, after the horizon, is followed no further.
    """
    p = walkers.set_out(start)
    elapsed = np.zeros(start.size) + catch_up(walkers, p, gap)
    found = _Found(walkers, p, elapsed, state, tuple(quantiles))
    for year in range(LONGEST):
        if not found.here.size:
            break
        found.pass_year(year)
        if year + 1 == horizon:
            found.at_horizon[:, found.here] = found.p[..., state:].sum(axis=-1)
        if year + 1 >= horizon and (year + 1) % STRIDE == 0:
            found.leave_behind(year + 1, settled)
    found.leave_behind(LONGEST, np.inf)
    late = np.flatnonzero(np.isinf(found.quantile).any(axis=(0, 2)))
    if late.size:
        rest, gaps = replace(walkers, x=walkers.x[late]), None if gap is None else gap[late]
        found.quantile[:, late] = pass_through(rest, start[late], state, quantiles, gaps).quantile
    return Arrivals(found.mean, found.quantile, found.at_horizon)


class _Found:
    """What is known so far of all rows, and the state of those still on their way, ``here``."""

    def __init__(
        self, walkers: Walkers, p: Array, elapsed: Array, state: int, quantiles: tuple[float, ...]
    ) -> None:
        reached = p[..., state:].sum(axis=-1)
        self.state, self.quantiles = state, quantiles
        self.mean = np.zeros(reached.shape)
        self.quantile = np.where(reached[..., None] >= quantiles, 0.0, np.inf)
        self.at_horizon = np.ones(reached.shape)
        self.here = np.arange(elapsed.size)
        self.walkers, self.p, self.elapsed = walkers, p, elapsed
        self._keep(np.asarray((p[..., :state] > 0.0).any(axis=(0, 2))))

    def _keep(self, rows: NDArray[np.bool_]) -> None:
        self.here, self.elapsed = self.here[rows], self.elapsed[rows]
        self.p = np.ascontiguousarray(self.p[:, rows])
        self.walkers = replace(self.walkers, x=self.walkers.x[rows])

    def _hazards(self, year: int, years: float = 0.0) -> Array:
        return stop_at(self.state, self.walkers.hazards(self.elapsed + year, years))

    def pass_year(self, year: int) -> None:
        """Carry all on by a year; note the time spent on the way, and who comes to a quantile."""
        theta = self._hazards(year, YEAR)
        before, years = self.p.copy(), np.zeros_like(self.p)
        family = self.walkers.family
        family.step_integrated(self.p, theta, YEAR, years)
        self.mean[:, self.here] += years[..., : self.state].sum(axis=-1)
        reached = self.p[..., self.state :].sum(axis=-1)
        for place, target in enumerate(self.quantiles):
            sets, rows = np.nonzero(np.isinf(self.quantile[:, self.here, place]) & (reached >= target))
            if rows.size:
                year_long = np.full(rows.size, YEAR)
                when = family.cross(before[sets, rows], theta[sets, rows], year_long, self.state, target)
                self.quantile[sets, self.here[rows], place] = year + when

    def leave_behind(self, year: int, settled: float) -> None:
        """Those who have as good as arrived; what is left of their means as if hazards stayed."""
        gone = (self.p[..., : self.state].sum(axis=-1) < settled).all(axis=0)
        if not gone.any():
            return
        theta = self._hazards(year)[:, gone]
        self.mean[:, self.here[gone]] += self.walkers.family.years_left(self.p[:, gone], theta, self.state)
        self._keep(~gone)
