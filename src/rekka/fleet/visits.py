"""Visits of an inventory's members up to now, chained into histories: where forecasts of histories start from."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import missing_columns
from rekka.fleet.lists import MEMBER
from rekka.forecast.history_propagation import Past, chain_past
from rekka.model.fit import Fit
from rekka.model.histories import SAME_DATE, Chain
from rekka.model.inputs import DAYS_PER_YEAR

Array = NDArray[np.float64]

HISTORY, NUMBER, GROUP = "history", "number of the history", "group that shares a frailty"
ORDERS = (("date_1", "date_2"), ("visit_1", "visit_2"))  # columns that put the visits of a member in order


def chain_visits(pairs: pl.DataFrame, fit: Fit) -> pl.DataFrame:
    """Pairs of visits of one component in order of time, with the number of the history that each belongs to.

    A history ends where the next pair does not start as this one ended, at a gap, and at pairs that the model
    cannot take: a covariate is missing, a rating is worse than those of the training rows, or it improves and the
    model has neither errors nor improvements. Such pairs are left out.
    """
    assert fit.records is not None  # a fit of histories
    identity = [name for name in MEMBER if name in pairs.columns]
    order = next((names for names in ORDERS if set(names) <= set(pairs.columns)), ())
    rows = pairs.sort(
        [*identity, *([HISTORY] if HISTORY in pairs.columns else []), *order[:1]], maintain_order=True
    )
    worst = pl.max_horizontal("state_1", "state_2")
    usable = (worst <= fit.n_states) & (pl.col("interval_years") > 0)
    if fit.records.elements.pattern is None and fit.records.improvements is None:
        usable &= pl.col("state_2") >= pl.col("state_1")
    for name in fit.columns if set(fit.columns) <= set(rows.columns) else fit.covariates:
        usable &= pl.col(name).is_not_null()
    known = [name for name in (*identity, HISTORY) if name in rows.columns]
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in known)
    follows = same & (pl.col("state_1") == pl.col("state_2").shift()) & pl.col("usable").shift()
    if "date_1" in order and rows["date_1"].dtype.is_temporal():
        days = (pl.col("date_1") - pl.col("date_2").shift()).dt.total_days()
        follows &= days.abs() <= SAME_DATE * DAYS_PER_YEAR
    rows = rows.with_columns(usable=usable.fill_null(value=False))
    rows = rows.with_columns((~follows.fill_null(value=False)).cum_sum().alias(NUMBER))
    return rows.filter("usable").drop("usable")


def add_group(rows: pl.DataFrame, fit: Fit) -> pl.DataFrame:
    """Add the group of each row that shares a frailty: its bridge, or the column that the model names."""
    by = (fit.records.by if fit.records is not None else None) or "bridge_id"
    if by not in rows.columns:
        raise missing_columns([by], rows.columns, "the table, and the model's frailty belongs to it")
    group = pl.col(by).cast(pl.String)
    if by == "member":
        group = pl.format("{} / {}", pl.col("bridge_id").cast(pl.String), group)
    return rows.with_columns(group.alias(GROUP))


def find_past(members: pl.DataFrame, visits: pl.DataFrame, fit: Fit, x: Array, covariates: Array) -> Past:
    """Past of members of one component: all visits of their bridges.

    ``x`` (n, p) are the members' covariates now, ``covariates`` (m, p) those of ``visits``, as ``chain_visits``
    made them. A member whose last visit is not the end of a history was seen once, then.
    """
    identity = [name for name in MEMBER if name in visits.columns and name in members.columns]
    members, visits = (add_group(rows, fit) for rows in (members, visits))
    near = visits.with_row_index("place").join(members.select(GROUP).unique(), on=GROUP, how="semi")
    last = near.group_by(*identity, maintain_order=True).last()
    wanted = members.select(*identity, "state", "date").with_row_index("who")
    found = wanted.join(last, on=identity, how="left", nulls_equal=True, maintain_order="left")
    current = pl.col("state") == pl.col("state_2")
    if "date_2" in visits.columns and visits["date_2"].dtype.is_temporal():
        current &= pl.col("date") == pl.col("date_2")
    found = found.select("who", number=pl.when(current).then(NUMBER))
    alone = found.filter(pl.col("number").is_null())["who"].to_numpy()
    near = near.sort("place")
    at = near["place"].to_numpy()
    return _chain(fit, near, covariates[at], members[alone.tolist()], x[alone], found["number"])


def _chain(fit: Fit, visits: pl.DataFrame, x: Array, once: pl.DataFrame, x_once: Array, number: pl.Series) -> Past:
    """Past of histories of several visits and of members that were seen once."""
    n, m = len(visits), len(once)
    names = pl.concat([visits[NUMBER].cast(pl.Int64), pl.Series(np.arange(-1, -m - 1, -1))]).to_numpy()
    known, history = np.unique(names, return_inverse=True)
    bridge = np.unique(pl.concat([visits[GROUP], once[GROUP]]).to_numpy(), return_inverse=True)[1]
    state = once["state"].to_numpy().astype(np.int64) - 1
    start = np.concatenate([visits["state_1"].to_numpy().astype(np.int64) - 1, state])
    end = np.concatenate([visits["state_2"].to_numpy().astype(np.int64) - 1, np.full(m, -1)])
    years = np.concatenate([visits["interval_years"].cast(pl.Float64).to_numpy(), np.full(m, np.nan)])
    date = None
    if fit.records is not None and fit.records.date is not None and "date_1" in visits.columns and n:
        date = np.concatenate([_as_years(visits["date_1"]), _as_years(once["date"])])
    rows = Chain(start, end, years, np.concatenate([x, x_once]), history, bridge, date)
    own = number.to_numpy().astype(np.float64)
    own[np.isnan(own)] = np.arange(-1, -m - 1, -1)
    return chain_past(fit, rows, np.searchsorted(known, own.astype(np.int64)))


def _as_years(dates: pl.Series) -> Array:
    if not dates.dtype.is_temporal():
        return dates.cast(pl.Float64).to_numpy()
    return 1970.0 + dates.cast(pl.Date).cast(pl.Int32).cast(pl.Float64).to_numpy() / DAYS_PER_YEAR
