"""Charts of the answer: how each case's model did beside its baselines.

Charts of all trials under a preset: accuracy against cost, and coverage by method (paper, Figure 1).

Heat maps of accuracy and time by case and method (paper, Figure 2).

How far the paper's conditions stop short of the exact maximum, by case and method, and why.

How often refits to other bridges, other splits and from other starts choose what the study chose.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from rekka.report.charts.base import (
    CASE_LABELS,
    INNER_WIDTH,
    RIGHT,
    ROW,
    SHAPES,
    WIDTH,
    Chart,
    Palette,
    Rows,
    answer_yes,
    case_axis,
    choose_scale,
    colour_of,
    colour_scale,
    dim,
    ink_on,
    inline,
    legend,
    list_cases,
    list_methods,
    log_ticks,
    make_panel,
    number_axis,
    place_of,
    shade,
    shape_scale,
    shorten,
    tell_name,
    tips,
)
from rekka.report.document import Answer, BothPart, Document, MethodPart, PresetPart, SharePart, TrialPart
from rekka.report.text import (
    MISSING,
    Show,
    Words,
    join_names,
    join_sentences,
    name_method,
    show_accuracy,
    show_count,
    show_figure,
    show_level,
    show_loss,
    show_number,
    show_range,
    show_seconds,
    show_share,
    slug,
)
from rekka.report.views import FigureView, Panel
from rekka.study.tables import Cause
from rekka.study.trial import AT_MAXIMUM

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


SECONDS = "seconds"  # the other cost is evaluations
HEIGHT = 300
PAPER_WIDTH = 274  # pixels of a plot on paper
DODGE = 10.0  # pixels, at most, between methods at the same whole number of evaluations
MANY_TIMES = 10.0  # evaluations that differ so much have a logarithmic axis
COUNTED = ("converged", "certified", "selected", "pareto")
POINT, RING = 80, 230  # square pixels


def draw_tradeoff(document: Document, preset: PresetPart, *, words: Words, palette: Palette) -> FigureView | None:
    """Accuracy against cost beside coverage."""
    plane = tradeoff(document, preset.name, words=words, palette=palette)
    bars = coverage(document, preset.name, words=words, palette=palette)
    if plane is None or bars is None:
        return None
    trials = find_trials(document, preset.name)
    place = {"preset": words.get(f"preset.{preset.name}", preset.name)}
    title = words(f"figure.tradeoff.panel_{preset.cost}")
    panels = (
        make_panel("tradeoff", title, _tell_tradeoff(document, preset, words), plane, palette),
        make_panel(
            "coverage", words("figure.coverage.panel"), _tell_coverage(document, preset, words), bars, palette
        ),
    )
    caption = (
        words(f"figure.tradeoff.caption_{preset.eligible}", **place),
        words("figure.tradeoff.dodged") if _is_dodged(plane) else "",
        words(f"figure.tradeoff.{compare_sets(trials)}"),
        _tell_most_accurate(trials, words),
    )
    return FigureView(
        name=f"tradeoff-{preset.name}",
        title=words("figure.tradeoff.title", **place),
        caption=join_sentences(caption, words),
        panels=panels,
    )


def tradeoff(document: Document, preset: str, *, words: Words, palette: Palette) -> Chart | None:
    """A mark for each trial that can be selected: its cost, its accuracy, its method."""
    cost = _find_preset(document, preset).cost
    methods = list_methods(document)
    rows = _list_points(document, preset, words)
    if not rows:
        return None
    shown = [method for method in methods if any(row["method"] == name_method(method, words) for row in rows)]
    axis = _cost_axis([row["cost"] for row in rows], cost, words)
    rows = _stand_apart(rows, [name_method(method, words) for method in shown], axis) if axis.unit else rows
    base = alt.Chart().encode(
        x=alt.X("cost:Q", scale=axis.scale, axis=axis.axis),
        y=alt.Y(
            "accuracy:Q",
            scale=alt.Scale(zero=False, nice=True, padding=8),
            axis=number_axis(words("figure.axis.accuracy"), tickCount=6, format=".2f"),
        ),
        opacity=dim(0.9),
        tooltip=trial_tips(words),
    )
    offset: Any = {"expr": "datum.dodge"} if axis.unit else 0
    marks = base.mark_point(filled=True, size=POINT, xOffset=offset).encode(
        color=alt.Color("method:N", scale=colour_scale(shown, methods, words, palette), legend=legend()),
        shape=alt.Shape("method:N", scale=shape_scale(shown, methods, words), legend=legend()),
        stroke=alt.StrokeValue("transparent", condition={"test": "datum.pareto", "value": palette.ink}),
        strokeWidth=alt.StrokeWidthValue(1.5),
    )
    rings = base.mark_point(shape="circle", size=RING, xOffset=offset, filled=False).encode(
        stroke=alt.StrokeValue(palette.accent), strokeWidth=alt.StrokeWidthValue(1.6)
    )
    differ = compare_sets(find_trials(document, preset)) == "selected_differs"
    layers = [marks, rings.transform_filter("datum.selected")] if differ else [marks]
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def _is_dodged(plane: Chart) -> bool:
    """Whether the methods stand beside each other at whole numbers."""
    return "dodge" in plane.rows[0]


def coverage(document: Document, preset: str, *, words: Words, palette: Palette) -> Chart | None:
    """How many trials of each method converged, are certified, selected, in the Pareto set."""
    methods = [part for part in document.methods if part.preset == preset]
    rows = [row for part in methods for row in _count_rows(part, words)]
    if not rows:
        return None
    names = [name_method(part.method, words) for part in methods]
    known = [name for name in COUNTED if any(getattr(part, name) is not None for part in methods)]
    groups = [words(f"figure.coverage.{name}") for name in known]
    most = max(part.trials for part in methods)
    base = alt.Chart().encode(
        x=alt.X("what:N", scale=alt.Scale(domain=groups), sort=None, axis=alt.Axis(title=None, labelAngle=0)),
        xOffset=alt.XOffset("method:N", scale=alt.Scale(domain=names), sort=None),
        y=alt.Y(
            "count:Q",
            scale=alt.Scale(domain=[0, shorten(most * 1.08)], nice=False),
            axis=number_axis(
                words("figure.axis.trials", trials=show_count(most)),
                format="d",
                tickCount=min(most, 6),
                tickMinStep=1,
            ),
        ),
        tooltip=tips(
            {
                "method": words("figure.tip.method"),
                "what": words("figure.tip.what"),
                "told": words("figure.tip.trials"),
            }
        ),
    )
    ordered = [part.method for part in methods]
    colour = alt.Color(
        "method:N", scale=colour_scale(ordered, list_methods(document), words, palette), legend=legend()
    )
    bars = base.mark_bar().encode(color=colour)
    labels = base.mark_text(baseline="bottom", dy=-2, fontSize=10).encode(text=alt.Text("count:Q"))
    return Chart([bars, labels], rows, width=INNER_WIDTH, height=HEIGHT)


def find_trials(document: Document, preset: str) -> list[TrialPart]:
    """The trials under a preset."""
    return [trial for trial in document.trials if trial.preset == preset]


def find_cost(trial: TrialPart, cost: str) -> float | None:
    """What a trial cost; a logarithm needs it to be more than nothing."""
    value = trial.seconds if cost == SECONDS else trial.evaluations
    return float(value) if value else None


def _find_preset(document: Document, preset: str) -> PresetPart:
    return next(part for part in document.study.presets if part.name == preset)


def describe_trial(trial: TrialPart, words: Words) -> dict[str, Any]:
    """What every tooltip of a trial says."""
    return {
        "case": trial.case,
        "method": name_method(trial.method, words),
        "status": words.get(f"status.{slug(trial.status)}", trial.status),
        "accuracy": None if trial.accuracy is None else shorten(trial.accuracy),
        "accuracy_told": show_accuracy(trial.accuracy),
        "log_loss": show_loss(trial.log_loss),
        "seconds": show_seconds(trial.seconds),
        "evaluations": show_count(trial.evaluations),
        "pareto": trial.pareto,
        "selected": trial.selected,
        "pareto_told": answer_yes(trial.pareto, words),
        "selected_told": answer_yes(trial.selected, words),
    }


def trial_tips(words: Words) -> list[alt.Tooltip]:
    """What a reader sees who points at a trial."""
    fields = ("case", "method", "status", "accuracy_told", "log_loss", "seconds", "evaluations")
    return tips(
        {field: words(f"figure.tip.{field.removesuffix('_told')}") for field in fields}
        | {f"{field}_told": words(f"figure.tip.{field}") for field in ("pareto", "selected")}
    )


def _list_points(document: Document, preset: str, words: Words) -> Rows:
    """Trials that can be selected; those of the Pareto set last, on top of the others."""
    cost = _find_preset(document, preset).cost
    found = []
    for trial in find_trials(document, preset):
        value = find_cost(trial, cost)
        if trial.eligible and value is not None and trial.accuracy is not None:
            found.append(describe_trial(trial, words) | {"cost": shorten(value)})
    return sorted(found, key=lambda row: (row["selected"], row["pareto"]))


def _stand_apart(rows: Rows, names: list[str], axis: _CostAxis) -> Rows:
    """Marks of several methods at one whole number beside each other, in the order of the methods."""
    step = min(DODGE, 0.9 * axis.unit / len(names))
    middle = (len(names) - 1) / 2
    return [row | {"dodge": shorten(step * (names.index(row["method"]) - middle))} for row in rows]


@dataclass(frozen=True)
class _CostAxis:
    """``unit`` is how many pixels one evaluation has on paper, where panels are narrowest; 0 on other axes."""

    scale: alt.Scale
    axis: alt.Axis
    unit: float = 0.0


def _cost_axis(values: list[float], cost: str, words: Words) -> _CostAxis:
    low, high = min(values), max(values)
    title = words(f"figure.axis.{cost}")
    if cost == SECONDS or high > MANY_TIMES * low:
        low, high = low / 1.25, high * 1.25  # so that marks at the edge are whole
        scale = alt.Scale(type="log", domain=[shorten(low), shorten(high)], nice=False)
        return _CostAxis(scale, alt.Axis(title=title, values=log_ticks(low, high), format="~g"))
    scale = alt.Scale(domain=[low - 0.6, high + 0.6], nice=False, zero=False)
    axis = alt.Axis(title=title, tickMinStep=1, format="d", tickCount=8)
    return _CostAxis(scale, axis, PAPER_WIDTH / (high - low + 1.2))


def _count_rows(part: MethodPart, words: Words) -> Rows:
    """A row for each count that is known."""
    found = []
    for name in COUNTED:
        count = getattr(part, name)
        if count is not None:
            own = {"method": name_method(part.method, words), "what": words(f"figure.coverage.{name}")}
            told = words("figure.of", count=show_count(count), trials=show_count(part.trials))
            found.append(own | {"count": count, "told": told})
    return found


def compare_sets(trials: Iterable[TrialPart]) -> str:
    """Whether what was selected is the Pareto set, another set, or nothing at all."""
    pairs = [(trial.pareto, trial.selected) for trial in trials]
    if not any(selected for _, selected in pairs):
        return "nothing_selected"
    return "selected_same" if all(pareto == selected for pareto, selected in pairs) else "selected_differs"


def _tell_tradeoff(document: Document, preset: PresetPart, words: Words) -> str:
    trials = find_trials(document, preset.name)
    shown = len(_list_points(document, preset.name, words))
    pareto = Counter(trial.method for trial in trials if trial.pareto)
    return join_sentences(
        (
            words("figure.tradeoff.alt_shown", shown=show_count(shown), trials=show_count(len(trials))),
            words("figure.tradeoff.alt_pareto", items=_count_items(pareto, document, words)),
            _tell_most_accurate(trials, words),
            tell_median_seconds(document, preset, words) if preset.cost == SECONDS else "",
        ),
        words,
    )


def _tell_coverage(document: Document, preset: PresetPart, words: Words) -> str:
    sentences = []
    for part in document.methods:
        if part.preset == preset.name:
            counts = {name: show_count(getattr(part, name)) for name in COUNTED}
            key = "alt" if part.certified is not None else "alt_uncertified"
            places = {"method": name_method(part.method, words), "trials": show_count(part.trials)}
            sentences.append(words(f"figure.coverage.{key}", **places, **counts))
    return join_sentences(sentences, words)


def _tell_most_accurate(trials: Iterable[TrialPart], words: Words) -> str:
    """In how many cases each method is the most accurate, or as accurate as any."""
    best: dict[str, float] = {}
    able = [trial for trial in trials if trial.eligible and trial.accuracy is not None]
    for trial in able:
        best[trial.case] = max(best.get(trial.case, -math.inf), trial.accuracy or 0.0)
    counts = Counter(trial.method for trial in able if trial.accuracy == best[trial.case])
    if not counts:
        return ""
    items = [
        words("figure.item", name=name_method(method, words), count=show_count(count))
        for method, count in counts.most_common()
    ]
    return words("figure.tradeoff.most_accurate", items=join_names(items, words), cases=show_count(len(best)))


def _count_items(counts: Mapping[str, int], document: Document, words: Words) -> str:
    return join_names(
        (
            words("figure.item", name=name_method(method, words), count=show_count(counts.get(method, 0)))
            for method in list_methods(document)
        ),
        words,
    )


def tell_median_seconds(document: Document, preset: PresetPart, words: Words) -> str:
    """The median time of each method's trials that can be selected."""
    items = [
        words("figure.item", name=name_method(part.method, words), count=show_seconds(part.median_seconds))
        for part in document.methods
        if part.preset == preset.name and part.median_seconds is not None
    ]
    return words("figure.tradeoff.median_seconds", items=join_names(items, words)) if items else ""


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


LEAST, MOST = 1e-8, 1e6  # nats; beyond these a mark stands at the edge with an arrow
WIDE_ROW = 34  # pixels: the methods of a case stand below each other
PRESET_POINT = 55  # square pixels


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
    points = base.mark_point(filled=True, size=PRESET_POINT).encode(
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
