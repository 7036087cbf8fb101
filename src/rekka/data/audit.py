"""What became of every record of the input: a count for each reason that adds up, and the rows behind it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

TRANSITION, LAST, PAIR, VISIT = "transition", "last visit", "pair set aside", "visit set aside"
FIRST_ROWS = 10  # row numbers named in the table; the list of records set aside has them all


@dataclass(frozen=True)
class Audit:
    """``table``: outcome, reason, count, first rows. ``set_aside``: each record of no transition, and why.

    A record is the first visit of one pair at most, so each has one outcome: it begins a transition, nothing
    follows it, its pair was set aside, or it was itself. ``set_aside`` is None where it went to a file.
    """

    table: pl.DataFrame
    set_aside: pl.DataFrame | None
    records: int
    upward: int = 0  # pairs whose condition improved, known repairs apart
    downward: int = 0  # pairs whose condition worsened, whatever became of them

    def __post_init__(self) -> None:
        total = int(self.table["count"].sum())
        if total != self.records:
            raise AssertionError(f"the audit counts {total} records and the input has {self.records}")

    def count(self, reason: str) -> int:
        """Records of a reason; 0 if there is none."""
        return int(self.table.filter(pl.col("reason") == reason)["count"].sum())

    @property
    def transitions(self) -> int:
        """Records that begin a transition."""
        return int(self.table.filter(pl.col("outcome") == TRANSITION)["count"].sum())
