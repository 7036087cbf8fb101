"""Charts of the future show the document's numbers, shade what is beyond the training rows, and mark doubtful models."""

import json
from functools import lru_cache

import pytest
from page_cases import uncertify
from table_cases import WORDS, plain_document

from rekka.report.charts.base import PRINT, STAMP, Theme
from rekka.report.charts.drawing import combine, draw_svg_file, slim_svg
from rekka.report.charts.forecast import FARTHEST, draw_curve, draw_network, draw_reach, draw_reaching
from rekka.report.charts.models import draw_profiles, draw_ratios
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
    y = panel(figure, "mean").spec["layer"][-2]["encoding"]["y"]
    assert y["scale"] == {"domain": [0.5, 4.5], "nice": False, "reverse": True}
    assert y["axis"]["values"] == [1, 2, 3, 4]
    order = panel(figure, "shares").spec["layer"][0]["encoding"]["order"]
    assert order["sort"] == "descending"  # stacked from the bottom: the worst first


def test_two_bands_are_told_apart_by_colour_and_words(model):
    figure = draw_curve(model, "001", THEME)
    member, mean = (layer for layer in panel(figure, "mean").spec["layer"] if "fill" in layer["encoding"])
    scale = member["encoding"]["fill"]["scale"]
    assert scale == mean["encoding"]["fill"]["scale"]
    assert scale["domain"] == ["the mean (95%)", "one member (95%)"]
    assert scale["range"] == [PRINT.band, PRINT.haze]
    assert [json.loads(one["transform"][0]["calculate"]) for one in (member, mean)] == scale["domain"][::-1]
    assert "The strong band is the 95% interval of the mean" in figure.caption


def test_years_beyond_the_training_rows_are_shaded_and_told(model):
    first = model.forecast.extrapolated_from
    assert first is not None
    figure = draw_curve(model, "001", THEME)
    ground = panel(figure, "mean").spec["layer"][0]
    assert ground["mark"]["type"] == "rect"
    assert ground["data"]["values"] == [{"year": first, "last": 30.0}]
    rule = panel(figure, "shares").spec["layer"][1]
    assert (rule["mark"]["type"], rule["data"]["values"]) == ("rule", [{"year": first}])
    assert f"From year {first:.0f} on this is beyond the training rows" in figure.caption
    within = change(model, outside=(False,) * 31)
    assert "beyond" not in draw_curve(within, "001", THEME).caption
    assert "rect" not in [
        layer["mark"]["type"] for layer in panel(draw_curve(within, "001", THEME), "mean").spec["layer"]
    ]


def test_what_advances_is_told(model):
    assert "Advancing by the year: age_at_inspection_1" in draw_curve(model, "001", THEME).caption
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
    scale = panel(figure, "until").spec["layer"][0]["encoding"]["x"]["scale"]
    assert scale["domain"] == [0, 40]
    assert "arrow" not in figure.caption


def test_cases_stand_beside_each_other_if_they_were_chosen(document):
    one = draw_reaching(document, THEME).panels[0]
    assert column(one, "case") == [model.case for model in document.models]
    assert one.spec["params"] == [{"name": "picked", "value": ""}]
    turned_down = document.models[0].model_copy(update={"chosen": False})
    less = document.model_copy(update={"models": (turned_down, *document.models[1:])})
    assert column(draw_reaching(less, THEME).panels[0], "case") == [document.models[1].case]
    nothing = document.model_copy(update={"models": (turned_down,)})
    assert draw_reaching(nothing, THEME) is None


def test_profiles_have_a_panel_for_each_covariate_with_its_unit(document, model):
    figure = draw_profiles(model, document.study.covariates, "001", THEME)
    assert [one.title for one in figure.panels] == [one.covariate for one in model.forecast.profiles]
    first, part = figure.panels[0], model.forecast.profiles[0]
    told = [(row["value"], row["middle"]) for row in rows_of(first) if row["state"] == 2]
    theirs = [(value, hazards[1]) for value, hazards in zip(part.values, part.hazard, strict=True)]
    assert told == [pytest.approx(pair, rel=1e-5) for pair in theirs]
    assert "age_at_inspection_1 (years)" in json.dumps(first.spec)
    assert set(rows_of(first)[0]) == {"value", "middle", "low", "high", "state"}
    assert "Hazards from age_at_inspection_1" in first.alt
    alone = part.model_copy(update={"values": (1.0,), "outside": (False,), "hazard": ((0.1, 0.2, 0.3),)})
    constant = change(model, profiles=(alone,))
    assert draw_profiles(constant, (), "001", THEME) is None


# The network


def test_the_network_has_the_documents_numbers(document):
    figure, years = draw_network(document.network, THEME), document.network.of(None)
    shares, reached = figure.panels
    last = years[-1]
    assert [rows_of(shares)[-1][str(k)] for k in (1, 2, 3, 4)] == pytest.approx(
        [number / last.members for number in last.expected], rel=1e-5
    )
    assert column(reached, "expected") == pytest.approx([one.reached for one in years], rel=1e-5)
    assert column(reached, "first") == [one.predicted_low for one in years]
    assert reached.title == "Members at rating 4 or worse"
    assert f"{last.reached:,.0f} expected after 30 years" in reached.alt
    names = [
        layer["encoding"]["fill"]["scale"]["domain"]
        for layer in reached.spec["layer"]
        if "fill" in layer["encoding"]
    ]
    assert names == [["expected number (95%)", "the number itself (95%)"]] * 2


def test_a_case_of_the_network_is_drawn_by_itself(document):
    case = document.cases[1].case
    figure = draw_network(document.network, THEME, case)
    assert figure.title.startswith(case)
    assert column(figure.panels[1], "expected")[0] == pytest.approx(document.network.of(case)[0].reached)
    assert draw_network(document.network, THEME, "nobody") is None


def test_several_thresholds_have_words_of_their_own(document):
    years = tuple(one.model_copy(update={"threshold": None}) for one in document.network.years)
    figure = draw_network(document.network.model_copy(update={"years": years}), THEME)
    assert "at the threshold of their component" in figure.panels[1].title
    assert figure.panels[1].alt.startswith("At the threshold of their component, or worse")


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
    assert [list_stamps(figure) for figure in draw_all(document)] == [[]] * 6


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
