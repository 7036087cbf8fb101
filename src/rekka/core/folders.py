"""Run folders: held by one process at a time, paths relative to them, and JSON files sealed with a SHA-256."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rekka.core.errors import BadOption, DamagedFile, RunFolderError
from rekka.core.files import naming, refuse_file, refuse_foreign, refuse_inputs, write_text

PLAN = "study.toml"  # a folder with this file is a run folder
LOCK, LOG = ".lock", "log.txt"
_UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG)


def locate(base: Path, name: str) -> Path:
    """A path that counts from ``base``, which may be a link, or not be there yet: no ``..`` goes through it."""
    return Path(os.path.normpath(base.resolve() / name))


def relate(path: str | Path, base: Path) -> str:
    """Way from ``base`` to a path; the path in full where there is none, as from another drive."""
    file = Path(path)
    place = file.parent.resolve() / file.name  # a file may be a link itself, whose own name is the one to keep
    try:
        return Path(os.path.relpath(place, base.resolve())).as_posix()
    except ValueError:
        return str(place)


def refuse_run(folder: Path) -> None:
    """Refuse to fill a run folder with other files: some have the names of its own."""
    if (folder / PLAN).exists():
        raise BadOption(
            f"{folder.name} is a run folder, whose files have the same names. Choose another folder.",
            folder=str(folder),
        )


def check_folder(
    folder: Path, files: Sequence[Path], inputs: Iterable[Path], is_ours: Callable[[Path], bool]
) -> None:
    """Refuse, before the work, a folder that is a file or a run, and files in it that are inputs or not ours."""
    refuse_file(folder)
    refuse_run(folder)
    refuse_inputs(files, inputs)
    refuse_foreign(files, is_ours)


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Keep other processes out of a folder, made if need be; the lock goes with the process, however it ends."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / LOCK, timeout=0)
        lock.acquire()
    except Timeout:
        said = last_line(path / LOG)
        raise RunFolderError(
            f"Another process is working on {path.name}{f'; its log ends: {said}' if said else ''}. "
            "Wait until it has ended, or stop it.",
            folder=str(path),
        ) from None
    except OSError as error:
        if error.errno not in _UNUSABLE:
            with naming(path / LOCK):
                raise
        raise RunFolderError(
            f"{path} cannot be used as a run folder: {error.strerror}. Choose a folder that you can write to.",
            folder=str(path),
        ) from None
    try:
        yield
    finally:
        lock.release()


def last_line(log: Path) -> str | None:
    """Log's last line, if there is one."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return lines[-1] if lines else None


def write_sealed(path: Path, kind: str, body: Any) -> None:
    """Plain data as JSON with its own SHA-256, so that a damaged file is known from a whole one."""
    text = json.dumps({"format": kind, "version": 1, "sha256": seal(body), "body": body}, indent=1)
    write_text(path, text + "\n")


def read_sealed(path: Path, kind: str) -> Any:
    """Body of a sealed file; a truncated, edited or foreign one is refused."""
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
    """Replace infinite and undefined numbers by words: JSON has none."""
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
