"""Charts of the answer: how each case's model did beside its baseline, and how often refits choose the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from rekka.report.chart_parts import (
    CASE_LABELS,
    RIGHT,
    ROW,
    WIDTH,
    Chart,
    assemble,
    case_axis,
    choose_scale,
    colour_of,
    dim,
    join_sentences,
    legend,
    list_cases,
    list_methods,
    make_panel,
    shorten,
    tell,
    tips,
)
from rekka.report.document import Answer, Document
from rekka.report.numbers import show_level
from rekka.report.palette import SHAPES, Palette, place_of
from rekka.report.views import FigureView
from rekka.report.words import Words, name_method

UPRIGHT = "M0,-1.6V1.6"  # the baseline's mark
FOREST_POINT, BASELINE_POINT = 70, 60  # square pixels


@dataclass(frozen=True)
class _Measure:
    """One score of an answer and the baseline that belongs to it."""

    name: str
    baseline: str
    beats: str


ACCURACY = _Measure("accuracy", "persistence_accuracy", "beats_persistence")
LOG_LOSS = _Measure("log_loss", "no_covariates_log_loss", "beats_no_covariates")


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
    counts = {"chosen": len(chosen), "cases": len(document.answers)}
    confirmed = sum(one.confirmed for one in chosen)
    caption = (
        words("figure.answer.caption", confirmed=confirmed, **counts),
        words("figure.answer.bars", level=show_level(document.study.confidence))
        if any(one.accuracy_low is not None for one in chosen)
        else "",
        words("figure.answer.hollow") if confirmed < len(chosen) else "",
        words("figure.answer.none", none=len(document.answers) - len(chosen))
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
    among = list_methods(document)
    methods = [method for method in among if any(one.method == method for one in document.answers)]
    colours, shapes = _with_baseline(methods, among, baseline, words, palette)
    numbers = [row[name] for row in rows for name in ("value", "low", "high", "base") if name in row]
    tip = ("case", "method", "told", "interval", "baseline", "rows")
    base = alt.Chart().encode(
        y=case_axis(list_cases(document)),
        opacity=dim(),
        tooltip=tips({name: words(f"figure.tip.{name}") for name in tip}),
    )
    axis = alt.Axis(title=words(f"figure.axis.answer_{own.name}"), tickCount=6)
    x: dict[str, Any] = {"scale": choose_scale(numbers), "axis": axis}
    colour = alt.Color("method:N", scale=colours, legend=legend(3))
    shape = alt.Shape("method:N", scale=shapes, legend=legend(3))
    base_colour = alt.Color("base_name:N", scale=colours, legend=legend(3))
    base_shape = alt.Shape("base_name:N", scale=shapes, legend=legend(3))
    scored = base.encode(x=alt.X("value:Q", **x), color=colour, shape=shape)
    bars = base.encode(x=alt.X("low:Q", **x), x2="high:Q", color=colour).mark_rule(strokeWidth=2)
    strokes = base.encode(x=alt.X("base:Q", **x), color=base_colour, shape=base_shape)
    layers = (
        ("isValid(datum.low)", bars),
        ("isValid(datum.base)", strokes.mark_point(filled=False, size=BASELINE_POINT, strokeWidth=2)),
        ("isValid(datum.value) && datum.confirmed", scored.mark_point(filled=True, size=FOREST_POINT)),
        (
            "isValid(datum.value) && !datum.confirmed",
            scored.mark_point(filled=False, fill=palette.surface, size=FOREST_POINT, strokeWidth=1.6),
        ),
        (
            "!isValid(datum.value)",
            base.mark_text(align="left", color=palette.muted).encode(x=alt.value(4), text="method:N"),
        ),
    )
    there = (
        any("low" in row for row in rows),
        any("base" in row for row in rows),
        any("value" in row and row["confirmed"] for row in rows),
        any("value" in row and not row["confirmed"] for row in rows),
        any("value" not in row for row in rows),
    )
    shown = [layer.transform_filter(which) for (which, layer), some in zip(layers, there, strict=True) if some]
    width = WIDTH - CASE_LABELS - RIGHT
    return assemble(shown, rows, width=width, height=alt.Step(ROW))


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
        "told": tell(value),
        "interval": words("figure.interval", low=tell(numbers.get("low")), high=tell(numbers.get("high"))),
        "baseline": tell(base),
        "rows": scored,
    } | {name: shorten(number) for name, number in numbers.items() if number is not None}


def _with_baseline(
    methods: Sequence[str], among: Sequence[str], baseline: str, words: Words, palette: Palette
) -> tuple[alt.Scale, alt.Scale]:
    """Colours and shapes of the chosen methods, and of the baseline after them."""
    names = [*(name_method(method, words) for method in methods), baseline]
    colours = [*(colour_of(method, among, palette) for method in methods), palette.ink]
    shapes = [*(SHAPES[place_of(method, among)] for method in methods), UPRIGHT]
    return alt.Scale(domain=names, range=colours), alt.Scale(domain=names, range=shapes)


def _tell_answer(document: Document, measure: _Measure, words: Words) -> str:
    verdicts = [getattr(one, measure.beats) for one in document.answers if one.method is not None]
    counts = {name: verdicts.count(name) for name in ("better", "worse")}
    counts["not_shown"] = verdicts.count("not shown")
    unknown = verdicts.count(None)
    return join_sentences(
        (
            words(f"figure.answer.alt_{measure.name}", chosen=len(verdicts), **counts),
            words("figure.answer.alt_unconfirmed", count=unknown) if unknown else "",
        ),
        words,
    )
