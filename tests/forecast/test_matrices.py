"""Matrices against matrix exponentials, yearly products and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import expit, logit

import rekka
from rekka.forecast.ageing import ADVANCES, FIXED, plan_ageing
from rekka.forecast.forecast import AT_REST, NOT_CERTIFIED, make_cohort
from rekka.forecast.matrices import list_outside, transition_matrices

NAMES = ["age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean"]
DELTA = replace(AT_REST, intervals="delta")


def fit_rows(rows, scaling="zscore", names=NAMES):
    model = rekka.ExponentialHazardMarkovModel(scaling, covariates=names)
    return model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())._fit


def transition_matrix(fit, x, years, options=AT_REST, **named):
    return transition_matrices(fit, x, [years], options, **named)[0]


@pytest.fixture(scope="module", params=["zscore", "boxcox"])
def fit(request):
    return fit_rows(rekka.simulate_transitions(900, n_states=5, seed=3), request.param)


@pytest.fixture(scope="module")
def two():
    """Two states, one covariate: everything in closed form."""
    return fit_rows(rekka.simulate_transitions(600, n_states=2, seed=1), names=NAMES[:1])


@pytest.fixture(scope="module")
def uncertified():
    return fit_rows(rekka.simulate_transitions(24, n_states=5))


def generator(hazards):
    return np.diag(np.append(-hazards, 0.0)) + np.diag(hazards, 1)


def hazards_at(fit, x):
    return np.exp(fit.log_hazards(x[None])[0])


@pytest.mark.parametrize("years", [0.25, 1.0, 7.3, 60.0])
def test_fixed_covariates_give_the_matrix_exponential(fit, years):
    x = fit.survey.median
    found = transition_matrix(fit, x, years, options=DELTA)
    theta = hazards_at(fit, x)
    np.testing.assert_allclose(found.probability, rekka.transition_probabilities(theta, years), atol=1e-12)
    np.testing.assert_allclose(found.probability, expm(generator(theta) * years), atol=1e-12)
    np.testing.assert_allclose(found.probability.sum(axis=1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(found.hazard, theta, rtol=1e-10)
    assert (np.tril(found.probability, -1) == 0).all()


def test_advancing_age_gives_the_product_of_yearly_steps(fit):
    x, years = fit.survey.median, 3.5
    product = np.eye(fit.n_states)
    for year, length in ((0, 1.0), (1, 1.0), (2, 1.0), (3, 0.5)):
        product = product @ expm(generator(hazards_at(fit, x + np.array([year + 0.5, 0, 0, 0]))) * length)
    found = transition_matrix(fit, x, years, options=replace(DELTA, age="advances"))
    np.testing.assert_allclose(found.probability, product, atol=1e-12)
    assert found.course == "age_at_inspection_1 advancing by the year (fitted at the middle of each interval)"
    assert found.advancing == ("age_at_inspection_1",)


def test_another_covariate_can_advance(fit):
    """It was fitted at the start of intervals, and so lags by half of one."""
    x, lag = fit.survey.median, fit.clock.mean_years / 2
    step = [expm(generator(hazards_at(fit, x + np.array([0, 0, 0, year - lag])))) for year in (0.5, 1.5)]
    found = transition_matrix(fit, x, 2.0, options=replace(DELTA, age="advances", advance=["traffic_mean"]))
    np.testing.assert_allclose(found.probability, step[0] @ step[1], atol=1e-12)


def test_age_is_held_at_the_oldest(fit):
    x = fit.survey.median.copy()
    x[0] = fit.survey.high[0]
    held, fixed = (transition_matrix(fit, x, 10.0, options=replace(DELTA, age=age)) for age in ("held", "fixed"))
    np.testing.assert_allclose(held.probability, fixed.probability, atol=1e-13)
    assert not held.notes


def test_several_periods_in_one_walk_are_those_one_by_one(fit):
    x = fit.survey.median
    together = transition_matrices(fit, x, [1, 2.5, 6], options=replace(DELTA, age="advances"))
    for years, one in zip((1, 2.5, 6), together, strict=True):
        alone = transition_matrix(fit, x, years, options=replace(DELTA, age="advances"))
        np.testing.assert_allclose(one.probability, alone.probability, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(one.low, alone.low, rtol=1e-6, atol=1e-12)


def test_delta_intervals_are_the_closed_form_of_two_states(two):
    x, years = two.survey.median, 4.0
    found = transition_matrix(two, x, years, options=replace(AT_REST, intervals="delta", level=0.9))
    w = two.design(x[None])[0]
    se = np.sqrt(w @ two.covariance_blocks[0, :, 0, :] @ w)
    theta = hazards_at(two, x)[0]
    p = np.exp(-theta * years)
    # d logit p / d log theta = -theta t / (1 - p)
    width = 1.6448536269514722 * se * theta * years / (1 - p)
    assert found.low[0, 0] == pytest.approx(expit(logit(p) - width), rel=1e-6)
    assert found.high[0, 0] == pytest.approx(expit(logit(p) + width), rel=1e-6)
    assert found.low[0, 1] == pytest.approx(1 - found.high[0, 0], rel=1e-9)
    np.testing.assert_allclose(found.hazard_low, theta * np.exp(-1.6448536269514722 * se), rtol=1e-6)
    assert (found.low[1, 1], found.high[1, 1]) == (1.0, 1.0)


def test_draws_agree_with_the_delta_method_and_with_their_seed(fit):
    x = fit.survey.median
    delta = transition_matrix(fit, x, 5.0, options=DELTA)
    drawn, again = (transition_matrix(fit, x, 5.0, options=replace(AT_REST, draws=1000, seed=4)) for _ in range(2))
    np.testing.assert_array_equal(drawn.low, again.low)
    np.testing.assert_array_equal(drawn.probability, delta.probability)
    upper = np.triu_indices(4)
    np.testing.assert_allclose(logit(drawn.low[upper]), logit(delta.low[upper]), atol=0.12)
    assert (drawn.low <= drawn.probability).all()
    assert (drawn.probability <= drawn.high).all()


def test_an_uncertified_model_says_so_and_has_no_intervals(uncertified):
    found = transition_matrix(uncertified, uncertified.survey.median, 1.0)
    assert not found.certified
    assert found.intervals == "none"
    assert np.isnan(found.low).all()
    assert found.notes[0].startswith(NOT_CERTIFIED)
    assert found.to_dict()["low"][0][0] is None


def test_values_outside_the_training_rows_are_told(two):
    assert transition_matrix(two, two.survey.median, 1.0).notes == ()
    course, high = plan_ageing(two, FIXED), two.survey.high[0]
    low = two.survey.low[0] - two.clock.mean_years / 2  # about the age at the first visit
    told = list_outside(two, course, np.array([high + 1]))
    assert told == (
        f"age_at_inspection_1 = {high + 1:.6g} lies outside the training rows ({low:.6g} to {high:.6g}): the model "
        "extrapolates.",
    )
    assert list_outside(two, course, np.array([high])) == ()
    old = replace(two, survey=None)
    assert list_outside(old, plan_ageing(old, FIXED), np.array([high + 1])) == ()


@pytest.mark.parametrize("clock", ["middle", "start"])
@pytest.mark.parametrize("age", [ADVANCES, FIXED])
def test_members_as_young_as_at_first_visits_are_inside_the_training_rows(clock, age):
    rows = rekka.simulate_transitions(600, n_states=2, seed=1)
    rows = rows.with_columns(interval_years=5.0, age_at_inspection_1=rows[NAMES[0]] - rows[NAMES[0]].min())
    model = rekka.ExponentialHazardMarkovModel(covariates=NAMES[:1], clock=clock).fit(rows, rows["state_2"])
    found, young = model._fit, np.array([0.5])
    course = plan_ageing(found, age)
    assert course.low == 0.0
    assert transition_matrix(found, young, 1.0, replace(AT_REST, age=age)).notes == ()
    assert not make_cohort(found, np.array([0]), young[None], options=replace(DELTA, age=age)).outside().any()
    assert list_outside(found, course, np.array([-0.5]))[0].startswith(
        f"age_at_inspection_1 = -0.5 lies outside the training rows (0 to {course.high[0]:.6g})"
    )


def test_a_range_from_first_visits_does_not_begin_below_zero(two):
    early = replace(two, clock=replace(two.clock, mean_years=1000.0))
    assert plan_ageing(early, FIXED).low == 0.0


def test_an_age_that_passes_the_oldest_on_its_way_is_told(two):
    x = two.survey.high - 3.0
    short, long = transition_matrices(two, x, [3, 4], options=replace(DELTA, age="advances"))
    assert short.notes == ()  # the middle of the last step is half a year before the oldest age
    assert long.notes[0].startswith("age_at_inspection_1 passes the largest of the training rows")
    assert transition_matrix(two, x, 4, options=replace(DELTA, age="held")).notes == ()


def test_labels_and_covariates_come_along(two):
    found = transition_matrix(two, two.survey.median, 1.0, labels=["a", "b", "c"], case="Pier")
    assert found.labels == ("a", "b")
    assert found.told == f"age_at_inspection_1={two.survey.median[0]:.10g}"
    assert found.to_dict()["case"] == "Pier"
    assert transition_matrix(two, two.survey.median, 1.0).labels == ("1", "2")


@pytest.mark.parametrize(
    ("x", "years", "message"),
    [
        ([40.0], 0.0, "years holds 0; a matrix needs a time above 0"),
        ([40.0], -1.0, "times of at least 0"),
        ([40.0], 201.0, "at most 200"),
        ([40.0, 1.0], 1.0, "a finite number for each of age_at_inspection_1 is needed"),
        ([np.nan], 1.0, "a finite number for each"),
    ],
)
def test_wrong_input_is_refused(two, x, years, message):
    with pytest.raises(rekka.InputError, match=message):
        transition_matrix(two, np.array(x), years)


def test_a_model_without_covariates_has_a_matrix_too():
    found = transition_matrix(fit_rows(rekka.simulate_transitions(300, n_states=3), names=[]), np.array([]), 1.0)
    assert found.told == "none"
    assert found.probability.shape == (3, 3)
