"""Checks on the fits (R601 to R603, R605): are they maxima, do equals agree, are they well determined."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from rekka.core.errors import count_of
from rekka.evaluation.scores import LOG_FLOOR, PROBABILITY_FLOOR
from rekka.model.certificate import WEAK_CONDITION
from rekka.study.cases import GOLDEN, WORDS
from rekka.study.checks.evidence import (
    NOTHING_DONE,
    NOTHING_SELECTED,
    Evidence,
    Pick,
    name_case,
    name_methods,
    name_within,
)
from rekka.study.checks.findings import Seen, absent, check, found, passed, tell_groups, tell_some
from rekka.study.reasons import Row
from rekka.study.tables import AT_MAXIMUM, EXACT, each
from rekka.study.trial import Status, Trial
from rekka.study.words import list_names, name_trials

MANY_AT_FLOOR = 0.01  # share of rows
FLOOR_COST = -MANY_AT_FLOOR * LOG_FLOOR  # in log loss: 0.28, more than covariates gain on most rows
HOPELESS = 1e6  # log-likelihood units; beyond it a fit is nowhere
NEAR = f"within {AT_MAXIMUM:g} log-likelihood units of it, on which no choice should hang"


class AtFloor(NamedTuple):
    """How many of which rows a method left at the floor."""

    pick: Pick
    rows: str
    at_floor: int
    of: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.at_floor / self.of if self.of else 0.0


@check(
    "R601",
    "A selected method on the probability floor",
    looks_at="Training rows, judged rows and golden rows to whose outcome a selected method gave a probability of "
    f"{PROBABILITY_FLOOR:g} or less.",
    matters="Such a forecast called impossible what then happened. Accuracy and seconds do not see it: an "
    "optimizer that never moved is fast, and right about every member that stayed as it was.",
    issue=f"{MANY_AT_FLOOR:.0%} of the rows or more: that alone adds {FLOOR_COST:.2f} or more to the log loss.",
    tip="Fewer rows, but some.",
    remedy="Do not forecast with a method that has many: fit with the preset exact and choose by the guarded "
    "rule. Where a certified fit has a few, look at those rows: covariates far from all others, or a wrong state.",
)
def floor(evidence: Evidence) -> Seen:
    """The largest share of each selected method."""
    if not evidence.selected:
        return absent(NOTHING_SELECTED)
    worst = [max(_count_floor(pick), key=lambda one: one.share) for pick in evidence.selected]
    touched = [one for one in worst if one.at_floor]
    if not touched:
        methods = count_of(len(evidence.selected), "selected method")
        return passed(f"No row of {methods} had a probability of {PROBABILITY_FLOOR:g} or less.")
    told = [one for one in touched if one.share >= MANY_AT_FLOOR] or touched
    facts = tell_groups(
        (
            one.pick.label,
            one.pick.method,
            f"{one.at_floor:,} of {one.of:,} {one.rows} ({one.share:.1%}){_loss(one)}",
        )
        for one in told
    )
    values = [
        {"case": one.pick.case.name, "preset": one.pick.choice.preset, "method": one.pick.method}
        | {"rows": one.rows, "at_floor": one.at_floor, "of": one.of, "share": one.share}
        for one in touched
    ]
    return found(
        any(one.share >= MANY_AT_FLOOR for one in touched),
        f"What happened had been given a probability of {PROBABILITY_FLOOR:g} or less: {tell_some(facts)}.",
        (one.pick.case.name for one in told),
        (one.pick.method for one in told),
        {"selected": values},
    )


def _count_floor(pick: Pick) -> Iterator[AtFloor]:
    """In the training rows, the judged ones, and golden ones where they were looked at."""
    certificate, scores, golden = pick.trial.certificate, pick.trial.scores, pick.confirmed
    share = 0.0 if certificate is None else certificate.plateau_train
    yield AtFloor(pick, "training rows", round(share * pick.case.train), pick.case.train)
    if scores is not None:
        yield AtFloor(pick, WORDS[pick.choice.judged_on], scores.at_floor, scores.rows)
    if golden is not None:
        yield AtFloor(pick, WORDS[GOLDEN], golden.at_floor, golden.rows)


def _loss(one: AtFloor) -> str:
    """The log loss of the same rows, where it is known."""
    golden = one.pick.confirmed if one.rows == WORDS[GOLDEN] else None
    judged = one.pick.verdict.log_loss if one.rows == WORDS[one.pick.choice.judged_on] else None
    loss = judged if golden is None else golden.log_loss
    return "" if loss is None else f", log loss {loss:.2f}"


@check(
    "R602",
    "Success without a certificate",
    looks_at="Trials whose solver reported success at a point that is no certified maximum of the likelihood.",
    matters="A solver reports success where its own test is met, which a flat or a badly scaled surface does too "
    "early. Coefficients, standard errors and forecasts there depend on the start and on the scaling.",
    issue=f"A selected method is more than {AT_MAXIMUM:g} log-likelihood units short of the maximum, or there is "
    "none.",
    tip=f"The methods concerned were not selected, or are within {AT_MAXIMUM:g} units.",
    remedy="Fit with the preset exact (Newton on the exact likelihood), and have only certified fits chosen: the "
    "guarded rule.",
)
def false_success(evidence: Evidence) -> Seen:
    """By preset, and by how far the trials are from a maximum; where exact finds none, R604 and R605 say so."""
    success = [one for one in evidence.study.results if one.outcome is not None and one.outcome.success]
    if not success:
        return absent("No solver has reported success." if evidence.study.results else NOTHING_DONE)
    doubtful = [one for one in success if _is_doubtful(one)]
    if not doubtful:
        return passed(f"{count_of(len(success), 'trial')} reported success, and none is short of a maximum.")
    sentences = []
    for preset in dict.fromkeys(one.key.preset for one in doubtful):
        here = [one for one in doubtful if one.key.preset == preset]
        all_ = sum(one.key.preset == preset for one in success)
        groups = {
            words: [one for one in here if _place(one) == words] for words in dict.fromkeys(map(_place, here))
        }
        parts = [f"{len(some)} {words} ({name_within(some)})" for words, some in groups.items()]
        sentences.append(
            f"{evidence.prefix(preset)}{len(here)} of {count_of(all_, 'trial')} that reported success "
            f"{'is' if len(here) == 1 else 'are'} not at a certified maximum: {'; '.join(parts)}"
        )
    used = [one for one in doubtful if evidence.is_selected(one) and _place(one) != NEAR]
    selected = f" Selected all the same: {evidence.name_trials(used)}." if used else ""
    values = [one.key.model_dump() | {"place": _place(one), "short_by": _distance(one)} for one in doubtful]
    concerned = used or doubtful
    return found(
        bool(used),
        f"{'. '.join(sentences)}.{selected}",
        (one.key.case for one in concerned),
        name_methods(concerned),
        {"success": len(success), "trials": values},
    )


def _is_doubtful(trial: Trial) -> bool:
    """Whether a success is no maximum; what Newton says of data that have none is not false."""
    if trial.certified or trial.status is Status.TRANSFORM_FAILED:
        return False
    told = trial.key.preset == EXACT and trial.status in (Status.NO_MAXIMUM, Status.NOT_DETERMINED)
    return not told


def _place(trial: Trial) -> str:
    """Where a doubtful success is, in words."""
    words = {
        Status.SOLVER_FAILED: "at an infinite likelihood",
        Status.NO_MAXIMUM: "where there is no finite maximum",
        Status.NOT_DETERMINED: "where the rows do not determine all coefficients",
    }
    if trial.status in words:
        return words[trial.status]
    if _distance(trial) <= AT_MAXIMUM:
        return NEAR
    plateau = trial.certificate is not None and trial.certificate.plateau_train > 0
    return "on the probability floor" if plateau else f"more than {AT_MAXIMUM:g} log-likelihood units short"


def _distance(trial: Trial) -> float:
    """Log-likelihood units to the maximum: estimated at the point, or measured from other starts."""
    certificate = trial.certificate
    if certificate is None or not math.isfinite(certificate.decrement):
        return math.inf
    return max(certificate.decrement, certificate.shortfall)


@check(
    "R603",
    "Equals that disagree",
    looks_at="Methods that are one model, as max, min-max and z-score are: their log-likelihoods in each case.",
    matters="Every state has an intercept, so an affine change of the covariates changes no forecast. Where "
    "equals differ, some stopped short of the maximum, and a choice between them is a choice between accidents.",
    issue=f"A selected method is more than {AT_MAXIMUM:g} log-likelihood units below its equals.",
    tip="Others are, or the difference is smaller.",
    remedy="Fit with the preset exact, or raise the number of iterations. Until then do not read a ranking of "
    "these methods as one of scalings.",
)
def equals(evidence: Evidence) -> Seen:
    """By preset and model, in the cases that have a maximum to agree on."""
    agreement = evidence.study.agreement.filter(pl.col("maximum_exists").fill_null(True))
    if agreement.is_empty():
        return absent("No two methods that are one model were fitted to rows that have a maximum.")
    groups = [rows for _, rows in each(agreement, "preset", "model")]
    if agreement["agree"].all():
        return passed(" ".join(_tell_agreement(evidence, rows) for rows in groups))
    apart = agreement.filter(~pl.col("agree")).to_dicts()
    short = {(row["preset"], row["case"], one["method"]): one["gap"] for row in apart for one in row["short"]}
    used = [
        pick
        for pick in evidence.selected
        if short.get((pick.choice.preset, pick.case.name, pick.method), 0.0) > AT_MAXIMUM
    ]
    told = [_tell_disagreement(evidence, rows) for rows in groups if not all(row["agree"] for row in rows)]
    told += [_tell_agreement(evidence, rows) for rows in groups if all(row["agree"] for row in rows)]
    selected = f" Selected all the same: {name_trials([(p.label, p.method) for p in used])}." if used else ""
    values = [row | {"methods": list(row["methods"])} for row in apart]
    concerned = [pick.case.name for pick in used] or [row["case"] for row in apart]
    methods = [pick.method for pick in used] or [method for _, _, method in short]
    return found(bool(used), f"{' '.join(told)}{selected}", concerned, methods, {"apart": values})


def _tell_disagreement(evidence: Evidence, rows: list[Row]) -> str:
    widest = max(rows, key=lambda row: float(row["spread"]))
    short = max(widest["short"], key=lambda one: float(one["gap"]))
    gap = f"{short['gap']:.2g} log-likelihood units" if short["gap"] < HOPELESS else "more than any number means"
    return (
        f"{evidence.prefix(widest['preset'])}{list_names(widest['methods'])} are one model, and disagree in "
        f"{sum(not row['agree'] for row in rows)} of {count_of(len(rows), 'case')}: some stopped short, "
        f"{short['method']} in {name_case(widest['case'])} by {gap}."
    )


def _tell_agreement(evidence: Evidence, rows: list[Row]) -> str:
    widest = max(rows, key=lambda row: float(row["spread"]))
    digits = f"within {widest['spread']:.1g}" if widest["spread"] else "equal to the last digit"
    return (
        f"{evidence.prefix(widest['preset'])}{list_names(widest['methods'])} are one model, and agree wherever "
        f"there is a maximum ({count_of(len(rows), 'case')}, log-likelihoods {digits})."
    )


@check(
    "R605",
    "A weakly determined direction",
    looks_at="The curvature of the likelihood at each fit: its condition number for standardised covariates, and "
    "the combination of coefficients that the rows say least about.",
    matters="Along such a direction coefficients can be moved together at almost no cost. Forecasts for bridges "
    "like the training ones stand; single coefficients, and forecasts for unlike bridges, do not.",
    issue="A method was selected whose rows do not determine all coefficients.",
    tip=f"A condition number above {WEAK_CONDITION:g} in what was selected, or undetermined coefficients in what "
    "was not.",
    remedy="Leave one of the covariates out that say nearly the same, share their effect between states, or use "
    "ridge. Do not read the coefficients named one by one.",
)
def weak_direction(evidence: Evidence) -> Seen:
    """What was selected, and every trial whose certificate finds a level direction."""
    if not evidence.study.results:
        return absent(NOTHING_DONE)
    level = evidence.with_status(Status.NOT_DETERMINED)
    weak = [p for p in evidence.selected if p.trial.certified and _condition(p.trial) > WEAK_CONDITION]
    used = [one for one in level if evidence.is_selected(one)]
    if not level and not weak:
        certified = [_condition(pick.trial) for pick in evidence.selected if pick.trial.certified]
        largest = f" The largest condition number is {max(certified):.3g}." if certified else ""
        return passed(f"No coefficient is left undetermined.{largest}")
    facts = tell_groups(
        (evidence.label(one.key.case, one.key.preset), one.key.method, f"not determined: {one.reason}")
        for one in level
    )
    facts += tell_groups(
        (p.label, p.method, f"{_weakest(p.trial)}, condition number {_condition(p.trial):.2g}") for p in weak
    )
    concerned = [*level, *(pick.trial for pick in weak)]
    values = [
        one.key.model_dump() | {"condition_number": _condition(one), "weakest_direction": _weakest(one)}
        for one in concerned
    ]
    words = f"The rows say little along: {tell_some(facts)}."
    return found(
        bool(used), words, (one.key.case for one in concerned), name_methods(concerned), {"trials": values}
    )


def _condition(trial: Trial) -> float:
    return math.nan if trial.certificate is None else trial.certificate.condition_number


def _weakest(trial: Trial) -> str:
    return "" if trial.certificate is None else trial.certificate.weakest_direction


CHECKS = (floor, false_success, equals, weak_direction)
