"""Upper bounds of hazards of states that no row leaves.

Rows that stayed in state k for T years in all have the likelihood exp(-theta_k T), which has no maximum: it rises
as theta_k falls to 0. It says how fast the state can be left at most. With 95 % confidence

    theta_k <= -log(0.05) / T = 3.0 / T

This is where the log-likelihood has fallen by log 20 below its supremum. Rows that came into the state between two
visits, and were found there, were at risk for a part of their interval that depends on the hazards before. With
them the bound is where the profile log-likelihood, the other hazards at their maximum given theta_k, has fallen by
as much. ``years`` of a bound are 3.0 / theta_k: as if one member had stayed so long.

A model with bounds has them in place of such hazards, the cautious end, and the maximum given them for the others.
A state that nobody was found in has no bound, one that nobody stays in has no finite rate: both are held at the
rate of all states together, within a factor of e or so, as a ridge holds them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rekka.evaluation.ridge import HOLD, find_intercepts, find_without_rate
from rekka.evaluation.scores import CONFIDENCE
from rekka.model.coordinates import Prior
from rekka.model.family import EXPONENTIAL, find_family
from rekka.model.fit import Fit, Options, refit_rows
from rekka.model.likelihood import Rows

FIXED = 1e8  # precision of a log hazard that is set at its bound: it moves by less than 1e-7
DROP = -math.log1p(-CONFIDENCE)  # log 20: fall of the log-likelihood at a 95 % bound
NEVER = -9.0  # powers of ten below a bound from stays alone, at which a state is as good as never left


class Bound(NamedTuple):
    """An upper bound of the hazard of leaving a state (1-based), from so many years in it without a departure.

    ``state`` is None where the bound is one for all states together.
    """

    state: int | None
    years: float
    rate: float


def bound_rate(years: float) -> float:
    """The largest hazard that years at risk without a departure allow: 3.0 / years at 95 %.

    >>> round(bound_rate(312.0), 4)
    0.0096
    """
    return DROP / years if years > 0 else math.inf


def find_bounds(rows: Rows) -> tuple[Bound, ...]:
    """The bound of each state that no row leaves and some are found in."""
    found, first = [], 0
    for k in range(rows.n_states - 1):
        if ((rows.start <= k) & (rows.end > k)).any():
            continue
        here = (
            (rows.start >= first) & (rows.end <= k) & (rows.weight > 0)
        )  # nobody passes the bounds on either side
        part = replace(rows.take(here), start=rows.start[here] - first, end=rows.end[here] - first)
        rate = _bound_last(replace(part, n_states=k - first + 2))
        if rate is not None:
            found.append(Bound(k + 1, DROP / rate, rate))
        first = k + 1
    return tuple(found)


def _bound_last(rows: Rows) -> float | None:
    """The bound of the last state but one, which no row leaves; None where nobody is found there.

    All states before it are left by some row, so that somebody comes into it.
    """
    last = rows.n_states - 2
    years = float((rows.weight * rows.dt)[rows.start == last].sum())
    if last == 0:
        return bound_rate(years) if years else None
    precision, rate = find_intercepts(rows, EXPONENTIAL)
    precision[last] = FIXED
    x = np.empty((rows.dt.size, 0))

    unit = bound_rate(years or float(rows.dt.max()))

    def profile(tens: float) -> float:
        mean = np.full(precision.size, rate)
        mean[last] = float(EXPONENTIAL.from_rates(np.log(unit * 10.0**tens)))
        prior = Prior(mean, np.diag(precision)).to_dict()
        return refit_rows(rows, x, (), Options(scaling=None, threads=1, prior=prior)).log_likelihood

    top = profile(NEVER)

    def fallen(tens: float) -> float:
        return top - profile(tens) - DROP

    most = 0.0
    while fallen(most) < 0:  # a state that is left at once is one that nobody is found in
        most += 0.5
    tens: float = optimize.brentq(fallen, NEVER, most, xtol=1e-6)
    return float(unit * 10.0**tens)


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


def mark_bounds(fit: Fit, rows: Rows) -> Fit:
    """The fit with what is no estimate named in its certificate.

    A bound has no variance. A hazard that is held has that of the hold: rows say nothing of it.
    """
    bounds = find_bounds(rows)
    known = [state - 1 for state, _, _ in bounds if state is not None]
    held = [int(k) for k in np.flatnonzero(find_without_rate(rows)) if k not in known]
    covariance: NDArray[np.float64] = fit.inference.covariance.copy()
    covariance[known, :], covariance[:, known] = 0.0, 0.0
    covariance[held, held] = np.maximum(covariance[held, held], HOLD**2)
    certificate = replace(
        fit.certificate,
        remarks=(*map(describe_bound, bounds), *map(_describe_held, held), *fit.certificate.remarks),
        determined=not (bounds or held) and fit.certificate.determined,
    )
    return replace(fit, inference=replace(fit.inference, covariance=covariance), certificate=certificate)


def _describe_held(k: int) -> str:
    return (
        f"the hazard of leaving state {k + 1} is held near that of all states together: no row says how fast it is"
    )


def describe_bound(bound: Bound) -> str:
    """A bound as a sentence, in English.

    >>> describe_bound(Bound(4, 312.0, bound_rate(312.0)))
    'the hazard of leaving state 4 is an upper bound, 0.0096 a year: no departure in 312 years at risk'
    """
    return (
        f"the hazard of leaving state {bound.state} is an upper bound, {bound.rate:.2g} a year: "
        f"no departure in {bound.years:,.4g} years at risk"
    )
