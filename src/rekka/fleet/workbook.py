"""A forecast as an Excel workbook: members, years, network and notes, a sheet each, written row by row."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.sheets import new_workbook

LONGEST_TEXT = 32_767  # characters of a cell
WIDTHS = {"remark": 60, "what": 22, "case": 18, "bridge_id": 14}  # of columns, in characters
WIDTH, NOTE = 12, 110


class Workbook:
    """The workbook at ``path``: ``add`` years as they come, then ``finish``."""

    def __init__(self, path: Path) -> None:
        self._book = new_workbook(path, constant_memory=True, tmpdir=str(path.parent))
        self._head = self._book.add_format({"bold": True, "bottom": 1})
        self._date = self._book.add_format({"num_format": "yyyy-mm-dd"})
        self._wrapped = self._book.add_format({"text_wrap": True, "valign": "top"})
        self._sheets = {name: self._book.add_worksheet(name) for name in ("members", "years", "network", "notes")}
        self._next = dict.fromkeys(self._sheets, 0)
        self._open = True

    def add(self, rows: pl.DataFrame) -> None:
        """Some more years."""
        self._write("years", rows)

    def finish(self, members: pl.DataFrame, network: pl.DataFrame, notes: Sequence[tuple[str, str]]) -> None:
        """The other sheets."""
        self._write("members", members)
        self._write("network", network)
        sheet = self._sheets["notes"]
        sheet.set_column(0, 0, WIDTHS["what"])
        sheet.set_column(1, 1, NOTE)
        for line, (head, text) in enumerate(notes):
            sheet.write_string(line, 0, head, self._head)
            sheet.write_string(line, 1, text[:LONGEST_TEXT], self._wrapped)

    def close(self) -> None:
        """Write the file."""
        if self._open:
            self._open = False
            self._book.close()

    def drop(self) -> None:
        """Let go of it; what it would be is not wanted. xlsxwriter would leave the files of its rows open."""
        self._open = False
        for sheet in self._sheets.values():
            if getattr(sheet, "row_data_fh", None):
                with contextlib.suppress(OSError):  # what is left to be written is not wanted
                    sheet.row_data_fh.close()

    def _write(self, name: str, rows: pl.DataFrame) -> None:
        """Rows at the end of a sheet; its header before the first."""
        sheet = self._sheets[name]
        if not self._next[name]:
            for place, column in enumerate(rows.columns):
                sheet.write_string(0, place, column, self._head)
                sheet.set_column(place, place, WIDTHS.get(column, WIDTH))
            sheet.freeze_panes(1, 0)
            self._next[name] = 1
        for line, values in enumerate(rows.iter_rows(), start=self._next[name]):
            for place, value in enumerate(values):
                self._write_cell(sheet, line, place, value)
        self._next[name] += len(rows)

    def _write_cell(self, sheet: Any, line: int, place: int, value: Any) -> None:
        """By its type, never by what it looks like: a text is no formula, no number and no link."""
        if isinstance(value, bool):
            sheet.write_boolean(line, place, value)
        elif isinstance(value, str):
            sheet.write_string(line, place, value[:LONGEST_TEXT])
        elif isinstance(value, datetime.date):
            sheet.write_datetime(line, place, value, self._date)
        elif value is not None and math.isfinite(value):
            sheet.write_number(line, place, value)
