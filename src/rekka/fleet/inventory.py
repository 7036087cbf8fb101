"""Forecast of a whole inventory: members in units of a fixed size, years streamed, totals added up.

Members times years are never in memory: the years of a unit go to ``on_years`` and are forgotten. A unit holds
the same members however many threads there are, so that all numbers are the same to the last bit. Within a case
members go by their names, so that their order in the inventory does not matter.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from operator import add, itemgetter
from threading import Event

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.fleet.details import split_details, tabulate_details
from rekka.fleet.eligibility import Eligible, EligibleGroup, InventoryOptions, find_outside, list_remarks
from rekka.fleet.network import (
    Totals,
    add_threshold,
    at_or_beyond,
    find_shock,
    find_slopes,
    propagate_gradients,
    total_draws,
    total_lanes,
    total_path,
)
from rekka.fleet.tables import (
    QUANTILES,
    RecordTotals,
    find_near,
    rank_members,
    tabulate_members,
    tabulate_network,
    tabulate_years,
)
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.propagation import propagate
from rekka.forecast.uncertainty import DELTA, LOG, LOGIT, NONE
from rekka.model.probabilities import ROWS_A_THREAD

Array = NDArray[np.float64]

UNIT = ROWS_A_THREAD  # members forecast together, on one thread
FEW_MEMBERS = 2_000  # up to which each has intervals of its own by default
FEW_SETS = 1_000_000  # by draws: members times draws
FEW_LANES = 4_000  # members times nodes of the frailty, up to which each has intervals of its own by default
SETTLED = 1e-10  # probability of not having reached the threshold, below which a member is followed no further
NEARLY = 1e-7  # the same for intervals: what is left out is far less than their width
PATIENCE = 0.2  # seconds between two looks at whether the work was stopped


@dataclass(frozen=True, eq=False)
class Fleet:
    """Forecast of an inventory.

    ``members`` has a row for each member, by risk, ``network`` one for each case, year and quantity; ``remarks``
    counts the members of each case that a remark applies to.
    """

    eligible: Eligible
    members: pl.DataFrame
    network: pl.DataFrame
    remarks: dict[str, dict[str, int]]
    member_intervals: bool
    notes: tuple[str, ...]
    details: pl.DataFrame | None = None  # of each member, where the inventory's visits are known
    sums: Mapping[str, Totals] = field(default_factory=dict)  # of each case, with what their intervals come from

    @property
    def options(self) -> InventoryOptions:
        """Options of the forecast."""
        return self.eligible.options

    @property
    def certified(self) -> bool:
        """Whether all models are certified maxima."""
        return all(group.model.certified for group in self.eligible.groups)


@dataclass(frozen=True, eq=False)
class _Unit:
    """Forecast of some members of a case."""

    case: str
    members: pl.DataFrame
    years: pl.DataFrame | None
    totals: Totals
    remarks: Counter[str]
    recorded: Totals  # the same as inspectors will record it
    unimproved: Array  # expected numbers (T, Q) without silent improvements


def forecast_fleet(
    eligible: Eligible,
    *,
    on_years: Callable[[pl.DataFrame], None] | None = None,
    on_progress: Callable[[float], None] = lambda _: None,
    units_at_once: int | None = None,
) -> Fleet:
    """Forecast all eligible members.

    Parameters
    ----------
    eligible
        Members, models and options; see ``find_eligible``.
    on_years : callable, optional
        Called with the rows of members and years, some thousand members at a time.
    on_progress : callable
        Called with the number of members, or the fraction of one, that is done.
    units_at_once : int, optional
        Units of ``UNIT`` members that are held in memory; two more than there are cores by default.

    """
    work = _Work(eligible, on_years is not None, on_progress)
    units: dict[str, list[_Unit]] = {group.case: [] for group in eligible.groups}
    with closing(work.run(_split(eligible), units_at_once)) as results:
        for unit in results:
            if on_years is not None and unit.years is not None:
                on_years(unit.years)
            units[unit.case].append(replace(unit, years=None))
    sums = {case: reduce(add, [unit.totals for unit in some]) for case, some in units.items()}
    totals = {group.case: _conclude(group, sums[group.case]) for group in eligible.groups}
    more = _tabulate_records(eligible, units)
    members = pl.concat([unit.members for some in units.values() for unit in some], how="diagonal_relaxed")
    horizon = eligible.options.years
    ranked, details = split_details(rank_members(members, horizon), *find_near(horizon))
    return Fleet(
        eligible=eligible,
        members=ranked,
        network=tabulate_network(totals, eligible, more),
        remarks={case: dict(sum((unit.remarks for unit in some), Counter())) for case, some in units.items()},
        member_intervals=work.member_intervals,
        notes=(*eligible.notes, *work.notes, *_compare_records(eligible, totals, more)),
        details=details,
        sums=sums,
    )


def _conclude(group: EligibleGroup, whole: Totals) -> Totals:
    """Totals of a case with their intervals."""
    covariance = group.fit.covariance_blocks
    if group.fit.records is not None and whole.gradient is not None:
        directions = whole.gradient.shape[-1]
        covariance = np.eye(directions).reshape(1, directions, 1, directions)
    return whole.conclude(group.uncertainty, covariance)


def _tabulate_records(eligible: Eligible, units: Mapping[str, Sequence[_Unit]]) -> RecordTotals:
    """Totals as inspectors will record them, and without silent improvements, where any model has such."""
    groups = eligible.groups
    recorded, unimproved = None, None
    if any(group.propagator.errs for group in groups):
        recorded = {
            one.case: _conclude(one, reduce(add, [unit.recorded for unit in units[one.case]])) for one in groups
        }
    if any(group.improves for group in groups):
        unimproved = {one.case: np.sum([unit.unimproved for unit in units[one.case]], axis=0) for one in groups}
    return RecordTotals(recorded, unimproved)


def _compare_records(eligible: Eligible, totals: Mapping[str, Totals], more: RecordTotals) -> list[str]:
    """Notes that compare condition, records and what silent improvements change, at the end of the forecast."""
    notes, years = [], eligible.options.years
    for group in eligible.groups:
        said = []
        if more.recorded is not None and group.propagator.errs:
            said.append(f"inspectors are expected to record {more.recorded[group.case].expected[-1, -1]:,.0f} so")
        if more.unimproved is not None and group.improves:
            said.append(f"without small repairs there would be {more.unimproved[group.case][-1, -1]:,.0f}")
        if said:
            there = f"{totals[group.case].expected[-1, -1]:,.0f} of {totals[group.case].members:,} members"
            rating = group.ratings.phrase_or_worse(group.threshold)
            notes.append(f"{group.case}: after {years} years {there} are expected in {rating}; {'; '.join(said)}")
    return notes


def _split(eligible: Eligible) -> Iterator[EligibleGroup]:
    """Units of members of one case."""
    for group in eligible.groups:
        for first, last in pairwise(_find_edges(len(group.rows), group.every_set.sharing)):
            yield replace(group, rows=group.rows[first:last])


def _find_edges(members: int, bridge: NDArray[np.int64] | None) -> list[int]:
    """Places at which units of about UNIT members begin, and the end.

    Members that share a frailty stay together.
    """
    edges = np.arange(0, members, UNIT)
    if bridge is not None:
        ends = np.append(np.flatnonzero(np.diff(bridge)) + 1, members)
        if ends.size > np.unique(bridge).size:  # those of a group are not next to each other
            return [0, members]
        edges = np.unique(np.append(0, ends[np.searchsorted(ends, edges[1:])]))
        edges = edges[edges < members]
    return [*edges.tolist(), members]


class _Work:
    """Forecast of every unit, and the threads that make it."""

    def __init__(self, eligible: Eligible, with_years: bool, on_progress: Callable[[float], None]) -> None:
        self.eligible, self.with_years, self.on_progress = eligible, with_years, on_progress
        self.years, asked = eligible.options.years, eligible.options.member_intervals
        self.stopped = Event()
        kinds = [group.uncertainty for group in eligible.groups]
        sets = max(len(one.coefficients) for one in kinds)
        none = all(one.kind == NONE for one in kinds)
        drawn = any(one.drawn for one in kinds)
        lanes = sum(len(group.rows) * group.every_set.lanes for group in eligible.groups)
        few = lanes * sets <= FEW_SETS if drawn else eligible.size <= FEW_MEMBERS and lanes <= FEW_LANES
        self.member_intervals = not none and (few if asked is None else asked)
        many = f"{eligible.size:,} members are many: the intervals of each are left out, unless --member-intervals"
        self.notes = () if none or few or asked is not None else (many,)

    def run(self, units: Iterator[EligibleGroup], at_once: int | None) -> Generator[_Unit, None, None]:
        """Forecast the units in their order, some at once."""
        threads = os.cpu_count() or 1
        ahead: deque[Future[_Unit]] = deque()
        with ThreadPoolExecutor(threads, thread_name_prefix="rekka-fleet") as pool:
            try:
                for unit in units:
                    ahead.append(pool.submit(self.forecast, unit))
                    if len(ahead) >= (at_once or threads + 2):
                        yield _await(ahead.popleft())
                while ahead:
                    yield _await(ahead.popleft())
            finally:  # also where the work is stopped: what has begun ends soon, and nothing else begins
                self.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _report(self, members: float) -> None:
        if self.stopped.is_set():
            raise _StoppedError
        self.on_progress(members)

    def forecast(self, group: EligibleGroup) -> _Unit:
        """Forecast the members of a unit."""
        path, totals, recorded = self._propagate(group)
        if group.shocks is not None and group.shocks.sigma is not None:
            tempos = group.shocks.tempos
            half = find_shock(group.propagator, group.start, self.years, group.gap, group.threshold, tempos)
            own, seen = half * group.shocks.stretch(self.eligible.options.level)
            totals, recorded = replace(totals, shock=own), replace(recorded, shock=seen)
        p = np.stack(path, axis=1)
        reached, expected = at_or_beyond(p, group.threshold), p @ np.arange(1.0, p.shape[2] + 1.0)
        without = np.stack(self._go_on_without(group), axis=1) if group.improves else p
        more = self._list_records(group, p, without)
        outside, remarks = find_outside(group, self.years), list_remarks(group, self.years)
        passage = find_first_passage(
            group.propagator, group.start, group.threshold - 1, QUANTILES, group.gap, settled=SETTLED
        )
        members = tabulate_members(group, self.eligible, reached, expected, passage).with_columns(
            **(self._find_intervals(group) if self.member_intervals else {}),
            outside=np.asarray(outside.any(axis=1)),
            remark=pl.Series(remarks.texts, dtype=pl.String),
            certified=group.model.certified,
            chosen=group.model.chosen,
            **more,
        )
        visits = self.eligible.members.found
        if visits is not None:
            members = members.hstack(tabulate_details(group, visits, p, outside, remarks))
        years = tabulate_years(group, self.eligible, p, reached, expected, outside) if self.with_years else None
        self._report(len(group.rows) / self._count_passes(group))
        unimproved = add_threshold(without, group.threshold).sum(axis=0)
        return _Unit(group.case, members, years, totals, remarks.counts, recorded, unimproved)

    def _go_on_without(self, group: EligibleGroup) -> list[Array]:
        """State probabilities (n, K) of each year without silent improvements."""
        return [p[0] for p in propagate(group.unimproved, group.start, range(self.years + 1), group.gap)]

    def _list_records(self, group: EligibleGroup, p: Array, without: Array) -> dict[str, Array]:
        """Columns of each member: recorded at the threshold at the end, reached without silent improvements.

        Where one model has errors, or improvements, all members have the column.
        """
        columns = {}
        if any(one.propagator.errs for one in self.eligible.groups):
            last = group.propagator.record(p[None, :, -1])[0]
            columns[f"recorded_{self.years}"] = at_or_beyond(last, group.threshold)
        if any(one.improves for one in self.eligible.groups):
            columns[f"unimproved_{self.years}"] = at_or_beyond(without[:, -1], group.threshold)
        return columns

    def _count_passes(self, group: EligibleGroup) -> int:
        """Number of sets of coefficients that members are propagated with: progress counts in parts of them."""
        for_totals = group.uncertainty.drawn or (group.fit.records is not None and group.uncertainty.kind == DELTA)
        return 1 + (len(group.uncertainty.coefficients) - 1) * (for_totals + self.member_intervals)

    def _propagate(self, group: EligibleGroup) -> tuple[Sequence[Array], Totals, Totals]:
        """State probabilities (n, K) of each year, and totals, true and recorded, with what intervals need."""
        years, start, gap, propagator = self.years, group.start, group.gap, group.propagator
        if group.uncertainty.kind == DELTA and group.fit.records is None:
            path, gradients = zip(*propagate_gradients(propagator, start, years, gap), strict=True)
            totals = total_path(path, start, group.threshold, np.stack(gradients))
            return path, totals, totals
        lanes = list(propagate(propagator, start, range(years + 1), gap, by_lane=True))
        path = tuple(propagator.gather(p)[0] for p in lanes)
        if group.fit.records is None:
            totals = recorded = total_path(path, start, group.threshold, None)
        else:
            totals = recorded = total_lanes(propagator, lanes, group.threshold)
        if propagator.errs:
            recorded = total_lanes(propagator, [propagator.record(p) for p in lanes], group.threshold)
        if group.uncertainty.kind == NONE:
            return path, totals, recorded
        drawn = total_draws(
            group.every_set.take_sets(slice(1, None)),
            start,
            years,
            gap,
            group.threshold,
            at_once=max(1, UNIT // (start.size * propagator.lanes)),
            on_sets=lambda sets: self._report(start.size * sets / self._count_passes(group)),
            recorded=propagator.errs,
        )
        quantities = totals.expected.shape[1]
        parts = [drawn.each(itemgetter((..., slice(at, at + quantities)))) for at in (0, quantities)]
        if not propagator.errs:
            parts[1] = parts[0]
        if group.uncertainty.drawn:
            return path, replace(totals, drawn=parts[0]), replace(recorded, drawn=parts[1])
        slopes = [find_slopes(part) for part in parts]
        return path, replace(totals, gradient=slopes[0]), replace(recorded, gradient=slopes[1])

    def _find_intervals(self, group: EligibleGroup) -> dict[str, pl.Series]:
        """Intervals of each member's probability at the end and mean years, from every set of coefficients."""
        every, found = group.every_set, []
        at_once = max(1, UNIT // (len(group.rows) * every.lanes))
        for first in range(0, len(every.coefficients), at_once):
            some = every.take_sets(slice(first, first + at_once))
            found.append(
                find_first_passage(
                    some, group.start, group.threshold - 1, (), group.gap, horizon=self.years, settled=NEARLY
                )
            )
            done = len(group.rows) * (len(some.coefficients) - (first == 0))
            self._report(done / self._count_passes(group))
            if group.improves:  # who has been there may be better again
                *_, last = propagate(some, group.start, range(self.years + 1), group.gap)
                found[-1] = replace(found[-1], reached=at_or_beyond(last, group.threshold))
        reached, mean = (np.concatenate([getattr(one, name) for one in found]) for name in ("reached", "mean"))
        ends = {
            f"reached_{self.years}": group.uncertainty.interval(reached, LOGIT),
            "mean_years": group.uncertainty.interval(mean, LOG),
        }
        return {
            f"{name}_{side}": pl.Series(end).fill_nan(None)
            for name, pair in ends.items()
            for side, end in zip(("low", "high"), pair, strict=True)
        }


def _await(unit: Future[_Unit]) -> _Unit:
    """Wait for a unit. A signal may come to another thread, and is heard here only between two looks."""
    while not unit.done():
        wait([unit], timeout=PATIENCE)
    return unit.result()


class _StoppedError(Exception):
    """Raised in a thread whose work was stopped."""
