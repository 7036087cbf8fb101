"""What a check of a study is, and what it says: a verdict, an explanation with figures, and what to do.

Codes are stable and go on where the data doctor's end (``rekka.checks.findings``): R6xx is about fits, R7xx about
the choice, R8xx about golden rows and the confirmation. Every check has one finding in every study. An issue makes
a result in use wrong or unusable; a tip is something to know. What went wrong with a method that nobody selected
is a tip.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rekka.core.errors import count_of
from rekka.study.checks.evidence import Evidence

MOST_TOLD = 4  # cases whose figures are told; the others are in the values


class Verdict(enum.StrEnum):
    """What a check says of a study, the gravest first."""

    ISSUE = "issue"
    TIP = "tip"
    PASSED = "passed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Seen:
    """What a check saw. ``values`` holds the figures as plain data, not rounded, of all cases concerned."""

    verdict: Verdict
    explanation: str
    cases: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """One check: what it looks at, why, when it is an issue and when a tip (None: never), and what to do then."""

    code: str
    title: str
    looks_at: str
    matters: str
    issue: str | None
    tip: str | None
    remedy: str
    look: Callable[[Evidence], Seen]

    def run(self, evidence: Evidence) -> Finding:
        """Its finding in a study; where nothing was found there is nothing to do."""
        seen = self.look(evidence)
        remedy = self.remedy if seen.verdict in (Verdict.ISSUE, Verdict.TIP) else ""
        return Finding(code=self.code, title=self.title, remedy=remedy, **vars(seen))


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The outcome of one check; ``cases`` and ``methods`` are those concerned."""

    code: str
    title: str
    verdict: Verdict
    explanation: str
    remedy: str
    cases: tuple[str, ...]
    methods: tuple[str, ...]
    values: dict[str, Any]

    @property
    def found(self) -> bool:
        """Whether there is something to look at: an issue or a tip."""
        return self.verdict in (Verdict.ISSUE, Verdict.TIP)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {
            "verdict": str(self.verdict),
            "cases": list(self.cases),
            "methods": list(self.methods),
        }


def check(
    code: str,
    title: str,
    *,
    looks_at: str,
    matters: str,
    remedy: str,
    issue: str | None = None,
    tip: str | None = None,
) -> Callable[[Callable[[Evidence], Seen]], Check]:
    """Make a function that looks at a study a check."""
    return lambda look: Check(code, title, looks_at, matters, issue, tip, remedy, look)


def absent(why: str) -> Seen:
    """There is nothing to look at."""
    return Seen(Verdict.NOT_APPLICABLE, why)


def passed(words: str, values: dict[str, Any] | None = None) -> Seen:
    """All is well, in words."""
    return Seen(Verdict.PASSED, words, values=values or {})


def found(
    issue: bool,
    words: str,
    cases: Iterable[str],
    methods: Iterable[str] = (),
    values: dict[str, Any] | None = None,
) -> Seen:
    """An issue, or else a tip, with the cases and methods concerned, each once."""
    verdict = Verdict.ISSUE if issue else Verdict.TIP
    return Seen(verdict, words, tuple(dict.fromkeys(cases)), tuple(dict.fromkeys(methods)), values or {})


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Issues, tips, passed, not applicable; by code within."""
    rank = {verdict: place for place, verdict in enumerate(Verdict)}
    return tuple(sorted(findings, key=lambda one: (rank[one.verdict], one.code)))


def headline(findings: Collection[Finding]) -> str:
    """'2 issues, 5 tips; 12 checks passed, 3 not applicable'."""
    count = {verdict: sum(one.verdict is verdict for one in findings) for verdict in Verdict}
    issues, tips = count_of(count[Verdict.ISSUE], "issue"), count_of(count[Verdict.TIP], "tip")
    fine = count_of(count[Verdict.PASSED], "check")
    return f"{issues}, {tips}; {fine} passed, {count[Verdict.NOT_APPLICABLE]} not applicable"


def tell_some(facts: Sequence[str], most: int = MOST_TOLD) -> str:
    """Facts one after the other: the first few, and how many more there are."""
    more = f"; and {len(facts) - most:,} more" if len(facts) > most else ""
    return "; ".join(facts[:most]) + more


def tell_groups(facts: Iterable[tuple[str, str, str]]) -> list[str]:
    """(case, method, words), those that differ by the method alone as one: 'max, zscore in Pier: words'."""
    groups: dict[tuple[str, str], list[str]] = {}
    for case, method, words in facts:
        groups.setdefault((case, words), []).append(method)
    return [f"{', '.join(methods)} in {case}: {words}" for (case, words), methods in groups.items()]
