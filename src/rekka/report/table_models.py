"""The tables of fitted models: calibration, stability, certificates, coefficients, ratios, years in each state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rekka.report import numbers
from rekka.report.document import NOT_YET, CoefficientPart, Document, ModelPart, RatioPart
from rekka.report.numbers import MISSING
from rekka.report.table_cells import (
    ACCURACY,
    COUNT,
    FIGURE,
    FINE_SHARE,
    LIKELIHOOD,
    LOSS,
    ONE_DECIMAL,
    PROBABILITY,
    SHARE,
    TINY,
    Compound,
    CompoundCell,
    Field,
    Fields,
    build_estimates,
    build_table,
    optional,
    tell_penalised,
)
from rekka.report.views import Cell, Column, Row, TableView
from rekka.report.words import Words, join_sentences, name_method

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
