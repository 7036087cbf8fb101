"""Clusters that answer, that do not, and that do not fit: each with a sentence."""

import logging
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed (pip install 'rekka[cluster]')")

from distributed import Client
from distributed.comm.addressing import get_address_host_port

import rekka
from rekka.core.errors import BadOption
from rekka.streaming.cluster import clients
from rekka.streaming.cluster.clients import ClusterError, ClusterWarning, Session, connect

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Dask leaves sockets of the dead open


def refusal(cluster: Any) -> str:
    with pytest.raises((ClusterError, BadOption)) as caught, connect(cluster):
        pass
    return f"{caught.type.__name__}: {caught.value}"


@pytest.fixture
def free_port() -> int:
    with socket.create_server((clients.LOOPBACK, 0)) as listening:
        return int(listening.getsockname()[1])


def test_nobody_listens(free_port):
    said = refusal(f"tcp://127.0.0.1:{free_port}")
    assert said.startswith(f"ClusterError: There is no Dask scheduler at tcp://127.0.0.1:{free_port}: connection")
    assert "Start one with: dask scheduler." in said


def test_somebody_else_listens(monkeypatch):
    monkeypatch.setattr(clients, "ANSWER", 0.5)
    with socket.create_server((clients.LOOPBACK, 0)) as listening:
        said = refusal(f"127.0.0.1:{listening.getsockname()[1]}")
    assert "whatever listens there does not speak as one (tcp:// or tls://?)" in said


def test_no_certificates():
    with socket.create_server((clients.LOOPBACK, 0)) as listening:
        said = refusal(f"tls://127.0.0.1:{listening.getsockname()[1]}")
    assert "no connection can be made (TLS expects a `ssl_context` argument" in said


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ("nonsense", "missing port number in address 'nonsense'. Give a scheduler's address, such as tcp://"),
        ("http://host:1", "unknown address scheme 'http'"),
        ("", "missing port number"),
        ("local:0", "at least one worker is needed, such as 'local:2'"),
        ("local:two", "'local:two'"),
        (4, "cluster is 4; it can be a scheduler's address"),
    ],
)
def test_no_address_at_all(cluster, words):
    said = refusal(cluster)
    assert said.startswith("BadOption: cluster is ")
    assert words in said


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert refusal("local") == (
        'ClusterError: A cluster needs Dask, which is not installed. Install it with: pip install "rekka[cluster]"'
    )


def test_a_local_cluster_is_of_this_machine_only_and_gone_afterwards(apart):
    before = logging.getLogger("distributed").level
    with connect("local:1") as session:
        address = session.client.scheduler.address
        threads = session.client.nthreads()
        assert list(threads.values()) == [1]
        assert {get_address_host_port(place)[0] for place in (address, *threads)} == {clients.LOOPBACK}
        scratch = session.client.run(lambda dask_worker: dask_worker.local_directory).values()
        assert all(Path(folder).is_dir() for folder in scratch)
    assert not any(Path(folder).exists() for folder in scratch)
    assert logging.getLogger("distributed").level == before
    assert "connection refused" in refusal(address)


def test_a_scheduler_without_workers(apart, monkeypatch):
    monkeypatch.setattr(clients, "FIRST_WORKER", 0.2)
    with clients._start_workers(0) as made:
        said = refusal(made.scheduler_address)
    assert f"The cluster at {made.scheduler_address} has no workers. Start some with: dask worker" in said


def test_a_cluster_that_cannot_be_started(monkeypatch):
    def fail(**_: Any) -> None:
        raise OSError("no sockets here")

    monkeypatch.setattr("distributed.LocalCluster", fail)
    assert "A local cluster of 3 workers could not be started: no sockets here. Use --workers" in refusal(
        "local:3"
    )


def test_a_client_of_ones_own_stays_open(threads):
    with Client(threads, set_as_default=False) as client:
        with connect(client) as session:
            assert session.client is client
        assert client.status == "running"


def test_an_address_is_enough(threads):
    with connect(threads.scheduler_address) as session:
        assert session.client.submit(sum, [1, 2]).result() == 3
        assert session.name == f"The cluster at {threads.scheduler_address}"


class Told(Client):
    """A client whose cluster has the versions it is told to have."""

    def __init__(self, workers: dict[str, dict[str, str | None]]) -> None:
        self.workers = workers

    def get_versions(self, check: bool = False, packages: Any = None) -> Any:
        here = dict.fromkeys(packages, "1.0") | {"rekka": rekka.__version__}
        workers = {name: {"packages": here | has} for name, has in self.workers.items()}
        return {"client": {"packages": here}, "scheduler": {"packages": here}, "workers": workers}

    def __del__(self) -> None:
        pass


def look_over(**workers: dict[str, str | None]) -> Session:
    return clients._look_over(Session(Told(workers), "The cluster"))


def test_another_rekka_is_refused():
    with pytest.raises(ClusterError) as caught:
        look_over(a={"rekka": None}, b={}, c={"rekka": "0.1"})
    assert str(caught.value) == (
        "The cluster cannot be used: rekka is not installed at a; another rekka is at work there: 0.1 (c). Here it "
        f"is {rekka.__version__}. Install the same there, and start the scheduler and its workers again."
    )


def test_other_versions_of_what_computes_are_named():
    with pytest.warns(ClusterWarning, match="The cluster has numpy 2.9, and here it is 1.0: the last digits"):
        look_over(a={"numpy": "2.9"}, b={})


def test_the_same_versions_pass():
    assert look_over(a={}, b={}).name == "The cluster"


def test_lost_while_it_is_looked_over(monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("gone")

    monkeypatch.setattr(Told, "get_versions", fail)
    with pytest.raises(ClusterError, match="The cluster was lost"):
        look_over()
