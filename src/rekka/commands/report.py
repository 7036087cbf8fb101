"""``rekka report``: a study as one page to hand over, and its figures and tables as files."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

import rekka
from rekka.commands import options
from rekka.commands.bars import show_progress
from rekka.commands.options import Flag, asks
from rekka.core.errors import count_of
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line

if TYPE_CHECKING:
    from rekka.report.document import Document
    from rekka.study.study import Study

PAGE = "report.html"
FLAGS = (
    Flag("--out", options.Place, "out", "FILE", f"The page to write. Default: RUN/{PAGE}."),
    Flag("--lang", str, "lang", "LANG", "Language of the page: en or ja.", "en"),
    Flag("--title", options.Text, "title", "TEXT", "What the study is of. Default: the table's name."),
    options.UNITS,
    Flag("--figures", options.Place, "figures", "DIR", "Write each figure here, as SVG, PNG and PDF."),
    Flag("--tables", options.Place, "tables", "DIR",
         "Write the tables here: CSV, an Excel workbook, LaTeX and Markdown."),
    Flag("--workbook", options.Place, "workbook", "FILE",
         "Write an Excel workbook, too: overview, members, components, matrices, all tables, run record."),
    Flag("--for", str, "reader", "READER",
         "Who prints the page: director (the overview on two sheets), engineer (and two for each component), "
         "paper (the study first, as the paper has it) or full.", "director"),
    Flag("--pdf", options.Place, "pdf", "FILE", "Print the page for its reader as PDF, by the installed browser."),
    Flag("--markdown", options.Place, "markdown", "FILE", "Write the whole report as Markdown, too."),
    Flag("--quick", bool, "calibrate", None, "Leave out calibration and the network of the study's members.",
         read=operator.not_),
)  # fmt: skip


@asks(*FLAGS)
def report(run: options.Run, asked: options.Asked, as_json: options.AsJson = False) -> None:
    """Write a study as one page: how many, when, which bridges and how far to trust it; then all the rest.

    The page is one file that needs no network. Its numbers are written as JSON next to it. The same run gives the
    same page, byte for byte.

    For example:

      rekka report run

      rekka report run --lang ja --out report-ja.html

      rekka report run --figures figures --tables tables

      rekka report run --for director --pdf summary.pdf
    """
    with show_progress(new_console(stderr=True)) as on_progress:
        files = rekka.write_report(run, **asked, on_progress=on_progress)
    if as_json:
        echo_json({kind: [str(file) for file in some] for kind, some in files.items()})
        return
    console = new_console()
    print_place(console, files["page"][0])
    for kind in ("figures", "tables", "workbook", "markdown", "pdf"):
        if kind in files:
            print_line(console, f"{kind}: {count_of(len(files[kind]), 'file')}, {asked[kind]}")


def report_run(errors: Console, study: Study, run: Path) -> tuple[Path, Document]:
    """Forecast the inventory of a run and write the report into its folder; return the page and its numbers."""
    from rekka.workflows.reports import report_study

    with show_progress(errors) as on_progress:
        return report_study(study, run, on_progress=on_progress)


def print_place(console: Console, page: Path) -> None:
    """Print where the report is, and how large."""
    print_line(
        console,
        f"The report is in {page} ({page.stat().st_size / 1e6:.1f} MB): open it in a browser. Its numbers are in "
        f"{page.with_suffix('.json').name} beside it.",
    )
