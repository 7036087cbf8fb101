"""The outline of the page: sections in order, tables and figures in their sections, a part for each case."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import count
from typing import NamedTuple, TypeVar

from markupsafe import Markup, escape

from rekka.report.tables.cells import EstimateTable, has_intervals, leave_columns
from rekka.report.text import Words
from rekka.report.views import FigureView, PanelView, TableView

View = TypeVar("View", TableView, FigureView)


class Home(NamedTuple):
    """Tables and figures of a section, by patterns of their names."""

    tables: tuple[str, ...]
    figures: tuple[str, ...]


# Sections with the tables and figures that each takes, by name.
SECTIONS: Mapping[str, Home] = {
    "network": Home(("network", "network_cases"), ("network", "network-*", "reaching", "ratings")),
    "bridges": Home(("risks*", "unseen*", "set_aside*"), ("map*",)),
    "forecast": Home(
        ("passages", "forecast*", "effects*", "matrices*"),
        ("components*", "curves*", "multiples*", "curve-*", "reach-*", "profiles*"),
    ),
    "models": Home(("models", "years*", "ratios*", "coefficients*", "typical*"), ("ratios*", "effects*")),
    "answer": Home(("answer",), ()),
    "tradeoff": Home(("methods*",), ("tradeoff*",)),
    "presets": Home(("presets*",), ("presets*",)),
    "backtests": Home(("backtests*",), ("backtest*",)),
    "heldout": Home((), ("answer*", "difference*", "heldout*")),
    "calibration": Home(("calibration*",), ("calibration*", "reliability*")),
    "stability": Home(("stability*",), ("stability*",)),
    "findings": Home(("findings",), ()),
    "audit": Home(("audit*", "doctor*"), ("audit*",)),
    "tables": Home(("cases", "selection*", "losses*", "floor*", "trials-*", "verdicts*", "trials"), ()),
    "heat": Home((), ("heat*",)),
    "hypotheses": Home(("hypotheses*",), ("hypotheses*",)),
    "certificates": Home(("certificates*",), ()),
    "method": Home((), ()),
    "provenance": Home(("files*", "versions*"), ()),
}
# Parts of the page with their sections; a page for researchers begins with the study.
PARTS: Mapping[str, tuple[str, ...]] = {
    "overview": ("network",),
    "members": ("bridges",),
    "components": ("forecast", "models"),
    "choice": ("answer", "tradeoff", "presets"),
    "belief": ("backtests", "heldout", "calibration", "stability", "findings"),
    "data": ("audit",),
    "appendix": ("tables", "heat", "hypotheses", "certificates", "method", "provenance"),
}
OF_PAPER = (
    "tables",
    "heat",
    "hypotheses",
)  # that a page for researchers has in the study
DIRECTOR, ENGINEER, PAPER, FULL = READERS = ("director", "engineer", "paper", "full")
FEW = 3  # components below which the figures of the paper say nothing
PAPER_FIGURES = ("tradeoff*", "heat*")
ANCHORS = {"models": "case", "forecast": "future"}  # of what a section has of one case
ANYTHING_ELSE = "tables"  # what no section names is shown all the same
IN_SENTENCES = ("findings", "hypotheses", "typical", "doctor", "files", "versions")  # not as tables
OF_A_MAXIMUM = ("se", "p", "predicted_states")  # columns that the fit of a case may have nothing in
FLAGS = ("is_chosen", "certified")  # columns that its heading tells
# Tables that are shown case by case.
CUT = {"models": ("years", "ratios", "coefficients"), "forecast": ("forecast", "effects", "matrices")}
VARIED = "network"  # the section whose figures of one case stand in the place of that of all
CARDS = (
    "components", "first", "members_there", "members_next", "members_outside", "answer", "passages", "backtests",
    "risks", "unseen",
)  # fmt: skip
REMARKED = ("risks", "unseen")  # tables whose remarks stand under a cell
SHARES = ("share_of_state", "to_state")  # columns of states that a case may not have
# Columns of the answer that are told under the method instead.
UNDER = ("confirmed", "scored_on", "rows", "bridges", "reason", "why", "remark")
# Long, and seldom read in full.
FOLDED = (
    "verdicts", "trials", "calibration_counts", "stability", "network", "network_cases", "set_aside", "presets",
    "risks", "unseen", "models", "passages",
)  # fmt: skip

LONG = 30  # rows of a table above which it scrolls in a box of its own
FILTERED = 20  # rows of a table above which it has a filter
SIZES = {16: "widest", 10: "wider", 7: "wide"}  # columns above which a table is printed across, smaller, small
MOST_DRAWN = 24  # cases whose own figures stand on the page as pictures; later ones are drawn by the script


@dataclass(frozen=True)
class ShownTable:
    """A table with its place: an anchor, a number within the page, how it is shown."""

    view: TableView
    id: str
    number: int | None = None
    folded: bool = False
    of: str = ""  # the anchor of the heading that it belongs under
    under: tuple[tuple[Markup, ...], ...] = ()  # lines in small type under a cell of each row
    beside: int = 1  # that cell's place
    links: bool = False  # heads of rows lead to their component
    quiet: bool = False  # a heading above it has its title
    addresses: tuple[str, ...] = ()  # that heads of rows lead to

    @property
    def cards(self) -> bool:
        """Whether a row is a card on a narrow screen."""
        return self.view.name in CARDS

    @property
    def size(self) -> str:
        """Size of its print, by its number of columns."""
        return next((size for columns, size in SIZES.items() if len(self.view.columns) > columns), "")

    @property
    def head(self) -> int:
        """The column that names a row: its bridge, else its case, else the first."""
        keys = [column.key for column in self.view.columns]
        return next((keys.index(key) for key in ("bridge", "case") if key in keys), 0)

    def list_under(self, row: int, column: int) -> tuple[Markup, ...]:
        """Lines under a cell."""
        return self.under[row] if self.under and column == self.beside else ()

    @property
    def long(self) -> bool:
        """True where it scrolls in a box."""
        return len(self.view.rows) > LONG

    @property
    def filtered(self) -> bool:
        """True where it has a filter."""
        return len(self.view.rows) > FILTERED


@dataclass(frozen=True)
class ShownFigure:
    """A figure with its place; ``drawn`` says whether a picture of it stands on the page."""

    view: FigureView
    id: str
    number: int | None = None
    drawn: bool = True

    def name_panel(self, panel: PanelView) -> str:
        """The anchor of a panel, by its place: names come from data."""
        return f"{self.id}-{self.view.panels.index(panel) + 1}"


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    id: str
    number: int
    title: str
    tables: tuple[ShownTable, ...]
    figures: tuple[ShownFigure, ...]


@dataclass(frozen=True)
class CaseOutline:
    """Tables and figures of one case in a section; ``number`` is the case's place in the study."""

    number: int
    case: str
    id: str
    tables: tuple[ShownTable, ...]
    figures: tuple[ShownFigure, ...]


def list_sections(
    tables: Sequence[TableView],
    figures: Sequence[FigureView],
    cases: Sequence[str],
    words: Words,
    reader: str = DIRECTOR,
) -> tuple[Section, ...]:
    """Tables and figures in their sections, numbered for a reader; those of one case go to its part."""
    order = [name for sections in list_parts(reader).values() for name in sections]
    taken_tables = _take_each([view for view in tables if view.name not in IN_SENTENCES])
    taken_figures = _take_each(figures)
    counted, drawn = count(1), count(1)
    return tuple(
        Section(
            name,
            number,
            words(f"section.{name}.title"),
            tuple(
                _show_table(view, next(counted))
                for view in taken_tables[name]
                if view.name not in CUT.get(name, ())
            ),
            tuple(
                _show_figure(view, next(drawn), cases)
                for view in taken_figures[name]
                if view.case is None or name not in (*CUT, VARIED)
            ),
        )
        for number, name in enumerate(order, 1)
    )


def list_cases(
    tables: Sequence[TableView], figures: Sequence[FigureView], cases: Sequence[str], section: str = "models"
) -> tuple[CaseOutline, ...]:
    """For each case its rows of a section's tables, and its figures there."""
    own = [view for view in _take_each(tables)[section] if view.name in CUT[section]]
    drawn = [view for view in _take_each(figures)[section] if view.case is not None]
    found = []
    for number, case in enumerate(cases):
        place = f"{ANCHORS[section]}-{number + 1}"  # by number: names come from data
        parts = enumerate((part for view in own if (part := _cut_table(view, case)).rows), 1)
        charts = enumerate((view for view in drawn if view.case == case), 1)
        rows = tuple(
            ShownTable(part, f"{place}-table-{n}", of=f"{ANCHORS['models']}-{number + 1}-name")
            for n, part in parts
        )
        early = number < MOST_DRAWN
        shown = tuple(ShownFigure(view, f"{place}-figure-{n}", drawn=early) for n, view in charts)
        found.append(CaseOutline(number, case, place, rows, shown))
    return tuple(found)


def lay_under(shown: ShownTable, lines: Sequence[tuple[Markup, ...]]) -> ShownTable:
    """The answer's table without the columns that its lines tell: what a director reads must fit a screen."""
    return replace(shown, view=leave_columns(shown.view, UNDER), under=tuple(lines), links=True)


def lay_remarks(shown: ShownTable) -> ShownTable:
    """The table with each row's remark under its bridge, and without a state that is the same in all rows.

    Both are in the files; here the figures are to be seen.
    """
    places = {column.key: n for n, column in enumerate(shown.view.columns)}
    cells = {key: [row.cells[n] for row in shown.view.rows] for key, n in places.items()}
    same = len({cell.value for cell in cells.get("threshold", ())}) == 1
    english = Markup('<span lang="en">{}</span>')
    lines = tuple(
        ((english.format(cell.text) if cell.english else escape(cell.text)),) if cell.value else ()
        for cell in cells.get("remark", ())
    )
    left = leave_columns(shown.view, {"remark"} | ({"threshold"} if same else set()))
    return replace(shown, view=left, under=lines, beside=places["bridge"])


def list_variants(figures: Sequence[FigureView], cases: Sequence[str]) -> Mapping[int, ShownFigure]:
    """Figures of the network of one case, by its place: they stand where that of all stands."""
    own = [view for view in figures if find_section(view) == VARIED and view.case in cases]
    places = ((cases.index(view.case or ""), view) for view in own)
    return {place: ShownFigure(view, f"network-{place + 1}", drawn=place < MOST_DRAWN) for place, view in places}


def list_parts(reader: str) -> Mapping[str, tuple[str, ...]]:
    """Parts of the page and their sections, in the order for a reader."""
    if reader != PAPER:
        return PARTS
    first = {"choice": (*PARTS["choice"], *OF_PAPER), "belief": PARTS["belief"]}
    rest = tuple(name for name in PARTS["appendix"] if name not in OF_PAPER)
    return first | {name: own for name, own in PARTS.items() if name not in first} | {"appendix": rest}


def leave_figures(figures: Sequence[FigureView], cases: int, reader: str) -> tuple[FigureView, ...]:
    """Figures for a reader: those of the paper compare components, and are left out where there are few."""
    if cases >= FEW or reader in (PAPER, FULL):
        return tuple(figures)
    return tuple(one for one in figures if not any(fnmatchcase(one.name, paper) for paper in PAPER_FIGURES))


def find_section(view: TableView | FigureView) -> str:
    """The section that takes a table or a figure."""
    homes = (home for home in SECTIONS if _rank(view, home) is not None)
    return next(homes, ANYTHING_ELSE)


def _take_each(views: Sequence[View]) -> dict[str, list[View]]:
    """Each section's views: in the order of its patterns, then as given."""
    found: dict[str, list[View]] = {name: [] for name in SECTIONS}
    for view in views:
        found[find_section(view)].append(view)
    for name, own in found.items():
        own.sort(key=lambda view: _place(view, name))
    return found


def _place(view: TableView | FigureView, section: str) -> int:
    rank = _rank(view, section)
    return len(SECTIONS) if rank is None else rank


def _rank(view: TableView | FigureView, section: str) -> int | None:
    """The place of the pattern that takes a view; None where none does."""
    home = SECTIONS[section]
    patterns = home.tables if isinstance(view, TableView) else home.figures
    return next((n for n, pattern in enumerate(patterns) if fnmatchcase(view.name, pattern)), None)


def _show_table(view: TableView, number: int) -> ShownTable:
    shown = ShownTable(view, _anchor("table", view.name, number), number, view.name in FOLDED)
    return lay_remarks(shown) if view.name in REMARKED else shown


def _show_figure(view: FigureView, number: int, cases: Sequence[str]) -> ShownFigure:
    late = view.case in cases and cases.index(view.case or "") >= MOST_DRAWN
    return ShownFigure(view, _anchor("figure", view.name, number), number, drawn=not late)


def _anchor(kind: str, name: str, number: int) -> str:
    """A name that came with the program, or a number: what data named is no anchor."""
    return f"{kind}-{name}" if re.fullmatch(r"[a-z]+([-_][a-z]+)*", name) else f"{kind}-{number}"


def _cut_table(view: TableView, case: str) -> TableView:
    """The rows of one case, without the columns that its heading has, and those of other fits and states."""
    rows = tuple(replace(row, case=None) for row in view.rows if row.case == case)
    gone = {
        column.key
        for n, column in enumerate(view.columns)
        if (column.key in OF_A_MAXIMUM or column.key.startswith(SHARES))
        and all(row.cells[n].value is None for row in rows)
    }
    own = replace(view, rows=rows)
    if isinstance(own, EstimateTable) and not has_intervals(own):
        own = replace(own, note=own.plain_note)
    return leave_columns(own, {"case", "method", *FLAGS, *gone})
