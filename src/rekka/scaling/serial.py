"""A fitted operator as JSON text and back: complete, versioned, exact to the last bit, no pickle."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from rekka.core.errors import ModelFileError
from rekka.scaling.operators import (
    AffineScaling,
    BoxCoxScaling,
    ChainScaling,
    ColumnScaling,
    FittedScaling,
    LogScaling,
    YeoJohnsonScaling,
)
from rekka.scaling.registry import NONE, OPERATORS

VERSION: Literal[1] = 1
CLASSES: dict[str, type[ColumnScaling]] = {
    one.kind: one for one in (AffineScaling, BoxCoxScaling, YeoJohnsonScaling, LogScaling)
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Columns(_Part):
    kind: str
    method: str
    names: list[str]
    low: list[float]
    high: list[float]

    @model_validator(mode="after")
    def _columns_fit(self) -> _Columns:
        if self.method not in (*OPERATORS, NONE):
            raise ValueError(f"there is no operator {self.method!r}")
        for field, value in self:
            if isinstance(value, list) and len(value) != len(self.names):
                raise ValueError(f"{field} has {len(value)} entries for {len(self.names)} names")
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("low is above high")
        return self

    def build(self) -> ColumnScaling:
        """The operator."""
        values = self.model_dump(exclude={"kind", "method", "names"})
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        return CLASSES[self.kind](method=self.method, names=tuple(self.names), **arrays)


class AffinePart(_Columns):
    """An affine operator in a file."""

    kind: Literal["affine"]
    offset: list[float]
    scale: list[Annotated[float, Field(ge=0)]]


class BoxCoxPart(_Columns):
    """Box-Cox in a file; its shift follows from ``low``."""

    kind: Literal["boxcox"]
    exponent: list[float]


class YeoJohnsonPart(_Columns):
    """Yeo-Johnson in a file."""

    kind: Literal["yeojohnson"]
    exponent: list[float]


class LogPart(_Columns):
    """The logarithm in a file; its shift follows from ``low``."""

    kind: Literal["log"]


Link = Annotated[AffinePart | BoxCoxPart | YeoJohnsonPart | LogPart, Field(discriminator="kind")]


class ChainPart(_Part):
    """A chain in a file."""

    kind: Literal["chain"]
    links: list[Link] = Field(min_length=2)

    @model_validator(mode="after")
    def _same_names(self) -> ChainPart:
        if any(link.names != self.links[0].names for link in self.links):
            raise ValueError("the links have different names")
        return self

    def build(self) -> ChainScaling:
        """The operator."""
        return ChainScaling(tuple(link.build() for link in self.links))


ScalingPart = Annotated[
    AffinePart | BoxCoxPart | YeoJohnsonPart | LogPart | ChainPart, Field(discriminator="kind")
]
_PART: TypeAdapter[Any] = TypeAdapter(ScalingPart)


class ScalingFile(_Part):
    """What is in the text; ``named`` says that a transformer took the names from a frame."""

    format: Literal["rekka-scaling"]
    version: Literal[1]
    named: bool = False
    scaling: ScalingPart


def as_part(fitted: FittedScaling) -> ScalingPart:
    """A fitted operator as it stands in a file."""
    part: ScalingPart = _PART.validate_python(fitted.to_dict())
    return part


class Stored(NamedTuple):
    """A text read back."""

    scaling: ColumnScaling | ChainScaling
    named: bool


def scaling_from_dict(data: dict[str, Any]) -> FittedScaling:
    """Make a fitted operator again from ``to_dict``."""
    try:
        built: FittedScaling = _PART.validate_python(data).build()
    except ValidationError as error:
        raise _damaged(error) from None
    return built


def scaling_to_json(fitted: FittedScaling, *, named: bool = False) -> str:
    """Write a fitted operator as JSON."""
    file = ScalingFile(format="rekka-scaling", version=VERSION, named=named, scaling=as_part(fitted))
    return file.model_dump_json(indent=1)


def scaling_from_json(text: str) -> FittedScaling:
    """Read a fitted operator: the same transform, bit for bit."""
    return read_scaling(text).scaling


def read_scaling(text: str) -> Stored:
    """Read a fitted operator and whether its names are those of a frame."""
    try:
        file = ScalingFile.model_validate_json(text)
    except ValidationError as error:
        raise _damaged(error) from None
    return Stored(file.scaling.build(), file.named)


def _damaged(error: ValidationError) -> ModelFileError:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "the text itself"
    return ModelFileError(
        f"This is not a rekka scaling of version {VERSION}: {where}: {first['msg']}. "
        "Write one with CovariateScaler.to_json() or scaling_to_json().",
        where=where,
    )
