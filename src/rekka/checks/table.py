"""Checks on a table as a whole: how it was read, what became of its records, rows that no fit can take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from rekka.checks.engine import Finding, Severity, Subject, check, find
from rekka.checks.rows import Table, is_gap
from rekka.core.words import say
from rekka.model import inputs

NO_LOSS = "(?i)not inspected|not applicable|not the route|a second record|another record|repeated"  # no visit lost
MANY_SET_ASIDE = 0.20  # share of the records that could have been transitions
MANY_UPWARD = 0.05  # share of the pairs that could have been transitions


@check(Subject.TABLE, R001=Severity.NOTE)
def check_reading(table: Table) -> Iterator[Finding]:
    """How the table was understood."""
    if table.notes:
        yield find(Severity.NOTE, count=len(table.notes), notes=list(table.notes))


@check(Subject.TABLE, R111=Severity.WARNING)
def check_ends(table: Table) -> Iterator[Finding]:
    """Values at the very ends of an index."""
    ends = () if table.scale is None else table.scale.ends
    if ends:
        yield find(
            Severity.WARNING,
            rows=sorted({row for end in ends for row in end.rows}),
            count=sum(end.count for end in ends),
            values={"counts": {f"{end.value:g}": end.count for end in ends}},
            each=[say("check.R111.end", value=end.value, n=end.count) for end in ends],
            typed=",".join(f"{end.value:g}" for end in ends),
        )


@check(Subject.TABLE, R109=Severity.STOP)
def check_direction(table: Table) -> Iterator[Finding]:
    """A scale that was read from its wrong end."""
    moves = table.moves
    if moves.mostly_up:
        severity = Severity.STOP if moves.upside_down else Severity.WARNING
        values = {"upward": moves.upward, "downward": moves.downward}
        yield find(severity, count=moves.upward, values=values, turn=moves.turn)


@check(Subject.TABLE, R002=Severity.WARNING, R102=Severity.WARNING)
def check_audit(table: Table) -> Iterator[Finding]:
    """What became of the records, and the upward moves among them."""
    lines = table.audit
    if lines is None or lines.is_empty():
        return
    kept = count_records(lines, pl.col("outcome") == "transition")
    not_inspected = pl.col("reason").fill_null("").str.contains(NO_LOSS)
    aside = lines.filter(pl.col("outcome").str.ends_with("set aside"))
    lost = count_records(aside, ~not_inspected)
    share = lost / max(kept + lost, 1)
    reasons = (
        aside.select("outcome", "reason", "count").sort("count", descending=True, maintain_order=True).to_dicts()
    )
    values = {
        "records": count_records(lines),
        "transitions": kept,
        "last_visits": count_records(lines, pl.col("outcome") == "last visit"),
        "set_aside": count_records(aside),
        "share": share,
        "reasons": reasons,
    }
    yield find(
        Severity.WARNING if share > MANY_SET_ASIDE else Severity.NOTE,
        "found" if reasons else "none",
        *(["lost"] if lost else []),
        code="R002",
        do="remedy" if lost else "nothing",
        rows=_list_rows(aside.filter(~not_inspected)),
        count=count_records(aside),
        values=values,
        listed=[say("check.R002.reason", reason=line["reason"], n=line["count"]) for line in reasons],
    )
    upward = aside.filter(pl.col("reason").fill_null("").str.contains("(?i)upward|improved"))
    count = count_records(upward)
    if count:
        share = count / (kept + count)
        severity = Severity.WARNING if share > MANY_UPWARD else Severity.NOTE
        yield find(severity, code="R102", rows=_list_rows(upward), count=count, values={"share": share})


def count_records(lines: pl.DataFrame, which: pl.Expr | None = None) -> int:
    """The records in some lines of an audit."""
    return int((lines if which is None else lines.filter(which))["count"].sum())


def _list_rows(lines: pl.DataFrame) -> list[int]:
    """Row numbers of some lines of the audit."""
    return sorted(row for rows in lines["rows"] if rows is not None for row in rows)


@check(
    Subject.TABLE,
    limits={"most": inputs.MOST_STATES},
    **dict.fromkeys(("R003", "R101", "R103", "R201", "R301"), Severity.STOP),
)
def check_values(table: Table) -> Iterator[Finding]:
    """Rows that no fit can take."""
    for code in table.bad.columns:
        count = int(table.bad[code].sum())
        if not count:
            continue
        here, share = table.rows.filter(table.bad[code]), count / table.rows.height
        gaps = find_gaps(here, table.covariates) if code == "R301" else {}
        yield find(
            Severity.STOP,
            code=code,
            rows=here["row_1"].drop_nulls(),
            count=count,
            values={"share": share} | ({"covariates": gaps} if gaps else {}),
            total=table.rows.height,
            gaps=[say("check.R301.gap", name=name, n=gap) for name, gap in gaps.items()],
        )


def find_gaps(table: pl.DataFrame, names: Sequence[str]) -> dict[str, int]:
    """Missing or infinite values of each covariate that has some."""
    gaps = table.select(is_gap(name).sum().alias(name) for name in names).row(0)
    return {name: gap for name, gap in zip(names, gaps, strict=True) if gap}
