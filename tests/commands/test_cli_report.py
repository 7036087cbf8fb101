"""``rekka report`` as a person meets it, and the report at the end of ``rekka compare``."""

import json
import re
import shutil

import polars as pl
import pytest
from study_cases import draw_rows
from test_cli import call

import rekka
from rekka.report import report as report_module
from rekka.report.document import Document
from rekka.study.run_folder import clear_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two cases, without a report."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    rekka.compare(draw_rows(), methods=["zscore", "boxcox"], guard={"resamples": 2}, out=folder)
    return folder


@pytest.fixture(scope="module")
def reported(finished):
    done = call("report", finished)
    assert done.exit_code == 0, done.stderr
    return finished, done.stdout


def test_it_says_where_the_page_is(reported):
    run, said = reported
    assert re.search(rf"The report is in {re.escape(str(run / 'report.html'))} \(\d\.\d MB\): open it", said)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "Deck slab" in page
    document = Document.from_json((run / "report.json").read_bytes())
    assert [case.case for case in document.cases] == ["Deck slab", "Pier"]
    assert len(document.calibration) == sum(answer.method is not None for answer in document.answers) > 0


def test_the_same_run_gives_the_same_bytes(reported, tmp_path):
    run, _ = reported
    again = call("report", run, "--out", tmp_path / "new folder" / "again.html")
    assert again.exit_code == 0, again.stderr
    for kind in ("html", "json"):
        first, second = run / f"report.{kind}", tmp_path / "new folder" / f"again.{kind}"
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.usefixtures("no_pictures")
def test_compare_ends_with_a_report_unless_it_is_not_wanted(tmp_path):
    draw_rows(("Pier",), 60).write_csv(tmp_path / "rows.csv")
    options = ("--methods", "zscore", "--resamples", 0)
    done = call("compare", tmp_path / "rows.csv", *options, "--out", tmp_path / "with")
    assert done.exit_code == 0, done.stderr
    assert f"The page: {tmp_path / 'with' / 'report.html'}" in done.stdout
    assert (tmp_path / "with" / "report.html").exists()
    done = call("compare", tmp_path / "rows.csv", *options, "--out", tmp_path / "without", "--no-report")
    assert "The page:" not in done.stdout
    assert f"rekka report {tmp_path / 'without'}" in done.stdout
    assert not (tmp_path / "without" / "report.html").exists()


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("some", ["heatmap", pytest.param("", marks=pytest.mark.slow)])  # or every figure
def test_figures_tables_and_markdown_go_where_they_are_asked_to(tmp_path, monkeypatch, some):
    every = report_module.list_figures

    def list_some(*given):
        return tuple(figure for figure in every(*given) if figure.name.startswith(some))

    monkeypatch.setattr(report_module, "list_figures", list_some)  # each is drawn as three files
    run = tmp_path / "run"
    rekka.compare(draw_rows(("Pier",)), methods=["zscore"], guard={"resamples": 0}, out=run)
    done = call(
        "report", run, "--quick", "--out", tmp_path / "page.html", "--figures", tmp_path / "pictures",
        "--tables", tmp_path / "tables", "--markdown", tmp_path / "text" / "report.md", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    files = json.loads(done.stdout)
    assert set(files) == {"page", "figures", "tables", "markdown"}
    names = {file.name for file in (tmp_path / "pictures").iterdir()}
    assert {"heatmap-exact.svg", "heatmap-exact.png", "heatmap-exact.pdf"} <= names
    assert (tmp_path / "pictures" / "heatmap-exact.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "pictures" / "heatmap-exact.pdf").read_bytes().startswith(b"%PDF")
    assert {"tables.xlsx", "tables.tex", "tables.md", "answer.csv", "trials.csv"} <= {
        file.name for file in (tmp_path / "tables").iterdir()
    }
    assert len(pl.read_csv(tmp_path / "tables" / "trials.csv")) == 1
    text = (tmp_path / "text" / "report.md").read_text(encoding="utf-8")
    assert "](<../pictures/heatmap-exact.svg>)" in text


@pytest.mark.usefixtures("no_pictures")
def test_quick_leaves_the_calibration_out(finished, tmp_path):
    done = call("report", finished, "--quick", "--out", tmp_path / "quick.html")
    assert done.exit_code == 0, done.stderr
    assert Document.from_json((tmp_path / "quick.json").read_bytes()).calibration == ()


@pytest.mark.usefixtures("no_pictures")
def test_title_unit_and_language(finished, tmp_path):
    done = call(
        "report", finished, "--quick", "--out", tmp_path / "ja.html", "--lang", "ja", "--title", "A & B <bridges>",
        "--unit", "traffic_mean=500",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "ja.html").read_text(encoding="utf-8")
    assert '<html lang="ja"' in page
    assert "A &amp; B &lt;bridges&gt;" in page
    steps = {
        one.name: one.step for one in Document.from_json((tmp_path / "ja.json").read_bytes()).study.covariates
    }
    assert steps["traffic_mean"] == 500


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--lang", "fr"), "BadOption: --lang is 'fr'"),
        (("--for", "boss"), "BadOption: --for is 'boss'; it can be director, engineer"),
        (("--out", "page.pdf"), "page.pdf is to be a page: it needs a name that ends in .html"),
        (("--title", "caf\udce9"), "title is no text"),
        (("--unit", "trafic_mean=10"), "Did you mean traffic_mean"),
        (("--unit", "traffic_mean"), "is not like traffic_mean=1000"),
    ],
)
def test_wrong_options_are_told_before_the_work(finished, tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rekka.Study, "calibrations", lambda *_: pytest.fail("this is the work"))
    done = call("report", finished, *options)
    assert done.exit_code == 2
    assert told in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--out", "run/provenance.html"), "provenance.json is there already, and is no report"),
        (("--out", "run/confirmation.html"), "confirmation.json is there already, and is no report"),
        (("--out", "mine.html"), "mine.html is there already, and is no report"),
        (("--out", "folder.html"), "folder.html is a folder; a file is needed"),
        (("--tables", "run"), "run is a run folder, whose files have the same names"),
        (("--figures", "run"), "run is a run folder"),
        (("--tables", "mine.html"), "mine.html is a file; a folder is needed"),
        (("--markdown", "folder.html"), "folder.html is a folder; a file is needed"),
    ],
)
def test_what_is_no_report_is_not_written_over(finished, tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    (tmp_path / "folder.html").mkdir()
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    done = call("report", "run", "--quick", *options)
    assert done.exit_code == 2
    assert told in done.stderr
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


@pytest.mark.usefixtures("no_pictures")
def test_an_earlier_report_is_written_over(reported, tmp_path):
    run, _ = reported
    for kind in ("html", "json"):
        shutil.copy(run / f"report.{kind}", tmp_path / f"page.{kind}")
    assert call("report", run, "--quick", "--out", tmp_path / "page.html", "--title", "Again").exit_code == 0
    assert "Again" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_folder_that_is_no_run_is_told(tmp_path):
    done = call("report", tmp_path)
    assert done.exit_code == 1
    assert "is not a run folder" in done.stderr


@pytest.mark.usefixtures("no_pictures")
def test_a_run_that_was_stopped_is_reported_as_far_as_it_got(finished, tmp_path):
    run = tmp_path / "stopped"
    shutil.copytree(finished, run)
    for file in sorted((run / "trials").iterdir())[1:]:
        file.unlink()  # what was chosen is told again once its trials are
    done = call("report", run, "--quick")
    assert done.exit_code == 0, done.stderr
    study = Document.from_json((run / "report.json").read_bytes()).study
    assert (study.done, study.planned, study.choices_done, study.choices_planned) == (1, 4, 0, 2)


@pytest.mark.usefixtures("no_pictures")
def test_a_run_that_was_stopped_while_choosing_is_not_finished(finished, tmp_path):
    run = tmp_path / "choosing"
    shutil.copytree(finished, run)
    sorted((run / "choices").iterdir())[0].unlink()
    assert call("report", run, "--quick").exit_code == 0
    document = Document.from_json((run / "report.json").read_bytes())
    assert (document.study.done, document.study.planned) == (4, 4)
    assert (document.study.choices_done, document.study.choices_planned) == (1, 2)
    assert [answer.reason == "not chosen yet" for answer in document.answers] == [True, False]


@pytest.mark.usefixtures("no_pictures")
def test_a_new_run_in_its_place_takes_the_old_report_away(tmp_path):
    run = tmp_path / "run"
    rekka.compare(draw_rows(("Pier",), 60), methods=["zscore"], guard={"resamples": 0}, out=run).report(
        calibrate=False
    ).write(run / "report.html")
    (run / "mine.html").write_text("kept")
    clear_run(run)
    assert sorted(file.name for file in run.iterdir() if not file.name.startswith(".")) == ["mine.html"]
