"""A whole inventory forecast: members in units of a fixed size, years streamed, totals added up on the way.

Members times years are never in memory: the years of a unit go to ``on_years`` and are forgotten. A unit holds the
same members however many threads there are, so that all numbers are the same to the last bit. Within a case they
go by their names, so that their order in the inventory does not matter.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.fleet.eligibility import Ask, Lot, Lots, find_outside, remark
from rekka.fleet.first_passage import find_arrivals
from rekka.fleet.network import (
    Tally,
    Totals,
    add_up,
    conclude,
    reach,
    tally_draws,
    tally_path,
    walk_sloped,
)
from rekka.fleet.tables import (
    QUANTILES,
    rank_members,
    tabulate_members,
    tabulate_network,
    tabulate_years,
)
from rekka.forecast.propagation import Walkers, walk
from rekka.forecast.uncertainty import DELTA, LOG, LOGIT, NONE
from rekka.model.probabilities import ROWS_A_THREAD

Array = NDArray[np.float64]

UNIT = ROWS_A_THREAD  # members forecast together, on one thread
FEW_MEMBERS = 2_000  # up to which each has intervals of its own without being asked for
FEW_SETS = 1_000_000  # by draws: members times draws
NEARLY = 1e-7  # when members count as arrived there: what is left out is far less than an interval tells
PATIENCE = 0.2  # seconds until it is looked whether somebody wants to stop


@dataclass(frozen=True, eq=False)
class Fleet:
    """The forecast of an inventory: its members by risk, its totals, and what to know of them.

    ``members`` has a row for each member, ``network`` one for each case, year and quantity; ``remarks`` counts the
    members of each case that a remark applies to.
    """

    lots: Lots
    ask: Ask
    members: pl.DataFrame
    network: pl.DataFrame
    remarks: dict[str, dict[str, int]]
    member_intervals: bool
    notes: tuple[str, ...]

    @property
    def certified(self) -> bool:
        """Whether all models are certified maxima."""
        return all(lot.model.certified for lot in self.lots.lots)


@dataclass(frozen=True, eq=False)
class _Unit:
    """What became of some members of a lot."""

    members: pl.DataFrame
    years: pl.DataFrame | None
    tally: Tally
    remarks: Counter[str]


def forecast_fleet(
    lots: Lots,
    ask: Ask,
    *,
    on_years: Callable[[pl.DataFrame], None] | None = None,
    on_progress: Callable[[float], None] = lambda _: None,
    units_at_once: int | None = None,
) -> Fleet:
    """Forecast all members of the lots.

    Parameters
    ----------
    lots, ask
        Who is forecast, and what is asked; see ``make_lots``.
    on_years : callable, optional
        Called with the rows of members and years, some thousand members at a time.
    on_progress : callable
        Called with the number of members, or the fraction of one, that is done.
    units_at_once : int, optional
        Units of ``UNIT`` members that are held in memory; two more than there are cores by default.

    """
    work = _Work(lots, ask, on_years is not None, on_progress)
    found: dict[str, list[_Unit]] = {lot.case: [] for lot in lots.lots}
    units = [(lot.case, unit) for lot in lots.lots for unit in _cut(lot)]
    with closing(work.carry_out([unit for _, unit in units], units_at_once)) as results:
        for (case, _), done in zip(units, results, strict=True):
            if on_years is not None and done.years is not None:
                on_years(done.years)
            found[case].append(replace(done, years=None))
    totals = {lot.case: _conclude(lot, found[lot.case]) for lot in lots.lots}
    together = add_up(list(totals.values())) if len(totals) > 1 else None
    scale = lots.members.scale
    labels = (
        scale.names
        if scale is not None
        else next((lot.model.labels for lot in lots.lots if lot.model.labels), None)
    )
    members = pl.concat([unit.members for some in found.values() for unit in some], how="vertical_relaxed")
    return Fleet(
        lots=lots,
        ask=ask,
        members=rank_members(members, ask.years),
        network=tabulate_network(totals, together, lots.lots, lots.base, labels),
        remarks={case: dict(sum((unit.remarks for unit in some), Counter())) for case, some in found.items()},
        member_intervals=work.member_intervals,
        notes=(*lots.notes, *work.notes),
    )


def _cut(lot: Lot) -> Iterator[Lot]:
    """Members of a lot, so many together."""
    for first in range(0, len(lot.rows), UNIT):
        yield replace(lot, rows=lot.rows[first : first + UNIT])


def _conclude(lot: Lot, units: Sequence[_Unit]) -> Totals:
    total = units[0].tally
    for unit in units[1:]:
        total = total + unit.tally
    return conclude(total, lot.spread, lot.fit.covariance_blocks)


class _Work:
    """What is done with every unit, and the threads that do it."""

    def __init__(self, lots: Lots, ask: Ask, with_years: bool, on_progress: Callable[[float], None]) -> None:
        self.lots, self.ask, self.with_years, self.on_progress = lots, ask, with_years, on_progress
        self.states = max(lot.fit.n_states for lot in lots.lots)
        self.stopped = Event()
        sets = max(len(lot.spread.coefficients) for lot in lots.lots)
        none = all(lot.spread.kind == NONE for lot in lots.lots)
        drawn = any(lot.spread.drawn for lot in lots.lots)
        few = lots.size * sets <= FEW_SETS if drawn else lots.size <= FEW_MEMBERS
        self.member_intervals = not none and (few if ask.member_intervals is None else ask.member_intervals)
        told = f"{lots.size:,} members are many: the intervals of each are left out, unless --member-intervals"
        self.notes = () if none or few or ask.member_intervals is not None else (told,)

    def carry_out(self, units: Sequence[Lot], at_once: int | None) -> Generator[_Unit, None, None]:
        """The units in their order, some at once."""
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
            finally:  # also where somebody stops it: what has begun ends soon, and nothing else begins
                self.stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def _go_on(self, members: float) -> None:
        if self.stopped.is_set():
            raise _StoppedError
        self.on_progress(members)

    def forecast(self, lot: Lot) -> _Unit:
        """All that is asked for of the members of a unit."""
        n, start, gap, threshold, years = len(lot.rows), lot.start, lot.gap, lot.threshold, self.ask.years
        walkers = Walkers(lot.fit, lot.x, lot.spread.coefficients[:1], lot.course)
        path, tally = self._walk(lot, walkers)
        p = np.stack(path, axis=1)
        reached, expected = reach(p, threshold), p @ np.arange(1.0, p.shape[2] + 1.0)
        outside, remarks = find_outside(lot, years), remark(lot, years)
        arrivals = find_arrivals(walkers, start, threshold - 1, QUANTILES, gap=gap)
        base = self.lots.base
        members = tabulate_members(lot, self.lots.members, base, reached, expected, arrivals).with_columns(
            **(self._find_intervals(lot, walkers) if self.member_intervals else {}),
            outside=np.asarray(outside.any(axis=1)),
            remark=pl.Series(remarks.texts, dtype=pl.String),
            certified=lot.model.certified,
            chosen=lot.model.chosen,
        )
        table = tabulate_years(lot, base, self.states, p, reached, expected, outside) if self.with_years else None
        self._go_on(n / self._parts(lot))
        return _Unit(members, table, tally, remarks.counts)

    def _parts(self, lot: Lot) -> int:
        """How often the members of a lot are walked through: progress is told in parts of them."""
        return 1 + (len(lot.spread.coefficients) - 1) * (lot.spread.drawn + self.member_intervals)

    def _walk(self, lot: Lot, walkers: Walkers) -> tuple[Sequence[Array], Tally]:
        """State probabilities (n, K) of each year, and their sums with what intervals need."""
        years, start, gap, threshold = self.ask.years, lot.start, lot.gap, lot.threshold
        if lot.spread.kind == DELTA:
            path, gradients = zip(*walk_sloped(walkers, start, years, gap), strict=True)
            return path, tally_path(path, start, threshold, np.stack(gradients))
        path = tuple(p[0] for p in walk(walkers, start, range(years + 1), gap))
        tally = tally_path(path, start, threshold, None)
        if not lot.spread.drawn:
            return path, tally
        drawn = tally_draws(
            replace(walkers, coefficients=lot.spread.coefficients[1:]), start, years, gap, threshold,
            at_once=max(1, UNIT // start.size),
            on_sets=lambda sets: self._go_on(start.size * sets / self._parts(lot)),
        )  # fmt: skip
        return path, replace(tally, drawn=drawn)

    def _find_intervals(self, lot: Lot, walkers: Walkers) -> dict[str, pl.Series]:
        """Of each member's probability at the end and mean years, by every set of coefficients."""
        sets, at_once, found = lot.spread.coefficients, max(1, UNIT // len(lot.rows)), []
        for first in range(0, len(sets), at_once):
            some = replace(walkers, coefficients=sets[first : first + at_once])
            found.append(
                find_arrivals(
                    some, lot.start, lot.threshold - 1, (), gap=lot.gap, horizon=self.ask.years, settled=NEARLY
                )
            )
            self._go_on(len(lot.rows) * (len(some.coefficients) - (first == 0)) / self._parts(lot))
        reached, mean = (np.concatenate([getattr(one, name) for one in found]) for name in ("reached", "mean"))
        ends = {
            f"reached_{self.ask.years}": lot.spread.interval(reached, LOGIT),
            "mean_years": lot.spread.interval(mean, LOG),
        }
        return {
            f"{name}_{side}": pl.Series(end).fill_nan(None)
            for name, pair in ends.items()
            for side, end in zip(("low", "high"), pair, strict=True)
        }


def _await(unit: Future[_Unit]) -> _Unit:
    """What became of a unit. A signal may be told to another thread, and is heard here only between two looks."""
    while not unit.done():
        wait([unit], timeout=PATIENCE)
    return unit.result()


class _StoppedError(Exception):
    """Somebody has stopped the work."""
