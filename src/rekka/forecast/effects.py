"""Effects of covariates: how a change of each, by itself, changes the years until a state.

A change is written '+10' or '-10' (so many more or fewer), or 'x2' (so many times). Unless told otherwise, age
changes by ten years, traffic doubles, and any other covariate goes up by a round step, the largest of 1, 2 and 5
times a power of ten within the middle half of the training rows; down where up would leave their range.

All other covariates are typical before and after:

    difference = years(x after) - years(x before),   ratio = years(x after) / years(x before)
    hazard ratio of state k = theta_k(x after) / theta_k(x before)

Both are computed with the same coefficients, set by set, so that the uncertainty they share cancels. Unless told
otherwise covariates stay as they are over the years, which needs no age beyond those of the training rows. Hazard
ratios are those at the start: where age advances they may change later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, did_you_mean
from rekka.core.ratings import START, Ratings
from rekka.data.categories import Category
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.forecast import (
    AT_REST,
    Cohort,
    ForecastOptions,
    check_threshold,
    make_cohort,
    typical_covariates,
)
from rekka.forecast.matrices import describe_intervals, list_outside, list_passing
from rekka.forecast.uncertainty import DELTA, LOG, Uncertainty
from rekka.model.clock import AGE_NAMES
from rekka.model.fit import Fit
from rekka.model.inference import normal_quantile
from rekka.model.tables import TitledTable, table

Array = NDArray[np.float64]

YEARS_OF_AGE, TIMES_TRAFFIC = 10.0, 2.0  # usual changes
TRAFFIC = "traffic_mean"
QUARTERS = (25, 75)  # percent: the middle half
ROUND = (5.0, 2.0, 1.0)  # times a power of ten
COUNTS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
MINUS = ("-", "\u2212")
_WRITTEN = re.compile(r"\s*(?P<sign>[+\-xX*\u00d7\u2212])\s*(?P<number>\S.*)")


class Noun(NamedTuple):
    """Words for a covariate: one unit, many units, and the whole."""

    one: str
    many: str
    whole: str


NOUNS = dict.fromkeys(AGE_NAMES, Noun("year of age", "years of age", "age")) | {
    "bridge_length": Noun("metre of length", "metres of length", "length"),
    "bridge_width": Noun("metre of width", "metres of width", "width"),
    "bridge_area": Noun("square metre of area", "square metres of area", "area"),
    TRAFFIC: Noun("vehicle a day", "vehicles a day", "traffic"),
}


@dataclass(frozen=True)
class Change:
    """Change of one covariate: ``amount`` is added, or is a factor where ``times``."""

    covariate: str
    amount: float
    times: bool = False
    level: str | None = None  # of a category, in place of the level ``instead``
    instead: str | None = None

    def apply(self, value: float) -> float:
        """Value after the change."""
        return value * self.amount if self.times else value + self.amount

    def change(self, fit: Fit, x: Array) -> Array:
        """Raw covariates (p,) after the change of x (p,)."""
        changed = x.copy()
        if self.level is None:
            place = fit.covariates.index(self.covariate)
            changed[place] = self.apply(float(x[place]))
        else:
            category = fit.coding.find(self.covariate)
            assert category is not None  # or there would be no level
            for term, value in category.place(self.level).items():
                changed[fit.covariates.index(term)] = value
        return changed

    @property
    def written(self) -> str:
        """Change as it is given: '+10', 'x2', 'steel'."""
        if self.level is not None:
            return self.level
        return f"x{self.amount:g}" if self.times else f"{self.amount:+g}"

    @property
    def spelled(self) -> str:
        """Change as text for a cell, which a spreadsheet must not take for a formula: 'plus 10', 'times 2'."""
        if self.level is not None:
            return f"{self.level} instead of {self.instead}"
        if self.times:
            return f"times {self.amount:g}"
        return f"{'plus' if self.amount > 0 else 'minus'} {abs(self.amount):g}"

    @property
    def plural(self) -> bool:
        """Whether the words take a verb in the plural."""
        return not self.times and self.covariate in NOUNS and abs(self.amount) != 1

    @property
    def words(self) -> str:
        """Subject of a sentence: 'Ten more years of age', 'Twice the traffic', 'An increase of load by 5'."""
        if self.level is not None:
            return f"{self.covariate} {self.level} instead of {self.instead}"
        noun = NOUNS.get(self.covariate)
        if self.times:
            return f"{_say_times(self.amount)} the {noun.whole if noun else self.covariate}"
        size, more = abs(self.amount), self.amount > 0
        if noun is None:
            return f"{'An increase' if more else 'A decrease'} of {self.covariate} by {size:,.10g}"
        return f"{_say_count(size)} {'more' if more else 'fewer'} {noun.one if size == 1 else noun.many}"


def plan_changes(fit: Fit, x: Array, given: Mapping[str, str | float] | None = None) -> tuple[Change, ...]:
    """Plan a change for each covariate, from raw covariates x (p,): the one given, or the usual one."""
    named = dict(given or {})
    for name in named:
        if name not in fit.columns:
            raise BadOption(
                f"changes names {name}, which is not a covariate of this model; "
                f"{', '.join(fit.columns) or 'none'} are.{did_you_mean(name, fit.columns)}",
                option="changes",
                value=name,
            )
    found: list[Change] = []
    for name in fit.columns:
        category = fit.coding.find(name)
        if category is not None:
            now = str(fit.describe(x)[name])
            found += _list_levels(fit, category, now, named.get(name))
            continue
        place = fit.covariates.index(name)
        change = read_change(name, named[name]) if name in named else _choose_change(fit, place, float(x[place]))
        if change.apply(float(x[place])) == x[place]:
            raise BadOption(
                f"{change.written} leaves {name} at {x[place]:g}, where it is. Give a number to add, such as +1, "
                "or another value to start from.",
                option="changes",
                value=name,
            )
        found.append(change)
    return tuple(found)


def _list_levels(fit: Fit, category: Category, now: str, wanted: object) -> list[Change]:
    """A change to each other level, or to the one that is wanted; 'steel instead of concrete'."""
    levels = [level for level in (category.reference, *category.kept) if level != now]
    if wanted is not None:
        levels = [str(fit.coding.collapse(category.place(wanted))[category.name])]
        if levels == [now]:
            raise BadOption(
                f"changes gives {wanted!r} for {category.name}, which is {now} already. Give another level.",
                option="changes",
                value=wanted,
            )
    return [Change(category.name, math.nan, level=level, instead=now) for level in levels]


def read_change(name: str, written: str | float) -> Change:
    """Read a change as it is written: '+10', '-10', 'x2'; a number is added."""
    text = written if isinstance(written, str) else f"{float(written):+}"
    found = _WRITTEN.fullmatch(text)
    sign = found["sign"] if found else "+"
    try:
        number = float(found["number"]) if found else math.nan
    except ValueError:
        number = math.nan
    number, times = (-number, False) if sign in MINUS else (number, sign != "+")
    if not math.isfinite(number) or number == 0 or (times and number < 0):
        raise BadOption(
            f"changes gives {written!r} for {name}; +10 or -10 is needed to add, x2 to multiply.",
            option="changes",
            value=written,
        )
    return Change(name, number, times)


def round_step(width: float) -> float:
    """Largest of 1, 2 and 5 times a power of ten within a width; 1 where there is none."""
    if not (math.isfinite(width) and width > 0):
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in ROUND if factor * power <= width * (1 + 1e-9))


def _choose_change(fit: Fit, place: int, value: float) -> Change:
    name = fit.covariates[place]
    if name in AGE_NAMES:
        return Change(name, YEARS_OF_AGE)
    if name == TRAFFIC and value != 0:
        return Change(name, TIMES_TRAFFIC, times=True)
    if fit.survey is None:
        raise BadOption(
            f"There is no usual change of {name}: this model file, of an earlier version, does not know the "
            "quartiles of its training rows. Say what changes (+5, x2), or fit the model again.",
            option="changes",
            value=name,
        )
    low, high = (float(fit.survey.quantiles[place, percent]) for percent in QUARTERS)
    step = round_step(high - low)
    down = value + step > fit.survey.high[place] and value - step >= fit.survey.low[place]
    return Change(name, -step if down else step)


def _say_count(size: float) -> str:
    """'Ten', '20', '2.5'."""
    return COUNTS[int(size)] if size == int(size) and size < len(COUNTS) else f"{size:,.10g}"


def _say_times(factor: float) -> str:
    """'Twice', 'Half', '1.5 times'."""
    named = {2.0: "Twice", 0.5: "Half"}
    return named[factor] if factor in named else f"{_say_count(factor)} times"


HALF = 0.5
MOST_DECIMALS = 3  # of years in a sentence
LONGEST_TOLD = 10_000.0  # years
SHOWN = (  # columns that are printed: all of them would not fit any page
    "covariate",
    "change",
    "mean_years_before",
    "mean_years_after",
    "mean_years_difference",
    "mean_years_difference_low",
    "mean_years_difference_high",
    "mean_ratio",
)


class Estimate(NamedTuple):
    """Estimate with its interval, NaN where there is none."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return bool(self.low > 0 or self.high < 0)


@dataclass(frozen=True, eq=False)
class Effect:
    """Effect of one change: mean and median years before and after, difference, ratio; hazard ratios by state."""

    change: Change
    before: float  # of the covariate; NaN for a category
    after: float
    mean_before: Estimate
    mean_after: Estimate
    mean_difference: Estimate
    mean_ratio: Estimate
    median_before: Estimate
    median_after: Estimate
    median_difference: Estimate
    median_ratio: Estimate
    hazard_ratios: tuple[Estimate, ...]


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of all covariates, each changed by itself; states are 1-based.

    ``covariates`` are those before any change. ``notes`` are warnings.
    """

    start: int
    threshold: int
    covariates: dict[str, float | str]
    effects: tuple[Effect, ...]
    level: float
    intervals: str
    course: str
    certified: bool
    notes: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def journey(self) -> str:
        """'from rating 1 to 4 or worse', in the labels of the states where they have any."""
        return name_journey(self.ratings, self.start, self.threshold)

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, max(len(self.labels), self.threshold))

    def sentences(self) -> tuple[str, ...]:
        """Sentences, one for each covariate."""
        return tuple(describe_effect(effect, self.journey, self.level) for effect in self.effects)

    def table(self) -> TitledTable:
        """Table with a row for each covariate: years before and after, difference, ratio, hazard ratios."""
        rows = [_row_of(effect) | {"certified": self.certified} for effect in self.effects]
        intervals = describe_intervals(self.level, self.intervals)
        what = (
            f"effects on the years {self.journey}; {self.course}; {intervals}\n"
            "ratios are after / before; hazard ratios are of leaving each rating, at the outset"
        )
        frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.selectors.float().fill_nan(None))
        hidden = tuple(name for name in frame.columns if name not in SHOWN)
        return table("\n".join([*self.notes, what]), frame.to_dict(), hidden=hidden)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, None where there is no number."""
        names = ("start", "threshold", "covariates", "level", "intervals", "course", "certified")
        found = {name: getattr(self, name) for name in names}
        for name in ("start", "threshold"):
            found[f"{name}_label"] = self.ratings.labels[found[name] - 1]
        found |= {"labels": list(self.labels), "notes": list(self.notes)}
        rows = self.table().drop("certified", strict=False).to_dicts()  # none without covariates
        return found | {
            "effects": [row | {"told": told} for row, told in zip(rows, self.sentences(), strict=True)]
        }


def marginal_effects(
    fit: Fit,
    options: ForecastOptions = AT_REST,
    *,
    start: int | str = 1,
    threshold: int | str | None = None,
    changes: Mapping[str, str | float] | None = None,
    at: Mapping[str, float] | None = None,
    labels: Sequence[str] | None = None,
) -> Effects:
    """Effects of changing each covariate by itself on the years from ``start`` until ``threshold`` or worse.

    ``changes`` are written '+10' or 'x2', by covariate; ``at`` has the values of covariates that are not to be
    typical before the change.
    """
    worst = check_threshold(threshold, fit.n_states, labels)
    first = check_start(start, worst, fit.n_states, labels)
    x = typical_covariates(fit, at)[0]
    planned = plan_changes(fit, x, changes)
    rows = np.tile(x, (1 + len(planned), 1))
    for place, change in enumerate(planned):
        rows[1 + place] = change.change(fit, x)
    cohort = make_cohort(fit, np.full(len(rows), first - 1, dtype=np.int64), rows, options, labels)
    with np.errstate(over="ignore"):  # years may be without end
        passage = find_first_passage(cohort.propagator, cohort.start, worst - 1, [HALF])
    found = tuple(
        _make_effect(cohort, change, 1 + place, passage.mean, passage.quantile[..., 0])
        for place, change in enumerate(planned)
    )
    return Effects(
        start=first,
        threshold=worst,
        covariates=fit.describe(x),
        effects=found,
        **cohort.conditions,
        notes=(
            *cohort.notes,
            *_list_remarks(cohort, planned, float(passage.quantile[0, 0, 0])),
            *filter(None, [cohort.ratings.explain_threshold(worst, given=threshold is not None)]),
        ),
        labels=tuple(labels[: fit.n_states]) if labels is not None else (),
    )


def check_start(
    start: int | str, threshold: int, n_states: int | None = None, labels: Sequence[str] | None = None
) -> int:
    """State to start from, 1-based; refused where it is none, or is not better than the state to be reached."""
    ratings = Ratings.of(labels, threshold if n_states is None else n_states)
    found = ratings.find(start, START) if isinstance(start, str) else start
    if isinstance(found, bool) or not isinstance(found, int | np.integer) or not 1 <= found < threshold:
        needed = f"a state from 1 to {threshold - 1}"
        if not ratings.numbered:
            needed = f"a rating from {ratings.labels[0]} to {ratings.labels[threshold - 2]}"
        raise BadOption(
            f"start is {start!r}; {needed} is needed, better than {ratings.name(threshold)}, which is to be "
            "reached.",
            option="start",
            value=start,
        )
    return int(found)


def name_journey(ratings: Ratings, start: int, threshold: int) -> str:
    """'from rating 1 to 4 or worse'."""
    return f"from {ratings.phrase(start)} to {ratings.or_worse(threshold)}"


def _row_of(effect: Effect) -> dict[str, Any]:
    """Row of the table: all estimates with their intervals."""
    row: dict[str, Any] = {
        "covariate": effect.change.covariate,
        "change": effect.change.spelled,
        "before": effect.before,
        "after": effect.after,
    }
    for kind in ("mean", "median"):
        for what in ("before", "after", "difference"):
            row |= _spell(f"{kind}_years_{what}", getattr(effect, f"{kind}_{what}"))
        row |= _spell(f"{kind}_ratio", getattr(effect, f"{kind}_ratio"))
    for state, ratio in enumerate(effect.hazard_ratios, start=1):
        row |= _spell(f"hazard_ratio_{state}", ratio)
    return row


def _spell(name: str, figure: Estimate) -> dict[str, float]:
    return {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}


def _make_effect(cohort: Cohort, change: Change, row: int, mean: Array, median: Array) -> Effect:
    """Effect from years (B, n): those of the row that was changed, against the first, which was not."""
    uncertainty, x = cohort.uncertainty, cohort.x
    figures: dict[str, Estimate] = {}
    for name, years in (("mean", mean), ("median", median)):
        before, after = years[:, 0], years[:, row]
        with np.errstate(invalid="ignore", over="ignore"):
            difference, ratio = after - before, after / before
        figures |= {
            f"{name}_before": _estimate(uncertainty, before),
            f"{name}_after": _estimate(uncertainty, after),
            f"{name}_difference": _estimate_plainly(uncertainty, difference),
            f"{name}_ratio": _estimate(uncertainty, ratio),
        }
    design = cohort.fit.design(x[[0, row]])
    with np.errstate(over="ignore"):
        ratios = cohort.fit.family.ratios(design[0], design[1], uncertainty.coefficients)
    value, changed = (cohort.fit.describe(x[one])[change.covariate] for one in (0, row))
    return Effect(
        change=change,
        before=math.nan if isinstance(value, str) else value,
        after=math.nan if isinstance(changed, str) else changed,
        **figures,
        hazard_ratios=tuple(_estimate(uncertainty, ratio) for ratio in ratios.T),
    )


def _estimate(uncertainty: Uncertainty, values: Array) -> Estimate:
    """Estimate of a positive quantity (B,), with its interval on the logarithmic scale."""
    with np.errstate(invalid="ignore"):
        low, high = uncertainty.interval(values, LOG)
    return Estimate(float(values[0]), float(low), float(high))


def _estimate_plainly(uncertainty: Uncertainty, values: Array) -> Estimate:
    """Estimate of a quantity (B,) of any sign, with its interval on its own scale."""
    if uncertainty.kind != DELTA:
        return _estimate(uncertainty, values)  # quantiles are the same on every scale
    with np.errstate(invalid="ignore"):
        width = normal_quantile(uncertainty.level) * float(uncertainty.deviation(values))
    return Estimate(float(values[0]), float(values[0]) - width, float(values[0]) + width)


def _list_remarks(cohort: Cohort, planned: Sequence[Change], years: float) -> tuple[str, ...]:
    """Sentences on where the model extrapolates: before, after a change, over the years."""
    fit, x = cohort.fit, cohort.x
    before = list_outside(fit, cohort.ageing, x[0])
    after = [told for row in x[1:] for told in list_outside(fit, cohort.ageing, row) if told not in before]
    with_change = [f"After the change {told}" for told in after]
    first = replace(cohort, start=cohort.start[:1], x=x[:1])
    return (*before, *with_change, *list_passing(first, years))


def describe_effect(effect: Effect, journey: str, level: float) -> str:
    """Describe an effect on the mean years in a sentence."""
    before, after, by = effect.mean_before.value, effect.mean_after.value, effect.mean_difference
    subject = effect.change.words
    has, ending = ("have", "") if effect.change.plural else ("has", "s")
    places = _find_decimals(by)
    first, last = (show_years(value, places) for value in (before, after))
    if max(before, after) > LONGEST_TOLD:
        return (
            f"{subject}: the mean time {journey} is {first} years before and {last} after, so that no difference "
            "can be given."
        )
    if by == (0.0, 0.0, 0.0) or (by.value == 0.0 and np.isnan(by.low)):
        return f"{subject} {has} no effect on the mean time {journey} in this model, which is {first} years."
    if not np.isnan(by.low) and not by.clear:
        low, middle, high = (show_years(value, places, "+") for value in (by.low, by.value, by.high))
        return (
            f"{subject} {has} no clear effect on the mean time {journey}: {first} years before, {last} after, a "
            f"difference of {middle} years ({100 * level:.6g} %: {low} to {high})."
        )
    near, far = (show_years(end, places) for end in sorted(abs(end) for end in (by.low, by.high)))
    ends = "" if np.isnan(by.low) else f" ({100 * level:.6g} %: {near} to {far})"
    return (
        f"{subject} {'shorten' if by.value < 0 else 'lengthen'}{ending} the mean time {journey} from {first} to "
        f"{last} years, by {show_years(abs(by.value), places)} years{ends}."
    )


def show_years(value: float, places: int = 1, sign: str = "") -> str:
    """Format years with so many decimals; beyond 10,000 years the number is not spelled out."""
    if abs(value) > LONGEST_TOLD:
        return f"{'less than -' if value < 0 else 'more than '}{LONGEST_TOLD:,.0f}"
    return f"{value:{sign},.{places}f}"


def _find_decimals(by: Estimate) -> int:
    """Decimals, one to three, with which no figure other than 0 looks like 0."""
    least = min((abs(one) for one in by if np.isfinite(one) and one != 0), default=1.0)
    return next((places for places in range(1, MOST_DECIMALS) if least >= HALF * 10.0**-places), MOST_DECIMALS)
