"""Tables for spreadsheets, CSV and Excel, in which no text or heading can be taken for a formula.

A text that begins with = + - or @ (or their full-width kin) after any blanks, or with a tab or a line break, may
be run as a formula by a spreadsheet. An apostrophe before it makes it text. Numbers need no guard, nor does a text
that is a number and nothing else, such as a longitude that was read as text: -79.25 stays so.
A program that reads such a file takes the apostrophe off again with ``unguard_text``.
"""

from __future__ import annotations

import datetime
import io
import re
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import polars.selectors as cs
import xlsxwriter

from rekka.core.errors import BadOption
from rekka.core.files import writing

GUARD = "'"
# \s covers tabs, line breaks and every blank of Unicode (\x1c to \x1f in Python, but not in polars, which takes
# the pattern too); then come characters that take no room on the screen. A text with apostrophes before all this
# is guarded too, so that every text can be read back.
_BLANK = r"[\s\x1c-\x1f\x00\u200b-\u200f\u2060\ufeff]"
ACTIVE = rf"'*(?:[\t\r\n]|{_BLANK}*[=+\-@\uff1d\uff0b\uff0d\uff20])"
_ACTIVE = re.compile(ACTIVE)
NUMBER = r"[+-]([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"  # with a sign; without one nothing is active
_NUMBER = re.compile(NUMBER)


def guard_text(text: str) -> str:
    """Text as a spreadsheet may have it: with an apostrophe before it where it would be a formula."""
    return GUARD + text if _ACTIVE.match(text) and not _NUMBER.fullmatch(text) else text


def unguard_text(text: str) -> str:
    """Undo ``guard_text``: ``unguard_text(guard_text(text)) == text`` for every text."""
    return text[1:] if text.startswith(GUARD) and _ACTIVE.match(text[1:]) else text


LARGEST_SHEET = 1_048_575  # rows under a header
CREATED = datetime.datetime(1980, 1, 1)  # any fixed date: the same tables are the same bytes
SAFE = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Write a table with a mark that tells Excel its encoding; lists as text."""
    with writing(path) as file:
        spell_lists(guard_table(table)).write_csv(file, include_bom=True)


def to_csv(table: pl.DataFrame) -> bytes:
    """A table as the bytes of the file that ``write_csv`` writes."""
    buffer = io.BytesIO()
    spell_lists(guard_table(table)).write_csv(buffer, include_bom=True)
    return buffer.getvalue()


def guard_table(table: Frame) -> Frame:
    """Return a table whose texts and headings are none that a spreadsheet would run as a formula."""
    text = cs.by_dtype(pl.String)
    active = text.str.contains(f"^{ACTIVE}") & ~text.str.contains(rf"^{NUMBER}$")
    guarded = table.with_columns(pl.when(active).then(pl.lit(GUARD) + text).otherwise(text).name.keep())
    return guarded.rename(guard_text)


def unguard_table(table: pl.LazyFrame) -> pl.LazyFrame:
    """Return the texts that ``guard_table`` was given; headings are for ``unguard_text``."""
    text = cs.by_dtype(pl.String)
    guarded = text.str.contains(f"^{GUARD}{ACTIVE}")
    return table.with_columns(pl.when(guarded).then(text.str.slice(1)).otherwise(text).name.keep())


def spell_lists(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with its lists as text, '; ' between their parts."""
    return table.with_columns(
        pl.Series(name, [_spell(value) for value in table[name].to_list()], dtype=pl.String)
        for name, kind in table.schema.items()
        if isinstance(kind, pl.List)
    )


def _spell(value: Any) -> str | None:
    """A list as text."""
    if value is None:
        return None
    parts = (" ".join(map(str, one.values())) if isinstance(one, dict) else str(one) for one in value)
    return guard_text("; ".join(parts))


def new_workbook(place: Path | io.BytesIO, **options: Any) -> xlsxwriter.Workbook:
    """Make a workbook in which a text is a text: no formula, no link and no number, whatever it looks like."""
    book = xlsxwriter.Workbook(str(place) if isinstance(place, Path) else place, SAFE | options)
    book.set_properties({"created": CREATED})
    return book


def render_sheet(table: pl.DataFrame, name: str) -> bytes:
    """Return a table as the bytes of a workbook with one sheet."""
    if len(table) > LARGEST_SHEET:
        raise BadOption(
            f"There are {len(table):,} rows, and an Excel sheet has room for {LARGEST_SHEET:,}. Write .csv or "
            ".parquet.",
            rows=len(table),
        )
    buffer = io.BytesIO()
    with new_workbook(buffer, in_memory=True) as book:
        table.write_excel(book, worksheet=name, autofit=True)
    return buffer.getvalue()


def to_parquet(frame: pl.DataFrame) -> bytes:
    """A frame as the bytes of a Parquet file; writing them is then ours, errors and all."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
