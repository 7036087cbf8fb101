"""Checks on held-out rows and on what components can carry (R302, R404, R501, R503, R611, R803 to R807)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.checks.held_out import FAR_OUTSIDE, MANY_OUTSIDE
from rekka.core.language import ENGLISH, Said, load_words, say
from rekka.evaluation.calibration import MOST_TESTED
from rekka.evaluation.scores import CONFIDENCE
from rekka.model.certificate import FEW_EVENTS, FEW_ROWS
from rekka.study.case_rows import GOLDEN, CaseRows
from rekka.study.checks.evidence import (
    NO_COVARIATES,
    NOTHING_DONE,
    NOTHING_SELECTED,
    Name,
    Pick,
    StudyEvidence,
    absent,
    found,
    group_methods,
    name_case,
    name_rows,
    passed,
)
from rekka.study.tables import MATERIALLY_WORSE
from rekka.study.trial import Case

# Of the training range. Golden rows are some years older by design: on ages from 5 to 60 five years are a tenth.
# At a quarter a hazard that doubles over the range is a fifth higher than any that was fitted.
BEYOND = 0.25
MANY_LEFT_OUT = 0.05  # share of rows; as many rows outside the training range are many to the data doctor
FEW_GOLDEN = 50  # rows; an accuracy has a standard error of 7 % there
NO_GOLDEN = "check.absent.no_golden"


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
    def said(self) -> Said:
        """'Pier: age in 3.1% of the rows, up to 0.09 of its range (5 to 60; golden 9 to 65)'."""
        (low, high), (least, most) = self.training, self.golden
        figures = {"outside": self.outside, "farthest": self.farthest}
        ranges = {"low": low, "high": high, "least": least, "most": most}
        return say("check.R501.excess", case=name_case(self.case), covariate=self.covariate, **figures, **ranges)


OUTSIDE = {"many": MANY_OUTSIDE, "beyond": BEYOND, "far": FAR_OUTSIDE}


@check(Subject.STUDY, R501=Severity.STOP, limits=OUTSIDE)
def outside_range(evidence: StudyEvidence) -> Finding:
    """Report covariates outside their training range: the two that go farthest, and the one in most rows."""
    if not any(case.golden and case.train for case in evidence.study.described):
        return absent(NO_GOLDEN if evidence.study.described else NOTHING_DONE)
    excesses = [one for rows in evidence.rows.values() for one in _measure_excess(rows)]
    grave = [one for one in excesses if one.beyond >= MANY_OUTSIDE]
    notable = [one for one in excesses if one.farthest > FAR_OUTSIDE or one.outside > MANY_OUTSIDE]
    values = {"covariates": [one._asdict() for one in excesses]}
    if not notable:
        if not excesses:
            return passed()
        return passed("hardly", values=values, fact=max(excesses, key=lambda one: one.farthest).said)
    shown = grave or notable
    firsts = sorted(shown, key=lambda one: -one.farthest)[:2] + sorted(shown, key=lambda one: -one.outside)[:1]
    cases = list(dict.fromkeys(one.case for one in shown))
    return found(
        bool(grave),
        "golden_cases" if len(cases) > 1 else "golden",
        cases=cases,
        values=values,
        facts=[one.said for one in dict.fromkeys(firsts)],
        n_cases=len(cases),
    )


def _measure_excess(rows: CaseRows) -> Iterable[Excess]:
    """The covariates of a case that are outside somewhere."""
    if not (rows.counts["train"] and rows.counts[GOLDEN]):
        return
    for name, (low, high) in rows.find_ranges("train").items():
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


@check(Subject.STUDY, R503=Severity.WARNING)
def unseen_states(evidence: StudyEvidence) -> Finding:
    """States in which golden rows alone start or end, case by case."""
    if not any(case.golden and case.train for case in evidence.study.described):
        return absent(NO_GOLDEN if evidence.study.described else NOTHING_DONE)
    new: dict[str, list[int]] = {}
    for name, rows in evidence.rows.items():
        only = sorted(rows.states(GOLDEN) - rows.states("train"))
        if only and rows.counts["train"]:
            new[name] = only
    if not new:
        return passed()
    ratings = evidence.study.ratings
    facts = [
        say(
            "check.R503.case",
            case=name_case(name),
            where=ratings.said(states),
            known=[ratings.say_name(state) for state in sorted(evidence.rows[name].states("train"))],
        )
        for name, states in new.items()
    ]
    return found(False, "golden", cases=new, values={"states": new}, facts=facts)


@check(Subject.STUDY, R803=Severity.STOP, limits={"many": MANY_LEFT_OUT})
def left_out(evidence: StudyEvidence) -> Finding:
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
        return passed()
    grave = {name: v for name, v in values.items() if v["golden_left_out"] >= MANY_LEFT_OUT * max(v["golden"], 1)}
    facts = [
        say(
            "check.R803.case_judged" if v["judged_left_out"] else "check.R803.case",
            case=name_case(name),
            lost=v["golden_left_out"],
            golden=v["golden"],
            judged=v["judged_left_out"],
        )
        for name, v in (grave or values).items()
    ]
    return found(bool(grave), cases=grave or values, values={"cases": values}, facts=facts)


@check(Subject.STUDY, R804=Severity.WARNING, limits={"few": FEW_GOLDEN})
def few_golden(evidence: StudyEvidence) -> Finding:
    """Golden rows of each case."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    few = {case.name: case.golden for case in cases if case.golden < FEW_GOLDEN}
    if not few:
        fewest = min(cases, key=lambda case: case.golden)
        return passed(golden=fewest.golden, case=name_case(fewest.name))
    facts = [say("check.R804.case", case=name_case(name), rows=rows) for name, rows in few.items()]
    return found(False, cases=few, values={"golden": few}, facts=facts)


@check(Subject.STUDY, R805=Severity.WARNING)
def not_confirmed(evidence: StudyEvidence) -> Finding:
    """Report choices that were not confirmed, with the reason."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    open_ = [pick for pick in evidence.chosen if pick.confirmed is None]
    if not open_:
        return passed(choices=len(evidence.chosen))
    refused = {name: why for look in evidence.study.looks for name, why in look.refused.items()}
    by_reason: dict[str, list[Name]] = {}
    for pick in open_:
        by_reason.setdefault(refused.get(_refusal(pick), ""), []).append(pick.label)
    not_looked = say("check.R805.not_looked")
    english = load_words(ENGLISH).format(not_looked)
    values = [
        {"preset": p.choice.preset, "case": p.case.name, "reason": refused.get(_refusal(p), english)}
        for p in open_
    ]
    return found(
        False,
        of=(pick.key for pick in open_),
        values={"choices": values},
        open=len(open_),
        choices=len(evidence.chosen),
        facts=[say("check.R805.fact", cases=some, why=why or not_looked) for why, some in by_reason.items()],
    )


def _refusal(pick: Pick) -> str:
    """Name under which a look lists what it refused."""
    return f"{pick.case.name} ({pick.choice.preset})"


@check(Subject.STUDY, R806=Severity.STOP)
def second_look(evidence: StudyEvidence) -> Finding:
    """Every look there was at the golden rows."""
    results = [one for look in evidence.study.looks for one in look.results]
    if not results:
        return absent("none")
    again = [one for one in results if one.seen is not None]
    if not again:
        return passed(cases=len({one.case for one in results}))
    facts = group_methods(
        (evidence.label(one.case, one.preset), one.method, say("check.R806.before", seen=one.seen))
        for one in again
    )
    values = [one.key.model_dump() | {"seen": one.seen} for one in again]
    return found(True, of=(one.key for one in again), values={"looks": values}, facts=facts)


@check(Subject.STUDY, R807=Severity.STOP, limits={"worse": MATERIALLY_WORSE})
def not_borne_out(evidence: StudyEvidence) -> Finding:
    """Chosen methods that were confirmed: their log loss beside that on the rows that chose."""
    pairs = [
        (pick, pick.confirmed)
        for pick in evidence.chosen
        if pick.confirmed is not None and pick.confirmed.judged_log_loss is not None
    ]
    if not pairs:
        return absent("none")
    worse = [(pick, one) for pick, one in pairs if one.log_loss_low > (one.judged_log_loss or math.inf)]
    if not worse:
        return passed(choices=len(pairs))
    figures = [
        {"golden": one.log_loss, "low": one.log_loss_low, "high": one.log_loss_high, "judged": one.judged_log_loss}
        for _, one in worse
    ]
    values = [one.key.model_dump() | own for (_, one), own in zip(worse, figures, strict=True)]
    return found(
        any(one.log_loss >= MATERIALLY_WORSE * (one.judged_log_loss or math.inf) for _, one in worse),
        of=(pick.key for pick, _ in worse),
        values={"choices": values},
        facts=[
            say("check.R807.case", case=pick.label, rows=name_rows(pick.choice.judged_on), **own)
            for (pick, _), own in zip(worse, figures, strict=True)
        ],
    )


LEVEL = round(1.0 - CONFIDENCE, 12)  # of the test of fit


@check(Subject.STUDY, R404=Severity.WARNING, limits={"few": FEW_ROWS, "few_events": FEW_EVENTS})
def exploratory(evidence: StudyEvidence) -> Finding:
    """Report cases that are too small to conclude from."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    small = [case for case in cases if case.exploratory is not None]
    if not small:
        fewest = min(cases, key=lambda case: case.train)
        return passed(case=name_case(fewest.name), train=fewest.train)
    values = {
        case.name: {"train": case.train, "moves": case.moves, "events_per_parameter": case.events_per_parameter}
        for case in small
    }
    facts = [say("check.R404.case", case=name_case(case.name), why=_list_reasons(case)) for case in small]
    return found(False, "small", cases=values, values={"cases": values}, facts=facts)


def _list_reasons(case: Case) -> list[Said]:
    """List why a case is too small to conclude from."""
    rows = [say("check.R404.few_rows", train=case.train, few=FEW_ROWS)] if case.train < FEW_ROWS else []
    ratio = case.events_per_parameter
    return rows + ([say("check.R404.few_events", ratio=ratio, few=FEW_EVENTS)] if ratio < FEW_EVENTS else [])


@check(Subject.STUDY, R302=Severity.WARNING)
def constant(evidence: StudyEvidence) -> Finding:
    """Covariates that do not vary, case by case."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    if not any(case.covariates or case.constant for case in cases):
        return absent(NO_COVARIATES)
    left_out = {case.name: list(case.constant) for case in cases if case.constant}
    if not left_out:
        return passed()
    facts = [say("check.R302.case", case=name_case(name), names=names) for name, names in left_out.items()]
    return found(False, "left_out", cases=left_out, values={"constant": left_out}, facts=facts)


@check(Subject.STUDY, R611=Severity.STOP, limits={"level": LEVEL})
def goodness(evidence: StudyEvidence) -> Finding:
    """The test that was made with each choice, or of a calibration that was given."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    tested = {key: one for pick in evidence.chosen if (one := _find_test(evidence, key := _key(pick))) is not None}
    if not tested:
        return absent(_name_untested(evidence), most=MOST_TESTED)
    rejected = {key: one for key, one in tested.items() if one.p_value <= LEVEL}
    labels = {_key(pick): pick.label for pick in evidence.chosen}
    beside = ["chance"] if len(tested) > 1 else []
    chance: dict[str, Any] = {"tests": len(tested), "chance": LEVEL * len(tested)}
    if not rejected:
        least = min(tested, key=lambda key: tested[key].p_value)
        return passed("passed", *beside, p=tested[least].p_value, case=labels[least], **chance)
    one_alone = len(rejected) == 1  # of one its causes are named, of several the largest differences
    values = [
        {"preset": preset, "case": case, "p_value": one.p_value, "causes": list(one.causes)}
        for (preset, case), one in tested.items()
    ]
    facts = [(labels[key], one.p_value, one.describe(in_full=one_alone)) for key, one in rejected.items()]
    return found(
        True,
        "found",
        *beside,
        of=(pick.key for pick in evidence.chosen if _key(pick) in rejected),
        values={"tests": values},
        facts=[say("check.R611.fact" if why else "check.R611.bare", case=c, p=p, why=why) for c, p, why in facts],
        **chance,
    )


@dataclass(frozen=True)
class _Test:
    """The p-value of a test, its causes in sentences, and the largest differences, where they are known."""

    p_value: float
    causes: tuple[str, ...]
    facts: str = ""

    def describe(self, *, in_full: bool) -> str:
        words = " ".join(self.causes if in_full else self.causes[:1])
        return (self.facts if not self.causes or (self.facts and not in_full) else words).rstrip(".: ")


def _key(pick: Pick) -> tuple[str, str]:
    return pick.choice.preset, pick.case.name


def _find_test(evidence: StudyEvidence, key: tuple[str, str]) -> _Test | None:
    """The test of a calibration that was given, or else the one that was made with the choice."""
    given = (evidence.calibrations or {}).get(key)
    if given is not None and not math.isnan(given.goodness.p_value):
        return _Test(given.goodness.p_value, given.causes)
    choice = evidence.study.choice(key[1], key[0])
    test = None if choice is None else choice.fit_test
    if test is None:
        return None
    return _Test(test.p_value, test.causes, "; ".join(one.describe() for one in test.contrasts))


def _name_untested(evidence: StudyEvidence) -> str:
    if evidence.calibrations is not None:
        return "impossible"
    return "many" if len(evidence.cases) > MOST_TESTED else "earlier"
