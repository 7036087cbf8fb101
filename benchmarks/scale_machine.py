"""What this machine can do at best: bytes read, exponentials and multiply-adds a second, on one thread and on two.

Each is measured on the spot by a compiled loop that does nothing else, and is the fastest of some repeats:

- read: the sum of an array far beyond every cache;
- triad: a = b + s c over three such arrays, two read and one written, 24 bytes an element;
- exponentials: ``exp`` over an array that stays in the first-level cache, as the kernel computes its hazards;
- multiply-adds: products of such arrays summed up, as the kernel adds to gradient and Hessian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numba import njit

FAR_BEYOND_CACHE = 16_000_000  # numbers of 8 bytes in one array
CACHED = 64  # numbers; the kernel takes as many rows at a time
ROUNDS = 100_000  # times over the cached array
REPEATS = 5

_compile = njit(nogil=True, error_model="numpy")
_compile_sums = njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@dataclass(frozen=True)
class Rates:
    """What so many threads do in a second."""

    threads: int
    bytes_read: float
    bytes_triad: float
    exponentials: float
    multiply_adds: float


@_compile_sums
def _read(a: Any) -> float:
    total = 0.0
    for k in range(a.size):
        total += a[k]
    return total


@_compile
def _triad(a: Any, b: Any, c: Any) -> None:
    for k in range(a.size):
        a[k] = b[k] + 3.0 * c[k]


@_compile
def _exponentials(x: Any, out: Any, rounds: int) -> None:
    for _ in range(rounds):
        for k in range(x.size):
            out[k] = np.exp(x[k])
        x[0] = -out[0]  # or the compiler would see that one round is enough


@_compile_sums
def _multiply_adds(x: Any, rounds: int) -> float:
    total = 0.0
    for q in range(rounds):
        row = x[q % x.shape[0]]
        for k in range(row.size):
            total += row[k] * x[0, k]
    return total


def measure(threads: int, numbers: int = FAR_BEYOND_CACHE, rounds: int = ROUNDS, repeats: int = REPEATS) -> Rates:
    """All four on so many threads."""
    a, b, c = (np.array_split(np.full(numbers, value), threads) for value in (0.0, 1.0, 0.5))
    x = [np.linspace(-3.0, 0.5, CACHED) for _ in range(threads)]
    out = [np.empty(CACHED) for _ in range(threads)]
    tables = [np.full((8, CACHED), 1e-3) for _ in range(threads)]

    def seconds(work: Callable[[int], object]) -> float:
        return _fastest(work, threads, repeats)

    return Rates(
        threads,
        8 * numbers / seconds(lambda t: _read(b[t])),
        24 * numbers / seconds(lambda t: _triad(a[t], b[t], c[t])),
        threads * CACHED * rounds / seconds(lambda t: _exponentials(x[t], out[t], rounds)),
        threads * CACHED * rounds / seconds(lambda t: _multiply_adds(tables[t], rounds)),
    )


def _fastest(work: Callable[[int], object], threads: int, repeats: int) -> float:
    """Seconds until every thread is done, the fastest seen; the first round, which compiles, is not timed."""
    fastest = math.inf
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
        for _ in range(repeats):
            clock = perf_counter()
            list(pool.map(work, range(threads)))
            fastest = min(fastest, perf_counter() - clock)
    return fastest
