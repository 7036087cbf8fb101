"""Checks on what the cases can carry (R302, R404, R611): covariates, size, and whether the chosen model fits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.core.words import Said, say
from rekka.evaluation.calibration import MOST_TESTED
from rekka.evaluation.intervals import CONFIDENCE
from rekka.model.certificate import FEW_EVENTS, FEW_ROWS
from rekka.study.checks.evidence import (
    NO_COVARIATES,
    NOTHING_DONE,
    NOTHING_SELECTED,
    Evidence,
    Pick,
    absent,
    found,
    name_case,
    passed,
)
from rekka.study.trial import Case

LEVEL = round(1.0 - CONFIDENCE, 12)  # of the test of fit


@check(Subject.STUDY, R404=Severity.WARNING, limits={"few": FEW_ROWS, "few_events": FEW_EVENTS})
def exploratory(evidence: Evidence) -> Finding:
    """As the study itself describes its cases."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    small = [case for case in cases if case.exploratory is not None]
    if not small:
        fewest = min(cases, key=lambda case: case.train)
        return passed(case=name_case(fewest.name), train=fewest.train)
    values = {
        case.name: {"train": case.train, "moves": case.moves, "events_per_parameter": case.events_per_parameter}
        for case in small
    }
    facts = [say("check.R404.case", case=name_case(case.name), why=_list_reasons(case)) for case in small]
    return found(False, "small", cases=values, values={"cases": values}, facts=facts)


def _list_reasons(case: Case) -> list[Said]:
    """Why a case is too small to conclude from."""
    rows = [say("check.R404.few_rows", train=case.train, few=FEW_ROWS)] if case.train < FEW_ROWS else []
    ratio = case.events_per_parameter
    return rows + ([say("check.R404.few_events", ratio=ratio, few=FEW_EVENTS)] if ratio < FEW_EVENTS else [])


@check(Subject.STUDY, R302=Severity.WARNING)
def constant(evidence: Evidence) -> Finding:
    """Covariates that do not vary, case by case."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    if not any(case.covariates or case.constant for case in cases):
        return absent(NO_COVARIATES)
    left_out = {case.name: list(case.constant) for case in cases if case.constant}
    if not left_out:
        return passed()
    facts = [say("check.R302.case", case=name_case(name), names=names) for name, names in left_out.items()]
    return found(False, "left_out", cases=left_out, values={"constant": left_out}, facts=facts)


@check(Subject.STUDY, R611=Severity.STOP, limits={"level": LEVEL})
def goodness(evidence: Evidence) -> Finding:
    """The test that was made with each choice, or of a calibration that was given."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    tested = {key: one for pick in evidence.chosen if (one := _find_test(evidence, key := _key(pick))) is not None}
    if not tested:
        return absent(_name_untested(evidence), most=MOST_TESTED)
    rejected = {key: one for key, one in tested.items() if one.p_value <= LEVEL}
    labels = {_key(pick): pick.label for pick in evidence.chosen}
    beside = ["chance"] if len(tested) > 1 else []
    chance: dict[str, Any] = {"tests": len(tested), "chance": LEVEL * len(tested)}
    if not rejected:
        least = min(tested, key=lambda key: tested[key].p_value)
        return passed("passed", *beside, p=tested[least].p_value, case=labels[least], **chance)
    one_alone = len(rejected) == 1  # its causes are told with what to do, of several the largest differences
    values = [
        {"preset": preset, "case": case, "p_value": one.p_value, "causes": list(one.causes)}
        for (preset, case), one in tested.items()
    ]
    facts = [(labels[key], one.p_value, one.describe(in_full=one_alone)) for key, one in rejected.items()]
    return found(
        True,
        "found",
        *beside,
        cases=(case for _, case in rejected),
        methods=(pick.method for pick in evidence.chosen if _key(pick) in rejected),
        values={"tests": values},
        facts=[say("check.R611.fact" if why else "check.R611.bare", case=c, p=p, why=why) for c, p, why in facts],
        **chance,
    )


@dataclass(frozen=True)
class _Test:
    """The p-value of a test, its causes in sentences, and the largest differences, where they are known."""

    p_value: float
    causes: tuple[str, ...]
    facts: str = ""

    def describe(self, *, in_full: bool) -> str:
        words = " ".join(self.causes if in_full else self.causes[:1])
        return (self.facts if not self.causes or (self.facts and not in_full) else words).rstrip(".: ")


def _key(pick: Pick) -> tuple[str, str]:
    return pick.choice.preset, pick.case.name


def _find_test(evidence: Evidence, key: tuple[str, str]) -> _Test | None:
    """The test of a calibration that was given, or else the one that was made with the choice."""
    given = (evidence.calibrations or {}).get(key)
    if given is not None and not math.isnan(given.goodness.p_value):
        return _Test(given.goodness.p_value, given.causes)
    choice = evidence.study.choice(key[1], key[0])
    test = None if choice is None else choice.fit_test
    if test is None:
        return None
    return _Test(test.p_value, test.causes, "; ".join(one.describe() for one in test.contrasts))


def _name_untested(evidence: Evidence) -> str:
    if evidence.calibrations is not None:
        return "impossible"
    return "many" if len(evidence.cases) > MOST_TESTED else "earlier"
