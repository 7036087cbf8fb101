"""Charts of members: one over the years, ratings found and to come, and what repairs of some change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

from rekka.fleet.what_if import REPAIRED, WhatIf
from rekka.report.charts.base import (
    HEIGHT,
    MANY_RATINGS,
    RIGHT,
    SMALL,
    WIDTH,
    Band,
    Chart,
    End,
    Entry,
    Rows,
    Spec,
    Theme,
    break_text,
    draw_bands,
    draw_edges,
    find_end_room,
    find_room,
    find_ticks,
    isolate_name,
    label_ends,
    layer,
    make_figure,
    number_axis,
    quantity,
    shorten,
    shorten_ends,
    year_axis,
)
from rekka.report.document import MembersPart, NetworkPart
from rekka.report.text import Words, show_count, show_level, show_number
from rekka.report.views import FigureView

QUANTILES = 3  # of a fan in each of its years
ROW_HEIGHT, LEAST_HEIGHT = 30, 120  # pixels of a rating, and of a plot of few
END_ROOM = 70  # pixels for words at the end of a line
DASHED = (4, 3)


class _Course(NamedTuple):
    """Ratings of a member: found (year, rating), and the quantiles in each year to come, from the base year on."""

    found: tuple[tuple[float, int], ...]
    fan: tuple[tuple[float, int, int, int], ...]
    base: float


def draw_member(network: NetworkPart, members: MembersPart, place: int, theme: Theme) -> FigureView | None:
    """One member over the years: ratings found as steps, the median to come within its band, the threshold."""
    words, course = theme.words, _read_course(network, members, place)
    if not course.fan:
        return None
    case = members.cases[members.case[place]]
    threshold = members.threshold[members.case[place]]
    last = course.fan[-1]
    rating = network.ratings.name(last[2], words)
    dated = bool(course.found) or network.base is not None
    message = (
        words("page.script.card_chart", first=f"{_first(course):.0f}", rating=rating, last=f"{last[0]:.0f}")
        if dated
        else words("page.script.card_chart_years", rating=rating, last=f"{last[0]:.0f}")
    )
    chart = _draw_course(course, threshold, len(network.ratings.labels), theme, dated=dated)
    title = isolate_name(" ".join(filter(None, (members.bridge[place], case))))
    panels = [("member", title, message, chart)]
    return make_figure("member", message, panels, (words("page.script.card_fan"),), theme)


def _read_course(network: NetworkPart, members: MembersPart, place: int) -> _Course:
    past = [one.split(":") for one in members.past[place].split(",") if one]
    found = tuple((float(year), int(state)) for year, state in past)
    base = found[-1][0] if found else 0.0
    if network.base is not None:
        day = date.fromisoformat(network.base)
        base = round(day.year + (day.timetuple().tm_yday - 1) / 365.25, 2)
    digits = [int(one, 36) for one in members.fan[place]]
    states = [digits[first : first + QUANTILES] for first in range(0, len(digits), QUANTILES)]
    fan = tuple((base + year, *own) for year, own in zip(members.fan_years, states, strict=False))
    return _Course(found, fan, base)  # type: ignore[arg-type]


def _first(course: _Course) -> float:
    return course.found[0][0] if course.found else course.base


def _draw_course(course: _Course, threshold: int, states: int, theme: Theme, *, dated: bool) -> Chart:
    """Steps on an axis of ratings, the best at the top."""
    words, palette = theme.words, theme.palette
    names = theme.list_names(states) if not theme.ratings.numbered else [str(one) for one in range(1, states + 1)]
    labels: Spec = {"values": [*range(1, states + 1)], "grid": True, **theme.name_states()}
    y: Spec = {
        "scale": {"domain": [0.5, states + 0.5], "reverse": True, "nice": False, "zero": False},
        "axis": number_axis(None, names, **labels),
    }
    key = "page.script.card_year_axis" if dated else "page.script.card_years_axis"
    x = year_axis(words(key), _first(course), course.fan[-1][0])
    along = {"x": quantity("year", **x)}
    left, height = find_room(y["axis"]), max(LEAST_HEIGHT, states * ROW_HEIGHT)
    width = WIDTH - left - RIGHT
    if states > MANY_RATINGS:
        height = max(height, HEIGHT)
    fan: Rows = [
        {"year": shorten(year), "low": best - 0.36, "median": middle, "high": worst + 0.36}
        for year, best, middle, worst in course.fan
    ]
    found: Rows = [{"year": shorten(year), "rating": state} for year, state in course.found]
    steps = [*found, {"year": shorten(course.base), "rating": course.found[-1][1]}] if found else []
    ground: Rows = [{"from": threshold - 0.5, "to": states + 0.5}]
    low = {"y": quantity("from", **y), "y2": {"field": "to"}}
    layers = [
        layer("rect", low, rows=ground, color=palette.bad, opacity=0.08),
        layer(
            "area",
            along | {"y": quantity("low", **y), "y2": {"field": "high"}},
            rows=fan,
            interpolate="step-after",
            color=palette.band,
            opacity=0.45,
        ),
        layer(
            "line",
            along | {"y": quantity("median", **y)},
            rows=fan,
            interpolate="step-after",
            color=palette.accent,
            strokeWidth=2.2,
        ),
    ]
    if found:
        line = along | {"y": quantity("rating", **y)}
        layers.append(
            layer("line", line, rows=steps, interpolate="step-after", color=palette.ink, strokeWidth=1.4)
        )
        layers.append(layer("point", line, rows=found, color=palette.ink, filled=True, size=40, opacity=1))
        today: Spec = {"color": palette.muted, "strokeWidth": 1.2, "strokeDash": [2, 2]}
        layers.append(layer("rule", along, rows=[{"year": shorten(course.base)}], **today))
    return Chart(layers, fan, width=width, height=height, left=left)


# Repairs


def draw_what_if(found: WhatIf, theme: Theme) -> FigureView | None:
    """Members at the threshold or worse without repairs and with them, beside the number that these avoid."""
    words = theme.words
    rows = list(_list_totals(found))
    headline, options = found.headline(words.lang), found.eligible.options
    panels = (
        (
            "whatif-totals",
            words("terminal.what_if.title", threshold=found.name_threshold(words)),
            headline,
            _draw_totals(rows, found, theme),
        ),
        (
            "whatif-avoided",
            words("figure.what_if.avoided"),
            headline,
            _draw_avoided(rows, found, theme),
        ),
    )
    banded = any("low" in row for row in rows)
    level = show_level(options.level)
    caption = (words("figure.what_if.bands", level=level) if banded else "",)
    certified = all(group.model.certified for group in found.eligible.groups)
    return make_figure("what-if", headline, panels, caption, theme, certified=certified)


def _list_totals(found: WhatIf) -> Iterator[dict[str, Any]]:
    base = found.eligible.base
    for row in found.total.iter_rows(named=True):
        avoided = found.avoided(row["year"])
        yield (
            {
                "year": row["year"] + (0 if base is None else base.year),
                "without": shorten(row["expected"]),
                "with": shorten(row[REPAIRED]),
                "avoided": shorten(avoided["avoided"] or 0.0),
            }
            | shorten_ends(row["low"], row["high"], ("without_low", "without_high"))
            | shorten_ends(row[f"{REPAIRED}_low"], row[f"{REPAIRED}_high"], ("with_low", "with_high"))
            | shorten_ends(avoided["avoided_low"], avoided["avoided_high"])
            | shorten_ends(avoided["avoided_predicted_low"], avoided["avoided_predicted_high"], ("first", "last"))
        )


def _draw_totals(rows: Rows, found: WhatIf, theme: Theme) -> Chart:
    """Two lines, each with the interval of its expected number."""
    words, palette = theme.words, theme.palette
    names = ("without", "with")
    most: float = max(row.get(f"{name}_high", row[name]) or 0.0 for row in rows for name in names)
    y = find_ticks(0.0, max(1.0, most), most=6).beside(words("figure.axis.members"))
    x = _year_axis(rows, found, words)
    along = {"x": quantity("year", **x)}
    colours = dict(zip(names, (palette.muted, palette.accent), strict=True))
    ends = [
        End(
            break_text(
                f"{words(f'terminal.what_if.column.{name}')} {show_count(rows[-1][name])}", END_ROOM, SMALL
            ),
            _place(rows[-1][name], y),
            colours[name],
        )
        for name in names
    ]
    left, right = find_room(y["axis"]), find_end_room(one.text for one in ends)
    bands = [
        Band(f"{name}_low", f"{name}_high", "", palette.band if name == "with" else palette.haze, {"opacity": 0.5})
        for name in names
        if f"{name}_low" in rows[0]
    ]
    layers = [
        *draw_bands("area", bands, "y", along, y),
        layer(
            "line",
            along | {"y": quantity("without", **y)},
            color=palette.muted,
            strokeWidth=2,
            strokeDash=list(DASHED),
        ),
        layer("line", along | {"y": quantity("with", **y)}, color=palette.accent, strokeWidth=2.4),
        *label_ends(ends, x, rows[-1]["year"], HEIGHT, palette.ink),
    ]
    key = [
        Entry(words("terminal.what_if.column.without"), palette.muted, dash=DASHED),
        Entry(words("terminal.what_if.column.with"), palette.accent, dash=(1, 0)),
    ]
    return Chart(layers, rows, width=WIDTH - left - right, height=HEIGHT, left=left, key=key)


def _draw_avoided(rows: Rows, found: WhatIf, theme: Theme) -> Chart:
    """The number that the repairs avoid, with its interval within that of the number itself."""
    words, palette = theme.words, theme.palette
    names = [name for name in ("avoided", "low", "high", "first", "last") if name in rows[-1]]
    values = [0.0, *(row[name] for row in rows for name in names if name in row)]
    y = find_ticks(min(values), max(max(values), min(values) + 1.0), most=6).beside(
        words("figure.what_if.axis_avoided")
    )
    x = _year_axis(rows, found, words)
    along = {"x": quantity("year", **x)}
    level = show_level(found.eligible.options.level)
    bands = [
        Band(low, high, words(f"figure.band.{name}", level=level), colour)
        for low, high, name, colour in (
            ("low", "high", "expected", palette.band),
            ("first", "last", "number", palette.haze),
        )
        if low in rows[-1]
    ]
    ends = [End(show_number(rows[-1]["avoided"], 1), _place(rows[-1]["avoided"], y), palette.accent)]
    left, right = find_room(y["axis"]), find_end_room(one.text for one in ends)
    layers = [
        *draw_bands("area", bands, "y", along, y),
        *(line for one in bands[1:] for line in draw_edges(one, along, y, palette.accent, strokeWidth=0.8)),
        layer("line", along | {"y": quantity("avoided", **y)}, color=palette.accent, strokeWidth=2.4),
        *label_ends(ends, x, rows[-1]["year"], HEIGHT, palette.ink),
    ]
    key = [Entry(one.name, one.colour) for one in bands]
    return Chart(layers, rows, width=WIDTH - left - right, height=HEIGHT, left=left, key=key)


def _place(value: float, y: Spec) -> float:
    """Pixels from the top of a plot."""
    low, high = (float(one) for one in y["scale"]["domain"])
    return HEIGHT * (1 - (value - low) / (high - low))


def _year_axis(rows: Rows, found: WhatIf, words: Words) -> Spec:
    title = words("figure.axis.years" if found.eligible.base is None else "figure.axis.calendar")
    return year_axis(title, rows[0]["year"], rows[-1]["year"])
