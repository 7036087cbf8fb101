"""The paper's two figures from each set of trials, drawn by the charts of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from benchmarks.problems import SEED
from benchmarks.reproduction_sides import METHODS, TRIALS, WORDS, ZSCORE, Row, Side, Stored, list_sides
from benchmarks.reproduction_words import NoLongerSo
from rekka.report.charts.base import PRINT, Theme
from rekka.report.charts.study import draw_heatmaps, draw_tradeoff
from rekka.report.document import (
    AuditPart,
    CasePart,
    Document,
    MethodPart,
    ProvenancePart,
    StudyPart,
    TrialPart,
)
from rekka.report.views import FigureView
from rekka.study.trial import Value

Part = TypeVar("Part", bound=Value)


def list_pictures(stored: Stored) -> dict[str, FigureView]:
    """The paper's two figures from each set of trials, by the names of their files."""
    theme = Theme(WORDS, PRINT)
    found = {}
    for name, draw in (("tradeoff", draw_tradeoff), ("heatmaps", draw_heatmaps)):
        for side in list_sides(stored):
            figure = draw(describe(side, stored), side.preset, theme)
            if figure is None:
                raise NoLongerSo(f"There are no trials to draw: {side.title}.")
            found[f"reproduction-{name}-{side.key}.svg"] = figure
    return found


def describe(side: Side, stored: Stored) -> Document:
    """As much of a report as its charts of trials need, whoever's the trials are: one code draws all."""
    unknown = {"status": "as printed", "certified": False, "n_states": 0}  # the paper does not say
    same = {"judged_on": stored["plan"]["select_on"], "cost": side.preset.cost}
    trials = tuple(
        _part(TrialPart, unknown | row | same | {"pareto": row["selected"]}) for row in side.trials.to_dicts()
    )
    nothing: Row = dict.fromkeys(Document.model_fields, ()) | {"network": None, "no_network": None}
    for name in ("format", "version"):
        del nothing[name]
    return Document(
        **nothing
        | {
            "rekka": stored["configuration"]["versions"]["rekka"],
            "title": side.title,
            "study": _describe_study(side, stored),
            "cases": tuple(_part(CasePart, row) for row in stored["cases"]),
            "trials": trials,
            "methods": tuple(
                _part(MethodPart, row | {"pareto": row["selected"]}) for row in side.methods.values()
            ),
            "stability": None,
            "audit": AuditPart(records=None, outcomes=(), notes=(), findings=()),
            "provenance": _part(
                ProvenancePart, {"plan": "", "files": {}, "seeds": {}, "versions": {}, "machine": {}}
            ),
        }
    )


def _describe_study(side: Side, stored: Stored) -> StudyPart:
    return StudyPart(
        kind="inventory",
        sources=(),
        scheme=stored["plan"]["scheme"],
        rule=stored["plan"]["rule"],
        default=ZSCORE,
        select_on=stored["plan"]["select_on"],
        methods=METHODS,
        presets=(side.preset,),
        preset=side.preset.name,
        covariates=(),
        planned=TRIALS,
        done=TRIALS,
        choices_planned=TRIALS // len(METHODS),
        choices_done=TRIALS // len(METHODS),
        confidence=0.95,
        seed=SEED,
    )


def _part(kind: type[Part], row: Mapping[str, Any]) -> Part:
    fields = kind.model_fields.items()
    return kind(**{name: row.get(name) for name, field in fields if name in row or field.is_required()})
