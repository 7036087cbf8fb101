"""Every command, with every step of every write failing: each file is the old one or the new one, whole."""

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from study_cases import draw_rows
from test_cli import call

import rekka
from rekka.core import files
from rekka.report.charts.drawing import PICTURE_MARK

# Steps of a command that are failed one by one; of more, so many evenly spread. REKKA_FAULTS=1000 fails them all.
MOST = int(os.environ.get("REKKA_FAULTS", "3"))
ROOM = pytest.mark.skipif(sys.platform == "win32", reason="limits on the size of files are of POSIX")


def write_tables(folder: Path) -> None:
    """Inspections of one component, and the tables beside them."""
    rekka.write_inventory(folder, 40, preset="plain", seed=5)
    inspections = pl.read_csv(folder / "inspections.csv", infer_schema=False)
    inspections.filter(case="Pier").write_csv(folder / "inspections.csv")


class Place:
    """A folder with everything that commands read; each command writes below ``out``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        draw_rows(("Pier", "Deck slab"), 60).write_csv(folder / "rows.csv")
        draw_rows(("Pier",), 60).unique("bridge_id", maintain_order=True).write_csv(folder / "list.csv")
        write_tables(folder / "tables")
        done = call("fit", folder / "rows.csv", "--no-test-fit", "--out", folder / "models")
        assert done.exit_code == 0, done.stderr
        rekka.compare(draw_rows(("Pier",), 60), methods=["zscore"], guard={"resamples": 0}, out=folder / "run")
        self.prepared: dict[str, tuple[str, dict[str, bytes], dict[str, bytes], int]] = {}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


@pytest.fixture
def empty(place: Place, few_simulations: None, cheap_reports: None) -> Place:
    """Nothing is written yet."""
    shutil.rmtree(place.out, ignore_errors=True)
    place.out.mkdir()
    return place


# Of each command what writes the old files, and what writes the new ones. {} is the folder.
UNTIL = "--until-visit 3 --draws 100 --use age_at_inspection_1"
COMMANDS = {
    "transitions csv": ("transitions {}/tables --out {}/out/t.csv --partition bridge", "transitions {}/tables --out {}/out/t.csv"),
    "transitions parquet": (
        "transitions {}/tables --out {}/out/t.parquet --partition bridge",
        "transitions {}/tables --out {}/out/t.parquet",
    ),
    "transitions xlsx": (
        "transitions {}/tables --out {}/out/t.xlsx --partition bridge",
        "transitions {}/tables --out {}/out/t.xlsx",
    ),
    "check": ("check {}/rows.csv --partition none --out {}/out/c.json", "check {}/rows.csv --out {}/out/c.json"),
    "simulate csv": ("simulate {}/out --bridges 3", "simulate {}/out --bridges 4 --force"),
    "simulate parquet": (
        "simulate {}/out --bridges 3 --format parquet",
        "simulate {}/out --bridges 4 --format parquet --force",
    ),
    "fit one": ("fit {}/rows.csv --only Pier --ridge 1 --out {}/out/m.json", "fit {}/rows.csv --only Pier --out {}/out/m.json"),
    "fit several": ("fit {}/rows.csv --ridge 1 --out {}/out/m", "fit {}/rows.csv --out {}/out/m"),
    "matrix one": ("matrix {}/models --years 1 --out {}/out/m.csv", "matrix {}/models --years 2 --out {}/out/m.csv"),
    "matrix several": ("matrix {}/models --years 1 --out {}/out/m", "matrix {}/models --years 2 --out {}/out/m"),
    "effects": (
        "effects {}/models --only Pier --draws 100 --out {}/out/e",
        "effects {}/models --only Pier --draws 100 --level 0.9 --out {}/out/e",
    ),
    "backtest": (
        f"backtest {{}}/tables {UNTIL} --ridge 1 --out {{}}/out/b",
        f"backtest {{}}/tables {UNTIL} --out {{}}/out/b",
    ),
    "forecast csv": (
        "forecast {}/models {}/list.csv --years 2 --out {}/out/f --format csv",
        "forecast {}/models {}/list.csv --years 3 --out {}/out/f --format csv",
    ),
    "forecast parquet": (
        "forecast {}/models {}/list.csv --years 2 --out {}/out/f --format csv",
        "forecast {}/models {}/list.csv --years 3 --out {}/out/f --format parquet",
    ),
    "forecast xlsx": (
        "forecast {}/models {}/list.csv --years 2 --out {}/out/f --format xlsx",
        "forecast {}/models {}/list.csv --years 3 --out {}/out/f --format xlsx",
    ),
    "report": (
        "report {}/run --quick --title Old --out {}/out/p.html --tables {}/out/t --figures {}/out/f --markdown {}/out/p.md",
        "report {}/run --quick --title New --out {}/out/p.html --tables {}/out/t --figures {}/out/f --markdown {}/out/p.md",
    ),
}  # fmt: skip


def run(place: Place, command: str) -> Any:
    return call(*command.replace("{}", str(place.folder)).split())


def read_all(folder: Path) -> dict[str, bytes]:
    """The files below a folder, but for locks, which are empty."""
    found = [file for file in folder.rglob("*") if file.is_file() and file.name != ".lock"]
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in found}


def put_back(folder: Path, old: dict[str, bytes]) -> None:
    shutil.rmtree(folder)
    for name, content in old.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def is_new(name: str, content: bytes, new: dict[str, bytes]) -> bool:
    """Whether a file is the new one, whole; some have times or an order in them that differ from run to run."""
    if name.endswith(".json"):
        return isinstance(json.loads(content), dict)
    if name.endswith(".pdf"):
        return content.startswith(b"%PDF") and content.rstrip().endswith(PICTURE_MARK)
    if name.endswith(".parquet"):
        return pl.read_parquet(io.BytesIO(content)).equals(pl.read_parquet(io.BytesIO(new[name])))
    return content == new.get(name)


def assert_whole(folder: Path, old: dict[str, bytes], new: dict[str, bytes]) -> None:
    now = read_all(folder)
    assert not [name for name in now if "unfinished" in name]
    assert {name for name in old if name in new} <= set(now) <= {*old, *new}
    for name, content in now.items():
        assert content == old.get(name) or is_new(name, content, new), name


class Faults:
    """Counts the steps of writing: making an unfinished file, flushing, moving. Step ``at`` finds the disk full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.at = 0, -1
        for name in ("open", "fsync", "replace"):
            monkeypatch.setattr(files.os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **more: Any) -> Any:
            if name == "open" and not (str(given[0]).endswith(".unfinished") and given[1] & os.O_CREAT):
                return act(*given, **more)
            self.done += 1
            if self.done == self.at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return act(*given, **more)

        return step

    def arm(self, at: int) -> None:
        self.done, self.at = 0, at


def prepare(place: Place, command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any, Any, int]:
    """The command for the new files, the old files, the new ones, and the steps of writing them."""
    if command not in place.prepared:
        with monkeypatch.context() as counted:
            place.prepared[command] = make_files(place, command, Faults(counted))
    return place.prepared[command]


def make_files(place: Place, command: str, faults: "Faults") -> tuple[str, Any, Any, int]:
    before, after = COMMANDS[command]
    done = run(place, before)
    assert done.exit_code == 0, done.stderr
    old = read_all(place.out)
    faults.arm(-1)
    done = run(place, after)
    assert done.exit_code == 0, done.stderr
    new = read_all(place.out)
    assert old
    assert any(new.get(name) != content for name, content in old.items())
    return after, old, new, faults.done


@pytest.mark.parametrize("command", COMMANDS)
def test_every_step_of_every_write(command, empty, monkeypatch):
    after, old, new, steps = prepare(empty, command, monkeypatch)
    faults = Faults(monkeypatch)
    assert steps >= 3
    tried = sorted({1 + place * (steps - 1) // (min(steps, MOST) - 1) for place in range(min(steps, MOST))})
    print(f"{command}: {len(tried)} of {steps} steps")
    for step in tried:
        put_back(empty.out, old)
        faults.arm(step)
        done = run(empty, after)
        assert (done.exit_code, "Traceback" in done.output) == (1, False), (step, done.output)
        told = re.search(r"WriteError: (\S+) cannot be written: No space left on device\.", done.stderr)
        assert told, (step, done.stderr)
        assert Path(told[1]).relative_to(empty.out).as_posix() in {*old, *new}
        assert_whole(empty.out, old, new)


@ROOM
@pytest.mark.parametrize("command", COMMANDS)
def test_files_that_cannot_grow(command, empty, monkeypatch):
    """The kernel itself refuses to write on, whichever library writes; at a size that each file passes in turn."""
    import resource

    after, old, new, _ = prepare(empty, command, monkeypatch)
    sizes = sorted({len(content) * 9 // 10 for content in new.values()})
    for limit in {1, sizes[-1]}:
        put_back(empty.out, old)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            done = run(empty, after)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (done.exit_code, "Traceback" in done.output) == (1, False), (limit, done.output, done.exception)
        assert re.search(r"WriteError: .* cannot be written(?: to)?: File too large\.", done.stderr), done.stderr
        assert_whole(empty.out, old, new)


@pytest.mark.parametrize(
    "command",
    [
        "compare {}/rows.csv --only Pier --methods zscore --resamples 0 --no-report --out {}/out/run",
        "confirm {}/out/run --force",
        "stability {}/out/run --kinds splits --resamples 2 --workers 1",
    ],
)
def test_a_run_folder_on_a_full_disk(command, empty, monkeypatch):
    """Each file of a run is whole; that the run then goes on is tested where resuming is."""
    begun = not command.startswith("compare")
    faults = Faults(monkeypatch)
    for step in (1, 2, 3, 8, 13):
        shutil.rmtree(empty.out)
        if begun:
            shutil.copytree(empty.folder / "run", empty.out / "run")
        faults.arm(step)
        done = run(empty, command)
        faults.arm(-1)
        assert (done.exit_code, "Traceback" in done.output) == (1, False), (step, done.output)
        assert re.search(r"WriteError: \S+ cannot be written: No space left on device\.", done.stderr), done.stderr
        for name, content in read_all(empty.out).items():
            assert "unfinished" not in name
            assert not name.endswith(".json") or json.loads(content)


# Reads the tables into a file of each kind, in a process each, which kills itself at a step; tells how each ended.
# What all of them need is imported before; nothing may touch polars by then, because its threads do not survive.
KILL = """
import os, signal, sys
from rekka.core import files
from rekka.commands import data
from rekka.data import transitions
from rekka.workflows import tables
from rekka.cli import main

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def write(kind, step):
    if step == "fill":
        store = transitions._store
        def half(frame, file, kind):
            store(frame, file, kind)
            os.truncate(file, os.path.getsize(file) // 2)
            die()
        transitions._store = half
    else:
        setattr(files.os, step, die)
    sys.argv[1:] = ["transitions", source, "--out", f"{out}/{kind}-{step}/t.{kind}"]
    main()

source, out, *ways = sys.argv[1:]
for way in ways:
    child = os.fork()
    if not child:
        write(*way.split("-"))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    "ways",
    [
        ("csv-fill", "parquet-fill", "xlsx-fill", "csv-fsync", "parquet-replace"),
        pytest.param(  # what is flushed and moved is the same for all
            ("csv-replace", "parquet-fsync", "xlsx-fsync", "xlsx-replace"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_killed_process_leaves_the_old_file(ways, empty):
    for way in ways:
        (empty.out / way).mkdir()
        (empty.out / way / f"t.{way.partition('-')[0]}").write_bytes(b"old")
    command = [sys.executable, "-c", KILL, empty.folder / "tables", empty.out, *ways]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert list(map(int, done.stdout.split())) == [-signal.SIGKILL] * len(ways), done.stderr
    for way in ways:
        kind = way.partition("-")[0]
        assert (empty.out / way / f"t.{kind}").read_bytes() == b"old"
        assert not (empty.out / way / "t.audit.csv").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_a_place_that_cannot_be_written_to_is_a_sentence(kind, empty, monkeypatch):
    """As on a read-only disk, for root too."""
    act = os.open

    def refuse(path: Any, flags: int, *given: Any, **more: Any) -> int:
        if str(path).endswith(".unfinished") and flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return act(path, flags, *given, **more)

    monkeypatch.setattr(files.os, "open", refuse)
    done = run(empty, f"transitions {{}}/tables --out {{}}/out/t.{kind}")
    told = f"WriteError: {empty.out / f't.{kind}'} cannot be written: Read-only file system. Choose a place"
    assert (done.exit_code, told in done.stderr) == (1, True), done.output
