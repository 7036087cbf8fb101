"""Charts of fitted models: calibration, hazard ratios, and profiles of hazards along each covariate.

A profile covers the central 95 % of the training rows, where there are enough to believe it, with a tick at the
bottom for each percent of them, or each twentieth. Its hazards cover a factor of a thousand at most.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.evaluation.scores import CONFIDENCE
from rekka.fleet.models import CaseModel, split_notes
from rekka.forecast.matrices import describe_intervals
from rekka.forecast.profiles import Profile, find_central
from rekka.report.charts.base import (
    BELOW,
    BROKEN,
    FONT,
    HEAD,
    LESS,
    PRINT,
    RIGHT,
    SHORT,
    SMALL,
    WIDTH,
    Chart,
    End,
    Entry,
    Rows,
    Spec,
    Theme,
    category,
    colour_state,
    cut_name,
    datum,
    find_end_room,
    find_room,
    find_ticks,
    finish,
    isolate_name,
    label_ends,
    layer,
    list_caveats,
    log_scale,
    log_ticks,
    make_figure,
    measure,
    name_axis,
    number_axis,
    place_model,
    quantity,
    shorten,
    shorten_ends,
    span,
    tips,
)
from rekka.report.charts.drawing import combine, draw_svg_file, mark_picture
from rekka.report.document import BinPart, CalibrationPart, Covariate, ModelPart, ProfilePart, RatioPart
from rekka.report.summarize import UNITS
from rekka.report.text import (
    Words,
    join_names,
    load_words,
    name_method,
    show_count,
    show_figure,
    show_level,
    show_number,
    show_p,
    show_range,
)
from rekka.report.views import FigureView, PanelView

SIDE = 300  # pixels: both axes of reliability have the same scale
LABELS = 150  # pixels for covariates
STATES = 18  # pixels between the plot and the states at the right
WIDEST = 20.0  # ratios beyond it, or below its inverse, are cut off with an arrow
ARROWS = {"low": ("left", 1 / WIDEST), "high": ("right", WIDEST)}  # where it points and where it stands
STATE_ROW, BETWEEN = 16, 14  # pixels for a state of a covariate, and between covariates
HEIGHT = 250  # of a profile
RUG = 7  # pixels of a tick
MANY_TIMES = 8.0  # the largest is so many times the smallest: a logarithmic axis
ROOM = 1.3  # times beyond what is shown, on a logarithmic axis
DRAWN = 1e100  # figures beyond it, and below 1 over it, are those of a fit gone wrong, and on no axis
FACTOR = 1000.0  # between the ends of an axis of hazards, at most
GAP = 4  # pixels between labels under bars
SLANT = 30  # degrees, of such labels where they are too long
BAND = 0.12  # opacity: bands of several states lie over each other
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 1], [1, 3], [10, 2, 2, 2, 2, 2])
LINE = 112  # letters over a picture

Number = float | None
Lines = Sequence[Sequence[Number]]  # by value of a covariate, and by state


# Calibration


def draw_calibration(
    part: CalibrationPart, number: str, theme: Theme, level: float = CONFIDENCE
) -> FigureView | None:
    """Reliability beside counts by end state; ``number`` is the case's, ``level`` that of the intervals."""
    words = theme.words
    known = [one for one in _leaving(part) if one.low is not None and one.high is not None]
    held = sum((one.low or 0.0) <= one.forecast <= (one.high or 0.0) for one in known)
    counts = {"held": show_count(held), "bins": show_count(len(known))}
    message = words("figure.calibration.alt_reliability", **counts) if known else ""
    ends = _describe_counts(part, theme)
    panels = (
        ("reliability", words("figure.calibration.panel_reliability"), message, _reliability(part, theme)),
        ("counts", words("figure.calibration.panel_counts"), ends, _end_counts(part, theme)),
    )
    place = {"case": isolate_name(part.case), "method": name_method(part.method, words)}
    caption = (
        words("figure.calibration.caption", rows=show_count(part.rows), **place),
        words("figure.calibration.bars", level=show_level(level)) if known else "",
        "" if part.p_value is None else words("figure.calibration.p_value", p=show_p(part.p_value)),
    )
    title = words("figure.calibration.title" if known else "figure.calibration.title_unknown", **place, **counts)
    return make_figure(f"calibration-{number}", title, panels, caption, theme, case=part.case)


def _leaving(part: CalibrationPart) -> list[BinPart]:
    """Bins of leaving the start state, whatever the end."""
    return [one for one in part.reliability if one.end is None]


def _reliability(part: CalibrationPart, theme: Theme) -> Chart | None:
    """Forecast and observed shares of rows that leave their state, with intervals; on the diagonal they agree."""
    words, palette = theme.words, theme.palette
    rows: Rows = [
        {
            "forecast": shorten(one.forecast),
            "observed": shorten(one.observed),
            "forecast_text": show_number(one.forecast),
            "observed_text": show_number(one.observed),
            "interval": show_range(one.low, one.high, show_number, words),
            "rows": show_count(one.rows),
            **shorten_ends(one.low, one.high),
        }
        for one in _leaving(part)
    ]
    if not rows:
        return None
    largest = max(row[name] for row in rows for name in ("forecast", "observed", "high") if name in row)
    top = min(1.0, max(0.1, math.ceil(largest * 10 - 1e-9) / 10))  # the next tenth
    ticks = find_ticks(0.0, top)
    x, y = ticks.under(words("figure.axis.forecast")), ticks.beside(words("figure.axis.observed"))
    left = find_room(y["axis"])
    base = {
        "x": quantity("forecast", **x),
        "tooltip": tips(words, "forecast_text", "observed_text", "interval", "rows"),
    }
    dashed: Spec = {"color": palette.muted, "strokeDash": [4, 3], "strokeWidth": 1.2}
    bars = base | span("y", "low", "high", **y)
    points = base | {"y": quantity("observed", **y)}
    layers = (
        layer(
            "line",
            {"x": quantity("at", **x), "y": quantity("at", **y)},
            rows=[{"at": 0}, {"at": ticks.high}],
            **dashed,
        ),
        layer("rule", bars, where="isValid(datum.low)", strokeWidth=1.6, color=palette.accent),
        layer("point", points, filled=True, size=60, color=palette.accent, opacity=1),
    )
    return Chart(layers, rows, width=SIDE, height=SIDE, left=left, across=left + SIDE + RIGHT)


def _end_counts(part: CalibrationPart, theme: Theme) -> Chart | None:
    """Rows observed in each end state as bars; dashes where the model expects them to end."""
    words = theme.words
    if not part.by_end:
        return None
    names = [words(f"figure.calibration.{name}") for name in ("observed", "expected")]
    rows = [
        {
            "state": one.state,
            "state_text": theme.ratings.name(one.state, words),
            "observed": one.observed,
            "expected": shorten(one.expected),
            "observed_text": show_count(one.observed),
            "expected_text": show_number(one.expected, 1),
            "residual": show_number(one.residual, 2, signed=True),
        }
        for one in part.by_end
    ]
    ends = [one.state for one in part.by_end]
    most = max(max(one.observed, one.expected) for one in part.by_end)
    y = find_ticks(0.0, most).beside(words("figure.axis.rows"))
    left = find_room(y["axis"])
    end_axis, further = _name_ends(max(ends), (WIDTH - LESS - left - RIGHT) / len(ends) - GAP, theme)
    base = {
        "x": {"field": "state", "type": "ordinal", "scale": {"domain": ends}, "axis": end_axis},
        "tooltip": tips(words, "state_text", "observed_text", "expected_text", "residual"),
    }
    bars, dashes = (base | {"y": quantity(name, **y)} for name in ("observed", "expected"))
    accent, ink = theme.palette.accent, theme.palette.ink
    layers = (
        layer("bar", bars, width={"band": 0.6}, color=accent),
        layer("tick", dashes, thickness=3, orient="horizontal", width={"band": 0.85}, opacity=1, color=ink),
    )
    key = (Entry(names[0], accent), Entry(names[1], ink, dash=(1, 0)))
    return Chart(layers, rows, width=WIDTH - left - RIGHT, height=SIDE, left=left, key=key, below=BELOW + further)


def _name_ends(states: int, width: float, theme: Theme) -> tuple[Spec, float]:
    """An axis of ratings, each in lines of so many pixels, or slanted; and the pixels that this takes more."""
    names = theme.list_names(states, width)
    slanted = any(measure(line) > width for name in names for line in name.split("\n"))
    axis: Spec = {"title": theme.words("figure.axis.end_state"), "labelOverlap": False}
    if not slanted:
        further = max(name.count("\n") for name in names) * FONT
        return axis | {"labelAngle": 0, **theme.name_states(width)}, further
    longest = max(map(measure, theme.list_names(states, math.inf, SHORT)))
    more = math.sin(math.radians(SLANT)) * longest
    return axis | {"labelAngle": -SLANT, **theme.name_states(math.inf, SHORT)}, more


def _describe_counts(part: CalibrationPart, theme: Theme) -> str:
    words = theme.words
    items = (
        words(
            "figure.calibration.count",
            rating=theme.ratings.phrase(one.state, words),
            observed=show_count(one.observed),
            expected=show_number(one.expected, 1),
        )
        for one in part.by_end
    )
    return words("figure.calibration.alt_counts", items=join_names(items, words))


# Hazard ratios


def draw_ratios(
    model: ModelPart, covariates: Sequence[Covariate], number: str, theme: Theme, level: float = CONFIDENCE
) -> FigureView | None:
    """The ratios of a model; ``covariates`` has their units, ``number`` the case's, ``level`` the intervals'."""
    words, chart = theme.words, ratios(model, covariates, theme)
    if chart is None:
        return None
    place = place_model(model, words)
    units = {one.name: one.unit for one in covariates}
    message, known = _describe_ratios(model, theme), any("low" in row for row in chart.rows)
    cut = any(row[f"cut_{end}"] for row in chart.rows for end in ARROWS)
    caption = (
        words("figure.ratios.caption", **place),
        "" if model.chosen else words("figure.curve.not_chosen", **place),
        words("figure.ratios.cut", most=f"{WIDEST:g}", least=f"{1 / WIDEST:g}") if cut else "",
        words("figure.ratios.bars", level=show_level(level)) if known else message,
    )
    panels = [("ratios", words("figure.ratios.panel"), message, chart)]
    title = words("figure.of_case", case=place["case"], text=_say_strongest(model, units, theme))
    return make_figure(f"ratios-{number}", title, panels, caption, theme, model=model)


def ratios(model: ModelPart, covariates: Sequence[Covariate], theme: Theme) -> Chart | None:
    """A row for each covariate and state, on a logarithmic axis around 1; what is beyond it ends in an arrow."""
    words = theme.words
    units = {one.name: one.unit for one in covariates}
    known = [one for one in model.ratios if one.ratio is not None or None not in (one.low, one.high)]
    if not known:
        return None
    rows = [
        _ratio_row(one, units.get(one.covariate), model.references.get(one.covariate), words)
        | {"state_text": cut_name(theme.ratings.name(one.state, words), SHORT)}
        for one in known
    ]
    numbers = [row[name] for row in rows for name in ("ratio", "low", "high") if name in row]
    numbers += [place for end, (_, place) in ARROWS.items() if any(row[f"cut_{end}"] for row in rows)]
    low, high = min([*numbers, 0.8]) / 1.08, max([*numbers, 1.25]) * 1.08
    axis: Spec = {"title": words("figure.axis.ratio"), "values": log_ticks(low, high, 8), "format": ",~g"}
    x = {"axis": axis, "scale": log_scale(low, high)}
    names = list(dict.fromkeys(row["covariate"] for row in rows))
    states = sorted({row["state"] for row in rows})
    edge = {"edge": shorten(high)}
    base = {
        "y": _covariate_axis(names, len(states)),
        "yOffset": category("state", scale={"domain": states, "paddingOuter": 0.2}),
        "tooltip": tips(words, "covariate", "state_text", "ratio_text", "interval"),
    }
    label = {"x": quantity("edge", **x), "text": category("state_text")}
    head = [edge | {"state_text": words("figure.axis.state")}]
    rule: Spec = {"color": theme.palette.muted, "strokeWidth": 1.2}
    layers = [
        layer("rule", {"x": quantity("at", **x)}, rows=[{"at": 1}], **rule),
        *_ratio_marks(base, rows, x, theme.palette.accent),
        layer("text", base | label, align="left", dx=10, fontSize=SMALL),
        layer("text", label | {"y": {"value": -6}}, rows=head, align="left", fontSize=SMALL, dx=10),
    ]
    height = len(names) * (len(states) * STATE_ROW + BETWEEN)
    right = STATES + max(measure(row["state_text"], SMALL) for row in [*rows, *head])
    width, every = WIDTH - LABELS - right, [row | edge for row in rows]
    return Chart(layers, every, width=width, height=height, left=LABELS, above=HEAD)


def _ratio_marks(base: Spec, rows: Rows, x: Spec, colour: str) -> Iterable[Spec]:
    """Intervals, ratios and arrows, as far as there are any."""
    point: Spec = {"filled": True, "color": colour, "opacity": 1}
    if any("low" in row for row in rows):
        ends = base | span("x", "low", "high", **x)
        yield layer("rule", ends, where="isValid(datum.low)", strokeWidth=1.6, color=colour)
    if any("ratio" in row for row in rows):
        yield layer("point", base | {"x": quantity("ratio", **x)}, where="isValid(datum.ratio)", size=50, **point)
    for end, (side, place) in ARROWS.items():
        if any(row[f"cut_{end}"] for row in rows):
            arrow: Spec = {"size": 60, "shape": f"triangle-{side}"}
            yield layer("point", base | {"x": datum(place, **x)}, where=f"datum.cut_{end}", **point, **arrow)


def _ratio_row(one: RatioPart, unit: str | None, instead: str | None, words: Words) -> dict[str, Any]:
    """A ratio within the axis; the tooltip has it as it is."""
    step = _name_step(one, unit, instead, words)
    row: dict[str, Any] = {
        "covariate": " ".join(words.covariate(one.covariate).split()) + "\n" + step,
        "state": one.state,
        "ratio_text": show_figure(one.ratio),
        "interval": show_range(one.low, one.high, show_figure, words),
    }
    low = high = one.ratio
    if one.low is not None and one.high is not None:
        low, high = one.low, one.high
        row |= shorten_ends(_cut(low), _cut(high))
    if one.ratio is not None and _cut(one.ratio) == one.ratio:
        row["ratio"] = shorten(one.ratio)
    row["cut_low"] = low is not None and low < 1 / WIDEST
    row["cut_high"] = high is not None and high > WIDEST
    return row


def _name_step(one: RatioPart, unit: str | None, instead: str | None, words: Words) -> str:
    if instead is not None:
        return words("figure.ratios.instead", level=instead)
    if unit is None:
        return words("figure.ratios.step", step=f"{one.step:,.10g}")
    return words("figure.ratios.step_unit", step=f"{one.step:,.10g}", unit=words.get(f"unit.{unit}", unit))


def _say_strongest(model: ModelPart, units: Mapping[str, str | None], theme: Theme) -> str:
    """The largest effect among those whose interval leaves 1 out."""
    words = theme.words
    clear = [one for one in model.ratios if one.ratio and _is_clear(one)]
    if not clear:
        return words("figure.ratios.none_clear" if model.certified else "figure.ratios.not_known")
    one = max(clear, key=lambda ratio: abs(math.log(ratio.ratio or 1.0)))
    return words(
        "figure.ratios.strongest",
        covariate=isolate_name(words.covariate(one.covariate)),
        step=_name_step(one, units.get(one.covariate), model.references.get(one.covariate), words),
        ratio=show_figure(one.ratio),
        rating=theme.ratings.phrase(one.state, words),
    )


def _is_clear(one: RatioPart) -> bool:
    return one.low is not None and one.high is not None and (one.low > 1 or one.high < 1)


def _cut(value: float) -> float:
    return min(max(value, 1 / WIDEST), WIDEST)


def _covariate_axis(names: list[str], states: int) -> Spec:
    """Names over their steps, on two lines, with room for an arrow."""
    axis = name_axis(LABELS, labelExpr=BROKEN, labelLimit=LABELS - 14, labelPadding=8)
    between = BETWEEN / (states * STATE_ROW + BETWEEN)
    scale: Spec = {"domain": names, "paddingInner": shorten(between), "paddingOuter": shorten(between / 2)}
    return category("covariate", scale=scale, sort=None, axis=axis)


def _describe_ratios(model: ModelPart, theme: Theme) -> str:
    """The intervals that leave 1 out; or that there are none."""
    words = theme.words
    known = [one for one in model.ratios if one.low is not None and one.high is not None]
    if not known:
        return words("figure.ratios.no_intervals" if model.certified else "figure.ratios.uncertified")
    clear = [one for one in known if _is_clear(one)]
    items = (
        words(
            "figure.ratios.item",
            covariate=isolate_name(words.covariate(one.covariate)),
            rating=theme.ratings.phrase(one.state, words),
            ratio=show_figure(one.ratio),
        )
        for one in clear
    )
    counts = {"clear": show_count(len(clear)), "known": show_count(len(known))}
    return words(
        "figure.ratios.alt_items" if clear else "figure.ratios.alt", items=join_names(items, words), **counts
    )


# Profiles


@dataclass(frozen=True)
class ProfileLines:
    """Numbers with their ends at values of a covariate, a line for each state; None where there is no number.

    ``rug`` are the ticks at the bottom: quantiles of the training rows.
    """

    values: Sequence[float]
    rug: Sequence[float]
    middle: Lines
    low: Lines
    high: Lines


def draw_profiles(
    model: ModelPart, covariates: Sequence[Covariate], number: str, theme: Theme
) -> FigureView | None:
    """A panel for each covariate of a case that varies; ``number`` is the case's."""
    found, words = model.forecast, theme.words
    if found is None:
        return None
    profiles = [one for one in found.profiles if len(one.values) > 1]
    place = place_model(model, words)
    units = {one.name: one.unit for one in covariates}
    panels = []
    for n, one in enumerate(profiles, start=1):
        name, unit = (
            isolate_name(words.covariate(one.covariate)),
            words.get(f"unit.{units.get(one.covariate)}", ""),
        )
        title = words("figure.profiles.unit", name=name, unit=unit) if unit else name
        lines = ProfileLines(one.values, one.rug, one.hazard, one.hazard_low, one.hazard_high)
        chart = profile(lines, title, words("figure.axis.hazard"), theme)
        panels.append((f"profile-{n}", name, _describe_profile(one, theme), chart))
    banded = any(low is not None for one in profiles for row in one.hazard_low for low in row)
    caption = (
        words("figure.profiles.caption", **place),
        words("figure.profiles.bands", level=show_level(found.level)) if banded else "",
        words("figure.profiles.cut") if any(_is_cut(chart) for *_, chart in panels) else "",
        list_caveats(model, words),
    )
    title = words("figure.of_case", case=place["case"], text=_say_change(model, profiles, theme))
    return make_figure(f"profiles-{number}", title, panels, caption, theme, model=model)


def _say_change(model: ModelPart, profiles: Sequence[ProfilePart], theme: Theme) -> str:
    """The covariate and the rating whose hazard changes most, of the effects whose interval leaves 1 out."""
    words = theme.words
    clear = {(one.covariate, one.state) for one in model.ratios if _is_clear(one)}
    changes = [
        (abs(math.log(last / first)), one, state, first, last)
        for one in profiles
        for state, (first, last) in enumerate(zip(one.hazard[0], one.hazard[-1], strict=True), start=1)
        if first and last and (one.covariate, state) in clear
    ]
    if not changes:
        return words("figure.profiles.none_clear" if model.certified else "figure.ratios.not_known")
    _, one, state, first, last = max(changes, key=lambda change: change[0])
    return words(
        "figure.profiles.title",
        covariate=isolate_name(words.covariate(one.covariate)),
        rating=theme.ratings.phrase(state, words),
        first=show_figure(first),
        last=show_figure(last),
    )


def _describe_profile(one: ProfilePart, theme: Theme) -> str:
    """Over the central training rows: how the hazard of leaving each state changes."""
    words, ratings = theme.words, theme.ratings
    first, last = one.hazard[0], one.hazard[-1]
    items = (
        words(
            "figure.profiles.item",
            rating=ratings.phrase(state, words),
            first=show_figure(low),
            last=show_figure(high),
        )
        for state, (low, high) in enumerate(zip(first, last, strict=True), start=1)
    )
    ends = {"low": show_figure(one.values[0]), "high": show_figure(one.values[-1])}
    return words(
        "figure.profiles.alt",
        name=isolate_name(words.covariate(one.covariate)),
        items=join_names(items, words),
        **ends,
    )


def profile(lines: ProfileLines, covariate: str, title: str, theme: Theme, *, by_state: bool = True) -> Chart:
    """Lines in their bands over the values of a covariate: one for each state, or a single one."""
    palette = theme.palette
    count = len(lines.middle[0])
    states = list(range(1, count + 1))
    rows = [
        row | ({"state": state} if by_state else {}) for state in states for row in _profile_rows(lines, state - 1)
    ]
    low, high = lines.values[0], lines.values[-1]
    x = find_ticks(low, high, snap=False).under(covariate, grid=False)
    y = _value_axis(rows, title)
    base = {"x": quantity("value", **x)}
    colours = [colour_state(n, count + 1, palette) for n in states]  # the worst is not left, but has a colour
    if by_state:
        dashes = [DASHES[n % len(DASHES)] for n in range(count)]
        colour = {"color": category("state", scale={"domain": states, "range": colours}, legend=None)}
        dash = {"strokeDash": category("state", scale={"domain": states, "range": dashes}, legend=None)}
    else:
        colour, dash = {"color": {"value": palette.accent}}, {}
    rug = [{"at": at} for at in dict.fromkeys(map(shorten, lines.rug)) if low <= at <= high]
    tick = {"x": quantity("at", **x), "y": {"value": HEIGHT}, "y2": {"value": HEIGHT - RUG}}
    middle = {"y": quantity("middle", **y)}
    names = theme.list_names(count)
    ends = list(_list_ends(rows, y, names, colours)) if by_state else []
    layers = []
    if any("low" in row for row in rows):
        band = base | colour | span("y", "low", "high", **y)
        layers.append(layer("area", band, where="isValid(datum.low)", opacity=BAND, clip=True))
        for end in ("low", "high"):  # bands that lie over each other are told apart by their edges
            edge = base | colour | dash | {"y": quantity(end, **y)}
            layers.append(layer("line", edge, where="isValid(datum.low)", strokeWidth=0.7, opacity=0.7, clip=True))
    layers += [
        layer("line", base | middle | colour | dash, strokeWidth=2.2, clip=True),
        layer("rule", tick, rows=rug, color=palette.ink, opacity=0.55, strokeWidth=0.8),
        *(label_ends(ends, x, shorten(high), HEIGHT, palette.ink) if ends else ()),
        layer(
            "point",
            base | middle | colour | {"tooltip": _profile_tips(theme)},
            transform=_name_rows(theme) if by_state else (),
            filled=True,
            size=60,
            opacity=0,
            clip=True,
        ),
    ]
    left, right = find_room(y["axis"]), find_end_room(names) if ends else RIGHT
    return Chart(layers, rows, width=WIDTH - left - right, height=HEIGHT, left=left)


def _list_ends(rows: Rows, y: Spec, names: Sequence[str], colours: Sequence[str]) -> Iterable[End]:
    """Names of the states where their lines end, or at the edge where these leave the picture."""
    low, high = y["scale"]["domain"]
    log = y["scale"].get("type") == "log"
    for state, (name, colour) in enumerate(zip(names, colours, strict=True), start=1):
        last = next((row["middle"] for row in reversed(rows) if row["state"] == state), None)
        if last is None:
            continue
        value = min(max(last, low), high)
        share = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
        yield End(name, HEIGHT * (1 - share), colour)


def _is_cut(chart: Chart | None) -> bool:
    """Whether a line leaves the picture."""
    if chart is None:
        return False
    lines = next(one for one in chart.layers if one["mark"]["type"] == "line")
    low, high = lines["encoding"]["y"]["scale"]["domain"]
    return any(not low <= row["middle"] <= high for row in chart.rows)


def _profile_tips(theme: Theme) -> list[Spec]:
    """Tooltips that Vega writes from the numbers: a page has thousands of these rows, without words."""
    words = theme.words
    state = "state" if theme.ratings.numbered else "state_text"
    ends = (("middle", "hazard"), ("low", "low"), ("high", "high"))
    return [
        category(state, title=words("figure.tip.state"), format=""),
        quantity("value", title=words("figure.tip.value"), format=",.4~r"),
        *(quantity(field, title=words(f"figure.tip.{name}"), format=".3~r") for field, name in ends),
    ]


def _name_rows(theme: Theme) -> list[Spec]:
    """The names of ratings for tooltips, where they are more than numbers."""
    if theme.ratings.numbered:
        return []
    names = [theme.ratings.name(state, theme.words) for state in range(1, len(theme.ratings.labels) + 1)]
    return [{"calculate": f"{json.dumps(names, ensure_ascii=False)}[datum.state - 1]", "as": "state_text"}]


def _profile_rows(lines: ProfileLines, place: int) -> Rows:
    """A row for each value that has a number which an axis can show."""
    rows: Rows = []
    for value, *numbers in zip(lines.values, lines.middle, lines.low, lines.high, strict=True):
        middle, low, high = (one[place] for one in numbers)
        if middle is None or not 1 / DRAWN <= middle <= DRAWN:
            continue
        drawn = low is not None and high is not None and low >= 1 / DRAWN and high <= DRAWN
        ends = shorten_ends(low, high) if drawn else {}
        rows.append({"value": shorten(value), "middle": shorten(middle)} | ends)
    return rows


def _value_axis(rows: Rows, title: str) -> Spec:
    """As wide as the lines, and their bands as far as these are not many times as wide; a thousandfold at most."""
    middle = [row["middle"] for row in rows] or [1.0]
    least, most = min(middle), max(middle)
    ends = [row[end] for row in rows for end in ("low", "high") if end in row]
    low = max(min([least, *ends]), least / WIDEST)
    high = min(max([most, *ends]), most * WIDEST)
    if low > 0 and high > MANY_TIMES * low:
        low, high = _limit(low / ROOM, high * ROOM, sorted(middle)[len(middle) // 2], least, most)
        ticks = log_ticks(low, high)
        return {
            "axis": number_axis(title, (f"{tick:,g}" for tick in ticks), values=ticks, format=",~g"),
            "scale": log_scale(low, high),
        }
    return find_ticks(0.0, high, most=5).beside(title)


def _limit(low: float, high: float, centre: float, least: float, most: float) -> tuple[float, float]:
    """At most a thousandfold: less room for bands; where lines alone are wider, what is near their median."""
    if high <= FACTOR * low:
        return low, high
    if most * ROOM * ROOM > FACTOR * least:
        low, high = max(low, centre / math.sqrt(FACTOR)), min(high, centre * math.sqrt(FACTOR))
        return (low, low * FACTOR) if low * FACTOR < high else (max(low, high / FACTOR), high)
    least, most = least / ROOM, most * ROOM
    room = math.sqrt(FACTOR * least / most)
    low, high = max(low, least / room), min(high, most * room)
    return low, high


# Profiles as files


def draw_profile_picture(model: CaseModel, found: Profile, name: str) -> bytes | None:
    """A profile as SVG with the facts about it in lines over it; None where there is nothing to draw."""
    figure = draw_profile(found, name)
    if figure is None:
        return None
    head = [line for text in _head_lines(model, found) for line in textwrap.wrap(text, LINE)]
    title = {"text": head, "anchor": "start", "fontSize": 11, "color": PRINT.ink, "offset": 10}
    return mark_picture(draw_svg_file(combine(figure) | {"title": title}).encode(), "svg")


def draw_profile(found: Profile, name: str) -> FigureView | None:
    """Hazards beside mean years, in English for print; None for a covariate of one value, or without numbers."""
    if len(found.values) <= 1:
        return None
    theme = Theme(load_words("en"), PRINT, found.ratings)
    key = UNITS.get(found.covariate)
    covariate = found.covariate if key is None else f"{found.covariate} ({theme.words(f'unit.{key}')})"
    way = f"ean years {found.journey}"
    hazards = ("hazards", "Hazard of leaving each rating", "hazard of leaving the rating (per year)")
    panels, inside = [], _find_inside(found)
    for (part, title, axis), ends in (
        (hazards, (found.hazard, found.hazard_low, found.hazard_high)),
        (("years", f"M{way}", f"m{way}"), (found.years, found.years_low, found.years_high)),
    ):
        numbers = (_list_numbers(one[inside]) for one in ends)
        lines = ProfileLines(found.values[inside].tolist(), found.rug.tolist(), *numbers)
        chart = profile(lines, covariate, axis, theme, by_state=part == "hazards")
        if chart.rows:
            panels.append(PanelView(part, title, f"{title} along {found.covariate}.", finish(chart, PRINT)))
    return FigureView(name, "", "", tuple(panels)) if panels else None


def _find_inside(found: Profile) -> NDArray[np.bool_]:
    """Mask of the values in the central part of the training rows; of all of these where it has no two."""
    values, (low, high) = found.values, find_central(found.rug)
    inside = (values >= low) & (values <= high)
    return inside if inside.sum() > 1 else (values >= found.rug[0]) & (values <= found.rug[-1])


def _list_numbers(values: Any) -> Lines:
    """An array by value, or by value and state, as rows of numbers; None for what is no number."""
    rows = values.reshape(len(values), -1).tolist()
    return [[one if np.isfinite(one) else None for one in row] for row in rows]


def _head_lines(model: CaseModel, found: Profile) -> list[str]:
    """Lines over a picture: notes, the component, its course, what bands and ticks mean."""
    head, rest = split_notes(found.notes)
    shown = {name: value if isinstance(value, str) else f"{value:,.6g}" for name, value in found.others.items()}
    others = ", ".join(f"{name} = {value}" for name, value in shown.items())
    intervals = describe_intervals(found.level, found.intervals)
    bands = "" if found.intervals == "none" else f"Bands: {intervals}. "
    return [
        *head,
        *([] if model.unchosen is None else [model.unchosen]),
        f"{model.name}: along {found.covariate}; {found.course}" + (f"; {others}" if others else ""),
        f"{bands}Values: the central 95 % of the training rows. Ticks: one for each percent of them.",
        *rest,
    ]
