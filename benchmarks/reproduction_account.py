"""What agrees with the paper, what the exact fits add, and what cannot be judged: a sentence or more for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from benchmarks.reproduction_sides import (
    AFFINE,
    BOXCOX,
    CASES,
    FLOOR,
    METHODS,
    PAPER,
    ZSCORE,
    Side,
    Stored,
    list_causes,
    measure_spread,
    rows_apart,
)
from benchmarks.reproduction_words import claim, join, name_methods, one_digit, show_range
from rekka.core.errors import count_of
from rekka.report.text import show_accuracy, show_figure, show_number, show_share
from rekka.study.trial import AT_MAXIMUM


def tell_agreement(stored: Stored, paper: Side, ours: Side, exact: Side) -> Iterable[str]:
    """What agrees."""
    yield _zscore_converges(stored, paper, ours, exact)
    yield _zscore_is_quick(paper, ours)
    yield _affine_forecast_alike(paper, ours, exact)
    yield _zscore_is_kept(paper, ours)
    yield _boxcox_is_on_the_floor(paper, ours)


def _zscore_converges(stored: Stored, paper: Side, ours: Side, exact: Side) -> str:
    starts = stored["starts"]
    others = [start["converged"][ZSCORE] for start in starts]
    causes = list_causes(stored)
    near = [case for case in CASES if abs(causes[case, ZSCORE]["short_by"]) <= AT_MAXIMUM]
    without = _without_maximum(exact)
    return (
        claim(
            {paper.methods[ZSCORE]["converged"], ours.methods[ZSCORE]["converged"], *others} == {len(CASES)}
            and sorted(near + without) == sorted(CASES),
            f"**Z-score converges in all {len(CASES)} cases**, in the paper, here, and here from all "
            f"{len(starts)} other starts. In {len(near)} it is within {AT_MAXIMUM} log-likelihood units of the "
            "exact maximum.",
        )
        + f" In {join(without)} there is no maximum to reach: success only says where the optimizer stopped."
    )


def _zscore_is_quick(paper: Side, ours: Side) -> str:
    quicker = {side.key: [_count_faster(side, other) for other in ("max", "minmax")] for side in (paper, ours)}
    share = {side.key: _share_of_max(side) for side in (paper, ours)}
    steps = [show_number(ours.methods[method]["median_iterations"], 0) for method in (ZSCORE, "max", "minmax")]
    return claim(
        max(share.values()) < 0.5,
        "**Z-score is the quickest affine scaling under L-BFGS-B.** It takes less time than max in "
        f"{quicker['printed'][0]} cases in the paper and {quicker['paper'][0]} here, than min-max in "
        f"{quicker['printed'][1]} and {quicker['paper'][1]}. Over the cases that all three fit, its median time "
        f"is {show_share(share['printed'])} of that of max in the paper, {show_share(share['paper'])} here. The "
        f"median number of iterations here is {steps[0]}, beside {steps[1]} (max) and {steps[2]} (min-max): the "
        "paper's argument, that centring and equal variances help this optimizer, holds.",
    )


def _affine_forecast_alike(paper: Side, ours: Side, exact: Side) -> str:
    gaps = {side.key: side.hypotheses["H2"].figures for side in (paper, ours, exact)}
    rows = {key: round(gap["affine"] * PAPER["cases"]["rows"][gap["affine_case"]][3]) for key, gap in gaps.items()}
    return claim(
        gaps["exact"]["affine"] == 0,
        "**Max, min-max and z-score forecast alike.** Their accuracies in a case differ by at most "
        f"{show_accuracy(gaps['printed']['affine'])} in the paper ({gaps['printed']['affine_case']}, "
        f"{count_of(rows['printed'], 'golden row')}), {show_accuracy(gaps['paper']['affine'])} here "
        f"({gaps['paper']['affine_case']}, {count_of(rows['paper'], 'golden row')}) and not at all under exact: "
        "they are one model.",
    )


def _zscore_is_kept(paper: Side, ours: Side) -> str:
    kept = {side.key: {method: side.methods[method]["selected"] for method in METHODS} for side in (paper, ours)}
    return claim(
        all(2 * counts[ZSCORE] > len(CASES) and counts["max"] == 0 for counts in kept.values()),
        f"**The rule keeps z-score in most cases**: {kept['printed'][ZSCORE]} in the paper, "
        f"{kept['paper'][ZSCORE]} here. Max is kept in no case of either.",
    )


def _boxcox_is_on_the_floor(paper: Side, ours: Side) -> str:
    winners = [case for case in CASES if BOXCOX in ours.selected[case]]
    printed = [case for case in CASES if BOXCOX in paper.selected[case]]
    moved = [ours.cells[case, BOXCOX]["iterations"] for case in winners]
    times = [_times_worse(ours, case) for case in winners]
    theirs = [_times_worse(paper, case) for case in printed]
    return claim(
        max(moved) <= 1
        and all(_off_floor(ours, case) < 1 for case in winners)
        and all(_off_floor(paper, case) < 2 for case in printed),
        f"**The Box-Cox fits that the rule keeps are on the probability floor**: {join(printed)} in the paper, "
        f"{join(winners)} here, where they stopped after {join(map(str, moved))} iterations. All of them have the "
        "log loss of a 0/1 forecaster, "
        f"(1 - accuracy) x {FLOOR:.2f}, to within two golden rows in the paper and within one here, "
        f"{show_range(theirs, one_digit)} times that of the best alternative in the paper, "
        f"{show_range(times, one_digit)} times here. The paper's warning, that accuracy and time do not see this, "
        "reproduces. Here its cause is an optimizer that hardly moved; the paper's figures are of the same kind.",
    )


def tell_exact(stored: Stored, ours: Side, exact: Side) -> Iterable[str]:
    """What the exact fits add."""
    nine = exact.cases(*AFFINE)
    yield _affine_coincide(ours, exact, nine)
    yield _boxcox_has_a_maximum(exact, nine)
    yield _nothing_is_selected(ours, exact)
    yield _accuracy_tells_little(stored, exact, nine)


def _affine_coincide(ours: Side, exact: Side, nine: Sequence[str]) -> str:
    spread = {
        side.key: max(measure_spread(side, "log_likelihood", case) for case in nine) for side in (ours, exact)
    }
    return claim(
        all(measure_spread(exact, name, case) == 0 for name in ("accuracy", "evaluations") for case in nine)
        and spread["exact"] < 1e-9,
        f"**Max, min-max and z-score coincide at the maximum.** In the {len(nine)} cases that have one their "
        f"log-likelihoods agree to {show_figure(spread['exact'], 1)}, with the same accuracy after the same "
        "number of evaluations. Under the paper's conditions they differ by up to "
        f"{show_figure(spread['paper'], 2)}. What the paper compares in these three is one model on its way "
        "through L-BFGS-B.",
    )


def _boxcox_has_a_maximum(exact: Side, nine: Sequence[str]) -> str:
    both = exact.cases(ZSCORE, BOXCOX)
    better = [c for c in both if exact.cells[c, BOXCOX]["log_loss"] < exact.cells[c, ZSCORE]["log_loss"]]
    less = [c for c in both if exact.cells[c, BOXCOX]["accuracy"] < exact.cells[c, ZSCORE]["accuracy"]]
    steps = [exact.cells[case, BOXCOX]["iterations"] for case in nine]
    return claim(
        exact.cases(BOXCOX) == nine and 2 * len(better) > len(both),
        f"**Box-Cox has a maximum like the others.** It is certified in all {len(nine)} cases that have a "
        f"maximum, in {show_range(steps)} iterations, and its "
        f"golden log loss is lower than z-score's, which is better, in {len(better)} of {len(both)}; its accuracy "
        f"is lower in {len(less)}. "
        "This is no evidence for Box-Cox on real bridges: our hazards were drawn linear in the logarithms of "
        "length, area and traffic, which its exponents near zero come close to. What it shows is that log losses "
        "as on the floor can be the optimizer's doing alone: the same transform of the same rows has others at "
        "the maximum.",
    )


def _nothing_is_selected(ours: Side, exact: Side) -> str:
    without = _without_maximum(exact)
    said = {case: sum(ours.cells[case, method]["converged"] for method in METHODS) for case in without}
    return claim(
        all(not exact.selected[case] for case in without),
        f"**Where there is no maximum, nothing is selected**: {join(without)}. Under the paper's conditions "
        + ", ".join(f"{count} of {len(METHODS)} methods report success there" for count in said.values())
        + f", and {join(name_methods(ours.selected[case]) for case in without)} is kept.",
    )


def _accuracy_tells_little(stored: Stored, exact: Side, nine: Sequence[str]) -> str:
    baseline = {case["case"]: case["persistence_accuracy"] for case in stored["cases"]}
    beaten = [case for case in nine if baseline[case] >= exact.cells[case, ZSCORE]["accuracy"]]
    return (
        f"**Accuracy tells little.** In {len(beaten)} of {len(nine)} cases the forecast that nothing changes is "
        "at least as accurate as the certified z-score fit. [The guarded rule](choosing-safely.md) therefore asks "
        "for log loss, stability and rows that were not used to choose; on this page the golden rows chose, as in "
        "the paper, so no accuracy here is confirmed."
    )


def tell_open(paper: Side) -> Iterable[str]:
    """What cannot be judged."""
    apart = [case for case in paper.cases(*AFFINE) if rows_apart(paper, case)]
    rest = [case for case in paper.cases(BOXCOX) if case not in PAPER["log_loss"]["rows"]]
    yield (
        "Whether the paper's converged fits were at the maximum: it prints no log-likelihood. Its affine fits "
        f"differ in accuracy in {join(apart)}, so there at least one was not, or there is none."
    )
    yield (
        "Whether a failure in the paper is the data's or the optimizer's: it prints no solver message, no number "
        "of iterations, no number of states and no count of moves."
    )
    yield (
        f"Box-Cox in the paper's {join(rest)}, the fourth case in which it converged: its log loss is not "
        "printed. Nor are log losses in the cases in which it failed, rows at the floor, or exponents."
    )
    yield (
        "Whether the paper's fits are better than saying that nothing changes, or than a model without "
        "covariates: it has no baseline."
    )
    yield (
        "Which scaling is best on its bridges. Nothing on this page can say that: it needs certified fits to "
        "those rows. `rekka compare --rule pareto --preset both` runs this study on any table of inspections."
    )


def _without_maximum(exact: Side) -> list[str]:
    """Cases whose likelihood has no maximum."""
    return [case for case in CASES if exact.cells[case, ZSCORE]["maximum_exists"] is False]


def _count_faster(side: Side, other: str) -> str:
    """In how many cases z-score took less time than another method."""
    cases = side.cases(ZSCORE, other)
    faster = sum(side.cells[case, ZSCORE]["seconds"] < side.cells[case, other]["seconds"] for case in cases)
    return f"{faster} of {len(cases)}"


def _share_of_max(side: Side) -> float:
    """Z-score's median seconds over those of max, in the cases that all affine methods fit."""
    common = side.cases(*AFFINE)
    mine, theirs = (median(side.cells[case, method]["seconds"] for case in common) for method in (ZSCORE, "max"))
    return float(mine / theirs)


def _times_worse(side: Side, case: str) -> float:
    """Box-Cox's log loss over that of the best alternative."""
    others = [side.cells[case, m]["log_loss"] for m in AFFINE if side.cells[case, m]["eligible"]]
    return float(side.cells[case, BOXCOX]["log_loss"] / min(loss for loss in others if loss is not None))


def _off_floor(side: Side, case: str) -> float:
    """Golden rows between Box-Cox's log loss and that of a 0/1 forecaster of the same accuracy."""
    own = side.cells[case, BOXCOX]
    return abs(own["log_loss"] / FLOOR - (1 - own["accuracy"])) * float(own["golden"])
