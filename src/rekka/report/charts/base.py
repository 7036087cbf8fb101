"""Building blocks of the charts: colours, texts, scales, axes, layers, and the finished Vega-Lite.

A chart is plain Vega-Lite: a layer is a mark with its encoding (``layer``), ``Chart`` holds layers over the same
rows, ``make_figure`` adds style and words. The tests check every chart against Altair's schema.

Colours come as variables of the page, light and dark, and as one set for files on white paper. Method colours
are the Okabe-Ito hues, darker or lighter, until a mark has a contrast of 3:1 to its surface; text has 4.5:1.
Green is z-score, as in the paper's figures. Every method has its own shape, too: colour is never alone in saying
which is which. Ratings run from blue, the best, to what stands out most from the surface, the worst, in even steps
of lightness, so that colour-blind readers see their order. Cells of heat maps have one ramp (cividis) in both
modes.

Vega would measure texts with the fonts of the machine that draws; a reader's may be wider. So axes have room for
labels that are known beforehand, and keys (``Entry``) are laid out here, by the widths of a wide font.

Text from a study, as the name of a case, is data in a chart and never part of an expression.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import altair as alt
from rich.cells import cell_len, set_cell_size

from rekka.core.ratings import Ratings
from rekka.report.colours import CSS_VARIABLES as CSS_VARIABLES
from rekka.report.document import Document, ModelPart
from rekka.report.text import Words, join_names, join_sentences, name_method
from rekka.report.views import FigureView, PanelView

PAGE_FONT = "system-ui, sans-serif"
PRINT_FONT = "Liberation Sans"  # the only family that vl-convert brings along

SHADES = 10  # of ratings
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

    ``states`` are those of ten ratings; fewer take some of them (``colour_state``).

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
    states: tuple[str, ...]
    font: str
    background: str


_METHOD_VARIABLES = tuple(f"--method-{name}" for name in FIXED + FURTHER)
_STATE_VARIABLES = tuple(f"--state-{place}" for place in range(1, SHADES + 1))
_ROLES = ("ink", "muted", "line", "surface", "accent", "band", "haze", "failed", "good", "bad")

PAGE = Palette(
    **{role: f"var(--{role})" for role in _ROLES},
    methods=tuple(f"var({name})" for name in _METHOD_VARIABLES),
    states=tuple(f"var({name})" for name in _STATE_VARIABLES),
    font=PAGE_FONT,
    background="transparent",
)
PRINT = Palette(
    **{role: CSS_VARIABLES[f"--{role}"][0] for role in _ROLES},
    methods=tuple(CSS_VARIABLES[name][0] for name in _METHOD_VARIABLES),
    states=tuple(CSS_VARIABLES[name][0] for name in _STATE_VARIABLES),
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


def colour_state(state: int, states: int, palette: Palette) -> str:
    """Colour of one of so many ratings; from the eleventh on some have the same."""
    return palette.states[round((state - 1) / max(states - 1, 1) * (SHADES - 1))]


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

WIDTH = 440  # of a panel, all in all, in pixels: two stand beside each other on a screen, one on a phone
PRINTED = 680  # pixels of two panels side by side: 180 mm, the width of a page of two columns
SPACING = 16  # pixels between them
LESS = WIDTH - (PRINTED - SPACING) // 2  # pixels that a panel has less on paper
RIGHT = 14  # free at the right edge, for half of the last label
FONT, SMALL, TITLE_FONT = 12, 11, 13  # pixels of letters
TITLE = 20  # pixels for the title of an axis
TICK = 8  # pixels between the labels of an axis and its plot
BELOW = 52  # pixels below a plot for the labels and the title of its axis
ABOVE, HEAD = 8, 20  # above a plot for half of a label, for a line of words
CASE_LABELS = 136  # pixels for the names of cases
CASE_WIDTH = WIDTH - CASE_LABELS - RIGHT  # of a plot beside them
HEIGHT = 250  # of a plot over the years
HOVER = 12  # pixels around a year in which its tooltip appears
LONGEST_NAME = 24  # letters of a case's name at an axis; the tooltip has all of it
ROW = 24  # pixels for a case
KEY_ROW, KEY_SYMBOL, KEY_GAP = 18, 14, 16  # pixels of a line of a key, for a symbol, between entries
KEY, FRAME = "key", "frame"  # styles by which the layers of a key, and the frame, are known
BESIDE = 0.3  # of an axis of differences, at least, on either side of zero
LEADER = 10  # pixels from the end of a line to its label
LABEL_ROW = 14  # pixels between labels at the ends of lines
DIGITS = 6  # significant, in the data of a chart
SHADE = 0.16  # opacity of the ground beyond the training rows
FEWEST, CLOSE = 3, 5  # ticks of a logarithmic axis, at least; of a short one, at most
SLACK = 1e-9  # of a number of steps
CALENDAR = 1000.0  # years from here on are those of a calendar
MOST_LETTERS = 26  # of a rating at an axis
NAME_WIDTH = 92  # pixels of its lines
MANY_RATINGS, SHORT = 5, 14  # more ratings than that have so many letters at most
PICKED = "picked"  # the case that the reader points at, "" for none: the page sets it
FAINT = 0.15  # opacity of other cases then
STOPS = ".\N{IDEOGRAPHIC FULL STOP}"  # which a title has none of at its end
STAMP = "stamp"  # the style by which a text across a chart is known
STAMP_SIZE, STAMP_ANGLE, STAMP_OPACITY = 38, 342, 0.3  # pixels, degrees
# Directional controls of Unicode, which turn around what follows them (UAX 9, 2)
CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
NO_TEXT = ("Cc", "Cs", "Zl", "Zp")  # categories: controls, halves of pairs, ends of lines
TO_THE_LEFT = ("R", "AL", "AN")  # directions of letters and figures that are written so
ISOLATED = "\N{FIRST STRONG ISOLATE}{}\N{POP DIRECTIONAL ISOLATE}"
# Widths of letters in ems, of DejaVu Sans: few fonts of screens are wider
NARROW_LETTERS, NARROW, WIDE_LETTERS, WIDE = frozenset("iljtfI.,:;'|!()[] "), 0.38, frozenset("mwMW%@"), 0.97
CAPITAL, LETTER = 0.68, 0.62

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

# Parts of a text that a line holds together: words, what is in brackets, a run of katakana, a letter that is wide
_PARTS = re.compile(
    "\uff08[^\uff09]*\uff09|[\u30a0-\u30ff]+|[\u3000-\u309f\u3400-\u9fff\uff00-\uffef]"
    "| +|[^ \u3000-\u30ff\u3400-\u9fff\uff00-\uffef]+"
)
EVEN = 1.15
BROKEN = r"split(datum.value, '\n')"  # labels of several lines
_OTHER_CASE = f"{PICKED} != '' && datum.case != {PICKED}"
_SHORTEN = f"length(datum.value) > {LONGEST_NAME} ? slice(datum.value, 0, {LONGEST_NAME - 1}) + '…' : datum.value"


NUMBERS = Ratings(())  # ratings that are the numbers of the states


@dataclass(frozen=True)
class Theme:
    """Language and colours of a set of charts."""

    words: Words
    palette: Palette
    ratings: Ratings = NUMBERS  # that the states are

    def name_states(self, width: float = NAME_WIDTH, most: int = MOST_LETTERS) -> Spec:
        """Labels of an axis of states, as ``list_names`` has them: nothing where they are numbers."""
        if self.ratings.numbered:
            return {}
        names = [name.split("\n") for name in self.list_names(len(self.ratings.labels), width, most)]
        return {"labelExpr": f"{json.dumps(names, ensure_ascii=False)}[datum.value - 1]"}

    def list_names(self, states: int, width: float = NAME_WIDTH, most: int = MOST_LETTERS) -> list[str]:
        """Names of the ratings of so many states: cut to so many letters, in lines of so many pixels.

        Where there are many, each has one short line.
        """
        if len(self.ratings.labels) > MANY_RATINGS:
            width, most = math.inf, SHORT
        names = (self.ratings.name(state, self.words) for state in range(1, states + 1))
        return [break_text(cut_name(name, most), width) for name in names]


@dataclass(frozen=True)
class Entry:
    """An entry of a key: its text, and the colour and shape of its symbol; with a ``dash`` that is a line."""

    text: str
    colour: str
    shape: str = "square"
    dash: tuple[int, ...] = ()
    filled: bool = True


@dataclass(frozen=True)
class Chart:
    """Layers over each other on the same rows, with a key below.

    ``left`` are the pixels beside the plot, where the key begins, ``below`` those under it that the axis takes;
    ``above`` what stands over it; ``across`` is the width of it all.
    """

    layers: Sequence[Spec]
    rows: Rows
    width: float
    height: float
    left: float = 0.0
    key: Sequence[Entry] = ()
    below: float = BELOW
    above: float = ABOVE
    across: float = WIDTH


@dataclass(frozen=True)
class Band:
    """An interval behind a line or a point: the fields of its ends, its words, its colour and look, its rows."""

    low: str
    high: str
    name: str
    colour: str
    look: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""


# Texts


def measure(text: str, size: float = FONT) -> float:
    """Pixels of a text, rather too many than too few."""
    return size * sum(_measure_letter(letter) for letter in text)


def _measure_letter(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in NARROW_LETTERS:
        return NARROW
    return WIDE if letter in WIDE_LETTERS else CAPITAL if letter.isupper() else LETTER


def break_text(text: str, width: float, size: float = FONT) -> str:
    """A text in lines of at most so many pixels, as far as words allow; between any letters that are wide."""
    lines, whole = [""], measure(text, size)
    wanted = EVEN * whole / max(math.ceil(whole / width), 1)  # lines of about one length
    for part in _PARTS.findall(text):
        if lines[-1].strip() and measure((lines[-1] + part).strip(), size) > min(width, wanted):
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return "\n".join(line.rstrip() for line in lines)


def cut_name(name: str, most: int = MOST_LETTERS) -> str:
    """A name with an ellipsis where it is longer than an axis has room for."""
    return name if cell_len(name) <= most else set_cell_size(name, most - 1).rstrip() + ELLIPSIS


def cut_text(text: str, width: float, size: float = FONT) -> str:
    """A text with an ellipsis where it has more than so many pixels."""
    if measure(text, size) <= width:
        return text
    while text and measure(text + ELLIPSIS, size) > width:
        text = text[:-1]
    return text.rstrip() + ELLIPSIS


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


def method_scales(document: Document, shown: Sequence[str], theme: Theme) -> tuple[Spec, Spec, list[Entry]]:
    """Colours and shapes of some methods by their names, and the entries of their key."""
    among = list_methods(document)
    entries = [
        Entry(name_method(method, theme.words), theme.palette.methods[place], SHAPES[place])
        for method in shown
        for place in [place_of(method, among)]
    ]
    names = [one.text for one in entries]
    colours = {"domain": names, "range": [one.colour for one in entries]}
    return colours, {"domain": names, "range": [one.shape for one in entries]}, entries


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


def number_axis(title: str | None, labels: Iterable[str], **more: Any) -> Spec:
    """An axis beside a plot, as wide as the longest line of its labels."""
    lines = (line for label in labels for line in label.split("\n"))
    extent = math.ceil(max(map(measure, lines), default=0.0)) + TICK
    return {"title": title, "minExtent": extent, "maxExtent": extent, **more}


def find_room(axis: Spec) -> float:
    """Pixels that such an axis takes beside its plot."""
    return float(axis["maxExtent"]) + (TITLE if axis["title"] else 0)


@dataclass(frozen=True)
class Ticks:
    """The ends of a linear axis and its ticks, with as many decimals as tell one from the next."""

    low: float
    high: float
    values: tuple[float, ...]
    digits: int

    @property
    def labels(self) -> list[str]:
        """Labels of the ticks."""
        return [f"{value:,.{self.digits}f}" for value in self.values]

    def scale(self) -> Spec:
        """The scale."""
        return {"domain": [self.low, self.high], "nice": False, "zero": False}

    def look(self) -> Spec:
        """Ticks and their format, as an axis has them."""
        return {"values": list(self.values), "format": f",.{self.digits}f"}

    def beside(self, title: str, **more: Any) -> Spec:
        """Scale and axis beside a plot."""
        return {"scale": self.scale(), "axis": number_axis(title, self.labels, **self.look(), **more)}

    def under(self, title: str, **more: Any) -> Spec:
        """Scale and axis under a plot."""
        return {"scale": self.scale(), "axis": {"title": title, **self.look(), **more}}


def find_ticks(low: float, high: float, *, most: int = 6, least: float = 0.0, snap: bool = True) -> Ticks:
    """Round ticks of an axis from ``low`` to ``high``, or of one ``least`` wide around them.

    With ``snap`` the axis ends at ticks.
    """
    missing = least - (high - low)
    if missing > 0:
        low, high = low - missing / 2, high + missing / 2
    width = high - low or 1.0
    power = math.floor(math.log10(width / most))
    step, decimals = next(
        (one * 10.0**p, max(-p, 0))
        for p in (power, power + 1)
        for one in (1, 2, 5)
        if width / (one * 10.0**p) <= most * (1 + SLACK)
    )
    first, last = math.floor(low / step + SLACK), math.ceil(high / step - SLACK)
    if not snap:
        first, last = math.ceil(low / step - SLACK), math.floor(high / step + SLACK)
    values = tuple(shorten(place * step) for place in range(first, last + 1))
    return Ticks(*((values[0], values[-1]) if snap else (shorten(low), shorten(high))), values, decimals)


def year_axis(title: str, first: float, last: float) -> Spec:
    """Years from the first to the last: scale and axis; years of the calendar have no commas."""
    ticks = find_ticks(first, last, snap=False)
    if first < CALENDAR:
        return ticks.under(title, grid=False)
    values = [value for value in ticks.values if value == round(value)]
    return {"scale": ticks.scale(), "axis": {"title": title, "values": values, "format": "d", "grid": False}}


def log_scale(low: float, high: float) -> Spec:
    """A logarithmic scale between two numbers."""
    return {"type": "log", "domain": [shorten(low), shorten(high)], "nice": False}


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2, 5; 1, 3; or powers of ten, as many as fit.

    On a short axis, with less than three of 1, 2, 5, they are at even steps.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0**power for power in range(first, last + 1) for s in steps]
        ticks = [shorten(tick) for tick in ticks if low <= tick * (1 + 1e-9) and tick <= high * (1 + 1e-9)]
        if len(ticks) < FEWEST:
            return list(find_ticks(low, high, most=CLOSE, snap=False).values)
        if len(ticks) <= most:
            return ticks
    return ticks[:: math.ceil(len(ticks) / most)]


# Bands, lines over the years, labels at their ends


def draw_bands(mark: str, bands: Sequence[Band], axis: str, base: Spec, along: Spec) -> list[Spec]:
    """Bands as areas or bars, the first on top; ``along`` is their scale and axis on x or y."""
    return [
        layer(mark, base | span(axis, one.low, one.high, **along), where=one.where, color=one.colour, **one.look)
        for one in reversed(bands)
    ]


def draw_edges(band: Band, base: Spec, y: Spec, colour: str, **look: Any) -> list[Spec]:
    """The edges of a band as thin lines: it can be seen where it is hardly wider than the one on top of it."""
    return [
        layer("line", base | {"y": quantity(end, **y)}, where=band.where, color=colour, **look)
        for end in (band.low, band.high)
    ]


def list_bands(bands: Sequence[Band]) -> list[Entry]:
    """Entries of bands for a key."""
    return [Entry(one.name, one.colour) for one in bands]


def draw_ground(beyond: float | None, x: Spec, last: float, theme: Theme, *, named: bool = True) -> list[Spec]:
    """A shade with an edge from ``beyond`` on, where covariates leave the training rows; its words above the plot.

    It lies over the bands, which would hide it.
    """
    if beyond is None or beyond >= last:
        return []
    ends, palette = [{"year": shorten(beyond), "last": last}], theme.palette
    edge = {"x": quantity("year", **x)}
    drawn = [
        layer("rect", edge | {"x2": {"field": "last"}}, rows=ends, color=palette.muted, opacity=SHADE),
        layer("rule", edge, rows=ends, color=palette.muted, strokeWidth=1, strokeDash=[1, 2]),
    ]
    if named:
        place = {"x": quantity("last", **x), "y": {"value": -4}}
        text: Spec = {"text": theme.words("figure.beyond"), "align": "right", "baseline": "bottom"}
        drawn.append(layer("text", place, rows=[{"last": last}], color=palette.muted, fontSize=SMALL, **text))
    return drawn


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least ``gap`` apart, in their order and near where they were, between ``low`` and ``high``."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    found = [0.0] * len(places)
    edge = low
    for n in order:
        found[n] = edge = max(places[n], edge)
        edge += gap
    edge = high
    for n in reversed(order):
        found[n] = edge = min(found[n], edge)
        edge -= gap
    return found


@dataclass(frozen=True)
class End:
    """The label of a line at its end: its text, pixels from the top of the plot, the line's colour."""

    text: str
    at: float
    colour: str


def find_end_room(ends: Iterable[str]) -> float:
    """Pixels that labels of lines take at the right of a plot."""
    lines = (line for text in ends for line in text.split("\n"))
    return LEADER + 4 + max((measure(line, SMALL) for line in lines), default=0.0)


def label_ends(ends: Sequence[End], x: Spec, last: float, height: float, colour: str) -> list[Spec]:
    """Labels at the right of a plot, each with a short line from the end of what it names."""
    gap = LABEL_ROW * max(one.text.count("\n") + 1 for one in ends)
    places = spread([one.at for one in ends], min(gap, height / len(ends)), 0.0, height)
    rows: Rows = [
        {"last": last, "at": round(one.at, 1), "to": round(to, 1), "text": one.text, "colour": one.colour}
        for one, to in zip(ends, places, strict=True)
    ]
    base = {"x": quantity("last", **x)}
    own = {"color": category("colour", scale=None)}
    line = base | own | {"x2": {"field": "last"}, "y": quantity("at", scale=None), "y2": {"field": "to"}}
    text = base | {"y": quantity("to", scale=None), "text": category("text")}
    lines: Spec = {"lineBreak": "\n", "baseline": "middle"}
    return [
        layer("rule", line, rows=rows, xOffset=2, x2Offset=LEADER, strokeWidth=1.6),
        layer("text", text, rows=rows, align="left", dx=LEADER + 3, fontSize=SMALL, color=colour, **lines),
    ]


def draw_hover(base: Spec, tooltip: Sequence[Spec], palette: Palette, transform: Sequence[Spec] = ()) -> Spec:
    """An unseen rule at each year, which answers the pointer."""
    encoding = base | {"tooltip": list(tooltip)}
    return layer("rule", encoding, transform=transform, strokeWidth=HOVER, opacity=0, color=palette.ink)


# Differences of scores


def draw_differences(
    rows: Rows,
    cases: Sequence[str],
    title: str,
    sides: tuple[str, str],
    least: float,
    fields: Sequence[str],
    theme: Theme,
) -> Chart:
    """A row for each case: a paired difference with its interval, and in figures; zero is no difference.

    Rows have a ``verdict``, or a ``note`` where there is no difference; ``sides`` are words left and right of
    zero, ``least`` is the width of the axis at least, ``fields`` are those of the tooltips.
    """
    words, palette = theme.words, theme.palette
    numbers = [row[name] for row in rows for name in ("difference", "low", "high") if name in row]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    aside = BESIDE * max(high - low, least)  # room for words on either side of zero
    ticks = find_ticks(min(low, -aside), max(high, aside), most=5, least=least)
    x = ticks.under(title)
    base = {"y": case_axis(cases), "opacity": dim(), "tooltip": tips(words, *fields)}
    looks: dict[str, tuple[str, Spec]] = {
        "better": (palette.good, {"filled": True, "shape": "circle", "size": 70}),
        "unclear": (palette.muted, {"filled": False, "shape": "circle", "size": 60, "fill": palette.surface}),
        "worse": (palette.bad, {"filled": True, "shape": "diamond", "size": 80}),
    }
    layers = [layer("rule", {"x": datum(0, **x)}, rows=[{}], color=palette.muted, strokeWidth=1.2)]
    key = []
    for verdict, (colour, look) in looks.items():
        own = f"datum.verdict == '{verdict}'"
        if not any(row.get("verdict") == verdict for row in rows):
            continue
        bar = base | span("x", "low", "high", **x)
        layers.append(layer("rule", bar, where=f"{own} && isValid(datum.low)", color=colour, strokeWidth=2))
        point = base | {"x": quantity("difference", **x)}
        layers.append(layer("point", point, where=own, color=colour, opacity=1, strokeWidth=1.8, **look))
        key.append(Entry(words(f"figure.verdict.{verdict}"), colour, look["shape"], filled=look["filled"]))
    place = {"y": base["y"], "opacity": dim()}
    label = place | {"x": datum(ticks.high, **x), "text": category("label")}
    layers.append(layer("text", label, where="isValid(datum.label)", align="left", dx=8, fontSize=SMALL))
    if any("note" in row for row in rows):
        note = place | {"x": {"value": 4}, "text": category("note")}
        quiet: Spec = {"align": "left", "fontSize": SMALL, "color": palette.muted}
        layers.append(layer("text", note, where="isValid(datum.note)", **quiet))
    for side, text, shift in zip(("right", "left"), sides, (-6, 6), strict=True):
        head: Spec = {"align": side, "baseline": "bottom", "dx": shift, "fontSize": SMALL, "color": palette.muted}
        layers.append(layer("text", {"x": datum(0, **x), "y": {"value": -4}}, rows=[{}], text=text, **head))
    right = 12 + max((measure(row["label"], SMALL) for row in rows if "label" in row), default=0.0)
    width = WIDTH - CASE_LABELS - right
    height = len(cases) * ROW
    return Chart(layers, rows, width=width, height=height, left=float(CASE_LABELS), key=key, above=HEAD)


# Stamps, panels, figures


def stamp(chart: Chart, theme: Theme, *, certified: bool, chosen: bool = True) -> Chart:
    """Write NOT CERTIFIED or NOT CHOSEN across a chart: a picture is copied without its caption."""
    if certified and chosen:
        return chart
    text = theme.words("figure.stamp.not_chosen" if certified else "figure.stamp.not_certified")
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
    name: str,
    title: str,
    panels: Iterable[tuple[str, str, str, Chart | None]],
    caption: Iterable[str],
    theme: Theme,
    *,
    model: ModelPart | None = None,
    case: str | None = None,
    certified: bool = True,
    live: bool = False,
) -> FigureView | None:
    """Panels (name, title, alternative text, chart) under a caption; None where nothing is drawn.

    The title states what is found. The figure of a ``model`` belongs to its case; where it is not certified, or
    was not chosen, every chart is stamped. ``live`` figures answer the pointer.
    """
    chosen = True
    if model is not None:
        case, certified, chosen = model.case, model.certified, model.chosen
    charts = [(one, heading, text, chart) for one, heading, text, chart in panels if chart is not None]
    above = max((chart.above for _, _, _, chart in charts), default=0.0)
    drawn = []
    for one, heading, text, chart in charts:
        marked = stamp(replace(chart, above=above), theme, certified=certified, chosen=chosen)
        drawn.append(PanelView(one, heading, text, finish(marked, theme.palette)))
    if not drawn:
        return None
    return FigureView(name, title.rstrip(STOPS), join_sentences(caption, theme.words), tuple(drawn), case, live)


def finish(chart: Chart, palette: Palette) -> Spec:
    """A chart as Vega-Lite with its style; where it has cases, with the parameter that the page sets."""
    spec: Spec = {
        "$schema": alt.SCHEMA_URL,
        "config": style(palette),
        "data": {"values": chart.rows},
        "height": chart.height,
        "layer": [_frame(chart), *chart.layers, *_draw_key(chart, palette)],
        "width": chart.width,
    }
    if any("case" in row for row in chart.rows):
        spec["params"] = [{"name": PICKED, "value": ""}]
    return spec


def _frame(chart: Chart) -> Spec:
    """An unseen frame: a picture is as wide as its labels may be in a wide font, plots of a figure stand level."""
    edges = {"x": -chart.left, "x2": chart.across - chart.left, "y": -chart.above, "y2": chart.height}
    places = {name: {"value": round(value, 1)} for name, value in edges.items()}
    return layer("rect", places, rows=[{}], style=FRAME, opacity=0)


def _draw_key(chart: Chart, palette: Palette) -> Iterable[Spec]:
    """The key below a plot: as many entries in a line as fit on paper, in a wide font."""
    if not chart.key:
        return
    rows: Rows = []
    line, at, widest = 0, 0.0, WIDTH - LESS
    for entry in chart.key:
        width = KEY_SYMBOL + measure(entry.text)
        if at and at + width > widest:
            line, at = line + 1, 0.0
        place = {"x": round(at - chart.left + KEY_SYMBOL / 2, 1), "y": chart.height + chart.below + line * KEY_ROW}
        rows.append(place | {"text": entry.text, "colour": entry.colour, "shape": entry.shape})
        at += width + KEY_GAP
    base = {"x": quantity("x", scale=None), "y": quantity("y", scale=None)}
    own = {"color": category("colour", scale=None)}
    kinds: dict[tuple[tuple[int, ...], bool], Rows] = {}
    for row, entry in zip(rows, chart.key, strict=True):
        kinds.setdefault((entry.dash, entry.filled), []).append(row)
    for (dash, filled), some in kinds.items():
        if dash:
            ends: Spec = {"xOffset": -KEY_SYMBOL / 2, "x2Offset": KEY_SYMBOL / 2}
            line_of = base | own | {"x2": {"field": "x"}}
            yield layer("rule", line_of, rows=some, style=KEY, strokeDash=list(dash), strokeWidth=2, **ends)
        else:
            mark = base | own | {"shape": category("shape", scale=None)}
            yield layer("point", mark, rows=some, style=KEY, filled=filled, size=80, opacity=1, strokeWidth=1.6)
    text = base | {"text": category("text")}
    yield layer(
        "text", text, rows=rows, style=KEY, align="left", dx=KEY_SYMBOL / 2 + 4, fontSize=FONT, color=palette.ink
    )


def style(palette: Palette) -> Spec:
    """Type, colours and lines that all charts have."""
    ink, quiet = palette.ink, palette.muted
    text: Spec = {
        "labelColor": ink,
        "titleColor": ink,
        "labelFontSize": FONT,
        "titleFontSize": FONT,
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
        "legend": {"disable": True},
        "text": {"color": ink, "fontSize": FONT},
        "title": {
            "color": ink,
            "fontSize": TITLE_FONT,
            "fontWeight": "bold",
            "anchor": "start",
            "frame": "bounds",
            "offset": 8,
        },
    }
