"""The report's tables in a terminal: any ``TableView``, drawn for a console of any width."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rekka.report.tables.cells import FORMS, Field, Fields, Spec, build_table
from rekka.report.terminal.parts import explain
from rekka.report.text import INFINITE, MINUS, MISSING, load_words
from rekka.report.views import Cell, Column, Kind, Row, TableView

NOTHING = "-"
SELECTED = "*"
LONGEST_NAME = 24  # of a case, in one line
WORDS = load_words("en")
PLAIN = str.maketrans({MISSING: NOTHING, MINUS: "-", INFINITE: "infinite"})  # what any terminal can show


def print_rows(
    console: Console,
    title: str,
    kinds: type | tuple[type, ...],
    *columns: Spec,
    rows: Iterable[Any],
    note: str = "",
    strong: Callable[[Any], bool] | None = None,
    split: bool = False,
) -> None:
    """A table of rows of some classes, by a declaration of its columns; ``split`` as in ``print_texts``."""
    make = Fields(WORDS, *(kinds if isinstance(kinds, tuple) else (kinds,)), short=True, strong=strong)
    print_view(console, build_table("", make.make(columns), rows, WORDS, title=title, note=note), split=split)


def texts(key: str, read: Callable[[Any], str], *, right: bool = True) -> Spec:
    """A column of texts under a heading of the language files."""
    return lambda make: Field(make.column(key, "number" if right else "text"), lambda one: Cell(None, read(one)))


def print_texts(
    console: Console,
    title: str,
    heads: Sequence[object],
    lines: Iterable[Sequence[str]],
    note: str = "",
    left: int | Collection[int] = 1,
    split: bool = False,
    close: bool = False,
) -> None:
    """A table of texts, whose headings come from the data; ``left`` columns go to the left, or those at ``left``.

    One that is to be ``split`` is shown in parts that fit the terminal; no blank line follows a ``close`` one.
    """
    on_left = range(left) if isinstance(left, int) else left
    kinds: list[Kind] = ["text" if place in on_left else "number" for place in range(len(heads))]
    columns = (Column(str(head), str(head), kind) for head, kind in zip(heads, kinds, strict=True))
    rows = (Row(tuple(Cell(None, text) for text in line)) for line in lines)
    print_view(console, TableView("", title, tuple(columns), tuple(rows), note), split=split, close=close)


def show(value: float | None, form: str) -> str:
    """A number in one of the formats of tables."""
    return FORMS[form].show(value)


def show_range(low: float | None, high: float | None, form: str) -> str:
    """'1.2 to 3.4', a dash where an end is missing."""
    return NOTHING if low is None or high is None or low != low else f"{show(low, form)} to {show(high, form)}"


def print_view(console: Console, view: TableView, *, split: bool = False, close: bool = False) -> None:
    """A table under its title, and its note or a blank line; one that is to be ``split`` in parts that fit."""
    for part in _split_columns(console, view) if split else (view,):
        if view.title:
            console.print(f"[bold]{escape(view.title)}[/]", highlight=False)
        console.print(_draw(part))
    if view.note:
        explain(console, view.note)
    elif not close:
        console.print()


def _draw(view: TableView) -> Table:
    """A long name is folded, a number never cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for column in view.columns:
        if column.kind == "number":
            table.add_column(escape(column.title), justify="right", no_wrap=True)
        else:
            table.add_column(
                escape(column.title), overflow="fold", max_width=LONGEST_NAME if column.key == "case" else None
            )
    for row in view.rows:
        table.add_row(*map(_style, row.cells))
    return table


def _style(cell: Cell) -> str:
    text = escape(cell.text.translate(PLAIN))
    return f"[bold]{text}[/]" if cell.strong else f"[dim]{text}[/]" if cell.faint else text


def _split_columns(console: Console, view: TableView) -> Iterator[TableView]:
    """The columns after the first in groups that fit the terminal, each beside the first."""
    cells = zip(*(row.cells for row in view.rows), strict=True)
    wide = [
        2 + max(cell_len(text) for text in (column.title, *(cell.text for cell in some)))
        for column, some in zip(view.columns, cells, strict=True)
    ]
    room = console.width - min(wide[0], LONGEST_NAME + 1)
    groups: list[list[int]] = [[0]]
    for place in range(1, len(wide)):
        if len(groups[-1]) > 1 and sum(wide[one] for one in groups[-1][1:]) + wide[place] > room:
            groups.append([0])
        groups[-1].append(place)
    for group in groups:
        rows = (Row(tuple(row.cells[place] for place in group), row.case) for row in view.rows)
        yield replace(view, columns=tuple(view.columns[place] for place in group), rows=tuple(rows))
