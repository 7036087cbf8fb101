"""Checks on what the cases can carry (R609 to R611): size, covariates, and whether the chosen model fits."""

from __future__ import annotations

import math

from rekka.errors import count_of
from rekka.intervals import CONFIDENCE
from rekka.model.certificate import FEW_EVENTS
from rekka.study.checks.evidence import NOTHING_DONE, NOTHING_SELECTED, Evidence, name_case
from rekka.study.checks.findings import Seen, absent, check, found, passed, tell_some
from rekka.study.trial import FEW_ROWS
from rekka.study.words import list_names

LEVEL = round(1.0 - CONFIDENCE, 12)  # of the test of fit


@check(
    "R609",
    "A case of exploratory size",
    looks_at="Training rows of each case, and departures from a state for each coefficient to estimate.",
    matters="With few rows slopes are too steep, intervals too narrow, and one bridge decides what is chosen.",
    tip=f"Fewer than {FEW_ROWS} training rows, or fewer than {FEW_EVENTS} departures a coefficient.",
    remedy="Read the intervals rather than the estimates. Use fewer covariates, join similar cases, or let a "
    "penalty or the other cases hold the coefficients: methods ridge, pooled.",
)
def exploratory(evidence: Evidence) -> Seen:
    """As the study itself describes its cases."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    small = [case for case in cases if case.exploratory is not None]
    if not small:
        fewest = min(cases, key=lambda case: case.train)
        return passed(
            f"The smallest case, {name_case(fewest.name)}, has {count_of(fewest.train, 'training row')}."
        )
    facts = [f"{name_case(case.name)} ({case.exploratory})" for case in small]
    values = {
        case.name: {"train": case.train, "moves": case.moves, "events_per_parameter": case.events_per_parameter}
        for case in small
    }
    words = f"Too small to conclude from: {tell_some(facts)}."
    return found(False, words, values, values={"cases": values})


@check(
    "R610",
    "Covariates left out because they do not vary",
    looks_at="Covariates with one value in all training rows of a case.",
    matters="Nothing can be learned about such a covariate, and the model of that case ignores it: for a bridge "
    "where it is otherwise the forecast is the same.",
    tip="Some were left out.",
    remedy="If the covariate varies in the world, look for the rows that are missing. If not, leave it out of the "
    "study for that case.",
)
def constant(evidence: Evidence) -> Seen:
    """Case by case."""
    cases = evidence.study.described
    if not cases:
        return absent(NOTHING_DONE)
    if not any(case.covariates or case.constant for case in cases):
        return absent("The study has no covariates.")
    left_out = {case.name: list(case.constant) for case in cases if case.constant}
    if not left_out:
        return passed("Every covariate varies in the training rows of every case.")
    facts = [f"{name_case(name)}: {list_names(names)}" for name, names in left_out.items()]
    return found(
        False,
        f"No variation in the training rows, and left out: {tell_some(facts)}.",
        left_out,
        values={"constant": left_out},
    )


@check(
    "R611",
    "Forecasts that do not fit the training rows",
    looks_at="Counts of every move in the training rows, observed and as the chosen model expects them, by a test "
    "whose reference is simulated from the model itself.",
    matters="A model that is rejected on the very rows it was fitted to has a wrong form: a hazard that changes "
    "with time in a state, a covariate that acts otherwise, or one that is missing.",
    tip=f"The test rejects at {LEVEL:g}. Never an issue: given enough rows every model is rejected, and one that "
    "is may still forecast better than any other. Read the causes, and how large the differences are.",
    remedy="Read the causes named. A recalibration would hide them: another scaling, another covariate, or states "
    "merged or split may cure them.",
)
def goodness(evidence: Evidence) -> Seen:
    """The calibrations that were given, of what was chosen."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    if evidence.calibrations is None:
        return absent("The test was not run: rekka checks runs it, unless --quick is given.")
    chosen = {(pick.choice.preset, pick.case.name): pick.label for pick in evidence.chosen}
    given = {key: one for key, one in evidence.calibrations.items() if key in chosen}
    tested = {key: one for key, one in given.items() if not math.isnan(one.goodness.p_value)}
    if not tested:
        return absent("No test could be made of any chosen model.")
    rejected = {key: one for key, one in tested.items() if one.goodness.p_value <= LEVEL}
    chance = f" Of {len(tested)} tests at {LEVEL:g}, chance alone rejects {LEVEL * len(tested):.2g}."
    beside = chance if len(tested) > 1 else ""
    if not rejected:
        least = min(tested, key=lambda key: tested[key].goodness.p_value)
        smallest = f"{tested[least].goodness.p_value:.2g} in {chosen[least]}"
        return passed(f"The chosen models fit their training rows: the smallest p-value is {smallest}.{beside}")
    most = None if len(rejected) == 1 else 1  # of several each has its first cause told
    facts = [
        " ".join(
            [f"{chosen[key]} (p {one.goodness.p_value:.2g})" + (":" if one.causes else ""), *one.causes[:most]]
        )
        for key, one in rejected.items()
    ]
    values = [
        {"preset": preset, "case": case, "p_value": one.goodness.p_value, "causes": list(one.causes)}
        for (preset, case), one in tested.items()
    ]
    told = tell_some([fact.rstrip(".") for fact in facts])
    words = f"The training rows do not fit the chosen model: {told}.{beside}"
    methods = (p.method for p in evidence.chosen if (p.choice.preset, p.case.name) in rejected)
    return found(False, words, (case for _, case in rejected), methods, {"tests": values})


CHECKS = (exploratory, constant, goodness)
