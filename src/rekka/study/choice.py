"""From the trials of a case to one choice: the rule, its evidence row by row, and how optimistic it was.

The scores of whatever was chosen, on the rows it was chosen by, flatter it. By how much is measured: the rule is
applied again to four fifths of the bridges, what it chooses there is scored on the last fifth, in turn (nested),
and set beside the score of the choice on all of the rows (naive). In folds the fits that the rule compares are
made without the last fifth too.

What the guarded rule did: which step, which figure, which threshold; each a key with values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from rekka.core.language import ENGLISH, Said, load_words, say
from rekka.core.numerics import generator, quiet
from rekka.evaluation.scores import Interval
from rekka.evaluation.selection import (
    ROUNDING,
    Guard,
    Guarded,
    Point,
    Ruling,
    Share,
    Standing,
    Step,
    choose_guarded,
    pareto_set,
)
from rekka.model.fit import Options
from rekka.model.predictor import Predictor
from rekka.model.serial import load_model
from rekka.model.survey import FitTest
from rekka.study.explanations import COSTS, join_names, name_cost
from rekka.study.large import AnyCase, AnyJudged
from rekka.study.plan import GUARDED, PRESETS, SHRINKING, TrialPlan, list_options, model_of
from rekka.study.rows import FOLDS, IN_FOLDS, CaseRows, Judged, forecast_folds
from rekka.study.trial import Key, Trial, Value, judge, redrawing, refitting, spread

Result = TypeVar("Result")


class Verdict(Value):
    """What the rule says of a method, with the figures it was asked for; ``step`` is where it fell."""

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


class Choice(Value):
    """What was chosen for a case, by which rule, on which rows, and what became of every method."""

    case: str
    preset: str
    rule: str
    judged_on: str
    cost: str
    default: str | None  # what the others were compared with
    chosen: str | None
    verdicts: tuple[Verdict, ...]
    optimism: Optimism | None = None
    fit_test: FitTest | None = None  # of the chosen model on its training rows

    @property
    def key(self) -> Key:
        """The trial that was chosen."""
        return Key(case=self.case, preset=self.preset, method=self.chosen or "")

    @property
    def kept(self) -> tuple[str, ...]:
        """The methods that the rule keeps; the chosen one is among them."""
        return tuple(verdict.method for verdict in self.verdicts if verdict.kept)


@dataclass(frozen=True, eq=False)
class Contest:
    """The trials of a case under one preset, and what it takes to compare them."""

    rows: AnyCase
    preset: str
    plan: TrialPlan
    guard: Guard
    trials: Mapping[str, Trial]
    models: Mapping[str, str | None]  # as JSON

    @property
    def cost(self) -> str:
        """What accuracy is weighed against."""
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
    def judged(self) -> Mapping[str, Any]:
        """The judged rows as each eligible method forecasts them: ``Judged``, or ``Tally`` where they are many."""
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
        """What is refitted: under Newton on the exact likelihood, methods that are one model are one."""
        return model_of(method) if self.preset == "exact" else method

    def fitted(self, method: str) -> Predictor:
        """The trial's model."""
        text = self.models[method]
        assert text is not None  # a trial that converged has one
        return load_model(text)[0]

    def _options(self, method: str) -> Options | None:
        """How the trial was fitted, where a penalty or a prior was estimated for it."""
        if method not in SHRINKING:
            return None
        given = load_model(self.models[method] or "")[1]
        found = {name: given[name] for name in ("scaling", "ridge", "prior") if name in given}
        return Options(**found, seed=self.plan.seed, **list_options(self.preset, self.rows.clock), threads=1)

    def key(self, method: str) -> Key:
        """Which trial is a method's."""
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
        """The share of resamples, drawn by bridge from the training rows, in which a method is certified."""
        model = self.identify(method)
        if model not in self.shares:
            self.shares[model] = self._resample(method)
        return self.shares[model]

    def _resample(self, method: str) -> Share:
        """Draw and refit until all are drawn, or so many have failed that the share cannot be reached.

        A penalty or a prior stays as the trial has it: whether the fit is a maximum is all that is asked.
        """
        guard, certified, drawn = self.guard, 0, 0
        own = self._options(method)
        fit = redrawing(self.rows, self.key(method), self.plan.seed, own, self.fitted(method))
        needed = (guard.stable_share - ROUNDING) * guard.resamples
        while drawn < guard.resamples and certified + guard.resamples - drawn >= needed:
            rng = generator(self.plan.seed, self.rows.name, "guard", drawn)
            drawn += 1
            try:
                with quiet():
                    refit = fit(rng)
                certified += refit.at_maximum if self.strict else refit.converged
            except (ArithmeticError, ValueError):  # a resample that cannot be fitted is one that is not certified
                continue
        return Share(certified, drawn)


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
        verdicts=tuple(_tell(contest, name, guarded.rulings[name]) for name in contest.trials),
        optimism=optimism,
    )


def _apply(contest: Contest, judged: Mapping[str, Any]) -> Guarded:
    """The rule on these rows."""
    standings = {
        name: Standing(True, judged[name].scores.accuracy, judged[name].scores.log_loss, contest.price(name))
        if name in judged
        else Standing(False)
        for name in contest.trials
    }

    def difference(one: str, other: str) -> Interval:
        found: Interval = judged[one].log_loss_above(judged[other], contest.guard.confidence)
        return found

    rule, tolerance = contest.plan.rule, COSTS[contest.cost]
    return apply_rule(rule, contest.guard, standings, difference, contest.share, tolerance)


def apply_rule(
    rule: str,
    guard: Guard,
    standings: Mapping[str, Standing],
    difference: Callable[[str, str], Interval],
    share: Callable[[str], Share],
    tolerance: float,
) -> Guarded:
    """The rule that a study chooses by."""
    if rule == GUARDED:
        return choose_guarded(standings, guard, difference, share, tolerance)
    return _choose_pareto(standings, guard.default, tolerance)


def needs_certificate(rule: str, guard: Guard, preset: str) -> bool:
    """Whether only certified fits can be chosen, or all that converged in the paper's sense."""
    return guard.certified if rule == GUARDED else PRESETS[preset].eligible == "certified"


def _choose_pareto(standings: Mapping[str, Standing], default: str, tolerance: float) -> Guarded:
    """The Pareto set; of several the most accurate is the one to use, then the cheapest, then the default."""
    there = {name: one for name, one in standings.items() if one.comparable}
    kept = pareto_set({name: Point(one.accuracy, one.cost) for name, one in there.items()}, tolerance)
    rulings = {
        name: Ruling(True) if name in kept else Ruling(False, Step.PARETO if name in there else Step.CERTIFIED)
        for name in standings
    }
    best = min(kept, key=lambda name: (-there[name].accuracy, there[name].cost, name != default), default=None)
    return Guarded(None, best, rulings)


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


def _judge_outside(contest: Contest, outside: Any) -> Mapping[str, AnyJudged]:
    """Every eligible method on some of the judged rows; in folds, by fits that have not seen the others."""
    rows, seed = contest.rows, contest.plan.seed
    if rows.judged_on != IN_FOLDS or not isinstance(rows, CaseRows):
        return {name: judged.take(outside) for name, judged in contest.judged.items()}
    sample = rows.judged[0].take(outside)

    def judge_method(name: str) -> Judged:
        return Judged(forecast_folds(sample, refitting(rows, contest.key(name), seed), seed), sample.bridge)

    return contest.once(judge_method)


def _tell(contest: Contest, method: str, ruling: Ruling) -> Verdict:
    scores, trial = None, contest.trials[method]
    if method in contest.judged:
        scores = contest.judged[method].scores
    elif trial.scores is not None:
        scores = trial.scores
    difference = ruling.difference
    return Verdict(
        method=method,
        kept=ruling.kept,
        step=ruling.step,
        accuracy=None if scores is None or np.isnan(scores.accuracy) else scores.accuracy,
        log_loss=None if scores is None or np.isnan(scores.log_loss) else scores.log_loss,
        at_floor=None if scores is None else scores.at_floor,
        cost=None if trial.outcome is None else contest.price(method),
        difference=None if difference is None else difference.mean,
        low=None if difference is None else difference.low,
        high=None if difference is None else difference.high,
        bridges=None if difference is None else difference.bridges,
        certified=None if ruling.share is None else ruling.share.certified,
        drawn=None if ruling.share is None else ruling.share.drawn,
        rival=ruling.rival,
    )


SAME_LOSS = 1e-6  # of a log loss, relatively: fits of one model at one maximum differ by far less
NUMBERS = {step: number for number, step in enumerate(Step, start=1)}


def tell_method(choice: Choice, verdict: Verdict, guard: Guard, trial: Trial) -> str:
    """The sentence of one method, in English."""
    return load_words(ENGLISH).format(explain_method(choice, verdict, guard, trial))


def tell_case(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> str:
    """The case in one English sentence: what was chosen and why."""
    return load_words(ENGLISH).format(explain_case(choice, guard, trials))


def explain_method(choice: Choice, verdict: Verdict, guard: Guard, trial: Trial) -> Said:
    """Why one method was kept or dropped."""
    if verdict.kept:
        return _explain_kept(choice, verdict)
    step = verdict.step or Step.CERTIFIED
    why = _explain_drop(choice, verdict, guard, trial, step)
    if choice.rule != GUARDED:
        return say("why.method.dropped", method=verdict.method, why=why)
    own = {"number": NUMBERS[step], "step": name_step(step)}
    return say("why.method.dropped_at", method=verdict.method, why=why, **own)


def name_step(step: Step) -> Said:
    """What a step of the guarded rule asks for."""
    return say(f"step.{step.value.replace(' ', '_')}")


def explain_case(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> Said:
    """What was chosen for a case, and why."""
    if choice.chosen is None:
        return _explain_none(choice, guard, trials)
    same = list_same(choice)
    name: str | Said = choice.chosen
    if same:
        name = say("why.case.same", method=choice.chosen, same=join_names(same))
    chosen = _find(choice, choice.chosen)
    if choice.default is None:
        price = name_cost(chosen.cost or 0.0, choice.cost)
        return say("why.case.most_accurate", name=name, accuracy=chosen.accuracy, price=price)
    if choice.chosen != choice.default:
        return say("why.case.replaces", name=name, default=choice.default, gain=_gain(choice, chosen))
    beside = [m for m in choice.kept if m != choice.chosen and m not in same]
    joined = join_names(beside) if beside else None
    if choice.default == guard.default:
        return say("why.case.stays" if beside else "why.case.alone", name=name, beside=joined)
    missing = guard.default not in (verdict.method for verdict in choice.verdicts)
    key = f"{'missing' if missing else 'failing'}{'_beside' if beside else ''}"
    return say(f"why.case.{key}", name=name, default=guard.default, beside=joined)


def find_reason(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> str:
    """Why this method, or none, in a word; ``tell_case`` tells the same with figures."""
    if choice.chosen is None:
        if any(verdict.drawn for verdict in choice.verdicts):
            return "unstable"
        return "not scored" if any(trial.certified for trial in trials.values()) else "not certified"
    if choice.default is None:
        return "pareto"
    if choice.chosen == choice.default:
        return "stays" if choice.default == guard.default else "stands in"
    replaced = _find(choice, choice.default).step is Step.REPLACED
    return "lower log loss" if replaced else "accuracy and cost"


def list_same(choice: Choice) -> list[str]:
    """The methods kept beside what was chosen that are one model with it, and forecast the same.

    Under the paper's conditions equals may stop at different points: then they are told apart.
    """
    mine = _find(choice, choice.chosen)
    return [
        other.method
        for other in choice.verdicts
        if other.kept
        and other.method != mine.method
        and model_of(other.method) == model_of(mine.method)
        and math.isclose(other.log_loss or 0.0, mine.log_loss or 0.0, rel_tol=SAME_LOSS)
    ]


def _explain_none(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> Said:
    tried = [verdict for verdict in choice.verdicts if verdict.drawn]
    if tried:
        best = max(tried, key=lambda one: ((one.certified or 0) / (one.drawn or 1), one.method == guard.default))
        share = _name_share(best, guard)
        return say("why.case.luck", method=best.method, share=share, remedy=_remedy(choice))
    if any(trial.certified for trial in trials.values()):
        return say("why.case.not_scored", rows=say(f"rows_of.{choice.judged_on}", folds=FOLDS))
    reasons = {str(why): why for why in map(_why_not, trials.values())}
    return say("why.case.not_certified", reasons=list(reasons.values()), remedy=_remedy(choice))


def _remedy(choice: Choice) -> Said:
    tried = {verdict.method for verdict in choice.verdicts}
    if choice.preset == "paper":
        return say("why.remedy.paper")
    return say("why.remedy.fewer" if tried & set(SHRINKING) else "why.remedy.exact")


def _explain_kept(choice: Choice, verdict: Verdict) -> Said:
    scores = say("why.method.scores", accuracy=verdict.accuracy, log_loss=verdict.log_loss)
    own = {"method": verdict.method, "default": choice.default, "chosen": choice.chosen, "scores": scores}
    if verdict.method == choice.default:
        return say("why.method.stays", **own)
    if choice.default is not None and model_of(verdict.method) == model_of(choice.default):
        return say("why.method.one_model", **own)
    if choice.rule != GUARDED or choice.default is None:
        return say("why.method.kept", **own)
    if verdict.method != choice.chosen and choice.default not in choice.kept:
        return say("why.method.beside", **own)
    key = "why.method.replaces" if verdict.method == choice.chosen else "why.method.joins"
    return say(key, **own, gain=_gain(choice, verdict))


def _gain(choice: Choice, verdict: Verdict) -> Said:
    """What the method has over the default: what decided first, then the rest."""
    theirs = _find(choice, choice.default)
    mine, other = (name_cost(one.cost or 0.0, choice.cost) for one in (verdict, theirs))
    own: dict[str, Any] = {"accuracy": verdict.accuracy, "theirs": theirs.accuracy}
    own |= {"price": mine, "their_price": other}
    own |= {"rival": theirs.rival, "difference": _against(verdict)}
    if theirs.step is Step.REPLACED or verdict.difference is None:
        return say("why.gain.loss_first", **own)
    if theirs.rival not in (None, verdict.method):
        return say("why.gain.lowest", **own)
    shown = verdict.high is not None and verdict.high < 0
    return say("why.gain.shown" if shown else "why.gain.not_shown", **own)


def _why_not(trial: Trial) -> str | Said:
    """Why a trial is not certified, without what to do about it."""
    why = (trial.reason or "").split("; remedies: ")[0].rstrip(".")
    return why if trial.reason else say("why.case.no_row")


def _explain_drop(choice: Choice, verdict: Verdict, guard: Guard, trial: Trial, step: Step) -> str | Said:
    """What a method fell for, at a step."""
    if step is Step.CERTIFIED:
        return _with_loss(_why_not(trial), choice, verdict, guard)
    if step is Step.STABLE:
        return say("why.method.unstable", share=_name_share(verdict, guard), asked=guard.stable_share)
    if step is Step.ACCURACY:
        key = "why.method.below_margin" if guard.accuracy_margin else "why.method.below"
        own = {"default": choice.default, "theirs": _find(choice, choice.default).accuracy}
        below = say(key, accuracy=verdict.accuracy, margin=guard.accuracy_margin, **own)
        return _with_loss(below, choice, verdict, guard)
    if step is Step.LOG_LOSS:
        worse = verdict.low is not None and verdict.low > guard.log_loss_margin
        key = "why.method.beyond" if worse else "why.method.not_within"
        far = say(key, difference=_against(verdict), margin=guard.log_loss_margin)
        return _with_loss(far, choice, verdict, guard)
    if step is Step.REPLACED:
        difference = _against(_find(choice, verdict.rival))
        return say("why.method.rival_lower", rival=verdict.rival, difference=difference)
    return _explain_dominated(choice, verdict)


def _with_loss(why: str | Said, choice: Choice, verdict: Verdict, guard: Guard) -> str | Said:
    """A reason with the log loss beside that of the method to match, and the rows on the floor."""
    if verdict.log_loss is None:
        return why
    other = choice.default or guard.default
    theirs = next((v.log_loss for v in choice.verdicts if v.method == other != verdict.method), None)
    parts = [name for name, holds in (("other", theirs is not None), ("floor", verdict.at_floor)) if holds]
    figures = {"log_loss": verdict.log_loss, "other": other, "theirs": theirs, "at_floor": verdict.at_floor}
    return say("why.method.with_loss", why=why, loss=say(f"why.loss.{'_'.join(parts) or 'alone'}", **figures))


def _name_share(verdict: Verdict, guard: Guard) -> Said:
    """'18 of 20 resamples', or 'the first 3' where that was enough to know."""
    key = "why.share.all" if verdict.drawn == guard.resamples else "why.share.first"
    return say(key, certified=verdict.certified, drawn=verdict.drawn or 0)


def _explain_dominated(choice: Choice, verdict: Verdict) -> Said:
    own: dict[str, Any] = {"accuracy": verdict.accuracy, "price": name_cost(verdict.cost or 0.0, choice.cost)}
    if verdict.rival is None:
        return say("why.method.another", **own)
    rival = _find(choice, verdict.rival)
    price = name_cost(rival.cost or 0.0, choice.cost)
    theirs = {"rival": verdict.rival, "their_accuracy": rival.accuracy, "their_price": price}
    return say("why.method.dominated", **theirs, **own)


def _find(choice: Choice, method: str | None) -> Verdict:
    return next(verdict for verdict in choice.verdicts if verdict.method == method)


def _against(verdict: Verdict) -> Said:
    """'lower by 0.0210 (interval -0.0340 to -0.0080, 112 bridges)'; where there is no interval, without it."""
    if verdict.difference is None:
        return say("why.difference.none")
    way = say(f"why.difference.{'lower' if verdict.difference < 0 else 'higher'}", by=abs(verdict.difference))
    if verdict.low is None or verdict.high is None or verdict.low == verdict.high:
        return way
    finite = math.isfinite(verdict.low) and math.isfinite(verdict.high)
    figures = {"low": verdict.low, "high": verdict.high, "bridges": verdict.bridges or 0}
    return say("why.difference.interval" if finite else "why.difference.no_interval", way=way, **figures)
