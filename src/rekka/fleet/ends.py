"""The ends of transitions that are paired already, as a panel of visits."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rekka.core.errors import BadStates
from rekka.data.attributes import check_names, read_name
from rekka.data.mapping import TableMapping
from rekka.data.names import find_columns, resolve
from rekka.data.panel import Panel, Problem
from rekka.data.queries import collect
from rekka.data.tables import ROW, Table
from rekka.data.transitions import Transitions
from rekka.data.values import Scale, clean_text, read_dates, read_numbers, take_dates
from rekka.fleet.lists import refuse_repeated

AGE, YEARS, STATE, DATE, VISIT, HISTORY = (
    "age_at_inspection_1", "interval_years", "state_2", "date_2", "visit_2", "history"
)  # fmt: skip
ANOTHER_HISTORY = 2**31  # above any visit's number: in each history visits are numbered from 1
MOST_STATES = 2**15 - 1  # as panels hold them
OURS = ("column", "visit", "date", "state", "state_text", "problem")  # what visits have besides names and numbers
UNNAMED = Scale((), "numbers from 1, the best")
PROBLEMS = {
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
        problems={int(problem): sentence for problem, sentence in PROBLEMS.items()},
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
