"""Files that are whole or not there: written beside their place, flushed to the disk, then moved into it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rekka.errors import DamagedFile

_UNFINISHED = re.compile(r".+\.\d+\.unfinished")  # what a file is called until it is whole


def write_whole(path: Path, content: bytes, *, flush: bool = True) -> None:
    """Fill a file beside ``path``, then move it into place: a crash leaves the old file or none.

    Without ``flush`` a power cut may still leave it damaged: for files whose digest is kept elsewhere.
    """
    unfinished = name_unfinished(path)
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):  # the disk may be gone altogether; the first error is the one to tell
            unfinished.unlink(missing_ok=True)
        raise
    if flush:
        _flush_folder(path.parent)


def write_text(path: Path, text: str, *, flush: bool = True) -> None:
    """A text file, whole."""
    write_whole(path, text.encode(), flush=flush)


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


def name_unfinished(path: Path) -> Path:
    """What a file is called until it is whole, beside its place."""
    return path.with_name(f"{path.name}.{os.getpid()}.unfinished")


def is_unfinished(path: Path) -> bool:
    """Whether a file is one that a crash of ours left behind, by its name."""
    return _UNFINISHED.fullmatch(path.name) is not None


def remove_unfinished(folders: Iterable[Path]) -> None:
    """Take away what a crash left behind in these folders; their own subfolders are not looked into."""
    for folder in folders:
        for file in folder.iterdir() if folder.is_dir() else ():
            if is_unfinished(file):
                file.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Make the move itself last through a power cut, where the system lets one open a folder."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
