"""Sentences and lists in a terminal, and paths as a shell reads them; nothing heavy is imported here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from rekka.core.files import WINDOWS
from rekka.core.language import ENGLISH, load_words, say


def quote(word: str | Path) -> str:
    """A path or another word as a shell reads it: in double quotes on Windows, where others are letters."""
    text = str(word)
    if WINDOWS:
        return text if re.fullmatch(r"[\w.:\\/-]+", text) else f'"{text}"'
    return shlex.quote(text)


def print_line(console: Console, text: str) -> None:
    """A line as it is, however long: a path in it can be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def print_plain(console: Console, text: str) -> None:
    """A text as it is, folded at the terminal's width."""
    console.print(text, highlight=False, markup=False)


def print_warning(console: Console, text: str, end: str = "") -> None:
    """A sentence that must be known first."""
    console.print(f"[bold red]{escape(text)}[/]{end}", highlight=False)


def explain(console: Console, words: str) -> None:
    """The meaning of a table's columns."""
    console.print(words, style="dim", highlight=False, markup=False)
    console.print()


def print_list(console: Console, lines: Sequence[str], indent: int = 2, mark: str = "- ") -> None:
    """Sentences, one under the other."""
    for line in lines:
        console.print(Padding(f"{mark}{escape(line)}", (0, 0, 0, indent)), highlight=False)


def list_commands(commands: Mapping[str, str]) -> list[str]:
    """'More: rekka show run (tables, verdicts); rekka checks run (2 issues)': what else there is, and where."""
    told = [say("terminal.command", command=one, what=what) for one, what in commands.items()]
    return [load_words(ENGLISH).format(say("terminal.more", commands=told))] if told else []


def print_numbered(console: Console, title: str, lines: Sequence[str]) -> None:
    """Sentences under a title, numbered where there are several."""
    if not lines:
        return
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    for number, line in enumerate(lines, start=1):
        mark = f"{number} " if len(lines) > 1 else ""
        console.print(Padding(f"{mark}{escape(line)}", (0, 0, 0, 2)), highlight=False)
