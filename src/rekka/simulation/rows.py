"""Simulated transitions with known hazards."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption
from rekka.model.family import EXPONENTIAL

Array = NDArray[np.float64]

COVARIATES = ("age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean")
# Effects on the log hazard per z-score of age, log length, log area and log traffic, alternating by state.
_EFFECTS = np.array([[0.30, 0.15, -0.10, 0.20], [0.20, 0.05, 0.10, 0.30]])
_DRAWN_AT_ONCE = 65_536  # rows whose probabilities of all ends are in memory together


def simulate_transitions(n_rows: int, *, n_states: int = 5, seed: int = 20260924) -> pl.DataFrame:
    """Draw transitions between two inspections, about five years apart, from known hazards.

    Length, area and traffic are heavy-tailed, age is skewed to the left; the log hazards are linear in age and
    in the logarithms of the others. About three rows share a bridge.

    Parameters
    ----------
    n_rows : int
        Number of transitions.
    n_states : int
        K; every start state but K occurs.
    seed : int
        The same seed draws the same rows.

    Returns
    -------
    polars.DataFrame
        bridge_id, state_1, state_2, interval_years, and the covariates age_at_inspection_1 (years), bridge_length
        (m), bridge_area (m2) and traffic_mean (vehicles a day).

    Examples
    --------
    >>> import rekka
    >>> rekka.simulate_transitions(200, n_states=4).shape
    (200, 8)

    """
    if n_rows < 1 or n_states < 2:
        raise BadOption(f"n_rows = {n_rows}, n_states = {n_states}: at least 1 row and 2 states are needed.")
    rng = np.random.default_rng(seed)
    bridge = rng.integers(0, max(1, n_rows // 3), n_rows)
    length = np.exp(rng.normal(3.2, 0.9, n_rows)) + 2.0
    area = length * np.exp(rng.normal(2.2, 0.35, n_rows))
    traffic = np.exp(rng.normal(8.0, 1.2, n_rows))
    age = np.clip(62.0 - rng.gamma(2.2, 7.0, n_rows), 1.0, None)
    dt = np.round(rng.normal(5.0, 0.6, n_rows).clip(1.0, 9.0), 2)
    x = np.column_stack([age, np.log(length), np.log(area), np.log(traffic)])
    z = (x - x.mean(axis=0)) / x.std(axis=0) if n_rows > 1 else np.zeros_like(x)
    k = np.arange(n_states - 1)
    theta = EXPONENTIAL.hazards(np.log(0.12 * 0.85**k) + z @ _EFFECTS[k % 2].T)
    start = rng.choice(n_states - 1, n_rows, p=0.7**k / np.sum(0.7**k)).astype(np.int64)
    end = draw_ends(theta, dt, start, rng)
    return pl.DataFrame(
        {
            "bridge_id": _name_bridges(bridge),
            "state_1": start + 1,
            "state_2": end + 1,
            "interval_years": dt,
            "age_at_inspection_1": np.round(age, 1),
            "bridge_length": np.round(length, 1),
            "bridge_area": np.round(area, 1),
            "traffic_mean": np.round(traffic),
        }
    )


def _name_bridges(numbers: NDArray[np.int64]) -> pl.Series:
    """'B-000017', wider where six digits are not enough."""
    names = pl.Series("bridge_id", numbers).cast(pl.String).str.zfill(6)
    return "B-" + names


def draw_ends(theta: Array, dt: Array, start: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """End states drawn exactly from their distribution; theta (n, K-1), 0-based states."""
    u = rng.random(len(theta))
    end = np.empty(len(theta), dtype=np.int64)
    for first in range(0, len(theta), _DRAWN_AT_ONCE):
        # Rows of one start side by side: the kernel takes them together.
        rows = first + np.argsort(start[first : first + _DRAWN_AT_ONCE], kind="stable")
        end[rows] = EXPONENTIAL.draw_ends(theta[rows], dt[rows], start[rows], u[rows])
    return end
