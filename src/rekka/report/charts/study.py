"""Charts of a study: models less their baselines, trials by accuracy and cost, presets, stability.

Accuracy against cost with coverage by method is the paper's Figure 1, the heat maps are its Figure 2.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rekka.report.charts.base import (
    BELOW,
    BROKEN,
    CASE_LABELS,
    CASE_WIDTH,
    FONT,
    HEAD,
    LESS,
    RIGHT,
    ROW,
    SMALL,
    WIDTH,
    Chart,
    Entry,
    Palette,
    Rows,
    Spec,
    Theme,
    break_text,
    case_axis,
    category,
    count_items,
    dim,
    draw_differences,
    find_room,
    find_ticks,
    ink_on,
    isolate_name,
    layer,
    list_cases,
    list_methods,
    log_scale,
    log_ticks,
    make_figure,
    method_scales,
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
    show_accuracy_difference,
    show_count,
    show_figure,
    show_level,
    show_loss,
    show_loss_difference,
    show_number,
    show_range,
    show_share,
    slug,
)
from rekka.report.views import FigureView
from rekka.study.tables import Cause
from rekka.study.trial import AT_MAXIMUM

CORNER = "M-1,-1H1L-1,1Z"  # a cell's upper left corner
PRESET_POINT = 55  # square pixels
POINT, RING = 80, 230  # square pixels
SECONDS = "seconds"  # the other cost is evaluations
HEIGHT = 300
PAPER_WIDTH = 274  # pixels of a plot on paper
THOUSAND = 1000.0  # milliseconds of a second
LEAST_ACCURACY, LEAST_DIFFERENCE = 0.05, 0.02  # of an axis or a colour scale: less is no difference worth seeing
LEAST_TIMES = 10.0  # between the ends of the colours of times
DODGE = 10.0  # pixels, at most, between methods at the same whole number of evaluations
MANY_TIMES = 10.0  # evaluations that differ so much have a logarithmic axis
COUNTED = ("converged", "certified", "selected", "pareto")
CELL_ROW = 26  # pixels
MANY_BARS = 16  # more have smaller figures
MANY_METHODS = 5  # more need slanted labels
INNER, OUTER = 0.82, 0.97  # of a row: the cell, and the outline around it with a little air between
NARROW = 40  # pixels: a cell below it has smaller figures
LEAST, MOST = 1e-8, 1e6  # log-likelihood; beyond these a mark stands at the edge with an arrow
SHORTFALLS = (1e-8, 1e-5, 1e-2, 10.0, 1e4)  # ticks
TIMES = "\N{MULTIPLICATION SIGN}"
FAR = 4  # powers of ten, from which on a tick is written as one
WIDE_ROW = 34  # pixels: the methods of a case stand below each other
NONE = "none"  # no choice
SHARE_LABELS = 44  # pixels for the shares at the right
HALF = 0.5


# Chosen models less their baselines


@dataclass(frozen=True)
class _Measure:
    """A paired difference of scores: the fields of an answer that have it, its verdict, how it is shown."""

    name: str
    against: str
    beats: str
    show: Show


MEASURES = (
    _Measure("log_loss", "no_covariates", "beats_no_covariates", show_loss_difference),
    _Measure("accuracy", "persistence", "beats_persistence", show_accuracy_difference),
)
VERDICTS = {"better": "better", "worse": "worse"}  # by what an answer says; else it is not clear


def draw_heldout(document: Document, theme: Theme) -> FigureView | None:
    """Paired differences: log loss less that without covariates, accuracy less that of no change."""
    words, answers = theme.words, document.answers
    if not any(_find_difference(one, measure) is not None for one in answers for measure in MEASURES):
        return None
    panels = (
        (
            one.name,
            words(f"figure.heldout.panel_{one.name}"),
            _describe_differences(document, one, words),
            _draw_measure(document, one, theme),
        )
        for one in MEASURES
    )
    chosen = [one for one in answers if one.method is not None]
    confirmed, none = sum(one.confirmed for one in chosen), len(answers) - len(chosen)
    counts = {"chosen": len(chosen), "cases": len(answers), "confirmed": confirmed}
    level = show_level(document.study.confidence)
    alone = len(answers) == 1 == len(chosen)
    caption = (
        ""
        if alone
        else words("figure.heldout.caption", **{name: show_count(count) for name, count in counts.items()}),
        words("figure.heldout.pairs"),
        words("figure.heldout.bars", level=level),
        words("figure.heldout.none", none=show_count(none)) if none else "",
    )
    better = {one.name: sum(getattr(answer, one.beats) == "better" for answer in chosen) for one in MEASURES}
    places = {name: show_count(count) for name, count in (better | {"chosen": len(chosen)}).items()}
    title = words("figure.heldout.title", **places)
    if alone:
        verdicts = {one.name: VERDICTS.get(getattr(chosen[0], one.beats) or "", "unclear") for one in MEASURES}
        told = {name: words(f"figure.verdict.{verdict}") for name, verdict in verdicts.items()}
        title = words("figure.heldout.title_one", **told)
    return make_figure("heldout", title, panels, caption, theme)


def _find_difference(one: Answer, measure: _Measure) -> float | None:
    value: float | None = getattr(one, f"{measure.against}_difference")
    return value


def _draw_measure(document: Document, measure: _Measure, theme: Theme) -> Chart | None:
    """A row for each case: its difference with the interval; or why there is none."""
    words = theme.words
    rows = [_difference_row(one, measure, words) for one in document.answers]
    if not any("difference" in row for row in rows):
        return None
    title, fields = (
        words(f"figure.axis.{measure.name}_difference"),
        ("case", "method", "difference_text", "interval", "rows"),
    )
    sides = [words(f"figure.heldout.{side}_{measure.against}") for side in ("better", "worse")]
    left, right = sides if measure.name == "log_loss" else sides[::-1]
    return draw_differences(rows, list_cases(document), title, (left, right), LEAST_DIFFERENCE, fields, theme)


def _difference_row(one: Answer, measure: _Measure, words: Words) -> dict[str, Any]:
    value = _find_difference(one, measure)
    method = words("method.none") if one.method is None else name_method(one.method, words)
    row: dict[str, Any] = {"case": one.case, "method": method}
    if one.method is None or value is None:
        return row | {"note": words(f"figure.heldout.{'no_choice' if one.method is None else 'unconfirmed'}")}
    low, high = (getattr(one, f"{measure.against}_{end}") for end in ("low", "high"))
    ends = shorten_ends(low, high)
    return row | {
        "difference": shorten(value),
        "label": measure.show(value),
        "difference_text": measure.show(value),
        "interval": show_range(low, high, measure.show, words) if ends else MISSING,
        "rows": "" if one.scored_on is None else words.get(f"rows.{one.scored_on}", one.scored_on),
        "verdict": VERDICTS.get(getattr(one, measure.beats) or "", "unclear"),
        **ends,
    }


def _describe_differences(document: Document, measure: _Measure, words: Words) -> str:
    verdicts = [getattr(one, measure.beats) for one in document.answers if one.method is not None]
    counts = {one.replace(" ", "_"): show_count(verdicts.count(one)) for one in ("better", "worse", "not shown")}
    unknown = verdicts.count(None)
    return join_sentences(
        (
            words(f"figure.heldout.alt_{measure.name}", chosen=show_count(len(verdicts)), **counts),
            words("figure.heldout.alt_unconfirmed", count=show_count(unknown)) if unknown else "",
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
    title = _say_most_accurate(trials, place["preset"], words)
    return make_figure(f"tradeoff-{preset.name}", title, panels, caption, theme, live=True)


def tradeoff(document: Document, preset: PresetPart, theme: Theme) -> Chart | None:
    """A mark for each trial that can be selected: its cost, its accuracy, its method; the Pareto set on top."""
    words, palette = theme.words, theme.palette
    trials = [one for one in _find_trials(document, preset) if one.eligible and one.accuracy is not None]
    points = [(one, cost) for one in trials if (cost := _find_cost(one, preset.cost))]
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
    scores = [row["accuracy"] for row in rows]
    y = find_ticks(min(scores), max(scores), least=LEAST_ACCURACY).beside(words("figure.axis.accuracy"))
    base = {
        "x": quantity("cost", **x),
        "y": quantity("accuracy", **y),
        "opacity": dim(0.9),
        "tooltip": _trial_tips(words),
    }
    colours, shapes, key = method_scales(document, shown, theme)
    marks = {
        "color": category("method", scale=colours, legend=None),
        "shape": category("method", scale=shapes, legend=None),
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
    left = find_room(y["axis"])
    return Chart(layers, rows, width=WIDTH - left - RIGHT, height=HEIGHT, left=left, key=key)


def _find_cost(trial: TrialPart, cost: str) -> float | None:
    """Milliseconds or evaluations."""
    if cost == SECONDS:
        return trial.seconds and trial.seconds * THOUSAND
    return trial.evaluations


def _cost_axis(values: list[float], cost: str, words: Words) -> tuple[Spec, float]:
    """Scale and axis of costs, and pixels of one evaluation on paper, where panels are narrowest; 0 of a log."""
    low, high = min(values), max(values)
    title = words(f"figure.axis.{cost}")
    if cost == SECONDS or high > MANY_TIMES * low:
        low, high = low / 1.25, high * 1.25  # so that marks at the edge are whole
        axis: Spec = {"title": title, "values": log_ticks(low, high), "format": ",~r"}
        return {"scale": log_scale(low, high), "axis": axis}, 0.0
    ticks = find_ticks(low - 0.6, high + 0.6, most=8, snap=False)
    whole = [value for value in ticks.values if value == round(value)]
    axis = {"title": title, "values": whole, "format": "d"}
    return {"scale": ticks.scale(), "axis": axis}, PAPER_WIDTH / (high - low + 1.2)


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
    colours, _, key = method_scales(document, [part.method for part in methods], theme)
    known = [name for name in COUNTED if any(getattr(part, name) is not None for part in methods)]
    groups = {words(f"figure.coverage.{name}"): "" for name in known}
    most = max(part.trials for part in methods)
    title = words("figure.axis.trials", trials=show_count(most))
    y = find_ticks(0.0, float(most), most=min(most, 6)).beside(title)
    left = find_room(y["axis"])
    width = WIDTH - left - RIGHT
    groups = {name: break_text(name, (width - LESS) / len(groups) - 4) for name in groups}
    rows = [row | {"group": groups[str(row["what"])]} for row in rows]
    lines = max(name.count("\n") for name in groups.values())
    labels: Spec = {"title": None, "labelAngle": 0, "labelOverlap": False, "labelExpr": BROKEN}
    base = {
        "x": category("group", scale={"domain": list(groups.values())}, sort=None, axis=labels),
        "xOffset": category("method", scale={"domain": colours["domain"]}, sort=None),
        "y": quantity("count", **y | {"scale": {"domain": [0, shorten(most * 1.08)], "nice": False}}),
        "tooltip": tips(words, "method", "what", "trials_text"),
    }
    layers = (
        layer("bar", base | {"color": category("method", scale=colours, legend=None)}),
        layer(
            "text",
            base | {"text": quantity("count")},
            baseline="bottom",
            dy=-2,
            fontSize=SMALL if len(rows) < MANY_BARS else 9,
        ),
    )
    shapes = [replace(one, shape="square") for one in key]
    below = BELOW + max(lines - 1, 0) * FONT  # the first further line has the place of a title
    return Chart(layers, rows, width=width, height=HEIGHT, left=left, key=shapes, below=below)


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
        "seconds": show_milliseconds(trial.seconds),
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


def _count_best(trials: Iterable[TrialPart]) -> tuple[Counter[str], int]:
    """By method the cases in which none is more accurate; and how many cases there are."""
    able = [(trial, trial.accuracy) for trial in trials if trial.eligible and trial.accuracy is not None]
    best: dict[str, float] = {}
    for trial, accuracy in able:
        best[trial.case] = max(best.get(trial.case, -math.inf), accuracy)
    return Counter(trial.method for trial, accuracy in able if accuracy == best[trial.case]), len(best)


def _count_most_accurate(trials: Iterable[TrialPart], words: Words) -> str:
    counts, cases = _count_best(trials)
    if not counts:
        return ""
    items = count_items(((name_method(one, words), show_count(n)) for one, n in counts.most_common()), words)
    return words("figure.tradeoff.most_accurate", items=items, cases=show_count(cases))


def _say_most_accurate(trials: Iterable[TrialPart], preset: str, words: Words) -> str:
    """The methods that are the most accurate in most cases."""
    counts, cases = _count_best(trials)
    most = max(counts.values())
    names = join_names((name_method(one, words) for one, n in counts.items() if n == most), words)
    counted = {"count": show_count(most), "cases": show_count(cases)}
    return words("figure.tradeoff.title", preset=preset, methods=names, **counted)


def _list_median_seconds(document: Document, preset: PresetPart, words: Words) -> str:
    """The median time of each method's trials that can be selected."""
    items = [
        (name_method(part.method, words), show_milliseconds(part.median_seconds))
        for part in _find_methods(document, preset)
        if part.median_seconds is not None
    ]
    return words("figure.tradeoff.median_seconds", items=count_items(items, words)) if items else ""


def show_milliseconds(seconds: float | None) -> str:
    """Milliseconds with two digits at least: 2.9, 28, 1,205."""
    if seconds is None:
        return MISSING
    return show_number(seconds * THOUSAND, 0 if seconds * THOUSAND >= THOUSAND / 100 else 1)


def draw_heatmaps(document: Document, preset: PresetPart, theme: Theme) -> FigureView | None:
    """Accuracy and milliseconds of every case and method; gray where a trial cannot be selected."""
    words, trials = theme.words, _find_trials(document, preset)
    counts = {
        "gray": show_count(sum(not trial.eligible for trial in trials)),
        "trials": show_count(len(trials)),
    }
    able = [trial for trial in trials if trial.eligible]
    accuracy = {_key(one): one.accuracy for one in able if one.accuracy is not None}
    seconds = {_key(one): one.seconds for one in able if one.seconds}
    extremes, medians = _describe_extremes(trials, words), _list_median_seconds(document, preset, words)
    panels = []
    for name, values, message in (("accuracy", accuracy, extremes), ("time", seconds, medians)):
        if values:
            cells = (_shade_accuracy if name == "accuracy" else _shade_time)(trials, values, theme)
            alt_text = join_sentences((message, words("figure.heatmap.gray", **counts)), words)
            chart = _heatmap(document, trials, cells, theme)
            panels.append((name, words(f"figure.heatmap.panel_{name}"), alt_text, chart))
    place = {"preset": words.get(f"preset.{preset.name}", preset.name)}
    caption = (
        words(f"figure.heatmap.caption_{preset.eligible}", **place, **counts),
        words(f"figure.heatmap.{_compare_sets(trials)}"),
    )
    ends = _find_extremes(trials, words)
    title = words("figure.heatmap.title" if ends else "figure.heatmap.title_gray", **place, **ends, **counts)
    return make_figure(f"heatmap-{preset.name}", title, panels, caption, theme)


def _key(trial: TrialPart) -> tuple[str, str]:
    return trial.case, trial.method


def _shade_accuracy(trials: Iterable[TrialPart], values: Mapping[tuple[str, str], float], theme: Theme) -> Rows:
    """Cells with accuracies, brighter where higher; colours span five points at least."""
    best, worst = max(values.values()), min(values.values())
    width = max(best - worst, LEAST_ACCURACY)
    return _shade_cells(trials, values, lambda value: 1.0 - (best - value) / width, show_number, theme)


def _shade_time(trials: Iterable[TrialPart], values: Mapping[tuple[str, str], float], theme: Theme) -> Rows:
    """Cells with milliseconds, brighter where fewer; colours are logarithmic, over a factor of ten at least."""
    best, worst = min(values.values()), max(values.values())
    width = math.log(max(worst / best, LEAST_TIMES))
    cells = _shade_cells(
        trials, values, lambda value: 1.0 - math.log(value / best) / width, show_milliseconds, theme
    )
    return [row | ({"value": shorten(row["value"] * THOUSAND)} if "value" in row else {}) for row in cells]


def _shade_cells(
    trials: Iterable[TrialPart],
    values: Mapping[tuple[str, str], float],
    brighten: Callable[[float], float],
    show: Callable[[float], str],
    theme: Theme,
) -> Rows:
    """A row for each trial with its colour; gray with a dash where it has no number."""
    rows = []
    for trial in trials:
        value = values.get(_key(trial))
        if value is None:
            own: dict[str, Any] = {"fill": theme.palette.failed, "ink": theme.palette.ink, "text": MISSING}
        else:
            fill = shade(brighten(value))
            own = {"fill": fill, "ink": ink_on(fill), "text": show(value), "value": shorten(value)}
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
        "labelFontSize": SMALL,
        "labelLimit": 90,
        "labelOverlap": False,
        "ticks": False,
        "domain": False,
    }
    if len(methods) <= MANY_METHODS:
        axis["labelExpr"] = BROKEN
    width = (CASE_WIDTH - LESS) / len(methods) if len(methods) <= MANY_METHODS else math.inf
    lines = {name: break_text(name, width, SMALL) for name in (name_method(one, words) for one in methods)}
    further = max(name.count("\n") for name in lines.values()) * (SMALL + 2)
    if further:
        axis["labelPadding"] = further + 2  # the first line stands so high that the last is above the cells
    cells = [row | {"column": lines[row["method"]]} for row in cells]
    x = category("column", scale={"domain": list(lines.values())}, sort=None, axis=axis)
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
        layer("text", base | ink | {"text": category("text")}, fontSize=12 if cell > NARROW else 9),
    ]
    if _compare_sets(trials) == "selected_differs":
        place = {"x": x | {"bandPosition": 0.12}, "y": y | {"bandPosition": 0.26}}
        corner: Spec = {"filled": True, "shape": CORNER, "size": 50, "opacity": 1}
        layers.append(layer("point", base | ink | place, where="datum.selected", **corner))
    height = len(list_cases(document)) * CELL_ROW
    return Chart(layers, cells, width=CASE_WIDTH, height=height, left=CASE_LABELS, above=HEAD + further)


def _find_extremes(trials: Iterable[TrialPart], words: Words) -> dict[str, str]:
    """The lowest and the highest accuracy, and whose they are."""
    able = [(trial.accuracy, trial) for trial in trials if trial.eligible and trial.accuracy is not None]
    if not able:
        return {}
    places: dict[str, str] = {}
    for name, choose in (("low", min), ("high", max)):
        value, trial = choose(able, key=lambda pair: pair[0])
        places |= {
            name: show_number(value),
            f"{name}_case": isolate_name(trial.case),
            f"{name}_method": name_method(trial.method, words),
        }
    return places


def _describe_extremes(trials: Iterable[TrialPart], words: Words) -> str:
    places = _find_extremes(trials, words)
    if not places:
        return ""
    same = places["low"] == places["high"]
    return words("figure.heatmap.alt_same" if same else "figure.heatmap.alt_accuracy", **places)


# The paper's conditions beside exact ones


def draw_presets(document: Document, theme: Theme) -> FigureView | None:
    """The shortfall of every trial that has one."""
    words = theme.words
    message = _describe_presets(document, words)
    caption = (words("figure.presets.caption", limit=f"{AT_MAXIMUM:g}"),)
    panels = [("presets", words("figure.presets.panel"), message, _shortfalls(document, theme))]
    causes = [one.cause for one in document.presets]
    counts = {"same": show_count(causes.count(Cause.NONE)), "trials": show_count(len(causes))}
    return make_figure("presets", words("figure.presets.title", **counts), panels, caption, theme)


def _shortfalls(document: Document, theme: Theme) -> Chart | None:
    """Log-likelihood of the exact fit less that of the paper's, on a logarithmic axis; coloured by its cause."""
    words, palette = theme.words, theme.palette
    parts = [one for one in document.presets if one.short_by is not None]
    if not parts:
        return None
    _, shapes, methods = method_scales(document, list_methods(document, [one.method for one in parts]), theme)
    powers = {f"p{math.log10(tick):.0f}": _write_power(tick) for tick in SHORTFALLS}
    labels = f"{json.dumps(powers, ensure_ascii=False)}['p' + round(log(datum.value) / LN10)]"
    axis: Spec = {"title": words("figure.axis.short_by"), "values": list(SHORTFALLS), "labelExpr": labels}
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
    marks = {
        "color": category("cause", scale=colours, legend=None),
        "shape": category("method", scale=shapes, legend=None),
    }
    key = [replace(one, colour=palette.ink) for one in methods]
    key += [Entry(name, colour) for name, colour in zip(colours["domain"], colours["range"], strict=True)]
    dashed: Spec = {"color": palette.muted, "strokeDash": [4, 3]}
    layers = [
        layer("rule", {"x": quantity("at", **x)}, rows=[{"at": AT_MAXIMUM}], **dashed),
        layer("point", base | marks, filled=True, size=PRESET_POINT),
    ]
    for side, shift, sign in (("left", -9, "<"), ("right", 9, ">")):  # beside marks that are beyond the axis
        beyond = f"datum.beyond == '{side}'"
        layers.append(layer("text", base | {"text": {"value": sign}}, where=beyond, dx=shift, fontSize=13))
    rows = [_short_row(one, words) for one in parts]
    height = WIDE_ROW * len(document.cases)
    return Chart(layers, rows, width=CASE_WIDTH, height=height, left=CASE_LABELS, key=key)


def _write_power(tick: float) -> str:
    """A round number as a power of ten, where it is far from one."""
    power = round(math.log10(tick))
    return f"{tick:g}" if abs(power) < FAR else show_figure(tick, 1).removeprefix(f"1{TIMES}")


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
    places = {"trials": show_count(len(parts)), "limit": f"{AT_MAXIMUM:g}"}
    return join_sentences(
        (
            words("figure.presets.alt", same=show_count(counts[Cause.NONE]), **places),
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
    first = next(iter(groups.values()))
    counts = {"often": show_count(len(first) - len(_list_rare(first))), "cases": show_count(len(first))}
    return make_figure("stability", words("figure.stability.title", **counts), panels, caption, theme)


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
    _, _, methods = method_scales(document, shown, theme)
    key = [replace(one, shape="square") for one in methods] + [Entry(words("method.none"), palette.muted)]
    colours = {"domain": [one.text for one in key], "range": [one.colour for one in key]}
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
        layer("bar", base | {"color": category("method", scale=colours, legend=None)}, height={"band": 0.62}),
        layer("bar", base | {"stroke": {"value": palette.ink}}, where="datum.own", **outline),
        layer("text", label, rows=own, align="left", dx=7),
    )
    width, height = WIDTH - CASE_LABELS - SHARE_LABELS, len(list_cases(document)) * ROW
    return Chart(layers, rows, width=width, height=height, left=CASE_LABELS, key=key)


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


def _list_rare(groups: Mapping[str, Sequence[SharePart]]) -> list[str]:
    """Cases of which fewer than half of the draws choose what the study chose."""
    return [
        case
        for case, shares in groups.items()
        if (next((part.chosen for part in shares if part.in_study), shares[0].none) or 0.0) < HALF
    ]


def _describe_stability(groups: Mapping[str, Sequence[SharePart]], words: Words) -> str:
    rarely = [isolate_name(case) for case in _list_rare(groups)]
    counts = {"often": show_count(len(groups) - len(rarely)), "cases": show_count(len(groups))}
    return join_sentences(
        (
            words("figure.stability.alt", draws=_show_draws(groups.values(), words), **counts),
            words("figure.stability.alt_rarely", cases=join_names(rarely, words)) if rarely else "",
        ),
        words,
    )
