"""A fitted model as an engineer reads it, against the estimator's own figures."""

import math

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.model.serial import load_model
from rekka.report.summarize import list_coefficients, list_ratios, list_years

STEPS = {"age_at_inspection_1": 10.0, "bridge_length": 20.0, "bridge_area": 500.0, "traffic_mean": 1000.0}


@pytest.fixture(scope="module", params=["zscore", "boxcox", None])
def fitted(request):
    """A model, its fit as a study keeps it, and typical covariates."""
    rows = rekka.simulate_transitions(900, n_states=5, seed=3)
    model = rekka.ExponentialHazardMarkovModel(request.param, covariates=list(STEPS), units=STEPS)
    model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
    typical = np.array([rows[name].median() for name in STEPS])
    return model, load_model(model.to_json())[0], typical


def frame(x):
    """One row for the estimator."""
    return pl.DataFrame({name: [value] for name, value in zip(STEPS, x, strict=True)}).with_columns(
        state_1=pl.lit(1), interval_years=pl.lit(1.0)
    )


def test_coefficients_are_those_of_the_summary(fitted):
    model, fit, _ = fitted
    ours, theirs = list_coefficients(fit, 0.95), model.summary()
    assert [(one.state, one.term) for one in ours] == theirs.select("state", "term").rows()
    for name, column in (
        ("estimate", "estimate"),
        ("se", "se"),
        ("low", "ci_low"),
        ("high", "ci_high"),
        ("p", "p"),
    ):
        np.testing.assert_allclose([getattr(one, name) for one in ours], theirs[column], rtol=1e-12)


def test_a_ratio_is_the_hazard_with_one_step_more_relative_to_that_without(fitted):
    model, fit, typical = fitted
    for ratio in list_ratios(fit, typical, STEPS, 0.95):
        more = typical.copy()
        more[list(STEPS).index(ratio.covariate)] += ratio.step
        with_step, without = (model.hazards(frame(x))["hazard"][ratio.state - 1] for x in (more, typical))
        assert ratio.ratio == pytest.approx(with_step / without, rel=1e-10)
        assert ratio.low < ratio.ratio < ratio.high


def test_ratios_of_an_affine_scaling_are_those_of_the_summary_and_the_same_everywhere(fitted):
    model, fit, typical = fitted
    here, there = (list_ratios(fit, x, STEPS, 0.95) for x in (typical, typical * 1.5))
    same = [math.isclose(one.ratio, other.ratio, rel_tol=1e-9) for one, other in zip(here, there, strict=True)]
    if not fit.native:
        assert not any(same)
        return
    assert all(same)
    theirs = {(r["state"], r["term"]): r for r in model.summary().to_dicts() if r["unit"] is not None}
    for ours in here:
        row = theirs[ours.state, ours.covariate]
        expected = (row["hazard_ratio"], row["hr_low"], row["hr_high"])
        np.testing.assert_allclose((ours.ratio, ours.low, ours.high), expected, rtol=1e-10)


def test_the_interval_of_a_ratio_is_that_of_drawn_coefficients(fitted):
    _, fit, typical = fitted
    ratio = next(
        r for r in list_ratios(fit, typical, STEPS, 0.95) if r.covariate == "traffic_mean" and r.state == 2
    )
    draws = np.random.default_rng(1).multivariate_normal(
        fit.inference.coefficients, fit.inference.covariance, size=40_000, method="eigh"
    )
    more = typical + np.array([0, 0, 0, 1000.0])
    z = np.stack([x if fit.native else fit.scaling.transform(x[None])[0] for x in (typical, more)])
    beta = draws.reshape(len(draws), fit.n_states - 1, -1)[:, 1, 1:]
    low, high = np.quantile(np.exp(beta @ (z[1] - z[0])), [0.025, 0.975])
    np.testing.assert_allclose([math.log(ratio.low), math.log(ratio.high)], np.log([low, high]), atol=0.03)


def test_years_in_each_state_are_those_of_the_estimator(fitted):
    model, fit, typical = fitted
    ours, theirs = list_years(fit, typical, 0.95), model.hazards(frame(typical))
    for name in ("hazard", "hazard_low", "hazard_high", "years", "years_low", "years_high"):
        np.testing.assert_allclose([getattr(one, name) for one in ours], theirs[name], rtol=1e-12)
