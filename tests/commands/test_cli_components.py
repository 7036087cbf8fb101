"""A state's and a prefecture's export, at the first try: check, transitions, compare and forecast without an option."""

import json

import polars as pl
import pytest
from test_cli import call

from component_tables import by_component, prefecture_export, state_export

pytestmark = pytest.mark.usefixtures("few_simulations", "cheap_reports")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    state_export(300, 4, seed=4).write_csv(folder / "state.csv")
    prefecture_export(120).write_csv(folder / "prefecture.csv")
    by_component(prefecture_export(120)).write_csv(folder / "components.csv")
    return folder


@pytest.fixture
def run(folder):
    made = folder / "run"
    if not made.exists():
        quick = ("--methods", "zscore", "--resamples", "0", "--no-report")
        done = call("compare", folder / "state.csv", *quick, "--out", made)
        assert done.exit_code == 0, done.output
    return made


@pytest.mark.parametrize("name", ["state", "prefecture", "components"])
def test_an_export_is_checked_and_paired_without_an_option(folder, name, tmp_path):
    table = folder / f"{name}.csv"
    checked = call("check", table, "--json")
    assert checked.exit_code == 0, checked.output
    done = call("transitions", table, "--json", "--out", tmp_path / "t.csv")
    found = json.loads(done.stdout)
    rows = pl.read_csv(table, infer_schema=False).height
    assert found["records"] == rows * (1 if name == "components" else 3)
    assert sum(line["count"] for line in found["audit"]) == found["records"]
    assert len({move["case"] for move in found["moves"]}) == 3


def test_compare_gives_a_model_for_each_component(run):
    chosen = pl.read_csv(run / "selection.csv")
    assert chosen["chosen"].to_list() == ["zscore"] * 3
    assert pl.read_csv(run / "trials.csv", infer_schema_length=None)["certified"].all()


def test_a_forecast_reads_the_table_and_a_list_as_the_run_did(run, folder, tmp_path):
    quick = ("--years", 2, "--intervals", "none", "--out")
    done = call("forecast", run, folder / "state.csv", *quick, tmp_path / "table")
    assert done.exit_code == 0, done.output
    members = pl.read_csv(tmp_path / "table" / "members.csv", infer_schema_length=None)
    assert members["case"].n_unique() == 3
    last = pl.read_csv(folder / "state.csv", infer_schema=False).group_by("Structure Number").last()
    ages = 2020 - last["Year Built"].cast(pl.Int64)
    listed = last.drop("Inspection Date").with_columns(age=ages, traffic_mean="ADT")
    listed.write_csv(tmp_path / "list.csv")
    done = call("forecast", run, tmp_path / "list.csv", *quick, tmp_path / "list")
    assert done.exit_code == 0, done.output
    states = [
        pl.read_csv(tmp_path / name / "members.csv", infer_schema_length=None)
        .sort("bridge_id", "case")
        .select("bridge_id", "case", "state")
        for name in ("table", "list")
    ]
    assert states[0].equals(states[1])
    again = call("forecast", run, folder / "state.csv", "--best", 9, "--worst", 0, *quick, tmp_path / "again")
    assert again.exit_code == 0, again.output
    other = call("forecast", run, folder / "state.csv", "--best", 0, "--worst", 9, *quick, tmp_path / "other")
    assert (other.exit_code, "would mean something else" in other.output) == (2, True)


def test_components_are_named_by_an_option(folder, tmp_path):
    asked = ("--component", "Roadway=Deck Condition", "--component", "Piers=Substructure Condition")
    done = call(
        "transitions", folder / "state.csv", *asked, "--keep-ratings", "--json", "--out", tmp_path / "t.csv"
    )
    found = json.loads(done.stdout)
    assert {move["case"] for move in found["moves"]} == {"Roadway", "Piers"}
    assert found["labels"] == list("9876543210")
    long = folder / "components.csv"
    files = []
    for option in ("--component", "--case"):
        files.append(tmp_path / f"{option}.csv")
        call("transitions", long, option, "部材", "--out", files[-1])
    assert files[0].read_bytes() == files[1].read_bytes()
    refused = call("check", folder / "state.csv", "--component", "Deck=")
    assert (refused.exit_code, "is not like Deck=DECK_COND" in refused.output) == (2, True)


def test_the_note_on_merged_ratings_names_an_option_that_works(folder, tmp_path):
    done = call("transitions", folder / "state.csv", "--out", tmp_path / "t.csv")
    said = " ".join(done.output.split())
    assert "ratings 4, 3, 2, 1 and 0 are read as one" in said
    assert "--keep-ratings keeps them apart" in said
    kept = call("transitions", folder / "state.csv", "--keep-ratings", "--json", "--out", tmp_path / "t.csv")
    assert json.loads(kept.stdout)["labels"] == list("9876543210")
