"""Draws of a component's rows: every method refitted to each, scored on other rows, judged by the study's rule.

    bootstrap   bridges of the training and validation rows, drawn with replacement; the rows of the others score
    splits      a random 80 % of these bridges; the rows of the others score
    seeds       the training rows as they are, from a random start of the solver; the validation rows score

Golden rows are in none of them. Each draw has a generator of its own, made from seed, case, kind and number, so
that a draw is the same whoever makes it and whatever was made before. Costs are evaluations and iterations: the
seconds of fits that run side by side would measure each other.

Draws are kept in memory, or in a run folder, each block written whole before the next is begun:

stability/draws-SEED/   a file for each block of draws, sealed with its own SHA-256 and marked with the run
stability/*.csv         tables of what was asked for last

A block that is damaged, or of another run or seed, is recomputed. One that holds fewer draws than are wanted is
added to; one that holds more is left as it is.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import DamagedFile, InputError, ScalingError
from rekka.core.files import make_folder, remove_unfinished
from rekka.core.folders import LOG, read_sealed, write_sealed
from rekka.core.numerics import generator, quiet
from rekka.core.sheets import write_csv
from rekka.evaluation.resampling import Sample, draw_bootstrap, draw_split
from rekka.evaluation.scores import Interval, Scores
from rekka.evaluation.selection import COUNT_TOLERANCE, Guarded, RuleEvidence, Share, Standing
from rekka.model.fit import Options, Refit, refit_rows
from rekka.model.solvers import random_start
from rekka.scaling.registry import fit_scaling
from rekka.study.case_rows import IN_FOLDS, VALIDATION, CaseRows
from rekka.study.choice import apply_rule, needs_certificate
from rekka.study.plan import StudyPlan, choose_options, list_options, model_of
from rekka.study.run_folder import add_line
from rekka.study.scores import BridgeScores, score_sample
from rekka.study.trial import Key, Status, choose_columns, find_status, refitting

BOOTSTRAP, SPLITS, SEEDS = "bootstrap", "splits", "seeds"
KINDS = (BOOTSTRAP, SPLITS, SEEDS)
SPLIT_SHARE = 0.8  # of the bridges are fitted: as in the five folds that methods are judged on
MOST_SEED = 2**32  # below it any generator takes a seed
SCHEMA: dict[str, Any] = {
    "preset": pl.String, "case": pl.String, "kind": pl.String, "draw": pl.Int64, "method": pl.String,
    "certified": pl.Boolean, "converged": pl.Boolean, "status": pl.String, "log_likelihood": pl.Float64,
    "iterations": pl.Int64, "evaluations": pl.Int64, "held_out": pl.Int64, "scored": pl.Int64,
    "accuracy": pl.Float64, "log_loss": pl.Float64, "at_floor": pl.Int64, "chosen": pl.Boolean, "kept": pl.Boolean,
}  # fmt: skip

Array = NDArray[np.float64]
Fitting = Callable[["Draw"], Refit]


class Unit(NamedTuple):
    """Some draws, by number, of one kind of a case under a preset: what one process does at a time."""

    preset: str
    case: str
    kind: str
    draws: tuple[int, ...]


class Draw(NamedTuple):
    """Rows to fit, rows to score, and the seed of the solver's start where that is what is drawn."""

    number: int
    inside: Sample
    outside: Sample
    seed: int | None = None


class Attempt(NamedTuple):
    """Result of a refit: its status, and its scores by bridge where rows could be scored."""

    status: Status
    refit: Refit | None = None
    scored: BridgeScores | None = None

    @property
    def scores(self) -> Scores:
        """Scores of all rows together."""
        return Scores.empty() if self.scored is None else self.scored.scores

    @property
    def certified(self) -> bool:
        """Whether the fit reached a maximum, scored or not; other starts are not tried on a draw."""
        return self.refit is not None and self.refit.at_maximum

    @property
    def evaluations(self) -> int | None:
        """The cost."""
        return None if self.refit is None else self.refit.outcome.evaluations


def refit_draws(rows: CaseRows, plan: StudyPlan, unit: Unit, seed: int) -> pl.DataFrame:
    """A row for each draw and method: the fit, its scores, and whether the study's rule keeps and chooses it."""
    methods, exact = plan.study.methods, unit.preset == "exact"
    models = {method: model_of(method) if exact else method for method in methods}  # one model is fitted once
    first = {model: method for method, model in reversed(models.items())}
    keys = {model: Key(case=unit.case, preset=unit.preset, method=method) for model, method in first.items()}
    fits = {model: _ready(rows, key, plan) for model, key in keys.items()}
    lines = []
    with quiet():
        for draw in _draw(rows, unit, seed):
            attempts = {model: attempt(fit, draw) for model, fit in fits.items()}
            by_method = {method: attempts[models[method]] for method in methods}
            found = apply_to_draw(plan, unit.preset, by_method)
            lines += [
                _lay_out(
                    unit, draw, method, by_method[method], found.rule_verdicts[method].kept, method == found.chosen
                )
                for method in methods
            ]
    return pl.DataFrame(lines, schema=SCHEMA)


def _draw(rows: CaseRows, unit: Unit, seed: int) -> Iterator[Draw]:
    """The draws of a unit; samples are built once."""
    generators = ((number, generator(seed, unit.case, unit.kind, number)) for number in unit.draws)
    if unit.kind == SEEDS:
        validation, _ = rows.sample(VALIDATION)
        for number, rng in generators:
            yield Draw(number, rows.training, validation, int(rng.integers(MOST_SEED)))
        return
    sample, _ = rows.sample(IN_FOLDS)
    for number, rng in generators:
        if not len(sample):  # no bridge to draw
            yield Draw(number, sample, sample)
            continue
        if unit.kind == BOOTSTRAP:
            inside, outside = draw_bootstrap(sample.bridge, rng)
        else:
            inside, outside = draw_split(sample.bridge, SPLIT_SHARE, rng)
        yield Draw(number, sample.take(inside), sample.take(outside))


def _ready(rows: CaseRows, key: Key, plan: StudyPlan) -> Fitting:
    """A function that fits a draw as the trial of this key fits its training rows."""
    seed, rows = plan.study.seed, choose_columns(rows, key)
    refit = refitting(rows, key, seed)

    @cache
    def options() -> Options:  # a penalty or a prior is chosen once: the rows stay, only the start is drawn
        given = list_options(key.preset, rows.clock) | {"threads": 1, "coding": rows.coding}
        return choose_options(key.method, rows.training, rows.others, seed, given)

    @cache
    def units() -> tuple[Array, Array]:
        sample = rows.training.at(rows.clock)
        z = fit_scaling(options().scaling, sample.x, sample.covariates, sample.plain).transform(sample.x)
        return z.mean(axis=0), z.std(axis=0)

    def fit(draw: Draw) -> Refit:
        sample = draw.inside.only(rows.covariates)
        if draw.seed is None:
            return refit(sample)
        chosen = replace(options(), seed=draw.seed)
        start = draw_start(sample.rows.n_states, *units(), draw.seed) if chosen.solver == "newton" else None
        return refit_rows(sample.rows, sample.x, sample.covariates, chosen, start)

    return fit


def draw_start(n_states: int, mean: Array, deviation: Array, seed: int) -> Array:
    """A beta (K-1, p+1) for Newton to start from: the paper's N(0, 0.1^2) for z-scores of the scaled covariates.

    So drawn it is the same point for all methods that are one model. In the units of Box-Cox itself, whose values
    reach 1e8, most such starts have no finite likelihood.
    """
    beta = random_start((n_states - 1) * (mean.size + 1), seed).reshape(n_states - 1, mean.size + 1)
    slopes = beta[:, 1:] * np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return np.column_stack([beta[:, 0] - slopes @ mean, slopes])


def attempt(fit: Fitting, draw: Draw) -> Attempt:
    """Fit and score; what cannot be is a value."""
    if not len(draw.inside):
        return Attempt(Status.NOT_FITTED)
    found: Refit | None = None
    try:
        found = fit(draw)
        status = find_status(found.certificate, found.converged)
        if not found.converged or not len(draw.outside):
            return Attempt(status, found)
        scored = score_sample(found, draw.outside)
    except ScalingError:
        return Attempt(Status.TRANSFORM_FAILED, found)
    except InputError:
        return Attempt(Status.NOT_FITTED, found)
    except (ArithmeticError, ValueError):  # linear algebra on numbers that left their range
        return Attempt(Status.SOLVER_FAILED, found)
    return Attempt(status, found, BridgeScores.of(scored, draw.outside.bridge, draw.outside.rows.n_states))


def apply_to_draw(plan: StudyPlan, preset: str, attempts: Mapping[str, Attempt]) -> Guarded:
    """Apply the study's rule to the refits of a draw, on its held-out rows.

    The guarded rule is not asked for stability, which is what the draws are to show; the cost is evaluations.
    """
    rule, guard = plan.study.rule, plan.guard
    strict = needs_certificate(rule, guard, preset)
    able = {n: one.scored for n, one in attempts.items() if one.scored and (one.certified or not strict)}
    standings = {
        name: Standing(True, one.scores.accuracy, one.scores.log_loss, float(one.evaluations or 0))
        if name in able
        else Standing(False)
        for name, one in attempts.items()
    }

    def log_loss(one: str, other: str, confidence: float) -> Interval:
        return able[one].log_loss_above(able[other], confidence)

    def accuracy(one: str, other: str, confidence: float) -> Interval:
        return able[one].accuracy_above(able[other], confidence)

    model = model_of if preset == "exact" else str
    evidence = RuleEvidence(log_loss, accuracy, lambda _: Share(0, 0), model)
    return apply_rule(rule, guard, standings, evidence, COUNT_TOLERANCE)


def _lay_out(unit: Unit, draw: Draw, method: str, one: Attempt, kept: bool, chosen: bool) -> dict[str, Any]:
    """A refit as a row; figures that are no number are missing."""
    line: dict[str, Any] = {"preset": unit.preset, "case": unit.case, "kind": unit.kind, "draw": draw.number}
    line |= {"method": method, "certified": one.certified, "status": one.status.value}
    line |= {"converged": False, "held_out": len(draw.outside), "scored": 0, "chosen": chosen, "kept": kept}
    if one.refit is not None:
        outcome = one.refit.outcome
        line |= {"converged": one.refit.converged, "log_likelihood": _finite(one.refit.log_likelihood)}
        line |= {"iterations": outcome.iterations, "evaluations": outcome.evaluations}
    if one.scored is not None:
        scores = one.scores
        line |= {"scored": scores.rows, "accuracy": scores.accuracy, "log_loss": scores.log_loss}
        line |= {"at_floor": scores.at_floor}
    return line


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


STABILITY = "stability"
_DRAWS = "rekka-draws"


class DrawBlock(NamedTuple):
    """A place for draws of one kind of a case under a preset, from number ``first`` on."""

    preset: str
    case: str
    kind: str
    first: int


class DrawStore:
    """A place for draws that is forgotten with the call."""

    def take(self, block: DrawBlock) -> pl.DataFrame:
        """The draws of a block that are there."""
        return pl.DataFrame(schema=SCHEMA)

    def keep(self, block: DrawBlock, draws: pl.DataFrame) -> None:
        """Keep all draws of a block, old and new."""

    def note(self, line: str) -> None:
        """Write a line of the log, where there is one."""


class DrawFiles(DrawStore):
    """Draws in a run folder, held by the caller. ``run`` marks the run; cases are numbered as they come."""

    def __init__(self, folder: Path, run: str, seed: int, cases: tuple[str, ...]) -> None:
        self.path, self._log = folder / STABILITY, folder / LOG
        self.mark: list[str | int] = [run, seed]
        self._draws = self.path / f"draws-{seed}"
        self._numbers = {case: number for number, case in enumerate(cases, start=1)}
        make_folder(self._draws)
        remove_unfinished([self.path, self._draws])

    def take(self, block: DrawBlock) -> pl.DataFrame:
        """The draws of a block that are there; none where its file is not whole or not of this run."""
        file = self._file(block)
        if not file.exists():
            return super().take(block)
        try:
            found, draws = _read_block(file, self.mark)
            if found != block:
                raise DamagedFile(f"{file.name} is of another block.", file=str(file))
        except DamagedFile:
            self.note(f"recomputed: {file.name} is not whole, or not of this run")
            return super().take(block)
        return draws

    def keep(self, block: DrawBlock, draws: pl.DataFrame) -> None:
        """Write a block whole."""
        body = {"run": self.mark, "block": list(block), "draws": draws.to_dict(as_series=False)}
        write_sealed(self._file(block), _DRAWS, body)

    def write_tables(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Tables for people, as a study's are."""
        for name, table in tables.items():
            write_csv(self.path / f"{name}.csv", table)

    def note(self, line: str) -> None:
        """Add a line to the run's log."""
        add_line(self._log, f"stability: {line}")

    def _file(self, block: DrawBlock) -> Path:
        """The case by its number: a name may hold what no file's name can."""
        number = self._numbers[block.case]
        return self._draws / f"{number:03d}-{block.preset}-{block.kind}-{block.first:05d}.json"


def find_seeds(folder: Path) -> list[int]:
    """The seeds of the draws in a run folder."""
    names = (path.name.removeprefix("draws-") for path in (folder / STABILITY).glob("draws-*"))
    return sorted(int(name) for name in names if name.isdecimal())


def read_draws(folder: Path, run: str, seed: int) -> list[tuple[DrawBlock, pl.DataFrame]]:
    """The blocks of draws that are whole and of this run, as they are; nothing is written."""
    found = []
    for file in sorted((folder / STABILITY / f"draws-{seed}").glob("*.json")):
        with contextlib.suppress(DamagedFile):  # made again when stability is asked for again
            found.append(_read_block(file, [run, seed]))
    return found


def _read_block(file: Path, mark: list[str | int]) -> tuple[DrawBlock, pl.DataFrame]:
    body = read_sealed(file, _DRAWS)
    try:
        if [body["run"], list(body["draws"])] != [mark, list(SCHEMA)]:
            raise DamagedFile(f"{file.name} is of another run.", file=str(file))
        return DrawBlock(*body["block"]), pl.DataFrame(body["draws"], schema=SCHEMA)
    except (KeyError, TypeError):
        raise DamagedFile(f"{file.name} is not as it was written.", file=str(file)) from None
