"""Scores of forecasts of an end state, and intervals of means over rows that come in bridges.

    accuracy   share of rows whose most probable end state is the observed one               (Eq. accuracy)
    log_loss   -mean log max(pi, 1e-12), pi the probability of the observed end               (Eq. logloss)
    brier      mean over rows of sum_j (p_j - [j = end])^2, 0 to 2
    rps        mean over rows of sum_j (P_j - [j >= end])^2, P_j = p_1 + ... + p_j: a miss by two states costs
               more than a miss by one

States are 0-based here. A forecast that is no number is scored as the worst forecast there is: wrong, at the
probability floor, never left out and never right.

    interval   width of a prediction interval + 2 / (1 - level) times what the observed value is outside

Intervals are clustered by bridge:

    mean = sum_i d_i / n,   se^2 = (G - 1) / G sum_g (mean without bridge g - mean)^2,   mean -+ t_f se

Rows of one bridge share its climate, its traffic and its inspector, so that a bridge counts as one draw, however
many rows it has. G is the number of bridges; f = n^2 / sum_g n_g^2 - 1, at least 1, is below G - 1 where bridges
have unequal numbers of rows (Kish 1965). The standard error is the jackknife's (MacKinnon, Nielsen and Webb 2023).
With one row on every bridge this is the t interval.

At 95 % it holds the truth in 93 to 96 % of simulated sets of 10 to 100 bridges (benchmarks/clusters.py). Do not
trust it with fewer than 10 bridges. Nor where the mean hangs on rare bridges, such as those far outside the range
that a model was trained in: a set without them cannot know, and it holds the truth in 85 to 94 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rekka.core.errors import BadStates, BadValues

Array = NDArray[np.float64]
States = NDArray[np.integer[Any]]

PROBABILITY_FLOOR = 1e-12  # Eq. logloss
LOG_FLOOR = math.log(PROBABILITY_FLOOR)
WORST_BRIER = 2.0  # certain of a state that did not happen


@dataclass(frozen=True)
class Scores:
    """Mean scores of a set of forecasts; every score is NaN where no row could be scored.

    ``rows`` were scored, ``unsupported`` left out because the training rows never saw their states, and
    ``at_floor`` of the scored rows had a probability of 1e-12 or less for what happened. ``macro_recall`` is
    the mean, over the transition classes (start, end) that were seen, of the accuracy in that class.
    ``log_loss`` is floored as the paper's is; ``log_loss_exact`` is not, and is infinite where something
    happened that had probability zero.
    """

    rows: int
    unsupported: int
    at_floor: int
    accuracy: float
    log_loss: float
    log_loss_exact: float
    macro_recall: float
    brier: float
    rps: float

    @classmethod
    def empty(cls, unsupported: int = 0) -> Scores:
        """The scores of no rows at all."""
        return cls(0, unsupported, 0, *[math.nan] * 6)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores of each forecast, (n,): whether it was right, its log-probability, brier and rps; its class."""

    right: NDArray[np.bool_]
    log_p: Array  # of the observed end; minus infinity where a forecast is no number
    brier: Array
    rps: Array
    label: States  # of the transition class (start, end)

    @property
    def loss(self) -> Array:
        """-log max(pi, 1e-12), (n,)."""
        return -np.maximum(self.log_p, LOG_FLOOR)

    def take(self, index: NDArray[Any]) -> RowScores:
        """Some of the rows."""
        return RowScores(*(getattr(self, part.name)[index] for part in fields(self)))

    def mean(self, unsupported: int = 0) -> Scores:
        """The scores of all rows together."""
        if not len(self.right):
            return Scores.empty(unsupported)
        return Scores(
            rows=len(self.right),
            unsupported=unsupported,
            at_floor=int((self.log_p <= LOG_FLOOR).sum()),
            accuracy=float(self.right.mean()),
            log_loss=float(self.loss.mean()),
            log_loss_exact=float(-self.log_p.mean()),
            macro_recall=_mean_by_class(self.right, self.label),
            brier=float(self.brier.mean()),
            rps=float(self.rps.mean()),
        )


def join_rows(parts: Sequence[RowScores]) -> RowScores:
    """The rows of all parts, one after the other."""
    return RowScores(*(np.concatenate([getattr(one, part.name) for one in parts]) for part in fields(RowScores)))


def score_rows(p: Array, log_p_observed: Array, start: States, end: States) -> RowScores:
    """Score p (n, K), the probability of each end state, and log_p_observed (n,), that of the observed one.

    The logarithm comes separately because it is exact where the probability itself has underflowed to 0. The
    most probable end is looked for among all K states; where two are equally probable, it is the better one.
    """
    _check(p, log_p_observed, start, end)
    n, n_states = p.shape
    start, end = start.astype(np.int64), end.astype(np.int64)  # narrow integers would overflow in a product
    undefined = ~(np.isfinite(p).all(axis=1) & (log_p_observed < np.inf))
    error = np.where(undefined[:, None], 0.0, p)
    right = (error.argmax(axis=1) == end) & ~undefined  # argmax takes the first of equals: the better state
    error[np.arange(n), end] -= 1.0
    farthest = np.maximum(end, n_states - 1 - end)  # rps of being certain of the state farthest away
    return RowScores(
        right=right,
        log_p=np.where(undefined, -np.inf, log_p_observed),
        brier=np.where(undefined, WORST_BRIER, np.square(error).sum(axis=1)),
        rps=np.where(undefined, farthest, np.square(error.cumsum(axis=1)).sum(axis=1)),
        label=start * n_states + end,
    )


def score(p: Array, log_p_observed: Array, start: States, end: States, unsupported: int = 0) -> Scores:
    """The scores of all rows together; see ``score_rows``."""
    return score_rows(p, log_p_observed, start, end).mean(unsupported)


def score_persistence_rows(start: States, end: States, n_states: int) -> RowScores:
    """Score the baseline of no change, probability 1 on the start state.

    Its floored log loss is (1 - accuracy) 27.63, its exact one infinite as soon as one state changed.
    """
    p = np.zeros((len(start), n_states))
    p[np.arange(len(start)), start] = 1.0
    return score_rows(p, np.where(start == end, 0.0, -np.inf), start, end)


def split_supported(start: States, end: States, n_states: int) -> NDArray[np.bool_]:
    """Mask (n,) of rows with both states within the K states of the training rows."""
    supported: NDArray[np.bool_] = (start >= 0) & (start < n_states) & (end >= 0) & (end < n_states)
    return supported


def _mean_by_class(right: NDArray[np.bool_], label: States) -> float:
    """Mean over the classes of the share that is right in each."""
    _, inverse, size = np.unique(label, return_inverse=True, return_counts=True)
    return float((np.bincount(inverse, weights=right) / size).mean())


def _check(p: Array, log_p_observed: Array, start: States, end: States) -> None:
    """Refuse arrays that do not belong together and states that have no column in p."""
    shapes = {"p": p.shape, "log_p_observed": log_p_observed.shape, "start": start.shape, "end": end.shape}
    if p.ndim != 2 or any(shape != (len(p),) for name, shape in shapes.items() if name != "p"):
        raise BadValues(
            f"Forecasts of different shapes: {shapes}. p must be (n, K), the others (n,).", shapes=shapes
        )
    outside = np.flatnonzero(~split_supported(start, end, p.shape[1]))
    if outside.size:
        row = int(outside[0])
        raise BadStates(
            f"row {row} goes from state {start[row]} to {end[row]} (0-based), and there are forecasts for "
            f"{p.shape[1]} states. Score only the rows of split_supported, and give the count of the others.",
            row=row,
        )


CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean over ``rows`` rows of ``bridges`` bridges; ``low`` and ``high`` are infinite with fewer than 2."""

    mean: float
    low: float
    high: float
    rows: int
    bridges: int


def mean_interval(values: Array, bridge: NDArray[Any], confidence: float = CONFIDENCE) -> Interval:
    """The mean of values (n,) with its interval; of no rows it is no number. An infinite mean has no bounds."""
    n = len(values)
    if n == 0:
        return Interval(math.nan, -math.inf, math.inf, 0, 0)
    _, group, size = np.unique(bridge, return_inverse=True, return_counts=True)
    bridges = len(size)
    mean = float(values.mean())
    if bridges < 2 or not math.isfinite(mean):
        return Interval(mean, -math.inf, math.inf, n, bridges)
    apart = np.bincount(group, weights=values - mean).astype(np.float64)
    return _reach_out(mean, apart, size, confidence)


def sums_interval(sums: Array, size: NDArray[np.integer[Any]], confidence: float = CONFIDENCE) -> Interval:
    """Mean and interval of values added up by bridge: their sums (G,) over so many rows each, at least one."""
    n, bridges = int(size.sum()), len(size)
    if n == 0:
        return Interval(math.nan, -math.inf, math.inf, 0, 0)
    mean = float(sums.sum()) / n
    if bridges < 2 or not math.isfinite(mean):
        return Interval(mean, -math.inf, math.inf, n, bridges)
    return _reach_out(mean, sums - size * mean, size.astype(np.int64), confidence)


def _reach_out(mean: float, apart: Array, size: NDArray[np.int64], confidence: float) -> Interval:
    """The interval, from each bridge's sum of differences from the mean (G,)."""
    n, bridges = int(size.sum()), len(size)
    moved = apart / (n - size)  # the mean, where a bridge is left out
    se = math.sqrt((bridges - 1) / bridges * float(moved @ moved))
    freedom = max(n**2 / float(size @ size) - 1.0, 1.0)
    reach = float(special.stdtrit(freedom, 0.5 + confidence / 2)) * se
    return Interval(mean, mean - reach, mean + reach, n, bridges)


def score_interval(low: Array | float, high: Array | float, observed: Array | float, level: float) -> Array:
    """Interval score of central prediction intervals (n,): lower is better (Gneiting and Raftery 2007, Eq. 43).

    Width, and 2 / (1 - level) times what the observed value lies outside: an interval that is too narrow and one
    that is too wide both lose.
    """
    missed = np.maximum(low - np.asarray(observed), 0.0) + np.maximum(np.asarray(observed) - high, 0.0)
    return np.asarray(np.asarray(high) - low + 2.0 / (1.0 - level) * missed)


def find_wilson(share: float, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of a share of n draws (Wilson 1927); draws are independent, whatever their rows are.

    scipy.stats has it, but takes half a second to import.
    """
    z = float(special.ndtri(0.5 + confidence / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)
