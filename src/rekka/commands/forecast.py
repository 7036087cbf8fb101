"""``rekka forecast``: what becomes of the members of an inventory, and of the network they make up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from rekka.commands import telling
from rekka.commands.bars import new_bar
from rekka.commands.data import AsJson
from rekka.commands.reading import Only, Reader, reads_tables
from rekka.commands.telling_forecast import print_forecast
from rekka.core.errors import BadOption
from rekka.core.files import refuse_inputs
from rekka.core.terminal import echo_json, new_console

if TYPE_CHECKING:
    from rekka.fleet.eligibility import Ask, Lots
    from rekka.fleet.members import Members
    from rekka.fleet.models import Models

FOLDER = "forecast"  # in the run folder, or where the command is called


@reads_tables
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
    reader: Reader,
    years: Annotated[int, typer.Option(help="How many years, 1 to 200.")] = 30,
    threshold: Annotated[
        int | None,
        typer.Option(
            metavar="STATE", help="The state whose reaching is asked for. Default: 4, or the worst of fewer."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="DATE", help="The day of year 0. Default: the latest inspection."),
    ] = None,
    age: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="How age goes on: advances, held (not beyond the oldest of the training rows) or fixed.",
        ),
    ] = "advances",
    advance: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A covariate that goes on by the year, if not called age. Repeatable."),
    ] = None,
    intervals: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Uncertainty of the parameters: delta (one pass), normal (draws), bootstrap (refits that rekka "
            "fit --bootstrap made) or none.",
        ),
    ] = "delta",
    draws: Annotated[int, typer.Option(help="Draws for --intervals normal.")] = 1000,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    member_intervals: Annotated[
        bool | None,
        typer.Option(
            "--member-intervals/--no-member-intervals",
            help="Intervals for each member, too. Default: for up to 2,000 members, or 1,000 by draws.",
        ),
    ] = None,
    only: Only = None,
    include_unchosen: Annotated[
        bool,
        typer.Option(
            "--include-unchosen",
            help="Forecast components for which no model was chosen, too, with the certified fit of the default "
            "method; every row of them is marked.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where the files go. Default: RUN/forecast, or forecast."),
    ] = None,
    table_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="parquet, csv or xlsx. Default: csv, or parquet where a sheet has no room for all years.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many members to list, the greatest risk first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Forecast every member of an inventory, and the network: states by year, years until a state, who is first.

    Each member goes on from its last inspection: first to the day of year 0, then year by year, with the model of
    its case. Members that cannot be forecast are set aside with a reason and counted. Totals come with two
    intervals: of the expected number, and of the number itself.

    For example:

      rekka forecast run inspections.xlsx

      rekka forecast models bridges.csv --years 50 --threshold 3 --format xlsx --out plan-2030

      rekka forecast girder.json list.csv --only "Main girder" --from 2026-03-31
    """
    from rekka.fleet.eligibility import Ask
    from rekka.study.models import load_models

    ask = Ask(
        years=years,
        threshold=threshold,
        since=_read_day(since),
        age=age,
        advance=None if not advance else tuple(advance),
        intervals=intervals,
        level=level,
        draws=draws,
        seed=seed,
        member_intervals=member_intervals,
    )
    errors = new_console(stderr=True)
    with errors.status(f"Reading {escape(models.name)} ..."):
        found = load_models(models, include_unchosen=include_unchosen)
    lots, folder = _prepare(errors, models, found, tables, reader, ask, only, out)
    form = _choose_format(table_format, lots, ask)
    told = {"notes": found.notes, "only": only, "top": top, "sources": _digest(tables)}
    document, files = _carry_out(errors, lots, ask, folder, form, {"source": found.name, **told})
    if as_json:
        echo_json(document.model_dump(mode="json") | {"folder": str(folder)})
        return
    following = f"rekka report {telling.quote(models)}" if found.run else f"rekka effects {telling.quote(models)}"
    print_forecast(new_console(), document, folder, files, following)


def _read_day(text: str | None) -> date | None:
    """A day, or the first of a year."""
    if text is None:
        return None
    try:
        return date.fromisoformat(f"{text}-01-01" if text.isdecimal() and len(text) == 4 else text)
    except ValueError:
        raise BadOption(
            f"--from is {text!r}; a day such as 2026-03-31, or a year, is needed.", option="from"
        ) from None


def _prepare(
    errors: Console,
    path: Path,
    found: Models,
    tables: Sequence[Path],
    reader: Reader,
    ask: Ask,
    only: Sequence[str] | None,
    out: Path | None,
) -> tuple[Lots, Path]:
    """Who can be forecast with the models, and where to; what is wrong is told before the work."""
    from rekka.fleet.document import FORECAST
    from rekka.fleet.eligibility import make_lots
    from rekka.fleet.models import match_models
    from rekka.fleet.store import OWN, refuse_place
    from rekka.study.models import list_model_files

    folder = out or (Path(FOLDER) if found.run is None else found.run / FOLDER)
    refuse_place(folder)
    if folder.resolve() in {path.resolve(), *(table.resolve() for table in tables)}:
        raise BadOption(
            f"{folder.name} is where the models or the tables are. Write to another folder.", option="out"
        )
    own = [file for file in list_model_files(path) if folder.resolve() not in file.resolve().parents]
    refuse_inputs([folder / name for name in (*OWN, FORECAST)], [*own, *reader.inputs(list(tables))])
    with errors.status(f"Reading {escape(tables[0].name)} ..."):
        members = _read_members(tables, reader, found, ask.since)
        matched = match_models(found, members.frame["case"].unique().sort().to_list(), only)
        return make_lots(members, matched, ask), folder


def _read_members(tables: Sequence[Path], reader: Reader, found: Models, until: date | None) -> Members:
    from rekka.fleet.members import read_members

    nbi = reader.nbi or (found.reading is not None and found.reading.kind == "nbi")
    if len(tables) > 1 and not nbi:
        raise typer.BadParameter("one table is read at a time; join others with --join", param_hint="INVENTORY")
    source = list(tables) if reader.nbi or len(tables) > 1 else tables[0]
    return read_members(
        source,
        reader.mapping,
        nbi=reader.nbi,
        labels=found.labels,
        reading=found.reading,
        needed=found.covariates,
        who=found.name,
        until=until,
        allow=reader.allow,
        **reader.changes,
    )


def _choose_format(asked: str | None, lots: Lots, ask: Ask) -> str:
    from rekka.fleet.store import choose_format

    return choose_format(asked, lots.size * (ask.years + 1))


def _carry_out(
    errors: Console, lots: Lots, ask: Ask, folder: Path, form: str, told: dict[str, Any]
) -> tuple[Any, Sequence[Path]]:
    """Forecast and write; nothing is there until all is."""
    from rekka.fleet.document import describe_fleet
    from rekka.fleet.inventory import forecast_fleet
    from rekka.fleet.store import list_files, open_folder

    with open_folder(folder, form) as writer:
        with new_bar(errors) as progress:
            task = progress.add_task("", total=lots.size, what="Members")
            fleet = forecast_fleet(
                lots, ask, on_years=writer.add_years, on_progress=lambda done: progress.advance(task, done)
            )
        with errors.status("Writing ..."):
            document = describe_fleet(fleet, files=list_files(form), **told)
            return document, writer.finish(fleet, document)


def _digest(tables: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of the inventory's files, by name."""
    from rekka.core.seals import digest_file

    files = [file for table in tables for file in (sorted(table.iterdir()) if table.is_dir() else [table])]
    return {file.name: digest_file(file) for file in files if file.is_file()}
