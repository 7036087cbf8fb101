"""The picture of a profile: its data, its ground, its axes; valid Vega-Lite."""

from dataclasses import replace

import altair as alt
import numpy as np
import pytest
from table_cases import WORDS

from rekka.forecast.profiles import Profile
from rekka.report.charts.base import FRAME, LABEL_ROW, PAGE, PRINT, Theme, finish
from rekka.report.charts.drawing import combine, draw_svg_file
from rekka.report.charts.models import HEIGHT, ProfileLines, draw_profile, profile

PROFILE = Profile(
    covariate="age",
    values=np.array([0.0, 12.0, 16.0, 30.0]),
    outside=np.array([True, False, False, True]),
    hazard=np.array([[0.1, 0.2], [0.12, 0.21], [0.15, 0.22], [0.2, 0.23]]),
    hazard_low=np.array([[0.05, 0.1], [0.1, 0.2], [0.1, 0.2], [0.1, 0.1]]),
    hazard_high=np.array([[0.2, 0.3], [0.2, 0.3], [0.2, 0.3], [0.4, 0.5]]),
    years=np.array([15.0, 13.0, 11.0, 9.0]),
    years_low=np.array([10.0, 12.0, 10.0, 5.0]),
    years_high=np.array([20.0, 14.0, 12.0, 20.0]),
    rug=10 + np.arange(101) / 10,
    typical=15.0,
    others={},
    start=1,
    threshold=3,
    level=0.95,
    intervals="normal",
    course="age advances",
    certified=True,
    notes=(),
)


def draw(**values):
    return draw_profile(replace(PROFILE, **values), "profiles-age")


def layers(spec, kind):
    own = (one for one in spec["layer"] if one["mark"].get("style") != FRAME)
    return [one for one in own if one["mark"]["type"] == kind]


def without(*names):
    """These figures missing."""
    return {name: np.full_like(getattr(PROFILE, name), np.nan) for name in names}


def test_a_line_and_a_band_for_each_state():
    hazards, years = draw().panels
    rows = hazards.spec["data"]["values"]
    assert {row["state"] for row in rows} == {1, 2}
    assert [row["middle"] for row in rows if row["state"] == 2] == [0.21, 0.22]
    assert [row["low"] for row in rows if row["state"] == 1] == [0.1, 0.1]
    assert [row["middle"] for row in years.spec["data"]["values"]] == [13.0, 11.0]
    *edges, line = (one["encoding"] for one in layers(hazards.spec, "line"))
    assert [one["y"]["field"] for one in edges] == ["low", "high"]  # of bands that lie over each other
    assert line["color"]["field"] == line["strokeDash"]["field"] == "state"  # colour is never alone
    assert len(set(map(str, line["strokeDash"]["scale"]["range"]))) == 2
    assert layers(years.spec, "line")[0]["encoding"]["color"] == {"value": PRINT.accent}


def test_lines_cover_the_central_training_rows_which_are_ticks():
    """A profile goes further; few rows are there, and a straight line goes anywhere."""
    for panel in draw().panels:
        x = layers(panel.spec, "line")[0]["encoding"]["x"]
        assert x["scale"]["domain"] == [12, 16]
        ticks = layers(panel.spec, "rule")[0]
        assert [ticks["data"]["values"][n]["at"] for n in (0, -1)] == [12, 16]
        assert ticks["encoding"]["y"]["value"] == HEIGHT


def test_where_the_central_rows_have_one_value_all_of_them_are_shown():
    rug = np.r_[np.full(100, 12.0), 30.0]
    x = layers(draw(rug=rug).panels[0].spec, "line")[0]["encoding"]["x"]
    assert x["scale"]["domain"] == [12, 30]


@pytest.mark.parametrize("far", [1e3, 1e9, 1e80])
def test_an_axis_of_hazards_covers_a_thousandfold_at_most(far):
    hazard = np.array([[0.1, 0.2], [0.1, 0.2], [0.1 * far, 0.2 / far], [1, 1]])
    spec = draw(hazard=hazard, hazard_low=hazard / 100, hazard_high=hazard * 100).panels[0].spec
    axis = layers(spec, "line")[0]["encoding"]["y"]
    low, high = axis["scale"]["domain"]
    assert 100 < high / low <= 1000 * (1 + 1e-5)
    assert low <= 0.1 <= high
    assert len(axis["axis"]["values"]) >= 3
    ends = next(one for one in layers(spec, "text") if "text" in one["encoding"])["data"]["values"]
    assert all(0 <= row["to"] <= HEIGHT for row in ends)
    assert [row["text"] for row in ends] == ["1", "2"]


def test_lines_are_named_at_their_ends_and_names_stand_apart():
    same = np.full((4, 2), 0.2)
    text = layers(draw(hazard=same).panels[0].spec, "text")[0]["data"]["values"]
    assert abs(text[0]["to"] - text[1]["to"]) >= LABEL_ROW


def test_axes_have_units():
    hazards, years = (
        panel.spec["layer"][-1]["encoding"] for panel in draw(covariate="age_at_inspection_1").panels
    )
    assert hazards["x"]["axis"]["title"] == years["x"]["axis"]["title"] == "age_at_inspection_1 (years)"
    assert hazards["y"]["axis"]["title"] == "hazard of leaving the rating (per year)"
    assert years["y"]["axis"]["title"] == "mean years from rating 1 to 3 or worse"


def test_without_intervals_there_are_no_bands():
    for panel in draw(**without("hazard_low", "hazard_high", "years_low", "years_high")).panels:
        assert not layers(panel.spec, "area")
        assert layers(panel.spec, "line")


def test_what_is_no_number_is_left_out():
    years = draw(years=np.array([np.nan, 13.0, np.inf, 9.0])).panels[1]
    assert [row["value"] for row in years.spec["data"]["values"]] == [12.0]
    only = draw(**without("years"))
    assert [panel.name for panel in only.panels] == ["hazards"]


def test_a_wide_band_does_not_squeeze_the_lines():
    wide = {"hazard_high": np.array([[1e9, 0.3]] * 4), "hazard_low": np.array([[1e-9, 0.1]] * 4)}
    spec = draw(**wide).panels[0].spec
    scale = layers(spec, "line")[0]["encoding"]["y"]["scale"]
    assert scale["type"] == "log"
    assert scale["domain"][0] > 1e-3
    assert scale["domain"][1] < 10
    assert layers(spec, "area")[0]["mark"]["clip"]


def test_one_value_is_no_picture():
    assert draw(values=PROFILE.values[:1]) is None


def test_no_number_at_all_is_no_picture():
    assert draw(**without("hazard", "years")) is None


def test_more_states_than_colours():
    many = 0.1 + np.tile(np.arange(12), (4, 1)) / 100
    figure = draw(hazard=many, hazard_low=many, hazard_high=many)
    assert len({row["state"] for row in figure.panels[0].spec["data"]["values"]}) == 12


@pytest.mark.parametrize("palette", [PRINT, PAGE], ids=["print", "page"])
def test_the_charts_are_valid_and_can_be_drawn(palette):
    ends = (PROFILE.hazard, PROFILE.hazard_low, PROFILE.hazard_high)
    lines = ProfileLines(PROFILE.values, PROFILE.rug, *(one.tolist() for one in ends))
    spec = finish(profile(lines, "age", "hazard", Theme(WORDS, palette)), palette)
    alt.LayerChart.from_dict(spec)
    svg = draw_svg_file(combine(draw()))
    for text in (
        "Hazard of leaving each rating",
        "Mean years from rating 1",
        "hazard of leaving the rating (per year)",
    ):
        assert text in svg
