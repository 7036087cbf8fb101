"""The rows every rival gets: simulated cases of the paper's sizes, and Ontario's bridges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from rekka import read_transitions, simulate_transitions
from rekka.simulation.rows import COVARIATES

SEED = 20260924  # the paper's
# Training rows of the paper's ten cases (its Table of cases).
PAPER_CASES = {
    "Main girder": 624,
    "Pier": 1158,
    "Bearing": 1634,
    "Deck slab": 1491,
    "Cross girder": 216,
    "Longitudinal girder": 86,
    "Abutment": 271,
    "Expansion joint": 323,
    "Slope protection": 27,
    "Pavement": 742,
}

ONTARIO = "ontario"
ONTARIO_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "ontario"
CONDITIONS_FILE = "bridge_data.csv"
WIDTHS_FILE = "bridge_condition_open_data_2017_update_final.csv"
BANDS = (85.0, 75.0, 70.0, 60.0)  # lower limits of states 1..4 on the Bridge Condition Index
# Two sources of one length agree within 10 % or 2 m; otherwise their widths may be another bridge's.
LENGTHS_AGREE = {"column": "length", "relative": 0.1, "absolute": 2.0}


@dataclass(frozen=True)
class Problem:
    """Rows to fit: state_1, state_2, interval_years and the covariates; K is ``n_states``."""

    name: str
    frame: pl.DataFrame
    covariates: tuple[str, ...]
    n_states: int

    @property
    def n_rows(self) -> int:
        """Number of transitions."""
        return self.frame.height

    def z_scores(self) -> np.ndarray:
        """The covariates (n, p), each of mean 0 and standard deviation 1."""
        x = self.frame.select(self.covariates).to_numpy()
        return (x - x.mean(axis=0)) / x.std(axis=0)


def simulated(name: str, n_rows: int, seed: int) -> Problem:
    """Rows with known hazards; K is the worst end state seen, as in the paper."""
    frame = simulate_transitions(n_rows, seed=seed).drop("bridge_id")
    return Problem(name, frame, COVARIATES, int(frame["state_2"].max()))


def paper_cases() -> list[Problem]:
    """The ten cases at the paper's training sizes, each with a seed of its own."""
    seeds = np.random.SeedSequence(SEED).generate_state(len(PAPER_CASES))
    return [
        simulated(name, n_rows, int(seed)) for (name, n_rows), seed in zip(PAPER_CASES.items(), seeds, strict=True)
    ]


def ontario(folder: Path = ONTARIO_FOLDER) -> tuple[Problem, dict[str, int]] | None:
    """Ontario's bridges (K = 5; age, length, area) and what became of each record; None if absent."""
    if not all((folder / name).exists() for name in (CONDITIONS_FILE, WIDTHS_FILE)):
        return None
    found = read_transitions(
        folder / CONDITIONS_FILE,
        columns={"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
        state={"bands": list(BANDS), "missing": [0]},
        join=[
            {
                "file": folder / WIDTHS_FILE,
                "names": ["id", "name", "latitude", "longitude", "built", "length", "width"],
                "columns": {"bridge": "id", "width": "width"},
                "agree": LENGTHS_AGREE,
            }
        ],
    )
    counts = dict(found.audit.table.select("reason", "count").rows())
    # Rows that start in the absorbing state say nothing, and msm refuses them.
    frame = found.frame.filter(pl.col("state_1") <= len(BANDS))
    counts["already in the worst state"] = len(found.frame) - len(frame)
    counts["rows"] = len(frame)
    covariates = ("age", "length", "area")
    frame = frame.select(
        "state_1", "state_2", "interval_years", **dict(zip(covariates, found.covariates, strict=True))
    )
    return Problem(
        ONTARIO, frame.cast({"state_1": pl.Int64, "state_2": pl.Int64}), covariates, len(BANDS) + 1
    ), counts
