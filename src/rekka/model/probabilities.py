"""Transition probabilities and steps of the pure-birth chain, for arrays of any leading shape.

No covariate and no link comes here: hazards theta (..., K-1) per year and years in, probabilities out, on threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rekka.core.errors import BadValues, InputError
from rekka.model import kernel, step_kernel


def transition_probabilities(theta: ArrayLike, dt: ArrayLike) -> NDArray[np.float64]:
    """Exact transition probabilities of the pure-birth chain, pi(dt) = expm(Q dt).

    Q has -theta_k on its diagonal and theta_k beside it. Each probability has a relative error of at most 1e-12,
    equal hazards included.

    Parameters
    ----------
    theta : array (..., K-1)
        Hazards of leaving states 1..K-1, per year, not negative. State K is never left.
    dt : array (...)
        Years, not negative. The leading axes of both are broadcast.

    Returns
    -------
    array (..., K, K)
        Entry [i, j] is the probability of being in state j+1, dt years after state i+1: upper triangular, each row
        summing to 1.

    Examples
    --------
    >>> import rekka
    >>> rekka.transition_probabilities([0.2, 0.1], 5.0).round(4).tolist()
    [[0.3679, 0.4773, 0.1548], [0.0, 0.6065, 0.3935], [0.0, 0.0, 1.0]]

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


Array = NDArray[np.float64]

ROWS_A_THREAD = 8192  # below this, handing rows to a thread costs more than it saves


def step(p: Array, theta: Array, h: Array | float) -> None:
    """Carry state probabilities p (..., K) over h years, p <- p exp(Q h), in place; h is a number or (...)."""
    _run(step_kernel.step_rows, p, theta, h)


def step_integrated(p: Array, theta: Array, h: Array | float, years: Array) -> None:
    """Carry p as ``step`` does, and add the expected years in each state to ``years`` (..., K)."""
    _run(step_kernel.integrate_rows, p, theta, h, years)


def step_sloped(p: Array, slope: Array, theta: Array, h: Array | float, drive: Array) -> None:
    """Carry p (n, K) and its slope (n, K-1, D, K), as ``step`` does; drive (n, D) moves the log hazards."""
    _run(step_kernel.slope_rows, p, theta, h, slope, drive)


def cross(p: Array, theta: Array, h: Array, state: int, target: float) -> Array:
    """When (n,) in a step of h (n,) years the probability of ``state`` or worse comes to ``target``; p (n, K)."""
    found = np.empty(len(p))
    step_kernel.cross_rows(p, theta, h, state, target, found)
    return found


def _run(kernel: Callable[..., None], p: Array, theta: Array, h: Array | float, *more: Array) -> None:
    """The kernel over all rows, on threads. Arrays to be written to must be whole in memory, as rows of them.

    The years are copied, because an array that can only be read would have every kernel compiled a second time.
    """
    lead = p.shape[:-1]
    given = (p, theta, *more)
    rows = [np.ascontiguousarray(one).reshape(-1, *one.shape[len(lead) :]) for one in given]
    years = np.array(np.broadcast_to(h, lead), dtype=np.float64, order="C").reshape(-1)
    rows.insert(2, years)
    parts = max(1, min(os.cpu_count() or 1, years.size // ROWS_A_THREAD))
    edges = [years.size * part // parts for part in range(parts + 1)]
    if parts == 1:
        kernel(*rows)
        return
    done = _pool().map(lambda edge: kernel(*(one[edge[0] : edge[1]] for one in rows)), pairwise(edges))
    list(done)


@lru_cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="rekka-forecast")
