import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rekka
from rekka.model.survey import FitTest, survey_covariates

NUMBERS = st.floats(-1e12, 1e12)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(0, 4)), elements=NUMBERS))
def test_ends_are_values_of_the_rows_and_half_of_them_lie_on_each_side(x):
    found = survey_covariates(x, tuple("abcd"[: x.shape[1]]))
    assert found.quantiles.shape == (x.shape[1], 101)
    np.testing.assert_array_equal(found.low, x.min(axis=0))
    np.testing.assert_array_equal(found.high, x.max(axis=0))
    assert (np.sum(x <= found.median, axis=0) >= len(x) / 2).all()
    assert (np.sum(x >= found.median, axis=0) >= len(x) / 2).all()
    assert (found.low <= found.median).all()


def test_of_hundred_and_one_values_they_are_the_values():
    x = np.random.default_rng(0).normal(size=(101, 2))
    found = survey_covariates(x, ("a", "b"))
    assert found.names == ("a", "b")
    np.testing.assert_allclose(found.quantiles, np.sort(x, axis=0).T, rtol=1e-12)


@pytest.mark.parametrize("scaling", ["zscore", "boxcox"])
def test_a_fit_keeps_the_raw_covariates_of_its_rows(scaling):
    data = rekka.simulate_transitions(300, n_states=3, seed=2)
    weight = np.ones(300)
    weight[data["traffic_mean"].arg_max()] = 0.0  # weight 0 is absence
    model = rekka.ExponentialHazardMarkovModel(scaling, covariates=["traffic_mean", "bridge_length"])
    model.fit(data, data["state_2"], sample_weight=weight)
    kept = data.filter(weight > 0)
    assert model.survey_.names == ("traffic_mean", "bridge_length")
    assert model.survey_.high.tolist() == [kept["traffic_mean"].max(), kept["bridge_length"].max()]
    assert model.survey_.high[0] < data["traffic_mean"].max()
    assert model.survey_.median == pytest.approx([kept["traffic_mean"].median(), kept["bridge_length"].median()])


@pytest.mark.parametrize("scaling", ["minmax", "boxcox"])
def test_coefficients_and_design_give_the_log_hazards(scaling):
    """In native units where the scaling is affine, else in transformed ones; with the covariance beside them."""
    data = rekka.simulate_transitions(300, n_states=4, seed=2)
    model = rekka.ExponentialHazardMarkovModel(scaling, covariates=["age_at_inspection_1", "bridge_length"])
    fit = model.fit(data, data["state_2"])._fit
    x = data.select("age_at_inspection_1", "bridge_length").to_numpy()
    design = fit.design(x)
    assert design.shape == (300, 3)
    assert (design[:, 1:] == x).all() == (scaling == "minmax")
    np.testing.assert_allclose(design @ fit.coefficients.T, fit.log_hazards(x), rtol=1e-9)
    blocks = fit.covariance_blocks
    assert blocks.shape == (3, 3, 3, 3)
    assert blocks[1, 2, 0, 1] == model.covariance_[1 * 3 + 2, 0 * 3 + 1]
    np.testing.assert_array_equal(fit.coefficients, np.column_stack([model.intercept_, model.coef_]))


@pytest.mark.parametrize(("p_value", "rejected"), [(0.04, True), (0.05, True), (0.06, False)])
def test_a_fit_is_rejected_at_its_level_too(p_value, rejected):
    assert FitTest(p_value, 9.0, 0.05, 19, 0, 0, seed=1, rows=10).rejected is rejected
