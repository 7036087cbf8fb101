"""Tables with a column of ratings for each component: recognition, records, audit, options."""

import polars as pl
import pytest

import rekka
from component_tables import ENGLISH, JAPANESE, by_component, prefecture_export, state_export
from rekka.core.errors import BadOption, MissingColumns
from rekka.data.components import _match

ROWS = {"Bridge ID": ["1", "1", "2", "2"], "Inspection Date": ["2015-05-01", "2017-05-01"] * 2}


def read(**columns):
    return rekka.read_panel(pl.DataFrame(ROWS | columns))


@pytest.fixture(scope="module")
def export():
    return state_export(60, 3)


def test_each_cell_is_a_record_and_the_audit_adds_up(export):
    found = rekka.read_transitions(export, state={"merge": False})
    assert found.audit.records == 3 * len(export)
    cells = export.unpivot(ENGLISH)["value"]
    assert found.audit.count("not inspected: the state is blank") == (cells == "N").sum() > 0
    assert sorted(found.frame["case"].unique()) == ["Deck", "Substructure", "Superstructure"]
    first = found.frame.row(0, named=True)
    row = export.row(first["row_1"], named=True)
    assert (row["Structure Number"], row[first["column_1"]]) == (first["bridge_id"], str(10 - first["state_1"]))
    listed = "Deck (Deck Condition), Superstructure (Superstructure Condition)"
    assert any(f"a column of ratings for each of 3 components: {listed}" in note for note in found.notes)


def test_columns_are_the_records_of_a_table_that_was_reshaped_by_hand(export):
    names = dict(zip(ENGLISH, ("Deck", "Superstructure", "Substructure"), strict=True))
    others = [name for name in export.columns if name not in ENGLISH]
    long = export.unpivot(ENGLISH, index=others, variable_name="component", value_name="rating")
    long = long.with_columns(pl.col("component").replace(names))
    keys = ["bridge_id", "case", "date_1"]
    ours, theirs = (rekka.read_transitions(table, state={"merge": False}).frame for table in (export, long))
    assert (
        ours.select(theirs.drop("row_1", "row_2").columns)
        .sort(keys)
        .equals(theirs.drop("row_1", "row_2").sort(keys))
    )


def test_japanese_exports_need_no_option():
    wide = prefecture_export(30)
    ours, theirs = rekka.read_transitions(wide), rekka.read_transitions(by_component(wide))
    assert sorted(ours.frame["case"].unique()) == sorted(JAPANESE)
    assert ours.frame.sort("bridge_id", "case", "date_1")["state_2"].equals(
        theirs.frame.sort("bridge_id", "case", "date_1")["state_2"]
    )
    assert ours.covariates == theirs.covariates == ("age_at_inspection_1", "bridge_length")
    assert len(ours.scale.names) == 4


@pytest.mark.parametrize(
    ("column", "component", "sure"),
    [
        ("DECK_COND_058", "Deck", True), ("SUPERSTRUCTURE_COND_059", "Superstructure", True),
        ("SUBSTRUCTURE_COND_060", "Substructure", True), ("CULVERT_COND_062", "Culvert", True),
        ("Deck Condition", "Deck", True), ("Deck Rating", "Deck", True), ("DKRATING", "Deck", True),
        ("Item 59 - Superstructure", "Superstructure", True), ("SUB_COND", "Substructure", True),
        ("Substructure Condition Rating", "Substructure", True), ("Superstructure", "Superstructure", False),
        ("Bearings", "Bearing", False), ("床版", "床版", False), ("床版健全度", "床版", True),
        ("健全度（主桁）", "主桁", True), ("橋脚の判定区分", "橋脚", True), ("伸縮装置", "伸縮装置", False),
    ],
)  # fmt: skip
def test_usual_names_are_known(column, component, sure):
    found = _match(column)
    assert (found.component, found.sure) == (component, sure)


@pytest.mark.parametrize(
    "column",
    ["Deck Width", "Deck Type", "Deck Geometry Rating", "Super", "Sub", "Subway", "床版面積", "Condition"],
)
def test_other_names_are_not(column):
    assert _match(column) is None


def test_a_name_alone_needs_a_second_and_ratings():
    with pytest.raises(MissingColumns, match="--component Deck=COLUMN"):
        read(Deck=["8", "7", "8", "8"])
    both = read(Deck=["8", "7", "8", "8"], Superstructure=["7", "7", "6", "6"])
    assert both.records == 8
    with pytest.raises(MissingColumns):  # what the two are made of is no rating
        read(Deck=["Concrete"] * 4, Superstructure=["Steel"] * 4)
    one = read(**{"Deck Condition": ["8", "7", "8", "8"], "Deck": ["Concrete"] * 4, "Piers": ["2"] * 4})
    assert one.reading.mapping["columns"]["components"] == {"Deck": "Deck Condition"}


def test_a_column_for_the_state_comes_first():
    panel = read(Deck=["8", "7", "8", "8"], Superstructure=["7"] * 4, Rating=["1", "2", "1", "1"])
    assert (panel.records, panel.reading.mapping["columns"]["state"]) == (4, "Rating")


def test_two_columns_of_one_component_are_refused():
    with pytest.raises(
        BadOption, match=r"2 columns that can be the rating of Deck: Deck Condition, Deck Rating\."
    ):
        read(**{"Deck Condition": ["8", "7", "8", "8"], "Deck Rating": ["8", "7", "8", "8"]})


def test_numbers_up_to_five_are_not_ratings_of_the_inventory():
    low = read(**{"Deck Condition": ["1", "2", "5", "5"]})
    high = read(**{"Deck Condition": ["8", "7", "6", "6"]})
    piers = read(**{"Pier Condition": ["1", "2", "6", "6"]})
    assert (low.scale.names[0], high.scale.names[0], piers.scale.names[0]) == ("1", "9", "1")


def test_columns_are_given_by_name(tmp_path):
    table = pl.DataFrame(ROWS | {"A": ["8", "7", "8", "8"], "B": ["7", "7", "N", "6"]})
    panel = rekka.read_panel(table, columns={"components": {"Deck": "A", "Pier": "b"}})
    assert panel.scale.names[0] == "9"  # N says so
    visits = panel.visits.collect()
    assert visits.filter(case="Pier")["problem"].to_list() == [0, 0, 3, 0]
    assert visits["column"].to_list() == ["A", "B"] * 4
    (tmp_path / "m.toml").write_text("[columns]\ncomponents = {Deck = 'A', Pier = 'B'}\n")
    assert rekka.read_panel(table, tmp_path / "m.toml").visits.collect().equals(visits)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"components": {"Deck": "A"}, "state": "B"}, "components are columns of ratings, and state is B"),
        ({"components": {"Deck": "A", "Pier": "A"}}, "A is the column of two components"),
        ({"component": "A", "case": "B"}, "case and component name the same thing"),
    ],
)
def test_contradictions_are_refused(columns, words):
    with pytest.raises(BadOption, match=words):
        rekka.read_panel(pl.DataFrame(ROWS | {"A": ["1"] * 4, "B": ["1"] * 4}), columns=columns)


def test_an_option_overrules_the_components_of_a_mapping():
    table = pl.DataFrame(ROWS | {"A": ["1", "2", "1", "1"], "Kind": ["Deck", "Deck", "Pier", "Pier"]})
    panel = rekka.read_panel(
        table, {"columns": {"components": {"Deck": "A"}}}, columns={"state": "A", "component": "Kind"}
    )
    assert panel.visits.collect()["case"].to_list() == ["Deck", "Deck", "Pier", "Pier"]


def test_n_is_not_inspected_beside_ratings_only():
    def problems(*ratings, **state):
        panel = rekka.read_panel(pl.DataFrame(ROWS | {"rating": ratings}), state=state)
        return panel.visits.collect()["problem"].to_list()

    assert problems("8", "N", "7", "n") == [0, 3, 0, 3]
    assert problems("8", "N", "7", "0", best=9, worst=0) == [0, 3, 0, 0]
    assert problems("8", "N", "7", "0", labels=["8", "7", "0"]) == [0, 3, 0, 0]
    assert problems("a", "N", "b", "a") == [0, 4, 0, 0]
    assert problems("8", "N", "7", "7", labels=["8", "7", "N"]) == [0, 0, 0, 0]
