"""How a table is made: a field for each column, and what the document's terms are called in the page's language.

A person reads an estimate and its interval as one cell; a file has a column for each number. So some columns have
parts (``Compound``), and ``expand`` lays them out for a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

from rekka.report import text as numbers
from rekka.report.text import MISSING, Real, Show, Words, join_names, join_sentences, name_method, slug
from rekka.report.views import Cell, Column, Kind, Row, Scalar, TableView
from rekka.study.plan import SHRINKING

Get = Callable[[Any], Any]
Holds = Callable[[Any], bool]

BETWEEN = "; "  # between names in a file
FEW = 100  # members, below which tenths of one are told
INTERVAL = 3  # parts of a cell with an estimate: the figure, its low and its high end


@dataclass(frozen=True)
class Compound(Column):
    """A column whose cells hold several values that a person reads as one."""

    parts: tuple[Column, ...] = ()


@dataclass(frozen=True)
class CompoundCell(Cell):
    """The values of the parts; ``value`` is the first of them."""

    parts: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class Form:
    """How a kind of number is shown to a person, and the format it has in a workbook."""

    show: Show
    workbook: str


COUNT = Form(numbers.show_count, "#,##0")
ACCURACY = Form(numbers.show_accuracy, "0.0000")
LOSS = Form(numbers.show_loss, "0.000")
ACCURACY_DIFFERENCE = Form(numbers.show_accuracy_difference, "+0.0000;-0.0000;0.0000")
LOSS_DIFFERENCE = Form(numbers.show_loss_difference, "+0.000;-0.000;0.000")
SECONDS = Form(numbers.show_seconds, "0.0000")
PROBABILITY = Form(numbers.show_p, "0.000")
SHARE = Form(numbers.show_share, "0%")
FINE_SHARE = Form(partial(numbers.show_share, digits=1), "0.0%")
FIGURE = Form(numbers.show_figure, "General")
ONE_DECIMAL = Form(partial(numbers.show_number, digits=1), "#,##0.0")
TINY = Form(numbers.show_figure, "0.00E+00")
LIKELIHOOD = Form(partial(numbers.show_number, digits=2), "#,##0.00")
YEARS = Form(numbers.show_years, "#,##0.0")
YEARS_DIFFERENCE = Form(numbers.show_years_difference, "+#,##0.0;-#,##0.0;0.0")
MEMBERS = Form(lambda value: numbers.show_number(value, 0 if abs(value or 0) >= FEW else 1), "#,##0.0")
YEAR = Form(lambda value: numbers.MISSING if value is None else f"{value:.0f}", "0")  # of a calendar
STATE = Form(partial(numbers.show_number, digits=2), "0.00")
MEDIAN = Form(lambda value: numbers.show_number(value, 0 if value == round(value or 0) else 1), "#,##0.#")


@dataclass(frozen=True)
class Field:
    """A column, and its cell for an item. An ``optional`` one is left out where no item has a value."""

    column: Column
    cell: Callable[[Any], Cell]
    optional: bool = False


class Fields:
    """Makes the fields of a table in one language. A key names the column and, unless told, the attribute."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def text(self, key: str, get: Get | None = None, *, english: bool = False) -> Field:
        """A text as it stands."""
        read = get or attrgetter(key)
        return Field(self._column(key), lambda item: text_cell(read(item), english=english))

    def why(self) -> Field:
        """Why something was chosen, kept or dropped; English where a document has no other."""
        return Field(self._column("why"), self._why_cell)

    def _why_cell(self, item: Any) -> Cell:
        if item.said is None:
            return text_cell(item.why, english=True)
        return Cell(item.why, self.words.format(item.said))

    def case(self) -> Field:
        """Which case."""
        return self.text("case")

    def preset(self) -> Field:
        """Which preset."""
        return self.coded("preset", "preset")

    def method(
        self,
        key: str = "method",
        *,
        strong: Holds = lambda item: False,
        faint: Holds = lambda item: False,
        absent: str = MISSING,
    ) -> Field:
        """A method by its name in this language."""

        def cell(item: Any) -> Cell:
            method = attrgetter(key)(item)
            shown = absent if method is None else name_method(method, self.words)
            return Cell(method, shown, strong=strong(item), faint=faint(item))

        return Field(self._column(key), cell)

    def methods(self, key: str) -> Field:
        """Several methods."""
        read = attrgetter(key)

        def cell(item: Any) -> Cell:
            names = read(item)
            return Cell(BETWEEN.join(names), name_methods(names, self.words) or MISSING)

        return Field(self._column(key), cell)

    def names(self, key: str) -> Field:
        """Several names that the data gave."""
        read = attrgetter(key)

        def cell(item: Any) -> Cell:
            return Cell(BETWEEN.join(read(item)), join_names(read(item), self.words) or MISSING)

        return Field(self._column(key), cell)

    def coded(self, key: str, group: str, get: Get | None = None) -> Field:
        """A term of ours: its English text, and the word for it in this language."""
        read = get or attrgetter(key)
        return Field(self._column(key), lambda item: coded_cell(read(item), group, self.words))

    def mark(self, key: str, get: Get | None = None) -> Field:
        """Yes or no."""
        read = get or attrgetter(key)
        return Field(self._column(key, "mark"), lambda item: mark_cell(read(item), self.words))

    def number(self, key: str, form: Form, get: Get | None = None, *, unit: str = "", **places: Any) -> Field:
        """A number; ``unit`` is a key of the words, ``places`` are filled into the column's title."""
        read = get or attrgetter(key)
        column = self._column(key, "number", unit, form, **places)
        return Field(column, lambda item: number_cell(read(item), form))

    def counted(self, key: str, of: str) -> Field:
        """'9/10': how many of how many; a file has both."""
        first, second = attrgetter(key), attrgetter(of)
        own = self._column(key, "number", "", COUNT)
        column = Compound(key, own.title, "number", parts=(own, self._column(of, "number", "", COUNT)))

        def cell(item: Any) -> Cell:
            some, all_of = first(item), second(item)
            text = MISSING if some is None else f"{numbers.show_count(some)}/{numbers.show_count(all_of)}"
            return CompoundCell(some, text, parts=(some, all_of))

        return Field(column, cell)

    def estimate(
        self, key: str, form: Form, names: Sequence[str], *, unit: str = "", mark: str = "", **places: Any
    ) -> Field:
        """A figure with its interval; ``names`` are the attributes: the figure, its low and its high end.

        ``mark`` names the attribute that says what the interval shows: better, worse or not shown.
        """
        read = attrgetter(*names)
        own = self._column(key, "number", unit, form, **places)
        column = Compound(own.key, own.title, "number", own.unit, own.form, parts=(own, *self._ends(own)))

        def cell(item: Any) -> Cell:
            value, low, high = read(item)
            text = numbers.show_estimate(value, low, high, form.show, self.words)
            shown = getattr(item, mark) if mark else None
            text = self.words(f"beats.{slug(shown)}", figure=text) if shown else text
            return CompoundCell(_finite(value), text, parts=tuple(map(_finite, (value, low, high))))

        return Field(column, cell)

    def span(self, key: str, form: Form, names: Sequence[str], *, unit: str = "") -> Field:
        """'8.1 to 68.0': two ends; a file has a column for each."""
        read = attrgetter(*names)
        own = self._column(key, "number", unit, form)
        column = Compound(own.key, own.title, "number", own.unit, own.form, parts=self._ends(own))

        def cell(item: Any) -> Cell:
            low, high = read(item)
            text = numbers.show_range(low, high, form.show, self.words)
            return CompoundCell(_finite(low), text, parts=(_finite(low), _finite(high)))

        return Field(column, cell)

    def _ends(self, own: Column) -> tuple[Column, ...]:
        return tuple(
            replace(own, key=f"{own.key}_{end}", title=self.words(f"column.{end}_end", what=own.title))
            for end in ("low", "high")
        )

    def _column(
        self, key: str, kind: Kind = "text", unit: str = "", form: Form | None = None, **places: Any
    ) -> Column:
        named = self.words(f"unit.{unit}") if unit else ""
        own = "_".join((key, *map(str, places.values())))
        return Column(own, self.words(f"column.{key}", **places), kind, named, form.workbook if form else "")


@dataclass(frozen=True)
class EstimateTable(TableView):
    """A table whose note speaks of intervals; ``plain_note`` is for rows that have none."""

    plain_note: str = ""


def build_table(
    name: str,
    fields: Sequence[Field],
    items: Iterable[Any],
    words: Words,
    *,
    key: str = "",
    note: str | None = None,
) -> TableView:
    """A row for each item. Title and note are the words of ``key``, the table's name unless told, or as given."""
    listed = list(items)
    columns = [(one.column, [one.cell(item) for item in listed], one.optional) for one in fields]
    shown = [(column, cells) for column, cells, optional in columns if not optional or _has_value(cells)]
    rows = tuple(
        Row(tuple(cells[place] for _, cells in shown), getattr(item, "case", None))
        for place, item in enumerate(listed)
    )
    told = words(f"table.{key or name}.note") if note is None else note
    return TableView(name, words(f"table.{key or name}.title"), tuple(column for column, _ in shown), rows, told)


def build_estimates(
    name: str, fields: Sequence[Field], items: Iterable[Any], words: Words, level: float
) -> EstimateTable:
    """A table of estimates: its note says what stands in brackets, where there are any."""
    table = build_table(name, fields, items, words)
    brackets = words("table.estimates.brackets", level=numbers.show_level(level))
    note = join_sentences((table.note, brackets if has_intervals(table) else ""), words)
    return EstimateTable(name, table.title, table.columns, table.rows, note, table.note)


def has_intervals(table: TableView) -> bool:
    """Whether any estimate has an end of an interval."""
    cells = (cell for row in table.rows for cell in row.cells if isinstance(cell, CompoundCell))
    return any(end is not None for cell in cells if len(cell.parts) == INTERVAL for end in cell.parts[1:])


def tell_penalised(methods: Iterable[str], words: Words) -> str:
    """What likelihood means where a penalty or a prior goes with it; nothing where none does."""
    return words("table.penalised.note") if any(one in SHRINKING for one in methods) else ""


def optional(field: Field) -> Field:
    """The same, left out where no item has a value."""
    return replace(field, optional=True)


def _has_value(cells: Iterable[Cell]) -> bool:
    return any(cell.value not in (None, "") for cell in cells)


def expand(table: TableView) -> TableView:
    """The table for a file: a column for each part of what a person reads as one."""
    columns = tuple(chain.from_iterable(_split_column(column) for column in table.columns))
    rows = tuple(replace(row, cells=_split_row(table.columns, row)) for row in table.rows)
    return replace(table, columns=columns, rows=rows)


def _split_column(column: Column) -> tuple[Column, ...]:
    return column.parts if isinstance(column, Compound) else (column,)


def _split_row(columns: Sequence[Column], row: Row) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for column, cell in zip(columns, row.cells, strict=True):
        if not isinstance(column, Compound):
            cells.append(cell)
            continue
        parts = cell.parts if isinstance(cell, CompoundCell) else (None,) * len(column.parts)
        cells += [Cell(part, _show_part(part), strong=cell.strong, faint=cell.faint) for part in parts]
    return tuple(cells)


def _show_part(value: Scalar) -> str:
    return value if isinstance(value, str) else numbers.show_figure(value)


def text_cell(value: Any, *, english: bool = False) -> Cell:
    """A text, or a dash where there is none."""
    shown = None if value is None or value == "" else str(value)
    return Cell(shown, shown or MISSING, english=english and shown is not None)


def number_cell(value: Real, form: Form) -> Cell:
    """A number."""
    return Cell(_finite(value), form.show(value))


def _finite(value: Real) -> Real:
    """The same, or nothing where it is infinite: a file has no word for that."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def mark_cell(value: bool | None, words: Words) -> Cell:
    """Yes, no, or a dash where it is not known."""
    return Cell(value, MISSING if value is None else words("mark.yes" if value else "mark.no"))


def coded_cell(value: str | None, group: str, words: Words) -> Cell:
    """A term of ours; one that the catalog does not have stays English."""
    if value is None:
        return Cell(None, MISSING)
    key = f"{group}.{slug(value)}"
    return Cell(value, words.get(key, value), english=key not in words.texts)


def name_methods(methods: Iterable[str], words: Words) -> str:
    """Methods one after the other."""
    return join_names((name_method(method, words) for method in methods), words)
