"""Sentences about the future: how long it takes, what advances, what changes would do, and what is not to be used."""

import math

import pytest
from page_cases import CHOSEN, NONE, SHOWN, uncertify

from rekka.core.ratings import Ratings
from rekka.report.markdown import render_markdown
from rekka.report.overview import list_components, make_overview
from rekka.report.statements import Wording, explain_effect, explain_forecast, explain_network, list_warnings
from rekka.report.tables.catalog import list_tables
from rekka.report.text import LANGUAGES, load_words

TELL = Wording(load_words("en"))


def told_of(document, case, tell=TELL):
    return explain_forecast(document, next(one for one in document.cases if one.case == case), tell)


def plain(lines):
    return [line.striptags() for line in lines]


def forecast_of(document, case=CHOSEN):
    return next(one.forecast for one in document.models if one.case == case)


def change(document, **values):
    """The document with another forecast of the chosen case."""
    models = tuple(
        one.model_copy(update={"forecast": one.forecast.model_copy(update=values)}) if one.case == CHOSEN else one
        for one in document.models
    )
    return document.model_copy(update={"models": models})


def effect(document, **values):
    return forecast_of(document).effects[0].model_copy(update=values)


# Cases

NUMBERS = Ratings.of(None, 5)


def test_a_chosen_case_says_how_long_it_takes_and_for_whom(document):
    told, found = told_of(document, CHOSEN), forecast_of(document)
    first, new, lines = found.passages[0], found.new.passage, plain(told_of(document, CHOSEN).lines)
    worse = f"rating {'abcde'[found.threshold - 1]} or worse"
    assert told.state == "chosen"
    assert told.warning is None
    assert told.label == f"{new.median:.1f} years from new to {worse} (median)"
    assert lines[0].startswith(
        f"Half of new members, otherwise typical, are at {worse} after {new.median:.1f} years"
    )
    model = next(one for one in document.models if one.case == CHOSEN)
    age = model.typical["age_at_inspection_1"]
    assert lines[1].startswith(
        f"Half of typical members (age {age:.1f} years) that are at rating a now are at {worse} {first.median:.1f} "
        "years later"
    )
    assert all("(95% interval of the parameters: " in line for line in lines[:2])
    assert lines[2].endswith("with a probability of 95%.")
    assert "Advancing by the year: age." in lines[3]
    assert lines[4] == (
        "The fit takes ages at the start of each interval, as in the paper: the forecast reduces them by half the "
        f"mean interval, {found.lag:.1f} years."
    )
    year = found.extrapolated_from
    assert lines[5].startswith(
        f"From year {year:.0f} on the training rows have no such member (their largest: age"
    )
    assert len(told.effects) == len(found.effects)


def test_a_default_that_was_turned_down_is_not_to_be_forecast_with(document):
    told = told_of(document, SHOWN)
    assert told.state == "other"
    assert told.label == "Not chosen, not to be used"
    assert told.warning.startswith("Not chosen: not to be forecast with.")


def test_a_case_without_a_fit_says_that_there_is_nothing(document):
    told = told_of(document, NONE)
    assert (told.state, told.label, told.effects) == ("nothing", "no forecast", ())
    assert "no model was chosen" in told.lines[0]
    gone = tuple(one.model_copy(update={"forecast": None}) for one in document.models)
    assert "too large or too small" in told_of(document.model_copy(update={"models": gone}), CHOSEN).lines[0]


def test_where_in_an_interval_the_fit_takes_ages_is_told(document):
    middle = plain(told_of(change(document, clock="middle", lag=0.0), CHOSEN).lines)
    assert "The fit takes ages at the middle of each interval." in middle
    unknown = plain(told_of(change(document, lag=None), CHOSEN).lines)
    assert any("does not know its mean interval" in line for line in unknown)


def test_without_an_age_nothing_advances(document):
    still = change(document, advancing=(), seen={}, outside=(False,) * 31, new=None)
    lines = plain(told_of(still, CHOSEN).lines)
    assert lines[0].startswith("Half of typical members are at rating")
    assert lines[2:] == ["No covariate is an age, so nothing advances with the years."]


def test_a_model_that_is_not_certified_is_told_before_all_else(document):
    bare = uncertify(document)
    told = told_of(bare, CHOSEN)
    assert told.label == "Not certified"
    assert told.warning.startswith("NOT CERTIFIED: the fit with")
    assert "by this fit" in told.lines[0]
    assert not any("interval of the parameters" in line for line in told.lines)
    warning = list_warnings(bare, TELL)[0].striptags()
    assert warning.startswith(f"NOT CERTIFIED: {CHOSEN}, {SHOWN}.")
    assert list_warnings(document, TELL) == ()


# Effects


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"years_after": 20.0, "difference": -5.0, "difference_low": -8.0, "difference_high": -2.0},
            "10 more years of age: half reach rating 4 or worse after 20.0 years instead of 25.0, 5.0 years sooner "
            "(95%: 2.0 to 8.0).",
        ),
        (
            {"years_after": 30.0, "difference": 5.0, "difference_low": 2.0, "difference_high": math.inf},
            "10 more years of age: half reach rating 4 or worse after 30.0 years instead of 25.0, 5.0 years later "
            "(95%: 2.0 to >200).",
        ),
        (
            {"years_after": 26.0, "difference": 1.0, "difference_low": -2.0, "difference_high": 4.0},
            "10 more years of age: no clear effect. Half reach rating 4 or worse after 26.0 years instead of 25.0, a "
            "difference of +1.0 (95%: −2.0 to +4.0).",
        ),
        (
            {"years_after": 20.0, "difference": -5.0, "difference_low": None, "difference_high": None},
            "10 more years of age: half reach rating 4 or worse after 20.0 years instead of 25.0.",
        ),
        (
            {"years_after": math.inf, "difference": math.inf},
            "10 more years of age: no effect can be given, because half of the members may never reach rating 4 or worse.",
        ),
    ],
)
def test_an_effect_is_sooner_later_unclear_or_not_known(document, values, sentence):
    one = effect(document, years_before=25.0, **values)
    found = forecast_of(document).model_copy(update={"threshold": 4})
    assert explain_effect(one, found, NUMBERS, TELL).striptags() == sentence


@pytest.mark.parametrize(
    ("values", "begins"),
    [
        ({"covariate": "traffic_mean", "amount": 2.0, "times": True}, "Twice the traffic: "),
        ({"covariate": "bridge_length", "amount": -50.0}, "50 fewer metres of length: "),
        ({"covariate": "age", "amount": 10.0}, "10 more years of age: "),
        ({"covariate": "<b>salt", "amount": 5.0}, "<bdi>&lt;b&gt;salt</bdi> +5: "),
        ({"covariate": "traffic_mean", "amount": 1.5, "times": True}, "<bdi>traffic</bdi> ×1.5: "),
    ],
)
def test_a_change_has_an_engineers_words_or_the_name_that_data_gave(document, values, begins):
    assert explain_effect(effect(document, **values), forecast_of(document), NUMBERS, TELL).startswith(begins)


# The network


def test_the_network_says_who_from_when_and_how_many(document):
    network, lines = document.network, plain(explain_network(document, TELL).lines)
    assert lines[0].startswith(f"{network.members} members of this study are forecast")
    assert lines[0].endswith("rekka forecast RUN INVENTORY")
    assert lines[1].startswith(f"Years are counted from {network.base}")
    first, last = network.of(None)[0], network.of(None)[-1]
    assert lines[2] == f"At rating {'abcde'[first.threshold - 1]} or worse: {first.reached:.0f} at the beginning."
    assert lines[4].startswith(f"After 30 years: {last.reached:.0f} expected (95% interval of the parameters: ")
    assert f"will be {last.predicted_low:.0f} to {last.predicted_high:.0f}" in lines[4]
    assert "Forecasts assume that nothing is repaired." in lines


def test_an_inventory_is_named_and_one_without_dates_told(document):
    values = {"kind": "inventory", "name": "<bridges>.csv", "base": None, "outside": 0, "aside": ()}
    given = document.model_copy(update={"network": document.network.model_copy(update=values)})
    found = explain_network(given, TELL).lines
    assert "<bdi>&lt;bridges&gt;.csv</bdi>" in found[0]
    assert "has no dates" in found[1]
    assert not any("not forecast" in line or "beyond" in line for line in found)


def test_without_a_network_the_command_is_told(document):
    found = explain_network(document.model_copy(update={"network": None}), TELL)
    assert plain(found.lines) == [
        "No inventory was forecast. The command that does it: rekka forecast RUN INVENTORY"
    ]


def test_doubtful_models_of_a_network_are_told_first(document):
    network = uncertify(document).network.model_copy(update={"unchosen": (SHOWN,)})
    found = explain_network(document.model_copy(update={"network": network}), TELL)
    assert found.warnings[0].startswith("NOT CERTIFIED: ")
    assert f"No model was chosen for {SHOWN}." in found.warnings[1].striptags()
    assert plain(found.lines)[4] == f"After 30 years: {network.of(None)[-1].reached:.0f} expected."


def test_several_thresholds_are_told(document):
    years = tuple(one.model_copy(update={"threshold": None}) for one in document.network.years)
    network = document.network.model_copy(update={"years": years})
    lines = explain_network(document.model_copy(update={"network": network}), TELL).lines
    assert lines[2].startswith("At the threshold of their component (")


# In any language, and as Markdown


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_sentence_has_its_places_filled(document, lang):
    tell = Wording(load_words(lang))
    for one in (document, uncertify(document)):
        told = [told_of(one, case.case, tell) for case in one.cases]
        network = explain_network(one, tell)
        sentences = [line for part in told for line in (*part.lines, *part.effects, part.label)]
        assert not any("{" in line or "None" in line for line in (*sentences, *network.lines, *network.warnings))


def test_markdown_says_the_same(document):
    text = render_markdown(document, list_tables(document, TELL.words), (), TELL.words)
    section = text.split("## Forecast\n")[1].split("\n## ")[0]
    assert "## The network\n" in text.partition("## Forecast\n")[0]
    assert "Half of new members, otherwise typical, are at rating" in section
    assert "> Not chosen: not to be forecast with." in section
    assert "### Years until a rating" in section
    bare = render_markdown(uncertify(document), (), (), TELL.words)
    assert f"> NOT CERTIFIED: {CHOSEN}, {SHOWN}." in bare


def test_years_from_new_are_those_of_age_0_on_card_and_in_the_table(document):
    found = forecast_of(document)
    new, typical = found.new.passage, found.passages[0]
    assert new.median != pytest.approx(typical.median, rel=0.05)
    (row,) = [one for one in list_components(document, TELL.words) if one.case == CHOSEN]
    assert row.passage == new
    (card,) = [one for one in make_overview(document, TELL.words, CHOSEN).cards if one.key == "new"]
    assert card.value == f"{new.median:.0f} years"
    assert card.detail == f"median of a new member ({new.median_low:.0f} to {new.median_high:.0f})"
    unknown = change(document, new=None)  # of a report before these years were known
    assert [one.passage for one in list_components(unknown, TELL.words) if one.case == CHOSEN] == [None]
