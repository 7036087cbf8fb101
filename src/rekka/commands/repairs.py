"""``rekka repairs``: improvements of ratings without a recorded repair, and what each of them probably is."""

from __future__ import annotations

from typing import Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.bars import show_progress
from rekka.commands.options import Flag, asks, reads_tables
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line

RECORD = (
    "Check the probable repairs in your files. Those that took place go into a column of repairs (a year or a "
    "date; --repair COLUMN), with date_2 as the date if you know no other; the next rekka fit then begins a new "
    "history there.",
    "Or keep their rows in the file of --out, call date_2 repair_date, and give the file to rekka fit with --join;"
    " a repair then counts for all components of its bridge.",
)


@reads_tables
@asks(
    options.ONLY,
    options.USE,
    Flag("--out", options.Place, "out", "FILE", "Where the whole table goes: a .csv, .xlsx or .parquet file."),
)
def repairs(
    tables: options.Tables,
    reader: options.Reader,
    asked: options.Asked,
    rows: Annotated[int, typer.Option("--rows", help="Probable repairs printed, the surest first.", min=1)] = 20,
    as_json: options.AsJson = False,
) -> None:
    """Find repairs without a record: improvements of ratings, each a repair, a small one, or an error.

    A model of histories, which knows how often inspectors err and how often small repairs happen, is fitted to
    each component. All visits of a member then say what stands behind an improvement: how bad the rating was
    before, and whether it stays good afterwards. Pairs with a recorded repair between them are not looked at.

    For example:

      rekka repairs inspections.xlsx

      rekka repairs inspections.xlsx --repair REHABILITATED --only "Main girder" --out repairs.csv
    """
    from rekka.report.terminal.models import print_repairs

    with show_progress(new_console(stderr=True)) as on_progress:
        found = rekka.find_repairs(tables, reader, **asked, on_progress=on_progress)
    if as_json:
        echo_json(found.to_dict())
    else:
        console = new_console()
        print_repairs(console, [one.headline for one in found.components], found.table, rows)
        lines = [*found.notes, *(one.rates for one in found.components if one.rates)]
        for line in (*lines, *(() if found.table.is_empty() else RECORD)):
            print_line(console, line)
        out = found.file
        print_line(console, "Nothing was written; --out FILE says where." if out is None else f"written: {out}")
    if found.reasons:
        raise typer.Exit(1)
