"""A backtest in a terminal, the answer first: is the model better than no change, and were as many found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape

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
    """Evidence of later visits on a component's model."""

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
    def inside(self) -> int:
        """Years or rounds in which the number found is inside its interval."""
        return sum(bool(row["inside"]) for row in self.periods)

    @property
    def outcome(self) -> str | None:
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
        print_plain(console, WORDS("terminal.backtest.none", until=found.until))
    for line in _describe_answer(found, tested):
        console.print(f"[bold]{escape(line)}[/]", highlight=False)
    for line in _list_warnings(found, tested):
        print_warning(console, line)
    if len(tested) == 1:
        for choice in found.choices:
            print_plain(console, choice.summary)
    if len(tested) > 1:
        console.print()
        _print_table(console, found, tested)
    print_numbered(console, WORDS("terminal.what_to_do"), list(_list_actions(tested, chosen=bool(found.choices))))


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
    """First lines: the visits forecast, better than no change or not, found against expected."""
    if not tested:
        return
    visits = sum(one.visits for one in tested)
    yield WORDS.format(say("terminal.backtest.head", visits=visits, until=found.until, cases=len(tested)))
    yield _describe_scores(found, tested)
    yield from _describe_counts(found, tested)


def _describe_scores(found: Backtest, tested: list[TestedComponent]) -> str:
    if len(tested) == 1:
        (one,) = tested
        less = one.difference
        key = "scores_alone" if less["low"] is None else "scores"
        ends = show_range(less["low"], less["high"], _show_difference, WORDS)
        places = {"score": f"{one.score:.4f}", "baseline": f"{one.baseline:.4f}", "range": ends}
        told = WORDS(f"terminal.backtest.{key}", level=show_level(found.level), **places)
        return _plain(WORDS(f"terminal.backtest.{one.verdict}_alone", scores=told))
    kinds = (BETTER, WORSE, NOT_SHOWN)
    names = {kind: [one.case for one in tested if one.verdict == kind] for kind in kinds}
    verdicts = [say(f"terminal.backtest.{kind}", names=some) for kind, some in names.items() if some]
    return WORDS.format(say("terminal.backtest.verdicts", verdicts=verdicts))


def _show_difference(value: float | None) -> str:
    return show(value, "accuracy_difference")


def _describe_counts(found: Backtest, tested: list[TestedComponent]) -> Iterator[str]:
    """Found and expected at the threshold, and in how many years the one was within the interval of the other."""
    if len(tested) == 1:
        yield from _describe_count(found, tested[0])
        return
    kinds = {kind: [one.case for one in tested if one.outcome == kind] for kind in (INSIDE, MANY, FEW)}
    told = [say(f"terminal.backtest.{kind}", names=names) for kind, names in kinds.items() if names]
    if told:
        yield WORDS.format(say("terminal.backtest.counts", counts=told))


def _describe_count(found: Backtest, one: TestedComponent) -> Iterator[str]:
    if one.total is None:
        return
    ratings = Ratings.of(found.labels, found.cases.filter(case=one.case)["states"].item())
    places = {
        "found": f"{one.total['observed']:,}",
        "rating": ratings.phrase_or_worse(one.total["state"]),
        "expected": show(one.total["expected"], "count"),
    }
    if one.outcome is None:
        yield WORDS("terminal.backtest.found_alone", **places)
        return
    yield WORDS("terminal.backtest.found", range=_show_ends(one.total), level=show_level(found.level), **places)
    told = [WORDS(f"terminal.backtest.{one.outcome}_alone")]
    if len(one.periods) > 1:
        key = f"terminal.backtest.in_{one.periods[0]['by']}s"
        told.append(WORDS(key, inside=one.inside, of=len(one.periods)))
    yield " ".join(told)


def _show_ends(total: dict[str, Any]) -> str:
    """The prediction interval of the number found."""
    return show_range(total["predicted_low"], total["predicted_high"], lambda value: show(value, "count"), WORDS)


def _list_warnings(found: Backtest, tested: list[TestedComponent]) -> Iterator[str]:
    """Warnings that change the answer: no forecast, no certified maximum, a misfit."""
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
            show(total["expected"], "count") + (f" ({_show_ends(total)})" if one.outcome else ""),
            f"{one.inside}/{len(one.periods)}" if one.outcome else NOTHING,
        )  # fmt: skip
        verdict = WORDS(f"terminal.backtest.mark.{one.verdict}")
        elements = [describe_model(one.elements) if one.elements else NOTHING] if chosen else []
        lines.append((one.case, *elements, f"{one.visits:,}", verdict, *figures))
    heads = [WORDS("column.case"), *([WORDS("terminal.fit.column.model")] if chosen else [])]
    heads += [
        WORDS(f"terminal.backtest.column.{name}") for name in ("visits", "better", "found", "expected", "in")
    ]
    note = WORDS("terminal.backtest.note", level=show_level(found.level))
    print_texts(console, "", heads, lines, note, left=(0, 2 + chosen, *([1] if chosen else [])))


def _list_actions(tested: list[TestedComponent], *, chosen: bool = False) -> Iterator[str]:
    """Actions that follow from the result; ``chosen``: the backtest chose the models itself."""
    many, few = ([one.case for one in tested if one.outcome == kind] for kind in (MANY, FEW))
    plain = not chosen and not any(one.elements for one in tested)
    alone = "_alone" if len(tested) == 1 else ""
    for kind, names in (("high", many), ("low", few)):
        if names:
            yield WORDS.format(say(f"terminal.backtest.do_{kind}{alone}", names=names))
    if many:
        yield WORDS("terminal.backtest.do_repairs")
    not_better = [one.case for one in tested if one.verdict != BETTER]
    if plain and (many or few or not_better):
        yield WORDS("terminal.backtest.do_models")
    if any(one.verdict == WORSE for one in tested):
        worse = [one.case for one in tested if one.verdict == WORSE]
        yield WORDS.format(say(f"terminal.backtest.do_worse{alone}", names=worse))
    if tested and not (many or few or not_better):
        yield WORDS(f"terminal.backtest.do_nothing{'_chosen' if chosen else ''}")


def _plain(text: str) -> str:
    """A text with signs that any terminal can show."""
    return text.translate(PLAIN)
