"""The run folder of a study: begun, held by one process, resumed after any crash.

study.toml         the plan: ``rekka compare study.toml`` runs it again. Written first
partition.parquet  the rows, each with its part
provenance.json    what it was run on and with: digests, seeds, versions, machine, command
cases/             what is known of each component, its baselines among it
trials/            a file for each trial, sealed with its own SHA-256 and written last
models/ scalings/  the fitted models and operators as JSON; the trial's file holds their SHA-256
choices/           what was chosen for each component under each preset, and why
confirmation.json  every look at the golden rows
elements.json      the elements of histories that were chosen (--models), and backtest/, their test
log.txt            what happened when
trials.parquet, .csv, .json; selection.csv; methods.csv; ...   tables, written when all trials are done
report.html, .json                                             the report, and its numbers

A trial is done when its file in trials/ is whole and of this run, and its model and operator are as it says.
Everything else is recomputed. Files that rekka did not write are left alone.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pydantic import ValidationError

from rekka.core.errors import BadOption, DamagedFile, RunFolderError, UnreadableTable, count_of
from rekka.core.files import (
    append_line,
    is_unfinished,
    make_folder,
    remove_file,
    remove_unfinished,
    write_text,
    write_whole,
)
from rekka.core.folders import LOCK, LOG, PLAN, digest, hold, plain, read_sealed, seal, write_sealed
from rekka.core.sheets import to_parquet, write_csv
from rekka.fleet.backtest import STORE, list_files
from rekka.fleet.document import FORECAST
from rekka.fleet.store import OWN, is_forecast
from rekka.streaming import blocks
from rekka.study.choice import Choice
from rekka.study.confirmation import Look
from rekka.study.elements import FOLDER as BACKTEST
from rekka.study.elements import ElementChoice
from rekka.study.plan import BEFORE_CLOCK, VERSION, StudyPlan, read_plan
from rekka.study.rows import PARTITION, Room, StudyRows, changed_rows
from rekka.study.trial import Case, Fitted, Key, Trial, Value

CASES, TRIALS, MODELS, SCALINGS, CHOICES = "cases", "trials", "models", "scalings", "choices"
CONFIRMATION = "confirmation.json"
FOLDERS = (CASES, TRIALS, MODELS, SCALINGS, CHOICES)
LONGEST_SLUG = 40
ELEMENTS = "elements.json"
_LOOKS, _ELEMENTS = "rekka-confirmation", "rekka-elements"

Pair = tuple[str, str]  # preset and case


class RunRecords:
    """Trials, cases, choices and looks at golden rows as they are made, kept in memory."""

    def __init__(self) -> None:
        self.trials: dict[Key, Trial] = {}
        self.cases: dict[str, Case] = {}
        self.choices: dict[Pair, Choice] = {}
        self.looks: list[Look] = []
        self._fitted: dict[Key, Fitted] = {}

    def add_case(self, case: Case) -> None:
        """Keep what is known of a case."""
        self.cases[case.name] = case

    def add_trial(self, fitted: Fitted) -> None:
        """Keep a trial with its model and operator."""
        self.trials[fitted.trial.key] = fitted.trial
        self._fitted[fitted.trial.key] = fitted

    def fitted(self, key: Key) -> Fitted:
        """A trial with its model and operator."""
        return self._fitted[key]

    def add_choice(self, choice: Choice) -> None:
        """Keep what was chosen for a case under a preset."""
        self.choices[choice.preset, choice.case] = choice

    def add_look(self, look: Look) -> None:
        """Keep a look at the golden rows, in the place of one that was refused altogether."""
        self.looks = [*(one for one in self.looks if one.counts), look]

    def earlier_looks(self) -> dict[str, list[Look]]:
        """Looks at golden rows that were taken before, by the name of their run: in memory its own alone."""
        return {"this study": self.looks}

    def note(self, line: str) -> None:
        """Write a line of the log, where there is one."""


class Kind(NamedTuple):
    """One kind of record: the format and the field of its files, its class, and the key of a record."""

    format: str
    field: str
    value: type[Value]
    identify: Callable[[Any], Any]


KINDS = {
    CASES: Kind("rekka-case", "case", Case, lambda case: case.name),
    TRIALS: Kind("rekka-trial", "trial", Trial, lambda trial: trial.key),
    CHOICES: Kind("rekka-choice", "choice", Choice, lambda choice: (choice.preset, choice.case)),
}


class Files(RunRecords):
    """Records in a run folder. ``run`` is its mark, which every file bears: those of another run are not taken.

    ``rungs`` are the trials that the ladder may add to those of the plan.
    """

    def __init__(self, path: Path, keys: Sequence[Key], run: str, rungs: Sequence[Key] = ()) -> None:
        super().__init__()
        self.path, self.run = path, run
        self.damaged: list[str] = []
        cases = dict.fromkeys(key.case for key in keys)
        pairs = dict.fromkeys((key.preset, key.case) for key in keys)
        self._names: dict[str, dict[Any, str]] = {
            CASES: {case: f"{number:03d}-{_slug(case)}.json" for number, case in enumerate(cases, start=1)},
            TRIALS: {
                key: f"{number:04d}-{_slug(key.case)}-{key.preset}-{_slug(key.method)}.json"
                for number, key in enumerate((*keys, *rungs), start=1)
            },
            CHOICES: {
                pair: f"{number:03d}-{_slug(pair[1])}-{pair[0]}.json" for number, pair in enumerate(pairs, start=1)
            },
        }
        self._digests: dict[Key, dict[str, str | None]] = {}

    def load(self) -> None:
        """Read what is whole; what is not will be made again."""
        for folder, there in ((CASES, self.cases), (TRIALS, self.trials), (CHOICES, self.choices)):
            for key, name in self._names[folder].items():
                if (self.path / folder / name).exists():
                    self._load(folder, key, self.path / folder / name, there)
        try:
            self.looks = read_looks(self.path)
        except DamagedFile:
            self.damaged.append(CONFIRMATION)
            self.looks = [Look(made="at a time not known", forced=False, results=(), refused={}, unreadable=True)]

    def _load(self, folder: str, key: Any, file: Path, there: dict[Any, Any]) -> None:
        kind = KINDS[folder]
        try:
            body = read_sealed(file, kind.format)
            if body["run"] != self.run:
                raise DamagedFile(f"{file.name} is of another run.")
            found = kind.value.model_validate(body[kind.field])
            if kind.identify(found) != key:
                raise DamagedFile(f"{file.name} is of another {kind.field}.")
            if folder == TRIALS:
                digests = {place: body["files"][place] for place in (MODELS, SCALINGS)}
                if any(one not in (None, self._digest(place, key)) for place, one in digests.items()):
                    raise DamagedFile(f"{file.name} has another model or operator, or none.")
                self._digests[key] = digests  # only now: a file whose digest is known is not written again
        except (DamagedFile, ValidationError, KeyError, TypeError):
            self.damaged.append(f"{folder}/{file.name}")
        else:
            there[key] = found

    def _digest(self, folder: str, key: Key) -> str | None:
        file = self.path / folder / self._names[TRIALS][key]
        return digest(file.read_bytes()) if file.exists() else None

    def _write(self, folder: str, value: Value, **more: Any) -> None:
        """Write a record, sealed and marked with the run."""
        kind = KINDS[folder]
        file = self.path / folder / self._names[folder][kind.identify(value)]
        body = {"run": self.run, kind.field: json.loads(value.model_dump_json()), **more}
        write_sealed(file, kind.format, body)

    def add_case(self, case: Case) -> None:
        """Write what is known of a case."""
        self._write(CASES, case)
        super().add_case(case)

    def add_trial(self, fitted: Fitted) -> None:
        """Write a trial: its model and operator first, its own file last."""
        trial, name = fitted.trial, self._names[TRIALS][fitted.trial.key]
        texts = {MODELS: fitted.model, SCALINGS: fitted.scaling}
        digests = {folder: None if text is None else digest(text.encode()) for folder, text in texts.items()}
        was = self._digests.pop(trial.key, {})
        for folder, text in texts.items():
            if text is not None and digests[folder] != was.get(folder):
                write_text(self.path / folder / name, text, flush=False)  # known by its digest
        self._write(TRIALS, trial, files=digests)
        self.trials[trial.key], self._digests[trial.key] = trial, digests

    def fitted(self, key: Key) -> Fitted:
        """A trial with its model and operator, read from their files."""
        texts = (
            None
            if self._digests[key][folder] is None
            else (self.path / folder / self._names[TRIALS][key]).read_bytes().decode()
            for folder in (MODELS, SCALINGS)
        )
        return Fitted(self.trials[key], *texts)

    def add_choice(self, choice: Choice) -> None:
        """Write what was chosen for a case under a preset."""
        self._write(CHOICES, choice)
        super().add_choice(choice)

    def add_look(self, look: Look) -> None:
        """Write a look at the golden rows; those before it stay, unless they were refused altogether."""
        super().add_look(look)
        if CONFIRMATION in self.damaged:
            (self.path / CONFIRMATION).replace(self.path / f"{CONFIRMATION}.damaged")
            self.damaged.remove(CONFIRMATION)
        body = [json.loads(one.model_dump_json()) for one in self.looks]
        write_sealed(self.path / CONFIRMATION, _LOOKS, body)

    def earlier_looks(self) -> dict[str, list[Look]]:
        """Looks of this run, and of the runs in folders beside it."""
        found = {self.path.name: self.looks}
        for other in sorted(self.path.parent.glob(f"*/{CONFIRMATION}")):
            if other.parent.name != self.path.name:
                try:
                    found[other.parent.name] = read_looks(other.parent)
                except (DamagedFile, OSError) as error:
                    self.note(f"not taken into account: {other.parent.name}: {error}")
        return found

    def note(self, line: str) -> None:
        """Add a line to the log."""
        add_line(self.path / LOG, line)


def read_looks(run: Path) -> list[Look]:
    """The looks at the golden rows that a run has taken."""
    file = run / CONFIRMATION
    if not file.exists():
        return []
    try:
        return [Look.model_validate(one) for one in read_sealed(file, _LOOKS)]
    except (ValidationError, TypeError):
        raise DamagedFile(f"{CONFIRMATION} is of another version of rekka.", file=str(file)) from None


def write_elements(run: Path, found: Sequence[ElementChoice]) -> None:
    """Write the elements of histories that were chosen."""
    write_sealed(run / ELEMENTS, _ELEMENTS, [json.loads(one.model_dump_json()) for one in found])


def read_elements(run: Path) -> tuple[ElementChoice, ...]:
    """Elements of histories that a run has chosen; none where its file is not whole, and they are chosen again."""
    try:
        return tuple(ElementChoice.model_validate(one) for one in read_sealed(run / ELEMENTS, _ELEMENTS))
    except (FileNotFoundError, DamagedFile, ValidationError, TypeError):
        return ()


def add_line(log: Path, line: str) -> None:
    """Add a line to the log, with its moment and process."""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
    text = f"{moment} [{os.getpid()}] {' '.join(line.splitlines())}\n"
    append_line(log, text.encode(errors="backslashreplace"))  # a command may hold bytes that are no text


def _slug(name: str) -> str:
    """A name as part of a file's name, on any disk; the number before it tells equal ones apart."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:LONGEST_SLUG].strip("-") or "x"


PROVENANCE = "provenance.json"
STABILITY_TABLES = ("cases", "selection", "methods", "statuses", "refits")  # files of the folder stability, as CSV
_RUN = "rekka-run"
TABLES = (
    "trials", "cases", "baselines", "selection", "methods", "agreement", "presets", "floor", "hypotheses",
    "partition", "provenance", "confirmation", "verdicts", "optimism", "report", "ladder", "elements",
)  # fmt: skip


def refuse_occupied(path: Path) -> None:
    """Refuse to begin a run in a folder that holds something else, or a run. Hidden files do not count."""
    if not path.exists():
        return
    if not path.is_dir():
        raise RunFolderError(f"{path.name} is a file; a folder is needed.", folder=str(path))
    if (path / PLAN).exists():
        done = sum(file.suffix == ".json" for file in (path / TRIALS).glob("*"))
        raise RunFolderError(
            f"{path.name} holds a study already, with {count_of(done, 'trial')} done. Continue it with "
            f"rekka compare --resume {path.name}, or choose another folder for a new one.",
            folder=str(path),
        )
    others = sorted(f.name for f in path.iterdir() if not (f.name.startswith(".") or is_unfinished(f)))
    if others:
        raise RunFolderError(
            f"{path.name} holds other files ({', '.join(others[:3])}{', ...' if len(others) > 3 else ''}) "
            "and no study. Choose an empty or a new folder.",
            folder=str(path),
        )


def begin_run(path: Path, plan: StudyPlan) -> None:
    """Write the plan: from now on the run can be gone on with. Call it while holding the folder."""
    try:
        text = plan.to_toml().encode()
    except UnicodeEncodeError:
        raise BadOption(
            f"A path of the study is not text: {', '.join(map(ascii, plan.data.source))}. Rename the file.",
        ) from None
    tidy(path)
    write_whole(path / PLAN, text)


def withdraw_run(path: Path, *, made: bool) -> None:
    """Take back a run whose data were refused, and the folder too if it was ``made`` for it."""
    (path / PLAN).unlink()
    if made:
        with contextlib.suppress(OSError):  # not where files cannot be removed while they are open
            (path / LOCK).unlink()
            path.rmdir()


def clear_run(path: Path) -> None:
    """Take away a run that is there, so that another can begin in its place; files of others stay."""
    if not (path / PLAN).exists():
        return
    with hold(path):
        for file in list_own(path):
            remove_file(file)
        for folder in (
            *FOLDERS,
            *(str(one.relative_to(path)) for one in path.glob("stability/draws-*")),
            "stability",
            "forecast",
            f"{BACKTEST}/{STORE}",
            BACKTEST,
        ):
            with contextlib.suppress(OSError):  # not there, or files of others in it
                (path / folder).rmdir()


def list_own(path: Path) -> list[Path]:
    """The files that a run has written: in its folders, and its tables beside them."""
    ours = [file for folder in (*FOLDERS, "stability/draws-*") for file in path.glob(f"{folder}/[0-9]*.json")]
    ours += [path / "stability" / f"{name}.csv" for name in STABILITY_TABLES]
    forecast = path / "forecast"
    ours += [forecast / name for name in ((*OWN, FORECAST) if is_forecast(forecast) else ())]
    ours.append(forecast / LOCK)
    ours += [*list_files(path / BACKTEST)]
    tables = [file for kind in ("csv", "json", "parquet", "html") for file in path.glob(f"*.{kind}")]
    ours += [file for file in tables if file.stem in TABLES]
    return [file for file in (*ours, path / LOG, path / PLAN) if file.exists()]


def tidy(path: Path) -> None:
    """Take away the files that a crash left unfinished."""
    remove_unfinished([path, *(path / folder for folder in FOLDERS)])


def make_folders(path: Path) -> None:
    """Make the folders of a run that are not there."""
    for folder in FOLDERS:
        make_folder(path / folder)


def keep_rows(path: Path, rows: StudyRows, provenance: Mapping[str, Any]) -> None:
    """Write the rows, unless they were split into their file, and what they came from: the trials can begin."""
    make_folders(path)
    if not rows.streamed:
        write_whole(path / PARTITION, to_parquet(rows.frame))
    write_sealed(path / PROVENANCE, _RUN, dict(provenance))


def read_provenance(path: Path) -> dict[str, Any] | None:
    """Read what a run was begun on and with; None where it has not got that far."""
    if not (path / PROVENANCE).exists():
        return None
    found = dict(read_sealed(path / PROVENANCE, _RUN))
    if found["plan"].get("version") not in (BEFORE_CLOCK, VERSION):
        raise RunFolderError(
            f"{path.name} was made by rekka {found['versions']['rekka']}, whose trials this one does not read. "
            f"Run its plan again: rekka compare {path.name}/{PLAN} --out NEW.",
            folder=str(path),
        )
    return found


def read_rows(path: Path, provenance: Mapping[str, Any]) -> StudyRows:
    """The rows of a run as they were."""
    file, data = path / PARTITION, provenance["data"]
    try:
        frame = pl.read_parquet(io.BytesIO(file.read_bytes()))
    except FileNotFoundError:
        raise DamagedFile(f"{PARTITION} is gone.", file=str(file)) from None
    except pl.exceptions.PolarsError as error:
        raise DamagedFile(f"{PARTITION} is not whole: {str(error).splitlines()[0]}.", file=str(file)) from None
    rows = StudyRows(frame, tuple(data["covariates"]), data["scheme"], tuple(data["notes"]), _read_audit(data))
    if rows.digest() != data["rows_sha256"]:
        raise changed_rows(file)
    return rows


def _read_audit(data: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    return tuple((outcome, reason, count) for outcome, reason, count in data.get("audit", ()))  # 0.4.0 kept none


def open_kept_rows(
    path: Path,
    provenance: Mapping[str, Any],
    plan: StudyPlan,
    memory: int,
    *,
    workers: int = 1,
    trusted: bool = False,
) -> StudyRows:
    """Open the rows of a run; very many stay in their file, which is not read through where it is ``trusted``."""
    file, data = path / PARTITION, provenance["data"]
    if sum(number for *_, number in data["rows"]) <= blocks.WHOLE or not file.exists():
        return read_rows(path, provenance)
    own = (tuple(data["covariates"]), data["scheme"], tuple(data["notes"]), _read_audit(data))
    rows = StudyRows(file, *own, sha256=data["rows_sha256"])
    try:
        rows = replace(rows, room=Room.choose(plan.study, rows.survey, memory, workers))
    except UnreadableTable as error:
        raise DamagedFile(f"{PARTITION} is not whole: {error}", file=str(file)) from None
    if not trusted:
        rows.refuse_unfit(plan.study)
        if rows.digest() != rows.sha256:
            raise changed_rows(file)
    return rows


def mark_run(plan: StudyPlan, rows_sha256: str) -> str:
    """Mark the trials of a run: a digest of its rows and of all that is done with them."""
    return seal([rows_sha256, plan.study.identify(), plan.guard.identify()])


def load_plan(path: Path) -> StudyPlan:
    """The plan of a run folder."""
    if not path.is_dir():
        raise RunFolderError(f"There is no run folder {path.name}.", folder=str(path))
    if not (path / PLAN).exists():
        raise RunFolderError(
            f"{path.name} is not a run folder: there is no {PLAN} in it. "
            f"Start one with rekka compare DATA --out {path.name}.",
            folder=str(path),
        )
    return read_plan(path / PLAN)


def write_tables(path: Path, tables: Mapping[str, pl.DataFrame], documents: Mapping[str, Any]) -> None:
    """The study's tables, for people and for other programs."""
    for name, table in tables.items():
        write_csv(path / f"{name}.csv", table)
    write_whole(path / "trials.parquet", to_parquet(tables["trials"]))
    for name, document in documents.items():
        write_text(path / f"{name}.json", json.dumps(plain(document), ensure_ascii=False, indent=1) + "\n")
