"""The tasks that ``benchmarks.versions`` times, in a process that imports one version of rekka.

``python -m benchmarks.version_tasks TASK FOLDER CALLS`` does the task once on few rows, which loads compiled
code, then CALLS times with the clock running, and prints its figures as JSON. It uses only public names of rekka,
and imports no other benchmark, because the rekka on the path may be an earlier one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import polars as pl

import rekka

FIT, STUDY, STREAMED = "fit", "study", "streamed"
FIT_STATES, STREAMED_STATES = 7, 5
COVARIATES = ("age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean")
METHODS = ("max", "minmax", "zscore", "boxcox")
MEMORY = "1GB"
WARM_ROWS = 1_000


@dataclass(frozen=True)
class Measured:
    """One process: median seconds and processor seconds of a call, and the log-likelihood that it found."""

    seconds: float
    processor_seconds: float
    log_likelihood: float


def fit_rows(folder: Path, warm: bool) -> float:
    """Fit the transitions of one table, which is read when warming up."""
    frame = _read_rows(folder / "fit.parquet")
    frame = frame.head(WARM_ROWS) if warm else frame
    model = rekka.ExponentialHazardMarkovModel(covariates=list(COVARIATES), n_states=FIT_STATES)
    return float(model.fit(frame.drop("bridge_id", "state_2"), frame["state_2"]).log_likelihood_)


@cache
def _read_rows(file: Path) -> pl.DataFrame:
    return pl.read_parquet(file)


def run_study(folder: Path, warm: bool) -> float:
    """Compare four methods in every component of the inventory, and add the trials' log-likelihoods up."""
    with tempfile.TemporaryDirectory() as place:
        cases = ["Pier"] if warm else None
        study = rekka.compare(folder / "inventory", methods=METHODS, cases=cases, out=Path(place, "run"))
    return float(study.trials["log_likelihood"].sum())


def fit_streamed(folder: Path, warm: bool) -> float:
    """Fit the transitions of a folder of Parquet files, block by block."""
    model = rekka.ExponentialHazardMarkovModel(
        covariates=list(COVARIATES), n_states=STREAMED_STATES, threads=2, memory=MEMORY
    )
    return float(model.fit(folder / ("warm" if warm else STREAMED), "state_2").log_likelihood_)


WORK: dict[str, Callable[[Path, bool], float]] = {FIT: fit_rows, STUDY: run_study, STREAMED: fit_streamed}


TASKS = tuple(WORK)


def measure(task: str, folder: Path, calls: int) -> Measured:
    """Warm up, then time the calls."""
    work = WORK[task]
    work(folder, True)
    seconds, used = [], []
    for _ in range(calls):
        clock, processor = perf_counter(), process_time()
        found = work(folder, False)
        seconds.append(perf_counter() - clock)
        used.append(process_time() - processor)
    return Measured(median(seconds), median(used), found)


def main() -> None:
    """The child."""
    task, folder, calls = sys.argv[1:]
    print(json.dumps(asdict(measure(task, Path(folder), int(calls)))))


if __name__ == "__main__":
    main()
