"""How many of the mutants of ``mutant_table`` the tests see: rekka with one guard broken, or one boundary moved.

Each mutant is one exact text of one source file, replaced in a temporary copy of ``src``, against which the tests
most likely to see it are run. A mutant is killed when a test fails, and survives when all pass. Tests that do not
come to an end are no kill: the machine may be busy. Before that the same tests pass on the copy as it is.

    python -m benchmarks.mutants                     all of them; stores results/mutants.json
    python -m benchmarks.mutants --only store.py     those of files whose path holds this; stores nothing
    python -m benchmarks.mutants --jobs 2            side by side

Exit code 1 if fewer than 85 % are killed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from benchmarks.mutant_table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).parent / "results" / "mutants.json"
KILLED, SURVIVED, ENDLESS = "killed", "survived", "no end"
SECONDS = 300  # for the tests of one mutant; they take a few
AIM = 0.85
PASSED, FAILED, INTERRUPTED = 0, 1, 2  # exit codes of pytest; the last is that of tests that cannot be imported
WRONG = 90  # exit code where pytest could not be run, or not on the copy
REWRITE = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis is imported before pytest sees it
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-W", REWRITE)
# Processes that have imported what rekka needs, and nothing of rekka: half of the time of most tests goes there.
LIBRARIES = (
    "altair hypothesis narwhals numba pandas polars pydantic pytest rich scipy.optimize scipy.stats "
    "sklearn.utils.estimator_checks tomli_w typer.testing xlsxwriter"
)
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(LIBRARIES.split())


@dataclass(frozen=True)
class Found:
    """A mutant and what became of it."""

    mutant: Mutant
    outcome: str

    @property
    def killed(self) -> bool:
        """Whether a test saw it."""
        return self.outcome == KILLED


def main() -> int:
    """Run the mutants, print the shares by package and who survived."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="mutants of files whose path holds this")
    parser.add_argument("--jobs", type=int, default=1, help="mutants run side by side")
    wanted = parser.parse_args()
    chosen = [one for one in MUTANTS if wanted.only in one.file]
    for one in chosen:
        mutate(one, ROOT / "src")
    check_unchanged(chosen)
    with ThreadPoolExecutor(wanted.jobs) as pool:
        found = [tell(one) for one in pool.map(run_mutant, chosen)]
    share = report(found)
    if not wanted.only:
        FILE.write_text(json.dumps(store(found), indent=1) + "\n", encoding="utf-8")
        print(f"Stored in benchmarks/results/{FILE.name}.")
    return 0 if share >= AIM else 1


def mutate(one: Mutant, src: Path) -> str:
    """The text of the mutant's file with the change made; the text to be replaced must be there exactly once."""
    text = (src / "rekka" / one.file).read_text(encoding="utf-8")
    times = text.count(one.text)
    if times != 1:
        raise SystemExit(f"{one.file}: {one.text!r} is there {times} times; a mutant needs a text of its own.")
    return text.replace(one.text, one.replacement)


def check_unchanged(mutants: Iterable[Mutant]) -> None:
    """Refuse to measure with tests that fail on rekka as it is."""
    tests = list(dict.fromkeys(test for one in mutants for test in one.tests.split()))
    with copy_source() as src:
        code = run_tests(src, tests, SECONDS * 10)
    if code != PASSED:
        raise SystemExit(f"Without a mutant the tests end with {code}: they cannot judge one.")


def run_mutant(one: Mutant) -> Found:
    """Change a copy of the source and run the mutant's tests on it."""
    with copy_source() as src:
        (src / "rekka" / one.file).write_text(mutate(one, src), encoding="utf-8")
        code = run_tests(src, one.tests.split(), SECONDS)
    if code not in (None, PASSED, FAILED, INTERRUPTED):
        raise SystemExit(f"{one.file}: {one.text!r}: pytest {one.tests} ended with {code}.")
    return Found(one, ENDLESS if code is None else SURVIVED if code == PASSED else KILLED)


@contextmanager
def copy_source() -> Iterator[Path]:
    """A copy of ``src`` with what numba has compiled, which stays valid for files that are not changed."""
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as folder:
        yield Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))


def run_tests(src: Path, tests: Sequence[str], seconds: float) -> int | None:
    """The exit code of pytest; None where it does not come to an end."""
    child = FORKS.Process(target=_work, args=(str(src), [*PYTEST, f"--basetemp={src.parent / 'tests'}", *tests]))
    child.start()
    child.join(seconds)
    if child.exitcode is None and child.pid is not None:
        os.killpg(child.pid, signal.SIGKILL)
        child.join()
        return None
    return child.exitcode


def _work(src: str, arguments: list[str]) -> None:
    """Import rekka from ``src``, and run pytest in this process, which is a fresh one."""
    os.setsid()
    os.environ |= {"PYTHONPATH": src, "HYPOTHESIS_STORAGE_DIRECTORY": f"{src}/../examples"}
    sys.path.insert(0, src)
    os.chdir(ROOT)
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
        os.dup2(nothing.fileno(), sys.stderr.fileno())
    settings.register_profile("no shrinking", phases=(Phase.explicit, Phase.generate))
    settings.load_profile(
        "no shrinking"
    )  # that of the tests goes by it: a failure is enough, and need not be short
    code = WRONG
    try:
        found = pytest.main(arguments)
        ours = str(sys.modules["rekka"].__file__).startswith(src) if "rekka" in sys.modules else found != PASSED
        code = int(found) if ours else WRONG
    finally:
        os._exit(code)


def tell(found: Found) -> Found:
    """Print a line of a mutant as soon as it is known."""
    one = found.mutant
    print(f"{found.outcome:8}  {one.file}: {_line(one.text)}  ->  {_line(one.replacement)}", flush=True)
    return found


def _line(text: str) -> str:
    return " ".join(text.split())


def report(found: Sequence[Found]) -> float:
    """Print killed and all by package, and the share of all."""
    for package, (killed, mutants) in count(found).items():
        print(f"{package:12} {killed:3} of {mutants:3}")
    share = sum(one.killed for one in found) / len(found)
    print(f"{share:.1%} of {len(found)} mutants are killed (at least {AIM:.0%} is the aim)")
    return share


def count(found: Iterable[Found]) -> dict[str, tuple[int, int]]:
    """Mutants killed, and all, by package."""
    every = [(one.mutant.file.split("/")[0], one.killed) for one in found]
    mutants, killed = Counter(package for package, _ in every), Counter(p for p, seen in every if seen)
    return {package: (killed[package], mutants[package]) for package in mutants}


def store(found: Sequence[Found]) -> dict[str, object]:
    """The result as plain data: figures by package, and who survived."""
    survivors = [one.mutant for one in found if not one.killed]
    return {
        "mutants": len(found),
        "killed": sum(one.killed for one in found),
        "packages": {name: {"killed": k, "mutants": n} for name, (k, n) in count(found).items()},
        "survived": [
            {"file": one.file, "text": one.text, "replacement": one.replacement, "equivalent": one.equivalent}
            for one in survivors
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
