"""Forecasts of models of histories, against sums written out by hand for one bridge."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import polars as pl
import pytest
from scipy import integrate, linalg, stats

import rekka
from rekka import ExponentialHazardMarkovModel as Model
from rekka.forecast.history_propagation import solve_passage

K = 4


def make_rows() -> pl.DataFrame:
    """Visits of 30 bridges with two members each, that go up and down."""
    rng = np.random.default_rng(5)
    rows = []
    for b in range(30):
        for member in range(2):
            rating, age, year = int(rng.integers(1, 3)), float(rng.integers(1, 20)), 2000.0 + b % 3
            for _ in range(3):
                years = float(rng.integers(1, 4)) + 0.5
                seen = int(np.clip(rating + rng.choice([-1, 0, 1], p=[0.1, 0.6, 0.3]), 1, K))
                known = {"bridge": b, "member": member, "state_1": rating, "state_2": seen}
                rows.append(known | {"interval_years": years, "age": age, "date_1": year})
                rating, age, year = seen, age + years, year + years
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return make_rows()


@pytest.fixture(scope="module")
def model(rows: pl.DataFrame) -> Model:
    """A fit whose parameters are then moved to where every element counts."""
    made = Model(
        covariates=["age"], errors="adjacent-common", improvements="common", trend="common", frailty="gamma",
        clock="running", threads=1,
    )  # fmt: skip
    made.fit(rows, rows["state_2"], histories=rows["bridge", "member"], groups=rows["bridge"])
    records = made._fit.records
    assert records is not None
    extra = np.array([-2.0, -2.5, 0.6, -3.0, -0.4, 0.3, 0.1, -0.5, 0.2])
    assert extra.size == records.elements.size
    covariance = np.diag(np.full(extra.size, 0.01))
    cross = np.zeros((made._fit.inference.coefficients.size, extra.size))
    moved = replace(records, extra=extra, covariance=covariance, cross=cross, nodes=48, boundaries=())
    certified = replace(made._fit.certificate, verdict=type(made._fit.certificate.verdict).CERTIFIED)
    made._adopt(replace(made._fit, records=moved, certificate=certified), list(made.feature_names_in_))
    return made


def generator(model: Model, age: float, time: float, eps: float) -> Any:
    theta = eps * np.exp(model.intercept_ + model.coef_[:, 0] * age + model.trend_ * min(time, 0.0))
    Q = np.zeros((K, K))
    for k in range(K - 1):
        Q[k, k], Q[k, k + 1] = -theta[k], theta[k]
    return Q


def step(model: Model, p: Any, age: float, time: float, years: float, eps: float, until: int = K) -> Any:
    """p after one step: hazards at its middle, then improvements; with ``until`` that state is not left."""
    Q = generator(model, age + years / 2, time + years / 2, eps)
    Q[until:] = 0.0
    p = p @ linalg.expm(Q * years)
    rho = 1 - (1 - model.improvements_) ** years
    after = p.copy()
    for k in range(1, min(until, K)):
        after[k] -= rho[k] * p[k]
        after[k - 1] += rho[k] * p[k]
    return after


def follow(model: Model, visits: pl.DataFrame, eps: float) -> Any:
    """Joint probability (K,) of a member's ratings and its true state at the last visit."""
    last = model._fit.records.last  # type: ignore[union-attr]
    first = visits.row(0, named=True)
    p = model.first_(np.array([first["age"]]))[0] * model.errors_[:, first["state_1"] - 1]
    for row in visits.iter_rows(named=True):
        years, count = row["interval_years"], int(np.ceil(row["interval_years"]))
        h = years / count
        for j in range(count):
            p = step(model, p, row["age"] + j * h, row["date_1"] + j * h - last, h, eps)
        p = p * model.errors_[:, row["state_2"] - 1]
    return p


def integrate_frailty(model: Model, value: Any) -> Any:
    """Integral over the gamma density of a function (K,) of eps."""
    phi = model.frailty_variance_
    grid = np.linspace(-14.0, 3.0, 57)
    weight = stats.gamma.pdf(np.exp(grid), 1 / phi, scale=phi) * np.exp(grid)
    return integrate.trapezoid(np.stack([value(e) for e in np.exp(grid)]) * weight[:, None], x=grid, axis=0)


def test_condition_is_that_given_all_visits_of_the_bridge(model: Model, rows: pl.DataFrame) -> None:
    one = rows.filter(pl.col("bridge") == 3)
    known = {"y": one["state_2"], "histories": one["bridge", "member"], "groups": one["bridge"]}
    found = model.forecast(one, [0, 2.5, 6], intervals="none", **known)
    assert found.probability.shape == (2, 3, K)
    visits = [one.filter(pl.col("member") == m) for m in range(2)]
    end = visits[0].row(-1, named=True)
    age, time = (end[name] + end["interval_years"] for name in ("age", "date_1"))
    time -= model._fit.records.last  # type: ignore[union-attr]

    def later(eps: float) -> Any:
        p, other = follow(model, visits[0], eps), follow(model, visits[1], eps).sum()
        for h, t in ((1.0, 0.0), (1.0, 1.0), (0.5, 2.0)):
            Q = generator(model, age + t + 0.5, time + t + 0.5, eps)  # the year's own age, whatever is asked for
            p = p @ linalg.expm(Q * h)
            down = p[1:] * (1 - (1 - model.improvements_[1:]) ** h)
            p[1:] -= down
            p[:-1] += down
        return p * other

    p = integrate_frailty(model, later)
    np.testing.assert_allclose(found.probability[0, 1], p / p.sum(), atol=2e-6)
    now = integrate_frailty(model, lambda eps: follow(model, visits[0], eps) * follow(model, visits[1], eps).sum())
    np.testing.assert_allclose(found.probability[0, 0], now / now.sum(), atol=2e-6)
    np.testing.assert_allclose(found.recorded[0, 1], found.probability[0, 1] @ model.errors_, atol=1e-12)
    assert (found.unimproved[:, 2] @ np.arange(K) > found.probability[:, 2] @ np.arange(K)).all()
    alone = model.forecast(visits[0], [0], intervals="none", y=visits[0]["state_2"], histories=[0, 0, 0])
    assert np.abs(alone.probability[0, 0] - found.probability[0, 0]).max() > 1e-4  # the other member counts


def test_years_until_a_state_with_improvements_and_frailty(model: Model, rows: pl.DataFrame) -> None:
    one = rows.filter((pl.col("bridge") == 4) & (pl.col("member") == 1))
    known = {"y": one["state_2"], "histories": one["bridge"], "groups": one["bridge"]}
    found = model.years_to_reach(4, one, intervals="none", age="fixed", **known)
    end = one.row(-1, named=True)
    age, time = end["age"] + end["interval_years"], end["date_1"] + end["interval_years"]
    time -= model._fit.records.last  # type: ignore[union-attr]
    assert time < 0  # the trend goes on until the last training visit
    whole = integrate_frailty(model, lambda eps: follow(model, one, eps)).sum()
    q10 = float(found["q10"][0])

    def reached(eps: float) -> Any:
        p, t = follow(model, one, eps), 0.0
        while t < q10:
            h = min(1.0, q10 - t)
            Q = generator(model, age, time + t + 0.5, eps)
            Q[3:] = 0.0
            p = p @ linalg.expm(Q * h)
            if h == 1.0:
                down = p[1:3] * model.improvements_[1:3]
                p[1:3] -= down
                p[:2] += down
            t += h
        return p[3:]

    assert float(integrate_frailty(model, reached)[0]) / whole == pytest.approx(0.1, abs=1e-5)
    assert found["median_without_improvements"][0] < found["median"][0]


def test_mean_years_left_by_equations_are_those_of_many_years(model: Model) -> None:
    """Without frailty and ageing the mean is a sum over years, which the closed form concludes."""
    fit = model._fit
    cohort = rekka.forecast.forecast.make_cohort(  # a true state, frailty 1
        fit, np.array([1]), np.array([[20.0]]), rekka.forecast.forecast.ForecastOptions("none", age="fixed")
    )
    found = rekka.forecast.first_passage.find_first_passage(cohort.propagator, cohort.start, 3, [0.5])
    p, mean = np.eye(K)[1], 0.0
    Q = generator(model, 20.0, 0.0, 1.0)
    Q[3:] = 0.0
    big = np.zeros((2 * K, 2 * K))
    big[:K, :K], big[:K, K:] = Q, np.eye(K)
    once = linalg.expm(big)
    for _ in range(4000):
        mean += (p @ once[:K, K:])[:3].sum()
        p = p @ once[:K, :K]
        down = p[1:3] * model.improvements_[1:3]
        p[1:3] -= down
        p[:2] += down
    assert found.mean[0, 0] == pytest.approx(mean, rel=1e-9)
    direct = rekka.forecast.first_passage.find_first_passage(cohort.propagator, cohort.start, 3, [])
    assert direct.mean[0, 0] == pytest.approx(mean, rel=1e-9)  # the closed form from the beginning


def test_a_model_file_forecasts_the_same(model: Model, rows: pl.DataFrame) -> None:
    again = Model.from_json(model.to_json())
    known = {"y": rows["state_2"], "histories": rows["bridge", "member"], "groups": rows["bridge"]}
    ours, theirs = (one.forecast(rows, 3, intervals="delta", **known) for one in (model, again))
    assert np.array_equal(ours.reached_high, theirs.reached_high)
    low, high = ours.reached_low[:, 3], ours.reached_high[:, 3]
    assert ((low < ours.reached[:, 3]) & (ours.reached[:, 3] < high)).all()
    older = copy.deepcopy(model)
    older._fit = replace(older._fit, records=replace(older._fit.records, cross=None))
    without = older.forecast(rows, 3, intervals="delta", **known)
    assert without.intervals == "none"
    assert "fit the model again" in without.notes[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"y": [1]}, "y and groups belong to histories"),
        ({"histories": "member", "start": 2}, "start and histories are both given"),
        ({"histories": "member", "y": None}, "y is missing"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    model: Model, rows: pl.DataFrame, given: dict[str, Any], words: str
) -> None:
    asked = {name: rows[value] if name == "histories" else value for name, value in given.items()}
    with pytest.raises(rekka.InputError, match=words):
        model.forecast(rows, **asked)
    plain = Model(covariates=["age"])
    worse = rows.with_columns(pl.max_horizontal("state_1", "state_2").alias("state_2"))
    plain.fit(worse, worse["state_2"])
    with pytest.raises(rekka.InputError, match="takes the last rating alone"):
        plain.forecast(rows, histories=rows["member"], y=rows["state_2"])


def test_passages_that_take_ages_keep_their_digits() -> None:
    rate, back = 1e-12, 0.3
    once = np.array([[1 - rate, rate, 0.0], [back, 1 - back - rate, rate], [0.0, back, 1 - back - rate]])
    there, years = np.array([0.0, 0.0, rate]), np.ones(3)
    found = solve_passage(once, there, years)
    with mpmath.workdps(60):
        both = back + mpmath.mpf(rate)
        leaving = mpmath.matrix([[rate, -rate, 0], [-back, both, -rate], [0, -back, both]])
        exact = mpmath.lu_solve(leaving, mpmath.matrix([1, 1, 1]))
    np.testing.assert_allclose(found, np.array([float(one) for one in exact]), rtol=1e-12)
    never = solve_passage(once, np.zeros(3), years)
    assert np.isinf(never).all()
