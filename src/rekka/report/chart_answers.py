"""Charts of the answer: how each case's model did beside its baselines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import altair as alt

from rekka.report.chart_parts import (
    CASE_LABELS,
    RIGHT,
    ROW,
    WIDTH,
    Chart,
    Rows,
    case_axis,
    choose_scale,
    colour_of,
    dim,
    legend,
    list_cases,
    list_methods,
    make_panel,
    shorten,
    tips,
)
from rekka.report.document import Answer, Document
from rekka.report.numbers import Show, show_accuracy, show_count, show_level, show_loss, show_range
from rekka.report.palette import SHAPES, Palette, place_of
from rekka.report.views import FigureView
from rekka.report.words import Words, join_sentences, name_method

UPRIGHT = "M0,-1.6V1.6"  # the baseline's mark
FOREST_POINT, BASELINE_POINT = 70, 60  # square pixels
TIPS = ("case", "method", "told", "interval", "baseline", "rows")
VERDICTS = ("better", "worse", "not shown")


@dataclass(frozen=True)
class _Measure:
    """One score of an answer and the baseline that belongs to it."""

    name: str
    baseline: str
    beats: str
    show: Show


ACCURACY = _Measure("accuracy", "persistence_accuracy", "beats_persistence", show_accuracy)
LOG_LOSS = _Measure("log_loss", "no_covariates_log_loss", "beats_no_covariates", show_loss)


def draw_answer(document: Document, *, words: Words, palette: Palette) -> FigureView | None:
    """Accuracy beside log loss, each with its baseline."""
    panels = []
    for measure in (ACCURACY, LOG_LOSS):
        chart = answer(document, measure.name, words=words, palette=palette)
        if chart is not None:
            title = words(f"figure.answer.panel_{measure.name}")
            panels.append(make_panel(measure.name, title, _tell_answer(document, measure, words), chart, palette))
    if not panels:
        return None
    chosen = [one for one in document.answers if one.method is not None]
    counts = {"chosen": show_count(len(chosen)), "cases": show_count(len(document.answers))}
    confirmed = sum(one.confirmed for one in chosen)
    caption = (
        words("figure.answer.caption", confirmed=show_count(confirmed), **counts),
        words("figure.answer.bars", level=show_level(document.study.confidence))
        if any(one.accuracy_low is not None for one in chosen)
        else "",
        words("figure.answer.hollow") if confirmed < len(chosen) else "",
        words("figure.answer.none", none=show_count(len(document.answers) - len(chosen)))
        if len(chosen) < len(document.answers)
        else "",
    )
    return FigureView(
        name="answer",
        title=words("figure.answer.title"),
        caption=join_sentences(caption, words),
        panels=tuple(panels),
    )


def answer(document: Document, measure: str, *, words: Words, palette: Palette) -> Chart | None:
    """A row for each case: the chosen model's score with its interval, and the baseline's; or the word none."""
    own = next(one for one in (ACCURACY, LOG_LOSS) if one.name == measure)
    baseline = words(f"figure.answer.baseline_{own.name}")
    rows = [_answer_row(one, own, words) | {"base_name": baseline} for one in document.answers]
    if not any("value" in row for row in rows):
        return None
    layers = _list_layers(document, own, rows, words, palette)
    shown = [layer.transform_filter(which) for which, some, layer in layers if some]
    return Chart(shown, rows, width=WIDTH - CASE_LABELS - RIGHT, height=alt.Step(ROW))


def _list_layers(
    document: Document, own: _Measure, rows: Rows, words: Words, palette: Palette
) -> Iterator[tuple[str, bool, alt.Chart]]:
    """Which rows a layer is for, as Vega asks for them; whether there are any; the layer."""
    base = alt.Chart().encode(
        y=case_axis(list_cases(document)),
        opacity=dim(),
        tooltip=tips({name: words(f"figure.tip.{name}") for name in TIPS}),
    )
    numbers = [row[name] for row in rows for name in ("value", "low", "high", "base") if name in row]
    axis = alt.Axis(title=words(f"figure.axis.answer_{own.name}"), tickCount=6)
    x: dict[str, Any] = {"scale": choose_scale(numbers), "axis": axis}
    colours, shapes = _with_baseline(document, rows[0]["base_name"], words, palette)
    look: dict[str, Any] = {"legend": legend(3)}
    colour = alt.Color("method:N", scale=colours, **look)
    scored = base.encode(x=alt.X("value:Q", **x), color=colour, shape=alt.Shape("method:N", scale=shapes, **look))
    strokes = base.encode(
        x=alt.X("base:Q", **x),
        color=alt.Color("base_name:N", scale=colours, **look),
        shape=alt.Shape("base_name:N", scale=shapes, **look),
    )
    bars = base.encode(x=alt.X("low:Q", **x), x2=alt.X2("high:Q"), color=colour).mark_rule(strokeWidth=2)
    yield "isValid(datum.low)", any("low" in row for row in rows), bars
    strokes = strokes.mark_point(filled=False, size=BASELINE_POINT, strokeWidth=2)
    yield "isValid(datum.base)", any("base" in row for row in rows), strokes
    confirmed = [row["confirmed"] for row in rows if "value" in row]
    filled = scored.mark_point(filled=True, size=FOREST_POINT)
    yield "isValid(datum.value) && datum.confirmed", any(confirmed), filled
    hollow = scored.mark_point(filled=False, fill=palette.surface, size=FOREST_POINT, strokeWidth=1.6)
    yield "isValid(datum.value) && !datum.confirmed", not all(confirmed), hollow
    none = base.mark_text(align="left", color=palette.muted).encode(x=alt.value(4), text=alt.Text("method:N"))
    yield "!isValid(datum.value)", len(confirmed) < len(rows), none


def _answer_row(one: Answer, measure: _Measure, words: Words) -> dict[str, Any]:
    value, base = getattr(one, measure.name), getattr(one, measure.baseline)
    low, high = (getattr(one, f"{measure.name}_{end}") for end in ("low", "high"))
    numbers = {"value": value, "base": base}
    if low is not None and high is not None:
        numbers |= {"low": low, "high": high}
    if one.method is None or value is None:
        return {
            "case": one.case,
            "method": words("method.none") if one.method is None else name_method(one.method, words),
        }
    scored = "" if one.scored_on is None else words.get(f"rows.{one.scored_on}", one.scored_on)
    return {
        "case": one.case,
        "method": name_method(one.method, words),
        "confirmed": one.confirmed,
        "told": measure.show(value),
        "interval": show_range(numbers.get("low"), numbers.get("high"), measure.show, words),
        "baseline": measure.show(base),
        "rows": scored,
    } | {name: shorten(number) for name, number in numbers.items() if number is not None}


def _with_baseline(
    document: Document, baseline: str, words: Words, palette: Palette
) -> tuple[alt.Scale, alt.Scale]:
    """Colours and shapes of the chosen methods, and of the baseline after them."""
    among = list_methods(document)
    methods = [method for method in among if any(one.method == method for one in document.answers)]
    names = [*(name_method(method, words) for method in methods), baseline]
    colours = [*(colour_of(method, among, palette) for method in methods), palette.ink]
    shapes = [*(SHAPES[place_of(method, among)] for method in methods), UPRIGHT]
    return alt.Scale(domain=names, range=colours), alt.Scale(domain=names, range=shapes)


def _tell_answer(document: Document, measure: _Measure, words: Words) -> str:
    verdicts = [getattr(one, measure.beats) for one in document.answers if one.method is not None]
    counts = {name.replace(" ", "_"): show_count(verdicts.count(name)) for name in VERDICTS}
    unknown = verdicts.count(None)
    return join_sentences(
        (
            words(f"figure.answer.alt_{measure.name}", chosen=show_count(len(verdicts)), **counts),
            words("figure.answer.alt_unconfirmed", count=show_count(unknown)) if unknown else "",
        ),
        words,
    )
