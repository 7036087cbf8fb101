"""What commands write over: never an input, and besides what --out names only files of rekka's own."""

import os
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from study_cases import draw_rows
from test_cli import call

import rekka
from rekka.report import report as report_module

pytestmark = pytest.mark.usefixtures("few_simulations", "cheap_reports")

MINE = "mine,of\nanother,kind\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, inspections, a mapping, a table to join and models: all that commands read."""
    folder = tmp_path_factory.mktemp("place")
    draw_rows(("Pier",), 80).write_csv(folder / "b.csv")
    rekka.write_inventory(folder / "tables", 40, preset="plain", seed=5)
    inspections = pl.read_csv(folder / "tables" / "inspections.csv", infer_schema=False)
    inspections.filter(case="Pier").write_csv(folder / "tables" / "inspections.csv")
    draw_rows(("Pier",), 60).unique("bridge_id", maintain_order=True).write_csv(folder / "list.csv")
    joined = folder / "tables" / "traffic.csv"
    (folder / "map.toml").write_text(f'[[join]]\nfile = "{joined.as_posix()}"\n')
    done = call("fit", folder / "b.csv", "--no-test-fit", "--out", folder / "models")
    assert done.exit_code == 0, done.stderr
    rekka.compare(draw_rows(("Pier",), 60), methods=["zscore"], guard={"resamples": 0}, out=folder / "run")
    return folder


def read_all(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("check b.csv --out b.csv", "b.csv"),
        ("check tables/inspections.csv --mapping map.toml --out map.toml", "map.toml"),
        ("check tables/inspections.csv --mapping map.toml --out tables/traffic.csv", "traffic.csv"),
        ("check tables --out tables/inventory.csv", "inventory.csv"),
        ("transitions tables --out tables/traffic.csv", "traffic.csv"),
        ("transitions tables/inspections.csv --join tables/inventory.csv --out tables/inventory.csv", "inventory.csv"),
        ("transitions tables/inspections.csv --out tables/../tables/inspections.csv", "inspections.csv"),
        ("fit b.csv --mapping m.json --out m.json", "m.json"),
        ("fit b.coefficients.csv --out b.json", "b.coefficients.csv"),
        ("matrix m.csv --out m.csv", "m.csv"),
        ("forecast models old/members.csv --out old", "members.csv"),
        ("backtest old/scores.csv --until-visit 3 --out old", "scores.csv"),
        ("report run --quick --markdown run/study.toml", "study.toml"),
    ],
)  # fmt: skip
def test_no_command_writes_over_an_input(place, tmp_path, monkeypatch, command, name):
    for file in place.iterdir():
        os.symlink(file, tmp_path / file.name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.coefficients.csv").write_bytes((place / "b.csv").read_bytes())
    (tmp_path / "m.csv").write_bytes((place / "models" / "pier.json").read_bytes())
    (tmp_path / "m.json").write_text("")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "forecast.json").write_text('{"format": "rekka-forecast"}')
    for old in ("members.csv", "scores.csv"):
        (tmp_path / "old" / old).write_bytes((place / "b.csv").read_bytes())
    before = read_all(tmp_path), read_all(place)
    done = call(*command.split())
    told = f"BadOption: {name} is one of the files that are read, and would be written over. Write to another file"
    assert (done.exit_code, told in done.stderr) == (2, True), done.output
    assert (read_all(tmp_path), read_all(place)) == before


def test_the_coefficients_have_a_name_of_their_own(place, tmp_path):
    """``rekka fit b.csv --out b.json`` wrote them over b.csv."""
    table = tmp_path / "b.csv"
    table.write_bytes((place / "b.csv").read_bytes())
    for _ in range(2):  # its own earlier file is written over
        done = call("fit", table, "--out", tmp_path / "b.json")
        assert done.exit_code == 0, done.stderr
    assert table.read_bytes() == (place / "b.csv").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["b.coefficients.csv", "b.csv", "b.json"]
    assert pl.read_csv(tmp_path / "b.coefficients.csv")["case"].unique().to_list() == ["Pier"]
    assert f"{tmp_path / 'b.json'} (the model), {tmp_path / 'b.coefficients.csv'}" in done.stdout


FOREIGN = [
    ("fit {}/b.csv --out out.json", "out.coefficients.csv"),
    ("fit {}/b.csv --out out", "out/coefficients.csv"),
    ("fit {}/b.csv --out out", "out/pier.json"),
    ("transitions {}/tables --out out.parquet", "out.audit.csv"),
    ("transitions {}/tables --out out.parquet", "out.set_aside.csv"),
    ("matrix {}/models --out out", "out/pier-square.csv"),
    ("effects {}/models --draws 100 --out out", "out/effects.csv"),
    ("effects {}/models --draws 100 --out out", "out/profiles.csv"),
    ("effects {}/models --draws 100 --out out", "out/profiles-traffic_mean.svg"),
    ("backtest {}/tables --draws 100 --until-visit 3 --out out", "out/cases.csv"),
    ("backtest {}/tables --draws 100 --until-visit 3 --out out", "out/backtest.json"),
    ("forecast {}/models {}/b.csv --out out", "out/network.csv"),
    ("report {}/run --quick --out p.html --tables out", "out/tables.xlsx"),
    ("report {}/run --quick --out p.html --tables out", "out/trials.csv"),
    ("report {}/run --quick --out p.html --figures out", "out/answers.png"),
    ("simulate out --bridges 3", "out/truth.json"),
]


@pytest.mark.parametrize(("command", "name"), FOREIGN)
def test_files_of_others_are_not_written_over(place, tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    if "answers" in name:
        name = f"out/{report_module.make_report(place / 'run', calibrate=False).figures[0].name}.png"
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(MINE)
    done = call(*command.replace("{}", str(place)).split())
    assert (done.exit_code, Path(name).name in done.stderr, "Traceback" in done.output) == (2, True, False), (
        done.output
    )
    assert {file.relative_to(tmp_path).as_posix(): file.read_text() for file in tmp_path.rglob("*.*")} == {
        name: MINE
    }


@pytest.mark.parametrize(
    "command", list(dict.fromkeys(command for command, _ in FOREIGN if "simulate" not in command))
)
def test_earlier_files_of_ours_are_written_over(place, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    words = command.replace("{}/b.csv --out out", "{}/list.csv --out out") if "forecast" in command else command
    for _ in range(2):
        done = call(*words.replace("{}", str(place)).split())
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    "command", ["fit b.csv", "matrix models", "effects models", "backtest b.csv --until-visit 3"]
)
def test_nothing_goes_into_a_run_folder_or_into_a_file(place, monkeypatch, command):
    monkeypatch.chdir(place)
    for out, told in (("run", "run is a run folder, whose files"), ("map", "map is a file; a folder is needed")):
        (place / "map").write_text("")
        done = call(*command.split(), "--out", out)
        assert (done.exit_code, told in done.stderr) == (2, True), done.output


def test_two_results_of_a_report_do_not_go_to_one_file(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(
        "report", place / "run", "--quick", "--out", "p.html", "--tables", "t", "--markdown", "t/tables.md"
    )
    assert (done.exit_code, "Two results would be written to tables.md" in done.stderr) == (2, True), done.output
    assert not list(tmp_path.iterdir())


def test_the_demo_leaves_tables_of_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rekka-demo").mkdir()
    Path("rekka-demo/inventory.csv").write_text(MINE)
    done = call("demo")
    assert (done.exit_code, "rekka-demo has inventory.csv already" in done.stderr) == (2, True), done.output
    assert Path("rekka-demo/inventory.csv").read_text() == MINE


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names are of POSIX")
def test_transitions_go_through_a_pipe(place, tmp_path):
    pipe, found = tmp_path / "t.csv", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    done = call("transitions", place / "tables", "--out", pipe)
    reader.join()
    assert done.exit_code == 0, done.stderr
    assert call("transitions", place / "tables", "--out", tmp_path / "file.csv").exit_code == 0
    assert found == [(tmp_path / "file.csv").read_bytes()]
    assert sorted(os.listdir(tmp_path)) == ["file.audit.csv", "file.csv", "file.set_aside.csv", "t.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="/dev/stdout is of POSIX")
def test_transitions_go_to_standard_output_and_nothing_else_does(place, tmp_path):
    kept = os.dup(1)
    with (tmp_path / "out.csv").open("wb") as out:
        os.dup2(out.fileno(), 1)
        try:
            done = call("transitions", place / "tables", "--out", "/dev/stdout")
        finally:
            os.dup2(kept, 1)
            os.close(kept)
    told = "transitions in /dev/stdout" in done.stderr
    assert (done.exit_code, done.stdout, told) == (0, "", True), done.output
    assert call("transitions", place / "tables", "--out", tmp_path / "file.csv").exit_code == 0
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "file.csv").read_bytes()
    both = call("transitions", place / "tables", "--out", "/dev/stdout", "--json")
    assert (both.exit_code, "--json prints to where --out /dev/stdout goes" in both.stderr) == (2, True)


def test_an_error_of_the_system_names_the_file_and_the_cause(tmp_path):
    """A file is where the folder should be."""
    (tmp_path / "file").write_text("")
    draw_rows(("Pier",), 40).write_csv(tmp_path / "b.csv")
    done = call("check", tmp_path / "b.csv", "--out", tmp_path / "file" / "c.json")
    told = f"WriteError: {tmp_path / 'file' / 'c.json'} cannot be written: Not a directory."
    assert (done.exit_code, told in done.stderr) == (1, True), done.output
