"""How far forecasts can be trusted: one rule, with its thresholds in this place (docs/report.md explains it).

A component's forecasts are

    do not use   if any of DO_NOT_USE holds: no model, no certified maximum, shown worse than a baseline
    caution      if any of CAUTION holds: the model misses its data, is no better than a baseline, ...
    good         if none does

The first reason in the order of the checks decides, and is said; the others are listed. All components together
are as good as the worst of those that hold ``LEAST_SHARE`` of the members in the totals or more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rekka.core.language import Said, say
from rekka.report.document import Answer, BacktestPart, CasePart, Document, ModelPart, NetworkPart, TrustPart

Level = Literal["good", "caution", "do_not_use"]
GOOD: Level = "good"
CAUTION: Level = "caution"
DO_NOT_USE: Level = "do_not_use"
LEVELS: tuple[Level, ...] = (DO_NOT_USE, CAUTION, GOOD)  # the worst first

MARGIN = 0.01  # of accuracy and log loss: what is worse than a baseline by less is as good as it
FEW_EVENTS = 10.0  # departures from a rating, for each coefficient: fewer are few
MOST_APART = 0.25  # share of the members outside the training range, or not inspected for long
MOST_MISSED = 0.25  # share of a backtest's years whose number was outside its prediction interval
LEAST_MISSED = 2  # such years: one is outside by chance in 14 % of backtests of three years
THERE, APART = 1, 2  # tabs of members
LEAST_SHARE = 0.05  # of the members, that a component must hold to count for all together


@dataclass(frozen=True)
class Known:
    """Facts that the trust in a component is judged by."""

    case: CasePart
    answer: Answer
    model: ModelPart | None
    backtest: BacktestPart | None  # of the model that forecasts
    other: BacktestPart | None  # of a model with other elements
    apart: float | None  # share of its members outside the training range, or not inspected for long

    @property
    def of_study(self) -> bool:
        """Whether the study's rows and scores are of the model that forecasts; not where elements were chosen."""
        return self.model is None or self.model.elements is None

    @property
    def tested(self) -> tuple[str, float, float] | None:
        """Last day of a backtest's fit, and the interval of its difference from "no change" on later visits."""
        found = self.backtest
        if found is not None and found.low is not None and found.high is not None:
            return found.until, found.low, found.high
        found = self.other
        if found is not None and found.used_low is not None and found.used_high is not None:
            return found.until, found.used_low, found.used_high
        return None


Check = Callable[[Known], Said | None]


def _no_model(one: Known) -> Said | None:
    return say("trust.reason.no_model") if one.answer.method is None else None


def _not_certified(one: Known) -> Said | None:
    return say("trust.reason.not_certified") if one.model is None or not one.model.certified else None


def _worse_backtest(one: Known) -> Said | None:
    if one.tested is None or one.tested[1] <= 0:
        return None
    return say("trust.reason.worse_backtest", until=one.tested[0])


def _worse_than_no_change(one: Known) -> Said | None:
    worse = one.of_study and one.answer.beats_persistence == "worse"
    return say("trust.reason.worse_no_change") if worse and not _is_better_later(one) else None


def _less_accurate(one: Known) -> Said | None:
    """Accuracy sees the most probable rating alone; a backtest that the probabilities passed outweighs it."""
    worse = one.of_study and one.answer.beats_persistence == "worse"
    if not worse or one.tested is None or not _is_better_later(one):
        return None
    return say("trust.reason.less_accurate", until=one.tested[0])


def _is_better_later(one: Known) -> bool:
    """Whether a backtest shows it to be better than "no change" by the ranked probability score."""
    return one.tested is not None and one.tested[2] < 0


def _worse_than_no_covariates(one: Known) -> Said | None:
    worse = one.of_study and one.answer.beats_no_covariates == "worse"
    return say("trust.reason.worse_no_covariates") if worse else None


def _misfit(one: Known) -> Said | None:
    test = None if one.model is None else one.model.fit_test
    return say("trust.reason.misfit", p=f"{test.p_value:.2g}") if test is not None and test.rejected else None


def _other_model(one: Known) -> Said | None:
    other = one.other
    if other is None or other.high is None or other.high >= 0 or other.score is None:
        return None
    if other.used_score is None:
        return say("trust.reason.other_model", until=other.until)
    if other.used_score <= other.score:
        return None
    ours, theirs = f"{other.used_score:.3f}", f"{other.score:.3f}"
    return say("trust.reason.better_model", until=other.until, ours=ours, theirs=theirs)


def _missed_years(one: Known) -> Said | None:
    years = [
        year
        for year in (() if one.backtest is None else one.backtest.years)
        if year.predicted_low is not None and year.predicted_high is not None
    ]
    high = sum(year.observed < (year.predicted_low or 0) for year in years)
    low = sum(year.observed > (year.predicted_high or 0) for year in years)
    if high + low < LEAST_MISSED or high + low <= MOST_MISSED * len(years):
        return None
    way = "high" if high > low else "low"
    return say(
        f"trust.reason.missed_{way}",
        first=str(years[0].year),
        last=str(years[-1].year),
        missed=max(high, low),
        years=len(years),
    )


def _backtest_not_better(one: Known) -> Said | None:
    if one.tested is None or one.tested[2] < 0 or one.tested[1] > 0:  # better, or worse as said already
        return None
    return say("trust.reason.backtest_not_better", until=one.tested[0])


def _not_confirmed(one: Known) -> Said | None:
    if not one.of_study:
        return say("trust.reason.untested") if one.backtest is None else None
    if one.answer.confirmed:
        return None
    return say("trust.reason.untested" if one.answer.scored_on is None else "trust.reason.not_confirmed")


def _not_tested(one: Known) -> Said | None:
    """Held-out rows are pairs of visits, mostly of the years of the fit: only later visits test a forecast."""
    if not one.of_study or one.tested is not None or (one.answer.scored_on is None and not one.answer.confirmed):
        return None  # the last: said already
    return say("trust.reason.not_tested")


def _no_better_than_no_change(one: Known) -> Said | None:
    ours, theirs = one.answer.accuracy, one.answer.persistence_accuracy
    if not one.of_study or ours is None or theirs is None or ours >= theirs - MARGIN:
        return None
    if one.answer.beats_persistence == "worse":  # said already, and not by chance
        return None
    return say("trust.reason.no_change", ours=f"{ours:.3f}", theirs=f"{theirs:.3f}")


def _no_better_than_no_covariates(one: Known) -> Said | None:
    ours, theirs = one.answer.log_loss, one.answer.no_covariates_log_loss
    if not one.of_study or ours is None or theirs is None or ours <= theirs + MARGIN:
        return None
    if one.answer.beats_no_covariates == "worse":
        return None
    return say("trust.reason.no_covariates", ours=f"{ours:.3f}", theirs=f"{theirs:.3f}")


def _few_events(one: Known) -> Said | None:
    events = one.case.events_per_parameter
    if not one.of_study or events is None or events >= FEW_EVENTS:
        return None
    return say("trust.reason.few_events", events=f"{events:.1f}", least=f"{FEW_EVENTS:g}")


def _apart(one: Known) -> Said | None:
    if one.apart is None or one.apart <= MOST_APART:
        return None
    return say("trust.reason.apart", share=f"{100 * one.apart:.0f}")


CHECKS: Mapping[Level, Sequence[Check]] = {  # the gravest first
    DO_NOT_USE: (
        _no_model, _not_certified, _worse_backtest, _worse_than_no_change, _worse_than_no_covariates,
    ),
    CAUTION: (
        _other_model, _misfit, _missed_years, _backtest_not_better, _not_confirmed, _less_accurate,
        _no_better_than_no_change, _no_better_than_no_covariates, _few_events, _apart, _not_tested,
    ),
}  # fmt: skip


def judge_all(document: Document) -> tuple[TrustPart, ...]:
    """Judge all components together, then each; nothing where there is none."""
    each = tuple(_judge(one) for one in _gather(document))
    return (_judge_together(each, document.network), *each) if each else ()


def _gather(document: Document) -> Iterator[Known]:
    cases = {case.case: case for case in document.cases}
    models = {model.case: model for model in document.models}
    backtests = {one.case: one for one in document.backtests if one.of_this}
    others = {one.case: one for one in document.backtests if not one.of_this}
    apart = _share_apart(document.network)
    for answer in document.answers:
        name = answer.case
        yield Known(cases[name], answer, models.get(name), backtests.get(name), others.get(name), apart.get(name))


def _share_apart(network: NetworkPart | None) -> dict[str, float]:
    """Share of each component's members, of those not at the threshold yet, that are in the tab of those apart."""
    every = None if network is None else network.every
    if every is None:
        return {}
    tabs: dict[str, list[int]] = {name: [] for name in every.cases}
    for case, tab in zip(every.case, every.tab, strict=True):
        tabs[every.cases[case]].append(tab)
    ahead = {name: [tab for tab in own if tab != THERE] for name, own in tabs.items()}
    return {name: own.count(APART) / len(own) for name, own in ahead.items() if own}


def _judge(one: Known) -> TrustPart:
    found = {level: [said for check in checks if (said := check(one))] for level, checks in CHECKS.items()}
    level = next((level for level in CHECKS if found[level]), GOOD)
    reasons = found[level] if level != GOOD else [_praise(one)]
    later = found[CAUTION] if level == DO_NOT_USE else []
    return TrustPart(case=one.case.case, level=level, reason=reasons[0], others=(*reasons[1:], *later))


def _praise(one: Known) -> Said:
    assert one.tested is not None  # else it was caution
    return say("trust.reason.good", until=one.tested[0])


def _judge_together(each: Sequence[TrustPart], network: NetworkPart | None) -> TrustPart:
    """As the worst of the components with a share of the members that counts; the largest of these is named."""
    members = {} if network is None else {year.case: year.members for year in network.of_each(0)}
    whole = sum(members.values())
    counted = [one for one in each if members.get(str(one.case), 0)] or list(each)  # in the totals
    used = [one for one in counted if members.get(str(one.case), 0) >= LEAST_SHARE * whole] or counted
    level = next(level for level in LEVELS if any(one.level == level for one in used))
    own = sorted((one for one in used if one.level == level), key=lambda one: -members.get(str(one.case), 0))
    first = own[0]
    if len(each) == 1:
        return first.model_copy(update={"case": None})
    n = sum(one.level == level for one in counted)
    kind = "alone" if len(counted) == 1 else f"all_{level}" if n == len(counted) else f"some_{level}"
    reason = say(f"trust.together.{kind}", n=n, cases=len(counted), name=first.case, why=first.reason)
    return TrustPart(case=None, level=level, reason=reason)
