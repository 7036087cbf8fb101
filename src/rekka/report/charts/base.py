"""Building blocks of the charts: colours, texts, scales, axes, layers, and the finished Vega-Lite.

A chart is plain Vega-Lite: a layer is a mark with its encoding (``layer``), ``Chart`` holds layers over the same
rows, ``make_figure`` adds style and words. The tests check every chart against Altair's schema.

Colours come as variables of the page, light and dark, and as one set for files on white paper. Method colours
are the Okabe-Ito hues, darker or lighter, until a mark has a contrast of 3:1 to its surface; text has 4.5:1.
Green is z-score, as in the paper's figures. Every method has its own shape, too: colour is never alone in saying
which is which. Cells of heat maps have one ramp (cividis) in both modes.

Text from a study, as the name of a case, is data in a chart and never part of an expression.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt
from rich.cells import cell_len

from rekka.core.ratings import Ratings
from rekka.report.document import Document, ModelPart
from rekka.report.text import Words, join_names, join_sentences, name_method
from rekka.report.views import FigureView, PanelView

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
Side = Literal["top", "bottom"]

WIDTH = 460  # of a panel, all in all, in pixels: two stand beside each other on a screen, one on a phone
RIGHT = 14  # free at the right edge, for half of the last label
CASE_LABELS = 146  # pixels for the names of cases
CASE_WIDTH = WIDTH - CASE_LABELS - RIGHT  # of a plot beside them
LETTER = 5.8  # pixels of a figure at an axis
NUMBER_LABELS = 44  # pixels for numbers and the title beside an axis
INNER_WIDTH = WIDTH - NUMBER_LABELS - RIGHT  # of a plot beside such an axis
HEIGHT = 250  # of a plot over the years
HOVER = 12  # pixels around a year in which its tooltip appears
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


MOST_LETTERS = 20  # of a rating at an axis
NUMBERS = Ratings(())  # ratings that are the numbers of the states


@dataclass(frozen=True)
class Theme:
    """Language and colours of a set of charts."""

    words: Words
    palette: Palette
    ratings: Ratings = NUMBERS  # that the states are

    def name_states(self, field: str = "datum.value") -> Spec:
        """Labels of an axis or a legend of states: nothing where they are numbers."""
        if self.ratings.numbered:
            return {}
        names = [self.ratings.name(state, self.words) for state in range(1, len(self.ratings.labels) + 1)]
        return {"labelExpr": f"{json.dumps(names, ensure_ascii=False)}[{field} - 1]"}

    @property
    def letters(self) -> int:
        """Width of the longest name of a rating, in letters; 0 where ratings are numbers."""
        names = (self.ratings.name(state, self.words) for state in range(1, len(self.ratings.labels) + 1))
        wide = 0 if self.ratings.numbered else max(map(cell_len, names))
        return min(wide, MOST_LETTERS)


@dataclass(frozen=True)
class Chart:
    """Layers over each other on the same rows; ``height`` in pixels, or a step for each row."""

    layers: Sequence[Spec]
    rows: Rows
    width: float
    height: float | Spec


@dataclass(frozen=True)
class Band:
    """An interval behind a line or a point: the fields of its ends, its words, the look of its mark, its rows."""

    low: str
    high: str
    name: str
    look: Mapping[str, Any]
    where: str = ""


# Texts


def isolate_name(name: str) -> str:
    """A name that data gave, within a sentence: on one line, and the rest of the sentence keeps its direction."""
    shown = "".join(" " if unicodedata.category(letter) in NO_TEXT else letter for letter in name)
    shown = " ".join("".join(letter for letter in shown if letter not in CONTROLS).split())
    turned = any(unicodedata.bidirectional(letter) in TO_THE_LEFT for letter in shown)
    return ISOLATED.format(shown) if turned else shown


def say_yes(value: bool, words: Words) -> str:
    """Yes or no."""
    return words("mark.yes") if value else words("mark.no")


def count_items(counts: Iterable[tuple[str, str]], words: Words) -> str:
    """Names with their counts in one line: 'z-score (3), Box-Cox (2)'."""
    return join_names((words("figure.item", name=name, count=count) for name, count in counts), words)


def place_model(model: ModelPart, words: Words) -> dict[str, Any]:
    """The case and the method of a model, for the places of a sentence."""
    return {"case": isolate_name(model.case), "method": name_method(model.method, words)}


def list_caveats(model: ModelPart, words: Words) -> str:
    """Sentences for a model that is not certified, and so has no bands, or that was not chosen."""
    method = name_method(model.method, words)
    return join_sentences(
        (
            "" if model.certified else words("figure.curve.uncertified"),
            "" if model.chosen else words("figure.curve.not_chosen", method=method),
        ),
        words,
    )


# Methods and cases of a study


def list_methods(document: Document, found: Iterable[str] | None = None) -> list[str]:
    """The study's methods in their order, and whatever else has trials or serves; or only those ``found``."""
    served = (one.method for one in document.answers if one.method is not None)
    every = dict.fromkeys((*document.study.methods, *(trial.method for trial in document.trials), *served))
    wanted = every if found is None else set(found)
    return [method for method in every if method in wanted]


def list_cases(document: Document) -> list[str]:
    """The cases in the document's order."""
    return [case.case for case in document.cases]


def method_scales(
    document: Document, shown: Sequence[str], theme: Theme, last: tuple[str, str, str] | None = None
) -> tuple[Spec, Spec]:
    """Colours and shapes of some methods by their names; ``last`` is name, colour, shape of what comes after."""
    among = list_methods(document)
    places = [place_of(method, among) for method in shown]
    rows = [
        (name_method(method, theme.words), theme.palette.methods[place], SHAPES[place])
        for method, place in zip(shown, places, strict=True)
    ]
    rows += [] if last is None else [last]
    names, colours, shapes = ([row[n] for row in rows] for n in range(3))
    return {"domain": names, "range": colours}, {"domain": names, "range": shapes}


# Layers and their encodings


def layer(
    mark: str,
    encoding: Mapping[str, Any],
    *,
    where: str = "",
    rows: Rows | None = None,
    transform: Sequence[Spec] = (),
    **look: Any,
) -> Spec:
    """A mark with its theme; ``where`` filters the chart's rows, ``rows`` stand in their place."""
    spec: Spec = {"mark": {"type": mark, **look}, "encoding": dict(encoding)}
    if rows is not None:
        spec["data"] = {"values": rows}
    steps = [*([{"filter": where}] if where else []), *transform]
    return spec | ({"transform": steps} if steps else {})


def quantity(field: str, **more: Any) -> Spec:
    """An encoding by a number of the rows."""
    return {"field": field, "type": "quantitative", **more}


def category(field: str, **more: Any) -> Spec:
    """An encoding by a text or a state of the rows."""
    return {"field": field, "type": "nominal", **more}


def span(axis: str, low: str, high: str, /, **more: Any) -> Spec:
    """Encodings of both ends of an interval along x or y."""
    return {axis: quantity(low, **more), f"{axis}2": {"field": high}}


def datum(value: float, **more: Any) -> Spec:
    """An encoding by one number for all rows."""
    return {"datum": value, "type": "quantitative", **more}


def tips(words: Words, *fields: str) -> list[Spec]:
    """Tooltips of fields that are texts already; the title of ``x`` and ``x_text`` is figure.tip.x."""
    return [category(one, title=words(f"figure.tip.{one.removesuffix('_text')}")) for one in fields]


def dim(opacity: float = 1.0) -> Spec:
    """Opacity of a mark: faint where another case is picked."""
    return {"value": opacity, "condition": {"test": _OTHER_CASE, "value": FAINT}}


def legend(columns: int = 4, title: str | None = None, orient: Side = "top", **more: Any) -> Spec:
    """Above the chart or below it, where it costs no width."""
    return {"title": title, "orient": orient, "columns": columns, **more}


def shorten(value: float) -> float:
    """A number with as many digits as a picture can show: specs are a good part of the page's size."""
    return float(f"{value:.{DIGITS}g}")


def shorten_ends(low: float | None, high: float | None, names: tuple[str, str] = ("low", "high")) -> Spec:
    """The ends of an interval as fields of a row; none where one is missing."""
    return {} if low is None or high is None else {names[0]: shorten(low), names[1]: shorten(high)}


# Axes and scales


def case_axis(cases: Sequence[str]) -> Spec:
    """A row for each case, in the document's order."""
    axis = name_axis(CASE_LABELS, labelExpr=_SHORTEN, labelLimit=CASE_LABELS - 8, labelPadding=6)
    return category("case", scale={"domain": list(cases)}, sort=None, axis=axis)


def name_axis(extent: int, **more: Any) -> Spec:
    """An axis of names, of a fixed width."""
    return {"title": None, "minExtent": extent, "maxExtent": extent, "ticks": False, "domain": False, **more}


def number_axis(title: str, letters: int = 0, **more: Any) -> Spec:
    """An axis with numbers, of a fixed width, so that the panel's width is known; wider for long ``values``.

    ``letters`` are those of the longest label where it is no number.
    """
    longest = max((len(f"{value:g}") for value in more.get("values", ())), default=letters)
    longest = max(longest, letters)
    extent = max(NUMBER_LABELS - 16, round(longest * LETTER) + 8)
    return {"title": title, "minExtent": extent, "maxExtent": extent, **more}


def year_axis(words: Words, last: float) -> Spec:
    """Years from now, all of them on the axis: its scale and its theme."""
    axis: Spec = {"title": words("figure.axis.years"), "tickCount": 6, "grid": False}
    return {"axis": axis, "scale": {"domain": [0, last], "nice": False}}


def log_scale(low: float, high: float) -> Spec:
    """A logarithmic scale between two numbers."""
    return {"type": "log", "domain": [shorten(low), shorten(high)], "nice": False}


def choose_scale(values: Sequence[float], limit: float = 10.0) -> Spec:
    """Linear without zero; logarithmic where the largest is many times the smallest."""
    low, high = min(values), max(values)
    if low > 0 and high > limit * low:
        return {"type": "log", "nice": False, "padding": 10}
    return {"zero": False, "nice": True, "padding": 6}


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


# Bands, and lines over the years


def draw_bands(
    mark: str, bands: Sequence[Band], axis: str, base: Spec, along: Spec, theme: Theme, columns: int = 1
) -> list[Spec]:
    """Bands as areas or bars, the first the strongest and on top; ``along`` is their scale and axis on x or y."""
    colours = [theme.palette.band, theme.palette.haze]
    fill = category(
        "band",
        scale={"domain": [one.name for one in bands], "range": colours[: len(bands)]},
        legend=legend(columns, None, "bottom", labelLimit=400, symbolType="square", symbolStrokeWidth=0),
    )
    return [
        layer(
            mark,
            base | span(axis, one.low, one.high, **along) | {"fill": fill},
            where=one.where,
            transform=[{"calculate": json.dumps(one.name), "as": "band"}],
            **one.look,
        )
        for one in reversed(bands)
    ]


def draw_line(
    middle: str,
    bands: Sequence[Band],
    rows: Rows,
    y: Spec,
    fields: Sequence[str],
    theme: Theme,
    *,
    beyond: float | None = None,
    side: Side = "top",
    columns: int = 1,
) -> Chart:
    """A line over the years within its bands, and tooltips by year.

    From ``beyond`` on, where covariates leave the training rows, the ground is shaded and says so at ``side``.
    """
    words, palette, last = theme.words, theme.palette, rows[-1]["year"]
    years = year_axis(words, last)
    base = {"x": quantity("year", **years)}
    ground, label = [], []
    if beyond is not None and beyond < last:
        ends = [{"year": shorten(beyond), "last": last}]
        ground = [layer("rect", base | {"x2": {"field": "last"}}, rows=ends, color=palette.failed, opacity=0.4)]
        place = {"x": quantity("last", **years), "y": {"value": 5 if side == "top" else HEIGHT - 5}}
        text: Spec = {"text": words("figure.beyond"), "align": "right", "baseline": side, "dx": -5, "fontSize": 10}
        label = [layer("text", place, rows=[{"last": last}], color=palette.muted, **text)]
    line = layer("line", base | {"y": quantity(middle, **y)}, strokeWidth=2.2, color=palette.accent)
    shown = draw_bands("area", bands, "y", base, y, theme, columns)
    layers = [*ground, *shown, *label, line, draw_hover(base, tips(words, *fields), palette)]
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def draw_hover(base: Spec, tooltip: Sequence[Spec], palette: Palette, transform: Sequence[Spec] = ()) -> Spec:
    """An unseen rule at each year, which answers the pointer."""
    encoding = base | {"tooltip": list(tooltip)}
    return layer("rule", encoding, transform=transform, strokeWidth=HOVER, opacity=0, color=palette.ink)


# Stamps, panels, figures


def stamp(chart: Chart, theme: Theme, *, certified: bool, chosen: bool = True) -> Chart:
    """Write NOT CERTIFIED or NOT CHOSEN across a chart: a picture is copied without its caption."""
    if certified and chosen:
        return chart
    text = theme.words("figure.stamp.not_chosen" if certified else "figure.stamp.not_certified")
    assert not isinstance(chart.height, dict)
    places = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.72 for letter in text)
    mark = layer(
        "text",
        {"x": {"value": chart.width / 2}, "y": {"value": chart.height / 2}},
        rows=[{}],
        text=text,
        style=STAMP,
        angle=STAMP_ANGLE,
        fontSize=shorten(min(STAMP_SIZE, 1.2 * chart.width / max(places, 1))),
        fontWeight="bold",
        opacity=STAMP_OPACITY,
        color=theme.palette.bad,
    )
    # what answers the pointer stays the topmost
    return replace(chart, layers=(*chart.layers[:-1], mark, *chart.layers[-1:]))


def make_figure(
    key: str,
    panels: Iterable[tuple[str, str, str, Chart | None]],
    caption: Iterable[str],
    theme: Theme,
    place: Mapping[str, Any] | None = None,
    *,
    name: str = "",
    model: ModelPart | None = None,
    case: str | None = None,
    certified: bool = True,
) -> FigureView | None:
    """Panels (name, title, alternative text, chart) under a caption; None where nothing is drawn.

    The title is figure.KEY.title with ``place`` filled in. The figure of a ``model`` belongs to its case; where it
    is not certified, or was not chosen, every chart is stamped.
    """
    chosen = True
    if model is not None:
        case, certified, chosen = model.case, model.certified, model.chosen
    drawn = tuple(
        PanelView(one, title, text, finish(stamp(chart, theme, certified=certified, chosen=chosen), theme.palette))
        for one, title, text, chart in panels
        if chart is not None
    )
    if not drawn:
        return None
    title = theme.words(f"figure.{key}.title", **place or {})
    return FigureView(name or key, title, join_sentences(caption, theme.words), drawn, case)


def finish(chart: Chart, palette: Palette) -> Spec:
    """A chart as Vega-Lite with its style; where it has cases, with the parameter that the page sets."""
    spec: Spec = {
        "$schema": alt.SCHEMA_URL,
        "config": style(palette),
        "data": {"values": chart.rows},
        "height": chart.height,
        "layer": list(chart.layers),
        "width": chart.width,
    }
    if any("case" in row for row in chart.rows):
        spec["params"] = [{"name": PICKED, "value": ""}]
    return spec


def style(palette: Palette) -> Spec:
    """Type, colours and lines that all charts have."""
    ink, quiet = palette.ink, palette.muted
    text: Spec = {
        "labelColor": ink,
        "titleColor": ink,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    }
    return {
        "background": palette.background,
        "font": palette.font,
        "padding": 4,
        "aria": False,  # the page has one sentence for the whole chart
        "view": {"stroke": None},
        "axis": text | {"gridColor": palette.line, "domainColor": quiet, "tickColor": quiet, "tickSize": 4},
        "axisX": {"labelFlush": False, "labelOverlap": True, "labelSeparation": 6},
        "legend": text
        | {
            "labelLimit": 220,
            "symbolSize": 70,
            "columnPadding": 12,
            "rowPadding": 3,
            "padding": 0,
            "offset": 8,
            # From the right: a wide legend then reaches over the labels at the left, not beyond the panel.
            # Vega-Lite hands this on to Vega, although its schema does not have it.
            "layout": {"top": {"anchor": "end"}, "bottom": {"anchor": "end"}},
        },
        "text": {"color": ink, "fontSize": 11},
        "title": {"color": ink, "fontSize": 12, "fontWeight": "normal", "anchor": "start", "offset": 6},
    }
