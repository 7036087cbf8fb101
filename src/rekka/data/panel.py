"""Panels: visits read from tables of inspections. After this module there are only rekka's own column names.

Every record of the input stays in the panel. What cannot be read is null there, and ``problem`` says why.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadValues, MissingColumns, UnreadableTable, count_of, missing_columns, name_some
from rekka.core.language import NO_COMPONENTS
from rekka.data.attributes import (
    ATTRIBUTES,
    check_names,
    join_table,
    read_attributes,
    read_date_column,
    read_name,
    survey,
    translate,
)
from rekka.data.components import find_components, has_state, is_inventory, stack_components
from rekka.data.mapping import (
    KNOWN_NAMES,
    ColumnRoles,
    Format,
    Join,
    Rules,
    TableMapping,
    Wide,
    find_columns,
    is_fiscal,
    is_ignored,
    is_known,
    load_mapping,
    resolve,
    split_names,
    suggest_repairs,
)
from rekka.data.reading import BY_VISIT, TableReading, settle
from rekka.data.tables import EXCEL, PARQUET, ROW, TEXT, SourceTable, is_folder, open_table
from rekka.data.text import collect
from rekka.data.values import Scale, clean_text, read_counts, read_numbers, read_states

PAIRED = ("state_1", "state_2", "interval_years")  # a table with these holds transitions, and no visits
FIRST_ROWS = 20  # row numbers kept of suspicious states
ALL_CASES = NO_COMPONENTS  # the case of a table that has none
INSPECTIONS, SIDE_TABLES = ("inspections", "点検"), ("inventory", "traffic", "橋梁", "交通量")


class RecordProblem(enum.IntEnum):
    """Problems for which a record cannot be used; the smallest that applies counts."""

    NONE = 0
    NO_BRIDGE = 1
    NO_CASE = 2
    BLANK_STATE = 3
    UNKNOWN_STATE = 4
    OUTSIDE_STATE = 5
    BLANK_DATE = 6
    UNKNOWN_DATE = 7
    NO_VISIT = 8


PROBLEMS: dict[int, str] = {
    RecordProblem.NO_BRIDGE: "the bridge is blank",
    RecordProblem.NO_CASE: "the case is blank",
    RecordProblem.BLANK_STATE: "not inspected: the state is blank",
    RecordProblem.UNKNOWN_STATE: "the state is not understood",
    RecordProblem.OUTSIDE_STATE: "the state is outside the scale",
    RecordProblem.BLANK_DATE: "the date is blank",
    RecordProblem.UNKNOWN_DATE: "the date is not understood",
    RecordProblem.NO_VISIT: "the visit's number is blank or not a number",
}


@dataclass(frozen=True)
class Panel:
    """Visits as they were read, one for each record of the input.

    ``visits`` is a LazyFrame; its ``problem`` is 0 where the record can be used, else a key of ``problems``. Its
    columns: row (and column, where a row has several records), bridge_id, case, member, date, state, state_text,
    problem; visit, completed, repair_1 ..., bridge_length (m), bridge_area (m2), traffic (vehicles a day), further
    covariates and kept columns where known. ``records`` is their number, ``scale`` names the states, ``notes`` say
    how the table was read.

    Examples
    --------
    >>> import rekka
    >>> panel = rekka.read_panel(rekka.simulate_inventory(50, preset="plain").inspections)
    >>> panel.scale.names, panel.records == panel.visits.collect().height
    (('a', 'b', 'c', 'd', 'e'), True)

    """

    name: str
    visits: pl.LazyFrame
    records: int
    scale: Scale
    covariates: tuple[str, ...] = ()  # besides age, size and traffic
    keep: tuple[str, ...] = ()
    members: bool = False  # whether the table identifies members of a case
    problems: Mapping[int, str] = field(default_factory=lambda: PROBLEMS)
    rules: Rules = field(default_factory=Rules)
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()  # all that were read
    reading: TableReading | None = None  # how they were read, for later tables

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of ``visits``."""
        return tuple(self.visits.collect_schema().names())

    @property
    def repairs(self) -> tuple[str, ...]:
        """Columns of the dates of repairs."""
        return tuple(name for name in self.columns if name.startswith("repair_"))


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

    Returns
    -------
    Panel
        The visits, lazily, with the problem of each record that cannot be used.

    Examples
    --------
    >>> import polars as pl, rekka
    >>> table = pl.DataFrame({"ID": ["1", "1"], "year": [2015, 2020], "index": [92.0, 71.0]})
    >>> columns = {"bridge": "ID", "state": "index"}
    >>> panel = rekka.read_panel(table, columns=columns, state={"bands": [85, 75, 70, 60]})
    >>> panel.visits.collect()["state"].to_list()
    [1, 3]

    """
    plan = load_mapping(mapping, changes)
    source, sides = find_tables(source)
    table = open_table(source, plan.table)
    roles = find_roles(table, plan)
    plan, found, wide, components, notes = roles.plan, roles.found, roles.wide, roles.components, list(roles.notes)
    _require(table, found, wide, components)
    notes += [] if components else choose_case(table, found, plan.columns, "records are")
    attributes = read_attributes(table, found, plan.columns, plan.table, plan.dates)
    notes += [*roles.known, *attributes.notes]
    own = {role: name for role, name in found.items() if not (wide and role in BY_VISIT)}
    columns = name_records(table, own) | attributes.columns
    if wide:
        records = _unpivot(table, columns, wide, plan)
    elif components:
        records = stack_components(table, columns, components)
    else:
        records = table.frame.select(**columns)
    fiscal = wide.key == "fiscal_year" if wide and not wide.date else is_fiscal(found.get("date", ""))
    visits, scale, number = read_records(records, plan, fiscal, table.name, notes)
    scale = replace(scale, repairs=suggest_repairs(table.columns, found, plan.columns))
    notes += _find_twins(visits, table.name, "member" in found)
    for join in [*sides, *plan.join]:
        visits = join_table(visits, join, plan.dates, notes)
    visits = name_sizes(visits, table.name, notes)
    read = [source, *(join.file for join in [*sides, *plan.join])]
    return Panel(
        name=table.name,
        visits=visits,
        records=number,
        scale=scale,
        covariates=list_asked("asked", plan.columns, plan.join),
        keep=list_asked("keep", plan.columns, plan.join),
        members="member" in found,
        rules=plan.rules,
        notes=tuple(notes),
        files=tuple(Path(one) for one in read if isinstance(one, str | Path)),
        reading=settle(plan, found, wide, scale),
    )


@dataclass(frozen=True)
class TableRoles:
    """Columns of a table by role, as given or known by their names; ``known`` says which were recognised."""

    plan: TableMapping
    found: dict[str, str]
    wide: Wide | None
    components: dict[str, str]
    notes: tuple[str, ...]
    known: tuple[str, ...]


def find_roles(table: SourceTable, plan: TableMapping) -> TableRoles:
    """Find which column is what, before any value is read."""
    plan = split_names(plan, table)
    check_names(table, plan.columns)
    notes = list(table.notes)
    wide = plan.wide or _recognise_wide(table, plan.columns, notes)
    components = {} if wide else find_components(table, plan, notes)
    plan = name_components(plan, components)
    roles = ["bridge", "case", "member", *ATTRIBUTES, *(() if wide else ("visit", "date", "state"))]
    found, known = find_columns(
        table, plan.columns, [role for role in roles if role not in by_component(components)]
    )
    return TableRoles(plan, found, wide, components, tuple(notes), tuple(known))


def name_components(plan: TableMapping, components: Mapping[str, str]) -> TableMapping:
    """Mapping with the columns of the components that were found."""
    return plan.model_copy(update={"columns": plan.columns.model_copy(update={"components": dict(components)})})


def by_component(components: Mapping[str, str]) -> tuple[str, ...]:
    """Roles that a table with a column for each component has no column for."""
    return ("case", "state") if components else ()


def choose_case(table: SourceTable, found: dict[str, str], given: ColumnRoles, what: str) -> list[str]:
    """Find the case of a table without a column for it, in ``found``: the column called member, or one case."""
    if "case" in found:
        return []
    if "member" in found and given.member is None:
        found["case"] = found.pop("member")
        return [f"{table.name}: case is {found['case']}; name it as member if it identifies members of one kind"]
    return [f"{table.name}: no column for the case, so that all {what} one component, {ALL_CASES!r}"]


def list_asked(what: str, columns: ColumnRoles, joins: Sequence[Join]) -> tuple[str, ...]:
    """Columns asked for as covariates or to be kept, of a table and those joined to it, each once."""
    lists = (getattr(one, what) for one in (columns, *(join.columns for join in joins)))
    return tuple(dict.fromkeys(name for names in lists for name in names))


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


def _recognise_wide(table: SourceTable, columns: ColumnRoles, notes: list[str]) -> Wide | None:
    """Columns called by years, or state_1, date_1, state_2, ..., if no column is the state's."""
    if columns.state or has_state(table, columns):
        return None
    if set(PAIRED) <= set(table.columns):
        raise UnreadableTable(
            f"{table.name} has {', '.join(PAIRED)}: it holds transitions already, not inspections.",
            file=table.name,
        )
    free = [name for name in table.columns if not is_ignored(columns, name)]
    years = [name for name in free if re.fullmatch(r"(?:19|20)\d\d", name)]
    if len(years) > 1:
        notes.append(f"{table.name}: a wide table with a column of states for each of {len(years)} years")
        return Wide(state="{year}")
    numbered = [m for name in free if (m := re.fullmatch(r"(.*?\D)(\d{1,2})", name))]
    stems = {role: [m[1] for m in numbered if is_known(role, m[1])] for role in ("state", "date", "traffic")}
    if len(stems["state"]) < 2 or not stems["date"]:
        return None
    patterns = {role: names[0] + "{visit}" for role, names in stems.items() if names}
    notes.append(f"{table.name}: a wide table by visits, {', '.join(patterns.values())}")
    return Wide(**patterns)


def _require(table: SourceTable, found: dict[str, str], wide: Wide | None, components: Mapping[str, str]) -> None:
    """Bridge, state and date must be there."""
    for role in ("bridge",) if wide else ("bridge", "state", "date"):
        if role not in found and role not in by_component(components):
            raise MissingColumns(
                f"{table.name} has no column that is known as the {role}. Columns there: "
                f"{name_some(table.columns)}. {_find_remedy(table, role)}",
                problem="no_role",
                missing=[role],
                present=list(table.columns),
            )


def _find_remedy(table: SourceTable, role: str) -> str:
    """Sentence on what to do about a role that no column has."""
    used = next((name for name in table.columns if is_known(role, name)), None)
    if used is not None:
        return f"{used} has been given another part; say that it is the {role}, too, or which column is."
    words = f"Say which it is (--{role} COLUMN, or {role} in [columns] of a mapping), or call it one of "
    words += f"{', '.join(KNOWN_NAMES[role][:4])}."
    if role == "state":
        words += " Where each component has a column of ratings, name these: --component Deck=COLUMN."
    unnamed = any(re.fullmatch(r"column \d+", name) for name in table.columns)
    return words + (" Some have no name: if the header is another row, give header_row." if unnamed else "")


def name_records(table: SourceTable, found: Mapping[str, str]) -> dict[str, pl.Expr]:
    """Columns of records under our names: row; bridge, case and member as text; state and date as written."""
    schema = table.frame.collect_schema()
    columns = {
        ROW: pl.col(ROW),
        "bridge_id": read_name(found["bridge"], schema),
        "case": read_name(found["case"], schema) if "case" in found else pl.lit(ALL_CASES),
        "member": read_name(found["member"], schema).fill_null("") if "member" in found else pl.lit(""),
    }
    columns |= {role: pl.col(found[role]) for role in ("date", "state") if role in found}
    if "visit" in found:
        columns["visit"] = read_counts(pl.col(found["visit"]), schema[found["visit"]])
    return columns


def list_wide(table: SourceTable, wide: Wide, columns: ColumnRoles) -> dict[str, str]:
    """Columns of ratings of a wide table by year or visit, in order."""
    before, after = map(re.escape, wide.state.split("{" + wide.key + "}"))
    pattern = re.compile(f"{before}({r'[0-9]{4}' if 'year' in wide.key else r'[0-9]{1,2}'}){after}")
    free = (name for name in table.columns if not is_ignored(columns, name))
    found = {m[1]: name for name in free if (m := pattern.fullmatch(name))}
    return dict(sorted(found.items(), key=lambda one: int(one[0])))


def _unpivot(table: SourceTable, columns: dict[str, pl.Expr], wide: Wide, plan: TableMapping) -> pl.LazyFrame:
    """A wide table: each cell of the columns by year or visit is a record."""
    place = "{" + wide.key + "}"
    keys = list(list_wide(table, wide, plan.columns))
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
    return records.with_columns(traffic=read_numbers(pl.col("traffic"), pl.String(), plan.table.decimal))


def read_records(
    records: pl.LazyFrame, plan: TableMapping, fiscal: bool, name: str, notes: list[str]
) -> tuple[pl.LazyFrame, Scale, int]:
    """Read dates and states from their texts: records with the problem of each, the scale, and their number.

    Records without a column ``date`` get one of nulls, which is no problem of theirs.
    """
    states = survey(records, "state", name)
    if states.is_empty():
        raise UnreadableTable(f"{name} has no rows.", problem="empty", file=name)
    inventory = is_inventory(plan.columns.components)
    read, scale = read_states(states["text"], states["count"], plan.state, plan.table.decimal, inventory=inventory)
    states = states.hstack(read)
    notes.append(f"{name}: ratings are {scale.words}")
    codes = states.select(code_states()).to_series()
    state_problem = pl.lit(0)
    if (codes != RecordProblem.NONE).any():  # a clean column is not looked up twice
        state_problem = translate("state", states, codes).fill_null(RecordProblem.BLANK_STATE)
    date, date_problem = _read_inspection_dates(records, plan.dates.inspection, fiscal, name, notes)
    no_visit = pl.col("visit").is_null() if "visit" in records.collect_schema() else pl.lit(value=False)
    visits = records.with_columns(
        date=date,
        state=translate("state", states, states["state"]),
        state_text=pl.col("state"),
        problem=first_problem(
            (pl.col("bridge_id").is_null(), RecordProblem.NO_BRIDGE),
            (pl.col("case").is_null(), RecordProblem.NO_CASE),
            state_problem,
            date_problem,
            (no_visit, RecordProblem.NO_VISIT),
        ),
    )
    ends = tuple(replace(end, rows=_find_rows(visits, end.texts, name)) for end in scale.ends)
    return visits, replace(scale, ends=ends), int(states["count"].sum())


def _find_rows(visits: pl.LazyFrame, texts: Sequence[str], name: str) -> tuple[int, ...]:
    """First rows whose state is written in one of these ways."""
    here = visits.filter(pl.col("state_text").cast(pl.String).is_in(list(texts))).select(ROW)
    return tuple(collect(here.unique().sort(ROW).head(FIRST_ROWS), name)[ROW])


def first_problem(*problems: pl.Expr | tuple[pl.Expr, int]) -> pl.Expr:
    """Code of the first problem of each record, 0 for none: of codes, and of conditions with the code of each."""
    found = pl.lit(0)
    for one in reversed(problems):
        here, code = (one > 0, one) if isinstance(one, pl.Expr) else (one[0], pl.lit(int(one[1])))
        found = pl.when(here).then(code).otherwise(found)
    return found.cast(pl.UInt8)


def code_states() -> pl.Expr:
    """Problem of each distinct state, of the columns that ``read_states`` gives."""
    return first_problem(
        (pl.col("blank"), RecordProblem.BLANK_STATE),
        (pl.col("outside"), RecordProblem.OUTSIDE_STATE),
        (pl.col("state").is_null(), RecordProblem.UNKNOWN_STATE),
    )


def code_dates(text: pl.Expr, date: pl.Expr) -> pl.Expr:
    """Problem of each date, of its text and the date it was read as."""
    return first_problem(
        (text.is_null(), RecordProblem.BLANK_DATE),
        (date.is_null(), RecordProblem.UNKNOWN_DATE),
    )


def _read_inspection_dates(
    records: pl.LazyFrame, formats: Format, fiscal: bool, name: str, notes: list[str]
) -> tuple[pl.Expr, pl.Expr]:
    """Date of each record, and its problem."""
    schema = records.collect_schema()
    if "date" not in schema:
        return pl.lit(None, pl.Date), pl.lit(0)
    where = f"{name}, dates of inspection: "
    date, seen = read_date_column(records, "date", formats, fiscal=fiscal, name=name, where=where)
    if schema["date"].is_temporal():
        return date, code_dates(pl.col("date"), date)
    if fiscal:
        notes.append(f"{name}: dates are fiscal years, from April")
    if seen["date"].null_count() == len(seen):
        example = seen["text"].drop_nulls()
        what = f"such as {example[0]!r}" if len(example) else "all are blank"
        raise BadValues(
            f"{name}: none of the {seen['count'].sum():,} inspection dates is understood, {what}. Say their "
            "format: iso, year, fiscal_year, month, mmyy, dmy, mdy, era, or a pattern such as %d.%m.%Y.",
            problem="dates_unknown",
            column="date",
            value=example[0] if len(example) else "",
        )
    codes = seen.select(code_dates(clean_text(pl.col("text")), pl.col("date"))).to_series()
    return date, translate("date", seen, codes).fill_null(RecordProblem.BLANK_DATE)


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


def name_sizes(visits: pl.LazyFrame, name: str, notes: list[str]) -> pl.LazyFrame:
    """Name length and area as transitions do, the area as given, else length times width."""
    here = visits.collect_schema().names()
    if {"length", "width"} <= set(here):
        product = pl.col("length") * pl.col("width")
        visits = visits.with_columns(area=pl.coalesce("area", product) if "area" in here else product)
        notes.append(f"{name}: area is {'as given, else ' if 'area' in here else ''}length times width")
    names = {"length": "bridge_length", "area": "bridge_area"}
    return visits.drop("width", strict=False).rename(names, strict=False)
