"""The queue and its workers: what is done, cancelled, killed, left behind and taken up again."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise

import polars.selectors as cs
import pytest

import rekka

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from rekka.app import jobs
from rekka.app.jobs import JobQueue, start_worker
from rekka.app.progress import PROGRESS, Progress, now, read_progress, write_progress
from rekka.app.workspace import Ask, Job, NotThere, Workspace
from rekka.core.errors import WriteError
from rekka.core.folders import PLAN
from rekka.core.language import load_words

LONG = 300.0  # seconds after which something hangs
posix = pytest.mark.skipif(os.name != "posix", reason="signals and process groups are those of POSIX")
WRITES_DONE = """
import sys
from datetime import datetime
from pathlib import Path
from rekka.app.progress import Progress, now, write_progress
write_progress(Path(sys.argv[1]), Progress(since=now(), at=now(), outcome="done"))
"""
CRASHES = "import sys; sys.stderr.write('a cause <b>\\n'); sys.exit(7)"
WAITS = "import sys; sys.stdin.read()"
IGNORES = (
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small table of inspections."""
    file = tmp_path_factory.mktemp("table") / "inspections.csv"
    rows = rekka.simulate_inventory(50, preset="plain").inspections
    rows.filter(case="Main girder").write_csv(file)
    return file


@pytest.fixture
def queue(workspace, table):
    """A queue at work, whose workspace has the table."""
    (workspace.folder / "inspections.csv").write_bytes(table.read_bytes())
    found = JobQueue(workspace)
    found.start()
    yield found
    found.close()


def stub(monkeypatch, code):
    monkeypatch.setattr(jobs, "WORKER", [sys.executable, "-c", code])


def wait_for(condition):
    """Wait until something is so."""
    end = time.monotonic() + LONG
    while not (found := condition()):
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.02)
    return found


def wait_until(workspace, run, *states):
    return wait_for(lambda: (found := workspace.run(run.id)).state in states and found)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
    return True


def add(queue, **ask):
    return queue.add(Job(name="inspections.csv", ask=Ask(table="inspections.csv", **ask)))


def results(study):
    """Tables of a run without what differs by the clock."""
    found = rekka.load_study(study)
    return found.trials.drop(cs.starts_with("seconds")), found.selection


@pytest.fixture(scope="module")
def undisturbed(table, tmp_path_factory):
    """The same study by the library, in one go."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rekka.evaluation.calibration.TEST_SETS", 99)  # as outside of tests
        rekka.compare(table, out=run)
    return run


# Real workers


def test_a_job_gives_the_same_as_the_library(queue, workspace, undisturbed):
    run = wait_until(workspace, add(queue, lang="ja", years=12, threshold="c"), "done", "failed", "stopped")
    assert run.state == "done", run.job.message
    for ours, theirs in zip(results(run.study), results(undisturbed), strict=True):
        assert ours.equals(theirs)
    assert (run.study / "report.html").read_text().find('lang="ja"') > 0
    forecast = (run.study / "forecast" / "forecast.json").read_text()
    assert '"years": 12' in forecast
    assert '"threshold_label": "c"' in forecast
    progress = read_progress(run.folder)
    assert (progress.outcome, progress.steps) == ("done", ("study", "forecast", "report"))


@posix
def test_a_killed_worker_is_a_message_and_a_run_that_can_be_resumed(queue, workspace, undisturbed):
    run = add(queue)
    wait_for((run.study / PLAN).exists)
    os.killpg(queue._worker.process.pid, signal.SIGKILL)
    killed = wait_until(workspace, run, "failed")
    assert "ended unexpectedly (code -9)" in load_words("en").format(killed.job.message)
    queue.resume(run.id)
    done = wait_until(workspace, run, "done", "failed", "stopped")
    assert done.state == "done", done.job.message
    for ours, theirs in zip(results(run.study), results(undisturbed), strict=True):
        assert ours.equals(theirs)


@posix
def test_a_cancelled_run_ends_in_good_order_and_can_be_resumed(queue, workspace, undisturbed):
    run = add(queue)
    wait_for((run.study / PLAN).exists)
    queue.cancel(run.id)
    cancelled = wait_until(workspace, run, "cancelled", "done")
    assert cancelled.state == "cancelled"
    assert read_progress(run.folder).outcome == "stopped"
    queue.resume(run.id)
    assert wait_until(workspace, run, "done", "failed", "stopped").state == "done"
    assert results(run.study)[0].equals(results(undisturbed)[0])


SERVER = """
import sys, time
from pathlib import Path
from rekka.app.jobs import JobQueue
from rekka.app.workspace import Ask, Job, Workspace
queue = JobQueue(Workspace(Path(sys.argv[1])))
queue.start()
run = queue.add(Job(name="x", ask=Ask(table="inspections.csv")))
while queue._worker is None:
    time.sleep(0.02)
print(run.id, queue._worker.process.pid, flush=True)
time.sleep(600)
"""


@posix
def test_a_worker_ends_when_its_server_is_killed_and_the_next_server_resumes_the_run(tmp_path, table):
    workspace = Workspace(tmp_path / "workspace")
    (workspace.folder / "inspections.csv").write_bytes(table.read_bytes())
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(workspace.folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        name, pid = server.stdout.readline().split()
        run = workspace.run(name)
        wait_for((run.folder / PROGRESS).exists)
        assert is_alive(int(pid))
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    wait_for(lambda: not is_alive(int(pid)))
    assert workspace.run(name).state == "working"  # nobody was there to say otherwise
    queue = JobQueue(workspace)
    queue.start()
    try:
        stopped = workspace.run(name)
        assert stopped.state == "stopped"
        assert "stopped while this was at work" in load_words("en").format(stopped.job.message)
        queue.resume(name)
        assert wait_until(workspace, run, "done", "failed").state == "done"
    finally:
        queue.close()


def test_a_wrong_input_is_the_message_of_the_run(queue, workspace):
    (workspace.folder / "inspections.csv").write_text("bridge_id,case\n1,2\n")
    run = wait_until(workspace, add(queue), "failed", "done")
    assert run.state == "failed"
    assert "inspections.csv" in load_words("en").format(run.job.message)


def test_a_worker_takes_no_module_from_where_it_was_started(workspace, tmp_path, monkeypatch):
    (tmp_path / "polars.py").write_text("raise SystemExit('taken from here')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    run = workspace.new_run(Job(name="x", ask=Ask(table="none.csv")))
    process = start_worker(run.folder)
    process.wait(LONG)
    process.stdin.close()
    assert "taken from here" not in (run.folder / "log.txt").read_text()
    assert "none.csv" in read_progress(run.folder).message


# The queue, with workers that do little


def test_jobs_are_done_one_after_the_other_in_order(queue, workspace, monkeypatch):
    stub(monkeypatch, WRITES_DONE)
    runs = [add(queue) for _ in range(3)]
    ended = [wait_until(workspace, run, "done").job for run in runs]
    assert all(one.ended <= other.begun for one, other in pairwise(ended))


def test_a_crash_is_a_message_with_the_end_of_the_log(queue, workspace, monkeypatch):
    stub(monkeypatch, CRASHES)
    run = wait_until(workspace, add(queue), "failed")
    text = load_words("en").format(run.job.message)
    assert "code 7" in text
    assert "a cause <b>" in text


def test_a_process_that_cannot_be_started_is_a_message(queue, workspace, monkeypatch):
    monkeypatch.setattr(jobs, "WORKER", ["/no/such/program"])
    run = wait_until(workspace, add(queue), "failed")
    assert "No process could be started" in load_words("en").format(run.job.message)


def test_a_run_that_waits_is_cancelled_resumed_and_deleted(queue, workspace, monkeypatch):
    stub(monkeypatch, WAITS)
    first, second = add(queue), add(queue)
    wait_until(workspace, first, "working")
    assert queue.ahead(workspace.run(second.id)) == 1
    queue.cancel(second.id)
    assert workspace.run(second.id).state == "cancelled"
    queue.resume(second.id)
    assert workspace.run(second.id).state == "waiting"
    queue.delete(second.id)
    with pytest.raises(NotThere):
        workspace.run(second.id)
    queue.cancel(first.id)
    assert wait_until(workspace, first, "cancelled")


def test_a_full_disk_leaves_the_run_waiting_until_there_is_room(queue, workspace, monkeypatch, caplog):
    stub(monkeypatch, WRITES_DONE)
    monkeypatch.setattr(jobs, "RETRY", 0.05)
    full = [True, True]
    begin = JobQueue._begin

    def fail(self, run):
        if full:
            full.pop()
            raise WriteError(
                "job.json cannot be written", file="job.json", cause="No space left on device", remedy=""
            )
        begin(self, run)

    monkeypatch.setattr(JobQueue, "_begin", fail)
    run = add(queue)
    wait_until(workspace, run, "done")
    assert "cannot be begun" in caplog.text


@posix
def test_a_worker_that_does_not_listen_is_killed(queue, workspace, monkeypatch):
    stub(monkeypatch, IGNORES)
    monkeypatch.setattr(jobs, "GRACE", 0.3)
    run = add(queue)
    wait_for(lambda: (run.folder / "log.txt").exists() and "deaf" in (run.folder / "log.txt").read_text())
    queue.delete(run.id)
    assert workspace.runs() == []


def test_a_server_that_ends_leaves_runs_that_can_be_resumed(workspace, monkeypatch):
    stub(monkeypatch, WAITS)
    queue = JobQueue(workspace)
    queue.start()
    working, waiting = add(queue), add(queue)
    wait_until(workspace, working, "working")
    queue.close()
    assert {workspace.run(one.id).state for one in (working, waiting)} == {"stopped"}


def test_only_what_ended_early_is_resumed(workspace):
    queue = JobQueue(workspace)
    for state in ("done", "working", "waiting"):
        run = workspace.new_run(Job(name="x", ask=Ask(table="t.csv"), state=state))
        queue.resume(run.id)
        assert workspace.run(run.id).state == state
    opened = workspace.new_run(Job(name="x", state="failed"))
    queue.resume(opened.id)
    assert workspace.run(opened.id).state == "failed"


# Progress


def test_the_time_left_follows_the_rate_so_far():
    def at(seconds, **values):
        return Progress(
            since=start, at=start.__class__.fromtimestamp(start.timestamp() + seconds, start.tzinfo), **values
        )

    start = now()
    assert at(10, done=5, total=10).seconds_left == pytest.approx(10)
    assert at(10, done=15, total=20, base=10).seconds_left == pytest.approx(10)  # ten were kept by an earlier run
    assert at(10, done=0, total=10).seconds_left is None
    assert at(10, done=5, total=None).seconds_left is None
    assert at(10, done=5, total=10).share == 0.5


@pytest.mark.parametrize("text", ["", "{", '{"steps": 3}', "[]"])
def test_progress_that_cannot_be_read_is_none(tmp_path, text):
    assert read_progress(tmp_path) is None
    write_progress(tmp_path, Progress(since=now(), at=now()))
    assert read_progress(tmp_path) is not None
    (tmp_path / PROGRESS).write_text(text)
    assert read_progress(tmp_path) is None
