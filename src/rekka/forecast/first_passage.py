"""First passage times: the years until members are in a state or worse, for one member or very many.

    mean = integral of P(S(t) < s) dt,   quantile q: the t at which P(S(t) >= s) = q

Both are exact for hazards that are constant by year. Covariates advance for LONGEST years at most; members that
have not reached the state by then go on at the hazards of that age. Members that have reached it are dropped on
the way: most have, long before the last of them. How members move within a year is the propagator's. Where the
hazards of a member are a mixture (a frailty), so are its years; their mean is infinite where the part of the
slowest lane, which stands for all slower ones, is not negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rekka.forecast.propagation import YEAR, Propagator, States, cross_gaps

Array = NDArray[np.float64]

LONGEST = 200  # years for which covariates advance
SETTLED = 1e-15  # probability of not having reached the state, below which a double adds nothing
STRIDE = 5  # years after which members that have reached the state are dropped
NEVER = 1e12  # years: what is not reached by then is taken as never
HALVINGS = 60  # of a bracket: more than a double can tell
SLOWEST = 0.01  # of a mean, that may come from the slowest lane of a member


@dataclass(frozen=True, eq=False)
class FirstPassage:
    """Years until a state or worse, counted from time 0: 0 for members that are there, infinite where never.

    ``mean`` (B, n) and ``quantile`` (B, n, Q) at every set of coefficients; ``mixed`` (n, Q), quantiles of all
    draws together, or the estimate's where that was not asked for; ``reached`` (B, n), the probability of having
    reached the state by the horizon.
    """

    mean: Array
    quantile: Array
    mixed: Array
    reached: Array


def find_first_passage(
    propagator: Propagator,
    start: States,
    state: int,
    quantiles: Sequence[float],
    gap: Array | None = None,
    *,
    mixed: bool = False,
    horizon: int = 0,
    settled: float = SETTLED,
) -> FirstPassage:
    """First passage times to ``state``, 0-based, or worse, of members in states ``start`` (n,).

    With ``gap`` (n,) members start so many years before time 0, as in ``propagate``. ``mixed`` asks for quantiles
    of all draws together. After the horizon, members whose probability of not having reached the state is below
    ``settled`` are dropped; the rest of their mean is taken in closed form.
    """
    p = propagator.start_in(start)
    elapsed = np.zeros(start.size) + cross_gaps(propagator, p, gap)
    found = _Search(propagator, p, elapsed, state, tuple(quantiles), mixed=mixed)
    if propagator.ageing.moves or quantiles or horizon:  # else the closed form holds from the beginning
        for year in range(LONGEST):
            if not found.rows.size:
                break
            found.pass_year(year)
            if year + 1 == horizon:
                found.at_horizon[:, found.rows] = found.reached(found.p)
            if year + 1 >= horizon and (year + 1) % STRIDE == 0:
                found.drop_settled(year + 1, settled)
    found.finish()
    return FirstPassage(found.mean, found.quantile, found.mixed if mixed else found.quantile[0], found.at_horizon)


class _Search:
    """Results of all members so far, and the members still on their way: ``rows`` and their lanes p (B, L, K)."""

    def __init__(
        self,
        propagator: Propagator,
        p: Array,
        elapsed: Array,
        state: int,
        quantiles: tuple[float, ...],
        *,
        mixed: bool,
    ) -> None:
        self.propagator, self.family, self.p, self.elapsed = propagator, propagator.family, p, elapsed
        self.state, self.quantiles, self.mixes = state, quantiles, mixed
        reached = self.reached(p)
        self.mean, self.at_horizon = np.zeros(reached.shape), np.ones(reached.shape)
        self.quantile = np.where(reached[..., None] >= self.quantiles, 0.0, np.inf)
        self.mixed = np.where(mix(reached)[:, None] >= self.quantiles, 0.0, np.inf)
        self.rows = np.arange(elapsed.size)
        self._keep(np.asarray((self._left(p) > 0.0).any(axis=0)))

    def reached(self, p: Array) -> Array:
        """Probability (B, r) of the state or worse."""
        return self.propagator.gather(np.asarray(p[..., self.state :].sum(axis=-1)))

    def _left(self, p: Array) -> Array:
        """Probability (B, r) of not having reached the state."""
        return self.propagator.gather(np.asarray(p[..., : self.state].sum(axis=-1)))

    def _split(self, values: Array) -> Array:
        """Values (B, r, lanes, ...) of lanes (B, L, ...), by member."""
        return values.reshape(len(values), -1, self.propagator.lanes, *values.shape[2:])

    def _keep(self, rows: NDArray[np.bool_]) -> None:
        self.rows, self.elapsed = self.rows[rows], self.elapsed[rows]
        self.p = np.ascontiguousarray(self.p[:, np.repeat(rows, self.propagator.lanes)])
        self.propagator = self.propagator.take_members(rows)

    def _hazards(self, year: int, years: float = 0.0) -> Array:
        """Hazards (B, L, K-1) with which members stay in the state once they reach it."""
        theta = self.propagator.hazards(self.elapsed + year, years)
        theta[..., self.state :] = 0.0
        return theta

    def pass_year(self, year: int) -> None:
        """Propagate by a year; add the time spent on the way, and note who reaches a quantile in it."""
        theta = self._hazards(year, YEAR)
        before, years = self.p.copy(), np.zeros_like(self.p)
        self.propagator.step_until(self.p, theta, YEAR, self.state, years)
        self.mean[:, self.rows] += self._left(years)
        reached = self.reached(self.p)
        before, theta = self._split(before), self._split(theta)
        for place, target in enumerate(self.quantiles):
            sets, rows = np.nonzero(np.isinf(self.quantile[:, self.rows, place]) & (reached >= target))
            if rows.size:
                when = self._cross(before[sets, rows], theta[sets, rows], target)
                self.quantile[sets, self.rows[rows], place] = year + when
            for row in self._unmixed(place, mix(reached) >= target):
                together = self._cross_together(before[:, row], theta[:, row], target)
                self.mixed[self.rows[row], place] = year + together

    def _cross(self, before: Array, theta: Array, target: float) -> Array:
        """Time (m,) within a year at which members with lanes (m, lanes, K) reach a quantile."""
        if self.propagator.lanes == 1:
            return self.family.cross(before[:, 0], theta[:, 0], np.full(len(before), YEAR), self.state, target)
        low, high = np.zeros(len(before)), np.full(len(before), YEAR)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            p = before.copy()
            self.family.step(p, theta, np.repeat(middle[:, None], before.shape[1], axis=1))
            below = p[..., self.state :].sum(axis=(1, 2)) < target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def _unmixed(self, place: int, there: NDArray[np.bool_] | bool = True) -> NDArray[np.intp]:
        """Members whose draws together have reached a quantile at a time that is not known yet."""
        return np.flatnonzero(np.isinf(self.mixed[self.rows, place]) & there & self.mixes)

    def _cross_together(self, before: Array, theta: Array, target: float) -> float:
        """Time within a year at which the draws (B, lanes, K) together reach a quantile."""

        def missing(h: float) -> float:
            p = before.copy()
            self.family.step(p, theta, h)
            return float(mix(p[..., self.state :].sum(axis=(1, 2)))) - target

        return _find_root(missing, 0.0, YEAR)

    def drop_settled(self, year: int, settled: float) -> None:
        """Drop members that have as good as reached the state; hazards are taken to stay for what is left."""
        gone = np.asarray((self._left(self.p) < settled).all(axis=0))
        if gone.any():
            self._add_rest(gone, self._hazards(year))
            self._keep(~gone)

    def _add_rest(self, rows: NDArray[np.bool_], theta: Array) -> None:
        """Add what is left of the means at constant hazards, in closed form."""
        lanes = np.repeat(rows, self.propagator.lanes)
        settled = np.repeat(self._left(self.p)[:, rows] < SETTLED, self.propagator.lanes, axis=1)
        left = np.where(settled[..., None], 0.0, self.p[:, lanes])
        each = self._split(self.propagator.years_left(left, theta[:, lanes], self.state))
        mean = self.mean[:, self.rows[rows]] + each.sum(axis=2)
        if self.propagator.lanes > 1:
            mean = np.where(each[..., 0] > SLOWEST * mean, np.inf, mean)
        self.mean[:, self.rows[rows]] = mean

    def finish(self) -> None:
        """Conclude at constant hazards: means in closed form, quantiles by halving."""
        theta = self._hazards(LONGEST)
        self._add_rest(np.ones(self.rows.size, dtype=bool), theta)
        p, theta = self._split(self.p), self._split(theta)
        every = np.arange(len(p))
        for place, target in enumerate(self.quantiles):
            sets, rows = np.nonzero(np.isinf(self.quantile[:, self.rows, place]))
            if rows.size:
                late = self._halve(sets, p[sets, rows], theta[sets, rows], target)
                self.quantile[sets, self.rows[rows], place] = LONGEST + late
            for row in self._unmixed(place):
                late_together = self._cross_late(every, p[:, row], theta[:, row], target)
                self.mixed[self.rows[row], place] = LONGEST + late_together

    def _cross_late(self, sets: NDArray[np.intp], p: Array, theta: Array, target: float) -> float:
        def missing(t: float) -> float:
            return float(mix(self._reach(sets, p, theta, np.full(len(p), t)))) - target

        return _find_root(missing, 0.0, NEVER) if missing(NEVER) > 0 else np.inf

    def _halve(self, sets: NDArray[np.intp], p: Array, theta: Array, target: float) -> Array:
        """Years (r,) at constant hazards until members p (r, lanes, K) reach a quantile: double, then halve."""
        high = np.full(len(p), YEAR)
        short = self._reach(sets, p, theta, high) < target
        while short.any() and high.max() < NEVER:
            high = np.where(short, 2.0 * high, high)
            short = self._reach(sets, p, theta, high) < target
        low = np.zeros_like(high)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self._reach(sets, p, theta, middle) < target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(short, np.inf, high)

    def _reach(self, sets: NDArray[np.intp], p: Array, theta: Array, t: Array) -> Array:
        """Probability (r,) of having reached the state after t (r,) years like the last one."""
        return self.propagator.reach(sets, p, theta, t, self.state)


def mix(values: Array) -> Array:
    """Mean over draws (B, ...); the estimate, which comes first, is not one of them, unless it is alone."""
    return np.asarray(values[min(1, len(values) - 1) :].mean(axis=0))


def _find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Root of a function that rises from below 0; the upper end where it rises no further."""
    if function(high) <= 0.0:
        return high
    return float(optimize.brentq(function, low, high, xtol=1e-12, rtol=1e-13))
