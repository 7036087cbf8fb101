"""The paper's formulas as printed, for reproduction only. Nothing else in rekka computes with them.

``printed_proposition_1`` is the closed form of the paper's Eq. transition-prob. It is not the transition
probability but the cumulative one, P(S(dt) <= j | S(0) = i): see the erratum in docs/model.md.
``floored_log_likelihood`` is the paper's likelihood, Eq. mle, on the corrected closed form with the paper's two
floors: it loses its digits where two hazards are close, and it is flat where the probability floor holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rekka.model.likelihood import Rows

Array = NDArray[np.float64]

DENOMINATOR_FLOOR = 1e-9  # paper, Proposition 1
PROBABILITY_FLOOR = 1e-12  # paper, Eq. mle


def printed_proposition_1(theta: Array, dt: float, i: int, j: int) -> float:
    """sum_k prod_{m != k} theta_m / (theta_m - theta_k) exp(-theta_k dt), k, m = i..j; 1-based states."""
    nodes = np.asarray(theta, dtype=np.float64)[i - 1 : j]
    total = 0.0
    for k, theta_k in enumerate(nodes):
        others = np.delete(nodes, k)
        total += float(np.prod(others / _floored(others - theta_k))) * float(np.exp(-theta_k * dt))
    return total


def floored_probability(theta: Array, dt: Array, i: int, j: int) -> Array:
    """The corrected closed form with the denominator floor; theta (n, K-1), 0-based states i <= j.

    pi_ij = theta_i ... theta_{j-1} sum_k exp(-theta_k dt) / prod_{m != k} (theta_m - theta_k) for j < K, and
    pi_iK by complementarity.
    """
    if j == theta.shape[1]:
        reached = sum((floored_probability(theta, dt, i, e) for e in range(i, j)), np.zeros(len(theta)))
        return np.asarray(1.0 - reached)
    total = np.zeros(len(theta))
    for k in range(i, j + 1):
        term = np.exp(-theta[:, k] * dt)
        for m in range(i, j + 1):
            if m != k:
                term = term / _floored(theta[:, m] - theta[:, k])
        total += term
    return np.asarray(np.prod(theta[:, i:j], axis=1) * total)


def floored_log_likelihood(rows: Rows, X: Array, beta: Array) -> float:
    """sum_rows weight log max(pi, 1e-12), Eq. mle; X (n, p+1), beta (K-1, p+1)."""
    theta = np.exp(X @ beta.T)
    p = np.empty(len(X))
    for i, j in np.unique(np.stack([rows.start, rows.end], axis=1), axis=0):
        here = (rows.start == i) & (rows.end == j)
        p[here] = floored_probability(theta[here], rows.dt[here], int(i), int(j))
    return float(rows.weight @ np.log(np.maximum(p, PROBABILITY_FLOOR)))


def _floored(difference: Array) -> Array:
    """A difference of hazards, kept away from zero without changing its sign."""
    small = np.abs(difference) < DENOMINATOR_FLOOR
    return np.where(small, np.where(difference < 0, -DENOMINATOR_FLOOR, DENOMINATOR_FLOOR), difference)
