"""Transition matrices as tables, in the layouts that bridge management systems and their users know.

    square    a row for each state at the beginning, a column for each at the end
    long      a row for each pair of states, with intervals; a better state later cannot be, and has no row
    percent   a row for each state: the percentages that stay and that are one, two, ... states worse after the
              period, in the layout of the element tables of Pontis and its kin; each row sums to 100 as rounded
    median    a row for each case: the median years T1, T2, ... in each state before it is left, and a shape, in
              the layout in which AASHTOWare BrM takes deterioration

Layouts are what systems show and ask for; no file here is made to be imported by a product without a look at what
that product's version wants. A median is log 2 / hazard, and the shape is 1, because the hazard of a state does
not change while a member is in it. Where age advances it does change, and this layout has no place for that:
medians are then those at the age that was given, as if it stayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, bad_option
from rekka.forecast.matrices import Matrix, tell_intervals
from rekka.forecast.uncertainty import NONE
from rekka.model.tables import Table, table

Array = NDArray[np.float64]
Row = dict[str, Any]

SQUARE, LONG, PERCENT, MEDIAN = "square", "long", "percent", "median"
LAYOUTS = (SQUARE, LONG, PERCENT, MEDIAN)
DECIMALS, MOST_DECIMALS = 1, 6  # of percentages
SHAPE = 1.0  # of a Weibull distribution whose hazard is constant


def lay_out(matrices: Matrix | Sequence[Matrix], layout: str = SQUARE, *, decimals: int = DECIMALS) -> Table:
    """Matrices as one table; ``decimals`` are those of percentages."""
    some = (matrices,) if isinstance(matrices, Matrix) else tuple(matrices)
    if layout not in LAYOUTS:
        raise bad_option("layout", layout, LAYOUTS)
    if not some:
        raise BadOption("There is no matrix to lay out.", option="matrices")
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= MOST_DECIMALS:
        raise BadOption(f"decimals is {decimals!r}; a whole number from 0 to {MOST_DECIMALS} is needed.")
    titles = {
        SQUARE: "probability of each state (to) after so many years, by the state at their beginning (from)",
        LONG: f"probability of each state after so many years, {_tell_intervals(some)}",
        PERCENT: "percent that stay in their state, and that are so many states worse, after so many years",
        MEDIAN: f"median years in each state before it is left, {_tell_intervals(some)}{_tell_age(some)}",
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
    """Shares of a whole as percentages that sum to 100 as rounded: by largest remainder, ties to the better state.

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
    """One row a case and its covariates: the years of a matrix have no part in it."""
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
    """A column for each place; none where the values have come to an end."""
    some = iter(values)
    return {name.format(place): None if (value := next(some, None)) is None else float(value) for place in places}


def _place(matrix: Matrix) -> str:
    return "" if matrix.case is None else f"{matrix.case}: "


def _tell_intervals(matrices: Sequence[Matrix]) -> str:
    """'95 % intervals (normal)', or that there are none."""
    found = dict.fromkeys(tell_intervals(one.level, one.intervals) for one in matrices if one.intervals != NONE)
    return " and ".join(found) or "no intervals"


def _tell_age(matrices: Sequence[Matrix]) -> str:
    """For which age medians are, where it advances."""
    names = dict.fromkeys(name for matrix in matrices for name in matrix.advancing)
    if not names:
        return ""
    return f"; for {' and '.join(names)} as given, as if it stayed: this layout has no place for one that advances"


def _tabulate(title: str, rows: Sequence[Row]) -> Table:
    """Rows as a table: NaN is no number, labels that say nothing new are not printed."""
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.selectors.float().fill_nan(None))
    pairs = (("from_state", "from_label"), ("to_state", "to_label"), ("state", "label"))
    there = [(state, label) for state, label in pairs if label in frame.columns]
    told = [label for state, label in there if frame[state].cast(pl.String).to_list() == frame[label].to_list()]
    if frame["case"].is_null().all():
        told.append("case")
    return table(title, frame.to_dict(), hidden=(*told, "certified", "covariates"))
