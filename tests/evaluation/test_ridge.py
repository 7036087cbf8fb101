"""The choice of a ridge: the fast path against plain fits, the rule, and rows of every awkward kind."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

import rekka
from rekka.evaluation import ridge as module
from rekka.evaluation.resampling import Sample, folds
from rekka.evaluation.ridge import Edge, choose_ridge, score_path
from rekka.evaluation.scores import mean_interval
from rekka.model.fit import Options, fit_rows, refit_rows
from rekka.model.likelihood import Likelihood, Rows
from rekka.simulation.rows import COVARIATES, draw_ends

PLAIN = Options(threads=1)


def simulated(n, seed=1, n_states=4) -> Sample:
    return Sample.of(rekka.simulate_transitions(n, n_states=n_states, seed=seed), COVARIATES, n_states)


def noise(n, seed, slope=0.0, n_states=3) -> Sample:
    """Two covariates of which the first acts, or none."""
    rng = np.random.default_rng(seed)
    x, start = rng.normal(size=(n, 2)), rng.integers(0, n_states - 1, n)
    theta = np.exp(np.log(0.15) + slope * x[:, :1]) * np.ones((1, n_states - 1))
    rows = Rows(start, draw_ends(theta, np.full(n, 5.0), start, rng), np.full(n, 5.0), np.ones(n), n_states)
    return Sample(rows, x, (np.arange(n) // 2).astype(np.str_), ("wind", "salt"))


def nobody_leaves(state, sample) -> Sample:
    """The same rows with the state's own departures undone: nobody leaves it (0-based)."""
    end = np.where((sample.rows.start <= state) & (sample.rows.end > state), state, sample.rows.end)
    return replace(sample, rows=replace(sample.rows, end=end))


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        replace(PLAIN, scaling="boxcox"),
        replace(PLAIN, scaling="minmax", effects={"traffic_mean": [2, 3]}, shared={"bridge_area": [[1, 2]]}),
    ],
    ids=["zscore", "boxcox", "layout"],
)
def test_the_path_is_the_same_as_one_fit_after_the_other(options):
    sample = simulated(240)
    ridges = (0.05, 1.0, 20.0, 400.0)
    for outside, inside in folds(sample.bridge, 3, 0):
        train, other = sample.take(outside), sample.take(inside)
        ours = score_path(train, other, options, ridges)
        for place, ridge in enumerate(ridges):
            theirs = refit_rows(train.rows, train.x, train.covariates, replace(options, ridge=ridge))
            np.testing.assert_allclose(ours[:, place], -theirs.log_probabilities(other.rows, other.x), atol=1e-6)


def test_a_weighted_path_is_that_of_repeated_rows():
    sample, new = noise(60, 3, 0.5), noise(20, 4)
    weighted = replace(sample, rows=replace(sample.rows, weight=np.where(np.arange(60) < 20, 3.0, 1.0)))
    repeated = sample.take(np.concatenate([np.arange(60), np.arange(20), np.arange(20)]))
    options = replace(PLAIN, scaling=None)
    np.testing.assert_allclose(
        score_path(weighted, new, options, (2.0,)), score_path(repeated, new, options, (2.0,)), atol=1e-7
    )


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "boxcox"])
def test_a_path_with_a_state_that_nobody_leaves_is_that_of_the_options_returned(scaling):
    options = replace(PLAIN, scaling=scaling, shared={"bridge_area": [[1, 2, 3]]}, effects={"traffic_mean": [2]})
    train, other = nobody_leaves(2, simulated(120)), simulated(50, seed=2)
    chosen = choose_ridge(train, options, grid=[3.0])
    assert chosen.held == (3,)
    found = fit_rows(train.rows, train.x, train.covariates, chosen.options)
    assert found.certificate.certified
    theirs = -found.log_probabilities(other.rows, other.x)
    np.testing.assert_allclose(score_path(train, other, options, (3.0,))[:, 0], theirs, atol=1e-6)


def test_a_held_hazard_is_that_of_all_states_within_reason():
    """Against scipy: the penalised likelihood written out, with the intercept of state 2 held."""
    train = nobody_leaves(1, noise(60, 5))
    rows, z = train.rows, (train.x - train.x.mean(axis=0)) / train.x.std(axis=0)
    likelihood = Likelihood.build(rows, np.column_stack([np.ones(60), z]), 1)
    moves, free = (rows.end - rows.start).sum(), rows.start < 2
    rate = np.log((moves + 0.5) / (rows.dt[free].sum() + 5.0))

    def objective(b):
        beta = b.reshape(2, 3)
        value, gradient, _ = likelihood.evaluate(beta, 1)
        slope = np.zeros((2, 3))
        slope[:, 1:], slope[1, 0] = 4.0 * beta[:, 1:], beta[1, 0] - rate
        return 0.5 * (4.0 * (beta[:, 1:] ** 2).sum() + (beta[1, 0] - rate) ** 2) - value, slope.ravel() - gradient

    theirs = optimize.minimize(
        objective, np.tile([-2.0, 0, 0], 2), jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    chosen = choose_ridge(train, PLAIN, grid=[4.0])
    ours = fit_rows(rows, train.x, train.covariates, chosen.options)
    np.testing.assert_allclose(ours.beta.ravel(), theirs.x, atol=1e-4)
    assert rate - 4.0 < ours.beta[1, 0] < rate


def test_a_fold_that_takes_away_all_departures_leaves_finite_losses():
    sample = simulated(40, seed=3)
    last = nobody_leaves(2, sample)
    leaves = np.flatnonzero(last.rows.end == 2)[:1]
    rows = replace(
        last.rows, end=np.where(np.arange(40) == leaves, 3, last.rows.end)
    )  # one row alone leaves state 3
    chosen = choose_ridge(replace(sample, rows=rows, bridge=np.arange(40).astype(np.str_)), PLAIN)
    assert all(np.isfinite(value.loss.mean) for value in chosen.values)
    assert chosen.held == ()
    assert chosen.options.ridge == chosen.ridge


def test_the_losses_are_those_of_rows_left_out_by_bridge():
    sample = noise(80, 1, 0.6)
    chosen = choose_ridge(sample, PLAIN, folds=4, seed=7, grid=[100.0, 1.0])
    losses = np.empty((80, 2))
    for outside, inside in folds(sample.bridge, 4, 7):
        train, other = sample.take(outside), sample.take(inside)
        for place, ridge in enumerate((1.0, 100.0)):
            found = refit_rows(train.rows, train.x, train.covariates, replace(PLAIN, ridge=ridge))
            losses[inside, place] = -found.log_probabilities(other.rows, other.x)
    assert [value.ridge for value in chosen.values] == [1.0, 100.0]
    assert [value.loss.mean for value in chosen.values] == pytest.approx(losses.mean(axis=0), abs=1e-7)
    other = 1 if chosen.least == 1.0 else 0
    ours, theirs = (
        chosen.values[other].excess,
        mean_interval(losses[:, other] - losses[:, 1 - other], sample.bridge),
    )
    assert ours[:3] == pytest.approx(theirs[:3], abs=1e-6)
    assert ours.mean > 0


def test_the_strongest_ridge_within_a_standard_error_of_the_least_is_taken():
    bridge = np.arange(400).astype(np.str_)
    wobble = np.tile([0.2, -0.2], 200)  # a standard error of 0.01
    losses = np.column_stack(
        [np.full(400, 1.2), np.full(400, 1.0), 1.005 + wobble, 1.008 + wobble, 1.014 + wobble]
    )
    assert module._strongest(losses, 1, bridge) == 3
    assert module._strongest(losses[:, :2], 1, bridge) == 1


def test_the_grid_reaches_from_no_ridge_to_no_covariates():
    sample, new = simulated(400), simulated(100, seed=2)
    ridges = module._ridges(sample, None)
    losses = score_path(sample, new, PLAIN, ridges)
    plain = refit_rows(sample.rows, sample.x, sample.covariates, PLAIN)
    none = refit_rows(sample.rows, sample.x[:, :0], (), PLAIN)
    assert losses[:, 0].mean() == pytest.approx(-plain.log_probabilities(new.rows, new.x).mean(), abs=2e-3)
    assert losses[:, -1].mean() == pytest.approx(-none.log_probabilities(new.rows, new.x[:, :0]).mean(), abs=2e-3)
    assert ridges[-1] / ridges[0] == pytest.approx(1e6)


def test_covariates_that_do_nothing_get_the_strongest_ridge_and_those_that_matter_do_not():
    idle = [choose_ridge(noise(120, seed), PLAIN) for seed in range(10)]
    acting = [choose_ridge(noise(600, seed, 0.8), PLAIN) for seed in range(3)]
    strongest = [chosen for chosen in idle if chosen.edge is Edge.STRONGEST]
    assert len(strongest) >= 7
    assert all(chosen.edge is None and chosen.ridge < 100 for chosen in acting)


def test_a_chosen_ridge_beats_none_on_new_rows():
    gains = []
    for seed in range(8):
        train, new = simulated(70, seed), simulated(1500, seed + 100)
        options = (PLAIN, choose_ridge(train, PLAIN).options)
        fits = [refit_rows(train.rows, train.x, train.covariates, one) for one in options]
        plain, shrunk = (-np.maximum(one.log_probabilities(new.rows, new.x), -27.6).mean() for one in fits)
        gains.append(plain - shrunk)
    assert np.mean(gains) > 0.05
    assert sum(gain > 0 for gain in gains) >= 7


def test_the_weakest_of_a_grid_is_named():
    chosen = choose_ridge(noise(600, 2, 0.8), PLAIN, grid=[0.01, 1e4])
    assert chosen.edge is Edge.WEAKEST
    assert [value.ridge for value in chosen.values] == [0.01, 1e4]
    assert chosen.values[0].excess.mean == 0.0


def test_one_bridge_cannot_be_judged_and_two_can():
    sample = noise(40, 1)
    one = choose_ridge(replace(sample, bridge=np.full(40, "B")), PLAIN)
    assert one.edge is Edge.ONE_BRIDGE
    assert one.ridge == module._ridges(sample, None)[-1]
    assert one.values == ()
    two = choose_ridge(replace(sample, bridge=np.where(np.arange(40) < 20, "A", "B")), PLAIN)
    assert len(two.values) == len(module.GRID)
    assert two.values[0].loss.bridges == 2


@pytest.mark.parametrize("x", [np.zeros((40, 0)), np.ones((40, 2))], ids=["none", "constant"])
def test_without_covariates_there_is_nothing_to_shrink(x):
    sample = replace(noise(40, 1), x=x, covariates=("wind", "salt")[: x.shape[1]])
    chosen = choose_ridge(sample, PLAIN)
    assert chosen.ridge == 0.0
    assert chosen.edge is Edge.NO_COVARIATES


def test_two_states_and_few_rows_have_an_answer():
    assert choose_ridge(noise(30, 1, 0.5, n_states=2), PLAIN).ridge > 0
    for n in (2, 3, 5):
        chosen = choose_ridge(replace(noise(n, 3), bridge=np.arange(n).astype(np.str_)), PLAIN)
        assert all(np.isfinite(value.loss.mean) for value in chosen.values)


def test_collinear_covariates_are_no_obstacle():
    sample = noise(60, 1, 0.5)
    twice = replace(sample, x=sample.x[:, [0, 0]])
    assert np.isfinite(choose_ridge(twice, PLAIN).values[0].loss.mean)


@pytest.mark.parametrize("grid", [[], [0.0, 1.0], [np.inf], [np.nan]])
def test_a_grid_without_ridges_is_refused(grid):
    with pytest.raises(rekka.InputError, match="finite ridges above 0 are needed"):
        choose_ridge(noise(20, 1), PLAIN, grid=grid)


def test_a_prior_and_no_rows_are_refused():
    sample = noise(20, 1)
    with pytest.raises(rekka.InputError, match="prior already holds the slopes"):
        choose_ridge(sample, replace(PLAIN, prior={"mean": np.zeros(6), "precision": np.eye(6)}))
    with pytest.raises(rekka.InputError, match="no rows to choose a ridge on"):
        choose_ridge(sample.take(np.zeros(20, bool)), PLAIN)
