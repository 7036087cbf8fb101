"""JSON text of a fitted scaling operator: complete, versioned, exact to the last bit, no pickle.

A file's fields are those of the operator's class: whatever ``registry`` knows can be written and read.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from rekka.core.errors import ModelFileError
from rekka.core.validation import choose_remedy, find_invalid
from rekka.scaling.operators import ChainScaling, ColumnScaling, FittedScaling, PartialScaling
from rekka.scaling.registry import NONE, REGISTRY

VERSION: Literal[1] = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Columns(_Part):
    """An operator of ``ColumnScaling`` in a file."""

    kind: str
    method: str
    names: list[str]
    low: list[float]
    high: list[float]

    @model_validator(mode="after")
    def _columns_fit(self) -> _Columns:
        if self.method not in (*REGISTRY, NONE):
            raise ValueError(f"there is no operator {self.method!r}")
        for field, value in self:
            if isinstance(value, list) and len(value) != len(self.names):
                raise ValueError(f"{field} has {len(value)} entries for {len(self.names)} names")
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise ValueError("low is above high")
        return self

    def build(self) -> ColumnScaling:
        """Build the operator."""
        values = self.model_dump(exclude={"kind", "method", "names"})
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        fitted = next(one.fitted for one in REGISTRY.values() if one.fitted.kind == self.kind)
        return fitted(method=self.method, names=tuple(self.names), **arrays)


class _Chain(_Part):
    """A chain in a file."""

    links: list[_Columns] = Field(min_length=2)

    @model_validator(mode="after")
    def _same_names(self) -> _Chain:
        if any(link.names != self.links[0].names for link in self.links):
            raise ValueError("the links have different names")
        return self

    def build(self) -> ChainScaling:
        """Build the operator."""
        return ChainScaling(tuple(link.build() for link in self.links))


class _Partial(_Part):
    """An operator on some of the covariates in a file."""

    names: list[str]
    plain: list[str]
    inner: Any

    @model_validator(mode="after")
    def _names_fit(self) -> _Partial:
        others = [name for name in self.names if name not in self.plain]
        if not set(self.plain) <= set(self.names) or list(self.inner.build().names) != others:
            raise ValueError("names are not those of the operator and the plain covariates")
        return self

    def build(self) -> PartialScaling:
        """Build the operator."""
        return PartialScaling(tuple(self.names), tuple(self.plain), self.inner.build())


def _describe_class(fitted: type[ColumnScaling]) -> type[_Columns]:
    """Fields of a class of operators in a file: its arrays, within the limits of their metadata."""
    entries: dict[str, Any] = {
        one.name: (list[Annotated[float, Field(**one.metadata)]], ...)
        for one in fields(fitted)
        if one.name not in _Columns.model_fields
    }
    entries["kind"] = (Literal[fitted.kind], ...)
    return create_model(fitted.__name__, __base__=_Columns, **entries)


@cache
def _build_adapter(classes: tuple[type[ColumnScaling], ...]) -> TypeAdapter[Any]:
    link: Any = Annotated[reduce(or_, map(_describe_class, classes)), Field(discriminator="kind")]
    entries: dict[str, Any] = {"kind": (Literal["chain"], ...), "links": (list[link], Field(min_length=2))}
    chain: Any = create_model("Chain", __base__=_Chain, **entries)
    inner: Any = Annotated[link | chain, Field(discriminator="kind")]
    entries = {"kind": (Literal["partial"], ...), "inner": (inner, ...)}
    partial: Any = create_model("Partial", __base__=_Partial, **entries)
    whole: Any = Annotated[link | chain | partial, Field(discriminator="kind")]
    return TypeAdapter(whole)


def _build(data: Any) -> ColumnScaling | ChainScaling | PartialScaling:
    """Build an operator of any registered class from plain data."""
    classes = tuple(dict.fromkeys(one.fitted for one in REGISTRY.values()))
    built: ColumnScaling | ChainScaling | PartialScaling = _build_adapter(classes).validate_python(data).build()
    return built


# A field of a pydantic model that holds a fitted operator, and its plain data in the file.
ScalingPart = Annotated[
    Any,
    PlainValidator(_build),
    PlainSerializer(lambda fitted: fitted.to_dict()),
]


class ScalingFile(_Part):
    """Contents of the text; ``named`` says that a transformer took the names from a frame."""

    format: Literal["rekka-scaling"]
    version: Literal[1]
    named: bool = False
    scaling: ScalingPart


class StoredScaling(NamedTuple):
    """A fitted operator read from text, and whether its names are those of a frame."""

    scaling: ColumnScaling | ChainScaling | PartialScaling
    named: bool


def scaling_to_json(fitted: FittedScaling, *, named: bool = False) -> str:
    """Write a fitted operator as JSON."""
    file = ScalingFile(format="rekka-scaling", version=VERSION, named=named, scaling=fitted.to_dict())
    return file.model_dump_json(indent=1)


def read_scaling(text: str) -> StoredScaling:
    """Read a fitted operator: the same transform, bit for bit."""
    try:
        file = ScalingFile.model_validate_json(text)
    except ValidationError as error:
        where, message = find_invalid(error)
        remedy = "Write one with CovariateScaler.to_json() or scaling_to_json()."
        raise ModelFileError(
            f"This is not a rekka scaling of version {VERSION}: {where}: {message}. "
            f"{choose_remedy(error, VERSION, remedy)}",
            where=where,
        ) from None
    return StoredScaling(file.scaling, file.named)
