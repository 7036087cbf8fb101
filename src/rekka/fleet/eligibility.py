"""Who can be forecast, with which model and from when; the others are set aside with a reason.

A forecast counts its years from one day for all, the base date: each member is first carried there from its own
last inspection. A list without dates counts from when its members were seen, whenever that was.

What to know of a single member's forecast: that it is there already, or where it leaves the training rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import (
    BadOption,
    InputError,
    OutsideTrainingRange,
    bad_option,
    count_of,
    did_you_mean,
    missing_columns,
)
from rekka.core.numerics import generator
from rekka.data.pairing import MONTHS, count_months
from rekka.fleet.members import Members
from rekka.fleet.models import CaseModel, Matched
from rekka.forecast.ageing import ADVANCES, AGES, HELD, Course, plan_course
from rekka.forecast.first_passage import LONGEST
from rekka.forecast.forecast import check_threshold
from rekka.forecast.propagation import YEAR, States
from rekka.forecast.uncertainty import DELTA, DRAWS, FEWEST, INTERVALS, Spread, spread_out
from rekka.model.fit import Fit
from rekka.model.tables import check_level

Array = NDArray[np.float64]

GAP, REASON = "gap_years", "reason"
IDENTITY = ("bridge_id", "case", "member", "row", "column")


@dataclass(frozen=True)
class Ask:
    """What is asked of a forecast."""

    years: int = 30
    threshold: int | None = None  # None: 4, or the worst state where there are fewer
    since: date | None = None  # None: the latest inspection of the inventory
    age: str = ADVANCES
    advance: tuple[str, ...] | None = None
    intervals: str = DELTA
    level: float = 0.95
    draws: int = DRAWS
    seed: int = 0
    member_intervals: bool | None = None  # None: where that takes less than a minute

    def __post_init__(self) -> None:
        if not 1 <= self.years <= LONGEST:
            raise BadOption(
                f"years is {self.years}; a whole number from 1 to {LONGEST} is needed.",
                option="years",
                value=self.years,
            )
        for option, choices in (("age", AGES), ("intervals", INTERVALS)):
            if getattr(self, option) not in choices:
                raise bad_option(option, getattr(self, option), choices)
        check_level(self.level)
        if self.draws < FEWEST:
            raise BadOption(f"draws is {self.draws}; a whole number of at least {FEWEST} is needed.")


@dataclass(frozen=True, eq=False)
class Lot:
    """The members of one case that are forecast, in the order of their names, and what they are forecast with."""

    case: str
    model: CaseModel
    course: Course
    threshold: int
    spread: Spread
    rows: pl.DataFrame  # of the members, with gap_years where the inventory has dates

    @property
    def fit(self) -> Fit:
        """The fitted model."""
        return self.model.fit

    @property
    def start(self) -> States:
        """States as last seen (n,), 0-based."""
        return self.rows["state"].to_numpy().astype(np.int64) - 1

    @property
    def x(self) -> Array:
        """Covariates as last seen (n, p)."""
        return take_covariates(self.rows, self.fit.covariates)

    @property
    def gap(self) -> Array | None:
        """Years (n,) from the last inspection to the base date."""
        return self.rows[GAP].to_numpy() if GAP in self.rows.columns else None


@dataclass(frozen=True, eq=False)
class Lots:
    """All lots of an inventory; ``aside``: the members in none of them, each with its reason."""

    members: Members
    lots: tuple[Lot, ...]
    aside: pl.DataFrame
    base: date | None
    notes: tuple[str, ...]
    missing: Mapping[str, str] = field(default_factory=dict)  # why cases of the inventory have no model

    @property
    def size(self) -> int:
        """Members that are forecast."""
        return sum(len(lot.rows) for lot in self.lots)


def make_lots(members: Members, matched: Matched, ask: Ask) -> Lots:
    """Sort the members of the matched cases into lots; what cannot be forecast is set aside.

    Members of cases that were neither matched nor found to be without a model are not asked for.
    """
    cases = [*matched.found, *matched.missing]
    frame = members.frame.filter(pl.col("case").is_in(cases))
    _check_columns(members, matched)
    base = _find_base(members, frame, ask.since)
    frame = _count_gaps(frame, base, members.dated)
    names = [name for name in IDENTITY if name in frame.columns]
    lots, aside = [], []
    for case in sorted(cases):
        rows = frame.filter(pl.col("case") == case).sort(names, nulls_last=True)
        if case in matched.missing:
            aside.append(rows.with_columns(pl.lit(matched.missing[case]).alias(REASON)))
            continue
        model = matched.found[case]
        course = _plan(model, matched, ask)
        judged = rows.with_columns(_judge(rows, model, course, base, members))
        aside.append(judged.filter(pl.col(REASON).is_not_null()))
        kept = judged.filter(pl.col(REASON).is_null()).drop(REASON)
        if len(kept):
            threshold = _choose_threshold(ask.threshold, model, case)
            lots.append(Lot(case, model, course, threshold, _spread(model, case, ask), kept))
    listed = pl.concat(aside).select(*names, "state", REASON)
    if sum(len(lot.rows) for lot in lots) + len(listed) != len(frame):
        raise AssertionError("a member was neither forecast nor set aside")
    if not lots:
        raise InputError(f"{members.name}: no member can be forecast ({_sum_up(listed)}).")
    return Lots(members, tuple(lots), listed, base, tuple(_remark(members, lots, base)), matched.missing)


def take_covariates(rows: pl.DataFrame, names: Sequence[str]) -> Array:
    """Columns as numbers (n, p)."""
    columns = [rows[name].cast(pl.Float64).to_numpy() for name in names]
    return np.column_stack(columns) if columns else np.empty((len(rows), 0))


def _check_columns(members: Members, matched: Matched) -> None:
    """Refuse an inventory that has the covariates of no model."""
    lacking = [
        [name for name in model.fit.covariates if name not in members.frame.columns]
        for model in matched.found.values()
    ]
    if all(lacking):
        raise missing_columns(lacking[0], members.covariates, members.name)


def _find_base(members: Members, frame: pl.DataFrame, since: date | None) -> date | None:
    """The day that years are counted from: the latest inspection, but none in the future, which is a slip."""
    past = frame["date"].filter(frame["date"] <= date.today()) if members.dated else None
    latest = None if past is None else past.max()
    if not isinstance(latest, date):
        return since
    if since is not None and since.year - latest.year > LONGEST:
        raise BadOption(
            f"The forecast is to count from {since}, more than {LONGEST} years after the latest inspection of "
            f"{members.name}, {latest}. Give an earlier day.",
            option="from",
        )
    return since or latest


def _count_gaps(frame: pl.DataFrame, base: date | None, dated: bool) -> pl.DataFrame:
    """The members with their years from the last inspection to the base date, by the calendar."""
    if base is None or not dated:
        return frame
    until = pl.DataFrame({"date": [base]}).select(count_months("date")).item()
    return frame.with_columns(((until - count_months("date")) / MONTHS).alias(GAP))


def _plan(model: CaseModel, matched: Matched, ask: Ask) -> Course:
    """What advances in a model: of the names that were given, those that it has."""
    fit, names = model.fit, ask.advance
    if names is not None:
        known = {name for one in matched.found.values() for name in one.fit.covariates}
        for name in names:
            if name not in known:
                raise BadOption(
                    f"advance names {name}, which is not a covariate of any model; {', '.join(sorted(known))} are."
                    f"{did_you_mean(name, known)}",
                    option="advance",
                    value=name,
                )
        names = tuple(name for name in names if name in fit.covariates)
    return plan_course(fit, ask.age, names)


def _choose_threshold(asked: int | None, model: CaseModel, case: str) -> int:
    states = model.fit.n_states
    if asked is not None and not 2 <= asked <= states:
        raise BadOption(
            f"threshold is {asked}; a state from 2 to {states} is needed, for the model of {case} knows {states} "
            "states. Choose another, or other components with --only.",
            option="threshold",
            value=asked,
        )
    return check_threshold(asked, states)


def _spread(model: CaseModel, case: str, ask: Ask) -> Spread:
    """Coefficients for intervals; draws of one case are independent of another's."""
    seed = int(generator(ask.seed, "forecast", case).integers(2**63))
    return spread_out(model.fit, ask.intervals, level=ask.level, draws=ask.draws, seed=seed)


def _judge(rows: pl.DataFrame, model: CaseModel, course: Course, base: date | None, members: Members) -> pl.Series:
    """Why each member cannot be forecast, null where it can: the first reason that applies."""
    fit = model.fit
    absent = [name for name in fit.covariates if name not in rows.columns]
    if absent:
        return pl.Series(REASON, [f"there is no column {absent[0]}"] * len(rows), dtype=pl.String)
    worse = f"the state is above {fit.n_states}, the worst of the training rows"
    tests = [(pl.col("state") > fit.n_states, worse)]
    if members.dated:
        late = f"seen after {base}, the day that the forecast counts from"
        unknown = "the day of the last inspection is not known"
        tests += [(pl.col("date").is_null(), unknown), (pl.col("date") > base, late)]
    for name in fit.covariates:
        known = pl.col(name).cast(pl.Float64).is_finite().fill_null(value=False)
        infinite = (~pl.col(name).cast(pl.Float64).is_finite()).fill_null(value=False)
        tests += [(infinite, f"{name} is not a finite number"), (~known, f"{name} is missing")]
    found = pl.coalesce(*(pl.when(fails).then(pl.lit(reason)) for fails, reason in tests))
    reasons = rows.select(found.alias(REASON)).to_series()
    usable = np.flatnonzero(reasons.is_null().to_numpy())
    refused = _find_refused(rows[usable], fit, course)
    if refused:
        places = [int(usable[place]) for place in refused]
        reasons = reasons.scatter(places, list(refused.values()))
    return reasons


def _find_refused(rows: pl.DataFrame, fit: Fit, course: Course) -> dict[int, str]:
    """Rows whose covariates the operator cannot take, now or as they advance, with the reason."""
    if fit.native:
        return {}
    x = take_covariates(rows, fit.covariates)
    gap = rows[GAP].to_numpy() if GAP in rows.columns else 0.0
    last = _refuse(fit, course.ask(x, gap + LONGEST)) if course.moves else {}
    first_step = np.where(gap > 0, np.minimum(gap, YEAR), YEAR)
    return last | _refuse(fit, course.ask(x, 0.0, first_step))


def _refuse(fit: Fit, x: Array) -> dict[int, str]:
    """By halves: an operator says only which row is the first that it cannot take."""
    found, parts = {}, [(0, len(x))]
    while parts:
        first, end = parts.pop()
        try:
            fit.design(x[first:end])
        except OutsideTrainingRange as error:
            if end - first == 1:
                found[first] = f"{fit.scaling.method} cannot take this {error.values['covariate']}"
                continue
            middle = (first + end) // 2
            parts += [(first, middle), (middle, end)]
    return found


def _sum_up(aside: pl.DataFrame) -> str:
    counts = aside.group_by(REASON).len().sort("len", REASON, descending=[True, False])
    return "; ".join(f"{reason}: {count_of(count, 'member')}" for reason, count in counts.rows())


def _remark(members: Members, lots: Sequence[Lot], base: date | None) -> list[str]:
    """What a reader should know of the start."""
    old = [lot.case for lot in lots if lot.fit.survey is None]
    thresholds = ", ".join(f"{lot.case} {lot.threshold}" for lot in lots)
    notes = [_tell_start(members, lots, base), *dict.fromkeys(lot.course.words for lot in lots)]
    if len({lot.threshold for lot in lots}) > 1:
        notes.append(f"years are counted until state 4, or the worst where there are fewer: {thresholds}")
    if old:
        notes.append(
            f"the model{'s' if len(old) > 1 else ''} of {', '.join(old)}: of an earlier version, without the "
            "range of the training rows, so that extrapolation beyond it is not marked"
        )
    notes += [f"{lot.case}: no intervals, because {lot.spread.why}" for lot in lots if lot.spread.why]
    return [*notes, *_compare_labels(members, lots), "repairs to come are not counted: condition only worsens"]


def _tell_start(members: Members, lots: Sequence[Lot], base: date | None) -> str:
    """What year 0 is."""
    if base is None:
        return f"{members.name} has no dates: year 0 is when each member was seen"
    if not members.dated:
        return f"{members.name} has no dates: its states are taken for those of {base}"
    gaps = np.concatenate([lot.rows[GAP].to_numpy() for lot in lots])
    return (
        f"years are counted from {base}; members were last seen up to {gaps.max():.1f} years before, "
        f"{gaps.mean():.1f} on average, and are first carried there"
    )


def _compare_labels(members: Members, lots: Sequence[Lot]) -> list[str]:
    """Where the states of the inventory have other names than those of the model."""
    notes = []
    for lot in lots:
        ours, theirs = lot.model.labels, members.scale and members.scale.names
        if ours and theirs and ours[: lot.fit.n_states] != theirs[: lot.fit.n_states]:
            notes.append(
                f"{lot.case}: the model's states are {', '.join(ours)}, those of {members.name} "
                f"{', '.join(theirs)}; they are taken in this order"
            )
    return notes


Mask = NDArray[np.bool_]


class Remarks:
    """Sentences for each of n members, and how many members have one of a kind."""

    def __init__(self, n: int) -> None:
        self.lines: list[list[str]] = [[] for _ in range(n)]
        self.counts: Counter[str] = Counter()

    def add(self, who: Mask, kind: str, tell: Callable[[int], str]) -> None:
        """A sentence for some of them."""
        places = np.flatnonzero(who).tolist()
        for place in places:
            self.lines[place].append(tell(place))
        if places:
            self.counts[kind] += len(places)

    @property
    def texts(self) -> list[str | None]:
        """All that there is to say of each member."""
        return ["; ".join(lines) or None for lines in self.lines]


def remark(lot: Lot, years: int) -> Remarks:
    """Remarks on the members of a lot within so many years."""
    found = Remarks(len(lot.rows))
    there = f"in state {lot.threshold} or worse already"
    found.add(lot.start >= lot.threshold - 1, there, lambda _: there)
    for column, name in enumerate(lot.fit.covariates):
        _remark_covariate(found, lot, column, name, years)
    return found


def _remark_covariate(found: Remarks, lot: Lot, column: int, name: str, years: int) -> None:
    """Where a covariate is outside the training rows at the beginning, or comes to be."""
    low, high = float(lot.course.low[column]), float(lot.course.high[column])
    gap = np.zeros(len(lot.rows)) if lot.gap is None else lot.gap
    first = lot.course.at(lot.x, gap)[:, column]
    outside = lot.course.outside(lot.x, gap)[:, column]
    found.add(
        outside,
        f"{name} is outside the range of the training rows",
        lambda place: f"{name} {first[place]:,.6g} is outside the training rows ({low:,.6g} to {high:,.6g})",
    )
    if column not in lot.course.columns:
        return
    later = ~outside & (lot.x[:, column] + gap + years > high)
    when = np.floor(high - first) + 1
    if lot.course.age == HELD:
        kind = f"{name} comes to be held at the largest of the training rows"
        found.add(later, kind, lambda place: f"{name} is held at {high:,.6g} from year {when[place]:.0f} on")
    else:
        kind = f"{name} passes the largest of the training rows"
        found.add(
            later,
            kind,
            lambda place: (
                f"{name} passes {high:,.6g}, the largest of the training rows, in year {when[place]:.0f}"
            ),
        )


def find_outside(lot: Lot, years: int) -> Mask:
    """Whether the covariates (n, T) of each year are outside the training rows."""
    n, times = len(lot.rows), years + 1
    gap = 0.0 if lot.gap is None else lot.gap
    found = np.empty((n, times), dtype=bool)
    for year in range(times if lot.course.moves else 1):
        found[:, year] = lot.course.outside(lot.x, gap + year).any(axis=1)
    if not lot.course.moves:
        found[:] = found[:, :1]
    return found
