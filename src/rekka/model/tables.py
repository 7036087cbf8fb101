"""A fit as tables: coefficients with intervals, hazards and their ratios, mean years in each state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, did_you_mean
from rekka.model.fit import Fit
from rekka.model.inference import normal_quantile, two_sided_p
from rekka.model.records import Records

Array = NDArray[np.float64]

LARGEST = 700.0  # beyond it the exponential of a log hazard overflows


class TitledTable(pl.DataFrame):
    """A polars frame that prints under a title, all rows, four significant digits, without ``hidden`` columns."""

    title: str = ""
    hidden: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = [name for name in self.columns if name not in self.hidden]
        columns = [[name, *map(_show, self[name].to_list())] for name in names]
        widths = [max(map(len, column)) for column in columns]
        left = [self[name].dtype == pl.String for name in names]
        lines = [self.title] if self.title else []
        for cells in zip(*columns, strict=True):
            parts = [c.ljust(w) if t else c.rjust(w) for c, w, t in zip(cells, widths, left, strict=True)]
            lines.append("  ".join(parts).rstrip())
        return "\n".join(lines)

    __repr__ = __str__


def _show(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(title: str, columns: Mapping[str, Any], hidden: tuple[str, ...] = ()) -> TitledTable:
    """A titled table; ``hidden`` columns are there but not printed."""
    made = TitledTable(columns)
    made.title, made.hidden = title, hidden
    return made


def check_units(units: Mapping[str, float] | None, covariates: Sequence[str]) -> dict[str, float]:
    """The unit of each covariate's hazard ratio; 1 where none is given."""
    if not isinstance(units, Mapping | None):
        raise BadOption(f"units is {units!r}; a dict by covariate name is needed, e.g. {{'age': 10}}.")
    for name, unit in (units or {}).items():
        if name not in covariates:
            raise BadOption(
                f"units names {name}, which is not a covariate of this model; {', '.join(covariates) or 'none'} "
                f"are.{did_you_mean(name, covariates)}",
                option="units",
                value=name,
            )
        if not (isinstance(unit, int | float) and 0 < unit < np.inf):
            raise BadOption(f"units gives {unit!r} for {name}; a number above 0 is needed.")
    return {name: float((units or {}).get(name, 1.0)) for name in covariates}


def check_level(level: float) -> float:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise BadOption(f"level is {level!r}; a number between 0 and 1 is needed, e.g. 0.95.")
    return level


def coefficient_table(fit: Fit, units: Mapping[str, float] | None, level: float) -> TitledTable:
    """One row a state and term: estimate, standard error, Wald test and interval, hazard ratio per unit."""
    per = check_units(units, fit.covariates)
    width = normal_quantile(check_level(level))
    present = np.flatnonzero(fit.layout.parameter >= 0)
    terms = [fit.layout.terms[f % len(fit.layout.terms)] for f in present]
    estimate = fit.inference.coefficients[present]
    with np.errstate(invalid="ignore", divide="ignore"):  # a point that is no maximum may have no variance: nan
        se = _known(np.sqrt(np.diag(fit.inference.covariance))[present])
        z = estimate / se
    slope = np.array([term in per for term in terms], dtype=bool)
    given = slope & fit.family.proportional  # else a ratio depends on where the covariates are
    unit = np.array([per.get(term, np.nan) for term in terms])

    def ratio(log_ratio: Array) -> list[float | None]:
        with np.errstate(over="ignore"):
            return [float(r) if s else None for r, s in zip(np.exp(log_ratio * unit), given, strict=True)]

    scale = "native" if fit.native else fit.scaling.method
    more = [] if fit.records is None else fit.records.estimates(level)
    empty = [None] * len(more)
    title = (
        f"{fit.n_rows} rows, K = {fit.n_states}, log-likelihood {fit.inference.log_likelihood:.6f}"
        + ("" if np.isnan(fit.inference.aic) else f", AIC {fit.inference.aic:.2f}, BIC {fit.inference.bic:.2f}")
        + f"\n{level:.0%} intervals; standard errors: {fit.inference.kind}; units: "
        + ("native" if fit.native else f"covariates as transformed by {scale}")
        + "".join(f"\n{one.name}: relative to {one.reference}" for one in fit.coding.categories if one.kept)
        + "".join(f"\n{note}" for note in fit.coding.notes)
    )
    return table(
        title,
        {
            "state": [int(f) // len(fit.layout.terms) + 1 for f in present] + empty,
            "term": [*terms, *(one.name for one in more)],
            "estimate": [*estimate, *(one.value for one in more)],
            "se": [*se, *(one.error for one in more)],
            "z": [*z, *empty],
            "p": [*two_sided_p(z), *empty],
            "ci_low": [*(estimate - width * se), *(one.low for one in more)],
            "ci_high": [*(estimate + width * se), *(one.high for one in more)],
            "unit": [float(u) if s else None for u, s in zip(unit, slope, strict=True)] + empty,
            "hazard_ratio": ratio(estimate) + empty,
            "hr_low": ratio(estimate - width * se) + empty,
            "hr_high": ratio(estimate + width * se) + empty,
            "scale": [scale] * present.size + empty,
        },
        hidden=("z", "scale"),  # the title says the scale, the other two columns say z
    )


def frailty_table(records: Records) -> TitledTable | None:
    """One row a group, the fastest first: its frailty given its visits, with a 95 % interval; None without."""
    known = records.frailties
    if known is None:
        return None
    order = np.argsort(-known.mean, kind="stable")
    return table(
        "frailty of each group given its visits, 1 is the mean; 95 % intervals",
        {
            "group": [known.groups[g] for g in order],
            "frailty": known.mean[order],
            "low": known.low[order],
            "high": known.high[order],
        },
    )


def hazard_table(fit: Fit, x: Array, level: float) -> TitledTable:
    """Hazard per year and mean years in each state for each row of x, with delta-method intervals.

    Intervals are symmetric in the log hazard, so years and hazards cannot turn negative; a standard error is
    that of the quantity itself, se(1/theta) = se(log theta) / theta.
    """
    width = normal_quantile(check_level(level))
    eta, states, family = fit.predictors(x), fit.n_states - 1, fit.family
    log_hazard, (bend, _) = family.log_hazards(eta), family.bend(eta)
    error = _known(bend * np.sqrt(_variances(fit, fit.design(x)))).ravel()
    hazard, low, high = (
        np.exp(log_hazard).ravel(),
        np.exp(log_hazard.ravel() - width * error),
        np.exp(log_hazard.ravel() + width * error),
    )
    years = family.mean_years(hazard)
    return table(
        f"hazard per year and mean years in each state, {level:.0%} delta-method intervals",
        {
            "row": np.repeat(np.arange(len(x)), states),
            "state": np.tile(np.arange(1, states + 1), len(x)),
            "hazard": hazard,
            "hazard_se": hazard * error,
            "hazard_low": low,
            "hazard_high": high,
            "years": years,
            "years_se": error * years,
            "years_low": family.mean_years(high),
            "years_high": family.mean_years(low),
        },
    )


def hazard_interval(fit: Fit, design: Array, level: float) -> tuple[Array, Array, Array]:
    """Hazards (n, K-1) at design rows (n, p+1) and the ends of their delta-method intervals, all finite."""
    eta = design @ fit.coefficients.T
    bend, _ = fit.family.bend(eta)
    middle = fit.family.log_hazards(eta)
    width = normal_quantile(level) * (bend * np.sqrt(np.maximum(_variances(fit, design), 0.0)))
    ends = (np.exp(np.clip(one, -LARGEST, LARGEST)) for one in (middle, middle - width, middle + width))
    hazard, low, high = ends
    return hazard, low, high


def ratio_interval(fit: Fit, before: Array, after: Array, level: float) -> tuple[Array, Array, Array]:
    """Hazards (K-1,) at raw covariates ``after`` (p,) relative to ``before`` (p,), with delta-method intervals.

    NaN is what has no finite value.
    """
    first, second = fit.design(before[None])[0], fit.design(after[None])[0]
    family, beta = fit.family, fit.coefficients
    slopes = [family.bend(beta @ row)[0][:, None] * row for row in (second, first)]
    change = slopes[0] - slopes[1]  # of the log ratio in the coefficients of each state, (K-1, p+1)
    middle = family.log_ratios(first, second, beta)
    with np.errstate(invalid="ignore"):  # a point that is no maximum may have no variance: nan
        width = normal_quantile(level) * np.sqrt(
            [row @ fit.covariance_blocks[k, :, k, :] @ row for k, row in enumerate(change)]
        )
    ratio, low, high = (_exponentials(one) for one in (middle, middle - width, middle + width))
    return ratio, low, high


def relate_hazards(fit: Fit, x: Array, other: Array) -> Array:
    """Hazards (n, K-1) at raw covariates x (n, p) relative to those at other ones; NaN without a finite value."""
    with np.errstate(invalid="ignore"):
        return _exponentials(fit.log_hazards(x) - fit.log_hazards(other))


def _known(errors: Array) -> Array:
    """Standard errors; NaN where they are 0: what is set and not estimated, such as a bound, has none."""
    return np.where(errors == 0, np.nan, errors)


def _exponentials(values: Array) -> Array:
    """Exponentials; NaN where they are not finite."""
    known = np.isfinite(values) & (values < LARGEST)
    return np.where(known, np.exp(np.where(known, values, 0.0)), np.nan)


def _variances(fit: Fit, design: Array) -> Array:
    """The variance (n, K-1) of the predictors at design rows (n, p+1)."""
    blocks = fit.covariance_blocks
    return np.stack(
        [np.einsum("nu,uv,nv->n", design, blocks[k, :, k, :], design) for k in range(fit.n_states - 1)], axis=1
    )
