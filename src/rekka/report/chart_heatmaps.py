"""Heat maps of accuracy and time by case and method (paper, Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from rekka.report.chart_parts import (
    CASE_LABELS,
    RIGHT,
    WIDTH,
    Chart,
    case_axis,
    dim,
    list_cases,
    list_methods,
    make_panel,
    shorten,
    tell_name,
)
from rekka.report.chart_trials import (
    compare_sets,
    describe_trial,
    find_trials,
    tell_median_seconds,
    trial_tips,
)
from rekka.report.document import Document, PresetPart, TrialPart
from rekka.report.numbers import MISSING, show_count, show_number
from rekka.report.palette import Palette, ink_on, shade
from rekka.report.views import FigureView
from rekka.report.words import Words, join_sentences, name_method

CELL_ROW = 26  # pixels
MANY_METHODS = 5  # more need slanted labels
INNER, OUTER = 0.82, 0.97  # of a row: the cell, and the outline around it with a little air between
CORNER = "M-1,-1H1L-1,1Z"  # a cell's upper left corner
NARROW = 40  # pixels: a cell below it has smaller figures

Values = Mapping[tuple[str, str], float | None]  # by case and method


def draw_heatmaps(document: Document, preset: PresetPart, *, words: Words, palette: Palette) -> FigureView | None:
    """Accuracy and time of every case and method."""
    trials = find_trials(document, preset.name)
    gray = sum(not trial.eligible for trial in trials)
    counts = {"gray": show_count(gray), "trials": show_count(len(trials))}
    panels = []
    for name, draw, told in (
        ("accuracy", heatmap_accuracy, _tell_range(trials, words)),
        ("time", heatmap_time, tell_median_seconds(document, preset, words)),
    ):
        chart = draw(document, preset.name, words=words, palette=palette)
        if chart is not None:
            alt_text = join_sentences((told, words("figure.heatmap.gray", **counts)), words)
            panels.append(make_panel(name, words(f"figure.heatmap.panel_{name}"), alt_text, chart, palette))
    if not panels:
        return None
    place = {"preset": words.get(f"preset.{preset.name}", preset.name)}
    caption = (
        words(f"figure.heatmap.caption_{preset.eligible}", **place, **counts),
        words(f"figure.heatmap.{compare_sets(trials)}"),
    )
    return FigureView(
        name=f"heatmap-{preset.name}",
        title=words("figure.heatmap.title", **place),
        caption=join_sentences(caption, words),
        panels=tuple(panels),
    )


def heatmap_accuracy(document: Document, preset: str, *, words: Words, palette: Palette) -> Chart | None:
    """Accuracy of each case and method; gray where it cannot be selected."""
    values = {_key(trial): trial.accuracy for trial in find_trials(document, preset) if trial.eligible}
    return _heatmap(document, preset, _Ramp(values, 3, more_is_better=True), words, palette)


def heatmap_time(document: Document, preset: str, *, words: Words, palette: Palette) -> Chart | None:
    """Optimizer time of each case and method, as its logarithm to base 10 (seconds)."""
    values = {
        _key(trial): math.log10(trial.seconds)
        for trial in find_trials(document, preset)
        if trial.eligible and trial.seconds
    }
    return _heatmap(document, preset, _Ramp(values, 2, more_is_better=False), words, palette)


class _Ramp:
    """Numbers, how they are written, and their colours: the brighter the better."""

    def __init__(self, values: Values, digits: int, *, more_is_better: bool) -> None:
        self.values, self.digits = values, digits
        self.known = sorted(value for value in values.values() if value is not None)
        self.more_is_better = more_is_better

    def cell(self, trial: TrialPart, words: Words, palette: Palette) -> dict[str, Any]:
        """A trial's row of data: gray with a dash where it has no number."""
        value = self.values.get(_key(trial))
        if value is None:
            own: dict[str, Any] = {"fill": palette.failed, "ink": palette.ink, "told": MISSING}
            return describe_trial(trial, words) | own
        fill = shade(self._place(value))
        told = show_number(value, self.digits)
        own = {"fill": fill, "ink": ink_on(fill), "told": told, "value": shorten(value)}
        return describe_trial(trial, words) | own

    def _place(self, value: float) -> float:
        low, high = self.known[0], self.known[-1]
        share = (value - low) / (high - low) if high > low else 1.0
        return share if self.more_is_better or high == low else 1.0 - share


def _heatmap(document: Document, preset: str, ramp: _Ramp, words: Words, palette: Palette) -> Chart | None:
    """Cells with their numbers; outlined in the Pareto set, with a corner where selected if that differs."""
    if not ramp.known:
        return None
    trials = find_trials(document, preset)
    methods = [method for method in list_methods(document) if any(trial.method == method for trial in trials)]
    width = WIDTH - CASE_LABELS - RIGHT
    cell = width / len(methods)
    x, y = _method_axis(methods, words), case_axis(list_cases(document))
    base = alt.Chart().encode(x=x, y=y, opacity=dim(), tooltip=trial_tips(words))
    ink = alt.Color("ink:N", scale=None)
    outer = alt.RelativeBandSize(band=OUTER)
    # as much air at the sides as above and below
    sides = alt.RelativeBandSize(band=shorten(OUTER - (OUTER - INNER) * CELL_ROW / cell))
    layers = [
        base.mark_rect(height=alt.RelativeBandSize(band=INNER), width=sides).encode(
            fill=alt.Fill("fill:N", scale=None)
        ),
        base.transform_filter("datum.pareto")
        .mark_rect(height=outer, width=outer, fill=None, strokeWidth=1.8)
        .encode(stroke=alt.StrokeValue(palette.ink)),
        base.mark_text(fontSize=11 if cell > NARROW else 9).encode(text=alt.Text("told:N"), color=ink),
    ]
    if compare_sets(trials) == "selected_differs":
        corners = base.transform_filter("datum.selected").mark_point(filled=True, shape=CORNER, size=50, opacity=1)
        layers.append(corners.encode(x=x.bandPosition(0.12), y=y.bandPosition(0.26), color=ink))
    return Chart(
        layers, [ramp.cell(trial, words, palette) for trial in trials], width=width, height=alt.Step(CELL_ROW)
    )


def _method_axis(methods: Sequence[str], words: Words) -> alt.X:
    """A column for each method, named above it."""
    axis = alt.Axis(
        orient="top",
        title=None,
        labelAngle=-40 if len(methods) > MANY_METHODS else 0,
        labelFontSize=10,
        labelLimit=90,
        ticks=False,
        domain=False,
    )
    names = [name_method(method, words) for method in methods]
    return alt.X("method:N", scale=alt.Scale(domain=names), sort=None, axis=axis)


def _key(trial: TrialPart) -> tuple[str, str]:
    return trial.case, trial.method


def _tell_range(trials: Iterable[TrialPart], words: Words) -> str:
    """The lowest and the highest accuracy, and whose they are."""
    able = [(trial.accuracy, trial) for trial in trials if trial.eligible and trial.accuracy is not None]
    if not able:
        return ""
    (low, worst), (high, best) = (choose(able, key=lambda pair: pair[0]) for choose in (min, max))
    return words(
        "figure.heatmap.alt_accuracy",
        low=show_number(low),
        low_case=tell_name(worst.case),
        low_method=name_method(worst.method, words),
        high=show_number(high),
        high_case=tell_name(best.case),
        high_method=name_method(best.method, words),
    )
