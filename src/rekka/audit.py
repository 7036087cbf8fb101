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
    follows it, its pair was set aside, or it was itself.
    """

    table: pl.DataFrame
    set_aside: pl.DataFrame
    records: int

    def count(self, reason: str) -> int:
        """Records of a reason; 0 if there is none."""
        return int(self.table.filter(pl.col("reason") == reason)["count"].sum())

    @property
    def transitions(self) -> int:
        """Records that begin a transition."""
        return int(self.table.filter(pl.col("outcome") == TRANSITION)["count"].sum())


def build_audit(parts: list[pl.DataFrame], counts: pl.DataFrame, records: int) -> Audit:
    """One audit of the parts' records set aside and the counts of all reasons (code, outcome, reason, count)."""
    set_aside = pl.concat(parts).sort("row", *(c for c in ("column",) if c in parts[0].columns))
    rows = set_aside.group_by("reason").agg(rows=pl.col("row").unique().sort().head(FIRST_ROWS))
    table = (
        counts.group_by("code", "outcome", "reason")
        .agg(pl.col("count").sum())
        .filter(pl.col("count") > 0)
        .join(rows, on="reason", how="left")
        .sort("code")
        .select("outcome", "reason", "count", "rows")
    )
    total = int(table["count"].sum())
    if total != records:
        raise AssertionError(f"the audit counts {total} records and the input has {records}")
    return Audit(table, set_aside, records)
