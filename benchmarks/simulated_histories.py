"""Inventories drawn from exactly the model of histories, and the forecast that is compared with the truth.

A bridge has one member, K = 5 states and a covariate x. Hazards are RATES exp(EFFECT x) at the reference age and
at the year END; errors, frailty, improvements, trend and ageing are added by a ``Setting``. Time advances in the
steps of the model (at most a year, hazards taken at the middle); within a step waiting times are exponential, so
that the draw owes nothing to the kernel.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from benchmarks.problems import SEED
from rekka import ExponentialHazardMarkovModel
from rekka.model.probabilities import transition_probabilities
from rekka.simulation.elements import error_matrix
from rekka.simulation.stock import advance

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BRIDGES = 500
RATES = np.array([0.10, 0.08, 0.067, 0.055])  # hazards of leaving states 1 to 4, a year: 37.5 years from 1 to 4
EFFECT = 0.3  # of x, standard normal, on every log hazard
FIRST = np.array([0.40, 0.29, 0.17, 0.09, 0.05])  # probabilities of the true state at the first visit
STATES = len(FIRST)
UNEVEN = (0.8, 1.2)  # shares of the gap that occur between two visits
AGE = 30.0  # years at which the hazards are RATES, where they grow with age
BEGIN, END = 2000.0, 2020.0  # year of the earliest first visit; year at which the hazards are RATES
OLDEST_FIRST = 30.0  # years; first visits of members that were not followed from new
AGED_FIRST = 40.0  # the same where hazards grow with age
POOR, ORIGIN, AHEAD = 4, 20, 30  # P(state 4 or worse) so many years after a bridge of 20 years was still rated 1
NODES = 400  # of the frailty's distribution in a forecast, equally probable

ANY, NEW, OLD = "any", "new", "old"  # first visit in any state; of a new member; at an age of 0 to 30 years


@dataclass(frozen=True)
class Setting:
    """What an inventory is drawn from. ``start`` is ANY, NEW or OLD; ``heterogeneous`` fits a frailty."""

    name: str
    gap: float
    visits: int
    error: float = 0.0
    frailty: float = 0.0
    improvements: float = 0.0
    trend: float = 0.0
    ageing: float = 0.0
    start: str = ANY
    heterogeneous: bool = False
    common: bool = False  # errors with the same probabilities in all states

    @property
    def digest(self) -> int:
        """A number that changes where the draw or the model that is fitted does."""
        constants = (SEED, BRIDGES, RATES.tolist(), EFFECT, FIRST.tolist(), UNEVEN, AGE, BEGIN, END, AGED_FIRST)
        return zlib.crc32(repr((self, constants, OLDEST_FIRST)).encode())

    @property
    def aged(self) -> bool:
        """Whether the age is a covariate: where hazards grow with it, or members are followed from new."""
        return self.ageing != 0 or self.start != ANY

    @property
    def errors(self) -> Array:
        """Probability (K, K) of each rating in each true state."""
        if not self.common:
            return error_matrix(STATES, self.error)
        matrix = np.eye(STATES)
        for s in range(STATES):
            for o in {s - 1, s + 1} & set(range(STATES)):
                matrix[s, o] = self.error / 2
                matrix[s, s] -= self.error / 2
        return matrix

    def truth(self, last: float) -> dict[str, float]:
        """True parameters by their names in ``summary``, in its order; ``last`` is the last visit's year.

        NaN is a parameter that has no interval to cover it: a variance of 0.
        """
        found = {}
        for k, rate in enumerate(RATES, start=1):
            found[f"intercept of state {k}"] = float(
                np.log(rate) - self.ageing * AGE + self.trend * (last - END if self.trend else 0.0)
            )
            found[f"x of state {k}"] = EFFECT
            if self.ageing:
                found[f"age of state {k}"] = self.ageing
        if self.error and self.common:
            found |= {f"errors: rated one {word}": self.error / 2 for word in ("better", "worse")}
        elif self.error:
            for s, o in np.argwhere((self.errors > 0) & ~np.eye(STATES, dtype=bool)).tolist():
                found[f"errors: state {s + 1} rated {o + 1}"] = float(self.errors[s, o])
        if self.heterogeneous:
            found["frailty: variance"] = self.frailty if self.frailty else np.nan
        if self.improvements:
            found["improvements"] = self.improvements
        if self.trend:
            found["trend"] = self.trend
        if self.error and self.start == ANY:
            found |= {f"first visit: state {s + 1}": float(np.log(FIRST[s] / FIRST[0])) for s in range(1, STATES)}
        return found

    def world(self, last: float) -> World:
        """The truth as a forecast takes it, for x = 0."""
        return World(
            np.log(RATES) - self.ageing * AGE + self.trend * (last - END if self.trend else 0.0),
            np.full(STATES - 1, self.ageing),
            np.full(STATES - 1, self.trend),
            self.errors,
            self.frailty,
            np.r_[0.0, np.full(STATES - 1, self.improvements)],
        )

    def model(self) -> ExponentialHazardMarkovModel:
        """The model of histories that the inventory is drawn from, to be fitted."""
        options: dict[str, Any] = {"first": "given" if self.start == ANY else "new"}
        if self.error:
            options["errors"] = "adjacent-common" if self.common else "adjacent"
        if self.heterogeneous:
            options["frailty"] = "gamma"
        if self.improvements:
            options["improvements"] = "common"
        if self.trend:
            options["trend"] = "common"
        if self.trend or self.ageing:
            options["clock"] = "running"
        if self.aged and not self.ageing:  # the age is there for first="new" alone
            options["effects"] = {"age": []}
        return self._model(**options)

    def pair_model(self) -> ExponentialHazardMarkovModel:
        """The model of pairs, with the covariates that act."""
        return self._model(covariates=["x", "age"] if self.ageing else ["x"])

    def _model(self, **options: Any) -> ExponentialHazardMarkovModel:
        known = {"covariates": ["x", "age"] if self.aged else ["x"], "n_states": STATES, "threads": 1}
        return ExponentialHazardMarkovModel(**(known | options))


class Drawn(NamedTuple):
    """Rows of an inventory, improvements included, and the year of its last visit."""

    rows: pl.DataFrame
    last: float


def draw_inventory(setting: Setting, number: int, bridges: int = BRIDGES) -> Drawn:
    """Rows of all bridges, in order of time: bridge, state_1, state_2, interval_years, x, age, date_1."""
    key = (zlib.crc32(setting.name.encode()), number)
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=key))
    x = rng.standard_normal(bridges)
    eps = rng.gamma(1 / setting.frailty, setting.frailty, bridges) if setting.frailty else np.ones(bridges)
    date = BEGIN + rng.uniform(0.0, 2.0, bridges)
    state, age = np.zeros(bridges, np.int64), np.zeros(bridges)
    if setting.start == ANY:
        state = rng.choice(STATES, bridges, p=FIRST)
        age = rng.uniform(0.0, AGED_FIRST, bridges)
    factor = eps * np.exp(EFFECT * x)
    if setting.start == OLD:
        age = rng.uniform(0.0, OLDEST_FIRST, bridges)
        state = _advance(setting, state, np.zeros(bridges), date - age, age, factor, rng)
    rated, parts = _rate(setting, state, rng), []
    for _ in range(setting.visits - 1):
        years = setting.gap * rng.uniform(*UNEVEN, bridges)
        state = _advance(setting, state, age, date, years, factor, rng)
        seen = _rate(setting, state, rng)
        columns = {"bridge": np.arange(bridges), "state_1": rated + 1, "state_2": seen + 1}
        parts.append(pl.DataFrame(columns | {"interval_years": years, "x": x, "age": age, "date_1": date}))
        rated, age, date = seen, age + years, date + years
    return Drawn(pl.concat(parts).sort("bridge", maintain_order=True), float(date.max()))


def _advance(
    setting: Setting, state: Ints, age: Array, date: Array, years: Array, factor: Array, rng: np.random.Generator
) -> Ints:
    """True states after so many years, in the model's steps of at most a year."""
    count = np.ceil(years)
    h = years / np.maximum(count, 1.0)
    for j in range(int(count.max(initial=0.0))):
        middle = (j + 0.5) * h
        log_factor = setting.ageing * (age + middle - AGE) + setting.trend * (date + middle - END)
        theta = (factor * np.exp(log_factor))[:, None] * RATES
        moved = advance(state, theta, h, rng)
        if setting.improvements:
            better = rng.random(state.size) < -np.expm1(h * np.log1p(-setting.improvements))
            moved = np.maximum(moved - better, 0)
        state = np.where(j < count, moved, state)
    return state


def _rate(setting: Setting, state: Ints, rng: np.random.Generator) -> Ints:
    """Ratings (n,) of true states, drawn from the matrix of errors."""
    bounds = np.cumsum(setting.errors, axis=1)[state, :-1]
    return np.asarray((rng.random(state.size)[:, None] >= bounds).sum(axis=1))


@dataclass(frozen=True, eq=False)
class World:
    """What a forecast needs, of the truth or of a fit.

    ``intercept``, ``ageing`` and ``trend`` are (K-1,), the last per year of age and calendar time, ``errors``
    (K, K), ``frailty`` the variance, ``improvements`` (K,) probabilities a year.
    """

    intercept: Array
    ageing: Array
    trend: Array
    errors: Array
    frailty: float
    improvements: Array

    @classmethod
    def of(cls, model: ExponentialHazardMarkovModel) -> World:
        """Estimates of a fitted model, for x = 0."""
        slopes = dict(zip(model.covariates_, model.coef_.T, strict=True))
        none = np.zeros(STATES - 1)
        errors, improvements, trend = model.errors_, model.improvements_, model.trend_
        return cls(
            model.intercept_,
            slopes.get("age", none),
            none if trend is None else trend,
            np.eye(STATES) if errors is None else errors,
            model.frailty_variance_ or 0.0,
            np.zeros(STATES) if improvements is None else improvements,
        )

    def hazards(self, age: float) -> Array:
        """Hazards (K-1,) at an age."""
        return np.asarray(np.exp(self.intercept + self.ageing * age))


def forecast_poor(world: World, gap: float) -> float:
    """P(true state POOR or worse AHEAD years on) for a bridge rated 1 at every visit up to its year ORIGIN.

    It was new, in state 1, at age 0, and is visited every ``gap`` years. State and frailty now follow from these
    ratings by Bayes' rule. The trend ends with the last visit.
    """
    eps = _place(world.frailty)
    alpha = np.zeros((eps.size, STATES))
    alpha[:, 0] = 1.0 / eps.size
    for year in range(ORIGIN + AHEAD):
        calendar = min(year + 0.5 - ORIGIN, 0.0)
        log_theta = world.intercept + world.ageing * (year + 0.5) + world.trend * calendar
        alpha = np.einsum("ns,nst->nt", alpha, transition_probabilities(eps[:, None] * np.exp(log_theta), 1.0))
        better = alpha[:, 1:] * world.improvements[1:]
        alpha[:, 1:] -= better
        alpha[:, :-1] += better
        if year + 1 <= ORIGIN and (year + 1) % gap == 0:
            alpha *= world.errors[:, 0]
            alpha /= alpha.sum()
    return float(alpha[:, POOR - 1 :].sum())


def _place(variance: float) -> Array:
    """Equally probable frailties: the middle quantiles of a gamma distribution of mean 1."""
    if variance <= 0:
        return np.ones(1)
    return np.asarray(stats.gamma.ppf((np.arange(NODES) + 0.5) / NODES, 1 / variance, scale=variance))


def list_settings() -> Iterator[Setting]:
    """The settings, those whose fits are fast first."""
    for error in (0.05, 0.10):
        for gap, visits in ((2.0, 8), (5.0, 7)):
            yield Setting(f"errors {100 * error:g} %, gap {gap:g}", gap, visits, error=error)
    yield Setting("improvements 3 %, gap 2", 2.0, 8, improvements=0.03)
    yield Setting("trend -0.05, gap 2", 2.0, 8, trend=-0.05)
    for gap in (1.0, 2.0, 5.0):
        yield Setting(f"ageing 0.03, gap {gap:g}", gap, 8, ageing=0.03)
    for variance in (0.0, 0.5):
        for start, words in ((NEW, "from new"), (OLD, "from age 0-30")):
            name = f"frailty {variance:g}, {words}"
            yield Setting(name, 5.0, 7, frailty=variance, start=start, heterogeneous=True)
    for start, words in ((NEW, "from new"), (OLD, "from age 0-30")):
        name = f"errors 5 %, frailty 0.5, {words}"
        yield Setting(name, 5.0, 7, error=0.05, frailty=0.5, start=start, heterogeneous=True)
