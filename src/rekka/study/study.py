"""The result of a study: its trials as one frame, and everything that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import polars as pl

import rekka  # for what it loads on first use: an estimator brings scikit-learn with it
from rekka.errors import BadOption, did_you_mean
from rekka.study.hypotheses import Hypothesis, judge_hypotheses
from rekka.study.plan import StudyPlan
from rekka.study.tables import (
    mark_selected,
    tabulate_agreement,
    tabulate_floor,
    tabulate_methods,
    tabulate_presets,
    tabulate_selection,
)
from rekka.study.trial import Case, Fitted, Key, Trial, spread

SCHEMA: dict[str, Any] = {
    "case": pl.String, "preset": pl.String, "method": pl.String, "status": pl.String, "reason": pl.String,
    "converged": pl.Boolean, "certified": pl.Boolean, "eligible": pl.Boolean,
    "success": pl.Boolean, "message": pl.String, "iterations": pl.Int64, "evaluations": pl.Int64,
    "seconds": pl.Float64, "seconds_low": pl.Float64, "seconds_high": pl.Float64, "timings": pl.Int64,
    "log_likelihood": pl.Float64, "verdict": pl.String, "maximum_exists": pl.Boolean, "decrement": pl.Float64,
    "shortfall": pl.Float64, "starts": pl.Int64, "positive_definite": pl.Boolean, "condition_number": pl.Float64,
    "weakest_direction": pl.String, "plateau_train": pl.Float64, "plateau_golden": pl.Float64,
    "accuracy": pl.Float64, "log_loss": pl.Float64, "log_loss_exact": pl.Float64, "macro_recall": pl.Float64,
    "brier": pl.Float64, "rps": pl.Float64, "at_floor": pl.Int64,
    "persistence_accuracy": pl.Float64, "no_covariates_accuracy": pl.Float64, "no_covariates_log_loss": pl.Float64,
    "n_states": pl.Int64, "train": pl.Int64, "golden": pl.Int64, "scored": pl.Int64, "unsupported": pl.Int64,
}  # fmt: skip
TIMES = ("seconds", "seconds_low", "seconds_high")  # the columns that a rerun does not repeat
SCORES = ("accuracy", "log_loss", "log_loss_exact", "macro_recall", "brier", "rps", "at_floor")


@dataclass(frozen=True, eq=False)
class Study:
    """Trials and what follows from them. Made by ``compare`` and ``load_study``.

    ``planned`` is the number of trials there are to be; a run that was stopped has fewer ``results``. Models are
    read when they are asked for.
    """

    plan: StudyPlan
    scheme: str
    planned: int
    results: tuple[Trial, ...]
    described: tuple[Case, ...]
    read_fitted: Callable[[Key], Fitted]
    notes: tuple[str, ...] = ()  # how the tables were understood, and what became of their records

    @cached_property
    def trials(self) -> pl.DataFrame:
        """A row for each trial: what became of it, its costs, certificate, scores and counts, and if selected."""
        cases = {case.name: case for case in self.described}
        lines = [_lay_out(trial, cases[trial.key.case]) for trial in self.results]
        return mark_selected(pl.DataFrame(lines, schema=SCHEMA, orient="row"), self.plan.study.costs())

    @cached_property
    def selection(self) -> pl.DataFrame:
        """For each preset and case the methods selected, and why."""
        return tabulate_selection(self.trials)

    @cached_property
    def methods(self) -> pl.DataFrame:
        """For each preset and method how often it converged and was selected, its mean accuracy and medians."""
        return tabulate_methods(self.trials)

    @cached_property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The paper's five hypotheses, judged on these trials."""
        return judge_hypotheses(self.trials)

    @cached_property
    def agreement(self) -> pl.DataFrame:
        """Whether the methods that are one model, as all affine ones are, agree; and which stopped short."""
        return tabulate_agreement(self.trials)

    @cached_property
    def presets(self) -> pl.DataFrame:
        """The paper's conditions beside the exact ones, and the cause of each difference; empty if one ran."""
        return tabulate_presets(self.trials)

    @cached_property
    def floor(self) -> pl.DataFrame:
        """Selected trials whose log loss is far worse than that of the alternatives."""
        return tabulate_floor(self.trials)

    @cached_property
    def cases(self) -> pl.DataFrame:
        """Each case: rows in each part, states, covariates."""
        lines = [
            (c.name, c.train, c.validation, c.golden, c.n_states, list(c.covariates), list(c.constant))
            for c in self.described
        ]
        counts = dict.fromkeys(("train", "validation", "golden", "n_states"), pl.Int64)
        lists = dict.fromkeys(("covariates", "constant"), pl.List(pl.String))
        return pl.DataFrame(lines, schema={"case": pl.String, **counts, **lists}, orient="row")

    @cached_property
    def baselines(self) -> pl.DataFrame:
        """Scores of saying that nothing changes, and of the model without covariates, on the same golden rows."""
        lines = [
            {"case": case.name, "baseline": name} | _finite(getattr(case, name).to_dict())
            for case in self.described
            for name in ("persistence", "no_covariates")
        ]
        whole = dict.fromkeys(("rows", "unsupported", "at_floor"), pl.Int64)
        shares = dict.fromkeys((name for name in SCORES if name != "at_floor"), pl.Float64)
        return pl.DataFrame(lines, schema={"case": pl.String, "baseline": pl.String, **whole, **shares})

    def model(self, case: str, method: str, preset: str | None = None) -> rekka.ExponentialHazardMarkovModel:
        """The fitted model of a trial; ``preset`` may be left out where there is one."""
        presets = self.plan.study.presets
        if preset is None and len(presets) > 1:
            raise BadOption(
                f"This study has more than one preset; say which: {', '.join(presets)}.", option="preset"
            )
        key = Key(case=case, preset=preset or presets[0], method=method)
        trial = next((trial for trial in self.results if trial.key == key), None)
        if trial is None:
            raise self._no_trial(key)
        text = self.read_fitted(key).model
        if text is None:
            raise BadOption(f"The trial {key} has no model: {trial.reason}")
        return rekka.ExponentialHazardMarkovModel.from_json(text)

    def _no_trial(self, key: Key) -> BadOption:
        plan = self.plan.study
        cases = plan.cases or tuple(case.name for case in self.described)
        for word, there in (("case", cases), ("method", plan.methods), ("preset", plan.presets)):
            name = getattr(key, word)
            if name not in there:
                hint = did_you_mean(name, there)
                return BadOption(f"There is no {word} {name!r} in this study; there are {', '.join(there)}.{hint}")
        return BadOption(f"The trial {key} has not been run yet. Go on with the run first.")

    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables, by name."""
        names = ("trials", "cases", "baselines", "selection", "methods", "agreement", "presets", "floor")
        return {name: getattr(self, name) for name in names}

    def documents(self) -> dict[str, Any]:
        """Trials and hypotheses as plain data."""
        return {
            "trials": {"format": "rekka-trials", "version": 1, "trials": self.trials.to_dicts()},
            "hypotheses": [asdict(hypothesis) for hypothesis in self.hypotheses],
        }

    def __repr__(self) -> str:
        return f"<Study: {len(self.results)} of {self.planned} trials, {len(self.described)} cases>"


def _lay_out(trial: Trial, case: Case) -> dict[str, Any]:
    """A trial as a row of the frame."""
    median, low, high = spread(trial.seconds)
    line: dict[str, Any] = {
        **trial.key.model_dump(),
        "status": trial.status.value,
        "reason": trial.reason,
        "converged": trial.converged,
        "certified": trial.certified,
        "eligible": trial.eligible,
        "log_likelihood": trial.log_likelihood,
        "seconds": median,
        "seconds_low": low,
        "seconds_high": high,
        "timings": len(trial.seconds),
        "persistence_accuracy": case.persistence.accuracy,
        "no_covariates_accuracy": case.no_covariates.accuracy,
        "no_covariates_log_loss": case.no_covariates.log_loss,
        "n_states": case.n_states,
        "train": case.train,
        "golden": case.golden,
        "unsupported": case.persistence.unsupported,
    }
    if trial.outcome is not None:
        line |= {
            name: getattr(trial.outcome, name) for name in ("success", "message", "iterations", "evaluations")
        }
    if trial.certificate is not None:
        line |= {"verdict": trial.certificate.verdict.value} | trial.certificate.figures
    if trial.scores is not None:
        line |= {"scored": trial.scores.rows} | {name: getattr(trial.scores, name) for name in SCORES}
    return _finite({name: line.get(name) for name in SCHEMA})


def _finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with NaN, a score of no rows, as missing."""
    return {n: None if isinstance(v, float) and math.isnan(v) else v for n, v in values.items()}
