"""What the guarded rule did, in sentences: which step, which figure, which threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rekka.core.errors import count_of
from rekka.evaluation.selection import Guard, Step
from rekka.study.cases import WORDS
from rekka.study.choosing import Choice, Verdict
from rekka.study.methods import SHRINKING, model_of
from rekka.study.plan import GUARDED
from rekka.study.reasons import join_names, name_cost
from rekka.study.trial import Trial

SAME_LOSS = 1e-6  # of a log loss, relatively: fits of one model at one maximum differ by far less
FEWER = "Leave covariates out, merge states, or join similar cases"
NUMBERS = {step: number for number, step in enumerate(Step, start=1)}
REMEDIES = {
    "paper": "Fit with the exact preset: --preset exact",
    "exact": "Leave covariates out, merge states, or let a penalty or the other cases hold the coefficients: "
    "--methods paper,small",
}


def tell_method(choice: Choice, verdict: Verdict, guard: Guard, trial: Trial) -> str:
    """The sentence of one method."""
    if verdict.kept:
        return _tell_kept(choice, verdict)
    told = {
        Step.CERTIFIED: lambda: f"{_why_not(trial)}{_loss(choice, verdict, guard)}",
        Step.ACCURACY: lambda: _tell_accuracy(choice, verdict, guard),
        Step.LOG_LOSS: lambda: f"{_tell_log_loss(verdict, guard)}{_loss(choice, verdict, guard)}",
        Step.STABLE: lambda: _tell_unstable(verdict, guard),
        Step.REPLACED: lambda: f"that of {verdict.rival} is shown to be, {_against(_find(choice, verdict.rival))}",
        Step.PARETO: lambda: _tell_dominated(choice, verdict),
    }
    step = verdict.step or Step.CERTIFIED
    at = f" at step {NUMBERS[step]}, {step}" if choice.rule == GUARDED else ""
    return f"{verdict.method} is dropped{at}: {told[step]()}"


def tell_case(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> str:
    """The case in one sentence: what was chosen and why."""
    if choice.chosen is None:
        return _tell_none(choice, guard, trials)
    same = list_same(choice)
    name = choice.chosen + (f" (one model with {join_names(same)})" if same else "")
    chosen = _find(choice, choice.chosen)
    if choice.default is None:
        price = name_cost(chosen.cost or 0.0, choice.cost)
        return f"{name}: the most accurate of those that no other beats ({chosen.accuracy:.4f}, {price})"
    if choice.chosen != choice.default:
        return f"{name} replaces {choice.default}: {_gain(choice, chosen)}"
    beside = [m for m in choice.kept if m != choice.chosen and m not in same]
    joined = f"; {join_names(beside)} may stand beside it" if beside else ""
    if choice.default == guard.default:
        return f"{name} stays{joined}" if beside else f"{name}: no other passes every step"
    missing = guard.default not in (verdict.method for verdict in choice.verdicts)
    why = "is not among the methods" if missing else "does not pass steps 1 and 2"
    return f"{name}: the lowest log loss of those that pass steps 1 and 2; {guard.default} {why}{joined}"


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


def _tell_none(choice: Choice, guard: Guard, trials: Mapping[str, Trial]) -> str:
    tried = [verdict for verdict in choice.verdicts if verdict.drawn]
    if tried:
        best = max(tried, key=lambda one: ((one.certified or 0) / (one.drawn or 1), one.method == guard.default))
        found = f"reaches a maximum in {_name_share(best, guard)} only: a matter of luck"
        words = f"{best.method} is certified here, but {found}"
        return f"none: {words}. {_remedy(choice)}"
    if any(trial.certified for trial in trials.values()):
        rows = WORDS[choice.judged_on]
        return f"none: there are certified fits, but none of the {rows} can be scored. --select-on takes others"
    reasons = dict.fromkeys(_why_not(trial) for trial in trials.values())
    return f"none: no fit is a certified maximum ({'; '.join(reasons)}). {_remedy(choice)}"


def _remedy(choice: Choice) -> str:
    tried = {verdict.method for verdict in choice.verdicts}
    found = REMEDIES.get(choice.preset, REMEDIES["exact"])
    return found if choice.preset == "paper" or not tried & set(SHRINKING) else FEWER


def _tell_kept(choice: Choice, verdict: Verdict) -> str:
    own = f"accuracy {verdict.accuracy:.4f}, log loss {verdict.log_loss:.3f}"
    if verdict.method == choice.default:
        return f"{verdict.method} stays, the method that others have to match ({own})"
    if choice.default is not None and model_of(verdict.method) == model_of(choice.default):
        return f"{verdict.method} is one model with {choice.default} ({own})"
    if choice.rule != GUARDED or choice.default is None:
        return f"{verdict.method} is kept ({own})"
    if verdict.method != choice.chosen and choice.default not in choice.kept:
        return f"{verdict.method} may stand beside {choice.chosen} ({own})"
    verb = "replaces" if verdict.method == choice.chosen else "joins"
    return f"{verdict.method} {verb} {choice.default}: {_gain(choice, verdict)}"


def _gain(choice: Choice, verdict: Verdict) -> str:
    """What the method has over the default: what decided first, then the rest."""
    theirs = _find(choice, choice.default)
    loss = f"log loss {_against(verdict)}"
    accuracy = f"accuracy {verdict.accuracy:.4f} against {theirs.accuracy:.4f}"
    if theirs.step is Step.REPLACED or verdict.difference is None:
        return f"{loss}, {accuracy}"
    if theirs.rival not in (None, verdict.method):
        first = f"the lowest log loss of those that {theirs.rival} leaves beside it"
        return f"{first}, {_against(verdict)}, {accuracy}"
    mine, other = (name_cost(one.cost or 0.0, choice.cost) for one in (verdict, theirs))
    shown = verdict.high is not None and verdict.high < 0
    return f"{accuracy}, {mine} against {other}; {loss}{'' if shown else ', not shown to differ'}"


def _why_not(trial: Trial) -> str:
    """Why a trial is not certified, without what to do about it."""
    return (trial.reason or "no row could be scored").split("; remedies: ")[0].rstrip(".")


def _loss(choice: Choice, verdict: Verdict, guard: Guard) -> str:
    """Its log loss beside that of the method to match, and the rows on the floor."""
    if verdict.log_loss is None:
        return ""
    other = choice.default or guard.default
    theirs = next((v.log_loss for v in choice.verdicts if v.method == other != verdict.method), None)
    beside = "" if theirs is None else f", {other}'s {theirs:.3f}"
    on_floor = f"; {count_of(verdict.at_floor, 'row')} on the probability floor" if verdict.at_floor else ""
    return f"; its log loss is {verdict.log_loss:.3f}{beside}{on_floor}"


def _tell_accuracy(choice: Choice, verdict: Verdict, guard: Guard) -> str:
    theirs = _find(choice, choice.default)
    margin = f" by more than {guard.accuracy_margin:g}" if guard.accuracy_margin else ""
    lower = f"{verdict.accuracy:.4f} is below {choice.default}'s {theirs.accuracy:.4f}{margin}"
    return f"{lower}{_loss(choice, verdict, guard)}"


def _tell_log_loss(verdict: Verdict, guard: Guard) -> str:
    worse = verdict.low is not None and verdict.low > guard.log_loss_margin
    shown = "beyond" if worse else "and not shown to be within"
    return f"{_against(verdict)}, {shown} {guard.log_loss_margin:g}"


def _tell_unstable(verdict: Verdict, guard: Guard) -> str:
    return f"in {_name_share(verdict, guard)}, where {guard.stable_share:.0%} are asked for"


def _name_share(verdict: Verdict, guard: Guard) -> str:
    """'18 of 20 resamples', or 'the first 3' where that was enough to know."""
    first = "" if verdict.drawn == guard.resamples else "the first "
    return f"{verdict.certified} of {first}{count_of(verdict.drawn or 0, 'resample')}"


def _tell_dominated(choice: Choice, verdict: Verdict) -> str:
    mine = f"{verdict.accuracy:.4f}, {name_cost(verdict.cost or 0.0, choice.cost)}"
    if verdict.rival is None:
        return f"another is no less accurate and no dearer ({mine})"
    rival = _find(choice, verdict.rival)
    theirs = f"{rival.accuracy:.4f}, {name_cost(rival.cost or 0.0, choice.cost)}"
    return f"{verdict.rival} is no less accurate and no dearer ({theirs} against {mine})"


def _find(choice: Choice, method: str | None) -> Verdict:
    return next(verdict for verdict in choice.verdicts if verdict.method == method)


def _against(verdict: Verdict) -> str:
    """'lower by 0.0210 (interval -0.0340 to -0.0080, 112 bridges)'; where there is no interval, without it."""
    if verdict.difference is None:
        return "not compared"
    way = "lower" if verdict.difference < 0 else "higher"
    text = f"{way} by {abs(verdict.difference):.4f}"
    if verdict.low is None or verdict.high is None or verdict.low == verdict.high:
        return text
    if not (math.isfinite(verdict.low) and math.isfinite(verdict.high)):
        return f"{text} (no interval: {count_of(verdict.bridges or 0, 'bridge')})"
    ends = f"{verdict.low:+.4f} to {verdict.high:+.4f}"
    return f"{text} (interval {ends}, {count_of(verdict.bridges or 0, 'bridge')})"
