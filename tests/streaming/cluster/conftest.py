"""A cluster of two worker processes on this machine, for the tests of one file."""

import gc
import os
import warnings
from collections.abc import Iterator

import pytest

from rekka.streaming.cluster.clients import Session, connect


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


@pytest.fixture(scope="module")
def cluster(apart) -> Iterator[Session]:
    with connect("local:2") as session:
        yield session
