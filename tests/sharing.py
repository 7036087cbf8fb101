"""Text that is costly to make: made by whichever worker of a test run needs it first, and read by the others."""

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

FOLDER: list[Path] = []  # of this run; conftest.py says where


def share(name: str, make: Callable[[], str]) -> str:
    """What ``make`` returns, once in a run."""
    file = FOLDER[-1] / name
    with FileLock(f"{file}.lock"):
        if not file.exists():
            file.write_text(make(), encoding="utf-8", newline="")
    return file.read_bytes().decode("utf-8")
