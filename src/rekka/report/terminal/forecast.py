"""A forecast in the terminal: who was forecast, the network by year, the first risks, what to know.

A backtest in a terminal: scores beside those of simpler forecasters, numbers found beside those expected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from rekka.core.errors import count_of, name_some
from rekka.fleet.backtest import FILES, Backtest
from rekka.fleet.document import ForecastFile, LeftOutPart, ModelPart, RiskPart, TotalPart
from rekka.model.certificate import HARDLY_DETERMINED
from rekka.report.terminal.parts import (
    NOTHING,
    add_columns,
    explain,
    new_table,
    print_line,
    print_list,
    print_plain,
    print_table,
    print_warning,
)

YEARS = (0, 5, 10, 20, 30, 50, 100, 200)  # that are shown, besides the last
ROWS_SHOWN = 5
NAMES_SHOWN = 5  # components that are left out for one reason
NETWORK, REACHED = "network", "in this state or worse"


def print_forecast(
    console: Console, document: ForecastFile, folder: Path, files: Sequence[Path], following: str
) -> None:
    """All of it."""
    if document.watermark:
        print_warning(console, document.watermark, "\n")
    for line in (one.misfit for one in document.models if one.misfit is not None):
        print_warning(console, line, "\n")
    _print_list(console, "How the inventory was understood", document.understood)
    _print_headline(console, document)
    _print_models(console, document)
    _print_aside(console, document)
    _print_network(console, document)
    _print_cases(console, document)
    _print_risks(console, document)
    _print_remarks(console, document)
    _print_list(console, "What to know", [*document.notes, *_explain(document)])
    if document.watermark:
        print_warning(console, document.watermark)
    names = ", ".join(file.name for file in files)
    for line in (f"written: {folder} ({names})", f"next: {following}"):
        print_line(console, line)


def _print_list(console: Console, title: str, lines: Sequence[str]) -> None:
    console.print(f"[bold]{title}[/]")
    print_list(console, lines)
    console.print()


def _print_headline(console: Console, document: ForecastFile) -> None:
    cases = count_of(len(document.models), "component")
    since = f"from {document.base}" if document.base else "from when each was seen"
    members = f"{count_of(document.members, 'member')} of {cases}"
    console.print(
        f"[bold]{members} forecast for {count_of(document.horizon, 'year')} {since}[/]; "
        f"{document.there:,} of them were at the threshold or worse when last seen.",
        highlight=False,
    )
    for line in _list_left_out(document):
        console.print(line, highlight=False, markup=False)
    console.print()


def _list_left_out(document: ForecastFile) -> list[str]:
    """A line for each reason: how many members, and of which components."""
    by_reason: dict[str, list[LeftOutPart]] = {}
    for one in document.left_out:
        by_reason.setdefault(one.reason, []).append(one)
    return [
        f"Left out, also of the totals: {count_of(sum(one.members for one in some), 'member')} of "
        f"{name_some([one.case for one in some], NAMES_SHOWN)} ({reason})."
        for reason, some in by_reason.items()
    ]


def _print_models(console: Console, document: ForecastFile) -> None:
    table = new_table("The models")
    add_columns(table, "case", "members", "there already", "states", "threshold", "fitted to", "certificate")
    table.columns[6].justify = "left"
    for one in document.models:
        table.add_row(
            escape(one.case), f"{one.members:,}", f"{one.there:,}", str(one.n_states), str(one.threshold),
            f"{one.training_rows:,} rows", _show_marks(one),
        )  # fmt: skip
    print_table(console, table)


def _show_marks(model: ModelPart) -> str:
    """Whether the model is certified, how well it is determined, and that nobody chose it."""
    hardly = HARDLY_DETERMINED if model.verdict.endswith(HARDLY_DETERMINED) else ""
    certified = f"certified{hardly}" if model.certified else "[bold red]NOT CERTIFIED[/]"
    return certified if model.chosen else f"{certified}, [bold red]NOT CHOSEN[/]"


def _print_aside(console: Console, document: ForecastFile) -> None:
    if not document.aside:
        return
    table = new_table("Not forecast")
    add_columns(table, "reason", "count", "of", "first rows")
    table.columns[0].max_width = None
    for one in document.aside:
        rows = ", ".join(map(str, one.rows[:ROWS_SHOWN])) + (", ..." if one.count > ROWS_SHOWN else "")
        table.add_row(escape(one.reason), f"{one.count:,}", one.what, rows)
    print_table(console, table)


def _choose_years(document: ForecastFile) -> list[int]:
    return [year for year in YEARS if year < document.horizon] + [document.horizon]


def _print_network(console: Console, document: ForecastFile) -> None:
    """All cases together, or the only one: the numbers in each state, and the threshold with both intervals."""
    together = [total for total in document.network if total.scope == NETWORK]
    here = together or document.network
    case = here[0].case
    states = sorted({total.state for total in here if total.what != REACHED and total.state is not None})
    reached = next(total for total in here if total.what == REACHED)
    worse = "threshold or worse" if reached.state is None else f"{reached.state} or worse"
    marked = "" if reached.chosen else ", some by a model that was NOT CHOSEN"
    table = new_table(f"{escape(case)}: expected number of members in each state{marked}")
    add_columns(table, "year", *map(str, states), worse, *_name_intervals(document))
    table.columns[0].no_wrap = True
    for year in _choose_years(document):
        now = {(total.what == REACHED, total.state): total for total in here if total.year == year}
        numbers = [_number(now[False, state].expected) for state in states]
        total = now[True, reached.state]
        table.add_row(_name_year(total), *numbers, f"[bold]{_number(total.expected)}[/]", *_show_intervals(total))
    print_table(console, table)


def _name_intervals(document: ForecastFile) -> tuple[str, str]:
    return f"{document.asked.level:.0%} parameters", f"{document.asked.level:.0%} prediction"


def _show_intervals(total: TotalPart) -> tuple[str, str]:
    own = predicted = NOTHING
    if total.low is not None and total.high is not None:
        own = f"{_number(total.low)} to {_number(total.high)}"
    if total.predicted_low is not None and total.predicted_high is not None:
        predicted = f"{total.predicted_low:,.0f} to {total.predicted_high:,.0f}"
    return own, predicted


def _name_year(total: TotalPart) -> str:
    return str(total.year) if total.date is None else str(total.date.year)


def _number(value: float) -> str:
    """Whole members where there are many, a digit more where there are few."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _print_cases(console: Console, document: ForecastFile) -> None:
    """The threshold in each case, where there are several."""
    if len(document.models) < 2:
        return
    years = _choose_years(document)
    table = new_table("Each component: expected number at the threshold or worse, with intervals")
    add_columns(table, "case", "members", *(f"year {year}" for year in years), "prediction, last year")
    for model in document.models:
        mine = {
            t.year: t
            for t in document.network
            if t.case == model.case and t.what == REACHED and t.scope != NETWORK
        }
        expected = [_number(mine[year].expected) for year in years]
        name = escape(model.case) + ("" if model.chosen else " (not chosen)")
        table.add_row(name, f"{model.members:,}", *expected, _show_intervals(mine[years[-1]])[1])
    print_table(console, table)


def _print_risks(console: Console, document: ForecastFile) -> None:
    """The first members by risk."""
    if not document.risks:
        return
    names = ["bridge_id", *(["member"] if any(risk.member for risk in document.risks) else [])]
    names += ["case"] if len(document.models) > 1 else []
    years = [year for year in document.shown if year in (0, 10, document.horizon)]
    table = new_table(
        f"The first {len(document.risks)} not there yet, the soonest to be at the threshold or worse"
    )
    heads = ("bridge" if name == "bridge_id" else name for name in names)
    add_columns(table, "", *heads, "state", *(f"in {year}" for year in years), "years")
    table.add_column("half by" if document.base else "median", justify="right", no_wrap=True)
    for place in range(1, len(names) + 1):
        table.columns[place].justify, table.columns[place].no_wrap = "left", False
        table.columns[place].overflow = "fold"
    for risk in document.risks:
        table.add_row(
            str(risk.rank),
            *(escape(str(getattr(risk, name))) for name in names[:-1]),
            escape(str(getattr(risk, names[-1]))) + ("" if risk.chosen else " (not chosen)"),
            *_show_risk(risk, document, years),
        )
    console.print(table)
    console.print(
        "in N: probability of the threshold or worse N years after year 0. years: those by which 10 and 90 of 100 "
        f"such members are there; the last column: the {'calendar year' if document.base else 'years'} by which "
        "half of them are.\n",
        style="dim",
        highlight=False,
    )


def _show_risk(risk: RiskPart, document: ForecastFile, years: Sequence[int]) -> list[str]:
    """The figures of a member."""
    reached = dict(zip(document.shown, risk.reached, strict=True))
    half = risk.median_calendar_year if document.base else _years(risk.median_years)
    label = "" if risk.label is None or risk.label == str(risk.state) else f" ({escape(risk.label)})"
    return [
        f"{risk.state}{label}",
        *(f"{reached[year]:.3f}" for year in years),
        f"{_years(risk.years_10)} to {_years(risk.years_90)}",
        NOTHING if half is None else str(half),
    ]


def _years(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def _print_remarks(console: Console, document: ForecastFile) -> None:
    """How many members a remark applies to, over all cases."""
    counts: Counter[str] = Counter()
    for one in document.remarks:
        counts[one.remark] += one.count
    lines = [f"{remark}: {count_of(count, 'member')}" for remark, count in counts.most_common()]
    if lines:
        _print_list(console, "Remarks on members (the table of members says on whom)", lines)


def _explain(document: ForecastFile) -> list[str]:
    """What the two intervals are."""
    if all(model.intervals == "none" for model in document.models):
        return []
    lines = [
        "parameters: interval of the expected number, because the model was fitted to a sample; prediction: "
        "interval of the number itself, to which chance in each member's course adds"
    ]
    if len(document.models) > 1:
        lines.append("components, and members of one bridge, are taken as independent")
    return lines


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
        _print_backtest_cases(console, found)
    for case in scored if full else ():
        _print_scores(console, found, case)
        _print_horizons(console, found, case)
        _print_totals(console, found, case)
    for summary in found.cases["summary"]:
        print_plain(console, f"{summary}\n")
    if not full:
        console.print("--all shows every component in full.", highlight=False)
    if out is None:
        console.print("Nothing was written; --out says where.", highlight=False)
    else:
        print_line(console, f"written to {out}: {', '.join(FILES)}")


def _print_backtest_cases(console: Console, found: Backtest) -> None:
    """One line a case."""
    table = new_table(f"Forecasts of later visits by models fitted up to {found.until}")
    add_columns(table, "case", "visits", "RPS", "no change", "log loss", "no cov.", "found", "expected", "")
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
        "RPS: ranked probability score, lower is better; no change: that of the baseline that every member "
        "keeps its state. no cov.: log loss of the model without covariates. found, expected: visits in the "
        f"threshold state or worse, with the {100 * found.level:g} % prediction interval. {INSIDE}: inside it. "
        f"{NOT_CERTIFIED}: the fit is not a certified maximum.",
    )


def _print_scores(console: Console, found: Backtest, case: str) -> None:
    """Every score of the three forecasters, and the intervals of the differences."""
    visits = _case(found, case)["visits"]
    table = new_table(f"{escape(case)}: scores of the forecasts of {visits:,} later visits")
    add_columns(table, "score", "model", "no cov.", "no change", "model - no cov.", "model - no change")
    scores, less = _scores(found, case)
    for score, words in SCORES.items():
        means = [scores.get((score, one)) for one in ("model", "no_covariates", "persistence")]
        ends = [_ends(less.get((score, other))) for other in ("no_covariates", "persistence")]
        table.add_row(words, *map(_figure, means), *ends)
    console.print(table)
    explain(
        console,
        "Lower is better, except for accuracy. no cov.: the model without covariates. no change: every member "
        "keeps its state, with an infinite log loss as soon as one state has changed; floored: no probability "
        f"below 1e-12. The last two columns are {100 * found.level:g} % intervals of the difference, by bridge.",
    )


def _print_horizons(console: Console, found: Backtest, case: str) -> None:
    """How the scores change with the years ahead."""
    table = new_table(f"{escape(case)}: by years ahead")
    add_columns(
        table,
        "years",
        "visits",
        "RPS",
        "no change",
        "model - no change",
        "log loss",
        "no cov.",
        "accuracy",
        "no change",
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
        "it. no cov.: expected by the model without covariates. no change: if every member had kept its state.",
    )


def _print_counts(console: Console, title: str, first: str, lines: list[dict[str, Any]], key: str) -> None:
    table = new_table(title)
    add_columns(table, first, "visits", "found", "expected", "", "no cov.", "no change")
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
