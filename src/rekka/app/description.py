"""A table as it was read: columns and their roles, ratings, dates, joins, a preview, and where the reading ended.

Nothing here knows of the web or of a language: sentences are keys with values (``say``), findings are those of the
checks. What the library refuses is a problem with a remedy, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import BadStates, InputError
from rekka.core.ratings import Ratings, plain_label
from rekka.data.attributes import survey
from rekka.data.components import is_inventory
from rekka.data.mapping import ColumnRoles, Join, State, TableMapping, find_columns, is_ignored, load_mapping
from rekka.data.nbi import is_nbi
from rekka.data.panel import PAIRED, Panel, TableRoles, find_roles, find_tables, list_wide
from rekka.data.tables import ROW, SourceTable, list_sheets, open_table
from rekka.data.text import collect
from rekka.data.transitions import ReadingOptions
from rekka.data.values import MOST_STATES, holds_numbers, read_dates, read_states, suggest_bands, turn_round

HEAD = 1000  # rows that show what a column holds
SAMPLES, LONGEST = 3, 40  # values that are shown of a column, and characters of each
PREVIEW = 5
MOST_COLUMNS = 300  # shown of a table; those with a role are shown all the same
MOST_RATINGS = 40  # distinct ratings that are shown
ONE_COLUMN = (
    "bridge",
    "case",
    "member",
    "visit",
    "date",
    "state",
    "completed",
    "length",
    "width",
    "area",
    "traffic",
)
LISTS = {"repairs": "repairs", "covariate": "covariates", "category": "categories", "keep": "keep"}
COMPONENT, BY_VISIT, NO_ROLE = "component", "by_visit", ""
ROLES = (NO_ROLE, *ONE_COLUMN, COMPONENT, *LISTS)
ROLES_OF_JOIN = ("visit", "date", "completed", "length", "width", "area", "traffic", *LISTS)
NOT_RATED, OFF_SCALE = -1, 0  # places of ratings that mean 'not inspected', or nothing


@dataclass(frozen=True)
class SourceColumn:
    """A column of a table: what it holds, samples, its role, and whether that was given or recognised."""

    name: str
    kind: str  # number, date, yes_no or text
    samples: tuple[str, ...]
    role: str = NO_ROLE
    given: bool = False
    component: str = ""  # that it has the ratings of


@dataclass(frozen=True)
class Rating:
    """A rating as it is written, its number of records, and its place on the scale: 1 is the best."""

    text: str
    count: int
    place: int


@dataclass(frozen=True)
class ScaleView:
    """Ratings that were found, and the scale that they are on; ``index`` where they are an index to be cut."""

    ratings: tuple[Rating, ...]
    more: int  # distinct ratings besides those that are shown
    index: bool
    names: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    turned: State | None = None  # the scale turned round; None where it cannot be
    settled: State = field(default_factory=State)
    suggested: tuple[float, ...] = ()  # limits that cut an index into bands of about as many records each

    @property
    def told(self) -> tuple[str, ...]:
        """Names of the ratings, best first, those of the National Bridge Inventory with their classes."""
        ratings = Ratings(self.names)
        return tuple(ratings.name(state) for state in range(1, len(self.names) + 1)) if self.names else ()


@dataclass(frozen=True)
class DatesView:
    """First and last date, and some dates as they are written and as they were read."""

    first: date | None
    last: date | None
    samples: tuple[tuple[str, date | None], ...] = ()


@dataclass(frozen=True)
class JoinView:
    """Another table that is joined: its name, its columns with their roles, and the column of the bridge."""

    file: str
    name: str
    columns: tuple[SourceColumn, ...]
    key: str = ""
    opened: str = ""  # the reader's note on how it was opened


@dataclass(frozen=True)
class Preview:
    """First records as they were read: names of the columns, and rows of texts."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class TableDescription:
    """A table as it was read, as far as it could be: ``refusal`` is the error at which that ended.

    ``plan`` is the mapping as it was given, ``settled`` the scale with nothing left to be recognised. ``counts``
    has records, bridges, components and members; ``notes`` are the library's sentences on how the table was read.
    """

    name: str
    kind: str  # inspections, transitions, nbi
    plan: TableMapping
    sheets: tuple[str, ...] = ()
    columns: tuple[SourceColumn, ...] = ()
    scale: ScaleView | None = None
    dates: DatesView | None = None
    joins: tuple[JoinView, ...] = ()
    preview: Preview | None = None
    counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    nbi: bool = False  # whether the file is a yearly one of the National Bridge Inventory
    refusal: InputError | None = None

    @property
    def shown(self) -> tuple[tuple[int, SourceColumn], ...]:
        """Columns that a page shows, with their places: the first, and those with a role."""
        return tuple(
            (place, one) for place, one in enumerate(self.columns) if place < MOST_COLUMNS or one.role != NO_ROLE
        )

    @property
    def sheet(self) -> str:
        """Sheet that was read."""
        asked = self.plan.table.sheet
        if isinstance(asked, str):
            return asked
        place = asked or 0
        return self.sheets[place] if place < len(self.sheets) else ""

    def find(self, role: str) -> list[SourceColumn]:
        """Columns of a role."""
        return [one for one in self.columns if one.role == role]


def describe_reading(
    file: Any, options: ReadingOptions | None = None, name: str = "", names: Mapping[str, str] | None = None
) -> TableDescription:
    """Read a table and describe how; what is refused is told with what was seen until then.

    ``name`` and ``names``, by path, are what files are shown as.

    Examples
    --------
    >>> import rekka
    >>> reading = describe_reading(rekka.simulate_inventory(20, preset="plain").inspections)
    >>> [column.role for column in reading.columns], reading.scale.names
    (['bridge', 'case', 'member', 'visit', 'date', 'state'], ('a', 'b', 'c', 'd', 'e'))

    """
    seen: dict[str, Any] = {"sheets": tuple(list_sheets(file)), "plan": TableMapping(), "kind": "inspections"}
    shown = name or (Path(file).name if isinstance(file, str | Path) else "")
    try:
        _look(file, options or ReadingOptions(), seen)
    except InputError as error:
        seen["refusal"] = error
    joins = tuple(replace(one, name=(names or {}).get(one.file, one.name)) for one in seen.pop("joins", ()))
    if isinstance(file, str | Path):
        seen["notes"] = tuple(_name_files(seen.get("notes", ()), Path(file).name, shown, joins))
    return TableDescription(name=shown, joins=joins, **seen)


def _name_files(notes: Sequence[str], own: str, shown: str, joins: Sequence[JoinView]) -> Iterator[str]:
    """Notes with the names that files are shown under.

    Files of two tables may have one name. The notes on a joined table follow each other, from the one on how it
    was opened.
    """
    waiting, base, name = list(joins), own, shown
    for place, note in enumerate(notes):
        if place and waiting and note == waiting[0].opened:
            join = waiting.pop(0)
            base, name = Path(join.file).name, join.name
        elif note.startswith(f"{own}: area is "):  # of the table as a whole
            base, name = own, shown
        yield f"{name}{note.removeprefix(base)}" if note.startswith(f"{base}:") else note


def _look(file: Any, options: ReadingOptions, seen: dict[str, Any]) -> None:
    """Read step by step, keeping what is seen of each."""
    seen["plan"] = plan = load_mapping(options.mapping, options.changes)
    if isinstance(file, str | Path):
        seen["nbi"] = is_nbi(file)
    if options.nbi:
        seen["kind"] = "nbi"
        _look_at_panel(options.panel(file), seen)
        return
    main, sides = find_tables(file)
    table = open_table(main, plan.table)
    seen["notes"], seen["columns"] = table.notes, _list_columns(table, plan.table.decimal)
    if set(PAIRED) <= set(table.columns):
        _look_at_transitions(table, options, seen)
        return
    try:
        roles = find_roles(table, plan)
    except InputError:
        seen["columns"] = _mark(seen["columns"], _guess_roles(table, plan))
        raise
    seen["columns"] = _mark(seen["columns"], _list_roles(table, plan, roles))
    seen["notes"] = (*roles.notes, *roles.known)
    seen["joins"] = tuple(_describe_join(join) for join in [*sides, *plan.join])
    seen["scale"] = _describe_scale(table, roles, plan)
    panel = options.panel(file)
    if panel.reading is not None:  # a column called member may have become the component
        case = panel.reading.mapping.get("columns", {}).get("case")
        seen["columns"] = tuple(
            replace(one, role="case") if one.name == case and one.role == "member" else one
            for one in seen["columns"]
        )
        seen["scale"] = _describe_scale(table, roles, plan, panel)
    dated = roles.found.get("date")
    _look_at_panel(panel, seen, None if dated is None else table.frame.select(ROW, text=pl.col(dated)))


def _look_at_transitions(table: SourceTable, options: ReadingOptions, seen: dict[str, Any]) -> None:
    """Look at a table that has transitions: its columns have their roles by their names."""
    seen["kind"] = "transitions"
    found = options.transitions(table.frame.drop(ROW) if "row_1" in table.columns else table.frame)
    used = set(found.covariates)
    plan: TableMapping = seen["plan"]
    given = set(plan.columns.asked)
    seen["columns"] = tuple(
        replace(one, role="covariate", given=one.name in given) if one.name in used else one
        for one in seen["columns"]
    )
    frame = found.frame
    seen["counts"] = {"transitions": frame.height, "bridges": frame["bridge_id"].n_unique()}
    seen["counts"] |= {"components": frame["case"].n_unique()}
    names = [name for name in ("bridge_id", "case", *PAIRED, *found.covariates) if name in frame.columns]
    seen["preview"] = _show_rows(frame.select(names).head(PREVIEW))


def _look_at_panel(panel: Panel, seen: dict[str, Any], dated: pl.LazyFrame | None = None) -> None:
    """Describe the visits that were read: dates, first rows, counts."""
    visits, name = panel.visits, panel.name
    members = pl.struct("bridge_id", "case", "member")
    found = collect(
        visits.select(
            bridges=pl.col("bridge_id").n_unique(),
            components=pl.col("case").n_unique(),
            members=members.n_unique(),
            first=pl.col("date").min(),
            last=pl.col("date").max(),
        ),
        name,
    ).row(0, named=True)
    seen["counts"] = {"records": panel.records} | {one: found[one] for one in ("bridges", "components", "members")}
    if not panel.members:
        del seen["counts"]["members"]
    seen["notes"] = panel.notes
    seen["dates"] = DatesView(found["first"], found["last"], _sample_dates(panel, dated))
    label = pl.col("state").replace_strict(
        dict(enumerate(panel.scale.names, start=1)), default=None, return_dtype=pl.String
    )
    names = ["bridge_id", "case", *(["member"] if panel.members else []), "visit", "date", "state_text", "rating"]
    names += [
        "completed",
        "bridge_length",
        "bridge_area",
        "traffic",
        *panel.repairs,
        *panel.covariates,
        *panel.keep,
    ]
    head = collect(visits.head(PREVIEW).with_columns(rating=label), name)
    seen["preview"] = _show_rows(head.select(one for one in names if one in head.columns))


def _sample_dates(panel: Panel, dated: pl.LazyFrame | None) -> tuple[tuple[str, date | None], ...]:
    """Some dates as they are written and as they were read."""
    if dated is None:
        return ()
    read = panel.visits.head(HEAD).select(ROW, "date").unique(ROW, keep="first", maintain_order=True)
    both = collect(dated.head(HEAD).join(read, on=ROW, how="inner", maintain_order="left"), panel.name)
    some = both.drop_nulls("text").unique("text", keep="first", maintain_order=True).head(SAMPLES)
    return tuple((_show(text), day) for text, day in some.select("text", "date").rows())


def _show_rows(frame: pl.DataFrame) -> Preview:
    return Preview(tuple(frame.columns), tuple(tuple(map(_show, row)) for row in frame.rows()))


def _show(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else _shorten(str(value).removesuffix(" 00:00:00"))


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


# Columns


def _list_columns(table: SourceTable, decimal: str) -> tuple[SourceColumn, ...]:
    """Columns with their kind and some values, by the first rows."""
    head = collect(table.frame.head(HEAD).drop(ROW), table.name)
    return tuple(_describe_column(head[name], decimal) for name in table.columns)


def _describe_column(values: pl.Series, decimal: str) -> SourceColumn:
    kind = values.dtype
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        return SourceColumn(values.name, "text", ())
    seen = values.drop_nulls().unique(maintain_order=True)
    if kind == pl.String:
        seen = seen.filter(seen.str.strip_chars() != "")
        numbers = seen.to_frame("text").select(holds_numbers(pl.col("text"), decimal)).item()
        told = "number" if numbers else "date" if _holds_dates(seen.head(HEAD // 20)) else "text"
    else:
        told = "date" if kind.is_temporal() else "yes_no" if kind == pl.Boolean else "number"
    return SourceColumn(values.name, told, tuple(map(_show, seen.head(SAMPLES))))


def _holds_dates(texts: pl.Series) -> bool:
    """Whether most of some texts are dates."""
    if texts.is_empty():
        return False
    try:
        return read_dates(texts, "auto").null_count() * 2 < len(texts)
    except InputError:  # day and month cannot be told from each other
        return True


Found = dict[str, tuple[str, bool, str]]  # of each column: its role, whether it was given, its component


def _mark(columns: Iterable[SourceColumn], found: Found) -> tuple[SourceColumn, ...]:
    """Columns with their roles."""
    marked = ((one, found.get(one.name, (NO_ROLE, False, ""))) for one in columns)
    return tuple(replace(one, role=role, given=given, component=name) for one, (role, given, name) in marked)


def _list_roles(table: SourceTable, plan: TableMapping, roles: TableRoles) -> Found:
    """Role of each column, as it was found."""
    given = plan.columns
    found: Found = {name: (role, bool(getattr(given, role)), "") for role, name in roles.found.items()}
    named = bool(given.components)
    found |= {column: (COMPONENT, named, component) for component, column in roles.components.items()}
    if roles.wide is not None:
        found |= dict.fromkeys(list_wide(table, roles.wide, given).values(), (BY_VISIT, plan.wide is not None, ""))
    return found | _list_lists(table, roles.plan.columns)


def _list_lists(table: SourceTable, columns: ColumnRoles) -> Found:
    """Columns of roles that several columns can have."""
    names = {one: role for role, place in LISTS.items() for one in getattr(columns, place)}
    return {name: (names[name], True, "") for name in table.columns if name in names}


def _guess_roles(table: SourceTable, plan: TableMapping) -> Found:
    """Roles as far as they can be told where the columns as a whole cannot."""
    found = _list_lists(table, plan.columns)
    for role in ONE_COLUMN:
        given = getattr(plan.columns, role)
        try:
            one, _ = find_columns(table, ColumnRoles(**({role: given} if given else {})), [role])
        except InputError:  # which is what the page is about
            continue
        name = one.get(role)
        if name is not None and name not in found and not is_ignored(plan.columns, name):
            found[name] = (role, given is not None, "")
    return found


def _describe_join(join: Join) -> JoinView:
    """Columns of a joined table with their roles, as far as it can be read."""
    file = str(join.file)
    name = Path(file).name
    try:
        table = open_table(join.file, join)
        columns = _list_columns(table, join.decimal)
        found, _ = find_columns(table, join.columns, ["bridge", *ROLES_OF_JOIN[:7], "repairs"])
    except InputError:  # the reading says why
        return JoinView(file, name, ())
    marked: Found = {column: (role, bool(getattr(join.columns, role)), "") for role, column in found.items()}
    marked |= _list_lists(table, join.columns)
    return JoinView(file, name, _mark(columns, marked), found.get("bridge", ""), table.notes[0])


# Ratings


def _describe_scale(
    table: SourceTable, roles: TableRoles, plan: TableMapping, panel: Panel | None = None
) -> ScaleView | None:
    """Ratings as they are written, and their places on the scale, as far as that is known."""
    columns = [*roles.components.values()]
    if roles.wide is not None:
        columns = list(list_wide(table, roles.wide, plan.columns).values())
    elif not columns:
        columns = [roles.found["state"]] if "state" in roles.found else []
    if not columns:
        return None
    seen = pl.concat([survey(table.frame, column, table.name) for column in columns], how="vertical_relaxed")
    seen = seen.group_by("text", maintain_order=True).agg(pl.col("count").sum(), pl.col(ROW).min())
    spec = plan.state
    if panel is not None and panel.reading is not None:
        spec = panel.reading.state
    inventory = is_inventory(roles.components)
    try:
        states, scale = read_states(seen["text"], seen["count"], spec, plan.table.decimal, inventory=inventory)
    except InputError as error:
        states, scale = (
            seen.select(state=pl.repeat(None, pl.len(), dtype=pl.Int16), blank=pl.repeat(False, pl.len())),
            None,
        )
        if not isinstance(error, BadStates):
            spec = State(missing=spec.missing)
    if scale is not None and scale.state is not None:
        spec = scale.state
    seen = seen.with_columns(states["state"], states["blank"])
    return _sum_up(seen, spec, None if scale is None else scale.names, turn_round(plan.state))


def _sum_up(seen: pl.DataFrame, spec: State, names: Sequence[str] | None, turned: State | None) -> ScaleView:
    """Ratings that differ in capitals or width alone as one, those of the scale first, best first."""
    missing = {plain_label(str(one)) for one in spec.missing}
    rows: dict[str, list[Any]] = {}
    for text, count, place, blank in seen.select("text", "count", "state", "blank").rows():
        if text is None or (blank and plain_label(text) not in missing):
            continue
        plain = plain_label(text)
        row = rows.setdefault(plain, [text, 0, 0, NOT_RATED if plain in missing else place or OFF_SCALE])
        if count > row[2]:
            row[0], row[2] = text, count
        row[1] += count
    numbers = {plain: number for plain in rows if (number := _as_number(plain)) is not None}
    index = spec.bands is not None or (
        len(numbers) > MOST_STATES or (len(numbers) * 2 > len(rows) and any(n % 1 for n in numbers.values()))
    )
    if not index and spec.bands is None:
        for place, label in _list_labels(spec, names or ()):
            rows.setdefault(plain_label(label), [label, 0, 0, place])
    found = [Rating(_shorten(str(text).strip()), count, place) for text, count, _, place in rows.values()]
    found.sort(key=lambda one: (one.place < 1, one.place, -one.count if index else 0, _natural(one.text)))
    low, high = min(numbers.values(), default=None), max(numbers.values(), default=None)
    weighted = [(number, rows[plain][1]) for plain, number in numbers.items() if plain not in missing]
    return ScaleView(
        ratings=tuple(found[:MOST_RATINGS]),
        more=max(0, len(found) - MOST_RATINGS),
        index=index,
        names=tuple(names or ()),
        low=low,
        high=high,
        turned=turned if names else None,
        settled=spec,
        suggested=suggest_bands(weighted) if index else (),
    )


def _list_labels(spec: State, names: Sequence[str]) -> list[tuple[int, str]]:
    """Labels of a scale with their places, those of groups one by one, also those that no record has."""
    if spec.labels is None:
        return list(enumerate(names, start=1)) if spec.best is not None else []
    groups = [group if isinstance(group, list) else [group] for group in spec.labels]
    return [(place, str(one)) for place, group in enumerate(groups, start=1) for one in group]


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _natural(text: str) -> tuple[float, str]:
    number = _as_number(plain_label(text))
    return (float("inf") if number is None else number, text)
