"""From a table to a source: rows held in memory where they fit well into the limit, read block by block if not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import InputError, count_of
from rekka.data.tables import ROW, open_table
from rekka.data.text import collect
from rekka.model.inputs import find_columns
from rekka.model.likelihood import count_threads
from rekka.streaming.blocks import BLOCK_ROWS, WHOLE, FrameSource, Reading, ScanSource, read_memory, say_bytes

BYTES = 8  # of a number
TEXT_BYTES = 40  # of a bridge's name in memory, about
ROOM = 2.0  # what is read may need so many times its size while it is read
LOG = logging.getLogger("rekka")


@dataclass(frozen=True)
class LazyTable:
    """A table that stays where it is: ``query`` reads it; ``rows`` there are."""

    name: str
    query: pl.LazyFrame
    columns: tuple[str, ...]
    rows: int


def is_lazy(X: Any) -> bool:
    """Whether X is a file's or folder's path, or a query of polars: rows that are not in memory."""
    return isinstance(X, str | Path | pl.LazyFrame)


def open_lazy(X: Any) -> LazyTable:
    """The table of a path or a query."""
    table = open_table(Path(X).absolute() if isinstance(X, str | Path) else X)  # workers have another folder
    query = table.frame.drop(ROW)
    rows = int(collect(query.select(pl.len()), table.name).item())
    if not rows:
        raise InputError(f"{table.name} has no rows. At least one is needed.")
    return LazyTable(table.name, query, table.columns, rows)


def read_columns(
    names: Sequence[str],
    start: str,
    dt: str,
    covariates: Sequence[str] | None,
    end: Any,
    weight: Any = None,
    group: Any = None,
) -> Reading:
    """Which columns of a table are what; ``end``, ``weight`` and ``group`` are columns' names here."""
    for option, value in (("y", end), ("sample_weight", weight), ("groups", group)):
        if value is not None and not isinstance(value, str):
            raise InputError(
                f"{option} is a {type(value).__name__}; for rows in files or of a query it is the name of their "
                "column, such as 'state_2'."
            )
    roles = [one for one in (end, weight, group) if one is not None]
    found = find_columns([name for name in names if name not in roles], start, dt, covariates)
    find_columns(names, start, dt, roles)  # each is there
    return Reading(start, end, dt, found.covariates, weight, group)


def open_source(table: LazyTable, reading: Reading, memory: Any, threads: int | None) -> FrameSource | ScanSource:
    """The rows in memory if they fit well within the limit, else read from where they are in every pass."""
    limit, needed = read_memory(memory), estimate_bytes(table, reading)
    held = table.rows <= WHOLE or ROOM * needed <= limit
    how = "held in memory" if held else f"streamed in blocks of {count_of(BLOCK_ROWS, 'row')}"
    LOG.info(
        "%s, %s as columns: %s (limit %s)", count_of(table.rows, "row"), say_bytes(needed), how, say_bytes(limit)
    )
    if held:
        frame = collect(table.query.select(reading.columns), table.name)
        return FrameSource(frame, reading, count_threads(threads))
    return ScanSource(table.query, reading, count_threads(threads), name=table.name)


def estimate_bytes(table: LazyTable, reading: Reading) -> int:
    """About how much memory the columns take that are read."""
    numbers = len(reading.columns) - (reading.group is not None)
    return table.rows * (BYTES * numbers + (TEXT_BYTES if reading.group is not None else 0))
