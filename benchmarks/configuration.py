"""What a result depends on: versions, processor, date, seed, commit. No paths and no host names."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import rekka_newton, rival_msm, rival_paper
from benchmarks.problems import SEED

PACKAGES = ("rekka", "numpy", "numba", "scipy", "polars", "mpmath")


def describe(with_msm: bool) -> dict[str, object]:
    """The configuration of this run."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": SEED,
        "commit": _commit(),
        "versions": versions | (rival_msm.versions() if with_msm else {}),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "repeats": {"rekka": rekka_newton.REPEATS, "paper": rival_paper.REPEATS, "msm": "up to 3, within 10 s"},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str | None:
    """The commit, marked where files differ from it; None outside a checkout."""
    root = Path(__file__).resolve().parents[1]
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
