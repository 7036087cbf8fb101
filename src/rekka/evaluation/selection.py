"""Choice among the trials of a case: the paper's Pareto rule over accuracy and cost, and the guarded rule.

**pareto** (the paper's):

    a dominates b: accuracy and -cost of a are both no worse than b's, and one of them is better  (Definition 4)
    Sel(c) = {m eligible in c : no eligible m' dominates m}                                     (Eq. pareto-set)

All that are not dominated are kept, ties included; of no eligible method nothing is kept. "Better" means by more
than a tolerance, "no worse" means by no more than it.

Among eligible methods one at least is kept, tolerances or not. Count accuracy and -cost in units of their
tolerances and add them up: a domination gains more than 1 in one and loses at most 1 in the other, so the sum
rises, and nothing can dominate the method with the largest sum. (With a tolerance of 0, compare that objective
first and the other second.) Dominance is not transitive within the tolerances: if a is dropped for b and b for c,
c need not dominate a. That takes accuracies 1e-12 apart, which no counted share of rows has.

**guarded** (the paper's recommendation made a rule, and ours). Each step asks one thing of those still there:

    1 CERTIFIED   the fit is a certified maximum of its likelihood
    2 STABLE      so it is in nearly all resamples
    3 ACCURACY    accuracy not lower than the default's, by more than a margin
    4 LOG_LOSS    log loss not materially higher than the default's: no higher on these rows; or, if it is, the
                  interval of the mean paired difference, clustered by bridge, ends below a margin
    5 REPLACED    where a method that is still there has a log loss shown to be lower than the default's (its
                  interval ends below 0), those that have not give way to it
    6 PARETO      no other of those left is no less accurate and no dearer, and better in one

The default is z-score unless told otherwise; where it does not pass 1 and 2 itself, the one with the lowest log
loss of those that do stands in for it. It is not asked 3 and 4, which compare with it. Who does not pass 2 was
certified by luck: nothing may be left, and that is the answer. Burden of proof: a method that did worse than the
default, and cannot be shown to be within the margin because there are few rows, does not pass 4. Step 5 stands
before 6 because a better forecast is worth an evaluation more: accuracy and cost only break ties.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from rekka.core.errors import BadValues
from rekka.evaluation.scores import CONFIDENCE, Interval

ACCURACY_TOLERANCE = 1e-12  # paper, after Eq. pareto-set
SECONDS_TOLERANCE = 1e-9  # paper, after Eq. pareto-set
LOSS_TOLERANCE = 1e-9  # log losses of one model, fitted twice, differ by rounding
ROUNDING = 1e-9  # of a share
COUNT_TOLERANCE = 0.0  # evaluations and iterations are whole numbers


class Point(NamedTuple):
    """Accuracy of a trial, the more the better, and its cost, the less the better."""

    accuracy: float
    cost: float


def dominates(a: Point, b: Point, cost_tolerance: float = SECONDS_TOLERANCE) -> bool:
    """Whether a is no worse than b in accuracy and in cost, and better in one (Definition 4)."""
    accuracy, saving = a.accuracy - b.accuracy, b.cost - a.cost
    no_worse = accuracy >= -ACCURACY_TOLERANCE and saving >= -cost_tolerance
    return no_worse and (accuracy > ACCURACY_TOLERANCE or saving > cost_tolerance)


def ties(a: Point, b: Point, cost_tolerance: float = SECONDS_TOLERANCE) -> bool:
    """Whether a and b are the same in accuracy and in cost, within the tolerances."""
    return abs(a.accuracy - b.accuracy) <= ACCURACY_TOLERANCE and abs(a.cost - b.cost) <= cost_tolerance


def pareto_set(points: Mapping[str, Point], cost_tolerance: float = SECONDS_TOLERANCE) -> tuple[str, ...]:
    """The methods that no other dominates, in the order given (Eq. pareto-set). Give eligible methods only."""
    for method, point in points.items():
        if not (math.isfinite(point.accuracy) and math.isfinite(point.cost)):
            raise BadValues(
                f"{method} has accuracy {point.accuracy} and cost {point.cost}; a trial without finite figures "
                "cannot be compared. Leave it out: it is not eligible.",
                method=method,
                point=point,
            )
    return tuple(m for m, p in points.items() if not any(dominates(q, p, cost_tolerance) for q in points.values()))


class Step(enum.StrEnum):
    """The steps of the guarded rule; the value is what is asked."""

    CERTIFIED = "a certified maximum"
    STABLE = "a maximum across resamples"
    ACCURACY = "accuracy not lower"
    LOG_LOSS = "log loss not materially worse"
    REPLACED = "no log loss shown to be lower"
    PARETO = "accuracy and cost"

    @classmethod
    def _missing_(cls, value: object) -> Step | None:
        """Read the words of earlier runs."""
        return cls.STABLE if value == "certified across resamples" else None


class Guard(BaseModel):
    """The margins of the guarded rule.

    ``log_loss_margin`` is in log loss: at 0.02 what happened has, in the geometric mean, a probability at most 2 %
    lower. ``stable_share`` of ``resamples`` refits must reach a maximum. With ``certified`` false the first step
    asks only for convergence in the paper's sense: for published figures, which come without certificates.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: str = "zscore"
    certified: bool = True
    accuracy_margin: float = Field(default=0.0, ge=0, le=1)
    log_loss_margin: float = Field(default=0.02, ge=0)
    confidence: float = Field(default=CONFIDENCE, gt=0.5, lt=1)
    resamples: int = Field(default=20, ge=0)
    stable_share: float = Field(default=0.9, ge=0, le=1)


class Standing(NamedTuple):
    """A method as it stands before the rule: if it is certified, and if so its scores and cost."""

    certified: bool
    accuracy: float = math.nan
    log_loss: float = math.nan
    cost: float = math.nan

    @property
    def comparable(self) -> bool:
        """Whether there is something to compare."""
        return self.certified and all(map(math.isfinite, (self.accuracy, self.log_loss, self.cost)))


class Share(NamedTuple):
    """Number of certified refits among those drawn; drawing ends as soon as too many are not."""

    certified: int
    drawn: int

    @property
    def value(self) -> float:
        """Share of certified refits; 1 where none were drawn."""
        return self.certified / self.drawn if self.drawn else 1.0


@dataclass(frozen=True)
class RuleVerdict:
    """Whether a method is kept; if not, the step at which it fell, and the evidence that was asked for."""

    kept: bool
    step: Step | None = None
    difference: Interval | None = None  # of its log loss from the default's
    share: Share | None = None  # of the resamples in which it is certified
    rival: str | None = None  # to whom it gave way


class Guarded(NamedTuple):
    """``default`` is what the others were compared with, ``chosen`` the one to use; None where there is none."""

    default: str | None
    chosen: str | None
    rule_verdicts: dict[str, RuleVerdict]


def choose_guarded(
    standings: Mapping[str, Standing],
    guard: Guard,
    difference: Callable[[str, str], Interval],
    share: Callable[[str], Share],
    cost_tolerance: float = COUNT_TOLERANCE,
) -> Guarded:
    """The guarded rule. ``difference(a, b)`` is log loss of a minus that of b; both are asked only as needed."""
    there = {name: one for name, one in standings.items() if one.comparable}
    rule_verdicts = {name: RuleVerdict(False, Step.CERTIFIED) for name in standings if name not in there}  # 1
    shares = {name: share(name) for name in there}
    found: dict[str, Interval] = {}

    def drop(name: str, step: Step, rival: str | None = None) -> None:
        rule_verdicts[name] = RuleVerdict(False, step, found.get(name), shares[name], rival)
        del there[name]

    for name in [name for name in there if shares[name].value < guard.stable_share - ROUNDING]:
        drop(name, Step.STABLE)  # 2
    if not there:
        return Guarded(None, None, {name: rule_verdicts[name] for name in standings})
    default = guard.default if guard.default in there else min(there, key=lambda name: there[name].log_loss)
    for name in [name for name in there if name != default]:
        if there[name].accuracy < there[default].accuracy - guard.accuracy_margin - ACCURACY_TOLERANCE:
            drop(name, Step.ACCURACY, default)  # 3
            continue
        found[name] = difference(name, default)
        if not (found[name].mean <= LOSS_TOLERANCE or found[name].high <= guard.log_loss_margin):
            drop(name, Step.LOG_LOSS, default)  # 4
    better = [name for name in there if name in found and found[name].high < -LOSS_TOLERANCE]
    for name in [name for name in there if better and name not in better]:
        drop(name, Step.REPLACED, min(better, key=lambda one: found[one].mean))  # 5
    points = {name: Point(one.accuracy, one.cost) for name, one in there.items()}
    front = pareto_set(points, cost_tolerance)
    for name in [name for name in points if name not in front]:
        rivals = [one for one in points if dominates(points[one], points[name], cost_tolerance)]
        drop(name, Step.PARETO, next((one for one in rivals if one in front), rivals[0]))  # 6
    rule_verdicts |= {name: RuleVerdict(True, None, found.get(name), shares[name]) for name in there}
    chosen = min(there, key=lambda name: (name != default, there[name].log_loss), default=None)
    return Guarded(default, chosen, {name: rule_verdicts[name] for name in standings})
