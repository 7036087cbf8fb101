"""Run the benchmarks: ``python -m benchmarks [--quick] [--only PART]``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import accuracy, configuration, problems, rekka_newton, rival_msm, rival_paper, scaling
from benchmarks.aims import Comparison, judge, print_aims
from benchmarks.runs import Run
from rekka.core.folders import plain

PARTS = ("simulated", "ontario", "scaling", "accuracy")
RESULTS = Path(__file__).with_name("results")
SIMULATED_LIMIT, ONTARIO_LIMIT = 60.0, 900.0  # seconds for one method of msm
QUICK_CASES = ("Pavement", "Cross girder", "Slope protection")
QUICK_METHODS = ("nlm", "fisher")
READABLE = 1e9  # larger figures are printed by their power of ten
ACCURACY_CASES, QUICK_ACCURACY_CASES = 10_000, 600


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, judge, store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer cases, methods and rows: a few minutes")
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    options = parser.parse_args(arguments)
    console = Console(width=max(180, Console().width))
    wanted = (options.only,) if options.only else PARTS
    with_msm = _ensure_msm(console) if {"simulated", "ontario"} & set(wanted) else False
    setting = configuration.describe(with_msm)
    comparisons = _compare(wanted, options.quick, with_msm, console)
    points, megabytes = _scale(options.quick, console) if "scaling" in wanted else ([], None)
    worst = _measure_accuracy(options.quick, console) if "accuracy" in wanted else {}
    aims = judge(comparisons, points, megabytes)
    print_aims(aims, console)
    unchanged = configuration.source_digest() == setting["source"]
    if not unchanged:
        console.print("The source was edited during this run: its figures belong to no one version. Run it again.")
    path = RESULTS / ("partial.json" if options.quick or options.only else "latest.json")
    result = {
        "configuration": setting | {"source_unchanged": unchanged},
        "aims": [asdict(aim) for aim in aims],
        "comparisons": [asdict(c) for c in comparisons],
        "scaling": {"points": [asdict(p) for p in points], "megabytes": megabytes},
        "accuracy": {name: asdict(found) for name, found in worst.items()},
    }
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(plain(result), indent=1) + "\n")
    console.print(f"Stored in benchmarks/results/{path.name}.")


def _ensure_msm(console: Console) -> bool:
    missing = rival_msm.ensure_installed()
    if missing:
        console.print(f"{missing} Going on without it.")
    return missing is None


def _compare(wanted: Sequence[str], quick: bool, with_msm: bool, console: Console) -> list[Comparison]:
    """Every rival on every problem."""
    found = []
    if "simulated" in wanted:
        for problem in problems.paper_cases():
            if not quick or problem.name in QUICK_CASES:
                scalings = rival_paper.SCALINGS[:1] if quick else rival_paper.SCALINGS
                found.append(_compare_one(problem, quick, with_msm, SIMULATED_LIMIT, scalings, console))
    if "ontario" in wanted:
        read = problems.ontario()
        if read is None:
            console.print("Ontario's bridges are not in ../shared/data/ontario; that part is left out.")
        else:
            problem, counts = read
            console.print("Ontario: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
            scalings = rival_paper.SCALINGS[:1]
            found.append(_compare_one(problem, quick, with_msm, ONTARIO_LIMIT, scalings, console))
    if found:
        _print_comparisons(found, console)
        _print_runs(found, console)
    return found


def _compare_one(
    problem: problems.Problem,
    quick: bool,
    with_msm: bool,
    limit: float,
    scalings: Sequence[str],
    console: Console,
) -> Comparison:
    console.print(f"{problem.name}: {problem.n_rows} rows ...", highlight=False)
    runs = [rekka_newton.run(problem, threads) for threads in (1, None)]
    for scaling_name in scalings:
        # Only z-score's time is compared, so only it is repeated.
        repeats = rival_paper.REPEATS if scaling_name == "zscore" and not quick else 1
        runs.append(rival_paper.run(problem, scaling_name, repeats))
    if with_msm:
        runs += rival_msm.run_all(problem, limit, QUICK_METHODS if quick else rival_msm.METHODS)
    return Comparison(problem.name, problem.n_rows, problem.n_states, tuple(runs))


def _scale(quick: bool, console: Console) -> tuple[list[scaling.Point], float | None]:
    """The curve, and the memory of its largest point."""
    rows = scaling.ROWS[:-1] if quick else scaling.ROWS
    points = [scaling.measure(n) for n in rows]
    table = Table(
        "rows", "ns/row, 1 thread", "ns/row, 2 threads", "fit s, 1 thread", "fit s, 2 threads", "evaluations",
        title="Scaling, K = 5, 4 covariates: value, gradient and Hessian; and the fit's optimizer",
    )  # fmt: skip
    for p in points:
        times = (p.ns_per_row_1_thread, p.ns_per_row_2_threads, p.fit_seconds_1_thread, p.fit_seconds_2_threads)
        table.add_row(f"{p.rows:,}", *(f"{t:.4g}" for t in times), str(p.fit_evaluations))
    console.print(table)
    megabytes = None if quick else scaling.peak_megabytes(rows[-1])
    return points, megabytes


def _measure_accuracy(quick: bool, console: Console) -> dict[str, accuracy.Worst]:
    cases = accuracy.draw_cases(QUICK_ACCURACY_CASES if quick else ACCURACY_CASES)
    worst = accuracy.worst_errors_parallel(cases)
    accuracy.print_table(worst, console)
    return worst


def _print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """One row a problem."""
    table = Table(
        "problem", "rows", "K", "log L rekka", "log L msm", "log L paper",
        "s rekka", "s all", "s msm", "s paper", "x msm", "x msm all", "x paper", "x paper all", "msm by",
        title="Optimizer seconds on one thread and on all; x: theirs over ours; msm's best, paper's z-score",
    )  # fmt: skip
    for c in comparisons:
        one, every = c.ours(rekka_newton.ONE_THREAD), c.ours(rekka_newton.ALL_THREADS)
        msm, paper = c.msm(), c.paper()
        table.add_row(
            c.name, str(c.rows), str(c.n_states),
            *(_figure(r and r.log_likelihood, ".6f") for r in (every, msm, paper)),
            *(_figure(r and r.seconds, ".4f") for r in (one, every, msm, paper)),
            *(_figure(c.msm_ratio(t), ",.0f") for t in (one.method, every.method)),
            *(_figure(c.paper_ratio(t), ",.0f") for t in (one.method, every.method)),
            msm.method if msm else "none",
        )  # fmt: skip
    console.print(table)


def _print_runs(comparisons: Sequence[Comparison], console: Console) -> None:
    """Every fit, failed ones with the reason."""
    table = Table(
        "problem", "rival", "method", "log L", "s", "s, whole call", "converged", "note", title="All fits"
    )
    for c in comparisons:
        for run in c.runs:
            table.add_row(*_cells(c.name, run))
    console.print(table)


def _cells(name: str, run: Run) -> tuple[str, ...]:
    figures = _figure(run.log_likelihood, ".6f"), _figure(run.seconds, ".4f"), _figure(run.call_seconds, ".4f")
    return (name, run.rival, run.method, *figures, "yes" if run.converged else "no", run.note)


def _figure(value: float | None, form: str) -> str:
    if value is None:
        return "-"
    return format(value, form if abs(value) < READABLE else ".3e")


if __name__ == "__main__":
    main()
