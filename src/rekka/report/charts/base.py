"""The colours of the charts: one set as variables of the page, light and dark, one set for files on white paper.

Method colours are the Okabe-Ito hues, darker or lighter, until a mark has a contrast of 3:1 to its surface. Text
has 4.5:1 (WCAG 2.2). Green is z-score, as in the paper's figures. Every method has its own shape, too: colour is
never alone in saying which is which. Cells of heat maps have one ramp (cividis) in both modes.

What the charts share: sizes, data, scales of methods and cases, the dimming of other cases, the finished spec.

Text from a study, as the name of a case, is data in a chart and never part of an expression.

What charts over the years share: their axis, where covariates leave the training rows, legends of bands.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt

from rekka.report.document import Document, ModelPart
from rekka.report.text import Words, name_method
from rekka.report.views import Panel

PAGE_FONT = "system-ui, sans-serif"
PRINT_FONT = "Liberation Sans"  # the only family that vl-convert brings along

# name on the page: on a light surface, on a dark one
CSS_VARIABLES: dict[str, tuple[str, str]] = {
    "--surface": ("#ffffff", "#14181d"),
    "--ink": ("#1b1f24", "#e8eaed"),
    "--muted": ("#59616b", "#a4acb6"),
    "--line": ("#dfe3e8", "#333a43"),
    "--accent": ("#0060a0", "#7cc4ff"),
    "--band": ("#8cb7d4", "#436583"),
    "--haze": ("#d6e5f0", "#263543"),
    "--failed": ("#d3d7dc", "#3d444d"),
    "--good": ("#00754f", "#4cd3a5"),
    "--bad": ("#b3350b", "#ff9a70"),
    "--method-max": ("#0072b2", "#56b4e9"),
    "--method-minmax": ("#b07a00", "#e69f00"),
    "--method-zscore": ("#008a5e", "#2bc592"),
    "--method-boxcox": ("#c2417c", "#f08bbb"),
    "--method-5": ("#5b3fa0", "#b9a5ff"),
    "--method-6": ("#9a3300", "#f5793a"),
    "--method-7": ("#4d4d4d", "#c9ccd1"),
    "--method-8": ("#00798c", "#9fe3f5"),
    "--method-9": ("#6b6100", "#d8c94a"),
    "--method-10": ("#7b1e3b", "#ffc2d4"),
}
FIXED = ("max", "minmax", "zscore", "boxcox")  # the paper's methods have the same colours in every report
FURTHER = ("5", "6", "7", "8", "9", "10")  # for other methods in the order of the study
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
    "M0,-1L0.29,-0.4L0.95,-0.31L0.48,0.15L0.59,0.81L0,0.5L-0.59,0.81L-0.48,0.15L-0.95,-0.31L-0.29,-0.4Z",
    "M-1,-0.4H1V0.4H-1Z",
)
# cividis (Nunez, Anderton, Renslow 2018) at equal distances, without its darkest fifth
RAMP = ("#31446b", "#4d556c", "#666970", "#7d7c78", "#958f78", "#aea371", "#c8b866", "#e4cf5b", "#fee838")
ON_RAMP = ("#000000", "#ffffff")  # text on cells


@dataclass(frozen=True)
class Palette:
    """``methods`` are the colours of ``FIXED`` and then of ``FURTHER``; ``background`` is behind a whole chart.

    ``band`` and ``haze`` are the accent, paler and palest: an interval of the parameters, and one of what will be.
    """

    ink: str
    muted: str
    line: str
    surface: str
    accent: str
    band: str
    haze: str
    failed: str
    good: str
    bad: str
    methods: tuple[str, ...]
    font: str
    background: str


_METHOD_VARIABLES = tuple(f"--method-{name}" for name in FIXED + FURTHER)
_ROLES = ("ink", "muted", "line", "surface", "accent", "band", "haze", "failed", "good", "bad")

PAGE = Palette(
    **{role: f"var(--{role})" for role in _ROLES},
    methods=tuple(f"var({name})" for name in _METHOD_VARIABLES),
    font=PAGE_FONT,
    background="transparent",
)
PRINT = Palette(
    **{role: CSS_VARIABLES[f"--{role}"][0] for role in _ROLES},
    methods=tuple(CSS_VARIABLES[name][0] for name in _METHOD_VARIABLES),
    font=PRINT_FONT,
    background="#ffffff",
)


def place_of(method: str, methods: Sequence[str]) -> int:
    """A method's place among colours and shapes: its own for the paper's, the next free for others."""
    if method in FIXED:
        return FIXED.index(method)
    others = [name for name in methods if name not in FIXED]
    place = others.index(method) if method in others else len(others)
    return len(FIXED) + place % len(FURTHER)


def shade(share: float) -> str:
    """The ramp's colour at a share of its length, 0 the darkest."""
    where = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    below = min(int(where), len(RAMP) - 2)
    low, high = _parts(RAMP[below]), _parts(RAMP[below + 1])
    mixed = (round(a + (b - a) * (where - below)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour: never less than 4.5:1."""
    return max(ON_RAMP, key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21 (WCAG 2.2, relative luminance)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _parts(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


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
