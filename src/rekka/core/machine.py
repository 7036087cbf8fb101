"""Versions, machine and command that a result was made with."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import rekka

PACKAGES = ("numpy", "scipy", "numba", "polars", "scikit-learn", "joblib")


def describe_versions() -> dict[str, str]:
    """Versions of rekka, of Python, and of the packages that compute."""
    own = {"rekka": rekka.__version__, "python": platform.python_version()}
    return own | {name: metadata.version(name) for name in PACKAGES}


def describe_machine() -> dict[str, Any]:
    """System, processor and number of cores."""
    return {"system": platform.platform(), "processor": _name_processor(), "cores": os.cpu_count()}


def describe_command() -> str:
    """Command line of the process, or that a program called the library."""
    program = Path(sys.argv[0]).name if sys.argv else ""
    return shlex.join(["rekka", *sys.argv[1:]]) if program in ("rekka", "rekka.exe") else "rekka.compare(...)"


def _name_processor() -> str:
    """Name of the processor, as far as the system knows it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
