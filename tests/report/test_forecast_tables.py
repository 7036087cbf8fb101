"""Tables of the future: the document's numbers, every five years, and a note where a model is not certified."""

import math

import pytest
from page_cases import uncertify
from table_cases import column, plain_document, tables_of, texts

from rekka.report.document import Document
from rekka.report.outline import list_cases
from rekka.report.tables.catalog import list_tables
from rekka.report.tables.cells import expand
from rekka.report.tables.models import show_change
from rekka.report.text import load_words, show_years, show_years_difference

NAMES = ("network", "network_cases", "risks", "passages", "forecast", "effects", "matrices")


@pytest.fixture(scope="module")
def document():
    return plain_document()


@pytest.fixture(scope="module")
def tables(document):
    return tables_of(document)


def first(document):
    return document.models[0].forecast


def test_a_member_by_five_years(document, tables):
    table, found = tables["forecast"], first(document)
    assert column(table, "year")[:7] == [0, 5, 10, 15, 20, 25, 30]
    assert len(table.rows) == 7 * len(document.models)
    assert column(table, "expected_state")[:7] == list(found.expected[::5])
    assert column(table, "share_of_state_4")[:7] == [row[3] for row in found.probability[::5]]
    assert column(table, "outside")[:7] == list(found.outside[::5])
    last = texts(table, "predicted_states")[6]
    assert last == f"{found.predicted_low[-1]} to {found.predicted_high[-1]}"
    flat = expand(table)
    assert column(flat, "predicted_states_high")[6] == found.predicted_high[-1]
    assert column(flat, "reached_low")[6] == found.reached_low[-1]


def test_years_until_the_threshold_from_each_state(document, tables):
    table, found = tables["passages"], first(document)
    assert column(table, "state_now")[:3] == [1, 2, 3]
    assert column(table, "median_until")[:3] == [one.median for one in found.passages]
    flat = expand(table)
    assert column(flat, "member_until_high")[:3] == [one.predicted_high for one in found.passages]
    assert [one.unit for one in table.columns if one.key == "mean_until"] == ["years"]


def test_infinite_years_are_told_and_left_blank_in_files(document):
    endless = (
        first(document)
        .passages[0]
        .model_copy(update={"mean": math.inf, "mean_high": math.inf, "predicted_high": 1e30})
    )
    forecast = first(document).model_copy(update={"passages": (endless,)})
    model = document.models[0].model_copy(update={"forecast": forecast})
    table = tables_of(document.model_copy(update={"models": (model,)}))["passages"]
    assert texts(table, "mean_until")[0].startswith(">200 (")
    assert texts(table, "member_until")[0].endswith(" to >200")
    flat = expand(table)
    assert (column(flat, "mean_until"), column(flat, "mean_until_high")) == ([None], [None])
    assert column(flat, "member_until_high") == [1e30]


def test_infinite_years_survive_the_file(document):
    endless = first(document).passages[0].model_copy(update={"mean": math.inf})
    forecast = first(document).model_copy(update={"passages": (endless,)})
    model = document.models[0].model_copy(update={"forecast": forecast})
    changed = document.model_copy(update={"models": (model,)})
    assert Document.from_json(changed.to_json()).models[0].forecast.passages == (endless,)


def test_a_model_that_was_turned_down_is_in_no_summary_and_marked_elsewhere(document):
    other = document.models[0].model_copy(update={"chosen": False})
    tables = tables_of(document.model_copy(update={"models": (other, *document.models[1:])}))
    assert set(column(tables["passages"], "case")) == {document.models[1].case}
    assert set(column(tables["forecast"], "is_chosen")) == {True, False}
    assert "is_chosen" not in [one.key for one in tables["passages"].columns]


def test_matrices_have_a_row_for_each_state_now(document, tables):
    table, one = tables["matrices"], first(document).matrices[0]
    assert column(table, "period")[:8] == [1.0] * 4 + [5.0] * 4
    assert column(table, "state_now")[:4] == [1, 2, 3, 4]
    assert column(table, "to_state_2")[:4] == [one.probability[0][1], one.probability[1][1], None, None]
    rows = [[column(table, f"to_state_{k}")[place] or 0.0 for k in (1, 2, 3, 4)] for place in range(4)]
    assert [sum(row) for row in rows] == pytest.approx([1, 1, 1, 1])


def test_effects_have_the_change_and_what_it_does(document, tables):
    table, found = tables["effects"], first(document).effects
    assert column(table, "covariate")[:3] == [one.covariate for one in found]
    assert texts(table, "change")[0] == "+10"
    assert texts(table, "change")[2] == "×2"
    assert column(table, "years_difference")[:3] == [one.difference for one in found]
    assert column(expand(table), "change_kind")[:3] == ["plus", "plus", "times"]


def test_the_network_by_five_years_and_by_case(document, tables):
    table, years = tables["network"], document.network.of(None)
    assert column(table, "members_reached") == [one.reached for one in years[::5]]
    assert column(table, "members_in_state_1") == [one.expected[0] for one in years[::5]]
    assert column(expand(table), "members_predicted_low") == [one.predicted_low for one in years[::5]]
    cases = tables["network_cases"]
    assert set(column(cases, "case")) == {one.case for one in document.cases}
    assert len(cases.rows) == 7 * len(document.cases)


def test_a_horizon_that_is_no_multiple_of_five_has_its_last_year(document):
    years = tuple(one for one in document.network.years if one.year <= 12)
    network = document.network.model_copy(update={"years": years, "horizon": 12})
    table = tables_of(document.model_copy(update={"network": network}))["network"]
    assert column(table, "year") == [0, 5, 10, 12]


def test_risks_are_the_documents(document, tables):
    table = tables["risks"]
    assert column(table, "bridge") == [one.bridge for one in document.network.risks]
    assert column(table, "reached_in_5") == [one.reached for one in document.network.risks]
    assert column(table, "mean_until") == [one.mean for one in document.network.risks]
    assert [row.case for row in table.rows] == [one.case for one in document.network.risks]


def test_who_is_set_aside_is_counted(document):
    aside = document.network.aside
    assert aside
    table = tables_of(document)["set_aside"]
    assert column(table, "aside_count") == [one.count for one in aside]
    assert texts(table, "aside_kind")[-1] == "forecast, with a remark"


def test_a_model_that_is_not_certified_is_told_in_every_note_and_column(document):
    tables = tables_of(uncertify(document))
    for name in NAMES:
        assert tables[name].note.startswith("NOT CERTIFIED: "), name
        assert "In brackets" not in tables[name].note
    for name in ("forecast", "passages", "effects", "matrices", "network"):
        assert set(column(tables[name], "certified")) == {False}
    assert not any("NOT CERTIFIED" in table.note for table in tables_of(document).values())


def test_a_case_has_no_columns_for_states_that_it_does_not_have(document):
    small = first(document).model_copy(
        update={
            "probability": tuple((*row[:2], sum(row[2:])) for row in first(document).probability),
            "matrices": (),
        }
    )
    model = document.models[0].model_copy(update={"forecast": small})
    mixed = document.model_copy(update={"models": (model, *document.models[1:])})
    names = [one.case for one in document.cases]
    tables = list_tables(mixed, load_words("en"))
    own, other = list_cases(tables, (), [model.case, next(one for one in names if one != model.case)], "forecast")
    keys = [[column.key for column in one.tables[0].view.columns] for one in (own, other)]
    assert "share_of_state_4" not in keys[0]
    assert "share_of_state_4" in keys[1]
    assert own.id == "future-1"
    assert not {"case", "method", "certified"} & set(keys[0])


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (12.34, "12.3"), (200.0, "200.0"), (200.01, ">200"), (math.inf, ">200"), (0.0, "0.0")],
)
def test_years_are_told_as_far_as_they_mean_anything(value, shown):
    assert show_years(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (-3.21, "−3.2"), (4.0, "+4.0"), (-1e9, "<−200"), (math.inf, ">200")]
)
def test_differences_of_years_have_their_sign(value, shown):
    assert show_years_difference(value) == shown


def test_changes_are_written_as_an_engineer_does():
    assert show_change(10, times=False) == "+10"
    assert show_change(-0.5, times=False) == "−0.5"
    assert show_change(2000, times=True) == "×2,000"
