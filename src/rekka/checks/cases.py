"""Checks on the rows of one case: states, intervals, and what the model can learn from them.

Every check is a generator of findings and a function of the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rekka.checks.covariates import (
    check_boxcox,
    check_far,
    check_impossible,
    check_inflation,
    check_refused,
    check_upper_tails,
    find_refused,
)
from rekka.checks.findings import Array, CaseRows, Finding, Mask, Severity, first_rows
from rekka.core.errors import count_of
from rekka.model.certificate import FEW_EVENTS
from rekka.model.coordinates import orthonormal_coordinates
from rekka.model.fit import Options, refit_rows
from rekka.model.layout import build_layout
from rekka.model.likelihood import Rows
from rekka.model.separation import Separation, find_separations

SHORT_YEARS, LONG_YEARS = 0.25, 15.0
TIMES_THE_MEDIAN = 5.0  # an interval this many times longer or shorter than the median is unusual
TYPING_ERRORS = 0.01  # a smaller share of unusual intervals is a note: slips of the pen, not a habit
SPREAD_OF_INTERVALS = 4.0  # 95 % quantile over 5 % quantile
FEW_DEPARTURES = 10
TIMES_EXPECTED, DEVIATIONS = 2.0, 3.0  # from which on a jump is frequent: so many times, and standard deviations
MANY_JUMPS = 0.05  # share of the rows that moved; fewer such jumps are a note
MOST_TOLD = 3  # kinds of jump
SMALL_CASE = 100  # rows; below it a fit is exploratory


def check_recorded(case: CaseRows) -> Iterator[Finding]:
    """What every row of a case is checked for, wherever the partition puts it."""
    yield from check_intervals(case)
    yield from check_impossible(case)
    yield from check_far(case)


def check_training(case: CaseRows) -> Iterator[Finding]:
    """What the rows that train are checked for."""
    yield from check_size(case)
    yield from check_absorbed(case)
    refused = find_refused(case)
    yield from check_refused(case, refused)
    gone = [error.covariates[0] for error in refused]
    kept = case.with_covariates(tuple(name for name in case.covariates if name not in gone))
    yield from check_inflation(kept)
    yield from check_upper_tails(kept)
    yield from check_boxcox(kept)
    if (case.end > case.start).any():
        yield from check_departures(case)
        yield from check_jumps(case)
        yield from check_events(case)
        yield from check_separation(kept)
    else:
        yield Finding(
            "R108",
            Severity.STOP,
            f"No row of {len(case.row):,} moves to a worse state.",
            "There is no deterioration to model. Join the case with a similar one, or wait for another visit.",
            case.name,
            count=len(case.row),
        )


def check_intervals(case: CaseRows) -> Iterator[Finding]:
    """R202 to R205: short, long, equal and uneven intervals."""
    low, median, high = (float(q) for q in np.quantile(case.dt, [0.05, 0.5, 0.95]))
    shortest, longest = float(case.dt.min()), float(case.dt.max())
    if shortest == longest:
        if len(case.row) > 1:
            yield Finding(
                "R204",
                Severity.NOTE,
                f"All {count_of(len(case.row), 'interval')} are {median:g} years.",
                "Nothing to do if inspections keep to a fixed cycle. If the years were filled in because dates "
                "are missing, use the dates: errors in the interval go straight into the hazards.",
                case.name,
                count=len(case.row),
                values={"years": median},
            )
        return
    short_limit = max(SHORT_YEARS, median / TIMES_THE_MEDIAN)
    long_limit = min(LONG_YEARS, median * TIMES_THE_MEDIAN)
    yield from _unusual(
        case,
        "R202",
        case.dt < short_limit,
        ("Shorter", "shortest"),
        "Look at the dates: a repeated visit, a second inspector or a slip of the pen. A change seen within "
        "weeks is more often a difference of opinion than deterioration, and makes hazards too high.",
        {"limit": short_limit, "median": median, "extreme": shortest},
    )
    yield from _unusual(
        case,
        "R203",
        case.dt > long_limit,
        ("Longer", "longest"),
        "Look at the dates: a visit may be missing in between, and with it a repair. Set such pairs aside if "
        "their history is not known.",
        {"limit": long_limit, "median": median, "extreme": longest},
    )
    if high > SPREAD_OF_INTERVALS * low:
        yield Finding(
            "R205",
            Severity.NOTE,
            f"Intervals run from {low:.3g} to {high:.3g} years (5 % and 95 % quantiles; median {median:.3g}).",
            "The model takes each row's own years, so nothing has to be done. Read the calibration by interval: "
            "a hazard that changes within a long interval shows there.",
            case.name,
            count=len(case.row),
            values={"q05": low, "median": median, "q95": high},
        )


def _unusual(
    case: CaseRows, code: str, here: Mask, words: tuple[str, str], remedy: str, values: dict[str, float]
) -> Iterator[Finding]:
    """Unusual intervals: a note where they are few, a warning where they are not."""
    count = int(here.sum())
    if not count:
        return
    share = count / len(case.row)
    yield Finding(
        code,
        Severity.WARNING if share >= TYPING_ERRORS else Severity.NOTE,
        f"{words[0]} than {values['limit']:.3g} years: {count:,} of {count_of(len(case.row), 'interval')} "
        f"({share:.1%}), the {words[1]} {values['extreme']:.3g}; the median is {values['median']:.3g}.",
        remedy,
        case.name,
        first_rows(case.row[here]),
        count,
        values | {"share": share},
    )


def check_size(case: CaseRows) -> Iterator[Finding]:
    """R404: fewer than 100 rows."""
    if len(case.row) < SMALL_CASE:
        yield Finding(
            "R404",
            Severity.WARNING,
            f"{count_of(len(case.row), 'training row')}; below {SMALL_CASE} a fit is exploratory.",
            "Use few covariates or none, read the intervals rather than the estimates, or join similar cases.",
            case.name,
            count=len(case.row),
        )


def check_absorbed(case: CaseRows) -> Iterator[Finding]:
    """R107: rows that start in K."""
    here = case.start == case.n_states - 1
    count = int(here.sum())
    if count and (case.end > case.start).any():
        share = count / len(case.row)
        yield Finding(
            "R107",
            Severity.NOTE,
            f"Starting in state {case.n_states}, the worst seen: {count:,} of {count_of(len(case.row), 'row')} "
            f"({share:.1%}). Nothing can follow that state, so such rows say nothing about deterioration.",
            "They do no harm to a fit. Leave them out when rows or accuracy are counted: each is predicted for "
            "certain.",
            case.name,
            first_rows(case.row[here]),
            count,
            {"state": case.n_states, "share": share},
        )


def check_departures(case: CaseRows) -> Iterator[Finding]:
    """R104 to R106: states between 1 and K that are never left, never seen, or left by few rows."""
    departures, seen = case.departures, case.seen[:-1]
    unseen = np.flatnonzero(~seen)
    if unseen.size:
        left = departures[unseen] > 0
        why = "" if left.all() else " Its hazard cannot be estimated: no row passes through."
        yield Finding(
            "R105",
            Severity.WARNING if left.all() else Severity.STOP,
            f"No row starts or ends in {_name_states(unseen)}, although the worst state is {case.n_states}.{why}",
            "If the scale has no such rank, number the states again without the gap. If it has, merge the state "
            "with its neighbour.",
            case.name,
            count=unseen.size,
            values={"states": (unseen + 1).tolist(), "departures": departures[unseen].tolist()},
        )
    stuck = np.flatnonzero(seen & (departures == 0))
    if stuck.size:
        yield Finding(
            "R104",
            Severity.STOP,
            f"No row leaves {_name_states(stuck)}, so the best hazard there is 0 and the likelihood has no finite "
            "maximum.",
            "Merge the state with the next one, collect longer records, or use an upper bound of its hazard. A "
            "ridge penalty does not help: it holds slopes, not intercepts.",
            case.name,
            count=stuck.size,
            values={"states": (stuck + 1).tolist()},
        )
    rare = np.flatnonzero((departures > 0) & (departures < FEW_DEPARTURES))
    if rare.size:
        each = ", ".join(f"{departures[k]} from state {k + 1}" for k in rare)
        yield Finding(
            "R106",
            Severity.WARNING,
            f"Fewer than {FEW_DEPARTURES} departures: {each}.",
            "Merge such a state with a neighbour, or let covariates act on the other states only (effects).",
            case.name,
            count=rare.size,
            values={"departures": {str(k + 1): int(departures[k]) for k in rare}},
        )


def check_jumps(case: CaseRows) -> Iterator[Finding]:
    """R110: moves over two states or more that are far more frequent than rates alone would make them."""
    kinds, times = np.unique(np.column_stack([case.start, case.end, case.dt]), axis=0, return_counts=True)
    start, end, dt = kinds[:, 0].astype(np.int64), kinds[:, 1].astype(np.int64), kinds[:, 2]
    rows = Rows(start, end, dt, times.astype(np.float64), case.n_states)
    no_covariates = np.zeros((dt.size, 0))
    with np.errstate(all="ignore"):  # a state that nobody leaves has no finite rate; the others have
        p = refit_rows(rows, no_covariates, (), Options(scaling=None)).probabilities(start, dt, no_covariates)
    observed, expected = np.zeros((2, case.n_states, case.n_states))
    np.add.at(observed, (start, end), times)
    np.add.at(expected, start, p * times[:, None])
    many = (observed >= TIMES_EXPECTED * expected) & (
        observed - expected >= DEVIATIONS * np.sqrt(expected.clip(1.0))
    )
    many &= np.triu(np.ones_like(many), 2)
    here = many[case.start, case.end]
    if here.any():
        yield _describe_jumps(case, here, observed * many, expected)


def _describe_jumps(case: CaseRows, here: Mask, observed: Array, expected: Array) -> Finding:
    moved, count = int((case.end > case.start).sum()), int(here.sum())
    most = sorted(np.argwhere(observed > 0).tolist(), key=lambda pair: -observed[tuple(pair)])
    each = "; ".join(
        f"{observed[i, j]:,.0f} from state {i + 1} to {j + 1}, {expected[i, j]:.1f} expected"
        for i, j in most[:MOST_TOLD]
    )
    first = case.row[here][0]
    example = f" For example row {first}." if first >= 0 else ""
    return Finding(
        "R110",
        Severity.WARNING if count / moved >= MANY_JUMPS else Severity.NOTE,
        f"{count:,} of {count_of(moved, 'row')} that moved ({count / moved:.1%}) went over several states in one "
        f"interval, far more often than the rates of leaving each state explain: {each}.{example}",
        "The model passes through every state between, so that such rows make hazards there too high. Look for "
        "errors of inspection or of typing, visits that are missing, and members that were replaced. If "
        "the rows are right, merge states that are passed within one interval, or use shorter intervals.",
        case.name,
        first_rows(case.row[here]),
        count,
        {
            "share": count / moved,
            "jumps": [
                {"start": i + 1, "end": j + 1, "rows": int(observed[i, j]), "expected": float(expected[i, j])}
                for i, j in most
            ],
        },
    )


def check_events(case: CaseRows) -> Iterator[Finding]:
    """R401: rows that left a state, for each of its p + 1 coefficients."""
    coefficients = len(case.covariates) + 1
    ratio = case.departures / coefficients
    few = np.flatnonzero((ratio > 0) & (ratio < FEW_EVENTS))
    if few.size:
        each = ", ".join(
            f"{ratio[k]:.1f} in state {k + 1} ({count_of(int(case.departures[k]), 'event')})" for k in few
        )
        yield Finding(
            "R401",
            Severity.WARNING,
            f"Events per parameter under {FEW_EVENTS:g}: {each}, with "
            f"{count_of(coefficients, 'coefficient')} a state. A fit there is exploratory.",
            "Use fewer covariates, share their effect between states (shared), merge states, or add a ridge "
            "penalty.",
            case.name,
            count=few.size,
            values={
                "coefficients": coefficients,
                "events": {str(k + 1): int(case.departures[k]) for k in few},
                "events_per_parameter": {str(k + 1): float(ratio[k]) for k in few},
            },
        )


def check_separation(case: CaseRows) -> Iterator[Finding]:
    """R402 and R403: the certificate's linear programs, before the fit."""
    rows = Rows(case.start, case.end, case.dt, np.ones(len(case.row)), case.n_states)
    order = rows.grouping
    layout = build_layout(case.covariates, case.n_states, None, None)
    coordinates = orthonormal_coordinates(rows.take(order), case.x[order], layout, 0.0, 1)
    for separation in find_separations(coordinates, layout, 0.0):
        if not separation.nobody_left:  # R104 and R105 say so
            yield _describe(case, separation)


def _describe(case: CaseRows, separation: Separation) -> Finding:
    merge = f"Merge state {separation.states[0]} with a neighbour."
    cure = "Add a ridge penalty, use fewer covariates, or merge states."
    if separation.nobody_stayed:
        cure = f"{merge} A ridge penalty does not help: it holds slopes, not intercepts."
    certain = separation.certain
    sentence = separation.sentence()
    verdict = (
        "The likelihood rises for ever that way: it has no finite maximum."
        if certain
        else "The likelihood may rise for ever that way; only a fit can tell."
    )
    return Finding(
        "R402" if certain else "R403",
        Severity.STOP if certain else Severity.WARNING,
        f"{sentence[0].upper()}{sentence[1:]}. {verdict}",
        cure if certain else f"Fit and read the certificate. If it does not certify: {cure[0].lower()}{cure[1:]}",
        case.name,
        count=len(separation.states),
        values={"states": list(separation.states), "terms": list(separation.terms), "certain": certain},
    )


def _name_states(states: NDArray[np.intp]) -> str:
    return f"state{'s' if states.size > 1 else ''} {', '.join(str(k + 1) for k in states)}"
