"""Log-likelihood of interval-observed rows, and the protocol that every likelihood follows.

    l(beta) = sum_rows weight log pi[start, end](dt),   eta = X beta',   beta (K-1, p+1)

The family computes a row's probability. Rows are cut into blocks whose number depends on the data alone; each
block is summed by itself and the sums are added in order: the same bits for any number of threads.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rekka.model.family import EXPONENTIAL, Family, PairRows

Array = NDArray[np.float64]
States = NDArray[np.int64]

BLOCK_ROWS = 4096  # below this, handing a block to a thread costs more than it saves
MOST_BLOCKS = 256  # bounds the memory of the blocks' sums


class Evaluation(NamedTuple):
    """Log-likelihood, gradient (F,) and Hessian (F, F) in the parameters of a likelihood."""

    value: float
    gradient: Array
    hessian: Array

    def per(self, unit: float) -> Evaluation:
        """Value and derivatives divided by a unit, such as the mean weight of the rows."""
        return self if unit == 1.0 else Evaluation(self.value / unit, self.gradient / unit, self.hessian / unit)


class Pairs(NamedTuple):
    """Sums over the rows of each start and end, (K, K): of their weights, and of weight times years."""

    weight: Array
    years: Array

    @classmethod
    def of(cls, start: States, end: States, dt: Array, weight: Array, n_states: int) -> Pairs:
        """Sum in the order of the rows."""
        kind, size = start * n_states + end, n_states**2
        tables = [
            np.asarray(np.bincount(kind, values, size), dtype=np.float64).reshape(n_states, n_states)
            for values in (weight, weight * dt)
        ]
        return cls(*tables)

    def unit(self, informative: int) -> float:
        """The mean weight of the rows that can still worsen; 1 where there are none."""
        return float(self.weight[:-1].sum()) / informative if informative else 1.0


class LikelihoodProtocol(Protocol):
    """A log-likelihood as a function of its parameters (F,), as solvers, certificate and inference ask for it.

    The first (K-1)(p+1) parameters are the coefficients of the design W, state by state, intercept first; a pair
    likelihood has no others. A likelihood of histories has more behind them (errors of inspection, frailty,
    improvements, trend), and coordinates whose ``basis`` has a row for each.

    Questions about single rows (directions without a maximum, samples, scores of rows or groups) are not asked
    here but of the ``Observations`` that the likelihood comes from.
    """

    @property
    def n_informative(self) -> int:
        """Number of rows that start in a state that can be left; the others have probability 1."""

    @property
    def unit(self) -> float:
        """Mean weight of the informative rows: limits and tolerances are multiples of it."""

    @property
    def n_states(self) -> int:
        """K; state K is absorbing."""

    def start(self, shift: Array | float = 0.0) -> Array:
        """Parameters (F,) to start from: crude rates, log hazards moved by ``shift`` (K-1,), no effects."""

    def evaluate(self, beta: Array, order: int = 2) -> Evaluation:
        """Log-likelihood with gradient (order 1) and Hessian (order 2) at parameters of F entries."""


class PairLikelihood(ABC):
    """The likelihood of rows seen twice; subclasses hold the rows, or pass over them in blocks."""

    @property
    @abstractmethod
    def family(self) -> Family:
        """The family of the hazards."""

    @property
    @abstractmethod
    def n_terms(self) -> int:
        """Columns of the design, p + 1."""

    @property
    @abstractmethod
    def pairs(self) -> Pairs:
        """Sums over the rows of each start and end."""

    @property
    @abstractmethod
    def n_informative(self) -> int:
        """Number of rows that start in a state that can be left."""

    @property
    def n_states(self) -> int:
        """K; state K is absorbing."""
        return len(self.pairs.weight)

    @property
    def unit(self) -> float:
        """Mean weight of the informative rows; 1 where there are none."""
        return self.pairs.unit(self.n_informative)

    def start(self, shift: Array | float = 0.0) -> Array:
        """Coefficients (F,) of crude rates, log hazards moved by ``shift`` (K-1,), and zero slopes."""
        beta = np.zeros((self.n_states - 1, self.n_terms))
        beta[:, 0] = self.family.from_rates(crude_log_rates(self.pairs, self.unit) + shift)
        return beta.ravel()


def crude_log_rates(pairs: Pairs, unit: float) -> Array:
    """Occurrence/exposure log rates of each state (K-1,), per year: where Newton starts.

    A row's years are shared out equally among the states it was seen to pass through. Half an event of mean
    weight is added, so that a state nobody left, or nobody was in, has a rate too.
    """
    weight, years = pairs
    free = len(weight) - 1
    start, end = np.indices(weight.shape)
    share = years / np.maximum(np.minimum(end, free - 1) - start + 1, 1)  # none passed through if it starts in K
    able = slice(free) if weight[:free].any() else slice(None)  # rows that start in K say nothing
    typical = float(years[able].sum()) / float(weight[able].sum())
    rates = np.empty(free)
    for k in range(free):
        left = weight[(start <= k) & (end > k)].sum()
        exposure = share[(start <= k) & (end >= k)].sum()
        rates[k] = (left + 0.5 * unit) / (exposure + typical * unit)
    return np.log(rates)


def count_threads(threads: int | None) -> int:
    """Number of threads: as given, or one for every core."""
    return threads or os.cpu_count() or 1


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="rekka")


def run_blocks(block: Callable[[int], Any], n_blocks: int, threads: int) -> list[Any]:
    """Call ``block`` with the number of each block, in threads; its results, in their order."""
    if threads == 1 or n_blocks == 1:
        return [block(b) for b in range(n_blocks)]
    return list(_pool(threads).map(block, range(n_blocks)))


@dataclass(frozen=True)
class Rows:
    """Checked transitions: 0-based states, years and weights, (n,) each; state K is absorbing."""

    start: States
    end: States
    dt: Array
    weight: Array
    n_states: int

    @property
    def grouping(self) -> NDArray[np.intp]:
        """An order of the rows in which those of one start and end, one kernel chunk, follow each other."""
        return np.lexsort((self.end, self.start))

    @property
    def pairs(self) -> Pairs:
        """Sums over the rows of each start and end."""
        return Pairs.of(self.start, self.end, self.dt, self.weight, self.n_states)

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Mask (n,) of rows that start in a state that can be left: the others have probability 1."""
        return np.asarray(self.start < self.n_states - 1)

    @property
    def n_informative(self) -> int:
        """Number of rows that start in a state that can be left."""
        return int(self.informative.sum())

    @property
    def unit(self) -> float:
        """Mean weight of the informative rows; 1 where there are none."""
        return self.pairs.unit(self.n_informative)

    def take(self, index: NDArray[Any]) -> Rows:
        """Rows by number or mask, in another order or several times; K stays."""
        return Rows(self.start[index], self.end[index], self.dt[index], self.weight[index], self.n_states)


@dataclass(frozen=True)
class Likelihood(PairLikelihood):
    """The pair likelihood of rows in memory, in the kernel's order; the design X (p+1, n) is stored by column."""

    rows: Rows
    X: Array
    log_dt: Array
    threads: int
    family: Family = EXPONENTIAL

    @classmethod
    def build(cls, rows: Rows, X: Array, threads: int | None = None, family: Family = EXPONENTIAL) -> Likelihood:
        """Store X (n, p+1), with the intercept's ones, by column; ``threads`` None takes every core."""
        return cls(rows, np.ascontiguousarray(X.T), np.log(rows.dt), count_threads(threads), family)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.dt.size

    @property
    def n_informative(self) -> int:
        """Number of rows that start in a state that can be left."""
        return self.rows.n_informative

    @property
    def n_states(self) -> int:
        """K; state K is absorbing."""
        return self.rows.n_states

    @property
    def n_terms(self) -> int:
        """Columns of the design, p + 1."""
        return len(self.X)

    @property
    def pairs(self) -> Pairs:
        """Sums over the rows of each start and end."""
        return self.rows.pairs

    def evaluate(self, beta: Array, order: int = 2) -> Evaluation:
        """Log-likelihood with gradient (order 1) and Hessian (order 2); what is not asked for is zero."""
        free, p1 = self.n_states - 1, self.n_terms
        edges = self._edges()
        n_blocks = len(edges) - 1
        size = free * p1
        gradients = np.zeros((n_blocks, free, p1))
        hessians = np.zeros((n_blocks, size, size) if order > 1 else (n_blocks, 1, 1))
        beta = np.ascontiguousarray(beta).reshape(free, p1)
        rows, add_pairs = self.arranged, self.family.add_pairs

        def block(b: int) -> float:
            return add_pairs(rows, beta, edges[b], edges[b + 1], order, gradients[b], hessians[b])

        value = float(np.sum(self._map(block, n_blocks)))
        hessian = mirror(hessians.sum(axis=0)) if order > 1 else np.zeros((size, size))
        return Evaluation(value, gradients.sum(axis=0).ravel(), hessian)

    def by_row(self, beta: Array) -> tuple[Array, Array]:
        """Log-probability (n,) and slope in the predictors (n, K-1) of each row, without weights."""
        n = len(self.rows.dt)
        value = np.empty(n)
        slope = np.zeros((beta.shape[0], n))
        rows, score_pairs = self.arranged, self.family.score_pairs
        edges = self._edges()
        beta = np.ascontiguousarray(beta)

        def block(b: int) -> None:
            score_pairs(rows, beta, edges[b], edges[b + 1], value, slope)

        self._map(block, len(edges) - 1)
        return value, slope.T

    @property
    def arranged(self) -> PairRows:
        """The rows as the family takes them."""
        rows = self.rows
        return PairRows(self.X, rows.dt, self.log_dt, rows.start, rows.end, rows.weight)

    def _edges(self) -> list[int]:
        n = len(self.rows.dt)
        n_blocks = max(1, min(MOST_BLOCKS, n // BLOCK_ROWS))
        return [n * b // n_blocks for b in range(n_blocks + 1)]

    def _map(self, block: Any, n_blocks: int) -> list[Any]:
        return run_blocks(block, n_blocks, self.threads)


def mirror(upper: Array) -> Array:
    """A symmetric matrix from its upper triangle."""
    whole = upper + upper.T
    whole.flat[:: len(upper) + 1] *= 0.5
    return whole


@lru_cache
def compile_kernels(family: Family = EXPONENTIAL) -> None:
    """Compile, or load from the disk cache, what a family's likelihood needs, before any clock runs."""
    rows = Rows(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1), np.ones(1), 2)
    likelihood = Likelihood.build(rows, np.ones((1, 1)), 1, family)
    likelihood.evaluate(np.zeros((1, 1)))
    likelihood.by_row(np.zeros((1, 1)))
