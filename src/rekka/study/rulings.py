"""What the guarded rule did: which step, which figure, which threshold; each a key with values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rekka.core.words import ENGLISH, Said, load_words, say
from rekka.evaluation.selection import Guard, Step
from rekka.study.cases import FOLDS
from rekka.study.choosing import Choice, Verdict
from rekka.study.methods import SHRINKING, model_of
from rekka.study.plan import GUARDED
from rekka.study.reasons import join_names, name_cost
from rekka.study.trial import Trial

SAME_LOSS = 1e-6  # of a log loss, relatively: fits of one model at one maximum differ by far less
NUMBERS = {step: number for number, step in enumerate(Step, start=1)}


def tell_method(choice: Choice, verdict: Verdict, guard: Guard, trial: Trial) -> str:
    """The sentence of one method, in English."""
    return load_words(ENGLISH).tell(explain_method(choice, verdict, guard, trial))


def tell_case(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> str:
    """The case in one English sentence: what was chosen and why."""
    return load_words(ENGLISH).tell(explain_case(choice, guard, trials))


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
