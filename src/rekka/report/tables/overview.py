"""Tables of the first screen and of backtests: components with counts, years and trust; later visits by year."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace

from rekka.report import text as numbers
from rekka.report.document import BacktestPart, BacktestYear, Document
from rekka.report.overview import ComponentRow
from rekka.report.tables.cells import FORMS, Field, Fields, Table, optional, span
from rekka.report.tables.models import rating
from rekka.report.text import MISSING, Words
from rekka.report.views import Cell, Column, Row, TableView

MEMBERS, YEARS = FORMS["members"], FORMS["years"]


def tabulate_components(rows: Sequence[ComponentRow], trust: Sequence[str], words: Words) -> TableView:
    """A row for each component: members, how many are at the threshold and will be, years from new, trust.

    ``trust`` has a sentence for each row, empty where nothing is known. Where all components have one threshold it
    stands in the title.
    """
    thresholds = list(dict.fromkeys(row.threshold for row in rows))
    soon = next((row.soon.year for row in rows if row.soon is not None), 0)
    several = len(thresholds) > 1
    columns = [
        Column("case", words("column.case")),
        *([Column("until", words("column.threshold"))] if several else []),
        _count_column("members", words("column.members")),
        _count_column("there_now", words("column.there_now")),
        _count_column("there_soon", words("column.there_soon", years=soon)),
        Column("median_new", words("column.median_new"), "number", words("unit.years"), YEARS.workbook),
        Column("trust", words("column.trust")),
    ]
    body = tuple(
        Row(
            (
                Cell(row.case, words.component(row.case)),
                *([Cell(row.threshold, row.threshold)] if several else []),
                _count_cell(row.members),
                _count_cell(row.there),
                _soon_cell(row, words),
                _years_cell(row, words),
                Cell(None if row.trust is None else row.trust.level, sentence or MISSING),
            ),
            words.component(row.case),
        )
        for row, sentence in zip(rows, trust, strict=True)
    )
    found = [column for column in columns if column.key != "there_soon" or soon]
    keep = [place for place, column in enumerate(columns) if column in found]
    body = tuple(Row(tuple(row.cells[place] for place in keep), row.case) for row in body)
    title = words("table.components.several" if several or not thresholds else "table.components.title",
                  threshold=thresholds[0] if thresholds else "")  # fmt: skip
    return TableView("components", title, tuple(found), body, words("table.components.note"))


def _count_column(key: str, title: str) -> Column:
    return Column(key, title, "number", form=FORMS["count"].workbook)


def _count_cell(count: int | None) -> Cell:
    return Cell(count, numbers.show_count(count))


def _soon_cell(row: ComponentRow, words: Words) -> Cell:
    """The expected number, with the range that the number itself will be in where it is known."""
    one = row.soon
    if one is None:
        return Cell(None, MISSING)
    text = numbers.show_estimate(one.reached, one.predicted_low, one.predicted_high, numbers.show_count, words)
    return Cell(one.reached, text)


def _years_cell(row: ComponentRow, words: Words) -> Cell:
    one = row.passage
    if one is None:
        return Cell(None, MISSING)
    text = numbers.show_estimate(one.median, one.median_low, one.median_high, numbers.show_years, words)
    return Cell(one.median, text)


def _list_backtests(document: Document) -> Iterator[SimpleNamespace]:
    for part in document.backtests:
        own = {name: getattr(part, name) for name in ("case", "until", "threshold")}
        yield from (SimpleNamespace(**dict(one), **own) for one in part.years)


def _visit_year(make: Fields) -> Field:
    made = make.read("year")
    return replace(made, column=replace(made.column, title=make.words("column.visit_year")))


BACKTESTS = Table(
    "backtests", (BacktestYear, BacktestPart),
    "case until", rating("threshold", worse=True), _visit_year, "visits observed expected",
    optional(span("backtest_range", "predicted")),
    rows=_list_backtests,
)  # fmt: skip
