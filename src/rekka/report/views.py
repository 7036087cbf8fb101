"""Tables and figures with their words, before they are HTML, text in a terminal, Markdown, LaTeX or a workbook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Scalar = str | int | float | bool | None
Kind = Literal["text", "number", "mark"]


@dataclass(frozen=True)
class Column:
    """A column by its heading; numbers go to the right. ``form`` is a number's format in a workbook.

    Cells with several values that a person reads as one, such as an interval, have ``parts``: columns of a file.
    """

    key: str
    title: str
    kind: Kind = "text"
    unit: str = ""
    form: str = ""
    parts: tuple[Column, ...] = ()

    @property
    def heading(self) -> str:
        """'median time (s)'."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Cell:
    """A cell: ``value`` is for a program, not rounded, ``text`` for a person.

    ``strong`` marks what was selected, ``faint`` what failed; ``english`` a sentence of data or of an earlier
    version, which has no words in other languages. ``parts`` are the values of the parts of the column;
    ``value`` is the first of them.
    """

    value: Scalar
    text: str
    strong: bool = False
    faint: bool = False
    english: bool = False
    parts: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row; the page filters and highlights by ``case``."""

    cells: tuple[Cell, ...]
    case: str | None = None


@dataclass(frozen=True)
class TableView:
    """A table with its caption; ``note`` explains the columns. ``name`` is its file's name, too."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""


@dataclass(frozen=True)
class PanelView:
    """One chart. ``spec`` is Vega-Lite; ``alt`` states the message, for those who do not see it."""

    name: str
    title: str
    alt: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class FigureView:
    """Panels that belong together under one caption. ``name`` is its file's name; ``case`` where it is of one.

    The title states what is found. A ``live`` figure answers the pointer on a page; others are pictures.
    """

    name: str
    title: str
    caption: str
    panels: tuple[PanelView, ...]
    case: str | None = None
    live: bool = False
