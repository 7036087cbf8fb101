"""Compiled: state probabilities carried over a step in which hazards are constant. No covariate comes here.

    p exp(Q h) = sum_n w_n p A^n,   w_n = e^(-ch) (ch)^n / n!,   A = I + Q / c,   c the largest hazard

(uniformization). No term is negative, so nothing cancels, and the first terms that are left out bound the relative
error of every state: what lies d states on has its first term at n = d, and the term m after it is at most
(ch)^m / m! of that. A step with ch above 1 is taken in pieces. The integral over the step has the weights
sum_{m > n} w_m / c; derivatives come from the same series with A differentiated. A step with ch above STIFF goes
by the whole matrix: the series over h / 2^s, then s doublings, with the diagonal set to e^(-theta h) after each.

Rows go in chunks, one lane a row, so that the processor takes four at a time. States are 0-based.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rekka.core.compiling import njit

LANES = 64  # rows in a chunk: its arrays stay in the first-level cache
NEGLIGIBLE = 1e-17  # of the first term of a state
STIFF = 16.0  # ch above which a row goes by its matrix
CLOSE = 1e-13  # of a step: how well a crossing is found
MOST_TRIES = 100  # of Newton's method and halving together; halving alone needs 44

_compile = njit(cache=True, nogil=True, error_model="numpy")
# A call that is not inlined counts references of its arrays up and down, atomically, for a dozen terms a step.
_inline = njit(cache=True, nogil=True, error_model="numpy", inline="always")


@_compile
def _count_terms(ch: float, free: int) -> int:
    """Terms after which every state's rest is negligible."""
    m, term = 1, ch
    while term > NEGLIGIBLE:
        m += 1
        term *= ch / m
    return m + free


@_compile
def _find_first(p: Any) -> int:
    """The best state that a row can be in; who cannot be in any but the worst has that."""
    first = 0
    while first < p.size - 1 and p[first] == 0.0:
        first += 1
    return first


@_compile
def _prepare(p: Any, theta: Any, h: Any, lo: int, lanes: int, move: Any, stay: Any, ch: Any, stiff: Any) -> Any:
    """A's two diagonals and ch of each lane; how many pieces, and how many terms each.

    States better than any that a row can be in have no part in it: a fast hazard costs its one step.
    """
    free = theta.shape[1]
    most = 0.0
    for r in range(lanes):
        first = _find_first(p[lo + r])
        c = 0.0
        for k in range(first, free):
            c = max(c, theta[lo + r, k])
        for k in range(free):
            move[k, r] = theta[lo + r, k] / c if k >= first and c > 0.0 else 0.0
            stay[k, r] = 1.0 - move[k, r]
        ch[r] = c * h[lo + r]
        stiff[r] = ch[r] > STIFF
        if stiff[r]:
            ch[r] = 0.0  # its lane stands still, and is written over in the end
        most = max(most, ch[r])
    pieces = max(1, math.ceil(most))
    for r in range(lanes):
        ch[r] /= pieces
    return pieces, _count_terms(most / pieces, free)


@_inline
def _multiply(term: Any, move: Any, stay: Any) -> None:
    """Term <- term A, from the worst state down."""
    free = move.shape[0]
    for r in range(LANES):
        term[free, r] += term[free - 1, r] * move[free - 1, r]
    for j in range(free - 1, 0, -1):
        for r in range(LANES):
            term[j, r] = term[j, r] * stay[j, r] + term[j - 1, r] * move[j - 1, r]
    for r in range(LANES):
        term[0, r] *= stay[0, r]


@_inline
def _begin(term: Any, total: Any, w: Any) -> None:
    """The first term of the series of a piece, and what it adds."""
    for j in range(len(total)):
        for r in range(LANES):
            term[j, r] = total[j, r]
            total[j, r] *= w[r]


@_inline
def _add(total: Any, w: Any, term: Any) -> None:
    """Total += w term."""
    for j in range(len(total)):
        for r in range(LANES):
            total[j, r] += w[r] * term[j, r]


@_inline
def _multiply_one(term: Any, move: Any, stay: Any) -> None:
    """Term <- term A for one row, from the worst state down."""
    free = move.size
    term[free] += term[free - 1] * move[free - 1]
    for j in range(free - 1, 0, -1):
        term[j] = term[j] * stay[j] + term[j - 1] * move[j - 1]
    term[0] *= stay[0]


@_compile
def _differ(term: Any, s_term: Any, move: Any, stay: Any) -> None:
    """S_k <- s_k A + term E_k, the derivative of term A in log theta_k; then term <- term A. One row."""
    for k in range(len(s_term)):
        _multiply_one(s_term[k], move, stay)
        s_term[k, k] -= term[k] * move[k]
        s_term[k, k + 1] += term[k] * move[k]
    _multiply_one(term, move, stay)


@_compile
def _scale_one(theta: Any, first: int, move: Any, stay: Any) -> float:
    """A's two diagonals for one row whose best state is ``first``; c."""
    c = theta[first:].max() if first < theta.size else 0.0
    for k in range(theta.size):
        move[k] = theta[k] / c if k >= first and c > 0.0 else 0.0
        stay[k] = 1.0 - move[k]
    return c


@_compile
def _add_product(a: Any, b: Any, out: Any) -> None:
    """Out += a b, all of them upper triangular."""
    for i in range(len(a)):
        for m in range(i, len(a)):
            for j in range(m, len(a)):
                out[i, j] += a[i, m] * b[m, j]


@_compile
def _carry(row: Any, matrix: Any) -> None:
    """Row <- row times an upper triangular matrix, from the worst state down."""
    for j in range(row.size - 1, -1, -1):
        total = 0.0
        for i in range(j + 1):
            total += row[i] * matrix[i, j]
        row[j] = total


# Loops, not slices: numba takes three times as long to compile assignments to slices.
@_compile
def _add_scaled(out: Any, w: float, row: Any) -> None:
    """Out += w row."""
    for j in range(row.size):
        out[j] += w * row[j]


@_compile
def _copy_row(row: Any, out: Any) -> None:
    """Out <- row."""
    for j in range(row.size):
        out[j] = row[j]


@_compile
def _copy(matrix: Any, out: Any) -> None:
    """Out <- matrix."""
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            out[i, j] = matrix[i, j]


@_compile
def _exponential(theta: Any, h: float, first: int, matrix: Any, integral: Any, slope: Any) -> None:
    """Matrix = exp(Q h), integral = that of exp(Q u) over the step, slope[k] = d matrix / d log theta_k.

    Rows better than ``first`` are not needed and stay 0; a slope without entries is not asked for.
    """
    free = theta.size
    states = free + 1
    move, stay = np.empty(free), np.empty(free)
    c = _scale_one(theta, first, move, stay)
    doublings = max(0, math.ceil(math.log2(c * h)))
    length = h / 2.0**doublings
    ch = c * length
    terms = _count_terms(ch, free)
    tail = np.empty(terms + 1)
    tail[0] = math.exp(-ch)
    for m in range(1, terms + 1):
        tail[m] = tail[m - 1] * ch / (m + 1)
    for m in range(terms - 1, -1, -1):
        tail[m] += tail[m + 1]
    matrix.fill(0.0)
    integral.fill(0.0)
    slope.fill(0.0)
    for i in range(first, states):
        term, s_term = np.zeros(states), np.zeros((len(slope), states))
        term[i] = 1.0
        w = math.exp(-ch)
        for m in range(terms + 1):
            _add_scaled(matrix[i], w, term)
            _add_scaled(integral[i], tail[m] * length, term)
            for k in range(len(slope)):
                _add_scaled(slope[k, i], w, s_term[k])
            _differ(term, s_term, move, stay)
            w *= ch / (m + 1)
    matrix[free, free] = 1.0
    for k in range(first, free):
        matrix[k, k] = math.exp(-theta[k] * length)
    new = np.empty_like(matrix)
    for _ in range(doublings):
        _copy(integral, new)
        _add_product(matrix, integral, new)
        _copy(new, integral)
        for k in range(len(slope)):
            new.fill(0.0)
            _add_product(slope[k], matrix, new)
            _add_product(matrix, slope[k], new)
            _copy(new, slope[k])
        new.fill(0.0)
        _add_product(matrix, matrix, new)
        _copy(new, matrix)
        length *= 2.0
        matrix[free, free] = 1.0  # the diagonal is known: else 2^s roundings of it would add up
        for k in range(first, free):
            matrix[k, k] = math.exp(-theta[k] * length)
            if len(slope):
                slope[k, k, k] = -theta[k] * length * matrix[k, k]


@_compile
def step_rows(p: Any, theta: Any, h: Any) -> None:
    """P (n, K) <- p exp(Q h), each row with its own hazards theta (n, K-1) and years h (n,)."""
    n, states = p.shape
    free = states - 1
    move, stay = np.zeros((2, free, LANES))
    term, total = np.zeros((2, states, LANES))
    ch, w = np.zeros((2, LANES))
    stiff = np.zeros(LANES, np.bool_)
    matrix, integral = np.empty((2, states, states))
    s_matrix = np.empty((0, states, states))  # not asked for
    for lo in range(0, n, LANES):
        lanes = min(LANES, n - lo)
        pieces, terms = _prepare(p, theta, h, lo, lanes, move, stay, ch, stiff)
        for j in range(states):
            for r in range(lanes):
                total[j, r] = p[lo + r, j]
        for _ in range(pieces):
            for r in range(LANES):
                w[r] = math.exp(-ch[r])
            _begin(term, total, w)
            for m in range(1, terms + 1):
                _multiply(term, move, stay)
                for r in range(LANES):
                    w[r] *= ch[r] / m
                _add(total, w, term)
        for j in range(states):
            for r in range(lanes):
                if not stiff[r]:
                    p[lo + r, j] = total[j, r]
        for r in range(lanes):
            if stiff[r]:
                _exponential(theta[lo + r], h[lo + r], _find_first(p[lo + r]), matrix, integral, s_matrix)
                _carry(p[lo + r], matrix)


@_compile
def integrate_rows(p: Any, theta: Any, h: Any, years: Any) -> None:
    """Carry p (n, K) over a step as step_rows does; years (n, K) += the expected time in each state during it."""
    n, states = p.shape
    free = states - 1
    move, stay = np.zeros((2, free, LANES))
    term, total, spent = np.zeros((3, states, LANES))
    ch, w = np.zeros((2, LANES))
    stiff = np.zeros(LANES, np.bool_)
    matrix, integral = np.empty((2, states, states))
    s_matrix = np.empty((0, states, states))  # not asked for
    row = np.empty(states)
    for lo in range(0, n, LANES):
        lanes = min(LANES, n - lo)
        pieces, terms = _prepare(p, theta, h, lo, lanes, move, stay, ch, stiff)
        tail = np.empty((terms + 1, LANES))  # sum_{m > k} w_m / ch, without a division by ch
        for r in range(LANES):
            tail[0, r] = math.exp(-ch[r])
        for m in range(1, terms + 1):
            for r in range(LANES):
                tail[m, r] = tail[m - 1, r] * ch[r] / (m + 1)
        for m in range(terms - 1, -1, -1):
            for r in range(LANES):
                tail[m, r] += tail[m + 1, r]
        for j in range(states):
            for r in range(lanes):
                total[j, r] = p[lo + r, j]
                spent[j, r] = 0.0
        for _ in range(pieces):
            for r in range(LANES):
                w[r] = math.exp(-ch[r])
            _begin(term, total, w)
            _add(spent, tail[0], term)
            for m in range(1, terms + 1):
                _multiply(term, move, stay)
                for r in range(LANES):
                    w[r] *= ch[r] / m
                _add(total, w, term)
                _add(spent, tail[m], term)
        for j in range(states):
            for r in range(lanes):
                if not stiff[r]:
                    p[lo + r, j] = total[j, r]
                    years[lo + r, j] += spent[j, r] * (h[lo + r] / pieces)
        for r in range(lanes):
            if stiff[r]:
                _exponential(theta[lo + r], h[lo + r], _find_first(p[lo + r]), matrix, integral, s_matrix)
                _copy_row(p[lo + r], row)
                _carry(row, integral)
                _add_scaled(years[lo + r], 1.0, row)
                _carry(p[lo + r], matrix)


@_compile
def slope_rows(p: Any, theta: Any, h: Any, slope: Any, drive: Any) -> None:
    """Carry p over a step, and slope (n, K-1, D, K) = dp / d beta_kd; drive (n, D) = d log theta_k / d beta_kd."""
    n, states = p.shape
    free, drives = slope.shape[1], slope.shape[2]
    move, stay = np.zeros((2, free, LANES))
    term, total = np.zeros((2, states, LANES))
    s_term, s_total = np.zeros((2, free, drives, states, LANES))
    ch, w, flow = np.zeros((3, LANES))
    push = np.zeros((drives, LANES))
    stiff = np.zeros(LANES, np.bool_)
    matrix, integral = np.empty((2, states, states))
    s_matrix = np.empty((free, states, states))
    row = np.empty(states)
    for lo in range(0, n, LANES):
        lanes = min(LANES, n - lo)
        pieces, terms = _prepare(p, theta, h, lo, lanes, move, stay, ch, stiff)
        for r in range(lanes):
            for d in range(drives):
                push[d, r] = drive[lo + r, d]
            for j in range(states):
                total[j, r] = p[lo + r, j]
                for k in range(free):
                    for d in range(drives):
                        s_total[k, d, j, r] = slope[lo + r, k, d, j]
        for _ in range(pieces):
            for r in range(LANES):
                w[r] = math.exp(-ch[r])
            _begin(term, total, w)
            for k in range(free):
                for d in range(drives):
                    _begin(s_term[k, d], s_total[k, d], w)
            for m in range(1, terms + 1):
                for k in range(free):
                    for d in range(drives):
                        _multiply(s_term[k, d], move, stay)
                        for r in range(LANES):
                            flow[r] = term[k, r] * move[k, r] * push[d, r]
                            s_term[k, d, k, r] -= flow[r]
                            s_term[k, d, k + 1, r] += flow[r]
                _multiply(term, move, stay)
                for r in range(LANES):
                    w[r] *= ch[r] / m
                _add(total, w, term)
                for k in range(free):
                    for d in range(drives):
                        _add(s_total[k, d], w, s_term[k, d])
        for r in range(lanes):
            if stiff[r]:
                _exponential(theta[lo + r], h[lo + r], _find_first(p[lo + r]), matrix, integral, s_matrix)
                for k in range(free):
                    _copy_row(p[lo + r], row)
                    _carry(row, s_matrix[k])
                    for d in range(drives):
                        _carry(slope[lo + r, k, d], matrix)
                        _add_scaled(slope[lo + r, k, d], drive[lo + r, d], row)
                _carry(p[lo + r], matrix)
                continue
            for j in range(states):
                p[lo + r, j] = total[j, r]
                for k in range(free):
                    for d in range(drives):
                        slope[lo + r, k, d, j] = s_total[k, d, j, r]


@_compile
def _step_one(p: Any, h: float, c: float, move: Any, stay: Any, term: Any, total: Any) -> None:
    """Total <- p exp(Q h) for one row that is not stiff."""
    pieces = max(1, math.ceil(c * h))
    ch = c * h / pieces
    terms = _count_terms(ch, move.size)
    _copy_row(p, total)
    for _ in range(pieces):
        w = math.exp(-ch)
        for j in range(p.size):
            term[j] = total[j]
            total[j] *= w
        for m in range(1, terms + 1):
            _multiply_one(term, move, stay)
            w *= ch / m
            _add_scaled(total, w, term)


@_compile
def cross_rows(p: Any, theta: Any, h: Any, state: int, target: float, found: Any) -> None:
    """The time in the step, found (n,), at which the probability of ``state`` or worse comes to ``target``.

    Newton's method, and halving where it leaves the bracket; a row that does not get there has its whole step.
    """
    n, states = p.shape
    term, there = np.empty((2, states))
    move, stay = np.empty((2, states - 1))
    matrix, integral = np.empty((2, states, states))
    s_matrix = np.empty((0, states, states))  # not asked for
    for i in range(n):
        low, high, at = 0.0, h[i], 0.5 * h[i]
        first = _find_first(p[i])
        c = _scale_one(theta[i], first, move, stay)
        for _ in range(MOST_TRIES):
            if c * at > STIFF:
                _exponential(theta[i], at, first, matrix, integral, s_matrix)
                _copy_row(p[i], there)
                _carry(there, matrix)
            else:
                _step_one(p[i], at, c, move, stay, term, there)
            tail = there[state:].sum()
            if tail < target:
                low = at
            else:
                high = at
            if high - low <= CLOSE * h[i]:
                break
            speed = theta[i, state - 1] * there[state - 1]
            ahead = at + (target - tail) / speed if speed > 0.0 else math.inf
            if low < ahead < high and abs(ahead - at) <= CLOSE * h[i]:
                high = ahead
                break
            at = ahead if low < ahead < high else 0.5 * (low + high)
        found[i] = high
