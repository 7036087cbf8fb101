"""Scores of forecasts, added up by bridge: all that a choice and its confirmation ask of the rows.

Rows are scored block by block and dropped. What is kept are sums, one for each bridge, so that the memory needed
grows with the number of bridges and not with the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import OutsideTrainingRange
from rekka.data.partition import place_bridges
from rekka.evaluation.resampling import Index, Sample
from rekka.evaluation.scores import (
    LOG_FLOOR,
    Interval,
    RowScores,
    Scores,
    score_persistence_rows,
    score_rows,
    split_supported,
    sums_interval,
)
from rekka.model.fit import Predictor
from rekka.model.likelihood import Rows
from rekka.streaming.blocks import Block

Array = NDArray[np.float64]
Counts = NDArray[np.int32]  # a bridge has fewer rows than that; there may be millions of bridges
NO_NAMES = np.empty(0, np.str_)


def score_sample(predictor: Predictor, sample: Sample) -> RowScores:
    """Score the forecasts of a sample, row by row."""
    sample = sample.only(predictor.covariates)
    rows = sample.rows
    if not len(sample):
        return score_rows(np.empty((0, max(rows.n_states, 1))), np.empty(0), rows.start, rows.end)
    log_p = predictor.log_probabilities(rows, sample.x)
    return score_rows(predictor.probabilities(rows.start, rows.dt, sample.x), log_p, rows.start, rows.end)


@dataclass(frozen=True, eq=False)
class BridgeIndex:
    """Names of bridges (G,) in ascending order, found by the 64-bit keys that blocks have in their place.

    ``keys`` are in ascending order, and ``places`` says where the name of each stands.
    """

    names: pl.Series
    keys: NDArray[np.uint64]
    places: NDArray[np.int32]

    @classmethod
    def of(cls, names: pl.Series) -> BridgeIndex:
        """Order distinct names; blocks hash the hash of a name."""
        names = names.sort()
        found = names.hash(0).hash(0).to_numpy()
        places = np.argsort(found, kind="stable").astype(np.int32)
        return cls(names, found[places], places)

    def find(self, key: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Places (m,) among the names of the bridges of m rows."""
        return self.places[np.searchsorted(self.keys, key)]


class Sums(NamedTuple):
    """Sums over some rows: of the bridges at ``place`` (g,), and of all rows together."""

    place: NDArray[np.integer[Any]]
    size: Counts
    right: Counts
    at_floor: Counts
    loss: Array
    totals: Array  # (4,): log-probability, brier, rps; rows whose states the training rows do not know
    classes: NDArray[np.int64]  # (2, K K): rows of each transition class, and those that were right


def add_rows(scored: RowScores, places: NDArray[Any], n_states: int, unsupported: int = 0) -> Sums:
    """Add scores up by bridge; ``places`` (n,) says which bridge each row is of."""
    place, where, size = np.unique(places, return_inverse=True, return_counts=True)

    def by_bridge(values: NDArray[Any]) -> Array:
        return np.bincount(where, weights=values, minlength=place.size).astype(np.float64)

    totals = [*(float(values.sum()) for values in (scored.log_p, scored.brier, scored.rps)), unsupported]
    classes = max(n_states, 1) ** 2
    by_class = [np.bincount(label, minlength=classes) for label in (scored.label, scored.label[scored.right])]
    return Sums(
        place,
        size.astype(np.int32),
        by_bridge(scored.right).astype(np.int32),
        by_bridge(scored.log_p <= LOG_FLOOR).astype(np.int32),
        by_bridge(scored.loss),
        np.array(totals),
        np.array(by_class),
    )


def score_block(predictor: Predictor | None, bridges: BridgeIndex, n_states: int, block: Block) -> Sums:
    """Score the rows of a block by a model, or, without one, by forecasting that nothing changes."""
    assert block.group is not None
    known = split_supported(block.start, block.end, n_states)
    rows = Rows(block.start[known], block.end[known], block.dt[known], block.weight[known], n_states)
    places = bridges.find(block.group[known])
    if predictor is None:
        scored = score_persistence_rows(rows.start, rows.end, max(n_states, 1))
    else:
        try:
            scored = score_sample(predictor, Sample(rows, block.x[known], NO_NAMES, predictor.covariates))
        except OutsideTrainingRange as error:
            bridge = bridges.names[int(places[error.values["row"]])]
            raise type(error)(str(error), **error.values | {"bridge": bridge}) from None
    return add_rows(scored, places, n_states, int((~known).sum()))


@dataclass(frozen=True, eq=False)
class BridgeScores:
    """Scores by bridge (G,): rows, rows forecast right, rows at the probability floor, sum of the log loss.

    ``rest`` holds the scores that only all rows together have: log loss without a floor, recall, brier and rps.
    """

    names: pl.Series
    size: Counts
    right: Counts
    at_floor: Counts
    loss: Array
    rest: tuple[float, float, float, float] = (math.nan,) * 4
    unsupported: int = 0

    @classmethod
    def of(cls, scored: RowScores, bridge: NDArray[np.str_], n_states: int, unsupported: int = 0) -> BridgeScores:
        """Add up rows that are in memory, with the bridge (n,) of each."""
        names, places = np.unique(bridge, return_inverse=True)
        sums = add_rows(scored, places, n_states, unsupported)
        return cls.add_up([sums], pl.Series(names.tolist(), dtype=pl.String), n_states)

    @classmethod
    def of_nothing(cls, unsupported: int) -> BridgeScores:
        """Scores of no rows."""
        return replace(cls.add_up([], pl.Series([], dtype=pl.String), 0), unsupported=unsupported)

    @classmethod
    def add_up(cls, sums: Iterable[Sums], names: pl.Series, n_states: int) -> BridgeScores:
        """Add up blocks in their order; bridges of which no row could be scored are left out."""
        size, right, at_floor = np.zeros((3, len(names)), np.int32)
        loss, totals = np.zeros(len(names)), np.zeros(4)
        classes = np.zeros((2, max(n_states, 1) ** 2), np.int64)
        for one in sums:
            size[one.place] += one.size
            right[one.place] += one.right
            at_floor[one.place] += one.at_floor
            loss[one.place] += one.loss
            totals += one.totals
            classes += one.classes
        whole = cls(names, size, right, at_floor, loss, _summarise(totals, classes), int(totals[3]))
        return whole if size.all() else replace(whole.take(np.flatnonzero(size)), rest=whole.rest)

    @property
    def bridges(self) -> int:
        """Number of bridges."""
        return len(self.size)

    @property
    def scores(self) -> Scores:
        """Scores of all rows together; of some of the bridges, those that are known by bridge."""
        rows = int(self.size.sum())
        if not rows:
            return Scores.empty(self.unsupported)
        exact, recall, brier, rps = self.rest
        return Scores(
            rows=rows,
            unsupported=self.unsupported,
            at_floor=int(self.at_floor.sum()),
            accuracy=int(self.right.sum()) / rows,
            log_loss=float(self.loss.sum()) / rows,
            log_loss_exact=exact,
            macro_recall=recall,
            brier=brier,
            rps=rps,
        )

    def take(self, index: Index) -> BridgeScores:
        """Scores of some of the bridges."""
        parts = (self.size[index], self.right[index], self.at_floor[index], self.loss[index])
        return BridgeScores(self.names.gather(index), *parts, unsupported=self.unsupported)

    @classmethod
    def join(cls, parts: Sequence[BridgeScores]) -> BridgeScores:
        """Scores of the bridges of all parts, one after the other."""
        names = pl.concat([one.names for one in parts])

        def put_together(name: str) -> Any:
            return np.concatenate([getattr(one, name) for one in parts])

        return cls(names, *map(put_together, ("size", "right", "at_floor", "loss")))

    def folds(self, k: int, seed: int | str) -> Iterator[tuple[Index, Index]]:
        """For each of k folds the bridges outside it and those inside it: those of ``resampling.folds``."""
        fold = np.empty(self.bridges, np.int64)
        fold[place_bridges(self.names, seed)] = np.arange(self.bridges) % k
        for number in range(min(k, self.bridges)):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def accuracy(self, confidence: float) -> Interval:
        """Share of rows forecast right."""
        return sums_interval(self.right.astype(float), self.size, confidence)

    def log_loss(self, confidence: float) -> Interval:
        """Mean log loss."""
        return sums_interval(self.loss, self.size, confidence)

    def accuracy_above(self, other: BridgeScores, confidence: float) -> Interval:
        """Accuracy minus that of other forecasts of the same rows."""
        return sums_interval((self.right - other.right).astype(float), self.size, confidence)

    def log_loss_above(self, other: BridgeScores, confidence: float) -> Interval:
        """Log loss minus that of other forecasts of the same rows; of no rows where the others have none."""
        if not other.bridges:
            return other.log_loss(confidence)
        return sums_interval(self.loss - other.loss, self.size, confidence)


def _summarise(totals: Array, classes: NDArray[np.int64]) -> tuple[float, float, float, float]:
    """Log loss without a floor, recall, brier and rps of all rows; not numbers where there are none."""
    rows, right = classes
    seen = rows > 0
    if not seen.any():
        return (math.nan,) * 4
    log_p, brier, rps, _ = (totals / rows.sum()).tolist()
    return -log_p, float((right[seen] / rows[seen]).mean()), brier, rps
