"""``rekka compare``, ``show`` and ``fit`` as a person meets them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import test_cli
from test_cli import run
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.commands.show import SECTIONS
from rekka.report.overview import list_components, make_overview, name_level
from rekka.report.terminal.tables import WORDS

ON_VALIDATION = ("--select-on", "validation")  # folds take longer


def call(*args):
    """As in ``test_cli``; the report of a comparison is looked at in ``test_cli_report``, resamples in ``study/``."""
    quick = ["--no-report"] if args[0] == "compare" and "--help" not in args else []
    begun = {"--resume", "--resamples"} & set(map(str, args)) or any(
        Path(arg).suffix == ".toml" for arg in map(str, args)
    )
    return test_cli.call(*args, *quick, *([] if begun or not quick else ["--resamples", 0]))


def show_narrow(run, width, *options):
    """What is shown in a terminal of so many columns."""
    return CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["show", str(run), *options])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Transitions of three cases, with their part."""
    inventory = rekka.simulate_inventory()
    found = rekka.read_transitions(
        inventory.inspections, join=[{"file": inventory.inventory}, {"file": inventory.traffic}]
    )
    rows = rekka.partition_paper(found.frame).rows()
    few = rows.filter(pl.col("case").is_in(["Abutment", "Main girder", "Slope protection"]))
    path = tmp_path_factory.mktemp("data") / "transitions.csv"
    few.select("bridge_id", "case", "state_1", "state_2", "interval_years", *found.covariates, "part").write_csv(
        path
    )
    return path


@pytest.fixture(scope="module")
def finished(table, tmp_path_factory):
    """A run under both presets."""
    out = tmp_path_factory.mktemp("runs") / "run"
    done = call("compare", table, "--preset", "both", "--resamples", 2, *ON_VALIDATION, "--out", out)
    assert done.exit_code == 0, done.stderr
    return out, done.stdout


def words(text):
    return " ".join(text.split())


def test_compare_answers_first(finished):
    """In the words of the page; without a report there are no counts."""
    out, said = finished
    document = rekka.make_report(out, calibrate=False).document
    made = make_overview(document.model_copy(update={"network": None}), WORDS)
    lines = show_narrow(out, 80, "--section", "overview").stdout.splitlines()
    assert len(lines) <= 30
    first = words(" ".join(lines[:10]))
    assert made.trust in first
    assert words(said).startswith(f"{made.headline} {made.trust}")
    assert [
        line for line in (*made.missing, *made.actions) if line.replace(" RUN", f" {out}") not in words(said)
    ] == []
    for row, answer in zip(list_components(document, WORDS), document.answers, strict=True):
        level = name_level(row.trust.level, WORDS)
        assert f"{row.case} {answer.method} {row.passage.median:.1f} {level}" in words(said)
    assert f"More: rekka report {out} (" in said
    assert f"rekka show {out} (" in said
    found = rekka.check_study(out)
    issues = [one.code for one in found if one.verdict == "issue"]
    tips = sum(one.verdict == "tip" for one in found)
    assert f"rekka checks {out} ({len(issues)} issues: {', '.join(issues)}, {tips} tips)" in said
    assert "Chosen, preset" not in said


def test_verbose_prints_everything(finished):
    out, _ = finished
    said = call("compare", "--resume", out, "--verbose").stdout
    shown = call("show", out).stdout
    assert said.startswith(shown)
    assert "3 components by 4 methods under 2 presets: 24 trials. as the column part says." in said
    assert "exact (Newton on the exact likelihood): 8 certified, 4 no finite maximum" in said
    assert re.search(r"Slope protection +none: no fit is a certified maximum", said)
    assert "pooled with the 2 other components instead" in words(said)
    assert "Confirmed on the confirmation rows" in said
    assert "What to look at" in said
    assert "R402 tip  No finite maximum: Slope protection" in said
    assert f"The run is in {out}" in words(said)


def test_the_run_folder_is_complete(finished):
    out, _ = finished
    names = {file.name for file in out.iterdir()}
    assert names >= {
        "study.toml", "provenance.json", "partition.parquet", "log.txt", "cases", "trials", "models", "scalings",
        "trials.parquet", "trials.csv", "trials.json", "selection.csv", "methods.csv", "hypotheses.json",
    }  # fmt: skip
    assert [len(list((out / folder).iterdir())) for folder in ("trials", "models", "scalings", "cases")] == [
        25,  # the 24 of the plan, and the pooled fit of Slope protection
        25,
        25,
        3,
    ]
    trials = json.loads((out / "trials.json").read_text())
    assert len(trials["trials"]) == 24
    provenance = json.loads((out / "provenance.json").read_text())["body"]
    assert provenance["versions"]["rekka"] == rekka.__version__
    assert next(iter(provenance["data"]["files"].values()))


def test_a_study_file_runs_it_again(finished, tmp_path):
    out, _ = finished
    done = call("compare", out / "study.toml", "--preset", "exact", "--out", tmp_path / "again", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["done"], found["planned"]) == (12, 12)
    ours, theirs = (
        pl.read_parquet(folder / "trials.parquet")
        .filter(preset="exact")
        .drop("seconds", "seconds_low", "seconds_high")
        for folder in (out, tmp_path / "again")
    )
    assert ours.equals(theirs)


def test_a_finished_run_is_not_begun_again(finished, table):
    out, _ = finished
    done = call("compare", table, "--out", out)
    assert done.exit_code == 1
    assert f"RunFolderError: {out.name} holds a study already, with 25 trials done." in done.stderr
    assert "Traceback" not in done.stderr


def test_resume_of_a_finished_run_shows_it(finished):
    out, said = finished
    done = call("compare", "--resume", out)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == said


def test_resume_with_other_options_is_refused(finished, table):
    out, _ = finished
    done = call("compare", table, "--resume", out, "--methods", "zscore")
    assert done.exit_code == 1
    assert "study.methods was max, minmax, zscore, boxcox, is zscore" in done.stderr


def test_show_has_every_table(finished):
    out, _ = finished
    done = call("show", out)
    assert done.exit_code == 0, done.stderr
    for title in ("Components: rows", "Methods, preset paper", "Chosen, preset exact", "Every trial, preset paper",
                  "is it the data or the optimizer?", "The paper's hypotheses, preset exact", "What to look at"):  # fmt: skip
        assert title in done.stdout
    one = call("show", out, "--section", "trials")
    assert "Every trial" in one.stdout
    assert "What to look at" not in one.stdout
    found = json.loads(call("show", out, "--json").stdout)
    assert len(found["trials"]) == 24


def test_show_prints_the_section_that_is_asked_for(finished):
    out, _ = finished
    for section in SECTIONS:
        done = call("show", out, "--section", section)
        assert done.exit_code == 0, f"{section}: {done.stderr or done.exception}"
    said = call("show", out, "--section", "calibration").stdout
    assert "Model check: the chosen models on their training rows" in said


def test_show_refuses_what_is_no_run(tmp_path):
    done = call("show", tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path.name} is not a run folder: there is no study.toml in it." in done.stderr
    assert call("show", tmp_path / "nothing").exit_code == 1


def test_show_refuses_an_unknown_section(finished):
    done = call("show", finished[0], "--section", "trails")
    assert done.exit_code == 2
    assert "is none of overview, reading, cases, methods" in words(done.stderr)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "zscor"], "Did you mean zscore?"),
        (["--preset", "fast"], "BadOption: --preset is 'fast'; it can be exact, paper"),
        (["--cost", "money"], "BadOption: --cost is 'money'; it can be auto, seconds, evaluations"),
        (["--only", "Abutmen"], "There is no component 'Abutmen'. Components there: Abutment, Main girder, Slope protection. Did you mean Abutment?"),
        (["--methods", "zscore,zscore", "--only", "Slope protection"], None),
        (["--partition", "weekday"], "partition.scheme"),
        (["--partition", "date"], "scheme = 'date' and until, the last day of training, belong together"),
    ],
)  # fmt: skip
def test_wrong_options(table, tmp_path, options, message):
    done = call("compare", table, "--out", tmp_path / "run", *options)
    if message is None:
        assert done.exit_code == 0, done.stderr
        return
    assert done.exit_code == 2
    assert message in words(done.stderr)
    assert not (tmp_path / "run" / "study.toml").exists()


def test_groups_of_methods(table, tmp_path):
    done = call(
        "compare", table, "--methods", "beyond", "--only", "Main girder", "--out", tmp_path / "r", "--json"
    )
    assert done.exit_code == 0, done.stderr
    assert [line["method"] for line in json.loads(done.stdout)["methods"]] == [
        "boxcox+zscore", "yeojohnson+zscore", "log+zscore", "robust",
    ]  # fmt: skip


@pytest.mark.slow
def test_two_workers_give_the_same_table(finished, table, tmp_path):
    options = (
        "--clock",
        "start",
        "--resamples",
        2,
        "--workers",
        2,
        "--only",
        "Main girder",
        *ON_VALIDATION,
    )  # the clock of both presets together
    done = call("compare", table, *options, "--out", tmp_path / "two")
    assert done.exit_code == 0, done.stderr
    dropped = ("seconds", "seconds_low", "seconds_high", "pareto")  # the paper's rule selects on seconds
    ours, theirs = (
        pl.read_parquet(folder / "trials.parquet").filter(preset="exact", case="Main girder").drop(dropped)
        for folder in (finished[0], tmp_path / "two")
    )
    assert ours.equals(theirs)
    assert ours["timings"].to_list() == [1] * 4


@pytest.mark.skipif(os.name != "posix", reason="signals are sent the POSIX way")
def test_ctrl_c_leaves_a_run_that_goes_on(table, tmp_path):
    out = tmp_path / "run"
    code = "from rekka.cli import main; main()"
    command = [sys.executable, "-c", code, "compare", str(table), "--preset", "paper"]
    command += ["--only", "Main girder", "--resamples", "0", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and len(list((out / "trials").glob("*.json"))) < 2:
        time.sleep(0.01)  # the first is counted once its file is there: by the second file it surely is
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    told = r"Stopped after \d+ of 4 trials\. What is done is kept\. Continue with: rekka compare --resume"
    assert re.search(told, words(errors))
    assert "Traceback" not in errors
    done = call("compare", "--resume", out)
    assert done.exit_code == 0, done.stderr
    assert len(pl.read_parquet(out / "trials.parquet")) == 4


@pytest.mark.parametrize(
    "stage",
    [
        "rekka.study.compare.choose",
        "rekka.study.compare.confirm_choices",
        "rekka.workflows.reports.forecast_own_tables",
        "rekka.workflows.reports.write_report",
    ],
)
def test_ctrl_c_after_the_trials_says_how_to_continue(table, tmp_path, monkeypatch, stage):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, interrupted)
    out = tmp_path / "run"
    options = ("--only", "Main girder", "--methods", "zscore", "--resamples", 0, *ON_VALIDATION)
    done = test_cli.call("compare", table, *options, "--out", out)
    assert done.exit_code == 130
    told = f"Stopped after 1 of 1 trials. What is done is kept. Continue with: rekka compare --resume {out}\n"
    assert done.stderr == told
    assert not (out / "report.html").exists()
    monkeypatch.undo()
    done = test_cli.call("compare", "--resume", out)
    assert done.exit_code == 0, done.stderr
    assert (out / "report.html").exists()


def test_a_disk_that_is_full(table, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = call("compare", table, "--out", tmp_path / "run", "--only", "Main girder")
    assert done.exit_code == 1
    told = "study.toml cannot be written: No space left on device. Make room there, or write to another disk.\n"
    assert done.stderr == f"WriteError: {tmp_path / 'run'}{os.sep}{told}"  # nothing was begun
    monkeypatch.undo()
    assert call("compare", table, "--out", tmp_path / "run", "--only", "Main girder").exit_code == 0
    next(iter((tmp_path / "run" / "trials").iterdir())).unlink()
    monkeypatch.setattr(os, "fsync", full)
    done = call("compare", "--resume", tmp_path / "run")
    monkeypatch.undo()
    assert done.exit_code == 1
    assert "What is done is kept. Continue with: rekka compare --resume" in words(done.stderr)


def test_ontario_with_five_and_three_states(ontario, tmp_path):
    for file in ontario.glob("*.csv"):
        shutil.copy(file, tmp_path)
    join = {
        "file": str(tmp_path / "bridge_condition_open_data_2017_update_final.csv"),
        "names": ["id", "name", "latitude", "longitude", "built", "length", "width"],
        "columns": {"bridge": "id", "width": "width"},
        "agree": {"column": "length", "relative": 0.1, "absolute": 2},
    }
    for bands, states in (([85, 75, 70, 60], 5), ([75, 60], 3)):
        mapping = {
            "columns": {"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
            "state": {"bands": bands, "missing": [0]},
            "join": [join],
        }
        study = rekka.compare(
            tmp_path / "bridge_data.csv", mapping, guard={"resamples": 0}, out=tmp_path / f"run{states}"
        )
        assert study.trials["n_states"].unique().to_list() == [states]
        assert study.trials["status"].to_list() == ["certified"] * 4
        assert study.agreement["spread"].item() < 1e-8
        assert study.trials["persistence_accuracy"].is_not_null().all()
        assert len(rekka.load_study(tmp_path / f"run{states}").trials) == 4


def test_fit_saves_models_that_can_be_read(table, tmp_path):
    done = call("fit", table, "--out", tmp_path / "models", "--unit", "traffic_mean=1000", "--verbose")
    assert done.exit_code == 0, done.stderr
    assert "certified: a maximum of the likelihood" in done.stdout
    assert "native units" in done.stdout
    files = sorted(file.name for file in (tmp_path / "models").iterdir())
    assert files == ["abutment.json", "coefficients.csv", "main-girder.json", "slope-protection.json"]
    coefficients = pl.read_csv(tmp_path / "models" / "coefficients.csv")
    assert len(coefficients) == 3 * 4 * 5
    assert set(coefficients.filter(term="traffic_mean")["unit"]) == {1000.0}
    model = rekka.ExponentialHazardMarkovModel.from_json((tmp_path / "models" / "abutment.json").read_text())
    assert model.units == {"traffic_mean": 1000.0}


def test_fit_one_case_into_one_file(table, tmp_path):
    out = tmp_path / "girder.json"
    done = call("fit", table, "--only", "Main girder", "--scaling", "boxcox+zscore", "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert [line["case"] for line in found] == ["Main girder"]
    assert found[0]["file"] == str(out)
    assert out.exists()


def test_fit_refuses_one_file_for_several_cases(table, tmp_path):
    done = call("fit", table, "--out", tmp_path / "one.json")
    assert done.exit_code == 2
    assert "one.json is one file, and there are 3 components. Give a folder, or --only." in done.stderr
    wrong = call("fit", table, "--unit", "traffic_mean")
    assert wrong.exit_code == 2
    assert "is not like traffic_mean=1000" in words(wrong.stderr)
    assert "There is no component 'Pier'" in call("fit", table, "--only", "Pier").stderr


def test_fewer_covariates_by_option(table, tmp_path):
    done = call(
        "compare", table, "--only", "Slope protection", "--use", "age_at_inspection_1", "--out", tmp_path / "r"
    )
    assert done.exit_code == 0, done.stderr
    cases = pl.read_csv(tmp_path / "r" / "cases.csv")
    assert cases["covariates"].to_list() == ["age_at_inspection_1"]
    done = call("fit", table, "--only", "Slope protection", "--use", "age_at_inspection_1, bridge_length")
    assert "traffic_mean" not in done.stdout
    assert "1 component fitted to " in done.stdout
    assert "…" not in done.stdout
    assert "Nothing was written; --out says where." in done.stdout
    done = call("fit", table, "--use", "agee")
    assert "agee is not in the table" in done.stderr


@pytest.mark.parametrize("command", ["compare", "fit"])
def test_a_table_without_transitions(command, tmp_path):
    path = tmp_path / "one_visit.csv"
    path.write_text("bridge,date,state\nA,2001-05-01,1\nB,2003-05-01,2\n")
    out = ["--out", tmp_path / "run"] if command == "compare" else []
    done = call(command, path, *out)
    assert done.exit_code == 1
    assert "No two visits make a transition." in done.stderr
    assert "rekka check" in done.stderr


@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_fit_the_terminal(finished, width):
    done = show_narrow(finished[0], width)
    assert "…" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= width


def test_compare_without_data_takes_the_built_in_inventory(tmp_path):
    done = call("compare", "--only", "Slope protection", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith("No table given: these are simulated bridges.\n")
    assert "No table given" not in call("compare", "--resume", tmp_path / "run").stderr
    assert "no finite maximum" in call("show", tmp_path / "run").stdout
    plan = (tmp_path / "run" / "study.toml").read_text()
    assert 'kind = "inventory"' in plan


def test_help_of_the_study_commands_is_instant_and_has_examples():
    for command in ("compare", "show", "fit"):
        done = run(command, "--help")
        assert f"rekka {command} " in done.stdout
    code = (
        "import sys\nfrom rekka.cli import main\nsys.argv = ['rekka', 'compare', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numba', 'polars', 'numpy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_study_is_moved_with_its_data(table, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(table, project / "rows.csv")
    done = call("compare", project / "rows.csv", "--only", "Main girder", "--out", project / "run")
    assert done.exit_code == 0, done.stderr
    moved = Path(shutil.move(project, tmp_path / "elsewhere"))
    (moved / "run" / "trials" / next(iter((moved / "run" / "trials").iterdir())).name).unlink()
    done = call("compare", "--resume", moved / "run")
    assert done.exit_code == 0, done.stderr
    assert len(pl.read_parquet(moved / "run" / "trials.parquet")) == 4


@pytest.fixture
def odd(tmp_path):
    """Names that are markup, or very long, and a case that cannot be fitted."""
    inventory = rekka.simulate_transitions(200, n_states=3, seed=1).rename({"bridge_length": "length [m]"})
    names = [
        "[/]",
        "a b",
        "a-b",
        "a-b-1",
        "Bridge deck, reinforced concrete, cast in place, northern district, " * 2,
    ]
    frames = [inventory.with_columns(case=pl.lit(name)) for name in names]
    stuck = inventory.with_columns(case=pl.lit("stuck"), state_1=pl.lit(1), state_2=pl.lit(1)).cast(
        inventory.schema | {"case": pl.String}
    )
    path = tmp_path / "odd.csv"
    columns = frames[0].columns
    pl.concat([frame.select(columns) for frame in (*frames, stuck)]).write_csv(path)
    return path


def test_odd_names_are_shown_as_they_are(odd, tmp_path):
    out = tmp_path / "run [b]"
    done = call("compare", odd, "--methods", "zscore", "--resamples", 2, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert f"rekka show '{out}' (" in done.stdout
    assert re.search(r"stuck +no model +- +DO NOT USE", done.stdout)
    assert "[/]" in done.stdout
    narrow = show_narrow(out, 80)
    assert narrow.exit_code == 0, narrow.stderr
    assert "…" not in narrow.stdout
    assert narrow.stdout.count("without covariates") >= 3  # the lines under what was chosen
    json.loads(call("show", out, "--json").stdout, parse_constant=lambda text: pytest.fail(text))


@pytest.mark.skipif(os.name != "posix", reason="a terminal is opened the POSIX way")
def test_the_bar_of_trials_takes_any_name(odd, tmp_path):
    import pty

    code = "from rekka.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "compare",
        str(odd),
        "--methods",
        "zscore",
        "--resamples",
        "0",
        "--no-report",
        *ON_VALIDATION,
        "--out",
        str(tmp_path / "run"),
    ]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(timeout=60) == 0, shown.decode(errors="replace")
    assert b"6/6" in shown


def test_fit_goes_on_after_a_case_that_cannot_be_fitted(odd, tmp_path):
    done = call("fit", odd, "--out", tmp_path / "models")
    assert done.exit_code == 1
    assert "stuck cannot be fitted: Every row stays in rating 1" in done.stderr
    assert "length [m]" in call("show", tmp_path / "models").stdout
    names = {file.name for file in (tmp_path / "models").iterdir()}
    assert {"a-b.json", "a-b-1.json", "a-b-1-1.json", "case.json", "coefficients.csv"} <= names
    assert len(names) == 6
    assert pl.read_csv(tmp_path / "models" / "coefficients.csv")["case"].n_unique() == 5


def test_one_spelling_of_a_method(table, tmp_path):
    done = call(
        "compare", table, "--only", "Main girder", "--methods", "zscore, boxcox + zscore", "--out", tmp_path / "r"
    )
    assert done.exit_code == 0, done.stderr
    again = call("compare", "--resume", tmp_path / "r", "--methods", "zscore,boxcox+zscore")
    assert again.exit_code == 0, again.stderr


@pytest.mark.parametrize(
    "join", ['join = "x.csv"', "join = [3]", "[[data.mapping.join]]", "[[data.mapping.join]]\nfile = 3"]
)
def test_a_study_file_with_a_wrong_join(table, tmp_path, join):
    study = tmp_path / "study.toml"
    section = "" if join.startswith("[[") else "[data.mapping]\n"
    study.write_text(f'format = "rekka-study"\nversion = 1\n[data]\nsource = "{table.name}"\n{section}{join}\n')
    done = call("compare", study, "--out", tmp_path / "run")
    assert done.exit_code == 2
    assert "join" in done.stderr


def test_a_demo_leaves_files_of_others(tmp_path, monkeypatch):
    from rekka.study.run_folder import clear_run

    rows = rekka.simulate_transitions(200, n_states=3, seed=1)
    rekka.compare(rows, methods=["zscore"], guard={"resamples": 0}, out=tmp_path / "run")
    mine = [tmp_path / "run" / "mine.txt", tmp_path / "run" / "models" / "mine.txt"]
    for file in mine:
        file.write_text("hi")
    clear_run(tmp_path / "run")
    left = {str(file.relative_to(tmp_path / "run")) for file in (tmp_path / "run").rglob("*") if file.is_file()}
    assert left - {".lock"} == {"mine.txt", "models/mine.txt"}
    clear_run(tmp_path / "run")  # nothing is there any more


def test_a_model_of_two_presets_needs_the_preset():
    rows = rekka.simulate_transitions(200, n_states=3, seed=1)
    options = {"guard": {"resamples": 0}, "select_on": "validation"}
    study = rekka.compare(rows, methods=["zscore"], preset="both", **options)
    with pytest.raises(rekka.InputError, match="more than one preset; say which: paper, exact"):
        study.model("all", "zscore")
    assert study.model("all", "zscore", "exact").solver == "newton"
