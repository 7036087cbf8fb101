"""Results of checks: all comparisons of one, and what ended it if it could not be computed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rekka.core.language import ENGLISH, load_words
from rekka.verification.engine import Comparison, Numbers, RegisteredCheck


@dataclass(frozen=True)
class CheckResult:
    """Comparisons of one check. ``error`` is the exception that ended it: it counts as a number that differs."""

    check: RegisteredCheck
    comparisons: tuple[Comparison, ...]
    seconds: float
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Whether it was computed and all its numbers agree."""
        return self.error is None and all(one.ok for one in self.comparisons)

    @property
    def wrong(self) -> int:
        """How many numbers differ; a check that could not be computed counts as one more."""
        return sum(not one.ok for one in self.comparisons) + (self.error is not None)

    @property
    def furthest(self) -> Comparison | None:
        """The number furthest from what is expected, in units of its tolerance; the first of equal ones."""
        return max(self.comparisons, key=lambda one: one.severity, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with English texts."""
        words = load_words(ENGLISH)
        numbers = [
            {
                "item": words.format(one.item), "expected": one.expected, "got": one.got, "ok": one.ok,
                "difference": one.difference, "tolerance": one.tolerance, "relative": one.relative,
            }
            for one in self.comparisons
        ]  # fmt: skip
        name, source = self.check.name, self.check.source
        texts = {"title": words(f"verify.check.{name}"), "source": words(f"verify.reference.{source}")}
        head = {"name": name, "kind": self.check.kind, **texts, "ok": self.ok, "seconds": round(self.seconds, 3)}
        return {**head, "error": self.error, "numbers": numbers}


def run_check(check: RegisteredCheck, numbers: Numbers) -> CheckResult:
    """Run one check. An exception is its result: an installation that computes wrongly may not get to the end."""
    found: list[Comparison] = []
    error, begun = None, time.perf_counter()
    try:
        for one in check.run(numbers):
            found.append(one)  # noqa: PERF402 - what came before an exception is kept
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    return CheckResult(check, tuple(found), time.perf_counter() - begun, error)


def count_numbers(results: Sequence[CheckResult]) -> int:
    """How many numbers were compared; a check that could not be computed counts as one at least."""
    return sum(max(len(one.comparisons), one.wrong) for one in results)


def count_wrong(results: Sequence[CheckResult]) -> int:
    """How many of them differ."""
    return sum(one.wrong for one in results)
