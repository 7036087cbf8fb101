"""Rows of a backtest: what was known at some moment, and the later visits that a forecast made then is scored on.

    trains    a transition that ends by the moment
    origin    the last visit of a member by the moment, from which a kept transition leads over it
    chain     the visits after it, as long as each transition starts at the visit at which the one before ended

An excluded pair, such as a repair or an upward move, ends a chain: what is forecast is decay alone. So only
members are scored that were not repaired and whose rating did not improve: a choice by what happened later,
which nobody could have made with the forecast. The later visits that are lost to it are counted, with the
reason. For a model of histories improvements by one rating are kept, and end no chain.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, count_of, missing_columns, no_such_case
from rekka.core.validation import read_day
from rekka.data.audit import PAIR
from rekka.data.audit import VISIT as VISIT_OUTCOME
from rekka.data.mapping import load_mapping
from rekka.data.panel import PAIRED, Panel
from rekka.data.tables import is_folder, open_table
from rekka.data.text import collect
from rekka.data.transitions import ReadingOptions, Transitions, pair_visits, read_transitions, take_one
from rekka.fleet.histories import HistoryOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]

DATE, VISIT = "date", "visit"
LAST_SHARE = 0.3  # of the records' years, kept for a test where no day is given
MEMBER = ("bridge_id", "case", "member")
VISIT_KEYS = (DATE, VISIT, "row", "column")  # what tells a visit from another, in columns _1 and _2


@dataclass(frozen=True, eq=False)
class PairedRecords:
    """Transitions, and the panel they were paired from, where there is one: it knows of excluded visits too."""

    found: Transitions
    panel: Panel | None = None


def split_end(begin: dt.date, end: dt.date) -> dt.date:
    """Last day of a year that leaves the last 30 % of the records' years for a test."""
    years = max(1, round(LAST_SHARE * (end - begin).days / 365.25))
    return dt.date(end.year - years, 12, 31)


def read_records(
    data: Any,
    options: ReadingOptions | None,
    histories: HistoryOptions,
    upward: str | None = None,
    until: Callable[[Panel], dt.date | None] | None = None,
) -> PairedRecords:
    """Read transitions, or pair a panel; files and dataframes are read as a panel where options are given.

    ``upward`` is the rule for improvements; for a model of histories those by one rating are kept. ``until`` gives
    the last day of the visits that decide which ratings are read as one.
    """
    upward = upward or ("keep" if histories.on else None)
    kept: dict[str, Any] = {} if upward is None else {"upward": upward}
    if isinstance(data, Transitions):
        return PairedRecords(data)
    if isinstance(data, Panel):
        return PairedRecords(pair_visits(data, **kept), data)
    if options is None:
        return PairedRecords(read_transitions(data, rules=kept) if kept else read_transitions(data))
    options = options if upward is None else histories.reader(options, upward)
    if not options.nbi and _holds_transitions(take_one(data), options):
        return PairedRecords(options.transitions(data))
    panel = options.panel(data, until)
    return PairedRecords(pair_visits(panel, **options.rules), panel)


def find_last_day(panel: Panel, cut: Cut | None) -> dt.date | None:
    """Last day that a model may know: that of the cut or, without one, the day that leaves years for a test.

    None for rounds of inspections and for a panel without dates.
    """
    if cut is not None:
        return cut.moment if isinstance(cut.moment, dt.date) else None
    usable = panel.visits.filter(pl.col("problem") == 0).select(
        first=pl.col("date").min(), last=pl.col("date").max()
    )
    begin, end = collect(usable, panel.name).row(0)
    return None if begin is None else split_end(begin, end)


def _holds_transitions(source: Any, options: ReadingOptions) -> bool:
    """Whether a table has transitions in it already, and no visits."""
    if is_folder(source):
        return False
    table = open_table(source, load_mapping(options.mapping, options.changes).table)
    return set(PAIRED) <= set(table.columns)


@dataclass(frozen=True)
class Cut:
    """Moment up to which the model may know anything: a day, or the number of a round of inspections.

    Transitions that begin before ``since`` do not train either.
    """

    moment: dt.date | int
    since: dt.date | None = None

    @property
    def kind(self) -> str:
        """Unit of the moment: date or visit."""
        return DATE if isinstance(self.moment, dt.date) else VISIT

    @property
    def option(self) -> str:
        """Option that gives the moment."""
        return "until" if self.kind == DATE else "until_visit"

    @property
    def period(self) -> str:
        """Unit that later visits are grouped by: year or visit."""
        return "year" if self.kind == DATE else VISIT

    @property
    def words(self) -> str:
        """The moment as text."""
        return str(self.moment) if self.kind == DATE else f"visit {self.moment}"

    @property
    def span(self) -> str:
        """Time span of the training rows as text."""
        return f"up to {self.words}" if self.since is None else f"from {self.since} up to {self.words}"

    @property
    def columns(self) -> tuple[str, str]:
        """Columns of a transition that hold the moments of its two visits."""
        return f"{self.kind}_1", f"{self.kind}_2"

    def periods(self, moments: pl.Series) -> NDArray[np.int64]:
        """Year of each date; the number of a visit as it is."""
        return (moments.dt.year() if self.kind == DATE else moments).cast(pl.Int64).to_numpy()


def read_cut(until: Any = None, until_visit: Any = None, since: Any = None) -> Cut:
    """Read the moment: a date, a year (its last day), or the number of a visit; ``since`` a date or a year."""
    if (until is None) == (until_visit is None):
        raise BadOption(
            "Say up to when the model may know anything, in one way: until, a date such as 2008-12-31 or a year, "
            "or until_visit, the number of a round of inspections."
        )
    first = None if since is None else read_day("since", since, "-01-01")
    if until_visit is not None:
        if isinstance(until_visit, bool) or not isinstance(until_visit, int | np.integer) or until_visit < 1:
            raise BadOption(f"until_visit is {until_visit!r}; a whole number of at least 1 is needed.")
        return Cut(int(until_visit), first)
    return Cut(read_day("until", until, "-12-31"), first)


def prepare(records: PairedRecords, cut: Cut, only: Sequence[str] | None) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Transitions of the wanted cases whose moments are known, with names as text; and notes."""
    frame = records.found.frame
    if frame.is_empty():
        raise InputError("No two visits make a transition. rekka check, on the same table, says why.")
    needed = ("bridge_id", "case", *PAIRED, *cut.columns, *(() if cut.since is None else (f"{DATE}_1",)))
    missing = [name for name in dict.fromkeys(needed) if name not in frame.columns]
    if missing:
        raise missing_columns(missing, frame.columns)
    _refuse_counts(records, cut)
    frame = frame.with_columns(
        *(pl.col(name).cast(pl.String) for name in ("bridge_id", "case")),
        *(pl.col(name).cast(pl.String).fill_null("") for name in ("member",) if name in frame.columns),
        *(pl.col(f"{DATE}_{end}").cast(pl.Date) for end in (1, 2) if f"{DATE}_{end}" in frame.columns),
        *(pl.col(f"{VISIT}_{end}").cast(pl.Int64) for end in (1, 2) if f"{VISIT}_{end}" in frame.columns),
    )
    if only is not None:
        frame = _choose(frame, only)
    dated = frame.drop_nulls(["bridge_id", "case", *cut.columns])
    lost = len(frame) - len(dated)
    told = f"{count_of(lost, 'transition')} without a bridge, a component or a {cut.kind} left out"
    return dated, (told,) if lost else ()


def _refuse_counts(records: PairedRecords, cut: Cut) -> None:
    """Refuse visit numbers that were only counted, or begin again after a restart: they are no moments."""
    if cut.kind != VISIT:
        return
    if records.panel is not None and VISIT not in records.panel.columns:
        raise BadOption(
            "until_visit needs rounds of inspections that the table numbers, and here visits are only counted, "
            "member by member: the third of one may be later than the fifth of another. Give until, a date."
        )
    frame = records.found.frame
    if "history" in frame.columns and (frame["history"] > 1).any():
        raise BadOption(
            "until_visit needs visits that are numbered through, and after a repair or an upward move a new "
            "history begins here, with numbers of its own. Give until, a date, or exclude such pairs."
        )


def _choose(frame: pl.DataFrame, only: Sequence[str]) -> pl.DataFrame:
    there = frame["case"].drop_nulls().unique().sort().to_list()
    for name in only:
        if name not in there:
            raise no_such_case(name, there)
    return frame.filter(pl.col("case").is_in(list(only)))


def take_training(frame: pl.DataFrame, cut: Cut) -> pl.DataFrame:
    """Transitions that end by the moment: what a model fitted then could have seen."""
    known = frame.filter(pl.col(cut.columns[1]) <= cut.moment)
    return known if cut.since is None else known.filter(pl.col(f"{DATE}_1") >= cut.since)


@dataclass(frozen=True, eq=False)
class Chains:
    """Later visits of members, the first of each member first, then the second, and so on.

    ``origin`` (m,) is the transition of each member that leads over the moment. For each visit (v,): ``member``
    counts through the origins, ``place`` is the transition that ends there, ``since`` and ``horizon`` are years
    from the origin to its start and its end, ``step`` counts from 0. ``torn`` chains end because it cannot be told
    how they go on.
    """

    origin: Index
    member: Index
    place: Index
    since: Array
    horizon: Array
    step: NDArray[np.int64]
    torn: int = 0

    def __len__(self) -> int:
        return self.place.size

    def keep(self, here: NDArray[np.bool_]) -> Chains:
        """Keep some of the visits (v,), and the members that have any of them."""
        left, member = np.unique(self.member[here], return_inverse=True)
        place, since, horizon = self.place[here], self.since[here], self.horizon[here]
        return Chains(self.origin[left], member, place, since, horizon, self.step[here], self.torn)


def link_chains(frame: pl.DataFrame, cut: Cut) -> Chains:
    """Link each member's later visits, from its last one by the moment on."""
    first, second = frame[cut.columns[0]], frame[cut.columns[1]]
    follower, doubtful = _follow(frame, (first < second).to_numpy())
    years = frame["interval_years"].cast(pl.Float64).to_numpy()
    origin = np.flatnonzero(((first <= cut.moment) & (second > cut.moment)).to_numpy())
    member, place, since, torn = np.arange(origin.size), origin, np.zeros(origin.size), 0
    found: list[tuple[NDArray[Any], ...]] = []
    while place.size or not found:
        horizon = since + years[place]
        found.append((member, place, since, horizon, np.full(place.size, len(found))))
        torn += int(doubtful[place].sum())
        goes_on = follower[place] >= 0
        member, place, since = member[goes_on], follower[place[goes_on]], horizon[goes_on]
    members, places, starts, ends, steps = (np.concatenate(some) for some in zip(*found, strict=True))
    return Chains(origin, members, places, starts, ends, steps, torn)


def _follow(frame: pl.DataFrame, advances: NDArray[np.bool_]) -> tuple[Index, NDArray[np.bool_]]:
    """Find for each transition the one that starts at the visit at which it ends, or -1; and where several might.

    Only transitions that advance are looked at, so that no chain can go in a circle.
    """
    names = [name for name in (*MEMBER, "history") if name in frame.columns]
    keys = visit_keys(frame)
    starts, ends = (
        frame.with_row_index("place").filter(advances).select("place", *names, *spell_visit(keys, end))
        for end in (1, 2)
    )
    matched = ends.join(starts, on=[*names, *keys, "state"], how="inner", suffix="_next")
    one = (pl.len().over("place") == 1) & (pl.len().over("place_next") == 1)
    sure, unsure = matched.filter(one), matched.filter(~one)
    follower, doubtful = np.full(len(frame), -1, np.intp), np.zeros(len(frame), bool)
    follower[sure["place"].to_numpy()] = sure["place_next"].to_numpy()
    doubtful[unsure["place"].to_numpy()] = True
    return follower, doubtful


def spell_visit(keys: Sequence[str], end: int) -> list[pl.Expr]:
    """Keys and state of the first or the second visit, without the number in their names."""
    state = pl.col(f"state_{end}").cast(pl.Float64, strict=False).alias("state")
    return [*(pl.col(f"{key}_{end}").alias(key) for key in keys), state]


def visit_keys(frame: pl.DataFrame) -> list[str]:
    """Columns that identify both visits of every transition."""
    return [
        key
        for key in VISIT_KEYS
        if all(
            name in frame.columns
            and frame[name].null_count() == 0
            and frame[name].dtype == frame[f"{key}_1"].dtype
            for name in (f"{key}_1", f"{key}_2")
        )
    ]


UNKNOWN = "no transition leads on"
LOSSES_SCHEMA: dict[str, Any] = {"case": pl.String, "reason": pl.String, "members": pl.Int64, "visits": pl.Int64}


def count_losses(records: PairedRecords, frame: pl.DataFrame, chains: Chains, cut: Cut) -> pl.DataFrame:
    """Count members and visits outside the chains, of members seen by the moment and after it, by case and reason.

    With a panel all visits are known. Without one only those of transitions are: visits after a member's last
    transition are not counted.
    """
    frame = frame if "member" in frame.columns else frame.with_columns(member=pl.lit(""))
    keys = [*MEMBER, *_identify_visits(frame)]
    linked = _ends(frame[chains.place], keys).with_columns(linked=pl.lit(value=True)).unique()
    visits = _list_visits(records, frame, keys, cut).join(linked, on=keys, how="left")
    known = pl.col("moment") <= cut.moment
    visits = visits.filter(known.any().over(MEMBER))
    lost = visits.filter(~known & pl.col("linked").is_null()).group_by(MEMBER).agg(visits=pl.len())
    ends = visits.filter(known | pl.col("linked")).sort("moment").group_by(MEMBER, maintain_order=True).last()
    told = lost.join(_add_reasons(ends, records, keys).select(*MEMBER, "reason"), on=MEMBER, how="left")
    counted = told.group_by("case", "reason").agg(pl.col("visits").sum(), members=pl.len())
    counted = counted.select(pl.col(name).cast(kind) for name, kind in LOSSES_SCHEMA.items())
    return counted.sort("case", "visits", "reason", descending=[False, True, False])


def _identify_visits(frame: pl.DataFrame) -> list[str]:
    """Columns that identify visits of a member; no number, which a restart begins again, where others do."""
    there = visit_keys(frame)
    return [key for key in there if key != VISIT] or there


def _ends(frame: pl.DataFrame, keys: list[str], end: int = 2) -> pl.DataFrame:
    """Visits at which transitions end, or start."""
    return frame.select(pl.col(key if key in MEMBER else f"{key}_{end}").alias(key) for key in keys)


def _list_visits(records: PairedRecords, frame: pl.DataFrame, keys: list[str], cut: Cut) -> pl.DataFrame:
    """All visits that pairing looked at, with their ``moment``."""
    panel, audit = records.panel, records.found.audit
    if panel is None or audit is None or audit.set_aside is None or cut.kind not in panel.columns:
        ends = [
            _ends(frame, keys, end).with_columns(moment=frame[column])
            for end, column in enumerate(cut.columns, start=1)
        ]
        return pl.concat(ends).unique()
    usable = panel.visits.filter(pl.col("problem") == 0).select(*keys, moment=pl.col(cut.kind))
    visits = collect(usable, panel.name).with_columns(pl.col(name).cast(pl.String) for name in MEMBER)
    visits = visits.filter(pl.col("case").is_in(frame["case"].unique().to_list()))
    lost = audit.set_aside.filter(pl.col("outcome") == VISIT_OUTCOME)
    return visits.join(lost.select(keys), on=keys, how="anti")


def _add_reasons(ends: pl.DataFrame, records: PairedRecords, keys: list[str]) -> pl.DataFrame:
    """Add the reason why the last visit of each chain was not paired with the next one, where it is known."""
    audit = records.found.audit
    if audit is None or audit.set_aside is None or not set(keys) <= set(audit.set_aside.columns):
        return ends.with_columns(reason=pl.lit(UNKNOWN))
    reasons = audit.set_aside.filter(pl.col("outcome") == PAIR).select(*keys, "reason")
    return ends.join(reasons, on=keys, how="left").with_columns(pl.col("reason").fill_null(UNKNOWN))
