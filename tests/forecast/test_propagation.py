"""Members carried through the years: exact products, ages that advance, gaps, threads."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import rekka
from rekka.core.errors import BadOption
from rekka.forecast.ageing import ADVANCES, FIXED, HELD, plan_ageing
from rekka.forecast.propagation import Propagator, propagate
from rekka.model.family import FASTEST


@pytest.fixture(scope="module")
def fit():
    rows = rekka.simulate_transitions(800, n_states=4, seed=5).drop("bridge_id")
    return rekka.ExponentialHazardMarkovModel().fit(rows.drop("state_2"), rows["state_2"])._fit


def rows_of(fit, n=7, seed=0):
    rng = np.random.default_rng(seed)
    x = fit.survey.low + rng.uniform(size=(n, 4)) * (fit.survey.median - fit.survey.low)
    return x, rng.integers(0, fit.n_states, n)


def by_expm(fit, x, start, course, pieces):
    """The plain account: a product of matrix exponentials for each row; ``pieces`` are (moment of the age, years)."""
    found = []
    for i in range(len(x)):
        p = np.eye(fit.n_states)[start[i]]
        for elapsed, h in pieces[i]:
            q = np.zeros((fit.n_states, fit.n_states))
            for k, hazard in enumerate(np.exp(fit.log_hazards(course.at(x[i : i + 1], elapsed)))[0]):
                q[k, k], q[k, k + 1] = -hazard, hazard
            p = p @ expm(q * h)
        found.append(p)
    return np.array(found)


@pytest.mark.parametrize("age", [ADVANCES, HELD, FIXED])
def test_every_year_is_the_product_of_exponentials(fit, age):
    x, start = rows_of(fit, 4)
    course = plan_ageing(fit, age)
    propagator = Propagator(fit, x, fit.coefficients[None], course)
    every_year = list(propagate(propagator, start, np.arange(31.0)))
    for year in (0, 1, 10, 30):
        theirs = by_expm(fit, x, start, course, [[(t + 0.5, 1.0) for t in range(year)]] * len(x))
        np.testing.assert_allclose(every_year[year][0], theirs, rtol=0, atol=1e-12)


def test_times_need_not_be_whole_years(fit):
    x, start = rows_of(fit)
    course = plan_ageing(fit)
    propagator = Propagator(fit, x, fit.coefficients[None], course)
    first, second, third = (p[0] for p in propagate(propagator, start, [0.25, 0.75, 2.5]))
    whole = [(0.5, 1), (1.5, 1), (2.5, 0.5)]
    for p, pieces in ((first, [(0.5, 0.25)]), (second, [(0.5, 0.75)]), (third, whole)):
        np.testing.assert_allclose(p, by_expm(fit, x, start, course, [pieces] * len(x)), rtol=0, atol=1e-12)


def test_who_was_seen_earlier_catches_up_first(fit):
    x, start = rows_of(fit, 3)
    course = plan_ageing(fit)
    propagator = Propagator(fit, x, fit.coefficients[None], course)
    _, later = propagate(propagator, start, [0.0, 2.0], gap=np.array([0.0, 1.0, 2.5]))
    pieces = [
        [(0.5, 1), (1.5, 1)],
        [(0.5, 1), (1.5, 1), (2.5, 1)],
        [(0.5, 1), (1.5, 1), (2.25, 0.5), (3, 1), (4, 1)],
    ]
    np.testing.assert_allclose(later[0], by_expm(fit, x, start, course, pieces), rtol=0, atol=1e-12)


def test_fixed_covariates_are_the_model_over_one_interval(fit):
    x, start = rows_of(fit, 50)
    propagator = Propagator(fit, x, fit.coefficients[None], plan_ageing(fit, FIXED))
    for time, p in zip((5.0, 12.5), propagate(propagator, start, [5.0, 12.5]), strict=True):
        before = x - np.array([time / 2, 0, 0, 0])  # the age at the first visit; x is that at the middle
        np.testing.assert_allclose(p[0], fit.probabilities(start, np.full(50, time), before), rtol=1e-12)


def test_many_coefficients_at_once_are_each_alone(fit):
    x, start = rows_of(fit, 9)
    sets = fit.coefficients + np.random.default_rng(1).normal(0, 0.01, (5, *fit.coefficients.shape)) / (
        1 + x.max()
    )
    course = plan_ageing(fit)
    (together,) = propagate(Propagator(fit, x, sets, course), start, [10.0])
    for b, one in enumerate(sets):
        (alone,) = propagate(Propagator(fit, x, one[None], course), start, [10.0])
        np.testing.assert_allclose(together[b], alone[0], rtol=1e-13)


def test_threads_change_no_bit(fit):
    x, start = rows_of(fit, 40_000)
    course = plan_ageing(fit)
    (whole,) = propagate(Propagator(fit, x, fit.coefficients[None], course), start, [3.0])
    part = slice(64 * 100, 64 * 200)  # whole chunks of lanes
    (some,) = propagate(Propagator(fit, x[part], fit.coefficients[None], course), start[part], [3.0])
    np.testing.assert_allclose(whole[0, part], some[0], rtol=1e-13)


def test_condition_never_improves(fit):
    x, start = rows_of(fit, 30)
    propagator = Propagator(fit, x, fit.coefficients[None], plan_ageing(fit))
    at_best = np.array([np.cumsum(p[0], axis=1) for p in propagate(propagator, start, np.arange(0, 60, 0.5))])
    assert (np.diff(at_best, axis=0) <= 1e-15).all()
    np.testing.assert_allclose(at_best[:, :, -1], 1.0, rtol=1e-13)


def test_an_infinite_hazard_is_a_fast_one(fit):
    coefficients = fit.coefficients[None].copy()
    coefficients[0, 0, 0] = 1e5
    x, _ = rows_of(fit, 2)
    propagator = Propagator(fit, x, coefficients, plan_ageing(fit))
    assert (propagator.hazards(0.0)[0, :, 0] == FASTEST).all()
    _, p = propagate(propagator, np.zeros(2, np.int64), [0.0, 1.0])
    assert (p[0, :, 0] == 0).all()
    np.testing.assert_allclose(p[0].sum(axis=1), 1.0, rtol=1e-11)


class TestCourse:
    def test_age_is_known_by_its_name(self, fit):
        course = plan_ageing(fit)
        assert course.names == ("age_at_inspection_1",)
        x = fit.survey.median[None]
        np.testing.assert_array_equal(course.at(x, 3.0)[0] - x[0], [3.0, 0.0, 0.0, 0.0])

    def test_held_stops_at_the_oldest_and_leaves_the_older_alone(self, fit):
        course = plan_ageing(fit, HELD)
        x = np.tile(fit.survey.median, (2, 1))
        oldest = fit.survey.high[0]
        x[:, 0] = oldest - 2, oldest + 5
        np.testing.assert_array_equal(course.at(x, 10.0)[:, 0], [oldest, oldest + 5])

    def test_any_covariate_can_be_told_to_advance(self, fit):
        course = plan_ageing(fit, advance=["traffic_mean"])
        assert course.names == ("traffic_mean",)
        assert course.words == (
            "traffic_mean advancing by the year (fitted at the start of each interval: behind by 2.51 years, half the "
            "mean interval)"
        )

    def test_what_does_not_fit_is_refused(self, fit):
        with pytest.raises(BadOption, match=r"age is 'grows'; it can be advances, held, fixed\."):
            plan_ageing(fit, "grows")
        with pytest.raises(BadOption, match=r"advance names traffic, .* Did you mean traffic_mean\?"):
            plan_ageing(fit, advance=["traffic"])
        with pytest.raises(BadOption, match="of an earlier version"):
            plan_ageing(replace(fit, survey=None), HELD)
