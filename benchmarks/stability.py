"""A thousand refits of a thousand rows: ``python -m benchmarks.stability``.

A simulated case of 1,000 rows, about three on a bridge, K = 5, four covariates; 1,000 bootstrap draws by bridge,
each fitted, certified and scored on the rows of the bridges not drawn, as ``rekka.stability`` does it:

- by z-score and by Box-Cox, whose exponents are estimated anew in each draw;
- in one process, and in two, whose start is part of the time.

Beside them stand 1,000 full fits (``fit_rows``: other starts, separation, standard errors) of the same draws,
extrapolated from 20 and labelled so. Times on a shared machine are noisy: the ratio is of processor seconds.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time

import polars as pl
from rich.console import Console
from rich.table import Table

import rekka
from benchmarks import configuration
from benchmarks.aims import Aim, print_aims
from benchmarks.problems import SEED
from rekka.core.errors import count_of
from rekka.core.numerics import generator
from rekka.evaluation.resampling import draw_bootstrap
from rekka.model.fit import Options, fit_rows
from rekka.study.case_rows import IN_FOLDS
from rekka.study.stability import stability

RESULT = Path(__file__).with_name("results") / "stability.json"
ROWS, REFITS, FULL_FITS = 1000, 1000, 20
METHODS, WORKERS = ("zscore", "boxcox"), (1, 2)
CASE = "all"
WELL_UNDER_A_MINUTE = 30.0  # seconds


@dataclass(frozen=True)
class Timing:
    """So many refits by one method: wall-clock seconds; processor seconds where one process did it all."""

    method: str
    workers: int
    refits: int
    certified: float
    seconds: float
    processor_seconds: float | None

    @property
    def per_second(self) -> float:
        """Refits a second."""
        return self.refits / self.seconds


@dataclass(frozen=True)
class FullFits:
    """Full fits of the first draws, and what ``refits`` of them would take."""

    method: str
    fits: int
    processor_seconds: float
    refits: int

    @property
    def extrapolated(self) -> float:
        """Processor seconds of as many full fits as there are refits."""
        return self.processor_seconds / self.fits * self.refits


def make_study(method: str, rows: int) -> rekka.Study:
    """A study of one case and one method; its fits warm the caches."""
    frame = rekka.simulate_transitions(rows, seed=SEED).with_columns(case=pl.lit(CASE), part=pl.lit("train"))
    return rekka.compare(
        frame, methods=[method], select_on="validation", confirm=False, guard={"resamples": 0}, seed=SEED
    )


def time_refits(study: rekka.Study, refits: int, workers: int) -> Timing:
    """The bootstrap of a study, clocks around it."""
    clock, processor = perf_counter(), process_time()
    found = stability(study, kinds=["bootstrap"], resamples=refits, workers=workers)
    seconds, used = perf_counter() - clock, process_time() - processor
    method = study.plan.study.methods[0]
    certified = found.methods["certified"][0]
    return Timing(method, workers, len(found.refits), certified, seconds, used if workers == 1 else None)


def time_full_fits(study: rekka.Study, fits: int, refits: int) -> FullFits:
    """The first draws again, each by a full fit; drawing them is not timed."""
    method = study.plan.study.methods[0]
    sample, _ = study.read_rows().case(CASE, study.plan.study.judges_on).sample(IN_FOLDS)
    draws = [
        sample.take(draw_bootstrap(sample.bridge, generator(SEED, CASE, "bootstrap", number))[0])
        for number in range(fits)
    ]
    processor = process_time()
    for draw in draws:
        fit_rows(draw.rows, draw.x, draw.covariates, Options(scaling=method, threads=1, clock="start"))
    return FullFits(method, fits, process_time() - processor, refits)


def measure(
    rows: int = ROWS, refits: int = REFITS, fits: int = FULL_FITS, tell: Callable[[str], None] = lambda _: None
) -> tuple[list[Timing], list[FullFits]]:
    """Every method by every number of workers, and its full fits right after."""
    timings, full = [], []
    for method in METHODS:
        study = make_study(method, rows)
        for workers in WORKERS:
            tell(f"{method}, {count_of(workers, 'worker')} ...")
            timings.append(time_refits(study, refits, workers))
        full.append(time_full_fits(study, fits, refits))
    return timings, full


def ratio(timings: Sequence[Timing], full: FullFits) -> float | None:
    """How many times the processor seconds of refits full fits would take, extrapolated."""
    mine = next((t for t in timings if t.method == full.method and t.processor_seconds is not None), None)
    return None if mine is None or not mine.processor_seconds else full.extrapolated / mine.processor_seconds


def judge(timings: Sequence[Timing]) -> Aim:
    """Each method by the number of processes that served it best; the slower one decides. All are told."""
    aim = f"{REFITS:,} refits of {ROWS:,} rows well under a minute ({WELL_UNDER_A_MINUTE:g} s)"
    if not timings or any(t.refits != REFITS for t in timings):
        return Aim(aim, "not measured", None)
    figure = ", ".join(f"{t.method} {t.seconds:.1f} s by {count_of(t.workers, 'worker')}" for t in timings)
    best = [min(t.seconds for t in timings if t.method == method) for method in METHODS]
    return Aim(aim, figure, max(best) < WELL_UNDER_A_MINUTE)


def print_timings(timings: Sequence[Timing], full: Sequence[FullFits], console: Console) -> None:
    """Seconds and rates, then the full fits."""
    table = Table("method", title="Bootstrap refits, each certified and scored")
    for column in ("workers", "refits", "certified", "seconds", "processor seconds", "refits a second"):
        table.add_column(column, justify="right")
    for t in timings:
        used = "-" if t.processor_seconds is None else f"{t.processor_seconds:.2f}"
        counts = (str(t.workers), f"{t.refits:,}", f"{t.certified:.1%}")
        table.add_row(t.method, *counts, f"{t.seconds:.2f}", used, f"{t.per_second:.0f}")
    console.print(table)
    for f in full:
        times = ratio(timings, f)
        console.print(
            f"{f.method}: {f.refits:,} full fits would take {f.extrapolated:.1f} processor seconds, extrapolated "
            f"from {f.fits}: {'-' if times is None else f'{times:.1f}'} times those of the refits.",
            highlight=False,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, judge, store."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--refits", type=int, default=REFITS, help="another number than the default is not stored")
    options = parser.parse_args(arguments)
    if options.refits < 1:
        parser.error("at least one refit is needed")
    console = Console(width=max(120, Console().width))
    setting = configuration.describe(with_msm=False)
    setting["repeats"] = {"refits": options.refits, "full fits": FULL_FITS}
    setting["load"] = os.getloadavg()[0]  # processes that wait for a core, ours not among them yet
    timings, full = measure(refits=options.refits, tell=console.print)
    aim = judge(timings)
    print_timings(timings, full, console)
    console.print(
        f"Load average at the start: {setting['load']:.1f} on {setting['cores']} cores.", highlight=False
    )
    print_aims([aim], console)
    if options.refits != REFITS:
        return
    result = {
        "configuration": setting | {"source_unchanged": configuration.source_digest() == setting["source"]},
        "rows": ROWS,
        "aims": [asdict(aim)],
        "refits": [asdict(t) | {"per_second": t.per_second} for t in timings],
        "full_fits": [asdict(f) | {"extrapolated": f.extrapolated, "times": ratio(timings, f)} for f in full],
    }
    RESULT.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    console.print(f"Stored in benchmarks/results/{RESULT.name}.")


if __name__ == "__main__":
    main()
