"""What all tables and lists in a terminal share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

NOTHING = "-"
SELECTED = "*"
LONGEST_NAME = 24  # of a case, in one line


def quote(path: Path) -> str:
    """A path as a shell reads it."""
    return shlex.quote(str(path))


def new_table(title: str = "") -> Table:
    """A table in the house's style; without a title where that stands over it in full width."""
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )


def add_columns(table: Table, first: str, *others: str) -> None:
    """The first column to the left, the others to the right; a long name is folded, a number never cut."""
    table.add_column(first, max_width=LONGEST_NAME, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)


def group_columns(
    console: Console, names: Sequence[str], lines: Sequence[Sequence[str]]
) -> list[list[tuple[int, str]]]:
    """The columns after the first, with their places, in groups that fit the terminal."""
    wide = [max(Text.from_markup(cell).cell_len for cell in column) for column in zip(*lines, strict=True)]
    room = console.width - min(wide[0], LONGEST_NAME) - 1
    groups: list[list[tuple[int, str]]] = [[]]
    used = 0
    for place, name in enumerate(names, start=1):
        width = max(wide[place], len(name)) + 2
        if groups[-1] and used + width > room:
            groups.append([])
            used = 0
        groups[-1].append((place, name))
        used += width
    return groups


def print_line(console: Console, text: str) -> None:
    """A line as it is, however long: a path in it can be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def print_plain(console: Console, text: str) -> None:
    """A text as it is, folded at the terminal's width."""
    console.print(text, highlight=False, markup=False)


def print_warning(console: Console, text: str, end: str = "") -> None:
    """A sentence that must be known first."""
    console.print(f"[bold red]{escape(text)}[/]{end}", highlight=False)


def print_table(console: Console, table: Table, title: str | None = None) -> None:
    """A table, under its title, and a blank line."""
    if title is not None:
        console.print(f"[bold]{escape(title)}[/]", highlight=False)
    console.print(table)
    console.print()


def explain(console: Console, words: str) -> None:
    """What the columns of a table mean."""
    console.print(words, style="dim", highlight=False)
    console.print()


def print_list(console: Console, lines: Sequence[str], indent: int = 2, mark: str = "- ") -> None:
    """Sentences, one under the other."""
    for line in lines:
        console.print(Padding(f"{mark}{escape(line)}", (0, 0, 0, indent)), highlight=False)
