"""A fleet's forecast as tables: a row for each member, for each member and year, for each total and year.

A forecast as an Excel workbook: members, years, network and notes, a sheet each, written row by row.
"""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.sheets import new_workbook
from rekka.data.pairing import MONTHS, count_months
from rekka.fleet.eligibility import GAP, Lot
from rekka.fleet.first_passage import Arrivals
from rekka.fleet.members import Members
from rekka.fleet.network import Totals

Array = NDArray[np.float64]

SHOWN = (0, 5, 10, 20, 30, 50, 100, 200)  # years that are told of each member, and in the terminal
QUANTILES = (0.1, 0.5, 0.9)  # of the years until the threshold
NAMES = ("bridge_id", "case", "member")
LAST_YEAR = 9999  # of a calendar
CASE, NETWORK = "case", "network"  # what a total is of
MARKS = ("certified", "chosen")  # what every row says of its model, or of all models together
ALL = "all cases"
STATE, REACHED = "in this state", "in this state or worse"

MEANING = {
    "rank": "1 is the soonest to be at the threshold or worse, by the mean years; blank for those there already",
    "bridge_id": "bridge or other asset",
    "case": "kind of member",
    "member": "which of several such members",
    "row": "row of its last visit in the inventory",
    "column": "column of its last visit in the inventory",
    "last_seen": "day of its last visit",
    "state": "state found at its last visit, from 1, the best",
    "label": "the same as the inventory calls it",
    GAP: "years from its last visit to year 0",
    "threshold": "the state whose reaching is asked for",
    "there": "whether it was at the threshold or worse when last seen",
    "reached_N": "probability of the threshold or worse N years after year 0",
    "reached_N_low, reached_N_high": "interval of this, from the uncertainty of the parameters",
    "expected_state_N": "mean state N years after year 0",
    "mean_years": "mean of the years, from year 0, until the threshold",
    "mean_years_low, mean_years_high": "interval of this, from the uncertainty of the parameters",
    "median_years": "years by which half of such members have reached the threshold",
    "years_10, years_90": "years by which 10 and 90 % of them have: at the estimate, of the process alone",
    "..._calendar_year": "the calendar year of these; blank beyond the year 9999",
    "outside": "whether covariates leave the range of the training rows within the years",
    "remark": "what to know of this member",
    "certified": "whether the model is a certified maximum: figures of one that is not are not to be relied on",
    "chosen": "whether the study chose the model; false for the default's fit that --include-unchosen takes",
    "year": "years after year 0",
    "date": "the day that is",
    "p_K": "probability of state K",
    "reached": "probability of the threshold or worse",
    "expected_state": "mean state",
    "scope": "case, or network: all cases together",
    "what": "what is counted: members in this state, or in this state or worse",
    "members": "members forecast",
    "expected": "expected number of them",
    "low, high": "interval of the expected number, from the uncertainty of the parameters",
    "predicted_low, predicted_high": "interval of the number itself: parameters, and the chance in each course",
    "share": "expected number of all members forecast",
}  # the columns of all tables


def choose_years(horizon: int) -> list[int]:
    """The years that are told of each member."""
    return [year for year in SHOWN if year < horizon] + [horizon]


def add_years(base: date, years: int) -> date:
    """The same day so many years later, or the last of a shorter February."""
    try:
        return base.replace(year=base.year + years)
    except ValueError:
        return base.replace(year=base.year + years, day=28)


def tabulate_members(
    lot: Lot, members: Members, base: date | None, reached: Array, expected: Array, arrivals: Arrivals
) -> pl.DataFrame:
    """A row for each member of a lot, without rank and remarks; ``reached`` and ``expected`` are (n, T)."""
    rows, horizon = lot.rows, reached.shape[1] - 1
    columns: dict[str, Any] = {name: rows[name] for name in (*NAMES, "row", "column") if name in rows.columns}
    if members.dated:
        columns["last_seen"] = rows["date"]
    columns["state"] = rows["state"]
    if members.scale is not None:
        columns["label"] = [members.scale.names[state - 1] for state in rows["state"].to_list()]
    columns |= {_free(name, horizon): rows[name].cast(pl.Float64) for name in members.covariates}
    if GAP in rows.columns:
        columns[GAP] = rows[GAP]
    columns |= {"threshold": [lot.threshold] * len(rows), "there": lot.start >= lot.threshold - 1}
    columns |= {f"reached_{year}": reached[:, year] for year in choose_years(horizon)}
    columns[f"expected_state_{horizon}"] = expected[:, horizon]
    columns |= _lay_out_arrivals(arrivals, base)
    known = {*NAMES, "row", "column", "date", "state", GAP, *members.covariates}
    kept = [name for name in rows.columns if name not in known]
    return pl.DataFrame(columns | {_free(name, horizon): rows[name] for name in kept})


def _free(name: str, horizon: int) -> str:
    """The name of a column of the inventory, marked where a column of ours is called so."""
    ours = name in MEANING or name.startswith(
        (f"expected_state_{horizon}", "reached_", "mean_", "median_", "years_")
    )
    return f"{name} (inventory)" if ours or name.startswith("calendar_year_") else name


def _lay_out_arrivals(found: Arrivals, base: date | None) -> dict[str, pl.Series]:
    """Years until the threshold at the estimate, and their calendar years; blank where it may never be reached."""
    early, median, late = found.quantile[0].T
    years = {"mean": found.mean[0], "median": median, "10": early, "90": late}
    columns = {}
    for name, values in years.items():
        told = f"{name}_years" if name.startswith("m") else f"years_{name}"
        columns[told] = _blank(values)
    if base is not None:
        now = pl.DataFrame({"date": [base]}).select(count_months("date")).item() / MONTHS
        for name, values in years.items():
            year = np.floor(now + np.where(values < LAST_YEAR, values, LAST_YEAR))
            told = f"{name}_calendar_year" if name.startswith("m") else f"calendar_year_{name}"
            columns[told] = _blank(np.where(year <= LAST_YEAR, year, np.inf)).cast(pl.Int64)
    return columns


def _blank(values: Array) -> pl.Series:
    """Numbers with what is infinite or undefined left blank."""
    return pl.Series(np.where(np.isfinite(values), values, np.nan)).fill_nan(None)


def tabulate_years(
    lot: Lot, base: date | None, states: int, p: Array, reached: Array, expected: Array, outside: NDArray[np.bool_]
) -> pl.DataFrame:
    """A row for each member of a lot and year; p is (n, T, K), and the others (n, T)."""
    n, times = reached.shape
    who = np.repeat(np.arange(n), times)
    columns: dict[str, Any] = {name: lot.rows[name][who] for name in NAMES if name in lot.rows.columns}
    columns["year"] = np.tile(np.arange(times), n)
    if base is not None:
        dates = pl.Series([add_years(base, year) for year in range(times)])
        columns["date"] = dates[np.tile(np.arange(times), n)]
    for k in range(states):
        own = k < p.shape[2]
        columns[f"p_{k + 1}"] = p[:, :, k].ravel() if own else pl.Series([None] * (n * times), dtype=pl.Float64)
    columns |= {"reached": reached.ravel(), "expected_state": expected.ravel(), "outside": outside.ravel()}
    return pl.DataFrame(columns | {name: np.full(n * times, mark) for name, mark in _mark(lot).items()})


def rank_members(members: pl.DataFrame, horizon: int) -> pl.DataFrame:
    """The members by risk: first those not at the threshold yet, the soonest to be there before others.

    Soonest by the mean years: the probability at the end would be 1 for all that are near. Who may never get there
    goes by the probability at the end; ties go by name. Those there already have no rank, because nothing is left
    to forecast of their getting there; they come after, the worst first.
    """
    names = [name for name in (*NAMES, "row", "column") if name in members.columns]
    keys = ["there", "mean_years", f"reached_{horizon}", "state", *names]
    descending = [False, False, True, True, *[False] * len(names)]
    ranked = members.sort(keys, descending=descending, nulls_last=True)
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    return ranked.select(pl.when(~pl.col("there")).then(place).alias("rank"), pl.all())


def tabulate_network(
    totals: Mapping[str, Totals],
    network: Totals | None,
    lots: Sequence[Lot],
    base: date | None,
    labels: Sequence[str] | None,
) -> pl.DataFrame:
    """A row for each case, year and quantity; all cases together where there are several."""
    marks = {name: all(getattr(lot.model, name) for lot in lots) for name in MARKS}
    same = {lot.threshold for lot in lots}
    threshold = same.pop() if len(same) == 1 else None
    parts = [
        _tabulate_totals(CASE, lot.case, totals[lot.case], lot.threshold, _mark(lot), base, labels) for lot in lots
    ]
    if network is not None:
        parts.append(_tabulate_totals(NETWORK, ALL, network, threshold, marks, base, labels))
    return pl.concat(parts, how="vertical_relaxed")


def _mark(lot: Lot) -> dict[str, bool]:
    """What every row of a case says of its model."""
    return {name: getattr(lot.model, name) for name in MARKS}


def _tabulate_totals(
    scope: str,
    case: str,
    totals: Totals,
    threshold: int | None,
    marks: Mapping[str, bool],
    base: date | None,
    labels: Sequence[str] | None,
) -> pl.DataFrame:
    times, quantities = totals.expected.shape
    states = [*range(1, totals.states + 1), threshold]
    (low, high), (predicted_low, predicted_high) = totals.interval(), totals.predict()
    named = [
        None if labels is None or state is None or state > len(labels) else labels[state - 1] for state in states
    ]
    numbers = {
        "expected": totals.expected,
        "share": totals.expected / totals.members,
        "low": low,
        "high": high,
        "predicted_low": predicted_low,
        "predicted_high": predicted_high,
    }
    years = np.repeat(np.arange(times), quantities)
    columns: dict[str, Any] = {
        "scope": [scope] * years.size,
        "case": [case] * years.size,
        "year": years,
        "date": pl.Series(
            [None if base is None else add_years(base, year) for year in years.tolist()], dtype=pl.Date
        ),
        "what": [*[STATE] * totals.states, REACHED] * times,
        "state": pl.Series(states * times, dtype=pl.Int64),
        "label": pl.Series(named * times, dtype=pl.String),
        "members": [totals.members] * years.size,
        **{name: _blank(values.ravel()) for name, values in numbers.items()},
        **{name: [mark] * years.size for name, mark in marks.items()},
    }
    return pl.DataFrame(columns)


LONGEST_TEXT = 32_767  # characters of a cell
WIDTHS = {"remark": 60, "what": 22, "case": 18, "bridge_id": 14}  # of columns, in characters
WIDTH, NOTE = 12, 110


class Workbook:
    """The workbook at ``path``: ``add`` years as they come, then ``finish``."""

    def __init__(self, path: Path) -> None:
        self._book = new_workbook(path, constant_memory=True, tmpdir=str(path.parent))
        self._head = self._book.add_format({"bold": True, "bottom": 1})
        self._date = self._book.add_format({"num_format": "yyyy-mm-dd"})
        self._wrapped = self._book.add_format({"text_wrap": True, "valign": "top"})
        self._sheets = {name: self._book.add_worksheet(name) for name in ("members", "years", "network", "notes")}
        self._next = dict.fromkeys(self._sheets, 0)
        self._open = True

    def add(self, rows: pl.DataFrame) -> None:
        """Some more years."""
        self._write("years", rows)

    def finish(self, members: pl.DataFrame, network: pl.DataFrame, notes: Sequence[tuple[str, str]]) -> None:
        """The other sheets."""
        self._write("members", members)
        self._write("network", network)
        sheet = self._sheets["notes"]
        sheet.set_column(0, 0, WIDTHS["what"])
        sheet.set_column(1, 1, NOTE)
        for line, (head, text) in enumerate(notes):
            sheet.write_string(line, 0, head, self._head)
            sheet.write_string(line, 1, text[:LONGEST_TEXT], self._wrapped)

    def close(self) -> None:
        """Write the file."""
        if self._open:
            self._open = False
            self._book.close()

    def drop(self) -> None:
        """Let go of it; what it would be is not wanted. xlsxwriter would leave the files of its rows open."""
        self._open = False
        for sheet in self._sheets.values():
            if getattr(sheet, "row_data_fh", None):
                with contextlib.suppress(OSError):  # what is left to be written is not wanted
                    sheet.row_data_fh.close()

    def _write(self, name: str, rows: pl.DataFrame) -> None:
        """Rows at the end of a sheet; its header before the first."""
        sheet = self._sheets[name]
        if not self._next[name]:
            for place, column in enumerate(rows.columns):
                sheet.write_string(0, place, column, self._head)
                sheet.set_column(place, place, WIDTHS.get(column, WIDTH))
            sheet.freeze_panes(1, 0)
            self._next[name] = 1
        for line, values in enumerate(rows.iter_rows(), start=self._next[name]):
            for place, value in enumerate(values):
                self._write_cell(sheet, line, place, value)
        self._next[name] += len(rows)

    def _write_cell(self, sheet: Any, line: int, place: int, value: Any) -> None:
        """By its type, never by what it looks like: a text is no formula, no number and no link."""
        if isinstance(value, bool):
            sheet.write_boolean(line, place, value)
        elif isinstance(value, str):
            sheet.write_string(line, place, value[:LONGEST_TEXT])
        elif isinstance(value, datetime.date):
            sheet.write_datetime(line, place, value, self._date)
        elif value is not None and math.isfinite(value):
            sheet.write_number(line, place, value)
