"""Cost against rows: one evaluation, one fit, and the memory of the largest, at K = 5 with 4 covariates."""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np

from benchmarks.problems import SEED, Problem, simulated
from rekka import ExponentialHazardMarkovModel
from rekka.model.likelihood import Likelihood, Rows

ROWS = (1_000, 10_000, 100_000, 1_000_000)
ENOUGH_SECONDS = 2.0  # of repeats for one figure
LINEAR_FROM = 10_000  # below it the call itself, not the rows, is what is timed


@dataclass(frozen=True)
class Point:
    """Nanoseconds a row of value, gradient and Hessian together, and seconds of the whole fit's optimizer."""

    rows: int
    ns_per_row_1_thread: float
    ns_per_row_2_threads: float
    fit_seconds_1_thread: float
    fit_seconds_2_threads: float
    fit_evaluations: int


def measure(n_rows: int) -> Point:
    """One point of the curve. The evaluation is at the maximum, in z-scored covariates."""
    problem = simulated("scaling", n_rows, SEED)
    one, two = _fit(problem, 1), _fit(problem, 2)
    beta = np.column_stack([one.scaled_intercept_, one.scaled_coef_])
    rows, X = _grouped(problem)
    return Point(
        n_rows,
        1e9 * _fastest(Likelihood.build(rows, X, 1), beta) / n_rows,
        1e9 * _fastest(Likelihood.build(rows, X, 2), beta) / n_rows,
        one.outcome_.seconds,
        two.outcome_.seconds,
        one.outcome_.evaluations,
    )


def exponent(points: Sequence[Point], least_rows: int = LINEAR_FROM) -> float:
    """The power of rows that one evaluation on one thread costs, by least squares in logarithms."""
    used = [p for p in points if p.rows >= least_rows]
    cost = [math.log(p.ns_per_row_1_thread * p.rows) for p in used]
    return float(np.polyfit([math.log(p.rows) for p in used], cost, 1)[0])


def peak_megabytes(n_rows: int) -> float:
    """Largest resident memory of a fresh process that draws the rows and fits them."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--child", str(n_rows)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    return float(json.loads(done.stdout)["megabytes"])


def _fit(problem: Problem, threads: int | None) -> ExponentialHazardMarkovModel:
    model = ExponentialHazardMarkovModel(
        covariates=list(problem.covariates), n_states=problem.n_states, threads=threads, clock="start"
    )
    return model.fit(problem.frame, problem.frame["state_2"])


def _grouped(problem: Problem) -> tuple[Rows, np.ndarray]:
    """Rows and design in the order in which a fit evaluates them."""
    start, end = (problem.frame[name].to_numpy() - 1 for name in ("state_1", "state_2"))
    dt = problem.frame["interval_years"].to_numpy()
    rows = Rows(start, end, dt, np.ones(dt.size), problem.n_states)
    order = rows.grouping
    return rows.take(order), np.column_stack([np.ones(dt.size), problem.z_scores()[order]])


def _fastest(likelihood: Likelihood, beta: np.ndarray) -> float:
    """Seconds of the fastest evaluation seen; on one thread of the processor, which others may use as well."""
    now = thread_time if likelihood.threads == 1 else perf_counter
    fastest, spent = math.inf, 0.0
    while spent < ENOUGH_SECONDS:
        clock = now()
        likelihood.evaluate(beta)
        seconds = now() - clock
        fastest, spent = min(fastest, seconds), spent + seconds
    return fastest


def own_peak_megabytes() -> float:
    """VmHWM where there is one: getrusage's figure survives exec, so it can be the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    """The child: draw, fit, and print the memory it took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--child", type=int, required=True, metavar="ROWS")
    n_rows = parser.parse_args(arguments).child
    _fit(simulated("scaling", n_rows, SEED), None)
    print(json.dumps({"rows": n_rows, "megabytes": own_peak_megabytes()}))


if __name__ == "__main__":
    main()
