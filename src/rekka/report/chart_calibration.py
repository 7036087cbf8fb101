"""Whether a model's forecasts come true: reliability of leaving a state, and counts by end state."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from rekka.evaluation.intervals import CONFIDENCE
from rekka.report.chart_parts import (
    INNER_WIDTH,
    Chart,
    inline,
    legend,
    make_panel,
    number_axis,
    shorten,
    tell_name,
    tips,
)
from rekka.report.document import BinPart, CalibrationPart
from rekka.report.numbers import show_count, show_level, show_number, show_p, show_range
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words, join_names, join_sentences, name_method

SIDE = 300  # pixels: both axes of reliability have the same scale


def draw_calibration(
    part: CalibrationPart, number: str, *, words: Words, palette: Palette, level: float = CONFIDENCE
) -> FigureView | None:
    """Reliability beside counts by end state; ``number`` is the case's, ``level`` that of the intervals."""
    charts = {
        "reliability": (reliability(part, words=words, palette=palette), _tell_reliability(part, words)),
        "counts": (end_counts(part, words=words, palette=palette), _tell_counts(part, words)),
    }
    panels = tuple(
        make_panel(name, words(f"figure.calibration.panel_{name}"), told, chart, palette)
        for name, (chart, told) in charts.items()
        if chart is not None
    )
    if not panels:
        return None
    place = {"case": tell_name(part.case), "method": name_method(part.method, words)}
    caption = (
        words("figure.calibration.caption", rows=show_count(part.rows), **place),
        words("figure.calibration.bars", level=show_level(level)) if _find_known(part) else "",
        _tell_reliability(part, words),
        "" if part.p_value is None else words("figure.calibration.p_value", p=show_p(part.p_value)),
    )
    return FigureView(
        name=f"calibration-{number}",
        title=words("figure.calibration.title", **place),
        caption=join_sentences(caption, words),
        panels=panels,
        case=part.case,
    )


def reliability(part: CalibrationPart, *, words: Words, palette: Palette) -> Chart | None:
    """Forecast and observed shares of rows that leave their state, with intervals; on the diagonal they agree."""
    rows = [_bin_row(one, words) for one in _leaving(part)]
    if not rows:
        return None
    top = _find_top([row[name] for row in rows for name in ("forecast", "observed", "high") if name in row])
    scale = alt.Scale(domain=[0, top], nice=False)
    x_axis = alt.Axis(title=words("figure.axis.forecast"), tickCount=6, format=".1f")
    y_axis = number_axis(words("figure.axis.observed"), tickCount=6, format=".1f")
    names = ("forecast", "observed", "interval", "rows")
    titles = {f"{name}_told" if name in names[:2] else name: words(f"figure.tip.{name}") for name in names}
    diagonal = (
        alt.Chart(inline([{"at": 0}, {"at": top}]))
        .mark_line(color=palette.muted, strokeDash=[4, 3], strokeWidth=1.2)
        .encode(x=alt.X("at:Q", scale=scale, axis=x_axis), y=alt.Y("at:Q", scale=scale, axis=y_axis))
    )
    base = alt.Chart().encode(x=alt.X("forecast:Q", scale=scale, axis=x_axis), tooltip=tips(titles))
    bars = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.6, color=palette.accent)
        .encode(y=alt.Y("low:Q", scale=scale, axis=y_axis), y2=alt.Y2("high:Q"))
    )
    points = base.mark_point(filled=True, size=60, color=palette.accent, opacity=1).encode(
        y=alt.Y("observed:Q", scale=scale, axis=y_axis)
    )
    return Chart([diagonal, bars, points], rows, width=SIDE, height=SIDE)


def end_counts(part: CalibrationPart, *, words: Words, palette: Palette) -> Chart | None:
    """Rows observed in each end state as bars; dashes where the model expects them to end."""
    if not part.by_end:
        return None
    names = [words(f"figure.calibration.{name}") for name in ("observed", "expected")]
    rows = [
        {
            "state": one.state,
            "observed": one.observed,
            "expected": shorten(one.expected),
            "observed_told": show_count(one.observed),
            "expected_told": show_number(one.expected, 1),
            "residual": show_number(one.residual, 2, signed=True),
            "observed_name": names[0],
            "expected_name": names[1],
        }
        for one in part.by_end
    ]
    titles = ("state", "observed_told", "expected_told", "residual")
    colours = alt.Scale(domain=names, range=[palette.accent, palette.ink])
    look: dict[str, Any] = {"scale": colours, "legend": legend(orient="bottom", symbolType="square")}
    base = alt.Chart().encode(
        x=alt.X(
            "state:O",
            scale=alt.Scale(domain=[one.state for one in part.by_end]),
            axis=alt.Axis(title=words("figure.axis.end_state"), labelAngle=0),
        ),
        tooltip=tips({name: words(f"figure.tip.{name.removesuffix('_told')}") for name in titles}),
    )
    axis = number_axis(words("figure.axis.rows"), tickCount=6, format="~s")
    bars = base.mark_bar(width=alt.RelativeBandSize(band=0.6)).encode(
        y=alt.Y("observed:Q", axis=axis), color=alt.Color("observed_name:N", **look)
    )
    dashes = base.mark_tick(
        thickness=3, orient="horizontal", width=alt.RelativeBandSize(band=0.85), opacity=1
    ).encode(y=alt.Y("expected:Q", axis=axis), color=alt.Color("expected_name:N", **look))
    return Chart([bars, dashes], rows, width=INNER_WIDTH, height=SIDE)


def _leaving(part: CalibrationPart) -> list[BinPart]:
    """Bins of leaving the start state, whatever the end."""
    return [one for one in part.reliability if one.end is None]


def _find_known(part: CalibrationPart) -> list[BinPart]:
    """Those of them that have an interval."""
    return [one for one in _leaving(part) if one.low is not None and one.high is not None]


def _bin_row(one: BinPart, words: Words) -> dict[str, Any]:
    row: dict[str, Any] = {
        "forecast": shorten(one.forecast),
        "observed": shorten(one.observed),
        "forecast_told": show_number(one.forecast),
        "observed_told": show_number(one.observed),
        "interval": show_range(one.low, one.high, show_number, words),
        "rows": show_count(one.rows),
    }
    if one.low is not None and one.high is not None:
        row |= {"low": shorten(one.low), "high": shorten(one.high)}
    return row


def _find_top(values: list[float]) -> float:
    """The next tenth."""
    return min(1.0, max(0.1, math.ceil(max(values) * 10 - 1e-9) / 10))


def _tell_reliability(part: CalibrationPart, words: Words) -> str:
    """In how many bins the interval has the forecast."""
    known = _find_known(part)
    if not known:
        return ""
    held = sum((one.low or 0.0) <= one.forecast <= (one.high or 0.0) for one in known)
    return words("figure.calibration.alt_reliability", held=show_count(held), bins=show_count(len(known)))


def _tell_counts(part: CalibrationPart, words: Words) -> str:
    items = (
        words(
            "figure.calibration.count",
            state=one.state,
            observed=show_count(one.observed),
            expected=show_number(one.expected, 1),
        )
        for one in part.by_end
    )
    return words("figure.calibration.alt_counts", items=join_names(items, words))
