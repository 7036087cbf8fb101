"""``rekka matrix``: transition matrices of fitted models, in the layouts of management systems."""

from __future__ import annotations

from functools import partial

import rekka
from rekka.commands import options
from rekka.commands.options import Flag, asks, read_list
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line

FLAGS = (
    Flag("--years", str, "years", "LIST", "Periods in years, such as 1,2,5: a matrix for each.", "1",
         read=partial(read_list, hint="--years", example="1,2,5")),
    Flag("--layout", str, "layout", "NAME",
         "square; long (with intervals); percent (that stay and move on, as in element tables); median (years in "
         "each rating).", "square"),
    *options.AT, options.INTERVALS, *options.DRAWS,
    Flag("--decimals", int, "decimals", None, "Of percentages, which sum to 100 as rounded.", 1),
    options.ONLY,
    Flag("--out", options.Place, "out", "PATH", "A .csv file, or a folder with a file a component."),
)  # fmt: skip


@asks(*FLAGS)
def matrix(model: options.ModelPath, asked: options.Asked, as_json: options.AsJson = False) -> None:
    """Show the transition matrix of a model for a member with given covariates: for a management system.

    Covariates that are not given are typical: the medians of the training rows. They are constant over the period
    unless --age says otherwise, so the matrix of two years is the square of that of one year.

    For example:

      rekka matrix girder.json

      rekka matrix models --years 1,2,5 --layout long --out matrices.csv

      rekka matrix run --layout median --at age_at_inspection_1=40,traffic_mean=8000 --out brm
    """
    from rekka.report.terminal.models import print_matrices, print_notes

    with new_console(stderr=True).status("Reading the models ..."):
        found = rekka.tabulate_matrices(model, **asked)
    if as_json:
        echo_json(found.to_dict())
        return
    console = new_console()
    for one in found.components:
        print_matrices(console, one.model, one.given, one.matrices, found.layout, found.decimals)
    print_notes(console, found.notes)
    written = f"written: {', '.join(map(str, found.files))}"
    print_line(console, written if found.files else "Nothing was written; --out says where.")
