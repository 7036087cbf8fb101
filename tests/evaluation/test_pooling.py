"""Partial pooling: against exact normal theory, and on cases of every awkward kind."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
from scipy import optimize, stats

import rekka
from rekka.data.categories import Category, Coding, Level
from rekka.evaluation import pooling as levels
from rekka.evaluation.pooling import SMALLEST_SPREAD, Hierarchy, Pooling, Spreads, climb, find_mode, pool_cases
from rekka.evaluation.resampling import Sample
from rekka.model.fit import Options, fit_rows
from rekka.model.likelihood import Evaluation, Rows
from rekka.simulation.rows import COVARIATES, draw_ends

NAMES = COVARIATES[:2]


def draw(n, seed, slopes=(0.3, -0.2), rates=(0.12, 0.1, 0.08), names=NAMES, shift=0.0, per_bridge=3) -> Sample:
    """Rows of a case whose covariates are around ``shift``, with the same slopes in every state."""
    rng = np.random.default_rng(seed)
    x = rng.normal(shift, 1.0 + shift / 10, (n, len(slopes)))
    start = rng.integers(0, len(rates), n)
    theta = np.exp(np.log(rates) + (x @ np.array(slopes))[:, None])
    dt = np.round(rng.uniform(3, 7, n), 2)
    rows = Rows(start, draw_ends(theta, dt, start, rng), dt, np.ones(n), len(rates) + 1)
    return Sample(rows, x, (np.arange(n) // per_bridge).astype(np.str_), tuple(names))


@lru_cache
def stock() -> dict[str, Sample]:
    """Five cases alike but not equal, one of them tiny, one with a state less, one with other units of its own."""
    found = {f"case {c}": draw(150 + 60 * c, c, (0.3 + 0.1 * c, -0.2)) for c in range(3)}
    return found | {"tiny": draw(15, 9), "short": draw(120, 7, rates=(0.1, 0.1)), "moved": draw(130, 8, shift=3.0)}


@lru_cache
def pooled() -> Pooling:
    return pool_cases(stock(), threads=1, clock="start")


def fit(sample, **options):
    """With ages at the start of intervals, as the pooling here: x are standard normal numbers, not years."""
    return fit_rows(sample.rows, sample.x, sample.covariates, Options(threads=1, clock="start", **options))


@dataclass(frozen=True)
class Normal:
    """A case whose log-likelihood is a parabola: everything about it is known in closed form."""

    y: np.ndarray
    precision: np.ndarray
    index: np.ndarray

    def evaluate(self, b, order=2):
        pull = self.precision @ (b - self.y)
        return Evaluation(-0.5 * (b - self.y) @ pull, -pull, -self.precision)


def parabolas(seed=1, n_cases=8, n_free=3, n_terms=2, size=0.5):
    rng = np.random.default_rng(seed)
    members, F = [], n_free * n_terms
    for c in range(n_cases):
        index = np.arange(F if c % 3 else F - n_terms)  # every third has a state less
        root = rng.normal(size=(index.size, index.size))
        case = rng.normal(0, size, n_terms)
        y = np.tile(case, n_free)[index] + rng.normal(0.0, 0.3, index.size) + np.tile([-2.0, 0.4], n_free)[index]
        members.append(Normal(y, root @ root.T + 4 * np.eye(index.size), index))
    return Hierarchy(members, n_free, n_terms, np.tile([-1.5, 0.0], n_free))


def exact(hierarchy, spreads) -> float:
    """log m from the joint normal distribution of all y, without any mode or curvature."""
    V, around = (f(hierarchy.n_free) for f in (spreads.case_covariance, spreads.mean_covariance))
    index = np.concatenate([one.index for one in hierarchy.members])
    case = np.concatenate([np.full(one.index.size, c) for c, one in enumerate(hierarchy.members)])
    cov = around[np.ix_(index, index)] + V[np.ix_(index, index)] * (case[:, None] == case)
    at, constant = 0, 0.0
    for one in hierarchy.members:
        size = one.index.size
        cov[at : at + size, at : at + size] += np.linalg.inv(one.precision)
        constant += 0.5 * (size * np.log(2 * np.pi) - np.linalg.slogdet(one.precision)[1])
        at += size
    y = np.concatenate([one.y for one in hierarchy.members])
    return float(stats.multivariate_normal(hierarchy.centre[index], cov).logpdf(y) + constant)


def first_mode(hierarchy, spreads):
    return find_mode(hierarchy, spreads, hierarchy.centre, [one.y for one in hierarchy.members])


def test_the_marginal_likelihood_of_normal_cases_is_exact():
    hierarchy = parabolas()
    for scale in (0.05, 0.3, 2.0):
        spreads = Spreads(scale * np.array([1.0, 0.5]), scale * np.array([0.7, 0.2]), scale * np.array([0.1, 0.9]))
        assert first_mode(hierarchy, spreads).log_marginal == pytest.approx(exact(hierarchy, spreads), abs=1e-8)


def test_the_factors_are_one_where_the_marginal_likelihood_is_level():
    """d log m / d log variance = variance (seen - expected) / 2: the sign of log(factor), by differences."""
    hierarchy = parabolas()
    base = np.array([[0.3, 0.2], [0.4, 0.1], [0.2, 0.5]])
    change = np.array(first_mode(hierarchy, Spreads(*base)).change)
    for level, term in np.ndindex(3, 2):
        up, down = base.copy(), base.copy()
        up[level, term] *= np.exp(1e-5)
        down[level, term] *= np.exp(-1e-5)
        slope = exact(hierarchy, Spreads(*up)) - exact(hierarchy, Spreads(*down))
        assert np.sign(slope) == np.sign(np.log(change[level, term]))


def test_the_spreads_of_normal_cases_are_those_of_the_largest_marginal_likelihood(monkeypatch):
    monkeypatch.setattr(levels, "TOLERANCE", 1e-10)
    hierarchy = parabolas()
    mode, history, converged = climb(hierarchy, first_mode(hierarchy, Spreads.first(2)), 2000)
    bounds = [tuple(np.log([SMALLEST_SPREAD, levels.LARGEST_SPREAD]))] * 6
    best = optimize.minimize(
        lambda s: -exact(hierarchy, Spreads(*np.exp(s).reshape(3, 2))), np.full(6, -1.0), bounds=bounds
    )
    assert converged
    assert (np.diff(history) >= 0).all()
    assert history[-1] == pytest.approx(-best.fun, abs=1e-4)
    theirs = np.exp(best.x).reshape(3, 2)
    np.testing.assert_allclose(np.array(mode.spreads)[theirs > 0.1], theirs[theirs > 0.1], rtol=0.02)


def test_steps_that_go_too_far_are_halved(monkeypatch):
    monkeypatch.setattr(levels, "RELAXATION", 12.0)
    hierarchy = parabolas()
    mode, history, converged = climb(hierarchy, first_mode(hierarchy, Spreads.first(2)), 200)
    assert converged
    assert (np.diff(history) >= 0).all()
    assert history[-1] == pytest.approx(exact(hierarchy, mode.spreads), abs=1e-8)
    monkeypatch.setattr(levels, "HALVINGS", -1)  # no step is allowed: where it is, is as far as it gets
    assert climb(hierarchy, mode, 200)[1:] == ([mode.log_marginal], True)


def test_too_few_iterations_are_not_called_converged():
    hierarchy = parabolas()
    _, history, converged = climb(hierarchy, first_mode(hierarchy, Spreads.first(2)), 1)
    assert not converged
    assert len(history) == 2


def test_the_marginal_likelihood_rises_and_the_estimate_converges():
    found = pooled()
    assert found.converged
    assert found.iterations == len(found.history) - 1 > 2
    assert (np.diff(found.history) >= 0).all()
    assert found.log_marginal == found.history[-1]


@pytest.mark.parametrize("case", list(stock()))
def test_a_fit_with_the_prior_is_the_joint_mode(case):
    """The fast path and the plain one: the case's coefficients at the joint mode, and an ordinary certified fit."""
    sample, place = stock()[case], pooled().cases[case]
    ours = fit(sample, prior=pooled().prior(case))
    z = (sample.x - pooled().offset) / pooled().scale
    joint = place.coefficients[:, 0] + z @ place.coefficients[:, 1:].T
    np.testing.assert_allclose(ours.log_hazards(sample.x), joint, atol=1e-6)
    assert ours.certificate.certified


def test_the_prior_of_log_hazards_is_the_same_in_the_cases_own_units():
    sample, found = stock()["moved"], pooled()
    prior = found.prior("moved")
    own = np.column_stack([np.ones(5), (sample.x[:5] - sample.x.mean(axis=0)) / sample.x.std(axis=0)])
    common = np.column_stack([np.ones(5), (sample.x[:5] - found.offset) / found.scale])
    own, common = (np.kron(np.eye(3), X) for X in (own, common))
    np.testing.assert_allclose(own @ prior.mean, common @ found.mean.ravel(), atol=1e-9)
    V = found.spreads.case_covariance(3)
    np.testing.assert_allclose(own @ np.linalg.inv(prior.precision) @ own.T, common @ V @ common.T, atol=1e-7)


def test_pooling_beats_separate_fits_of_small_cases_on_new_rows():
    gains = []
    for seed in range(6):
        cases = {str(c): draw(40, 100 * seed + c, (0.3, -0.2)) for c in range(5)}
        found, new = pool_cases(cases, threads=1, clock="start"), draw(2000, 100 * seed + 50, (0.3, -0.2))
        losses = [
            -np.maximum(fit(cases["0"], prior=prior).log_probabilities(new.rows, new.x), -27.6).mean()
            for prior in (None, found.prior("0"))
        ]
        gains.append(losses[0] - losses[1])
    assert np.mean(gains) > 0.03
    assert sum(gain > 0 for gain in gains) >= 5


def test_equal_cases_have_no_spread_and_the_fit_of_all_rows():
    one = draw(300, 3)
    found = pool_cases({str(c): one for c in range(4)}, threads=1, clock="start")
    assert (found.spreads.cases < 0.03).all()
    assert (found.spreads.rest < 0.03).all()
    every = one.take(np.tile(np.arange(300), 4))
    separate, shared = fit(every), fit(one, prior=found.prior("0"))
    error = np.sqrt(np.diag(separate.inference.covariance)).reshape(separate.beta.shape)
    assert (np.abs(shared.beta - separate.beta) < 0.8 * error).all()  # states are held to a level common to them


def test_cases_that_differ_wildly_are_left_alone():
    slopes = [(1.2, 0.0), (-1.2, 0.8), (0.2, -1.0), (1.0, 1.0)]
    cases = {str(c): draw(1500, c, s) for c, s in enumerate(slopes)}
    found = pool_cases(cases, threads=1, clock="start")
    assert (found.spreads.cases[1:] > 0.5).all()
    for name, sample in cases.items():
        separate, shared = fit(sample), fit(sample, prior=found.prior(name))
        error = np.sqrt(np.diag(np.linalg.inv(-_hessian(sample, separate)))).reshape(separate.beta.shape)
        close = np.abs(shared.beta - separate.beta) / error
        assert close[:, 0].max() < 1.5  # intercepts differ little between these cases, slopes much
        assert np.abs(shared.beta[:, 1:] - separate.beta[:, 1:]).max() < 0.15


def _hessian(sample, found):
    from rekka.model.likelihood import Likelihood

    order = sample.rows.grouping
    X = np.column_stack([np.ones(len(sample)), found.scaling.transform(sample.x)])[order]
    return Likelihood.build(sample.rows.take(order), X, 1).evaluate(found.beta).hessian


def test_one_case_alone_still_lets_its_states_learn_from_each_other():
    found = pool_cases({"only": stock()["tiny"]}, threads=1, clock="start")
    assert np.isfinite(found.log_marginal)
    held = fit(stock()["tiny"], prior=found.prior("only"))
    assert held.certificate.certified
    assert np.ptp(held.beta[:, 1]) < 0.5


def test_a_case_without_a_maximum_gets_one():
    x = np.linspace(-1, 1, 27)[:, None] * [1.0, 0.5] + np.linspace(0, 1, 27)[:, None] ** 2 * [0.0, 1.0]
    start = np.arange(27) % 3
    end = np.where((x[:, 0] > 0) & (start == 0), 1, start)  # separated, and nobody leaves states 2 and 3
    apart = Sample(Rows(start, end, np.full(27, 5.0), np.ones(27), 4), x, np.arange(27).astype(np.str_), NAMES)
    assert not fit(apart).certificate.certified
    found = pool_cases({**stock(), "apart": apart}, threads=1, clock="start")
    held = fit(apart, prior=found.prior("apart"))
    assert found.converged
    assert held.certificate.certified
    assert np.abs(held.beta[:, 1:]).max() < 1.5
    assert np.exp(held.beta[1:, 0]).min() > 0.005


def test_a_case_without_rows_is_left_out():
    empty = stock()["tiny"].take(np.zeros(15, bool))
    found = pool_cases({**stock(), "empty": empty}, threads=1, clock="start")
    assert found.log_marginal == pooled().log_marginal
    with pytest.raises(rekka.InputError, match="no component 'empty'"):
        found.prior("empty")
    with pytest.raises(rekka.InputError, match="no row in any component"):
        pool_cases({"empty": empty})


def test_a_case_that_lacks_a_covariate_informs_the_others_only():
    lacking = replace(stock()["case 0"], x=stock()["case 0"].x[:, 1:], covariates=NAMES[1:])
    found = pool_cases({**stock(), "lacking": lacking}, threads=1, clock="start")
    assert found.covariates == NAMES
    prior = found.prior("lacking")
    assert prior.mean.shape == (6,)
    assert fit(lacking, prior=prior).certificate.certified


def test_levels_are_one_term_only_where_they_have_one_reference():
    def draw_kind(seed, reference):
        levels = tuple(Level(name, 9, 9, name) for name in (reference, "timber"))
        drawn = draw(120, seed, slopes=(0.5,), names=("kind: timber",))
        return replace(drawn, x=(drawn.x > 0).astype(float), coding=Coding((Category("kind", reference, levels),)))

    alike = pool_cases({"a": draw_kind(1, "steel"), "b": draw_kind(2, "steel")}, threads=1, clock="start")
    assert alike.covariates == ("kind: timber against steel",)
    other = pool_cases({"a": draw_kind(1, "steel"), "b": draw_kind(2, "concrete")}, threads=1, clock="start")
    assert other.covariates == ("kind: timber against steel", "kind: timber against concrete")


def test_a_covariate_that_is_constant_in_a_case_is_part_of_its_intercept():
    one = stock()["case 0"]
    flat = replace(one, x=np.column_stack([one.x[:, 0], np.full(len(one), 2.0)]))
    found = pool_cases({**stock(), "flat": flat}, threads=1, clock="start")
    prior, place = found.prior("flat"), found.cases["flat"]
    varying = replace(flat, x=flat.x[:, :1], covariates=NAMES[:1])
    ours = fit(varying, prior=prior)
    joint = place.coefficients[:, 0] + ((flat.x - found.offset) / found.scale) @ place.coefficients[:, 1:].T
    np.testing.assert_allclose(ours.log_hazards(varying.x), joint, atol=1e-6)


def test_covariates_may_be_absent_or_constant_everywhere():
    bare = {n: replace(s, x=s.x[:, :0], covariates=()) for n, s in stock().items()}
    found = pool_cases(bare, threads=1, clock="start")
    assert found.prior("tiny").mean.shape == (3,)
    assert fit(bare["tiny"], prior=found.prior("tiny")).certificate.certified
    level = {n: replace(s, x=np.ones_like(s.x)) for n, s in stock().items()}
    assert pool_cases(level, threads=1, clock="start").prior("tiny").mean.shape == (3,)


def test_two_states_are_enough():
    cases = {str(c): draw(80, c, rates=(0.1,)) for c in range(4)}
    found = pool_cases(cases, threads=1, clock="start")
    assert found.mean.shape == (1, 3)
    assert fit(cases["0"], prior=found.prior("0")).certificate.certified


def test_an_earlier_estimate_makes_the_next_one_cheap():
    fewer = {name: sample.take(np.arange(len(sample)) % 12 > 0) for name, sample in stock().items()}
    cold, warm = (
        pool_cases(fewer, threads=1, clock="start"),
        pool_cases(fewer, start=pooled(), threads=1, clock="start"),
    )
    assert warm.iterations <= max(3, cold.iterations // 2)
    assert warm.log_marginal == pytest.approx(cold.log_marginal, abs=0.1)
    assert pool_cases(stock(), start=pooled(), threads=1, clock="start").iterations <= 2
    other = {"new": stock()["case 0"], "short": stock()["short"].take(np.arange(60))}
    assert pool_cases(other, start=pooled(), threads=1, clock="start").converged
    bare = {n: replace(s, x=s.x[:, :1], covariates=NAMES[:1]) for n, s in stock().items()}
    assert pool_cases(bare, start=pooled(), threads=1, clock="start").converged


def test_what_is_not_known_of_the_mean_widens_the_intervals():
    """Cases that are one: pooled intervals are no narrower than those of all rows as one case."""
    cases = {f"case {c}": draw(60, 50 + c) for c in range(3)}
    whole = draw(180, 1)
    rows = [sample.rows for sample in cases.values()]
    joined = Rows(*(np.concatenate([getattr(r, n) for r in rows]) for n in ("start", "end", "dt", "weight")), 4)
    whole = replace(whole, rows=joined, x=np.concatenate([sample.x for sample in cases.values()]))
    prior = pool_cases(cases, threads=1, clock="start").prior("case 0")
    ours = fit(cases["case 0"], scaling="zscore", prior=prior)
    theirs = fit(whole, scaling="zscore")
    sure = fit(cases["case 0"], scaling="zscore", prior=replace(prior, uncertainty=None))
    se, best, too_small = (np.sqrt(np.diag(one.inference.covariance)) for one in (ours, theirs, sure))
    assert ours.beta == pytest.approx(sure.beta)
    assert (se > too_small).all()
    assert (se[[0, 3, 6]] > 0.9 * best[[0, 3, 6]]).all()  # intercepts


def test_mean_effects_have_the_signs_of_the_truth():
    found = pooled()
    assert (found.mean[0, 1:] * np.array([1, -1]) > 0.1).all()
    assert found.spreads.cases.min() >= SMALLEST_SPREAD
