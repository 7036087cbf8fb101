"""The options that say what is read and how, once for every command that reads a table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import rekka

Use = Annotated[
    str | None,
    typer.Option("--use", metavar="LIST", help="Only these covariates, such as age_at_inspection_1,traffic_mean."),
]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="CASE", help="Only this case. Repeatable.")]
TestFit = Annotated[
    bool | None,
    typer.Option(
        "--test-fit/--no-test-fit",
        help="Test whether each model describes the rows it was fitted to: a second or so a case. Default: for up "
        "to 50 cases.",
    ),
]
Units = Annotated[
    list[str] | None,
    typer.Option(
        "--unit", metavar="NAME=NUMBER", help="Unit of a hazard ratio, such as traffic_mean=1000. Repeatable."
    ),
]


class Flag(NamedTuple):
    """An option: its type, where its value goes in the mapping, and its help."""

    name: str
    kind: Any
    place: str  # section.key of the mapping
    metavar: str | None
    words: str

    @property
    def parameter(self) -> str:
        """Its name in Python; a mark tells it from the commands' own."""
        return "reading_" + self.name.removeprefix("--").replace("-", "_")

    @property
    def annotation(self) -> Any:
        """What Typer needs to know."""
        panel = _PANELS[self.place.split(".")[0]]
        option = typer.Option(self.name, help=self.words, rich_help_panel=panel, metavar=self.metavar)
        return Annotated[self.kind, option]


_PANELS = {
    "file": "How to read the file",
    "table": "How to read the file",
    "columns": "Which column is what (obvious names need no option)",
    "wide": "Which column is what (obvious names need no option)",
    "state": "What the values mean",
    "dates": "What the values mean",
    "rules": "What becomes of doubtful visits and pairs",
}
Text, Many, Number = str | None, list[str] | None, int | None
FLAGS = (
    Flag("--mapping", Path | None, "file.mapping", "TOML", "All of this in a TOML file; options overrule it."),
    Flag("--join", list[Path] | None, "file.join", "FILE", "Another table by bridge, as traffic. Repeatable."),
    Flag("--nbi", bool, "file.nbi", None, "The files are yearly National Bridge Inventory files."),
    Flag("--allow", Many, "file.allow", "CODE", "Go on although this check stops the work: R109. Repeatable."),
    Flag("--encoding", Text, "table.encoding", "NAME", "Text encoding: utf-8, cp932, latin-1, ..."),
    Flag("--separator", Text, "table.separator", "CHAR", "What stands between fields; tab for a tab."),
    Flag("--decimal", Text, "table.decimal", "CHAR", "The decimal mark: . or ,"),
    Flag("--sheet", Text, "table.sheet", "NAME", "The sheet of an Excel workbook."),
    Flag("--header-row", Number, "table.header_row", "ROW", "Row of the header, from 1; 0 for none."),
    Flag("--bridge", Text, "columns.bridge", "COLUMN", "Bridge or other asset."),
    Flag("--case", Text, "columns.case", "COLUMN", "Kind of member: girder, deck, ..."),
    Flag("--member", Text, "columns.member", "COLUMN", "Which of several such members."),
    Flag("--visit", Text, "columns.visit", "COLUMN", "Number of the inspection."),
    Flag("--date", Text, "columns.date", "COLUMN", "Date of the inspection."),
    Flag("--state", Text, "columns.state", "COLUMN", "Condition found."),
    Flag("--completed", Text, "columns.completed", "COLUMN", "Year or date of completion; gives the age."),
    Flag("--length", Text, "columns.length", "COLUMN", "Length in metres."),
    Flag("--width", Text, "columns.width", "COLUMN", "Width in metres; gives the area."),
    Flag("--area", Text, "columns.area", "COLUMN", "Area in square metres."),
    Flag("--traffic", Text, "columns.traffic", "COLUMN", "Vehicles a day."),
    Flag("--repair", Many, "columns.repairs", "COLUMN", "Year or date of a repair. Repeatable."),
    Flag("--covariate", Many, "columns.covariates", "COLUMN", "A further number to use. Repeatable."),
    Flag("--keep", Many, "columns.keep", "COLUMN", "A column to carry along. Repeatable."),
    Flag("--wide", Text, "wide.state", "PATTERN", "States in columns: '{year}', 'BCI {year}', 'rank_{visit}'."),
    Flag("--wide-date", Text, "wide.date", "PATTERN", "Their dates, for columns by visit: 'date_{visit}'."),
    Flag("--labels", Text, "state.labels", "LIST", "States, best first, such as good,fair,poor."),
    Flag("--best", Number, "state.best", "NUMBER", "The best state's number; with --worst."),
    Flag("--worst", Number, "state.worst", "NUMBER", "The worst state's number."),
    Flag("--worst-first", bool, "state.worst_first", None, "1, a or I is the worst."),
    Flag("--bands", Text, "state.bands", "LIST", "Limits in an index: 85,75,60 (more is better) or 5,10,20."),
    Flag("--not-inspected", Text, "state.missing", "LIST", "States that mean that nobody looked, such as 0,N."),
    Flag("--dates", Many, "dates.inspection", "FORMAT",
         "iso, year, fiscal_year, month, mmyy, dmy, mdy, era, or a pattern such as %d.%m.%Y. Repeatable."),
    Flag("--upward", Text, "rules.upward", "RULE", "Upward moves: set_aside (default), restart or error."),
    Flag("--repairs", Text, "rules.repairs", "RULE", "A repair between: set_aside (default), restart or ignore."),
    Flag("--same-day", Text, "rules.same_day", "RULE",
         "Several records of one day: worst (default), first, last, set_aside or error."),
    Flag("--interval", Text, "rules.interval", "RULE", "Dates out of order: set_aside (default) or error."),
    Flag("--max-gap", float | None, "rules.max_gap", "YEARS", "Set pairs further apart aside."),
    Flag("--missing", Text, "rules.missing", "RULE", "Missing covariates: set_aside (default) or error."),
    Flag("--outside", Text, "rules.outside", "RULE", "States outside the scale: set_aside (default) or error."),
)  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """Tables as the options say they are to be read."""

    mapping: Path | None
    changes: dict[str, Any]
    nbi: bool
    allow: tuple[str, ...] = ()  # codes of checks that do not stop the work

    @property
    def rules(self) -> dict[str, Any]:
        """Rules that the panel does not carry itself."""
        return dict(self.changes.get("rules", {})) if self.nbi else {}

    def panel(self, tables: list[Path]) -> Any:
        """The panel of one table, or of several National Bridge Inventory files."""
        if not self.nbi:
            return rekka.read_panel(self._one(tables), self.mapping, **self.changes)
        if self.mapping or set(self.changes) - {"rules"}:
            raise typer.BadParameter("such files need no mapping; the rules are all they take", param_hint="--nbi")
        return rekka.read_nbi(tables)

    def transitions(self, tables: list[Path]) -> Any:
        """Transitions, from inspections or as they are."""
        if self.nbi:
            return rekka.pair_visits(self.panel(tables), **self.rules)
        return rekka.read_transitions(self._one(tables), self.mapping, **self.changes)

    def scan(self, tables: list[Path]) -> Any:
        """Transitions in Parquet that are not read yet; None of anything else."""
        from rekka.data.transitions import scan_transitions

        return None if self.nbi else scan_transitions(self._one(tables).absolute(), self.mapping, **self.changes)

    def inputs(self, tables: list[Path]) -> list[Path]:
        """List all files that are read: the tables, those of a folder, the mapping and what is joined."""
        from rekka.data.mapping import load_mapping
        from rekka.data.panel import list_sources

        joined = [] if self.nbi else [Path(join.file) for join in load_mapping(self.mapping, self.changes).join]
        own = [] if self.mapping is None else [self.mapping]
        return [*(file for table in tables for file in list_sources(table)), *joined, *own]

    def sound(self, tables: list[Path]) -> Any:
        """Transitions for a fit, not read yet where they may be many; what a check stops is refused."""
        from rekka.data.direction import refuse_upside_down

        found = self.scan(tables) or self.transitions(tables)
        refuse_upside_down(found.moves, self.allow)
        return found

    def _one(self, tables: list[Path]) -> Path:
        if len(tables) > 1:
            raise typer.BadParameter("one table is read at a time; join others with --join", param_hint="TABLE")
        return tables[0]


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the reading options; it gets them together as ``reader``."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        reader = _collect({flag: given.pop(flag.parameter) for flag in FLAGS})
        command(reader=reader, **given)

    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "reader"]
    shared = [
        inspect.Parameter(
            flag.parameter,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if flag.kind is bool else None,
            annotation=flag.annotation,
        )
        for flag in FLAGS
    ]
    with_options.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in (*own, *shared)}
    return with_options


def _collect(given: dict[Flag, Any]) -> Reader:
    """The options that were given, as sections of a mapping."""
    sections: dict[str, dict[str, Any]] = {}
    for flag, value in given.items():
        if value is not None and value is not False and value != []:
            section, key = flag.place.split(".")
            sections.setdefault(section, {})[key] = _translate(flag, value)
    file = sections.pop("file", {})
    joined = {"join": [{"file": str(path)} for path in file["join"]]} if "join" in file else {}
    allow = _read_allowed(file.get("allow"))
    return Reader(file.get("mapping"), {**sections, **joined}, file.get("nbi", False), allow)


def _read_allowed(codes: list[str] | None) -> tuple[str, ...]:
    from rekka.data.direction import read_allowed

    return read_allowed(codes or ())


def _translate(flag: Flag, value: Any) -> Any:
    if flag.name == "--bands":
        try:
            return [float(part) for part in value.split(",")]
        except ValueError:
            raise typer.BadParameter(
                f"{value!r} is not a list such as 85,75,70,60", param_hint=flag.name
            ) from None
    if flag.metavar == "LIST":
        return [part.strip() for part in value.split(",")]
    if flag.name == "--separator" and value in ("tab", r"\t"):
        return "\t"
    return value


def split_list(names: str | None) -> tuple[str, ...] | None:
    """A list in an option."""
    return None if names is None else tuple(name.strip() for name in names.split(","))


def read_units(texts: list[str] | None) -> dict[str, float]:
    """Units of hazard ratios by covariate, as given on the command line."""
    return dict(_read_unit(text) for text in texts or ())


def _read_unit(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not like traffic_mean=1000", param_hint="--unit") from None
