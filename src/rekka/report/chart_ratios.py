"""What drives deterioration: hazard ratios for one step more of each covariate, by state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from rekka.report.chart_parts import (
    MISSING,
    WIDTH,
    Chart,
    Rows,
    assemble,
    inline,
    join_sentences,
    log_ticks,
    make_panel,
    name_list,
    shorten,
    tips,
)
from rekka.report.document import Covariate, ModelPart, RatioPart
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words, name_method

LABELS = 150  # pixels for covariates
STATES = 30  # pixels for the states at the right
WIDEST = 20.0  # ratios beyond it, or below its inverse, are cut off with an arrow
STATE_ROW, BETWEEN = 16, 14  # pixels for a state of a covariate, and between covariates
LINE_BREAK = "\n"


def draw_ratios(
    model: ModelPart, covariates: Sequence[Covariate], number: str, *, words: Words, palette: Palette
) -> FigureView | None:
    """The ratios of a model; ``covariates`` has their units, ``number`` is the case's."""
    chart = ratios(model, covariates, words=words, palette=palette)
    if chart is None:
        return None
    place = {"case": model.case, "method": name_method(model.method, words)}
    told = _tell_ratios(model, words)
    cut = any(_is_cut(value) for one in model.ratios for value in (one.ratio, one.low, one.high))
    caption = (
        words("figure.ratios.caption", **place),
        "" if model.chosen else words("figure.curve.not_chosen", **place),
        words("figure.ratios.cut", most=f"{WIDEST:g}", least=f"{1 / WIDEST:g}") if cut else "",
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
    """A row for each covariate and state, on a logarithmic axis around 1; wide intervals end in an arrow."""
    rows = _list_rows(model, covariates, words)
    if not rows:
        return None
    x = _ratio_axis(rows, words)
    names = list(dict.fromkeys(row["covariate"] for row in rows))
    states = sorted({row["state"] for row in rows})
    width, height = WIDTH - LABELS - STATES, len(names) * (len(states) * STATE_ROW + BETWEEN)
    fields = ("covariate", "state", "ratio", "interval")
    titles = {"ratio_told" if name == "ratio" else name: words(f"figure.tip.{name}") for name in fields}
    colour = palette.accent
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
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.6, color=colour)
        .encode(x=alt.X("low:Q", **x), x2="high:Q"),
        base.transform_filter("isValid(datum.ratio)")
        .mark_point(filled=True, size=50, color=colour, opacity=1)
        .encode(x=alt.X("ratio:Q", **x)),
        *(
            base.transform_filter(f"datum.cut_{end}")
            .mark_point(filled=True, size=60, color=colour, opacity=1, shape=f"triangle-{side}")
            .encode(x=alt.X(f"{end}:Q", **x))
            for end, side in (("low", "left"), ("high", "right"))
        ),
        base.mark_text(align="left", dx=10, fontSize=10).encode(x=alt.X("edge:Q", **x), text="state:N"),
        head.encode(x=alt.X("edge:Q", **x), y=alt.value(-4), text="state:N"),
    ]
    return assemble(layers, [row | edge for row in rows], width=width, height=height)


def _list_rows(model: ModelPart, covariates: Sequence[Covariate], words: Words) -> Rows:
    units = {one.name: one.unit for one in covariates}
    return [
        _ratio_row(one, units.get(one.covariate), words)
        for one in model.ratios
        if one.ratio is not None or (one.low is not None and one.high is not None)
    ]


def _ratio_row(one: RatioPart, unit: str | None, words: Words) -> dict[str, Any]:
    """A ratio within the axis; the tooltip has it as it is."""
    step = words("figure.ratios.step", step=f"{one.step:g}")
    if unit is not None:
        step = words("figure.ratios.step_unit", step=f"{one.step:g}", unit=words.get(f"unit.{unit}", unit))
    row: dict[str, Any] = {
        "covariate": " ".join(one.covariate.split()) + LINE_BREAK + step,
        "state": one.state,
        "ratio_told": _tell(one.ratio),
        "interval": words("figure.interval", low=_tell(one.low), high=_tell(one.high)),
    }
    if one.ratio is not None and not _is_cut(one.ratio):
        row["ratio"] = shorten(one.ratio)
    if one.low is not None and one.high is not None:
        row |= {"low": _cut(one.low), "high": _cut(one.high)}
        row |= {"cut_low": one.low < 1 / WIDEST, "cut_high": one.high > WIDEST}
    return row


def _ratio_axis(rows: Rows, words: Words) -> dict[str, Any]:
    numbers = [row[name] for row in rows for name in ("ratio", "low", "high") if name in row]
    low, high = min(*numbers, 0.8) / 1.08, max(*numbers, 1.25) * 1.08
    axis = alt.Axis(title=words("figure.axis.ratio"), values=log_ticks(low, high, 8), format="~g")
    return {"axis": axis, "scale": alt.Scale(type="log", domain=[shorten(low), shorten(high)], nice=False)}


def _covariate_axis(names: list[str], states: int) -> alt.Y:
    """Names over their steps, on two lines."""
    axis = alt.Axis(
        title=None,
        labelExpr=r"split(datum.value, '\n')",
        labelLimit=LABELS - 8,
        minExtent=LABELS,
        maxExtent=LABELS,
        ticks=False,
        domain=False,
    )
    between = BETWEEN / (states * STATE_ROW + BETWEEN)
    scale = alt.Scale(domain=names, paddingInner=shorten(between), paddingOuter=shorten(between / 2))
    return alt.Y("covariate:N", scale=scale, sort=None, axis=axis)


def _is_cut(value: float | None) -> bool:
    return value is not None and not 1 / WIDEST <= value <= WIDEST


def _cut(value: float) -> float:
    return shorten(min(max(value, 1 / WIDEST), WIDEST))


def _tell(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3g}"


def _tell_ratios(model: ModelPart, words: Words) -> str:
    """How many intervals leave 1 out, and which."""
    known = [(one, one.low, one.high) for one in model.ratios if one.low is not None and one.high is not None]
    clear = [one for one, low, high in known if (low or 0.0) > 1 or (high or 0.0) < 1]
    items = (
        words("figure.ratios.item", covariate=one.covariate, state=one.state, ratio=_tell(one.ratio))
        for one in clear
    )
    return join_sentences(
        (
            words("figure.ratios.alt", clear=len(clear), known=len(known)),
            words("figure.ratios.alt_items", items=name_list(items, words)) if clear else "",
        ),
        words,
    )
