"""``check_table`` and ``pair_table``: check a table before a fit, and turn inspections into transitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from rekka.checks.doctor import Diagnosis, check_transitions
from rekka.core.errors import BadOption, InputError
from rekka.core.files import refuse_inputs, write_text
from rekka.core.folders import PLAN
from rekka.core.terminal import OnProgress, say_nothing
from rekka.core.validation import read_day
from rekka.data.audit import Audit
from rekka.data.panel import Panel
from rekka.data.partition import PAPER_SEED, Partition, choose_split
from rekka.data.transitions import (
    Transitions,
    list_outputs,
    list_tables,
    name_table,
    read_options,
    write_transitions,
)

Split = Callable[[pl.DataFrame], Partition]

PARTITIONS = ("auto", "paper", "bridge", "date", "none")


def check_table(
    data: Any,
    mapping: Any = None,
    *,
    partition: str = "auto",
    until: date | str | None = None,
    seed: int = PAPER_SEED,
    out: str | Path | None = None,
) -> Diagnosis:
    """Check inspections or transitions before a fit.

    Parameters
    ----------
    data, mapping
        A table and how to read it; see ``read_panel``.
    partition : "auto", "paper", "bridge", "date" or "none"
        How the rows are split for a study: what a model can learn is checked on the training rows.
    until : date or str, optional
        Last day of training, for "date".
    seed : int
        Of the split.
    out : path, optional
        A file for the findings as JSON.

    """
    for table in list_tables(data):
        if (table / PLAN).exists():
            raise BadOption(f"{table.name} is a run folder, not a table. To look it over: rekka checks {table}")
    reader, split = read_options(mapping), choose_partition(partition, until, seed)
    if out is not None:
        refuse_inputs([Path(out)], reader.inputs(data))
    diagnosis = look_over(reader.transitions(data), split)
    if out is not None:
        write_text(Path(out), json.dumps(diagnosis.to_dict(), ensure_ascii=False, indent=1) + "\n")
    return diagnosis


def look_over(found: Transitions, split: Split | None) -> Diagnosis:
    """Check transitions that were read, as they are split for a study; a table without any is refused."""
    if found.audit is not None and not found.audit.transitions:
        raise InputError(
            "No two visits make a transition, so that there is nothing to look over.",
            problem="no_transitions",
            audit=found.audit,
        )
    return check_transitions(
        found.frame,
        covariates=found.covariates,
        audit=None if found.audit is None else found.audit.table,
        notes=found.notes,
        scale=found.scale,
        partition=None if split is None else split(found.frame),
        moves=found.moves,
    )


def choose_partition(scheme: str, until: date | str | None, seed: int) -> Split | None:
    """Choose the function that splits transitions, or None; refuse an unknown scheme and a lone ``until``."""
    if scheme not in PARTITIONS:
        raise BadOption(f"--partition: {scheme!r} is none of {', '.join(PARTITIONS)}.", option="partition")
    if (scheme == "date") != (until is not None):
        raise BadOption("--partition date and --until belong together.", option="until")
    if scheme == "none":
        return None
    last = None if until is None else read_day("--until", until, "-12-31")
    return choose_split(scheme, until=last, seed=seed)


@dataclass(frozen=True, eq=False)
class PairedTable:
    """Transitions written to files: the panel they come from, their audit, and their partition if any."""

    panel: Panel
    audit: Audit
    partition: Partition | None
    files: tuple[Path, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: counts, audit, partition, notes and files."""
        split = self.partition
        return {
            "transitions": self.audit.transitions,
            "records": self.audit.records,
            "audit": self.audit.table.to_dicts(),
            "labels": list(self.panel.scale.names),
            "moves": self.audit.moves.to_dicts(),
            "partition": None if split is None else {"scheme": split.scheme, "rows": split.counts().to_dicts()},
            "notes": self.panel.notes,
            "files": [str(file) for file in self.files],
        }


def pair_table(
    data: Any,
    mapping: Any = None,
    *,
    out: str | Path = "transitions.csv",
    partition: str = "none",
    until: date | str | None = None,
    seed: int = PAPER_SEED,
    on_progress: OnProgress = say_nothing,
) -> PairedTable:
    """Turn inspections into transitions, and write them with their audit; see ``write_transitions``.

    Parameters
    ----------
    data, mapping
        Inspections and how to read them; see ``read_panel``.
    out : path
        A .csv, .parquet or .xlsx file.
    partition, until, seed
        As for ``check_table``; each transition then has its ``part``.
    on_progress : callable, optional
        Called with a stage, a name, how many records are done, and of how many.

    """
    reader, split, place = read_options(mapping), choose_partition(partition, until, seed), Path(out)
    files = list_outputs(place)
    refuse_inputs(files, reader.inputs(data))
    on_progress("Reading", name_table(data), 0, None)
    panel = reader.panel(data)
    parts: list[Partition] = []
    done = 0

    def count(records: int) -> None:
        nonlocal done
        done += records
        on_progress("Pairing visits", panel.name, done, panel.records)

    audit = write_transitions(
        panel,
        place,
        split=None if split is None else partial(_split_once, split, parts),
        on_progress=count,
        allow=reader.allow,
        **reader.rules,
    )
    return PairedTable(panel, audit, parts[0] if parts else None, files)


def _split_once(split: Split, parts: list[Partition], frame: pl.DataFrame) -> Partition:
    """Split, and keep the partition for the caller."""
    parts.append(split(frame))
    return parts[-1]
