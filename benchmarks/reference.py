"""Log-probability, slope and curvature in arbitrary precision: what the kernel is measured against.

    pi_ij = a_i ... a_{j-1} D,   D = sum_u e^-x_u / prod_{v != u} (x_v - x_u),   x = a_i, ..., a_j,  a_K = 0

The closed form divides by differences of nodes, which may be equal. So every node is moved by its own
multiple of a relative 1e-60, a node that a derivative repeats is a second copy moved by another multiple, and
the digits to work with are counted from the differences that are then left. The answer belongs to hazards that
differ from the given ones by 1e-58 at most: right to 50 digits of anything larger than 1e-50 itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

NUDGE_EXPONENT = -60
SPARE_DIGITS = 140  # beyond what cancels; covers the nudge's own 60
GUESS_DIGITS = 60  # to count the digits that cancel


@dataclass(frozen=True)
class Reference:
    """log pi, pi, and with derivatives its slope (m,) and curvature (m, m) in the log hazards i..min(j, K-2)."""

    log_probability: Any
    probability: Any
    slope: list[Any]
    curvature: list[list[Any]]


def reference(eta: Sequence[float], dt: float, i: int, j: int, *, derivatives: bool = True) -> Reference:
    """The exact result for the doubles eta (K-1,) and dt; states are 0-based."""
    with mp.workdps(GUESS_DIGITS):
        rough = [mp.exp(mp.mpf(float(e))) * mp.mpf(float(dt)) for e in eta]
        digits = _digits(rough, i, j)
    with mp.workdps(digits):
        a = [mp.exp(mp.mpf(float(e))) * mp.mpf(float(dt)) for e in eta]
        return _closed_form(a, i, j, derivatives)


def reference_probability(theta: Sequence[float], dt: float, i: int, j: int) -> Any:
    """Exact pi for the doubles theta (K-1,) and dt."""
    exact = [mp.mpf(float(t)) for t in theta]
    with mp.workdps(GUESS_DIGITS):
        digits = _digits([t * mp.mpf(float(dt)) for t in exact], i, j)
    with mp.workdps(digits):
        return _closed_form([t * mp.mpf(float(dt)) for t in exact], i, j, derivatives=False).probability


def _copies(a: list[Any], i: int, j: int) -> list[list[Any]]:
    """Three copies of each node i..j, all different; the absorbing state's 0 stays what it is."""
    nudge = mp.mpf(10) ** NUDGE_EXPONENT
    nodes = [a[m] if m < len(a) else mp.mpf(0) for m in range(i, j + 1)]
    return [[x * (1 + nudge * (3 * k + c)) for c in range(3)] for k, x in enumerate(nodes)]


def _digits(a: list[Any], i: int, j: int) -> int:
    """Decimal digits to work with: no term of the sum, and no 1 / D, is larger than what is counted here."""
    nudge_log = float(NUDGE_EXPONENT)
    nodes = [a[m] if m < len(a) else mp.mpf(0) for m in range(i, j + 1)]
    worst = 0.0
    for x in nodes:
        total = 0.0
        for y in nodes:
            size = max(x, y)
            if size == 0:
                continue
            floor = float(mp.log10(size)) + nudge_log
            gap = abs(x - y)
            log_gap = max(floor, float(mp.log10(gap))) if gap else floor
            total += abs(log_gap)
        if x:  # the two copies that the curvature may add
            total += 2.0 * abs(float(mp.log10(x)) + nudge_log)
        worst = max(worst, total)
    return int(2.0 * worst) + SPARE_DIGITS


def _closed_form(a: list[Any], i: int, j: int, derivatives: bool) -> Reference:
    copies = _copies(a, i, j)
    base = [c[0] for c in copies]
    low = min(base)
    weight = [[mp.exp(low - x) for x in c] for c in copies]
    inside = [_product(y - x for v, y in enumerate(base) if v != u) for u, x in enumerate(base)]
    n = j - i
    D = mp.fsum(w[0] / p for w, p in zip(weight, inside, strict=True))
    scaled = D * _product(base[:n])
    log_probability = mp.log(scaled) - low
    probability = scaled * mp.exp(-low)
    if not derivatives:
        return Reference(log_probability, probability, [], [])
    free = min(j, len(a) - 1) - i + 1

    def added(*extra: tuple[int, int]) -> Any:
        """D with copies of nodes added to the base."""
        xs = [copies[m][c] for m, c in extra]
        total = mp.mpf(0)
        for u, x in enumerate(base):
            total += weight[u][0] / (inside[u] * _product(y - x for y in xs))
        for t, (m, c) in enumerate(extra):
            others = [y for s, y in enumerate(xs) if s != t] + base
            total += weight[m][c] / _product(y - xs[t] for y in others)
        return total

    first = [base[m] * added((m, 1)) / D for m in range(free)]
    slope = [(1 if m < n else 0) - first[m] for m in range(free)]
    curvature = [[mp.mpf(0)] * free for _ in range(free)]
    for m in range(free):
        for s in range(m, free):
            second = base[m] * base[s] * added((m, 1), (s, 2)) / D
            value = second - first[m] * first[s]
            if m == s:
                value += second - first[m]
            curvature[m][s] = curvature[s][m] = value
    return Reference(log_probability, probability, slope, curvature)


def _product(factors: Any) -> Any:
    result = mp.mpf(1)
    for factor in factors:
        result *= factor
    return result


def as_float(values: Any) -> np.ndarray:
    """Arbitrary-precision numbers as doubles."""
    return np.vectorize(float, otypes=[float])(np.array(values, dtype=object))
