"""Pairing of consecutive visits of a member, block by block: the outcome of each record, and the pairs kept."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadStates, BadValues, count_of, name_rows
from rekka.data import pairing_kernel as kernel
from rekka.data.audit import LAST, PAIR, TRANSITION, VISIT
from rekka.data.categories import LEVEL, MISSING
from rekka.data.mapping import Rules
from rekka.data.panel import Panel, RecordProblem

Mask = NDArray[np.bool_]
Index = NDArray[np.integer[Any]]

MONTHS = 12
ROWS_A_THREAD = 100_000  # fewer are not worth a second thread
MOMENT_BITS = 21  # days of 5,700 years
FIRST_PROBLEM = 100  # codes of a record's own problems begin here
REPEATED, SAME_DAY = FIRST_PROBLEM + 50, FIRST_PROBLEM + 51
REPAIR = "a repair lies between the two visits"
UPWARD = "upward move: the condition improved"
FAR_UPWARD = "upward move: the condition improved by two ratings or more"  # where smaller ones are kept
INTERVAL = "the later visit is not after the earlier one"
BEFORE_COMPLETION = "completed after the first visit"
KEPT_UPWARD = {"keep": 1, "keep_all": 1_000}  # states by which a pair may improve and be kept
SOURCES = {"age_at_inspection_1": "completed", "traffic_mean": "traffic"}  # of covariates that are computed


@dataclass(frozen=True)
class PairedBlock:
    """Pairs of some members; ``code`` is the outcome of each record of ``records``."""

    pairs: pl.DataFrame
    records: pl.DataFrame
    code: NDArray[np.uint8]
    upward: int  # pairs whose condition improved, known repairs apart
    downward: int  # pairs whose condition worsened, whatever became of them


@dataclass(frozen=True)
class Pairing:
    """Plan of a pairing: the panel, the rules, the covariates, and the reasons by their codes."""

    panel: Panel
    rules: Rules
    covariates: tuple[str, ...]
    reasons: Mapping[int, tuple[str, str]]  # code -> outcome, sentence

    @property
    def by_visit(self) -> bool:
        """Whether the table numbers its visits."""
        return "visit" in self.panel.columns


def plan_pairing(panel: Panel, rules: Rules) -> Pairing:
    """Plan the covariates of the transitions, and every reason that a record can be given."""
    computed = ("age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean")
    known = tuple(name for name in computed if SOURCES.get(name, name) in panel.columns)
    covariates = (*known, *panel.covariates)
    reasons = {
        kernel.KEEP: (TRANSITION, "kept"),
        kernel.NOTHING_FOLLOWS: (LAST, "the member's last visit"),
        kernel.ONLY_VISIT: (LAST, "the member's only visit"),
        kernel.REPAIR: (PAIR, REPAIR),
        kernel.INTERVAL: (PAIR, INTERVAL),
        kernel.UPWARD: (PAIR, FAR_UPWARD if rules.upward == "keep" else UPWARD),
        kernel.GAP: (PAIR, f"more than {rules.max_gap or math.inf:g} years apart"),
        kernel.BEFORE_COMPLETION: (PAIR, BEFORE_COMPLETION),
    }
    reasons |= {
        kernel.FIRST_MISSING + place: (PAIR, f"{name} is missing") for place, name in enumerate(covariates)
    }
    reasons |= {FIRST_PROBLEM + code: (VISIT, sentence) for code, sentence in panel.problems.items()}
    what = "visit number" if "visit" in panel.columns else "day"
    reasons[REPEATED] = (VISIT, f"a second record of one {what}, with the same state")
    reasons[SAME_DAY] = (VISIT, f"another record of one {what}, with another state")
    return Pairing(panel, rules, covariates, reasons)


def pair_block(records: pl.DataFrame, plan: Pairing) -> PairedBlock:
    """Pair the visits of the block's members; a member is whole in one block.

    1. Records with a problem of their own are left out.
    2. The others are put in order of member and date (or visit number); of several on one day one stays.
    3. Each is looked at with its follower: the first reason not to keep the pair is its outcome.
    4. What is kept is laid out in the order of the input.
    """
    # 1
    code = _own_problems(records, plan)
    usable = code == kernel.KEEP
    visits = records if usable.all() else records.filter(usable)
    # 2
    order, starts, repeated, differing = _order_visits(visits, plan)
    # 3
    judged = _judge(visits, order, starts, plan)
    judged.code[repeated], judged.code[differing] = REPEATED, SAME_DAY
    code[usable] = judged.code
    _refuse(visits, judged, plan)
    # 4
    return PairedBlock(_lay_out(visits, judged, plan), records, code, *_count_moves(visits, judged))


def _count_moves(visits: pl.DataFrame, judged: PairVerdicts) -> tuple[int, int]:
    """Pairs that improved and that worsened; a pair excluded for its covariates has moved all the same."""
    no_pair = (kernel.NOTHING_FOLLOWS, kernel.ONLY_VISIT, kernel.REPAIR, kernel.INTERVAL, REPEATED, SAME_DAY)
    here = np.flatnonzero(~np.isin(judged.code, (*no_pair, kernel.UPWARD)))
    state = visits["state"].to_numpy()
    second = state[judged.follower[here]]
    better = np.count_nonzero(second < state[here]) + np.count_nonzero(judged.code == kernel.UPWARD)
    return int(better), int(np.count_nonzero(second > state[here]))


def count_months(column: str) -> pl.Expr:
    """Months since year 0 of a date: the same day of two years is a whole number of years apart.

    So that five years between two first days of June are 5, and not 1826 / 365.25. Only between a February of
    29 days and one of 28 there is up to a day.
    """
    date = pl.col(column).dt
    part = (date.day().cast(pl.Float64) - 1) / date.days_in_month()
    return date.year().cast(pl.Float64) * MONTHS + (date.month().cast(pl.Float64) - 1) + part


def _own_problems(records: pl.DataFrame, plan: Pairing) -> NDArray[np.uint8]:
    """Codes of records that cannot be used, 0 for the others."""
    problem = records["problem"].to_numpy()
    outside = np.flatnonzero(problem == RecordProblem.OUTSIDE_STATE)
    if outside.size and plan.rules.outside == "error":
        rows, first = _rows(records, outside), records["state_text"][int(outside[0])]
        raise BadStates(
            f"The state is {first!r} in {name_rows(rows)} ({outside.size} of {len(records)}), outside the scale "
            f"{', '.join(plan.panel.scale.names)}. Exclude such records, or give a wider scale.",
            problem="rule",
            rule="outside",
            rows=rows,
        )
    return np.where(problem > 0, problem + FIRST_PROBLEM, kernel.KEEP).astype(np.uint8)


def _order_visits(visits: pl.DataFrame, plan: Pairing) -> tuple[Index, Mask, Index, Index]:
    """Visits in order of member and moment; where members start; repeated and differing visits of one moment.

    Members are distinguished by 128 bits of hash (of 1e9 members two share one with odds of 1e-21), because
    sorting numbers is several times faster than sorting names. First by one number made of 43 bits of hash and
    the moment; should two members meet there, by the whole.
    """
    moment = pl.col("visit" if plan.by_visit else "date").to_physical().cast(pl.Int64)
    moment = moment - moment.min()
    prefix = _hash(1) & (2**64 - 2**MOMENT_BITS)
    keys = visits.select(k=prefix | moment.cast(pl.UInt64), h2=_hash(2))
    order = keys["k"].arg_sort()
    ordered = keys.select(pl.all().gather(order))
    near = (pl.col("k") ^ pl.col("k").shift()) < 2**MOMENT_BITS
    same_hash = pl.col("h2") == pl.col("h2").shift()
    same_moment = pl.col("k") == pl.col("k").shift()
    if _reach(visits, moment) >= 2**MOMENT_BITS or ordered.select((near & ~same_hash).any()).item():
        keys = visits.select(h1=_hash(1), h2=_hash(2), moment=moment)
        order = keys.select(pl.arg_sort_by("h1", "h2", "moment")).to_series()
        ordered = keys.select(pl.all().gather(order))
        near = pl.col("h1") == pl.col("h1").shift()
        same_moment = pl.col("moment") == pl.col("moment").shift()
    found = ordered.select(member=near & same_hash, moment=same_moment).fill_null(value=False)
    starts = ~found["member"].to_numpy()
    again = found["moment"].to_numpy() & ~starts
    none = np.empty(0, dtype=np.int64)
    if again.any():
        return _settle(visits, order.to_numpy(), starts, again, plan)
    return order.to_numpy(), starts, none, none


def _reach(visits: pl.DataFrame, moment: pl.Expr) -> int:
    """Last moment, counted from the first."""
    return int(visits.select(moment.max()).item() or 0)


def _hash(seed: int) -> pl.Expr:
    """64 bits of a member's name; each part has a seed of its own, so that A of B is not B of A."""
    parts = [pl.col(name).hash(10 * seed + place) for place, name in enumerate(("bridge_id", "case", "member"))]
    return parts[0] ^ parts[1] ^ parts[2]


def _settle(
    visits: pl.DataFrame, order: Index, starts: Mask, again: Mask, plan: Pairing
) -> tuple[Index, Mask, Index, Index]:
    """One visit a moment: the worst, first or last, or none of those that differ."""
    rule = plan.rules.same_day
    order = order.astype(np.int64)
    state = visits["state"].to_numpy()[order]
    moment = np.cumsum(~again)
    rank = {"worst": -state, "last": -order}.get(rule, order)
    best_first = np.lexsort((order, rank, moment))
    order, state = order[best_first], state[best_first]
    leads = np.flatnonzero(~again)[moment - 1]
    differs = state != state[leads]
    some_differ = np.zeros(order.size, dtype=bool)
    some_differ[leads[differs]] = True
    if rule == "error" and differs.any():
        rows = _rows(visits, order[differs])
        raise BadValues(
            f"{name_rows(rows)} ({count_of(int(differs.sum()), 'record')}): another record of the same member and "
            f"{'visit number' if plan.by_visit else 'day'} has another state. Keep the worst, the first or the "
            "last of them with same_day, or exclude them.",
            problem="rule",
            rule="same_day",
            rows=rows,
        )
    doubtful = some_differ[leads] & (rule == "set_aside")
    out = again | doubtful
    odd = out & (differs | doubtful)
    member = np.cumsum(starts)[~out]  # a member that loses its first visit starts at the next that is left
    new_starts = np.ones(member.size, dtype=bool)
    new_starts[1:] = member[1:] != member[:-1]
    return order[~out].astype(np.uint32), new_starts, order[out & ~odd], order[odd]


@dataclass(frozen=True)
class PairVerdicts:
    """Outcome of each visit, its follower (-1 for none), its number and history, (n,) each; months by the day."""

    code: NDArray[np.uint8]
    follower: NDArray[np.int32]
    number: NDArray[np.int32]
    history: NDArray[np.int32]
    day: NDArray[np.int32]
    months: NDArray[np.float64]
    day_0: int


def _judge(visits: pl.DataFrame, order: Index, starts: Mask, plan: Pairing) -> PairVerdicts:
    """Verdict on each visit and its follower."""
    n = len(visits)
    day = visits["date"].to_physical().to_numpy()
    months, day_0 = _months_by_day(visits["date"])
    codes = {name: kernel.FIRST_MISSING + place for place, name in enumerate(plan.covariates)}
    missing = np.zeros(n, dtype=np.uint8)
    for name, code in reversed(codes.items()):
        column = visits[SOURCES.get(name, name)]
        if column.null_count() and not (column.dtype == pl.String and plan.rules.missing == LEVEL):
            missing[column.is_null().to_numpy()] = code
    uncounted = visits["traffic"].is_null().to_numpy() if "traffic" in visits.columns else np.zeros(n, dtype=bool)
    rules = plan.rules
    repaired = () if rules.repairs == "ignore" else plan.panel.repairs
    follower, number, history = (np.zeros(n, dtype=np.int32) for _ in range(3))
    judged = PairVerdicts(np.zeros(n, dtype=np.uint8), follower, number, history, day, months, day_0)
    given = (
        visits["state"].to_numpy(),
        day,
        _days(visits, "completed") if "completed" in visits.columns else np.full(n, kernel.NEVER, dtype=np.int32),
        np.array([_days(visits, name) for name in repaired], dtype=np.int32).reshape(len(repaired), n),
        missing,
        uncounted,
        codes.get("traffic_mean", 0),
        months,
        day_0,
        math.inf if rules.max_gap is None else rules.max_gap * MONTHS,
        np.array([rules.upward == "restart", rules.repairs == "restart", rules.upward in KEPT_UPWARD]),
        KEPT_UPWARD.get(rules.upward, 0),
    )
    found = (judged.code, judged.follower, judged.number, judged.history)
    cuts = _cut(starts)
    with ThreadPoolExecutor(max(1, len(cuts) - 1)) as pool:
        parts = [slice(*pair) for pair in pairwise(cuts)]
        list(pool.map(lambda part: kernel.judge_visits(order[part], starts[part], *given, *found), parts))
    if plan.by_visit:  # the table's numbers stay, but for the visits after a restart
        return replace(judged, number=np.where(history > 1, number, visits["visit"].to_numpy()))
    return judged


def _cut(starts: Mask) -> list[int]:
    """Places that cut the ordered visits between members, into a part for each core."""
    parts = min(os.cpu_count() or 1, 1 + starts.size // ROWS_A_THREAD)
    cuts = [0]
    for part in range(1, parts):
        here = max(cuts[-1], starts.size * part // parts)
        cuts.append(here + int(np.argmax(starts[here:])) if starts[here:].any() else starts.size)
    return [*cuts, starts.size]


def _days(visits: pl.DataFrame, column: str) -> NDArray[np.int32]:
    return visits[column].to_physical().fill_null(kernel.NEVER).to_numpy()


def _months_by_day(dates: pl.Series) -> tuple[NDArray[np.float64], int]:
    """Months at every day between the first and the last date: a table is faster than a calendar."""
    first, last = dates.min(), dates.max()
    if first is None:
        return np.empty(0), 0
    days = pl.DataFrame({"day": pl.date_range(first, last, eager=True)})  # type: ignore[arg-type]
    return days.select(count_months("day")).to_series().to_numpy(), int(days["day"].to_physical()[0])


def _refuse(visits: pl.DataFrame, judged: PairVerdicts, plan: Pairing) -> None:
    """Raise for the outcomes that the rules call errors."""
    rules = plan.rules
    asked: dict[int, str] = {kernel.UPWARD: rules.upward, kernel.INTERVAL: rules.interval}
    asked |= {kernel.FIRST_MISSING + place: rules.missing for place in range(len(plan.covariates))}
    for code, rule in asked.items():
        if rule != "error":
            continue
        found = np.flatnonzero(judged.code == code)
        if not found.size:
            continue
        one = int(found[0]), int(judged.follower[found[0]])
        bridge, case = visits["bridge_id"][one[0]], visits["case"][one[0]]
        rows, named = _rows(visits, found), {kernel.UPWARD: "upward", kernel.INTERVAL: "interval"}
        states = " -> ".join(str(visits["state_text"][i]) for i in one)
        dates = " -> ".join(str(visits["date"][i]) for i in one)
        kind = BadStates if code == kernel.UPWARD else BadValues
        raise kind(
            f"{case}: {name_rows(rows)} ({count_of(found.size, 'pair')}): {plan.reasons[code][1]} (bridge "
            f"{bridge}, {dates}, state {states}). Exclude such pairs, or correct the table.",
            problem="rule",
            rule=named.get(code, "missing"),
            rows=rows,
            bridge=bridge,
        )


def _rows(visits: pl.DataFrame, here: Index) -> list[int]:
    """Row numbers, as the user's table has them, in order."""
    return sorted(visits["row"].gather(here).to_list())


def _lay_out(visits: pl.DataFrame, judged: PairVerdicts, plan: Pairing) -> pl.DataFrame:
    """Kept pairs as transitions."""
    kept = judged.code == kernel.KEEP
    second = judged.follower[kept]
    before = visits.drop("problem", "state_text").filter(kept)
    months_1, months_2 = (judged.months[days - judged.day_0] for days in (judged.day[kept], judged.day[second]))

    def after(column: str) -> pl.Series:
        values = visits[column]
        taken = (
            values.gather(second)
            if values.dtype == pl.String
            else pl.Series(values.to_physical().to_numpy()[second])
        )
        return taken.cast(values.dtype)

    names = ("bridge_id", "case", "member") if plan.panel.members else ("bridge_id", "case")
    out = {name: before[name] for name in names}
    out |= {"state_1": before["state"], "state_2": after("state")}
    out["interval_years"] = pl.Series((months_2 - months_1) / MONTHS)
    for name in plan.covariates:
        if name == "age_at_inspection_1":
            table, day_0 = _months_by_day(before["completed"])
            out[name] = pl.Series(
                (months_1 - table[before["completed"].to_physical().to_numpy() - day_0]) / MONTHS
            )
        elif name == "traffic_mean":
            out[name] = (before["traffic"] + after("traffic")) / 2
        elif plan.rules.missing == LEVEL and before[name].dtype == pl.String:
            out[name] = before[name].fill_null(MISSING)
        else:
            out[name] = before[name]
    out |= {name: before[name] for name in plan.panel.keep}
    out |= {"date_1": before["date"], "date_2": after("date")}
    out |= {"visit_1": pl.Series(judged.number[kept]), "visit_2": pl.Series(judged.number[second])}
    if "restart" in (plan.rules.upward, plan.rules.repairs) or plan.rules.upward in KEPT_UPWARD:
        out["history"] = pl.Series(judged.history[kept])
    if "column" in visits.columns:
        out |= {"column_1": before["column"], "column_2": after("column")}
    out |= {"row_1": before["row"], "row_2": after("row")}
    return pl.DataFrame(out)
