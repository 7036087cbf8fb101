"""The picture of a profile: its data, its ground, its axes; valid Vega-Lite."""

from dataclasses import replace

import altair as alt
import pytest

from rekka.report.charts.base import PAGE, PRINT
from rekka.report.charts.drawing import combine, draw_svg_file
from rekka.report.charts.models import (
    HEIGHT,
    ProfilePart,
    ProfileWords,
    draw_profile,
    hazard_profile,
    years_profile,
)

WORDS = ProfileWords(
    covariate="age (years)",
    hazard="hazard (per year)",
    years="mean years",
    state="state",
    value="age",
    interval="interval",
    hazard_title="Hazards",
    years_title="Years",
    hazard_alt="Hazards rise.",
    years_alt="Years fall.",
)
PART = ProfilePart(
    values=(0.0, 10.0, 20.0, 30.0),
    outside=(True, False, False, True),
    hazard=((0.1, 0.2), (0.12, 0.21), (0.15, 0.22), (0.2, 0.23)),
    hazard_low=((0.05, 0.1), (0.1, 0.2), (0.1, 0.2), (0.1, 0.1)),
    hazard_high=((0.2, 0.3), (0.2, 0.3), (0.2, 0.3), (0.4, 0.5)),
    years=(15.0, 13.0, 11.0, 9.0),
    years_low=(10.0, 12.0, 10.0, 5.0),
    years_high=(20.0, 14.0, 12.0, 20.0),
    rug=tuple(10 + place / 10 for place in range(101)),
)


def draw(part=PART, palette=PRINT):
    return draw_profile(
        part, "profiles-age", words=WORDS, palette=palette, title="Age", caption="All.", case="Pier"
    )


def layers(spec, kind):
    return [one for one in spec["layer"] if one["mark"]["type"] == kind]


def without(*names):
    """The part with these figures missing."""
    missing = {name: tuple((None, None) if "hazard" in name else None for _ in PART.values) for name in names}
    return replace(PART, **missing)


def test_a_line_and_a_band_for_each_state():
    hazards, years = draw().panels
    rows = hazards.spec["data"]["values"]
    assert {row["state"] for row in rows} == {1, 2}
    assert [row["middle"] for row in rows if row["state"] == 2] == [0.2, 0.21, 0.22, 0.23]
    assert [row["low"] for row in rows if row["state"] == 1] == [0.05, 0.1, 0.1, 0.1]
    assert [row["middle"] for row in years.spec["data"]["values"]] == [15.0, 13.0, 11.0, 9.0]
    line = layers(hazards.spec, "line")[0]["encoding"]
    assert line["color"]["field"] == line["strokeDash"]["field"] == "state"  # colour is never alone
    assert len(set(map(str, line["strokeDash"]["scale"]["range"]))) == 2


def test_the_ground_beyond_the_training_rows_is_shaded_and_the_rows_are_ticks():
    for panel in draw().panels:
        ground = layers(panel.spec, "rect")[0]["data"]["values"]
        assert ground == [{"first": 0.0, "last": 10.0}, {"first": 20.0, "last": 30.0}]
        ticks = layers(panel.spec, "rule")[0]
        assert len(ticks["data"]["values"]) == 101
        assert ticks["encoding"]["y"]["value"] == HEIGHT


def test_nothing_is_shaded_where_the_grid_ends_with_the_training_rows():
    part = replace(PART, values=(10.0, 12.0, 15.0, 20.0), outside=(False,) * 4)
    assert not layers(draw(part).panels[0].spec, "rect")


def test_axes_have_units():
    hazards, years = (panel.spec["layer"][-1]["encoding"] for panel in draw().panels)
    assert hazards["x"]["axis"]["title"] == years["x"]["axis"]["title"] == "age (years)"
    assert hazards["y"]["axis"]["title"] == "hazard (per year)"
    assert years["y"]["axis"]["title"] == "mean years"


def test_without_intervals_there_are_no_bands():
    part = without("hazard_low", "hazard_high", "years_low", "years_high")
    for panel in draw(part).panels:
        assert not layers(panel.spec, "area")
        assert layers(panel.spec, "line")


def test_what_is_no_number_is_left_out():
    part = replace(PART, years=(None, 13.0, float("inf"), 9.0))
    rows = years_profile(part, words=WORDS, palette=PRINT).rows
    assert [row["value"] for row in rows] == [10.0, 30.0]
    only = draw(without("years"))
    assert [panel.name for panel in only.panels] == ["hazards"]


def test_a_wide_band_does_not_squeeze_the_lines():
    part = replace(PART, hazard_high=((1e9, 0.3),) * 4, hazard_low=((1e-9, 0.1),) * 4)
    spec = draw(part).panels[0].spec
    scale = layers(spec, "line")[0]["encoding"]["y"]["scale"]
    assert scale["type"] == "log"
    assert scale["domain"][0] > 1e-3
    assert scale["domain"][1] < 10
    assert layers(spec, "area")[0]["mark"]["clip"]


def test_one_value_is_no_picture():
    ends = {name: getattr(PART, name)[:1] for name in PART.__dataclass_fields__ if name != "rug"}
    assert draw(replace(PART, **ends)) is None


def test_more_states_than_colours():
    many = tuple(tuple(0.1 + state / 100 for state in range(12)) for _ in PART.values)
    part = replace(PART, hazard=many, hazard_low=many, hazard_high=many)
    assert len({row["state"] for row in hazard_profile(part, words=WORDS, palette=PRINT).rows}) == 12


@pytest.mark.parametrize("palette", [PRINT, PAGE], ids=["print", "page"])
def test_the_charts_are_valid_and_can_be_drawn(palette):
    figure = draw(palette=palette)
    assert (figure.name, figure.title, figure.case) == ("profiles-age", "Age", "Pier")
    for panel in figure.panels:
        spec = {**panel.spec, "config": {k: v for k, v in panel.spec["config"].items() if k != "legend"}}
        alt.LayerChart.from_dict(spec)
    svg = draw_svg_file(combine(draw()))
    for text in ("Hazards", "Years", "age (years)", "hazard (per year)"):
        assert text in svg
