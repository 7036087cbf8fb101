"""What a run was begun on, beside what is there now: gone on with, made whole again, or refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from rekka.core.errors import DamagedFile, InputError, RunFolderError, count_of
from rekka.core.folders import LOG
from rekka.study.large import PARTITION, AnyRows, LargeRows, open_rows
from rekka.study.plan import StudyPlan, make_plan
from rekka.study.provenance import describe_run, digest_sources, list_sources
from rekka.study.rows import StudyRows
from rekka.study.run_folder import PROVENANCE, add_line, keep_rows, open_kept_rows, read_provenance

Provenance = Mapping[str, Any]


def take_up(path: Path, plan: StudyPlan, data: Any = None, *, memory: int, workers: int = 1) -> AnyRows:
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
) -> AnyRows:
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


def _read_changed(path: Path, plan: StudyPlan, begun: Provenance, memory: int) -> AnyRows | None:
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


def _refuse_other_rows(path: Path, was: AnyRows, now: AnyRows, begun: Provenance) -> None:
    if was.digest() != now.digest():
        _refuse(path, begun, describe_difference(was, now))


def _refuse(path: Path, begun: Provenance, difference: str) -> NoReturn:
    raise RunFolderError(
        f"The data of {path.name} have changed since it began on {begun['begun'][:10]}: {difference}. "
        "Start a new run, or put the data back.",
        difference=difference,
    )


def describe_difference(was: AnyRows, now: AnyRows) -> str:
    """The first thing in which two sets of rows differ."""
    if isinstance(was, LargeRows) or isinstance(now, LargeRows):
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


def _count(rows: AnyRows) -> dict[tuple[str, str], int]:
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
