"""Simulated transitions in Parquet files, as many as a disk holds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import polars as pl

from rekka.core.errors import BadOption
from rekka.core.files import writing
from rekka.simulation.rows import simulate_transitions

ROWS_A_FILE = 1_000_000


def write_transitions(
    folder: Path,
    n_rows: int,
    *,
    n_states: int = 5,
    seed: int = 20260924,
    rows_a_file: int = ROWS_A_FILE,
    threads: int = 1,
) -> list[Path]:
    """Draw transitions into Parquet files, part-000.parquet and so on, of so many rows each; return their paths.

    No more than one file for each thread is in memory. File b holds what ``simulate_transitions`` draws with
    ``seed + b``, the number of the file before each bridge's name: the same rows for any number of threads.
    """
    if rows_a_file < 1 or n_rows < 1:
        raise BadOption(f"n_rows = {n_rows}, rows_a_file = {rows_a_file}: at least 1 row is needed.")
    write = partial(_write_file, folder, n_rows, n_states, seed, rows_a_file)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(write, range(-(-n_rows // rows_a_file))))


def _write_file(folder: Path, n_rows: int, n_states: int, seed: int, rows_a_file: int, number: int) -> Path:
    rows = min(rows_a_file, n_rows - number * rows_a_file)
    drawn = simulate_transitions(rows, n_states=n_states, seed=seed + number)
    path = folder / f"part-{number:03d}.parquet"
    named = pl.format("{}-{}", pl.lit(f"{number:03d}"), "bridge_id").alias("bridge_id")
    with writing(path) as file:
        drawn.with_columns(named).write_parquet(file)
    return path
