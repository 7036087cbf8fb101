"""Checks on the fits of a study (R402, R502, R601 to R608): maxima, agreement of equals, failures and why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.core.language import ENGLISH, Said, load_words, say
from rekka.evaluation.scores import LOG_FLOOR, PROBABILITY_FLOOR
from rekka.model.certificate import WEAK_CONDITION
from rekka.study.case_rows import GOLDEN, WORDS
from rekka.study.checks.evidence import (
    NOTHING_DONE,
    NOTHING_SELECTED,
    Pick,
    StudyEvidence,
    absent,
    found,
    group_methods,
    name_case,
    name_methods,
    name_rows,
    name_trials,
    name_within,
    passed,
)
from rekka.study.explanations import Row
from rekka.study.tables import EXACT, each
from rekka.study.trial import AT_MAXIMUM, HOPELESS, Key, Status, Trial

MANY_AT_FLOOR = 0.01  # share of rows
FLOOR_COST = -MANY_AT_FLOOR * LOG_FLOOR  # in log loss: 0.28, more than covariates gain on most rows
TRAIN, NEAR = "train", "near"


class AtFloor(NamedTuple):
    """Rows of a part that a method left at the probability floor."""

    pick: Pick
    part: str
    at_floor: int
    of: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.at_floor / self.of if self.of else 0.0


FLOOR = {"floor": PROBABILITY_FLOOR, "many": MANY_AT_FLOOR, "cost": FLOOR_COST}


@check(Subject.STUDY, R601=Severity.STOP, limits=FLOOR)
def floor(evidence: StudyEvidence) -> Finding:
    """Report rows at the probability floor: the largest share of each selected method."""
    if not evidence.selected:
        return absent(NOTHING_SELECTED)
    worst = [max(_count_floor(pick), key=lambda one: one.share) for pick in evidence.selected]
    touched = [one for one in worst if one.at_floor]
    if not touched:
        return passed(methods=len(evidence.selected))
    shown = [one for one in touched if one.share >= MANY_AT_FLOOR] or touched
    values = [
        one.pick.key.model_dump()
        | {"rows": "training rows" if one.part == TRAIN else WORDS[one.part]}
        | {"at_floor": one.at_floor, "of": one.of, "share": one.share}
        for one in touched
    ]
    return found(
        any(one.share >= MANY_AT_FLOOR for one in touched),
        of=(one.pick.key for one in shown),
        values={"selected": values},
        facts=group_methods((one.pick.label, one.pick.method, _name_share(one)) for one in shown),
    )


def _count_floor(pick: Pick) -> Iterator[AtFloor]:
    """Count them in the training rows, the judged ones, and golden ones where they were looked at."""
    certificate, scores, golden = pick.trial.certificate, pick.trial.scores, pick.confirmed
    share = 0.0 if certificate is None else certificate.plateau_train
    yield AtFloor(pick, TRAIN, round(share * pick.case.train), pick.case.train)
    if scores is not None:
        yield AtFloor(pick, pick.choice.judged_on, scores.at_floor, scores.rows)
    if golden is not None:
        yield AtFloor(pick, GOLDEN, golden.at_floor, golden.rows)


def _name_share(one: AtFloor) -> Said:
    """Describe the rows at the floor, with the log loss of the same rows where it is known."""
    golden = one.pick.confirmed if one.part == GOLDEN else None
    judged = one.pick.verdict.log_loss if one.part == one.pick.choice.judged_on else None
    loss = judged if golden is None else golden.log_loss
    key = "check.R601.share" if loss is None else "check.R601.share_loss"
    return say(key, at_floor=one.at_floor, of=one.of, rows=name_rows(one.part), share=one.share, loss=loss)


@check(Subject.STUDY, R602=Severity.STOP, limits={"near": AT_MAXIMUM})
def false_success(evidence: StudyEvidence) -> Finding:
    """Report successes that are no maximum, by preset and distance; where exact finds none, R402 and R605 do."""
    success = [one for one in evidence.study.results if one.outcome is not None and one.outcome.success]
    if not success:
        return absent("none" if evidence.study.results else NOTHING_DONE)
    doubtful = [one for one in success if _is_doubtful(one)]
    if not doubtful:
        return passed(trials=len(success))
    presets = []
    for preset in dict.fromkeys(one.key.preset for one in doubtful):
        here = [one for one in doubtful if one.key.preset == preset]
        places = {
            place: [one for one in here if _place(one) == place] for place in dict.fromkeys(map(_place, here))
        }
        parts = [
            say("check.R602.part", n=len(some), place=_name_place(place), trials=name_within(some))
            for place, some in places.items()
        ]
        all_ = sum(one.key.preset == preset for one in success)
        prefix = evidence.prefix(preset)
        presets.append(say("check.R602.preset", prefix=prefix, n=len(here), success=all_, parts=parts))
    used = [one for one in doubtful if evidence.is_selected(one) and _place(one) != NEAR]
    concerned, words = used or doubtful, load_words(ENGLISH)
    values = [
        one.key.model_dump() | {"place": words.format(_name_place(_place(one))), "short_by": _distance(one)}
        for one in doubtful
    ]
    return found(
        bool(used),
        *(["found", "check.selected"] if used else ["found"]),
        of=(one.key for one in concerned),
        values={"success": len(success), "trials": values},
        presets=presets,
        used=evidence.name_trials(used),
    )


def _is_doubtful(trial: Trial) -> bool:
    """Whether a success is no maximum; what Newton says of data that have none is not false."""
    if trial.certified or trial.status is Status.TRANSFORM_FAILED:
        return False
    return trial.key.preset != EXACT or trial.status not in (Status.NO_MAXIMUM, Status.NOT_DETERMINED)


def _place(trial: Trial) -> str:
    """Name of the text for where a doubtful success is."""
    names = {
        Status.SOLVER_FAILED: "infinite",
        Status.NO_MAXIMUM: "no_maximum",
        Status.NOT_DETERMINED: "not_determined",
    }
    if trial.status in names:
        return names[trial.status]
    if _distance(trial) <= AT_MAXIMUM:
        return NEAR
    plateau = trial.certificate is not None and trial.certificate.plateau_train > 0
    return "floor" if plateau else "short"


def _name_place(place: str) -> Said:
    return say(f"check.R602.{place}", near=AT_MAXIMUM)


def _distance(trial: Trial) -> float:
    """Log-likelihood units to the maximum: estimated at the point, or measured from other starts."""
    certificate = trial.certificate
    if certificate is None or not math.isfinite(certificate.decrement):
        return math.inf
    return max(certificate.decrement, certificate.shortfall)


@check(Subject.STUDY, R603=Severity.STOP, limits={"near": AT_MAXIMUM})
def equals(evidence: StudyEvidence) -> Finding:
    """Methods that are one model: by preset and model, in the cases that have a maximum to agree on."""
    agreement = evidence.study.agreement.filter(pl.col("maximum_exists").fill_null(True))
    if agreement.is_empty():
        return absent("none")
    groups = [rows for _, rows in each(agreement, "preset", "model")]
    groups.sort(key=lambda rows: all(row["agree"] for row in rows))  # those that disagree first
    shown = [_compare_equals(evidence, rows) for rows in groups]
    if agreement["agree"].all():
        return passed("found", groups=shown)
    apart = agreement.filter(~pl.col("agree")).to_dicts()
    short = {(row["preset"], row["case"], one["method"]): one["gap"] for row in apart for one in row["short"]}
    used = [
        pick
        for pick in evidence.selected
        if short.get((pick.choice.preset, pick.case.name, pick.method), 0.0) > AT_MAXIMUM
    ]
    return found(
        bool(used),
        *(["found", "check.selected"] if used else ["found"]),
        of=[pick.key for pick in used] or [Key(case=c, preset=p, method=m) for p, c, m in short],
        values={"apart": [row | {"methods": list(row["methods"])} for row in apart]},
        groups=shown,
        used=name_trials((pick.label, pick.method) for pick in used),
    )


def _compare_equals(evidence: StudyEvidence, rows: list[Row]) -> Said:
    """Describe how far the methods of one model are apart at most."""
    widest = max(rows, key=lambda row: float(row["spread"]))
    figures = {"prefix": evidence.prefix(widest["preset"]), "methods": list(widest["methods"]), "cases": len(rows)}
    if all(row["agree"] for row in rows):
        key = "check.R603.within" if widest["spread"] else "check.R603.equal"
        return say("check.R603.agree", **figures, digits=say(key, spread=widest["spread"]))
    short = max(widest["short"], key=lambda one: float(one["gap"]))
    return say(
        "check.R603.apart",
        **figures,
        apart=sum(not row["agree"] for row in rows),
        method=short["method"],
        case=name_case(widest["case"]),
        gap=say("check.R603.gap" if short["gap"] < HOPELESS else "check.R603.hopeless", gap=short["gap"]),
    )


@check(Subject.STUDY, R605=Severity.STOP, limits={"weak": WEAK_CONDITION})
def weak_direction(evidence: StudyEvidence) -> Finding:
    """Report selected fits that are weakly determined, and every trial with a level direction."""
    if not evidence.study.results:
        return absent(NOTHING_DONE)
    level = evidence.with_status(Status.NOT_DETERMINED)
    weak = [p for p in evidence.selected if p.trial.certified and _condition(p.trial) > WEAK_CONDITION]
    if not level and not weak:
        certified = [_condition(pick.trial) for pick in evidence.selected if pick.trial.certified]
        return passed("passed", "largest", largest=max(certified)) if certified else passed()
    facts = group_methods(
        (evidence.label(one.key.case, one.key.preset), one.key.method, say("check.R605.level", reason=one.reason))
        for one in level
    )
    facts += group_methods((pick.label, pick.method, _name_weakest(pick.trial)) for pick in weak)
    concerned = [*level, *(pick.trial for pick in weak)]
    values = [
        one.key.model_dump() | {"condition_number": _condition(one), "weakest_direction": _weakest(one)}
        for one in concerned
    ]
    return found(
        any(evidence.is_selected(one) for one in level),
        of=(one.key for one in concerned),
        values={"trials": values},
        facts=facts,
    )


def _name_weakest(trial: Trial) -> Said:
    return say("check.R605.weak", direction=_weakest(trial), number=_condition(trial))


def _condition(trial: Trial) -> float:
    return math.nan if trial.certificate is None else trial.certificate.condition_number


def _weakest(trial: Trial) -> str:
    return "" if trial.certificate is None else trial.certificate.weakest_direction


@check(Subject.STUDY, R402=Severity.STOP)
def no_maximum(evidence: StudyEvidence) -> Finding:
    """The trials whose certificate finds no maximum, and what separates the rows."""
    return _look_at_status(evidence, Status.NO_MAXIMUM, "fitted")


@check(Subject.STUDY, R606=Severity.WARNING)
def solver_failures(evidence: StudyEvidence) -> Finding:
    """Report failures of the solver, grouped by its own message."""
    trials = len(evidence.study.results)
    if not trials:
        return absent(NOTHING_DONE)
    failed = evidence.with_status(Status.SOLVER_FAILED)
    if not failed:
        return passed(trials=trials)
    groups: dict[str, list[Trial]] = {}
    for one in failed:
        groups.setdefault((one.reason or "").split("; ")[0], []).append(one)
    return found(
        False,
        of=(one.key for one in failed),
        values={"trials": [one.key.model_dump() | {"reason": one.reason} for one in failed]},
        failed=len(failed),
        trials=trials,
        facts=[
            say("check.R606.fact", trials=evidence.name_trials(some), reason=said) for said, some in groups.items()
        ],
    )


@check(Subject.STUDY, R502=Severity.WARNING)
def transform_failures(evidence: StudyEvidence) -> Finding:
    """Report transforms that failed, with the covariate and the value."""
    return _look_at_status(evidence, Status.TRANSFORM_FAILED, "failed")


@check(Subject.STUDY, R608=Severity.WARNING)
def not_fitted(evidence: StudyEvidence) -> Finding:
    """Report trials that were not fitted, with the reason."""
    return _look_at_status(evidence, Status.NOT_FITTED, "failed")


def _look_at_status(evidence: StudyEvidence, status: Status, words: str) -> Finding:
    """The trials with a status, once for all methods and presets that share a case and a reason."""
    if not evidence.study.results:
        return absent(NOTHING_DONE)
    here = evidence.with_status(status)
    if not here:
        return passed()
    groups: dict[tuple[str, str], list[Trial]] = {}
    for one in here:
        groups.setdefault((one.key.case, _reason(one)), []).append(one)
    used = [one for one in here if evidence.is_selected(one)]
    return found(
        status is Status.NO_MAXIMUM and bool(used),  # the others cannot be selected
        *([words, "check.selected"] if used else [words]),
        of=(one.key for one in used or here),
        values={"trials": [one.key.model_dump() | {"reason": one.reason} for one in here]},
        facts=[
            say("check.failed", case=name_case(case), methods=name_methods(some), reason=reason)
            for (case, reason), some in groups.items()
        ],
        used=evidence.name_trials(used),
    )


def _reason(trial: Trial) -> str:
    """Why, without the remedies: a finding has its own."""
    return "; ".join(
        part for part in (trial.reason or "").rstrip(".").split("; ") if not part.startswith("remedies:")
    )
