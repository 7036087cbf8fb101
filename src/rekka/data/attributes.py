"""What a table says of a bridge or a visit besides its condition: completion, size, traffic, repairs and more."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from rekka.core.errors import BadOption, BadValues
from rekka.data.mapping import Columns, Dates, File
from rekka.data.names import is_fiscal, resolve
from rekka.data.queries import collect
from rekka.data.tables import ROW, Table
from rekka.data.values import SPACES, clean_text, read_dates, read_numbers, take_dates

NUMBERS = ("length", "width", "area", "traffic")
ATTRIBUTES = ("completed", *NUMBERS, "repairs")
# Names that columns of visits and transitions have; a column of the user's would be mistaken for them.
# Columns of transitions that are no covariates: names, and when and where.
NAMES = ("bridge_id", "case", "member", "part", "column_1", "column_2")
PLACES = ("date_1", "date_2", "visit_1", "visit_2", "history", "row_1", "row_2")
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
    table: Table, found: dict[str, str], columns: Columns, file: File, dates: Dates, first_repair: int = 1
) -> Attributes:
    """The attributes that ``found`` and ``columns`` name, in the table's format; repairs are numbered."""
    schema = table.frame.collect_schema()
    repairs = [resolve(table, name) for name in columns.repairs]
    if not repairs and "repairs" in found:
        repairs = [found["repairs"]]
    dated = {f"repair_{place}": (column, dates.repair) for place, column in enumerate(repairs, start=first_repair)}
    if "completed" in found:
        dated["completed"] = (found["completed"], dates.completed)
    numbers = {name: found[name] for name in NUMBERS if name in found}
    numbers |= {name: resolve(table, name) for name in columns.covariates}
    for column in numbers.values():
        if schema[column].is_temporal():
            raise BadValues(f"{table.name}: {column} holds dates or times; numbers are needed.", column=column)
    out = {name: read_numbers(pl.col(c), schema[c], file.decimal) for name, c in numbers.items()}
    notes = _unread_numbers(table, numbers, file.decimal)
    for name, (column, formats) in dated.items():
        out[name], unread = _read_dates(table, column, formats)
        notes += unread
    out |= {name: pl.col(resolve(table, name)) for name in columns.keep}
    return Attributes(out, tuple(notes))


def check_names(table: Table, columns: Columns) -> None:
    """Refuse covariates and kept columns that would take the place of our own."""
    for name in (*columns.covariates, *columns.keep):
        if name in OWN_NAMES or re.fullmatch(r"repair_\d+", name):
            raise BadOption(
                f"{table.name}: {name} cannot be among covariates or keep, as rekka has a column of that name. "
                "Leave it out if it plays a part already, as traffic and length do; or rename it.",
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


def survey(frame: pl.LazyFrame, column: str, name: str) -> pl.DataFrame:
    """The distinct values of a column, each as text too, how often it stands there and where first."""
    groups = frame.group_by(value=pl.col(column)).agg(count=pl.len(), row=pl.col(ROW).min())
    return collect(groups, name).with_columns(text=pl.col("value").cast(pl.String)).sort("row", "text")


def translate(column: str, seen: pl.DataFrame, values: pl.Series) -> pl.Expr:
    """What each of the values seen means, looked up.

    In batches, because polars' own lookup holds the whole column in memory: 6 GB against 0.5 for 50 million rows.
    """

    def look_up(batch: pl.Series) -> pl.Series:
        return batch.replace_strict(seen["value"], values, default=None, return_dtype=values.dtype)

    return pl.col(column).map_batches(look_up, return_dtype=values.dtype, is_elementwise=True)


def _read_dates(table: Table, column: str, formats: str | list[str]) -> tuple[pl.Expr, list[str]]:
    """A column of dates of a bridge, such as its completion; 0 and blank mean none."""
    if table.frame.collect_schema()[column].is_temporal():
        return take_dates(pl.col(column)), []
    seen = survey(table.frame, column, table.name)
    where = f"{table.name}, {column}: "
    dates = read_dates(seen["text"], formats, fiscal=is_fiscal(column), where=where)
    text = clean_text(pl.col("text"))
    means_none = text.is_null() | (text.cast(pl.Float64, strict=False) == 0).fill_null(value=False)
    unread = seen.filter(dates.is_null() & ~means_none)
    return translate(column, seen, dates), _unread_note(table, column, "dates", unread)


def _unread_numbers(table: Table, columns: dict[str, str], decimal: str) -> list[str]:
    """A sentence for each column of numbers that holds something else."""
    schema = table.frame.collect_schema()
    texts = [column for column in dict.fromkeys(columns.values()) if schema[column] == pl.String]
    wrong = [
        (
            clean_text(pl.col(column)).is_not_null()
            & read_numbers(pl.col(column), schema[column], decimal).is_null()
        )
        for column in texts
    ]
    if not texts:
        return []
    sums = collect(table.frame.select(bad.sum().alias(c) for c, bad in zip(texts, wrong, strict=True)), table.name)
    filled = collect(table.frame.select(clean_text(pl.col(c)).count().alias(c) for c in texts), table.name)
    notes = []
    for column, bad in zip(texts, wrong, strict=True):
        if sums[column].item():
            first = table.frame.filter(bad).select(ROW, text=column).head(1)
            unread = collect(first, table.name).with_columns(count=sums[column])
            if sums[column].item() == filled[column].item():
                raise text_for_numbers(table.name, column, *unread.select(ROW, "text").row(0))
            notes += _unread_note(table, column, "numbers", unread)
    return notes


def text_for_numbers(table: str, column: str, row: int | None, text: str) -> BadValues:
    """The error for a column of text where a covariate needs numbers."""
    where = "" if row is None else f" in row {row}"
    return BadValues(
        f"{table}: {column} holds text, such as {text!r}{where}; a covariate needs numbers. Leave it out, or "
        "write a number for each kind: 0 and 1 for two kinds, a column of these for each of several.",
        column=column,
        rows=[] if row is None else [row],
    )


def _unread_note(table: Table, column: str, what: str, unread: pl.DataFrame) -> list[str]:
    if unread.is_empty():
        return []
    first = unread.row(0, named=True)
    count = unread["count"].sum()
    return [
        f"{table.name}: {count:,} value{'s' if count > 1 else ''} of {column} taken as missing: no {what}, such "
        f"as {first['text']!r} in row {first[ROW]}"
    ]
