"""Upper bounds of hazards of states that no row leaves.

Rows that stayed in state k for T years in all have the likelihood exp(-theta_k T), which has no maximum: it rises
as theta_k falls to 0. It says how fast the state can be left at most. With 95 % confidence

    theta_k <= -log(0.05) / T = 3.0 / T

T counts the rows that were in the state at both visits. A row that came into it between two visits, and was found
there, was at risk for part of its interval: it is left out, so that the bound is rather too high than too low.

A model with bounds has them in place of such hazards: the cautious end. Its other hazards are those of maximum
likelihood. A state that nobody was in at both visits has no bound, one that nobody stays in has no finite rate:
both are held at the rate of all states together, within a factor of e or so, as a ridge holds them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.evaluation.ridge import find_intercepts, find_without_rate
from rekka.evaluation.scores import CONFIDENCE
from rekka.model.coordinates import Prior
from rekka.model.family import find_family
from rekka.model.fit import Fit, Options
from rekka.model.likelihood import Rows

FIXED = 1e8  # precision of a log hazard that is set at its bound: it moves by less than 1e-7


class Bound(NamedTuple):
    """An upper bound of the hazard of leaving a state (1-based), from so many years in it without a departure.

    ``state`` is None where the bound is one for all states together.
    """

    state: int | None
    years: float
    rate: float


def bound_rate(years: float, confidence: float = CONFIDENCE) -> float:
    """The largest hazard that years at risk without a departure allow: 3.0 / years at 95 %.

    >>> round(bound_rate(312.0), 4)
    0.0096
    """
    return -math.log1p(-confidence) / years if years > 0 else math.inf


def find_bounds(rows: Rows) -> tuple[Bound, ...]:
    """The bound of each state that no row leaves and some stay in."""
    found = []
    for k in range(rows.n_states - 1):
        stayed = (rows.start == k) & (rows.end == k)
        years = float((rows.weight * rows.dt)[stayed].sum())
        if years > 0 and not ((rows.start <= k) & (rows.end > k)).any():
            found.append(Bound(k + 1, years, bound_rate(years)))
    return tuple(found)


def find_common_bound(rows: Rows) -> Bound:
    """The bound of leaving any state, of rows of which none does; the worst state can be left for no other."""
    free = rows.start < max(rows.n_states - 1, 1)
    years = float((rows.weight * rows.dt)[free].sum())
    return Bound(None, years, bound_rate(years))


def hold_at_bounds(rows: Rows, options: Options) -> Options:
    """Options to fit these rows with, without covariates: hazards that have no maximum are held, if there are."""
    if not find_without_rate(rows).any():
        return options
    family = find_family(options.family)
    precision, rate = find_intercepts(rows, family)
    mean = np.full(precision.size, rate)
    for state, _, bound in find_bounds(rows):
        assert state is not None
        mean[state - 1], precision[state - 1] = float(family.from_rates(np.log(bound))), FIXED
    return replace(options, prior=Prior(mean, np.diag(precision)).to_dict())


def mark_bounds(fit: Fit, bounds: tuple[Bound, ...]) -> Fit:
    """The fit with its bounds named in the certificate, and without variances for them: they are no estimates."""
    known = [state - 1 for state, _, _ in bounds if state is not None]
    covariance: NDArray[np.float64] = fit.inference.covariance.copy()
    covariance[known, :], covariance[:, known] = 0.0, 0.0
    certificate = replace(
        fit.certificate,
        remarks=(*map(describe_bound, bounds), *fit.certificate.remarks),
        determined=not bounds and fit.certificate.determined,
    )
    return replace(fit, inference=replace(fit.inference, covariance=covariance), certificate=certificate)


def describe_bound(bound: Bound) -> str:
    """A bound as a sentence, in English.

    >>> describe_bound(Bound(4, 312.0, bound_rate(312.0)))
    'the hazard of leaving state 4 is an upper bound, 0.0096 a year, not an estimate: no departure in 312 years'
    """
    return (
        f"the hazard of leaving state {bound.state} is an upper bound, {bound.rate:.2g} a year, not an estimate: "
        f"no departure in {bound.years:,.4g} years"
    )
