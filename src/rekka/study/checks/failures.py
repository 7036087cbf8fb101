"""Checks on the trials that came to nothing (R402, R502, R606, R608): no maximum, transform, solver, refused."""

from __future__ import annotations

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.core.words import say
from rekka.study.checks.evidence import NOTHING_DONE, Evidence, absent, found, name_case, name_methods, passed
from rekka.study.trial import Status, Trial


@check(Subject.STUDY, R402=Severity.STOP)
def no_maximum(evidence: Evidence) -> Finding:
    """The trials whose certificate finds no maximum, and what separates the rows."""
    return _look_at_status(evidence, Status.NO_MAXIMUM, "fitted")


@check(Subject.STUDY, R606=Severity.WARNING)
def solver_failures(evidence: Evidence) -> Finding:
    """Grouped by the solver's own words."""
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
        cases=(one.key.case for one in failed),
        methods=name_methods(failed),
        values={"trials": [one.key.model_dump() | {"reason": one.reason} for one in failed]},
        failed=len(failed),
        trials=trials,
        facts=[
            say("check.R606.fact", trials=evidence.name_trials(some), reason=said) for said, some in groups.items()
        ],
    )


@check(Subject.STUDY, R502=Severity.WARNING)
def transform_failures(evidence: Evidence) -> Finding:
    """With the covariate and the value."""
    return _look_at_status(evidence, Status.TRANSFORM_FAILED, "failed")


@check(Subject.STUDY, R608=Severity.WARNING)
def not_fitted(evidence: Evidence) -> Finding:
    """With the reason."""
    return _look_at_status(evidence, Status.NOT_FITTED, "failed")


def _look_at_status(evidence: Evidence, status: Status, words: str) -> Finding:
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
    concerned = used or here
    return found(
        status is Status.NO_MAXIMUM and bool(used),  # the others cannot be selected
        *([words, "check.selected"] if used else [words]),
        cases=(one.key.case for one in concerned),
        methods=name_methods(concerned),
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
