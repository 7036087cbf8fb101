"""How far the paper's conditions stop short of the exact maximum, by case and method, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import altair as alt

from rekka.report.chart_parts import (
    CASE_LABELS,
    RIGHT,
    WIDTH,
    Chart,
    case_axis,
    dim,
    inline,
    legend,
    list_cases,
    list_methods,
    make_panel,
    shape_scale,
    shorten,
    tips,
)
from rekka.report.document import BothPart, Document
from rekka.report.numbers import show_count, show_figure
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words, join_names, join_sentences, name_method, slug
from rekka.study.tables import AT_MAXIMUM, Cause

LEAST, MOST = 1e-8, 1e6  # nats; beyond these a mark stands at the edge with an arrow
WIDE_ROW = 34  # pixels: the methods of a case stand below each other
POINT = 55  # square pixels


def draw_presets(document: Document, *, words: Words, palette: Palette) -> FigureView | None:
    """The shortfall of every trial that has one."""
    chart = presets(document, words=words, palette=palette)
    if chart is None:
        return None
    told = _tell_presets(document, words)
    return FigureView(
        name="presets",
        title=words("figure.presets.title"),
        caption=join_sentences((words("figure.presets.caption", limit=f"{AT_MAXIMUM:g}"), told), words),
        panels=(make_panel("presets", words("figure.presets.panel"), told, chart, palette),),
    )


def presets(document: Document, *, words: Words, palette: Palette) -> Chart | None:
    """Log-likelihood of the exact fit less that of the paper's, on a logarithmic axis; coloured by its cause."""
    parts = [one for one in document.presets if one.short_by is not None]
    if not parts:
        return None
    methods = [method for method in list_methods(document) if any(one.method == method for one in parts)]
    scale = alt.Scale(type="log", domain=[LEAST, MOST], nice=False)
    axis = alt.Axis(title=words("figure.axis.short_by"), values=[1e-8, 1e-5, 1e-2, 10, 1e4], format="~g")
    titles = {name: words(f"figure.tip.{name}") for name in ("case", "method", "short_by", "cause")}
    base = alt.Chart().encode(
        x=alt.X("short:Q", scale=scale, axis=axis),
        y=case_axis(list_cases(document)),
        yOffset=alt.YOffset("method:N", scale=alt.Scale(domain=[name_method(m, words) for m in methods])),
        opacity=dim(0.9),
        tooltip=tips(titles),
    )
    limit = (
        alt.Chart(inline([{"at": AT_MAXIMUM}]))
        .mark_rule(color=palette.muted, strokeDash=[4, 3])
        .encode(x=alt.X("at:Q", scale=scale, axis=axis))
    )
    points = base.mark_point(filled=True, size=POINT).encode(
        color=_cause_colours([one.cause for one in parts], words, palette),
        shape=alt.Shape(
            "method:N",
            scale=shape_scale(methods, list_methods(document), words),
            legend=legend(symbolFillColor=palette.ink),
        ),
    )
    height = WIDE_ROW * len(document.cases)
    rows = [_short_row(one, words) for one in parts]
    width = WIDTH - CASE_LABELS - RIGHT
    return Chart([limit, points, *_list_arrows(base)], rows, width=width, height=height)


def _cause_colours(found: Iterable[str], words: Words, palette: Palette) -> alt.Color:
    """The causes that there are, below the chart: they have long names."""
    causes = _order_causes(found)
    names = [_name_cause(cause, words) for cause in causes]
    scale = alt.Scale(domain=names, range=[_colour_cause(cause, palette) for cause in causes])
    return alt.Color(
        "cause:N", scale=scale, legend=legend(1, orient="bottom", symbolType="square", labelLimit=380)
    )


def _list_arrows(base: alt.Chart) -> Iterator[alt.Chart]:
    """Beside marks that are beyond the axis."""
    for side, shift, sign in (("left", -9, "<"), ("right", 9, ">")):
        beyond = base.transform_filter(f"datum.beyond == '{side}'")
        yield beyond.mark_text(dx=shift, fontSize=13).encode(text=alt.TextValue(sign))


def _short_row(one: BothPart, words: Words) -> dict[str, Any]:
    value = one.short_by or 0.0
    beyond = "left" if value < LEAST else "right" if value > MOST else ""
    return {
        "case": one.case,
        "method": name_method(one.method, words),
        "cause": _name_cause(one.cause, words),
        "short": shorten(min(max(value, LEAST), MOST)),
        "short_by": show_figure(value),
        "beyond": beyond,
    }


def _order_causes(found: Iterable[str]) -> list[str]:
    """As rekka lists them; those that it does not know last."""
    known = [str(cause) for cause in Cause]
    return sorted(set(found), key=lambda cause: (known.index(cause) if cause in known else len(known), cause))


def _name_cause(cause: str, words: Words) -> str:
    return words.get(f"cause.{slug(cause)}", cause)


def _colour_cause(cause: str, palette: Palette) -> str:
    """Gray for no difference, one colour for the data's causes, one each for the optimizer's."""
    own: dict[str, str] = {
        Cause.NONE: palette.muted,
        Cause.SHORT: palette.methods[1],
        Cause.FLOOR: palette.bad,
        Cause.FAILURE: palette.methods[4],
        Cause.UNKNOWN: palette.ink,
    }
    return own.get(cause, palette.accent)


def _tell_presets(document: Document, words: Words) -> str:
    parts = document.presets
    counts = Counter(one.cause for one in parts)
    skipped = sum(one.short_by is None for one in parts)
    items = (
        words("figure.item", name=_name_cause(cause, words), count=show_count(counts[cause]))
        for cause in _order_causes(counts)
    )
    return join_sentences(
        (
            words(
                "figure.presets.alt",
                same=show_count(counts[Cause.NONE]),
                trials=show_count(len(parts)),
                limit=f"{AT_MAXIMUM:g}",
            ),
            words("figure.presets.alt_causes", items=join_names(items, words)),
            words("figure.presets.alt_skipped", count=show_count(skipped)) if skipped else "",
        ),
        words,
    )
