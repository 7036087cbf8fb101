"""The last usable visit of each member of a panel, in one pass that holds members in memory and not visits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from rekka.core.errors import BadStates, BadValues, name_rows
from rekka.data.pairing import SAME_DAY, SOURCES, plan_pairing
from rekka.data.panel import Panel, Problem
from rekka.data.queries import collect
from rekka.data.tables import ROW
from rekka.fleet.lists import MEMBER

# Columns of ours beside a user's: nobody calls theirs like this.
PLACE, MOMENT, KEY, DOUBT = "place of the record", "moment of the record", "key of the record", "states differ"
REPAIR, LATEST = "latest repair", "latest date"
LAST_ROW, LAST_PROBLEM = "row of the last record", "problem of the last record"
BEST, WORST = "best state of the last moment", "worst state of the last moment"
STATES, PLACES = 2**16, 2**40  # more than there can be of them; with a moment of 64 bits, a key has 128


@dataclass(frozen=True, eq=False)
class LastVisits:
    """``frame``: a row for each member, null where none of its records can be used; and counts of its records.

    A record without a bridge or a case is of a member without one. ``problems`` says why a record cannot be used.
    """

    panel: Panel
    covariates: tuple[str, ...]
    problems: Mapping[int, str]
    frame: pl.DataFrame

    def count(self, problem: int) -> int:
        """Records that have the problem."""
        return int(self.frame[_count_name(problem)].sum())

    def source(self, covariate: str) -> str:
        """The column of the visits that a covariate comes from."""
        return covariate if covariate in self.panel.columns else SOURCES[covariate]

    @property
    def moment(self) -> str:
        """What visits go by, in words."""
        return "visit number" if "visit" in self.panel.columns else "day"


def find_last(panel: Panel, *, carry: bool) -> LastVisits:
    """Each member's last usable visit: state, date, row, kept columns and what its covariates come from.

    With ``carry``, what that visit lacks of the latter is that of the latest usable visit that has it.
    """
    asked = plan_pairing(panel, panel.rules)
    further = panel.covariates
    known = [name for name in asked.covariates if name not in further and SOURCES.get(name) not in further]
    problems = {**panel.problems, SAME_DAY: asked.reasons[SAME_DAY][1]}
    unread = LastVisits(panel, (*known, *further), problems, pl.DataFrame())
    visits = _order_visits(panel)
    columns = _pick_columns(unread, carry) | _count_records(unread)
    members = collect(visits.group_by(*MEMBER).agg(**columns), panel.name)
    last = replace(unread, frame=members.sort(PLACE, LAST_ROW, *MEMBER))
    _refuse_outside(last, visits)
    _refuse_differing(last, visits)
    return last


def _order_visits(panel: Panel) -> pl.LazyFrame:
    """The visits with a key: of a member's usable visits the last has the greatest.

    It goes by the moment, a day or a visit's number. Of several at one moment the worst, the first or the last of
    them has the greatest key; with set_aside, where their states differ, none has one.
    """
    rule = panel.rules.same_day
    moment = pl.col("visit" if "visit" in panel.columns else "date").cast(pl.Int64)
    visits = panel.visits.with_row_index(PLACE).with_columns(moment.fill_null(0).alias(MOMENT))  # a list has none
    if rule == "set_aside":
        visits = _mark_doubtful(visits)
    rank = pl.col("state") if rule == "worst" else pl.lit(0)
    place = pl.col(PLACE).cast(pl.Int128)
    order = place if rule == "last" else PLACES - 1 - place
    key = (pl.col(MOMENT).cast(pl.Int128) * STATES + rank) * PLACES + order
    return visits.with_columns(pl.when(_usable()).then(key).alias(KEY))


def _usable() -> pl.Expr:
    return pl.col("problem") == Problem.NONE


def _mark_doubtful(visits: pl.LazyFrame) -> pl.LazyFrame:
    """The same, where usable visits of one member and moment that differ in their states have a problem, too."""
    state = pl.col("state")
    moments = visits.filter(_usable()).group_by(*MEMBER, MOMENT)
    doubtful = moments.agg((state.min() < state.max()).alias(DOUBT)).filter(DOUBT)
    marked = visits.join(doubtful, on=[*MEMBER, MOMENT], how="left")
    problem = pl.when(_usable() & pl.col(DOUBT).fill_null(value=False)).then(SAME_DAY).otherwise("problem")
    return marked.with_columns(problem=problem.cast(pl.UInt8))


def _pick_columns(last: LastVisits, carry: bool) -> dict[str, pl.Expr]:
    """What is taken of the last usable visit."""
    panel, key = last.panel, pl.col(KEY)
    names = [name for name in ("date", "state", ROW, "column", *panel.keep) if name in panel.columns]
    columns = {name: pl.col(name).max_by(key) for name in (PLACE, *names)}
    for name in map(last.source, last.covariates):
        by = pl.when(pl.col(name).is_not_null()).then(key) if carry else key
        columns[name] = pl.col(name).max_by(by)
    return columns


def _count_records(last: LastVisits) -> dict[str, pl.Expr]:
    """What is asked of all records of a member: repairs, problems, and whether they are at one."""
    state = pl.col("state")
    moment = pl.when(_usable()).then(pl.col(MOMENT).cast(pl.Int128) * STATES)
    columns = {
        BEST: state.max_by(moment - state),
        WORST: state.max_by(moment + state),
        LATEST: pl.when(_usable()).then("date").max(),
        REPAIR: pl.max_horizontal(pl.lit(None, pl.Date), *last.panel.repairs).max(),
        LAST_ROW: pl.col(ROW).max_by(PLACE),
        LAST_PROBLEM: pl.col("problem").max_by(PLACE),
    }
    return columns | {_count_name(code): (pl.col("problem") == code).sum() for code in last.problems}


def _count_name(problem: int) -> str:
    return f"records of problem {int(problem)}"


def _refuse_outside(last: LastVisits, visits: pl.LazyFrame) -> None:
    """Raise for states outside the scale, where the rules call them errors."""
    panel = last.panel
    if panel.rules.outside != "error" or not last.count(Problem.OUTSIDE_STATE):
        return
    outside = visits.filter(pl.col("problem") == Problem.OUTSIDE_STATE)
    found = collect(outside.select(ROW, "state_text"), panel.name).sort(ROW)
    rows = found[ROW].to_list()
    raise BadStates(
        f"The state is {found['state_text'][0]!r} in {name_rows(rows)} ({len(rows)} of {panel.records}), outside "
        f"the scale {', '.join(panel.scale.names)}. Set such records aside, or give a wider scale.",
        rows=rows,
    )


def _refuse_differing(last: LastVisits, visits: pl.LazyFrame) -> None:
    """Raise for states that differ on a member's last day, where the rules call that an error."""
    panel = last.panel
    differing = last.frame.filter(pl.col(BEST) < pl.col(WORST))
    if panel.rules.same_day != "error" or differing.is_empty():
        return
    usable = visits.filter(_usable()).select(ROW, MOMENT, *MEMBER)
    there = collect(usable.join(differing.lazy(), on=MEMBER, how="semi"), panel.name)
    rows = there.filter(pl.col(MOMENT) == pl.col(MOMENT).max().over(MEMBER))[ROW].sort().to_list()
    raise BadValues(
        f"{panel.name}: {name_rows(rows)}: records of a member's last {last.moment} with different states. Keep "
        "the worst, the first or the last of them with same_day, or set them aside.",
        rows=rows,
    )
