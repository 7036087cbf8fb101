"""Tables and figures with their words, before they are HTML, Markdown, LaTeX or a workbook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Scalar = str | int | float | bool | None
Kind = Literal["text", "number", "mark"]


@dataclass(frozen=True)
class Column:
    """``unit`` stands under the title; numbers go to the right. ``form`` is a number's format in a workbook."""

    key: str
    title: str
    kind: Kind = "text"
    unit: str = ""
    form: str = ""


@dataclass(frozen=True)
class Cell:
    """``value`` is what a program reads, not rounded; ``text`` what a person reads.

    ``strong`` marks what was selected, ``faint`` what failed; ``english`` a sentence that stays English on a page
    of another language.
    """

    value: Scalar
    text: str
    strong: bool = False
    faint: bool = False
    english: bool = False


@dataclass(frozen=True)
class Row:
    """``case`` is what the page filters and highlights by."""

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
    """Panels that belong together under one caption. ``name`` is its file's name; ``case`` where it is of one."""

    name: str
    title: str
    caption: str
    panels: tuple[PanelView, ...]
    case: str | None = None
