"""Starts of a fit of histories: usual values of the elements with crude rates, or earlier fits.

An earlier fit (``warm``) may have fewer or more elements and covariates, another scaling, and other rows: nested
models of a growing table start from each other. Elements that it lacks begin at usual values, of two starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.model.coordinates import Coordinates
from rekka.model.elements import COMMON, TREND_YEARS, Elements, read_elements
from rekka.model.fit import Fit
from rekka.model.history_passes import HistoryObservations
from rekka.model.likelihood import crude_log_rates

Array = NDArray[np.float64]

# Starts: probability of an error, of an improvement in a year, variance of the frailty, log hazards moved
STARTS = ((0.05, 0.03, 0.2, 0.0), (0.01, 0.1, 0.5, 0.5), (0.15, 0.01, 0.05, -0.7), (0.03, 0.003, 1.0, 0.0))
NEW_STARTS = 2  # of STARTS, for elements that an earlier fit lacks
LEAST_LOGIT = -7.0  # of a probability that is 0 in an earlier fit
LEAST_VARIANCE = 0.02  # of a frailty that is 0 in an earlier fit
SHARES = np.array([0.1, 0.5, 0.9])  # of a covariate's range at which an earlier fit's hazards are taken


def find_starts(coordinates: Coordinates[Any], observed: HistoryObservations, elements: Elements) -> list[Array]:
    """Usual starts (P + Q,): crude rates, moved, and no effects."""
    rates, n_terms = crude_log_rates(observed.overview.pairs, 1.0), len(observed.covariates) + 1
    found = []
    for errors, rho, phi, shift in STARTS if elements.size else STARTS[:3]:
        gamma = np.zeros((elements.n_states - 1, n_terms))
        gamma[:, 0] = coordinates.likelihood.family.from_rates(rates + shift)
        extra = _place_usual(elements, observed, errors, rho, phi)
        found.append(np.concatenate([coordinates.basis.T @ gamma.ravel(), extra]))
    return found


def _place_usual(
    elements: Elements, observed: HistoryObservations, errors: float, rho: float, phi: float
) -> Array:
    parts, extra = elements.parts, np.zeros(elements.size)
    extra[parts["errors"]] = np.log(errors)
    extra[parts["frailty"]] = phi
    extra[parts["improvements"]] = np.log(rho)
    if elements.free_first:
        share = np.log(observed.overview.first + 0.5)
        extra[parts["first"]][: elements.n_states - 1] = share[1:] - share[0]
    return extra


def find_warm_starts(
    warm: Sequence[Fit],
    coordinates: Coordinates[Any],
    observed: HistoryObservations,
    elements: Elements,
    transform: Any,
) -> list[Array]:
    """Starts (P + Q,) from earlier fits; one of other states or another family, or that failed, gives none.

    ``transform`` is that of the scaling of the fit that starts.
    """
    found = []
    for fit in warm:
        same = fit.n_states == elements.n_states and fit.family == coordinates.likelihood.family
        known = [fit.coefficients, np.zeros(0) if fit.records is None else fit.records.extra]
        if not same or np.isnan(known[0]).any() or np.isnan(known[1]).any():
            continue
        if fit.survey is None and set(fit.covariates) - set(observed.covariates):
            continue  # nothing says at which values of these its hazards are typical
        psi = coordinates.forward @ _read_coefficients(fit, observed, elements, transform).ravel()
        for errors, rho, phi, _ in STARTS[:NEW_STARTS]:
            extra = _place_usual(elements, observed, errors, rho, phi)
            if fit.records is not None:
                _place_known(fit, elements, observed, extra)
            found.append(np.concatenate([psi, extra]))
            if _has_all(fit, elements):
                break
    return found


def _has_all(fit: Fit, elements: Elements) -> bool:
    """Whether an earlier fit has all elements whose usual values differ between starts."""
    known = None if fit.records is None else fit.records.elements
    if known is None:
        known = read_elements(fit.n_states)
    return (
        (known.pattern is not None or elements.pattern is None)
        and (known.frailty or not elements.frailty)
        and (known.improvements is not None or elements.improvements is None)
    )


def _read_coefficients(fit: Fit, observed: HistoryObservations, elements: Elements, transform: Any) -> Array:
    """Coefficients (K-1, p+1) of the scaled covariates that come nearest to an earlier fit's predictors.

    Predictors are compared at the middle and near the ends of each covariate's range; covariates that only the
    earlier fit has are at their medians, those that it lacks have no effect.
    """
    seen = observed.overview
    grid = seen.low + SHARES[:, None] * (seen.high - seen.low)
    x = np.tile(grid[1], (1 + 2 * seen.low.size, 1))
    for column in range(seen.low.size):
        x[1 + 2 * column : 3 + 2 * column, column] = grid[[0, 2], column]
    past = np.empty((len(x), len(fit.covariates)))
    for column, name in enumerate(fit.covariates):
        if name in observed.covariates:
            past[:, column] = x[:, observed.covariates.index(name)]
        elif fit.survey is not None:
            past[:, column] = fit.survey.median[column]
    eta = fit.predictors(past)
    if fit.records is not None and fit.records.trend is not None:
        first, last = seen.dates
        date = last if elements.trend else 0.5 * (first + last)
        eta = eta + fit.records.trend * (date - fit.records.last if np.isfinite(date) else 0.0)
    design = np.column_stack([np.ones(len(x)), transform(x)])
    return np.asarray(np.linalg.lstsq(design, eta, rcond=None)[0].T)


def _place_known(fit: Fit, elements: Elements, observed: HistoryObservations, extra: Array) -> None:
    """Write the elements that an earlier fit has over usual values ``extra`` (Q,)."""
    records, parts, K = fit.records, elements.parts, elements.n_states
    assert records is not None  # asked before
    past = records.elements
    if past.pattern is not None and elements.pattern is not None:
        E = records.errors
        if elements.common_errors:
            better, worse = np.diag(E, -1).mean(), np.diag(E, 1).mean()
            odds = np.array([better, worse]) / (1.0 - better - worse)
        else:
            odds = np.array([E[at] / E[at[0], at[0]] for at in elements.errors_at])
        extra[parts["errors"]] = _as_logits(odds)
    if past.frailty and elements.frailty:
        extra[parts["frailty"]] = max(records.frailty_variance or 0.0, LEAST_VARIANCE)
    if records.improvements is not None and elements.improvements is not None:
        rho = records.improvements[1:]
        rho = rho.mean(keepdims=True) if elements.improvements == COMMON else rho
        extra[parts["improvements"]] = _as_logits(rho / (1.0 - rho))
    if records.trend is not None and elements.trend is not None:
        slope = records.trend * TREND_YEARS
        extra[parts["trend"]] = slope.mean() if elements.trend == COMMON else slope
    if past.free_first and elements.free_first:
        mean, sd = observed.overview.age_units
        p = records.first(np.array([mean if elements.aged else records.age_units[0]]))[0]
        extra[parts["first"]][: K - 1] = _as_logits(p[1:] / p[0])
        if past.aged and elements.aged:
            extra[parts["first"]][-1] = records.extra[past.parts["first"]][-1] * sd / records.age_units[1]


def _as_logits(odds: Array) -> Array:
    """Logits of odds, neither below LEAST_LOGIT nor as far above 0."""
    return np.asarray(np.log(np.clip(odds, np.exp(LEAST_LOGIT), np.exp(-LEAST_LOGIT))))
