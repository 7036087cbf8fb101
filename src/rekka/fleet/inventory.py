"""Forecast of a whole inventory: members in units of a fixed size, years streamed, totals added up.

Members times years are never in memory: the years of a unit go to ``on_years`` and are forgotten. A unit holds
the same members however many threads there are, so that all numbers are the same to the last bit. Within a case
members go by their names, so that their order in the inventory does not matter.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from threading import Event

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.fleet.eligibility import Eligible, EligibleGroup, InventoryOptions, find_outside, list_remarks
from rekka.fleet.network import (
    Totals,
    add_cases,
    at_or_beyond,
    propagate_gradients,
    total_draws,
    total_path,
)
from rekka.fleet.tables import (
    QUANTILES,
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
    totals = {
        group.case: reduce(add, (unit.totals for unit in units[group.case])).conclude(
            group.uncertainty, group.fit.covariance_blocks
        )
        for group in eligible.groups
    }
    together = add_cases(list(totals.values())) if len(totals) > 1 else None
    members = pl.concat([unit.members for some in units.values() for unit in some], how="vertical_relaxed")
    return Fleet(
        eligible=eligible,
        members=rank_members(members, eligible.options.years),
        network=tabulate_network(totals, together, eligible),
        remarks={case: dict(sum((unit.remarks for unit in some), Counter())) for case, some in units.items()},
        member_intervals=work.member_intervals,
        notes=(*eligible.notes, *work.notes),
    )


def _split(eligible: Eligible) -> Iterator[EligibleGroup]:
    """Units of members of one case."""
    for group in eligible.groups:
        for first in range(0, len(group.rows), UNIT):
            yield replace(group, rows=group.rows[first : first + UNIT])


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
        few = eligible.size * sets <= FEW_SETS if drawn else eligible.size <= FEW_MEMBERS
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
        path, totals = self._propagate(group)
        p = np.stack(path, axis=1)
        reached, expected = at_or_beyond(p, group.threshold), p @ np.arange(1.0, p.shape[2] + 1.0)
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
        )
        years = tabulate_years(group, self.eligible, p, reached, expected, outside) if self.with_years else None
        self._report(len(group.rows) / self._count_passes(group))
        return _Unit(group.case, members, years, totals, remarks.counts)

    def _count_passes(self, group: EligibleGroup) -> int:
        """Number of sets of coefficients that members are propagated with: progress counts in parts of them."""
        return 1 + (len(group.uncertainty.coefficients) - 1) * (group.uncertainty.drawn + self.member_intervals)

    def _propagate(self, group: EligibleGroup) -> tuple[Sequence[Array], Totals]:
        """State probabilities (n, K) of each year, and their totals with what intervals need."""
        years, start, gap, propagator = self.years, group.start, group.gap, group.propagator
        if group.uncertainty.kind == DELTA:
            path, gradients = zip(*propagate_gradients(propagator, start, years, gap), strict=True)
            return path, total_path(path, start, group.threshold, np.stack(gradients))
        path = tuple(p[0] for p in propagate(propagator, start, range(years + 1), gap))
        totals = total_path(path, start, group.threshold, None)
        if not group.uncertainty.drawn:
            return path, totals
        drawn = total_draws(
            replace(propagator, coefficients=group.uncertainty.coefficients[1:]),
            start,
            years,
            gap,
            group.threshold,
            at_once=max(1, UNIT // start.size),
            on_sets=lambda sets: self._report(start.size * sets / self._count_passes(group)),
        )
        return path, replace(totals, drawn=drawn)

    def _find_intervals(self, group: EligibleGroup) -> dict[str, pl.Series]:
        """Intervals of each member's probability at the end and mean years, from every set of coefficients."""
        sets, at_once, found = group.uncertainty.coefficients, max(1, UNIT // len(group.rows)), []
        estimate = group.propagator
        for first in range(0, len(sets), at_once):
            some = replace(estimate, coefficients=sets[first : first + at_once])
            found.append(
                find_first_passage(
                    some, group.start, group.threshold - 1, (), group.gap, horizon=self.years, settled=NEARLY
                )
            )
            done = len(group.rows) * (len(some.coefficients) - (first == 0))
            self._report(done / self._count_passes(group))
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
