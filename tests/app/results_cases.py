"""A small run as the worker of the page makes it, made once in a test run; and copies of it in workspaces."""

import shutil
from pathlib import Path
from typing import Any

from filelock import FileLock

import rekka
import sharing
from rekka.app.workspace import Run, Workspace
from rekka.report.networks import FOLDER
from rekka.report.report import make_report
from rekka.study.compare import Request, begin_study
from rekka.study.runner import RunOptions
from rekka.workflows.forecast import forecast_own_tables

TABLE = "bridges.csv"
CASES = ("Deck slab", "Pier")
PLAN: dict[str, Any] = {
    "study": {"methods": ("zscore",), "cases": CASES},
    "guard": {"resamples": 2, "ladder": False},
}
OPTIONS = ("--methods", "zscore", "--only", CASES[0], "--only", CASES[1], "--resamples", "2", "--no-ladder")


def write_table(folder: Path) -> Path:
    inventory = rekka.simulate_inventory(60, preset="plain", seed=3)
    folder.mkdir(parents=True, exist_ok=True)
    inventory.inspections.join(inventory.inventory, on="bridge_id").write_csv(folder / TABLE)
    return folder / TABLE


def share_run() -> Path:
    """A folder with the table, and the run folder ``run``: a study, its forecast, the numbers of its report."""
    folder = sharing.FOLDER[-1] / "results-of-a-run"
    with FileLock(f"{folder}.lock"):
        if not (folder / "run" / "report.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            table, run = write_table(folder), folder / "run"
            study = begin_study(Request([table], options=PLAN), run, RunOptions())
            assert forecast_own_tables(study, run) is None
            (run / "report.json").write_text(make_report(study).document.to_json())
    return folder


def put_run(workspace: Workspace, name: str = "bridges") -> Run:
    """The run in a workspace, as a folder that its user put there."""
    shutil.copytree(share_run(), workspace.folder / name)
    return workspace.open_run(f"{name}/run")


def forecast_file(run: Run, name: str) -> Path:
    return run.study / FOLDER / name
