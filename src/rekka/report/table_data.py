"""The tables of what came in: the cases, the records, the data doctor's findings, files and versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from rekka.checks.engine import tell_part
from rekka.core.codes import current
from rekka.report.document import Document, OutcomePart, Told
from rekka.report.numbers import MISSING
from rekka.report.table_cells import (
    ACCURACY,
    COUNT,
    LOSS,
    ONE_DECIMAL,
    Field,
    Fields,
    build_table,
    coded_cell,
    optional,
)
from rekka.report.views import Cell, Column, TableView
from rekka.report.words import Words

# reasons of the audit that have a name or a figure in them: their pattern, and the words they have
_PATTERNS = (
    (re.compile(r"(?P<name>.+) is missing"), "reason.is_missing"),
    (re.compile(r"more than (?P<years>\S+) years apart"), "reason.gap"),
)


def tabulate_cases(document: Document, words: Words) -> TableView:
    """Rows of each case and its baselines (paper, Table cases)."""
    make = Fields(words)
    fields = (
        make.case(),
        make.number("total", COUNT, lambda one: one.train + one.validation + one.golden, unit="rows"),
        make.number("train", COUNT, unit="rows"),
        make.number("validation", COUNT, unit="rows"),
        make.number("golden", COUNT, unit="rows"),
        make.number("bridges", COUNT),
        make.number("n_states", COUNT),
        make.number("moves", COUNT),
        make.number("events_per_parameter", ONE_DECIMAL),
        make.coded("judged_on", "rows"),
        make.number("persistence_accuracy", ACCURACY),
        make.number("no_covariates_accuracy", ACCURACY),
        make.number("no_covariates_log_loss", LOSS, unit="nats"),
        optional(make.names("constant")),
        optional(make.text("exploratory", english=True)),
    )
    return build_table("cases", fields, document.cases, words)


def tabulate_audit(document: Document, words: Words) -> TableView:
    """What became of every record of the input."""
    make = Fields(words)
    fields = (
        make.coded("outcome", "outcome"),
        Field(Column("reason", words("column.reason")), lambda one: _reason_cell(one, words)),
        make.number("count", COUNT),
    )
    return build_table("audit", fields, document.audit.outcomes, words)


def _reason_cell(one: OutcomePart, words: Words) -> Cell:
    for pattern, key in _PATTERNS:
        found = pattern.fullmatch(one.reason)
        if found:
            return Cell(one.reason, words(key, **found.groupdict()))
    return coded_cell(one.reason, "reason", words)


def tabulate_doctor(document: Document, words: Words) -> TableView:
    """What the data doctor found in the rows of the study."""
    make = Fields(words)
    fields = (
        make.text("code"),
        make.coded("severity", "severity"),
        make.case(),
        *(finding_field(part, words) for part in ("title", "message", "remedy")),
    )
    return build_table("doctor", fields, document.audit.findings, words)


def finding_field(part: str, words: Words) -> Field:
    """The column of a finding's title, of what was found, or of its remedy."""
    return Field(Column(part, words(f"column.{part}")), lambda one: finding_cell(one, part, words))


def finding_cell(finding: Told, part: str, words: Words) -> Cell:
    """A text of a finding in the page's language; English where a document of an earlier version has no other."""
    english: str = getattr(finding, part)
    if not english:
        return Cell(None, MISSING)
    names = {"title": ("title",), "remedy": (finding.do,)}.get(part, finding.say)
    if part != "title" and not finding.say:
        return Cell(english, english, english=True)
    return Cell(english, tell_part(current(finding.code), names, finding.told, words))


def tabulate_files(document: Document, words: Words) -> TableView:
    """The files that were read, and the rows that were used, by their digests."""
    make = Fields(words)
    fields = (make.text("file"), make.text("sha256"))
    items = [SimpleNamespace(file=name, sha256=sha256) for name, sha256 in document.provenance.files.items()]
    rows = document.provenance.rows_sha256
    if rows:
        items.append(SimpleNamespace(file=words("cell.rows_of_study"), sha256=rows))
    return build_table("files", fields, items, words)


def tabulate_versions(document: Document, words: Words) -> TableView:
    """What the study was run with: versions, machine, seeds."""
    make = Fields(words)
    fields = (make.text("item"), make.text("version"))
    return build_table("versions", fields, _list_versions(document, words), words)


def _list_versions(document: Document, words: Words) -> Iterator[Any]:
    known = document.provenance
    for name, version in known.versions.items():
        yield SimpleNamespace(item=name, version=version)
    for group, values in (("machine", known.machine), ("seed", known.seeds)):
        for name, value in values.items():
            if value is not None:
                yield SimpleNamespace(item=words.get(f"{group}.{name}", name), version=str(value))
