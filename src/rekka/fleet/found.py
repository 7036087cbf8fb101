"""Visits found of each member, by day: for the history of a network and of a bridge."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import polars as pl

from rekka.fleet.lists import MEMBER

FOUND_ON, FOUND = "found_on", "found"
COORDINATES = {  # names of columns, in small letters
    "latitude": ("latitude", "lat", "緯度"),
    "longitude": ("longitude", "lon", "lng", "long", "経度"),
}
MOST_VISITS = 2_000_000  # whose dates and states are kept: those of more would fill the memory


def find_coordinate(columns: Sequence[str], known: Sequence[str]) -> str | None:
    """Column of coordinates by its name, if there is one."""
    return next((name for name in columns if name.strip().lower() in known), None)


def list_found(visits: pl.LazyFrame) -> pl.DataFrame:
    """Days and states of each member's visits, in order; ``visits`` has one row for each that can be used."""
    keys = [pl.col(name).cast(pl.String).fill_null("").alias(name) for name in MEMBER]
    dated = visits.filter(pl.col("date").is_not_null() & pl.col("state").is_not_null())
    rows = dated.select(*keys, pl.col("date"), pl.col("state").cast(pl.Int16)).sort("date", maintain_order=True)
    grouped = rows.group_by(*MEMBER, maintain_order=True).agg(
        pl.col("date").alias(FOUND_ON), pl.col("state").alias(FOUND)
    )
    return grouped.collect()


def visits_of_pairs(pairs: pl.DataFrame) -> pl.LazyFrame | None:
    """Visits that pairs begin and end with, each once; None where they have no dates."""
    if not {"date_1", "date_2"} <= set(pairs.columns) or not pairs["date_1"].dtype.is_temporal():
        return None
    names = [pl.col(name) if name in pairs.columns else pl.lit("").alias(name) for name in MEMBER]
    rows = pairs.lazy()
    ends = [
        rows.select(*names, date=pl.col(f"date_{end}").cast(pl.Date), state=pl.col(f"state_{end}").cast(pl.Int64))
        for end in (1, 2)
    ]
    return pl.concat(ends).unique(maintain_order=True)


class FoundVisits:
    """States found of some members, by day: how many were at the threshold or worse at the end of each year."""

    def __init__(self, details: pl.DataFrame) -> None:
        numbered = details.with_row_index("who").select("who", "case", "threshold", FOUND_ON, FOUND)
        self.visits = numbered.explode(FOUND_ON, FOUND).filter(pl.col(FOUND_ON).is_not_null())

    @property
    def span(self) -> tuple[date, date] | None:
        """Days of the first and the last visit."""
        first, last = self.visits[FOUND_ON].min(), self.visits[FOUND_ON].max()
        return (first, last) if isinstance(first, date) and isinstance(last, date) else None

    def count(self, year: int) -> pl.DataFrame:
        """By case: members that had been inspected by the end of a year, and those of them at the threshold."""
        known = self.visits.filter(pl.col(FOUND_ON).dt.year() <= year)
        last = known.group_by("who", maintain_order=True).last()
        reached = (pl.col(FOUND) >= pl.col("threshold")).sum()
        return last.group_by("case").agg(members=pl.len(), reached=reached).sort("case")
