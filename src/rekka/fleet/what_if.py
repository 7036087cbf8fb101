"""Effect of repairs in year 0: totals with and without, their difference, years of each member.

A repaired member starts in year 0 in the rating that it has after the repair. Its age, and the frailty of its
bridge, are those that it has in year 0, unless others are given. In a model of histories its true state is that
rating for certain and a new history begins; what the visits of its bridge said of the frailty stays.

The whole network is not propagated again. Of a case

    with repairs = all - touched members without repairs + the same members with repairs

where the touched members are the repaired ones, or all that share a frailty with one: mean, variance and third
central moment of a count add up over members, or over bridges. Every term is taken at the same sets of
coefficients, so that both totals and their difference have the same draws.

    difference of expected numbers = sum over repaired members of (probability after - probability before)

has the uncertainty of the parameters alone. The difference of the numbers themselves is A - B of ``swap_members``:
its chance is that of the repaired members' own futures, both without and with the repair. Members that are not
repaired cancel.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from rekka.core.columns import Shown, Years, schema_of
from rekka.core.language import ENGLISH, Words, load_words, say
from rekka.fleet.eligibility import Eligible, EligibleGroup
from rekka.fleet.inventory import FEW_LANES, FEW_MEMBERS, FEW_SETS, NEARLY, SETTLED, UNIT, Fleet
from rekka.fleet.network import (
    CountMoments,
    Swap,
    Totals,
    add_cases,
    at_or_beyond,
    find_bounds,
    find_slopes,
    swap_members,
)
from rekka.fleet.selection import RepairedMembers, RepairPlan, renew_rows
from rekka.fleet.tables import (
    NAMES,
    NETWORK,
    QUANTILES,
    REACHED,
    blank,
    choose_years,
    lay_out_passage,
)
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.history_propagation import Past, Renewal, make_propagator
from rekka.forecast.propagation import Propagator, States, propagate
from rekka.forecast.uncertainty import DELTA, LOG, NONE, root_of

Array = NDArray[np.float64]

LATER = 10  # years after which the headline looks, or the end of a shorter forecast
REPAIRED, DIFFERENCE = "repaired", "difference"
ENDS = ("low", "high", "predicted_low", "predicted_high")

Members = Annotated[float | None, Shown("members")]


class WhatIfTotal(BaseModel):
    """Row of whatif.csv: members in a rating, or in it or worse, without repairs and with them."""

    model_config = ConfigDict(frozen=True)

    scope: str
    case: str
    year: int
    date: datetime.date | None
    what: str
    state: int | None
    label: str | None
    members: int
    expected: Members
    low: Members
    high: Members
    predicted_low: Members
    predicted_high: Members
    repaired: Members
    repaired_low: Members
    repaired_high: Members
    repaired_predicted_low: Members
    repaired_predicted_high: Members
    difference: Members
    difference_low: Members
    difference_high: Members
    difference_predicted_low: Members
    difference_predicted_high: Members
    certified: bool
    chosen: bool


class RepairedMember(BaseModel):
    """Main columns of a row of whatif_members.csv, which has more years."""

    model_config = ConfigDict(frozen=True)

    bridge_id: str
    case: str
    member: str | None = None
    state: int
    label: str | None = None
    repaired_state: int
    repaired_label: str | None = None
    mean_years: Years = None
    repaired_mean_years: Years = None
    median_years: Years = None
    repaired_median_years: Years = None


@dataclass(frozen=True, eq=False)
class WhatIf:
    """Effect of repairs: totals with and without them by year, and years of each repaired member.

    ``network`` has the rows of the forecast's network with further columns: ``repaired``, the expected number with
    the repairs, and ``difference``, that number minus ``expected``; each with ``_low`` and ``_high`` (parameters)
    and ``_predicted_low`` and ``_predicted_high`` (the numbers themselves). ``members`` has a row for each
    repaired member, in the order of the table of repairs: years and probabilities without the repair and, under
    names with ``repaired_`` before them, with it.

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1)
    >>> members = rows.unique("bridge_id", maintain_order=True)
    >>> found = rekka.forecast_inventory(rekka.fit_components(rows), members, years=10, repaired=5)
    >>> found.what_if.members.height, found.what_if.avoided(10)["avoided"] > 0
    (5, True)

    """

    members: pl.DataFrame
    network: pl.DataFrame
    eligible: Eligible
    notes: tuple[str, ...] = ()

    @property
    def years(self) -> list[int]:
        """Years shown to people."""
        return choose_years(self.eligible.options.years)

    @property
    def total(self) -> pl.DataFrame:
        """Rows of ``network`` on members at the threshold or worse, of all components together, by year."""
        reached = self.network.filter(pl.col("what") == REACHED)
        together = reached.filter(pl.col("scope") == NETWORK)
        return together if len(together) else reached

    def avoided(self, year: int) -> dict[str, float | None]:
        """Members at the threshold or worse that the repairs avoid after so many years, with both intervals."""
        row = self.total.row(year, named=True)
        names = {"": "", "_low": "_high", "_high": "_low"}
        names |= {f"_predicted{end}": f"_predicted{other}" for end, other in names.items() if end}
        values = {f"avoided{end}": row[f"{DIFFERENCE}{other}"] for end, other in names.items()}
        return {name: None if value is None else 0.0 - value for name, value in values.items()}

    def name_threshold(self, words: Words) -> str:
        """Words such as "rated d or worse"; where components differ in it, "at the threshold or worse"."""
        worse = {group.ratings.rated(group.threshold, words) for group in self.eligible.groups}
        key = "terminal.what_if.rated" if len(worse) == 1 else "terminal.what_if.threshold"
        return words(key, rating=worse.pop())

    def headline(self, lang: str = ENGLISH) -> str:
        """Answer in a sentence: how many members at the threshold or worse the repairs avoid after ten years."""
        words, options = load_words(lang), self.eligible.options
        year = min(LATER, options.years)
        row, avoided = self.total.row(year, named=True), self.avoided(year)
        number, ends = avoided["avoided"] or 0.0, (avoided["avoided_low"], avoided["avoided_high"])
        kind = "none" if abs(number) < LEAST else "fewer" if number > 0 else "more"
        low, high = sorted(0.0 if end is None else end if number > 0 else -end for end in ends)
        if None in ends and kind != "none":
            kind += "_alone"
        when = say("terminal.what_if.after", n=year)
        if self.eligible.base is not None:
            when = say("terminal.what_if.in", year=row["date"].year)
        level = f"{options.level:.0%}"
        interval = words("terminal.what_if.interval", low=f"{low:,.1f}", high=f"{high:,.1f}", level=level)
        return words.format(
            say(
                f"terminal.what_if.{kind}",
                repaired=say("terminal.what_if.repairing", n=len(self.members)),
                threshold=self.name_threshold(words),
                when=when,
                without=f"{row['expected']:,.0f}",
                repairs=f"{row[REPAIRED]:,.0f}",
                number=f"{abs(number):,.1f}",
                interval=interval,
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the rows of both tables, and the notes."""
        return {
            "members": self.members.with_columns(pl.selectors.temporal().cast(pl.String)).to_dicts(),
            "network": self.network.with_columns(pl.selectors.temporal().cast(pl.String)).to_dicts(),
            "notes": list(self.notes),
        }


LEAST = 0.05  # members: a smaller difference is shown as none


def repair_members(fleet: Fleet, repairs: RepairPlan) -> WhatIf:
    """Compute what the repairs change in a forecast; see the module for the formulas."""
    groups = {group.case: group for group in fleet.eligible.groups}
    found = {case: _repair_case(groups[case], some, fleet) for case, some in repairs.by_case.items()}
    tables = [one.members for one in found.values()]
    members = pl.concat(tables, how="diagonal_relaxed") if tables else _list_nobody()
    return WhatIf(
        members=members.sort(ORDER, maintain_order=True).drop(ORDER),
        network=_tabulate(fleet, found),
        eligible=fleet.eligible,
        notes=repairs.notes,
    )


ORDER = "row of the table of repairs"


def _list_nobody() -> pl.DataFrame:
    """Table of repaired members where nobody is."""
    known = schema_of(RepairedMember)
    return pl.DataFrame(schema={**known, ORDER: pl.Int64})


@dataclass(frozen=True, eq=False)
class _Case:
    """Totals of a component with repairs, the difference plus the number of repaired members, and these."""

    totals: Totals
    change: Totals
    repaired: int
    members: pl.DataFrame


@dataclass(frozen=True, eq=False)
class _Start:
    """Touched members (n,) of a component as they are, then the repaired ones (r,) after their repair."""

    group: EligibleGroup
    propagator: Propagator  # at every set of coefficients
    start: States
    gap: Array | None
    old: NDArray[np.intp]  # (r,): places of the repaired members among the touched ones

    @property
    def new(self) -> NDArray[np.intp]:
        """Places of the repaired members after their repair."""
        return np.arange(self.start.size - self.old.size, self.start.size)

    @property
    def at_once(self) -> int:
        """Sets of coefficients that are propagated at once."""
        return max(1, UNIT // (self.start.size * self.propagator.lanes))


def _repair_case(group: EligibleGroup, repaired: RepairedMembers, fleet: Fleet) -> _Case:
    years, threshold = fleet.options.years, group.threshold
    begin = _start_members(group, repaired)
    swap = swap_members(
        begin.propagator, begin.start, years, begin.gap, threshold, begin.old, at_once=begin.at_once
    )
    before, after, change = _find_totals(begin, swap)
    whole = replace(fleet.sums[group.case], gradient=_turn_gradient(group, fleet.sums[group.case].gradient))
    members = _tabulate_members(begin, repaired, fleet)
    totals = (_conclude(group, whole.swap(before, after)), _conclude(group, change))
    return _Case(*totals, begin.old.size, members)


def _start_members(group: EligibleGroup, repaired: RepairedMembers) -> _Start:
    sharing = group.every_set.sharing
    touched = repaired.places
    if sharing is not None:
        touched = np.flatnonzero(np.isin(sharing, sharing[repaired.places]))
    old = np.searchsorted(touched, repaired.places)
    some = replace(group, rows=group.rows[touched.tolist()])
    new = replace(group, rows=renew_rows(group, repaired))
    gap = None if some.gap is None else np.concatenate([some.gap, np.zeros(old.size)])
    past, renewal = some.past, None
    if past is not None:
        past = past.take(np.concatenate([np.arange(touched.size), old]))
        if past.visited is not None and gap is not None:  # the day of year 0, for the trend
            visited = past.visited.copy()
            visited[touched.size :] += gap[old]
            past = Past(past.seen, past.history, visited)
        kept = np.full(touched.size, np.nan)
        states = np.concatenate([np.full(touched.size, -1), repaired.state])
        renewal = Renewal(states, np.concatenate([kept, repaired.frailty]))
    x = np.concatenate([some.x, new.x])
    propagator = make_propagator(group.fit, x, group.uncertainty, group.ageing, past, renewal=renewal)
    return _Start(some, propagator, np.concatenate([some.start, new.start]), gap, old)


def _find_totals(begin: _Start, swap: Swap) -> tuple[Totals, Totals, Totals]:
    """Totals of the touched members before and after, and the change, with what their intervals come from."""
    group, r, touched = begin.group, begin.old.size, begin.start.size - begin.old.size
    q = swap.before.mean.shape[-1]
    if group.fit.records is None:
        K, goal = group.fit.n_states, group.threshold
        old, new = begin.start[begin.old], begin.start[begin.new]
        least, most = find_bounds(begin.start[:touched], K, goal)
        (old_least, old_most), (new_least, new_most) = (find_bounds(each, K, goal) for each in (old, new))
        ends = [
            (least, most),
            (least - old_least + new_least, most - old_most + new_most),
            (new_least + r - old_most, new_most + r - old_least),
        ]
    else:
        ends = [(np.zeros(q), np.full(q, float(n))) for n in (touched, touched, 2 * r)]
    members = (touched, touched, 2 * r)
    made = [_total(group, *one) for one in zip(swap, members, ends, strict=True)]
    return made[0], made[1], made[2]


def _total(group: EligibleGroup, sums: CountMoments, members: int, ends: tuple[Array, Array]) -> Totals:
    middle, rest = sums.each(lambda values: values[:1]), sums.each(lambda values: values[1:])
    found = Totals(members, *ends, middle)
    if group.uncertainty.kind == NONE:
        return found
    if group.uncertainty.kind == DELTA:
        return replace(found, gradient=find_slopes(rest))
    return replace(found, drawn=rest)


def _turn_gradient(group: EligibleGroup, gradient: Array | None) -> Array | None:
    """Gradient (T, Q, 1, r) along the directions of the covariance, of one (T, Q, K-1, p+1) in coefficients."""
    if gradient is None or group.fit.records is not None:
        return gradient
    root = root_of(group.fit.inference.covariance)
    along = gradient.reshape(*gradient.shape[:2], -1) @ root
    return np.asarray(along[:, :, None, :])


def _conclude(group: EligibleGroup, totals: Totals) -> Totals:
    """Totals with their intervals, from gradients along the directions of the covariance."""
    directions = 1 if totals.gradient is None else totals.gradient.shape[-1]
    return totals.conclude(group.uncertainty, np.eye(directions).reshape(1, directions, 1, directions))


def _tabulate_members(begin: _Start, repaired: RepairedMembers, fleet: Fleet) -> pl.DataFrame:
    """Table of the repaired members of a component: without the repair, and with it."""
    group, horizon = begin.group, fleet.options.years
    rows = group.rows[begin.old.tolist()]
    middle = begin.propagator.take_sets(slice(0, 1))
    path = np.stack([p[0] for p in propagate(middle, begin.start, range(horizon + 1), begin.gap)], axis=1)
    reached = at_or_beyond(path, group.threshold)
    passage = find_first_passage(middle, begin.start, group.threshold - 1, QUANTILES, begin.gap, settled=SETTLED)
    columns: dict[str, Any] = {name: rows[name] for name in NAMES if name in rows.columns}
    columns[ORDER] = repaired.row
    labels = group.ratings.labels
    columns |= {"state": rows["state"], "label": [labels[state - 1] for state in rows["state"].to_list()]}
    columns |= {"repaired_state": repaired.state + 1, "repaired_label": [labels[one] for one in repaired.state]}
    columns |= {"threshold": [group.threshold] * len(rows), "threshold_label": [group.threshold_label] * len(rows)}
    ends = _find_intervals(begin, fleet)
    for prefix, places in (("", begin.old), (f"{REPAIRED}_", begin.new)):
        own = replace(passage, mean=passage.mean[:, places], quantile=passage.quantile[:, places])
        found: dict[str, Any] = dict(lay_out_passage(own, fleet.eligible.base))
        found |= {f"mean_years_{side}": blank(end[places]) for side, end in ends.items()}
        found |= {f"reached_{year}": reached[places, year] for year in choose_years(horizon)}
        columns |= {f"{prefix}{name}": values for name, values in found.items()}
    columns |= {"certified": [group.model.certified] * len(rows), "chosen": [group.model.chosen] * len(rows)}
    return pl.DataFrame(columns)


def _find_intervals(begin: _Start, fleet: Fleet) -> dict[str, Array]:
    """Interval of the mean years of each member, where that takes less than a minute."""
    every, uncertainty = begin.propagator, begin.group.uncertainty
    lanes = begin.start.size * every.lanes
    few = begin.start.size <= FEW_MEMBERS and lanes <= FEW_LANES
    if uncertainty.drawn:
        few = lanes * len(every.coefficients) <= FEW_SETS
    asked = fleet.options.member_intervals
    if uncertainty.kind == NONE or not (few if asked is None else asked):
        return {}
    found = [
        find_first_passage(
            every.take_sets(slice(first, first + begin.at_once)),
            begin.start,
            begin.group.threshold - 1,
            (),
            begin.gap,
            horizon=fleet.options.years,
            settled=NEARLY,
        ).mean
        for first in range(0, len(every.coefficients), begin.at_once)
    ]
    return dict(zip(("low", "high"), uncertainty.interval(np.concatenate(found), LOG), strict=True))


def _tabulate(fleet: Fleet, found: Mapping[str, _Case]) -> pl.DataFrame:
    """Rows of the forecast's network with the totals with repairs, and the difference."""
    names = [name for name in WhatIfTotal.model_fields if name in fleet.network.columns]
    cases = [group.case for group in fleet.eligible.groups]
    parts = []
    for rows in fleet.network.select(names).partition_by("scope", "case", maintain_order=True):
        own = cases if rows["scope"][0] == NETWORK else [rows["case"][0]]
        if any(case in found for case in own):
            columns = _lay_out(fleet, own, found)
        else:  # nothing changes
            columns = {_join(REPAIRED, end): rows[end or "expected"] for end in ("", *ENDS)}
            columns |= {_join(DIFFERENCE, end): pl.zeros(len(rows), eager=True) for end in ("", *ENDS)}
        parts.append(rows.with_columns(**columns))
    return pl.concat(parts).select(list(WhatIfTotal.model_fields))


def _lay_out(fleet: Fleet, cases: Sequence[str], found: Mapping[str, _Case]) -> dict[str, pl.Series]:
    """Columns of one scope: of one case, or of all together; some of its members are repaired."""
    groups = {group.case: group for group in fleet.eligible.groups}
    wholes = {
        case: found[case].totals
        if case in found
        else _conclude(groups[case], replace(one, gradient=_turn_gradient(groups[case], one.gradient)))
        for case, one in fleet.sums.items()
        if case in cases
    }
    totals = add_cases([wholes[case] for case in cases])
    changed = [found[case] for case in cases if case in found]
    change = reduce(add, [_widen_change(one, totals.states) for one in changed])
    columns = _name_totals(REPAIRED, totals, 0)
    columns |= _name_totals(DIFFERENCE, change, sum(one.repaired for one in changed))
    return {name: blank(values.ravel()) for name, values in columns.items()}


def _widen_change(one: _Case, states: int) -> Totals:
    """Change with further states: nobody is in them, and the number of repaired members is added."""
    more = np.zeros(states + 1)
    more[one.change.states : states] = one.repaired
    wide = one.change.widen(states)
    drawn = wide.drawn
    return replace(
        wide,
        least=wide.least + more,
        most=wide.most + more,
        sums=replace(wide.sums, mean=wide.sums.mean + more),
        drawn=None if drawn is None else replace(drawn, mean=drawn.mean + more),
    )


def _name_totals(name: str, totals: Totals, less: int) -> dict[str, Array]:
    """Expected numbers and the ends of both intervals, less a number of members."""
    ends = dict(zip(ENDS, (*totals.interval(), *totals.predict()), strict=True))
    return {_join(name, end): values - less for end, values in {"": totals.expected, **ends}.items()}


def _join(name: str, end: str) -> str:
    return f"{name}_{end}" if end else name
