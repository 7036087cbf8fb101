"""Tasks on a cluster, and rows that lie with its workers.

What many tasks need is sent once, as the result of a task of its own: when a worker dies, the scheduler has it
done again elsewhere. Results come back as they are done.

Each worker reads its parts of the rows from the files once, and keeps them. A part is a run of whole blocks. A
pass sends a function, with the coefficients it needs, to every part, and gets its small results back, block by
block and in their order: the same sums as anywhere else, with the same bits.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import polars as pl

from rekka.core.errors import UnreadableTable
from rekka.data.text import collect
from rekka.model.fit import one_blas_thread
from rekka.model.history_passes import Blocks, Item
from rekka.streaming.blocks import BLOCK_ROWS, Block, Reading, Result, work_through_frame
from rekka.streaming.cluster.clients import ClusterError, Session, import_dask, lost, no_workers, worn_out

Made = TypeVar("Made")
Future = Any  # a distributed.Future, which is typed in parts only
CarryOut = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Generator[Any]]

LOOK_EVERY = 2.0  # seconds without news after which the cluster is looked at
PATIENCE = 30  # looks at a cluster without workers: a minute, in which others may come


def recruit(session: Session) -> CarryOut:
    """A function that carries out tasks there, and gives their results as they are done, in any order.

    The first argument of a task is what it shares with others; it is sent once, however often this is called.
    """
    held: dict[int, tuple[Any, Future]] = {}  # with the object itself, so that its number stays its own

    def hold(shared: Any) -> Future:
        if id(shared) not in held:
            held[id(shared)] = (shared, send(session, pickle.loads, pickle.dumps(shared)))
        return held[id(shared)][1]

    def carry_out(function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]) -> Generator[Result]:
        futures = [send(session, function, hold(shared), *more) for shared, *more in tasks]
        with closing(as_done(session, futures)) as places:
            for place in places:
                yield take(session, futures[place])
                futures[place].release()

    return carry_out


def send(session: Session, function: Callable[..., Any], *arguments: Any) -> Future:
    """A task for the cluster: a function of a module, and what it is to be called with."""
    with _reaching(session):
        return session.client.submit(function, *arguments, pure=False)


def in_order(session: Session, futures: Sequence[Future]) -> Generator[Any]:
    """The results in the order of the futures; each is fetched when it is its turn."""
    ended: set[int] = set()
    with closing(as_done(session, futures)) as places:
        for place, future in enumerate(futures):
            while place not in ended:
                ended.add(next(places))
            yield take(session, future)
            future.release()


def as_done(session: Session, futures: Sequence[Future]) -> Generator[int]:
    """The place of each future that has ended, well or not; those left when this is closed are cancelled."""
    ended: SimpleQueue[int] = SimpleQueue()
    for place, future in enumerate(futures):
        future.add_done_callback(lambda _, place=place: ended.put(place))
    try:
        for _ in futures:
            yield next(_listen(session, ended))
    finally:
        with suppress(ClusterError), _reaching(session):
            session.client.cancel([future for future in futures if future.status == "pending"])


def _listen(session: Session, ended: SimpleQueue[int]) -> Iterator[int]:
    """Wait for the next task to end; without news, check that the cluster is there."""
    alone = 0
    while True:
        try:
            yield ended.get(timeout=LOOK_EVERY)
        except Empty:
            alone = 0 if count_threads(session) else alone + 1
            if alone >= PATIENCE:
                raise no_workers(session.name) from None


def count_threads(session: Session) -> int:
    """Number of threads of all workers that are there now."""
    with _reaching(session):
        return sum(session.client.nthreads().values())


@contextmanager
def _reaching(session: Session) -> Iterator[None]:
    """While the cluster is asked for something: a connection that breaks is a cluster that is lost."""
    distributed = import_dask("distributed")
    if session.client.status != "running":
        raise lost(session.name)
    try:
        yield
    except (distributed.CancelledError, import_dask("distributed.comm").CommClosedError):
        raise lost(session.name) from None
    except OSError:  # of a task, or of a connection that could not be made again
        if session.client.status == "running":
            raise
        raise lost(session.name) from None


def take(session: Session, future: Future) -> Any:
    """The result, or the error, of a task that has ended; what the cluster did to it is our error."""
    distributed = import_dask("distributed")
    while True:
        try:
            with _reaching(session):
                return future.result(timeout=LOOK_EVERY * PATIENCE)
        except distributed.KilledWorker as error:
            raise worn_out(session.name, error.allowed_failures + 1, error.last_worker.address) from None
        except TimeoutError:  # the worker that had it is gone, and it is made again
            if not count_threads(session):
                raise no_workers(session.name) from None


MOST_ROWS = 2**20  # of a part: a worker that is lost has others read no more than they need
PARTS = 4  # for each thread there, so that a slow worker is not waited for


@dataclass(frozen=True, eq=False)
class TablePart:
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
        """The rows without their bridges."""
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
    """Number of rows, as a worker sees it."""
    return int(collect_here(query.select(pl.len()), name).item())


def load_part(query: pl.LazyFrame, columns: list[str], first: int, rows: int, name: str) -> TablePart:
    """Some rows, read from the files."""
    return TablePart(first, collect_here(query.select(columns).slice(first, rows), name))


def collect_here(query: pl.LazyFrame, name: str) -> pl.DataFrame:
    """Run a query on a worker, which must see the files."""
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


def work_on(
    part: TablePart, reading: Reading, function: Callable[[Block], Result], block_rows: int
) -> list[Result]:
    """The function's result for each block of a part."""
    return work_through_frame(part.frame, reading, function, part.first, block_rows)


@dataclass(frozen=True, eq=False)
class ClusterBlocks(Blocks[Item]):
    """Blocks in the memory of a cluster's workers. Made by ``spread_blocks``.

    A part is a list of blocks, the result of a task: another worker computes it again when its own is lost.
    """

    session: Session
    parts: tuple[Future, ...]
    threads: int = 1  # of one block: workers take several blocks at a time
    on_pass: Callable[[str], None] | None = None

    def run(self, function: Callable[[Item], Made]) -> Iterator[Made]:
        """Result of the function for each block, in their order."""
        with closing(in_order(self.session, self._send(function))) as parts:
            for results in parts:
                yield from results

    def then(self, function: Callable[[Item], Made]) -> Blocks[Made]:
        """Blocks that a function makes of these; they stay with the workers."""
        return ClusterBlocks(self.session, self._send(function), self.threads, self.on_pass)

    def _send(self, function: Callable[[Item], Any]) -> tuple[Future, ...]:
        return tuple(send(self.session, work_on_blocks, part, function) for part in self.parts)


def spread_blocks(
    session: Session,
    load: Callable[[int, int], list[Item]],
    edges: Sequence[tuple[int, int]],
    on_pass: Callable[[str], None] | None = None,
) -> ClusterBlocks[Item]:
    """Have the workers load blocks, those from one number to before another in each part, and keep them."""
    return ClusterBlocks(session, tuple(send(session, load, *part) for part in edges), on_pass=on_pass)


def work_on_blocks(part: list[Item], function: Callable[[Item], Made]) -> list[Made]:
    """Result of the function for each block of a part."""
    with one_blas_thread():  # other numbers of threads may round otherwise
        return [function(block) for block in part]
