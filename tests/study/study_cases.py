"""Small studies that several test files share."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl

import rekka
from rekka.study.study import TIMES

COVARIATES = ("age_at_inspection_1", "bridge_length", "traffic_mean")


def draw_rows(cases: tuple[str, ...] = ("Pier", "Deck slab"), n: int = 120, seed: int = 7) -> pl.DataFrame:
    """Transitions of some cases with their part: 60 % of the rows train, 30 % are golden."""
    parts = ["train"] * 6 + ["validation"] + ["golden"] * 3
    frames = [
        rekka.simulate_transitions(n, n_states=4, seed=seed + place)
        .drop("bridge_area")
        .with_columns(case=pl.lit(case), part=pl.Series([parts[row % 10] for row in range(n)]))
        for place, case in enumerate(cases)
    ]
    return pl.concat(frames)


def write_rows(folder: Path, rows: pl.DataFrame | None = None) -> Path:
    """The same as a CSV file."""
    file = folder / "rows.csv"
    (draw_rows() if rows is None else rows).write_csv(file)
    return file


def untimed(study: rekka.Study) -> pl.DataFrame:
    """The trials without what a rerun does not repeat."""
    return study.trials.drop(TIMES)


def model_texts(run: Path) -> dict[str, str]:
    """Every model and operator of a run, byte for byte apart from the seconds."""
    files = [file for folder in ("models", "scalings") for file in (run / folder).iterdir()]
    return {
        f"{file.parent.name}/{file.name}": re.sub(r'"seconds": [^,]+,', "", file.read_bytes().decode())
        for file in files
    }


def file_names(run: Path) -> list[str]:
    return sorted(str(file.relative_to(run)) for file in run.rglob("*") if file.is_file())


def read_json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def write_json(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value), encoding="utf-8")


def log_of(run: Path) -> str:
    return (run / "log.txt").read_text(encoding="utf-8")
