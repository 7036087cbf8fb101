"""``rekka fit`` with elements of histories, and ``rekka bridges``: words, files, and refusals in a sentence."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

import rekka
from histories_table import make_inspections
from rekka.cli import app
from rekka.core.terminal import new_console
from rekka.report.terminal.models import print_bridges


def call(*args):
    return CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("histories")
    table = make_inspections()
    table.write_csv(place / "t.csv")
    table.head(8).write_csv(place / "one.csv")
    pairs = rekka.read_transitions(table, rules={"upward": "keep"}).frame
    pairs.write_parquet(place / "pairs.parquet")
    pairs.drop("history").write_csv(place / "no_history.csv")
    pairs.drop("date_1", "date_2").write_csv(place / "no_dates.csv")
    pairs.filter((pl.col("history") == 1).all().over("bridge_id")).write_csv(place / "whole.csv")
    return place


@pytest.fixture(scope="module")
def fitted(folder):
    elements = ("--errors", "adjacent-common", "--frailty", "gamma", "--trend", "common")
    return call("fit", folder / "t.csv", *elements, "--out", folder / "m.json")


def test_elements_are_said_in_words(folder, fitted):
    assert fitted.exit_code == 0, fitted.stderr
    lines = fitted.stdout.splitlines()
    said = [line for line in lines if line.startswith(("Inspectors", "Bridges", "Hazards"))]
    assert [line.split(" ")[0] for line in said] == ["Inspectors", "Bridges", "Hazards"]
    assert "Inspectors rate one better in " in said[0]
    assert " % (95 %: " in said[0]
    assert said[1].startswith("Bridges differ: variance of the frailty ")
    assert said[2].endswith("until 2014; forecasts keep those of then.")
    assert sum("test of fit is not made" in line for line in lines) == 1
    table = pl.read_csv(folder / "m.coefficients.csv")
    more = table.filter(pl.col("state").is_null())
    assert {"errors: rated one better", "frailty: variance", "trend"} <= set(more["term"])
    assert more["label"].null_count() == len(more)


def test_a_half_life_and_a_first_day(folder, fitted):
    weighted = call("fit", folder / "t.csv", "--half-life", 5, "--since", 2006, "--out", folder / "w.json")
    assert weighted.exit_code == 0, weighted.stderr
    assert "A visit 5 years before the last one has half its weight." in weighted.stdout
    assert "that begin before 2006-01-01 left out." in weighted.stdout
    assert "The test of fit is not made with a half-life" in weighted.stdout
    model = rekka.ExponentialHazardMarkovModel.from_json((folder / "w.json").read_text())
    assert (model.half_life, model.records_) == (5.0, None)
    done = call("forecast", folder / "m.json", folder / "t.csv", "--half-life", 5)
    assert (done.exit_code, "whose elements are not taken over" in done.stderr) == (2, True)
    done = call("forecast", folder / "w.json", folder / "t.csv", "--half-life", 5, "--no-member-intervals",
                "--out", folder / "weighted")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "half_life 5" in call("show", folder / "weighted").stdout
    done = call("backtest", folder / "t.csv", "--until", 2012, "--half-life", 5, "--draws", 100, "--verbose")
    assert done.exit_code == 0, done.stderr
    assert "with a half-life" in done.stdout


def test_words_of_each_rating_are_the_users_own(folder):
    done = call("fit", folder / "t.csv", "--errors", "adjacent", "--improvements", "each", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)[0]
    assert [line.split(":")[0] for line in found["elements"][:3]] == [f"True condition {k}" for k in "abc"]
    assert found["elements"][3].startswith("Small repairs without a record, by one rating, members a year of ")
    terms = {row["term"] for row in found["coefficients"]}
    assert {"errors: rating b rated c", "improvements: rating b", "first visit: rating c"} <= terms
    assert not any("state" in line for line in (*terms, *found["remarks"], *found["elements"]))


def test_the_command_is_the_estimator_on_histories(folder, fitted):
    model = rekka.ExponentialHazardMarkovModel.from_json((folder / "m.json").read_text(encoding="utf-8"))
    rows = pl.read_parquet(folder / "pairs.parquet").sort("bridge_id", "history", "date_1")
    own = rekka.ExponentialHazardMarkovModel(
        covariates=[], errors="adjacent-common", frailty="gamma", trend="common"
    ).fit(rows, rows["state_2"], histories=rows["bridge_id", "history"], groups=rows["bridge_id"])
    assert model.log_likelihood_ == pytest.approx(own.log_likelihood_, abs=1e-9)
    assert model.records_.by == "bridge_id"
    assert model.reading_.mapping["rules"]["upward"] == "keep"


def test_transitions_with_histories_are_taken_as_they_are(folder):
    read = [
        json.loads(call("fit", folder / name, "--errors", "adjacent-common", "--json").stdout)[0]
        for name in ("t.csv", "pairs.parquet")
    ]
    assert read[0]["log_likelihood"] == pytest.approx(read[1]["log_likelihood"], abs=1e-9)


def test_improvements_that_no_element_explains_are_left_out_and_counted(folder):
    done = call("fit", folder / "t.csv", "--frailty", "gamma")
    assert done.exit_code == 0, done.stderr
    rows = pl.read_parquet(folder / "pairs.parquet")
    count = rows.filter(pl.col("state_2") < pl.col("state_1")).height
    assert f"{count} improvements by one rating left out as repairs" in done.stdout
    assert f"fitted to {len(rows) - count} transitions" in done.stdout


def test_bridges_are_ranked(folder, fitted):
    done = call("bridges", folder / "m.json", "--rows", 3, "--out", folder / "rank.xlsx")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("None is shown to deteriorate faster than others of its kind")
    assert lines[1].startswith("3 of 80, the fastest first; the intervals of 0 of all lie above 1")
    assert lines[-1] == f"written: {folder / 'rank.xlsx'}"
    assert len(pl.read_excel(folder / "rank.xlsx")) == 80
    rows = json.loads(call("bridges", folder / "m.json", "--json").stdout)
    assert [row["factor"] for row in rows] == sorted((row["factor"] for row in rows), reverse=True)
    assert rows[0]["sentence"].startswith("F")
    assert " times as fast as others of its kind (95 %: " in rows[0]["sentence"]


def test_a_bridge_that_is_surely_faster_comes_first(capsys):
    columns = ("case", "by", "bridge", "factor", "low", "high", "sentence")
    table = pl.DataFrame([("Pier", "bridge", "B1", 1.8, 1.3, 2.6, "B1 deteriorates fast")], columns, orient="row")
    print_bridges(new_console(), table, 5)
    said = capsys.readouterr().out
    assert said.startswith("Pier: B1 deteriorates fast.")
    assert "the intervals of 1 of all lie above 1" in said


def test_bridges_of_models_that_cannot_rank(folder):
    plain = folder / "plain.json"
    assert call("fit", folder / "t.csv", "--out", plain, "--no-test-fit").exit_code == 0
    done = call("bridges", plain)
    assert (done.exit_code, "fit it with --frailty gamma" in done.stderr) == (1, True)
    assert call("fit", folder / "t.csv", "--frailty", "gamma", "--frailty-by", "district", "--out",
                folder / "d.json").exit_code == 0  # fmt: skip
    done = call("bridges", folder / "d.json")
    assert done.exit_code == 0, done.stderr
    assert "the variance of the frailty is 0" in done.stderr
    done = call("bridges", plain, "--out", folder / "rank.txt")
    assert (done.exit_code, "it can be .csv, .xlsx, .parquet" in done.stderr) == (2, True)
    done = call("bridges", plain, plain)
    assert (done.exit_code, "Give one of them" in done.stderr) == (2, True)


REFUSED = {
    "t.csv --errors near": "errors is 'near'; it can be",
    "t.csv --frailty beta": "frailty is 'beta'; it can be",
    "t.csv --first old": "first is 'old'; it can be",
    "t.csv --clock slow": "clock is 'slow'; it can be middle, start, running",
    "t.csv --frailty-by district": "no frailty is asked for",
    "t.csv --frailty gamma --frailty-by distrikt": "Did you mean district?",
    "t.csv --frailty gamma --frailty-by member": "does not name members of one bridge",
    "t.csv --frailty gamma --frailty-by crew": "crew changes within ",
    "one.csv --frailty gamma": "All rows belong to one bridge",
    "no_history.csv --errors adjacent": "have no column history",
    "no_dates.csv --trend common": "date_1 is not in the table, and a trend needs the date",
    "whole.csv --errors adjacent-common --first new": "no covariate here is an age",
    "t.csv --first new": "begin after a repair, an improvement or a gap",
    "t.csv --errors adjacent --upward restart": "upward is 'restart'",
    "t.csv --errors adjacent --ridge 1": "ridge is 1.0, which a fit of histories",
    "t.csv --errors adjacent --bootstrap 5": "bootstrap is 5, which a fit of histories",
    "t.csv --half-life 0": "--half-life is 0.0; a number of years above 0 is needed",
    "t.csv --half-life nan --errors adjacent": "--half-life is nan; a number of years above 0 is needed",
    "no_dates.csv --half-life 5": "a half-life needs the date of each first visit",
    "no_dates.csv --since 2010": "since needs the date of each first visit",
    "t.csv --since soon": "since is 'soon'; a date such as 2008-12-31 or a year such as 2008 is needed",
    "t.csv --errors adjacent --cluster local": "cluster is 'local', which a fit of histories",
}


@pytest.mark.parametrize("asked", REFUSED)
def test_refused_in_a_sentence(folder, asked):
    table, *options = asked.split()
    done = call("fit", folder / table, *options)
    assert done.exit_code in (1, 2)
    assert REFUSED[asked] in " ".join(done.stderr.split())
    assert "Traceback" not in done.output


def test_a_fit_chooses_its_elements_by_later_visits(folder):
    make_inspections(150, errors=0.12).write_csv(folder / "erring.csv")
    done = call("fit", folder / "erring.csv", "--models", "errors", "--out", folder / "chosen.json")
    assert done.exit_code == 0, done.stderr
    assert "all: errors; lowers the error (ranked probability score) of forecasts up to" in done.stdout
    assert "Inspectors rate one better in " in done.stdout
    assert "left out as repairs: improvements by two ratings or more." in done.stdout
    model = rekka.ExponentialHazardMarkovModel.from_json((folder / "chosen.json").read_text())
    assert model.errors_ is not None
    done = call("fit", folder / "erring.csv", "--models", "plain", "--json")
    found = json.loads(done.stdout)[0]
    assert found["choice"]["model"] == "plain"
    assert found["elements"] == []


def test_a_backtest_prints_what_was_compared_first(folder):
    table = folder / "erring2.csv"
    make_inspections(150, errors=0.12).write_csv(table)
    done = call(
        "backtest", table, "--models", "errors", "--until", "2010", "--draws", "100", "--out", folder / "bt"
    )
    assert done.exit_code == 0, done.stderr
    assert "all: errors; lowers the error" in done.stdout
    assert "models compared on" in call("show", folder / "bt").stdout
    done = call("backtest", table, "--models", "errors", "--until", "2010", "--draws", "100", "--verbose")
    assert done.stdout.startswith("all: errors; lowers the error")
    assert "models compared on" in done.stdout
    assert "+ errors" in done.stdout
    assert "On visits that no choice has seen" in done.stdout
    done = call("backtest", table, "--models", "error", "--until", "2010")
    assert done.exit_code == 2
    assert "Did you mean errors?" in done.stderr
    done = call("fit", table, "--models", "auto", "--errors", "adjacent")
    assert "models chooses the elements itself" in done.stderr


def test_the_scores_fit_a_narrow_terminal(folder):
    make_inspections(60, errors=0.12).write_csv(folder / "narrow.csv")
    asked = ["backtest", str(folder / "narrow.csv"), "--models", "errors", "--until", "2010", "--draws", "100"]
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*asked, "--verbose"])
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("ranked prob. score") for line in lines) >= 1
    assert not any("…" in line for line in lines)
