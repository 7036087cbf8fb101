"""The paper's way: its floored closed form vectorized in NumPy, numeric gradient, SciPy's L-BFGS-B.

It is not what ``likelihood="paper"`` runs: rekka compiles that form, ten times as fast, so that one can wait for a
study. The rival stays what the paper describes, with the start, the scalings and the solver call of rekka.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from benchmarks.problems import SEED, Problem
from benchmarks.runs import Run
from rekka import RekkaError
from rekka.model.likelihood import Likelihood, Rows
from rekka.model.paper import FlooredLikelihood
from rekka.model.solvers import Outcome, lbfgs, random_start
from rekka.scaling.registry import fit_scaling

Array = NDArray[np.float64]

SCALINGS = ("zscore", "max", "minmax", "boxcox")
REPEATS = 3
MAX_ITER = 500  # paper, Definition 3


@dataclass(frozen=True)
class PaperFit:
    """Where L-BFGS-B stopped: beta (K-1, p+1), what it says of its run, the exact log-likelihood there."""

    beta: Array
    outcome: Outcome
    log_likelihood: float

    @property
    def converged(self) -> bool:
        """The paper's definition: success, finite parameters, finite log-likelihood."""
        return bool(self.outcome.success and np.isfinite(self.beta).all() and np.isfinite(self.outcome.objective))


def fit(problem: Problem, scaling: str, seed: int = SEED) -> PaperFit:
    """Scale, start from N(0, 0.1^2) with the seed set anew, minimize; the clock is around the solver call alone.

    BLAS gets one thread, as in rekka's own fits: with more they wait for each other on matrices of this size.
    """
    rows, X = _design(problem, scaling)
    floored = FlooredLikelihood.build(rows, X)
    shape = (rows.n_states - 1, X.shape[1])

    def objective(psi: Array) -> float:
        return -floored.value(psi.reshape(shape))

    with ThreadpoolController().limit(limits=1, user_api="blas"):
        psi, outcome = lbfgs(objective, random_start(shape[0] * shape[1], seed), MAX_ITER, with_gradient=False)
    beta = psi.reshape(shape)
    with np.errstate(all="ignore"):  # it may have stopped anywhere
        exact = Likelihood.build(rows, X, threads=1).evaluate(beta, 0).value
    return PaperFit(beta, outcome, exact)


def run(problem: Problem, scaling: str, repeats: int = REPEATS) -> Run:
    """Fit ``repeats`` times; both times are the fastest seen. The call is scaling, rows and optimizer."""
    seconds, calls = [], []
    for _ in range(repeats):
        clock = perf_counter()
        try:
            found = fit(problem, scaling)
        except RekkaError as error:
            return Run("paper", scaling, False, note=str(error))
        calls.append(perf_counter() - clock)
        seconds.append(found.outcome.seconds)
    return Run(
        "paper",
        scaling,
        converged=found.converged,
        log_likelihood=found.log_likelihood,
        seconds=min(seconds),
        call_seconds=min(calls),
        repeats=repeats,
        note=found.outcome.message,
    )


def _design(problem: Problem, scaling: str) -> tuple[Rows, Array]:
    """Rows in the order the closed form is vectorized over, and X (n, p+1) of their scaled covariates."""
    start, end = (problem.frame[name].to_numpy().astype(np.int64) - 1 for name in ("state_1", "state_2"))
    dt = problem.frame["interval_years"].to_numpy().astype(np.float64)
    rows = Rows(start, end, dt, np.ones(dt.size), problem.n_states)
    x = problem.frame.select(problem.covariates).to_numpy().astype(np.float64)
    z = fit_scaling(scaling, x, problem.covariates).transform(x)
    order = rows.grouping
    return rows.take(order), np.column_stack([np.ones(dt.size), z])[order]
