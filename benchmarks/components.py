"""``rekka check`` and ``rekka fit`` of many components: ``python -m benchmarks.components``.

Each component has 40 simulated transitions of its own. Both commands run in a process of their own, on a table of
1, of 200 and of 2,000 components. What is compared is processor time, threads included: on a shared machine the
wall clock says little. The time of one component is mostly that of starting, and is subtracted for the second
ratio. The aim is that ten times as many components take at most twelve times as long, either way.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

import rekka
from benchmarks import configuration
from benchmarks.problems import SEED

RESULT = Path(__file__).with_name("results") / "components.json"
ROWS = 40  # of a component
FEW, SOME, MANY = 1, 200, 2000
COMMANDS = ("check", "fit")
AIM = 12.0  # times the processor time of a tenth of the components


@dataclass(frozen=True)
class Cost:
    """Processor seconds of one command on a table of so many components."""

    command: str
    components: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class Growth:
    """Times the processor time from ``SOME`` to ``MANY`` components: as it is, and without that of starting."""

    command: str
    whole: float
    without_start: float

    @property
    def met(self) -> bool:
        """Whether both are within the aim."""
        return max(self.whole, self.without_start) <= AIM


def measure(sizes: Sequence[int] = (FEW, SOME, MANY)) -> list[Cost]:
    """Each command on each table, after a run that compiles what has to be compiled."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {size: write_table(Path(folder) / f"{size}.csv", size) for size in sizes}
        for command in COMMANDS:
            _run(command, tables[sizes[0]], Path(folder))
        return [
            Cost(command, size, ROWS * size, _run(command, table, Path(folder)))
            for command in COMMANDS
            for size, table in tables.items()
        ]


def write_table(path: Path, components: int) -> Path:
    """Transitions of so many components, as CSV."""
    names = [f"component {number:05d}" for number in range(components) for _ in range(ROWS)]
    drawn = rekka.simulate_transitions(ROWS * components, seed=SEED)
    drawn.with_columns(case=pl.Series(names)).write_csv(path)
    return path


def _run(command: str, table: Path, folder: Path) -> float:
    """Processor seconds of a command in a process of its own; findings that stop the work are no failure here."""
    out = ["--out", str(folder / f"models-{table.stem}")] if command == "fit" else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = [sys.executable, "-c", "from rekka.cli import main; main()", command, str(table), *out]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(found: Sequence[Cost]) -> list[Growth]:
    """How the time of each command grows from the middle table to the largest."""
    growths = []
    for command in COMMANDS:
        few, some, many = (cost.seconds for cost in found if cost.command == command)
        growths.append(Growth(command, many / some, (many - few) / (some - few)))
    return growths


def print_table(found: Sequence[Cost], console: Console) -> None:
    """Seconds and growth."""
    table = Table("command", title=f"Processor time of components of {ROWS} rows each")
    for column in ("components", "rows", "seconds", "ms a component"):
        table.add_column(column, justify="right")
    for cost in found:
        each = f"{1000 * cost.seconds / cost.components:,.1f}"
        table.add_row(cost.command, f"{cost.components:,}", f"{cost.rows:,}", f"{cost.seconds:.1f}", each)
    console.print(table)
    for growth in compare(found):
        console.print(
            f"{growth.command}: ten times the components take {growth.whole:.1f} times as long, without starting "
            f"{growth.without_start:.1f} times (aim {AIM:g}: {'met' if growth.met else 'NOT MET'})",
            highlight=False,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, store; exit with 1 if an aim is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.components", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the components; nothing is stored")
    options = parser.parse_args(arguments)
    setting = configuration.describe(with_msm=False)
    found = measure((FEW, SOME // 10, MANY // 10) if options.quick else (FEW, SOME, MANY))
    print_table(found, Console())
    growths = compare(found)
    if not options.quick:
        stored = [asdict(growth) | {"aim": AIM, "met": growth.met} for growth in growths]
        result = {"configuration": setting, "costs": [asdict(cost) for cost in found], "growth": stored}
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    if not all(growth.met for growth in growths):
        sys.exit(1)


if __name__ == "__main__":
    main()
