"""The commands that a job amounts to, as a shell reads them: the same run without the page."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from rekka.app.workspace import Ask
from rekka.core.language import ENGLISH

RUN, DEMO = Path("rekka-run"), Path("rekka-demo")  # the folders that rekka compare and rekka demo make


def spell_commands(ask: Ask, table: Path, mapping: Path, base: Path | None = None) -> list[list[str]]:
    """Commands one after the other, each as a list of words; paths count from ``base``, or from here.

    ``table`` and ``mapping`` are the table and its mapping as files.
    """
    if ask.table is None:
        return _spell_demo(ask)
    base, run = Path.cwd() if base is None else base, RUN.as_posix()
    place, allowed = (
        as_words(shorten_path(table, base)),
        [word for code in ask.allow for word in ("--allow", code)],
    )
    reading = [*_option("--mapping", shorten_path(mapping, base) if ask.mapping else None), *allowed]
    reading += ["--nbi"] if ask.nbi else []
    asked = [*_option("--years", ask.years), *_option("--threshold", ask.threshold)]
    usual = not (asked or ask.stability or ask.lang != ENGLISH)  # then rekka compare does it all
    report = [] if usual else ["--no-report"]
    found = [["rekka", "compare", *place, *reading, *_option("--models", ask.models), "--out", run, *report]]
    if ask.stability:
        found.append(["rekka", "stability", run])
    if not usual:
        found.append(["rekka", "forecast", run, *place, *allowed, *asked, "--format", "parquet"])
        found.append(["rekka", "report", run, *_option("--lang", None if ask.lang == ENGLISH else ask.lang)])
    return found


def _spell_demo(ask: Ask) -> list[list[str]]:
    again = ["rekka", "report", f"{DEMO.as_posix()}/study", "--lang", ask.lang]
    return [["rekka", "demo", "--folder", DEMO.as_posix()], *([again] if ask.lang != ENGLISH else [])]


def _option(name: str, value: object) -> list[str]:
    """An option with its value, if it has one; a value that looks like an option is joined to it."""
    if value is None:
        return []
    return [f"{name}={value}"] if str(value).startswith("-") else [name, str(value)]


def as_words(path: str) -> list[str]:
    """A path among the words of a command, where it must not look like an option."""
    return [f"./{path}" if path.startswith("-") else path]


def shorten_path(path: Path, base: Path) -> str:
    """A path from ``base`` where it lies in it, else in full."""
    return os.path.relpath(path, base) if path.is_relative_to(base) else str(path)


def write_commands(commands: list[list[str]]) -> str:
    """Commands as a text to copy: the next is run if the one before it ended well."""
    return " && \\\n".join(map(shlex.join, commands))
