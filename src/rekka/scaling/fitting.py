"""What a ``scaling`` option means, and the fit of one operator or of a chain on training rows.

Names joined by + are applied in turn: "boxcox+zscore". An operator that loses a column (no spread, infinite
values, a division by nothing) is an error with the covariate and the reason: a failed trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from rekka.core.errors import BadOption, ScalingError, did_you_mean
from rekka.scaling.chain import ChainScaling
from rekka.scaling.foreign import fit_foreign
from rekka.scaling.operators import (
    AffineScaling,
    Array,
    BoxCoxScaling,
    ColumnScaling,
    FittedScaling,
    YeoJohnsonScaling,
)
from rekka.scaling.registry import REGISTRY, HeldTraining, Training

OPERATORS = tuple(REGISTRY)
METHODS = ("max", "minmax", "zscore", "boxcox")  # the paper's
BEYOND = ("boxcox+zscore", "yeojohnson+zscore", "log+zscore", "robust")  # candidates that the paper does not have
NONE = "none"
RESOLUTION = 1e-10  # of the largest value: a curve with less spread keeps fewer than 6 of 16 digits
LARGEST = 1e150  # the square of a transformed value is still finite


class NamedScaler:
    """A transformer that stands for the operator of its ``method``: to a model it is a name, not foreign."""

    method: Any


def split_method(method: Any, option: str = "scaling") -> tuple[str, ...]:
    """The links of a name, a list of names, or None; the empty chain changes nothing."""
    if method is None or (isinstance(method, str) and method == NONE):
        return ()
    names = [method] if isinstance(method, str) else method
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        _refuse_option(option, method)
    links = tuple(link.strip() for name in names for link in name.split("+"))
    for link in links:
        if link not in REGISTRY:
            _refuse_option(option, method, link)
    return links


def name_method(scaling: Any) -> str:
    """The text form of a name, a list of names, or None."""
    return "+".join(split_method(scaling)) or NONE


def is_affine(method: str) -> bool:
    """Whether a method is affine, so that its models have coefficients in native units."""
    return all(REGISTRY[link].affine for link in split_method(method))


def model_of(method: str) -> str:
    """Which model a method leads to: "affine", or its links up to the last that is not.

    Every state has an intercept, so that affine operators at the end change no prediction at the maximum: zscore
    and minmax lead to one model, boxcox and boxcox+zscore to another.
    """
    links = list(split_method(method))
    while links and is_affine(links[-1]):
        links.pop()
    return "+".join(links) or "affine"


def check_method(scaling: Any) -> None:
    """Refuse a ``scaling`` option that is neither a known name or chain, None, nor a transformer."""
    if isinstance(scaling, NamedScaler):
        split_method(scaling.method, "method")
    elif isinstance(scaling, str | type) or not (hasattr(scaling, "fit") and hasattr(scaling, "transform")):
        split_method(scaling)


def fit_scaling(method: Any, x: Array, names: Sequence[str]) -> FittedScaling:
    """Fit an operator, by name or as a transformer, on training rows x (n, p)."""
    check_method(method)
    if isinstance(method, NamedScaler):
        method = method.method
    elif method is not None and not isinstance(method, str | list | tuple):
        return fit_foreign(method, x)
    if not len(x):
        raise ScalingError("There are no training rows to fit a scaling on; at least one is needed.")
    return fit_links(split_method(method), HeldTraining.of(x, names))


def fit_links(links: Sequence[str], rows: Training) -> FittedScaling:
    """Fit the operators of a chain, each on what the one before makes of the training rows."""
    if not links:
        return AffineScaling(
            NONE, rows.names, rows.low, rows.high, np.zeros(rows.low.size), np.ones(rows.low.size)
        )
    fitted: list[ColumnScaling] = []
    for link in links:
        try:
            with np.errstate(all="ignore"):  # the result is judged, not the way to it
                one = REGISTRY[link].fit(rows)
                _judge(one, rows)
        except ScalingError as error:
            if not fitted:
                raise
            raise ScalingError(f"After {'+'.join(links[: len(fitted)])}, {error}", **error.values) from None
        fitted.append(one)
        if len(fitted) < len(links):
            rows = rows.after(one)
    return fitted[0] if len(fitted) == 1 else ChainScaling(tuple(fitted))


def _judge(fitted: ColumnScaling, rows: Training) -> None:
    """Refuse a column that varies in the training rows but is lost in their transform.

    Box-Cox can make all values equal on large, low-spread data without a word (SciPy issue 16674), or
    stop at the exponent that brings the largest value just short of infinity. Every operator keeps the order of
    values, so the two ends of the range tell it all.
    """
    z = fitted.forward(np.stack([rows.low, rows.high]))
    size, spread = np.abs(z).max(axis=0), np.ptp(z, axis=0)
    curved = fitted.affine() is None
    usable = np.isfinite(z).all(axis=0) & (size <= (LARGEST if curved else np.inf))
    apart = spread > (RESOLUTION * size if curved else 0.0)
    for c in np.flatnonzero(~(usable & apart) & ~rows.constant):
        how = "without spread" if usable[c] else "with values too large to compute with"
        exponent = float(fitted.exponent[c]) if isinstance(fitted, BoxCoxScaling | YeoJohnsonScaling) else None
        power = "" if exponent is None else f"lambda {exponent:.4g}, "
        moved, shift = ("", 0.0) if fitted.shift is None else (" after the shift", float(fitted.shift[c]))
        raise ScalingError(
            f"{fitted.method} turns {rows.names[c]} into a column {how} ({power}values "
            f"{rows.say_range(c, shift)}{moved}). Use zscore, or measure the covariate from another zero.",
            **rows.describe(fitted.method, c, exponent=exponent),
        )


def _refuse_option(option: str, value: Any, wrong: str | None = None) -> NoReturn:
    """The error for a value that is no method; of a chain, ``wrong`` is the link."""
    which = f", and {wrong!r} is no operator" if wrong is not None and wrong != value else ""
    choices = [*OPERATORS, "several joined by + as in boxcox+zscore", "None"]
    others = ["an object with fit and transform"] if option == "scaling" else []
    hint = did_you_mean(wrong, OPERATORS) if wrong is not None else ""
    raise BadOption(
        f"{option} is {value!r}{which}; it can be {', '.join(choices + others)}.{hint}",
        option=option,
        value=value,
        choices=list(OPERATORS),
    )
