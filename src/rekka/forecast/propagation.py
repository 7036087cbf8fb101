"""State probabilities propagated from year to year, for one set of coefficients or for many at once.

    p(t + h) = p(t) P(theta(x), h),   theta_k(x) the hazard at w(x) . b_k,   h at most a year

x is taken in the middle of the step. The hazard of a predictor and the step P are the family's (``model.family``).
w is a row of the design in the units of ``inference``, b any coefficients in them: the estimate, or draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rekka.forecast.ageing import Ageing
from rekka.model.family import Family
from rekka.model.fit import Fit
from rekka.model.history_inputs import refuse_histories

Array = NDArray[np.float64]
States = NDArray[np.int64]

YEAR = 1.0  # of a step in which hazards are constant


@dataclass(frozen=True, eq=False)
class Propagator:
    """Members with covariates x (n, p) at the start, and sets of coefficients (B, K-1, p+1); p is (B, n, K)."""

    fit: Fit
    x: Array
    coefficients: Array
    ageing: Ageing

    def __post_init__(self) -> None:
        refuse_histories(
            self.fit, "A forecast", "Use predict_proba for the next rating, and hazards for the rates."
        )

    @property
    def family(self) -> Family:
        """Hazard family of the model."""
        return self.fit.family

    def design(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Rows (n, p+1) that coefficients multiply, in a step of so many years that begins after ``elapsed``."""
        return self.fit.design(self.ageing.model_input(self.x, elapsed, years))

    def hazards(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Hazards a year (B, n, K-1) in a step of so many years that begins after ``elapsed``."""
        return self.family.step_hazards(self.design(elapsed, years) @ self.coefficients.transpose(0, 2, 1))

    def start_in(self, start: States) -> Array:
        """Probabilities (B, n, K) of members that are in states ``start`` (n,), 0-based."""
        p = np.zeros((len(self.coefficients), start.size, self.fit.n_states))
        p[:, np.arange(start.size), start] = 1.0
        return p


def propagate(
    propagator: Propagator, start: States, times: Sequence[float] | Array, gap: Array | None = None
) -> Iterator[Array]:
    """State probabilities (B, n, K) at each of the times in years, which do not decrease.

    Hazards are constant from 0 to 1, 1 to 2, ... years, with the age in the middle of that year, whatever times
    are asked for. With ``gap`` (n,) members start so many years before time 0: each is first brought there, year
    by year, and the years are counted from time 0 on.
    """
    p = propagator.start_in(start)
    elapsed = cross_gaps(propagator, p, gap)
    theta, begun = None, 0.0
    now = 0.0
    for time in times:
        for first, second in pairwise(_cut_years(now, float(time), propagator.ageing)):
            if theta is None or (propagator.ageing.moves and np.floor(first) != begun):
                begun = float(np.floor(first))
                theta = propagator.hazards(elapsed + begun, YEAR)
            propagator.family.step(p, theta, second - first)
        now = float(time)
        yield p.copy()


def cross_gaps(propagator: Propagator, p: Array, gap: Array | None) -> Array | float:
    """Bring p (B, n, K), in place, over each member's own gap (n,) in years; return the gap, 0 for none."""
    step = propagator.family.step
    return step_gaps(gap, propagator.ageing, lambda done, h: step(p, propagator.hazards(done, h), h))


def step_gaps(gap: Array | None, ageing: Ageing, carry: Callable[[Array, Array], None]) -> Array | float:
    """Call ``carry`` with years done (n,) and the next step (n,), until each member's gap is done."""
    if gap is None or not gap.any():
        return 0.0
    done = np.zeros_like(gap)
    while (done < gap).any():
        h = np.minimum(gap - done, YEAR if ageing.moves else np.inf)
        carry(done, h)
        done = np.where(h < YEAR, gap, done + h)  # equal to the gap to the last bit where it is done
    return gap


def _cut_years(now: float, until: float, ageing: Ageing) -> list[float]:
    """Times between which hazards are constant: whole years, where covariates change with them."""
    if until == now:
        return [now]
    whole = np.arange(np.floor(now) + 1, np.ceil(until)) if ageing.moves else ()
    return [now, *map(float, whole), until]
