"""What forecasts of later visits were worth, beside two forecasters to beat, with intervals clustered by bridge.

    model          the fitted model
    no_covariates  the same without covariates, fitted to the same rows
    persistence    nothing changes: probability 1 on the state at the origin

A difference is that of the model less the other's, visit by visit, and its interval that of paired values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.evaluation.intervals import Interval, mean_interval
from rekka.evaluation.scores import RowScores, score_persistence_rows, score_rows

Array = NDArray[np.float64]
States = NDArray[np.int64]

MODEL, PLAIN, SAME = "model", "no_covariates", "persistence"
SCORES = ("rps", "brier", "log_loss_exact", "log_loss", "accuracy")
ALL, HORIZON = "all", "horizon"
SCHEMA: dict[str, Any] = {
    "by": pl.String, "group": pl.Int64, "score": pl.String, "forecaster": pl.String, "less": pl.String,
    "mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "visits": pl.Int64, "bridges": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Judged:
    """Visits (v,): forecasts p (v, K) of each forecaster, the states at the origin and found, 0-based; bridges.

    ``groups`` has the group of each visit by horizon, and by year or round.
    """

    p: Mapping[str, Array]
    start: States
    end: States
    bridge: NDArray[np.int64]
    groups: Mapping[str, NDArray[np.int64]]

    def score(self) -> dict[str, dict[str, Array]]:
        """The scores of every visit, by forecaster and score."""
        n_states = self.p[MODEL].shape[1]
        found = {name: _spell(_score(p, self.start, self.end)) for name, p in self.p.items()}
        return found | {SAME: _spell(score_persistence_rows(self.start, self.end, n_states))}


def _score(p: Array, start: States, end: States) -> RowScores:
    with np.errstate(divide="ignore"):
        return score_rows(p, np.log(p[np.arange(len(p)), end]), start, end)


def _spell(rows: RowScores) -> dict[str, Array]:
    """The scores by name; the exact log loss is infinite where something happened that had probability 0."""
    return {
        "rps": rows.rps,
        "brier": rows.brier,
        "log_loss_exact": -rows.log_p,
        "log_loss": rows.loss,
        "accuracy": rows.right.astype(np.float64),
    }


def tabulate_scores(judged: Judged, level: float) -> pl.DataFrame:
    """A line for each group, score and forecaster, and for each difference, ``forecaster`` less ``less``.

    ``low`` and ``high`` are null where there is no interval: of an infinite mean, and of fewer than two bridges.
    """
    scored = judged.score()
    everything = {ALL: np.zeros(len(judged.end), np.int64)}
    lines: list[tuple[Any, ...]] = []
    for by, group in (everything | dict(judged.groups)).items():
        for value in np.unique(group).tolist():
            here = group == value
            place = (by, None if by == ALL else value)
            for score in SCORES:
                lines += [(*place, score, *line) for line in _compare(scored, score, here, judged.bridge, level)]
    return pl.DataFrame(lines, schema=SCHEMA, orient="row")


def _compare(
    scored: Mapping[str, Mapping[str, Array]],
    score: str,
    here: NDArray[np.bool_],
    bridge: NDArray[np.int64],
    level: float,
) -> list[tuple[Any, ...]]:
    """Each forecaster's mean, and what the model has less than the others."""
    values = {name: found[score][here] for name, found in scored.items()}
    lines: list[tuple[Any, ...]] = [
        (name, None, *_lay_out(mean_interval(each, bridge[here], level))) for name, each in values.items()
    ]
    for other in (name for name in values if name != MODEL):
        with np.errstate(invalid="ignore"):
            less = values[MODEL] - values[other]
        lines.append((MODEL, other, *_lay_out(mean_interval(less, bridge[here], level))))
    return lines


def _lay_out(found: Interval) -> tuple[float | None, float | None, float | None, int, int]:
    mean, *ends = (None if math.isnan(value) else value for value in found[:3])
    low, high = (None if end is None or math.isinf(end) else end for end in ends)
    return mean, low, high, found.rows, found.bridges
