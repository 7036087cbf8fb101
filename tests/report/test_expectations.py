"""What is to be expected of a typical member, against matrix exponentials year by year and the model's own methods."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.linalg import expm

import rekka
from rekka.forecast.ageing import plan_ageing
from rekka.forecast.forecast import make_cohort
from rekka.model.serial import load_model
from rekka.report import summarize
from rekka.report.summarize import HORIZON, expect, expect_years_of_new

COVARIATES = ["age_at_inspection_1", "bridge_length", "traffic_mean"]


@pytest.fixture(scope="module", autouse=True)
def _all_draws():
    """As in a report that is not of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summarize, "make_cohort", make_cohort)
        yield


def simulate():
    return rekka.simulate_transitions(900, n_states=5, seed=3)


@pytest.fixture(scope="module", params=["zscore", "boxcox"])
def fitted(request):
    """A model of five states and its fit as a study keeps it."""
    rows = simulate()
    model = rekka.ExponentialHazardMarkovModel(request.param, covariates=COVARIATES)
    model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
    return model, load_model(model.to_json())[0]


@pytest.fixture(scope="module")
def found(fitted):
    _, fit = fitted
    return expect(fit, fit.survey.median, level=0.95, seed=1, certified=True)


def carry(fit, x, years, start=0):
    """Probabilities by year: a matrix exponential for each, the age at its middle."""
    p, age = np.eye(fit.n_states)[start], fit.covariates.index("age_at_inspection_1")
    path = [p]
    for year in range(years):
        here = x.copy()
        here[age] += year + 0.5
        theta = np.exp(fit.log_hazards(here[None])[0])
        p = p @ expm(np.diag([*-theta, 0.0]) + np.diag(theta, 1))
        path.append(p)
    return np.array(path)


def test_age_advances_by_the_year(fitted, found):
    _, fit = fitted
    path = carry(fit, fit.survey.median, HORIZON)
    np.testing.assert_allclose(found.probability, path, atol=1e-10)
    np.testing.assert_allclose(found.expected, path @ np.arange(1, 6), atol=1e-9)
    np.testing.assert_allclose(found.reached, path[:, 3:].sum(axis=1), atol=1e-10)
    assert found.advancing == ("age_at_inspection_1",)
    assert (found.threshold, found.years[-1]) == (4, HORIZON)


def test_bands_hold_the_estimate_and_one_member_has_more_room(found):
    after = slice(1, None)  # at the beginning nothing is uncertain
    for name in ("expected", "reached"):
        low, middle, high = (np.array(getattr(found, f"{name}{end}")[after]) for end in ("_low", "", "_high"))
        assert (low < middle).all()
        assert (middle < high).all()
    assert (np.array(found.predicted_low) <= np.floor(found.expected_low)).all()
    assert (np.array(found.predicted_high) >= np.ceil(np.array(found.expected_high) - 1e-9)).all()
    assert (found.predicted_low[0], found.predicted_high[0]) == (1, 1)


def test_the_years_beyond_the_training_rows_are_marked(fitted, found):
    _, fit = fitted
    age = fit.survey.median[0]
    assert list(found.outside) == [bool(age + year > fit.survey.high[0]) for year in range(HORIZON + 1)]
    assert found.extrapolated_from == math.floor(fit.survey.high[0] - age) + 1
    assert found.seen == {"age_at_inspection_1": fit.survey.high[0]}
    assert (found.clock, found.lag) == ("middle", 0.0)


def test_half_have_come_there_after_the_median_years(fitted, found):
    _, fit = fitted
    assert [one.start for one in found.passages] == [1, 2, 3]
    for one in found.passages:
        reached = carry(fit, fit.survey.median, math.ceil(one.median), one.start - 1)[:, 3:].sum(axis=1)
        assert reached[-2] <= 0.5 <= reached[-1]
        assert one.median_low < one.median < one.median_high
        assert one.predicted_low < one.median_low
        assert one.predicted_high > one.median_high
    medians = [one.median for one in found.passages]
    assert medians == sorted(medians, reverse=True)


def test_a_new_member_has_age_0_and_is_followed_to_the_oldest_of_the_training_rows(fitted, found):
    _, fit = fitted
    x = fit.survey.median.copy()
    x[0] = 0.0
    oldest = math.ceil(fit.survey.high[0])
    path = carry(fit, x, oldest)
    assert found.new.years == tuple(range(oldest + 1))
    np.testing.assert_allclose(found.new.expected, path @ np.arange(1, 6), atol=1e-9)
    ageing = plan_ageing(fit)
    assert list(found.new.outside) == [not ageing.low[0] <= age <= ageing.high[0] for age in range(oldest + 1)]
    assert found.new.outside[0]
    assert found.new.outside[-1]
    assert found.passage_of_new is found.new.passage
    reached = carry(fit, x, math.ceil(found.new.passage.median))[:, 3:].sum(axis=1)
    assert reached[-2] <= 0.5 <= reached[-1]
    assert found.new.passage.median_low < found.new.passage.median < found.new.passage.median_high
    assert found.new.passage.median != pytest.approx(found.passages[0].median, rel=0.01)


def test_without_an_age_a_new_member_is_as_any_other_in_the_best_rating():
    rows = simulate()
    model = rekka.ExponentialHazardMarkovModel("zscore", covariates=COVARIATES[1:])
    fit = load_model(model.fit(rows, rows["state_2"]).to_json())[0]
    found = expect(fit, fit.survey.median, level=0.95, seed=1, certified=True)
    assert found.new is None
    assert found.passage_of_new == found.passages[0]
    given = {"level": 0.95, "seed": 1, "certified": True}
    alone = expect_years_of_new(fit, fit.survey.median, 4, **given)
    assert alone.model_dump() == pytest.approx(found.passages[0].model_dump())
    aged = found.model_copy(update={"advancing": ("age_at_inspection_1",)})  # of a report before these curves
    assert aged.passage_of_new is None


def test_matrices_are_those_of_the_years_to_come(fitted, found):
    _, fit = fitted
    assert [one.years for one in found.matrices] == [1, 5]
    for one in found.matrices:
        rows = [carry(fit, fit.survey.median, int(one.years), start)[-1] for start in range(5)]
        np.testing.assert_allclose(one.probability, rows, atol=1e-10)
        low, middle, high = (np.array(values) for values in (one.low, one.probability, one.high))
        assert (low <= middle + 1e-12).all()
        assert (middle <= high + 1e-12).all()


def test_an_effect_is_the_median_after_the_change_less_that_before(fitted, found):
    model, _ = fitted
    assert [
        (one.covariate, one.amount, one.times) for one in found.effects if one.covariate != "bridge_length"
    ] == [
        ("age_at_inspection_1", 10, False),
        ("traffic_mean", 2, True),
    ]
    for one in found.effects:
        after = model.years_to_reach(4, {one.covariate: one.after}, intervals="none")["median"][0]
        assert one.years_after == pytest.approx(after, rel=1e-9)
        assert one.years_before == pytest.approx(found.passages[0].median, rel=1e-9)
        assert one.difference == pytest.approx(after - one.years_before, abs=1e-9)
        assert one.difference_low < one.difference < one.difference_high


def test_a_profile_has_the_hazards_of_the_model(fitted, found):
    model, fit = fitted
    assert [one.covariate for one in found.profiles] == COVARIATES
    for place, one in enumerate(found.profiles):
        x = np.tile(fit.survey.median, (len(one.values), 1))
        x[:, place] = one.values
        np.testing.assert_allclose(one.hazard, np.exp(fit.log_hazards(x)), rtol=1e-10)
        low, high = fit.survey.low[place], fit.survey.high[place]
        assert (one.rug[0], one.rug[-1], len(one.rug)) == (low, high, 21)
        rows = simulate()
        middle = rows["interval_years"] / 2 if one.covariate == "age_at_inspection_1" else 0.0  # of each interval
        ends = np.quantile(rows[one.covariate] + middle, [[0.02, 0.97], [0.03, 0.98]])
        np.testing.assert_allclose([one.values[0], one.values[-1]], ends.mean(axis=0), rtol=1e-9)
        assert low < one.values[0] < one.values[-1] < high
        assert list(one.outside) == [False] * len(one.values)
        np.testing.assert_allclose(np.diff(one.values), (one.values[-1] - one.values[0]) / 12, rtol=1e-9)
    ages = found.profiles[0]
    others = {name: pl.lit(value) for name, value in zip(COVARIATES[1:], fit.survey.median[1:], strict=True)}
    rows = pl.DataFrame({COVARIATES[0]: ages.values}).with_columns(**others, state_1=1, interval_years=1.0)
    theirs = model.hazards(rows)["hazard_low"].to_numpy().reshape(-1, 4)
    np.testing.assert_allclose(ages.hazard_low, theirs, rtol=1e-10)


def test_a_fit_that_is_no_maximum_has_no_ends(fitted, found):
    _, fit = fitted
    bare = expect(fit, fit.survey.median, level=0.95, seed=1, certified=False)
    np.testing.assert_allclose(bare.probability, found.probability, atol=1e-12)
    assert not bare.has_band
    assert set(bare.predicted_low) == set(bare.reached_high) == {None}
    ends = [one.median_low for one in bare.passages] + [one.predicted_high for one in bare.passages]
    assert set(ends) == {None}
    assert {one.difference_low for one in bare.effects} == {None}
    assert {end for one in bare.profiles for row in one.hazard_high for end in row} == {None}


def test_the_same_seed_expects_the_same(fitted, found):
    _, fit = fitted
    assert expect(fit, fit.survey.median, level=0.95, seed=1, certified=True) == found


def test_a_hazard_beyond_all_numbers_is_not_forecast(fitted):
    _, fit = fitted
    assert expect(fit, fit.survey.median + 1e12, level=0.95, seed=1, certified=True) is None


def test_without_covariates_nothing_advances():
    rows = rekka.simulate_transitions(400, n_states=3, seed=4)
    model = rekka.ExponentialHazardMarkovModel(None, covariates=[]).fit(rows, rows["state_2"])
    fit = load_model(model.to_json())[0]
    found = expect(fit, np.empty(0), level=0.9, seed=1, certified=True)
    assert (found.advancing, found.effects, found.profiles, found.extrapolated_from) == ((), (), (), None)
    assert found.threshold == 3  # the worst of fewer than four
    theta = np.exp(fit.log_hazards(np.empty((1, 0)))[0])
    q = np.diag([*-theta, 0.0]) + np.diag(theta, 1)
    np.testing.assert_allclose(found.probability[20], expm(q * 20)[0], atol=1e-10)
    assert found.passages[1].mean == pytest.approx(1 / theta[1], rel=1e-9)
    assert found.level == 0.9
