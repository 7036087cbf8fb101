"""A fitted model as an engineer reads it: coefficients, ratios per step, years in each state.

    ratio_k = theta_k(x + step e_c) / theta_k(x)         at typical covariates x, for any operator

Typical is the median of the training rows, and here nothing advances with the years: ``expectations`` has that.
Intervals come from the covariance of the coefficients, by the delta method in the log hazard.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rekka.model.fit import Fit
from rekka.model.tables import coefficient_table, hazard_table, ratio_interval
from rekka.report.document import CoefficientPart, Number, RatioPart, YearsPart

Array = NDArray[np.float64]


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
    for place, name in enumerate(fit.covariates):
        more = typical.copy()
        more[place] += steps[name]
        for state, figures in enumerate(zip(*ratio_interval(fit, typical, more, level), strict=True), start=1):
            ratio, low, high = map(_finite, figures)
            found.append(RatioPart(state=state, covariate=name, step=steps[name], ratio=ratio, low=low, high=high))
    return tuple(found)


def list_years(fit: Fit, typical: Array, level: float) -> tuple[YearsPart, ...]:
    """Hazard and mean years in each state at typical covariates."""
    names = tuple(name for name in YearsPart.model_fields if name != "state")
    with np.errstate(all="ignore"):
        rows = hazard_table(fit, typical[None], level).to_dicts()
    return tuple(YearsPart(state=row["state"], **{name: _finite(row[name]) for name in names}) for row in rows)


def _finite(value: float | None) -> Number:
    return None if value is None or not math.isfinite(value) else float(value)
