"""Files that earlier versions wrote are read with the numbers that those versions found (docs/policy.md)."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.core.errors import DamagedFile, InputError, ModelFileError, RunFolderError
from rekka.core.folders import read_sealed, write_sealed
from rekka.core.validation import NEWER
from rekka.fleet.document import load_forecast
from rekka.report.document import Document
from rekka.study import runner
from rekka.study.plan import read_plan
from rekka.study.trial import run_trial
from version_files import COLUMNS, CONFIRMED, FILES, TRIAL

VERSIONS = sorted(
    (folder.name for folder in FILES.iterdir() if folder.is_dir()), key=lambda name: [*map(int, name.split("."))]
)
WITH_FORECASTS = VERSIONS[2:]
CASES = ["Deck slab", "Main girder"]


def run_command(*args) -> Result:
    return CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(arg) for arg in args])


def call(*args) -> str:
    done = run_command(*args)
    assert done.exit_code == 0, done.output
    return done.output


def expected_of(version: str) -> dict:
    return json.loads((FILES / version / "expected.json").read_text())


def test_every_version_has_left_its_files():
    """For a release: python tests/version_files.py."""
    assert VERSIONS[:3] == ["0.4.0", "0.5.0", "0.6.0"]
    assert rekka.__version__ in VERSIONS


@pytest.fixture
def copy_run(tmp_path):
    """A run folder that can be written to, its table where the plan has it."""

    def copy(version: str) -> Path:
        shutil.copy(FILES / "inspections.csv", tmp_path)
        return Path(shutil.copytree(FILES / version / "run", tmp_path / version / "run"))

    return copy


def assert_found(study: rekka.Study, version: str) -> None:
    """The trials, choices and confirmations that the version found, to the last bit."""
    expected = expected_of(version)
    assert study.trials.select(TRIAL).to_dicts() == expected["trials"]
    assert dict(study.selection.select("case", "chosen").rows()) == expected["chosen"]
    assert study.confirmation.select(CONFIRMED).to_dicts() == expected["confirmation"]


def test_every_version_is_here():
    assert {folder.name for folder in FILES.iterdir() if folder.is_dir()} == set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_files_were_written_by_their_version_and_name_no_machine(version):
    assert read_sealed(FILES / version / "run" / "provenance.json", "rekka-run")["versions"]["rekka"] == version
    for file in (FILES / version).rglob("*.*"):
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        assert not any(part in content for part in (b"/tmp", b"/home", b"/work", b"/Users")), file


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_file_predicts_what_it_did(version):
    expected = expected_of(version)
    model = rekka.ExponentialHazardMarkovModel.from_json((FILES / version / "model.json").read_text())
    rows = pl.DataFrame(expected["rows"], schema=list(COLUMNS), orient="row")
    assert model.log_likelihood_ == expected["log_likelihood"]
    assert model.coef_.tolist() == expected["coefficients"]
    np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_file_forecasts(version, tmp_path):
    files = FILES / version / "model.json", FILES / "inspections.csv"
    call("forecast", *files, "--only", CASES[1], "--years", 2, "--out", tmp_path / "f")
    assert load_forecast(tmp_path / "f").members == 60


@pytest.mark.parametrize("version", ["0.4.0", "0.5.0"])
def test_a_model_file_that_names_no_case_asks_for_it(version, tmp_path):
    files = FILES / version / "model.json", FILES / "inspections.csv"
    done = run_command("forecast", *files, "--out", tmp_path / "f")
    assert done.exit_code == 2
    assert "model.json does not say which component it is a model of" in done.output
    assert "Say which it is (--only CASE)" in done.output


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_folder_is_loaded_and_shown(version):
    assert_found(rekka.load_study(FILES / version / "run"), version)
    shown = call("show", FILES / version / "run")
    assert "Confirmed on the confirmation rows" in shown
    assert all(case in shown for case in CASES)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_finished_run_is_resumed_without_a_fit(version, copy_run, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a finished trial is fitted again")

    monkeypatch.setattr(runner, "run_trial", refuse)
    run = copy_run(version)
    assert_found(rekka.resume_study(run), version)
    assert "4 trials kept" in (run / "log.txt").read_text()
    assert pl.read_csv(run / "trials.csv")["log_likelihood"].len() == 4


@pytest.mark.parametrize("version", VERSIONS)
def test_a_trial_that_was_not_done_is_fitted_as_its_version_did(version, copy_run, monkeypatch):
    made = []

    def note(key, *args, **options):
        made.append(key)
        return run_trial(key, *args, **options)

    monkeypatch.setattr(runner, "run_trial", note)
    run = copy_run(version)
    (run / "trials" / "0004-main-girder-exact-boxcox.json").unlink()
    study = rekka.resume_study(run)
    assert len(made) == 1
    found, before = study.trials.row(3, named=True), expected_of(version)["trials"][3]
    for name in ("log_likelihood", "accuracy", "log_loss"):  # processors find Box-Cox's exponent to 1e-7 or so
        assert found[name] == pytest.approx(before[name], rel=1e-7), name


@pytest.mark.parametrize("version", VERSIONS)
def test_a_choice_is_confirmed_as_its_version_did(version, copy_run):
    run, before = copy_run(version), expected_of(version)["confirmation"]
    (run / "confirmation.json").unlink()
    again = rekka.confirm(run).confirmation.select(CONFIRMED).to_dicts()
    for found, was in zip(again, before, strict=True):
        assert found == was | {name: pytest.approx(was[name], rel=1e-9) for name in ("accuracy", "log_loss")}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_folder_forecasts(version, copy_run):
    run = copy_run(version)
    call("forecast", run, FILES / "inspections.csv", "--years", 2)
    found = load_forecast(run / "forecast")
    assert found.members == 109
    assert [model.case for model in found.models] == CASES


@pytest.mark.parametrize("version", VERSIONS)
def test_the_plan_of_a_run_folder_is_a_study_file(version):
    plan = read_plan(FILES / version / "run" / "study.toml")
    assert plan.study.methods == ("zscore", "boxcox")
    brought = VERSIONS.index("0.8.0")  # the choice of a clock
    assert plan.study.clock == ("middle" if VERSIONS.index(version) >= brought else "start")


@pytest.mark.parametrize("version", WITH_FORECASTS)
def test_forecasts_and_reports_are_read(version):
    assert load_forecast(FILES / version / "run" / "forecast").members == 60
    document = Document.from_json(gzip.decompress((FILES / version / "report.json.gz").read_bytes()))
    assert document.rekka == version
    assert [model.case for model in document.models] == CASES


def test_a_report_of_version_1_is_refused_with_the_command_that_writes_it_again():
    text = gzip.decompress((FILES / "0.6.0" / "report.json.gz").read_bytes())
    with pytest.raises(
        DamagedFile, match=r"is no rekka report of version 3: .* Write it again with rekka report RUN"
    ):
        Document.from_json(text.replace(b'"version": 2', b'"version": 1', 1))


@pytest.mark.slow
def test_the_oldest_run_folder_is_reported(copy_run):
    run = copy_run(VERSIONS[0])
    call("report", run, "--quick")
    document = Document.from_json((run / "report.json").read_bytes())
    assert [model.case for model in document.models] == CASES


def test_a_run_of_0_3_0_is_refused_with_the_command_that_repeats_it(copy_run):
    run = copy_run("0.4.0")
    begun = read_sealed(run / "provenance.json", "rekka-run")
    begun["plan"]["version"], begun["versions"]["rekka"] = 1, "0.3.0"
    write_sealed(run / "provenance.json", "rekka-run", begun)
    with pytest.raises(RunFolderError) as caught:
        rekka.load_study(run)
    assert str(caught.value) == (
        "run was made by rekka 0.3.0, whose trials this one does not read. Run its plan again: "
        "rekka compare run/study.toml --out NEW."
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_scalings_of_a_run_transform_as_they_did(version):
    """By the numbers in their files: powers for Box-Cox, whatever line follows them, and z-scores."""
    for file in sorted((FILES / version / "run" / "scalings").iterdir()):
        stored = json.loads(file.read_text(encoding="utf-8"))["scaling"]
        scaler = rekka.CovariateScaler.from_json(file.read_text(encoding="utf-8"))
        rows = np.array([[15.0, 10.0], [40.0, 60.0], [60.0, 200.0]])
        found = scaler.transform(rows)
        assert json.loads(scaler.to_json())["scaling"] == stored
        if stored["kind"] == "boxcox":
            powers = np.array(stored["exponent"])
            ratio = (found[2] - found[1]) / (found[1] - found[0])
            raised = rows**powers
            np.testing.assert_allclose(ratio, (raised[2] - raised[1]) / (raised[1] - raised[0]), rtol=1e-9)
        else:
            assert stored["method"] == "zscore"
            np.testing.assert_allclose(found, (rows - stored["offset"]) / stored["scale"])


def change_version(text: str, version: int) -> str:
    return json.dumps(json.loads(text) | {"version": version})


def test_a_model_file_of_0_3_0_is_refused_with_the_command_that_writes_one():
    text = change_version((FILES / "0.4.0" / "model.json").read_text(), 1)
    told = r"not a rekka model file of version 2 to 5: .* Write one with rekka fit --out"
    with pytest.raises(ModelFileError, match=told):
        rekka.ExponentialHazardMarkovModel.from_json(text)


class TestFilesOfANewerRekka:
    """An older rekka does not guess: it refuses what it cannot know, and says that a newer one is needed."""

    NEWEST = FILES / VERSIONS[-1]

    def test_a_model_file(self):
        with pytest.raises(ModelFileError, match=NEWER):
            rekka.ExponentialHazardMarkovModel.from_json(
                change_version((self.NEWEST / "model.json").read_text(), 99)
            )

    def test_a_scaling(self):
        file = next((self.NEWEST / "run" / "scalings").iterdir())
        with pytest.raises(ModelFileError, match=NEWER):
            rekka.CovariateScaler.from_json(change_version(file.read_text(), 99))

    def test_a_report(self):
        text = gzip.decompress((self.NEWEST / "report.json.gz").read_bytes()).decode()
        with pytest.raises(DamagedFile, match=NEWER):
            Document.from_json(change_version(text, 99))

    def test_a_forecast(self, copy_run):
        file = copy_run(VERSIONS[-1]) / "forecast" / "forecast.json"
        file.write_text(change_version(file.read_text(), 99))
        with pytest.raises(DamagedFile, match=NEWER):
            load_forecast(file)

    def test_a_study_file_and_a_run_folder(self, copy_run):
        run = copy_run(VERSIONS[-1])
        plan = run / "study.toml"
        plan.write_text(plan.read_text().replace("version = 3\n", "version = 99\n"))
        for read in (lambda: read_plan(plan), lambda: rekka.load_study(run), lambda: rekka.resume_study(run)):
            with pytest.raises(InputError, match=rf"study\.toml has version 99\. {NEWER}"):
                read()

    def test_what_is_damaged_is_not_called_newer(self):
        text = json.loads((self.NEWEST / "model.json").read_text())
        for given in (text | {"version": "99"}, text | {"n_states": -1}, {"format": "rekka-model"}):
            with pytest.raises(ModelFileError) as caught:
                rekka.ExponentialHazardMarkovModel.from_json(json.dumps(given))
            assert "newer" not in str(caught.value)
