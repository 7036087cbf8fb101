"""A normal prior of the coefficients: what is refused, and what it does to fits."""

import numpy as np
import polars as pl
import pytest
from scipy import optimize

import rekka
from rekka.evaluation.resampling import Sample
from rekka.model.certificate import Verdict
from rekka.model.coordinates import Prior, read_prior
from rekka.model.fit import Options, fit_rows, refit_rows
from rekka.model.inference import native_units
from rekka.model.likelihood import Rows
from rekka.scaling.registry import fit_scaling
from rekka.simulation.rows import COVARIATES

NAMES = COVARIATES[:2]


@pytest.fixture(scope="module")
def sample() -> Sample:
    return Sample.of(rekka.simulate_transitions(60, n_states=3, seed=4), NAMES, 3)


@pytest.fixture(scope="module")
def prior() -> Prior:
    rng = np.random.default_rng(2)
    root = rng.normal(size=(6, 6))
    return Prior(rng.normal(-0.5, 0.4, 6), root @ root.T + 2 * np.eye(6))


def fit(sample, **options):
    """With the age at the start of intervals, which is that of ``sample.x``."""
    return fit_rows(sample.rows, sample.x, sample.covariates, Options(clock="start", **options))


def separated() -> Sample:
    """No row leaves state 2, and age tells those that left state 1 from those that stayed."""
    x = np.arange(12.0)[:, None]
    end = (x[:, 0] > 5).astype(np.int64)
    rows = Rows(np.zeros(12, np.int64), end, np.full(12, 5.0), np.ones(12), 3)
    return Sample(rows, x, np.arange(12).astype(np.str_), ("age",))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1.0, 2.0], "prior is a list; mean and precision are needed"),
        ({"mean": [0.0]}, "prior is a dict; mean and precision are needed"),
        ({"mean": [0.0, 0.0], "precision": [[1.0]]}, r"mean \(2,\) and precision \(1, 1\); this model has 2"),
        ({"mean": [0.0, np.nan], "precision": np.eye(2)}, "everything finite"),
        ({"mean": [0.0, 0.0], "precision": [[1.0, 0.5], [0.0, 1.0]]}, "must be symmetric"),
        ({"mean": [0.0, 0.0], "precision": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ({"mean": [0.0, 0.0], "precision": [[1.0, 0.0], [0.0, 0.0]]}, "positive definite"),
    ],
)
def test_what_is_no_prior_is_refused(given, words):
    with pytest.raises(rekka.InputError, match=words):
        read_prior(given, 2)


def test_a_prior_goes_to_plain_data_and_back(prior):
    again = read_prior(prior.to_dict(), 6)
    np.testing.assert_array_equal(again.mean, prior.mean)
    np.testing.assert_array_equal(again.precision, prior.precision)
    assert read_prior(None, 6) is None


def test_a_prior_and_a_ridge_are_not_given_together(sample, prior):
    with pytest.raises(rekka.InputError, match="both hold the slopes"):
        fit(sample, prior=prior, ridge=1.0)


def test_the_fit_is_the_mode_by_the_closed_form_and_scipy(sample, prior):
    """An independent objective: the closed form of three states, minimized by BFGS with numeric gradients."""
    z = (sample.x - sample.x.mean(axis=0)) / sample.x.std(axis=0)
    X, rows = np.column_stack([np.ones(len(z)), z]), sample.rows

    def objective(coefficients):
        a, b = np.exp(coefficients.reshape(2, 3) @ X.T) * rows.dt
        stay, next_one = np.exp(-a), a * (np.exp(-a) - np.exp(-b)) / (b - a)
        from_1 = np.array([stay, next_one, 1 - stay - next_one])
        from_2 = np.array([np.zeros_like(b), np.exp(-b), 1 - np.exp(-b)])
        p = np.where(rows.start == 0, from_1, from_2)[rows.end, np.arange(len(a))]
        away = coefficients - prior.mean
        return 0.5 * away @ prior.precision @ away - np.log(p).sum()

    first = np.array([-2.0, 0.0, 0.0, -2.5, 0.0, 0.0])  # the closed form has no value at equal rates
    theirs = optimize.minimize(objective, first, method="BFGS", options={"gtol": 1e-4})
    ours = fit(sample, prior=prior)
    np.testing.assert_allclose(ours.beta.ravel(), theirs.x, atol=2e-5)
    assert ours.outcome.objective == pytest.approx(theirs.fun, abs=1e-6)
    assert ours.certificate.certified


@pytest.mark.parametrize("other", ["minmax", "max"])
def test_the_same_prior_in_other_units_gives_the_same_forecasts(sample, prior, other):
    """a = z-score coefficients = turn @ those of the other scaling, so precision' = turn' precision turn."""
    (o1, f1), (o2, f2) = (fit_scaling(name, sample.x, NAMES).affine() for name in ("zscore", other))
    turn = np.eye(3)
    turn[1:, 1:] = np.diag(f2 / f1)
    turn[0, 1:] = (o1 - o2) * f2
    change = np.kron(np.eye(2), turn)
    moved = Prior(np.linalg.solve(change, prior.mean), change.T @ prior.precision @ change)
    ours, theirs = fit(sample, prior=prior), fit(sample, prior=moved, scaling=other)
    np.testing.assert_allclose(theirs.log_hazards(sample.x), ours.log_hazards(sample.x), atol=1e-8)
    assert theirs.outcome.objective == pytest.approx(ours.outcome.objective, abs=1e-9)


def test_lbfgs_and_refits_find_the_same_mode(sample, prior):
    ours = fit(sample, prior=prior)
    theirs = fit(sample, prior=prior, solver="lbfgs", seed=3)
    np.testing.assert_allclose(theirs.beta, ours.beta, atol=1e-3)
    again = refit_rows(sample.rows, sample.x, NAMES, Options(prior=prior.to_dict(), clock="start"))
    np.testing.assert_allclose(again.beta, ours.beta, atol=1e-9)
    assert again.at_maximum


def test_a_precise_prior_is_the_answer_and_a_vague_one_is_none(sample):
    mean = np.array([-2.0, 0.3, 0.1, -2.5, -0.2, 0.4])
    np.testing.assert_allclose(fit(sample, prior=Prior(mean, 1e9 * np.eye(6))).beta.ravel(), mean, atol=1e-6)
    vague = fit(sample, prior=Prior(mean, 1e-9 * np.eye(6)))
    np.testing.assert_allclose(vague.beta, fit(sample).beta, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_newton_finishes_on_precise_priors(seed):
    """The square multiplied out, psi' S psi / 2 - c' psi, left it stalled just short, and called a failure."""
    rng = np.random.default_rng(seed)
    found = Sample.of(rekka.simulate_transitions(90, n_states=5, seed=seed), COVARIATES, 5)
    mean = np.column_stack([rng.normal(-2.3, 0.3, 4), rng.normal(0, 0.2, (4, 4))]).ravel()
    precision = np.diag(10.0 ** rng.uniform(2, 7, 20))
    one = fit(found, prior=Prior(mean, precision))
    assert one.outcome.success
    assert one.certificate.decrement < 1e-12


def test_the_penalty_counts_what_the_layout_keeps_from_the_prior(sample):
    """A mean that the layout does not allow costs its distance, in both kinds of coordinates."""
    mean = np.array([-2.0, 0.5, 0.1, -2.5, 0.3, 0.4])
    for solver in ("newton", "lbfgs"):
        one = fit(sample, prior=Prior(mean, 3.0 * np.eye(6)), effects={NAMES[0]: [1]}, solver=solver)
        square = 1.5 * ((one.beta.ravel() - mean) ** 2).sum()
        assert one.outcome.objective == pytest.approx(square - one.inference.log_likelihood, abs=1e-8)


def test_a_prior_on_the_slopes_alone_is_the_ridge(sample):
    precision = np.diag(np.tile([1e-9, 7.0, 7.0], 2))
    held = fit(sample, prior=Prior(np.zeros(6), precision))
    np.testing.assert_allclose(held.beta, fit(sample, ridge=7.0).beta, atol=1e-6)


def test_rows_without_a_maximum_have_one_with_a_prior():
    rows = separated()
    assert fit(rows).certificate.verdict is Verdict.NO_FINITE_MAXIMUM
    held = fit(rows, prior=Prior(np.array([-2.0, 0.0, -2.0, 0.0]), np.eye(4)))
    assert held.certificate.certified
    assert (np.diag(held.inference.covariance) > 0).all()


def test_absent_and_shared_coefficients_keep_to_the_layout(sample, prior):
    held = fit(sample, prior=prior, effects={NAMES[0]: [1]}, shared={NAMES[1]: [[1, 2]]})
    assert held.beta[1, 1] == 0.0
    assert held.beta[0, 2] == pytest.approx(held.beta[1, 2], abs=1e-12)
    assert held.certificate.certified


def test_the_estimator_takes_a_prior_as_plain_data(sample, prior):
    data = rekka.simulate_transitions(60, n_states=3, seed=4)
    options = {"covariates": NAMES, "n_states": 3, "prior": prior.to_dict(), "clock": "start"}
    model = rekka.ExponentialHazardMarkovModel(**options)
    model.fit(data, data["state_2"])
    p = model.predict_proba(data.select(pl.exclude("state_2")))
    expected = fit(sample, prior=prior).probabilities(sample.rows.start, sample.rows.dt, sample.x)
    np.testing.assert_allclose(p, expected, atol=1e-9)


def test_the_uncertainty_of_the_mean_widens_the_covariance_as_it_should():
    """cov = H^-1 + H^-1 L U L H^-1 for the scaled coefficients, L the precision and U the uncertainty."""
    data = rekka.simulate_transitions(400, n_states=3, seed=4)
    names = ["age_at_inspection_1", "traffic_mean"]
    size = 2 * 3
    rng = np.random.default_rng(2)
    root = rng.normal(size=(size, size))
    prior = {"mean": np.full(size, -1.0), "precision": root @ root.T + 5 * np.eye(size)}
    unsure = rng.normal(size=(size, size))
    wide = prior | {"uncertainty": unsure @ unsure.T}
    plain, wider = (
        rekka.ExponentialHazardMarkovModel("zscore", covariates=names, prior=one).fit(data, data["state_2"])
        for one in (prior, wide)
    )
    assert wider.coef_ == pytest.approx(plain.coef_)
    to_native = np.kron(np.eye(2), native_units(plain.scaling_, len(names)))
    inverse = np.linalg.solve(to_native, np.linalg.solve(to_native, plain.covariance_).T)
    moved = inverse @ prior["precision"]
    expected = to_native @ (inverse + moved @ wide["uncertainty"] @ moved.T) @ to_native.T
    assert wider.covariance_ == pytest.approx(expected, rel=1e-6, abs=1e-12)
