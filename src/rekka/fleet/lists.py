"""A plain list of members as a panel: a row each, their states, and numbers under a model's own names.

The ends of transitions that are paired already, as a panel of visits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from rekka.core.errors import BadStates, BadValues, UnreadableTable, count_of, name_rows
from rekka.data.attributes import (
    ATTRIBUTES,
    OWN_NAMES,
    check_names,
    join_table,
    read_attributes,
    read_name,
    survey,
    translate,
)
from rekka.data.mapping import Columns, TableMapping, find_columns, is_fiscal, is_known, resolve
from rekka.data.pairing import SOURCES
from rekka.data.panel import (
    ALL_CASES,
    PROBLEMS,
    Panel,
    Problem,
    code_dates,
    code_problems,
    code_states,
    code_typed_dates,
)
from rekka.data.tables import ROW, Table
from rekka.data.text import collect
from rekka.data.transitions import Transitions
from rekka.data.values import Scale, clean_text, read_counts, read_dates, read_numbers, read_states, take_dates
from rekka.model.clock import AGE_NAMES

MEMBER = ("bridge_id", "case", "member")
LISTED_AGE, AGES = AGE_NAMES[0], (*AGE_NAMES[1:], "橋齢", "経過年数", "供用年数")
ROLES = ("bridge", "case", "member", *ATTRIBUTES, "visit", "date", "state")  # in the order of ``read_panel``
ONE_ROW = (
    "A list without dates has one row for each member. Name the column that identifies members "
    "of one kind (--member COLUMN), leave out what is older, or say which column is the date of the "
    "inspection (--date COLUMN)."
)


def recognise_list(table: Table, plan: TableMapping) -> dict[str, str]:
    """The columns of a list by their parts: bridges and states, and no dates or a model's own covariates; or none.

    A date beside the state makes an inspection; but no table of inspections has an ``age_at_inspection_1`` or a
    ``traffic_mean``.
    """
    if plan.wide or not (plan.columns.state or any(is_known("state", name) for name in table.columns)):
        return {}
    found, _ = find_columns(table, plan.columns, ROLES)
    listed = {"bridge", "state"} <= set(found) and ("date" not in found or bool(_own(table)))
    return found if listed else {}


def read_list(table: Table, plan: TableMapping) -> Panel:
    """The members as records of a panel; the covariates are the named columns, or else all that hold numbers.

    Without dates there is no age by the completion, and nobody can say whether a repair came later: neither is
    looked at.
    """
    notes = list(table.notes)
    found, known = find_columns(table, plan.columns, ROLES)
    if "case" not in found:
        notes.append(f"{table.name}: {_choose_case(found, plan.columns)}")
    columns = _choose_columns(table, found, plan)
    attributes = read_attributes(table, found, columns, plan.table, plan.dates)
    notes += [*known, *attributes.notes]
    records = _lay_out(table, found, attributes.columns)
    visits, scale, number = _understand(records, found, plan, table.name, notes)
    for join in plan.join:
        visits = join_table(visits, join, plan.dates, notes)
    visits, columns = _name_age(visits, columns, table.name, notes)
    visits = _name_columns(visits, "date" in found, columns.covariates, table.name, notes)
    if not {"date", "visit"} & set(found):
        refuse_repeated(visits, table.name, ONE_ROW)
    names = visits.collect_schema().names()
    asked = (columns, *(join.columns for join in plan.join))
    return Panel(
        name=table.name,
        visits=visits,
        columns=tuple(names),
        covariates=tuple(dict.fromkeys(name for one in asked for name in one.covariates)),
        keep=tuple(dict.fromkeys(name for one in asked for name in one.keep)),
        repairs=tuple(name for name in names if name.startswith("repair_")),
        members="member" in found,
        problems={int(problem): sentence for problem, sentence in PROBLEMS.items()},
        records=number,
        scale=scale,
        rules=plan.rules,
        notes=tuple(notes),
    )


def _name_age(visits: pl.LazyFrame, columns: Columns, name: str, notes: list[str]) -> tuple[pl.LazyFrame, Columns]:
    """A column that is called an age is the age that models know, unless there is one of that name."""
    ages = [one for one in columns.covariates if one.strip().lower() in AGES]
    if len(ages) != 1 or LISTED_AGE in columns.covariates:
        return visits, columns
    notes.append(f"{name}: {LISTED_AGE} is {ages[0]}")
    covariates = [LISTED_AGE if one == ages[0] else one for one in columns.covariates]
    return visits.rename({ages[0]: LISTED_AGE}), columns.model_copy(update={"covariates": covariates})


def refuse_repeated(visits: pl.LazyFrame, name: str, remedy: str) -> None:
    """Refuse members that have several usable records where nothing puts these in order."""
    usable = visits.filter(pl.col("problem") == Problem.NONE).select(ROW, *MEMBER)
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


def _own(table: Table) -> list[str]:
    """Covariates that only a model, and a table made for one, calls like this."""
    return [name for name in SOURCES if name in table.columns]


def _choose_case(found: dict[str, str], given: Columns) -> str:
    """As for inspections: without a column for the case, one that is called member tells kinds of member."""
    if "member" in found and given.member is None:
        found["case"] = found.pop("member")
        return f"case is {found['case']}; name it as member if it identifies members of one kind"
    return f"no column for the case, so that all members are of one component, {ALL_CASES!r}"


def _choose_columns(table: Table, found: dict[str, str], plan: TableMapping) -> Columns:
    """The columns, with the covariates of the list among them."""
    given, own = plan.columns, _own(table)
    named = [name for name in given.covariates if name not in own]
    check_names(table, given.model_copy(update={"covariates": named}))
    taken = {*found.values(), *own, *(resolve(table, name) for name in (*given.keep, *given.repairs))}
    numbers = named or _find_numbers(table, [c for c in table.columns if c not in taken], plan.table.decimal)
    return given.model_copy(update={"covariates": [*own, *numbers]})


def _find_numbers(table: Table, columns: Sequence[str], decimal: str) -> list[str]:
    """Those of the columns that hold numbers and nothing else, under names that are not ours."""
    ours = rf"repair_\d+|{ROW} \(2\)"  # a row number that was written to a file is no covariate
    free = [c for c in columns if c not in OWN_NAMES | table.repeated and not re.fullmatch(ours, c)]
    schema = table.frame.collect_schema()
    holds = {name: schema[name].is_numeric() for name in free}
    asked = {}
    for name in (name for name in free if schema[name] == pl.String):
        number = read_numbers(pl.col(name), pl.String(), decimal).is_not_null()
        asked[name] = (number | clean_text(pl.col(name)).is_null()).all() & number.any()
    if asked:
        holds |= collect(table.frame.select(**asked), table.name).row(0, named=True)
    return [name for name in free if holds[name]]


def _lay_out(table: Table, found: dict[str, str], attributes: dict[str, pl.Expr]) -> pl.LazyFrame:
    """The list's records under our names; state and date as they are written."""
    schema = table.frame.collect_schema()
    columns = {
        ROW: pl.col(ROW),
        "bridge_id": read_name(found["bridge"], schema),
        "case": read_name(found["case"], schema) if "case" in found else pl.lit(ALL_CASES),
        "member": read_name(found["member"], schema).fill_null("") if "member" in found else pl.lit(""),
        "state": pl.col(found["state"]),
        "date": pl.col(found["date"]) if "date" in found else pl.lit(None, pl.Date),
    }
    if "visit" in found:
        columns["visit"] = read_counts(pl.col(found["visit"]), schema[found["visit"]])
    return table.frame.select(**columns, **attributes)


def _understand(
    records: pl.LazyFrame, found: dict[str, str], plan: TableMapping, name: str, notes: list[str]
) -> tuple[pl.LazyFrame, Scale, int]:
    """States and dates from their texts, the problem of each record that has one, and how many there are."""
    states = survey(records, "state", name)
    if states.is_empty():
        raise UnreadableTable(f"{name} has no rows.", file=name)
    read, scale = read_states(states["text"], states["count"], plan.state, plan.table.decimal)
    notes.append(f"{name}: states are {scale.words}")
    codes = states.hstack(read).select(code_states()).to_series()
    state_problem = translate("state", states, codes).fill_null(Problem.BLANK_STATE)
    date, date_problem = _understand_dates(records, found, plan, name)
    no_visit = pl.col("visit").is_null() if "visit" in found else pl.lit(value=False)
    visits = records.with_columns(
        date=date,
        state=translate("state", states, read["state"]),
        state_text=pl.col("state"),
        problem=code_problems(state_problem, date_problem, no_visit),
    )
    return visits, scale, int(states["count"].sum())


def _understand_dates(
    records: pl.LazyFrame, found: dict[str, str], plan: TableMapping, name: str
) -> tuple[pl.Expr, pl.Expr]:
    """The date of each record and its problem; a list without dates has neither."""
    if "date" not in found:
        return pl.lit(None, pl.Date), pl.lit(Problem.NONE)
    if records.collect_schema()["date"].is_temporal():
        return take_dates(pl.col("date")), code_typed_dates(pl.col("date"))
    seen = survey(records, "date", name)
    formats, fiscal = plan.dates.inspection, is_fiscal(found["date"])
    dates = read_dates(seen["text"], formats, fiscal=fiscal, where=f"{name}, dates of inspection: ")
    codes = seen.select(code_dates(pl.col("text"), dates)).to_series()
    return translate("date", seen, dates), translate("date", seen, codes).fill_null(Problem.BLANK_DATE)


def _name_columns(
    visits: pl.LazyFrame, dated: bool, covariates: Sequence[str], name: str, notes: list[str]
) -> pl.LazyFrame:
    """Area from length and width, our names, and without what the list has no use for."""
    here = visits.collect_schema().names()
    if {"length", "width"} <= set(here):
        product = pl.col("length") * pl.col("width")
        visits = visits.with_columns(area=pl.coalesce("area", product) if "area" in here else product)
        notes.append(f"{name}: area is {'as given, else ' if 'area' in here else ''}length times width")
    unused = ["width", *(SOURCES[one] for one in covariates if one in SOURCES)]
    undated = [] if dated else [one for one in here if one == "completed" or one.startswith("repair_")]
    if undated:
        notes.append(f"{name}: without a date a completion gives no age, and a repair is not looked at")
    return visits.drop(*unused, *undated, strict=False).rename(
        {"length": "bridge_length", "area": "bridge_area"}, strict=False
    )


AGE, YEARS, STATE, DATE, VISIT, HISTORY = (
    "age_at_inspection_1", "interval_years", "state_2", "date_2", "visit_2", "history"
)  # fmt: skip
ANOTHER_HISTORY = 2**31  # above any visit's number: in each history visits are numbered from 1
MOST_STATES = 2**15 - 1  # as panels hold them
OURS = ("column", "visit", "date", "state", "state_text", "problem")  # what visits have besides names and numbers
UNNAMED = Scale((), "numbers from 1, the best")
PAIR_PROBLEMS = {
    Problem.NO_BRIDGE: "the bridge is blank",
    Problem.NO_CASE: "the case is blank",
    Problem.BLANK_STATE: f"{STATE} is missing",
    Problem.UNKNOWN_STATE: f"{STATE} is not a whole number from 1",
    Problem.BLANK_DATE: f"{DATE} is missing or not understood",
    Problem.NO_VISIT: f"{VISIT} is missing",
}
NO_ORDER = (
    f"Neither {DATE} nor {VISIT} says which transition is the last. Give one of them, or the last transition of "
    "each member alone."
)


def read_ends(table: Table, plan: TableMapping, found: Transitions) -> Panel:
    """``state_2`` at ``date_2``, the age so many years on, and other covariates as they are.

    Visits go by ``date_2``; without dates by ``visit_2``; without either there must be one transition a member.
    """
    check_names(table, plan.columns.model_copy(update={"covariates": []}))
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
    visits = visits.with_columns(state=pl.when(pl.col("problem") == Problem.NONE).then("state").cast(pl.Int64))
    if not moment:
        refuse_repeated(visits, table.name, NO_ORDER)
    return Panel(
        name=table.name,
        visits=visits,
        columns=tuple(visits.collect_schema().names()),
        covariates=covariates,
        keep=keep,
        repairs=(),
        members="member" in frame.columns,
        problems={int(problem): sentence for problem, sentence in PAIR_PROBLEMS.items()},
        records=len(frame),
        scale=UNNAMED,
        rules=plan.rules,
        notes=(*found.notes, *(() if bridge else alone)),
    )


def _name_members(frame: pl.DataFrame, bridge: str) -> dict[str, pl.Expr]:
    """Row, bridge, case and member; the date is not known yet."""
    schema = frame.schema
    return {
        ROW: pl.col(ROW),
        "bridge_id": read_name(bridge, schema),
        "case": read_name("case", schema),
        "member": read_name("member", schema).fill_null("") if "member" in schema else pl.lit(""),
        "date": pl.lit(None, pl.Date),
    }


def _read_numbers(frame: pl.DataFrame, covariates: Sequence[str], decimal: str) -> dict[str, pl.Expr]:
    """The state and the covariates at the end of each transition."""

    def read(name: str) -> pl.Expr:
        return read_numbers(pl.col(name), frame.schema[name], decimal)

    columns = {"state": read(STATE), "state_text": pl.col(STATE).cast(pl.String)}
    columns |= {name: read(name) for name in covariates}
    if AGE in covariates:
        columns[AGE] = read(AGE) + pl.when(read(YEARS) >= 0).then(read(YEARS))
    return columns


def _number_rows(table: Table) -> pl.Series:
    """Numbers of the rows that ``read_transitions`` keeps: all, or those that name their case."""
    rows = table.frame
    if "case" in table.columns:
        rows = rows.filter(read_name("case", rows.collect_schema()).is_not_null())
    return collect(rows.select(ROW), table.name).to_series()


def _require_numbers(frame: pl.DataFrame, decimal: str, name: str) -> None:
    """Refuse a table none of whose states is a number; a table of transitions has them as models do."""
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
    """What puts a member's transitions in order: its dates, or its visit numbers, or nothing."""
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
    """Why the end of a transition cannot be used; 0 where it can."""
    state = pl.col("state")
    whole = (state == state.floor()) & state.is_between(1, MOST_STATES)
    return (
        pl.when(pl.col("bridge_id").is_null())
        .then(Problem.NO_BRIDGE)
        .when(pl.col("case").is_null())
        .then(Problem.NO_CASE)
        .when(clean_text(pl.col("state_text")).is_null())
        .then(Problem.BLANK_STATE)
        .when(~whole.fill_null(value=False))
        .then(Problem.UNKNOWN_STATE)
        .when(pl.col("date").is_null() & ("date" in moment))
        .then(Problem.BLANK_DATE)
        .when(pl.col("visit").is_null() if "visit" in moment else pl.lit(value=False))
        .then(Problem.NO_VISIT)
        .otherwise(Problem.NONE)
        .cast(pl.UInt8)
    )
