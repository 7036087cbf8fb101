"""Transition matrices: from every state to every state in so many years, for a member with given covariates.

    P(t) = P(1) at age a + 1/2, times P(1) at age a + 3/2, ...      where age advances
    P(t) = exp(Q t)                                          where covariates stay as they are

Intervals are those of each probability by itself. The rows of ``probability`` sum to 1; those of ``low`` and
``high`` do not, and no matrix has all of its entries there at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, BadValues
from rekka.forecast.ageing import FIXED, Course
from rekka.forecast.forecast import Doubt, Journey, read_years, set_out
from rekka.forecast.propagation import walk
from rekka.forecast.uncertainty import LOG, LOGIT, NONE
from rekka.model.family import EXPONENTIAL, Family
from rekka.model.fit import Fit
from rekka.model.tables import table

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matrix:
    """Probabilities (K, K) of each state, by column, for who is in each state, by row, ``years`` before.

    ``hazard`` (K-1,) is that of leaving each state, a year, with the covariates as they were given. Without
    intervals ``low`` and ``high`` are NaN. ``course`` says what advances with the years; ``notes`` say what a
    reader must know first; ``labels`` are the names of the states, best first.
    """

    probability: Array
    low: Array
    high: Array
    hazard: Array
    hazard_low: Array
    hazard_high: Array
    years: float
    level: float
    intervals: str
    course: str
    advancing: tuple[str, ...]
    covariates: dict[str, float]
    labels: tuple[str, ...]
    certified: bool
    notes: tuple[str, ...]
    case: str | None = None
    family: Family = EXPONENTIAL  # of the hazards: it knows the years in a state

    @property
    def n_states(self) -> int:
        """K."""
        return len(self.probability)

    @property
    def told(self) -> str:
        """The covariates in a cell of a table: 'age=41; traffic_mean=8000'."""
        return "; ".join(f"{name}={value:.10g}" for name, value in self.covariates.items()) or "none"

    def __str__(self) -> str:
        """The probabilities under a title; the intervals are in ``low`` and ``high``."""
        title = [*self.notes, f"probabilities after {self.years:g} years, at {self.told}; {self.course}"]
        columns = {label: self.probability[:, place] for place, label in enumerate(self.labels)}
        return str(table("\n".join(title), {"from / to": list(self.labels), **columns}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, None where there is no number."""
        arrays = ("probability", "low", "high", "hazard", "hazard_low", "hazard_high")
        others = ("years", "level", "intervals", "course", "certified", "case")
        lists = {"labels": list(self.labels), "advancing": list(self.advancing), "notes": list(self.notes)}
        return (
            {name: getattr(self, name) for name in others}
            | {"covariates": dict(self.covariates)}
            | lists
            | {name: _plain(getattr(self, name)) for name in arrays}
        )


def transition_matrix(
    fit: Fit,
    x: Array,
    years: float,
    *,
    age: str = FIXED,
    advance: Sequence[str] | None = None,
    doubt: Doubt | None = None,
    labels: Sequence[str] | None = None,
    case: str | None = None,
) -> Matrix:
    """The matrix of a member with raw covariates x (p,), for one number of years."""
    return transition_matrices(fit, x, [years], age=age, advance=advance, doubt=doubt, labels=labels, case=case)[0]


def transition_matrices(
    fit: Fit,
    x: Array,
    years: Sequence[float],
    *,
    age: str = FIXED,
    advance: Sequence[str] | None = None,
    doubt: Doubt | None = None,
    labels: Sequence[str] | None = None,
    case: str | None = None,
) -> tuple[Matrix, ...]:
    """The same for several numbers of years, in one walk from all K states."""
    times = read_years(list(years))
    if (times <= 0).any():
        raise BadOption(f"years holds {times[0]:g}; a matrix needs a time above 0.", option="years")
    start = np.arange(fit.n_states)
    journey = set_out(
        fit, start, np.tile(_check_covariates(fit, x), (start.size, 1)), age=age, advance=advance, doubt=doubt
    )
    names = tuple(str(state + 1) for state in start) if labels is None else tuple(labels[: start.size])
    return tuple(
        _make_matrix(journey, p, float(time), names, case)
        for time, p in zip(times, walk(journey.walkers, start, times), strict=True)
    )


def list_outside(fit: Fit, course: Course, x: Array) -> tuple[str, ...]:
    """A sentence for each of the covariates x (p,) that lies outside the range of the training rows."""
    rows = zip(fit.covariates, x, course.low, course.high, course.outside(x[None])[0], strict=True)
    return tuple(
        f"{name} = {value:,.6g} lies outside the training rows ({low:,.6g} to {high:,.6g}): the model "
        "extrapolates."
        for name, value, low, high, outside in rows
        if outside
    )


def tell_intervals(level: float, kind: str) -> str:
    """'95 % intervals (normal)', or that there are none."""
    return "no intervals" if kind == NONE else f"{100 * level:.6g} % intervals ({kind})"


def list_passing(journey: Journey, years: float) -> tuple[str, ...]:
    """A sentence for each covariate that leaves the range of the training rows on its way through the years."""
    if not journey.course.moves or not np.isfinite(years):
        return ()
    last = max(np.ceil(years) - 1.0, 0.0)  # where the last step begins, whose middle has the largest age
    last = 0.5 * (last + years)
    passed = np.atleast_1d((journey.outside(last) & ~journey.outside()).any(axis=0))
    return tuple(
        f"{name} passes the largest of the training rows ({high:,.6g}) within {years:,.4g} years: from there on "
        "the model extrapolates."
        for name, high, beyond in zip(journey.fit.covariates, journey.course.high, passed, strict=True)
        if beyond
    )


def _make_matrix(journey: Journey, p: Array, years: float, labels: tuple[str, ...], case: str | None) -> Matrix:
    """One matrix out of the walk: p (B, K, K)."""
    spread, x = journey.spread, journey.x[0]
    hazard = journey.walkers.hazards(0.0)[:, 0, :]
    low, high = spread.interval(p, LOGIT)
    hazard_low, hazard_high = spread.interval(hazard, LOG)
    return Matrix(
        probability=p[0],
        low=low,
        high=high,
        hazard=hazard[0],
        hazard_low=hazard_low,
        hazard_high=hazard_high,
        years=years,
        level=spread.level,
        intervals=spread.kind,
        course=journey.course.words,
        advancing=journey.course.names,
        covariates=dict(zip(journey.fit.covariates, x.tolist(), strict=True)),
        labels=labels,
        certified=journey.certified,
        notes=(*journey.notes, *list_outside(journey.fit, journey.course, x), *list_passing(journey, years)),
        case=case,
        family=journey.fit.family,
    )


def _check_covariates(fit: Fit, x: Array) -> Array:
    """One finite number for each covariate."""
    values = np.asarray(x, dtype=np.float64).ravel()
    if values.size != len(fit.covariates) or not np.isfinite(values).all():
        raise BadValues(
            f"x is {values.tolist()}; a finite number for each of {', '.join(fit.covariates) or 'no covariates'} "
            "is needed."
        )
    return values


def _plain(values: Array) -> list[Any]:
    """Nested lists, None for what is no number."""
    if values.ndim > 1:
        return [_plain(row) for row in values]
    return [float(value) if np.isfinite(value) else None for value in values]
