"""A forecast with fitted models as a document: what the overview shows of it where there is no study.

Its models have no held-out scores, so that trust rests on certificate and test of fit alone, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

import rekka
from rekka.core.columns import make_row
from rekka.core.numerics import quiet
from rekka.fleet.document import ForecastFile, UsedModel
from rekka.fleet.eligibility import EligibleGroup
from rekka.fleet.inventory import Fleet
from rekka.fleet.models import CaseModel
from rekka.forecast.forecast import typical_covariates
from rekka.report.document import (
    Answer,
    CaseForecast,
    CasePart,
    Document,
    ModelPart,
    NetworkPart,
    PassagePart,
    StudyPart,
)
from rekka.report.networks import INVENTORY, Kind, describe_network
from rekka.report.summarize import describe_trend, expect_years, expect_years_of_new
from rekka.report.trust import judge_all
from rekka.study.tables import EXACT


def sketch_forecast(
    found: ForecastFile, models: Sequence[CaseModel] = (), details: pl.DataFrame | None = None
) -> Document:
    """Sketch the document of a forecast; without the models nobody knows the years of a new member."""
    fits = {one.name: one for one in models}
    study = StudyPart.model_construct(
        planned=0, done=0, choices_planned=0, choices_done=0, sources=(), kind="given"
    )
    used = found.models
    document = Document.model_construct(
        rekka=rekka.__version__,
        title=None,
        labels=max((one.labels or () for one in used), key=len, default=()) or None,
        study=study,
        cases=tuple(map(_describe_case, used)),
        answers=tuple(map(_describe_answer, used)),
        findings=(),
        models=tuple(_describe_model(one, fits.get(one.case), found.asked.level) for one in used),
        network=describe_inventory(found, details),
        no_network=None,
        trust=(),
        backtests=(),
    )
    return document.model_copy(update={"trust": judge_all(document)})


def describe_inventory(found: ForecastFile, details: pl.DataFrame | None = None) -> NetworkPart:
    """Describe a forecast by itself: its models say whether they were chosen."""
    unchosen = tuple(one.case for one in found.models if not one.chosen)
    return describe_network(found, INVENTORY, None, details).model_copy(update={"unchosen": unchosen})


def replace_forecast(document: Document, found: ForecastFile, fleet: Fleet, kind: Kind = INVENTORY) -> Document:
    """The document of a study with another forecast, perhaps until another threshold.

    The network, the years of a new member and the trust are those of this forecast; all else is the study's.
    """
    unchosen = tuple(one.case for one in found.models if not one.chosen)
    network = describe_network(found, kind, None, fleet.details).model_copy(update={"unchosen": unchosen})
    groups = {group.case: group for group in fleet.eligible.groups}
    models = tuple(_move_threshold(one, groups.get(one.case), document.study.seed) for one in document.models)
    changed = document.model_copy(update={"network": network, "models": models})
    return changed.model_copy(update={"trust": judge_all(changed)})


def _move_threshold(model: ModelPart, group: EligibleGroup | None, seed: int) -> ModelPart:
    """A model with the years of a new member until the threshold that its component now has."""
    own = model.forecast
    if own is None or group is None or own.threshold == group.threshold or group.fit.survey is None:
        return model
    x, certified = typical_covariates(group.fit)[0], model.certified
    with quiet():
        passages = expect_years(
            group.fit, x, group.threshold, level=own.level, seed=seed, certified=certified, starts=1
        )
        passage = expect_years_of_new(
            group.fit, x, group.threshold, level=own.level, seed=seed, certified=certified
        )
    new = None if own.new is None or passage is None else own.new.model_copy(update={"passage": passage})
    moved = own.model_copy(update={"threshold": group.threshold, "passages": passages, "new": new})
    return model.model_copy(update={"forecast": moved})


def _find_years(model: CaseModel | None, threshold: int, level: float) -> PassagePart | None:
    """Years of a new member of a fitted model until a threshold."""
    fit = None if model is None else model.fit
    if model is None or fit is None or (fit.survey is None and fit.covariates):
        return None  # of an earlier version: nobody knows what is typical
    with quiet():
        return expect_years_of_new(
            fit, typical_covariates(fit)[0], threshold, level=level, seed=0, certified=model.certified
        )


def _describe_case(one: UsedModel) -> CasePart:
    own = {"train": one.training_rows, "n_states": one.n_states, "judged_on": "train"}
    own |= dict.fromkeys(("validation", "golden", "bridges", "moves"), 0)
    return make_row(CasePart, own | {"constant": ()}, one)


def _describe_answer(one: UsedModel) -> Answer:
    own = {"method": one.scaling, "same_model": (), "reason": "stays", "why": "", "confirmed": False}
    return make_row(Answer, own, {"case": one.case})


def _describe_model(one: UsedModel, model: CaseModel | None, level: float) -> ModelPart:
    nothing = dict.fromkeys(("coefficients", "ratios", "years"), ())
    own = {"preset": EXACT, "method": one.scaling, "typical": {}, "rows": one.training_rows}
    made = make_row(ModelPart, nothing | own, one)
    passage = _find_years(model, one.threshold, level)
    forecast = CaseForecast.model_construct(
        threshold=one.threshold, level=level, advancing=(), passages=() if passage is None else (passage,)
    )
    trend = None if model is None else describe_trend(model.fit.records, level)
    return made.model_copy(update={"forecast": forecast, "trend": trend})
