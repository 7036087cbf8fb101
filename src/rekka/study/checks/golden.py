"""Checks on the golden rows and the confirmation (R8xx): can the model speak of them, and do they bear it out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rekka.checks.held_out import FAR_OUTSIDE, MANY_OUTSIDE
from rekka.core.errors import count_of
from rekka.study.cases import GOLDEN, WORDS
from rekka.study.checks.evidence import NOTHING_DONE, NOTHING_SELECTED, Evidence, Pick, name_case
from rekka.study.checks.findings import Seen, absent, check, found, passed, tell_groups, tell_some
from rekka.study.large_cases import AnyCase
from rekka.study.tables import MATERIALLY_WORSE
from rekka.study.words import list_names

# Of the training range. Golden rows are some years older by design: on ages from 5 to 60 five years are a tenth.
# At a quarter a hazard that doubles over the range is a fifth higher than any that was fitted.
BEYOND = 0.25
MANY_LEFT_OUT = 0.05  # share of rows; as many rows outside the training range are many to the data doctor
FEW_GOLDEN = 50  # rows; an accuracy has a standard error of 7 % there
NO_GOLDEN = "There are no golden rows."


class Excess(NamedTuple):
    """Golden rows of a case outside the training range of a covariate, distances in units of that range."""

    case: str
    covariate: str
    outside: float  # share of the case's golden rows
    beyond: float  # share that is farther out than BEYOND
    farthest: float
    training: tuple[float, float]
    golden: tuple[float, float]

    @property
    def words(self) -> str:
        """'Pier: age in 3.1% of the rows, up to 0.09 of its range (5 to 60; golden 9 to 65)'."""
        (low, high), (least, most) = self.training, self.golden
        return (
            f"{name_case(self.case)}: {self.covariate} in {self.outside:.1%} of the rows, by up to "
            f"{self.farthest:.2g} of the training range ({low:g} to {high:g}; golden {least:g} to {most:g})"
        )


@check(
    "R801",
    "Golden rows outside the training range",
    looks_at="Covariates of golden rows below or above all training rows of their case: the share of rows, and "
    "how far, in units of the training range. Golden rows come later and are some years older: a little is by "
    "design.",
    matters="There the model extrapolates an exponential. A score on such rows says how well that went, not how "
    "well the model forecasts bridges like those it knows.",
    issue=f"{MANY_OUTSIDE:.0%} of a case's golden rows or more are outside by more than {BEYOND:g} of the range.",
    tip=f"One is outside by more than {FAR_OUTSIDE:g} of the range, or more than {MANY_OUTSIDE:.0%} of the rows "
    "are outside.",
    remedy="Score the rows within the range by themselves before a score is quoted. Look at single rows far out "
    "for slips of the pen; take the logarithm (log+zscore) of a covariate whose large values are real.",
)
def outside_range(evidence: Evidence) -> Seen:
    """Every covariate of every case; told are the two that go farthest, and the one in most rows."""
    if not any(case.golden and case.train for case in evidence.study.described):
        return absent(NO_GOLDEN if evidence.study.described else NOTHING_DONE)
    excesses = [one for rows in evidence.rows.values() for one in _measure_excess(rows)]
    grave = [one for one in excesses if one.beyond >= MANY_OUTSIDE]
    notable = [one for one in excesses if one.farthest > FAR_OUTSIDE or one.outside > MANY_OUTSIDE]
    values = {"covariates": [one._asdict() for one in excesses]}
    if not notable:
        if not excesses:
            return passed("Every golden row is within the training range of its case.")
        worst = max(excesses, key=lambda one: one.farthest)
        return passed(f"Hardly outside. The farthest: {worst.words}.", values)
    told = grave or notable
    firsts = sorted(told, key=lambda one: -one.farthest)[:2] + sorted(told, key=lambda one: -one.outside)[:1]
    facts = list(dict.fromkeys(one.words for one in firsts))
    cases = list(dict.fromkeys(one.case for one in told))
    rest = f"; {count_of(len(cases), 'case')} in all" if len(cases) > 1 else ""
    return found(bool(grave), f"Outside the training range: {'; '.join(facts)}{rest}.", cases, values=values)


def _measure_excess(rows: AnyCase) -> Iterable[Excess]:
    """The covariates of a case that are outside somewhere."""
    if not (rows.counts["train"] and rows.counts[GOLDEN]):
        return
    for name in rows.covariates:
        low, high = rows.find_range("train", name)
        golden = rows.column(GOLDEN, name).to_numpy().astype(float)
        distance = np.maximum(np.maximum(low - golden, golden - high), 0.0) / (high - low)
        if distance.any():
            yield Excess(
                case=rows.name,
                covariate=name,
                outside=float(np.mean(distance > 0)),
                beyond=float(np.mean(distance > BEYOND)),
                farthest=float(distance.max()),
                training=(low, high),
                golden=(float(golden.min()), float(golden.max())),
            )


@check(
    "R802",
    "A state seen only in golden rows",
    looks_at="States in which a golden row starts or ends and no training row does.",
    matters="The model has never seen that state. If it is the worst one, the model gives it no probability at "
    "all, and it is the one that owners ask about.",
    tip="There is one. How many rows it costs is R803.",
    remedy="Split so that the state trains too (--partition bridge), merge it with the one before, or take more "
    "years of training rows.",
)
def unseen_states(evidence: Evidence) -> Seen:
    """Case by case."""
    if not any(case.golden and case.train for case in evidence.study.described):
        return absent(NO_GOLDEN if evidence.study.described else NOTHING_DONE)
    new: dict[str, list[int]] = {}
    for name, rows in evidence.rows.items():
        only = sorted(rows.states(GOLDEN) - rows.states("train"))
        if only and rows.counts["train"]:
            new[name] = only
    if not new:
        return passed("Every state of a golden row is in the training rows of its case.")
    facts = [
        f"{name_case(name)} (state{'s' if len(states) > 1 else ''} {', '.join(map(str, states))}; training rows "
        f"have {', '.join(map(str, sorted(evidence.rows[name].states('train'))))})"
        for name, states in new.items()
    ]
    return found(False, f"Seen in golden rows only: {tell_some(facts)}.", new, values={"states": new})


@check(
    "R803",
    "Rows left out of the scores",
    looks_at="Judged and golden rows with a state beyond K, the worst of the training rows.",
    matters="They are left out of every score and counted. What is left out are the worst outcomes, so that the "
    "scores are those of the better rest.",
    issue=f"{MANY_LEFT_OUT:.0%} of the golden rows of a case or more.",
    tip="Fewer, but some.",
    remedy="Quote the count beside the scores. Split so that the worst state trains too, or merge it with the one "
    "before.",
)
def left_out(evidence: Evidence) -> Seen:
    """Judged rows as the study counted them, golden rows counted here."""
    cases = [case for case in evidence.study.described if case.train]
    if not cases:
        return absent(NOTHING_DONE)
    values: dict[str, dict[str, int]] = {}
    for case in cases:
        rows = evidence.rows[case.name]
        lost = rows.count_unsupported(GOLDEN)
        if lost or case.persistence.unsupported:
            judged = 0 if case.judged_on == GOLDEN else case.persistence.unsupported
            values[case.name] = {"golden_left_out": lost, "golden": rows.counts[GOLDEN], "judged_left_out": judged}
    if not values:
        return passed("Every judged and golden row could be scored.")
    grave = {name: v for name, v in values.items() if v["golden_left_out"] >= MANY_LEFT_OUT * max(v["golden"], 1)}
    facts = [
        f"{name_case(name)}: {v['golden_left_out']:,} of {count_of(v['golden'], 'golden row')}"
        + (f" and {v['judged_left_out']:,} of those it was judged on" if v["judged_left_out"] else "")
        for name, v in (grave or values).items()
    ]
    words = f"Beyond the training rows' states, and left out of the scores: {tell_some(facts)}."
    return found(bool(grave), words, grave or values, values={"cases": values})


@check(
    "R804",
    "Few golden rows",
    looks_at="Golden rows of each case.",
    matters="One row then moves an accuracy by 2 % or more, and no interval is narrow enough to confirm anything.",
    tip=f"Fewer than {FEW_GOLDEN}.",
    remedy="Read the intervals, not the scores. Hold out a larger share, join similar cases, or wait for the next "
    "inspections.",
)
def few_golden(evidence: Evidence) -> Seen:
    """Case by case."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    few = {case.name: case.golden for case in cases if case.golden < FEW_GOLDEN}
    if not few:
        fewest = min(cases, key=lambda case: case.golden)
        return passed(f"The fewest are {count_of(fewest.golden, 'golden row')}, in {name_case(fewest.name)}.")
    facts = [f"{name_case(name)} ({rows})" for name, rows in few.items()]
    words = f"Fewer than {FEW_GOLDEN} golden rows, so that one row decides: {list_names(facts)}."
    return found(False, words, few, values={"golden": few})


@check(
    "R805",
    "A choice that is not confirmed",
    looks_at="Chosen methods without a score on untouched golden rows, and why.",
    matters="Until then its scores are those of rows that were used to fit it or to choose it.",
    tip="Some are not.",
    remedy="rekka confirm RUN looks at the golden rows, once. Where they chose, or were looked at before, only "
    "rows that nobody has seen can confirm: the next inspections.",
)
def not_confirmed(evidence: Evidence) -> Seen:
    """What was refused, with the reason, and what was not asked for."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    open_ = [pick for pick in evidence.chosen if pick.confirmed is None]
    if not open_:
        return passed(f"{count_of(len(evidence.chosen), 'choice')} confirmed on golden rows.")
    refused = {name: why for look in evidence.study.looks for name, why in look.refused.items()}
    reasons = {pick.label: refused.get(_refusal(pick), "the golden rows were not looked at") for pick in open_}
    by_reason: dict[str, list[str]] = {}
    for label, why in reasons.items():
        by_reason.setdefault(why, []).append(label)
    facts = [f"{list_names(labels)}: {why}" for why, labels in by_reason.items()]
    values = [{"preset": p.choice.preset, "case": p.case.name, "reason": reasons[p.label]} for p in open_]
    words = f"{len(open_)} of {count_of(len(evidence.chosen), 'choice')} not confirmed: {tell_some(facts)}."
    return found(False, words, (p.case.name for p in open_), (p.method for p in open_), {"choices": values})


def _refusal(pick: Pick) -> str:
    """How a look names what it refused."""
    return f"{pick.case.name} ({pick.choice.preset})"


@check(
    "R806",
    "Golden rows looked at twice",
    looks_at="Confirmations whose golden rows had been looked at before with another model, in this run or in a "
    "run folder beside it.",
    matters="Whoever looks twice can choose the better of two. A second look is no confirmation.",
    issue="There was one.",
    remedy="Quote the first look. For the second model wait for the next inspections, or say that its golden "
    "scores were seen.",
)
def second_look(evidence: Evidence) -> Seen:
    """Every look there was."""
    results = [one for look in evidence.study.looks for one in look.results]
    if not results:
        return absent("The golden rows were not looked at.")
    again = [one for one in results if one.seen is not None]
    if not again:
        return passed(f"One look at the golden rows of {count_of(len({one.case for one in results}), 'case')}.")
    facts = tell_groups(
        (evidence.label(one.case, one.preset), one.method, f"before in {one.seen}") for one in again
    )
    values = [{"preset": one.preset, "case": one.case, "method": one.method, "seen": one.seen} for one in again]
    words = f"The golden rows had been looked at with another model: {tell_some(facts)}."
    return found(True, words, (one.case for one in again), (one.method for one in again), {"looks": values})


@check(
    "R807",
    "Golden rows that do not bear out the choice",
    looks_at="The log loss of what was chosen on golden rows, with its interval clustered by bridge, beside its "
    "log loss on the rows that chose it.",
    matters="The golden rows are other bridges and later years. If they are forecast worse than chance allows, "
    "the score that chose is no promise: the choice flatters itself, or deterioration has changed.",
    issue=f"The golden log loss is shown to be higher, and {MATERIALLY_WORSE:g} times the other or more.",
    tip="It is shown to be higher: its interval lies above the other.",
    remedy="Quote the golden score. Look at R801 for golden rows unlike the training ones, and at the calibration "
    "on golden rows for a drift.",
)
def not_borne_out(evidence: Evidence) -> Seen:
    """Chosen methods that were confirmed."""
    pairs = [
        (pick, pick.confirmed)
        for pick in evidence.chosen
        if pick.confirmed is not None and pick.confirmed.judged_log_loss is not None
    ]
    if not pairs:
        return absent("Nothing was confirmed on golden rows.")
    worse = [(pick, one) for pick, one in pairs if one.log_loss_low > (one.judged_log_loss or math.inf)]
    if not worse:
        return passed(f"Golden log losses are not shown to be higher in {count_of(len(pairs), 'choice')}.")
    facts = [
        f"{pick.label} {one.log_loss:.3f} ({one.log_loss_low:.3f} to {one.log_loss_high:.3f}) against "
        f"{one.judged_log_loss:.3f} on {WORDS[pick.choice.judged_on]}"
        for pick, one in worse
    ]
    grave = any(one.log_loss >= MATERIALLY_WORSE * (one.judged_log_loss or math.inf) for _, one in worse)
    values = [
        {"preset": one.preset, "case": one.case, "method": one.method, "golden": one.log_loss}
        | {"low": one.log_loss_low, "high": one.log_loss_high, "judged": one.judged_log_loss}
        for _, one in worse
    ]
    return found(
        grave,
        f"The log loss on golden rows is higher: {tell_some(facts)}.",
        (pick.case.name for pick, _ in worse),
        (pick.method for pick, _ in worse),
        {"choices": values},
    )


CHECKS = (outside_range, unseen_states, left_out, few_golden, not_confirmed, second_look, not_borne_out)
