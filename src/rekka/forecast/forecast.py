"""Forecasts of single members: states over the years, years until a state, years in a state, each with intervals.

Two kinds of uncertainty are kept apart. ``low`` and ``high`` are the interval that the uncertainty of the
parameters leaves; it shrinks as records come in. ``predicted_low`` and ``predicted_high`` are the interval in
which one member will be: it adds the chance of the process, and does not shrink below that.

A model of histories forecasts the true condition, and beside it what inspectors will record; with silent
improvements both as if they went on and without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, BadStates, BadValues, did_you_mean, name_rows
from rekka.core.ratings import START, Ratings
from rekka.forecast.ageing import ADVANCES, FIXED, Ageing, plan_ageing
from rekka.forecast.first_passage import LONGEST, find_first_passage, mix
from rekka.forecast.history_propagation import Past, make_propagator
from rekka.forecast.propagation import Propagator, States, propagate
from rekka.forecast.uncertainty import BOOTSTRAP, DRAWS, LOG, LOGIT, NONE, NORMAL, Uncertainty, find_uncertainty
from rekka.model.fit import Fit
from rekka.model.tables import TitledTable, table

Array = NDArray[np.float64]

TEXTS = "UO"  # kinds of arrays that hold texts
NOT_CERTIFIED = "NOT CERTIFIED: the model is where its optimizer stopped, not a certified maximum"


@dataclass(frozen=True)
class ForecastOptions:
    """Options of every forecast: the kind of intervals, their level, draws and seed; and how ages go on.

    ``age`` is "advances", "held" (at the oldest of the training rows) or "fixed"; ``advance`` names the covariates
    that advance, in place of the model's own.
    """

    intervals: str = NORMAL
    level: float = 0.95
    draws: int = DRAWS
    seed: int = 0
    age: str = ADVANCES
    advance: Sequence[str] | None = None

    def find_uncertainty(self, fit: Fit) -> Uncertainty:
        """Sets of coefficients to forecast with."""
        return find_uncertainty(fit, self.intervals, level=self.level, draws=self.draws, seed=self.seed)


DEFAULT = ForecastOptions()
AT_REST = ForecastOptions(age=FIXED)  # covariates stay as they are


@dataclass(frozen=True, eq=False)
class Cohort:
    """Members forecast together: states (n,) 0-based and covariates (n, p) at the start, ageing, uncertainty.

    ``labels`` are those of the states, where known.
    """

    fit: Fit
    start: States
    x: Array
    ageing: Ageing
    uncertainty: Uncertainty
    labels: tuple[str, ...] | None = None
    past: Past | None = None  # visits up to now, for a model of histories; None starts from a true state
    improving: bool = True  # whether silent improvements go on

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, self.fit.n_states)

    @property
    def propagator(self) -> Propagator:
        """Propagator of the members at every set of coefficients."""
        return make_propagator(
            self.fit, self.x, self.uncertainty, self.ageing, self.past, improving=self.improving
        )

    @property
    def unimproved(self) -> Cohort | None:
        """The cohort without silent improvements, at the estimate; None where the model has none."""
        if not self.improving or self.fit.records is None or self.fit.records.improvements is None:
            return None
        return replace(self, improving=False, uncertainty=self.uncertainty.estimate)

    @property
    def certified(self) -> bool:
        """Whether the model is a certified maximum."""
        return self.fit.certificate.certified

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings that belong to every figure."""
        reasons = self.ratings.reword("; ".join(self.fit.certificate.reasons))
        found = [] if self.certified else [f"{NOT_CERTIFIED} ({reasons})."]
        if self.uncertainty.why is not None:
            found.append(f"No intervals: {self.uncertainty.why}.")
        if self.fit.resampled is not None and self.uncertainty.kind == BOOTSTRAP:
            left, asked = len(self.fit.resampled.beta), self.fit.resampled.asked
            found.append(f"Intervals from {left} refits to resampled bridges ({asked - left} had no maximum).")
        return (*found, *explain_records(self.fit, typical=self.past is None))

    @property
    def conditions(self) -> dict[str, Any]:
        """Fields that every result has: level and kind of the intervals, ageing in words, certificate."""
        return {
            "level": self.uncertainty.level,
            "intervals": self.uncertainty.kind,
            "course": self.ageing.words,
            "certified": self.certified,
        }

    def entitle(self, what: str) -> str:
        """Title of a table: the warnings, then its subject, ageing and intervals."""
        return entitle(self.notes, what, self.ageing.words, self.uncertainty.level, self.uncertainty.kind)

    def outside(self, elapsed: float = 0.0) -> NDArray[np.bool_]:
        """Mask (n, p) of covariates outside the range of the training rows ``elapsed`` years later."""
        return self.ageing.outside(self.x, elapsed)


def explain_records(fit: Fit, *, typical: bool) -> tuple[str, ...]:
    """Sentences on what a forecast of a model of histories means; none for other models."""
    records, found = fit.records, []
    if records is None:
        return ()
    if not typical:
        found.append("Members start from what all visits of their bridge say, not from the last rating alone.")
    if records.elements.pattern is not None:
        found.append(
            "These are true conditions; an inspector may record another rating."
            if typical
            else "Condition is the true one; ratings that inspectors will record are given apart."
        )
    if typical and records.frailty_variance:
        found.append("For a bridge that deteriorates as fast as the average (frailty 1).")
    if records.trend is not None:
        found.append(f"Hazards are those of the last training visit ({records.last:.1f}): the trend ends there.")
    if records.improvements is not None:
        found.append("Small repairs without a record go on as before, unless it says without them.")
    return tuple(found)


def entitle(notes: Sequence[str], what: str, course: str, level: float, intervals: str) -> str:
    """Title of a table: the warnings, then its subject, ageing and intervals."""
    shown = "no intervals" if intervals == NONE else f"{level:.0%} intervals: {intervals}"
    return "\n".join([*notes, f"{what}; {course}; {shown}"])


def make_cohort(
    fit: Fit,
    start: States,
    x: Array,
    options: ForecastOptions = DEFAULT,
    labels: Sequence[str] | None = None,
    past: Past | None = None,
) -> Cohort:
    """Cohort of members in states ``start`` (n,), 0-based, with raw covariates x (n, p).

    For a model of histories these are true states, or with ``past`` the ratings of the last visits.
    """
    beyond = np.flatnonzero(start >= fit.n_states)
    if beyond.size:
        raise BadStates(
            f"{name_rows(beyond)}: {_name_beyond(int(start[beyond[0]]) + 1, fit, labels)} and cannot be forecast. "
            "Leave such rows out, or fit with more states.",
            rows=beyond.tolist(),
        )
    known = None if labels is None else tuple(labels)
    ageing = plan_ageing(fit, options.age, options.advance)
    return Cohort(fit, start, x, ageing, options.find_uncertainty(fit), known, past)


def _name_beyond(state: int, fit: Fit, labels: Sequence[str] | None) -> str:
    """'state 6 is above K = 5, the worst state of the training rows,', in labels where there are any."""
    if labels is None or len(labels) < state:
        return f"state {state} is above K = {fit.n_states}, the worst state of the training rows,"
    worst = Ratings.of(labels, fit.n_states).name(fit.n_states)
    return f"rating {labels[state - 1]} is worse than {worst}, the worst of the training rows,"


@dataclass(frozen=True, eq=False)
class Forecast:
    """States of n members at T times in years: ``probability`` (n, T, K), what follows from it, and intervals.

    ``reached`` is the probability of ``threshold`` or worse, ``expected`` the mean state; each has low and high.
    ``predicted_low`` and ``predicted_high`` are the states between which one member will be at that time.
    ``outside`` (n, T) says where covariates have left the range of the training rows: beyond it the model
    extrapolates, and its intervals do not know that. ``labels`` are those of the states, where known.

    A model with errors of inspection forecasts the true state; ``recorded`` (n, T, K) is the probability of each
    rating that an inspector would record then. With silent improvements ``unimproved`` (n, T, K) has the
    probabilities as they would be without them from now on.

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.simulate_transitions(300, n_states=3, seed=1)
    >>> model = rekka.fit_components(rows).models["all"]
    >>> model.forecast(years=[0, 10, 20], intervals="delta").probability.shape
    (1, 3, 3)

    """

    years: Array
    start: States  # 1-based
    threshold: int
    level: float
    intervals: str
    course: str  # ageing, in words
    certified: bool
    notes: tuple[str, ...]
    probability: Array
    probability_low: Array
    probability_high: Array
    expected: Array
    expected_low: Array
    expected_high: Array
    reached: Array
    reached_low: Array
    reached_high: Array
    predicted_low: States
    predicted_high: States
    outside: NDArray[np.bool_]
    labels: tuple[str, ...] | None = None
    recorded: Array | None = None
    recorded_low: Array | None = None
    recorded_high: Array | None = None
    unimproved: Array | None = None

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, self.probability.shape[2])

    def table(self) -> TitledTable:
        """Table with a row for each member and time: probabilities, mean state, threshold, with intervals."""
        n, times, states = self.probability.shape
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), times),
            "start": np.repeat(self.start, times),
            **_label("start_label", np.repeat(self.start, times), self.ratings),
            "years": np.tile(self.years, n),
        }
        for k in range(states):
            columns |= _with_ends(f"p_{k + 1}", self, "probability", (..., k))
        columns |= _with_ends("expected_state", self, "expected")
        columns |= _with_ends(f"p_{self.threshold}_or_worse", self, "reached")
        if self.recorded is not None:
            for k in range(states):
                columns |= _with_ends(f"rated_{k + 1}", self, "recorded", (..., k))
        if self.unimproved is not None:
            without = self.unimproved
            columns["expected_state_without_improvements"] = (without @ np.arange(1.0, states + 1)).ravel()
            reached = without[..., self.threshold - 1 :].sum(axis=-1)
            columns[f"p_{self.threshold}_or_worse_without_improvements"] = reached.ravel()
        columns |= {
            "predicted_low": self.predicted_low.ravel(),
            "predicted_high": self.predicted_high.ravel(),
            "outside": self.outside.ravel(),
            "certified": [self.certified] * (n * times),
        }
        hidden = tuple(
            f"{name}_{k + 1}_{end}" for name in ("p", "rated") for k in range(states) for end in ("low", "high")
        )
        what = "ratings over the years"
        if not self.ratings.numbered:
            names = ", ".join(f"p_{number}: {label}" for number, label in enumerate(self.ratings.labels, start=1))
            what = f"{what} ({names})"
        title = entitle(self.notes, what, self.course, self.level, self.intervals)
        return table(title, columns, hidden=(*hidden, "certified"))

    def __str__(self) -> str:
        return str(self.table())


def _label(column: str, states: Sequence[int] | States, ratings: Ratings) -> dict[str, list[str]]:
    """Column of the labels of states; none where they are the states' numbers."""
    return {} if ratings.numbered else {column: [ratings.labels[state - 1] for state in states]}


def _with_ends(name: str, forecast: Forecast, field: str, place: Any = ...) -> dict[str, Array]:
    ends = {name: "", f"{name}_low": "_low", f"{name}_high": "_high"}
    return {column: getattr(forecast, field + end)[place].ravel() for column, end in ends.items()}


def forecast_rows(
    cohort: Cohort, years: int | Sequence[float] | Array, threshold: int | str | None = None
) -> Forecast:
    """Forecast the states of a cohort; a whole number of years means every year up to it."""
    times = read_years(years)
    worst = check_threshold(threshold, cohort.fit.n_states, cohort.labels)
    propagator = cohort.propagator
    p = np.stack(list(propagate(propagator, cohort.start, times)), axis=2)  # (B, n, T, K)
    uncertainty, states = cohort.uncertainty, cohort.fit.n_states
    expected = p @ np.arange(1, states + 1)
    reached = p[..., worst - 1 :].sum(axis=-1)
    intervals: dict[str, Any] = {}
    intervals["probability_low"], intervals["probability_high"] = uncertainty.interval(p, LOGIT)
    intervals["expected_low"], intervals["expected_high"] = uncertainty.interval(expected, LOGIT, 1, states)
    intervals["reached_low"], intervals["reached_high"] = uncertainty.interval(reached, LOGIT)
    tail = (1.0 - uncertainty.level) / 2
    below = np.cumsum(mix(p) if uncertainty.drawn else p[0], axis=-1)
    outside = np.stack([cohort.outside(time).any(axis=1) for time in times], axis=1)
    if propagator.errs:
        recorded = propagator.record(p)
        intervals["recorded"] = recorded[0]
        intervals["recorded_low"], intervals["recorded_high"] = uncertainty.interval(recorded, LOGIT)
    without = cohort.unimproved
    if without is not None:
        path = propagate(without.propagator, without.start, times)
        intervals["unimproved"] = np.stack([one[0] for one in path], axis=1)
    return Forecast(
        years=times,
        start=cohort.start + 1,
        threshold=worst,
        **cohort.conditions,
        notes=cohort.notes,
        probability=p[0],
        expected=expected[0],
        reached=reached[0],
        **intervals,
        predicted_low=_first_beyond(below, tail),
        predicted_high=_first_beyond(below, 1.0 - tail),
        outside=outside,
        labels=cohort.labels,
    )


def _first_beyond(below: Array, share: float) -> States:
    """Best state, 1-based, up to which at least that share lies; 1e-12 is left to rounding."""
    return np.asarray((below < share - 1e-12).sum(axis=-1) + 1, dtype=np.int64)


def years_until(cohort: Cohort, state: int | str, quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> TitledTable:
    """Table of years until a state or worse: mean and median with intervals, and those of a single member.

    ``predicted_low`` and ``predicted_high`` are the times by which a member gets there with the probabilities that
    the level leaves at both ends; ``q`` columns are quantiles at the estimate.
    """
    worst = check_threshold(state, cohort.fit.n_states, cohort.labels)
    uncertainty, ratings = cohort.uncertainty, cohort.ratings
    tail = (1.0 - uncertainty.level) / 2
    asked = check_quantiles(quantiles)
    wanted = [tail, 0.5, 1.0 - tail, *asked]
    found = find_first_passage(cohort.propagator, cohort.start, worst - 1, wanted, mixed=uncertainty.drawn)
    mean, median = found.mean, found.quantile[..., 1]
    (mean_low, mean_high), (median_low, median_high) = (
        uncertainty.interval(mean, LOG),
        uncertainty.interval(median, LOG),
    )
    return table(
        cohort.entitle(f"years until {ratings.phrase_or_worse(worst)}"),
        {
            "row": np.arange(len(cohort.start)),
            "start": cohort.start + 1,
            **_label("start_label", cohort.start + 1, ratings),
            "state": np.full(len(cohort.start), worst),
            **_label("label", [worst] * len(cohort.start), ratings),
            "mean": mean[0],
            "mean_se": uncertainty.deviation(mean),
            "mean_low": mean_low,
            "mean_high": mean_high,
            "median": median[0],
            "median_low": median_low,
            "median_high": median_high,
            "predicted_low": found.mixed[:, 0],
            "predicted_high": found.mixed[:, 2],
            **{f"q{100 * q:g}": found.quantile[0, :, 3 + place] for place, q in enumerate(asked)},
            **_without_improvements(cohort, worst - 1),
            "certified": [cohort.certified] * len(cohort.start),
        },
        hidden=("certified",),
    )


def _without_improvements(cohort: Cohort, state: int) -> dict[str, Array]:
    """Columns of the mean and median years until a state, 0-based, without silent improvements."""
    without = cohort.unimproved
    if without is None:
        return {}
    found = find_first_passage(without.propagator, without.start, state, [0.5])
    return {"mean_without_improvements": found.mean[0], "median_without_improvements": found.quantile[0, :, 0]}


def years_in_states(cohort: Cohort) -> TitledTable:
    """Table of years in each state, for a member that enters it with its covariates as they are.

    Silent improvements are left out: these are the years until the next worse state.
    """
    n, free = len(cohort.start), cohort.fit.n_states - 1
    found = []
    for k in range(free):
        here = replace(cohort, start=np.full(n, k, dtype=np.int64), improving=False)
        until = years_until(here, k + 2, ()).drop("state", "label", strict=False)
        found.append(until.rename({"start": "state", "start_label": "label"}, strict=False))
    rows = pl.concat(found).sort("row", "state", maintain_order=True)
    return table(cohort.entitle("years in each rating"), rows.to_dict(), hidden=("certified",))


def read_years(years: Any) -> Array:
    """Read times in years: a whole number, or times from 0 on in their order."""
    if isinstance(years, int | np.integer) and not isinstance(years, bool):
        if years < 1:
            raise BadOption(f"years is {years}; a whole number of at least 1 is needed, or a list of times.")
        times = np.arange(years + 1, dtype=float)
    else:
        try:
            times = np.atleast_1d(np.asarray(years, dtype=float)).ravel()
        except (TypeError, ValueError):
            raise BadOption(f"years is {years!r}; a whole number or a list of times in years is needed.") from None
    if not times.size or not np.isfinite(times).all() or (times < 0).any() or (np.diff(times) < 0).any():
        raise BadOption(f"years is {years!r}; times of at least 0, in order, are needed.", option="years")
    if times[-1] > LONGEST:
        raise BadOption(f"years goes to {times[-1]:g}; at most {LONGEST} can be forecast.", option="years")
    return times


def check_threshold(state: int | str | None, n_states: int, labels: Sequence[str] | None = None) -> int:
    """Check the state to be reached, 1-based, or its label; None means what the scale of ratings makes usual."""
    if state is None or isinstance(state, str):
        return Ratings.of(labels, n_states).choose_threshold(state)
    if isinstance(state, bool) or not isinstance(state, int | np.integer) or not 2 <= state <= n_states:
        raise BadOption(
            f"The state to reach is {state!r}; a whole number from 2 to {n_states} (K, the worst state of "
            "the training rows) is needed.",
            option="threshold",
            value=state,
        )
    return int(state)


def check_quantiles(quantiles: Sequence[float]) -> tuple[float, ...]:
    """Check probabilities: each between 0 and 1."""
    for q in quantiles:
        if not 0 < q < 1:
            raise BadOption(f"quantiles holds {q!r}; numbers between 0 and 1 are needed.", option="quantiles")
    return tuple(map(float, quantiles))


def read_start(values: Any, n: int, ratings: Ratings | None = None) -> States:
    """Read start states, 1-based or labels: one for all, or one a row; return them (n,) 0-based."""
    if ratings is not None and np.asarray(values).dtype.kind in TEXTS:
        found = np.array([ratings.find(one, START) for one in np.ravel(values).tolist()])
        values = found if np.ndim(values) else found[0]
    try:
        start = np.broadcast_to(np.asarray(values, dtype=float), (n,))
    except (TypeError, ValueError):
        raise BadOption(f"start is {values!r}; a state, or one for each of {n} rows, is needed.") from None
    bad = np.flatnonzero(~((start >= 1) & (start == np.floor(start))))
    if bad.size:
        raise BadStates(
            f"start is {start[bad[0]]:g} in {name_rows(bad)}; whole numbers from 1, the best state, are needed.",
            rows=bad.tolist(),
        )
    return start.astype(np.int64) - 1


def typical_covariates(fit: Fit, given: Mapping[str, Any] | None = None) -> Array:
    """Covariates (1, p) of a typical member: as given, else the medians of the training rows.

    A category is given by its level; its typical level is the most frequent one.
    """
    given = dict(given or {})
    unknown = [name for name in given if name not in (*fit.covariates, *fit.columns)]
    if unknown:
        raise BadOption(
            f"{unknown[0]} is not a covariate of this model; {', '.join(fit.columns) or 'none'} are."
            f"{did_you_mean(unknown[0], fit.columns)}",
            option="covariates",
            value=unknown[0],
        )
    for category in fit.coding.categories:
        terms = dict.fromkeys(category.terms, 0.0)
        if category.name in given or not set(terms) & set(given):
            terms = category.place(given.pop(category.name, category.typical))
        given = terms | given
    missing = [name for name in fit.covariates if name not in given]
    if missing and fit.survey is None:
        raise BadValues(
            f"{', '.join(missing)}: no value is given, and this model file, of an earlier version, does not know "
            "what is typical. Give every covariate, or fit the model again.",
            column=missing[0],
        )
    texts = [name for name in fit.covariates if isinstance(given.get(name), str)]
    if texts:
        raise BadOption(
            f"{texts[0]} is {given[texts[0]]!r}; a number is needed. Only categories are given by a text.",
            option="covariates",
            value=given[texts[0]],
        )
    typical = dict(zip(fit.covariates, fit.survey.median, strict=True)) if fit.survey is not None else {}
    x = np.array([[float(given.get(name, typical.get(name, np.nan))) for name in fit.covariates]])
    if not np.isfinite(x).all():
        raise BadValues(f"{given!r} holds a value that is missing or infinite; finite numbers are needed.")
    return x
