"""Table of what repairs change: members at the threshold or worse by year, without them and with them."""

from __future__ import annotations

from rekka.core.columns import rows_of
from rekka.fleet.what_if import WhatIf, WhatIfTotal
from rekka.report.tables.cells import FORMS
from rekka.report.text import Real, Words, show_level, show_range
from rekka.report.views import Cell, Column, Row, TableView

COUNTS, TENTHS = FORMS["members"], FORMS["one_decimal"]
ENDS = ("low_end", "high_end")


def tabulate_what_if(found: WhatIf, words: Words) -> TableView:
    """A row for each year that is shown; in files every interval has two columns."""
    level = show_level(found.eligible.options.level)
    title = words("terminal.what_if.title", threshold=found.name_threshold(words))
    rows = tuple(
        _make_row(row, found, words) for row in rows_of(WhatIfTotal, found.total) if row.year in found.years
    )
    return TableView("whatif", title, tuple(_list_columns(words, level)), rows, words("terminal.what_if.note"))


def _list_columns(words: Words, level: str) -> list[Column]:
    names = ("year", "without", "with", "avoided", "parameters", "prediction")
    heads = {name: words(f"terminal.what_if.column.{name}", level=level) for name in names}
    found = [Column("year", heads["year"])]
    found += [Column(name, heads[name], "number", form=COUNTS.workbook) for name in ("without", "with")]
    found.append(Column("avoided", heads["avoided"], "number", form=TENTHS.workbook))
    for name in ("parameters", "prediction"):
        parts = tuple(
            Column(f"{name}_{end}", words(f"column.{end}", what=heads[name]), "number", form=TENTHS.workbook)
            for end in ENDS
        )
        found.append(Column(name, heads[name], "number", parts=parts))
    return found


def _make_row(row: WhatIfTotal, found: WhatIf, words: Words) -> Row:
    avoided = found.avoided(row.year)
    year = (row.date or row).year
    numbers = [Cell(year, str(year))]
    numbers += [Cell(one, COUNTS.show(one)) for one in (row.expected, row.repaired)]
    numbers.append(Cell(avoided["avoided"], TENTHS.show(avoided["avoided"])))
    for name, form in (("avoided", TENTHS), ("avoided_predicted", FORMS["count"])):
        ends: tuple[Real, Real] = (avoided[f"{name}_low"], avoided[f"{name}_high"])
        numbers.append(Cell(ends[0], show_range(*ends, form.show, words), parts=ends))
    return Row(tuple(numbers))
