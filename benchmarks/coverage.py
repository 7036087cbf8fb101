"""Do 95 % intervals hold the truth 95 % of the time? ``python -m benchmarks.coverage [--sets 200]``.

Each set is a plain simulated inventory of its own seed. The transitions of one case from the third to the fourth
round (one row a member; given the start state the rows are independent) are fitted, and the Wald intervals from
the exact Hessian are compared with the coefficients that the states were drawn from. Fits without a certificate
have no intervals: they are counted and left out. Exits with 1 if the share of all intervals is outside LIMITS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import polars as pl
from rich.console import Console

from benchmarks.problems import SEED
from rekka import ExponentialHazardMarkovModel, read_transitions
from rekka.simulation.inventory import Inventory, simulate_inventory
from rekka.simulation.stock import CASES, LETTERS, TERMS, true_coefficients

LEVEL = 0.95
LIMITS = (0.92, 0.98)
SETS, BRIDGES, CASE = 200, 1_250, "Main girder"


@dataclass(frozen=True)
class Coverage:
    """Whether each interval held the truth (certified sets, coefficients state by state); rows of all sets."""

    held: np.ndarray
    rows: int
    uncertified: int

    @property
    def share(self) -> float:
        """Of all intervals."""
        return float(self.held.mean())

    @property
    def passes(self) -> bool:
        """Whether the share is within LIMITS."""
        return LIMITS[0] <= self.share <= LIMITS[1]

    def by_coefficient(self) -> dict[str, float]:
        """Share of each coefficient's intervals."""
        names = [f"{term} of state {k}" for k in range(1, len(LETTERS)) for term in TERMS]
        return dict(zip(names, self.held.mean(axis=0).tolist(), strict=True))


def measure(sets: int = SETS, bridges: int = BRIDGES, case: str = CASE, seed: int = SEED) -> Coverage:
    """Draw, fit and compare so many sets."""
    truth = true_coefficients()[CASES.index(case)].ravel()
    held: list[np.ndarray] = []
    rows = 0
    for number in np.random.SeedSequence(seed).generate_state(sets):
        frame = pair(simulate_inventory(bridges, preset="plain", seed=int(number)), case)
        model = ExponentialHazardMarkovModel(covariates=TERMS[1:], n_states=len(LETTERS), clock="start")
        model.fit(frame, frame["state_2"])
        rows += frame.height
        if model.certificate_.certified:
            low, high = (model.summary(LEVEL)[name].to_numpy() for name in ("ci_low", "ci_high"))
            held.append((low <= truth) & (truth <= high))
    return Coverage(np.array(held), rows, sets - len(held))


def pair(tables: Inventory, case: str) -> pl.DataFrame:
    """Transitions of a case from the third to the fourth round, with the covariates of the true hazards."""
    found = read_transitions(
        tables.inspections.filter(pl.col("case") == case),
        join=[{"file": tables.inventory}, {"file": tables.traffic}],
    )
    names = zip(TERMS[1:], found.covariates, strict=True)
    x = {term: pl.col(name).log() if term.startswith("log") else pl.col(name) for term, name in names}
    return found.frame.filter(visit_1=3, visit_2=4).with_columns(**x)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if the share is outside its limits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--sets", type=int, default=SETS)
    parser.add_argument("--bridges", type=int, default=BRIDGES)
    parser.add_argument("--case", choices=CASES, default=CASE)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args(arguments)
    console, clock = Console(highlight=False, soft_wrap=True), perf_counter()
    found = measure(**vars(options))
    shares = found.by_coefficient()
    fewest, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    console.print(
        f"{options.case}: {options.sets} sets of {found.rows / options.sets:.0f} rows on average, "
        f"{found.uncertified} without a certificate, seed {options.seed}, {perf_counter() - clock:.0f} s\n"
        f"{found.share:.2%} of {found.held.size} intervals at {LEVEL:.0%} hold the truth: "
        f"{'within' if found.passes else 'OUTSIDE'} {LIMITS[0]:.0%} to {LIMITS[1]:.0%}\n"
        f"by coefficient: from {shares[fewest]:.1%} ({fewest}) to {shares[most]:.1%} ({most})"
    )
    return 0 if found.passes else 1


if __name__ == "__main__":
    sys.exit(main())
