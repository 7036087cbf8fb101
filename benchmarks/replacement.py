"""How often does another method replace the default? ``python -m benchmarks.replacement [--sets 300]``.

Each set has bridges of three rows, one covariate with a heavy tail and a frailty of its own for each bridge. The
default, z-score, is linear in the covariate; its rivals are log+zscore alone, or with boxcox+zscore and
yeojohnson+zscore. The truth is one of four:

- no effect: the covariate says nothing, and all methods are the same model but for noise;
- equal: halfway between linear and logarithmic, so that both have the same expected log loss;
- linear: the default is right, the rivals are not;
- log: the rivals are right.

Methods are judged on 450 validation rows after a fit to 600 others, or on 450 rows in five folds by bridge. The
guarded rule is applied as a study does it, but for the resamples: at these sizes all fits are stable. Beside it
stands the guarded rule of versions before 0.10.0: accuracy no lower at all, log loss no higher or shown to be
higher by less than 0.02, then whoever is shown to be better, then accuracy and cost.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import configuration
from benchmarks.aims import Aim, print_aims
from benchmarks.problems import SEED
from rekka.evaluation.resampling import Sample
from rekka.evaluation.scores import Interval, find_wilson
from rekka.evaluation.selection import Guard, Point, RuleEvidence, Share, Standing, choose_guarded, pareto_set
from rekka.model.fit import Options, Refit, refit_rows
from rekka.model.likelihood import Rows
from rekka.simulation.rows import draw_ends
from rekka.study.case_rows import score_folds
from rekka.study.scores import BridgeScores, score_sample

Array = NDArray[np.float64]

RESULT = Path(__file__).with_name("results") / "replacement.json"
SETS = 300
DEFAULT = "zscore"
RIVALS = ("log+zscore", "boxcox+zscore", "yeojohnson+zscore")
NO_EFFECT, EQUAL, LINEAR, LOG = "no effect", "equal", "linear", "log"
TRUTHS = (NO_EFFECT, EQUAL, LINEAR, LOG)
VALIDATION, FOLDS = "validation", "folds"
NOW, BEFORE = "by evidence", "before 0.10.0"
TRAINING, JUDGED = 200, 150  # bridges
ROWS = 3  # of a bridge
RATES = np.log([0.15, 0.10, 0.07])  # log hazards a year at the mean of the covariate
EFFECT, TAIL, FRAILTY = 0.8, 0.8, 0.3  # per standard deviation; standard deviations of logarithms
MANY = 40_000  # rows on which linear and logarithmic are made equally good
OLD_MARGIN = 0.02  # of log loss, of the rule before
MOST_EQUAL = 0.05  # aim: an equal rival replaces the default in no more of the sets


@dataclass(frozen=True)
class Line:
    """Share of the sets in which the default is replaced, with its 95 % interval (Wilson)."""

    truth: str
    judged_on: str
    rivals: int
    rule: str
    sets: int
    replaced: float
    low: float
    high: float


def draw(bridges: int, weight: float | None, rng: np.random.Generator, frailty: float = FRAILTY) -> Sample:
    """Rows of so many bridges; the log hazard is linear in ``weight`` log x + (1 - weight) x, or has no slope."""
    log_x = np.repeat(rng.normal(0.0, TAIL, bridges), ROWS)
    x = np.exp(log_x)
    spread = np.sqrt(np.exp(TAIL**2) * (np.exp(TAIL**2) - 1.0))
    slope = np.zeros_like(x)
    if weight is not None:
        slope = weight * log_x / TAIL + (1.0 - weight) * (x - np.exp(TAIL**2 / 2)) / spread
    own = np.repeat(rng.normal(0.0, frailty, bridges), ROWS)
    theta = np.exp(RATES + (EFFECT * slope + own)[:, None])
    start = rng.integers(0, len(RATES), x.size)
    dt = rng.uniform(3.0, 7.0, x.size)
    end = draw_ends(theta, dt, start, rng)
    rows = Rows(start, end, dt, np.ones(x.size), len(RATES) + 1)
    names = np.repeat([f"B{number}" for number in range(bridges)], ROWS)
    return Sample(rows, x[:, None], names, ("traffic",))


def fit(method: str, sample: Sample) -> Refit:
    """One fit."""
    return refit_rows(sample.rows, sample.x, sample.covariates, Options(scaling=method, threads=1, clock="start"))


@cache
def find_equal() -> float:
    """The weight of log x at which linear and logarithmic have the same log loss, on very many rows."""
    low, high = 0.0, 1.0
    for _ in range(7):
        weight = (low + high) / 2
        train, other = (draw(MANY // ROWS, weight, np.random.default_rng((SEED, part))) for part in (0, 1))
        linear, log = (score_sample(fit(m, train), other).loss.mean() for m in (DEFAULT, RIVALS[0]))
        low, high = (weight, high) if log > linear else (low, weight)
    return (low + high) / 2


def judge(truth: str, judged_on: str, rng: np.random.Generator) -> dict[str, tuple[BridgeScores, int]]:
    """Scores by bridge and evaluations of each method in one set."""
    weight = {NO_EFFECT: None, LINEAR: 0.0, LOG: 1.0}.get(truth, find_equal() if truth == EQUAL else None)
    other = draw(JUDGED, weight, rng)
    train = other if judged_on == FOLDS else draw(TRAINING, weight, rng)
    found = {}
    for method in (DEFAULT, *RIVALS):
        fitted = fit(method, train)
        if judged_on == FOLDS:
            scores = score_folds(other, lambda sample, method=method: fit(method, sample), SEED)
        else:
            scored = score_sample(fitted, other)
            scores = BridgeScores.of(scored, other.bridge, other.rows.n_states)
        found[method] = scores, fitted.outcome.evaluations
    return found


def apply_now(judged: Mapping[str, tuple[BridgeScores, int]]) -> str | None:
    """The method that the guarded rule chooses."""

    def log_loss(one: str, other: str, confidence: float) -> Interval:
        return judged[one][0].log_loss_above(judged[other][0], confidence)

    def accuracy(one: str, other: str, confidence: float) -> Interval:
        return judged[one][0].accuracy_above(judged[other][0], confidence)

    standings = {
        name: Standing(True, one.scores.accuracy, one.scores.log_loss, float(cost))
        for name, (one, cost) in judged.items()
    }
    evidence = RuleEvidence(log_loss, accuracy, lambda _: Share(0, 0))
    return choose_guarded(standings, Guard(), evidence).chosen


def apply_before(judged: Mapping[str, tuple[BridgeScores, int]]) -> str:
    """The method that the guarded rule chose before 0.10.0."""
    scores = {name: one.scores for name, (one, _) in judged.items()}
    own, _ = judged[DEFAULT]
    found = {name: one.log_loss_above(own, Guard().confidence) for name, (one, _) in judged.items()}
    there = [
        name
        for name in judged
        if scores[name].accuracy >= scores[DEFAULT].accuracy
        and (found[name].mean <= 0 or found[name].high <= OLD_MARGIN)
    ]
    better = [name for name in there if name != DEFAULT and found[name].high < 0]
    points = {name: Point(scores[name].accuracy, float(judged[name][1])) for name in better or there}
    kept = pareto_set(points, 0.0)
    return DEFAULT if DEFAULT in kept else min(kept, key=lambda name: scores[name].log_loss)


def measure(sets: int, tell: Callable[[str], None] = lambda _: None) -> list[Line]:
    """A line for each truth, rows, number of rivals and rule."""
    clock, lines = perf_counter(), []
    for place, truth in enumerate(TRUTHS):
        for judged_on in (VALIDATION, FOLDS):
            replaced: dict[tuple[int, str], int] = {}
            for number in range(sets):
                judged = judge(truth, judged_on, np.random.default_rng((SEED, place, number)))
                for rivals in (1, len(RIVALS)):
                    some = {name: judged[name] for name in (DEFAULT, *RIVALS[:rivals])}
                    for rule, choose in ((NOW, apply_now), (BEFORE, apply_before)):
                        key = rivals, rule
                        replaced[key] = replaced.get(key, 0) + (choose(some) != DEFAULT)
            for (rivals, rule), count in replaced.items():
                ends = find_wilson(count / sets, sets)
                lines.append(Line(truth, judged_on, rivals, rule, sets, count / sets, *ends))
            tell(f"{truth}, {judged_on}: {perf_counter() - clock:.0f} s")
    return lines


def judge_aims(lines: Sequence[Line]) -> list[Aim]:
    """An equal rival replaces the default in at most 5 % of the sets, as far as they can tell."""
    return [
        Aim(
            f"{one.truth}, {one.judged_on}, rivals {one.rivals}: the default replaced in at most {MOST_EQUAL:.0%}",
            f"{one.replaced:.1%} ({one.low:.1%} to {one.high:.1%})",
            one.replaced <= MOST_EQUAL,
        )
        for one in lines
        if one.rule == NOW and one.truth in (NO_EFFECT, EQUAL)
    ]


def print_lines(lines: Sequence[Line], console: Console) -> None:
    """One row for each truth and rows; the two rules beside each other."""
    table = Table("truth", "judged on", "rivals", title="Share of the sets in which the default is replaced")
    for rule in (NOW, BEFORE):
        table.add_column(rule, justify="right")
    for key in dict.fromkeys((one.truth, one.judged_on, one.rivals) for one in lines):
        by = {one.rule: one for one in lines if (one.truth, one.judged_on, one.rivals) == key}
        cells = (f"{by[rule].replaced:.1%} ({by[rule].low:.1%}-{by[rule].high:.1%})" for rule in (NOW, BEFORE))
        table.add_row(*map(str, key), *cells)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, judge, store; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replacement",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", type=int, default=SETS, help="simulated sets of each truth")
    options = parser.parse_args(arguments)
    console = Console(width=max(120, Console().width), highlight=False)
    setting = configuration.describe(with_msm=False) | {"sets": options.sets, "weight_of_log": find_equal()}
    del setting["repeats"]  # nothing is timed
    lines = measure(options.sets, console.print)
    aims = judge_aims(lines)
    print_lines(lines, console)
    print_aims(aims, console)
    result = {
        "configuration": setting | {"source_unchanged": configuration.source_digest() == setting["source"]},
        "aims": [asdict(aim) for aim in aims],
        "lines": [asdict(line) for line in lines],
    }
    if options.sets == SETS:
        RESULT.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
        console.print("Stored in benchmarks/results/replacement.json.")
    return 0 if all(aim.met for aim in aims) else 1


if __name__ == "__main__":
    sys.exit(main())
