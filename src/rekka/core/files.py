"""Atomic files: every file that rekka writes goes through here, and is whole or not there.

A file is filled beside its place, flushed to the disk, then moved into its place: a crash, a full disk or a killed
process leaves the old file or the new one, never a part. A link stays, and what it leads to is replaced. A pipe or
/dev/stdout is written through. Whatever goes wrong is a ``WriteError`` with the file and the cause. The rules of
what may be replaced are here too: never an input, and besides the file that --out names only what rekka wrote
before. ``name_apart`` turns names of components and covariates into names of files.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from rekka.core.errors import BadOption, RekkaError, WriteError

_UNFINISHED = re.compile(r".+\.\d+\.unfinished")  # what a file is called until it is whole
_LONGEST_NAME = 200  # bytes; file systems take 255, and an unfinished file's name is longer
_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr)|/dev/fd/\d+|/proc/(?:self|\d+)/fd/\d+")
_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}
_MOST_LINKS = 40
# polars has the system's number in its text alone, and sometimes the file
_OS_ERROR = re.compile(r"\(os error (\d+)\)(?:: (?P<file>/.+))?")
_TORN = "transport error"  # polars, where the disk does not take the end of a Parquet file: it does not say why
_PROBE = 1 << 20  # bytes that are written to find out
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
WINDOWS = os.name == "nt"
_SHARING = (32, 33)  # Windows: another program holds the file
_DENIED = 5  # Windows says so, too, where a file is moved over one that another program holds
# Errors of Windows by its own numbers, which polars has in its text; Python's own errors have both numbers.
_OF_WINDOWS = {
    2: errno.ENOENT, 3: errno.ENOENT, _DENIED: errno.EACCES, 19: errno.EROFS, 32: errno.EACCES, 33: errno.EACCES,
    39: errno.ENOSPC, 80: errno.EEXIST, 112: errno.ENOSPC, 123: errno.EINVAL, 183: errno.EEXIST,
    206: errno.ENAMETOOLONG,
}  # fmt: skip
_LONGEST_PATH = 259  # characters that Windows takes, unless it was told to take more
_TOO_LONG = (errno.ENOENT, errno.EINVAL, errno.ENAMETOOLONG)  # what it says of longer ones
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds for which a scanner of viruses may hold a new file
_HEAD = 4096  # bytes at each end of a file in which a mark is looked for


class Batch:
    """Files that come into their places together: all are filled and flushed before the first is moved."""

    def __init__(self, *, flush: bool = True) -> None:
        self._flush = flush
        self._files: dict[Path, tuple[Path, Path]] = {}  # as named: what is filled, and the place it goes to
        self._modes: dict[Path, int] = {}  # permissions of what was there before
        self._scratch: list[Path] = []

    @contextmanager
    def fill(self, path: Path) -> Iterator[Path]:
        """Yield what is to be filled in the place of ``path``; an error of the disk is one of ``path``."""
        with naming(path):
            yield self.add(path)

    def add(self, path: Path) -> Path:
        """Make the unfinished file of ``path`` and return it."""
        with naming(path):
            _refuse_reserved(path)
            place = _follow(path)
            known = _stat(place)
            if is_stream(path):
                self._scratch.append(Path(tempfile.mkdtemp(prefix="rekka-")))
                unfinished = name_unfinished(self._scratch[-1] / path.name)
            else:
                _refuse_protected(place, known)
                unfinished = name_unfinished(place)
            self._files[path] = unfinished, place
            if unfinished.exists():  # of a crashed process of the same number
                unfinished.unlink()
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            os.close(handle)
            if known is not None and stat.S_ISREG(known.st_mode):
                self._modes[unfinished] = stat.S_IMODE(known.st_mode)
            return unfinished

    def finish(self) -> None:
        """Flush all files, then move them into their places in the order in which they were added."""
        for path, (unfinished, _) in self._files.items():
            with naming(path):
                if self._flush and not is_stream(path):
                    flush_file(unfinished)
                if unfinished in self._modes:
                    os.chmod(unfinished, self._modes[unfinished])
        for path, (unfinished, place) in self._files.items():
            with naming(path):
                if is_stream(path):
                    _write_through(unfinished, path)
                else:
                    move_file(unfinished, place)
        folders = {place.parent: path for path, (_, place) in self._files.items() if not is_stream(path)}
        for folder, path in folders.items():
            with naming(path):
                if self._flush:
                    _flush_folder(folder)

    def clear(self) -> None:
        """Remove what was not moved."""
        for unfinished, _ in self._files.values():
            with contextlib.suppress(OSError):  # the disk may be gone; the first error is the one to report
                unfinished.unlink(missing_ok=True)
        for folder in self._scratch:
            shutil.rmtree(folder, ignore_errors=True)


def move_file(source: Path, target: Path) -> None:
    """Move a file into its place; on Windows several times, because other programs look into new files."""
    for pause in _PAUSES if WINDOWS else ():
        try:
            os.replace(source, target)
        except PermissionError:
            time.sleep(pause)
        else:
            return
    os.replace(source, target)


def remove_file(file: Path) -> None:
    """Remove a file of ours, if it is there; one that another program holds is a ``WriteError``."""
    with naming(file):
        file.unlink(missing_ok=True)


@contextmanager
def writing_together(*, flush: bool = True) -> Iterator[Batch]:
    """Write several files: none is in its place before all are filled and flushed.

    Without ``flush`` a power cut may still leave them damaged: for files whose digest is kept elsewhere.
    """
    batch = Batch(flush=flush)
    try:
        yield batch
        batch.finish()
    finally:
        batch.clear()


@contextmanager
def writing(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """Yield an unfinished file to be filled; at the end it is moved to ``path``.

    >>> with writing(Path("table.csv")) as file:  # doctest: +SKIP
    ...     frame.sink_csv(file)
    """
    with writing_together(flush=flush) as batch, batch.fill(path) as unfinished:
        yield unfinished


def write_whole(path: Path, content: bytes, *, flush: bool = True) -> None:
    """Write a file: a crash leaves the old one or none."""
    with writing(path, flush=flush) as unfinished, unfinished.open("wb") as file:
        file.write(content)


def write_text(path: Path, text: str, *, flush: bool = True) -> None:
    """Write a text file in UTF-8, whole."""
    write_whole(path, text.encode(), flush=flush)


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a log; one that a crash cut short stays by itself."""
    with naming(path), path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, unless it is there."""
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder that goes at the end; where its disk is full the error says so."""
    # Windows removes no file that a table is still read from; the system tidies such a folder later
    with tempfile.TemporaryDirectory(prefix="rekka-", ignore_cleanup_errors=True) as folder:
        try:
            yield Path(folder)
        except RekkaError:
            raise
        except Exception as error:
            found = _find_system_error(error, Path(folder))
            if found is None or not is_full_disk(error, Path(folder)):
                raise
            place, cause = tempfile.gettempdir(), found[1]
            remedy = "Make room there, or set TMPDIR to another folder."
            message = f"The temporary folder {place} cannot be written to: {cause}. {remedy}"
            raise WriteError(message, file=place, cause=cause, remedy=remedy) from None


@contextmanager
def scratch_beside(path: Path, number: int) -> Iterator[list[Path]]:
    """Yield names for so many files on the disk of ``path``, by which a crash's leavings are known; they go."""
    files = [name_unfinished(path.with_name(f"{path.name}.{place}")) for place in range(number)]
    try:
        with naming(path):
            yield files
    finally:
        for one in files:
            one.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an error of the disk, of whichever library, into a ``WriteError`` of ``path``.

    An error of another file, such as one that is read meanwhile, stays as it is; so does a pipe that nobody reads.
    """
    try:
        yield
    except WriteError as error:
        if not _in_unfinished(Path(error.file)):
            raise
        raise WriteError(
            _format_failure(path, error.cause, error.remedy), **error.values | {"file": str(path)}
        ) from None
    except (RekkaError, BrokenPipeError):
        raise
    except Exception as error:
        found = _find_system_error(error, path.parent)
        if found is None or _is_elsewhere(error, path):
            raise
        if WINDOWS:
            found = _explain_windows(error, path, *found)
        number, cause, remedy = found
        failed = WriteError(_format_failure(path, cause, remedy), file=str(path), cause=cause, remedy=remedy)
        failed.errno = number
        raise failed from None


def is_full_disk(error: BaseException, folder: Path) -> bool:
    """Whether an error while ``folder`` was written to, of polars for instance, is of its disk: not of reading."""
    number = _probe(folder) if _TORN in str(error) else _find_number(error)
    return number in (*_NO_ROOM, errno.EROFS)


def _probe(folder: Path) -> int | None:
    """Number of the system's error where a folder takes no more; None where it does."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_PROBE))
    except OSError as error:
        return error.errno
    return None


def _format_failure(path: Path, cause: str, remedy: str) -> str:
    return f"{path} cannot be written: {cause}. {remedy}"


def _find_system_error(error: BaseException, folder: Path) -> tuple[int | None, str, str] | None:
    """System's number of an error, its cause in words, and what to do; None where it is not of the system."""
    torn = _TORN in str(error)
    number = _probe(folder) if torn else _find_number(error)
    inner = _find_os_error(error)
    if number is None and inner is None:
        return (None, "the disk did not take all of it", "Try again, or write elsewhere.") if torn else None
    windows = _find_windows_number(error)
    if windows in _SHARING or (windows == _DENIED and getattr(inner, "filename2", None)):
        return number, "it is open in another program", "Close it there and try again."
    cause = str(inner or error) if number is None else os.strerror(number)
    if number in _NO_ROOM:
        return number, cause, "Make room there, or write to another disk."
    if number in _NOT_ALLOWED:
        return number, cause, "Choose a place that you may write to."
    return number, cause.rstrip("."), "Choose another place, or put that right."


def _explain_windows(
    error: BaseException, path: Path, number: int | None, cause: str, remedy: str
) -> tuple[int | None, str, str]:
    """Say what Windows does not: that a file may be open elsewhere, or that a path is too long."""
    length = len(os.path.abspath(name_unfinished(path)))
    if number in _TOO_LONG and length > _LONGEST_PATH:
        told = f"Windows takes {_LONGEST_PATH} characters in a path, and this one has {length} while it is written"
        return number, told, "Choose a shorter folder."
    plain = number == errno.EACCES and _find_windows_number(error) is None  # no more is known
    if plain and path.is_file() and os.access(path, os.W_OK):
        return number, "another program may have it open", "Close it there and try again, or choose another place."
    return number, cause, remedy


def _find_os_error(error: BaseException) -> OSError | None:
    """Error of the system; xlsxwriter has it as the argument of its own."""
    inside = [error, *error.args[:1]]
    return next((one for one in inside if isinstance(one, OSError)), None)


def _find_number(error: BaseException) -> int | None:
    inner = _find_os_error(error)
    if inner is not None and inner.errno is not None:
        return inner.errno
    found = _OS_ERROR.search(str(error))
    if found is None:
        return None
    return _OF_WINDOWS.get(int(found[1]), errno.EIO) if WINDOWS else int(found[1])


def _find_windows_number(error: BaseException) -> int | None:
    """The number that Windows gave an error; None elsewhere, and where Python was not told."""
    number: int | None = getattr(_find_os_error(error), "winerror", None)
    told = _OS_ERROR.search(str(error)) if WINDOWS and number is None else None
    return number if told is None else int(told[1])


def _is_elsewhere(error: BaseException, path: Path) -> bool:
    """Whether an error names a file that has nothing to do with ``path``."""
    inner, told = _find_os_error(error), _OS_ERROR.search(str(error))
    name = inner.filename if inner is not None and inner.filename is not None else told and told["file"]
    if not isinstance(name, str):
        return False
    named, place = Path(name), Path(os.path.realpath(path))
    ours = named in (path, place, *path.parents, *place.parents) or place in named.parents
    return not (ours or _in_unfinished(named))


def _in_unfinished(path: Path) -> bool:
    return any(map(is_unfinished, (path, *path.parents)))


def _follow(path: Path) -> Path:
    """Place of a file behind all links: a link stays, its target is replaced."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _stat(place: Path) -> os.stat_result | None:
    try:
        return os.stat(place)
    except FileNotFoundError:
        return None


def _refuse_reserved(path: Path) -> None:
    """Refuse a name that Windows keeps for a device, whatever its ending: CON, com1.csv."""
    name = path.name.partition(".")[0].strip()
    if WINDOWS and name.casefold() in RESERVED:
        cause, remedy = f"Windows keeps the name {name} for a device", "Choose another name."
        raise WriteError(_format_failure(path, cause, remedy), file=str(path), cause=cause, remedy=remedy)


def _refuse_protected(place: Path, known: os.stat_result | None) -> None:
    """Refuse a folder, and a file that may not be written to though its folder may."""
    if known is not None:
        os.close(os.open(place, os.O_WRONLY))


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe, a device or an open file of this process: written through, never replaced."""
    if _find_descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:  # not there yet, or nothing that could be written to, which the writer reports
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _find_descriptor(path: Path) -> int | None:
    """Number of an open file that a path such as /dev/stdout names, by itself or by a link."""
    here = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        if _STREAM.fullmatch(here):
            name = os.path.basename(here)
            return _NUMBERS[name] if name in _NUMBERS else int(name)
        if not os.path.islink(here):
            return None
        here = os.path.normpath(os.path.join(os.path.dirname(here), os.readlink(here)))
    return None


def _write_through(file: Path, stream: Path) -> None:
    """Copy a file to a pipe or device; one that is open already is not opened again, which would cut it."""
    number = _find_descriptor(stream)
    handle = os.open(stream, os.O_WRONLY) if number is None else os.dup(number)
    with file.open("rb") as source, os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target)


def name_unfinished(path: Path) -> Path:
    """Name of a file until it is whole, beside its place."""
    name = path.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return path.with_name(f"{name}.{os.getpid()}.unfinished")


def is_unfinished(path: Path) -> bool:
    """Whether a file is one that a crash of ours left behind, by its name."""
    return _UNFINISHED.fullmatch(path.name) is not None


def remove_unfinished(folders: Iterable[Path]) -> None:
    """Take away what a crash left behind in these folders; their own subfolders are not looked into."""
    for folder in folders:
        for file in folder.iterdir() if folder.is_dir() else ():
            if is_unfinished(file):
                file.unlink(missing_ok=True)


def flush_file(file: Path) -> None:
    """Make a file last through a power cut before it is called by its name."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())


def _flush_folder(folder: Path) -> None:
    """Make the move itself last through a power cut, where the system lets one open a folder."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read, and to write two results to one file."""
    read = [file for file in inputs if file.exists()]
    taken: set[str] = set()
    for output in outputs:
        if any(_is_same(output, file) for file in read):
            raise BadOption(
                f"{output.name} is one of the files that are read, and would be written over. Write to another "
                "file (--out).",
                file=str(output),
            )
        place = os.path.normcase(os.path.realpath(output))
        if place in taken:
            raise BadOption(
                f"Two results would be written to {output.name}. Choose another name.", file=str(output)
            )
        taken.add(place)


def _is_same(output: Path, file: Path) -> bool:
    return output.exists() and not is_stream(output) and os.path.samefile(output, file)


def refuse_foreign(
    files: Iterable[Path], is_ours: Callable[[Path], bool], what: str = "file that rekka wrote"
) -> None:
    """Refuse to write over files besides the one that was named, unless rekka wrote them before."""
    for file in files:
        if file.is_dir():
            raise BadOption(f"{file.name} is a folder; a file is needed.", file=str(file))
        if os.path.lexists(file) and not is_ours(file):
            raise BadOption(
                f"{file.name} is there already, and is no {what}. Choose another name or folder, or move the "
                "file away.",
                file=str(file),
            )


def refuse_file(folder: Path) -> None:
    """Refuse a file where a folder is needed."""
    if folder.exists() and not folder.is_dir():
        raise BadOption(f"{folder.name} is a file; a folder is needed.", folder=str(folder))


def has_mark(*marks: bytes) -> Callable[[Path], bool]:
    """Return the test of whether a file has one of our marks near its beginning or end."""

    def look(file: Path) -> bool:
        with file.open("rb") as stream:
            ends = stream.read(_HEAD)
            stream.seek(max(file.stat().st_size - _HEAD, 0))
            ends += stream.read(_HEAD)
        return any(mark in ends for mark in marks)

    return look


def has_columns(*names: str) -> Callable[[Path], bool]:
    """Return the test of whether a CSV file has these columns, as a table of ours has."""

    def look(file: Path) -> bool:
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            head = stream.readline(_HEAD)
        return set(names) <= set(next(csv.reader([head]), []))

    return look


LONGEST_SLUG = 100  # bytes: a file system allows 255 in a name, Windows 260 in a whole path
DIGEST = 12  # characters of a SHA-256
RESERVED = ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"))


def name_slug(name: str) -> str:
    """A name as part of a file's name; of a long one the beginning and a digest of the whole."""
    slug = re.sub(r"[^\w]+", "-", unicodedata.normalize("NFC", name.lower())).strip("-") or "case"
    if len(slug.encode()) <= LONGEST_SLUG:
        return slug
    digest = hashlib.sha256(name.encode()).hexdigest()[:DIGEST]
    beginning = slug.encode()[: LONGEST_SLUG - DIGEST - 1].decode(errors="ignore")
    return f"{beginning}-{digest}"


def name_apart(names: Sequence[str]) -> list[str]:
    """Slugs of names, no two alike for a file system that ignores capitals, none reserved."""
    taken, found = set(RESERVED), []
    for name in names:
        slug = name_slug(name)
        choices = (f"{slug}{f'-{number}' if number else ''}" for number in count())
        found.append(next(choice for choice in choices if choice.casefold() not in taken))
        taken.add(found[-1].casefold())
    return found
