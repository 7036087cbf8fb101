"""Tables of an inventory's forecast: members, members by year, totals by year; and all of them in a workbook."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.sheets import new_workbook
from rekka.data.pairing import MONTHS, count_months
from rekka.fleet.eligibility import GAP, LONG_UNSEEN, Eligible, EligibleGroup
from rekka.fleet.network import Totals, add_cases
from rekka.forecast.first_passage import FirstPassage

Array = NDArray[np.float64]

SHOWN = (0, 5, 10, 20, 30, 50, 100, 200)  # years shown of each member, and in the terminal
QUANTILES = (0.1, 0.5, 0.9)  # of the years until the threshold
NAMES = ("bridge_id", "case", "member")
LAST_YEAR = 9999  # of a calendar
CASE, NETWORK = "case", "network"  # what a total is of
MARKS = ("certified", "chosen")  # what every row says of its model, or of all models together
ALL = "all cases"
SHOCKED = ("predicted_shock_low", "predicted_shock_high")  # ends of the wider band
STATE, REACHED = "in this state", "in this state or worse"

MEANING = {
    "rank": "1 is the soonest to be at the threshold or worse, by the mean years; blank for those there already, "
    "and for those last inspected long ago",
    "bridge_id": "bridge or other asset",
    "case": "kind of member",
    "member": "which of several such members",
    "row": "row of its last visit in the inventory",
    "column": "column of its last visit in the inventory",
    "last_seen": "day of its last visit",
    "state": "state found at its last visit, from 1, the best",
    "label": "the same as the inventory calls it",
    GAP: "years from its last visit to year 0",
    "threshold": "the state whose reaching is asked for, from 1, the best",
    "threshold_label": "the same as the inventory or the model calls it",
    "there": "whether it was at the threshold or worse when last seen",
    LONG_UNSEEN: "whether its last visit is more than twice the usual interval of its component ago: its forecast "
    "starts from that visit",
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
    "predicted_shock_low, predicted_shock_high": "the same, and errors of the hazards that all members share, as "
    "large as earlier forecasts missed by: where --shocks asked for it",
    "share": "expected number of all members forecast",
    "recorded_N": "probability that an inspector records the threshold or worse N years after year 0: of a model "
    "with errors of inspection, whose other columns are on the true condition",
    "unimproved_N": "the same as reached_N without silent improvements from now on",
    "recorded": "expected number that inspectors record so: condition seen through their errors",
    "recorded_low, recorded_high, recorded_predicted_low, recorded_predicted_high": "intervals of this, as above",
    "recorded_predicted_shock_low, recorded_predicted_shock_high": "the wider interval of this, as above",
    "unimproved": "expected number without silent improvements from now on",
    "repaired, repaired_low, ...": "in whatif.csv: expected number where the members of whatif_members.csv are "
    "repaired in year 0, and its intervals as above",
    "difference, difference_low, ...": "that number less the one without repairs, and its intervals: of the "
    "expected difference, and of the difference itself, in which members that are not repaired cancel",
    "repaired_state, repaired_label": "rating after the repair",
    "repaired_mean_years, ...": "what mean_years and the like are with the repair",
}  # the columns of all tables


def choose_years(horizon: int) -> list[int]:
    """Years shown of each member."""
    return [year for year in SHOWN if year < horizon] + [horizon]


def find_near(horizon: int) -> tuple[int, int]:
    """First two years after the beginning that are shown of each member; of a short forecast its end."""
    first, *others = [year for year in choose_years(horizon) if year > 0]
    return first, others[0] if others else first


def add_years(base: date, years: int) -> date:
    """Same day ``years`` later, or the last of a shorter February."""
    try:
        return base.replace(year=base.year + years)
    except ValueError:
        return base.replace(year=base.year + years, day=28)


def tabulate_members(
    group: EligibleGroup, eligible: Eligible, reached: Array, expected: Array, passage: FirstPassage
) -> pl.DataFrame:
    """Table of a group's members, without rank and remarks; ``reached`` and ``expected`` are (n, T)."""
    rows, members, horizon = group.rows, eligible.members, reached.shape[1] - 1
    columns: dict[str, Any] = {name: rows[name] for name in (*NAMES, "row", "column") if name in rows.columns}
    if members.dated:
        columns["last_seen"] = rows["date"]
    columns["state"] = rows["state"]
    if members.scale is not None or not group.ratings.numbered:
        columns["label"] = [group.ratings.labels[state - 1] for state in rows["state"].to_list()]
    columns |= {_free(name, horizon): _as_number(rows[name]) for name in members.covariates}
    if GAP in rows.columns:
        columns[GAP] = rows[GAP]
    columns["threshold"] = [group.threshold] * len(rows)
    columns |= {"threshold_label": [group.threshold_label] * len(rows), "there": group.there}
    if LONG_UNSEEN in rows.columns:
        columns[LONG_UNSEEN] = rows[LONG_UNSEEN]
    columns |= {f"reached_{year}": reached[:, year] for year in choose_years(horizon)}
    columns[f"expected_state_{horizon}"] = expected[:, horizon]
    columns |= lay_out_passage(passage, eligible.base)
    known = {*NAMES, "row", "column", "date", "state", GAP, LONG_UNSEEN, *members.covariates}
    kept = [name for name in rows.columns if name not in known]
    return pl.DataFrame(columns | {_free(name, horizon): rows[name] for name in kept})


def _as_number(values: pl.Series) -> pl.Series:
    """Covariate as a number; a category as it is."""
    return values if values.dtype == pl.String else values.cast(pl.Float64)


def _free(name: str, horizon: int) -> str:
    """Name of an inventory's column, marked where a column of the forecast has that name."""
    ours = name in MEANING or name.startswith(
        (f"expected_state_{horizon}", "reached_", "recorded_", "unimproved_", "mean_", "median_", "years_")
    )
    return f"{name} (inventory)" if ours or name.startswith("calendar_year_") else name


def lay_out_passage(found: FirstPassage, base: date | None) -> dict[str, pl.Series]:
    """Columns of years until the threshold at the estimate, and their calendar years; null where never."""
    early, median, late = found.quantile[0].T
    years = {"mean": found.mean[0], "median": median, "10": early, "90": late}
    spelled = dict.fromkeys(("mean", "median"), ("{}_years", "{}_calendar_year"))
    spelled |= dict.fromkeys(("10", "90"), ("years_{}", "calendar_year_{}"))
    columns = {spelled[name][0].format(name): blank(values) for name, values in years.items()}
    if base is not None:
        now = pl.DataFrame({"date": [base]}).select(count_months("date")).item() / MONTHS
        for name, values in years.items():
            year = np.floor(now + np.where(values < LAST_YEAR, values, LAST_YEAR))
            calendar = blank(np.where(year <= LAST_YEAR, year, np.inf)).cast(pl.Int64)
            columns[spelled[name][1].format(name)] = calendar
    return columns


def blank(values: Array) -> pl.Series:
    """Numbers with null for what is infinite or undefined."""
    return pl.Series(np.where(np.isfinite(values), values, np.nan)).fill_nan(None)


def tabulate_years(
    group: EligibleGroup, eligible: Eligible, p: Array, reached: Array, expected: Array, outside: NDArray[np.bool_]
) -> pl.DataFrame:
    """Table of a group's members and years; p is (n, T, K), and the others (n, T)."""
    n, times = reached.shape
    who, year = np.repeat(np.arange(n), times), np.tile(np.arange(times), n)
    columns: dict[str, Any] = {name: group.rows[name][who] for name in NAMES if name in group.rows.columns}
    columns["year"] = year
    if eligible.base is not None:
        columns["date"] = pl.Series([add_years(eligible.base, one) for one in range(times)])[year]
    for k in range(max(one.fit.n_states for one in eligible.groups)):
        columns[f"p_{k + 1}"] = (
            p[:, :, k].ravel() if k < p.shape[2] else pl.repeat(None, n * times, dtype=pl.Float64, eager=True)
        )
    columns |= {"reached": reached.ravel(), "expected_state": expected.ravel(), "outside": outside.ravel()}
    return pl.DataFrame(columns | {name: np.full(n * times, mark) for name, mark in _mark([group]).items()})


def rank_members(members: pl.DataFrame, horizon: int) -> pl.DataFrame:
    """Rank members by risk: first those not at the threshold yet, the soonest to be there before others.

    Soonest by the mean years: the probability at the end would be 1 for all that are near. Who may never get there
    goes by the probability at the end; ties go by name. Members that were last inspected long ago come after, in
    the same order and without a rank: nobody knows how they are now. Those there already have no rank either,
    because nothing is left to forecast of their getting there; they come last, the worst first.
    """
    names = [name for name in (*NAMES, "row", "column") if name in members.columns]
    apart = ["there", *([LONG_UNSEEN] if LONG_UNSEEN in members.columns else [])]
    keys = [*apart, "mean_years", f"reached_{horizon}", "state", *names]
    descending = [key in (f"reached_{horizon}", "state") for key in keys]
    ranked = members.sort(keys, descending=descending, nulls_last=True)
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    return ranked.select(pl.when(~pl.any_horizontal(apart)).then(place).alias("rank"), pl.all())


class RecordTotals(NamedTuple):
    """Totals by case that only models of histories have; None where no model has them.

    ``recorded`` as inspectors will record them, ``unimproved`` (T, Q) expected without silent improvements.
    """

    recorded: Mapping[str, Totals] | None = None
    unimproved: Mapping[str, Array] | None = None


def tabulate_network(totals: Mapping[str, Totals], eligible: Eligible, more: RecordTotals) -> pl.DataFrame:
    """Table of totals: a row for each case, year and quantity, and for all cases where there are several."""
    groups = eligible.groups
    shocked = any(one.shock is not None for one in totals.values())
    parts = [
        _tabulate_totals(
            CASE, group.case, totals[group.case], [group], eligible.base, shocked=shocked
        ).with_columns(_lay_out_records(more, [group.case], shocked=shocked))
        for group in groups
    ]
    if len(groups) > 1:
        together = add_cases(list(totals.values()))
        table = _tabulate_totals(NETWORK, ALL, together, groups, eligible.base, shocked=shocked)
        parts.append(table.with_columns(_lay_out_records(more, list(totals), shocked=shocked)))
    return pl.concat(parts, how="vertical_relaxed")


def _lay_out_records(more: RecordTotals, cases: Sequence[str], *, shocked: bool) -> list[pl.Series]:
    """Columns of totals as inspectors will record them, and of those without silent improvements."""
    columns: dict[str, Array] = {}
    if more.recorded is not None:
        found = add_cases([more.recorded[case] for case in cases])
        (low, high), (predicted_low, predicted_high) = found.interval(), found.predict()
        columns |= {"recorded": found.expected, "recorded_low": low, "recorded_high": high}
        columns |= {"recorded_predicted_low": predicted_low, "recorded_predicted_high": predicted_high}
        if shocked:
            ends = zip(SHOCKED, found.predict_shocked(), strict=True)
            columns |= {f"recorded_{name}": end for name, end in ends}
    if more.unimproved is not None:
        each = [more.unimproved[case] for case in cases]
        states = max(one.shape[1] for one in each) - 1
        whole = [np.insert(one, [one.shape[1] - 1] * (states + 1 - one.shape[1]), 0.0, axis=1) for one in each]
        columns["unimproved"] = np.sum(whole, axis=0)
    return [blank(values.ravel()).alias(name) for name, values in columns.items()]


def _mark(groups: Sequence[EligibleGroup]) -> dict[str, bool]:
    """Marks of the models: certified and chosen, where all are."""
    return {name: all(getattr(group.model, name) for group in groups) for name in MARKS}


def _tabulate_totals(
    scope: str,
    case: str,
    totals: Totals,
    groups: Sequence[EligibleGroup],
    base: date | None,
    *,
    shocked: bool,
) -> pl.DataFrame:
    times, quantities = totals.expected.shape
    thresholds = {group.threshold for group in groups}
    states = [*range(1, totals.states + 1), thresholds.pop() if len(thresholds) == 1 else None]
    (low, high), (predicted_low, predicted_high) = totals.interval(), totals.predict()
    widest = max((group.ratings for group in groups), key=lambda one: len(one.labels))
    known = {} if widest.numbered else dict(enumerate(widest.labels, start=1))
    dates = [None if base is None else add_years(base, year) for year in range(times)]
    numbers = {
        "expected": totals.expected,
        "share": totals.expected / totals.members,
        "low": low,
        "high": high,
        "predicted_low": predicted_low,
        "predicted_high": predicted_high,
    } | (dict(zip(SHOCKED, totals.predict_shocked(), strict=True)) if shocked else {})
    year = np.repeat(np.arange(times), quantities)
    columns: dict[str, Any] = {
        "scope": pl.lit(scope),
        "case": pl.lit(case),
        "year": pl.Series(year),
        "date": pl.Series(dates, dtype=pl.Date)[year],
        "what": pl.Series([*[STATE] * totals.states, REACHED] * times),
        "state": pl.Series(states * times, dtype=pl.Int64),
        "label": pl.Series([known.get(state) for state in states] * times, dtype=pl.String),
        "members": pl.lit(totals.members),
        **{name: blank(values.ravel()) for name, values in numbers.items()},
        **{name: pl.lit(mark) for name, mark in _mark(groups).items()},
    }
    return pl.DataFrame().select(**columns)


LONGEST_TEXT = 32_767  # characters of a cell
WIDTHS = {"remark": 60, "what": 22, "case": 18, "bridge_id": 14}  # of columns, in characters
WIDTH, NOTE = 12, 110


def write_workbook(path: Path, tables: Mapping[str, pl.DataFrame], notes: Sequence[tuple[str, str]]) -> None:
    """Write a workbook with a sheet for each table, row by row in constant memory, and one for the notes."""
    book = new_workbook(path, constant_memory=True, tmpdir=str(path.parent))
    try:
        _fill_workbook(book, tables, notes)
        book.close()
    finally:  # xlsxwriter leaves the files of its rows open where writing fails
        for sheet in book.worksheets():
            with contextlib.suppress(OSError):
                sheet.row_data_fh.close()


def _fill_workbook(book: Any, tables: Mapping[str, pl.DataFrame], notes: Sequence[tuple[str, str]]) -> None:
    head = book.add_format({"bold": True, "bottom": 1})
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    for name, rows in tables.items():
        sheet = book.add_worksheet(name)
        for place, column in enumerate(rows.columns):
            sheet.write_string(0, place, column, head)
            sheet.set_column(place, place, WIDTHS.get(column, WIDTH))
        sheet.freeze_panes(1, 0)
        for line, values in enumerate(rows.iter_rows(), start=1):
            for place, value in enumerate(values):
                _write_cell(sheet, line, place, value, day)
    sheet = book.add_worksheet("notes")
    sheet.set_column(0, 0, WIDTHS["what"])
    sheet.set_column(1, 1, NOTE)
    for line, (subject, text) in enumerate(notes):
        sheet.write_string(line, 0, subject, head)
        sheet.write_string(line, 1, text[:LONGEST_TEXT], wrapped)


def _write_cell(sheet: Any, line: int, place: int, value: Any, day: Any) -> None:
    """Write a value by its type, never by what it looks like: a text is no formula, number or link."""
    if isinstance(value, bool):
        sheet.write_boolean(line, place, value)
    elif isinstance(value, str):
        sheet.write_string(line, place, value[:LONGEST_TEXT])
    elif isinstance(value, date):
        sheet.write_datetime(line, place, value, day)
    elif value is not None and math.isfinite(value):
        sheet.write_number(line, place, value)
