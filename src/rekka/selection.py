"""Which trials of a case are worth keeping: the paper's Pareto rule over accuracy and cost.

    a dominates b: accuracy and -cost of a are both no worse than b's, and one of them is better  (Definition 4)
    Sel(c) = {m eligible in c : no eligible m' dominates m}                                     (Eq. pareto-set)

All that are not dominated are kept, ties included; of no eligible method nothing is kept. "Better" means by more
than a tolerance, "no worse" means by no more than it.

Among eligible methods one at least is kept, tolerances or not. Count accuracy and -cost in units of their
tolerances and add them up: a domination gains more than 1 in one and loses at most 1 in the other, so the sum
rises, and nothing can dominate the method with the largest sum. (With a tolerance of 0, compare that objective
first and the other second.) Dominance is not transitive within the tolerances: if a is dropped for b and b for c,
c need not dominate a. That takes accuracies 1e-12 apart, which no counted share of rows has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from rekka.errors import BadValues

ACCURACY_TOLERANCE = 1e-12  # paper, after Eq. pareto-set
SECONDS_TOLERANCE = 1e-9  # paper, after Eq. pareto-set
COUNT_TOLERANCE = 0.0  # evaluations and iterations are whole numbers


class Point(NamedTuple):
    """What a trial is judged by: accuracy, the more the better, and cost, the less the better."""

    accuracy: float
    cost: float


def dominates(a: Point, b: Point, cost_tolerance: float = SECONDS_TOLERANCE) -> bool:
    """Whether a is no worse than b in accuracy and in cost, and better in one (Definition 4)."""
    accuracy, saving = a.accuracy - b.accuracy, b.cost - a.cost
    no_worse = accuracy >= -ACCURACY_TOLERANCE and saving >= -cost_tolerance
    return no_worse and (accuracy > ACCURACY_TOLERANCE or saving > cost_tolerance)


def ties(a: Point, b: Point, cost_tolerance: float = SECONDS_TOLERANCE) -> bool:
    """Whether a and b are the same in accuracy and in cost, within the tolerances."""
    return abs(a.accuracy - b.accuracy) <= ACCURACY_TOLERANCE and abs(a.cost - b.cost) <= cost_tolerance


def pareto_set(points: Mapping[str, Point], cost_tolerance: float = SECONDS_TOLERANCE) -> tuple[str, ...]:
    """The methods that no other dominates, in the order given (Eq. pareto-set). Give eligible methods only."""
    for method, point in points.items():
        if not (math.isfinite(point.accuracy) and math.isfinite(point.cost)):
            raise BadValues(
                f"{method} has accuracy {point.accuracy} and cost {point.cost}; a trial without finite figures "
                "cannot be compared. Leave it out: it is not eligible.",
                method=method,
                point=point,
            )
    return tuple(m for m, p in points.items() if not any(dominates(q, p, cost_tolerance) for q in points.values()))
