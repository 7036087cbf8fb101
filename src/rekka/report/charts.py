"""One figure's panels as one chart, for a file: FigureView -> combine -> SVG, PNG, PDF."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from rekka.report.chart_parts import INNER_WIDTH, PICKED, STAMP, WIDTH, Spec
from rekka.report.views import FigureView

PRINTED = 680  # pixels of two panels side by side: 180 mm, the width of a page of two columns
SPACING = 16  # pixels between them
OWN_SCALES = ("color", "fill", "shape", "stroke", "strokeDash", "xOffset", "yOffset")  # else panels share them
LESS = WIDTH - (PRINTED - SPACING) // 2  # pixels that a panel has less on paper


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
        for layer in spec["layer"]:
            if layer["mark"].get("style") == STAMP:
                layer["encoding"]["x"]["value"] = spec["width"] / 2
