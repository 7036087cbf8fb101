"""The page on the paper's study, of a stored run and the paper's printed tables: what stands where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.reproduction_account import tell_agreement, tell_exact, tell_open
from benchmarks.reproduction_differences import tell_differences
from benchmarks.reproduction_sides import Side, Stored, list_sides
from benchmarks.reproduction_tables import (
    tell_boxcox,
    tell_cases,
    tell_hypotheses,
    tell_methods,
    tell_selection,
    tell_starts,
    tell_trials,
)
from benchmarks.reproduction_words import bullets, table, wrap
from rekka.report.views import FigureView


def write_page(stored: Stored, pictures: Mapping[str, FigureView]) -> str:
    """The page, of the stored run and the paper's printed tables alone."""
    paper, ours, exact = sides = list_sides(stored)
    names = list(pictures)
    parts = [
        *_introduce(stored),
        "## Table 1: the cases",
        *tell_cases(stored),
        "## Table 2: methods over all cases",
        *tell_methods(sides),
        *tell_starts(stored, paper, ours),
        "## Figure 1: accuracy against cost, and coverage",
        *_show_pictures(names[:3], pictures, sides, "Figure 1"),
        "## Table 3: the Pareto set of each case",
        *tell_selection(paper, ours, exact),
        "## Figure 2: accuracy and time of every trial",
        *_show_pictures(names[3:], pictures, sides, "Figure 2"),
        "## Table 4: Box-Cox's log loss beside the alternatives'",
        *tell_boxcox(stored, paper, ours, exact),
        "## Table 5: every trial",
        *tell_trials(sides),
        "## The hypotheses",
        *tell_hypotheses(stored, sides),
        "## What agrees",
        *bullets(tell_agreement(stored, paper, ours, exact)),
        "## What does not, and why",
        *bullets(tell_differences(stored, paper, ours, exact)),
        "## What the exact fits add",
        *bullets(tell_exact(stored, ours, exact)),
        "## What cannot be judged",
        *bullets(tell_open(paper)),
    ]
    return "\n\n".join(parts) + "\n"


def _introduce(stored: Stored) -> list[str]:
    setting = stored["configuration"]
    versions = setting["versions"]
    return [
        "# The paper's study, run again",
        wrap(
            "The paper is *Convergence-Aware Pareto Selection of Covariate Scaling Transformations for Markov "
            "Deterioration Hazard Models: Evidence from Bridge Inspection Data* by Takato Yasuno, Keita Kobayashi "
            "and Ryuta Sakaguchi. Here are its five tables and two figures from a run of rekka, beside the "
            "numbers it prints. `python -m benchmarks.reproduction` runs the study, stores it in "
            "[benchmarks/results](../benchmarks/results/reproduction.json) and writes this page from it; `--page` "
            "writes the page alone. No measured number was typed by hand; the paper's are read from "
            "`src/rekka/verification/paper_trials.json`, into which its tables were typed once. What its own "
            "tables say where its text says something else is in [the paper's numbers, recomputed](errata.md). "
            "The study for other hazards, ageing within the interval, errors of inspection or frailty, is on [a "
            "page of its own](families.md)."
        ),
        table(
            ("", "what it is", "converged means", "cost"),
            [
                (
                    "**paper**",
                    "the figures it prints; a dash where it prints none",
                    "the solver says so",
                    "seconds",
                ),
                (
                    "**rekka, paper's conditions**",
                    "`--preset paper`: L-BFGS-B, at most 500 iterations, two-point gradient, closed form with "
                    "both floors, start N(0, 0.1^2)",
                    "the solver says so",
                    "seconds",
                ),
                (
                    "**rekka, exact**",
                    "`--preset exact`: Newton on the exact likelihood, no floor",
                    "[certified](model.md#the-certificate-in-plain-words): shown to be a maximum",
                    "evaluations of the likelihood",
                ),
            ],
        ),
        wrap(
            "Both runs have the paper's split, four scalings and rule: fitted on third-to-fourth inspections, "
            "judged and selected on golden rows, the Pareto set of accuracy and cost kept. "
            f"Seconds are medians of {setting['repeats']['timings']} timings of the solver's call on one machine "
            f"({setting['processor']}, {setting['cores']} cores, load average {setting['load']:.1f} at the "
            f"start), with rekka {versions['rekka']}, Python {versions['python']}, SciPy {versions['scipy']}, "
            f"NumPy {versions['numpy']}. The paper had Python 3.13, SciPy 1.16.3, NumPy 2.3.5."
        ),
        "What can be expected to agree, and what not:",
        *bullets(
            [
                "**The paper's data are private.** Ours are the built-in simulated inventory: the same number of "
                "rows in every part of every case, states drawn from known hazards. Accuracies, log losses and "
                "which trial fails need not agree case by case. What scaling does to the optimizer can.",
                "**The ages were chosen with the paper in mind**: most bridges of about one age, with a tail of "
                "younger ones. Such stocks are common, and they make Box-Cox fail in the way the paper reports. "
                "That it fails here shows how this can come about; it is no independent evidence that it happens.",
                "**The paper's code is private.** Its Proposition 1 as printed is "
                "[not a transition probability](model.md#erratum-to-the-papers-proposition-1); rekka's paper "
                "preset has the corrected form with the paper's floors. Its start has the same distribution, but "
                "is another draw.",
                "**Seconds are of another machine and another implementation**: rekka compiles the closed form. "
                "Compare them within a set, never between two.",
            ]
        ),
    ]


def _show_pictures(
    names: Sequence[str], pictures: Mapping[str, FigureView], sides: Sequence[Side], figure: str
) -> Iterable[str]:
    """Pictures one under the other, each with its message for those who do not see it."""
    what = {
        "printed": f"{figure} redrawn from the numbers of its appendix; its own picture is not copied."
        + (
            " It does not say which fits are maxima: none is counted as certified." if figure == "Figure 1" else ""
        ),
        "paper": "L-BFGS-B on the floored likelihood.",
        "exact": "Newton on the exact likelihood; only certified fits count, and their cost is in evaluations."
        if figure == "Figure 1"
        else "Newton on the exact likelihood; gray cells are not certified.",
    }
    yield wrap(
        "Outlined marks are in the Pareto set of their case, which is what was selected. "
        + ("Axes differ between the pictures." if figure == "Figure 1" else "Colours differ between the pictures: "
           "each has its own range.")
    )  # fmt: skip
    for name, side in zip(names, sides, strict=True):
        message = " ".join(panel.alt for panel in pictures[name].panels)
        yield wrap(f"**{side.title}**: {what[side.key]}")
        yield wrap(f"![{message}](figures/{name})")
