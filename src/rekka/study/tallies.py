"""Forecasts of very many rows, added up by bridge: all that a choice and its confirmation ask of them.

Rows are scored block by block and forgotten; what is kept are sums, as many as there are bridges.
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
    split_supported,
    sums_interval,
)
from rekka.model.fit import Predictor
from rekka.model.likelihood import Rows
from rekka.streaming.blocks import Block
from rekka.study.rows import forecast

Array = NDArray[np.float64]
Counts = NDArray[np.int32]  # a bridge has fewer rows than that; there may be millions of bridges
NOBODY = np.empty(0, np.str_)


@dataclass(frozen=True, eq=False)
class Roster:
    """The bridges of some rows: ``names`` in their order, each once; the key of each, as blocks have it.

    ``keys`` are in ascending order, and ``places`` says where the name of each stands.
    """

    names: pl.Series
    keys: NDArray[np.uint64]
    places: NDArray[np.int32]

    @classmethod
    def of(cls, names: pl.Series, keys: pl.Series) -> Roster:
        """From different names and their keys."""
        order = names.arg_sort()
        found = keys.gather(order).to_numpy()
        places = np.argsort(found, kind="stable").astype(np.int32)
        return cls(names.gather(order), found[places], places)

    def find(self, key: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Where the bridge of each row (m,) stands among the names."""
        return self.places[np.searchsorted(self.keys, key)]

    def __len__(self) -> int:
        return len(self.keys)


class Sums(NamedTuple):
    """What a block adds to a tally: of the bridges at ``place`` (g,), and of all of its rows."""

    place: NDArray[np.int32]
    size: Counts
    right: Counts
    at_floor: Counts
    loss: Array
    totals: Array  # (4,): log-probability, brier, rps; rows whose states the training rows do not know
    classes: NDArray[np.int64]  # (2, K K): rows of each transition class, and those that were right


def score_block(predictor: Predictor | None, roster: Roster, n_states: int, block: Block) -> Sums:
    """The forecasts of a block's rows, added up; without a model, that nothing changes."""
    assert block.group is not None
    known = split_supported(block.start, block.end, n_states)
    rows = Rows(block.start[known], block.end[known], block.dt[known], block.weight[known], n_states)
    places = roster.find(block.group[known])
    scored = _score(predictor, rows, block.x[known], roster, places)
    place, where, size = np.unique(places, return_inverse=True, return_counts=True)

    def by_bridge(values: NDArray[Any]) -> Array:
        return np.bincount(where, weights=values, minlength=place.size).astype(np.float64)

    totals = [*(float(values.sum()) for values in (scored.log_p, scored.brier, scored.rps)), int((~known).sum())]
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


def _score(
    predictor: Predictor | None, rows: Rows, x: Array, roster: Roster, places: NDArray[np.int32]
) -> RowScores:
    if predictor is None:
        return score_persistence_rows(rows.start, rows.end, max(rows.n_states, 1))
    try:
        return forecast(predictor, Sample(rows, x, NOBODY, predictor.covariates))
    except OutsideTrainingRange as error:
        bridge = roster.names[int(places[error.values["row"]])]
        raise type(error)(str(error), **error.values | {"bridge": bridge}) from None


@dataclass(frozen=True, eq=False)
class Tally:
    """Forecasts added up by bridge (G,): rows, how many were right and how many at the floor, and the log loss.

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
    def add_up(cls, sums: Iterable[Sums], roster: Roster, n_states: int) -> Tally:
        """Add up the blocks in their order; bridges of which no row could be scored are left out."""
        size, right, at_floor = np.zeros((3, len(roster)), np.int32)
        loss, totals = np.zeros(len(roster)), np.zeros(4)
        classes = np.zeros((2, max(n_states, 1) ** 2), np.int64)
        for one in sums:
            size[one.place] += one.size
            right[one.place] += one.right
            at_floor[one.place] += one.at_floor
            loss[one.place] += one.loss
            totals += one.totals
            classes += one.classes
        whole = cls(roster.names, size, right, at_floor, loss, _summarise(totals, classes), int(totals[3]))
        return whole if size.all() else replace(whole.take(np.flatnonzero(size)), rest=whole.rest)

    @classmethod
    def of_nothing(cls, unsupported: int) -> Tally:
        """The forecasts of no rows."""
        none = np.empty(0, np.int32)
        return cls(
            pl.Series("bridge_id", [], dtype=pl.String), none, none, none, np.empty(0), unsupported=unsupported
        )

    @property
    def bridges(self) -> int:
        """How many there are."""
        return len(self.size)

    @property
    def scores(self) -> Scores:
        """Of all rows together; of some of them, those scores that are known by bridge."""
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

    def take(self, index: Index) -> Tally:
        """Some of the bridges."""
        parts = (self.size[index], self.right[index], self.at_floor[index], self.loss[index])
        return Tally(self.names.gather(index), *parts, unsupported=self.unsupported)

    @classmethod
    def join(cls, parts: Sequence[Tally]) -> Tally:
        """The bridges of all parts, one after the other."""
        names = pl.concat([one.names for one in parts])

        def put_together(name: str) -> Any:
            return np.concatenate([getattr(one, name) for one in parts])

        return cls(names, *map(put_together, ("size", "right", "at_floor", "loss")))

    def folds(self, k: int, seed: int | str) -> Iterator[tuple[Index, Index]]:
        """For each fold the bridges outside it and those inside it, as ``resampling.folds`` has their rows."""
        fold = np.empty(self.bridges, np.int64)
        fold[place_bridges(self.names, seed)] = np.arange(self.bridges) % k
        for number in range(min(k, self.bridges)):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def accuracy(self, confidence: float) -> Interval:
        """The share of rows whose forecast was right."""
        return sums_interval(self.right.astype(float), self.size, confidence)

    def log_loss(self, confidence: float) -> Interval:
        """The mean log loss."""
        return sums_interval(self.loss, self.size, confidence)

    def accuracy_above(self, other: Tally, confidence: float) -> Interval:
        """By how much more often it is right than other forecasts of the same rows."""
        return sums_interval((self.right - other.right).astype(float), self.size, confidence)

    def log_loss_above(self, other: Tally, confidence: float) -> Interval:
        """The difference of its log loss from that of other forecasts of the same rows; without any, of none."""
        if not other.bridges:
            return other.log_loss(confidence)
        return sums_interval(self.loss - other.loss, self.size, confidence)


def _summarise(totals: Array, classes: NDArray[np.int64]) -> tuple[float, float, float, float]:
    """Log loss without a floor, recall, brier and rps of all rows; no numbers where there are none."""
    rows, right = classes
    seen = rows > 0
    if not seen.any():
        return (math.nan,) * 4
    log_p, brier, rps, _ = (totals / rows.sum()).tolist()
    return -log_p, float((right[seen] / rows[seen]).mean()), brier, rps
