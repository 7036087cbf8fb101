"""Checks on the choice (R701, R702, R705 to R708): was there one, does it hold, and what does it rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rekka.core.errors import count_of
from rekka.evaluation.selection import Guard, Point, Step, dominates
from rekka.study.cases import GOLDEN
from rekka.study.checks.evidence import NOTHING_DONE, NOTHING_SELECTED, Evidence, Pick, name_case
from rekka.study.checks.findings import Seen, absent, check, found, passed, tell_groups, tell_some
from rekka.study.choosing import Choice, Verdict
from rekka.study.methods import model_of
from rekka.study.plan import GUARDED
from rekka.study.reasons import COSTS
from rekka.study.rulings import NUMBERS
from rekka.study.tables import MATERIALLY_WORSE
from rekka.study.trial import Key, spread
from rekka.study.words import list_names, name_trials

STABLE = Guard().stable_share  # of the resamples; what the guarded rule asks for unless told otherwise
FLATTERED_LOSS = Guard().log_loss_margin  # of log loss; what the guarded rule takes for material
FLATTERED_ACCURACY = 0.01  # paper, outcome of H2: accuracies that differ by this differ little
SHOWN = 5e-5  # the smallest difference that four digits show


@check(
    "R701",
    "A case for which nothing was chosen",
    looks_at="What the rule left of each case's methods, and the step at which the last of them fell.",
    matters="The case has no model to forecast with. That is an answer, not an accident: no method earned it.",
    issue="No preset has a choice for the case.",
    tip="Another preset has one.",
    remedy="Leave covariates out, merge states, join similar cases, or let a penalty or the other cases hold the "
    "coefficients: rekka compare --methods paper,small. A case that was confirmed before keeps that confirmation: "
    "its golden rows do not confirm another model. R604 to R608 say what went wrong with the fits.",
)
def nothing_chosen(evidence: Evidence) -> Seen:
    """The choices that were made, and came to nothing."""
    choices = evidence.study.choices
    if not choices:
        return absent("No choice has been made yet." if evidence.study.results else NOTHING_DONE)
    none = [one for one in choices if one.chosen is None]
    if not none:
        return passed(f"A method was chosen in each of {count_of(len(choices), 'choice')}.")
    served = {one.case for one in choices if one.chosen is not None}
    bare = [one for one in none if one.case not in served]
    falls: dict[str, dict[str, list[str]]] = {}  # of each case: how it fell, and under which presets
    for one in bare or none:
        falls.setdefault(one.case, {}).setdefault(_tell_fall(one), []).append(one.preset)
    facts = [f"{name_case(case)} ({_join(evidence, how)})" for case, how in falls.items()]
    rest = len(none) - len(bare)
    others = f"; of {count_of(rest, 'other')} another preset has one" if bare and rest else ""
    values = [
        {"preset": one.preset, "case": one.case, "fell_at": {v.method: str(v.step or "") for v in one.verdicts}}
        for one in none
    ]
    return found(
        bool(bare), f"Nothing was chosen for {tell_some(facts)}{others}.", falls, values={"choices": values}
    )


def _tell_fall(choice: Choice) -> str:
    """'max, boxcox at step 1, a certified maximum; zscore at step 2, a maximum across resamples'."""
    if choice.rule != GUARDED:
        return "no method can be selected"
    groups: dict[str, list[str]] = {}
    for verdict in choice.verdicts:
        place = "the end" if verdict.step is None else f"step {NUMBERS[verdict.step]}, {verdict.step}"
        groups.setdefault(place, []).append(verdict.method)
    return "; ".join(f"{list_names(methods)} fell at {place}" for place, methods in groups.items())


def _join(evidence: Evidence, how: Mapping[str, list[str]]) -> str:
    """The ways a case fell, with the preset where they differ."""
    if len(how) == 1:
        return next(iter(how))
    return "; ".join(f"{evidence.prefix(presets[0])}{words}" for words, presets in how.items())


@check(
    "R702",
    "A maximum reached in few resamples",
    looks_at="The share of refits, to bridges drawn anew from the training rows, that reach a maximum.",
    matters="A fit that is certified on these bridges, and reaches no maximum on as many others like them, was "
    "certified by luck: its coefficients hang on a few rows.",
    issue=f"What was selected reaches a maximum in fewer than {STABLE:.0%} of its resamples.",
    tip="It is in fewer than all of them, or methods were dropped for it.",
    remedy="Leave out the covariate that R604 or R605 names, merge states, or use ridge or pooled, which hold the "
    "coefficients.",
)
def resamples(evidence: Evidence) -> Seen:
    """What the guarded rule asked, of what it kept and of what it dropped for it."""
    if evidence.study.plan.study.rule != GUARDED:
        return absent("The rule of this study does not resample; the guarded rule does.")
    asked = [(choice, v) for choice in evidence.study.choices for v in choice.verdicts if v.drawn]
    if not asked:
        return absent("No method was refitted to resamples.")
    doubtful = [(choice, v) for choice, v in asked if _share(v) < 1 and (v.kept or v.step is Step.STABLE)]
    if not doubtful:
        most = max(v.drawn or 0 for _, v in asked)
        return passed(f"What was asked reaches a maximum in all of {count_of(most, 'resample')}.")
    doubtful.sort(key=lambda one: not one[1].kept)  # what is in use first
    facts = tell_groups(
        (
            evidence.label(choice.case, choice.preset),
            v.method,
            f"{v.certified} of {v.drawn}" + ("" if v.kept else ", dropped for it"),
        )
        for choice, v in doubtful
    )
    values = [
        {"preset": choice.preset, "case": choice.case, "method": v.method, "kept": v.kept}
        | {"certified": v.certified, "drawn": v.drawn}
        for choice, v in doubtful
    ]
    return found(
        any(v.kept and _share(v) < STABLE for _, v in doubtful),
        f"A maximum reached in some resamples only: {tell_some(facts)}.",
        (choice.case for choice, _ in doubtful),
        (v.method for _, v in doubtful),
        {"methods": values},
    )


def _share(verdict: Verdict) -> float:
    return (verdict.certified or 0) / (verdict.drawn or 1)


@check(
    "R705",
    "Times within noise",
    looks_at="Where the cost is seconds: if the selected set stays the same when times whose ranges overlap count "
    "as equal; of a trial that was timed once the range is not known, and any other may overlap it.",
    matters="At the millisecond a clock measures the machine. A set that rests on it is another set tomorrow.",
    tip="Some methods are in or out by times that overlap.",
    remedy="Select on evaluations (--cost evaluations), which every run repeats, or time each trial several times "
    "(--repeats 5).",
)
def times(evidence: Evidence) -> Seen:
    """The set by the times as measured, beside the set by times that can be told apart."""
    costs = {one.cost for one in evidence.study.choices}
    timed = [one for one in evidence.study.choices if one.cost == "seconds" and one.chosen is not None]
    if not timed:
        on_time = "No choice that weighs seconds has been made."
        return absent(
            on_time if "seconds" in costs or not costs else "Evaluations are weighed, which every run repeats."
        )
    moved = {one: names for one in map(_Key.of, timed) if (names := _rests_on_noise(evidence, one.choice))}
    if not moved:
        return passed(f"The seconds do not decide, or can be told apart, in {count_of(len(timed), 'choice')}.")
    once = all(len(trial.seconds) < 2 for trial in evidence.study.results if trial.seconds)
    why = "each was timed once" if once else "their times overlap"
    trials = [(evidence.label(one.case, one.preset), name) for one, names in moved.items() for name in names]
    equal = sum(len(set(map(model_of, [*names, *one.choice.kept]))) == 1 for one, names in moved.items())
    same = f"; in {equal} of these all are one model" if equal else ""
    values = [{"preset": one.preset, "case": one.case, "methods": list(names)} for one, names in moved.items()]
    return found(
        False,
        f"Seconds within noise decide in {len(moved)} of {count_of(len(timed), 'choice')}: {name_trials(trials)} "
        f"would be in or out by chance ({why}){same}.",
        (one.case for one in moved),
        (name for _, name in trials),
        {"choices": values},
    )


class _Key(NamedTuple):
    """A choice, by what it is of."""

    preset: str
    case: str
    choice: Choice

    @classmethod
    def of(cls, choice: Choice) -> _Key:
        return cls(choice.preset, choice.case, choice)


def _rests_on_noise(evidence: Evidence, choice: Choice) -> tuple[str, ...]:
    """The methods that times which cannot be told apart put in or out."""
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


@check(
    "R706",
    "Scores that flatter what was chosen",
    looks_at="The scores of each choice on the rows that it was chosen by, beside those of choices made without "
    "the rows they are scored on (nested, by bridge).",
    matters="The best of several on some rows was partly lucky there. On golden rows it is the paper's own "
    "design: they choose, and can then confirm nothing.",
    tip=f"The choice looked at golden rows; or it flatters itself by more than {FLATTERED_LOSS:g} of log loss or "
    f"{FLATTERED_ACCURACY:g} of accuracy; or most folds chose another model.",
    remedy="Quote the nested scores, or those of the confirmation, never those of the rows that chose. Choose on "
    "validation rows or in folds (--select-on auto), so that golden rows can confirm.",
)
def optimism(evidence: Evidence) -> Seen:
    """What was measured, case by case."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    on_golden = [pick for pick in evidence.chosen if pick.choice.judged_on == GOLDEN]
    measured = [pick for pick in evidence.chosen if pick.choice.optimism is not None]
    flattered = [pick for pick in measured if _is_flattered(pick)]
    values = [
        {"preset": pick.choice.preset, "case": pick.case.name, "judged_on": pick.choice.judged_on}
        | (pick.choice.optimism.model_dump() if pick.choice.optimism else {})
        for pick in measured
    ]
    if not on_golden and not flattered:
        if not measured:
            return absent("Too few bridges to measure it.")
        most = max((_flattery(pick)[0], pick.label) for pick in measured)
        return passed(f"At most {most[0]:.4f} of log loss ({most[1]}).", {"choices": values})
    looked = "The scores of the rows that chose are optimistic"
    if on_golden:
        looked = "The choice looks at golden rows, so that their scores are optimistic for what was selected"
    by_size = sorted(measured, key=_flattery, reverse=True)
    facts = [_tell_flattery(pick) for pick in by_size if max(_flattery(pick)) > SHOWN]
    words = (
        f"measured by nested choices: {tell_some(facts)}" if facts else "measured by nested choices, by nothing"
    )
    concerned = [pick for pick in evidence.chosen if pick in on_golden or pick in flattered]
    return found(
        False,
        f"{looked}; {words if measured else 'too few bridges to measure it'}.",
        (pick.case.name for pick in concerned),
        (pick.method for pick in concerned),
        {"choices": values},
    )


def _flattery(pick: Pick) -> tuple[float, float]:
    """By how much log loss and accuracy are better on the rows that chose."""
    measured = pick.choice.optimism
    if measured is None:
        return 0.0, 0.0
    return measured.nested_log_loss - measured.naive_log_loss, measured.naive_accuracy - measured.nested_accuracy


def _is_flattered(pick: Pick) -> bool:
    measured, (loss, accuracy) = pick.choice.optimism, _flattery(pick)
    moved = measured is not None and 2 * measured.changed > measured.folds
    return moved or loss > FLATTERED_LOSS or accuracy > FLATTERED_ACCURACY


def _tell_flattery(pick: Pick) -> str:
    """'Pier, log loss 0.7126 (nested 0.7156), accuracy 0.6912 (nested 0.6912), another model in 1 of 5 folds'."""
    one = pick.choice.optimism
    if one is None:
        return pick.label
    moved = f", another model in {one.changed} of {one.folds} folds" if one.changed else ""
    loss = f"log loss {one.naive_log_loss:.4f} (nested {one.nested_log_loss:.4f})"
    return f"{pick.label}, {loss}, accuracy {one.naive_accuracy:.4f} (nested {one.nested_accuracy:.4f}){moved}"


@check(
    "R707",
    "A far worse log loss that accuracy and cost do not see",
    looks_at="What the paper's rule, Pareto over accuracy and cost, selects on the same scores, whatever the rule "
    "of the study; and its log loss beside the alternatives.",
    matters="A forecaster that is certain and often wrong can have a good accuracy and take no time.",
    issue=f"The study's own rule is the paper's, and keeps a method whose log loss is {MATERIALLY_WORSE:g} times "
    "the best alternative's or more.",
    tip="The paper's rule would have kept it, and the study's does not.",
    remedy="Choose by the guarded rule (--rule guarded), which asks for a certificate and for the log loss.",
)
def unseen_loss(evidence: Evidence) -> Seen:
    """The floor table, by who selects."""
    study = evidence.study
    if study.trials.is_empty() or not study.trials["pareto"].any():
        return absent("The paper's rule would select nothing.")
    table = study.floor
    if table.is_empty():
        return passed(
            f"No method that the paper's rule selects has a log loss {MATERIALLY_WORSE:g} times the best's."
        )
    rows = table.to_dicts()
    kept = {(p.choice.preset, p.case.name, p.method) for p in evidence.selected}
    used = [row for row in rows if (row["preset"], row["case"], row["method"]) in kept]
    would = "is selected" if used else "would be selected by accuracy and cost alone"
    facts = [
        f"{row['method']} {would} in {evidence.label(row['case'], row['preset'])} with a log loss of "
        f"{row['log_loss']:.2f}, where others have {row['alternatives_low']:.2f}; "
        f"{row['at_floor_share'] or 0.0:.0%} of its rows are at the probability floor"
        for row in used or rows
    ]
    return found(
        bool(used),
        f"{tell_some(facts, most=2)}.",
        (row["case"] for row in used or rows),
        (row["method"] for row in used or rows),
        {"methods": rows},
    )


@check(
    "R708",
    "A study that is not finished",
    looks_at="Trials and choices that were planned, and those that are done.",
    matters="What is not done yet may change what is chosen.",
    tip="Something is to be done yet.",
    remedy="Go on with rekka compare --resume RUN.",
)
def unfinished(evidence: Evidence) -> Seen:
    """Counts."""
    study = evidence.study
    done, choices = len(study.results), len(study.choices)
    planned = study.planned // max(len(study.plan.study.methods), 1)
    if done == study.planned and choices == planned:
        return passed(f"{count_of(done, 'trial')} and {count_of(choices, 'choice')} are done.")
    made = f"{choices:,} of {count_of(planned, 'choice')}"
    words = f"{done:,} of {count_of(study.planned, 'trial')} and {made} are done."
    values = {"trials": done, "planned": study.planned, "choices": choices, "planned_choices": planned}
    return found(False, words, (), values=values)


CHECKS = (
    nothing_chosen,
    resamples,
    times,
    optimism,
    unseen_loss,
    unfinished,
)
