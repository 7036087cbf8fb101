"""What ``rekka fit`` writes for forecasts: case, labels, survey, bootstrap."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.core import files as file_names
from rekka.workflows import fit


def call(*args):
    return CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(arg) for arg in args])


def read(path):
    return rekka.ExponentialHazardMarkovModel.from_json(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def inventory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fit") / "my inventory"
    rekka.write_inventory(folder, 60, preset="plain")
    return folder


@pytest.fixture(scope="module")
def transitions(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "transitions.csv"
    rekka.simulate_transitions(300, n_states=3, seed=1).write_csv(path)
    return path


def test_models_know_their_case_and_the_names_of_its_states(inventory, tmp_path):
    out = tmp_path / "models"
    done = call("fit", inventory, "--only", "Main girder", "--only", "Pier", "--out", out)
    assert done.exit_code == 0, done.stderr
    models = {name: read(out / f"{name}.json") for name in ("main-girder", "pier")}
    assert [model.case_ for model in models.values()] == ["Main girder", "Pier"]
    assert {model.labels_ for model in models.values()} == {("a", "b", "c", "d", "e")}
    found = rekka.read_transitions(inventory)
    middle = pl.col("age_at_inspection_1") + pl.col("interval_years") / 2  # where the fit takes them
    ages = found.frame.filter(case="Pier").select(middle).to_series()
    survey = models["pier"].survey_
    assert (survey.low[0], survey.high[0]) == (ages.min(), ages.max())
    assert models["pier"].resampled_ is None
    assert "ootstrap:" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[-3] == f"written: {out} (the models), {out / 'coefficients.csv'}"
    assert lines[-1] == f"next: rekka forecast {out} '{inventory}'"


def test_transitions_have_no_names_of_states(transitions, tmp_path):
    done = call("fit", transitions, "--out", tmp_path / "one.json", "--separator", ",")
    assert done.exit_code == 0, done.stderr
    model = read(tmp_path / "one.json")
    assert (model.case_, model.labels_) == ("all", None)
    told = f"next: rekka forecast {tmp_path / 'one.json'} {transitions}"
    assert done.stdout.splitlines()[-1] == told


def test_bootstrap_is_in_the_file_and_told_in_a_line(transitions, tmp_path):
    out = tmp_path / "one.json"
    done = call("fit", transitions, "--bootstrap", 5, "--seed", 3, "--out", out)
    assert done.exit_code == 0, done.stderr
    rows = pl.read_csv(transitions)
    bridges = rows["bridge_id"].n_unique()
    assert "Bootstrap: 5 of 5 refits reached a maximum." in done.stdout.splitlines()
    told = f"bootstrap: 5 of 5 refits to {bridges} bridges drawn with replacement reached a maximum (seed 3)."
    assert told in call("show", out).stdout.splitlines()
    model = read(out)
    names = list(model.covariates_)
    plain = rekka.ExponentialHazardMarkovModel(covariates=names).fit(rows, rows["state_2"])
    theirs = plain.bootstrap(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy(), draws=5, seed=3)
    np.testing.assert_array_equal(model.resampled_.beta, theirs.resampled_.beta)
    found = json.loads(call("fit", transitions, "--bootstrap", 5, "--seed", 3, "--json").stdout)
    assert found[0]["bootstrap"] == {"asked": 5, "certified": 5, "bridges": bridges, "seed": 3}
    assert json.loads(call("fit", transitions, "--json").stdout)[0]["bootstrap"] is None


def test_few_certified_refits_are_said_to_be_few(tmp_path):
    """A state that nobody leaves: no refit has a maximum, and the model has none either."""
    table = rekka.simulate_transitions(100, n_states=3, seed=1)
    table = table.with_columns(state_1=pl.lit(1), state_2=pl.min_horizontal("state_2", 2))
    last = table[:2].with_columns(state_1=pl.lit(3), state_2=pl.lit(3))
    table = pl.concat([table, last], how="vertical_relaxed")
    table.write_csv(tmp_path / "t.csv")
    brief = call("fit", tmp_path / "t.csv", "--bootstrap", 2)
    assert "Bootstrap: fewer than half of the refits of all reached a maximum" in brief.stdout
    done = call("fit", tmp_path / "t.csv", "--bootstrap", 2, "--verbose")
    assert "bootstrap: 0 of 2 refits to" in done.stdout
    assert "Fewer than half: intervals from them ignore most resamples." in done.stdout


def test_one_bridge_has_no_bootstrap_but_a_model(transitions, tmp_path):
    table = pl.read_csv(transitions)
    alone = table.with_columns(case=pl.lit("alone"), bridge_id=pl.lit("B"))
    pl.concat([alone, table.with_columns(case=pl.lit("many")).select(alone.columns)]).write_csv(tmp_path / "t.csv")
    done = call("fit", tmp_path / "t.csv", "--bootstrap", 2, "--out", tmp_path / "models")
    assert done.exit_code == 1
    assert "alone has no bootstrap: All 300 rows are of one group; at least 2 are needed" in done.stderr
    assert read(tmp_path / "models" / "alone.json").resampled_ is None
    assert read(tmp_path / "models" / "many.json").resampled_.asked == 2


def test_where_no_case_can_be_fitted_nothing_is_written(tmp_path):
    (tmp_path / "t.csv").write_text("bridge_id,state_1,state_2,interval_years\nA,1,1,5\nB,1,1,4\n")
    done = call("fit", tmp_path / "t.csv", "--bootstrap", 2, "--out", tmp_path / "models")
    assert done.exit_code == 1
    assert "all cannot be fitted: Every row stays in rating 1" in done.stderr
    assert done.stdout.splitlines() == ["Nothing was written: no component could be fitted."]
    assert not (tmp_path / "models").exists()


def test_wrong_numbers_of_draws_are_wrong_usage(transitions):
    for option in ("--bootstrap", "--seed"):
        done = call("fit", transitions, option, "-1")
        assert done.exit_code == 2
        assert f"Invalid value for '{option}'" in done.stderr


LONG = "Bearing of the north abutment, " * 9  # 279 characters


def many(names, rows=30):
    """Transitions of many components, each with rows of its own."""
    drawn = rekka.simulate_transitions(rows * len(names), n_states=3, seed=1).drop("bridge_length", "bridge_area")
    return drawn.with_columns(case=pl.Series([name for name in names for _ in range(rows)]))


@pytest.mark.usefixtures("few_simulations")
def test_long_and_awkward_names_of_components_have_files_of_their_own(tmp_path):
    names = [LONG + "1", LONG + "2", "Pier", "PIER", "con", "AUX.", "deck.", "deck", "\u6a4b" * 200, "\U0001f309"]
    many(names).write_csv(tmp_path / "t.csv")
    done = call("fit", tmp_path / "t.csv", "--out", tmp_path / "models")
    assert done.exit_code == 0, done.stderr
    files = sorted((tmp_path / "models").glob("*.json"))
    assert sorted(read(file).case_ for file in files) == sorted(names)
    assert len({file.name.casefold() for file in files}) == len(names)
    assert all(len(file.name.encode()) <= 120 for file in files)
    stems = {file.stem for file in files}
    assert {"pier", "pier-1", "con-1", "aux-1", "deck", "deck-1", "case"} <= stems


def test_names_of_files_do_not_depend_on_each_other_where_they_need_not():
    assert file_names.name_apart([LONG, "Deck"])[0] == file_names.name_apart([LONG])[0]
    assert file_names.name_apart(["a"] * 3) == ["a", "a-1", "a-2"]
    assert file_names.name_apart(["e\u0301", "\xe9", "\xc9"]) == ["\xe9", "\xe9-1", "\xe9-2"]


@pytest.mark.usefixtures("few_simulations")
def test_many_components_are_counted_by_verdict(tmp_path):
    names = [f"component {number:02d}" for number in range(24)]
    table = many(names).drop("traffic_mean")
    stuck = table.filter(case="component 07").with_columns(state_1=pl.lit(1), state_2=pl.lit(1))
    pl.concat([table.filter(pl.col("case") != "component 07"), stuck], how="vertical_relaxed").write_csv(
        tmp_path / "t.csv"
    )
    done = call("fit", tmp_path / "t.csv")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("24 components: ")
    assert "        1  not fitted" in lines
    assert "component 07: Every row stays in rating 1" in done.stdout
    assert len(lines) < 20
    whole = call("fit", tmp_path / "t.csv", "--all")
    assert all(name in whole.stdout for name in names if name != "component 07")
    assert "component 07 cannot be fitted: " in whole.stderr
    found = json.loads(call("fit", tmp_path / "t.csv", "--json").stdout)
    assert [one["case"] for one in found] == names
    certified = sum(one.get("certificate", "").startswith("certified") for one in found)
    assert lines[0] == f"24 components: {certified} with a certified maximum."


@pytest.mark.usefixtures("few_simulations")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_table_is_scanned_once_for_all_small_components(form, tmp_path, monkeypatch):
    """The scans of the whole table do not grow with the number of components."""
    scans = []

    def record(cases):
        scans.append(len(cases))
        return one_of(cases)

    one_of = fit._is_one_of
    monkeypatch.setattr(fit, "_is_one_of", record)
    table = many([f"component {number}" for number in range(12)])
    getattr(table, f"write_{form}")(tmp_path / f"t.{form}")
    assert call("fit", tmp_path / f"t.{form}").exit_code == 0
    assert scans == [12]
    for room in ("rekka.streaming.blocks.WHOLE", "rekka.streaming.any_size.WHOLE"):
        monkeypatch.setattr(room, 100)  # three components together
    scans.clear()
    assert call("fit", tmp_path / f"t.{form}").exit_code == 0
    assert scans == [3] * 4


@pytest.fixture
def nation(tmp_path, monkeypatch):
    """A folder of Parquet files that counts as large: two cases, one of them with a constant covariate."""
    for room in ("rekka.streaming.blocks.WHOLE", "rekka.streaming.any_size.WHOLE"):
        monkeypatch.setattr(room, 100)
    folder = tmp_path / "nation"
    folder.mkdir()
    for number, case in enumerate(("Deck", "Pier")):
        rows = rekka.simulate_transitions(400, n_states=3, seed=number).with_columns(case=pl.lit(case))
        rows = rows.with_columns(bridge_area=pl.lit(5.0)) if case == "Pier" else rows
        rows.write_parquet(folder / f"part-{number}.parquet")
    return folder


def test_a_folder_larger_than_memory_is_fitted_where_it_is(nation, tmp_path, monkeypatch):
    monkeypatch.setattr("rekka.streaming.any_size.ROOM", 1e6)
    done = call("fit", nation, "--memory", "1GB", "--threads", "2", "--out", tmp_path / "models")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("400 rows, ") == 2
    assert "streamed in blocks of 16,384 rows (limit 1 GB)" in done.stderr
    for case in ("Deck", "Pier"):
        rows = pl.read_parquet(nation / "*.parquet").filter(case=case)
        model = read(tmp_path / "models" / f"{case.lower()}.json")
        theirs = rekka.ExponentialHazardMarkovModel(covariates=list(model.covariates_))
        theirs.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
        np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-10)
        np.testing.assert_allclose(model.covariance_, theirs.covariance_, rtol=1e-8, atol=1e-16)
    assert "bridge_area" not in read(tmp_path / "models" / "pier.json").covariates_


def test_very_many_rows_are_not_refitted_again_and_again(nation):
    done = call("fit", nation, "--only", "Deck", "--bootstrap", "5")
    assert done.exit_code == 1
    assert "Deck has no bootstrap: more than 100 rows are not refitted." in done.stderr


def test_a_limit_that_is_no_size_is_refused(nation):
    done = call("fit", nation, "--memory", "plenty")
    assert done.exit_code == 2
    assert "memory is 'plenty'; a size such as 1GB or 500MB is needed" in done.stderr


def test_nobody_answers_at_the_cluster(nation):
    done = call("fit", nation, "--cluster", "tcp://127.0.0.1:9")
    assert done.exit_code == 1
    assert "ClusterError" in done.stderr


def test_the_clock_can_be_chosen_and_is_said(transitions, tmp_path):
    said = {}
    for clock in ("middle", "start"):
        done = call("fit", transitions, "--clock", clock, "--out", tmp_path / f"{clock}.json", "--verbose")
        assert done.exit_code == 0, done.stderr
        (said[clock],) = (line for line in done.stdout.splitlines() if "of each interval" in line)
        assert read(tmp_path / f"{clock}.json").clock == clock
    age = "age_at_inspection_1"
    assert said["middle"] == f"{age} is taken at the middle of each interval; forecasts advance it by the year."
    lag = read(tmp_path / "start.json").clock_.mean_years / 2
    assert said["start"] == (
        f"{age} is taken at the start of each interval; forecasts advance it by the year, {lag:.3g} years behind: "
        "half the mean interval."
    )
    (told,) = json.loads(call("fit", transitions, "--clock", "start", "--json").stdout)
    assert (told["clock"]["kind"], told["clock"]["advance"]) == ("start", [age])
    other = json.loads(call("fit", transitions, "--advance", "bridge_length", "--json").stdout)
    assert other[0]["clock"]["advance"] == ["bridge_length"]
    assert "clock is 'end'; it can be middle, start, running." in call("fit", transitions, "--clock", "end").stderr


@pytest.mark.usefixtures("few_simulations")
def test_the_answer_comes_first(inventory, tmp_path):
    out = tmp_path / "models"
    asked = ["fit", str(inventory), "--only", "Main girder", "--only", "Pier", "--out", str(out)]
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, asked)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 25
    rows = rekka.read_transitions(inventory).frame.filter(pl.col("case").is_in(["Main girder", "Pier"]))
    assert " ".join(lines[:2]).startswith(f"2 components fitted to {len(rows):,} transitions: 2 certified")
    for file in sorted(out.glob("*.json")):
        model = read(file)
        years = model.years_to_reach("d", start="a", intervals="none", quantiles=())["median"].item()
        (line,) = (line for line in lines[:10] if line.startswith(model.case_))
        assert line.split()[-7:] == [f"{years:.1f}", "10", "more", "years", "of", "age", line.split()[-1]]
    assert "More: --verbose (" in done.stdout
    assert "native units" not in done.stdout


@pytest.mark.usefixtures("few_simulations")
def test_one_component_is_told_in_sentences(transitions, tmp_path):
    out = tmp_path / "one.json"
    done = call("fit", transitions, "--out", out)
    said = " ".join(done.stdout.split())
    assert said.startswith(
        "1 component fitted to 300 transitions: a certified maximum. Half of typical members are"
    )
    assert "Strongest effect. " in said
    shown = call("show", out).stdout
    assert call("fit", transitions, "--verbose").stdout.startswith(shown.rstrip())
    assert json.loads(call("show", out, "--json").stdout)[0]["case"] == "all"
