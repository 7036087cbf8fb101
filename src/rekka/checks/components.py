"""Checks on the rows and covariates of one component.

Rows: states, intervals, and what the model can learn from them. Covariates: values that the estimator refuses or
nearly refuses, impossible ones, far ones, skewed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.checks.table import Array, Component, Mask
from rekka.core.errors import ScalingError
from rekka.core.language import Said, say
from rekka.model.certificate import FEW_EVENTS, FEW_ROWS
from rekka.model.coordinates import INTERCEPT, build_layout, orthonormal_coordinates
from rekka.model.fit import Options, refit_rows
from rekka.model.likelihood import Rows
from rekka.model.separation import Separation, find_separations
from rekka.scaling.operators import BoxCoxScaling
from rekka.scaling.registry import fit_scaling

SHORT_YEARS, LONG_YEARS = 0.25, 15.0
TIMES_THE_MEDIAN = 5.0  # an interval this many times longer or shorter than the median is unusual
TYPING_ERRORS = 0.01  # a smaller share of unusual intervals is a note: slips of the pen, not a habit
SPREAD_OF_INTERVALS = 4.0  # 95 % quantile over 5 % quantile
FEW_DEPARTURES = 10
TIMES_EXPECTED, DEVIATIONS = 2.0, 3.0  # from which on a jump is frequent: so many times, and standard deviations
MANY_JUMPS = 0.05  # share of the rows that moved; fewer such jumps are a note
MOST_TOLD = 3  # kinds of jump


@check(Subject.RECORDED, R202=Severity.WARNING, R203=Severity.WARNING, R204=Severity.NOTE, R205=Severity.NOTE)
def check_intervals(case: Component) -> Iterator[Finding]:
    """Short, long, equal and uneven intervals."""
    low, median, high = (float(q) for q in np.quantile(case.dt, [0.05, 0.5, 0.95]))
    shortest, longest = float(case.dt.min()), float(case.dt.max())
    if shortest == longest:
        if len(case.row) > 1:
            yield case.find(Severity.NOTE, code="R204", count=len(case.row), values={"years": median})
        return
    short = max(SHORT_YEARS, median / TIMES_THE_MEDIAN)
    long = min(LONG_YEARS, median * TIMES_THE_MEDIAN)
    yield from _unusual(case, "R202", case.dt < short, {"limit": short, "median": median, "extreme": shortest})
    yield from _unusual(case, "R203", case.dt > long, {"limit": long, "median": median, "extreme": longest})
    if high > SPREAD_OF_INTERVALS * low:
        values = {"q05": low, "median": median, "q95": high}
        yield case.find(Severity.NOTE, code="R205", count=len(case.row), values=values)


def _unusual(case: Component, code: str, here: Mask, values: dict[str, float]) -> Iterator[Finding]:
    """Unusual intervals: a note where they are few, a warning where they are not."""
    count = int(here.sum())
    if count:
        share = count / len(case.row)
        severity = Severity.WARNING if share >= TYPING_ERRORS else Severity.NOTE
        yield case.find(severity, code=code, rows=case.row[here], count=count, values=values | {"share": share})


@check(Subject.TRAINING, R404=Severity.WARNING, limits={"few": FEW_ROWS})
def check_size(case: Component) -> Iterator[Finding]:
    """Too few rows to conclude from."""
    if len(case.row) < FEW_ROWS:
        yield case.find(Severity.WARNING, count=len(case.row))


@check(Subject.TRAINING, R107=Severity.NOTE)
def check_absorbed(case: Component) -> Iterator[Finding]:
    """Rows that start in K."""
    here = case.start == case.n_states - 1
    count = int(here.sum())
    if count and case.moves:
        values = {"state": case.n_states, "share": count / len(case.row)}
        worst = case.name_ratings(case.n_states - 1)
        yield case.find(Severity.NOTE, rows=case.row[here], count=count, values=values, state=worst)


@check(Subject.TRAINING, R108=Severity.STOP)
def check_still(case: Component) -> Iterator[Finding]:
    """No deterioration at all."""
    if not case.moves:
        yield case.find(Severity.STOP, count=len(case.row))


@check(
    Subject.TRAINING,
    R104=Severity.STOP,
    R105=Severity.STOP,
    R106=Severity.WARNING,
    limits={"few": FEW_DEPARTURES},
)
def check_departures(case: Component) -> Iterator[Finding]:
    """States between 1 and K that are never left, never seen, or left by few rows."""
    if not case.moves:
        return
    departures, seen = case.departures, case.seen[:-1]
    unseen = np.flatnonzero(~seen)
    if unseen.size:
        passed = bool((departures[unseen] > 0).all())
        yield case.find(
            Severity.WARNING if passed else Severity.STOP,
            *(["found"] if passed else ["found", "no_passage"]),
            code="R105",
            count=unseen.size,
            values={"states": (unseen + 1).tolist(), "departures": departures[unseen].tolist()},
            where=case.name_ratings(*unseen),
            worst=case.name_ratings(case.n_states - 1),
        )
    stuck = np.flatnonzero(seen & (departures == 0))
    if stuck.size:
        values = {"states": (stuck + 1).tolist()}
        where = case.name_ratings(*stuck)
        yield case.find(Severity.STOP, code="R104", count=stuck.size, values=values, where=where)
    rare = np.flatnonzero((departures > 0) & (departures < FEW_DEPARTURES))
    if rare.size:
        yield case.find(
            Severity.WARNING,
            code="R106",
            count=rare.size,
            values={"departures": {str(k + 1): int(departures[k]) for k in rare}},
            each=[say("check.R106.state", n=int(departures[k]), state=case.name_ratings(k)) for k in rare],
        )


@check(Subject.TRAINING, R110=Severity.WARNING)
def check_jumps(case: Component) -> Iterator[Finding]:
    """Moves over two states or more that are far more frequent than rates alone would make them."""
    if not case.moves:
        return
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


def _describe_jumps(case: Component, here: Mask, observed: Array, expected: Array) -> Finding:
    moved, count = int((case.end > case.start).sum()), int(here.sum())
    most = sorted(np.argwhere(observed > 0).tolist(), key=lambda pair: -observed[tuple(pair)])
    jumps = [
        {"start": i + 1, "end": j + 1, "rows": int(observed[i, j]), "expected": float(expected[i, j])}
        for i, j in most
    ]
    first = int(case.row[here][0])
    return case.find(
        Severity.WARNING if count / moved >= MANY_JUMPS else Severity.NOTE,
        *(["found", "example"] if first >= 0 else ["found"]),
        rows=case.row[here],
        count=count,
        values={"share": count / moved, "jumps": jumps},
        moved=moved,
        each=[_describe_jump(case, jump) for jump in jumps[:MOST_TOLD]],
        first=first,
    )


def _describe_jump(case: Component, jump: dict[str, Any]) -> Said:
    start, end = case.name_ratings(jump["start"] - 1), case.ratings.say_name(jump["end"])
    return say("check.R110.jump", **jump | {"start": start, "end": end})


@check(Subject.TRAINING, R401=Severity.WARNING, limits={"few": FEW_EVENTS})
def check_events(case: Component) -> Iterator[Finding]:
    """Rows that left a state, for each of its p + 1 coefficients."""
    if not case.moves:
        return
    coefficients, departures = len(case.covariates) + 1, case.departures
    ratio = departures / coefficients
    few = np.flatnonzero((ratio > 0) & (ratio < FEW_EVENTS))
    if few.size:
        yield case.find(
            Severity.WARNING,
            count=few.size,
            values={
                "coefficients": coefficients,
                "events": {str(k + 1): int(departures[k]) for k in few},
                "events_per_parameter": {str(k + 1): float(ratio[k]) for k in few},
            },
            each=[
                say("check.R401.state", ratio=float(ratio[k]), state=case.name_ratings(k), n=int(departures[k]))
                for k in few
            ],
        )


@check(Subject.TRAINING, R402=Severity.STOP, R403=Severity.WARNING)
def check_separation(case: Component) -> Iterator[Finding]:
    """Certificate's linear programs, before the fit."""
    if not case.moves:
        return
    case = case.accepted
    rows = Rows(case.start, case.end, case.dt, np.ones(len(case.row)), case.n_states)
    order = rows.grouping
    layout = build_layout(case.covariates, case.n_states, None, None)
    coordinates = orthonormal_coordinates(rows.take(order), case.x[order], layout, 0.0, 1)
    for separation in find_separations(coordinates, layout, 0.0):
        if not separation.nobody_left:  # R104 and R105 say so
            yield _describe(case, separation)


def _describe(case: Component, separation: Separation) -> Finding:
    certain, states, terms = separation.certain, list(separation.states), list(separation.terms)
    return case.find(
        Severity.STOP if certain else Severity.WARNING,
        "nobody_stayed" if separation.nobody_stayed else "found",
        "verdict",
        code="R402" if certain else "R403",
        do="merge" if separation.nobody_stayed else "remedy",
        count=len(states),
        values={"states": states, "terms": terms, "certain": certain},
        where=case.name_ratings(*(state - 1 for state in states), first=True),
        names=[term for term in terms if term != INTERCEPT],
        first=case.name_ratings(states[0] - 1),
    )


HIGH_INFLATION = 30.0  # variance inflation: standard errors 5.5 times those of unrelated covariates
FAR = 10.0  # robust standard deviations, in the covariate's units and on the log scale
ROBUST = 1.4826  # median absolute deviation to standard deviation, for normal values
TAIL_SKEWNESS, TAIL_RATIO = 2.0, 20.0  # maximum over median
LEFT_SKEWNESS, LARGE_EXPONENT = -0.5, 1.5
BOXCOX_ROWS = 2000  # the exponent needs no more; above it, evenly spaced order statistics
NOT_NEGATIVE = {"age", "traffic", "adt", "aadt"}  # words in the name of a covariate
NOT_ZERO = {"length", "area", "width", "span"}


@check(Subject.TRAINING, R302=Severity.STOP, R303=Severity.STOP)
def check_refused(case: Component) -> Iterator[Finding]:
    """Constant and collinear covariates."""
    for error in case.refused:
        name, *others = error.covariates
        yield case.find(
            Severity.STOP,
            "combination" if len(others) > 1 else "found",
            code="R303" if others else "R302",
            count=len(error.covariates),
            values={"covariates": [name, *others]},
            name=name,
            others=others,
            value=float(case.x[0, case.covariates.index(name)]),
        )


@check(Subject.TRAINING, R304=Severity.WARNING)
def check_inflation(case: Component) -> Iterator[Finding]:
    """Variance inflation above 30: the squared row lengths of R^-1 for standardised covariates."""
    case = case.accepted
    names = case.covariates
    if len(names) < 2:
        return
    z = (case.x - case.x.mean(axis=0)) / case.x.std(axis=0)
    r: Array = np.asarray(np.linalg.qr(z / np.sqrt(len(z)), mode="r"))
    inflation = np.sum(np.linalg.inv(r) ** 2, axis=1)
    high = np.flatnonzero(inflation > HIGH_INFLATION)
    if not high.size:
        return
    correlation = r.T @ r
    np.fill_diagonal(correlation, 0.0)
    nearest = np.abs(correlation).argmax(axis=1)
    figures = [(names[c], float(inflation[c]), float(correlation[c, nearest[c]]), names[nearest[c]]) for c in high]
    yield case.find(
        Severity.WARNING,
        count=high.size,
        values={
            "variance_inflation": {name: one for name, one, _, _ in figures},
            "correlation": {name: one for name, _, one, _ in figures},
            "nearest": {name: one for name, _, _, one in figures},
        },
        each=[
            say("check.R304.covariate", name=name, inflation=inflated, correlation=correlated, nearest=other)
            for name, inflated, correlated, other in figures
        ],
    )


@check(Subject.RECORDED, R305=Severity.WARNING)
def check_impossible(case: Component) -> Iterator[Finding]:
    """A negative age or traffic, a length or an area of 0 or less."""
    case = case.numbers
    for name, column in zip(case.covariates, case.x.T, strict=True):
        words = set(name.lower().split("_"))
        positive = bool(words & NOT_ZERO)
        if not positive and not words & NOT_NEGATIVE:
            continue
        here = column <= 0 if positive else column < 0
        count = int(here.sum())
        if count:
            values = {"covariate": name, "lowest": float(column.min())}
            says = "zero" if positive else "found"
            yield case.find(Severity.WARNING, says, rows=case.row[here], count=count, values=values)


@check(Subject.RECORDED, R306=Severity.WARNING)
def check_far(case: Component) -> Iterator[Finding]:
    """Values more than 10 robust standard deviations away, in their units and on the log scale."""
    case = case.numbers
    for name, column in zip(case.covariates, case.x.T, strict=True):
        distance = _robust_distance(column)
        positive = column > 0
        if 2 * positive.sum() > len(column):  # heavy tails are common: far means far in orders of magnitude too
            distance[positive] = np.minimum(distance[positive], _robust_distance(np.log(column[positive])))
        here = np.flatnonzero(distance > FAR)
        if here.size:
            here = here[np.argsort(-distance[here], kind="stable")]
            figures = {"farthest": float(column[here[0]]), "median": float(np.median(column))}
            values = {"covariate": name, **figures, "distance": float(distance[here[0]])}
            yield case.find(Severity.WARNING, rows=case.row[here], count=here.size, values=values)


def _robust_distance(values: Array) -> Array:
    """Distance from the median in robust standard deviations; 0 where half of the values are equal."""
    distance = np.abs(values - np.median(values))
    deviation = ROBUST * float(np.median(distance))
    return distance / deviation if deviation > 0 else np.zeros(len(values))


@check(Subject.TRAINING, R307=Severity.NOTE)
def check_upper_tails(case: Component) -> Iterator[Finding]:
    """Skewed to the right, with a maximum far above the median."""
    case = case.accepted.numbers
    median, top, skewness = np.median(case.x, axis=0), case.x.max(axis=0), _skewness(case.x)
    tails = np.flatnonzero((skewness > TAIL_SKEWNESS) & (median > 0) & (top > TAIL_RATIO * median))
    if tails.size:
        ratios = {case.covariates[c]: float(top[c] / median[c]) for c in tails}
        skewed = {case.covariates[c]: float(skewness[c]) for c in tails}
        yield case.find(
            Severity.NOTE,
            count=tails.size,
            values={"maximum_over_median": ratios, "skewness": skewed},
            each=[say("check.R307.covariate", name=name, ratio=ratio) for name, ratio in ratios.items()],
        )


@check(Subject.TRAINING, R308=Severity.NOTE, R309=Severity.NOTE)
def check_boxcox(case: Component) -> Iterator[Finding]:
    """Large Box-Cox exponents of left-skewed covariates, and columns it cannot transform."""
    case = case.accepted.numbers
    skewness = _skewness(case.x)
    for c, name in enumerate(case.covariates):
        try:
            scaling = fit_boxcox(case.with_covariates((name,)))
        except ScalingError as error:
            why = str(error).partition(". ")[0]
            yield case.find(Severity.NOTE, code="R309", count=1, values={"covariate": name}, error=why)
            continue
        exponent = float(scaling.exponent[0])
        if skewness[c] < LEFT_SKEWNESS and exponent > LARGE_EXPONENT:
            size = float(scaling.transform(case.x[:, [c]].max(axis=0)[None])[0, 0])
            figures = {"skewness": float(skewness[c]), "exponent": exponent, "largest": size}
            yield case.find(Severity.NOTE, code="R308", count=1, values={"covariate": name, **figures})


def fit_boxcox(case: Component) -> BoxCoxScaling:
    """Box-Cox operator; of many rows, evenly spaced order statistics with both ends stand for all."""
    x = case.x
    if len(x) > BOXCOX_ROWS:
        x = np.sort(x, axis=0)[np.linspace(0, len(x) - 1, BOXCOX_ROWS).round().astype(np.int64)]
    return cast(BoxCoxScaling, fit_scaling("boxcox", x, case.covariates))


def _skewness(x: Array) -> Array:
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.asarray(np.mean(z**3, axis=0))
