"""Checked arrays from frames: states, years, covariates, weights, groups. Every fault is named with its rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import (
    BadCovariates,
    BadOption,
    BadStates,
    BadValues,
    BadWeights,
    InputError,
    bad_option,
    missing_columns,
    name_rows,
)
from rekka.data.categories import (
    ERROR,
    NO_CODING,
    REFUSE,
    Coding,
    CodingRules,
    find_categories,
    fit_coding,
    refuse_missing,
    refuse_named,
    refuse_single,
)
from rekka.model.clock import Clock
from rekka.model.likelihood import Rows

Array = NDArray[np.float64]
States = NDArray[np.int64]

# Columns whose standardised QR has a diagonal below this are linear combinations of the others.
COLLINEAR = 1e-10
INFINITE = 1e100  # squares of larger covariates overflow
MOST_STATES = 50  # a larger number is more probably a code, such as 99 for not inspected
CLASS_WEIGHTS = ("inverse_frequency",)
DAYS_PER_YEAR = 365.2425
LEAST_POWER = -1000.0  # of 2: rows that are older have this weight, because one of 0 would be absence
HALF_LIFE_NEEDS = "a half-life needs the date of each first visit"


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a frame; ``coding`` makes those covariates that are terms of a category."""

    start: str
    dt: str
    covariates: tuple[str, ...]
    coding: Coding = NO_CODING


@dataclass(frozen=True)
class Predictors:
    """Checked rows without their end: states 0-based, years, raw covariates x (n, p)."""

    start: States
    dt: Array
    x: Array

    def take(self, here: NDArray[np.bool_]) -> Predictors:
        """Some of the rows."""
        return Predictors(self.start[here], self.dt[here], self.x[here])


@dataclass(frozen=True)
class Training:
    """Checked rows to fit: transitions, raw covariates x (n, p), and the group of each row, if it has one.

    The rows' weights are those given times those of their classes, ``classes`` (n,), None where there are none.
    """

    rows: Rows
    x: Array
    groups: NDArray[np.int64] | None
    class_weight: str | None = None
    classes: Array | None = None

    def without_classes(self) -> Training:
        """The rows with the weights that were given."""
        if self.classes is None:
            return self
        rows = replace(self.rows, weight=self.rows.weight / self.classes)
        return replace(self, rows=rows, class_weight=None, classes=None)


def as_frame(X: Any) -> nw.DataFrame[Any]:
    """Any eager dataframe that narwhals knows; the columns of an array are x0, x1, ..., as scikit-learn has it."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return nw.from_dict({f"x{j}": X[:, j] for j in range(X.shape[1])}, backend="polars")
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        kind = type(X).__name__
        raise InputError(
            f"X is a {kind}; a dataframe with named columns is needed (pandas, polars or pyarrow), because the "
            "model has to know which column is the start state, the interval and each covariate; or an array with "
            "columns x0, x1, ..." + (" Call .collect() first." if kind == "LazyFrame" else "")
        ) from None


def find_columns(names: Sequence[str], start: str, dt: str, covariates: Sequence[str] | None) -> Columns:
    """Resolve the column options against a table's names; ``covariates`` None means all the others."""
    if isinstance(covariates, str):
        raise BadOption(f"covariates is the text {covariates!r}; a list of column names is needed.")
    chosen = tuple(n for n in names if n not in (start, dt)) if covariates is None else tuple(covariates)
    missing = [name for name in (start, dt, *chosen) if name not in names]
    if missing:
        raise missing_columns(missing, names)
    for name in chosen:
        if chosen.count(name) > 1 or name in (start, dt):
            raise BadOption(f"covariates names {name} twice or as a covariate and a role at once.")
    return Columns(start, dt, chosen)


def read_predictors(frame: nw.DataFrame[Any], columns: Columns, order: Literal["C", "F"] = "C") -> Predictors:
    """Start states, years and covariates, stored by row or by column (F), each value checked."""
    missing = [n for n in (columns.start, columns.dt) if n not in frame.columns]
    missing += _find_missing(frame, columns.covariates, columns.coding)
    if missing:
        raise missing_columns(missing, frame.columns)
    if len(frame) == 0:
        raise InputError("The table has no rows. At least one is needed.")
    start = _states(_numbers(frame[columns.start], columns.start), columns.start)
    dt = _numbers(frame[columns.dt], columns.dt)
    bad = np.flatnonzero(dt <= 0)
    if bad.size:
        raise BadValues(
            f"{columns.dt} is {dt[bad[0]]:g} in {name_rows(bad)} ({bad.size} of {dt.size} not above 0). "
            "Years between the two inspections must be above 0; exclude such rows.",
            column=columns.dt,
            rows=bad.tolist(),
        )
    return Predictors(start, dt, read_covariates(frame, columns.covariates, order, columns.coding))


def read_training(
    frame: nw.DataFrame[Any],
    y: Any,
    columns: Columns,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    n_states: int | None = None,
    class_weight: str | None = None,
    clock: Clock | None = None,
    half_life: float | None = None,
    date: str = "date_1",
) -> Training:
    """All that a fit needs, each value checked; ``n_states`` None takes the worst end state.

    Covariates stay as they are at the first visit; as ``clock`` takes them they must not be constant or collinear.
    With a ``half_life`` rows have weights by the dates of their second visits, which count as class weights do.
    """
    read = read_predictors(frame, columns)
    when = None if half_life is None else _find_ends(frame, date, read.dt)
    end = read_ends(y, read.start)
    weight = read_weights(sample_weight, end.size)
    refuse_weightless(weight)
    members = None if groups is None else read_groups(groups, end.size)[0]
    if not weight.all():  # weight 0 is absence, in every respect
        here = weight > 0
        read, end, weight = read.take(here), end[here], weight[here]
        when = None if when is None else when[here]
        members = None if members is None else read_groups(members[here], end.size)[0]
    if n_states is None:
        refuse_codes(end)
    count = count_states(end, n_states)
    check_covariates(read.x if clock is None else clock.take(read.x, read.dt), columns.covariates)
    classes = None if class_weight is None else class_weights(class_weight, read.start, end, count)
    if when is not None and half_life is not None:
        recent = weigh_dates(when - when.max(), half_life)
        classes = recent if classes is None else classes * recent
    weight = weight if classes is None else weight * classes
    return Training(Rows(read.start, end, read.dt, weight, count), read.x, members, class_weight, classes)


def _find_ends(frame: nw.DataFrame[Any], date: str, dt: Array) -> Array:
    """Dates (n,) of rows' second visits, as years."""
    if date not in frame.columns:
        raise missing_columns([date], frame.columns, f"the table, and {HALF_LIFE_NEEDS}")
    return read_dates(frame[date], date) + dt


def weigh_dates(years: Array, half_life: float) -> Array:
    """Weights of what is seen ``years``, at most 0, after the last visit: half as much each half-life before."""
    return np.exp2(np.maximum(years / half_life, LEAST_POWER))


def read_dates(series: nw.Series[Any], name: str) -> Array:
    """Dates, or years as numbers, as years."""
    if series.dtype.is_temporal():
        days = series.to_numpy().astype("datetime64[D]")
        years = np.where(np.isnat(days), np.nan, 1970.0 + days.astype(np.int64) / DAYS_PER_YEAR)
    elif series.dtype.is_numeric():
        years = series.cast(nw.Float64).to_numpy()
    else:
        raise BadValues(
            f"{name} holds {series[0]!r}; dates are needed, or years as numbers. Convert the column.", column=name
        )
    bad = np.flatnonzero(~np.isfinite(years))
    if bad.size:
        raise BadValues(
            f"{name} is missing in {bad.size} of {years.size} rows ({name_rows(bad)}). Exclude such rows or fill "
            "them in.",
            column=name,
            rows=bad.tolist(),
        )
    return np.asarray(years, dtype=np.float64)


def read_covariates(
    frame: nw.DataFrame[Any],
    covariates: Sequence[str],
    order: Literal["C", "F"] = "C",
    coding: Coding = NO_CODING,
) -> Array:
    """Raw covariates x (n, p), stored by row or by column (F); the coding makes terms that are not in the frame.

    Levels that no training row had are refused, or taken as the reference with a warning, as the coding says.
    """
    missing = _find_missing(frame, covariates, coding)
    if missing:
        raise missing_columns(missing, frame.columns)
    terms = {} if not coding else _code(frame, [name for name in covariates if name not in frame.columns], coding)
    x = np.empty((len(frame), len(covariates)), order=order)
    for c, name in enumerate(covariates):
        x[:, c] = terms[name] if name in terms else _numbers(frame[name], name)
    return x


def _find_missing(frame: nw.DataFrame[Any], covariates: Sequence[str], coding: Coding) -> list[str]:
    """Columns that covariates need and that the frame does not have."""
    absent = [name for name in covariates if name not in frame.columns]
    return [name for name in coding.columns(absent) if name not in frame.columns]


def _code(frame: nw.DataFrame[Any], terms: Sequence[str], coding: Coding) -> dict[str, Array]:
    """The 0/1 columns of terms."""
    coding = coding.keep(coding.columns(terms))
    table = take_levels(frame, coding.names)
    refuse_missing(table.lazy(), [one.name for one in coding.categories if not one.missing])
    for unseen in coding.find_unseen(table.lazy()):
        if coding.unseen == REFUSE:
            raise BadValues(
                f'{unseen}. Leave these rows out, or take them as {unseen.reference}, with unseen="reference".',
                column=unseen.column,
                levels=list(unseen.rows),
            )
        warnings.warn(f"{unseen}; taken as {unseen.reference}, the reference level.", stacklevel=2)
    coded = coding.code(table.lazy()).collect()
    return {name: coded[name].to_numpy() for name in terms}


def take_levels(frame: nw.DataFrame[Any], names: Sequence[str]) -> pl.DataFrame:
    """Columns of a frame as polars has them."""
    return pl.DataFrame([_as_polars(frame[name], name) for name in names])


def _as_polars(series: nw.Series[Any], name: str) -> pl.Series:
    native = series.to_native()
    if isinstance(native, pl.Series):
        return native.alias(name)
    return pl.Series(name, [None if value != value else value for value in series.to_list()], strict=False)


def fit_categories(
    frame: nw.DataFrame[Any],
    y: Any,
    columns: Columns,
    rules: CodingRules,
    sample_weight: Any = None,
) -> Columns:
    """The columns with the coding of those covariates that are categories, and its terms in their place."""
    if not list_categories(frame, columns.covariates, rules.declared):
        return columns
    start = _states(_numbers(frame[columns.start], columns.start), columns.start)
    end = read_ends(y, start)
    weight = read_weights(sample_weight, end.size)
    return code_categories(frame, columns, rules, end > start, weight > 0)


def code_categories(
    frame: nw.DataFrame[Any],
    columns: Columns,
    rules: CodingRules,
    departed: NDArray[np.bool_],
    there: NDArray[np.bool_] | None = None,
) -> Columns:
    """Do as ``fit_categories``, of rows that are ``there``; ``departed`` are those that end in a worse state."""
    names = list_categories(frame, columns.covariates, rules.declared)
    if not names:
        return columns
    refuse_named(names if not rules.chosen else ())
    table = take_levels(frame, names)
    if rules.missing == ERROR:
        refuse_missing(table.lazy(), names)
    table = table.with_columns(pl.Series(DEPARTED, departed))
    table = table if there is None else table.filter(pl.Series(there))
    coding = fit_coding(table.lazy(), names, pl.col(DEPARTED), **rules.for_coding())
    refuse_single(coding)
    return replace(columns, covariates=coding.expand(columns.covariates), coding=coding)


DEPARTED = "departed to a worse state"


def list_categories(
    frame: nw.DataFrame[Any], covariates: Sequence[str], declared: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Covariates of a frame that are categories: texts, booleans, and numbers that are declared as such."""
    return find_categories({name: _find_kind(frame[name]) for name in covariates}, covariates, declared)


def _find_kind(series: nw.Series[Any]) -> pl.DataType | type[pl.DataType]:
    """Type of a column for polars, as far as it says whether it holds texts."""
    if series.dtype.is_numeric() or series.dtype.is_temporal():
        return pl.Float64
    if series.dtype == nw.Object:  # of pandas: numbers with None among them, or anything
        values = [value for value in series.to_list() if value is not None and value == value]
        return pl.String if any(isinstance(value, str | bool | np.bool_) for value in values) else pl.Float64
    return pl.String


def read_ends(y: Any, start: States, *, improvements: bool = False) -> States:
    """End states, 0-based, none better than its start unless ``improvements`` are allowed."""
    if y is None:
        raise InputError("y is missing: the end states (state_2) are needed to fit.")
    series = nw.from_native(y, series_only=True, pass_through=True)
    name = getattr(series, "name", None) or "y"
    if not isinstance(series, nw.Series):
        array = np.asarray(y)
        if array.ndim != 1:
            raise InputError(f"y has shape {array.shape}; one end state per row is needed.")
        end = _states(_finite(array, name), name)
    else:
        end = _states(_numbers(series, name), name)
    if end.size != start.size:
        raise InputError(f"X has {start.size} rows and y has {end.size}; one end state per row is needed.")
    bad = np.flatnonzero(end < start)
    if bad.size and not improvements:
        row = bad[0]
        raise BadStates(
            f"{name_rows(bad)} ({bad.size} of {end.size}): end state {end[row] + 1} is below start state "
            f"{start[row] + 1}. Condition may only worsen in this model. Exclude repairs, or split the "
            "history at the repair.",
            rows=bad.tolist(),
        )
    return end


def count_states(end: States, n_states: int | None) -> int:
    """K: the worst rank seen, or the given number if no row is beyond it."""
    worst = int(end.max()) + 1
    if n_states is None:
        if worst < 2:
            raise BadStates(
                "Every row stays in state 1, so there is only one state and nothing to model. "
                "Give n_states if worse states exist but were not reached."
            )
        return worst
    if not isinstance(n_states, int | np.integer) or n_states < 2:
        raise BadOption(f"n_states is {n_states!r}; a whole number of at least 2 is needed, or None to infer it.")
    if worst > n_states:
        bad = np.flatnonzero(end >= n_states)
        raise BadStates(
            f"{name_rows(bad)}: state {worst} is above n_states = {n_states}. Raise n_states, or merge states.",
            rows=bad.tolist(),
        )
    return int(n_states)


def refuse_codes(end: States) -> None:
    """Refuse states that are more probably codes, such as 99 for not inspected: each would add a hazard."""
    bad = np.flatnonzero(end >= MOST_STATES)
    if bad.size:
        raise BadStates(
            f"{name_rows(bad)}: state {int(end[bad[0]]) + 1}. Above {MOST_STATES} it is taken for a code, such as "
            "one for not inspected. Leave such rows out, or give n_states if it is a state.",
            rows=bad.tolist(),
        )


def check_supported(states: States, n_states: int, what: str) -> None:
    """Refuse states beyond the fitted K."""
    bad = np.flatnonzero(states >= n_states)
    if bad.size:
        raise BadStates(
            f"{name_rows(bad)} ({bad.size} of {states.size}): {what} state {int(states[bad[0]]) + 1} is above "
            f"K = {n_states}, the worst state of the training rows. Leave such rows out, or fit with more states.",
            rows=bad.tolist(),
        )


def check_covariates(x: Array, names: Sequence[str]) -> None:
    """Refuse covariates whose effects no data could determine: constant, duplicated, collinear."""
    if not names:
        return
    refuse_constant(x.min(axis=0), x.max(axis=0), names, len(x))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    refuse_collinear(np.asarray(np.linalg.qr(z / np.sqrt(len(z)), mode="r")), names, len(x))


def refuse_constant(low: Array, high: Array, names: Sequence[str], rows: int) -> None:
    """Refuse a covariate that has one value in all rows, or a value whose square overflows."""
    for c in np.flatnonzero(~(np.maximum(-low, high) < INFINITE)).tolist():
        value = high[c] if high[c] > -low[c] else low[c]
        raise BadCovariates(
            f"{names[c]} reaches {value:g} in the {rows} training rows; numbers beyond {INFINITE:g} cannot "
            "be used. Correct the value, or leave the row or the covariate out.",
            covariates=[names[c]],
        )
    for c in np.flatnonzero(low == high).tolist():
        raise BadCovariates(
            f"{names[c]} is {low[c]:g} in all {rows} training rows: its effect cannot be separated from "
            "the intercept. Leave it out of covariates.",
            covariates=[names[c]],
        )


def refuse_collinear(r: Array, names: Sequence[str], rows: int) -> None:
    """Refuse a covariate that the ones before it make up; r is the triangular factor of the standardised rows."""
    for c in range(len(names)):
        if c >= len(r) or abs(r[c, c]) < COLLINEAR:
            weights = np.linalg.lstsq(r[:, :c], r[:, c], rcond=None)[0]
            others = [names[int(i)] for i in np.flatnonzero(np.abs(weights) > 1e-6)]
            how = "duplicates" if len(others) == 1 else "is a linear combination of"
            raise BadCovariates(
                f"{names[c]} {how} {', '.join(others)} in the {rows} training rows: their effects cannot be "
                "separated. Leave one of them out of covariates.",
                covariates=[names[c], *others],
            )


def read_groups(groups: Any, n_rows: int, option: str = "groups") -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Groups as whole numbers from 0, one for each row, and their names by number."""
    names = np.asarray(groups)
    if names.shape != (n_rows,):
        raise InputError(f"{option} has shape {names.shape}; one group per row is needed ({n_rows}).")
    missing = np.flatnonzero([g is None or g != g for g in names.tolist()])
    if missing.size:
        where = f"{missing.size} of {n_rows} rows ({name_rows(missing)})"
        raise InputError(f"{option} is missing in {where}.", rows=missing.tolist())
    known, number = np.unique(names, return_inverse=True)
    return number.astype(np.int64), tuple(map(str, known.tolist()))


def class_weights(class_weight: str, start: States, end: States, n_states: int) -> Array:
    """The inverse frequency of each row's start and end (n,), averaging 1 over the rows that can still worsen."""
    counts = np.bincount(start * n_states + end, minlength=n_states**2).reshape(n_states, n_states)
    return weigh_classes(class_weight, counts)[start, end]


def weigh_classes(class_weight: str, counts: NDArray[np.int64]) -> Array:
    """The weight (K, K) of the rows of each start and end, from how many there are; 1 where nothing can worsen."""
    if class_weight not in CLASS_WEIGHTS:
        raise bad_option("class_weight", class_weight, ["None", *CLASS_WEIGHTS])
    able, table = counts[:-1], np.ones(counts.shape)
    table[:-1] = able.sum() / (max(np.count_nonzero(able), 1) * np.maximum(able, 1))
    return table


def read_weights(sample_weight: Any, n_rows: int) -> Array:
    """Row weights, 1 where none are given."""
    weight = np.ones(n_rows)
    if sample_weight is not None:
        try:
            weight = np.array(sample_weight, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            raise BadWeights("sample_weight must be numbers.") from None
        bad = np.flatnonzero(~(weight >= 0) | np.isinf(weight))
        if weight.size != n_rows:
            raise BadWeights(f"sample_weight has {weight.size} values for {n_rows} rows.")
        if bad.size:
            raise BadWeights(
                f"sample_weight is {weight[bad[0]]:g} in {name_rows(bad)}; weights are finite and not negative.",
                rows=bad.tolist(),
            )
    return weight


def refuse_weightless(weight: Array) -> None:
    """Refuse weights that are 0 in every row."""
    if not weight.any():
        raise BadWeights("sample_weight is 0 in every row: nothing is left to fit.")


def _numbers(series: nw.Series[Any], name: str) -> Array:
    """A column as finite float64; text is refused with its first row."""
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        return _finite(np.asarray(series.to_numpy()), name)
    return _finite(series.cast(nw.Float64).to_numpy(), name)


def _finite(values: NDArray[Any], name: str) -> Array:
    try:
        numbers = np.asarray(values, dtype=np.float64) if values.dtype.kind in "biuf" else _parse(values)
    except (TypeError, ValueError):
        row, value = next((r, v) for r, v in enumerate(values.tolist()) if not _is_number(v))
        raise BadValues(
            f"{name} holds {value!r} in row {row}; a number is needed. Convert the column, or name the "
            "covariates to use if this is not one of them.",
            column=name,
            rows=[row],
        ) from None
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        what = "missing" if np.isnan(numbers[bad]).all() else "missing or infinite"
        raise BadValues(
            f"{name} is {what} in {bad.size} of {numbers.size} rows ({name_rows(bad)}). Exclude such rows or "
            "fill them in; rekka does neither silently.",
            column=name,
            rows=bad.tolist(),
        )
    return numbers


def _parse(values: NDArray[Any]) -> Array:
    """An object column: numbers and None pass, text does not, even if it looks like a number."""
    if not all(_is_number(v) for v in values):
        raise ValueError
    return np.array([np.nan if v is None else float(v) for v in values])


def _is_number(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, str | bytes):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _states(values: Array, name: str) -> States:
    bad = np.flatnonzero((values < 1) | (values != np.floor(values)))
    if bad.size:
        raise BadStates(
            f"{name} is {values[bad[0]]:g} in {name_rows(bad)} ({bad.size} of {values.size}); states are whole "
            "numbers from 1, the best, upwards.",
            rows=bad.tolist(),
        )
    return values.astype(np.int64) - 1
