"""Printing: control characters in names, which could move the cursor or hide text, are shown as escapes.

Every console is made by ``new_console``, and every other line goes through ``echo`` or ``echo_json``. What Windows
writes to a file or a pipe has the letters of a code page: ``take_every_letter`` shows others by their numbers.
``OnProgress`` is how a long function reports its progress.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from rekka.core.folders import plain

# Control characters but for the tab and the line feed, DEL, the second set of control characters, and marks that
# turn the direction of writing: a terminal obeys them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def show_text(text: str) -> str:
    r"""Return a text as a terminal may have it: '\x1b' in place of an escape character."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class _Console(Console):
    """A console that shows control characters in place of obeying them."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Clean a text before its width is measured."""
        return super().render_str(show_text(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Clean what came as something else than a text; the console's own control codes stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=show_text(segment.text))


def new_console(*, stderr: bool = False) -> Console:
    """Make a console for standard output or standard error; a name such as :car: is no picture there."""
    return _Console(stderr=stderr, emoji=False)


def take_every_letter() -> None:
    """Have standard output and error write what their code page lacks as escapes, in place of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not _has_every_letter(stream):
            stream.reconfigure(errors="backslashreplace")


def _has_every_letter(stream: Any) -> bool:
    """Whether a stream writes Unicode; what is no file takes texts as they are."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-").startswith("utf")


def echo(text: str, *, err: bool = False) -> None:
    """Print a line."""
    typer.echo(show_text(text), err=err)


def echo_json(value: Any) -> None:
    """Print JSON for machines; infinite and undefined numbers as words, which JSON has not."""
    every = _has_every_letter(sys.stdout)
    text = json.dumps(plain(value), ensure_ascii=not every, default=str, allow_nan=False)
    typer.echo(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


# What is done, of which component or file, how much of it is done, and of how much; None where that is not known.
OnProgress = Callable[[str, str, float, float | None], None]


def say_nothing(stage: str, name: str, done: float, total: float | None) -> None:
    """Ignore progress."""
