"""A member's chart and card, the chart and table of repairs: the numbers of the forecast, in words of both languages."""

import altair as alt
import pytest
from network_cases import BASE_YEAR, FAN_YEARS, NEXT, THERE, fill_document
from table_cases import plain_document

import rekka
from rekka.report.cards import make_card
from rekka.report.charts.base import PRINT, Theme
from rekka.report.charts.members import draw_member, draw_what_if
from rekka.report.tables.cells import expand
from rekka.report.tables.what_if import tabulate_what_if
from rekka.report.text import LANGUAGES, load_words, show_share

EN = load_words("en")


@pytest.fixture(scope="module")
def document():
    return fill_document(plain_document())


@pytest.fixture(scope="module")
def found():
    """A forecast without dates, in which three members are repaired."""
    rows = rekka.simulate_transitions(300, n_states=3, seed=1)
    members = rows.unique("bridge_id", maintain_order=True)
    forecast = rekka.forecast_inventory(rekka.fit_components(rows), members, years=12, repaired=3)
    return forecast.what_if


def find(document, tab):
    return document.network.every.tab.index(tab)


def layers_of(panel, kind):
    return [one for one in panel.spec["layer"] if one["mark"]["type"] == kind and "style" not in one["mark"]]


def validate(figure):
    for panel in figure.panels:
        alt.LayerChart.validate(panel.spec | {"config": {}}, schema=alt.LayerChart._schema)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_member_over_the_years(document, lang):
    network, every, place = document.network, document.network.every, find(document, NEXT)
    figure = draw_member(network, every, place, Theme(load_words(lang), PRINT, network.ratings))
    validate(figure)
    (panel,) = figure.panels
    (area,) = layers_of(panel, "area")
    assert [round(row["year"] - BASE_YEAR) for row in area["data"]["values"]] == list(FAN_YEARS)
    fan = every.fan[place]
    assert [row["median"] for row in area["data"]["values"]] == [int(one, 36) for one in fan[1::3]]
    (points,) = layers_of(panel, "point")
    assert [row["rating"] for row in points["data"]["values"]] == [
        int(one.split(":")[1]) for one in every.past[place].split(",")
    ]
    (ground,) = layers_of(panel, "rect")
    assert ground["data"]["values"][0]["from"] == every.threshold[every.case[place]] - 0.5
    assert panel.alt.rstrip(".\N{IDEOGRAPHIC FULL STOP}") == figure.title != ""


def test_a_member_without_visits_or_a_forecast(document):
    network, every, place = document.network, document.network.every, find(document, NEXT)
    blank = every.model_copy(update={"past": ("",) * len(every.bridge)})
    figure = draw_member(
        network.model_copy(update={"base": None}), blank, place, Theme(EN, PRINT, network.ratings)
    )
    assert layers_of(figure.panels[0], "point") == []
    assert figure.title.startswith("The median is")
    nothing = every.model_copy(update={"fan": ("",) * len(every.bridge)})
    assert draw_member(network, nothing, place, Theme(EN, PRINT, network.ratings)) is None


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_card_has_sentences_and_drivers(document, lang):
    every, words = document.network.every, load_words(lang)
    place = find(document, NEXT)
    card = make_card(document, every, place, words)
    assert (card.bridge, card.member) == (every.bridge[place], every.member[place])
    assert every.seen[place] in card.lines[0]
    assert str(every.calendar[place]) in card.lines[-1]
    share = every.soon[place]
    assert show_share(share, 0 if 0.1 <= share <= 0.9 else 1) in card.lines[1]
    assert len(card.drivers) == len(every.covariates) + 1  # and the frailty of its bridge
    there = make_card(document, every, find(document, THERE), words)
    assert len(there.lines) == 2


def test_drivers_come_by_their_strength(document):
    every = document.network.every
    two = every.model_copy(
        update={
            "covariates": ("age", "traffic_mean", "width"),
            "values": tuple((1.5,) * len(every.bridge) for _ in range(3)),
            "ratios": tuple((ratio,) * len(every.bridge) for ratio in (1.2, 0.5, 1.001)),
            "frailty": (),
        }
    )
    lines = make_card(document, two, 0, EN).drivers
    assert ["slower" in lines[0], "faster" in lines[1], "the speed of a typical" in lines[2]] == [True] * 3


@pytest.mark.parametrize("lang", LANGUAGES)
def test_repairs_in_a_chart_and_a_table(found, lang):
    words = load_words(lang)
    figure = draw_what_if(found, Theme(words, PRINT))
    validate(figure)
    totals, avoided = figure.panels
    assert [row["year"] for row in totals.spec["data"]["values"]] == list(range(13))
    for row in avoided.spec["data"]["values"]:
        numbers = found.avoided(row["year"])
        assert row["avoided"] == pytest.approx(numbers["avoided"], rel=1e-5)
        assert row["low"] == pytest.approx(numbers["avoided_low"], rel=1e-5)
        assert row["last"] == pytest.approx(numbers["avoided_predicted_high"], rel=1e-5)
    assert figure.title == found.headline(lang).rstrip(".\N{IDEOGRAPHIC FULL STOP}")
    table = tabulate_what_if(found, words)
    assert [row.cells[0].value for row in table.rows] == found.years
    flat = expand(table)
    assert len(flat.columns) == 8  # each interval has two
    for row in flat.rows:
        numbers = found.avoided(row.cells[0].value)
        assert [cell.value for cell in row.cells[3:6]] == [
            numbers[name] for name in ("avoided", "avoided_low", "avoided_high")
        ]


def test_repairs_without_intervals():
    rows = rekka.simulate_transitions(300, n_states=3, seed=1)
    members = rows.unique("bridge_id", maintain_order=True)
    forecast = rekka.forecast_inventory(rekka.fit_components(rows), members, years=5, intervals="none", repaired=2)
    figure = draw_what_if(forecast.what_if, Theme(EN, PRINT))
    validate(figure)
    assert layers_of(figure.panels[0], "area") == layers_of(figure.panels[1], "area") == []
    assert figure.caption == ""
