"""Count the house: ``python -m benchmarks.house [REV]`` prints the size and shape of the package as Markdown.

The working tree is counted, and beside it the revision REV where one is given (by ``git archive`` into a temporary
folder). Nothing is stored.

- Lines are those of the ``.py`` files under ``src/rekka``, with blank ones and comments; a module is such a file.
- An import cycle is a strongly connected component of two or more packages. A node is a package directly under
  ``rekka``, or a module there that is in no package; an edge is any import statement between two of them, also one
  inside a function or for types only. ``import rekka`` alone makes no edge: it loads nothing until a name is used.
- A function's length is that of its definition from ``def`` to its last line, docstring included. Methods and
  nested functions are functions.
- Changes of module: ``rekka compare --only Pier`` on the built-in inventory, report included, is called twice in
  one process, and the second call is traced (``sys.setprofile``), so that neither imports nor compilation count. A
  call of a Python function of rekka by a function of another of its modules is a change of module; frames of other
  packages between the two are passed over. Counted are the modules entered, the distinct pairs of a calling and a
  called module, and all such calls.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMAND = ("compare", "--only", "Pier", "--out")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *DEFINITIONS)


@dataclass(frozen=True)
class Crossings:
    """Changes of module in one traced command: modules entered, pairs of modules, calls."""

    modules: int
    pairs: int
    calls: int


@dataclass(frozen=True)
class House:
    """The counts of one tree."""

    lines: int
    modules: tuple[int, ...]  # lines of each
    functions: tuple[int, ...]  # lines of each
    docstring_lines: int
    cycles: tuple[tuple[str, ...], ...]
    nodes: int
    command_lines: int
    test_lines: int
    crossings: Crossings | None


def count(tree: Path, *, trace: bool = True) -> House:
    """Count one tree: a checkout with src/rekka and tests."""
    source = tree / "src" / "rekka"
    texts = read_texts(source)
    parsed = {name: ast.parse(text) for name, text in texts.items()}
    imports = list_imports(parsed)
    return House(
        lines=sum(map(count_lines, texts.values())),
        modules=tuple(map(count_lines, texts.values())),
        functions=tuple(length for module in parsed.values() for length in measure_functions(module)),
        docstring_lines=sum(count_docstrings(module) for module in parsed.values()),
        cycles=find_cycles(imports),
        nodes=len(imports),
        command_lines=sum(count_lines(text) for name, text in texts.items() if name.startswith("commands/")),
        test_lines=sum(map(count_lines, read_texts(tree / "tests").values())),
        crossings=call_trace(tree) if trace else None,
    )


def read_texts(folder: Path) -> dict[str, str]:
    """The Python files below a folder, by their path in it."""
    files = sorted(folder.rglob("*.py"))
    return {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}


def count_lines(text: str) -> int:
    """Lines of a file, as ``wc -l`` counts them."""
    return text.count("\n")


def measure_functions(module: ast.Module) -> Iterator[int]:
    """Lines of each function of a module."""
    for node in ast.walk(module):
        if isinstance(node, DEFINITIONS):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def count_docstrings(module: ast.Module) -> int:
    """Lines that docstrings of a module, its classes and its functions take."""
    found = 0
    for node in ast.walk(module):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            found += (text.end_lineno or text.lineno) - text.lineno + 1
    return found


def list_imports(parsed: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Packages and single modules of rekka, each with those that it imports from."""
    nodes = {name.split("/")[0].removesuffix(".py") for name in parsed} - {"__init__"}
    found: dict[str, set[str]] = {node: set() for node in nodes}
    for name, module in parsed.items():
        node = name.split("/")[0].removesuffix(".py")
        if node in found:
            found[node] |= {target for target in _list_targets(module) if target in nodes} - {node}
    return found


def _list_targets(module: ast.Module) -> Iterator[str]:
    """First names after ``rekka.`` of what a module imports."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "rekka":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rekka."):
            yield (node.module or "").split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("rekka."))


def find_cycles(imports: Mapping[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    """The strongly connected components of two or more, the largest first."""
    reached = {node: _reach(node, imports) for node in imports}
    together = {
        tuple(sorted(other for other in reached[node] if node in reached[other]))
        for node in imports
        if node in reached[node]
    }
    return tuple(sorted(together, key=lambda names: (-len(names), names)))


def _reach(node: str, imports: Mapping[str, set[str]]) -> set[str]:
    """What a node imports, directly or through others; itself only by way of a cycle."""
    found: set[str] = set()
    ahead = list(imports[node])
    while ahead:
        other = ahead.pop()
        if other not in found:
            found.add(other)
            ahead += imports[other]
    return found


class Tracer:
    """Counts the calls between modules of rekka while it is set as the profiler."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.calls: dict[tuple[str, str], int] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call of a function of rekka from another module of rekka."""
        if event != "call" or not _is_own(frame):
            return
        self.modules.add(frame.f_globals["__name__"])
        caller = frame.f_back
        while caller is not None and not _is_own(caller):
            caller = caller.f_back
        if caller is not None and caller.f_globals is not frame.f_globals:
            key = caller.f_globals["__name__"], frame.f_globals["__name__"]
            self.calls[key] = self.calls.get(key, 0) + 1

    def sum_up(self) -> Crossings:
        """The counts so far."""
        return Crossings(len(self.modules), len(self.calls), sum(self.calls.values()))


def _is_own(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    return isinstance(name, str) and name.startswith("rekka.") and frame.f_code.co_name != "<module>"


def trace_command(folder: Path) -> Crossings:
    """Call the command twice in this process and trace the second call."""
    main_of_rekka = import_module("rekka.cli").main
    run_command(main_of_rekka, folder / "first")
    tracer = Tracer()
    sys.setprofile(tracer)
    try:
        run_command(main_of_rekka, folder / "second")
    finally:
        sys.setprofile(None)
    return tracer.sum_up()


def run_command(call: Callable[[], None], folder: Path) -> None:
    """Call ``rekka compare`` as its script does, and print nothing."""
    sys.argv = ["rekka", *COMMAND, str(folder)]
    try:
        with redirect_stdout(io.StringIO()):
            call()
    except SystemExit as ended:
        if ended.code:
            raise


def call_trace(tree: Path) -> Crossings:
    """Trace the command of a tree's source in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.house", "--trace-into", folder]
        path = {"PYTHONPATH": str(tree / "src")}
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | path, capture_output=True, text=True, check=False
        )
    if done.returncode:
        sys.exit(f"The command could not be traced:\n{done.stderr}")
    return Crossings(**json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def check_out(revision: str) -> Iterator[Path]:
    """The files of a revision in a temporary folder."""
    done = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"There is no revision {revision}: {done.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def quantile(values: Iterable[int], share: float) -> int:
    """The value below or at which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def describe(house: House) -> dict[str, str]:
    """Each count as a row of the table."""
    modules, functions, inside = house.modules, house.functions, sum(map(len, house.cycles))
    crossings = house.crossings
    rows = {
        "lines of Python in the package": f"{house.lines:,}",
        "modules": f"{len(modules)}",
        "lines of a module: median / 90 % / longest": _spread(modules),
        "packages and single modules": f"{house.nodes}",
        "of them in import cycles": f"{inside} (largest cycle: {max(map(len, house.cycles), default=0)})",
        "functions": f"{len(functions):,}",
        "lines of a function: median / 90 % / longest": _spread(functions),
        "docstrings, share of lines": f"{house.docstring_lines / house.lines:.1%}",
        "lines of commands/": f"{house.command_lines:,}",
        "lines of tests": f"{house.test_lines:,}",
        "tests / source": f"{house.test_lines / house.lines:.2f}",
    }
    if crossings is not None:
        rows |= {
            "one compare: modules entered": f"{crossings.modules}",
            "one compare: changes of module, distinct": f"{crossings.pairs}",
            "one compare: changes of module, all": f"{crossings.calls:,}",
        }
    return rows


def _spread(values: Sequence[int]) -> str:
    return f"{quantile(values, 0.5)} / {quantile(values, 0.9)} / {max(values)}"


def tabulate(houses: Mapping[str, House]) -> str:
    """The houses side by side, as Markdown."""
    columns = [describe(house) for house in houses.values()]
    lines = ["| | " + " | ".join(houses) + " |", "|---|" + "---:|" * len(houses)]
    lines += [f"| {name} | " + " | ".join(column[name] for column in columns) + " |" for name in columns[0]]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.house",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("revision", metavar="REV", nargs="?", help="a revision to count beside the working tree")
    parser.add_argument("--no-trace", action="store_true", help="only what can be counted without running rekka")
    parser.add_argument("--trace-into", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.trace_into is not None:
        sys.stdout.write(json.dumps(vars(trace_command(options.trace_into))) + "\n")
        return
    houses: dict[str, House] = {}
    if options.revision:
        with check_out(options.revision) as tree:
            houses[options.revision] = count(tree, trace=not options.no_trace)
    houses["working tree"] = count(ROOT, trace=not options.no_trace)
    print(tabulate(houses))


if __name__ == "__main__":
    main()
