"""Seconds of fits and evaluations of models of histories, beside R's msm where it has the model.

Times are processor seconds of one thread: other work on the machine slows them less than elapsed ones.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

import numpy as np
import polars as pl

from benchmarks import scale_start
from benchmarks.problems import BANDS, CONDITIONS_FILE, ONTARIO_FOLDER, SEED
from rekka import ExponentialHazardMarkovModel, pair_visits, read_panel
from rekka.core.errors import InputError
from rekka.fleet.histories import HistoryOptions
from rekka.model import history_fit
from rekka.model.clock import RUNNING, Clock
from rekka.model.elements import read_elements
from rekka.model.family import EXPONENTIAL
from rekka.model.histories import Chain, HistoryLikelihood, chain_rows

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference"
SCRIPT = Path(__file__).with_name("histories_msm.R")
METHODS = ("bfgs", "nlm", "bfgs, fnscale")
MSM_LIMIT = 600.0  # seconds of one method, its repeats included
CLOSE_ENOUGH = 2e-3  # units of -2 log L above the lowest of msm's methods: those that count
REPEATS = 20
MISCLASSIFIED = "misclassified.csv"
CUT = "ontario_cut.csv"
PATTERN = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]]  # errors of inspection, true state by rating
ERRORS_AT = ((0, 1), (1, 0), (1, 2), (2, 1))
EXAMPLES: Mapping[str, tuple[str, ...]] = {"errors": (), "errors, cov1 and cov2": ("cov1", "cov2")}

VISITS, STATES, NODES = (1_000, 10_000, 100_000), (3, 5, 9), (1, 32, 64)
ALL_ELEMENTS = "errors, improvements, running clock"
CELLS: Mapping[str, Mapping[str, str]] = {
    "errors": {"errors": "adjacent"},
    ALL_ELEMENTS: {"errors": "adjacent", "improvements": "common"},
}
VISITS_A_BRIDGE, GAP = 10, 2.0  # of the bridges that are drawn for evaluations
ENOUGH_SECONDS, MOST_EVALUATIONS = 1.0, 10
Row = dict[str, Any]
Result = TypeVar("Result")


class Seconds(NamedTuple):
    """Seconds of the processor and elapsed ones."""

    processor: float
    elapsed: float


def clocked(call: Callable[[], Result]) -> tuple[Result, Seconds]:
    """A call's result and its seconds."""
    used, clock = process_time(), perf_counter()
    result = call()
    return result, Seconds(process_time() - used, perf_counter() - clock)


@dataclass(frozen=True)
class Table:
    """Rows to fit: transitions with the columns history, bridge and date_1."""

    name: str
    rows: pl.DataFrame
    visits: int
    n_states: int
    covariates: tuple[str, ...] = ()


def pair(visits: pl.DataFrame) -> pl.DataFrame:
    """Transitions of visits that are sorted by id and time; a single visit is a row without a second state."""
    later = {"state_2": pl.col("state"), "interval_years": pl.col("time")}
    rows = visits.with_columns(
        *(column.shift(-1).over("id").alias(name) for name, column in later.items()), seen=pl.len().over("id")
    )
    return (
        rows.filter(pl.col("state_2").is_not_null() | (pl.col("seen") == 1))
        .with_columns(pl.col("interval_years") - pl.col("time"), history="id", bridge="id", date_1="time")
        .rename({"state": "state_1"})
    )


def read_examples(folder: Path = REFERENCE) -> Table | None:
    """The public example of misclassified states; None if it is absent."""
    file = folder / MISCLASSIFIED
    if not file.exists():
        return None
    visits = pl.read_csv(file)
    return Table(MISCLASSIFIED, pair(visits), visits.height, 4)


def read_cut(folder: Path = REFERENCE) -> Table | None:
    """Ontario's histories without covariates, K = 5; None if they are absent."""
    file = folder / CUT
    if not file.exists():
        return None
    visits = pl.read_csv(file).rename({"subj": "id", "year": "time"}).cast({"time": pl.Float64})
    return Table("Ontario, no covariates", pair(visits), visits.height, 5)


def read_ontario(folder: Path = ONTARIO_FOLDER) -> Table | None:
    """Ontario's bridges with age and length, improvements by one rating kept; None if they are absent."""
    if not (folder / CONDITIONS_FILE).exists():
        return None
    panel = read_panel(
        folder / CONDITIONS_FILE,
        columns={"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
        state={"bands": list(BANDS), "missing": [0]},
    )
    found = pair_visits(panel, upward="keep")
    rows = found.frame.with_columns(
        history=pl.concat_str("bridge_id", "history", separator=" "), bridge="bridge_id"
    )
    visits = rows.height + rows["history"].n_unique()
    return Table("Ontario, age and length", rows, visits, len(BANDS) + 1, tuple(found.covariates))


def make_model(table: Table, **options: Any) -> ExponentialHazardMarkovModel:
    """The model of a table on one thread."""
    covariates = list(options.pop("covariates", table.covariates))
    return ExponentialHazardMarkovModel(covariates=covariates, n_states=table.n_states, threads=1, **options)


def fit_table(model: ExponentialHazardMarkovModel, table: Table) -> Row:
    """Fit once; seconds of the optimizer, starts included, and of the whole call, Hessian and certificate too."""
    optimizer: list[Seconds] = []

    def timed(call: Callable[[], Any]) -> tuple[Any, float]:
        result, seconds = clocked(call)
        optimizer.append(seconds)
        return result, seconds.elapsed

    with patch.object(history_fit, "timed", timed):
        rows = table.rows
        _, whole = clocked(
            lambda: model.fit(rows, rows["state_2"], histories=rows["history"], groups=rows["bridge"])
        )
    certificate, nodes = model.certificate_, model.records_.nodes
    return {
        "minus2": -2.0 * float(model.log_likelihood_),
        "seconds": optimizer[0].processor,
        "call_seconds": whole.processor,
        "elapsed": optimizer[0].elapsed,
        "call_elapsed": whole.elapsed,
        "evaluations": int(model.outcome_.evaluations),
        "certified": bool(certificate.certified),
        "reasons": list(certificate.reasons),
        "remarks": list(certificate.remarks),
        "nodes": int(nodes),
    }


def measure_examples(table: Table, with_msm: bool, repeats: int = REPEATS) -> Iterator[Row]:
    """Fits of the public example by rekka and by each method of msm."""
    for name, covariates in EXAMPLES.items():
        model = make_model(table, covariates=covariates, scaling=None, errors=PATTERN, first=[1, 0, 0, 0])
        fit_table(model, table)  # compiled before
        fits = [fit_table(model, table) for _ in range(repeats)]
        own = fits[0] | {key: median(one[key] for one in fits) for key in fits[0] if key.endswith(TIMES)}
        own |= {"fastest": min(one["seconds"] for one in fits), "repeats": repeats}
        own |= {"estimates": describe_estimates(model, covariates)}
        rivals = [fit_msm(table, method, covariates) for method in METHODS] if with_msm else []
        yield {"model": name, "visits": table.visits, "rekka": own, "msm": rivals}


TIMES = ("seconds", "elapsed")


def describe_estimates(model: ExponentialHazardMarkovModel, covariates: Sequence[str]) -> dict[str, float]:
    """Hazards where covariates are 0, probabilities of errors and hazard ratios, named as the R script does."""
    found = {f"hazard_{k + 1}": math.exp(one) for k, one in enumerate(model.intercept_)}
    found |= {f"error_{s + 1}{o + 1}": float(model.errors_[s, o]) for s, o in ERRORS_AT}
    for place, name in enumerate(covariates):
        found |= {f"ratio_{name}_{k + 1}": math.exp(one) for k, one in enumerate(model.coef_[:, place])}
    return found


def fit_msm(table: Table, method: str, covariates: Sequence[str], folder: Path = REFERENCE) -> Row:
    """Fit by one method of msm, in a process of its own on one thread; the fastest of its repeats."""
    command = ["Rscript", str(SCRIPT), str(folder / table.name), method, *covariates]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=MSM_LIMIT, env=environment
        )
    except subprocess.TimeoutExpired:
        return {"method": method, "converged": False, "note": f"stopped at the limit of {MSM_LIMIT:.0f} s"}
    if done.returncode:
        return {"method": method, "converged": False, "note": "stopped with an error"}
    return {"method": method} | read_msm(done.stdout)


def read_msm(output: str) -> Row:
    """Figures of the R script; those after ``repeats`` are estimates."""
    figures = {key: float(value) for key, value in (line.split() for line in output.strip().splitlines()[-20:])}
    own = ("minus2", "seconds", "call_seconds", "elapsed", "call_elapsed", "repeats", "converged")
    found: Row = {key: figures.pop(key) for key in own}
    return found | {
        "converged": found["converged"] == 1.0,
        "repeats": int(found["repeats"]),
        "estimates": figures,
    }


def choose_msm(rivals: Sequence[Row]) -> Row | None:
    """The fastest of msm's methods that converged near the lowest -2 log L any of them found."""
    found = [one for one in rivals if "minus2" in one]
    lowest = min((one["minus2"] for one in found), default=math.inf)
    good = [one for one in found if one["converged"] and one["minus2"] <= lowest + CLOSE_ENOUGH]
    return min(good, key=lambda one: float(one["seconds"]), default=None)


def measure_ontario(table: Table) -> Iterator[Row]:
    """Fits of one table with errors, with improvements and a trend too, and both with a frailty.

    A model that refuses the rows has its reason instead of figures.
    """
    more = {"improvements": "common", "trend": "common", "clock": RUNNING}
    for frailty in (None, "gamma"):
        for name, options in (("errors", {}), ("errors, improvements, trend, running clock", more)):
            model = make_model(table, errors="adjacent", frailty=frailty, **options)
            found = {"table": table.name, "visits": table.visits, "elements": name, "frailty": frailty is not None}
            explained = table
            if "bridge_id" in table.rows.columns:  # as the commands do: what errors cannot explain is a repair
                elements = HistoryOptions(errors="adjacent", improvements=options.get("improvements"))
                explained = replace(table, rows=elements.cut(table.rows).rows)
            try:
                yield found | fit_table(model, explained)
            except InputError as refused:
                yield found | {"refused": str(refused).split(". ")[0]}


def draw_chain(visits: int, n_states: int, seed: int = SEED) -> Chain:
    """Bridges of ten visits two years apart: ages, and ratings that err by one in a tenth of visits."""
    rng = np.random.default_rng(seed)
    bridges = visits // VISITS_A_BRIDGE
    moves = rng.poisson(0.1 * GAP, (bridges, VISITS_A_BRIDGE))
    true = np.minimum(np.cumsum(moves, axis=1), n_states - 1)
    wrong = rng.choice([-1, 0, 1], (bridges, VISITS_A_BRIDGE), p=[0.05, 0.9, 0.05])
    rated = np.clip(true + wrong, 0, n_states - 1)
    age = rng.uniform(0.0, 50.0, bridges)[:, None] + GAP * np.arange(VISITS_A_BRIDGE - 1)
    number = np.repeat(np.arange(bridges), VISITS_A_BRIDGE - 1)
    start, end = rated[:, :-1].ravel(), rated[:, 1:].ravel()
    return Chain(start, end, np.full(start.size, GAP), age.reshape(-1, 1), number, number)


def measure_evaluation(visits: int, n_states: int, nodes: int, name: str) -> Row:
    """Seconds of a value with its gradient: the fastest of some evaluations."""
    frailty = "gamma" if nodes > 1 else None
    elements = read_elements(n_states, frailty=frailty, aged=True, **CELLS[name])
    clock = Clock(RUNNING if name == ALL_ELEMENTS else "middle", ("age",), (0,))
    seen = chain_rows(draw_chain(visits, n_states), elements, clock)
    W = np.column_stack([np.ones(seen.h.size), (seen.x - 30.0) / 15.0])
    likelihood = HistoryLikelihood.build(seen, elements, W, EXPONENTIAL, nodes, 1)
    extra = np.zeros(elements.size)
    for part, value in (("errors", -3.0), ("improvements", -4.0), ("frailty", 0.5)):
        extra[elements.parts[part]] = value
    parameters = np.concatenate([np.tile([-2.3, 0.1], n_states - 1), extra])
    found, times = likelihood.evaluate(parameters), list[float]()
    assert np.isfinite(found.value)
    while len(times) < MOST_EVALUATIONS and sum(times) < ENOUGH_SECONDS:
        times.append(clocked(lambda: likelihood.evaluate(parameters))[1].processor)
    return {
        "visits": int(seen.observed.size),
        "steps": int(seen.h.size),
        "n_states": n_states,
        "nodes": int(found.posterior.shape[1]),
        "asked_nodes": nodes,
        "elements": name,
        "seconds": min(times),
    }


def measure_evaluations(
    visits: Sequence[int] = VISITS, states: Sequence[int] = STATES, nodes: Sequence[int] = NODES
) -> Iterator[Row]:
    """Seconds of an evaluation by visits, states, nodes and elements."""
    for name in CELLS:
        for K in states:
            for count in nodes:
                for size in visits:
                    yield measure_evaluation(size, K, count, name)


HISTORY_FIT = scale_start.FIT.replace("['bridge_length']", "['bridge_length'], errors='adjacent'")


def measure_compilation(repeats: int = 3) -> Row:
    """Seconds of a process that fits 300 rows, by model: first in an empty cache, then again."""
    found: Row = {}
    for name, code in (("pairs", scale_start.FIT), ("histories", HISTORY_FIT)):
        with tempfile.TemporaryDirectory() as cache:
            first, *later = (time_child(code, cache) for _ in range(repeats + 1))
        found[name] = {"first": first._asdict(), "later": min(later)._asdict()}
    return found


def time_child(code: str, cache: str) -> Seconds:
    """Seconds of a process of Python that keeps compiled kernels in ``cache``."""
    before = os.times()
    elapsed = scale_start.time_process(["-c", code], 1, cache)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Seconds(used, elapsed)
