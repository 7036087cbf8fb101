"""Do intervals clustered by bridge hold the truth? ``python -m benchmarks.clusters [--sets 4000]``.

Each set is rows of so many bridges, from one of these populations:

- abstract: differences with a skewed part that a bridge shares (correlation 0.3), 1 to 10 rows a bridge; truth 0;
- 600 in range: a row's log loss under z-score less that under Box-Cox. Both models were fitted on 600 bridges, and
  are fitted anew MODELS times. Rows of a bridge share its covariates and a frailty. A bridge with a covariate
  outside its training range is left out. The truth is the mean over very many such bridges;
- 150 in range: the same with 150 bridges that train;
- 600 and 150: the same with every bridge.

The last two are for the record and are not judged: there the mean hangs on rare bridges far outside the training
range, which most sets do not have, so that no interval made from a set can know. Beside the clustered interval
stands the naive one, of rows as if they were independent. Exits with 1 if a judged share, from JUDGED_FROM bridges
on, is outside LIMITS.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import configuration
from benchmarks.problems import SEED
from rekka.core.numerics import generator
from rekka.evaluation.scores import CONFIDENCE, LOG_FLOOR, mean_interval
from rekka.model.fit import Options, Refit, refit_rows
from rekka.model.likelihood import Rows
from rekka.simulation.rows import COVARIATES, draw_ends
from rekka.simulation.stock import CASES, FIRST_STATES, LETTERS, draw_bridges

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Draw = Callable[[int, np.random.Generator], tuple[Array, Ints]]  # bridges -> values (n,), bridge (n,) in order

RESULT = Path(__file__).with_name("results") / "clusters.json"
SETS, BRIDGES = 4000, (10, 20, 40, 100)
JUDGED, JUDGED_FROM = ("abstract", "600 in range", "150 in range"), 20  # bridges
LIMITS = (0.92, 0.98)
MOST_ROWS, SHARED = 10, 0.3  # abstract: rows on a bridge, correlation within it
TRAINING, MODELS = (600, 150), 20  # bridges that train; pairs of models
POPULATION = 100_000  # bridges
SPARE = 1.5  # bridges drawn for each that is needed: some are out of range
CASE, THIRD_ROUND = "Expansion joint", 2  # 0-based
METHODS = ("zscore", "boxcox")
MORE_MEMBERS = 2.5  # than one on a bridge, on average
FRAILTY = 1.0  # standard deviation of what a bridge's log hazards share beyond its covariates


@dataclass(frozen=True)
class Cell:
    """So many sets of one population: the shares of intervals that hold the truth, and their mean widths."""

    population: str
    bridges: int
    sets: int
    clustered: float
    naive: float
    clustered_width: float
    naive_width: float

    @property
    def judged(self) -> bool:
        """Whether LIMITS are for it."""
        return self.population in JUDGED and self.bridges >= JUDGED_FROM

    @property
    def passes(self) -> bool:
        """Whether the clustered share is within LIMITS, or need not be."""
        return not self.judged or LIMITS[0] <= self.clustered <= LIMITS[1]


@dataclass(frozen=True)
class Truth:
    """Of very many bridges: mean, half the width of its interval, correlation within bridges, skewness of rows."""

    mean: float
    give_or_take: float
    correlation: float
    skewness: float


@dataclass(frozen=True)
class Pair:
    """Two fitted models and the range, (2, 4), of the covariates that they saw; None draws from everywhere."""

    models: tuple[Refit, Refit]
    span: Array | None

    def draw(self, bridges: int, rng: np.random.Generator) -> tuple[Array, Ints]:
        """Differences in log loss."""
        rows, x, bridge = draw_rows(bridges if self.span is None else int(SPARE * bridges), rng)
        if self.span is not None:
            inside = np.flatnonzero(((x >= self.span[0]) & (x <= self.span[1])).all(axis=1))
            rows, x, bridge = rows.take(inside), x[inside], np.unique(bridge[inside], return_inverse=True)[1]
            last = np.searchsorted(bridge, bridges)
            rows, x, bridge = rows.take(np.arange(last)), x[:last], bridge[:last]
        one, other = (_log_loss(model, rows, x) for model in self.models)
        return one - other, bridge


def measure(sets: int = SETS, bridges: Sequence[int] = BRIDGES) -> tuple[dict[str, list[Truth]], list[Cell]]:
    """Every population, by its models, and by every number of bridges."""
    populations: dict[str, list[Draw]] = {"abstract": [draw_abstract]}
    for training in TRAINING:
        pairs = [fit_pair(training, number) for number in range(MODELS)]
        populations[f"{training} in range"] = [pair.draw for pair in pairs]
        populations[f"{training}"] = [replace(pair, span=None).draw for pair in pairs]
    truths, cells = {}, []
    for name, draws in populations.items():
        truths[name] = [describe(name, number, draw) for number, draw in enumerate(draws)]
        means = [0.0] if name == "abstract" else [truth.mean for truth in truths[name]]
        cells += [cover(name, draws, means, g, sets) for g in bridges]
    return truths, cells


def draw_abstract(bridges: int, rng: np.random.Generator) -> tuple[Array, Ints]:
    """Exponential parts, of the bridge and of the row, of mean 0 and variance 1 together."""
    bridge = np.repeat(np.arange(bridges), rng.integers(1, MOST_ROWS + 1, bridges))
    shared, own = rng.standard_exponential(bridges) - 1.0, rng.standard_exponential(bridge.size) - 1.0
    return math.sqrt(SHARED) * shared[bridge] + math.sqrt(1.0 - SHARED) * own, bridge


def fit_pair(training: int, number: int) -> Pair:
    """Both models of the rows of so many bridges."""
    rows, x, _ = draw_rows(training, generator(SEED, "training", training, number))
    one, other = (_fit(rows, x, method) for method in METHODS)
    return Pair((one, other), np.stack([x.min(axis=0), x.max(axis=0)]))


def draw_rows(bridges: int, rng: np.random.Generator) -> tuple[Rows, Array, Ints]:
    """Transitions of a case from the third to the fourth round, with covariates (n, 4) and the bridge of each."""
    stock = draw_bridges(0, bridges, bridges, rng)
    bridge = np.repeat(np.arange(bridges), 1 + rng.poisson(MORE_MEMBERS, bridges))
    frailty = rng.normal(0.0, FRAILTY, (bridges, 1))
    theta = np.exp(stock.log_hazards(THIRD_ROUND)[:, CASES.index(CASE)] + frailty)[bridge]
    dt = (np.diff(stock.months, axis=1)[:, THIRD_ROUND] / 12.0)[bridge]
    first = np.array(FIRST_STATES[:-1])  # the worst state is not left
    start = rng.choice(first.size, bridge.size, p=first / first.sum()).astype(np.int64)
    traffic = stock.traffic[:, THIRD_ROUND : THIRD_ROUND + 2].mean(axis=1)
    x = np.column_stack([stock.ages[:, THIRD_ROUND], stock.length, stock.length * stock.width, traffic])[bridge]
    return Rows(start, draw_ends(theta, dt, start, rng), dt, np.ones(bridge.size), len(LETTERS)), x, bridge


def describe(name: str, number: int, draw: Draw) -> Truth:
    """A population by very many of its bridges."""
    values, bridge = draw(POPULATION, generator(SEED, name, "truth", number))
    found = mean_interval(values, bridge)
    residual, size = values - found.mean, np.bincount(bridge)
    variance = float(residual @ residual) / values.size
    products = float(np.sum(np.bincount(bridge, weights=residual) ** 2) - residual @ residual)
    return Truth(
        mean=found.mean,
        give_or_take=(found.high - found.low) / 2,
        correlation=products / float(size @ (size - 1)) / variance,
        skewness=float(np.mean(residual**3)) / variance**1.5,
    )


def cover(name: str, draws: Sequence[Draw], truths: Sequence[float], bridges: int, sets: int) -> Cell:
    """How often both intervals hold the truth, over sets that the models share out."""
    each = math.ceil(sets / len(draws))
    found = []
    for number, (draw, truth) in enumerate(zip(draws, truths, strict=True)):
        values, bridge = draw(bridges * each, generator(SEED, name, "sets", bridges, number))
        for low, high in pairwise(np.searchsorted(bridge, np.arange(0, bridges * each + 1, bridges))):
            some = values[low:high]
            both = mean_interval(some, bridge[low:high]), mean_interval(some, np.arange(some.size))
            found.append([figure for one in both for figure in (one.low <= truth <= one.high, one.high - one.low)])
    clustered, wide, naive, narrow = np.mean(found, axis=0).tolist()
    return Cell(name, bridges, len(found), clustered, naive, wide, narrow)


def error(share: float, sets: int) -> float:
    """The Monte Carlo standard error of a share."""
    return math.sqrt(share * (1.0 - share) / sets)


def print_cells(truths: Mapping[str, Sequence[Truth]], cells: Sequence[Cell], console: Console) -> None:
    """The populations, then the shares with their Monte Carlo errors and the widths."""
    for name, them in truths.items():
        middle = {figure: median(getattr(t, figure) for t in them) for figure in asdict(them[0])}
        console.print(
            f"{name}: mean {middle['mean']:.4f} -+ {middle['give_or_take']:.4f}, correlation within a bridge "
            f"{middle['correlation']:.2f}, skewness {middle['skewness']:.1f} (middle of {len(them)})"
        )
    table = Table(
        "population", title=f"Intervals at {CONFIDENCE:.0%} that hold the truth, %, -+ Monte Carlo error"
    )
    for column in ("bridges", "clustered", "naive", "mean width clustered", "naive"):
        table.add_column(column, justify="right")
    table.add_column("")
    for c in cells:
        shares = (f"{share:.1%} -+ {error(share, c.sets):.1%}" for share in (c.clustered, c.naive))
        verdict = ("within" if c.passes else "OUTSIDE") if c.judged else "not judged"
        table.add_row(
            c.population, str(c.bridges), *shares, f"{c.clustered_width:.4f}", f"{c.naive_width:.4f}", verdict
        )
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, store; 1 if a judged share is outside its limits."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clusters",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", type=int, default=SETS, help="another number than the default is not stored")
    options = parser.parse_args(arguments)
    if options.sets < 1:
        parser.error("at least one set is needed")
    console, clock = Console(width=max(120, Console().width), highlight=False), perf_counter()
    setting = configuration.describe(with_msm=False)
    setting["repeats"] = {"sets": options.sets, "models": MODELS, "population": POPULATION}
    truths, cells = measure(options.sets)
    print_cells(truths, cells, console)
    judged = [c for c in cells if c.judged]
    passed = sum(c.passes for c in judged)
    console.print(
        f"{passed} of {len(judged)} shares, from {JUDGED_FROM} bridges on, within {LIMITS[0]:.0%} to "
        f"{LIMITS[1]:.0%}; seed {SEED}, {perf_counter() - clock:.0f} s"
    )
    if options.sets == SETS:
        result = {
            "configuration": setting | {"source_unchanged": configuration.source_digest() == setting["source"]},
            "limits": LIMITS,
            "judged_from": JUDGED_FROM,
            "populations": {name: [asdict(t) for t in them] for name, them in truths.items()},
            "cells": [asdict(c) | {"judged": c.judged, "error": error(c.clustered, c.sets)} for c in cells],
        }
        RESULT.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
        console.print(f"Stored in benchmarks/results/{RESULT.name}.")
    return 0 if passed == len(judged) else 1


def _fit(rows: Rows, x: Array, method: str) -> Refit:
    found = refit_rows(rows, x, COVARIATES, Options(scaling=method, threads=1, clock="start"))
    if not found.certified:
        sys.exit(f"{method}: {found.certificate}")
    return found


def _log_loss(model: Refit, rows: Rows, x: Array) -> Array:
    """Floored, as scores are: without the floor a mean over all bridges may not exist."""
    return -np.maximum(model.log_probabilities(rows, x), LOG_FLOOR)


if __name__ == "__main__":
    sys.exit(main())
