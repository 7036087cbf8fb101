"""Charts of all trials under a preset: accuracy against cost, and coverage by method (paper, Figure 1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt

from rekka.report.chart_parts import (
    INNER_WIDTH,
    Chart,
    Rows,
    answer_yes,
    colour_scale,
    dim,
    legend,
    list_methods,
    log_ticks,
    make_panel,
    number_axis,
    shape_scale,
    shorten,
    tips,
)
from rekka.report.document import Document, MethodPart, PresetPart, TrialPart
from rekka.report.numbers import show_accuracy, show_count, show_loss, show_seconds
from rekka.report.palette import Palette
from rekka.report.views import FigureView
from rekka.report.words import Words, join_names, join_sentences, name_method, slug

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
