"""Which column plays which part: as the mapping says, or known by its name."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import polars as pl

from rekka.core.errors import BadOption, BadValues, missing_columns
from rekka.data.mapping import Columns
from rekka.data.tables import Table

# Names that need no mapping, best first; compared without case, blanks and punctuation.
KNOWN_NAMES: dict[str, tuple[str, ...]] = {
    "bridge": (
        "bridge_id", "bridge", "bridge_number", "bridge_no", "structure_id", "structure_number", "asset_id",
        "橋梁id", "橋梁番号", "橋梁コード", "施設番号", "id", "bridge_name", "橋梁名", "橋名", "structure",
        "asset",
    ),
    "case": (
        "case", "member_type", "element_type", "component", "category", "部材種別", "部材種類",
        "部材区分", "部材", "工種",
    ),
    "member": ("member", "member_id", "member_no", "element", "element_id", "部材番号", "部材名", "要素番号"),
    "visit": (
        "visit", "visit_number", "inspection_number", "inspection_no", "round", "点検回", "点検回数", "巡目",
    ),
    "date": (
        "date", "inspection_date", "date_of_inspection", "inspected", "inspection_year", "year", "fiscal_year",
        "点検日", "点検年月日", "点検年月", "点検年", "点検年度", "年度",
    ),
    "state": (
        "state", "condition", "condition_state", "condition_rating", "rating", "rank", "grade", "soundness",
        "健全度", "健全性", "判定区分", "判定", "損傷程度", "損傷度", "ランク",
    ),
    "completed": (
        "completed", "completion_date", "completion_year", "year_built", "built", "construction_year",
        "year_of_construction", "竣工年", "竣工年度", "竣工年月日", "架設年", "架設年度", "建設年", "建設年度",
        "完成年", "供用開始年",
    ),
    "length": ("bridge_length", "length", "deck_length", "structure_length", "length_m", "橋長", "橋長m"),
    "width": ("bridge_width", "width", "deck_width", "width_m", "全幅員", "幅員", "全幅員m", "幅員m"),
    "area": ("bridge_area", "area", "deck_area", "area_m2", "橋面積", "面積", "橋面積m2"),
    "traffic": (
        "traffic", "traffic_volume", "aadt", "adt", "daily_traffic", "vehicles_per_day", "交通量",
        "日交通量", "24時間交通量",
    ),
    "repairs": ("repair_date", "repair_year", "repaired", "rehabilitation_year", "補修年", "補修年度", "補修日"),
}  # fmt: skip
FISCAL = ("fiscalyear", "年度", "fy")  # a column called like this holds fiscal years


def find_columns(table: Table, given: Columns, wanted: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The column of each role: given, or known by its name; and a sentence on those that were."""
    explicit = {role: name for role, name in given if isinstance(name, str)}
    lists = [name for role in ("repairs", "covariates", "keep") for name in getattr(given, role)]
    found = {role: resolve(table, name) for role, name in explicit.items()}
    taken = set(found.values()) | {resolve(table, name) for name in lists}
    told = []
    for role in wanted:
        if role in found:
            continue
        free = [name for name in table.columns if name not in taken]
        plain = {_plain(name): name for name in reversed(free)}
        known = next((plain[_plain(name)] for name in KNOWN_NAMES[role] if _plain(name) in plain), None)
        if known is not None:
            alike = [name for name in free if _plain(name) == _plain(known)]
            if len(alike) > 1:
                raise BadOption(
                    f"{table.name} has {len(alike)} columns that can be the {role}: {', '.join(alike)}. Say which "
                    "it is.",
                    columns=alike,
                )
            found[role] = resolve(table, known)
            taken.add(known)
            told.append((role if known == role else f"{role} is {known}") + _name_rivals(role, known, free))
    return found, [f"{table.name}: columns known by their names: {', '.join(told)}"] if told else []


def _name_rivals(role: str, known: str, free: Iterable[str]) -> str:
    """Other columns that could be the bridge: a wrong one pairs visits of different bridges."""
    others = [name for name in free if name != known and is_known(role, name)] if role == "bridge" else []
    return f" (not {', '.join(others)}; --bridge says otherwise)" if others else ""


def resolve(table: Table, name: str) -> str:
    """A column by its name, or by its name but for case and blanks."""
    if name in table.repeated:
        raise BadOption(
            f"{table.name} has two columns called {name}. Rename one of them, or give names.", column=name
        )
    if name in table.columns:
        kind = table.frame.collect_schema()[name]
        if kind.is_nested() or kind in (pl.Object, pl.Binary):
            what = "bytes" if kind == pl.Binary else "lists or other objects"
            raise BadValues(
                f"{table.name}: {name} holds {what} in its cells; a value each is needed.", column=name
            )
        return name
    alike = [column for column in table.columns if _plain(column) == _plain(name)]
    if len(alike) == 1:
        return resolve(table, alike[0])
    raise missing_columns([name], table.columns, table.name)


def is_there(table: Table, name: str) -> bool:
    """Whether ``resolve`` finds such a column."""
    return name in table.columns or sum(_plain(column) == _plain(name) for column in table.columns) == 1


def is_known(role: str, column: str) -> bool:
    """Whether a column's name is one that a role is known by."""
    return _plain(column) in map(_plain, KNOWN_NAMES[role])


def is_fiscal(column: str) -> bool:
    """Whether a column's name says that it holds fiscal years."""
    plain = _plain(column)
    return any(plain == word or plain.endswith("年度") for word in FISCAL)


def _plain(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())
