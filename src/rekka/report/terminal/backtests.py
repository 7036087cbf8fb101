"""A backtest in a terminal, the answer first: is the model better than no change, and were as many found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console

from rekka.core.language import say
from rekka.core.ratings import Ratings
from rekka.fleet.backtest import Backtest
from rekka.fleet.rolling import describe_model
from rekka.report.terminal.parts import print_numbered, print_plain, print_warning
from rekka.report.terminal.tables import NOTHING, PLAIN, WORDS, print_texts, show
from rekka.report.text import show_level, show_range

SCORE, MODEL, SAME = "rps", "model", "persistence"
BETTER, WORSE, NOT_SHOWN = "better", "worse", "not_shown"
INSIDE, MANY, FEW = "inside", "too_many", "too_few"  # expected, beside what was found
PERIODS = ("year", "visit")


class TestedComponent(NamedTuple):
    """What later visits say of a component's model."""

    case: str
    elements: str | None
    certified: bool
    visits: int
    score: float
    baseline: float  # of no change
    difference: dict[str, Any]
    total: dict[str, Any] | None  # at the threshold or worse; None where it is worse than all training rows
    periods: tuple[dict[str, Any], ...]  # the same by year, or by round

    @property
    def verdict(self) -> str:
        """Better or worse than no change, by the interval of the difference."""
        low, high = self.difference["low"], self.difference["high"]
        if high is not None and high < 0:
            return BETTER
        return WORSE if low is not None and low > 0 else NOT_SHOWN

    @property
    def count(self) -> str | None:
        """Whether as many were found as expected."""
        if self.total is None or self.total["inside"] is None:
            return None
        if self.total["inside"]:
            return INSIDE
        return MANY if self.total["expected"] > self.total["observed"] else FEW


def print_backtest_brief(console: Console, found: Backtest) -> None:
    """Print what later visits say of the models: scores and counts, a line for each component, what to do."""
    tested = list(_list_tested(found))
    if not tested:
        console.print(f"[bold]{WORDS('terminal.backtest.none', until=found.until)}[/]", highlight=False)
    for line in _describe_answer(found, tested):
        console.print(f"[bold]{line}[/]", highlight=False, markup=True)
    for line in _list_warnings(found, tested):
        print_warning(console, line)
    if len(tested) > 1:
        console.print()
        _print_table(console, found, tested)
    print_numbered(console, WORDS("terminal.what_to_do"), list(_list_actions(tested)))


def _list_tested(found: Backtest) -> Iterator[TestedComponent]:
    """Components that were scored, with their total scores and counts."""
    scored = set(found.scores["case"])
    for one in found.cases.to_dicts():
        if one["case"] not in scored:
            continue
        rows = found.scores.filter(case=one["case"], by="all", score=SCORE).to_dicts()
        means = {row["forecaster"]: row["mean"] for row in rows if row["less"] is None}
        worse = found.totals.filter(case=one["case"], or_worse=True).to_dicts()
        yield TestedComponent(
            one["case"],
            one["model"],
            one["certified"],
            one["visits"],
            means[MODEL],
            means[SAME],
            next(row for row in rows if row["less"] == SAME),
            next((row for row in worse if row["by"] == "all"), None),
            tuple(row for row in worse if row["by"] in PERIODS),
        )


def _describe_answer(found: Backtest, tested: list[TestedComponent]) -> Iterator[str]:
    """What was done, is it better than no change, were as many found."""
    if not tested:
        return
    visits = sum(one.visits for one in tested)
    yield WORDS.format(say("terminal.backtest.head", visits=visits, until=found.until, cases=len(tested)))
    yield _describe_scores(tested)
    yield from _describe_counts(found, tested)


def _describe_scores(tested: list[TestedComponent]) -> str:
    if len(tested) == 1:
        (one,) = tested
        less = one.difference
        ends = show_range(less["low"], less["high"], _show_difference, WORDS)
        places = {"score": f"{one.score:.4f}", "baseline": f"{one.baseline:.4f}", "range": ends}
        return _plain(WORDS(f"terminal.backtest.{one.verdict}_alone", **places))
    names = {verdict: [one.case for one in tested if one.verdict == verdict] for verdict in (BETTER, WORSE, NOT_SHOWN)}
    told = [say(f"terminal.backtest.{verdict}", names=some) for verdict, some in names.items() if some]
    return WORDS.format(say("terminal.backtest.scores", verdicts=told))


def _show_difference(value: float | None) -> str:
    return show(value, "accuracy_difference")


def _describe_counts(found: Backtest, tested: list[TestedComponent]) -> Iterator[str]:
    """Found and expected at the threshold, and in how many years the one was within the interval of the other."""
    counted = [one for one in tested if one.total is not None]
    if len(tested) == 1 and counted:
        (one,) = counted
        total = one.total or {}
        ends = "" if total["inside"] is None else _show_ends(total)
        rating = _ratings(found, one).phrase_or_worse(total["state"])
        places = {"found": f"{total['observed']:,}", "rating": rating, "expected": _show_expected(total)}
        key = "count" if ends else "count_alone"
        yield _plain(WORDS(f"terminal.backtest.{key}", range=ends, level=show_level(found.level), **places))
        if one.count is not None:
            yield _describe_periods(one)
        return
    kinds = {kind: [one.case for one in counted if one.count == kind] for kind in (INSIDE, MANY, FEW)}
    told = [say(f"terminal.backtest.{kind}", n=len(some), names=some) for kind, some in kinds.items() if some]
    if told:
        yield WORDS.format(say("terminal.backtest.counts", rating=_name_threshold(found, counted), counts=told))


def _describe_periods(one: TestedComponent) -> str:
    """'That is too many: outside the interval in 5 of 5 years.'."""
    inside, of = sum(bool(row["inside"]) for row in one.periods), len(one.periods)
    key = f"terminal.backtest.{one.count}_alone"
    told = WORDS(key)
    return f"{told} {WORDS('terminal.backtest.periods', inside=inside, of=of)}" if of > 1 else told


def _ratings(found: Backtest, one: TestedComponent) -> Ratings:
    return Ratings.of(found.labels, found.cases.filter(case=one.case)["states"].item())


def _name_threshold(found: Backtest, counted: list[TestedComponent]) -> str:
    """'rated d or worse', or that of each where components differ."""
    named = {_ratings(found, one).or_worse((one.total or {})["state"]) for one in counted}
    return WORDS("terminal.backtest.rated", rating=named.pop()) if len(named) == 1 else WORDS("terminal.backtest.several")


def _show_expected(total: dict[str, Any]) -> str:
    return show(total["expected"], "count")


def _show_ends(total: dict[str, Any]) -> str:
    return show_range(total["predicted_low"], total["predicted_high"], lambda value: show(value, "count"), WORDS)


def _list_warnings(found: Backtest, tested: list[TestedComponent]) -> Iterator[str]:
    """What changes the answer: no forecast, no certified maximum, a misfit."""
    known = {one.case for one in tested}
    for one in found.cases.to_dicts():
        if one["case"] not in known:
            yield WORDS("terminal.backtest.not_forecast", case=one["case"], reason=str(one["reason"]).rstrip("."))
    uncertified = [one.case for one in tested if not one.certified]
    if uncertified:
        yield WORDS.format(say("terminal.backtest.uncertified", names=uncertified))
    misfits = found.cases.filter(found.cases["misfit"].is_not_null())["case"].to_list()
    if misfits:
        key = "misfit_alone" if len(found.cases) == 1 else "misfit"
        yield WORDS.format(say(f"terminal.fit.{key}", names=misfits))


def _print_table(console: Console, found: Backtest, tested: list[TestedComponent]) -> None:
    """A line for each component."""
    chosen = any(one.elements for one in tested)
    lines = []
    for one in tested:
        total = one.total
        figures = (NOTHING,) * 3 if total is None else (
            f"{total['observed']:,}",
            _show_expected(total) + (f" ({_plain(_show_ends(total))})" if total["inside"] is not None else ""),
            f"{sum(bool(row['inside']) for row in one.periods)}/{len(one.periods)}" if one.count else NOTHING,
        )  # fmt: skip
        verdict = WORDS(f"terminal.backtest.mark_{one.verdict}")
        elements = [describe_model(one.elements) if one.elements else NOTHING] if chosen else []
        lines.append((one.case, *elements, f"{one.visits:,}", verdict, *figures))
    heads = [WORDS("column.case"), *([WORDS("terminal.fit.model")] if chosen else [])]
    heads += [WORDS(f"terminal.backtest.head_{name}") for name in ("visits", "better", "found", "expected")]
    heads += [WORDS(f"terminal.backtest.head_{_name_period(tested)}")]
    note = WORDS("terminal.backtest.note", level=show_level(found.level))
    print_texts(console, "", heads, lines, note, left=(0, 2 + chosen, *([1] if chosen else [])))


def _name_period(tested: list[TestedComponent]) -> str:
    return "visit" if any(row["by"] == "visit" for one in tested for row in one.periods) else "year"


def _list_actions(tested: list[TestedComponent]) -> Iterator[str]:
    """What to do, by what was found."""
    many, few = ([one.case for one in tested if one.count == kind] for kind in (MANY, FEW))
    plain = not any(one.elements for one in tested)
    alone = "_alone" if len(tested) == 1 else ""
    for kind, names in (("many", many), ("few", few)):
        if names:
            yield WORDS.format(say(f"terminal.backtest.do_{kind}{alone}", names=names))
    not_better = [one.case for one in tested if one.verdict != BETTER]
    if plain and (many or few or not_better):
        yield WORDS("terminal.backtest.do_models")
    if any(one.verdict == WORSE for one in tested):
        worse = [one.case for one in tested if one.verdict == WORSE]
        yield WORDS.format(say(f"terminal.backtest.do_worse{alone}", names=worse))
    if tested and not (many or few or not_better):
        yield WORDS("terminal.backtest.do_nothing")


def _plain(text: str) -> str:
    """A text with signs that any terminal can show."""
    return text.translate(PLAIN)
