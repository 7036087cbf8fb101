"""What the checks on data look at: a table of transitions, and the usable rows of each component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.checks.engine import Finding, Severity, find
from rekka.core.errors import BadCovariates, BadOption, missing_columns
from rekka.core.words import Said, say
from rekka.data.attributes import NAMES, PLACES
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
        """What the estimator would refuse, one error for each covariate that has to go."""
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
        """The same rows with the covariates that the estimator takes."""
        return self.without([error.covariates[0] for error in self.refused])

    def without(self, names: Sequence[str]) -> Component:
        """The same rows without some of the covariates."""
        return self.with_covariates(tuple(name for name in self.covariates if name not in names))

    def with_covariates(self, names: tuple[str, ...]) -> Component:
        """The same rows with some of the covariates."""
        columns = [self.covariates.index(name) for name in names]
        return replace(self, covariates=names, x=self.x[:, columns])

    def find(self, severity: Severity, *names: str, **options: Any) -> Finding:
        """A finding on this component, whose sentences can ask for its number of rows."""
        return find(severity, *names, case=self.name, total=len(self.row), **options)


Components = dict[str, Component]


@dataclass(frozen=True, eq=False)
class Table:
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


def name_states(states: NDArray[np.intp] | Sequence[int]) -> Said:
    """'state 2', 'states 2, 3', of places from 0."""
    return say("states", n=len(states), states=[int(k) + 1 for k in states])


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


def split_cases(table: pl.DataFrame, names: Sequence[str]) -> Components:
    """Arrays of usable rows, component by component, in the order of their names."""
    cases = {}
    for rows in table.partition_by("case", maintain_order=True):
        name = str(rows["case"][0])
        state_1, state_2 = (rows[state].cast(pl.Int64).to_numpy() - 1 for state in ("state_1", "state_2"))
        x = rows.select(names).to_numpy() if names else np.zeros((rows.height, 0))
        row, dt = rows["row_1"].fill_null(-1).to_numpy(), rows["interval_years"].to_numpy()
        cases[name] = Component(name, tuple(names), row, state_1, state_2, dt, x)
    return dict(sorted(cases.items()))


def read_part(frame: pl.DataFrame, names: Sequence[str]) -> Components:
    """The usable rows of one part."""
    table = read_rows(frame, names)
    return split_cases(table.filter(~any_of(find_unusable(table, names))), names)
