"""What charts over the years share: their axis, where covariates leave the training rows, legends of bands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import altair as alt

from rekka.report.chart_parts import Chart, inline, legend, shorten, stamp
from rekka.report.document import ModelPart
from rekka.report.palette import Palette
from rekka.report.words import Words

HEIGHT = 250
HOVER = 12  # pixels around a year in which its tooltip appears
Side = Literal["top", "bottom"]


def year_axis(words: Words, last: float, title: str = "figure.axis.years") -> alt.X:
    """Years from now, all of them on the axis."""
    axis = alt.Axis(title=words(title), tickCount=6, grid=False)
    return alt.X("year:Q", axis=axis, scale=alt.Scale(domain=[0, last], nice=False))


def shade_beyond(first: float | None, last: float, *, words: Words, palette: Palette) -> list[alt.Chart]:
    """The years beyond the training rows, shaded; nothing where there are none."""
    if first is None or first >= last:
        return []
    base = alt.Chart(inline([{"year": shorten(first), "last": last}]))
    return [
        base.mark_rect(color=palette.failed, opacity=0.4).encode(x=year_axis(words, last), x2=alt.X2("last:Q"))
    ]


def name_beyond(
    first: float | None, last: float, side: Side, *, words: Words, palette: Palette
) -> list[alt.Chart]:
    """What the shade is, at the top or at the bottom: to be laid over whatever lies on it."""
    if first is None or first >= last:
        return []
    x, edge = year_axis(words, last), {"top": 5, "bottom": HEIGHT - 5}[side]
    label = alt.Chart(inline([{"last": last}])).mark_text(
        text=words("figure.beyond"), align="right", baseline=side, dx=-5, fontSize=10, color=palette.muted
    )
    return [label.encode(x=alt.X("last:Q", axis=x["axis"], scale=x["scale"]), y=alt.value(edge))]


def rule_beyond(first: float | None, last: float, *, words: Words, palette: Palette) -> list[alt.Chart]:
    """The same as a line, where areas leave no room for a shade."""
    if first is None or first >= last:
        return []
    base = alt.Chart(inline([{"year": shorten(first)}]))
    return [base.mark_rule(color=palette.ink, strokeWidth=1.2, strokeDash=[4, 3]).encode(x=year_axis(words, last))]


def fill_band(base: alt.Chart, name: str, colours: Mapping[str, str], columns: int = 1) -> alt.Chart:
    """A mark in the colour of a band, with a legend of all: colours by their words."""
    names: list[Any] = list(colours)
    fill = alt.Fill(
        "band:N",
        scale=alt.Scale(domain=names, range=list(colours.values())),
        legend=legend(columns, None, "bottom", labelLimit=400, symbolType="square", symbolStrokeWidth=0),
    )
    return base.transform_calculate(band=json.dumps(name)).encode(fill=fill)


def stamp_model(chart: Chart, model: ModelPart, *, words: Words, palette: Palette) -> Chart:
    """The same with a mark across it where the model is not to be relied on."""
    if not model.certified:
        return stamp(chart, words("figure.stamp.not_certified"), palette)
    return chart if model.chosen else stamp(chart, words("figure.stamp.not_chosen"), palette)
