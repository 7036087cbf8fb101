"""Scaling operators by name: how each is fitted on training rows, and the register that holds them.

    max x / x_max    minmax (x - x_min) / (x_max - x_min)    zscore (x - mean) / s, ddof 0
    boxcox BoxCox(x + max(0, 1 - x_min); lambda), lambda by profile likelihood      (paper, Eqs. max-boxcox)
    robust (x - median) / interquartile range    yeojohnson, log: see operators

Names joined by + are applied in turn: "boxcox+zscore". An operator that loses a column (no spread, infinite
values, a division by nothing) is an error with the covariate and the reason: a failed trial.

To add an operator, write a class of fitted values and a fit function, and ``register`` them: estimators, studies,
the command line, JSON files and fits in blocks then know its name, and every test of an operator runs on it.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, ScalingError, did_you_mean
from rekka.scaling.operators import (
    AffineScaling,
    Array,
    BoxCoxScaling,
    ChainScaling,
    ColumnScaling,
    FittedScaling,
    LogScaling,
    PartialScaling,
    PowerScaling,
    YeoJohnsonScaling,
    fit_foreign,
    pick_scaled,
    positivity_shift,
)

NO_EXPONENT = (ValueError, RuntimeError)  # no bracket, no finite bounds, nothing positive left after rounding
METHODS = ("max", "minmax", "zscore", "boxcox")  # the paper's
BEYOND = ("boxcox+zscore", "yeojohnson+zscore", "log+zscore", "robust")  # candidates that the paper does not have
NONE = "none"
RESOLUTION = 1e-10  # of the largest value: a curve with less spread keeps fewer than 6 of 16 digits
LARGEST = 1e150  # the square of a transformed value is still finite


@dataclass(frozen=True, eq=False)
class TrainingRows(ABC):
    """Statistics of the training rows that operators are fitted by; ``low`` and ``high`` are (p,).

    They come from an array (``ArrayRows``) or from passes over blocks (``streaming.scaling``), so that an operator
    that asks for nothing else is fitted to either.
    """

    names: tuple[str, ...]
    low: Array
    high: Array

    @abstractmethod
    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation, ddof 0, of each covariate."""

    @abstractmethod
    def quartiles(self) -> Array:
        """Lower quartile, median and upper quartile of each covariate, (3, p)."""

    @abstractmethod
    def exponents(self, curve: type[PowerScaling]) -> Array:
        """Profile-likelihood exponent of each covariate that varies; 1 for others, NaN where there is none."""

    @abstractmethod
    def after(self, fitted: ColumnScaling) -> TrainingRows:
        """Transform the rows by an operator, for the next one in a chain."""

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Mask of the columns of equal values, (p,)."""
        return np.asarray(self.low == self.high)

    @property
    def units(self) -> NDArray[np.int32]:
        """Powers of two of each covariate's size: in such units, which change no digit, squares stay in range."""
        return np.asarray(np.frexp(np.maximum(np.abs(self.low), np.abs(self.high)))[1])

    def say_range(self, column: np.intp, shift: float = 0.0) -> str:
        """'0 to 61.4' for a message; in full where so few digits make both ends equal."""
        low, high = float(self.low[column] + shift), float(self.high[column] + shift)
        short = f"{low:.6g} to {high:.6g}"
        return short if f"{low:.6g}" != f"{high:.6g}" else f"{low} to {high}"

    def describe(self, method: str, column: np.intp, **more: Any) -> dict[str, Any]:
        """Values of an error about a column, its attributes."""
        low, high = float(self.low[column]), float(self.high[column])
        return {"method": method, "covariate": self.names[column], "low": low, "high": high} | more


@dataclass(frozen=True, eq=False)
class ArrayRows(TrainingRows):
    """Training rows x, (n, p), in memory."""

    x: Array

    @classmethod
    def of(cls, x: Array, names: Sequence[str]) -> ArrayRows:
        """Measure the range; columns are laid out contiguously, so that sums do not depend on how x came."""
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
        """Lower quartile, median and upper quartile of each covariate, (3, p)."""
        return np.percentile(self.x, [25.0, 50.0, 75.0], axis=0)

    def exponents(self, curve: type[PowerScaling]) -> Array:
        """Profile-likelihood exponent of each covariate that varies; 1 for others, NaN where there is none."""
        found, shift = np.ones(len(self.names)), positivity_shift(self.low)
        for c in np.flatnonzero(~self.constant):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # overflow on the way
                    found[c] = curve.search(self.x[:, c], float(shift[c]))
            except NO_EXPONENT:
                found[c] = math.nan
        return found

    def after(self, fitted: ColumnScaling) -> ArrayRows:
        """Transform the rows by an operator."""
        return ArrayRows.of(fitted.transform(self.x), self.names)


@dataclass(frozen=True)
class Operator:
    """Registered operator: its fit function and the class of its fitted values.

    ``rows_in_memory`` says that ``fit`` reads ``ArrayRows.x``; a fit in blocks then refuses the operator.
    """

    fit: Callable[[Any], ColumnScaling]
    fitted: type[ColumnScaling]
    rows_in_memory: bool = False

    @property
    def affine(self) -> bool:
        """Whether the operator is affine whatever the rows."""
        return issubclass(self.fitted, AffineScaling)


REGISTRY: dict[str, Operator] = {}


def register(
    name: str,
    fit: Callable[[Any], ColumnScaling],
    fitted: type[ColumnScaling],
    *,
    rows_in_memory: bool = False,
) -> None:
    """Register an operator under a name, for this process.

    Parameters
    ----------
    name : str
        As options call it; without a plus sign.
    fit : function
        Takes ``TrainingRows`` and returns a fitted value: ``low``, ``high``, ``moments()``, ``quartiles()`` and
        ``exponents()`` are known of arrays and of blocks alike.
    fitted : class
        The class of what ``fit`` returns. Its ``kind`` names it in files.
    rows_in_memory : bool
        Whether ``fit`` reads the rows themselves, ``rows.x`` (n, p), and so cannot be fitted in blocks.

    """
    rival = next((one for one in REGISTRY.values() if one.fitted.kind == fitted.kind), None)
    if name in REGISTRY or name == NONE or "+" in name or (rival is not None and rival.fitted is not fitted):
        raise ValueError(f"{name!r} or the kind {fitted.kind!r} is registered already, or is no name")
    REGISTRY[name] = Operator(fit, fitted, rows_in_memory)


def _affine(method: str, rows: TrainingRows, offset: Array, scale: Array) -> AffineScaling:
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


def _fit_max(rows: TrainingRows) -> AffineScaling:
    for c in np.flatnonzero(~rows.constant & (rows.high <= 0)):
        raise ScalingError(
            f"max scaling divides by the largest value, but that of {rows.names[c]} is {rows.high[c]}. "
            "Use zscore or minmax, or measure the covariate from another zero.",
            **rows.describe("max", c, value=float(rows.high[c])),
        )
    return _affine("max", rows, np.zeros_like(rows.high), rows.high)


def _fit_minmax(rows: TrainingRows) -> AffineScaling:
    return _affine("minmax", rows, rows.low, rows.high - rows.low)


def _fit_zscore(rows: TrainingRows) -> AffineScaling:
    return _affine("zscore", rows, *rows.moments())


def _fit_robust(rows: TrainingRows) -> AffineScaling:
    lower, median, upper = rows.quartiles()
    for c in np.flatnonzero(~rows.constant & (lower == upper)):
        raise ScalingError(
            f"robust divides by the interquartile range, but that of {rows.names[c]} is 0: half of its values or "
            f"more are {median[c]} (all: {rows.say_range(c)}). Use zscore or minmax.",
            **rows.describe("robust", c, value=float(median[c])),
        )
    return _affine("robust", rows, median, upper - lower)


def _fit_log(rows: TrainingRows) -> LogScaling:
    return LogScaling("log", rows.names, rows.low, rows.high)


def _fit_power(method: str, curve: type[PowerScaling], rows: TrainingRows) -> PowerScaling:
    exponent = rows.exponents(curve)
    for c in np.flatnonzero(np.isnan(exponent)):
        raise ScalingError(
            f"{method} finds no exponent for {rows.names[c]} (values {rows.say_range(c)}). Use zscore, "
            "or measure the covariate from another zero or in another unit.",
            **rows.describe(method, c),
        )
    return curve(method, rows.names, rows.low, rows.high, exponent)


register("max", _fit_max, AffineScaling)
register("minmax", _fit_minmax, AffineScaling)
register("zscore", _fit_zscore, AffineScaling)
register("boxcox", lambda rows: _fit_power("boxcox", BoxCoxScaling, rows), BoxCoxScaling)
register("yeojohnson", lambda rows: _fit_power("yeojohnson", YeoJohnsonScaling, rows), YeoJohnsonScaling)
register("log", _fit_log, LogScaling)
register("robust", _fit_robust, AffineScaling)


class NamedScaler:
    """Transformer that stands for the operator of its ``method``: to a model it is a name, not foreign."""

    method: Any


def split_method(method: Any, option: str = "scaling") -> tuple[str, ...]:
    """Names of the links of a name, a list of names, or None; the empty chain changes nothing."""
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
    """Text form of a name, a list of names, or None."""
    return "+".join(split_method(scaling)) or NONE


def is_affine(method: str) -> bool:
    """Whether a method is affine, so that its models have coefficients in native units."""
    return all(REGISTRY[link].affine for link in split_method(method))


def fits_in_blocks(scaling: Any) -> bool:
    """Whether a ``scaling`` option can be fitted in passes over blocks, without all rows in memory."""
    check_method(scaling)
    method = scaling.method if isinstance(scaling, NamedScaler) else scaling
    named = method is None or isinstance(method, str | list | tuple)
    return named and not any(REGISTRY[link].rows_in_memory for link in split_method(method))


def model_of(method: str) -> str:
    """Name the model that a method leads to: "affine", or its links up to the last that is not.

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


def fit_scaling(method: Any, x: Array, names: Sequence[str], plain: Collection[str] = ()) -> FittedScaling:
    """Fit an operator, by name or as a transformer, on training rows x (n, p); ``plain`` covariates stay."""
    check_method(method)
    names, kept = tuple(names), tuple(name for name in names if name in plain)
    if kept:
        scaled = pick_scaled(names, kept)
        inner = fit_scaling(method if scaled.size else None, x[:, scaled], [names[c] for c in scaled])
        return PartialScaling(names, kept, inner)
    if isinstance(method, NamedScaler):
        method = method.method
    elif method is not None and not isinstance(method, str | list | tuple):
        return fit_foreign(method, x)
    if not len(x):
        raise ScalingError("There are no training rows to fit a scaling on; at least one is needed.")
    return fit_links(split_method(method), ArrayRows.of(x, names))


def fit_links(links: Sequence[str], rows: TrainingRows) -> FittedScaling:
    """Fit the operators of a chain, each on the training rows as the one before transforms them."""
    if not links:
        zero = np.zeros(rows.low.size)
        return AffineScaling(NONE, rows.names, rows.low, rows.high, zero, zero + 1.0)
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


def _judge(fitted: ColumnScaling, rows: TrainingRows) -> None:
    """Refuse a column that varies in the training rows but is lost in their transform.

    Box-Cox can make all values equal on large, low-spread data without a word (SciPy issue 16674), or
    stop at the exponent that brings the largest value just short of infinity. Every operator keeps the order of
    values, so the two ends of the range suffice.
    """
    z = fitted.forward(np.stack([rows.low, rows.high]))
    size, spread = np.abs(z).max(axis=0), np.ptp(z, axis=0)
    curved = fitted.affine() is None
    usable = np.isfinite(z).all(axis=0) & (size <= (LARGEST if curved else np.inf))
    apart = spread > (RESOLUTION * size if curved else 0.0)
    for c in np.flatnonzero(~(usable & apart) & ~rows.constant):
        how = "without spread" if usable[c] else "with values too large to compute with"
        exponent = float(fitted.exponent[c]) if isinstance(fitted, PowerScaling) else None
        power = "" if exponent is None else f"lambda {exponent:.4g}, "
        moved, shift = ("", 0.0) if fitted.shift is None else (" after the shift", float(fitted.shift[c]))
        raise ScalingError(
            f"{fitted.method} turns {rows.names[c]} into a column {how} ({power}values "
            f"{rows.say_range(c, shift)}{moved}). Use zscore, or measure the covariate from another zero.",
            **rows.describe(fitted.method, c, exponent=exponent),
        )


def _refuse_option(option: str, value: Any, wrong: str | None = None) -> NoReturn:
    """Refuse a value that is no method; of a chain, ``wrong`` is the link."""
    which = f", and {wrong!r} is no operator" if wrong is not None and wrong != value else ""
    choices = [*REGISTRY, "several joined by + as in boxcox+zscore", "None"]
    others = ["an object with fit and transform"] if option == "scaling" else []
    hint = did_you_mean(wrong, REGISTRY) if wrong is not None else ""
    raise BadOption(
        f"{option} is {value!r}{which}; it can be {', '.join(choices + others)}.{hint}",
        option=option,
        value=value,
        choices=list(REGISTRY),
    )
