"""What a result depends on: versions, processor, date, seed, commit. No paths and no host names."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import rekka
from benchmarks import rekka_newton, rival_msm, rival_paper
from benchmarks.problems import SEED

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "numba", "scipy", "polars", "mpmath")


def describe(with_msm: bool) -> dict[str, object]:
    """The configuration of this run; call it before anything is measured."""
    own = {"python": platform.python_version(), "rekka": rekka.__version__}
    versions = own | {name: version(name) for name in PACKAGES}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": SEED,
        "commit": _commit(),
        "source": source_digest(),
        "versions": versions | (rival_msm.versions() if with_msm else {}),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "repeats": {
            "rekka": rekka_newton.REPEATS,
            "paper": rival_paper.REPEATS,
            "msm": "up to 3, none begun after 60 s",
        },
    }


def source_digest() -> str:
    """A digest of the package and of these benchmarks: it tells whether they were edited during a run."""
    digest = hashlib.sha256()
    for folder in (ROOT / "src", ROOT / "benchmarks"):
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.R")]):
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str | None:
    """The commit, marked where files differ from it; None outside a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
