"""A Dask cluster, reached or started here: whether its workers have what they need, and the errors if not.

Dask is an extra. It is imported when a cluster is asked for, not before: it takes a second, and few ask.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rekka.core.errors import BadOption, InputError, count_of, name_some

KEPT = (
    "What came back before is kept in the run folder, if there is one: continue with the same command, or with "
    "rekka compare --resume RUN, with a cluster or without."
)


class ClusterError(InputError):
    """A cluster that cannot be reached, does not fit, or is lost."""


class ClusterWarning(UserWarning):
    """Workers with other versions of what computes."""


def not_installed() -> ClusterError:
    """The error where Dask is not there."""
    return ClusterError(
        'A cluster needs Dask, which is not installed. Install it with: pip install "rekka[cluster]"'
    )


def no_scheduler(address: str, why: str) -> ClusterError:
    """The error for an address at which nobody answers, or somebody else."""
    return ClusterError(
        f"There is no Dask scheduler at {address}: {why}. Start one with: dask scheduler. It prints its address. "
        "Or use --cluster local for processes on this machine.",
        address=address,
    )


def no_workers(name: str) -> ClusterError:
    """The error for a scheduler without workers."""
    return ClusterError(f"{name} has no workers. Start some with: dask worker ADDRESS. {KEPT}", cluster=name)


def lost(name: str) -> ClusterError:
    """The error for a scheduler that is gone."""
    return ClusterError(
        f"{name} was lost: its scheduler stopped or cannot be reached any more. {KEPT}", cluster=name
    )


def worn_out(name: str, deaths: int, last: str) -> ClusterError:
    """The error for a task that no worker survived."""
    return ClusterError(
        f"{name} gave up: {count_of(deaths, 'worker')} died, one after the other, at the same task, the last at "
        f"{last}. Most often their memory is too small: give them more (dask worker --memory-limit), or fewer "
        f"threads each. {KEPT}",
        cluster=name,
    )


def other_rekka(name: str, here: str, there: dict[str, str | None]) -> ClusterError:
    """The error for workers that would run other code."""
    none = [where for where, version in there.items() if version is None]
    others = [f"{version} ({where})" for where, version in there.items() if version is not None]
    found = [f"rekka is not installed at {name_some(none, 5)}"] if none else []
    found += [f"another rekka is at work there: {name_some(others, 5)}"] if others else []
    return ClusterError(
        f"{name} cannot be used: {'; '.join(found)}. Here it is {here}. Install the same there, and start the "
        "scheduler and its workers again.",
        cluster=name,
    )


ANSWER = 10.0  # seconds in which a scheduler answers, or does not
FIRST_WORKER = 10.0  # seconds in which a worker shows up at a scheduler that has none
LOOPBACK = "127.0.0.1"
NUMERIC = ("numba", "numpy", "polars", "scipy")  # those of another version may give other digits
SILENT = 15  # seconds after which a connection that says nothing is dead; Dask takes no fewer than 11
SETTINGS = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # rows travel in a task of their own, once
FAR = {"distributed.comm.timeouts.connect": f"{ANSWER:g}s", "distributed.comm.timeouts.tcp": f"{SILENT}s"}
_LOCAL = re.compile(r"local(?::(\d+))?")
_LOGGERS = ("distributed", "distributed.client", "distributed.nanny", "tornado", "tornado.application")


@dataclass(frozen=True, eq=False)
class Session:
    """A cluster whose workers have what they need; ``name`` is what messages call it."""

    client: Any  # a distributed.Client, which is typed in parts only
    name: str


@contextmanager
def connect(cluster: Any) -> Iterator[Session]:
    """A session with a cluster: a scheduler's address, 'local', 'local:4', or a ``distributed.Client``.

    What was started here is stopped at the end; a client that was given is left as it is.
    """
    distributed = import_dask("distributed")
    if isinstance(cluster, distributed.Client) and not cluster.asynchronous:
        yield _look_over(Session(cluster, "The cluster of this client"))
        return
    if not isinstance(cluster, str):
        raise BadOption(
            f"cluster is {cluster!r}; it can be a scheduler's address, such as 'tcp://host:8786', 'local', "
            "'local:4', or a distributed.Client that is not asynchronous.",
            cluster=cluster,
        )
    local = _LOCAL.fullmatch(cluster.strip())
    started = _start_local(local[1]) if local else _reach(cluster.strip())
    with import_dask("dask.config").set(SETTINGS | ({} if local else FAR)), _hush(), started as session:
        yield _look_over(session)


def import_dask(module: str) -> Any:
    """A module of Dask's, if it is installed."""
    try:
        return import_module(module)
    except ImportError:
        raise not_installed() from None


@contextmanager
def _hush() -> Iterator[None]:
    """Keep Dask's log off the terminal: a lost worker is replaced, and what matters is an error of ours."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _start_local(asked: str | None) -> Iterator[Session]:
    """Start processes of one thread each on this machine, that only this machine can talk to."""
    workers = _count_cores() if asked is None else int(asked)
    if workers < 1:
        raise BadOption("cluster is 'local:0'; at least one worker is needed, such as 'local:2'.", workers=workers)
    config, client_of = import_dask("dask.config"), import_dask("distributed").Client
    with (
        tempfile.TemporaryDirectory(prefix="rekka-cluster-", ignore_cleanup_errors=True) as scratch,
        config.set({"temporary-directory": scratch}),
        _start_workers(workers) as cluster,
        client_of(cluster, set_as_default=False) as client,
    ):
        yield Session(client, "The local cluster")


def _start_workers(workers: int) -> Any:
    try:
        return import_dask("distributed").LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host=LOOPBACK,
            dashboard_address=None,
            scheduler_kwargs={"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"},  # else it takes port 8787
            silence_logs=logging.CRITICAL,
        )
    except (OSError, RuntimeError) as error:
        raise ClusterError(
            f"A local cluster of {count_of(workers, 'worker')} could not be started: {error}. "
            "Use --workers instead, which needs no network."
        ) from None


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _reach(address: str) -> Iterator[Session]:
    """A client of the scheduler at an address, if there is one and it has workers."""
    _ask(address)
    distributed = import_dask("distributed")
    try:
        client = distributed.Client(address, timeout=ANSWER, set_as_default=False)
    except OSError:
        raise no_scheduler(address, "it stopped answering") from None
    with client:
        session = Session(client, f"The cluster at {address}")
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER)
        except TimeoutError:
            raise no_workers(session.name) from None
        yield session


def _ask(address: str) -> None:
    """Refuse an address at which no scheduler is: Dask's own client would wait there, long or for ever."""
    addressing = import_dask("distributed.comm.addressing")
    try:
        host, port = addressing.get_address_host_port(address)
    except (RuntimeError, ValueError) as error:
        raise BadOption(
            f"cluster is {address!r}: {error}. Give a scheduler's address, such as tcp://host:8786; or local.",
            cluster=address,
        ) from None
    try:
        socket.create_connection((host, port), ANSWER).close()
    except OSError as error:
        raise no_scheduler(address, (error.strerror or "nobody answers").lower()) from None
    try:
        with ThreadPoolExecutor(1) as apart:  # in a notebook this thread has a loop already
            apart.submit(asyncio.run, _identify(address)).result()
    except OSError:
        raise no_scheduler(address, "whatever listens there does not speak as one (tcp:// or tls://?)") from None
    except TypeError as error:  # Dask's way to say that certificates are missing
        raise no_scheduler(address, f"no connection can be made ({error})") from None


async def _identify(address: str) -> None:
    core, security = import_dask("distributed.core"), import_dask("distributed").Security()

    async def ask() -> None:
        arguments = security.get_connection_args("client")
        async with core.rpc(address, timeout=ANSWER, connection_args=arguments) as scheduler:
            await scheduler.identity()

    await asyncio.wait_for(ask(), ANSWER)


def _look_over(session: Session) -> Session:
    """Refuse another rekka on the cluster; warn of other versions of what computes."""
    cancelled = import_dask("distributed").CancelledError
    try:
        found = session.client.get_versions(packages=["rekka", *NUMERIC])
    except (OSError, cancelled):
        raise lost(session.name) from None
    here = found["client"]["packages"]
    there = {"the scheduler": found["scheduler"]["packages"]}
    there |= {worker: told["packages"] for worker, told in found["workers"].items() if told}
    others = {where: has["rekka"] for where, has in there.items() if has["rekka"] != here["rekka"]}
    if others:
        raise other_rekka(session.name, here["rekka"], others)
    for package in NUMERIC:
        versions = {has[package] for where, has in there.items() if where in found["workers"]} - {here[package]}
        if versions:
            told = name_some(sorted(map(str, versions)))
            warnings.warn(
                f"{session.name} has {package} {told}, and here it is {here[package]}: the last digits of results "
                "may differ.",
                ClusterWarning,
                stacklevel=4,
            )
    return session
