"""``rekka backtest``: a model fitted to the past, and its forecasts held against what was found later."""

from __future__ import annotations

from typing import Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.bars import count_progress
from rekka.commands.options import Flag, asks, reads_tables
from rekka.core.terminal import echo_json, new_console

FLAGS = (
    Flag("--until", options.Text, "until", "DATE",
         "The last day that the model may know: 2008-12-31, or a year, 2008."),
    Flag("--until-visit", options.Number, "until_visit", "N", "Instead, the last round of inspections.", least=1),
    options.SINCE,
    options.ONLY._replace(place="cases"), options.USE,
    Flag("--scaling", str, "scaling", None, "Scaling of the covariates.", "zscore"),
    options.RIDGE,
    Flag("--age", str, "age", "HOW", "Ages: advances, held (at the oldest of the training rows) or fixed.",
         "advances"),
    options.GOES_ON, options.MODELS, *options.HISTORIES,
    options.THRESHOLD._replace(words=options.THRESHOLD.words.replace(
        "The rating whose reaching is asked for", "Visits in this rating or worse are counted")),
    options.SHOCKS,
    Flag("--level", float, "level", None, "Of the intervals, such as 0.95.", 0.95),
    Flag("--draws", int, "draws", None, "Of the coefficients, for prediction intervals.", 500, 100),
    Flag("--seed", int, "seed", None, "The same seed gives the same result.", 0, 0),
    options.TEST_FIT,
    Flag("--out", options.Place, "out", "FOLDER", "Where the tables go."),
)  # fmt: skip


@reads_tables
@asks(*FLAGS)
def backtest(
    tables: options.Tables,
    reader: options.Reader,
    asked: options.Asked,
    show_all: Annotated[bool, typer.Option("--all", help="Show every component in full, however many.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Fit the model to the past, forecast from there, and compare the forecasts with later inspections.

    Forecasts start from each member's last visit up to --until and are compared with all later ones: scores of
    the model and of two baselines (no change, no covariates), and the numbers found in each rating against those
    expected, with prediction intervals. Members that were repaired are counted, not scored.

    With --models the model of each component is chosen first, by forecasts from days inside the training years;
    without --until the last 30 % of the years are kept for the test. With --out a run that was stopped continues
    where it was.

    For example:

      rekka backtest inspections.xlsx --until 2015-03-31

      rekka backtest bridges.csv --mapping bridges.toml --until 2008 --age held --out backtest

      rekka backtest transitions.parquet --until-visit 4 --only Pier --threshold 3

      rekka backtest inspections.xlsx --models auto --until 2015 --out backtest
    """
    from rekka.report.terminal.forecast import print_backtest

    with count_progress(new_console(stderr=True), "Networks drawn") as on_progress:
        found = rekka.backtest(tables, **asked, allow=reader.allow, reading=reader, on_progress=on_progress)
    if as_json:
        echo_json(found.to_dict())
    else:
        print_backtest(new_console(), found, asked.get("out"), show_all=show_all)
    if found.scores["case"].n_unique() < len(found.cases):
        raise typer.Exit(1)
