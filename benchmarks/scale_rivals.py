"""The largest table that msm and the paper's way can fit in some minutes, and a thousand refits beside msm.

Rows are doubled as long as one call of the rival stays within ``LIMIT_SECONDS`` and converges; the last that did
is the largest. rekka then fits the very same rows on one thread, as the rivals do. msm goes by the method that is
fastest on a few rows, and by the next one where that fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import rekka_newton, rival_msm, rival_paper
from benchmarks.problems import SEED, Problem, simulated
from benchmarks.runs import Run
from benchmarks.stability import CASE, Timing, make_study, time_refits
from rekka.core.numerics import generator
from rekka.evaluation.resampling import draw_bootstrap
from rekka.simulation.rows import COVARIATES, simulate_transitions

LIMIT_SECONDS = 120.0  # of one call of a rival
SPARE_SECONDS = 90.0  # for its process to start and draw or read the rows, and for repeats
FIRST_ROWS = {"msm": 8_000, "paper": 128_000}
TRIED_ON = 2_000  # rows on which msm's methods are tried
MSM_METHODS = ("bfgs 10, then fisher", "nlm")  # those that are the fastest somewhere in results/latest.json
OUR_REPEATS = 3
REFIT_ROWS, REFITS, MSM_REFITS = 1_600, 1_000, 5
ROOT = Path(__file__).resolve().parents[1]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Largest:
    """A rival on the largest table it can do, rekka on the same rows, and why the rival went no further."""

    rival: str
    rows: int
    theirs: Run
    ours: Run
    ended: str

    @property
    def times(self) -> float | None:
        """Their optimizer seconds over ours, both on one thread."""
        return _divide(self.theirs.seconds, self.ours.seconds)

    @property
    def call_times(self) -> float | None:
        """Seconds of their whole call over ours."""
        return _divide(self.theirs.call_seconds, self.ours.call_seconds)

    @property
    def gap(self) -> float | None:
        """Our log-likelihood less theirs."""
        theirs, ours = self.theirs.log_likelihood, self.ours.log_likelihood
        return None if theirs is None or ours is None else ours - theirs


@dataclass(frozen=True)
class Refits:
    """So many refits of rekka by one process and by two, and some of msm's, extrapolated to as many."""

    rows: int
    refits: int
    ours: tuple[Timing, ...]
    msm_method: str | None
    msm_refits: int
    msm_seconds: float | None
    msm_call_seconds: float | None

    @property
    def extrapolated(self) -> float | None:
        """Seconds of as many calls of msm, from the mean of those that were made."""
        if self.msm_call_seconds is None:
            return None
        return self.msm_call_seconds / self.msm_refits * self.refits

    @property
    def times(self) -> list[float | None]:
        """Extrapolated seconds of msm over ours, for each number of processes."""
        return [_divide(self.extrapolated, one.seconds) for one in self.ours]


def grow(
    rival: str, fit: Callable[[Problem], Run], first_rows: int, limit: float = LIMIT_SECONDS, most: int = 1 << 24
) -> tuple[Problem, Run, str] | None:
    """The largest problem that a rival fits within the limit, its fit, and why it went no further."""
    largest: tuple[Problem, Run] | None = None
    rows, ended = first_rows, f"{most:,} rows were not passed"
    while rows <= most:
        problem = simulated(f"{rival}, {rows:,} rows", rows, SEED)
        found = fit(problem)
        if found.call_seconds is None or not found.converged or found.call_seconds > limit:
            ended = f"{rows:,} rows: {found.note or f'took {found.call_seconds:.0f} s'}"
            break
        largest = problem, found
        # A fit takes at least twice as long on twice the rows: one that cannot end in time is not begun.
        if 2.0 * found.call_seconds > limit:
            ended = f"{2 * rows:,} rows would take more than {limit:.0f} s"
            break
        rows *= 2
    return None if largest is None else (*largest, ended)


def largest_msm(tell: Tell, limit: float = LIMIT_SECONDS, first_rows: int | None = None) -> Largest | None:
    """Msm by its fastest method that converges on few rows; by the other one if that gets nowhere."""
    tried = rival_msm.run_all(simulated("msm", min(TRIED_ON, first_rows or TRIED_ON), SEED), limit, MSM_METHODS)
    converged = sorted((run for run in tried if run.converged), key=lambda run: run.seconds or 0.0)
    for method in (run.method for run in converged):
        tell(f"msm, {method} ...")
        found = grow(
            "msm",
            lambda problem, method=method: rival_msm.run_all(problem, limit + SPARE_SECONDS, (method,))[0],
            first_rows or FIRST_ROWS["msm"],
            limit,
        )
        if found is not None:
            return _beside("msm", *found)
    return None


def largest_paper(tell: Tell, limit: float = LIMIT_SECONDS, first_rows: int | None = None) -> Largest | None:
    """The paper's way by z-score, which serves it best, each fit in a process of its own."""
    tell("the paper's way ...")
    found = grow("paper", lambda problem: _paper(problem, limit), first_rows or FIRST_ROWS["paper"], limit)
    return None if found is None else _beside("paper", *found)


def _beside(rival: str, problem: Problem, theirs: Run, ended: str) -> Largest:
    return Largest(rival, problem.n_rows, theirs, rekka_newton.run(problem, 1, OUR_REPEATS), ended)


def _paper(problem: Problem, limit: float) -> Run:
    """One fit in a process that can be stopped; it draws the same rows again."""
    command = [sys.executable, "-m", "benchmarks.scale_rivals", str(problem.n_rows)]
    most = limit + SPARE_SECONDS
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=most, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return Run("paper", "zscore", False, note=f"stopped after {most:.0f} s")
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return Run("paper", "zscore", False, note=f"stopped with an error: {last[0][:120]}")
    return Run(**json.loads(done.stdout))


def time_bootstrap(
    tell: Tell,
    rows: int = REFIT_ROWS,
    refits: int = REFITS,
    msm_refits: int = MSM_REFITS,
    *,
    with_msm: bool = True,
) -> Refits:
    """Our refits, drawn by bridge, certified and scored; and msm's of the first draws, a call for each."""
    study = make_study("zscore", rows)
    ours = []
    for workers in (1, 2):
        tell(f"{refits:,} refits of {rows:,} rows, workers: {workers} ...")
        ours.append(time_refits(study, refits, workers))
    method, runs = _refit_msm(_draws(rows, msm_refits), tell) if with_msm else (None, [])
    return Refits(
        rows,
        refits,
        tuple(ours),
        method,
        len(runs),
        sum(run.seconds or 0.0 for run in runs) if runs else None,
        _calls(runs) if runs else None,
    )


def _draws(rows: int, number: int) -> list[Problem]:
    """The first bootstrap draws of the case, by bridge."""
    frame = simulate_transitions(rows, seed=SEED)
    bridge = frame["bridge_id"].to_numpy().astype(np.str_)
    found = []
    for draw in range(number):
        index, _ = draw_bootstrap(bridge, generator(SEED, CASE, "bootstrap", draw))
        found.append(Problem(f"draw {draw}", frame[index], COVARIATES, int(frame["state_2"].max())))
    return found


def _refit_msm(draws: Sequence[Problem], tell: Tell) -> tuple[str | None, list[Run]]:
    """Every draw by the method that is fastest in all, of those that converge in all; none if there is none."""
    best: tuple[str | None, list[Run]] = (None, [])
    for method in MSM_METHODS:
        tell(f"msm, {len(draws)} refits, {method} ...")
        runs = [rival_msm.run_all(draw, LIMIT_SECONDS, (method,))[0] for draw in draws]
        if all(run.converged for run in runs) and (not best[1] or _calls(runs) < _calls(best[1])):
            best = method, runs
    return best


def _calls(runs: Sequence[Run]) -> float:
    return sum(run.call_seconds or 0.0 for run in runs)


def _divide(theirs: float | None, ours: float | None) -> float | None:
    return None if theirs is None or not ours else theirs / ours


def main() -> None:
    """The child: fit so many rows the paper's way and print what came of it."""
    problem = simulated("paper", int(sys.argv[1]), SEED)
    sys.stdout.write(json.dumps(asdict(rival_paper.run(problem, "zscore", repeats=1))))


if __name__ == "__main__":
    main()
