"""Tables from declarations: which columns of which rows, in which order.

    Table("floor", FloorPart, "preset case method accuracy log_loss", span("alternatives"), rows=list_floor)

A name in a text is a column of the row class, shown as its annotation says (``rekka.core.columns``). ``rows?`` is
left out where no row has a value; ``leaving=state`` has the heading ``column.leaving``, and values of ``state``.
What a person reads as one cell, such as an estimate with its interval, has parts; ``expand`` gives a file a
column for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from rekka.core.columns import Shown, shown_of
from rekka.report import text as numbers
from rekka.report.document import Document
from rekka.report.text import MISSING, Real, Show, Words, join_names, join_sentences, name_method, slug
from rekka.report.views import Cell, Column, Kind, Row, TableView
from rekka.study.plan import SHRINKING

Get = Callable[[Any], Any]

BETWEEN = "; "  # between names in a file
FEW = 100  # members, below which tenths of one are shown
INTERVAL = 3  # parts of a cell with an estimate: the figure, its low and its high end
ENDS = ("low", "high")


@dataclass(frozen=True)
class EstimateTable(TableView):
    """A table whose note speaks of intervals; ``plain_note`` is for rows that have none."""

    plain_note: str = ""


@dataclass(frozen=True)
class Form:
    """Format of a kind of number: for a person, and for a workbook."""

    show: Show
    workbook: str


FORMS = {
    "count": Form(numbers.show_count, "#,##0"),
    "accuracy": Form(numbers.show_accuracy, "0.0000"),
    "accuracy_difference": Form(numbers.show_accuracy_difference, "+0.0000;-0.0000;0.0000"),
    "loss": Form(numbers.show_loss, "0.000"),
    "loss_difference": Form(numbers.show_loss_difference, "+0.000;-0.000;0.000"),
    "seconds": Form(numbers.show_seconds, "0.0000"),
    "probability": Form(numbers.show_p, "0.000"),
    "share": Form(numbers.show_share, "0%"),
    "fine_share": Form(partial(numbers.show_share, digits=1), "0.0%"),
    "figure": Form(numbers.show_figure, "General"),
    "four_digits": Form(partial(numbers.show_figure, digits=4), "General"),
    "two_digits": Form(partial(numbers.show_figure, digits=2), "General"),
    "tiny": Form(numbers.show_figure, "0.00E+00"),
    "one_decimal": Form(partial(numbers.show_number, digits=1), "#,##0.0"),
    "two_decimals": Form(partial(numbers.show_number, digits=2), "0.00"),
    "likelihood": Form(partial(numbers.show_number, digits=2), "#,##0.00"),
    "years": Form(numbers.show_years, "#,##0.0"),
    "years_difference": Form(numbers.show_years_difference, "+#,##0.0;-#,##0.0;0.0"),
    "members": Form(lambda value: numbers.show_number(value, 0 if abs(value or 0) >= FEW else 1), "#,##0.0"),
    "year": Form(lambda value: MISSING if value is None else f"{value:.0f}", "0"),  # of a calendar
    "median": Form(lambda value: numbers.show_number(value, 0 if value == round(value or 0) else 1), "#,##0.#"),
}


@dataclass(frozen=True)
class Field:
    """A column, and its cell for an item. An ``optional`` one is left out where no item has a value."""

    column: Column
    cell: Callable[[Any], Cell]
    optional: bool = False


class Fields:
    """Fields of a table in one language, for rows of some classes.

    ``short`` is for a terminal: short headings, and methods by the names that options have.
    """

    def __init__(
        self, words: Words, *kinds: type, document: Document | None = None, short: bool = False,
        strong: Get | None = None, faint: Get | None = None,
    ) -> None:  # fmt: skip
        self.words, self.short, self.strong, self.faint = words, short, strong, faint
        self.shown: dict[str, Shown] = {}
        for kind in reversed(kinds):
            self.shown |= shown_of(kind)
        self.named: set[str] = set()  # in the declaration
        self._document = document

    @property
    def document(self) -> Document:
        """The document whose rows the table has."""
        assert self._document is not None
        return self._document

    def make(self, columns: Iterable[Spec]) -> Iterator[Field]:
        """The fields that the columns of a declaration stand for."""
        listed = tuple(columns)
        self.named = {name.partition("=")[0] for one in listed if isinstance(one, str) for name in one.split()}
        for one in listed:
            if isinstance(one, str):
                yield from map(self.read, one.split())
            else:
                found = one(self)
                yield from (found,) if isinstance(found, Field) else found

    def read(self, name: str) -> Field:
        """The field of 'key', 'key=attribute' or either with '?' where it is optional."""
        key, _, attribute = name.rstrip("?").partition("=")
        made = self.field(key, self.shown[attribute or key], attrgetter(attribute or key))
        return replace(made, optional=name.endswith("?"))

    def field(self, key: str, shown: Shown, read: Get) -> Field:
        """A column by its description."""
        words = self.words
        if shown.kind == "number":
            return self.number(key, shown.form, read, unit=shown.unit)
        if shown.kind == "method" or key == "why":
            marked = partial(self._method_cell, read=read, marked=key == "method")
            return Field(self.column(key), partial(_why_cell, words=words) if key == "why" else marked)
        named = words.covariate if key == "constant" else str
        cells: dict[str | None, Callable[[Any], Cell]] = {
            "text": partial(name_cell, words=words) if key in ("covariate", "term") else text_cell,
            "sentence": partial(sentence_cell, words=words),
            "mark": partial(mark_cell, words=words),
            "terms": partial(coded_cell, group=shown.terms, words=words),
            "names": lambda names: _list_cell(names, join_names(map(named, names), words)),
            "methods": lambda names: _list_cell(names, name_methods(names, words)),
        }
        cell = cells[shown.kind]
        return Field(self.column(key, "mark" if shown.kind == "mark" else "text"), lambda item: cell(read(item)))

    def _method_cell(self, item: Any, read: Get, marked: bool) -> Cell:
        method = read(item)
        shown = MISSING if method is None else method if self.short else name_method(method, self.words)
        strong, faint = (bool(marked and mark and mark(item)) for mark in (self.strong, self.faint))
        return Cell(method, shown, strong=strong, faint=faint)

    def number(self, key: str, form: str, read: Get, *, unit: str = "", **places: Any) -> Field:
        """A number; ``unit`` is a key of the words, ``places`` are filled into the heading."""
        column = self.column(key, "number", unit, form, **places)
        return Field(column, lambda item: Cell(_finite(value := read(item)), FORMS[form].show(value)))

    def column(self, key: str, kind: Kind = "text", unit: str = "", form: str = "", **places: Any) -> Column:
        """A column with its heading."""
        short = f"short.{key}"
        title = self.words(short if self.short and short in self.words.texts else f"column.{key}", **places)
        own = "_".join((key, *map(str, places.values())))
        return Column(
            own, title, kind, self.words(f"unit.{unit}") if unit else "", FORMS[form].workbook if form else ""
        )


Spec = str | Callable[[Fields], Field | Iterable[Field]]


def optional(spec: Callable[[Fields], Field]) -> Callable[[Fields], Field]:
    """The column, left out where no item has a value."""
    return lambda make: replace(spec(make), optional=True)


def estimate(
    key: str, figure: str = "", ends: str | None = None, *, mark: str = "", by: Shown | None = None, **places: Any
) -> Callable[[Fields], Field]:
    """A figure with its interval: the attributes ``figure``, ``ends``_low and ``ends``_high, or those of ``key``.

    ``mark`` names the attribute that says what the interval shows: better, worse or not shown; ``by`` describes
    the figure where the row class does not.
    """
    name = figure or key
    prefix = f"{name}_" if ends is None else f"{ends}_" if ends else ""
    read = attrgetter(name, *(f"{prefix}{end}" for end in ENDS))

    def make(fields: Fields) -> Field:
        shown = by or fields.shown[name]
        show = FORMS[shown.form].show

        def cell(item: Any) -> Cell:
            value, low, high = values = read(item)
            text = numbers.show_estimate(value, low, high, show, fields.words)
            judged = getattr(item, mark) if mark else None
            text = fields.words(f"beats.{slug(judged)}", figure=text) if judged else text
            return _compound_cell(values, text)

        own = fields.column(key, "number", shown.unit, shown.form, **places)
        return Field(replace(own, parts=(own, *_name_ends(own, fields.words))), cell)

    return make


def span(key: str, ends: str = "", *, named: bool = False) -> Callable[[Fields], Field]:
    """'8.1 to 68.0': the attributes ``ends``_low and ``ends``_high, or those of ``key``; in files two columns.

    Where ``named`` these have headings of their own.
    """
    names = tuple(f"{ends or key}_{end}" for end in ENDS)

    def make(fields: Fields) -> Field:
        shown, words = fields.shown[names[0]], fields.words

        def cell(item: Any) -> Cell:
            low, high = values = attrgetter(*names)(item)
            return _compound_cell(values, numbers.show_range(low, high, FORMS[shown.form].show, words))

        own = fields.column(key, "number", shown.unit, shown.form)
        if named:
            return Field(replace(own, form="", parts=tuple(fields.read(name).column for name in names)), cell)
        return Field(replace(own, parts=_name_ends(own, words)), cell)

    return make


def counted(key: str, of: str, count: str = "", *, alone: bool = False) -> Callable[[Fields], Field]:
    """'9/10': how many of how many; a file has both, or the first ``alone``."""
    read = attrgetter(count or key, of)

    def make(fields: Fields) -> Field:
        own = fields.column(key, "number", "", "count")

        def cell(item: Any) -> Cell:
            some, total = read(item)
            text = MISSING if some is None else f"{numbers.show_count(some)}/{numbers.show_count(total)}"
            return Cell(some, text) if alone else Cell(some, text, parts=(some, total))

        if alone:
            return Field(own, cell)
        return Field(replace(own, form="", parts=(own, fields.column(of, "number", "", "count"))), cell)

    return make


def special(
    key: str, cell: Callable[[Any, Words], Cell], heading: str = "", kind: Kind = "text"
) -> Callable[[Fields], Field]:
    """A column with cells of its own kind."""

    def make(fields: Fields) -> Field:
        return Field(replace(fields.column(heading or key, kind), key=key), lambda item: cell(item, fields.words))

    return make


def others(hidden: str) -> Callable[[Fields], Iterator[Field]]:
    """All columns of the row class not named in the declaration and not hidden, so that a new one is shown."""
    return lambda make: map(make.read, [name for name in make.shown if name not in {*make.named, *hidden.split()}])


def _name_ends(own: Column, words: Words) -> tuple[Column, ...]:
    return tuple(
        replace(own, key=f"{own.key}_{end}", title=words(f"column.{end}_end", what=own.title)) for end in ENDS
    )


def _compound_cell(values: Sequence[Real], text: str) -> Cell:
    parts = tuple(map(_finite, values))
    return Cell(parts[0], text, parts=parts)


@dataclass(frozen=True, init=False)
class Table:
    """A declaration: name, row classes, columns, and where in a document the rows are.

    Options are functions of a document: ``note`` gives the sentences under the table, else those of the language
    files; ``key`` its place there, else its name; ``level`` is that of the intervals in it. Where ``certified`` is
    false the note says so first. ``strong`` and ``faint`` mark methods; ``finish`` changes the table in the end.
    """

    name: str
    kinds: tuple[type, ...]
    columns: tuple[Spec, ...]
    rows: Callable[[Document], Iterable[Any]]
    options: dict[str, Callable[..., Any]]

    def __init__(
        self, name: str, kinds: type | tuple[type, ...], *columns: Spec, rows: Callable[[Document], Iterable[Any]],
        **options: Callable[..., Any],
    ) -> None:  # fmt: skip
        own = {"name": name, "kinds": kinds if isinstance(kinds, tuple) else (kinds,), "columns": columns}
        for field, value in (own | {"rows": rows, "options": options}).items():
            object.__setattr__(self, field, value)

    def view(self, document: Document, words: Words) -> TableView:
        """The table of a document in one language."""
        asked = self.options
        make = Fields(words, *self.kinds, document=document, strong=asked.get("strong"), faint=asked.get("faint"))
        key = asked["key"](document) if "key" in asked else self.name
        note = join_sentences(asked["note"](document, words), words) if "note" in asked else None
        table = build_table(self.name, make.make(self.columns), self.rows(document), words, key=key, note=note)
        if "level" in asked:
            noted = _note_intervals(table, words, asked["level"](document))
            certified = "certified" not in asked or asked["certified"](document)
            table = noted if certified else _note_uncertified(noted, words)
        return asked["finish"](table, document, words) if "finish" in asked else table


def build_table(
    name: str, fields: Iterable[Field], items: Iterable[Any], words: Words, *, key: str = "",
    title: str | None = None, note: str | None = None,
) -> TableView:  # fmt: skip
    """A row for each item. Title and note are the words of ``key``, the table's name unless told, or as given."""
    listed = list(items)
    columns = [(one.column, [one.cell(item) for item in listed], one.optional) for one in fields]
    shown = [(column, cells) for column, cells, optional in columns if not optional or _has_value(cells)]
    rows = tuple(
        Row(tuple(cells[place] for _, cells in shown), getattr(item, "case", None))
        for place, item in enumerate(listed)
    )
    told = words(f"table.{key or name}.note") if note is None else note
    head = words(f"table.{key or name}.title") if title is None else title
    return TableView(name, head, tuple(column for column, _ in shown), rows, told)


def _note_intervals(table: TableView, words: Words, level: float) -> EstimateTable:
    """The table with a note that says what stands in brackets, where something does."""
    brackets = words("table.estimates.brackets", level=numbers.show_level(level)) if has_intervals(table) else ""
    note = join_sentences((table.note, brackets), words)
    return EstimateTable(table.name, table.title, table.columns, table.rows, note, table.note)


def _note_uncertified(table: EstimateTable, words: Words) -> EstimateTable:
    """The table with a note that says first that a model is not certified."""
    first = words("table.uncertified.note")
    note, plain = (join_sentences((first, told), words) for told in (table.note, table.plain_note))
    return replace(table, note=note, plain_note=plain)


def has_intervals(table: TableView) -> bool:
    """Whether any estimate has an end of an interval."""
    cells = (cell for row in table.rows for cell in row.cells if len(cell.parts) == INTERVAL)
    return any(end is not None for cell in cells for end in cell.parts[1:])


def explain_penalised(methods: Iterable[str], words: Words) -> str:
    """The meaning of likelihood where a penalty or a prior goes with it; nothing where none does."""
    return words("table.penalised.note") if any(one in SHRINKING for one in methods) else ""


def join_row(part: Iterable[tuple[str, Any]], **more: Any) -> SimpleNamespace:
    """A row of the fields of a part and some more."""
    return SimpleNamespace(**dict(part), **more)


def leave_columns(table: TableView, keys: Collection[str]) -> TableView:
    """The table without some of its columns."""
    keep = [place for place, column in enumerate(table.columns) if column.key not in keys]
    rows = tuple(replace(row, cells=tuple(row.cells[place] for place in keep)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[place] for place in keep), rows=rows)


def _has_value(cells: Iterable[Cell]) -> bool:
    return any(cell.value not in (None, "") for cell in cells)


def expand(table: TableView) -> TableView:
    """The table for a file: a column for each part of what a person reads as one."""
    columns = tuple(part for column in table.columns for part in column.parts or (column,))
    rows = tuple(replace(row, cells=tuple(_split_row(table.columns, row))) for row in table.rows)
    return replace(table, columns=columns, rows=rows)


def _split_row(columns: Sequence[Column], row: Row) -> Iterator[Cell]:
    for column, cell in zip(columns, row.cells, strict=True):
        if not column.parts:
            yield cell
        for part in (cell.parts or (None,) * len(column.parts)) if column.parts else ():
            text = part if isinstance(part, str) else numbers.show_figure(part)
            yield Cell(part, text, strong=cell.strong, faint=cell.faint)


def text_cell(value: Any) -> Cell:
    """A text, or a dash where there is none."""
    shown = None if value is None or value == "" else str(value)
    return Cell(shown, shown or MISSING)


def name_cell(name: str, words: Words) -> Cell:
    """A covariate, or a term of a model, as people call it."""
    return Cell(name, words.covariate(name))


def sentence_cell(value: str | None, words: Words) -> Cell:
    """A sentence of a file in this language; one that nobody knows is English."""
    if not value:
        return Cell(None, MISSING)
    found = words.reword(value)
    return Cell(value, found or value, english=found is None)


def _why_cell(item: Any, words: Words) -> Cell:
    """A reason in this language; English where a document has no other."""
    return sentence_cell(item.why, words) if item.said is None else Cell(item.why, words.format(item.said))


def _list_cell(names: Iterable[str], shown: str) -> Cell:
    return Cell(BETWEEN.join(names), shown or MISSING)


def _finite(value: Real) -> Real:
    """The number, or None where it is infinite: a file has no word for that."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def mark_cell(value: bool | None, words: Words) -> Cell:
    """Yes, no, or a dash where it is not known."""
    return Cell(value, MISSING if value is None else words("mark.yes" if value else "mark.no"))


def coded_cell(value: str | None, group: str, words: Words) -> Cell:
    """A term of ours in this language; one that the language files do not have stays English."""
    if value is None:
        return Cell(None, MISSING)
    key = f"{group}.{slug(value)}"
    return Cell(value, words.get(key, value), english=key not in words.texts)


def name_methods(methods: Iterable[str], words: Words) -> str:
    """Methods one after the other."""
    return join_names((name_method(method, words) for method in methods), words)
