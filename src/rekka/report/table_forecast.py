"""The tables of a typical member's future: by year, until a state, from state to state, what changes do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rekka.report.document import Document, ModelPart
from rekka.report.forecast_parts import CaseForecast, MatrixPart
from rekka.report.numbers import MINUS
from rekka.report.table_cells import (
    COUNT,
    FIGURE,
    FINE_SHARE,
    STATE,
    YEARS,
    YEARS_DIFFERENCE,
    Compound,
    CompoundCell,
    Field,
    Fields,
    build_estimates,
    optional,
)
from rekka.report.views import Cell, Column, TableView
from rekka.report.words import Words, join_sentences

EVERY = 5  # years between the rows of a table; the document has every year


def tabulate_forecast(document: Document, words: Words) -> TableView:
    """A typical member from state 1 on, every five years."""
    make = Fields(words)
    states = range(1, _count_states(document) + 1)
    fields = (
        make.case(),
        make.method(),
        *_flag(make, document),
        make.number("year", COUNT, unit="years"),
        make.estimate("expected_state", STATE, ("expected", "expected_low", "expected_high")),
        optional(make.span("predicted_states", COUNT, ("predicted_low", "predicted_high"))),
        make.number("threshold", COUNT),
        make.estimate("reached", FINE_SHARE, ("reached", "reached_low", "reached_high")),
        *(
            optional(make.number("share_of_state", FINE_SHARE, _share_getter(state), state=state))
            for state in states
        ),
        make.mark("outside"),
    )
    return _conclude("forecast", fields, _list_years(document), document, words)


def tabulate_passages(document: Document, words: Words) -> TableView:
    """Years until the threshold from each state, of the models that were chosen."""
    make = Fields(words)
    fields = (
        make.case(),
        make.method(),
        *(one for one in _flag(make, document) if one.column.key != "is_chosen"),
        make.number("threshold", COUNT),
        make.number("state_now", COUNT, lambda one: one.start),
        make.estimate("median_until", YEARS, ("median", "median_low", "median_high"), unit="years"),
        optional(make.span("member_until", YEARS, ("predicted_low", "predicted_high"), unit="years")),
        make.estimate("mean_until", YEARS, ("mean", "mean_low", "mean_high"), unit="years"),
    )
    items = (
        _join(model, one, threshold=found.threshold)
        for model, found in _each(document)
        if model.chosen
        for one in found.passages
    )
    return _conclude("passages", fields, items, document, words)


def tabulate_matrices(document: Document, words: Words) -> TableView:
    """From every state to every state, in one year and in five."""
    make = Fields(words)
    states = range(1, _count_states(document) + 1)
    fields = (
        make.case(),
        make.method(),
        *_flag(make, document),
        make.number("period", COUNT, lambda one: one.years, unit="years"),
        make.number("state_now", COUNT, lambda one: one.start),
        *(
            optional(make.estimate("to_state", FINE_SHARE, (f"p_{k}", f"low_{k}", f"high_{k}"), state=k))
            for k in states
        ),
    )
    items = (
        _join(model, row)
        for model, found in _each(document)
        for matrix in found.matrices
        for row in _list_rows(matrix, len(states))
    )
    return _conclude("matrices", fields, items, document, words)


def tabulate_effects(document: Document, words: Words) -> TableView:
    """What a change of one covariate does to the median years until the threshold."""
    make = Fields(words)

    def years(name: str) -> tuple[str, str, str]:
        return f"years_{name}", f"years_{name}_low", f"years_{name}_high"

    fields = (
        make.case(),
        make.method(),
        *_flag(make, document),
        make.text("covariate"),
        _change(make),
        make.number("value_before", FIGURE, lambda one: one.before),
        make.number("value_after", FIGURE, lambda one: one.after),
        make.estimate("years_before", YEARS, years("before"), unit="years"),
        make.estimate("years_after", YEARS, years("after"), unit="years"),
        make.estimate(
            "years_difference",
            YEARS_DIFFERENCE,
            ("difference", "difference_low", "difference_high"),
            unit="years",
        ),
    )
    items = (_join(model, one) for model, found in _each(document) for one in found.effects)
    return _conclude("effects", fields, items, document, words)


def _conclude(
    name: str, fields: tuple[Field, ...], items: Iterator[Any], document: Document, words: Words
) -> TableView:
    """The table; where a model is not certified, its note says so first."""
    table = build_estimates(name, fields, items, words, document.study.confidence)
    if all(model.certified for model, _ in _each(document)):
        return table
    mark = words("table.uncertified.note")
    return replace(
        table,
        note=join_sentences((mark, table.note), words),
        plain_note=join_sentences((mark, table.plain_note), words),
    )


def _each(document: Document) -> Iterator[tuple[ModelPart, CaseForecast]]:
    for model in document.models:
        if model.forecast is not None:
            yield model, model.forecast


def _flag(make: Fields, document: Document) -> tuple[Field, ...]:
    """Whether a model was chosen and is certified: columns that are there where one is not."""
    found = []
    if not all(model.chosen for model, _ in _each(document)):
        found.append(make.mark("is_chosen"))
    if not all(model.certified for model, _ in _each(document)):
        found.append(make.mark("certified"))
    return tuple(found)


def _join(model: ModelPart, part: Any, **more: Any) -> SimpleNamespace:
    """A part with the model that it is of."""
    of = {"case": model.case, "method": model.method, "is_chosen": model.chosen, "certified": model.certified}
    return SimpleNamespace(**dict(part), **more, **of)


def _count_states(document: Document) -> int:
    return max((len(found.probability[0]) for _, found in _each(document)), default=0)


def _share_getter(state: int) -> Callable[[Any], float | None]:
    return lambda one: one.probability[state - 1] if state <= len(one.probability) else None


def _list_years(document: Document) -> Iterator[SimpleNamespace]:
    ends = (f"{name}{end}" for name in ("expected", "reached") for end in ("", "_low", "_high"))
    names = ("probability", *ends, "predicted_low", "predicted_high", "outside")
    for model, found in _each(document):
        for place in range(0, len(found.years), EVERY):
            row = {name: getattr(found, name)[place] for name in names}
            yield _join(model, row, year=found.years[place], threshold=found.threshold)


def _list_rows(matrix: MatrixPart, states: int) -> Iterator[dict[str, Any]]:
    """A row for each state now; of states that a case does not have there are no numbers."""
    for start, (middle, low, high) in enumerate(
        zip(matrix.probability, matrix.low, matrix.high, strict=True), start=1
    ):
        row: dict[str, Any] = {"years": matrix.years, "start": start}
        for k in range(states):
            there = start - 1 <= k < len(middle)  # condition only worsens
            row[f"p_{k + 1}"] = middle[k] if there else None
            row[f"low_{k + 1}"] = low[k] if there else None
            row[f"high_{k + 1}"] = high[k] if there else None
        yield row


def show_change(amount: float, *, times: bool) -> str:
    """'+10', or a factor with the sign of multiplication."""
    return f"\u00d7{amount:,.10g}" if times else f"{amount:+,.10g}".replace("-", MINUS)


def _change(make: Fields) -> Field:
    """'+10' or 'x2' for a person; for a file the number, and whether it is added or multiplied by."""
    title = make.words("column.change")
    parts = (
        Column("change", title, "number", form=FIGURE.workbook),
        Column("change_kind", make.words("column.change_kind")),
    )

    def cell(one: Any) -> Cell:
        kind = "times" if one.times else "plus"
        return CompoundCell(one.amount, show_change(one.amount, times=one.times), parts=(one.amount, kind))

    return Field(Compound("change", title, parts=parts), cell)
