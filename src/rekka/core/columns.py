"""Columns of tables, each described once: in the annotation of a field of a row class.

A row class is a pydantic model. Its fields give names and types; ``Shown`` gives what a type does not say. A text
is shown as it stands, a truth value as yes or no, a whole number with commas, a float by three digits:

    class Row(BaseModel):
        case: str
        rows: int
        accuracy: Accuracy              # four decimals
        log_loss: LogLoss               # three decimals
        status: Annotated[str, Shown(terms="status")]

Polars schemas (``schema_of``), JSON (the model itself), report, terminal, CSV, Excel, LaTeX and Markdown
(``rekka.report.tables``) come from this. Headings are in the language files: ``column.NAME``, and ``short.NAME``
where the terminal needs a shorter one.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import polars as pl
from pydantic import BaseModel

Row = TypeVar("Row", bound=BaseModel)
Kind = Literal["text", "sentence", "terms", "mark", "number", "method", "methods", "names"]

_TYPES: Mapping[type, tuple[type[pl.DataType], Kind, str]] = {  # polars type, kind of cell, form of a number
    str: (pl.String, "text", ""),
    bool: (pl.Boolean, "mark", ""),
    int: (pl.Int64, "number", "count"),
    float: (pl.Float64, "number", "figure"),
    tuple: (pl.List(pl.String), "names", ""),  # type: ignore[dict-item]
}


@dataclass(frozen=True)
class Shown:
    """Description of the cells of a column.

    ``form`` names the format of a number, for people and for workbooks (``rekka.report.tables.cells.FORMS``).
    ``unit`` is a key of the language files, as is ``terms``, the group of terms that a text is one of.
    """

    form: str = ""
    unit: str = ""
    terms: str = ""
    kind: Kind | None = None  # None: by the type

    def of(self, annotation: Any) -> Shown:
        """Add the kind and the form that the type of the field has."""
        _, kind, form = _TYPES[_plain_type(annotation)]
        own = self.kind or ("terms" if self.terms else kind)
        return replace(self, kind=own, form=self.form or (form if own == "number" else ""))


Accuracy = Annotated[float | None, Shown("accuracy")]
LogLoss = Annotated[float | None, Shown("loss")]
LogLikelihood = Annotated[float | None, Shown("likelihood")]
Tiny = Annotated[float | None, Shown("tiny")]
Seconds = Annotated[float | None, Shown("seconds", "seconds")]
Years = Annotated[float | None, Shown("years", "years")]
Share = Annotated[float | None, Shown("share")]
FineShare = Annotated[float | None, Shown("fine_share")]
Decimal = Annotated[float | None, Shown("one_decimal")]
Probability = Annotated[float | None, Shown("probability")]
Rows = Annotated[int, Shown(unit="rows")]
Sentence = Annotated[str | None, Shown(kind="sentence")]
Preset = Annotated[str, Shown(terms="preset")]
Method = Annotated[str, Shown(kind="method")]
Methods = Annotated[tuple[str, ...], Shown(kind="methods")]
Part = Annotated[str, Shown(terms="rows")]  # of the rows: train, validation, folds or golden
State = Annotated[str, Shown(terms="status")]


def _plain_type(annotation: Any) -> Any:
    """The type within ``Annotated`` and beside None; text for literals and enumerations of texts."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _plain_type(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return _plain_type(next(one for one in get_args(annotation) if one is not type(None)))
    if origin is Literal or (isinstance(annotation, type) and issubclass(annotation, str)):
        return str
    return origin or annotation


@cache
def schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    """The polars schema of the rows of a class."""
    return {name: _TYPES[_plain_type(hint)][0] for name, hint in _list_hints(kind)}


@cache
def shown_of(kind: type[BaseModel]) -> dict[str, Shown]:
    """Description of each field and property of a row class; fields that are no cells are left out."""
    found = {}
    for name, hint in (*_list_hints(kind), *_list_properties(kind)):
        given = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Shown)]
        if _plain_type(hint) in _TYPES:
            found[name] = (given[-1] if given else Shown()).of(hint)
    return found


def _list_hints(kind: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return ((name, hints[name]) for name in kind.model_fields)


def _list_properties(kind: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    for name in dir(kind):
        one = getattr(kind, name, None) if not name.startswith("_") else None
        if isinstance(one, property) and one.fget is not None:
            yield name, get_type_hints(one.fget, include_extras=True).get("return", Any)


def read_row(kind: type[BaseModel], *sources: Any) -> dict[str, Any]:
    """The fields of a row class, each from the first of the mappings or objects that has it; NaN is missing."""
    return {name: missing(_read(name, sources)) for name in kind.model_fields}


def _read(name: str, sources: Iterable[Any]) -> Any:
    for one in sources:
        if isinstance(one, Mapping) and name in one:
            return one[name]
        if not isinstance(one, Mapping) and hasattr(one, name):
            return getattr(one, name)
    return None


def make_row(kind: type[Row], *sources: Any) -> Row:
    """A row of a class, each field from the first source that has it; what is not finite is missing."""
    found = finite(read_row(kind, *sources)).items()
    return kind(
        **{name: value for name, value in found if value is not None or kind.model_fields[name].is_required()}
    )


def missing(value: Any) -> Any:
    """The value, or None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def rows_of(kind: type[Row], frame: pl.DataFrame) -> tuple[Row, ...]:
    """The rows of a frame as values, of the columns that the class has; what is not finite is missing."""
    names = [name for name in kind.model_fields if name in frame.columns]
    return tuple(kind(**finite(row)) for row in frame.select(names).iter_rows(named=True))


def finite(value: Any) -> Any:
    """The value without numbers that are not finite, at any depth: JSON has no word for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return str(value) if isinstance(value, str) else value
