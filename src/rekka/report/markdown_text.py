"""Text and tables as Markdown, of the kind that GitHub, GitLab and pandoc read.

What data named is escaped: a case called ``<script>`` or ``a | b`` is shown as it is spelt, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rekka.report.views import Cell, Column, TableView

_ACTIVE = re.compile(r"([\\`*_{}\[\]|~$#])")
_FIRST = re.compile(r"^(\d{0,9})([-+.)=])(?=\s|$|[-=]+$)")  # a list or a rule, where a line begins so
_LINK = re.compile(r"(?i)(:)(?=//)|(?<=www)(\.)|(@)")  # GitHub makes links of these by itself
_TAGS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape_markdown(text: str) -> str:
    """Any text on one line, shown as it is spelt: no markup, no HTML, no link, no column of a table."""
    line = " ".join(_drop_controls(text).split())
    line = _ACTIVE.sub(r"\\\1", line.translate(_TAGS))
    line = _LINK.sub(lambda found: "\\" + found.group(), line)
    return _FIRST.sub(r"\1\\\2", line)


def _drop_controls(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter.isspace() else "" for letter in text)


def markdown_table(table: TableView) -> str:
    """Its rows under its columns; a sentence where there are none."""
    if not table.rows:
        return escape_markdown(table.note) + "\n"
    lines = [[_title(column) for column in table.columns], [_rule(column) for column in table.columns]]
    lines += [[_cell(cell) for cell in row.cells] for row in table.rows]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return text + (f"\n{escape_markdown(table.note)}\n" if table.note else "")


def render_tables(tables: Iterable[TableView]) -> str:
    """All tables, each under its title."""
    return "\n".join(f"## {escape_markdown(table.title)}\n\n{markdown_table(table)}" for table in tables)


def _cell(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    return f"**{text}**" if cell.strong and text else text


def _title(column: Column) -> str:
    return escape_markdown(f"{column.title} ({column.unit})" if column.unit else column.title)


def _rule(column: Column) -> str:
    return "---:" if column.kind == "number" else "---"
