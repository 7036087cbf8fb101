"""``rekka backtest`` as a person meets it."""

import datetime as dt
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from test_cli import call, run
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.data.nbi import NEEDED
from rekka.fleet.backtest import load_backtest
from rekka.report.terminal import backtests as terminal


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A small simulated inventory, with repairs."""
    home = tmp_path_factory.mktemp("tables") / "inventory"
    rekka.write_inventory(home, 60, preset="plain", seed=3, dirt=0.02)
    return home


OPTIONS = ("--until-visit", 3, "--draws", 100, "--use", "age_at_inspection_1,bridge_length")


def test_the_answer_comes_first(folder, tmp_path):
    done = CliRunner(env={"COLUMNS": "80"}).invoke(
        app, ["backtest", str(folder), *map(str, OPTIONS), "--only", "Bearing", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 25
    first = words(" ".join(lines[:10]))
    found = load_backtest(tmp_path / "out")
    total = found.totals.filter(by="all", or_worse=True).row(0, named=True)
    visits = found.cases["visits"].item()
    assert first.startswith(f"{visits:,} later visits forecast from what was known up to visit 3, 1 component.")
    assert "than the baseline that nothing changes: ranked probability score" in first
    ends = f"{total['predicted_low']:,} to {total['predicted_high']:,}"
    assert f"Found at rating d or worse: {total['observed']:,} visits; expected: {total['expected']:,.0f}" in first
    assert f"(95% prediction interval: {ends})" in first
    assert f"More: rekka show {tmp_path / 'out'} (" in done.stdout


@pytest.mark.parametrize(("observed", "said"), [(30, True), (50, False), (70, False)])
def test_forecasts_that_are_too_high_may_lack_repairs(observed, said):
    total = {"observed": observed, "expected": 50.0, "inside": observed == 50}
    one = terminal.TestedComponent("Deck", None, True, 90, 0.2, 0.3, {"low": -0.2, "high": -0.1}, total, ())
    actions = " ".join(terminal._list_actions([one]))
    assert ("Repairs that nobody recorded make forecasts too high: rekka repairs TABLE" in actions) == said
    assert ("upper limits" in actions) == said


def test_what_a_person_is_told(folder, tmp_path):
    done = call("backtest", folder, *OPTIONS, "--only", "Bearing", "--out", tmp_path / "out", "--verbose")
    assert done.exit_code == 0, done.stderr
    said = words(done.stdout)
    assert done.stdout.startswith(call("show", tmp_path / "out").stdout)
    assert "Bearing: scores of the forecasts of" in said
    assert "log loss, floored" in said
    assert "infinite" in said
    for title in ("by years ahead", "visits in rating d or worse", "visits in each rating, all together",
                  "visits still in the rating of the origin"):  # fmt: skip
        assert f"Bearing: {title}" in said
    assert "Bearing: fitted to" in said
    assert "up to visit 3;" in said
    assert "not scored, because a pair on the way was excluded (" in said
    assert f"Written: {tmp_path / 'out'} (scores.csv, totals.csv" in said
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {"scores.csv", "totals.csv", "lost.csv", "cases.csv", "forecasts.parquet", "backtest.json"}


@pytest.mark.parametrize(
    ("low", "chosen", "advice"),
    [
        (
            -0.02,
            False,
            ["The forecasts held. Fit this model to all records: rekka fit TABLE --out models with the"],
        ),
        (
            -0.02,
            True,
            ["The forecasts held. For the page with these models: rekka compare TABLE --models auto --out"],
        ),
        (-0.01, False, ["Let rekka choose the model: rekka backtest ... --models auto"]),
        (-0.01, True, []),
    ],
)
def test_what_to_do_next(low, chosen, advice):
    """Nobody is asked to let rekka choose the model who has done so, or to fit another one than was tested."""
    difference = {"low": low, "high": low + 0.015}
    one = terminal.TestedComponent("Pier", None, True, 10, 0.2, 0.21, difference, None, ())
    told = list(terminal._list_actions([one], chosen=chosen))
    assert len(told) == len(advice)
    assert all(line.startswith(start) for line, start in zip(told, advice, strict=True))


def test_files_hold_what_was_shown(folder, tmp_path):
    done = call("backtest", folder, *OPTIONS, "--only", "Bearing", "--only", "Pier", "--out", tmp_path, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout, parse_constant=lambda text: pytest.fail(text))
    assert found == json.loads((tmp_path / "backtest.json").read_text(encoding="utf-8"))
    assert [case["case"] for case in found["cases"]] == ["Bearing", "Pier"]
    scores, totals = (pl.read_csv(tmp_path / f"{name}.csv") for name in ("scores", "totals"))
    assert (tmp_path / "scores.csv").read_bytes()[:3] == b"\xef\xbb\xbf"
    assert len(scores) == len(found["scores"])
    assert len(totals) == len(found["totals"])
    forecasts = pl.read_parquet(tmp_path / "forecasts.parquet")
    assert len(forecasts) == sum(case["visits"] for case in found["cases"])
    np.testing.assert_allclose(forecasts.select("p_1", "p_2", "p_3", "p_4", "p_5").sum_horizontal(), 1.0)
    expected = totals.filter(by="all", case="Pier", state=5, or_worse=False)["expected"].item()
    assert forecasts.filter(case="Pier")["p_5"].sum() == pytest.approx(expected)


@pytest.mark.usefixtures("few_simulations")
def test_components_are_one_line_each_unless_all_are_wanted(folder, monkeypatch):
    found, work = [], rekka.backtest

    def work_once(*given, **options):
        if not found:
            found.append(work(*given, **options))
        return found[0]

    monkeypatch.setattr(rekka, "backtest", work_once)
    some = ("--only", "Bearing", "--only", "Pier", "--only", "Pavement", "--only", "Slope protection")
    said = words(call("backtest", folder, *OPTIONS, *some).stdout)
    assert "later visits forecast from what was known up to visit 3, 4 components." in said
    assert "NOT CERTIFIED: Slope protection." in said
    cases = found[0].cases.filter(pl.col("case") != "Slope protection")
    for case, visits in cases.select("case", "visits").rows():
        total = found[0].totals.filter(case=case, by="all", or_worse=True).row(0, named=True)
        assert re.search(rf"{case} {visits:,} (better|WORSE|not shown) {total['observed']:,} ", said)
    assert "Bearing: by years ahead" not in said
    assert "Nothing was written; --out says where." in said
    assert "More: --verbose (" in said
    every = words(call("backtest", folder, *OPTIONS, *some, "--all").stdout)
    assert "Forecasts of later visits by models fitted up to visit 3" in every
    assert "Slope protection † " in every
    assert "Bearing † " not in every
    assert every.count(": by years ahead") == 4
    assert "More: " not in every


def test_a_case_that_cannot_be_fitted_ends_in_its_sentence_and_code_1(tmp_path):
    rows = [
        {"bridge": f"B{number}", "case": case, "date": dt.date(year, 6, 1), "length": 10.0 + number,
         "state": 1 if case == "still" else 1 + (number > 5 and year > 2000)}
        for case in ("still", "moves") for number in range(12) for year in range(2000, 2012, 2)
    ]  # fmt: skip
    table = tmp_path / "visits.csv"
    pl.DataFrame(rows).write_csv(table)
    brief = words(call("backtest", table, "--until", 2006, "--draws", 100).stdout)
    assert "Not forecast: still: Every row stays in rating 1" in brief
    assert "NOT CERTIFIED: moves." in brief
    done = call("backtest", table, "--until", 2006, "--draws", 100, "--verbose")
    assert done.exit_code == 1
    said = words(done.stdout)
    assert "still: not forecast: Every row stays in rating 1" in said
    assert "NOT CERTIFIED: the model is where its optimizer stopped" in said
    assert "moves: scores of the forecasts of" in said


def test_transitions_and_a_moment_by_date(folder, tmp_path):
    table = tmp_path / "transitions.parquet"
    assert call("transitions", folder, "--out", table).exit_code == 0
    options = ("--until", "2016-06-30", "--since", 2005, "--only", "Bearing", "--draws", 100, "--age", "held")
    done = call("backtest", table, *options, "--verbose")
    assert done.exit_code == 0, done.stderr
    said = words(done.stdout)
    assert "from 2005-01-01 up to 2016-06-30;" in said
    assert "traffic_mean of the interval that leads over 2016-06-30 is the mean of two counts" in said
    assert "Pairs that were excluded before are not in a table of transitions and are not counted." in said
    assert "year visits found expected" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Say up to when the model may know anything, in one way: --until, a date such as"),
        (
            ["--until", "2016", "--until-visit", "3"],
            "Say up to when the model may know anything, in one way: --until",
        ),
        (["--until", "yesterday"], "BadOption: --until is 'yesterday'; a date such as 2008-12-31"),
        (["--until-visit", "0"], "--until-visit"),
        (["--until", "2016", "--age", "grows"], "BadOption: --age is 'grows'; it can be advances, held, fixed"),
        (["--until", "2016", "--draws", "10"], "--draws"),
        (["--until", "2016", "--only", "Peer"], "There is no component 'Peer'."),
    ],
)
def test_wrong_options(folder, options, message):
    done = call("backtest", folder, *options)
    assert done.exit_code == 2
    assert message in words(done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("few_simulations")
def test_yearly_files_of_the_national_inventory(tmp_path):
    rng = np.random.default_rng(0)
    rating = rng.integers(7, 10, (80, 3))
    for year in range(2010, 2020):
        rating = np.maximum(rating - (rng.random(rating.shape) < 0.2), 5)
        rows = [
            dict.fromkeys(NEEDED, "") | {
                "STATE_CODE_001": "24", "STRUCTURE_NUMBER_008": f"{bridge:05d}", "RECORD_TYPE_005A": "1",
                "YEAR_BUILT_027": str(1950 + bridge % 40), "ADT_029": str(100 + 37 * bridge),
                "STRUCTURE_LEN_MT_049": str(10 + bridge), "DECK_WIDTH_MT_052": str(8 + bridge % 7),
                "DECK_COND_058": str(deck), "SUPERSTRUCTURE_COND_059": str(above),
                "SUBSTRUCTURE_COND_060": str(below), "YEAR_ADT_030": "2009",
                "DATE_OF_INSPECT_090": f"6{year % 100:02d}", "YEAR_RECONSTRUCTED_106": "0",
            }
            for bridge, (deck, above, below) in enumerate(rating)
        ]  # fmt: skip
        pl.DataFrame(rows).write_csv(tmp_path / f"MD{year % 100:02d}.txt")
    options = ("--until", 2015, "--use", "bridge_length", "--max-gap", 5, "--draws", 100, "--json")
    done = call("backtest", tmp_path, "--nbi", *options)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["cases"]) == 3
    for case in found["cases"]:
        assert (case["training_rows"], case["members"], case["visits"]) == (400, 80, 320)
        assert (case["lost_visits"], case["certified"]) == (0, True)


def test_help_is_there_at_once():
    done = run("backtest", "--help")
    assert done.returncode == 0
    assert "--until-visit" in done.stdout


def test_a_wider_band_for_errors_that_all_members_share(folder, tmp_path):
    options = ("--until", 2019, "--draws", 100, "--only", "Bearing", "--use", "age_at_inspection_1", "--shocks")
    done = call("backtest", folder, *options, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    said = words(call("show", tmp_path / "out").stdout)
    assert "inside the wider one; mean interval score" in said
    assert "wider: with errors that all members share" in said
    totals = pl.read_csv(tmp_path / "out" / "totals.csv")
    assert (totals["predicted_shock_low"] <= totals["predicted_low"]).all()
    assert (totals["predicted_shock_high"] >= totals["predicted_high"]).all()
    assert totals["inside_shock"].sum() >= totals["inside"].sum()
    refused = call("backtest", folder, "--until-visit", 3, "--shocks")
    assert refused.exit_code == 2
    assert "the moment is a round of inspections" in words(refused.stderr)


def test_a_choice_that_is_stopped_says_what_is_kept_and_continues(folder, tmp_path, monkeypatch):
    def stop(*asked, out, **options):
        (out / "models").mkdir(parents=True)
        (out / "models" / "bearing errors 2014-12-31 0.parquet").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(rekka, "backtest", stop)
    home = tmp_path / "out"
    done = call("backtest", folder, "--until", 2016, "--models", "auto", "--out", home)
    kept = f"The forecasts made so far are kept in {home / 'models'}"
    assert (done.exit_code, words(done.stderr)) == (130, f"Stopped. {kept}; the same command continues.")
