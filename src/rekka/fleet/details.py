"""Details of each member beside its forecast, for its card on a page: ratings found and to come, what drives it.

    found_on, found   days of its visits and the states found, in order
    fan               states of the 10, 50 and 90 % quantiles in each of ``FAN_YEARS``
    value, ratio      of each covariate: the member's value in year 0, and by what factor that changes the hazard
                      of leaving its state, the same covariate of a typical member being 1
    frailty           the factor of its bridge, where the model has one

A row for each member, in the order of the members' table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import InputError
from rekka.data.attributes import level_text
from rekka.data.categories import Category
from rekka.fleet.eligibility import LONG_UNSEEN, EligibleGroup, Remarks
from rekka.fleet.found import COORDINATES, FOUND, FOUND_ON, find_coordinate
from rekka.fleet.lists import MEMBER
from rekka.fleet.visits import GROUP, add_group
from rekka.model.fit import Fit
from rekka.model.tables import relate_hazards

Array = NDArray[np.float64]

FAN_YEARS = (0, 5, 10, 15, 20, 25, 30)
FAN_LEVELS = (0.1, 0.5, 0.9)
VALUE, RATIO = "value of ", "ratio of "
DETAIL = "detail: "  # before the names while they stand beside the columns of the members' table


def choose_fan_years(horizon: int) -> list[int]:
    """Years of a fan within a forecast."""
    return [year for year in FAN_YEARS if year <= horizon]


def tabulate_details(
    group: EligibleGroup, found: pl.DataFrame, p: Array, outside: NDArray[np.bool_], remarks: Remarks
) -> pl.DataFrame:
    """Details of a group's members; ``found`` are the visits of all, p is (n, T, K) and ``outside`` (n, T)."""
    rows = group.rows
    keys = [name for name in MEMBER if name in rows.columns and name in found.columns]
    wanted = rows.select(pl.col(keys).cast(pl.String).fill_null(""))
    visits = wanted.join(found, on=keys, how="left", maintain_order="left").select(FOUND_ON, FOUND)
    columns: dict[str, Any] = {
        "outside": outside[:, 0],
        "fan": _find_fan(p, choose_fan_years(p.shape[1] - 1)),
        "remarks": [[_write_remark(one) for one in lines] for lines in remarks.lines],
        **_find_drivers(group),
        **_find_frailties(group),
    }
    places = {name: find_coordinate(rows.columns, known) for name, known in COORDINATES.items()}
    for name, place in places.items():
        if place is not None:
            columns[name] = rows[place].cast(pl.Float64, strict=False)
    found_columns = {"remarks": pl.List(pl.String), "fan": pl.List(pl.Int16)}
    made = visits.hstack(pl.DataFrame(columns, schema_overrides=found_columns))
    return made.rename({name: f"{DETAIL}{name}" for name in made.columns})


def _find_fan(p: Array, years: Sequence[int]) -> list[list[int]]:
    """States of the quantiles, three for each year."""
    below = np.cumsum(p[:, list(years), :], axis=2)
    states = [(below < level - 1e-9).sum(axis=2) + 1 for level in FAN_LEVELS]
    found = np.minimum(np.stack(states, axis=2), p.shape[2]).reshape(len(p), -1)
    return found.astype(np.int64).tolist()  # type: ignore[no-any-return]


def _write_remark(remark: str) -> str:
    """A remark as JSON where it can be said in several languages, else as it stands."""
    said = getattr(remark, "said", None)
    return json.dumps(said, ensure_ascii=False) if said is not None else remark


def _find_drivers(group: EligibleGroup) -> dict[str, Any]:
    """Value of each covariate in year 0, and the hazard relative to that with a typical value of it."""
    fit, rows = group.fit, group.rows
    x = group.ageing.at(group.x, 0.0 if group.gap is None else group.gap)
    typical = find_typical(fit)
    columns: dict[str, Any] = {}
    for name in fit.columns:
        category = fit.coding.find(name)
        places = [fit.covariates.index(one) for one in (category.terms if category else (name,))]
        columns[f"{VALUE}{name}"] = x[:, places[0]] if category is None else _name_levels(rows, category)
        if typical is not None:
            columns[f"{RATIO}{name}"] = _compare(fit, group.start, x, typical, places)
    return columns


def _name_levels(rows: pl.DataFrame, category: Category) -> pl.Series:
    """Level of each member, as the category spells it."""
    return rows.select(category.spell(level_text(category.name, rows.schema))).to_series()


def find_typical(fit: Fit) -> Array | None:
    """Typical covariates (p,): medians of the training rows, the most frequent level of each category."""
    if fit.survey is None:
        return None
    typical = fit.survey.median.copy()
    for category in fit.coding.categories:
        for term, value in category.place(category.typical).items():
            typical[fit.covariates.index(term)] = value
    return typical


def _compare(fit: Fit, start: NDArray[np.int64], x: Array, typical: Array, places: Sequence[int]) -> pl.Series:
    """Hazard (n,) of leaving each member's state, over that with typical values in some places."""
    other = x.copy()
    other[:, places] = typical[places]
    state = np.minimum(start, fit.n_states - 2)
    each = np.arange(len(x))
    try:
        ratio = relate_hazards(fit, x, other)[each, state]
    except InputError:  # an operator that cannot take one of the values: the forecast has a remark on it
        ratio = np.full(len(x), np.nan)
    return pl.Series(np.where(start <= fit.n_states - 2, ratio, np.nan)).fill_nan(None)


def _find_frailties(group: EligibleGroup) -> dict[str, pl.Series]:
    """Factor of each member's bridge, 1 where the fit has not seen it; none without a frailty."""
    records = group.fit.records
    if records is None or records.frailties is None:
        return {}
    known = dict(zip(records.frailties.groups, records.frailties.mean.tolist(), strict=True))
    try:
        groups = add_group(group.rows, group.fit)[GROUP]
    except InputError:  # the inventory lacks the column that the frailty belongs to
        return {}
    return {"frailty": groups.replace_strict(known, default=1.0, return_dtype=pl.Float64)}


def split_details(members: pl.DataFrame, soon: int, later: int) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The members' table, and the details with what a page shows beside them; None where there are none."""
    own = [name for name in members.columns if name.startswith(DETAIL)]
    if not own:
        return members, None
    shown = [
        "bridge_id", "case", "member", "last_seen", "state", "threshold", "there", LONG_UNSEEN,
        f"reached_{soon}", f"reached_{later}", "median_years", "median_calendar_year",
    ]  # fmt: skip
    there = [name for name in dict.fromkeys(shown) if name in members.columns]
    details = members.select(*there, *(pl.col(name).alias(name.removeprefix(DETAIL)) for name in own))
    near = {"soon": f"reached_{soon}", "later": f"reached_{later}"}
    named = details.with_columns(pl.col(column).alias(name) for name, column in near.items())
    return members.drop(own), named.drop(set(near.values()))
