"""Samples on which the first maximum is not the highest, or not a maximum at all."""

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.model.certificate import Verdict


def frame(start, dt, **covariates):
    return pl.DataFrame({"state_1": start, "interval_years": dt, **covariates})


TWO_HILLS = frame([2, 1, 1, 2, 1, 1, 2, 1, 1], [0.25, 2, 0.5, 16, 0.25, 0.25, 0.5, 16, 0.5])
ENDS = [3, 1, 3, 3, 1, 3, 3, 2, 2]


def test_the_higher_of_two_maxima_is_found():
    """Nine rows, no covariates; the crude rates lead to -20.54, the highest maximum is -17.27."""
    model = rekka.ExponentialHazardMarkovModel().fit(TWO_HILLS, ENDS)
    assert model.log_likelihood_ == pytest.approx(-17.27365868)
    np.testing.assert_allclose(model.intercept_, [-1.540268, 1.605910], atol=1e-5)
    assert model.certificate_.certified
    assert model.certificate_.starts == 4


def test_a_fit_on_the_lower_hill_is_told():
    model = rekka.ExponentialHazardMarkovModel(solver="lbfgs", seed=1).fit(TWO_HILLS, ENDS)
    best = rekka.ExponentialHazardMarkovModel().fit(TWO_HILLS, ENDS)
    gap = best.log_likelihood_ - model.log_likelihood_
    assert model.certificate_.shortfall == pytest.approx(gap, abs=1e-6)
    assert model.certificate_.certified == (gap < 1e-6)


def test_a_fit_that_ran_away_is_not_certified():
    """Quasi-separated: the best fit has standard errors of 1e5, which is where Newton tired."""
    X = frame([2, 1, 2, 1, 2, 2, 1], [1.0, 2, 2, 5, 5, 3, 5], x=[0.0, 2, 1, 0, 1, 0, 4])
    model = rekka.ExponentialHazardMarkovModel().fit(X, [2, 2, 2, 2, 3, 2, 1])
    assert model.certificate_.verdict is Verdict.NO_FINITE_MAXIMUM


def test_an_unfinished_fit_is_short_not_hopeless():
    """Away from its maximum a fit must not be told that there is none."""
    data = rekka.simulate_transitions(60, n_states=3, seed=4)
    X, y = data.select("state_1", "interval_years", "age_at_inspection_1"), data["state_2"]
    assert rekka.ExponentialHazardMarkovModel().fit(X, y).certificate_.certified
    short = rekka.ExponentialHazardMarkovModel(solver="lbfgs", max_iter=2).fit(X, y)
    assert short.certificate_.verdict is Verdict.SHORT_OF_MAXIMUM
    assert short.certificate_.maximum_exists


def test_one_absurd_outlier_does_not_stall_the_fit():
    data = rekka.simulate_transitions(400, n_states=4, seed=0)
    traffic = data["traffic_mean"].to_numpy().copy()
    traffic[0] = 1e8
    X = data.select("state_1", "interval_years").with_columns(traffic=traffic)
    model = rekka.ExponentialHazardMarkovModel().fit(X, data["state_2"])
    assert model.outcome_.success
    assert model.certificate_.verdict in (Verdict.CERTIFIED, Verdict.NO_FINITE_MAXIMUM)


def test_random_small_samples_are_never_certified_below_a_reachable_point():
    """Against BFGS from six random starts on 60 small samples."""
    from scipy.optimize import minimize

    from rekka.model.likelihood import Likelihood, Rows
    from rekka.simulation.rows import draw_ends

    certified = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_states, n = int(rng.integers(2, 5)), int(rng.choice([10, 20, 40]))
        x, start = rng.normal(size=n), rng.integers(0, n_states - 1, n)
        dt = rng.choice([0.25, 1.0, 5.0, 16.0], n)
        theta = np.exp(rng.normal(-1, 1, n_states - 1) + np.outer(x, rng.normal(size=n_states - 1)))
        end = draw_ends(theta, dt, start, rng)
        if end.max() == 0:
            continue
        model = rekka.ExponentialHazardMarkovModel().fit(frame(start + 1, dt, x=x), end + 1)
        if not model.certificate_.certified:
            continue
        certified += 1
        free = model.n_states_ - 1
        rows = Rows(start, end, dt, np.ones(n), model.n_states_)
        likelihood = Likelihood.build(rows, np.column_stack([np.ones(n), x]), threads=1)

        def objective(beta, likelihood=likelihood, free=free):
            value, gradient, _ = likelihood.evaluate(beta.reshape(free, 2), 1)
            usable = np.isfinite(value) and np.isfinite(gradient).all()
            return (-value, -gradient) if usable else (1e10, np.zeros_like(beta))

        for _ in range(6):
            begin = np.column_stack([rng.normal(-1, 2, free), rng.normal(0, 1.5, free)]).ravel()
            found = minimize(objective, begin, jac=True, method="BFGS", options={"maxiter": 200})
            assert -found.fun <= model.log_likelihood_ + 1e-6, seed
    assert certified > 20
