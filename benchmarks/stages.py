"""Where the seconds of ``rekka compare --out RUN`` go: the command once more, with a stopwatch on its functions.

It runs in a process of its own (``python -m benchmarks.stages RUN``), so that imports are measured too; only the
standard library is imported before the clock runs. A stage's seconds are its own: those of a stage within it are
taken off. Each place where a function is looked up is named in ``PLACES``; a name that is gone is an error.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from importlib import import_module
from time import perf_counter
from typing import Any

IMPORTS, REST = "imports", "all else"
PLACES = {
    "reading: inventory drawn, visits paired": ("rekka.study.rows:read_source",),
    "reading: rows split and checked": ("rekka.study.rows:split_rows", "rekka.study.rows:StudyRows.case"),
    "fitting: scalings": ("rekka.model.observations:fit_scaling",),
    "fitting: compiled code loaded": ("rekka.model.fit:compile_kernels",),
    "fitting: the optimizer": ("rekka.model.fit:newton", "rekka.model.fit:lbfgs"),
    "fitting: inputs, coordinates": ("rekka.study.trial:_fit",),
    "fitting: standard errors": ("rekka.model.fit:infer",),
    "certificates: linear programs": ("rekka.model.fit:find_separations",),
    "certificates: other starts": ("rekka.model.fit:restart",),
    "certificates: verdict": ("rekka.model.fit:certify",),
    "scoring": (
        "rekka.study.trial:judge",
        "rekka.study.case_rows:CaseRows.persist",
        "rekka.study.trial:judge_plain",
    ),
    "choosing: rule, folds, resamples": ("rekka.study.compare:choose",),
    "confirming": ("rekka.study.compare:confirm_choices",),
    "writing: models and operators as JSON": (
        "rekka.study.trial:dump_model",
        "rekka.study.trial:scaling_to_json",
    ),
    "writing: cases and trials": (
        "rekka.study.run_folder:Files.add_case",
        "rekka.study.run_folder:Files.add_trial",
        "rekka.study.run_folder:Files.note",
    ),
    "writing: plan, rows, provenance": (
        "rekka.study.compare:begin_run",
        "rekka.study.compare:describe_run",
        "rekka.study.compare:keep_rows",
    ),
    "writing: tables": ("rekka.study.compare:write_tables",),
    "selecting: tables made": ("rekka.study.study:Study.tables", "rekka.study.study:Study.documents"),
    "printing": ("rekka.commands.study:print_study",),
}
# what the command imports
MODULES = ("rekka.cli", "rekka.commands.study", "rekka.study.compare", "rekka.study.checks.registry")


class Stopwatch:
    """Seconds of each stage; while a stage within it runs, the one around it stands still."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = perf_counter()

    def _charge(self) -> None:
        now = perf_counter()
        stage = self._open[-1] if self._open else REST
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now

    def run(self, stage: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function on a stage's time."""
        self._charge()
        self._open.append(stage)
        try:
            return function(*args, **options)
        finally:
            self._charge()
            self._open.pop()

    def watch(self, stage: str, place: str) -> None:
        """Put the stopwatch on a function, where others look it up."""
        owner, name = find(place)
        plain = getattr(owner, name)

        @wraps(plain)
        def timed(*args: Any, **options: Any) -> Any:
            return self.run(stage, plain, *args, **options)

        setattr(owner, name, timed)


def find(place: str) -> tuple[Any, str]:
    """'module:Class.method' or 'module:function' as the object that has it, and the name there."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    if not hasattr(owner, name):
        raise AttributeError(f"{place} is gone: correct benchmarks/stages.py.")
    return owner, name


def measure(folder: str) -> dict[str, float]:
    """Run ``rekka compare --out folder`` and say where its seconds went."""
    watch = Stopwatch()
    watch.run(IMPORTS, lambda: [import_module(name) for name in MODULES])
    for stage, places in PLACES.items():
        for place in places:
            watch.watch(stage, place)
    sys.argv = ["rekka", "compare", "--out", folder]
    try:
        with redirect_stdout(io.StringIO()):
            watch.run(REST, import_module("rekka.cli").main)
    except SystemExit as ended:
        if ended.code:
            raise
    return watch.seconds


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1])))
