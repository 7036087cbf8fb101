"""Charts show the document's numbers, mark what the document marks, and say in words what they show."""

import itertools
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache

import altair as alt
import pytest
from table_cases import HOSTILE, WORDS, failed_document, hostile_document, plain_document, without_cases

from rekka.report.charts.base import (
    CSS_VARIABLES,
    FIXED,
    FRAME,
    KEY,
    PAGE,
    PICKED,
    PRINT,
    RAMP,
    SHAPES,
    WIDTH,
    Theme,
    colour_state,
    contrast,
    finish,
    ink_on,
    isolate_name,
    log_ticks,
    measure,
    place_of,
    shade,
)
from rekka.report.charts.drawing import VERSION, combine, draw_svg_file
from rekka.report.charts.figures import list_figures
from rekka.report.charts.models import WIDEST, draw_calibration, ratios
from rekka.report.charts.study import draw_stability, tradeoff
from rekka.report.document import RatioPart, SharePart, StabilityPart
from rekka.report.text import load_words
from rekka.report.views import FigureView

LIGHT, DARK = 0, 1
THEME = Theme(WORDS, PRINT)


def figures_of(document, palette=PRINT):
    return {figure.name: figure for figure in list_figures(document, WORDS, palette)}


@pytest.fixture(scope="module")
def document():
    return plain_document()


@pytest.fixture(scope="module")
def figures(document):
    return figures_of(document)


def only(document, *kept, **changed):
    """The document with some of its parts alone: what is left out need not be drawn."""
    parts = {name: getattr(document, name) for name in ("cases", *kept)}
    return without_cases(document).model_copy(update=parts | changed)


def panel(figure, name):
    return next(one for one in figure.panels if one.name == name)


def rows_of(spec):
    """The rows that the layers of a panel share."""
    return spec["data"]["values"]


def layers_of(spec):
    """The layers of a plot, without its frame and its key."""
    return [one for one in spec["layer"] if one["mark"].get("style") not in (FRAME, KEY)]


def key_of(spec):
    """Rows of the key below a plot: places, texts, colours."""
    return [row for one in spec["layer"] if one["mark"].get("style") == KEY for row in one["data"]["values"]]


def frame_of(spec):
    """The edges of a panel, from the upper left corner of its plot."""
    frame = next(one for one in spec["layer"] if one["mark"].get("style") == FRAME)
    return {name: place["value"] for name, place in frame["encoding"].items()}


@lru_cache
def page_panels():
    """Of a plain and of a hostile document, as the page has them."""
    found = [list_figures(one, WORDS, PAGE) for one in (plain_document(), hostile_document())]
    return [panel for figures in found for figure in figures for panel in figure.panels]


def pareto_of(trials):
    return {(one.case, WORDS(f"method.{one.method}")) for one in trials if one.pareto}


def find_preset(document, name):
    return next(one for one in document.study.presets if one.name == name)


def by_preset(document, preset):
    return [one for one in document.trials if one.preset == preset]


# Figures


def test_figures_come_in_the_order_of_the_page_under_plain_names(document, figures):
    assert list(figures) == [
        *("network", "ratings", "network-001", "network-002", "reaching", "multiples"),
        *(f"{name}-{case}" for case in ("001", "002") for name in ("curve", "reach", "ratios", "profiles")),
        *(f"tradeoff-{one.name}" for one in document.study.presets),
        *(f"heatmap-{one.name}" for one in document.study.presets),
        *("presets", "heldout", "calibration-001", "calibration-002", "stability"),
    ]
    for name, figure in figures.items():
        number = re.search(r"-00(\d)$", name)
        assert figure.case == (document.cases[int(number[1]) - 1].case if number else None)
        assert figure.title  # states what is found


def test_hostile_names_are_data_and_name_no_file():
    document = hostile_document()
    figures = figures_of(document)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+|-\d{3})?", name) for name in figures)
    for one in figures["heatmap-exact"].panels:
        assert {row["case"] for row in rows_of(one.spec)} == set(HOSTILE)
    for one in page_panels():
        told = json.dumps(one.spec)
        expressions = re.findall(r'"(?:expr|test|filter|calculate|labelExpr)": ("(?:[^"\\]|\\.)*")', told)
        assert not any(name[:20] in json.loads(text) for name in HOSTILE for text in expressions)


def test_every_panel_is_valid_vega_lite_without_a_warning(document):
    """Against Altair's schema; and vl-convert prints what Vega-Lite complains of."""
    panels = page_panels()
    for one in {one.name: one for one in panels}.values():
        config = one.spec["config"]
        # the schema has no word for the layout of legends, which Vega-Lite hands on to Vega
        legend = {name: value for name, value in config["legend"].items() if name != "layout"}
        alt.LayerChart.validate(one.spec | {"config": config | {"legend": legend}}, schema=alt.LayerChart._schema)
        assert one.spec["$schema"].endswith(f"{alt.SCHEMA_VERSION}.json")
    combined = [combine(figure) for figure in list_figures(document, WORDS, PRINT)]
    specs = json.dumps([one.spec for one in panels] + combined)
    code = (
        "import json, sys, vl_convert\n"
        "for spec in json.load(sys.stdin):\n"
        f"    vl_convert.vegalite_to_vega(spec, vl_version={VERSION!r}, show_warnings=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=specs, capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_the_same_document_gives_the_same_bytes(document, figures):
    again = figures_of(document.model_copy(deep=True))
    assert repr(again) == repr(figures)
    assert all("datasets" not in one.spec for figure in figures.values() for one in figure.panels)


def test_a_panel_fits_a_phone_and_two_fit_a_page(document, figures):
    for figure in figures.values():
        for one in figure.panels if "002" not in figure.name else ():
            assert float(re.search(r' width="([\d.]+)"', draw_svg_file(one.spec))[1]) <= WIDTH + 16
    two = [
        one
        for one in figures.values()
        if len(one.panels) > 1 and one.name != "multiples" and "002" not in one.name
    ]
    assert {one.name for one in two} >= {"heldout", "tradeoff-exact", "heatmap-exact", "profiles-001"}
    for one in two:
        width = float(re.search(r' width="([\d.]+)"', draw_svg_file(combine(one)))[1])
        assert 600 <= width <= 715, one.name  # 160 to 190 mm
    square = combine(figures["calibration-001"])["concat"][0]
    assert square["width"] == square["height"]


def test_every_panel_with_cases_dims_the_others(figures):
    with_cases = [one for figure in figures.values() for one in figure.panels if "case" in rows_of(one.spec)[0]]
    assert {one.name for one in with_cases} >= {"accuracy", "log_loss", "time", "tradeoff", "presets", "bootstrap"}
    for one in with_cases:
        assert one.spec["params"] == [{"name": PICKED, "value": ""}]
        layers = [view for view in one.spec["layer"] if "data" not in view or "case" in rows_of(view)[0]]
        for layer in layers:
            condition = layer["encoding"]["opacity"]["condition"]
            assert condition == {"test": "picked != '' && datum.case != picked", "value": 0.15}
    others = [one for figure in figures.values() for one in figure.panels if one not in with_cases]
    assert others
    assert not any("params" in one.spec for one in others)
    combined = combine(figures["heatmap-exact"])
    assert combined["params"] == [{"name": PICKED, "value": ""}]
    assert not any("params" in one or "config" in one for one in combined["concat"])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Pier \N{BRIDGE AT NIGHT} 橋 1", "Pier \N{BRIDGE AT NIGHT} 橋 1"),
        ("\u202etwo\n lines\u2028\x07", "two lines"),
        ("\u202eגשר\u202c", "\u2068גשר\u2069"),
        ("نفق 1", "\u2068نفق 1\u2069"),
        ("\u2067a\ud83d", "a"),
    ],
)
def test_a_name_cannot_turn_the_rest_of_a_sentence_around(name, told):
    assert isolate_name(name) == told


def test_hostile_names_in_captions_are_kept_apart():
    texts = [
        text
        for figure in figures_of(hostile_document()).values()
        for text in (figure.title, figure.caption, *(one.alt for one in figure.panels))
    ]
    assert any("\u2068עברית שלום\u2069" in text for text in texts)
    assert not any(re.search("[\u202a-\u202e\n\x00-\x1f]", text) for text in texts)


# Trials


@pytest.mark.parametrize("preset", ["paper", "exact"])
def test_tradeoff_has_a_mark_for_each_trial_that_can_be_selected(document, figures, preset):
    spec = panel(figures[f"tradeoff-{preset}"], "tradeoff").spec
    able = {
        (one.case, WORDS(f"method.{one.method}")): (
            one.seconds * 1000 if preset == "paper" else one.evaluations,
            one.accuracy,
        )
        for one in by_preset(document, preset)
        if one.eligible
    }
    drawn = {(row["case"], row["method"]): (row["cost"], row["accuracy"]) for row in rows_of(spec)}
    assert drawn.keys() == able.keys()
    for key, numbers in drawn.items():
        assert numbers == pytest.approx(able[key], rel=1e-5)
    outlined = {(row["case"], row["method"]) for row in rows_of(spec) if row["pareto"]}
    assert outlined == pareto_of(by_preset(document, preset)) != set()
    marks = layers_of(spec)[0]["encoding"]
    assert marks["stroke"] == {"value": "transparent", "condition": {"test": "datum.pareto", "value": PRINT.ink}}
    assert marks["x"]["scale"].get("type") == ("log" if preset == "paper" else None)
    assert ("ms" if preset == "paper" else "evaluations") in marks["x"]["axis"]["title"]
    drawn_key = {(row["text"], row["colour"], row.get("shape")) for row in key_of(spec) if "shape" in row}
    methods = {one.method for one in by_preset(document, preset) if one.eligible}
    assert drawn_key == {
        (WORDS(f"method.{name}"), PRINT.methods[FIXED.index(name)], SHAPES[FIXED.index(name)]) for name in methods
    }


@pytest.mark.parametrize("counts", [(7, 7), (6, 8), (7, 60), (1, 2)])
def test_evaluations_have_whole_numbers_at_their_axis(document, counts):
    """Never the same number twice."""
    trials = tuple(
        one.model_copy(update={"evaluations": counts[place % 2]}) for place, one in enumerate(document.trials)
    )
    spec = finish(tradeoff(only(document, trials=trials), find_preset(document, "exact"), THEME), PRINT)
    axis = layers_of(spec)[0]["encoding"]["x"]["axis"]
    low, high = layers_of(spec)[0]["encoding"]["x"]["scale"]["domain"]
    assert axis["format"] == "d"
    assert [value == round(value) for value in axis["values"]] == [True] * len(set(axis["values"]))
    assert 1 <= len(axis["values"]) <= 9
    assert low < min(counts) <= max(counts) < high


def test_methods_at_the_same_count_stand_apart(figures):
    rows = rows_of(panel(figures["tradeoff-exact"], "tradeoff").spec)
    places = [(row["cost"], row["accuracy"], row["dodge"]) for row in rows]
    assert len(set(places)) == len(places)
    assert "dodge" not in rows_of(panel(figures["tradeoff-paper"], "tradeoff").spec)[0]
    assert "are drawn side by side" in figures["tradeoff-exact"].caption


def test_evaluations_that_differ_widely_have_a_logarithmic_axis(document):
    trials = tuple(
        one.model_copy(update={"evaluations": 10 ** (1 + place % 4)}) for place, one in enumerate(document.trials)
    )
    figure = figures_of(only(document, "methods", trials=trials))["tradeoff-exact"]
    x = layers_of(panel(figure, "tradeoff").spec)[0]["encoding"]["x"]
    assert x["scale"]["type"] == "log"
    assert x["axis"]["values"] == [10, 30, 100, 300, 1000, 3000, 10000]
    assert "are drawn side by side" not in figure.caption


def test_rings_are_there_only_where_the_selection_is_another_set(document):
    """The guarded rule may select other trials than the Pareto set; the paper's rule selects the set itself."""
    pareto = [one.model_copy(update={"selected": one.pareto}) for one in document.trials]
    same = only(document, "methods", trials=tuple(pareto))
    first = next(one for one in pareto if one.preset == "exact" and one.pareto)
    less = [one.model_copy(update={"selected": False}) if one is first else one for one in pareto]
    other = only(document, "methods", trials=tuple(less))
    layers = {
        name: layers_of(finish(tradeoff(one, find_preset(one, "exact"), THEME), PRINT))
        for name, one in (("same", same), ("other", other))
    }
    assert len(layers["same"]) == 1
    assert layers["other"][1]["transform"] == [{"filter": "datum.selected"}]
    assert "Pareto set itself" in figures_of(same)["tradeoff-exact"].caption
    assert "Rings mark" in figures_of(other)["tradeoff-exact"].caption
    nothing = [one.model_copy(update={"selected": False}) for one in document.trials]
    figure = figures_of(only(document, trials=tuple(nothing)))["heatmap-exact"]
    assert "Nothing was selected" in figure.caption


@pytest.mark.parametrize("preset", ["paper", "exact"])
def test_coverage_counts_as_the_document_does(document, figures, preset):
    one = panel(figures[f"tradeoff-{preset}"], "coverage")
    drawn = {(row["method"], row["what"]): row["count"] for row in rows_of(one.spec)}
    for part in (part for part in document.methods if part.preset == preset):
        name = WORDS(f"method.{part.method}")
        for what in ("converged", "certified", "selected", "pareto"):
            assert drawn[name, WORDS(f"figure.coverage.{what}")] == getattr(part, what)
        told = f"{name}: trials {part.trials}, converged {part.converged}, certified {part.certified}, "
        assert told in one.alt


@pytest.mark.parametrize("preset", ["paper", "exact"])
@pytest.mark.parametrize("name", ["accuracy", "time"])
def test_cells_have_the_numbers_and_gray_where_there_is_none(document, figures, preset, name):
    trials = {(one.case, WORDS(f"method.{one.method}")): one for one in by_preset(document, preset)}
    one = panel(figures[f"heatmap-{preset}"], name)
    cells = {(row["case"], row["method"]): row for row in rows_of(one.spec)}
    assert cells.keys() == trials.keys()
    for key, row in cells.items():
        trial = trials[key]
        if not trial.eligible:
            assert (row["fill"], row["text"]) == (PRINT.failed, "\N{EN DASH}")
            continue
        value = trial.accuracy if name == "accuracy" else trial.seconds * 1000
        assert row["value"] == pytest.approx(value, rel=1e-5)
        last = 0.001 if name == "accuracy" else 0.1 if value < 10 else 1.0  # place of the last digit
        assert float(row["text"].replace(",", "")) == pytest.approx(value, abs=0.51 * last)
        assert contrast(row["ink"], row["fill"]) >= 4.5
    assert {key for key, row in cells.items() if row["pareto"]} == pareto_of(trials.values())
    assert layers_of(one.spec)[1]["transform"] == [{"filter": "datum.pareto"}]
    assert (
        one.title == {"accuracy": "Accuracy (share of judged rows)", "time": "Optimizer time (milliseconds)"}[name]
    )
    gray = sum(not trial.eligible for trial in trials.values())
    assert f"Gray cells: {gray} of {len(trials)}." in one.alt


def test_failed_trials_are_gray():
    """Every second trial fails: its cell is gray although it has numbers."""
    document = plain_document()
    trials = tuple(
        one.model_copy(update={"eligible": False, "pareto": False}) if place % 2 else one
        for place, one in enumerate(document.trials)
    )
    figure = figures_of(only(document, trials=trials))["heatmap-exact"]
    cells = rows_of(panel(figure, "accuracy").spec)
    failed = [row for row in cells if row["fill"] == PRINT.failed]
    assert len(failed) == len(cells) // 2
    assert all("value" not in row for row in failed)


def test_brighter_is_better(figures):
    def luminance(row):
        return contrast(row["fill"], "#000000")

    for name, sign in (("accuracy", 1), ("time", -1)):
        cells = [row for row in rows_of(panel(figures["heatmap-paper"], name).spec) if "value" in row]
        ordered = sorted(cells, key=lambda row: sign * row["value"])
        assert luminance(ordered[0]) < luminance(ordered[-1])


def test_what_hardly_differs_hardly_differs_in_colour_and_place(document):
    """Accuracies 0.0004 apart, times 3 % apart: no cell stands out, and the axis of accuracy keeps its width."""
    trials = tuple(
        one.model_copy(
            update={
                "eligible": True,
                "accuracy": 0.7 + 0.0004 * (place % 2),
                "seconds": 0.003 * (1 + 0.03 * (place % 2)),
            }
        )
        for place, one in enumerate(document.trials)
    )
    figures = figures_of(only(document, "methods", trials=trials))
    eye = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    for one in figures["heatmap-exact"].panels:
        fills = sorted({row["fill"] for row in rows_of(one.spec)})
        assert len(fills) == 2
        assert math.dist(*(lab(fill, eye) for fill in fills)) < 5, one.name
    scale = layers_of(panel(figures["tradeoff-exact"], "tradeoff").spec)[0]["encoding"]["y"]["scale"]
    assert scale["domain"][1] - scale["domain"][0] >= 0.05
    time = panel(figures["tradeoff-paper"], "tradeoff").spec
    ticks = layers_of(time)[0]["encoding"]["x"]["axis"]["values"]
    assert len(ticks) == len({f"{tick:,g}" for tick in ticks}) >= 3


def test_the_most_accurate_are_counted_with_ties(document, figures):
    able = [one for one in by_preset(document, "exact") if one.eligible]
    best = {case: max(one.accuracy for one in able if one.case == case) for case in {one.case for one in able}}
    caption = figures["tradeoff-exact"].caption
    for method in ("zscore", "boxcox"):
        count = sum(one.accuracy == best[one.case] for one in able if one.method == method)
        if count:
            assert f"{WORDS(f'method.{method}')} ({count})" in caption
    assert f"Components (of {len(best)}) in which" in caption


def test_shortfalls_beyond_the_axis_stand_at_its_edge_and_are_told(document):
    far = document.presets[0].model_copy(update={"short_by": 4.5e85})
    below = document.presets[1].model_copy(update={"short_by": -1e-12})
    unknown = document.presets[2].model_copy(update={"short_by": None})
    strange = document.presets[3].model_copy(update={"short_by": 1.0, "cause": "a cause of another version"})
    one = figures_of(only(document, "trials", presets=(far, below, unknown, strange)))["presets"].panels[0]
    rows = [(row["short"], row["beyond"], row["short_by"]) for row in rows_of(one.spec)]
    assert rows == [(1e6, "right", "4.50×10⁸⁵"), (1e-8, "left", "−1.00×10⁻¹²"), (1.0, "", "1.00")]
    assert "a log-likelihood is missing: 1." in one.alt
    assert "a cause of another version (1)" in one.alt


# Models less their baselines


MEASURES = {
    "accuracy": ("persistence", "accuracy", "persistence_accuracy"),
    "log_loss": ("no_covariates", "log_loss", "no_covariates_log_loss"),
}


@pytest.mark.parametrize("name", MEASURES)
def test_a_chosen_model_stands_at_its_paired_difference(document, figures, name):
    """Score less that of the baseline on the same rows, with the interval of that difference."""
    against, own, baseline = MEASURES[name]
    spec = panel(figures["heldout"], name).spec
    rows = {row["case"]: row for row in rows_of(spec)}
    assert list(rows) == [one.case for one in document.answers]
    for one in document.answers:
        row = rows[one.case]
        assert row["difference"] == pytest.approx(getattr(one, own) - getattr(one, baseline), rel=1e-5, abs=1e-9)
        ends = [getattr(one, f"{against}_{end}") for end in ("low", "high")]
        assert [row["low"], row["high"]] == pytest.approx(ends, rel=1e-5)
        clear = row["low"] > 0 or row["high"] < 0
        better = (row["difference"] > 0) == (name == "accuracy")
        assert row["verdict"] == ("unclear" if not clear else "better" if better else "worse")
    zero = next(one for one in layers_of(spec) if one["mark"]["type"] == "rule")
    assert zero["encoding"]["x"]["datum"] == 0
    low, high = zero["encoding"]["x"]["scale"]["domain"]
    assert low < 0 < high
    assert high - low >= 0.02  # a thousandth is no difference worth seeing
    sides = [one["mark"]["text"] for one in layers_of(spec) if "text" in one["mark"]]
    right = "model better" if name == "accuracy" else "no covariates better"
    assert sides.index(right) == [one["mark"]["align"] for one in layers_of(spec) if "text" in one["mark"]].index(
        "left"
    )


def test_no_choice_is_said_and_so_is_what_has_no_interval(document):
    none = document.answers[0].model_copy(update={"method": None, "confirmed": False})
    blank = dict.fromkeys(("persistence_difference", "persistence_low", "persistence_high", "beats_persistence"))
    seen = document.answers[1].model_copy(update=blank | {"confirmed": False, "scored_on": "validation"})
    figure = figures_of(only(document, answers=(none, seen)))["heldout"]
    assert [one.name for one in figure.panels] == ["log_loss"]  # no accuracy has a difference
    first, second = rows_of(panel(figure, "log_loss").spec)
    assert (first["method"], first["note"]) == (WORDS("method.none"), "no model chosen")
    assert not {"difference", "low", "label", "verdict"} & set(first)
    assert "difference" in second
    assert "Components with a chosen model: 1 of 2; confirmed on confirmation rows: 0." in figure.caption
    assert "Components without a choice: 1." in figure.caption
    whole = document.answers[0].model_copy(update={"persistence_low": None, "persistence_high": None})
    both = panel(figures_of(only(document, answers=(whole, seen)))["heldout"], "accuracy")
    first, second = rows_of(both.spec)
    assert "low" not in first
    assert second["note"] == "not confirmed"
    assert "Without an interval: 1." in both.alt
    assert [
        one["transform"][0]["filter"] for one in layers_of(both.spec) if "note" in str(one.get("transform"))
    ] == ["isValid(datum.note)"]


def test_what_is_better_has_another_colour_and_shape_than_what_is_worse(document):
    verdicts = ("better", "worse")
    answers = tuple(
        one.model_copy(update={"beats_persistence": verdict})
        for one, verdict in zip(document.answers, verdicts, strict=True)
    )
    spec = panel(figures_of(only(document, answers=answers))["heldout"], "accuracy").spec
    looks = {(row["text"], row["colour"], row["shape"]) for row in key_of(spec) if "shape" in row}
    assert looks == {
        ("shown to be better", PRINT.good, "circle"),
        ("shown to be worse", PRINT.bad, "diamond"),
    }
    points = {
        one["transform"][0]["filter"]: one["mark"] for one in layers_of(spec) if one["mark"]["type"] == "point"
    }
    assert {(mark["color"], mark["shape"]) for mark in points.values()} == {one[1:] for one in looks}


def test_alt_counts_how_many_beat_the_baseline(document):
    verdicts = ("better", "not shown")
    answers = tuple(
        one.model_copy(update={"beats_persistence": verdict, "beats_no_covariates": "worse"})
        for one, verdict in zip(document.answers, verdicts, strict=True)
    )
    figure = figures_of(only(document, answers=answers))["heldout"]
    one = panel(figure, "accuracy")
    assert one.alt.startswith("Chosen models shown more accurate than the no-change baseline: 1 of 2.")
    assert "The interval of the difference includes zero: 1." in one.alt
    assert "Shown to have a higher one: 2." in panel(figure, "log_loss").alt
    assert figure.title == (
        "Lower log loss than without covariates in 0 of 2 chosen models, more accurate than no change in 1"
    )


def share(case, method, chosen, none, own, kind="bootstrap", draws=20):
    fields = dict.fromkeys(SharePart.model_fields)
    given = {"case": case, "method": method, "chosen": chosen, "none": none, "in_study": own, "draws": draws}
    return SharePart(**fields | given | {"preset": "exact", "kind": kind, "kept": chosen})


def test_shares_add_up_and_the_own_choice_is_outlined(document):
    cases = [one.case for one in document.cases]
    shares = (
        share(cases[0], "zscore", 0.25, 0.15, True),
        share(cases[0], "boxcox", 0.6, 0.15, False),
        share(cases[1], "zscore", 0.3, 0.7, False),
        share(cases[1], "boxcox", 0.0, 0.7, False),
    )
    found = StabilityPart(kinds=("bootstrap",), resamples=20, seed=0, shares=shares, remarks=())
    one = figures_of(only(document, stability=found))["stability"].panels[0]
    bars = [(row["case"], row["method"], row["start"], row["end"], row["own"]) for row in rows_of(one.spec)]
    assert bars == [
        (cases[0], "z-score", 0.0, 0.25, True),
        (cases[0], "Box-Cox", 0.25, 0.85, False),
        (cases[0], "none", 0.85, 1.0, False),
        (cases[1], "z-score", 0.0, 0.3, False),
        (cases[1], "none", 0.3, 1.0, True),
    ]
    outline = layers_of(one.spec)[1]
    assert (outline["transform"], outline["mark"]["fill"]) == ([{"filter": "datum.own"}], None)
    labels = next(one for one in layers_of(one.spec) if one["mark"]["type"] == "text")["data"]["values"]
    assert [(row["case"], row["share"]) for row in labels] == [(cases[0], "25%"), (cases[1], "70%")]
    half = "Components in which at least half of the resamples choose what the study chose: 1 of 2; resamples for each component: 20."
    assert one.alt == f"{half} Components in which fewer do: {cases[0]}."


def test_the_caption_of_stability_names_what_was_drawn_again_and_how_often(document):
    case = document.cases[0].case
    drawn = {"bootstrap": 200, "splits": 20, "seeds": 200}
    shares = {kind: share(case, "zscore", 1.0, 0.0, True, kind, draws) for kind, draws in drawn.items()}

    def caption(*kinds, words=WORDS):
        own = tuple(shares[kind] for kind in kinds)
        found = StabilityPart(kinds=kinds, resamples=200, seed=0, shares=own, remarks=())
        return draw_stability(only(document, stability=found), Theme(words, PRINT)).caption

    assert caption("splits").startswith("What is chosen when the study is repeated with other splits. ")
    assert "repeated with resampled bridges, other starting values. Resamples for each component: 200." in caption(
        "bootstrap", "seeds"
    )
    assert "Resamples for each component: 20 to 200." in caption("bootstrap", "splits")
    assert caption("splits", words=load_words("ja")).startswith("分割を変えて")


# Models


def test_reliability_is_that_of_leaving_a_state(document, figures):
    part = document.calibration[0]
    bins = [one for one in part.reliability if one.end is None]
    one = panel(figures["calibration-001"], "reliability")
    rows = rows_of(one.spec)
    assert [(row["forecast"], row["observed"]) for row in rows] == [
        (pytest.approx(one.forecast, rel=1e-5), pytest.approx(one.observed, rel=1e-5)) for one in bins
    ]
    held = sum(one.low <= one.forecast <= one.high for one in bins if one.low is not None)
    assert one.alt == (
        f"Bins in which the interval of the observed share includes the forecast: {held} of {len(bins)}."
    )
    assert "Lines through the points are 95% intervals by bridge." in figures["calibration-001"].caption
    counts = rows_of(panel(figures["calibration-001"], "counts").spec)
    assert [(row["state"], row["observed"]) for row in counts] == [
        (one.state, one.observed) for one in part.by_end
    ]


def test_captions_of_calibration_write_numbers_as_tables_do(document):
    part = document.calibration[0].model_copy(
        update={
            "rows": 7084,
            "p_value": 0.0004,
            "reliability": tuple(
                one.model_copy(update={"low": None, "high": None}) for one in document.calibration[0].reliability
            ),
        }
    )
    figure = draw_calibration(part, "001", THEME)
    assert "7,084 training rows" in figure.caption
    assert "p of the test of fit: <0.001." in figure.caption
    assert "interval" not in figure.caption


def ratio(state, value, low, high):
    return RatioPart(state=state, covariate="age\n'", step=10.0, ratio=value, low=low, high=high)


def test_wide_intervals_are_cut_and_told(document):
    model = document.models[0].model_copy(
        update={"ratios": (ratio(1, 1.5, 1e-9, 300.0), ratio(2, 1.2, 1.1, 1.3), ratio(3, None, None, None))}
    )
    figure = figures_of(only(document, models=(model,)))["ratios-001"]
    wide, narrow = rows_of(figure.panels[0].spec)
    assert (wide["low"], wide["high"], wide["cut_low"], wide["cut_high"]) == (1 / WIDEST, WIDEST, True, True)
    assert wide["interval"] == "1.00×10⁻⁹ to 300"
    assert (narrow["cut_low"], narrow["cut_high"]) == (False, False)
    assert "ends in an arrow" in figure.caption
    assert figure.panels[0].alt == "Intervals that exclude 1: 1 of 2 (age ' in rating 2: 1.20)."
    empty = model.model_copy(update={"ratios": ()})
    assert ratios(empty, document.study.covariates, THEME) is None


def test_ratios_without_intervals_are_drawn_and_said_to_have_none(document):
    """Of a fit that is no certified maximum: whatever is beyond the axis is an arrow at its edge."""
    model = document.models[0].model_copy(
        update={
            "certified": False,
            "ratios": (ratio(1, 1e30, None, None), ratio(2, 0.0, None, None), ratio(3, float("inf"), None, None)),
        }
    )
    figure = figures_of(only(document, models=(model,)))["ratios-001"]
    spec = figure.panels[0].spec
    arrows = [(row["cut_low"], row["cut_high"]) for row in rows_of(spec)]
    assert arrows == [(False, True), (True, False), (False, True)]
    assert not any("ratio" in row or "low" in row for row in rows_of(spec))
    places = {layer["mark"]["shape"]: layer["encoding"]["x"]["datum"] for layer in layers_of(spec)[1:3]}
    assert places == {"triangle-left": 1 / WIDEST, "triangle-right": WIDEST}
    low, high = layers_of(spec)[1]["encoding"]["x"]["scale"]["domain"]
    assert low < 1 / WIDEST < WIDEST < high
    assert draw_svg_file(spec).count('aria-roledescription="point"') in (0, 3)
    assert figure.panels[0].alt == "There are no intervals, because this fit is not certified as a maximum."
    assert figure.caption.count("interval") == 1
    assert "below 0.05 or above 20 ends in an arrow" in figure.caption
    inside = model.model_copy(update={"certified": True, "ratios": (ratio(1, 1.5, None, None),)})
    caption = figures_of(only(document, models=(inside,)))["ratios-001"].caption
    assert "arrow" not in caption
    assert caption.endswith("There are no intervals.")


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_captions_of_models_have_the_level_of_their_intervals(document, level):
    study = document.study.model_copy(update={"confidence": level})
    figures = figures_of(only(document, "models", study=study))
    assert f"Bars are {level:.0%} intervals." in figures["ratios-001"].caption
    assert "arrow" not in figures["ratios-001"].caption


def test_panels_of_a_figure_stand_at_one_height(figures):
    """On the page as they are, in files side by side; a key is below, where it moves nothing and hides nothing."""
    for name in ("curve-001", "reach-001", "calibration-001", "heldout", "tradeoff-exact"):
        pairs = [one.spec for one in figures[name].panels], combine(figures[name])["concat"]
        for first, second in pairs:
            assert first["height"] == second["height"]
            assert frame_of(first)["y"] == frame_of(second)["y"]
        keys = [key_of(spec) for pair in pairs for spec in pair]
        assert any(keys)
        for spec in (spec for pair in pairs for spec in pair):
            assert frame_of(spec)["y2"] == spec["height"]
            assert all(row["y"] - spec["height"] >= 20 for row in key_of(spec)), name


def test_keys_are_as_wide_as_their_panel_at_most(figures):
    """Measured in a wide font, on the page and on paper: a reader's font may be wider than the one here."""
    for figure in figures.values():
        for spec in (*(one.spec for one in figure.panels), *combine(figure)["concat"]):
            for row in key_of(spec):
                assert row["x"] >= frame_of(spec)["x"]
                assert row["x"] + 11 + measure(row["text"]) <= frame_of(spec)["x2"] + 1, (figure.name, row["text"])


def test_plots_of_a_picture_are_aligned_and_numbered(figures):
    """Those above each other have the same sides, whatever their labels need."""
    picture = combine(figures["profiles-001"])["concat"]
    assert [spec["title"][:4] for spec in picture] == [f"({letter}) " for letter in "abcdefgh"[: len(picture)]]
    for column in (picture[::2], picture[1::2]):
        assert len({(spec["width"], frame_of(spec)["x"], frame_of(spec)["x2"]) for spec in column}) == 1
    wide = [frame_of(spec)["x2"] - frame_of(spec)["x"] for spec in picture]
    assert wide == pytest.approx([332] * len(wide), abs=0.2)  # half of a page, less half of what is between
    assert all(
        one.spec["width"] != picture[0]["width"] for one in figures["profiles-001"].panels
    )  # left as they are


def test_a_long_title_breaks_over_two_lines_of_its_panel(figures):
    first, *others = figures["curve-001"].panels
    long = FigureView(
        "long", "", "", (replace(first, title="Main girder of the superstructure, welded " * 3), *others)
    )
    lines = combine(long)["concat"][0]["title"]
    assert [lines[0][:4], lines[1][-1]] == ["(a) ", "\N{HORIZONTAL ELLIPSIS}"]
    assert max(measure(line, 13) for line in lines) <= 332
    assert combine(long)["concat"][1]["title"] == f"(b) {others[0].title}"


# Little to show


def test_where_all_fails_there_is_no_figure_of_trials():
    names = figures_of(failed_document())
    assert not any(
        name.startswith(
            ("heldout", "multiples", "tradeoff", "heatmap", "curve", "reach", "profiles", "network", "ratios")
        )
        for name in names
    )
    assert figures_of(without_cases(plain_document())) == {}


def test_one_trial_alone_is_drawn(document):
    trial = next(one for one in document.trials if one.preset == "exact" and one.eligible)
    part = next(one for one in document.methods if (one.preset, one.method) == ("exact", trial.method))
    alone = without_cases(document).model_copy(
        update={"trials": (trial,), "methods": (part,), "cases": document.cases[:1]}
    )
    figures = figures_of(alone)
    assert list(figures) == ["tradeoff-exact", "heatmap-exact"]
    assert "Trials that could be selected and are drawn: 1 of 1." in figures["tradeoff-exact"].panels[0].alt
    for figure in figures.values():
        assert draw_svg_file(combine(figure)).startswith("<svg")


def test_a_trial_without_a_time_has_no_place_in_time(document):
    trials = tuple(one.model_copy(update={"seconds": None}) for one in document.trials)
    figures = figures_of(only(document, "methods", trials=trials))
    assert "tradeoff-paper" not in figures
    assert [one.name for one in figures["heatmap-paper"].panels] == ["accuracy"]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.5, 4, [0.5, 1, 2]),
        (0.001, 1, [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]),
        (1e-8, 1, [1e-8, 1e-6, 1e-4, 0.01, 1]),
        (0.65, 2.05, [1, 1.5, 2]),  # not 1 and 2 alone
        (0.74, 1.35, [0.8, 1, 1.2]),
        (3, 4, [3, 3.2, 3.4, 3.6, 3.8, 4]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_round_and_few(low, high, ticks):
    assert log_ticks(low, high) == ticks


# Palette


@pytest.mark.parametrize("mode", [LIGHT, DARK])
def test_text_and_marks_stand_out_from_the_surface(mode):
    surface = CSS_VARIABLES["--surface"][mode]
    for name, colours in CSS_VARIABLES.items():
        if name in ("--ink", "--muted", "--accent", "--good", "--bad"):
            assert contrast(colours[mode], surface) >= 4.5, name
        elif name.startswith("--method-"):
            assert contrast(colours[mode], surface) >= 3, name
    # the dash in a gray cell, and a gray cell beside the surface
    assert contrast(CSS_VARIABLES["--ink"][mode], CSS_VARIABLES["--failed"][mode]) >= 4.5
    assert contrast(CSS_VARIABLES["--failed"][mode], surface) >= 1.4


def test_contrast_is_that_of_the_guideline():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # WebAIM's contrast checker


def test_text_on_the_ramp_can_be_read_everywhere():
    shades = [shade(place / 100) for place in range(101)]
    assert (shades[0], shades[-1]) == (RAMP[0], RAMP[-1])
    assert min(contrast(ink_on(one), one) for one in shades) >= 4.5
    lights = [contrast(one, "#000000") for one in shades]
    assert lights == sorted(lights)
    assert {ink_on(one) for one in shades} == {"#000000", "#ffffff"}


# Full dichromacy (Machado, Oliveira, Fernandes 2009, severity 1), on linear red, green, blue.
DICHROMATS = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def lab(colour, matrix):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    mixed = [sum(a * b for a, b in zip(row, linear, strict=True)) for row in matrix]
    red, green, blue = (min(max(part, 0.0), 1.0) for part in mixed)
    white = (0.9505, 1.0, 1.089)
    xyz = (
        0.4124 * red + 0.3576 * green + 0.1805 * blue,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        0.0193 * red + 0.1192 * green + 0.9505 * blue,
    )
    x, y, z = (value / w for value, w in zip(xyz, white, strict=True))
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("mode", [LIGHT, DARK])
@pytest.mark.parametrize("kind", DICHROMATS)
def test_the_papers_methods_differ_for_colour_blind_readers(kind, mode):
    """A difference of 2.3 can just be seen (CIE 1976); these have several times that, and shapes besides."""
    seen = {name: lab(CSS_VARIABLES[f"--method-{name}"][mode], DICHROMATS[kind]) for name in FIXED}
    for one, other in itertools.combinations(FIXED, 2):
        assert math.dist(seen[one], seen[other]) > 10, (one, other)


@pytest.mark.parametrize("mode", [LIGHT, DARK])
@pytest.mark.parametrize("kind", [*DICHROMATS, "all"])
def test_ratings_differ_for_every_reader(kind, mode):
    """Files on white paper have the colours of light. Ten ratings are close; their names stand at their areas."""
    eye = DICHROMATS.get(kind, ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    colours = tuple(CSS_VARIABLES[f"--state-{place}"][mode] for place in range(1, 11))
    assert mode == DARK or colours == PRINT.states
    palette = replace(PRINT, states=colours)
    for states in range(2, 11):
        shown = [colour_state(state, states, palette) for state in range(1, states + 1)]
        seen = [lab(colour, eye) for colour in shown]
        least = min(math.dist(one, other) for one, other in itertools.combinations(seen, 2))
        assert least > (8 if states <= 6 else 4), (states, least)
    against = [contrast(colour, CSS_VARIABLES["--surface"][mode]) for colour in colours]
    assert against == sorted(against)  # the worst stands out the most
    assert against[0] >= 3


@pytest.mark.parametrize("mode", [LIGHT, DARK])
def test_bands_stand_out_from_the_surface_and_from_each_other(mode):
    surface, haze, band, accent = (
        CSS_VARIABLES[f"--{name}"][mode] for name in ("surface", "haze", "band", "accent")
    )
    for one, other, least in ((haze, surface, 1.5), (band, haze, 1.7), (band, surface, 2.5), (accent, band, 2.2)):
        assert contrast(one, other) >= least
    for eye in DICHROMATS.values():
        good, bad = (lab(CSS_VARIABLES[f"--{name}"][mode], eye) for name in ("good", "bad"))
        assert math.dist(good, bad) > 15


def test_methods_keep_colour_and_shape_whatever_the_study_has():
    assert [place_of(name, ("boxcox", "ridge")) for name in FIXED] == [0, 1, 2, 3]
    assert place_of("ridge", ("zscore", "ridge", "pooled")) == 4
    assert place_of("pooled", ("zscore", "ridge", "pooled")) == 5
    assert len(set(SHAPES)) == len(PRINT.methods) == len(PAGE.methods)
    many = [f"m{number}" for number in range(9)]
    assert {place_of(name, many) for name in many} == set(range(4, 10))


def test_the_page_has_only_colours_that_its_style_sheet_knows(document):
    """Besides the ramp of the heat maps, which is the same in both modes."""
    for one in page_panels():
        told = json.dumps(one.spec)
        assert set(re.findall(r"var\((--[\w-]+)\)", told)) <= set(CSS_VARIABLES)
        if one.name not in ("accuracy", "time", "shares", "network-shares"):
            assert not re.findall(r"#[0-9a-fA-F]{6}", told)
