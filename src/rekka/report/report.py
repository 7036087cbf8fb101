"""A study's report: the page, Markdown, and its tables and figures as files."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rekka.core.errors import BadOption, bad_option, count_of
from rekka.core.files import (
    has_mark,
    make_folder,
    refuse_file,
    refuse_foreign,
    refuse_inputs,
    write_text,
    write_whole,
)
from rekka.core.folders import PLAN, locate, refuse_run
from rekka.core.terminal import OnProgress, say_nothing
from rekka.model.tables import check_units
from rekka.report.backtests import load_backtests
from rekka.report.charts.base import PRINT
from rekka.report.charts.drawing import PICTURE_MARK, combine, draw_pdf, draw_png, draw_svg_file, mark_picture
from rekka.report.charts.figures import list_figures
from rekka.report.document import Document
from rekka.report.export import LATEX, TABLES_MARK, list_table_files, write_tables
from rekka.report.markdown import render_markdown
from rekka.report.naming import name_components
from rekka.report.networks import find_network
from rekka.report.outline import DIRECTOR, READERS
from rekka.report.page import Links, render_page
from rekka.report.printing import PDF_MARK, find_browser, print_page
from rekka.report.statements import name_study
from rekka.report.summarize import summarize
from rekka.report.tables.catalog import list_tables
from rekka.report.text import ENGLISH, LANGUAGES, Words, load_words
from rekka.report.views import FigureView, TableView
from rekka.report.workbook import is_workbook, render_report
from rekka.simulation.inventory import is_simulated
from rekka.study.compare import load_study
from rekka.study.run_folder import list_own, read_provenance
from rekka.study.stability import Stability, load_stability
from rekka.study.study import Study

PAGE = "report.html"
FORMATS = ("svg", "png", "pdf")
_FRAME_HEIGHT = 900  # pixels, of the page in a notebook
_MARKS = (b'name="generator" content="rekka ', b'"format": "rekka-report"')

OnCase = Callable[[str, int, int], None]  # what was done, how many are done, how many there are to be


@dataclass(frozen=True, eq=False)
class Report:
    """A report in one language. ``document`` holds every number of it; a notebook shows the page.

    Made by ``make_report`` and ``Study.report``. The same study gives the same bytes.

    Examples
    --------
    >>> import rekka
    >>> report = rekka.make_report("run", lang="ja", calibrate=False)
    >>> report.document.answers[0].method
    'zscore'

    """

    document: Document
    lang: str = "en"
    reader: str = DIRECTOR  # or engineer, paper, full: what comes first, and what is printed

    @property
    def words(self) -> Words:
        """Headings, captions and names of columns."""
        return load_words(self.lang)

    @cached_property
    def html(self) -> str:
        """The page: one file, without anything from the network."""
        return render_page(self.document, self.lang, reader=self.reader)

    @cached_property
    def tables(self) -> tuple[TableView, ...]:
        """Its tables, as they are exported."""
        return list_tables(name_components(self.document, self.words), self.words)

    @cached_property
    def figures(self) -> tuple[FigureView, ...]:
        """Its figures, in the colours of print."""
        return list_figures(name_components(self.document, self.words), self.words, PRINT)

    def to_markdown(self, pictures: Mapping[str, str] | None = None) -> str:
        """The report as Markdown; ``pictures`` are paths of figures by name."""
        return render_markdown(self.document, self.tables, self.figures, self.words, pictures)

    def write(self, path: str | Path) -> tuple[Path, Path]:
        """Write the page, and its numbers as JSON beside it. Only an earlier report is written over."""
        page, numbers = places = find_places(path)
        refuse_no_report(places)
        make_folder(page.parent)
        links = find_links(page, self.lang)
        beside = links.languages or links.workbook
        linked = render_page(self.document, self.lang, reader=self.reader, links=links) if beside else self.html
        write_text(page, linked)
        write_text(numbers, self.document.to_json())
        return page, numbers

    def write_pdf(self, path: str | Path) -> Path:
        """Print the page for its reader as PDF, by the browser that is installed; only an earlier one is replaced.

        >>> rekka.make_report("run", reader="director").write_pdf("summary.pdf")  # doctest: +SKIP
        """
        file = Path(path)
        refuse_pdf(file)
        make_folder(file.parent)
        print_page(render_page(self.document, self.lang, reader=self.reader, printed=True), file)
        return file

    def write_tables(self, folder: str | Path) -> tuple[Path, ...]:
        """Write every table as CSV, and all of them as an Excel workbook, LaTeX and Markdown."""
        refuse_tables(Path(folder), self.tables)
        return write_tables(self.tables, Path(folder), render_report(self.document, self.tables, self.words))

    def write_workbook(self, path: str | Path) -> Path:
        """Write the Excel workbook: overview, members, components, matrices, all tables, run record."""
        file = Path(path)
        refuse_workbook(file)
        make_folder(file.parent)
        write_whole(file, render_report(self.document, self.tables, self.words))
        return file

    def write_figures(
        self, folder: str | Path, formats: Sequence[str] = FORMATS, on_figure: OnCase | None = None
    ) -> tuple[Path, ...]:
        """Write every figure in each format: SVG, PNG (300 dots an inch) and PDF.

        ``on_figure`` is called with each figure that is written, the number written and the number there are.
        """
        for name in formats:
            if name not in FORMATS:
                raise bad_option("formats", name, FORMATS)
        place = Path(folder)
        refuse_figures(place, self.figures, formats)
        make_folder(place)
        draw = {"svg": lambda spec: draw_svg_file(spec).encode(), "png": draw_png, "pdf": draw_pdf}
        files = []
        for number, figure in enumerate(self.figures, start=1):
            spec = combine(figure)
            for name in formats:
                file = place / f"{figure.name}.{name}"
                write_whole(file, mark_picture(draw[name](spec), name), flush=False)
                files.append(file)
            if on_figure:
                on_figure(figure.name, number, len(self.figures))
        return tuple(files)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style and the notebook's stay apart."""
        content = html.escape(self.html, quote=True)
        frame = 'sandbox="allow-scripts allow-modals" style="width:100%;border:0"'
        return f'<iframe srcdoc="{content}" title="rekka report" height="{_FRAME_HEIGHT}" {frame}></iframe>'

    def __repr__(self) -> str:
        name = name_study(self.document, self.words)
        return f"<Report of {name}: {count_of(len(self.document.cases), 'case')}, {self.lang}>"


def make_report(
    study: Study | str | Path,
    *,
    lang: str = "en",
    title: str | None = None,
    units: Mapping[str, float] | None = None,
    stability: Stability | None = None,
    calibrate: bool = True,
    no_forecast: str | None = None,
    reader: str = DIRECTOR,
    on_case: OnCase | None = None,
) -> Report:
    """Report a study.

    Parameters
    ----------
    study : Study or path
        Finished or not; a path is a run folder.
    lang : "en" or "ja"
        Of headings, captions and explanations.
    title : str, optional
        What the study is of; the table's name by default.
    units : dict, optional
        Steps of hazard ratios by covariate, such as {"age": 10}; round numbers by default.
    stability : Stability, optional
        Refits to show; by default those in the run folder, if there are.
    calibrate : bool
        Whether to test if the forecasts of what was chosen come true, and to forecast the study's members where
        the run folder has no forecast: each takes about a second a case.
    no_forecast : str, optional
        Why the tables of the study could not be forecast as an inventory, to be said beside what is shown instead.
    reader : "director", "engineer", "paper" or "full"
        Who prints the page: the overview on two sheets, these and two for each component, the study first with
        all that the paper has, or everything.
    on_case : callable, optional
        Called with each case that is calibrated, the number done and the number there are.

    Examples
    --------
    >>> import rekka
    >>> report = rekka.make_report("run", title="Bridges of a district", calibrate=False)
    >>> page, numbers = report.write("report.html")
    >>> page.name, numbers.name
    ('report.html', 'report.json')

    """
    load_words(lang)  # what is wrong is told before the work
    if reader not in READERS:
        raise bad_option("reader", reader, READERS)
    _refuse_title(title)
    found = study if isinstance(study, Study) else load_study(study)
    rows = found.read_rows()
    check_units(units, [name for name in rows.covariates if name not in rows.levels])
    folder = found.folder
    future = find_network(found, make=calibrate)
    return Report(
        summarize(
            found,
            calibrations=found.calibrations(on_case) if calibrate else None,
            stability=stability or load_stability(found),
            network=future.network,
            no_network=no_forecast or future.why,
            backtests=load_backtests(folder, {case: one.elements for case, one in future.refits.items()}),
            refits=future.refits,
            provenance=None if folder is None else read_provenance(folder),
            units=units,
            title=title or _name_simulated(found, lang),
            again=_repeat(found),
        ),
        lang,
        reader,
    )


def write_report(
    study: Study | str | Path,
    out: str | Path | None = None,
    *,
    figures: str | Path | None = None,
    tables: str | Path | None = None,
    markdown: str | Path | None = None,
    workbook: str | Path | None = None,
    pdf: str | Path | None = None,
    on_progress: OnProgress = say_nothing,
    **options: Any,
) -> dict[str, tuple[Path, ...]]:
    """Report a study and write the page, and beside it what else is asked for.

    Parameters
    ----------
    study : Study or path
        A path is a run folder.
    out : path, optional
        The page; report.html in the run folder by default.
    figures, tables : path, optional
        Folders for the figures (SVG, PNG, PDF) and the tables (CSV, Excel, LaTeX, Markdown).
    markdown : path, optional
        A file for the whole report as Markdown.
    workbook : path, optional
        A file (.xlsx) for an Excel workbook: overview, members, components, matrices, all tables, run record.
    pdf : path, optional
        A file for the page as its reader prints it; an installed browser writes it.
    on_progress : callable, optional
        Called with a stage, a name, how much is done, and of how much.
    **options
        lang, title, units, stability, calibrate, no_forecast and reader, as for ``make_report``.

    Returns
    -------
    dict
        The files that were written, by kind: page, figures, tables, workbook, markdown, pdf.

    Examples
    --------
    >>> import rekka
    >>> written = rekka.write_report("run", markdown="report.md", calibrate=False)
    >>> sorted(written)
    ['markdown', 'page']

    """
    run = study.folder if isinstance(study, Study) else Path(study)
    if out is None and run is None:
        raise BadOption("The study has no run folder; out says where its page goes.", option="out")
    page = Path(out) if out is not None else (run or Path()) / PAGE
    drawn, listed, text = (None if one is None else Path(one) for one in (figures, tables, markdown))
    outputs = [*find_places(page), *([] if text is None else [text])]
    refuse_no_report(outputs[:2])  # before the work
    for folder in (drawn, listed):
        if folder is not None:
            _refuse_folder(folder)
    if text is not None:
        _refuse_markdown(text, run)
    if workbook is not None:
        refuse_workbook(Path(workbook))
        outputs.append(Path(workbook))
    if pdf is not None:
        refuse_pdf(Path(pdf))
        find_browser()
        outputs.append(Path(pdf))
    made = make_report(study, on_case=_name_stage(on_progress, "Calibration"), **options)
    _refuse_filled(made, outputs, drawn, listed)
    on_progress("Drawing the report", page.name, 0, None)
    book = None if workbook is None else made.write_workbook(workbook)  # first: the page leads to it
    files: dict[str, tuple[Path, ...]] = {"page": made.write(page)}
    if book is not None:
        files["workbook"] = (book,)
    if drawn is not None:
        files["figures"] = made.write_figures(drawn, on_figure=_name_stage(on_progress, "Figures"))
    if listed is not None:
        files["tables"] = made.write_tables(listed)
    if text is not None:
        make_folder(text.parent)
        write_text(text, made.to_markdown(None if drawn is None else _find_pictures(made, drawn, text)))
        files["markdown"] = (text,)
    if pdf is not None:
        on_progress("Printing the report", Path(pdf).name, 0, None)
        files["pdf"] = (made.write_pdf(pdf),)
    return files


def _name_stage(on_progress: OnProgress, stage: str) -> OnCase:
    return lambda name, done, total: on_progress(stage, name, done, total)


def _refuse_folder(folder: Path) -> None:
    """Refuse a folder that is a file, or a run."""
    refuse_file(folder)
    refuse_run(folder)


def _refuse_markdown(file: Path, run: Path | None) -> None:
    if file.is_dir():
        raise BadOption(f"{file.name} is a folder; a file is needed.", option="markdown")
    refuse_inputs([file], [] if run is None else list_own(run))


def _refuse_filled(made: Report, outputs: list[Path], figures: Path | None, tables: Path | None) -> None:
    """Refuse, before the first file is written, files that rekka did not write and two results in one file."""
    if figures is not None:
        refuse_figures(figures, made.figures)
        outputs += list_figure_files(made.figures, figures)
    if tables is not None:
        refuse_tables(tables, made.tables)
        outputs += list_table_files(made.tables, tables)
    refuse_inputs(outputs, [])


def _find_pictures(made: Report, folder: Path, page: Path) -> dict[str, str]:
    """Where the Markdown finds its pictures."""
    away = Path(os.path.relpath(folder, page.parent))
    return {figure.name: (away / f"{figure.name}.svg").as_posix() for figure in made.figures}


def find_places(path: str | Path) -> tuple[Path, Path]:
    """Where a page and its numbers go."""
    page = Path(path)
    if page.suffix.lower() not in (".html", ".htm"):
        raise BadOption(f"{page.name} is to be a page: it needs a name that ends in .html.", file=str(page))
    return page, page.with_suffix(".json")


def find_links(page: Path, lang: str) -> Links:
    """Files beside a page that it leads to: its other languages (report.html, report-ja.html) and its workbook."""
    stem = page.stem.removesuffix(f"-{lang}")
    is_ours = has_mark(*_MARKS)
    places = {
        one: page.with_name(f"{stem}{page.suffix}" if one == ENGLISH else f"{stem}-{one}{page.suffix}")
        for one in LANGUAGES
    }
    others = {one: file.name for one, file in places.items() if one != lang and file.is_file() and is_ours(file)}
    workbook = page.with_suffix(".xlsx")
    return Links(others, workbook.name if workbook.is_file() else "")


def refuse_pdf(file: Path) -> None:
    """Refuse to write over a file that is no PDF of a report."""
    if file.suffix.lower() != ".pdf":
        raise BadOption(f"{file.name} is to be a PDF: it needs a name that ends in .pdf.", option="pdf")
    refuse_foreign([file], has_mark(PDF_MARK), "PDF that rekka wrote")


def refuse_no_report(files: Iterable[Path]) -> None:
    """Refuse to write over a file that is no report: a run keeps its own records as JSON, and so do others."""
    refuse_foreign(files, has_mark(*_MARKS), "report")


def refuse_workbook(file: Path) -> None:
    """Refuse to write over a file that is no workbook of a report."""
    if file.suffix.lower() != ".xlsx":
        raise BadOption(f"{file.name} is to be a workbook: it needs a name that ends in .xlsx.", option="workbook")
    refuse_foreign([file], is_workbook, "workbook of a report")


def refuse_tables(folder: Path, tables: Sequence[TableView]) -> None:
    """Refuse a folder for tables that is a run, or has files of these names that are none of an earlier report."""
    _refuse_folder(folder)
    key = folder / LATEX
    if not (key.is_file() and has_mark(TABLES_MARK)(key)):
        refuse_foreign(list_table_files(tables, folder), lambda _: False, "table of a report")


def refuse_figures(folder: Path, figures: Sequence[FigureView], formats: Sequence[str] = FORMATS) -> None:
    """Refuse a folder for figures that is a run, or has pictures of these names that rekka did not draw."""
    _refuse_folder(folder)
    refuse_foreign(list_figure_files(figures, folder, formats), has_mark(PICTURE_MARK), "figure that rekka drew")


def list_figure_files(
    figures: Sequence[FigureView], folder: Path, formats: Sequence[str] = FORMATS
) -> tuple[Path, ...]:
    """List the files that ``Report.write_figures`` writes."""
    return tuple(folder / f"{figure.name}.{name}" for figure in figures for name in formats)


def _name_simulated(study: Study, lang: str) -> str | None:
    """Title of the study of a simulated inventory, which says so; the built-in one has no tables."""
    folder = study.folder
    if folder is None or not any(is_simulated(locate(folder, one)) for one in study.plan.data.source):
        return None
    return load_words(lang)("page.simulated")


def _refuse_title(title: str | None) -> None:
    try:
        (title or "").encode()
    except UnicodeEncodeError:
        raise BadOption(f"title is no text: {title!a}. Give it in UTF-8.", option="title") from None


def _repeat(study: Study) -> str | None:
    """The command that runs the study again, from its study file; None where its rows came from a program."""
    return None if study.plan.data.kind == "given" else f"rekka compare {PLAN} --out again"
