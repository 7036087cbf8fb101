"""One table fitted in every way, each in a process of its own whose peak memory is its own.

``python -m benchmarks.scale_fits WAY FOLDER WARM`` is such a process: it fits the few rows in the folder WARM, so
that what is compiled is loaded, and then, with the clock running, the Parquet files in FOLDER, from the path to a
certified maximum with standard errors. It prints its figures as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl

import rekka
from benchmarks.scaling import own_peak_megabytes
from rekka.model.fit import Fit
from rekka.simulation.rows import COVARIATES
from rekka.streaming.blocks import FrameSource, Reading, ScanSource, Source
from rekka.streaming.cluster.clients import Session, connect

ROOT = Path(__file__).resolve().parents[1]
N_STATES, END = 5, "state_2"
HELD, HELD_ONE, STREAMED, CLUSTER = "held, 2 threads", "held, 1 thread", "streamed, 1 GB", "cluster of 2 processes"
WAYS = (HELD, HELD_ONE, STREAMED, CLUSTER)
THREADS = {HELD: 2, HELD_ONE: 1, STREAMED: 2, CLUSTER: 2}
MEMORY = {STREAMED: "1GB"}  # of the others: half of what is free
EQUAL = 1e-10
READING = Reading("state_1", END, "interval_years", COVARIATES)


@dataclass(frozen=True)
class Whole:
    """One fit: seconds of all of it and of the optimizer, processor seconds, peak megabytes, and what was found.

    ``base_megabytes`` is the peak before it, ``workers_megabytes`` that of each worker of a cluster. A fit that
    could not be made has a ``note``.
    """

    way: str
    threads: int
    rows: int = 0
    seconds: float | None = None
    processor_seconds: float | None = None
    optimizer_seconds: float | None = None
    evaluations: int | None = None
    base_megabytes: float | None = None
    megabytes: float | None = None
    workers_megabytes: tuple[float, ...] = ()
    log_likelihood: float | None = None
    coefficients: tuple[float, ...] = ()
    standard_errors: tuple[float, ...] = ()
    certified: bool = False
    note: str = ""

    @property
    def rows_a_second(self) -> float | None:
        """Rows a second of the whole fit."""
        return None if self.seconds is None else self.rows / self.seconds

    @property
    def ns_per_row(self) -> float | None:
        """Nanoseconds a row of one evaluation: the optimizer's seconds shared out."""
        if self.optimizer_seconds is None or not self.evaluations:
            return None
        return 1e9 * self.optimizer_seconds / self.evaluations / self.rows


@dataclass(frozen=True)
class Agreement:
    """How far one way's result is from the first one's: relative, of log-likelihood, coefficients and errors."""

    way: str
    log_likelihood: float
    coefficients: float
    standard_errors: float

    @property
    def largest(self) -> float:
        """The largest of the three."""
        return max(self.log_likelihood, self.coefficients, self.standard_errors)


def compare(wholes: Sequence[Whole]) -> list[Agreement]:
    """Every fit that was made beside the first."""
    first, *others = [one for one in wholes if one.seconds is not None]
    return [
        Agreement(
            one.way,
            *(
                _difference(getattr(one, name), getattr(first, name))
                for name in ("log_likelihood", "coefficients", "standard_errors")
            ),
        )
        for one in others
    ]


def _difference(ours: Any, theirs: Any) -> float:
    return float(np.max(np.abs(np.subtract(ours, theirs)) / np.abs(theirs)))


def call(way: str, folder: Path, warm: Path) -> Whole:
    """The fit in a process of its own; a value with a note where it fails."""
    command = [sys.executable, "-m", "benchmarks.scale_fits", way, str(folder), str(warm)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return Whole(way, THREADS[way], note=f"not made: {last[0][:200]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Whole(**{name: tuple(value) if isinstance(value, list) else value for name, value in found.items()})


def fit(way: str, folder: Path, warm: Path) -> Whole:
    """Warm up, then fit with the clock running; the start of a cluster is not timed."""
    with connect("local:2") if way == CLUSTER else nullcontext() as session:
        _fit(way, warm, session)
        base = own_peak_megabytes()
        clock, processor = perf_counter(), process_time()
        found = _fit(way, folder, session)
        seconds, used = perf_counter() - clock, process_time() - processor
        workers = () if session is None else tuple(session.client.run(own_peak_megabytes).values())
    return Whole(
        way,
        THREADS[way],
        found.n_rows,
        seconds,
        used if session is None else None,
        found.outcome.seconds,
        found.outcome.evaluations,
        base,
        own_peak_megabytes(),
        workers,
        found.inference.log_likelihood,
        tuple(found.coefficients.ravel().tolist()),
        tuple(np.sqrt(np.diag(found.inference.covariance)).tolist()),
        found.certificate.certified,
    )


def _fit(way: str, folder: Path, session: Session | None) -> Fit:
    """As a user would."""
    model = rekka.ExponentialHazardMarkovModel(
        covariates=list(COVARIATES),
        n_states=N_STATES,
        threads=THREADS[way],
        memory=MEMORY.get(way),
        clock="start",  # as the rivals
    )
    return model.fit(folder, END, cluster=None if session is None else session.client)._fit


def open_source(way: str, folder: Path) -> Source:
    """The rows of the files, held in memory or read in every pass."""
    query = pl.scan_parquet(folder / "*.parquet").select(READING.columns)
    if way == STREAMED:
        return ScanSource(query, READING, THREADS[way])
    return FrameSource(query.collect(), READING, THREADS[way])


def main() -> None:
    """The child."""
    way, folder, warm = sys.argv[1:]
    print(json.dumps(asdict(fit(way, Path(folder), Path(warm)))))


if __name__ == "__main__":
    main()
