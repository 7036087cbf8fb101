"""Tests between nested models: joint Wald tests of covariates, likelihood ratios, a table of models.

    Wald               b' C^-1 b,   b the coefficients of a covariate in all states, C their covariance
    likelihood ratio   2 (log L of the larger model - log L of the smaller one)

Both are chi-squared, with as many degrees of freedom as parameters are tested, where the smaller model is true.
The Wald test takes the covariance of the fit, clustered by bridge where the fit had groups. The likelihood ratio
takes rows as independent: with several rows a bridge it rejects too often, and the Wald test is the safer one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from rekka.core.errors import BadOption
from rekka.model.fit import Fit
from rekka.model.tables import TitledTable, table

Array = NDArray[np.float64]

ALL = "all covariates"
ROUNDING = 1e-6  # log-likelihood units: both maxima are known far better


class ChiSquaredTest(NamedTuple):
    """A statistic, its degrees of freedom and the p-value; NaN where a fit has no covariance."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def judge_chi_squared(statistic: float, degrees_of_freedom: int) -> ChiSquaredTest:
    """Add the p-value of a statistic."""
    p = float(special.chdtrc(degrees_of_freedom, max(statistic, 0.0))) if statistic == statistic else np.nan
    return ChiSquaredTest(statistic, degrees_of_freedom, p)


def wald_table(fit: Fit) -> TitledTable:
    """Joint Wald test of each covariate, a category with all its levels, and of all of them: no effect at all."""
    _refuse_penalised(fit, "A Wald test")
    groups = [(name, fit.coding.expand([name])) for name in fit.columns]
    groups += [(ALL, fit.covariates)] if len(groups) > 1 else []
    tests = [_test_slopes(fit, names) for _, names in groups]
    return table(
        f"joint Wald tests of no effect on any hazard; standard errors: {fit.inference.kind}",
        {
            "covariate": [name for name, _ in groups],
            "chi_squared": [one.statistic for one in tests],
            "df": [one.degrees_of_freedom for one in tests],
            "p": [one.p_value for one in tests],
        },
    )


def _test_slopes(fit: Fit, names: Sequence[str]) -> ChiSquaredTest:
    terms, parameter = fit.layout.terms, fit.layout.parameter
    slopes = [f for f in np.flatnonzero(parameter >= 0) if terms[f % len(terms)] in names]
    _, first = np.unique(parameter[slopes], return_index=True)  # a coefficient that states share counts once
    free = np.asarray(slopes, dtype=np.intp)[first]
    b, covariance = fit.inference.coefficients[free], fit.inference.covariance[np.ix_(free, free)]
    try:
        statistic = float(b @ linalg.cho_solve(linalg.cho_factor(covariance), b))
    except (linalg.LinAlgError, ValueError):  # no maximum, or fewer clusters than coefficients
        statistic = np.nan
    return judge_chi_squared(statistic, free.size)


def likelihood_ratio(smaller: Fit, larger: Fit) -> ChiSquaredTest:
    """Test a model against one that has it as a special case, both fitted to the same rows."""
    for fit in (smaller, larger):
        _refuse_penalised(fit, "A likelihood ratio test")
        if not fit.certificate.certified:
            raise BadOption(
                f"A likelihood ratio test needs two maxima, and the model with {_name(fit)} is not certified: "
                f"{'; '.join(fit.certificate.reasons)}."
            )
    _refuse_other_rows(smaller, larger)
    _refuse_not_nested(smaller, larger)
    statistic = 2.0 * (larger.inference.log_likelihood - smaller.inference.log_likelihood)
    if statistic < -ROUNDING:
        raise BadOption(
            f"The larger model has the lower log-likelihood, by {-statistic / 2:.3g}: the two were not fitted to "
            "the same rows."
        )
    return judge_chi_squared(max(statistic, 0.0), larger.layout.n_parameters - smaller.layout.n_parameters)


def nested_table(fits: Mapping[str, Fit]) -> TitledTable:
    """One row a model, from the smallest on, each tested against the one before it by its likelihood ratio."""
    if len(fits) < 2:
        raise BadOption("A table of nested models needs at least two models, by name, the smallest first.")
    tests: list[ChiSquaredTest | None] = [None, *(likelihood_ratio(*pair) for pair in pairwise(fits.values()))]

    def column(name: str) -> list[Any]:
        return [None if one is None else getattr(one, name) for one in tests]

    inference = [fit.inference for fit in fits.values()]
    return table(
        f"{next(iter(fits.values())).n_rows} rows; each model against the one above it, by its likelihood ratio",
        {
            "model": list(fits),
            "parameters": [fit.layout.n_parameters for fit in fits.values()],
            "log_likelihood": [one.log_likelihood for one in inference],
            "aic": [one.aic for one in inference],
            "bic": [one.bic for one in inference],
            "chi_squared": column("statistic"),
            "df": column("degrees_of_freedom"),
            "p": column("p_value"),
        },
    )


def _name(fit: Fit) -> str:
    return ", ".join(fit.covariates) or "no covariates"


def _refuse_penalised(fit: Fit, what: str) -> None:
    if fit.inference.degrees_of_freedom != fit.layout.n_parameters:
        raise BadOption(f"{what} needs a fit without a penalty; this one has a ridge or a prior.")


def _refuse_other_rows(smaller: Fit, larger: Fit) -> None:
    """Refuse models of other rows, as far as the fits can tell: by number, states, and ranges of covariates."""
    if (smaller.n_rows, smaller.n_states) != (larger.n_rows, larger.n_states):
        raise BadOption(
            f"The models were fitted to other rows: {smaller.n_rows:,} with {smaller.n_states} states, "
            f"{larger.n_rows:,} with {larger.n_states}. Fit both to the same."
        )
    mine, other = smaller.survey, larger.survey
    if mine is None or other is None:  # files of earlier versions
        return
    for name in (name for name in mine.names if name in other.names):
        here, there = (survey.quantiles[survey.names.index(name)] for survey in (mine, other))
        if not np.array_equal(here, there):
            raise BadOption(
                f"The models were fitted to other rows, or with another clock: the values of {name} differ."
            )


def _refuse_not_nested(smaller: Fit, larger: Fit) -> None:
    """Refuse two models of which neither is a special case of the other."""
    missing = [name for name in smaller.covariates if name not in larger.covariates]
    if missing:
        raise BadOption(f"The smaller model has {', '.join(missing)}, and the larger one does not.")
    if smaller.layout.n_parameters >= larger.layout.n_parameters:
        raise BadOption(
            f"The first model has {smaller.layout.n_parameters} parameters, the second "
            f"{larger.layout.n_parameters}; give the smaller one first."
        )
    if smaller.covariates and not (smaller.native and larger.native):
        raise BadOption(
            "Models with a scaling that is not affine, such as Box-Cox, are not nested: the operator is part of "
            "the model. Fit both with an affine one, such as zscore."
        )
    wide, narrow = _place_parameters(larger), _place_parameters(smaller)
    held: dict[int, set[int | None]] = {}
    for place, parameter in wide.items():
        held.setdefault(parameter, set()).add(narrow.get(place))
    if any(len(parameters) > 1 for parameters in held.values()):
        raise BadOption("The larger model shares coefficients that the smaller one does not share.")
    beyond = sorted(set(narrow) - set(wide))
    if beyond:
        state, name = beyond[0]
        raise BadOption(f"In the smaller model {name} acts on state {state}, and in the larger one it does not.")


def _place_parameters(fit: Fit) -> dict[tuple[int, str], int]:
    """Parameter of each coefficient, by state, 1-based, and term."""
    terms = fit.layout.terms
    return {
        (place // len(terms) + 1, terms[place % len(terms)]): int(parameter)
        for place, parameter in enumerate(fit.layout.parameter)
        if parameter >= 0
    }
