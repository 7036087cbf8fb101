"""Mappings written to a file, columns that are to have no role, and scales turned round or shortened."""

import polars as pl
import pytest
import xlsxwriter

import rekka
from rekka.core.errors import InputError
from rekka.data.mapping import State, format_mapping, load_mapping
from rekka.data.tables import list_sheets
from rekka.data.values import merge_with_next, turn_round

MAPPINGS = (
    {},
    {"columns": {"bridge": "ID", "covariates": ["a\"b", "橋長"], "components": {"Deck": "=1+1"}}},
    {"state": {"labels": [["9", 8], "7", "6"], "missing": ["N", 0]}, "dates": {"inspection": ["dmy", "mdy"]}},
    {"state": {"bands": [85, 75.5, 60]}, "wide": {"state": "{year}"}, "rules": {"max_gap": 8.0}},
    {"join": [{"file": "traffic.csv", "columns": {"bridge": "No"}, "sheet": "Tabelle 1"}], "table": {"decimal": ","}},
)  # fmt: skip


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_a_mapping_that_was_written_is_read_back(mapping, tmp_path):
    file = tmp_path / "mapping.toml"
    file.write_text(format_mapping(mapping), encoding="utf-8")
    expected = load_mapping(mapping)
    if expected.join:
        expected = load_mapping(
            {**mapping, "join": [{**mapping["join"][0], "file": str(tmp_path / "traffic.csv")}]}
        )
    assert load_mapping(file) == expected


@pytest.fixture
def table():
    return pl.DataFrame({
        "bridge_id": ["1", "1", "2", "2"],
        "date": ["2010", "2015"] * 2,
        "rating": [1, 2, 1, 1],
        "condition": [5.5, 4.1, 5.0, 4.7],
        "traffic": ["many", "few", "few", "few"],
    })  # fmt: skip


def test_a_column_that_is_ignored_has_no_role(table):
    with pytest.raises(InputError, match="traffic holds text"):
        rekka.read_panel(table, columns={"state": "rating"})
    panel = rekka.read_panel(table, columns={"ignore": ["Traffic", "condition"]})
    assert "traffic" not in panel.columns
    assert panel.reading.mapping["columns"]["state"] == "rating"
    assert panel.reading.mapping["columns"]["ignore"] == ["Traffic", "condition"]


def test_components_and_years_that_are_ignored_are_not_recognised():
    years = pl.DataFrame({"bridge_id": ["1", "2"], "2010": ["a", "b"], "2012": ["b", "b"], "2014": ["c", "b"]})
    panel = rekka.read_panel(years, columns={"ignore": ["2012"]})
    assert sorted(panel.visits.collect()["date"].dt.year().unique()) == [2010, 2014]
    parts = pl.DataFrame(
        {"bridge_id": ["1"] * 2, "year": [2010, 2012], "Deck rating": [1, 2], "Pier rating": [1, 3]}
    )
    panel = rekka.read_panel(parts, columns={"ignore": ["Pier rating"]})
    assert panel.visits.collect()["case"].unique().to_list() == ["Deck"]


def test_transitions_leave_out_an_ignored_covariate():
    rows = rekka.simulate_transitions(50)
    assert "traffic_mean" not in rekka.read_transitions(rows, columns={"ignore": ["traffic_mean"]}).covariates


@pytest.mark.parametrize(
    ("given", "turned"),
    [
        ({"best": 9, "worst": 0}, {"best": 0, "worst": 9}),
        ({"labels": ["a", ["b", "c"]]}, {"labels": [["b", "c"], "a"]}),
        ({"bands": [85, 60]}, {"bands": [60, 85]}),
        ({}, {"worst_first": True}),
        ({"worst_first": True}, {"worst_first": False}),
    ],
)
def test_a_scale_is_turned_round(given, turned):
    assert turn_round(State(**given)) == State(**turned)


def test_one_limit_of_an_index_cannot_be_turned():
    assert turn_round(State(bands=[60])) is None


def test_ratings_are_merged_with_the_next():
    names = ["5", "4", "3", "2", "1"]
    assert merge_with_next(State(best=5, worst=1), names, 4).labels == ["5", "4", "3", ["2", "1"]]
    assert merge_with_next(State(labels=["a", ["b", "c"], "d"]), ["a", "b/c", "d"], 1).labels == [
        ["a", "b", "c"],
        "d",
    ]
    assert merge_with_next(State(bands=[85, 75, 60]), ["A", "B", "C", "D"], 2).bands == [85, 60]
    assert merge_with_next(State(best=5, worst=1), names, 5) is None
    assert merge_with_next(State(labels=["a", "b"]), ["a", "b"], 1) is None


def test_sheets_of_a_workbook_are_listed(tmp_path, table):
    with xlsxwriter.Workbook(tmp_path / "two.xlsx") as book:
        table.write_excel(book, worksheet="Inspections")
        table.head(1).write_excel(book, worksheet="Notes")
    assert list_sheets(tmp_path / "two.xlsx") == ["Inspections", "Notes"]
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04nothing")
    assert list_sheets(tmp_path / "broken.xlsx") == list_sheets(tmp_path / "a.csv") == list_sheets(table) == []
