"""A nation's inventory on this machine: ``python -m benchmarks.scale``.

Twenty million transitions, K = 5, four covariates, are drawn into Parquet files and fitted from there to a
certified maximum: held in memory on two threads and on one, streamed within 1 GB, and on a local cluster of two
processes. Each fit is a process of its own; a fit of a few rows comes before the clock starts, so that nothing is
compiled on it. Beside them: the cost of an evaluation by rows, states, covariates, jumps and threads; where the
seconds go; how far the kernel is from the machine's limits, which are measured on the spot; the largest table that
R's msm and the paper's way can do in some minutes; a thousand bootstrap refits beside msm's; and what starting
costs.

A full run takes about a quarter of an hour and 2 GB of the disk's temporary folder, is stored in
``results/scale.json``, and ``docs/performance.md`` is written from it; ``--page`` writes the page alone.
``--quick`` exercises all of it on few rows and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console

from benchmarks import (
    configuration,
    rival_msm,
    scale_costs,
    scale_fits,
    scale_machine,
    scale_passes,
    scale_rivals,
    scale_start,
    scaling,
)
from benchmarks.aims import Aim, print_aims
from benchmarks.drawn_rows import write_transitions
from benchmarks.problems import SEED
from benchmarks.scale_fits import CLUSTER, EQUAL, HELD, STREAMED
from benchmarks.scale_page import PAGE, write_page

RESULT = Path(__file__).with_name("results") / "scale.json"
WARM_ROWS = 300_000  # more than are fitted in one piece, so that the same code is loaded
HELD_SECONDS, HELD_MEGABYTES, STREAMED_MEGABYTES = 30.0, 4000.0, 1000.0  # the aims
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rows: int = 20_000_000
    curve: tuple[int, ...] = scaling.ROWS
    cost_rows: int = scale_costs.ROWS
    states: tuple[int, ...] = scale_costs.STATES
    covariates: tuple[int, ...] = scale_costs.COVARIATES
    machine: tuple[int, int] = (scale_machine.FAR_BEYOND_CACHE, scale_machine.ROUNDS)
    limit: float = scale_rivals.LIMIT_SECONDS
    first_rows: Mapping[str, int] | None = None
    refits: tuple[int, int] = (scale_rivals.REFITS, scale_rivals.MSM_REFITS)
    starts: int = scale_start.REPEATS


QUICK = Sizes(
    rows=600_000,
    curve=(1_000, 10_000),
    cost_rows=5_000,
    states=(3, 5),
    covariates=(1, 4),
    machine=(100_000, 1_000),
    limit=2.0,
    first_rows={"msm": 200, "paper": 500},
    refits=(10, 1),
    starts=1,
)


def measure_fits(sizes: Sizes, with_msm: bool, tell: Tell) -> dict[str, Any]:
    """The table drawn, fitted in every way, and gone through pass by pass."""
    with tempfile.TemporaryDirectory() as name:
        table, warm, quarter = (Path(name) / part for part in ("nation", "warm", "quarter"))
        for folder in (table, warm, quarter):
            folder.mkdir()
        tell(f"drawing {sizes.rows:,} transitions ...")
        write_transitions(warm, WARM_ROWS, seed=SEED - 1)
        clock = perf_counter()
        files = write_transitions(table, sizes.rows, seed=SEED, threads=os.cpu_count() or 1)
        drawn = {"rows": sizes.rows, "seconds": perf_counter() - clock, "files": len(files)}
        drawn["megabytes"] = sum(file.stat().st_size for file in files) / 1e6
        wholes = []
        for way in scale_fits.WAYS:
            tell(f"fit, {way} ...")
            wholes.append(scale_fits.call(way, table, warm))
        for file in files[: -(-len(files) // 4)]:
            (quarter / file.name).hardlink_to(file)
        profiles = []
        for way in scale_passes.WAYS:
            tell(f"passes, {way} ...")
            profiles.append(scale_passes.call(way, table, warm))
        some = scale_passes.call(STREAMED, quarter, warm)
    return {
        "drawn": drawn,
        "fits": [asdict(w) | {"rows_a_second": w.rows_a_second, "ns_per_row": w.ns_per_row} for w in wholes],
        "agreement": [asdict(a) | {"largest": a.largest} for a in scale_fits.compare(wholes)],
        "passes": [asdict(p) | {"between": p.between} for p in profiles],
        "quarter": {"rows": some.rows, "megabytes": some.megabytes},
    }


def measure_curve(sizes: Sizes, with_msm: bool, tell: Tell) -> dict[str, Any]:
    """One evaluation and one fit from few rows to many, on one thread and on two."""
    points = []
    for rows in sizes.curve:
        tell(f"curve, {rows:,} rows ...")
        points.append(scaling.measure(rows))
    return {"curve": [asdict(point) for point in points]}


def measure_costs(sizes: Sizes, with_msm: bool, tell: Tell) -> dict[str, Any]:
    """What an evaluation costs, what a row needs, and what the machine can do."""
    tell("costs ...")
    usual = scale_costs.draw(scale_costs.USUAL_STATES, scale_costs.USUAL_COVARIATES, sizes.cost_rows)
    found = {
        "states": scale_costs.by_states(sizes.states, sizes.cost_rows),
        "covariates": scale_costs.by_covariates(sizes.covariates, sizes.cost_rows),
        "orders": scale_costs.by_order(sizes.cost_rows),
        "jumps": scale_costs.by_jumps(sizes.cost_rows),
    }
    tell("machine ...")
    machine = [scale_machine.measure(threads, *sizes.machine) for threads in (1, 2)]
    return {
        "costs": {name: [asdict(cost) for cost in costs] for name, costs in found.items()},
        "needs": asdict(scale_costs.count_needs(usual)),
        "machine": [asdict(rates) for rates in machine],
    }


def measure_rivals(sizes: Sizes, with_msm: bool, tell: Tell) -> dict[str, Any]:
    """The largest table of each rival, rekka beside it; None where a rival gets nowhere or is not there."""
    first = sizes.first_rows or scale_rivals.FIRST_ROWS
    msm = scale_rivals.largest_msm(tell, sizes.limit, first["msm"]) if with_msm else None
    paper = scale_rivals.largest_paper(tell, sizes.limit, first["paper"])
    found = {name: one for name, one in (("msm", msm), ("paper", paper)) if one is not None}
    more = {
        name: {"times": one.times, "call_times": one.call_times, "gap": one.gap} for name, one in found.items()
    }
    return {"limit": sizes.limit, "rivals": {name: asdict(one) | more[name] for name, one in found.items()}}


def measure_refits(sizes: Sizes, with_msm: bool, tell: Tell) -> dict[str, Any]:
    """Bootstrap refits, and msm's extrapolated."""
    refits, msm_refits = sizes.refits
    found = scale_rivals.time_bootstrap(tell, refits=refits, msm_refits=msm_refits, with_msm=with_msm)
    return {"refits": asdict(found) | {"extrapolated": found.extrapolated, "times": found.times}}


def measure_start(sizes: Sizes, with_msm: bool, tell: Tell) -> dict[str, Any]:
    """What starting costs."""
    tell("start ...")
    return {"start": asdict(scale_start.measure(sizes.starts))}


PARTS: dict[str, Callable[[Sizes, bool, Tell], dict[str, Any]]] = {
    "fits": measure_fits,
    "curve": measure_curve,
    "costs": measure_costs,
    "rivals": measure_rivals,
    "refits": measure_refits,
    "start": measure_start,
}


def judge(stored: Mapping[str, Any]) -> list[Aim]:
    """The aims of a nation's inventory; what was not measured is not judged."""
    fits = {one["way"]: one for one in stored.get("fits", ()) if one["seconds"] is not None}
    held, streamed = fits.get(HELD), fits.get(STREAMED)
    differences = {one["way"]: one["largest"] for one in stored.get("agreement", ())}
    return [
        _aim(f"{HELD_SECONDS:g} s from Parquet to a certified maximum", held, "seconds", HELD_SECONDS, "s"),
        _aim(f"under {HELD_MEGABYTES:,.0f} MB held in memory", held, "megabytes", HELD_MEGABYTES, "MB"),
        _aim(f"under {STREAMED_MEGABYTES:,.0f} MB streamed", streamed, "megabytes", STREAMED_MEGABYTES, "MB"),
        *(_equality(way, differences.get(way)) for way in (STREAMED, CLUSTER)),
    ]


def _aim(aim: str, fit: Mapping[str, Any] | None, name: str, most: float, unit: str) -> Aim:
    if fit is None:
        return Aim(aim, "not measured", None)
    figure = f"{fit[name]:,.1f} {unit}" + ("" if fit["certified"] else ", not certified")
    return Aim(aim, figure, bool(fit["certified"] and fit[name] < most))


def _equality(way: str, largest: float | None) -> Aim:
    aim = f"{way}: equal to {HELD} to {EQUAL:g}, relative"
    if largest is None:
        return Aim(aim, "not measured", None)
    return Aim(aim, f"{largest:.1e}", largest <= EQUAL)


def run(sizes: Sizes, parts: Sequence[str], with_msm: bool, tell: Tell) -> dict[str, Any]:
    """The parts, one after the other; beside each the load of the machine when it began."""
    found: dict[str, Any] = {"load": {}}
    for part in parts:
        found["load"][part] = os.getloadavg()[0]
        found |= PARTS[part](sizes, with_msm, tell)
    return found


def _store(found: dict[str, Any], setting: dict[str, Any], whole: bool) -> None:
    """A whole run replaces the stored one; a part replaces that part, with its own configuration beside it."""
    setting |= {"source_unchanged": configuration.source_digest() == setting["source"]}
    before = {} if whole or not RESULT.exists() else json.loads(RESULT.read_text())
    load = before.get("load", {}) | found["load"]
    settings = before.get("configurations", {}) | dict.fromkeys(found["load"], setting)
    stored = before | found | {"load": load, "configurations": settings}
    stored["aims"] = [asdict(aim) for aim in judge(stored)]
    RESULT.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, judge, store, write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few rows, everything exercised, nothing stored")
    parser.add_argument("--only", choices=PARTS, help="measure this part anew and store it beside the others")
    parser.add_argument(
        "--page", action="store_true", help="write the page from the stored run, without a new one"
    )
    options = parser.parse_args(arguments)
    console = Console(width=max(120, Console().width), highlight=False)
    if not options.page:
        found = _measure(options.only, QUICK if options.quick else Sizes(), options.quick, console)
        if options.quick or options.only:
            console.print_json(json.dumps(found))
        print_aims(judge(found), console)
    if not options.quick:
        _write(json.loads(RESULT.read_text()), console)


def _write(stored: dict[str, Any], console: Console) -> None:
    missing = [part for part in PARTS if part not in stored["load"]]
    if missing:
        console.print(f"No page yet: {', '.join(missing)} not measured. Measure them with --only.")
        return
    page = write_page(stored)
    PAGE.write_text(page, encoding="utf-8")
    console.print(page, markup=False, soft_wrap=True)
    console.print(f"Written: docs/{PAGE.name}")


def _measure(only: str | None, sizes: Sizes, quick: bool, console: Console) -> dict[str, Any]:
    missing = rival_msm.ensure_installed()
    if missing:
        console.print(f"{missing} Going on without it.")
    setting = configuration.describe(with_msm=missing is None)
    found = run(sizes, [only] if only else list(PARTS), missing is None, console.print)
    if not quick:
        _store(found, setting, whole=only is None)
    return found


if __name__ == "__main__":
    main()
