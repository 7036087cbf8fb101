"""Tables as files: CSV for programs, an Excel workbook for people, LaTeX and Markdown for papers and notes.

CSV files are UTF-8 with a byte order mark, so that Excel knows it; they have numbers as they are, not rounded,
terms in English, and a column for each end of an interval. A text that a spreadsheet would run as a formula has an
apostrophe before it: ``rekka.core.cells.unguard_text`` takes it off again. The workbook has the terms of the
report's language, and formats in place of rounding; its texts are texts by their type. The same tables give the
same bytes.
"""

from __future__ import annotations

import io
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rekka.core.cells import guard_text
from rekka.core.files import make_folder, write_whole
from rekka.core.sheets import new_workbook
from rekka.report.latex import render_latex
from rekka.report.markdown_text import render_tables
from rekka.report.table_cells import expand
from rekka.report.views import Cell, Column, Row, Scalar, TableView

BYTE_ORDER_MARK = "\ufeff"
LINE_END = "\r\n"  # RFC 4180, and what Excel writes
LONGEST_SHEET_NAME = 31  # Excel's limits
LONGEST_TEXT = 32_767
NARROWEST, WIDEST = 8, 60  # columns of a workbook, in characters
WRAPPED = 40  # characters from which a text is wrapped
CONTENTS = "contents"
BOOK, LATEX, MARKDOWN = "tables.xlsx", "tables.tex", "tables.md"
TABLES_MARK = b"% Tables of a rekka report"  # at the head of tables.tex: the folder is one of ours
CUT = "\u2026"


def write_tables(tables: Sequence[TableView], folder: str | Path) -> tuple[Path, ...]:
    """Write NAME.csv for each table, and all of them as tables.xlsx, tables.tex and tables.md."""
    home = Path(folder)
    make_folder(home)
    texts = [render_csv(table) for table in tables]
    contents = [*(text.encode() for text in texts), render_workbook(tables)]
    contents += [render_latex(tables).encode(), render_tables(tables).encode()]
    files = list_table_files(tables, home)
    for file, content in zip(files, contents, strict=True):
        write_whole(file, content)
    return files


def list_table_files(tables: Sequence[TableView], folder: Path) -> tuple[Path, ...]:
    """List the files that ``write_tables`` writes."""
    return tuple(folder / name for name in (*(f"{table.name}.csv" for table in tables), BOOK, LATEX, MARKDOWN))


def render_csv(table: TableView) -> str:
    """A table as CSV. Every text is in quotes, so that no comma, semicolon or line break ends a field."""
    flat = expand(table)
    lines = [[_quote(name_column(column)) for column in flat.columns]]
    lines += [[_field(cell.value) for cell in row.cells] for row in flat.rows]
    return BYTE_ORDER_MARK + "".join(",".join(line) + LINE_END for line in lines)


def name_column(column: Column) -> str:
    """'median time (s)'."""
    return f"{column.title} ({column.unit})" if column.unit else column.title


def _field(value: Scalar) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quote(value) if isinstance(value, str) else repr(value)


def _quote(text: str) -> str:
    return '"' + guard_text(text).replace('"', '""') + '"'


def render_workbook(tables: Sequence[TableView]) -> bytes:
    """All tables in one workbook: contents first, then a sheet for each."""
    buffer = io.BytesIO()
    with new_workbook(buffer, in_memory=True) as book:
        sheets = name_sheets(table.name for table in tables)
        _write_contents(book, list(zip(sheets, tables, strict=True)))
        for sheet, table in zip(sheets, tables, strict=True):
            _write_sheet(book, sheet, expand(table))
    return buffer.getvalue()


def name_sheets(names: Iterable[str]) -> list[str]:
    """Names that Excel takes: short enough, without its signs, no two alike in any case."""
    found: list[str] = []
    taken = {CONTENTS, "history"}  # the second is Excel's own
    for name in names:
        plain = re.sub(r"[\[\]:*?/\\\x00-\x1f]", "_", name).strip("' ")[:LONGEST_SHEET_NAME] or "table"
        sheet, number = plain, 1
        while sheet.lower() in taken:
            number += 1
            ending = f"_{number}"
            sheet = plain[: LONGEST_SHEET_NAME - len(ending)] + ending
        taken.add(sheet.lower())
        found.append(sheet)
    return found


def _write_contents(book: Any, sheets: Sequence[tuple[str, TableView]]) -> None:
    """A line for each table: its sheet, its title, what its columns mean."""
    page = book.add_worksheet(CONTENTS)
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    link = book.add_format({"font_color": "blue", "underline": 1, "valign": "top"})
    for line, (sheet, table) in enumerate(sheets):
        target = sheet.replace("'", "''")
        page.write_url(line, 0, f"internal:'{target}'!A1", link, sheet)
        page.write_string(line, 1, _cut(table.title), wrapped)
        page.write_string(line, 2, _cut(table.note), wrapped)
    page.set_column(0, 0, LONGEST_SHEET_NAME - 8)
    page.set_column(1, 2, WIDEST)


def _write_sheet(book: Any, name: str, table: TableView) -> None:
    sheet = book.add_worksheet(name)
    head = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "bottom": 1})
    for place, column in enumerate(table.columns):
        sheet.write_string(0, place, _cut(name_column(column)), head)
        width = _find_width(column, table.rows, place)
        sheet.set_column(place, place, width)
    formats = _make_formats(book, table)
    for line, row in enumerate(table.rows, start=1):
        for place, cell in enumerate(row.cells):
            _write_cell(sheet, line, place, cell, formats[place, cell.strong])
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(table.rows), len(table.columns) - 1)


def _make_formats(book: Any, table: TableView) -> Mapping[tuple[int, bool], Any]:
    """For each column its format, plain and strong."""
    found = {}
    for place, column in enumerate(table.columns):
        own: dict[str, Any] = {"valign": "top"}
        if column.kind == "number":
            own |= {"num_format": column.form or "General", "align": "right"}
        else:
            own |= {"text_wrap": True}
        for strong in (False, True):
            found[place, strong] = book.add_format(own | {"bold": strong})
    return found


def _write_cell(sheet: Any, line: int, place: int, cell: Cell, form: Any) -> None:
    """By its type, never by what it looks like: a text is no formula, no number and no link."""
    value = cell.value
    if isinstance(value, bool):
        sheet.write_boolean(line, place, value, form)
    elif isinstance(value, str):
        sheet.write_string(line, place, _cut(cell.text), form)
    elif value is not None and math.isfinite(value):
        sheet.write_number(line, place, value, form)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + CUT


def _find_width(column: Column, rows: Sequence[Row], place: int) -> int:
    """As wide as its longest text, or half its title, within limits."""
    longest = max((_count_places(row.cells[place].text) for row in rows), default=0)
    title = _count_places(column.title) // 2 + 2
    return max(NARROWEST, min(WIDEST if longest > WRAPPED else longest + 2, WIDEST), title)


def _count_places(text: str) -> int:
    """Characters, those of East Asian width twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
