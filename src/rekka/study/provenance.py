"""Provenance of a study: where its rows come from, what it was run on and with, and what has changed since.

A run that is resumed must find the rows it was begun on: unchanged sources are not read again, a damaged copy is
rebuilt, and other rows are refused with the first difference named.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from rekka.core.errors import BadOption, DamagedFile, InputError, RunFolderError, count_of
from rekka.core.folders import LOG, digest_file, locate, relate
from rekka.core.machine import describe_command, describe_machine, describe_versions
from rekka.data.mapping import load_mapping
from rekka.data.partition import PAPER_SEED, Partition
from rekka.data.reading import TableReading
from rekka.data.tables import is_folder
from rekka.data.transitions import ReadingOptions, Transitions, list_tables, read_options
from rekka.study.plan import StudyPlan, fit_once, make_plan
from rekka.study.rows import PARTITION, StudyRows, open_rows
from rekka.study.run_folder import PROVENANCE, add_line, keep_rows, open_kept_rows, read_provenance


def describe_tables(source: Sequence[str | Path], how: ReadingOptions, out: Path | None) -> dict[str, Any]:
    """The [data] of a plan for tables; paths count from the run folder, so that both can be moved together."""
    read = load_mapping(how.mapping, how.changes).model_dump(mode="json", exclude_unset=True, exclude_none=True)
    name = str if out is None else partial(relate, base=out)
    if "join" in read:
        read["join"] = [join | {"file": name(join["file"])} for join in read["join"]]
    plan = {"kind": "tables", "source": tuple(name(one) for one in source), "nbi": how.nbi, "mapping": read}
    return plan | {"allow": tuple(how.allow)}


def describe_data(data: Any, mapping: Any, out: Path | None) -> tuple[dict[str, Any], Any]:
    """The [data] of a plan, and the data where they do not come from files."""
    if data is None:
        return {"kind": "inventory", "seed": PAPER_SEED}, None
    given = {"kind": "given"}
    if isinstance(data, Transitions | Partition):
        if mapping is not None:
            raise BadOption("mapping says how a table is read; Transitions and a Partition need none.")
        return given, data
    how = read_options(mapping)
    joins = load_mapping(how.mapping, how.changes).join
    if not list_tables(data) or not all(isinstance(join.file, str | Path) for join in joins):
        return given, how.scan(data) or how.transitions(data)
    return describe_tables(list_tables(data), how, out), None


def describe_run(plan: StudyPlan, rows: StudyRows, base: Path) -> dict[str, Any]:
    """Data, seeds, versions, machine, command."""
    return {
        "begun": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": describe_command(),
        "plan": plan.model_dump(mode="json"),
        "methods": list(fit_once(plan, rows.covariates).study.methods),
        "data": {
            "files": digest_sources(plan, base),
            "rows_sha256": rows.digest(),
            "rows": [list(row) for row in rows.counts().rows()],
            "covariates": list(rows.covariates),
            "scheme": rows.scheme,
            "notes": list(rows.notes),
            "audit": [list(line) for line in rows.audit],
            "reading": _describe_reading(rows, base),
        },
        "seeds": {"partition": plan.partition.seed, "start": plan.study.seed, "inventory": plan.data.seed},
        "versions": describe_versions(),
        "machine": describe_machine(),
    }


def _describe_reading(rows: StudyRows, base: Path) -> dict[str, Any] | None:
    """Describe how the tables were read; joined files count from the run folder."""
    if rows.reading is None:
        return None
    moved = rows.reading.relocate(lambda file: relate(file, base))
    return moved.model_dump(mode="json", exclude_defaults=True)


def read_reading(begun: Mapping[str, Any], base: Path) -> TableReading | None:
    """Read how the tables of a run were read; of a run that did not keep it, what its plan says, if anything."""
    kept, data = begun["data"].get("reading"), begun["plan"]["data"]
    if kept is None and (data.get("kind") != "tables" or not (data["nbi"] or data["mapping"])):
        return None
    if kept is None:
        state = data["mapping"].get("state", {})
        kept = {"kind": "nbi" if data["nbi"] else "inspections", "mapping": data["mapping"], "given": state}
    return TableReading.model_validate(kept).relocate(lambda file: str(locate(base, file)))


def list_sources(plan: StudyPlan, base: Path) -> dict[str, Path]:
    """The files and folders that are read, by their names in the plan."""
    names = [*plan.data.source, *(join["file"] for join in plan.data.mapping.get("join", []))]
    return {name: locate(base, name) for name in names}


def digest_sources(plan: StudyPlan, base: Path) -> dict[str, str | None]:
    """SHA-256 of each file that is read, by its name in the plan; None where it is gone."""
    found: dict[str, str | None] = {}
    for name, path in list_sources(plan, base).items():
        inside = sorted(file for file in path.iterdir() if file.is_file()) if is_folder(path) else [path]
        for file in inside:
            label = name if file == path else f"{name}/{file.name}"
            found[label] = digest_file(file) if file.exists() else None
    return found


def differ_from(begun: Mapping[str, Any]) -> list[str]:
    """List differences of versions and machine from those a run was begun with: last digits may differ then."""
    now: dict[str, dict[str, Any]] = {"versions": describe_versions(), "machine": describe_machine()}
    return [
        f"{name} was {was} when the run began and is {now[section].get(name)}"
        for section in now
        for name, was in begun[section].items()
        if was != now[section].get(name)
    ]


Provenance = Mapping[str, Any]


def take_up(path: Path, plan: StudyPlan, data: Any = None, *, memory: int, workers: int = 1) -> StudyRows:
    """The rows of a run that was stopped, as they were; call it while holding the folder.

    Where ``data`` is given or a source file has changed, it must still give the same rows; where the folder's own
    copy is not there or not whole, it is made again from them.
    """
    begun, rows, trouble = None, None, "it was stopped before its rows were kept"
    try:
        begun = read_provenance(path)
        if begun is not None:
            refuse_other_plan(path, make_plan(PROVENANCE, **begun["plan"]), plan)
            rows = open_kept_rows(path, begun, plan, memory, workers=workers)
    except DamagedFile as error:
        trouble = str(error).rstrip(".")
    if begun is None or rows is None:
        return _restore(path, plan, begun, data, trouble, memory, workers)
    given = data is not None
    now = open_rows(plan, data, path, memory) if given else _read_changed(path, plan, begun, memory)
    if now is not None:
        _refuse_other_rows(path, rows, now, begun)
    return rows


def refuse_other_plan(path: Path, was: StudyPlan, now: StudyPlan) -> None:
    """Refuse to go on with other options than those the run was begun with."""
    differences = was.differences(now)
    if differences:
        raise RunFolderError(
            f"{path.name} is of another study: {'; '.join(differences)}. Its trials would not belong together. "
            "Start a new run, or put the plan back.",
            differences=differences,
        )


def _restore(
    path: Path, plan: StudyPlan, begun: Provenance | None, data: Any, trouble: str, memory: int, workers: int
) -> StudyRows:
    """Make the folder's copy of the rows again, and what is said of it."""
    if data is None:
        gone = [name for name, file in list_sources(plan, path).items() if not file.exists()]
        if plan.data.kind == "given" or gone:
            source = f"{', '.join(gone)} is gone" if gone else "its rows came from a program"
            raise RunFolderError(
                f"{path.name} cannot continue: {trouble}, and {source}. Give the rows with "
                f"rekka.resume_study({path.name!r}, data), or start a new run.",
                folder=str(path),
            )
    rows = open_rows(plan, data, path, memory, file=path / PARTITION, workers=workers)
    if begun is not None and rows.digest() != begun["data"]["rows_sha256"]:
        counts = {(case, part): number for case, part, number in begun["data"]["rows"]}
        _refuse(path, begun, f"{trouble}, and {_compare_counts(counts, _count(rows)) or 'other values are there'}")
    keep_rows(path, rows, describe_run(plan, rows, path) if begun is None else begun)
    add_line(path / LOG, f"rows kept again: {trouble}")
    return rows


def _read_changed(path: Path, plan: StudyPlan, begun: Provenance, memory: int) -> StudyRows | None:
    """The rows as the source files give them now; None where these are as they were, or gone."""
    was, now = begun["data"]["files"], digest_sources(plan, path)
    gone = [name for name in was if now.get(name) is None]
    changed = [name for name, found in now.items() if found not in (None, was.get(name))]
    if not changed:
        if gone:
            add_line(
                path / LOG, f"no longer there: {', '.join(gone)}; going on with the folder's copy of the rows"
            )
        return None
    if gone:
        _refuse(path, begun, f"{', '.join(changed)} is another file, and {', '.join(gone)} is gone")
    try:
        rows = open_rows(plan, None, path, memory)
    except InputError as error:
        _refuse(path, begun, f"{', '.join(changed)} is another file, which is refused: {str(error).rstrip('.')}")
    add_line(path / LOG, f"read again: {', '.join(changed)}, which has changed since the run began")
    return rows


def _refuse_other_rows(path: Path, was: StudyRows, now: StudyRows, begun: Provenance) -> None:
    if was.digest() != now.digest():
        _refuse(path, begun, describe_difference(was, now))


def _refuse(path: Path, begun: Provenance, difference: str) -> NoReturn:
    raise RunFolderError(
        f"The data of {path.name} have changed since it began on {begun['begun'][:10]}: {difference}. "
        "Start a new run, or put the data back.",
        difference=difference,
    )


def describe_difference(was: StudyRows, now: StudyRows) -> str:
    """The first thing in which two sets of rows differ."""
    if was.streamed or now.streamed:
        return _compare_counts(_count(was), _count(now)) or "other values are there, or in another order"
    return _describe_held(was, now)


def _describe_held(was: StudyRows, now: StudyRows) -> str:
    before, after = was.values(), now.values()
    if before.columns != after.columns:
        names = sorted(set(before.columns) ^ set(after.columns))
        return f"columns differ: {', '.join(names) or 'they are in another order'}"
    if counts := _compare_counts(_count(was), _count(now)):
        return counts
    for name in before.columns:
        if before[name].dtype != after[name].dtype:
            return f"{name} was {before[name].dtype} and is {after[name].dtype}"
    if before.equals(after):
        return "a zero has another sign"  # all that equality does not tell
    if before.sort(before.columns).equals(after.sort(after.columns)):
        return "the rows are in another order"
    return _compare_values(before, after)


def _count(rows: StudyRows) -> dict[tuple[str, str], int]:
    """Rows of each case in each part."""
    return {(case, part): number for case, part, number in rows.counts().rows()}


def _compare_counts(was: Mapping[tuple[str, str], int], now: Mapping[tuple[str, str], int]) -> str | None:
    for case, part in sorted(was.keys() | now.keys()):
        before, after = (counts.get((case, part), 0) for counts in (was, now))
        if before != after:
            return f"{case} had {count_of(before, f'{part} row')} and has {after:,}"
    return None


def _compare_values(before: pl.DataFrame, after: pl.DataFrame) -> str:
    name = next(name for name in before.columns if not before[name].equals(after[name]))
    unequal = before[name].ne_missing(after[name]).arg_true()
    place = unequal[0]
    where = f"bridge {before['bridge_id'][place]} ({before['case'][place]})"
    values = f"was {before[name][place]} and is {after[name][place]}"
    return f"{name} of {where} {values}; {count_of(len(unequal), 'such difference')} in all"
