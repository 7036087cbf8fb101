"""A run folder that survives anything: begun, held by one process, taken up again.

study.toml         the plan: ``rekka compare study.toml`` runs it again. Written first
partition.parquet  the rows, each with its part
provenance.json    what it was run on and with: digests, seeds, versions, machine, command
cases/ trials/ models/ scalings/ choices/ confirmation.json log.txt    see records
trials.parquet, .csv, .json; selection.csv; methods.csv; ...   tables, written when all trials are done
report.html, .json                                             the report, and its numbers
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadOption, DamagedFile, RunFolderError, UnreadableTable, count_of
from rekka.core.files import is_unfinished, make_folder, remove_unfinished, write_text, write_whole
from rekka.core.folders import LOCK, LOG, PLAN, hold
from rekka.core.seals import plain, read_sealed, seal, write_sealed
from rekka.core.sheets import to_parquet, write_csv
from rekka.fleet.document import FORECAST
from rekka.fleet.store import OWN, is_forecast
from rekka.model.clock import START
from rekka.streaming import blocks
from rekka.study.large import PARTITION as PARTITION
from rekka.study.large import AnyRows, LargeRows, choose_whole, refuse_unfit, survey_file
from rekka.study.plan import BEFORE_CLOCK, VERSION, StudyPlan, read_plan
from rekka.study.records import FOLDERS, TRIALS
from rekka.study.rows import StudyRows
from rekka.study.stability_tables import STABILITY_TABLES

PROVENANCE = "provenance.json"
_RUN = "rekka-run"
TABLES = (
    "trials", "cases", "baselines", "selection", "methods", "agreement", "presets", "floor", "hypotheses",
    "partition", "provenance", "confirmation", "verdicts", "optimism", "report",
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
            f"{path.name} holds a study already, with {count_of(done, 'trial')} done. Go on with it with "
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
            file.unlink()
        for folder in (
            *FOLDERS,
            *(str(one.relative_to(path)) for one in path.glob("stability/draws-*")),
            "stability",
            "forecast",
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


def keep_rows(path: Path, rows: AnyRows, provenance: Mapping[str, Any]) -> None:
    """Write the rows, unless they were split into their file, and what they came from: the trials can begin."""
    make_folders(path)
    if isinstance(rows, StudyRows):
        write_whole(path / PARTITION, to_parquet(rows.frame))
    write_sealed(path / PROVENANCE, _RUN, dict(provenance))


def read_provenance(path: Path) -> dict[str, Any] | None:
    """What a run was begun on and with; None where it has not got that far."""
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
        raise DamagedFile(f"{PARTITION} has been changed since the run began.", file=str(file))
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
) -> AnyRows:
    """The same; very many stay in their file, which is not looked through where it is ``trusted``."""
    file, data = path / PARTITION, provenance["data"]
    if sum(number for *_, number in data["rows"]) <= blocks.WHOLE or not file.exists():
        return read_rows(path, provenance)
    try:
        survey = survey_file(file, data["covariates"])
    except UnreadableTable as error:
        raise DamagedFile(f"{PARTITION} is not whole: {error}", file=str(file)) from None
    rows = LargeRows(
        file=file,
        covariates=tuple(data["covariates"]),
        scheme=data["scheme"],
        survey=survey,
        memory=memory,
        whole=choose_whole(plan.study, survey, memory),
        workers=workers,
        notes=tuple(data["notes"]),
        audit=_read_audit(data),
    )
    if not trusted:
        refuse_unfit(rows, plan.study)
        if rows.digest() != data["rows_sha256"]:
            raise DamagedFile(f"{PARTITION} has been changed since the run began.", file=str(file))
    return rows


def mark_run(plan: StudyPlan, rows_sha256: str) -> str:
    """What tells the trials of this run from those of others: the rows and all that is done with them."""
    study = plan.study.model_dump(mode="json")
    if plan.study.clock == START:  # the only one in runs from before there was a choice
        del study["clock"]
    return seal([rows_sha256, study, plan.guard.model_dump(mode="json")])


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
