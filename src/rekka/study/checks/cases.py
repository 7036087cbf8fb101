"""Checks on what the cases can carry (R609 to R611): size, covariates, and whether the chosen model fits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rekka.core.errors import count_of
from rekka.evaluation.calibration import MOST_TESTED
from rekka.evaluation.intervals import CONFIDENCE
from rekka.model.certificate import FEW_EVENTS, FEW_ROWS
from rekka.study.checks.evidence import NOTHING_DONE, NOTHING_SELECTED, Evidence, Pick, name_case
from rekka.study.checks.findings import Seen, absent, check, found, passed, tell_some
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
    "A chosen model that does not describe its training rows",
    looks_at="Counts of every move in the training rows, observed and as the chosen model expects them, by a test "
    "whose reference is simulated from the model itself. It is made once, with the choice.",
    matters="A model that is rejected on the very rows it was fitted to has a wrong form, however well its "
    "maximum is certified: its matrix contradicts the inspections that it was made of.",
    issue=f"The test rejects at {LEVEL:g}. With very many rows a small difference is enough: read how large it "
    "is.",
    remedy="Each cause is named with what to do about it; rekka show RUN --section calibration has all of them. A "
    "recalibration would hide them.",
)
def goodness(evidence: Evidence) -> Seen:
    """The test that was made with each choice, or of a calibration that was given."""
    if not evidence.chosen:
        return absent(NOTHING_SELECTED)
    tested = {key: one for pick in evidence.chosen if (one := _find_test(evidence, key := _key(pick))) is not None}
    if not tested:
        return absent(_tell_untested(evidence))
    rejected = {key: one for key, one in tested.items() if one.p_value <= LEVEL}
    labels = {_key(pick): pick.label for pick in evidence.chosen}
    chance = f" Of {len(tested)} tests at {LEVEL:g}, chance alone rejects {LEVEL * len(tested):.2g}."
    beside = chance if len(tested) > 1 else ""
    if not rejected:
        least = min(tested, key=lambda key: tested[key].p_value)
        smallest = f"{tested[least].p_value:.2g} in {labels[least]}"
        return passed(f"The chosen models fit their training rows: the smallest p-value is {smallest}.{beside}")
    one_alone = len(rejected) == 1  # its causes are told with what to do, of several the largest differences
    facts = [
        f"{labels[key]} (p {one.p_value:.2g}): {one.tell(in_full=one_alone)}".rstrip(".: ")
        for key, one in rejected.items()
    ]
    values = [
        {"preset": preset, "case": case, "p_value": one.p_value, "causes": list(one.causes)}
        for (preset, case), one in tested.items()
    ]
    words = f"The chosen model does not describe the rows it was fitted to: {tell_some(facts)}.{beside}"
    methods = (pick.method for pick in evidence.chosen if _key(pick) in rejected)
    return found(True, words, (case for _, case in rejected), methods, {"tests": values})


@dataclass(frozen=True)
class _Test:
    """The p-value of a test, its causes in sentences, and the largest differences, where they are known."""

    p_value: float
    causes: tuple[str, ...]
    facts: str = ""

    def tell(self, *, in_full: bool) -> str:
        if not self.causes or (self.facts and not in_full):
            return self.facts
        return " ".join(self.causes if in_full else self.causes[:1])


def _key(pick: Pick) -> tuple[str, str]:
    return pick.choice.preset, pick.case.name


def _find_test(evidence: Evidence, key: tuple[str, str]) -> _Test | None:
    """The test of a calibration that was given, or else the one that was made with the choice."""
    given = (evidence.calibrations or {}).get(key)
    if given is not None and not math.isnan(given.goodness.p_value):
        return _Test(given.goodness.p_value, given.causes)
    choice = evidence.study.choice(key[1], key[0])
    test = None if choice is None else choice.fit_test
    if test is None:
        return None
    return _Test(test.p_value, test.causes, "; ".join(one.describe() for one in test.contrasts))


def _tell_untested(evidence: Evidence) -> str:
    if evidence.calibrations is not None:
        return "No test could be made of any chosen model."
    if len(evidence.cases) > MOST_TESTED:
        return (
            f"The test of fit was not made: of more than {MOST_TESTED} components it is made on request, by "
            "rekka checks RUN --test-fit."
        )
    return "The test of fit was not made with the choice: rekka checks makes it, unless --quick is given."


CHECKS = (exploratory, constant, goodness)
