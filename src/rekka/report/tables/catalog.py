"""Every table of a report, in the order of the page."""

from __future__ import annotations

from dataclasses import replace

from rekka.report.document import Document
from rekka.report.tables import models, overview, study
from rekka.report.text import Words
from rekka.report.views import TableView

ALWAYS = ("answer", "cases", "trials")  # shown when empty, with a sentence of their own
BEFORE_GRIDS = (
    study.ANSWER, study.FINDINGS, study.CASES, study.METHODS, study.SELECTION, study.LOSSES, study.FLOOR,
    study.VERDICTS,
)  # fmt: skip
AFTER_GRIDS = (
    study.TRIALS, study.PRESETS, study.HYPOTHESES, overview.BACKTESTS, models.CALIBRATION, models.COUNTS,
    models.STABILITY,
    models.MODELS, models.CERTIFICATES, models.COEFFICIENTS, models.RATIOS, models.YEARS, models.TYPICAL,
    models.NETWORK, models.NETWORK_CASES, models.RISKS, models.UNSEEN, models.ASIDE, models.PASSAGES,
    models.FORECAST, models.EFFECTS, models.MATRICES, study.AUDIT, study.DOCTOR, study.FILES, study.VERSIONS,
)  # fmt: skip


def list_tables(document: Document, words: Words) -> tuple[TableView, ...]:
    """Every table that has a row, in the order of the page; a few say in a sentence that they have none."""
    presets = dict.fromkeys(trial.preset for trial in document.trials)
    found = [
        *(table.view(document, words) for table in BEFORE_GRIDS),
        *(study.tabulate_grid(document, preset, words) for preset in presets),
        *(table.view(document, words) for table in AFTER_GRIDS),
    ]
    return tuple(_explain_empty(table, words) for table in found if table.rows or table.name in ALWAYS)


def _explain_empty(table: TableView, words: Words) -> TableView:
    return table if table.rows else replace(table, note=words(f"table.{table.name}.empty"))
