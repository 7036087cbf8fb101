"""``rekka fit``: the model fitted to all rows of each case, shown and saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

import rekka
from rekka.commands import options
from rekka.commands.bars import show_progress
from rekka.commands.options import Flag, asks, reads_tables
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_line, print_plain, quote

if TYPE_CHECKING:
    from rekka.workflows.fit import ComponentFit, ComponentFits

MANY_CASES = 20  # of more, a summary is printed
FLAGS = (
    Flag("--scaling", str, "scaling", None,
         "Scaling of the covariates, such as zscore or boxcox+zscore.", "zscore"),
    options.ONLY, options.USE, options.RIDGE, options.ADVANCE, options.MODELS, *options.HISTORIES, options.SINCE,
    options.UNITS,
    Flag("--bootstrap", int, "bootstrap", "N",
         "Refits to bridges drawn with replacement, for intervals of forecasts; 200 is usual.", 0, 0),
    Flag("--seed", int, "seed", None, "Of the bootstrap's draws.", 0, 0),
    options.TEST_FIT, options.MEMORY,
    Flag("--threads", options.Number, "threads", None, "Threads over rows. Default: one a core.", least=1),
    options.CLUSTER,
    Flag("--out", options.Place, "out", None,
         "Where the models go: a .json file for one component, a folder for several."),
)  # fmt: skip


@reads_tables
@asks(*FLAGS)
def fit(
    tables: options.Tables,
    reader: options.Reader,
    asked: options.Asked,
    show_all: Annotated[
        bool, typer.Option("--all", help="Print every model in full, however many components there are.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit the model to all rows of each component: coefficients in native units, hazard ratios, certificate.

    Standard errors are clustered by bridge. With --out, the coefficients are written as CSV next to the models. A
    model file has all that rekka forecast needs: the component, the names of its states, the ranges of its
    covariates, and the refits of --bootstrap. A table of transitions in Parquet, a file or a folder, may be larger
    than memory. Above 20 components, a count of the verdicts is printed instead of every model.

    For example:

      rekka fit transitions.csv --only "Main girder" --out girder.json

      rekka fit inspections.xlsx --unit age_at_inspection_1=10 --unit traffic_mean=1000 --out models

      rekka fit inspections.xlsx --bootstrap 200 --out models

      rekka fit inspections.xlsx --models auto --out models

      rekka fit nation/ --memory 1GB --out models
    """
    from rekka.fleet.histories import NO_TEST, NO_WEIGHTED_TEST
    from rekka.report.terminal.models import describe_tests, print_summary

    errors, console = new_console(stderr=True), new_console()
    with show_progress(errors) as on_progress:
        fits = rekka.fit_components(tables, reader, **asked, on_progress=on_progress)
    if not fits.components:
        print_plain(errors, f"No two visits make a transition. rekka check {quote(tables[0])} says why.")
        raise typer.Exit(1)
    described = [one.to_dict() for one in fits.components]
    brief = len(described) > MANY_CASES and not show_all
    for one in fits.components:
        _print_lacks(errors, one, brief)
        if not (as_json or brief):
            _print_component(console, one)
    if as_json:
        echo_json(described)
    else:
        if brief:
            print_summary(console, described, asked["bootstrap"])
        explained = not {NO_TEST, NO_WEIGHTED_TEST}.isdisjoint(fits.notes)
        untested = None if fits.tested or explained or "test_fit" in asked else len(described)
        merged = [] if fits.reading is None else fits.reading.explain_merges()
        tests = describe_tests(described, untested)
        for line in (*merged, *fits.notes, *tests, *_list_lines(asked.get("out"), fits, tables)):
            print_line(console, line)
    if any(one.failed for one in fits.components):
        raise typer.Exit(1)


def _print_lacks(errors: Console, one: ComponentFit, brief: bool) -> None:
    """Print what could not be made; of many components the summary says it."""
    lacks = {"cannot be fitted": one.reason, "has no bootstrap": one.no_bootstrap}
    told = {} if brief else lacks
    for what, why in (told | {"has no test of fit": one.no_test}).items():
        if why is not None:
            print_plain(errors, f"{one.case} {what}: {why}\n")


def _print_component(console: Console, one: ComponentFit) -> None:
    from rekka.report.terminal.models import print_model

    if one.choice is not None:
        print_plain(console, one.choice.summary)
    if one.model is not None:
        told = (one.coefficients, one.elements, one.violations)
        print_model(console, one.case, one.rows, one.model, one.labels, *told)


def _list_lines(out: Path | None, fits: ComponentFits, tables: list[Path]) -> list[str]:
    """Lines on the files written, and the next command."""
    if out is None:
        return ["Nothing was written; --out says where."]
    if fits.table is None:
        return ["Nothing was written: no component could be fitted."]
    command = " ".join(["rekka forecast", *map(quote, [out, *tables])])
    models = f"the model{'s' if len(fits.components) > 1 else ''}"
    return [f"written: {out} ({models}), {fits.table}", f"next: {command}"]
