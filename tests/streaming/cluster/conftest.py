"""A cluster of two worker processes on this machine, for the tests of one file."""

import gc
import logging
import multiprocessing
import os
import warnings
from collections.abc import Iterator
from multiprocessing import forkserver
from typing import Any

import pytest

from rekka.streaming.cluster.clients import LOOPBACK, Session, connect


@pytest.fixture(scope="module")
def apart() -> Iterator[None]:
    """Processes that are started now are not measured: one that is killed leaves its measurements half written.

    Nor does what Dask leaves open of them, sockets mostly, come up in tests of other rooms.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("COV_", "COVERAGE_")):
                patch.delenv(name)
        yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def threads(apart) -> Iterator[Any]:
    """A scheduler and a worker that are threads of this process: nothing has to be started for them."""
    from distributed import LocalCluster

    options = {"processes": False, "protocol": "tcp", "host": LOOPBACK, "dashboard_address": None}
    with LocalCluster(n_workers=1, threads_per_worker=1, silence_logs=logging.CRITICAL, **options) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(apart) -> Iterator[Session]:
    """Its workers are forked from a process that has imported rekka: each of them would take seconds for it."""
    import dask

    how = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    if how == "forkserver":
        multiprocessing.set_forkserver_preload(["distributed", "rekka.study.runner"])
        forkserver.ensure_running()
    with dask.config.set({"distributed.worker.multiprocessing-method": how}), connect("local:2") as session:
        yield session
