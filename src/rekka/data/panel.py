"""Inspection tables in, a panel of visits out: the only room that knows a user's column names.

Every record of the input stays in the panel. What cannot be read is null there, and ``problem`` says why.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadValues, MissingColumns, UnreadableTable, count_of, missing_columns, name_some
from rekka.data.attributes import (
    ATTRIBUTES,
    check_names,
    join_table,
    read_attributes,
    read_name,
    survey,
    translate,
)
from rekka.data.mapping import (
    KNOWN_NAMES,
    Columns,
    Join,
    Rules,
    TableMapping,
    Wide,
    find_columns,
    is_fiscal,
    is_known,
    load_mapping,
    resolve,
)
from rekka.data.reading import TableReading, settle
from rekka.data.tables import EXCEL, PARQUET, ROW, TEXT, Table, is_folder, open_table
from rekka.data.text import collect
from rekka.data.values import Scale, clean_text, read_counts, read_dates, read_numbers, read_states, take_dates

PAIRED = ("state_1", "state_2", "interval_years")  # a table with these holds transitions, and no visits
FIRST_ROWS = 20  # row numbers kept of suspicious states
ALL_CASES = "all"  # the case of a table that has none
INSPECTIONS, SIDE_TABLES = ("inspections", "点検"), ("inventory", "traffic", "橋梁", "交通量")


class Problem(enum.IntEnum):
    """Why a record cannot be used; the smallest that applies is the one told."""

    NONE = 0
    NO_BRIDGE = 1
    NO_CASE = 2
    BLANK_STATE = 3
    UNKNOWN_STATE = 4
    OUTSIDE_STATE = 5
    BLANK_DATE = 6
    UNKNOWN_DATE = 7
    NO_VISIT = 8


PROBLEMS = {
    Problem.NO_BRIDGE: "the bridge is blank",
    Problem.NO_CASE: "the case is blank",
    Problem.BLANK_STATE: "not inspected: the state is blank",
    Problem.UNKNOWN_STATE: "the state is not understood",
    Problem.OUTSIDE_STATE: "the state is outside the scale",
    Problem.BLANK_DATE: "the date is blank",
    Problem.UNKNOWN_DATE: "the date is not understood",
    Problem.NO_VISIT: "the visit's number is blank or not a number",
}


@dataclass(frozen=True)
class Panel:
    """Visits, one a record of the input, lazily: ``problem`` is 0 where the record can be used.

    Columns: row (and column, of a wide table), bridge_id, case, member, date, state, state_text, problem; visit,
    completed, repair_1 ..., bridge_length, bridge_area, traffic, further covariates and kept columns where known.
    """

    name: str
    visits: pl.LazyFrame
    columns: tuple[str, ...]
    covariates: tuple[str, ...]
    keep: tuple[str, ...]
    repairs: tuple[str, ...]
    members: bool  # whether the table tells members of a case apart
    problems: Mapping[int, str]
    records: int
    scale: Scale
    rules: Rules
    notes: tuple[str, ...]
    files: tuple[Path, ...] = ()  # all that were read
    reading: TableReading | None = None  # how they were read, for later tables


def read_panel(source: Any, mapping: Any = None, **changes: Any) -> Panel:
    """Read inspection records from a file or dataframe.

    Parameters
    ----------
    source : path or dataframe
        CSV, Excel or Parquet file, or any dataframe; or a folder that holds inspections, inventory and traffic.
    mapping : path or dict, optional
        What the columns and values mean; a TOML file or a dict of the same shape. Names that are known need none.
    **changes
        Sections of the mapping that overrule it, such as ``columns={"bridge": "ID"}`` or
        ``state={"bands": [85, 75, 70, 60]}``.

    """
    plan = load_mapping(mapping, changes)
    source, sides = find_tables(source)
    table = open_table(source, plan.table.options())
    check_names(table, plan.columns)
    notes = list(table.notes)
    wide = plan.wide or _recognise_wide(table, plan.columns, notes)
    roles = ["bridge", "case", "member", *ATTRIBUTES, *(() if wide else ("visit", "date", "state"))]
    found, known = find_columns(table, plan.columns, roles)
    _require(table, found, wide)
    if "case" not in found:
        notes.append(f"{table.name}: {_choose_case(found, plan.columns)}")
    attributes = read_attributes(table, found, plan.columns, plan.table, plan.dates)
    notes += [*known, *attributes.notes]
    columns = _identity(table, found) | attributes.columns
    records = _unpivot(table, columns, wide, plan.table.decimal) if wide else _lay_out(table, found, columns)
    fiscal = wide.key == "fiscal_year" if wide and not wide.date else is_fiscal(found.get("date", ""))
    visits, scale, number = _understand(records, plan, fiscal, table.name, notes)
    notes += _find_twins(visits, table.name, "member" in found)
    for join in [*sides, *plan.join]:
        visits = join_table(visits, join, plan.dates, notes)
    panel = _finish(table.name, visits, plan, scale, number, "member" in found, notes)
    read = [source, *(join.file for join in [*sides, *plan.join])]
    files = tuple(Path(one) for one in read if isinstance(one, str | Path))
    return replace(panel, files=files, reading=settle(plan, found, wide, scale))


def _choose_case(found: dict[str, str], given: Columns) -> str:
    """Without a column for the case, one that is called member tells kinds of member; in words."""
    if "member" in found and given.member is None:
        found["case"] = found.pop("member")
        return f"case is {found['case']}; name it as member if it identifies members of one kind"
    return f"no column for the case, so that all records are one component, {ALL_CASES!r}"


def find_tables(source: Any) -> tuple[Any, list[Join]]:
    """A folder of inspections, inventory and traffic is those tables, joined."""
    if not is_folder(source):
        return source, []
    folder = Path(source)
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in (*TEXT, *EXCEL, *PARQUET))
    main = [file for file in files if file.stem.lower() in INSPECTIONS]
    if len(main) > 1:
        names = ", ".join(file.name for file in main)
        raise UnreadableTable(
            f"The folder {folder.name or folder} has {names}. Give the file that is meant.", file=str(folder)
        )
    sides = [Join(file=file) for file in files if file.stem.lower() in SIDE_TABLES]
    return (main[0], sides) if main else (source, [])


def list_sources(path: Path) -> list[Path]:
    """List the files that are read where a path is given: the file itself, or the tables of a folder."""
    if not is_folder(path):
        return [path]
    main, sides = find_tables(path)
    return [main, *(join.file for join in sides)] if main != path else sorted(path.glob("*.parquet"))


def _recognise_wide(table: Table, columns: Columns, notes: list[str]) -> Wide | None:
    """Columns called by years, or state_1, date_1, state_2, ..., if no column is the state's."""
    if columns.state or any(is_known("state", name) for name in table.columns):
        return None
    if set(PAIRED) <= set(table.columns):
        raise UnreadableTable(
            f"{table.name} has {', '.join(PAIRED)}: it holds transitions already, not inspections.",
            file=table.name,
        )
    years = [name for name in table.columns if re.fullmatch(r"(?:19|20)\d\d", name)]
    if len(years) > 1:
        notes.append(f"{table.name}: a wide table with a column of states for each of {len(years)} years")
        return Wide(state="{year}")
    numbered = [m for name in table.columns if (m := re.fullmatch(r"(.*?\D)(\d{1,2})", name))]
    stems = {role: [m[1] for m in numbered if is_known(role, m[1])] for role in ("state", "date", "traffic")}
    if len(stems["state"]) < 2 or not stems["date"]:
        return None
    patterns = {role: names[0] + "{visit}" for role, names in stems.items() if names}
    notes.append(f"{table.name}: a wide table by visits, {', '.join(patterns.values())}")
    return Wide(**patterns)


def _require(table: Table, found: dict[str, str], wide: Wide | None) -> None:
    """Bridge, state and date must be there."""
    for role in ("bridge",) if wide else ("bridge", "state", "date"):
        if role not in found:
            raise MissingColumns(
                f"{table.name} has no column that is known as the {role}. Columns there: "
                f"{name_some(table.columns)}. {_find_remedy(table, role)}",
                missing=[role],
                present=list(table.columns),
            )


def _find_remedy(table: Table, role: str) -> str:
    """What to do about a part that no column plays."""
    used = next((name for name in table.columns if is_known(role, name)), None)
    if used is not None:
        return f"{used} has been given another part; say that it is the {role}, too, or which column is."
    words = f"Say which it is (--{role} COLUMN, or {role} in [columns] of a mapping), or call it one of "
    words += f"{', '.join(KNOWN_NAMES[role][:4])}."
    unnamed = any(re.fullmatch(r"column \d+", name) for name in table.columns)
    return words + (" Some have no name: if the header is another row, give header_row." if unnamed else "")


def _identity(table: Table, found: dict[str, str]) -> dict[str, pl.Expr]:
    """Row, bridge, case and member; the last three as text."""
    schema = table.frame.collect_schema()
    return {
        ROW: pl.col(ROW),
        "bridge_id": read_name(found["bridge"], schema),
        "case": read_name(found["case"], schema) if "case" in found else pl.lit(ALL_CASES),
        "member": read_name(found["member"], schema).fill_null("") if "member" in found else pl.lit(""),
    }


def _lay_out(table: Table, found: dict[str, str], columns: dict[str, pl.Expr]) -> pl.LazyFrame:
    """A long table: each row is a record."""
    if "visit" in found:
        schema = table.frame.collect_schema()
        columns = columns | {"visit": read_counts(pl.col(found["visit"]), schema[found["visit"]])}
    return table.frame.select(**columns, date=pl.col(found["date"]), state=pl.col(found["state"]))


def _unpivot(table: Table, columns: dict[str, pl.Expr], wide: Wide, decimal: str) -> pl.LazyFrame:
    """A wide table: each cell of the columns by year or visit is a record."""
    place = "{" + wide.key + "}"
    before, after = map(re.escape, wide.state.split(place))
    pattern = re.compile(f"{before}({r'[0-9]{4}' if 'year' in wide.key else r'[0-9]{1,2}'}){after}")
    keys = sorted((m[1] for name in table.columns if (m := pattern.fullmatch(name))), key=int)
    if not keys:
        raise missing_columns([wide.state], table.columns, table.name)

    def across(names: str) -> pl.Expr:
        return pl.concat_list(pl.col(resolve(table, names.replace(place, key))).cast(pl.String) for key in keys)

    def constant(values: Sequence[Any], dtype: type[pl.DataType]) -> pl.Expr:
        return pl.lit(pl.Series([list(values)], dtype=pl.List(dtype))).first()

    lists = {
        "column": constant([wide.state.replace(place, key) for key in keys], pl.String),
        "state": across(wide.state),
        "date": across(wide.date) if wide.date else constant(keys, pl.String),
    }
    if wide.key == "visit":
        lists["visit"] = constant([int(key) for key in keys], pl.Int32)
    if wide.traffic:
        lists["traffic"] = across(wide.traffic)
    records = table.frame.select(**(columns | lists)).explode(*lists)
    if not wide.traffic:
        return records
    return records.with_columns(traffic=read_numbers(pl.col("traffic"), pl.String(), decimal))


def _understand(
    records: pl.LazyFrame, plan: TableMapping, fiscal: bool, name: str, notes: list[str]
) -> tuple[pl.LazyFrame, Scale, int]:
    """Dates and states from their texts, the problem of each record that has one, and how many there are."""
    states = survey(records, "state", name)
    if states.is_empty():
        raise UnreadableTable(f"{name} has no rows.", file=name)
    read, scale = read_states(states["text"], states["count"], plan.state, plan.table.decimal)
    states = states.hstack(read)
    notes.append(f"{name}: states are {scale.words}")
    codes = states.select(code_states()).to_series()
    state_problem = pl.lit(Problem.NONE)
    if (codes != Problem.NONE).any():  # a clean column is not looked up twice
        state_problem = translate("state", states, codes).fill_null(Problem.BLANK_STATE)
    date, date_problem = _understand_dates(records, plan.dates.inspection, fiscal, name, notes)
    no_visit = pl.col("visit").is_null() if "visit" in records.collect_schema() else pl.lit(value=False)
    visits = records.with_columns(
        date=date,
        state=translate("state", states, states["state"]),
        state_text=pl.col("state"),
        problem=code_problems(state_problem, date_problem, no_visit),
    )
    ends = tuple(replace(end, rows=_find_rows(visits, end.texts, name)) for end in scale.ends)
    return visits, replace(scale, ends=ends), int(states["count"].sum())


def _find_rows(visits: pl.LazyFrame, texts: Sequence[str], name: str) -> tuple[int, ...]:
    """The first rows whose state is written in one of these ways."""
    here = visits.filter(pl.col("state_text").cast(pl.String).is_in(list(texts))).select(ROW)
    return tuple(collect(here.unique().sort(ROW).head(FIRST_ROWS), name)[ROW])


def code_problems(state_problem: pl.Expr, date_problem: pl.Expr, no_visit: pl.Expr) -> pl.Expr:
    """The first problem of each record."""
    return (
        pl.when(pl.col("bridge_id").is_null())
        .then(Problem.NO_BRIDGE)
        .when(pl.col("case").is_null())
        .then(Problem.NO_CASE)
        .when(state_problem > Problem.NONE)
        .then(state_problem)
        .when(date_problem > Problem.NONE)
        .then(date_problem)
        .when(no_visit)
        .then(Problem.NO_VISIT)
        .otherwise(Problem.NONE)
        .cast(pl.UInt8)
    )


def code_states() -> pl.Expr:
    """The problem of each distinct state, of what ``read_states`` says of it."""
    return (
        pl.when(pl.col("blank"))
        .then(Problem.BLANK_STATE)
        .when(pl.col("outside"))
        .then(Problem.OUTSIDE_STATE)
        .when(pl.col("state").is_null())
        .then(Problem.UNKNOWN_STATE)
        .otherwise(Problem.NONE)
        .cast(pl.UInt8)
    )


def code_dates(text: pl.Expr, dates: pl.Series) -> pl.Expr:
    """The problem of each distinct date, of its text and what it was read as."""
    return (
        pl.when(clean_text(text).is_null())
        .then(Problem.BLANK_DATE)
        .when(dates.is_null())
        .then(Problem.UNKNOWN_DATE)
        .otherwise(Problem.NONE)
        .cast(pl.UInt8)
    )


def code_typed_dates(date: pl.Expr) -> pl.Expr:
    """The problem of each date of a column that holds dates."""
    return (
        pl.when(date.is_null())
        .then(Problem.BLANK_DATE)
        .when(take_dates(date).is_null())
        .then(Problem.UNKNOWN_DATE)
        .otherwise(Problem.NONE)
    )


def _understand_dates(
    records: pl.LazyFrame, formats: str | list[str], fiscal: bool, name: str, notes: list[str]
) -> tuple[pl.Expr, pl.Expr]:
    """The date of each record, and its problem."""
    if records.collect_schema()["date"].is_temporal():
        return take_dates(pl.col("date")), code_typed_dates(pl.col("date"))
    if fiscal:
        notes.append(f"{name}: dates are fiscal years, from April")
    seen = survey(records, "date", name)
    dates = read_dates(seen["text"], formats, fiscal=fiscal, where=f"{name}, dates of inspection: ")
    if dates.null_count() == len(dates):
        example = seen["text"].drop_nulls()
        what = f"such as {example[0]!r}" if len(example) else "all are blank"
        raise BadValues(
            f"{name}: none of the {seen['count'].sum():,} inspection dates is understood, {what}. Say their "
            "format: iso, year, fiscal_year, month, mmyy, dmy, mdy, era, or a pattern such as %d.%m.%Y.",
            column="date",
        )
    codes = seen.select(code_dates(pl.col("text"), dates)).to_series()
    problem = translate("date", seen, codes).fill_null(Problem.BLANK_DATE)
    return translate("date", seen, dates), problem


def _find_twins(visits: pl.LazyFrame, table: str, members: bool) -> list[str]:
    """Names that differ only in capitals: they are different names, and perhaps should not be."""
    roles = ("bridge_id", "case", *(("member",) if members else ()))
    found = collect(visits.select(pl.col(role).unique().implode() for role in roles), table)
    lines = []
    for role in roles:
        names = found[role].explode().drop_nulls().cast(pl.String).sort()
        twins = names.filter(names.str.to_lowercase().is_duplicated())
        if len(twins):
            pair = twins.filter(twins.str.to_lowercase() == twins.str.to_lowercase()[0])[:2]
            lines.append(
                f"{table}: {count_of(len(twins), 'name')} of {role.removesuffix('_id')} differ from another only "
                f"in capitals, such as {' and '.join(pair)}; they are taken for different ones"
            )
    return lines


def _finish(
    name: str,
    visits: pl.LazyFrame,
    plan: TableMapping,
    scale: Scale,
    records: int,
    members: bool,
    notes: list[str],
) -> Panel:
    """Area from length and width, our names, and the list of what is known."""
    here = visits.collect_schema().names()
    if {"length", "width"} <= set(here):
        product = pl.col("length") * pl.col("width")
        visits = visits.with_columns(area=pl.coalesce("area", product) if "area" in here else product)
        notes.append(f"{name}: area is {'as given, else ' if 'area' in here else ''}length times width")
    visits = visits.drop("width", strict=False).rename(
        {"length": "bridge_length", "area": "bridge_area"}, strict=False
    )
    columns = tuple(visits.collect_schema().names())
    asked = [c for columns in (plan.columns, *(join.columns for join in plan.join)) for c in columns.covariates]
    keep = [c for columns in (plan.columns, *(join.columns for join in plan.join)) for c in columns.keep]
    return Panel(
        name=name,
        visits=visits,
        columns=columns,
        covariates=tuple(dict.fromkeys(asked)),
        keep=tuple(dict.fromkeys(keep)),
        repairs=tuple(c for c in columns if c.startswith("repair_")),
        members=members,
        problems={int(problem): sentence for problem, sentence in PROBLEMS.items()},
        records=records,
        scale=scale,
        rules=plan.rules,
        notes=tuple(notes),
    )
