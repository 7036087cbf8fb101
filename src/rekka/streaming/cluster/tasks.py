"""Functions carried out on a cluster: what many of them need is sent once, results come as they are done.

What is sent is the result of a task of its own. A worker that dies takes nothing with it: the scheduler has the
same task done again elsewhere, and those that were waiting for it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from rekka.streaming.cluster.clients import Session, import_dask
from rekka.streaming.cluster.failures import ClusterError, lost, no_workers, worn_out

Result = TypeVar("Result")
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
    """What has ended next; without news, whether the cluster is there at all."""
    alone = 0
    while True:
        try:
            yield ended.get(timeout=LOOK_EVERY)
        except Empty:
            alone = 0 if count_threads(session) else alone + 1
            if alone >= PATIENCE:
                raise no_workers(session.name) from None


def count_threads(session: Session) -> int:
    """Of all workers that are there now."""
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
