"""A constant of a kernel disturbed in a copy of the package: `rekka verify` there turns red."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rekka

PACKAGE = Path(rekka.__file__).parent
CODE = "import sys; sys.argv[0] = 'rekka'; from rekka.cli import main; main()"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package without what is compiled, on a path of its own."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PACKAGE, folder / "rekka", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def verify(folder, *given, compiled=False):
    """Exit code and result of the command in a process of its own."""
    own = {"PYTHONPATH": str(folder), "NUMBA_DISABLE_JIT": "" if compiled else "1", "NUMBA_CACHE_DIR": ""}
    only = [word for one in given for word in ("--only", one)]
    command = [sys.executable, "-c", CODE, "verify", "--json", *only]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "COV_", "COVERAGE_"))
    }
    done = subprocess.run(
        command, capture_output=True, text=True, env=kept | {k: v for k, v in own.items() if v}, cwd=folder
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def find_red(data):
    return {check["name"] for check in data["checks"] if not check["ok"]}


class Disturbed:
    """A file of the copy with one line changed, for as long as it lasts."""

    def __init__(self, folder, name, line, other):
        self.file = folder / "rekka" / "model" / name
        self.line, self.other = line, other

    def __enter__(self):
        self.text = self.file.read_text("utf-8")
        assert self.text.count(self.line) == 1, self.line
        self.file.write_text(self.text.replace(self.line, self.other), encoding="utf-8")

    def __exit__(self, *_):
        self.file.write_text(self.text, encoding="utf-8")


PARTS = ("near_hazards", "equal hazards", "fifty_digits", "years", "running_clock", "improvements")


def test_the_copy_itself_is_green(copy):
    code, data = verify(copy, *PARTS)
    assert (code, data["ok"], find_red(data)) == (0, True, set())


@pytest.mark.parametrize(
    ("file", "line", "other", "red"),
    [
        ("kernel.py", "        1 / 12,\n", "        1 / 12.001,\n", {"near_hazards", "fifty_digits"}),
        ("kernel.py", "SERIES_TOLERANCE = 1e-18", "SERIES_TOLERANCE = 1e-6", {"equal_hazards", "near_hazards"}),
        ("step_kernel.py", "NEGLIGIBLE = 1e-17", "NEGLIGIBLE = 1e-4", {"years"}),
        ("history_kernel.py", "NEGLIGIBLE = 1e-17", "NEGLIGIBLE = 1e-3", {"running_clock"}),
        ("elements.py", "TREND_YEARS = 10.0", "TREND_YEARS = 10.001", {"improvements"}),
    ],
)
def test_a_disturbed_constant_turns_it_red(copy, file, line, other, red):
    with Disturbed(copy, file, line, other):
        code, data = verify(copy, *PARTS)
    assert code == 1
    assert not data["ok"]
    assert data["counts"]["wrong"] >= 1
    assert red <= find_red(data) < {check["name"] for check in data["checks"]}


@pytest.mark.slow
def test_a_compiled_kernel_that_is_disturbed_turns_it_red(copy):
    with Disturbed(copy, "kernel.py", "SERIES_TOLERANCE = 1e-18", "SERIES_TOLERANCE = 1e-7"):
        code, data = verify(copy, "probabilities", "maxima", compiled=True)
    assert code == 1
    assert {"equal_hazards", "near_hazards", "derivatives"} <= find_red(data)
