"""State probabilities carried from year to year, for one set of coefficients or for many at once.

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

from rekka.forecast.ageing import Course
from rekka.model.family import Family
from rekka.model.fit import Fit

Array = NDArray[np.float64]
States = NDArray[np.int64]

YEAR = 1.0  # of a step in which hazards are constant


@dataclass(frozen=True, eq=False)
class Walkers:
    """Rows on their way: x (n, p) as they set out, coefficients (B, K-1, p+1); p is (B, n, K)."""

    fit: Fit
    x: Array
    coefficients: Array
    course: Course

    @property
    def family(self) -> Family:
        """What carries them on."""
        return self.fit.family

    def design(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Rows (n, p+1) that coefficients multiply, in a step of so many years that begins after ``elapsed``."""
        return self.fit.design(self.course.ask(self.x, elapsed, years))

    def hazards(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Theta (B, n, K-1) in a step of so many years that begins after ``elapsed``."""
        return self.family.step_hazards(self.design(elapsed, years) @ self.coefficients.transpose(0, 2, 1))

    def set_out(self, start: States) -> Array:
        """All in their start states (n,), 0-based."""
        p = np.zeros((len(self.coefficients), start.size, self.fit.n_states))
        p[:, np.arange(start.size), start] = 1.0
        return p


def walk(
    walkers: Walkers, start: States, times: Sequence[float] | Array, gap: Array | None = None
) -> Iterator[Array]:
    """P (B, n, K) at each of the times, which do not decrease.

    Hazards are constant from 0 to 1, 1 to 2, ... years, with the age in the middle of that year, whatever times
    are asked for. With ``gap`` (n,) rows set out so many years before time 0: each first catches up, year by year,
    and the years are counted from time 0 on.
    """
    p = walkers.set_out(start)
    elapsed = catch_up(walkers, p, gap)
    theta, begun = None, 0.0
    now = 0.0
    for time in times:
        for first, second in pairwise(cut_years(now, float(time), walkers.course)):
            if theta is None or (walkers.course.moves and np.floor(first) != begun):
                begun = float(np.floor(first))
                theta = walkers.hazards(elapsed + begun, YEAR)
            walkers.family.step(p, theta, second - first)
        now = float(time)
        yield p.copy()


def catch_up(walkers: Walkers, p: Array, gap: Array | None) -> Array | float:
    """Carry every row over its own gap, year by year; how long that was."""
    return cross_gap(gap, walkers.course, lambda done, h: walkers.family.step(p, walkers.hazards(done, h), h))


def cross_gap(gap: Array | None, course: Course, carry: Callable[[Array, Array], None]) -> Array | float:
    """``carry`` rows that have gone so far (n,) by so many years (n,), until each has its gap behind it."""
    if gap is None or not gap.any():
        return 0.0
    done = np.zeros_like(gap)
    while (done < gap).any():
        h = np.minimum(gap - done, YEAR if course.moves else np.inf)
        carry(done, h)
        done = np.where(h < YEAR, gap, done + h)  # who has arrived has arrived to the last bit
    return gap


def cut_years(now: float, until: float, course: Course) -> list[float]:
    """The times between which hazards are constant: whole years, where anything changes with them."""
    if until == now:
        return [now]
    whole = np.arange(np.floor(now) + 1, np.ceil(until)) if course.moves else ()
    return [now, *map(float, whole), until]
