"""The rows of a case, and which of them its methods are judged on.

A method is judged on rows it was not fitted on: the validation rows; or, where they are few, the training and
validation rows in folds by bridge, each fold forecast by a fit to the others; or, as the paper has it, the golden
rows, which then cannot confirm the choice any more.

The rows of a study: read as its plan says or taken from a program, checked once, split by case.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import (
    BadOption,
    BadValues,
    InputError,
    OutsideTrainingRange,
    count_of,
    missing_columns,
    name_rows,
    no_such_case,
)
from rekka.core.folders import locate
from rekka.data.attributes import NAMES, PLACES
from rekka.data.direction import refuse_upside_down
from rekka.data.panel import PAIRED
from rekka.data.partition import PARTS, Partition, choose_split
from rekka.data.reading import TableReading
from rekka.data.transitions import ReadingOptions, Transitions, read_transitions
from rekka.evaluation.pooling import Pooling
from rekka.evaluation.resampling import Index, Sample, folds
from rekka.evaluation.scores import (
    Interval,
    RowScores,
    Scores,
    join_rows,
    mean_interval,
    score_persistence_rows,
    score_rows,
    split_supported,
)
from rekka.model import inputs
from rekka.model.clock import MIDDLE
from rekka.model.fit import Predictor
from rekka.simulation.inventory import simulate_inventory
from rekka.study.plan import DataPlan, PartitionPlan, TrialPlan

FEW_VALIDATION = 100  # rows; an accuracy has a standard error of 5 % there
FEW_BRIDGES = 30  # fewer make no interval to rely on
FOLDS = 5
VALIDATION, IN_FOLDS, GOLDEN = "validation", "folds", "golden"
WORDS = {
    VALIDATION: "validation rows",
    IN_FOLDS: f"{FOLDS} folds by bridge of the training and validation rows",
    GOLDEN: "confirmation rows",
}

Fitting = Callable[[Sample], Predictor]


@dataclass(frozen=True, eq=False)
class Judged:
    """Forecasts of the rows that methods are judged on, row by row, with their bridges."""

    rows: RowScores
    bridge: NDArray[np.str_]
    unsupported: int = 0

    @property
    def scores(self) -> Scores:
        """Of all rows together."""
        return self.rows.mean(self.unsupported)

    @property
    def bridges(self) -> int:
        """How many there are."""
        return int(np.unique(self.bridge).size)

    def folds(self, k: int, seed: int | str) -> Iterator[tuple[Index, Index]]:
        """For each fold the rows outside it and those inside it, by bridge."""
        return folds(self.bridge, k, seed)

    def take(self, index: NDArray[Any]) -> Judged:
        """Some of the rows."""
        return Judged(self.rows.take(index), self.bridge[index], self.unsupported)

    def accuracy(self, confidence: float) -> Interval:
        """The share of rows whose forecast was right."""
        return mean_interval(self.rows.right.astype(float), self.bridge, confidence)

    def log_loss(self, confidence: float) -> Interval:
        """The mean log loss."""
        return mean_interval(self.rows.loss, self.bridge, confidence)

    def accuracy_above(self, other: Judged, confidence: float) -> Interval:
        """By how much more often it is right than other forecasts of the same rows."""
        return mean_interval(self.rows.right.astype(float) - other.rows.right, self.bridge, confidence)

    def log_loss_above(self, other: Judged, confidence: float) -> Interval:
        """The difference of its log loss from that of other forecasts of the same rows; without any, of none."""
        if not len(other.bridge):
            return other.log_loss(confidence)
        return mean_interval(self.rows.loss - other.rows.loss, self.bridge, confidence)

    @classmethod
    def join(cls, parts: Sequence[Judged]) -> Judged:
        """The forecasts of all parts, one after the other."""
        return cls(join_rows([one.rows for one in parts]), np.concatenate([one.bridge for one in parts]))


@dataclass(frozen=True)
class CaseRows:
    """Rows of a case in each part, and the covariates that vary in the training rows.

    ``judged_on`` says which rows methods are judged on; ``others`` are training rows of the other cases, where a
    method pools, and ``pooling`` that of all training rows, a place to start from when some are left out.
    """

    name: str
    train: pl.DataFrame
    validation: pl.DataFrame
    golden: pl.DataFrame
    covariates: tuple[str, ...]
    constant: tuple[str, ...]
    judged_on: str = GOLDEN
    others: Mapping[str, Sample] = field(default_factory=dict)
    pooling: Pooling | None = None
    clock: str = MIDDLE  # where in an interval ages are taken

    @classmethod
    def build(
        cls,
        name: str,
        train: pl.DataFrame,
        validation: pl.DataFrame,
        golden: pl.DataFrame,
        covariates: Sequence[str],
        select_on: str = GOLDEN,
    ) -> CaseRows:
        """Tell the covariates that vary from those that do not, and choose what to judge on."""
        constant = tuple(c for c in covariates if train[c].n_unique() == 1) if len(train) else ()
        varying = tuple(c for c in covariates if c not in constant)
        needed = ["bridge_id", "state_1", "state_2", "interval_years", *varying]
        first, second, third = (part.select(needed) for part in (train, validation, golden))
        found = cls(name, first, second, third, varying, constant)
        return replace(found, judged_on=choose_rows(select_on, keep_supported(validation, found.n_states)))

    @cached_property
    def n_states(self) -> int:
        """K, the worst end state of the training rows; 0 where there are none."""
        return 0 if self.train.is_empty() else int(self.train["state_2"].to_numpy().max())

    @cached_property
    def training(self) -> Sample:
        """The rows that train."""
        return Sample.of(self.train, self.covariates, self.n_states)

    @cached_property
    def bridges(self) -> NDArray[np.str_]:
        """The bridges of the training and validation rows."""
        return np.unique(self.sample(IN_FOLDS)[0].bridge)

    def sample(self, part: str) -> tuple[Sample, int]:
        """The rows of a part, or of the folds, whose states the training rows know; and how many others."""
        frame = pl.concat([self.train, self.validation]) if part == IN_FOLDS else getattr(self, part)
        known = keep_supported(frame, self.n_states)
        return Sample.of(known, self.covariates, self.n_states), len(frame) - len(known)

    @cached_property
    def judged(self) -> tuple[Sample, int]:
        """The rows that methods are judged on, and how many were left out."""
        return self.sample(self.judged_on)

    @property
    def counts(self) -> dict[str, int]:
        """Rows in each part."""
        return {part: len(getattr(self, part)) for part in PARTS}

    @property
    def columns(self) -> list[str]:
        """The columns that a fit is given."""
        return list(self.train.columns)

    @property
    def trained(self) -> int:
        """How many bridges train."""
        return self.train["bridge_id"].n_unique()

    @property
    def moves(self) -> int:
        """Departures from a state in the training rows."""
        start, end = (self.train[name].to_numpy() for name in ("state_1", "state_2"))
        return int((end - start).sum())

    def column(self, part: str, name: str) -> pl.Series:
        """One column of a part."""
        rows: pl.DataFrame = getattr(self, part)
        return rows[name]

    def find_range(self, part: str, name: str) -> tuple[float, float]:
        """The least and the largest value of a column."""
        values = self.column(part, name).to_numpy()
        return float(values.min()), float(values.max())

    def states(self, part: str) -> set[int]:
        """The states in which rows of a part start or end."""
        return {
            int(state) for name in ("state_1", "state_2") for state in self.column(part, name).unique().to_list()
        }

    def count_unsupported(self, part: str) -> int:
        """How many rows of a part have states that the training rows do not know."""
        rows: pl.DataFrame = getattr(self, part)
        return len(rows) - len(keep_supported(rows, self.n_states))

    def forecast(self, predictor: Predictor, part: str) -> Judged:
        """The rows of a part as a model forecasts them."""
        sample, unsupported = self.sample(part)
        return Judged(forecast(predictor, sample), sample.bridge, unsupported)

    def judge(self, fitted: Predictor, fit: Fitting, seed: int) -> Judged:
        """The judged rows as forecast by ``fitted``, of the training rows; in folds by what ``fit`` gives."""
        sample, unsupported = self.judged
        if self.judged_on == IN_FOLDS:
            return Judged(forecast_folds(sample, fit, seed), sample.bridge, unsupported)
        return Judged(forecast(fitted, sample), sample.bridge, unsupported)

    def persist(self, part: str) -> Judged:
        """The rows of a part as forecast by saying that nothing changes."""
        sample, unsupported = self.sample(part)
        scored = score_persistence_rows(sample.rows.start, sample.rows.end, max(self.n_states, 1))
        return Judged(scored, sample.bridge, unsupported)

    def name_bridge(self, error: OutsideTrainingRange) -> str:
        """The bridge of the judged row that an operator cannot take."""
        return str(self.judged[0].bridge[error.values["row"]])


def choose_rows(select_on: str, validation: pl.DataFrame) -> str:
    """Validation rows, those that can be scored, unless they are few or something else is asked for."""
    if select_on != "auto":
        return select_on
    enough = len(validation) >= FEW_VALIDATION and validation["bridge_id"].n_unique() >= FEW_BRIDGES
    return VALIDATION if enough else IN_FOLDS


def keep_supported(frame: pl.DataFrame, n_states: int) -> pl.DataFrame:
    """The rows whose states the training rows know."""
    start, end = (frame[name].to_numpy().astype(np.int64) - 1 for name in ("state_1", "state_2"))
    return frame.filter(pl.Series(split_supported(start, end, n_states)))


def forecast(predictor: Predictor, sample: Sample) -> RowScores:
    """The forecasts of these rows, scored one by one."""
    rows = sample.rows
    if not len(sample):
        return forecast_nothing(rows.n_states)
    log_p = predictor.log_probabilities(rows, sample.x)
    return score_rows(predictor.probabilities(rows.start, rows.dt, sample.x), log_p, rows.start, rows.end)


def forecast_nothing(n_states: int) -> RowScores:
    """The forecasts of no rows."""
    none = np.empty(0, np.int64)
    return score_rows(np.empty((0, max(n_states, 1))), np.empty(0), none, none)


def forecast_folds(sample: Sample, fit: Fitting, seed: int) -> RowScores:
    """Each fold's rows forecast by a fit to the other folds, in the order of the sample."""
    parts, places = [], []
    for outside, inside in folds(sample.bridge, FOLDS, seed):
        predictor = fit(sample.take(outside))
        parts.append(forecast(predictor, sample.take(inside)))
        places.append(inside)
    if not parts:
        return forecast_nothing(sample.rows.n_states)
    return join_rows(parts).take(np.argsort(np.concatenate(places)))


NAMED = ("bridge_id", "case")  # what every row must have
LINES = ("row_1", "row_2")


@dataclass(frozen=True)
class StudyRows:
    """The rows that train, validate and are golden, with their ``part``; ``scheme`` and ``notes`` say how.

    ``audit`` has what became of the records of the tables, (outcome, reason, count), where visits were paired.
    """

    frame: pl.DataFrame
    covariates: tuple[str, ...]
    scheme: str
    notes: tuple[str, ...] = ()
    audit: tuple[tuple[str, str, int], ...] = ()
    reading: TableReading | None = None  # how the table was read, for later ones

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases by name."""
        return tuple(self.frame["case"].unique().sort().to_list())

    def case(self, name: str, select_on: str = GOLDEN) -> CaseRows:
        """The rows of one case, and which of them its methods are judged on."""
        rows = self.frame.filter(case=name)
        train, validation, golden = (rows.filter(part=part) for part in PARTS)
        return CaseRows.build(name, train, validation, golden, self.covariates, select_on)

    def digest(self) -> str:
        """SHA-256 of every value, column by column: the same for the same rows on any machine."""
        return digest_values(self.values())

    def counts(self) -> pl.DataFrame:
        """Rows of each case in each part."""
        return self.frame.group_by("case", "part").len().sort("case", "part")

    def __len__(self) -> int:
        return len(self.frame)

    def values(self) -> pl.DataFrame:
        """What makes the rows what they are: all but the lines of the table they stood in."""
        return self.frame.drop(LINES, strict=False)


def digest_values(frame: pl.DataFrame) -> str:
    """SHA-256 of every value, column by column."""
    return digest_columns(frame.schema, len(frame), lambda name: [frame[name]])


def digest_columns(
    schema: Mapping[str, pl.DataType], rows: int, read: Callable[[str], Iterable[pl.Series]]
) -> str:
    """The same of columns that are read piece by piece, each as often as it takes.

    A column is bytes that no other column has: its head, which values are missing, and the values.
    """
    found = hashlib.sha256()
    for name, kind in schema.items():
        word, spellings = _choose_spellings(kind)
        found.update(json.dumps([name, word, rows]).encode())
        for spell in (_spell_missing, *spellings):
            for piece in read(name):
                found.update(spell(piece))
    return found.hexdigest()


Spelling = Callable[[pl.Series], bytes]


def _choose_spellings(kind: pl.DataType) -> tuple[str, tuple[Spelling, ...]]:
    """Whole numbers, dates and moments as 64 bits, decimal numbers too; all else as text, with the lengths of the
    texts. Numbers of another width, as another version may read them, are the same numbers.
    """  # noqa: D205
    if kind.is_float():
        return "float", (_spell_decimal,)
    if (kind.is_integer() and kind not in (pl.UInt64, pl.Int128)) or kind.is_temporal():
        word = "whole" if kind.is_integer() else f"{type(kind).__name__} {getattr(kind, 'time_unit', '')}"
        return word, (_spell_whole,)
    return "text", (_spell_lengths, _spell_text)


def _spell_missing(column: pl.Series) -> bytes:
    return column.is_null().to_numpy().tobytes()


def _spell_decimal(column: pl.Series) -> bytes:
    return column.cast(pl.Float64).fill_null(0.0).to_numpy().astype("<f8").tobytes()


def _spell_whole(column: pl.Series) -> bytes:
    return column.to_physical().cast(pl.Int64).fill_null(0).to_numpy().astype("<i8").tobytes()


def _spell_lengths(column: pl.Series) -> bytes:
    return column.cast(pl.String).fill_null("").str.len_bytes().to_numpy().astype("<i8").tobytes()


def _spell_text(column: pl.Series) -> bytes:
    return "".join(column.cast(pl.String).fill_null("").to_list()).encode()


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
    """How the tables of a plan are read; joined files are paths from here."""
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
            raise BadOption("scheme = 'given' needs rows that are split already: a Partition.")
        parts = choose_split(split.scheme, until=split.until, seed=split.seed)(found.frame)
        used = sum(len(part) for part in (parts.train, parts.validation, parts.golden))
        unused = (
            [] if used == len(found.frame) else [f"{used:,} of {count_of(len(found.frame), 'transition')} used"]
        )
        notes = (*found.notes, *_account(found), *unused)
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
    return StudyRows(_check(frame, covariates, parts.scheme), covariates, parts.scheme, notes, audit, reading)


def choose_columns(there: Sequence[str], covariates: Sequence[str]) -> list[str]:
    """The columns that a study keeps of a table, in the order it keeps them."""
    kept = dict.fromkeys(["part", *NAMES[:3], *PAIRED, *covariates, *PLACES])
    return [name for name in kept if name in there]


def _account(found: Transitions) -> list[str]:
    """What became of the records, where visits were paired."""
    if found.audit is None:
        return []
    aside = found.audit.table.filter(pl.col("outcome").str.contains("set aside"))
    reasons = "; ".join(f"{reason}: {count:,}" for reason, count in aside.select("reason", "count").rows())
    made = f"{count_of(found.audit.records, 'record')} make {count_of(found.audit.transitions, 'transition')}"
    return [f"{made}; excluded: {reasons}" if reasons else made]


def _join_parts(parts: Partition) -> pl.DataFrame:
    """All rows, whose names are text; a Partition may have been made by hand."""
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
        columns = inputs.Columns("state_1", "interval_years", covariates)
        read = inputs.read_predictors(inputs.as_frame(frame), columns)
        end = inputs.read_ends(frame["state_2"], read.start)
    except InputError as error:
        raise name_table_rows(error, frame) from None
    numbers = {name: read.x[:, place] for place, name in enumerate(covariates)}
    return frame.with_columns(
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
    """The same error with the rows of the user's table in place of ours, where they are known."""
    rows = error.values.get("rows")
    if not rows or "row_1" not in frame.columns or frame["row_1"].null_count():
        return error
    numbers = frame["row_1"].gather(rows).to_list()
    words = str(error).replace(name_rows(rows), name_rows(numbers), 1)
    return type(error)(words, **error.values | {"rows": numbers})
