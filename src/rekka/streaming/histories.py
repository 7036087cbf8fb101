"""Histories of any size: blocks of whole bridges in memory, in temporary files or with the workers of a cluster.

1. Up to 262,144 rows are one block. More are cut into blocks of about 65,536 rows by a hash of each row's bridge,
   so that a block holds whole bridges wherever their rows are in the table. The number of blocks depends on the
   number of rows alone, and rows of a block stay in the order of the table.
2. A scan of the table reads as many blocks as fit into a part of the memory; a few scans read them all. Every
   value is checked there, once.
3. Checked blocks are held where they fit into memory, else stored in a temporary folder and read again for every
   pass, or they stay with the workers that read them.
4. Each pass is a function of one block; results are added in the order of the blocks. The fit has the same bits
   wherever the blocks are.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors as cs

from rekka.core.errors import InputError, count_of, missing_columns, name_rows
from rekka.core.files import scratch_folder, write_whole
from rekka.data.categories import Coding, CodingRules
from rekka.data.text import collect
from rekka.model import inputs
from rekka.model.clock import MIDDLE, RUNNING, Clock, make_clock
from rekka.model.elements import read_elements
from rekka.model.fit import Fit, Options, check_options
from rekka.model.histories import Chain, numbering_rows, split_history
from rekka.model.history_fit import check_history_options, fit_observed_histories
from rekka.model.history_inputs import read_history_rows
from rekka.model.history_passes import (
    Blocks,
    HeldBlocks,
    HistoryObservations,
    Item,
    Result,
    observe_histories,
    take_rows,
)
from rekka.model.likelihood import count_threads
from rekka.scaling.operators import FittedScaling
from rekka.scaling.registry import fits_in_blocks
from rekka.streaming.any_size import BYTES, TEXT_BYTES, LazyTable, code_table, read_columns
from rekka.streaming.blocks import LEAST, WHOLE, Block, Reading, read_memory, say_bytes, work_side_by_side
from rekka.streaming.blocks import Result as BlockResult
from rekka.streaming.cluster.clients import Session, connect
from rekka.streaming.cluster.source import MOST_ROWS, PARTS, collect_here, in_order, send, spread_blocks
from rekka.streaming.cluster.source import count_threads as count_workers
from rekka.streaming.fit import fit_streamed_scaling, refuse_whole_rows
from rekka.streaming.passes import OnPass, Watched, find_quantiles

Array = NDArray[np.float64]

LOG = logging.getLogger("rekka")
ROWS = 65_536  # of a block, about: enough for many threads, and few enough that the work on it takes 100 MB or so
HELD = 4.0  # blocks and what a fit makes of them take about so many times the columns
SCANNED = 1 / 16  # of the limit of memory that rows may take while they are read
AT_WORK = 2  # stored blocks: one is read while another is evaluated
SEED = 0  # of the hash that places bridges
Run = Callable[[pl.LazyFrame, str], pl.DataFrame]  # of a query, whose table is named in errors
ROW, BLOCK = "row of the whole table", "block of whole bridges"  # columns that are added


@dataclass(frozen=True)
class HistoryReading:
    """Roles of a table's columns: those of pairs, the columns that identify a history together, and the date."""

    pairs: Reading
    histories: tuple[str, ...] = ()
    date: str | None = None

    @property
    def columns(self) -> list[str]:
        """Every column that is read, once."""
        date = () if self.date is None else (self.date,)
        return list(dict.fromkeys([*self.pairs.columns, *self.histories, *date]))

    @property
    def bridge(self) -> tuple[str, ...]:
        """Columns that identify a bridge together; none where each row is one."""
        return self.histories if self.pairs.group is None else (self.pairs.group,)

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes in memory, about."""
        texts = len({*self.histories, *self.bridge})
        return BYTES * (len(self.columns) - texts) + TEXT_BYTES * texts


def read_history_columns(
    table: LazyTable,
    start: str,
    dt: str,
    covariates: Sequence[str] | None,
    *,
    end: Any,
    group: Any,
    histories: Any,
    date: str,
) -> HistoryReading:
    """Roles of a table's columns; ``end`` and ``group`` are names, ``histories`` one or several."""
    names = (histories,) if isinstance(histories, str) else () if histories is None else histories
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"histories is a {type(histories).__name__}; for rows in files or of a query it is the name of their "
            "column, such as 'history', or a list of names."
        )
    inputs.find_columns(table.columns, start, dt, list(dict.fromkeys(names)))  # each is there
    others = (*names, date) if covariates is None else ()
    free = [name for name in table.columns if name not in others or name in (end, group)]
    pairs = read_columns(free, start, dt, covariates, end, None, group)
    return HistoryReading(pairs, tuple(dict.fromkeys(names)), date if date in table.columns else None)


def code_history_table(
    table: LazyTable, reading: HistoryReading, rules: CodingRules
) -> tuple[LazyTable, HistoryReading, Coding]:
    """Fit the coding of categories; departures are rows whose second rating is worse."""
    end = cs.by_name(reading.pairs.end) & cs.float()
    query = table.query.with_columns(end.fill_nan(None))  # NaN, a visit alone, would be the worst rating
    pairs, coding = code_table(replace(table, query=query), reading.pairs, rules)
    return replace(table, query=coding.code(query)), replace(reading, pairs=pairs), coding


@dataclass(frozen=True)
class HistoryModel:
    """Model that is asked for: ``elements`` are the options of that name, ``options`` the others."""

    covariates: tuple[str, ...]
    options: Options
    elements: Mapping[str, Any]
    n_states: int | None
    date: str

    def __post_init__(self) -> None:
        check_options(replace(self.options, clock=MIDDLE if self.options.clock == RUNNING else self.options.clock))
        check_history_options(self.options)

    @property
    def clock(self) -> Clock:
        """Clock of the covariates."""
        return make_clock(self.covariates, self.options.clock, self.options.advance)

    @property
    def improves(self) -> bool:
        """Whether ratings may become better."""
        return self.elements["errors"] is not None or self.elements["improvements"] is not None

    def check_date(self, columns: Sequence[str]) -> None:
        """Refuse a trend or a half-life without dates."""
        needed = {"a trend needs the date of each first visit": self.elements["trend"]}
        needed[inputs.HALF_LIFE_NEEDS] = self.options.half_life
        for why, asked in needed.items():
            if asked is not None and self.date not in columns:
                raise missing_columns([self.date], columns, f"the table, and {why}")

    def fit(self, blocks: Blocks[Chain], *, several: bool, clustered: bool, warm: Sequence[Fit] = ()) -> Fit:
        """Fit blocks wherever they are; scaling and quantiles of one alone are those of rows in memory."""
        observe = observe_streamed if several else observe_histories
        observed = observe(blocks, self.covariates, self.clock)
        worst = np.array([observed.overview.first.size - 1])
        n_states = inputs.count_states(worst, self.n_states)
        elements = read_elements(n_states, **self.elements, aged=bool(self.clock.columns))
        date = self.date if self.elements["trend"] is not None else None
        return fit_observed_histories(observed, self.options, elements, clustered=clustered, date=date, warm=warm)


def fit_history_table(
    frame: nw.DataFrame[Any],
    y: Any,
    columns: inputs.Columns,
    options: Options,
    elements: Mapping[str, Any],
    *,
    histories: Any = None,
    groups: Any = None,
    n_states: int | None = None,
    date: str = "date_1",
    on_pass: OnPass | None = None,
    warm: Sequence[Fit] = (),
) -> Fit:
    """Fit rows of a frame; ``elements`` are the options of that name, ``options`` the others.

    ``warm`` are earlier fits to start from, of other elements, covariates or rows.
    """
    model = HistoryModel(columns.covariates, options, elements, n_states, date)
    model.check_date(frame.columns)
    chain = read_history_rows(
        frame, y, columns, histories=histories, groups=groups, n_states=n_states, date=date,
        improvements=model.improves,
    )  # fmt: skip
    count = count_blocks(chain.start.size) if fits_in_blocks(options.scaling) else 1
    items = cut_chain(chain, count, alone=groups is None and histories is None)
    blocks = HeldBlocks(items, count_threads(options.threads), on_pass if count > 1 else None)
    return model.fit(blocks, several=count > 1, clustered=groups is not None, warm=warm)


def fit_history_files(
    table: LazyTable,
    reading: HistoryReading,
    options: Options,
    elements: Mapping[str, Any],
    *,
    n_states: int | None = None,
    date: str = "date_1",
    memory: Any = None,
    cluster: Any = None,
    on_pass: OnPass | None = None,
) -> Fit:
    """Fit rows in files or of a query: held in memory, stored in blocks, or with the workers of a cluster."""
    model = HistoryModel(reading.pairs.covariates, options, elements, n_states, date)
    model.check_date(table.columns)
    limit, count = read_memory(memory), count_blocks(table.rows)
    scan = BlockScan(table.query, reading, count, n_states, model.improves, table.name)
    fit = partial(model.fit, several=count > 1, clustered=reading.pairs.group is not None)
    threads = count_threads(options.threads)
    if count == 1:
        if cluster is not None:
            LOG.info("%s: few enough to be fitted here, without the cluster", count_of(table.rows, "row"))
        return fit(HeldBlocks(tuple(scan.load(0, 1)), threads))
    refuse_whole_rows(options)
    if cluster is not None:
        with connect(cluster) as session:
            return fit(_spread(session, scan, table.rows, on_pass))
    needed = table.rows * reading.row_bytes
    held = LEAST + HELD * needed <= limit
    LOG.info(
        "%s, %s as columns: %s %s (limit %s)", count_of(table.rows, "row"), say_bytes(needed),
        count_of(count, "block"), "held in memory" if held else "stored in a temporary folder", say_bytes(limit),
    )  # fmt: skip
    read = _read_all(scan, table.rows, int(SCANNED * limit), on_pass)
    if held:
        return fit(HeldBlocks(tuple(read), threads, on_pass))
    with store_blocks(read, threads, on_pass) as blocks:
        return fit(blocks)


def count_blocks(rows: int) -> int:
    """Number of blocks of so many rows."""
    return 1 if rows <= WHOLE else -(-rows // ROWS)


def place_bridges(bridge: Sequence[str], blocks: int) -> pl.Expr:
    """Block of each row: by a hash of its bridge's name, or by its number where each row is a bridge."""
    if not bridge:
        return pl.col(ROW) % blocks
    name = pl.concat_str([pl.col(column).cast(pl.String) for column in bridge], separator=" / ")
    return name.hash(SEED) % blocks


def cut_chain(rows: Chain, blocks: int, *, alone: bool) -> tuple[Chain, ...]:
    """Rows in memory as blocks of whole bridges; ``alone`` says that each row is one."""
    if blocks == 1:
        return (rows,)
    assert rows.names is not None  # they were read with the rows
    known = pl.DataFrame({ROW: np.arange(len(rows.names)), BLOCK: rows.names})
    own = known.select(place_bridges(() if alone else (BLOCK,), blocks)).to_series().to_numpy()[rows.bridge]
    order = np.argsort(own, kind="stable")
    edges = np.flatnonzero(np.diff(own[order])) + 1
    return tuple(_take_rows(rows, here) for here in np.split(order, edges))


def _take_rows(rows: Chain, here: NDArray[np.intp]) -> Chain:
    """Some rows as a block, in which histories and bridges are numbered from 0."""
    assert rows.names is not None
    _, history = np.unique(rows.history[here], return_inverse=True)
    known, bridge = np.unique(rows.bridge[here], return_inverse=True)
    return Chain(
        rows.start[here],
        rows.end[here],
        rows.dt[here],
        rows.x[here],
        history,
        bridge,
        None if rows.date is None else rows.date[here],
        tuple(rows.names[number] for number in known.tolist()),
        here,
    )


@dataclass(frozen=True, eq=False)
class BlockScan:
    """Blocks of whole bridges of a query, which are read by scans of all its rows."""

    query: pl.LazyFrame
    reading: HistoryReading
    blocks: int
    n_states: int | None
    improvements: bool
    name: str

    def load(self, low: int, high: int, run: Run = collect) -> Iterator[Chain]:
        """Checked rows of the blocks from ``low`` to before ``high``, those that have any."""
        own = pl.lit(0) if self.blocks == 1 else place_bridges(self.reading.bridge, self.blocks)
        rows = self.query.select(self.reading.columns).with_row_index(ROW).with_columns(own.alias(BLOCK))
        frame = run(rows.filter(pl.col(BLOCK).is_between(low, high - 1)), self.name).sort(BLOCK, ROW)
        parts = frame.partition_by(BLOCK, maintain_order=True, include_key=False)
        del frame
        while parts:
            yield self._read(parts.pop(0))

    def _read(self, frame: pl.DataFrame) -> Chain:
        reading, pairs, row = self.reading, self.reading.pairs, frame[ROW].to_numpy().astype(np.int64)
        names = reading.histories
        with numbering_rows(row):
            chain = read_history_rows(
                nw.from_native(frame, eager_only=True),
                frame[pairs.end],
                inputs.Columns(pairs.start, pairs.dt, pairs.covariates),
                histories=None if not names else frame[names[0]] if len(names) == 1 else frame.select(names),
                groups=None if pairs.group is None else frame[pairs.group],
                n_states=self.n_states,
                date=reading.date or "",
                improvements=self.improvements,
            )
        named = chain.names if reading.bridge else tuple(map(str, row.tolist()))
        return chain._replace(row=row, names=named)

    def check_bridges(self, low: int, high: int, run: Run = collect) -> None:
        """Refuse rows without a bridge, and histories placed from ``low`` to before ``high`` with several groups.

        It is done before any block is read: where such rows are elsewhere, others seem to follow after a gap.
        """
        names, group = list(self.reading.histories), self.reading.pairs.group
        known = list(dict.fromkeys(names if group is None else [*names, group]))
        rows = self.query.select(known).with_row_index(ROW)
        if low == 0:
            for name in known:
                absent = run(rows.filter(pl.col(name).is_null()).select(ROW), self.name)[ROW].to_list()
                if absent:
                    where = f"{count_of(len(absent), 'row')} ({name_rows(absent)})"
                    option = "histories" if name in names else "groups"
                    raise InputError(f"{option}: {name} is missing in {where}.", rows=absent)
        if names and group is not None and group not in names:
            placed = rows.filter(place_bridges(names, self.blocks).is_between(low, high - 1))
            found = run(placed, self.name).sort(ROW).filter(pl.col(group) != pl.col(group).first().over(names))
            if len(found):
                raise split_history(found[ROW].to_list())


def check_part(scan: BlockScan, low: int, high: int) -> None:
    """Check bridges on a worker of a cluster."""
    scan.check_bridges(low, high, collect_here)


def read_part(scan: BlockScan, low: int, high: int) -> list[Chain]:
    """Checked rows of some blocks, read by a worker of a cluster."""
    return list(scan.load(low, high, collect_here))


def _read_all(scan: BlockScan, rows: int, room: int, on_pass: OnPass | None) -> Iterator[Chain]:
    """Checked blocks in their order, by as few scans as the room in memory allows."""
    edges = _cut(scan.blocks, room * scan.blocks // (rows * scan.reading.row_bytes))
    for low, high in edges:
        scan.check_bridges(low, high)
    for low, high in edges:
        if on_pass is not None:
            on_pass("reading")
        yield from scan.load(low, high)


def _spread(session: Session, scan: BlockScan, rows: int, on_pass: OnPass | None) -> Blocks[Chain]:
    """Blocks with the workers of a cluster; each part is read by one scan."""
    each = -(-scan.blocks // max(PARTS * count_workers(session), 1))
    edges = _cut(scan.blocks, min(each, MOST_ROWS * scan.blocks // rows))
    for _ in in_order(session, [send(session, check_part, scan, *part) for part in edges]):
        pass
    return spread_blocks(session, partial(read_part, scan), edges, on_pass)


def _cut(blocks: int, each: int) -> list[tuple[int, int]]:
    """First block, and the one after the last, of parts of so many blocks."""
    each = max(each, 1)
    return [(low, min(low + each, blocks)) for low in range(0, blocks, each)]


@dataclass(frozen=True, eq=False)
class StoredBlocks(Blocks[Item]):
    """Blocks in files, read again for every pass; ``steps`` are functions that make of each what it is."""

    files: tuple[Path, ...]
    threads: int = 1
    on_pass: OnPass | None = None
    steps: tuple[Callable[[Any], Any], ...] = ()

    def run(self, function: Callable[[Item], Result]) -> Iterator[Result]:
        """Result of the function for each block, in their order."""
        return work_side_by_side(
            lambda file: [function(self._load(file))], self.files, AT_WORK if self.threads > 1 else 1
        )

    def then(self, function: Callable[[Item], Result]) -> Blocks[Result]:
        """Blocks that a function makes of these, in every pass."""
        return StoredBlocks(self.files, self.threads, self.on_pass, (*self.steps, function))

    def _load(self, file: Path) -> Any:
        block = pickle.loads(file.read_bytes())
        for step in self.steps:
            block = step(block)
        return block


@contextmanager
def store_blocks(items: Iterator[Item], threads: int, on_pass: OnPass | None) -> Iterator[StoredBlocks[Item]]:
    """Store blocks in a temporary folder, which is removed at the end, after an error or Ctrl-C too."""
    with scratch_folder() as folder:
        files = []
        for number, item in enumerate(items):
            files.append(folder / f"{number}.block")
            write_whole(files[-1], pickle.dumps(item, pickle.HIGHEST_PROTOCOL), flush=False)
        yield StoredBlocks(tuple(files), threads, on_pass)


@dataclass(frozen=True, eq=False)
class _Covariates:
    """Covariates of histories as the ``Source`` that scaling operators and quantiles are found from."""

    blocks: Blocks[Chain]
    covariates: tuple[str, ...]
    clock: Clock

    @property
    def reading(self) -> Reading:
        """Names of the covariates; the other columns are checked rows already."""
        return Reading("start", "end", "dt", self.covariates)

    def without_groups(self) -> _Covariates:
        """All of it: no bridges are read here."""
        return self

    def map(self, function: Callable[[Block], BlockResult]) -> Iterator[BlockResult]:
        """Result of the function for each block, in their order."""
        return self.blocks.run(partial(_on_covariates, self.clock, function))


def _on_covariates(clock: Clock, function: Callable[[Block], BlockResult], rows: Chain) -> BlockResult:
    x = np.asfortranarray(take_rows(clock, rows))
    return function(Block(rows.start, rows.end, rows.years, np.ones(rows.start.size), x, None))


@dataclass(frozen=True, eq=False)
class StreamedHistories(HistoryObservations):
    """Rows of histories in several blocks: scaling and quantiles are found by passes."""

    def fit_scaling(self, method: Any, plain: Collection[str] = ()) -> FittedScaling:
        """Fit one of rekka's operators; refuse covariates that are constant or collinear."""
        seen = self.overview
        return fit_streamed_scaling(self._source, seen.low, seen.high, seen.rows, method, plain)

    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles (q, p) of the covariates of rows."""
        if not self.covariates:
            return np.zeros((len(probabilities), 0))
        return find_quantiles(self._source.at("quantiles"), probabilities, self.overview.rows)

    @property
    def _source(self) -> Watched:
        return Watched(_Covariates(self.blocks, self.covariates, self.clock), self.blocks.on_pass)


def observe_streamed(blocks: Blocks[Chain], covariates: tuple[str, ...], clock: Clock) -> StreamedHistories:
    """Make the first pass over several blocks."""
    seen = observe_histories(blocks, covariates, clock)
    return StreamedHistories(seen.covariates, seen.blocks, seen.clock, seen.overview)
