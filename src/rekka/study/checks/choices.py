"""Checks on the choices of a study (R701 to R709): was there one, does it hold, does it beat the baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.core.language import ENGLISH, Said, load_words, say
from rekka.evaluation.scores import find_wilson
from rekka.evaluation.selection import ACCURACY_TOLERANCE, LOSS_TOLERANCE, Guard, Point, Step, dominates
from rekka.fleet import rolling
from rekka.study.case_rows import GOLDEN, WORDS
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
    name_trials,
    passed,
)
from rekka.study.choice import COSTS, Choice, MethodVerdict
from rekka.study.explanations import name_step
from rekka.study.plan import GUARDED, model_of
from rekka.study.tables import MATERIALLY_WORSE, is_materially_worse
from rekka.study.trial import Case, Key, Trial, spread

STABLE = Guard().stable_share  # of the resamples; what the guarded rule asks for by default
FLATTERED_LOSS = 0.02  # of log loss: what happened had, in the geometric mean, a probability 2 % lower
FLATTERED_ACCURACY = 0.01  # paper, outcome of H2: accuracies that differ by this differ little
LATER = {True: "confirmed", None: "open", False: "refuted"}  # what later years say of a choice
SHOWN = 5e-5  # the smallest difference that four digits show


@check(Subject.STUDY, R701=Severity.STOP)
def nothing_chosen(evidence: StudyEvidence) -> Finding:
    """Report choices that came to nothing."""
    choices = evidence.study.choices
    if not choices:
        return absent("not_yet" if evidence.study.results else NOTHING_DONE)
    none = [one for one in choices if one.chosen is None]
    if not none:
        return passed(choices=len(choices))
    served = {one.case for one in choices if one.chosen is not None}
    bare = [one for one in none if one.case not in served]
    by_case: dict[str, list[Choice]] = {}
    for one in bare or none:
        by_case.setdefault(one.case, []).append(one)
    rest = len(none) - len(bare)
    values = [
        {"preset": one.preset, "case": one.case, "fell_at": {v.method: str(v.step or "") for v in one.verdicts}}
        for one in none
    ]
    return found(
        bool(bare),
        "others" if bare and rest else "found",
        cases=by_case,
        values={"choices": values},
        facts=[
            say("check.R701.case", case=name_case(case), falls=_list_falls(evidence, some))
            for case, some in by_case.items()
        ],
        rest=rest,
    )


def _list_falls(evidence: StudyEvidence, choices: list[Choice]) -> list[Said]:
    """List the ways in which all methods of a case were dropped, with the preset where they differ."""
    ways: dict[str, tuple[str | Said, list[Said]]] = {}
    for one in choices:
        steps = _list_steps(one)
        ways.setdefault(str(steps), (evidence.prefix(one.preset), steps))
    several = len(ways) > 1 or len(evidence.study.plan.study.presets) > 1
    return [
        say("check.R701.fall", prefix=prefix if several else "", steps=steps) for prefix, steps in ways.values()
    ]


def _list_steps(choice: Choice) -> list[Said]:
    """'max, boxcox dropped at: a certified maximum', 'zscore dropped at: a maximum across resamples'."""
    if choice.rule != GUARDED:
        return [say("check.R701.none")]
    groups: dict[Step | None, list[str]] = {}
    for verdict in choice.verdicts:
        groups.setdefault(verdict.step, []).append(verdict.method)
    return [
        say("check.R701.end", methods=methods)
        if step is None
        else say("check.R701.step", methods=methods, step=name_step(step))
        for step, methods in groups.items()
    ]


@check(Subject.STUDY, R702=Severity.STOP, limits={"stable": STABLE})
def resamples(evidence: StudyEvidence) -> Finding:
    """Report methods that were not certified in every resample, kept or dropped for it."""
    if evidence.study.plan.study.rule != GUARDED:
        return absent("other_rule")
    asked = [(choice, v) for choice in evidence.study.choices for v in choice.verdicts if v.drawn]
    if not asked:
        return absent("none")
    doubtful = [(choice, v) for choice, v in asked if _share(v) < 1 and (v.kept or v.step is Step.STABLE)]
    if not doubtful:
        return passed(most=max(v.drawn or 0 for _, v in asked))
    doubtful.sort(key=lambda one: not one[1].kept)  # what is in use first
    values = [
        {"preset": choice.preset, "case": choice.case, "method": v.method, "kept": v.kept}
        | {"certified": v.certified, "drawn": v.drawn}
        for choice, v in doubtful
    ]
    return found(
        any(v.kept and not _is_stable(v) for _, v in doubtful),
        of=(Key(case=choice.case, preset=choice.preset, method=v.method) for choice, v in doubtful),
        values={"methods": values},
        facts=group_methods(
            (evidence.label(choice.case, choice.preset), v.method, _name_share(v)) for choice, v in doubtful
        ),
    )


def _name_share(verdict: MethodVerdict) -> Said:
    key = "check.R702.kept" if verdict.kept else "check.R702.dropped"
    return say(key, certified=verdict.certified, drawn=verdict.drawn)


def _share(verdict: MethodVerdict) -> float:
    return (verdict.certified or 0) / (verdict.drawn or 1)


def _is_stable(verdict: MethodVerdict) -> bool:
    """Whether the interval of the share of certified resamples does not end below what is asked for."""
    return find_wilson(_share(verdict), verdict.drawn or 1)[1] >= STABLE


@check(Subject.STUDY, R705=Severity.WARNING)
def times(evidence: StudyEvidence) -> Finding:
    """Report choices that rest on differences of time within the noise."""
    costs = {one.cost for one in evidence.study.choices}
    timed = [one for one in evidence.study.choices if one.cost == "seconds" and one.chosen is not None]
    if not timed:
        return absent("none" if "seconds" in costs or not costs else "evaluations")
    moved = {one: names for one in map(_Key.of, timed) if (names := _rests_on_noise(evidence, one.choice))}
    if not moved:
        return passed(timed=len(timed))
    once = all(len(trial.seconds) < 2 for trial in evidence.study.results if trial.seconds)
    trials = [(evidence.label(one.case, one.preset), name) for one, names in moved.items() for name in names]
    equal = sum(len(set(map(model_of, [*names, *one.choice.kept]))) == 1 for one, names in moved.items())
    values = [{"preset": one.preset, "case": one.case, "methods": list(names)} for one, names in moved.items()]
    return found(
        False,
        "same" if equal else "found",
        of=(Key(case=one.case, preset=one.preset, method=name) for one, names in moved.items() for name in names),
        values={"choices": values},
        moved=len(moved),
        timed=len(timed),
        trials=name_trials(trials),
        why=say("check.R705.once" if once else "check.R705.overlap"),
        equal=equal,
    )


class _Key(NamedTuple):
    """A choice, by what it is of."""

    preset: str
    case: str
    choice: Choice

    @classmethod
    def of(cls, choice: Choice) -> _Key:
        return cls(choice.preset, choice.case, choice)


def _rests_on_noise(evidence: StudyEvidence, choice: Choice) -> tuple[str, ...]:
    """Methods that differences of time within the noise put in or out."""
    there = [v for v in choice.verdicts if (v.kept or v.step is Step.PARETO) and v.accuracy is not None]
    points = {v.method: Point(v.accuracy or 0.0, v.cost or 0.0) for v in there}
    keys = {name: Key(case=choice.case, preset=choice.preset, method=name) for name in points}
    seconds = {name: evidence.trials[key].seconds for name, key in keys.items() if key in evidence.trials}
    settled = [
        name
        for name in points
        if not any(_dominates(points, seconds, other, name) for other in points if other != name)
    ]
    return tuple(name for name in points if (name in choice.kept) != (name in settled))


def _dominates(
    points: Mapping[str, Point], seconds: Mapping[str, tuple[float, ...]], one: str, other: str
) -> bool:
    """Whether one dominates another, where times that overlap count as equal."""
    (_, low, high), (_, other_low, other_high) = spread(seconds.get(one, ())), spread(seconds.get(other, ()))
    unknown = min(len(seconds.get(one, ())), len(seconds.get(other, ()))) < 2
    a, b = points[one], points[other]
    if unknown or (low <= other_high and other_low <= high):
        a, b = Point(a.accuracy, 0.0), Point(b.accuracy, 0.0)
    return dominates(a, b, COSTS["seconds"])


@check(Subject.STUDY, R706=Severity.WARNING, limits={"loss": FLATTERED_LOSS, "accuracy": FLATTERED_ACCURACY})
def optimism(evidence: StudyEvidence) -> Finding:
    """Scores on the rows that chose, beside nested ones, case by case."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    on_golden = [pick for pick in evidence.chosen if pick.choice.judged_on == GOLDEN]
    measured = [pick for pick in evidence.chosen if pick.choice.optimism is not None]
    flattered = [pick for pick in measured if _is_flattered(pick)]
    by_size = sorted(measured, key=_flattery, reverse=True)
    values = {
        "choices": [
            {"preset": pick.choice.preset, "case": pick.case.name, "judged_on": pick.choice.judged_on}
            | (pick.choice.optimism.model_dump() if pick.choice.optimism else {})
            for pick in measured
        ]
    }
    if not on_golden and not flattered:
        if not measured:
            return absent("too_few")
        most = max(measured, key=lambda pick: (_flattery(pick)[0], pick.case.name))
        return passed(values=values, most=_flattery(most)[0], case=most.label)
    facts = [_name_flattery(pick) for pick in by_size if max(_flattery(pick)) > SHOWN]
    measure = ("facts" if facts else "nothing") if measured else "few"
    return found(
        False,
        of=(pick.key for pick in evidence.chosen if pick in on_golden or pick in flattered),
        values=values,
        looked=say("check.R706.on_golden" if on_golden else "check.R706.on_others"),
        measured=say(f"check.R706.{measure}", facts=facts),
    )


def _flattery(pick: Pick) -> tuple[float, float]:
    """Differences of log loss and accuracy between other bridges' rows and the rows that chose."""
    measured = pick.choice.optimism
    if measured is None:
        return 0.0, 0.0
    return measured.nested_log_loss - measured.naive_log_loss, measured.naive_accuracy - measured.nested_accuracy


def _is_flattered(pick: Pick) -> bool:
    measured, (loss, accuracy) = pick.choice.optimism, _flattery(pick)
    moved = measured is not None and 2 * measured.changed > measured.folds
    return moved or loss > FLATTERED_LOSS or accuracy > FLATTERED_ACCURACY


def _name_flattery(pick: Pick) -> Said:
    """'Pier, log loss 0.7126 (nested 0.7156), accuracy 0.6912 (nested 0.6912), another model in 1 of 5 folds'."""
    one = pick.choice.optimism
    key = "check.R706.case_moved" if one is not None and one.changed else "check.R706.case"
    return say(key, case=pick.label, **({} if one is None else one.model_dump()))


@check(Subject.STUDY, R707=Severity.STOP, limits={"worse": MATERIALLY_WORSE})
def unseen_loss(evidence: StudyEvidence) -> Finding:
    """The floor table, by who selects."""
    study = evidence.study
    if study.trials.is_empty() or not study.trials["pareto"].any():
        return absent("none")
    rows = study.floor.to_dicts()
    if not rows:
        return passed()
    kept = {(p.choice.preset, p.case.name, p.method) for p in evidence.selected}
    used = [row for row in rows if (row["preset"], row["case"], row["method"]) in kept]
    facts = [
        say(
            "check.R707.selected" if used else "check.R707.would",
            method=row["method"],
            case=evidence.label(row["case"], row["preset"]),
            loss=row["log_loss"],
            others=row["alternatives_low"],
            share=row["at_floor_share"] or 0.0,
        )
        for row in used or rows
    ]
    return found(
        bool(used),
        of=(Key(case=row["case"], preset=row["preset"], method=row["method"]) for row in used or rows),
        values={"methods": rows},
        facts=facts,
    )


@check(Subject.STUDY, R708=Severity.WARNING)
def unfinished(evidence: StudyEvidence) -> Finding:
    """Trials and choices that were planned, and those that are done."""
    study = evidence.study
    done, choices = len(study.results), len(study.choices)
    planned = study.planned // max(len(study.plan.study.methods), 1)
    values: dict[str, Any] = {
        "trials": done,
        "planned": study.planned,
        "choices": choices,
        "planned_choices": planned,
    }
    if done == study.planned and choices == planned:
        return passed(**values)
    return found(False, values=values, **values)


@dataclass(frozen=True)
class Rival:
    """A forecaster to beat: how the study calls it, by which score, and which way is better."""

    name: str
    score: str
    better: float  # 1 if more is better, -1 if less is


PERSISTENCE = Rival("persistence", "accuracy", 1.0)
PLAIN = Rival("no_covariates", "log_loss", -1.0)


@dataclass(frozen=True)
class Gain:
    """A method beside a rival, on some rows; ``gain`` is above 0 where it is better, with its interval or none."""

    label: Name
    case: str
    method: str
    chosen: bool
    rows: str
    own: float
    theirs: float
    gain: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def said(self) -> Said:
        """'Pier (0.6910 against 0.6971 on golden rows)'."""
        rows = name_rows(self.rows)
        return say("check.gain", case=self.label, own=self.own, theirs=self.theirs, rows=rows)


def _list_gains(evidence: StudyEvidence, rival: Rival) -> list[Gain]:
    """Compare what was chosen with a rival; where nothing was, the best certified fit."""
    gains = [_of_pick(pick, rival) for pick in evidence.chosen]
    gains += [_of_best(evidence.cases[name], trials, rival) for name, trials in evidence.without_choice.items()]
    return [gain for gain in gains if not math.isnan(gain.gain)]


def _of_pick(pick: Pick, rival: Rival) -> Gain:
    golden = pick.confirmed
    if golden is None:
        own = getattr(pick.verdict, rival.score)
        return _judge(pick.label, pick.case, pick.method, math.nan if own is None else own, rival, chosen=True)
    difference, low, high = (getattr(golden, f"{rival.name}_{part}") for part in ("difference", "low", "high"))
    low, high = sorted((rival.better * low, rival.better * high))
    own, theirs = getattr(golden, rival.score), getattr(golden, f"{rival.name}_{rival.score}")
    gain = rival.better * difference
    return Gain(pick.label, pick.case.name, pick.method, True, GOLDEN, own, theirs, gain, low, high)


def _of_best(case: Case, trials: list[Trial], rival: Rival) -> Gain:
    def score(trial: Trial) -> float:
        return float(getattr(trial.scores, rival.score))

    best = max(trials, key=lambda trial: rival.better * score(trial))
    return _judge(name_case(case.name), case, best.key.method, score(best), rival, chosen=False)


def _judge(label: Name, case: Case, method: str, own: float, rival: Rival, *, chosen: bool) -> Gain:
    """On the judged rows, where there is no interval."""
    theirs = float(getattr(getattr(case, rival.name), rival.score))
    gain = rival.better * (own - theirs)
    return Gain(label, case.name, method, chosen, case.judged_on, own, theirs, gain)


@check(Subject.STUDY, R703=Severity.STOP)
def persistence(evidence: StudyEvidence) -> Finding:
    """Accuracy beside that of no change: paired, row by row, where the golden rows were looked at."""
    gains = _list_gains(evidence, PERSISTENCE)
    if not gains:
        return absent(_name_unscored(evidence))
    idle = [gain for gain in gains if gain.gain <= ACCURACY_TOLERANCE]
    worse = [gain for gain in idle if gain.chosen and gain.high < -ACCURACY_TOLERANCE]
    if not idle:
        return _pass(gains)
    return _find(gains, idle, worse)


@check(Subject.STUDY, R704=Severity.STOP, limits={"worse": MATERIALLY_WORSE})
def no_covariates(evidence: StudyEvidence) -> Finding:
    """Log loss beside that without covariates: paired, row by row, where the golden rows were looked at."""
    gains = [gain for gain in _list_gains(evidence, PLAIN) if evidence.cases[gain.case].covariates]
    if not gains:
        bare = evidence.cases and not any(case.covariates for case in evidence.cases.values())
        return absent(NO_COVARIATES if bare else _name_unscored(evidence))
    shown = [gain.low > 0 for gain in gains if math.isfinite(gain.low)]
    also = "_shown" if shown else ""
    idle = [gain for gain in gains if gain.gain <= LOSS_TOLERANCE]
    worse = [gain for gain in idle if gain.chosen and _is_worse(gain)]
    if not idle:
        return _pass(gains, also, better=sum(shown))
    return _find(gains, idle, worse, f"rest{also}", lower=len(gains) - len(idle), better=sum(shown))


def _is_worse(gain: Gain) -> bool:
    """Whether a model is worse than its rival: by its interval, or without one by a factor."""
    if math.isfinite(gain.high):
        return gain.high < -LOSS_TOLERANCE
    return bool(is_materially_worse(gain.own, gain.theirs))


def _pass(gains: list[Gain], also: str = "", **figures: Any) -> Finding:
    name = "passed_one" if len(gains) == 1 else "passed"
    return passed(name + also, values=_plain(gains), gains=len(gains), gain=gains[0].said, **figures)


def _find(gains: list[Gain], idle: list[Gain], worse: list[Gain], *rest: str, **figures: Any) -> Finding:
    """Report those that are not better; without an interval a worse one is far, not shown."""
    shown = [gain.label for gain in worse if math.isfinite(gain.high)]
    far = [gain.label for gain in worse if math.isinf(gain.high)]
    return found(
        bool(worse),
        "found",
        *(name for name, labels in (("shown", shown), ("far", far)) if labels),
        *rest,
        of=(Key(case=gain.case, preset="", method=gain.method) for gain in worse or idle),
        values=_plain(gains),
        facts=[gain.said for gain in sorted(idle, key=lambda gain: gain.gain)],
        shown=shown,
        far=far,
        gains=len(gains),
        **figures,
    )


def _plain(gains: list[Gain]) -> dict[str, Any]:
    words = load_words(ENGLISH)
    return {
        "cases": [asdict(gain) | {"label": words.join([gain.label]), "rows": WORDS[gain.rows]} for gain in gains]
    }


def _name_unscored(evidence: StudyEvidence) -> str:
    return "check.absent.unscored" if evidence.study.results else NOTHING_DONE


@check(Subject.STUDY, R709=Severity.STOP)
def elements(evidence: StudyEvidence) -> Finding:
    """Report elements of histories that forecast better, and whether the last years confirm it."""
    study = evidence.study
    if not study.elements:
        return absent("not_asked" if study.plan.study.models is None else NOTHING_DONE)
    compared = [one for one in study.elements if one.reason is None]
    if not compared:
        return absent("none", case=name_case(study.elements[0].case))
    better = [one for one in compared if one.model != rolling.PLAIN]
    if not better:
        return passed(cases=len(compared))
    better.sort(key=lambda one: one.confirmed is not False)
    return found(
        any(one.confirmed is False for one in better),
        cases=[one.case for one in better],
        values={"elements": [one.model_dump(exclude={"summary"}) for one in better]},
        facts=[
            say(
                "check.R709.case",
                case=name_case(one.case),
                model=[say(f"element.{part}") for part in one.model.split(rolling.JOIN)],
                years=one.years,
                gain=one.gain,
                low=one.low,
                high=one.high,
                later=say(f"check.R709.{LATER[one.confirmed]}"),
            )
            for one in better
        ],
    )
