"""Checks on the covariates of one component: refused by the estimator, nearly so, impossible, far out, skewed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from rekka.checks.engine import Finding, Severity, Subject, check
from rekka.checks.rows import Array, Component
from rekka.core.errors import ScalingError
from rekka.core.words import say
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
    case = case.accepted
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
    case = case.accepted
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
    """The Box-Cox operator; of many rows, evenly spaced order statistics with both ends stand for all."""
    x = case.x
    if len(x) > BOXCOX_ROWS:
        x = np.sort(x, axis=0)[np.linspace(0, len(x) - 1, BOXCOX_ROWS).round().astype(np.int64)]
    return cast(BoxCoxScaling, fit_scaling("boxcox", x, case.covariates))


def _skewness(x: Array) -> Array:
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.asarray(np.mean(z**3, axis=0))
