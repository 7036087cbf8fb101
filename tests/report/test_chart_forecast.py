"""Charts of the future show the document's numbers, shade what is beyond the training rows, and mark doubtful models."""

import json
import math
import re
from functools import lru_cache, partial

import pytest
from page_cases import uncertify
from table_cases import WORDS, plain_document

from rekka.core.ratings import Ratings
from rekka.report.charts.base import FRAME, KEY, PRINT, STAMP, Theme, colour_state, measure
from rekka.report.charts.drawing import combine, draw_svg_file, slim_svg
from rekka.report.charts.forecast import (
    FARTHEST,
    draw_backtest,
    draw_backtests,
    draw_curve,
    draw_for_case_network,
    draw_multiples,
    draw_network,
    draw_reach,
    draw_reaching,
)
from rekka.report.charts.models import draw_calibration, draw_profiles, draw_ratios
from rekka.report.document import BacktestPart, BacktestYear, HistoryYear
from rekka.report.text import load_words

THEME = Theme(WORDS, PRINT)


@pytest.fixture(scope="module")
def document():
    return plain_document()


@pytest.fixture(scope="module")
def model(document):
    return document.models[0]


@lru_cache
def doubtful():
    return uncertify(plain_document())


def change(model, **values):
    """The model with another forecast."""
    return model.model_copy(update={"forecast": model.forecast.model_copy(update=values)})


def panel(figure, name):
    return next(one for one in figure.panels if one.name == name)


def layers_of(panel):
    """The layers of a plot, without its frame and its key."""
    return [one for one in panel.spec["layer"] if one["mark"].get("style") not in (FRAME, KEY)]


def marks_of(panel, kind):
    return [one for one in layers_of(panel) if one["mark"]["type"] == kind]


def key_of(panel):
    """Texts of the key with the colours of their symbols."""
    return {
        row["text"]: row["colour"]
        for one in panel.spec["layer"]
        if one["mark"].get("style") == KEY and one["mark"]["type"] != "text"
        for row in one["data"]["values"]
    }


def rows_of(panel):
    return panel.spec["data"]["values"]


def column(panel, name):
    return [row[name] for row in rows_of(panel)]


def list_stamps(figure):
    """The texts across the panels of a figure."""
    return [
        layer["mark"]["text"]
        for one in figure.panels
        for layer in one.spec["layer"]
        if layer["mark"].get("style") == STAMP
    ]


def draw_all(document):
    model = document.models[0]
    covariates = document.study.covariates
    return [
        draw_curve(model, "001", THEME),
        draw_reach(model, "001", THEME),
        draw_profiles(model, covariates, "001", THEME),
        draw_ratios(model, covariates, "001", THEME),
        draw_reaching(document, THEME),
        draw_network(document.network, THEME),
        draw_multiples(document, THEME),
    ]


# A typical member


def test_the_curve_has_the_documents_numbers(model):
    found, figure = model.forecast, draw_curve(model, "001", THEME)
    mean = panel(figure, "mean")
    assert column(mean, "mean") == pytest.approx(found.expected, rel=1e-5)
    assert column(mean, "low") == pytest.approx(found.expected_low, rel=1e-5)
    assert column(mean, "best") == [state - 0.5 for state in found.predicted_low]
    assert column(mean, "worst") == [state + 0.5 for state in found.predicted_high]
    shares = rows_of(panel(figure, "shares"))
    assert [shares[-1][str(k)] for k in (1, 2, 3, 4)] == pytest.approx(found.probability[-1], rel=1e-5)
    assert f"mean rating is {found.expected[-1]:.1f}." in mean.alt


def test_the_best_state_is_at_the_top_and_each_has_its_strip(model):
    figure = draw_curve(model, "001", THEME)
    y = marks_of(panel(figure, "mean"), "line")[0]["encoding"]["y"]
    assert (y["scale"]["domain"], y["scale"]["reverse"]) == ([0.5, 4.5], True)
    assert y["axis"]["values"] == [1, 2, 3, 4]
    order = marks_of(panel(figure, "shares"), "area")[0]["encoding"]["order"]
    assert order["sort"] == "descending"  # stacked from the bottom: the worst first


def test_two_bands_are_told_apart_by_colour_and_words(model):
    figure = draw_curve(model, "001", THEME)
    member, mean = marks_of(panel(figure, "mean"), "area")
    assert (member["encoding"]["y"]["field"], mean["encoding"]["y"]["field"]) == ("best", "low")
    assert key_of(panel(figure, "mean")) == {
        "the mean (95%)": mean["mark"]["color"],
        "one member (95%)": member["mark"]["color"],
    }
    assert mean["mark"]["color"] == PRINT.band != member["mark"]["color"]
    assert "The strong band is the 95% interval of the mean" in figure.caption


def test_years_beyond_the_training_rows_are_shaded_and_told(model):
    first = model.forecast.extrapolated_from
    assert first is not None
    figure = draw_curve(model, "001", THEME)
    kinds = [one["mark"]["type"] for one in layers_of(panel(figure, "mean"))]
    ground = marks_of(panel(figure, "mean"), "rect")[0]
    assert kinds.index("rect") > kinds.index("area")  # a band would hide it
    assert ground["data"]["values"] == [{"year": first, "last": 30.0}]
    rule = layers_of(panel(figure, "shares"))[1]
    assert (rule["mark"]["type"], rule["data"]["values"]) == ("rule", [{"year": first}])
    assert f"From year {first:.0f} on this is beyond the training rows" in figure.caption
    within = change(model, outside=(False,) * 31)
    assert "beyond" not in draw_curve(within, "001", THEME).caption
    assert not marks_of(panel(draw_curve(within, "001", THEME), "mean"), "rect")


def test_what_advances_is_told(model):
    assert "Advancing by the year: age" in draw_curve(model, "001", THEME).caption
    still = change(model, advancing=(), outside=(False,) * 31)
    assert "nothing advances with the years" in draw_reach(still, "001", THEME).caption


def test_the_chance_and_the_years_are_the_documents(model):
    found, figure = model.forecast, draw_reach(model, "001", THEME)
    chance, until = panel(figure, "chance"), panel(figure, "until")
    assert column(chance, "share") == pytest.approx(found.reached, rel=1e-5)
    assert column(chance, "high") == pytest.approx(found.reached_high, rel=1e-5)
    assert column(until, "state") == [1, 2, 3]
    assert column(until, "median") == pytest.approx([one.median for one in found.passages], rel=1e-5)
    assert column(until, "low") == pytest.approx([one.median_low for one in found.passages], rel=1e-5)
    assert "rating 4 or worse" in chance.title
    assert f"from rating 1 {found.passages[0].median:.1f}" in until.alt


def test_years_beyond_the_axis_end_in_an_arrow(model):
    far = model.forecast.passages[0].model_copy(
        update={"median": 40.0, "median_high": float("inf"), "predicted_high": 5e22}
    )
    never = far.model_copy(update={"start": 2, "median": float("inf"), "median_low": 150.0})
    figure = draw_reach(change(model, passages=(far, never)), "001", THEME)
    first, second = rows_of(panel(figure, "until"))
    assert (first["high"], first["last"], first["far"]) == (FARTHEST, FARTHEST, True)
    assert first["interval_text"].endswith("to >200")
    assert "median" not in second
    assert "low" not in second
    assert second["median_text"] == ">200"
    assert "An arrow continues beyond 100 years." in figure.caption
    assert "M" in draw_svg_file(panel(figure, "until").spec)


def test_an_axis_of_years_is_round_and_no_longer_than_it_must_be(model):
    short = tuple(
        one.model_copy(update={"median": 5.0, "median_low": 4.0, "median_high": 6.0, "predicted_high": 33.0})
        for one in model.forecast.passages
    )
    figure = draw_reach(change(model, passages=short), "001", THEME)
    scale = layers_of(panel(figure, "until"))[0]["encoding"]["x"]["scale"]
    assert scale["domain"] == [0, 40]
    assert "arrow" not in figure.caption


def test_cases_stand_beside_each_other_if_they_were_chosen(document):
    one = draw_reaching(document, THEME).panels[0]
    assert column(one, "case") == [model.case for model in document.models]
    assert column(one, "median") == pytest.approx(
        [model.forecast.new.passage.median for model in document.models], rel=1e-5
    )
    assert one.spec["params"] == [{"name": "picked", "value": ""}]
    turned_down = document.models[0].model_copy(update={"chosen": False})
    less = document.model_copy(update={"models": (turned_down, *document.models[1:])})
    assert column(draw_reaching(less, THEME).panels[0], "case") == [document.models[1].case]
    nothing = document.model_copy(update={"models": (turned_down,)})
    assert draw_reaching(nothing, THEME) is None


def test_profiles_have_a_panel_for_each_covariate_with_its_unit(document, model):
    figure = draw_profiles(model, document.study.covariates, "001", THEME)
    assert [one.title for one in figure.panels] == ["age", "bridge length", "traffic"]
    first, part = figure.panels[0], model.forecast.profiles[0]
    told = [(row["value"], row["middle"]) for row in rows_of(first) if row["state"] == 2]
    theirs = [(value, hazards[1]) for value, hazards in zip(part.values, part.hazard, strict=True)]
    assert told == [pytest.approx(pair, rel=1e-5) for pair in theirs]
    assert "age (years)" in json.dumps(first.spec)
    assert set(rows_of(first)[0]) == {"value", "middle", "low", "high", "state"}
    assert "Hazards from age" in first.alt
    alone = part.model_copy(update={"values": (1.0,), "outside": (False,), "hazard": ((0.1, 0.2, 0.3),)})
    constant = change(model, profiles=(alone,))
    assert draw_profiles(constant, (), "001", THEME) is None


def test_profiles_show_every_value_and_ratings_in_their_own_colours(document, model):
    """The rug of a document is coarser than the quantiles its values came from: nothing is left out by it."""
    coarse = tuple(
        one.model_copy(update={"rug": (one.values[1], one.values[-2])}) for one in model.forecast.profiles
    )
    figure = draw_profiles(change(model, profiles=coarse), document.study.covariates, "001", THEME)
    for one, part in zip(figure.panels, model.forecast.profiles, strict=True):
        line = next(layer for layer in marks_of(one, "line") if layer["encoding"]["y"]["field"] == "middle")
        x = line["encoding"]["x"]["scale"]
        assert x["domain"] == pytest.approx([part.values[0], part.values[-1]], rel=1e-5)
        assert len({row["value"] for row in rows_of(one)}) == len(part.values)
        ratings = line["encoding"]["color"]["scale"]
        assert ratings["range"] == [colour_state(state, 4, PRINT) for state in ratings["domain"]] != []
    shares = marks_of(panel(draw_curve(model, "001", THEME), "shares"), "area")[0]["encoding"]["color"]["scale"]
    assert shares["range"][:3] == ratings["range"]  # the worst is not left


def test_the_title_of_profiles_names_an_effect_that_is_shown(document, model):
    """By the interval of its ratio: bands at both ends overlap where the change between them is sure."""
    draw = partial(draw_profiles, covariates=document.study.covariates, number="001", theme=THEME)
    ends = {
        (one.covariate, state): (one.hazard[0][state - 1], one.hazard[-1][state - 1])
        for one in model.forecast.profiles
        for state in (1, 2, 3)
    }
    shown = [(one.covariate, one.state) for one in model.ratios if one.low > 1 or one.high < 1]
    covariate, state = max(shown, key=lambda key: abs(math.log(ends[key][1] / ends[key][0])))
    title = draw(model).title
    assert f"hazards change most along {WORDS.covariate(covariate)}, from " in title
    assert title.endswith(f"a year in rating {state}")
    first, last = (float(text) for text in re.search(r"from ([\d.]+) to ([\d.]+) a year", title).groups())
    assert (first, last) == pytest.approx(ends[covariate, state], rel=0.005)
    unclear = tuple(one.model_copy(update={"low": 0.5, "high": 2.0}) for one in model.ratios)
    assert draw(model.model_copy(update={"ratios": unclear})).title.endswith(
        "no covariate changes a hazard by more than its uncertainty"
    )
    bare = tuple(one.model_copy(update={"low": None, "high": None}) for one in model.ratios)
    told = draw(model.model_copy(update={"ratios": bare, "certified": False})).title
    assert told.endswith("because the fit is not certified as a maximum")


LONG = ("Very good: no defects found", "Good", "Fair, minor section loss", "Poor: advanced deterioration")


def test_long_names_of_ratings_leave_room_for_the_plot(document, model):
    """They are cut and broken into lines, on the page and on half of a page."""
    theme = Theme(WORDS, PRINT, Ratings(LONG))
    figures = [
        draw_curve(model, "001", theme),
        draw_reach(model, "001", theme),
        draw_profiles(model, document.study.covariates, "001", theme),
        draw_calibration(document.calibration[0], "001", theme),
    ]
    for figure in figures:
        for spec in (*(one.spec for one in figure.panels), *combine(figure)["concat"]):
            assert spec["width"] >= 60, figure.name
    small = draw_multiples(document, theme)
    assert all(one.spec["width"] >= 60 for one in small.panels)
    width = float(re.search(r' width="([\d.]+)"', draw_svg_file(combine(small)))[1])
    assert width <= 715
    names = theme.list_names(4)
    assert names[1:3] == ["Good", "Fair, minor\nsection loss"]
    assert max(measure(line) for name in names for line in name.split("\n")) <= 92
    many = Theme(WORDS, PRINT, Ratings(LONG * 3))
    assert not any("\n" in name for name in many.list_names(12))


# The network


def test_the_network_has_the_documents_numbers(document):
    figure, years = draw_network(document.network, THEME), document.network.of(None)
    reached, shares = figure.panels
    last = years[-1]
    assert [rows_of(shares)[-1][str(k)] for k in (1, 2, 3, 4)] == pytest.approx(
        [number / last.members for number in last.expected], rel=1e-5
    )
    assert column(reached, "expected") == pytest.approx([one.reached for one in years], rel=1e-5)
    assert column(reached, "first") == [one.predicted_low for one in years]
    assert reached.title == "Members at rating 4 or worse"
    assert f"{last.reached:,.0f} are expected to be after 30 years" in reached.alt
    assert list(key_of(reached)) == ["expected number (95%)", "the number itself (95%)"]
    assert figure.live
    assert figure.title == reached.alt.rstrip(".")


def dated(network):
    """The network with a base date, a history of its years before, and the wider interval."""
    years = tuple(
        one.model_copy(update={"predicted_shock_low": 1.0, "predicted_shock_high": 290.0}) for one in network.years
    )
    cases = dict.fromkeys(one.case for one in network.years)
    history = tuple(
        HistoryYear(case=case, year=year, members=members, reached=reached)
        for case in cases
        for year, members, reached in ((2010, 100, 5), (2015, 290, 20), (2020, 300, 30))
    )
    return network.model_copy(update={"base": "2020-06-30", "years": years, "history": history})


def test_what_was_found_goes_before_what_is_expected(document):
    network = dated(document.network)
    figure = draw_network(network, THEME)
    reached = figure.panels[0]
    assert column(reached, "year")[:2] == [2020, 2021]
    points = [row for one in marks_of(reached, "point") for row in one["data"]["values"]]
    assert [(row["year"], row["found"], row["early"]) for row in points] == [
        (2015, 20, False),
        (2020, 30, False),
        (2010, 5, True),
    ]
    assert "less than 90% of the members had been inspected" in figure.caption
    line = next(one for one in marks_of(reached, "line") if one["encoding"]["y"]["field"] == "expected")
    assert line["encoding"]["x"]["scale"]["domain"] == [2010, 2050]
    assert line["encoding"]["x"]["axis"]["format"] == "d"  # 2,010 is no year
    texts = [one["mark"]["text"] for one in marks_of(reached, "text") if "text" in one["mark"]]
    assert texts == [["forecast from", "2020-06-30"]]
    assert "number expected on its first day, which differs where members" in figure.caption
    assert figure.title.endswith("are expected to be in 2050, if nothing is repaired")
    wider = [one for one in marks_of(reached, "line") if one["encoding"]["y"]["field"].startswith("widest")]
    assert len(wider) == 2
    assert "with errors that all members share (95%)" in key_of(reached)
    assert "wider interval" in figure.caption


def test_without_dates_there_is_no_history(document):
    network = dated(document.network).model_copy(update={"base": None})
    figure = draw_network(network, THEME)
    assert column(figure.panels[0], "year")[0] == 0
    assert not marks_of(figure.panels[0], "point")
    assert "inspectors" not in figure.caption
    assert "after 30 years" in figure.title


def test_each_component_has_the_network_of_its_own(document):
    network = dated(document.network)
    own = document.model_copy(update={"network": network})
    case = document.cases[1].case
    figure = draw_for_case_network(own, case, THEME)
    assert (figure.name, figure.case) == ("network-002", case)
    assert figure.panels == draw_network(network, THEME, case, "network-002").panels[:1]
    assert draw_for_case_network(own, "nobody", THEME) is None
    assert draw_for_case_network(document.model_copy(update={"network": None}), case, THEME) is None


def test_a_case_of_the_network_is_drawn_by_itself(document):
    case = document.cases[1].case
    figure = draw_network(document.network, THEME, case)
    assert figure.title.startswith(case)
    assert column(figure.panels[0], "expected")[0] == pytest.approx(document.network.of(case)[0].reached, rel=1e-5)
    assert draw_network(document.network, THEME, "nobody") is None


def test_several_thresholds_have_words_of_their_own(document):
    years = tuple(one.model_copy(update={"threshold": None}) for one in document.network.years)
    figure = draw_network(document.network.model_copy(update={"years": years}), THEME)
    assert "at the threshold of their component" in figure.panels[0].title
    assert "are at the threshold of their component or worse now" in figure.panels[0].alt


# Small panels of every component


def test_every_component_has_a_small_panel_on_shared_axes(document):
    figure = draw_multiples(document, THEME)
    assert [one.title for one in figure.panels] == [one.case for one in document.models]
    scales = [marks_of(one, "line")[0]["encoding"] for one in figure.panels]
    assert all(one["x"]["scale"] == scales[0]["x"]["scale"] for one in scales)
    assert all(one["y"]["scale"] == scales[0]["y"]["scale"] for one in scales)
    for one, model in zip(figure.panels, document.models, strict=True):
        assert column(one, "mean") == pytest.approx(model.forecast.new.expected, rel=1e-5)
        edge = next(line for line in marks_of(one, "rule") if "datum" in line["encoding"].get("y", {}))
        assert edge["encoding"]["y"]["datum"] == model.forecast.threshold - 0.5
    oldest = max(one.forecast.new.years[-1] for one in document.models)
    reached = sum(one.forecast.new.passage.median <= oldest for one in document.models)
    assert scales[0]["x"]["axis"]["title"] == "age (years)"
    assert "A new member has age 0" in figure.caption
    assert f"Within {oldest:g} years a new member is more likely than not" in figure.title
    assert f"at rating 4 or worse in {reached} of {len(document.models)} components" in figure.title
    assert "not shown" not in figure.caption
    assert not figure.live


def test_ages_that_no_training_row_has_are_shaded_at_both_ends(document):
    def shade(outside):
        model = document.models[0]
        new = model.forecast.new
        flags = tuple(outside(age) for age in new.years)
        forecast = model.forecast.model_copy(update={"new": new.model_copy(update={"outside": flags})})
        models = (model.model_copy(update={"forecast": forecast}),)
        figure = draw_multiples(document.model_copy(update={"models": models}), THEME)
        shades = [one["data"]["values"][0] for one in marks_of(figure.panels[0], "rect")]
        return [(one["year"], one["last"]) for one in shades], figure

    end = document.models[0].forecast.new.years[-1]
    shaded, figure = shade(lambda age: age < 10 or age > 20)
    assert shaded == [(0, 10), (20, end)]
    assert "Shaded ages are outside those of the training rows." in figure.caption
    assert figure.panels[0].spec["width"] > 2 * draw_multiples(document, THEME).panels[0].spec["width"]  # large
    shaded, figure = shade(lambda _: False)
    assert shaded == []
    assert "Shaded" not in figure.caption


def test_models_without_an_age_have_the_years_from_now(document):
    models = tuple(
        one.model_copy(update={"forecast": one.forecast.model_copy(update={"new": None, "advancing": ()})})
        for one in document.models
    )
    still = document.model_copy(update={"models": models})
    figure = draw_multiples(still, THEME)
    for one, model in zip(figure.panels, models, strict=True):
        assert column(one, "mean") == pytest.approx(model.forecast.expected, rel=1e-5)
    assert "the same for new and for old members" in figure.caption
    assert column(draw_reaching(still, THEME).panels[0], "median") == pytest.approx(
        [one.forecast.passages[0].median for one in models], rel=1e-5
    )


def test_more_components_than_a_page_can_show_are_counted(document):
    model = document.models[0]
    models = tuple(model.model_copy(update={"case": f"Pier {n}"}) for n in range(30))
    figure = draw_multiples(document.model_copy(update={"models": models}), THEME)
    assert len(figure.panels) == 24
    assert figure.caption.endswith("Components not shown here, each on a page of its own: 6.")
    wide = combine(figure)
    assert wide["columns"] == 3
    assert [one["title"][:4] for one in wide["concat"]][24 - 1] == "(x) "


def test_a_small_panel_is_stamped_by_itself(document):
    first, *others = document.models
    models = (first.model_copy(update={"chosen": False}), *others)
    figure = draw_multiples(document.model_copy(update={"models": models}), THEME)
    stamped = [any(one["mark"].get("style") == STAMP for one in layers_of(panel)) for panel in figure.panels]
    assert stamped == [True] + [False] * len(others)


# Backtests


def backtest(case, **changed):
    years = (
        BacktestYear(year=2019, visits=100, observed=12, expected=10.4, predicted_low=5, predicted_high=16),
        BacktestYear(year=2020, visits=90, observed=30, expected=14.0, predicted_low=8, predicted_high=20),
    )
    known = {"model": None, "certified": True, "visits": 190, "bridges": 40, "horizon": 4.0, "threshold": 4}
    scores = {"score": 0.1, "no_change_score": 0.12, "difference": -0.02, "low": -0.03, "high": -0.01}
    return BacktestPart(**known | scores | {"case": case, "until": "2018-12-31", "years": years} | changed)


def test_a_backtest_has_what_was_found_within_what_was_expected():
    figure = draw_backtest(backtest("Pier"), "001", THEME, 0.95)
    assert figure.name == "backtest-001"
    assert figure.title == "Pier: 42 visits found rating 4 or worse after 2018-12-31, 24 were expected"
    one = figure.panels[0]
    assert [(row["year"], row["found"], row["low"], row["high"]) for row in rows_of(one)] == [
        ("2019", 12, 5, 16),
        ("2020", 30, 8, 20),
    ]
    assert "Years in which the number found is within the interval: 1 of 2." in one.alt
    assert list(key_of(one)) == ["found", "the number itself (95%)", "expected"]
    assert draw_backtest(backtest("Pier", years=()), "001", THEME, 0.95) is None


def test_scores_of_backtests_are_compared_with_no_change(document):
    cases = [one.case for one in document.cases]
    parts = (backtest(cases[0]), backtest(cases[1], difference=None, low=None, high=None, reason="too few"))
    figure = draw_backtests(document.model_copy(update={"backtests": parts}), THEME)
    assert [(row["case"], row["verdict"]) for row in rows_of(figure.panels[0])] == [(cases[0], "better")]
    assert figure.title == "Later visits were forecast better than by no change in 1 of 1 components"
    assert figure.caption.endswith(f"Without a score: {cases[1]}.")
    assert draw_backtests(document, THEME) is None


# Models that are not to be relied on


def test_every_picture_of_a_model_that_is_not_certified_is_marked():
    for figure in draw_all(doubtful()):
        assert list_stamps(figure) == ["NOT CERTIFIED"] * len(figure.panels), figure.name
        assert "interval" not in figure.caption.replace("There are no intervals", ""), figure.name
        for one in figure.panels:
            assert not any(name in row for row in rows_of(one) for name in ("low", "first", "best")), one.name
        combined = combine(figure)
        for one in combined["concat"]:
            mark = next(layer for layer in one["layer"] if layer["mark"].get("style") == STAMP)
            assert mark["encoding"]["x"]["value"] == one["width"] / 2
        assert "NOT CERTIFIED" in draw_svg_file(combined)


def test_a_model_that_was_not_chosen_is_marked_so(document, model):
    turned_down = model.model_copy(update={"chosen": False})
    for draw in (draw_curve, draw_reach):
        figure = draw(turned_down, "001", THEME)
        assert list_stamps(figure) == ["NOT CHOSEN"] * 2
        assert "No model was chosen in this component" in figure.caption
    assert list_stamps(draw_profiles(turned_down, document.study.covariates, "001", THEME))[0] == "NOT CHOSEN"


def test_a_certified_choice_has_no_mark(document):
    assert [list_stamps(figure) for figure in draw_all(document)] == [[]] * 7


def test_a_mark_is_in_the_language_of_the_page_and_fits(model):
    bare = model.model_copy(update={"certified": False})
    figure = draw_curve(bare, "001", Theme(load_words("ja"), PRINT))
    assert list_stamps(figure) == ["最尤解未確認"] * 2
    for one in figure.panels:
        mark = next(layer["mark"] for layer in one.spec["layer"] if layer["mark"].get("style") == STAMP)
        assert mark["fontSize"] * len(mark["text"]) < one.spec["width"]


def test_what_answers_the_pointer_is_left_out_of_a_picture(model):
    svg = draw_svg_file(panel(draw_curve(model, "001", THEME), "mean").spec)
    assert ' opacity="0"' in svg
    slim = slim_svg(svg)
    assert ' opacity="0"' not in slim
    assert len(slim) < 0.7 * len(svg)
