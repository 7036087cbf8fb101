"""Tables as files: CSV for programs, an Excel workbook for people, LaTeX and Markdown for papers and notes.

CSV files are UTF-8 with a byte order mark, so that Excel knows it; they have numbers as they are, not rounded,
terms in English, and a column for each end of an interval. A text that a spreadsheet would run as a formula has an
apostrophe before it: ``rekka.core.sheets.unguard_text`` takes it off again. The workbook has the terms of the
report's language, and formats in place of rounding; its texts are texts by their type. The same tables give the
same bytes.

LaTeX is in the manner of the paper: booktabs, a caption, a label, numbers to the right. Characters that LaTeX
would act on are escaped; signs such as a true minus or a raised 2 become commands, so that pdflatex takes them.
Names in scripts beyond Latin stand as they are, for lualatex, xelatex or uplatex.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rekka.core.files import make_folder, write_whole
from rekka.core.sheets import guard_text, new_workbook
from rekka.report.markdown import render_tables
from rekka.report.tables.cells import expand
from rekka.report.views import Cell, Column, Row, Scalar, TableView

LONGEST_FLOAT = 30  # rows of a table that fits a page; a longer one is a longtable
LONG_TEXT = 36  # characters of a column from which it is set as paragraphs
MANY_COLUMNS, VERY_MANY_COLUMNS = 5, 9  # from here on a table is set smaller
NARROW_COLUMN = 0.08  # of the line's width; what is left is shared by columns of paragraphs
LEAST_PARAGRAPH, MOST_PARAGRAPH = 0.12, 0.6  # of the line's width
HEAD_WIDTH = 14  # characters of a line of a heading
HEAD = r"""% Tables of a rekka report. In the preamble:
%   \usepackage[T1]{fontenc}
%   \usepackage[utf8]{inputenc}
%   \usepackage{array,booktabs,longtable}
% and in the text \input{tables}, or any of the tables below. Wide ones want landscape (package pdflscape).
"""
OTHER_SCRIPTS = "% Some names are in scripts that pdflatex has no letters for: use lualatex, xelatex or uplatex.\n"

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after \\ or \midrule they would be an option
    "-": "-{}", "'": "'{}", ",": ",{}",  # see _escape_piece
    "\u2212": "$-$", "\u2013": "--", "\u2014": "---", "\u2026": r"\dots{}", "\u00d7": r"$\times$",
    "\u221e": r"$\infty$", "\u2264": r"$\leq$", "\u2265": r"$\geq$", "\u2248": r"$\approx$", "\u00b1": r"$\pm$",
    "\u2192": r"$\rightarrow$", "\u00b0": r"\textdegree{}", "\u00b5": r"$\mu$", "\u03bc": r"$\mu$",
    "\u2018": "`{}", "\u2019": "'{}", "\u201c": "``", "\u201d": "''", "\u2022": r"\textbullet{}",
    "\u00a0": "~", "\u202f": r"\,", "\u2009": r"\,", "\u20ac": r"\texteuro{}",
}  # fmt: skip
_RAISED = dict(
    zip("\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "-0123456789", strict=True)
)
_RAISED_RUN = re.compile(f"[{''.join(_RAISED)}]+")
_NO_LETTERS = re.compile("[^\x00-\u017f]")  # beyond Latin, Latin-1 and Latin Extended-A


def render_latex(tables: Iterable[TableView]) -> str:
    """All tables, one after the other, with what the preamble needs in a comment."""
    text = "\n".join(latex_table(table) for table in tables)
    return HEAD + (OTHER_SCRIPTS if _NO_LETTERS.search(text) else "") + "\n" + text


def latex_table(table: TableView) -> str:
    """One table: a float, or a longtable where it is long."""
    head = " & ".join(_title(column) for column in table.columns) + r" \\"
    body = [" & ".join(_cell(cell) for cell in row.cells) + r" \\" for row in table.rows]
    caption = rf"\caption{{{escape_latex(table.title)}}}\label{{tab:{_label(table.name)}}}"
    note = [rf"\par\smallskip\footnotesize {escape_latex(table.note)}"] if table.note else []
    size = _size(table)
    columns = _columns(table)
    if len(table.rows) > LONGEST_FLOAT:
        lines = ["{" + size, rf"\begin{{longtable}}{{{columns}}}", caption + r" \\", r"\toprule", head]
        lines += [r"\midrule", r"\endfirsthead", r"\toprule", head, r"\midrule", r"\endhead"]
        lines += [*body, r"\bottomrule", r"\end{longtable}", *note, "}"]
    else:
        lines = [r"\begin{table}[htbp]", r"\centering" + size, caption, rf"\begin{{tabular}}{{{columns}}}"]
        lines += [r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", *note, r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Any text as LaTeX sets it, on one line."""
    plain = _clean(text)
    raised = _RAISED_RUN.split(plain)
    powers = [f"$^{{{''.join(map(_RAISED.__getitem__, run))}}}$" for run in _RAISED_RUN.findall(plain)]
    pieces = [_escape_piece(raised[0])]
    for power, piece in zip(powers, raised[1:], strict=True):
        pieces += [power, _escape_piece(piece)]
    return "".join(pieces)


def _clean(text: str) -> str:
    """One line, composed letters, no control characters: pdflatex has none of these."""
    blanks = re.sub(r"[^\S\u00a0\u2009\u202f]+", " ", unicodedata.normalize("NFC", text))
    return "".join(
        letter for letter in blanks if unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )


def _escape_piece(text: str) -> str:
    """Letter by letter; the group after - ' and , stands only where a twin follows: two would be a ligature."""
    found = []
    for place, letter in enumerate(text):
        escaped = _SPECIAL.get(letter, letter)
        if letter in "-'," and text[place + 1 : place + 2] != letter:
            escaped = letter
        found.append(escaped)
    return "".join(found)


def _cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.strong and text else text


def _title(column: Column) -> str:
    """In bold; a long one in several lines, since a number's column is narrow."""
    lines = textwrap.wrap(column.heading, HEAD_WIDTH, break_long_words=False, break_on_hyphens=False)
    escaped = r"\\".join(escape_latex(line) for line in lines)
    side = "r" if column.kind == "number" else "l"
    return rf"\textbf{{\shortstack[{side}]{{{escaped}}}}}" if len(lines) > 1 else rf"\textbf{{{escaped}}}"


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", name)


def _columns(table: TableView) -> str:
    long = [column.kind == "text" and _widest(table.rows, n) > LONG_TEXT for n, column in enumerate(table.columns)]
    left = (1.0 - NARROW_COLUMN * (len(long) - sum(long))) / max(sum(long), 1)
    width = min(max(left, LEAST_PARAGRAPH), MOST_PARAGRAPH)
    paragraph = rf">{{\raggedright\arraybackslash}}p{{{width:.2f}\linewidth}}"
    kinds = {"text": "l", "number": "r", "mark": "l"}
    return "".join(
        paragraph if is_long else kinds[column.kind] for column, is_long in zip(table.columns, long, strict=True)
    )


def _widest(rows: Iterable[Row], place: int) -> int:
    return max((len(row.cells[place].text) for row in rows), default=0)


def _size(table: TableView) -> str:
    count = len(table.columns)
    if count > VERY_MANY_COLUMNS:
        return r"\scriptsize\setlength{\tabcolsep}{3pt}"
    return r"\footnotesize" if count > MANY_COLUMNS else ""


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


def write_tables(
    tables: Sequence[TableView], folder: str | Path, workbook: bytes | None = None
) -> tuple[Path, ...]:
    """Write NAME.csv for each table, and all of them as tables.xlsx, tables.tex and tables.md.

    ``workbook`` is what tables.xlsx holds, where that is more than the tables.
    """
    home = Path(folder)
    make_folder(home)
    texts = [render_csv(table) for table in tables]
    contents = [*(text.encode() for text in texts), render_workbook(tables) if workbook is None else workbook]
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
    lines = [[_quote(column.heading) for column in flat.columns]]
    lines += [[_field(cell.value) for cell in row.cells] for row in flat.rows]
    return BYTE_ORDER_MARK + "".join(",".join(line) + LINE_END for line in lines)


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
        write_contents(book, list(zip(sheets, tables, strict=True)))
        for sheet, table in zip(sheets, tables, strict=True):
            write_sheet(book, sheet, expand(table))
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


def write_contents(book: Any, sheets: Sequence[tuple[str, TableView]]) -> None:
    """A line for each table: its sheet, its title, what its columns mean."""
    page = book.add_worksheet(CONTENTS)
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    link = book.add_format({"font_color": "blue", "underline": 1, "valign": "top"})
    for line, (sheet, table) in enumerate(sheets):
        target = sheet.replace("'", "''")
        page.write_url(line, 0, f"internal:'{target}'!A1", link, sheet)
        page.write_string(line, 1, cut_text(table.title), wrapped)
        page.write_string(line, 2, cut_text(table.note), wrapped)
    page.set_column(0, 0, LONGEST_SHEET_NAME - 8)
    page.set_column(1, 2, WIDEST)


def write_sheet(book: Any, name: str, table: TableView) -> None:
    """A sheet of a table: its heading frozen and filtered, numbers in their formats."""
    sheet = book.add_worksheet(name)
    head = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "bottom": 1})
    for place, column in enumerate(table.columns):
        sheet.write_string(0, place, cut_text(column.heading), head)
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
        sheet.write_string(line, place, cut_text(cell.text), form)
    elif value is not None and math.isfinite(value):
        sheet.write_number(line, place, value, form)


def cut_text(text: str) -> str:
    """A text that fits a cell."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + CUT


def _find_width(column: Column, rows: Sequence[Row], place: int) -> int:
    """As wide as its longest text, or half its title, within limits."""
    longest = max((count_places(row.cells[place].text) for row in rows), default=0)
    title = count_places(column.title) // 2 + 2
    return max(NARROWEST, min(WIDEST if longest > WRAPPED else longest + 2, WIDEST), title)


def count_places(text: str) -> int:
    """Characters, those of East Asian width twice."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
