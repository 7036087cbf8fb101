"""Shared errors of a forecast, estimated from what earlier forecasts missed by, for a second, wider band of totals.

Members are independent given the parameters, and real networks are struck together: a hard winter, a new manual, a
budget cut. The hazards of all members and years of a forecast are taken for exp(u) times those of the model, with u
normal about 0. Its standard deviation sigma comes from forecasts made inside the records, at earlier days (origins).
Row i is what such a forecast missed by in a calendar year, r_i the observed sum of ratings less the expected one,
V_i the variance of it that chance and the uncertainty of the parameters explain, G_i the change of the expected one
when all hazards rise by the factor e:

    E r_i^2 = V_i + sigma^2 G_i^2,   sigma^2 = sum_i (r_i^2 / V_i - 1) / sum_i (G_i^2 / V_i),   at least 0

Each row counts by its information, G^2 / V. docs/intervals.md says what else was tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import polars as pl

from rekka.core.errors import BadOption, count_of, missing_columns

RESIDUALS_SCHEMA: dict[str, Any] = {
    "origin": pl.Int64, "year": pl.Int64, "horizon": pl.Float64, "visits": pl.Int64,
    "observed": pl.Float64, "expected": pl.Float64, "variance": pl.Float64, "slope": pl.Float64,
}  # fmt: skip
FEWEST = 3  # origin-years; fewer say nothing of a variance
STEP = 0.1  # of the log hazards, to both sides: slopes of expected numbers


@dataclass(frozen=True)
class Shocks:
    """Standard deviation of the error of the log hazards that all members share, and what it rests on.

    ``origins`` are the years up to which the models were fitted, ``years`` those that were forecast, ``rows`` counts
    the pairs of both. Without an estimate ``sigma`` is None, and ``why`` says why. A value of your own: Shocks(0.3).

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
                f"The shared error of the log hazards is {self.sigma!r}; a number of at least 0 is needed, such as "
                "0.3: hazards a factor of 1.35 higher or lower.",
                option="shocks",
                value=self.sigma,
            )

    @property
    def tempos(self) -> tuple[float, float]:
        """Factors of the hazards one standard deviation below and above those of the model."""
        sigma = STEP if self.sigma is None else self.sigma
        return math.exp(-sigma), math.exp(sigma)

    @property
    def source(self) -> str:
        """What the estimate rests on, in words, or why there is none."""
        if self.why is not None:
            return self.why
        if not self.origins:
            return "as given"
        ends = sorted({min(self.origins), max(self.origins)})
        span = f"from {' to '.join(map(str, ends))}" if len(ends) > 1 else f"of {ends[0]}"
        forecasts = count_of(len(self.origins), "earlier forecast")
        return f"{forecasts} {span} ({self.rows} pairs of a forecast and a later year)"

    def describe(self, case: str) -> str:
        """Sentence on the wider band: where it comes from, or why there is none."""
        if self.sigma is None:
            return f"{case}: no wider band: {self.why}."
        if not self.origins:
            source = "as large as given"
        else:
            source = f"as large as {self.source} missed by, beyond chance and parameters"
        factor = math.exp(self.sigma)
        size = "none was found" if self.sigma == 0.0 else f"hazards a factor of {factor:.2g} higher or lower or more"
        often = "" if self.sigma == 0.0 else " in one forecast of three"
        return f"{case}: the wider band adds errors that all members share, {source}: {size}{often}."


def estimate_shocks(residuals: pl.DataFrame) -> dict[str, Shocks]:
    """Estimate the shared errors of each case from a table of what forecasts of rolling origins missed by.

    Parameters
    ----------
    residuals
        A row for each case, origin (the year up to which the model was fitted) and later year: case, origin, year,
        observed and expected (a count, or a sum of ratings), variance (of the difference, by chance and parameters)
        and slope (change of expected when all hazards rise by the factor e).

    Returns
    -------
    dict
        ``Shocks`` by case; without an estimate its ``sigma`` is None, and ``why`` says why.

    Examples
    --------
    >>> import polars as pl
    >>> import rekka
    >>> missed = pl.DataFrame({"origin": [2004, 2004, 2005], "year": [2005, 2006, 2006], "observed": [140, 70, 80]})
    >>> missed = missed.with_columns(case=pl.lit("Pier"), expected=100.0, variance=90.0, slope=95.0)
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
    if len(rows) < FEWEST:
        return explain_few(len(rows))
    missed, variance = (pl.col("observed") - pl.col("expected")), pl.col("variance")
    excess = (missed**2 / variance - 1.0).sum() / (pl.col("slope") ** 2 / variance).sum()
    squared = float(rows.select(excess).item())
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
        why=f"{found} of an earlier forecast and a later year, and {FEWEST} are needed{more}; records of more years "
        "allow it",
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
