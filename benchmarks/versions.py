"""Time this version beside an earlier one in one run: ``python -m benchmarks.versions REV``.

Three tasks, on the same files for both versions, through public names alone:

- fit: 32,902 transitions, K = 7, four covariates, from a dataframe to a certified maximum with standard errors;
- study: ``rekka.compare`` on the tables of the built-in inventory, ten components by four methods, run folder
  written;
- streamed: twenty million transitions, K = 5, from Parquet files within 1 GB (``--rows`` takes fewer or more).

Each measurement is a process of its own, with the source of one of the two versions first on its path. It does the
task once on few rows before the clock starts, so that nothing is compiled on it. The versions take turns, and who
comes first changes from turn to turn, so that both meet the same load. The figure is this version's time over the
other's, turn by turn, and the median of these; processor time counts, because other work on the machine disturbs
it least. Beside it stands how far the log-likelihoods of the two are apart.

A run is stored in ``results/versions.json``; ``--quick`` exercises all of it on few rows and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

import rekka
from benchmarks import configuration
from benchmarks.drawn_rows import write_transitions
from benchmarks.house import check_out
from benchmarks.problems import SEED
from benchmarks.version_tasks import FIT, FIT_STATES, STREAMED, STREAMED_STATES, STUDY, TASKS, Measured

ROOT = Path(__file__).resolve().parents[1]
RESULT = Path(__file__).with_name("results") / "versions.json"
BEFORE, AFTER = "before", "after"
WARM_ROWS = 300_000  # more than are fitted in one piece, so that the same code is loaded
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """How much is measured: rows, bridges of the inventory (None: the built-in one), turns, calls within one."""

    fit_rows: int = 32_902
    bridges: int | None = None
    rows: int = 20_000_000
    warm_rows: int = WARM_ROWS
    turns: int = 5
    calls: Mapping[str, int] | None = None

    def calls_of(self, task: str) -> int:
        """Calls of a task in one process, whose median is taken."""
        return (self.calls or {FIT: 20, STUDY: 1, STREAMED: 1})[task]


QUICK = Sizes(2_000, 60, 5_000, 1_000, turns=1, calls={FIT: 1, STUDY: 1, STREAMED: 1})


@dataclass(frozen=True)
class Turn:
    """Both versions, one right after the other."""

    before: Measured
    after: Measured

    @property
    def ratio(self) -> float:
        """Processor time of this version over that of the other."""
        return self.after.processor_seconds / self.before.processor_seconds

    @property
    def wall_ratio(self) -> float:
        """The same of the clock on the wall."""
        return self.after.seconds / self.before.seconds

    @property
    def difference(self) -> float:
        """Difference of the log-likelihoods, relative."""
        return abs(self.after.log_likelihood / self.before.log_likelihood - 1.0)


def draw_tables(folder: Path, sizes: Sizes) -> None:
    """Write the tables of all tasks, and few rows of each for warming up."""
    rekka.simulate_transitions(sizes.fit_rows, n_states=FIT_STATES, seed=SEED).write_parquet(
        folder / "fit.parquet"
    )
    preset = "paper" if sizes.bridges is None else "plain"
    rekka.write_inventory(folder / "inventory", sizes.bridges, preset=preset, seed=SEED)
    for name, rows in ((STREAMED, sizes.rows), ("warm", sizes.warm_rows)):
        (folder / name).mkdir()
        write_transitions(folder / name, rows, n_states=STREAMED_STATES, seed=SEED, threads=os.cpu_count() or 1)


def call(source: Path, task: str, folder: Path, calls: int) -> Measured:
    """Measure in a process of its own that imports rekka from ``source``."""
    command = [sys.executable, "-m", "benchmarks.version_tasks", task, str(folder), str(calls)]
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{task} ended with {done.returncode}:\n{done.stderr}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def take_turns(sources: Mapping[str, Path], folder: Path, sizes: Sizes, tell: Tell) -> dict[str, list[Turn]]:
    """Measure both versions in every task, in turns."""
    found: dict[str, list[Turn]] = {task: [] for task in TASKS}
    for task in TASKS:
        for number in range(sizes.turns):
            tell(f"{task}, turn {number + 1} of {sizes.turns} ...")
            order = (BEFORE, AFTER) if number % 2 == 0 else (AFTER, BEFORE)
            both = {name: call(sources[name], task, folder, sizes.calls_of(task)) for name in order}
            found[task].append(Turn(**both))
    return found


def summarize(turns: Sequence[Turn]) -> dict[str, Any]:
    """Medians of one task, and every turn."""
    ratios = [turn.ratio for turn in turns]
    return {
        "ratio": median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "wall_ratio": median(turn.wall_ratio for turn in turns),
        BEFORE: median(turn.before.processor_seconds for turn in turns),
        AFTER: median(turn.after.processor_seconds for turn in turns),
        "largest_difference": max(turn.difference for turn in turns),
        "turns": [asdict(turn) for turn in turns],
    }


def print_tasks(tasks: Mapping[str, Mapping[str, Any]], revision: str, console: Console) -> None:
    """The ratios of each task."""
    table = Table("task", title=f"Processor seconds of a call; ratio: this version over {revision}")
    for column in ("before", "after", "ratio", "least to most", "ratio by the wall", "log L apart, relative"):
        table.add_column(column, justify="right")
    for task, found in tasks.items():
        table.add_row(
            task,
            *(f"{found[name]:.3f}" for name in (BEFORE, AFTER, "ratio")),
            f"{found['least']:.3f} to {found['most']:.3f}",
            f"{found['wall_ratio']:.3f}",
            f"{found['largest_difference']:.1e}",
        )
    console.print(table)


def run(revision: str, sizes: Sizes, tell: Tell) -> dict[str, Any]:
    """Check the revision out, draw the tables, measure."""
    with tempfile.TemporaryDirectory() as name, check_out(revision) as tree:
        tell("drawing the tables ...")
        draw_tables(Path(name), sizes)
        sources = {BEFORE: tree / "src", AFTER: ROOT / "src"}
        found = take_turns(sources, Path(name), sizes, tell)
    return {task: summarize(turns) for task, turns in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision", metavar="REV", help="the version to compare with, as git names it")
    parser.add_argument("--rows", type=int, default=Sizes.rows, help="rows that are streamed")
    parser.add_argument("--turns", type=int, default=Sizes.turns, help="measurements of each version in each task")
    parser.add_argument("--quick", action="store_true", help="few rows, one turn, nothing stored")
    options = parser.parse_args(arguments)
    if min(options.rows, options.turns) < 1:
        parser.error("at least one row and one turn are needed")
    console = Console(width=max(120, Console().width), highlight=False)
    sizes = QUICK if options.quick else Sizes(rows=options.rows, turns=options.turns)
    setting = configuration.describe(with_msm=False) | {"load": os.getloadavg()[0]}
    setting |= {"before": options.revision, "sizes": asdict(sizes), "repeats": sizes.turns}
    tasks = run(options.revision, sizes, console.print)
    print_tasks(tasks, options.revision, console)
    unchanged = configuration.source_digest() == setting["source"]
    if not unchanged:
        console.print("The source was edited during this run: its figures belong to no one version. Run it again.")
    if not options.quick:
        result = {"configuration": setting | {"source_unchanged": unchanged}, "tasks": tasks}
        RESULT.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        console.print(f"Stored in benchmarks/results/{RESULT.name}.")


if __name__ == "__main__":
    main()
