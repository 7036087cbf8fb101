"""What is costly to make: made by whichever worker of a test run needs it first, and read by the others."""

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from filelock import FileLock

FOLDER: list[Path] = []  # of this run; conftest.py says where
PICTURES = ("vegalite_to_svg", "vegalite_to_png", "svg_to_pdf", "javascript_bundle")  # functions of vl_convert


def share(name: str, make: Callable[[], str]) -> str:
    """What ``make`` returns, once in a run."""
    return share_bytes(name, lambda: make().encode()).decode()


def share_bytes(name: str, make: Callable[[], bytes]) -> bytes:
    file = FOLDER[-1] / name
    with FileLock(f"{file}.lock"):
        if not file.exists():
            file.write_bytes(make())
    return file.read_bytes()


def share_picture(draw: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of vl_convert, called once in a run for the same chart."""

    @wraps(draw)
    def drawn(*given: Any, **options: Any) -> Any:
        asked = json.dumps([draw.__name__, given, options], sort_keys=True)
        kind = str if draw.__name__ in ("vegalite_to_svg", "javascript_bundle") else bytes
        name = f"picture-{hashlib.sha256(asked.encode()).hexdigest()}"
        if kind is str:
            return share(name, lambda: draw(*given, **options))
        return share_bytes(name, lambda: draw(*given, **options))

    return drawn
