"""What starting costs: the help, the import, the first fit after installation and the first of a later process.

Each is a process of its own, timed from outside; the fastest of some repeats, but for the compilation, which is
made once in an empty cache.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

REPEATS = 5
FIT = (
    "import rekka;"
    "rows = rekka.simulate_transitions(300);"
    "model = rekka.ExponentialHazardMarkovModel(covariates=['bridge_length']);"
    "model.fit(rows, rows['state_2'])"
)


@dataclass(frozen=True)
class Start:
    """Seconds of a whole process."""

    python: float
    help: float
    importing: float
    first_fit: float
    later_fit: float


def measure(repeats: int = REPEATS) -> Start:
    """All of them; the interpreter alone first, for comparison."""
    with tempfile.TemporaryDirectory() as cache:
        first = time_process(["-c", FIT], 1, cache)
        later = time_process(["-c", FIT], repeats, cache)
    return Start(
        time_process(["-c", "pass"], repeats),
        time_process(["-c", "from rekka.cli import main; main()", "--help"], repeats),
        time_process(["-c", "import rekka"], repeats),
        first,
        later,
    )


def time_process(arguments: list[str], repeats: int, cache: str | None = None) -> float:
    """Elapsed seconds of a whole process: the fastest of some. ``cache`` is the folder of compiled kernels."""
    environment = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    fastest = math.inf
    for _ in range(repeats):
        clock = perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment, cwd=_ROOT)
        fastest = min(fastest, perf_counter() - clock)
    return fastest


_ROOT = Path(__file__).resolve().parents[1]
