"""Covariate scaling operators: fitted on training rows only, then applied unchanged to every other row.

    max x / x_max    minmax (x - x_min) / (x_max - x_min)    zscore (x - mean) / s, ddof 0
    boxcox BoxCox(x + max(0, 1 - x_min); lambda), lambda by profile likelihood      (paper, Eqs. max-boxcox)

A constant training column becomes zero under every method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats
from sklearn.base import clone

from rekka.errors import BadOption, OutsideTrainingRange, ScalingError, bad_option

Array = NDArray[np.float64]

METHODS = ("max", "minmax", "zscore", "boxcox")


class FittedScaling(Protocol):
    """A fitted operator: ``x`` raw and ``z`` scaled are (n, p)."""

    @property
    def method(self) -> str:
        """The operator's name, as a person should read it."""

    def transform(self, x: Array) -> Array:
        """Apply the operator as fitted."""

    def affine(self) -> tuple[Array, Array] | None:
        """Offset and factor of z = (x - offset) * factor, or None where it is not of that form."""

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to make it again."""


@dataclass(frozen=True)
class AffineScaling:
    """z = (x - offset) / scale; a constant column has scale 0 and becomes zero."""

    method: str
    offset: Array
    scale: Array

    def transform(self, x: Array) -> Array:
        """Apply the operator as fitted."""
        constant = self.scale == 0
        z: Array = (x - self.offset) / np.where(constant, 1.0, self.scale)
        z[:, constant] = 0.0
        return z

    def affine(self) -> tuple[Array, Array]:
        """Offset and factor of z = (x - offset) * factor."""
        constant = self.scale == 0
        return self.offset, np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, self.scale))

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to make it again."""
        return {"method": self.method, "offset": self.offset.tolist(), "scale": self.scale.tolist()}


@dataclass(frozen=True)
class BoxCoxScaling:
    """z = ((x + shift)^lambda - 1) / lambda, or the logarithm where lambda is 0."""

    names: tuple[str, ...]
    shift: Array
    exponent: Array
    constant: NDArray[np.bool_]
    method: str = "boxcox"

    def transform(self, x: Array) -> Array:
        """Apply the operator as fitted; a value it cannot take is refused, never clipped."""
        shifted = x + self.shift
        bad = (shifted <= 0) & ~self.constant
        if bad.any():
            row, column = np.argwhere(bad)[0]
            value, name, shift = float(x[row, column]), self.names[column], float(self.shift[column])
            raise OutsideTrainingRange(
                f"boxcox cannot transform {name} = {value} (row {row}): fitted on "
                f"{1.0 - shift if shift > 0 else 'values above 0'}{' and above' if shift > 0 else ''}, "
                f"shift {shift}.",
                covariate=name,
                value=value,
                row=int(row),
                shift=shift,
            )
        z: Array = special.boxcox(np.where(self.constant, 1.0, shifted), self.exponent)
        z[:, self.constant] = 0.0
        return z

    def affine(self) -> None:
        """Not affine: coefficients stay in transformed units."""
        return

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to make it again."""
        return {
            "method": self.method,
            "names": list(self.names),
            "shift": self.shift.tolist(),
            "exponent": self.exponent.tolist(),
            "constant": self.constant.tolist(),
        }


@dataclass(frozen=True)
class ForeignScaling:
    """A fitted transformer from elsewhere, anything with fit and transform on an (n, p) array."""

    transformer: Any

    @property
    def method(self) -> str:
        """The transformer's class."""
        return type(self.transformer).__name__

    def transform(self, x: Array) -> Array:
        """Apply the transformer as fitted."""
        z = np.asarray(self.transformer.transform(x), dtype=np.float64)
        if z.shape != x.shape:
            raise ScalingError(
                f"{self.method} turned {x.shape[1]} covariates into shape {z.shape}. "
                "A scaling keeps one column per covariate; do feature engineering before the model."
            )
        return z

    def affine(self) -> tuple[Array, Array] | None:
        """Known for scikit-learn's own affine scalers, from their fitted attributes."""
        t = self.transformer
        zero = np.zeros(getattr(t, "n_features_in_", 0))
        match self.method:
            case "StandardScaler":
                return (t.mean_ if t.with_mean else zero), 1.0 / (t.scale_ if t.with_std else zero + 1.0)
            case "RobustScaler":
                return (t.center_ if t.with_centering else zero), 1.0 / (
                    t.scale_ if t.with_scaling else zero + 1.0
                )
            case "MaxAbsScaler":
                return zero, 1.0 / t.scale_
            case "MinMaxScaler" if not t.clip:
                return -t.min_ / t.scale_, t.scale_
        return None

    def to_dict(self) -> dict[str, Any]:
        """Refused: a foreign object has no exact text form."""
        raise BadOption(
            f"A model scaled by {self.method} cannot be written as JSON: only rekka's own operators "
            f"({', '.join(METHODS)}, None) have an exact text form. Use one of them, or pickle the model."
        )


def check_method(scaling: Any) -> None:
    """Refuse a ``scaling`` option that is neither a known name, None, nor a transformer."""
    if scaling is None or scaling in METHODS:
        return
    if isinstance(scaling, str) or not (hasattr(scaling, "fit") and hasattr(scaling, "transform")):
        raise bad_option("scaling", scaling, [*METHODS, "None", "an object with fit and transform"])


def fit_scaling(method: Any, x: Array, names: Sequence[str]) -> FittedScaling:
    """Fit an operator, by name or as a transformer, on training rows x (n, p)."""
    check_method(method)
    low, high = (x.min(axis=0), x.max(axis=0)) if x.shape[1] else (np.zeros(0), np.zeros(0))
    constant = low == high
    match method:
        case None:
            return AffineScaling("none", np.zeros(x.shape[1]), np.ones(x.shape[1]))
        case "max":
            return _fit_max(high, constant, names)
        case "minmax":
            return AffineScaling("minmax", low, high - low)
        case "zscore":
            return AffineScaling("zscore", x.mean(axis=0), np.where(constant, 0.0, x.std(axis=0)))
        case "boxcox":
            return _fit_boxcox(x, low, constant, names)
    return ForeignScaling(clone(method, safe=False).fit(x))


def _fit_max(high: Array, constant: NDArray[np.bool_], names: Sequence[str]) -> AffineScaling:
    for name, top, flat in zip(names, high, constant, strict=True):
        if top <= 0 and not flat:
            raise ScalingError(
                f"max scaling divides by the largest value, but that of {name} is {top}. "
                "Use zscore or minmax, or measure the covariate from another zero.",
                covariate=name,
                value=float(top),
            )
    return AffineScaling("max", np.zeros(len(high)), np.where(constant, 0.0, high))


def _fit_boxcox(x: Array, low: Array, constant: NDArray[np.bool_], names: Sequence[str]) -> BoxCoxScaling:
    shift = np.maximum(0.0, 1.0 - low)
    exponent = np.ones(x.shape[1])
    for column in map(int, np.flatnonzero(~constant)):
        shifted = x[:, column] + shift[column]
        z, exponent[column] = stats.boxcox(shifted)
        if not np.isfinite(z).all() or np.ptp(z) == 0.0:
            raise ScalingError(
                f"boxcox turns {names[column]} into a column without spread or with infinite values "
                f"(lambda {exponent[column]:.4g}, values {shifted.min():.6g} to {shifted.max():.6g} after the "
                "shift). Use zscore, or measure the covariate from another zero.",
                covariate=names[column],
                exponent=float(exponent[column]),
            )
    return BoxCoxScaling(tuple(names), shift, exponent, constant)


def scaling_from_dict(data: dict[str, Any]) -> FittedScaling:
    """Make a fitted operator again from ``to_dict``."""
    if data["method"] == "boxcox":
        return BoxCoxScaling(
            tuple(data["names"]),
            np.asarray(data["shift"], dtype=np.float64),
            np.asarray(data["exponent"], dtype=np.float64),
            np.asarray(data["constant"], dtype=np.bool_),
        )
    return AffineScaling(
        data["method"],
        np.asarray(data["offset"], dtype=np.float64),
        np.asarray(data["scale"], dtype=np.float64),
    )
