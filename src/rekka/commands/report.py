"""``rekka report``: a study as one page to hand over, and its figures and tables as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import rekka
from rekka.commands.bars import new_bar
from rekka.commands.data import AsJson
from rekka.commands.reading import Units, read_units
from rekka.core.errors import BadOption, count_of
from rekka.core.files import make_folder, refuse_file, refuse_inputs, write_text
from rekka.core.terminal import echo_json, new_console

if TYPE_CHECKING:
    from rekka.report.report import Report
    from rekka.study.study import Study

PAGE = "report.html"
Lang = Annotated[str, typer.Option(metavar="LANG", help="Language of the page: en or ja.")]


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help=f"The page to write. Default: RUN/{PAGE}.")
    ] = None,
    lang: Lang = "en",
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the study is of. Default: the table's name.")
    ] = None,
    unit: Units = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each figure here, as SVG, PNG and PDF.")
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the tables here: CSV, an Excel workbook, LaTeX and Markdown."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the whole report as Markdown, too.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out calibration and the network of the study's members.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a study as one page: the answer first, then findings, figures, tables, models, and how to repeat it.

    The page is one file that needs no network: hand it over, print it, keep it. Beside it stand its numbers as
    JSON. The same run gives the same page, byte for byte.

    For example:

      rekka report run

      rekka report run --lang ja --out report-ja.html

      rekka report run --figures figures --tables tables
    """
    errors = new_console(stderr=True)
    page = out or run / PAGE
    _refuse(run, page, figures, tables, markdown)
    made = make_report(
        errors, rekka.load_study(run), lang=lang, title=title, units=read_units(unit), calibrate=not quick
    )
    _refuse_filled(made, page, figures, tables, markdown)
    files: dict[str, list[Path]] = {"page": _write_page(errors, made, page)}
    if figures is not None:
        files["figures"] = _write_figures(errors, made, figures)
    if tables is not None:
        files["tables"] = list(made.write_tables(tables))
    if markdown is not None:
        files["markdown"] = [_write_markdown(made, figures, markdown)]
    if as_json:
        echo_json({kind: [str(file) for file in some] for kind, some in files.items()})
        return
    console = new_console()
    print_place(console, page)
    for kind, place in (("figures", figures), ("tables", tables), ("markdown", markdown)):
        if place is not None:
            told = f"{kind}: {count_of(len(files[kind]), 'file')}, {place}"
            console.print(told, highlight=False, markup=False, soft_wrap=True)


def _refuse(run: Path, page: Path, figures: Path | None, tables: Path | None, markdown: Path | None) -> None:
    """Refuse, before the work, to write over what is no report."""
    from rekka.report.report import find_places, refuse_no_report
    from rekka.study.store import list_own, refuse_run

    refuse_no_report(find_places(page))
    for folder in (figures, tables):
        if folder is not None:
            refuse_file(folder)
            refuse_run(folder)
    if markdown is not None:
        if markdown.is_dir():
            raise BadOption(f"{markdown.name} is a folder; a file is needed.", option="markdown")
        refuse_inputs([markdown], list_own(run))


def _refuse_filled(
    made: Report, page: Path, figures: Path | None, tables: Path | None, markdown: Path | None
) -> None:
    """Refuse, before the first file is written, files that rekka did not write and two results in one file."""
    from rekka.report.exports import list_table_files
    from rekka.report.report import find_places, list_figure_files, refuse_figures, refuse_tables

    outputs = [*find_places(page), *([] if markdown is None else [markdown])]
    if figures is not None:
        refuse_figures(figures, made.figures)
        outputs += list_figure_files(made.figures, figures)
    if tables is not None:
        refuse_tables(tables, made.tables)
        outputs += list_table_files(made.tables, tables)
    refuse_inputs(outputs, [])


def make_report(errors: Console, study: Study, **options: Any) -> Report:
    """Summarize a study, with a bar for the test of each chosen model."""
    with new_bar(errors) as progress:
        task = progress.add_task("", total=None, what="Calibration")
        return rekka.make_report(
            study,
            on_case=lambda case, done, planned: progress.update(
                task, description=case, completed=done, total=planned
            ),
            **options,
        )


def report_run(errors: Console, study: Study, run: Path) -> Path:
    """Write the report of a run into its folder: the end of a study."""
    _write_page(errors, make_report(errors, study), run / PAGE)
    return run / PAGE


def print_place(console: Console, page: Path) -> None:
    """Where the report is, and how large."""
    size = page.stat().st_size / 1e6
    console.print(
        f"The report is in {page} ({size:.1f} MB): open it in a browser. Its numbers are in "
        f"{page.with_suffix('.json').name} beside it.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _write_page(errors: Console, made: Report, page: Path) -> list[Path]:
    with errors.status("Drawing the report ..."):
        return list(made.write(page))


def _write_figures(errors: Console, made: Report, folder: Path) -> list[Path]:
    with new_bar(errors) as progress:
        task = progress.add_task("", total=None, what="Figures")
        return list(
            made.write_figures(
                folder,
                on_figure=lambda name, done, planned: progress.update(
                    task, description=name, completed=done, total=planned
                ),
            )
        )


def _write_markdown(made: Report, figures: Path | None, file: Path) -> Path:
    make_folder(file.parent)
    write_text(file, made.to_markdown(_find_pictures(made, figures, file)))
    return file


def _find_pictures(made: Report, folder: Path | None, page: Path) -> dict[str, str] | None:
    """Where the Markdown finds its pictures."""
    if folder is None:
        return None
    return {
        figure.name: Path(os.path.relpath(folder / f"{figure.name}.svg", page.parent)).as_posix()
        for figure in made.figures
    }
