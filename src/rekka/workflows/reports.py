"""``report_study``: the forecast of a study's inventory and the report, in its run folder; and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rekka.core.terminal import OnProgress, say_nothing
from rekka.report.document import Document
from rekka.report.report import PAGE, Report, write_report
from rekka.study.compare import Request, begin_study
from rekka.study.runner import RunOptions
from rekka.study.study import Study
from rekka.workflows.forecast import forecast_own_tables

PAPER_PAGE = "paper.html"
DEMO: dict[str, dict[str, Any]] = {"partition": {"scheme": "paper"}, "study": {"presets": ("both",)}}


def report_study(
    study: Study,
    run: Path,
    *,
    lang: str = "en",
    title: str | None = None,
    years: int | None = None,
    threshold: str | None = None,
    on_progress: OnProgress = say_nothing,
) -> tuple[Path, Document]:
    """Forecast the inventory of a run and write the report into its folder; return the page and its numbers.

    ``years`` and ``threshold`` are those of the forecast, as for ``forecast_inventory``.
    """
    asked = {"years": years, "threshold": threshold}
    given = {name: value for name, value in asked.items() if value is not None}
    why = forecast_own_tables(study, run, on_progress, **given)
    files = write_report(study, run / PAGE, lang=lang, title=title, no_forecast=why, on_progress=on_progress)
    page, numbers = files["page"]
    return page, Document.from_json(numbers.read_bytes(), numbers.name)


def begin_demo(folder: Path, run: Path, how: RunOptions) -> Study:
    """Compare four scalings in the components of a simulated inventory, under both presets."""
    return begin_study(Request([folder], options=DEMO), run, how)


def report_paper(document: Document, run: Path, lang: str = "en") -> Path:
    """Write the report for researchers beside the other: the paper's tables, figures and hypotheses first."""
    page = run / PAPER_PAGE
    Report(document, lang, reader="paper").write(page)
    return page
