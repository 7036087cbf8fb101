"""Every output shows ratings by the user's own labels: commands, page and Markdown, in both languages."""

import html
import json
import re

import polars as pl
import pytest
from test_cli import call

import rekka

LABELS = ("alpha", "beta", "gamma", "delta")
NUMBERED = re.compile(r"\b[Ss]tates? \d|健全度\d(?!段階)")
METHOD = "states 1 to K"  # the section on the method counts them
COLUMNS = "--labels", ",".join(LABELS)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("ratings") / "piers.csv"
    found = rekka.simulate_inventory(140, preset="plain", seed=4)
    names = dict(zip("abcde", (*LABELS, LABELS[-1]), strict=True))
    rows = found.inspections.filter(pl.col("case") == "Pier").with_columns(pl.col("state").replace(names))
    rows.join(found.inventory.select("bridge_id", "bridge_length"), on="bridge_id").write_csv(path)
    return path


@pytest.fixture(scope="module")
def models(table):
    folder = table.parent / "models"
    done = call("fit", table, *COLUMNS, "--out", folder, "--test-fit", "--verbose")
    assert done.exit_code == 0, done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def run(table):
    folder = table.parent / "run"
    done = call(
        "compare", table, *COLUMNS, "--methods", "zscore", "--resamples", 2, "--no-report", "--out", folder
    )
    assert done.exit_code == 0, done.stderr
    return folder, done.stdout


def check(text, *shown):
    assert not NUMBERED.search(text), NUMBERED.search(text)
    for one in shown:
        assert one in text


def test_fit(models):
    check(models[1], "alpha  intercept", "gamma  bridge_length", "4 ratings")
    table = pl.read_csv(models[0] / "coefficients.csv")
    assert table.select("state", "label").unique(maintain_order=True).rows() == [
        (1, "alpha"),
        (2, "beta"),
        (3, "gamma"),
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "threshold: rating delta or worse, the 4th of 4 ratings; the default, the 4th rating"),
        (("--threshold", "gamma"), "threshold: rating gamma or worse, the 3rd of 4 ratings"),
        (("--threshold", "3"), "threshold: rating gamma or worse, the 3rd of 4 ratings"),
    ],
)
def test_forecast(models, table, tmp_path, options, told):
    brief = call("forecast", models[0], table, *options, "--years", 5, "--out", tmp_path / "out")
    done = call("show", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    worse = "gamma or worse" if options else "delta or worse"
    check(brief.stdout, f"members will be rated {worse}")
    check(done.stdout, f"were rated {worse} when last seen", told)
    assert re.search(r"year +alpha +beta +gamma +delta", done.stdout)
    members = pl.read_csv(tmp_path / "out" / "members.csv")
    state = 3 if options else 4
    assert members.select("threshold", "threshold_label").unique().rows() == [(state, LABELS[state - 1])]
    assert all(LABELS[number - 1] == label for number, label in members.select("state", "label").rows())
    assert json.loads((tmp_path / "out" / "forecast.json").read_text())["models"][0]["labels"] == list(LABELS)


@pytest.mark.parametrize("layout", ["square", "long", "percent", "median"])
def test_matrix(models, layout):
    check(call("matrix", models[0], "--layout", layout).stdout, "alpha", "gamma")


def test_effects(models):
    done = call("effects", models[0], "--start", "beta", "--threshold", "delta", "--intervals", "delta")
    check(done.stdout, "Pier: years from rating beta to delta or worse", "gamma")
    assert "Did you mean gamma?" in call("effects", models[0], "--threshold", "gama").stderr


def test_backtest(table):
    options = ("--until-visit", 3, "--draws", 100, "--no-test-fit")
    check(call("backtest", table, *COLUMNS, *options).stdout, "Found at rating delta or worse")
    done = call("backtest", table, *COLUMNS, *options, "--verbose")
    assert done.exit_code == 0, done.stderr
    check(done.stdout, "Pier: visits in rating delta or worse", "found rating delta or worse; expected")


def test_checks(table, run):
    check(call("check", table, *COLUMNS, "--all").stdout, "Starting in rating delta, the worst seen")
    check(call("checks", run[0], "--quick").stdout)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("lang", "shown"),
    [
        (
            "en",
            (
                "years from new to rating delta or worse",
                "starting from rating alpha",
                "to rating gamma",
                "between beta and",
            ),
        ),
        ("ja", ("健全度deltaに至るまで", "健全度alphaから健全度deltaに劣化", "健全度gammaへ")),
    ],
)
def test_report(run, lang, shown):
    check(run[1])
    report = rekka.load_study(run[0]).report(calibrate=False, lang=lang)
    page = re.sub(r"<(script|style).*?</\1>", " ", report.html, flags=re.DOTALL)
    seen = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))
    check(seen.replace(METHOD, ""), *shown[:2])
    check(report.to_markdown().replace(METHOD, ""), *shown)
    assert report.document.labels == LABELS


def test_python_takes_labels_and_numbers(models):
    model = rekka.ExponentialHazardMarkovModel.from_json(next(models[0].glob("*.json")).read_text())
    by_label = model.years_to_reach("gamma", start="beta", intervals="none")
    by_number = model.years_to_reach(3, start=2, intervals="none")
    assert by_label["mean"].to_list() == by_number["mean"].to_list()
    assert by_label.select("start_label", "label").rows() == [("beta", "gamma")]
    assert by_label.title.startswith("years until rating gamma or worse")
    assert model.forecast(threshold="gamma", start=["alpha"], years=2, intervals="none").threshold == 3
    several = pl.DataFrame({"bridge_length": [20.0, 30.0]})
    found = model.forecast(several, 2, start=pl.Series(["alpha", "gamma"]), intervals="none")
    assert found.start.tolist() == [1, 3]
    assert found.table()["start_label"].to_list() == ["alpha"] * 3 + ["gamma"] * 3
    assert model.marginal_effects(start="beta", threshold="delta", intervals="none").journey == (
        "from rating beta to delta or worse"
    )
