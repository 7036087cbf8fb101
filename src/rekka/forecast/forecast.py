"""Forecasts of single members: states over the years, years until a state, years in a state, each with intervals.

Two kinds of doubt are kept apart. ``low`` and ``high`` bound what is not known of the parameters; they shrink as
records come in. ``predicted_low`` and ``predicted_high`` bound what one member will do: they hold the parameters'
doubt and the process's own chance, and do not shrink below the latter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, BadStates, BadValues, did_you_mean, name_rows
from rekka.forecast.ageing import ADVANCES, Course, plan_course
from rekka.forecast.first_passage import LONGEST, mix, pass_through
from rekka.forecast.propagation import States, Walkers, walk
from rekka.forecast.uncertainty import BOOTSTRAP, DRAWS, LOG, LOGIT, NONE, NORMAL, Spread, spread_out
from rekka.model.fit import Fit
from rekka.model.tables import TitledTable, table

Array = NDArray[np.float64]

WORST_ASKED = 4  # the state whose reaching is asked for, unless told or there are fewer
NOT_CERTIFIED = "NOT CERTIFIED: the model is where its optimizer stopped, not a certified maximum"


@dataclass(frozen=True)
class Doubt:
    """How uncertainty is reckoned: the way, the level, and for draws their number and seed."""

    intervals: str = NORMAL
    level: float = 0.95
    draws: int = DRAWS
    seed: int = 0

    def spread(self, fit: Fit) -> Spread:
        """The coefficients to forecast with."""
        return spread_out(fit, self.intervals, level=self.level, draws=self.draws, seed=self.seed)


@dataclass(frozen=True, eq=False)
class Journey:
    """Members at their start: a fit, states (n,) 0-based, raw covariates (n, p), and how both go on."""

    fit: Fit
    start: States
    x: Array
    course: Course
    spread: Spread

    @property
    def walkers(self) -> Walkers:
        """The members, with every set of coefficients."""
        return Walkers(self.fit, self.x, self.spread.coefficients, self.course)

    @property
    def certified(self) -> bool:
        """Whether the model is a certified maximum."""
        return self.fit.certificate.certified

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of every figure."""
        found = [] if self.certified else [f"{NOT_CERTIFIED} ({'; '.join(self.fit.certificate.reasons)})."]
        if self.spread.why is not None:
            found.append(f"No intervals: {self.spread.why}.")
        if self.fit.resampled is not None and self.spread.kind == BOOTSTRAP:
            left, asked = len(self.fit.resampled.beta), self.fit.resampled.asked
            found.append(f"Intervals from {left} refits to resampled bridges ({asked - left} had no maximum).")
        return tuple(found)

    def entitle(self, what: str) -> str:
        """What stands over a table."""
        return entitle(self.notes, what, self.course.words, self.spread.level, self.spread.kind)

    def outside(self, elapsed: float = 0.0) -> NDArray[np.bool_]:
        """Which covariates (n, p) are outside the range of the training rows after so many years."""
        return self.course.outside(self.x, elapsed)


def entitle(notes: Sequence[str], what: str, course: str, level: float, intervals: str) -> str:
    """What stands over a table: what a reader must know first, then what it is."""
    shown = "no intervals" if intervals == NONE else f"{level:.0%} intervals: {intervals}"
    return "\n".join([*notes, f"{what}; {course}; {shown}"])


def set_out(
    fit: Fit,
    start: States,
    x: Array,
    *,
    age: str = ADVANCES,
    advance: Sequence[str] | None = None,
    doubt: Doubt | None = None,
) -> Journey:
    """Check states against the model, and plan how covariates and coefficients vary."""
    beyond = np.flatnonzero(start >= fit.n_states)
    if beyond.size:
        raise BadStates(
            f"{name_rows(beyond)}: state {int(start[beyond[0]]) + 1} is above K = {fit.n_states}, the worst state "
            "of the training rows, and cannot be forecast. Leave such rows out, or fit with more states.",
            rows=beyond.tolist(),
        )
    course = plan_course(fit, age, advance)
    return Journey(fit, start, x, course, (doubt or Doubt()).spread(fit))


@dataclass(frozen=True, eq=False)
class Forecast:
    """States of n members at T times: ``probability`` (n, T, K), with what follows from it, and intervals.

    ``reached`` is the probability of ``threshold`` or worse, ``expected`` the mean state; each has low and high.
    ``predicted_low`` and ``predicted_high`` are the states between which one member will be at that time.
    ``outside`` (n, T) says where covariates have left the range of the training rows: beyond it the model
    extrapolates, and its intervals do not know that.
    """

    years: Array
    start: States  # 1-based
    threshold: int
    level: float
    intervals: str
    course: str  # what advances with the years, in words
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

    def table(self) -> TitledTable:
        """A row for each member and time: probabilities, mean state, threshold, with their intervals."""
        n, times, states = self.probability.shape
        columns: dict[str, Any] = {
            "row": np.repeat(np.arange(n), times),
            "start": np.repeat(self.start, times),
            "years": np.tile(self.years, n),
        }
        for k in range(states):
            columns |= _with_ends(f"p_{k + 1}", self, "probability", (..., k))
        columns |= _with_ends("expected_state", self, "expected")
        columns |= _with_ends(f"p_{self.threshold}_or_worse", self, "reached")
        columns |= {
            "predicted_low": self.predicted_low.ravel(),
            "predicted_high": self.predicted_high.ravel(),
            "outside": self.outside.ravel(),
            "certified": [self.certified] * (n * times),
        }
        hidden = tuple(f"p_{k + 1}_{end}" for k in range(states) for end in ("low", "high"))
        title = entitle(self.notes, "states over the years", self.course, self.level, self.intervals)
        return table(title, columns, hidden=(*hidden, "certified"))

    def __str__(self) -> str:
        return str(self.table())


def _with_ends(name: str, forecast: Forecast, field: str, place: Any = ...) -> dict[str, Array]:
    ends = {name: "", f"{name}_low": "_low", f"{name}_high": "_high"}
    return {column: getattr(forecast, field + end)[place].ravel() for column, end in ends.items()}


def forecast_rows(
    journey: Journey, years: int | Sequence[float] | Array, threshold: int | None = None
) -> Forecast:
    """Carry members through the years; a whole number means every year up to it."""
    times = read_years(years)
    worst = check_threshold(threshold, journey.fit.n_states)
    p = np.stack(list(walk(journey.walkers, journey.start, times)), axis=2)  # (B, n, T, K)
    spread, states = journey.spread, journey.fit.n_states
    expected = p @ np.arange(1, states + 1)
    reached = p[..., worst - 1 :].sum(axis=-1)
    ends = {
        "probability": spread.interval(p, LOGIT),
        "expected": spread.interval(expected, LOGIT, 1, states),
        "reached": spread.interval(reached, LOGIT),
    }
    tail = (1.0 - spread.level) / 2
    below = np.cumsum(mix(p) if spread.drawn else p[0], axis=-1)
    outside = np.stack([journey.outside(time).any(axis=1) for time in times], axis=1)
    return Forecast(
        years=times,
        start=journey.start + 1,
        threshold=worst,
        level=spread.level,
        intervals=spread.kind,
        course=journey.course.words,
        certified=journey.certified,
        notes=journey.notes,
        probability=p[0],
        expected=expected[0],
        reached=reached[0],
        **{
            f"{name}_{side}": end[place]
            for name, end in ends.items()
            for place, side in enumerate(("low", "high"))
        },
        predicted_low=_first_beyond(below, tail),
        predicted_high=_first_beyond(below, 1.0 - tail),
        outside=outside,
    )


def _first_beyond(below: Array, share: float) -> States:
    """The best state, 1-based, up to which at least that share lies; a hair's breadth is rounding."""
    return np.asarray((below < share - 1e-12).sum(axis=-1) + 1, dtype=np.int64)


def years_until(journey: Journey, state: int, quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> TitledTable:
    """Years until a state or worse: mean and median with intervals, and what one member may take.

    ``predicted_low`` and ``predicted_high`` are the times by which a member gets there with the probabilities that
    the level leaves at both ends; ``q`` columns are quantiles at the estimate.
    """
    worst = check_threshold(state, journey.fit.n_states)
    spread = journey.spread
    tail = (1.0 - spread.level) / 2
    asked = check_quantiles(quantiles)
    wanted = [tail, 0.5, 1.0 - tail, *asked]
    found = pass_through(journey.walkers, journey.start, worst - 1, wanted, mixed=spread.drawn)
    mean, median = found.mean, found.quantile[..., 1]
    (mean_low, mean_high), (median_low, median_high) = spread.interval(mean, LOG), spread.interval(median, LOG)
    return table(
        journey.entitle(f"years until state {worst} or worse"),
        {
            "row": np.arange(len(journey.start)),
            "start": journey.start + 1,
            "state": np.full(len(journey.start), worst),
            "mean": mean[0],
            "mean_se": spread.deviation(mean),
            "mean_low": mean_low,
            "mean_high": mean_high,
            "median": median[0],
            "median_low": median_low,
            "median_high": median_high,
            "predicted_low": found.mixed[:, 0],
            "predicted_high": found.mixed[:, 2],
            **{f"q{100 * q:g}": found.quantile[0, :, 3 + place] for place, q in enumerate(asked)},
            "certified": [journey.certified] * len(journey.start),
        },
        hidden=("certified",),
    )


def years_in_states(journey: Journey) -> TitledTable:
    """Years in each state, for a member that comes into it with its covariates as they are."""
    n, free = len(journey.start), journey.fit.n_states - 1
    found = []
    for k in range(free):
        here = replace(journey, start=np.full(n, k, dtype=np.int64))
        found.append(years_until(here, k + 2, ()).drop("state").rename({"start": "state"}))
    rows = pl.concat(found).sort("row", "state", maintain_order=True)
    return table(journey.entitle("years in each state"), rows.to_dict(), hidden=("certified",))


def read_years(years: Any) -> Array:
    """Times in years, from 0 on, none before the one before it."""
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


def check_threshold(state: int | None, n_states: int) -> int:
    """The state whose reaching is asked for, 1-based; None means 4, or K where there are fewer."""
    if state is None:
        return min(WORST_ASKED, n_states)
    if isinstance(state, bool) or not isinstance(state, int | np.integer) or not 2 <= state <= n_states:
        raise BadOption(
            f"The state to reach is {state!r}; a whole number from 2 to {n_states} (K, the worst state of "
            "the training rows) is needed.",
            option="threshold",
            value=state,
        )
    return int(state)


def check_quantiles(quantiles: Sequence[float]) -> tuple[float, ...]:
    """Probabilities between 0 and 1."""
    for q in quantiles:
        if not 0 < q < 1:
            raise BadOption(f"quantiles holds {q!r}; numbers between 0 and 1 are needed.", option="quantiles")
    return tuple(map(float, quantiles))


def read_start(values: Any, n: int) -> States:
    """Start states, 1-based: one for all, or one a row; 0-based in return."""
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


def typical_covariates(fit: Fit, given: Mapping[str, float] | None = None) -> Array:
    """Covariates (1, p): as given, else the medians of the training rows."""
    given = dict(given or {})
    unknown = [name for name in given if name not in fit.covariates]
    if unknown:
        raise BadOption(
            f"{unknown[0]} is not a covariate of this model; {', '.join(fit.covariates) or 'none'} are."
            f"{did_you_mean(unknown[0], fit.covariates)}",
            option="covariates",
            value=unknown[0],
        )
    missing = [name for name in fit.covariates if name not in given]
    if missing and fit.survey is None:
        raise BadValues(
            f"{', '.join(missing)}: no value is given, and this model file, of an earlier version, does not know "
            "what is typical. Give every covariate, or fit the model again.",
            column=missing[0],
        )
    typical = dict(zip(fit.covariates, fit.survey.median, strict=True)) if fit.survey is not None else {}
    x = np.array([[float(given.get(name, typical.get(name, np.nan))) for name in fit.covariates]])
    if not np.isfinite(x).all():
        raise BadValues(f"{given!r} holds a value that is missing or infinite; finite numbers are needed.")
    return x
