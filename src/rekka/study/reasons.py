"""Why these methods of a case were selected and no others, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rekka.core.errors import count_of
from rekka.evaluation.selection import COUNT_TOLERANCE, SECONDS_TOLERANCE, Point, ties
from rekka.study.trial import Status

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
    """Why these methods of a case and no others, in one sentence."""
    cost = rows[0]["cost"]
    points = comparable(rows, cost)
    selected = [row["method"] for row in rows if row["selected"]]
    if not selected:
        return f"none: {_why_none(rows)}"
    groups: list[list[str]] = []
    for method in sorted(selected, key=lambda m: points[m].cost):
        tied = groups and ties(points[groups[-1][0]], points[method], COSTS[cost])
        groups = [*groups[:-1], [*groups[-1], method]] if tied else [*groups, [method]]
    if len(groups) > 1:
        return _explain_trade(groups, points, cost, model_of)
    if len(selected) > 1:
        figures = f"{_name_accuracy(points[selected[0]])} and {_name_cost(points[selected[0]], cost)}"
        return f"{join_names(selected)} tie at {figures}{_one_model(selected, model_of)}"
    return f"{selected[0]}: {_explain_single(rows, points, selected[0], cost)}"


def _why_none(rows: Sequence[Row]) -> str:
    if not any(row["converged"] for row in rows):
        return "no method converged"
    if any(row["eligible"] for row in rows):
        return "no golden row could be scored"
    exists = {row["maximum_exists"] for row in rows}
    if False in exists and True not in exists:
        return "the likelihood has no finite maximum"
    if all(row["status"] == Status.NOT_DETERMINED for row in rows if row["converged"]):
        return "the rows do not determine all coefficients"
    return "no fit that converged is eligible"


def _explain_single(rows: Sequence[Row], points: Mapping[str, Point], method: str, cost: str) -> str:
    """Why one method leaves no other beside it."""
    mine = points[method]
    accuracy, price = _name_accuracy(mine), _name_cost(mine, cost)
    others = [Point(point.accuracy, 0.0) for name, point in points.items() if name != method]
    level = [ties(other, Point(mine.accuracy, 0.0)) for other in others]
    if not others:
        only = "that converged" if sum(row["converged"] for row in rows) == 1 else "that is eligible"
        return f"the only method {only} ({accuracy}, {price})"
    if all(level):
        return f"as accurate as every other ({accuracy}) at the lowest cost, {price}"
    if any(level):
        return f"none is more accurate ({accuracy}), at the lowest cost, {price}"
    return f"the most accurate ({accuracy}) at the lowest cost, {price}"


def _explain_trade(
    groups: Sequence[Sequence[str]], points: Mapping[str, Point], cost: str, model_of: Callable[[str], str]
) -> str:
    """What is gained and what is paid, from the cheapest to the most accurate."""
    names = [
        join_names(group) + (" (one model)" if len(group) > 1 and len(set(map(model_of, group))) == 1 else "")
        for group in groups
    ]
    prices = [_name_cost(points[group[0]], cost) for group in groups]
    accuracies = [_name_accuracy(points[group[0]]) for group in groups]
    if len(groups) == 2:
        verb = "is" if len(groups[0]) == 1 else "are"
        return f"{names[0]} {verb} cheaper ({prices[0]}), {names[1]} more accurate ({accuracies[1]})"
    steps = [f"{n} ({p}, {a})" for n, p, a in zip(names, prices, accuracies, strict=True)]
    return f"from the cheapest to the most accurate: {', '.join(steps)}"


def _one_model(methods: Sequence[str], model_of: Callable[[str], str]) -> str:
    """Which of them are one model, where some are."""
    models: dict[str, list[str]] = {}
    for method in methods:
        models.setdefault(model_of(method), []).append(method)
    shared = [group for group in models.values() if len(group) > 1]
    if len(models) == 1:
        return ": they are one model"
    return f": of these {'; '.join(f'{join_names(group)} are one model' for group in shared)}" if shared else ""


def join_names(names: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), names[-1]])


def _name_accuracy(point: Point) -> str:
    return f"{point.accuracy:.4f}"


def _name_cost(point: Point, cost: str) -> str:
    return name_cost(point.cost, cost)


def name_cost(value: float, cost: str) -> str:
    """'0.421 s', '7 evaluations'."""
    if cost == "seconds":
        return f"{value:.3f} s" if value >= 0.1 else f"{value:.2g} s"
    return count_of(int(value), cost.removesuffix("s"))
