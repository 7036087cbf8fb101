"""When a state that needs something done is reached: its probability by year, and years until it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from rekka.report.chart_curves import tell_course, tell_doubts
from rekka.report.chart_parts import (
    CASE_LABELS,
    INNER_WIDTH,
    RIGHT,
    ROW,
    WIDTH,
    Chart,
    Rows,
    case_axis,
    dim,
    make_panel,
    number_axis,
    shorten,
    stamp,
    tell_name,
    tips,
)
from rekka.report.chart_years import HEIGHT, HOVER, fill_band, name_beyond, shade_beyond, stamp_model, year_axis
from rekka.report.document import Document, ModelPart
from rekka.report.forecast_parts import CaseForecast, PassagePart
from rekka.report.numbers import show_level, show_range, show_share, show_years
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words, join_names, join_sentences, name_method

FARTHEST = 100.0  # years: what is beyond them ends in an arrow
NARROWEST = 20.0  # years of an axis at least
BAR, INTERVAL = 11, 5  # pixels of the bars of what will be and of the parameters


@dataclass(frozen=True)
class Stretch:
    """Years until the threshold, named: a bar of a chart."""

    name: str | int
    passage: PassagePart


def draw_reach(model: ModelPart, number: str, *, words: Words, palette: Palette) -> FigureView | None:
    """The probability of the threshold or worse by year, beside the years until it from each state."""
    found = model.forecast
    if found is None:
        return None
    look: dict[str, Any] = {"words": words, "palette": palette}
    place = {"case": tell_name(model.case), "method": name_method(model.method, words), "state": found.threshold}
    stretches = [Stretch(one.start, one) for one in found.passages]
    charts = (reach(found, **look), years_until(stretches, "state", HEIGHT, found.level, **look))
    chance, years = (stamp_model(chart, model, **look) for chart in charts)
    message = _tell_reach(found, words)
    caption = (
        words("figure.reach.caption", **place),
        tell_course(found, words),
        words("figure.reach.bands", level=show_level(found.level)) if found.has_band else "",
        tell_far(stretches, words),
        tell_doubts(model, words),
        message,
    )
    told = _tell_stretches(stretches, "figure.reach.from_state", found.threshold, words)
    return FigureView(
        name=f"reach-{number}",
        title=words("figure.reach.title", **place),
        caption=join_sentences(caption, words),
        panels=(
            make_panel("chance", words("figure.reach.panel_chance", **place), message, chance, palette),
            make_panel("until", words("figure.reach.panel_until", **place), told, years, palette),
        ),
        case=model.case,
    )


def draw_reaching(document: Document, *, words: Words, palette: Palette) -> FigureView | None:
    """Years until the threshold from state 1, case beside case: of the models that were chosen."""
    models = [(one, one.forecast) for one in document.models if one.chosen and one.forecast is not None]
    if not models:
        return None
    stretches = [Stretch(one.case, found.passages[0]) for one, found in models]
    look: dict[str, Any] = {"words": words, "palette": palette}
    level = document.study.confidence
    chart = years_until(stretches, "case", len(stretches) * ROW, level, **look)
    certified = all(one.certified for one, _ in models)
    if not certified:
        chart = stamp(chart, words("figure.stamp.not_certified"), palette)
    thresholds = sorted({found.threshold for _, found in models})
    told = _tell_stretches(stretches, "figure.reach.of_case", thresholds[0], words)
    caption = (
        words("figure.reaching.caption", states=join_names(map(str, thresholds), words)),
        words("figure.reaching.bands", level=show_level(level))
        if certified
        else words("figure.curve.uncertified"),
        tell_far(stretches, words),
    )
    return FigureView(
        name="reaching",
        title=words("figure.reaching.title"),
        caption=join_sentences(caption, words),
        panels=(make_panel("reaching", words("figure.reaching.title"), told, chart, palette),),
    )


def reach(found: CaseForecast, *, words: Words, palette: Palette) -> Chart:
    """The probability of the threshold or worse, with the band of the parameters' uncertainty."""
    last = found.years[-1]
    title = words("figure.axis.reached", state=found.threshold)
    y: dict[str, Any] = {
        "scale": alt.Scale(domain=[0, 1], nice=False),
        "axis": number_axis(title, tickCount=5, format=".1f"),
    }
    base = alt.Chart().encode(x=year_axis(words, last))
    look: dict[str, Any] = {"words": words, "palette": palette}
    first = found.extrapolated_from
    layers = shade_beyond(first, last, **look)
    if found.has_band:
        name = words("figure.band.chance", level=show_level(found.level))
        band = base.mark_area(opacity=0.9).encode(y=alt.Y("low:Q", **y), y2=alt.Y2("high:Q"))
        layers.append(fill_band(band, name, {name: palette.band}))
    layers += name_beyond(first, last, "bottom", **look)
    line = base.mark_line(strokeWidth=2.2, color=palette.accent).encode(y=alt.Y("share:Q", **y))
    names = ("year", "probability", "interval") if found.has_band else ("year", "probability")
    titles = {name: words(f"figure.tip.{name}") for name in names}
    hover = base.mark_rule(strokeWidth=HOVER, opacity=0, color=palette.ink).encode(tooltip=tips(titles))
    return Chart([*layers, line, hover], _reach_rows(found, words), width=INNER_WIDTH, height=HEIGHT)


def years_until(
    stretches: Sequence[Stretch], field: str, height: float, level: float, *, words: Words, palette: Palette
) -> Chart:
    """A row for each start: the median, what is known of it, and how long one member may take."""
    farthest = _find_farthest(one.passage for one in stretches)
    rows = [_stretch_row(one, field, farthest, words) for one in stretches]
    axis = alt.Axis(title=words("figure.axis.until"), tickCount=6, gridDash=[2, 3])
    x: dict[str, Any] = {"scale": alt.Scale(domain=[0, farthest], nice=False), "axis": axis}
    of_cases = field == "case"
    names = [one.name for one in stretches]
    y = case_axis([str(name) for name in names]) if of_cases else _state_axis(names, words)
    fields = (
        ("median", "interval", "member", "mean_years")
        if any("high" in row for row in rows)
        else ("median", "mean_years")
    )
    titles = {field: words(f"figure.tip.{field}")} | {
        f"{name}_told": words(f"figure.tip.{name}") for name in fields
    }
    base = alt.Chart().encode(y=y, tooltip=tips(titles))
    if of_cases:
        base = base.encode(opacity=dim())
    layers = [*_list_bars(base, rows, x, level, words, palette)]
    here = base.transform_filter("isValid(datum.median)")
    layers.append(
        here.mark_point(filled=True, size=60, color=palette.accent, opacity=1).encode(x=alt.X("median:Q", **x))
    )
    width = WIDTH - CASE_LABELS - RIGHT if of_cases else INNER_WIDTH
    return Chart(layers, rows, width=width, height=height)


def _list_bars(
    base: alt.Chart, rows: Rows, x: dict[str, Any], level: float, words: Words, palette: Palette
) -> Iterable[alt.Chart]:
    """Bars of both intervals, and arrows where one goes on beyond the axis."""
    shown = show_level(level)
    median, one = (words(f"figure.band.{name}", level=shown) for name in ("median", "member"))
    colours = {median: palette.band, one: palette.haze}
    for low, high, name, size in (("first", "last", one, BAR), ("low", "high", median, INTERVAL)):
        if any(low in row for row in rows):
            bar = base.transform_filter(f"isValid(datum.{low})").mark_bar(size=size)
            yield fill_band(bar.encode(x=alt.X(f"{low}:Q", **x), x2=alt.X2(f"{high}:Q")), name, colours, 2)
    if any(row["far"] for row in rows):
        arrow = base.transform_filter("datum.far").mark_point(
            filled=True, size=50, shape="triangle-right", color=palette.muted, opacity=1
        )
        yield arrow.encode(x=alt.XDatum(x["scale"].to_dict()["domain"][1], type="quantitative", **x))


def _stretch_row(one: Stretch, field: str, farthest: float, words: Words) -> dict[str, Any]:
    part = one.passage
    row: dict[str, Any] = {
        field: one.name,
        "median_told": show_years(part.median),
        "mean_years_told": show_years(part.mean),
        "interval_told": show_range(part.median_low, part.median_high, show_years, words),
        "member_told": show_range(part.predicted_low, part.predicted_high, show_years, words),
    }
    ends = (part.median, part.median_high, part.predicted_high)
    row["far"] = any(end is not None and end > farthest for end in ends)
    if part.median is not None and part.median <= farthest:
        row["median"] = shorten(part.median)
    for low, high, names in (
        (part.median_low, part.median_high, ("low", "high")),
        (part.predicted_low, part.predicted_high, ("first", "last")),
    ):
        if low is not None and high is not None and low < farthest:
            row |= dict(zip(names, (shorten(low), shorten(min(high, farthest))), strict=True))
    return row


def _state_axis(names: Sequence[str | int], words: Words) -> alt.Y:
    axis = number_axis(words("figure.axis.state_now"), ticks=False, domain=False, grid=False)
    return alt.Y("state:N", scale=alt.Scale(domain=list(names)), sort=None, axis=axis)


def _find_farthest(passages: Iterable[PassagePart]) -> float:
    """The last year of the axis: all that is told, within reason."""
    ends = [
        end for one in passages for end in (one.median, one.median_high, one.predicted_high) if end is not None
    ]
    longest = max([end for end in ends if end <= FARTHEST], default=NARROWEST)
    return FARTHEST if any(end > FARTHEST for end in ends) else max(NARROWEST, 10.0 * -(-longest // 10))


def tell_far(stretches: Iterable[Stretch], words: Words) -> str:
    """What an arrow means, where there is one."""
    passages = [one.passage for one in stretches]
    farthest = _find_farthest(passages)
    ends = (end for one in passages for end in (one.median, one.median_high, one.predicted_high))
    far = any(end is not None and end > farthest for end in ends)
    return words("figure.reach.far", years=f"{farthest:g}") if far else ""


def _reach_rows(found: CaseForecast, words: Words) -> Rows:
    rows = []
    for year, share, low, high in zip(
        found.years, found.reached, found.reached_low, found.reached_high, strict=True
    ):
        row: dict[str, Any] = {"year": shorten(year), "share": shorten(share), "probability": show_share(share, 1)}
        if low is not None and high is not None:
            row |= {"low": shorten(low), "high": shorten(high)}
            row["interval"] = show_range(low, high, lambda value: show_share(value, 1), words)
        rows.append(row)
    return rows


def _tell_reach(found: CaseForecast, words: Words) -> str:
    return words(
        "figure.reach.alt_chance",
        years=f"{found.years[-1]:g}",
        share=show_share(found.reached[-1]),
        state=found.threshold,
    )


def _tell_stretches(stretches: Sequence[Stretch], key: str, threshold: int, words: Words) -> str:
    items = (words(key, name=tell_name(str(one.name)), years=show_years(one.passage.median)) for one in stretches)
    return words("figure.reach.alt_until", state=threshold, items=join_names(items, words))
