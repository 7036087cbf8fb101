"""Is there a higher maximum? Newton from other starts, off the clock.

The log-likelihood of a chain seen at intervals is not concave: a few rows with long intervals can give it two
maxima. And where a state is separated, the supremum may lie at infinity, beyond a dip. So the point a solver
returned is compared with where Newton gets from itself, from crude rates moved up and down, and from far along
each separating direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.model.coordinates import Coordinates
from rekka.model.separation import Separation
from rekka.model.solvers import DECREMENT_TOLERANCE, Outcome, Stop, crude_log_rates, newton, solve_newton

Array = NDArray[np.float64]

# With more rows than this the likelihood is as good as quadratic around its maximum, and refits cost time.
MOST_ROWS = 5000
SHIFT = 2.0  # in the log hazard, up, down and alternating by state
FAR = (2.0, 8.0, 32.0)  # along a separating direction, in standard deviations of the log hazard
MOST_ITERATIONS = 100


class Restarts(NamedTuple):
    """The best point found, its run, how many starts were tried, and by how much it beats the point given."""

    psi: Array
    outcome: Outcome | None  # None if the point given is the best
    tried: int
    shortfall: float


def crude_start(coordinates: Coordinates[Any], shift: Array | float = 0.0) -> Array:
    """Occurrence/exposure rates, moved by ``shift`` (K-1,), and zero slopes."""
    rates = crude_log_rates(coordinates.likelihood) + shift
    gamma = np.zeros((rates.size, coordinates.likelihood.n_terms))
    gamma[:, 0] = rates
    return np.asarray(coordinates.basis.T @ gamma.ravel())


def shifted_starts(coordinates: Coordinates[Any]) -> list[Array]:
    """Crude rates moved up, down, and up and down by turns."""
    sign = np.where(np.arange(coordinates.likelihood.n_states - 1) % 2, 1.0, -1.0)
    up = np.ones_like(sign)
    return [crude_start(coordinates, SHIFT * shift) for shift in (up, -up, sign, -sign)]


def restart(coordinates: Coordinates[Any], psi: Array, separations: Sequence[Separation]) -> Restarts:
    """Look for a point that is better than psi; separations that rise for certain need no look."""
    here = coordinates.objective(psi)
    value = here.value
    starts: list[Array] = []
    if not (np.isfinite(here.hessian).all() and solve_newton(here)[1] <= DECREMENT_TOLERANCE):
        starts += [psi, crude_start(coordinates)]  # the solver did not finish
    if coordinates.likelihood.n_rows <= MOST_ROWS:
        starts += shifted_starts(coordinates)
    for separation in separations:
        if not separation.certain:
            unit = separation.direction / np.linalg.norm(separation.direction)
            starts += [psi + t * unit for t in FAR]
    best, best_value, run = psi, value if np.isfinite(value) else np.inf, None
    for start in starts:
        point, outcome = newton(coordinates.objective, start, MOST_ITERATIONS)
        if outcome.message != Stop.NONFINITE and outcome.objective < best_value:
            best, best_value, run = point, outcome.objective, outcome
    shortfall = value - best_value if np.isfinite(value) else np.inf
    return Restarts(best, run, len(starts), float(shortfall))
