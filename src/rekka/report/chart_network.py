"""The network over the years: the share of members in each state, and the number that need something done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from rekka.report.chart_curves import keep_apart, stack_states
from rekka.report.chart_parts import (
    INNER_WIDTH,
    Chart,
    Rows,
    make_panel,
    number_axis,
    shorten,
    stamp,
    tell_name,
    tips,
)
from rekka.report.chart_years import HEIGHT, HOVER, fill_band, year_axis
from rekka.report.forecast_parts import NetworkPart, NetworkYear
from rekka.report.numbers import show_count, show_level, show_range
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words, join_sentences

# 8,000 as 8k: there is no room for more
THOUSANDS = "datum.value >= 1000 ? format(datum.value / 1000, '~r') + 'k' : format(datum.value, ',')"


def draw_network(
    network: NetworkPart, case: str | None = None, *, words: Words, palette: Palette
) -> FigureView | None:
    """Shares of states beside the number in the threshold or worse: of all cases, or of one."""
    years = network.of(case)
    if not years:
        return None
    look: dict[str, Any] = {"words": words, "palette": palette}
    charts = [shares(years, **look), reached(years, network.level, **look)]
    if not all(one.certified for one in years):
        charts = [stamp(chart, words("figure.stamp.not_certified"), palette) for chart in charts]
    name = words("figure.network.all") if case is None else tell_name(case)
    place = {"case": name, "base": words("figure.network.seen") if network.base is None else network.base}
    message, told = tell_reached(years, words), _tell_shares(years, words)
    caption = (
        words("figure.network.caption", **place),
        words("figure.network.bands", level=show_level(network.level)) if _has_band(years) else "",
        "" if all(one.certified for one in years) else words("figure.curve.uncertified"),
        message,
    )
    return FigureView(
        name="network",
        title=words("figure.network.title", **place),
        caption=join_sentences(caption, words),
        panels=(
            make_panel("network-shares", words("figure.network.panel_shares"), told, charts[0], palette),
            make_panel("network-reached", _name_threshold(years, words), message, charts[1], palette),
        ),
    )


def shares(years: Sequence[NetworkYear], *, words: Words, palette: Palette) -> Chart:
    """The share of members in each state, stacked to 1, the best at the top and brightest."""
    rows: Rows = [
        {"year": one.year}
        | {str(k): keep_apart(number / max(one.members, 1)) for k, number in enumerate(one.expected, start=1)}
        for one in years
    ]
    last = float(years[-1].year)
    layers = stack_states(
        len(years[0].expected),
        last,
        words("figure.axis.members_share"),
        words("figure.tip.year"),
        words=words,
        palette=palette,
    )
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def reached(years: Sequence[NetworkYear], level: float, *, words: Words, palette: Palette) -> Chart:
    """The number in the threshold or worse: expected, with its interval, within that of the number itself."""
    last, most = float(years[-1].year), years[0].members
    highest = max(one.reached if one.predicted_high is None else one.predicted_high for one in years)
    y: dict[str, Any] = {
        "scale": alt.Scale(domain=[0, min(most, max(1.1 * highest, 1.0))], nice=False),
        "axis": number_axis(words("figure.axis.members"), tickCount=5, labelExpr=THOUSANDS),
    }
    base = alt.Chart().encode(x=year_axis(words, last))
    layers = []
    if _has_band(years):
        shown = show_level(level)
        expected, number = (words(f"figure.band.{name}", level=shown) for name in ("expected", "number"))
        colours = {expected: palette.band, number: palette.haze}
        for low, high, name in (("first", "last", number), ("low", "high", expected)):
            area = base.mark_area(opacity=0.95).encode(y=alt.Y(f"{low}:Q", **y), y2=alt.Y2(f"{high}:Q"))
            layers.append(fill_band(area, name, colours))
    line = base.mark_line(strokeWidth=2.2, color=palette.accent).encode(y=alt.Y("expected:Q", **y))
    names = ("year", "expected_told", "interval", "number") if layers else ("year", "expected_told")
    titles = {name: words(f"figure.tip.{name.removesuffix('_told')}") for name in names}
    titles["expected_told"] = words("figure.tip.expected_number")
    hover = base.mark_rule(strokeWidth=HOVER, opacity=0, color=palette.ink).encode(tooltip=tips(titles))
    return Chart([*layers, line, hover], [_row(one, words) for one in years], width=INNER_WIDTH, height=HEIGHT)


def tell_reached(years: Sequence[NetworkYear], words: Words) -> str:
    """How many are there now and at the end."""
    first, last = years[0], years[-1]
    places = {
        "now": show_count(first.reached),
        "then": show_count(last.reached),
        "members": show_count(last.members),
        "years": show_count(last.year),
    }
    if last.threshold is None:
        return words("figure.network.alt_thresholds", **places)
    return words("figure.network.alt_reached", state=last.threshold, **places)


def _row(one: NetworkYear, words: Words) -> dict[str, Any]:
    row: dict[str, Any] = {
        "year": one.year,
        "expected": shorten(one.reached),
        "expected_told": show_count(one.reached),
    }
    if one.low is not None and one.high is not None:
        row |= {"low": shorten(one.low), "high": shorten(one.high)}
        row["interval"] = show_range(one.low, one.high, show_count, words)
    if one.predicted_low is not None and one.predicted_high is not None:
        row |= {"first": one.predicted_low, "last": one.predicted_high}
        row["number"] = show_range(one.predicted_low, one.predicted_high, show_count, words)
    return row


def _has_band(years: Sequence[NetworkYear]) -> bool:
    return any(one.low is not None for one in years)


def _name_threshold(years: Sequence[NetworkYear], words: Words) -> str:
    state = years[-1].threshold
    if state is None:
        return words("figure.network.panel_thresholds")
    return words("figure.network.panel_reached", state=state)


def _tell_shares(years: Sequence[NetworkYear], words: Words) -> str:
    last = years[-1]
    items = (
        words("figure.network.count", state=state, count=show_count(number))
        for state, number in enumerate(last.expected, start=1)
    )
    return words("figure.network.alt_shares", years=show_count(last.year), items=words("number.comma").join(items))
