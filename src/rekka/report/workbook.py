"""A report as an Excel workbook: overview for people, members, components, matrices, all tables, run record.

The sheets of members and components have one heading and a row for each, so that they can be filtered and joined;
the matrices stand in blocks, one for each component and period, as management systems take them. Texts are texts
by their type, whatever they look like (``rekka.core.sheets``).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rekka.core.language import say
from rekka.core.sheets import CREATED, new_workbook
from rekka.report.document import Document, MatrixPart, MembersPart, ModelPart, NetworkPart, NetworkYear
from rekka.report.export import CONTENTS, count_places, cut_text, name_sheets, write_contents, write_sheet
from rekka.report.overview import (
    ComponentRow,
    Overview,
    describe_reasons,
    list_components,
    make_overview,
    name_level,
    name_year,
)
from rekka.report.statements import name_study
from rekka.report.tables.cells import FORMS, expand
from rekka.report.text import MISSING, Words, name_method
from rekka.report.views import Cell, Column, Row, Scalar, TableView

MARK = "rekka report"  # in the properties of the file: it is one of ours
PROPERTIES = "docProps/core.xml"
LAST = ("files", "versions")  # tables of the run record
FRONT = ("overview", "members", "components", "matrices")
TABS = ("next", "there", "apart")  # as ``MembersPart.tab`` counts them
WIDTHS = (24, 16, 24, 24, 20, 16, 16, 40)  # columns of the overview, in characters
ACROSS = len(WIDTHS) - 1  # the last column of a sentence
LINE = 15.0  # points
ROOM = sum(WIDTHS)  # characters of a line of a sentence
PLACES = 6  # decimals of a probability in a matrix
DECIMALS = f"0.{'0' * PLACES}"


def render_report(document: Document, tables: Sequence[TableView], words: Words) -> bytes:
    """The whole workbook; the same document gives the same bytes."""
    buffer = io.BytesIO()
    study = [table for table in tables if table.name not in LAST]
    record = [table for table in tables if table.name in LAST]
    views = {"members": tabulate_members(document, words), "components": tabulate_components(document, words)}
    own = [words(f"workbook.sheet.{name}") for name in (*FRONT, "record")]
    sheets = name_sheets([*own, *(table.name for table in (*study, *record))])
    front, last, rest = sheets[: len(FRONT)], sheets[len(FRONT)], sheets[len(own) :]
    with new_workbook(buffer, in_memory=True) as book:
        book.set_properties({"title": cut_text(name_study(document, words)), "comments": MARK, "created": CREATED})
        _write_overview(book, front[0], document, words)
        for name, sheet in zip(FRONT[1:3], front[1:3], strict=True):
            view = views[name]
            write_sheet(book, sheet, view)
        _write_matrices(book, front[3], document, words)
        listed = list(zip(rest, (*study, *record), strict=True))
        write_contents(book, listed)
        for sheet, table in listed:
            write_sheet(book, sheet, expand(table))
        _write_record(book, last, document, words)
    return buffer.getvalue()


def is_workbook(file: Path) -> bool:
    """Whether a file is a workbook of a report, by its properties."""
    try:
        with zipfile.ZipFile(file) as content:
            return MARK.encode() in content.read(PROPERTIES)
    except (OSError, KeyError, zipfile.BadZipFile):
        return False


# Members and components


class _Made(NamedTuple):
    """A column and its values; ``texts`` where a value is not shown by itself."""

    column: Column
    values: Sequence[Scalar]


def _text(title: str, values: Iterable[Scalar]) -> _Made:
    return _Made(Column(title, title), tuple(values))


def _number(title: str, form: str, values: Iterable[Scalar]) -> _Made:
    return _Made(Column(title, title, "number", form=FORMS[form].workbook), tuple(values))


def _tabulate(name: str, title: str, made: Sequence[_Made], cases: Sequence[str]) -> TableView:
    rows = (
        Row(tuple(Cell(value, MISSING if value is None else str(value)) for value in values), case)
        for case, values in zip(cases, zip(*(one.values for one in made), strict=True), strict=True)
    )
    return TableView(name, title, tuple(one.column for one in made), tuple(rows))


def tabulate_members(document: Document, words: Words) -> TableView:
    """A row for each member: rating now, last inspection, risk, expected year, tab, remarks, covariates."""
    title, network = words("workbook.sheet.members"), document.network
    if network is None:
        return TableView("members", title, (Column("case", words("column.case")),), ())
    every = network.every
    if every is None:  # visits without dates: the first members are known
        made = list(_list_risks(network, words))
        return _tabulate("members", title, made, [one.case for one in network.risks])
    return _tabulate("members", title, list(_list_members(network, every, words)), _name_cases(every))


def _list_risks(network: NetworkPart, words: Words) -> Iterator[_Made]:
    """The first members by risk."""
    risks = network.risks
    yield _text(words("column.bridge"), (one.bridge for one in risks))
    yield _text(words("column.member"), (one.member for one in risks))
    yield _text(words("column.case"), (one.case for one in risks))
    yield _text(words("column.state_now"), (network.ratings.name(one.state, words) for one in risks))
    yield _text(words("column.seen"), (one.seen for one in risks))
    yield _number(words("column.reached_in", years=network.soon), "fine_share", (one.reached for one in risks))
    yield _number(words("workbook.column.median"), "years", (one.median for one in risks))
    yield _number(words("workbook.column.calendar"), "year", (one.calendar for one in risks))
    yield _text(words("workbook.column.threshold"), (network.ratings.rated(one.threshold, words) for one in risks))
    yield _text(words("column.remark"), (one.remark for one in risks))


def _name_cases(every: MembersPart) -> list[str]:
    return [every.cases[case] for case in every.case]


def _list_members(network: NetworkPart, every: MembersPart, words: Words) -> Iterator[_Made]:
    ratings = network.ratings
    names = {state: ratings.name(state, words) for state in sorted({*every.state})}
    goals = [ratings.rated(state, words) for state in every.threshold]
    yield _text(words("column.bridge"), every.bridge)
    if every.member:
        yield _text(words("column.member"), every.member)
    yield _text(words("column.case"), _name_cases(every))
    yield _text(words("column.state_now"), (names[state] for state in every.state))
    yield _text(words("column.seen"), every.seen)
    yield _number(words("column.reached_in", years=network.soon), "fine_share", every.soon)
    yield _number(words("workbook.column.median"), "years", every.median)
    yield _number(words("workbook.column.calendar"), "year", every.calendar)
    yield _text(words("workbook.column.threshold"), (goals[case] for case in every.case))
    yield _text(words("workbook.column.tab"), (words(f"workbook.tab.{TABS[tab]}") for tab in every.tab))
    if every.remark:
        said = [words.format(one) for one in every.remarks]
        yield _text(
            words("column.remark"), (words.join((said[one] for one in own), "semicolon") for own in every.remark)
        )
    for name, values in zip(every.covariates, every.values, strict=True):
        is_text = any(isinstance(value, str) for value in values)
        title = words.covariate(name)
        yield _text(title, values) if is_text else _number(title, "figure", values)
    if every.frailty:
        yield _number(words("workbook.column.frailty"), "two_decimals", every.frailty)
    for name in ("latitude", "longitude"):
        if getattr(every, name):
            yield _number(words(f"workbook.column.{name}"), "figure", getattr(every, name))


def tabulate_components(document: Document, words: Words) -> TableView:
    """A row for each component: model, counts with both intervals, years of a new member, trust."""
    rows = list_components(document, words)
    made = list(_list_components(document, rows, words))
    return _tabulate("components", words("workbook.sheet.components"), made, [one.case for one in rows])


def _list_components(document: Document, rows: Sequence[ComponentRow], words: Words) -> Iterator[_Made]:
    used = {one.case: one.method for one in document.answers}
    network = document.network
    later = next((one.soon for one in rows if one.soon is not None), None)
    yield _text(words("column.case"), (one.case for one in rows))
    yield _text(
        words("column.method"),
        (
            name_method(method, words) if (method := used.get(one.case)) else words("workbook.no_model")
            for one in rows
        ),
    )
    if network is not None and later is not None:
        when = name_year(network, later.year, words)
        yield _number(words("column.members"), "count", (one.members for one in rows))
        yield _text(words("workbook.column.threshold"), (one.threshold for one in rows))
        yield _number(words("workbook.column.now"), "count", (one.there for one in rows))
        yield _number(
            words("workbook.column.then", year=when), "members", (_take(one.soon, "reached") for one in rows)
        )
        for name in ("low", "high", "predicted_low", "predicted_high"):
            title = words(f"workbook.column.{name}", year=when)
            yield _number(title, "members", (_take(one.soon, name) for one in rows))
    for name in ("median", "median_low", "median_high", "predicted_low", "predicted_high"):
        title = words(f"workbook.column.new_{name}")
        yield _number(title, "years", (_take(one.passage, name) for one in rows))
    trusts = [one.trust for one in rows]
    yield _text(words("workbook.column.trust"), (name_level(one.level, words) if one else None for one in trusts))
    yield _text(
        words("workbook.column.why"), (words.join(describe_reasons(one, words)) if one else None for one in trusts)
    )


def _take(part: object, name: str) -> float | None:
    """A figure of a part, None where there is no part or it is infinite."""
    value: float | None = None if part is None else getattr(part, name)
    return value


# Sheets that are written cell by cell


class _Sheet:
    """A sheet that is written from the top, a line at a time."""

    def __init__(self, book: Any, name: str) -> None:
        self.page, self.line = book.add_worksheet(name), 0
        plain = {"valign": "top"}
        self.formats = {
            "plain": book.add_format(plain),
            "title": book.add_format(plain | {"bold": True, "font_size": 16}),
            "headline": book.add_format(plain | {"bold": True, "font_size": 13, "text_wrap": True}),
            "wrapped": book.add_format(plain | {"text_wrap": True}),
            "head": book.add_format(plain | {"bold": True, "bottom": 1, "text_wrap": True}),
            "section": book.add_format(plain | {"bold": True, "font_size": 12}),
            "card": book.add_format(plain | {"bold": True, "font_size": 14, "text_wrap": True}),
            "label": book.add_format(plain | {"font_color": "#555555", "text_wrap": True}),
            "link": book.add_format(plain | {"font_color": "blue", "underline": 1}),
            "count": book.add_format(plain | {"num_format": FORMS["count"].workbook}),
            "years": book.add_format(plain | {"num_format": FORMS["years"].workbook}),
            "share": book.add_format(plain | {"num_format": FORMS["share"].workbook}),
            "year": book.add_format(plain | {"num_format": FORMS["year"].workbook}),
            "matrix": book.add_format(plain | {"num_format": DECIMALS}),
        }

    def write(self, values: Sequence[Scalar], form: str = "plain", numbers: Sequence[str] = ()) -> None:
        """A line; ``numbers`` are the formats of its cells from the left."""
        for place, value in enumerate(values):
            own = numbers[place] if place < len(numbers) else form
            if isinstance(value, str):
                self.page.write_string(self.line, place, cut_text(value), self.formats[form])
            elif value is not None:
                self.page.write_number(self.line, place, value, self.formats[own])
        self.line += 1

    def tell(self, text: str, form: str = "wrapped") -> None:
        """A sentence across the columns of the overview."""
        self.page.merge_range(self.line, 0, self.line, ACROSS, "", self.formats[form])
        self.page.write_string(self.line, 0, cut_text(text), self.formats[form])
        wide = 1.4 if form == "headline" else 1.0
        lines = 1 + int(count_places(text) * wide / ROOM)
        self.page.set_row(self.line, LINE * wide * lines + 2)
        self.line += 1

    def skip(self) -> None:
        """An empty line."""
        self.line += 1


def _write_overview(book: Any, name: str, document: Document, words: Words) -> None:
    """The first sheet: headline, trust, what is missing, cards, what to do, components, members first."""
    sheet, made = _Sheet(book, name), make_overview(document, words)
    for place, width in enumerate(WIDTHS):
        sheet.page.set_column(place, place, width)
    sheet.tell(words("page.title", title=name_study(document, words)), "title")
    sheet.tell(words.join(made.facts, "comma"))
    sheet.tell(made.headline, "headline")
    for text in made.notes:
        sheet.tell(text)
    if made.trust:
        sheet.tell(made.trust)
    for text in made.missing:
        sheet.tell(text)
    sheet.skip()
    sheet.write([card.label for card in made.cards], "label")
    sheet.write([card.value for card in made.cards], "card")
    sheet.write([card.detail for card in made.cards], "label")
    _write_actions(sheet, made, words)
    _write_components(sheet, document, words)
    _write_first(sheet, document, made, words)
    sheet.skip()
    every = None if document.network is None else document.network.every
    if every is not None and every.left_out:
        sheet.tell(words("workbook.left_out", members=f"{every.left_out:,}"))
    sheet.page.write_url(
        sheet.line, 0, f"internal:'{CONTENTS}'!A1", sheet.formats["link"], words("workbook.contents")
    )
    sheet.page.set_landscape()
    sheet.page.fit_to_pages(1, 0)
    sheet.page.hide_gridlines(2)


def _write_actions(sheet: _Sheet, made: Overview, words: Words) -> None:
    if made.actions:
        sheet.skip()
        sheet.write([words("workbook.what_to_do")], "section")
    for number, text in enumerate(made.actions, start=1):
        sheet.tell(f"{number} {text}")


def _write_components(sheet: _Sheet, document: Document, words: Words) -> None:
    """A line for each component, as in the overview of the page."""
    rows, network = list_components(document, words), document.network
    used = {one.case: one.method for one in document.answers}
    later: NetworkYear | None = next((one.soon for one in rows if one.soon is not None), None)
    sheet.skip()
    sheet.write([words("workbook.sheet.components")], "section")
    when = words("overview.now") if network is None or later is None else name_year(network, later.year, words)
    heads = [words("column.case"), words("column.method"), words("column.members"), words("workbook.column.now")]
    heads += [words("workbook.column.then", year=when), words("workbook.column.new_median")]
    heads += [words("workbook.column.trust"), words("workbook.column.why")]
    sheet.write(heads, "head")
    for one in rows:
        method = used.get(one.case)
        use = name_method(method, words) if method else words("workbook.no_model")
        level, why = (None, None) if one.trust is None else (
            name_level(one.trust.level, words), describe_reasons(one.trust, words)[0]
        )  # fmt: skip
        figures = (one.members, one.there, _take(one.soon, "reached"), _take(one.passage, "median"))
        numbers = ("plain", "plain", "count", "count", "count", "years")
        sheet.write([one.case, use, *map(_finite, figures), level, why], "wrapped", numbers)


def _write_first(sheet: _Sheet, document: Document, made: Overview, words: Words) -> None:
    """The members to inspect first."""
    network = document.network
    if network is None or not made.first:
        return
    sheet.skip()
    sheet.write([words.format(say("workbook.first", n=len(made.first)))], "section")
    heads = [words(f"column.{name}") for name in ("bridge", "member", "case", "state_now", "seen")]
    heads += [words("column.reached_in", years=network.soon)]
    heads += [words(f"workbook.column.{'calendar' if network.base else 'median'}"), words("column.remark")]
    sheet.write(heads, "head")
    for one in made.first:
        year: float | None = one.calendar if network.base else one.median
        figures = (one.reached, _finite(year))
        numbers = (*["plain"] * 5, "share", "year" if network.base else "years")
        sheet.write(
            [one.bridge, one.member, one.case, one.rating, one.seen, *figures, one.remark], "wrapped", numbers
        )


def _finite(value: float | None) -> float | None:
    """A number that a sheet can have."""
    return None if value is None or value in (float("inf"), float("-inf")) or value != value else value


def _write_matrices(book: Any, name: str, document: Document, words: Words) -> None:
    """A block for each component and period: a row for each rating now, a column for each rating then."""
    sheet = _Sheet(book, name)
    sheet.page.set_column(0, 0, WIDTHS[0])
    sheet.page.set_column(1, max((case.n_states for case in document.cases), default=1), 14)
    blocks = [(model, one) for model in document.models if model.forecast for one in model.forecast.matrices]
    if not blocks:
        sheet.write([words("workbook.no_matrices")])
    for model, one in blocks:
        _write_matrix(sheet, document, model, one, words)


def _write_matrix(sheet: _Sheet, document: Document, model: ModelPart, one: MatrixPart, words: Words) -> None:
    kind = "matrix" if model.chosen else "matrix_unchosen"
    sheet.write([words(f"workbook.{kind}", name=model.case, years=f"{one.years:g}")], "section")
    labels = [document.ratings.name(state, words) for state in range(1, len(one.probability) + 1)]
    sheet.write([words("workbook.from_to"), *labels], "head")
    for label, row in zip(labels, one.probability, strict=True):
        sheet.write([label, *row], "plain", ("plain", *["matrix"] * len(row)))
    sheet.skip()


def _write_record(book: Any, name: str, document: Document, words: Words) -> None:
    """The run record: when, with what, on which machine, and how to repeat it."""
    sheet = _Sheet(book, name)
    sheet.page.set_column(0, 0, 32)
    sheet.page.set_column(1, 1, 90)
    for key, value in _list_record(document, words):
        sheet.write([key, value], "wrapped")
    sheet.page.freeze_panes(0, 1)


def _list_record(document: Document, words: Words) -> Iterator[tuple[str, str]]:
    found, key = document.provenance, "section.provenance"
    unknown = words(f"{key}.unknown")
    yield "rekka", document.rekka
    yield words(f"{key}.begun"), found.begun or unknown
    yield words(f"{key}.command"), found.command or unknown
    yield words(f"{key}.again"), found.again or words(f"{key}.none")
    for name, value in found.seeds.items():
        yield f"{words(f'{key}.seeds')}: {name}", words(f"{key}.none") if value is None else str(value)
    for name, machine in found.machine.items():
        yield f"{words(f'{key}.machine')}: {name}", str(machine)
    yield words(f"{key}.rows"), found.rows_sha256 or unknown
    for number, line in enumerate(found.plan.splitlines()):
        yield (words(f"{key}.plan") if number == 0 else ""), line
