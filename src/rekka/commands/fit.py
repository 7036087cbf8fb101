"""``rekka fit``: the model fitted to all rows of each case, shown and saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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

MANY_CASES = 20  # of more, the verdicts are counted
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
    verbose: options.VerboseAll = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit the model to all rows of each component, and say what it says: years until a rating, what changes them.

    A line for each component: whether its fit is a certified maximum, the years until the threshold, the strongest
    effect, and which assumptions its records contradict. Above 20 components the verdicts are counted instead.
    --verbose prints coefficients, hazard ratios, certificates and tests.

    Standard errors are clustered by bridge. With --out, the coefficients are written as CSV next to the models. A
    model file has all that rekka forecast needs: the component, the names of its states, the ranges of its
    covariates, and the refits of --bootstrap. A table of transitions in Parquet, a file or a folder, may be larger
    than memory.

    For example:

      rekka fit transitions.csv --only "Main girder" --out girder.json

      rekka fit inspections.xlsx --unit age_at_inspection_1=10 --unit traffic_mean=1000 --out models --verbose

      rekka fit inspections.xlsx --bootstrap 200 --out models

      rekka fit inspections.xlsx --models auto --out models

      rekka fit nation/ --memory 1GB --out models
    """
    errors, console = new_console(stderr=True), new_console()
    with show_progress(errors) as on_progress:
        fits = rekka.fit_components(tables, reader, **asked, on_progress=on_progress)
    if not fits.components:
        print_plain(errors, f"No two visits make a transition. rekka check {quote(tables[0])} says why.")
        raise typer.Exit(1)
    many = len(fits.components) > MANY_CASES
    for one in fits.components:
        _print_lacks(errors, one, many and not verbose)
    if as_json:
        echo_json([one.to_dict() for one in fits.components])
    else:
        _print_found(console, fits, asked, verbose=verbose)
        out = asked.get("out")
        for line in _list_lines(out, fits, tables, verbose=verbose):
            print_line(console, line)
    if any(one.failed for one in fits.components):
        raise typer.Exit(1)


def _print_found(console: Console, fits: ComponentFits, asked: options.Asked, *, verbose: bool) -> None:
    """Print the models in full, a line for each, or, of very many, how many there are of each verdict."""
    from rekka.fleet.histories import NO_TEST, NO_WEIGHTED_TEST
    from rekka.report.terminal.fits import FittedComponent, print_fits
    from rekka.report.terminal.models import describe_tests, print_summary

    described = [one.to_dict() for one in fits.components]
    models = {one.case: one for one in fits.to_models().models}
    if verbose:
        for one in fits.components:
            print_component(console, one)
    elif len(fits.components) > MANY_CASES:
        print_summary(console, described, asked["bootstrap"])
    elif models:
        made = []
        for one in fits.components:
            if one.case in models:
                chosen = [] if one.choice is None else [one.choice]
                told = [*(choice.summary for choice in chosen), *one.elements]
                name = "".join(choice.name for choice in chosen)
                made.append(FittedComponent(models[one.case], one.findings, name, told))
        print_fits(console, made)
    explained = not {NO_TEST, NO_WEIGHTED_TEST}.isdisjoint(fits.notes)
    untested = None if fits.tested or explained or "test_fit" in asked else len(described)
    merged = [] if fits.reading is None else fits.reading.explain_merges()
    for line in (*merged, *fits.notes, *describe_tests(described, untested)):
        print_line(console, line)


def _print_lacks(errors: Console, one: ComponentFit, brief: bool) -> None:
    """Print what could not be made; of many components the summary says it."""
    lacks = {"cannot be fitted": one.reason, "has no bootstrap": one.no_bootstrap}
    told = {} if brief else lacks
    for what, why in (told | {"has no test of fit": one.no_test}).items():
        if why is not None:
            print_plain(errors, f"{one.case} {what}: {why}\n")


def print_component(console: Console, one: ComponentFit) -> None:
    """Print a model in full."""
    from rekka.report.terminal.models import print_model

    if one.choice is not None:
        print_plain(console, one.choice.summary)
    if one.model is not None:
        told = (one.coefficients, one.elements, one.violations)
        print_model(console, one.case, one.rows, one.model, one.labels, *told)


def _list_lines(out: Path | None, fits: ComponentFits, tables: list[Path], *, verbose: bool) -> list[str]:
    """Lines on the files written, and the commands that come next or say more."""
    from rekka.report.terminal.parts import list_commands
    from rekka.report.terminal.tables import WORDS

    more = {} if verbose else {"--verbose": WORDS("terminal.fit.more_all")}
    if out is None:
        return [WORDS("terminal.nothing_written"), *list_commands(more)]
    if fits.table is None:
        return ["Nothing was written: no component could be fitted."]
    models = f"the model{'s' if len(fits.components) > 1 else ''}"
    effects = {f"rekka effects {quote(out)}": WORDS("terminal.fit.more_effects")}
    command = " ".join(["rekka forecast", *map(quote, [out, *tables])])
    return [f"written: {out} ({models}), {fits.table}", *list_commands(more | effects), f"next: {command}"]
