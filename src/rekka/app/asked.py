"""Requests to the pages of a run's results: what their addresses ask for, and the forecast that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from rekka.app.forecasts import LEAST_YEARS, MOST_YEARS, View, find_view
from rekka.app.pages import NotThere, redirect, words_of
from rekka.app.workspace import Run, Workspace
from rekka.core.language import Words
from rekka.report.charts.base import PAGE as COLOURS
from rekka.report.charts.base import Theme
from rekka.report.page import TABS

LONGEST_NUMBER = 6  # digits


class Asked(NamedTuple):
    """Choices that an address holds; None and blank are the defaults."""

    threshold: int | None = None
    years: int | None = None
    component: str | None = None
    query: str = ""
    tab: str = ""
    page: int = 1

    def write(self, **changes: Any) -> str:
        """The choices as the end of an address, with some changed."""
        chosen = self._replace(**changes)._asdict()
        shown = {name: value for name, value in chosen.items() if value not in (None, "", Asked()._asdict()[name])}
        return f"?{urlencode(shown)}" if shown else ""

    @property
    def kept(self) -> str:
        """Threshold and years alone: what goes from page to page."""
        return Asked(self.threshold, self.years).write()


def read_asked(given: Mapping[str, str]) -> Asked:
    """Read the choices of an address or a form; what is no number counts as not given."""
    numbers = {name: read_number(given.get(name, "")) for name in ("threshold", "years", "page")}
    tab = given.get("tab", "")
    return Asked(
        numbers["threshold"],
        numbers["years"],
        given.get("component") or None,
        given.get("query", "").strip(),
        tab if tab in TABS else "",
        max(numbers["page"] or 1, 1),
    )


def read_number(text: str) -> int | None:
    """A whole number of a form; None for anything else."""
    plain = text.strip()
    return int(plain) if plain.isdecimal() and len(plain) <= LONGEST_NUMBER else None


class ResultsPage(NamedTuple):
    """A request to a page of results: the run, what is asked for, and the forecast."""

    request: Request
    run: Run
    asked: Asked
    view: View

    @property
    def words(self) -> Words:
        """Words in the reader's language."""
        return words_of(self.request)

    @property
    def address(self) -> str:
        """Address of the run."""
        return f"/runs/{self.run.id}"

    @property
    def theme(self) -> Theme:
        """Language and colours of figures."""
        return Theme(self.words, COLOURS, self.view.ratings)

    def common(self) -> dict[str, Any]:
        """Values that every page of results shows."""
        ratings, words = self.view.ratings, self.words
        return {
            "run": self.run,
            "asked": self.asked,
            "view": self.view,
            "address": self.address,
            "thresholds": [(one, ratings.rated(one, words)) for one in self.view.thresholds],
            "components": [] if self.view.found is None else [one.case for one in self.view.found.models],
            "least_years": LEAST_YEARS,
            "most_years": max(MOST_YEARS, self.view.years),
        }


def open_page(request: Request, given: Mapping[str, str] | None = None) -> ResultsPage | Response:
    """The run and forecast that a request asks for; to the page of its progress where it is not done."""
    workspace: Workspace = request.app.state.workspace
    run = workspace.run(request.path_params["run"])
    if run.state != "done":
        return redirect(request, f"/runs/{run.id}")
    if not run.study.is_dir():
        raise NotThere(f"{run.job.name} has no results.")
    asked = read_asked(request.query_params if given is None else given)
    return ResultsPage(
        request, run, asked, find_view(run.study, asked.threshold, asked.years, within=workspace.folder)
    )
