"""``rekka backtest``: a model fitted to the past, and its forecasts held against what was found later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

import rekka
from rekka.commands import options
from rekka.commands.bars import STOPPED, count_progress
from rekka.commands.options import Flag, asks, reads_tables
from rekka.core.errors import BadOption
from rekka.core.language import say
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import list_commands, print_line, print_plain, quote

if TYPE_CHECKING:
    from rekka.fleet.backtest import Backtest

KEPT = "models"  # folder of the forecasts by model and origin (``fleet/backtest.py``)
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
    verbose: options.VerboseAll = False,
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
    until = {"until", "until_visit"} & asked.keys()
    if len(until) == 2 or not (until or "models" in asked):
        raise BadOption(
            "Say up to when the model may know anything, in one way: --until, a date such as 2008-12-31 or a "
            "year, or --until-visit, the number of a round of inspections."
        )
    errors, out = new_console(stderr=True), asked.get("out")
    try:
        with count_progress(errors, "Networks drawn") as on_progress:
            found = rekka.backtest(tables, **asked, allow=reader.allow, reading=reader, on_progress=on_progress)
    except KeyboardInterrupt:
        if out is None or not any(out.glob(f"{KEPT}/*.parquet")):
            raise
        kept = f"The forecasts made so far are kept in {out / KEPT}"
        print_plain(errors, f"Stopped. {kept}; the same command continues.")
        raise typer.Exit(STOPPED) from None
    if as_json:
        echo_json(found.to_dict())
    else:
        _print_found(found, out, verbose=verbose)
    if found.scores["case"].n_unique() < len(found.cases):
        raise typer.Exit(1)


def _print_found(found: Backtest, out: Path | None, *, verbose: bool) -> None:
    """Print the answer, or everything, and where the files are."""
    from rekka.fleet.backtest import FILES
    from rekka.report.terminal.backtests import print_backtest_brief
    from rekka.report.terminal.forecast import print_backtest
    from rekka.report.terminal.tables import WORDS

    console = new_console()
    if verbose:
        print_backtest(console, found)
    else:
        print_backtest_brief(console, found)
    if out is None:
        print_line(console, WORDS("terminal.nothing_written"))
    else:
        print_line(console, WORDS.format(say("terminal.files", folder=str(out), files=list(FILES))))
    command = "--verbose" if out is None else f"rekka show {quote(out)}"
    for line in [] if verbose else list_commands({command: WORDS("terminal.backtest.more_all")}):
        print_line(console, line)
