"""The paper's five tables, the other starts and the hypotheses: its numbers beside ours, in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.problems import SEED
from benchmarks.reproduction_sides import (
    AFFINE,
    AGE,
    BOXCOX,
    CASES,
    FLOOR,
    METHODS,
    NAMES,
    PAPER,
    STEADY,
    TRIALS,
    Row,
    Side,
    Stored,
)
from benchmarks.reproduction_words import (
    bullet,
    claim,
    name_methods,
    one_digit,
    show_range,
    table,
    two_digits,
    wrap,
)
from rekka.report.text import (
    MISSING,
    show_accuracy,
    show_count,
    show_figure,
    show_number,
    show_seconds,
    show_share,
)
from rekka.study.hypotheses import CLAIMS, Support


def tell_cases(stored: Stored) -> list[str]:
    """Table 1: rows of each part of each case."""
    rows = []
    for case in stored["cases"]:
        total, *printed = PAPER["cases"]["rows"][case["case"]]
        own = [case[part] for part in ("train", "validation", "golden")]
        parameters = (case["n_states"] - 1) * (len(case["covariates"]) + 1)
        rows.append((case["case"], total, *printed, sum(own), *own, case["moves"], parameters))
    same = all(row[1:5] == row[5:9] for row in rows)
    sentence = claim(
        same, "The sizes are the same by design: the inventory is drawn to have them, so this agrees."
    )
    fewest = min(rows, key=lambda row: row[9] / row[10])
    return [
        wrap(
            f"{sentence} Moves are states left in the training rows, parameters those of the model (K - 1 states, "
            f"an intercept and four covariates each); the paper prints neither. {fewest[0]} has {fewest[9]} moves "
            f"for {fewest[10]} parameters."
        ),
        table(
            ("case", *(f"paper: {name}" for name in ("total", "train", "validation", "golden")),
             *(f"rekka: {name}" for name in ("total", "train", "validation", "golden", "moves", "parameters"))),
            [(name, *map(show_count, counts)) for name, *counts in rows],
        ),
    ]  # fmt: skip


def tell_methods(sides: Sequence[Side]) -> list[str]:
    """Table 2: each method over all cases."""
    rows = []
    for method in METHODS:
        for side in sides:
            own = side.methods[method]
            of = own["trials"]
            rows.append(
                (
                    NAMES[method],
                    side.title,
                    f"{own['converged']} / {of}" if side.key != "exact" else MISSING,
                    MISSING if own["certified"] is None else f"{own['certified']} / {of}",
                    own["selected"],
                    show_accuracy(own["mean_accuracy"]),
                    show_seconds(own["median_seconds_low"]),
                    show_number(own["median_seconds"], 4),
                )
            )
    paper, ours, exact = sides
    return [
        wrap(
            "Means and medians are over the trials that converged, under exact over those certified. The paper "
            "prints the low median, the lower of the two middle values where their number is even; the usual one, "
            "their mean, is recomputed from its appendix. In all, "
            f"{paper.count('converged')} of {TRIALS} trials converged in the paper and {ours.count('converged')} "
            f"under its conditions here, of which {ours.count('certified')} are certified; "
            f"{exact.count('certified')} are certified under exact. Selections: {paper.count('selected')}, "
            f"{ours.count('selected')} and {exact.count('selected')}."
        ),
        table(
            (
                "method",
                "",
                "converged",
                "certified",
                "selected",
                "mean accuracy",
                "median s (low)",
                "median s (usual)",
            ),
            rows,
        ),
    ]


def tell_starts(stored: Stored, paper: Side, ours: Side) -> list[str]:
    """Beside Table 2: the paper's conditions from other starts."""
    starts, steady = stored["starts"], ours.weigh(STEADY).methods
    rows = []
    for method in METHODS:
        converged, certified = ([start[name][method] for start in starts] for name in ("converged", "certified"))
        own = ours.methods[method]
        rows.append(
            (
                NAMES[method],
                paper.methods[method]["converged"],
                own["converged"],
                show_range(converged),
                own["certified"],
                show_range(certified),
                steady[method]["selected"],
                show_range([sum(method in kept for kept in start["selected"].values()) for start in starts]),
            )
        )
    return [
        wrap(
            f"How much of this is one start? Our run has the paper's seed, {SEED}. The same rows under the same "
            f"conditions from {len(starts)} other draws of N(0, 0.1^2), least to most of {len(CASES)} cases. "
            f"Selected is here by {STEADY} instead of seconds, so that the clock has no part in it."
        ),
        table(
            ("method", "paper: converged", "rekka: converged", "other starts: converged", "rekka: certified",
             "other starts: certified", "rekka: selected", "other starts: selected"),
            rows,
        ),
    ]  # fmt: skip


def tell_selection(paper: Side, ours: Side, exact: Side) -> list[str]:
    """Table 3: what the rule keeps in each case."""
    rows = []
    for case in CASES:
        sets = [name_methods(side.selected[case]) for side in (paper, ours, exact)]
        rows.append((case, *sets, "yes" if paper.selected[case] == ours.selected[case] else "no"))
    return [
        wrap(
            "Under exact, methods that are one model tie in accuracy and evaluations and are all kept. The last "
            "column says whether the paper's set and ours under its conditions are the same."
        ),
        table(("case", "paper", "rekka, paper's conditions", "rekka, exact", "same"), rows),
    ]


def tell_boxcox(stored: Stored, paper: Side, ours: Side, exact: Side) -> list[str]:
    """Table 4: Box-Cox's log loss where it converged, and why it is what it is."""
    rows = [_boxcox_row(paper, case, None) for case in PAPER["log_loss"]["rows"]]
    rows += [_boxcox_row(ours, case, exact.cells[case, BOXCOX]) for case in ours.cases(BOXCOX)]
    return [
        wrap(
            f"A forecaster that gives probability 1 to one state and is wrong pays the floor, {FLOOR:.2f}: its "
            f"log loss is (1 - accuracy) x {FLOOR:.2f}. The paper prints the three cases in which Box-Cox was "
            "selected; ours are all in which it converged under the paper's conditions. Rows at the floor are "
            "golden rows whose observed state had a probability of 1e-12 or less. The last column is Box-Cox on "
            "the same rows by the exact likelihood, in brackets where no maximum is certified."
        ),
        table(
            ("", "case", "selected", "accuracy", "log loss", f"(1 - accuracy) x {FLOOR:.2f}", "rows at the floor",
             "alternatives' log loss", "times theirs", "iterations", "exact: log loss"),
            rows,
        ),
        wrap(_tell_exponents(stored)),
    ]  # fmt: skip


def _boxcox_row(side: Side, case: str, exact: Row | None) -> Sequence[object]:
    own = side.cells[case, BOXCOX]
    others = [side.cells[case, method] for method in AFFINE]
    losses = [row["log_loss"] for row in others if row["eligible"] and row["log_loss"] is not None]
    times = [own["log_loss"] / max(losses), own["log_loss"] / min(losses)]
    best = MISSING
    if exact is not None:
        best = show_number(exact["log_loss"], 4)
        best = best if exact["certified"] else f"({best})"
    at_floor = show_share(own["at_floor"] / own["scored"]) if own.get("scored") else MISSING
    return (
        side.title,
        case,
        "yes" if own["selected"] else "no",
        show_accuracy(own["accuracy"]),
        show_number(own["log_loss"], 4),
        show_number((1 - own["accuracy"]) * FLOOR, 4),
        at_floor,
        show_range(losses, lambda value: show_number(value, 4)),
        show_range(times, one_digit),
        own.get("iterations", MISSING),
        best,
    )


def _tell_exponents(stored: Stored) -> str:
    ages = [case[BOXCOX][AGE] for case in stored["cases"]]
    others = [one["exponent"] for case in stored["cases"] for name, one in case[BOXCOX].items() if name != AGE]
    powers = [age["exponent"] for age in ages]
    largest = [
        ((age["high"] + max(0.0, 1.0 - age["low"])) ** p - 1.0) / p for age, p in zip(ages, powers, strict=True)
    ]
    return (
        "Why it is on the floor: age is skewed to the left, so its Box-Cox exponent is "
        f"{show_range(powers, show_figure)} here, and the largest transformed age "
        f"{show_range(largest, show_figure)}, where the other covariates have exponents of "
        f"{show_range(others, two_digits)}. A start of N(0, 0.1^2) multiplied by such ages gives hazards that are "
        "nothing or without bound. There the floored likelihood is flat, its differences are zero, and the "
        "optimizer reports success where it stands. "
        "The paper does not print its exponents."
    )


def tell_trials(sides: Sequence[Side]) -> list[str]:
    """Table 5: accuracy and seconds of every trial."""
    rows = [
        (case, side.title, *(_trial_cell(side.cells[case, method]) for method in METHODS))
        for case in CASES
        for side in sides
    ]
    return [
        wrap(
            "Golden accuracy / seconds of the solver's call. Bold: in the Pareto set. A dash: not converged; "
            "under exact, not certified."
        ),
        table(("case", "", *NAMES.values()), rows),
    ]


def _trial_cell(row: Row) -> str:
    if not row["eligible"]:
        return MISSING
    text = f"{show_accuracy(row['accuracy'])} / {show_seconds(row['seconds'])}"
    return f"**{text}**" if row["selected"] else text


def tell_hypotheses(stored: Stored, sides: Sequence[Side]) -> Iterable[str]:
    """H1 to H5: a paragraph, the table of verdicts, then the evidence for each."""
    titles = ("its own figures", *(side.title for side in sides[1:]))
    rows = []
    for code, told in CLAIMS.items():
        others = Counter(start["verdicts"][code] for start in stored["starts"])
        counts = ", ".join(f"{verdict} {others[verdict]}" for verdict in Support if others[verdict])
        first, second, third = (side.hypotheses[code].verdict for side in sides)
        rows.append((code, told, Support.SUPPORTED, first, second, counts, third))
    yield wrap(
        "The paper calls all five supported. Beside that stands what rekka's code says of the paper's own "
        "appendix ([details](errata.md#the-hypotheses-on-the-papers-figures)) and of our two runs."
    )
    yield table(("", "claim", "the paper says", *titles[:2], "the same from other starts", titles[2]), rows)
    for code in CLAIMS:
        lines = [f"**{code}**"]
        for title, side in zip(titles, sides, strict=True):
            lines.append(bullet(f"{title}: {side.hypotheses[code].evidence}"))
        yield "\n".join((lines[0], "", *lines[1:]))
