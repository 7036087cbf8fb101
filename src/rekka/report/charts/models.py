"""Whether a model's forecasts come true: reliability of leaving a state, and counts by end state.

What drives deterioration: hazard ratios for one step more of each covariate, by state.

How the hazards of a case go with each covariate: a panel for each, the others typical.

How hazards and years go with a covariate: a line for each state, its band, and where the training rows lie.

What is drawn is plain data and its words; whoever has a fitted model makes both. A strip at the bottom has a tick
for each percent of the training rows. Beyond them the ground is shaded: there the model extrapolates.

Profiles of covariates as pictures that stand by themselves.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import numpy as np

from rekka.evaluation.scores import CONFIDENCE
from rekka.fleet.models import CaseModel, split_notes
from rekka.forecast.matrices import describe_intervals
from rekka.forecast.profiles import Profile
from rekka.report.charts.base import (
    INNER_WIDTH,
    PRINT,
    WIDTH,
    Chart,
    Palette,
    Rows,
    inline,
    legend,
    log_ticks,
    make_panel,
    number_axis,
    shorten,
    stamp_model,
    tell_name,
    tips,
)
from rekka.report.charts.drawing import combine, draw_svg_file, mark_picture
from rekka.report.document import BinPart, CalibrationPart, Covariate, ModelPart, ProfilePart, RatioPart
from rekka.report.summarize import UNITS
from rekka.report.text import (
    Words,
    join_names,
    join_sentences,
    load_words,
    name_method,
    show_count,
    show_figure,
    show_level,
    show_number,
    show_p,
    show_range,
)
from rekka.report.views import FigureView, Panel

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


LABELS = 150  # pixels for covariates
STATES = 30  # pixels for the states at the right
WIDEST = 20.0  # ratios beyond it, or below its inverse, are cut off with an arrow
ARROWS = {"low": ("left", 1 / WIDEST), "high": ("right", WIDEST)}  # where it points and where it stands
STATE_ROW, BETWEEN = 16, 14  # pixels for a state of a covariate, and between covariates
LINE_BREAK = "\n"


def draw_ratios(
    model: ModelPart,
    covariates: Sequence[Covariate],
    number: str,
    *,
    words: Words,
    palette: Palette,
    level: float = CONFIDENCE,
) -> FigureView | None:
    """The ratios of a model; ``covariates`` has their units, ``number`` the case's, ``level`` the intervals'."""
    chart = ratios(model, covariates, words=words, palette=palette)
    if chart is None:
        return None
    chart = stamp_model(chart, model, words=words, palette=palette)
    place = {"case": tell_name(model.case), "method": name_method(model.method, words)}
    told = _tell_ratios(model, words)
    rows = _list_rows(model, covariates, words)
    caption = (
        words("figure.ratios.caption", **place),
        "" if model.chosen else words("figure.curve.not_chosen", **place),
        words("figure.ratios.bars", level=show_level(level)) if any("low" in row for row in rows) else "",
        words("figure.ratios.cut", most=f"{WIDEST:g}", least=f"{1 / WIDEST:g}")
        if any(row[f"cut_{end}"] for row in rows for end in ARROWS)
        else "",
        told,
    )
    return FigureView(
        name=f"ratios-{number}",
        title=words("figure.ratios.title", **place),
        caption=join_sentences(caption, words),
        panels=(make_panel("ratios", words("figure.ratios.panel"), told, chart, palette),),
        case=model.case,
    )


def ratios(model: ModelPart, covariates: Sequence[Covariate], *, words: Words, palette: Palette) -> Chart | None:
    """A row for each covariate and state, on a logarithmic axis around 1; what is beyond it ends in an arrow."""
    rows = _list_rows(model, covariates, words)
    if not rows:
        return None
    x = _ratio_axis(rows, words)
    names = list(dict.fromkeys(row["covariate"] for row in rows))
    states = sorted({row["state"] for row in rows})
    width, height = WIDTH - LABELS - STATES, len(names) * (len(states) * STATE_ROW + BETWEEN)
    fields = ("covariate", "state", "ratio", "interval")
    titles = {"ratio_told" if name == "ratio" else name: words(f"figure.tip.{name}") for name in fields}
    one = alt.Chart(inline([{"at": 1}])).mark_rule(color=palette.muted, strokeWidth=1.2)
    edge = {"edge": x["scale"].to_dict()["domain"][1]}
    base = alt.Chart().encode(
        y=_covariate_axis(names, len(states)),
        yOffset=alt.YOffset("state:N", scale=alt.Scale(domain=states, paddingOuter=0.2)),
        tooltip=tips(titles),
    )
    head = alt.Chart(inline([edge | {"state": words("figure.axis.state")}])).mark_text(fontSize=10, dx=10)
    layers = [
        one.encode(x=alt.X("at:Q", scale=x["scale"], axis=x["axis"])),
        *_list_marks(base, rows, x, palette.accent),
        base.mark_text(align="left", dx=10, fontSize=10).encode(x=alt.X("edge:Q", **x), text=alt.Text("state:N")),
        head.encode(x=alt.X("edge:Q", **x), y=alt.value(-4), text=alt.Text("state:N")),
    ]
    return Chart(layers, [row | edge for row in rows], width=width, height=height)


def _list_marks(base: alt.Chart, rows: Rows, x: dict[str, Any], colour: str) -> Iterator[alt.Chart]:
    """Intervals, ratios and arrows, as far as there are any."""
    if any("low" in row for row in rows):
        bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.6, color=colour)
        yield bars.encode(x=alt.X("low:Q", **x), x2=alt.X2("high:Q"))
    if any("ratio" in row for row in rows):
        points = base.transform_filter("isValid(datum.ratio)")
        yield points.mark_point(filled=True, size=50, color=colour, opacity=1).encode(x=alt.X("ratio:Q", **x))
    for end, (side, place) in ARROWS.items():
        if any(row[f"cut_{end}"] for row in rows):
            arrows = base.transform_filter(f"datum.cut_{end}").mark_point(
                filled=True, size=60, color=colour, opacity=1, shape=f"triangle-{side}"
            )
            yield arrows.encode(x=alt.XDatum(place, type="quantitative", **x))


def _list_rows(model: ModelPart, covariates: Sequence[Covariate], words: Words) -> Rows:
    units = {one.name: one.unit for one in covariates}
    return [
        _ratio_row(one, units.get(one.covariate), words)
        for one in model.ratios
        if one.ratio is not None or (one.low is not None and one.high is not None)
    ]


def _ratio_row(one: RatioPart, unit: str | None, words: Words) -> dict[str, Any]:
    """A ratio within the axis; the tooltip has it as it is."""
    step = words("figure.ratios.step", step=f"{one.step:,.10g}")
    if unit is not None:
        step = words("figure.ratios.step_unit", step=f"{one.step:,.10g}", unit=words.get(f"unit.{unit}", unit))
    row: dict[str, Any] = {
        "covariate": " ".join(one.covariate.split()) + LINE_BREAK + step,
        "state": one.state,
        "ratio_told": show_figure(one.ratio),
        "interval": show_range(one.low, one.high, show_figure, words),
    }
    low = high = one.ratio
    if one.low is not None and one.high is not None:
        low, high = one.low, one.high
        row |= {"low": _cut(low), "high": _cut(high)}
    if one.ratio is not None and _cut(one.ratio) == shorten(one.ratio):
        row["ratio"] = shorten(one.ratio)
    row["cut_low"] = low is not None and low < 1 / WIDEST
    row["cut_high"] = high is not None and high > WIDEST
    return row


def _ratio_axis(rows: Rows, words: Words) -> dict[str, Any]:
    numbers = [row[name] for row in rows for name in ("ratio", "low", "high") if name in row]
    numbers += [place for end, (_, place) in ARROWS.items() if any(row[f"cut_{end}"] for row in rows)]
    low, high = min([*numbers, 0.8]) / 1.08, max([*numbers, 1.25]) * 1.08
    axis = alt.Axis(title=words("figure.axis.ratio"), values=log_ticks(low, high, 8), format="~g")
    return {"axis": axis, "scale": alt.Scale(type="log", domain=[shorten(low), shorten(high)], nice=False)}


def _covariate_axis(names: list[str], states: int) -> alt.Y:
    """Names over their steps, on two lines."""
    axis = alt.Axis(
        title=None,
        labelExpr=r"split(datum.value, '\n')",
        labelLimit=LABELS - 14,
        labelPadding=8,  # room for an arrow
        minExtent=LABELS,
        maxExtent=LABELS,
        ticks=False,
        domain=False,
    )
    between = BETWEEN / (states * STATE_ROW + BETWEEN)
    scale = alt.Scale(domain=names, paddingInner=shorten(between), paddingOuter=shorten(between / 2))
    return alt.Y("covariate:N", scale=scale, sort=None, axis=axis)


def _cut(value: float) -> float:
    return shorten(min(max(value, 1 / WIDEST), WIDEST))


def _tell_ratios(model: ModelPart, words: Words) -> str:
    """How many intervals leave 1 out, and which; or that there are none."""
    known = [(one, one.low, one.high) for one in model.ratios if one.low is not None and one.high is not None]
    if not known:
        return words("figure.ratios.no_intervals" if model.certified else "figure.ratios.uncertified")
    clear = [one for one, low, high in known if (low or 0.0) > 1 or (high or 0.0) < 1]
    items = (
        words(
            "figure.ratios.item",
            covariate=tell_name(one.covariate),
            state=one.state,
            ratio=show_figure(one.ratio),
        )
        for one in clear
    )
    counts = {"clear": show_count(len(clear)), "known": show_count(len(known))}
    if not clear:
        return words("figure.ratios.alt", **counts)
    return words("figure.ratios.alt_items", items=join_names(items, words), **counts)


KEPT = ("value", "middle", "low", "high", "state")  # of a row: a page has thousands of them, without words
TIPS = (
    ("state", "N", "state", ""),
    ("value", "Q", "value", ",.4~r"),
    ("middle", "Q", "hazard", ".3~r"),
    ("low", "Q", "low", ".3~r"),
    ("high", "Q", "high", ".3~r"),
)


def draw_profiles(
    model: ModelPart, covariates: Sequence[Covariate], number: str, *, words: Words, palette: Palette
) -> FigureView | None:
    """A panel for each covariate of a case that varies; ``number`` is the case's."""
    found = model.forecast
    profiles = [] if found is None else [one for one in found.profiles if len(one.values) > 1]
    if found is None or not profiles:
        return None
    place = {"case": tell_name(model.case), "method": name_method(model.method, words)}
    units = {one.name: one.unit for one in covariates}
    banded = any(low is not None for one in profiles for row in one.hazard_low for low in row)
    caption = (
        words("figure.profiles.caption", **place),
        words("figure.profiles.bands", level=show_level(found.level)) if banded else "",
        "" if model.certified else words("figure.curve.uncertified"),
        "" if model.chosen else words("figure.curve.not_chosen", method=place["method"]),
    )
    return FigureView(
        name=f"profiles-{number}",
        title=words("figure.profiles.title", **place),
        caption=join_sentences(caption, words),
        panels=tuple(
            _make_panel(one, n, units.get(one.covariate), model, words=words, palette=palette)
            for n, one in enumerate(profiles, start=1)
        ),
        case=model.case,
    )


def _make_panel(
    one: ProfilePart, number: int, unit: str | None, model: ModelPart, *, words: Words, palette: Palette
) -> Panel:
    look: dict[str, Any] = {"words": words, "palette": palette}
    chart = stamp_model(profile(one, unit, **look), model, **look)
    return make_panel(f"profile-{number}", tell_name(one.covariate), _tell_profile(one, words), chart, palette)


def profile(one: ProfilePart, unit: str | None, *, words: Words, palette: Palette) -> Chart:
    """A line and a band for each state, over the values of one covariate."""
    names = ("values", "outside", "rug", "hazard", "hazard_low", "hazard_high")
    part = DrawnProfile(**{name: getattr(one, name) for name in names}, years=(), years_low=(), years_high=())
    found = hazard_profile(part, words=_find_words(one, unit, words), palette=palette)
    tip = [
        alt.Tooltip(f"{field}:{kind}", title=words(f"figure.tip.{name}"), format=form)
        for field, kind, name, form in TIPS
    ]
    rows = [{name: row[name] for name in KEPT if name in row} for row in found.rows]
    return replace(found, layers=(*found.layers[:-1], found.layers[-1].encode(tooltip=tip)), rows=rows)


def _find_words(one: ProfilePart, unit: str | None, words: Words) -> ProfileWords:
    name, shown = tell_name(one.covariate), words.get(f"unit.{unit}", "") if unit else ""
    nothing = dict.fromkeys(("years", "hazard_title", "years_title", "hazard_alt", "years_alt"), "")
    return ProfileWords(
        covariate=words("figure.profiles.unit", name=name, unit=shown) if shown else name,
        hazard=words("figure.axis.hazard"),
        state=words("figure.axis.state"),
        value=words("figure.tip.value"),
        interval=words("figure.tip.interval"),
        **nothing,
    )


def _tell_profile(one: ProfilePart, words: Words) -> str:
    """From the least to the largest of the training rows: how the hazard of leaving each state changes."""
    inside = [place for place, beyond in enumerate(one.outside) if not beyond]
    first, last = one.hazard[inside[0]], one.hazard[inside[-1]]
    items = (
        words("figure.profiles.item", state=state, first=show_figure(low), last=show_figure(high))
        for state, (low, high) in enumerate(zip(first, last, strict=True), start=1)
    )
    ends = {"low": show_figure(one.values[inside[0]]), "high": show_figure(one.values[inside[-1]])}
    return words("figure.profiles.alt", name=tell_name(one.covariate), items=join_names(items, words), **ends)


Number = float | None

HEIGHT = 250
RUG = 7  # pixels of a tick
MANY_TIMES = 8.0  # the largest is so many times the smallest: a logarithmic axis
ROOM = 1.3  # times beyond what is shown, on a logarithmic axis
DRAWN = 1e100  # figures beyond it, and below 1 over it, are those of a fit gone wrong, and on no axis
BAND = 0.12  # opacity: bands of several states lie over each other
LONGEST_LEGEND = 5  # states in a line of it
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 1], [1, 3], [10, 2, 2, 2, 2, 2])


@dataclass(frozen=True)
class DrawnProfile:
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
    part: DrawnProfile,
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


def hazard_profile(part: DrawnProfile, *, words: ProfileWords, palette: Palette) -> Chart:
    """A line and a band for each state."""
    states = range(1, 1 + len(part.hazard[0]))
    rows = [
        row | {"state": state}
        for state in states
        for row in _list_profile_rows(part, *(_take(some, state - 1) for some in _hazards(part)))
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


def years_profile(part: DrawnProfile, *, words: ProfileWords, palette: Palette) -> Chart:
    """One line with its band."""
    rows = _list_profile_rows(part, part.years, part.years_low, part.years_high)
    titles = {"value_told": words.value, "told": words.years, "interval": words.interval}
    return _draw(part, rows, words.years, {"color": alt.value(palette.accent)}, titles, words, palette)


def _draw(
    part: DrawnProfile,
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


def _shade(part: DrawnProfile, x: dict[str, Any], palette: Palette) -> Iterator[alt.Chart]:
    """The ground on both sides of the training rows."""
    ends = ((part.values[0], part.rug[0]), (part.rug[-1], part.values[-1]))
    rows = [{"first": shorten(first), "last": shorten(last)} for first, last in ends if first < last]
    if rows:
        ground = alt.Chart(inline(rows)).mark_rect(color=palette.line, opacity=0.6)
        yield ground.encode(x=alt.X("first:Q", **x), x2=alt.X2("last:Q"))


def _draw_rug(part: DrawnProfile, x: dict[str, Any], palette: Palette) -> alt.Chart:
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


def _list_profile_rows(
    part: DrawnProfile, middle: Sequence[Number], low: Sequence[Number], high: Sequence[Number]
) -> Rows:
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


def _hazards(part: DrawnProfile) -> tuple[tuple[tuple[Number, ...], ...], ...]:
    return part.hazard, part.hazard_low, part.hazard_high


def _take(rows: Sequence[Sequence[Number]], place: int) -> tuple[Number, ...]:
    return tuple(row[place] for row in rows)


LINE = 112  # letters over a picture


def draw_profile_picture(model: CaseModel, profile: Profile, name: str) -> bytes | None:
    """A profile as SVG with what must be known of it in lines over it; None where there is nothing to draw."""
    figure = draw_profile(_plain_profile(profile), name, words=_word_profile(profile), palette=PRINT)
    if figure is None:
        return None
    head = [line for told in _head_lines(model, profile) for line in textwrap.wrap(told, LINE)]
    return mark_picture(draw_svg_file(_head_picture(figure, head, PRINT.ink)).encode(), "svg")


def _head_picture(figure: FigureView, head: Sequence[str], ink: str) -> dict[str, Any]:
    """A figure as one picture, with lines of text over it: what a picture must say by itself."""
    text = {"text": list(head), "anchor": "start", "fontSize": 11, "color": ink, "offset": 10}
    return combine(figure) | {"title": text}


def _plain_profile(profile: Profile) -> DrawnProfile:
    """A profile as the chart takes it."""
    return DrawnProfile(**{name: _plain(getattr(profile, name)) for name in DrawnProfile.__dataclass_fields__})


def _plain(values: Any) -> tuple[Any, ...]:
    """Nested tuples, None for what is no number."""
    if values.ndim > 1:
        return tuple(_plain(row) for row in values)
    return tuple(value if np.isfinite(value) else None for value in values.tolist())


def _word_profile(profile: Profile) -> ProfileWords:
    key = UNITS.get(profile.covariate)
    unit = "" if key is None else f" ({load_words('en')(f'unit.{key}')})"
    way = f"from state {profile.start} to state {profile.threshold}"
    return ProfileWords(
        covariate=f"{profile.covariate}{unit}",
        hazard="hazard of leaving the state (per year)",
        years=f"mean years {way}",
        state="state",
        value=f"{profile.covariate}{unit}",
        interval=f"{100 * profile.level:.6g} % interval",
        hazard_title="Hazard of leaving each state",
        years_title=f"Mean years {way}",
        hazard_alt=f"Hazards of leaving each state along {profile.covariate}.",
        years_alt=f"Mean years {way} along {profile.covariate}.",
    )


def _head_lines(model: CaseModel, profile: Profile) -> list[str]:
    """What stands over a picture."""
    head, rest = split_notes(profile.notes)
    others = ", ".join(f"{name} = {value:,.6g}" for name, value in profile.others.items())
    told = describe_intervals(profile.level, profile.intervals)
    bands = "" if profile.intervals == "none" else f"Bands: {told}. "
    return [
        *head,
        *([] if model.unchosen is None else [model.unchosen]),
        f"{model.name}: along {profile.covariate}; {profile.course}" + (f"; {others}" if others else ""),
        f"{bands}Ticks: training rows, one for each percent. Shaded: beyond them, extrapolated.",
        *rest,
    ]
