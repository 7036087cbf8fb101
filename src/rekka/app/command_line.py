"""The commands that a job amounts to, as a shell reads them: the same run without the page."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from rekka.app.workspace import Ask

RUN = Path("rekka-run")  # the run folder that rekka compare makes where nothing else is said


def spell_commands(ask: Ask, table: Path, mapping: Path, base: Path | None = None) -> list[list[str]]:
    """Commands one after the other, each as a list of words; paths count from ``base``, or from here.

    ``table`` and ``mapping`` are the table and its mapping as files.
    """
    base, run = Path.cwd() if base is None else base, RUN.as_posix()
    if ask.table is None:
        return _spell_demo(ask)
    reading = [word for code in ask.allow for word in ("--allow", code)]
    how = [*(["--mapping", shorten_path(mapping, base)] if ask.mapping else []), *(["--nbi"] if ask.nbi else [])]
    models = ["--models", ask.models] if ask.models else []
    place = shorten_path(table, base)
    asked = [*(["--years", str(ask.years)] if ask.years is not None else [])]
    asked += ["--threshold", ask.threshold] if ask.threshold is not None else []
    plain = not (asked or ask.stability or ask.lang != "en")
    report = [] if plain else ["--no-report"]
    found = [["rekka", "compare", *as_words(place), *how, *reading, *models, "--out", run, *report]]
    if ask.stability:
        found.append(["rekka", "stability", run])
    if not plain:
        found.append(["rekka", "forecast", run, *as_words(place), *asked, "--format", "parquet"])
        found.append(["rekka", "report", run, *(["--lang", ask.lang] if ask.lang != "en" else [])])
    return found


def _spell_demo(ask: Ask) -> list[list[str]]:
    folder = "rekka-demo"
    again = ["rekka", "report", f"{folder}/study", "--lang", ask.lang]
    return [["rekka", "demo", "--folder", folder], *([again] if ask.lang != "en" else [])]


def as_words(path: str) -> list[str]:
    """A path among the words of a command; one that looks like an option is given from its folder."""
    return [f"./{path}" if path.startswith("-") else path]


def shorten_path(path: Path, base: Path) -> str:
    """A path from ``base`` where it lies in it, else in full."""
    return os.path.relpath(path, base) if path.is_relative_to(base) else str(path)


def write_commands(commands: list[list[str]]) -> str:
    """Commands as a text to copy: the next is run if the one before it ended well."""
    return " && \\\n".join(map(shlex.join, commands))
