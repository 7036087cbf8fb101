"""Studies and draws on a cluster: the same as without, whatever dies meanwhile."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl
import pytest

pytest.importorskip("distributed", reason="Dask is not installed (pip install 'rekka[cluster]')")

from cluster_work import kill_worker, pids
from study_cases import draw_rows, file_names, log_of, model_texts, untimed, write_rows
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.core.errors import BadOption
from rekka.streaming import blocks
from rekka.streaming.cluster.source import recruit
from rekka.study import run_folder as records
from rekka.study import runner
from rekka.study.stability import load_stability

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # Dask leaves sockets of the dead open

CASES = ("Pier", "Deck slab")
# few resamples and no folds: what is tested is the way there and back, not the choice
OPTIONS: dict[str, Any] = {
    "methods": ["zscore", "boxcox"],
    "cost": "evaluations",
    "select_on": "validation",
    "guard": {"resamples": 2},
}
WORDS = ("--methods", "zscore,boxcox", "--cost", "evaluations", "--select-on", "validation", "--resamples", 2)
DRAWS: dict[str, Any] = {"resamples": 5, "kinds": ["bootstrap"]}  # two units of each case


@pytest.fixture(scope="module", autouse=True)
def _small_units() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rekka.study.stability.BLOCK", 4)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_rows(tmp_path_factory.mktemp("data"), draw_rows(CASES, n=100))


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory) -> Path:
    """A run without a cluster, with some draws."""
    run = tmp_path_factory.mktemp("alone") / "run"
    rekka.compare(data, out=run, **OPTIONS)
    rekka.stability(run, workers=1, **DRAWS)
    return run


def call(*words: Any) -> Any:
    return CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(word) for word in words])


def assert_same(run: Path, alone: Path) -> None:
    """The same files, trials, models, choices and confirmation; seconds aside."""
    ours, theirs = rekka.load_study(run), rekka.load_study(alone)
    assert untimed(ours).equals(untimed(theirs))
    assert model_texts(run) == model_texts(alone)
    assert ours.choices == theirs.choices
    moment = ("made", "model_sha256")  # a model's file has its seconds
    assert ours.confirmation.drop(moment).equals(theirs.confirmation.drop(moment))
    assert all(trial.timed for trial in ours.results)
    kept = [name for name in file_names(alone) if not name.startswith("stability")]
    assert [name for name in file_names(run) if not name.startswith("stability")] == kept
    for name in ("selection.csv", "cases.csv", "baselines.csv", "verdicts.csv"):
        assert (run / name).read_bytes() == (alone / name).read_bytes(), name


def test_a_study_and_its_draws_are_the_same(cluster, data, alone, tmp_path, monkeypatch):
    run, sent, told = tmp_path / "run", [], []
    read = runner.time_trial
    monkeypatch.setattr(runner, "time_trial", lambda rows, key, *more: sent.append(key) or read(rows, key, *more))
    rekka.compare(
        data, out=run, cluster=cluster.client, on_trial=lambda trial, *counts: told.append(counts), **OPTIONS
    )
    assert_same(run, alone)
    assert len(sent) == 4  # every trial was timed here, afterwards
    assert told == [(done, 4) for done in range(1, 5)]
    ours = rekka.stability(run, cluster=cluster.client, **DRAWS)
    assert ours.refits.equals(load_stability(alone).refits)
    in_memory = rekka.stability(rekka.load_study(run), cluster=cluster.client, kinds=["seeds"], resamples=2)
    assert in_memory.refits.equals(rekka.stability(alone, workers=1, kinds=["seeds"], resamples=2).refits)


def test_rows_are_sent_once_a_case(cluster, data, monkeypatch):
    packed = []
    pack = runner.CaseRows.__reduce_ex__
    monkeypatch.setattr(
        runner.CaseRows, "__reduce_ex__", lambda rows, how: packed.append(rows.name) or pack(rows, how)
    )
    rekka.compare(data, cluster=cluster.client, **OPTIONS)  # 4 trials, 2 choices
    assert sorted(packed) == sorted(CASES)


def test_a_worker_killed_in_the_middle_costs_a_retry(cluster, data, alone, tmp_path, monkeypatch):
    killed: list[int] = []
    keep = records.Files.add_trial

    def keep_and_kill(files: Any, fitted: Any) -> None:
        keep(files, fitted)
        if not killed:
            killed.append(kill_worker(cluster))

    monkeypatch.setattr(records.Files, "add_trial", keep_and_kill)
    rekka.compare(data, out=tmp_path / "run", cluster=cluster.client, **OPTIONS)
    assert_same(tmp_path / "run", alone)
    assert killed[0] not in pids(cluster)


def test_cases_that_are_gone_through_block_by_block_stay_here(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "WHOLE", 150)
    few, many = draw_rows(("Few",), n=100), draw_rows(("Many",), n=400)
    pl.concat([few, many]).write_parquet(tmp_path / "rows.parquet")
    here = rekka.compare(tmp_path / "rows.parquet", **OPTIONS)
    sent: list[str] = []

    def recruit_and_note(session: Any) -> Any:
        carry_out = recruit(session)

        def note(function: Any, tasks: Any) -> Any:
            sent.extend(rows.name for rows, *_ in tasks)
            return carry_out(function, tasks)

        return note

    monkeypatch.setattr(runner, "recruit", recruit_and_note)
    there = rekka.compare(tmp_path / "rows.parquet", cluster=cluster.client, **OPTIONS)
    assert untimed(there).equals(untimed(here))
    assert sent == ["Few"] * 3  # two trials and a choice


def test_a_full_disk_leaves_the_cluster_to_others(cluster, data, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records.Files, "add_trial", full)
    with pytest.raises(OSError, match="No space left"):
        rekka.compare(data, out=tmp_path / "run", cluster=cluster.client, **OPTIONS)
    assert cluster.client.submit(sum, [1, 2]).result() == 3


def test_processes_or_a_cluster(data, alone):
    for act in (lambda **more: rekka.compare(data, **more), lambda **more: rekka.stability(alone, **more)):
        with pytest.raises(BadOption, match="workers is 2 and cluster is 'local'; give one of them"):
            act(workers=2, cluster="local")


def test_the_wrong_address_leaves_nothing_behind(data, alone, tmp_path):
    said = call("compare", data, "--out", tmp_path / "run", "--cluster", "tcp://127.0.0.1:1")
    assert said.exit_code == 1
    assert "ClusterError: There is no Dask scheduler at tcp://127.0.0.1:1: connection refused." in said.stderr
    assert not (tmp_path / "run").exists()
    said = call("compare", data, "--out", tmp_path / "run", "--cluster", "nonsense")
    assert said.exit_code == 2
    said = call("stability", alone, "--cluster", "tcp://127.0.0.1:1")
    assert said.exit_code == 1
    assert "ClusterError: There is no Dask scheduler" in said.stderr


class Started:
    """A scheduler and a worker as a person starts them, in two processes."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.log = (folder / "dask.log").open("w")
        quiet = ("--scheduler-file", self.file, "--no-dashboard")
        self.scheduler = self.start("scheduler", *quiet, "--host", "127.0.0.1", "--port", 0)
        until = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < until:
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]
        self.worker = self.start("worker", *quiet, "--nthreads", 1, "--no-nanny", "--death-timeout", 60)

    def start(self, *words: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *map(str, words)]
        options = {"cwd": self.file.parent, "stdout": self.log, "stderr": self.log}
        return subprocess.Popen(command, **options)

    def end(self) -> None:
        for process in (self.worker, self.scheduler):
            process.kill()
            process.wait()
        self.log.close()


@pytest.fixture
def started(apart, tmp_path) -> Iterator[Started]:
    made = Started(tmp_path)
    yield made
    made.end()


def end_when_there(end: Callable[[], None], folder: Path) -> Thread:
    """End something as soon as a folder has a file."""

    def watch() -> None:
        until = time.monotonic() + 120
        while not any(file.suffix == ".json" for file in folder.glob("*")) and time.monotonic() < until:
            time.sleep(0.01)
        end()

    watching = Thread(target=watch)
    watching.start()
    return watching


@pytest.mark.slow
def test_a_lost_scheduler_leaves_a_run_that_goes_on(started, data, alone, tmp_path):
    run = tmp_path / "run"
    watching = end_when_there(started.scheduler.kill, run / "trials")
    said = call("compare", data, "--out", run, "--cluster", started.address, *WORDS, "--no-report")
    watching.join()
    assert said.exit_code == 1, said.stderr
    assert (
        f"ClusterError: The cluster at {started.address} was lost: its scheduler stopped or cannot" in said.stderr
    )
    assert f"What is done is kept. Continue with: rekka compare --resume {run}" in said.stderr
    assert "Traceback" not in said.stderr
    assert "stopped: ClusterError" in log_of(run)
    assert 1 <= len(list((run / "trials").glob("*.json"))) <= 4
    assert call("compare", "--resume", run, "--no-report").exit_code == 0
    assert_same(run, alone)


def test_draws_go_on_after_a_lost_scheduler(threads, alone, tmp_path):
    run = Path(shutil.copytree(alone, tmp_path / "run"))
    shutil.rmtree(run / "stability")
    watching = end_when_there(threads.close, run / "stability" / "draws-20260924")
    said = call("stability", run, "--kinds", "bootstrap,seeds", "--cluster", threads.scheduler_address)
    watching.join()
    assert said.exit_code == 1, said.stderr
    assert "was lost: its scheduler stopped or cannot be reached any more" in said.stderr
    assert f"What is done is kept. Continue with: rekka stability {run} --kinds bootstrap,seeds" in said.stderr
    found = rekka.stability(run, workers=1, **DRAWS)
    assert found.refits.equals(rekka.stability(alone, workers=1, **DRAWS).refits)
