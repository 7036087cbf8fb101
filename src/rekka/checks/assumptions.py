"""Findings on a fitted pair model: assumptions that its records contradict (R612 to R617)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rekka.checks.engine import Finding, Severity, Subject, check, find, run_checks
from rekka.core.language import ENGLISH, load_words, say
from rekka.evaluation.violations import (
    CLOCK,
    ERRORS,
    FRAILTY,
    IMPROVEMENTS,
    PAST,
    STAYING,
    TREND,
    Violation,
)
from rekka.model.history_inputs import DAY

CODES = {ERRORS: "R612", IMPROVEMENTS: "R613", FRAILTY: "R614", TREND: "R615", CLOCK: "R616", PAST: "R617"}
WARNING = Severity.WARNING
UNSAID = ("check.untested.small_change", "check.untested.uncertified")  # harmless, or said by the certificate


class TestedFit(NamedTuple):
    """A component and the tests of its model's assumptions."""

    case: str
    tests: Sequence[Violation]


@check(
    Subject.FIT,
    limits={"most": STAYING},
    R612=WARNING, R613=WARNING, R614=WARNING, R615=WARNING, R616=WARNING, R617=WARNING,
)  # fmt: skip
def check_assumptions(fit: TestedFit) -> Iterator[Finding]:
    """Assumptions of the pair model that the rows contradict, the smallest p-value first."""
    for one in fit.tests:
        if one.found:
            values = dict(one.figures) | {"p_value": one.p_value, "adjusted": one.adjusted}
            way, places = _describe_factor(one)
            yield find(WARNING, way, code=CODES[one.name], case=fit.case, values=values, **places)


def _describe_factor(one: Violation) -> tuple[str, dict[str, Any]]:
    """Which sentence says it, and its places; of a factor below 1 by how much rates fell."""
    if one.name not in (TREND, PAST):
        return "found", {}
    if "factor" not in one.figures:
        return "bare", {}
    times, ends = one.figures["factor"], (one.figures["low"], one.figures["high"])
    fell = times < 1
    low, high = (1 / ends[1], 1 / ends[0]) if fell else ends
    years = {name: math.floor(one.figures[name] + DAY) for name in ("first", "last") if name in one.figures}
    return "fell" if fell else "rose", {
        "times": 1 / times if fell else times,
        "least": low,
        "largest": high,
    } | years


def list_contradicted(case: str, tests: Sequence[Violation]) -> list[Finding]:
    """Findings on the tests of one component, in their order."""
    return list(run_checks(Subject.FIT, TestedFit(case, tests)))


def describe_untouched(tests: Sequence[Violation]) -> list[str]:
    """Which assumptions the records do not contradict, and which could not be tested, each in a line."""
    words, fine, reasons = load_words(ENGLISH), [], []
    for one in tests:
        name = say(f"check.assumption.{one.name}")
        if one.reason is None:
            fine += [] if one.found else [name]
        elif one.reason["say"] not in UNSAID:
            reasons.append(say("check.assumption.untested", name=name, reason=one.reason))
    lines = [say("check.assumption.fine", names=fine)] if fine else []
    lines += [say("check.assumption.not_tested", reasons=reasons)] if reasons else []
    return [words.format(line) for line in lines]
