"""Files have the values, whole and unrounded; no text is a formula; the same tables are the same bytes."""

import io
import re
import time
import zipfile

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from table_cases import HOSTILE, column, hostile_document, plain_document, tables_of

from rekka.core.sheets import guard_text, unguard_text
from rekka.report.export import (
    LONGEST_SHEET_NAME,
    LONGEST_TEXT,
    name_sheets,
    render_csv,
    render_workbook,
    write_tables,
)
from rekka.report.tables.cells import expand
from rekka.report.views import Cell, Column, Row, TableView

ACTIVE = (
    "=1+1", "=1", "@x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\u3000=1", "＝1", "＋1", "－1", "＠x", "-1+cmd",
    "+1e5+cmd", "-", "+", "-.", "-2-3", "-1e", "-1 2", " -1", "\t1", "\t-1", "-1\t", "-1\n", "-1,5", "-٣", "-1%", "--1",
)  # fmt: skip
NUMBERS = ("-1", "+1", "-79.25", "-79.25148", "+1e5", "-1.5E-07", "-.5", "-5.")


def one_cell(text):
    return TableView("names", "Names", (Column("name", "name"),), (Row((Cell(text, text),)),))


@pytest.mark.parametrize("text", ACTIVE)
def test_what_a_spreadsheet_would_run_is_guarded(text):
    assert guard_text(text) == f"'{text}"


@pytest.mark.parametrize("text", [*NUMBERS, "", "Pier", "a=1", "0.5", "'tis", "5-3", "−1", "–"])
def test_other_texts_stay_as_they_are(text):
    assert guard_text(text) == text


@given(st.text())
@example("'=1")
@example("''")
@example("'")
@example("-1")
@example("'-1")
@example("-1\n")
def test_a_guarded_text_reads_back(text):
    assert unguard_text(guard_text(text)) == text
    if not re.fullmatch(r"[+-][0-9.]+([eE][+-]?[0-9]+)?", text):
        assert guard_text(text)[:1] not in tuple("=+-@\t\r\n＝＋－＠")


def read_csv(text):
    return pl.read_csv(io.BytesIO(text.encode()), infer_schema_length=None)


def test_csv_has_every_value_unrounded():
    for table in tables_of(plain_document()).values():
        flat = expand(table)
        found = read_csv(render_csv(table))
        assert found.columns == [one.heading for one in flat.columns]
        for one, name in zip(flat.columns, found.columns, strict=True):
            values = [None if value == "" else value for value in column(flat, one.key)]
            read = [unguard_text(v) if isinstance(v, str) else v for v in found[name].to_list()]
            if one.key in ("version", "sha256"):  # texts that look like numbers
                read, values = list(map(str, read)), list(map(str, values))
            assert [None if v == "" else v for v in read] == values, (table.name, one.key)


def test_csv_opens_in_excel_and_says_its_units():
    text = render_csv(tables_of(plain_document())["methods"])
    assert text.startswith("\ufeff")
    assert "median time (s)" in text.splitlines()[0]
    assert text.endswith("\r\n")


def test_numbers_stay_numbers_in_csv():
    table = TableView(
        "n", "N", (Column("n", "n", "number"),), (Row((Cell(-0.5, "−0.5"),)), Row((Cell(None, "–"),)))
    )
    assert render_csv(table).splitlines()[1:] == ["-0.5", ""]


def test_hostile_names_are_guarded_in_csv():
    found = read_csv(render_csv(tables_of(hostile_document())["cases"]))
    assert [unguard_text(name) for name in found["component"]] == sorted(HOSTILE)
    assert not any(name.startswith(("=", "-")) for name in found["component"])


@given(st.text(min_size=1))
@example("a;=1+1")
@example('a"b')
@example("a\rb")
def test_any_text_survives_csv(text):
    rows = render_csv(one_cell(text)).removeprefix("\ufeff").split("\r\n", 1)[1].removesuffix("\r\n")
    assert rows.startswith('"')
    assert rows.endswith('"')
    assert unguard_text(rows[1:-1].replace('""', '"')) == text
    assert '"' not in rows[1:-1].replace('""', "")


def sheet_xml(content):
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        return {name: book.read(name).decode() for name in book.namelist() if name.endswith(".xml")}


def test_the_workbook_has_the_values():
    tables = tables_of(plain_document())
    content = render_workbook(list(tables.values()))
    for name in ("trials", "answer", "ratios", "trials-paper"):
        flat = expand(tables[name])
        found = pl.read_excel(io.BytesIO(content), sheet_name=name, infer_schema_length=None)
        assert found.columns == [one.heading for one in flat.columns]
        for one, title in zip(flat.columns, found.columns, strict=True):
            if one.kind == "number":
                ours, theirs = column(flat, one.key), found[title].to_list()
                assert [value is None for value in theirs] == [value is None for value in ours]
                # Excel itself keeps 15 digits
                assert [v for v in theirs if v is not None] == pytest.approx(
                    [v for v in ours if v is not None], 1e-15
                )


def test_no_cell_of_the_workbook_is_a_formula_or_a_link():
    content = render_workbook(list(tables_of(hostile_document()).values()))
    parts = sheet_xml(content)
    sheets = {name: text for name, text in parts.items() if name.startswith("xl/worksheets/")}
    assert sheets
    assert not any(re.search(r"<f[ >]", text) for text in sheets.values())
    assert not any("x.example" in text for text in sheets.values())
    found = pl.read_excel(io.BytesIO(content), sheet_name="cases")
    assert found["component"].to_list() == [one.replace("\n", "\n") for one in sorted(HOSTILE)]


def test_headings_are_frozen_bold_and_filtered():
    content = render_workbook([tables_of(plain_document())["cases"]])
    sheet = sheet_xml(content)["xl/worksheets/sheet2.xml"]
    assert '<pane ySplit="1"' in sheet
    assert "<autoFilter" in sheet
    assert "<b/>" in sheet_xml(content)["xl/styles.xml"]
    assert "0.0000" in sheet_xml(content)["xl/styles.xml"]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30, deadline=None)
@given(st.text(min_size=1).filter(str.strip))
@example("_x0041_")
@example("=1+1")
@example("http://x.example")
@example("\uffff")
def test_any_text_survives_the_workbook(text):
    content = render_workbook([one_cell(text)])
    found = pl.read_excel(io.BytesIO(content), sheet_name="names", schema_overrides={"name": pl.String})
    if text.isprintable():
        assert found["name"].to_list() == [text]
    assert found.height == 1
    assert "<f>" not in sheet_xml(content)["xl/worksheets/sheet2.xml"]


def test_a_text_beyond_excels_limit_is_cut_not_lost():
    content = render_workbook([one_cell("x" * 40_000)])
    text = pl.read_excel(io.BytesIO(content), sheet_name="names")["name"][0]
    assert len(text) == LONGEST_TEXT
    assert text.endswith("…")


@given(st.lists(st.text(), max_size=6))
@example(["a" * 40, "A" * 40, "[]:*?/\\", "'", "", "Contents", "History"])
def test_sheets_have_names_that_excel_takes(names):
    sheets = name_sheets(names)
    assert len({sheet.lower() for sheet in sheets}) == len(names)
    for sheet in sheets:
        assert 1 <= len(sheet) <= LONGEST_SHEET_NAME
        assert not re.search(r"[\[\]:*?/\\]|^'|'$", sheet)


def test_everything_is_written_and_the_same_every_time(tmp_path):
    tables = list(tables_of(plain_document()).values())
    first = write_tables(tables, tmp_path / "one")
    time.sleep(2.1)  # a zip file counts its seconds by two
    second = write_tables(tables, tmp_path / "two")
    names = [path.name for path in first]
    assert names == [f"{table.name}.csv" for table in tables] + ["tables.xlsx", "tables.tex", "tables.md"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == sorted(names)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_an_empty_table_is_a_heading_alone(tmp_path):
    table = TableView("empty", "Empty", (Column("a", "a"), Column("n", "n", "number")), (), "There is nothing.")
    write_tables([table], tmp_path)
    assert (tmp_path / "empty.csv").read_bytes() == b'\xef\xbb\xbf"a","n"\r\n'
    assert "There is nothing." in (tmp_path / "tables.md").read_text(encoding="utf-8")
