"""Two runs side by side: totals, choices, trust, data and matrices, from the numbers of their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rekka.app.forecasts import find_view
from rekka.app.pages import NotThere, render, words_of
from rekka.app.plan import describe_run
from rekka.app.workspace import Run, Workspace
from rekka.core.language import Words
from rekka.report.document import Document, NetworkYear
from rekka.report.outline import ShownTable
from rekka.report.overview import (
    LATER,
    SOON,
    count_there,
    describe_reasons,
    find_trust,
    make_overview,
    name_level,
    name_threshold,
    name_year,
)
from rekka.report.page import PartWriter, show_matrices
from rekka.report.statements import Wording, name_elements
from rekka.report.text import MISSING, name_method, show_count, show_estimate
from rekka.report.views import Cell, Column, Row, TableView

LETTERS = ("A", "B")  # by which columns name the runs
YEARS = (SOON, LATER)
MATRIX = 0  # place of the matrix of one year
ROWS = ("train", "validation", "golden")
Pair = tuple[Document, Document]
Read = Callable[[Document, str | None], Cell]
Head = tuple[str, str, Read]  # key and title of a column of each run, and its cell


class MatrixPair(NamedTuple):
    """MatrixPair of a component in both runs; blank where one has none."""

    case: str
    id: str
    both: tuple[Markup, Markup]


def list_cases(both: Pair) -> tuple[list[str], list[list[str]]]:
    """Components of both runs, and those of one alone."""
    first, second = ([one.case for one in document.cases] for document in both)
    shared = [case for case in first if case in second]
    return shared, [[case for case in own if case not in shared] for own in (first, second)]


def tabulate_totals(both: Pair, words: Words) -> TableView:
    """Members, and how many are at the threshold or worse: today, soon and later, all components first."""
    heads: list[Head] = [
        ("members", words("column.members"), _count_members),
        ("there", words("column.there_now"), _count_there),
    ]
    heads += [
        (f"year_{year}", _name_year(both, year, words), partial(_count, year=year, words=words)) for year in YEARS
    ]
    return _tabulate("comparison_totals", both, heads, words, all_first=True, kind="number")


def tabulate_choices(both: Pair, words: Words) -> TableView:
    """The choice, the elements of its model, and how far its forecasts can be trusted."""
    heads: list[Head] = [
        ("method", words("column.method"), partial(_name_choice, words=words)),
        ("trust", words("column.trust"), partial(_describe_trust, words=words)),
    ]
    return _tabulate("comparison_choices", both, heads, words)


def tabulate_data(both: Pair, words: Words) -> TableView:
    """Rows of each part, bridges and ratings."""
    names = (*ROWS, "bridges", "n_states")
    heads: list[Head] = [(name, words(f"column.{name}"), partial(_count_rows, name=name)) for name in names]
    return _tabulate("comparison_data", both, heads, words, kind="number")


def _tabulate(
    name: str,
    both: Pair,
    heads: Sequence[Head],
    words: Words,
    *,
    all_first: bool = False,
    kind: Any = "text",
) -> TableView:
    """A row for each component, and for each head a column of either run."""
    shared, alone = list_cases(both)
    cases: list[str | None] = [*shared, *alone[0], *alone[1]]
    cases = [None, *cases] if all_first and len(cases) > 1 else cases
    columns = [Column("case", words("column.case"))]
    columns += [
        Column(f"{key}_{one}", words("app.comparison.of", what=title, run=one), kind)
        for key, title, _ in heads
        for one in LETTERS
    ]
    rows = []
    for case in cases:
        cells = [Cell(case, words("figure.network.all") if case is None else case)]
        cells += [read(document, case) for _, _, read in heads for document in both]
        rows.append(Row(tuple(cells), case))
    return TableView(
        name, words(f"app.comparison.{name.removeprefix('comparison_')}"), tuple(columns), tuple(rows)
    )


def _find_year(document: Document, case: str | None, year: int) -> NetworkYear | None:
    years = () if document.network is None else document.network.of(case)
    return next((one for one in years if one.year == year), None)


def _count_members(document: Document, case: str | None) -> Cell:
    one = _find_year(document, case, 0)
    return Cell(None, MISSING) if one is None else Cell(one.members, show_count(one.members))


def _count_there(document: Document, case: str | None) -> Cell:
    """Members at the threshold or worse when last seen."""
    one, network = _find_year(document, case, 0), document.network
    if one is None or network is None:
        return Cell(None, MISSING)
    return Cell(count_there(network, one), show_count(count_there(network, one)))


def _count(document: Document, case: str | None, year: int, words: Words) -> Cell:
    """Members at the threshold or worse, with the range of the number itself."""
    one = _find_year(document, case, year)
    if one is None:
        return Cell(None, MISSING)
    text = show_estimate(one.reached, one.predicted_low, one.predicted_high, show_count, words)
    return Cell(one.reached, text)


def _name_year(both: Pair, year: int, words: Words) -> str:
    """'2030', or 'in 5 years' where the runs count from different years."""
    names = {name_year(one.network, year, words) for one in both if one.network is not None}
    if len(names) == 1:
        return names.pop()
    return words("overview.in_years", years=year)


def _name_choice(document: Document, case: str | None, words: Words) -> Cell:
    """The method, and the elements of histories of its model, where it has any."""
    answer = next((one for one in document.answers if one.case == case), None)
    model = next((one for one in document.models if one.case == case), None)
    if answer is None or answer.method is None:
        return Cell(None, MISSING)
    parts = [name_method(answer.method, words)]
    if model is not None and model.elements is not None:
        parts.append(name_elements(model.elements, Wording(words)).striptags())
    return Cell(answer.method, words.join(parts, "comma"))


def _describe_trust(document: Document, case: str | None, words: Words) -> Cell:
    one = find_trust(document, case)
    if one is None:
        return Cell(None, MISSING)
    reason = describe_reasons(one, words)[0]
    return Cell(one.level, words("app.comparison.trust", level=name_level(one.level, words), reason=reason))


def _count_rows(document: Document, case: str | None, name: str) -> Cell:
    one = next((one for one in document.cases if one.case == case), None)
    return Cell(None, MISSING) if one is None else Cell(getattr(one, name), show_count(getattr(one, name)))


def pair_matrices(both: Pair, words: Words) -> Iterator[MatrixPair]:
    """MatrixPair of one year of the components that both runs have."""
    shared, _ = list_cases(both)
    write, say = PartWriter(words), Wording(words)
    for number, case in enumerate(shared):
        place = f"component-{number}"
        first, second = (
            write.write_matrix(found[MATRIX], f"{place} {place}-{letter}") if found else Markup("")
            for letter, document in zip(LETTERS, both, strict=True)
            for found in [show_matrices(case, f"{place}-{letter}", document, say)]
        )
        if first or second:
            yield MatrixPair(case, place, (first, second))


def list_warnings(both: Pair, words: Words) -> list[str]:
    """Reasons why the runs are hard to compare: components of one alone, other thresholds, other days."""
    found = []
    _, alone = list_cases(both)
    for letter, cases in zip(LETTERS, alone, strict=True):
        if cases:
            found.append(words("app.comparison.alone", run=letter, names=words.join(cases, "comma")))
    networks = [one.network for one in both]
    for letter, network in zip(LETTERS, networks, strict=True):
        if network is None:
            found.append(words("app.comparison.no_forecast", run=letter))
    first, second = networks
    if first is None or second is None:
        return found
    worse = [name_threshold(one, one.years[0], words) for one in (first, second)]
    if worse[0] != worse[1]:
        found.append(words("app.comparison.thresholds", first=worse[0], second=worse[1]))
    if first.base != second.base:
        found.append(words("app.comparison.days", first=first.base or MISSING, second=second.base or MISSING))
    return found


def show_comparison(request: Request) -> Response:
    """Two runs side by side; a form to choose them where one is not named."""
    workspace: Workspace = request.app.state.workspace
    words, runs = words_of(request), [run for run in workspace.runs() if run.state == "done"]
    known = {run.id: run for run in runs}
    chosen = [request.query_params.get(name, "") for name in ("first", "second")]
    for name in chosen:
        if name and name not in known:
            raise NotThere(f"There is no finished run {name}.")
    values: dict[str, Any] = {"runs": runs, "chosen": chosen, "letters": LETTERS, "pair": None}
    values["describe"] = lambda run: describe_run(run, words)
    if all(chosen):
        values |= _compare([known[name] for name in chosen], workspace, words)
    return render(request, "comparison.html", **values)


def _compare(runs: Sequence[Run], workspace: Workspace, words: Words) -> dict[str, Any]:
    first, second = (find_view(run.study, within=workspace.folder).document for run in runs)
    both, write = (first, second), PartWriter(words)
    tables = (tabulate_totals(both, words), tabulate_choices(both, words), tabulate_data(both, words))
    return {
        "pair": runs,
        "headlines": [make_overview(one, words).headline for one in both],
        "warnings": list_warnings(both, words),
        "tables": [write.write_table(ShownTable(table, table.name.replace("_", "-"))) for table in tables],
        "matrices": list(pair_matrices(both, words)),
    }


ROUTES = [Route("/comparison", show_comparison)]
