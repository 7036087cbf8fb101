"""rekka as it comes: Newton on the exact Hessian, on one thread and on all."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from benchmarks.problems import Problem
from benchmarks.runs import Run
from rekka import ExponentialHazardMarkovModel

REPEATS = 20
ONE_THREAD, ALL_THREADS = "newton, 1 thread", "newton, all threads"


def run(problem: Problem, threads: int | None, repeats: int = REPEATS) -> Run:
    """Fit ``repeats`` times; both times are the fastest seen. The call includes certificate and inference."""
    model = ExponentialHazardMarkovModel(
        covariates=list(problem.covariates), n_states=problem.n_states, threads=threads, clock="start"
    )
    method = ONE_THREAD if threads == 1 else ALL_THREADS
    seconds, calls = [], []
    for _ in range(repeats):
        clock = perf_counter()
        model.fit(problem.frame, problem.frame["state_2"])
        calls.append(perf_counter() - clock)
        seconds.append(model.outcome_.seconds)
    return Run(
        "rekka",
        method,
        converged=bool(model.converged_),
        log_likelihood=float(model.log_likelihood_),
        seconds=min(seconds),
        call_seconds=min(calls),
        repeats=repeats,
        median_seconds=median(seconds),
        note=str(model.certificate_.verdict),
    )
