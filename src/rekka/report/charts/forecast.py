"""How a typical member of a case deteriorates: its mean state and the probability of each state over the years.

When a state that needs something done is reached: its probability by year, and years until it.

The network over the years: the share of members in each state, and the number that need something done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import altair as alt

from rekka.report.charts.base import (
    CASE_LABELS,
    HEIGHT,
    HOVER,
    INNER_WIDTH,
    RIGHT,
    ROW,
    WIDTH,
    Chart,
    Palette,
    Rows,
    case_axis,
    dim,
    fill_band,
    legend,
    make_panel,
    name_beyond,
    number_axis,
    rule_beyond,
    shade,
    shade_beyond,
    shorten,
    stamp,
    stamp_model,
    tell_name,
    tips,
    year_axis,
)
from rekka.report.document import CaseForecast, Document, ModelPart, NetworkPart, NetworkYear, PassagePart
from rekka.report.text import (
    Words,
    join_names,
    join_sentences,
    name_method,
    show_count,
    show_level,
    show_number,
    show_range,
    show_share,
    show_years,
)
from rekka.report.views import FigureView

HALF = 0.5
MOST = 0.999999  # of what is not all, in the data of a chart
SHARE = (  # as show_share does it, in the words of Vega
    "datum['{0}'] > 0 && datum['{0}'] < 0.0005 ? '<0.1%' : "
    "datum['{0}'] < 1 && datum['{0}'] >= 0.9995 ? '>99.9%' : format(datum['{0}'], '.1%')"
)

show_mean = partial(show_number, digits=2)


def draw_curve(model: ModelPart, number: str, *, words: Words, palette: Palette) -> FigureView | None:
    """The mean state beside the probability of each state; ``number`` is the case's."""
    found = model.forecast
    if found is None:
        return None
    place = {"case": tell_name(model.case), "method": name_method(model.method, words)}
    message = _tell_curve(found, words)
    look: dict[str, Any] = {"words": words, "palette": palette}
    mean, shares = (stamp_model(draw(found, **look), model, **look) for draw in (mean_states, state_shares))
    caption = (
        words("figure.curve.caption", **place),
        tell_course(found, words),
        words("figure.curve.bands", level=show_level(found.level)) if found.has_band else "",
        tell_doubts(model, words),
        message,
    )
    return FigureView(
        name=f"curve-{number}",
        title=words("figure.curve.title", **place),
        caption=join_sentences(caption, words),
        panels=(
            make_panel("mean", words("figure.curve.panel_mean"), message, mean, palette),
            make_panel("shares", words("figure.curve.panel_shares"), _tell_shares(found, words), shares, palette),
        ),
        case=model.case,
    )


def mean_states(found: CaseForecast, *, words: Words, palette: Palette) -> Chart:
    """The mean state, the best at the top, within what is known of it, within the states of one member.

    A state is a strip as high as the distance between two, so that one who is surely in it has a place there.
    """
    states, last = len(found.probability[0]), found.years[-1]
    scale = alt.Scale(domain=[0.5, states + 0.5], reverse=True, nice=False)
    axis = number_axis(words("figure.axis.mean_state"), values=list(range(1, states + 1)), format="d")
    base = alt.Chart().encode(x=year_axis(words, last))
    look: dict[str, Any] = {"words": words, "palette": palette}
    first = found.extrapolated_from
    layers = shade_beyond(first, last, **look)
    if found.has_band:
        level = show_level(found.level)
        mean, one = (words(f"figure.band.{name}", level=level) for name in ("mean", "member"))
        colours = {mean: palette.band, one: palette.haze}
        steps, band = base.mark_area(interpolate="step-after", opacity=0.75), base.mark_area(opacity=0.9)
        for mark, low, high, name in ((steps, "best", "worst", one), (band, "low", "high", mean)):
            area = mark.encode(y=alt.Y(f"{low}:Q", scale=scale, axis=axis), y2=alt.Y2(f"{high}:Q"))
            layers.append(fill_band(area, name, colours, 2))
    layers += name_beyond(first, last, "top", **look)
    line = base.mark_line(strokeWidth=2.2, color=palette.accent).encode(y=alt.Y("mean:Q", scale=scale, axis=axis))
    names = ("year", "mean_told", "interval", "member") if found.has_band else ("year", "mean_told")
    titles = {name: words(f"figure.tip.{name.removesuffix('_told')}") for name in names}
    hover = base.mark_rule(strokeWidth=HOVER, opacity=0, color=palette.ink).encode(tooltip=tips(titles))
    return Chart([*layers, line, hover], _mean_rows(found, words), width=INNER_WIDTH, height=HEIGHT)


def state_shares(found: CaseForecast, *, words: Words, palette: Palette) -> Chart:
    """The probability of each state, stacked to 1, the best at the top and brightest."""
    rows = [
        {"year": shorten(year)} | {str(place): keep_apart(share) for place, share in enumerate(shares, start=1)}
        for year, shares in zip(found.years, found.probability, strict=True)
    ]
    last, title = found.years[-1], words("figure.axis.probability")
    areas, hover = stack_states(
        len(found.probability[0]), last, title, words("figure.axis.years"), words=words, palette=palette
    )
    rule = rule_beyond(found.extrapolated_from, last, words=words, palette=palette)
    return Chart([areas, *rule, hover], rows, width=INNER_WIDTH, height=HEIGHT)


def stack_states(
    count: int, last: float, title: str, years: str, *, words: Words, palette: Palette
) -> tuple[alt.Chart, alt.Chart]:
    """Shares of states as areas, and what answers the pointer; rows have a year and a share under each state."""
    states: list[Any] = [str(state) for state in range(1, count + 1)]
    darkest = max(count - 1, 1)
    colours = alt.Scale(domain=states, range=[shade(1 - place / darkest) for place in range(count)])
    x = year_axis(words, last)
    areas = (
        alt.Chart()
        .transform_fold(states, as_=["state", "share"])
        .transform_calculate(place="toNumber(datum.state)")
        .mark_area(stroke=palette.surface, strokeWidth=0.7)
        .encode(
            x=x,
            y=alt.Y(
                "share:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, 1]),
                axis=number_axis(title, tickCount=5, format=".1f"),
            ),
            color=alt.Color(
                "state:N",
                scale=colours,
                legend=legend(count, words("figure.axis.state"), "bottom", titleOrient="left"),
            ),
            order=alt.Order("place:Q", sort="descending"),
        )
    )
    tip = [alt.Tooltip("year:Q", title=years, format=".0f")]
    tip += [alt.Tooltip(f"told_{s}:N", title=words("figure.curve.state", state=s)) for s in states]
    told = {f"told_{s}": SHARE.format(s) for s in states}
    hover = alt.Chart().transform_calculate(**told).mark_rule(strokeWidth=HOVER, opacity=0, color=palette.ink)
    return areas, hover.encode(x=x, tooltip=tip)


def keep_apart(share: float) -> float:
    """Shortened, but what is not all stays less than 1."""
    return shorten(max(share, 0.0)) if share >= 1 else min(shorten(max(share, 0.0)), MOST)


def tell_course(found: CaseForecast, words: Words) -> str:
    """What advances with the years, and from when on it is beyond the training rows."""
    if not found.advancing:
        return words("figure.course.fixed")
    names = join_names(map(tell_name, found.advancing), words)
    advances = words("figure.course.advances", names=names)
    first = found.extrapolated_from
    if first is None:
        return advances
    return join_sentences((advances, words("figure.course.beyond", year=show_count(first))), words)


def tell_doubts(model: ModelPart, words: Words) -> str:
    """That a model is not certified, and has no bands, or was not chosen."""
    method = name_method(model.method, words)
    return join_sentences(
        (
            "" if model.certified else words("figure.curve.uncertified"),
            "" if model.chosen else words("figure.curve.not_chosen", method=method),
        ),
        words,
    )


def _mean_rows(found: CaseForecast, words: Words) -> list[dict[str, Any]]:
    rows = []
    bands = (found.expected_low, found.expected_high, found.predicted_low, found.predicted_high)
    for year, mean, low, high, best, worst in zip(found.years, found.expected, *bands, strict=True):
        row: dict[str, Any] = {"year": shorten(year), "mean": shorten(mean), "mean_told": show_mean(mean)}
        if low is not None and high is not None and best is not None and worst is not None:
            row |= {"low": shorten(low), "high": shorten(high), "best": best - HALF, "worst": worst + HALF}
            row["interval"] = show_range(low, high, show_mean, words)
            row["member"] = words("figure.curve.states", states=show_range(best, worst, show_count, words))
        rows.append(row)
    return rows


def _tell_curve(found: CaseForecast, words: Words) -> str:
    pairs = zip(found.years, found.probability, strict=True)
    half = next((year for year, row in pairs if row[-1] >= HALF), None)
    years, last = f"{found.years[-1]:g}", show_number(found.expected[-1], 1)
    worst = len(found.probability[0])
    return join_sentences(
        (
            words("figure.curve.alt_mean", years=years, last=last),
            "" if half is None else words("figure.curve.alt_half", years=show_count(half), worst=worst),
        ),
        words,
    )


def _tell_shares(found: CaseForecast, words: Words) -> str:
    items = (
        words("figure.curve.share", state=state, share=show_share(share))
        for state, share in enumerate(found.probability[-1], start=1)
    )
    return words("figure.curve.alt_shares", years=f"{found.years[-1]:g}", items=join_names(items, words))


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
    message, told = tell_reached(years, words), _tell_network_shares(years, words)
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


def _tell_network_shares(years: Sequence[NetworkYear], words: Words) -> str:
    last = years[-1]
    items = (
        words("figure.network.count", state=state, count=show_count(number))
        for state, number in enumerate(last.expected, start=1)
    )
    return words("figure.network.alt_shares", years=show_count(last.year), items=words("number.comma").join(items))
