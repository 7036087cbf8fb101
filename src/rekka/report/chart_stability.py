"""How often refits to other bridges, other splits and from other starts choose what the study chose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt

from rekka.report.chart_parts import (
    CASE_LABELS,
    ROW,
    WIDTH,
    Chart,
    Rows,
    answer_yes,
    case_axis,
    colour_of,
    dim,
    inline,
    legend,
    list_cases,
    list_methods,
    make_panel,
    shorten,
    tell_name,
    tips,
)
from rekka.report.document import Document, SharePart
from rekka.report.numbers import show_count, show_range, show_share
from rekka.report.palette import Palette
from rekka.report.views import FigureView, Panel
from rekka.report.words import Words, join_names, join_sentences, name_method

NONE = "none"  # no choice
SHARE_LABELS = 44  # pixels for the shares at the right
HALF = 0.5


def draw_stability(document: Document, *, words: Words, palette: Palette) -> FigureView | None:
    """How often each method is chosen when a study is repeated: a panel for each way of repeating it."""
    found = document.stability
    if found is None:
        return None
    panels: list[Panel] = []
    for kind in found.kinds:
        chart = stability(document, kind, words=words, palette=palette)
        if chart is not None:
            title = words.get(f"figure.stability.panel_{kind}", kind)
            alt_text = _tell_stability(document, kind, words)
            panels.append(make_panel(kind, title, alt_text, chart, palette))
    if not panels:
        return None
    return FigureView(
        name="stability",
        title=words("figure.stability.title"),
        caption=_caption(document, [one.name for one in panels], words),
        panels=tuple(panels),
    )


def stability(document: Document, kind: str, *, words: Words, palette: Palette) -> Chart | None:
    """Stacked shares of the draws by what they choose; the study's own choice outlined, its share at the right."""
    rows, own = _stack_shares(document, kind, words)
    if not rows:
        return None
    methods = list_methods(document)
    shown = [method for method in methods if any(row["method"] == name_method(method, words) for row in rows)]
    names = [*(name_method(method, words) for method in shown), words("method.none")]
    colours = [*(colour_of(method, methods, palette) for method in shown), palette.muted]
    tip = ("case", "method", "share", "draws", "in_study")
    base = alt.Chart().encode(
        y=case_axis(list_cases(document)),
        x=alt.X(
            "start:Q",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(title=words("figure.axis.draws"), format=".0%", values=[0, 0.25, 0.5, 0.75, 1]),
        ),
        x2=alt.X2("end:Q"),
        opacity=dim(),
        tooltip=tips({name: words(f"figure.tip.{name}") for name in tip}),
    )
    bars = base.mark_bar(height=alt.RelativeBandSize(band=0.62)).encode(
        color=alt.Color("method:N", scale=alt.Scale(domain=names, range=colours), legend=legend(5))
    )
    outlines = (
        base.transform_filter("datum.own")
        .mark_bar(height=alt.RelativeBandSize(band=0.74), fill=None, strokeWidth=1.8)
        .encode(stroke=alt.StrokeValue(palette.ink))
    )
    width = WIDTH - CASE_LABELS - SHARE_LABELS
    labels = (
        alt.Chart(inline(own))
        .mark_text(align="left", dx=7)
        .encode(x=alt.X("edge:Q"), y=case_axis(list_cases(document)), text=alt.Text("share:N"), opacity=dim())
    )
    return Chart([bars, outlines, labels], rows, width=width, height=alt.Step(ROW))


def _stack_shares(document: Document, kind: str, words: Words) -> tuple[Rows, Rows]:
    """Segments that follow each other from 0 to 1, and the share of each case's own choice."""
    segments: Rows = []
    own: Rows = []
    for case, shares in _group_shares(document, kind).items():
        chosen = next((part.method for part in shares if part.in_study), None)
        parts = [(part.method, part.chosen or 0.0) for part in shares] + [(NONE, shares[0].none or 0.0)]
        end = 0.0
        for method, share in parts:
            start, end = end, end + share
            mine = method == (chosen or NONE)
            if mine:
                own.append({"case": case, "share": show_share(share), "edge": 1})
            if share > 0:
                segments.append(
                    {
                        "case": case,
                        "method": words("method.none") if method == NONE else name_method(method, words),
                        "start": shorten(start),
                        "end": shorten(end),
                        "share": show_share(share),
                        "draws": show_count(shares[0].draws),
                        "own": mine,
                        "in_study": answer_yes(mine, words),
                    }
                )
    return segments, own


def _group_shares(document: Document, kind: str) -> dict[str, list[SharePart]]:
    """The shares of the preset that answers, by case; cases without a draw are left out."""
    found: dict[str, list[SharePart]] = {}
    for part in document.stability.shares if document.stability else ():
        if part.preset == document.study.preset and part.kind == kind and part.chosen is not None:
            found.setdefault(part.case, []).append(part)
    return found


def _caption(document: Document, kinds: Sequence[str], words: Words) -> str:
    """What was drawn again, and how often."""
    ways = join_names((words.get(f"figure.stability.way_{kind}", kind) for kind in kinds), words)
    return words("figure.stability.caption", ways=ways, draws=_tell_draws(document, kinds, words))


def _tell_draws(document: Document, kinds: Iterable[str], words: Words) -> str:
    """'200', or '20 to 200' where some cases had fewer."""
    draws = [shares[0].draws for kind in kinds for shares in _group_shares(document, kind).values()]
    return show_range(min(draws), max(draws), show_count, words)


def _tell_stability(document: Document, kind: str, words: Words) -> str:
    often: list[str] = []
    rarely: list[str] = []
    for case, shares in _group_shares(document, kind).items():
        mine = next((part.chosen for part in shares if part.in_study), shares[0].none) or 0.0
        (often if mine >= HALF else rarely).append(tell_name(case))
    counts = {"often": show_count(len(often)), "cases": show_count(len(often) + len(rarely))}
    return join_sentences(
        (
            words("figure.stability.alt", draws=_tell_draws(document, [kind], words), **counts),
            words("figure.stability.alt_rarely", cases=join_names(rarely, words)) if rarely else "",
        ),
        words,
    )
