"""Charts of a study: answers beside their baselines, trials by accuracy and cost, presets, stability.

Accuracy against cost with coverage by method is the paper's Figure 1, the heat maps are its Figure 2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rekka.report.charts.base import (
    CASE_LABELS,
    CASE_WIDTH,
    INNER_WIDTH,
    ROW,
    WIDTH,
    Chart,
    Palette,
    Rows,
    Spec,
    Theme,
    case_axis,
    category,
    choose_scale,
    count_items,
    dim,
    ink_on,
    isolate_name,
    layer,
    legend,
    list_cases,
    list_methods,
    log_scale,
    log_ticks,
    make_figure,
    method_scales,
    number_axis,
    quantity,
    say_yes,
    shade,
    shorten,
    shorten_ends,
    span,
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
from rekka.report.views import FigureView
from rekka.study.tables import Cause
from rekka.study.trial import AT_MAXIMUM

UPRIGHT = "M0,-1.6V1.6"  # the baseline's mark
CORNER = "M-1,-1H1L-1,1Z"  # a cell's upper left corner
FOREST_POINT, BASELINE_POINT, PRESET_POINT = 70, 60, 55  # square pixels
POINT, RING = 80, 230  # square pixels
SECONDS = "seconds"  # the other cost is evaluations
HEIGHT = 300
PAPER_WIDTH = 274  # pixels of a plot on paper
DODGE = 10.0  # pixels, at most, between methods at the same whole number of evaluations
MANY_TIMES = 10.0  # evaluations that differ so much have a logarithmic axis
COUNTED = ("converged", "certified", "selected", "pareto")
CELL_ROW = 26  # pixels
MANY_METHODS = 5  # more need slanted labels
INNER, OUTER = 0.82, 0.97  # of a row: the cell, and the outline around it with a little air between
NARROW = 40  # pixels: a cell below it has smaller figures
LEAST, MOST = 1e-8, 1e6  # log-likelihood; beyond these a mark stands at the edge with an arrow
WIDE_ROW = 34  # pixels: the methods of a case stand below each other
NONE = "none"  # no choice
SHARE_LABELS = 44  # pixels for the shares at the right
HALF = 0.5


# Answers


@dataclass(frozen=True)
class _Measure:
    """One score of an answer and the baseline that belongs to it."""

    name: str
    baseline: str
    beats: str
    show: Show


MEASURES = (
    _Measure("accuracy", "persistence_accuracy", "beats_persistence", show_accuracy),
    _Measure("log_loss", "no_covariates_log_loss", "beats_no_covariates", show_loss),
)


def draw_answer(document: Document, theme: Theme) -> FigureView | None:
    """Accuracy beside log loss, each with its baseline."""
    words, answers = theme.words, document.answers
    panels = (
        (
            one.name,
            words(f"figure.answer.panel_{one.name}"),
            _describe_answer(document, one, words),
            _answer(document, one, theme),
        )
        for one in MEASURES
    )
    chosen = [one for one in answers if one.method is not None]
    confirmed, none = sum(one.confirmed for one in chosen), len(answers) - len(chosen)
    counts = {"chosen": len(chosen), "cases": len(answers), "confirmed": confirmed}
    level = show_level(document.study.confidence)
    caption = (
        words("figure.answer.caption", **{name: show_count(count) for name, count in counts.items()}),
        words("figure.answer.bars", level=level) if any(one.accuracy_low is not None for one in chosen) else "",
        words("figure.answer.hollow") if confirmed < len(chosen) else "",
        words("figure.answer.none", none=show_count(none)) if none else "",
    )
    return make_figure("answer", panels, caption, theme)


def _answer(document: Document, measure: _Measure, theme: Theme) -> Chart | None:
    """A row for each case: the chosen model's score with its interval, and the baseline's; or the word none."""
    words = theme.words
    baseline = words(f"figure.answer.baseline_{measure.name}")
    rows = [_answer_row(one, measure, words) | {"base_name": baseline} for one in document.answers]
    scored = [row for row in rows if "value" in row]
    if not scored:
        return None
    numbers = [row[name] for row in scored for name in ("value", "low", "high", "base") if name in row]
    title = words(f"figure.axis.answer_{measure.name}")
    x = {"scale": choose_scale(numbers), "axis": {"title": title, "tickCount": 6}}
    shown = list_methods(document, [one.method for one in document.answers if one.method])
    colours, shapes = method_scales(document, shown, theme, (baseline, theme.palette.ink, UPRIGHT))
    key = legend(3)
    case = {
        "y": case_axis(list_cases(document)),
        "opacity": dim(),
        "tooltip": tips(words, "case", "method", "score_text", "interval", "baseline", "rows"),
    }
    colour = {"color": category("method", scale=colours, legend=key)}
    point = case | colour | {"x": quantity("value", **x), "shape": category("method", scale=shapes, legend=key)}
    stroke = {
        "x": quantity("base", **x),
        "color": category("base_name", scale=colours, legend=key),
        "shape": category("base_name", scale=shapes, legend=key),
    }
    hollow: Spec = {"filled": False, "fill": theme.palette.surface, "strokeWidth": 1.6}
    none = {"x": {"value": 4}, "text": category("method")}
    layers = (
        layer("rule", case | colour | span("x", "low", "high", **x), where="isValid(datum.low)", strokeWidth=2),
        layer(
            "point", case | stroke, where="isValid(datum.base)", filled=False, size=BASELINE_POINT, strokeWidth=2
        ),
        layer("point", point, where="isValid(datum.value) && datum.confirmed", filled=True, size=FOREST_POINT),
        layer("point", point, where="isValid(datum.value) && !datum.confirmed", size=FOREST_POINT, **hollow),
        layer("text", case | none, where="!isValid(datum.value)", align="left", color=theme.palette.muted),
    )
    there = (
        any("low" in row for row in scored),
        any("base" in row for row in scored),
        any(row["confirmed"] for row in scored),
        not all(row["confirmed"] for row in scored),
        len(scored) < len(rows),
    )
    drawn = [one for one, some in zip(layers, there, strict=True) if some]
    return Chart(drawn, rows, width=CASE_WIDTH, height={"step": ROW})


def _answer_row(one: Answer, measure: _Measure, words: Words) -> dict[str, Any]:
    value, base = getattr(one, measure.name), getattr(one, measure.baseline)
    method = words("method.none") if one.method is None else name_method(one.method, words)
    if one.method is None or value is None:
        return {"case": one.case, "method": method}
    low, high = (getattr(one, f"{measure.name}_{end}") for end in ("low", "high"))
    ends = shorten_ends(low, high)
    return {
        "case": one.case,
        "method": method,
        "confirmed": one.confirmed,
        "value": shorten(value),
        "score_text": measure.show(value),
        "interval": show_range(low, high, measure.show, words) if ends else MISSING,
        "baseline": measure.show(base),
        "rows": "" if one.scored_on is None else words.get(f"rows.{one.scored_on}", one.scored_on),
        **({} if base is None else {"base": shorten(base)}),
        **ends,
    }


def _describe_answer(document: Document, measure: _Measure, words: Words) -> str:
    verdicts = [getattr(one, measure.beats) for one in document.answers if one.method is not None]
    counts = {one.replace(" ", "_"): show_count(verdicts.count(one)) for one in ("better", "worse", "not shown")}
    unknown = verdicts.count(None)
    return join_sentences(
        (
            words(f"figure.answer.alt_{measure.name}", chosen=show_count(len(verdicts)), **counts),
            words("figure.answer.alt_unconfirmed", count=show_count(unknown)) if unknown else "",
        ),
        words,
    )


# Trials under a preset


def draw_tradeoff(document: Document, preset: PresetPart, theme: Theme) -> FigureView | None:
    """Accuracy against cost beside coverage."""
    words = theme.words
    plane, bars = tradeoff(document, preset, theme), _coverage(document, preset, theme)
    if plane is None or bars is None:
        return None
    trials = _find_trials(document, preset)
    place = {"preset": words.get(f"preset.{preset.name}", preset.name)}
    shown = _describe_tradeoff(document, preset, len(plane.rows), words)
    panels = (
        ("tradeoff", words(f"figure.tradeoff.panel_{preset.cost}"), shown, plane),
        ("coverage", words("figure.coverage.panel"), _describe_coverage(document, preset, words), bars),
    )
    caption = (
        words(f"figure.tradeoff.caption_{preset.eligible}", **place),
        words("figure.tradeoff.dodged") if "dodge" in plane.rows[0] else "",
        words(f"figure.tradeoff.{_compare_sets(trials)}"),
        _count_most_accurate(trials, words),
    )
    return make_figure("tradeoff", panels, caption, theme, place, name=f"tradeoff-{preset.name}")


def tradeoff(document: Document, preset: PresetPart, theme: Theme) -> Chart | None:
    """A mark for each trial that can be selected: its cost, its accuracy, its method; the Pareto set on top."""
    words, palette = theme.words, theme.palette
    trials = [one for one in _find_trials(document, preset) if one.eligible and one.accuracy is not None]
    points = [
        (one, cost) for one in trials if (cost := one.seconds if preset.cost == SECONDS else one.evaluations)
    ]
    points.sort(key=lambda point: (point[0].selected, point[0].pareto))
    if not points:
        return None
    shown = list_methods(document, [one.method for one, _ in points])
    x, unit = _cost_axis([shorten(cost) for _, cost in points], preset.cost, words)
    step, middle = min(DODGE, 0.9 * unit / len(shown)), (len(shown) - 1) / 2
    rows = [
        _describe_trial(one, words)
        | {"cost": shorten(cost)}
        | ({"dodge": shorten(step * (shown.index(one.method) - middle))} if unit else {})
        for one, cost in points
    ]
    y_axis = number_axis(words("figure.axis.accuracy"), tickCount=6, format=".2f")
    base = {
        "x": quantity("cost", **x),
        "y": quantity("accuracy", scale={"zero": False, "nice": True, "padding": 8}, axis=y_axis),
        "opacity": dim(0.9),
        "tooltip": _trial_tips(words),
    }
    colours, shapes = method_scales(document, shown, theme)
    marks = {
        "color": category("method", scale=colours, legend=legend()),
        "shape": category("method", scale=shapes, legend=legend()),
        "stroke": {"value": "transparent", "condition": {"test": "datum.pareto", "value": palette.ink}},
        "strokeWidth": {"value": 1.5},
    }
    ring: Spec = {"stroke": {"value": palette.accent}, "strokeWidth": {"value": 1.6}}
    # marks of several methods at one whole number stand beside each other
    offset: Spec = {"xOffset": {"expr": "datum.dodge"} if unit else 0}
    layers = [layer("point", base | marks, filled=True, size=POINT, **offset)]
    if _compare_sets(_find_trials(document, preset)) == "selected_differs":
        look_of_ring: Spec = {"shape": "circle", "size": RING, "filled": False}
        layers.append(layer("point", base | ring, where="datum.selected", **look_of_ring, **offset))
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def _cost_axis(values: list[float], cost: str, words: Words) -> tuple[Spec, float]:
    """Scale and axis of costs, and pixels of one evaluation on paper, where panels are narrowest; 0 of a log."""
    low, high = min(values), max(values)
    title = words(f"figure.axis.{cost}")
    if cost == SECONDS or high > MANY_TIMES * low:
        low, high = low / 1.25, high * 1.25  # so that marks at the edge are whole
        axis: Spec = {"title": title, "values": log_ticks(low, high), "format": "~g"}
        return {"scale": log_scale(low, high), "axis": axis}, 0.0
    scale: Spec = {"domain": [low - 0.6, high + 0.6], "nice": False, "zero": False}
    axis = {"title": title, "tickMinStep": 1, "format": "d", "tickCount": 8}
    return {"scale": scale, "axis": axis}, PAPER_WIDTH / (high - low + 1.2)


def _coverage(document: Document, preset: PresetPart, theme: Theme) -> Chart | None:
    """Trials of each method that converged, are certified, selected, in the Pareto set."""
    words = theme.words
    methods = _find_methods(document, preset)
    rows = [
        {
            "method": name_method(part.method, words),
            "what": words(f"figure.coverage.{name}"),
            "count": count,
            "trials_text": words("figure.of", count=show_count(count), trials=show_count(part.trials)),
        }
        for part in methods
        for name in COUNTED
        if (count := getattr(part, name)) is not None
    ]
    if not rows:
        return None
    colours, _ = method_scales(document, [part.method for part in methods], theme)
    known = [name for name in COUNTED if any(getattr(part, name) is not None for part in methods)]
    groups = [words(f"figure.coverage.{name}") for name in known]
    most = max(part.trials for part in methods)
    title = words("figure.axis.trials", trials=show_count(most))
    base = {
        "x": category("what", scale={"domain": groups}, sort=None, axis={"title": None, "labelAngle": 0}),
        "xOffset": category("method", scale={"domain": colours["domain"]}, sort=None),
        "y": quantity(
            "count",
            scale={"domain": [0, shorten(most * 1.08)], "nice": False},
            axis=number_axis(title, format="d", tickCount=min(most, 6), tickMinStep=1),
        ),
        "tooltip": tips(words, "method", "what", "trials_text"),
    }
    layers = (
        layer("bar", base | {"color": category("method", scale=colours, legend=legend())}),
        layer("text", base | {"text": quantity("count")}, baseline="bottom", dy=-2, fontSize=10),
    )
    return Chart(layers, rows, width=INNER_WIDTH, height=HEIGHT)


def _find_trials(document: Document, preset: PresetPart) -> list[TrialPart]:
    return [trial for trial in document.trials if trial.preset == preset.name]


def _find_methods(document: Document, preset: PresetPart) -> list[MethodPart]:
    return [part for part in document.methods if part.preset == preset.name]


def _describe_trial(trial: TrialPart, words: Words) -> dict[str, Any]:
    """A trial's fields for marks and tooltips."""
    return {
        "case": trial.case,
        "method": name_method(trial.method, words),
        "status": words.get(f"status.{slug(trial.status)}", trial.status),
        "accuracy": None if trial.accuracy is None else shorten(trial.accuracy),
        "accuracy_text": show_accuracy(trial.accuracy),
        "log_loss": show_loss(trial.log_loss),
        "seconds": show_seconds(trial.seconds),
        "evaluations": show_count(trial.evaluations),
        "pareto": trial.pareto,
        "selected": trial.selected,
        "pareto_text": say_yes(trial.pareto, words),
        "selected_text": say_yes(trial.selected, words),
    }


def _trial_tips(words: Words) -> list[Spec]:
    scores = ("accuracy_text", "log_loss", "seconds", "evaluations")
    return tips(words, "case", "method", "status", *scores, "pareto_text", "selected_text")


def _compare_sets(trials: Iterable[TrialPart]) -> str:
    """Compare what was selected with the Pareto set: the same, another set, or nothing at all."""
    pairs = [(trial.pareto, trial.selected) for trial in trials]
    if not any(selected for _, selected in pairs):
        return "nothing_selected"
    return "selected_same" if all(pareto == selected for pareto, selected in pairs) else "selected_differs"


def _describe_tradeoff(document: Document, preset: PresetPart, shown: int, words: Words) -> str:
    trials = _find_trials(document, preset)
    pareto = Counter(trial.method for trial in trials if trial.pareto)
    items = [(name_method(one, words), show_count(pareto[one])) for one in list_methods(document)]
    return join_sentences(
        (
            words("figure.tradeoff.alt_shown", shown=show_count(shown), trials=show_count(len(trials))),
            words("figure.tradeoff.alt_pareto", items=count_items(items, words)),
            _count_most_accurate(trials, words),
            _list_median_seconds(document, preset, words) if preset.cost == SECONDS else "",
        ),
        words,
    )


def _describe_coverage(document: Document, preset: PresetPart, words: Words) -> str:
    sentences = []
    for part in _find_methods(document, preset):
        counts = {name: show_count(getattr(part, name)) for name in (*COUNTED, "trials")}
        key = "figure.coverage.alt_uncertified" if part.certified is None else "figure.coverage.alt"
        sentences.append(words(key, method=name_method(part.method, words), **counts))
    return join_sentences(sentences, words)


def _count_most_accurate(trials: Iterable[TrialPart], words: Words) -> str:
    """The number of cases in which each method is the most accurate, or as accurate as any."""
    able = [(trial, trial.accuracy) for trial in trials if trial.eligible and trial.accuracy is not None]
    best: dict[str, float] = {}
    for trial, accuracy in able:
        best[trial.case] = max(best.get(trial.case, -math.inf), accuracy)
    counts = Counter(trial.method for trial, accuracy in able if accuracy == best[trial.case])
    if not counts:
        return ""
    items = count_items(((name_method(one, words), show_count(n)) for one, n in counts.most_common()), words)
    return words("figure.tradeoff.most_accurate", items=items, cases=show_count(len(best)))


def _list_median_seconds(document: Document, preset: PresetPart, words: Words) -> str:
    """The median time of each method's trials that can be selected."""
    items = [
        (name_method(part.method, words), show_seconds(part.median_seconds))
        for part in _find_methods(document, preset)
        if part.median_seconds is not None
    ]
    return words("figure.tradeoff.median_seconds", items=count_items(items, words)) if items else ""


def draw_heatmaps(document: Document, preset: PresetPart, theme: Theme) -> FigureView | None:
    """Accuracy and log10 seconds of every case and method; gray where a trial cannot be selected."""
    words, trials = theme.words, _find_trials(document, preset)
    counts = {
        "gray": show_count(sum(not trial.eligible for trial in trials)),
        "trials": show_count(len(trials)),
    }
    able = [trial for trial in trials if trial.eligible]
    accuracy = {_key(one): one.accuracy for one in able if one.accuracy is not None}
    time = {_key(one): math.log10(one.seconds) for one in able if one.seconds}
    panels = []
    for name, values, digits, better, message in (
        ("accuracy", accuracy, 3, max, _describe_extremes(trials, words)),
        ("time", time, 2, min, _list_median_seconds(document, preset, words)),
    ):
        if values:
            cells = _shade_cells(trials, values, digits, theme, best=better(values.values()))
            alt_text = join_sentences((message, words("figure.heatmap.gray", **counts)), words)
            chart = _heatmap(document, trials, cells, theme)
            panels.append((name, words(f"figure.heatmap.panel_{name}"), alt_text, chart))
    place = {"preset": words.get(f"preset.{preset.name}", preset.name)}
    caption = (
        words(f"figure.heatmap.caption_{preset.eligible}", **place, **counts),
        words(f"figure.heatmap.{_compare_sets(trials)}"),
    )
    return make_figure("heatmap", panels, caption, theme, place, name=f"heatmap-{preset.name}")


def _key(trial: TrialPart) -> tuple[str, str]:
    return trial.case, trial.method


def _shade_cells(
    trials: Iterable[TrialPart], values: Mapping[tuple[str, str], float], digits: int, theme: Theme, *, best: float
) -> Rows:
    """A row for each trial with its colour, the brighter the better; gray with a dash where it has no number."""
    width = max(values.values()) - min(values.values())
    rows = []
    for trial in trials:
        value = values.get(_key(trial))
        if value is None:
            own: dict[str, Any] = {"fill": theme.palette.failed, "ink": theme.palette.ink, "text": MISSING}
        else:
            fill = shade(1.0 - abs(best - value) / width if width else 1.0)
            own = {"fill": fill, "ink": ink_on(fill), "text": show_number(value, digits), "value": shorten(value)}
        rows.append(_describe_trial(trial, theme.words) | own)
    return rows


def _heatmap(document: Document, trials: Sequence[TrialPart], cells: Rows, theme: Theme) -> Chart:
    """Cells with their numbers; outlined in the Pareto set, with a corner where selected if that differs."""
    words = theme.words
    methods = list_methods(document, [trial.method for trial in trials])
    cell = CASE_WIDTH / len(methods)
    axis: Spec = {
        "orient": "top",
        "title": None,
        "labelAngle": -40 if len(methods) > MANY_METHODS else 0,
        "labelFontSize": 10,
        "labelLimit": 90,
        "ticks": False,
        "domain": False,
    }
    x = category("method", scale={"domain": [name_method(one, words) for one in methods]}, sort=None, axis=axis)
    y = case_axis(list_cases(document))
    base = {"x": x, "y": y, "opacity": dim(), "tooltip": _trial_tips(words)}
    ink = {"color": category("ink", scale=None)}
    outer = {"band": OUTER}
    # as much air at the sides as above and below
    sides = {"band": shorten(OUTER - (OUTER - INNER) * CELL_ROW / cell)}
    outline: Spec = {"height": outer, "width": outer, "fill": None, "strokeWidth": 1.8}
    layers = [
        layer("rect", base | {"fill": category("fill", scale=None)}, height={"band": INNER}, width=sides),
        layer("rect", base | {"stroke": {"value": theme.palette.ink}}, where="datum.pareto", **outline),
        layer("text", base | ink | {"text": category("text")}, fontSize=11 if cell > NARROW else 9),
    ]
    if _compare_sets(trials) == "selected_differs":
        place = {"x": x | {"bandPosition": 0.12}, "y": y | {"bandPosition": 0.26}}
        corner: Spec = {"filled": True, "shape": CORNER, "size": 50, "opacity": 1}
        layers.append(layer("point", base | ink | place, where="datum.selected", **corner))
    return Chart(layers, cells, width=CASE_WIDTH, height={"step": CELL_ROW})


def _describe_extremes(trials: Iterable[TrialPart], words: Words) -> str:
    """The lowest and the highest accuracy, and whose they are."""
    able = [(trial.accuracy, trial) for trial in trials if trial.eligible and trial.accuracy is not None]
    if not able:
        return ""
    places: Spec = {}
    for name, choose in (("low", min), ("high", max)):
        value, trial = choose(able, key=lambda pair: pair[0])
        places |= {
            name: show_number(value),
            f"{name}_case": isolate_name(trial.case),
            f"{name}_method": name_method(trial.method, words),
        }
    return words("figure.heatmap.alt_accuracy", **places)


# The paper's conditions beside exact ones


def draw_presets(document: Document, theme: Theme) -> FigureView | None:
    """The shortfall of every trial that has one."""
    words = theme.words
    message = _describe_presets(document, words)
    caption = (words("figure.presets.caption", limit=f"{AT_MAXIMUM:g}"), message)
    panels = [("presets", words("figure.presets.panel"), message, _shortfalls(document, theme))]
    return make_figure("presets", panels, caption, theme)


def _shortfalls(document: Document, theme: Theme) -> Chart | None:
    """Log-likelihood of the exact fit less that of the paper's, on a logarithmic axis; coloured by its cause."""
    words, palette = theme.words, theme.palette
    parts = [one for one in document.presets if one.short_by is not None]
    if not parts:
        return None
    _, shapes = method_scales(document, list_methods(document, [one.method for one in parts]), theme)
    axis: Spec = {"title": words("figure.axis.short_by"), "values": [1e-8, 1e-5, 1e-2, 10, 1e4], "format": "~g"}
    x = {"scale": {"type": "log", "domain": [LEAST, MOST], "nice": False}, "axis": axis}
    base = {
        "x": quantity("short", **x),
        "y": case_axis(list_cases(document)),
        "yOffset": category("method", scale={"domain": shapes["domain"]}),
        "opacity": dim(0.9),
        "tooltip": tips(words, "case", "method", "short_by", "cause"),
    }
    causes = _order_causes(one.cause for one in parts)
    colours = {
        "domain": [_name_cause(cause, words) for cause in causes],
        "range": [_colour_cause(cause, palette) for cause in causes],
    }
    below = legend(1, orient="bottom", symbolType="square", labelLimit=380)  # causes have long names
    marks = {
        "color": category("cause", scale=colours, legend=below),
        "shape": category("method", scale=shapes, legend=legend(symbolFillColor=palette.ink)),
    }
    dashed: Spec = {"color": palette.muted, "strokeDash": [4, 3]}
    layers = [
        layer("rule", {"x": quantity("at", **x)}, rows=[{"at": AT_MAXIMUM}], **dashed),
        layer("point", base | marks, filled=True, size=PRESET_POINT),
    ]
    for side, shift, sign in (("left", -9, "<"), ("right", 9, ">")):  # beside marks that are beyond the axis
        beyond = f"datum.beyond == '{side}'"
        layers.append(layer("text", base | {"text": {"value": sign}}, where=beyond, dx=shift, fontSize=13))
    rows = [_short_row(one, words) for one in parts]
    return Chart(layers, rows, width=CASE_WIDTH, height=WIDE_ROW * len(document.cases))


def _short_row(one: BothPart, words: Words) -> dict[str, Any]:
    value = one.short_by or 0.0
    return {
        "case": one.case,
        "method": name_method(one.method, words),
        "cause": _name_cause(one.cause, words),
        "short": shorten(min(max(value, LEAST), MOST)),
        "short_by": show_figure(value),
        "beyond": "left" if value < LEAST else "right" if value > MOST else "",
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


def _describe_presets(document: Document, words: Words) -> str:
    parts = document.presets
    counts = Counter(one.cause for one in parts)
    skipped = sum(one.short_by is None for one in parts)
    items = [(_name_cause(one, words), show_count(counts[one])) for one in _order_causes(counts)]
    places: Spec = {
        "same": show_count(counts[Cause.NONE]),
        "trials": show_count(len(parts)),
        "limit": f"{AT_MAXIMUM:g}",
    }
    return join_sentences(
        (
            words("figure.presets.alt", **places),
            words("figure.presets.alt_causes", items=count_items(items, words)),
            words("figure.presets.alt_skipped", count=show_count(skipped)) if skipped else "",
        ),
        words,
    )


# Stability


def draw_stability(document: Document, theme: Theme) -> FigureView | None:
    """Shares of refits that choose each method: a panel for each way of repeating the study."""
    words, found = theme.words, document.stability
    groups = {kind: own for kind in (found.kinds if found else ()) if (own := _group_shares(document, kind))}
    if not groups:
        return None
    panels = (
        (
            kind,
            words.get(f"figure.stability.panel_{kind}", kind),
            _describe_stability(own, words),
            _stability(document, own, theme),
        )
        for kind, own in groups.items()
    )
    ways = join_names((words.get(f"figure.stability.way_{kind}", kind) for kind in groups), words)
    draws = _show_draws([shares for own in groups.values() for shares in own.values()], words)
    caption = [words("figure.stability.caption", ways=ways, draws=draws)]
    return make_figure("stability", panels, caption, theme)


def _group_shares(document: Document, kind: str) -> dict[str, list[SharePart]]:
    """The shares of the preset that answers, by case; cases without a draw are left out."""
    found: dict[str, list[SharePart]] = {}
    for part in document.stability.shares if document.stability else ():
        if part.preset == document.study.preset and part.kind == kind and part.chosen is not None:
            found.setdefault(part.case, []).append(part)
    return found


def _stability(document: Document, groups: Mapping[str, Sequence[SharePart]], theme: Theme) -> Chart:
    """Stacked shares of the draws by what they choose; the study's own choice outlined, its share at the right."""
    words, palette = theme.words, theme.palette
    rows, own = _stack_shares(groups, words)
    shown = list_methods(document, [part.method for shares in groups.values() for part in shares if part.chosen])
    colours, _ = method_scales(document, shown, theme, (words("method.none"), palette.muted, ""))
    y = case_axis(list_cases(document))
    axis: Spec = {"title": words("figure.axis.draws"), "format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
    base = span("x", "start", "end", scale={"domain": [0, 1]}, axis=axis) | {
        "y": y,
        "opacity": dim(),
        "tooltip": tips(words, "case", "method", "share", "draws", "in_study"),
    }
    outline: Spec = {"height": {"band": 0.74}, "fill": None, "strokeWidth": 1.8}
    label = {"x": quantity("edge"), "y": y, "text": category("share"), "opacity": dim()}
    layers = (
        layer("bar", base | {"color": category("method", scale=colours, legend=legend(5))}, height={"band": 0.62}),
        layer("bar", base | {"stroke": {"value": palette.ink}}, where="datum.own", **outline),
        layer("text", label, rows=own, align="left", dx=7),
    )
    return Chart(layers, rows, width=WIDTH - CASE_LABELS - SHARE_LABELS, height={"step": ROW})


def _stack_shares(groups: Mapping[str, Sequence[SharePart]], words: Words) -> tuple[Rows, Rows]:
    """Segments that follow each other from 0 to 1, and the share of each case's own choice."""
    segments: Rows = []
    own: Rows = []
    for case, shares in groups.items():
        chosen = next((part.method for part in shares if part.in_study), NONE)
        end = 0.0
        for method, share in [
            *((part.method, part.chosen or 0.0) for part in shares),
            (NONE, shares[0].none or 0.0),
        ]:
            start, end = end, end + share
            mine = method == chosen
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
                        "in_study": say_yes(mine, words),
                    }
                )
    return segments, own


def _show_draws(groups: Iterable[Sequence[SharePart]], words: Words) -> str:
    """'200', or '20 to 200' where some cases had fewer."""
    draws = [shares[0].draws for shares in groups]
    return show_range(min(draws), max(draws), show_count, words)


def _describe_stability(groups: Mapping[str, Sequence[SharePart]], words: Words) -> str:
    rarely = [
        isolate_name(case)
        for case, shares in groups.items()
        if (next((part.chosen for part in shares if part.in_study), shares[0].none) or 0.0) < HALF
    ]
    counts = {"often": show_count(len(groups) - len(rarely)), "cases": show_count(len(groups))}
    return join_sentences(
        (
            words("figure.stability.alt", draws=_show_draws(groups.values(), words), **counts),
            words("figure.stability.alt_rarely", cases=join_names(rarely, words)) if rarely else "",
        ),
        words,
    )
