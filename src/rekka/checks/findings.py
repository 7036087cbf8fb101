"""What the data doctor looks at and what it says: rows of a case, numbered findings, the diagnosis.

Codes are stable. R0xx is about reading, R1xx states and transitions, R2xx intervals, R3xx covariates, R4xx what
the model can learn, R5xx the partition. Severities are three: a stop is a refusal or a fit that will fail, a
warning is something to look at before the results are believed, a note is worth knowing.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import count_of

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

VERSION = 1  # of the plain data that ``Diagnosis.to_dict`` gives
MOST_ROWS = 20  # row numbers kept with a finding

CODES = {
    "R001": "How the table was read",
    "R002": "What became of the records",
    "R003": "Bridge or case without a name",
    "R101": "States that are not states",
    "R102": "Upward moves set aside",
    "R103": "Upward moves in the table",
    "R104": "A state that no row leaves",
    "R105": "A state that is never seen",
    "R106": "Few rows leave a state",
    "R107": "Rows that start in the worst state",
    "R108": "Nothing moves",
    "R109": "More moves go up than down",
    "R110": "Many jumps over several states",
    "R111": "Index values of exactly 0 or 100",
    "R201": "Intervals that are not above 0",
    "R202": "Very short intervals",
    "R203": "Very long intervals",
    "R204": "All intervals are equal",
    "R205": "Intervals of very different length",
    "R301": "Covariate values are missing",
    "R302": "A covariate that does not vary",
    "R303": "Covariates that say the same",
    "R304": "Covariates that say nearly the same",
    "R305": "Impossible covariate values",
    "R306": "Covariate values far from the rest",
    "R307": "Covariates with a long upper tail",
    "R308": "Covariates with a long lower tail",
    "R309": "Covariates that Box-Cox cannot take",
    "R401": "Few events per parameter",
    "R402": "No finite maximum",
    "R403": "Perhaps no finite maximum",
    "R404": "A small case",
    "R501": "Held-out rows outside the training range",
    "R502": "Held-out rows that Box-Cox cannot take",
    "R503": "Held-out states that were not trained",
    "R504": "A case without training rows",
    "R505": "A case without held-out rows",
    "R506": "Bridges that train and are held out",
}


@dataclass(frozen=True, eq=False)
class CaseRows:
    """Usable rows of one case: states 0-based, years, raw covariates x (n, p); ``row`` as the user counts."""

    name: str
    covariates: tuple[str, ...]
    row: Ints
    start: Ints
    end: Ints
    dt: Array
    x: Array

    @property
    def n_states(self) -> int:
        """K, the worst state seen."""
        return int(self.end.max()) + 1

    @property
    def departures(self) -> Ints:
        """Rows that left each state (start <= k < end), (K-1,)."""
        return np.array([np.sum((self.start <= k) & (self.end > k)) for k in range(self.n_states - 1)], np.int64)

    @property
    def seen(self) -> Mask:
        """Whether some row starts or ends in each state, (K,)."""
        return np.isin(np.arange(self.n_states), np.concatenate([np.unique(self.start), np.unique(self.end)]))

    def with_covariates(self, names: tuple[str, ...]) -> CaseRows:
        """The same rows with some of the covariates."""
        columns = [self.covariates.index(name) for name in names]
        return replace(self, covariates=names, x=self.x[:, columns])


class Severity(enum.StrEnum):
    """How much a finding matters, the worst first."""

    STOP = "stop"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing found: what, how much of it, where, and what to do.

    ``count`` is the number of rows or records concerned, or of states or covariates where ``rows`` is empty.
    ``rows`` are row numbers, at most 20 of them. ``values`` holds the figures as plain data, not rounded.
    """

    code: str
    severity: Severity
    message: str
    remedy: str
    case: str | None = None
    rows: tuple[int, ...] = ()
    count: int = 0
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The heading of the code."""
        return CODES[self.code]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "case": self.case,
            "title": self.title,
            "message": self.message,
            "remedy": self.remedy,
            "rows": list(self.rows),
            "count": self.count,
            "values": self.values,
        }


@dataclass(frozen=True)
class Diagnosis:
    """All findings, the worst first, then by case; ``facts`` describes the table, ``notes`` its reading."""

    findings: tuple[Finding, ...]
    facts: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether something has to be put right before a fit."""
        return self.count(Severity.STOP) > 0

    def count(self, severity: Severity) -> int:
        """The number of findings of one severity."""
        return sum(finding.severity is severity for finding in self.findings)

    def headline(self) -> str:
        """The diagnosis in one sentence."""
        stops, warnings, notes = (self.count(severity) for severity in Severity)
        if not stops and not warnings:
            facts = self.facts
            sizes = [count_of(facts["rows"], "transition"), count_of(facts["bridges"], "bridge")]
            return (
                f"Fine: {' of '.join(sizes)} in {count_of(len(facts['cases']), 'case')}, nothing to worry about."
            )
        parts = [f"{count_of(stops, 'finding')} stop{'s' if stops == 1 else ''} the work"] if stops else []
        parts += [count_of(number, word) for number, word in ((warnings, "warning"), (notes, "note")) if number]
        return f"{', '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON and for a report: numbers as they are, no markup."""
        return {
            "version": VERSION,
            "headline": self.headline(),
            "stops": self.stops,
            "findings": [finding.to_dict() for finding in self.findings],
            "facts": self.facts,
            "notes": list(self.notes),
        }

    def table(self) -> pl.DataFrame:
        """One line for each finding."""
        schema = pl.Schema(dict.fromkeys(("code", "severity", "case", "title", "message", "remedy"), pl.String()))
        schema |= {"count": pl.Int64(), "rows": pl.List(pl.Int64)}
        lines = (finding.to_dict() for finding in self.findings)
        return pl.DataFrame([{name: line[name] for name in schema} for line in lines], schema=schema)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first, then by case, then by code."""
    rank = {severity: place for place, severity in enumerate(Severity)}
    return tuple(sorted(findings, key=lambda f: (rank[f.severity], f.case or "", f.code)))


def first_rows(rows: Iterable[Any]) -> tuple[int, ...]:
    """The row numbers a finding keeps; a negative one stands for a row without a number."""
    return tuple(islice((int(row) for row in rows if row >= 0), MOST_ROWS))
