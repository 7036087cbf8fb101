"""The ladder: what serves where no method of the plan is certified and stable, so that there is always an answer.

    pooled          z-score, its coefficients held by those of the other components
    ridge           z-score with a penalty on the slopes
    no_covariates   one hazard for each state
    bound           the same, with an upper bound for hazards of states that nobody has left

The rungs are tried in this order, those that the plan has among its methods left out. The first is chosen that is
a certified maximum (of the likelihood with its penalty), stable across resamples by the same rule as any method,
and whose log loss is not shown to be higher than that of the model without covariates, on the rows that methods
are judged on. Confirmation rows are looked at afterwards, once, with what was chosen.

A rung is a trial like any other, with its model and its file. Only the guarded rule under the exact preset has a
ladder: the paper's rule and conditions end where the paper ends. Where a component has no departure at all nothing
is fitted; the bound of its hazard is stated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rekka.core.numerics import quiet
from rekka.evaluation.bounds import Bound, find_bounds, find_common_bound
from rekka.evaluation.ridge import find_without_rate
from rekka.evaluation.selection import RuleVerdict, Step
from rekka.study.case_rows import CaseRows
from rekka.study.choice import Choice, Contest, HazardBound, describe_verdict
from rekka.study.plan import BARE, BOUND, GUARDED, PLAIN, POOLED, RIDGE, StudyPlan, TrialPlan
from rekka.study.trial import Fitted, Key, judge_plain, run_trial

LADDER = (POOLED, RIDGE, PLAIN, BOUND)
PRESET = "exact"


def has_ladder(plan: StudyPlan) -> bool:
    """Whether the ladder can be asked for under a plan."""
    return plan.guard.ladder and plan.study.rule == GUARDED and PRESET in plan.study.presets


def list_rung_keys(plan: StudyPlan, cases: Sequence[str]) -> list[Key]:
    """The keys of all trials that the ladder may need, in order."""
    if not has_ladder(plan):
        return []
    rungs, names = [rung for rung in LADDER if rung not in plan.study.methods], plan.study.cases or cases
    return [Key(case=case, preset=PRESET, method=rung) for case in names for rung in rungs]


def needs_ladder(plan: StudyPlan, choice: Choice) -> bool:
    """Whether a choice has come to nothing, so that the ladder is tried."""
    return choice.chosen is None and has_ladder(plan) and choice.preset == PRESET


def list_rungs(plan: TrialPlan, rows: CaseRows) -> list[str]:
    """The rungs that can be tried with these rows, in order; none where there is no departure."""
    if not rows.moves:
        return []
    able = {
        POOLED: bool(rows.others),
        RIDGE: bool(rows.covariates) and not rows.streamed,
        PLAIN: True,
        BOUND: not rows.streamed and bool(find_without_rate(rows.training.rows).any()),
    }
    return [rung for rung in LADDER if able[rung] and rung not in plan.methods]


def climb(
    rows: CaseRows, plan: StudyPlan, choice: Choice, kept: Mapping[str, Fitted], timed: bool
) -> tuple[Choice, tuple[Fitted, ...]]:
    """Try the rungs until one serves: the choice with it, and the trials that were made.

    ``kept`` are rungs that were fitted before. Where others run at the same time, nothing is ``timed``.
    """
    made, tried = [], []
    verdicts = list(choice.verdicts)
    chosen: str | None = None
    for rung in list_rungs(plan.study, rows):
        key = Key(case=choice.case, preset=choice.preset, method=rung)
        fitted = kept.get(rung)
        if fitted is None:
            fitted = run_trial(rows, key, plan.study.seed, threads=None if timed else 1)
            fitted = fitted if timed else fitted.with_seconds(())
            made.append(fitted)
        trials, models = {rung: fitted.trial}, {rung: fitted.model}
        contest = Contest(rows, choice.preset, plan.study, plan.guard, trials, models)
        with quiet():
            verdict = judge_rung(contest, rung)
            verdicts.append(describe_verdict(contest, rung, verdict))
        tried.append(rung)
        if verdict.kept:
            chosen = rung
            break
    own: dict[str, Any] = {"chosen": chosen, "rungs": tuple(tried), "verdicts": tuple(verdicts)}
    own |= {"rows": rows.counts["train"], "departures": rows.moves, "others": len(rows.others)}
    return choice.model_copy(update=own | {"bounds": _list_bounds(rows, chosen)}), tuple(made)


def judge_rung(contest: Contest, rung: str) -> RuleVerdict:
    """Whether a rung serves: certified, stable, and not shown to be worse than no covariates."""
    if rung not in contest.eligible:
        return RuleVerdict(False, Step.CERTIFIED)
    share, guard = contest.share(rung), contest.guard
    if not guard.is_stable(share):
        return RuleVerdict(False, Step.STABLE, share=share)
    if rung in BARE:
        return RuleVerdict(True, share=share)
    plain = judge_plain(contest.rows, contest.plan.seed)
    if not plain.bridges or not contest.judged[rung].bridges:
        return RuleVerdict(True, share=share)
    difference = contest.judged[rung].log_loss_above(plain, guard.confidence)
    if difference.low > 0:
        return RuleVerdict(False, Step.NOT_WORSE, difference, share, PLAIN)
    return RuleVerdict(True, None, difference, share)


def _list_bounds(rows: CaseRows, chosen: str | None) -> tuple[HazardBound, ...]:
    """The bounds that an answer has: of hazards in the model, or of a component without a departure."""
    found: tuple[Bound, ...] = ()
    if chosen == BOUND:
        found = find_bounds(rows.training.rows)
    elif chosen is None and not rows.moves and rows.counts["train"] and not rows.streamed:
        found = (find_common_bound(rows.training.rows),)
    return tuple(HazardBound(**one._asdict()) for one in found if one.years > 0)
