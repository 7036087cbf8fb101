"""How pages are written: sentences that are checked, ranges, lists, tables in Markdown, sections between marks."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.reproduction_sides import NAMES
from rekka.report.text import MISSING, show_number

WIDTH = 118  # letters of a line of the page


class NoLongerSo(Exception):
    """A sentence of the page does not hold on these figures: write it anew."""


def claim(holds: bool, sentence: str) -> str:
    """A sentence, if it is so."""
    if not holds:
        raise NoLongerSo(sentence)
    return sentence


def one_digit(value: float) -> str:
    """'14.2'."""
    return show_number(value, 1)


def two_digits(value: float) -> str:
    """'0.71'."""
    return show_number(value, 2)


def show_range(values: Sequence[float], show: Callable[[Any], str] = str) -> str:
    """'6 to 10', or one figure where both look the same."""
    low, high = show(min(values)), show(max(values))
    return low if low == high else f"{low} to {high}"


def join(names: Iterable[str]) -> str:
    """'Pier', 'Pier and Bearing', 'Pier, Bearing and Deck slab', 'no case'."""
    found = list(names)
    if len(found) < 2:
        return found[0] if found else "no case"
    return f"{', '.join(found[:-1])} and {found[-1]}"


def name_methods(methods: Sequence[str]) -> str:
    """'z-score, Box-Cox', 'none'."""
    return ", ".join(NAMES[method] for method in methods) or "none"


def wrap(text: str, first: str = "", then: str = "") -> str:
    """A paragraph in lines; links and numbers stay whole."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
    )


def bullet(text: str) -> str:
    """One point of a list."""
    return wrap(text, "- ", "  ")


def bullets(texts: Iterable[str]) -> list[str]:
    """A list, as the one part of the page that it is."""
    return ["\n".join(map(bullet, texts))]


def find_marks(name: str) -> tuple[str, str]:
    """Marks in a page around the section that the benchmark of this name writes."""
    return f"<!-- from {name} -->", f"<!-- end of {name} -->"


def put_section(page: Path, name: str, text: str) -> None:
    """Put a section between its marks in a page."""
    begin, end = find_marks(name)
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; columns of figures to the right."""
    body = [[str(cell) for cell in row] for row in rows]
    right = [all(_is_figure(row[place]) for row in body) for place in range(len(header))]
    rule = ["---:" if one else "---" for one in right]
    return "\n".join(f"| {' | '.join(row)} |" for row in (list(header), rule, *body))


def _is_figure(cell: str) -> bool:
    return cell == MISSING or cell.lstrip("(*")[:1].isdigit()
