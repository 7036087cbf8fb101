"""What drives deterioration: hazard ratios for one step more of each covariate, by state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from rekka.evaluation.intervals import CONFIDENCE
from rekka.report.chart_parts import (
    WIDTH,
    Chart,
    Rows,
    inline,
    log_ticks,
    make_panel,
    shorten,
    tell_name,
    tips,
)
from rekka.report.chart_years import stamp_model
from rekka.report.document import Covariate, ModelPart, RatioPart
from rekka.report.numbers import show_count, show_figure, show_level, show_range
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words, join_names, join_sentences, name_method

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
