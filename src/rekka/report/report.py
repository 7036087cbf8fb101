"""A study's report: the page, the same as Markdown, its tables and figures as files."""

from __future__ import annotations

import html
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rekka.errors import bad_option, count_of
from rekka.report.charts import combine, list_figures
from rekka.report.document import Document
from rekka.report.drawing import draw_pdf, draw_png, draw_svg_file
from rekka.report.exports import write_tables
from rekka.report.markdown import render_markdown
from rekka.report.page import render_page
from rekka.report.palette import PRINT
from rekka.report.sentences import name_study
from rekka.report.summary import summarize
from rekka.report.tables import list_tables
from rekka.report.views import FigureView, TableView
from rekka.report.words import Words, load_words
from rekka.study.compare import load_study
from rekka.study.files import write_text, write_whole
from rekka.study.stability import Stability, load_stability
from rekka.study.store import PLAN, read_provenance
from rekka.study.study import Study

FORMATS = ("svg", "png", "pdf")
_FRAME_HEIGHT = 900  # pixels, of the page in a notebook

OnCase = Callable[[str, int, int], None]  # what was done, how many are done, how many there are to be


@dataclass(frozen=True, eq=False)
class Report:
    """A report in one language. ``document`` holds every number of it; a notebook shows the page.

    Made by ``make_report`` and ``Study.report``. The same study gives the same bytes.
    """

    document: Document
    lang: str = "en"

    @property
    def words(self) -> Words:
        """Headings, captions and names of columns."""
        return load_words(self.lang)

    @cached_property
    def html(self) -> str:
        """The page: one file, without anything from the network."""
        return render_page(self.document, self.lang)

    @cached_property
    def tables(self) -> tuple[TableView, ...]:
        """Its tables, as they are exported."""
        return list_tables(self.document, self.words)

    @cached_property
    def figures(self) -> tuple[FigureView, ...]:
        """Its figures, in the colours of print."""
        return list_figures(self.document, self.words, PRINT)

    def to_markdown(self, pictures: Mapping[str, str] | None = None) -> str:
        """The same as Markdown; ``pictures`` are paths of figures by name."""
        return render_markdown(self.document, self.tables, self.figures, self.words, pictures)

    def write(self, path: str | Path) -> tuple[Path, Path]:
        """Write the page, and its numbers as JSON beside it."""
        page = Path(path)
        page.parent.mkdir(parents=True, exist_ok=True)
        numbers = page.with_suffix(".json")
        write_text(page, self.html)
        write_text(numbers, self.document.to_json())
        return page, numbers

    def write_tables(self, folder: str | Path) -> tuple[Path, ...]:
        """Write every table as CSV, and all of them as an Excel workbook, LaTeX and Markdown."""
        return write_tables(self.tables, Path(folder))

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
        place.mkdir(parents=True, exist_ok=True)
        draw = {"svg": lambda spec: draw_svg_file(spec).encode(), "png": draw_png, "pdf": draw_pdf}
        files = []
        for number, figure in enumerate(self.figures, start=1):
            spec = combine(figure)
            for name in formats:
                file = place / f"{figure.name}.{name}"
                write_whole(file, draw[name](spec), flush=False)
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
        Whether to test if the forecasts of what was chosen come true, which takes about a second a case.
    on_case : callable, optional
        Called with each case that is calibrated, the number done and the number there are.

    """
    load_words(lang)  # refuses a language that is none, before the work
    found = study if isinstance(study, Study) else load_study(study)
    folder = found.folder
    return Report(
        summarize(
            found,
            calibrations=found.calibrations(on_case) if calibrate else None,
            stability=load_stability(folder) if stability is None and folder is not None else stability,
            provenance=None if folder is None else read_provenance(folder),
            units=units,
            title=title,
            again=_repeat(found, folder),
        ),
        lang,
    )


def _repeat(study: Study, folder: Path | None) -> str | None:
    """The command that runs the study again; None where its rows came from a program."""
    if folder is None or study.plan.data.kind == "given":
        return None
    return shlex.join(["rekka", "compare", f"{folder.name}/{PLAN}", "--out", f"{folder.name}-again"])
