"""Inspections of bridges that differ, by inspectors who err: small, from new, with known factors."""

import numpy as np
import polars as pl

LABELS = "abc"
SLOW, FAST = 0.25, 1.75


def make_inspections(bridges: int = 80, visits: int = 8, errors: float = 0.04, seed: int = 5) -> pl.DataFrame:
    """Every second bridge is fast (F...), the others slow (S...); a district has both; errors by one rating."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(bridges):
        eps = FAST if number % 2 else SLOW
        left = np.cumsum(rng.exponential(1 / (eps * np.array([0.12, 0.1]))))
        for visit in range(visits):
            state = int((left <= 2 * visit).sum())
            slip = int(rng.choice([-1, 0, 1], p=[errors, 1 - 2 * errors, errors]))
            seen = min(max(state + slip, 0), 2)
            name = f"{'F' if number % 2 else 'S'}{number:02d}"
            district = ("north", "south", "west", "east")[number // 2 % 4]
            rows.append((name, f"{2000 + 2 * visit}-06-01", LABELS[seen], district, visit))
    return pl.DataFrame(rows, schema=["bridge_id", "date", "state", "district", "crew"], orient="row")
