"""``rekka matrix`` as a person meets it."""

import json
import re

import polars as pl
import pytest
from test_cli import call

import rekka

SLOPE = "age_at_inspection_1"


def save(path, rows, covariates, **what):
    model = rekka.ExponentialHazardMarkovModel(covariates=covariates)
    model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
    path.write_text(model.to_json(**what), encoding="utf-8")
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two cases, of which one has a name that is markup and a covariate more."""
    folder = tmp_path_factory.mktemp("models")
    rows = rekka.simulate_transitions(600, n_states=4, seed=3)
    save(folder / "pier.json", rows, [SLOPE, "traffic_mean"], case="[Pier]", labels=["a", "b", "c", "d"])
    save(folder / "deck.json", rekka.simulate_transitions(500, n_states=3), [SLOPE], case="Deck")
    return folder


@pytest.fixture(scope="module")
def uncertified(tmp_path_factory):
    file = tmp_path_factory.mktemp("bad") / "bad.json"
    rows = rekka.simulate_transitions(24, n_states=5)
    save(file, rows, [SLOPE, "bridge_length", "bridge_area", "traffic_mean"], case="Pier")
    return file


def read(file):
    return rekka.ExponentialHazardMarkovModel.from_json(file.read_text(encoding="utf-8"))


def test_a_model_file(models):
    done = call("matrix", models / "pier.json", "--years", "1,5")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("[Pier]\nAt age_at_inspection_1 = ")
    assert "(typical)" in done.stdout
    assert (
        "Over the years: covariates stay as they are (age_at_inspection_1: fitted at the middle of each interval)."
    ) in done.stdout
    assert "Probability of each rating after 1 year\n" in done.stdout
    assert "Probability of each rating after 5 years\n" in done.stdout
    assert re.search(r"from / to +a +b +c +d", done.stdout)
    assert done.stdout.rstrip().endswith("Nothing was written; --out says where.")
    assert "NOT CERTIFIED" not in done.stdout


def test_the_numbers_are_those_of_the_model(models):
    done = call("matrix", models / "pier.json", "--at", f"{SLOPE}=40,traffic_mean=8000", "--years", 3, "--json")
    found = json.loads(done.stdout)
    assert (found["format"], found["version"], found["layout"]) == ("rekka-matrix", 1, "square")
    one = found["cases"][0]["matrices"][0]
    start = 40.0 - 1.5  # the age at the first visit, where that of the model is the middle's
    row = pl.DataFrame({"state_1": [1], "interval_years": [3.0], SLOPE: [start], "traffic_mean": [8000.0]})
    assert one["probability"][0] == pytest.approx(read(models / "pier.json").predict_proba(row)[0], abs=1e-12)
    assert one["covariates"] == {SLOPE: 40.0, "traffic_mean": 8000.0}
    assert one["low"][0][0] < one["probability"][0][0] < one["high"][0][0]
    assert found["cases"][0]["certified"]
    assert len(found["cases"][0]["rows"]) == 4


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("long", ["95 % intervals (delta)", "probability", "low"]),
        ("percent", ["Percent that stay, and that are so many ratings worse, after 1 year", "2 worse"]),
        ("median", ["Median years in each rating before it is left, shape 1; 95 % intervals (delta)"]),
    ],
)
def test_layouts(models, layout, words):
    done = call("matrix", models / "pier.json", "--layout", layout)
    assert done.exit_code == 0, done.stderr
    for text in words:
        assert text in done.stdout


def test_medians_of_an_age_that_advances_say_for_which_age(models):
    done = call("matrix", models / "deck.json", "--layout", "median", "--age", "advances")
    assert "at age_at_inspection_1 as given, as if it stayed" in done.stdout


def test_a_folder_of_models_into_one_file_or_many(models, tmp_path):
    file = tmp_path / "new" / "all.csv"
    done = call("matrix", models, "--layout", "long", "--years", "1,2", "--out", file)
    assert done.exit_code == 0, done.stderr
    table = pl.read_csv(file)
    assert table.group_by("case", "years").len().sort("case", "years").rows() == [
        ("Deck", 1.0, 6), ("Deck", 2.0, 6), ("[Pier]", 1.0, 10), ("[Pier]", 2.0, 10),
    ]  # fmt: skip
    assert table["certified"].all()
    assert f"written: {file}" in done.stdout
    done = call("matrix", models, "--out", tmp_path / "many", "--json")
    names = [f"{tmp_path / 'many'}/{name}-square.csv" for name in ("deck", "pier")]
    assert json.loads(done.stdout)["files"] == names
    assert pl.read_csv(names[0]).columns[-3:] == ["to_3", "certified", "covariates"]
    assert "to_4" in pl.read_csv(names[1]).columns


def test_only_one_case(models):
    done = call("matrix", models, "--only", "Deck")
    assert "Deck" in done.stdout
    assert "[Pier]" not in done.stdout


def test_a_covariate_that_one_of_the_models_has(models):
    done = call("matrix", models, "--at", "traffic_mean=5000")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("traffic_mean = 5,000 (given)") == 1


def test_values_outside_the_training_rows_are_told(models):
    done = call("matrix", models / "deck.json", "--at", f"{SLOPE}=500")
    assert "What to know" in done.stdout
    assert "age_at_inspection_1 = 500 lies outside the training rows" in done.stdout


def test_a_narrow_terminal_gets_rows(models, monkeypatch):
    from typer.testing import CliRunner

    from rekka.cli import app

    done = CliRunner(env={"COLUMNS": "36"}).invoke(app, ["matrix", str(models / "pier.json")])
    assert "from" in done.stdout
    assert "…" not in done.stdout


def test_an_uncertified_model_says_so_everywhere(uncertified, tmp_path):
    file = tmp_path / "bad.csv"
    done = call("matrix", uncertified, "--layout", "long", "--out", file)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.split("\n")[1].startswith("NOT CERTIFIED: ")
    assert "No intervals: the fit is not a certified maximum" in done.stdout
    table = pl.read_csv(file)
    assert not table["certified"].any()
    assert table["low"].is_null().all()
    found = json.loads(call("matrix", uncertified, "--json").stdout)["cases"][0]
    assert not found["certified"]
    assert found["reasons"]
    assert found["matrices"][0]["low"][0] == [None] * 5


def test_a_run_folder(tmp_path):
    rows = rekka.simulate_transitions(900, n_states=3).drop("bridge_area")
    parts = ["train"] * 6 + ["validation"] * 2 + ["golden"] * 2
    frame = rows.with_columns(
        case=pl.lit("Pier"), part=pl.Series([parts[row % len(parts)] for row in range(len(rows))])
    )
    rekka.compare(frame, methods=["max", "zscore"], guard={"resamples": 2}, out=tmp_path / "run")
    done = call("matrix", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Pier\n")
    assert "the models of a study are fitted to its training rows" in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--years", "soon"], 2, "'soon' is not a list such as 1,2,5"),
        (["--years", "0"], 2, "BadOption: years holds 0; a matrix needs a time above 0."),
        (["--years", "1,500"], 2, "BadOption: years goes to 500; at most 200"),
        (["--layout", "cube"], 2, "BadOption: --layout is 'cube'; it can be square, long, percent, median."),
        (["--layout", "percent", "--decimals", "9"], 2, "BadOption: --decimals is 9;"),
        (["--at", "age"], 2, "'age' is not like age_at_inspection_1=40"),
        (["--at", "age_at_inspection_1=old"], 2, "BadOption: age_at_inspection_1 is 'old'; a number is needed."),
        (["--at", "traffic_man=3"], 2, "BadOption: at names traffic_man,"),
        (["--at", "traffic_mean=nan"], 1, "BadValues: {'traffic_mean': nan} holds a value"),
        (["--age", "old"], 2, "BadOption: --age is 'old'; it can be advances, held, fixed."),
        (["--intervals", "wide"], 2, "BadOption: --intervals is 'wide';"),
        (["--intervals", "bootstrap"], 2, "rekka fit --bootstrap 200"),
        (["--level", "95"], 2, "BadOption: --level is 95.0;"),
        (["--only", "Peer"], 2, "BadOption: There is no component 'Peer'."),
        (["--out", "matrix.xlsx"], 2, "BadOption: matrix.xlsx is not a .csv file;"),
    ],
)
def test_wrong_options_end_in_a_sentence(models, options, code, message):
    done = call("matrix", models / "pier.json", *options)
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_model_that_is_not_there(tmp_path):
    done = call("matrix", tmp_path / "nowhere.json")
    assert done.exit_code == 1
    assert "There is no run folder or model file nowhere.json" in done.stderr


def test_an_old_file_needs_every_covariate(models, tmp_path):
    old = json.loads((models / "deck.json").read_text()) | {"version": 2}
    for name in ("survey", "bootstrap", "case", "labels"):
        old.pop(name)
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old))
    done = call("matrix", file)
    assert done.exit_code == 1
    assert "does not know what is typical" in done.stderr
    done = call("matrix", file, "--at", f"{SLOPE}=40")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("old.json\nAt age_at_inspection_1 = 40 (given).")
