"""State probabilities propagated from year to year, for one set of coefficients or for many at once.

    p(t + h) = p(t) P(theta(x), h),   theta_k(x) the hazard at w(x) . b_k,   h at most a year

x is taken in the middle of the step. The hazard of a predictor and the step P are the family's (``model.family``).
w is a row of the design in the units of ``inference``, b any coefficients in them: the estimate, or draws.

A member is one lane of p, or several where its hazards are not known: with a frailty, one for each of its nodes
(``history_propagation``). Lanes of a member are added up by ``gather``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rekka.forecast.ageing import Ageing
from rekka.model.family import Family
from rekka.model.fit import Fit

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]
States = NDArray[np.int64]

YEAR = 1.0  # of a step in which hazards are constant


@dataclass(frozen=True, eq=False)
class Propagator:
    """Members with covariates x (n, p) at the start, and sets of coefficients (B, K-1, p+1); p is (B, n, K).

    All hazards are ``tempo`` times those of the model.
    """

    fit: Fit
    x: Array
    coefficients: Array
    ageing: Ageing
    tempo: float = field(default=1.0, kw_only=True)

    @property
    def family(self) -> Family:
        """Hazard family of the model."""
        return self.fit.family

    @property
    def lanes(self) -> int:
        """Lanes of each member."""
        return 1

    @property
    def yearly(self) -> bool:
        """Whether years differ from each other, so that each is a step of its own."""
        return self.ageing.moves

    def take_sets(self, sets: slice) -> Self:
        """Propagator with some of the sets of coefficients."""
        return replace(self, coefficients=self.coefficients[sets])

    def take_members(self, rows: Mask | NDArray[np.intp]) -> Self:
        """Propagator of some members that are on their way."""
        return replace(self, x=self.x[rows])

    def design(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Rows (n, p+1) that coefficients multiply, in a step of so many years that begins after ``elapsed``."""
        return self.fit.design(self.ageing.model_input(self.x, elapsed, years))

    def predictors(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Predictors (B, n, K-1) in a step of so many years that begins after ``elapsed``."""
        return np.asarray(self.design(elapsed, years) @ self.coefficients.transpose(0, 2, 1))

    def hazards(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Hazards a year (B, lanes, K-1) in a step of so many years that begins after ``elapsed``."""
        theta = self.family.step_hazards(self.predictors(elapsed, years))
        return theta if self.tempo == 1.0 else self.tempo * theta

    def start_in(self, start: States) -> Array:
        """Probabilities (B, lanes, K) of members that are in states ``start`` (n,), 0-based."""
        p = np.zeros((len(self.coefficients), start.size, self.fit.n_states))
        p[:, np.arange(start.size), start] = 1.0
        return p

    def step(self, p: Array, theta: Array, h: Array | float) -> None:
        """Carry p (B, lanes, K) over h years, a number or (n,), in place."""
        self.family.step(p, theta, h)

    def step_until(self, p: Array, theta: Array, h: float, state: int, years: Array) -> None:
        """Carry p as ``step`` does, and add the years in each state; who reaches ``state``, 0-based, stays there.

        Hazards of leaving ``state`` and worse are 0 in theta.
        """
        del state
        self.family.step_integrated(p, theta, h, years)

    def years_left(self, p: Array, theta: Array, state: int) -> Array:
        """Mean years (B, lanes) left until ``state`` if all years are like this one."""
        return self.family.years_left(p, theta, state)

    def reach(self, sets: Places, p: Array, theta: Array, t: Array, state: int) -> Array:
        """Probability (r,) of ``state`` or worse after t (r,) years like this one, for lanes p (r, lanes, K).

        ``sets`` (r,) is the set of coefficients that each belongs to.
        """
        del sets
        after = np.einsum("rj,rjk->rk", p[:, 0], self.family.matrices(theta[:, 0], t))
        return np.asarray(after[:, state:].sum(axis=-1))

    @property
    def errs(self) -> bool:
        """Whether inspectors err, so that records differ from the true state."""
        return False

    def record(self, p: Array) -> Array:
        """Probabilities (B, ..., K) of the rating that an inspector records, for true states p (B, ..., K)."""
        return p

    def gather(self, values: Array) -> Array:
        """Values (B, n, ...) of members from those of their lanes (B, lanes, ...), added up."""
        return values

    @property
    def sharing(self) -> NDArray[np.int64] | None:
        """Number (n,) of the bridge that each member shares a frailty with; None without frailty."""
        return None

    @property
    def until_now(self) -> Propagator:
        """Propagator from the last visits to time 0."""
        return self


def propagate(
    propagator: Propagator,
    start: States,
    times: Sequence[float] | Array,
    gap: Array | None = None,
    *,
    by_lane: bool = False,
) -> Iterator[Array]:
    """State probabilities (B, n, K) at each of the times in years, which do not decrease.

    ``by_lane`` gives those of the lanes (B, lanes, K) of all members instead.

    Hazards are constant from 0 to 1, 1 to 2, ... years, with the age in the middle of that year, whatever times
    are asked for. With ``gap`` (n,) members start so many years before time 0: each is first brought there, year
    by year, and the years are counted from time 0 on.
    """
    p = propagator.start_in(start)
    elapsed = cross_gaps(propagator.until_now, p, gap)
    theta, begun = None, 0.0
    now = 0.0
    for time in times:
        for first, second in pairwise(_cut_years(now, float(time), yearly=propagator.yearly)):
            if theta is None or (propagator.yearly and np.floor(first) != begun):
                begun = float(np.floor(first))
                theta = propagator.hazards(elapsed + begun, YEAR)
            propagator.step(p, theta, second - first)
        now = float(time)
        yield p.copy() if by_lane else propagator.gather(p.copy())


def cross_gaps(propagator: Propagator, p: Array, gap: Array | None) -> Array | float:
    """Bring p (B, lanes, K), in place, over each member's own gap (n,) in years; return the gap, 0 for none."""
    step = propagator.step
    return step_gaps(gap, lambda done, h: step(p, propagator.hazards(done, h), h), yearly=propagator.yearly)


def step_gaps(gap: Array | None, carry: Callable[[Array, Array], None], *, yearly: bool) -> Array | float:
    """Call ``carry`` with years done (n,) and the next step (n,), until each member's gap is done."""
    if gap is None or not gap.any():
        return 0.0
    done = np.zeros_like(gap)
    while (done < gap).any():
        h = np.minimum(gap - done, YEAR if yearly else np.inf)
        carry(done, h)
        done = np.where(h < YEAR, gap, done + h)  # equal to the gap to the last bit where it is done
    return gap


def _cut_years(now: float, until: float, *, yearly: bool) -> list[float]:
    """Times between which hazards are constant: whole years, where years differ."""
    if until == now:
        return [now]
    whole = np.arange(np.floor(now) + 1, np.ceil(until)) if yearly else ()
    return [now, *map(float, whole), until]
