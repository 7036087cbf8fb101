"""Tables beside the inspections: what they say of a bridge, or of a bridge and visit, is joined to the visits."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rekka.errors import BadValues, MissingColumns, count_of, name_some
from rekka.readers.attributes import (
    ATTRIBUTES,
    check_names,
    collect,
    read_attributes,
    read_name,
    survey,
    translate,
)
from rekka.readers.files import ROW, Table, open_table
from rekka.readers.mapping import Dates, Join
from rekka.readers.names import find_columns, is_fiscal
from rekka.readers.values import read_counts, read_dates


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
    side = table.frame.select(ROW, **keys, **attributes.columns)
    rows, bridges = collect(side.select(pl.len(), pl.col("bridge_id").n_unique().alias("n")), table.name).row(0)
    if rows > bridges:
        keys |= _visit_key(table, found, here, dates)
        side = table.frame.select(ROW, **keys, **attributes.columns)
    if attributes.columns and all(name.startswith("repair_") for name in attributes.columns):
        once = _spread_repairs(collect(side, table.name), first_repair)
        notes += [*table.notes, *known, *attributes.notes, f"{table.name}: repairs, joined by bridge; "
                  f"{_count_bridges(visits, once, table.name)}"]  # fmt: skip
        return _merge(visits, once.lazy(), ["bridge_id"], once.columns[1:], join)
    once = collect(side.unique(list(keys), keep="first", maintain_order=True).drop(ROW), table.name)
    by = " and ".join(name.removesuffix("_id") for name in keys)
    known_there = _count_bridges(visits, once, table.name)
    notes += [*table.notes, *known, *attributes.notes, f"{table.name}: joined by {by}; {known_there}"]
    if len(once) < rows:
        notes.append(
            f"{table.name}: {rows - len(once):,} of {rows:,} rows repeat a {by}; the first of each is used"
        )
    return _merge(visits, once.lazy(), list(keys), list(attributes.columns), join)


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


def _visit_key(table: Table, found: dict[str, str], here: Sequence[str], dates: Dates) -> dict[str, pl.Expr]:
    """The second key of a table that has several rows a bridge."""
    if "visit" in found and "visit" in here:
        return {"visit": read_counts(pl.col(found["visit"]), table.frame.collect_schema()[found["visit"]])}
    if "date" not in found:
        return {}
    column = found["date"]
    if table.frame.collect_schema()[column].is_temporal():
        return {"date": pl.col(column).cast(pl.Date)}
    seen = survey(table.frame, column, table.name)
    where = f"{table.name}, {column}: "
    read = read_dates(seen["text"], dates.inspection, fiscal=is_fiscal(column), where=where)
    return {"date": translate(column, seen, read)}


def _merge(
    visits: pl.LazyFrame, side: pl.LazyFrame, keys: list[str], names: list[str], join: Join
) -> pl.LazyFrame:
    """Left join; values of the side table count only where it agrees with ours, if agreement is asked for."""
    here = visits.collect_schema().names()
    theirs = {name: f"{name} of the other table" for name in names}
    joined = visits.join(side.rename(theirs), on=keys, how="left", maintain_order="left")
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
