"""Tables beside the inspections: what they say of a bridge, or of a bridge and visit, is joined to the visits."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rekka.core.errors import BadValues, MissingColumns, count_of, name_some
from rekka.data.attributes import ATTRIBUTES, check_names, read_attributes, read_name, survey, translate
from rekka.data.mapping import Dates, Join
from rekka.data.names import find_columns, is_fiscal
from rekka.data.queries import collect
from rekka.data.tables import ROW, Table, open_table
from rekka.data.values import read_counts, read_dates, take_dates

YEAR = "year of inspection"


def join_table(visits: pl.LazyFrame, join: Join, dates: Dates, notes: list[str]) -> pl.LazyFrame:
    """Bring in what another table says of each bridge, or of each bridge and visit or date."""
    table = open_table(join.file, join.options())
    check_names(table, join.columns)
    here = visits.collect_schema().names()
    absent = [role for role in ATTRIBUTES if (role if role != "repairs" else "repair_1") not in here]
    found, known = find_columns(table, join.columns, ["bridge", "visit", "date", *absent])
    if "bridge" not in found:
        raise MissingColumns(
            f"{table.name} has no column that is known as the bridge. Columns there: {name_some(table.columns)}. "
            "Say which it is in columns of its [[join]].",
            missing=["bridge"],
            present=list(table.columns),
        )
    first_repair = 1 + sum(name.startswith("repair_") for name in here)
    attributes = read_attributes(table, found, join.columns, join, dates, first_repair)
    schema = table.frame.collect_schema()
    keys = {"bridge_id": read_name(found["bridge"], schema)}
    agree = join.agree.column if join.agree else None
    if agree and agree not in found:
        found |= find_columns(table, join.columns, [agree])[0]
        attributes = read_attributes(table, found, join.columns, join, dates, first_repair)
    side = collect(table.frame.select(ROW, **keys, **attributes.columns), table.name).drop_nulls("bridge_id")
    told = [*table.notes, *known, *attributes.notes]
    found_there = _count_bridges(visits, side, table.name)
    if attributes.columns and all(name.startswith("repair_") for name in attributes.columns):
        once = _spread_repairs(side, first_repair)
        notes += [*told, f"{table.name}: repairs, joined by bridge; {found_there}"]
        return _merge(visits, once, ["bridge_id"], join)
    if side["bridge_id"].is_duplicated().any():
        second = _second_key(table, found, here, dates)
        side = collect(table.frame.select(ROW, **keys, **second, **attributes.columns), table.name)
        side, visits = _by_year(side, visits)
        keys |= {name: pl.col(name) for name in ("visit", "date", YEAR) if name in side.columns}
    once = side.unique(list(keys), keep="first", maintain_order=True).drop(ROW)
    by = " and ".join(name.removesuffix("_id") for name in keys)
    _require_matches(visits, once, list(keys), table.name, by)
    notes += [*told, f"{table.name}: joined by {by}; {found_there}"]
    if len(once) < len(side):
        more = f"{len(side) - len(once):,} of {len(side):,} rows repeat a {by}; the first of each is used"
        notes.append(f"{table.name}: {more}")
    return _merge(visits, once, list(keys), join).drop(YEAR, strict=False)


def _by_year(side: pl.DataFrame, visits: pl.LazyFrame) -> tuple[pl.DataFrame, pl.LazyFrame]:
    """A table that has years alone is joined by the year of the visit, not by its first day."""
    if "date" not in side.columns:
        return side, visits
    date = pl.col("date").dt
    if not side.select(((date.month() == 1) & (date.day() == 1)).all()).item():
        return side, visits
    year = date.year().alias(YEAR)
    return side.with_columns(year).drop("date"), visits.with_columns(year)


def _require_matches(visits: pl.LazyFrame, side: pl.DataFrame, keys: list[str], name: str, by: str) -> None:
    """Refuse a table whose second key is never that of an inspection."""
    if len(keys) > 1 and not collect(visits.join(side.lazy(), on=keys, how="semi").select(pl.len()), name).item():
        raise BadValues(
            f"{name} has several rows for a bridge, so it is joined by {by}; but none of them is an inspection's. "
            "Give each bridge one row, or each row the visit or date of its inspection.",
            file=name,
        )


def _count_bridges(visits: pl.LazyFrame, side: pl.DataFrame, name: str) -> str:
    """How many of our bridges the other table knows; if it knows none, the names are not written alike."""
    bridges = collect(visits.select("bridge_id").drop_nulls().unique().sort("bridge_id"), name)["bridge_id"]
    found = bridges.is_in(side["bridge_id"].drop_nulls().unique().implode()).sum()
    if not found and len(bridges):
        raise BadValues(
            f"None of the {count_of(len(bridges), 'bridge')} is in {name}: ours are like {bridges[0]!r}, its like "
            f"{next(iter(side['bridge_id'].drop_nulls()), 'none')!r}. Write them alike, or name another column.",
            file=name,
        )
    return f"{found:,} of {count_of(len(bridges), 'bridge')} found there"


def _spread_repairs(side: pl.DataFrame, first: int) -> pl.DataFrame:
    """A row for each bridge with all its repairs, from a table that may have a row for each repair."""
    days = side.drop(ROW).unpivot(index="bridge_id", value_name="day").drop("variable")
    grouped = days.drop_nulls("bridge_id").group_by("bridge_id", maintain_order=True)
    lists = grouped.agg(pl.col("day").drop_nulls().unique().sort())
    most = max(lists["day"].list.len().to_list(), default=1) or 1
    return lists.select(
        "bridge_id",
        *(pl.col("day").list.get(i, null_on_oob=True).alias(f"repair_{first + i}") for i in range(most)),
    )


def _second_key(table: Table, found: dict[str, str], here: Sequence[str], dates: Dates) -> dict[str, pl.Expr]:
    """The second key of a table that has several rows a bridge."""
    if "visit" in found and "visit" in here:
        return {"visit": read_counts(pl.col(found["visit"]), table.frame.collect_schema()[found["visit"]])}
    if "date" not in found:
        return {}
    column = found["date"]
    if table.frame.collect_schema()[column].is_temporal():
        return {"date": take_dates(pl.col(column))}
    seen = survey(table.frame, column, table.name)
    where = f"{table.name}, {column}: "
    read = read_dates(seen["text"], dates.inspection, fiscal=is_fiscal(column), where=where)
    return {"date": translate(column, seen, read)}


def _merge(visits: pl.LazyFrame, side: pl.DataFrame, keys: list[str], join: Join) -> pl.LazyFrame:
    """Left join: our values come first; theirs count only where both agree, if agreement is asked for."""
    here = visits.collect_schema().names()
    names = [name for name in side.columns if name not in keys]
    theirs = {name: f"{name} of the other table" for name in names}
    joined = visits.join(side.lazy().rename(theirs), on=keys, how="left", maintain_order="left")
    values = {name: pl.coalesce(name, theirs[name]) if name in here else pl.col(theirs[name]) for name in names}
    if join.agree is not None:
        column = join.agree.column
        if column not in here or column not in names:
            raise MissingColumns(
                f"{column} is in one table only, so the two cannot agree on it.", missing=[column]
            )
        ours, other = pl.col(column), pl.col(theirs[column])
        if column == "completed":
            ours, other = ours.dt.year(), other.dt.year()
        gap = (ours - other).abs()
        agrees = (gap <= join.agree.relative * ours.abs()) | (gap <= join.agree.absolute)
        values = {name: pl.when(agrees).then(value) for name, value in values.items() if name != column}
    return joined.with_columns(**values).drop(theirs.values())
