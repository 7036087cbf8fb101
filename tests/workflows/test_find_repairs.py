"""``find_repairs`` and ``rekka repairs``: tables of several kinds, files, and what cannot be judged."""

import json

import polars as pl
import pytest
from benchmarks.simulated_repairs import draw_repairs
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.core.errors import BadOption, InputError, MissingColumns
from rekka.workflows.repairs import NOTHING, PAIRED, REPAIR, VERDICTS

ORDER = ["case", "bridge_id", "date_1", "date_2", "row_1", "row_2", "rating_1", "rating_2", "improved_by", "repair",
         "small_improvement", "error", "verdict"]  # fmt: skip


def call(*args):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(arg) for arg in args])


def name(table: pl.DataFrame, case: str) -> pl.DataFrame:
    return table.with_columns(component=pl.lit(case))


@pytest.fixture(scope="module")
def girder():
    return draw_repairs(bridges=100).table


@pytest.fixture(scope="module")
def decaying():
    """A component whose ratings never improve."""
    states = [
        ("B1", "2000-06-01", "a"),
        ("B1", "2002-06-01", "b"),
        ("B2", "2000-06-01", "a"),
        ("B2", "2004-06-01", "a"),
    ]
    return pl.DataFrame(states, schema=["bridge_id", "date", "state"], orient="row")


@pytest.fixture(scope="module")
def three(girder, decaying):
    """A component to be judged, one without an improvement, and one of a single improvement."""
    lone = pl.DataFrame(
        [("B1", "2000-06-01", "c"), ("B1", "2002-06-01", "a")], schema=decaying.columns, orient="row"
    )
    return pl.concat([name(girder, "Girder"), name(decaying, "Deck"), name(lone, "Pier")])


@pytest.fixture(scope="module")
def folder(three, girder, tmp_path_factory):
    place = tmp_path_factory.mktemp("repairs")
    three.write_csv(place / "three.csv")
    girder.write_csv(place / "girder.csv")
    return place


@pytest.fixture(scope="module")
def found(three):
    return rekka.find_repairs(three)


@pytest.fixture(scope="module")
def pairs(girder):
    return rekka.read_transitions(girder, rules={"upward": "keep_all"}).frame


def test_components_that_cannot_be_judged_have_a_sentence_and_the_others_go_on(found):
    deck, judged, pier = found.components
    assert (deck.headline, deck.reason) == (f"Deck: {NOTHING}.", None)
    assert judged.headline.startswith(f"Girder: {judged.improvements} improvements without a record: ")
    assert judged.verdicts[REPAIR] > 10
    assert pier.headline == "Pier: 1 improvement without a record, not judged: " + found.reasons["Pier"]
    assert "every pair of visits improves by 2 ratings or more" in found.reasons["Pier"]
    assert found.table["case"].unique().to_list() == ["Girder"]
    assert found.table.columns == ORDER
    assert set(found.table["verdict"]) <= set(VERDICTS)
    assert found.counts["case"].to_list() == ["Deck", "Girder", "Pier"]


def test_a_table_without_improvements_gives_an_empty_table(decaying):
    found = rekka.find_repairs(decaying)
    assert found.table.is_empty()
    assert found.table.columns == ORDER
    assert (found.components[0].improvements, found.reasons) == (0, {})


def test_rules_for_upward_moves_do_not_count(girder, found):
    again = rekka.find_repairs(girder, {"rules": {"upward": "error"}})
    assert again.components[0].verdicts == found.components[1].verdicts


def test_transitions_without_dates_have_no_trend(pairs, found):
    known = [name for name in pairs.columns if not name.startswith(("date", "visit"))]
    bare = rekka.find_repairs(pairs.select(known))
    assert "trend" not in bare.components[0].elements
    assert bare.components[0].improvements == found.components[1].improvements
    assert bare.table.columns == [column for column in ORDER if not column.startswith("date")]
    assert abs(bare.components[0].verdicts[REPAIR] - found.components[1].verdicts[REPAIR]) < 15


def test_transitions_without_large_improvements_are_judged_with_a_note(girder):
    kept = rekka.find_repairs(rekka.read_transitions(girder, rules={"upward": "keep"}).frame)
    assert kept.table["improved_by"].max() == 1
    assert PAIRED in kept.notes


def test_transitions_that_do_not_say_what_belongs_together_are_refused(pairs):
    with pytest.raises(MissingColumns, match=r"no column history.*--upward keep_all"):
        rekka.find_repairs(pairs.drop("history"))


def test_recorded_repairs_are_not_listed_and_end_a_history(girder, found, tmp_path):
    repairs = found.table.filter(verdict=REPAIR, improved_by=4).select("bridge_id", repair_date="date_2")
    assert len(repairs)
    repairs.write_csv(tmp_path / "repairs.csv")
    again = rekka.find_repairs(girder, {"join": [{"file": str(tmp_path / "repairs.csv")}]})
    listed = again.table.join(repairs, left_on=["bridge_id", "date_2"], right_on=["bridge_id", "repair_date"])
    assert listed.is_empty()
    assert again.components[0].improvements <= found.components[1].improvements - len(repairs)


def test_what_is_asked_for_wrongly_is_refused(three, girder, tmp_path):
    with pytest.raises(BadOption, match="Girdr"):
        rekka.find_repairs(three, only=["Girdr"])
    with pytest.raises(BadOption, match=r"ending is '.txt'"):
        rekka.find_repairs(girder, out=tmp_path / "repairs.txt")
    with pytest.raises(InputError, match="No two visits make a transition"):
        rekka.find_repairs(girder.unique("bridge_id"))


def test_the_command_prints_counts_first_and_the_surest_repairs(folder, found):
    done = call("repairs", folder / "three.csv", "--only", "Girder", "--rows", 3, "--out", folder / "out.csv")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == found.components[1].headline
    assert lines[1].startswith("3 of ")
    assert lines[1].endswith(" probable repairs without a record, the surest first")
    assert lines[-1] == f"written: {folder / 'out.csv'}"
    assert any("--repair COLUMN" in line for line in lines)
    table = pl.read_csv(folder / "out.csv")
    assert table.columns == ORDER
    assert table["repair"].to_list() == pytest.approx(found.table["repair"].to_list(), abs=1e-9)


def test_the_command_says_what_it_cannot_judge_and_ends_with_1(folder, found):
    done = call("repairs", folder / "three.csv", "--json")
    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert [one["case"] for one in said["components"]] == ["Deck", "Girder", "Pier"]
    assert said["components"][1]["verdicts"] == found.components[1].verdicts
    assert len(said["table"]) == len(found.table)
    shown = call("repairs", folder / "three.csv", "--only", "Pier")
    assert shown.exit_code == 1
    assert "Pier: 1 improvement without a record, not judged: " in shown.stdout
