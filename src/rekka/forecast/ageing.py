"""Ageing: how covariates change over the years of a forecast.

    advances   x + t, however old that makes a member
    held       the same, but not beyond the oldest of the training rows (a member older than that stays)
    fixed      x, as over an interval of the paper's model

Forecasts go on in steps of a year or less, in which hazards are constant, with the age in the middle of the step.
A model fitted with ages at the start of its intervals (``model.clock``) is asked with an age that lags by half the
mean training interval. All other covariates stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, bad_option
from rekka.model.clock import MIDDLE, RUNNING, START, Clock, find_advancing
from rekka.model.fit import Fit

Array = NDArray[np.float64]

ADVANCES, HELD, FIXED = "advances", "held", "fixed"
AGES = (ADVANCES, HELD, FIXED)


@dataclass(frozen=True, eq=False)
class Ageing:
    """Covariates that advance, by column of x (n, p), and the limits and lags (p,) in years that apply to them.

    ``ceiling`` is in the ages that the model takes: those of the training rows, as the fit took them.
    """

    age: str
    names: tuple[str, ...]  # of the covariates that advance
    columns: NDArray[np.intp]
    ceiling: Array
    lag: Array
    floor: Array  # that a lag takes none below: an operator that is not affine may not take it
    low: Array  # the range of the training rows (p,), ages from those at first visits on; without end if not known
    high: Array
    moment: str = ""  # of an interval at which the fit took what advances, in words

    @property
    def moves(self) -> bool:
        """Whether any covariate changes with the years."""
        return self.columns.size > 0

    @property
    def words(self) -> str:
        """Description for a reader: "age advancing by the year"."""
        if not self.moves:
            return f"covariates stay as they are{self.moment}"
        limit = ", up to the largest of the training rows" if self.age == HELD else ""
        return f"{' and '.join(self.names)} advancing by the year{limit}{self.moment}"

    def at(self, x: Array, elapsed: Array | float) -> Array:
        """Covariates (n, p) of members ``elapsed`` years later."""
        if not self.moves:
            return x
        later = x.copy()
        for column in self.columns:
            old = x[:, column]
            most = self.ceiling[column] + self.lag[column]
            later[:, column] = np.minimum(old + elapsed, np.maximum(old, most))
        return later

    def outside(self, x: Array, elapsed: Array | float = 0.0) -> NDArray[np.bool_]:
        """Mask (n, p) of covariates outside the range of the training rows ``elapsed`` years later."""
        then = self.at(x, elapsed)
        return np.asarray((then < self.low) | (then > self.high))

    def model_input(self, x: Array, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Covariates (n, p) as the model takes them, in a step of so many years that begins after ``elapsed``."""
        if not self.moves:
            return x
        then = self.at(x, elapsed + 0.5 * years)
        return np.asarray(np.maximum(then - self.lag, np.minimum(then, self.floor)))


def plan_ageing(fit: Fit, age: str = ADVANCES, advance: Sequence[str] | None = None) -> Ageing:
    """Plan the ageing of a model's covariates: those named by ``advance``, or those of its own clock."""
    if age not in AGES:
        raise bad_option("age", age, AGES)
    covariates, survey, clock = fit.covariates, fit.survey, fit.clock
    named = find_advancing(covariates, advance, clock.names)
    names = () if age == FIXED else named
    columns = np.array([covariates.index(name) for name in names], dtype=np.intp)
    ceiling, lag = np.full(len(covariates), np.inf), np.zeros(len(covariates))
    lag[columns] = [clock.lag(name) for name in names]
    if age == HELD and names:
        if survey is None:
            raise BadOption(
                "age='held' needs the oldest age of the training rows, which this model file, of an earlier "
                "version, does not have. Fit the model again, or use age='advances' or 'fixed'."
            )
        ceiling[columns] = survey.high[columns]
    floor = np.full(len(covariates), -np.inf) if fit.native or survey is None else survey.low
    low, high = _find_range(fit, lag)
    moment = _describe_moment(clock, named, fixed=age == FIXED)
    return Ageing(age, names, columns, ceiling, lag, floor, low, high, moment)


def _find_range(fit: Fit, lag: Array) -> tuple[Array, Array]:
    """Least and largest covariates (p,) of members like those of the training rows.

    A model that takes ages at the middle of intervals has seen its members from their first visits on, about half
    the mean interval before the least age that it took, though not from below 0.
    """
    if fit.survey is None:
        return np.full(lag.size, -np.inf), np.full(lag.size, np.inf)
    low = fit.survey.low
    early = np.array([fit.clock.early(name) for name in fit.covariates])
    return np.maximum(low - early, np.minimum(low, 0.0)), fit.survey.high + lag


def _describe_moment(clock: Clock, names: Sequence[str], *, fixed: bool) -> str:
    """Describe where in an interval the fit took the covariates, and the lag that follows."""
    if not names:
        return ""
    lagging = [name for name in names if clock.lags(name)]
    taken = f"at the {START if lagging else MIDDLE} of each interval"
    if clock.kind == RUNNING and not lagging:
        taken = "advancing within each interval"
    if fixed:
        return f" ({' and '.join(names)}: fitted {taken})"
    if not lagging:
        return f" (fitted {taken})"
    behind = "no lag, because the mean interval is not known"
    if clock.mean_years is not None:
        behind = f"behind by {clock.lag(lagging[0]):.3g} years, half the mean interval"
    return f" (fitted {taken}: {behind})"
