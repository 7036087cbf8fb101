"""Queries over a user's table: what polars cannot read is our error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import polars as pl

from rekka.core.errors import UnreadableTable
from rekka.core.files import is_full_disk

_FOLDERS = re.compile(r"(?:/[^/\s'\"]+)+/(?=[^/\s'\"])")  # of a path in a message of polars


def collect(
    frame: pl.LazyFrame, name: str, *, engine: Literal["streaming", "in-memory"] = "streaming"
) -> pl.DataFrame:
    """Run a query."""
    with reading(name):
        return frame.collect(engine=engine)


@contextmanager
def reading(name: str, into: Path | None = None) -> Iterator[None]:
    """While a table is read: what polars cannot read is our error.

    Where it goes ``into`` a folder on its way, an error of that folder's disk is left to whoever writes there.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if into is not None and is_full_disk(error, into):
            raise
        reason = _FOLDERS.sub("", str(error).strip().splitlines()[0]).rstrip(".")
        raise UnreadableTable(f"{name} cannot be read to its end: {reason}.", file=name) from None
