"""Years until a state is reached: their mean, and the times by which it is reached with given probabilities.

    mean = integral of P(S(t) < s) dt,   quantile q: the t at which P(S(t) >= s) = q

Both are exact for hazards that are constant by year. Covariates advance for LONGEST years at most; who has not got
there by then goes on at the hazards of that age. How members move in a year, the model's family knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rekka.forecast.propagation import YEAR, States, Walkers, catch_up
from rekka.model.family import Family

Array = NDArray[np.float64]

LONGEST = 200  # years for which covariates advance
SETTLED = 1e-15  # probability of not having got there, below which nothing is added any more
NEVER = 1e12  # years: what is not reached by then is taken as never
HALVINGS = 60  # of a bracket: more than a double can tell


@dataclass(frozen=True, eq=False)
class Passage:
    """Mean (B, n) and quantiles (B, n, Q) of the years until a state, and of draws mixed together (n, Q).

    Mixed are all coefficients but the first, the estimate; where that was not asked for it is the estimate's.
    Years are counted from time 0; a row that is there has 0, one that may never get there infinity.
    """

    mean: Array
    quantile: Array
    mixed: Array


def pass_through(
    walkers: Walkers,
    start: States,
    state: int,
    quantiles: Sequence[float],
    gap: Array | None = None,
    *,
    mixed: bool = False,
) -> Passage:
    """Years until ``state``, 0-based, or worse; ``mixed`` asks for all draws together, row by row."""
    p = walkers.set_out(start)
    elapsed = catch_up(walkers, p, gap)
    found = _Found(walkers.family, p, state, quantiles, mixed=mixed)
    theta = stop_at(state, walkers.hazards(elapsed, YEAR))
    if not (walkers.course.moves or quantiles):  # nothing changes: the closed form from the beginning
        found.finish(p, theta)
        return found.close()
    for year in range(LONGEST):
        if found.settle(p):
            return found.close()
        if walkers.course.moves and year:
            theta = stop_at(state, walkers.hazards(elapsed + year, YEAR))
        found.take(p, theta, year)
    found.finish(p, stop_at(state, walkers.hazards(elapsed + LONGEST)))
    return found.close()


def stop_at(state: int, theta: Array) -> Array:
    """Hazards with which who has got there stays: what comes after does not matter."""
    theta[..., state:] = 0.0
    return theta


class _Found:
    """What is known so far."""

    def __init__(self, family: Family, p: Array, state: int, quantiles: Sequence[float], *, mixed: bool) -> None:
        self.family = family
        self.state, self.quantiles, self.mixes = state, tuple(quantiles), mixed
        self.mean = np.zeros(p.shape[:2])
        self.years = np.zeros_like(p)
        reached = self.reached(p)
        self.quantile = np.where(reached[..., None] >= self.quantiles, 0.0, np.inf)
        self.mixed = np.where(mix(reached)[:, None] >= self.quantiles, 0.0, np.inf)

    def reached(self, p: Array) -> Array:
        """The probability (B, n) of having got there."""
        return np.asarray(p[..., self.state :].sum(axis=-1))

    def settle(self, p: Array) -> bool:
        """Let those be there who are, but for what no double could tell; whether all are."""
        there = p[..., : self.state].sum(axis=-1) < SETTLED
        p[there] = 0.0
        p[there, -1] = 1.0
        return bool(there.all())

    def take(self, p: Array, theta: Array, now: int) -> None:
        """A year, p in place: time spent on the way, and who comes to a quantile in it."""
        before = p.copy()
        self.years[:] = 0.0
        self.family.step_integrated(p, theta, YEAR, self.years)
        self.mean += self.years[..., : self.state].sum(axis=-1)
        reached = self.reached(p)
        for place, target in enumerate(self.quantiles):
            here = np.isinf(self.quantile[..., place]) & (reached >= target)
            if here.any():
                year = np.full(np.count_nonzero(here), YEAR)
                when = self.family.cross(before[here], theta[here], year, self.state, target)
                self.quantile[here, place] = now + when
            for row in self._unmixed(place, mix(reached) >= target) if self.mixes else ():
                self.mixed[row, place] = now + self._cross_together(before[:, row], theta[:, row], target)

    def _unmixed(self, place: int, there: NDArray[np.bool_] | bool = True) -> NDArray[np.intp]:
        """Rows whose draws together have come to a quantile, and whose time is not known yet."""
        return np.flatnonzero(np.isinf(self.mixed[:, place]) & there)

    def _cross_together(self, before: Array, theta: Array, target: float) -> float:
        """When in a year the draws together come to a quantile."""

        def missing(h: float) -> float:
            p = before.copy()
            self.family.step(p, theta, h)
            return float(mix(self.reached(p))) - target

        return _find_root(missing, 0.0, YEAR)

    def finish(self, p: Array, theta: Array) -> None:
        """All that is left, at constant hazards: the mean in closed form, quantiles by halving."""
        self.mean += self.family.years_left(p, theta, self.state)
        for place, target in enumerate(self.quantiles):
            here = np.isinf(self.quantile[..., place])
            if here.any():
                self.quantile[here, place] = LONGEST + self._halve(p[here], theta[here], target)
            for row in self._unmixed(place) if self.mixes else ():
                self.mixed[row, place] = LONGEST + self._cross_late(p[:, row], theta[:, row], target)

    def _cross_late(self, p: Array, theta: Array, target: float) -> float:
        def missing(t: float) -> float:
            return float(mix(self._reach(p, theta, np.full(len(p), t)))) - target

        return _find_root(missing, 0.0, NEVER) if missing(NEVER) > 0 else np.inf

    def _halve(self, p: Array, theta: Array, target: float) -> Array:
        """Years (r,) at constant hazards until rows p (r, K) come to a quantile: double, then halve."""
        high = np.full(len(p), YEAR)
        short = self._reach(p, theta, high) < target
        while short.any() and high.max() < NEVER:
            high = np.where(short, 2.0 * high, high)
            short = self._reach(p, theta, high) < target
        low = np.zeros_like(high)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self._reach(p, theta, middle) < target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(short, np.inf, high)

    def _reach(self, p: Array, theta: Array, t: Array) -> Array:
        """The probability (r,) of having got there after t (r,) years at constant hazards."""
        return self.reached(np.einsum("rj,rjk->rk", p, self.family.matrices(theta, t)))

    def close(self) -> Passage:
        """As a value."""
        return Passage(self.mean, self.quantile, self.mixed if self.mixes else self.quantile[0])


def mix(values: Array) -> Array:
    """The mean over draws; the estimate is not one of them, unless it is alone."""
    return np.asarray(values[min(1, len(values) - 1) :].mean(axis=0))


def _find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that rises from below 0 comes to it."""
    if function(high) <= 0.0:
        return high
    return float(optimize.brentq(function, low, high, xtol=1e-12, rtol=1e-13))
