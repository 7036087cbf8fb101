"""Simulated rows from known hazards: how many intervals hold the truth, and means of estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.core.language import say
from rekka.verification.engine import Comparison, Numbers, compare, verifies
from rekka.verification.formulas import draw_pairs
from rekka.verification.maxima import draw_one, fit

SETS, ROWS = 200, 150
TRUTH = ((-1.8, 0.5), (-1.4, -0.4))
NORMAL = 1.959963984540054  # of a 95 % interval


class Covered(NamedTuple):
    """Counts of intervals that hold the truth, by coefficient; mean estimates; certified fits.

    ``closest`` is the smallest distance, in standard errors, of an end of an interval to the truth: as long as it
    is far above rounding errors, every right implementation has the same counts.
    """

    held: NDArray[np.int64]
    means: NDArray[np.float64]
    certified: int
    closest: float


def count_covered() -> Covered:
    """Fit all sets, and count."""
    truth, closest = np.array(TRUTH), math.inf
    held, total, certified = np.zeros(truth.shape, dtype=np.int64), np.zeros(truth.shape), 0
    for number in range(SETS):
        rows = draw_pairs(9000 + number, ROWS, TRUTH, draw_one, [1.0, 2.0, 4.0])
        model = fit(rows)
        found = np.column_stack([model.intercept_, model.coef_])
        errors = np.sqrt(np.diag(model.covariance_)).reshape(truth.shape)
        away = np.abs(found - truth) / errors
        held += away <= NORMAL
        closest = min(closest, float(np.abs(away - NORMAL).min()))
        total += found
        certified += model.certificate_.certified
    return Covered(held, total / SETS, certified, closest)


@verifies("coverage", "simulation", source="seeds")
def coverage(numbers: Numbers) -> Iterator[Comparison]:
    """95 % intervals of coefficients from 200 simulated sets: as many hold the truth as with these seeds."""
    stored = numbers["coverage"]
    held, means, certified, _ = count_covered()
    yield compare(say("verify.item.sets_certified", sets=SETS), stored["certified"], certified)
    share = held.sum() / held.size / SETS
    # Four coefficients that are nearly independent: three standard errors of a binomial share.
    margin = 3.0 * math.sqrt(0.95 * 0.05 / (held.size * SETS))
    yield compare(say("verify.item.nominal"), 0.95, share, within=margin)
    for k in range(len(TRUTH)):
        for term, truth in enumerate(TRUTH[k]):
            place = {"state": f"{k + 1}", "term": say(f"verify.term.{term}")}
            expected = stored["held"][k][term]
            yield compare(say("verify.item.intervals", sets=SETS, **place), expected, int(held[k, term]))
            item = say("verify.item.mean_estimate", **place)
            yield compare(item, stored["means"][k][term], float(means[k, term]), within=1e-6)
            yield compare(say("verify.item.bias", **place), truth, float(means[k, term]), within=0.05)
