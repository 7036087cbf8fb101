"""How tables are read: one value for every function and command that reads one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rekka.core.errors import BadOption
from rekka.data.direction import refuse_upside_down
from rekka.data.mapping import load_mapping
from rekka.data.nbi import read_nbi
from rekka.data.panel import Panel, list_sources, read_panel
from rekka.data.transitions import (
    LazyTransitions,
    Transitions,
    pair_visits,
    read_transitions,
    scan_transitions,
)


@dataclass(frozen=True)
class ReadingOptions:
    """A mapping, sections that overrule it, and which checks do not stop the work.

    ``mapping``  path of a TOML file, or its sections as a dict; see ``read_panel``
    ``changes``  sections that overrule the mapping, such as {"columns": {"bridge": "ID"}}
    ``nbi``      the files are yearly files of the National Bridge Inventory; of the sections they take the rules
    ``allow``    codes of checks that do not stop the work: "R109", more moves go up than down
    """

    mapping: Any = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    nbi: bool = False
    allow: Sequence[str] = ()

    @property
    def rules(self) -> dict[str, Any]:
        """Rules that the panel does not carry itself."""
        return dict(self.changes.get("rules", {})) if self.nbi else {}

    def panel(self, source: Any) -> Panel:
        """The panel of one table, or of several National Bridge Inventory files."""
        if not self.nbi:
            return read_panel(take_one(source), self.mapping, **self.changes)
        if self.mapping or set(self.changes) - {"rules"}:
            raise BadOption("nbi: such files need no mapping; the rules are all they take.", option="nbi")
        return read_nbi(source)

    def transitions(self, source: Any) -> Transitions:
        """Transitions, from inspections or as they are."""
        if isinstance(source, Transitions):
            return source
        if self.nbi:
            return pair_visits(self.panel(source), **self.rules)
        return read_transitions(take_one(source), self.mapping, **self.changes)

    def sound(self, source: Any) -> Transitions | LazyTransitions:
        """Transitions for a fit, not read yet where they may be many; what a check stops is refused."""
        found = self.scan(source) or self.transitions(source)
        refuse_upside_down(found.moves, self.allow)
        return found

    def scan(self, source: Any) -> LazyTransitions | None:
        """Transitions in Parquet that are not read yet; None of anything else."""
        if self.nbi or isinstance(source, Transitions):
            return None
        one = take_one(source)
        return scan_transitions(one.absolute() if isinstance(one, Path) else one, self.mapping, **self.changes)

    def inputs(self, source: Any) -> list[Path]:
        """List all files that are read: the tables, those of a folder, the mapping and what is joined."""
        joins = [] if self.nbi else load_mapping(self.mapping, self.changes).join
        own = [self.mapping, *(join.file for join in joins)]
        files = [file for table in list_tables(source) for file in list_sources(table)]
        return [*files, *(Path(one) for one in own if isinstance(one, str | Path))]


def read_options(given: Any) -> ReadingOptions:
    """Options as they are; a mapping, or None, as the options that have it."""
    return given if isinstance(given, ReadingOptions) else ReadingOptions(given)


def list_tables(source: Any) -> list[Path]:
    """The paths of tables: of one, of several, or none where the data come from memory."""
    some = source if isinstance(source, list | tuple) else [source]
    return [Path(one) for one in some if isinstance(one, str | Path)]


def take_one(source: Any) -> Any:
    """The one table of a list, a path as a ``Path``; anything else as it is."""
    tables = list_tables(source)
    if len(tables) > 1:
        raise BadOption(
            f"{tables[0].name}, {tables[1].name}: one table is read at a time; join others with --join.",
            files=[str(table) for table in tables],
        )
    return tables[0] if tables else source


def name_table(source: Any) -> str:
    """What messages call a table."""
    return next((table.name for table in list_tables(source)), "the table")
