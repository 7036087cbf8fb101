"""Every table of a report, in the order of the page: what a table holds is decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rekka.report import numbers
from rekka.report.document import Answer, Document
from rekka.report.table_cells import (
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
from rekka.report.table_data import (
    fixed_cell,
    tabulate_audit,
    tabulate_cases,
    tabulate_doctor,
    tabulate_files,
    tabulate_versions,
)
from rekka.report.table_models import (
    tabulate_calibration,
    tabulate_certificates,
    tabulate_coefficients,
    tabulate_counts,
    tabulate_models,
    tabulate_ratios,
    tabulate_stability,
    tabulate_typical,
    tabulate_years,
)
from rekka.report.table_trials import (
    tabulate_floor,
    tabulate_grid,
    tabulate_hypotheses,
    tabulate_losses,
    tabulate_methods,
    tabulate_presets,
    tabulate_selection,
    tabulate_trials,
    tabulate_verdicts,
)
from rekka.report.views import Cell, Column, TableView
from rekka.report.words import ENGLISH, Words, name_method

FOUND = ("issue", "tip")  # verdicts of checks with something to look at
ALWAYS = ("answer", "cases", "trials")  # shown when empty, with a sentence of their own

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
        *([] if words.lang == ENGLISH else [make.coded("reason", "choice")]),  # the sentence after it is English
        make.text("why", english=True),
        optional(make.text("remark", lambda one: one.seen or one.remark, english=True)),
    )
    level = numbers.show_level(document.study.confidence)
    key = "answer" if any(one.accuracy_low is not None for one in document.answers) else "answer_unconfirmed"
    return build_table("answer", fields, document.answers, words, key=key, level=level)


def _name_answer(answer: Answer, words: Words) -> Cell:
    if answer.method is None:
        return Cell(None, words("cell.no_choice"), faint=True)
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
        Field(Column("title", words("column.title")), lambda one: fixed_cell(one, "check", "title", words)),
        make.names("cases"),
        make.text("explanation", english=True),
        Field(Column("remedy", words("column.remedy")), lambda one: fixed_cell(one, "check", "remedy", words)),
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
