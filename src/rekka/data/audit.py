"""Audit of the records of an input: a count for each reason, which add up, and the rows behind it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

TRANSITION, LAST, PAIR, VISIT = "transition", "last visit", "pair set aside", "visit set aside"
FIRST_ROWS = 10  # row numbers named in the table; the list of excluded records has them all


@dataclass(frozen=True)
class Audit:
    """Outcomes of all records of an input; the counts add up to their number.

    A record is the first visit of one pair at most, so each has one outcome: it begins a transition, nothing
    follows it, its pair is excluded, or it is itself.

    ``table``      a line for each reason: outcome, reason, count, rows (numbers of the first ten)
    ``set_aside``  a line for each record excluded, with its reason; None where it went to a file
    ``records``    number of records
    ``moves``      transitions by case, from ``state_1`` to ``state_2``

    Examples
    --------
    >>> import rekka
    >>> audit = rekka.read_transitions(rekka.simulate_inventory(50, preset="plain").inspections).audit
    >>> audit.table["count"].sum() == audit.records
    True
    >>> audit.count("kept") == audit.transitions == audit.moves["transitions"].sum()
    True

    """

    table: pl.DataFrame
    set_aside: pl.DataFrame | None
    records: int
    moves: pl.DataFrame
    upward: int = 0  # pairs whose condition improved, known repairs apart
    downward: int = 0  # pairs whose condition worsened, whatever became of them

    def __post_init__(self) -> None:
        total = int(self.table["count"].sum())
        if total != self.records:
            raise AssertionError(f"the audit counts {total} records and the input has {self.records}")

    def count(self, reason: str) -> int:
        """Number of records of a reason."""
        return int(self.table.filter(pl.col("reason") == reason)["count"].sum())

    @property
    def transitions(self) -> int:
        """Number of records that begin a transition."""
        return int(self.table.filter(pl.col("outcome") == TRANSITION)["count"].sum())

    def explain_unusable(self, cases: Collection[str]) -> dict[str, str]:
        """Reasons why no pair of a component was kept, of all components but ``cases``.

        None where the excluded records are in a file.
        """
        if self.set_aside is None or "case" not in self.set_aside.columns:
            return {}
        pairs = self.set_aside.filter((pl.col("outcome") == PAIR) & ~pl.col("case").is_in(list(cases)))
        found: dict[str, list[str]] = {}
        counts = pairs.drop_nulls("case").group_by("case", "reason").len()
        for case, reason, count in counts.sort(-pl.col("len").cast(pl.Int64), "reason").iter_rows():
            found.setdefault(str(case), []).append(f"{reason}: {count:,}")
        return {
            case: f"no pair of visits can be used ({'; '.join(reasons)}). Correct these records, or leave a "
            "column that is missing in them out of the table"
            for case, reasons in found.items()
        }
