"""Tasks on a cluster: sent once, back as they are done, and what becomes of them when something dies."""

from contextlib import closing

import pytest

pytest.importorskip("distributed", reason="Dask is not installed (pip install 'rekka[cluster]')")

from cluster_work import add, die, divide, kill_worker, wait
from distributed import Client
from distributed.comm import CommClosedError

from rekka.streaming.cluster import clients
from rekka.streaming.cluster import source as tasks
from rekka.streaming.cluster.clients import ClusterError, Session
from rekka.streaming.cluster.source import in_order, recruit, send, take

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Dask leaves sockets of the dead open


def test_results_come_back_whatever_their_order(cluster):
    crew = recruit(cluster)
    assert sorted(crew(add, [(100, more) for more in range(20)])) == list(range(100, 120))
    assert list(crew(add, [])) == []


class Counted:
    """A number that counts how often it is packed."""

    packed = 0

    def __reduce__(self):
        self.packed += 1
        return int, (5,)


def test_what_tasks_share_is_sent_once(cluster):
    one, other = Counted(), Counted()
    crew = recruit(cluster)
    for _ in range(2):
        assert sorted(crew(add, [(one, 1), (one, 2), (other, 3)])) == [6, 7, 8]
    assert (one.packed, other.packed) == (1, 1)


def test_the_first_done_is_not_held_up_by_the_slow(cluster):
    work = [(1.5, 0), (0.0, 1)]
    with closing(recruit(cluster)(wait, work)) as results:
        assert list(results) == [1, 0]


def test_an_error_in_a_task_is_raised_as_it_is(cluster):
    with pytest.raises(ZeroDivisionError), closing(recruit(cluster)(divide, [(1, 0)])) as results:
        list(results)


def test_in_order_an_error_waits_for_its_turn(cluster):
    futures = [send(cluster, wait, 0.3, 0), send(cluster, divide, 1, 0), send(cluster, wait, 0.0, 2)]
    results = in_order(cluster, futures)
    assert next(results) == 0
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_what_is_not_waited_for_is_cancelled(cluster):
    crew = recruit(cluster)
    with closing(crew(wait, [(0.1, more) for more in range(50)])) as results:
        next(results)
    assert list(crew(add, [(1, 1)])) == [2]  # at once, not after fifty


def test_a_worker_killed_at_work_costs_a_retry(cluster):
    with closing(recruit(cluster)(wait, [(0.05, more) for more in range(30)])) as results:
        found = [next(results)]
        kill_worker(cluster)
        found += results
    assert sorted(found) == list(range(30))


def test_a_task_that_no_worker_survives_is_given_up(cluster, monkeypatch):
    monkeypatch.setattr(cluster.client.cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(ClusterError, match=r"gave up: 1 worker died, .* at the same task, the last at tcp://127"):
        list(recruit(cluster)(die, [(0,)]))


@pytest.fixture
def empty(apart):
    """A scheduler without workers."""
    with clients._start_workers(0) as made, Client(made, set_as_default=False) as client:
        yield Session(client, "The empty cluster")


def test_a_cluster_without_workers_is_not_waited_for_for_ever(empty, monkeypatch):
    monkeypatch.setattr(tasks, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(tasks, "PATIENCE", 3)
    with pytest.raises(ClusterError, match=r"The empty cluster has no workers\. Start some with: dask worker"):
        list(recruit(empty)(add, [(1, 2)]))
    with pytest.raises(ClusterError, match="has no workers"):
        take(empty, send(empty, add, 1, 2))


def test_a_closed_client_is_a_lost_cluster(empty, monkeypatch):
    monkeypatch.setattr(tasks, "LOOK_EVERY", 0.01)
    crew = recruit(empty)
    results = crew(add, [(1, 2)])
    waiting = send(empty, add, 1, 2)
    empty.client.close()
    for work in (lambda: next(results), lambda: take(empty, waiting), lambda: tasks.count_threads(empty)):
        with pytest.raises(ClusterError, match="was lost: its scheduler stopped or cannot be reached any more"):
            work()


@pytest.mark.parametrize("error", [OSError("cannot connect"), CommClosedError("closed")])
def test_a_broken_connection_is_a_lost_cluster(error):
    """Before Dask's client has noticed, or after."""

    class Broken:
        status = "running"

        def nthreads(self) -> None:
            if not isinstance(error, CommClosedError):
                self.status = "connecting"
            raise error

    with pytest.raises(ClusterError, match="It was lost"):
        tasks.count_threads(Session(Broken(), "It"))


def test_an_error_of_a_file_on_a_worker_is_no_lost_cluster(cluster):
    with pytest.raises(FileNotFoundError):
        take(cluster, send(cluster, open, "/nowhere/at/all"))
