"""How a table was read is kept with runs and models, and later tables are read in the same way or refused."""

import json
import shutil

import polars as pl
import pytest
from test_cli import call

import rekka
from rekka.data.reading import TableReading
from rekka.model.serial import PLAIN_VERSION
from rekka.study.models import load_models

INDEX = {"a": 95, "b": 80, "c": 72, "d": 65, "e": 40}
OPTIONS = ("--bridge", "No", "--state", "index", "--date", "Day", "--bands", "85,75,70,60", "--covariate", "salt")
QUICK = ("--years", 3, "--intervals", "none", "--verbose", "--out")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table by an index with names of its own, a file to be joined, models and a run made of them."""
    folder = tmp_path_factory.mktemp("reading")
    drawn = rekka.simulate_inventory(40, preset="plain", seed=3)
    frame = drawn.inspections.filter(pl.col("case").is_in(["Pier", "Bearing"]))
    frame = frame.rename({"bridge_id": "No", "state": "index", "date": "Day"})
    index = pl.col("index").replace_strict(INDEX, return_dtype=pl.Int64)
    salt = pl.col("No").hash(1) % 7 + 1.0
    frame.with_columns(index=index, salt=salt).write_csv(folder / "table.csv")
    drawn.inventory.write_csv(folder / "inventory.csv")
    given = (
        folder / "table.csv",
        *OPTIONS,
        "--join",
        folder / "inventory.csv",
        "--use",
        "salt,age_at_inspection_1",
    )
    assert call("fit", *given, "--no-test-fit", "--out", folder / "models").exit_code == 0
    options = ("--methods", "zscore", "--resamples", 0, "--no-report", "--no-confirm", "--partition", "bridge")
    done = call("compare", *given, "--out", folder / "run", *options)
    assert done.exit_code == 0, done.output
    return folder


def totals(out):
    return json.loads((out / "forecast.json").read_text(encoding="utf-8"))["network"]


def changed(folder, tmp_path, **columns):
    pl.read_csv(folder / "table.csv").with_columns(**columns).write_csv(tmp_path / "other.csv")
    return tmp_path / "other.csv"


@pytest.mark.parametrize("models", ["run", "models", "models/pier.json"])
class TestLater:
    def test_a_table_is_read_as_the_models_was_without_being_told(self, models, folder, tmp_path):
        source, only = folder / models, ("--only", "Pier")
        told = call("forecast", source, folder / "table.csv", *OPTIONS, "--join", folder / "inventory.csv", *only,
                    *QUICK, tmp_path / "told")  # fmt: skip
        alone = call("forecast", source, folder / "table.csv", *only, *QUICK, tmp_path / "alone")
        assert (told.exit_code, alone.exit_code) == (0, 0), told.output + alone.output
        assert totals(tmp_path / "told") == totals(tmp_path / "alone")
        found = json.loads((tmp_path / "alone" / "forecast.json").read_text(encoding="utf-8"))
        name = source.name
        assert f"table.csv: read as {name} was, `index` with --bands 85,75,70,60" in found["understood"]

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("--bands", "80,70"), "--bands 80,70"),
            (("--bands", "60,70,75,85"), "--bands 60,70,75,85"),
            (("--worst-first",), "--worst-first"),
            (("--best", 1, "--worst", 9), "--best 1 --worst 9"),
            (("--labels", "good,bad"), "--labels good,bad"),
        ],
    )
    def test_another_scale_is_refused_with_the_difference(self, options, told, models, folder, tmp_path):
        done = call("forecast", folder / models, folder / "table.csv", *options, *QUICK, tmp_path / "out")
        assert done.exit_code == 2
        name = (folder / models).name
        assert f"{name} read `index` with --bands 85,75,70,60; here {told} was given." in done.stderr

    def test_a_column_that_is_not_there_is_named(self, models, folder, tmp_path):
        name = (folder / models).name
        for column, role, option in (("index", "state", "state"), ("No", "bridge", "bridge"),
                                     ("salt", "covariate", "covariate")):  # fmt: skip
            table = tmp_path / "other.csv"
            pl.read_csv(folder / "table.csv").rename({column: f"{column}x"}).write_csv(table)
            done = call("forecast", folder / models, table, *QUICK, tmp_path / "out")
            assert done.exit_code == 1
            assert f"other.csv has no column {column}, from which {name} read the {role}." in done.stderr
            assert f"Did you mean {column}x?" in done.stderr
            assert f"(--{option} COLUMN)" in done.stderr
        renamed = pl.read_csv(folder / "table.csv").rename({"index": "BCI"})
        renamed.write_csv(tmp_path / "other.csv")
        out = tmp_path / "out"
        assert (
            call("forecast", folder / models, tmp_path / "other.csv", "--state", "BCI", *QUICK, out).exit_code == 0
        )
        assert call("forecast", folder / models, folder / "table.csv", *QUICK, tmp_path / "same").exit_code == 0
        assert totals(out) == totals(tmp_path / "same")

    def test_a_list_of_members_is_on_the_same_scale(self, models, folder, tmp_path):
        rows = pl.DataFrame({
            "bridge": ["A", "B", "C"], "case": ["Pier"] * 3, "rating": [86, 73, 12], "salt": [1.0, 2.0, 3.0],
            "age": [10.0, 20.0, 30.0],
        })  # fmt: skip
        rows.write_csv(tmp_path / "list.csv")
        done = call("forecast", folder / models, tmp_path / "list.csv", *QUICK, tmp_path / "out")
        assert done.exit_code == 0, done.output
        assert pl.read_csv(tmp_path / "out" / "members.csv").sort("bridge_id")["state"].to_list() == [1, 3, 5]


def test_a_table_of_one_component_needs_no_column_for_it(folder, tmp_path):
    piers = pl.read_csv(folder / "table.csv").filter(case="Pier").drop("case", "visit")
    piers.write_csv(tmp_path / "piers.csv")
    done = call("forecast", folder / "models", tmp_path / "piers.csv", "--only", "Pier", *QUICK, tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "models read the case from case, which is not here" in " ".join(done.stdout.split())
    refused = call("forecast", folder / "models", tmp_path / "piers.csv", *QUICK, tmp_path / "no")
    assert "The inventory has no column for the component, and models has 2 models" in refused.stderr


def test_a_joined_file_that_is_gone_is_named(folder, tmp_path):
    shutil.copytree(folder / "models", tmp_path / "models")
    done = call("forecast", tmp_path / "models", folder / "table.csv", *QUICK, tmp_path / "out")
    assert done.exit_code == 1
    assert "models read its table together with inventory.csv, which is not where it was." in done.stderr
    assert "--join inventory.csv" in done.stderr


def test_a_recognised_scale_from_its_worst_end_stays_where_it_was(tmp_path):
    """9 is the best by --worst-first; in a table without a 9, 8 must not become the best."""
    drawn = rekka.simulate_inventory(60, preset="plain", seed=4).inspections.filter(case="Pier")
    number = pl.col("state").replace_strict({"a": 9, "b": 8, "c": 7, "d": 6, "e": 5}, return_dtype=pl.Int64)
    table = drawn.with_columns(state=number)
    table.write_csv(tmp_path / "table.csv")
    model = tmp_path / "pier.json"
    assert call("fit", tmp_path / "table.csv", "--worst-first", "--no-test-fit", "--out", model).exit_code == 0
    table.filter(pl.col("state") < 8).write_csv(tmp_path / "later.csv")
    for more in ((), ("--worst-first",)):
        out = tmp_path / f"out{len(more)}"
        done = call("forecast", model, tmp_path / "later.csv", *more, "--allow", "R109", *QUICK, out)
        assert done.exit_code == 0, done.output
        assert pl.read_csv(out / "members.csv")["state"].min() == 3
    refused = call("forecast", model, tmp_path / "later.csv", "--best", 1, "--worst", 9, *QUICK, tmp_path / "no")
    assert "pier.json read `state` with --worst-first; here --best 1 --worst 9 was given." in refused.stderr


def test_worse_states_than_the_model_knows_are_not_taken_for_better_ones(tmp_path):
    drawn = rekka.simulate_inventory(60, preset="plain", seed=4).inspections.filter(case="Pier")
    table = drawn.filter(~pl.col("state").is_in(["e"]))
    found = rekka.read_transitions(table)
    assert found.reading.labels == ("a", "b", "c", "d")
    later = drawn.with_columns(state=pl.when(pl.col("visit") == pl.col("visit").max()).then(pl.lit("e"))
                               .otherwise("state"))  # fmt: skip
    members = rekka.read_members(later, reading=found.reading, who="run")
    assert members.scale.names == ("a", "b", "c", "d", "e")
    assert (members.frame["state"] == 5).sum() > 0
    assert any("states beyond d, the worst that run had" in note for note in members.notes)


def test_another_vocabulary_is_refused_or_said(tmp_path):
    drawn = rekka.simulate_inventory(60, preset="plain", seed=4).inspections.filter(case="Pier")
    reading = rekka.read_transitions(drawn).reading
    numbers = drawn.with_columns(
        state=pl.col("state").replace_strict(dict(zip("abcde", range(1, 6), strict=True)))
    )
    with pytest.raises(
        rekka.InputError, match="The scale is that by which run read `state` as a, b, c, d, e, best"
    ):
        rekka.read_members(numbers, reading=reading, who="run")
    members = rekka.read_members(numbers, reading=reading, who="run", state={"labels": [1, 2, 3, 4, 5]})
    assert members.frame["state"].to_list() == rekka.read_members(drawn).frame["state"].to_list()
    mixed = pl.concat([drawn[:100], numbers[100:].cast({"state": pl.String})])
    with pytest.raises(rekka.InputError, match="states are not on the scale by which run read"):
        rekka.read_members(mixed, reading=reading, who="run")


def test_models_of_transitions_say_that_states_are_taken_in_order(tmp_path):
    drawn = rekka.simulate_inventory(60, preset="plain", seed=4).inspections.filter(case="Pier")
    pairs = rekka.read_transitions(drawn)
    pairs.frame.write_parquet(tmp_path / "t.parquet")
    drawn.write_csv(tmp_path / "table.csv")
    assert call("fit", tmp_path / "t.parquet", "--no-test-fit", "--out", tmp_path / "pier.json").exit_code == 0
    assert load_models(tmp_path / "pier.json").reading.kind == "transitions"
    done = call("forecast", tmp_path / "pier.json", tmp_path / "table.csv", *QUICK, tmp_path / "out")
    told = " ".join(done.stdout.split())
    assert (
        "pier.json was fitted to transitions, whose states are numbers from 1, the best; a, b, c, d, e are" in told
    )
    reversed_ = rekka.read_members(tmp_path / "t.parquet", reading=pairs.reading, who="run")
    assert any("its states are numbers from 1, taken for a, b, c, d, e" in note for note in reversed_.notes)


def test_models_that_read_in_different_ways_are_not_mixed(folder, tmp_path):
    shutil.copy(folder / "models" / "pier.json", tmp_path / "pier.json")
    other = json.loads((folder / "models" / "bearing.json").read_text(encoding="utf-8"))
    other["reading"]["given"]["bands"] = other["reading"]["mapping"]["state"]["bands"] = [80, 70, 60, 50]
    (tmp_path / "bearing.json").write_text(json.dumps(other), encoding="utf-8")
    done = call("forecast", tmp_path, folder / "table.csv", *QUICK, tmp_path / "out")
    assert done.exit_code == 2
    assert "bearing.json and pier.json in" in done.stderr
    assert "`index` with --bands 80,70,60,50, and `index` with --bands 85,75,70,60" in done.stderr


def test_files_and_runs_that_kept_no_reading_are_read_as_before(folder, tmp_path):
    part = json.loads((folder / "models" / "pier.json").read_text(encoding="utf-8"))
    assert part["version"] == PLAIN_VERSION == 4
    del part["reading"]
    part["version"] = 3
    (tmp_path / "old.json").write_text(json.dumps(part), encoding="utf-8")
    assert load_models(tmp_path / "old.json").reading is None
    study = rekka.load_study(folder / "run")
    assert study.reading.labels == ("85 and above", "75 to 85", "70 to 75", "60 to 70", "below 60")


def test_a_reading_goes_through_json_and_has_no_absolute_paths(folder):
    for file in (folder / "models" / "pier.json", folder / "run" / "provenance.json"):
        assert str(folder) not in file.read_text(encoding="utf-8")
    reading = load_models(folder / "run").reading
    assert TableReading.model_validate_json(reading.model_dump_json()) == reading


def test_a_reading_that_does_not_know_the_states_is_not_claimed(folder):
    """A run of rekka 0.7 keeps what was given, and no more."""
    table = pl.read_csv(folder / "table.csv").rename({"No": "bridge", "Day": "date"})
    for given, claimed in (({"columns": {"bridge": "bridge"}}, False), ({"columns": {"state": "index"}}, True)):
        reading = TableReading(kind="inspections", mapping=given)
        members = rekka.read_members(table, reading=reading, who="old", columns={"state": "index"},
                                     state={"bands": [85, 75, 70, 60]})  # fmt: skip
        assert any("read as old was" in note for note in members.notes) == claimed


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """A model fitted to transitions of ratings of which 5 is the best."""
    folder = tmp_path_factory.mktemp("turned")
    drawn = rekka.simulate_inventory(60, preset="plain", seed=4).inspections.filter(case="Pier")
    number = pl.col("state").replace_strict(dict(zip("edcba", range(1, 6), strict=True)), return_dtype=pl.Int64)
    drawn.with_columns(state=number).write_csv(folder / "ratings.csv")
    pairs = folder / "pairs.csv"
    assert call("transitions", folder / "ratings.csv", "--worst-first", "--out", pairs).exit_code == 0
    assert call("fit", pairs, "--no-test-fit", "--out", folder / "model.json").exit_code == 0
    rows = {"bridge": list("ABCDE"), "case": ["Pier"] * 5, "rating": [5, 5, 4, 2, 1]}
    pl.DataFrame(rows).write_csv(folder / "list.csv")
    return folder


def test_numbers_of_a_list_that_may_be_upside_down_are_refused(turned, tmp_path):
    done = call("forecast", turned / "model.json", turned / "list.csv", *QUICK, tmp_path / "out")
    assert done.exit_code == 1
    assert "list.csv has the states 1 to 5, and does not show whether 1 or 5 is the best" in done.stderr
    assert "--best 1 --worst 5 or --best 5 --worst 1" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "note", "first"),
    [
        (("--best", 5, "--worst", 1), "5, 4, 3, 2, 1 are taken for these, in this order (5 taken as the best)", 1),
        (("--worst-first",), "(5 taken as the best)", 1),
        (("--labels", "5,4,3,2,1"), "(5 taken as the best)", 1),
        (("--best", 1, "--worst", 5), "states 1 to 5, 1 taken as the best, as in the transitions that model", 5),
    ],
)
def test_numbers_of_a_list_whose_best_is_given_are_taken_and_said(options, note, first, turned, tmp_path):
    done = call("forecast", turned / "model.json", turned / "list.csv", *options, *QUICK, tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert note in " ".join(done.stdout.split())
    members = pl.read_csv(tmp_path / "out" / "members.csv")
    assert members.filter(bridge_id="A")["state"].to_list() == [first]


def test_what_has_moves_to_judge_by_is_taken_and_said(turned, tmp_path):
    done = call("forecast", turned / "model.json", turned / "pairs.csv", *QUICK, tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "states from 1, 1 taken as the best, as in the transitions that model.json" in " ".join(
        done.stdout.split()
    )
    refused = call("forecast", turned / "model.json", turned / "ratings.csv", *QUICK, tmp_path / "no")
    assert "R109" in refused.stderr


def test_several_tables_that_are_not_the_national_inventory_are_refused(tmp_path):
    (tmp_path / "MD18.txt").write_text("STATE_CODE_001,STRUCTURE_NUMBER_008\n", encoding="utf-8")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("bridge,state\nA,1\n", encoding="utf-8")
    reading = TableReading(kind="nbi")
    for names in (("a.csv", "b.csv"), ("a.csv", "MD18.txt")):
        with pytest.raises(
            rekka.InputError, match=r"deck.json was fitted to files of the National .* and a.csv is not"
        ):
            rekka.read_members([tmp_path / name for name in names], reading=reading, who="deck.json")
