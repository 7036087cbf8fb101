"""Inspections with known errors, small improvements and repairs, none of them recorded."""

from typing import NamedTuple

import numpy as np
import polars as pl

LABELS = "abcde"
HAZARDS = np.array([0.16, 0.14, 0.12, 0.10])
AFTER = np.array([0.7, 0.3])  # states after a repair, of those that are better than the one before
GAP = 2


class KnownRepairs(NamedTuple):
    """Inspections, and for each visit but a bridge's first what happened before it: repaired, improved."""

    table: pl.DataFrame
    truth: pl.DataFrame


def draw_repairs(
    bridges: int = 300,
    visits: int = 10,
    errors: float = 0.06,
    improvements: float = 0.01,
    repairs: float = 0.05,
    seed: int = 1,
) -> KnownRepairs:
    """Draw visits ``GAP`` years apart; ``repairs`` is the rate a year of bridges that are not in the best state.

    Errors are by one rating, half of them each way; a rating beyond the scale's end is the end.
    """
    rng, rows, truth = np.random.default_rng(seed), [], []
    for bridge in range(bridges):
        state, name = int(rng.integers(0, 3)), f"B{bridge:03d}"
        for visit in range(visits):
            before, repaired = state, False
            if visit:
                for _ in range(GAP):
                    state = _decay(state, rng)
                    state -= int(state > 0 and rng.random() < improvements)
                    if state > 0 and rng.random() < -np.expm1(-repairs):
                        odds = AFTER[:state]
                        state, repaired = int(rng.choice(odds.size, p=odds / odds.sum())), True
                truth.append((name, 2000 + GAP * visit, repaired, state < before))
            slip = int(rng.choice([-1, 0, 1], p=[errors / 2, 1 - errors, errors / 2]))
            seen = min(max(state + slip, 0), len(LABELS) - 1)
            rows.append((name, f"{2000 + GAP * visit}-06-01", LABELS[seen]))
    table = pl.DataFrame(rows, schema=["bridge_id", "date", "state"], orient="row")
    return KnownRepairs(
        table, pl.DataFrame(truth, schema=["bridge_id", "year", "repaired", "improved"], orient="row")
    )


def _decay(state: int, rng: np.random.Generator) -> int:
    """State after a year of exponential waiting times."""
    left = 1.0
    while state < HAZARDS.size:
        left -= rng.exponential(1 / HAZARDS[state])
        if left < 0:
            break
        state += 1
    return state


def match(found: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``find_repairs`` with what happened."""
    return found.with_columns(year=pl.col("date_2").dt.year()).join(truth, on=["bridge_id", "year"])
