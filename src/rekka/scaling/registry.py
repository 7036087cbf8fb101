"""One fit function for each operator, and the registry of them all.

    max x / x_max    minmax (x - x_min) / (x_max - x_min)    zscore (x - mean) / s, ddof 0
    boxcox BoxCox(x + max(0, 1 - x_min); lambda), lambda by profile likelihood      (paper, Eqs. max-boxcox)
    robust (x - median) / interquartile range    yeojohnson, log: see operators

To add an operator: write its fit function, and a line in ``REGISTRY``. Every test of an operator then runs on it.

What a ``scaling`` option means, and the fit of one operator or of a chain on training rows.

Names joined by + are applied in turn: "boxcox+zscore". An operator that loses a column (no spread, infinite
values, a division by nothing) is an error with the covariate and the reason: a failed trial.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rekka.core.errors import BadOption, ScalingError, did_you_mean
from rekka.scaling.operators import (
    AffineScaling,
    Array,
    BoxCoxScaling,
    ChainScaling,
    ColumnScaling,
    FittedScaling,
    LogScaling,
    YeoJohnsonScaling,
    fit_foreign,
    positivity_shift,
)

BRACKET = (-2.0, 2.0)  # where the search for an exponent begins, as in scipy.stats
NO_EXPONENT = (ValueError, RuntimeError)  # no bracket, no finite bounds, nothing positive left after rounding


@dataclass(frozen=True, eq=False)
class Training(ABC):
    """What operators ask of the training rows: the range of each covariate, (p,), and what is measured of them."""

    names: tuple[str, ...]
    low: Array
    high: Array

    @abstractmethod
    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation, ddof 0, of each covariate."""

    @abstractmethod
    def quartiles(self) -> Array:
        """The quarter points and the median between them, (3, p)."""

    @abstractmethod
    def exponents(self, method: str) -> Array:
        """The profile-likelihood exponent of each covariate that varies; 1 for others, NaN where there is none."""

    @abstractmethod
    def after(self, fitted: ColumnScaling) -> Training:
        """The rows as an operator transforms them, for the next one in a chain."""

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Columns of equal values."""
        return np.asarray(self.low == self.high)

    @property
    def units(self) -> NDArray[np.int32]:
        """Powers of two of each covariate's size: in such units, which change no digit, squares stay in range."""
        return np.asarray(np.frexp(np.maximum(np.abs(self.low), np.abs(self.high)))[1])

    def say_range(self, column: np.intp, shift: float = 0.0) -> str:
        """'0 to 61.4' for a message; in full where so few digits do not tell the ends apart."""
        low, high = float(self.low[column] + shift), float(self.high[column] + shift)
        short = f"{low:.6g} to {high:.6g}"
        return short if f"{low:.6g}" != f"{high:.6g}" else f"{low} to {high}"

    def describe(self, method: str, column: np.intp, **more: Any) -> dict[str, Any]:
        """What an error says of a column, as its attributes."""
        low, high = float(self.low[column]), float(self.high[column])
        return {"method": method, "covariate": self.names[column], "low": low, "high": high} | more


@dataclass(frozen=True, eq=False)
class HeldTraining(Training):
    """Training rows x (n, p) in memory."""

    x: Array

    @classmethod
    def of(cls, x: Array, names: Sequence[str]) -> HeldTraining:
        """With the range measured; columns lie in one piece, so that sums do not depend on how x came."""
        x = np.asfortranarray(x, dtype=np.float64)
        return cls(tuple(names), x.min(axis=0), x.max(axis=0), x)

    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation, from centred values: the mean's rounding is not in that of 1e15 +- 1."""
        unit = self.units
        x = np.ldexp(self.x, -unit)
        mean = x.mean(axis=0)
        centred = x - mean
        return np.ldexp(mean + centred.mean(axis=0), unit), np.ldexp(centred.std(axis=0), unit)

    def quartiles(self) -> Array:
        """The quarter points and the median between them, (3, p)."""
        return np.percentile(self.x, [25.0, 50.0, 75.0], axis=0)

    def exponents(self, method: str) -> Array:
        """The profile-likelihood exponent of each covariate that varies; 1 for others, NaN where there is none."""
        found = np.ones(len(self.names))
        for c in np.flatnonzero(~self.constant):
            found[c] = _search(method, self.x[:, c], float(positivity_shift(self.low)[c]))
        return found

    def after(self, fitted: ColumnScaling) -> HeldTraining:
        """The rows as an operator transforms them."""
        return HeldTraining.of(fitted.transform(self.x), self.names)


def _search(method: str, x: Array, shift: float) -> float:
    """The exponent of a covariate; NaN where there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # overflow on the way
            return _boxcox_exponent(x + shift) if method == "boxcox" else _yeojohnson_exponent(x)
    except NO_EXPONENT:
        return math.nan


def _affine(method: str, rows: Training, offset: Array, scale: Array) -> AffineScaling:
    flat = rows.constant
    offset, scale = np.where(flat, rows.low, offset), np.where(flat, 0.0, scale)
    for c in np.flatnonzero(~flat):
        if not (np.isfinite(scale[c]) and np.isfinite(1.0 / scale[c])):
            raise ScalingError(
                f"{method} divides {rows.names[c]} by {scale[c]:.4g}, which leaves no usable numbers (values "
                f"{rows.say_range(c)}). Measure the covariate in another unit.",
                **rows.describe(method, c, scale=float(scale[c])),
            )
    return AffineScaling(method, rows.names, rows.low, rows.high, offset, scale)


def _fit_max(rows: Training) -> AffineScaling:
    for c in np.flatnonzero(~rows.constant & (rows.high <= 0)):
        raise ScalingError(
            f"max scaling divides by the largest value, but that of {rows.names[c]} is {rows.high[c]}. "
            "Use zscore or minmax, or measure the covariate from another zero.",
            **rows.describe("max", c, value=float(rows.high[c])),
        )
    return _affine("max", rows, np.zeros_like(rows.high), rows.high)


def _fit_minmax(rows: Training) -> AffineScaling:
    return _affine("minmax", rows, rows.low, rows.high - rows.low)


def _fit_zscore(rows: Training) -> AffineScaling:
    return _affine("zscore", rows, *rows.moments())


def _fit_robust(rows: Training) -> AffineScaling:
    lower, median, upper = rows.quartiles()
    for c in np.flatnonzero(~rows.constant & (lower == upper)):
        raise ScalingError(
            f"robust divides by the interquartile range, but that of {rows.names[c]} is 0: half of its values or "
            f"more are {median[c]} (all: {rows.say_range(c)}). Use zscore or minmax.",
            **rows.describe("robust", c, value=float(median[c])),
        )
    return _affine("robust", rows, median, upper - lower)


def _fit_boxcox(rows: Training) -> BoxCoxScaling:
    return BoxCoxScaling("boxcox", rows.names, rows.low, rows.high, _exponents("boxcox", rows))


def _fit_yeojohnson(rows: Training) -> YeoJohnsonScaling:
    return YeoJohnsonScaling("yeojohnson", rows.names, rows.low, rows.high, _exponents("yeojohnson", rows))


def _fit_log(rows: Training) -> LogScaling:
    return LogScaling("log", rows.names, rows.low, rows.high)


def _boxcox_exponent(x: Array) -> float:
    """argmax of the profile likelihood, Box and Cox (1964): the least log var(expm1(lambda d) / lambda).

    d are the logarithms less their mean: divided by the geometric mean to the power lambda, the transformed
    values need no other term. It is what scipy.stats.boxcox maximizes, by the same search, twenty times as fast.
    On columns with next to no spread SciPy bounds the exponent, while here the transform is refused afterwards.
    """
    d = np.log(x)
    d = d - d.mean()

    def spread(exponent: float) -> float:
        return float(np.log((np.expm1(exponent * d) / exponent if exponent else d).var()))

    return float(optimize.brent(spread, brack=BRACKET))


def _yeojohnson_exponent(x: Array) -> float:
    from scipy import stats  # half a second of imports, for this alone

    return float(stats.yeojohnson(x)[1])


def _exponents(method: str, rows: Training) -> Array:
    exponent = rows.exponents(method)
    for c in np.flatnonzero(np.isnan(exponent)):
        raise ScalingError(
            f"{method} finds no exponent for {rows.names[c]} (values {rows.say_range(c)}). Use zscore, "
            "or measure the covariate from another zero or in another unit.",
            **rows.describe(method, c),
        )
    return exponent


class Operator(NamedTuple):
    """How an operator is fitted, and whether it is affine whatever the rows."""

    fit: Callable[[Training], ColumnScaling]
    affine: bool


REGISTRY = {
    "max": Operator(_fit_max, affine=True),
    "minmax": Operator(_fit_minmax, affine=True),
    "zscore": Operator(_fit_zscore, affine=True),
    "boxcox": Operator(_fit_boxcox, affine=False),
    "yeojohnson": Operator(_fit_yeojohnson, affine=False),
    "log": Operator(_fit_log, affine=False),
    "robust": Operator(_fit_robust, affine=True),
}


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
