"""``rekka checks`` as a person meets it."""

import json
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest
from test_cli import call

import rekka
from rekka.study.study import Study


def compare(rows, parts, out, **guard):
    part = pl.Series([parts[row % len(parts)] for row in range(len(rows))])
    frame = rows.with_columns(case=pl.lit("[Pier]"), part=part)
    rekka.compare(frame, methods=["max", "zscore"], guard={"resamples": 2, **guard}, out=out)
    return out


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A run with nothing to say against it but the golden rows."""
    rows = rekka.simulate_transitions(900, n_states=3).drop("bridge_area")
    return compare(
        rows, ["train"] * 6 + ["validation"] * 2 + ["golden"] * 2, tmp_path_factory.mktemp("run") / "a b"
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A run of so few rows that no scaling can be chosen, and no simpler models tried."""
    rows = rekka.simulate_transitions(24, n_states=5)
    return compare(rows, ["train"] * 2 + ["golden"], tmp_path_factory.mktemp("run") / "tiny", ladder=False)


def fake_calibration(monkeypatch, p_value, *causes):
    asked = []

    def calibration(self, case, preset=None, method=None, *, rows="train", replicates=None):
        asked.append((case, preset, rows))
        return SimpleNamespace(goodness=SimpleNamespace(p_value=p_value), causes=causes)

    monkeypatch.setattr(Study, "calibration", calibration)
    return asked


def test_a_sound_study(sound):
    done = call("checks", sound, "--quick")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("What to look at: 0 issues, ")
    assert "passed: R302, R402, R404," in done.stdout
    assert "not applicable: R705" in done.stdout
    assert done.stdout.rstrip().endswith("--all shows these in full.")
    assert call("checks", sound, "--quick", "--strict").exit_code == 0


def test_an_issue_is_told_with_its_remedy(tiny):
    done = call("checks", tiny, "--quick")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("What to look at: 1 issue, ")
    assert "R701 issue  A component for which nothing was chosen" in done.stdout
    assert 'Nothing was chosen for [Pier] (max, zscore dropped at "a certified maximum").' in done.stdout
    assert "-> Leave covariates out, merge ratings" in done.stdout
    assert call("checks", tiny, "--quick", "--strict").exit_code == 1


def test_all_of_them(sound):
    done = call("checks", sound, "--quick", "--all")
    assert "R601 passed  A selected method on the probability floor" in done.stdout
    assert "R705 not applicable  Times within noise" in done.stdout
    assert "Evaluations are weighed, which every run repeats." in done.stdout
    assert "--all" not in done.stdout


def test_for_machines(tiny):
    done = call("checks", tiny, "--quick", "--json", "--strict")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["format"], found["version"]) == ("rekka-checks", 1)
    assert found["counts"]["issue"] == 1
    assert sum(found["counts"].values()) == len(found["findings"])
    first = found["findings"][0]
    assert (first["code"], first["verdict"], first["cases"]) == ("R701", "issue", ["[Pier]"])
    assert first.keys() == {"code", "title", "verdict", "explanation", "remedy", "cases", "methods", "values"}


def test_a_test_of_fit_that_a_run_does_not_have_is_made(sound, tiny, monkeypatch):
    asked = fake_calibration(monkeypatch, 0.005, "too few left state 2")
    assert call("checks", sound, "--strict").exit_code == 0
    assert asked == []  # the test was made with the choice
    study = rekka.load_study(sound)
    before = replace(study, choices=tuple(one.model_copy(update={"fit_test": None}) for one in study.choices))
    with monkeypatch.context() as patch:  # a run of an earlier version
        patch.setattr(rekka, "load_study", lambda folder: before)
        done = call("checks", sound, "--strict")
        assert asked == [("[Pier]", "exact", "train")]
        assert "R611 issue  A chosen model that does not describe its training rows" in done.stdout
        assert "[Pier] (p 0.005): too few left rating 2." in done.stdout
        assert done.exit_code == 1
        assert "not applicable: R611, R705" in call("checks", sound, "--quick").stdout
        patch.setattr("rekka.evaluation.calibration.MOST_TESTED", 0)
        assert "R611, R705" in call("checks", sound).stdout
        assert len(asked) == 1  # of many components only on request
        assert "R611 issue" in call("checks", sound, "--test-fit").stdout
    assert call("checks", tiny).exit_code == 0
    assert len(asked) == 2  # nothing was chosen there


def test_a_folder_that_is_no_run(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing"):
        done = call("checks", folder)
        assert done.exit_code == 1
        assert done.stderr.startswith("RunFolderError: ")
        assert "Traceback" not in done.stderr


def test_help_tells_it_from_the_data_doctor():
    told = " ".join(call("checks", "--help").stdout.split())
    assert "rekka check, without the s, checks a table before anything is fitted" in told
    assert "rekka checks run --json --strict" in told


def test_check_without_the_s_says_which_command_looks_at_a_run(sound):
    done = call("check", sound)
    assert done.exit_code == 2
    assert f"a b is a run folder, not a table. To look it over: rekka checks {sound}" in done.stderr
