"""SHA-256 of rows that are not in memory: the same that ``digest_values`` has for them."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from rekka.core.files import scratch_folder
from rekka.study.rows import digest_columns

ROWS_AT_ONCE = 1_000_000  # sorted together, or read of a column together


def digest_query(query: pl.LazyFrame, rows: int) -> str:
    """SHA-256 of every value of so many rows, column by column, each read by itself."""

    def read(name: str) -> Iterable[pl.Series]:
        batches = query.select(name).collect_batches(chunk_size=ROWS_AT_ONCE, lazy=True, engine="streaming")
        return (batch.to_series() for batch in batches)

    return digest_columns(query.collect_schema(), rows, read)


def digest_sorted(query: pl.LazyFrame, names: pl.Series, rows: int) -> str:
    """The same of rows put in order, by their first column and then by the others.

    ``names`` are the different values of the first column, in order: the rows of so many of them at a time are
    sorted, and kept in a temporary folder.
    """
    columns = query.collect_schema().names()
    step = max(len(names) * ROWS_AT_ONCE // max(rows, 1), 1)
    with scratch_folder() as folder:
        files = []
        for number, first in enumerate(range(0, len(names), step)):
            some = names[first : first + step]
            within = pl.col(columns[0]).is_between(pl.lit(some[0]), pl.lit(some[-1]))
            files.append(folder / f"{number:05d}.parquet")
            query.filter(within).collect(engine="streaming").sort(columns).write_parquet(files[-1])
        ordered = pl.scan_parquet(files, glob=False) if files else query
        return digest_query(ordered, rows)
