"""Transition probabilities over an interval for given hazards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekka.core.errors import BadValues, InputError
from rekka.model import kernel


def transition_probabilities(theta: ArrayLike, dt: ArrayLike) -> NDArray[np.float64]:
    """Exact transition probabilities of the pure-birth chain, pi(dt) = expm(Q dt).

    Each probability has a relative error of at most 1e-12, equal hazards included.

    Parameters
    ----------
    theta : array (..., K-1)
        Hazards of leaving states 1..K-1, per year, not negative. State K is never left.
    dt : array (...)
        Years, not negative. The leading axes of both are broadcast.

    Returns
    -------
    array (..., K, K)
        Upper triangular, each row summing to 1.

    """
    hazards = _checked(theta, "theta")
    years = _checked(dt, "dt")
    if hazards.ndim == 0 or hazards.shape[-1] == 0:
        raise InputError("theta needs at least one hazard in its last axis: K - 1 of them for K states.")
    try:
        with np.errstate(divide="ignore", over="ignore"):  # log 0 = -inf and a product of inf have their limits
            a, log_a = hazards * years[..., None], np.log(hazards) + np.log(years[..., None])
    except ValueError:
        raise InputError(
            f"theta has leading shape {hazards.shape[:-1]} and dt has shape {years.shape}; "
            "they cannot be broadcast together."
        ) from None
    free = a.shape[-1]
    flat, log_flat = (np.ascontiguousarray(v.reshape(-1, free)) for v in (a, log_a))
    out = np.empty((len(flat), free + 1, free + 1))
    part = np.empty((len(flat), free + 1))  # whole in memory: else the kernel is compiled a second time
    for start in range(free):
        rows = np.full(len(flat), start, dtype=np.int64)
        kernel.probability_rows(flat, log_flat, rows, 0, part)
        out[:, start] = part
    out[:, free, :] = 0.0
    out[:, free, free] = 1.0
    return out.reshape(*a.shape[:-1], free + 1, free + 1)


def row_probabilities(
    a: NDArray[np.float64], log_a: NDArray[np.float64], start: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Probabilities (n, K) of each row's end state, for a = theta dt and its logarithm (n, K-1).

    Rows of one start that follow each other are taken together.
    """
    p = np.empty((len(a), a.shape[1] + 1))
    kernel.probability_rows(a, log_a, start, 0, p)
    return p


def _checked(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        array: NDArray[Any] = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of numbers.") from None
    if not (np.isfinite(array) & (array >= 0)).all():
        bad = array[~(np.isfinite(array) & (array >= 0))]
        raise BadValues(
            f"{name} has {bad.size} value(s) that are negative, missing or infinite (first: {bad.flat[0]}); "
            "finite numbers of at least 0 are needed.",
            column=name,
        )
    return array
