"""Elements of histories in a study: chosen after it, kept in its folder, used by forecasts of the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import rekka
from histories_table import make_inspections
from rekka.cli import app
from rekka.core.errors import BadOption, MissingColumns
from rekka.data.partition import partition_by_bridge
from rekka.study.elements import ElementChoice
from rekka.study.models import load_models
from rekka.workflows.forecast import forecast_own_tables

GUARD = {"resamples": 0, "ladder": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("elements")
    make_inspections(150, errors=0.12).write_csv(place / "t.csv")
    rekka.compare(place / "t.csv", models=["errors"], methods=["zscore"], guard=GUARD, out=place / "run")
    return place / "run"


def test_a_run_keeps_what_was_chosen(run: Path) -> None:
    study = rekka.load_study(run)
    (one,) = study.elements
    assert (one.case, one.model, one.reason) == ("all", "errors", None)
    assert one.gain is not None
    assert 0 < one.low < one.gain < one.high < 1
    assert one.summary.startswith("all: errors; lowers the error")
    assert study.plan.study.models == ("errors",)
    finding = next(one for one in rekka.check_study(study) if one.code == "R709")
    assert finding.verdict == "tip"
    assert "all rows with errors of inspection (error of forecasts up to" in finding.message


def test_forecasts_of_the_run_use_it(run: Path) -> None:
    models = load_models(run)
    assert models.elements == {"all": "errors"}
    assert models.models[0].fit.records is None
    found = rekka.forecast_inventory(run, run.parent / "t.csv", years=4, intervals="none")
    assert any("with the elements that the study chose: all: errors adjacent-common" in note
               for note in found.document.notes)  # fmt: skip
    assert "recorded_4" in found.members.columns


@pytest.mark.usefixtures("no_pictures")
def test_the_report_shows_the_model_that_forecasts(run: Path) -> None:
    """Totals, years of a typical member and trust are of the model with the chosen elements, not of the plain one."""
    plain = rekka.make_report(run, calibrate=False).document
    assert [one.elements for one in plain.models] == [None]
    assert rekka.load_study(run).folder == run
    assert forecast_own_tables(rekka.load_study(run), run) is None
    document = rekka.make_report(run, calibrate=False).document
    (model,), (before,) = document.models, plain.models
    assert document.network is not None
    assert document.network.kind == "inventory"
    assert model.elements == "errors"
    assert model.forecast is not None
    assert before.forecast is not None
    again = rekka.fit_components(run.parent / "t.csv", errors="adjacent-common").components[0].model
    assert again is not None
    years = again.years_to_reach(3, {name: [value] for name, value in model.typical.items()})["median"][0]
    assert model.forecast.passages[0].median == pytest.approx(years, rel=1e-3)
    assert before.forecast.passages[0].median < 0.9 * years  # errors that are taken for deterioration
    assert [one.of_this for one in document.backtests] == [True]
    assert "is fitted to all visits of the inventory" in rekka.make_report(run, calibrate=False).html


def test_a_list_of_members_is_forecast_by_the_plain_model_with_a_note(run: Path) -> None:
    last = make_inspections(150, errors=0.12).filter(date="2014-06-01").select("bridge_id", "state")
    found = rekka.forecast_inventory(run, last, years=4, intervals="none")
    assert any("the study chose errors adjacent-common, which cannot be fitted" in note
               for note in found.document.notes)  # fmt: skip
    assert "recorded_4" not in found.members.columns


def test_a_resumed_run_chooses_what_is_missing(run: Path) -> None:
    before = rekka.load_study(run).elements
    (run / "elements.json").unlink()
    assert rekka.load_study(run).elements == ()
    again = rekka.resume_study(run)
    assert [one.model for one in again.elements] == [one.model for one in before]
    assert (run / "elements.json").exists()


def test_show_prints_the_choice(run: Path) -> None:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["show", str(run), "--section", "elements"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("all: errors; lowers the error")


def test_a_choice_that_later_years_refute_is_not_used() -> None:
    assert ElementChoice(case="x", model="errors").used
    assert ElementChoice(case="x", model="errors", confirmed=True).used
    assert not ElementChoice(case="x", model="errors", confirmed=False).used
    assert not ElementChoice(case="x", model="plain").used


def test_rows_that_are_split_already_are_refused() -> None:
    parts = partition_by_bridge(rekka.read_transitions(make_inspections(60)).frame)
    with pytest.raises(BadOption, match="a Partition has lost the improvements"):
        rekka.compare(parts, models="auto", methods=["zscore"], guard=GUARD)


def test_a_study_without_models_says_that_none_were_compared(run: Path) -> None:
    study = rekka.compare(make_inspections(60), methods=["zscore"], guard=GUARD)
    finding = next(one for one in rekka.check_study(study) if one.code == "R709")
    assert finding.verdict == "not applicable"
    assert "rekka compare --models auto" in finding.message


def test_an_inventory_that_cannot_be_fitted_again_is_forecast_by_the_plain_model(run: Path) -> None:
    last = make_inspections(150, errors=0.12).filter(date="2014-06-01")  # one visit of each member
    found = rekka.forecast_inventory(run, last, years=4, intervals="none")
    assert found.members.height == 150
    assert any("no two visits of a member make a pair" in note for note in found.document.notes)
    few = make_inspections(4, visits=2)
    found = rekka.forecast_inventory(run, few, years=4, intervals="none")
    assert any("the plain model forecasts" in note for note in found.document.notes)
    assert "recorded_4" not in found.members.columns


def test_a_table_in_memory_is_paired_for_the_choice_by_itself() -> None:
    study = rekka.compare(make_inspections(150, errors=0.12), models=["errors"], methods=["zscore"], guard=GUARD)
    assert [one.model for one in study.elements] == ["errors"]


def test_a_table_whose_models_cannot_be_compared_is_refused_before_the_study(tmp_path: Path) -> None:
    rows = rekka.read_transitions(make_inspections(60, errors=0.0), rules={"upward": "keep_all"}).frame
    rows.drop("date_1", "date_2").write_csv(tmp_path / "t.csv")
    with pytest.raises(MissingColumns, match="models are compared from days inside the records"):
        rekka.compare(tmp_path / "t.csv", models="auto", methods=["zscore"], guard=GUARD, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
