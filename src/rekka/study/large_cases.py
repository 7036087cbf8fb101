"""A case with too many rows to be held whole: its rows stay in the run's Parquet file, and are gone through.

It answers what ``CaseRows`` answers. Its training rows are held in memory, as columns, where they fit the limit;
otherwise every pass of a fit reads them anew. Held-out rows are scored block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from rekka.core.errors import OutsideTrainingRange
from rekka.data.partition import list_bridges
from rekka.data.queries import collect
from rekka.evaluation.resampling import draw_times
from rekka.model.clock import MIDDLE
from rekka.model.likelihood import count_threads
from rekka.model.predictor import Predictor
from rekka.streaming import blocks
from rekka.streaming.blocks import Block, Reading, Result, Source
from rekka.streaming.sources import FrameSource, ScanSource
from rekka.study.cases import CaseRows, Judged
from rekka.study.tallies import Roster, Tally, score_block

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
