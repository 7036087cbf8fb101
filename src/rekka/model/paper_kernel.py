"""The compiled part of the paper's likelihood: the floored closed form, row by row, for reproduction only.

It is what ``paper.FlooredLikelihood`` computes with NumPy, ten times as fast, so that the study under the paper's
conditions can be run while one waits. A test holds the two together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rekka.core.compiling import njit

DENOMINATOR_FLOOR = 1e-9  # paper, Proposition 1
PROBABILITY_FLOOR = 1e-12  # paper, Eq. mle


@njit(cache=True, nogil=True, error_model="numpy")
def floored_log_likelihood(X: Any, beta: Any, start: Any, end: Any, dt: Any, weight: Any) -> float:
    """sum_rows weight log max(pi, 1e-12), Eq. mle; X (n, p+1), beta (K-1, p+1), states 0-based.

    The last state's probability is the complement of the others'. A probability that is no number is at the floor.
    """
    free, p1 = beta.shape
    theta, decay = np.empty(free), np.empty(free)
    total = 0.0
    for r in range(len(dt)):
        i, j = start[r], end[r]
        for k in range(i, min(j, free - 1) + 1):
            eta = 0.0
            for c in range(p1):
                eta += X[r, c] * beta[k, c]
            theta[k] = np.exp(eta)
            decay[k] = np.exp(-theta[k] * dt[r])
        first = i if j == free else j
        reached = 0.0
        for e in range(first, min(j, free - 1) + 1):
            product = 1.0
            for m in range(i, e):
                product *= theta[m]
            terms = 0.0
            for k in range(i, e + 1):
                term = decay[k]
                for m in range(i, e + 1):
                    if m != k:
                        difference = theta[m] - theta[k]
                        if abs(difference) < DENOMINATOR_FLOOR:
                            difference = -DENOMINATOR_FLOOR if difference < 0 else DENOMINATOR_FLOOR
                        term /= difference
                terms += term
            reached += product * terms
        p = 1.0 - reached if j == free else reached
        total += weight[r] * np.log(p if p > PROBABILITY_FLOOR else PROBABILITY_FLOOR)
    return total
