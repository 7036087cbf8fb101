"""``rekka bridges``: bridges ranked by how fast they deteriorate, given their covariates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.options import Flag, asks
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line

FLAGS = (
    options.ONLY,
    Flag("--out", options.Place, "out", "FILE", "Where the whole table goes: a .csv, .xlsx or .parquet file."),
)
ModelPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL",
        help="Model files of rekka fit --frailty gamma, or folders of them.",
        show_default=False,
    ),
]


@asks(*FLAGS)
def bridges(
    models: ModelPaths,
    asked: options.Asked,
    rows: Annotated[
        int, typer.Option("--rows", help="Bridges printed, the fastest first; --json prints all.", min=1)
    ] = 20,
    as_json: options.AsJson = False,
) -> None:
    """Rank bridges by how fast they deteriorate compared with others of their kind, with intervals.

    A model of rekka fit --frailty gamma gives each bridge a factor, on average 1, that multiplies all its hazards.
    A bridge with a factor of 1.8 deteriorates 1.8 times as fast as others with the same covariates: look there for
    a cause that the table does not have. An interval that includes 1 is no evidence of a difference.

    For example:

      rekka bridges girder.json

      rekka bridges models --rows 50 --out ranking.xlsx
    """
    from rekka.report.terminal.models import print_bridges

    with new_console(stderr=True).status("Reading the models ..."):
        found = rekka.rank_bridges(models, **asked)
    if as_json:
        echo_json(found.to_dicts())
        return
    console = new_console()
    if not found.is_empty():
        print_bridges(console, found, rows)
    out = asked.get("out")
    print_line(console, "Nothing was written; --out FILE says where." if out is None else f"written: {out}")
