"""Eligible members: who can be forecast, with which model and from when; the others are excluded with a reason.

A forecast counts its years from one day for all, the base date: each member is first propagated there from its own
last inspection. A list without dates counts from when its members were seen, whenever that was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import (
    BadOption,
    InputError,
    MissingColumns,
    OutsideTrainingRange,
    bad_option,
    count_of,
    did_you_mean,
    missing_columns,
    name_some,
)
from rekka.core.numerics import generator
from rekka.core.ratings import Ratings, plain_labels
from rekka.data.attributes import level_text
from rekka.data.categories import REFUSE, Category, check_coding
from rekka.data.pairing import MONTHS, count_months
from rekka.fleet.lists import MEMBER
from rekka.fleet.members import AGE, Members
from rekka.fleet.models import CaseModel, Matched
from rekka.fleet.shocks import Shocks
from rekka.fleet.visits import chain_visits, find_past
from rekka.forecast.ageing import AGES, HELD, Ageing, plan_ageing
from rekka.forecast.first_passage import LONGEST
from rekka.forecast.forecast import ForecastOptions, check_threshold, explain_records
from rekka.forecast.history_propagation import Past, make_propagator, see_once
from rekka.forecast.propagation import YEAR, Propagator, States
from rekka.forecast.uncertainty import DELTA, Uncertainty, check_intervals, find_uncertainty
from rekka.model.clock import AGE_NAMES
from rekka.model.fit import Fit

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

GAP, REASON, LONG_UNSEEN = "gap_years", "reason", "long_unseen"
UNSEEN_TIMES = 2.0  # a member was last inspected long ago if two inspections of its component would have been due
IDENTITY = ("bridge_id", "case", "member", "row", "column")


@dataclass(frozen=True, kw_only=True)
class InventoryOptions(ForecastOptions):
    """Options of an inventory's forecast."""

    years: int = 30
    threshold: int | str | None = None  # a state or a label; None: what the scale makes usual
    since: date | None = None  # None: the latest inspection of the inventory
    intervals: str = DELTA
    member_intervals: bool | None = None  # None: where that takes less than a minute
    unseen: str | None = None  # levels that no training row has: reference or refuse; None: as the model has it

    def __post_init__(self) -> None:
        if not 1 <= self.years <= LONGEST:
            raise BadOption(
                f"years is {self.years}; a whole number from 1 to {LONGEST} is needed.",
                option="years",
                value=self.years,
            )
        if self.age not in AGES:
            raise bad_option("age", self.age, AGES)
        check_intervals(self.intervals, self.level, self.draws)
        if self.unseen is not None:
            check_coding(self.unseen)


@dataclass(frozen=True, eq=False)
class EligibleGroup:
    """Eligible members of one case, in the order of their names, and what they are forecast with."""

    case: str
    model: CaseModel
    ageing: Ageing
    threshold: int
    uncertainty: Uncertainty
    rows: pl.DataFrame  # of the members, with gap_years and long_unseen where the inventory has dates
    ratings: Ratings
    interval: float | None = None  # usual years between two visits, where known
    visits: pl.DataFrame | None = None  # of the case, in histories, for a model of them
    shocks: Shocks | None = None  # where a wider band was asked for

    @property
    def threshold_label(self) -> str:
        """Label of the threshold."""
        return self.ratings.labels[self.threshold - 1]

    @property
    def fit(self) -> Fit:
        """Fitted model."""
        return self.model.fit

    @property
    def start(self) -> States:
        """States as last seen (n,), 0-based."""
        return self.rows["state"].to_numpy().astype(np.int64) - 1

    @property
    def there(self) -> Mask:
        """Mask (n,) of the members at the threshold or worse when last seen."""
        return self.start >= self.threshold - 1

    @property
    def unseen(self) -> Mask:
        """Mask (n,) of the members that were last inspected long ago."""
        known = LONG_UNSEEN in self.rows.columns
        return self.rows[LONG_UNSEEN].to_numpy() if known else np.zeros(len(self.rows), dtype=bool)

    @property
    def x(self) -> Array:
        """Covariates as last seen (n, p)."""
        return take_covariates(self.rows, self.fit)

    @property
    def gap(self) -> Array | None:
        """Years (n,) from the last inspection to the base date."""
        return self.rows[GAP].to_numpy() if GAP in self.rows.columns else None

    @property
    def improves(self) -> bool:
        """Whether the model has silent improvements."""
        return self.fit.records is not None and self.fit.records.improvements is not None

    @property
    def propagator(self) -> Propagator:
        """Propagator of the members at the estimate."""
        return self.every_set.take_sets(slice(0, 1))

    @property
    def unimproved(self) -> Propagator:
        """Propagator of the members at the estimate, without silent improvements."""
        return make_propagator(
            self.fit, self.x, self.uncertainty.estimate, self.ageing, self.past, improving=False
        )

    @cached_property
    def every_set(self) -> Propagator:
        """Propagator of the members at every set of coefficients."""
        return make_propagator(self.fit, self.x, self.uncertainty, self.ageing, self.past)

    @cached_property
    def past(self) -> Past | None:
        """Visits of the members up to now, for a model of histories."""
        if self.fit.records is None:
            return None
        if self.visits is None:
            return see_once(self.fit, self.start, self.x)
        return find_past(self.rows, self.visits, self.fit, self.x, take_covariates(self.visits, self.fit))


@dataclass(frozen=True, eq=False)
class Eligible:
    """Eligible members of an inventory by case; ``aside`` has the excluded members, each with its reason."""

    members: Members
    options: InventoryOptions
    groups: tuple[EligibleGroup, ...]
    aside: pl.DataFrame
    base: date | None
    notes: tuple[str, ...]
    missing: Mapping[str, str] = field(default_factory=dict)  # why cases of the inventory have no model

    @property
    def size(self) -> int:
        """Number of eligible members."""
        return sum(len(group.rows) for group in self.groups)


def find_eligible(members: Members, matched: Matched, options: InventoryOptions) -> Eligible:
    """Find the eligible members of the matched cases; exclude the others with a reason.

    Members of cases that the user did not select are left out without a reason.
    """
    cases = [*matched.found, *matched.missing]
    frame = members.frame.filter(pl.col("case").is_in(cases))
    _check_columns(members, matched)
    base = _find_base(members, frame, options.since)
    frame = _count_gaps(frame, base, members.dated)
    names = [name for name in IDENTITY if name in frame.columns]
    groups, aside = [], []
    for case in sorted(cases):
        rows = frame.filter(pl.col("case") == case).sort(names, nulls_last=True)
        if case in matched.missing:
            aside.append(rows.with_columns(pl.lit(matched.missing[case]).alias(REASON)))
            continue
        model = matched.found[case]
        if options.unseen is not None and model.fit.coding:
            coding = replace(model.fit.coding, unseen=options.unseen)
            model = replace(model, fit=replace(model.fit, coding=coding))
        ageing = _plan(model, matched, options)
        ratings = _find_ratings(model, members)
        judged = rows.with_columns(_find_reasons(rows, model.fit, ageing, base, members, ratings))
        aside.append(judged.filter(pl.col(REASON).is_not_null()))
        kept = judged.filter(pl.col(REASON).is_null()).drop(REASON)
        interval = members.intervals.get(case, model.fit.clock.mean_years)
        kept = _mark_unseen(kept, _find_recent(members, frame, base), interval)
        if len(kept):
            threshold = _choose_threshold(options.threshold, ratings, case)
            uncertainty = _find_uncertainty(model, case, options)
            visits = _take_visits(members, case, model.fit)
            groups.append(
                EligibleGroup(case, model, ageing, threshold, uncertainty, kept, ratings, interval, visits)
            )
    listed = pl.concat(aside).select(*names, "state", REASON)
    if sum(len(group.rows) for group in groups) + len(listed) != len(frame):
        raise AssertionError("a member was neither forecast nor set aside")
    if not groups:
        counts = listed.group_by(REASON).len().sort("len", REASON, descending=[True, False])
        reasons = "; ".join(f"{reason}: {count_of(count, 'member')}" for reason, count in counts.rows())
        raise InputError(f"{members.name}: no member can be forecast ({reasons}).")
    notes = tuple(_list_notes(members, groups, base, options))
    return Eligible(members, options, tuple(groups), listed, base, notes, matched.missing)


def _take_visits(members: Members, case: str, fit: Fit) -> pl.DataFrame | None:
    """Pairs of visits of a case in histories, for a model of histories; None where there are none."""
    if fit.records is None or members.pairs is None or not {"case", "bridge_id"} <= set(members.pairs.columns):
        return None
    known = [name for name in MEMBER if name in members.pairs.columns]
    pairs = members.pairs.with_columns(pl.col(known).cast(pl.String).fill_null(""))
    return chain_visits(pairs.filter(pl.col("case") == case), fit)


def take_covariates(rows: pl.DataFrame, fit: Fit) -> Array:
    """Covariates as numbers (n, p)."""
    rows = fit.coding.code(rows.lazy()).collect() if fit.coding else rows
    columns = [rows[name].cast(pl.Float64).to_numpy() for name in fit.covariates]
    return np.column_stack(columns) if columns else np.empty((len(rows), 0))


def _check_columns(members: Members, matched: Matched) -> None:
    """Refuse an inventory that has the covariates of no model."""
    lacking = [
        [name for name in model.fit.columns if name not in members.frame.columns]
        for model in matched.found.values()
    ]
    if not all(lacking):
        return
    ages = [name for name in lacking[0] if name == AGE]
    if ages and not members.dated:
        raise MissingColumns(
            f"{members.name} has no dates, and the models need {AGE}: the years from completion to the last "
            f"inspection. Name the column of its date (--date COLUMN), or give a column {AGE}.",
            missing=ages,
            present=list(members.covariates),
        )
    raise missing_columns(lacking[0], members.covariates, members.name)


def _find_base(members: Members, frame: pl.DataFrame, since: date | None) -> date | None:
    """Find the base date: as given, or the latest inspection that is not in the future, which is a slip."""
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


def _find_recent(members: Members, frame: pl.DataFrame, base: date | None) -> date | None:
    """Find the day that "last inspected long ago" counts back from: the latest inspection up to the base date."""
    latest = frame["date"].filter(frame["date"] <= base).max() if members.dated and base else None
    return latest if isinstance(latest, date) else None


def _mark_unseen(rows: pl.DataFrame, recent: date | None, interval: float | None) -> pl.DataFrame:
    """Mark members whose last visit is more than twice the usual interval before the most recent inspections."""
    if recent is None:
        return rows
    now = pl.DataFrame({"date": [recent]}).select(count_months("date")).item()
    years = (now - count_months("date")) / MONTHS
    late = pl.lit(value=False) if interval is None else years > UNSEEN_TIMES * interval
    return rows.with_columns(late.alias(LONG_UNSEEN))


def _count_gaps(frame: pl.DataFrame, base: date | None, dated: bool) -> pl.DataFrame:
    """Add the years from each member's last inspection to the base date, by the calendar."""
    if base is None or not dated:
        return frame
    until = pl.DataFrame({"date": [base]}).select(count_months("date")).item()
    return frame.with_columns(((until - count_months("date")) / MONTHS).alias(GAP))


def _plan(model: CaseModel, matched: Matched, options: InventoryOptions) -> Ageing:
    """Plan the ageing of a model's covariates: of the names that were given, those that it has."""
    names = options.advance
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
        names = tuple(name for name in names if name in model.fit.covariates)
    return plan_ageing(model.fit, options.age, names)


def _find_ratings(model: CaseModel, members: Members) -> Ratings:
    """Ratings of a component: as the inventory calls them, if it names all that the model knows, or the model."""
    known = [names for names in (members.scale and members.scale.names, model.labels) if names]
    whole = next((names for names in known if len(names) >= model.fit.n_states), None)
    return Ratings.of(whole or max(known, key=len, default=None), model.fit.n_states)


def _choose_threshold(asked: int | str | None, ratings: Ratings, case: str) -> int:
    states = len(ratings.labels)
    if isinstance(asked, int) and not 2 <= asked <= states:
        raise BadOption(
            f"threshold is {asked}; a state from 2 to {states} is needed, for the model of {case} knows {states} "
            "states. Choose another, or other components with --only.",
            option="threshold",
            value=asked,
        )
    try:
        return check_threshold(asked, states, ratings.labels)
    except BadOption as error:
        raise BadOption(f"{case}: {error}", **error.values) from None


def _find_uncertainty(model: CaseModel, case: str, options: InventoryOptions) -> Uncertainty:
    """Sets of coefficients for intervals; draws of one case are independent of another's."""
    seed = int(generator(options.seed, "forecast", case).integers(2**63))
    return find_uncertainty(model.fit, options.intervals, level=options.level, draws=options.draws, seed=seed)


def _find_reasons(
    rows: pl.DataFrame, fit: Fit, ageing: Ageing, base: date | None, members: Members, ratings: Ratings
) -> pl.Series:
    """First reason why each member cannot be forecast, null where it can."""
    absent = [name for name in fit.columns if name not in rows.columns]
    if absent:
        return pl.Series(REASON, [f"there is no column {absent[0]}"] * len(rows), dtype=pl.String)
    worse = f"the rating is worse than {ratings.name(fit.n_states)}, the worst of the training rows"
    tests = [(pl.col("state") > fit.n_states, worse)]
    if members.dated:
        late = f"seen after {base}, the day that the forecast counts from"
        unknown = "the day of the last inspection is not known"
        tests += [(pl.col("date").is_null(), unknown), (pl.col("date") > base, late)]
    for category in fit.coding.categories:
        text = level_text(category.name, rows.schema)
        unseen = category.find_unseen(text) & (fit.coding.unseen == REFUSE)
        tests += [
            (category.spell(text).is_null(), f"{category.name} is missing"),
            (unseen, f"no training row has this {category.name}"),
        ]
    for name in (name for name in fit.covariates if name not in fit.coding.terms):
        finite = pl.col(name).cast(pl.Float64).is_finite()
        tests += [(~finite, f"{name} is not a finite number"), (finite.is_null(), f"{name} is missing")]
    found = pl.coalesce(*(pl.when(fails).then(pl.lit(reason)) for fails, reason in tests))
    reasons = rows.select(found.alias(REASON)).to_series()
    usable = np.flatnonzero(reasons.is_null().to_numpy())
    refused = find_refused(rows[usable], fit, ageing)
    return (
        reasons.scatter([int(usable[place]) for place in refused], list(refused.values())) if refused else reasons
    )


def find_refused(rows: pl.DataFrame, fit: Fit, ageing: Ageing) -> dict[int, str]:
    """Find rows whose covariates the operator cannot take, now or as they advance, with the reason."""
    if fit.native:
        return {}
    x = take_covariates(rows, fit)
    gap = rows[GAP].to_numpy() if GAP in rows.columns else 0.0
    last = _refuse(fit, ageing.model_input(x, gap + LONGEST)) if ageing.moves else {}
    first_step = np.where(gap > 0, np.minimum(gap, YEAR), YEAR)
    return last | _refuse(fit, ageing.model_input(x, 0.0, first_step))


def _refuse(fit: Fit, x: Array) -> dict[int, str]:
    """Find refused rows by halves: an operator names only the first row that it cannot take."""
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


def _list_notes(
    members: Members, groups: Sequence[EligibleGroup], base: date | None, options: InventoryOptions
) -> list[str]:
    """Notes on how the forecast starts."""
    old = [group.case for group in groups if group.fit.survey is None]
    notes = [_describe_start(members, groups, base), *dict.fromkeys(group.ageing.words for group in groups)]
    notes += _explain_thresholds(groups, options)
    if old:
        notes.append(
            f"the model{'s' if len(old) > 1 else ''} of {', '.join(old)}: of an earlier version, without the "
            "range of the training rows, so that extrapolation beyond it is not marked"
        )
    notes += [f"{one.case}: no intervals, because {one.uncertainty.why}" for one in groups if one.uncertainty.why]
    for group in groups:
        ours, theirs = group.model.labels, members.scale and members.scale.names
        known = group.fit.n_states
        if ours and theirs and plain_labels(ours[:known]) != plain_labels(theirs[:known]):
            notes.append(
                f"{group.case}: the model's states are {', '.join(ours)}, those of {members.name} "
                f"{', '.join(theirs)}; they are taken in this order"
            )
    notes += dict.fromkeys(
        f"{sentence[0].lower()}{sentence[1:].removesuffix('.')}"
        for group in groups
        for sentence in explain_records(group.fit, typical=False)
    )
    if any(group.improves for group in groups):
        return [*notes, "repairs to come are not counted, but small ones without a record as said above"]
    return [*notes, "repairs to come are not counted: condition only worsens"]


def _explain_thresholds(groups: Sequence[EligibleGroup], options: InventoryOptions) -> list[str]:
    """Notes on the threshold, and on which number in the files is which rating."""
    given = options.threshold is not None
    told: dict[str, list[str]] = {}
    for group in groups:
        told.setdefault(group.ratings.explain_threshold(group.threshold, given=given), []).append(group.case)
    notes = [f"{', '.join(cases)}: {one}" if len(told) > 1 else one for one, cases in told.items() if one]
    if not notes and len({group.threshold for group in groups}) > 1:
        each = ", ".join(f"{group.case} {group.threshold}" for group in groups)
        notes.append(f"years are counted until rating 4, or the worst where there are fewer: {each}")
    widest = max((group.ratings for group in groups), key=lambda one: len(one.labels))
    if not widest.numbered:
        names = ", ".join(f"{number} is {label}" for number, label in enumerate(widest.labels, start=1))
        notes.append(f"in the files ratings have their label and a number from 1, the best: {names}")
    return notes


def _describe_start(members: Members, groups: Sequence[EligibleGroup], base: date | None) -> str:
    """Describe year 0."""
    if base is None:
        return f"{members.name} has no dates: year 0 is when each member was seen"
    if not members.dated:
        return f"{members.name} has no dates: its states are taken for those of {base}"
    gaps = np.concatenate([group.rows[GAP].to_numpy() for group in groups])
    return (
        f"years are counted from {base}; members were last seen up to {gaps.max():.1f} years before, "
        f"{gaps.mean():.1f} on average, and are first carried there"
    )


class Remarks:
    """Sentences on each of n members, and the number of members that each kind of sentence applies to."""

    def __init__(self, n: int) -> None:
        self.lines: list[list[str]] = [[] for _ in range(n)]
        self.counts: Counter[str] = Counter()

    def add(self, who: Mask, kind: str, describe: Callable[[int], str]) -> None:
        """Add a sentence to the members of a mask (n,)."""
        places = np.flatnonzero(who).tolist()
        for place in places:
            self.lines[place].append(describe(place))
        if places:
            self.counts[kind] += len(places)

    @property
    def texts(self) -> list[str | None]:
        """All sentences on each member in one text."""
        return ["; ".join(lines) or None for lines in self.lines]


def list_remarks(group: EligibleGroup, years: int) -> Remarks:
    """Remarks on the members of a group: there already, last inspected long ago, outside the training rows."""
    found = Remarks(len(group.rows))
    there = f"rated {group.ratings.or_worse(group.threshold)} already"
    found.add(group.there, there, lambda _: there)
    unseen = f"last inspected long ago (usual: every {group.interval or 0.0:.3g} years)"
    found.add(group.unseen, unseen, lambda _: unseen)
    for column, name in enumerate(group.fit.covariates):
        _remark_covariate(found, group, column, name, years)
    for category in group.fit.coding.categories:
        _remark_level(found, group, category)
    return found


def _remark_level(found: Remarks, group: EligibleGroup, category: Category) -> None:
    """Remark on a level that no training row has, and that is taken as the reference."""
    text = level_text(category.name, group.rows.schema)
    levels, unseen = group.rows.select(category.spell(text)).to_series(), find_unseen(group, category)
    names = name_some(levels.filter(pl.Series(unseen)).unique().sort().to_list())
    found.add(
        unseen,
        f"{category.name} {names}: in no training row, taken as {category.reference}",
        lambda place: f"{category.name} {levels[place]}: no training row has it, taken as {category.reference}",
    )


def find_unseen(group: EligibleGroup, category: Category) -> Mask:
    """Mask (n,) of members with a level that no training row has."""
    unseen = category.find_unseen(level_text(category.name, group.rows.schema))
    return np.asarray(group.rows.select(unseen).to_series().to_numpy(), dtype=bool)


def _remark_covariate(found: Remarks, group: EligibleGroup, column: int, name: str, years: int) -> None:
    """Remark on a covariate that is outside the training rows at the base date, or within the years."""
    low, high = float(group.ageing.low[column]), float(group.ageing.high[column])
    gap = np.zeros(len(group.rows)) if group.gap is None else group.gap
    first = group.ageing.at(group.x, gap)[:, column]
    outside = group.ageing.outside(group.x, gap)[:, column]
    found.add(
        outside,
        f"{name} is outside the range of the training rows",
        lambda place: f"{name} {_show(first[place])} is outside the training rows ({_show(low)} to {_show(high)})",
    )
    if column not in group.ageing.columns:
        return
    later = ~outside & ~group.there & (group.x[:, column] + gap + years > high)
    when = np.floor(high - first) + 1
    kind = f"{name} passes the largest of the training rows"
    text = f"{name} passes {_show(high)}, the largest of the training rows, in year {{:.0f}}"
    if name in AGE_NAMES:
        kind = "comes to be older than any in the data"
        text = f"older than any in the data ({_show(high)} years) from year {{:.0f}} on"
    if group.ageing.age == HELD:
        kind = f"{name} comes to be held at the largest of the training rows"
        text = f"{name} is held at {_show(high)} from year {{:.0f}} on"
    found.add(later, kind, lambda place: text.format(when[place]))


def _show(value: float) -> str:
    """A value with three digits, or as a whole number where it has more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def find_outside(group: EligibleGroup, years: int) -> Mask:
    """Mask (n, T) of years in which covariates are outside the training rows."""
    gap = 0.0 if group.gap is None else group.gap
    unseen = np.zeros((len(group.rows), 1), dtype=bool)
    for category in group.fit.coding.categories:
        unseen |= find_unseen(group, category)[:, None]
    if not group.ageing.moves:
        return np.repeat(unseen | group.ageing.outside(group.x).any(axis=1, keepdims=True), years + 1, axis=1)
    found = [group.ageing.outside(group.x, gap + year).any(axis=1) for year in range(years + 1)]
    return unseen | np.stack(found, axis=1)
