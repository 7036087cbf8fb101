"""``rekka matrix``: transition matrices of fitted models, in the layouts of management systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import rekka
from rekka.commands import options
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line


def matrix(
    model: options.ModelPath,
    years: Annotated[
        str, typer.Option(metavar="LIST", help="Periods in years, such as 1,2,5: a matrix for each.")
    ] = "1",
    layout: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="square; long (with intervals); percent (that stay and go on, as in element tables); median "
            "(years in each state).",
        ),
    ] = "square",
    at: options.At = None,
    age: options.Age = "fixed",
    advance: options.Advance = None,
    intervals: options.Intervals = "delta",
    draws: options.Draws = 1000,
    level: options.Level = 0.95,
    seed: options.DrawSeed = 0,
    decimals: Annotated[int, typer.Option(help="Of percentages, which sum to 100 as rounded.")] = 1,
    only: options.Only = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", help="Where it goes: a .csv file, or a folder with a file a case."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the transition matrix of a model for a member with given covariates: for a management system.

    Covariates that are not given are typical: the medians of the training rows. They stay as they are over the
    period unless --age says otherwise, so that a matrix of two years is that of one year twice.

    For example:

      rekka matrix girder.json

      rekka matrix models --years 1,2,5 --layout long --out matrices.csv

      rekka matrix run --layout median --at age_at_inspection_1=40,traffic_mean=8000 --out brm
    """
    from rekka.report.terminal.models import print_matrices, print_notes

    times, given = _read_times(years), options.read_at(at)
    with new_console(stderr=True).status("Reading the models ..."):
        found = rekka.tabulate_matrices(
            model,
            years=times,
            layout=layout,
            at=given,
            age=age,
            advance=advance,
            intervals=intervals,
            draws=draws,
            level=level,
            seed=seed,
            decimals=decimals,
            only=only,
            out=out,
        )
    if as_json:
        echo_json(found.to_dict())
        return
    console = new_console()
    for one in found.components:
        print_matrices(console, one.model, one.given, one.matrices, layout, decimals)
    print_notes(console, found.notes)
    written = f"written: {', '.join(map(str, found.files))}"
    print_line(console, written if found.files else "Nothing was written; --out says where.")


def _read_times(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list such as 1,2,5", param_hint="--years") from None
