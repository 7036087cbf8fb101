"""A fitted model as an engineer reads it: coefficients, ratios per step, years in each state, the curve.

    ratio_k = theta_k(x + step e_c) / theta_k(x)         at typical covariates x, for any operator
    curve   = row 1 of expm(Q t),  mean state = sum_k k pi_1k(t)

Typical is the median of the training rows. Covariates are held as they are: the model has them fixed over an
interval. Intervals come from the covariance of the coefficients: ratios and years by the delta method in the log
hazard, the curve by simulation from the coefficients' normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rekka.model.fit import Fit
from rekka.model.inference import normal_quantile
from rekka.model.probabilities import transition_probabilities
from rekka.model.tables import coefficient_table, hazard_table
from rekka.report.document import CoefficientPart, CurvePart, Number, RatioPart, YearsPart

Array = NDArray[np.float64]

DRAWS = 500  # of the coefficients, for the band of a curve
SHORTEST, LONGEST, STEP_YEARS = 20, 100, 10  # of a curve, in years
SETTLED = 0.95  # probability of the worst state at which a curve ends
POINTS = 51  # of a curve
LARGEST = 700.0  # beyond it the exponential of a log hazard overflows


def list_coefficients(fit: Fit, level: float) -> tuple[CoefficientPart, ...]:
    """Every coefficient with its interval."""
    rows = coefficient_table(fit, None, level).iter_rows(named=True)
    return tuple(
        CoefficientPart(
            state=row["state"],
            term=row["term"],
            estimate=_finite(row["estimate"]),
            se=_finite(row["se"]),
            low=_finite(row["ci_low"]),
            high=_finite(row["ci_high"]),
            p=_finite(row["p"]),
        )
        for row in rows
    )


def list_ratios(fit: Fit, typical: Array, steps: Mapping[str, float], level: float) -> tuple[RatioPart, ...]:
    """The hazard with one step more of each covariate, relative to that at typical values."""
    found = []
    blocks = _covariance(fit)
    beta = _coefficients(fit)
    for place, name in enumerate(fit.covariates):
        more = typical.copy()
        more[place] += steps[name]
        change = _design(fit, more[None])[0] - _design(fit, typical[None])[0]
        for state in range(fit.n_states - 1):
            middle = float(change @ beta[state])
            width = normal_quantile(level) * _root(change @ blocks[state, :, state, :] @ change)
            ratio, low, high = (_exponential(value) for value in (middle, middle - width, middle + width))
            found.append(
                RatioPart(state=state + 1, covariate=name, step=steps[name], ratio=ratio, low=low, high=high)
            )
    return tuple(found)


def list_years(fit: Fit, typical: Array, level: float) -> tuple[YearsPart, ...]:
    """Hazard and mean years in each state at typical covariates."""
    names = tuple(name for name in YearsPart.model_fields if name != "state")
    with np.errstate(all="ignore"):
        rows = hazard_table(fit, typical[None], level).to_dicts()
    return tuple(YearsPart(state=row["state"], **{name: _finite(row[name]) for name in names}) for row in rows)


def draw_curve(fit: Fit, typical: Array, level: float, seed: int) -> CurvePart | None:
    """States over the years from state 1, until nearly all are in the worst; None where a hazard is no number."""
    eta = fit.log_hazards(typical[None])[0]
    if not np.isfinite(eta).all() or (np.abs(eta) > LARGEST).any():
        return None
    hazards = np.exp(eta)
    years = np.linspace(0.0, _find_horizon(hazards), POINTS)
    probability = transition_probabilities(hazards[None], years)[:, 0, :]
    low, high = _draw_band(fit, typical, years, level, seed)
    state = np.arange(1, fit.n_states + 1)
    return CurvePart(
        years=tuple(years.tolist()),
        probability=tuple(tuple(row) for row in probability.tolist()),
        expected=tuple((probability @ state).tolist()),
        low=low,
        high=high,
    )


def _find_horizon(hazards: Array) -> float:
    """The first ten years at whose end nearly all are in the worst state."""
    ends = np.arange(SHORTEST, LONGEST + STEP_YEARS, STEP_YEARS, dtype=float)
    worst = transition_probabilities(hazards[None], ends)[:, 0, -1]
    settled = np.flatnonzero(worst >= SETTLED)
    return float(ends[settled[0]] if settled.size else ends[-1])


def _draw_band(
    fit: Fit, typical: Array, years: Array, level: float, seed: int
) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    """Pointwise quantiles of the mean state over coefficients drawn from their normal distribution."""
    nothing: tuple[Number, ...] = (None,) * len(years)
    covariance = fit.inference.covariance
    if not np.isfinite(covariance).all():
        return nothing, nothing
    design = _design(fit, typical[None])[0]
    blocks = _covariance(fit)
    # the log hazards alone are drawn: K-1 numbers, whose covariance is that of the coefficients seen from x
    spread = np.einsum("u,kulv,v->kl", design, blocks, design)
    middle = _coefficients(fit) @ design
    drawn = np.random.default_rng(seed).multivariate_normal(middle, spread, size=DRAWS, method="eigh")
    hazards = np.exp(np.clip(drawn, -LARGEST, math.log(1e6)))
    state = np.arange(1, fit.n_states + 1)
    mean = transition_probabilities(hazards[:, None, :], years[None, :])[:, :, 0, :] @ state
    tail = (1.0 - level) / 2
    low, high = np.quantile(mean, [tail, 1.0 - tail], axis=0)
    return tuple(low.tolist()), tuple(high.tolist())


def _design(fit: Fit, x: Array) -> Array:
    """Rows with intercept in the units of ``inference``."""
    return np.column_stack([np.ones(len(x)), x if fit.native else fit.scaling.transform(x)])


def _coefficients(fit: Fit) -> Array:
    return fit.inference.coefficients.reshape(fit.n_states - 1, len(fit.covariates) + 1)


def _covariance(fit: Fit) -> Array:
    states, terms = fit.n_states - 1, len(fit.covariates) + 1
    return fit.inference.covariance.reshape(states, terms, states, terms)


def _root(variance: float) -> float:
    return math.sqrt(variance) if variance >= 0 else math.nan


def _exponential(value: float) -> Number:
    return math.exp(value) if math.isfinite(value) and value < LARGEST else None


def _finite(value: float | None) -> Number:
    return None if value is None or not math.isfinite(value) else float(value)
