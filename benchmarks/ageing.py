"""Bridges whose age runs on within intervals, drawn exactly, and how often forecasts hold the truth about them.

All hazards grow with age alike, theta_k(age) = RATES_k exp(SLOPE age): t years from age a on do as much as
exp(SLOPE a) (exp(SLOPE t) - 1) / SLOPE years at age 0. States after an interval are drawn over that time, without
steps, and the true years until a state follow from it. Each way is a clock of the fit, and for "start" also the
forecast without its lag, as it was before there was one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.problems import SEED
from rekka import ExponentialHazardMarkovModel
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.forecast import ForecastOptions, forecast_rows, make_cohort
from rekka.forecast.uncertainty import DELTA, LOG
from rekka.model.fit import Fit
from rekka.model.probabilities import transition_probabilities
from rekka.simulation.rows import draw_ends

Array = NDArray[np.float64]

SLOPE, RATES = 0.03, np.array([0.045, 0.036, 0.03])  # a year of age; the hazards a year at age 0
STATE, ORIGIN = 4, 20.0  # years until this state, for a bridge of that age in state 1
AGES, TIMES = (10.0, 20.0, 40.0), (10.0, 30.0)  # of the members that are forecast; years ahead
GAPS, UNEVEN = (1.0, 2.0, 5.0), (0.8, 1.2)  # years between visits; shares of them that occur
LEVEL, AGED_LIMITS = 0.95, (0.93, 0.97)
AGED_SETS, AGED_BRIDGES, VISITS = 500, 2_000, 4
MIDDLE, START, NO_LAG = "middle", "start", "start, no lag"
FINE = np.linspace(0.0, 400.0, 40_001)  # years over which true means are summed


@dataclass(frozen=True)
class Ageing:
    """Inventories of bridges that are visited about every ``gap`` years."""

    gap: float


def draw_rows(how: Ageing, bridges: int = AGED_BRIDGES, seed: int = SEED) -> pl.DataFrame:
    """Transitions of bridges of 0 to 60 years, new when they were built, over VISITS visits."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0.0, 60.0, bridges)
    state = _draw(np.zeros(bridges, np.int64), np.zeros(bridges), age, rng)
    parts = []
    for _ in range(VISITS - 1):
        years = how.gap * rng.uniform(*UNEVEN, bridges)
        end = _draw(state, age, years, rng)
        rows = {"bridge_id": np.arange(bridges), "state_1": state + 1, "state_2": end + 1, "age": age}
        parts.append(pl.DataFrame(rows | {"interval_years": years}))
        state, age = end, age + years
    return pl.concat(parts).filter(pl.col("state_1") < STATE)


def _draw(state: NDArray[np.int64], age: Array, years: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """The states (n,) after so many years (n,) from an age (n,) on, drawn from their exact distribution."""
    return draw_ends(np.tile(RATES, (state.size, 1)), _count_hazards(age, years), state, rng)


def _count_hazards(age: Array | float, years: Array | float) -> Array:
    """Years at age 0 that have as much hazard as these."""
    return np.asarray(np.exp(SLOPE * np.asarray(age)) * np.expm1(SLOPE * np.asarray(years)) / SLOPE)


@cache
def true_reach(age: float, years: float) -> float:
    """The probability that a bridge of an age in state 1 is in STATE after so many years."""
    return float(transition_probabilities(RATES, _count_hazards(age, years))[0, STATE - 1])


@cache
def true_years(age: float = ORIGIN) -> float:
    """The mean years until STATE of a bridge of an age in state 1."""
    p = transition_probabilities(np.tile(RATES, (FINE.size, 1)), _count_hazards(age, FINE))
    return float(np.trapezoid(1.0 - p[:, 0, STATE - 1], FINE))


@dataclass(frozen=True)
class AgedBands:
    """By gap and way: whether each interval held the truth (sets x quantities), and the years found (sets,)."""

    held: dict[tuple[float, str], NDArray[np.bool_]]
    years: dict[tuple[float, str], Array]
    uncertified: int

    def share(self, gap: float, way: str = MIDDLE) -> float:
        """Of all intervals together."""
        return float(self.held[gap, way].mean())

    def mean_years(self, gap: float, way: str = MIDDLE) -> float:
        """The mean over sets of the years until STATE at age ORIGIN."""
        return float(self.years[gap, way].mean())

    @property
    def gaps(self) -> tuple[float, ...]:
        """The gaps that were tried."""
        return tuple(dict.fromkeys(gap for gap, _ in self.held))

    @property
    def passes(self) -> bool:
        """Whether the intervals of the default clock hold the truth as often as they say, at every gap."""
        return all(AGED_LIMITS[0] <= self.share(gap) <= AGED_LIMITS[1] for gap in self.gaps)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "limits": list(AGED_LIMITS),
            "true_years": true_years(),
            "uncertified": self.uncertified,
            "ways": [
                {"gap": gap, "way": way, "share": self.share(gap, way), "years": self.mean_years(gap, way)}
                for gap, way in self.held
            ],
        }


def measure_ageing(
    sets: int = AGED_SETS, bridges: int = AGED_BRIDGES, seed: int = SEED, gaps: Sequence[float] = GAPS
) -> AgedBands:
    """Draw, fit, forecast and compare so many inventories of each gap."""
    held: dict[tuple[float, str], list[NDArray[np.bool_]]] = {}
    years: dict[tuple[float, str], list[float]] = {}
    uncertified = 0
    for gap in gaps:
        for number in np.random.SeedSequence(seed).generate_state(sets):
            rows = draw_rows(Ageing(gap), bridges, int(number))
            for way, fit in _fit_ways(rows):
                if not fit.certificate.certified:
                    uncertified += 1
                    continue
                hits, found = _compare(fit)
                held.setdefault((gap, way), []).append(hits)
                years.setdefault((gap, way), []).append(found)
    return AgedBands(
        {key: np.array(hits) for key, hits in held.items()},
        {key: np.array(found) for key, found in years.items()},
        uncertified,
    )


def _fit_ways(rows: pl.DataFrame) -> Iterator[tuple[str, Fit]]:
    """The fit with each clock, and that with ages at the start once more, its lag forgotten."""
    for clock in (MIDDLE, START):
        model = ExponentialHazardMarkovModel(covariates=["age"], n_states=STATE, clock=clock, threads=1)
        fit = model.fit(rows, rows["state_2"])._fit
        yield clock, fit
    yield NO_LAG, replace(fit, clock=replace(fit.clock, mean_years=None))


def _compare(fit: Fit) -> tuple[NDArray[np.bool_], float]:
    """Whether the intervals of all quantities hold the truth, and the mean years until STATE at age ORIGIN."""
    x = np.array(AGES)[:, None]
    cohort = make_cohort(fit, np.zeros(len(AGES), np.int64), x, ForecastOptions(DELTA, LEVEL))
    mean = find_first_passage(cohort.propagator, cohort.start, STATE - 1, ()).mean
    found = forecast_rows(cohort, TIMES, STATE)
    truth = [true_years(age) for age in AGES]
    low, high = cohort.uncertainty.interval(mean, LOG)
    hits = [(low <= truth) & (truth <= high)]
    for place, time in enumerate(TIMES):
        real = np.array([true_reach(age, time) for age in AGES])
        hits.append((found.reached_low[:, place] <= real) & (real <= found.reached_high[:, place]))
    return np.concatenate(hits), float(mean[0, AGES.index(ORIGIN)])
