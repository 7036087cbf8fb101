"""Files of a run to take away, of a fixed list; tables are the bytes that the commands write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import tomli_w

from rekka.app.command_line import shorten_path, spell_commands, write_commands
from rekka.app.forecasts import View, find_view, find_what_if, open_forecast
from rekka.app.pages import NotThere
from rekka.app.repairs import REPAIRS
from rekka.app.workspace import Run
from rekka.core.errors import BadOption
from rekka.core.files import scratch_folder
from rekka.core.folders import PLAN, locate
from rekka.core.language import Words
from rekka.core.sheets import to_csv
from rekka.fleet.store import TABLES
from rekka.report.document import Document
from rekka.report.networks import FOLDER
from rekka.report.page import render_page
from rekka.report.printing import find_browser
from rekka.report.report import Report
from rekka.report.tables.catalog import list_tables
from rekka.report.workbook import render_report
from rekka.study.plan import StudyPlan
from rekka.study.run_folder import load_plan

HTML, PDF, JSON, CSV, TOML, TEXT = (
    "text/html", "application/pdf", "application/json", "text/csv", "application/toml", "text/plain",
)  # fmt: skip
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OF_RUN = ("trials.csv", "selection.csv", "verdicts.csv", "confirmation.csv")  # as they are in the run folder
COMMANDS = "commands.txt"
OUT = "forecast"  # folder of a command that forecasts otherwise than the run folder has it


class _Source(NamedTuple):
    """A request for a file: the run, the forecast, the language."""

    run: Run
    view: View
    words: Words

    @property
    def document(self) -> Document:
        """The numbers of the run's report, whatever the threshold of the view is."""
        return find_view(self.run.study, within=self.view.within).document


class Download(NamedTuple):
    """A file of the list: its name, what it is, and why it cannot be had, where it cannot."""

    name: str
    what: str
    why: str = ""


def list_downloads(view: View, words: Words) -> list[Download]:
    """Files of a run that the page of results offers."""
    names = [name for name in FILES if name not in (*OF_WHAT_IF, *OF_RUN)]
    if view.found is None:
        names = [name for name in names if name not in OF_FORECAST]
    return [
        Download(name, words(f"app.results.file.{_key(name)}"), _explain_missing(name, words)) for name in names
    ]


def _key(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")


def _explain_missing(name: str, words: Words) -> str:
    """Why a file cannot be made on this machine."""
    if name != "report.pdf":
        return ""
    try:
        find_browser()
    except BadOption:
        return words("app.results.no_browser")
    return ""


def make_file(name: str, run: Run, view: View, words: Words) -> tuple[bytes, str]:
    """A file's content and its kind."""
    if view.found is None and name in (*OF_FORECAST, *OF_WHAT_IF):
        raise NotThere(f"The run has no forecast, and so no {name}.")
    make, kind = FILES[name]
    return make(_Source(run, view, words)), kind


# The report


def _write_page(of: _Source) -> bytes:
    return render_page(of.document, of.words.lang).encode()


def _write_pdf(of: _Source) -> bytes:
    with scratch_folder() as scratch:
        return Report(of.document, of.words.lang).write_pdf(scratch / "report.pdf").read_bytes()


def _write_workbook(of: _Source) -> bytes:
    return render_report(of.document, list_tables(of.document, of.words), of.words)


def _write_numbers(of: _Source) -> bytes:
    return of.document.to_json().encode()


# Tables


def _write_members(of: _Source) -> bytes:
    if of.view.forecast is not None:
        return to_csv(of.view.forecast.members)
    for form in ("parquet", "csv"):
        file = of.run.study / FOLDER / TABLES[form][0]
        if file.is_file():
            return file.read_bytes() if form == "csv" else to_csv(pl.read_parquet(file))
    return to_csv(open_forecast(of.run.study, of.view).members)


def _write_network(of: _Source) -> bytes:
    file = of.run.study / FOLDER / "network.csv"
    if of.view.forecast is None and file.is_file():
        return file.read_bytes()
    return to_csv(open_forecast(of.run.study, of.view).network)


def _copy(name: str) -> Callable[[_Source], bytes]:
    """A table of the run folder as it is."""

    def read(of: _Source) -> bytes:
        file = of.run.study / name
        if not file.is_file():
            raise NotThere(f"The run has no {name}.")
        return file.read_bytes()

    return read


# What if


def _write_repairs(of: _Source) -> bytes:
    return _read_repairs(of).read_bytes()


def _write_what_if(of: _Source) -> bytes:
    return to_csv(find_what_if(of.run.study, of.view, _read_repairs(of)).network)


def _write_repaired(of: _Source) -> bytes:
    return to_csv(find_what_if(of.run.study, of.view, _read_repairs(of)).members)


def _read_repairs(of: _Source) -> Path:
    file = of.run.folder / REPAIRS
    if not file.is_file():
        raise NotThere("No member is marked as repaired.")
    return file


# How it was made


def _write_mapping(of: _Source) -> bytes:
    if of.run.job.ask is not None:
        return of.run.mapping_file.read_bytes()
    return tomli_w.dumps(_leave_none(load_plan(of.run.study).data.mapping)).encode()


def _leave_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _leave_none(one) for name, one in value.items() if one is not None}
    return [_leave_none(one) for one in value] if isinstance(value, list | tuple) else value


def _write_commands(of: _Source) -> bytes:
    return ("\n".join(list_commands(of.run, of.view)) + "\n").encode()


def list_commands(run: Run, view: View) -> Iterator[str]:
    """Commands that do the same as the page: the study, its forecast, its report."""
    study, ask, plan = run.study, run.job.ask, load_plan(run.study)
    tables = find_inventory(study, plan)
    if ask is not None:
        yield write_commands(spell_commands(ask, tables[0] if tables else study, run.mapping_file))
    elif plan.data.kind != "given":  # else its rows came from a program
        yield write_commands([["rekka", "compare", shorten_path(study / PLAN, Path.cwd()), "--out", "again"]])
    if tables and not view.own:
        yield write_forecast_command(study, view)
    if ask is None:
        yield write_commands([["rekka", "report", shorten_path(study, Path.cwd())]])


def find_inventory(study: Path, plan: StudyPlan) -> list[Path]:
    """Tables of a study; none of one that was not made of tables."""
    return [locate(study, source) for source in plan.data.source] if plan.data.kind == "tables" else []


def write_forecast_command(study: Path, view: View, repairs: str = "") -> str:
    """The command that makes the forecast of a view, with a table of repairs if there is one."""
    tables = find_inventory(study, load_plan(study))
    base = Path.cwd()
    inventory = [shorten_path(table, base) for table in tables] or ["TABLE"]
    parts = ["rekka", "forecast", shorten_path(study, base), *inventory]
    if view.threshold is not None:
        ratings = view.ratings
        parts += ["--threshold", str(view.threshold) if ratings.numbered else ratings.labels[view.threshold - 1]]
    parts += ["--years", str(view.years)]
    parts += ["--repaired", repairs] if repairs else []
    return write_commands([[*parts, "--out", OUT]])


OF_FORECAST: dict[str, tuple[Callable[[_Source], bytes], str]] = {
    "members.csv": (_write_members, CSV),
    "network.csv": (_write_network, CSV),
}
OF_WHAT_IF: dict[str, tuple[Callable[[_Source], bytes], str]] = {
    REPAIRS: (_write_repairs, CSV),
    "whatif.csv": (_write_what_if, CSV),
    "whatif_members.csv": (_write_repaired, CSV),
}
FILES: dict[str, tuple[Callable[[_Source], bytes], str]] = {
    "report.html": (_write_page, HTML),
    "report.pdf": (_write_pdf, PDF),
    "report.xlsx": (_write_workbook, EXCEL),
    **OF_FORECAST,
    "report.json": (_write_numbers, JSON),
    "mapping.toml": (_write_mapping, TOML),
    COMMANDS: (_write_commands, TEXT),
    **OF_WHAT_IF,
    **{name: (_copy(name), CSV) for name in OF_RUN},
}
