"""``rekka effects`` as a person meets it."""

import json
import re
from xml.etree import ElementTree

import polars as pl
import pytest
from test_cli import call

import rekka
from rekka.core.sheets import GUARD

SLOPE = "age_at_inspection_1"


def save(path, rows, covariates, **what):
    model = rekka.ExponentialHazardMarkovModel(covariates=covariates)
    model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
    path.write_text(model.to_json(**what), encoding="utf-8")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    rows = rekka.simulate_transitions(1500, n_states=5, seed=3)
    save(folder / "pier.json", rows, [SLOPE, "traffic_mean"], case="[Pier]", labels=list("abcde"))
    save(folder / "deck.json", rekka.simulate_transitions(500, n_states=3), [SLOPE], case="Deck")
    return folder


@pytest.fixture(scope="module")
def written(models, tmp_path_factory):
    """Both models, with tables and pictures."""
    folder = tmp_path_factory.mktemp("out") / "effects"
    return call("effects", models, "--intervals", "delta", "--out", folder), folder


def test_sentences_then_figures(models):
    done = call("effects", models / "pier.json")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("[Pier]: years from rating a to d or worse\nAt age_at_inspection_1 = ")
    assert re.search(
        r"Ten more years of age shorten the mean time from rating a to d or worse from [\d.]+ to [\d.]+ "
        r"years, by [\d.]+ years \(95 %: [\d.]+ to [\d.]+\)\.",
        done.stdout,
    )
    assert "before and after each change; 95 % intervals (normal)" in done.stdout
    assert "Hazard ratio of leaving each rating for the same change" in done.stdout
    assert "Nothing was written; --out FOLDER says where." in done.stdout


def test_changes_as_given(models):
    options = ["--change", f"{SLOPE}=-20", "--change", "traffic_mean=x0.5", "--start", 2, "--threshold", 3]
    done = call("effects", models / "pier.json", *options, "--at", f"{SLOPE}=50", "--json")
    found = json.loads(done.stdout)
    assert (found["format"], found["version"]) == ("rekka-effects", 1)
    case = found["cases"][0]
    assert (case["start"], case["threshold"], case["case"]) == (2, 3, "[Pier]")
    first, second = case["effects"]
    assert (first["change"], first["before"], first["after"]) == ("minus 20", 50.0, 30.0)
    assert first["told"].startswith("20 fewer years of age lengthen the mean time from rating b to c or worse")
    assert second["told"].startswith("Half the traffic ")


def test_advancing_age_is_another_course(models):
    fixed, aging = (
        json.loads(call("effects", models / "deck.json", "--age", age, "--intervals", "delta", "--json").stdout)
        for age in ("fixed", "advances")
    )
    years = [one["cases"][0]["effects"][0]["mean_years_before"] for one in (fixed, aging)]
    assert years[1] < years[0]
    moment = "fitted at the middle of each interval"
    assert aging["cases"][0]["course"] == f"age_at_inspection_1 advancing by the year ({moment})"
    assert fixed["cases"][0]["course"] == f"covariates stay as they are (age_at_inspection_1: {moment})"


def test_tables(written):
    done, folder = written
    assert done.exit_code == 0, done.stderr
    effects, profiles = (
        pl.read_csv(folder / name, schema_overrides={"label": pl.String})
        for name in ("effects.csv", "profiles.csv")
    )
    assert effects.select("case", "covariate").rows() == [
        ("Deck", SLOPE), ("[Pier]", SLOPE), ("[Pier]", "traffic_mean"),
    ]  # fmt: skip
    assert effects["hazard_ratio_4"].is_null().to_list() == [True, False, False]
    assert effects["certified"].all()
    assert not effects["change"].str.contains(GUARD, literal=True).any()
    assert effects["sentence"].str.contains("the mean time from rating ").all()
    assert effects.select("start_label", "threshold_label").rows() == [("1", "3"), ("a", "d"), ("a", "d")]
    assert set(profiles["covariate"]) == {SLOPE, "traffic_mean"}
    assert profiles["outside"].any()
    assert not profiles["outside"].all()


def test_pictures(written):
    done, folder = written
    pictures = sorted(file.name for file in folder.glob("*.svg"))
    assert pictures == [
        "profiles-deck-age_at_inspection_1.svg",
        "profiles-pier-age_at_inspection_1.svg",
        "profiles-pier-traffic_mean.svg",
    ]
    for name in pictures:
        assert name in done.stdout
        text = " ".join(ElementTree.parse(folder / name).getroot().itertext())
        assert "hazard of leaving the rating (per year)" in text
        assert "95 % intervals (delta)" in text
        assert "Values: the central 95 % of the training rows. Ticks: one for each percent of them." in text
    assert "traffic_mean (vehicles/day)" in (folder / pictures[2]).read_text()


def test_an_uncertified_model_says_so_everywhere(tmp_path):
    file = tmp_path / "bad.json"
    save(file, rekka.simulate_transitions(24, n_states=5), [SLOPE, "bridge_length", "traffic_mean"], case="Pier")
    done = call("effects", file, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.split("\n")[1].startswith("NOT CERTIFIED: ")
    assert not pl.read_csv(tmp_path / "out" / "effects.csv")["certified"].any()
    assert not pl.read_csv(tmp_path / "out" / "profiles.csv")["certified"].any()
    picture = tmp_path / "out" / "profiles-bridge_length.svg"
    assert "NOT CERTIFIED: " in " ".join(ElementTree.parse(picture).getroot().itertext())


def test_a_model_without_covariates(tmp_path):
    file = tmp_path / "plain.json"
    save(file, rekka.simulate_transitions(300, n_states=3), [], case="Deck")
    done = call("effects", file, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "The model has no covariates, so there is nothing to change." in done.stdout
    assert "--out FOLDER" not in done.stdout
    assert "Nothing was written: no model has covariates." in done.stdout


def test_an_old_file_has_effects_but_no_profiles(models, tmp_path):
    old = json.loads((models / "deck.json").read_text()) | {"version": 2}
    for name in ("survey", "bootstrap", "case", "labels"):
        old.pop(name)
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old))
    done = call("effects", file, "--at", f"{SLOPE}=40", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "No profiles: this model file, of an earlier version" in done.stdout
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["effects.csv"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--threshold", "9"], 2, "BadOption: --threshold is '9'. The ratings are a, b, c, d, e, best first."),
        (["--start", "4"], 2, "BadOption: --start is '4'; a rating from a to c is needed"),
        (["--change", "age"], 2, "'age' is not like age_at_inspection_1=+10"),
        (["--change", f"{SLOPE}=10"], 2, "BadOption: changes gives '10' for age_at_inspection_1; +10 or -10"),
        (["--change", "load=+1"], 2, "BadOption: change names load, which is not a covariate here;"),
        (["--change", f"{SLOPE}=x1"], 2, "BadOption: x1 leaves age_at_inspection_1 at "),
        (["--intervals", "bootstrap"], 2, "rekka fit --bootstrap 200"),
        (["--draws", "5"], 2, "BadOption: --draws is 5;"),
        (["--only", "Deck"], 2, "BadOption: There is no component 'Deck'."),
    ],
)
def test_wrong_options_end_in_a_sentence(models, options, code, message):
    done = call("effects", models / "pier.json", *options)
    assert done.exit_code == code
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
