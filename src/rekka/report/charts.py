"""All figures of a report in the order of the page; and one figure's panels as one chart for a file.

Document -> list_figures -> FigureView (panels of Vega-Lite) -> the page
                                       -> combine -> SVG, PNG, PDF
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from altair.utils.schemapi import debug_mode

from rekka.report.chart_answers import draw_answer
from rekka.report.chart_calibration import draw_calibration
from rekka.report.chart_curves import draw_curve
from rekka.report.chart_heatmaps import draw_heatmaps
from rekka.report.chart_parts import INNER_WIDTH, PICKED, WIDTH, Spec
from rekka.report.chart_presets import draw_presets
from rekka.report.chart_ratios import draw_ratios
from rekka.report.chart_stability import draw_stability
from rekka.report.chart_trials import draw_tradeoff
from rekka.report.document import Document
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words

PRINTED = 680  # pixels of two panels side by side: 180 mm, the width of a page of two columns
SPACING = 16  # pixels between them
OWN_SCALES = ("color", "fill", "shape", "stroke", "xOffset", "yOffset")  # else Vega-Lite merges those of panels
LESS = WIDTH - (PRINTED - SPACING) // 2  # pixels that a panel has less on paper


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
    look["level"] = document.study.confidence
    for model in document.models:
        yield draw_curve(model, numbers[model.case], **look)
    for model in document.models:
        yield draw_ratios(model, document.study.covariates, numbers[model.case], **look)


def combine(figure: FigureView) -> Spec:
    """The panels of a figure side by side with their titles, as wide as a printed page; a lone one as it is.

    A page has room for two; further panels go below.
    """
    panels = [copy.deepcopy(panel.spec) | {"title": panel.title} for panel in figure.panels]
    config, schema = panels[0]["config"], panels[0]["$schema"]
    for spec in panels:
        for name in ("config", "$schema", "params"):
            spec.pop(name, None)
    if len(panels) > 1:
        _narrow(panels)
    together: Spec = {"$schema": schema, "config": config, "spacing": SPACING}
    if any(PICKED in repr(spec) for spec in panels):
        together["params"] = [{"name": PICKED, "value": ""}]
    return together | {
        "concat": panels,
        "columns": 2,
        "resolve": {"scale": dict.fromkeys(OWN_SCALES, "independent")},
    }


def _narrow(panels: Sequence[Spec]) -> None:
    """Make panels fit half of a page. What is square stays square, and what was as high beside it stays so."""
    heights = {}
    for spec in panels:
        if spec["width"] == spec["height"]:
            side = min(spec["width"], INNER_WIDTH - LESS)
            heights[spec["height"]] = spec["width"] = side
        else:
            spec["width"] -= LESS
    for spec in panels:
        if isinstance(spec["height"], int | float):
            spec["height"] = heights.get(spec["height"], spec["height"])
