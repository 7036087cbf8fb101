"""``rekka effects``: what each covariate does to the years until a rating, in sentences, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import rekka
from rekka.commands import options
from rekka.commands.bars import show_progress
from rekka.commands.options import Flag, asks, read_pairs
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line

FLAGS = (
    Flag("--start", options.Text, "start", "RATING", "The rating to start from, by its label. Default: the best."),
    options.THRESHOLD,
    Flag("--change", options.Many, "changes", "NAME=CHANGE",
         "A change, such as age_at_inspection_1=+10 or traffic_mean=x2. Default: ten years, twice the traffic, a "
         "round step of others. Repeatable.",
         read=partial(read_pairs, hint="--change", example="age_at_inspection_1=+10")),
    *options.AT, options.INTERVALS._replace(default="normal"), *options.DRAWS, options.ONLY,
    Flag("--out", options.Place, "out", "FOLDER",
         "Where effects.csv, profiles.csv and a picture for each covariate go."),
)  # fmt: skip


@asks(*FLAGS)
def effects(model: options.ModelPath, asked: options.Asked, as_json: options.AsJson = False) -> None:
    """Describe the effect of each covariate on the years until a rating: as sentences, with intervals.

    One covariate is changed at a time, the others stay typical, and the mean years from --start to --threshold
    are compared before and after. With --out, hazards and years along the range of each covariate are written too,
    as a table and as figures.

    For example:

      rekka effects girder.json

      rekka effects models --threshold c --change age_at_inspection_1=+20 --out effects

      rekka effects run --only "Main girder" --at traffic_mean=20000 --age advances
    """
    from rekka.report.terminal.models import print_effects, print_notes

    with show_progress(new_console(stderr=True)) as on_progress:
        found = rekka.measure_effects(model, **asked, on_progress=on_progress)
    if as_json:
        echo_json(found.to_dict())
        return
    console = new_console()
    for one in found.components:
        print_effects(console, one.model, one.given, one.effects)
    print_notes(console, found.notes)
    print_line(console, _describe_files(found.files, asked.get("out")))


def _describe_files(files: Sequence[Path], out: Path | None) -> str:
    if files:
        return f"written: {', '.join(map(str, files))}"
    if out is None:
        return "Nothing was written; --out FOLDER says where."
    return "Nothing was written: no model has covariates."
