"""Three sets of forty trials for the page on the paper's study: as printed, and of our run under two presets."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from rekka.evaluation.scores import LOG_FLOOR
from rekka.report.document import PresetPart
from rekka.report.text import load_words
from rekka.scaling.registry import is_affine
from rekka.study.hypotheses import Hypothesis, judge_hypotheses
from rekka.study.plan import PRESETS
from rekka.study.tables import mark_selected, tabulate_methods, tabulate_presets, tabulate_selection

ROOT = Path(__file__).resolve().parents[1]
PAPER = json.loads((ROOT / "src" / "rekka" / "verification" / "paper_trials.json").read_text())

METHODS: tuple[str, ...] = tuple(PAPER["trials"]["methods"])
AFFINE = tuple(method for method in METHODS if is_affine(method))
ZSCORE, BOXCOX, AGE = "zscore", "boxcox", "age_at_inspection_1"
CASES: tuple[str, ...] = tuple(PAPER["cases"]["rows"])
TRIALS = len(CASES) * len(METHODS)
STEADY = "evaluations"  # the cost where starts are compared: the clock would add its own differences
FLOOR = -LOG_FLOOR  # 27.63: what a row at the probability floor costs
WORDS = load_words("en")
NAMES = {method: WORDS(f"method.{method}") for method in METHODS}

Row = dict[str, Any]
Stored = dict[str, Any]


@dataclass(frozen=True)
class Side:
    """Forty trials: as the paper prints them, or of our run under a preset. ``key`` is in the names of pictures.

    ``eligible`` is what the paper calls converged: the solver's word under its conditions, certified under ours.
    """

    key: str
    title: str
    preset: PresetPart
    trials: pl.DataFrame

    @cached_property
    def methods(self) -> dict[str, Row]:
        """Counts, means and medians by method."""
        return {row["method"]: row for row in tabulate_methods(self.trials).to_dicts()}

    @cached_property
    def selected(self) -> dict[str, tuple[str, ...]]:
        """The Pareto set of each case."""
        rows = tabulate_selection(self.trials).select("case", "selected").rows()
        return {case: tuple(methods) for case, methods in rows}

    @cached_property
    def hypotheses(self) -> dict[str, Hypothesis]:
        """H1 to H5 on these trials."""
        return {one.code: one for one in judge_hypotheses(self.trials)}

    @cached_property
    def cells(self) -> dict[tuple[str, str], Row]:
        """Trials by case and method."""
        return {(row["case"], row["method"]): row for row in self.trials.to_dicts()}

    def weigh(self, cost: str) -> Side:
        """The same trials, selected by another cost."""
        return replace(self, trials=mark_selected(self.trials, cost))

    def cases(self, *methods: str) -> list[str]:
        """Cases in which all of these methods converged."""
        return [case for case in CASES if all(self.cells[case, method]["eligible"] for method in methods)]

    def values(self, name: str, *methods: str) -> list[float]:
        """A column of the trials that converged, of these methods."""
        return [self.cells[case, method][name] for method in methods for case in self.cases(method)]

    def count(self, name: str) -> int:
        """Of all methods together: converged, certified, selected."""
        return sum(row[name] for row in self.methods.values())


def list_sides(stored: Stored) -> tuple[Side, Side, Side]:
    """The paper as printed, our run under its conditions, our run by the exact likelihood."""
    trials = pl.DataFrame(stored["trials"], infer_schema_length=None)
    order = pl.col("case").replace_strict(dict(zip(CASES, range(len(CASES)), strict=True)))
    ours = trials.sort(order, maintain_order=True)
    presets = {
        name: PresetPart(name=name, words=PRESETS[name].words, cost=cost, eligible=PRESETS[name].eligible)
        for name, cost in stored["plan"]["costs"].items()
    }
    return (
        Side("printed", "paper", presets["paper"], read_paper()),
        Side("paper", "rekka, paper's conditions", presets["paper"], ours.filter(preset="paper")),
        Side("exact", "rekka, exact", presets["exact"], ours.filter(preset="exact")),
    )


def read_paper() -> pl.DataFrame:
    """The paper's appendix as a frame of trials; what it does not print is absent.

    It gives the lowest and the highest log loss of the alternatives to Box-Cox without saying whose they are. Here
    max has the lowest and min-max the highest: no figure depends on which, only on there being these two.
    """
    rows = []
    for case, trials in PAPER["trials"]["rows"].items():
        _, loss, low, high = PAPER["log_loss"]["rows"].get(case, [None] * 4)
        losses = {"max": low, "minmax": high, BOXCOX: loss}
        _, train, _, golden = PAPER["cases"]["rows"][case]
        for method, printed in zip(METHODS, trials, strict=True):
            accuracy, seconds = printed or (None, None)
            own = {"preset": "paper", "case": case, "method": method, "train": train, "golden": golden}
            own |= {"converged": printed is not None, "eligible": printed is not None}
            rows.append(own | {"accuracy": accuracy, "seconds": seconds, "log_loss": losses.get(method)})
    return mark_selected(pl.DataFrame(rows, infer_schema_length=None), "seconds")


def list_causes(stored: Stored) -> dict[tuple[str, str], Row]:
    """Our two presets side by side, by case and method."""
    frame = pl.DataFrame(stored["trials"], infer_schema_length=None)
    return {(row["case"], row["method"]): row for row in tabulate_presets(frame).to_dicts()}


def measure_spread(side: Side, name: str, case: str) -> float:
    """Between the highest and the lowest value of the affine methods in a case."""
    values = [side.cells[case, method][name] for method in AFFINE]
    return float(max(values) - min(values))


def rows_apart(side: Side, case: str) -> int:
    """Golden rows between the most and the least accurate affine fit."""
    return round(measure_spread(side, "accuracy", case) * side.cells[case, ZSCORE]["golden"])
