"""``rekka forecast``: what becomes of the members of an inventory, and of the network they make up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.bars import show_progress
from rekka.commands.options import Flag, asks, reads_tables
from rekka.core.language import say
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import list_commands, print_line, quote

if TYPE_CHECKING:
    from rekka.report.document import Document
    from rekka.workflows.forecast import InventoryForecast


def _read_repaired(text: str) -> Path | int:
    """A table of repairs, or how many of the worst members."""
    return int(text) if text.isdecimal() else Path(text)


FOLDER = "forecast"  # in the run folder, or where the command is called
FLAGS = (
    Flag("--years", int, "years", None, "How many years, 1 to 200.", 30),
    options.THRESHOLD,
    Flag("--from", options.Text, "since", "DATE", "The day of year 0. Default: the latest inspection."),
    Flag("--age", str, "age", "HOW",
         "How age advances: advances, held (not beyond the oldest of the training rows) or fixed.", "advances"),
    Flag("--unseen", options.Text, "unseen", "RULE",
         "Members with a level of a category that no training row has: reference (taken as the reference level, "
         "and marked; the default) or refuse (excluded, with the reason)."),
    options.GOES_ON,
    *options.HISTORIES,
    options.INTERVALS._replace(
        words="Uncertainty of the parameters: delta (one pass), normal (draws), bootstrap (refits that rekka fit "
        "--bootstrap made) or none."),
    *options.DRAWS,
    options.SHOCKS,
    Flag("--member-intervals/--no-member-intervals", bool | None, "member_intervals", None,
         "Intervals for each member, too. Default: for up to 2,000 members, or 1,000 by draws."),
    Flag("--repaired", options.Text, "repaired", "FILE|N",
         "What if these members are repaired in year 0: a table with columns bridge and, if need be, component, "
         "member, rating (after the repair; default: the best), age (in year 0) and frailty. A number: so many of "
         "the worst members, those at the threshold or worse first.", read=_read_repaired),
    options.ONLY,
    Flag("--include-unchosen", bool, "include_unchosen", None,
         "Forecast components for which no model was chosen, too, with the certified fit of the default method; "
         "every row of them is marked."),
    Flag("--out", options.Place, "out", "FOLDER", "Where the files go. Default: RUN/forecast, or forecast."),
    Flag("--format", options.Text, "format", "NAME",
         "parquet, csv or xlsx. Default: csv, or parquet where a sheet has no room for all years."),
    Flag("--top", int, "top", None, "How many members to list, the greatest risk first.", 20, 0),
)  # fmt: skip


@reads_tables
@asks(*FLAGS)
def forecast(
    models: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_OR_MODEL",
            help="A run folder, a model file of rekka fit, or a folder of them.",
            show_default=False,
        ),
    ],
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="INVENTORY",
            help="Inspections, transitions or a list of members: CSV, Excel, Parquet, or a folder of inspections.",
            show_default=False,
        ),
    ],
    reader: options.Reader,
    asked: options.Asked,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Forecast every member of an inventory, and the network: ratings by year, years until a rating, risks.

    Prints the answer. --verbose and rekka show FOLDER print all years, ratings and remarks.

    Each member is forecast from its last inspection, first to the day of year 0, then year by year, with the model
    of its component. Members that cannot be forecast are listed with a reason. Totals have two intervals: of the
    expected number, and of the number itself.

    With --errors, --frailty, --improvements, --trend or --clock running each model is fitted again to all visits
    of the inventory, improvements included, and every member is forecast from all of its visits. The true
    condition and what inspectors will record are then given separately.

    With --repaired the first lines say what these repairs change; the files whatif.csv and
    whatif_members.csv have all of it. All else stays the forecast without repairs.

    For example:

      rekka forecast run inspections.xlsx

      rekka forecast models bridges.csv --years 50 --threshold Poor --format xlsx --out plan-2030

      rekka forecast girder.json list.csv --only "Main girder" --from 2026-03-31

      rekka forecast run inspections.xlsx --repaired plan.csv

      rekka forecast run inspections.xlsx --repaired 10
    """
    from rekka.core.folders import PLAN

    is_run = (models / PLAN).exists()
    folder = asked.setdefault("out", models / FOLDER if is_run else Path(FOLDER))
    with show_progress(new_console(stderr=True)) as on_progress:
        found = rekka.forecast_inventory(models, tables, reader, **asked, on_progress=on_progress)
    if as_json:
        more = {} if found.what_if is None else {"what_if": found.what_if.to_dict()}
        echo_json(found.document.model_dump(mode="json") | {"folder": str(folder)} | more)
        return
    _print_found(found, models if is_run else None, folder, verbose=verbose)
    own = is_run and Path(folder).absolute() == (models / FOLDER).absolute()  # what a report of the run shows
    print_line(new_console(), f"next: rekka {'report' if own else 'effects'} {quote(models)}")


def _print_found(found: InventoryForecast, run: Path | None, folder: Path, *, verbose: bool) -> None:
    """Print the answer, or everything, and where the files are."""
    from rekka.report.terminal.forecast import list_excluded, print_forecast, print_what_if
    from rekka.report.terminal.overview import print_overview
    from rekka.report.terminal.tables import WORDS

    console = new_console()
    if found.what_if is not None:
        print_what_if(console, found.what_if)
    if verbose:
        print_forecast(console, found.document)
    else:
        print_overview(console, _describe(found, run), members=True, warnings=list_excluded(found.document))
    names = [file.name for file in found.files]
    print_line(console, WORDS.format(say("terminal.files", folder=str(folder), files=names)))
    more = {f"rekka show {quote(folder)}": WORDS("terminal.study.more_forecast")}
    for line in [] if verbose else list_commands(more):
        print_line(console, line)


def _describe(found: InventoryForecast, run: Path | None) -> Document:
    """The numbers of the report of a run with this forecast, or those of the forecast alone."""
    from rekka.report.fitted import replace_forecast, sketch_forecast

    fleet = found.fleet
    if run is None:
        models = [group.model for group in fleet.eligible.groups]
        return sketch_forecast(found.document, models, fleet.details)
    return replace_forecast(rekka.make_report(run, calibrate=False).document, found.document, fleet)
