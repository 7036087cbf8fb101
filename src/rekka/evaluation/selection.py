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

**guarded** (the paper's recommendation made a rule, and ours). The default, z-score unless told otherwise, stays
unless another method is shown to forecast better:

    1 CERTIFIED   the fit is a certified maximum of its likelihood
    2 BETTER      its log loss is shown to be lower than the default's: the interval of the mean paired difference,
                  clustered by bridge, lies below 0
    3 ACCURACY    its accuracy is not shown to be lower than the default's by more than a margin
    4 STABLE      the fit is a maximum in nearly all resamples: the interval (Wilson) of that share does not end
                  below 90 %
    5 REPLACED    of several that pass, the one with the lowest log loss replaces the default and the others

The default is asked 1 and 4. Where it does not pass them, the one with the lowest log loss of those that do stands
in for it; where none does, nothing is chosen. Resamples take most of the time, so that they are drawn only for the
default and for those that could replace it.

Intervals allow for the number of rivals m: an interval of level 1 - 2 a / m lies below 0 by chance with
probability a / m, so that in all an equal rival replaces the default with a probability of at most
a = 1 - confidence, 5 % (Bonferroni; ``benchmarks/replacement.py``). No level is below the confidence. Methods that
are one model are one rival. Cost decides nothing: a difference of one evaluation is no reason to change a model.
Accuracy is coarse, and only a loss of it that is shown counts: of 120 simulated sets whose truth was linear in
log x, a rule that let no accuracy be lost dropped the better Box-Cox in 46.

Runs before 0.10.0 had other steps: accuracy not lower at all, log loss not materially worse, then the Pareto rule.
``Step`` still has them, so that such runs can be shown.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from rekka.core.errors import BadValues
from rekka.evaluation.scores import CONFIDENCE, Interval, find_wilson

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
    """The steps of the guarded rule; the value is what is asked.

    NOT_WORSE is asked of the rungs of the ladder alone; LOG_LOSS and PARETO are those of earlier runs.
    """

    CERTIFIED = "a certified maximum"
    BETTER = "log loss shown to be lower"
    ACCURACY = "accuracy not lower"
    STABLE = "a maximum across resamples"
    REPLACED = "no log loss shown to be lower"
    NOT_WORSE = "no worse than no covariates"
    LOG_LOSS = "log loss not materially worse"
    PARETO = "accuracy and cost"

    @classmethod
    def _missing_(cls, value: object) -> Step | None:
        """Read the words of earlier runs."""
        return cls.STABLE if value == "certified across resamples" else None


EARLIER = (Step.LOG_LOSS, Step.PARETO)  # steps that only the guarded rule of runs before 0.10.0 had


class Guard(BaseModel):
    """The margins of the guarded rule.

    ``accuracy_margin`` is a share of rows: at 0.01 a method with a lower log loss is refused where its accuracy is
    shown to be lower by more than one percentage point. ``stable_share`` of the resamples must reach a maximum, as
    far as the interval of ``resamples`` refits can tell. With ``certified`` false the first step asks only for
    convergence in the paper's sense: for published figures, which come without certificates. With ``ladder`` a
    study that ends in nothing tries simpler models. ``log_loss_margin`` is that of runs before 0.10.0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: str = "zscore"
    certified: bool = True
    accuracy_margin: float = Field(default=0.01, ge=0, le=1)
    log_loss_margin: float = Field(default=0.02, ge=0)
    confidence: float = Field(default=CONFIDENCE, gt=0.5, lt=1)
    resamples: int = Field(default=20, ge=0)
    stable_share: float = Field(default=0.9, ge=0, le=1)
    ladder: bool = True

    def identify(self) -> dict[str, Any]:
        """Plain data by which a run is known, without a newer option at its default: old runs still match."""
        return self.model_dump(mode="json", exclude={"ladder"} if self.ladder else None)

    def level(self, rivals: int) -> float:
        """Confidence of the interval of each of so many rivals: never below ``confidence``."""
        return max(self.confidence, 1.0 - 2.0 * (1.0 - self.confidence) / max(rivals, 1))

    @property
    def needed(self) -> int:
        """Certified refits, of all resamples, with which the interval of their share reaches ``stable_share``."""
        n, least = self.resamples, self.stable_share - ROUNDING
        return next((k for k in range(n) if find_wilson(k / n, n, self.confidence)[1] >= least), n)

    def is_decided(self, share: Share) -> bool:
        """Whether resamples that are not drawn yet cannot change who is stable."""
        left = self.resamples - share.drawn
        return left <= 0 or share.certified >= self.needed or share.certified + left < self.needed

    def is_stable(self, share: Share) -> bool:
        """Whether a share of certified resamples is not shown to be too small; of none drawn it is not."""
        return not share.drawn or share.certified >= self.needed


class Standing(NamedTuple):
    """A method as it stands before the rule: if it is certified, and if so its scores and cost."""

    certified: bool
    accuracy: float = math.nan
    log_loss: float = math.nan
    cost: float = math.nan

    @property
    def comparable(self) -> bool:
        """Whether there is something to compare, cost included."""
        return self.scored and math.isfinite(self.cost)

    @property
    def scored(self) -> bool:
        """Whether there are scores to compare."""
        return self.certified and math.isfinite(self.accuracy) and math.isfinite(self.log_loss)


class Share(NamedTuple):
    """Number of certified refits among those drawn; drawing ends as soon as the others decide nothing."""

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


class RuleEvidence(NamedTuple):
    """Evidence that the guarded rule asks for, only as needed.

    ``log_loss(a, b, confidence)`` and ``accuracy(a, b, confidence)`` are the intervals of a's score minus b's on
    rows that neither has seen, ``share(a)`` the certified resamples, ``model(a)`` the name of the model: methods
    of one name are one model.
    """

    log_loss: Callable[[str, str, float], Interval]
    accuracy: Callable[[str, str, float], Interval]
    share: Callable[[str], Share]
    model: Callable[[str], str] = str


def choose_guarded(standings: Mapping[str, Standing], guard: Guard, evidence: RuleEvidence) -> Guarded:
    """The guarded rule."""
    there = {name: one for name, one in standings.items() if one.certified}
    rule_verdicts = {name: RuleVerdict(False, Step.CERTIFIED) for name in standings if name not in there}  # 1
    shares: dict[str, Share] = {}
    found: dict[str, Interval] = {}

    def drop(name: str, step: Step, rival: str | None = None) -> None:
        rule_verdicts[name] = RuleVerdict(False, step, found.get(name), shares.get(evidence.model(name)), rival)
        del there[name]

    def find_stable(names: Sequence[str]) -> str | None:
        """The first that is stable; those before it are dropped."""
        for name in names:
            model = evidence.model(name)
            if model not in shares:
                shares[model] = evidence.share(name)
            if guard.is_stable(shares[model]):
                return name
            drop(name, Step.STABLE)  # 4
        return None

    def by_loss(name: str) -> tuple[bool, float]:
        return name != guard.default, there[name].log_loss if there[name].scored else math.inf

    default = chosen = find_stable(sorted(there, key=by_loss))
    if default is None or chosen is None:
        return Guarded(None, None, {name: rule_verdicts[name] for name in standings})
    rivals = [name for name in there if evidence.model(name) != evidence.model(default)]
    level = guard.level(len(set(map(evidence.model, rivals))))
    for name in rivals:
        if there[name].scored and there[default].scored:
            found[name] = evidence.log_loss(name, default, level)
        if name not in found or not found[name].high < -LOSS_TOLERANCE:
            drop(name, Step.BETTER)  # 2
        elif _is_less_accurate(evidence.accuracy(name, default, guard.confidence), guard):
            drop(name, Step.ACCURACY, default)  # 3
    better = sorted((name for name in rivals if name in there), key=lambda name: found[name].mean)
    chosen = find_stable(better) or default
    for name in [name for name in there if evidence.model(name) != evidence.model(chosen)]:
        drop(name, Step.REPLACED, chosen)  # 5
    for name in there:
        rule_verdicts[name] = RuleVerdict(True, None, found.get(name), shares.get(evidence.model(name)))
    return Guarded(default, chosen, {name: rule_verdicts[name] for name in standings})


def _is_less_accurate(difference: Interval, guard: Guard) -> bool:
    """Whether an accuracy is shown to be lower by more than the margin."""
    return difference.high < -guard.accuracy_margin - ACCURACY_TOLERANCE
