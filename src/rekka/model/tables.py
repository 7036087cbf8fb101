"""A fit as tables: coefficients with intervals, hazards with mean years in each state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, did_you_mean
from rekka.model.fit import Fit
from rekka.model.inference import normal_quantile, two_sided_p

Array = NDArray[np.float64]


class Table(pl.DataFrame):
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


def table(title: str, columns: Mapping[str, Any], hidden: tuple[str, ...] = ()) -> Table:
    """A titled table; ``hidden`` columns are there but not printed."""
    made = Table(columns)
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


def coefficient_table(fit: Fit, units: Mapping[str, float] | None, level: float) -> Table:
    """One row a state and term: estimate, standard error, Wald test and interval, hazard ratio per unit."""
    per = check_units(units, fit.covariates)
    width = normal_quantile(check_level(level))
    present = np.flatnonzero(fit.layout.parameter >= 0)
    terms = [fit.layout.terms[f % len(fit.layout.terms)] for f in present]
    estimate = fit.inference.coefficients[present]
    with np.errstate(invalid="ignore", divide="ignore"):  # a point that is no maximum may have no variance: nan
        se = np.sqrt(np.diag(fit.inference.covariance))[present]
        z = estimate / se
    slope = np.array([term in per for term in terms], dtype=bool)
    unit = np.array([per.get(term, np.nan) for term in terms])

    def ratio(log_ratio: Array) -> list[float | None]:
        with np.errstate(over="ignore"):
            return [float(r) if s else None for r, s in zip(np.exp(log_ratio * unit), slope, strict=True)]

    scale = "native" if fit.native else fit.scaling.method
    title = (
        f"{fit.n_rows} rows, K = {fit.n_states}, log-likelihood {fit.inference.log_likelihood:.6f}, "
        f"AIC {fit.inference.aic:.2f}, BIC {fit.inference.bic:.2f}\n"
        f"{level:.0%} intervals; standard errors: {fit.inference.kind}; units: "
        + ("native" if fit.native else f"covariates as transformed by {scale}")
    )
    return table(
        title,
        {
            "state": [int(f) // len(fit.layout.terms) + 1 for f in present],
            "term": terms,
            "estimate": estimate,
            "se": se,
            "z": z,
            "p": two_sided_p(z),
            "ci_low": estimate - width * se,
            "ci_high": estimate + width * se,
            "unit": [float(u) if s else None for u, s in zip(unit, slope, strict=True)],
            "hazard_ratio": ratio(estimate),
            "hr_low": ratio(estimate - width * se),
            "hr_high": ratio(estimate + width * se),
            "scale": [scale] * present.size,
        },
        hidden=("z", "scale"),  # the title says the scale, the other two columns say z
    )


def hazard_table(fit: Fit, x: Array, level: float) -> Table:
    """Hazard per year and mean years in each state for each row of x, with delta-method intervals.

    Intervals are symmetric in the log hazard, so years and hazards cannot turn negative; a standard error is
    that of the quantity itself, se(1/theta) = se(log theta) / theta.
    """
    width = normal_quantile(check_level(level))
    eta = fit.log_hazards(x)
    states, design, blocks = fit.n_states - 1, fit.design(x), fit.covariance_blocks
    se = np.stack(
        [np.sqrt(np.einsum("nu,uv,nv->n", design, blocks[k, :, k, :], design)) for k in range(states)], axis=1
    )
    hazard, low, high, error = (
        np.exp(eta).ravel(),
        np.exp(eta - width * se).ravel(),
        np.exp(eta + width * se).ravel(),
        se.ravel(),
    )
    return table(
        f"hazard per year and mean years in each state, {level:.0%} delta-method intervals",
        {
            "row": np.repeat(np.arange(len(x)), states),
            "state": np.tile(np.arange(1, states + 1), len(x)),
            "hazard": hazard,
            "hazard_se": hazard * error,
            "hazard_low": low,
            "hazard_high": high,
            "years": 1.0 / hazard,
            "years_se": error / hazard,
            "years_low": 1.0 / high,
            "years_high": 1.0 / low,
        },
    )
