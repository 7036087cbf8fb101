"""Every table of a report, in the order of the page: what a table holds is decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rekka.report import text as numbers
from rekka.report.document import NOT_YET, Answer, Document
from rekka.report.tables.cells import (
    ACCURACY,
    ACCURACY_DIFFERENCE,
    COUNT,
    LOSS,
    LOSS_DIFFERENCE,
    Field,
    Fields,
    build_table,
    name_methods,
    optional,
)
from rekka.report.tables.models import (
    tabulate_aside,
    tabulate_calibration,
    tabulate_certificates,
    tabulate_coefficients,
    tabulate_counts,
    tabulate_effects,
    tabulate_forecast,
    tabulate_matrices,
    tabulate_models,
    tabulate_network,
    tabulate_network_cases,
    tabulate_passages,
    tabulate_ratios,
    tabulate_risks,
    tabulate_stability,
    tabulate_typical,
    tabulate_years,
)
from rekka.report.tables.study import (
    finding_field,
    tabulate_audit,
    tabulate_cases,
    tabulate_doctor,
    tabulate_files,
    tabulate_floor,
    tabulate_grid,
    tabulate_hypotheses,
    tabulate_losses,
    tabulate_methods,
    tabulate_presets,
    tabulate_selection,
    tabulate_trials,
    tabulate_verdicts,
    tabulate_versions,
)
from rekka.report.text import Words, join_sentences, name_method
from rekka.report.views import Cell, Column, TableView

FOUND = ("issue", "tip")  # verdicts of checks with something to look at
GOLDEN = "golden"  # rows that an answer is scored on, where a look was taken
ALWAYS = ("answer", "cases", "trials")  # shown when empty, with a sentence of their own
# Columns of the answer that compare with the model without covariates: without any, it is that model.
WITHOUT_COVARIATES = ("no_covariates_log_loss", "no_covariates_difference")

Tabulate = Callable[[Document, Words], TableView]


def tabulate_answer(document: Document, words: Words) -> TableView:
    """What to use in each case, and how well it did."""
    make = Fields(words)
    fields = (
        make.case(),
        Field(Column("method", words("column.use")), lambda one: _name_answer(one, words)),
        make.mark("confirmed", lambda one: None if one.method is None else one.confirmed),
        make.coded("scored_on", "rows"),
        optional(make.number("rows", COUNT)),
        optional(make.number("bridges", COUNT)),
        make.estimate("accuracy", ACCURACY, ("accuracy", "accuracy_low", "accuracy_high")),
        make.number("persistence_accuracy", ACCURACY),
        optional(
            make.estimate(
                "persistence_difference",
                ACCURACY_DIFFERENCE,
                ("persistence_difference", "persistence_low", "persistence_high"),
                mark="beats_persistence",
            )
        ),
        make.estimate("log_loss", LOSS, ("log_loss", "log_loss_low", "log_loss_high"), unit="nats"),
        make.number("no_covariates_log_loss", LOSS, unit="nats"),
        optional(
            make.estimate(
                "no_covariates_difference",
                LOSS_DIFFERENCE,
                ("no_covariates_difference", "no_covariates_low", "no_covariates_high"),
                unit="nats",
                mark="beats_no_covariates",
            )
        ),
        make.why(),
        optional(make.text("remark", lambda one: one.seen or one.remark, english=True)),
    )
    looked = any(one.rows is not None for one in document.answers)
    key = "answer" if looked or not any(one.method for one in document.answers) else "answer_unconfirmed"
    note = _tell_answers(document, words)
    table = build_table("answer", fields, document.answers, words, key=key, note=note)
    return table if document.study.covariates else _leave_columns(table, WITHOUT_COVARIATES)


def _tell_answers(document: Document, words: Words) -> str:
    """The note: of what the scores are, and what is in the columns that are there."""
    chosen = [one for one in document.answers if one.method]
    judged = [one for one in chosen if is_judged(one)]
    if not chosen:
        return words("table.answer.nothing")
    if len(judged) == len(chosen):
        return words("table.answer.unconfirmed")
    found = []
    if any(one.accuracy_low is not None for one in chosen):
        found.append(words("table.answer.brackets", level=numbers.show_level(document.study.confidence)))
    if any(one.persistence_difference is not None for one in chosen):
        found.append(words("table.answer.accuracy_difference"))
    if document.study.covariates and any(one.no_covariates_difference is not None for one in chosen):
        found.append(words("table.answer.loss_difference"))
    found.append(words("table.answer.confirmed"))
    if judged:
        found.append(words("table.answer.mixed"))
    return join_sentences(found, words)


def is_judged(answer: Answer) -> bool:
    """Whether its scores are those of the rows that chose it, and of no look."""
    return answer.method is not None and (answer.scored_on != GOLDEN or answer.rows is None)


def _leave_columns(table: TableView, keys: Sequence[str]) -> TableView:
    keep = [place for place, column in enumerate(table.columns) if column.key not in keys]
    rows = tuple(replace(row, cells=tuple(row.cells[place] for place in keep)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in keep), rows=rows)


def _name_answer(answer: Answer, words: Words) -> Cell:
    if answer.method is None:
        later = answer.reason == NOT_YET
        return Cell(None, words("cell.later" if later else "cell.no_choice"), faint=True)
    name = name_method(answer.method, words)
    if answer.same_model:
        name = words("cell.same_model", method=name, others=name_methods(answer.same_model, words))
    return Cell(answer.method, name, strong=True)


def tabulate_findings(document: Document, words: Words) -> TableView:
    """What the checks found: issues and tips, the gravest first."""
    make = Fields(words)
    fields = (
        make.text("code"),
        make.coded("verdict", "verdict"),
        finding_field("title", words),
        make.names("cases"),
        finding_field("explanation", words),
        finding_field("remedy", words),
    )
    found = (one for one in document.findings if one.verdict in FOUND)
    return build_table("findings", fields, found, words)


FIRST: tuple[Tabulate, ...] = (
    tabulate_answer,
    tabulate_findings,
    tabulate_cases,
    tabulate_methods,
    tabulate_selection,
    tabulate_losses,
    tabulate_floor,
    tabulate_verdicts,
)
LAST: tuple[Tabulate, ...] = (
    tabulate_trials,
    tabulate_presets,
    tabulate_hypotheses,
    tabulate_calibration,
    tabulate_counts,
    tabulate_stability,
    tabulate_models,
    tabulate_certificates,
    tabulate_coefficients,
    tabulate_ratios,
    tabulate_years,
    tabulate_typical,
    tabulate_network,
    tabulate_network_cases,
    tabulate_risks,
    tabulate_aside,
    tabulate_passages,
    tabulate_forecast,
    tabulate_effects,
    tabulate_matrices,
    tabulate_audit,
    tabulate_doctor,
    tabulate_files,
    tabulate_versions,
)


def list_tables(document: Document, words: Words) -> tuple[TableView, ...]:
    """Every table that has a row, in the order of the page; a few say in a sentence that they have none."""
    presets = dict.fromkeys(trial.preset for trial in document.trials)
    found = [
        *(tabulate(document, words) for tabulate in FIRST),
        *(tabulate_grid(document, preset, words) for preset in presets),
        *(tabulate(document, words) for tabulate in LAST),
    ]
    return tuple(_tell_empty(table, words) for table in found if table.rows or table.name in ALWAYS)


def _tell_empty(table: TableView, words: Words) -> TableView:
    return table if table.rows else replace(table, note=words(f"table.{table.name}.empty"))
