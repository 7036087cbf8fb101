"""The tables of the network: numbers by year and state, the members at greatest risk, who is not forecast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rekka.report.document import Document
from rekka.report.forecast_parts import NetworkPart, NetworkYear
from rekka.report.table_cells import (
    COUNT,
    FINE_SHARE,
    MEMBERS,
    YEAR,
    YEARS,
    EstimateTable,
    Field,
    Fields,
    build_estimates,
    build_table,
    optional,
)
from rekka.report.views import TableView
from rekka.report.words import Words, join_sentences

EVERY = 5  # years between the rows of a table; the document has every year


def tabulate_network(document: Document, words: Words) -> TableView:
    """All cases together, every five years."""
    return _tabulate("network", _take(document, of_cases=False), document, words)


def tabulate_network_cases(document: Document, words: Words) -> TableView:
    """The same for each case; nothing where there is one."""
    rows = _take(document, of_cases=True)
    several = len({one.case for one in rows}) > 1
    return _tabulate("network_cases", rows if several else [], document, words)


def tabulate_risks(document: Document, words: Words) -> TableView:
    """The members that will soonest be in the threshold or worse."""
    make = Fields(words)
    network = document.network
    soon = 0 if network is None else network.soon
    fields = (
        make.number("rank", COUNT),
        make.text("bridge"),
        make.case(),
        optional(make.text("member")),
        optional(make.text("seen")),
        make.number("state_seen", COUNT, lambda one: one.state),
        make.number("threshold", COUNT),
        make.number("reached_in", FINE_SHARE, lambda one: one.reached, years=soon),
        make.estimate("mean_until", YEARS, ("mean", "mean_low", "mean_high"), unit="years"),
        make.number("median_until", YEARS, lambda one: one.median, unit="years"),
        optional(make.number("calendar", YEAR)),
        optional(make.text("remark", english=True)),
    )
    table = build_estimates("risks", fields, network.risks if network else (), words, _find_level(document))
    return _warn(table, network, words)


def tabulate_aside(document: Document, words: Words) -> TableView:
    """Who is not forecast, and who is with a remark: why, and how many."""
    make = Fields(words)
    fields = (
        make.coded("aside_kind", "aside", lambda one: one.kind),
        optional(make.text("case")),
        make.text("reason", english=True),
        make.number("aside_count", COUNT, lambda one: one.count),
        make.coded("what", "aside"),
    )
    return build_table("set_aside", fields, document.network.aside if document.network else (), words)


def _tabulate(name: str, rows: Sequence[NetworkYear], document: Document, words: Words) -> TableView:
    make = Fields(words)
    states = range(1, max((len(one.expected) for one in rows), default=0) + 1)
    fields: list[Field] = [
        make.number("year", COUNT, unit="years"),
        optional(make.number("threshold", COUNT)),
        make.estimate("members_reached", MEMBERS, ("reached", "low", "high")),
        optional(make.span("members_predicted", COUNT, ("predicted_low", "predicted_high"))),
        make.number("members", COUNT),
        *(make.number("members_in_state", MEMBERS, _getter(state), state=state) for state in states),
    ]
    if name == "network_cases":
        fields.insert(0, make.case())
    if not all(one.certified for one in rows):
        fields.append(make.mark("certified"))
    items = (SimpleNamespace(**dict(one)) for one in rows)
    return _warn(build_estimates(name, fields, items, words, _find_level(document)), document.network, words)


def _find_level(document: Document) -> float:
    """A forecast of an inventory has a level of its own."""
    return document.study.confidence if document.network is None else document.network.level


def _warn(table: EstimateTable, network: NetworkPart | None, words: Words) -> TableView:
    """The same with a note that a model is not certified, where one is not."""
    if network is None or network.certified:
        return table
    return replace(table, note=join_sentences((words("table.uncertified.note"), table.note), words))


def _take(document: Document, *, of_cases: bool) -> list[NetworkYear]:
    years: Iterable[NetworkYear] = () if document.network is None else document.network.years
    last = 0 if document.network is None else document.network.horizon
    own = (one for one in years if (one.case is not None) == of_cases)
    return [one for one in own if one.year % EVERY == 0 or one.year == last]


def _getter(state: int) -> Callable[[Any], float | None]:
    return lambda one: one.expected[state - 1] if state <= len(one.expected) else None
