"""The rival is the paper's way in NumPy, not rekka's compiled twin of it."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rekka
from rekka.model import paper

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import problems, rival_paper


@pytest.fixture(scope="module")
def problem():
    """One covariate: with more the numeric gradient takes its time."""
    drawn = problems.simulated("girders", 60, seed=3)
    return replace(drawn, covariates=drawn.covariates[:1])


def test_rival_uses_the_numpy_form_and_the_paper_s_start(problem, monkeypatch):
    seen = []
    plain = paper.FlooredLikelihood.value
    monkeypatch.setattr(paper.FlooredLikelihood, "value", lambda self, b: seen.append(b) or plain(self, b))
    found = rival_paper.fit(problem, "zscore", seed=5)
    start = np.random.default_rng(5).normal(0.0, 0.1, found.beta.shape)
    np.testing.assert_array_equal(seen[0], start)
    assert len(seen) >= found.outcome.evaluations > found.beta.size


def test_rival_and_the_compiled_preset_solve_one_problem(problem):
    ours = rekka.ExponentialHazardMarkovModel(
        "zscore", solver="lbfgs", gradient="numeric", likelihood="paper", seed=problems.SEED, clock="start",
        covariates=list(problem.covariates), n_states=problem.n_states,
    ).fit(problem.frame, problem.frame["state_2"])  # fmt: skip
    theirs = rival_paper.fit(problem, "zscore")
    assert theirs.log_likelihood == pytest.approx(ours.log_likelihood_, abs=0.1)


def test_a_run_reports_the_exact_log_likelihood_where_it_stopped(problem):
    exact = rekka.ExponentialHazardMarkovModel(
        covariates=list(problem.covariates), n_states=problem.n_states, clock="start"
    )
    exact.fit(problem.frame, problem.frame["state_2"])
    run = rival_paper.run(problem, "zscore", repeats=2)
    assert run.rival == "paper"
    assert run.repeats == 2
    assert run.log_likelihood <= exact.log_likelihood_ + 1e-9
    assert 0 < run.seconds <= run.call_seconds


def test_a_scaling_that_fails_is_a_run_with_a_reason(problem):
    frame = problem.frame.with_columns(-problem.frame[problem.covariates[0]] - 1)
    run = rival_paper.run(problems.Problem("below zero", frame, problem.covariates, problem.n_states), "max", 1)
    assert not run.converged
    assert run.seconds is None
    assert problem.covariates[0] in run.note
