"""Tasks on a cluster: sent once, back as they are done. Rows on its workers: the same fit, bit for bit, whoever dies."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("distributed", reason="Dask is not installed (pip install 'rekka[cluster]')")

from cluster_work import add, die, divide, kill_worker, pids, refuse, sum_block, wait
from distributed import Client
from distributed.comm import CommClosedError

import rekka
from rekka.core.errors import BadValues, UnreadableTable
from rekka.data.categories import fit_coding
from rekka.model.fit import Options
from rekka.streaming.blocks import Reading, ScanSource
from rekka.streaming.cluster import clients
from rekka.streaming.cluster import source as source_module
from rekka.streaming.cluster.clients import ClusterError, Session
from rekka.streaming.cluster.source import (
    MOST_ROWS,
    TablePart,
    choose_size,
    count_rows,
    in_order,
    load_part,
    recruit,
    send,
    spread_rows,
    take,
    work_on,
)
from rekka.streaming.fit import fit_source

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Dask leaves sockets of the dead open

READING = Reading(
    "state_1", "state_2", "interval_years", ("age_at_inspection_1", "bridge_length"), None, "bridge_id"
)
BLOCK = 100


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """2,350 rows in three files, of two cases."""
    folder = tmp_path_factory.mktemp("table")
    rows = rekka.simulate_transitions(2350, n_states=4, seed=5)
    rows = rows.with_columns(case=pl.Series(["Pier", "Pier", "Deck"] * 784)[:2350])
    for number, (first, last) in enumerate([(0, 700), (700, 1500), (1500, 2350)]):
        rows[first:last].write_parquet(folder / f"part-{number}.parquet")
    return folder


@pytest.fixture
def query(table) -> pl.LazyFrame:
    return pl.scan_parquet(sorted(table.glob("*.parquet")))


def fit(source, on_pass=None):
    return fit_source(source, Options(scaling="zscore"), clustered=True, on_pass=on_pass)


def assert_same_bits(ours, theirs) -> None:
    assert ours.certificate == theirs.certificate
    assert ours.outcome.iterations == theirs.outcome.iterations
    assert ours.inference.log_likelihood == theirs.inference.log_likelihood
    assert ours.beta.tobytes() == theirs.beta.tobytes()
    assert np.array_equal(ours.inference.covariance, theirs.inference.covariance)


def test_the_results_of_all_blocks_in_their_order(cluster, query):
    ours, theirs = spread_rows(cluster, query, READING, block_rows=BLOCK), ScanSource(query, READING, 1, BLOCK)
    assert len(ours.parts) == 8
    assert ours.rows == 2350
    for _ in range(2):
        assert list(ours.map(sum_block)) == list(theirs.map(sum_block))


def test_a_fit_has_the_same_bits(cluster, query):
    ours, theirs = spread_rows(cluster, query, READING, block_rows=BLOCK), ScanSource(query, READING, 1, BLOCK)
    assert_same_bits(fit(ours), fit(theirs))


def test_categories_have_the_same_bits(cluster, query):
    kind = pl.when(pl.col("interval_years") > 5.2).then(pl.lit("steel")).otherwise(pl.lit("concrete"))
    named = query.with_columns(kind=kind)
    coding = fit_coding(named, ["kind"], pl.col("state_2") > pl.col("state_1"))
    coded, reading = coding.code(named), replace(READING, covariates=(*READING.covariates, *coding.terms))
    ours, theirs = spread_rows(cluster, coded, reading, block_rows=BLOCK), ScanSource(coded, reading, 1, BLOCK)
    assert coding.terms == ("kind: steel",)
    assert_same_bits(fit(ours), fit(theirs))


def test_rows_of_one_case(cluster, query):
    only = query.filter(pl.col("case") == "Pier")
    ours, theirs = spread_rows(cluster, only, READING, block_rows=BLOCK), ScanSource(only, READING, 1, BLOCK)
    assert 0 < ours.rows < 2350
    assert_same_bits(fit(ours), fit(theirs))


def test_a_worker_killed_in_the_middle_of_a_fit_costs_a_retry(cluster, query):
    source, passes, killed = spread_rows(cluster, query, READING, block_rows=BLOCK), [], []

    def on_pass(what: str) -> None:
        passes.append(what)
        if len(passes) == 9:
            killed.append(kill_worker(cluster))

    assert_same_bits(fit(source, on_pass), fit(ScanSource(query, READING, 1, BLOCK)))
    assert len(killed) == 1
    assert killed[0] not in pids(cluster)


def test_the_first_error_is_that_of_the_first_block(cluster, query):
    source = spread_rows(cluster, query, READING, block_rows=BLOCK)
    with pytest.raises(ValueError, match="refused") as ours:
        list(source.map(refuse))
    with pytest.raises(ValueError, match="refused") as theirs:
        list(ScanSource(query, READING, 1, BLOCK).map(refuse))
    assert str(ours.value) == str(theirs.value)


def test_bad_values_are_named_with_their_rows(cluster, query):
    spoiled = query.with_row_index().with_columns(
        bridge_length=pl.when(pl.col("index") == 1234).then(None).otherwise(pl.col("bridge_length"))
    )
    with pytest.raises(BadValues, match=r"bridge_length .*row 1234") as caught:
        list(spread_rows(cluster, spoiled, READING, block_rows=BLOCK).map(sum_block))
    assert caught.value.rows == [1234]


def test_no_rows(cluster, query):
    source = spread_rows(cluster, query.filter(pl.col("case") == "none"), READING)
    assert (source.rows, list(source.map(sum_block))) == (0, [])


def test_files_that_a_worker_cannot_see(cluster, tmp_path):
    gone = tmp_path / "gone.parquet"
    rekka.simulate_transitions(10, seed=1).write_parquet(gone)
    query = pl.scan_parquet(gone)
    gone.unlink()
    with pytest.raises(UnreadableTable) as caught:
        spread_rows(cluster, query, READING, name="gone.parquet")
    said = str(caught.value)
    assert said.startswith("gone.parquet cannot be read by the worker at tcp://127.0.0.1:")
    assert "Every worker must see the files under the same path" in said


def test_a_damaged_file(cluster, tmp_path):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + b"\0" * 40)
    with pytest.raises(UnreadableTable, match=r"bad.parquet cannot be read to its end"):
        spread_rows(cluster, pl.scan_parquet(tmp_path / "bad.parquet"), READING, name="bad.parquet")


def test_what_a_worker_does(query):
    """The same functions, here."""
    part = load_part(query, READING.columns, 700, 250, "table")
    assert count_rows(query, "table") == 2350
    assert part.frame.columns == READING.columns
    assert part.__sizeof__() >= 250 * 5 * 8
    whole = list(ScanSource(query, READING, 1, BLOCK).map(sum_block))
    found = work_on(part, READING, sum_block, BLOCK)
    assert found[:2] == whole[7:9]
    assert [rows for rows, *_ in found] == [100, 100, 50]
    assert work_on(TablePart(0, part.frame[:0]), READING, sum_block, BLOCK) == []


@pytest.mark.parametrize(
    ("rows", "threads", "blocks"),
    [(0, 2, 1), (1, 2, 1), (800, 2, 1), (801, 2, 2), (1_000, 1, 3), (10**9, 4, MOST_ROWS // BLOCK)],
)
def test_parts_are_whole_blocks_for_all_threads(rows, threads, blocks):
    assert choose_size(rows, threads, BLOCK) == blocks * BLOCK


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
    monkeypatch.setattr(source_module, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(source_module, "PATIENCE", 3)
    with pytest.raises(ClusterError, match=r"The empty cluster has no workers\. Start some with: dask worker"):
        list(recruit(empty)(add, [(1, 2)]))
    with pytest.raises(ClusterError, match="has no workers"):
        take(empty, send(empty, add, 1, 2))


def test_a_closed_client_is_a_lost_cluster(empty, monkeypatch):
    monkeypatch.setattr(source_module, "LOOK_EVERY", 0.01)
    crew = recruit(empty)
    results = crew(add, [(1, 2)])
    waiting = send(empty, add, 1, 2)
    empty.client.close()
    for work in (lambda: next(results), lambda: take(empty, waiting), lambda: source_module.count_threads(empty)):
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
        source_module.count_threads(Session(Broken(), "It"))


def test_an_error_of_a_file_on_a_worker_is_no_lost_cluster(cluster):
    with pytest.raises(FileNotFoundError):
        take(cluster, send(cluster, open, "/nowhere/at/all"))
