"""Fitted scaling operators: frozen values that map raw covariates x to scaled ones z and back, both (n, p).

    affine      z = (x - offset) / scale                      max, minmax, zscore, robust, none
    boxcox      z = ((x + shift)^lambda - 1) / lambda         shift = max(0, 1 - x_min)     (paper, Eq. boxcox)
    log         z = log(x + shift)                            the same shift
    yeojohnson  z = ((1 + x)^lambda - 1) / lambda for x >= 0, mirrored with 2 - lambda below 0
    chain       several of these, one after the other
    foreign     a transformer from elsewhere, scikit-learn's above all
    partial     one of these on some of the columns; the 0/1 columns of categories stay as they are

A constant training column becomes zero, whatever other rows hold. A value that an operator cannot take, or turns
into infinity, is refused: nothing is clipped. How operators are fitted, and how one is added: ``registry``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from rekka.core.errors import BadOption, OutsideTrainingRange, ScalingError

Array = NDArray[np.float64]

BRACKET = (-2.0, 2.0)  # where the search for an exponent begins, as in scipy.stats


class FittedScaling(Protocol):
    """A fitted operator, as the rest of rekka uses it."""

    @property
    def method(self) -> str:
        """Name of the operator, such as "zscore" or "boxcox+zscore"."""

    def transform(self, x: Array) -> Array:
        """Scale raw covariates x, (n, p)."""

    def inverse(self, z: Array) -> Array:
        """Return the raw covariates of z, (n, p); constant columns get their training value."""

    def affine(self) -> tuple[Array, Array] | None:
        """Offset and factor of z = (x - offset) * factor, (p,) each; None where it is not of that form."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which ``serial`` builds the operator again."""


@dataclass(frozen=True, eq=False)
class ColumnScaling(ABC):
    """Operator on each covariate by itself; ``low`` and ``high`` are the training range, (p,).

    A subclass names its ``kind`` in files, may have further arrays (p,) as dataclass fields, and gives the formula
    forth and back. It must be monotone in each covariate.
    """

    kind: ClassVar[str]

    method: str
    names: tuple[str, ...]
    low: Array
    high: Array

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Mask of the columns that become zero, (p,)."""
        return np.asarray(self.low == self.high)

    @property
    def shift(self) -> Array | None:
        """Amount added to make each column positive, (p,); None where the operator adds nothing."""
        return None

    @abstractmethod
    def forward(self, x: Array) -> Array:
        """Evaluate the formula, in a new array; NaN or infinity where it has no value."""

    @abstractmethod
    def backward(self, z: Array) -> Array:
        """Evaluate the formula solved for x, likewise."""

    def transform(self, x: Array) -> Array:
        """Scale raw covariates x, (n, p)."""
        with np.errstate(all="ignore"):  # what comes of it is looked at
            z = self.forward(x)
        z[:, self.constant] = 0.0
        self._refuse("transform", x, z)
        return z

    def inverse(self, z: Array) -> Array:
        """Return the raw covariates of z, (n, p); constant columns get their training value."""
        with np.errstate(all="ignore"):
            x = self.backward(z)
        x[:, self.constant] = self.low[self.constant]
        self._refuse("undo", z, x)
        return x

    def affine(self) -> tuple[Array, Array] | None:
        """Return None: not affine, so that coefficients stay in transformed units."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which ``serial`` builds the operator again."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in values.items()}
        return {"kind": self.kind} | plain | {"names": list(self.names)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnScaling) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.method, self.names))

    def _refuse(self, verb: str, given: Array, found: Array) -> None:
        if np.isfinite(found).all():
            return
        row, c = map(int, np.argwhere(~np.isfinite(found))[0])
        values = {
            "method": self.method,
            "covariate": self.names[c],
            "value": float(given[row, c]),
            "row": row,
            "low": float(self.low[c]),
            "high": float(self.high[c]),
            "shift": None if self.shift is None else float(self.shift[c]),
        }
        raise OutsideTrainingRange(
            f"{self.method} cannot {verb} {values['covariate']} = {values['value']} (row {row}): "
            f"{fitted_on(values)}.",
            **values | {"raw": values["value"]},
        )


@dataclass(frozen=True, eq=False)
class AffineScaling(ColumnScaling):
    """z = (x - offset) / scale; a constant column has scale 0, and its value as offset."""

    kind: ClassVar[str] = "affine"

    offset: Array
    scale: Array = field(metadata={"ge": 0})

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Mask of the columns that become zero; under "none" a column of equal values stays as it is."""
        return np.asarray(self.scale == 0)

    def forward(self, x: Array) -> Array:
        """Evaluate the formula."""
        return (x - self.offset) / self.scale

    def backward(self, z: Array) -> Array:
        """Evaluate the formula solved for x."""
        return z * self.scale + self.offset

    def affine(self) -> tuple[Array, Array]:
        """Offset and factor of z = (x - offset) * factor."""
        flat = self.constant
        return self.offset, np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, self.scale))


@dataclass(frozen=True, eq=False)
class LogScaling(ColumnScaling):
    """z = log(x + shift)."""

    kind: ClassVar[str] = "log"

    @property
    def shift(self) -> Array:
        """max(0, 1 - x_min): the smallest training value becomes 1 where it is below 1."""
        return positivity_shift(self.low)

    def forward(self, x: Array) -> Array:
        """Evaluate the formula; log(0) is infinite, and refused."""
        return np.asarray(np.log(x + self.shift))

    def backward(self, z: Array) -> Array:
        """Evaluate the formula solved for x."""
        return np.asarray(np.exp(z) - self.shift)


@dataclass(frozen=True, eq=False)
class PowerScaling(ColumnScaling):
    """Operator with an exponent lambda for each covariate, found by profile likelihood.

    The search minimises log var(bend(prepare(x), lambda)) - slopes(lambda): in memory for one covariate at a time,
    in passes over blocks for all of them together (``streaming.scaling``). ``mean`` is that of the logarithms over
    the training rows.
    """

    exponent: Array

    @staticmethod
    @abstractmethod
    def logarithms(x: Array, shift: Any) -> Array:
        """Logarithms whose mean the likelihood needs."""

    @staticmethod
    @abstractmethod
    def prepare(x: Array, shift: Any, mean: Any) -> Array:
        """Values to be bent, which do not depend on lambda."""

    @staticmethod
    @abstractmethod
    def bend(prepared: Array, exponent: Any) -> Array:
        """Transform prepared values with an exponent."""

    @staticmethod
    def slopes(exponent: Any, mean: Any) -> Any:
        """Twice the mean logarithm of the transform's slopes, where ``bend`` does not divide them out."""
        return 0.0

    @classmethod
    def search(cls, x: Array, shift: float) -> float:
        """Find the exponent of one covariate x, (n,), by Brent's method."""
        mean = cls.logarithms(x, shift).mean()
        prepared = cls.prepare(x, shift, mean)

        def profile(exponent: float) -> float:
            return float(np.log(cls.bend(prepared, exponent).var()) - cls.slopes(exponent, mean))

        return float(optimize.brent(profile, brack=BRACKET))


@dataclass(frozen=True, eq=False)
class BoxCoxScaling(PowerScaling, LogScaling):
    """z = ((x + shift)^lambda - 1) / lambda, or the logarithm where lambda is 0.

    The profile likelihood is that of Box and Cox (1964). With the logarithms less their mean, d, the values
    expm1(lambda d) / lambda are divided by the geometric mean to the power lambda, and need no other term. This is
    what scipy.stats.boxcox maximises, twenty times as fast. On columns with next to no spread SciPy bounds the
    exponent, while here the transform is refused afterwards.
    """

    kind: ClassVar[str] = "boxcox"

    @staticmethod
    def logarithms(x: Array, shift: Any) -> Array:
        """Logarithms of the shifted values."""
        return np.asarray(np.log(x + shift))

    @staticmethod
    def prepare(x: Array, shift: Any, mean: Any) -> Array:
        """Logarithms less their mean."""
        return np.asarray(np.log(x + shift) - mean)

    @staticmethod
    def bend(prepared: Array, exponent: Any) -> Array:
        """expm1(lambda d) / lambda."""
        return np.asarray(np.expm1(exponent * prepared) / exponent) if exponent else prepared

    def forward(self, x: Array) -> Array:
        """Evaluate the formula for positive x + shift; elsewhere NaN, also where it has a value at 0."""
        shifted = x + self.shift
        return np.asarray(special.boxcox(np.where(shifted > 0, shifted, np.nan), self.exponent))

    def backward(self, z: Array) -> Array:
        """Evaluate the formula solved for x."""
        return np.asarray(special.inv_boxcox(z, self.exponent) - self.shift)


@dataclass(frozen=True, eq=False)
class YeoJohnsonScaling(PowerScaling):
    """z = BoxCox(1 + x; lambda) for x >= 0 and -BoxCox(1 - x; 2 - lambda) below: any real number will do."""

    kind: ClassVar[str] = "yeojohnson"

    @staticmethod
    def logarithms(x: Array, shift: Any) -> Array:
        """sign(x) log(1 + |x|), whose sum times lambda - 1 is that of the slopes' logarithms."""
        return np.asarray(np.sign(x) * np.log1p(np.abs(x)))

    @staticmethod
    def prepare(x: Array, shift: Any, mean: Any) -> Array:
        """Values themselves."""
        return x

    @staticmethod
    def bend(prepared: Array, exponent: Any) -> Array:
        """Evaluate the formula."""
        above, size = prepared >= 0, np.abs(prepared)
        z = special.boxcox1p(size, np.where(above, exponent, 2.0 - exponent))
        return np.asarray(np.where(above, z, -z))

    @staticmethod
    def slopes(exponent: Any, mean: Any) -> Any:
        """Twice the mean logarithm of the slopes."""
        return 2.0 * (exponent - 1.0) * mean

    @classmethod
    def search(cls, x: Array, shift: float) -> float:
        """Find the exponent of one covariate x, (n,): SciPy's."""
        from scipy import stats  # half a second of imports, for this alone

        return float(stats.yeojohnson(x)[1])

    def forward(self, x: Array) -> Array:
        """Evaluate the formula."""
        return self.bend(x, self.exponent)

    def backward(self, z: Array) -> Array:
        """Evaluate the formula solved for x."""
        above, size = z >= 0, np.abs(z)
        x = special.inv_boxcox1p(size, np.where(above, self.exponent, 2.0 - self.exponent))
        return np.asarray(np.where(above, x, -x))


def positivity_shift(low: Array) -> Array:
    """Return max(0, 1 - x_min), (p,)."""
    return np.maximum(0.0, 1.0 - low)


def fitted_on(values: dict[str, Any]) -> str:
    """Name the training range, for errors."""
    shift = "" if values["shift"] is None else f", shift {values['shift']}"
    return f"fitted on {values['low']} to {values['high']}{shift}"


@dataclass(frozen=True)
class ChainScaling:
    """Operators applied in turn, each fitted on the training rows as the one before transforms them."""

    kind: ClassVar[str] = "chain"

    links: tuple[ColumnScaling, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return self.links[0].names

    @property
    def method(self) -> str:
        """Names of the links, joined by +."""
        return "+".join(link.method for link in self.links)

    def transform(self, x: Array) -> Array:
        """Apply the links in turn."""
        z = x
        for done, link in enumerate(self.links):
            try:
                z = link.transform(z)
            except OutsideTrainingRange as error:
                if not done:
                    raise
                raise _after(self.links[:done], error.values, x) from None
        return z

    def inverse(self, z: Array) -> Array:
        """Undo the links, the last one first."""
        for link in reversed(self.links):
            z = link.inverse(z)
        return z

    def affine(self) -> tuple[Array, Array] | None:
        """Offset and factor of z = (x - offset) * factor where every link is of that form."""
        offset, factor = np.zeros(len(self.names)), np.ones(len(self.names))
        for link in self.links:
            then = link.affine()
            if then is None:
                return None
            flat = factor == 0
            offset = offset + np.where(flat, 0.0, then[0] / np.where(flat, 1.0, factor))
            factor = factor * then[1]
        return offset, factor

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which ``serial`` builds the operator again."""
        return {"kind": self.kind, "links": [link.to_dict() for link in self.links]}


def _after(links: tuple[ColumnScaling, ...], values: dict[str, Any], x: Array) -> OutsideTrainingRange:
    """Error of a later link, with the value in the table beside the one that the link was given."""
    name, row = values["covariate"], values["row"]
    raw = float(x[row, links[0].names.index(name)])
    return OutsideTrainingRange(
        f"{values['method']} cannot transform {name} = {values['value']} after {ChainScaling(links).method} "
        f"(row {row}, where {name} is {raw}): {fitted_on(values)}.",
        **values | {"raw": raw},
    )


@dataclass(frozen=True)
class ForeignScaling:
    """Fitted transformer from elsewhere: anything with fit and transform on an (n, p) array."""

    transformer: Any

    @property
    def method(self) -> str:
        """Name of the transformer's class."""
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

    def inverse(self, z: Array) -> Array:
        """Call the transformer's own ``inverse_transform``."""
        if not hasattr(self.transformer, "inverse_transform"):
            raise BadOption(f"{self.method} has no inverse_transform: its covariates cannot be had back.")
        return np.asarray(self.transformer.inverse_transform(z), dtype=np.float64)

    def affine(self) -> tuple[Array, Array] | None:
        """Offset and factor of scikit-learn's own affine scalers, from their fitted attributes; else None."""
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
        """Refuse: a foreign object has no exact text form."""
        raise BadOption(
            f"A model scaled by {self.method} cannot be written as JSON: only rekka's own operators "
            "(zscore, boxcox+zscore, ..., None) have an exact text form. Use one of them, or pickle the model."
        )


@dataclass(frozen=True)
class PartialScaling:
    """Operator on some of the covariates; ``plain`` ones, the 0/1 columns of categories, stay as they are."""

    kind: ClassVar[str] = "partial"

    names: tuple[str, ...]
    plain: tuple[str, ...]
    inner: FittedScaling

    @property
    def method(self) -> str:
        """Name of the operator of the other covariates."""
        return self.inner.method

    @cached_property
    def scaled(self) -> NDArray[np.intp]:
        """Columns that the operator transforms."""
        return pick_scaled(self.names, self.plain)

    def transform(self, x: Array) -> Array:
        """Transform the other covariates."""
        z = np.array(x, dtype=np.float64, order="K")
        z[:, self.scaled] = self.inner.transform(x[:, self.scaled])
        return z

    def inverse(self, z: Array) -> Array:
        """Return the raw covariates of z."""
        x = np.array(z, dtype=np.float64, order="K")
        x[:, self.scaled] = self.inner.inverse(z[:, self.scaled])
        return x

    def affine(self) -> tuple[Array, Array] | None:
        """Offset and factor of z = (x - offset) * factor: 0 and 1 for plain covariates."""
        offset, factor = np.zeros(len(self.names)), np.ones(len(self.names))
        if self.scaled.size:
            found = self.inner.affine()
            if found is None:
                return None
            offset[self.scaled], factor[self.scaled] = found
        return offset, factor

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which ``serial`` builds the operator again."""
        names = {"names": list(self.names), "plain": list(self.plain)}
        return {"kind": self.kind} | names | {"inner": self.inner.to_dict()}


def pick_scaled(names: Sequence[str], plain: Collection[str]) -> NDArray[np.intp]:
    """Places of the covariates that an operator transforms."""
    return np.flatnonzero([name not in plain for name in names])


def fit_foreign(transformer: Any, x: Array) -> ForeignScaling:
    """Fit a copy of a transformer on training rows x (n, p); the one given stays as it is."""
    from sklearn.base import clone  # a second of imports; who gives a transformer has them already

    return ForeignScaling(clone(transformer, safe=False).fit(x))
