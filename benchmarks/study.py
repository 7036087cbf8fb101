"""The study of 40 trials beside the paper's way, and the whole command: ``python -m benchmarks.study``.

The ten cases of the built-in inventory by max, min-max, z-score and Box-Cox, on the same rows in one run:

- rekka, as ``rekka.compare()`` does it: the exact preset, the median of several timings of each trial;
- the paper's way (``rival_paper.py``): closed form in NumPy, numeric gradient, L-BFGS-B, the fastest of its runs;
- rekka's paper preset, which compiles that closed form. It is timed for the record: it is not the rival.

Then ``rekka compare --out RUN`` in fresh processes, caches warm, and where its seconds go (``stages.py``).
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

import rekka
from benchmarks import configuration, rival_paper
from benchmarks.aims import TIMES_PAPER, Aim, print_aims
from benchmarks.problems import SEED, Problem
from benchmarks.runs import Run

RESULTS = Path(__file__).with_name("results")
ROOT = Path(__file__).resolve().parents[1]
METHODS = ("max", "minmax", "zscore", "boxcox")
REPEATS, RIVAL_REPEATS, COMMANDS = 5, rival_paper.REPEATS, 5
QUICK_CASES = 3  # the smallest
COMMAND_SECONDS = 5.0
SAME = 0.01  # log-likelihood units: closer than this is the same maximum
INTERPRETER = "interpreter started and ended"


@dataclass(frozen=True)
class Trial:
    """One case by one method; seconds are the optimizer alone. None stands for what there is not, or no number.

    ``rekka`` is our median, ``rival`` the fastest of the paper's way, ``compiled`` the median of our paper preset.
    """

    case: str
    method: str
    rows: int
    rekka: float | None
    rival: float | None
    compiled: float | None
    rekka_log_likelihood: float | None
    rival_log_likelihood: float | None
    certified: bool
    rival_success: bool
    rival_note: str

    @property
    def timed(self) -> bool:
        """Whether both ran."""
        return self.rekka is not None and self.rival is not None

    @property
    def same(self) -> bool:
        """Whether the rival reached the maximum that rekka certifies."""
        return self._shortfall() <= SAME

    @property
    def false_success(self) -> bool:
        """Whether the rival reports success, but not at that maximum."""
        return self.rival_success and self.certified and not self.same

    def _shortfall(self) -> float:
        ours, theirs = self.rekka_log_likelihood, self.rival_log_likelihood
        return math.inf if not self.certified or ours is None or theirs is None else ours - theirs


@dataclass(frozen=True)
class Command:
    """Seconds of the whole command, run by run, and of its stages in one more run: the middle one of its kind."""

    seconds: tuple[float, ...]
    stages: dict[str, float]


def measure(
    *,
    repeats: int = REPEATS,
    rival_repeats: int = RIVAL_REPEATS,
    most_cases: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Trial]:
    """Every trial; ``most_cases`` takes only so many, the smallest.

    Ours and theirs are timed case by case, one right after the other, so that both meet the same load.
    """
    parts, covariates = _split_rows()
    by_size = parts.train.group_by("case").len().sort("len", "case")["case"].to_list()
    found = []
    for case in sorted(by_size[:most_cases]):
        tell(f"{case} ...")
        chosen = {"cases": [case], "covariates": covariates, "methods": METHODS}
        exact = rekka.compare(parts, **chosen, repeats=repeats)
        compiled = rekka.compare(parts, **chosen, preset="paper")
        problem = _take_problem(parts, exact)
        for method, ours, twin in zip(METHODS, _rows(exact), _rows(compiled), strict=True):
            theirs = rival_paper.run(problem, method, rival_repeats)
            found.append(_join(problem, method, ours, twin, theirs))
    return found


def time_command(runs: int = COMMANDS, tell: Callable[[str], None] = lambda _: None) -> Command:
    """``rekka compare --out RUN`` in fresh processes, after one that warms the caches."""
    program = shutil.which("rekka", path=sysconfig.get_path("scripts"))
    if program is None:
        sys.exit("The command rekka is not installed beside this Python: pip install --editable .")
    tell("rekka compare --out RUN ...")
    whole = [_run([program, "compare", "--out"])[0] for _ in range(runs + 1)][1:]
    watched = [_run([sys.executable, "-m", "benchmarks.stages"]) for _ in range(runs)]
    seconds, said = sorted(watched)[len(watched) // 2]
    split: dict[str, float] = json.loads(said)
    return Command(tuple(whole), split | {INTERPRETER: seconds - sum(split.values())})


def total(trials: Sequence[Trial], who: str) -> float:
    """Optimizer seconds of all trials: 'rekka', 'rival' or 'compiled'."""
    return sum(getattr(trial, who) or 0.0 for trial in trials)


def ratio(trials: Sequence[Trial]) -> float | None:
    """The paper's way over ours, over the trials that both ran."""
    both = [trial for trial in trials if trial.timed]
    return total(both, "rival") / total(both, "rekka") if both else None


def judge(trials: Sequence[Trial], command: Command | None) -> list[Aim]:
    """The two aims of the study; the ratio is our median against their fastest."""
    times, both = ratio(trials), [trial for trial in trials if trial.timed]
    aim = f"{TIMES_PAPER:.0f} times less optimizer time than the paper's way, the whole study"
    speed = Aim(aim, "not measured", None)
    if times is not None:
        each = [ratio([trial]) or 0.0 for trial in both]
        figure = (
            f"{times:,.0f} times, {len(both)} of {len(trials)} trials; each {min(each):,.0f} to {max(each):,.0f}"
        )
        speed = Aim(aim, figure, times >= TIMES_PAPER and len(both) == len(trials))
    aim = f"rekka compare --out RUN in under {COMMAND_SECONDS:g} seconds"
    if command is None:
        return [speed, Aim(aim, "not measured", None)]
    middle, least = median(command.seconds), min(command.seconds)
    figure = f"median {middle:.2f} s, least {least:.2f} s, {len(command.seconds)} runs"
    return [speed, Aim(aim, figure, middle < COMMAND_SECONDS)]


def summarize(trials: Sequence[Trial]) -> dict[str, Any]:
    """Totals, ratios and who reached the maximum."""
    same = [trial for trial in trials if trial.same]
    return {
        "trials": len(trials),
        "seconds": {who: total(trials, who) for who in ("rekka", "rival", "compiled")},
        "times": ratio(trials),
        "times_by_method": {m: ratio([trial for trial in trials if trial.method == m]) for m in METHODS},
        "times_at_same_maximum": ratio(same),
        "certified": sum(trial.certified for trial in trials),
        "rival_at_same_maximum": len(same),
        "rival_success": sum(trial.rival_success for trial in trials),
        "rival_success_elsewhere": sum(trial.false_success for trial in trials),
    }


def print_trials(trials: Sequence[Trial], console: Console) -> None:
    """Seconds, ratio and log-likelihoods, trial by trial and by method."""
    table = Table("case", "rows", "method", title="Optimizer seconds; x: the paper's way over rekka's exact")
    for column in ("rekka", "paper's way", "x", "paper preset, compiled", "log L rekka", "log L paper's way"):
        table.add_column(column, justify="right")
    table.add_column("the paper's way")
    for t in trials:
        likelihoods = (_figure(value, ".4f") for value in (t.rekka_log_likelihood, t.rival_log_likelihood))
        times = _figure(ratio([t]), ",.0f"), _figure(t.compiled, ".4f")
        table.add_row(
            t.case, str(t.rows), t.method, _figure(t.rekka, ".5f"), _figure(t.rival, ".3f"), *times, *likelihoods,
            _verdict(t),
        )  # fmt: skip
    console.print(table)
    table = Table("method", title="Sum over cases")
    for column in (
        "rekka s",
        "paper's way s",
        "x",
        "paper preset, compiled s",
        "same maximum",
        "success elsewhere",
    ):
        table.add_column(column, justify="right")
    for method in (*METHODS, "all"):
        these = [t for t in trials if method in (t.method, "all")]
        table.add_row(
            method,
            *(f"{total(these, who):.3f}" for who in ("rekka", "rival")),
            _figure(ratio(these), ",.0f"),
            f"{total(these, 'compiled'):.3f}",
            f"{sum(t.same for t in these)} of {len(these)}",
            f"{sum(t.false_success for t in these)} of {sum(t.rival_success for t in these)}",
        )
    console.print(table)
    found = summarize(trials)
    console.print(
        f"Within {SAME} of the certified maximum: {found['rival_at_same_maximum']} of {len(trials)} trials of the "
        f"paper's way, {_figure(found['times_at_same_maximum'], ',.0f')} times over these; success reported "
        f"elsewhere: {found['rival_success_elsewhere']}. The compiled paper preset is rekka's own, not the rival.",
        highlight=False,
    )


def print_stages(command: Command, console: Console) -> None:
    """Where the seconds of the command go, the longest first."""
    whole = sum(command.stages.values())
    table = Table("stage", title=f"rekka compare --out RUN: {whole:.2f} s with a stopwatch on it")
    table.add_column("s", justify="right")
    table.add_column("share", justify="right")
    for stage, seconds in sorted(command.stages.items(), key=lambda item: -item[1]):
        table.add_row(stage, f"{seconds:.3f}", f"{seconds / whole:.0%}")
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, judge, store."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="the smallest cases, each run once; not stored")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="timings of each of our trials")
    parser.add_argument("--rival-repeats", type=int, default=RIVAL_REPEATS, help="and of each of the paper's way")
    parser.add_argument("--commands", type=int, default=COMMANDS, help="runs of the whole command")
    options = parser.parse_args(arguments)
    if min(options.repeats, options.rival_repeats, options.commands) < 1:
        parser.error("at least one run of each is needed")
    console = Console(width=max(160, Console().width))
    repeats, rival_repeats, commands = options.repeats, options.rival_repeats, options.commands
    if options.quick:
        repeats = rival_repeats = commands = 1
    setting = configuration.describe(with_msm=False)
    setting["repeats"] = {"rekka": repeats, "paper": rival_repeats, "compiled": 1, "command": commands}
    command = time_command(commands, console.print)
    most = QUICK_CASES if options.quick else None
    trials = measure(repeats=repeats, rival_repeats=rival_repeats, most_cases=most, tell=console.print)
    aims = judge(trials, command)
    print_trials(trials, console)
    print_stages(command, console)
    print_aims(aims, console)
    unchanged = configuration.source_digest() == setting["source"]
    if not unchanged:
        console.print("The source was edited during this run: its figures belong to no one version. Run it again.")
    if options.quick:
        return
    result = {
        "configuration": setting | {"source_unchanged": unchanged},
        "aims": [asdict(aim) for aim in aims],
        "summary": summarize(trials),
        "command": asdict(command),
        "trials": [asdict(trial) for trial in trials],
    }
    (RESULTS / "study.json").write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    console.print("Stored in benchmarks/results/study.json.")


def _split_rows() -> tuple[rekka.Partition, tuple[str, ...]]:
    """The rows of ``rekka compare`` without data: the built-in inventory, split as it comes."""
    drawn = rekka.simulate_inventory(seed=SEED)
    found = rekka.read_transitions(drawn.inspections, join=[{"file": drawn.inventory}, {"file": drawn.traffic}])
    return rekka.partition_auto(found.frame, seed=SEED), found.covariates


def _take_problem(parts: rekka.Partition, study: rekka.Study) -> Problem:
    """The training rows of a study of one case, with the covariates and the K that it used."""
    case = study.cases.row(0, named=True)
    return Problem(
        case["case"], parts.train.filter(case=case["case"]), tuple(case["covariates"]), case["n_states"]
    )


def _rows(study: rekka.Study) -> list[dict[str, Any]]:
    """The trials of a study of one case, in the order of ``METHODS``."""
    by_method = {trial["method"]: trial for trial in study.trials.to_dicts()}
    return [by_method[method] for method in METHODS]


def _join(problem: Problem, method: str, ours: dict[str, Any], compiled: dict[str, Any], theirs: Run) -> Trial:
    return Trial(
        case=problem.name,
        method=method,
        rows=problem.n_rows,
        rekka=ours["seconds"],
        rival=theirs.seconds,
        compiled=compiled["seconds"],
        rekka_log_likelihood=_finite(ours["log_likelihood"]),
        rival_log_likelihood=_finite(theirs.log_likelihood),
        certified=ours["certified"],
        rival_success=theirs.converged,
        rival_note=theirs.note,
    )


def _run(command: Sequence[str]) -> tuple[float, str]:
    """Seconds of a command that is given a new run folder, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        clock = perf_counter()
        done = subprocess.run([*command, str(Path(folder, "run"))], cwd=ROOT, capture_output=True, text=True)
        seconds = perf_counter() - clock
    if done.returncode:
        sys.exit(f"{' '.join(command[1:])} ended with {done.returncode}:\n{done.stderr}")
    return seconds, done.stdout


def _verdict(trial: Trial) -> str:
    if trial.same:
        return "same maximum"
    if not trial.certified:
        return "no certified maximum to reach"
    return "success, not at the maximum" if trial.rival_success else "stopped without success"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _figure(value: float | None, form: str) -> str:
    """A number for the eye; a dash where there is none, its power of ten where it is huge."""
    if value is None:
        return "-"
    return format(value, form if abs(value) < 1e9 else ".3e")


if __name__ == "__main__":
    main()
