"""Forecasts of runs in memory: what the pages of results show, kept for some minutes.

A view is a run's forecast until one threshold, for so many years. That of the run folder is read from its files;
another one is forecast from the models and members in memory. Nothing of it is ever fitted for a page.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from rekka.app.memory import Memory
from rekka.core.errors import BadOption, DamagedFile, InputError
from rekka.core.folders import digest_file
from rekka.core.ratings import Ratings
from rekka.fleet.document import FORECAST, ForecastFile, load_forecast
from rekka.fleet.lists import MEMBER
from rekka.fleet.what_if import WhatIf
from rekka.report.document import Document
from rekka.report.fitted import replace_forecast
from rekka.report.networks import FOLDER, INVENTORY, STUDY, load_details, order_members
from rekka.report.report import make_report
from rekka.study.provenance import list_sources
from rekka.study.run_folder import load_plan
from rekka.workflows.forecast import ForecastBasis, InventoryForecast, reopen_basis

NUMBERS = "report.json"  # in the run folder, beside its page
MOST_KEPT, MOST_PICTURES = 6, 60  # forecasts, documents and what-ifs of all runs together; what is drawn of them
LEAST_YEARS, MOST_YEARS = 1, 50  # of a horizon
TEXT = "text of the search"  # column of a view's members


@dataclass(frozen=True, eq=False)
class View:
    """A forecast as the pages show it: ``document`` has its network, ``found`` is the forecast itself.

    ``details`` are those of each member, in the order of the page, with the text that a search looks through.
    ``key`` is another for another view; ``own`` says that it is the forecast of the run folder, as it is there.
    """

    document: Document
    found: ForecastFile | None
    details: pl.DataFrame
    key: tuple[Any, ...]
    within: Path | None = None  # the folder that its table is not read outside of
    forecast: InventoryForecast | None = None
    own: bool = True

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return self.document.ratings if self.document.network is None else self.document.network.ratings

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """Thresholds that every component can have."""
        most = min((one.n_states for one in self.found.models), default=1) if self.found else 1
        return tuple(range(2, most + 1))

    @property
    def threshold(self) -> int | None:
        """The threshold, where all components have the same."""
        known = {one.threshold for one in self.found.models} if self.found else set()
        return known.pop() if len(known) == 1 else None

    @property
    def years(self) -> int:
        """The horizon."""
        return 0 if self.found is None else self.found.horizon


MEMORY = Memory(MOST_KEPT)
PICTURES = Memory(MOST_PICTURES)  # as HTML, and whole pages


def find_view(
    run: Path,
    threshold: int | None = None,
    years: int | None = None,
    *,
    within: Path | None = None,
    memory: Memory = MEMORY,
) -> View:
    """The forecast of a run folder, or one until another threshold or for other years.

    Its table is read only where it lies ``within`` a folder, if one is given.
    """
    own = memory.find((run, within, *_stamp(run)), lambda: _read(run, within))
    if threshold == own.threshold:
        threshold = None
    if years == own.years:
        years = None
    if own.found is None or (threshold is None and years is None):
        return own
    if threshold is not None and threshold not in own.thresholds:
        raise BadOption(f"threshold is {threshold}; every component has the ratings 2 to {own.thresholds[-1]}.")
    if years is not None and not LEAST_YEARS <= years <= MOST_YEARS:
        raise BadOption(f"years is {years}; a whole number from {LEAST_YEARS} to {MOST_YEARS} is needed.")
    return memory.find((*own.key, threshold, years), lambda: _look_anew(run, own, threshold, years, memory))


def open_forecast(run: Path, view: View, memory: Memory = MEMORY) -> InventoryForecast:
    """The forecast of a view in memory, for what if."""
    if view.forecast is not None:
        return view.forecast
    return memory.find((*view.key, "memory"), lambda: _find_basis(run, view, memory).forecast())


def _find_basis(run: Path, view: View, memory: Memory) -> ForecastBasis:
    """Members and models of the forecast of a view, from which others are made."""
    if view.forecast is not None and view.forecast.basis is not None:
        return view.forecast.basis
    return memory.find((*view.key, "basis"), lambda: _reopen(run, view.within))


def find_what_if(run: Path, view: View, repairs: Path, memory: Memory = MEMORY) -> WhatIf:
    """The change that a table of repairs makes in the forecast of a view."""
    key = (*view.key, "what if", digest_file(repairs))
    return memory.find(key, lambda: open_forecast(run, view, memory).repair(repairs))


def _stamp(run: Path) -> tuple[int, ...]:
    """Times of the files that a view is read from: another forecast, or report, is another view."""
    files = (run / NUMBERS, run / FOLDER / FORECAST)
    return tuple(file.stat().st_mtime_ns if file.is_file() else 0 for file in files)


def read_document(run: Path) -> Document:
    """Numbers of a run's report: as they were written with it, else computed."""
    numbers, forecast = _stamp(run)
    if numbers and numbers >= forecast:
        try:
            return Document.from_json((run / NUMBERS).read_bytes(), NUMBERS)
        except DamagedFile:  # of another version
            pass
    return make_report(run, calibrate=False).document


def _reopen(run: Path, within: Path | None) -> ForecastBasis:
    """Members and models of a run folder, whose tables are not read where they lie outside of a folder."""
    if within is not None:
        _refuse_outside(run, within.resolve())
    return reopen_basis(run)


def _refuse_outside(run: Path, within: Path) -> None:
    for place in list_sources(load_plan(run), run).values():
        for path in (place, *(place.rglob("*") if place.is_dir() else ())):
            if not path.resolve().is_relative_to(within):
                raise InputError(
                    f"{path.name} lies outside of the workspace, and is not read. Put it into the workspace, and "
                    "run the study there."
                )


def _read(run: Path, within: Path | None) -> View:
    document, key = read_document(run), (run, within, *_stamp(run))
    network, place = document.network, run / FOLDER
    details = load_details(place) if (place / FORECAST).is_file() else None
    if network is not None and network.kind == INVENTORY and details is not None:
        return View(document, load_forecast(place), list_details(details), key, within)
    try:
        made = _reopen(run, within).forecast()
    except InputError:  # the page says what its document says
        return View(document, None, pl.DataFrame(), key, within)
    return _make_view(document, made, key, within, own=True)


def _look_anew(run: Path, own: View, threshold: int | None, years: int | None, memory: Memory) -> View:
    changed = _find_basis(run, own, memory).forecast(threshold=threshold, years=years)
    return _make_view(own.document, changed, (*own.key, threshold, years), own.within, own=False)


def _make_view(
    document: Document, made: InventoryForecast, key: tuple[Any, ...], within: Path | None, *, own: bool
) -> View:
    kind = STUDY if document.network is not None and document.network.kind == STUDY else INVENTORY
    details = made.fleet.details
    shown = replace_forecast(document, made.document, made.fleet, kind)
    rows = pl.DataFrame() if details is None else list_details(details)
    return View(shown, made.document, rows, key, within, made, own)


def list_details(details: pl.DataFrame) -> pl.DataFrame:
    """Details of all members in the order of the page, with the text that a search looks through."""
    names = [pl.col(name).cast(pl.String).fill_null("") for name in MEMBER if name in details.columns]
    text = pl.concat_str(names, separator=" ").str.normalize("NFKC").str.to_lowercase()
    return order_members(details).with_columns(text.alias(TEXT))


def search_members(details: pl.DataFrame, query: str, component: str | None = None) -> pl.DataFrame:
    """Members of a component, if it is given, whose names have every word of a search."""
    searched = unicodedata.normalize("NFKC", query).lower().split()
    tests = [pl.col(TEXT).str.contains(word, literal=True) for word in searched]
    tests += [] if component is None else [pl.col("case") == component]
    return details.filter(tests) if tests else details
