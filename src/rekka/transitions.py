"""Panel -> transitions: block by block where the table is large, with an account of every record."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import ValidationError

from rekka.audit import FIRST_ROWS, LAST, TRANSITION, Audit
from rekka.errors import BadOption, UnreadableTable, bad_option, did_you_mean
from rekka.pairing import Block, Pairing, pair_block, plan_pairing
from rekka.panel import ALL_CASES, PAIRED, Panel, read_panel
from rekka.partition import Partition, mark_parts
from rekka.readers.attributes import NAMES, PLACES
from rekka.readers.files import ROW, Table, is_folder, open_table
from rekka.readers.mapping import Rules, TableMapping, explain, load_mapping
from rekka.readers.names import resolve
from rekka.readers.queries import collect, reading
from rekka.readers.values import Scale, clean_text, read_dates, read_numbers

ROWS_AT_ONCE = 2_000_000  # records paired together on the way to a file: blocks of whole bridges
ROWS_IN_MEMORY = 20_000_000  # the same where the result stays in memory anyway
WHOLE = ("state_1", "state_2", "visit_1", "visit_2", "history", "row_1", "row_2")
LISTED = ("row", "column", "bridge_id", "case", "member", "date", "state_text")
TEXT, PARQUET, EXCEL = (".csv",), (".parquet", ".pq"), (".xlsx",)


@dataclass(frozen=True)
class Transitions:
    """``frame``: a row for each transition. ``audit``: what became of every record. ``notes``: how it was read.

    ``audit`` and ``scale`` are None for a table that had transitions in it already.
    """

    frame: pl.DataFrame
    covariates: tuple[str, ...]
    audit: Audit | None
    scale: Scale | None
    notes: tuple[str, ...]


def read_transitions(source: Any, mapping: Any = None, **changes: Any) -> Transitions:
    """Transitions from a table of inspections, or from one that has them: state_1, state_2, interval_years.

    Parameters are those of ``read_panel``; the rules of the mapping say what becomes of doubtful pairs.
    """
    if not is_folder(source):
        plan = load_mapping(mapping, changes)
        table = open_table(source, plan.table.options())
        if set(PAIRED) <= set(table.columns):
            return _take(table, plan)
    return pair_visits(read_panel(source, mapping, **changes))


def _take(table: Table, plan: TableMapping) -> Transitions:
    """A table of transitions as it is; text that is numbers becomes numbers."""
    schema = table.frame.collect_schema()
    texts = [name for name in table.columns if schema[name] == pl.String and name not in NAMES]
    frame = collect(
        table.frame.rename({ROW: "row_1"}) if "row_1" not in table.columns else table.frame.drop(ROW), table.name
    )
    if frame.is_empty():
        raise UnreadableTable(f"{table.name} has no rows.", file=table.name)
    for name in texts:
        blank = frame.select(clean_text(pl.col(name)).is_null()).to_series()
        number = frame.select(read_numbers(pl.col(name), pl.String(), plan.table.decimal)).to_series()
        if (number.is_not_null() | blank).all() and not blank.all():
            frame = frame.with_columns(number.alias(name))
    for name in frame.columns:
        if name in ("date_1", "date_2") and frame[name].dtype == pl.String:
            frame = frame.with_columns(read_dates(frame[name], "auto").alias(name))
        elif name in WHOLE and frame[name].dtype.is_float() and (frame[name] == frame[name].floor()).all():
            frame = frame.with_columns(pl.col(name).cast(pl.Int64))
    for name, constant in (("bridge_id", None), ("case", ALL_CASES)):
        if name not in frame.columns:
            value = pl.int_range(pl.len()).cast(pl.String) if constant is None else pl.lit(constant)
            frame = frame.with_columns(value.alias(name))
    covariates = [n for n, d in frame.schema.items() if d.is_numeric() and n not in (*NAMES, *PLACES, *PAIRED)]
    for name in PAIRED:
        resolve(table, name)  # each is one column
    chosen = tuple(resolve(table, name) for name in plan.columns.covariates) or tuple(covariates)
    return Transitions(frame, chosen, None, None, (*table.notes, f"{table.name}: transitions, already paired"))


def pair_visits(panel: Panel, *, rows_at_once: int = ROWS_IN_MEMORY, **rules: Any) -> Transitions:
    """Pair each visit of a member with the next one.

    Parameters
    ----------
    panel : Panel
        From ``read_panel`` or ``read_nbi``.
    rows_at_once : int
        Records held in memory together; larger tables go through a temporary folder, by bridge.
    **rules
        upward: set_aside, restart (a new history begins there) or error. repairs: set_aside, restart or ignore
        pairs with a known repair between. same_day: worst, first, last, set_aside or error. interval: set_aside
        or error where the later visit is not after the earlier. max_gap: years. missing: set_aside or error
        where a covariate is missing. outside: set_aside or error where a state is outside the scale.

    """
    plan = _plan(panel, rules)
    pairs, listed, account = [], [], _Account(plan)
    for block in _blocks(panel, plan, rows_at_once):
        pairs.append(block.pairs)
        listed.append(account.add(block))
    set_aside = pl.concat(listed).sort("row", *(c for c in ("column",) if c in panel.columns), maintain_order=True)
    frame = pairs[0] if len(pairs) == 1 else pl.concat(pairs).sort("row_1", "date_1")
    return Transitions(frame, plan.covariates, account.close(set_aside), panel.scale, panel.notes)


def write_transitions(
    panel: Panel,
    path: str | Path,
    *,
    split: Callable[[pl.DataFrame], Partition] | None = None,
    rows_at_once: int = ROWS_AT_ONCE,
    on_progress: Callable[[int], None] | None = None,
    **rules: Any,
) -> Audit:
    """The same, written to a CSV, Parquet or Excel file block by block, with its audit beside it.

    With ``split``, such as ``partition_paper``, all are in memory at once and each has its ``part``.
    Beside ``out.csv`` stand ``out.audit.csv`` (a count and the first rows of each reason) and
    ``out.set_aside.csv`` (each record that is in no transition). ``on_progress`` is called with the number of
    records of each block that is done.
    """
    path = Path(path)
    if path.suffix.lower() not in (*TEXT, *PARQUET, *EXCEL):
        raise bad_option("the output's ending", path.suffix, [*TEXT, *PARQUET, *EXCEL])
    if not is_folder(path.parent):
        raise BadOption(f"There is no folder {path.parent.name} for {path.name}. Make it first.", file=str(path))
    _protect(panel, path)
    plan = _plan(panel, rules)
    account = _Account(plan)
    counts, rows = _beside(path)
    with tempfile.TemporaryDirectory() as folder:
        for number, block in enumerate(_blocks(panel, plan, rows_at_once)):
            block.pairs.write_parquet(Path(folder) / f"pairs-{number:05d}.parquet")
            account.add(block).write_parquet(Path(folder) / f"aside-{number:05d}.parquet")
            if on_progress:
                on_progress(len(block.records))
        pairs = pl.scan_parquet(f"{folder}/pairs-*.parquet")
        _store(pairs if split is None else mark_parts(pairs.collect(), split).lazy(), path)
        pl.scan_parquet(f"{folder}/aside-*.parquet").sink_csv(rows, include_bom=True)
    audit = account.close(None)
    listed = pl.col("rows").list.eval(pl.element().cast(pl.String)).list.join(" ").alias("first_rows")
    audit.table.select("outcome", "reason", "count", listed).write_csv(counts, include_bom=True)
    return audit


def _beside(path: Path) -> tuple[Path, Path]:
    """Where the audit's two tables go."""
    return path.with_suffix(".audit.csv"), path.with_suffix(".set_aside.csv")


def _protect(panel: Panel, path: Path) -> None:
    """Refuse to write over a table that was read."""
    read = [file.resolve() for file in panel.files]
    for file in (path, *_beside(path)):
        if file.resolve() in read:
            raise BadOption(
                f"{file.name} is one of the tables that were read. Write to another file.", file=str(file)
            )


def _store(frame: pl.LazyFrame, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        frame.sink_parquet(path)
    elif suffix in TEXT:
        frame.sink_csv(path, include_bom=True)
    else:
        frame.collect().write_excel(path, worksheet="transitions", autofit=True)


def _plan(panel: Panel, rules: dict[str, Any]) -> Pairing:
    unknown = [name for name in rules if name not in Rules.model_fields]
    if unknown:
        hint = did_you_mean(unknown[0], Rules.model_fields)
        raise BadOption(
            f"{unknown[0]} is not a rule; {', '.join(Rules.model_fields)} are.{hint}", option=unknown[0]
        )
    try:
        return plan_pairing(panel, Rules.model_validate(panel.rules.model_dump() | rules))
    except ValidationError as error:
        raise explain(error, "rules") from None


def _blocks(panel: Panel, plan: Pairing, rows_at_once: int) -> Iterator[Block]:
    """The records in blocks of whole bridges."""
    number = -(-panel.records // rows_at_once)
    if number <= 1:
        yield pair_block(collect(panel.visits, panel.name, engine="in-memory"), plan)
        return
    with tempfile.TemporaryDirectory() as folder:
        block = pl.col("bridge_id").hash(3) % number
        parts = pl.PartitionBy(folder, key="block", include_key=False)
        with reading(panel.name):
            panel.visits.with_row_index("place").with_columns(block=block).sink_parquet(parts, mkdir=True)
        for part in sorted(Path(folder).iterdir()):
            yield pair_block(pl.read_parquet(part / "*.parquet").sort("place").drop("place"), plan)


class _Account:
    """Adds up the outcomes of blocks."""

    def __init__(self, plan: Pairing) -> None:
        self.plan = plan
        self.counts = np.zeros(256, dtype=np.int64)
        self.rows: dict[str, list[int]] = {}  # the first of each reason

    def add(self, block: Block) -> pl.DataFrame:
        """Count a block's outcomes; the list of what is in no transition."""
        self.counts += np.bincount(block.code, minlength=self.counts.size)
        reasons = self.plan.reasons
        is_aside = np.array(
            [code in reasons and reasons[code][0] not in (TRANSITION, LAST) for code in range(self.counts.size)]
        )
        here = np.flatnonzero(is_aside[block.code])
        names = [c for c in LISTED if c in block.records.columns]
        words = {place: [reasons[code][place] for code in reasons] for place in (0, 1)}
        code = pl.Series(block.code[here])
        listed = block.records.select(names)[here].with_columns(
            pl.col("state_text").cast(pl.String),
            outcome=code.replace_strict(list(reasons), words[0], return_dtype=pl.String),
            reason=code.replace_strict(list(reasons), words[1], return_dtype=pl.String),
        )
        first = listed.group_by("reason").agg(pl.col("row").unique().sort().head(FIRST_ROWS))
        for reason, rows in first.rows():
            self.rows[reason] = sorted({*self.rows.get(reason, []), *rows})[:FIRST_ROWS]
        return listed

    def close(self, set_aside: pl.DataFrame | None) -> Audit:
        """The audit of all blocks."""
        lines = [
            (*reason, int(self.counts[code]), self.rows.get(reason[1]))
            for code, reason in sorted(self.plan.reasons.items())
            if self.counts[code]
        ]
        schema: dict[str, Any] = {
            "outcome": pl.String,
            "reason": pl.String,
            "count": pl.Int64,
            "rows": pl.List(pl.Int64),
        }
        return Audit(pl.DataFrame(lines, schema=schema, orient="row"), set_aside, self.plan.panel.records)
