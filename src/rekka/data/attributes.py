"""Attributes of bridges and visits besides the condition: completion, size, traffic, repairs, covariates.

They stand in the table of inspections itself, or in another table that is joined by bridge, or by bridge and
visit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rekka.core.errors import BadOption, BadValues, MissingColumns, count_of, name_some
from rekka.data.mapping import ColumnRoles, Dates, Format, Join, find_columns, is_fiscal, resolve
from rekka.data.tables import ROW, SourceTable, open_table
from rekka.data.text import FileOptions, collect
from rekka.data.values import SPACES, clean_text, means_none, read_counts, read_dates, read_numbers, take_dates

NUMBERS = ("length", "width", "area", "traffic")
NO, YES = "no", "yes"
TEXTS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
ATTRIBUTES = ("completed", *NUMBERS, "repairs")
# Columns of transitions that are no covariates: names, and when and where.
NAMES = ("bridge_id", "case", "member", "part", "column_1", "column_2")
PLACES = ("date_1", "date_2", "visit_1", "visit_2", "history", "row_1", "row_2")
# Names that columns of visits and transitions have; a column of the user's would be mistaken for them.
OWN_NAMES = frozenset({
    *NAMES, *PLACES, *NUMBERS, "row", "column", "visit", "date", "state", "state_text", "problem", "completed",
    "state_1", "state_2", "interval_years", "age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean",
})  # fmt: skip


@dataclass(frozen=True)
class Attributes:
    """Columns under our names, as expressions over the table, and what could not be read."""

    columns: dict[str, pl.Expr]
    notes: tuple[str, ...]


def read_attributes(
    table: SourceTable,
    found: dict[str, str],
    columns: ColumnRoles,
    file: FileOptions,
    dates: Dates,
    first_repair: int = 1,
) -> Attributes:
    """Attributes that ``found`` and ``columns`` name, in the table's format; repairs are numbered."""
    schema = table.frame.collect_schema()
    repairs = [resolve(table, name) for name in columns.repairs]
    if not repairs and "repairs" in found:
        repairs = [found["repairs"]]
    dated = {f"repair_{place}": (column, dates.repair) for place, column in enumerate(repairs, start=first_repair)}
    if "completed" in found:
        dated["completed"] = (found["completed"], dates.completed)
    numbers = {name: found[name] for name in NUMBERS if name in found}
    asked = {name: resolve(table, name) for name in columns.asked}
    texts = find_texts(table, asked.values(), file.decimal)
    named = {name for name, column in asked.items() if name in columns.categories or column in texts}
    numbers |= {name: column for name, column in asked.items() if name not in named}
    for column in numbers.values():
        if schema[column].is_temporal():
            raise BadValues(
                f"{table.name}: {column} holds dates or times; numbers are needed.",
                problem="not_numbers",
                column=column,
            )
    out = {name: read_numbers(pl.col(c), schema[c], file.decimal) for name, c in numbers.items()}
    notes = _unread_numbers(table, numbers, file.decimal)
    for name, (column, formats) in dated.items():
        out[name], unread = _read_dates(table, column, formats)
        notes += unread
    out |= {name: level_text(asked[name], schema) for name in asked if name in named}
    out |= {name: pl.col(resolve(table, name)) for name in columns.keep}
    return Attributes(out, tuple(notes))


def check_names(table: SourceTable, columns: ColumnRoles) -> None:
    """Refuse covariates and kept columns that would take the place of our own."""
    for name in (*columns.asked, *columns.keep):
        if name in OWN_NAMES or re.fullmatch(r"repair_\d+", name):
            raise BadOption(
                f"{table.name}: {name} cannot be among covariates or keep, as rekka has a column of that name. "
                "Leave it out if it plays a part already, as traffic and length do; or rename it.",
                problem="own_name",
                column=name,
            )


def read_name(column: str, schema: pl.Schema) -> pl.Expr:
    """A name as text without blanks around, null where blank; 17.0 is 17."""
    if schema[column].is_float():
        whole = pl.col(column).cast(pl.Int64, strict=False)
        text = (
            pl.when(pl.col(column) == whole)
            .then(whole.cast(pl.String))
            .otherwise(pl.col(column).fill_nan(None).cast(pl.String))
        )
    else:
        text = pl.col(column).cast(pl.String).str.strip_chars(SPACES)
    return pl.when(text != "").then(text)


def level_text(column: str, schema: Mapping[str, Any]) -> pl.Expr:
    """Level of a category as text: without blanks around, null where blank, yes and no for booleans."""
    if schema[column] == pl.Boolean:
        return pl.when(pl.col(column)).then(pl.lit(YES)).when(~pl.col(column)).then(pl.lit(NO))
    return read_name(column, pl.Schema(schema))


def is_text(dtype: Any) -> bool:
    """Whether a column of this type is a category without being declared as one."""
    return any(dtype == kind for kind in TEXTS)


def find_texts(table: SourceTable, columns: Iterable[str], decimal: str) -> set[str]:
    """Columns that are categories by what they hold: booleans, and texts of which most are no numbers."""
    schema = table.frame.collect_schema()
    texts = [name for name in dict.fromkeys(columns) if is_text(schema[name])]
    asked = {}
    for name in (name for name in texts if schema[name] == pl.String):
        filled = clean_text(pl.col(name)).is_not_null()
        unread = filled & read_numbers(pl.col(name), pl.String(), decimal).is_null()
        asked[name] = 2 * unread.sum() <= filled.sum()
    numbers = collect(table.frame.select(**asked), table.name).row(0, named=True) if asked else {}
    return {name for name in texts if not numbers.get(name)}


def survey(frame: pl.LazyFrame, column: str, name: str) -> pl.DataFrame:
    """Distinct values of a column, each as text too, how often it stands there and where first."""
    groups = frame.group_by(value=pl.col(column)).agg(count=pl.len(), row=pl.col(ROW).min())
    return collect(groups, name).with_columns(text=pl.col("value").cast(pl.String)).sort("row", "text")


def translate(column: str, seen: pl.DataFrame, values: pl.Series) -> pl.Expr:
    """Look up the meaning of each value that was seen.

    In batches, because polars' own lookup holds the whole column in memory: 6 GB against 0.5 for 50 million rows.
    """

    def look_up(batch: pl.Series) -> pl.Series:
        return batch.replace_strict(seen["value"], values, default=None, return_dtype=values.dtype)

    return pl.col(column).map_batches(look_up, return_dtype=values.dtype, is_elementwise=True)


def read_date_column(
    frame: pl.LazyFrame, column: str, formats: Format, *, fiscal: bool, name: str, where: str
) -> tuple[pl.Expr, pl.DataFrame]:
    """Dates of a column, and its distinct texts with the ``date`` of each; without texts where it is of dates."""
    if frame.collect_schema()[column].is_temporal():
        return take_dates(pl.col(column)), pl.DataFrame(schema={"text": pl.String, "date": pl.Date})
    seen = survey(frame, column, name)
    seen = seen.with_columns(date=read_dates(seen["text"], formats, fiscal=fiscal, where=where))
    return translate(column, seen, seen["date"]), seen


def _read_dates(table: SourceTable, column: str, formats: Format) -> tuple[pl.Expr, list[str]]:
    """Read a column of dates of a bridge, such as its completion; 0 and blank mean none."""
    fiscal, where = is_fiscal(column), f"{table.name}, {column}: "
    date, seen = read_date_column(table.frame, column, formats, fiscal=fiscal, name=table.name, where=where)
    unread = seen.filter(pl.col("date").is_null() & ~means_none(pl.col("text")))
    return date, _unread_note(table, column, "dates", unread)


def _unread_numbers(table: SourceTable, columns: dict[str, str], decimal: str) -> list[str]:
    """A sentence for each column of numbers that holds something else."""
    schema = table.frame.collect_schema()
    asked = {}
    for column in (one for one in columns.values() if schema[one] == pl.String):
        filled = clean_text(pl.col(column)).is_not_null()
        bad = filled & read_numbers(pl.col(column), pl.String(), decimal).is_null()
        first = [pl.col(ROW).filter(bad).first(), pl.col(column).filter(bad).first().alias("text")]
        asked[column] = pl.struct(first, count=bad.sum(), filled=filled.sum())
    notes = []
    for column, found in collect(table.frame.select(**asked), table.name).to_dict().items() if asked else ():
        unread = found.struct.unnest().filter(pl.col("count") > 0)
        if not unread.is_empty() and unread["count"].item() == unread["filled"].item():
            row, text = unread.select(ROW, "text").row(0)
            raise BadValues(
                f"{table.name}: {column} holds text, such as {text!r} in row {row}; numbers are needed. Name "
                "another column, or correct this one.",
                problem="not_numbers",
                column=column,
                value=text,
                rows=[row],
            )
        notes += _unread_note(table, column, "numbers", unread)
    return notes


def _unread_note(table: SourceTable, column: str, what: str, unread: pl.DataFrame) -> list[str]:
    if unread.is_empty():
        return []
    first = unread.row(0, named=True)
    count = unread["count"].sum()
    return [
        f"{table.name}: {count:,} value{'s' if count > 1 else ''} of {column} taken as missing: no {what}, such "
        f"as {first['text']!r} in row {first[ROW]}"
    ]


YEAR = "year of inspection"


def join_table(visits: pl.LazyFrame, join: Join, dates: Dates, notes: list[str]) -> pl.LazyFrame:
    """Bring in what another table says of each bridge, or of each bridge and visit or date."""
    table = open_table(join.file, join)
    check_names(table, join.columns)
    here = visits.collect_schema().names()
    absent = [role for role in ATTRIBUTES if (role if role != "repairs" else "repair_1") not in here]
    found, known = find_columns(table, join.columns, ["bridge", "visit", "date", *absent])
    if "bridge" not in found:
        raise MissingColumns(
            f"{table.name} has no column that is known as the bridge. Columns there: {name_some(table.columns)}. "
            "Say which it is in columns of its [[join]].",
            problem="join_bridge",
            file=table.name,
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
    notes += [*table.notes, *known, *attributes.notes]
    found_there = _count_bridges(visits, side, table.name)
    if attributes.columns and all(name.startswith("repair_") for name in attributes.columns):
        once = _spread_repairs(side, first_repair)
        notes.append(f"{table.name}: repairs, joined by bridge; {found_there}")
        return _merge(visits, once, ["bridge_id"], join)
    if side["bridge_id"].is_duplicated().any():
        second = _second_key(table, found, here, dates)
        side = collect(table.frame.select(ROW, **keys, **second, **attributes.columns), table.name)
        side, visits = _by_year(side, visits)
        keys |= {name: pl.col(name) for name in ("visit", "date", YEAR) if name in side.columns}
    once = side.unique(list(keys), keep="first", maintain_order=True).drop(ROW)
    by = " and ".join(name.removesuffix("_id") for name in keys)
    _require_matches(visits, once, list(keys), table.name, by)
    notes.append(f"{table.name}: joined by {by}; {found_there}")
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
            problem="join_rows",
            file=name,
        )


def _count_bridges(visits: pl.LazyFrame, side: pl.DataFrame, name: str) -> str:
    """Count the bridges that the other table has too; refuse one that has none: names are not written alike."""
    bridges = collect(visits.select("bridge_id").drop_nulls().unique().sort("bridge_id"), name)["bridge_id"]
    found = bridges.is_in(side["bridge_id"].drop_nulls().unique().implode()).sum()
    if not found and len(bridges):
        raise BadValues(
            f"None of the {count_of(len(bridges), 'bridge')} is in {name}: ours are like {bridges[0]!r}, its like "
            f"{next(iter(side['bridge_id'].drop_nulls()), 'none')!r}. Write them alike, or name another column.",
            problem="join_none",
            file=name,
            ours=str(bridges[0]),
            theirs=str(next(iter(side["bridge_id"].drop_nulls()), "")),
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


def _second_key(
    table: SourceTable, found: dict[str, str], here: Sequence[str], dates: Dates
) -> dict[str, pl.Expr]:
    """Second key of a table that has several rows a bridge."""
    if "visit" in found and "visit" in here:
        return {"visit": read_counts(pl.col(found["visit"]), table.frame.collect_schema()[found["visit"]])}
    if "date" not in found:
        return {}
    return {"date": _read_dates(table, found["date"], dates.inspection)[0]}


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
