"""Forecasts and backtests in the terminal: numbers by year, first risks, scores beside simpler forecasters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from rekka.core.columns import rows_of
from rekka.core.errors import count_of, name_some
from rekka.core.language import say
from rekka.core.ratings import Ratings
from rekka.fleet.backtest import Backtest
from rekka.fleet.backtest_scores import MODEL, PAIRS
from rekka.fleet.document import ForecastFile, LeftOutPart, MemberRisk, TotalPart, UsedModel
from rekka.fleet.rolling import AT, JOIN, Window, describe_model
from rekka.fleet.shocks import describe_shocks
from rekka.fleet.what_if import RepairedMember, WhatIf
from rekka.model.certificate import HARDLY_DETERMINED
from rekka.report.tables.what_if import tabulate_what_if
from rekka.report.terminal.parts import explain, print_list, print_plain, print_warning
from rekka.report.terminal.tables import (
    NOTHING,
    WORDS,
    print_rows,
    print_texts,
    print_view,
    show,
    show_range,
    texts,
)

YEARS = (0, 5, 10, 20, 30, 50, 100, 200)  # that are shown, besides the last
ROWS_SHOWN = 5
MEMBERS_SHOWN = 10  # repaired members
NAMES_SHOWN = 5  # components that are left out for one reason
NETWORK, REACHED = "network", "in this state or worse"


def print_forecast(console: Console, document: ForecastFile) -> None:
    """Print all of the forecast of an inventory: how it was read, models, totals by year, first risks, remarks."""
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
    _print_unseen(console, document)
    _print_remarks(console, document)
    _print_list(console, "What to know", [*document.notes, *_explain(document)])
    if document.watermark:
        print_warning(console, document.watermark)


def list_excluded(document: ForecastFile) -> list[str]:
    """How many members of components with a model, and records, were not forecast, and why: a line, or none."""
    without = tuple(f": {one.reason}" for one in document.left_out)
    found = [one for one in document.aside if not (without and one.reason.endswith(without))]
    kinds = ("members", "records")
    counts = {what: sum(one.count for one in found if one.what == what) for what in kinds}
    told = [say(f"terminal.study.excluded_{what}", n=count) for what, count in counts.items() if count]
    reasons = [f"{one.reason}: {one.count:,}" for one in sorted(found, key=lambda one: -one.count)]
    return [WORDS.format(say("terminal.study.excluded", counts=told, reasons=reasons))] if told else []


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
        f"{document.there:,} of them were {_name_threshold(document)} when last seen.",
        highlight=False,
    )
    for line in _list_left_out(document):
        print_plain(console, line)
    console.print()


def _name_threshold(document: ForecastFile) -> str:
    """'rated d or worse', or 'at the threshold or worse' where components differ in it."""
    worse = {one.ratings.or_worse(one.threshold) for one in document.models}
    return f"rated {worse.pop()}" if len(worse) == 1 else "at the threshold or worse"


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
    marks = texts("certificate", _show_marks, right=False)
    worse = texts("threshold", lambda one: one.ratings.or_worse(one.threshold))
    names = ("case members there n_states", worse, "training_rows", marks)
    print_rows(console, "The models", UsedModel, *names, rows=document.models, split=True)


def _show_marks(model: UsedModel) -> str:
    """Whether the model is certified, how well it is determined, and that nobody chose it."""
    hardly = HARDLY_DETERMINED if model.verdict.endswith(HARDLY_DETERMINED) else ""
    certified = f"certified{hardly}" if model.certified else "NOT CERTIFIED"
    return certified if model.chosen else f"{certified}, NOT CHOSEN"


def _print_aside(console: Console, document: ForecastFile) -> None:
    if document.aside:
        rows = (
            (
                one.reason,
                f"{one.count:,}",
                one.what,
                ", ".join(map(str, one.rows[:ROWS_SHOWN])) + (", ..." if one.count > ROWS_SHOWN else ""),
            )
            for one in document.aside
        )
        print_texts(console, "Not forecast", ("reason", "count", "of", "first rows"), rows)


def _choose_years(document: ForecastFile) -> list[int]:
    return [year for year in YEARS if year < document.horizon] + [document.horizon]


def _print_network(console: Console, document: ForecastFile) -> None:
    """All cases together, or the only one: the numbers in each state, and the threshold with both intervals."""
    together = [total for total in document.network if total.scope == NETWORK]
    here = together or document.network
    states = sorted({total.state for total in here if total.what != REACHED and total.state is not None})
    reached = next(total for total in here if total.what == REACHED)
    labels = {total.state: total.label for total in here if total.what != REACHED}
    ratings = Ratings(tuple(labels.get(state) or str(state) for state in states))
    worse = "threshold or worse" if reached.state is None else ratings.or_worse(reached.state)
    marked = "" if reached.chosen else ", some by a model that was NOT CHOSEN"
    level = f"{document.asked.level:.0%}"
    lines = []
    for year in _choose_years(document):
        now = {(total.what == REACHED, total.state): total for total in here if total.year == year}
        total = now[True, reached.state]
        expected = [show(one.expected, "members") for one in (*(now[False, state] for state in states), total)]
        own = show_range(total.low, total.high, "members")
        wider = (
            [show_range(total.predicted_shock_low, total.predicted_shock_high, "count")] if document.shocks else []
        )
        lines.append((str((total.date or total).year), *expected, own, _show_prediction(total), *wider))
    title = f"{'All components' if together else here[0].case}: expected number of members in each rating{marked}"
    heads = ("year", *map(ratings.name, states), worse, f"{level} parameters", f"{level} prediction")
    heads += (f"{level} wider",) if document.shocks else ()
    print_texts(console, title, heads, lines, split=True)


def _show_prediction(total: TotalPart) -> str:
    return show_range(total.predicted_low, total.predicted_high, "count")


def _print_cases(console: Console, document: ForecastFile) -> None:
    """The threshold in each case, where there are several."""
    if len(document.models) < 2:
        return
    totals = {(t.case, t.year): t for t in document.network if t.what == REACHED and t.scope != NETWORK}
    years = _choose_years(document)
    lines = (
        (
            one.case + ("" if one.chosen else " (not chosen)"),
            f"{one.members:,}",
            *(show(totals[one.case, year].expected, "members") for year in years),
            _show_prediction(totals[one.case, years[-1]]),
        )
        for one in document.models
    )
    title = f"Each component: expected number {_name_threshold(document)}, with intervals"
    heads = ("component", "members", *(f"year {year}" for year in years), "prediction, last year")
    print_texts(console, title, heads, lines)


def _print_risks(console: Console, document: ForecastFile) -> None:
    """The first members by risk."""
    if not document.risks:
        return
    names = _choose_names(document, document.risks)
    years = [year for year in document.shown if year in (0, 10, document.horizon)]
    base = document.base
    lines = []
    for risk in document.risks:
        named = [str(getattr(risk, name)) for name in names]
        named[-1] += "" if risk.chosen else " (not chosen)"
        reached = dict(zip(document.shown, risk.reached, strict=True))
        half = show(risk.median_calendar_year, "year") if base else show(risk.median_years, "years")
        years_ahead = show_range(risk.years_10, risk.years_90, "years")
        figures = (*(f"{reached[year]:.3f}" for year in years), years_ahead, half)
        lines.append((str(risk.rank), *named, _show_state(risk), *figures))
    print_texts(
        console,
        f"The first {len(document.risks)} not there yet, the soonest to be {_name_threshold(document)}",
        ("", *(name.removesuffix("_id") for name in names), "rating", *(f"in {year}" for year in years), "years",
         "half by" if base else "median"),
        lines,
        "in N: probability of the threshold or worse N years after year 0. years: those by which 10 and 90 of 100 "
        f"such members are there; the last column: the {'calendar year' if base else 'years'} by which half of "
        "them are.",
        left=len(names) + 1,
    )  # fmt: skip


def _choose_names(document: ForecastFile, risks: Sequence[MemberRisk]) -> list[str]:
    """Names that tell the members of a list apart."""
    names = ["bridge_id", *(["member"] if any(risk.member for risk in risks) else [])]
    return [*names, "case"] if len(document.models) > 1 else names


def _print_unseen(console: Console, document: ForecastFile) -> None:
    """The first of the members that were last inspected long ago."""
    if not document.long_unseen:
        return
    names = _choose_names(document, document.long_unseen)
    lines = []
    for risk in document.long_unseen:
        named = [str(getattr(risk, name)) for name in names]
        reached = dict(zip(document.shown, risk.reached, strict=True))
        figures = (f"{reached[0]:.3f}", f"{reached[document.horizon]:.3f}")
        lines.append((*named, str(risk.last_seen), _show_state(risk), *figures))
    usual = ", ".join(f"{one.case} {one.interval:.3g}" for one in document.models if one.interval and one.unseen)
    print_texts(
        console,
        f"Last inspected long ago: {count_of(document.unseen, 'member')}, not in the list above",
        (*(name.removesuffix("_id") for name in names), "last seen", "state", "in 0", f"in {document.horizon}"),
        lines,
        f"Last seen more than twice the usual years between two visits ago ({usual}). Their forecast starts from "
        "that visit. They are in all totals. Inspect them, or take those that are gone out of the table.",
        left=len(names) + 2,
    )


def _show_state(risk: MemberRisk) -> str:
    return str(risk.state) if risk.label is None else risk.label


def _print_remarks(console: Console, document: ForecastFile) -> None:
    """Count the members that each remark applies to, over all cases."""
    counts: Counter[str] = Counter()
    for one in document.remarks:
        counts[one.remark] += one.count
    lines = [f"{remark}: {count_of(count, 'member')}" for remark, count in counts.most_common()]
    if lines:
        _print_list(console, "Remarks on members (the table of members says on whom)", lines)


def _explain(document: ForecastFile) -> list[str]:
    """Meaning of the two intervals."""
    if all(model.intervals == "none" for model in document.models):
        return []
    lines = [
        "parameters: interval of the expected number, because the model was fitted to a sample; prediction: "
        "interval of the number itself, which also depends on how each member happens to deteriorate"
    ]
    if len(document.models) > 1:
        lines.append("components are taken as independent; so are members of one bridge, given its frailty if any")
    lines += describe_shocks({one.case: one.shocks for one in document.shocks})
    if len(document.shocks) > 1:
        lines.append("the wider band of all components together takes them as struck at once")
    return lines


def print_what_if(console: Console, found: WhatIf) -> None:
    """Print what repairs change: the answer, totals without and with them, and the first of the members."""
    console.print(f"[bold]{escape(found.headline())}[/]", highlight=False)
    for line in found.notes:
        print_plain(console, line)
    print_view(console, tabulate_what_if(found, WORDS))
    _print_repaired(console, found)


def _print_repaired(console: Console, found: WhatIf) -> None:
    """The first repaired members: years until the threshold without and with their repair."""
    members = rows_of(RepairedMember, found.members.head(MEMBERS_SHOWN))
    if not members:
        return
    several = len(found.eligible.groups) > 1
    names = ["bridge_id", *(["member"] if any(one.member for one in members) else [])]
    names += ["case"] if several else []
    columns = [*names, "label", "repaired_label", "median_years", "repaired_median_years"]
    title = WORDS("terminal.what_if.members", n=len(members), of=len(found.members))
    print_rows(console, title, RepairedMember, *columns, rows=members, note=WORDS("terminal.what_if.members_note"))


SCORES = {
    "rps": "ranked prob. score",
    "brier": "Brier score",
    "log_loss_exact": "log loss",
    "log_loss": "log loss, floored",
    "accuracy": "accuracy",
}
INSIDE, NOT_CERTIFIED = "*", "†"
WIDER = "inside_shock"

Means = dict[tuple[str, str], float]
Differences = dict[tuple[str, str], dict[str, Any]]


def print_backtest(console: Console, found: Backtest) -> None:
    """The cases in a table, each in full, and what it comes to in words."""
    for line in found.cases["misfit"].drop_nulls():
        print_warning(console, line, "\n")
    for note in found.notes:
        print_plain(console, f"{note}\n")
    for choice in found.choices:
        print_plain(console, f"{choice.summary}\n")
    scored = found.scores["case"].unique(maintain_order=True).to_list()
    if len(scored) > 1:
        _print_backtest_cases(console, found, scored)
    for case in scored:
        _print_candidates(console, found, case)
        _print_scores(console, found, case)
        _print_horizons(console, found, case)
        _print_totals(console, found, case)
    for summary in found.cases["summary"]:
        print_plain(console, f"{summary}\n")


def _print_backtest_cases(console: Console, found: Backtest, scored: Sequence[str]) -> None:
    """One line a case."""
    lines = []
    for case in scored:
        (scores, _), one = _scores(found, case), found.cases.filter(case=case).row(0, named=True)
        worse = _list_totals(found, case, "all", or_worse=True)
        figures = (
            scores["rps", "model"], scores["rps", "persistence"],
            scores["log_loss_exact", "model"], scores.get(("log_loss_exact", "no_covariates")),
        )  # fmt: skip
        name = case + ("" if one["certified"] else f" {NOT_CERTIFIED}")
        totals = _show_total(worse[0]) if worse else ("", "", "")
        lines.append((name, f"{one['visits']:,}", *(show(value, "accuracy") for value in figures), *totals))
    print_texts(
        console,
        f"Forecasts of later visits by models fitted up to {found.until}",
        ("component", "visits", "RPS", "no change", "log loss", "no cov.", "found", "expected", ""),
        lines,
        "RPS: ranked probability score, lower is better; no change: that of the baseline that every member "
        "keeps its rating. no cov.: log loss of the model without covariates. found, expected: visits in the "
        f"threshold rating or worse, with the {100 * found.level:g} % prediction interval. {INSIDE}: inside it. "
        f"{NOT_CERTIFIED}: the fit is not a certified maximum.",
    )


def _print_candidates(console: Console, found: Backtest, case: str) -> None:
    """Models that were compared to choose one, by their scores from origins inside the training years."""
    rows = found.models.filter(case=case).to_dicts()
    if len(rows) < 2:
        return
    lines = (
        (
            ("" if row["than"] is None else "+ ") + _name_part(row),
            show(row["rps"], "accuracy"),
            show_range(row["low"], row["high"], "accuracy_difference"),
            "kept" if row["kept"] else found.name_states(case, row["reason"] or "better, another more so"),
        )
        for row in rows
    )
    visits, origins = rows[0]["visits"], rows[0]["origins"]
    print_texts(
        console,
        f"{case}: models compared on {visits:,} forecasts from {count_of(origins, 'day')} in the training years",
        ("model", "RPS", "minus the one before", "verdict"),
        lines,
        f"RPS: ranked probability score, lower is better. Each line adds to the model kept last. The intervals "
        f"({100 * rows[1]['level']:.0f} %, by bridge) allow for the number of models.",
    )


def _name_part(row: dict[str, Any]) -> str:
    """The model in the first line, then what each one adds to the model before it."""
    if row["than"] is None:
        return describe_model(row["model"])
    elements, at, window = row["model"].partition(AT)
    if at:
        return Window.read(window).words
    new = [part for part in elements.split(JOIN) if part not in row["than"].split(JOIN)]
    return describe_model(JOIN.join(new))


def _print_scores(console: Console, found: Backtest, case: str) -> None:
    """Every score of the three forecasters, and the intervals of the differences."""
    visits = found.cases.filter(case=case)["visits"].item()
    scores, less = _scores(found, case)
    others = {PAIRS: "plain", "no_covariates": "no cov.", "persistence": "no change"}
    others = {name: short for name, short in others.items() if ("rps", name) in scores}
    lines = (
        (
            words,
            *(show(scores.get((score, one)), "accuracy") for one in ("model", *others)),
            *(_show_ends(less.get((score, other))) for other in others),
        )
        for score, words in SCORES.items()
    )
    print_texts(
        console,
        f"{case}: scores of the forecasts of {visits:,} later visits",
        ("score", "model", *others.values(), *(f"model - {short}" for short in others.values())),
        lines,
        f"Lower is better, except for accuracy. {'plain: the model of pairs. ' if PAIRS in others else ''}no "
        "cov.: the model without covariates. no change: every member keeps its rating, with an infinite log loss "
        "as soon as one has changed; floored: no probability below 1e-12. The last columns are "
        f"{100 * found.level:g} % intervals of the difference, by bridge.",
        split=len(others) > 2,
    )


def _print_horizons(console: Console, found: Backtest, case: str) -> None:
    """Scores by years ahead."""
    here = found.scores.filter(case=case, by="horizon")
    lines = []
    for years, visits in here.select("group", "visits").unique("group").sort("group").rows():
        scores, less = _scores(found, case, "horizon", years)
        before = (("rps", "model"), ("rps", "persistence"))
        after = (("log_loss_exact", "model"), ("log_loss_exact", "no_covariates"), ("accuracy", "model"),
                 ("accuracy", "persistence"))  # fmt: skip
        first, last = ([show(scores.get(key), "accuracy") for key in keys] for keys in (before, after))
        lines.append((str(years), f"{visits:,}", *first, _show_ends(less["rps", "persistence"]), *last))
    heads = (
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
    print_texts(console, f"{case}: by years ahead", heads, lines, left=0, split=True)


def _print_totals(console: Console, found: Backtest, case: str) -> None:
    """Numbers found beside numbers expected, by year and by state."""
    period = "visit" if "visit" in found.totals["by"] else "year"
    worse = _list_totals(found, case, period, or_worse=True)
    start = _list_totals(found, case, "start", or_worse=False)
    stayed = [line for line in start if line["group"] == line["state"]]
    if worse:
        ratings = Ratings.of(found.labels, found.cases.filter(case=case)["states"].item())
        named = ratings.phrase_or_worse(worse[0]["state"])
        _print_counts(console, f"{case}: visits in {named}", period, worse, "group")
    everything = _list_totals(found, case, "all", or_worse=False)
    _print_counts(console, f"{case}: visits in each rating, all together", "rating", everything, "label")
    _print_counts(console, f"{case}: visits still in the rating of the origin", "rating", stayed, "label")
    explain(
        console,
        f"expected, with the {100 * found.level:g} % prediction interval of the number found; {INSIDE}: inside "
        "it. no cov.: expected by the model without covariates. no change: if every member had kept its rating."
        + (f" wider: with errors that all members share; {INSIDE}: inside it." if WIDER in found.totals else ""),
    )


def _print_counts(console: Console, title: str, first: str, lines: Iterable[dict[str, Any]], key: str) -> None:
    lines = list(lines)
    wider = any(line.get(WIDER) is not None for line in lines)
    heads = (first, "visits", "found", "expected", "", *(("wider", "") if wider else ()), "no cov.", "no change")
    rows = (
        (
            str(line[key]),
            f"{line['visits']:,}",
            *_show_total(line),
            *(_show_wider(line) if wider else ()),
            show(line["expected_no_covariates"], "count"),
            f"{line['unchanged']:,}",
        )
        for line in lines
    )
    print_texts(console, title, heads, rows, left=0)


def _show_total(line: dict[str, Any]) -> tuple[str, str, str]:
    """Found, expected with its interval, and a mark where it is inside."""
    expected = show(line["expected"], "count")
    if line["inside"] is not None:
        expected += f" ({line['predicted_low']:,} to {line['predicted_high']:,})"
    return f"{line['observed']:,}", expected, INSIDE if line["inside"] else ""


def _show_wider(line: dict[str, Any]) -> tuple[str, str]:
    """The wider interval, and a mark where the number is inside."""
    ends = show_range(line["predicted_shock_low"], line["predicted_shock_high"], "count")
    return ends, INSIDE if line[WIDER] else ""


def _show_ends(row: dict[str, Any] | None) -> str:
    """The interval of a difference."""
    return NOTHING if row is None else show_range(row["low"], row["high"], "accuracy_difference")


def _list_totals(found: Backtest, case: str, by: str, *, or_worse: bool) -> list[dict[str, Any]]:
    return found.totals.filter(case=case, by=by, or_worse=or_worse).to_dicts()


def _scores(found: Backtest, case: str, by: str = "all", group: int | None = None) -> tuple[Means, Differences]:
    """Means by score and forecaster, and rows of differences by score and the forecaster taken off."""
    here = found.scores.filter(case=case, by=by)
    rows = (here if group is None else here.filter(group=group)).to_dicts()
    means = {(row["score"], row["forecaster"]): row["mean"] for row in rows if row["less"] is None}
    differences = (row for row in rows if row["less"] is not None and row["forecaster"] == MODEL)
    return means, {(row["score"], row["less"]): row for row in differences}
