"""Tables that a spreadsheet opens: CSV, whole or not there, without a text that could be taken for a formula."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from rekka.cells import guard_text
from rekka.study.files import write_text


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """A table with a mark that tells Excel its encoding; lists as text."""
    columns = [
        pl.Series(name, [_spell(value) for value in table[name].to_list()], dtype=pl.String)
        for name, kind in table.schema.items()
        if isinstance(kind, pl.List | pl.String)
    ]
    write_text(path, table.with_columns(columns).write_csv(include_bom=True))


def _spell(value: Any) -> str | None:
    """A cell as text."""
    if isinstance(value, list):
        parts = (" ".join(map(str, one.values())) if isinstance(one, dict) else str(one) for one in value)
        return guard_text("; ".join(parts))
    return None if value is None else guard_text(str(value))
