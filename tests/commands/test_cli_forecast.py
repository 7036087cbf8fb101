"""``rekka forecast`` as a person meets it."""

import dataclasses
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from study_cases import draw_rows
from test_cli import call
from typer.testing import CliRunner, Result

import rekka
from rekka.cli import app
from rekka.fleet import inventory as module
from rekka.fleet.document import load_forecast
from rekka.report.fitted import sketch_forecast
from rekka.report.networks import load_details
from rekka.report.overview import list_components, make_overview
from rekka.report.terminal.overview import MEMBERS
from rekka.report.terminal.tables import WORDS

FILES = {"members.csv", "years.csv", "network.csv", "set_aside.csv", "details.parquet", "forecast.json"}


def call_narrow(*args: object) -> Result:
    """In a terminal of 80 columns."""
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(arg) for arg in args])


def words(text: str) -> str:
    return " ".join(text.split())


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if not file.name.startswith(".")}


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """Inspections of simulated bridges, one of them named like markup, one without a length."""
    folder = tmp_path_factory.mktemp("tables")
    rekka.write_inventory(folder, 60, preset="plain", seed=5)
    inventory = pl.read_csv(folder / "inventory.csv")
    blank = pl.when(pl.col("bridge_id") == "B-00003").then(None).otherwise("bridge_length")
    inventory.with_columns(bridge_length=blank).write_csv(folder / "inventory.csv")
    rows = pl.read_csv(folder / "inspections.csv").filter(pl.col("case").is_in(["Pier", "Deck slab", "Bearing"]))
    rows.write_csv(folder / "inspections.csv")
    return folder


@pytest.fixture(scope="module")
def models(tables, tmp_path_factory) -> Path:
    """Models of two of the three cases."""
    out = tmp_path_factory.mktemp("models") / "models"
    done = call("fit", tables, "--only", "Pier", "--only", "Deck slab", "--use", "age_at_inspection_1,bridge_length",
                "--no-test-fit", "--out", out)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "my run"
    options = {"guard": {"resamples": 0, "ladder": False}, "select_on": "validation", "confirm": False}
    rekka.compare(draw_rows(), methods=["zscore"], out=out, **options)
    return out


def test_the_answer_comes_first(models, tables, tmp_path):
    done = call_narrow("forecast", models, tables, "--out", tmp_path / "out", "--years", 12)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    found = load_forecast(tmp_path / "out")
    document = sketch_forecast(found, details=load_details(tmp_path / "out"))
    made = make_overview(document, WORDS)
    first = words(" ".join(lines[:10]))
    assert words(" ".join(lines)).startswith(made.headline)
    assert made.trust in first
    (missing,) = (one for one in found.aside if one.reason == "bridge_length is missing")
    assert f"Not forecast: {missing.count} members (bridge_length is missing: {missing.count})." in first
    assert "No model, and in no count: Bearing." in first
    for card in made.cards[:3]:
        assert card.label in first
        assert card.value in first
    said = words(done.stdout)
    for row in list_components(document, WORDS):
        assert f"{row.case} zscore {row.members} {row.there} {row.soon.reached:.0f} " in said
    assert len(made.first) > MEMBERS
    for place, member in enumerate(made.first):
        line = f"{member.bridge} {member.member} {member.case} {member.rating} {member.seen}"
        assert (line in said) == (place < MEMBERS)
    for line in (*made.missing, *made.actions):
        assert line in said
    assert f"More: rekka show {tmp_path / 'out'} (" in done.stdout
    assert done.stdout.endswith(f"next: rekka effects {models}\n")


def test_what_a_person_is_told(models, tables, tmp_path):
    options = ("--out", tmp_path / "out", "--years", 12, "--top", 3)
    done = call("forecast", models, tables, *options, "--verbose")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(call("show", tmp_path / "out").stdout)
    said = words(done.stdout)
    assert "How the inventory was understood" in said
    assert "each member is as its last usable visit found it" in said
    found = load_forecast(tmp_path / "out")
    assert f"{found.members} members of 2 components forecast for 12 years from {found.base}" in said
    assert "members of Bearing (no model in models)." in said
    assert "bridge_length is missing" in said
    assert "All components: expected number of members in each rating" in said
    assert "year a b c d e d or worse 95% parameters 95% prediction" in said
    assert f" {found.base.year + 12} " in said
    assert "The first 3 not there yet, the soonest to be rated d or worse" in said
    assert "Remarks on members" in said
    assert "rated d or worse already:" in said
    assert "prediction: interval of the number itself" in said
    assert "components are taken as independent; so are members of one bridge" in said
    assert f"next: rekka effects {models}" in said
    assert "NOT CERTIFIED" not in said
    assert names(tmp_path / "out") == FILES
    assert [model.labels for model in found.models] == [("a", "b", "c", "d", "e")] * 2
    members = pl.read_csv(tmp_path / "out" / "members.csv")
    assert members.height == found.members
    assert members["label"].is_in(list("abcde")).all()
    assert found.sources.keys() == {"inspections.csv", "inventory.csv", "traffic.csv", "truth.json"}


def test_json_for_machines(models, tables, tmp_path):
    done = call("forecast", models, tables, "--out", tmp_path / "out", "--years", 3, "--only", "Pier", "--json",
                "--format", "parquet", "--from", "2030", "--threshold", 3, "--no-member-intervals")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout, parse_constant=lambda text: pytest.fail(text))
    assert (found["format"], found["version"], found["base"]) == ("rekka-forecast", 1, "2030-01-01")
    assert [model["case"] for model in found["models"]] == ["Pier"]
    assert found["asked"]["only"] == ["Pier"]
    assert {one["reason"] for one in found["aside"]} == {"bridge_length is missing"}
    assert {total["state"] for total in found["network"] if total["what"] == "in this state or worse"} == {3}
    years = pl.read_parquet(tmp_path / "out" / "years.parquet")
    assert years.height == found["members"] * 4
    assert years["date"].dt.year().unique().sort().to_list() == [2030, 2031, 2032, 2033]


def test_a_run_keeps_its_forecast(run, tmp_path):
    table = tmp_path / "list.csv"
    draw_rows().select(
        "bridge_id", "case", "age_at_inspection_1", "bridge_length", "traffic_mean", state="state_2"
    ).unique(["bridge_id", "case"], keep="first").write_csv(table)
    done = call("forecast", run, table, "--best", 1, "--worst", 4, "--years", 2, "--verbose")
    assert done.exit_code == 0, done.stderr
    said = words(done.stdout)
    assert "has no dates: year 0 is when each member was seen" in said
    assert "the models of a study are fitted to its training rows; rekka fit TABLE fits them to all rows" in said
    assert f"next: rekka report '{run}'" in said
    assert names(run / "forecast") == FILES
    assert "date" not in pl.read_csv(run / "forecast" / "years.csv").columns
    assert call("show", run).exit_code == 0  # the run is what it was
    done = call("forecast", run, table, "--years", 2, "--out", run)
    assert done.exit_code == 2
    assert "my run is a run folder. Choose a folder for the forecast, such as my run/forecast." in done.stderr


def test_a_model_that_is_not_certified(tables, tmp_path):
    rows = rekka.read_transitions(tables).frame.filter(case="Pier")
    model = rekka.ExponentialHazardMarkovModel(covariates=["age_at_inspection_1"], solver="lbfgs", max_iter=1)
    file = tmp_path / "pier.json"
    file.write_text(model.fit(rows, rows["state_2"]).to_json(case="Pier"))
    done = call("forecast", file, tables, "--only", "Pier", "--years", 2, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "Trust: do not use. The fit is not a certified maximum of the likelihood." in done.stdout
    assert "models that are not certified maxima" in done.stdout
    done = call("show", tmp_path / "out")
    assert done.stdout.startswith("NOT CERTIFIED: ")
    assert "Pier: no intervals, because the fit is not a certified maximum" in words(done.stdout)
    assert not pl.read_csv(tmp_path / "out" / "members.csv")["certified"].any()
    assert not pl.read_csv(tmp_path / "out" / "years.csv")["certified"].any()
    assert not pl.read_csv(tmp_path / "out" / "network.csv")["certified"].any()
    assert load_forecast(tmp_path / "out").watermark.startswith("NOT CERTIFIED")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--years", 0], 2, "BadOption: --years is 0; a whole number from 1 to 200 is needed."),
        (["--years", -3], 2, "years is -3; a whole number from 1 to 200 is needed."),
        (["--years", 201], 2, "years is 201; a whole number from 1 to 200 is needed."),
        (
            ["--threshold", 1],
            2,
            "Deck slab: threshold is '1', the best rating, which every member has reached. The ratings are a, b,",
        ),
        (["--threshold", 6], 2, "Deck slab: threshold is '6'. The ratings are a, b, c, d, e, best first."),
        (["--age", "old"], 2, "age is 'old'; it can be advances, held, fixed."),
        (["--advance", "agee"], 2, "advance names agee, which is not a covariate of any model"),
        (["--intervals", "profile"], 2, "intervals is 'profile'; it can be delta, normal, bootstrap, none."),
        (["--intervals", "bootstrap"], 2, "needs a model that carries refits to resampled bridges"),
        (["--draws", 10], 2, "draws is 10; a whole number of at least 100 is needed."),
        (["--level", 95], 2, "level is 95.0; a number between 0 and 1 is needed"),
        (["--from", "soon"], 2, "--from is 'soon'; a date such as 2008-12-31 or a year such as 2008 is needed."),
        (
            ["--from", "1900"],
            1,
            "no member has a state that a forecast could start from (nothing was found up to that day).",
        ),
        (
            ["--only", "Peer"],
            2,
            "There is no component 'Peer'. Components there: Bearing, Deck slab, Pier. Did you mean Pier?",
        ),
        (["--format", "html"], 2, "format is 'html'; it can be parquet, csv, xlsx."),
        (["--format", "xlsx", "--years", 8, "--only", "Pier", "--from", "2100"], 0, ""),
        (["--seed", -1], 2, "--seed"),
        (["--top", -1], 2, "--top"),
    ],
)
def test_wrong_options(models, tables, tmp_path, options, code, message):
    done = call("forecast", models, tables, "--out", tmp_path / "out", *options)
    assert done.exit_code == code, done.stderr
    assert message in words(done.stderr)
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out").exists() == (code == 0)


def test_wrong_paths(models, tables, tmp_path):
    for path, code, message in (
        (tmp_path / "nowhere", 1, "RunFolderError: There is no run folder or model file nowhere."),
        (tables, 1, "is neither a run folder (there is no study.toml in it) nor a folder of model files"),
        (tables / "inspections.csv", 1, "ModelFileError: inspections.csv: This is not a rekka model file"),
    ):
        done = call("forecast", path, tables)
        assert (done.exit_code, "Traceback" in done.stderr) == (code, False)
        assert message in words(done.stderr)
    empty = tmp_path / "empty.csv"
    empty.write_text("bridge,case,date,state\n")
    done = call("forecast", models, empty)
    assert (done.exit_code, done.stderr) == (1, "UnreadableTable: empty.csv has a header and no rows below it.\n")
    assert call("forecast", models, tmp_path / "gone.csv").exit_code == 1
    done = call("forecast", models, empty, tables)
    assert done.exit_code == 2
    assert "one table is read at a time" in done.stderr


def test_a_run_without_models(run, tables, tmp_path):
    begun = Path(shutil.copytree(run, tmp_path / "begun"))
    for file in (*(begun / "trials").iterdir(), *(begun / "choices").iterdir()):
        file.unlink()
    done = call("forecast", begun, tables)
    assert done.exit_code == 1
    assert (
        "begun has no model to forecast with (Deck slab: the trial of zscore has not been run yet" in done.stderr
    )


def test_columns_that_the_model_needs(models, tmp_path):
    table = tmp_path / "list.csv"
    table.write_text("bridge,case,state,age_at_inspection_1\nA,Pier,b,30\nB,Pier,a,20\n")
    done = call("forecast", models, table)
    assert done.exit_code == 1
    assert done.stderr.startswith(
        "MissingColumns: bridge_length is not in list.csv. Columns there: age_at_inspection_1"
    )


def test_ctrl_c_leaves_nothing(models, tables, tmp_path, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "rank_members", stop)
    done = call("forecast", models, tables, "--out", tmp_path / "out", "--years", 2)
    assert (done.exit_code, done.stderr) == (130, "Stopped.\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
def test_a_signal_in_the_middle_of_draws(models, tables, tmp_path):
    """While it draws: it ends soon, with its folder gone."""

    def interrupt() -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until and not list(tmp_path.glob("out/forecast.*.unfinished")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    other = threading.Thread(target=interrupt)
    other.start()
    try:
        options = ("--intervals", "normal", "--draws", 1000, "--years", 100, "--out", tmp_path / "out")
        done = call("forecast", models, tables, *options)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it comes too late, it ends no test run
        other.join()
        signal.signal(signal.SIGINT, before)
    assert done.exit_code == 130
    assert done.stderr.endswith("Stopped.\n")
    assert "Traceback" not in done.output
    assert not (tmp_path / "out").exists()


def test_bootstrap_and_held_ages(tables, tmp_path):
    file = tmp_path / "pier.json"
    done = call("fit", tables, "--only", "Pier", "--use", "age_at_inspection_1", "--bootstrap", 110, "--out", file)
    assert done.exit_code == 0, done.stderr
    done = call("forecast", file, tables, "--only", "Pier", "--intervals", "bootstrap", "--age", "held", "--years", 3,
                "--out", tmp_path / "out", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    found = load_forecast(tmp_path / "out")
    assert found.models[0].intervals == "bootstrap"
    assert all(
        total.low <= total.expected + 1e-9 <= total.high + 2e-9 or total.year == 0 for total in found.network
    )
    told = "age_at_inspection_1 advancing by the year, up to the largest of the training rows"
    assert f"{told} (fitted at the middle of each interval)" in found.notes
    assert (found.models[0].clock, found.models[0].lag_years) == ("middle", 0.0)


def test_components_without_a_choice_are_left_out_of_the_totals_and_named(run, tmp_path, monkeypatch):
    study = rekka.load_study(run)
    none = study.choice("Pier").model_copy(update={"chosen": None})
    some = dataclasses.replace(study, choices=(none, study.choice("Deck slab")))
    monkeypatch.setattr("rekka.study.models.load_study", lambda folder: some)
    rows = draw_rows().with_columns(member=pl.format("M-{}", pl.int_range(pl.len())))
    rows.write_csv(tmp_path / "list.csv")
    command = ("forecast", run, tmp_path / "list.csv", "--years", 3, "--intervals", "none", "--out")
    left = call(*command, tmp_path / "left")
    assert left.exit_code == 0, left.stderr
    assert "of 120 members will be rated" in words(left.stdout)
    assert "No model, and in no count: Pier." in words(left.stdout)
    told = words(call("show", tmp_path / "left").stdout)
    assert "120 members of 1 component forecast" in told
    assert "Left out, also of the totals: 120 members of Pier (no model was chosen:" in told
    found = load_forecast(tmp_path / "left")
    assert [(one.case, one.members) for one in found.left_out] == [("Pier", 120)]
    assert found.members == 120
    asked = call(*command, tmp_path / "all", "--include-unchosen")
    assert "of 240 members will be rated" in words(asked.stdout)
    assert "No model was chosen for Pier; their members are counted with the default method" in asked.stdout
    assert "NOT CHOSEN" in call("show", tmp_path / "all").stdout
    found = load_forecast(tmp_path / "all")
    assert {one.case: one.chosen for one in found.models} == {"Deck slab": True, "Pier": False}
    assert {one.case for one in found.network if not one.chosen} == {"Pier", "all cases"}
    for file in ("members.csv", "years.csv"):
        rows = pl.read_csv(tmp_path / "all" / file)
        assert rows.filter(~pl.col("chosen"))["case"].unique().to_list() == ["Pier"]
        assert (rows.filter(case="Pier")["chosen"]).sum() == 0


def test_many_components_without_a_model_are_one_line(models, tables, tmp_path):
    rows = pl.read_csv(tables / "inspections.csv").filter(case="Bearing")
    some = [rows.head(2).with_columns(case=pl.lit(f"Pier {number:02}")) for number in range(30)]
    pl.concat([pl.read_csv(tables / "inspections.csv").filter(case="Pier"), *some]).write_csv(
        tmp_path / "many.csv"
    )
    done = call("forecast", models, tmp_path / "many.csv", "--join", tables / "inventory.csv", "--years", 2,
                "--intervals", "none", "--out", tmp_path / "out")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "No model, and in no count: Pier 00, Pier 01, Pier 02 and 27 more." in words(done.stdout)
    said = words(call("show", tmp_path / "out").stdout)
    assert said.count("Left out, also of the totals: ") == said.count("(no model in models).") == 1
    assert "of Pier 00, Pier 01, Pier 02, Pier 03, Pier 04 and 25 more (no model in models)." in said
    assert "Did you mean" not in said
    found = load_forecast(tmp_path / "out")
    assert [one.case for one in found.left_out] == [f"Pier {number:02}" for number in range(30)]
    reasons = {one.reason: one.count for one in found.aside}
    named = "Pier 00, Pier 01, Pier 02, Pier 03, Pier 04 and 25 more: no model in models"
    assert reasons[named] == sum(one.members for one in found.left_out)


@pytest.mark.parametrize("command", ["matrix", "effects"])
def test_models_that_were_not_chosen_are_marked(command, run, monkeypatch):
    study = rekka.load_study(run)
    none = study.choice("Pier").model_copy(update={"chosen": None})
    some = dataclasses.replace(study, choices=(none, study.choice("Deck slab")))
    monkeypatch.setattr("rekka.study.models.load_study", lambda folder: some)
    options = (command, run, "--intervals", "none")
    found = json.loads(call(*options, "--json").stdout)
    assert {one["case"]: one["chosen"] for one in found["cases"]} == {"Deck slab": True, "Pier": False}
    marked = call(*options, "--only", "Pier")
    assert marked.stdout.splitlines()[1].startswith("NOT CHOSEN: the study chose no model for Pier")
    assert "NOT CHOSEN" not in call(*options, "--only", "Deck slab").stdout


def test_a_wider_band_for_errors_that_all_members_share(models, tables, tmp_path):
    options = ("--years", 6, "--only", "Pier", "--no-member-intervals", "--shocks")
    done = call("forecast", models, tables, *options, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    said = words(call("show", tmp_path / "out").stdout)
    assert "95% wider" in said
    assert "earlier forecasts (" in said
    network = pl.read_csv(tmp_path / "out" / "network.csv")
    assert (network["predicted_shock_low"] <= network["predicted_low"]).all()
    assert (network["predicted_shock_high"] >= network["predicted_high"]).all()
    document = load_forecast(tmp_path / "out")
    assert "With errors that all members share: " in done.stdout
    assert [one.case for one in document.shocks] == ["Pier"]
    assert document.network[-1].predicted_shock_high == network["predicted_shock_high"][-1]


@pytest.fixture(scope="module")
def repaired(models, tables, tmp_path_factory) -> tuple[Path, Result]:
    """A forecast with ten repaired members that a file names, and what it printed."""
    folder = tmp_path_factory.mktemp("repaired")
    found = rekka.forecast_inventory(models, tables, years=12, member_intervals=False)
    rows = found.select(worst=10).with_columns(age=pl.Series([0.0] * 3 + [None] * 7))
    rows.write_csv(folder / "plan.csv")
    options = ("--years", 12, "--repaired", folder / "plan.csv", "--out", folder / "out")
    return folder / "out", call_narrow("forecast", models, tables, *options)


def test_the_first_line_says_what_repairs_change(repaired, models, tables, tmp_path):
    out, done = repaired
    assert done.exit_code == 0, done.stderr
    said = words(done.stdout)
    table, members = pl.read_csv(out / "whatif.csv"), pl.read_csv(out / "whatif_members.csv")
    total = table.filter(pl.col("scope") == "network", pl.col("what") == "in this state or worse")
    row = total.row(10, named=True)
    year = row["date"][:4]
    expected = (
        f"Repairing 10 members lowers the number rated d or worse in {year} from {row['expected']:,.0f} to "
        f"{row['repaired']:,.0f}: {-row['difference']:,.1f} fewer (95% interval {-row['difference_high']:,.1f} to "
        f"{-row['difference_low']:,.1f})."
    )
    assert said.startswith(expected)
    assert "The first 10 of 10 repaired members" in said
    assert members.height == 10
    assert (members["repaired_label"] == "a").all()
    assert names(out) == FILES | {"whatif.csv", "whatif_members.csv"}
    assert {"whatif.csv", "whatif_members.csv"} < set(load_forecast(out).files)
    call("forecast", models, tables, "--years", 12, "--out", tmp_path / "plain")
    for name in ("network.csv", "members.csv", "years.csv"):
        assert (out / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    assert (
        sketch_forecast(load_forecast(out)).network == sketch_forecast(load_forecast(tmp_path / "plain")).network
    )


def test_the_worst_are_repaired_and_files_of_an_earlier_plan_go(models, tables, tmp_path):
    out = tmp_path / "out"
    options = ("--years", 12, "--out", out, "--intervals", "none")
    done = call("forecast", models, tables, *options, "--repaired", 3, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["what_if"]["members"]) == 3
    assert found["what_if"]["network"][-1]["difference"] < 0
    assert call("show", out).exit_code == 0
    assert call("forecast", models, tables, *options).exit_code == 0
    assert names(out) == FILES


@pytest.mark.parametrize(
    ("table", "words_said"),
    [
        ("bridge,component,member\nB-00001,Pier,P-99\n", "row 2: bridge B-00001 has no "),
        ("bridge\nB-0\n", "row 2: there is no bridge 'B-0' in inspections.csv"),
        ("bridge,rating\nB-00001,f\n", "row 2: rating is 'f'. The ratings are a, b, c, d, e, best first."),
        ("bridge,when\nB-00001,2030\n", "has a column when, which says nothing of a repair."),
    ],
)
def test_a_plan_that_cannot_be_meant(models, tables, tmp_path, table, words_said):
    (tmp_path / "plan.csv").write_text(table)
    done = call("forecast", models, tables, "--repaired", tmp_path / "plan.csv", "--out", tmp_path / "out")
    assert done.exit_code == 1
    assert words_said in words(done.stderr)
    assert not (tmp_path / "out").exists()


def test_a_plan_is_never_written_over(models, tables, tmp_path):
    plan = tmp_path / "whatif.csv"
    plan.write_text("bridge\nB-00001\n")
    done = call("forecast", models, tables, "--repaired", plan, "--out", tmp_path)
    assert done.exit_code == 2
    assert plan.read_text() == "bridge\nB-00001\n"
