"""Probabilities, derivatives and years against closed forms and 50-digit arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.language import Said, say
from rekka.model.family import EXPONENTIAL
from rekka.model.likelihood import Likelihood, Rows
from rekka.model.probabilities import transition_probabilities
from rekka.verification.engine import Comparison, Numbers, compare, verifies
from rekka.verification.formulas import (
    erlang,
    exponential,
    generator,
    mean_years,
    one_move,
    quantile_years,
    three_moves,
    two_moves,
)
from rekka.verification.maxima import draw_oracle, fit

Array = NDArray[np.float64]

EXACT = 1e-12  # relative; docs/performance.md has what is reached
SLOPES = 1e-10  # of a gradient and a Hessian, relative


def name_move(theta: Any, years: float, start: int, end: int) -> Said:
    """Name the probability of a move between two states, from 1."""
    return say("verify.item.move", theta=_list(theta), years=f"{years:g}", start=f"{start}", end=f"{end}")


def _list(theta: Any) -> str:
    return ", ".join(f"{one:.10g}" for one in theta)


def _move(theta: Any, years: float, start: int, end: int) -> float:
    return float(transition_probabilities(theta, years)[start - 1, end - 1])


@verifies("two_states", "probabilities", source="formula")
def two_states(numbers: Numbers) -> Iterator[Comparison]:
    """One hazard: stay with e^-a, leave with 1 - e^-a, from a second to a thousand years."""
    for theta in (1e-9, 0.003, 0.2, 5.0):
        for years in (0.25, 1.0, 5.0, 100.0):
            for end, expected in ((1, math.exp(-theta * years)), (2, -math.expm1(-theta * years))):
                yield compare(
                    name_move([theta], years, 1, end), expected, _move([theta], years, 1, end), relative=EXACT
                )


@verifies("distinct_hazards", "probabilities", source="formula")
def distinct_hazards(numbers: Numbers) -> Iterator[Comparison]:
    """Two and three different hazards, far enough apart for the textbook's form to keep its digits."""
    for theta, years in (((0.2, 0.1), 5.0), ((0.05, 0.4), 2.0), ((1.5, 0.3), 1.0)):
        yield compare(
            name_move(theta, years, 1, 2), one_move(theta, years), _move(theta, years, 1, 2), relative=EXACT
        )
        yield compare(
            name_move(theta, years, 1, 3), two_moves(theta, years), _move(theta, years, 1, 3), relative=EXACT
        )
    for three, years in (((0.5, 0.2, 0.9), 4.0), ((0.1, 0.3, 0.6), 10.0)):
        found = _move(three, years, 1, 4)
        yield compare(name_move(three, years, 1, 4), three_moves(three, years), found, relative=1e-11)


@verifies("equal_hazards", "probabilities", source="formula")
def equal_hazards(numbers: Numbers) -> Iterator[Comparison]:
    """Equal hazards: Erlang. No special case, and no difference of hazards to divide by."""
    for theta, years in ((0.2, 5.0), (0.03, 1.0), (1.0, 12.0)):
        for states in (2, 3, 4):
            for end in range(1, states + 1):
                last = end == states
                if last and theta * years < 1.0:
                    continue  # 1 - sum has no digits left: the 50-digit numbers have such cases
                hazards = [theta] * (states - 1)
                expected = erlang(theta, years, end - 1, absorbed=last)
                yield compare(
                    name_move(hazards, years, 1, end), expected, _move(hazards, years, 1, end), relative=EXACT
                )


@verifies("fifty_digits", "probabilities", source="mpmath")
def fifty_digits(numbers: Numbers) -> Iterator[Comparison]:
    """Whole rows at ordinary hazards, among them the example of REFERENCE: 1, 2, 3, 4 a year over one year."""
    yield from _compare_stored(numbers["fifty_digits"])


@verifies("near_hazards", "probabilities", source="mpmath")
def near_hazards(numbers: Numbers) -> Iterator[Comparison]:
    """Hazards that differ by a thousandth, a millionth and a billionth, or not at all."""
    yield from _compare_stored(numbers["near_hazards"])


@verifies("extreme_hazards", "probabilities", source="mpmath")
def extreme_hazards(numbers: Numbers) -> Iterator[Comparison]:
    """Hazards from 1e-6 to 1e4 a year, and probabilities down to 1e-300."""
    yield from _compare_stored(numbers["extreme_hazards"])


def _compare_stored(cases: Any) -> Iterator[Comparison]:
    for case in cases:
        theta, years, start = case["theta"], case["years"], case["start"]
        for end, expected in case["p"].items():
            got = _move(theta, years, start, int(end))
            yield compare(name_move(theta, years, start, int(end)), float(expected), got, relative=EXACT)


@verifies("derivatives", "probabilities", source="mpmath")
def derivatives(numbers: Numbers) -> Iterator[Comparison]:
    """Log-probability of one row with its slope and curvature in the log hazards: what a fit climbs on."""
    for case in numbers["derivatives"]:
        theta, end = case["theta"], case["end"]
        rows = Rows(np.array([0]), np.array([end - 1]), np.array([case["years"]]), np.ones(1), len(theta) + 1)
        found = Likelihood.build(rows, np.ones((1, 1)), threads=1).evaluate(np.log(theta)[:, None])
        move = {"theta": _list(theta), "years": f"{case['years']:g}", "end": f"{end}"}
        yield compare(say("verify.item.log_move", **move), float(case["value"]), found.value, relative=EXACT)
        slopes, curves = np.array(case["slope"], float), np.array(case["curve"], float)
        gradient, hessian = found.gradient.ravel(), found.hessian
        scale = float(np.abs(slopes).max()), float(np.abs(curves).max())
        for k in range(len(theta)):
            place = {**move, "state": f"{k + 1}"}
            yield compare(say("verify.item.slope", **place), slopes[k], gradient[k], within=SLOPES * scale[0])
            for m in range(k, len(theta)):
                item = say("verify.item.curve", **place, other=f"{m + 1}")
                yield compare(item, curves[k, m], hessian[k, m], within=SLOPES * scale[1])


@verifies("years", "probabilities", source="formula")
def years(numbers: Numbers) -> Iterator[Comparison]:
    """Mean and median years in a state and until a state, at constant hazards."""
    for theta in ((0.02, 0.3, 0.07), (0.1, 0.1, 0.1)):
        hazards = np.array([theta])
        for state in (2, 3, 4):
            start = np.array([[1.0, 0.0, 0.0, 0.0]])
            passed = theta[: state - 1]
            place = {"theta": _list(theta), "state": f"{state}"}
            mean = float(EXPONENTIAL.years_left(start, hazards, state - 1)[0])
            yield compare(say("verify.item.mean_years", **place), mean_years(passed), mean, relative=EXACT)
            median = float(EXPONENTIAL.cross(start, hazards, np.array([500.0]), state - 1, 0.5)[0])
            wanted = quantile_years(passed, 0.5)
            yield compare(say("verify.item.median_years", **place), wanted, median, relative=1e-10)


@verifies("forecasts", "probabilities", source="matrices")
def forecasts(numbers: Numbers) -> Iterator[Comparison]:
    """Forecasts of a fitted model whose covariate grows by one a year, from its own coefficients by matrices."""
    rows = draw_oracle("three_states")
    model = fit(rows, advance=["x0"])
    beta = np.column_stack([model.intercept_, model.coef_])
    member = pl.DataFrame({"state_1": [1], "x0": [-0.6]})
    expected = np.eye(3)
    for year in range(4):
        theta = np.exp(beta @ np.array([1.0, -0.6 + year + 0.5]))
        expected = expected @ exponential(generator(theta))
    found = model.transition_matrix(4.0, member.drop("state_1"), age="advances", intervals="none").probability
    for start, end in ((1, 1), (1, 2), (1, 3), (2, 3)):
        item = say("verify.item.forecast", start=f"{start}", end=f"{end}")
        yield compare(item, expected[start - 1, end - 1], float(found[start - 1, end - 1]), relative=1e-9)
    theta = np.exp(beta @ np.array([1.0, -0.6]))
    told = model.years_to_reach(3, member, quantiles=[0.5], age="fixed", intervals="none").to_dicts()[0]
    yield compare(say("verify.item.forecast_mean"), mean_years(theta), told["mean"], relative=1e-9)
    wanted = quantile_years(theta, 0.5)
    yield compare(say("verify.item.forecast_median"), wanted, told["median"], relative=1e-9)
