"""How a typical member of a case deteriorates: its mean state and the probability of each state over the years."""

from __future__ import annotations

from functools import partial
from typing import Any

import altair as alt

from rekka.report.chart_parts import INNER_WIDTH, Chart, legend, make_panel, number_axis, shorten, tell_name, tips
from rekka.report.chart_years import (
    HEIGHT,
    HOVER,
    fill_band,
    name_beyond,
    rule_beyond,
    shade_beyond,
    stamp_model,
    year_axis,
)
from rekka.report.document import ModelPart
from rekka.report.forecast_parts import CaseForecast
from rekka.report.numbers import show_count, show_level, show_number, show_range, show_share
from rekka.report.palette import Palette, shade
from rekka.report.views import FigureView
from rekka.report.words import Words, join_names, join_sentences, name_method

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
