"""SHA-256 of rows that are not in memory: the same that ``digest_values`` has for them.

A case with too many rows to be held whole: its rows stay in the run's Parquet file, and are gone through.

It answers what ``CaseRows`` answers. Its training rows are held in memory, as columns, where they fit the limit;
otherwise every pass of a fit reads them anew. Held-out rows are scored block by block.

The rows of a study where they are too many to be held whole: split and checked on the way into a Parquet file.

What is held at a time are blocks of rows, and the names of the bridges. Cases of few rows are read from the file
as they are needed, and are what they always were; the others are gone through block by block.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from rekka.core.errors import BadOption, InputError, OutsideTrainingRange, count_of
from rekka.core.files import scratch_beside, scratch_folder, writing
from rekka.core.folders import locate
from rekka.data.attributes import NAMES
from rekka.data.direction import refuse_upside_down
from rekka.data.panel import PAIRED
from rekka.data.partition import PARTS, list_bridges, split_lazily
from rekka.data.reading import TableReading
from rekka.data.text import collect, reading
from rekka.data.transitions import LazyTransitions, scan_transitions
from rekka.evaluation.resampling import draw_times
from rekka.model.clock import MIDDLE
from rekka.model.fit import Predictor
from rekka.model.likelihood import count_threads
from rekka.streaming import blocks
from rekka.streaming.blocks import Block, FrameSource, Reading, Result, ScanSource, Source, read_block, say_bytes
from rekka.study.plan import POOLED, SHRINKING, DataPlan, StudyPlan, TrialPlan
from rekka.study.rows import (
    GOLDEN,
    IN_FOLDS,
    LINES,
    NAMED,
    VALIDATION,
    CaseRows,
    Judged,
    StudyRows,
    check_cases,
    choose_columns,
    choose_covariates,
    digest_columns,
    name_table_rows,
    no_training,
    read_how,
    read_source,
    refuse_nameless,
    split_rows,
)
from rekka.study.tallies import Roster, Tally, score_block

ROWS_AT_ONCE = 1_000_000  # sorted together, or read of a column together


def digest_query(query: pl.LazyFrame, rows: int) -> str:
    """SHA-256 of every value of so many rows, column by column, each read by itself."""

    def read(name: str) -> Iterable[pl.Series]:
        batches = query.select(name).collect_batches(chunk_size=ROWS_AT_ONCE, lazy=True, engine="streaming")
        return (batch.to_series() for batch in batches)

    return digest_columns(query.collect_schema(), rows, read)


def digest_sorted(query: pl.LazyFrame, names: pl.Series, rows: int) -> str:
    """The same of rows put in order, by their first column and then by the others.

    ``names`` are the different values of the first column, in order: the rows of so many of them at a time are
    sorted, and kept in a temporary folder.
    """
    columns = query.collect_schema().names()
    step = max(len(names) * ROWS_AT_ONCE // max(rows, 1), 1)
    with scratch_folder() as folder:
        files = []
        for number, first in enumerate(range(0, len(names), step)):
            some = names[first : first + step]
            within = pl.col(columns[0]).is_between(pl.lit(some[0]), pl.lit(some[-1]))
            files.append(folder / f"{number:05d}.parquet")
            query.filter(within).collect(engine="streaming").sort(columns).write_parquet(files[-1])
        ordered = pl.scan_parquet(files, glob=False) if files else query
        return digest_query(ordered, rows)


Made = TypeVar("Made")
BRIDGE = "bridge"  # a number for each row's bridge: shorter than its name
_KEY = pl.col("bridge_id").hash(0).alias(BRIDGE)


class Shelf:
    """What is held of one case, until another needs the room. It stays behind when a case goes elsewhere."""

    def __init__(self) -> None:
        self.case: str | None = None
        self.things: dict[Any, Any] = {}

    def keep(self, case: str, key: Any, make: Callable[[], Made]) -> Made:
        """What was kept under this key, or made now."""
        if case != self.case:
            self.case, self.things = case, {}
        if key not in self.things:
            self.things[key] = make()
        found: Made = self.things[key]
        return found

    def __reduce__(self) -> tuple[type[Shelf], tuple[()]]:
        return Shelf, ()


@dataclass(frozen=True, eq=False)
class LargeCase:
    """``counts``: rows in each part; ``held``: whether the training rows are kept in memory.

    ``covariates`` vary in the training rows, ``constant`` ones do not; ``moves`` are departures from a state.
    """

    name: str
    file: Path
    counts: Mapping[str, int]
    covariates: tuple[str, ...]
    constant: tuple[str, ...]
    n_states: int
    moves: int
    judged_on: str
    held: bool
    memory: int  # the limit, in bytes
    clock: str = MIDDLE  # where in an interval ages are taken
    shelf: Shelf = field(default_factory=Shelf)
    scratch: object | None = None  # what the file goes with, if it is a temporary one

    @property
    def trained(self) -> int:
        """How many bridges train."""
        return self.shelf.keep(self.name, "trained", lambda: len(list_bridges(self.query("train"))))

    @property
    def columns(self) -> list[str]:
        """The columns that a fit is given."""
        return ["bridge_id", "state_1", "state_2", "interval_years", *self.covariates]

    def query(self, part: str) -> pl.LazyFrame:
        """The rows of a part, as they stand in the file."""
        return pl.scan_parquet(self.file, glob=False).filter(case=self.name, part=part)

    def source(
        self, part: str, covariates: tuple[str, ...] | None = None, *, threads: int | None = None
    ) -> FrameSource | ScanSource:
        """The rows of a part, in blocks."""
        names = self.covariates if covariates is None else covariates
        reading = Reading("state_1", "state_2", "interval_years", names, group=BRIDGE)
        size = {"threads": count_threads(threads), "block_rows": blocks.BLOCK_ROWS}
        if self.held and part == "train":
            return FrameSource(self.shelf.keep(self.name, part, self._hold), reading, **size)
        return ScanSource(self.query(part).with_columns(_KEY), reading, **size, name=self.file.name)

    def _hold(self) -> pl.DataFrame:
        """The training rows in memory; states are small numbers."""
        states = pl.col("state_1", "state_2").cast(pl.Int16)
        columns = [states, pl.col("interval_years"), *map(pl.col, self.covariates), _KEY]
        return collect(self.query("train").select(columns), self.file.name)

    def roster(self, part: str) -> Roster:
        """The bridges of a part."""
        return self.shelf.keep(self.name, ("roster", part), lambda: self._list_bridges(part))

    def _list_bridges(self, part: str) -> Roster:
        names = list_bridges(self.query(part))
        return Roster.of(names, names.hash(0).hash(0))  # blocks hash the number that stands for a name

    def forecast(self, predictor: Predictor, part: str) -> Tally:
        """The rows of a part as a model forecasts them."""
        return self._score(predictor, part, predictor.covariates)

    def persist(self, part: str) -> Tally:
        """The rows of a part as forecast by saying that nothing changes."""
        return self._score(None, part, ())

    def _score(self, predictor: Predictor | None, part: str, covariates: tuple[str, ...]) -> Tally:
        roster = self.roster(part)
        score = partial(score_block, predictor, roster, self.n_states)
        return Tally.add_up(self.source(part, covariates).map(score), roster, self.n_states)

    def name_bridge(self, error: OutsideTrainingRange) -> str:
        """The bridge of the judged row that an operator cannot take."""
        return str(error.values["bridge"])

    def column(self, part: str, name: str) -> pl.Series:
        """One column of a part."""
        return collect(self.query(part).select(name), self.file.name).to_series()

    def find_range(self, part: str, name: str) -> tuple[float, float]:
        """The least and the largest value of a column."""
        ends = self.query(part).select(low=pl.col(name).min(), high=pl.col(name).max())
        low, high = collect(ends, self.file.name).row(0)
        return float(low), float(high)

    def states(self, part: str) -> set[int]:
        """The states in which rows of a part start or end."""
        seen = self.query(part).select("state_1", "state_2").unique()
        return {int(state) for row in collect(seen, self.file.name).rows() for state in row}

    def count_unsupported(self, part: str) -> int:
        """How many rows of a part have states that the training rows do not know."""
        unknown = pl.max_horizontal("state_1", "state_2") > self.n_states
        return int(collect(self.query(part).select(unknown.sum()), self.file.name).item())

    def redraw(self, rng: np.random.Generator, *, threads: int | None = None) -> DrawnSource:
        """The training rows, each counted as often as its bridge is drawn."""
        seed = int(rng.integers(0, 2**64, dtype=np.uint64))
        return DrawnSource(self.source("train", threads=threads), seed)


@dataclass(frozen=True, eq=False)
class DrawnSource:
    """Rows of bridges drawn with replacement: the weight of a row is how often its bridge was drawn."""

    rows: Source
    seed: int

    @property
    def reading(self) -> Reading:
        """Which columns are what."""
        return self.rows.reading

    def without_groups(self) -> DrawnSource:
        """The same: a row's bridge decides how often it was drawn."""
        return self

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order."""
        return self.rows.map(partial(_draw, function, self.seed))


def _draw(function: Callable[[Block], Result], seed: int, block: Block) -> Result:
    assert block.group is not None
    times = draw_times(block.group, seed)
    here = times > 0
    drawn = block.take(here)
    return function(drawn._replace(weight=drawn.weight * times[here]))


AnyCase = CaseRows | LargeCase
AnyJudged = Judged | Tally


PARTITION = "partition.parquet"
WHOLE_BYTES = 1_000  # a row, where a fit has all of them in memory: columns, names, scaled copies, work
KEPT_BYTES = 250  # a row of a case that was read whole, kept until the study is done
HELD_BYTES = 24  # the same where they are held as columns: states, years, bridge; besides 8 for each covariate
HELD_SHARE = 0.5  # of the limit; the rest is for blocks, bridges and the program itself


class Scratch:
    """A temporary folder that goes when nobody has a use for it any more."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="rekka-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class LargeRows:
    """The rows of a study in ``file``, each with its part; ``survey`` has what was found of each case and part.

    ``memory`` is the limit in bytes, shared by so many ``workers``. Cases of up to ``whole`` rows are read whole.
    """

    file: Path
    covariates: tuple[str, ...]
    scheme: str
    survey: pl.DataFrame
    memory: int
    whole: int
    workers: int = 1
    notes: tuple[str, ...] = ()
    audit: tuple[tuple[str, str, int], ...] = ()
    shelf: Shelf = field(default_factory=Shelf)
    scratch: Scratch | None = None  # the folder of the file, where that is not a run folder
    reading: TableReading | None = None

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases by name."""
        return tuple(self.survey["case"].unique().sort().to_list())

    def case(self, name: str, select_on: str = GOLDEN) -> AnyCase:
        """The rows of one case, and which of them its methods are judged on."""
        counts = self._count(name)
        if sum(counts.values()) <= self.whole:
            query = pl.scan_parquet(self.file, glob=False).filter(case=name)
            rows = collect(query, self.file.name)
            train, validation, golden = (rows.filter(part=part) for part in PARTS)
            return CaseRows.build(name, train, validation, golden, self.covariates, select_on)
        trained = self.survey.filter(case=name, part="train").to_dicts()
        found = trained[0] if trained else {}
        constant = tuple(c for c in self.covariates if found and found[f"low {c}"] == found[f"high {c}"])
        return LargeCase(
            name=name,
            file=self.file,
            counts=counts,
            covariates=tuple(c for c in self.covariates if c not in constant),
            constant=constant,
            n_states=found.get("worst", 0),
            moves=found.get("moves", 0),
            judged_on=VALIDATION if select_on == "auto" else select_on,
            held=self._fits(counts["train"]),
            memory=self.memory // self.workers,
            shelf=self.shelf,
            scratch=self.scratch,
        )

    def _count(self, case: str) -> dict[str, int]:
        found = dict(self.survey.filter(case=case).select("part", "len").rows())
        return {part: found.get(part, 0) for part in PARTS}

    def _fits(self, rows: int) -> bool:
        """Whether so many training rows can be held as columns."""
        return rows * (HELD_BYTES + 8 * len(self.covariates)) * self.workers <= HELD_SHARE * self.memory

    def digest(self) -> str:
        """SHA-256 of every value, column by column: what ``StudyRows`` has for the same rows."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest_query(pl.scan_parquet(self.file, glob=False).drop(LINES, strict=False), len(self))

    def counts(self) -> pl.DataFrame:
        """Rows of each case in each part."""
        return self.survey.select("case", "part", "len").sort("case", "part")

    def __len__(self) -> int:
        return int(self.survey["len"].sum())

    def read(self) -> StudyRows:
        """All rows, in memory: what a report needs."""
        frame = collect(pl.scan_parquet(self.file, glob=False), self.file.name)
        return StudyRows(frame, self.covariates, self.scheme, self.notes, self.audit, self.reading)

    @property
    def large(self) -> tuple[str, ...]:
        """The cases that are gone through block by block."""
        return tuple(name for name in self.cases if sum(self._count(name).values()) > self.whole)

    def tell_memory(self) -> str:
        """How many rows there are and how they are gone through, for the log and the terminal."""
        large = self.large
        held = [name for name in large if self._fits(self._count(name)["train"])]
        kinds = {
            "read whole": len(self.cases) - len(large),
            "with its training rows held in memory": len(held),
            f"read from {self.file.name} block by block in every pass": len(large) - len(held),
        }
        told = ", ".join(f"{count_of(number, 'case')} {how}" for how, number in kinds.items() if number)
        return f"{count_of(len(self), 'row')}, memory limit {say_bytes(self.memory)}: {told}"


AnyRows = StudyRows | LargeRows


def open_rows(
    plan: StudyPlan, data: Any, base: Path, memory: int, *, file: Path | None = None, workers: int = 1
) -> AnyRows:
    """The rows of a study, of ``data`` or of what its plan names; held, or in ``file`` where they are many.

    Without a file one is written to a temporary folder, which goes when the rows are not needed any more.
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
    """A table of transitions that need not be read at once; None of anything else."""
    if data is not None:
        return data if isinstance(data, LazyTransitions) else scan_transitions(data)
    return read_how(plan, base).scan(locate(base, plan.source[0])) if plan.kind == "tables" else None


def _write(found: LazyTransitions, rows: int, plan: StudyPlan, file: Path, memory: int, workers: int) -> LargeRows:
    """Split, write, check; the file is in its place when all of it is right."""
    if plan.partition.scheme == "given":
        raise BadOption("scheme = 'given' needs rows that are split already: a Partition.")
    split = plan.partition
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
        _check(joined, covariates)
    survey = survey_file(file, covariates)
    if "train" not in survey["part"]:
        raise no_training(parts.scheme, int(survey["len"].sum()))
    used = int(survey["len"].sum()) if plan.study.cases is None else rows
    notes = found.notes if used == rows else (*found.notes, f"{used:,} of {count_of(rows, 'transition')} used")
    whole = choose_whole(plan.study, survey, memory)
    made = LargeRows(file, covariates, parts.scheme, survey, memory, whole, workers, notes, reading=found.reading)
    refuse_unfit(made, plan.study)
    return made


def _lay_out(query: pl.LazyFrame, covariates: Sequence[str], cases: Sequence[str] | None) -> pl.LazyFrame:
    """The rows as a study keeps them: names as text, numbers of one width, no column that nobody asks for."""
    schema = query.collect_schema()
    query = query.with_columns(pl.col(n).cast(pl.String) for n in NAMES if n in schema)
    if cases is not None:
        query = query.filter(pl.col("case").is_in(list(cases)))
    states = [n for n in PAIRED[:2] if schema[n].is_integer()]
    numbers = [n for n in (PAIRED[2], *covariates) if schema[n].is_numeric()]
    query = query.with_columns(pl.col(states).cast(pl.Int64), pl.col(numbers).cast(pl.Float64))
    return query.select(choose_columns(schema.names(), covariates))


def _check(file: Path, covariates: tuple[str, ...]) -> None:
    """Look at every value; refused is what no trial could use."""
    columns = Reading(*PAIRED, covariates)
    query = pl.scan_parquet(file, glob=False)
    there = query.collect_schema().names()
    kept = dict.fromkeys([*NAMED, *columns.columns, *(name for name in ("row_1",) if name in there)])
    batches = query.select(list(kept)).collect_batches(chunk_size=blocks.BLOCK_ROWS, lazy=True, engine="streaming")
    for frame in batches:
        try:
            for name in NAMED:
                refuse_nameless(frame[name])
            read_block(frame, columns)
        except InputError as error:
            raise name_table_rows(error, frame) from None


def survey_file(file: Path, covariates: Sequence[str]) -> pl.DataFrame:
    """Of each case and part: rows, the worst state, departures from a state, the range of each covariate."""
    start, end = pl.col("state_1"), pl.col("state_2")
    ranges = [
        expression.alias(f"{word} {name}")
        for name in covariates
        for word, expression in (("low", pl.col(name).min()), ("high", pl.col(name).max()))
    ]
    sums = [pl.len(), end.max().alias("worst"), (end - start).sum().alias("moves"), *ranges]
    return collect(pl.scan_parquet(file, glob=False).group_by("case", "part").agg(sums), file.name)


def choose_whole(study: TrialPlan, survey: pl.DataFrame, memory: int) -> int:
    """The most rows of a case that are read whole: more than usual, if there is room, where the plan needs it.

    All such cases together have to find room: of very many cases the smallest do.
    """
    needed = "paper" in study.presets or study.judges_on == IN_FOLDS or set(study.methods) & set(SHRINKING)
    most = max(blocks.WHOLE, memory // WHOLE_BYTES) if needed else blocks.WHOLE
    sizes = survey.group_by("case").agg(pl.col("len").sum())["len"].sort()
    fitting = sizes.filter((sizes <= most) & (sizes.cum_sum() * KEPT_BYTES <= HELD_SHARE * memory))
    return int(fitting[-1]) if len(fitting) else 0


def refuse_unfit(rows: LargeRows, study: TrialPlan) -> None:
    """Refuse what cannot be done with a case whose rows are not held whole, before anything is fitted."""
    for name in rows.large:
        counts = rows._count(name)
        many = f"{name} has {sum(counts.values()):,} rows, more than are held whole in {say_bytes(rows.memory)}"
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
                f"{name} has no {judged_on} rows to judge methods on, and too many rows for folds. Choose another "
                "partition, such as bridge."
            )
