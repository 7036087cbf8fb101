"""The results of a run, live: headline, network, members, a card for each, the report, files to take away.

Everything shown is made by the functions of the report. The address holds all that was chosen: threshold, years,
component, search, tab, page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

import polars as pl
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rekka.app import what_if
from rekka.app.asked import ResultsPage, open_page
from rekka.app.downloads import FILES, list_downloads, make_file
from rekka.app.forecasts import PICTURES, find_view, search_members
from rekka.app.pages import NotThere, render
from rekka.app.repairs import Mark, read_marks
from rekka.core.language import Words
from rekka.report.cards import make_card
from rekka.report.charts.forecast import draw_network
from rekka.report.charts.members import draw_member
from rekka.report.document import MembersPart, NetworkPart
from rekka.report.networks import describe_members
from rekka.report.outline import ShownTable
from rekka.report.overview import make_overview
from rekka.report.page import TABS, Links, PartWriter, render_page, show_components
from rekka.report.tables.models import list_members, tabulate_first

ASSETS = "/assets/report"  # style and scripts of the report
ROWS = 30  # members of a page of the list
OWN = "app.results."  # before the key of a text of the report: what the page says in its place
PARTS = (f"{OWN}trust.do.", f"{OWN}overview.do.")  # texts that name a command
LIST = "members"  # the part of the page that a search changes


def show_results(request: Request) -> Response:
    """The page of results, or for htmx what changes in it."""
    page = open_page(request)
    if isinstance(page, Response):
        return page
    words, view, asked = page.words, page.view, page.asked
    known = [case.case for case in view.document.cases]
    component = asked.component if asked.component in known else None
    write = PartWriter(words)
    overview = make_overview(view.document, _advise_here(page), component)
    return render(
        request,
        "results.html",
        block="list" if request.headers.get("hx-target") == LIST else None,
        **page.common(),
        overview=overview,
        cards=write.write_cards(overview.cards) if overview.cards else "",
        figure=_draw_network(page, component),
        table=write.write_table(show_components(view.document, words)),
        files=list_downloads(view, words),
        **_list_members(page, component),
    )


def _advise_here(page: ResultsPage) -> Words:
    """The words, of which advice to run the models of a quick run's table again says what to click."""
    words, ask = page.words, page.run.job.ask
    if page.run.source is None or ask is None or ask.models:
        return words
    own = {key.removeprefix(OWN): text for key, text in words.texts.items() if key.startswith(PARTS)}
    return replace(words, texts={**words.texts, **own})


def _draw_network(page: ResultsPage, component: str | None) -> Markup:
    """The figure of the network as it stands in the report."""
    network, view = page.view.document.network, page.view
    if network is None:
        return Markup("")
    return PICTURES.find(
        (*view.key, "network", page.words.lang, component),
        lambda: PartWriter(page.words).write_figure(draw_network(network, page.theme, component)),
    )


def _list_members(page: ResultsPage, component: str | None) -> dict[str, Any]:
    """Tabs with their counts, and a page of one tab."""
    view, asked, words = page.view, page.asked, page.words
    if view.found is None or view.details.is_empty():
        return {"tabs": [], "members": "", "first": 0, "last": 0, "total": 0, "pages": (None, None)}
    found = search_members(view.details, asked.query, component)
    counts = dict(found.group_by("tab").len().iter_rows())
    filled = [name for name, number in TABS.items() if counts.get(number)]
    tab = asked.tab or (filled[0] if filled else next(iter(TABS)))
    if asked.query and filled and tab not in filled:
        tab = filled[0]
    rows = found.filter(tab=TABS[tab])
    number = min(asked.page, max(-(-len(rows) // ROWS), 1))
    start = (number - 1) * ROWS
    some = rows.slice(start, ROWS)
    shown = _tabulate(page, some, TABS[tab], f"members_{tab}") if len(some) else ""
    return {
        "tabs": [
            (name, counts.get(place, 0), page.asked.write(tab=name, page=1), name == tab)
            for name, place in TABS.items()
        ],
        "members": shown,
        "tab_note": words(f"page.members.{tab}"),
        "first": min(start + 1, len(rows)),
        "last": start + len(some),
        "total": len(rows),
        "pages": (
            asked.write(page=number - 1) if number > 1 else None,
            asked.write(page=number + 1) if start + ROWS < len(rows) else None,
        ),
    }


def _tabulate(page: ResultsPage, rows: pl.DataFrame, tab: int | None, name: str) -> Markup:
    """Members as the report lists them; a bridge's name leads to its card."""
    view, words = page.view, page.words
    assert view.found is not None
    part = describe_members(rows, view.found)
    own = _with_members(page, part)
    document = view.document.model_copy(update={"network": own})
    places = range(len(part.bridge)) if tab is None else [n for n, one in enumerate(part.tab) if one == tab]
    listed = list_members(own, tab, len(part.bridge), words)
    table = tabulate_first(document, listed, words, name)
    links = tuple(_link_card(page, part, place) for place in places)
    return PartWriter(words).write_table(ShownTable(table, name, quiet=True, addresses=links))


def _with_members(page: ResultsPage, part: MembersPart) -> NetworkPart:
    """The network with these members alone."""
    assert page.view.document.network is not None
    return page.view.document.network.model_copy(update={"every": part})


def _link_card(page: ResultsPage, part: MembersPart, place: int) -> str:
    names = {"bridge": part.bridge[place], "component": part.cases[part.case[place]]}
    if part.member and part.member[place]:
        names["member"] = part.member[place] or ""
    kept = {
        name: value for name, value in page.asked._asdict().items() if name in ("threshold", "years") and value
    }
    return f"{page.address}/member?{urlencode(names | kept)}"


# A member's card


def show_member(request: Request) -> Response:
    """The card of a member: ratings found and to come, what drives it, the other members of its bridge."""
    page = open_page(request)
    if isinstance(page, Response):
        return page
    view, words, given = page.view, page.words, request.query_params
    own = view.details.filter(bridge_id=given.get("bridge", "")) if len(view.details) else view.details
    if own.is_empty() or view.found is None:
        raise NotThere("There is no such member in the forecast.")
    part = describe_members(own, view.found)
    wanted = (given.get("component"), given.get("member"))
    place = next((n for n in range(len(part.bridge)) if _name_of(part, n) == wanted), 0)
    network = _with_members(page, part)
    card = make_card(view.document, part, place, words)
    mark = Mark(card.bridge, part.cases[part.case[place]], card.member)
    return render(
        request,
        "results_member.html",
        **page.common(),
        card=card,
        mark=mark,
        marked=mark.names in {one.names for one in read_marks(page.run.folder)},
        figure=PartWriter(words).write_figure(draw_member(network, part, place, page.theme)),
        siblings=_tabulate(page, own, None, "first") if len(own) > 1 else "",
    )


def _name_of(part: MembersPart, place: int) -> tuple[str | None, str | None]:
    return part.cases[part.case[place]], part.member[place] if part.member else None


# The report, and files


def show_report(request: Request) -> Response:
    """The report page of the run, with style and scripts of this server."""
    page = open_page(request)
    if isinstance(page, Response):
        return page
    own, lang = find_view(page.run.study, within=page.view.within), page.words.lang
    links = Links(workbook="files/report.xlsx")
    return HTMLResponse(
        PICTURES.find(
            (*own.key, "report", lang), lambda: render_page(own.document, lang, assets=ASSETS, links=links)
        )
    )


def send_file(request: Request) -> Response:
    """A file to take away, of a fixed list."""
    name = request.path_params["name"]
    if name not in FILES:
        raise NotThere(f"There is no file {name}.")
    page = open_page(request)
    if isinstance(page, Response):
        return page
    content, kind = make_file(name, page.run, page.view, page.words)
    headers = {"Content-Disposition": f'attachment; filename="{quote(name)}"'}
    return Response(content, media_type=kind, headers=headers)


ROUTES = [
    *what_if.ROUTES,
    Route("/runs/{run}/results", show_results),
    Route("/runs/{run}/member", show_member),
    Route("/runs/{run}/report", show_report),
    Route("/runs/{run}/files/{name}", send_file),
]
