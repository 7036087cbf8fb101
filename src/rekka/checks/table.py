"""Tables of transitions as checks see them, and the checks on a table as a whole.

The checks are about how the table was read, what became of its records, and rows that no fit can take. Those on
one component are in ``components``, those on a partition in ``held_out``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, SupportsInt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.checks.engine import Finding, Severity, Subject, check, find
from rekka.core.errors import BadCovariates, BadOption, missing_columns
from rekka.core.language import Said, say
from rekka.core.ratings import Ratings
from rekka.data.attributes import NAMES, PLACES, is_text
from rekka.data.categories import NO_CODING, Coding, fit_coding
from rekka.data.direction import Moves
from rekka.data.partition import Partition
from rekka.data.values import Scale
from rekka.model import inputs

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

REQUIRED = ("bridge_id", "case", "state_1", "state_2", "interval_years")
ROLES = (*REQUIRED, *NAMES, *PLACES)


@dataclass(frozen=True, eq=False)
class Component:
    """Usable rows of one component: states 0-based, years, raw covariates x (n, p); ``row`` as the user counts."""

    name: str
    covariates: tuple[str, ...]
    row: Ints
    start: Ints
    end: Ints
    dt: Array
    x: Array
    plain: tuple[str, ...] = ()  # the 0/1 columns of categories among the covariates
    labels: tuple[str, ...] | None = None  # of the states

    @property
    def ratings(self) -> Ratings:
        """Ratings that the states are."""
        return Ratings.of(self.labels, max(self.n_states, len(self.labels or ())))

    @property
    def numbers(self) -> Component:
        """Rows without the columns of categories, which have no range, tail or unit."""
        return self.without(self.plain)

    @property
    def n_states(self) -> int:
        """K, the worst state seen."""
        return int(self.end.max()) + 1

    @property
    def moves(self) -> bool:
        """Whether some row moves to a worse state."""
        return bool((self.end > self.start).any())

    @property
    def departures(self) -> Ints:
        """Rows that left each state (start <= k < end), (K-1,)."""
        return np.array([np.sum((self.start <= k) & (self.end > k)) for k in range(self.n_states - 1)], np.int64)

    @property
    def seen(self) -> Mask:
        """Whether some row starts or ends in each state, (K,)."""
        return np.isin(np.arange(self.n_states), np.concatenate([np.unique(self.start), np.unique(self.end)]))

    @cached_property
    def refused(self) -> list[BadCovariates]:
        """Errors of the estimator, one for each covariate that has to go."""
        errors: list[BadCovariates] = []
        case = self
        while True:
            try:
                inputs.check_covariates(case.x, case.covariates)
            except BadCovariates as error:
                errors.append(error)
                case = case.without(error.covariates[:1])
            else:
                return errors

    @cached_property
    def accepted(self) -> Component:
        """Rows with those covariates that the estimator takes."""
        return self.without([error.covariates[0] for error in self.refused])

    def without(self, names: Sequence[str]) -> Component:
        """Drop some of the covariates."""
        return self.with_covariates(tuple(name for name in self.covariates if name not in names))

    def with_covariates(self, names: tuple[str, ...]) -> Component:
        """Keep some of the covariates."""
        columns = [self.covariates.index(name) for name in names]
        plain = tuple(name for name in self.plain if name in names)
        return replace(self, covariates=names, x=self.x[:, columns], plain=plain)

    def name_ratings(self, *places: SupportsInt, first: bool = False) -> Said:
        """'rating c', 'ratings b, c', of places from 0; ``first`` at the beginning of a sentence."""
        return self.ratings.said([int(place) + 1 for place in places], first=first)

    def find(self, severity: Severity, *names: str, **options: Any) -> Finding:
        """A finding on this component, whose sentences can ask for its number of rows."""
        return find(severity, *names, case=self.name, total=len(self.row), **options)


Components = dict[str, Component]


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A table of transitions as checks see it: its rows, marks of the unusable ones, and how it was read."""

    rows: pl.DataFrame
    covariates: tuple[str, ...]
    bad: pl.DataFrame  # a column of marks for each code that makes a row unusable
    cases: Components
    parts: Mapping[str, Components]  # empty without a partition
    partition: Partition | None
    moves: Moves
    audit: pl.DataFrame | None
    notes: tuple[str, ...]
    scale: Scale | None


def find_covariates(frame: pl.DataFrame, covariates: Sequence[str] | None) -> tuple[str, ...]:
    """Named covariates, or every numeric column that has no role."""
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


def code_categories(frame: pl.DataFrame, names: Sequence[str]) -> Coding:
    """The coding of the categories among the covariates, for all components together."""
    named = [name for name in names if is_text(frame.schema[name])]
    return fit_coding(frame.lazy(), named, pl.col("state_2") > pl.col("state_1")) if named else NO_CODING


def split_cases(
    table: pl.DataFrame, names: Sequence[str], plain: Sequence[str] = (), labels: tuple[str, ...] | None = None
) -> Components:
    """Arrays of usable rows, component by component, in the order of their names.

    A level that a component does not have is none of its covariates.
    """
    cases = {}
    for rows in table.partition_by("case", maintain_order=True):
        name = str(rows["case"][0])
        state_1, state_2 = (rows[state].cast(pl.Int64).to_numpy() - 1 for state in ("state_1", "state_2"))
        x = rows.select(names).to_numpy() if names else np.zeros((rows.height, 0))
        row, dt = rows["row_1"].fill_null(-1).to_numpy(), rows["interval_years"].to_numpy()
        case = Component(name, tuple(names), row, state_1, state_2, dt, x, tuple(plain), labels)
        absent = [one for one in plain if rows[one].n_unique() == 1]
        cases[name] = case.without(absent) if absent else case
    return dict(sorted(cases.items()))


def read_part(
    frame: pl.DataFrame,
    names: Sequence[str],
    coding: Coding = NO_CODING,
    labels: tuple[str, ...] | None = None,
) -> Components:
    """Usable rows of one part; ``names`` are the covariates with the terms of categories."""
    table = read_rows(coding.code(frame.lazy()).collect() if coding else frame, names)
    return split_cases(table.filter(~any_of(find_unusable(table, names))), names, coding.terms, labels)


NO_LOSS = "(?i)not inspected|not applicable|not the route|a second record|another record|repeated"  # no visit lost
MANY_SET_ASIDE = 0.20  # share of the records that could have been transitions
MANY_UPWARD = 0.05  # share of the pairs that could have been transitions


@check(Subject.TABLE, R001=Severity.NOTE)
def check_reading(table: CheckedTable) -> Iterator[Finding]:
    """Notes on how the table was read."""
    if table.notes:
        yield find(Severity.NOTE, count=len(table.notes), notes=list(table.notes))


@check(Subject.TABLE, R111=Severity.WARNING)
def check_ends(table: CheckedTable) -> Iterator[Finding]:
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
def check_direction(table: CheckedTable) -> Iterator[Finding]:
    """A scale that was read from its wrong end."""
    moves = table.moves
    if moves.mostly_up:
        severity = Severity.STOP if moves.upside_down else Severity.WARNING
        values = {"upward": moves.upward, "downward": moves.downward}
        advice = _list_other_causes(table.scale)
        do = "advised" if advice else "remedy"
        yield find(severity, count=moves.upward, values=values, do=do, turn=moves.turn, advice=advice)


def _list_other_causes(scale: Scale | None) -> list[Said]:
    """Sentences on what else than its direction makes condition seem to improve."""
    if scale is None:
        return []
    zeros = [say("check.R109.zeros", n=end.count) for end in scale.ends if not end.value]
    if scale.repairs is None:
        return zeros
    if not scale.repairs:
        return [say("check.R109.no_repairs"), *zeros]
    return [say("check.R109.repairs", columns=list(scale.repairs)), *zeros]


@check(Subject.TABLE, R002=Severity.WARNING, R102=Severity.WARNING)
def check_audit(table: CheckedTable) -> Iterator[Finding]:
    """Outcomes of the records, and the upward moves among them."""
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
    """Records in some lines of an audit."""
    return int((lines if which is None else lines.filter(which))["count"].sum())


def _list_rows(lines: pl.DataFrame) -> list[int]:
    """Row numbers of some lines of the audit."""
    return sorted(row for rows in lines["rows"] if rows is not None for row in rows)


@check(
    Subject.TABLE,
    limits={"most": inputs.MOST_STATES},
    **dict.fromkeys(("R003", "R101", "R103", "R201", "R301"), Severity.STOP),
)
def check_values(table: CheckedTable) -> Iterator[Finding]:
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
