"""Page of repairs: members marked as repaired, how they are afterwards, and what that changes in the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rekka.app.asked import ResultsPage, open_page, read_number
from rekka.app.downloads import write_forecast_command
from rekka.app.forecasts import PICTURES, View, find_what_if, open_forecast, search_members
from rekka.app.pages import explain_error, redirect, render
from rekka.app.repairs import (
    REPAIRS,
    Mark,
    add_marks,
    edit_marks,
    name_member,
    read_key,
    read_marks,
    write_marks,
)
from rekka.core.errors import InputError
from rekka.core.folders import digest_file
from rekka.core.language import Words
from rekka.fleet.eligibility import EligibleGroup
from rekka.fleet.selection import find_ages, has_frailty, list_ties
from rekka.fleet.what_if import REPAIRED, WhatIf
from rekka.report.charts.members import draw_what_if
from rekka.report.outline import ShownTable
from rekka.report.page import PartWriter
from rekka.report.tables.what_if import tabulate_what_if
from rekka.report.text import show_years
from rekka.workflows.forecast import InventoryForecast

ROWS, FEW_ROWS = 50, 20  # marks on a page, members that a search lists


class Line(NamedTuple):
    """A marked member in the table: what it is rated, what it may be rated after the repair, and its years."""

    place: int
    mark: Mark
    rating: str
    ratings: Sequence[str]
    without: str
    repaired: str


def show_what_if(request: Request) -> Response:
    """Members that are marked as repaired, how they are afterwards, and what that changes."""
    page = open_page(request)
    return page if isinstance(page, Response) else _render_what_if(page)


def _render_what_if(page: ResultsPage) -> Response:
    words, view, asked = page.words, page.view, page.asked
    if view.found is None:
        return render(page.request, "results_what_if.html", **page.common(), possible=False)
    marks, notices, found = read_marks(page.run.folder), [], None
    ties: tuple[str, ...] = ()
    groups: dict[str, EligibleGroup] = {}
    try:
        if marks:
            opened = open_forecast(page.run.study, view)
            groups = {one.case: one for one in opened.fleet.eligible.groups}
            found = find_what_if(page.run.study, view, page.run.folder / REPAIRS)
            ties = _list_ties(opened, marks)
    except InputError as error:
        notices.append(("bad", explain_error(error, words)))
    pages = max(-(-len(marks) // ROWS), 1)
    number = min(asked.page, pages)
    some = list(enumerate(marks))[(number - 1) * ROWS : number * ROWS]
    return render(
        page.request,
        "results_what_if.html",
        **page.common(),
        possible=True,
        notices=notices,
        lines=_list_lines(some, view, groups, found, words),
        marks=marks,
        number=number,
        pages=pages,
        has_members=_has_members(view.details),
        has_age=any(find_ages(one) for one in groups.values()),
        has_frailty=any(has_frailty(one) for one in groups.values()),
        headline="" if found is None else found.headline(words.lang),
        notes=() if found is None else [words.reword(note) or note for note in (*found.notes, *ties)],
        figure="" if found is None else _draw_what_if(page, found),
        table="" if found is None else _write_what_if(found, words),
        ratings=[(state, view.ratings.rated(state, words)) for state in range(2, len(view.ratings.labels) + 1)],
        found=_search_unmarked(page, marks) if asked.query else [],
        commands=write_forecast_command(page.run.study, view, REPAIRS) if marks else "",
    )


def _list_ties(forecast: InventoryForecast, marks: Sequence[Mark]) -> tuple[str, ...]:
    """Note on equals that were taken by name, where the worst are marked and no others."""
    worst = {name_member(row).names for row in forecast.select(worst=len(marks)).to_dicts()}
    return list_ties(forecast.fleet.members, len(marks)) if worst == {mark.names for mark in marks} else ()


def _has_members(details: pl.DataFrame) -> bool:
    return "member" in details.columns and details["member"].cast(pl.String).replace("", None).count() > 0


def _draw_what_if(page: ResultsPage, found: WhatIf) -> Markup:
    return PICTURES.find(
        (*page.view.key, "what if", digest_file(page.run.folder / REPAIRS), page.words.lang),
        lambda: PartWriter(page.words).write_figure(draw_what_if(found, page.theme)),
    )


def _write_what_if(found: WhatIf, words: Words) -> Markup:
    return PartWriter(words).write_table(ShownTable(tabulate_what_if(found, words), "what-if-table"))


def _list_lines(
    marks: Sequence[tuple[int, Mark]],
    view: View,
    groups: Mapping[str, EligibleGroup],
    found: WhatIf | None,
    words: Words,
) -> list[Line]:
    """Marks with their rating and their years without the repair and with it."""
    years: dict[tuple[str, str, str], tuple[str, str]] = {}
    if found is not None:
        columns = [name for name in ("bridge_id", "case", "member") if name in found.members.columns]
        wanted = [*columns, "median_years", f"{REPAIRED}_median_years"]
        for row in found.members.select(wanted).iter_rows(named=True):
            own = name_member(row).names
            years[own] = (show_years(row["median_years"]), show_years(row[f"{REPAIRED}_median_years"]))
    states = _find_states(view, [mark for _, mark in marks])
    lines = []
    for place, mark in marks:
        group, state = groups.get(mark.component), states.get(mark.names)
        labels = view.ratings.labels if group is None else group.ratings.labels
        without, repaired = years.get(mark.names, ("", ""))
        rating = "" if state is None else view.ratings.name(state, words)
        lines.append(Line(place, mark, rating, labels[: state or len(labels)], without, repaired))
    return lines


def _find_states(view: View, marks: Sequence[Mark]) -> dict[tuple[str, str, str], int]:
    """Ratings of marked members when last seen."""
    if view.details.is_empty():
        return {}
    rows = view.details.filter(view.details["bridge_id"].cast(str).is_in([mark.bridge for mark in marks]))
    return {name_member(row).names: row["state"] for row in rows.to_dicts()}


def _search_unmarked(page: ResultsPage, marks: Sequence[Mark]) -> list[tuple[Mark, str, str, bool]]:
    """Members that a search finds, with their rating, their year, and whether they are marked."""
    view, words, known = page.view, page.words, {mark.names for mark in marks}
    rows = search_members(view.details, page.asked.query, page.asked.component).head(FEW_ROWS)
    dated = "median_calendar_year" in rows.columns
    found = []
    for row in rows.to_dicts():
        mark, median = name_member(row), row["median_years"]
        when = str(row["median_calendar_year"]) if dated and row["median_calendar_year"] else show_years(median)
        found.append((mark, view.ratings.name(row["state"], words), when, mark.names in known))
    return found


async def change_what_if(request: Request) -> Response:
    """Mark members, change how they are after their repair, or take marks away."""
    form = await request.form()
    given = {name: value for name, value in form.items() if isinstance(value, str)}
    many = {name: [one for one in form.getlist(name) if isinstance(one, str)] for name in ("mark", "drop")}
    return await run_in_threadpool(_change, request, given, many)


def _change(request: Request, given: Mapping[str, str], many: Mapping[str, Sequence[str]]) -> Response:
    page = open_page(request, given)
    if isinstance(page, Response):
        return page
    folder, action = page.run.folder, given.get("action", "")
    marks = read_marks(folder)
    if action == "edit":
        marks = edit_marks(marks, given, many["drop"])
    elif action == "add":
        marks = add_marks(marks, map(read_key, many["mark"]))
    elif action in ("worst", "rated"):
        marks = add_marks(marks, _select(page, given, worst=action == "worst"))
    elif action == "clear":
        marks = []
    write_marks(folder, marks)
    back = page.asked._replace(component=None, tab="")
    return redirect(request, f"{page.address}/what-if{back.write()}")


def _select(page: ResultsPage, given: Mapping[str, str], *, worst: bool) -> list[Mark]:
    """The worst members, or all with a rating or worse; of one component, or of all."""
    forecast = open_forecast(page.run.study, page.view)
    number = read_number(given.get("number", "")) or 0
    rating = read_number(given.get("rating", ""))
    component = given.get("of") or None
    some = {"worst": number} if worst else {"rating": rating}
    chosen = forecast.select(component=component, **some)
    return [name_member(row) for row in chosen.to_dicts()]


ROUTES = [
    Route("/runs/{run}/what-if", show_what_if),
    Route("/runs/{run}/what-if", change_what_if, methods=["POST"]),
]
