"""Rows in memory, and rows in files that are read again for every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from rekka.data.queries import reading as translating
from rekka.model.inputs import Training
from rekka.streaming.blocks import (
    BLOCK_ROWS,
    BLOCKS_AT_ONCE,
    Block,
    Reading,
    Result,
    work_side_by_side,
    work_through,
)

SCATTER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: whole numbers times this are all over the range


@dataclass(frozen=True, eq=False)
class FrameSource:
    """Rows in memory, in columns as they were read; no copy of them is made beyond a block."""

    frame: pl.DataFrame
    reading: Reading
    threads: int = 1
    block_rows: int = BLOCK_ROWS

    def without_groups(self) -> FrameSource:
        """The same rows, whose bridges are not read."""
        return replace(self, reading=self.reading.without_groups())

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order."""
        step = self.block_rows * BLOCKS_AT_ONCE
        slices = ((first, self.frame.slice(first, step)) for first in range(0, len(self.frame), step))
        return work_through(slices, self.reading, function, self.threads, self.block_rows)


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Rows that were checked already, in arrays; groups are whole numbers from 0."""

    training: Training
    covariates: tuple[str, ...]
    threads: int = 1
    block_rows: int = BLOCK_ROWS

    @property
    def reading(self) -> Reading:
        """The covariates' names; the other columns have none any more."""
        return Reading("start", "end", "dt", self.covariates)

    def without_groups(self) -> ArraySource:
        """The same: groups are numbers already."""
        return self

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order."""
        places = range(0, self.training.rows.dt.size, self.block_rows)
        return work_side_by_side(lambda first: [function(self._block(first))], places, self.threads)

    def _block(self, first: int) -> Block:
        here = slice(first, first + self.block_rows)
        rows, groups = self.training.rows, self.training.groups
        group = None if groups is None else groups[here].astype(np.uint64) * SCATTER
        x = np.asfortranarray(self.training.x[here])
        return Block(rows.start[here], rows.end[here], rows.dt[here], rows.weight[here], x, group)


@dataclass(frozen=True, eq=False)
class ScanSource:
    """Rows of a query over files, read from them in every pass; no more than a few blocks are in memory."""

    query: pl.LazyFrame
    reading: Reading
    threads: int = 1
    block_rows: int = BLOCK_ROWS
    name: str = "the table"

    def without_groups(self) -> ScanSource:
        """The same rows, whose bridges are not read."""
        return replace(self, reading=self.reading.without_groups())

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order."""
        return work_through(self._frames(), self.reading, function, self.threads, self.block_rows)

    def _frames(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Frames of whole blocks, whatever pieces the reader hands out."""
        step = self.block_rows * BLOCKS_AT_ONCE
        first, held, rows = 0, [], 0
        wanted = self.query.select(self.reading.columns)
        with translating(self.name):
            for batch in wanted.collect_batches(chunk_size=step, lazy=True, engine="streaming"):
                held.append(batch)
                rows += len(batch)
                while rows >= step:
                    frame = held[0] if len(held) == 1 else pl.concat(held)
                    yield first, frame[:step]
                    first, rows = first + step, rows - step
                    held = [frame[step:]] if rows else []
        if rows:
            yield first, pl.concat(held)
