"""A million members forecast for thirty years: ``python -m benchmarks.forecast``.

Members are simulated as transitions are: K = 5, four covariates, seen on some day within four years; the model is
fitted to 20,000 other rows. Each way is a process of its own, whose seconds go from the table of members in memory
to the result, and whose peak memory is that of all:

- the probabilities of the states in each year, and nothing else;
- the network and the members' table with years until the threshold, without intervals and with the delta method's;
- the latter, and 31 rows for each member written as one Parquet file, as ``rekka forecast`` writes it;
- nothing but the table, for its memory.

Beside them a plain loop in NumPy and SciPy, on 1,000 of the members: for each member and year the hazards, the
exponential of the generator (scipy.linalg.expm) and a product with a vector. It gives the probabilities of the
states and nothing else, on one core; extrapolated to a million members and labelled so. Both give the same
numbers. Times on a shared machine are noisy: the ratio is of processor seconds, of all cores together.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.linalg import expm
from threadpoolctl import ThreadpoolController

import rekka
from benchmarks import configuration
from benchmarks.problems import SEED
from rekka.fleet.document import describe_fleet
from rekka.fleet.eligibility import GAP, Eligible, EligibleGroup, InventoryOptions, find_eligible
from rekka.fleet.inventory import UNIT, forecast_fleet
from rekka.fleet.members import Members
from rekka.fleet.models import CaseModel, Models, match_models
from rekka.fleet.store import list_files, open_folder
from rekka.forecast.propagation import Propagator, propagate
from rekka.model.fit import Fit
from rekka.simulation.rows import COVARIATES

RESULT = Path(__file__).with_name("results") / "forecast.json"
MEMBERS, YEARS, PLAIN, TRAINING = 1_000_000, 30, 1_000, 20_000
CASE = "all"
ALONE, STATES = "the table alone", "states alone"
NETWORK, WITH_INTERVALS, WRITTEN = "network", "network, intervals", "all years written"
WAYS = (ALONE, STATES, NETWORK, WITH_INTERVALS, WRITTEN)
AGREE = 1e-12  # between the probabilities of both


@dataclass(frozen=True)
class Timing:
    """One way of forecasting so many members: seconds, peak megabytes of the process, megabytes written."""

    way: str
    members: int
    seconds: float
    processor_seconds: float
    megabytes: float
    written: float

    @property
    def rows_a_second(self) -> float:
        """Members and years a second."""
        return self.members * (YEARS + 1) / self.seconds


@dataclass(frozen=True)
class Loop:
    """The plain loop on some members, in processor seconds; the largest difference from ours; and for all."""

    members: int
    processor_seconds: float
    difference: float
    extrapolated: float


def draw_eligible(members: int, ask: InventoryOptions) -> Eligible:
    """The members and their model, ready to be forecast."""
    rng = np.random.default_rng(SEED)
    drawn = rekka.simulate_transitions(members, seed=SEED + 1)
    days = pl.lit(date(2020, 4, 1)) + pl.duration(days=pl.Series(rng.integers(0, 4 * 365, members)))
    frame = drawn.select(
        pl.format("B-{}", pl.int_range(pl.len()).cast(pl.String).str.zfill(7)).alias("bridge_id"),
        pl.lit(CASE).alias("case"),
        days.alias("date"),
        pl.col("state_2").alias("state"),
        *COVARIATES,
        pl.int_range(pl.len()).alias("row"),
    )
    nothing = pl.DataFrame(
        schema={"reason": pl.String, "count": pl.Int64, "rows": pl.List(pl.Int64), "what": pl.String}
    )
    found = Members("simulated", frame, COVARIATES, nothing, None, (), dated=True)
    return find_eligible(found, match_models(Models("model", (_fit(),)), [CASE]), ask)


def _fit() -> CaseModel:
    rows = rekka.simulate_transitions(TRAINING, seed=SEED)
    model = rekka.ExponentialHazardMarkovModel(covariates=list(COVARIATES))
    model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
    return CaseModel(CASE, model._fit, "model", "0" * 64)


def measure(members: int = MEMBERS) -> list[Timing]:
    """Each way in a process of its own."""
    return [_call(way, members) for way in WAYS]


def _call(way: str, members: int) -> Timing:
    command = [sys.executable, "-m", "benchmarks.forecast", "--child", way, str(members)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Timing(**json.loads(done.stdout))


def _child(way: str, members: int) -> None:
    """Forecast and print the figures as JSON; a small forecast first loads what is compiled."""
    intervals = "none" if way == NETWORK else "delta"
    ask = InventoryOptions(years=YEARS, intervals=intervals, member_intervals=False)
    forecast_fleet(draw_eligible(100, ask))
    eligible = draw_eligible(members, ask)
    with tempfile.TemporaryDirectory() as folder:
        clock, processor = perf_counter(), process_time()
        files = _carry_out(way, eligible, Path(folder))
        seconds, used = perf_counter() - clock, process_time() - processor
        written = sum(file.stat().st_size for file in files) / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps(asdict(Timing(way, members, seconds, used, peak, written))))


def _carry_out(way: str, eligible: Eligible, folder: Path) -> Sequence[Path]:
    if way == STATES:
        _propagate_all(eligible.groups[0])
    elif way in (NETWORK, WITH_INTERVALS):
        forecast_fleet(eligible)
    if way != WRITTEN:
        return ()
    with open_folder(folder / "forecast", "parquet") as writer:
        fleet = forecast_fleet(eligible, on_years=writer.add_years)
        return writer.finish(fleet, describe_fleet(fleet, "model", files=list_files("parquet")))


def _propagate_all(group: EligibleGroup) -> None:
    """What the plain loop does: the probabilities of the states, which are forgotten."""
    for first in range(0, len(group.rows), UNIT):
        unit = replace(group, rows=group.rows[first : first + UNIT])
        propagator = Propagator(unit.fit, unit.x, unit.fit.coefficients[None], unit.ageing)
        for _ in propagate(propagator, unit.start, range(YEARS + 1), unit.gap):
            pass


def loop(members: int = PLAIN, of: int = MEMBERS) -> Loop:
    """The plain loop beside ours on the same members."""
    ask = InventoryOptions(years=YEARS, intervals="none")
    eligible = draw_eligible(members, ask)
    rows, fit = eligible.groups[0].rows, eligible.groups[0].fit
    with ThreadpoolController().limit(limits=1, user_api="blas"):  # threads on 5 by 5 only wait for each other
        begin = process_time()
        theirs = np.array([_walk(fit, row) for row in rows.select(GAP, "state", *COVARIATES).iter_rows()])
        seconds = process_time() - begin
    years: list[pl.DataFrame] = []
    forecast_fleet(eligible, on_years=years.append)
    ours = pl.concat(years).select(f"p_{k + 1}" for k in range(fit.n_states)).to_numpy()
    difference = float(np.abs(ours.reshape(theirs.shape) - theirs).max())
    return Loop(members, seconds, difference, seconds / members * of)


def _walk(fit: Fit, row: Sequence[float]) -> NDArray[np.float64]:
    """P (31, K) of one member: the gap by whole years and a rest, then year by year, age advancing."""
    gap, state, age, *others = row
    p = np.zeros(fit.n_states)
    p[int(state) - 1] = 1.0
    steps = [*[1.0] * int(gap), gap - int(gap)]
    found = []
    for number, h in enumerate([*steps, *[1.0] * YEARS]):
        theta = np.exp(fit.coefficients @ np.array([1.0, age + h / 2, *others]))
        p = p @ expm(h * (np.diag([*-theta, 0.0]) + np.diag(theta, 1)))
        age += h
        if number >= len(steps) - 1:
            found.append(p)
    return np.array(found)


def print_table(timings: Sequence[Timing], plain: Loop, console: Console) -> None:
    """Seconds, memory, rates and the ratio."""
    table = Table("way", title=f"{timings[0].members:,} members by {YEARS} years, K = 5, four covariates")
    for column in ("seconds", "processor seconds", "peak MB", "written MB", "member-years a second"):
        table.add_column(column, justify="right")
    for one in timings:
        done = one.way != ALONE
        times = (f"{one.seconds:.1f}", f"{one.processor_seconds:.1f}") if done else ("-", "-")
        rate = f"{one.rows_a_second:,.0f}" if done else "-"
        table.add_row(one.way, *times, f"{one.megabytes:,.0f}", f"{one.written:,.0f}", rate)
    console.print(table)
    console.print(
        f"Plain loop of scipy.linalg.expm: {plain.processor_seconds:.1f} processor seconds for {plain.members:,} "
        f"members; extrapolated, {plain.extrapolated:,.0f} for {timings[0].members:,}. Probabilities differ by up "
        f"to {plain.difference:.1e}.",
        highlight=False,
    )
    for one in timings[1:]:
        console.print(
            f"{one.way}: {ratio(one, plain):,.0f} times fewer processor seconds, by the extrapolation.",
            highlight=False,
        )


def ratio(one: Timing, plain: Loop) -> float:
    """How many times as many processor seconds the plain loop would take."""
    return plain.extrapolated / one.processor_seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecast",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--members", type=int, default=MEMBERS, help="another number is not stored")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        _child(options.child[0], int(options.child[1]))
        return
    console = Console(width=max(120, Console().width))
    setting = configuration.describe(with_msm=False)
    setting["repeats"] = {"forecast": 1, "plain loop": 1}
    setting["load"] = os.getloadavg()[0]  # processes that wait for a core, ours not among them yet
    timings, plain = measure(options.members), loop(of=options.members)
    print_table(timings, plain, console)
    console.print(
        f"Load average at the start: {setting['load']:.1f} on {setting['cores']} cores.", highlight=False
    )
    if plain.difference > AGREE:
        sys.exit(f"The two differ by {plain.difference:.1e}, more than {AGREE:g}.")
    if options.members == MEMBERS:
        _store(setting, timings, plain, console)


def _store(setting: dict[str, Any], timings: Sequence[Timing], plain: Loop, console: Console) -> None:
    result = {
        "configuration": setting | {"source_unchanged": configuration.source_digest() == setting["source"]},
        "years": YEARS,
        "forecast": [asdict(one) | {"rows_a_second": one.rows_a_second} for one in timings],
        "plain_loop": asdict(plain) | {"times": {one.way: ratio(one, plain) for one in timings[1:]}},
    }
    RESULT.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    console.print(f"Stored in benchmarks/results/{RESULT.name}.")


if __name__ == "__main__":
    main()
