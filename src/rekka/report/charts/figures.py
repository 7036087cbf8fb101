"""All figures of a report in the order of the page: Document -> FigureView, panels of Vega-Lite."""

from __future__ import annotations

from collections.abc import Iterator

from rekka.report.charts.base import Palette, Theme
from rekka.report.charts.forecast import (
    draw_backtest,
    draw_backtests,
    draw_curve,
    draw_for_case_network,
    draw_multiples,
    draw_networks,
    draw_reach,
    draw_reaching,
)
from rekka.report.charts.models import draw_calibration, draw_profiles, draw_ratios
from rekka.report.charts.study import draw_heatmaps, draw_heldout, draw_presets, draw_stability, draw_tradeoff
from rekka.report.document import Document
from rekka.report.text import Words
from rekka.report.views import FigureView

MOST_PROFILED = 24  # cases with a panel for each covariate: they are the heaviest part of a page


def list_figures(document: Document, words: Words, palette: Palette) -> tuple[FigureView, ...]:
    """Every figure that has something to show."""
    drawn = _draw_all(document, Theme(words, palette, document.ratings))
    return tuple(figure for figure in drawn if figure is not None)


def _draw_all(document: Document, theme: Theme) -> Iterator[FigureView | None]:
    study = document.study
    numbers = {case.case: f"{number:03d}" for number, case in enumerate(document.cases, start=1)}
    yield from draw_networks(document, theme)
    if len(document.cases) > 1:
        for case in numbers:
            yield draw_for_case_network(document, case, theme)
    yield draw_reaching(document, theme)
    yield draw_multiples(document, theme)
    for place, model in enumerate(document.models):
        yield draw_curve(model, numbers[model.case], theme)
        yield draw_reach(model, numbers[model.case], theme)
        yield draw_ratios(model, study.covariates, numbers[model.case], theme, level=study.confidence)
        if place < MOST_PROFILED:
            yield draw_profiles(model, study.covariates, numbers[model.case], theme)
    for draw in (draw_tradeoff, draw_heatmaps):
        for preset in study.presets:
            yield draw(document, preset, theme)
    yield draw_presets(document, theme)
    yield draw_heldout(document, theme)
    yield draw_backtests(document, theme)
    for part in document.backtests:
        yield draw_backtest(part, numbers[part.case], theme, study.confidence)
    for found in document.calibration:
        if found.preset == study.preset:
            yield draw_calibration(found, numbers[found.case], theme)
    yield draw_stability(document, theme)
