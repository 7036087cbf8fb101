"""Years until a state against closed forms and drawn histories."""

import numpy as np
import pytest
from scipy import integrate, stats

import rekka
from rekka.forecast.ageing import ADVANCES, FIXED, plan_ageing
from rekka.forecast.first_passage import LONGEST, _Search, find_first_passage
from rekka.forecast.propagation import Propagator, propagate


@pytest.fixture(scope="module")
def fit():
    rows = rekka.simulate_transitions(800, n_states=4, seed=5).drop("bridge_id")
    return rekka.ExponentialHazardMarkovModel().fit(rows.drop("state_2"), rows["state_2"])._fit


def constant(fit, *hazards):
    """A model with these hazards and none of the covariates' effects."""
    coefficients = np.zeros((1, 3, 5))
    coefficients[0, :, 0] = np.log(hazards)
    return Propagator(fit, fit.survey.median[None], coefficients, plan_ageing(fit, FIXED))


@pytest.mark.parametrize("hazard", [0.0005, 0.05, 1.0, 40.0])
def test_equal_hazards_are_erlang(fit, hazard):
    found = find_first_passage(
        constant(fit, hazard, hazard, hazard), np.array([0]), 3, [0.05, 0.5, 0.95], mixed=True
    )
    erlang = stats.gamma(3, scale=1 / hazard)
    assert found.mean[0, 0] == pytest.approx(3 / hazard, rel=1e-12)
    np.testing.assert_allclose(found.quantile[0, 0], erlang.ppf([0.05, 0.5, 0.95]), rtol=1e-10)
    np.testing.assert_allclose(found.mixed[0], found.quantile[0, 0], rtol=1e-9)


def test_constant_hazards_add_up(fit):
    propagator = constant(fit, 0.02, 0.3, 0.0007)
    for start, mean in ((0, 1 / 0.02 + 1 / 0.3 + 1 / 0.0007), (1, 1 / 0.3 + 1 / 0.0007), (3, 0.0)):
        assert find_first_passage(propagator, np.array([start]), 3, []).mean[0, 0] == pytest.approx(
            mean, rel=1e-12
        )
    half = find_first_passage(propagator, np.array([2]), 3, [0.5]).quantile[0, 0, 0]
    assert half == pytest.approx(np.log(2) / 0.0007, rel=1e-11)
    assert half > LONGEST


def test_who_is_there_needs_no_time(fit):
    found = find_first_passage(constant(fit, 0.1, 0.1, 0.1), np.array([2]), 2, [0.1, 0.9])
    assert found.mean[0, 0] == 0
    assert (found.quantile == 0).all()


def test_a_state_that_is_never_left(fit):
    propagator = constant(fit, 0.1, 1.0, 0.1)
    propagator.coefficients[0, 1, 0] = -np.inf
    found = find_first_passage(propagator, np.array([0]), 2, [0.5], mixed=True)
    assert np.isinf(found.mean[0, 0])
    assert np.isinf(found.quantile).all()
    assert np.isinf(found.mixed).all()


def test_advancing_age_agrees_with_the_survival_curve(fit):
    course = plan_ageing(fit, ADVANCES)
    propagator = Propagator(fit, fit.survey.median[None], fit.coefficients[None], course)
    found = find_first_passage(propagator, np.array([0]), 3, [0.25, 0.5])
    times = np.arange(0, LONGEST + 1e-9, 0.05)
    survival = np.array([p[0, 0, :3].sum() for p in propagate(propagator, np.array([0]), times)])
    assert survival[-1] < 1e-12
    assert found.mean[0, 0] == pytest.approx(integrate.simpson(survival, x=times), rel=1e-7)
    for target, time in zip((0.25, 0.5), found.quantile[0, 0], strict=True):
        (there,) = propagate(propagator, np.array([0]), [time])
        assert there[0, 0, 3] == pytest.approx(target, abs=1e-11)


def test_a_gap_counts_from_time_zero(fit):
    propagator = Propagator(fit, fit.survey.median[None], fit.coefficients[None], plan_ageing(fit))
    seen_earlier = find_first_passage(propagator, np.array([0]), 3, [0.5], gap=np.array([4.0]))
    now = find_first_passage(propagator, np.array([0]), 3, [0.5])
    assert seen_earlier.quantile[0, 0, 0] == pytest.approx(now.quantile[0, 0, 0] - 4.0, abs=1e-10)


def test_drawn_histories_take_as_long(fit):
    rng = np.random.default_rng(7)
    theta = np.array([0.08, 0.2, 0.12])
    drawn = rng.exponential(1 / theta, (200_000, 3)).sum(axis=1)
    found = find_first_passage(constant(fit, *theta), np.array([0]), 3, [0.1, 0.9])
    assert found.mean[0, 0] == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(drawn.size))
    np.testing.assert_allclose(found.quantile[0, 0], np.quantile(drawn, [0.1, 0.9]), rtol=0.01)


def test_mixed_is_the_quantile_of_all_draws_together(fit):
    sets = np.zeros((4, 3, 5))
    sets[:, :, 0] = np.log([[0.1, 0.1, 0.1], [0.01, 0.01, 0.01], [1, 1, 1], [0.1, 0.1, 0.1]])
    propagator = Propagator(fit, fit.survey.median[None], sets, plan_ageing(fit, FIXED))
    time = find_first_passage(propagator, np.array([0]), 3, [0.3, 0.9], mixed=True).mixed[0]
    for target, when in zip((0.3, 0.9), time, strict=True):
        share = np.mean([stats.gamma(3, scale=1 / h).cdf(when) for h in (0.01, 1, 0.1)])  # the estimate is no draw
        assert share == pytest.approx(target, abs=1e-9)


def test_a_quantile_that_is_reached_exactly_is_reached(fit):
    half, propagator = np.array([[[0.5, 0.5]], [[0.5, 0.5]]]), constant(fit, 0.1, 0.1, 0.1)
    found = _Search(propagator, half, np.zeros(1), 1, (0.4, 0.5, 0.6), mixed=True)
    np.testing.assert_array_equal(found.quantile[0, 0], [0.0, 0.0, np.inf])
    np.testing.assert_array_equal(found.mixed[0], [0.0, 0.0, np.inf])
