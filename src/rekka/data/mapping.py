"""Mapping of a user's table: a small TOML file, or its sections as keywords.

[table]    encoding, separator, sheet, header_row, names, decimal: how to read the file
[columns]  bridge, case (or component), member, visit, date, state, completed, length, width, area, traffic: its
           columns; repairs, covariates, categories, keep: lists of columns; ignore: columns that have no role,
           whatever they are called; components: a column of ratings for each, such as
           components = {Deck = "DECK_COND", Pier = "PIER_COND"}
[wide]     state, date, traffic: column names with {year}, {fiscal_year} or {visit} in them
[state]    labels, or best and worst, or bands, or worst_first; missing: what a state's text means;
           merge = false keeps ratings apart that few records leave
[dates]    inspection, completed, repair: the format of the dates
[[join]]   another file by bridge: file, the keys of [table], columns, agree
[rules]    upward, repairs, same_day, interval, max_gap, missing, outside: see transitions.py

A column that the mapping does not name is known by its own name, in English or Japanese (``KNOWN_NAMES``).
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import polars as pl
import tomli_w
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from rekka.core.errors import (
    BadOption,
    BadValues,
    UnreadableTable,
    did_you_mean,
    missing_columns,
)
from rekka.core.validation import explain_invalid
from rekka.data.tables import SourceTable
from rekka.data.text import FileOptions

DATE_FORMATS = ("auto", "iso", "year", "fiscal_year", "month", "mmyy", "dmy", "mdy", "era")

Format = str | list[str]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnRoles(_Strict):
    """Columns of a table by their role."""

    bridge: str | None = None
    case: str | None = None
    member: str | None = None
    visit: str | None = None
    date: str | None = None
    state: str | None = None
    completed: str | None = None
    length: str | None = None
    width: str | None = None
    area: str | None = None
    traffic: str | None = None
    repairs: list[str] = []
    covariates: list[str] = []
    categories: list[str] = []
    keep: list[str] = []
    ignore: list[str] = []
    components: dict[str, str] = {}  # columns of ratings by the component that each is of

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, given: Any) -> Any:
        """Take ``component`` for ``case``."""
        if not isinstance(given, Mapping) or "component" not in given:
            return given
        if given.get("case") not in (None, given["component"]):
            raise ValueError("case and component name the same thing: give one of them")
        return {name: value for name, value in given.items() if name != "component"} | {"case": given["component"]}

    @model_validator(mode="after")
    def _check(self) -> ColumnRoles:
        if self.components and (self.case or self.state):
            other = f"case is {self.case}" if self.case else f"state is {self.state}"
            raise ValueError(
                f"components are columns of ratings, and {other}: a table has either a column for each component, "
                "or one for the component and one for its rating"
            )
        twice = [name for name, times in Counter(self.components.values()).items() if times > 1]
        if twice:
            raise ValueError(f"{twice[0]} is the column of two components; each has its own")
        return self

    @property
    def asked(self) -> list[str]:
        """Covariates, also those that are declared categories, each once."""
        return list(dict.fromkeys([*self.covariates, *self.categories]))


class Wide(_Strict):
    """Columns by year or visit: patterns with {year}, {fiscal_year} or {visit}."""

    state: str
    date: str | None = None
    traffic: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Wide:
        places = re.findall(r"\{(.*?)\}", self.state)
        if places not in (["year"], ["fiscal_year"], ["visit"]):
            raise ValueError(f"{self.state!r} needs one of {{year}}, {{fiscal_year}} and {{visit}}, once")
        if places == ["visit"] and not self.date:
            raise ValueError("columns by {visit} need a date pattern too, such as date = 'date_{visit}'")
        for other in (self.date, self.traffic):
            if other is not None and re.findall(r"\{(.*?)\}", other) != places:
                raise ValueError(f"{other!r} needs {{{places[0]}}} once, as the states' pattern has")
        return self

    @property
    def key(self) -> str:
        """Placeholder in the names of the columns: year, fiscal_year or visit."""
        return str(re.findall(r"\{(.*?)\}", self.state)[0])


class State(_Strict):
    """Scale of the states; with nothing given it is recognised."""

    labels: list[str | int | list[str | int]] | None = None
    best: int | None = None
    worst: int | None = None
    bands: list[FiniteFloat] | None = None
    worst_first: bool = False
    missing: list[str | int | float] = []
    merge: bool = True  # whether ratings that few records leave are read as one; see merging.py

    @model_validator(mode="after")
    def _check(self) -> State:
        given = [self.labels is not None, self.best is not None or self.worst is not None, self.bands is not None]
        if sum(given) > 1:
            raise ValueError("give labels, or best and worst, or bands; not two of them")
        if (self.best is None) != (self.worst is None) or (self.best is not None and self.best == self.worst):
            raise ValueError("best and worst are two different whole numbers")
        if self.worst_first and any(given):
            raise ValueError(
                "worst_first turns a recognised scale round; labels, best and bands say it themselves"
            )
        if self.labels is not None and len(self.labels) < 2:
            raise ValueError("labels are at least two, best first")
        if self.bands is not None:
            rising = sorted(set(self.bands))
            if not self.bands or self.bands not in (rising, rising[::-1]):
                raise ValueError("bands are limits that all fall (higher is better) or all rise (higher is worse)")
        return self


class Dates(_Strict):
    """Formats of the dates: one, or several to be tried in turn."""

    inspection: Format = "auto"
    completed: Format = "auto"
    repair: Format = "auto"

    @model_validator(mode="after")
    def _check(self) -> Dates:
        for name in (self.inspection, self.completed, self.repair):
            if not name:
                raise ValueError("a format is needed, or auto")
            for one in [name] if isinstance(name, str) else name:
                if one not in DATE_FORMATS and "%" not in one:
                    hint = did_you_mean(one, DATE_FORMATS)
                    raise ValueError(
                        f"{one!r} is not a date format; {', '.join(DATE_FORMATS)} and patterns such as "
                        f"%d.%m.%Y are.{hint}"
                    )
        return self


class JoinAgreement(_Strict):
    """Take a joined row only where both tables' values of one column are close."""

    column: Literal["length", "width", "area", "completed"] = "length"
    relative: float = Field(default=0.0, ge=0)
    absolute: float = Field(default=0.0, ge=0)


class Join(FileOptions):
    """Another table, joined by bridge (and visit or date, where it has them)."""

    file: Any
    columns: ColumnRoles = ColumnRoles()
    agree: JoinAgreement | None = None


class Rules(_Strict):
    """Rules for visits and pairs that are no transitions; see ``pair_visits``."""

    upward: Literal["set_aside", "restart", "keep", "keep_all", "error"] = "set_aside"
    repairs: Literal["set_aside", "restart", "ignore"] = "set_aside"
    same_day: Literal["worst", "first", "last", "set_aside", "error"] = "worst"
    interval: Literal["set_aside", "error"] = "set_aside"
    max_gap: float | None = Field(default=None, gt=0)
    missing: Literal["set_aside", "error", "level"] = "set_aside"
    outside: Literal["set_aside", "error"] = "set_aside"


class TableMapping(_Strict):
    """Mapping of a table, section by section."""

    table: FileOptions = FileOptions()
    columns: ColumnRoles = ColumnRoles()
    wide: Wide | None = None
    state: State = State()
    dates: Dates = Dates()
    join: list[Join] = []
    rules: Rules = Rules()


def load_mapping(source: Any = None, changes: Mapping[str, Any] | None = None) -> TableMapping:
    """From a TOML file, a dict of the same shape, or nothing; ``changes`` overrule it key by key."""
    where, given = "mapping", source
    if isinstance(source, TableMapping):
        given = source.model_dump(exclude_unset=True)
    elif isinstance(source, str | Path):
        where, given = Path(source).name, _load_toml(Path(source))
    elif source is not None and not isinstance(source, Mapping):
        raise BadOption(f"mapping is a {type(source).__name__}; a TOML file's path or a dict is needed.")
    try:
        return TableMapping.model_validate(_merge(dict(given or {}), changes or {}))
    except ValidationError as error:
        raise explain_invalid(error, where, TableMapping, "A mapping") from None


def format_mapping(mapping: Any) -> str:
    """Write a mapping as the TOML file that ``load_mapping`` reads: what is as by default is left out.

    Examples
    --------
    >>> print(format_mapping({"columns": {"bridge": "ID"}, "state": {"best": 9, "worst": 0}}))
    [columns]
    bridge = "ID"
    <BLANKLINE>
    [state]
    best = 9
    worst = 0
    <BLANKLINE>

    """
    plain = load_mapping(mapping).model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    return tomli_w.dumps(plain)


def read_label(text: str) -> str | list[str]:
    """Read a label of a rating; labels with a slash between them are one rating.

    >>> read_label("9/8"), read_label("c")
    (['9', '8'], 'c')
    """
    group = [one.strip() for one in text.split("/")]
    return group if len(group) > 1 and all(group) else "/".join(group)


def _load_toml(path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise UnreadableTable(f"There is no mapping file {path.name}.", file=str(path)) from None
    except OSError as error:
        raise UnreadableTable(
            f"The mapping {path.name} cannot be read: {error.strerror}.", file=str(path)
        ) from None
    except UnicodeDecodeError as error:
        raise BadOption(
            f"{path.name} is not UTF-8, as TOML is: byte {error.object[error.start]:#04x} at position "
            f"{error.start:,}. Save it as UTF-8.",
            file=str(path),
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise BadOption(f"{path.name} is not TOML: {error}.", file=str(path)) from None
    for join in given.get("join", []):
        if isinstance(join, dict) and isinstance(join.get("file"), str):
            join["file"] = str(path.parent / join["file"])  # beside the TOML file, wherever the command is run
    return given


# Columns that an option takes the place of: a component has one column, or each component has its own.
_OVERRULED = {
    "case": ("component", "components"),
    "component": ("case", "components"),
    "components": ("case", "component", "state"),
    "state": ("components",),
}


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    overruled = [other for key, value in above.items() if value for other in _OVERRULED.get(key, ())]
    merged = {key: value for key, value in below.items() if key not in overruled}
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merge(dict(merged[key]), value)
        elif key == "join" and isinstance(value, list | tuple) and isinstance(merged.get(key, []), list | tuple):
            merged[key] = [*merged.get(key, []), *value]
        else:
            merged[key] = value
    return merged


# Names that need no mapping, best first; compared without case, blanks and punctuation.
KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    "bridge": (
        "bridge_id", "bridge", "bridge_number", "bridge_no", "structure_id", "structure_number", "asset_id",
        "structure_no", "structure_number_008", "bin", "brkey", "bridge_key", "nbi_number", "nbi_structure_number",
        "asset_number", "facility_id", "橋梁id", "橋梁番号", "橋梁コード", "橋梁管理番号", "施設番号", "施設id",
        "管理番号", "id", "bridge_name", "橋梁名", "橋梁名称", "橋名", "施設名", "施設名称", "structure", "asset",
        "橋梁",
    ),
    "case": (
        "case", "member_type", "element_type", "component", "component_type", "component_name", "category",
        "部材種別", "部材種類", "部材区分", "部材", "部位", "工種",
    ),
    "member": ("member", "member_id", "member_no", "element", "element_id", "部材番号", "部材名", "要素番号"),
    "visit": (
        "visit", "visit_number", "inspection_number", "inspection_no", "round", "点検回", "点検回数", "巡目",
    ),
    "date": (
        "date", "inspection_date", "date_of_inspection", "inspected", "insp_date", "date_inspected",
        "inspection_year", "year", "fiscal_year", "点検日", "点検年月日", "点検実施日", "点検実施年月日",
        "点検年月", "点検年", "点検年度", "点検実施年度", "調査日", "調査年度", "年度",
    ),
    "state": (
        "state", "condition", "condition_state", "condition_rating", "rating", "rank", "grade", "soundness",
        "健全度", "健全性", "判定区分", "判定", "健全度判定", "健全度ランク", "健全性の診断", "健全性診断",
        "健全性の診断区分", "判定結果", "損傷程度", "損傷度", "ランク",
    ),
    "completed": (
        "completed", "completion_date", "completion_year", "year_built", "built", "construction_year",
        "year_of_construction", "year_constructed", "year_completed", "date_built", "built_year",
        "construction_date", "year_built_027", "竣工年", "竣工年度", "竣工年月日", "竣工年月", "架設年",
        "架設年度", "架設年次", "架設年月日", "建設年", "建設年度", "建設年次", "完成年", "完成年度", "供用開始年",
        "供用開始年度", "供用年",
    ),
    "length": (
        "bridge_length", "length", "deck_length", "structure_length", "length_m", "bridge_length_m",
        "structure_length_m", "total_length", "total_length_m", "structure_len_mt_049", "橋長", "橋長m",
    ),
    "width": (
        "bridge_width", "width", "deck_width", "width_m", "deck_width_m", "bridge_width_m", "deck_width_mt_052",
        "全幅員", "総幅員", "幅員", "全幅", "全幅員m", "総幅員m", "幅員m", "全幅m",
    ),
    "area": (
        "bridge_area", "area", "deck_area", "area_m2", "deck_area_m2", "bridge_area_m2", "橋面積", "面積",
        "橋面積m2", "面積m2",
    ),
    "traffic": (
        "traffic", "traffic_volume", "aadt", "adt", "daily_traffic", "average_daily_traffic", "vehicles_per_day",
        "adt_029", "交通量", "日交通量", "24時間交通量", "交通量台日", "日交通量台日", "24時間交通量台",
        "24時間交通量台日",
    ),
    "repairs": (
        "repair_date", "repair_year", "repaired", "rehabilitation_year", "year_reconstructed",
        "reconstruction_year", "year_reconstructed_106", "補修年", "補修年度", "補修日", "補修年月日", "修繕年",
        "修繕年度",
    ),
}  # fmt: skip
REPAIR_WORDS = ("rehab", "repair", "reconstruct", "補修", "修繕")  # in names of columns that may be of repairs
FISCAL = ("fiscalyear", "年度", "fy")  # a column called like this holds fiscal years


def find_columns(
    table: SourceTable, given: ColumnRoles, wanted: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Column of each role: given, or known by its name; and a sentence on those that were."""
    explicit = {role: name for role, name in given if isinstance(name, str)}
    lists = [name for role in ("repairs", "asked", "keep") for name in getattr(given, role)]
    found = {role: resolve(table, name) for role, name in explicit.items()}
    lists += given.components.values()
    taken = set(found.values()) | {resolve(table, name) for name in lists}
    guessed = []
    for role in wanted:
        if role in found:
            continue
        free = [name for name in table.columns if name not in taken and not is_ignored(given, name)]
        plain = {plain_name(name): name for name in reversed(free)}
        known = next((plain[plain_name(name)] for name in KNOWN_NAMES[role] if plain_name(name) in plain), None)
        if known is not None:
            alike = [name for name in free if plain_name(name) == plain_name(known)]
            if len(alike) > 1:
                raise BadOption(
                    f"{table.name} has {len(alike)} columns that can be the {role}: {', '.join(alike)}. Say which "
                    "it is.",
                    problem="rivals",
                    role=role,
                    columns=alike,
                )
            found[role] = resolve(table, known)
            taken.add(known)
            guessed.append((role if known == role else f"{role} is {known}") + _name_rivals(role, known, free))
    return found, [f"{table.name}: columns known by their names: {', '.join(guessed)}"] if guessed else []


def suggest_repairs(
    columns: Iterable[str], found: Mapping[str, str], given: ColumnRoles
) -> tuple[str, ...] | None:
    """Columns without a role that may be of repairs by their names; None where one is read as such."""
    if given.repairs or "repairs" in found:
        return None
    used = (*found.values(), *given.components.values(), *given.asked, *given.keep, *given.ignore)
    taken = set(map(plain_name, used))
    return tuple(
        name
        for name in columns
        if (plain := plain_name(name)) not in taken and any(word in plain for word in REPAIR_WORDS)
    )


def _name_rivals(role: str, known: str, free: Iterable[str]) -> str:
    """Other columns that could be the bridge: a wrong one pairs visits of different bridges."""
    others = [name for name in free if name != known and is_known(role, name)] if role == "bridge" else []
    return f" (not {', '.join(others)}; --bridge says otherwise)" if others else ""


def resolve(table: SourceTable, name: str) -> str:
    """A column by its name, or by its name but for case and blanks."""
    if name in table.repeated:
        raise BadOption(
            f"{table.name} has two columns called {name}. Rename one of them, or give names.",
            problem="repeated",
            column=name,
        )
    if name in table.columns:
        kind = table.frame.collect_schema()[name]
        if kind.is_nested() or kind in (pl.Object, pl.Binary):
            what = "bytes" if kind == pl.Binary else "lists or other objects"
            raise BadValues(
                f"{table.name}: {name} holds {what} in its cells; a value each is needed.", column=name
            )
        return name
    alike = [column for column in table.columns if plain_name(column) == plain_name(name)]
    if len(alike) == 1:
        return resolve(table, alike[0])
    raise missing_columns([name], table.columns, table.name)


def split_names(plan: TableMapping, table: SourceTable) -> TableMapping:
    """The mapping with "material,route" among covariates as two names, where the table has no such column."""
    columns = {}
    for role in ("covariates", "categories"):
        names: list[str] = []
        for name in getattr(plan.columns, role):
            parts = [part.strip() for part in name.split(",")]
            names += [name] if is_there(table, name) or len(parts) == 1 else parts
        columns[role] = names
    if all(columns[role] == getattr(plan.columns, role) for role in columns):
        return plan
    return plan.model_copy(update={"columns": plan.columns.model_copy(update=columns)})


def is_there(table: SourceTable, name: str) -> bool:
    """Whether ``resolve`` finds such a column."""
    return name in table.columns or sum(plain_name(column) == plain_name(name) for column in table.columns) == 1


def is_known(role: str, column: str) -> bool:
    """Whether a column's name is one that a role is known by."""
    return plain_name(column) in map(plain_name, KNOWN_NAMES[role])


def is_ignored(columns: ColumnRoles, name: str) -> bool:
    """Whether a column is to have no role, whatever it is called."""
    return plain_name(name) in map(plain_name, columns.ignore)


def is_fiscal(column: str) -> bool:
    """Whether a column's name says that it holds fiscal years."""
    plain = plain_name(column)
    return any(plain == word or plain.endswith("年度") for word in FISCAL)


@lru_cache(maxsize=20_000)  # asked for every column and every known name, many times
def plain_name(name: str) -> str:
    """Name of a column without case, blanks and punctuation, half width."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())
