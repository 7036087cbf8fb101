"""The aims of the package, each judged on the figures of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks import rekka_newton, rival_msm
from benchmarks.problems import ONTARIO
from benchmarks.runs import Run
from benchmarks.scaling import LINEAR_FROM, Point, exponent

LIKELIHOOD_TOLERANCE = 1e-6  # relative
TIMES_MSM = 1000.0
TIMES_PAPER = 200.0
LARGEST_EXPONENT = 1.1
NS_PER_ROW = 100.0
MEGABYTES = 1000.0


@dataclass(frozen=True)
class Comparison:
    """All runs on one problem."""

    name: str
    rows: int
    n_states: int
    runs: tuple[Run, ...]

    def ours(self, threads: str) -> Run:
        """Our fit, by its number of threads."""
        return next(run for run in self.runs if run.rival == "rekka" and run.method == threads)

    def msm(self) -> Run | None:
        """The best converging method of msm."""
        return rival_msm.best([run for run in self.runs if run.rival == "msm"])

    def paper(self, scaling: str = "zscore") -> Run | None:
        """The paper's way under one scaling."""
        return next((run for run in self.runs if run.rival == "paper" and run.method == scaling), None)

    def msm_ratio(self, threads: str, *, typical: bool = False) -> float | None:
        """How many times faster than msm our optimizer is; see ``_ratio``."""
        return _ratio(self.msm(), self.ours(threads), typical)

    def paper_ratio(self, threads: str, *, typical: bool = False) -> float | None:
        """How many times faster than the paper's way with z-score our optimizer is."""
        return _ratio(self.paper(), self.ours(threads), typical)

    def likelihood_gap(self) -> float | None:
        """Ours less the highest that any method of msm reached, relative; negative means msm is better."""
        theirs = [r.log_likelihood for r in self.runs if r.rival == "msm" and r.log_likelihood is not None]
        ours = self.ours(rekka_newton.ALL_THREADS).log_likelihood
        if not theirs or ours is None:
            return None
        return (ours - max(theirs)) / abs(max(theirs))


@dataclass(frozen=True)
class Aim:
    """One aim, its figure in words, and whether it is met; None where it was not measured."""

    aim: str
    figure: str
    met: bool | None


def judge(comparisons: Sequence[Comparison], points: Sequence[Point], megabytes: float | None) -> list[Aim]:
    """Every aim, in the order of the issue."""
    real = [c for c in comparisons if c.name == ONTARIO]
    drawn = [c for c in comparisons if c.name != ONTARIO]
    return [
        _likelihood_aim(comparisons),
        _speed_aim(f"{TIMES_MSM:.0f} times msm, Ontario", real, Comparison.msm_ratio, TIMES_MSM),
        _speed_aim(f"{TIMES_PAPER:.0f} times the paper's way, Ontario", real, Comparison.paper_ratio, TIMES_PAPER),
        _speed_aim(
            f"{TIMES_PAPER:.0f} times the paper's way, every simulated case",
            drawn,
            Comparison.paper_ratio,
            TIMES_PAPER,
        ),
        *_scaling_aims(points),
        Aim(
            "1e6 rows by 4 covariates in under 1 GB",
            "not measured" if megabytes is None else f"{megabytes:.0f} MB at the peak",
            None if megabytes is None else megabytes < MEGABYTES,
        ),
    ]


def _likelihood_aim(comparisons: Sequence[Comparison]) -> Aim:
    aim = "log-likelihood equal to msm's to 1e-6 relative, or better"
    crashed = [c.name for c in comparisons if c.ours(rekka_newton.ALL_THREADS).log_likelihood is None]
    gaps = {c.name: gap for c in comparisons if (gap := c.likelihood_gap()) is not None}
    if not gaps:
        return Aim(aim, "not measured", None)
    lowest = min(gaps, key=lambda name: gaps[name])
    figure = f"lowest of {len(gaps)}: {gaps[lowest]:+.1e} relative ({lowest})"
    if crashed:
        figure += f"; no result for {', '.join(crashed)}"
    return Aim(aim, figure, gaps[lowest] >= -LIKELIHOOD_TOLERANCE and not crashed)


def _speed_aim(
    aim: str, comparisons: Sequence[Comparison], ratio: Callable[..., float | None], least: float
) -> Aim:
    """Judged on one thread, because both rivals use one, and on our median against their fastest."""
    one = rekka_newton.ONE_THREAD
    typical = [r for c in comparisons if (r := ratio(c, one, typical=True)) is not None]
    fastest = [r for c in comparisons if (r := ratio(c, one)) is not None]
    if not typical:
        return Aim(aim, "not measured", None)
    if len(typical) == 1:
        every = ratio(comparisons[0], rekka_newton.ALL_THREADS)
        figure = (
            f"{typical[0]:,.0f} times by our median, {fastest[0]:,.0f} by our fastest, {every:,.0f} on all threads"
        )
    else:
        figure = f"{min(typical):,.0f} to {max(typical):,.0f} times by our median, middle {median(typical):,.0f}"
        figure += f", {len(typical)} of {len(comparisons)} cases"
    return Aim(aim, figure, min(typical) >= least and len(typical) == len(comparisons))


def _scaling_aims(points: Sequence[Point]) -> list[Aim]:
    linear, per_row = (
        "cost linear in rows",
        "at most 100 ns a row for value, gradient and Hessian, one core, K = 5",
    )
    used = [p for p in points if p.rows >= LINEAR_FROM]
    if len(used) < 2:
        return [Aim(linear, "not measured", None), Aim(per_row, "not measured", None)]
    power = exponent(points)
    figures = [p.ns_per_row_1_thread for p in used]
    return [
        Aim(linear, f"rows to the power {power:.3f}, from {LINEAR_FROM:.0e} rows on", power <= LARGEST_EXPONENT),
        Aim(per_row, f"{min(figures):.0f} to {max(figures):.0f} ns", max(figures) <= NS_PER_ROW),
    ]


def _ratio(theirs: Run | None, ours: Run, typical: bool) -> float | None:
    """Their fastest over our fastest, or over our median.

    We repeat more often than a slow rival can, which flatters our fastest on a busy machine; our median does not.
    """
    seconds = ours.median_seconds if typical else ours.seconds
    if theirs is None or theirs.seconds is None or seconds is None:
        return None
    return theirs.seconds / seconds


def print_aims(aims: Sequence[Aim], console: Console) -> None:
    """Met or not."""
    table = Table("aim", "figure", "", title="Aims")
    words = {True: "met", False: "NOT MET", None: "-"}
    for aim in aims:
        table.add_row(aim.aim, aim.figure, words[aim.met])
    console.print(table)
