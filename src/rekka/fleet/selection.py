"""Members that are to be repaired: named by a table, or the worst of a forecast.

A row of the table names a bridge, a component of it, or a member, and may say how it is after the repair: rating,
age, frailty. What is not said is the best rating, and the age and the frailty that the member has in year 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import (
    BadOption,
    BadValues,
    InputError,
    count_of,
    did_you_mean,
    missing_columns,
    name_some,
    no_such_case,
)
from rekka.data.attributes import read_name
from rekka.data.mapping import ColumnRoles, find_columns, plain_name
from rekka.data.tables import ROW, open_table
from rekka.data.text import collect
from rekka.data.values import read_numbers
from rekka.fleet.eligibility import GAP, LONG_UNSEEN, REASON, Eligible, EligibleGroup, find_refused
from rekka.fleet.lists import MEMBER
from rekka.model.clock import AGE_NAMES

Array = NDArray[np.float64]

RATING, AGE, FRAILTY = "rating", "age", "frailty"
EDITS = (RATING, AGE, FRAILTY)
ROLES = {"bridge_id": "bridge", "case": "case", "member": "member"}
WORDS = {"bridge_id": "bridge", "case": "component", "member": "member"}
COPIED = {"bridge_id", "case", "state", "threshold", "there"}  # columns of a forecast's table of members


class Repair(NamedTuple):
    """Row of a table of repairs: what it names, and the edits; None where it is blank."""

    row: int
    bridge_id: str
    case: str | None
    member: str | None
    rating: str | None
    age: float | None
    frailty: float | None

    @property
    def names(self) -> str:
        """Names of the row: "B-1, Deck, 02"."""
        return ", ".join(name for name in (self.bridge_id, self.case, self.member) if name)


@dataclass(frozen=True, eq=False)
class RepairedMembers:
    """Repaired members of one component: their places in its group, in rising order, and how they are in year 0.

    ``state`` (r,) is 0-based; ``age`` and ``frailty`` (r,) are NaN where they stay. ``row`` is that of the table.
    """

    places: NDArray[np.intp]
    state: NDArray[np.int64]
    age: Array
    frailty: Array
    row: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RepairPlan:
    """Repaired members by component, and notes on what was left out."""

    by_case: Mapping[str, RepairedMembers]
    notes: tuple[str, ...] = ()


def read_repairs(eligible: Eligible, source: Any) -> RepairPlan:
    """Read the members that are to be repaired, and how they are afterwards.

    Parameters
    ----------
    eligible
        Members that can be forecast.
    source : path, dataframe or list of dicts
        Rows with a bridge and, if need be, component, member, rating, age and frailty. Rows of a forecast's table
        of members will do: their further columns say nothing here.

    """
    name, repairs = _read_rows(source, eligible.members.covariates)
    places = _index(eligible, {repair.bridge_id for repair in repairs})
    chosen: dict[tuple[int, int], Repair] = {}
    left_out = 0
    for repair in repairs:
        found = [one for one in places.get(repair.bridge_id, ()) if _is_meant(repair, one)]
        barred = _find_barred(eligible, repair)
        if not found:
            raise _explain_unknown(eligible, repair, name, places, barred)
        left_out += len(barred)
        _check_edits(eligible, repair, found, name)
        for member in found:
            earlier = chosen.setdefault((member.group, member.place), repair)
            if earlier is not repair:
                raise _explain_twice(name, earlier, repair, member)
    by_case = {
        group.case: _lay_out(group, {at: one for (number, at), one in chosen.items() if number == place}, name)
        for place, group in enumerate(eligible.groups)
    }
    note = f"{name}: {count_of(left_out, 'member')} of bridges named there cannot be forecast, and are left out"
    return RepairPlan({case: one for case, one in by_case.items() if one.places.size}, (note,) if left_out else ())


def _read_rows(source: Any, covariates: Sequence[str]) -> tuple[str, list[Repair]]:
    if isinstance(source, list | tuple):
        texts = [{key: _as_text(value) for key, value in row.items()} for row in source]
        source = pl.DataFrame(texts, infer_schema_length=None) if texts else pl.DataFrame({"bridge": []})
    table = open_table(source)
    found, _ = find_columns(table, ColumnRoles(), ROLES.values())
    if "bridge" not in found:
        raise missing_columns(["bridge"], table.columns, f"{table.name}, which says which members are repaired")
    plain = {plain_name(name): name for name in table.columns}
    columns = {edit: plain[edit] for edit in EDITS if edit in plain and plain[edit] not in found.values()}
    others = [name for name in table.columns if name not in {*found.values(), *columns.values()}]
    if set(table.columns) >= COPIED:
        columns = {edit: column for edit, column in columns.items() if column not in covariates}
    elif others:
        raise BadValues(
            f"{table.name} has a column {others[0]}, which says nothing of a repair. Columns of such a table: "
            f"bridge, component, member, rating, age, frailty.{did_you_mean(others[0], EDITS)} Take it out.",
            column=others[0],
        )
    schema = table.frame.collect_schema()
    texts_of = {key: read_name(found[role], schema) for key, role in ROLES.items() if role in found}
    texts_of |= {edit: read_name(column, schema) for edit, column in columns.items()}
    for edit in {AGE, FRAILTY} & columns.keys():
        texts_of[f"{edit} number"] = read_numbers(pl.col(columns[edit]), schema[columns[edit]])
    rows = collect(table.frame.select(ROW, **texts_of), table.name)
    return table.name, [_read_row(table.name, one) for one in rows.iter_rows(named=True)]


def _as_text(value: Any) -> str | None:
    """A value of a program as a table would have it; 17.0 is 17."""
    if value is None:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _read_row(name: str, one: Mapping[str, Any]) -> Repair:
    row = int(one[ROW])
    if one["bridge_id"] is None:
        raise BadValues(f"{name}: the bridge is blank in row {row}. Name it, or take the row out.", rows=[row])
    numbers: dict[str, float | None] = {}
    for edit, least in ((AGE, "0 or more"), (FRAILTY, "above 0")):
        text, value = one.get(edit), one.get(f"{edit} number")
        if text is not None and (value is None or value < 0 or (edit == FRAILTY and value == 0)):
            raise BadValues(
                f"{name}: {edit} is {text!r} in row {row}; a number {least} is needed. Leave it blank where the "
                f"repair does not change it.",
                rows=[row],
            )
        numbers[edit] = value
    names = (one["bridge_id"], one.get("case"), one.get("member"))
    return Repair(row, *names, one.get(RATING), numbers[AGE], numbers[FRAILTY])


class _Place(NamedTuple):
    """Member that can be forecast: number of its group, place in it, and names."""

    group: int
    place: int
    case: str
    member: str


def _index(eligible: Eligible, bridges: set[str]) -> dict[str, list[_Place]]:
    """Members of some bridges, by bridge."""
    found: dict[str, list[_Place]] = {}
    for number, group in enumerate(eligible.groups):
        names = [name for name in MEMBER if name in group.rows.columns]
        rows = group.rows.select(pl.col(names).cast(pl.String)).with_row_index("place")
        for one in rows.filter(pl.col("bridge_id").is_in(list(bridges))).iter_rows(named=True):
            place = _Place(number, one["place"], group.case, one.get("member") or "")
            found.setdefault(one["bridge_id"], []).append(place)
    return found


def _is_meant(repair: Repair, one: _Place) -> bool:
    return repair.case in (None, one.case) and repair.member in (None, one.member)


def _find_barred(eligible: Eligible, repair: Repair) -> pl.DataFrame:
    """Members that a row names, and that cannot be forecast."""
    aside = eligible.aside
    wanted = {key: getattr(repair, key) for key in MEMBER if key in aside.columns and getattr(repair, key)}
    tests = [pl.col(key).cast(pl.String) == value for key, value in wanted.items()]
    return aside.filter(*tests) if repair.member is None or "member" in aside.columns else aside.clear()


def _explain_unknown(
    eligible: Eligible, repair: Repair, name: str, places: Mapping[str, Sequence[_Place]], barred: pl.DataFrame
) -> InputError:
    """Error for a row that names no member that can be forecast."""
    where, inventory = f"{name}: row {repair.row}", eligible.members.name
    if len(barred):
        reasons = name_some(barred[REASON].unique().sort().to_list())
        return BadValues(
            f"{where}: {repair.names} cannot be forecast ({reasons}). Complete the inventory, or take the row "
            "out.",
            rows=[repair.row],
        )
    here = places.get(repair.bridge_id, [])
    if not here:
        bridges = sorted({one for group in eligible.groups for one in group.rows["bridge_id"].cast(pl.String)})
        return BadValues(
            f"{where}: there is no bridge {repair.bridge_id!r} in {inventory} with a usable visit and a model. "
            f"Name it as the inventory does, or take the row out.{did_you_mean(repair.bridge_id, bridges)}",
            rows=[repair.row],
            bridge=repair.bridge_id,
        )
    key, asked = "component", repair.case
    known = sorted({one.case for one in here})
    if asked is None or asked in known:
        key, asked = "member", repair.member
        known = sorted({one.member for one in here if repair.case in (None, one.case)} - {""})
    return BadValues(
        f"{where}: bridge {repair.bridge_id} has no {key} {asked!r} that can be forecast; it has "
        f"{name_some(known)}.{did_you_mean(asked or '', known)}",
        rows=[repair.row],
        bridge=repair.bridge_id,
    )


def _explain_twice(name: str, earlier: Repair, repair: Repair, member: _Place) -> InputError:
    """Error for a member that two rows name."""
    called = ", ".join(filter(None, (repair.bridge_id, member.case, member.member)))
    same = earlier[4:] == repair[4:]
    verdict = "the same twice" if same else "and do not agree on how it is after the repair"
    return BadValues(
        f"{name}: rows {earlier.row} and {repair.row} both name {called}, {verdict}. A member is repaired once, "
        "in year 0: keep one row of it.",
        rows=[earlier.row, repair.row],
        bridge=repair.bridge_id,
    )


def _check_edits(eligible: Eligible, repair: Repair, found: Sequence[_Place], name: str) -> None:
    """Refuse an age, or a frailty, that no model of the members has."""
    groups = [eligible.groups[one.group] for one in found]
    cases = name_some(list(dict.fromkeys(group.case for group in groups)))
    if repair.age is not None and not any(find_ages(group) for group in groups):
        raise BadValues(
            f"{name}: row {repair.row} gives an age, and the model of {cases} has none. Leave it out.",
            rows=[repair.row],
        )
    if repair.frailty is not None and not any(has_frailty(group) for group in groups):
        raise BadValues(
            f"{name}: row {repair.row} gives a frailty, and the model of {cases} has none. Leave it out, or fit "
            "with --frailty gamma.",
            rows=[repair.row],
        )


def find_ages(group: EligibleGroup) -> list[int]:
    """Places of the covariates that are ages: those called so, or the only one that advances."""
    names = [name for name in group.fit.covariates if name in AGE_NAMES]
    if not names and len(group.ageing.names) == 1:
        names = list(group.ageing.names)
    return [group.fit.covariates.index(name) for name in names]


def has_frailty(group: EligibleGroup) -> bool:
    """Whether the model of a group has frailties."""
    records = group.fit.records
    return records is not None and records.elements.frailty


def _lay_out(group: EligibleGroup, chosen: Mapping[int, Repair], name: str) -> RepairedMembers:
    """Repaired members of a group in order of their places, with checked ratings and covariates."""
    places = np.array(sorted(chosen), dtype=np.intp)
    repairs = [chosen[int(place)] for place in places]
    found = RepairedMembers(
        places,
        np.array([_find_state(group, one, name) for one in repairs], dtype=np.int64),
        np.array([np.nan if one.age is None else one.age for one in repairs]),
        np.array([np.nan if one.frailty is None else one.frailty for one in repairs]),
        np.array([one.row for one in repairs], dtype=np.int64),
    )
    worse = np.flatnonzero(found.state > group.start[places])
    if worse.size:
        one, at = repairs[worse[0]], places[worse[0]]
        before, after = (group.ratings.name(int(state) + 1) for state in (group.start[at], found.state[worse[0]]))
        raise BadValues(
            f"{name}: row {one.row}: {one.names} is rated {after} after the repair, which is worse than {before}, "
            "found at the last visit. Give the rating after the repair, or leave it out for the best.",
            rows=[one.row],
        )
    if places.size:
        _refuse_covariates(group, found, repairs, name)
    return found


def _find_state(group: EligibleGroup, repair: Repair, name: str) -> int:
    if repair.rating is None:
        return 0
    try:
        state = group.ratings.find(repair.rating, RATING)
    except BadOption as error:
        raise BadValues(f"{name}: row {repair.row}: {error}", **error.values, rows=[repair.row]) from None
    return min(state, group.fit.n_states + 1) - 1


def renew_rows(group: EligibleGroup, repaired: RepairedMembers) -> pl.DataFrame:
    """Rows of the repaired members as they are in year 0: rating, covariates, and no years to be carried there."""
    rows: pl.DataFrame = group.rows[repaired.places.tolist()]
    gap = 0.0 if group.gap is None else group.gap[repaired.places]
    x = group.ageing.at(group.x[repaired.places], gap)
    for column in find_ages(group):
        x[:, column] = np.where(np.isnan(repaired.age), x[:, column], repaired.age)
    moved = {*group.ageing.columns.tolist(), *find_ages(group)}
    columns: dict[str, Any] = {group.fit.covariates[column]: x[:, column] for column in sorted(moved)}
    columns["state"] = repaired.state + 1
    if GAP in rows.columns:
        columns[GAP] = np.zeros(len(rows))
    return rows.with_columns([pl.Series(name, values) for name, values in columns.items()])


def _refuse_covariates(
    group: EligibleGroup, repaired: RepairedMembers, repairs: Sequence[Repair], name: str
) -> None:
    """Refuse ages after the repair that the scaling operator of the model cannot take."""
    refused = find_refused(renew_rows(group, repaired), group.fit, group.ageing)
    for place, reason in sorted(refused.items()):
        one = repairs[place]
        raise BadValues(
            f"{name}: row {one.row}: {one.names} cannot be forecast after the repair ({reason}). Give an age that "
            "the training rows have.",
            rows=[one.row],
        )


def select_members(
    members: pl.DataFrame,
    groups: Sequence[EligibleGroup],
    *,
    worst: int | None = None,
    component: str | None = None,
    rating: int | str | None = None,
) -> pl.DataFrame:
    """Select members of a forecast: bridge, component and member of the ``worst``, of one component or rating.

    ``members`` is the table of a forecast's members. The worst are those at the threshold or worse when last seen,
    the worst ratings first, then those with the fewest mean years until the threshold; of each kind members that
    were last inspected long ago come last.
    """
    cases = [group.case for group in groups]
    if component is not None and component not in cases:
        raise no_such_case(component, cases)
    if worst is not None and worst < 0:
        raise BadOption(f"worst is {worst}; a number of members from 0 on is needed.", option="worst", value=worst)
    if component is not None:
        members = members.filter(pl.col("case") == component)
    if rating is not None:
        parts = [
            members.filter(
                (pl.col("case") == group.case) & (pl.col("state") >= group.ratings.find(rating, RATING))
            )
            for group in groups
            if component in (None, group.case)
        ]
        members = pl.concat(parts)
    if worst is not None:
        members = _sort_by_need(members).head(worst)
    return members.select(pl.col(name).alias(WORDS[name]) for name in MEMBER if name in members.columns)


def plan_worst(members: pl.DataFrame, eligible: Eligible, number: int) -> RepairPlan:
    """Plan the repair of so many of the worst members, with a note where equals were taken by name."""
    plan = read_repairs(eligible, select_members(members, eligible.groups, worst=number))
    return replace(plan, notes=(*plan.notes, *list_ties(members, number)))


def list_ties(members: pl.DataFrame, worst: int) -> tuple[str, ...]:
    """Note that some of the ``worst`` were taken from equals by name; nothing where no name decided."""
    keys, rating = _list_needs(members), "label" if "label" in members.columns else "state"
    rows = members.select(*(key.alias(str(place)) for place, key in enumerate(keys)), label=rating)
    rows = rows.sort(map(str, range(len(keys))), nulls_last=True)
    if not 0 < worst < len(rows):
        return ()
    tied = pl.all_horizontal(pl.col(name).eq_missing(rows[name][worst - 1]) for name in rows.columns[:-1])
    places = rows.select(tied.arg_true()).to_series()
    if places[-1] < worst:
        return ()
    labels = rows["label"][places.to_list()].unique().to_list()
    rated = f" rated {labels[0]}" if len(labels) == 1 else ""
    taken = worst - places[0]
    return (f"Taken by name: {taken:,} of the {len(places):,} equally urgent members{rated}",)


def _sort_by_need(members: pl.DataFrame) -> pl.DataFrame:
    names = [name for name in MEMBER if name in members.columns]
    return members.sort([*_list_needs(members), *map(pl.col, names)], nulls_last=True)


def _list_needs(members: pl.DataFrame) -> list[pl.Expr]:
    """Keys that order members, the most urgent first; names decide between equals."""
    unseen = [pl.col(LONG_UNSEEN)] if LONG_UNSEEN in members.columns else []
    worse = pl.when("there").then(-pl.col("state")).otherwise(0)
    (last,) = (name for name in members.columns if name.startswith("expected_state_") and "(" not in name)
    return [~pl.col("there"), *unseen, worse, pl.col("mean_years"), -pl.col(last)]
