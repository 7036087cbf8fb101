"""The folder that the page works in: tables and runs, each under an id of its own.

    tables/ID/table.json   the draft: name, kind of file, how it is to be read
    tables/ID/table.csv    an uploaded table; one that the user put into the workspace stays where it is
    runs/ID/job.json       what is to be done, and how far it is
    runs/ID/study/         a run folder, as ``rekka compare`` makes it; a user's own stays where it is

Names that came with files are shown and never used as paths. What lies behind a link that leads out of the folder
is not there.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rekka.core.errors import BadOption, DamagedFile, InputError
from rekka.core.files import make_folder, write_text
from rekka.core.folders import LOCK, PLAN, digest, locate
from rekka.core.validation import find_invalid
from rekka.data.panel import list_sources
from rekka.data.tables import EXCEL, PARQUET, TEXT
from rekka.data.transitions import ReadingOptions

SUFFIXES = (*TEXT, *EXCEL, *PARQUET)
TABLES, RUNS, STUDY = "tables", "runs", "study"
DRAFT, MAPPING, JOB = "table.json", "mapping.toml", "job.json"
MOST_LISTED, DEEPEST = 200, 3  # of what a user put into the workspace, and folders below it
LONGEST_NAME = 200  # characters of a name that is shown
State = Literal["waiting", "working", "done", "cancelled", "stopped", "failed"]
Kind = TypeVar("Kind", bound=BaseModel)
_ID = re.compile(r"[0-9a-f]{16}")


class NotThere(InputError):
    """A table, run or page that is not there."""


class Draft(BaseModel):
    """A table as it is to be read: ``name`` is shown, ``place`` is the path of a table that stays where it is.

    ``mapping`` has the sections of a mapping file, without None; the paths of joined files count from the table's
    folder, such as ../ID/table.csv. ``allow`` are codes of checks that do not stop the work.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    suffix: str = ""
    size: int = 0
    place: str | None = None
    made: datetime = Field(default_factory=lambda: datetime.now().astimezone())
    mapping: dict[str, Any] = {}
    allow: tuple[str, ...] = ()
    nbi: bool = False


@dataclass(frozen=True)
class StoredTable:
    """A table of the workspace: its ``file`` (or folder of files), and the draft of how it is read."""

    id: str
    folder: Path
    file: Path
    draft: Draft

    @property
    def mapping_file(self) -> Path:
        """Mapping of the draft as a file, which ``rekka compare --mapping`` reads alike."""
        return self.folder / MAPPING

    @property
    def mapping(self) -> dict[str, Any]:
        """Mapping with joined files by their full paths."""
        found = dict(self.draft.mapping)
        if "join" in found:
            found["join"] = [one | {"file": str(self._locate(one["file"]))} for one in found["join"]]
        return found

    def _locate(self, name: str) -> Path:
        """A joined file, which is in the workspace as the table is."""
        file, workspace = locate(self.folder, name), self.folder.parent.parent
        if not file.resolve().is_relative_to(workspace.resolve()):
            raise NotThere(f"{file.name} leads out of the workspace.")
        return file

    @property
    def options(self) -> ReadingOptions:
        """How the table is read, for every function that reads tables."""
        return ReadingOptions(self.mapping or None, {}, self.draft.nbi, self.draft.allow)

    @property
    def signature(self) -> str:
        """Digest of the draft and of all files that are read: the table or those of its folder, and joins."""
        joined = self.mapping.get("join", [])
        inside = self.file.iterdir() if self.file.is_dir() else ()
        files = sorted({self.file, *inside, *(Path(join["file"]) for join in joined)})
        marks = [(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in files if one.exists()]
        return digest(f"{marks} {self.draft.model_dump_json()}".encode())

    def save(self, draft: Draft) -> StoredTable:
        """Keep another draft, and its mapping as a file."""
        write_text(self.mapping_file, tomli_w.dumps(draft.mapping))
        write_text(self.folder / DRAFT, draft.model_dump_json(indent=1) + "\n")
        return StoredTable(self.id, self.folder, self.file, draft)


class Ask(BaseModel):
    """A job: the options of ``rekka compare`` and what follows it. ``table`` is a path in the workspace.

    ``mapping`` has joined files by their full paths. ``threshold`` and ``years`` are those of the forecast;
    None for the default.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: str | None = None  # None: the demo
    mapping: dict[str, Any] = {}
    allow: tuple[str, ...] = ()
    nbi: bool = False
    models: Literal["auto"] | None = None
    stability: bool = False
    threshold: str | None = None
    years: int | None = Field(default=None, ge=1, le=200)
    lang: str = "en"

    @property
    def reading(self) -> ReadingOptions:
        """How the table is read."""
        return ReadingOptions(self.mapping or None, {}, self.nbi, self.allow)


class Job(BaseModel):
    """A run: what is asked for, and its state. ``place`` is the path of a run folder that a user put there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    ask: Ask | None = None  # None: a run folder that was opened
    place: str | None = None
    table: str | None = None  # id of the table
    made: datetime = Field(default_factory=lambda: datetime.now().astimezone())
    begun: datetime | None = None
    ended: datetime | None = None
    queued: datetime = Field(default_factory=lambda: datetime.now().astimezone())
    state: State = "waiting"
    message: dict[str, Any] | None = None  # a sentence to be said in the reader's language


@dataclass(frozen=True)
class Run:
    """A run of the workspace: its job, and ``study``, a run folder as ``rekka compare`` makes it."""

    id: str
    folder: Path
    study: Path
    job: Job

    @property
    def mapping_file(self) -> Path:
        """Mapping of the job as a file."""
        return self.folder / MAPPING

    @property
    def source(self) -> str | None:
        """Id of the table that it is made of; None where that is not listed any more."""
        name = self.job.table or ""
        listed = _ID.fullmatch(name) and (self.folder.parent.parent / TABLES / name / DRAFT).is_file()
        return name if listed else None

    @property
    def state(self) -> State:
        """How far it is."""
        return self.job.state

    def save(self, job: Job) -> Run:
        """Keep another state."""
        write_text(self.folder / JOB, job.model_dump_json(indent=1) + "\n")
        return Run(self.id, self.folder, self.study, job)


@dataclass(frozen=True)
class FoundPath:
    """A table or run folder that the user put into the workspace: its path there."""

    place: str
    kind: Literal["table", "folder", "run"]


class Workspace:
    """Tables and runs in one folder, which is made if need be and is its owner's alone."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.folder = folder.resolve()
        if (self.folder / LOCK).is_symlink():
            raise BadOption(f"{LOCK} in {folder.name} is a link. Choose another workspace.", folder=str(folder))
        for name in (TABLES, RUNS):
            made = self.folder / name
            make_folder(made)
            self._refuse_outside(made)
            made.chmod(0o700)

    # Tables

    def tables(self) -> list[StoredTable]:
        """Tables, the latest first; one whose draft is damaged is left out."""
        found = [table for name in self._list_ids(TABLES) if (table := self._try_table(name)) is not None]
        return sorted(found, key=lambda one: one.draft.made, reverse=True)

    def _try_table(self, name: str) -> StoredTable | None:
        try:
            return self.table(name)
        except (NotThere, DamagedFile):
            return None

    def table(self, name: str) -> StoredTable:
        """The table of an id."""
        folder = self.entry(TABLES, name)
        draft = read_model(folder / DRAFT, Draft)
        place = self.folder / draft.place if draft.place else folder / f"table{draft.suffix}"
        if draft.suffix not in (*SUFFIXES, ""):
            raise NotThere(f"The table {name} is of no kind that can be read.")
        return StoredTable(name, folder, self.source(place), draft)

    def new_table(self, name: str) -> tuple[str, Path]:
        """Place for a table of this name: an id, and the file to be filled. ``add_table`` lists it."""
        suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
        if suffix not in SUFFIXES:
            raise BadOption(
                f"{shorten(name)} ends in {suffix or 'nothing'}; a table ends in {', '.join(SUFFIXES)}.", file=name
            )
        made = self._new_folder(TABLES)
        return made.name, made / f"table{suffix}"

    def add_table(self, file: Path, name: str) -> StoredTable:
        """List a file that was filled in its place."""
        shown = shorten(PurePosixPath(name.replace("\\", "/")).name)
        draft = Draft(name=shown, suffix=file.suffix, size=file.stat().st_size)
        return StoredTable(file.parent.name, file.parent, file, draft).save(draft)

    def open_table(self, place: str, name: str | None = None) -> StoredTable:
        """List a table, or a folder of tables, that lies in the workspace."""
        file = self.source(self.folder / place)
        known = [table for table in self.tables() if table.draft.place == place]
        if known:
            return known[0]
        draft = Draft(name=shorten(name or file.name), suffix="" if file.is_dir() else file.suffix.lower(),
                      size=0 if file.is_dir() else file.stat().st_size, place=place)  # fmt: skip
        made = self._new_folder(TABLES)
        return StoredTable(made.name, made, file, draft).save(draft)

    # Runs

    def runs(self) -> list[Run]:
        """Runs, the latest first; one whose job is damaged is left out."""
        found = [run for name in self._list_ids(RUNS) if (run := self._try_run(name)) is not None]
        return sorted(found, key=lambda one: one.job.made, reverse=True)

    def _try_run(self, name: str) -> Run | None:
        try:
            return self.run(name)
        except (NotThere, DamagedFile):
            return None

    def run(self, name: str) -> Run:
        """The run of an id."""
        folder = self.entry(RUNS, name)
        job = read_model(folder / JOB, Job)
        study = folder / STUDY
        if study.is_symlink():
            raise NotThere(f"The run folder of {name} is a link.")
        return Run(name, folder, self.inside(self.folder / job.place) if job.place else study, job)

    def new_run(self, job: Job) -> Run:
        """List a job that waits."""
        made = self._new_folder(RUNS)
        run = Run(made.name, made, made / STUDY, job)
        write_text(run.mapping_file, tomli_w.dumps({} if job.ask is None else job.ask.mapping))
        return run.save(job)

    def open_run(self, place: str) -> Run:
        """List a run folder that lies in the workspace."""
        study = self.inside(self.folder / place)
        for path in study.rglob("*"):
            if path.is_symlink():
                self.inside(path)
        known = [run for run in self.runs() if run.job.place == place]
        if known:
            return known[0]
        made = self._new_folder(RUNS)
        job = Job(name=shorten(study.name), place=place, state="done")
        return Run(made.name, made, study, job).save(job)

    # What the user put there

    def found(self) -> list[FoundPath]:
        """Tables and run folders in the workspace besides our own; hidden ones and links are left out."""
        return [one for one, _ in zip(self._search(self.folder, DEEPEST), range(MOST_LISTED), strict=False)]

    def _search(self, folder: Path, depth: int) -> Iterator[FoundPath]:
        try:
            entries = sorted(os.scandir(folder), key=lambda one: one.name)
        except OSError:  # a folder that is not ours to look into
            return
        for entry in entries:
            path = Path(entry.path)
            if (
                entry.is_symlink()
                or entry.name.startswith(".")
                or (path.parent == self.folder and entry.name in (TABLES, RUNS))
            ):
                continue
            place = path.relative_to(self.folder).as_posix()
            if entry.is_file() and path.suffix.lower() in SUFFIXES:
                yield FoundPath(place, "table")
            elif entry.is_dir() and (path / PLAN).is_file():
                yield FoundPath(place, "run")
            elif entry.is_dir():
                if _holds_tables(path):
                    yield FoundPath(place, "folder")
                if depth > 1:
                    yield from self._search(path, depth - 1)

    def find(self, place: str, kind: str) -> FoundPath:
        """Whatever lies at a path, if it is one that ``found`` lists."""
        for one in self.found():
            if (one.place, one.kind) == (place, kind):
                return one
        raise NotThere(f"There is no {kind} {shorten(place)} in the workspace.")

    # Places

    def inside(self, path: Path) -> Path:
        """A path that is there, and is no way out of the workspace."""
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            raise NotThere(f"{path.name} is not there.") from None
        if not real.is_relative_to(self.folder):
            raise NotThere(f"{path.name} leads out of the workspace.")
        return real

    def source(self, path: Path) -> Path:
        """A table, or a folder of tables, of which none is behind a link that leads out."""
        found = self.inside(path)
        for one in list_sources(found):
            self.inside(one)
        return found

    def _refuse_outside(self, made: Path) -> None:
        try:
            self.inside(made)
        except NotThere:
            raise BadOption(
                f"{made.name} in {self.folder} is a link that leads out of it. Choose another workspace.",
                folder=str(self.folder),
            ) from None

    def entry(self, kind: str, name: str) -> Path:
        """Folder of an id, which cannot be a path."""
        if not _ID.fullmatch(name):
            raise NotThere(f"There is nothing of the id {shorten(name)}.")
        folder = self.folder / kind / name
        if folder.is_symlink() or not (folder / (DRAFT if kind == TABLES else JOB)).is_file():
            raise NotThere(f"There is nothing of the id {name}.")
        return self.inside(folder)

    def _list_ids(self, kind: str) -> list[str]:
        return [entry.name for entry in os.scandir(self.folder / kind) if _ID.fullmatch(entry.name)]

    def _new_folder(self, kind: str) -> Path:
        made = self.folder / kind / secrets.token_hex(8)
        made.mkdir(mode=0o700)
        return made

    def drop(self, kind: str, made: Path) -> None:
        """Delete a folder that was made and not listed."""
        assert made.parent == self.folder / kind
        shutil.rmtree(made)

    def remove(self, kind: str, name: str) -> None:
        """Delete a table or run of ours; what the user put there stays."""
        shutil.rmtree(self.entry(kind, name))


def _holds_tables(folder: Path) -> bool:
    """Whether a folder can be read as a table: inspections and what belongs to them, or parts in Parquet."""
    try:
        return bool(list_sources(folder))
    except (InputError, OSError):
        return False


def shorten(name: str) -> str:
    """A name that came from outside, cut if it is no name at all."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


def read_model(file: Path, kind: type[Kind]) -> Kind:
    """A file of the workspace as checked data."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        raise NotThere(f"{file.name} is not there.") from None
    except ValidationError as error:
        place, told = find_invalid(error)
        raise DamagedFile(f"{file.name} cannot be read at {place}: {told}.", file=str(file)) from None
