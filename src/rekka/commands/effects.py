"""``rekka effects``: what each covariate does to the years until a state, in sentences, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.bars import show_progress
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line


def effects(
    model: options.ModelPath,
    start: Annotated[int, typer.Option(metavar="STATE", help="The state to start from.")] = 1,
    threshold: Annotated[
        int | None,
        typer.Option(metavar="STATE", help="The state to be reached. Default: 4, or the worst of fewer."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=CHANGE",
            help="A change, such as age_at_inspection_1=+10 or traffic_mean=x2. Default: ten years, twice the "
            "traffic, a round step of others. Repeatable.",
        ),
    ] = None,
    at: options.At = None,
    age: options.Age = "fixed",
    advance: options.Advance = None,
    intervals: options.Intervals = "normal",
    draws: options.Draws = 1000,
    level: options.Level = 0.95,
    seed: options.DrawSeed = 0,
    only: options.Only = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FOLDER", help="Where effects.csv, profiles.csv and a picture for each covariate go."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Say what each covariate does to the years until a state: as sentences, with intervals.

    Each covariate is changed by itself, the others stay typical, and the mean years from --start to --threshold
    are compared before and after. With --out, hazards and years along the range of each covariate are written too,
    as a table and as pictures.

    For example:

      rekka effects girder.json

      rekka effects models --threshold 3 --change age_at_inspection_1=+20 --out effects

      rekka effects run --only "Main girder" --at traffic_mean=20000 --age advances
    """
    from rekka.report.terminal.models import print_effects, print_notes

    changes = options.read_pairs(change, "--change", "age_at_inspection_1=+10")
    given = options.read_at(at)
    with show_progress(new_console(stderr=True)) as on_progress:
        found = rekka.measure_effects(
            model,
            start=start,
            threshold=threshold,
            changes=changes,
            at=given,
            age=age,
            advance=advance,
            intervals=intervals,
            draws=draws,
            level=level,
            seed=seed,
            only=only,
            out=out,
            on_progress=on_progress,
        )
    if as_json:
        echo_json(found.to_dict())
        return
    console = new_console()
    for one in found.components:
        print_effects(console, one.model, one.given, one.effects)
    print_notes(console, found.notes)
    print_line(console, _tell_files(found.files, out))


def _tell_files(files: Sequence[Path], out: Path | None) -> str:
    if files:
        return f"written: {', '.join(map(str, files))}"
    if out is None:
        return "Nothing was written; --out FOLDER says where."
    return "Nothing was written: no model has covariates."
