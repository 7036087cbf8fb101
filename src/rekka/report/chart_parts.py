"""What the charts share: sizes, data, scales of methods and cases, the dimming of other cases, the finished spec.

Text from a study, as the name of a case, is data in a chart and never part of an expression.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt

from rekka.report.document import Document
from rekka.report.palette import SHAPES, Palette, place_of
from rekka.report.views import Panel
from rekka.report.words import Words, name_method

Spec = dict[str, Any]
Rows = list[dict[str, Any]]
LegendOrient = Literal["top", "bottom"]

WIDTH = 460  # of a panel, all in all, in pixels: two stand beside each other on a screen, one on a phone
RIGHT = 14  # free at the right edge, for half of the last label
CASE_LABELS = 146  # pixels for the names of cases
LETTER = 5.8  # pixels of a figure at an axis
NUMBER_LABELS = 44  # pixels for numbers and the title beside an axis
INNER_WIDTH = WIDTH - NUMBER_LABELS - RIGHT  # of a plot beside such an axis
LONGEST_NAME = 24  # letters of a case's name at an axis; the tooltip has all of it
ROW = 24  # pixels for a case
DIGITS = 6  # significant, in the data of a chart
PICKED = "picked"  # the case that the reader points at, "" for none: the page sets it
FAINT = 0.15  # opacity of other cases then
STAMP = "stamp"  # the style by which a text across a chart is known
STAMP_SIZE, STAMP_ANGLE, STAMP_OPACITY = 38, 342, 0.3  # pixels, degrees
# Directional controls of Unicode, which turn around what follows them (UAX 9, 2)
CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
NO_TEXT = ("Cc", "Cs", "Zl", "Zp")  # categories: controls, halves of pairs, ends of lines
TO_THE_LEFT = ("R", "AL", "AN")  # directions of letters and figures that are written so
ISOLATED = "\N{FIRST STRONG ISOLATE}{}\N{POP DIRECTIONAL ISOLATE}"

_OTHER_CASE = f"{PICKED} != '' && datum.case != {PICKED}"
_SHORTEN = f"length(datum.value) > {LONGEST_NAME} ? slice(datum.value, 0, {LONGEST_NAME - 1}) + '…' : datum.value"
_YES = {True: "mark.yes", False: "mark.no"}


@dataclass(frozen=True)
class Chart:
    """Layers over each other on the same rows.

    Altair has such a chart, too, but copies all layers and rows at every step, and a report has many charts.
    """

    layers: Sequence[alt.Chart]
    rows: Rows
    width: float
    height: float | alt.Step


def inline(rows: Rows) -> Any:
    """Rows as the data of a chart. The name keeps Altair from moving them elsewhere; ``finish`` takes it off."""
    return {"values": rows, "name": "rows"}


def shorten(value: float) -> float:
    """A number with as many digits as a picture can show: specs are a good part of the page's size."""
    return float(f"{value:.{DIGITS}g}")


def tell_name(name: str) -> str:
    """A name that data gave, within a sentence: on one line, and the rest of the sentence keeps its direction."""
    shown = "".join(" " if unicodedata.category(letter) in NO_TEXT else letter for letter in name)
    shown = " ".join("".join(letter for letter in shown if letter not in CONTROLS).split())
    turned = any(unicodedata.bidirectional(letter) in TO_THE_LEFT for letter in shown)
    return ISOLATED.format(shown) if turned else shown


def answer_yes(value: bool, words: Words) -> str:
    """Yes or no."""
    return words(_YES[value])


def list_methods(document: Document) -> tuple[str, ...]:
    """The study's methods in their order, and whatever else has trials."""
    return tuple(dict.fromkeys((*document.study.methods, *(trial.method for trial in document.trials))))


def list_cases(document: Document) -> tuple[str, ...]:
    """The cases in the document's order."""
    return tuple(case.case for case in document.cases)


def colour_scale(methods: Sequence[str], among: Sequence[str], words: Words, palette: Palette) -> alt.Scale:
    """Some methods in their colours; ``among`` are all of the study, which settle the order."""
    return alt.Scale(
        domain=[name_method(method, words) for method in methods],
        range=[colour_of(method, among, palette) for method in methods],
    )


def shape_scale(methods: Sequence[str], among: Sequence[str], words: Words) -> alt.Scale:
    """Some methods in their shapes."""
    return alt.Scale(
        domain=[name_method(method, words) for method in methods],
        range=[SHAPES[place_of(method, among)] for method in methods],
    )


def colour_of(method: str, among: Sequence[str], palette: Palette) -> str:
    """A method's colour."""
    return palette.methods[place_of(method, among)]


def legend(columns: int = 4, title: str | None = None, orient: LegendOrient = "top", **more: Any) -> alt.Legend:
    """Above the chart or below it, where it costs no width."""
    return alt.Legend(title=title, orient=orient, columns=columns, **more)


def case_axis(cases: Sequence[str], *, labels: bool = True) -> alt.Y:
    """A row for each case, in the document's order."""
    axis = alt.Axis(
        labelExpr=_SHORTEN,
        labelLimit=CASE_LABELS - 8,
        labels=labels,
        minExtent=CASE_LABELS,
        maxExtent=CASE_LABELS,
        ticks=False,
        domain=False,
        labelPadding=6,
        title=None,
    )
    return alt.Y("case:N", scale=alt.Scale(domain=list(cases)), sort=None, axis=axis)


def dim(opacity: float = 1.0) -> alt.OpacityValue:
    """Opacity of a mark: faint where another case is picked."""
    return alt.OpacityValue(opacity, condition={"test": _OTHER_CASE, "value": FAINT})


def tips(titles: Mapping[str, str]) -> list[alt.Tooltip]:
    """Tooltips of fields that are texts already, with their titles."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def choose_scale(values: Sequence[float], limit: float = 10.0) -> alt.Scale:
    """Linear without zero; logarithmic where the largest is many times the smallest."""
    low, high = min(values), max(values)
    if low > 0 and high > limit * low:
        return alt.Scale(type="log", nice=False, padding=10)
    return alt.Scale(zero=False, nice=True, padding=6)


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2, 5; 1, 3; or powers of ten, as many as fit."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0**power for power in range(first, last + 1) for s in steps]
        ticks = [shorten(tick) for tick in ticks if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


def number_axis(title: str, **more: Any) -> alt.Axis:
    """An axis with numbers, of a fixed width, so that the panel's width is known; wider for long ``values``."""
    longest = max((len(f"{value:g}") for value in more.get("values", ())), default=0)
    extent = max(NUMBER_LABELS - 16, round(longest * LETTER) + 8)
    return alt.Axis(title=title, minExtent=extent, maxExtent=extent, **more)


def make_panel(name: str, title: str, alt_text: str, chart: Chart, palette: Palette) -> Panel:
    """A chart with its words."""
    return Panel(name=name, title=title, alt=alt_text, spec=finish(chart, palette))


def stamp(chart: Chart, text: str, palette: Palette) -> Chart:
    """The same with a text across it, such as NOT CERTIFIED: a picture is copied without its caption."""
    height = chart.height
    assert not isinstance(height, alt.Step)
    size = min(STAMP_SIZE, 1.2 * chart.width / max(sum(map(_count_places, text)), 1))
    mark = (
        alt.Chart(inline([{}]))
        .mark_text(
            text=text, style=STAMP, angle=STAMP_ANGLE, fontSize=shorten(size), fontWeight="bold",
            opacity=STAMP_OPACITY, color=palette.bad,
        )
        .encode(x=alt.value(chart.width / 2), y=alt.value(height / 2))
    )  # fmt: skip
    # what answers the pointer stays the topmost
    return replace(chart, layers=(*chart.layers[:-1], mark, *chart.layers[-1:]))


def _count_places(letter: str) -> float:
    return 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.72


def finish(chart: Chart, palette: Palette) -> Spec:
    """A chart as Vega-Lite with its style; where it has cases, with the parameter that the page sets.

    Altair's check against the schema takes most of the time of a report with many cases; the tests make it.
    """
    within = {"top_level": False, "data": inline(chart.rows)}  # so that Altair adds neither a schema nor data
    layers = [layer.to_dict(validate=False, context=within) for layer in chart.layers]
    for layer in layers:
        layer.get("data", {}).pop("name", None)
    spec: Spec = {
        "$schema": alt.SCHEMA_URL,
        "config": style(palette),
        "data": {"values": chart.rows},
        "height": chart.height.to_dict() if isinstance(chart.height, alt.Step) else chart.height,
        "layer": layers,
        "width": chart.width,
    }
    if any("case" in row for row in chart.rows):
        spec["params"] = [{"name": PICKED, "value": ""}]
    return spec


def style(palette: Palette) -> Spec:
    """Type, colours and lines that all charts have."""
    return {
        "background": palette.background,
        "font": palette.font,
        "padding": 4,
        "aria": False,  # the page has one sentence for the whole chart
        "view": {"stroke": None},
        "axis": _axis_style(palette),
        "axisX": {"labelFlush": False, "labelOverlap": True, "labelSeparation": 6},
        "legend": _legend_style(palette),
        "text": {"color": palette.ink, "fontSize": 11},
        "title": {
            "color": palette.ink,
            "fontSize": 12,
            "fontWeight": "normal",
            "anchor": "start",
            "offset": 6,
        },
    }


def _axis_style(palette: Palette) -> Spec:
    return {
        "labelColor": palette.ink,
        "titleColor": palette.ink,
        "gridColor": palette.line,
        "domainColor": palette.muted,
        "tickColor": palette.muted,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "tickSize": 4,
    }


def _legend_style(palette: Palette) -> Spec:
    return {
        "labelColor": palette.ink,
        "labelFontSize": 11,
        "labelLimit": 220,
        "titleColor": palette.ink,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "symbolSize": 70,
        "columnPadding": 12,
        "rowPadding": 3,
        "padding": 0,
        "offset": 8,
        # From the right: a wide legend then reaches over the labels at the left, not beyond the panel.
        # Vega-Lite hands this on to Vega, although its schema does not have it.
        "layout": {"top": {"anchor": "end"}, "bottom": {"anchor": "end"}},
    }
