"""The data doctor: what is in a table of transitions, what is wrong with it, and what to do, before any fit.

    transitions -> check_transitions -> Diagnosis (findings R001..., facts, notes)

A wrong table (a column missing, text for states, no rows) is an exception. Rows that no fit can take are findings
that stop the work; the other checks then go on with the rows that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from rekka.checks.cases import check_recorded, check_training
from rekka.checks.findings import Array, CaseRows, Diagnosis, Finding, Severity, first_rows, sort_findings
from rekka.checks.held_out import Cases, check_bridges, check_partition
from rekka.core.errors import BadOption, InputError, count_of, missing_columns
from rekka.data.attributes import NAMES, PLACES
from rekka.data.direction import Moves, count_moves
from rekka.data.partition import PARTS, Partition
from rekka.data.values import Scale
from rekka.model import inputs
from rekka.model.fit import linear_algebra

REQUIRED = ("bridge_id", "case", "state_1", "state_2", "interval_years")
ROLES = (*REQUIRED, *NAMES, *PLACES)
AUDIT = ("outcome", "reason", "count", "rows")

NO_LOSS = "(?i)not inspected|not applicable|not the route|a second record|another record|repeated"  # no visit lost
MANY_SET_ASIDE = 0.20  # share of the records that could have been transitions
MANY_UPWARD = 0.05  # share of the pairs that could have been transitions

TURN = "Turn the scale round: --worst-first, or --best and --worst for numbers, or --labels, best first."

UNUSABLE = {
    "R003": (
        "no bridge_id or no case",
        "Fill in the names: rows of one bridge have to stay together when the table is split.",
    ),
    "R101": (
        f"a state that is missing, below 1, above {inputs.MOST_STATES} or not whole",
        "States are whole numbers from 1, the best. Translate the ranks, and leave 'not inspected' blank.",
    ),
    "R103": (
        "an end state better than the start state",
        "Condition may only worsen in this model. Set repairs aside, or split the history at the repair.",
    ),
    "R201": (
        "an interval that is missing, 0 or negative",
        "Correct the dates, or set such pairs aside: the model needs the years between two inspections.",
    ),
    "R301": (
        "a missing or infinite covariate",
        "Fill the values in, leave the covariate out, or set the rows aside; rekka does none of it silently.",
    ),
}


def check_transitions(
    transitions: Any,
    *,
    covariates: Sequence[str] | None = None,
    audit: Any = None,
    notes: Sequence[str] = (),
    partition: Partition | None = None,
    scale: Scale | None = None,
    moves: Moves | None = None,
) -> Diagnosis:
    """Examine transitions before a fit.

    Parameters
    ----------
    transitions : dataframe
        bridge_id, case, state_1, state_2 (1 is the best), interval_years and covariates. Findings name rows by
        row_1, or by their place in the frame, from 0, if there is no such column.
    covariates : list of names, optional
        Default: every numeric column without another role.
    audit : dataframe, optional
        outcome, reason, count and rows: what became of the records of the table, one line for each reason.
    notes : sentences, optional
        How the table was read.
    partition : Partition, optional
        What the model can learn is then checked on the training rows, and held-out rows against them.
    scale : Scale, optional
        What the states are, as they were read: ``Transitions.scale``.
    moves : Moves, optional
        Pairs that improved and worsened, as ``Transitions.moves`` has them; by default counted in the rows and the
        audit.

    """
    frame: pl.DataFrame = inputs.as_frame(transitions).to_polars()
    names = find_covariates(frame, covariates)
    table = read_rows(frame, names)
    if table.is_empty():
        raise InputError("The table has no rows. At least one transition is needed.")
    bad = find_unusable(table, names)
    usable = table.filter(~any_of(bad))
    cases = split_cases(usable, names)
    parts = {} if partition is None else {part: read_part(getattr(partition, part), names) for part in PARTS}
    found = [*check_reading(notes), *check_audit(audit), *check_direction(moves or _find_moves(audit, table))]
    found += [*check_ends(scale), *check_values(table, bad, names)]
    with linear_algebra().limit(limits=1, user_api="blas"):
        for case in cases.values():
            found += check_recorded(case)
        for case in parts.get("train", cases).values():
            found += check_training(case)
    if partition is not None:
        found += [*check_partition(cases, parts), *check_bridges(partition)]
    return Diagnosis(sort_findings(found), describe(table.height, usable, cases, partition), tuple(notes))


def find_covariates(frame: pl.DataFrame, covariates: Sequence[str] | None) -> tuple[str, ...]:
    """The named covariates, or every numeric column that has no role."""
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise missing_columns(missing, frame.columns)
    if covariates is None:
        return tuple(n for n, kind in frame.schema.items() if n not in ROLES and kind.is_numeric())
    names = inputs.find_columns(inputs.as_frame(frame).columns, "state_1", "interval_years", covariates).covariates
    for name in names:
        if name in (*REQUIRED, "row_1"):
            raise BadOption(f"covariates names {name}, which has another role in the table.", value=name)
    return names


def read_rows(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Row number, bridge, case as text, and all else as float64; text where numbers are needed is refused."""
    numbers = ("state_1", "state_2", "interval_years", *names)
    missing = [name for name in (*REQUIRED, *names) if name not in frame.columns]
    if missing:
        raise missing_columns(missing, frame.columns)
    for name in numbers:
        kind = frame.schema[name]
        if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
            inputs.read_covariates(inputs.as_frame(frame), [name])  # raises, with the row and the text
    counted_by_user = "row_1" in frame.columns and frame.schema["row_1"].is_integer()
    row = pl.col("row_1") if counted_by_user else pl.int_range(pl.len()).alias("row_1")
    return frame.select(
        row.cast(pl.Int64),
        "bridge_id",
        pl.col("case").cast(pl.String),
        *(pl.col(name).cast(pl.Float64) for name in numbers),
    )


def find_unusable(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """One column of marks for each finding that makes a row unusable."""

    def fails(column: str, good: pl.Expr) -> pl.Expr:
        return ~(pl.col(column).is_finite() & good).fill_null(False)

    def is_state(column: str) -> pl.Expr:
        return pl.col(column).is_between(1, inputs.MOST_STATES) & (pl.col(column) == pl.col(column).floor())

    no_state = fails("state_1", is_state("state_1")) | fails("state_2", is_state("state_2"))
    wrong = {
        "R003": pl.col("bridge_id").is_null() | pl.col("case").is_null(),
        "R101": no_state,
        "R103": ~no_state & (pl.col("state_2") < pl.col("state_1")),
        "R201": fails("interval_years", pl.col("interval_years") > 0),
        "R301": pl.any_horizontal(pl.lit(False), *(is_gap(name) for name in names)),
    }
    return table.select(**wrong)


def is_gap(name: str) -> pl.Expr:
    """Missing, infinite, or so large that it might as well be."""
    return ~((pl.col(name).abs() < inputs.INFINITE) & pl.col(name).is_not_nan()).fill_null(False)


def any_of(marks: pl.DataFrame) -> pl.Series:
    """Whether a row has any of the marks."""
    return marks.select(pl.any_horizontal(pl.all())).to_series()


def split_cases(table: pl.DataFrame, names: Sequence[str]) -> Cases:
    """Arrays of usable rows, case by case, in the order of their names."""
    cases = {}
    for rows in table.partition_by("case", maintain_order=True):
        name = str(rows["case"][0])
        state_1, state_2 = (rows[state].cast(pl.Int64).to_numpy() - 1 for state in ("state_1", "state_2"))
        x = rows.select(names).to_numpy() if names else np.zeros((rows.height, 0))
        row, dt = rows["row_1"].fill_null(-1).to_numpy(), rows["interval_years"].to_numpy()
        cases[name] = CaseRows(name, tuple(names), row, state_1, state_2, dt, x)
    return dict(sorted(cases.items()))


def read_part(frame: pl.DataFrame, names: Sequence[str]) -> Cases:
    """The usable rows of one part."""
    table = read_rows(frame, names)
    return split_cases(table.filter(~any_of(find_unusable(table, names))), names)


def check_reading(notes: Sequence[str]) -> Iterator[Finding]:
    """R001: how the table was understood."""
    if notes:
        yield Finding(
            "R001",
            Severity.NOTE,
            " ".join(notes),
            "Correct the names and meanings where this is not what the table says.",
            count=len(notes),
        )


def check_ends(scale: Scale | None) -> Iterator[Finding]:
    """R111: values at the very ends of an index."""
    if scale is None or not scale.ends:
        return
    each = " and ".join(f"exactly {end.value:g} in {count_of(end.count, 'record')}" for end in scale.ends)
    values = ",".join(f"{end.value:g}" for end in scale.ends)
    yield Finding(
        "R111",
        Severity.WARNING,
        f"The index is {each}. Such values are more often placeholders, for a bridge that was not inspected or is "
        "new, than measurements.",
        f"Look at these rows. If nobody measured them, leave them out: --not-inspected {values}, or missing = "
        f"[{values}] in [state] of a mapping.",
        rows=first_rows(sorted({row for end in scale.ends for row in end.rows})),
        count=sum(end.count for end in scale.ends),
        values={"counts": {f"{end.value:g}": end.count for end in scale.ends}},
    )


def check_direction(moves: Moves) -> Iterator[Finding]:
    """R109: a scale that was read from its wrong end."""
    if moves.mostly_up:
        yield Finding(
            "R109",
            Severity.STOP if moves.upside_down else Severity.WARNING,
            moves.message,
            moves.turn,
            count=moves.upward,
            values={"upward": moves.upward, "downward": moves.downward},
        )


def _find_moves(audit: Any, table: pl.DataFrame) -> Moves:
    """Moves in the rows, and the upward ones that the audit has set aside."""
    own = count_moves(table.lazy(), "the table")
    if audit is None:
        return own
    lines: pl.DataFrame = inputs.as_frame(audit).to_polars()
    aside = _total(lines.filter(pl.col("reason").fill_null("").str.contains("(?i)upward")))
    return Moves(own.upward + aside, own.downward, TURN)


def check_audit(audit: Any) -> Iterator[Finding]:
    """R002 and R102: what became of the records, and the upward moves among them."""
    if audit is None:
        return
    lines: pl.DataFrame = inputs.as_frame(audit).to_polars()
    missing = [name for name in AUDIT if name not in lines.columns]
    if missing:
        raise missing_columns(missing, lines.columns)
    if lines.is_empty():
        return
    kept = _total(lines, pl.col("outcome") == "transition")
    last = _total(lines, pl.col("outcome") == "last visit")
    not_inspected = pl.col("reason").fill_null("").str.contains(NO_LOSS)
    aside = lines.filter(pl.col("outcome").str.ends_with("set aside"))
    lost = _total(aside, ~not_inspected)
    share = lost / max(kept + lost, 1)
    reasons = (
        aside.select("outcome", "reason", "count").sort("count", descending=True, maintain_order=True).to_dicts()
    )
    listed = "; ".join(f"{line['reason']}: {line['count']:,}" for line in reasons)
    yield Finding(
        "R002",
        Severity.WARNING if share > MANY_SET_ASIDE else Severity.NOTE,
        f"{count_of(_total(lines), 'record')}: {count_of(kept, 'transition')}, {count_of(last, 'last visit')}, "
        f"{_total(aside):,} set aside"
        + (f" ({listed})." if listed else ".")
        + (f" Of the records that could have been transitions {share:.1%} are lost." if lost else ""),
        "Look at the reasons, the largest first: what is set aside is seldom a random sample of the bridges."
        if lost
        else "Nothing to do.",
        rows=_rows(aside.filter(~not_inspected)),
        count=_total(aside),
        values={
            "records": _total(lines),
            "transitions": kept,
            "last_visits": last,
            "set_aside": _total(aside),
            "share": share,
            "reasons": reasons,
        },
    )
    upward = aside.filter(pl.col("reason").fill_null("").str.contains("(?i)upward|improved"))
    count = _total(upward)
    if count:
        yield _upward_set_aside(count, count / (kept + count), _rows(upward))


def _upward_set_aside(count: int, share: float, rows: tuple[int, ...]) -> Finding:
    return Finding(
        "R102",
        Severity.WARNING if share > MANY_UPWARD else Severity.NOTE,
        f"{count_of(count, 'upward move')} set aside: {share:.1%} of the pairs that could have been transitions.",
        "They are repairs or differences between inspectors. Without repairs the hazards are those of bridges "
        "left alone, as they should be. Without upward rating noise its downward half stays, and the hazards come "
        "out too high: compare a sample of these rows with the repair records.",
        rows=rows,
        count=count,
        values={"share": share},
    )


def _total(lines: pl.DataFrame, which: pl.Expr | None = None) -> int:
    return int((lines if which is None else lines.filter(which))["count"].sum())


def _rows(lines: pl.DataFrame) -> tuple[int, ...]:
    """Row numbers of some lines of the audit."""
    return first_rows(sorted(row for rows in lines["rows"] if rows is not None for row in rows))


def check_values(table: pl.DataFrame, bad: pl.DataFrame, names: Sequence[str]) -> Iterator[Finding]:
    """R003, R101, R103, R201, R301: rows that no fit can take."""
    for code, (words, remedy) in UNUSABLE.items():
        count = int(bad[code].sum())
        if not count:
            continue
        here, share = table.filter(bad[code]), count / table.height
        gaps = find_gaps(here, names) if code == "R301" else {}
        each = f" ({', '.join(f'{name}: {gap:,}' for name, gap in gaps.items())})" if gaps else ""
        yield Finding(
            code,
            Severity.STOP,
            f"{count_of(count, 'row')} of {table.height:,} ({share:.1%}) with {words}{each}.",
            remedy,
            rows=first_rows(here["row_1"].drop_nulls()),
            count=count,
            values={"share": share} | ({"covariates": gaps} if gaps else {}),
        )


def find_gaps(table: pl.DataFrame, names: Sequence[str]) -> dict[str, int]:
    """Missing or infinite values of each covariate that has some."""
    gaps = table.select(is_gap(name).sum().alias(name) for name in names).row(0)
    return {name: gap for name, gap in zip(names, gaps, strict=True) if gap}


def describe(n_rows: int, usable: pl.DataFrame, cases: Cases, partition: Partition | None) -> dict[str, Any]:
    """The facts: the table's rows, and its usable rows in figures, together and case by case."""
    bridges = usable.group_by("case").agg(pl.col("bridge_id").n_unique())
    of_case = dict(zip(bridges["case"], bridges["bridge_id"], strict=True))
    facts: dict[str, Any] = {
        "rows": n_rows,
        "usable_rows": usable.height,
        "bridges": usable["bridge_id"].n_unique(),
        "cases": {
            name: {"rows": len(case.row), "bridges": of_case[name], **describe_case(case)}
            for name, case in cases.items()
        },
        "partition": None,
    }
    if partition is not None:
        counts = partition.counts().with_columns(pl.col("case").cast(pl.String))
        facts["partition"] = {"scheme": partition.scheme, "rows": counts.to_dicts()}
    return facts


def describe_case(case: CaseRows) -> dict[str, Any]:
    """States, transitions, intervals and covariates of one case in figures."""
    pairs, counts = np.unique(case.start * inputs.MOST_STATES + case.end, return_counts=True)
    return {
        "states": case.n_states,
        "transitions": [
            {
                "start": int(pair) // inputs.MOST_STATES + 1,
                "end": int(pair) % inputs.MOST_STATES + 1,
                "rows": int(count),
            }
            for pair, count in zip(pairs, counts, strict=True)
        ],
        "interval_years": summarize(case.dt),
        "covariates": {name: summarize(x) for name, x in zip(case.covariates, case.x.T, strict=True)},
    }


def summarize(values: Array) -> dict[str, float]:
    """Minimum, quartiles, maximum and mean."""
    quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    figures = dict(zip(("min", "q25", "median", "q75", "max"), map(float, quantiles), strict=True))
    return figures | {"mean": float(values.mean())}
