"""Tables of a study: answer, findings, cases, records, trials, choices, presets, hypotheses, provenance."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from rekka.checks.engine import format_part
from rekka.core.language import current
from rekka.report import text as numbers
from rekka.report.document import (
    NOT_YET,
    Answer,
    BothPart,
    CasePart,
    DoctorPart,
    Document,
    FindingPart,
    FloorPart,
    MethodPart,
    OutcomePart,
    SelectionPart,
    Told,
    VerdictPart,
)
from rekka.report.tables.cells import (
    FORMS,
    Table,
    coded_cell,
    counted,
    estimate,
    explain_penalised,
    join_row,
    leave_columns,
    mark_cell,
    name_methods,
    optional,
    others,
    sentence_cell,
    span,
    special,
    text_cell,
)
from rekka.report.text import MISSING, Words, name_method
from rekka.report.views import Cell, Column, Row, TableView
from rekka.study.hypotheses import Hypothesis
from rekka.study.tables import TrialRow

FOUND = ("issue", "tip")  # verdicts of checks with something to look at
PAPER = "paper"  # the preset of the paper's conditions
GOLDEN = "golden"  # rows that an answer is scored on, where a look was taken
# Columns of the answer that compare with the model without covariates: without any, it is that model.
WITHOUT_COVARIATES = ("no_covariates_log_loss", "no_covariates_difference")
# Reasons of the audit that have a name or a figure in them: their pattern, and the words they have.
_PATTERNS = (
    (re.compile(r"(?P<name>.+) is missing"), "reason.is_missing"),
    (re.compile(r"more than (?P<years>\S+) years apart"), "reason.gap"),
)


def is_judged(answer: Answer) -> bool:
    """Whether an answer has only the scores of the rows that chose it: confirmation rows were not looked at."""
    return answer.method is not None and (answer.scored_on != GOLDEN or answer.rows is None)


def _key_answer(document: Document) -> str:
    looked = any(one.rows is not None for one in document.answers)
    return "answer" if looked or not any(one.method for one in document.answers) else "answer_unconfirmed"


def _note_answer(document: Document, words: Words) -> Iterator[str]:
    """Of which rows the scores are, and the meaning of the columns that are there."""
    chosen = [one for one in document.answers if one.method]
    judged = [one for one in chosen if is_judged(one)]
    if not chosen or len(judged) == len(chosen):
        yield words(f"table.answer.{'unconfirmed' if chosen else 'nothing'}")
        return
    if any(one.accuracy_low is not None for one in chosen):
        yield words("table.answer.brackets", level=numbers.show_level(document.study.confidence))
    if any(one.persistence_difference is not None for one in chosen):
        yield words("table.answer.accuracy_difference")
    if document.study.covariates and any(one.no_covariates_difference is not None for one in chosen):
        yield words("table.answer.loss_difference")
    yield words("table.answer.confirmed")
    if judged:
        yield words("table.answer.mixed")


def _leave_covariates(table: TableView, document: Document, words: Words) -> TableView:
    return table if document.study.covariates else leave_columns(table, WITHOUT_COVARIATES)


def _answer_cell(answer: Answer, words: Words) -> Cell:
    if answer.method is None:
        later = answer.reason == NOT_YET
        return Cell(None, words("cell.later" if later else "cell.no_choice"), faint=True)
    name = name_method(answer.method, words)
    if answer.same_model:
        name = words("cell.same_model", method=name, others=name_methods(answer.same_model, words))
    return Cell(answer.method, name, strong=True)


def _confirmed_cell(answer: Answer, words: Words) -> Cell:
    return mark_cell(None if answer.method is None else answer.confirmed, words)


def _choice_cell(one: SelectionPart, words: Words) -> Cell:
    if one.chosen is None:
        return Cell(None, words("cell.later" if one.judged_on is None else "cell.no_choice"))
    return Cell(one.chosen, name_method(one.chosen, words), strong=True)


def _reason_cell(one: OutcomePart, words: Words) -> Cell:
    for pattern, key in _PATTERNS:
        found = pattern.fullmatch(one.reason)
        if found:
            places = {name: words.covariate(text) for name, text in found.groupdict().items()}
            return Cell(one.reason, words(key, **places))
    return coded_cell(one.reason, "reason", words)


def _method_cell(one: MethodPart, words: Words) -> Cell:
    """A method; with it those that are the same model."""
    name = name_method(one.method, words)
    if one.also:
        spread = f"{one.spread or 0.0:.0e}"
        name = words("cell.also", method=name, others=name_methods(one.also, words), spread=spread)
    return Cell(one.method, name)


def _claim_cell(one: Hypothesis, words: Words) -> Cell:
    cell = coded_cell(one.code, "claim", words)
    return Cell(one.claim, one.claim, english=True) if cell.english else Cell(one.claim, cell.text)


def finding_cell(finding: Told, part: str, words: Words) -> Cell:
    """A text of a finding in the page's language; English where a document of an earlier version has no other."""
    english: str = getattr(finding, part)
    if not english:
        return Cell(None, MISSING)
    names = {"title": ("title",), "remedy": (finding.do,)}.get(part, finding.say)
    if part != "title" and not finding.say:
        return sentence_cell(english, words)
    return Cell(english, format_part(current(finding.code), names, finding.told, words))


def _finding(part: str) -> Any:
    """The column of a finding's title, of what was found, or of its remedy."""
    return special(part, lambda one, words: finding_cell(one, part, words))


def _note_verdicts(document: Document, words: Words) -> Iterator[str]:
    yield words("table.verdicts.note")
    if any(one.difference is not None for one in document.verdicts):
        yield words("table.verdicts.difference", level=numbers.show_level(document.study.confidence))
    if any(one.certified is not None for one in document.verdicts):
        yield words("table.verdicts.certified_draws")


def _list_losses(document: Document) -> Iterator[Any]:
    plain = {case.case: case.no_covariates_log_loss for case in document.cases}
    chosen = (one for one in document.selection if one.log_loss is not None)
    return (join_row(one, no_covariates_log_loss=plain.get(one.case)) for one in chosen)


def _list_files(document: Document) -> Iterator[tuple[str, str, str | None]]:
    """Key of the language files, name where that has none, digest."""
    yield from (("", name, digest) for name, digest in document.provenance.files.items())
    if document.provenance.rows_sha256:
        yield "cell.rows_of_study", "", document.provenance.rows_sha256


def _list_versions(document: Document) -> Iterator[tuple[str, str, Any]]:
    known = document.provenance
    for group, values in (("", known.versions), ("machine.", known.machine), ("seed.", known.seeds)):
        found = {name: value for name, value in values.items() if value is not None or not group}
        yield from ((group and group + name, name, value) for name, value in found.items())


NAME = partial(special, cell=lambda one, words: text_cell(words.get(one[0], one[1])))
VALUE = partial(special, cell=lambda one, _: text_cell(one[2]))

ANSWER = Table(
    "answer", Answer,
    "case",
    special("method", _answer_cell, "use"),
    special("confirmed", _confirmed_cell, kind="mark"),
    "scored_on rows? bridges?",
    estimate("accuracy"),
    "persistence_accuracy",
    optional(estimate("persistence_difference", ends="persistence", mark="beats_persistence")),
    estimate("log_loss"),
    "no_covariates_log_loss",
    optional(estimate("no_covariates_difference", ends="no_covariates", mark="beats_no_covariates")),
    "why",
    optional(special("remark", lambda one, words: sentence_cell(one.seen or one.remark, words))),
    rows=lambda document: document.answers, key=_key_answer, note=_note_answer, finish=_leave_covariates,
)  # fmt: skip
FINDINGS = Table(
    "findings", FindingPart,
    "code verdict", _finding("title"), "cases", _finding("explanation"), _finding("remedy"),
    rows=lambda document: (one for one in document.findings if one.verdict in FOUND),
)  # fmt: skip
CASES = Table(  # paper, Table cases
    "cases", CasePart,
    "case total train validation golden bridges n_states moves events_per_parameter judged_on",
    "persistence_accuracy no_covariates_accuracy no_covariates_log_loss constant? exploratory?",
    rows=lambda document: document.cases,
)  # fmt: skip
METHODS = Table(  # paper, Table method-summary
    "methods", MethodPart,
    "preset", special("method", _method_cell), "trials",
    counted("converged", "trials", alone=True),
    counted("certified", "trials", alone=True),
    "selected guarded=kept? pareto mean_accuracy median_seconds median_seconds_low median_iterations",
    "at_floor_share",
    rows=lambda document: (one for one in document.methods if one.same_as is None),
    note=lambda document, words: (words("table.methods.note"), explain_penalised(document.study.methods, words)),
)  # fmt: skip
SELECTION = Table(  # paper, Table selection
    "selection", SelectionPart,
    "preset case",
    special("chosen", _choice_cell),
    "selected_methods=selected pareto_methods=pareto",
    counted("eligible", "trials"),
    "judged_on why",
    rows=lambda document: document.selection,
    key=lambda document: f"selection_{document.study.rule}",
)  # fmt: skip
LOSSES = Table(
    "losses", (SelectionPart, CasePart),
    "preset case chosen judged_on log_loss lowest_log_loss lowest_method no_covariates_log_loss",
    rows=_list_losses,
)  # fmt: skip
FLOOR = Table(  # paper, Table boxcox-logloss
    "floor", FloorPart,
    "preset case method accuracy log_loss",
    span("alternatives", named=True),
    span("ratio", named=True),
    "at_floor_share",
    rows=lambda document: document.floor,
)  # fmt: skip
VERDICTS = Table(
    "verdicts", VerdictPart,
    "preset case method kept fell_at=step accuracy log_loss",
    optional(estimate("difference", ends="")),
    "bridges?",
    optional(counted("certified_draws", "drawn", "certified")),
    "rival? why",
    rows=lambda document: document.verdicts, strong=lambda one: one.kept, note=_note_verdicts,
)  # fmt: skip
TRIALS = Table(
    "trials", TrialRow,
    "preset case method status accuracy log_loss macro_recall brier rps judged_on scored at_floor seconds",
    "iterations evaluations log_likelihood decrement condition_number converged certified pareto selected",
    others(
        "eligible success message seconds_low seconds_high timings verdict maximum_exists shortfall starts cost "
        "positive_definite weakest_direction plateau_train plateau_golden log_loss_exact persistence_accuracy "
        "no_covariates_accuracy no_covariates_log_loss n_states train golden unsupported"
    ),
    "reason",
    rows=lambda document: document.trials, strong=lambda one: one.selected, faint=lambda one: not one.eligible,
)  # fmt: skip
PRESETS = Table(
    "presets", BothPart,
    "case method paper_status exact_status paper_log_likelihood exact_log_likelihood short_by paper_iterations",
    "exact_iterations paper_log_loss exact_log_loss cause",
    rows=lambda document: document.presets,
)  # fmt: skip
HYPOTHESES = Table(
    "hypotheses", (),
    special("preset", lambda one, words: coded_cell(one.preset, "preset", words)),
    special("code", lambda one, _: text_cell(one.code)),
    special("claim", _claim_cell),
    special("verdict", lambda one, words: coded_cell(str(one.verdict), "hypothesis", words)),
    special("evidence", lambda one, words: sentence_cell(one.evidence, words)),
    rows=lambda document: document.hypotheses,
)  # fmt: skip
AUDIT = Table(
    "audit", OutcomePart,
    "outcome", special("reason", _reason_cell), "count",
    rows=lambda document: document.audit.outcomes,
)  # fmt: skip
DOCTOR = Table(
    "doctor", DoctorPart,
    "code severity case", _finding("title"), _finding("message"), _finding("remedy"),
    rows=lambda document: document.audit.findings,
)  # fmt: skip
FILES = Table("files", (), NAME("file"), VALUE("sha256"), rows=_list_files)
VERSIONS = Table("versions", (), NAME("item"), VALUE("version"), rows=_list_versions)


def select_as_paper(document: Document) -> Document:
    """The document with the paper's rule deciding what is selected under the paper's conditions.

    The guarded rule asks for certified fits, of which the paper's conditions have few or none: by it nothing of
    them would be selected. Its verdicts stay in the tables of choices and verdicts.
    """
    trials = tuple(
        one.model_copy(update={"selected": bool(one.pareto)}) if one.preset == PAPER else one
        for one in document.trials
    )
    methods = tuple(
        one.model_copy(update={"selected": one.pareto, "kept": one.selected}) if one.preset == PAPER else one
        for one in document.methods
    )
    return document.model_copy(update={"trials": trials, "methods": methods})


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


def _grid_column(method: str, words: Words) -> Column:
    name = name_method(method, words)
    parts = tuple(
        Column(f"{method}_{key}", words(f"column.{key}_of", method=name), "number", unit, FORMS[key].workbook)
        for key, unit in (("accuracy", ""), ("seconds", words("unit.seconds")))
    )
    return Column(method, name, "number", parts=parts)


def _grid_cell(trial: TrialRow | None, words: Words) -> Cell:
    """A dash where a trial failed or could not be scored; a trial that was not run yet is told."""
    if trial is None:
        return Cell(None, words("cell.not_run"), faint=True, parts=(None, None))
    if not trial.converged or trial.accuracy is None:
        return Cell(None, MISSING, faint=True, parts=(None, None))
    shown = words(
        "cell.pair",
        first=numbers.show_accuracy(trial.accuracy),
        second=numbers.show_seconds(trial.seconds),
    )
    return Cell(trial.accuracy, shown, strong=trial.selected, parts=(trial.accuracy, trial.seconds))
