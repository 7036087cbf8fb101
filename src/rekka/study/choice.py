"""Choose one method for a component from its trials: the rule, its evidence, and how optimistic it is.

The scores of whatever was chosen, on the rows it was chosen by, are too good. The optimism is measured: the rule
is applied to four fifths of the bridges, what it chooses there is scored on the last fifth, in turn (nested), and
compared with the score of the choice on all of the rows (naive). In folds the fits that the rule compares are made
without the last fifth too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from rekka.core.numerics import generator, quiet
from rekka.evaluation.resampling import Index
from rekka.evaluation.scores import Interval
from rekka.evaluation.selection import (
    COUNT_TOLERANCE,
    SECONDS_TOLERANCE,
    Guard,
    Guarded,
    Point,
    RuleEvidence,
    RuleVerdict,
    Share,
    Standing,
    Step,
    choose_guarded,
    pareto_set,
)
from rekka.model.fit import Options, Predictor
from rekka.model.serial import load_model
from rekka.model.survey import FitTest
from rekka.study.case_rows import FOLDS, IN_FOLDS, CaseRows, score_folds
from rekka.study.plan import BARE, BOUND, GUARDED, PRESETS, SHRINKING, TrialPlan, list_options, model_of
from rekka.study.scores import BridgeScores
from rekka.study.trial import Key, Trial, Value, choose_columns, judge, redrawing, refitting, spread

COSTS = {"seconds": SECONDS_TOLERANCE, "evaluations": COUNT_TOLERANCE, "iterations": COUNT_TOLERANCE}

Result = TypeVar("Result")


class MethodVerdict(Value):
    """Verdict of the rule on one method, with the figures that were needed; ``step`` is where it was dropped."""

    method: str
    kept: bool
    step: Step | None = None
    accuracy: float | None = None
    log_loss: float | None = None
    at_floor: int | None = None
    cost: float | None = None
    difference: float | None = None  # of its log loss from the default's, and the ends of its interval
    low: float | None = None
    high: float | None = None
    bridges: int | None = None
    certified: int | None = None  # of so many resamples drawn
    drawn: int | None = None
    rival: str | None = None


class Optimism(Value):
    """The choice's scores on the rows it was chosen by, beside those of choosing on other bridges' rows."""

    naive_accuracy: float
    nested_accuracy: float
    naive_log_loss: float
    nested_log_loss: float
    folds: int
    changed: int  # folds in which another model was chosen


class HazardBound(Value):
    """An upper bound of the hazard of leaving a state (of any, if None) after years without a departure."""

    state: int | None
    years: float
    rate: float


class Choice(Value):
    """Choice for a case: the rule, the rows it looked at, and the verdict on every method.

    ``rungs`` are methods beyond the plan's that were tried because none of these served (``study/ladder.py``);
    their verdicts are among the others. ``bounds`` are of hazards that have no estimate. With them stand the
    training ``rows`` and ``departures`` of the component and the number of ``others``.
    """

    case: str
    preset: str
    rule: str
    judged_on: str
    cost: str
    default: str | None  # what the others were compared with
    chosen: str | None
    verdicts: tuple[MethodVerdict, ...]
    optimism: Optimism | None = None
    fit_test: FitTest | None = None  # of the chosen model on its training rows
    rungs: tuple[str, ...] = ()
    bounds: tuple[HazardBound, ...] = ()
    rows: int = 0
    departures: int = 0
    others: int = 0

    @property
    def key(self) -> Key:
        """The trial that was chosen."""
        return Key(case=self.case, preset=self.preset, method=self.chosen or "")

    @property
    def rung_keys(self) -> list[Key]:
        """Keys of the rungs that were tried."""
        return [Key(case=self.case, preset=self.preset, method=rung) for rung in self.rungs]

    @property
    def kept(self) -> tuple[str, ...]:
        """The methods that the rule keeps; the chosen one is among them."""
        return tuple(verdict.method for verdict in self.verdicts if verdict.kept)


@dataclass(frozen=True, eq=False)
class Contest:
    """The trials of a case under one preset, and what it takes to compare them."""

    rows: CaseRows
    preset: str
    plan: TrialPlan
    guard: Guard
    trials: Mapping[str, Trial]
    models: Mapping[str, str | None]  # as JSON

    @property
    def cost(self) -> str:
        """Cost that accuracy is weighed against."""
        return self.plan.costs()[self.preset]

    @property
    def strict(self) -> bool:
        """Whether only certified fits count, or all that converged in the paper's sense."""
        return needs_certificate(self.plan.rule, self.guard, self.preset)

    @cached_property
    def eligible(self) -> tuple[str, ...]:
        """The methods that can be chosen."""
        trials = self.trials.items()
        return tuple(name for name, one in trials if (one.certified if self.strict else one.converged))

    @cached_property
    def judged(self) -> Mapping[str, BridgeScores]:
        """Scores of the judged rows, as each eligible method forecasts them."""
        return self.once(lambda name: judge(self.rows, self.fitted(name), self.key(name), self.plan.seed))

    def once(self, function: Callable[[str], Result]) -> dict[str, Result]:
        """Something of each eligible method; refits once for those that are one model (see ``share``)."""
        refits = self.rows.judged_on == IN_FOLDS
        models = {name: self.identify(name) if refits else name for name in self.eligible}
        found: dict[str, Result] = {}
        for name, model in models.items():
            if model not in found:
                found[model] = function(name)
        return {name: found[model] for name, model in models.items()}

    def identify(self, method: str) -> str:
        """Name the model that is refitted: under Newton on the exact likelihood, equal methods are one."""
        return model_of(method) if self.preset == "exact" else method

    def fitted(self, method: str) -> Predictor:
        """The trial's model."""
        text = self.models[method]
        assert text is not None  # a trial that converged has one
        return load_model(text)[0]

    def _options(self, method: str) -> Options | None:
        """Options of the trial's fit, where a penalty or a prior was estimated for it."""
        if method not in (*SHRINKING, BOUND):
            return None
        given = load_model(self.models[method] or "")[1]
        found = {name: given[name] for name in ("scaling", "ridge", "prior") if name in given}
        given = list_options(self.preset, self.rows.clock)
        coding = choose_columns(self.rows, self.key(method)).coding
        return Options(**found, seed=self.plan.seed, **given, threads=1, coding=coding)

    def key(self, method: str) -> Key:
        """Key of a method's trial."""
        return Key(case=self.rows.name, preset=self.preset, method=method)

    def price(self, method: str) -> float:
        """The cost of a method's trial.

        What it took to choose a penalty or a prior is not in it: such a method counts as dearer than all scalings.
        """
        own = self._measure_cost(self.trials[method])
        scalings = [name for name in self.eligible if name not in SHRINKING]
        return own + sum(map(self.price, scalings)) if method in SHRINKING else own

    def _measure_cost(self, trial: Trial) -> float:
        if self.cost == "seconds":
            return spread(trial.seconds)[0]
        return float("nan") if trial.outcome is None else float(getattr(trial.outcome, self.cost))

    @cached_property
    def shares(self) -> dict[str, Share]:
        """Shares of certified resamples, by model, as far as they were asked for."""
        return {}

    def share(self, method: str) -> Share:
        """The share of resamples, drawn by bridge from the training rows, in which a method is certified.

        Of a model without covariates none are drawn: there is nothing simpler to take in its place.
        """
        if method in BARE:
            return Share(0, 0)
        model = self.identify(method)
        if model not in self.shares:
            self.shares[model] = self._resample(method)
        return self.shares[model]

    def _resample(self, method: str) -> Share:
        """Draw and refit until all are drawn, or those that are left can decide nothing.

        A penalty or a prior stays as the trial has it: whether the fit is a maximum is all that is asked.
        """
        share, own = Share(0, 0), self._options(method)
        fit = redrawing(self.rows, self.key(method), self.plan.seed, own, self.fitted(method))
        while not self.guard.is_decided(share):
            rng = generator(self.plan.seed, self.rows.name, "guard", share.drawn)
            try:
                with quiet():
                    refit = fit(rng)
                certified = refit.at_maximum if self.strict else refit.converged
            except (ArithmeticError, ValueError):  # a resample that cannot be fitted is one that is not certified
                certified = False
            share = Share(share.certified + certified, share.drawn + 1)
        return share


def choose_case(contest: Contest) -> Choice:
    """Apply the study's rule to the trials of a case."""
    with quiet():
        guarded = _apply(contest, contest.judged)
        optimism = None if guarded.chosen is None else measure_optimism(contest, guarded.chosen)
    return Choice(
        case=contest.rows.name,
        preset=contest.preset,
        rule=contest.plan.rule,
        judged_on=contest.rows.judged_on,
        cost=contest.cost,
        default=guarded.default,
        chosen=guarded.chosen,
        verdicts=tuple(describe_verdict(contest, name, guarded.rule_verdicts[name]) for name in contest.trials),
        optimism=optimism,
    )


def _apply(contest: Contest, judged: Mapping[str, BridgeScores]) -> Guarded:
    """The rule on these rows."""
    standings = {
        name: Standing(True, judged[name].scores.accuracy, judged[name].scores.log_loss, contest.price(name))
        if name in judged
        else Standing(False)
        for name in contest.trials
    }

    def log_loss(one: str, other: str, confidence: float) -> Interval:
        return judged[one].log_loss_above(judged[other], confidence)

    def accuracy(one: str, other: str, confidence: float) -> Interval:
        return judged[one].accuracy_above(judged[other], confidence)

    evidence = RuleEvidence(log_loss, accuracy, contest.share, contest.identify)
    return apply_rule(contest.plan.rule, contest.guard, standings, evidence, COSTS[contest.cost])


def apply_rule(
    rule: str, guard: Guard, standings: Mapping[str, Standing], evidence: RuleEvidence, tolerance: float
) -> Guarded:
    """The rule that a study chooses by."""
    if rule == GUARDED:
        return choose_guarded(standings, guard, evidence)
    return _choose_pareto(standings, guard.default, tolerance)


def needs_certificate(rule: str, guard: Guard, preset: str) -> bool:
    """Whether only certified fits can be chosen, or all that converged in the paper's sense."""
    return guard.certified if rule == GUARDED else PRESETS[preset].eligible == "certified"


def _choose_pareto(standings: Mapping[str, Standing], default: str, tolerance: float) -> Guarded:
    """The Pareto set; of several the most accurate is the one to use, then the cheapest, then the default."""
    there = {name: one for name, one in standings.items() if one.comparable}
    kept = pareto_set({name: Point(one.accuracy, one.cost) for name, one in there.items()}, tolerance)
    rule_verdicts = {
        name: RuleVerdict(True)
        if name in kept
        else RuleVerdict(False, Step.PARETO if name in there else Step.CERTIFIED)
        for name in standings
    }
    best = min(kept, key=lambda name: (-there[name].accuracy, there[name].cost, name != default), default=None)
    return Guarded(None, best, rule_verdicts)


def measure_optimism(contest: Contest, chosen: str) -> Optimism | None:
    """The choice on all judged rows, beside choices that had not seen the rows they are scored on.

    None where there are fewer than two bridges a fold: there is nothing to choose by.
    """
    whole = contest.judged[chosen]
    if whole.bridges < 2 * FOLDS:
        return None
    parts, changed = [], 0
    for outside, inside in whole.folds(FOLDS, f"nested {contest.plan.seed}"):
        try:
            picked = _apply(contest, _judge_outside(contest, outside)).chosen or chosen
        except (ArithmeticError, ValueError):  # a fold of a fold that cannot be fitted: nothing can be measured
            return None
        parts.append(contest.judged[picked].take(inside))
        changed += model_of(picked) != model_of(chosen)
    naive, nested = whole.scores, whole.join(parts).scores
    return Optimism(
        naive_accuracy=naive.accuracy,
        nested_accuracy=nested.accuracy,
        naive_log_loss=naive.log_loss,
        nested_log_loss=nested.log_loss,
        folds=len(parts),
        changed=changed,
    )


def _judge_outside(contest: Contest, outside: Index) -> Mapping[str, BridgeScores]:
    """Score every eligible method on some of the bridges; in folds, by fits that have not seen the others."""
    rows, seed = contest.rows, contest.plan.seed
    if rows.judged_on != IN_FOLDS:
        return {name: judged.take(outside) for name, judged in contest.judged.items()}
    judged, _ = rows.judged
    names = next(iter(contest.judged.values())).names.gather(outside)
    sample = judged.take(np.isin(judged.bridge, names.to_numpy().astype(np.str_)))
    return contest.once(lambda name: score_folds(sample, refitting(rows, contest.key(name), seed), seed))


def describe_verdict(contest: Contest, method: str, verdict: RuleVerdict) -> MethodVerdict:
    """Describe what the rule made of a method, with the figures it needed."""
    trial, found = contest.trials[method], contest.judged.get(method)
    scores = trial.scores if found is None else found.scores
    figures: dict[str, Any] = {}
    if scores is not None:
        figures = {name: getattr(scores, name) for name in ("accuracy", "log_loss", "at_floor")}
    if verdict.difference is not None:
        mean, low, high, _, bridges = verdict.difference
        figures |= {"difference": mean, "low": low, "high": high, "bridges": bridges}
    if verdict.share is not None:
        figures |= {"certified": verdict.share.certified, "drawn": verdict.share.drawn}
    return MethodVerdict(
        method=method,
        kept=verdict.kept,
        step=verdict.step,
        cost=None if trial.outcome is None else contest.price(method),
        rival=verdict.rival,
        **{n: None if n in ("accuracy", "log_loss") and math.isnan(v) else v for n, v in figures.items()},
    )
