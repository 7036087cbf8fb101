"""Do small cases get a usable model? ``python -m benchmarks.small_samples [--sets 100] [--all-cases 25]``.

Each set is a simulated inventory of its own seed, read and split as a study does it. The two smallest cases (86
and 27 training rows) are fitted six ways and scored on their golden rows, which nothing else has seen:

- separate: maximum likelihood, Newton; where there is no finite maximum, the point at which it stopped;
- ridge: chosen by cross-validation on the training rows alone;
- ridge, least: the same, but the value of the least log loss in place of the strongest that is as good;
- pooled: with the prior that the training rows of all ten cases give;
- without covariates; and persistence, which says that nothing changes.

The first sets also give one line for each of the ten cases. The true hazards are linear in the logarithms of
length, area and traffic: "raw" are the covariates as they come, "log" the logarithms of all but age. Log losses
are floored at 1e-12 a row, as the paper's are, because a separate fit without a maximum can give probability zero
to what happened; the exact ones stand beside them as medians. Intervals are over the sets, which are independent.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from benchmarks import configuration
from benchmarks.aims import Aim, print_aims
from benchmarks.problems import SEED
from rekka.evaluation.pooling import pool_cases
from rekka.evaluation.resampling import Sample
from rekka.evaluation.ridge import choose_ridge
from rekka.evaluation.scores import Scores, mean_interval, score, score_persistence_rows, split_supported
from rekka.model.fit import Options, Refit, refit_rows
from rekka.study.plan import DataPlan, PartitionPlan, TrialPlan
from rekka.study.rows import read_source, split_rows

RESULT = Path(__file__).with_name("results") / "small_samples.json"
SETS, ALL_CASES = 100, 25
SMALLEST = ("Longitudinal girder", "Slope protection")
SEPARATE, RIDGE, LEAST, POOLED = "separate", "ridge", "ridge, least", "pooled"
BARE, PERSISTENCE = "no covariates", "persistence"
FORMS = ("raw", "log")


@dataclass(frozen=True)
class Score:
    """One method on the golden rows of one case of one set; moves are states left, seen and to be expected."""

    number: int
    form: str
    case: str
    method: str
    train: int
    golden: int
    log_loss: float
    log_loss_exact: float
    accuracy: float
    seen: float
    expected: float
    certified: bool


@dataclass(frozen=True)
class Line:
    """A method on a case over all sets. ``difference`` is its log loss less that of the separate fits.

    ``difference_fair`` is the same over the ``fair`` sets whose separate fit is a certified maximum.
    """

    form: str
    case: str
    method: str
    sets: int
    train: int
    log_loss: float
    median_exact: float | None
    accuracy: float
    difference: float
    low: float
    high: float
    won: float
    fair: int
    difference_fair: float | None
    low_fair: float | None
    high_fair: float | None
    seen_over_expected: float | None
    uncertified: int


def measure(sets: int, all_cases: int, tell: Callable[[str], None] = lambda _: None) -> list[Score]:
    """Every score; the first ``all_cases`` sets give those of all cases."""
    found: list[Score] = []
    clock = perf_counter()
    for number, seed in enumerate(np.random.SeedSequence(SEED).generate_state(sets).tolist()):
        parts = draw(seed)
        for form in FORMS:
            cases = {name: (take(train, form), take(golden, form)) for name, (train, golden) in parts.items()}
            pooling = pool_cases({name: train for name, (train, _) in cases.items()}, threads=1, clock="start")
            for name in cases if number < all_cases else SMALLEST:
                for method, scores, seen, expected, certified in judge_case(*cases[name], pooling.prior(name)):
                    found.append(
                        Score(
                            number, form, name, method, len(cases[name][0]), scores.rows, scores.log_loss,
                            scores.log_loss_exact, scores.accuracy, seen, expected, certified,
                        )
                    )  # fmt: skip
        if (number + 1) % 10 == 0:
            tell(f"{number + 1} of {sets} sets, {perf_counter() - clock:.0f} s")
    return found


def draw(seed: int) -> dict[str, tuple[Sample, Sample]]:
    """Training and golden rows of each case, those within the training K, as a study has them."""
    rows = split_rows(read_source(DataPlan(kind="inventory", seed=seed), Path()), PartitionPlan(), TrialPlan())
    found = {}
    for name in rows.cases:
        case = rows.case(name)
        n_states = int(case.train["state_2"].max())
        ends = (case.golden[column].to_numpy().astype(np.int64) - 1 for column in ("state_1", "state_2"))
        golden = case.golden.filter(pl.Series(split_supported(*ends, n_states)))
        found[name] = tuple(Sample.of(part, case.covariates, n_states) for part in (case.train, golden))
    return found


def take(sample: Sample, form: str) -> Sample:
    """The covariates as they are, or the logarithms of all but age."""
    if form == "raw":
        return sample
    x = [v if name.startswith("age") else np.log(v) for name, v in zip(sample.covariates, sample.x.T, strict=True)]
    return replace(sample, x=np.column_stack(x))


def judge_case(train: Sample, golden: Sample, prior: Any) -> Iterator[tuple[str, Scores, float, float, bool]]:
    """Each method with its scores, moves seen and expected, and whether it is a certified maximum."""
    plain, start, end = Options(threads=1, clock="start"), golden.rows.start, golden.rows.end
    seen = float((end - start).sum())
    chosen = choose_ridge(train, plain)
    least = choose_ridge(train, plain, grid=[chosen.least])
    options = {SEPARATE: plain, RIDGE: chosen.options, LEAST: least.options, POOLED: replace(plain, prior=prior)}
    fits = {name: fit(train, how) for name, how in options.items()} | {BARE: fit(bare(train), plain)}
    for method, found in fits.items():
        rows = bare(golden) if method == BARE else golden
        p = found.probabilities(start, rows.rows.dt, rows.x)
        expected = float((p @ np.arange(p.shape[1]) - start).sum())
        yield (
            method,
            score(p, found.log_probabilities(rows.rows, rows.x), start, end),
            seen,
            expected,
            found.certified,
        )
    yield PERSISTENCE, score_persistence_rows(start, end, golden.rows.n_states).mean(), seen, 0.0, True


def fit(sample: Sample, options: Options) -> Refit:
    """One fit."""
    return refit_rows(sample.rows, sample.x, sample.covariates, options)


def bare(sample: Sample) -> Sample:
    """The same rows without covariates."""
    return replace(sample, x=sample.x[:, :0], covariates=())


def summarize(scores: Sequence[Score]) -> list[Line]:
    """One line for each form, case and method, in the order they were measured."""
    keys = list(dict.fromkeys((one.form, one.case, one.method) for one in scores))
    groups = {key: [one for one in scores if (one.form, one.case, one.method) == key] for key in keys}
    return [_line(groups[key], groups[key[0], key[1], SEPARATE]) for key in keys]


def _line(ours: Sequence[Score], separate: Sequence[Score]) -> Line:
    first, expected = ours[0], sum(one.expected for one in ours)
    losses, theirs = (np.array([one.log_loss for one in group]) for group in (ours, separate))
    interval = mean_interval(losses - theirs, np.arange(len(losses)))
    fair = np.array([one.certified for one in separate])
    narrow = mean_interval((losses - theirs)[fair], np.flatnonzero(fair))
    exact = float(np.median([one.log_loss_exact for one in ours]))
    return Line(
        form=first.form,
        case=first.case,
        method=first.method,
        sets=len(ours),
        train=first.train,
        log_loss=float(losses.mean()),
        median_exact=_finite(exact),
        accuracy=float(np.mean([one.accuracy for one in ours])),
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        won=float((losses < theirs).mean()),
        fair=narrow.rows,
        difference_fair=_finite(narrow.mean),
        low_fair=_finite(narrow.low),
        high_fair=_finite(narrow.high),
        seen_over_expected=sum(one.seen for one in ours) / expected if expected > 0 else None,
        uncertified=sum(not one.certified for one in ours),
    )


def judge(lines: Sequence[Line]) -> list[Aim]:
    """Ridge and pooled against the separate fits of the two smallest cases, covariates as they come."""
    aims = []
    for line in lines:
        if line.form == "raw" and line.case in SMALLEST and line.method in (RIDGE, POOLED):
            figure = (
                f"{line.difference:+.3f} ({line.low:+.3f} to {line.high:+.3f}), {line.won:.0%} of {line.sets} sets"
            )
            aim = f"{line.method} below separate in golden log loss, {line.case} ({line.train} rows)"
            aims.append(Aim(aim, figure, line.high < 0))
    return aims


def print_small(lines: Sequence[Line], form: str, console: Console) -> None:
    """The two smallest cases in full."""
    table = Table("case", "rows", "method", title=f"The two smallest cases, golden rows, {form} covariates")
    for head in (
        "log loss",
        "exact*",
        "accuracy",
        "less separate",
        "95 %",
        "won",
        "fair**",
        "moves***",
        "no max.",
    ):
        table.add_column(head, justify="right")
    for line in lines:
        if line.form == form:
            table.add_row(
                line.case, str(line.train), line.method, f"{line.log_loss:.4f}", _figure(line.median_exact, ".4g"),
                f"{line.accuracy:.3f}", f"{line.difference:+.4f}", f"{line.low:+.4f} to {line.high:+.4f}",
                f"{line.won:.0%}", _fair(line), _figure(line.seen_over_expected, ".3f"), str(line.uncertified),
            )  # fmt: skip
    console.print(table)
    console.print(
        "* median over the sets, without the floor   ** less separate, in the sets where that has a maximum   "
        "*** seen over expected, all sets together"
    )


def _fair(line: Line) -> str:
    ends = f" ({_figure(line.low_fair, '+.3f')} to {_figure(line.high_fair, '+.3f')})"
    return f"{line.difference_fair:+.3f}{ends}, {line.fair}" if line.difference_fair is not None else "-"


def print_all(lines: Sequence[Line], form: str, console: Console) -> None:
    """All cases, one line each."""
    methods = (SEPARATE, RIDGE, LEAST, POOLED, BARE)
    title = f"All cases, mean golden log loss of {lines[0].sets} sets, {form} covariates"
    table = Table("case", "rows", title=title)
    for head in methods:
        table.add_column(head, justify="right")
    for case, rows in dict.fromkeys((line.case, line.train) for line in lines):
        by = {line.method: line.log_loss for line in lines if (line.form, line.case) == (form, case)}
        table.add_row(case, str(rows), *(f"{by[method]:.4f}" for method in methods))
    console.print(table)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, judge, store; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.small_samples",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", type=int, default=SETS, help="simulated inventories")
    parser.add_argument("--all-cases", type=int, default=ALL_CASES, help="of them, those with all ten cases")
    options = parser.parse_args(arguments)
    if min(options.sets, options.all_cases) < 2:
        parser.error("at least 2 sets are needed, and 2 with all cases")
    console = Console(width=max(180, Console().width), highlight=False)
    setting = configuration.describe(with_msm=False) | {"sets": options.sets, "all_cases": options.all_cases}
    del setting["repeats"]  # nothing is timed
    scores = measure(options.sets, options.all_cases, console.print)
    small = summarize([one for one in scores if one.case in SMALLEST])
    every = summarize([one for one in scores if one.number < options.all_cases])
    aims = judge(small)
    for form in FORMS:
        print_small(small, form, console)
        print_all(every, form, console)
    print_aims(aims, console)
    unchanged = configuration.source_digest() == setting["source"]
    result = {
        "configuration": setting | {"source_unchanged": unchanged},
        "aims": [asdict(aim) for aim in aims],
        "smallest": [asdict(line) for line in small],
        "all_cases": [asdict(line) for line in every],
    }
    if (options.sets, options.all_cases) == (SETS, ALL_CASES):
        RESULT.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
        console.print("Stored in benchmarks/results/small_samples.json.")
    return 0 if all(aim.met for aim in aims) else 1


if __name__ == "__main__":
    sys.exit(main())
