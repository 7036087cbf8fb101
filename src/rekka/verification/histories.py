"""Models of histories: closed forms of each element, plain matrices, and R's msm on simulated visits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.core.language import say
from rekka.estimator import ExponentialHazardMarkovModel
from rekka.model.clock import RUNNING, Clock
from rekka.model.elements import Elements, count_nodes, read_elements
from rekka.model.family import EXPONENTIAL
from rekka.model.histories import Chain, HistoryLikelihood, chain_rows
from rekka.model.likelihood import Likelihood, Rows
from rekka.verification.engine import Comparison, Numbers, compare, verifies
from rekka.verification.formulas import DrawnVisits, draw_visits, exponential, generator
from rekka.verification.maxima import draw_oracle

Array = NDArray[np.float64]

HAZARDS = (0.3, 0.3, 0.3)
# Of inspection, adjacent ratings of the first three of four states; the last is rated without error.
ERRORS = np.array([[0.9, 0.1, 0, 0], [0.1, 0.8, 0.1, 0], [0, 0.1, 0.9, 0], [0, 0, 0, 1.0]])
FIRST = (1.0, 0.0, 0.0, 0.0)
AGED = Clock(RUNNING, ("age",), (0,))


def draw_rated() -> DrawnVisits:
    """Visits with errors of inspection, every member in state 1 at its first."""
    return draw_visits(15, 300, [[math.log(one)] for one in HAZARDS], [1.0, 1.5, 2.0, 3.0], 5, ERRORS)


def chain(
    start: Any, end: Any, years: Any, *, age: Any = None, bridge: Any = None, date: Any = None, history: Any = None
) -> Chain:
    """Rows of histories, states from 1; each a history and a bridge of its own unless told otherwise."""
    first, second = (np.asarray(one, dtype=np.int64) - 1 for one in (start, end))
    each = np.arange(first.size)
    x = np.zeros((first.size, 0)) if age is None else np.asarray(age, dtype=float)[:, None]
    own = each if history is None else np.asarray(history)
    shared = own if bridge is None else np.asarray(bridge)
    return Chain(
        first, second, np.asarray(years, dtype=float), x, own, shared, None if date is None else np.asarray(date)
    )


def chain_visits(visits: DrawnVisits) -> Chain:
    """Visits as rows of histories, one a member."""
    same = np.flatnonzero(visits.member[1:] == visits.member[:-1])
    years = visits.time[same + 1] - visits.time[same]
    member = np.unique(visits.member[same], return_inverse=True)[1]
    return chain(visits.state[same], visits.state[same + 1], years, history=member)


def evaluate(rows: Chain, elements: Elements, clock: Clock, parameters: Any, nodes: int = 1) -> float:
    """Log-likelihood of histories at parameters."""
    found = chain_rows(rows, elements, clock)
    W = np.column_stack([np.ones(found.h.size), found.x])
    likelihood = HistoryLikelihood.build(found, elements, W, EXPONENTIAL, nodes, 1)
    return float(likelihood.evaluate(np.asarray(parameters, dtype=float), False).value)


@verifies("no_elements", "histories", source="theory")
def no_elements(numbers: Numbers) -> Iterator[Comparison]:
    """With all elements off the likelihood of histories is that of pairs."""
    for name in ("three_states", "four_states", "five_states"):
        rows = draw_oracle(name)
        free, p = rows.n_states - 1, rows.x.shape[1]
        beta = np.column_stack([np.linspace(-2.0, -1.0, free), np.full((free, p), 0.1)])
        design = np.column_stack([np.ones(len(rows.years)), rows.x])
        states = rows.start.astype(np.int64), rows.end.astype(np.int64)
        pairs = Rows(*states, rows.years, np.ones(len(rows.years)), rows.n_states)
        expected = Likelihood.build(pairs, design, 1).evaluate(beta, 0).value
        each = np.arange(len(rows.years))
        own = Chain(*states, rows.years, rows.x, each, each)
        got = evaluate(own, read_elements(rows.n_states), Clock("start"), beta.ravel())
        yield compare(say("verify.item.pairs", set=say(f"verify.set.{name}")), expected, got, relative=1e-11)


@verifies("running_clock", "histories", source="formula")
def running_clock(numbers: Numbers) -> Iterator[Comparison]:
    """Hazards that grow with age, the same in all states, only change the time: a Gompertz law in closed form.

    Steps of a year with the age at their middle have a hazard that is too low by a factor of sinh(g/2) / (g/2).
    """
    growth, theta = 0.05, np.array([0.02, 0.05, 0.03])
    beta = np.column_stack([np.log(theta), np.full(3, growth)])
    for age, years in ((0.0, 5.0), (20.0, 3.0), (35.0, 12.0)):
        middles = sum(math.exp(growth * (age + j + 0.5)) for j in range(int(years)))
        integral = (math.exp(growth * (age + years)) - math.exp(growth * age)) / growth
        for end in range(1, 5):
            rows = chain([1], [end], [years], age=[age])
            got = math.exp(evaluate(rows, read_elements(4), AGED, beta.ravel()))
            place = {"age": f"{age:g}", "years": f"{years:g}", "end": f"{end}"}
            expected = exponential(generator(theta * middles))[0, end - 1]
            yield compare(say("verify.item.gompertz_steps", **place), expected, got, relative=1e-10)
        got = -evaluate(chain([1], [1], [years], age=[age]), read_elements(4), AGED, beta.ravel())
        item = say("verify.item.gompertz", age=f"{age:g}", years=f"{years:g}")
        yield compare(item, theta[0] * integral, got, relative=growth**2 / 23)


@verifies("frailty", "histories", source="formula")
def frailty(numbers: Numbers) -> Iterator[Comparison]:
    """A gamma frailty shared by the members of a bridge: the law of Laplace's transform, (1 + phi a)^(-1/phi)."""
    theta = 0.1
    for phi in (0.1, 0.5, 1.5):

        def stay(a: float, phi: float = phi) -> float:
            return math.exp(-math.log1p(phi * a) / phi)

        elements = read_elements(2, frailty="gamma")
        parameters = [math.log(theta), phi]
        nodes = count_nodes(phi)
        one = chain([1], [1], [5.0])
        two = chain([1, 1], [1, 2], [5.0, 3.0], bridge=[0, 0])
        three = chain([1, 1, 1], [2, 2, 1], [5.0, 3.0, 2.0], bridge=[0, 0, 0])
        left = {
            "frailty_one": (one, stay(0.5)),
            "frailty_two": (two, stay(0.5) - stay(0.8)),
            "frailty_three": (three, stay(0.2) - stay(0.7) - stay(0.5) + stay(1.0)),
        }
        for key, (rows, expected) in left.items():
            got = math.exp(evaluate(rows, elements, Clock(), parameters, nodes))
            yield compare(say(f"verify.item.{key}", phi=f"{phi:g}"), expected, got, within=1e-8)


@verifies("improvements", "histories", source="matrices")
def improvements(numbers: Numbers) -> Iterator[Comparison]:
    """Small repairs after each step of a year, and a calendar trend: products of plain matrices."""
    theta, chance = np.array([0.2, 0.1, 0.3]), 0.08
    elements = read_elements(4, improvements="common")
    parameters = [*np.log(theta), math.log(chance / (1.0 - chance))]
    for years in (1.0, 4.0):
        step = exponential(generator(theta)) @ _improve(4, chance)
        expected = np.linalg.matrix_power(step, int(years))
        for start, end in ((1, 1), (1, 3), (3, 2), (4, 4)):
            got = math.exp(evaluate(chain([start], [end], [years]), elements, Clock(), parameters))
            item = say("verify.item.improvement", years=f"{years:g}", start=f"{start}", end=f"{end}")
            yield compare(item, expected[start - 1, end - 1], got, relative=1e-10)
    slope = -0.6  # of the log hazards in ten years
    trended = read_elements(4, trend="common")
    dates = [2000.0, 2010.0]  # the last visit is in 2014
    rows = chain([1, 1], [1, 1], [4.0, 4.0], date=dates)
    got = -evaluate(rows, trended, Clock(), [*np.log(theta), slope])
    total = sum(4.0 * theta[0] * math.exp(slope * (date + 2.0 - 2014.0) / 10.0) for date in dates)
    yield compare(say("verify.item.trend"), total, got, relative=1e-10)


def _improve(K: int, chance: float) -> Array:
    """Matrix of an improvement by one state within a year."""
    found = np.diag(np.full(K, 1.0 - chance))
    found[0, 0] = 1.0
    found[np.arange(1, K), np.arange(K - 1)] = chance
    return found


@verifies("inspection_errors", "histories", source="msm_simulated")
def inspection_errors(numbers: Numbers) -> Iterator[Comparison]:
    """Errors of inspection: the likelihood at fixed parameters and at the maximum, as R's msm has them."""
    stored = numbers["inspection_errors"]
    visits = draw_rated()
    yield compare(say("verify.item.rows"), stored["visits"], len(visits.state))
    yield compare(say("verify.item.sum_of_ratings"), stored["sum_of_ratings"], int(visits.state.sum()))
    pattern = (ERRORS > 0).astype(float)
    elements = read_elements(4, errors=pattern, first=FIRST)
    rows = chain_visits(visits)
    edge, middle = math.log(0.1 / 0.9), math.log(0.1 / 0.8)
    value = evaluate(rows, elements, Clock(), [*np.log(HAZARDS), edge, middle, middle, edge])
    yield compare(say("verify.item.fixed"), stored["fixed"], -2.0 * value, within=1e-6)
    plain = _filter(visits, np.array(HAZARDS))
    yield compare(say("verify.item.fixed_matrices"), -2.0 * plain, -2.0 * value, within=1e-8)
    pairs = visits.pair(4).frame()
    same = np.flatnonzero(visits.member[1:] == visits.member[:-1])
    model = ExponentialHazardMarkovModel(covariates=[], errors=pattern, first=FIRST, n_states=4, threads=1)
    model.fit(pairs, pairs["state_2"], histories=visits.member[same])
    assert model.errors_ is not None
    yield compare(say("verify.item.fitted"), stored["maximum"], -2.0 * model.log_likelihood_, within=2e-5)
    for k in range(3):
        item = say("verify.item.hazard", state=f"{k + 1}")
        yield compare(item, stored["hazards"][k], math.exp(model.intercept_[k]), relative=1e-5)
    for (state, rated), expected in zip(((1, 2), (2, 1), (2, 3), (3, 2)), stored["errors"], strict=True):
        item = say("verify.item.error", state=f"{state}", rated=f"{rated}")
        yield compare(item, expected, float(model.errors_[state - 1, rated - 1]), within=1e-5)


def _filter(visits: DrawnVisits, theta: Array) -> float:
    """Log-likelihood of rated visits by the forward recursion, one matrix at a time."""
    total, alpha, before = 0.0, np.zeros(4), (-1, 0.0)
    for member, time, rating in zip(visits.member, visits.time, visits.state, strict=True):
        if member != before[0]:
            total += math.log(alpha.sum()) if before[0] >= 0 else 0.0
            alpha = np.array(FIRST)
        else:
            alpha = alpha @ exponential(generator(theta * (time - before[1])))
        alpha = alpha * ERRORS[:, rating - 1]
        before = (int(member), float(time))
    return total + math.log(alpha.sum())
