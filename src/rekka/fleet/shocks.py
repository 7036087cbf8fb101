"""Errors that all members share, from what earlier forecasts missed by, for a second, wider band of totals.

Members are independent given the parameters, and real networks are struck together: a hard winter, a new manual,
a budget cut. The hazards of all members and years of a forecast are taken for exp(u) times those of the model,
with u normal about 0. Its standard deviation sigma comes from forecasts made inside the records, at earlier days
(origins). Row i is what such a forecast missed by in a calendar year: r_i the observed sum of ratings less the
expected one, V_i the variance of it that chance and the uncertainty of the parameters explain, G_i the slope of
the expected one in the log hazards:

    E r_i^2 = V_i + sigma^2 G_i^2,   sigma^2 = sum_i w_i (r_i^2 - V_i) / G_i^2 / sum_i w_i,   at least 0

with w_i = (G_i^2 / V_i)^2, the inverse variance of what is averaged where there is no such error. Rows of one
calendar year share what happened in it, so that sigma has about as many degrees of freedom as there are years, and
the interval is as much wider as Student's t is than the normal distribution. docs/intervals.md says what else was
tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from rekka.core.errors import BadOption, count_of, missing_columns

RESIDUALS_SCHEMA: dict[str, Any] = {
    "origin": pl.Int64, "year": pl.Int64, "horizon": pl.Float64, "visits": pl.Int64,
    "observed": pl.Float64, "expected": pl.Float64, "variance": pl.Float64, "slope": pl.Float64,
}  # fmt: skip
MISSED = "observed less expected"
FEWEST = 3  # origin-years; fewer say nothing of a variance
STEP = 0.1  # of the log hazards, to both sides: slopes of expected numbers


@dataclass(frozen=True)
class Shocks:
    """Standard deviation of the error of the log hazards that all members share, and what it rests on.

    ``origins`` are the years up to which the models were fitted, ``years`` those that were forecast, ``rows``
    counts the pairs of both. Without an estimate ``sigma`` is None, and ``why`` says why.

    Examples
    --------
    >>> import rekka
    >>> shocks = rekka.Shocks(0.25)
    >>> shocks.tempos
    (0.7788007830714049, 1.2840254166877414)

    """

    sigma: float | None
    origins: tuple[int, ...] = ()
    years: tuple[int, ...] = ()
    rows: int = 0
    why: str | None = None

    def __post_init__(self) -> None:
        if self.sigma is not None and not 0.0 <= self.sigma < math.inf:
            raise BadOption(
                f"The shared error of the log hazards is {self.sigma!r}; a number of at least 0 is needed, such "
                "as 0.3: hazards a factor of 1.35 higher or lower.",
                option="shocks",
                value=self.sigma,
            )

    @property
    def tempos(self) -> tuple[float, float]:
        """Factors of the hazards one standard deviation below and above those of the model."""
        sigma = STEP if self.sigma is None else self.sigma
        return math.exp(-sigma), math.exp(sigma)

    def stretch(self, level: float) -> float:
        """Factor of an interval's width because sigma is estimated: Student's t, a degree of freedom a year."""
        quantile = 0.5 + 0.5 * level
        return float(special.stdtrit(len(self.years), quantile) / special.ndtri(quantile)) if self.years else 1.0

    @property
    def source(self) -> str:
        """Forecasts that the estimate rests on, in words, or why there is none."""
        if self.why is not None:
            return self.why
        if not self.origins:
            return "given"
        ends = sorted({min(self.origins), max(self.origins)})
        years = f"{' to '.join(map(str, ends))}; {count_of(self.rows, 'year')} forecast in all"
        return f"{count_of(len(self.origins), 'earlier forecast')} ({years})"


def describe_shocks(shocks: Mapping[str, Shocks]) -> list[str]:
    """Sentences on the wider bands of cases: how large the shared errors are, and where that comes from."""
    known = {case: one for case, one in shocks.items() if one.sigma}
    told = []
    for source in dict.fromkeys(one.source for one in known.values()):
        factors = {case: one.tempos[1] for case, one in known.items() if one.source == source}
        sizes = [
            f"{factor:.2g} ({case})" if len(shocks) > 1 else f"{factor:.2g}" for case, factor in factors.items()
        ]
        size = "as large as given" if source == "given" else f"as large as {source} missed by"
        told.append(
            f"The wider band adds errors that all members share, {size}: in one forecast of three hazards are too "
            f"high or too low by a factor of {', '.join(sizes)} or more."
        )
    for case, one in shocks.items():
        if one.sigma is None:
            told.append(f"{case}: no wider band: {one.why}.")
        elif not one.sigma:
            told.append(
                f"{case}: the wider band is no wider: {one.source} missed by no more than chance explains."
            )
    return told


def estimate_shocks(residuals: pl.DataFrame) -> dict[str, Shocks]:
    """Estimate the shared errors of each case from a table of what forecasts of rolling origins missed by.

    Parameters
    ----------
    residuals
        A row for each case, origin (the year up to which the model was fitted) and later year: case, origin, year,
        observed and expected (a count, or a sum of ratings), variance (of the difference, by chance and
        parameters) and slope (of expected in the log hazards).

    Returns
    -------
    dict
        ``Shocks`` by case; without an estimate its ``sigma`` is None, and ``why`` says why.

    Examples
    --------
    >>> import polars as pl
    >>> import rekka
    >>> missed = pl.DataFrame({"origin": [2004, 2004, 2005], "year": [2005, 2006, 2006]})
    >>> missed = missed.with_columns(case=pl.lit("Pier"), observed=pl.Series([140, 70, 80]))
    >>> missed = missed.with_columns(expected=100.0, variance=90.0, slope=95.0)
    >>> round(rekka.estimate_shocks(missed)["Pier"].sigma, 2)
    0.31

    """
    needed = ("case", "origin", "year", "observed", "expected", "variance", "slope")
    missing = [name for name in needed if name not in residuals.columns]
    if missing:
        raise missing_columns(missing, residuals.columns, "the table of residuals")
    return {str(name): _estimate(rows) for (name,), rows in residuals.group_by("case", maintain_order=True)}


def _estimate(residuals: pl.DataFrame) -> Shocks:
    rows = residuals.filter(pl.col("variance") > 0.0, pl.col("slope") != 0.0)
    rows = rows.with_columns((pl.col("observed") - pl.col("expected")).alias(MISSED))
    if len(rows) < FEWEST:
        return explain_few(len(rows))
    missed, variance, slope = (rows[name].to_numpy() for name in (MISSED, "variance", "slope"))
    weight = (slope**2 / variance) ** 2
    squared = float(np.average((missed**2 - variance) / slope**2, weights=weight))
    return Shocks(
        sigma=math.sqrt(max(squared, 0.0)),
        origins=tuple(rows["origin"].unique().sort().to_list()),
        years=tuple(rows["year"].unique().sort().to_list()),
        rows=len(rows),
    )


def explain_few(rows: int, more: str = "") -> Shocks:
    """No estimate, because too few forecasts could be made inside the records."""
    found = "no pair" if not rows else count_of(rows, "pair")
    return Shocks(
        None,
        rows=rows,
        why=f"{found} of an earlier forecast and a later year, and {FEWEST} are needed{more}; records of more "
        "years allow it",
    )


def read_shocks(asked: Any) -> Shocks | bool:
    """Read what was asked for: True or False, a standard deviation, or Shocks."""
    if isinstance(asked, bool | Shocks):
        return asked
    if isinstance(asked, int | float):
        return Shocks(float(asked))
    raise BadOption(
        f"shocks is {asked!r}; True (estimated from earlier forecasts), False, a standard deviation of the log "
        "hazards such as 0.3, or Shocks is needed.",
        option="shocks",
        value=asked,
    )
