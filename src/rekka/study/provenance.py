"""Where the rows of a study come from, as its plan says it: tables by their paths, the inventory, or a program.

What a study was run on and with, so that somebody else can run it again and know what may differ.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rekka.core.errors import BadOption
from rekka.core.folders import digest_file, locate, relate
from rekka.core.machine import describe_command, describe_machine, describe_versions
from rekka.data.mapping import load_mapping
from rekka.data.partition import PAPER_SEED, Partition
from rekka.data.reading import TableReading
from rekka.data.tables import is_folder
from rekka.data.transitions import ReadingOptions, Transitions, list_tables, read_options
from rekka.study.plan import StudyPlan
from rekka.study.rows import StudyRows


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
    """How the tables were read; joined files count from the run folder."""
    if rows.reading is None:
        return None
    moved = rows.reading.relocate(lambda file: relate(file, base))
    return moved.model_dump(mode="json", exclude_defaults=True)


def read_reading(begun: Mapping[str, Any], base: Path) -> TableReading | None:
    """How the tables of a run were read; of a run that did not keep it, what its plan says, if anything."""
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
    """In what versions and machine differ from those a run was begun with; the last digits may differ then."""
    now: dict[str, dict[str, Any]] = {"versions": describe_versions(), "machine": describe_machine()}
    return [
        f"{name} was {was} when the run began and is {now[section].get(name)}"
        for section in now
        for name, was in begun[section].items()
        if was != now[section].get(name)
    ]
