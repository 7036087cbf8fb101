"""Rows that lie with the workers of a cluster: each reads its part from the files once, and keeps it.

A part is a run of whole blocks. A pass sends a function, with the coefficients it needs, to every part, and gets
its small results back, block by block and in their order: the same sums as anywhere else, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from rekka.core.errors import UnreadableTable
from rekka.data.queries import collect
from rekka.streaming.blocks import BLOCK_ROWS, Block, Reading, Result, work_through_frame
from rekka.streaming.cluster.clients import Session, import_dask
from rekka.streaming.cluster.tasks import Future, count_threads, in_order, send, take

MOST_ROWS = 2**20  # of a part: a worker that is lost has others read no more than they need
PARTS = 4  # for each thread there, so that a slow worker is not waited for


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a table, in columns as they were read; ``first`` is the number of the first."""

    first: int
    frame: pl.DataFrame

    def __sizeof__(self) -> int:
        return int(self.frame.estimated_size())  # by which Dask judges what a worker can hold


@dataclass(frozen=True, eq=False)
class ClusterSource:
    """Rows in the memory of a cluster's workers. Made by ``spread_rows``.

    A part is the result of a task, so that another worker reads it from the files when its own is lost.
    """

    session: Session
    reading: Reading
    rows: int
    parts: tuple[Future, ...]
    block_rows: int = BLOCK_ROWS

    def without_groups(self) -> ClusterSource:
        """The same rows, whose bridges are not looked at."""
        return replace(self, reading=self.reading.without_groups())

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order."""
        asked = (self.reading, function, self.block_rows)
        futures = [send(self.session, work_on, part, *asked) for part in self.parts]
        with closing(in_order(self.session, futures)) as parts:
            for results in parts:
                yield from results


def spread_rows(
    session: Session,
    query: pl.LazyFrame,
    reading: Reading,
    *,
    name: str = "the table",
    block_rows: int = BLOCK_ROWS,
) -> ClusterSource:
    """Have the workers read the rows of a query over files, which every one of them must see."""
    rows = take(session, send(session, count_rows, query, name))
    size = choose_size(rows, count_threads(session), block_rows)
    places = range(0, max(rows, 1), size)
    parts = [send(session, load_part, query, reading.columns, first, size, name) for first in places]
    return ClusterSource(session, reading, rows, tuple(parts), block_rows)


def choose_size(rows: int, threads: int, block_rows: int = BLOCK_ROWS) -> int:
    """Rows of a part: whole blocks, enough parts for all threads, none that is very large."""
    blocks = -(-rows // block_rows)
    each = -(-blocks // max(PARTS * threads, 1))
    return block_rows * max(min(each, MOST_ROWS // block_rows), 1)


def count_rows(query: pl.LazyFrame, name: str) -> int:
    """How many rows there are, as a worker sees it."""
    return int(_collect(query.select(pl.len()), name).item())


def load_part(query: pl.LazyFrame, columns: list[str], first: int, rows: int, name: str) -> Part:
    """Some rows, read from the files."""
    return Part(first, _collect(query.select(columns).slice(first, rows), name))


def _collect(query: pl.LazyFrame, name: str) -> pl.DataFrame:
    try:
        return collect(query, name)
    except OSError as error:
        raise UnreadableTable(
            f"{name} cannot be read by the worker at {_name_worker()}: {error.strerror or 'it is not there'}. "
            "Every worker must see the files under the same path: put them where all can read them, and give the "
            "whole path.",
            file=name,
        ) from None


def _name_worker() -> Any:
    return import_dask("distributed").get_worker().address


def work_on(part: Part, reading: Reading, function: Callable[[Block], Result], block_rows: int) -> list[Result]:
    """The function's result for each block of a part."""
    return work_through_frame(part.frame, reading, function, part.first, block_rows)
