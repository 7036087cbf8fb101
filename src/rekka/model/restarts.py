"""Restarts: Newton from other starts, off the clock, to look for a higher maximum.

The log-likelihood of a chain seen at intervals is not concave: long intervals and extreme covariates can give it
two maxima, however many rows there are. And where a state is separated, the supremum may lie at infinity, beyond a
dip. So the point a solver returned is compared with where Newton gets from itself, from crude rates moved up and
down, and from far along each separating direction.

With more than ``MOST_ROWS`` informative rows the crude rates are moved on a sample: it keeps every row that lies
far out, and some of the others, which count for more. The sample's other maxima are then tried on all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.model.coordinates import Coordinates
from rekka.model.family import PairRows
from rekka.model.likelihood import Likelihood
from rekka.model.separation import Separation
from rekka.model.solvers import DECREMENT_TOLERANCE, Outcome, Stop, newton, solve_newton

Array = NDArray[np.float64]
Pair = tuple[int, int]  # start and end, 0-based

MOST_ROWS = 5000  # informative rows; with more, starts are tried on a sample
SAMPLE_SHARE = 0.1  # of the informative rows, if these are more than MOST_ROWS
LEAST_OF_PAIR = 50  # rows of each start and end that a sample keeps, as far as there are so many
FAR_OUT = 25.0  # times the mean of |W|^2, or of the weights: rows beyond are few, and decide most
MOST_TRIED = 3  # other maxima of a sample that are tried on all rows
SHIFT = 2.0  # in the log hazard, up, down and alternating by state
FAR = (2.0, 8.0, 32.0)  # along a separating direction, in standard deviations of the log hazard
MOST_ITERATIONS = 100
SAME_SHARE, SAME = 1e-9, 1e-6  # of the value, or log-likelihood units: values of one maximum


class Restarts(NamedTuple):
    """The best point found, its run, how many starts were tried, and by how much it beats the point given.

    ``shortfall`` is per unit of mean weight. ``sampled`` is the number of rows in the sample on which starts were
    tried, 0 if on all rows.
    """

    psi: Array
    outcome: Outcome | None  # None if the point given is the best
    tried: int
    shortfall: float
    sampled: int = 0


class Maximum(NamedTuple):
    """Where Newton ended, and the objective there."""

    psi: Array
    value: float


@dataclass(frozen=True, eq=False)
class Fewer:
    """A sample of the rows in the coordinates of all of them, and its maxima."""

    coordinates: Coordinates[Likelihood]

    @property
    def rows(self) -> int:
        """Number of rows in the sample."""
        return self.coordinates.likelihood.n_rows

    @cached_property
    def starts(self) -> list[Array]:
        """Crude rates, and crude rates moved."""
        return [crude_start(self.coordinates), *shifted_starts(self.coordinates)]

    @cached_property
    def maxima(self) -> list[Maximum]:
        """The distinct points where Newton ends on the sample, the highest likelihood first."""
        found: list[Maximum] = []
        for start in self.starts:
            one = self.climb(start)
            if math.isfinite(one.value) and not any(self._same(one, known) for known in found):
                found.append(one)
        return sorted(found, key=lambda one: one.value)

    def climb(self, start: Array) -> Maximum:
        """Newton on the sample."""
        coordinates = self.coordinates
        psi, outcome = newton(coordinates.objective, start, MOST_ITERATIONS, coordinates.unit)
        return Maximum(psi, outcome.objective)

    def elsewhere(self, psi: Array) -> list[Array]:
        """The best of the sample's maxima that are not the one next to psi."""
        own = self.climb(psi)
        return [one.psi for one in self.maxima if not self._same(one, own)][:MOST_TRIED]

    def _same(self, one: Maximum, other: Maximum) -> bool:
        tolerance = SAME * self.coordinates.unit
        return math.isclose(one.value, other.value, rel_tol=SAME_SHARE, abs_tol=tolerance)


def crude_start(coordinates: Coordinates[Any], shift: Array | float = 0.0) -> Array:
    """Occurrence/exposure rates, moved by ``shift`` (K-1,), and zero slopes."""
    return np.asarray(coordinates.basis.T @ coordinates.likelihood.start(shift))


def shifted_starts(coordinates: Coordinates[Any]) -> list[Array]:
    """Crude rates moved up, down, and up and down by turns."""
    sign = np.where(np.arange(coordinates.likelihood.n_states - 1) % 2, 1.0, -1.0)
    up = np.ones_like(sign)
    return [crude_start(coordinates, SHIFT * shift) for shift in (up, -up, sign, -sign)]


def share_sample(counts: NDArray[np.int64], size: int) -> Array:
    """The share (K, K) of the rows of each start and end in a sample of about ``size``; counts are theirs (K, K).

    Rows that start in the worst state are not in it.
    """
    able = np.where(np.arange(len(counts))[:, None] < len(counts) - 1, counts, 0)
    wanted = np.maximum(able * (size / max(able.sum(), 1)), np.minimum(able, LEAST_OF_PAIR))
    return np.asarray(np.minimum(wanted / np.maximum(able, 1), 1.0))


def choose_rows(W: Array, weight: Array, share: float, unit: float) -> tuple[NDArray[np.intp], Array]:
    """Places of the rows W (p+1, m) of one start and end that are drawn, and how many rows each stands for.

    All that lie far out or weigh far more than the mean ``unit``, and this share of the others: every so-manyth in
    the order of how far out they lie, so that the sample has as many near and far as all rows have. A random draw
    can lose a maximum.
    """
    distance = np.square(W).sum(axis=0)
    far = (distance > FAR_OUT * len(W)) | (weight > FAR_OUT * unit)
    out, near = (np.flatnonzero(far), np.flatnonzero(~far)) if share > 0 else (np.empty(0, np.intp),) * 2
    size = math.ceil(near.size * share)
    ordered = near[np.argsort(distance[near], kind="stable")]
    some = np.sort(ordered[((np.arange(size) + 0.5) * (near.size / max(size, 1))).astype(np.intp)])
    return np.concatenate([out, some]), np.repeat([1.0, near.size / max(size, 1)], [out.size, size])


def draw_sample(
    rows: PairRows, share: Array, unit: float
) -> Iterator[tuple[Pair, slice, NDArray[np.intp], Array]]:
    """Start and end, the run of their rows, which of all rows are drawn, and how many rows each stands for.

    Rows of one start and end follow each other; ``share`` (K, K) of each is drawn, and all that lie far out.
    """
    edges = np.flatnonzero(np.diff(rows.start * len(share) + rows.end, prepend=-1, append=-1))
    for low, high in pairwise(edges.tolist()):
        pair, run = (int(rows.start[low]), int(rows.end[low])), slice(low, high)
        some, stands_for = choose_rows(rows.X[:, run], rows.weight[run], float(share[pair]), unit)
        yield pair, run, low + some, stands_for


def sample_held(coordinates: Coordinates[Likelihood]) -> Fewer | None:
    """A sample of rows in memory; None where all of them are few enough to try every start on."""
    likelihood = coordinates.likelihood
    rows, K, informative = likelihood.rows, likelihood.n_states, likelihood.n_informative
    if informative <= MOST_ROWS:
        return None
    counts = np.bincount(rows.start * K + rows.end, minlength=K * K).reshape(K, K)
    share = share_sample(counts, max(MOST_ROWS, int(informative * SAMPLE_SHARE)))
    drawn = [(place, times) for _, _, place, times in draw_sample(likelihood.arranged, share, rows.unit)]
    place, times = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    some = rows.take(place)
    some = replace(some, weight=some.weight * times)
    few = Likelihood.build(some, likelihood.X[:, place].T, likelihood.threads, likelihood.family)
    return Fewer(coordinates.of(few))


def restart(
    coordinates: Coordinates[Any], psi: Array, separations: Sequence[Separation], fewer: Fewer | None
) -> Restarts:
    """Look for a point that is better than psi; separations that rise for certain need no look."""
    unit = coordinates.unit
    here = coordinates.objective(psi)
    value = here.value
    starts: list[Array] = []
    if not (np.isfinite(here.hessian).all() and solve_newton(here.per(unit))[1] <= DECREMENT_TOLERANCE):
        starts += [psi, crude_start(coordinates)]  # the solver did not finish
    starts += shifted_starts(coordinates) if fewer is None else fewer.elsewhere(psi)
    for separation in separations:
        if not separation.certain:
            unit_vector = separation.direction / np.linalg.norm(separation.direction)
            starts += [psi + t * unit_vector for t in FAR]
    best, best_value, run = psi, value if np.isfinite(value) else np.inf, None
    for start in starts:
        point, outcome = newton(coordinates.objective, start, MOST_ITERATIONS, unit)
        if outcome.message != Stop.NONFINITE and outcome.objective < best_value:
            best, best_value, run = point, outcome.objective, outcome
    shortfall = (value - best_value) / unit if np.isfinite(value) else np.inf
    tried, sampled = (0, 0) if fewer is None else (len(fewer.starts) - 1, fewer.rows)  # crude rates are no other
    partly = sampled < coordinates.likelihood.n_informative
    return Restarts(best, run, tried + len(starts), float(shortfall), sampled if partly else 0)
