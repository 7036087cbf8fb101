"""The kernel's accuracy against arbitrary precision: ``python -m benchmarks.accuracy [--cases 10000]``.

Cases go round every number of states from 2 to 10, every number of jumps, ends that absorb and ends that do
not, and every kind of hazards in KINDS. Exits with 1 if an error is above its limit.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import mpmath as mp
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.problems import SEED
from benchmarks.reference import Reference, as_float, reference, reference_probability
from rekka import transition_probabilities
from rekka.model import kernel

MOST_STATES = 10
SMALLEST_A, LARGEST_A = 1e-10, 1e3  # theta dt of ordinary cases
LARGEST_LOG_HAZARD = 200.0
DEEPEST = 1e5  # -log pi of the deepest cases
# Hazards drawn apart; exactly equal; equal up to 1e-1 ... 1e-15; near-equal in two or three groups;
# log hazards in [-200, 200]; and theta dt in 1e2 ... 1e5 or e^-280 ... e^-50, so that log pi goes down to -1e5.
KINDS = ("mixed", "equal", "near", "groups", "extreme", "deep")
LOG_ONLY = ("extreme", "deep")
SMALLEST_PROBABILITY = 1e-290  # below it a probability loses its digits to the format, not to the kernel
SMALLEST_LOG = 1e-40  # below it log pi itself is at the reference's own limit
LIMITS = {
    "probability, from transition_probabilities": 1e-12,
    "probability, exp of the kernel's log": 1e-12,
    "gradient": 1e-9,
    "hessian": 1e-9,
    "log-probability, ordinary": 1e-10,
    "log-probability, pi underflows": 1e-10,
    "log-probability, log hazards in [-200, 200]": 1e-10,
    "start in the absorbing state": 0.0,
}
CHUNK = 50  # cases that a process takes at a time


@dataclass(frozen=True)
class Case:
    """One row: log hazards (K-1,), years, 0-based states, and how the hazards were drawn."""

    kind: str
    eta: tuple[float, ...]
    dt: float
    start: int
    end: int

    @property
    def n_states(self) -> int:
        """K."""
        return len(self.eta) + 1


@dataclass(frozen=True)
class Worst:
    """The largest error of one figure, the case it came from, and how many cases it was measured on."""

    error: float
    case: Case | None
    count: int

    def merge(self, other: Worst) -> Worst:
        """The worse of the two, over both counts."""
        worse = self if self.error >= other.error else other
        return Worst(worse.error, worse.case, self.count + other.count)


def draw_cases(n: int, seed: int = SEED) -> list[Case]:
    """``n`` cases that go round every kind, number of states, number of jumps and sort of end."""
    rng = np.random.default_rng(seed)
    routes = [
        (kind, n_states, jumps, absorbing)
        for kind, n_states in itertools.product(KINDS, range(2, MOST_STATES + 1))
        for jumps in range(n_states)
        for absorbing in (False, True)
        if absorbing or jumps < n_states - 1
    ]
    rng.shuffle(routes)
    return [_draw_case(rng, *route) for route in itertools.islice(itertools.cycle(routes), n)]


def _draw_case(rng: np.random.Generator, kind: str, n_states: int, jumps: int, absorbing: bool) -> Case:
    last_start = n_states - 1 - jumps
    start = last_start if absorbing else int(rng.integers(0, last_start))
    dt = float(np.exp(rng.uniform(-1.0, 3.0)))
    eta = _draw_log_hazards(rng, kind, n_states - 1, dt)
    return Case(kind, tuple(float(e) for e in eta), dt, start, start + jumps)


def _draw_log_hazards(rng: np.random.Generator, kind: str, size: int, dt: float) -> np.ndarray:
    low, high = math.log(SMALLEST_A), math.log(LARGEST_A)
    noise = 10.0 ** rng.integers(-15, 0) * rng.standard_normal(size)
    if kind == "mixed":
        log_a = rng.uniform(low, high, size)
    elif kind == "equal":
        log_a = np.full(size, rng.uniform(low, high))
    elif kind == "near":
        log_a = rng.uniform(low, high) + noise
    elif kind == "groups":
        log_a = rng.choice(rng.uniform(math.log(1e-2), high, 3), size) + noise
    elif kind == "extreme":
        return rng.uniform(-LARGEST_LOG_HAZARD, LARGEST_LOG_HAZARD, size)
    else:
        rare = rng.random() < 0.5
        log_a = rng.uniform(-280.0, -50.0, size) if rare else rng.uniform(math.log(1e2), math.log(DEEPEST), size)
        return log_a - math.log(dt)
    return np.minimum(log_a, high) - math.log(dt)


def worst_errors(cases: Iterable[Case]) -> dict[str, Worst]:
    """The largest error of each figure in LIMITS over the cases; an undefined result counts as infinite."""
    worst = {name: Worst(0.0, None, 0) for name in LIMITS}
    for case in cases:
        for name, error in _errors(case).items():
            found = Worst(error if math.isfinite(error) else math.inf, case, 1)
            worst[name] = worst[name].merge(found)
    return worst


def worst_errors_parallel(cases: Sequence[Case], processes: int | None = None) -> dict[str, Worst]:
    """The same on every core."""
    chunks = [cases[lo : lo + CHUNK] for lo in range(0, len(cases), CHUNK)]
    worst = worst_errors([])
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        for part in pool.map(worst_errors, chunks):
            worst = {name: worst[name].merge(part[name]) for name in LIMITS}
    return worst


def _errors(case: Case) -> dict[str, float]:
    """Every error that this case can measure."""
    if case.start == case.n_states - 1:
        return _absorbed_errors(case)
    log_only = case.kind in LOG_ONLY
    theirs = reference(case.eta, case.dt, case.start, case.end, derivatives=not log_only)
    value, slope, curvature = _ours(case)
    errors: dict[str, float] = {}
    underflows = theirs.probability < SMALLEST_PROBABILITY
    if abs(theirs.log_probability) >= SMALLEST_LOG:
        name = "log-probability, " + (
            "log hazards in [-200, 200]"
            if case.kind == "extreme"
            else "pi underflows"
            if underflows
            else "ordinary"
        )
        errors[name] = _relative(value, theirs.log_probability)
    if not log_only:
        errors |= _derivative_errors(theirs, slope, curvature)
        if not underflows:
            errors["probability, exp of the kernel's log"] = _relative(float(np.exp(value)), theirs.probability)
            errors |= _public_errors(case)
    return errors


def _ours(case: Case) -> tuple[float, np.ndarray, np.ndarray]:
    """The kernel's log pi, slope and curvature over the states that the row can have left."""
    size = len(case.eta)
    slope, curvature = np.zeros((1, size)), np.zeros((1, size, size))
    value = kernel.log_probability_rows(
        np.array([case.eta]),
        np.array([case.dt]),
        np.array([case.start]),
        np.array([case.end]),
        2,
        slope,
        curvature,
    )
    free = slice(case.start, min(case.end, size - 1) + 1)
    return float(value[0]), slope[0, free], curvature[0, free, free]


def _absorbed_errors(case: Case) -> dict[str, float]:
    """A row that starts in the last state stays there: log pi = 0, no slope, no curvature."""
    value, slope, curvature = _ours(case)
    pi = float(transition_probabilities(np.exp(case.eta), case.dt)[case.start, case.end])
    parts = [abs(value), abs(pi - 1.0), *np.abs(slope), *np.abs(curvature).ravel()]
    return {"start in the absorbing state": float(max(parts))}


def _public_errors(case: Case) -> dict[str, float]:
    """The public function takes hazards, rounded from the log hazards; so does its reference."""
    theta = np.exp(case.eta)
    ours = float(transition_probabilities(theta, case.dt)[case.start, case.end])
    theirs = reference_probability(list(theta), case.dt, case.start, case.end)
    return {"probability, from transition_probabilities": _relative(ours, theirs)}


def _derivative_errors(theirs: Reference, slope: np.ndarray, curvature: np.ndarray) -> dict[str, float]:
    """Relative to the largest entry, or to 1 where all are smaller."""
    found = {}
    for name, ours, exact in (
        ("gradient", slope, as_float(theirs.slope)),
        ("hessian", curvature, as_float(theirs.curvature)),
    ):
        found[name] = float(np.max(np.abs(ours - exact)) / max(1.0, float(np.max(np.abs(exact)))))
    return found


def _relative(ours: float, theirs: mp.mpf) -> float:
    if not math.isfinite(ours):
        return math.inf
    return float(abs(mp.mpf(ours) - theirs) / abs(theirs))


def passes(worst: dict[str, Worst]) -> bool:
    """Whether every error was measured and is within its limit."""
    return all(found.count > 0 and found.error <= LIMITS[name] for name, found in worst.items())


def print_table(worst: dict[str, Worst], console: Console) -> None:
    """Errors beside their limits, and the input of each that fails."""
    table = Table("figure", "cases", "largest error", "limit", "", title="Accuracy against mpmath")
    for name, found in worst.items():
        verdict = "ok" if found.count > 0 and found.error <= LIMITS[name] else "FAIL"
        table.add_row(name, str(found.count), f"{found.error:.2e}", f"{LIMITS[name]:.0e}", verdict)
    console.print(table)
    for name, found in worst.items():
        if found.error > LIMITS[name]:
            console.print(f"{name}: {found.case}", highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, measure, print; 1 on a failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    console = Console()
    clock = perf_counter()
    worst = worst_errors_parallel(draw_cases(options.cases, options.seed))
    print_table(worst, console)
    console.print(f"{options.cases} cases, seed {options.seed}, {perf_counter() - clock:.0f} s")
    return 0 if passes(worst) else 1


if __name__ == "__main__":
    sys.exit(main())
