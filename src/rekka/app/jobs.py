"""The queue: runs that wait, one worker at a time, and what becomes of a run when its worker ends.

A job's state is written by the server alone; what the worker has to say is in ``progress.json``. A run that is
working or waiting when a server begins was left by one that is gone: it is stopped, and can be resumed.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rekka.app.progress import PROGRESS, now, read_progress
from rekka.app.workspace import RUNS, Job, NotThere, Run, State, Workspace
from rekka.core.errors import WriteError
from rekka.core.folders import last_line
from rekka.core.language import Said, say

LOG = "log.txt"
LOOK_EVERY, RETRY = 0.1, 5.0  # seconds between two looks at a worker, and until a run is begun again
GRACE = 10.0  # seconds that a worker has to end in good order
LOGGER = logging.getLogger("rekka.app")
RESUMABLE = ("cancelled", "stopped", "failed")
WORKER = [sys.executable, "-m", "rekka.app.worker"]


@dataclass
class _Worker:
    """A process at work on a run, and why it was told to end."""

    run: str
    process: subprocess.Popen[bytes]
    ending: State | None = None


class JobQueue:
    """Runs of a workspace, done one after the other by processes of their own."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._changed = threading.Condition()
        self._worker: _Worker | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)

    def start(self) -> None:
        """Stop what an earlier server left, and begin to work."""
        for run in self.workspace.runs():
            if run.state in ("working", "waiting"):
                self._end(run, "stopped", say("app.job.server_gone"))
        self._thread.start()

    def close(self) -> None:
        """Stop the worker, and what waits; all can be resumed."""
        with self._changed:
            self._closing = True
            self._interrupt("stopped")
            self._changed.notify_all()
        self._thread.join()
        for run in self.workspace.runs():
            if run.state == "waiting":
                self._end(run, "stopped", None)

    def add(self, job: Job) -> Run:
        """Queue a job."""
        with self._changed:
            run = self.workspace.new_run(job)
            self._changed.notify_all()
        return run

    def cancel(self, name: str) -> None:
        """Cancel a run that waits or is at work; what is done of it is kept."""
        with self._changed:
            run = self.workspace.run(name)
            if run.state == "waiting":
                self._end(run, "cancelled", None)
            elif self._worker is not None and self._worker.run == name:
                self._interrupt("cancelled")

    def resume(self, name: str) -> None:
        """Queue a run again that ended before it was done."""
        with self._changed:
            run = self.workspace.run(name)
            if run.state in RESUMABLE and run.job.ask is not None:
                (run.folder / PROGRESS).unlink(missing_ok=True)
                run.save(run.job.model_copy(update={"state": "waiting", "queued": now(), "message": None}))
                self._changed.notify_all()

    def delete(self, name: str) -> None:
        """Delete a run; one that is at work is cancelled before."""
        self.cancel(name)
        with self._changed:
            self._changed.wait_for(lambda: self._worker is None or self._worker.run != name)
            self.workspace.remove(RUNS, name)

    def ahead(self, run: Run) -> int:
        """Number of runs that are done before one that waits."""
        return sum(
            one.state == "working" or (one.state == "waiting" and one.job.queued < run.job.queued)
            for one in self.workspace.runs()
        )

    # The thread

    def _serve(self) -> None:
        while True:
            with self._changed:
                run = self._next()
                while run is None and not self._closing:
                    self._changed.wait()
                    run = self._next()
                if self._closing or run is None:
                    return
                try:
                    self._begin(run)
                except WriteError:  # a full disk, perhaps: the run waits until there is room
                    LOGGER.exception("%s cannot be begun", run.job.name)
                    self._changed.wait(RETRY)
            if self._worker is not None:
                self._wait(self._worker)

    def _next(self) -> Run | None:
        waiting = [one for one in self.workspace.runs() if one.state == "waiting"]
        return min(waiting, key=lambda one: one.job.queued, default=None)

    def _begin(self, run: Run) -> None:
        run = run.save(run.job.model_copy(update={"state": "working", "begun": now(), "ended": None}))
        (run.folder / PROGRESS).unlink(missing_ok=True)
        try:
            process = start_worker(run.folder)
        except OSError as error:
            self._end(run, "failed", say("app.job.no_worker", cause=error.strerror or str(error)))
            return
        self._worker = _Worker(run.id, process)

    def _wait(self, worker: _Worker) -> None:
        """Wait for the end of a worker, kill it where it does not end when told to, and keep what became of it."""
        late = 0.0
        while worker.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(LOOK_EVERY)
            late += LOOK_EVERY if worker.ending else 0.0
            if late > GRACE:
                kill(worker.process)
        kill(worker.process)  # processes that a killed worker left behind
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        with self._changed:
            self._worker = None
            try:
                run = self.workspace.run(worker.run)
                self._end(run, *judge_end(run, worker.process.returncode, worker.ending))
            except (NotThere, WriteError):  # somebody took its folder away, or the disk is full
                LOGGER.exception("what became of a run cannot be kept")
            self._changed.notify_all()

    def _interrupt(self, ending: State) -> None:
        """Tell the worker to end in good order."""
        if self._worker is not None:
            self._worker.ending = ending
            interrupt(self._worker.process)

    def _end(self, run: Run, state: State, message: Said | None) -> None:
        run.save(run.job.model_copy(update={"state": state, "message": message, "ended": now()}))


def judge_end(run: Run, code: int, ending: State | None) -> tuple[State, Said | None]:
    """State of a run whose worker ended, and a sentence on it."""
    progress = read_progress(run.folder)
    outcome = "" if progress is None else progress.outcome
    if progress is not None and outcome == "done":
        return "done", say(progress.notes[0]) if progress.notes else None
    if ending is not None:
        return ending, None
    if progress is not None and outcome == "failed":
        return "failed", say("said.plain", text=progress.message)
    if outcome == "stopped":
        return "stopped", None
    log = last_line(run.folder / LOG)
    return "failed", say("app.job.crashed", code=code, log=log) if log else say("app.job.killed", code=code)


def start_worker(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process that does the job of a run; it ends when the pipe to it closes."""
    how: dict[str, Any] = {"start_new_session": True} if os.name == "posix" else {}
    # No module is taken from the folder in which the server was started, whatever lies there.
    environment = os.environ | {"PYTHONSAFEPATH": "1"}
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            [*WORKER, str(folder)], stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, **how
        )


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end in good order."""
    with suppress(OSError):
        process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it started."""
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
