"""Changes of a mapping: what a form of the page says, as the sections of a mapping file.

A form that is sent back as it was shown changes nothing: what was recognised stays so, and only what the user
chose otherwise goes into the mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol

from rekka.app.description import (
    COMPONENT,
    LISTS,
    NO_ROLE,
    NOT_RATED,
    OFF_SCALE,
    ONE_COLUMN,
    ROLES,
    TableDescription,
)
from rekka.core.errors import BadOption
from rekka.core.ratings import plain_label
from rekka.data.mapping import Rules, State

Plain = dict[str, Any]
FILE = ("encoding", "separator", "decimal")
SCALE = ("labels", "best", "worst", "bands", "worst_first")
RULES = tuple(Rules.model_fields)
TAB = "tab"  # a separator that cannot be typed
LIST_NAMES = tuple(LISTS.values())


class FormFields(Protocol):
    """FormFields of a form, as Starlette has them."""

    def __contains__(self, name: object) -> bool: ...

    def get(self, name: str, default: Any = None) -> Any:
        """The last value of a field."""

    def getlist(self, name: Any) -> list[Any]:
        """All values of a field."""


def put(mapping: Plain, section: str, key: str, value: Any) -> Plain:
    """Mapping with another value; None, blanks and empty lists take the key out."""
    changed = deepcopy(mapping)
    part = changed.setdefault(section, {})
    part.pop(key, None)
    if value is not None and value not in ("", []):
        part[key] = value
    if not part:
        del changed[section]
    return changed


def put_scale(mapping: Plain, scale: State) -> Plain:
    """Mapping with another scale; what means 'not inspected' stays."""
    kept = {name: value for name, value in mapping.get("state", {}).items() if name not in SCALE}
    given = scale.model_dump(mode="json", exclude_defaults=True, include=set(SCALE))
    changed = {name: part for name, part in deepcopy(mapping).items() if name != "state"}
    return changed | ({"state": kept | given} if kept or given else {})


def add_missing(mapping: Plain, values: Iterable[str]) -> Plain:
    """Mapping in which some ratings mean that nobody looked."""
    known = list(mapping.get("state", {}).get("missing", []))
    seen = {plain_label(str(one)) for one in known}
    return put(mapping, "state", "missing", known + [one for one in values if plain_label(one) not in seen])


def merge_apart(mapping: Plain, apart: bool) -> Plain:
    """Mapping that keeps ratings apart which few records leave, or not."""
    return put(mapping, "state", "merge", False if apart else None)


# Columns


def set_roles(
    mapping: Plain, table: TableDescription, wanted: Mapping[int, str], names: Mapping[int, str] | None = None
) -> Plain:
    """Mapping in which some columns, by their places, have other roles; ``names`` are those of components."""
    columns, names = table.columns, names or {}
    known = {place: role for place, role in wanted.items() if 0 <= place < len(columns)}
    changed = {
        place: role
        for place, role in known.items()
        if role != columns[place].role
        and role in ROLES
        and not (role == COMPONENT and table.kind != "inspections")
    }
    renamed = [place for place, name in names.items() if _is_renamed(table, place, name)]
    if not changed and not renamed:
        return mapping
    part: Plain = deepcopy(mapping.get("columns", {}))
    for place in changed:
        _release(part, columns[place].name)
    for place, role in changed.items():
        _give(part, table, place, role)
    roles = {place: changed.get(place, one.role) for place, one in enumerate(columns)}
    for role in {*changed.values(), *(columns[place].role for place in changed)} & set(LISTS):
        part[LISTS[role]] = [one.name for place, one in enumerate(columns) if roles[place] == role]
    made = {role for role in changed.values() if role in ("state", "case")}
    if renamed or (COMPONENT in {*changed.values(), *(columns[place].role for place in changed)} and not made):
        part = {name: value for name, value in part.items() if name not in ("state", "case", "component")}
        places = [place for place, role in roles.items() if role == COMPONENT]
        part["components"] = _name_components(table, places, names)
    elif made:
        part.pop("components", None)
    changed_mapping = {name: value for name, value in mapping.items() if name != "columns"}
    if {"state", "date"} & set(changed.values()):
        changed_mapping.pop("wide", None)
    kept = {name: value for name, value in part.items() if value not in (None, "", [], {})}
    return changed_mapping | ({"columns": kept} if kept else {})


def _is_renamed(table: TableDescription, place: int, name: str) -> bool:
    if not 0 <= place < len(table.columns):
        return False
    one = table.columns[place]
    return one.role == COMPONENT and bool(name.strip()) and name.strip() != one.component


def _release(part: Plain, name: str) -> None:
    """Take a column out of all roles."""
    for role in ONE_COLUMN:
        if part.get(role) == name:
            del part[role]
    for role in (*LIST_NAMES, "ignore"):
        if name in part.get(role, []):
            part[role] = [one for one in part[role] if one != name]
    if name in part.get("components", {}).values():
        part["components"] = {component: one for component, one in part["components"].items() if one != name}


def _give(part: Plain, table: TableDescription, place: int, role: str) -> None:
    """Give a column a role of one column; one without a role stays so, whatever it is called."""
    one = table.columns[place]
    if role in ONE_COLUMN:
        part[role] = one.name
    elif role == NO_ROLE and (one.role not in LISTS or not one.given):
        part["ignore"] = [*part.get("ignore", []), one.name]


def _name_components(table: TableDescription, places: Sequence[int], names: Mapping[int, str]) -> dict[str, str]:
    """Columns of ratings by component; one whose name is taken or missing is called as its column."""
    found: dict[str, str] = {}
    for place in places:
        one = table.columns[place]
        name = names.get(place, "").strip() or one.component or one.name
        found[one.name if name in found else name] = one.name
    return found


def ignore_columns(mapping: Plain, table: TableDescription, names: Iterable[str]) -> Plain:
    """Mapping in which columns have no role."""
    wanted = set(names)
    return set_roles(
        mapping, table, {place: NO_ROLE for place, one in enumerate(table.columns) if one.name in wanted}
    )


def forget_columns(mapping: Plain, names: Iterable[str]) -> Plain:
    """Mapping without some columns, which the table does not have."""
    part = deepcopy(mapping.get("columns", {}))
    for name in names:
        _release(part, name)
    kept = {role: value for role, value in part.items() if value not in (None, "", [], {})}
    rest = {name: value for name, value in mapping.items() if name != "columns"}
    if any(name.replace("{", "").replace("}", "") != name for name in names):
        rest.pop("wide", None)
    return rest | ({"columns": kept} if kept else {})


# Forms, a function for each section of the page


def change_columns(form: FormFields, mapping: Plain, table: TableDescription) -> Plain:
    """Roles of columns, and names of components."""
    places = range(len(table.columns))
    wanted = {place: str(form.get(f"role-{place}")) for place in places if f"role-{place}" in form}
    names = {place: str(form.get(f"name-{place}")) for place in places if f"name-{place}" in form}
    return set_roles(mapping, table, wanted, names)


def change_scale(form: FormFields, mapping: Plain, table: TableDescription) -> Plain:
    """Places of the ratings, or limits of an index; what means 'not inspected'; whether ratings stay apart."""
    scale = table.scale
    if scale is None:
        return mapping
    if scale.index:
        changed = put(mapping, "state", "missing", _split(str(form.get("missing", ""))))
        bands = read_bands(str(form.get("bands", "")))
        if bands != list(table.plan.state.bands or []):
            changed = put(put_scale(changed, State()), "state", "bands", bands)
        return merge_apart(changed, "apart" in form)
    shown = {place: one.place for place, one in enumerate(scale.ratings)}
    asked = {place: _read_place(form.get(f"place-{place}"), was) for place, was in shown.items()}
    if asked == shown:
        return merge_apart(mapping, "apart" in form)
    groups: dict[int, list[str]] = {}
    for place, one in enumerate(scale.ratings):
        if asked[place] > OFF_SCALE:
            groups.setdefault(asked[place], []).append(one.text)
    labels = [group[0] if len(group) == 1 else group for _, group in sorted(groups.items())]
    if len(labels) < 2:
        raise BadOption("At least two ratings need a place, the best 1.", problem="few_places")
    known = [str(one) for one in table.plan.state.missing]
    found = {plain_label(one.text) for one in scale.ratings}
    missing = [one for one in known if plain_label(one) not in found]
    missing += [one.text for place, one in enumerate(scale.ratings) if asked[place] == NOT_RATED]
    changed = put(put_scale(mapping, State()), "state", "labels", labels)
    return merge_apart(put(changed, "state", "missing", missing), "apart" in form)


def _read_place(text: Any, was: int) -> int:
    try:
        return max(NOT_RATED, int(text))
    except (TypeError, ValueError):
        return was


def read_bands(text: str) -> list[float]:
    """Limits with commas, blanks or semicolons between them."""
    parts = text.replace(";", " ").replace(",", " ").replace("、", " ").replace(",", " ").split()
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise BadOption(
            f"{text!r} is no list of limits such as 85, 75, 60.", problem="bands", value=text
        ) from None


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.replace("、", ",").replace(",", ",").split(",") if part.strip()]


def change_file(form: FormFields, mapping: Plain, table: TableDescription) -> Plain:
    """Sheet, header row and format of the file."""
    changed = mapping
    if "sheet" in form and str(form.get("sheet")) in table.sheets:
        place = table.sheets.index(str(form.get("sheet")))
        changed = put(changed, "table", "sheet", table.sheets[place] if place else None)
    if "header_row" in form:
        text = str(form.get("header_row")).strip()
        if text and not text.isdecimal():
            raise BadOption(f"{text!r} is no row.", problem="header_row", value=text)
        changed = put(changed, "table", "header_row", int(text) if text else None)
    for key in (name for name in FILE if name in form):
        value: str | None = str(form.get(key)).strip()
        value = "\t" if value == TAB else None if key == "decimal" and value == "." else value
        changed = put(changed, "table", key, value)
    return changed


def change_dates(form: FormFields, mapping: Plain, table: TableDescription) -> Plain:
    """Formats of the dates; several with commas are tried in turn."""
    changed = mapping
    for name in ("inspection", "completed", "repair"):
        if f"dates-{name}" in form:
            text = str(form.get(f"pattern-{name}") or form.get(f"dates-{name}")).strip()
            some = [part.strip() for part in text.split(",") if part.strip()]
            value = None if some in ([], ["auto"]) else some[0] if len(some) == 1 else some
            changed = put(changed, "dates", name, value)
    if "wide-state" in form:
        for key in ("state", "date"):
            changed = put(changed, "wide", key, str(form.get(f"wide-{key}", "")).strip())
        if "state" not in changed.get("wide", {}):
            changed = {name: part for name, part in changed.items() if name != "wide"}
    return changed


def change_rules(form: FormFields, mapping: Plain, table: TableDescription) -> Plain:
    """Rules for doubtful visits and pairs."""
    changed, usual = mapping, Rules()
    for name in (one for one in RULES if f"rule-{one}" in form):
        text = str(form.get(f"rule-{name}")).strip()
        if name == "max_gap":
            try:
                value: Any = float(text.replace(",", ".")) if text else None
            except ValueError:
                raise BadOption(f"{text!r} is no number of years.", problem="max_gap", value=text) from None
        else:
            value = None if text == getattr(usual, name) else text
        changed = put(changed, "rules", name, value)
    return changed


def change_joins(form: FormFields, mapping: Plain, table: TableDescription) -> Plain:
    """Columns of the tables that are joined: the bridge, and covariates."""
    changed = deepcopy(mapping)
    given = changed.get("join", [])
    first = len(table.joins) - len(given)  # those of a folder come first, and are not in the mapping
    for place, join in enumerate(given):
        view = table.joins[place + first] if 0 <= place + first < len(table.joins) else None
        columns = dict(join.get("columns", {}))
        if f"key-{place}" in form and view is not None:
            key = str(form.get(f"key-{place}"))
            columns.pop("bridge", None)
            if key in {one.name for one in view.columns}:
                columns["bridge"] = key
        if f"shown-{place}" in form and view is not None:
            asked = set(map(str, form.getlist(f"covariates-{place}")))
            columns["covariates"] = [one.name for one in view.columns if one.name in asked]
        if f"header-{place}" in form:
            text = str(form.get(f"header-{place}")).strip()
            join.pop("header_row", None)
            if text.isdecimal():
                join["header_row"] = int(text)
        kept = {name: value for name, value in columns.items() if value not in ("", [])}
        join.pop("columns", None)
        if kept:
            join["columns"] = kept
    return changed


def add_join(mapping: Plain, file: str) -> Plain:
    """Mapping with another table joined."""
    return mapping | {"join": [*mapping.get("join", []), {"file": file}]}


def drop_join(mapping: Plain, place: int) -> Plain:
    """Mapping without one of the joined tables."""
    kept = [join for number, join in enumerate(mapping.get("join", [])) if number != place]
    rest = {name: value for name, value in mapping.items() if name != "join"}
    return rest | ({"join": kept} if kept else {})


SECTIONS = {
    "columns": change_columns,
    "scale": change_scale,
    "file": change_file,
    "dates": change_dates,
    "rules": change_rules,
    "joins": change_joins,
}
