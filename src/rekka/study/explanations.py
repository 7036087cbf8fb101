"""Wording that the sentences about trials share; light enough for the command line.

Why these methods of a case were selected and no others: a key with the figures that decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rekka.core.errors import name_some
from rekka.core.language import ENGLISH, Said, load_words, say
from rekka.evaluation.selection import COUNT_TOLERANCE, SECONDS_TOLERANCE, Point, ties
from rekka.study.trial import Status

MOST_NAMES = 6


def list_names(names: Iterable[str]) -> str:
    """'a, b, c', or the first of very many and how many more there are."""
    some = list(names)
    return name_some(some, MOST_NAMES) if some else ""


def name_trials(trials: Sequence[tuple[str, str]]) -> str:
    """'max, minmax in Pier, Abutment; zscore in Pier': methods that share their cases together."""
    by_method: dict[str, list[str]] = {}
    for case, method in trials:
        by_method.setdefault(method, []).append(case)
    by_cases: dict[tuple[str, ...], list[str]] = {}
    for method, cases in by_method.items():
        by_cases.setdefault(tuple(cases), []).append(method)
    return "; ".join(f"{', '.join(methods)} in {list_names(cases)}" for cases, methods in by_cases.items())


Row = dict[str, Any]

COSTS = {"seconds": SECONDS_TOLERANCE, "evaluations": COUNT_TOLERANCE, "iterations": COUNT_TOLERANCE}


def comparable(rows: Sequence[Row], cost: str) -> dict[str, Point]:
    """The trials that can be compared: eligible, with accuracy and cost."""
    return {
        row["method"]: Point(row["accuracy"], row[cost])
        for row in rows
        if row["eligible"] and row["accuracy"] is not None and row[cost] is not None
    }


def explain(rows: Sequence[Row], model_of: Callable[[str], str]) -> str:
    """Why these methods of a case and no others, in one English sentence."""
    return load_words(ENGLISH).format(explain_selection(rows, model_of))


def explain_selection(rows: Sequence[Row], model_of: Callable[[str], str]) -> Said:
    """Why these methods of a case and no others."""
    cost = rows[0]["cost"]
    points = comparable(rows, cost)
    selected = [row["method"] for row in rows if row["selected"]]
    if not selected:
        return say("why.pareto.none", why=say(f"why.pareto.{_why_none(rows)}"))
    groups: list[list[str]] = []
    for method in sorted(selected, key=lambda m: points[m].cost):
        tied = groups and ties(points[groups[-1][0]], points[method], COSTS[cost])
        groups = [*groups[:-1], [*groups[-1], method]] if tied else [*groups, [method]]
    if len(groups) > 1:
        return _explain_trade(groups, points, cost, model_of)
    figures = _list_figures(points[selected[0]], cost)
    if len(selected) > 1:
        shared = _list_shared(selected, model_of)
        one = len({model_of(method) for method in selected}) == 1
        key = "tie_one_model" if one else "tie_some" if shared else "tie"
        return say(f"why.pareto.{key}", names=join_names(selected), shared=shared, **figures)
    return say(f"why.pareto.{_why_single(rows, points, selected[0])}", method=selected[0], **figures)


def _why_none(rows: Sequence[Row]) -> str:
    if not any(row["converged"] for row in rows):
        return "not_converged"
    if any(row["eligible"] for row in rows):
        return "not_scored"
    exists = {row["maximum_exists"] for row in rows}
    if False in exists and True not in exists:
        return "no_maximum"
    if all(row["status"] == Status.NOT_DETERMINED for row in rows if row["converged"]):
        return "not_determined"
    return "not_eligible"


def _why_single(rows: Sequence[Row], points: Mapping[str, Point], method: str) -> str:
    """Why one method leaves no other beside it."""
    mine = points[method]
    others = [Point(point.accuracy, 0.0) for name, point in points.items() if name != method]
    level = [ties(other, Point(mine.accuracy, 0.0)) for other in others]
    if not others:
        return "only_converged" if sum(row["converged"] for row in rows) == 1 else "only_eligible"
    if all(level):
        return "as_accurate"
    return "none_better" if any(level) else "most_accurate"


def _explain_trade(
    groups: Sequence[Sequence[str]], points: Mapping[str, Point], cost: str, model_of: Callable[[str], str]
) -> Said:
    """What is gained and what is paid, from the cheapest to the most accurate."""
    names = [
        say("why.pareto.one_model", names=join_names(group))
        if len(group) > 1 and len(set(map(model_of, group))) == 1
        else join_names(group)
        for group in groups
    ]
    figures = [_list_figures(points[group[0]], cost) for group in groups]
    if len(groups) == 2:
        price, accuracy = figures[0]["price"], figures[1]["accuracy"]
        own = {"cheaper": names[0], "better": names[1], "price": price, "accuracy": accuracy}
        return say("why.pareto.pair", n=len(groups[0]), **own)
    steps = [say("why.pareto.step", names=name, **own) for name, own in zip(names, figures, strict=True)]
    return say("why.pareto.trade", steps=steps)


def _list_shared(methods: Sequence[str], model_of: Callable[[str], str]) -> list[Said]:
    """Which of them are one model, where some are."""
    models: dict[str, list[str]] = {}
    for method in methods:
        models.setdefault(model_of(method), []).append(method)
    return [say("why.pareto.shared", names=join_names(one)) for one in models.values() if len(one) > 1]


def join_names(names: Sequence[str]) -> str | Said:
    """'a', 'a and b', 'a, b and c'."""
    return names[0] if len(names) == 1 else say("names.several", first=list(names[:-1]), last=names[-1])


def _list_figures(point: Point, cost: str) -> dict[str, Any]:
    return {"accuracy": point.accuracy, "price": name_cost(point.cost, cost)}


def name_cost(value: float, cost: str) -> Said:
    """'0.421 s', '7 evaluations'."""
    if cost == "seconds":
        return say("price.seconds" if value >= 0.1 else "price.short", seconds=value)
    return say(f"price.{cost.removesuffix('s')}", n=int(value))
