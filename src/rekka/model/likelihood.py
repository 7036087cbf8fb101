"""The log-likelihood of interval-observed rows and the chain rule from log hazards to coefficients.

    l(beta) = sum_rows weight log pi[start, end](dt),   eta = X beta',   beta (K-1, p+1)

This is the only place where the kernel's slopes meet a covariate. Rows are cut into blocks whose number
depends on the data alone; each block is summed by itself and the sums are added in order, so the result has
the same bits for any number of threads.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rekka.model import kernel

Array = NDArray[np.float64]
States = NDArray[np.int64]

BLOCK_ROWS = 4096  # below this, handing a block to a thread costs more than it saves
MOST_BLOCKS = 256  # bounds the memory of the blocks' sums

_compile = njit(cache=True, nogil=True, error_model="numpy")
# Only the order of a sum of products may change here: it lets the processor add four rows at a time.
_compile_sums = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


class Evaluation(NamedTuple):
    """Log-likelihood, gradient (P,) and Hessian (P, P), P = (K-1)(p+1), coefficients state by state."""

    value: float
    gradient: Array
    hessian: Array


@_compile
def _set_chains(X: Any, beta: Any, dt: Any, log_dt: Any, i: int, last: int, lo: int, hi: int, vec: Any) -> None:
    """a = theta dt and its logarithm for states i..last of rows lo..hi-1, into the kernel; X is (p+1, n)."""
    for m in range(i, last + 1):
        for r in range(hi - lo):
            vec[kernel.LOG_A, m - i, r] = beta[m, 0] * X[0, lo + r]
        for u in range(1, X.shape[0]):
            b = beta[m, u]
            for r in range(hi - lo):
                vec[kernel.LOG_A, m - i, r] += b * X[u, lo + r]
        for r in range(hi - lo):
            vec[kernel.A, m - i, r] = math.exp(vec[kernel.LOG_A, m - i, r]) * dt[lo + r]
            vec[kernel.LOG_A, m - i, r] += log_dt[lo + r]


@_compile_sums
def _add_chunk(
    X: Any, weight: Any, i: int, last: int, lo: int, hi: int, vec: Any, sq: Any, gradient: Any, hessian: Any,
    wx: Any,
) -> None:  # fmt: skip
    """Chain rule: gradient += slope' X, and the upper triangle of the Hessian += X' diag(curve) X."""
    p1 = X.shape[0]
    lanes = hi - lo
    for u in range(p1):
        for r in range(lanes):
            wx[r] = weight[lo + r] * X[u, lo + r]
        for m in range(last - i + 1):
            total = 0.0
            for r in range(lanes):
                total += vec[kernel.SLOPE, m, r] * wx[r]
            gradient[m + i, u] += total
    for m in range(last - i + 1):
        for s in range(m, last - i + 1):
            for u in range(p1):
                for r in range(lanes):
                    wx[r] = weight[lo + r] * X[u, lo + r] * sq[kernel.CURVE, m, s, r]
                for v in range(u if s == m else 0, p1):
                    total = 0.0
                    for r in range(lanes):
                        total += wx[r] * X[v, lo + r]
                    hessian[(m + i) * p1 + u, (s + i) * p1 + v] += total


@_compile
def _chunk_end(start: Any, end: Any, lo: int, hi: int) -> int:
    """Where the chunk that begins at row lo ends: rows of one start and end, at most a kernel's worth."""
    stop = lo + 1
    while stop < min(hi, lo + kernel.LANES) and start[stop] == start[lo] and end[stop] == end[lo]:
        stop += 1
    return stop


@_compile
def _sum_block(
    X: Any, dt: Any, log_dt: Any, start: Any, end: Any, weight: Any, beta: Any, lo: int, hi: int,
    order: int, gradient: Any, hessian: Any,
) -> float:  # fmt: skip
    """Weighted sum over rows lo..hi-1; gradient (K-1, p+1) and the Hessian's upper triangle are added to."""
    free = beta.shape[0]
    work = kernel.new_work(free + 1)
    vec, sq, _, _, _ = work
    wx = np.empty(kernel.LANES)
    total = 0.0
    while lo < hi:
        i, j = start[lo], end[lo]
        last = min(j, free - 1)
        stop = _chunk_end(start, end, lo, hi)
        _set_chains(X, beta, dt, log_dt, i, last, lo, stop, vec)
        kernel.log_probability(work, stop - lo, j - i, j == free, order)
        for r in range(stop - lo):
            total += weight[lo + r] * vec[kernel.VALUE, 0, r]
        if order > 0:
            _add_chunk(X, weight, i, last, lo, stop, vec, sq, gradient, hessian, wx)
        lo = stop
    return total


@_compile
def _rows_block(
    X: Any, dt: Any, log_dt: Any, start: Any, end: Any, beta: Any, lo: int, hi: int, value: Any, slope: Any
) -> None:
    """Log-probability (n,) of rows lo..hi-1 and its slope (K-1, n) in the log hazards."""
    free = beta.shape[0]
    work = kernel.new_work(free + 1)
    vec = work[0]
    while lo < hi:
        i, j = start[lo], end[lo]
        last = min(j, free - 1)
        stop = _chunk_end(start, end, lo, hi)
        _set_chains(X, beta, dt, log_dt, i, last, lo, stop, vec)
        kernel.log_probability(work, stop - lo, j - i, j == free, 2)
        for r in range(stop - lo):
            value[lo + r] = vec[kernel.VALUE, 0, r]
            for m in range(i, last + 1):
                slope[m, lo + r] = vec[kernel.SLOPE, m - i, r]
        lo = stop


@lru_cache(maxsize=8)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="rekka")


@dataclass(frozen=True)
class Rows:
    """Checked transitions: 0-based states, years, weights. ``n_states`` is K, its last state absorbing."""

    start: States
    end: States
    dt: Array
    weight: Array
    n_states: int

    @property
    def grouping(self) -> NDArray[np.intp]:
        """An order of the rows in which those of one start and end, one kernel chunk, follow each other."""
        return np.lexsort((self.end, self.start))

    def take(self, index: NDArray[np.intp]) -> Rows:
        """The same rows in another order."""
        return Rows(self.start[index], self.end[index], self.dt[index], self.weight[index], self.n_states)


@dataclass(frozen=True)
class Likelihood:
    """Rows and their design, stored by column, ready to be evaluated at any beta (K-1, p+1)."""

    rows: Rows
    X: Array
    log_dt: Array
    threads: int

    @classmethod
    def build(cls, rows: Rows, X: Array, threads: int | None = None) -> Likelihood:
        """X is (n, p+1) with the intercept's ones; ``threads`` None takes every core."""
        return cls(rows, np.ascontiguousarray(X.T), np.log(rows.dt), threads or os.cpu_count() or 1)

    def evaluate(self, beta: Array, order: int = 2) -> Evaluation:
        """Log-likelihood with gradient and Hessian (order 2), or alone (order 0; the others are zero)."""
        free, p1 = beta.shape
        edges = self._edges()
        n_blocks = len(edges) - 1
        gradients = np.zeros((n_blocks, free, p1))
        hessians = np.zeros((n_blocks, free * p1, free * p1) if order else (n_blocks, 1, 1))
        beta = np.ascontiguousarray(beta)
        rows = self.rows

        def block(b: int) -> float:
            return float(
                _sum_block(
                    self.X, rows.dt, self.log_dt, rows.start, rows.end, rows.weight, beta,
                    edges[b], edges[b + 1], order, gradients[b], hessians[b],
                )
            )  # fmt: skip

        value = float(np.sum(self._map(block, n_blocks)))
        if not order:
            return Evaluation(value, np.zeros(free * p1), np.zeros((free * p1, free * p1)))
        upper = np.triu(hessians.sum(axis=0))
        return Evaluation(value, gradients.sum(axis=0).ravel(), upper + np.triu(upper, 1).T)

    def by_row(self, beta: Array) -> tuple[Array, Array]:
        """Log-probability (n,) and slope in the log hazards (n, K-1) of each row, without weights."""
        n = len(self.rows.dt)
        value = np.empty(n)
        slope = np.zeros((beta.shape[0], n))
        rows = self.rows
        edges = self._edges()
        beta = np.ascontiguousarray(beta)

        def block(b: int) -> None:
            _rows_block(
                self.X, rows.dt, self.log_dt, rows.start, rows.end, beta, edges[b], edges[b + 1], value, slope
            )

        self._map(block, len(edges) - 1)
        return value, slope.T

    def _edges(self) -> list[int]:
        n = len(self.rows.dt)
        n_blocks = max(1, min(MOST_BLOCKS, n // BLOCK_ROWS))
        return [n * b // n_blocks for b in range(n_blocks + 1)]

    def _map(self, block: Any, n_blocks: int) -> list[Any]:
        if self.threads == 1 or n_blocks == 1:
            return [block(b) for b in range(n_blocks)]
        return list(_pool(self.threads).map(block, range(n_blocks)))


@lru_cache(maxsize=1)
def compile_kernels() -> None:
    """Compile, or load from the disk cache, before any clock runs."""
    rows = Rows(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1), np.ones(1), 2)
    likelihood = Likelihood.build(rows, np.ones((1, 1)), threads=1)
    likelihood.evaluate(np.zeros((1, 1)))
    likelihood.by_row(np.zeros((1, 1)))
