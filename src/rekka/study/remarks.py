"""What to look at in a study, in sentences: failures and their cause, false success, equals that differ."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from rekka.errors import count_of
from rekka.study.reasons import Row
from rekka.study.study import Study
from rekka.study.tables import AT_MAXIMUM, EXACT, each
from rekka.study.trial import Status
from rekka.study.words import list_names, name_trials

FEW_GOLDEN = 50  # an accuracy has a standard error of 7 % there
HOPELESS = 1e6  # log-likelihood units; beyond it a fit is nowhere


def remark(study: Study) -> tuple[str, ...]:
    """Sentences, the gravest first: preset by preset, then what holds of the data, then what is well."""
    presets = study.trials["preset"].unique(maintain_order=True)
    doubts: list[str] = []
    well: list[str] = []
    for preset in presets:
        named = f"{preset}: " if len(presets) > 1 else ""
        trials, agreement = study.trials.filter(preset=preset), study.agreement.filter(preset=preset)
        doubts += [f"{named}{line}" for line in _remark_preset(study, preset, trials)]
        well += [f"{named}{line}" for line in _remark_agreement(agreement)]
    return (*doubts, *_remark_data(study.trials), *_remark_cases(study), *well)


def _remark_preset(study: Study, preset: str, trials: pl.DataFrame) -> Iterator[str]:
    for row in study.floor.filter(preset=preset).iter_rows(named=True):
        share = row["at_floor_share"] or 0.0
        yield (
            f"{row['method']} is selected in {row['case']} with a log loss of {row['log_loss']:.2f}, where others "
            f"have {row['alternatives_low']:.2f}; {share:.0%} of the golden rows are at the probability floor"
        )
    yield from _remark_failures(trials)
    yield from _remark_false_success(trials)
    yield from _remark_disagreement(study.agreement.filter(preset=preset))


def _remark_failures(trials: pl.DataFrame) -> Iterator[str]:
    """Solvers that failed where the data are not to blame, by what they said."""
    failed = trials.filter(status=Status.SOLVER_FAILED.value)
    for (said,), rows in each(failed.with_columns(said=pl.col("reason").str.split("; ").list.first()), "said"):
        which = name_trials([(row["case"], row["method"]) for row in rows])
        yield f"the solver failed: {which} ({said})"


def _remark_data(trials: pl.DataFrame) -> Iterator[str]:
    """What no optimizer can help, once for all presets."""
    words = {
        Status.NO_MAXIMUM: "no finite maximum",
        Status.NOT_DETERMINED: "not all coefficients are determined",
        Status.TRANSFORM_FAILED: "the transform fails",
        Status.NOT_FITTED: "cannot be fitted",
    }
    failed = trials.filter(pl.col("status").is_in([status.value for status in words]))
    for (case, status, reason), rows in each(failed, "case", "status", "reason"):
        methods = list_names(dict.fromkeys(row["method"] for row in rows))
        yield f"{case} ({methods}): {words[Status(status)]}: {reason.rstrip('.')}"


def _remark_false_success(trials: pl.DataFrame) -> Iterator[str]:
    """Which trials reported success without being at a maximum."""
    reported = trials.filter(pl.col("success").fill_null(False))
    doubtful = reported.filter(~pl.col("certified"))
    if doubtful.is_empty() or trials["preset"][0] == EXACT:  # Newton's own are told by their status
        return
    none, broken = (pl.col("status") == status.value for status in (Status.NO_MAXIMUM, Status.SOLVER_FAILED))
    far = pl.col("shortfall").is_null() | (pl.col("shortfall") > AT_MAXIMUM)
    floor = pl.col("plateau_train") > 0
    other = ~none & ~broken
    groups = (
        (broken, "at an infinite likelihood"),
        (other & far & floor, "on the probability floor"),
        (other & far & ~floor, f"more than {AT_MAXIMUM:g} log-likelihood units short"),
        (none, "where there is no finite maximum"),
        (other & ~far, f"within {AT_MAXIMUM:g} units of it, on which no choice should hang"),
    )
    found = [(doubtful.filter(here).select("case", "method").rows(), words) for here, words in groups]
    each_group = "; ".join(f"{len(rows)} {words} ({name_trials(rows)})" for rows, words in found if rows)
    successes = count_of(len(reported), "trial")
    yield f"{len(doubtful)} of {successes} that reported success are not at a certified maximum: {each_group}"


def _remark_disagreement(agreement: pl.DataFrame) -> Iterator[str]:
    """Methods that are one model, as max, min-max and z-score are, and did not reach one maximum."""
    for rows in _judged(agreement):
        apart = [row for row in rows if not row["agree"]]
        if apart:
            widest = max(rows, key=lambda row: float(row["spread"]))
            short = max(widest["short"], key=lambda one: float(one["gap"]))
            yield (
                f"{list_names(widest['methods'])} are one model, and disagree in {len(apart)} of "
                f"{count_of(len(rows), 'case')}: some stopped short, {short['method']} in {widest['case']} by "
                f"{_gap(short['gap'])}"
            )


def _gap(units: float) -> str:
    return f"{units:.2g} log-likelihood units" if units < HOPELESS else "more than any number means"


def _remark_agreement(agreement: pl.DataFrame) -> Iterator[str]:
    """Methods that are one model, and did."""
    for rows in _judged(agreement):
        if all(row["agree"] for row in rows):
            widest = max(rows, key=lambda row: float(row["spread"]))
            digits = f"within {widest['spread']:.1g}" if widest["spread"] else "equal to the last digit"
            yield (
                f"{list_names(widest['methods'])} are one model, and agree wherever there is a maximum "
                f"({count_of(len(rows), 'case')}, log-likelihoods {digits})"
            )


def _judged(agreement: pl.DataFrame) -> Iterator[list[Row]]:
    """The rows of each model, of cases that have a maximum to agree on."""
    for _, rows in each(agreement.filter(pl.col("maximum_exists").fill_null(True)), "model"):
        yield rows


def _remark_cases(study: Study) -> Iterator[str]:
    """What holds of the cases, whatever the preset."""
    for row in study.cases.iter_rows(named=True):
        if row["constant"]:
            names = list_names(row["constant"])
            yield f"{row['case']}: {names} does not vary in the training rows and is left out"
    trials = study.trials.filter(pl.col("certified") & pl.col("accuracy").is_not_null())
    best = trials.group_by("case", maintain_order=True).agg(
        pl.col("accuracy").max(), pl.col("log_loss").min(), pl.col("^.*(persistence|no_covariates)_.*$").first()
    )
    idle = best.filter(pl.col("accuracy") <= pl.col("persistence_accuracy"))["case"]
    if len(idle):
        yield f"no certified fit is more accurate than saying that nothing changes: {list_names(idle)}"
    with_some = study.cases.filter(pl.col("covariates").list.len() > 0)["case"].to_list()
    plain = best.filter(
        (pl.col("log_loss") >= pl.col("no_covariates_log_loss")) & pl.col("case").is_in(with_some)
    )["case"]
    if len(plain):
        yield f"no certified fit has a lower log loss than the model without covariates: {list_names(plain)}"
    lost = study.trials.unique("case", maintain_order=True).filter(pl.col("unsupported") > 0)
    for case, rows in lost.select("case", "unsupported").rows():
        yield f"{case}: {count_of(rows, 'golden row')} beyond the training rows' states, left out of the scores"
    few = study.trials.unique("case", maintain_order=True).filter(pl.col("golden") < FEW_GOLDEN)["case"]
    if len(few):
        yield f"fewer than {FEW_GOLDEN} golden rows, so that one row decides: {list_names(few)}"
    if len(trials):
        yield "the selection looks at golden rows, so that their scores are optimistic for what was selected"
