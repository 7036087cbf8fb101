"""``study.plot`` and ``study.report``: charts that Altair takes, numbers that are the study's."""

from functools import cache

import altair as alt
import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption


@pytest.fixture(scope="module")
def study():
    """Two cases in memory, one of them too small for any fit, and no simpler models tried."""
    rows = draw_rows().vstack(draw_rows(("Slope",), n=20, seed=3))
    rows = rows.with_columns(member=pl.format("M-{}", pl.int_range(pl.len())))
    return rekka.compare(rows, methods=["zscore", "boxcox"], guard={"resamples": 2, "ladder": False})


@pytest.fixture(scope="module")
def draw(study):
    """A chart of the study by its name: Altair takes a second to check one, and several tests look at the same."""
    return cache(lambda name, *arguments: getattr(study.plot, name)(*arguments))


@pytest.fixture(scope="module")
def report(study):
    return study.report(calibrate=False)


def values(chart, *fields):
    """The rows of a chart's data that have these fields, as tuples."""
    found, parts = [], [chart.to_dict()]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            rows = part.get("values")
            if isinstance(rows, list):
                found += [row for row in rows if isinstance(row, dict) and set(fields) <= set(row)]
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return {tuple(row[name] for name in fields) for row in found}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tradeoff", ()),
        ("heatmap", ()),
        ("calibration", ("Pier",)),
        ("curve", ("Pier",)),
        ("forecast", ("Pier",)),
        ("profiles", ("Pier",)),
        ("network", ()),
        ("ratios", ("Pier",)),
    ],
)
def test_altair_takes_every_chart(draw, name, arguments, tmp_path):
    chart = draw(name, *arguments)
    assert isinstance(chart, alt.ConcatChart)
    chart.save(tmp_path / "chart.svg")  # the schema is checked on the way
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").startswith("<svg")


def test_calibration_of_every_choice_has_a_row_of_panels_for_each(study):
    chosen = [choice.case for choice in study.choices if choice.chosen]
    lines = [panel["title"] for panel in study.plot.calibration().to_dict()["concat"]]
    titles = [title if isinstance(title, str) else " ".join(title) for title in lines]
    assert len(titles) == 2 * len(chosen) > 0
    assert [title.partition(": ")[0] for title in titles[::2]] == [
        f"({letter}) {case}" for letter, case in zip("acegi"[: len(chosen)], chosen, strict=True)
    ]


def test_the_heat_map_has_every_case_by_every_method(draw):
    cells = values(draw("heatmap"), "case", "method")
    assert {case for case, _ in cells} == {"Pier", "Deck slab", "Slope"}
    assert len(cells) == 6


def test_a_forecast_has_the_curve_and_when_the_state_is_reached(draw):
    titles = [panel["title"] for panel in draw("forecast", "Pier").to_dict()["concat"]]
    assert titles[:2] == [panel["title"] for panel in draw("curve", "Pier").to_dict()["concat"]]
    assert titles[2:] == ["(c) Probability of rating 4 or worse", "(d) Years until rating 4 or worse"]


def test_the_network_of_one_case_is_smaller_than_that_of_all(draw):
    ends = [max(values(draw("network", *case), "year", "expected"))[1] for case in ((), ("Pier",))]
    assert ends[1] < ends[0]


def test_draws_are_shown_once_there_are_some(study):
    with pytest.raises(BadOption, match=r"no draws to show.*rekka\.stability\(study\)"):
        study.plot.stability()
    found = rekka.stability(study, kinds=["bootstrap"], resamples=2, workers=1)
    assert "Pier" in {case for (case,) in values(study.plot.stability(found), "case")}


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda plot: plot.curve("Peer"), "Did you mean Pier"),
        (lambda plot: plot.heatmap("papers"), "preset is 'papers'"),
        (lambda plot: plot.curve("Slope"), "There is nothing to draw: .*"),
        (lambda plot: plot.forecast("Slope"), "There is nothing to draw: .*"),
        (lambda plot: plot.profiles("Slope"), "There is nothing to draw: .*"),
        (lambda plot: plot.network("Slope"), "There is nothing to draw: no model was chosen"),
        (lambda plot: plot.network("Peer"), "Did you mean Pier"),
        (lambda plot: plot.calibration("Slope"), "Nothing was chosen for Slope"),
    ],
)
def test_what_cannot_be_drawn_is_told(study, ask, told):
    with pytest.raises(BadOption, match=told):
        ask(study.plot)


@pytest.mark.usefixtures("no_pictures")
def test_a_notebook_shows_the_page_in_a_frame_of_its_own(report):
    shown = report._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert "<script" not in shown
    assert 'sandbox="allow-scripts allow-modals"' in shown
    assert repr(report) == "<Report of inspection records: 3 cases, en>"


def test_a_format_that_is_none_is_told(report, tmp_path):
    with pytest.raises(BadOption, match="formats is 'gif'"):
        report.write_figures(tmp_path / "figures", formats=["gif"])
    assert not (tmp_path / "figures").exists()
