"""The network of a report: the study's own members as last seen, or the forecast of an inventory in the run folder."""

import json
from dataclasses import replace

import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core.errors import DamagedFile
from rekka.core.language import find_said
from rekka.fleet.document import load_forecast
from rekka.report import networks, report
from rekka.report.document import Document
from rekka.report.networks import INVENTORY, OTHER_MODELS, STUDY, WHY_NOT, Found, find_network, forecast_study
from rekka.report.statements import Wording, explain_network
from rekka.report.summarize import HORIZON, summarize
from rekka.report.text import load_words


@pytest.fixture(scope="module")
def rows():
    """Two cases whose members have one transition each, and one that no fit suits."""
    drawn = draw_rows().vstack(draw_rows(("Slope",), n=20, seed=3))
    return drawn.with_columns(member=pl.format("M-{}", pl.int_range(pl.len())))


@pytest.fixture(scope="module")
def run(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("network") / "run"
    rekka.compare(rows, methods=["zscore"], guard={"resamples": 2, "ladder": False}, out=folder)
    return folder


@pytest.fixture(scope="module")
def study(run):
    return rekka.load_study(run)


@pytest.fixture(scope="module")
def network(study):
    return find_network(study).network


@pytest.fixture(scope="module")
def forecast(study):
    return forecast_study(study)[0].model_dump_json()


@pytest.fixture
def kept(run, forecast):
    """The forecast of the study, laid into the run folder as rekka forecast does, for one test."""
    file = run / "forecast" / "forecast.json"
    file.parent.mkdir()
    file.write_text(forecast, encoding="utf-8")
    yield file
    file.unlink()
    file.parent.rmdir()


def test_members_are_counted_by_the_state_in_which_their_last_transition_ended(network, rows):
    assert (network.kind, network.base, network.horizon) == (STUDY, None, HORIZON)
    assert network.members == 240
    for case in ("Pier", "Deck slab"):
        first = network.of(case)[0]
        ends = rows.filter(case=case)["state_2"]
        assert first.expected == pytest.approx([float((ends == state).sum()) for state in range(1, 5)])
        assert first.reached == first.expected[3]
    assert network.there == sum(first.expected[3] for first in (network.of(None)[0],))


def test_all_cases_are_the_sum_of_each(network):
    for year, together in enumerate(network.of(None)):
        cases = [network.of(case)[year] for case in ("Pier", "Deck slab")]
        assert together.year == year
        assert together.reached == pytest.approx(sum(one.reached for one in cases))
        assert sum(together.expected) == pytest.approx(network.members)
        assert together.threshold == 4


def test_both_intervals_hold_the_expected_number_and_the_wider_has_chance_in_it(network):
    last = network.of(None)[-1]
    assert last.predicted_low <= last.low < last.reached < last.high <= last.predicted_high
    assert last.predicted_high - last.predicted_low > last.high - last.low
    assert network.intervals
    assert network.certified


def test_a_case_without_a_choice_is_set_aside_with_its_reason(network):
    aside = [one for one in network.aside if one.kind == "set aside"]
    assert [(one.count, one.what) for one in aside] == [(20, "members")]
    assert "Slope" in aside[0].reason
    assert network.of("Slope") == ()


def test_the_greatest_risk_comes_first_and_nobody_who_is_there_already(network):
    assert [one.rank for one in network.risks] == list(range(1, 21))
    years = [one.mean for one in network.risks]
    assert years == sorted(years)
    assert network.soon == 5
    assert all(0 < one.reached <= 1 for one in network.risks)
    assert all(one.state < one.threshold == 4 for one in network.risks)


def test_the_forecast_in_the_run_folder_is_taken_if_it_is_of_these_models(study, kept, network):
    found = find_network(study).network
    assert found.kind == INVENTORY
    assert found.years == network.years
    assert find_network(study, make=False).network == found
    assert load_forecast(kept).risks[0].rank == found.risks[0].rank


@pytest.mark.parametrize("said", [None, True])
def test_the_study_says_which_models_were_not_chosen_whatever_the_forecast_says(study, kept, said):
    """Forecasts of rekka 0.7 have no ``chosen``."""
    found = json.loads(kept.read_text(encoding="utf-8"))
    for part in (*found["models"], *found["network"], *found["risks"]):
        part.pop("chosen")
        part |= {} if said is None else {"chosen": said}
    kept.write_text(json.dumps(found), encoding="utf-8")
    choices = tuple(
        one.model_copy(update={"chosen": None}) if one.case == "Pier" else one for one in study.choices
    )
    network = find_network(replace(study, choices=choices)).network
    assert (network.kind, network.unchosen) == (INVENTORY, ("Pier",))
    assert find_network(study).network.unchosen == ()


def test_one_that_was_made_with_other_models_is_left_out(study, kept, network):
    text = kept.read_text(encoding="utf-8")
    for model in load_forecast(kept).models:
        text = text.replace(model.sha256, "0" * 64)
    kept.write_text(text, encoding="utf-8")
    found = find_network(study).network
    assert (found.kind, found.years) == (STUDY, network.years)
    assert found.notes == (*network.notes, OTHER_MODELS)
    assert find_network(study, make=False) == Found(None, OTHER_MODELS)


def test_one_that_cannot_be_read_is_told(study, kept):
    kept.write_text(json.dumps({"format": "rekka-forecast", "version": 0}), encoding="utf-8")
    with pytest.raises(DamagedFile, match="Make it again with rekka forecast"):
        find_network(study)


def test_members_whose_last_transition_is_not_known_are_not_forecast_and_the_report_says_why(monkeypatch):
    """Several rows of a bridge, and neither a day nor a number of the visit."""
    study = rekka.compare(draw_rows(("Pier",)), methods=["zscore"], guard={"resamples": 0, "ladder": False})
    assert study.choices[0].chosen
    found = find_network(study)
    assert found.network is None
    assert found.why.startswith(f"{WHY_NOT}: ")
    assert "which transition is the last" in found.why
    document = summarize(study, no_network=found.why)
    assert Document.from_json(document.to_json()).no_network == found.why
    told = explain_network(document, Wording(load_words("en")))
    assert told.notes == (found.why,)
    assert "No inventory was forecast" in told.lines[0]
    monkeypatch.setattr(report, "summarize", lambda study, no_network, **_: no_network)
    monkeypatch.setattr(rekka.Study, "calibrations", lambda *_: None)
    assert study.report().document == found.why


def test_nothing_chosen_is_nothing_to_forecast_with(rows):
    study = rekka.compare(rows.filter(case="Slope"), methods=["zscore"], guard={"resamples": 0, "ladder": False})
    assert find_network(study) == Found(None)


def test_one_case_alone_is_all_cases(rows):
    study = rekka.compare(rows.filter(case="Pier"), methods=["zscore"], guard={"resamples": 0, "ladder": False})
    found = find_network(study).network
    alone, together = found.of("Pier"), found.of(None)
    assert [one.model_copy(update={"case": None}) for one in alone] == list(together)


def test_quick_makes_no_network_but_shows_the_one_that_is_there(study, kept, monkeypatch):
    monkeypatch.setattr(report, "summarize", lambda study, network, **_: network)
    assert study.report(calibrate=False).document.kind == INVENTORY
    monkeypatch.setattr(networks, "FOLDER", "elsewhere")
    assert study.report(calibrate=False).document is None


def test_members_at_the_threshold_come_worst_rating_first_and_the_others_soonest_first():
    details = pl.DataFrame({
        "bridge_id": ["A", "B", "C", "D", "E", "F"],
        "there": [True, True, False, False, True, False],
        "state": [4, 5, 3, 2, 5, 3],
        "outside": [False] * 6,
        "median_years": [0.0, 0.0, 2.0, 1.0, 0.0, None],
        "soon": [1.0, 0.9, 0.8, 0.9, 1.0, 0.1],
    })  # fmt: skip
    rows = networks.order_members(details.with_columns(pl.col("state").cast(pl.UInt8)))
    assert rows["bridge_id"].to_list() == ["E", "B", "A", "D", "C", "F"]


def test_members_with_a_value_far_from_all_others_are_apart_and_say_so():
    details = pl.DataFrame({
        "bridge_id": ["A", "B", "C", "D", "E"],
        "there": [False, False, False, False, True],
        "state": [1, 1, 2, 1, 4],
        "outside": [False, False, True, False, False],
        "median_years": [1.0, 2.0, 3.0, None, 0.0],
        "soon": [0.9, 0.8, 0.7, 0.0, 1.0],
        "value of traffic_mean": [200_000.0, 9_000.0, 3_000.0, 10.0, 200_000.0],
        "ratio of traffic_mean": [2_300.0, 9.9, 1.0, 0.05, None],
        "value of Material": ["steel", "timber", "steel", "steel", "timber"],
        "ratio of Material": [1.0, 20.0, 1.0, 1.0, 20.0],
        "remarks": [["bridge_area is missing"], [], None, None, []],
    })  # fmt: skip
    rows = networks.order_members(details)
    tabs = dict(zip(rows["bridge_id"], rows["tab"], strict=True))
    apart, following, there = networks.APART, networks.NEXT, networks.THERE
    assert tabs == {"A": apart, "B": following, "C": apart, "D": following, "E": there}
    told = networks._remark_far(details)["remarks"].to_list()
    alone = "traffic_mean 200,000 alone makes it 2,300 times as fast as a typical member: check it"
    assert told == [["bridge_area is missing", alone], [], None, None, []]
    for lang in ("en", "ja"):
        words = load_words(lang)
        said = words.format(find_said(alone))
        assert "2,300" in said
        assert ("traffic" in said) == (lang == "en")
