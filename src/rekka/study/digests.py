"""SHA-256 of rows: the same for the same rows on any machine, in memory or in a file, in one piece or in many."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping

import polars as pl

from rekka.core.files import scratch_folder
from rekka.streaming import blocks

ROWS_AT_ONCE = 1_000_000  # sorted together, or read of a column together

Spelling = Callable[[pl.Series], bytes]


def digest_rows(query: pl.LazyFrame, rows: int) -> str:
    """Digest every value of so many rows, column by column; of very many rows each column is read by itself."""
    if rows <= blocks.WHOLE:
        frame = query.collect()
        return digest_columns(frame.schema, rows, lambda name: [frame[name]])

    def read(name: str) -> Iterable[pl.Series]:
        batches = query.select(name).collect_batches(chunk_size=ROWS_AT_ONCE, lazy=True, engine="streaming")
        return (batch.to_series() for batch in batches)

    return digest_columns(query.collect_schema(), rows, read)


def digest_sorted(query: pl.LazyFrame, rows: int, names: Callable[[], pl.Series]) -> str:
    """Digest rows sorted by their first column and then by the others.

    Of very many rows, those of some of the ``names`` (distinct values of the first column, in order) are sorted at
    a time and kept in a temporary folder.
    """
    columns = query.collect_schema().names()
    if rows <= blocks.WHOLE:
        return digest_rows(query.sort(columns), rows)
    values = names()
    step = max(len(values) * ROWS_AT_ONCE // max(rows, 1), 1)
    with scratch_folder() as folder:
        files = []
        for number, first in enumerate(range(0, len(values), step)):
            some = values[first : first + step]
            within = pl.col(columns[0]).is_between(pl.lit(some[0]), pl.lit(some[-1]))
            files.append(folder / f"{number:05d}.parquet")
            query.filter(within).collect(engine="streaming").sort(columns).write_parquet(files[-1])
        return digest_rows(pl.scan_parquet(files, glob=False), rows)


def digest_columns(
    schema: Mapping[str, pl.DataType], rows: int, read: Callable[[str], Iterable[pl.Series]]
) -> str:
    """Digest columns that are read piece by piece, each as often as it takes.

    A column is bytes that no other column has: its head, which values are missing, and the values.
    """
    found = hashlib.sha256()
    for name, kind in schema.items():
        word, spellings = _choose_spellings(kind)
        found.update(json.dumps([name, word, rows]).encode())
        for spell in (_spell_missing, *spellings):
            for piece in read(name):
                found.update(spell(piece))
    return found.hexdigest()


def _choose_spellings(kind: pl.DataType) -> tuple[str, tuple[Spelling, ...]]:
    """Spell whole numbers, dates, moments and decimal numbers in 64 bits; all else as text, lengths first.

    Numbers of another width, as another version may read them, are the same numbers.
    """
    if kind.is_float():
        return "float", (_spell_decimal,)
    if (kind.is_integer() and kind not in (pl.UInt64, pl.Int128)) or kind.is_temporal():
        word = "whole" if kind.is_integer() else f"{type(kind).__name__} {getattr(kind, 'time_unit', '')}"
        return word, (_spell_whole,)
    return "text", (_spell_lengths, _spell_text)


def _spell_missing(column: pl.Series) -> bytes:
    return column.is_null().to_numpy().tobytes()


def _spell_decimal(column: pl.Series) -> bytes:
    return column.cast(pl.Float64).fill_null(0.0).to_numpy().astype("<f8").tobytes()


def _spell_whole(column: pl.Series) -> bytes:
    return column.to_physical().cast(pl.Int64).fill_null(0).to_numpy().astype("<i8").tobytes()


def _spell_lengths(column: pl.Series) -> bytes:
    return column.cast(pl.String).fill_null("").str.len_bytes().to_numpy().astype("<i8").tobytes()


def _spell_text(column: pl.Series) -> bytes:
    return "".join(column.cast(pl.String).fill_null("").to_list()).encode()
