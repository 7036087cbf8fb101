"""Profiles: the grid, the closed form of its intervals, where it is cut."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.forecast.forecast import AT_REST, NOT_CERTIFIED
from rekka.forecast.profiles import AT_REST_BY_DELTA, BEYOND, CLOSER, INSIDE, _make_grid, profile_covariate

NAMES = ["age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean"]


def fit_rows(rows, scaling="zscore", names=NAMES):
    model = rekka.ExponentialHazardMarkovModel(scaling, covariates=names)
    return model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())


@pytest.fixture(scope="module", params=["zscore", "boxcox"])
def model(request):
    return fit_rows(rekka.simulate_transitions(900, n_states=5, seed=3), request.param)


@pytest.fixture(scope="module")
def shifted():
    """A covariate far from 0, and one on both sides of it."""
    rows = rekka.simulate_transitions(600, n_states=3, seed=1)
    rows = rows.with_columns(far=pl.col("age_at_inspection_1") + 1000, warmth=pl.col("age_at_inspection_1") - 40)
    rows = rows.with_columns(warmth=pl.col("warmth").shuffle(seed=1))
    return fit_rows(rows, names=["far", "warmth"])._fit


def frame(fit, place, values):
    """Rows for the estimator's own table of hazards."""
    columns = {name: np.full(len(values), fit.survey.median[i]) for i, name in enumerate(fit.covariates)}
    columns[fit.covariates[place]] = values
    return pl.DataFrame(columns)


@pytest.mark.parametrize("place", [0, 3])
def test_hazards_and_their_ends_are_those_of_the_model(model, place):
    fit = model._fit
    found = profile_covariate(fit, NAMES[place])
    theirs = model.hazards(frame(fit, place, found.values))
    for ours, name in (
        (found.hazard, "hazard"),
        (found.hazard_low, "hazard_low"),
        (found.hazard_high, "hazard_high"),
    ):
        np.testing.assert_allclose(ours.ravel(), theirs[name], rtol=1e-9)


def test_years_are_sums_of_those_in_each_state_with_the_gradients_interval(model):
    fit = model._fit
    found = profile_covariate(fit, NAMES[0], threshold=4)
    np.testing.assert_allclose(found.years, (1 / found.hazard[:, :3]).sum(axis=1), rtol=1e-9)
    for point in (0, 30, found.values.size - 1):
        x = fit.survey.median.copy()
        x[0] = found.values[point]
        gradient = np.zeros(fit.beta.shape)
        gradient[:3] = -(1 / found.hazard[point, :3])[:, None] * fit.design(x[None])
        se = np.sqrt(gradient.ravel() @ fit.inference.covariance @ gradient.ravel()) / found.years[point]
        assert found.years_high[point] == pytest.approx(
            found.years[point] * np.exp(1.959963984540054 * se), rel=1e-5
        )


def test_the_grid_goes_a_fifth_beyond_the_training_rows(shifted):
    found = profile_covariate(shifted, "far")
    low, high = shifted.survey.low[0], shifted.survey.high[0]
    width = high - low
    assert found.values.size == pytest.approx(INSIDE + 1 + CLOSER + 1 + 2 * BEYOND, abs=2)
    first, last = np.quantile(shifted.survey.quantiles[0], [0.025, 0.975])
    np.testing.assert_array_equal(np.isin(np.linspace(first, last, CLOSER + 1), found.values), True)
    assert (found.values[0], found.values[-1]) == pytest.approx((low - width / 5, high + width / 5))
    assert (np.diff(found.values) > 0).all()
    assert {low, high} <= set(found.values)
    np.testing.assert_array_equal(found.outside, (found.values < low) | (found.values > high))
    assert found.outside.sum() == 2 * BEYOND
    np.testing.assert_array_equal(found.rug, shifted.survey.quantiles[0])
    assert found.others == {"warmth": shifted.survey.median[1]}


def test_what_is_never_negative_stays_so(shifted, model):
    assert profile_covariate(shifted, "warmth").values[0] < shifted.survey.low[1] < 0
    fit = model._fit
    found = profile_covariate(fit, "bridge_length")
    assert found.values[0] >= 0
    if fit.native:
        assert found.values[0] == 0.0
        assert found.outside[0]


def test_the_grid_ends_where_an_operator_has_no_value():
    rows = rekka.simulate_transitions(900, n_states=3, seed=3)
    rows = rows.with_columns(warmth=pl.col("age_at_inspection_1") - 30)
    fit = fit_rows(rows, "boxcox", ["warmth"])._fit
    found = profile_covariate(fit, "warmth")
    low = fit.survey.low[0]
    shift = 1 - low
    assert low < 0
    assert found.values[0] > -shift  # x + shift must be above 0; a fifth of the range would go further
    assert low - (fit.survey.high[0] - low) / 5 < -shift
    assert found.values[-1] > fit.survey.high[0]
    assert np.isfinite(found.hazard).all()


def test_other_covariates_are_where_they_are_put(model):
    fit = model._fit
    typical, busy = (profile_covariate(fit, NAMES[0], at=at) for at in (None, {"traffic_mean": 1e6}))
    assert busy.others["traffic_mean"] == 1e6
    assert not np.allclose(typical.hazard, busy.hazard)
    assert any(note.startswith("traffic_mean = 1e+06") for note in busy.notes)
    assert profile_covariate(fit, NAMES[0], at={NAMES[0]: 999.0}).notes == ()


def test_advancing_age_shortens_the_years_of_what_ages(model):
    fit = model._fit
    still, aging = (
        profile_covariate(fit, NAMES[0], replace(AT_REST_BY_DELTA, age=age)) for age in ("fixed", "advances")
    )
    assert (aging.years < still.years).all()  # older is faster in every state here
    np.testing.assert_array_equal(aging.hazard, still.hazard)


def test_refits_give_intervals_too():
    rows = rekka.simulate_transitions(400, n_states=3, seed=3)
    fitted = fit_rows(rows, names=NAMES[:1])
    drawn = fitted.bootstrap(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy(), draws=120, seed=1)
    found = profile_covariate(drawn._fit, NAMES[0], threshold=3, options=replace(AT_REST, intervals="bootstrap"))
    delta = profile_covariate(drawn._fit, NAMES[0], threshold=3)
    middle = INSIDE // 2
    np.testing.assert_allclose(np.log(found.hazard_low[middle]), np.log(delta.hazard_low[middle]), atol=0.25)
    assert (found.years_low < found.years).all()
    assert found.intervals == "bootstrap"


def test_the_table_has_a_row_for_each_value_and_state(model):
    found = profile_covariate(model._fit, NAMES[0])
    table = found.table()
    assert len(table) == found.hazard.size
    second = table.filter(state=2)
    np.testing.assert_array_equal(second["value"], found.values)
    np.testing.assert_array_equal(second["hazard_per_year_low"], found.hazard_low[:, 1])
    np.testing.assert_array_equal(second["mean_years"], found.years)
    np.testing.assert_array_equal(second["outside"], found.outside)
    assert "mean years from rating 1 to 4 or worse, along age_at_inspection_1" in table.title


def test_an_uncertified_model_has_no_bands():
    found = profile_covariate(fit_rows(rekka.simulate_transitions(24, n_states=5))._fit, NAMES[0])
    assert np.isnan(found.hazard_low).all()
    assert np.isnan(found.years_high).all()
    assert found.notes[0].startswith(NOT_CERTIFIED)
    assert not found.table()["certified"].any()
    assert found.table()["mean_years_low"].is_null().all()


def test_what_cannot_be_asked_is_refused(model):
    fit = model._fit
    with pytest.raises(rekka.InputError, match=r"bridge_lenght is not a covariate.*Did you mean bridge_length"):
        profile_covariate(fit, "bridge_lenght")
    with pytest.raises(rekka.InputError, match="a state from 1 to 3 is needed"):
        profile_covariate(fit, NAMES[0], start=4)
    with pytest.raises(rekka.InputError, match="The range of age_at_inspection_1 is not known"):
        profile_covariate(replace(fit, survey=None), NAMES[0], at=dict.fromkeys(NAMES, 40.0))


def test_a_covariate_of_one_value_has_one_point(shifted):
    same = replace(shifted.survey, quantiles=np.tile(shifted.survey.median[:, None], 101))
    found = profile_covariate(replace(shifted, survey=same), "far")
    assert found.values.tolist() == [shifted.survey.median[0]]
    assert not found.outside.any()


@pytest.mark.parametrize("low", [0.0, 0.5, -5.0])
def test_no_value_of_a_grid_is_there_twice(low):
    """From 0 on there is nothing below, unless the training rows have it."""
    quantiles = np.linspace(low, 100.0, 101)[None]
    survey = SimpleNamespace(low=np.array([low]), high=np.array([100.0]), quantiles=quantiles)
    fit = SimpleNamespace(covariates=("age",), survey=survey, design=lambda x: x)
    grid = _make_grid(fit, 0, np.array([50.0]))
    assert (np.diff(grid) > 0).all()
    assert (grid[0] == 0.0) if low >= 0 else (grid[0] < low)
