"""Rows of histories from frames, each value checked; options of histories, and what they do not support."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, missing_columns
from rekka.data.categories import CodingRules
from rekka.model import inputs
from rekka.model.clock import RUNNING
from rekka.model.elements import GIVEN, check_elements
from rekka.model.fit import Predictor
from rekka.model.histories import Chain, check_chain

Array = NDArray[np.float64]

ELEMENTS = ("errors", "frailty", "improvements", "trend", "first")  # options of the estimator
OFF: dict[str, Any] = {
    "errors": None,
    "frailty": None,
    "improvements": None,
    "trend": None,
    "first": GIVEN,
    "date": "date_1",
    "half_life": None,
}
DAY = 0.01  # years by which rounding may move a date: the first of January belongs to its year


def drop_elements(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator without elements that are off; patterns and probabilities as lists."""
    known = {}
    for name, value in parameters.items():
        if name in ELEMENTS and value is not None and not isinstance(value, str):
            known[name] = np.asarray(value, dtype=np.float64).tolist()
        elif name not in OFF or OFF[name] != value:
            known[name] = value
    return known


def uses_histories(options: Mapping[str, Any]) -> bool:
    """Whether options of an estimator ask for the likelihood of histories."""
    check_elements(clock=options["clock"], **{name: options[name] for name in ELEMENTS})
    on = any(options[name] is not None for name in ELEMENTS[:-1])
    first = options["first"]
    return on or options["clock"] == RUNNING or not (isinstance(first, str) and first == GIVEN)


def fit_history_categories(
    frame: nw.DataFrame[Any], y: Any, columns: inputs.Columns, rules: CodingRules
) -> inputs.Columns:
    """The columns with the coding of categories; departures are rows whose second rating is worse."""
    if y is None or not inputs.list_categories(frame, columns.covariates, rules.declared):
        return columns
    start, end = frame[columns.start].to_list(), _to_list(y)
    if len(start) != len(end):
        raise _refuse_length(len(start), len(end))
    return inputs.code_categories(
        frame, columns, rules, np.array([_is_worse(*pair) for pair in zip(start, end, strict=True)])
    )


def _is_worse(start: Any, end: Any) -> bool:
    """Whether a row ends in a worse state; what is no number is refused where rows are read."""
    return isinstance(start, int | float) and isinstance(end, int | float) and end > start


def _refuse_length(rows: int, ends: int) -> InputError:
    return InputError(f"X has {rows} rows and y has {ends}; one end state per row is needed.")


def read_history_rows(
    frame: nw.DataFrame[Any],
    y: Any,
    columns: inputs.Columns,
    *,
    histories: Any = None,
    groups: Any = None,
    n_states: int | None = None,
    date: str = "date_1",
    improvements: bool = True,
) -> Chain:
    """Rows whose chains are checked, with the names of their bridges; a row without y is a history of one visit.

    A bridge has the name of its group, else of its history, else the number of its row.
    """
    if y is None:
        raise InputError("y is missing: the end states (state_2) are needed to fit.")
    values, n = _to_list(y), len(frame)
    alone = np.array([value is None or value != value for value in values], dtype=bool)
    if alone.size != n:
        raise _refuse_length(n, alone.size)
    read = _read_predictors(frame, columns, alone)
    filled = [int(s) + 1 if gone else value for value, gone, s in zip(values, alone, read.start, strict=True)]
    end = inputs.read_ends(np.asarray(filled), read.start, improvements=improvements)
    worst = np.maximum(end, read.start)
    if n_states is None:
        inputs.refuse_codes(worst)
    else:
        inputs.count_states(worst, n_states)  # refuses worse ones
    number, names = _number_rows(n) if histories is None else _read_ids("histories", histories, n)
    bridge, names = (number, names) if groups is None else _read_ids("groups", groups, n)
    dates = inputs.read_dates(frame[date], date) if date in frame.columns else None
    chain = Chain(read.start, np.where(alone, -1, end), read.dt, read.x, number, bridge, dates, names)
    check_chain(chain)
    return chain


def _number_rows(n: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Number and name of each row where each is a history of its own."""
    return np.arange(n), tuple(map(str, range(n)))


def _read_predictors(
    frame: nw.DataFrame[Any], columns: inputs.Columns, alone: NDArray[np.bool_]
) -> inputs.Predictors:
    """Start states, years and covariates; years may be missing in rows of one visit, and are NaN there."""
    if not alone.any() or columns.dt not in frame.columns:
        return inputs.read_predictors(frame, columns)
    years = [1.0 if gone else value for value, gone in zip(frame[columns.dt].to_list(), alone, strict=True)]
    whole = nw.new_series(columns.dt, years, backend=frame.implementation)
    read = inputs.read_predictors(frame.with_columns(whole), columns)
    return replace(read, dt=np.where(alone, np.nan, read.dt))


def _to_list(values: Any) -> list[Any]:
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return list(series.to_list())
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"y has shape {array.shape}; one end state per row is needed.")
    return list(array.tolist())


def _read_ids(option: str, values: Any, n: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Identifiers as whole numbers from 0, one for each row, and their names by number.

    Several columns, such as bridge and history, identify together.
    """
    table = nw.from_native(values, eager_only=True, pass_through=True)
    if isinstance(table, nw.DataFrame) and len(table.columns) == 1:
        values = table[table.columns[0]].to_list()
    elif isinstance(table, nw.DataFrame):
        values = [" / ".join(map(str, row)) if None not in row else None for row in table.iter_rows()]
    return inputs.read_groups(values, n, option)


def predict_ratings(
    fit: Predictor,
    frame: nw.DataFrame[Any],
    columns: inputs.Columns,
    histories: Any = None,
    groups: Any = None,
    date: str = "date_1",
) -> Array:
    """Probabilities (n, K) of the rating at the end of each row, given its start or all earlier visits.

    Rows of a history are in order of their dates, or as they are given where there are none.
    """
    assert fit.records is not None  # a fit of histories
    read = inputs.read_predictors(frame, columns)
    inputs.check_supported(read.start, fit.n_states, "start")
    n = read.start.size
    number, _ = (np.arange(n), ()) if histories is None else _read_ids("histories", histories, n)
    bridge, _ = (number, ()) if groups is None or histories is None else _read_ids("groups", groups, n)
    date = fit.records.date or date
    dates = inputs.read_dates(frame[date], date) if date in frame.columns else None
    order = np.lexsort((number,) if dates is None else (dates, number))
    follows = np.flatnonzero(number[order][1:] == number[order][:-1])
    end, unseen = read.start.copy(), np.ones(n, dtype=bool)
    end[order[follows]] = read.start[order[follows + 1]]
    unseen[order[follows]] = False
    return fit.ratings(Chain(read.start, end, read.dt, read.x, number, bridge, dates), unseen)


def read_past_rows(
    fit: Predictor, frame: nw.DataFrame[Any], y: Any, columns: inputs.Columns, histories: Any, groups: Any
) -> Chain:
    """Rows of histories that a forecast starts from; ratings worse than the model knows are refused."""
    assert fit.records is not None  # a fit of histories
    date = fit.records.date
    if date is not None and date not in frame.columns:
        raise missing_columns([date], frame.columns, "the table, and the trend needs the date of each first visit")
    return read_history_rows(
        frame, y, columns, histories=histories, groups=groups, n_states=fit.n_states, date=date or "date_1"
    )


def refuse_histories(fit: Predictor, what: str, instead: str) -> None:
    """Refuse what fits of histories do not have yet."""
    if fit.records is not None:
        raise BadOption(
            f"{what} of a model of histories (errors, frailty, improvements, trend, running clock, first) is not "
            f"supported yet. {instead}",
            option="histories",
        )
