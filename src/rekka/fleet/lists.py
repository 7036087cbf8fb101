"""Panels for members that are not inspections: a plain list of members, and the ends of paired transitions.

A list has a row for each member, its state, and numbers under a model's own names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from rekka.core.errors import BadStates, BadValues, count_of, name_rows
from rekka.data.attributes import (
    ATTRIBUTES,
    OWN_NAMES,
    check_names,
    join_table,
    read_attributes,
    read_name,
)
from rekka.data.components import find_components, stack_components
from rekka.data.mapping import ColumnRoles, TableMapping, find_columns, is_fiscal, is_known, resolve, split_names
from rekka.data.pairing import SOURCES
from rekka.data.panel import (
    Panel,
    RecordProblem,
    by_component,
    choose_case,
    first_problem,
    list_asked,
    name_components,
    name_records,
    name_sizes,
    read_records,
)
from rekka.data.tables import ROW, SourceTable
from rekka.data.text import collect
from rekka.data.transitions import Transitions
from rekka.data.values import Scale, clean_text, holds_numbers, read_dates, read_numbers, take_dates
from rekka.model.clock import AGE_NAMES

MEMBER = ("bridge_id", "case", "member")
LISTED_AGE, AGES = AGE_NAMES[0], (*AGE_NAMES[1:], "橋齢", "経過年数", "供用年数")
ROLES = ("bridge", "case", "member", *ATTRIBUTES, "visit", "date", "state")  # in the order of ``read_panel``
ONE_ROW = (
    "A list without dates has one row for each member. Name the column that identifies members "
    "of one kind (--member COLUMN), leave out what is older, or say which column is the date of the "
    "inspection (--date COLUMN)."
)


def recognise_list(table: SourceTable, plan: TableMapping) -> dict[str, str]:
    """Find the columns of a list by role; none where the table is no list.

    A list has bridges and states, or a column of states for each component, and no dates. With dates it is a table
    of inspections, unless it has an ``age_at_inspection_1`` or a ``traffic_mean``, which only models know.
    """
    if plan.wide:
        return {}
    plan = split_names(plan, table)
    components = find_components(table, plan, [])
    if not (components or plan.columns.state or any(is_known("state", name) for name in table.columns)):
        return {}
    found = _find_roles(table, plan, components)[0]
    listed = {"bridge", "state"} <= {*found, *by_component(components)}
    return found if listed and ("date" not in found or bool(_own(table))) else {}


def _find_roles(
    table: SourceTable, plan: TableMapping, components: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Columns of a list by role, and a sentence on those known by their names."""
    columns = name_components(plan, components).columns
    return find_columns(table, columns, [role for role in ROLES if role not in by_component(components)])


def read_list(table: SourceTable, plan: TableMapping) -> Panel:
    """Read the members of a list; the covariates are the named columns, or else all that hold numbers.

    Without dates there is no age by the completion, and nobody can say whether a repair came later: neither is
    looked at.
    """
    notes, plan = list(table.notes), split_names(plan, table)
    components = find_components(table, plan, notes)
    found, known = _find_roles(table, plan, components)
    plan = name_components(plan, components)
    notes += [] if components else choose_case(table, found, plan.columns, "members are of")
    columns = _choose_columns(table, found, plan)
    attributes = read_attributes(table, found, columns, plan.table, plan.dates)
    notes += [*known, *attributes.notes]
    own = name_records(table, found) | attributes.columns
    records = stack_components(table, own, components) if components else table.frame.select(**own)
    fiscal = is_fiscal(found.get("date", ""))
    visits, scale, number = read_records(records, plan, fiscal, table.name, notes)
    for join in plan.join:
        visits = join_table(visits, join, plan.dates, notes)
    visits, columns = _name_age(visits, columns, table.name, notes)
    visits = _name_columns(visits, "date" in found, columns.asked, table.name, notes)
    if not {"date", "visit"} & set(found):
        refuse_repeated(visits, table.name, ONE_ROW)
    return Panel(
        name=table.name,
        visits=visits,
        records=number,
        scale=scale,
        covariates=list_asked("asked", columns, plan.join),
        keep=list_asked("keep", columns, plan.join),
        members="member" in found,
        rules=plan.rules,
        notes=tuple(notes),
    )


def _name_age(
    visits: pl.LazyFrame, columns: ColumnRoles, name: str, notes: list[str]
) -> tuple[pl.LazyFrame, ColumnRoles]:
    """Rename a column that is called an age to the age that models know, unless there is one of that name."""
    ages = [one for one in columns.covariates if one.strip().lower() in AGES]
    if len(ages) != 1 or LISTED_AGE in columns.covariates:
        return visits, columns
    notes.append(f"{name}: {LISTED_AGE} is {ages[0]}")
    covariates = [LISTED_AGE if one == ages[0] else one for one in columns.covariates]
    return visits.rename({ages[0]: LISTED_AGE}), columns.model_copy(update={"covariates": covariates})


def refuse_repeated(visits: pl.LazyFrame, name: str, remedy: str) -> None:
    """Refuse members with several usable records where nothing puts these in order."""
    usable = visits.filter(pl.col("problem") == RecordProblem.NONE).select(ROW, *MEMBER)
    groups = usable.group_by(*MEMBER).agg(first=pl.col(ROW).min(), count=pl.len())
    repeated = collect(groups.filter(pl.col("count") > 1), name).sort("first")
    if repeated.is_empty():
        return
    member = dict(zip(MEMBER, repeated.row(0), strict=False))
    rows = collect(usable.filter(**member).select(ROW), name)[ROW].sort().to_list()
    called = ", ".join(f"{key.removesuffix('_id')} {value!r}" for key, value in member.items() if value)
    others = len(repeated) - 1
    more = f" ({count_of(others, 'other member')} {'has' if others == 1 else 'have'} several rows, too)"
    raise BadValues(
        f"{name}: {called} stands in {name_rows(rows)}{more if others else ''}. {remedy}",
        rows=rows,
        bridge=member["bridge_id"],
    )


def _own(table: SourceTable) -> list[str]:
    """Covariates under names that only a model, and a table made for one, uses."""
    return [name for name in SOURCES if name in table.columns]


def _choose_columns(table: SourceTable, found: dict[str, str], plan: TableMapping) -> ColumnRoles:
    """Roles of the columns, with the covariates of the list among them."""
    given, own = plan.columns, _own(table)
    named = [name for name in given.covariates if name not in own]
    check_names(table, given.model_copy(update={"covariates": named}))
    listed = (*given.keep, *given.repairs, *given.categories, *given.components.values())
    taken = {*found.values(), *own, *(resolve(table, name) for name in listed)}
    numbers = named or _find_numbers(table, [c for c in table.columns if c not in taken], plan.table.decimal)
    return given.model_copy(update={"covariates": [*own, *numbers]})


def _find_numbers(table: SourceTable, columns: Sequence[str], decimal: str) -> list[str]:
    """Columns that hold numbers and nothing else, under names that rekka does not use."""
    ours = rf"repair_\d+|{ROW} \(2\)"  # a row number that was written to a file is no covariate
    free = [c for c in columns if c not in OWN_NAMES | table.repeated and not re.fullmatch(ours, c)]
    schema = table.frame.collect_schema()
    holds = {name: schema[name].is_numeric() for name in free}
    texts = [name for name in free if schema[name] == pl.String]
    asked = {name: holds_numbers(pl.col(name), decimal) for name in texts}
    if asked:
        holds |= collect(table.frame.select(**asked), table.name).row(0, named=True)
    return [name for name in free if holds[name]]


def _name_columns(
    visits: pl.LazyFrame, dated: bool, covariates: Sequence[str], name: str, notes: list[str]
) -> pl.LazyFrame:
    """Name the sizes, and drop the columns that the list has no use for."""
    visits = name_sizes(visits, name, notes)
    here = visits.collect_schema().names()
    unused = [SOURCES[one] for one in covariates if one in SOURCES]
    undated = [] if dated else [one for one in here if one == "completed" or one.startswith("repair_")]
    if undated:
        notes.append(f"{name}: without a date a completion gives no age, and a repair is not looked at")
    return visits.drop(*unused, *undated, strict=False)


AGE, YEARS, STATE, DATE, VISIT, HISTORY = (
    "age_at_inspection_1", "interval_years", "state_2", "date_2", "visit_2", "history"
)  # fmt: skip
ANOTHER_HISTORY = 2**31  # above any visit's number: in each history visits are numbered from 1
MOST_STATES = 2**15 - 1  # as panels hold them
OURS = ("column", "visit", "date", "state", "state_text", "problem")  # what visits have besides names and numbers
UNNAMED = Scale((), "numbers from 1, the best")
PAIR_PROBLEMS: dict[int, str] = {
    RecordProblem.NO_BRIDGE: "the bridge is blank",
    RecordProblem.NO_CASE: "the case is blank",
    RecordProblem.BLANK_STATE: f"{STATE} is missing",
    RecordProblem.UNKNOWN_STATE: f"{STATE} is not a whole number from 1",
    RecordProblem.BLANK_DATE: f"{DATE} is missing or not understood",
    RecordProblem.NO_VISIT: f"{VISIT} is missing",
}
NO_ORDER = (
    f"Neither {DATE} nor {VISIT} says which transition is the last. Give one of them, or the last transition of "
    "each member alone."
)


def read_ends(table: SourceTable, plan: TableMapping, found: Transitions) -> Panel:
    """Read the ends of transitions: ``state_2`` at ``date_2``, the age by then, other covariates as they are.

    Visits go by ``date_2``; without dates by ``visit_2``; without either there must be one transition a member.
    """
    check_names(table, plan.columns.model_copy(update={"covariates": [], "categories": []}))
    frame = found.frame.with_columns(_number_rows(table))
    _require_numbers(frame, plan.table.decimal, table.name)
    bridge = find_columns(table, plan.columns, ["bridge"])[0].get("bridge")
    alone = [f"{table.name}: no column for the bridge, so that each row is a member of its own"]
    covariates = tuple(name for name in found.covariates if name not in (bridge, *OURS))
    keep = tuple(resolve(table, name) for name in plan.columns.keep)
    moment = _find_moment(frame, plan)
    columns = _name_members(frame, bridge or "bridge_id") | {name: pl.col(name) for name in keep}
    columns |= _read_numbers(frame, covariates, plan.table.decimal) | moment
    visits = frame.lazy().select(**columns).with_columns(problem=_find_problem(list(moment)))
    visits = visits.with_columns(
        state=pl.when(pl.col("problem") == RecordProblem.NONE).then("state").cast(pl.Int64)
    )
    if not moment:
        refuse_repeated(visits, table.name, NO_ORDER)
    return Panel(
        name=table.name,
        visits=visits,
        records=len(frame),
        scale=UNNAMED,
        covariates=covariates,
        keep=keep,
        members="member" in frame.columns,
        problems=PAIR_PROBLEMS,
        rules=plan.rules,
        notes=(*found.notes, *(() if bridge else alone)),
    )


def _name_members(frame: pl.DataFrame, bridge: str) -> dict[str, pl.Expr]:
    """Columns that identify members: row, bridge, case and member; the date is not known yet."""
    schema = frame.schema
    return {
        ROW: pl.col(ROW),
        "bridge_id": read_name(bridge, schema),
        "case": read_name("case", schema),
        "member": read_name("member", schema).fill_null("") if "member" in schema else pl.lit(""),
        "date": pl.lit(None, pl.Date),
    }


def _read_numbers(frame: pl.DataFrame, covariates: Sequence[str], decimal: str) -> dict[str, pl.Expr]:
    """State and covariates at the end of each transition."""

    def read(name: str) -> pl.Expr:
        return read_numbers(pl.col(name), frame.schema[name], decimal)

    named = [name for name in covariates if frame.schema[name] == pl.String]
    columns = {"state": read(STATE), "state_text": pl.col(STATE).cast(pl.String)}
    columns |= {name: pl.col(name) if name in named else read(name) for name in covariates}
    if AGE in covariates:
        columns[AGE] = read(AGE) + pl.when(read(YEARS) >= 0).then(read(YEARS))
    return columns


def _number_rows(table: SourceTable) -> pl.Series:
    """Row numbers that ``read_transitions`` keeps: all, or those that name their case."""
    rows = table.frame
    if "case" in table.columns:
        rows = rows.filter(read_name("case", rows.collect_schema()).is_not_null())
    return collect(rows.select(ROW), table.name).to_series()


def _require_numbers(frame: pl.DataFrame, decimal: str, name: str) -> None:
    """Refuse a table none of whose states is a number."""
    number = read_numbers(pl.col(STATE), frame.schema[STATE], decimal)
    text = clean_text(pl.col(STATE).cast(pl.String))
    found = frame.filter(text.is_not_null())
    if len(found) and found.select(number.is_null().all()).item():
        row, first = found.select(ROW, text).row(0)
        raise BadStates(
            f"{name}: {STATE} is {first!r} in row {row}; whole numbers from 1, the best state, are needed in a "
            "table of transitions. Write them so, or give the inspections that they come from.",
            rows=[row],
        )


def _find_moment(frame: pl.DataFrame, plan: TableMapping) -> dict[str, pl.Expr]:
    """Find what puts a member's transitions in order: dates, visit numbers, or nothing."""
    if DATE in frame.columns and frame[DATE].null_count() < len(frame):
        if frame[DATE].dtype.is_temporal():
            return {"date": take_dates(pl.col(DATE))}
        texts = frame[DATE].cast(pl.String)
        return {"date": pl.lit(read_dates(texts, plan.dates.inspection, where=f"{DATE}: "))}
    if VISIT in frame.columns and frame[VISIT].dtype.is_numeric() and frame[VISIT].null_count() < len(frame):
        history = pl.col(HISTORY) if HISTORY in frame.columns else pl.lit(0)
        return {"visit": history.cast(pl.Int64) * ANOTHER_HISTORY + pl.col(VISIT).cast(pl.Int64)}
    return {}


def _find_problem(moment: list[str]) -> pl.Expr:
    """Problem of the end of a transition; 0 where it can be used."""
    state = pl.col("state")
    whole = (state == state.floor()) & state.is_between(1, MOST_STATES)
    unordered = {"date": RecordProblem.BLANK_DATE, "visit": RecordProblem.NO_VISIT}
    return first_problem(
        (pl.col("bridge_id").is_null(), RecordProblem.NO_BRIDGE),
        (pl.col("case").is_null(), RecordProblem.NO_CASE),
        (clean_text(pl.col("state_text")).is_null(), RecordProblem.BLANK_STATE),
        (~whole.fill_null(value=False), RecordProblem.UNKNOWN_STATE),
        *((pl.col(name).is_null(), unordered[name]) for name in moment),
    )
