"""Checks on the trials that came to nothing (R604, R606 to R608): no maximum, solver, transform, refused."""

from __future__ import annotations

from rekka.core.errors import count_of
from rekka.study.checks.evidence import NOTHING_DONE, Evidence, name_case, name_methods
from rekka.study.checks.findings import Seen, absent, check, found, passed, tell_some
from rekka.study.trial import Status, Trial
from rekka.study.words import list_names


@check(
    "R604",
    "No finite maximum",
    looks_at="Cases in whose training rows covariates tell those that left a state from those that stayed, or "
    "whose rows never leave a state: the likelihood rises for ever.",
    matters="There is no best fit then. Whatever a solver stops at, its hazards run to 0 or to infinity and its "
    "standard errors mean nothing.",
    issue="A method was selected that has no maximum there.",
    tip="No such method was selected.",
    remedy="Leave covariates out, merge states, or let a penalty or the other cases hold the coefficients "
    "(methods ridge, pooled).",
)
def no_maximum(evidence: Evidence) -> Seen:
    """The trials whose certificate finds none, and what separates the rows."""
    return _look_at_status(
        evidence,
        Status.NO_MAXIMUM,
        "The likelihood has no finite maximum",
        "Every case that was fitted has a finite maximum.",
    )


@check(
    "R606",
    "Solvers that failed",
    looks_at="Trials whose solver gave up, by what it said.",
    matters="A failed trial says nothing about its method: on the same rows another solver may reach the maximum.",
    tip="Some did. They cannot be selected.",
    remedy="Fit with the preset exact beside it: rekka compare --preset both says if it is the data or the "
    "optimizer.",
)
def solver_failures(evidence: Evidence) -> Seen:
    """Grouped by the solver's own words."""
    if not evidence.study.results:
        return absent(NOTHING_DONE)
    failed = evidence.with_status(Status.SOLVER_FAILED)
    if not failed:
        return passed(f"None of {count_of(len(evidence.study.results), 'trial')}.")
    groups: dict[str, list[Trial]] = {}
    for one in failed:
        groups.setdefault((one.reason or "").split("; ")[0], []).append(one)
    facts = [f"{evidence.name_trials(some)}: {said}" for said, some in groups.items()]
    values = [one.key.model_dump() | {"reason": one.reason} for one in failed]
    of = count_of(len(evidence.study.results), "trial")
    words = f"The solver failed in {len(failed)} of {of}: {tell_some(facts)}."
    return found(False, words, (one.key.case for one in failed), name_methods(failed), {"trials": values})


@check(
    "R607",
    "Transforms that failed",
    looks_at="Trials whose scaling could not be fitted to the training rows, or could not take a held-out row.",
    matters="Nothing is clipped: a value that a fitted transform cannot take, as Box-Cox cannot take one far "
    "below the training rows, has no forecast at all.",
    tip="Some did. They cannot be selected.",
    remedy="Look at the value named: a slip, or a bridge unlike all others. Otherwise use z-score, or "
    "yeojohnson+zscore, which take any value.",
)
def transform_failures(evidence: Evidence) -> Seen:
    """With the covariate and the value."""
    return _look_at_status(evidence, Status.TRANSFORM_FAILED, "The transform fails", "No transform failed.")


@check(
    "R608",
    "Trials that could not be fitted",
    looks_at="Trials that were refused before a solver saw them: no training rows, or covariates that say the "
    "same.",
    matters="The case has no model, whatever the method.",
    tip="Some were. They cannot be selected.",
    remedy="rekka check, on the same table, names the rows and covariates and what to do about them.",
)
def not_fitted(evidence: Evidence) -> Seen:
    """With the reason."""
    return _look_at_status(evidence, Status.NOT_FITTED, "Cannot be fitted", "Every case could be fitted.")


def _look_at_status(evidence: Evidence, status: Status, words: str, well: str) -> Seen:
    """The trials with a status, once for all methods and presets that share a case and a reason."""
    if not evidence.study.results:
        return absent(NOTHING_DONE)
    here = evidence.with_status(status)
    if not here:
        return passed(well)
    groups: dict[tuple[str, str], list[Trial]] = {}
    for one in here:
        groups.setdefault((one.key.case, _reason(one)), []).append(one)
    facts = [
        f"{name_case(case)} ({list_names(name_methods(some))}): {reason}"
        for (case, reason), some in groups.items()
    ]
    used = [one for one in here if evidence.is_selected(one)]
    selected = f" Selected all the same: {evidence.name_trials(used)}." if used else ""
    values = [one.key.model_dump() | {"reason": one.reason} for one in here]
    concerned = used or here
    return found(
        bool(used),
        f"{words}: {tell_some(facts, most=3)}.{selected}",
        (one.key.case for one in concerned),
        name_methods(concerned),
        {"trials": values},
    )


def _reason(trial: Trial) -> str:
    """Why, without the remedies: a finding has its own."""
    return "; ".join(
        part for part in (trial.reason or "").rstrip(".").split("; ") if not part.startswith("remedies:")
    )


CHECKS = (no_maximum, solver_failures, transform_failures, not_fitted)
