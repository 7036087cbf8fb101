"""Tests of assumptions in ``fit_components`` and ``rekka fit``: visits are paired once more, with improvements."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

import rekka
from histories_table import make_inspections
from rekka.cli import app

TESTS = {"errors", "improvements", "frailty", "trend", "past"}


@pytest.fixture(scope="module")
def inspections():
    return make_inspections(bridges=250, errors=0.06)


@pytest.fixture(scope="module")
def fitted(inspections):
    return rekka.fit_components(inspections, test_fit=True)


def test_a_fit_of_inspections_is_tested_with_improvements(fitted, inspections):
    (one,) = fitted.components
    assert {test.name for test in one.violations} == TESTS
    errors = next(test for test in one.violations if test.name == "errors")
    assert errors.found
    kept = rekka.pair_visits(rekka.read_panel(inspections), upward="keep").frame
    assert errors.figures["share"] == pytest.approx((kept["state_2"] < kept["state_1"]).mean())
    assert "R612" in [finding.code for finding in one.findings]
    plain = one.to_dict()
    json.dumps(plain, allow_nan=False)
    assert [test["name"] for test in plain["violations"]] == [test.name for test in one.violations]
    assert plain["findings"][0]["case"] == "all"


def test_the_fit_itself_stays_as_it_is(fitted, inspections):
    untested = rekka.fit_components(inspections, test_fit=False)
    assert untested.components[0].violations == ()
    assert untested.models["all"].log_likelihood_ == fitted.models["all"].log_likelihood_


def test_of_transitions_nothing_is_said_about_improvements(fitted, inspections):
    pairs = rekka.read_transitions(inspections)
    for table in (pairs, pairs.frame):
        (one,) = rekka.fit_components(table, test_fit=True).components
        assert {test.name for test in one.violations} == TESTS - {"errors", "improvements"}
    bare = pairs.frame.select("state_1", "state_2", "interval_years")
    (one,) = rekka.fit_components(bare, test_fit=True).components
    assert not any(test.found for test in one.violations)
    assert {test.name for test in one.violations} == {"frailty"}  # each row is a bridge of its own: not tested


def test_a_fit_of_histories_is_not_tested(inspections):
    fits = rekka.fit_components(inspections, errors="adjacent")
    assert fits.components[0].violations == ()


def test_the_command_names_what_is_contradicted_and_what_to_try(inspections, tmp_path):
    inspections.write_csv(tmp_path / "inspections.csv")
    run = CliRunner(env={"COLUMNS": "300"}).invoke
    brief = run(app, ["fit", str(tmp_path / "inspections.csv")])
    assert "R612 Ratings that go there and back." in brief.stdout
    assert "Try --models auto" in brief.stdout
    done = run(app, ["fit", str(tmp_path / "inspections.csv"), "--verbose"])
    assert done.exit_code == 0, done.stderr
    assert "R612 Ratings that go there and back." in done.stdout
    assert "--errors adjacent" in done.stdout
    assert "one in 20 right models has a finding by chance" in done.stdout
    without = run(app, ["fit", str(tmp_path / "inspections.csv"), "--no-test-fit", "--verbose"])
    assert "assumptions" not in without.stdout
    (told,) = json.loads(run(app, ["fit", str(tmp_path / "inspections.csv"), "--json"]).stdout)
    assert told["findings"][0]["code"].startswith("R6")


def test_a_summary_counts_the_components_of_each_finding(inspections, tmp_path, monkeypatch):
    monkeypatch.setattr("rekka.commands.fit.MANY_CASES", 0)
    inspections.write_csv(tmp_path / "inspections.csv")
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["fit", str(tmp_path / "inspections.csv")])
    assert "R612 Ratings that go there and back: 1 component." in done.stdout


def test_a_warning_of_the_reader_is_given_once(inspections, tmp_path):
    blank = pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.lit("Pier"))
    inspections.with_columns(case=blank).write_csv(tmp_path / "inspections.csv")
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["fit", str(tmp_path / "inspections.csv")])
    assert done.stderr.count("excluded") == 1, done.stderr
