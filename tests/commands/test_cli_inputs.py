"""Inputs that once ended in a traceback, in silence, or in a sentence about something else."""

import json
import re

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from test_cli import call

import rekka
from rekka.core.errors import ModelFileError
from rekka.data import tables as files

pytestmark = pytest.mark.usefixtures("few_simulations")

QUICK = ("--methods", "zscore", "--resamples", 0, "--no-report", "--no-confirm")


def said(done):
    return re.sub(r"[│╭╮╰╯─\s]+", " ", done.output)


@pytest.fixture(scope="module")
def inspections():
    drawn = rekka.simulate_inventory(40, preset="plain", seed=3)
    return drawn.inspections.filter(pl.col("case").is_in(["Pier", "Bearing"]))


@pytest.fixture(scope="module")
def transitions(inspections):
    return rekka.read_transitions(inspections).frame


def blank_some(frame):
    return frame.with_columns(case=pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit(" ")).otherwise("case"))


@pytest.mark.parametrize("kind", ["inspections.csv", "transitions.csv", "transitions.parquet"])
def test_a_blank_component_is_excluded_and_named_by_every_command(kind, inspections, transitions, tmp_path):
    path = tmp_path / kind
    frame = blank_some(inspections if kind.startswith("i") else transitions)
    frame.write_parquet(path) if kind.endswith("t") else frame.write_csv(path)
    count = len(frame.filter(pl.col("case") == " "))
    what = "records" if kind.startswith("i") else "rows"
    forecast = (
        "forecast",
        tmp_path / "run",
        path,
        "--years",
        2,
        "--include-unchosen",
        "--out",
        tmp_path / "forecast",
    )
    for command in (
        ("fit", path),
        ("compare", path, "--out", tmp_path / "run", *QUICK),
        ("check", path),
        forecast,
    ):
        done = call(*command)
        assert done.exit_code in (0, 1), done.output
        assert not done.exception or isinstance(done.exception, SystemExit)
        assert f"{kind}: the case is blank in {count} {what} (rows " in done.stderr or command is forecast
    assert "the case is blank" in said(done)
    assert set(rekka.load_study(tmp_path / "run").cases["case"]) == {"Pier", "Bearing"}


def test_cases_that_are_numbers_are_names(transitions, tmp_path):
    transitions.with_columns(case=pl.lit(3.0)).write_parquet(tmp_path / "t.parquet")
    done = call("fit", tmp_path / "t.parquet", "--json")
    assert [one["case"] for one in json.loads(done.stdout)] == ["3"]


@pytest.mark.parametrize("command", ["fit", "check", "compare", "backtest"])
def test_a_covariate_of_names_is_refused(command, inspections, tmp_path):
    path = tmp_path / "t.csv"
    inspections.with_columns(remark=pl.format("seen {}", pl.int_range(pl.len()))).write_csv(path)
    more = {"compare": ("--out", tmp_path / "run", *QUICK), "backtest": ("--until-visit", 3)}.get(command, ())
    done = call(command, path, "--covariate", "remark", *more)
    assert done.exit_code == 1
    assert "a category has at most 50, each in several rows. Leave it out of covariates" in done.output


@pytest.mark.parametrize("command", ["fit", "check"])
def test_a_text_that_is_the_same_in_all_rows_is_left_out(command, inspections, tmp_path):
    path = tmp_path / "t.csv"
    inspections.with_columns(material=pl.lit("steel")).write_csv(path)
    done = call(command, path, "--covariate", "material")
    assert done.exit_code == 0
    assert "material: " not in done.stdout


def test_names_among_the_covariates_of_transitions(transitions, tmp_path):
    path = tmp_path / "t.csv"
    transitions.with_columns(remark=pl.format("seen {}", pl.int_range(pl.len()))).write_csv(path)
    for command in (("fit",), ("backtest", "--until-visit", 3)):
        done = call(*command, path, "--use", "remark")
        assert done.exit_code == 1
        assert "different texts in" in done.output


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("fit", "t.csv", "--state", "A", "--state", "B"), "--state"),
        (("forecast", "run", "t.csv", "--years", 3, "--years", 4), "--years"),
        (("compare", "t.csv", "--report", "--no-report"), "--report"),
        (("simulate", "x", "--seed", 1, "--seed=1"), "--seed"),
    ],
)
def test_an_option_of_one_value_that_is_given_twice_is_refused(arguments, option):
    done = call(*arguments)
    assert done.exit_code == 2
    assert f"Invalid value for {option}: it takes one value and is given 2 times." in said(done)


def test_options_that_may_be_repeated_are_not_refused(transitions, tmp_path):
    transitions.write_csv(tmp_path / "t.csv")
    done = call("fit", tmp_path / "t.csv", "--only", "Pier", "--only", "Bearing", "--json", "--json")
    assert done.exit_code == 0, done.output


def test_an_id_is_the_bridge_rather_than_a_structure(inspections):
    frame = inspections.rename({"bridge_id": "ID"}).with_columns(STRUCTURE=pl.lit("Beam"))
    panel = rekka.read_panel(frame)
    assert panel.visits.collect()["bridge_id"].n_unique() == inspections["bridge_id"].n_unique()
    assert any("bridge is ID (not STRUCTURE; --bridge says otherwise)" in note for note in panel.notes)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "punycode"])
@pytest.mark.parametrize("more", ["", "\n"])
def test_another_encoding_is_a_sentence(encoding, more, inspections, tmp_path):
    (tmp_path / "t.csv").write_text(inspections.write_csv() + more, encoding="utf-8")
    done = call("check", tmp_path / "t.csv", "--encoding", encoding)
    assert done.exit_code == 1
    assert f"UnreadableTable: t.csv is not {encoding}: " in done.stderr
    assert "Leave encoding out to have it recognised" in done.stderr


@pytest.mark.parametrize("day", [-719_528 - 400, 2**31 - 5])
def test_a_date_in_the_year_0_is_not_understood(day, inspections, transitions, tmp_path):
    days = inspections["date"].cast(pl.String).str.to_date(strict=False).to_physical().to_list()
    days[3] = day
    column = pa.array(days, type=pa.int32()).cast(pa.date32())
    pq.write_table(inspections.drop("date").to_arrow().append_column("date", column), tmp_path / "t.parquet")
    found = rekka.read_transitions(tmp_path / "t.parquet")
    assert found.audit.count("the date is not understood") == 1
    assert found.audit.set_aside.filter(reason="the date is not understood")["row"].to_list() == [3]
    for command in (("check",), ("fit",), ("backtest", "--until-visit", 3)):
        done = call(*command, tmp_path / "t.parquet")
        assert not done.exception or isinstance(done.exception, SystemExit)
    dates = pa.array([day] * len(transitions), type=pa.int32()).cast(pa.date32())
    pq.write_table(transitions.drop("date_2").to_arrow().append_column("date_2", dates), tmp_path / "p.parquet")
    assert rekka.read_transitions(tmp_path / "p.parquet").frame["date_2"].null_count() == len(transitions)


def test_structs_and_bytes_are_named_only_where_they_are_used(inspections, transitions, tmp_path):
    more = {"s": pl.struct("case"), "b": pl.lit(b"\xff"), "l": pl.concat_list("case")}
    for frame, column in ((inspections, "state"), (transitions, "case"), (transitions, "bridge_id")):
        path = tmp_path / "t.parquet"
        frame.with_columns(**more).write_parquet(path)
        assert call("fit", path).exit_code == 0
        for what, value in (("bytes", pl.lit(b"\xff")), ("lists or other objects", pl.struct(column))):
            frame.with_columns(value.alias(column)).write_parquet(path)
            done = call("fit", path)
            assert done.exit_code == 1
            assert f"BadValues: t.parquet: {column} holds {what} in its cells" in done.stderr


def write_workbook(path, row, column):
    book = xlsxwriter.Workbook(path)
    sheet = book.add_worksheet("Data")
    for place, values in enumerate((("bridge", "date", "state"), ("A", 2010, 1), ("A", 2015, 2))):
        sheet.write_row(place, 0, values)
    sheet.write(row, column, "x")
    book.close()


def test_a_stray_cell_at_the_end_of_a_sheet_is_a_sentence(tmp_path):
    write_workbook(tmp_path / "t.xlsx", 1_048_575, 16_383)
    done = call("check", tmp_path / "t.xlsx")
    assert done.exit_code == 1
    assert (
        "t.xlsx: sheet Data reaches to row 1,048,576 and column 16,384 with 10 cells: a stray one" in done.stderr
    )


def test_a_sheet_is_measured_whatever_the_pieces_it_is_read_in(tmp_path, monkeypatch):
    write_workbook(tmp_path / "t.xlsx", 40, 30)
    with files.zipfile.ZipFile(tmp_path / "t.xlsx") as book:
        whole = files._measure(book, "xl/worksheets/sheet1.xml")
        monkeypatch.setattr(files, "CHUNK", 7)
        assert files._measure(book, "xl/worksheets/sheet1.xml") == whole == (10, 41, 31)


@pytest.mark.parametrize("huge", [str(10**400), "1e400", "-2.5E+309", "1.8e308"])
@pytest.mark.parametrize("field", ["n_rows", "n_states", "log_likelihood", "aic"])
def test_a_model_file_with_an_endless_number_is_a_sentence(field, huge, transitions, tmp_path):
    rows = transitions.filter(case="Pier").select("state_1", "state_2", "interval_years")
    text = rekka.ExponentialHazardMarkovModel(covariates=[]).fit(rows, rows["state_2"]).to_json(case="Pier")
    changed = re.sub(rf'("{field}": )[-+.\w]+', rf"\g<1>{huge}", text)
    assert changed != text
    with pytest.raises(ModelFileError, match=r"the number -?[\d.eE+]+ is beyond"):
        rekka.ExponentialHazardMarkovModel.from_json(changed)
    (tmp_path / "m.json").write_text(changed, encoding="utf-8")
    done = call("matrix", tmp_path / "m.json")
    assert done.exit_code == 1
    assert "ModelFileError: m.json: " in done.stderr
