"""Components in columns: a table with a column of ratings for each, as bridge inventories are exported.

Known by their names, in English or Japanese, where no column is the state's; each cell then is a record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from rekka.core.errors import BadOption, BadStates, count_of
from rekka.data.attributes import survey
from rekka.data.mapping import ColumnRoles, TableMapping, is_ignored, is_known, plain_name, resolve
from rekka.data.tables import SourceTable
from rekka.data.values import RECOGNISED, read_states

# Components by the names of their columns, without case, blanks and punctuation.
NBI_COMPONENTS: dict[str, tuple[str, ...]] = {  # with items 58 to 60 and 62 of the National Bridge Inventory
    "Deck": ("deck",),
    "Superstructure": ("superstructure", "superstruct", "superstr"),
    "Substructure": ("substructure", "substruct", "substr"),
    "Culvert": ("culvert", "culverts"),
}
SHORT = {"Deck": ("dk",), "Superstructure": ("super", "sup"), "Substructure": ("sub",), "Culvert": ("culv",)}
COMPONENTS: dict[str, tuple[str, ...]] = NBI_COMPONENTS | {
    "Deck slab": ("deckslab", "slab"),
    "Main girder": ("maingirder", "maingirders"),
    "Cross girder": ("crossgirder", "crossgirders", "crossbeam", "crossbeams"),
    "Longitudinal girder": ("longitudinalgirder", "longitudinalgirders", "stringer", "stringers"),
    "Girder": ("girder", "girders"),
    "Bearing": ("bearing", "bearings"),
    "Pier": ("pier", "piers"),
    "Abutment": ("abutment", "abutments"),
    "Expansion joint": ("expansionjoint", "expansionjoints", "joint", "joints"),
    "Pavement": ("pavement", "wearingsurface"),
    "Railing": ("railing", "railings"),
    **{name: (name,) for name in (
        "床版", "主桁", "横桁", "縦桁", "主構", "支承", "橋脚", "橋台", "基礎", "上部構造", "下部構造",
        "上部工", "下部工", "伸縮装置", "舗装", "高欄", "防護柵", "地覆", "排水装置", "落橋防止装置",
    )},
}  # fmt: skip
RATED = (
    "conditionrating|conditionstate|condition|cond|ratings|rating|rate|grade|"
    "健全度|健全性|判定区分|判定|損傷程度|損傷度|ランク|評価"
)
ITEM = "(?:nbi)?(?:item)?(?:0?58|0?59|0?60|0?62)"
MARK = rf"(?:{RATED}|の|of)*"


@dataclass(frozen=True)
class _Candidate:
    """Column that may hold the ratings of a component; ``sure`` where its name says that it is a rating."""

    component: str
    column: str
    sure: bool


def find_components(table: SourceTable, plan: TableMapping, notes: list[str]) -> dict[str, str]:
    """Find the columns of ratings by component, given or recognised, with a note; none where there is a state.

    Recognised are columns that are called by a component and hold ratings: those whose names say so too, such as
    Deck Condition; else, if there are two, those called by the component alone, which may be its kind or number.
    """
    if plan.columns.components:
        found = {name: resolve(table, column) for name, column in plan.columns.components.items()}
        notes.append(_describe(table, found, "as given"))
        return found
    columns = plan.columns
    if plan.wide or columns.state or columns.case or has_state(table, columns):
        return {}
    named = [one for one in map(_match, _list_free(table, columns)) if one is not None]
    rated = [one for one in named if _holds_ratings(table, one.column, plan)]
    chosen = [one for one in rated if one.sure] or rated
    if not chosen or (len(chosen) < 2 and not chosen[0].sure):
        return {}
    _refuse_rivals(table, chosen)
    found = {one.component: one.column for one in chosen}
    notes.append(_describe(table, found, "known by their names; --component NAME=COLUMN says otherwise"))
    return found


def has_state(table: SourceTable, columns: ColumnRoles) -> bool:
    """Whether some column is known by its name as the state."""
    return any(is_known("state", name) for name in table.columns if not is_ignored(columns, name))


def is_inventory(components: Mapping[str, str]) -> bool:
    """Whether all components are those that the National Bridge Inventory rates, from 9, the best, to 0."""
    return bool(components) and all(name in NBI_COMPONENTS for name in components)


def stack_components(
    table: SourceTable, columns: Mapping[str, pl.Expr], components: Mapping[str, str]
) -> pl.LazyFrame:
    """Make a record of each cell of the columns of ratings: its component is the case, its column is kept."""
    names = list(components.values())

    def constant(values: Sequence[str]) -> pl.Expr:
        return pl.lit(pl.Series([list(values)], dtype=pl.List(pl.String))).first()

    lists = {
        "column": constant(names),
        "case": constant(list(components)),
        "state": pl.concat_list(pl.col(name).cast(pl.String) for name in names),
    }
    return table.frame.select(**(dict(columns) | lists)).explode(*lists)


def _list_free(table: SourceTable, columns: ColumnRoles) -> list[str]:
    """Columns that no option gives another part."""
    roles = ((role, value) for role, value in columns if role != "ignore")
    given = [name for _, value in roles for name in (value if isinstance(value, list) else [value]) if value]
    taken = {resolve(table, name) for name in given if isinstance(name, str)}
    free = [name for name in table.columns if name not in taken | table.repeated]
    return [name for name in free if not is_ignored(columns, name)]


def _match(column: str) -> _Candidate | None:
    """Component that a column is called by; None where it is called otherwise."""
    plain = plain_name(column)
    for component, stems in COMPONENTS.items():
        found = re.fullmatch(rf"({ITEM})?({MARK})(?:{'|'.join(stems)})({MARK})({ITEM})?", plain)
        if found is not None:
            return _Candidate(component, column, any(found.groups()))
    for component, stems in SHORT.items():
        if re.fullmatch(rf"({ITEM})?(?:{'|'.join(stems)})(?:{RATED})+({ITEM})?", plain):
            return _Candidate(component, column, sure=True)
    return None


def _holds_ratings(table: SourceTable, column: str, plan: TableMapping) -> bool:
    """Whether more than half of what a column holds is on the scale that is given, or on one that is known."""
    resolve(table, column)
    seen = survey(table.frame, column, table.name)
    try:
        read, _ = read_states(seen["text"], seen["count"], plan.state, plan.table.decimal, inventory=True)
    except BadStates:
        return False
    filled, rated = (int(seen.filter(some)["count"].sum()) for some in (~read["blank"], ~read["state"].is_null()))
    return rated > RECOGNISED * filled


def _refuse_rivals(table: SourceTable, chosen: Sequence[_Candidate]) -> None:
    """Refuse two columns that can be the rating of one component."""
    for one in chosen:
        alike = [other.column for other in chosen if other.component == one.component]
        if len(alike) > 1:
            raise BadOption(
                f"{table.name} has {len(alike)} columns that can be the rating of {one.component}: "
                f"{', '.join(alike)}. Say which it is, with all components: --component {one.component}=COLUMN.",
                problem="rival_ratings",
                component=one.component,
                columns=alike,
            )


def _describe(table: SourceTable, components: Mapping[str, str], how: str) -> str:
    """Sentence on the columns of ratings."""
    listed = ", ".join(name if name == column else f"{name} ({column})" for name, column in components.items())
    number = count_of(len(components), "component")
    return f"{table.name}: a column of ratings for each of {number}: {listed}, {how}"
