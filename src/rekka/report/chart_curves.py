"""How a case deteriorates: its mean state and the probability of each state over the years."""

from __future__ import annotations

from functools import partial
from typing import Any

import altair as alt

from rekka.intervals import CONFIDENCE
from rekka.report.chart_parts import (
    INNER_WIDTH,
    Chart,
    legend,
    make_panel,
    number_axis,
    shorten,
    tell_name,
    tips,
)
from rekka.report.document import CurvePart, ModelPart
from rekka.report.numbers import show_count, show_level, show_number, show_range, show_share
from rekka.report.palette import Palette, shade
from rekka.report.views import FigureView
from rekka.report.words import Words, join_names, join_sentences, name_method

HEIGHT = 250
HOVER = 9  # pixels around a year in which its tooltip appears
HALF = 0.5
MOST = 0.999999  # of what is not all, in the data of a chart
SHARE = (  # as show_share does it, in the words of Vega
    "datum['{0}'] > 0 && datum['{0}'] < 0.0005 ? '<0.1%' : "
    "datum['{0}'] < 1 && datum['{0}'] >= 0.9995 ? '>99.9%' : format(datum['{0}'], '.1%')"
)

show_mean = partial(show_number, digits=2)


def draw_curve(
    model: ModelPart, number: str, *, words: Words, palette: Palette, level: float = CONFIDENCE
) -> FigureView | None:
    """The mean state beside the probability of each state; ``number`` is the case's, ``level`` the band's."""
    found = model.curve
    if found is None or not found.years:
        return None
    place = {"case": tell_name(model.case), "method": name_method(model.method, words)}
    message = _tell_curve(found, words)
    mean, shares = (draw(found, words=words, palette=palette) for draw in (curve, state_shares))
    caption = (
        words("figure.curve.caption", **place),
        _tell_band(model, found, level, words),
        "" if model.chosen else words("figure.curve.not_chosen", **place),
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


def curve(found: CurvePart, *, words: Words, palette: Palette) -> Chart:
    """The mean state, the best at the top, with the band of the parameters' uncertainty."""
    states = len(found.probability[0])
    scale = alt.Scale(domain=[1, states], reverse=True, nice=False)
    axis = number_axis(words("figure.axis.mean_state"), values=list(range(1, states + 1)), format="d")
    base = alt.Chart().encode(x=_year_axis(words))
    band = (
        base.transform_filter("isValid(datum.low)")
        .mark_area(opacity=0.22, color=palette.accent)
        .encode(y=alt.Y("low:Q", scale=scale, axis=axis), y2=alt.Y2("high:Q"))
    )
    line = base.mark_line(strokeWidth=2.2, color=palette.accent).encode(y=alt.Y("mean:Q", scale=scale, axis=axis))
    titles = {
        name: words(f"figure.tip.{name.removesuffix('_told')}") for name in ("year", "mean_told", "interval")
    }
    hover = base.mark_rule(strokeWidth=HOVER, opacity=0, color=palette.ink).encode(tooltip=tips(titles))
    layers = [band, line, hover] if _has_band(found) else [line, hover]
    return Chart(layers, _mean_rows(found, words), width=INNER_WIDTH, height=HEIGHT)


def state_shares(found: CurvePart, *, words: Words, palette: Palette) -> Chart:
    """The probability of each state, stacked to 1, the best at the top and brightest."""
    states: list[Any] = [str(state) for state in range(1, len(found.probability[0]) + 1)]
    rows = [
        {"year": shorten(year)} | {name: _keep_apart(share) for name, share in zip(states, shares, strict=True)}
        for year, shares in zip(found.years, found.probability, strict=True)
    ]
    darkest = max(len(states) - 1, 1)
    colours = alt.Scale(domain=states, range=[shade(1 - place / darkest) for place in range(len(states))])
    areas = (
        alt.Chart()
        .transform_fold(states, as_=["state", "share"])
        .transform_calculate(place="toNumber(datum.state)")
        .mark_area(stroke=palette.surface, strokeWidth=0.7)
        .encode(
            x=_year_axis(words),
            y=alt.Y(
                "share:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, 1]),
                axis=number_axis(words("figure.axis.probability"), tickCount=5, format=".1f"),
            ),
            color=alt.Color(
                "state:N",
                scale=colours,
                legend=legend(len(states), words("figure.axis.state"), "bottom", titleOrient="left"),
            ),
            order=alt.Order("place:Q", sort="descending"),
        )
    )
    tip = [alt.Tooltip("year:Q", title=words("figure.tip.year"), format=".0f")]
    tip += [alt.Tooltip(f"told_{s}:N", title=words("figure.curve.state", state=s)) for s in states]
    told = {f"told_{s}": SHARE.format(s) for s in states}
    hover = alt.Chart().transform_calculate(**told).mark_rule(strokeWidth=HOVER, opacity=0, color=palette.ink)
    layers = (areas, hover.encode(x=_year_axis(words), tooltip=tip))
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def _year_axis(words: Words) -> alt.X:
    axis = alt.Axis(title=words("figure.axis.years"), tickCount=6, grid=False)
    return alt.X("year:Q", axis=axis, scale=alt.Scale(nice=False))


def _has_band(found: CurvePart) -> bool:
    return any(low is not None and high is not None for low, high in zip(found.low, found.high, strict=True))


def _keep_apart(share: float) -> float:
    """Shortened, but what is not all stays less than 1."""
    return shorten(max(share, 0.0)) if share >= 1 else min(shorten(max(share, 0.0)), MOST)


def _mean_rows(found: CurvePart, words: Words) -> list[dict[str, Any]]:
    rows = []
    for year, mean, low, high in zip(found.years, found.expected, found.low, found.high, strict=True):
        row: dict[str, Any] = {"year": shorten(year), "mean": shorten(mean), "mean_told": show_mean(mean)}
        row["interval"] = show_range(low, high, show_mean, words)
        if low is not None and high is not None:
            row |= {"low": shorten(low), "high": shorten(high)}
        rows.append(row)
    return rows


def _tell_band(model: ModelPart, found: CurvePart, level: float, words: Words) -> str:
    """What the band is, or why there is none."""
    if _has_band(found):
        return words("figure.curve.band", level=show_level(level))
    return "" if model.certified else words("figure.curve.uncertified")


def _tell_curve(found: CurvePart, words: Words) -> str:
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


def _tell_shares(found: CurvePart, words: Words) -> str:
    items = (
        words("figure.curve.share", state=state, share=show_share(share))
        for state, share in enumerate(found.probability[-1], start=1)
    )
    return words("figure.curve.alt_shares", years=f"{found.years[-1]:g}", items=join_names(items, words))
