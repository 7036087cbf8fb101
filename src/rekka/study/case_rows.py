"""The rows of one component, in memory or in a Parquet file, and which of them its methods are judged on.

A method is judged on rows it was not fitted on: the validation rows; or, where they are few, the training and
validation rows in folds by bridge, each fold forecast by a fit to the others; or, as in the paper, the golden
rows, which then cannot confirm the choice any more.

Few rows are held whole, as frames. Of very many only the training rows are held, as columns, where they fit the
memory limit; otherwise they stream from the file in blocks, in every pass over the data. Scores are added up by
bridge either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.data.categories import NO_CODING, Coding
from rekka.data.partition import list_bridges
from rekka.data.text import collect
from rekka.evaluation.pooling import Pooling
from rekka.evaluation.resampling import Sample, draw_times, folds
from rekka.evaluation.scores import join_rows, split_supported
from rekka.model.clock import MIDDLE
from rekka.model.fit import Predictor
from rekka.model.likelihood import count_threads
from rekka.streaming import blocks
from rekka.streaming.blocks import Block, FrameSource, Reading, Result, ScanSource, Source
from rekka.study.digests import digest_sorted
from rekka.study.scores import BridgeIndex, BridgeScores, score_block, score_sample

FEW_VALIDATION = 100  # rows; an accuracy has a standard error of 5 % there
FEW_BRIDGES = 30  # fewer make no interval to rely on
FOLDS = 5
VALIDATION, IN_FOLDS, GOLDEN = "validation", "folds", "golden"
WORDS = {
    VALIDATION: "validation rows",
    IN_FOLDS: f"{FOLDS} folds by bridge of the training and validation rows",
    GOLDEN: "confirmation rows",
}
IDENTITY = ("bridge_id", "state_1", "state_2", "interval_years")  # which rows they are, whatever their covariates
BRIDGE = "bridge"  # a number for each row's bridge: shorter than its name
KEY = pl.col("bridge_id").hash(0).alias(BRIDGE)

Fitting = Callable[[Sample], Predictor]
Made = TypeVar("Made")


class CaseCache:
    """Things kept of one component until another needs the room; not sent to other processes."""

    def __init__(self) -> None:
        self.case: str | None = None
        self.kept: dict[Any, Any] = {}

    def keep(self, case: str, key: Any, make: Callable[[], Made]) -> Made:
        """Return what was kept under this key, or make it now."""
        if case != self.case:
            self.case, self.kept = case, {}
        if key not in self.kept:
            self.kept[key] = make()
        found: Made = self.kept[key]
        return found

    def __reduce__(self) -> tuple[type[CaseCache], tuple[()]]:
        return CaseCache, ()


@dataclass(frozen=True, eq=False)
class CaseRows:
    """Rows of a component: ``table`` holds a frame for each part, or is the Parquet file of the whole study.

    Of the training rows: ``covariates`` vary in them, ``constant`` ones do not; ``n_states`` is the worst end
    state, K; ``moves`` are departures from a state. ``others`` are training rows of the other components, where a
    method pools, and ``pooling`` that of all training rows, a place to start from when some are left out.
    """

    name: str
    table: Mapping[str, pl.DataFrame] | Path
    counts: Mapping[str, int]  # rows in each part
    covariates: tuple[str, ...]
    constant: tuple[str, ...]
    n_states: int
    moves: int
    judged_on: str
    held: bool = True  # whether the training rows are kept in memory
    memory: int = 0  # the limit, in bytes, where rows stream
    others: Mapping[str, Sample] = field(default_factory=dict)
    pooling: Pooling | None = None
    clock: str = MIDDLE  # where in an interval ages are taken
    cache: CaseCache = field(default_factory=CaseCache)
    scratch: object | None = None  # keeps a temporary file alive
    coding: Coding = NO_CODING  # of the categories, whose terms are among the covariates

    @property
    def streamed(self) -> bool:
        """Whether the rows are too many to be held whole."""
        return isinstance(self.table, Path)

    @property
    def columns(self) -> list[str]:
        """The columns that a fit is given."""
        return [*IDENTITY, *self.covariates]

    def query(self, part: str) -> pl.LazyFrame:
        """The rows of a part, or of the folds."""
        if isinstance(self.table, Path):
            return self.coding.code(pl.scan_parquet(self.table, glob=False).filter(case=self.name, part=part))
        return self._join_parts(self.table, part).lazy()

    @staticmethod
    def _join_parts(table: Mapping[str, pl.DataFrame], part: str) -> pl.DataFrame:
        return pl.concat([table["train"], table[VALIDATION]]) if part == IN_FOLDS else table[part]

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Collect a query over the rows; an unreadable file is named."""
        return collect(query, self.table.name) if isinstance(self.table, Path) else query.collect()

    def frame(self, part: str) -> pl.DataFrame:
        """The rows of a part in memory, in the columns that a fit is given."""
        return self.collect(self.query(part).select(self.columns))

    def source(
        self, part: str, covariates: tuple[str, ...] | None = None, *, threads: int | None = None
    ) -> FrameSource | ScanSource:
        """The rows of a part, in blocks."""
        names = self.covariates if covariates is None else covariates
        reading = Reading("state_1", "state_2", "interval_years", names, group=BRIDGE)
        if not isinstance(self.table, Path):
            return FrameSource(self._join_parts(self.table, part), reading, block_rows=blocks.BLOCK_ROWS)
        size = {"threads": count_threads(threads), "block_rows": blocks.BLOCK_ROWS}
        if self.held and part == "train":
            return FrameSource(self.cache.keep(self.name, part, self._hold), reading, **size)
        return ScanSource(self.query(part).with_columns(KEY), reading, **size, name=self.table.name)

    def _hold(self) -> pl.DataFrame:
        """The training rows as columns; states are small numbers."""
        states = pl.col("state_1", "state_2").cast(pl.Int16)
        columns = [states, pl.col("interval_years"), *map(pl.col, self.covariates), KEY]
        return self.collect(self.query("train").select(columns))

    def redraw(self, rng: np.random.Generator) -> DrawnSource:
        """The training rows in blocks, each counted as often as its bridge is drawn."""
        return DrawnSource(self.source("train"), int(rng.integers(0, 2**64, dtype=np.uint64)))

    def bridges(self, part: str) -> BridgeIndex:
        """The bridges of a part."""
        return self.cache.keep(
            self.name, part + " bridges", lambda: BridgeIndex.of(list_bridges(self.query(part)))
        )

    @property
    def trained(self) -> int:
        """Number of bridges of the training rows."""
        return len(list_bridges(self.query("train")))

    def column(self, part: str, name: str) -> pl.Series:
        """One column of a part."""
        if not isinstance(self.table, Path):
            return self._join_parts(self.table, part)[name]
        return self.collect(self.query(part).select(name)).to_series()

    def find_ranges(self, part: str) -> dict[str, tuple[float, float]]:
        """Least and largest value of each covariate."""
        if not self.covariates:
            return {}
        ends = (pl.concat_list(pl.col(name).min(), pl.col(name).max()) for name in self.covariates)
        found = self.collect(self.query(part).select(*ends)).row(0)
        return {name: (float(low), float(high)) for name, (low, high) in zip(self.covariates, found, strict=True)}

    def states(self, part: str) -> set[int]:
        """The states in which rows of a part start or end."""
        seen = self.collect(self.query(part).select("state_1", "state_2").unique())
        return {int(state) for row in seen.rows() for state in row}

    def count_unsupported(self, part: str) -> int:
        """Number of rows of a part whose states the training rows do not know."""
        unknown = pl.max_horizontal("state_1", "state_2") > self.n_states
        return int(self.collect(self.query(part).select(unknown.sum())).item())

    def digest_golden(self) -> str:
        """SHA-256 of which golden rows there are, whatever their covariates and their order."""
        query = self.query(GOLDEN).select(IDENTITY)
        return digest_sorted(query, self.counts[GOLDEN], lambda: self.bridges(GOLDEN).names)

    def without_covariates(self) -> CaseRows:
        """Leave the covariates out."""
        return replace(self, covariates=(), coding=NO_CODING, others={}, pooling=None, cache=CaseCache())

    def without_golden(self) -> CaseRows:
        """Leave golden rows out: what is not there cannot be looked at."""
        assert not isinstance(self.table, Path)  # streamed rows are not drawn again
        table = {**self.table, GOLDEN: self.table[GOLDEN].clear()}
        return replace(self, table=table, counts={**self.counts, GOLDEN: 0}, cache=CaseCache())

    @cached_property
    def training(self) -> Sample:
        """The training rows."""
        return Sample.of(self.frame("train"), self.covariates, self.n_states, self.coding)

    @cached_property
    def all_bridges(self) -> NDArray[np.str_]:
        """The bridges of the training and validation rows."""
        return np.unique(self.sample(IN_FOLDS)[0].bridge)

    def sample(self, part: str) -> tuple[Sample, int]:
        """The rows of a part, or of the folds, whose states the training rows know; and the number of others."""
        frame = self.frame(part)
        known = keep_supported(frame, self.n_states)
        return Sample.of(known, self.covariates, self.n_states, self.coding), len(frame) - len(known)

    @cached_property
    def judged(self) -> tuple[Sample, int]:
        """The rows that methods are judged on, and the number that was left out."""
        return self.sample(self.judged_on)

    def forecast(self, predictor: Predictor, part: str) -> BridgeScores:
        """Score the rows of a part as a model forecasts them."""
        return self._score(predictor, part, predictor.covariates)

    def persist(self, part: str) -> BridgeScores:
        """Score the rows of a part as forecast by saying that nothing changes."""
        return self._score(None, part, ())

    def _score(self, predictor: Predictor | None, part: str, covariates: tuple[str, ...]) -> BridgeScores:
        bridges = self.bridges(part)
        score = partial(score_block, predictor, bridges, self.n_states)
        return BridgeScores.add_up(self.source(part, covariates).map(score), bridges.names, self.n_states)

    def judge(self, fitted: Predictor, fit: Fitting, seed: int) -> BridgeScores:
        """Score the judged rows as forecast by ``fitted``; in folds, by what ``fit`` makes of the other folds."""
        if self.judged_on != IN_FOLDS:
            return self.forecast(fitted, self.judged_on)
        sample, unsupported = self.judged
        return replace(score_folds(sample, fit, seed), unsupported=unsupported)


@dataclass(frozen=True, eq=False)
class DrawnSource:
    """Rows of bridges drawn with replacement: the weight of a row is how often its bridge was drawn."""

    rows: Source
    seed: int

    @property
    def reading(self) -> Reading:
        """The columns of the rows."""
        return self.rows.reading

    def without_groups(self) -> DrawnSource:
        """Return itself: a row's bridge decides how often it was drawn."""
        return self

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """Apply a function to each block, in their order."""
        return self.rows.map(partial(_draw, function, self.seed))


def _draw(function: Callable[[Block], Result], seed: int, block: Block) -> Result:
    assert block.group is not None
    times = draw_times(block.group, seed)
    here = times > 0
    drawn = block.take(here)
    return function(drawn._replace(weight=drawn.weight * times[here]))


def choose_rows(select_on: str, validation: pl.DataFrame) -> str:
    """Choose validation rows, those that can be scored, unless they are few or something else is asked for."""
    if select_on != "auto":
        return select_on
    enough = len(validation) >= FEW_VALIDATION and validation["bridge_id"].n_unique() >= FEW_BRIDGES
    return VALIDATION if enough else IN_FOLDS


def keep_supported(frame: pl.DataFrame, n_states: int) -> pl.DataFrame:
    """Keep the rows whose states the training rows know."""
    start, end = (frame[name].to_numpy().astype(np.int64) - 1 for name in ("state_1", "state_2"))
    return frame.filter(pl.Series(split_supported(start, end, n_states)))


def score_folds(sample: Sample, fit: Fitting, seed: int) -> BridgeScores:
    """Score each fold's rows as forecast by a fit to the other folds."""
    parts = [
        (score_sample(fit(sample.take(outside)), sample.take(inside)), sample.bridge[inside])
        for outside, inside in folds(sample.bridge, FOLDS, seed)
    ]
    if not parts:
        return BridgeScores.of_nothing(0)
    scored, bridge = join_rows([one for one, _ in parts]), np.concatenate([one for _, one in parts])
    return BridgeScores.of(scored, bridge, sample.rows.n_states)
