"""Loops over the rows of a block that need no copies of it: sorting, designs, moments, triangular factors.

Arrays of covariates are (p, m) here, a row a covariate. Sums may be added in any order within a block, the same
one each time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rekka.core.compiling import njit

_compile = njit(cache=True, nogil=True, error_model="numpy")
_compile_sums = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@_compile
def sort_pairs(start: Any, end: Any, n_states: int, order: Any) -> None:
    """The order in which rows of one start and end follow each other, by counting them."""
    first = np.zeros(n_states * n_states + 1, np.int64)
    for r in range(start.size):
        first[start[r] * n_states + end[r] + 1] += 1
    for k in range(n_states * n_states):
        first[k + 1] += first[k]
    for r in range(start.size):
        kind = start[r] * n_states + end[r]
        order[first[kind]] = r
        first[kind] += 1


@_compile
def design_rows(z: Any, order: Any, offset: Any, mix: Any, W: Any) -> None:
    """W = [1, (z - offset) mix] of the rows in an order; mix (p, p) is upper triangular."""
    p, m = z.shape
    centred = np.empty(p)
    for r in range(m):
        row = order[r]
        W[0, r] = 1.0
        for v in range(p):
            centred[v] = z[v, row] - offset[v]
        for u in range(p):
            total = 0.0
            for v in range(u + 1):
                total += centred[v] * mix[v, u]
            W[u + 1, r] = total


@_compile
def take_rows(dt: Any, start: Any, end: Any, weight: Any, order: Any, out: Any, states: Any) -> None:
    """Years, their logarithm and weights into out (3, m), states into (2, m), in an order."""
    for r in range(order.size):
        row = order[r]
        out[0, r] = dt[row]
        out[1, r] = math.log(dt[row])
        out[2, r] = weight[row]
        states[0, r] = start[row]
        states[1, r] = end[row]


@_compile_sums
def add_moments(x: Any, weight: Any, mean: Any, squares: Any) -> float:
    """Weighted mean and squares of the deviations from it of each covariate; the sum of the weights."""
    p, m = x.shape
    total = 0.0
    for r in range(m):
        total += weight[r]
    for v in range(p):
        first = x[v, 0]
        away = 0.0
        for r in range(m):
            away += weight[r] * (x[v, r] - first)
        away /= total
        mean[v] = first + away
        spread = 0.0
        for r in range(m):
            d = x[v, r] - first - away
            spread += weight[r] * (d * d)
        squares[v] = spread
    return total


@_compile
def standardise(x: Any, mean: Any, scale: Any, share: Any, out: Any) -> None:
    """(x - mean) / scale, times the root of each row's share."""
    p, m = x.shape
    for v in range(p):
        for r in range(m):
            out[v, r] = (x[v, r] - mean[v]) / scale[v] * math.sqrt(share[r])


@_compile_sums
def triangle(A: Any, r: Any) -> None:
    """The triangular factor r (p, p) of rows whose covariates are A (p, m), by Householder; A is used up."""
    p, m = A.shape
    r[:] = 0.0
    for j in range(min(p, m)):
        square = 0.0
        for i in range(j, m):
            square += A[j, i] * A[j, i]
        norm = math.sqrt(square)
        pivot = A[j, j]
        r[j, j] = -math.copysign(norm, pivot)
        reflect = norm * (norm + abs(pivot))
        A[j, j] = pivot - r[j, j]
        for k in range(j + 1, p):
            dot = 0.0
            for i in range(j, m):
                dot += A[j, i] * A[k, i]
            factor = dot / reflect if reflect > 0.0 else 0.0
            for i in range(j, m):
                A[k, i] -= factor * A[j, i]
            r[j, k] = A[k, j]


@_compile
def are_sound(start: Any, end: Any, dt: Any, x: Any, first: Any, last: Any) -> bool:
    """Whether states are whole numbers in order, years above 0 and covariates finite; 0-based states out."""
    sound = True
    for r in range(start.size):
        first[r] = start[r] - 1
        last[r] = end[r] - 1
        sound &= (start[r] >= 1) & (end[r] >= start[r]) & (dt[r] > 0.0) & (dt[r] < np.inf)
    for v in range(x.shape[0]):
        for r in range(x.shape[1]):
            sound &= abs(x[v, r]) < np.inf
    return sound


@_compile
def score_rows(slope: Any, W: Any, weight: Any, out: Any) -> None:
    """The score (m, F) of each row: slope (K-1, m) in the log hazards times W (p+1, m), weighted."""
    states, m = slope.shape
    p1 = W.shape[0]
    for r in range(m):
        for k in range(states):
            for u in range(p1):
                out[r, k * p1 + u] = weight[r] * slope[k, r] * W[u, r]


@_compile
def add_hashed(hashes: Any, taken: Any, sums: Any, added: Any, rows: Any, count: int, most: int) -> int:
    """Each of rows (m, F) to the sums of its hash in a table; how many places are taken, one too many if full.

    A hash looks for its place from where its lower half falls in the table.
    """
    places = np.uint64(hashes.size)
    for r in range(added.size):
        place = ((added[r] & np.uint64(0xFFFFFFFF)) * places) >> np.uint64(32)
        while taken[place] and hashes[place] != added[r]:
            place = place + np.uint64(1) if place + np.uint64(1) < places else np.uint64(0)
        if not taken[place]:
            if count == most:
                return most + 1
            taken[place] = True
            hashes[place] = added[r]
            count += 1
        for f in range(rows.shape[1]):
            sums[place, f] += rows[r, f]
    return count
