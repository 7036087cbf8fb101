"""The tables of what came in: the cases, the records, the data doctor's findings, files and versions.

The tables of trials: methods, choices, every trial, the two presets, hypotheses (the paper's, and more).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rekka.checks.engine import format_part
from rekka.core.language import current
from rekka.report import text as numbers
from rekka.report.document import Document, HypothesisPart, OutcomePart, SelectionPart, Told, TrialPart
from rekka.report.tables.cells import (
    ACCURACY,
    COUNT,
    FIGURE,
    FINE_SHARE,
    LIKELIHOOD,
    LOSS,
    LOSS_DIFFERENCE,
    MEDIAN,
    ONE_DECIMAL,
    SECONDS,
    TINY,
    Compound,
    CompoundCell,
    Field,
    Fields,
    Form,
    build_table,
    coded_cell,
    optional,
    tell_penalised,
)
from rekka.report.text import MISSING, Words, join_sentences, name_method
from rekka.report.views import Cell, Column, Row, TableView

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
    return Cell(english, format_part(current(finding.code), names, finding.told, words))


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


def tabulate_methods(document: Document, words: Words) -> TableView:
    """One line a method and preset (paper, Table method-summary)."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.method(),
        make.number("trials", COUNT),
        make.number("converged", COUNT),
        make.number("certified", COUNT),
        make.number("selected", COUNT),
        make.number("pareto", COUNT),
        make.number("mean_accuracy", ACCURACY),
        make.number("median_seconds", SECONDS, unit="seconds"),
        make.number("median_seconds_low", SECONDS, unit="seconds"),
        make.number("median_iterations", MEDIAN),
        make.number("at_floor_share", FINE_SHARE),
    )
    told = (words("table.methods.note"), tell_penalised(document.study.methods, words))
    table = build_table("methods", fields, document.methods, words, note=join_sentences(told, words))
    return _show_of_all(table, ("converged", "certified"))


def _show_of_all(table: TableView, keys: Sequence[str]) -> TableView:
    """Counts as '9/10' for a person; the number of trials has its own column."""
    places = {column.key: place for place, column in enumerate(table.columns)}
    rows = []
    for row in table.rows:
        cells = list(row.cells)
        total = cells[places["trials"]].text
        for key in keys:
            one = cells[places[key]]
            text = MISSING if one.value is None else f"{one.text}/{total}"
            cells[places[key]] = Cell(one.value, text)
        rows.append(Row(tuple(cells), row.case))
    return TableView(table.name, table.title, table.columns, tuple(rows), table.note)


def tabulate_selection(document: Document, words: Words) -> TableView:
    """What was chosen for each case, and why (paper, Table selection)."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.case(),
        Field(Column("chosen", words("column.chosen")), lambda one: _name_choice(one, words)),
        make.methods("selected_methods"),
        make.methods("pareto_methods"),
        make.counted("eligible", "trials"),
        make.coded("judged_on", "rows"),
        make.why(),
    )
    items = [
        SimpleNamespace(**dict(one), selected_methods=one.selected, pareto_methods=one.pareto)
        for one in document.selection
    ]
    return build_table("selection", fields, items, words, key=f"selection_{document.study.rule}")


def _name_choice(one: SelectionPart, words: Words) -> Cell:
    if one.chosen is None:
        return Cell(None, words("cell.later" if one.judged_on is None else "cell.no_choice"))
    return Cell(one.chosen, name_method(one.chosen, words), strong=True)


def tabulate_losses(document: Document, words: Words) -> TableView:
    """The log loss of what was chosen, of the lowest, and without covariates."""
    make = Fields(words)
    plain = {case.case: case.no_covariates_log_loss for case in document.cases}
    fields = (
        make.preset(),
        make.case(),
        make.method("chosen"),
        make.coded("judged_on", "rows"),
        make.number("log_loss", LOSS, unit="nats"),
        make.number("lowest_log_loss", LOSS, unit="nats"),
        make.method("lowest_method"),
        make.number("no_covariates_log_loss", LOSS, lambda one: plain.get(one.case), unit="nats"),
    )
    chosen = (one for one in document.selection if one.log_loss is not None)
    return build_table("losses", fields, chosen, words)


def tabulate_floor(document: Document, words: Words) -> TableView:
    """Methods of the Pareto set with a far worse log loss (paper, Table boxcox-logloss)."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.case(),
        make.method(),
        make.number("accuracy", ACCURACY),
        make.number("log_loss", LOSS, unit="nats"),
        _range(make, "alternatives", "alternatives_low", "alternatives_high", LOSS, unit="nats"),
        _range(make, "ratio", "ratio_low", "ratio_high", ONE_DECIMAL),
        make.number("at_floor_share", FINE_SHARE),
    )
    return build_table("floor", fields, document.floor, words)


def _range(make: Fields, key: str, low: str, high: str, form: Form, *, unit: str = "") -> Field:
    """'1.398 to 1.401' for a person, two columns for a file."""
    ends = tuple(make.number(name, form, unit=unit) for name in (low, high))
    first = ends[0].column
    column = Compound(
        key, make.words(f"column.{key}"), "number", first.unit, parts=tuple(one.column for one in ends)
    )

    def cell(item: object) -> Cell:
        values = (getattr(item, low), getattr(item, high))
        return CompoundCell(values[0], numbers.show_range(*values, form.show, make.words), parts=values)

    return Field(column, cell)


def tabulate_verdicts(document: Document, words: Words) -> TableView:
    """What the rule says of every method."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.case(),
        make.method(strong=lambda one: one.kept),
        make.mark("kept"),
        make.coded("fell_at", "step", lambda one: one.step),
        make.number("accuracy", ACCURACY),
        make.number("log_loss", LOSS, unit="nats"),
        optional(make.estimate("difference", LOSS_DIFFERENCE, ("difference", "low", "high"), unit="nats")),
        optional(make.number("bridges", COUNT)),
        optional(make.counted("certified_draws", "drawn")),
        optional(make.method("rival")),
        make.why(),
    )
    items = [SimpleNamespace(**dict(one), certified_draws=one.certified) for one in document.verdicts]
    table = build_table("verdicts", fields, items, words)
    shown = {column.key for column in table.columns}
    told = [table.note]
    if "difference" in shown:
        level = numbers.show_level(document.study.confidence)
        told.append(words("table.verdicts.difference", level=level))
    if "certified_draws" in shown:
        told.append(words("table.verdicts.certified_draws"))
    return replace(table, note=join_sentences(told, words))


def tabulate_grid(document: Document, preset: str, words: Words) -> TableView:
    """Cases by methods: accuracy / seconds of every trial of a preset (paper, Table appendix-full)."""
    trials = {(one.case, one.method): one for one in document.trials if one.preset == preset}
    cases = dict.fromkeys([*(one.case for one in document.cases), *(case for case, _ in trials)])
    methods = dict.fromkeys([*document.study.methods, *(method for _, method in trials)])
    columns = (Column("case", words("column.case")), *(_grid_column(method, words) for method in methods))
    rows = tuple(
        Row((Cell(case, case), *(_grid_cell(trials.get((case, one)), words) for one in methods)), case)
        for case in cases
    )
    values = {"preset": words.get(f"preset.{preset}", preset)}
    title, note = (words(f"table.trials_grid.{part}", **values) for part in ("title", "note"))
    return TableView(f"trials-{preset}", title, columns, rows, note)


def _grid_column(method: str, words: Words) -> Compound:
    name = name_method(method, words)
    titles = {key: words(f"column.{key}_of", method=name) for key in ("accuracy", "seconds")}
    parts = (
        Column(f"{method}_accuracy", titles["accuracy"], "number", form=ACCURACY.workbook),
        Column(f"{method}_seconds", titles["seconds"], "number", words("unit.seconds"), SECONDS.workbook),
    )
    return Compound(method, name, "number", parts=parts)


def _grid_cell(trial: TrialPart | None, words: Words) -> Cell:
    """What failed, or could not be scored, is a dash; what was not run yet is told."""
    if trial is None:
        return CompoundCell(None, words("cell.not_run"), faint=True, parts=(None, None))
    if not trial.converged or trial.accuracy is None:
        return CompoundCell(None, MISSING, faint=True, parts=(None, None))
    shown = words(
        "cell.pair",
        first=numbers.show_accuracy(trial.accuracy),
        second=numbers.show_seconds(trial.seconds),
    )
    return CompoundCell(trial.accuracy, shown, strong=trial.selected, parts=(trial.accuracy, trial.seconds))


def tabulate_trials(document: Document, words: Words) -> TableView:
    """Every trial, with all that is known of it."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.case(),
        make.method(strong=lambda one: one.selected, faint=lambda one: not one.eligible),
        make.coded("status", "status"),
        make.number("accuracy", ACCURACY),
        make.number("log_loss", LOSS, unit="nats"),
        make.number("macro_recall", ACCURACY),
        make.number("brier", ACCURACY),
        make.number("rps", ACCURACY),
        make.coded("judged_on", "rows"),
        make.number("scored", COUNT),
        make.number("at_floor", COUNT),
        make.number("seconds", SECONDS, unit="seconds"),
        make.number("iterations", COUNT),
        make.number("evaluations", COUNT),
        make.number("log_likelihood", LIKELIHOOD, unit="nats"),
        make.number("decrement", TINY, unit="nats"),
        make.number("condition_number", FIGURE),
        make.mark("converged"),
        make.mark("certified"),
        make.mark("pareto"),
        make.mark("selected"),
        make.text("reason", english=True),
    )
    return build_table("trials", fields, document.trials, words)


def tabulate_presets(document: Document, words: Words) -> TableView:
    """The paper's conditions beside the exact ones, and the cause of the difference."""
    make = Fields(words)
    fields = (
        make.case(),
        make.method(),
        make.coded("paper_status", "status"),
        make.coded("exact_status", "status"),
        make.number("paper_log_likelihood", LIKELIHOOD, unit="nats"),
        make.number("exact_log_likelihood", LIKELIHOOD, unit="nats"),
        make.number("short_by", TINY, unit="nats"),
        make.number("paper_iterations", COUNT),
        make.number("exact_iterations", COUNT),
        make.number("paper_log_loss", LOSS, unit="nats"),
        make.number("exact_log_loss", LOSS, unit="nats"),
        make.coded("cause", "cause"),
    )
    return build_table("presets", fields, document.presets, words)


def tabulate_hypotheses(document: Document, words: Words) -> TableView:
    """The paper's hypotheses, judged on these trials."""
    make = Fields(words)

    def claim(one: HypothesisPart) -> Cell:
        cell = coded_cell(one.code, "claim", words)
        return Cell(one.claim, one.claim, english=True) if cell.english else Cell(one.claim, cell.text)

    fields = (
        make.preset(),
        make.text("code"),
        Field(Column("claim", words("column.claim")), claim),
        make.coded("verdict", "hypothesis"),
        make.text("evidence", english=True),
    )
    return build_table("hypotheses", fields, document.hypotheses, words)
