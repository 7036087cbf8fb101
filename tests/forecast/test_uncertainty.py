"""Intervals by the delta method, by draws, and by refits to bridges drawn again."""

from dataclasses import replace

import numpy as np
import pytest

import rekka
from rekka.core.errors import BadOption
from rekka.forecast.uncertainty import BOOTSTRAP, DELTA, LOG, LOGIT, NONE, NORMAL, find_uncertainty, root_of
from rekka.model.certificate import Verdict

BRIDGES = "bridge_id"


@pytest.fixture(scope="module")
def rows():
    return rekka.simulate_transitions(1500, n_states=3, seed=8)


@pytest.fixture(scope="module")
def model(rows):
    model = rekka.ExponentialHazardMarkovModel(covariates=["age_at_inspection_1", "traffic_mean"])
    return model.fit(rows, rows["state_2"], groups=rows[BRIDGES].to_numpy())


@pytest.fixture(scope="module")
def fit(model):
    return model._fit


def hazards_of(uncertainty, x):
    """Log hazards (B, K-1) at covariates x: a quantity whose delta method is exact."""
    return uncertainty.coefficients @ np.concatenate([[1.0], x])


def test_the_estimate_comes_first(fit):
    for kind in (DELTA, NORMAL, NONE):
        np.testing.assert_array_equal(find_uncertainty(fit, kind).coefficients[0], fit.coefficients)


def test_delta_is_exact_where_the_quantity_is_linear(fit):
    uncertainty, x = find_uncertainty(fit, DELTA), fit.survey.median
    design = np.concatenate([[1.0], x])
    variance = np.einsum("u,kukv,v->k", design, fit.covariance_blocks, design)
    np.testing.assert_allclose(uncertainty.deviation(hazards_of(uncertainty, x)), np.sqrt(variance), rtol=1e-8)


def test_the_delta_interval_of_years_is_the_hazard_tables(model, rows, fit):
    row = rows.head(1)
    uncertainty = find_uncertainty(fit, DELTA)
    low, high = uncertainty.interval(np.exp(-hazards_of(uncertainty, row.select(fit.covariates).row(0))), LOG)
    theirs = model.hazards(row)
    np.testing.assert_allclose(low, theirs["years_low"], rtol=1e-7)
    np.testing.assert_allclose(high, theirs["years_high"], rtol=1e-7)


def test_draws_have_the_covariance_of_the_fit(fit):
    drawn = find_uncertainty(fit, NORMAL, draws=40_000).coefficients[1:].reshape(40_000, -1)
    scale = np.sqrt(np.diag(fit.inference.covariance))
    ours, theirs = np.cov(drawn.T) / np.outer(scale, scale), fit.inference.covariance / np.outer(scale, scale)
    np.testing.assert_allclose(ours, theirs, atol=0.03)
    np.testing.assert_allclose((drawn.mean(axis=0) - fit.coefficients.ravel()) / scale, 0.0, atol=0.03)


def test_a_seed_repeats_its_draws(fit):
    first, again, other = (find_uncertainty(fit, NORMAL, seed=seed).coefficients for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_probabilities_stay_between_0_and_1_and_certainty_has_no_width(fit):
    uncertainty = find_uncertainty(fit, DELTA)
    p = np.stack([np.full(len(uncertainty.coefficients), value) for value in (0.0, 1.0, 1e-9, 1 - 1e-9)], axis=1)
    p[1::2, 2:] += 1e-10 * np.array([1, -1])
    low, high = uncertainty.interval(p, LOGIT)
    np.testing.assert_array_equal(low[:2], [0.0, 1.0])
    np.testing.assert_array_equal(high[:2], [0.0, 1.0])
    assert ((low >= 0) & (high <= 1) & (low <= p[0]) & (p[0] <= high)).all()
    p[0], p[1], p[2:] = 1 - 1e-16, 1 + 3e-16, 1.0  # rounding may carry a probe beyond
    np.testing.assert_array_equal(uncertainty.interval(p, LOGIT), [p[0], p[0]])


def test_a_root_is_a_root_whatever_the_units():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 4))  # of rank 4: shared coefficients
    scale = 10.0 ** np.arange(-9, 9, 3)
    covariance = (a @ a.T) * np.outer(scale, scale)
    root = root_of(covariance)
    assert root.shape == (6, 4)
    np.testing.assert_allclose(root @ root.T / np.outer(scale, scale), a @ a.T, atol=1e-12)


def test_refits_to_bridges_drawn_again_agree_with_the_sandwich(model, rows):
    drawn = model.bootstrap(rows, rows["state_2"], groups=rows[BRIDGES].to_numpy(), draws=150, seed=4)._fit
    x = drawn.survey.median
    boot, delta = find_uncertainty(drawn, BOOTSTRAP), find_uncertainty(drawn, DELTA)
    assert boot.kind == BOOTSTRAP
    assert boot.drawn
    ours, theirs = (one.deviation(hazards_of(one, x)) for one in (boot, delta))
    np.testing.assert_allclose(ours, theirs, rtol=0.3)  # 150 draws: a standard error of 6 %, and small samples


def test_a_fit_that_is_no_maximum_has_no_intervals(fit):
    doubtful = replace(fit, certificate=replace(fit.certificate, verdict=Verdict.SHORT_OF_MAXIMUM))
    uncertainty = find_uncertainty(doubtful, NORMAL)
    assert uncertainty.kind == NONE
    assert "not a certified maximum" in uncertainty.why
    assert np.isnan(uncertainty.interval(uncertainty.coefficients, LOG)).all()
    assert np.isnan(uncertainty.deviation(uncertainty.coefficients)).all()


def test_what_is_not_there_is_refused(fit):
    with pytest.raises(BadOption, match=r"rekka fit --bootstrap 200"):
        find_uncertainty(fit, BOOTSTRAP)
    with pytest.raises(BadOption, match=r"intervals is 'wide'; it can be delta, normal, bootstrap, none\."):
        find_uncertainty(fit, "wide")
    with pytest.raises(BadOption, match="at least 100"):
        find_uncertainty(fit, NORMAL, draws=5)
    with pytest.raises(BadOption, match="level is 95"):
        find_uncertainty(fit, NORMAL, level=95)


def test_infinite_years_are_an_end_of_an_interval(fit):
    uncertainty = find_uncertainty(fit, NORMAL, draws=100)
    years = np.linspace(1, 2, 101)
    years[-10:] = np.inf
    low, high = uncertainty.interval(years[:, None], LOG)
    assert low[0] == pytest.approx(1.03, abs=0.02)
    assert np.isinf(high[0])
