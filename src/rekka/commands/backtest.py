"""``rekka backtest``: a model fitted to the past, and its forecasts held against what was found later."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import rekka
from rekka.commands import telling
from rekka.commands.asking import Clock
from rekka.commands.bars import new_bar
from rekka.commands.data import AsJson, Tables
from rekka.commands.outputs import check_folder
from rekka.commands.reading import Only, Reader, TestFit, Use, reads_tables, split_list
from rekka.core.files import has_columns, make_folder, write_text, write_whole
from rekka.core.seals import plain
from rekka.core.terminal import echo_json, new_console

if TYPE_CHECKING:
    import polars as pl

    from rekka.fleet.backtest import Backtest

FULLY = 3  # cases that are shown in full without being asked
SCORES = {
    "rps": "ranked prob. score",
    "brier": "Brier score",
    "log_loss_exact": "log loss",
    "log_loss": "log loss, floored",
    "accuracy": "accuracy",
}
INSIDE, NOT_CERTIFIED = "*", "†"
FILES = ("scores.csv", "totals.csv", "lost.csv", "cases.csv", "forecasts.parquet", "backtest.json")


@reads_tables
def backtest(
    tables: Tables,
    reader: Reader,
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
    only: Only = None,
    use: Use = None,
    scaling: Annotated[str, typer.Option(help="Scaling of the covariates.")] = "zscore",
    ridge: Annotated[float, typer.Option(min=0, help="Penalty on slopes, in z-scored units.")] = 0.0,
    age: Annotated[
        str,
        typer.Option(metavar="HOW", help="Ages: advances, held (at the oldest of the training rows) or fixed."),
    ] = "advances",
    advance: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A covariate that goes on by the year, if not called age. Repeatable."),
    ] = None,
    clock: Clock = "middle",
    threshold: Annotated[
        int | None,
        typer.Option(min=2, metavar="STATE", help="Visits in this state or worse are counted; 4, or the worst."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals, such as 0.95.")] = 0.95,
    draws: Annotated[int, typer.Option(min=100, help="Of the coefficients, for prediction intervals.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 0,
    test_fit: TestFit = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FOLDER", help="Where the tables go.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show every case in full, however many.")] = False,
    as_json: AsJson = False,
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
    from rekka.fleet.backtest import backtest as run

    errors = new_console(stderr=True)
    if out is not None:
        _check_place(out, reader.inputs(tables))
    with errors.status(f"Reading {escape(tables[0].name)} ..."):
        records = _read(reader, tables)
    with _watch(errors) as on_progress:
        found = run(
            records,
            until=until,
            until_visit=until_visit,
            since=since,
            cases=only or None,
            covariates=split_list(use),
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
            on_progress=on_progress,
        )
    if out is not None:
        _write(found, out)
    if as_json:
        echo_json(found.to_dict())
    else:
        print_backtest(new_console(), found, out, show_all=show_all)
    if found.scores["case"].n_unique() < len(found.cases):
        raise typer.Exit(1)


def _read(reader: Reader, tables: list[Path]) -> Any:
    """The transitions, and the visits they were paired from, where the table has visits."""
    from rekka.fleet.backtest_rows import Records, holds_transitions

    if not reader.nbi and holds_transitions(tables[0], reader.mapping, reader.changes):
        return Records(reader.transitions(tables))
    panel = reader.panel(tables)
    return Records(rekka.pair_visits(panel, **reader.rules), panel)


@contextmanager
def _watch(errors: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for the networks that are drawn, case by case."""
    with new_bar(errors) as progress:
        task = progress.add_task("", total=None, what="Networks drawn")

        def show(case: str, done: int, total: int) -> None:
            progress.update(task, description=case, completed=done, total=total)

        yield show


def _check_place(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse a folder with files of the same names, unless they are of an earlier backtest, by its scores."""
    scores = out / FILES[0]
    ours = scores.is_file() and has_columns("case", "forecaster", "score", "less")(scores)
    check_folder(out, [out / name for name in FILES], inputs, lambda _: ours)


def _write(found: Backtest, out: Path) -> None:
    """The tables, as CSV for a spreadsheet and as Parquet and JSON for programs."""
    from rekka.core.sheets import to_parquet, write_csv

    make_folder(out)
    for name in ("scores", "totals", "lost", "cases"):
        write_csv(out / f"{name}.csv", getattr(found, name))
    write_whole(out / "forecasts.parquet", to_parquet(found.forecasts))
    text = json.dumps(plain(found.to_dict()), ensure_ascii=False, indent=1, default=str, allow_nan=False)
    write_text(out / "backtest.json", text + "\n")


def print_backtest(console: Console, found: Backtest, out: Path | None, *, show_all: bool = False) -> None:
    """The cases in a table, each of a few in full, and what it comes to in words."""
    for line in found.cases["misfit"].drop_nulls():
        console.print(f"[bold red]{escape(line)}[/]\n", highlight=False)
    for note in found.notes:
        console.print(f"{note}\n", highlight=False, markup=False)
    scored = found.scores["case"].unique(maintain_order=True).to_list()
    full = show_all or len(scored) <= FULLY
    if len(scored) > 1:
        _print_cases(console, found)
    for case in scored if full else ():
        _print_scores(console, found, case)
        _print_horizons(console, found, case)
        _print_totals(console, found, case)
    for summary in found.cases["summary"]:
        console.print(summary, highlight=False, markup=False)
        console.print()
    if not full:
        console.print("--all shows every case in full.", highlight=False)
    if out is None:
        console.print("Nothing was written; --out says where.", highlight=False)
    else:
        console.print(f"written to {out}: {', '.join(FILES)}", highlight=False, markup=False, soft_wrap=True)


def _print_cases(console: Console, found: Backtest) -> None:
    """One line a case."""
    table = telling.new_table(f"Forecasts of later visits by models fitted up to {found.until}")
    telling.add_columns(table, "case", "visits", "RPS", "same", "log loss", "no cov.", "found", "expected", "")
    for case in found.scores["case"].unique(maintain_order=True):
        scores = _means(found, case, "all", None)
        worse = _worse(found, case, "all")
        totals = _tell_total(worse[0]) if worse else ("", "", "")
        figures = [
            scores["rps", "model"], scores["rps", "persistence"],
            scores["log_loss_exact", "model"], scores.get(("log_loss_exact", "no_covariates")),
        ]  # fmt: skip
        name = escape(case) + ("" if _certified(found, case) else f" {NOT_CERTIFIED}")
        table.add_row(name, f"{_count(found, case):,}", *map(_figure, figures), *totals)
    console.print(table)
    _explain(
        console,
        "RPS: ranked probability score, less is better; same: that of saying that nothing changes. no cov.: log "
        "loss of the model without covariates. found, expected: visits in the threshold state or worse, with the "
        f"{100 * found.level:g} % prediction interval. {INSIDE}: inside it. {NOT_CERTIFIED}: the fit is not a "
        "certified maximum.",
    )


def _print_scores(console: Console, found: Backtest, case: str) -> None:
    """Every score of the three forecasters, and the intervals of the differences."""
    table = telling.new_table(
        f"{escape(case)}: what the forecasts of {_count(found, case):,} later visits were worth"
    )
    telling.add_columns(table, "score", "model", "no cov.", "same", "model less no cov.", "model less same")
    scores = _means(found, case, "all", None)
    less = _differences(found, case, "all", None)
    for score, words in SCORES.items():
        means = [scores.get((score, one)) for one in ("model", "no_covariates", "persistence")]
        ends = [_ends(less.get((score, other))) for other in ("no_covariates", "persistence")]
        table.add_row(words, *map(_figure, means), *ends)
    console.print(table)
    _explain(
        console,
        "Less is better, but for accuracy. no cov.: the model without covariates. same: saying that nothing "
        "changes, whose log loss is infinite as soon as one state has changed; floored: no probability below "
        f"1e-12. The last two columns are {100 * found.level:g} % intervals of the difference, by bridge.",
    )


def _print_horizons(console: Console, found: Backtest, case: str) -> None:
    """How the scores change with the years ahead."""
    table = telling.new_table(f"{escape(case)}: by years ahead")
    telling.add_columns(
        table, "years", "visits", "RPS", "same", "model less same", "log loss", "no cov.", "accuracy", "same"
    )
    table.columns[0].justify = "right"
    here = found.scores.filter(case=case, by="horizon")
    for years in here["group"].unique().sort():
        scores = _means(found, case, "horizon", years)
        less = _differences(found, case, "horizon", years)
        visits = here.filter(group=years)["visits"][0]
        table.add_row(
            str(years),
            f"{visits:,}",
            _figure(scores["rps", "model"]),
            _figure(scores["rps", "persistence"]),
            _ends(less["rps", "persistence"]),
            _figure(scores["log_loss_exact", "model"]),
            _figure(scores.get(("log_loss_exact", "no_covariates"))),
            _figure(scores["accuracy", "model"]),
            _figure(scores["accuracy", "persistence"]),
        )
    console.print(table)
    console.print()


def _print_totals(console: Console, found: Backtest, case: str) -> None:
    """What was found beside what was expected: by year and by state."""
    period = "visit" if "visit" in found.totals["by"] else "year"
    worse = _worse(found, case, period)
    if worse:
        _print_counts(
            console, f"{escape(case)}: visits in state {worse[0]['state']} or worse", period, worse, "group"
        )
    here = found.totals.filter(case=case, by="all", or_worse=False).to_dicts()
    _print_counts(console, f"{escape(case)}: visits in each state, all together", "state", here, "state")
    start = found.totals.filter(case=case, by="start", or_worse=False).to_dicts()
    stayed = [line for line in start if line["group"] == line["state"]]
    _print_counts(console, f"{escape(case)}: visits still in the state of the origin", "state", stayed, "state")
    _explain(
        console,
        f"expected, with the {100 * found.level:g} % prediction interval of the number found; {INSIDE}: inside "
        "it. no cov.: expected by the model without covariates. same: if nothing had changed.",
    )


def _print_counts(console: Console, title: str, first: str, lines: list[dict[str, Any]], key: str) -> None:
    table = telling.new_table(title)
    telling.add_columns(table, first, "visits", "found", "expected", "", "no cov.", "same")
    table.columns[0].justify = "right"
    for line in lines:
        table.add_row(
            str(line[key]),
            f"{line['visits']:,}",
            *_tell_total(line),
            _figure(line["expected_no_covariates"], ",.0f"),
            f"{line['unchanged']:,}",
        )
    console.print(table)
    console.print()


def _tell_total(line: dict[str, Any]) -> tuple[str, str, str]:
    """Found, expected with its interval, and a mark where it is inside."""
    expected = f"{line['expected']:,.0f}"
    if line["inside"] is not None:
        expected += f" ({line['predicted_low']:,} to {line['predicted_high']:,})"
    return f"{line['observed']:,}", expected, INSIDE if line["inside"] else ""


def _worse(found: Backtest, case: str, by: str) -> list[dict[str, Any]]:
    return found.totals.filter(case=case, by=by, or_worse=True).to_dicts()


def _group(found: Backtest, case: str, by: str, group: int | None) -> pl.DataFrame:
    here = found.scores.filter(case=case, by=by)
    return here if group is None else here.filter(group=group)


def _means(found: Backtest, case: str, by: str, group: int | None) -> dict[tuple[str, str], float]:
    here = _group(found, case, by, group)
    plain_ones = here.filter(here["less"].is_null())
    return {(row["score"], row["forecaster"]): row["mean"] for row in plain_ones.to_dicts()}


def _differences(found: Backtest, case: str, by: str, group: int | None) -> dict[tuple[str, str], dict[str, Any]]:
    here = _group(found, case, by, group)
    return {(row["score"], row["less"]): row for row in here.filter(here["less"].is_not_null()).to_dicts()}


def _count(found: Backtest, case: str) -> int:
    return int(found.cases.filter(case=case)["visits"].item())


def _certified(found: Backtest, case: str) -> bool:
    return bool(found.cases.filter(case=case)["certified"].item())


def _figure(value: float | None, form: str = ".4f") -> str:
    if value is None:
        return telling.NOTHING
    return "infinite" if math.isinf(value) else format(value, form)


def _ends(row: dict[str, Any] | None) -> str:
    """The interval of a difference."""
    if row is None or row["low"] is None:
        return telling.NOTHING
    return f"{row['low']:+.4f} to {row['high']:+.4f}"


def _explain(console: Console, words: str) -> None:
    console.print(words, style="dim", highlight=False)
    console.print()
