"""Refits to bridges drawn again, beside the same done by hand."""

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.core.errors import BadOption, BadStates, BadValues, InputError, MissingColumns, OutsideTrainingRange
from rekka.core.numerics import generator
from rekka.evaluation.resampling import Sample, draw_bootstrap
from rekka.model.bootstrap import bootstrap_rows, draw_times
from rekka.model.fit import Options, fit_rows
from rekka.model.inference import native_units
from rekka.model.inputs import read_groups

COVARIATES = ("age_at_inspection_1", "bridge_length")
LAYOUT = {"effects": {"bridge_length": [1]}, "shared": {"age_at_inspection_1": [[1, 2]]}}


def simulated(n=400, n_states=4, seed=1):
    return Sample.of(rekka.simulate_transitions(n, n_states=n_states, seed=seed), COVARIATES, n_states)


def drawn(sample, draws=5, seed=0, **options):
    """A fit, and its refits."""
    options = Options(**options)
    groups, _ = read_groups(sample.bridge, len(sample))
    fit = fit_rows(sample.rows, sample.x, sample.covariates, options, groups)
    return fit, bootstrap_rows(fit, sample.rows, sample.x, groups, options, draws=draws, seed=seed)


def in_native_units(fit, beta):
    return beta @ native_units(fit.scaling, len(fit.covariates)).T


@pytest.mark.parametrize(
    "options", [{}, {"ridge": 20.0}, LAYOUT, {"scaling": "minmax"}, {"scaling": None}], ids=str
)
def test_a_draw_is_a_fit_to_the_rows_of_the_bridges_drawn(options):
    """The rows repeated, scaled anew, by the whole fit: with an affine scaling nothing may differ."""
    sample = simulated()
    fit, found = drawn(sample, 3, 7, **options)
    assert found.beta.shape == (3, *fit.beta.shape)
    for number, beta in enumerate(found.beta):
        index, _ = draw_bootstrap(sample.bridge, generator(7, "bootstrap", number))
        again = sample.take(index)
        theirs = fit_rows(again.rows, again.x, again.covariates, Options(**options))
        ours = in_native_units(fit, beta)
        np.testing.assert_allclose(ours, theirs.coefficients, rtol=1e-6, atol=1e-9)
        assert not np.allclose(ours, fit.coefficients, rtol=1e-3)


def test_rows_are_counted_as_often_as_the_plain_draw_repeats_them():
    bridge = simulated().bridge
    names, member = np.unique(bridge, return_inverse=True)
    for number in range(20):
        index, _ = draw_bootstrap(bridge, generator(3, number))
        times = draw_times(names.size, generator(3, number))[member]
        np.testing.assert_array_equal(np.bincount(index, minlength=len(bridge)), times)


def test_weights_and_a_prior_stay_with_their_rows():
    sample = simulated()
    sample.rows.weight[:] = np.random.default_rng(0).uniform(0.5, 2.0, len(sample))
    prior = {"mean": np.full(9, -0.5), "precision": np.diag(np.linspace(1.0, 40.0, 9))}
    _, found = drawn(sample, 2, scaling=None, prior=prior)
    for number, beta in enumerate(found.beta):
        index, _ = draw_bootstrap(sample.bridge, generator(0, "bootstrap", number))
        again = sample.take(index)
        theirs = fit_rows(again.rows, again.x, COVARIATES, Options(scaling=None, prior=prior))
        np.testing.assert_allclose(beta, theirs.beta, rtol=1e-6, atol=1e-9)


def test_the_scaling_is_held():
    """Without its smallest bridge, a Box-Cox fitted anew has another shift and another exponent."""
    sample = simulated(150, 3)
    sample.x[sample.bridge == sample.bridge[0], 1] = -30.0
    fit, found = drawn(sample, 12, scaling="boxcox")
    seen = 0
    for number, beta in enumerate(found.beta):
        index, _ = draw_bootstrap(sample.bridge, generator(0, "bootstrap", number))
        again = sample.take(index)
        z = fit.scale(again.x, again.rows.dt)
        held = fit_rows(again.rows, z, COVARIATES, Options(scaling=None, advance=()))
        np.testing.assert_allclose(beta, held.beta, rtol=1e-5, atol=1e-8)
        alone = fit_rows(again.rows, again.x, COVARIATES, Options(scaling="boxcox"))
        if again.x[:, 1].min() > 0:
            seen += 1
            with pytest.raises(OutsideTrainingRange):
                alone.scaling.transform(sample.x)
    assert seen > 0
    assert np.isfinite(found.beta[:, :, 1:] @ fit.scaling.transform(sample.x).T).all()


def test_the_spread_is_near_the_clustered_standard_errors():
    """Both estimate one thing where there are many bridges and no row has much leverage.

    A standard deviation of 200 draws is itself within 5 % (1 / sqrt(2 * 199)), and the sandwich is too small by a
    few percent for some hundred bridges: within 20 % is four of the former, and any wrong clustering is further off
    (see the last lines, where every bridge stands three times).
    """
    sample = simulated(3000, 3, seed=4)
    fit, found = drawn(sample, 200)
    assert len(found.beta) == found.asked == 200
    assert found.groups == np.unique(sample.bridge).size
    ours = in_native_units(fit, found.beta).std(axis=0, ddof=1).ravel()
    theirs = np.sqrt(np.diag(fit.inference.covariance))
    np.testing.assert_allclose(ours, theirs, rtol=0.2)
    shift = (found.beta.mean(axis=0) - fit.beta) / found.beta.std(axis=0, ddof=1)
    assert np.abs(shift).max() < 0.4  # of a standard error: 0.07 by chance, and a little bias
    thrice = sample.take(np.tile(np.arange(len(sample)), 3))
    fit, found = drawn(thrice, 40)
    wrong = np.sqrt(np.diag(fit_rows(thrice.rows, thrice.x, COVARIATES, Options()).inference.covariance))
    assert (in_native_units(fit, found.beta).std(axis=0, ddof=1).ravel() > 1.3 * wrong).all()


def test_the_same_seed_gives_the_same_draws_and_few_are_the_first_of_many():
    sample = simulated(200)
    _, few = drawn(sample, 3, 5)
    _, many = drawn(sample, 6, 5)
    _, others = drawn(sample, 3, 6)
    np.testing.assert_array_equal(few.beta, many.beta[:3])
    assert not np.isclose(few.beta, others.beta).any()
    assert (few.asked, few.seed, many.asked, others.seed) == (3, 5, 6, 6)


def test_the_order_of_the_rows_does_not_matter():
    sample = simulated(200)
    _, ours = drawn(sample, 4)
    _, theirs = drawn(sample.take(np.random.default_rng(0).permutation(len(sample))), 4)
    np.testing.assert_allclose(ours.beta, theirs.beta, rtol=1e-6)


def test_draws_without_a_maximum_are_left_out_and_counted():
    """One bridge alone leaves state 2: draws without it, about one of e, have no maximum."""
    sample = simulated(120, 3)
    later = sample.rows.start == 1
    sample.rows.end[:] = np.minimum(sample.rows.end, 1)
    first = np.flatnonzero(later & (sample.rows.dt < 10))[0]
    sample.rows.end[first] = 2
    marked = sample.bridge[first]
    options = {"effects": {name: [1] for name in COVARIATES}}
    fit, found = drawn(sample, 40, **options)
    assert fit.certificate.certified
    have = [
        marked in sample.bridge[draw_bootstrap(sample.bridge, generator(0, "bootstrap", number))[0]]
        for number in range(40)
    ]
    assert 10 < sum(have) < 40
    assert len(found.beta) == sum(have)
    assert found.asked == 40


def test_a_covariate_that_no_drawn_bridge_varies_in_ends_a_draw():
    sample = simulated(120, 3)
    sample.x[:, 1] = 10.0
    sample.x[sample.bridge == sample.bridge[0], 1] = 11.0
    rare = sample.bridge[0]
    _, found = drawn(sample, 30, ridge=1.0)
    have = [
        rare in sample.bridge[draw_bootstrap(sample.bridge, generator(0, "bootstrap", number))[0]]
        for number in range(30)
    ]
    assert 0 < len(found.beta) <= sum(have) < 30


def test_from_a_fit_that_is_no_maximum_refits_start_anew():
    """L-BFGS-B after three steps is far from it; what limits it does not limit Newton's refits."""
    sample = simulated(300, 3)
    stopped = {"solver": "lbfgs", "gradient": "numeric", "likelihood": "paper", "max_iter": 3}
    fit, found = drawn(sample, 4, **stopped)
    assert not fit.certificate.certified
    _, plain = drawn(sample, 4)
    np.testing.assert_allclose(found.beta, plain.beta, rtol=1e-5, atol=1e-8)


def test_a_model_without_a_maximum_has_no_draws():
    sample = simulated(60, 3)
    sample.rows.end[:] = np.minimum(sample.rows.end, 1)
    sample.rows.start[:] = 0
    _, found = drawn(sample, 3)
    assert found.beta.shape == (0, 2, 3)
    assert found.asked == 3


def test_a_model_without_covariates_is_drawn_too():
    sample = simulated(300, 3)
    bare = Sample(sample.rows, sample.x[:, :0], sample.bridge, ())
    _, found = drawn(bare, 3)
    assert found.beta.shape == (3, 2, 1)
    assert np.unique(found.beta[:, 0, 0]).size == 3


def test_progress_is_told_after_each():
    sample = simulated(100, 3)
    told = []
    groups, _ = read_groups(sample.bridge, len(sample))
    fit = fit_rows(sample.rows, sample.x, COVARIATES, Options())
    bootstrap_rows(fit, sample.rows, sample.x, groups, Options(), draws=3, on_progress=lambda *n: told.append(n))
    assert told == [(1, 3), (2, 3), (3, 3)]


DATA = rekka.simulate_transitions(200, n_states=3, seed=3)
Y, GROUPS = DATA["state_2"], DATA["bridge_id"].to_numpy()
MODEL = rekka.ExponentialHazardMarkovModel("boxcox", covariates=list(COVARIATES)).fit(DATA, Y, groups=GROUPS)


def test_the_model_gets_draws_and_is_otherwise_the_same():
    again = MODEL.bootstrap(DATA, Y, groups=GROUPS, draws=4, seed=2)
    assert MODEL.resampled_ is None
    assert again is not MODEL
    assert (again.resampled_.asked, again.resampled_.seed, again.resampled_.groups) == (
        4,
        2,
        DATA["bridge_id"].n_unique(),
    )
    np.testing.assert_array_equal(again.predict_proba(DATA), MODEL.predict_proba(DATA))
    assert again.summary().equals(MODEL.summary(), null_equal=True)
    assert again.get_params() == MODEL.get_params()
    assert list(again.feature_names_in_) == list(MODEL.feature_names_in_)
    sample = Sample.of(DATA, COVARIATES, 3)
    _, plain = drawn(sample, 4, 2, scaling="boxcox")
    np.testing.assert_array_equal(again.resampled_.beta, plain.beta)


def test_a_model_that_was_read_back_can_be_drawn_and_keeps_its_names():
    text = MODEL.to_json(case="Pier", labels=["good", "fair", "poor"])
    model = rekka.ExponentialHazardMarkovModel.from_json(text)
    again = model.bootstrap(DATA, Y, groups=GROUPS, draws=2)
    assert (again.case_, again.labels_) == ("Pier", ("good", "fair", "poor"))
    np.testing.assert_array_equal(
        again.resampled_.beta, MODEL.bootstrap(DATA, Y, groups=GROUPS, draws=2).resampled_.beta
    )


def test_weights_are_those_of_the_fit():
    weight = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    options = {"covariates": list(COVARIATES), "class_weight": "inverse_frequency"}
    model = rekka.ExponentialHazardMarkovModel(**options).fit(DATA, Y, sample_weight=weight)
    again = model.bootstrap(DATA, Y, groups=GROUPS, sample_weight=weight, draws=2)
    assert again.resampled_.groups == np.unique(GROUPS[weight > 0]).size
    with pytest.raises(InputError, match="There are 200 rows, and the model was fitted on"):
        model.bootstrap(DATA, Y, groups=GROUPS, draws=2)


OTHER = rekka.simulate_transitions(200, n_states=3, seed=4)
WORSE = rekka.simulate_transitions(200, n_states=5, seed=4)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"X": DATA[:150], "y": Y[:150], "groups": GROUPS[:150]}, InputError,
         "There are 150 rows, and the model was fitted on 200. Give the rows that it was fitted on, with their weights."),
        ({"X": OTHER, "y": OTHER["state_2"]}, InputError, "they are other rows, or have other weights"),
        ({"sample_weight": np.full(200, 2.0)}, InputError, "they are other rows, or have other weights"),
        ({"X": WORSE, "y": WORSE["state_2"]}, BadStates, "is above n_states = 3"),
        ({"X": DATA.drop("bridge_length")}, MissingColumns, "bridge_length is not in the table"),
        ({"X": DATA.with_columns(bridge_length=pl.lit(None, pl.Float64))}, BadValues, "missing in 200 of 200 rows"),
        ({"groups": None}, InputError, "groups is None; the bridge of each row is needed"),
        ({"groups": GROUPS[:-1]}, InputError, "one group per row is needed (200)"),
        ({"groups": np.zeros(200)}, InputError,
         "All 200 rows are of one group; at least 2 are needed, to draw from them with replacement."),
        ({"draws": 0}, BadOption, "draws is 0; a whole number of at least 1 is needed."),
        ({"draws": 2.5}, BadOption, "draws is 2.5; a whole number of at least 1 is needed."),
        ({"seed": -1}, BadOption, "seed is -1; a whole number of at least 0 is needed."),
    ],
)  # fmt: skip
def test_wrong_inputs_are_refused_in_a_sentence(given, error, message):
    with pytest.raises(error) as caught:
        MODEL.bootstrap(**{"X": DATA, "y": Y, "groups": GROUPS, "draws": 2} | given)
    assert message in str(caught.value)


def test_options_that_do_not_fit_the_model_are_refused():
    """A draw that cannot be fitted is left out; a wrong input must not look like that."""
    sample = simulated(100, 3)
    groups, _ = read_groups(sample.bridge, len(sample))
    fit = fit_rows(sample.rows, sample.x, COVARIATES, Options())
    wrong = Options(prior={"mean": np.zeros(2), "precision": np.eye(2)})
    with pytest.raises(BadOption, match="this model has 6 coefficients"):
        bootstrap_rows(fit, sample.rows, sample.x, groups, wrong, draws=1)
