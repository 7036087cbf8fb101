"""The rows every rival gets: simulated cases of the paper's sizes, and Ontario's bridges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from rekka import simulate_transitions
from rekka.simulate import COVARIATES

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
YEARS = range(2000, 2014)
BANDS = (85.0, 75.0, 70.0, 60.0)  # lower limits of states 1..4 on the Bridge Condition Index
# Two sources of one length agree within 10 % or 2 m; otherwise their widths may be another bridge's.
LENGTH_AGREES_RELATIVE = 0.10
LENGTH_AGREES_METRES = 2.0


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
    """Ontario's bridges (K = 5; age, length, area) and how many rows each rule set aside; None if absent."""
    if not all((folder / name).exists() for name in (CONDITIONS_FILE, WIDTHS_FILE)):
        return None
    bridges = _read_bridges(folder)
    counts = {"bridges": bridges.height}
    pairs = _pair_inspections(bridges)
    counts["pairs of consecutive inspections"] = pairs.height
    rules = {
        "upward moves": pl.col("state_2") >= pl.col("state_1"),
        "already in the absorbing state, which says nothing": pl.col("state_1") <= len(BANDS),
        "year built missing or after the first inspection": pl.col("age") >= 0,
        "no length": pl.col("length") > 0,
        "no area": pl.col("area") > 0,
    }
    for name, keep in rules.items():
        kept = pairs.filter(keep)
        counts[f"set aside: {name}"] = pairs.height - kept.height
        pairs = kept
    counts["rows"] = pairs.height
    covariates = ("age", "length", "area")
    frame = pairs.select("state_1", "state_2", "interval_years", *covariates)
    return Problem(ONTARIO, frame, covariates, len(BANDS) + 1), counts


def _read_bridges(folder: Path) -> pl.DataFrame:
    """One row a bridge: id, built, length, area, and the condition index of each year."""
    raw = pl.read_csv(folder / CONDITIONS_FILE, skip_rows=1, infer_schema_length=0)
    conditions = raw.unique("ID", keep="first", maintain_order=True).select(
        pl.col("ID").str.strip_chars().alias("id"),
        _number("YEAR BUILT").alias("built"),
        _number("DECK LENGTH").alias("length"),
        *[_number(str(year)) for year in YEARS],
    )
    names = ["id", "name", "latitude", "longitude", "built_2017", "length_2017", "width"]
    other = pl.read_csv(folder / WIDTHS_FILE, has_header=False, new_columns=names, infer_schema_length=0)
    widths = other.select(
        pl.col("id").str.strip_chars(), length_2017=_number("length_2017"), width=_number("width")
    ).unique("id", keep="first", maintain_order=True)
    gap = (pl.col("length") - pl.col("length_2017")).abs()
    agrees = (gap <= LENGTH_AGREES_RELATIVE * pl.col("length")) | (gap <= LENGTH_AGREES_METRES)
    return conditions.join(widths, on="id", how="left", maintain_order="left").with_columns(
        area=pl.when(agrees & (pl.col("width") > 0)).then(pl.col("length") * pl.col("width"))
    )


def _pair_inspections(bridges: pl.DataFrame) -> pl.DataFrame:
    """Each inspection with the next one of the same bridge; 0 and blank mean not inspected."""
    index = pl.col("index")
    state = sum((index < limit).cast(pl.Int64) for limit in BANDS) + 1
    visits = (
        bridges.unpivot(
            on=[str(year) for year in YEARS],
            index=["id", "built", "length", "area"],
            variable_name="year",
            value_name="index",
        )
        .filter(index > 0)
        .with_columns(pl.col("year").cast(pl.Int64), state_1=state)
        .sort("id", "year")
    )
    return visits.with_columns(
        state_2=pl.col("state_1").shift(-1).over("id"),
        interval_years=(pl.col("year").shift(-1).over("id") - pl.col("year")).cast(pl.Float64),
        age=pl.col("year") - pl.col("built"),
    ).filter(pl.col("state_2").is_not_null())


def _number(column: str) -> pl.Expr:
    return pl.col(column).str.strip_chars().cast(pl.Float64, strict=False)
