"""Files of a run that know whether they are as they were written: JSON sealed with its own SHA-256."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from rekka.core.errors import DamagedFile
from rekka.core.files import write_text


def write_sealed(path: Path, kind: str, body: Any) -> None:
    """Plain data as JSON with its own SHA-256, so that a damaged file is known from a whole one."""
    text = json.dumps({"format": kind, "version": 1, "sha256": seal(body), "body": body}, indent=1)
    write_text(path, text + "\n")


def read_sealed(path: Path, kind: str) -> Any:
    """The body of a sealed file; a truncated, edited or foreign one is refused."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{path.name} is not whole: {error}.", file=str(path)) from None
    if not isinstance(found, dict) or found.get("format") != kind or found.get("version") != 1:
        raise DamagedFile(f"{path.name} is not a file of the kind {kind}, version 1.", file=str(path))
    if found.get("sha256") != seal(found.get("body")):
        raise DamagedFile(f"{path.name} has been changed since it was written.", file=str(path))
    return found["body"]


def plain(value: Any) -> Any:
    """The same with infinite and undefined numbers as words: JSON has none."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def seal(body: Any) -> str:
    """SHA-256 of plain data."""
    return digest(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
