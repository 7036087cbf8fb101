"""Tables of fitted models and forecasts: calibration, stability, coefficients, typical members, the network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Annotated, Any

from pydantic import BaseModel

from rekka.core.columns import FineShare, Shown
from rekka.report import text as numbers
from rekka.report.document import (
    NOT_YET,
    AsidePart,
    CalibrationPart,
    CaseForecast,
    CoefficientPart,
    CountPart,
    Document,
    EffectPart,
    MatrixPart,
    ModelPart,
    NetworkPart,
    NetworkYear,
    PassagePart,
    RatioPart,
    RiskPart,
    SharePart,
    YearsPart,
)
from rekka.report.tables.cells import (
    FORMS,
    Field,
    Fields,
    Table,
    estimate,
    explain_penalised,
    join_row,
    optional,
    sentence_cell,
    span,
    special,
    text_cell,
)
from rekka.report.text import MINUS, MISSING, Words, name_method
from rekka.report.views import Cell, Column, TableView
from rekka.study.tables import TrialRow

NATIVE = "native"
INTERCEPT = "intercept"
TYPICAL_DIGITS = 4  # of a covariate
OF_NETWORK = ("state_seen",)  # columns of ratings as the inventory calls them
EVERY = 5  # years between the rows of a table; the document has every year


FINE = Shown("fine_share")


class ForecastYear(BaseModel):
    """A typical member from state 1 on, so many years from now."""

    year: Annotated[float, Shown("count", "years")]
    threshold: int
    expected: Annotated[float, Shown("two_decimals")]
    reached: FineShare
    predicted_low: int | None
    outside: bool


class CalibrationCount(CountPart):
    """Rows that left a state, or ended in one, and which model expected how many of them."""

    counted: Annotated[str, Shown(terms="counted")]


def find_units(document: Document, words: Words) -> dict[str, str]:
    """The unit of each covariate; empty where the table alone knows it."""
    return {one.name: words(f"unit.{one.unit}") if one.unit else "" for one in document.study.covariates}


def show_step(step: float, unit: str, words: Words) -> str:
    """'1,000 vehicles/day', or the number alone where the table alone knows the unit."""
    figure = f"{step:,.10g}"
    return words("cell.step", figure=figure, unit=unit) if unit else figure


def show_change(amount: float, *, times: bool) -> str:
    """'+10', or a factor with the sign of multiplication."""
    return f"\u00d7{amount:,.10g}" if times else f"{amount:+,.10g}".replace("-", MINUS)


def _step(make: Fields) -> Field:
    """'10 years' for a person; the number and the unit for a file."""
    units = find_units(make.document, make.words)

    def cell(one: Any) -> Cell:
        if one.covariate in one.references:
            instead = make.words("cell.instead", level=one.references[one.covariate])
            return Cell(one.step, instead, parts=(one.step, instead))
        unit = units.get(one.covariate, "")
        return Cell(one.step, show_step(one.step, unit, make.words), parts=(one.step, unit or None))

    parts = (make.column("step", "number", "", "figure"), make.column("unit"))
    return Field(replace(make.column("step"), parts=parts), cell)


def _or_level(name: str, level: str) -> Callable[[Fields], Field]:
    """A value of a covariate: its number, or of a category the level; a file has the number."""

    def make(fields: Fields) -> Field:
        field = fields.read(name)

        def cell(one: Any) -> Cell:
            found = field.cell(one)
            return found if getattr(one, level) is None else replace(found, text=getattr(one, level))

        return replace(field, cell=cell)

    return make


def _change(make: Fields) -> Field:
    """'+10' or 'x2' for a person; for a file the number, and whether it is added or multiplied by."""

    def cell(one: Any) -> Cell:
        if one.level is not None:
            change = make.words("cell.level", level=one.level, instead=one.instead)
            return Cell(change, change, parts=(None, change))
        kind = "times" if one.times else "plus"
        return Cell(one.amount, show_change(one.amount, times=one.times), parts=(one.amount, kind))

    parts = (make.column("change", "number", "", "figure"), make.column("change_kind"))
    return Field(replace(make.column("change"), parts=parts), cell)


def _per(make: Fields) -> Field:
    """Unit of a coefficient's covariate, or that it was transformed."""
    units = find_units(make.document, make.words)

    def cell(one: Any) -> Cell:
        if one.term == INTERCEPT:
            return Cell(None, MISSING)
        if one.scale is not None and one.scale != NATIVE:
            return Cell(one.scale, make.words("cell.transformed", method=name_method(one.scale, make.words)))
        if one.term in one.references:
            instead = make.words("cell.instead", level=one.references[one.term])
            return Cell(instead, instead)
        unit = units.get(one.term, "")
        return Cell(unit or None, unit or make.words("cell.own_unit"))

    return Field(make.column("per"), cell)


def _term_cell(one: Any, words: Words) -> Cell:
    return Cell(one.term, words("term.intercept") if one.term == INTERCEPT else words.covariate(one.term))


def _typical(make: Fields) -> Iterator[Field]:
    """A column for each covariate."""
    words = make.words
    for name, unit in find_units(make.document, words).items():
        yield Field(
            Column(name, words.covariate(name), "number", unit, FORMS["figure"].workbook),
            partial(_typical_cell, name=name),
        )


def rating(key: str, attribute: str = "", *, worse: bool = False) -> Callable[[Fields], Field]:
    """A column of ratings by their names, or with ``worse`` of them and all worse ones; for a file numbers too.

    Where ratings are numbers from 1, it is these.
    """
    read = attrgetter(attribute or key)

    def make(fields: Fields) -> Field:
        document, words = fields.document, fields.words
        ratings = (
            document.ratings if document.network is None or key not in OF_NETWORK else document.network.ratings
        )
        own = fields.column(key, "number", "", "count")
        if ratings.numbered:
            return Field(own, lambda one: Cell(read(one), MISSING if read(one) is None else str(read(one))))
        title = words("column.label_of", what=own.title)
        parts = (own, replace(fields.column(key), key=f"{key}_label", title=title))

        def cell(one: Any) -> Cell:
            state = read(one)
            if state is None:
                return Cell(None, MISSING, parts=(None, None))
            name = ratings.or_worse(state, words) if worse else ratings.name(state, words)
            return Cell(state, name, parts=(state, ratings.labels[state - 1]))

        return Field(replace(fields.column(key), parts=parts), cell)

    return make


def _typical_cell(model: ModelPart, name: str) -> Cell:
    if name in model.levels:
        return Cell(model.levels[name], model.levels[name])
    value = model.typical.get(name)
    return Cell(value, numbers.show_figure(value, TYPICAL_DIGITS))


def _each(name: str) -> Callable[[Document], Iterator[SimpleNamespace]]:
    """The parts of every model, each with what it is of."""
    return lambda document: (_join(model, part) for model in document.models for part in getattr(model, name))


def _join(model: ModelPart, part: Any, **more: Any) -> SimpleNamespace:
    """A part with the model that it is of."""
    own = {name: getattr(model, name) for name in ("case", "method", "chosen", "certified", "scale", "references")}
    return join_row(part, **more, **own)


def _each_forecast(document: Document) -> Iterator[tuple[ModelPart, CaseForecast]]:
    return ((model, model.forecast) for model in document.models if model.forecast is not None)


def _flag(*names: str) -> Callable[[Fields], Iterator[Field]]:
    """Whether a model was chosen, is certified: columns that are there where one is not."""

    def make(fields: Fields) -> Iterator[Field]:
        for name in names:
            if not all(getattr(model, name.rpartition("=")[2]) for model, _ in _each_forecast(fields.document)):
                yield fields.read(name)

    return make


def _is_certified(document: Document) -> bool:
    return all(model.certified for model, _ in _each_forecast(document))


def _confidence(document: Document) -> float:
    return document.study.confidence


def _count_states(document: Document) -> int:
    return max((len(found.probability[0]) for _, found in _each_forecast(document)), default=0)


def _shares(make: Fields) -> Iterator[Field]:
    """The probability of each state."""
    for state in range(1, _count_states(make.document) + 1):
        name = make.document.ratings.phrase(state, make.words)
        made = make.number("share_of_state", FINE.form, partial(_take_state, "probability", state), rating=name)
        yield replace(_rename(made, f"share_of_state_{state}"), optional=True)


def _rename(field: Field, key: str) -> Field:
    """The field under another key: columns of ratings are known by their numbers, whatever their headings."""
    parts = tuple(replace(part, key=part.key.replace(field.column.key, key)) for part in field.column.parts)
    return replace(field, column=replace(field.column, key=key, parts=parts))


def _take_state(name: str, state: int, one: Any) -> float | None:
    values = getattr(one, name)
    return values[state - 1] if state <= len(values) else None


def _to_states(make: Fields) -> Iterator[Field]:
    """The probability of going to each state."""
    for state in range(1, _count_states(make.document) + 1):
        name = make.document.ratings.phrase(state, make.words)
        made = optional(estimate("to_state", f"to_{state}", by=FINE, rating=name))(make)
        yield _rename(made, f"to_state_{state}")


def _list_years(document: Document) -> Iterator[SimpleNamespace]:
    ends = (f"{name}{end}" for name in ("expected", "reached") for end in ("", "_low", "_high"))
    names = ("probability", *ends, "predicted_low", "predicted_high", "outside")
    for model, found in _each_forecast(document):
        for place in range(0, len(found.years), EVERY):
            row = {name: getattr(found, name)[place] for name in names}
            for name in ("expected", "expected_low", "expected_high"):
                row[name] = None if row[name] is None else document.ratings.mean(row[name])
            low, high = row["expected_low"], row["expected_high"]
            if low is not None and high is not None and low > high:  # of numbers that fall
                row["expected_low"], row["expected_high"] = high, low
            yield _join(model, row, year=found.years[place], threshold=found.threshold)


def _list_passages(document: Document) -> Iterator[SimpleNamespace]:
    for model, found in _each_forecast(document):
        if model.chosen:
            yield from (_join(model, one, threshold=found.threshold) for one in found.passages)


def _list_matrices(document: Document) -> Iterator[SimpleNamespace]:
    """A row for each state now; there are no numbers of states that a case does not have, or that are better."""
    states = _count_states(document)
    for model, found in _each_forecast(document):
        for matrix in found.matrices:
            for start, values in enumerate(zip(matrix.probability, matrix.low, matrix.high, strict=True)):
                row: dict[str, Any] = {"years": matrix.years, "start": start + 1}
                for end, some in zip(("", "_low", "_high"), values, strict=True):
                    there = range(start, len(values[0]))
                    row |= {f"to_{k + 1}{end}": some[k] if k in there else None for k in range(states)}
                yield _join(model, row)


def _list_counts(document: Document) -> Iterator[SimpleNamespace]:
    for one in document.calibration:
        for kind, parts in (("left", one.by_start), ("ended", one.by_end)):
            for part in parts:
                yield join_row(part, preset=one.preset, case=one.case, method=one.method, counted=kind)


def _list_certified(document: Document) -> list[TrialRow]:
    """The trials of the models, where they have a certificate."""
    trials = {(one.case, one.preset, one.method): one for one in document.trials}
    found = (trials.get((one.case, one.preset, one.method)) for one in document.models)
    return [one for one in found if one and one.verdict]


def _note_models(document: Document, words: Words) -> Iterator[str]:
    open_cases = [one.reason == NOT_YET for one in document.answers if one.method is None]
    yield words("table.models.note")
    if not all(open_cases):
        yield words("table.models.unchosen")
    if any(open_cases):
        yield words("table.models.later")


def _note_certificates(document: Document, words: Words) -> Iterator[str]:
    yield words("table.certificates.note")
    yield explain_penalised((one.method for one in _list_certified(document)), words)


def _title_years(table: TableView, document: Document, words: Words) -> TableView:
    return table if document.study.covariates else replace(table, title=words("table.years.plain"))


def _network_years(*, of_cases: bool) -> Callable[[Document], list[NetworkYear]]:
    """Every fifth year and the last, of all cases together, or of each where there are several."""

    def take(document: Document) -> list[NetworkYear]:
        network = document.network
        years = [one for one in network.years if (one.case is not None) == of_cases] if network else []
        several = not of_cases or len({one.case for one in years}) > 1
        return [
            one for one in years if several and network and one.year in (network.horizon, *range(0, 999, EVERY))
        ]

    return take


def _tabulate_network(name: str, *columns: str, of_cases: bool) -> Table:
    rows = _network_years(of_cases=of_cases)

    def states(make: Fields) -> Iterator[Field]:
        for state in range(1, max((len(one.expected) for one in rows(make.document)), default=0) + 1):
            network = make.document.network
            name = (network or make.document).ratings.phrase(state, make.words)
            made = make.number("members_in_state", "members", partial(_take_state, "expected", state), rating=name)
            yield _rename(made, f"members_in_state_{state}")
        if not all(one.certified for one in rows(make.document)):
            yield make.read("certified")

    return Table(
        name, NetworkYear,
        *columns,
        "year", optional(rating("threshold", worse=True)),
        estimate("members_reached", "reached", ends=""),
        optional(span("members_predicted", "predicted")),
        "members",
        states,
        rows=rows, level=_network_level, certified=_is_network_certified,
    )  # fmt: skip


def _network_level(document: Document) -> float:
    """A forecast of an inventory has a level of its own."""
    return document.study.confidence if document.network is None else document.network.level


def _is_network_certified(document: Document) -> bool:
    return document.network is None or document.network.certified


def _reached_in(make: Fields) -> Field:
    soon = 0 if make.document.network is None else make.document.network.soon
    return make.number("reached_in", "fine_share", attrgetter("reached"), years=soon)


def _predicted(make: Fields) -> Field:
    """Ratings between which one member will be: 'b to d'; for a file the numbers of both."""
    made, ratings, words = span("predicted_states", "predicted")(make), make.document.ratings, make.words
    if ratings.numbered:
        return made

    def cell(one: Any) -> Cell:
        low, high = one.predicted_low, one.predicted_high
        if low is None or high is None:
            return made.cell(one)
        first, last = ratings.name(low, words), ratings.name(high, words)
        text = first if low == high else words("number.range", low=first, high=last)
        return replace(made.cell(one), text=text)

    return replace(made, cell=cell)


CALIBRATION = Table(
    "calibration", CalibrationPart,
    "preset case method rows moves_observed moves_expected p_value at_floor",
    optional(special("causes", lambda one, words: sentence_cell(" ".join(one.causes), words))),
    rows=lambda document: document.calibration,
)  # fmt: skip
COUNTS = Table(
    "calibration_counts", (CalibrationCount, CalibrationPart),
    "preset case method counted", rating("state"), "observed expected residual",
    rows=_list_counts,
)  # fmt: skip
STABILITY = Table(
    "stability", SharePart,
    "preset case kind method draws chosen_share=chosen kept_share=kept none_share=none",
    estimate("certified_share", "certified"),
    estimate("accuracy", "accuracy_mean", "accuracy"),
    estimate("log_loss", "log_loss_mean", "log_loss"),
    rows=lambda document: document.stability.shares if document.stability else (),
    strong=lambda one: one.in_study,
)  # fmt: skip
MODELS = Table(
    "models", ModelPart,
    "case method is_chosen=chosen rows n_states log_likelihood aic bic errors? no_figures=reason?",
    rows=lambda document: document.models, strong=lambda one: one.chosen, note=_note_models,
)  # fmt: skip
CERTIFICATES = Table(
    "certificates", TrialRow,
    "case method verdict maximum_exists decrement starts shortfall positive_definite condition_number",
    "weakest_direction plateau_train plateau_golden?",
    rows=_list_certified, strong=lambda one: one.selected, note=_note_certificates,
)  # fmt: skip
COEFFICIENTS = Table(
    "coefficients", (CoefficientPart, ModelPart),
    "case method", rating("leaving", "state"), special("term", _term_cell), _per,
    estimate("estimate", ends=""), "se? p?",
    rows=_each("coefficients"), level=_confidence,
)  # fmt: skip
RATIOS = Table(
    "ratios", (RatioPart, ModelPart),
    "case method", rating("leaving", "state"), "covariate", _step, estimate("hazard_ratio", "ratio", ends=""),
    rows=_each("ratios"), level=_confidence,
)  # fmt: skip
YEARS = Table(
    "years", (YearsPart, ModelPart),
    "case method", rating("in_state", "state"), estimate("hazard"), estimate("mean_years", "years"),
    rows=_each("years"), level=_confidence, finish=_title_years,
)  # fmt: skip
TYPICAL = Table(
    "typical", ModelPart, "case", _typical,
    rows=lambda document: (one for one in document.models if one.typical or one.levels),
)  # fmt: skip
NETWORK = _tabulate_network("network", of_cases=False)
NETWORK_CASES = _tabulate_network("network_cases", "case", of_cases=True)
RISKS = Table(
    "risks", RiskPart,
    "rank bridge case member? seen?", rating("state_seen", "state"), rating("threshold", worse=True),
    _reached_in,
    estimate("mean_until", "mean"),
    "median_until=median calendar? remark?",
    rows=lambda document: document.network.risks if document.network else (),
    level=_network_level, certified=_is_network_certified,
)  # fmt: skip
UNSEEN = Table(
    "unseen", RiskPart,
    "bridge case member? seen", rating("state_seen", "state"), rating("threshold", worse=True),
    _reached_in,
    estimate("mean_until", "mean"),
    "median_until=median calendar? remark?",
    rows=lambda document: document.network.long_unseen if document.network else (),
    level=_network_level, certified=_is_network_certified,
)  # fmt: skip
ASIDE = Table(
    "set_aside", AsidePart,
    "aside_kind=kind case? reason aside_count=count what",
    rows=lambda document: document.network.aside if document.network else (),
)  # fmt: skip
PASSAGES = Table(
    "passages", (PassagePart, ForecastYear, ModelPart),
    "case method", _flag("certified"), rating("threshold", worse=True), rating("state_now", "start"),
    estimate("median_until", "median"),
    optional(span("member_until", "predicted")),
    estimate("mean_until", "mean"),
    rows=_list_passages, level=_confidence, certified=_is_certified,
)  # fmt: skip
FORECAST = Table(
    "forecast", (ForecastYear, ModelPart),
    "case method", _flag("is_chosen=chosen", "certified"), "year",
    estimate("expected_state", "expected"),
    optional(_predicted),
    rating("threshold", worse=True),
    estimate("reached"),
    _shares,
    "outside",
    rows=_list_years, level=_confidence, certified=_is_certified,
)  # fmt: skip
EFFECTS = Table(
    "effects", (EffectPart, ModelPart),
    "case method", _flag("is_chosen=chosen", "certified"), "covariate",
    _change,
    _or_level("value_before=before", "instead"), _or_level("value_after=after", "level"),
    estimate("years_before"),
    estimate("years_after"),
    estimate("years_difference", "difference"),
    rows=lambda document: (_join(one, part) for one, found in _each_forecast(document) for part in found.effects),
    level=_confidence, certified=_is_certified,
)  # fmt: skip
MATRICES = Table(
    "matrices", (MatrixPart, PassagePart, ModelPart),
    "case method", _flag("is_chosen=chosen", "certified"), "period=years", rating("state_now", "start"),
    _to_states,
    rows=_list_matrices, level=_confidence, certified=_is_certified,
)  # fmt: skip


def tabulate_first(document: Document, members: Iterable[Any], words: Words, name: str = "first") -> TableView:
    """Members with their rating, its chance soon, and the year in which half of such members are there."""
    listed = list(members)
    dated = any(one.calendar is not None for one in listed)
    soon = 0 if document.network is None else document.network.soon

    def chance(make: Fields) -> Field:
        return make.number("chance_in", "fine_share", attrgetter("reached"), years=soon)

    table = Table(
        name, RiskPart,
        "bridge", *(["case"] if len(document.cases) > 1 else []),
        optional(special("member", lambda one, _: text_cell(one.member))),
        special("rating", lambda one, _: text_cell(one.rating), "state_seen"),
        chance, "expected_year=calendar?", *([] if dated else ["median_until=median"]), "seen?",
        optional(special("remark", lambda one, _: text_cell(one.remark))),
        rows=lambda _: listed,
    )  # fmt: skip
    return table.view(document, words)


def list_members(network: NetworkPart, tab: int | None, most: int, words: Words) -> Iterator[SimpleNamespace]:
    """The first members of a tab, or of all, as rows of a table."""
    part = network.every
    assert part is not None
    places = [place for place, own in enumerate(part.tab) if tab in (None, own)]
    for place in places[:most]:
        yield SimpleNamespace(
            bridge=part.bridge[place],
            case=part.cases[part.case[place]],
            member=part.member[place] if part.member else None,
            rating=network.ratings.name(part.state[place], words),
            reached=part.soon[place],
            calendar=part.calendar[place],
            median=part.median[place],
            seen=part.seen[place],
            remark=None,
        )
