"""The paper's tables from a frame of trials: selection, methods, agreement of equals, presets, the floor.

A frame of trials has one row for each preset, case and method. Each function says which columns it needs; those
it can do without are null in its table where they are absent. Cases, methods and presets keep the order in which
they first appear. A figure that is infinite or no number counts as absent.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import polars as pl

from rekka.core.columns import (
    Accuracy,
    FineShare,
    LogLikelihood,
    LogLoss,
    Method,
    Part,
    Preset,
    Seconds,
    Sentence,
    Shown,
    State,
    Tiny,
    schema_of,
)
from rekka.core.errors import BadValues, bad_option, missing_columns
from rekka.evaluation.selection import pareto_set
from rekka.model.certificate import affine_agreement
from rekka.study.choice import COSTS
from rekka.study.explanations import Row, comparable, explain_selection, in_english
from rekka.study.plan import model_of
from rekka.study.trial import AT_MAXIMUM, Status, Value

Types = dict[str, pl.DataType | type[pl.DataType]]

KEY = ("preset", "case", "method")
PAPER, EXACT = "paper", "exact"  # the presets that are set side by side
# Times the log loss of the best alternative. At 1.5 what happened has, in the geometric mean, the probability
# p^1.5 instead of p. In the paper's tables affine fits to the same rows differ by 1.16 times at most, and Box-Cox
# is 4.8 times worse at least.
MATERIALLY_WORSE = 1.5


class TrialRow(Value):
    """A trial: what became of it, costs, certificate, scores on the judged rows. A column for each field.

    ``pareto`` is what the paper's rule selects by ``cost``, ``selected`` what the study's own keeps.
    """

    case: str
    preset: Preset
    method: Method
    status: State
    reason: Sentence
    converged: bool
    certified: bool
    eligible: bool
    success: bool | None
    message: str | None
    iterations: int | None
    evaluations: int | None
    seconds: Seconds
    seconds_low: Seconds
    seconds_high: Seconds
    timings: int | None
    log_likelihood: LogLikelihood
    verdict: Annotated[str | None, Shown(terms="certificate")]
    maximum_exists: bool | None
    decrement: Tiny
    shortfall: Tiny
    starts: int | None
    positive_definite: bool | None
    condition_number: float | None
    weakest_direction: Sentence
    plateau_train: FineShare
    plateau_golden: FineShare
    accuracy: Accuracy
    log_loss: LogLoss
    log_loss_exact: LogLoss
    macro_recall: Accuracy
    brier: Accuracy
    rps: Accuracy
    at_floor: int | None
    persistence_accuracy: Accuracy
    no_covariates_accuracy: Accuracy
    no_covariates_log_loss: LogLoss
    judged_on: Part
    n_states: int
    train: int
    golden: int
    scored: int | None
    unsupported: int | None
    pareto: bool
    cost: str
    selected: bool


SCHEMA = schema_of(TrialRow)
MARKS = ("pareto", "cost", "selected")  # columns that follow from all trials of a case


class Cause(enum.StrEnum):
    """Cause of the result under the paper's conditions. The value is what a person reads."""

    NONE = "none: both within 0.01 of the maximum"
    NO_MAXIMUM = "data: no finite maximum"
    TRANSFORM = "data: the transform fails"
    NOT_FITTED = "data: cannot be fitted"
    NOT_DETERMINED = "data: the rows do not determine all coefficients"
    SHORT = "optimizer: reported success short of the maximum"
    FLOOR = "optimizer: reported success on the probability floor"
    FAILURE = "optimizer: did not converge"
    UNKNOWN = "not known: the exact fit is not a certified maximum"


def read_columns(trials: pl.DataFrame, needed: Sequence[str], optional: Sequence[str] = ()) -> pl.DataFrame:
    """The columns named, in their types; optional ones that are absent are null, figures not finite too."""
    missing = [name for name in needed if name not in trials.columns]
    if missing:
        raise missing_columns(missing, trials.columns, "the table of trials")
    columns = []
    for name in (*needed, *optional):
        column = (pl.col(name) if name in trials.columns else pl.lit(None).alias(name)).cast(SCHEMA[name])
        if SCHEMA[name] == pl.Float64:
            column = pl.when(column.is_finite()).then(column).alias(name)
        elif SCHEMA[name] == pl.Boolean and name in needed:
            column = column.fill_null(False)
        columns.append(column)
    read = trials.with_columns(columns).select(*needed, *optional)
    twice = read.filter(pl.struct(KEY).is_duplicated())
    if len(twice):
        names = ", ".join(map(str, twice.select(KEY).row(0)))
        raise BadValues(f"{names} is in the table of trials more than once. Keep one row for each.", trial=names)
    return read


def each(trials: pl.DataFrame, *by: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """The rows of each group as dicts, groups in order of appearance."""
    for key, group in trials.group_by(*by, maintain_order=True):
        yield key, group.to_dicts()


def mark_selected(trials: pl.DataFrame, cost: str | Mapping[str, str]) -> pl.DataFrame:
    """The trials with ``selected``, by the Pareto rule in each preset and case, and ``cost``, what it ran on.

    ``cost`` is seconds, evaluations or iterations, or which of them for each preset. A trial that is eligible but
    has no accuracy (no golden row could be scored) cannot be compared and is not selected. Needs preset, case,
    method, eligible, accuracy and the costs.
    """
    presets = trials["preset"].unique(maintain_order=True).to_list() if "preset" in trials.columns else []
    costs = {preset: cost if isinstance(cost, str) else cost.get(preset, "none") for preset in presets}
    for preset, name in costs.items():
        if name not in COSTS:
            raise bad_option(f"cost of the preset {preset}", name, list(COSTS))
    table = read_columns(trials, (*KEY, "eligible", "accuracy", *dict.fromkeys(costs.values())))
    chosen = set()
    for (preset, case), rows in each(table, "preset", "case"):
        points = comparable(rows, costs[preset])
        chosen |= {(preset, case, method) for method in pareto_set(points, COSTS[costs[preset]])}
    keys = table.select(KEY).rows()
    return trials.with_columns(
        pl.Series("selected", [key in chosen for key in keys], dtype=pl.Boolean),
        pl.Series("cost", [costs[preset] for preset, _, _ in keys], dtype=pl.String),
    )


def tabulate_selection(trials: pl.DataFrame) -> pl.DataFrame:
    """One row a preset and case: the methods selected, out of how many, and why (paper, Table selection).

    Needs preset, case, method, converged, eligible, accuracy, selected, cost and the costs: see ``mark_selected``.
    """
    needed = (*KEY, "converged", "eligible", "accuracy", "selected", "cost")
    used = trials["cost"].unique(maintain_order=True).to_list() if "cost" in trials.columns else []
    table = read_columns(trials, (*needed, *used), ("maximum_exists", "status"))
    lines = [
        (
            *key,
            [row["method"] for row in rows if row["selected"]],
            sum(row["eligible"] for row in rows),
            len(rows),
            in_english(explain_selection(rows)),
        )
        for key, rows in each(table, "preset", "case")
    ]
    schema: Types = {"preset": pl.String, "case": pl.String, "selected": pl.List(pl.String)}
    schema |= {"eligible": pl.Int64, "trials": pl.Int64, "why": pl.String}
    return pl.DataFrame(lines, schema=schema, orient="row")


def tabulate_methods(trials: pl.DataFrame) -> pl.DataFrame:
    """One row a preset and method: how often it converged and was selected, and its mean and medians.

    Means and medians are over the eligible trials: the converged under the paper's conditions (paper, Table
    method-summary), the certified under ours. ``median_seconds_low`` is the lower of the two middle values where
    their number is even, which is what the paper prints; ``median_seconds`` is their mean. ``at_floor_share`` is
    the share of all scored rows. Needs preset, case, method, converged, eligible, accuracy, seconds, selected;
    takes certified, iterations, at_floor, scored.
    """
    needed = (*KEY, "converged", "eligible", "accuracy", "seconds", "selected")
    table = read_columns(trials, needed, ("certified", "iterations", "at_floor", "scored"))

    def of_eligible(name: str) -> pl.Expr:
        return pl.col(name).filter(pl.col("eligible"))

    counted = pl.col("eligible") & pl.col("at_floor").is_not_null() & (pl.col("scored") > 0)
    certified = pl.col("certified")
    return table.group_by("preset", "method", maintain_order=True).agg(
        trials=pl.len().cast(pl.Int64),
        converged=pl.col("converged").sum().cast(pl.Int64),
        certified=pl.when(certified.is_not_null().any()).then(certified.sum().cast(pl.Int64)),
        selected=pl.col("selected").sum().cast(pl.Int64),
        mean_accuracy=of_eligible("accuracy").mean(),
        median_seconds_low=of_eligible("seconds").quantile(0.5, interpolation="lower"),
        median_seconds=of_eligible("seconds").median(),
        median_iterations=of_eligible("iterations").median(),
        at_floor_share=pl.when(counted.any()).then(
            pl.col("at_floor").filter(counted).sum() / pl.col("scored").filter(counted).sum()
        ),
    )


def tabulate_agreement(trials: pl.DataFrame) -> pl.DataFrame:
    """One row a preset, case and model: whether the methods that are one model reached one log-likelihood.

    ``model`` is what ``model_of`` says of its methods; those with one fitted method alone are left out. ``spread``
    is the largest minus the smallest, ``short`` lists the methods below the best, with the gap. Where
    ``maximum_exists`` is false there is no maximum to agree on, and a gap says only where each solver
    stopped. Needs preset, case, method, log_likelihood.
    """
    table = read_columns(trials, (*KEY, "log_likelihood"), ("maximum_exists",))
    values_as_given = trials["log_likelihood"].cast(pl.Float64)  # minus infinity is a place to stop short at too
    models = pl.Series("model", [model_of(method) for method in table["method"]], dtype=pl.String)
    fitted = table.with_columns(models, log_likelihood=values_as_given).filter(
        pl.col("log_likelihood").is_not_null() & pl.col("log_likelihood").is_not_nan()
    )
    lines = []
    for key, rows in each(fitted, "preset", "case", "model"):
        if len(rows) > 1 and any(math.isfinite(row["log_likelihood"]) for row in rows):
            values = {row["method"]: row["log_likelihood"] for row in rows}
            exists = {row["maximum_exists"] for row in rows} - {None}
            judged = affine_agreement(values)
            spread = judged.best - min(values.values())
            short = [{"method": method, "gap": gap} for method, gap in judged.short.items()]
            lines.append((*key, list(values), spread, judged.agree, short, all(exists) if exists else None))
    gaps = pl.List(pl.Struct({"method": pl.String, "gap": pl.Float64}))
    schema: Types = {"preset": pl.String, "case": pl.String, "model": pl.String, "methods": pl.List(pl.String)}
    schema |= {"spread": pl.Float64, "agree": pl.Boolean, "short": gaps, "maximum_exists": pl.Boolean}
    return pl.DataFrame(lines, schema=schema, orient="row")


class Equals(NamedTuple):
    """Methods that are one model and agree: the one to show, the others, and the largest difference they have."""

    method: str
    also: tuple[str, ...]
    spread: float


def find_equals(trials: pl.DataFrame, agreement: pl.DataFrame, default: str) -> tuple[Equals, ...]:
    """Methods that are shown as one under the exact preset, by the default where it is among them.

    Those that do not agree to rounding in every case with a maximum are shown apart, and so are all under the
    paper's conditions, which stop at different points.
    """
    models: dict[str, list[str]] = {}
    for method in trials.filter(preset=EXACT)["method"].unique(maintain_order=True):
        models.setdefault(model_of(method), []).append(method)
    found = []
    for model, methods in models.items():
        judged = agreement.filter(pl.col("maximum_exists").fill_null(True), preset=EXACT, model=model)
        if len(methods) > 1 and len(judged) and judged["agree"].all():
            first = default if default in methods else methods[0]
            also = tuple(method for method in methods if method != first)
            found.append(Equals(first, also, float(judged["spread"].to_numpy().max())))
    return tuple(found)


def tabulate_presets(trials: pl.DataFrame) -> pl.DataFrame:
    """One row a case and method that both presets tried: the paper's conditions beside the exact ones, and why.

    ``short_by`` is the exact log-likelihood minus the paper's; for ``cause`` see ``find_cause``. Empty unless both
    presets are there. Needs preset, case, method, status, converged, certified, log_likelihood; takes iterations,
    log_loss, maximum_exists, at_floor.
    """
    needed = (*KEY, "status", "converged", "certified", "log_likelihood")
    table = read_columns(trials, needed, ("iterations", "log_loss", "maximum_exists", "at_floor"))
    paper, exact = (
        table.filter(preset=name).select("case", "method", pl.exclude(KEY).name.prefix(f"{name}_"))
        for name in (PAPER, EXACT)
    )
    both = paper.join(exact, on=["case", "method"], maintain_order="left")
    causes = [find_cause(row).value for row in both.to_dicts()]
    return both.with_columns(
        pl.Series("cause", causes, dtype=pl.String),
        short_by=pl.col(f"{EXACT}_log_likelihood") - pl.col(f"{PAPER}_log_likelihood"),
    ).select(
        "case",
        "method",
        *(f"{name}_{column}" for column in ("status", "log_likelihood") for name in (PAPER, EXACT)),
        "short_by",
        *(f"{name}_{column}" for column in ("iterations", "log_loss") for name in (PAPER, EXACT)),
        "cause",
    )


def find_cause(pair: Row) -> Cause:
    """Is it the data or the optimizer? The first of these that holds.

    1. either trial has the status "transform failed"                          the transform fails
    2. the exact trial has no finite log-likelihood                            cannot be fitted
    3. the exact trial is not certified, and its certificate finds no maximum  no finite maximum
       it has the status "not determined"                                      not determined
       it is not certified for another reason                                  not known
    4. the paper's trial did not converge, in the paper's sense                did not converge
    5. it is within AT_MAXIMUM of the exact log-likelihood                     both at the maximum
       it is higher than that                                                  not known
    6. it has more golden rows at the probability floor than the exact one     success on the floor
    7. otherwise                                                               success short of the maximum
    """
    paper, exact = pair[f"{PAPER}_log_likelihood"], pair[f"{EXACT}_log_likelihood"]
    if Status.TRANSFORM_FAILED in (pair[f"{PAPER}_status"], pair[f"{EXACT}_status"]):
        return Cause.TRANSFORM
    if exact is None:
        return Cause.NOT_FITTED
    if not pair[f"{EXACT}_certified"]:
        if pair[f"{EXACT}_maximum_exists"] is False:
            return Cause.NO_MAXIMUM
        return Cause.NOT_DETERMINED if pair[f"{EXACT}_status"] == Status.NOT_DETERMINED else Cause.UNKNOWN
    if not pair[f"{PAPER}_converged"]:
        return Cause.FAILURE
    if paper is not None and exact - paper <= AT_MAXIMUM:
        return Cause.NONE if exact - paper >= -AT_MAXIMUM else Cause.UNKNOWN
    on_floor = (pair[f"{PAPER}_at_floor"] or 0) > (pair[f"{EXACT}_at_floor"] or 0)
    return Cause.FLOOR if on_floor else Cause.SHORT


def is_materially_worse(loss: Any, best: Any) -> Any:
    """Whether a log loss, or a column of them, is MATERIALLY_WORSE times the best; not where both are 0."""
    return (loss >= MATERIALLY_WORSE * best) & (loss > best)


def tabulate_floor(trials: pl.DataFrame) -> pl.DataFrame:
    """The selected methods whose log loss is at least MATERIALLY_WORSE times that of the best alternative.

    The alternatives are the other methods that converged in the same preset and case, selected or not;
    ``ratio_low`` is to the worst of them, ``ratio_high`` to the best (paper, Table boxcox-logloss). Needs preset,
    case, method, converged, accuracy, log_loss, selected; takes at_floor, scored.
    """
    table = read_columns(
        trials, (*KEY, "converged", "accuracy", "log_loss", "selected"), ("at_floor", "scored")
    ).filter(pl.col("converged") & pl.col("log_loss").is_not_null())
    low, high = pl.col("alternatives_low"), pl.col("alternatives_high")
    rivals = table.select("preset", "case", rival="method", rival_loss="log_loss")
    ranges = (
        table.select(KEY)
        .join(rivals, on=["preset", "case"])
        .filter(pl.col("method") != pl.col("rival"))
        .group_by(KEY)
        .agg(alternatives_low=pl.col("rival_loss").min(), alternatives_high=pl.col("rival_loss").max())
    )
    share = pl.col("at_floor") / pl.col("scored")
    return (
        table.filter("selected")
        .join(ranges, on=KEY, maintain_order="left")
        .filter(is_materially_worse(pl.col("log_loss"), low))
        .select(
            *KEY,
            "accuracy",
            "log_loss",
            "alternatives_low",
            "alternatives_high",
            ratio_low=pl.col("log_loss") / high,
            ratio_high=pl.col("log_loss") / low,
            at_floor_share=pl.when(pl.col("scored") > 0).then(share),
        )
    )
