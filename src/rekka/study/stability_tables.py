"""A frame of refits -> how often fits are certified, how far scores and costs spread, what is chosen how often."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from scipy import special

from rekka.evaluation.scores import CONFIDENCE
from rekka.study.choice import Choice
from rekka.study.trial import Case

STABILITY_TABLES = ("cases", "selection", "methods", "statuses", "refits")  # files of the folder stability, as CSV

LOW, HIGH = 0.05, 0.95  # quantiles: of 200 draws ten lie beyond each
HERE = ("preset", "case", "kind")


def tabulate_methods(refits: pl.DataFrame) -> pl.DataFrame:
    """Certified share, scores and cost of each method in each case."""
    found = refits.group_by(*HERE, "method", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("refits"),
        pl.col("certified").mean(),
        (pl.col("scored") > 0).sum().cast(pl.Int64).alias("scored"),
        *(part for score in ("accuracy", "log_loss") for part in _spread(score)),
        pl.col("evaluations").median().alias("evaluations_median"),
        *_quantiles("evaluations"),
    )
    ends = [find_wilson(share, n) for share, n in found.select("certified", "refits").rows()]
    place = found.columns.index("certified") + 1
    for number, name in enumerate(("certified_low", "certified_high")):
        found.insert_column(place + number, pl.Series(name, [pair[number] for pair in ends]))
    return found


def _spread(score: str) -> list[pl.Expr]:
    column = pl.col(score)
    return [column.mean().alias(f"{score}_mean"), column.std().alias(f"{score}_sd"), *_quantiles(score)]


def _quantiles(name: str) -> list[pl.Expr]:
    column = pl.col(name)
    ends = ((LOW, "low"), (HIGH, "high"))
    return [column.quantile(q, interpolation="linear").alias(f"{name}_{end}") for q, end in ends]


def find_wilson(share: float, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of a share of n draws (Wilson 1927); draws are independent, whatever their rows are.

    scipy.stats has it, but takes half a second to import.
    """
    z = float(special.ndtri(0.5 + confidence / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def tabulate_statuses(refits: pl.DataFrame) -> pl.DataFrame:
    """Refits by what became of them."""
    return refits.group_by(*HERE, "method", "status", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("refits")
    )


def tabulate_selection(refits: pl.DataFrame, choices: Sequence[Choice]) -> pl.DataFrame:
    """Shares of the draws in which each method is chosen and kept; missing where no draw had rows to score."""
    scorable = pl.col("held_out") > 0
    found = refits.group_by(*HERE, "method", maintain_order=True).agg(
        *(pl.col(name).filter(scorable).mean() for name in ("chosen", "kept")),
        pl.col("chosen").filter(scorable).sum().alias("times"),
        scorable.sum().cast(pl.Int64).alias("draws"),
    )
    none = (pl.col("draws") - pl.col("times").sum().over(HERE)) / pl.col("draws")
    chosen = {(choice.preset, choice.case, choice.chosen) for choice in choices}
    in_study = [key in chosen for key in found.select("preset", "case", "method").rows()]
    return found.with_columns(
        pl.when(pl.col("draws") > 0).then(none).alias("none"), pl.Series("in_study", in_study, dtype=pl.Boolean)
    ).select(*HERE, "method", "chosen", "kept", "none", "draws", "in_study")


def tabulate_cases(cases: Sequence[Case]) -> pl.DataFrame:
    """Each case's size; ``exploratory`` says why it is too small to conclude from, where it is."""
    lines = [
        {
            "case": case.name,
            "train": case.train,
            "bridges": case.bridges,
            "events_per_parameter": None if math.isnan(case.events_per_parameter) else case.events_per_parameter,
            "exploratory": case.exploratory,
        }
        for case in cases
    ]
    counts = dict.fromkeys(("train", "bridges"), pl.Int64)
    schema: dict[str, Any] = {
        "case": pl.String,
        **counts,
        "events_per_parameter": pl.Float64,
        "exploratory": pl.String,
    }
    return pl.DataFrame(lines, schema=schema)
