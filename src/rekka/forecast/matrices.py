"""Transition matrices of a member with given covariates, and tables of them.

    P(t) = P(1) at age a + 1/2, times P(1) at age a + 3/2, ...      where age advances
    P(t) = exp(Q t)                                          where covariates stay as they are

Intervals are those of each probability by itself. The rows of ``probability`` sum to 1; those of ``low`` and
``high`` do not, and no matrix has all of its entries there at once.

Tables come in the layouts of bridge management systems:

    square    a row for each state at the beginning, a column for each at the end
    long      a row for each pair of states, with intervals; a better state later cannot be, and has no row
    percent   a row for each state: the percentages that stay and that are one, two, ... states worse after the
              period, in the layout of the element tables of Pontis and its kin; each row sums to 100 as rounded
    median    a row for each case: the median years T1, T2, ... in each state before it is left, and a shape, in
              the layout in which AASHTOWare BrM takes deterioration

No file is made to be imported by a product without a look at what that product's version wants. A median is log
2 / hazard, and the shape is 1, because the hazard of a state does not change while a member is in it. Where age
advances it does change, and this layout has no place for that: medians are then those at the age that was given,
as if it stayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, BadValues, bad_option
from rekka.forecast.ageing import Ageing
from rekka.forecast.forecast import AT_REST, Cohort, ForecastOptions, make_cohort, read_years
from rekka.forecast.propagation import propagate
from rekka.forecast.uncertainty import LOG, LOGIT, NONE
from rekka.model.family import EXPONENTIAL, Family
from rekka.model.fit import Fit
from rekka.model.tables import TitledTable, table

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matrix:
    """Probabilities (K, K) of each state, by column, for members in each state, by row, ``years`` before.

    ``hazard`` (K-1,) is that of leaving each state, a year, at the given covariates. Without intervals ``low`` and
    ``high`` are NaN. ``course`` describes the ageing; ``notes`` are warnings; ``labels`` are the names of the
    states, best first.
    """

    probability: Array
    low: Array
    high: Array
    hazard: Array
    hazard_low: Array
    hazard_high: Array
    years: float
    level: float
    intervals: str
    course: str
    advancing: tuple[str, ...]
    covariates: dict[str, float | str]  # a category by its level
    labels: tuple[str, ...]
    certified: bool
    notes: tuple[str, ...]
    case: str | None = None
    family: Family = EXPONENTIAL  # of the hazards: it knows the years in a state

    @property
    def n_states(self) -> int:
        """Number of states, K."""
        return len(self.probability)

    @property
    def told(self) -> str:
        """Covariates as text: 'age=41; traffic_mean=8000'."""
        values = self.covariates.items()
        return "; ".join(f"{n}={v}" if isinstance(v, str) else f"{n}={v:.10g}" for n, v in values) or "none"

    def __str__(self) -> str:
        """Table of the probabilities, without intervals."""
        title = [*self.notes, f"probabilities after {self.years:g} years, at {self.told}; {self.course}"]
        columns = {label: self.probability[:, place] for place, label in enumerate(self.labels)}
        return str(table("\n".join(title), {"from / to": list(self.labels), **columns}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, None where there is no number."""
        arrays = ("probability", "low", "high", "hazard", "hazard_low", "hazard_high")
        others = ("years", "level", "intervals", "course", "certified", "case")
        lists = {"labels": list(self.labels), "advancing": list(self.advancing), "notes": list(self.notes)}
        return (
            {name: getattr(self, name) for name in others}
            | {"covariates": dict(self.covariates)}
            | lists
            | {name: _plain(getattr(self, name)) for name in arrays}
        )


def transition_matrices(
    fit: Fit,
    x: Array,
    years: Sequence[float],
    options: ForecastOptions = AT_REST,
    *,
    labels: Sequence[str] | None = None,
    case: str | None = None,
) -> tuple[Matrix, ...]:
    """Matrices of a member with raw covariates x (p,), one for each number of years."""
    times = read_years(list(years))
    if (times <= 0).any():
        raise BadOption(f"years holds {times[0]:g}; a matrix needs a time above 0.", option="years")
    start = np.arange(fit.n_states)
    cohort = make_cohort(fit, start, np.tile(_check_covariates(fit, x), (start.size, 1)), options, labels)
    names = tuple(str(state + 1) for state in start) if labels is None else tuple(labels[: start.size])
    return tuple(
        _make_matrix(cohort, p, float(time), names, case)
        for time, p in zip(times, propagate(cohort.propagator, start, times), strict=True)
    )


def list_outside(fit: Fit, ageing: Ageing, x: Array) -> tuple[str, ...]:
    """Sentences on the covariates x (p,) that lie outside the range of the training rows."""
    rows = zip(fit.covariates, x, ageing.low, ageing.high, ageing.outside(x[None])[0], strict=True)
    return tuple(
        f"{name} = {value:,.6g} lies outside the training rows ({low:,.6g} to {high:,.6g}): the model "
        "extrapolates."
        for name, value, low, high, outside in rows
        if outside
    )


def describe_intervals(level: float, kind: str) -> str:
    """'95 % intervals (normal)', or that there are none."""
    return "no intervals" if kind == NONE else f"{100 * level:.6g} % intervals ({kind})"


def list_passing(cohort: Cohort, years: float) -> tuple[str, ...]:
    """Sentences on the covariates that leave the range of the training rows within the years."""
    if not cohort.ageing.moves or not np.isfinite(years):
        return ()
    last = max(np.ceil(years) - 1.0, 0.0)  # where the last step begins, whose middle has the largest age
    last = 0.5 * (last + years)
    passed = np.atleast_1d((cohort.outside(last) & ~cohort.outside()).any(axis=0))
    return tuple(
        f"{name} passes the largest of the training rows ({high:,.6g}) within {years:,.4g} years: from there on "
        "the model extrapolates."
        for name, high, beyond in zip(cohort.fit.covariates, cohort.ageing.high, passed, strict=True)
        if beyond
    )


def _make_matrix(cohort: Cohort, p: Array, years: float, labels: tuple[str, ...], case: str | None) -> Matrix:
    """Matrix from state probabilities p (B, K, K) at one time."""
    uncertainty, x = cohort.uncertainty, cohort.x[0]
    hazard = cohort.propagator.hazards(0.0)[:, 0, :]
    low, high = uncertainty.interval(p, LOGIT)
    hazard_low, hazard_high = uncertainty.interval(hazard, LOG)
    return Matrix(
        probability=p[0],
        low=low,
        high=high,
        hazard=hazard[0],
        hazard_low=hazard_low,
        hazard_high=hazard_high,
        years=years,
        **cohort.conditions,
        advancing=cohort.ageing.names,
        covariates=cohort.fit.describe(x),
        labels=labels,
        notes=(*cohort.notes, *list_outside(cohort.fit, cohort.ageing, x), *list_passing(cohort, years)),
        case=case,
        family=cohort.fit.family,
    )


def _check_covariates(fit: Fit, x: Array) -> Array:
    """Check x: a finite number for each covariate."""
    values = np.asarray(x, dtype=np.float64).ravel()
    if values.size != len(fit.covariates) or not np.isfinite(values).all():
        raise BadValues(
            f"x is {values.tolist()}; a finite number for each of {', '.join(fit.covariates) or 'no covariates'} "
            "is needed."
        )
    return values


def _plain(values: Array) -> list[Any]:
    """Nested lists, with None for what is no finite number."""
    if values.ndim > 1:
        return [_plain(row) for row in values]
    return [float(value) if np.isfinite(value) else None for value in values]


Row = dict[str, Any]

SQUARE, LONG, PERCENT, MEDIAN = "square", "long", "percent", "median"
LAYOUTS = (SQUARE, LONG, PERCENT, MEDIAN)
DECIMALS, MOST_DECIMALS = 1, 6  # of percentages
SHAPE = 1.0  # of a Weibull distribution whose hazard is constant


def lay_out(matrices: Matrix | Sequence[Matrix], layout: str = SQUARE, *, decimals: int = DECIMALS) -> TitledTable:
    """Lay out matrices as one table; ``decimals`` are those of percentages."""
    some = (matrices,) if isinstance(matrices, Matrix) else tuple(matrices)
    if layout not in LAYOUTS:
        raise bad_option("layout", layout, LAYOUTS)
    if not some:
        raise BadOption("There is no matrix to lay out.", option="matrices")
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= MOST_DECIMALS:
        raise BadOption(f"decimals is {decimals!r}; a whole number from 0 to {MOST_DECIMALS} is needed.")
    titles = {
        SQUARE: "probability of each state (to) after so many years, by the state at their beginning (from)",
        LONG: f"probability of each state after so many years, {_describe_intervals(some)}",
        PERCENT: "percent that stay in their state, and that are so many states worse, after so many years",
        MEDIAN: f"median years in each state before it is left, {_describe_intervals(some)}{_describe_age(some)}",
    }
    makers: dict[str, Callable[[Sequence[Matrix]], list[Row]]] = {
        SQUARE: _list_square,
        LONG: _list_long,
        PERCENT: partial(_list_percent, decimals=decimals),
        MEDIAN: _list_medians,
    }
    notes = dict.fromkeys(_place(matrix) + note for matrix in some for note in matrix.notes)
    return _tabulate("\n".join([*notes, titles[layout]]), makers[layout](some))


def round_together(shares: Iterable[float], decimals: int = DECIMALS) -> list[float]:
    """Round shares of a whole to percentages that sum to 100: by largest remainder, ties to the better state.

    None is further from its share than one unit of the last decimal.
    """
    unit = 10**decimals
    exact = np.asarray(list(shares), dtype=np.float64)
    exact = exact / exact.sum() * (100 * unit)
    whole = np.floor(exact).astype(np.int64)
    left = 100 * unit - int(whole.sum())
    whole[np.argsort(-(exact - whole), kind="stable")[:left]] += 1
    return [int(value) / unit for value in whole]


def _list_square(matrices: Sequence[Matrix]) -> list[Row]:
    widest = max(matrix.n_states for matrix in matrices)
    return [
        _head(matrix)
        | {"from_state": state + 1, "from_label": matrix.labels[state]}
        | _pad("to_{}", matrix.probability[state], range(1, widest + 1))
        | _tail(matrix)
        for matrix in matrices
        for state in range(matrix.n_states)
    ]


def _list_long(matrices: Sequence[Matrix]) -> list[Row]:
    return [
        _head(matrix)
        | {
            "from_state": first + 1,
            "from_label": matrix.labels[first],
            "to_state": last + 1,
            "to_label": matrix.labels[last],
            "probability": float(matrix.probability[first, last]),
            "low": float(matrix.low[first, last]),
            "high": float(matrix.high[first, last]),
            "level": matrix.level,
            "intervals": matrix.intervals,
        }
        | _tail(matrix)
        for matrix in matrices
        for first in range(matrix.n_states)
        for last in range(first, matrix.n_states)
    ]


def _list_percent(matrices: Sequence[Matrix], decimals: int) -> list[Row]:
    widest = max(matrix.n_states for matrix in matrices)
    found = []
    for matrix in matrices:
        for state in range(matrix.n_states):
            stays, *worse = round_together(matrix.probability[state, state:], decimals)
            found.append(
                _head(matrix)
                | {"state": state + 1, "label": matrix.labels[state], "stays_percent": stays}
                | _pad("worse_by_{}_percent", worse, range(1, widest))
                | _tail(matrix)
            )
    return found


def _list_medians(matrices: Sequence[Matrix]) -> list[Row]:
    """Rows of medians: one for each case and its covariates, whatever the years of its matrices."""
    widest = max(matrix.n_states for matrix in matrices)
    found: dict[tuple[str | None, str], Row] = {}
    for matrix in matrices:
        with np.errstate(divide="ignore"):
            years, high, low = (
                matrix.family.median_years(one) for one in (matrix.hazard, matrix.hazard_low, matrix.hazard_high)
            )
        row: Row = {"case": matrix.case}
        for state in range(1, widest):
            for name, some in (("t{}_years", years), ("t{}_low_years", low), ("t{}_high_years", high)):
                row[name.format(state)] = float(some[state - 1]) if state < matrix.n_states else None
        found.setdefault((matrix.case, matrix.told), row | {"shape": SHAPE} | _tail(matrix))
    return list(found.values())


def _head(matrix: Matrix) -> Row:
    return {"case": matrix.case, "years": matrix.years}


def _tail(matrix: Matrix) -> Row:
    return {"certified": matrix.certified, "covariates": matrix.told}


def _pad(name: str, values: Iterable[float], places: Iterable[int]) -> Row:
    """Columns for all places, None where there are fewer values."""
    some = iter(values)
    return {name.format(place): None if (value := next(some, None)) is None else float(value) for place in places}


def _place(matrix: Matrix) -> str:
    return "" if matrix.case is None else f"{matrix.case}: "


def _describe_intervals(matrices: Sequence[Matrix]) -> str:
    """'95 % intervals (normal)', or that there are none."""
    found = dict.fromkeys(
        describe_intervals(one.level, one.intervals) for one in matrices if one.intervals != NONE
    )
    return " and ".join(found) or "no intervals"


def _describe_age(matrices: Sequence[Matrix]) -> str:
    """Say for which age medians hold, where it advances."""
    names = dict.fromkeys(name for matrix in matrices for name in matrix.advancing)
    if not names:
        return ""
    return f"; for {' and '.join(names)} as given, as if it stayed: this layout has no place for one that advances"


def _tabulate(title: str, rows: Sequence[Row]) -> TitledTable:
    """Make a table of rows: NaN becomes null, labels equal to the state numbers are not printed."""
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.selectors.float().fill_nan(None))
    pairs = (("from_state", "from_label"), ("to_state", "to_label"), ("state", "label"))
    there = [(state, label) for state, label in pairs if label in frame.columns]
    told = [label for state, label in there if frame[state].cast(pl.String).to_list() == frame[label].to_list()]
    if frame["case"].is_null().all():
        told.append("case")
    return table(title, frame.to_dict(), hidden=(*told, "certified", "covariates"))
