"""The paper's way: vectorized closed form with its floors, numeric gradient, L-BFGS-B, through rekka's options."""

from __future__ import annotations

from time import perf_counter

from benchmarks.problems import SEED, Problem
from benchmarks.runs import Run
from rekka import ExponentialHazardMarkovModel, RekkaError

SCALINGS = ("zscore", "max", "minmax", "boxcox")
REPEATS = 3


def run(problem: Problem, scaling: str, repeats: int = REPEATS) -> Run:
    """Fit as the paper does. The log-likelihood is the exact one at the point where L-BFGS-B stopped."""
    seconds, calls = [], []
    for _ in range(repeats):
        model = ExponentialHazardMarkovModel(
            scaling,
            solver="lbfgs",
            gradient="numeric",
            likelihood="paper",
            seed=SEED,
            covariates=list(problem.covariates),
            n_states=problem.n_states,
        )
        clock = perf_counter()
        try:
            model.fit(problem.frame, problem.frame["state_2"])
        except RekkaError as error:
            return Run("paper", scaling, False, note=str(error))
        calls.append(perf_counter() - clock)
        seconds.append(model.outcome_.seconds)
    return Run(
        "paper",
        scaling,
        converged=bool(model.converged_),
        log_likelihood=float(model.log_likelihood_),
        seconds=min(seconds),
        call_seconds=min(calls),
        repeats=repeats,
        note=model.outcome_.message,
    )
