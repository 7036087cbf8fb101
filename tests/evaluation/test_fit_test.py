"""The test of fit that a model keeps: made once, stored, and told wherever the model is used; and checks before it."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from test_cli import call

import rekka
from rekka.core.errors import BadOption, InputError
from rekka.evaluation.calibration import FEW_SETS, MANY_ROWS, TEST_SETS, calibrate, check_fit, explain_untested
from rekka.evaluation.resampling import Sample
from rekka.model.fit import Options
from rekka.model.survey import Contrast, FitTest, describe_years
from rekka.study.compare import load_study

REJECTED = "Rejected by the test of fit: the model does not describe its own records."
LINE = (
    "Deck: the model does not describe its data (test of fit p = 0.01): 51 of 51 stayed in rating 4 over 1 year where "
    "27.8 were expected; 36 of 436 went from rating 1 to 5 over 1 year where 0.2 were expected."
)


def fit(rows, **options):
    model = rekka.ExponentialHazardMarkovModel(covariates=options.pop("covariates", []), **options)
    return model.fit(rows, rows["state_2"])


def words(text):
    return " ".join(text.split())


@pytest.fixture(scope="module", autouse=True)
def _all_sets():
    """As many simulated sets as outside of tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rekka.evaluation.calibration.TEST_SETS", TEST_SETS)
        yield


@pytest.fixture(scope="module")
def table(decks, tmp_path_factory):
    file = tmp_path_factory.mktemp("decks") / "decks.csv"
    decks.write_csv(file)
    return file


@pytest.fixture(scope="module")
def model_file(table, tmp_path_factory):
    file = tmp_path_factory.mktemp("models") / "deck.json"
    done = call("fit", table, "--out", file)
    assert done.exit_code == 0, done.stderr
    return file


def test_a_certified_matrix_that_contradicts_its_data_is_rejected(decks):
    plain = fit(decks)
    assert plain.fit_test_ is None  # a fit stays fast
    model = plain.check_fit(decks, decks["state_2"])
    assert plain.fit_test_ is None
    assert model.certificate_.certified
    assert np.exp(-np.exp(model.intercept_[3])) == pytest.approx(0.545, abs=0.001)  # where 51 of 51 stayed
    test = model.fit_test_
    assert (test.rejected, test.p_value, test.replicates, test.rows) == (True, 0.01, TEST_SETS, 717)
    assert [(one.start, one.end, one.observed, one.rows) for one in test.contrasts] == [
        (4, 4, 51, 51),
        (1, 5, 36, 436),
    ]
    assert f"Deck: {test.describe()}." == LINE
    assert "stayed in rating d over 1 year" in test.describe(list("abcde"))
    (cause,) = test.causes
    assert cause.startswith("Jumps over states: 36 of 436 went from state 1 to 5 over 1 year")
    assert "(51 of 51 stayed in state 4 over 1 year where 27.8 were expected)" in cause
    for advice in ("errors of inspection", "visits that were not recorded", "merge states", "shorter intervals"):
        assert advice in cause
    assert "scaling" not in cause


def test_the_file_keeps_it(decks):
    model = fit(decks).check_fit(decks, decks["state_2"])
    again = rekka.ExponentialHazardMarkovModel.from_json(model.to_json())
    assert again.fit_test_ == model.fit_test_
    before = json.loads(model.to_json()) | {"version": 3}
    del before["fit_test"]
    assert rekka.ExponentialHazardMarkovModel.from_json(json.dumps(before)).fit_test_ is None


def test_a_right_model_is_not_rejected_and_known_to_fit_early():
    rows = rekka.simulate_transitions(600, n_states=4, seed=3)
    names = ["age_at_inspection_1", "bridge_length", "bridge_area", "traffic_mean"]
    test = fit(rows, covariates=names).check_fit(rows, rows["state_2"]).fit_test_
    assert not test.rejected
    assert test.replicates < TEST_SETS
    assert (test.contrasts, test.causes) == ((), ())
    assert (
        test.describe()
        == f"the model describes its data as far as the test of fit can tell (p = {test.p_value:.2g})"
    )


@pytest.mark.parametrize("seed", range(8))
def test_stopping_early_changes_no_decision(seed):
    """Rows that fit more or less: the early test and all of its sets agree on what is rejected at 5 %."""
    rows = rekka.simulate_transitions(150, n_states=3, seed=seed)
    worse = rows.with_columns(
        state_2=pl.when((pl.col("state_1") == 1) & (pl.int_range(pl.len()) % (6 + 4 * seed) == 0))
        .then(3)
        .otherwise(pl.col("state_2"))
    )
    model = fit(worse)
    sample, options = Sample.of(worse, (), 3), Options()
    early = check_fit(model._fit, sample, options=options, replicates=39, seed=seed)
    whole = calibrate(model._fit, sample, options=options, replicates=39, seed=seed).goodness
    assert early.rejected == (whole.p_value <= 0.05)
    assert early.statistic == whole.statistic
    assert (early.p_value == whole.p_value) or early.replicates < 39


def test_other_rows_than_those_of_the_fit_are_refused(decks):
    with pytest.raises(InputError, match="the model was fitted on 717"):
        fit(decks).check_fit(decks[1:], decks["state_2"][1:])


def test_very_many_rows_have_fewer_sets(decks, monkeypatch):
    monkeypatch.setattr("rekka.evaluation.calibration.MANY_ROWS", 700)
    assert fit(decks).check_fit(decks, decks["state_2"]).fit_test_.replicates == FEW_SETS
    assert (FEW_SETS + 1) * 0.05 >= 1
    assert MANY_ROWS == 20_000


def test_years_and_small_expectations_in_words():
    assert [describe_years(*ends) for ends in ((1.0, 1.0), (1.5, 1.52), (1.0, 2.0))] == [
        "1 year",
        "1.5 years",
        "1 to 2 years",
    ]
    told = Contrast(1, 5, 1.0, 1.0, 40, 2, 0.001).describe()
    assert told == "2 of 40 went from state 1 to 5 over 1 year where fewer than 0.1 were expected"


def test_fit_tells_it_above_the_coefficients(table, model_file):
    assert REJECTED in call("fit", table).stdout.splitlines()[1]
    done = call("fit", table, "--verbose")
    assert words(done.stdout).startswith(words(LINE))
    assert "test of fit: Jumps over states:" in words(done.stdout)
    told = json.loads(call("fit", table, "--json").stdout)[0]["fit_test"]
    assert (told["rejected"], told["p_value"]) == (True, 0.01)
    assert f"Deck: {told['sentence']}." == LINE
    assert json.loads(model_file.read_text())["fit_test"]["contrasts"][0]["observed"] == 51


def test_fit_without_it(table):
    done = call("fit", table, "--no-test-fit")
    assert "test of fit" not in done.stdout
    assert json.loads(call("fit", table, "--no-test-fit", "--json").stdout)[0]["fit_test"] is None


def test_above_fifty_components_it_is_made_on_request(table, monkeypatch):
    monkeypatch.setattr("rekka.workflows.fit.MOST_TESTED", 0)
    said = words(call("fit", table).stdout)
    assert explain_untested(1) in said
    assert "Ask for it with --test-fit." in said
    assert "does not describe" not in said
    assert words(call("fit", table, "--test-fit", "--verbose").stdout).startswith(words(LINE))


def test_rows_that_are_read_in_blocks_have_no_test(table, monkeypatch):
    monkeypatch.setattr("rekka.streaming.blocks.WHOLE", 700)
    done = call("fit", table, "--json")
    assert "Deck has no test of fit: more than 700 rows are not refitted." in words(done.stderr)
    assert json.loads(done.stdout)[0]["fit_test"] is None


def test_several_components_say_what_chance_does(decks, tmp_path):
    file = tmp_path / "two.csv"
    pl.concat([decks, decks.with_columns(case=pl.lit("Slab"))]).write_csv(file)
    said = words(call("fit", file).stdout)
    assert "2 of 2 models do not describe their data; at 5 %, chance alone would reject 0.1 of as many" in said


def test_a_fit_with_class_weights_has_no_test(decks):
    model = fit(decks, class_weight="inverse_frequency")
    with pytest.raises(BadOption, match="is not meant to describe the frequencies of its rows, so it has no test"):
        model.check_fit(decks, decks["state_2"])


def test_a_summary_names_the_components_that_are_rejected(decks, tmp_path, monkeypatch):
    monkeypatch.setattr("rekka.commands.fit.MANY_CASES", 2)
    right = rekka.simulate_transitions(300, n_states=3, seed=1).with_columns(case=pl.lit("Pier"))
    tables = [decks, decks.with_columns(case=pl.lit("Slab")), right.select(decks.columns)]
    pl.concat(tables, how="vertical_relaxed").write_csv(tmp_path / "three.csv")
    said = words(call("fit", tmp_path / "three.csv").stdout)
    assert "3 components: 3 with a certified maximum." in said
    assert "Rejected by the test of fit: Deck, Slab." in said


@pytest.mark.parametrize("command", ["matrix", "effects"])
def test_matrix_and_effects_repeat_it(model_file, command):
    done = call(command, model_file)
    assert words(LINE) in words(done.stdout)[:400]
    told = json.loads(call(command, model_file, "--json").stdout)["cases"][0]["fit_test"]
    assert f"Deck: {told['sentence']}." == LINE


def test_a_model_whose_test_was_not_made_says_nothing(table, tmp_path):
    assert call("fit", table, "--no-test-fit", "--out", tmp_path / "deck.json").exit_code == 0
    done = call("matrix", tmp_path / "deck.json")
    assert "test of fit" not in done.stdout
    assert json.loads(call("matrix", tmp_path / "deck.json", "--json").stdout)["cases"][0]["fit_test"] is None


def test_a_forecast_repeats_it(model_file, tmp_path):
    members = tmp_path / "members.csv"
    members.write_text("bridge,case,state\nA,Deck,1\nB,Deck,4\n")
    asked = (model_file, members, "--best", 1, "--worst", 4, "--out", tmp_path / "forecast")
    done = call("forecast", *asked)
    assert done.exit_code == 0, done.stderr
    assert (
        "Trust: caution. The model does not describe its own training rows (test of fit: p = 0.01)." in done.stdout
    )
    assert words(LINE) in words(call("forecast", *asked, "--verbose").stdout)
    document = json.loads((tmp_path / "forecast" / "forecast.json").read_text())
    assert document["models"][0]["fit_test"]["p_value"] == 0.01
    assert rekka.fleet.document.load_forecast(tmp_path / "forecast").models[0].misfit == LINE


def test_a_backtest_tests_the_model_it_fits(decks, tmp_path):
    dated = decks.with_columns(
        date_1=pl.lit("2001-06-01").str.to_date(), date_2=pl.lit("2002-06-01").str.to_date()
    ).with_columns(
        visit_1=pl.lit(1), visit_2=pl.lit(2), row_1=pl.int_range(pl.len()), row_2=pl.int_range(pl.len())
    )
    later = dated.with_columns(
        state_1="state_2",
        date_1="date_2",
        date_2=pl.lit("2003-06-01").str.to_date(),
        visit_1="visit_2",
        visit_2=pl.lit(3),
        row_1="row_2",
        row_2=pl.col("row_2") + 1000,
    )
    file = tmp_path / "decks.parquet"
    pl.concat([dated, later]).write_parquet(file)
    done = call("backtest", file, "--until", "2002-12-31", "--draws", 100, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert REJECTED in done.stdout
    case = json.loads((tmp_path / "out" / "backtest.json").read_text())["cases"][0]
    assert (case["misfit"], case["fit_p_value"]) == (LINE, 0.01)
    without = call("backtest", file, "--until", "2002-12-31", "--draws", 100, "--no-test-fit", "--json")
    assert json.loads(without.stdout)["cases"][0]["misfit"] is None


@pytest.fixture(scope="module")
def run(decks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "run"
    age = pl.Series("age", np.random.default_rng(0).uniform(1, 60, 2 * len(decks)))
    rows = pl.concat([decks, decks.with_columns(bridge_id=pl.col("bridge_id") + "b")]).with_columns(age)
    rekka.compare(rows, methods=["zscore"], guard={"resamples": 2}, out=folder)
    return folder


def test_a_study_tests_what_it_chooses_once(run):
    study = load_study(run)
    (choice,) = study.choices
    assert choice.fit_test.rejected
    assert study.model("Deck").fit_test_ == choice.fit_test
    calibration = study.calibration("Deck")
    assert (calibration.goodness.p_value, calibration.goodness.replicates) == (0.01, TEST_SETS)
    assert calibration.causes == choice.fit_test.causes
    assert study.calibration("Deck", replicates=19).goodness.replicates == 19


def test_a_rejected_test_is_an_issue(run):
    finding = next(one for one in rekka.check_study(run) if one.code == "R611")
    assert finding.verdict == "issue"
    assert "stayed in rating 4 over 1 year" in finding.explanation
    assert "scaling" not in finding.explanation + finding.remedy
    assert "R611 issue" in call("checks", run, "--quick").stdout


@pytest.mark.usefixtures("no_pictures")
def test_the_report_says_it_at_its_top(run):
    study = load_study(run)
    report = study.report(calibrate=False)
    text = report.to_markdown()
    assert "trust: DO NOT USE" in text[:3000]
    assert "Deck: the model does not describe its data (test of fit p = 0.010): " in text
    assert "stayed in rating 4 where" in text
    reasons = [one["say"] for part in report.document.trust for one in (part.reason, *part.others)]
    assert "trust.reason.misfit" in reasons
    assert json.loads(report.document.model_dump_json())["models"][0]["fit_test"]["p_value"] == 0.01
    assert "モデルはデータに適合していない" in study.report(calibrate=False, lang="ja").to_markdown()


def test_more_than_fifty_components_are_not_tested_in_a_study(decks, monkeypatch):
    for module in ("rekka.study.compare", "rekka.study.checks.held_out", "rekka.study.study"):
        monkeypatch.setattr(f"{module}.MOST_TESTED", 0)
    study = rekka.compare(
        decks.with_columns(age=pl.int_range(pl.len()) % 50), methods=["zscore"], guard={"resamples": 2}
    )
    assert study.choices[0].fit_test is None
    finding = next(one for one in rekka.check_study(study) if one.code == "R611")
    assert finding.verdict == "not applicable"
    assert "rekka checks RUN --test-fit" in finding.explanation
    assert np.isnan(study.calibrations()["exact", "Deck"].goodness.p_value)
    assert study.calibrations(test=True)["exact", "Deck"].goodness.p_value <= 0.05


def test_a_test_as_plain_data():
    test = FitTest(0.3, 1.0, 0.05, 30, 0, 0, 1, 100)
    assert test.to_dict() | {"sentence": ""} == {
        "p_value": 0.3, "statistic": 1.0, "level": 0.05, "replicates": 30, "without_maximum": 0, "unfinished": 0,
        "seed": 1, "rows": 100, "contrasts": (), "causes": (), "rejected": False, "sentence": "",
    }  # fmt: skip
    assert replace(test, p_value=0.05).rejected


def test_check_flags_placeholders_of_an_index(tmp_path):
    years = "".join(
        f"B{n},{year},{value}\n" for n in range(30) for year, value in ((2005, 90), (2010, 80 - n % 9))
    )
    file = tmp_path / "index.csv"
    file.write_text("bridge,date,BCI\n" + years + "X,2005,100\nX,2010,0\n")
    options = ("--state", "BCI", "--bands", "85,75")
    finding = next(
        one
        for one in json.loads(call("check", file, *options, "--json").stdout)["findings"]
        if one["code"] == "R111"
    )
    assert (finding["severity"], finding["count"], finding["rows"]) == ("warning", 2, [62, 63])
    assert finding["message"].startswith("The index is exactly 0 in 1 record and exactly 100 in 1 record.")
    assert "--not-inspected 0,100" in finding["remedy"]
    assert "R111" not in call("check", file, *options, "--not-inspected", "0,100").stdout
