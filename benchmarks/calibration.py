"""How often does the 5 % test of calibration cry wolf? ``python -m benchmarks.calibration [--sets 1000]``.

Members of a simulated stock are inspected every 2 to 8 years: the end of an interval is the start of the next, and
members reach the worst state on the way. The model is fitted to the first two intervals of each member; the test
judges these rows (in-sample), or the next two intervals of the same members (held-out). Drawn from the model, 5 %
of the sets should be rejected; drawn from something else, as many as can be:

- time: hazards grow with the years since the last inspection, so that exposure goes with dt to a power;
- frailty: each member has a hazard of its own that no covariate tells.

Exits with 1 if a false-alarm rate is outside LIMITS. A full run is stored in ``results/calibration.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table
from scipy import stats

from benchmarks import configuration
from benchmarks.problems import SEED
from rekka.core.numerics import generator
from rekka.evaluation.calibration import calibrate
from rekka.evaluation.goodness import link_rows
from rekka.evaluation.resampling import Sample
from rekka.model.fit import Options, refit_rows
from rekka.model.likelihood import Rows
from rekka.simulation.rows import draw_ends

RESULTS = Path(__file__).with_name("results")
LEVEL = 0.05
LIMITS = (0.03, 0.07)
SETS, POWER_SETS, PROCESSES = 1000, 100, 2
REPLICATES = 39  # a test at 5 % is exact with 39 as with 199 (0.05 (B + 1) is whole); more only add power
SIZES = (150, 600)
KINDS = ("in-sample", "held-out")
TRUTHS = ("model", "time", "frailty")

N_STATES = 4
PERIOD = 2  # intervals of a member in the training rows, and again in the held-out rows
COVARIATES = ("age", "log_traffic")
RATES = np.log(0.12 * 0.85 ** np.arange(N_STATES - 1))  # a year, as in rekka.simulation.rows
EFFECTS = np.array([[0.30, 0.20], [0.20, 0.30], [0.30, 0.20]])  # per standard deviation
MEANS, SPREADS = np.array([45.0, 8.0]), np.array([12.0, 1.2])
YEARS = (2.0, 8.0)
POWER = 1.8  # time: exposure is 5 (dt / 5)^1.8 years
FRAILTY = 1.0  # standard deviation of the log hazard


@dataclass(frozen=True)
class Setting:
    """Which rows are judged, how many, and where they come from."""

    kind: str
    rows: int
    truth: str


@dataclass(frozen=True)
class Rate:
    """Rejections in so many sets, with a 95 % Monte Carlo interval of the share (Wilson)."""

    kind: str
    rows: int
    truth: str
    sets: int
    rejected: int
    share: float
    low: float
    high: float
    uncertified: int
    unfinished: int
    seconds: float

    @property
    def passes(self) -> bool | None:
        """Whether a false-alarm rate is within LIMITS; None of a power."""
        return LIMITS[0] <= self.share <= LIMITS[1] if self.truth == "model" else None


def draw_members(setting: Setting, number: int, seed: int) -> tuple[Sample, Sample, np.ndarray]:
    """Training rows, the rows after them, and what each row follows, training rows first."""
    rng = generator(seed, setting.truth, setting.rows, number)
    members, visits = setting.rows // PERIOD, 2 * PERIOD
    dt = np.round(rng.uniform(*YEARS, (members, visits)), 1)
    first_age = np.clip(50.0 - rng.gamma(2.2, 7.0, members), 1.0, None)
    age = first_age[:, None] + np.column_stack([np.zeros(members), dt.cumsum(axis=1)[:, :-1]])
    traffic = rng.normal(MEANS[1], SPREADS[1], members)
    frailty = rng.normal(0.0, FRAILTY, members) * (setting.truth == "frailty")
    start = np.empty((members, visits + 1), np.int64)
    start[:, 0] = rng.choice(N_STATES - 1, members, p=[0.5, 0.3, 0.2])
    for v in range(visits):
        z = (np.column_stack([age[:, v], traffic]) - MEANS) / SPREADS
        theta = np.exp(RATES + z @ EFFECTS.T + frailty[:, None])
        exposure = 5.0 * (dt[:, v] / 5.0) ** POWER if setting.truth == "time" else dt[:, v]
        start[:, v + 1] = draw_ends(theta, exposure, start[:, v], rng)
    bridge = np.array([f"B-{member // 3:05d}" for member in range(members)])

    def rows(columns: range) -> Sample:
        states = [start[:, [v + shift for v in columns]].T.ravel() for shift in (0, 1)]
        years = dt[:, columns].T.ravel()
        x = np.column_stack([age[:, columns].T.ravel(), np.tile(traffic, len(columns))])
        table = Rows(*states, years, np.ones(years.size), N_STATES)
        return Sample(table, x, np.tile(bridge, len(columns)), COVARIATES)

    visit = np.arange(members * (visits + 1)).reshape(visits + 1, members)
    follows = link_rows(visit[:-1].ravel(), visit[1:].ravel())
    return rows(range(PERIOD)), rows(range(PERIOD, visits)), follows


def judge(setting: Setting, number: int, replicates: int, seed: int) -> tuple[bool, bool, int]:
    """Whether a set is rejected, whether its fit reached a maximum, and how many refits did not finish."""
    training, later, follows = draw_members(setting, number, seed)
    options = Options(threads=1, clock="start")
    fit = refit_rows(training.rows, training.x, COVARIATES, options)
    if setting.kind == "in-sample":
        judged, before, links = training, None, follows[: len(training)]
    else:
        judged, before, links = later, training, follows
    found = calibrate(
        fit, judged, training=before, options=options, follows=links, replicates=replicates, seed=seed + number
    ).goodness
    return found.p_value <= LEVEL, fit.at_maximum, found.unfinished


def measure(setting: Setting, sets: int, replicates: int, processes: int, seed: int = SEED) -> Rate:
    """The share of sets that the test rejects."""
    clock = perf_counter()
    jobs = (delayed(judge)(setting, number, replicates, seed) for number in range(sets))
    found = np.array(Parallel(n_jobs=processes, batch_size=10)(jobs), dtype=np.int64)
    rejected = int(found[:, 0].sum())
    interval = stats.binomtest(rejected, sets).proportion_ci(0.95, method="wilson")
    return Rate(
        **asdict(setting),
        sets=sets,
        rejected=rejected,
        share=rejected / sets,
        low=float(interval.low),
        high=float(interval.high),
        uncertified=int(sets - found[:, 1].sum()),
        unfinished=int(found[:, 2].sum()),
        seconds=perf_counter() - clock,
    )


def print_rates(rates: Sequence[Rate], console: Console) -> None:
    """One line a setting."""
    table = Table("judged", "rows", "drawn from", title=f"Share of sets that the {LEVEL:.0%} test rejects")
    for column in ("sets", "rejected", "share", "95 % interval", "uncertified", "unfinished refits", "s", ""):
        table.add_column(column, justify="right")
    words = {True: "within", False: "OUTSIDE", None: "power"}
    for r in rates:
        figures = (f"{r.share:.1%}", f"{r.low:.1%} to {r.high:.1%}", str(r.uncertified), str(r.unfinished))
        table.add_row(
            r.kind,
            str(r.rows),
            r.truth,
            str(r.sets),
            str(r.rejected),
            *figures,
            f"{r.seconds:.0f}",
            words[r.passes],
        )
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, store; 1 if a false-alarm rate is outside its limits."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--sets", type=int, default=SETS, help="of each false-alarm rate; only a full run is stored"
    )
    parser.add_argument("--power-sets", type=int, default=POWER_SETS, help="of each power")
    parser.add_argument("--replicates", type=int, default=REPLICATES, help="simulated sets of one test")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    options = parser.parse_args(arguments)
    console = Console(width=max(140, Console().width))
    setting = configuration.describe(with_msm=False)
    setting["repeats"] = {
        name: getattr(options, name) for name in ("sets", "power_sets", "replicates", "processes")
    }
    rates = []
    for truth in TRUTHS:
        sets = options.sets if truth == "model" else options.power_sets
        for one in (Setting(kind, size, truth) for kind in KINDS for size in SIZES) if sets else ():
            rates.append(measure(one, sets, options.replicates, options.processes))
            console.print(f"{one.kind}, {one.rows} rows, {truth}: {rates[-1].share:.1%}")
    print_rates(rates, console)
    unchanged = configuration.source_digest() == setting["source"]
    if not unchanged:
        console.print("The source was edited during this run: its figures belong to no one version. Run it again.")
    if options.sets >= SETS and options.power_sets >= POWER_SETS:
        result = {
            "configuration": setting | {"source_unchanged": unchanged},
            "limits": LIMITS,
            "rates": [asdict(rate) | {"passes": rate.passes} for rate in rates],
        }
        (RESULTS / "calibration.json").write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
        console.print("Stored in benchmarks/results/calibration.json.")
    return 1 if any(rate.passes is False for rate in rates) else 0


if __name__ == "__main__":
    sys.exit(main())
