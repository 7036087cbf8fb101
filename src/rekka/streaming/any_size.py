"""Fit rows wherever they lie: in memory, in files or of a query, on a cluster.

Up to 262,144 rows are held whole and sorted once. More are streamed in blocks, with the same bits from memory,
from files, and on the workers of a cluster; a table stays in memory where it fits well into the limit.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import InputError, count_of
from rekka.data.categories import (
    ERROR,
    NO_CODING,
    Coding,
    CodingRules,
    find_categories,
    fit_coding,
    refuse_missing,
    refuse_named,
    refuse_single,
)
from rekka.data.tables import ROW, open_table
from rekka.data.text import collect
from rekka.model import inputs
from rekka.model.clock import make_clock
from rekka.model.fit import Fit, Options, fit_rows
from rekka.model.likelihood import count_threads
from rekka.streaming.blocks import (
    BLOCK_ROWS,
    WHOLE,
    ArraySource,
    FrameSource,
    Reading,
    ScanSource,
    read_memory,
    say_bytes,
)
from rekka.streaming.cluster.clients import connect
from rekka.streaming.cluster.source import spread_rows
from rekka.streaming.clustered_errors import leave_for_scores
from rekka.streaming.fit import fit_source, takes_blocks
from rekka.streaming.passes import OnPass

LOG = logging.getLogger("rekka")
BYTES = 8  # of a number
TEXT_BYTES = 40  # of a bridge's name in memory, about
ROOM = 2.0  # what is read may need so many times its size while it is read


@dataclass(frozen=True)
class LazyTable:
    """A table that stays where it is: ``query`` reads it; ``rows`` there are."""

    name: str
    query: pl.LazyFrame
    columns: tuple[str, ...]
    rows: int


def is_lazy(X: Any) -> bool:
    """Whether X is the path of a file or folder, or a query of polars: rows that are not in memory."""
    return isinstance(X, str | Path | pl.LazyFrame)


def open_lazy(X: Any) -> LazyTable:
    """Open the table of a path or a query, and count its rows."""
    table = open_table(Path(X).absolute() if isinstance(X, str | Path) else X)  # workers have another folder
    query = table.frame.drop(ROW)
    rows = int(collect(query.select(pl.len()), table.name).item())
    if not rows:
        raise InputError(f"{table.name} has no rows. At least one is needed.")
    return LazyTable(table.name, query, table.columns, rows)


def read_columns(
    names: Sequence[str],
    start: str,
    dt: str,
    covariates: Sequence[str] | None,
    end: Any,
    weight: Any = None,
    group: Any = None,
) -> Reading:
    """The roles of a table's columns; ``end``, ``weight`` and ``group`` are columns' names here."""
    for option, value in (("y", end), ("sample_weight", weight), ("groups", group)):
        if value is not None and not isinstance(value, str):
            raise InputError(
                f"{option} is a {type(value).__name__}; for rows in files or of a query it is the name of their "
                "column, such as 'state_2'."
            )
    roles = [one for one in (end, weight, group) if one is not None]
    found = inputs.find_columns([name for name in names if name not in roles], start, dt, covariates)
    inputs.find_columns(names, start, dt, roles)  # each is there
    return Reading(start, end, dt, found.covariates, weight, group)


def code_table(
    table: LazyTable,
    reading: Reading,
    rules: CodingRules,
) -> tuple[Reading, Coding]:
    """Fit the coding of the categories among the covariates; the reading then has its terms in their place."""
    schema = table.query.collect_schema()
    names = find_categories(schema, reading.covariates, rules.declared)
    if not names:
        return reading, NO_CODING
    refuse_named(names if not rules.chosen else ())
    departed = pl.col(reading.end) > pl.col(reading.start)
    there = table.query if reading.weight is None else table.query.filter(pl.col(reading.weight) > 0)
    if rules.missing == ERROR:
        refuse_missing(there, names, table.name)
    coding = fit_coding(there, names, departed, **rules.for_coding(), where=table.name)
    refuse_single(coding)
    return replace(reading, covariates=coding.expand(reading.covariates)), coding


def open_source(table: LazyTable, reading: Reading, memory: Any, threads: int | None) -> FrameSource | ScanSource:
    """The rows in memory if they fit well within the limit, else read from where they are in every pass."""
    limit, needed = read_memory(memory), estimate_bytes(table, reading)
    held = table.rows <= WHOLE or ROOM * needed <= limit
    how = "held in memory" if held else f"streamed in blocks of {count_of(BLOCK_ROWS, 'row')}"
    LOG.info(
        "%s, %s as columns: %s (limit %s)", count_of(table.rows, "row"), say_bytes(needed), how, say_bytes(limit)
    )
    if held:
        frame = collect(table.query.select(reading.columns), table.name)
        return FrameSource(frame, reading, count_threads(threads))
    return ScanSource(table.query, reading, count_threads(threads), name=table.name)


def estimate_bytes(table: LazyTable, reading: Reading) -> int:
    """Bytes that the columns to be read take in memory, about."""
    numbers = len(reading.columns) - (reading.group is not None)
    return table.rows * (BYTES * numbers + (TEXT_BYTES if reading.group is not None else 0))


def fit_training(
    training: inputs.Training, covariates: tuple[str, ...], options: Options, on_pass: OnPass | None = None
) -> Fit:
    """Fit checked rows in memory: whole if they are few or the options need that, else in blocks."""
    if training.rows.dt.size <= WHOLE or not takes_blocks(options):
        return fit_rows(training.rows, training.x, covariates, options, training.groups, training.classes)
    source = ArraySource(training.without_classes(), covariates, count_threads(options.threads))
    return fit_source(
        source,
        options,
        n_states=training.rows.n_states,
        class_weight=training.class_weight,
        clustered=training.groups is not None,
        on_pass=on_pass,
    )


def fit_table(
    table: LazyTable,
    reading: Reading,
    options: Options,
    *,
    memory: Any = None,
    n_states: int | None = None,
    class_weight: str | None = None,
    cluster: Any = None,
    on_pass: OnPass | None = None,
) -> Fit:
    """Fit rows in files or of a query; more than fit into memory, or spread over the workers of a cluster."""
    limit = read_memory(memory)
    if table.rows <= WHOLE:
        if cluster is not None:
            LOG.info("%s: few enough to be fitted here, without the cluster", count_of(table.rows, "row"))
        return fit_training(
            _read_whole(table, reading, options, n_states, class_weight), reading.covariates, options
        )
    how: dict[str, Any] = {
        "n_states": n_states,
        "class_weight": class_weight,
        "clustered": reading.group is not None,
        "score_bytes": leave_for_scores(limit),
        "on_pass": on_pass,
    }
    if cluster is None:
        return fit_source(open_source(table, reading, memory, options.threads), options, **how)
    with connect(cluster) as session:
        return fit_source(spread_rows(session, table.query, reading, name=table.name), options, **how)


def _read_whole(
    table: LazyTable, reading: Reading, options: Options, n_states: int | None, class_weight: str | None
) -> inputs.Training:
    frame = collect(table.query.select(reading.columns), table.name)
    return inputs.read_training(
        inputs.as_frame(frame),
        frame[reading.end],
        inputs.Columns(reading.start, reading.dt, reading.covariates),
        sample_weight=None if reading.weight is None else frame[reading.weight].to_numpy(),
        groups=None if reading.group is None else frame[reading.group].to_numpy(),
        n_states=n_states,
        class_weight=class_weight,
        clock=make_clock(reading.covariates, options.clock, options.advance),
    )
