"""A backtest in a terminal: scores beside those of simpler forecasters, numbers found beside those expected."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from rekka.fleet.backtest import FILES, Backtest
from rekka.report.terminal.parts import (
    NOTHING,
    add_columns,
    explain,
    new_table,
    print_line,
    print_plain,
    print_table,
    print_warning,
)

FULLY = 3  # cases that are shown in full without being asked
SCORES = {
    "rps": "ranked prob. score",
    "brier": "Brier score",
    "log_loss_exact": "log loss",
    "log_loss": "log loss, floored",
    "accuracy": "accuracy",
}
INSIDE, NOT_CERTIFIED = "*", "†"

Means = dict[tuple[str, str], float]
Differences = dict[tuple[str, str], dict[str, Any]]


def print_backtest(console: Console, found: Backtest, out: Path | None, *, show_all: bool = False) -> None:
    """The cases in a table, each of a few in full, and what it comes to in words."""
    for line in found.cases["misfit"].drop_nulls():
        print_warning(console, line, "\n")
    for note in found.notes:
        print_plain(console, f"{note}\n")
    scored = found.scores["case"].unique(maintain_order=True).to_list()
    full = show_all or len(scored) <= FULLY
    if len(scored) > 1:
        _print_cases(console, found)
    for case in scored if full else ():
        _print_scores(console, found, case)
        _print_horizons(console, found, case)
        _print_totals(console, found, case)
    for summary in found.cases["summary"]:
        print_plain(console, f"{summary}\n")
    if not full:
        console.print("--all shows every case in full.", highlight=False)
    if out is None:
        console.print("Nothing was written; --out says where.", highlight=False)
    else:
        print_line(console, f"written to {out}: {', '.join(FILES)}")


def _print_cases(console: Console, found: Backtest) -> None:
    """One line a case."""
    table = new_table(f"Forecasts of later visits by models fitted up to {found.until}")
    add_columns(table, "case", "visits", "RPS", "same", "log loss", "no cov.", "found", "expected", "")
    for case in found.scores["case"].unique(maintain_order=True):
        (scores, _), one = _scores(found, case), _case(found, case)
        worse = _worse(found, case, "all")
        totals = _tell_total(worse[0]) if worse else ("", "", "")
        figures = [
            scores["rps", "model"], scores["rps", "persistence"],
            scores["log_loss_exact", "model"], scores.get(("log_loss_exact", "no_covariates")),
        ]  # fmt: skip
        name = escape(case) + ("" if one["certified"] else f" {NOT_CERTIFIED}")
        table.add_row(name, f"{one['visits']:,}", *map(_figure, figures), *totals)
    console.print(table)
    explain(
        console,
        "RPS: ranked probability score, less is better; same: that of saying that nothing changes. no cov.: log "
        "loss of the model without covariates. found, expected: visits in the threshold state or worse, with the "
        f"{100 * found.level:g} % prediction interval. {INSIDE}: inside it. {NOT_CERTIFIED}: the fit is not a "
        "certified maximum.",
    )


def _print_scores(console: Console, found: Backtest, case: str) -> None:
    """Every score of the three forecasters, and the intervals of the differences."""
    visits = _case(found, case)["visits"]
    table = new_table(f"{escape(case)}: what the forecasts of {visits:,} later visits were worth")
    add_columns(table, "score", "model", "no cov.", "same", "model less no cov.", "model less same")
    scores, less = _scores(found, case)
    for score, words in SCORES.items():
        means = [scores.get((score, one)) for one in ("model", "no_covariates", "persistence")]
        ends = [_ends(less.get((score, other))) for other in ("no_covariates", "persistence")]
        table.add_row(words, *map(_figure, means), *ends)
    console.print(table)
    explain(
        console,
        "Less is better, but for accuracy. no cov.: the model without covariates. same: saying that nothing "
        "changes, whose log loss is infinite as soon as one state has changed; floored: no probability below "
        f"1e-12. The last two columns are {100 * found.level:g} % intervals of the difference, by bridge.",
    )


def _print_horizons(console: Console, found: Backtest, case: str) -> None:
    """How the scores change with the years ahead."""
    table = new_table(f"{escape(case)}: by years ahead")
    add_columns(
        table, "years", "visits", "RPS", "same", "model less same", "log loss", "no cov.", "accuracy", "same"
    )
    table.columns[0].justify = "right"
    here = found.scores.filter(case=case, by="horizon")
    for years in here["group"].unique().sort():
        scores, less = _scores(found, case, "horizon", years)
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
    print_table(console, table)


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
    explain(
        console,
        f"expected, with the {100 * found.level:g} % prediction interval of the number found; {INSIDE}: inside "
        "it. no cov.: expected by the model without covariates. same: if nothing had changed.",
    )


def _print_counts(console: Console, title: str, first: str, lines: list[dict[str, Any]], key: str) -> None:
    table = new_table(title)
    add_columns(table, first, "visits", "found", "expected", "", "no cov.", "same")
    table.columns[0].justify = "right"
    for line in lines:
        table.add_row(
            str(line[key]),
            f"{line['visits']:,}",
            *_tell_total(line),
            _figure(line["expected_no_covariates"], ",.0f"),
            f"{line['unchanged']:,}",
        )
    print_table(console, table)


def _tell_total(line: dict[str, Any]) -> tuple[str, str, str]:
    """Found, expected with its interval, and a mark where it is inside."""
    expected = f"{line['expected']:,.0f}"
    if line["inside"] is not None:
        expected += f" ({line['predicted_low']:,} to {line['predicted_high']:,})"
    return f"{line['observed']:,}", expected, INSIDE if line["inside"] else ""


def _worse(found: Backtest, case: str, by: str) -> list[dict[str, Any]]:
    return found.totals.filter(case=case, by=by, or_worse=True).to_dicts()


def _scores(found: Backtest, case: str, by: str = "all", group: int | None = None) -> tuple[Means, Differences]:
    """Means by score and forecaster, and rows of differences by score and the forecaster taken off."""
    here = found.scores.filter(case=case, by=by)
    rows = (here if group is None else here.filter(group=group)).to_dicts()
    means = {(row["score"], row["forecaster"]): row["mean"] for row in rows if row["less"] is None}
    return means, {(row["score"], row["less"]): row for row in rows if row["less"] is not None}


def _case(found: Backtest, case: str) -> dict[str, Any]:
    return found.cases.filter(case=case).row(0, named=True)


def _figure(value: float | None, form: str = ".4f") -> str:
    if value is None:
        return NOTHING
    return "infinite" if math.isinf(value) else format(value, form)


def _ends(row: dict[str, Any] | None) -> str:
    """The interval of a difference."""
    if row is None or row["low"] is None:
        return NOTHING
    return f"{row['low']:+.4f} to {row['high']:+.4f}"
