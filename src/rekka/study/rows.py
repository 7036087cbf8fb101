"""The rows of a study: read as its plan says or taken from a program, split, checked, and given out by component.

Rows that fit are held in one frame. Where there are very many, in Parquet or a LazyFrame, they are split and
checked on the way into a Parquet file: in memory at a time are blocks of rows, and the names of the bridges.
Components of few rows are then read from the file as they are needed, the others stream in blocks.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import (
    BadOption,
    BadValues,
    DamagedFile,
    InputError,
    count_of,
    missing_columns,
    name_rows,
    name_some,
    no_such_case,
)
from rekka.core.files import scratch_beside, writing
from rekka.core.folders import locate
from rekka.data.attributes import NAMES, PLACES, is_text, level_text
from rekka.data.categories import FEWEST, Coding, fit_category, refuse_missing, refuse_names
from rekka.data.direction import refuse_upside_down
from rekka.data.panel import PAIRED
from rekka.data.partition import PARTS, Partition, choose_split, split_lazily
from rekka.data.reading import TableReading
from rekka.data.text import collect, reading
from rekka.data.transitions import LazyTransitions, ReadingOptions, Transitions, read_transitions, scan_transitions
from rekka.model import inputs
from rekka.simulation.inventory import simulate_inventory
from rekka.streaming import blocks
from rekka.streaming.blocks import Reading, read_block, say_bytes
from rekka.study.case_rows import (
    GOLDEN,
    IN_FOLDS,
    KEY,
    VALIDATION,
    CaseCache,
    CaseRows,
    choose_rows,
    keep_supported,
)
from rekka.study.digests import digest_rows
from rekka.study.plan import POOLED, SHRINKING, DataPlan, PartitionPlan, StudyPlan, TrialPlan

NAMED = ("bridge_id", "case")  # what every row must have
LINES = ("row_1", "row_2")
PARTITION = "partition.parquet"
WHOLE_BYTES = 1_000  # a row, where a fit has all of them in memory: columns, names, scaled copies, work
KEPT_BYTES = 250  # a row of a component that was read whole, kept until the study is done
HELD_BYTES = 24  # a row that is held as columns: states, years, bridge; besides 8 for each covariate
HELD_SHARE = 0.5  # of the limit; the rest is for blocks, bridges and the program itself


class Scratch:
    """A temporary folder, removed when nothing refers to it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="rekka-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class Room:
    """Memory limit in bytes, shared by so many workers; components of up to ``whole`` rows are held whole."""

    memory: int
    whole: int
    workers: int = 1

    @classmethod
    def choose(cls, study: TrialPlan, survey: pl.DataFrame, memory: int, workers: int = 1) -> Room:
        """Hold more rows whole than usual, if there is room, where the plan needs it.

        All such components together have to find room: of very many the smallest do.
        """
        needed = "paper" in study.presets or study.judges_on == IN_FOLDS or set(study.methods) & set(SHRINKING)
        most = max(blocks.WHOLE, memory // WHOLE_BYTES) if needed else blocks.WHOLE
        sizes = survey.group_by("case").agg(pl.col("len").sum())["len"].sort()
        fitting = sizes.filter((sizes <= most) & (sizes.cum_sum() * KEPT_BYTES <= HELD_SHARE * memory))
        return cls(memory, int(fitting[-1]) if len(fitting) else 0, workers)

    def holds(self, rows: int, covariates: int) -> bool:
        """Whether so many training rows can be held as columns."""
        return rows * (HELD_BYTES + 8 * covariates) * self.workers <= HELD_SHARE * self.memory


@dataclass(frozen=True, eq=False)
class StudyRows:
    """Training, validation and golden rows, each with its ``part``: a frame, or a Parquet file that streams.

    ``scheme`` and ``notes`` say how they were split. ``audit`` has what became of the records of the tables,
    (outcome, reason, count), where visits were paired.
    """

    table: pl.DataFrame | Path
    covariates: tuple[str, ...]
    scheme: str
    notes: tuple[str, ...] = ()
    audit: tuple[tuple[str, str, int], ...] = ()
    reading: TableReading | None = None  # how the table was read, for later ones
    room: Room = Room(0, 0)  # for rows that stream
    sha256: str | None = None  # of the rows that the file must hold when all of it is read
    cache: CaseCache = field(default_factory=CaseCache)
    scratch: Scratch | None = None  # the folder of the file, where that is not a run folder

    @property
    def streamed(self) -> bool:
        """Whether the rows are too many to be held whole."""
        return isinstance(self.table, Path)

    @property
    def query(self) -> pl.LazyFrame:
        """The rows, read when they are collected."""
        return pl.scan_parquet(self.table, glob=False) if isinstance(self.table, Path) else self.table.lazy()

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All rows in memory, as a report needs them."""
        if not isinstance(self.table, Path):
            return self.table
        if self.sha256 not in (None, self.digest()):
            raise changed_rows(self.table)
        return collect(self.query, self.table.name)

    def in_memory(self) -> StudyRows:
        """Hold all rows in memory, however many they are."""
        return replace(self, table=self.frame)

    @cached_property
    def survey(self) -> pl.DataFrame:
        """Rows, worst state, departures from a state and range of each covariate, by component and part."""
        start, end = pl.col("state_1"), pl.col("state_2")
        ranges = [
            expression.alias(f"{word} {name}")
            for name in self.covariates
            for word, expression in (("low", pl.col(name).min()), ("high", pl.col(name).max()))
        ]
        sums = [pl.len(), end.max().alias("worst"), (end - start).sum().alias("moves"), *ranges]
        query = self.query.group_by("case", "part").agg(sums)
        return collect(query, self.table.name) if isinstance(self.table, Path) else query.collect()

    @property
    def cases(self) -> tuple[str, ...]:
        """The components by name."""
        return tuple(self.survey["case"].unique().sort().to_list())

    def case(self, name: str, select_on: str = GOLDEN) -> CaseRows:
        """The rows of one component, and which of them its methods are judged on."""
        counts = self.count(name)
        found = next(iter(self.survey.filter(case=name, part="train").to_dicts()), {})
        constant = [c for c in self.covariates if found and found[f"low {c}"] == found[f"high {c}"]]
        coding = self.code(name)
        constant += [one.name for one in coding.categories if not one.kept and one.name not in constant]
        coding = coding.keep(c for c in coding.names if c not in constant)
        case = CaseRows(
            name=name,
            table=self.table if isinstance(self.table, Path) else {},
            counts=counts,
            covariates=coding.expand(c for c in self.covariates if c not in constant),
            constant=tuple(constant),
            n_states=found.get("worst", 0),
            moves=found.get("moves", 0),
            judged_on=VALIDATION if select_on == "auto" else select_on,
            coding=coding,
        )
        if self._streams(counts):
            held = self.room.holds(counts["train"], len(self.covariates))
            memory = self.room.memory // self.room.workers
            return replace(case, held=held, memory=memory, cache=self.cache, scratch=self.scratch)
        rows = coding.code(self.query.filter(case=name)).select("part", *case.columns, KEY)
        parts = (collect(rows, self.table.name) if isinstance(self.table, Path) else rows.collect()).partition_by(
            "part", include_key=False, as_dict=True
        )
        empty = rows.collect_schema()
        table = {part: parts.get((part,), pl.DataFrame(schema=empty).drop("part")) for part in PARTS}
        judged_on = choose_rows(select_on, keep_supported(table[VALIDATION], case.n_states))
        return replace(case, table=table, judged_on=judged_on)

    @cached_property
    def levels(self) -> dict[str, pl.DataFrame]:
        """Rows and departures of each level of a category in the training rows of each component."""
        schema = self.query.collect_schema()
        train, moved = self.query.filter(part="train"), (pl.col("state_2") > pl.col("state_1")).sum()
        return {
            name: train.group_by("case", level=name)
            .agg(rows=pl.len(), departures=moved.cast(pl.Int64))
            .sort("case", "level")
            .collect()
            for name in self.covariates
            if schema[name] == pl.String
        }

    def code(self, case: str) -> Coding:
        """The coding of a component's categories, fitted on its training rows.

        The reference is that of all components, so that their effects compare, unless it is rare in this one.
        """
        found = []
        for name, levels in self.levels.items():
            own, pooled = (
                levels.filter(case=case),
                levels.group_by("level").agg(pl.col("rows", "departures").sum()),
            )
            if own.is_empty():
                continue
            reference = fit_category(name, pooled).reference
            alone = fit_category(name, own.drop("case"))
            known = any(one.name == reference and one.departures >= FEWEST for one in alone.levels)
            found.append(fit_category(name, own.drop("case"), reference=reference) if known else alone)
        return Coding(tuple(found))

    def describe_levels(self) -> list[str]:
        """Sentences on categories, on levels that were merged, and on levels that no training row has."""
        said = []
        for name, levels in self.levels.items():
            whole = fit_category(name, levels.group_by("level").agg(pl.col("rows", "departures").sum()))
            others = [level.name for level in whole.levels if level.name != whole.reference]
            said.append(f"{name} is a category: {name_some(others)}, relative to {whole.reference}")
        for case in self.cases if self.levels else ():
            coding = self.code(case)
            held_out = self.query.filter(pl.col("part") != "train", case=case)
            said += [f"{case}: {note}" for note in coding.notes]
            said += [
                f"{case}: {unseen} among those held out; taken as {unseen.reference}"
                for unseen in coding.find_unseen(held_out)
            ]
        return said

    def count(self, case: str) -> dict[str, int]:
        """Number of rows of a component in each part."""
        found = dict(self.survey.filter(case=case).select("part", "len").rows())
        return {part: found.get(part, 0) for part in PARTS}

    def _streams(self, counts: Mapping[str, int]) -> bool:
        return self.streamed and sum(counts.values()) > self.room.whole

    @property
    def large(self) -> tuple[str, ...]:
        """The components that stream in blocks."""
        return tuple(name for name in self.cases if self._streams(self.count(name)))

    def digest(self) -> str:
        """SHA-256 of every value, column by column, but for the lines of the table they stood in."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest_rows(self.query.drop(LINES, strict=False), len(self))

    def counts(self) -> pl.DataFrame:
        """Rows of each component in each part."""
        return self.survey.select("case", "part", "len").sort("case", "part")

    def __len__(self) -> int:
        return int(self.survey["len"].sum()) if isinstance(self.table, Path) else len(self.table)

    def values(self) -> pl.DataFrame:
        """The rows without the lines of the table they stood in."""
        return self.frame.drop(LINES, strict=False)

    def tell_memory(self) -> str:
        """Describe how many rows there are and how they are read, for the log and the terminal."""
        assert isinstance(self.table, Path)
        large, p = self.large, len(self.covariates)
        held = [name for name in large if self.room.holds(self.count(name)["train"], p)]
        kinds = {
            "read whole": len(self.cases) - len(large),
            "with its training rows held in memory": len(held),
            f"read from {self.table.name} block by block in every pass": len(large) - len(held),
        }
        how = ", ".join(f"{count_of(number, 'case')} {how}" for how, number in kinds.items() if number)
        return f"{count_of(len(self), 'row')}, memory limit {say_bytes(self.room.memory)}: {how}"

    def refuse_unfit(self, study: TrialPlan) -> None:
        """Refuse what cannot be done with a component whose rows stream, before anything is fitted."""
        for name in self.large:
            counts = self.count(name)
            limit = say_bytes(self.room.memory)
            many = f"{name} has {sum(counts.values()):,} rows, more than are held whole in {limit}"
            if study.judges_on == IN_FOLDS:
                raise BadOption(
                    f"select_on = 'folds' refits the rows fold by fold, and {many}. Judge on validation rows."
                )
            if POOLED in study.methods:
                raise BadOption(
                    f"pooled fits all components together, and {many}. Leave it out: it is for small components."
                )
            judged_on = VALIDATION if study.judges_on == "auto" else study.judges_on
            if not counts[judged_on]:
                raise BadOption(
                    f"{name} has no {judged_on} rows to judge methods on, and too many rows for folds. Choose "
                    "another partition, such as bridge."
                )


def changed_rows(file: Path) -> DamagedFile:
    """The error for a file whose rows are not those of its run."""
    return DamagedFile(f"{PARTITION} has been changed since the run began.", file=str(file))


def open_rows(
    plan: StudyPlan, data: Any, base: Path, memory: int, *, file: Path | None = None, workers: int = 1
) -> StudyRows:
    """Read, split and check the rows of a study, of ``data`` or of what its plan names.

    Very many stream into ``file``; without one, into a temporary folder that goes with them.
    """
    found = _scan(plan.data, data, base)
    if found is None:
        data = read_source(plan.data, base) if data is None else data
        return split_rows(data, plan.partition, plan.study, plan.data.allow)
    rows = int(collect(found.query.select(pl.len()), found.name).item())
    if rows <= blocks.WHOLE:
        return split_rows(found.collect(), plan.partition, plan.study, plan.data.allow)
    refuse_upside_down(found.moves, plan.data.allow)
    if file is not None:
        return _write(found, rows, plan, file, memory, workers)
    scratch = Scratch()
    return replace(_write(found, rows, plan, scratch.path / PARTITION, memory, workers), scratch=scratch)


def _scan(plan: DataPlan, data: Any, base: Path) -> LazyTransitions | None:
    """Find a table of transitions that need not be read at once; None of anything else."""
    if data is not None:
        return data if isinstance(data, LazyTransitions) else scan_transitions(data)
    return read_how(plan, base).scan(locate(base, plan.source[0])) if plan.kind == "tables" else None


def _write(found: LazyTransitions, rows: int, plan: StudyPlan, file: Path, memory: int, workers: int) -> StudyRows:
    """Split, write, check; the file is in its place when all of it is right."""
    split = plan.partition
    if split.scheme == "given":
        raise BadOption(GIVEN)
    parts = split_lazily(found.query, split.scheme, until=split.until, seed=split.seed)
    wanted = found.covariates if plan.study.covariates is None else plan.study.covariates
    covariates = choose_covariates(parts.train.collect_schema(), wanted)
    queries = [_lay_out(part, covariates, plan.study.cases) for part in parts.by_part()]
    if plan.study.cases is not None:
        check_cases(plan.study.cases, collect(found.query.select(pl.col("case").unique()), found.name).to_series())
    with (
        writing(file) as joined,
        scratch_beside(file, len(queries)) as pieces,
        reading(found.name, into=file.parent),
    ):
        for query, piece in zip(queries, pieces, strict=True):  # together they would wait for each other in memory
            query.sink_parquet(piece)
        pl.scan_parquet(pieces, glob=False).sink_parquet(joined)
        _check_file(joined, covariates)
    made = StudyRows(file, covariates, parts.scheme, found.notes, reading=found.reading)
    for name, levels in made.levels.items():
        refuse_names(name, levels.group_by("level").agg(pl.col("rows").sum()).sort("level"), found.name)
    if "train" not in made.survey["part"]:
        raise no_training(parts.scheme, len(made))
    used = len(made) if plan.study.cases is None else rows
    made = replace(
        made,
        notes=(*found.notes, *_count_unused(used, rows), *made.describe_levels()),
        room=Room.choose(plan.study, made.survey, memory, workers),
    )
    made.refuse_unfit(plan.study)
    return made


def _count_unused(used: int, rows: int) -> list[str]:
    return [] if used == rows else [f"{used:,} of {count_of(rows, 'transition')} used"]


def _lay_out(query: pl.LazyFrame, covariates: Sequence[str], cases: Sequence[str] | None) -> pl.LazyFrame:
    """The rows as a study keeps them: names as text, numbers of one width, no column that nobody asks for."""
    schema = query.collect_schema()
    query = query.with_columns(pl.col(n).cast(pl.String) for n in NAMES if n in schema)
    if cases is not None:
        query = query.filter(pl.col("case").is_in(list(cases)))
    states = [n for n in PAIRED[:2] if schema[n].is_integer()]
    numbers = [n for n in (PAIRED[2], *covariates) if schema[n].is_numeric()]
    query = query.with_columns(level_text(n, schema).alias(n) for n in covariates if is_text(schema[n]))
    query = query.with_columns(pl.col(states).cast(pl.Int64), pl.col(numbers).cast(pl.Float64))
    return query.select(choose_columns(schema.names(), covariates))


def _check_file(file: Path, covariates: tuple[str, ...]) -> None:
    """Look at every value; refuse what no trial could use."""
    query = pl.scan_parquet(file, glob=False)
    schema = query.collect_schema()
    there, named = schema.names(), [name for name in covariates if schema[name] == pl.String]
    columns = Reading(*PAIRED, tuple(name for name in covariates if name not in named))
    refuse_missing(query, named)
    kept = dict.fromkeys([*NAMED, *columns.columns, *(name for name in ("row_1",) if name in there)])
    batches = query.select(list(kept)).collect_batches(chunk_size=blocks.BLOCK_ROWS, lazy=True, engine="streaming")
    for frame in batches:
        try:
            for name in NAMED:
                refuse_nameless(frame[name])
            read_block(frame, columns)
        except InputError as error:
            raise name_table_rows(error, frame) from None


GIVEN = "scheme = 'given' needs rows that are split already: a Partition."


def read_source(plan: DataPlan, base: Path) -> Transitions:
    """The transitions that a plan names; its paths count from ``base``."""
    match plan.kind:
        case "inventory":
            drawn = simulate_inventory() if plan.seed is None else simulate_inventory(seed=plan.seed)
            return read_transitions(drawn.inspections, join=[{"file": drawn.inventory}, {"file": drawn.traffic}])
        case "given":
            raise InputError(
                "The rows of this study came from a program, not from a file: a rerun needs them again. "
                "Call rekka.compare with them, or use --resume on the run folder, which has a copy."
            )
    tables = [locate(base, source) for source in plan.source]
    return read_how(plan, base).transitions(tables)


def read_how(plan: DataPlan, base: Path) -> ReadingOptions:
    """Options for reading the tables of a plan; joined files are paths from here."""
    joins = [join | {"file": str(locate(base, join["file"]))} for join in plan.mapping.get("join", ())]
    return ReadingOptions(changes=plan.mapping | ({"join": joins} if joins else {}), nbi=plan.nbi)


def split_rows(data: Any, split: PartitionPlan, trials: TrialPlan, allow: Sequence[str] = ()) -> StudyRows:
    """Rows of transitions (``Transitions``, ``Partition`` or any dataframe), split and checked."""
    wanted = trials.covariates
    notes: tuple[str, ...] = ()
    audit: tuple[tuple[str, str, int], ...] = ()
    reading: TableReading | None = None
    if isinstance(data, Partition):
        parts = data
    else:
        found = data if isinstance(data, Transitions) else read_transitions(data)
        if found.frame.is_empty():
            raise InputError("No two visits make a transition. rekka check, on the same table, says why.")
        refuse_upside_down(found.moves, allow)
        if split.scheme == "given":
            raise BadOption(GIVEN)
        parts = choose_split(split.scheme, until=split.until, seed=split.seed)(found.frame)
        used = sum(len(part) for part in (parts.train, parts.validation, parts.golden))
        notes = (*found.notes, *_account(found), *_count_unused(used, len(found.frame)))
        if found.audit is not None:
            audit = tuple(found.audit.table.select("outcome", "reason", "count").rows())
        wanted = found.covariates if wanted is None else wanted
        reading = found.reading
    frame = _join_parts(parts)
    covariates = choose_covariates(frame.schema, wanted)
    if trials.cases is not None:
        check_cases(trials.cases, frame["case"].unique())
        frame = frame.filter(pl.col("case").is_in(list(trials.cases)))
    frame = frame.select(choose_columns(frame.columns, covariates))
    made = StudyRows(_check(frame, covariates, parts.scheme), covariates, parts.scheme, notes, audit, reading)
    for name, levels in made.levels.items():
        refuse_names(name, levels.group_by("level").agg(pl.col("rows").sum()).sort("level"), "the table")
    return replace(made, notes=(*notes, *made.describe_levels()))


def choose_columns(there: Sequence[str], covariates: Sequence[str]) -> list[str]:
    """The columns that a study keeps of a table, in the order it keeps them."""
    kept = dict.fromkeys(["part", *NAMES[:3], *PAIRED, *covariates, *PLACES])
    return [name for name in kept if name in there]


def _account(found: Transitions) -> list[str]:
    """Summarise what became of the records, where visits were paired."""
    if found.audit is None:
        return []
    aside = found.audit.table.filter(pl.col("outcome").str.contains("set aside"))
    reasons = "; ".join(f"{reason}: {count:,}" for reason, count in aside.select("reason", "count").rows())
    made = f"{count_of(found.audit.records, 'record')} make {count_of(found.audit.transitions, 'transition')}"
    return [f"{made}; excluded: {reasons}" if reasons else made]


def _join_parts(parts: Partition) -> pl.DataFrame:
    """Join the parts, with names as text; a Partition may have been made by hand."""
    try:
        frame = parts.rows()
    except (pl.exceptions.PolarsError, AttributeError, TypeError) as error:
        raise InputError(
            f"The parts of the partition cannot be put together: {error}. Polars frames of the same columns are "
            "needed, as rekka's partition functions make them."
        ) from None
    missing = [name for name in (*NAMED, *PAIRED) if name not in frame.columns]
    if missing:
        raise missing_columns(missing, frame.columns)
    return frame.with_columns(pl.col(name).cast(pl.String) for name in NAMES if name in frame.columns)


def choose_covariates(schema: Mapping[str, pl.DataType], wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The covariates that are wanted, or all that there are, of a table of transitions."""
    own = (*NAMES, *PAIRED)
    if wanted is None:
        numbers = (n for n, kind in schema.items() if kind.is_numeric())
        return tuple(n for n in numbers if n not in (*own, *PLACES))
    missing = [name for name in wanted if name not in schema]
    if missing:
        raise missing_columns(missing, list(schema))
    for name in wanted:
        if name in own:
            raise BadOption(f"{name} cannot be a covariate: it plays another part. Leave it out.", covariate=name)
    return tuple(wanted)


def check_cases(wanted: Sequence[str], found: pl.Series) -> None:
    """Refuse cases that are not there."""
    there = found.drop_nulls().sort().to_list()
    for name in wanted:
        if name not in there:
            raise no_such_case(name, there)


def _check(frame: pl.DataFrame, covariates: tuple[str, ...], scheme: str) -> pl.DataFrame:
    """The rows in the types of the model; refused is what no trial could use."""
    if frame.is_empty() or not (frame["part"] == "train").any():
        raise no_training(scheme, len(frame))
    try:
        for name in NAMED:
            refuse_nameless(frame[name])
        named = [name for name in covariates if is_text(frame.schema[name])]
        numbered = tuple(name for name in covariates if name not in named)
        columns = inputs.Columns("state_1", "interval_years", numbered)
        refuse_missing(frame.lazy(), named)
        read = inputs.read_predictors(inputs.as_frame(frame), columns)
        end = inputs.read_ends(frame["state_2"], read.start)
    except InputError as error:
        raise name_table_rows(error, frame) from None
    numbers = {name: read.x[:, place] for place, name in enumerate(numbered)}
    return frame.with_columns(
        *(level_text(name, frame.schema).alias(name) for name in named),
        state_1=pl.Series(read.start + 1), state_2=pl.Series(end + 1), interval_years=pl.Series(read.dt),
        **{name: pl.Series(values) for name, values in numbers.items()},
    )  # fmt: skip


def no_training(scheme: str, held_out: int) -> InputError:
    """The error for a split in which nothing trains."""
    return InputError(
        f"No row trains: {scheme}. {held_out:,} rows are held out. Choose another partition.", scheme=scheme
    )


def refuse_nameless(column: pl.Series) -> None:
    """Refuse rows without a name."""
    rows = column.is_null().arg_true().to_list()
    if rows:
        raise BadValues(
            f"{column.name} is missing in {len(rows)} of {len(column)} rows ({name_rows(rows)}). "
            "Fill it in, or exclude such rows.",
            column=column.name,
            rows=rows,
        )


def name_table_rows(error: InputError, frame: pl.DataFrame) -> InputError:
    """Name the rows of the user's table in place of ours in an error, where they are known."""
    rows = error.values.get("rows")
    if not rows or "row_1" not in frame.columns or frame["row_1"].null_count():
        return error
    numbers = frame["row_1"].gather(rows).to_list()
    words = str(error).replace(name_rows(rows), name_rows(numbers), 1)
    return type(error)(words, **error.values | {"rows": numbers})
