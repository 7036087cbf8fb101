"""State probabilities carried from year to year, for one set of coefficients or for many at once.

    p(t + h) = p(t) exp(Q(x) h),   theta_k(x) = exp(w(x) . b_k),   x in the middle of the step, h at most a year

w is a row of the design in the units of ``inference``, b any coefficients in them: the estimate, or draws.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rekka.forecast import step_kernel
from rekka.forecast.ageing import Course
from rekka.model.fit import Fit

Array = NDArray[np.float64]
States = NDArray[np.int64]

YEAR = 1.0  # of a step in which hazards are constant
FASTEST = 1e8  # a year: who leaves a state at a higher hazard is gone within a second, and goes at this
ROWS_A_THREAD = 8192  # below this, handing rows to a thread costs more than it saves


@dataclass(frozen=True, eq=False)
class Walkers:
    """Rows on their way: x (n, p) as they set out, coefficients (B, K-1, p+1); p is (B, n, K)."""

    fit: Fit
    x: Array
    coefficients: Array
    course: Course

    def design(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Rows (n, p+1) that coefficients multiply, in a step of so many years that begins after ``elapsed``."""
        return self.fit.design(self.course.ask(self.x, elapsed, years))

    def hazards(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Theta (B, n, K-1) in a step of so many years that begins after ``elapsed``."""
        design = self.design(elapsed, years)
        with np.errstate(over="ignore"):  # what is infinite is fast enough
            return np.asarray(np.minimum(np.exp(design @ self.coefficients.transpose(0, 2, 1)), FASTEST))

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
            step(p, theta, second - first)
        now = float(time)
        yield p.copy()


def catch_up(walkers: Walkers, p: Array, gap: Array | None) -> Array | float:
    """Carry every row over its own gap, year by year; how long that was."""
    return cross_gap(gap, walkers.course, lambda done, h: step(p, walkers.hazards(done, h), h))


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


def step(p: Array, theta: Array, h: Array | float) -> None:
    """P (..., K) <- p exp(Q h), in place; theta (..., K-1), h a number or (...)."""
    _run(step_kernel.step_rows, p, theta, h)


def step_integrated(p: Array, theta: Array, h: Array | float, years: Array) -> None:
    """The same, and years (..., K) += the expected time in each state."""
    _run(step_kernel.integrate_rows, p, theta, h, years)


def step_sloped(p: Array, slope: Array, theta: Array, h: Array | float, drive: Array) -> None:
    """The same, and slope (n, K-1, D, K) with it; drive (n, D) moves the log hazards."""
    _run(step_kernel.slope_rows, p, theta, h, slope, drive)


def _run(kernel: Callable[..., None], p: Array, theta: Array, h: Array | float, *more: Array) -> None:
    """The kernel over all rows, on threads. Arrays to be written to must be whole in memory, as rows of them.

    The years are copied, because an array that can only be read would have every kernel compiled a second time.
    """
    lead = p.shape[:-1]
    given = (p, theta, *more)
    rows = [np.ascontiguousarray(one).reshape(-1, *one.shape[len(lead) :]) for one in given]
    years = np.array(np.broadcast_to(h, lead), dtype=np.float64, order="C").reshape(-1)
    rows.insert(2, years)
    parts = max(1, min(os.cpu_count() or 1, years.size // ROWS_A_THREAD))
    edges = [years.size * part // parts for part in range(parts + 1)]
    if parts == 1:
        kernel(*rows)
        return
    done = _pool().map(lambda edge: kernel(*(one[edge[0] : edge[1]] for one in rows)), pairwise(edges))
    list(done)


@lru_cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="rekka-forecast")
