"""Broken inputs, each with the exact sentence it must give; and good ones in many guises, which must read alike."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xlsxwriter
from typer.testing import CliRunner

import rekka
from rekka.cli import app
from rekka.core.errors import BadOption, BadStates, BadValues, InputError, MissingColumns, UnreadableTable

HEAD = "bridge_id,date,state,traffic\n"
GOOD = HEAD + "".join(
    f"B{b},{y}-06-01,{b % 3 + (y - 2005) // 5},{100 * b}\n" for b in range(1, 5) for y in (2010, 2015, 2020)
)
JAPANESE = "橋梁番号,点検日,健全度\nあ橋,2010-06-01,Ⅰ\nあ橋,2015-06-01,Ⅱ\n"
VISITS = "bridge_id,visit,date,state,traffic\n"
WIDE = "bridge_id,2010,2015\nB1,1,2\n"
KNOWN_STATE = "Say which it is (--state COLUMN, or state in [columns] of a mapping), or call it one of state, condition, condition_state, condition_rating. Where each component has a column of ratings, name these: --component Deck=COLUMN."
KNOWN_BRIDGE = "Say which it is (--bridge COLUMN, or bridge in [columns] of a mapping), or call it one of bridge_id, bridge, bridge_number, bridge_no."
FORMATS = "Say their format: iso, year, fiscal_year, month, mmyy, dmy, mdy, era, or a pattern such as %d.%m.%Y."
ENDINGS = ".csv, .txt, .tsv, .parquet, .pq, .xlsx, .xlsm, .xlsb, .xls, .ods"
COLUMN_KEYS = (
    "bridge, case, member, visit, date, state, completed, length, width, area, traffic, repairs, covariates, "
    "categories, keep, ignore, components"
)
UNDERSTOOD = (
    "Numbers from 1, letters from a and Roman numerals are; for others give the labels, best first (--labels)."
)
NO_TABLE = "Give a file's path, or a pandas, polars or pyarrow frame."
ASIDE = "Exclude such pairs, or correct the table."
OPEN_QUOTE = 'A quotation mark is open or stands inside a field; write it twice ("") there.'
OWN_NAME = (
    "cannot be among covariates or keep, as rekka has a column of that name. "
    "Leave it out if it plays a part already, as traffic and length do; or rename it."
)
RULES = "upward, repairs, same_day, interval, max_gap, missing, outside"

Builder = Callable[[Path], Any]


class Case(NamedTuple):
    """A broken input: what is read, how, and the error that it must end in."""

    id: str
    build: Builder
    options: dict[str, Any]
    kind: type[InputError]
    message: str
    toml: str | bytes | None = None


def file(name: str, content: str | bytes, *beside: tuple[str, str]) -> Builder:
    def build(folder: Path) -> Path:
        for other, text in (*beside, (name, content)):
            (folder / other).parent.mkdir(exist_ok=True)
            (folder / other).write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder / name

    return build


def csv(content: str | bytes, *beside: tuple[str, str]) -> Builder:
    return file("a.csv", content, *beside)


def states(*texts: object) -> Builder:
    return csv(
        "bridge_id,date,state\n" + "".join(f"B{i // 2},{2010 + i % 2 * 5},{t}\n" for i, t in enumerate(texts))
    )


def rows(*lines: str) -> Builder:
    return csv(HEAD + "".join(f"{line}\n" for line in lines))


def book(*sheets: tuple[str, list[list[Any]]], name: str = "a.xlsx") -> Builder:
    def build(folder: Path) -> Path:
        with xlsxwriter.Workbook(folder / name) as workbook:
            for title, lines in sheets:
                sheet = workbook.add_worksheet(title)
                for number, line in enumerate(lines):
                    sheet.write_row(number, 0, line)
        return folder / name

    return build


def merged_book(folder: Path) -> Path:
    with xlsxwriter.Workbook(folder / "a.xlsx") as workbook:
        sheet = workbook.add_worksheet("Data")
        sheet.merge_range(0, 0, 0, 1, "bridge")
        sheet.merge_range(0, 2, 0, 3, "inspection")
        for number, line in enumerate(
            (["id", "name", "date", "rank"], ["B1", "x", 2010, 1], ["B1", "x", 2015, 2]), start=1
        ):
            sheet.write_row(number, 0, line)
    return folder / "a.xlsx"


def parquet(name: str = "a.parquet", damage: slice | None = None, frame: pl.DataFrame | None = None) -> Builder:
    def build(folder: Path) -> Path:
        stream = io.BytesIO()
        (pl.read_csv(io.StringIO(GOOD)) if frame is None else frame).write_parquet(stream)
        data = bytearray(stream.getvalue())
        if damage is not None:
            data[damage] = b"\xff" * len(data[damage])
        return file(name, bytes(data))(folder)

    return build


def renamed(build: Builder, name: str, end: int | None = None) -> Builder:
    return lambda folder: file(name, build(folder).read_bytes()[:end])(folder)


def folder_of(*names: str) -> Builder:
    def build(folder: Path) -> Path:
        (folder / "tables").mkdir()
        for name in names:
            (folder / "tables" / name).write_text(GOOD)
        return folder / "tables"

    return build


def absent(name: str, *beside: str) -> Builder:
    def build(folder: Path) -> Path:
        for other in beside:
            (folder / other).write_text(GOOD)
        return folder / name

    return build


def directory(folder: Path) -> Path:
    (folder / "x.csv").mkdir()
    return folder / "x.csv"


def value(made: Any) -> Builder:
    return lambda folder: made


def join(**keys: Any) -> dict[str, Any]:
    return {"join": [{"file": "other.csv", **keys}]}


def other(text: str, main: str = GOOD) -> Builder:
    return csv(main, ("other.csv", text))


INDEX = (
    "an index, not a scale of states. Give bands: --bands 62,33 where higher is better, --bands 33,62 where it is worse. "
    "These limits are proposed from your data: fifths of the records. Give your agency's limits if it has any."
)
BANDS = "mapping: state: bands are limits that all fall (higher is better) or all rise (higher is worse)."
EMPTY = "is empty. A header and at least one row are needed."
FILES = [
    # Not text, or not in this encoding.
    Case("no such encoding", csv(GOOD), {"table": {"encoding": "klingon"}}, BadOption,
         "encoding is 'klingon'; it can be utf-8, cp932, latin-1."),
    Case("a codec that is no encoding", csv(GOOD), {"table": {"encoding": "rot13"}}, BadOption,
         "encoding is 'rot13'; it can be utf-8, cp932, latin-1."),
    Case("Shift_JIS declared UTF-8", csv(JAPANESE.encode("cp932")), {"table": {"encoding": "utf-8"}}, UnreadableTable,
         "a.csv is not utf-8: byte 0x8b in line 1, at position 0. Leave encoding out to have it recognised, or correct the file there."),
    Case("Latin-1 declared Shift_JIS", csv((GOOD + "Brücke,2010,1,5\n").encode("latin-1")), {"table": {"encoding": "cp932"}},
         UnreadableTable, "a.csv is not cp932: byte 0xfc in line 14, at position 271. Leave encoding out to have it recognised, or correct the file there."),
    Case("wrong encoding far below", csv(GOOD.encode() * 4500 + b"\xfc,2010,1,5\n"), {"table": {"encoding": "utf-8"}},
         UnreadableTable,
         "a.csv is not utf-8: byte 0xfc in line 58,501, at position 1,210,500. Leave encoding out to have it recognised, or correct the file there."),
    Case("UTF-16 without a mark", csv(GOOD.encode("utf-16-le")), {}, UnreadableTable,
         "a.csv is not a text table: it holds zero bytes. Give CSV, Parquet or an Excel workbook; or encoding utf-16-le, "
         "if it is such text."),
    Case("UTF-16 of the other order", csv(GOOD.encode("utf-16-be")), {}, UnreadableTable,
         "a.csv is not a text table: it holds zero bytes. Give CSV, Parquet or an Excel workbook; or encoding utf-16-be, "
         "if it is such text."),
    Case("half a character at the end", csv(GOOD.encode("utf-16")[:-1]), {}, UnreadableTable,
         "a.csv is not utf-16: byte 0x0a in line 13, at position 538. Leave encoding out to have it recognised, or correct the file there."),
    Case("a wrong byte in Shift_JIS", csv(JAPANESE.encode("cp932") + b"\x81,2015,1\n"), {}, UnreadableTable,
         "a.csv is not cp932: byte 0x81 in line 4, at position 61. Leave encoding out to have it recognised, or correct the "
         "file there."),
    Case("a wrong byte in UTF-8", csv(JAPANESE.encode() + b"\x8b,2015,1\n"), {}, UnreadableTable,
         "a.csv is not utf-8: byte 0x8b in line 4, at position 77. Leave encoding out to have it recognised, or correct the "
         "file there."),
    Case("zero bytes", csv(GOOD.replace("B2", "B\0")), {}, UnreadableTable,
         "a.csv is not a text table: it holds zero bytes. Give CSV, Parquet or an Excel workbook."),
    Case("binary", csv(np.random.default_rng(1).integers(1, 256, 5000, dtype=np.uint8).tobytes()), {}, UnreadableTable,
         "a.csv is not a text table: it is full of control characters. Give CSV, Parquet or an Excel workbook."),
    Case("PDF as CSV", csv(b"%PDF-1.4 etc"), {}, UnreadableTable,
         "a.csv is a PDF document, not a text table. Export the table as CSV."),
    Case("workbook as CSV", renamed(book(("Data", [["bridge_id"]])), "a.csv"), {}, UnreadableTable,
         "a.csv is an Excel workbook or a zip archive, not a text table. Rename it to a.xlsx, or unpack it."),
    Case("old workbook as CSV", csv(b"\xd0\xcf\x11\xe0" + bytes(600)), {}, UnreadableTable,
         "a.csv is an old Excel workbook, or one with a password, not a text table. Rename it to a.xls, or save it without "
         "the password."),
    Case("Parquet as CSV", parquet("a.csv"), {}, UnreadableTable,
         "a.csv is a Parquet file, not a text table. Rename it to a.parquet."),
    Case("gzip as CSV", csv(gzip.compress(GOOD.encode())), {}, UnreadableTable,
         "a.csv is a gzip archive, not a text table. Unpack it."),
    Case("picture as CSV", csv(b"\xff\xd8\xff\xe0 and so on"), {}, UnreadableTable,
         "a.csv is a picture, not a text table. A table is needed."),
    Case("web page as CSV", csv("\n<!DOCTYPE html>\n<table><tr><td>B1</td></tr></table>\n"), {}, UnreadableTable,
         "a.csv is a web page or XML, not a text table. Open it in a spreadsheet and save it as CSV."),
    # Workbooks and Parquet.
    Case("CSV as workbook", file("a.xlsx", GOOD), {}, UnreadableTable,
         "a.xlsx is not an Excel workbook. If it is text, rename it to a.csv."),
    Case("web page as workbook", file("a.xls", "<html><table></table></html>"), {}, UnreadableTable,
         "a.xls is a web page or XML, not the workbook that its name says. Open it in a spreadsheet and save it as CSV."),
    Case("workbook with a password", file("a.xlsx", b"\xd0\xcf\x11\xe0" + bytes(600)), {}, UnreadableTable,
         "a.xlsx is an old Excel workbook, or one with a password, not the workbook that its name says. Rename it to a.xls, "
         "or save it without the password."),
    Case("Parquet as workbook", parquet("a.xlsx"), {}, UnreadableTable,
         "a.xlsx is a Parquet file, not the workbook that its name says. Rename it to a.parquet."),
    Case("workbook cut short", renamed(book(("Data", [["a"]])), "b.xlsx", -300), {}, UnreadableTable,
         "b.xlsx is damaged, or a zip archive and no workbook. Save it again in Excel, or as CSV."),
    Case("empty workbook", file("a.xlsx", b""), {}, UnreadableTable, f"a.xlsx {EMPTY}"),
    Case("empty sheet", book(("Data", [])), {}, UnreadableTable, "a.xlsx: sheet Data is empty."),
    Case("empty sheet before another", book(("Notes", []), ("Data", [["a"]])), {}, UnreadableTable,
         "a.xlsx: sheet Notes is empty. Other sheets: Data."),
    Case("sheet of notes", book(("Notes", [["Read me"]]), ("Data", [["a"], ["b"]])), {}, UnreadableTable,
         "a.xlsx: sheet Notes has a header and no rows below it. Other sheets: Data."),
    Case("no such sheet", book(("Data", [["a"], ["b"]])), {"table": {"sheet": "Dat"}}, BadOption,
         "sheet is 'Dat'; it can be Data. Did you mean Data?"),
    Case("no such sheet by number", book(("Data", [["a"], ["b"]])), {"table": {"sheet": 3}}, BadOption,
         "sheet is 3; it can be Data."),
    Case("sheet of a text", csv(GOOD), {"table": {"sheet": "Data"}}, BadOption,
         "a.csv is text and has no sheets; leave sheet out."),
    Case("decimal comma in a workbook", book(("Data", [["a"], ["b"]])), {"table": {"decimal": ","}}, BadOption,
         "a.xlsx is a workbook, where numbers need no decimal mark; leave decimal out."),
    Case("merged header", merged_book, {}, MissingColumns,
         "a.xlsx has no column that is known as the state. Columns there: bridge, column 2, inspection, column 4. "
         f"{KNOWN_STATE} Some have no name: if the header is another row, give header_row."),
    Case("more names than columns", book(("Data", [["B1", 2010, 1]])), {"table": {"names": ["bridge_id", "date", "state", "x"]}},
         UnreadableTable, "a.xlsx has 3 columns and 4 names for them."),
    Case("CSV as Parquet", file("a.parquet", GOOD), {}, UnreadableTable, "a.parquet is not a Parquet file, or is damaged."),
    Case("damaged Parquet", parquet(damage=slice(4, 60)), {}, UnreadableTable,
         "a.parquet cannot be read to its end: parquet: File out of specification: Invalid thrift: bad data."),
    Case("Parquet with a damaged end", parquet(damage=slice(-8, -4)), {}, UnreadableTable,
         "a.parquet is not a Parquet file, or is damaged."),
    Case("empty Parquet", file("a.parquet", b""), {}, UnreadableTable, f"a.parquet {EMPTY}"),
    Case("Parquet without rows", parquet(frame=pl.DataFrame({"bridge_id": [], "date": [], "state": []})), {}, UnreadableTable,
         "a.parquet has no rows."),
    Case("lists in cells", parquet(frame=pl.DataFrame({"bridge_id": ["a"], "date": [2010], "state": [[1]]})), {}, BadValues,
         "a.parquet: state holds lists or other objects in its cells; a value each is needed."),
    Case("dates for numbers", parquet(frame=pl.DataFrame({"bridge": ["a"], "date": [2010], "state": [1]}).with_columns(
         traffic=pl.date(2010, 1, 1))), {}, BadValues, "a.parquet: traffic holds dates or times; numbers are needed."),
    # Rows and header.
    Case("empty", csv(""), {}, UnreadableTable, f"a.csv {EMPTY}"),
    Case("blank lines only", csv("\n\n  \r\n\n"), {}, UnreadableTable, f"a.csv {EMPTY}"),
    Case("a byte order mark only", csv(b"\xef\xbb\xbf\r\n"), {}, UnreadableTable, f"a.csv {EMPTY}"),
    Case("separators only", csv(",,,\n,,,\n"), {}, UnreadableTable,
         "a.csv: row 1, where the header should be, is blank. Give the header's row with header_row."),
    Case("header only", csv(HEAD), {}, UnreadableTable, "a.csv has a header and no rows below it."),
    Case("header and blank lines", csv(HEAD + "\n\n\n"), {}, UnreadableTable, "a.csv has a header and no rows below it."),
    Case("header row beyond the end", csv(GOOD), {"table": {"header_row": 99}}, UnreadableTable,
         "a.csv has 13 rows; the header cannot be row 99."),
    Case("negative header row", csv(GOOD), {"table": {"header_row": -1}}, BadOption,
         "mapping: table.header_row is -1; a number of at least 0 is needed."),
    Case("two header rows", csv("bridge,inspection,inspection\nid,date,rank\nB1,2010,1\nB1,2015,2\n"), {}, MissingColumns,
         f"a.csv has no column that is known as the state. Columns there: bridge, inspection, inspection (2). {KNOWN_STATE}"),
    Case("too few names", csv(GOOD), {"table": {"names": ["bridge_id", "date"], "header_row": 1}}, UnreadableTable,
         "a.csv has 4 columns and 2 names for them."),
    Case("two separators", csv(GOOD + "B9;2010-06-01;1;5\n"), {}, UnreadableTable,
         "a.csv: row 14 is separated by semicolons and the header by commas. Save the table with one separator."),
    Case("separator of two characters", csv(GOOD), {"table": {"separator": ";;"}}, BadOption,
         r"separator is ';;'; it can be ',', ';', '\t', '|'."),
    Case("separator beyond ASCII", csv(GOOD), {"table": {"separator": "é"}}, BadOption,
         r"separator is 'é'; it can be ',', ';', '\t', '|'."),
    Case("the other separator", csv(GOOD), {"table": {"separator": ";"}}, MissingColumns,
         f"a.csv has no column that is known as the bridge. Columns there: bridge_id,date,state,traffic. {KNOWN_BRIDGE}"),
    Case("too many fields", csv(GOOD + "B9,2010-06-01,1,5,extra\n"), {}, UnreadableTable,
         "a.csv: row 14 has 5 fields and the header has 4. Put quotation marks around fields that hold commas, or give the "
         "header's row with header_row."),
    Case("open quotation mark", csv(GOOD + '"B9,2010-06-01,1,5\nB9,2015-06-01,1,5\n'), {}, UnreadableTable,
         f"a.csv: row 14 cannot be split into fields (unexpected end of data). {OPEN_QUOTE}"),
    Case("text behind a quoted field", csv(GOOD + '"B9"x,2010-06-01,1,5\n'), {}, UnreadableTable,
         f"""a.csv: row 14 cannot be split into fields (',' expected after '"'). {OPEN_QUOTE}"""),
    Case("10 MB in a line", csv("x" * 10_000_000), {}, UnreadableTable,
         "a.csv: its first line is longer than 1,048,576 bytes. Is this a table with a row a line?"),
    Case("a very long cell", csv(GOOD + "x" * 200_000 + ",2010-06-01,1,5\n"), {}, UnreadableTable,
         "a.csv: row 14 has a field of more than 131,072 characters. Is a quotation mark open there?"),
    Case("6,000 columns", csv(",".join(f"c{i}" for i in range(6000)) + "\n" + "1," * 5999 + "1\n"), {}, UnreadableTable,
         "a.csv has 6,000 columns in its header; at most 5,000 are read. Is the separator right?"),
    # Columns.
    Case("a column twice", csv("bridge_id,date,state,state\nB1,2010,1,2\n"), {}, BadOption,
         "a.csv has two columns called state. Rename one of them, or give names."),
    Case("a column twice but for case", csv("bridge_id,date,State,state\nB1,2010,1,2\n"), {}, BadOption,
         "a.csv has 2 columns that can be the state: State, state. Say which it is."),
    Case("a name mistyped", csv(GOOD.replace("state", "condition_rank")), {"columns": {"state": "condition_rnk"}}, MissingColumns,
         "condition_rnk is not in a.csv. Columns there: bridge_id, date, condition_rank, traffic. Did you mean condition_rank?"),
    Case("a blank name", csv(GOOD), {"columns": {"state": ""}}, MissingColumns,
         "'' is not in a.csv. Columns there: bridge_id, date, state, traffic."),
    Case("no state", csv(GOOD.replace("state", "cotton")), {}, MissingColumns,
         f"a.csv has no column that is known as the state. Columns there: bridge_id, date, cotton, traffic. {KNOWN_STATE}"),
    Case("no bridge", csv(GOOD.replace("bridge_id", "q1")), {}, MissingColumns,
         f"a.csv has no column that is known as the bridge. Columns there: q1, date, state, traffic. {KNOWN_BRIDGE}"),
    Case("no date", csv(GOOD.replace("date", "when")), {}, MissingColumns,
         "a.csv has no column that is known as the date. Columns there: bridge_id, when, state, traffic. Say which it is (--date COLUMN, or date in [columns] of a mapping), or "
         "call it one of date, inspection_date, date_of_inspection, inspected."),
    Case("one column for two parts", csv(GOOD), {"columns": {"traffic": "state"}}, MissingColumns,
         "a.csv has no column that is known as the state. Columns there: bridge_id, date, state, traffic. state has been given "
         "another part; say that it is the state, too, or which column is."),
    Case("very many columns", csv(",".join(f"c{i}" for i in range(100)) + "\n" + "1," * 99 + "1\n"), {}, MissingColumns,
         "a.csv has no column that is known as the bridge. Columns there: " + ", ".join(f"c{i}" for i in range(40))
         + f" and 60 more. {KNOWN_BRIDGE}"),
    Case("a covariate of our name", csv(GOOD.replace("traffic", "state_1")), {"columns": {"covariates": ["state_1"]}}, BadOption,
         f"a.csv: state_1 {OWN_NAME}"),
    Case("a kept column of our name", csv(GOOD), {"columns": {"keep": ["date"]}}, BadOption, f"a.csv: date {OWN_NAME}"),
    Case("no covariate of a paired table", csv("state_1,state_2,interval_years,age\n1,2,5,10\n"), {"columns": {"covariates": ["aga"]}},
         MissingColumns, "aga is not in a.csv. Columns there: state_1, state_2, interval_years, age. Did you mean age?"),
    Case("state_1 twice in a paired table", csv("state_1,state_1,state_2,interval_years\n1,1,2,5\n"), {}, BadOption,
         "a.csv has two columns called state_1. Rename one of them, or give names."),
    # Dates.
    Case("impossible dates", rows("B1,2014-02-30,1,5", "B1,2015-02-30,2,5"), {}, BadValues,
         f"a.csv: none of the 2 inspection dates is understood, such as '2014-02-30'. {FORMATS}"),
    Case("day or month first", rows("B1,03/04/2014,1,5", "B1,05/06/2019,2,5"), {}, BadValues,
         "a.csv, dates of inspection: Dates such as 03/04/2014 can be day or month first, and the others do not show which. Say dmy "
         "or mdy (--dates dmy for inspections)."),
    Case("day first and month first", rows("B1,23/04/2014,1,5", "B1,05/26/2019,2,5"), {}, BadValues,
         "a.csv, dates of inspection: 23/04/2014 has the day first and 05/26/2019 the month. Say dmy or mdy for all, or both in "
         "the order in which they are to be tried."),
    Case("day or month first of completion", csv("bridge_id,date,state,completed\nB1,2010,1,03/04/1980\nB1,2015,2,03/04/1980\n"), {},
         BadValues, "a.csv, completed: Dates such as 03/04/1980 can be day or month first, and the others do not show which. Say dmy "
         "or mdy (--dates dmy for inspections)."),
    Case("neither day nor month", rows("B1,23/14/2014,1,5"), {}, BadValues,
         f"a.csv: none of the 1 inspection dates is understood, such as '23/14/2014'. {FORMATS}"),
    Case("MMYY unsaid", rows("B1,0614,1,5", "B1,0619,2,5"), {}, BadValues,
         f"a.csv: none of the 2 inspection dates is understood, such as '0614'. {FORMATS}"),
    Case("years out of range", rows("B1,1514,1,5", "B1,3019,2,5"), {}, BadValues,
         f"a.csv: none of the 2 inspection dates is understood, such as '1514'. {FORMATS}"),
    Case("Excel's day numbers as text", rows("B1,40330,1,5", "B1,42156,2,5"), {}, BadValues,
         f"a.csv: none of the 2 inspection dates is understood, such as '40330'. {FORMATS}"),
    Case("all dates blank", rows("B1,,1,5", "B1,-,2,5"), {}, BadValues,
         f"a.csv: none of the 2 inspection dates is understood, such as '-'. {FORMATS}"),
    Case("no such format", csv(GOOD), {"dates": {"inspection": "mmy"}}, BadOption,
         "mapping: dates: 'mmy' is not a date format; auto, iso, year, fiscal_year, month, mmyy, dmy, mdy, era and patterns such "
         "as %d.%m.%Y are. Did you mean mmyy?"),
    Case("no format", csv(GOOD), {"dates": {"inspection": []}}, BadOption, "mapping: dates: a format is needed, or auto."),
    # States.
    Case("state outside the scale", states(1, 2, 3, 9), {"state": {"best": 1, "worst": 5}, "rules": {"outside": "error"}}, BadStates,
         "The state is '9' in row 5 (1 of 4), outside the scale 1, 2, 3, 4, 5. Exclude such records, or give a wider scale."),
    Case("states that mean nothing", states("foo", "bar", "foo", "foo"), {}, BadStates,
         f"The states are not understood: foo, bar. {UNDERSTOOD}"),
    Case("formulas as states", states("=A1+1", "=A2+1"), {}, BadStates,
         f"The states are not understood: =A1+1, =A2+1. {UNDERSTOOD}"),
    Case("an index without bands", states(87.5, 62, 33, 20), {}, BadStates, f"The states run from 20 to 87.5: {INDEX}"),
    Case("states from 0", states(0, 9, 7, 6), {}, BadStates,
         "The states run from 0 to 9. Say which end is best, such as --best 9 --worst 0; or that 0 means that nobody looked, "
         "--not-inspected 0."),
    Case("all states blank", states("", "-", "N/A", ""), {}, BadStates, "Every state is blank: there is no condition to model."),
    Case("bands up and down", states(1, 2), {"state": {"bands": [80, 90, 60]}}, BadOption, BANDS),
    Case("no bands", states(1, 2), {"state": {"bands": []}}, BadOption, BANDS),
    Case("bands without end", states(1, 2), {"state": {"bands": [float("inf"), 1.0]}}, BadOption,
         "mapping: state.bands.0 is inf; a finite number is needed."),
    Case("bands of text", states(1, 2), {"state": {"bands": ["high"]}}, BadOption,
         "mapping: state.bands.0 is 'high'; a number is needed."),
    Case("a label twice", states("a", "b"), {"state": {"labels": ["a", "b", "A"]}}, BadOption,
         "state.labels hold a label twice: 'A'. Upper and lower case are one."),
    Case("a blank label", states("a", "b"), {"state": {"labels": ["a", "b", "-"]}}, BadOption,
         "state.labels hold '-', which means that nobody looked. Leave it out."),
    Case("a group without labels", states("a", "b"), {"state": {"labels": ["a", "b", []]}}, BadOption,
         "state.labels hold a group without labels."),
    Case("a label and missing", states("a", "b"), {"state": {"labels": ["a", "b"], "missing": ["B"]}}, BadOption,
         "'b' is both in state.labels and in state.missing."),
    Case("best without worst", states(1, 2), {"state": {"best": 9}}, BadOption,
         "mapping: state: best and worst are two different whole numbers."),
    Case("a scale without end", states(1, 2), {"state": {"best": 0, "worst": 10**12}}, BadOption,
         "From 0 to 1000000000000 there are 1,000,000,000,001 states; at most 20 are taken. Give bands."),
    Case("two kinds of scale", states(1, 2), {"state": {"best": 1, "worst": 2, "bands": [1]}}, BadOption,
         "mapping: state: give labels, or best and worst, or bands; not two of them."),
    # Rules.
    Case("upward move", states(3, 1), {"rules": {"upward": "error"}}, BadStates,
         "all: row 2 (1 pair): upward move: the condition improved (bridge B0, 2010-01-01 -> 2015-01-01, state 3 -> 1). " + ASIDE),
    Case("no time between visits", csv(VISITS + "B1,1,2010-01-01,1,5\nB1,2,2010-01-01,2,5\n"), {"rules": {"interval": "error"}},
         BadValues, "all: row 2 (1 pair): the later visit is not after the earlier one (bridge B1, 2010-01-01 -> 2010-01-01, "
         "state 1 -> 2). " + ASIDE),
    Case("two states on one day", csv("bridge_id,date,state\nB1,2010,1\nB1,2010,2\n"), {"rules": {"same_day": "error"}}, BadValues,
         "row 3 (1 record): another record of the same member and day has another state. Keep the worst, the first or the last of "
         "them with same_day, or exclude them."),
    Case("two states of one visit", csv(VISITS + "B1,1,2010-01-01,1,5\nB1,1,2011-01-01,2,5\n"), {"rules": {"same_day": "error"}},
         BadValues, "row 3 (1 record): another record of the same member and visit number has another state. Keep the worst, the "
         "first or the last of them with same_day, or exclude them."),
    Case("missing covariate", csv(GOOD.replace(",100\n", ",\n")), {"rules": {"missing": "error"}}, BadValues,
         "all: rows 2, 3 (2 pairs): traffic_mean is missing (bridge B1, 2010-06-01 -> 2015-06-01, state 2 -> 3). " + ASIDE),
    Case("no such rule", csv(GOOD), {"rules": {"upwards": "error"}}, BadOption,
         f"mapping: rules.upwards is not known. rules can hold {RULES}. Did you mean upward?"),
    Case("rule with a wrong value", csv(GOOD), {"rules": {"upward": "restrat"}}, BadOption,
         "mapping: rules.upward is 'restrat'; it can be set_aside, restart, keep, keep_all, error. Did you mean restart?"),
    Case("gap of nothing", csv(GOOD), {"rules": {"max_gap": 0}}, BadOption, "mapping: rules.max_gap is 0; a number above 0 is needed."),
    # Mappings.
    Case("unknown key in TOML", csv(GOOD), {}, BadOption,
         f"m.toml: columns.brige is not known. columns can hold {COLUMN_KEYS}. Did you mean bridge?", "[columns]\nbrige = 'B'\n"),
    Case("unknown section in TOML", csv(GOOD), {}, BadOption,
         "m.toml: colums is not known. A mapping can hold table, columns, wide, state, dates, join, rules. Did you mean columns?",
         "[colums]\nbridge = 'B'\n"),
    Case("text for a section", csv(GOOD), {}, BadOption, "m.toml: columns is 'B'; a section of keys is needed.", "columns = 'B'\n"),
    Case("not TOML", csv(GOOD), {}, BadOption,
         "m.toml is not TOML: Expected ']' at the end of a table declaration (at line 1, column 9).", "[columns\nbridge = 'B'\n"),
    Case("TOML in Shift_JIS", csv(GOOD), {}, BadOption,
         "m.toml is not UTF-8, as TOML is: byte 0x8b at position 20. Save it as UTF-8.", "[columns]\nbridge = '橋'\n".encode("cp932")),
    Case("number for a name", csv(GOOD), {"columns": {"bridge": 3}}, BadOption, "mapping: columns.bridge is 3; text is needed."),
    Case("text for a list", csv(GOOD), {"columns": {"covariates": "traffic"}}, BadOption,
         "mapping: columns.covariates is 'traffic'; a list is needed."),
    Case("no such decimal mark", csv(GOOD), {"table": {"decimal": "x"}}, BadOption,
         "mapping: table.decimal is 'x'; it can be '.', ','."),
    # Joins.
    Case("no file to join", csv(GOOD), join(), UnreadableTable, "There is no file other.csv."),
    Case("join without a file", csv(GOOD), {"join": [{"sheet": "a"}]}, BadOption, "mapping: join.0.file is needed and not given."),
    Case("join that is no list", csv(GOOD), {"join": "other.csv"}, BadOption, "mapping: join is 'other.csv'; a list is needed."),
    Case("join without a bridge", other("place,adt\nhere,4\n"), join(), MissingColumns,
         "other.csv has no column that is known as the bridge. Columns there: place, adt. Say which it is in columns of its [[join]]."),
    Case("empty table to join", other(""), join(), UnreadableTable, f"other.csv {EMPTY}"),
    Case("agreement on what is missing here", other("bridge_id,length\nB1,20\n"), join(agree={"column": "length"}), MissingColumns,
         "length is in one table only, so the two cannot agree on it."),
    Case("agreement on what is missing there", other("bridge_id,completed\nB1,1980\n", GOOD.replace("traffic", "length")),
         join(agree={"column": "length"}), MissingColumns, "length is in one table only, so the two cannot agree on it."),
    Case("agreement on what cannot", other("bridge_id\nB1\n"), join(agree={"column": "height"}), BadOption,
         "mapping: join.0.agree.column is 'height'; it can be length, width, area, completed."),
    # Wide tables.
    Case("pattern without columns", csv(WIDE), {"wide": {"state": "BCI {year}"}}, MissingColumns,
         "BCI {year} is not in a.csv. Columns there: bridge_id, 2010, 2015."),
    Case("by visit without dates", csv(WIDE), {"wide": {"state": "rank_{visit}"}}, BadOption,
         "mapping: wide: columns by {visit} need a date pattern too, such as date = 'date_{visit}'."),
    Case("by visit without a date's column", csv("bridge_id,rank_1,rank_2\nB1,1,2\n"),
         {"wide": {"state": "rank_{visit}", "date": "date_{visit}"}}, MissingColumns,
         "date_1 is not in a.csv. Columns there: bridge_id, rank_1, rank_2."),
    Case("pattern without a place", csv(WIDE), {"wide": {"state": "BCI"}}, BadOption,
         "mapping: wide: 'BCI' needs one of {year}, {fiscal_year} and {visit}, once."),
    Case("a year twice", csv("bridge_id,2010,2010,2015\nB1,1,1,2\n"), {}, BadOption,
         "a.csv has two columns called 2010. Rename one of them, or give names."),
    # Files and folders.
    Case("no such file", absent("inspctions.csv", "inspections.csv"), {}, UnreadableTable,
         "There is no file inspctions.csv. Did you mean inspections.csv?"),
    Case("no such file of this ending", absent("A.xlsx", "a.csv"), {}, UnreadableTable,
         "There is no file A.xlsx. Did you mean a.csv?"),
    Case("no such folder", absent("nowhere/a.csv"), {}, UnreadableTable,
         "There is no file a.csv. There is no folder nowhere either."),
    Case("unknown ending", file("a.dat", GOOD), {}, UnreadableTable, f"a.dat ends in .dat; a table ends in {ENDINGS}."),
    Case("no ending", file("a", GOOD), {}, UnreadableTable, f"a ends in nothing; a table ends in {ENDINGS}."),
    Case("folder without tables", folder_of("readme.md"), {}, UnreadableTable,
         "The folder tables holds no table called inspections, and no Parquet files."),
    Case("folder with two inspections", folder_of("inspections.csv", "inspections.xlsx"), {}, UnreadableTable,
         "The folder tables has inspections.csv, inspections.xlsx. Give the file that is meant."),
    Case("folder called x.csv", directory, {}, UnreadableTable,
         "The folder x.csv holds no table called inspections, and no Parquet files."),
]  # fmt: skip
OBJECTS = [
    Case("a table's text", value(GOOD), {}, UnreadableTable,
         "There is no file bridge_id,date,state,traffic B1,2010-06-01,2,100 B1,2015-06-01,3,100 B1,2020-06-...."),
    Case("an address", value("https://example.org/a.csv"), {}, UnreadableTable,
         "There is no file a.csv. What is on the web is not read from there; download it first."),
    Case("a list", value([1, 2]), {}, InputError, f"The input is of type list, not a table. {NO_TABLE}"),
    Case("nothing", value(None), {}, InputError, f"The input is of type NoneType, not a table. {NO_TABLE}"),
    Case("pandas with a column twice", value(pd.DataFrame([[1, 2, 3, 4]], columns=["bridge", "date", "state", "state"])), {},
         UnreadableTable, "The dataframe has two columns called state. Rename one of them."),
    Case("pyarrow with a column twice", value(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])), {},
         UnreadableTable, "The dataframe has two columns called a. Rename one of them."),
    Case("a frame without rows", value(pl.DataFrame({"bridge": [], "date": [], "state": []})), {}, UnreadableTable,
         "the dataframe has no rows."),
    Case("a lazy frame that fails", value(pl.LazyFrame({"a": [1]}).select("b")), {}, UnreadableTable,
         'The lazy frame cannot be run: unable to find column "b"; valid columns: ["a"].'),
]  # fmt: skip
CASES = FILES + OBJECTS


def by_id(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])


def prepare(case: Case, folder: Path) -> tuple[Any, Path | None, dict[str, Any]]:
    """The input, its mapping file if it has one, and the options, with files in the folder."""
    source, options, mapping = case.build(folder), dict(case.options), None
    if isinstance(options.get("join"), list):
        options["join"] = [
            one | ({"file": str(folder / one["file"])} if "file" in one else {}) for one in options["join"]
        ]
    if case.toml is not None:
        mapping = file("m.toml", case.toml)(folder)
    return source, mapping, options


@by_id(CASES)
def test_a_broken_input_is_refused_in_these_words(case, tmp_path):
    source, mapping, options = prepare(case, tmp_path)
    with pytest.raises(InputError) as caught:
        rekka.read_transitions(source, mapping, **options)
    assert (type(caught.value), str(caught.value)) == (case.kind, case.message)
    assert str(tmp_path) not in case.message


def test_there_are_many_of_them_and_each_has_its_own_name():
    assert len({case.id for case in CASES}) == len(CASES) >= 45


def write_toml(options: dict[str, Any]) -> str:
    """A mapping in TOML; JSON's values are TOML's too, but for tables."""

    def write(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key} = {write(inner)}" for key, inner in value.items()) + "}"
        if isinstance(value, list):
            return f"[{', '.join(map(write, value))}]"
        return repr(value) if isinstance(value, float) else json.dumps(value)

    return "".join(f"{key} = {write(value)}\n" for key, value in options.items())


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("case", "command"),
    [
        pytest.param(case, command, id=f"{command} {case.id}")
        for case in FILES
        for command in ("check", "transitions")
        if command == "check" or "rules" in case.options or not (case.options or "paired table" in case.id)
    ],
)
def test_the_command_says_the_same_and_ends(case, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, mapping, options = prepare(case, tmp_path)
    if options:
        mapping = file("m.toml", write_toml(options))(tmp_path)
    done = invoke(command, source.relative_to(tmp_path), *([] if mapping is None else ["--mapping", mapping.name]))
    assert done.stderr == f"{case.kind.__name__}: {case.message.replace('mapping: ', 'm.toml: ')}\n"
    assert done.exit_code == (2 if case.kind is BadOption else 1)
    assert done.stdout == ""
    assert not (tmp_path / "transitions.csv").exists()


def test_what_is_paired_is_not_paired_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv(GOOD)(tmp_path)
    assert invoke("transitions", "a.csv").exit_code == 0
    assert invoke("check", "transitions.csv").exit_code == invoke("check", "a.csv").exit_code
    done = invoke("transitions", "transitions.csv", "--out", "again.csv")
    said = "transitions.csv has state_1, state_2, interval_years: it holds transitions already, not inspections."
    assert (done.exit_code, done.stderr) == (1, f"UnreadableTable: {said}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "a.csv", "--nonsense"], ["check"], ["transitions", "a.csv", "--partition", "nonsense"],
        ["check", "a.csv", "--until", "2015-03-31"], ["check", "a.csv", "--partition", "date"],
        ["check", "a.csv", "--partition", "date", "--until", "soon"], ["check", "a.csv", "--bands", "high,low"],
        ["check", "a.csv", "--best", "high"], ["check", "a.csv", "--max-gap", "-1"], ["check", "a.csv", "a.csv"],
        ["check", "a.csv", "--separator", ";;"], ["transitions", "a.csv", "--out", "a.csv"],
        ["transitions", "a.csv", "--out", "out.doc"], ["transitions", "a.csv", "--out", "nowhere/out.csv"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_ends_with_2(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv(GOOD)(tmp_path)
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "a.csv").read_text() == GOOD


def test_a_mapping_that_is_not_there(tmp_path):
    data = csv(GOOD)(tmp_path)
    with pytest.raises(UnreadableTable) as caught:
        rekka.read_transitions(data, tmp_path / "nothing.toml")
    assert str(caught.value) == "There is no mapping file nothing.toml."
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(UnreadableTable) as caught:
        rekka.read_transitions(data, tmp_path / "folder.toml")
    assert str(caught.value) == "The mapping folder.toml cannot be read: Is a directory."
    with pytest.raises(BadOption) as caught:
        rekka.read_transitions(data, [1])
    assert str(caught.value) == "mapping is a list; a TOML file's path or a dict is needed."


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"upwards": "error"}, f"upwards is not a rule; {RULES} are. Did you mean upward?"),
        ({"upward": "drop"}, "rules: upward is 'drop'; it can be set_aside, restart, keep, keep_all, error."),
        ({"max_gap": "five"}, "rules: max_gap is 'five'; a number is needed."),
    ],
)
def test_rules_given_to_pairing(rules, message, tmp_path):
    with pytest.raises(BadOption) as caught:
        rekka.pair_visits(rekka.read_panel(csv(GOOD)(tmp_path)), **rules)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("out.txt", "the output's ending is '.txt'; it can be .csv, .parquet, .pq, .xlsx."),
        ("out", "the output's ending is ''; it can be .csv, .parquet, .pq, .xlsx."),
        ("nowhere/out.csv", "There is no folder nowhere for out.csv. Make it first."),
    ],
)
def test_an_output_that_cannot_be_written(out, message, tmp_path):
    with pytest.raises(BadOption) as caught:
        rekka.write_transitions(rekka.read_panel(csv(GOOD)(tmp_path)), tmp_path / out)
    assert str(caught.value) == message


# What is not an error: it is read, and told.


def test_one_row_makes_no_pair_and_ends_with_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = rows("B1,2010-06-01,1,5")(tmp_path)
    found = rekka.read_transitions(data)
    assert found.frame.is_empty()
    assert found.audit.table.rows() == [("last visit", "the member's only visit", 1, None)]
    done = invoke("transitions", data.name)
    assert (done.exit_code, done.stderr) == (1, "No two visits make a transition; the audit says why.\n")
    assert invoke("check", data.name).exit_code == 1


@pytest.mark.parametrize("cell", ["many", "=A1+1", "12 m", "1.2.3", "1e999", "一万"])
def test_text_in_numbers_is_missing_with_a_note(cell, tmp_path):
    found = rekka.read_transitions(csv(GOOD.replace("B1,2010-06-01,2,100", f"B1,2010-06-01,2,{cell}"))(tmp_path))
    assert f"a.csv: 1 value of traffic taken as missing: no numbers, such as {cell!r} in row 2" in found.notes
    assert found.audit.set_aside.select("row", "reason").rows() == [(2, "traffic_mean is missing")]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("B1,2015-06-01,3", "B1,2015-06-01,=A1+1", "the state is not understood"),
        ("B1,2015-06-01,3", "B1,2015-06-01,", "not inspected: the state is blank"),
        ("B1,2015-06-01,3", "B1,2015-02-30,3", "the date is not understood"),
        ("B1,2015-06-01,3", "B1,9999-12-31,3", "the date is not understood"),
        ("B1,2015-06-01,3", "B1,,3", "the date is blank"),
        ("B1,2015-06-01,3", ",2015-06-01,3", "the bridge is blank"),
        ("B1,2015-06-01,3,100", "", "the bridge is blank"),
        ("B1,2015-06-01,3,100", "B1,2015-06-01", "not inspected: the state is blank"),
    ],
)
def test_one_bad_record_is_set_aside_by_its_row(old, new, reason, tmp_path):
    assert old in GOOD
    found = rekka.read_transitions(csv(GOOD.replace(old, new))(tmp_path))
    assert found.audit.set_aside.select("row", "reason").rows() == [(3, reason)]
    assert found.frame.select("row_1", "row_2").row(0) == (2, 4)


@pytest.mark.parametrize("number", ["1.5", "first", "99999999999"])
def test_a_visit_without_a_whole_number_is_set_aside(number, tmp_path):
    data = csv(VISITS + f"B1,1,2010-01-01,1,5\nB1,{number},2011-01-01,2,5\nB1,2,2015-01-01,2,5\n")(tmp_path)
    found = rekka.read_transitions(data)
    assert found.audit.set_aside["reason"].to_list() == ["the visit's number is blank or not a number"]
    assert found.frame.select("row_1", "row_2").rows() == [(2, 4)]


def test_a_column_twice_that_plays_no_part(tmp_path):
    data = csv("bridge_id,date,state,note,note,note (2)\nB1,2010,1,a,b,c\nB1,2015,2,a,b,c\n")(tmp_path)
    assert rekka.read_panel(data, columns={"keep": ["note (3)"]}).visits.collect()["note (3)"].to_list() == [
        "b",
        "b",
    ]


@pytest.mark.parametrize("make", [lambda data: data, pl.read_csv, pd.read_csv], ids=["file", "polars", "pandas"])
def test_a_column_called_row(make, tmp_path):
    data = csv(GOOD.replace("traffic", "row"))(tmp_path)
    found = rekka.read_transitions(make(data), columns={"covariates": ["row (2)"]})
    assert (len(found.frame), found.covariates) == (8, ("row (2)",))


# The same table in many guises.

NAMES = ("Brücke Süd", "Pont d'Évian", "B 17", "Ponte São")
ACCENTS = GOOD
for place, name in enumerate(NAMES, start=1):
    ACCENTS = ACCENTS.replace(f"B{place},", f"{name},")
IN_JAPANESE = ACCENTS.replace("bridge_id,date,state,traffic", "橋梁番号,点検日,健全度,交通量")
for name, japanese in zip(NAMES, ("一号橋", "あさひ橋", "カモメ橋", "大橋"), strict=True):
    IN_JAPANESE = IN_JAPANESE.replace(name, japanese)


def transitions(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    columns = ["bridge_id", "state_1", "state_2", "interval_years", "traffic_mean", "date_1", "date_2", "visit_1"]
    return rekka.read_transitions(source, **options).frame.select(columns).rows()


def typed(text: str = ACCENTS) -> pl.DataFrame:
    return pl.read_csv(io.StringIO(text), try_parse_dates=True)


def quoted(text: str) -> str:
    return "".join(",".join(f'"{cell}"' for cell in line.split(",")) + "\n" for line in text.splitlines())


EXPECTED = transitions(typed())
FEED, SPACE, ZERO_WIDTH = "\n", "\u3000", "\u200b"


@pytest.mark.parametrize(
    "content",
    [
        *(ACCENTS.encode(name) for name in ("utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32")),
        b"\xfe\xff" + ACCENTS.encode("utf-16-be"),
        *(ACCENTS.replace(FEED, end).encode() for end in ("\r\n", "\r", "\r\r\n")),
        *(ACCENTS.replace(",", mark).encode() for mark in ";\t|"),
        quoted(ACCENTS).encode("latin-1"),
        ACCENTS.rstrip().encode(),
        f"{ACCENTS}\n\n\r\n".encode(),
        ACCENTS.replace(FEED, ",,\n").encode(),
        (HEAD + ACCENTS.removeprefix(HEAD).replace(FEED, ",,\n")).encode(),
        f"Bridges {SPACE} 5\" wide\nprinted in May\n\n{ACCENTS}".encode(),
        f"sep=;\n{ACCENTS.replace(',', ';')}".encode(),
        ACCENTS.replace(FEED, "\n\n").encode(),
        ACCENTS.replace("bridge_id", '"Bridge\n ID"').encode(),
        ACCENTS.replace("bridge_id", " Bridge  ID ").encode(),
        ACCENTS.replace(FEED, '\n"",,,\n', 1).encode(),
        ACCENTS.replace("2010-06-01", "２０１０/6/1").replace(",2,", f",{SPACE}２ ,").encode(),
        ACCENTS.replace("B 17", f"{ZERO_WIDTH}B 17", 1).replace("Ponte", "\ufeffPonte", 1).encode(),
        ACCENTS.replace("traffic", 'traffic,remark').replace("00\n", '00,a 5" bolt\n').encode(),
        ACCENTS.replace("traffic", "traffic,remark").replace("00\n", "00,line\u2028break \x85 \x0b\n").encode(),
        ACCENTS.replace("traffic", "traffic,,").replace("00\n", "00,,\n").encode(),
        ACCENTS.replace(",400\n", ',"0,400.0"\n').encode(),
    ],
    ids=[
        "utf-8", "utf-8 with a mark", "latin-1", "utf-16", "utf-32", "utf-16-be", "crlf", "cr", "cr cr lf", "semicolons",
        "tabs", "bars", "quoted", "no last line feed", "blank lines below", "separators behind", "behind the data only",
        "title with a quotation mark", "sep=", "blank lines between", "line feed in the header", "blanks in the header",
        "a row of separators", "full width", "no width", "quotation marks inside", "other line breaks", "blank names",
        "thousands",
    ],
)  # fmt: skip
def test_text_in_many_guises(content, tmp_path):
    assert transitions(csv(content)(tmp_path)) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "utf-16", "euc-jp"])
def test_japanese_in_many_encodings(encoding, tmp_path):
    options = {"table": {"encoding": encoding}} if encoding == "euc-jp" else {}
    assert transitions(csv(IN_JAPANESE.encode(encoding))(tmp_path), **options) == transitions(typed(IN_JAPANESE))


def test_decimal_comma(tmp_path):
    text = ACCENTS.replace(",", ";").replace("00\n", "00,5\n").replace(";state;", ";BCI;")
    for state, index in (("3", "70,1"), ("4", "60,1"), ("5", "5,5"), ("2", "80,25"), ("1", "90,5")):
        text = text.replace(f"-01;{state};", f"-01;{index};")
    options = {"state": {"bands": [90, 80, 70, 60]}, "columns": {"state": "BCI"}, "table": {"decimal": ","}}
    ours = transitions(csv(text)(tmp_path), **options)
    assert ours == [(*row[:4], row[4] + 0.5, *row[5:]) for row in EXPECTED]


def write_book(folder: Path, frame: pl.DataFrame, **place: Any) -> Path:
    frame.write_excel(folder / "a.xlsx", **place)
    return folder / "a.xlsx"


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: typed(),
        lambda folder: typed().lazy(),
        lambda folder: typed().to_pandas(),
        lambda folder: typed().to_pandas().astype(object),
        lambda folder: pd.read_csv(io.StringIO(ACCENTS), dtype={"bridge_id": "category", "state": "category"}),
        lambda folder: typed().to_arrow(),
        lambda folder: typed().with_columns(pl.col("bridge_id").cast(pl.Categorical), pl.all().exclude("bridge_id").cast(pl.String)),
        parquet(frame=typed()),
        parquet("bridges[1].parquet", frame=typed()),
        file("bridges[1].csv", ACCENTS),
        lambda folder: write_book(folder, typed()),
        lambda folder: write_book(folder, typed().cast(pl.String)),
        lambda folder: write_book(folder, typed(), position="C4"),
    ],
    ids=[
        "polars", "lazy", "pandas", "objects", "categories", "pyarrow", "text", "parquet", "brackets.parquet",
        "brackets.csv", "xlsx", "xlsx of text", "xlsx from C4",
    ],
)  # fmt: skip
def test_frames_and_files_read_alike(make, tmp_path):
    assert transitions(make(tmp_path)) == EXPECTED


def test_pandas_with_numbers_and_text_in_one_column():
    frame = pd.DataFrame({"bridge": ["a", "a", 17, 17.0], "date": [2010, 2015] * 2, "state": [1, "2", None, 2]})
    found = rekka.read_transitions(frame)
    assert found.frame["bridge_id"].to_list() == ["a"]
    assert found.audit.set_aside.select("row", "bridge_id", "reason").rows() == [
        (2, "17", "not inspected: the state is blank")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD, (2, 3)),
        (GOOD.replace("\n", "\n\n\n"), (4, 7)),
        (f"Title\n\n{GOOD}", (4, 5)),
        (f'"Title\nof two lines",,,\n{GOOD}', (3, 4)),
        (GOOD.replace("B1", '"B\n\n1"'), (2, 3)),
    ],
    ids=["plain", "blank rows between", "title", "title of two lines", "line breaks in cells"],
)
def test_rows_have_the_numbers_that_a_spreadsheet_shows(text, expected, tmp_path):
    assert rekka.read_transitions(csv(text)(tmp_path)).frame.select("row_1", "row_2").row(0) == expected


def test_rows_of_a_workbook_that_begins_below(tmp_path):
    frame = rekka.read_transitions(write_book(tmp_path, typed(), position="C4")).frame
    assert frame.select("row_1", "row_2").row(0) == (5, 6)


BITS = [
    '"',
    ",",
    ";",
    "\n",
    "\r",
    "\0",
    "\ufeff",
    "\x1a",
    "=A1",
    '""',
    "\n\n",
    "\u2028",
    "\x85",
    "|",
    "1e400",
    "-",
    "\u3000",
]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_done_to_a_file_it_is_read_or_refused(seed, tmp_path):
    rng = np.random.default_rng(seed)
    kinds = [
        csv(ACCENTS),
        csv(IN_JAPANESE.encode("cp932")),
        csv(GOOD.encode("utf-16")),
        parquet(),
        book(("Data", [["a"]])),
    ]
    path = kinds[seed % len(kinds)](tmp_path)
    data = bytearray(path.read_bytes())
    for _ in range(rng.integers(1, 6)):
        at, bit = int(rng.integers(len(data))), BITS[rng.integers(len(BITS))].encode()
        data[at : at + int(rng.integers(4))] = bit if rng.random() < 0.7 else bytes([rng.integers(256)])
    path.write_bytes(data)
    error = None
    try:
        audit = rekka.read_transitions(path).audit
    except InputError as refused:
        error = refused
    if error is None:
        assert audit.table["count"].sum() == audit.records
    else:
        assert str(tmp_path) not in str(error)
