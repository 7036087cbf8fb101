"""All figures of a report in the order of the page: Document -> FigureView, panels of Vega-Lite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from altair.utils.schemapi import debug_mode

from rekka.report.chart_answers import draw_answer
from rekka.report.chart_calibration import draw_calibration
from rekka.report.chart_covariates import draw_profiles
from rekka.report.chart_curves import draw_curve
from rekka.report.chart_heatmaps import draw_heatmaps
from rekka.report.chart_network import draw_network
from rekka.report.chart_presets import draw_presets
from rekka.report.chart_ratios import draw_ratios
from rekka.report.chart_reach import draw_reach, draw_reaching
from rekka.report.chart_stability import draw_stability
from rekka.report.chart_trials import draw_tradeoff
from rekka.report.document import Document
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words

MOST_PROFILED = 24  # cases with a panel for each covariate: they are the heaviest part of a page


def list_figures(document: Document, words: Words, palette: Palette) -> tuple[FigureView, ...]:
    """Every figure that has something to show."""
    with debug_mode(False):  # Altair checks each part of a chart against its schema; the tests do
        return tuple(figure for figure in _draw_all(document, words, palette) if figure is not None)


def _draw_all(document: Document, words: Words, palette: Palette) -> Iterator[FigureView | None]:
    look: dict[str, Any] = {"words": words, "palette": palette}
    yield draw_answer(document, **look)
    for preset in document.study.presets:
        yield draw_tradeoff(document, preset, **look)
    for preset in document.study.presets:
        yield draw_heatmaps(document, preset, **look)
    yield draw_presets(document, **look)
    numbers = {case.case: f"{number:03d}" for number, case in enumerate(document.cases, start=1)}
    for part in document.calibration:
        if part.preset == document.study.preset:
            yield draw_calibration(part, numbers[part.case], **look)
    yield draw_stability(document, **look)
    for model in document.models:
        level = document.study.confidence
        yield draw_ratios(model, document.study.covariates, numbers[model.case], level=level, **look)
    if document.network is not None:
        yield draw_network(document.network, **look)
    yield draw_reaching(document, **look)
    for place, model in enumerate(document.models):
        yield draw_curve(model, numbers[model.case], **look)
        yield draw_reach(model, numbers[model.case], **look)
        if place < MOST_PROFILED:
            yield draw_profiles(model, document.study.covariates, numbers[model.case], **look)
