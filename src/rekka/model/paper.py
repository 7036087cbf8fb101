"""The paper's formulas as printed, for reproduction only. Nothing else in rekka computes with them.

``printed_proposition_1`` is the closed form of the paper's Eq. transition-prob. It is not the transition
probability but the cumulative one, P(S(dt) <= j | S(0) = i): see the erratum in docs/model.md.
``FlooredLikelihood`` is the paper's likelihood, Eq. mle, on the corrected closed form with the paper's two
floors: it loses its digits where two hazards are close, and it is flat where the probability floor holds. It is
the plain form; a fit uses its compiled twin in paper_kernel.py.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekka.model.likelihood import Rows
from rekka.model.paper_kernel import DENOMINATOR_FLOOR, PROBABILITY_FLOOR

Array = NDArray[np.float64]


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


@dataclass(frozen=True)
class FlooredLikelihood:
    """sum_rows weight log max(pi, 1e-12), Eq. mle, vectorised over the rows of each (start, end) pair."""

    X: Array
    rows: Rows
    pairs: tuple[tuple[int, int, slice], ...]

    @classmethod
    def build(cls, rows: Rows, X: Array) -> FlooredLikelihood:
        """X is (n, p+1); rows of one start and end must follow each other (``rows.grouping``)."""
        change = np.flatnonzero((np.diff(rows.start) != 0) | (np.diff(rows.end) != 0)) + 1
        edges = [0, *change.tolist(), len(X)]
        spans = [slice(a, b) for a, b in itertools.pairwise(edges)]
        return cls(X, rows, tuple((int(rows.start[s.start]), int(rows.end[s.start]), s) for s in spans))

    def value(self, beta: Array) -> float:
        """The floored log-likelihood at beta (K-1, p+1); a probability that is no number is at the floor too."""
        theta = np.exp(self.X @ beta.T)
        p = np.empty(len(self.X))
        for i, j, span in self.pairs:
            p[span] = floored_probability(theta[span], self.rows.dt[span], i, j)
        return float(self.rows.weight @ np.log(np.fmax(p, PROBABILITY_FLOOR)))


def _floored(difference: Array) -> Array:
    """A difference of hazards, kept away from zero without changing its sign."""
    small = np.abs(difference) < DENOMINATOR_FLOOR
    return np.where(small, np.where(difference < 0, -DENOMINATOR_FLOOR, DENOMINATOR_FLOOR), difference)
