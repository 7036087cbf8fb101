"""Checks on the covariates of one case: refused by the estimator, nearly so, impossible, far out, skewed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from rekka.checks.findings import Array, CaseRows, Finding, Severity, first_rows
from rekka.core.errors import BadCovariates, ScalingError, count_of
from rekka.model.inputs import check_covariates
from rekka.scaling.fitting import fit_scaling
from rekka.scaling.operators import BoxCoxScaling

HIGH_INFLATION = 30.0  # variance inflation: standard errors 5.5 times those of unrelated covariates
FAR = 10.0  # robust standard deviations, in the covariate's units and on the log scale
ROBUST = 1.4826  # median absolute deviation to standard deviation, for normal values
TAIL_SKEWNESS, TAIL_RATIO = 2.0, 20.0  # maximum over median
LEFT_SKEWNESS, LARGE_EXPONENT = -0.5, 1.5
BOXCOX_ROWS = 2000  # the exponent needs no more; above it, evenly spaced order statistics
NOT_NEGATIVE = {"age", "traffic", "adt", "aadt"}  # words in the name of a covariate
NOT_ZERO = {"length", "area", "width", "span"}


def find_refused(case: CaseRows) -> list[BadCovariates]:
    """What the estimator would refuse, one error for each covariate that has to go."""
    errors = []
    while True:
        try:
            check_covariates(case.x, case.covariates)
        except BadCovariates as error:
            errors.append(error)
            case = case.with_covariates(tuple(name for name in case.covariates if name != error.covariates[0]))
        else:
            return errors


def check_refused(case: CaseRows, refused: list[BadCovariates]) -> Iterator[Finding]:
    """R302 and R303: constant and collinear covariates."""
    for error in refused:
        name, *others = error.covariates
        if not others:
            value = float(case.x[0, case.covariates.index(name)])
            words = (
                f"{name} is {value:g} in all {count_of(len(case.row), 'row')}: its effect cannot be told from the "
            )
            words += "intercept."
        else:
            how = "duplicates" if len(others) == 1 else "is a linear combination of"
            words = f"{name} {how} {', '.join(others)}: their effects cannot be told apart."
        yield Finding(
            "R303" if others else "R302",
            Severity.STOP,
            words,
            f"Leave {name} out of the covariates of this case." if not others else "Leave one of them out.",
            case.name,
            count=len(error.covariates),
            values={"covariates": [name, *others]},
        )


def check_inflation(case: CaseRows) -> Iterator[Finding]:
    """R304: variance inflation above 30, the squared row lengths of R^-1 for standardised covariates."""
    if len(case.covariates) < 2:
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
    each = ", ".join(
        f"{case.covariates[c]} (variance inflation {inflation[c]:.0f}, "
        f"correlation {correlation[c, nearest[c]]:.3f} with {case.covariates[nearest[c]]})"
        for c in high
    )
    yield Finding(
        "R304",
        Severity.WARNING,
        f"Nearly collinear: {each}.",
        "Predictions do not suffer, single effects do: expect wide intervals. Keep one of them, or replace one by "
        "a ratio.",
        case.name,
        count=high.size,
        values={
            "variance_inflation": {case.covariates[c]: float(inflation[c]) for c in high},
            "correlation": {case.covariates[c]: float(correlation[c, nearest[c]]) for c in high},
            "nearest": {case.covariates[c]: case.covariates[nearest[c]] for c in high},
        },
    )


def check_impossible(case: CaseRows) -> Iterator[Finding]:
    """R305: a negative age or traffic, a length or an area of 0 or less."""
    for name, column in zip(case.covariates, case.x.T, strict=True):
        words = set(name.lower().split("_"))
        positive = bool(words & NOT_ZERO)
        if not positive and not words & NOT_NEGATIVE:
            continue
        here = column <= 0 if positive else column < 0
        count = int(here.sum())
        if count:
            lowest = float(column.min())
            yield Finding(
                "R305",
                Severity.WARNING,
                f"{name} is {'0 or less' if positive else 'below 0'} in {count_of(count, 'row')}, at lowest "
                f"{lowest:g}.",
                "A code for 'not known' was probably read as a number. Leave the value blank, or correct it.",
                case.name,
                first_rows(case.row[here]),
                count,
                {"covariate": name, "lowest": lowest},
            )


def check_far(case: CaseRows) -> Iterator[Finding]:
    """R306: values more than 10 robust standard deviations away, in their units and on the log scale."""
    for name, column in zip(case.covariates, case.x.T, strict=True):
        distance = _robust_distance(column)
        positive = column > 0
        if 2 * positive.sum() > len(column):  # heavy tails are common: far means far in orders of magnitude too
            distance[positive] = np.minimum(distance[positive], _robust_distance(np.log(column[positive])))
        here = np.flatnonzero(distance > FAR)
        if here.size:
            here = here[np.argsort(-distance[here], kind="stable")]
            value, median = float(column[here[0]]), float(np.median(column))
            yield Finding(
                "R306",
                Severity.WARNING,
                f"{name} is far from the rest in {count_of(here.size, 'row')}: the farthest is {value:g}, the "
                f"median {median:g}.",
                "Look for a wrong unit or a misplaced decimal. One such row can bend the effect of the covariate.",
                case.name,
                first_rows(case.row[here]),
                here.size,
                {"covariate": name, "farthest": value, "median": median, "distance": float(distance[here[0]])},
            )


def _robust_distance(values: Array) -> Array:
    """Distance from the median in robust standard deviations; 0 where half of the values are equal."""
    distance = np.abs(values - np.median(values))
    deviation = ROBUST * float(np.median(distance))
    return distance / deviation if deviation > 0 else np.zeros(len(values))


def check_upper_tails(case: CaseRows) -> Iterator[Finding]:
    """R307: skewed to the right, with a maximum far above the median."""
    median, top, skewness = np.median(case.x, axis=0), case.x.max(axis=0), _skewness(case.x)
    tails = np.flatnonzero((skewness > TAIL_SKEWNESS) & (median > 0) & (top > TAIL_RATIO * median))
    if tails.size:
        each = ", ".join(
            f"{case.covariates[c]} (maximum {top[c] / median[c]:.0f} times the median)" for c in tails
        )
        yield Finding(
            "R307",
            Severity.NOTE,
            f"Long upper tail: {each}.",
            "Max and min-max scaling press most rows towards 0 there; z-scores do less so. If ratios matter more "
            "than differences, use the logarithm as the covariate.",
            case.name,
            count=tails.size,
            values={
                "maximum_over_median": {case.covariates[c]: float(top[c] / median[c]) for c in tails},
                "skewness": {case.covariates[c]: float(skewness[c]) for c in tails},
            },
        )


def check_boxcox(case: CaseRows) -> Iterator[Finding]:
    """R308 and R309: large Box-Cox exponents of left-skewed covariates, and columns it cannot transform."""
    skewness = _skewness(case.x)
    for c, name in enumerate(case.covariates):
        try:
            scaling = fit_boxcox(case.with_covariates((name,)))
        except ScalingError as error:
            yield Finding(
                "R309",
                Severity.NOTE,
                str(error).partition(". ")[0] + ".",
                "Box-Cox trials of this case will fail, with this reason. Use z-scores, or measure the covariate "
                "from another zero.",
                case.name,
                count=1,
                values={"covariate": name},
            )
            continue
        exponent = float(scaling.exponent[0])
        if skewness[c] < LEFT_SKEWNESS and exponent > LARGE_EXPONENT:
            size = float(scaling.transform(case.x[:, [c]].max(axis=0)[None])[0, 0])
            yield Finding(
                "R308",
                Severity.NOTE,
                f"{name} is skewed to the left (skewness {skewness[c]:.2f}): its Box-Cox exponent is about "
                f"{exponent:.2f}, and transformed values reach {size:.3g}.",
                "With Box-Cox alone L-BFGS-B can stop at once on such values. Use the newton solver, or z-scores.",
                case.name,
                count=1,
                values={
                    "covariate": name,
                    "skewness": float(skewness[c]),
                    "exponent": exponent,
                    "largest": size,
                },
            )


def fit_boxcox(case: CaseRows) -> BoxCoxScaling:
    """The Box-Cox operator; of many rows, evenly spaced order statistics with both ends stand for all."""
    x = case.x
    if len(x) > BOXCOX_ROWS:
        x = np.sort(x, axis=0)[np.linspace(0, len(x) - 1, BOXCOX_ROWS).round().astype(np.int64)]
    return cast(BoxCoxScaling, fit_scaling("boxcox", x, case.covariates))


def _skewness(x: Array) -> Array:
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.asarray(np.mean(z**3, axis=0))
