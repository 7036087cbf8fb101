"""Transitions: pairs of consecutive visits, from a panel or from a table that has them, with an audit.

A large panel is paired block by block. Every function and command takes ``ReadingOptions``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import ValidationError

from rekka.core.errors import BadOption, BadValues, UnreadableTable, bad_option, count_of, did_you_mean, name_rows
from rekka.core.files import (
    has_columns,
    is_stream,
    refuse_foreign,
    refuse_inputs,
    scratch_folder,
    writing_together,
)
from rekka.core.sheets import guard_table, render_sheet
from rekka.core.validation import explain_invalid
from rekka.data.attributes import NAMES, PLACES, is_text, level_text, read_name
from rekka.data.audit import FIRST_ROWS, LAST, TRANSITION, Audit
from rekka.data.categories import LEVEL, MISSING
from rekka.data.direction import NO_SCALE, Moves, count_moves, refuse_upside_down
from rekka.data.mapping import Rules, TableMapping, is_ignored, load_mapping, resolve, split_names
from rekka.data.merging import is_mergeable, merge_panel
from rekka.data.nbi import read_nbi
from rekka.data.pairing import FIRST_PROBLEM, PairedBlock, Pairing, pair_block, plan_pairing
from rekka.data.panel import ALL_CASES, PAIRED, Panel, RecordProblem, list_sources, read_panel
from rekka.data.partition import Partition, mark_parts
from rekka.data.reading import TableReading
from rekka.data.tables import ROW, SourceTable, is_folder, open_table
from rekka.data.text import collect, reading
from rekka.data.values import Scale, holds_numbers, read_dates, read_numbers, take_dates

ROWS_AT_ONCE = 2_000_000  # records paired together on the way to a file: blocks of whole bridges
ROWS_IN_MEMORY = 20_000_000  # the same where the result stays in memory anyway
WHOLE = ("state_1", "state_2", "visit_1", "visit_2", "history", "row_1", "row_2")
ROWS_NAMED = 6  # of rows without a case
MOVE = ("case", "state_1", "state_2")
LISTED = ("row", "column", "bridge_id", "case", "member", "date", "state_text")
TEXT, PARQUET, EXCEL = (".csv",), (".parquet", ".pq"), (".xlsx",)
PAIRED_ALREADY = TableReading(kind="transitions")

_log = logging.getLogger("rekka")


@dataclass(frozen=True)
class Transitions:
    """Transitions between consecutive visits, with their audit.

    ``frame``       a row for each: bridge_id, case, state_1, state_2 (1 is the best), interval_years, covariates,
                    and where known member, date_1, date_2, visit_1, visit_2, row_1, row_2
    ``covariates``  names of the columns that a model can use
    ``audit``       outcome of every record; None for a table that had transitions in it already, as is ``scale``
    ``scale``       names of the states, best first
    ``notes``       how the table was read

    Examples
    --------
    >>> import rekka
    >>> found = rekka.read_transitions(rekka.simulate_inventory(50, preset="plain").inspections)
    >>> found.audit.transitions == len(found.frame)
    True

    """

    frame: pl.DataFrame
    covariates: tuple[str, ...]
    audit: Audit | None
    scale: Scale | None
    notes: tuple[str, ...]
    reading: TableReading | None = None  # how the table was read, for later tables

    @property
    def moves(self) -> Moves:
        """Number of pairs that improved and that worsened."""
        if self.audit is None:
            return count_moves(self.frame.lazy(), "the table")
        return Moves(self.audit.upward, self.audit.downward, self.scale.turn if self.scale else NO_SCALE)


@dataclass(frozen=True)
class LazyTransitions:
    """A table of transitions that stays where it is: ``query`` reads it, block by block or at once."""

    name: str
    query: pl.LazyFrame
    covariates: tuple[str, ...]
    notes: tuple[str, ...]
    reading: TableReading = PAIRED_ALREADY

    @property
    def moves(self) -> Moves:
        """Number of pairs that improved and that worsened, by one query."""
        return count_moves(self.query, self.name)

    def collect(self) -> Transitions:
        """All rows, in memory."""
        frame = collect(self.query, self.name)
        if frame.is_empty():
            raise UnreadableTable(f"{self.name} has no rows.", file=self.name)
        return Transitions(frame, self.covariates, None, None, self.notes, self.reading)


def read_transitions(source: Any, mapping: Any = None, **changes: Any) -> Transitions:
    """Read transitions from a table of inspections, or from one that has state_1, state_2 and interval_years.

    Parameters are those of ``read_panel``; the rules of the mapping say what becomes of doubtful pairs. A folder
    of Parquet files with transitions is one table. Ratings that few records leave are merged; see
    ``merge_ratings``.

    Examples
    --------
    >>> import rekka
    >>> rekka.read_transitions(rekka.simulate_transitions(200)).covariates
    ('age_at_inspection_1', 'bridge_length', 'bridge_area', 'traffic_mean')

    """
    if not is_folder(source) or _holds_pairs(Path(source)):
        plan = load_mapping(mapping, changes)
        table = open_table(source, plan.table)
        if set(PAIRED) <= set(table.columns):
            return _take(table, collect(_number_rows(table), table.name).lazy(), plan).collect()
    return pair_visits(merge_ratings(read_panel(source, mapping, **changes)))


def scan_transitions(source: Any, mapping: Any = None, **changes: Any) -> LazyTransitions | None:
    """Open transitions in a Parquet file, a folder of them or a polars LazyFrame, without reading them.

    Returns None for anything else: inspections, which have to be paired, and tables in memory or in text.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        if not (_holds_pairs(path) if is_folder(path) else path.suffix.lower() in PARQUET):
            return None
    elif not isinstance(source, pl.LazyFrame):
        return None
    plan = load_mapping(mapping, changes)
    table = open_table(source, plan.table)
    return _take(table, _number_rows(table), plan) if set(PAIRED) <= set(table.columns) else None


def _holds_pairs(folder: Path) -> bool:
    """Whether the Parquet files of a folder, by the first of them, are a table of transitions."""
    first = min(folder.glob("*.parquet"), default=None)
    try:
        return first is not None and set(PAIRED) <= pl.read_parquet_schema(first).keys()
    except (pl.exceptions.PolarsError, OSError):  # the reader says so
        return False


def _number_rows(table: SourceTable) -> pl.LazyFrame:
    """Table with the number of each row, unless it has such a column itself."""
    return table.frame.drop(ROW) if "row_1" in table.columns else table.frame.rename({ROW: "row_1"})


def _take(table: SourceTable, frame: pl.LazyFrame, plan: TableMapping) -> LazyTransitions:
    """A table of transitions as it is; text that is numbers becomes numbers."""
    for name in (*PAIRED, *(name for name in (*NAMES, *PLACES) if name in table.columns)):
        resolve(table, name)  # each is one column, of single values
    frame = _name_all(_read_dates(_read_whole(_read_texts(frame, table, plan), table), table))
    frame, left_out = _leave_out_nameless(frame, table)
    schema = frame.collect_schema()
    plan = split_names(plan, table)
    asked = {name: resolve(table, name) for name in plan.columns.asked}
    named = [one for name, one in asked.items() if name in plan.columns.categories or is_text(schema[one])]
    covariates = [n for n, d in schema.items() if d.is_numeric() and n not in (*NAMES, *PLACES, *PAIRED, *named)]
    covariates = [name for name in covariates if not is_ignored(plan.columns, name)]
    numbers = [name for name in asked.values() if name not in named]
    frame, blank = _read_categories(frame, named, plan.rules, table.name)
    notes = (*table.notes, f"{table.name}: transitions, already paired", *left_out, *blank)
    read = PAIRED_ALREADY
    if named:  # later tables are asked for them too
        read = read.model_copy(update={"mapping": {"columns": {"covariates": list(asked), "categories": named}}})
    return LazyTransitions(table.name, frame, (*(numbers or covariates), *named), notes, read)


def _read_categories(
    frame: pl.LazyFrame, names: Sequence[str], rules: Rules, table: str
) -> tuple[pl.LazyFrame, list[str]]:
    """Categories as text; their missing values are a level, or their rows are left out, with a sentence."""
    if not names:
        return frame, []
    schema = frame.collect_schema()
    frame = frame.with_columns(level_text(name, schema).alias(name) for name in names)
    if rules.missing == LEVEL:
        return frame.with_columns(pl.col(names).fill_null(MISSING)), []
    blank = collect(frame.select(pl.col(names).is_null().sum()), table).row(0, named=True)
    notes = [f"{table}: {name} is missing in {count_of(n, 'row')}; excluded" for name, n in blank.items() if n]
    if notes and rules.missing == "error":
        raise BadValues(
            f"{notes[0].removesuffix('; excluded')}. Fill it in, or exclude such rows.", column=names[0]
        )
    for note in notes:
        _log.warning(note)
    return (frame.drop_nulls(names) if notes else frame), notes


def _leave_out_nameless(frame: pl.LazyFrame, table: SourceTable) -> tuple[pl.LazyFrame, list[str]]:
    """Rows that name their case, as text; and a sentence on those that do not."""
    if "case" not in table.columns:
        return frame, []
    schema = frame.collect_schema()
    name, text = read_name("case", schema), pl.col("case").cast(pl.String)
    found = collect(frame.select(blank=name.is_null().sum(), other=name.ne_missing(text).any()), table.name)
    count, other = found.row(0)
    if other or schema["case"] != pl.String:  # else every pass over the rows would clean names that are clean
        frame = frame.with_columns(case=name)
    if not count:
        return frame, []
    nameless = frame.filter(pl.col("case").is_null()).select("row_1").head(ROWS_NAMED)
    rows = collect(nameless, table.name)["row_1"]
    some = name_rows([row for row in rows if row is not None], most=ROWS_NAMED - 1)
    note = f"{table.name}: the case is blank in {count_of(count, 'row')} ({some}); excluded"
    _log.warning(note)
    return frame.filter(pl.col("case").is_not_null()), [note]


def _read_texts(frame: pl.LazyFrame, table: SourceTable, plan: TableMapping) -> pl.LazyFrame:
    """Columns of text in which there are numbers or blanks, and not blanks alone, are columns of numbers."""
    schema = table.frame.collect_schema()
    texts = [name for name in table.columns if schema[name] == pl.String and name not in NAMES]
    if not texts:
        return frame
    decimal = plan.table.decimal
    found = collect(frame.select(holds_numbers(pl.col(name), decimal).alias(name) for name in texts), table.name)
    numbers = [name for name in texts if found[name].item()]
    return frame.with_columns(read_numbers(pl.col(name), pl.String(), decimal) for name in numbers)


def _read_whole(frame: pl.LazyFrame, table: SourceTable) -> pl.LazyFrame:
    """Counts and states that are whole numbers, though written as decimal ones."""
    schema = frame.collect_schema()
    decimal = [name for name in WHOLE if name in schema and schema[name].is_float()]
    if not decimal:
        return frame
    found = collect(frame.select((pl.col(n) == pl.col(n).floor()).all() for n in decimal), table.name)
    return frame.with_columns(pl.col(name).cast(pl.Int64) for name in decimal if found[name][0])


def _read_dates(frame: pl.LazyFrame, table: SourceTable) -> pl.LazyFrame:
    """Dates from their texts, each read once."""
    schema = frame.collect_schema()
    for name in ("date_1", "date_2"):
        if name in schema and schema[name].is_temporal():
            frame = frame.with_columns(take_dates(pl.col(name)).alias(name))
        if schema.get(name) == pl.String:
            texts = collect(frame.select(pl.col(name).unique(maintain_order=True)), table.name).to_series()
            dates = pl.col(name).replace_strict(texts, read_dates(texts, "auto"), return_dtype=pl.Date)
            frame = frame.with_columns(dates.alias(name))
    return frame


def _name_all(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Without a column for it each row is a bridge of its own, and all of them are one case."""
    columns = frame.collect_schema().names()
    if "bridge_id" not in columns:
        frame = frame.with_row_index(ROW).with_columns(bridge_id=pl.col(ROW).cast(pl.String)).drop(ROW)
    return frame if "case" in columns else frame.with_columns(case=pl.lit(ALL_CASES))


def pair_visits(panel: Panel, *, rows_at_once: int = ROWS_IN_MEMORY, **rules: Any) -> Transitions:
    """Pair each visit of a member with the next one.

    Parameters
    ----------
    panel : Panel
        From ``read_panel`` or ``read_nbi``.
    rows_at_once : int
        Records held in memory together; larger tables go through a temporary folder, by bridge.
    **rules
        upward: set_aside, restart (a new history begins there), keep (improvements by one rating, for fits of
        histories; a new one begins after every pair that is excluded), keep_all (the same with improvements of any
        size, on which forecasts are scored and in which ``find_repairs`` looks for repairs) or error. repairs:
        set_aside, restart or ignore pairs with a known repair between. same_day: worst, first, last, set_aside or
        error. interval: set_aside or error where the later visit is not after the earlier. max_gap: years.
        missing: set_aside or error where a covariate is missing. outside: set_aside or error where a state is
        outside the scale.

    Examples
    --------
    >>> import rekka
    >>> panel = rekka.read_panel(rekka.simulate_inventory(50, preset="plain").inspections)
    >>> rekka.pair_visits(panel, max_gap=4).audit.count("more than 4 years apart") > 0
    True

    """
    plan = _plan(panel, rules)
    pairs, listed, account = [], [], _Account(plan)
    for block in _blocks(panel, plan, rows_at_once):
        pairs.append(block.pairs)
        listed.append(account.add(block))
    set_aside = pl.concat(listed).sort("row", *(c for c in ("column",) if c in panel.columns), maintain_order=True)
    frame = pairs[0] if len(pairs) == 1 else pl.concat(pairs).sort("row_1", "date_1")
    audit, read = account.close(set_aside), panel.reading
    if read is not None and rules:
        given = read.mapping.get("rules", {}) | rules
        read = read.model_copy(update={"mapping": read.mapping | {"rules": given}})
    return Transitions(frame, plan.covariates, audit, panel.scale, panel.notes, read)


def pair_with_improvements(panel: Panel, **rules: Any) -> pl.DataFrame:
    """Pairs as ``pair_visits`` makes them, improvements by one rating among them, without an audit.

    For a table that was paired before in another way: nothing is said about its records again.
    """
    blocks = _blocks(panel, _plan(panel, rules | {"upward": "keep"}), ROWS_IN_MEMORY)
    return pl.concat([block.pairs for block in blocks])


def merge_ratings(
    panel: Panel, *, until: date | None = None, rows_at_once: int = ROWS_AT_ONCE, **rules: Any
) -> Panel:
    """Read ratings as one that too few records leave, on a scale of more than 5 that was not given by labels.

    Parameters
    ----------
    panel : Panel
        From ``read_panel`` or ``read_nbi``.
    until : date, optional
        Count the visits up to this day alone: what a model of then could have known.
    rows_at_once : int
        Records held in memory together.
    **rules
        As in ``pair_visits``.

    Returns
    -------
    Panel
        On the merged scale, with a note on each group; the same panel where every rating has enough departures,
        where hardly any has, where more moves go up than down, or with ``state={"merge": False}``.

    Examples
    --------
    >>> import rekka
    >>> panel = rekka.read_panel(rekka.simulate_inventory(50, preset="plain").inspections)
    >>> rekka.data.transitions.merge_ratings(panel) is panel  # a to e
    True

    """
    if not is_mergeable(panel):
        return panel
    lenient = {name: "set_aside" for name in ("upward", "interval", "missing", "outside") if name not in rules}
    errors = {name: "set_aside" for name, value in rules.items() if value == "error"}
    same_day = {"same_day": "worst"} if panel.rules.same_day == "error" else {}
    known = panel
    if until is not None:
        known = replace(panel, visits=panel.visits.filter(pl.col("date").is_null() | (pl.col("date") <= until)))
    plan = _plan(known, lenient | same_day | rules | errors)
    counts, upward, downward = [], 0, 0
    for block in _blocks(known, plan, rows_at_once):
        counts.append(_count_moves(block, (*MOVE, "visit_1", "visit_2")))
        upward, downward = upward + block.upward, downward + block.downward
    if Moves(upward, downward).mostly_up:  # a scale read from its wrong end is refused, not merged
        return panel
    return merge_panel(panel, _add_moves(counts))


def count_panel_moves(panel: Panel, *, rows_at_once: int = ROWS_AT_ONCE) -> Moves:
    """Count the pairs of visits that improved and that worsened, whatever the rules make of them."""
    names = (*LISTED, "state", "visit", "problem", *panel.repairs)
    kept = tuple(name for name in panel.columns if name in names)
    bare = replace(panel, visits=panel.visits.select(kept), covariates=(), keep=())
    lenient = dict.fromkeys(("upward", "interval", "missing", "outside"), "set_aside")
    same_day = "worst" if panel.rules.same_day == "error" else panel.rules.same_day
    plan = _plan(bare, lenient | {"same_day": same_day})
    blocks = [(block.upward, block.downward) for block in _blocks(bare, plan, rows_at_once)]
    return Moves(sum(up for up, _ in blocks), sum(down for _, down in blocks), panel.scale.turn)


def write_transitions(
    panel: Panel,
    path: str | Path,
    *,
    split: Callable[[pl.DataFrame], Partition] | None = None,
    rows_at_once: int = ROWS_AT_ONCE,
    on_progress: Callable[[int], None] | None = None,
    allow: Sequence[str] = (),
    **rules: Any,
) -> Audit:
    """Pair the visits of a panel and write the transitions to a CSV, Parquet or Excel file, block by block.

    Beside ``out.csv`` come ``out.audit.csv`` (a count and the first rows of each reason) and ``out.set_aside.csv``
    (each record that is in no transition): all three together, when each is whole.

    Parameters
    ----------
    panel : Panel
        From ``read_panel`` or ``read_nbi``.
    path : path
        File to write; its ending says the format.
    split : function, optional
        Such as ``partition_paper``: adds the column ``part``. All transitions are then in memory at once.
    rows_at_once : int
        Records held in memory together.
    on_progress : function, optional
        Called with the number of records of each block that is done.
    allow : list of codes
        Where more moves go up than down nothing is written, unless it has "R109".
    **rules
        As in ``pair_visits``.

    Examples
    --------
    ``rekka.write_transitions(rekka.read_panel("inspections.xlsx"), "transitions.csv", max_gap=8)``

    """
    path = Path(path)
    outputs = list_outputs(path)
    if not is_folder(path.parent):
        raise BadOption(f"There is no folder {path.parent.name} for {path.name}. Make it first.", file=str(path))
    refuse_inputs(outputs, panel.files)
    plan = _plan(panel, rules)
    account = _Account(plan)
    with scratch_folder() as folder:
        for number, block in enumerate(_blocks(panel, plan, rows_at_once)):
            block.pairs.write_parquet(folder / f"pairs-{number:05d}.parquet")
            account.add(block).write_parquet(folder / f"aside-{number:05d}.parquet")
            if on_progress:
                on_progress(len(block.records))
        refuse_upside_down(account.moves, allow)
        audit = account.close(None)
        pairs = pl.scan_parquet(folder / "pairs-*.parquet")
        pairs = pairs if split is None else mark_parts(pairs.collect(), split).lazy()
        listed = pl.col("rows").list.eval(pl.element().cast(pl.String)).list.join(" ").alias("first_rows")
        counts = audit.table.lazy().select("outcome", "reason", "count", listed)
        tables = (pairs, counts, pl.scan_parquet(folder / "aside-*.parquet"))
        with writing_together() as batch:
            for output, table in zip(outputs, tables, strict=False):  # a stream has no tables beside it
                with batch.fill(output) as file:
                    _store(table, file, _find_kind(output))
    return audit


def list_outputs(path: Path) -> tuple[Path, ...]:
    """List what ``write_transitions`` writes: the table, and beside it what became of each record.

    Beside a pipe or /dev/stdout there is nothing. A file that is there already and is none of ours is refused.
    """
    if _find_kind(path) not in (*TEXT, *PARQUET, *EXCEL):
        raise bad_option("the output's ending", path.suffix, [*TEXT, *PARQUET, *EXCEL])
    if is_stream(path):
        return (path,)
    beside = path.with_suffix(".audit.csv"), path.with_suffix(".set_aside.csv")
    refuse_foreign(beside, has_columns("outcome", "reason"))
    return (path, *beside)


def _find_kind(path: Path) -> str:
    """Ending that says how a table is written; CSV where a stream has none."""
    return path.suffix.lower() or (TEXT[0] if is_stream(path) else "")


def _store(frame: pl.LazyFrame, file: Path, kind: str) -> None:
    """Fill a file with a table."""
    if kind in PARQUET:
        frame.sink_parquet(file)
    elif kind in TEXT:
        guard_table(frame).sink_csv(file, include_bom=True)
    else:
        file.write_bytes(render_sheet(frame.collect(), "transitions"))


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
        raise explain_invalid(error, "rules", Rules, "A rule") from None


def _blocks(panel: Panel, plan: Pairing, rows_at_once: int) -> Iterator[PairedBlock]:
    """Records in blocks of whole bridges."""
    number = -(-panel.records // rows_at_once)
    if number <= 1:
        yield pair_block(collect(panel.visits, panel.name, engine="in-memory"), plan)
        return
    with scratch_folder() as folder:
        block = pl.col("bridge_id").hash(3) % number
        parts = pl.PartitionBy(folder, key="block", include_key=False)
        with reading(panel.name, into=folder):
            panel.visits.with_row_index("place").with_columns(block=block).sink_parquet(parts, mkdir=True)
        for part in sorted(folder.iterdir()):
            yield pair_block(pl.read_parquet(part / "*.parquet").sort("place").drop("place"), plan)


def _count_moves(block: PairedBlock, by: Sequence[str]) -> pl.DataFrame:
    """Count the transitions of a block by some columns."""
    return block.pairs.group_by(by).agg(transitions=pl.len().cast(pl.Int64))


def _add_moves(blocks: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add up the counts of blocks."""
    by = [name for name in blocks[0].columns if name != "transitions"]
    return pl.concat(blocks).group_by(by).agg(pl.col("transitions").sum()).sort(by)


class _Account:
    """Outcomes of the records, added up over blocks."""

    def __init__(self, plan: Pairing) -> None:
        self.plan = plan
        lines = [(code, *reason) for code, reason in sorted(plan.reasons.items())]
        schema = {"code": pl.UInt8, "outcome": pl.String, "reason": pl.String}
        self.reasons = pl.DataFrame(lines, schema=schema, orient="row")
        self.counts = np.zeros(256, dtype=np.int64)
        self.rows: dict[str, list[int]] = {}  # the first of each reason
        self.upward = self.downward = 0
        self.by_state: list[pl.DataFrame] = []  # transitions of each block, by case and states

    @property
    def moves(self) -> Moves:
        """Number of pairs that improved and that worsened so far."""
        return Moves(self.upward, self.downward, self.plan.panel.scale.turn)

    def add(self, block: PairedBlock) -> pl.DataFrame:
        """Count a block's outcomes; return its excluded records, each with its reason."""
        self.counts += np.bincount(block.code, minlength=self.counts.size)
        self.upward, self.downward = self.upward + block.upward, self.downward + block.downward
        self.by_state.append(_count_moves(block, MOVE))
        excluded = self.reasons.filter(~pl.col("outcome").is_in([TRANSITION, LAST]))
        records = block.records.select(name for name in LISTED if name in block.records.columns)
        records = records.with_columns(code=pl.Series(block.code)).join(excluded, "code", maintain_order="left")
        listed = records.drop("code").with_columns(pl.col("state_text").cast(pl.String))
        first = listed.group_by("reason").agg(pl.col("row").unique().sort().head(FIRST_ROWS))
        for reason, rows in first.rows():
            self.rows[reason] = sorted({*self.rows.get(reason, []), *rows})[:FIRST_ROWS]
        return listed

    def close(self, set_aside: pl.DataFrame | None) -> Audit:
        """Audit of all blocks."""
        first = [self.rows.get(reason) for reason in self.reasons["reason"]]
        table = self.reasons.select(
            "outcome",
            "reason",
            count=pl.Series(self.counts).gather(self.reasons["code"]),
            rows=pl.Series(first, dtype=pl.List(pl.Int64)),
        ).filter(pl.col("count") > 0)
        blank = FIRST_PROBLEM + RecordProblem.NO_CASE
        if self.counts[blank]:
            reason = self.plan.reasons[blank][1]
            count, rows = count_of(int(self.counts[blank]), "record"), name_rows(self.rows[reason])
            _log.warning(f"{self.plan.panel.name}: {reason} in {count} ({rows}); excluded")
        moves = _add_moves(self.by_state)
        return Audit(table, set_aside, self.plan.panel.records, moves, self.upward, self.downward)


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a table: a mapping, sections that overrule it, and checks that do not stop the work.

    ``mapping``  path of a TOML file, or its sections as a dict; see ``read_panel``
    ``changes``  sections that overrule the mapping, such as {"columns": {"bridge": "ID"}}
    ``nbi``      the files are yearly files of the National Bridge Inventory; of the sections they take the rules
    ``allow``    codes of checks that do not stop the work: "R109", more moves go up than down

    Examples
    --------
    >>> import rekka
    >>> options = rekka.ReadingOptions(changes={"rules": {"max_gap": 4}})
    >>> len(options.transitions(rekka.simulate_transitions(200)).frame)
    200

    """

    mapping: Any = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    nbi: bool = False
    allow: Sequence[str] = ()

    @property
    def rules(self) -> dict[str, Any]:
        """Rules that the panel does not carry itself."""
        return dict(self.changes.get("rules", {})) if self.nbi else {}

    def panel(self, source: Any, until: Callable[[Panel], date | None] | None = None) -> Panel:
        """Panel of one table, or of several National Bridge Inventory files; see ``merge_ratings``.

        ``until`` gives the last day of the visits that decide which ratings are read as one.
        """
        if not self.nbi:
            panel = read_panel(take_one(source), self.mapping, **self.changes)
            return merge_ratings(panel, until=None if until is None else until(panel))
        state = dict(self.changes.get("state", {}))
        keep = state.pop("merge", True) is False
        if self.mapping or state or set(self.changes) - {"rules", "state"}:
            raise BadOption("nbi: such files need no mapping; the rules are all they take.", option="nbi")
        panel = read_nbi(source)
        last = None if until is None else until(panel)
        return panel if keep else merge_ratings(panel, until=last, **self.rules)

    def transitions(self, source: Any) -> Transitions:
        """Transitions, from inspections or as they are."""
        if isinstance(source, Transitions):
            return source
        if self.nbi:
            return pair_visits(self.panel(source), **self.rules)
        return read_transitions(take_one(source), self.mapping, **self.changes)

    def sound(self, source: Any) -> Transitions | LazyTransitions:
        """Transitions for a fit, not read yet where they may be many; what a check stops is refused."""
        found = self.scan(source) or self.transitions(source)
        refuse_upside_down(found.moves, self.allow)
        return found

    def scan(self, source: Any) -> LazyTransitions | None:
        """Transitions in Parquet that are not read yet; None of anything else."""
        if self.nbi or isinstance(source, Transitions):
            return None
        one = take_one(source)
        return scan_transitions(one.absolute() if isinstance(one, Path) else one, self.mapping, **self.changes)

    def inputs(self, source: Any) -> list[Path]:
        """List all files that are read: the tables, those of a folder, the mapping and what is joined."""
        joins = [] if self.nbi else load_mapping(self.mapping, self.changes).join
        own = [self.mapping, *(join.file for join in joins)]
        files = [file for table in list_tables(source) for file in list_sources(table)]
        return [*files, *(Path(one) for one in own if isinstance(one, str | Path))]


def read_options(given: Any) -> ReadingOptions:
    """Options as they are; a mapping, or None, as the options that have it."""
    return given if isinstance(given, ReadingOptions) else ReadingOptions(given)


def list_tables(source: Any) -> list[Path]:
    """Paths of tables: of one, of several, or none where the data come from memory."""
    some = source if isinstance(source, list | tuple) else [source]
    return [Path(one) for one in some if isinstance(one, str | Path)]


def take_one(source: Any) -> Any:
    """One table of a list, a path as a ``Path``; anything else as it is."""
    tables = list_tables(source)
    if len(tables) > 1:
        raise BadOption(
            f"{tables[0].name}, {tables[1].name}: one table is read at a time; join others with --join.",
            files=[str(table) for table in tables],
        )
    return tables[0] if tables else source


def name_table(source: Any) -> str:
    """Name of a table in messages."""
    return next((table.name for table in list_tables(source)), "the table")
