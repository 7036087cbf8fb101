"""``rekka backtest``: a model fitted to the past, and its forecasts held against what was found later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.bars import count_progress
from rekka.commands.options import reads_tables
from rekka.core.terminal import echo_json, new_console


@reads_tables
def backtest(
    tables: options.Tables,
    reader: options.Reader,
    until: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="The last day that the model may know: 2008-12-31, or a year, 2008."),
    ] = None,
    until_visit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Instead, the last round of inspections.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only transitions that begin on this day or later train.")
    ] = None,
    only: options.Only = None,
    use: options.Use = None,
    scaling: Annotated[str, typer.Option(help="Scaling of the covariates.")] = "zscore",
    ridge: options.Ridge = 0.0,
    age: Annotated[
        str,
        typer.Option(metavar="HOW", help="Ages: advances, held (at the oldest of the training rows) or fixed."),
    ] = "advances",
    advance: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A covariate that goes on by the year, if not called age. Repeatable."),
    ] = None,
    clock: options.Clock = "middle",
    threshold: Annotated[
        int | None,
        typer.Option(min=2, metavar="STATE", help="Visits in this state or worse are counted; 4, or the worst."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals, such as 0.95.")] = 0.95,
    draws: Annotated[int, typer.Option(min=100, help="Of the coefficients, for prediction intervals.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 0,
    test_fit: options.TestFit = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help="Where the tables go.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show every case in full, however many.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit the model to the past, forecast from there, and hold the forecasts against what was found later.

    Forecasts start from each member's last visit up to --until and go to all later ones. Beside the model's stand
    the scores of saying that nothing changes, and of the model without covariates; beside the numbers found in
    each state those expected, with prediction intervals. Members that were repaired are not scored, but counted.

    For example:

      rekka backtest inspections.xlsx --until 2015-03-31

      rekka backtest bridges.csv --mapping bridges.toml --until 2008 --age held --out backtest

      rekka backtest transitions.parquet --until-visit 4 --only Pier --threshold 3
    """
    from rekka.report.terminal.backtest import print_backtest

    with count_progress(new_console(stderr=True), "Networks drawn") as on_progress:
        found = rekka.backtest(
            tables,
            until=until,
            until_visit=until_visit,
            since=since,
            cases=only or None,
            covariates=options.split_list(use),
            scaling=scaling,
            ridge=ridge,
            age=age,
            advance=advance or None,
            clock=clock,
            threshold=threshold,
            level=level,
            draws=draws,
            seed=seed,
            test_fit=test_fit,
            allow=reader.allow,
            reading=reader,
            out=out,
            on_progress=on_progress,
        )
    if as_json:
        echo_json(found.to_dict())
    else:
        print_backtest(new_console(), found, out, show_all=show_all)
    if found.scores["case"].n_unique() < len(found.cases):
        raise typer.Exit(1)
