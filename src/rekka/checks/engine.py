"""Engine of numbered findings: checks, their findings in words, and the register of all checks.

A check is a function registered under its codes, with the gravest severity of each:

    @check(Subject.TRAINING, R404=Severity.WARNING, limits={"few": 100})
    def small(case: Component) -> Iterator[Finding]: ...

Its sentences stand in the language files under check.R404: title, found, remedy, and others that ``say`` names.
Codes are stable: R0xx is about reading, R1xx states and transitions, R2xx intervals, R3xx covariates, R4xx what a
model can learn, R5xx the partition, R6xx fits, R7xx the choice, R8xx golden rows and the confirmation. One that
was merged into another stays listed in ``core/language.py`` and is never used again.
"""

from __future__ import annotations

import enum
import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from rekka.core.language import ENGLISH, RETIRED, Words, load_words, say

MOST_ROWS = 20  # row numbers kept with a finding


class Severity(enum.StrEnum):
    """Severity of a finding, the worst first.

    A stop is a refusal, a fit that will fail, or a result in use that is wrong; a warning is something to look at
    before results are believed; a note is worth knowing. A study also says what passed, and what there was
    nothing to look at for.
    """

    STOP = "stop"
    WARNING = "warning"
    NOTE = "note"
    PASSED = "passed"
    NOT_APPLICABLE = "not applicable"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)

    @property
    def verdict(self) -> str:
        """Word for it in the findings of a study: issue, tip, passed, not applicable."""
        return {"stop": "issue", "warning": "tip", "note": "tip"}.get(self.value, self.value)


class Subject(enum.Enum):
    """Subject that a check examines."""

    TABLE = enum.auto()  # a table of transitions as a whole: ``CheckedTable``
    RECORDED = enum.auto()  # every usable row of one component: ``Component``
    TRAINING = enum.auto()  # its rows that train
    FIT = enum.auto()  # tests of the assumptions of a fitted model: ``TestedFit``
    STUDY = enum.auto()  # a study: its ``StudyEvidence``


class Texts(NamedTuple):
    """A finding in one language."""

    title: str
    message: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Finding of a check: a code with values, put into words in any language.

    ``say`` names its sentences in the language files and ``do`` the remedy, '' where there is nothing to do;
    ``places`` holds the values of the places in them. ``rows`` are row numbers as the user counts, at most 20.
    ``values`` holds the figures as plain data, not rounded. ``cases`` and ``methods`` are those concerned.
    """

    code: str = ""  # the engine fills it in where a check has one
    severity: Severity
    say: tuple[str, ...] = ("found",)
    do: str = "remedy"
    cases: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    count: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Any] = field(default_factory=dict)
    study: bool = False  # whether it is about a study, not about data

    def describe(self, words: Words) -> Texts:
        """Title, what was found and what to do, in a language."""
        title, remedy = (format_part(self.code, names, self.places, words) for names in (["title"], [self.do]))
        return Texts(title, format_part(self.code, self.say, self.places, words), remedy)

    @property
    def title(self) -> str:
        """Heading of the code."""
        return self.describe(load_words(ENGLISH)).title

    @property
    def message(self) -> str:
        """Sentences on what was found."""
        return self.describe(load_words(ENGLISH)).message

    @property
    def remedy(self) -> str:
        """Sentence on what to do; empty where there is nothing to do."""
        return self.describe(load_words(ENGLISH)).remedy

    explanation = message  # as a study calls it

    @property
    def verdict(self) -> str:
        """Severity as a study calls it."""
        return self.severity.verdict

    @property
    def case(self) -> str | None:
        """Component that a finding on data is about; None where it is about the whole table."""
        return self.cases[0] if self.cases and not self.study else None

    @property
    def found(self) -> bool:
        """Whether there is something to look at."""
        return self.severity not in (Severity.PASSED, Severity.NOT_APPLICABLE)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the sentences in English."""
        texts = self.describe(load_words(ENGLISH))
        plain = {"code": self.code, "title": texts.title, "remedy": texts.remedy, "values": self.values}
        if self.study:
            judged = {"verdict": self.verdict, "explanation": texts.message}
            return plain | judged | {"cases": list(self.cases), "methods": list(self.methods)}
        judged = {"severity": str(self.severity), "message": texts.message}
        return plain | judged | {"case": self.case, "rows": list(self.rows), "count": self.count}


def format_part(code: str, names: Iterable[str], places: Mapping[str, Any], words: Words) -> str:
    """Sentences of a code, one after the other; a name with a dot is a key that several codes share."""
    return words.join(say(name if "." in name else f"check.{code}.{name}", **places) for name in names if name)


Look = Callable[[Any], Iterable[Finding] | Finding]
L = TypeVar("L", bound=Look)


@dataclass(frozen=True)
class Check:
    """A function that looks at a subject, its codes with the gravest severity of each, and its limits."""

    subject: Subject
    worst: Mapping[str, Severity]
    limits: Mapping[str, Any]
    look: Look

    def run(self, evidence: Any) -> Iterator[Finding]:
        """Its findings, with the code where it has one, and its limits for the sentences."""
        found = self.look(evidence)
        for one in [found] if isinstance(found, Finding) else found:
            code = one.code or next(iter(self.worst))
            if one.severity.rank < self.worst[code].rank:
                raise AssertionError(f"{code} is {one.severity}, and registered as {self.worst[code]} at worst")
            yield replace(
                one, code=code, places={**self.limits, **one.places}, study=self.subject is Subject.STUDY
            )


CHECKS: list[Check] = []


def check(subject: Subject, *, limits: Mapping[str, Any] | None = None, **worst: Severity) -> Callable[[L], L]:
    """Register a function under its codes; a code that was merged into another is not used again."""
    taken = {code for one in CHECKS if one.subject is subject for code in one.worst}
    for code in worst:
        if code in RETIRED or code in taken:
            raise ValueError(f"{code} is {'retired' if code in RETIRED else 'registered already'}")

    def register(look: L) -> L:
        CHECKS.append(Check(subject, worst, limits or {}, look))
        return look

    return register


def run_checks(subject: Subject, evidence: Any) -> Iterator[Finding]:
    """Findings of all checks of a subject."""
    for one in CHECKS:
        if one.subject is subject:
            yield from one.run(evidence)


def list_codes() -> dict[str, list[Check]]:
    """Every code of the checks that are loaded, in order, with those that use it."""
    codes = sorted({code for one in CHECKS for code in one.worst})
    return {code: [one for one in CHECKS if code in one.worst] for code in codes}


@cache
def load_checks(package: str) -> None:
    """Import the modules of a package, which register their checks."""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


def find(
    severity: Severity,
    *names: str,
    code: str = "",
    case: str | None = None,
    rows: Iterable[Any] = (),
    count: int = 0,
    values: dict[str, Any] | None = None,
    do: str = "remedy",
    **places: Any,
) -> Finding:
    """A finding on data, whose sentences can ask for its count and its values too."""
    return Finding(
        code=code,
        severity=severity,
        say=names or ("found",),
        do=do,
        cases=() if case is None else (case,),
        rows=tuple(islice((int(row) for row in rows if row >= 0), MOST_ROWS)),  # a negative one has no number
        count=count,
        values=values or {},
        places={"count": count, **(values or {}), **places},
    )


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first, then by component, then by code."""
    return tuple(sorted(findings, key=lambda one: (one.severity.rank, one.case or "", one.code)))


def leave_said(findings: Iterable[Finding], others: Collection[Finding]) -> tuple[Finding, ...]:
    """Findings without those whose code and component another list has found already."""
    said = {(one.code, case) for one in others if one.found for case in one.cases}
    return tuple(one for one in findings if (one.code, one.case) not in said)
