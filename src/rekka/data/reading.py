"""Readings: how a table was read, kept with a run and with a model, and used again for later tables.

    read_panel -> settle -> TableReading (in a run folder, in a model file) -> reuse -> mapping of another table

The meaning of values must stay: a scale given again must be the same. Names of columns, formats of files and dates
may change, because another table may be laid out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from rekka.core.errors import BadOption, MissingColumns, UnreadableTable, did_you_mean, name_some
from rekka.core.ratings import name_groups, plain_labels
from rekka.data.attributes import find_texts
from rekka.data.mapping import ColumnRoles, State, TableMapping, Wide, is_known, is_there, load_mapping, resolve
from rekka.data.tables import EXCEL, TEXT, SourceTable
from rekka.data.text import FileOptions
from rekka.data.values import Scale

Kind = Literal["inspections", "transitions", "nbi"]
IDENTITY = ("bridge", "case", "member", "visit", "date", "state")
BY_VISIT = ("visit", "date", "state")  # what a wide table has in its columns' names
NEEDED = ("bridge", "member", "date", "state")  # without a visit dates put in order; without a case --only chooses
USED_FOR = {  # covariates that come from an attribute
    "completed": ("age_at_inspection_1",), "length": ("bridge_length", "bridge_area"), "width": ("bridge_area",),
    "area": ("bridge_area",), "traffic": ("traffic_mean",),
}  # fmt: skip
OF_TEXT, OF_SHEETS = ("encoding", "separator", "decimal", "header_row", "names"), ("sheet", "header_row", "names")


class TableReading(BaseModel):
    """Mapping that was used, with nothing left to be recognised.

    ``given`` is the [state] as it was given. ``labels`` are the names of the states, best first; None for
    transitions, whose states are numbers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    mapping: dict[str, Any] = {}
    given: dict[str, Any] = {}
    labels: tuple[str, ...] | None = None

    def relocate(self, place: Callable[[str], str]) -> TableReading:
        """Rewrite the paths of joined files."""
        joins = [join | {"file": place(join["file"])} for join in self.mapping.get("join", [])]
        return self.model_copy(update={"mapping": self.mapping | ({"join": joins} if joins else {})})

    @property
    def state(self) -> State:
        """Scale."""
        return State.model_validate(self.mapping.get("state", {}))

    @property
    def ratings(self) -> list[str]:
        """Ratings of a scale that is given by labels, those of groups one by one."""
        labels = self.state.labels or ()
        return [str(one) for group in labels for one in (group if isinstance(group, list) else [group])]

    @property
    def merged(self) -> bool:
        """Whether ratings were merged when the table was read, and not by labels that were given."""
        groups = any(isinstance(group, list) for group in self.state.labels or ())
        return groups and State.model_validate(self.given).labels is None

    def explain_merges(self) -> list[str]:
        """Sentence on ratings that were merged when the table was read; none where none were."""
        if not self.merged:
            return []
        groups = [list(map(str, group)) for group in self.state.labels or () if isinstance(group, list)]
        merged = ["ratings " + " and ".join([", ".join(group[:-1]), group[-1]]) for group in groups]
        few = "because few records leave them; --keep-ratings keeps them apart"
        return [f"{', and '.join(merged)} are {'each ' if len(merged) > 1 else ''}read as one, {few}"]

    def is_like(self, other: TableReading) -> bool:
        """Whether both read tables in one way: the same columns, and one scale of which one may have seen more."""
        pairs = zip(plain_labels(self.labels or ()), plain_labels(other.labels or ()), strict=False)
        same = all(
            self.mapping.get(part, {}) == other.mapping.get(part, {}) for part in ("columns", "wide")
        ) and all(mine == theirs for mine, theirs in pairs)
        return same and (self.kind, self.given) == (other.kind, other.given)

    @property
    def knows_states(self) -> bool:
        """Whether the reading names the column of the states, or their scale."""
        return bool(self._column or self.labels or _name_scale(State.model_validate(self.given)))

    @property
    def _column(self) -> str | None:
        """Column of the states, or those of the components; None where it is not known."""
        columns = self.mapping.get("columns", {})
        if columns.get("components"):
            return "`, `".join(columns["components"].values())
        found = columns.get("state") or self.mapping.get("wide", {}).get("state")
        return None if found is None else str(found)

    def explain(self) -> str:
        """'`rating` with --bands 85,75,70,60', for messages."""
        column = self._column or "states"
        given = _name_scale(State.model_validate(self.given))
        if not given and self.labels is None:
            return f"`{column}`"
        return f"`{column}` {given or f'as {name_some(self.labels or ())}, best first'}"


def settle(plan: TableMapping, found: Mapping[str, str], wide: Wide | None, scale: Scale) -> TableReading:
    """Reading of a table of inspections: the mapping with every guess in its place."""
    columns: dict[str, Any] = {role: name for role, name in found.items() if role != "repairs"}
    if not plan.columns.repairs and "repairs" in found:
        columns["repairs"] = [found["repairs"]]
    settled = plan.model_copy(
        update={
            "columns": plan.columns.model_copy(update=columns),
            "wide": wide,
            "state": scale.state or plan.state,
        }
    )
    return TableReading(
        kind="inspections", mapping=_dump(settled), given=_dump(plan.state), labels=tuple(scale.names) or None
    )


def _dump(part: BaseModel) -> dict[str, Any]:
    """A mapping, or a section of one, as plain data; tables that were joined from memory are left out."""
    plain = part.model_dump(mode="json", exclude_defaults=True, exclude={"join"})
    joins = [join for join in getattr(part, "join", []) if isinstance(join.file, str | Path)]
    listed = [
        join.model_dump(mode="json", exclude_defaults=True, exclude={"file"})
        | {"file": str(Path(join.file).absolute())}
        for join in joins
    ]
    return plain | ({"join": listed} if listed else {})


def reuse(reading: TableReading, source: Any, mapping: Any, changes: Mapping[str, Any], who: str) -> TableMapping:
    """Mapping for another table: the reading's, overruled by what is given now, which must mean the same."""
    own = load_mapping(mapping, changes)
    given = own.model_dump(exclude_unset=True)
    kept = {
        section: dict(part) if isinstance(part, Mapping) else part for section, part in reading.mapping.items()
    }
    kept["table"] = _choose_format(reading, source)
    if "join" in given:
        kept.pop("join", None)
    columns = given.get("columns", {})
    if columns.get("components"):
        kept.pop("wide", None)
    if "wide" in given:
        kept["columns"] = {role: name for role, name in kept.get("columns", {}).items() if role not in BY_VISIT}
    elif columns.get("state") or columns.get("date"):
        kept.pop("wide", None)
    if "state" in given:
        kept["state"], given["state"] = _agree(reading, own.state, given["state"], who)
    return load_mapping(kept, given)


def choose_options(reading: TableReading, source: Any, own: TableMapping) -> FileOptions:
    """Format of another file: as it is given now, else as it was, else recognised."""
    return FileOptions(**_choose_format(reading, source) | own.table.model_dump(exclude_unset=True))


def _choose_format(reading: TableReading, source: Any) -> dict[str, Any]:
    """Format of a file as far as it holds for another one of its kind."""
    suffix = Path(source).suffix.lower() if isinstance(source, str | Path) else ""
    names = OF_TEXT if suffix in TEXT else OF_SHEETS if suffix in EXCEL else ()
    return {name: value for name, value in reading.mapping.get("table", {}).items() if name in names}


def _agree(
    reading: TableReading, own: State, given: dict[str, Any], who: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Reading's scale and what is given of it now, of which one counts; refused where they differ."""
    kept = dict(reading.mapping.get("state", {}))
    missing = {name: value for name, value in given.items() if name == "missing"}
    bare: dict[str, Any] = {"missing": []}
    if not _name_scale(own) or own.model_copy(update=bare) == State(**reading.given).model_copy(update=bare):
        return kept, missing
    if reading.merged and _list_names(own) == reading.ratings:
        return kept, missing
    if reading.labels is not None and not _is_same(reading.state, own, reading.labels):
        raise BadOption(
            f"{who} read {reading.explain()}; here {_name_scale(own).removeprefix('with ')} was given. The states "
            "would mean something else than in the model. Leave the option out, or fit a model to this table.",
            was=reading.explain(),
            given=_name_scale(own),
        )
    return {name: value for name, value in kept.items() if name == "missing"}, given


def _is_same(was: State, own: State, labels: Sequence[str]) -> bool:
    """Whether two scales are one: the same, or as many states under names of which none is in both."""
    if own.worst_first:
        return False
    if own.bands is not None or was.bands is not None:
        if own.bands is not None and was.bands is not None:
            return own.bands == was.bands
        return len(own.bands or _list_names(own)) + (own.bands is not None) == len(labels)
    names, before = (plain_labels(some) for some in (_list_names(own), labels))
    return names == before or (len(names) == len(before) and not set(names) & set(before))


def _list_names(state: State) -> list[str]:
    """Names of a scale that is given by labels or by its ends."""
    if state.labels is not None:
        return [*name_groups([list(map(str, one if isinstance(one, list) else [one])) for one in state.labels])]
    if state.best is not None and state.worst is not None:
        step = 1 if state.worst > state.best else -1
        return [str(number) for number in range(state.best, state.worst + step, step)]
    return []


def _name_scale(state: State) -> str:
    """Options of a scale; nothing where it was recognised."""
    if state.bands is not None:
        return f"with --bands {','.join(f'{limit:g}' for limit in state.bands)}"
    if state.best is not None:
        return f"with --best {state.best} --worst {state.worst}"
    if state.labels is not None:
        groups = (one if isinstance(one, list) else [one] for one in state.labels)
        return f"with --labels {','.join('/'.join(map(str, group)) for group in groups)}"
    return "with --worst-first" if state.worst_first else ""


def fit_to(
    plan: TableMapping, table: SourceTable, given: TableMapping, needed: Sequence[str] | None, who: str
) -> tuple[TableMapping, list[str]]:
    """Mapping for a table that lacks some of the reading's columns: what no model needs is done without.

    A column that the user has named now is not looked at here: the reader says that it is not there.
    """
    for join in () if given.join else plan.join:
        if not Path(join.file).exists():
            name = Path(join.file).name
            raise UnreadableTable(
                f"{who} read its table together with {name}, which is not where it was. Give the file that is to "
                f"be joined now: --join {name}.",
                file=name,
            )
    own = {role for role, value in given.columns if value}
    columns: dict[str, Any] = {}
    notes = []
    for role, name in plan.columns:
        if role in own or not name:
            continue
        if isinstance(name, dict):
            columns[role], more = _fit_components(name, table, who)
            notes += more
        elif isinstance(name, list):
            lacking = [one for one in name if not is_there(table, one)]
            columns[role] = [one for one in name if one not in lacking]
            if role in ("covariates", "categories") and (
                used := [one for one in lacking if needed is None or one in needed]
            ):
                raise _lacks(table, "covariate", used[0], who)
            if role == "repairs" and lacking:
                notes.append(f"{table.name}: {who} knew repairs by {', '.join(lacking)}, which is not here")
        elif not is_there(table, name):
            used = [one for one in USED_FOR.get(role, ()) if needed is None or one in needed]
            if role in NEEDED or (used and not plan.join):
                raise _lacks(table, role, name, who)
            columns[role] = None
            if role in IDENTITY:
                notes.append(f"{table.name}: {who} read the {role} from {name}, which is not here")
    return plan.model_copy(update={"columns": plan.columns.model_copy(update=columns)}), notes


def _fit_components(
    components: Mapping[str, str], table: SourceTable, who: str
) -> tuple[dict[str, str], list[str]]:
    """Columns of components that a table has, with a note on those that it lacks; none where it has a state."""
    there = {name: column for name, column in components.items() if is_there(table, column)}
    if not there:
        if any(is_known("state", name) for name in table.columns):
            return {}, [f"{table.name}: {who} read a column for each component, which are not here"]
        name, column = next(iter(components.items()))
        raise MissingColumns(
            f"{table.name} has no column {column}, from which {who} read the rating of {name}, nor those of other "
            f"components. Columns there: {name_some(table.columns)}.{did_you_mean(column, table.columns)} Give a "
            f"table that has them, or say which columns they are here (--component {name}=COLUMN).",
            missing=list(components.values()),
            present=list(table.columns),
        )
    absent = [f"{name} ({column})" for name, column in components.items() if name not in there]
    note = f"{table.name}: {who} read also the ratings of {', '.join(absent)}, which are not here"
    return there, [note] if absent else []


def loosen(plan: TableMapping, table: SourceTable, given: TableMapping) -> TableMapping:
    """Mapping for what may be a plain list of members: it has columns of its own, and all that is needed."""
    own = {role for role, value in given.columns if value}
    absent = {
        role: None
        for role, name in plan.columns
        if isinstance(name, str) and role not in own and not is_there(table, name)
    }
    lists: dict[str, list[str]] = {
        role: [] for role in ("repairs", "covariates", "categories", "keep") if role not in own
    }
    if "categories" in lists:
        lists["categories"] = find_named(plan.columns, table, plan.table.decimal)
    there = {name: column for name, column in plan.columns.components.items() if is_there(table, column)}
    components = {} if "components" in own else {"components": there}
    columns = plan.columns.model_copy(update=absent | lists | components)
    wide = plan.wide
    if wide is not None:
        before, _, after = wide.state.partition("{" + wide.key + "}")
        wide = wide if any(n.startswith(before) and n.endswith(after) for n in table.columns) else None
    return plan.model_copy(update={"columns": columns, "wide": wide, "join": given.join})


def find_named(columns: ColumnRoles, table: SourceTable, decimal: str) -> list[str]:
    """Categories among the covariates that a table has: declared ones, and those that hold texts."""
    there = {name: resolve(table, name) for name in columns.asked if is_there(table, name)}
    texts = find_texts(table, there.values(), decimal)
    return [name for name, one in there.items() if name in columns.categories or one in texts]


def _lacks(table: SourceTable, role: str, name: str, who: str) -> MissingColumns:
    option = {"covariate": "--covariate"}.get(role, f"--{role}")
    return MissingColumns(
        f"{table.name} has no column {name}, from which {who} read the {role}. Columns there: "
        f"{name_some(table.columns)}.{did_you_mean(name, table.columns)} Give a table that has it, or say which "
        f"column it is here ({option} COLUMN).",
        missing=[name],
        present=list(table.columns),
    )
