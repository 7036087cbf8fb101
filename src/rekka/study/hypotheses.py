"""The paper's five hypotheses, judged on any study's trials (paper, appendix: hypotheses H1 to H5).

Each comes with its evidence in words and the figures behind it. That it cannot be judged, because a method, a
column or a kind of case is missing, is a result too.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from rekka.core.errors import count_of, name_some
from rekka.study.explanations import Row
from rekka.study.plan import is_affine
from rekka.study.tables import KEY, MATERIALLY_WORSE, each, is_materially_worse, read_columns

ZSCORE, BOXCOX = "zscore", "boxcox"
SMALL_DIFFERENCE = 0.01  # of accuracy; paper, outcome of H2: "at most 0.01" among max, min-max and z-score
FEW_ROWS, MANY_ROWS = 100, 500  # training rows; paper, H5
ROUNDING = 1e-12  # of an accuracy: a difference of 0.5 - 0.49 is 0.01 and not more

Cases = Mapping[str, Sequence[Row]]

CLAIMS = {
    "H1": "Z-score converges in every case, and every other method fails in at least one.",
    "H2": "Among the methods that converge in a case, accuracies differ little.",
    "H3": "Where Box-Cox converges it is the fastest, and its log loss is materially worse than the others'.",
    "H4": "Z-score is selected in a majority of cases.",
    "H5": f"Trials fail more often in cases under {FEW_ROWS} training rows than in cases over {MANY_ROWS}.",
}


class Support(enum.StrEnum):
    """Degrees to which trials support a hypothesis."""

    SUPPORTED = "supported"
    PARTLY = "partly supported"
    NOT = "not supported"
    OPEN = "cannot be judged"


@dataclass(frozen=True)
class Judgement:
    """Support for a hypothesis, its evidence in sentences, and the figures as plain data."""

    verdict: Support
    evidence: str
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis on the trials of one preset."""

    preset: str
    code: str
    claim: str
    verdict: Support
    evidence: str
    figures: dict[str, Any]


def judge_hypotheses(trials: pl.DataFrame) -> tuple[Hypothesis, ...]:
    """H1 to H5 for each preset, in order of appearance.

    A trial has converged if it is eligible: certified under our conditions, the solver's word under the paper's.
    Needs preset, case, method, and eligible or converged; takes accuracy (H2), seconds and log_loss (H3), selected
    (H4: see ``mark_selected``), train (H5).
    """
    optional = ("accuracy", "seconds", "log_loss", "selected", "train")
    column = "eligible" if "eligible" in trials.columns else "converged"  # converged, as the preset means it
    named = trials.with_columns(converged=pl.col(column)) if column in trials.columns else trials
    table = read_columns(named, (*KEY, "converged"), optional)
    judged = []
    for (preset,), group in table.group_by("preset", maintain_order=True):
        cases = {case: rows for (case,), rows in each(group, "case")}
        judged += [
            Hypothesis(str(preset), code, CLAIMS[code], **vars(judge(cases))) for code, judge in JUDGES.items()
        ]
    return tuple(judged)


def judge_reliability(cases: Cases) -> Judgement:
    """H1. Partly: z-score converges everywhere, and some of the others fail somewhere while some never do."""
    tried = [row for rows in cases.values() for row in rows]
    failed = {
        method: [row["case"] for row in tried if row["method"] == method and not row["converged"]]
        for method in dict.fromkeys(row["method"] for row in tried)
    }
    if ZSCORE not in failed or len(failed) == 1:
        return Judgement(
            Support.OPEN, f"The methods tried are {name_some(list(failed))}: needed are {ZSCORE} and others."
        )
    total = sum(row["method"] == ZSCORE for row in tried)
    others = {method: where for method, where in failed.items() if method != ZSCORE}
    words = [f"{method} in {_in_cases(where)}" for method, where in others.items()]
    evidence = f"{ZSCORE} converges in {total - len(failed[ZSCORE])} of {count_of(total, 'case')}."
    evidence += f" Failures of the others: {'; '.join(words)}."
    if failed[ZSCORE] or not any(others.values()):
        verdict = Support.NOT
    else:
        verdict = Support.SUPPORTED if all(others.values()) else Support.PARTLY
    return Judgement(verdict, evidence, {"cases": total, "failed": failed})


def judge_accuracy(cases: Cases) -> Judgement:
    """H2. Small is SMALL_DIFFERENCE. Partly: among the affine methods only, which is the paper's own evidence."""
    every = _largest_difference(cases, lambda method: True)
    affine = _largest_difference(cases, is_affine)
    if every is None:
        return Judgement(Support.OPEN, "In no case do two methods that converged have an accuracy.")
    figures = {"limit": SMALL_DIFFERENCE, "all": every[0], "all_case": every[1]}
    evidence = f"Within a case, accuracies of methods that converged differ by at most {every[0]:.4f} ({every[1]})"
    if affine is not None:
        figures |= {"affine": affine[0], "affine_case": affine[1]}
        where = f" ({affine[1]})" if affine[0] > 0 else ""
        evidence += f", those of the affine methods alone by at most {affine[0]:.4f}{where}"
    evidence += f"; small is {SMALL_DIFFERENCE}."
    if every[0] <= SMALL_DIFFERENCE + ROUNDING:
        return Judgement(Support.SUPPORTED, evidence, figures)
    partly = affine is not None and affine[0] <= SMALL_DIFFERENCE + ROUNDING
    return Judgement(Support.PARTLY if partly else Support.NOT, evidence, figures)


def _largest_difference(cases: Cases, counts: Callable[[str], bool]) -> tuple[float, str] | None:
    """The largest difference of accuracy within a case, and the case."""
    found = []
    for case, rows in cases.items():
        values = [row["accuracy"] for row in _converged(rows) if counts(row["method"])]
        values = [value for value in values if value is not None]
        if len(values) > 1:
            found.append((max(values) - min(values), case))
    return max(found, key=lambda pair: pair[0], default=None)


def judge_speed_and_calibration(cases: Cases) -> Judgement:
    """H3, in the cases where Box-Cox and another method converged and have times.

    A case shows it if Box-Cox took the least time and its log loss is at least MATERIALLY_WORSE times that of the
    best alternative. A case in which it is the fastest and a log loss is missing is left open. Partly: some cases.
    """
    facts: dict[str, dict[str, bool | None]] = {}
    for case, rows in cases.items():
        timed = [row for row in _converged(rows) if row["seconds"] is not None]
        mine = next((row for row in timed if row["method"] == BOXCOX), None)
        others = [row for row in timed if row["method"] != BOXCOX]
        if mine and others:
            facts[case] = {
                "fastest": mine["seconds"] < min(row["seconds"] for row in others),
                "worse": _is_worse(mine, others),
            }
    if not facts:
        return Judgement(
            Support.OPEN, f"In no case did {BOXCOX} converge beside another method, both with their seconds."
        )
    fastest = [case for case, fact in facts.items() if fact["fastest"]]
    worse = [case for case, fact in facts.items() if fact["worse"]]
    unknown = [case for case, fact in facts.items() if fact["worse"] is None]
    both = [case for case in fastest if case in worse]
    decided = [case for case in facts if case not in fastest or case not in unknown]
    evidence = (
        f"{BOXCOX} converged beside another method in {_in_cases(list(facts))}: it is the fastest in "
        f"{_in_cases(fastest)}, its log loss at least {MATERIALLY_WORSE:g} times the best alternative in "
        f"{_in_cases(worse)}, both in {len(both)}."
    )
    if unknown:
        evidence += f" Log losses are missing in {_in_cases(unknown)}."
    figures = {"limit": MATERIALLY_WORSE, "cases": list(facts), "fastest": fastest, "worse": worse, "both": both}
    figures["unknown"] = unknown
    if not decided:
        return Judgement(Support.OPEN, evidence, figures)
    return Judgement(_share_verdict(len(both), len(decided)), evidence, figures)


def _is_worse(mine: Row, others: Sequence[Row]) -> bool | None:
    """Whether a log loss is materially worse than the best of the others; None if it cannot be known."""
    losses = [row["log_loss"] for row in others if row["log_loss"] is not None]
    if mine["log_loss"] is None or not losses:
        return None
    return bool(is_materially_worse(mine["log_loss"], min(losses)))


def judge_concentration(cases: Cases) -> Judgement:
    """H4. A majority is more than half of all cases, those in which nothing was selected included."""
    mine = {case: row["selected"] for case, rows in cases.items() for row in rows if row["method"] == ZSCORE}
    if not mine:
        return Judgement(Support.OPEN, f"{ZSCORE} was not tried.")
    if None in mine.values():
        return Judgement(Support.OPEN, "The trials do not say which methods were selected; mark_selected adds it.")
    selected = [case for case, chosen in mine.items() if chosen]
    evidence = f"{ZSCORE} is selected in {len(selected)} of {count_of(len(cases), 'case')}."
    verdict = Support.SUPPORTED if 2 * len(selected) > len(cases) else Support.NOT
    return Judgement(verdict, evidence, {"selected": selected, "cases": len(cases)})


def judge_small_samples(cases: Cases) -> Judgement:
    """H5. Partly: the share is higher over all small cases, but not in each: in some no trial failed."""
    size = {case: rows[0]["train"] for case, rows in cases.items()}
    small = [case for case, rows in size.items() if rows is not None and rows < FEW_ROWS]
    large = [case for case, rows in size.items() if rows is not None and rows > MANY_ROWS]
    if not small or not large:
        found = f"{count_of(len(small), 'case')} under {FEW_ROWS} training rows and {len(large)} over {MANY_ROWS}"
        return Judgement(
            Support.OPEN, f"There {'is' if len(small) == 1 else 'are'} {found}: both kinds are needed."
        )
    few, many = _count_failures(cases, small), _count_failures(cases, large)
    clean = [case for case in small if all(row["converged"] for row in cases[case])]
    evidence = (
        f"{_name_share(few)} failed in {count_of(len(small), 'case')} under {FEW_ROWS} training rows, "
        f"{_name_share(many)} in {count_of(len(large), 'case')} over {MANY_ROWS}."
    )
    if clean:
        words = [f"{case} ({count_of(size[case], 'row')})" for case in clean]
        evidence += f" No trial failed in {name_some(words)}: small as it is, such a case does not show it."
    figures = {
        "small": few,
        "large": many,
        "small_cases": small,
        "large_cases": large,
        "small_without_failure": clean,
    }
    if few["failed"] * many["trials"] <= many["failed"] * few["trials"]:
        return Judgement(Support.NOT, evidence, figures)
    return Judgement(Support.PARTLY if clean else Support.SUPPORTED, evidence, figures)


def _count_failures(cases: Cases, names: Sequence[str]) -> dict[str, int]:
    tried = [row["converged"] for name in names for row in cases[name]]
    return {"failed": tried.count(False), "trials": len(tried)}


def _name_share(count: Mapping[str, int]) -> str:
    failed, trials = count["failed"], count["trials"]
    return f"{failed} of {count_of(trials, 'trial')} ({failed / trials:.0%})"


def _share_verdict(holds: int, of: int) -> Support:
    """All, some or none."""
    if holds == 0:
        return Support.NOT
    return Support.SUPPORTED if holds == of else Support.PARTLY


def _converged(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["converged"]]


def _in_cases(names: Sequence[str]) -> str:
    """'no case', '1 case (Pier)', '2 cases (Pier, Bearing)'."""
    return f"{count_of(len(names), 'case')} ({name_some(names, 5)})" if names else "no case"


JUDGES: dict[str, Callable[[Cases], Judgement]] = {
    "H1": judge_reliability,
    "H2": judge_accuracy,
    "H3": judge_speed_and_calibration,
    "H4": judge_concentration,
    "H5": judge_small_samples,
}
