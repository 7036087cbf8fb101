"""Resamples and folds of a case's rows: whole bridges, never single rows, because rows of one bridge go together.

Folds are cut from the order of a SHA-256 of seed and bridge, as partitions are. Resamples come from a generator
made for each from seed, case, kind and number, so that any of them can be rebuilt by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.data.categories import NO_CODING, Coding
from rekka.data.partition import number_folds, order_bridges
from rekka.model import inputs
from rekka.model.clock import make_clock
from rekka.model.likelihood import Rows

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a case: transitions with K, raw covariates x (n, p), and the bridge of each row."""

    rows: Rows
    x: Array
    bridge: NDArray[np.str_]
    covariates: tuple[str, ...]
    coding: Coding = NO_CODING  # of the categories whose terms are among the covariates

    @classmethod
    def of(
        cls, frame: pl.DataFrame, covariates: tuple[str, ...], n_states: int, coding: Coding = NO_CODING
    ) -> Sample:
        """Take checked transitions whose states are all within ``n_states``."""
        start, end = (frame[name].to_numpy().astype(np.int64) - 1 for name in ("state_1", "state_2"))
        rows = Rows(start, end, frame["interval_years"].to_numpy(), np.ones(len(frame)), n_states)
        x = inputs.read_covariates(inputs.as_frame(frame), covariates)
        return cls(rows, x, frame["bridge_id"].to_numpy().astype(np.str_), covariates, coding)

    @property
    def plain(self) -> tuple[str, ...]:
        """Covariates that no scaling changes: the 0/1 columns of categories."""
        return tuple(name for name in self.covariates if name in self.coding.terms)

    @property
    def contrasts(self) -> tuple[str, ...]:
        """Names of the covariates by which those of several cases are the same: a level and its reference."""
        return tuple(map(self.coding.name_contrast, self.covariates))

    def __len__(self) -> int:
        return self.rows.dt.size

    def at(self, clock: str, advance: Sequence[str] | None = None) -> Sample:
        """The rows with covariates at the clock's moment, as a fit takes them."""
        return replace(self, x=make_clock(self.covariates, clock, advance).take(self.x, self.rows.dt))

    def only(self, covariates: tuple[str, ...]) -> Sample:
        """The rows with some of their covariates."""
        if covariates == self.covariates:
            return self
        columns = [self.covariates.index(name) for name in covariates]
        return replace(self, x=self.x[:, columns], covariates=covariates)

    def take(self, index: Index | NDArray[np.bool_]) -> Sample:
        """Some of the rows, or some of them several times; K stays."""
        return replace(self, rows=self.rows.take(index), x=self.x[index], bridge=self.bridge[index])


def fold_rows(bridge: NDArray[np.str_], k: int, seed: int | str) -> NDArray[np.int64]:
    """The fold, 0 to k - 1, of each row: whole bridges, as equal in number as can be."""
    names, inverse = np.unique(bridge, return_inverse=True)
    fold = number_folds(order_bridges(names.tolist(), seed), k)
    return np.array([fold[name] for name in names.tolist()], dtype=np.int64)[inverse]


def draw_bootstrap(bridge: NDArray[np.str_], rng: np.random.Generator) -> tuple[Index, Index]:
    """Draw as many bridges as there are, with replacement: their rows, and the rows of those not drawn."""
    names, inverse = np.unique(bridge, return_inverse=True)
    times = np.bincount(rng.integers(0, names.size, names.size), minlength=names.size)[inverse]
    return np.repeat(np.arange(len(bridge)), times), np.flatnonzero(times == 0)


def draw_times(key: NDArray[np.uint64], seed: int) -> NDArray[np.int64]:
    """Times (n,) that each row's bridge, known by a number of 64 bits, is drawn: a Poisson number of mean 1.

    Where bridges are very many, their numbers in a bootstrap are as good as independent, so that each can be had
    from its key and the seed alone, without a list of them (Chamandy and others 2012).
    """
    mixed = key + np.uint64(seed)  # the steps of SplitMix64 (Steele, Lea, Flood 2014), which wrap around
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.searchsorted(_POISSON, mixed ^ (mixed >> np.uint64(31)), side="right")


# The numbers of 64 bits below which a Poisson number of mean 1 is 0, at most 1, at most 2, ...
_POISSON = np.array(
    [int(sum(math.exp(-1.0) / math.factorial(k) for k in range(most + 1)) * 2**64) for most in range(12)],
    np.uint64,
)


def draw_split(bridge: NDArray[np.str_], share: float, rng: np.random.Generator) -> tuple[Index, Index]:
    """Rows of a random ``share`` of the bridges, and the rows of the others: a bridge at least on each side.

    Of one bridge all rows are among the others.
    """
    names, inverse = np.unique(bridge, return_inverse=True)
    inside = np.zeros(names.size, bool)
    inside[rng.permutation(names.size)[: min(max(round(share * names.size), 1), names.size - 1)]] = True
    return np.flatnonzero(inside[inverse]), np.flatnonzero(~inside[inverse])


def folds(bridge: NDArray[np.str_], k: int, seed: int | str) -> Iterator[tuple[Index, Index]]:
    """For each fold the rows outside it and those inside it; fewer than k where there are fewer bridges.

    Of one bridge there is one fold, with no rows outside it.
    """
    fold = fold_rows(bridge, k, seed)
    for number in range(int(fold.max()) + 1 if len(fold) else 0):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
