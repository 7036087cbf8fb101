"""The tables of fitted models: calibration, stability, certificates, coefficients, ratios, years in each state.

The tables of a typical member's future: by year, until a state, from state to state, what changes do.

The tables of the network: numbers by year and state, the members at greatest risk, who is not forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rekka.report import text as numbers
from rekka.report.document import (
    NOT_YET,
    CaseForecast,
    CoefficientPart,
    Document,
    MatrixPart,
    ModelPart,
    NetworkPart,
    NetworkYear,
    RatioPart,
)
from rekka.report.tables.cells import (
    ACCURACY,
    COUNT,
    FIGURE,
    FINE_SHARE,
    LIKELIHOOD,
    LOSS,
    MEMBERS,
    ONE_DECIMAL,
    PROBABILITY,
    SHARE,
    STATE,
    TINY,
    YEAR,
    YEARS,
    YEARS_DIFFERENCE,
    Compound,
    CompoundCell,
    EstimateTable,
    Field,
    Fields,
    build_estimates,
    build_table,
    optional,
    tell_penalised,
)
from rekka.report.text import MINUS, MISSING, Words, join_sentences, name_method
from rekka.report.views import Cell, Column, Row, TableView

NATIVE = "native"
INTERCEPT = "intercept"
TYPICAL_DIGITS = 4  # of a covariate


def tabulate_calibration(document: Document, words: Words) -> TableView:
    """Whether the forecasts of what was chosen come true on its training rows."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.case(),
        make.method(),
        make.number("rows", COUNT),
        make.number("moves_observed", COUNT, lambda one: sum(part.observed for part in one.by_start)),
        make.number("moves_expected", ONE_DECIMAL, lambda one: sum(part.expected for part in one.by_start)),
        make.number("p_value", PROBABILITY),
        make.number("at_floor", COUNT),
        optional(make.text("causes", lambda one: " ".join(one.causes), english=True)),
    )
    return build_table("calibration", fields, document.calibration, words)


def tabulate_counts(document: Document, words: Words) -> TableView:
    """Rows that left each state, and that ended in each: observed and expected."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.case(),
        make.method(),
        make.coded("counted", "counted"),
        make.number("state", COUNT),
        make.number("observed", COUNT),
        make.number("expected", ONE_DECIMAL),
        make.number("residual", FIGURE),
    )
    items = (
        SimpleNamespace(**dict(part), preset=one.preset, case=one.case, method=one.method, counted=counted)
        for one in document.calibration
        for counted, parts in (("left", one.by_start), ("ended", one.by_end))
        for part in parts
    )
    return build_table("calibration_counts", fields, items, words)


def tabulate_stability(document: Document, words: Words) -> TableView:
    """How often each method is chosen, kept and certified when the study is drawn again."""
    make = Fields(words)
    fields = (
        make.preset(),
        make.case(),
        make.coded("kind", "kind"),
        make.method(strong=lambda one: one.in_study),
        make.number("draws", COUNT),
        make.number("chosen_share", SHARE, lambda one: one.chosen),
        make.number("kept_share", SHARE, lambda one: one.kept),
        make.number("none_share", SHARE, lambda one: one.none),
        make.estimate("certified_share", SHARE, ("certified", "certified_low", "certified_high")),
        make.estimate("accuracy", ACCURACY, ("accuracy_mean", "accuracy_low", "accuracy_high")),
        make.estimate("log_loss", LOSS, ("log_loss_mean", "log_loss_low", "log_loss_high"), unit="nats"),
    )
    shares = document.stability.shares if document.stability else ()
    return build_table("stability", fields, shares, words)


def tabulate_models(document: Document, words: Words) -> TableView:
    """The model of each case: what was chosen, or the default where nothing was."""
    make = Fields(words)
    fields = (
        make.case(),
        make.method(strong=lambda one: one.chosen),
        make.mark("is_chosen", lambda one: one.chosen),
        make.number("rows", COUNT),
        make.number("n_states", COUNT),
        make.number("log_likelihood", LIKELIHOOD, unit="nats"),
        make.number("aic", ONE_DECIMAL),
        make.number("bic", ONE_DECIMAL),
        optional(make.text("errors", english=True)),
        optional(make.text("no_figures", lambda one: one.reason, english=True)),
    )
    open_cases = [one.reason == NOT_YET for one in document.answers if one.method is None]
    told = [words("table.models.note")]
    if not all(open_cases):
        told.append(words("table.models.unchosen"))
    if any(open_cases):
        told.append(words("table.models.later"))
    return build_table("models", fields, document.models, words, note=join_sentences(told, words))


def tabulate_certificates(document: Document, words: Words) -> TableView:
    """Whether each of these models is a maximum of its likelihood, in figures."""
    make = Fields(words)
    trials = {(one.case, one.preset, one.method): one for one in document.trials}
    found = (trials.get((one.case, one.preset, one.method)) for one in document.models)
    fields = (
        make.case(),
        make.method(strong=lambda one: one.selected),
        make.coded("verdict", "certificate"),
        make.mark("maximum_exists"),
        make.number("decrement", TINY, unit="nats"),
        make.number("starts", COUNT),
        make.number("shortfall", TINY, unit="nats"),
        make.mark("positive_definite"),
        make.number("condition_number", FIGURE),
        make.text("weakest_direction", english=True),
        make.number("plateau_train", FINE_SHARE),
        optional(make.number("plateau_golden", FINE_SHARE)),
    )
    items = [one for one in found if one and one.verdict]
    told = (words("table.certificates.note"), tell_penalised((one.method for one in items), words))
    return build_table("certificates", fields, items, words, note=join_sentences(told, words))


def tabulate_coefficients(document: Document, words: Words) -> TableView:
    """Every coefficient of the log hazards, in native units or as transformed."""
    make = Fields(words)
    units = _find_units(document, words)

    def per(one: Any) -> Cell:
        return _name_scale(one.model, one.term, units, words)

    fields = (
        make.case(),
        make.method(),
        make.number("leaving", COUNT, lambda one: one.state),
        Field(Column("term", words("column.term")), lambda one: _name_term(one.term, words)),
        Field(Column("per", words("column.per")), per),
        make.estimate("estimate", FIGURE, ("estimate", "low", "high")),
        optional(make.number("se", FIGURE)),
        optional(make.number("p", PROBABILITY)),
    )
    return build_estimates(
        "coefficients", fields, _each(document, "coefficients"), words, document.study.confidence
    )


def tabulate_ratios(document: Document, words: Words) -> TableView:
    """How the hazard of leaving a state changes with one step more of a covariate."""
    make = Fields(words)
    units = _find_units(document, words)
    fields = (
        make.case(),
        make.method(),
        make.number("leaving", COUNT, lambda one: one.state),
        make.text("covariate"),
        _step(make, units),
        make.estimate("hazard_ratio", FIGURE, ("ratio", "low", "high")),
    )
    return build_estimates("ratios", fields, _each(document, "ratios"), words, document.study.confidence)


def tabulate_years(document: Document, words: Words) -> TableView:
    """Hazard a year and mean years in each state, for typical covariates."""
    make = Fields(words)
    fields = (
        make.case(),
        make.method(),
        make.number("in_state", COUNT, lambda one: one.state),
        make.estimate("hazard", FIGURE, ("hazard", "hazard_low", "hazard_high"), unit="per_year"),
        make.estimate("mean_years", FIGURE, ("years", "years_low", "years_high"), unit="years"),
    )
    table = build_estimates("years", fields, _each(document, "years"), words, document.study.confidence)
    return table if document.study.covariates else replace(table, title=words("table.years.plain"))


def tabulate_typical(document: Document, words: Words) -> TableView:
    """The typical covariates of each case that curves, ratios and years are for."""
    units = _find_units(document, words)
    columns = (
        Column("case", words("column.case")),
        *(Column(name, name, "number", unit, FIGURE.workbook) for name, unit in units.items()),
    )
    rows = tuple(
        Row((Cell(one.case, one.case), *(_typical_cell(one, name) for name in units)), one.case)
        for one in document.models
        if one.typical
    )
    return TableView("typical", words("table.typical.title"), columns, rows, words("table.typical.note"))


def _typical_cell(model: ModelPart, name: str) -> Cell:
    value = model.typical.get(name)
    return Cell(value, numbers.show_figure(value, TYPICAL_DIGITS))


def _each(document: Document, name: str) -> Iterator[Any]:
    """The parts of every model, each with its case, method and model."""
    part: CoefficientPart | RatioPart
    for model in document.models:
        for part in getattr(model, name):
            yield SimpleNamespace(**dict(part), case=model.case, method=model.method, model=model)


def _find_units(document: Document, words: Words) -> dict[str, str]:
    return {one.name: words(f"unit.{one.unit}") if one.unit else "" for one in document.study.covariates}


def _name_term(term: str, words: Words) -> Cell:
    return Cell(term, words("term.intercept") if term == INTERCEPT else term)


def _name_scale(model: ModelPart, term: str, units: dict[str, str], words: Words) -> Cell:
    """What one more of is: the covariate's unit, or that it was transformed."""
    if term == INTERCEPT:
        return Cell(None, MISSING)
    if model.scale is not None and model.scale != NATIVE:
        return Cell(model.scale, words("cell.transformed", method=name_method(model.scale, words)))
    unit = units.get(term, "")
    return Cell(unit or None, unit or words("cell.own_unit"))


def _step(make: Fields, units: dict[str, str]) -> Field:
    """'10 years' for a person; the number and the unit for a file."""
    title = make.words("column.step")
    parts = (
        Column("step", title, "number", form=FIGURE.workbook),
        Column("unit", make.words("column.unit")),
    )

    def cell(one: Any) -> Cell:
        unit = units.get(one.covariate, "")
        text = show_step(one.step, unit, make.words)
        return CompoundCell(one.step, text, parts=(one.step, unit or None))

    return Field(Compound("step", title, parts=parts), cell)


def show_step(step: float, unit: str, words: Words) -> str:
    """'1,000 vehicles/day', or the number alone where the table alone knows the unit."""
    figure = f"{step:,.10g}"
    return words("cell.step", figure=figure, unit=unit) if unit else figure


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
        for model, found in _each_forecast(document)
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
        for model, found in _each_forecast(document)
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
    items = (_join(model, one) for model, found in _each_forecast(document) for one in found.effects)
    return _conclude("effects", fields, items, document, words)


def _conclude(
    name: str, fields: tuple[Field, ...], items: Iterator[Any], document: Document, words: Words
) -> TableView:
    """The table; where a model is not certified, its note says so first."""
    table = build_estimates(name, fields, items, words, document.study.confidence)
    if all(model.certified for model, _ in _each_forecast(document)):
        return table
    mark = words("table.uncertified.note")
    return replace(
        table,
        note=join_sentences((mark, table.note), words),
        plain_note=join_sentences((mark, table.plain_note), words),
    )


def _each_forecast(document: Document) -> Iterator[tuple[ModelPart, CaseForecast]]:
    for model in document.models:
        if model.forecast is not None:
            yield model, model.forecast


def _flag(make: Fields, document: Document) -> tuple[Field, ...]:
    """Whether a model was chosen and is certified: columns that are there where one is not."""
    found = []
    if not all(model.chosen for model, _ in _each_forecast(document)):
        found.append(make.mark("is_chosen"))
    if not all(model.certified for model, _ in _each_forecast(document)):
        found.append(make.mark("certified"))
    return tuple(found)


def _join(model: ModelPart, part: Any, **more: Any) -> SimpleNamespace:
    """A part with the model that it is of."""
    of = {"case": model.case, "method": model.method, "is_chosen": model.chosen, "certified": model.certified}
    return SimpleNamespace(**dict(part), **more, **of)


def _count_states(document: Document) -> int:
    return max((len(found.probability[0]) for _, found in _each_forecast(document)), default=0)


def _share_getter(state: int) -> Callable[[Any], float | None]:
    return lambda one: one.probability[state - 1] if state <= len(one.probability) else None


def _list_years(document: Document) -> Iterator[SimpleNamespace]:
    ends = (f"{name}{end}" for name in ("expected", "reached") for end in ("", "_low", "_high"))
    names = ("probability", *ends, "predicted_low", "predicted_high", "outside")
    for model, found in _each_forecast(document):
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


def tabulate_network(document: Document, words: Words) -> TableView:
    """All cases together, every five years."""
    return _tabulate("network", _take(document, of_cases=False), document, words)


def tabulate_network_cases(document: Document, words: Words) -> TableView:
    """The same for each case; nothing where there is one."""
    rows = _take(document, of_cases=True)
    several = len({one.case for one in rows}) > 1
    return _tabulate("network_cases", rows if several else [], document, words)


def tabulate_risks(document: Document, words: Words) -> TableView:
    """The members that will soonest be in the threshold or worse."""
    make = Fields(words)
    network = document.network
    soon = 0 if network is None else network.soon
    fields = (
        make.number("rank", COUNT),
        make.text("bridge"),
        make.case(),
        optional(make.text("member")),
        optional(make.text("seen")),
        make.number("state_seen", COUNT, lambda one: one.state),
        make.number("threshold", COUNT),
        make.number("reached_in", FINE_SHARE, lambda one: one.reached, years=soon),
        make.estimate("mean_until", YEARS, ("mean", "mean_low", "mean_high"), unit="years"),
        make.number("median_until", YEARS, lambda one: one.median, unit="years"),
        optional(make.number("calendar", YEAR)),
        optional(make.text("remark", english=True)),
    )
    table = build_estimates("risks", fields, network.risks if network else (), words, _find_level(document))
    return _warn(table, network, words)


def tabulate_aside(document: Document, words: Words) -> TableView:
    """Who is not forecast, and who is with a remark: why, and how many."""
    make = Fields(words)
    fields = (
        make.coded("aside_kind", "aside", lambda one: one.kind),
        optional(make.text("case")),
        make.text("reason", english=True),
        make.number("aside_count", COUNT, lambda one: one.count),
        make.coded("what", "aside"),
    )
    return build_table("set_aside", fields, document.network.aside if document.network else (), words)


def _tabulate(name: str, rows: Sequence[NetworkYear], document: Document, words: Words) -> TableView:
    make = Fields(words)
    states = range(1, max((len(one.expected) for one in rows), default=0) + 1)
    fields: list[Field] = [
        make.number("year", COUNT, unit="years"),
        optional(make.number("threshold", COUNT)),
        make.estimate("members_reached", MEMBERS, ("reached", "low", "high")),
        optional(make.span("members_predicted", COUNT, ("predicted_low", "predicted_high"))),
        make.number("members", COUNT),
        *(make.number("members_in_state", MEMBERS, _getter(state), state=state) for state in states),
    ]
    if name == "network_cases":
        fields.insert(0, make.case())
    if not all(one.certified for one in rows):
        fields.append(make.mark("certified"))
    items = (SimpleNamespace(**dict(one)) for one in rows)
    return _warn(build_estimates(name, fields, items, words, _find_level(document)), document.network, words)


def _find_level(document: Document) -> float:
    """A forecast of an inventory has a level of its own."""
    return document.study.confidence if document.network is None else document.network.level


def _warn(table: EstimateTable, network: NetworkPart | None, words: Words) -> TableView:
    """The same with a note that a model is not certified, where one is not."""
    if network is None or network.certified:
        return table
    return replace(table, note=join_sentences((words("table.uncertified.note"), table.note), words))


def _take(document: Document, *, of_cases: bool) -> list[NetworkYear]:
    years: Iterable[NetworkYear] = () if document.network is None else document.network.years
    last = 0 if document.network is None else document.network.horizon
    own = (one for one in years if (one.case is not None) == of_cases)
    return [one for one in own if one.year % EVERY == 0 or one.year == last]


def _getter(state: int) -> Callable[[Any], float | None]:
    return lambda one: one.expected[state - 1] if state <= len(one.expected) else None
