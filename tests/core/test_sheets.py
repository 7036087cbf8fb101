"""Tables that a spreadsheet opens: names come through exactly, and none of them is run."""

import io
import zipfile

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_cli import call

import rekka
from rekka.core.errors import BadOption
from rekka.core.sheets import guard_table, guard_text, render_sheet, unguard_table, unguard_text, write_csv

NAMES = (
    "=1+1",
    "@SUM(A1)",
    "+8",
    "-8",
    "'=1",
    "'quoted'",
    "http://example.org",
    "mailto:a@b",
    "internal:Sheet1!A1",
    "8.0x",
)


@given(st.lists(st.text(), min_size=1))
@example(["\x1c=1", "\x85=1", "\u200b@", "'\t", "''-", "\x00+"])
@example(["-79.25", "'-79.25", "+1e5", "-1\n", "-1+cmd", "-٣", "-"])
def test_polars_and_python_guard_the_same_texts(texts):
    table = pl.DataFrame({"n": range(len(texts)), "=text": texts})
    guarded = guard_table(table)
    assert guarded.columns == ["n", "'=text"]
    assert guarded["'=text"].to_list() == [guard_text(text) for text in texts]
    back = unguard_table(guarded.lazy()).rename(unguard_text).collect()
    assert back.equals(table)


def test_a_table_for_excel_has_guarded_headings_and_lists(tmp_path):
    table = pl.DataFrame({"=a": [["=1", "x"], None], "b": [1.5, -2.0], "c": ["@x", None]})
    write_csv(tmp_path / "a.csv", table)
    assert (tmp_path / "a.csv").read_text("utf-8-sig") == "'=a,b,c\n'=1; x,1.5,'@x\n,-2.0,\n"


def test_coordinates_that_were_read_as_text_stay_numbers(tmp_path):
    """A program for maps reads no '-79.25148: the apostrophe made it a text."""
    write_csv(tmp_path / "a.csv", pl.DataFrame({"longitude": ["-79.25148", None], "bridge_id": ["=1", "-2-3"]}))
    found = pl.read_csv(tmp_path / "a.csv")
    assert found["longitude"].to_list() == [-79.25148, None]
    assert found["bridge_id"].to_list() == ["'=1", "'-2-3"]


@pytest.fixture
def inspections(tmp_path):
    """Bridges, a case and covariates with names that a spreadsheet would run."""
    rows = [
        (name, "=Deck", f"{2000 + 5 * visit}-05-01", 1 + min(visit, 2), "=HYPERLINK(1)", 10.0 + visit + place)
        for place, name in enumerate(NAMES)
        for visit in range(4)
    ]
    columns = ["bridge", "case", "date", "state", "@note", "=age"]
    path = tmp_path / "inspections.parquet"  # as they are: no CSV file is read
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_names_of_transitions_come_through_exactly(inspections, tmp_path, kind):
    out = tmp_path / f"t.{kind}"
    done = call("transitions", inspections, "--keep", "@note", "--covariate", "=age", "--out", out)
    assert done.exit_code == 0, done.stderr
    found = rekka.read_transitions(out)
    assert set(found.frame["bridge_id"]) == set(NAMES)
    assert set(found.frame["case"]) == {"=Deck"}
    assert set(found.frame["@note"]) == {"=HYPERLINK(1)"}
    assert found.covariates == ("=age",)


def test_no_cell_of_the_transitions_is_a_formula(inspections, tmp_path):
    out = tmp_path / "t.csv"
    call("transitions", inspections, "--keep", "@note", "--covariate", "=age", "--out", out)
    texts = pl.read_csv(out, infer_schema=False)
    cells = [*texts.columns, *(cell for name in texts.columns for cell in texts[name].to_list())]
    assert {cell for cell in cells if cell.startswith(("=", "@", "+", "-"))} == {"+8", "-8"}  # numbers


def test_no_name_in_the_workbook_is_a_formula_a_link_or_a_number(inspections, tmp_path):
    out = tmp_path / "t.xlsx"
    call("transitions", inspections, "--keep", "@note", "--covariate", "=age", "--out", out)
    with zipfile.ZipFile(out) as book:
        sheet = book.read("xl/worksheets/sheet1.xml")
        assert b"<f>" not in sheet
        assert b"hyperlink" not in sheet
        assert not [name for name in book.namelist() if "rels" in name and b"hyperlink" in book.read(name)]
    assert set(pl.read_excel(out, infer_schema_length=0)["bridge_id"]) == set(NAMES)


def test_the_list_of_excluded_records_is_guarded_too(tmp_path):
    table = pl.DataFrame({"bridge": ["=cmd()", "B", "B"], "date": ["2001", "2001", "2005"], "state": [None, 1, 2]})
    table.write_parquet(tmp_path / "i.parquet")
    assert call("transitions", tmp_path / "i.parquet", "--out", tmp_path / "t.csv").exit_code == 0
    assert pl.read_csv(tmp_path / "t.set_aside.csv")["bridge_id"].to_list() == ["'=cmd()"]


def test_names_of_models_and_forecasts_come_through(inspections, tmp_path):
    """From a table that rekka wrote, by a model that was fitted to it, to a list that rekka wrote."""
    table = tmp_path / "t.csv"
    call("transitions", inspections, "--covariate", "=age", "--out", table)
    done = call("fit", table, "--ridge", 1, "--out", tmp_path / "m.json")
    assert done.exit_code == 0, done.stderr
    coefficients = pl.read_csv(tmp_path / "m.coefficients.csv")
    assert (coefficients["case"][0], set(coefficients["term"])) == ("'=Deck", {"intercept", "'=age"})
    done = call("forecast", tmp_path / "m.json", table, "--years", 1, "--out", tmp_path / "f")
    assert done.exit_code == 0, done.stderr
    assert {unguard_text(name) for name in pl.read_csv(tmp_path / "f" / "years.csv")["bridge_id"]} == set(NAMES)


def test_a_sheet_has_room_for_so_many_rows(monkeypatch):
    monkeypatch.setattr("rekka.core.sheets.LARGEST_SHEET", 2)
    assert pl.read_excel(io.BytesIO(render_sheet(pl.DataFrame({"a": [1, 2]}), "s")))["a"].to_list() == [1, 2]
    with pytest.raises(
        BadOption, match=r"There are 3 rows, and an Excel sheet has room for 2\. Write \.csv or \.parquet"
    ):
        render_sheet(pl.DataFrame({"a": [1, 2, 3]}), "s")


@pytest.mark.parametrize("text", ["'quoted'", "'", "''", "' x"])
def test_an_apostrophe_of_the_users_own_stays(text):
    assert guard_text(text) == unguard_text(text) == text
