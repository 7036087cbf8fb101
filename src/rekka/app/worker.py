"""The process that does a job: ``python -m rekka.app.worker FOLDER``, with the folder of a run of the workspace.

    job.json -> study, stability, forecast, report -> progress.json, study/

It calls the functions of the commands and speaks to the server through files alone. What is done is kept in the
run folder ``study/``, and the next worker goes on from there, however this one ended. It ends by itself when its
standard input closes, as it does when the server is gone, however that ended.
"""

from __future__ import annotations

import _thread
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rekka.app.progress import EVERY, Outcome, Progress, Step, now, write_progress
from rekka.app.workspace import RUNS, Ask, Run, Workspace
from rekka.core.compiling import COMPILING
from rekka.core.errors import RekkaError
from rekka.core.folders import PLAN
from rekka.simulation.inventory import TRUTH, write_inventory
from rekka.study.choice import Choice
from rekka.study.compare import Request, begin_study, continue_study
from rekka.study.rows import StudyRows
from rekka.study.runner import RunOptions
from rekka.study.stability import stability
from rekka.study.study import Study
from rekka.study.trial import Trial
from rekka.workflows.reports import begin_demo, report_paper, report_study

GRACE = 10.0  # seconds to end in good order
NICE = 5  # by how much this process comes after others
DEMO_TABLES = "demo"  # folder of a run
FORECAST_STAGES = ("Reading", "Fitting", "Earlier forecasts", "Members", "Writing")


class Reporter:
    """Keeper of the progress of a run."""

    def __init__(self, folder: Path, steps: tuple[Step, ...]) -> None:
        self.folder, self._written, self._lock = folder, 0.0, threading.RLock()
        self.progress = Progress(steps=steps, step=steps[0], since=now(), at=now())
        write_progress(folder, self.progress)

    def begin(self, step: Step) -> None:
        """Begin a step."""
        self._set(step=step, stage="", item=(), done=0.0, total=None, base=0.0, since=now())

    def show(self, stage: str, item: Sequence[str], done: float, total: float | None) -> None:
        """Report a stage, what is at hand, how much is done, and of how much."""
        with self._lock:  # members are counted in several threads
            if stage != self.progress.stage:
                self._set(stage=stage, item=tuple(item), done=done, total=total, base=done, since=now())
            elif time.monotonic() - self._written > EVERY:
                self._set(item=tuple(item), done=done, total=total)

    def tell(self, key: str) -> None:
        """Show a sentence, by its key, in the place of the item at hand."""
        self._set(item=(key,))

    def note(self, key: str) -> None:
        """Keep the key of a sentence for the end."""
        self._set(notes=(*self.progress.notes, key))

    def end(self, outcome: Outcome, message: str = "") -> None:
        """Say how the worker ended."""
        self._set(outcome=outcome, message=message)

    def _set(self, **values: object) -> None:
        with self._lock:
            self.progress = self.progress.model_copy(update={"at": now(), **values})
            write_progress(self.folder, self.progress)
            self._written = time.monotonic()


def list_steps(ask: Ask) -> tuple[Step, ...]:
    """Steps of a job, in order."""
    before: tuple[Step, ...] = ("draw",) if ask.table is None else ()
    between: tuple[Step, ...] = ("stability",) if ask.stability else ()
    return (*before, "study", *between, "forecast", "report")


def do_job(workspace: Workspace, run: Run, reporter: Reporter) -> None:
    """Do what a job asks for, or what is missing of it."""
    ask = run.job.ask
    assert ask is not None  # runs that were opened have no worker
    large: list[str] = []  # cases that are gone through block by block
    how = _watch(reporter, large)
    tables = run.folder / DEMO_TABLES
    if ask.table is None and not (tables / TRUTH).exists():
        reporter.begin("draw")
        write_inventory(tables, force=True, on_progress=lambda n, all_: reporter.show("Bridges", (), n, all_))
    reporter.begin("study")
    study = _study(workspace, run, ask, tables, how)
    if ask.stability:
        reporter.begin("stability")
        stability(run.study, on_unit=lambda unit, n, all_: reporter.show("Draws", (unit.case, unit.kind), n, all_))
    if large:  # as the command does: a report would read all rows again
        reporter.note("app.job.large")
        return
    reporter.begin("forecast")

    def on_progress(stage: str, name: str, done: float, total: float | None) -> None:
        if reporter.progress.step == "forecast" and stage not in FORECAST_STAGES:
            reporter.begin("report")
        reporter.show(stage, (name,) if total and name else (), done, total)

    _, document = report_study(
        study,
        run.study,
        lang=ask.lang,
        title=None if ask.table is None else run.job.name,  # that of the demo is known
        years=ask.years,
        threshold=ask.threshold,
        on_progress=on_progress,
    )
    if ask.table is None:
        report_paper(document, run.study, ask.lang)


def _study(workspace: Workspace, run: Run, ask: Ask, tables: Path, how: RunOptions) -> Study:
    """Begin the study of a job, or go on with it."""
    if (run.study / PLAN).exists():
        return continue_study(Request(), run.study, how)
    if ask.table is None:
        return begin_demo(tables, run.study, how)
    options = {"study": {"models": ask.models}} if ask.models else {}
    table = workspace.source(workspace.folder / ask.table)
    return begin_study(Request([table], ask.reading, options), run.study, how)


def _watch(reporter: Reporter, large: list[str]) -> RunOptions:
    """Options of a study that report its progress."""

    def on_trial(trial: Trial, done: int, planned: int) -> None:
        reporter.show("Trials", (trial.key.case, trial.key.method), done, planned)
        if done == planned:  # the first choice may take as long as all trials
            reporter.show("Choices", (), 0, None)

    def on_choice(choice: Choice, done: int, planned: int) -> None:
        reporter.show("Choices", (choice.case,), done, planned)

    def on_model(what: str, done: int, total: int) -> None:
        reporter.show("Models", (what.rpartition(": ")[0],), done, total or None)  # of the component

    def on_rows(rows: StudyRows) -> None:
        large.extend(rows.large)

    return RunOptions(on_trial=on_trial, on_choice=on_choice, on_rows=on_rows, on_model=on_model)


def end_with(server: Callable[[], object]) -> None:
    """End this process when ``server`` returns: in good order if that works soon, else at once.

    The run folder bears both.
    """

    def wait() -> None:
        server()
        _thread.interrupt_main()
        time.sleep(GRACE)
        end_all()

    threading.Thread(target=wait, daemon=True).start()


def end_all() -> None:
    """End this process and those that it started, at once."""
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _read_to_end() -> None:
    """Wait until standard input closes; past its buffer, which cannot be read when the interpreter ends."""
    while os.read(sys.stdin.fileno(), 4096):
        pass


class _Teller(logging.Handler):
    """Handler that shows, in the place of the item at hand, that kernels are compiled, which takes a while."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(logging.INFO)
        self.reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        """Show the sentence."""
        if record.getMessage() == COMPILING:
            self.reporter.tell("app.progress.compiling")


def main(folder: Path) -> int:
    """Do the job of a run; the exit code is 0 if its progress says how it ended."""
    workspace = Workspace(folder.parent.parent)
    assert folder.parent.name == RUNS
    end_with(_read_to_end)
    if hasattr(os, "nice"):
        os.nice(NICE)  # so that the page answers meanwhile
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = workspace.run(folder.name)
    assert run.job.ask is not None
    reporter = Reporter(run.folder, list_steps(run.job.ask))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("rekka").addHandler(_Teller(reporter))
    try:
        do_job(workspace, run, reporter)
    except KeyboardInterrupt:
        reporter.end("stopped")
    except (RekkaError, OSError) as error:
        logging.getLogger("rekka").exception("failed")
        reporter.end("failed", str(error))
    else:
        reporter.end("done")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
