"""Tables in blocks of rows, from memory or from files, and the limit of memory to work in.

Block b of a table is its rows b B to (b + 1) B - 1, whether they lie in memory, in files or on the workers of a
cluster. Whatever a fit needs of the rows is a sum, a minimum or a small factor of each block, put together in the
order of the blocks: the result has the same bits wherever the rows are and however many threads look at them.
Files are read again for every pass.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, name_rows, renumber_rows
from rekka.data.text import reading as translating
from rekka.model import inputs
from rekka.model.inputs import Training
from rekka.streaming import block_kernel

UNITS = {"": 1}
UNITS |= {name: 1000**power for power, name in enumerate("kmgt", 1)}
UNITS |= {f"{name}i": 1024**power for power, name in enumerate("kmgt", 1)}
LEAST = 500_000_000  # Python, its libraries, compiled kernels and what polars reads ahead take about so much
SHARE = 0.5  # of what is free, where no limit is given
UNKNOWN = 2_000_000_000  # where the machine does not say what is free


def read_memory(limit: Any) -> int:
    """Bytes of a limit such as "1GB", "512 MiB" or a number; None takes half of what is free."""
    if limit is None:
        return int(SHARE * free_memory())
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]i?)?b?\s*", str(limit), flags=re.IGNORECASE)
    if isinstance(limit, bool) or found is None:
        raise BadOption(f"memory is {limit!r}; a size such as 1GB or 500MB is needed.", option="memory")
    size = int(float(found[1]) * UNITS[(found[2] or "").lower()])
    if size < LEAST:
        raise BadOption(
            f"memory is {limit!r}; at least {say_bytes(LEAST)} are needed, for rekka itself.", option="memory"
        )
    return size


def free_memory() -> int:
    """Bytes that no program uses, or that are there only to speed files up."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = re.search(r"^MemAvailable:\s+(\d+) kB", file.read(), flags=re.MULTILINE)
        if found:
            return int(found[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):  # another system
        return UNKNOWN


def say_bytes(size: int) -> str:
    """'1.2 GB' for a message."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size / 1000:.3g} kB"


Array = NDArray[np.float64]
States = NDArray[np.int64]
Result = TypeVar("Result", covariant=True)

BLOCK_ROWS = 16_384  # columns, design and the kernel's work of so many rows fit the second-level cache of a core
BLOCKS_AT_ONCE = 8  # that a thread takes
WHOLE = 262_144  # up to so many rows a fit holds them all, sorted once by their states
USUAL = (pl.Float64, pl.Float32, pl.Int64, pl.Int32, pl.Int16, pl.Int8, pl.UInt32, pl.UInt16, pl.UInt8)
AHEAD = 2  # frames that wait beside those being worked on


@dataclass(frozen=True)
class Reading:
    """The roles of a table's columns; ``weight`` and ``group`` are None where there is none."""

    start: str
    end: str
    dt: str
    covariates: tuple[str, ...]
    weight: str | None = None
    group: str | None = None

    @property
    def columns(self) -> list[str]:
        """Every column that is read, once."""
        more = (name for name in (self.weight, self.group) if name is not None)
        return list(dict.fromkeys([self.start, self.end, self.dt, *self.covariates, *more]))

    def without_groups(self) -> Reading:
        """The reading without groups."""
        return replace(self, group=None)


class Block(NamedTuple):
    """Checked rows: 0-based states, years, weights (m,), raw covariates x (m, p), stored by column.

    ``group`` is a hash of each row's bridge. Rows of weight 0 are not there.
    """

    start: States
    end: States
    dt: Array
    weight: Array
    x: Array
    group: NDArray[np.uint64] | None

    def take(self, here: NDArray[Any]) -> Block:
        """Some of the rows, or all in another order."""
        group = None if self.group is None else self.group[here]
        x = np.asfortranarray(self.x[here])
        return Block(self.start[here], self.end[here], self.dt[here], self.weight[here], x, group)


class Source(Protocol):
    """Rows that can be passed over as often as it takes."""

    @property
    def reading(self) -> Reading:
        """The roles of the columns."""

    def without_groups(self) -> Source:
        """The rows without their bridges, whose names take longest to read."""

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order.

        Blocks are worked on side by side; on a cluster the function is sent there, so it is a function of a module
        or a ``functools.partial`` of one, and its result is small.
        """


def read_block(frame: pl.DataFrame, reading: Reading, first: int = 0) -> Block:
    """The rows of a frame, each value checked; ``first`` is the number of its first row in the table."""
    return _read_sound(frame, reading) or _read_doubtful(frame, reading, first)


def _read_sound(frame: pl.DataFrame, reading: Reading) -> Block | None:
    """The quick way for whole numbers and decimals without a fault or a weight; None where there is one."""
    numbers = (reading.start, reading.end, reading.dt, *reading.covariates)
    whole = (reading.start, reading.end)
    usual = (
        reading.weight is None
        and all(name in frame.columns and not frame[name].null_count() for name in reading.columns)
        and all(frame[name].dtype in USUAL for name in numbers)
        and all(frame[name].dtype.is_integer() for name in whole)
    )
    if not usual:
        return None
    m = len(frame)
    # NumPy converts: a cast by polars plans a query, which takes longer than all else where rows are few
    start, end = (frame[name].to_numpy().astype(np.int64, copy=False) for name in whole)
    dt = frame[reading.dt].to_numpy().astype(np.float64, copy=False)
    x = np.empty((len(reading.covariates), m))
    for c, name in enumerate(reading.covariates):
        x[c] = frame[name].to_numpy()
    states = np.empty((2, m), np.int64)
    if not block_kernel.are_sound(start, end, dt, x, states[0], states[1]):
        return None
    group = None if reading.group is None else _hash_groups(frame[reading.group])
    return Block(states[0], states[1], dt, np.ones(m), x.T, group)


def _read_doubtful(frame: pl.DataFrame, reading: Reading, first: int) -> Block:
    """The way that names what is wrong."""
    try:
        columns = inputs.Columns(reading.start, reading.dt, reading.covariates)
        read = inputs.read_predictors(nw.from_native(frame, eager_only=True), columns, "F")
        end = inputs.read_ends(frame[reading.end], read.start)
        weight = np.ones(end.size)
        if reading.weight is not None:
            weight = inputs.read_weights(frame[reading.weight].to_numpy(), end.size)
        group = None if reading.group is None else _hash_groups(frame[reading.group])
    except InputError as error:
        raise _place(error, first, len(frame)) from None
    block = Block(read.start, end, read.dt, weight, read.x, group)
    return block if weight.all() else block.take(weight > 0)


def _hash_groups(names: pl.Series) -> NDArray[np.uint64]:
    if names.null_count():
        missing = names.is_null().arg_true().to_list()
        raise InputError(f"{names.name} is missing in {len(missing)} rows ({name_rows(missing)}).", rows=missing)
    return names.hash(0).to_numpy()


def _place(error: InputError, first: int, rows: int) -> InputError:
    """The error with the rows of the table in place of those of the block."""
    if not first or not error.values.get("rows"):
        return error
    moved = renumber_rows(error, range(first, first + rows))
    looked = f"(Rows {first:,} to {first + rows - 1:,} were looked at together.)"
    return type(error)(f"{moved} {looked}", **moved.values)


def work_through(
    frames: Iterable[tuple[int, pl.DataFrame]],
    reading: Reading,
    function: Callable[[Block], Result],
    threads: int,
    block_rows: int = BLOCK_ROWS,
) -> Iterator[Result]:
    """Cut each frame into blocks, read them and apply the function, on so many threads; results in their order.

    Frames hold whole blocks, but for the last one.
    """

    def work(piece: tuple[int, pl.DataFrame]) -> list[Any]:
        return work_through_frame(piece[1], reading, function, piece[0], block_rows)

    return work_side_by_side(work, frames, threads)


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that every pass uses: new ones would each keep memory of their own.

    They are not those of a likelihood: what is done with a block may evaluate one, and would wait for itself.
    """
    return ThreadPoolExecutor(threads, thread_name_prefix="rekka-blocks")


def work_side_by_side(work: Callable[[Any], list[Any]], pieces: Iterable[Any], threads: int) -> Iterator[Any]:
    """The results of pieces, one after the other, worked on by so many threads."""
    if threads == 1:
        for piece in pieces:
            yield from work(piece)
        return
    pool = _pool(threads)
    waiting: deque[Future[list[Any]]] = deque()
    try:
        for piece in pieces:
            waiting.append(pool.submit(work, piece))
            if len(waiting) >= threads + AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def work_through_frame(
    frame: pl.DataFrame,
    reading: Reading,
    function: Callable[[Block], Result],
    first: int = 0,
    block_rows: int = BLOCK_ROWS,
) -> list[Any]:
    """The function's result for each block of a frame, whose first row is number ``first`` of the table."""
    frame = frame.rechunk()
    return [
        function(read_block(frame.slice(place, block_rows), reading, first + place))
        for place in range(0, len(frame), block_rows)
    ]


SCATTER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: whole numbers times this are all over the range


@dataclass(frozen=True, eq=False)
class FrameSource:
    """Rows in memory, in columns as they were read; no copy of them is made beyond a block."""

    frame: pl.DataFrame
    reading: Reading
    threads: int = 1
    block_rows: int = BLOCK_ROWS

    def without_groups(self) -> FrameSource:
        """The rows without their bridges."""
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
        """All of it: groups are numbers already."""
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
        """The rows without their bridges."""
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
