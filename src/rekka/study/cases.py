"""The rows of a case, and which of them its methods are judged on.

A method is judged on rows it was not fitted on: the validation rows; or, where they are few, the training and
validation rows in folds by bridge, each fold forecast by a fit to the others; or, as the paper has it, the golden
rows, which then cannot confirm the choice any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import OutsideTrainingRange
from rekka.data.partition import PARTS
from rekka.evaluation.intervals import Interval, mean_interval
from rekka.evaluation.pooling import Pooling
from rekka.evaluation.resampling import Index, Sample, folds
from rekka.evaluation.scores import (
    RowScores,
    Scores,
    join_rows,
    score_persistence_rows,
    score_rows,
    split_supported,
)
from rekka.model.clock import MIDDLE
from rekka.model.predictor import Predictor

FEW_VALIDATION = 100  # rows; an accuracy has a standard error of 5 % there
FEW_BRIDGES = 30  # fewer make no interval to rely on
FOLDS = 5
VALIDATION, IN_FOLDS, GOLDEN = "validation", "folds", "golden"
WORDS = {
    VALIDATION: "validation rows",
    IN_FOLDS: f"{FOLDS} folds by bridge of the training and validation rows",
    GOLDEN: "golden rows",
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
