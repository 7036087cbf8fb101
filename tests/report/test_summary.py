"""A study as plain data: the numbers of its tables, nothing else, and the same every time."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest
from study_cases import draw_rows
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.core.errors import BadOption, DamagedFile
from rekka.model.serial import load_model
from rekka.report import summarize as parts
from rekka.report.document import VERSION, Document
from rekka.report.summarize import _find_step, _judge_difference, _leave_tested, summarize
from rekka.study.stability import load_stability

CASES = ["Pier", "Abutment", "Slope protection"]  # one large, one small, one that no fit suits
NO_RESAMPLES = {"resamples": 0, "ladder": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported") / "run"
    methods, few = ["zscore", "boxcox"], {"resamples": 2, "stable_share": 1.0, "ladder": False}
    rekka.compare(cases=CASES, methods=methods, preset="both", select_on="validation", guard=few, out=folder)
    rekka.stability(folder, resamples=2, kinds=["bootstrap"], cases=["Abutment"], workers=1)
    return folder


@pytest.fixture(scope="module")
def study(run):
    return rekka.load_study(run)


@pytest.fixture(scope="module")
def document(study, run):
    return summarize(study, calibrations=study.calibrations(), stability=load_stability(run))


def test_it_is_the_same_every_time_and_reads_back(study, document, run):
    again = summarize(study, calibrations=study.calibrations(), stability=load_stability(run))
    assert again.to_json() == document.to_json()
    assert Document.from_json(document.to_json()) == document


def test_json_has_no_number_that_is_none(document):
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    assert json.loads(document.to_json(), parse_constant=refuse)["version"] == VERSION


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "the text itself"),
        ('{"format": "rekka-report", "version": 1}', "version"),
        ('{"format": "rekka-trials"}', "format"),
    ],
)
def test_what_is_no_report_is_refused_with_the_place(text, told):
    with pytest.raises(DamagedFile, match=rf"report\.json is no rekka report of version 3: .*{told}"):
        Document.from_json(text, "report.json")


def test_an_answer_has_the_figures_of_its_confirmation(study, document):
    confirmed = {row["case"]: row for row in study.confirmation.filter(preset="exact").to_dicts()}
    assert [answer.case for answer in document.answers] == CASES
    for answer in document.answers:
        choice = study.choice(answer.case, "exact")
        assert answer.method == choice.chosen
        assert answer.confirmed == (answer.case in confirmed)
        if answer.confirmed:
            row = confirmed[answer.case]
            names = [name for name in row if name in type(answer).model_fields and name not in ("case", "method")]
            assert {name: getattr(answer, name) for name in names} == {name: row[name] for name in names}
    assert "Abutment" in confirmed
    assert document.study.preset == "exact"


def test_a_case_without_a_choice_says_why_and_has_no_figures(document):
    answer = next(one for one in document.answers if one.case == "Slope protection")
    assert (answer.method, answer.accuracy, answer.confirmed) == (None, None, False)
    assert answer.why.startswith("none: no fit is a certified maximum")
    model = next(one for one in document.models if one.case == "Slope protection")
    assert not model.chosen
    assert "there is no finite maximum" in model.reason
    assert (model.years, model.ratios, model.coefficients, model.forecast) == ((), (), (), None)


def test_better_and_worse_are_what_the_intervals_show(document):
    for answer in document.answers:
        if answer.confirmed:
            low, high = answer.no_covariates_low, answer.no_covariates_high
            expected = "better" if high < 0 else "worse" if low > 0 else "not shown"
            assert answer.beats_no_covariates == expected
            low, high = answer.persistence_low, answer.persistence_high
            assert answer.beats_persistence == ("better" if low > 0 else "worse" if high < 0 else "not shown")


def test_tables_are_those_of_the_study(study, document):
    for part, frame in (("trials", study.trials), ("presets", study.presets), ("floor", study.floor)):
        theirs = frame.to_dicts()
        ours = [row.model_dump() for row in getattr(document, part)]
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert one == {
                n: v if not isinstance(v, float) or math.isfinite(v) else None for n, v in other.items()
            }
    assert [one.evidence for one in document.hypotheses] == [one.evidence for one in study.hypotheses]
    pareto = study.trials.group_by("preset", "method").agg(pl.col("pareto").sum())
    assert {(m.preset, m.method): m.pareto for m in document.methods} == {(p, m): n for p, m, n in pareto.rows()}


def test_models_stand_for_what_was_chosen(study, document):
    model = next(one for one in document.models if one.case == "Abutment")
    fitted = study.model("Abutment", preset="exact")
    assert model.chosen
    assert model.log_likelihood == fitted.log_likelihood_
    assert [one.estimate for one in model.coefficients] == fitted.summary()["estimate"].to_list()
    train = study.read_rows().frame.filter(case="Abutment", part="train")
    assert model.typical["traffic_mean"] == train["traffic_mean"].median()


def test_a_run_of_an_earlier_version_takes_ranges_from_its_rows(study, document, monkeypatch):
    """Its models do not know how their training rows are spread; the study has the rows."""

    def load_old(text):
        fit, parameters, features = load_model(text)
        return replace(fit, survey=None), parameters, features

    monkeypatch.setattr(parts, "load_model", load_old)
    assert summarize(study).models == document.models


def test_the_audit_adds_up_and_its_doctor_looked_at_the_rows_of_the_study(document):
    assert sum(one.count for one in document.audit.outcomes) == document.audit.records
    doctor = {(one.code, one.case) for one in document.audit.findings}
    assert ("R106", "Slope protection") in doctor
    assert "Slope protection" in next(one.cases for one in document.findings if one.code == "R402")
    assert ("R402", "Slope protection") not in doctor  # the study's findings say it


def test_stability_has_the_draws_of_the_run_folder(document):
    assert document.stability is not None
    assert (document.stability.kinds, document.stability.resamples) == (("bootstrap",), 2)
    assert {share.case for share in document.stability.shares} == {"Abutment"}
    assert all(share.draws == 2 for share in document.stability.shares)


def test_a_run_without_draws_has_no_stability(tmp_path):
    rekka.compare(draw_rows(("Pier",)), methods=["zscore"], guard=NO_RESAMPLES, out=tmp_path / "run")
    assert load_stability(tmp_path / "run") is None
    assert not (tmp_path / "run" / "stability").exists()


def test_draws_of_another_run_are_not_taken_for_ours(run, tmp_path):
    rekka.compare(cases=["Slope protection"], methods=["zscore"], guard=NO_RESAMPLES, out=tmp_path / "other")
    (run / "stability").rename(tmp_path / "kept")
    try:
        assert load_stability(run) is None
    finally:
        (tmp_path / "kept").rename(run / "stability")
    (tmp_path / "other" / "stability").symlink_to(run / "stability")
    assert load_stability(tmp_path / "other") is None


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0, 10, 20, 30, 40], 20),
        ([0.0, 0.1, 0.2, 0.3], 0.1),
        ([5, 5, 5], 1),
        ([1, 2000, 9000, 12000], 5000),
        ([], 1),
    ],
)
def test_a_step_is_a_round_number_within_the_middle_half(values, step):
    assert _find_step(pl.Series(values, dtype=pl.Float64)) == pytest.approx(step)


def test_steps_can_be_given_and_a_wrong_name_is_told(study):
    steps = {one.name: one.step for one in summarize(study, units={"traffic_mean": 500}).study.covariates}
    assert steps["traffic_mean"] == 500
    assert steps["age_at_inspection_1"] == 10
    with pytest.raises(BadOption, match="Did you mean traffic_mean"):
        summarize(study, units={"trafic_mean": 500})


def test_a_study_in_memory_tells_its_plan_and_no_more():
    found = summarize(rekka.compare(draw_rows(("Pier",)), methods=["zscore"], guard=NO_RESAMPLES))
    assert (found.provenance.begun, found.provenance.command, found.provenance.again) == (None, None, None)
    assert 'kind = "given"' in found.provenance.plan
    assert found.calibration == ()
    assert found.audit.records is None


def test_selected_on_golden_rows_nothing_is_confirmed():
    found = summarize(rekka.compare(draw_rows(("Pier",)), rule="pareto"))
    answer = found.answers[0]
    assert (answer.confirmed, answer.scored_on, answer.accuracy_low) == (False, "golden", None)
    assert answer.accuracy == found.trials[[t.method for t in found.trials].index(answer.method)].accuracy
    assert answer.remark == "the golden rows chose it, and cannot confirm it"


def test_a_fit_that_is_no_maximum_has_no_intervals():
    """Away from a maximum the curvature measures no uncertainty."""
    rows = draw_rows(("Pier",))
    found = summarize(rekka.compare(rows, preset="paper", rule="pareto", methods=["max"]))
    model = found.models[0]
    assert model.chosen
    assert not model.certified
    assert all(one.estimate is not None for one in model.coefficients)
    assert {one.se for one in model.coefficients} == {one.low for one in model.coefficients} == {None}
    assert {one.low for one in model.ratios} == {one.years_high for one in model.years} == {None}
    future = model.forecast
    assert set(future.expected_low) == set(future.reached_high) == set(future.predicted_low) == {None}
    assert (
        {one.predicted_high for one in future.passages} == {one.difference_low for one in future.effects} == {None}
    )
    assert {low for one in future.matrices for row in one.low for low in row} == {None}
    assert {low for one in future.profiles for row in one.hazard_low for low in row} == {None}
    assert all(one.median is not None for one in future.passages)


def test_a_fit_without_a_finite_maximum_has_no_figures():
    found = summarize(rekka.compare(cases=["Slope protection"], methods=["zscore"], preset="paper", rule="pareto"))
    model = found.models[0]
    assert (model.chosen, model.coefficients, model.forecast) == (True, (), None)
    assert "there is no finite maximum" in model.reason


def test_folders_of_whoever_ran_it_stay_out_of_the_report(tmp_path):
    (tmp_path / "my folder").mkdir()
    draw_rows(("Pier",)).write_csv(tmp_path / "my folder" / "rows.csv")
    rekka.compare(
        tmp_path / "my folder" / "rows.csv",
        methods=["zscore"],
        guard=NO_RESAMPLES,
        out=tmp_path / "kept runs" / "one",
    )
    text = rekka.make_report(tmp_path / "kept runs" / "one", calibrate=False).document.to_json()
    assert "rows.csv" in text
    for folder in ("my folder", "kept runs", tmp_path.name):
        assert folder not in text


def test_the_study_file_in_the_report_runs_beside_the_table(tmp_path):
    draw_rows(("Pier",)).write_csv(tmp_path / "rows.csv")
    first = rekka.compare(
        tmp_path / "rows.csv", methods=["zscore"], guard=NO_RESAMPLES, out=tmp_path / "kept runs" / "one"
    )
    (tmp_path / "study.toml").write_text(first.report(calibrate=False).document.provenance.plan)
    command = ["compare", str(tmp_path / "study.toml"), "--out", str(tmp_path / "again"), "--no-report"]
    assert CliRunner().invoke(app, command).exit_code == 0
    again = rekka.load_study(tmp_path / "again")
    assert again.trials["log_likelihood"].to_list() == first.trials["log_likelihood"].to_list()


def test_control_characters_stay_out():
    rows = draw_rows(("Pi\x00er\x1b",))
    assert [
        case.case for case in summarize(rekka.compare(rows, methods=["zscore"], guard=NO_RESAMPLES)).cases
    ] == ["Pi\ufffder\ufffd"]


@pytest.mark.parametrize(
    ("low", "high", "higher", "lower"),
    [(0.1, 1.0, "better", "worse"), (-1.0, -0.1, "worse", "better"), (0.0, 1.0, "not shown", "not shown"),
     (-1.0, 0.0, "not shown", "not shown"), (-math.inf, 1.0, None, None)],
)  # fmt: skip
def test_a_difference_is_shown_where_its_interval_leaves_zero_out(low, high, higher, lower):
    assert _judge_difference(low, high, higher=True) == higher
    assert _judge_difference(low, high, higher=False) == lower


def test_models_that_were_tested_are_not_calibrated_again():
    choices = [SimpleNamespace(preset="exact", case=case, fit_test=test) for case, test in (("a", 1), ("b", None))]
    study = SimpleNamespace(choices=choices)
    assert _leave_tested(study, {("exact", "a"): "A", ("exact", "b"): "B"}) == {("exact", "b"): "B"}
    assert _leave_tested(study, {("exact", "a"): "A"}) is None
