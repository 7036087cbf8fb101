"""R's msm: every method it has for this model, each in an R process of its own with a time limit."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import polars as pl

from benchmarks.problems import Problem
from benchmarks.runs import Run

SCRIPT = Path(__file__).with_name("msm.R")
METHODS = ("nlm", "bfgs 10, then fisher", "fisher", "nlm, expm", "bfgs")
# A method this many times slower than one that has converged cannot be the best one, and is stopped.
TOO_SLOW = 5.0
SPARE_SECONDS = 90.0  # for R to start and prepare, and for repeats
# A method counts if it comes this close to the best log-likelihood that any of them found.
CLOSE_ENOUGH = 1e-3
HOW_TO_INSTALL = "msm is not installed. On Debian: apt-get install r-cran-msm; elsewhere: install.packages('msm')."


def ensure_installed() -> str | None:
    """Install msm from Debian if it is missing and we may; None if it is there, else how to install it."""
    if _has_msm():
        return None
    if shutil.which("apt-get") and os.geteuid() == 0:
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "r-cran-msm"]):
            subprocess.run(command, check=False)
    return None if _has_msm() else HOW_TO_INSTALL


def versions() -> dict[str, str]:
    """Versions of R and msm."""
    code = 'cat(as.character(getRversion()), as.character(packageVersion("msm")))'
    r, msm = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True).stdout.split()
    return {"R": r, "msm": msm}


def run_all(problem: Problem, limit_seconds: float, methods: tuple[str, ...] = METHODS) -> list[Run]:
    """Fit by every method. Covariates go over as z-scores, which is kind to msm and changes no likelihood."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.csv"
        _write_pairs(problem, pairs)
        runs: list[Run] = []
        for method in methods:
            runs.append(_run(pairs, problem.n_states, method, min(limit_seconds, _patience(runs))))
        return runs


def _patience(runs: list[Run]) -> float:
    """Seconds that a further method may take, given those that have run."""
    converged = [run.call_seconds for run in runs if run.converged and run.call_seconds is not None]
    return TOO_SLOW * min(converged) + SPARE_SECONDS if converged else float("inf")


def best(runs: list[Run]) -> Run | None:
    """The fastest of those that converged to the best log-likelihood any of them found."""
    found = [run for run in runs if run.log_likelihood is not None]
    if not found:
        return None
    top = max(run.log_likelihood for run in found)
    good = [run for run in found if run.converged and run.log_likelihood >= top - CLOSE_ENOUGH]
    return min(good, key=lambda run: run.seconds) if good else None


def _has_msm() -> bool:
    if not shutil.which("Rscript"):
        return False
    check = ["Rscript", "-e", 'quit(status = !requireNamespace("msm", quietly = TRUE))']
    return subprocess.run(check, capture_output=True, check=False).returncode == 0


def _write_pairs(problem: Problem, path: Path) -> None:
    z = problem.z_scores()
    columns = {
        "start": problem.frame["state_1"],
        "end": problem.frame["state_2"],
        "dt": problem.frame["interval_years"],
    }
    pl.DataFrame(columns | {f"z{k}": z[:, k] for k in range(z.shape[1])}).write_csv(path)


def _run(pairs: Path, n_states: int, method: str, limit_seconds: float) -> Run:
    command = ["Rscript", str(SCRIPT), str(pairs), str(n_states), method]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        return Run("msm", method, False, note=f"stopped at the limit of {limit_seconds:.0f} s")
    if done.returncode != 0:
        return Run("msm", method, False, note=f"stopped with an error: {_first_error(done.stderr)}")
    figures = dict(line.split() for line in done.stdout.strip().splitlines()[-6:])
    return Run(
        "msm",
        method,
        converged=figures["converged"] == "1",
        log_likelihood=float(figures["log_likelihood"]),
        seconds=float(figures["seconds"]),
        call_seconds=float(figures["call_seconds"]),
        repeats=int(figures["repeats"]),
        note="" if figures["converged"] == "1" else f"msm reports code {figures['code']}",
    )


def _first_error(stderr: str) -> str:
    """R's error in one line, without its call."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    at = next((k for k, line in enumerate(lines) if line.startswith("Error")), 0)
    after = [line for line in lines[at + 1 : at + 2] if not line.startswith("Calls")]
    return (after or lines[at : at + 1] or ["no message"])[0][:120]
