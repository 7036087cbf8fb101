"""How hazards and years go with a covariate: a line for each state, its band, and where the training rows lie.

What is drawn is plain data and its words; whoever has a fitted model makes both. A strip at the bottom has a tick
for each percent of the training rows. Beyond them the ground is shaded: there the model extrapolates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from rekka.report.chart_parts import (
    INNER_WIDTH,
    Chart,
    Rows,
    inline,
    legend,
    log_ticks,
    make_panel,
    number_axis,
    shorten,
    tips,
)
from rekka.report.numbers import show_figure
from rekka.report.palette import Palette
from rekka.report.views import FigureView

Number = float | None

HEIGHT = 250
RUG = 7  # pixels of a tick
MANY_TIMES = 8.0  # the largest is so many times the smallest: a logarithmic axis
ROOM = 1.3  # times beyond what is shown, on a logarithmic axis
WIDEST = 20.0  # a band beyond so many times the lines' own range is cut off at it
DRAWN = 1e100  # figures beyond it, and below 1 over it, are those of a fit gone wrong, and on no axis
BAND = 0.12  # opacity: bands of several states lie over each other
LONGEST_LEGEND = 5  # states in a line of it
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 1], [1, 3], [10, 2, 2, 2, 2, 2])


@dataclass(frozen=True)
class ProfilePart:
    """Hazards by value and state, and mean years by value; None where there is no number.

    ``outside`` marks values beyond the training rows, ``rug`` has a value for each percent of them.
    """

    values: tuple[float, ...]
    outside: tuple[bool, ...]
    hazard: tuple[tuple[Number, ...], ...]
    hazard_low: tuple[tuple[Number, ...], ...]
    hazard_high: tuple[tuple[Number, ...], ...]
    years: tuple[Number, ...]
    years_low: tuple[Number, ...]
    years_high: tuple[Number, ...]
    rug: tuple[float, ...]


@dataclass(frozen=True)
class ProfileWords:
    """Titles of axes, with units, of the legend, the tooltips and the two panels, and what each panel shows."""

    covariate: str
    hazard: str
    years: str
    state: str
    value: str
    interval: str
    hazard_title: str
    years_title: str
    hazard_alt: str
    years_alt: str


def draw_profile(
    part: ProfilePart,
    name: str,
    *,
    words: ProfileWords,
    palette: Palette,
    title: str = "",
    caption: str = "",
    case: str | None = None,
) -> FigureView | None:
    """Hazards beside mean years; None where the covariate has but one value."""
    if len(part.values) <= 1:
        return None
    hazards, years = (draw(part, words=words, palette=palette) for draw in (hazard_profile, years_profile))
    panels = [make_panel("hazards", words.hazard_title, words.hazard_alt, hazards, palette)]
    if years.rows:
        panels.append(make_panel("years", words.years_title, words.years_alt, years, palette))
    return FigureView(name=name, title=title, caption=caption, panels=tuple(panels), case=case)


def hazard_profile(part: ProfilePart, *, words: ProfileWords, palette: Palette) -> Chart:
    """A line and a band for each state."""
    states = range(1, 1 + len(part.hazard[0]))
    rows = [
        row | {"state": state}
        for state in states
        for row in _list_rows(part, *(_take(some, state - 1) for some in _hazards(part)))
    ]
    domain = list(states)
    colours = [palette.methods[place % len(palette.methods)] for place in range(len(domain))]
    dashes = [DASHES[place % len(DASHES)] for place in range(len(domain))]
    columns = min(len(domain), LONGEST_LEGEND)
    key = legend(columns, words.state, "bottom", titleOrient="left", symbolType="stroke", symbolOpacity=1)
    marks = {
        "color": alt.Color("state:N", scale=alt.Scale(domain=domain, range=colours), legend=key),
        "strokeDash": alt.StrokeDash("state:N", scale=alt.Scale(domain=domain, range=dashes), legend=key),
    }
    titles = {"state": words.state, "value_told": words.value, "told": words.hazard, "interval": words.interval}
    return _draw(part, rows, words.hazard, marks, titles, words, palette)


def years_profile(part: ProfilePart, *, words: ProfileWords, palette: Palette) -> Chart:
    """One line with its band."""
    rows = _list_rows(part, part.years, part.years_low, part.years_high)
    titles = {"value_told": words.value, "told": words.years, "interval": words.interval}
    return _draw(part, rows, words.years, {"color": alt.value(palette.accent)}, titles, words, palette)


def _draw(
    part: ProfilePart,
    rows: Rows,
    title: str,
    marks: dict[str, Any],
    titles: dict[str, str],
    words: ProfileWords,
    palette: Palette,
) -> Chart:
    """Shading, bands, lines, ticks, and points that have tooltips, from the ground up."""
    low, high = part.values[0], part.values[-1]
    x: dict[str, Any] = {
        "axis": alt.Axis(title=words.covariate, tickCount=6, grid=False),
        "scale": alt.Scale(domain=[shorten(low), shorten(high)], nice=False, zero=False),
    }
    y = _value_axis(rows, title)
    base = alt.Chart().encode(x=alt.X("value:Q", **x))
    colour = {"color": marks["color"]}
    layers = [*_shade(part, x, palette)]
    if any("low" in row for row in rows):
        band = base.transform_filter("isValid(datum.low)").mark_area(opacity=BAND, clip=True)
        layers.append(band.encode(y=alt.Y("low:Q", **y), y2=alt.Y2("high:Q"), **colour))
    layers.append(base.mark_line(strokeWidth=2.0, clip=True).encode(y=alt.Y("middle:Q", **y), **marks))
    layers.append(_draw_rug(part, x, palette))
    points = base.mark_point(filled=True, size=60, opacity=0, clip=True)
    layers.append(points.encode(y=alt.Y("middle:Q", **y), tooltip=tips(titles), **colour))
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def _shade(part: ProfilePart, x: dict[str, Any], palette: Palette) -> Iterator[alt.Chart]:
    """The ground on both sides of the training rows."""
    ends = ((part.values[0], part.rug[0]), (part.rug[-1], part.values[-1]))
    rows = [{"first": shorten(first), "last": shorten(last)} for first, last in ends if first < last]
    if rows:
        ground = alt.Chart(inline(rows)).mark_rect(color=palette.line, opacity=0.6)
        yield ground.encode(x=alt.X("first:Q", **x), x2=alt.X2("last:Q"))


def _draw_rug(part: ProfilePart, x: dict[str, Any], palette: Palette) -> alt.Chart:
    """A tick for each percent of the training rows, at the bottom."""
    rows = [{"at": at} for at in dict.fromkeys(shorten(at) for at in part.rug)]
    ticks = alt.Chart(inline(rows)).mark_rule(color=palette.ink, opacity=0.55, strokeWidth=0.8)
    placed: alt.Chart = ticks.encode(x=alt.X("at:Q", **x), y=alt.value(HEIGHT), y2=alt.value(HEIGHT - RUG))
    return placed


def _value_axis(rows: Rows, title: str) -> dict[str, Any]:
    """As wide as the lines, and their bands as far as these are not many times as wide."""
    middle = [row["middle"] for row in rows] or [1.0]
    least, most = min(middle), max(middle)
    ends = [row[end] for row in rows for end in ("low", "high") if end in row]
    low = max(min([least, *ends]), least / WIDEST)
    high = min(max([most, *ends]), most * WIDEST)
    if low > 0 and high > MANY_TIMES * low:
        low, high = low / ROOM, high * ROOM
        scale = alt.Scale(type="log", domain=[shorten(low), shorten(high)], nice=False)
        return {"axis": number_axis(title, values=log_ticks(low, high), format="~g"), "scale": scale}
    return {
        "axis": number_axis(title, tickCount=5, format="~g"),
        "scale": alt.Scale(domain=[0, shorten(high)], nice=True),
    }


def _list_rows(part: ProfilePart, middle: Sequence[Number], low: Sequence[Number], high: Sequence[Number]) -> Rows:
    """A row for each value that has a number which an axis can show."""
    rows = []
    for value, one, least, most in zip(part.values, middle, low, high, strict=True):
        if one is None or not 1 / DRAWN <= one <= DRAWN:
            continue
        row: dict[str, Any] = {
            "value": shorten(value),
            "middle": shorten(one),
            "value_told": show_figure(value, 4),
        }
        row |= {"told": show_figure(one), "interval": f"{show_figure(least)} \u2013 {show_figure(most)}"}
        if least is not None and most is not None and least >= 1 / DRAWN and most <= DRAWN:
            row |= {"low": shorten(least), "high": shorten(most)}
        rows.append(row)
    return rows


def _hazards(part: ProfilePart) -> tuple[tuple[tuple[Number, ...], ...], ...]:
    return part.hazard, part.hazard_low, part.hazard_high


def _take(rows: Sequence[Sequence[Number]], place: int) -> tuple[Number, ...]:
    return tuple(row[place] for row in rows)
