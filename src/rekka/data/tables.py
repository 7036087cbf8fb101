"""One table, from a file or a dataframe, as a lazy polars frame with row numbers a person can look up."""

from __future__ import annotations

import difflib
import functools
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fastexcel
import narwhals as nw
import polars as pl
import polars.selectors as cs

from rekka.core.errors import BadOption, InputError, UnreadableTable, bad_option
from rekka.data.text import (
    CHUNK,
    HEADER_SEARCH,
    SEPARATORS,
    FileOptions,
    empty_file,
    find_header,
    name_columns,
    number_names,
    scan_text,
)
from rekka.data.text import ROW as ROW

TEXT = (".csv", ".txt", ".tsv")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
MOST_CELLS = 20_000_000  # of a sheet, with empty ones between; a table that is mostly filled may have more
SPARSE = 20  # a sheet with so many times more cells than are filled has a stray one
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,3})(\d{1,7})"')
_KINDS = {  # how files begin: what they are, and what to do
    b"PAR1": ("a Parquet file", "Rename it to {stem}.parquet."),
    b"PK\x03\x04": ("an Excel workbook or a zip archive", "Rename it to {stem}.xlsx, or unpack it."),
    b"\xd0\xcf\x11\xe0": (
        "an old Excel workbook, or one with a password",
        "Rename it to {stem}.xls, or save it without the password.",
    ),
    b"\x1f\x8b": ("a gzip archive", "Unpack it."),
    b"%PDF": ("a PDF document", "Export the table as CSV."),
    b"\x89PNG": ("a picture", "A table is needed."),
    b"\xff\xd8\xff": ("a picture", "A table is needed."),
    **dict.fromkeys(
        (b"<!doctype", b"<html", b"<table", b"<?xml"),
        ("a web page or XML", "Open it in a spreadsheet and save it as CSV."),
    ),
}


RECOGNISED = FileOptions()


@dataclass(frozen=True)
class SourceTable:
    """A table as it was found: lazy columns under their own names, and a row number."""

    name: str
    frame: pl.LazyFrame
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()
    repeated: frozenset[str] = field(default_factory=frozenset)  # names that stand over two columns


def open_table(source: Any, options: FileOptions = RECOGNISED) -> SourceTable:
    """A dataframe, or a file by its ending: CSV and other text, Excel, Parquet (a folder of them too)."""
    if not isinstance(source, str | Path):
        return _open_frame(source)
    path = Path(source)
    if is_folder(source):
        return _open_parquet(path, sorted(path.glob("*.parquet")))
    if not is_there(path):
        raise UnreadableTable(f"There is no file {_printable(path.name)}.{_neighbour(path)}", file=str(path))
    if not path.stat().st_size:
        raise empty_file(path.name)
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return _open_parquet(path, [path])
    if suffix in EXCEL:
        return _open_excel(path, options)
    if suffix in TEXT:
        return _open_text(path, options)
    raise UnreadableTable(
        f"{path.name} ends in {suffix or 'nothing'}; a table ends in {', '.join((*TEXT, *PARQUET, *EXCEL))}.",
        file=path.name,
    )


def is_folder(source: Any) -> bool:
    """Whether the source is a folder's path."""
    return isinstance(source, str | Path) and is_there(Path(source)) and Path(source).is_dir()


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder; no where the text can be no path at all."""
    try:
        return path.exists()
    except OSError:  # too long for a name
        return False


def _printable(name: str, most: int = 80) -> str:
    """A name in one line, cut if it is no name at all."""
    return "".join(c if c.isprintable() else " " for c in name[:most]) + ("..." if len(name) > most else "")


def _neighbour(path: Path) -> str:
    """A table beside it whose name differs only in case or ending, or a little."""
    if re.match(r"\w{2,}:/", str(path)):
        return " What is on the web is not read from there; download it first."
    folder = path.parent
    if not is_folder(folder):
        return f" There is no folder {folder.name} either." if is_there(folder.parent) else ""
    tables = sorted(file for file in folder.iterdir() if file.suffix.lower() in (*TEXT, *EXCEL, *PARQUET))
    stems = {file.stem.lower(): file.name for file in reversed(tables)}
    near = difflib.get_close_matches(path.stem.lower(), stems, n=1)
    return f" Did you mean {stems[near[0]]}?" if near else ""


def _what_it_is(path: Path, wanted: str) -> str | None:
    """'a.csv is a Parquet file, not text. Rename it to a.parquet.', if the file's beginning shows it."""
    with path.open("rb") as stream:
        start = stream.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, (what, remedy) in _KINDS.items():
        if start.startswith(magic) or start.lower().startswith(magic):
            return f"{path.name} is {what}, not {wanted}. {remedy.format(stem=path.stem)}"
    return None


def _open_frame(source: Any) -> SourceTable:
    frame: pl.LazyFrame
    if isinstance(source, pl.LazyFrame):
        frame = source
    else:
        try:
            frame = _to_polars(nw.from_native(source, eager_only=True)).lazy()
        except TypeError:
            raise InputError(
                f"The input is of type {type(source).__name__}, not a table. Give a file's path, or a pandas, "
                "polars or pyarrow frame."
            ) from None
        except nw.exceptions.DuplicateError as error:
            name = re.search(r"'(.*)'", str(error))
            called = f" called {name[1]}" if name else " of one name"
            raise UnreadableTable(f"The dataframe has two columns{called}. Rename one of them.") from None
    try:
        return _typed("the dataframe", frame, ())
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0].split(": /")[0]
        raise UnreadableTable(f"The lazy frame cannot be run: {reason}.") from None


def _to_polars(eager: nw.DataFrame[Any]) -> pl.DataFrame:
    """Convert a frame to polars; columns of mixed Python objects, as pandas has them, become text."""
    try:
        return eager.to_polars()
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        return pl.DataFrame([_to_series(eager[name]) for name in eager.columns])


def _to_series(column: nw.Series[Any]) -> pl.Series:
    try:
        return column.to_polars()
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        none = column.is_null().to_list()
        texts = (
            None if null else str(int(value) if isinstance(value, float) and value.is_integer() else value)
            for value, null in zip(column.to_list(), none, strict=True)
        )
        return pl.Series(column.name, list(texts), dtype=pl.String)


def _typed(name: str, frame: pl.LazyFrame, notes: tuple[str, ...]) -> SourceTable:
    """A table of typed columns; categories are text."""
    names = frame.collect_schema().names()
    own = number_names(names)
    frame = frame.rename(dict(zip(names, own, strict=True)))
    frame = frame.with_columns(cs.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return SourceTable(name, frame.with_row_index(ROW), tuple(own), notes)


def _open_text(path: Path, options: FileOptions) -> SourceTable:
    if what := _what_it_is(path, "a text table"):
        raise UnreadableTable(what, file=path.name)
    if options.sheet is not None:
        raise BadOption(f"{path.name} is text and has no sheets; leave sheet out.")
    mark = options.separator
    if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n'):
        raise bad_option("separator", mark, [repr(s) for s in SEPARATORS])
    frame, found = scan_text(path, options)
    notes = [
        f"{path.name}: text in {found.encoding}, separated by {SEPARATORS.get(found.separator, found.separator)}"
    ]
    return _named(path.name, frame, found.header_row, found.names, notes)


def _open_excel(path: Path, options: FileOptions) -> SourceTable:
    if options.decimal != ".":
        raise BadOption(f"{path.name} is a workbook, where numbers need no decimal mark; leave decimal out.")
    try:
        book = fastexcel.read_excel(path)
    except fastexcel.FastExcelError:
        raise UnreadableTable(_no_workbook(path), file=path.name) from None
    sheet = options.sheet if options.sheet is not None else 0
    if (isinstance(sheet, str) and sheet not in book.sheet_names) or (
        isinstance(sheet, int) and not 0 <= sheet < len(book.sheet_names)
    ):
        raise bad_option("sheet", sheet, book.sheet_names)
    used = sheet if isinstance(sheet, str) else book.sheet_names[sheet]
    others = [name for name in book.sheet_names if name != used]
    elsewhere = f" Other sheets: {', '.join(others)}." if others else ""
    _refuse_sparse(path, used)
    try:  # skip_rows=0 keeps blank rows at the top, so that rows have the numbers that Excel shows
        loaded = book.load_sheet(sheet, header_row=None, skip_rows=0, dtypes="string").to_polars()
    except fastexcel.FastExcelError:
        raise UnreadableTable(f"{path.name}: sheet {used} cannot be read.{elsewhere}", file=path.name) from None
    most = max(HEADER_SEARCH, (options.header_row or 0) + 1)
    rows = [["" if cell is None else cell for cell in row] for row in loaded.head(most).rows()]
    if not rows:
        raise UnreadableTable(f"{path.name}: sheet {used} is empty.{elsewhere}", problem="empty", file=path.name)
    header_row = find_header(rows, options)
    names = name_columns(path.name, rows, header_row, options.names)
    loaded = loaded.select(loaded.columns[: len(names)]).slice(header_row)
    loaded.columns = names
    if loaded.is_empty():
        raise UnreadableTable(
            f"{path.name}: sheet {used} has a header and no rows below it.{elsewhere}",
            problem="empty",
            file=path.name,
        )
    number = f" (of {len(book.sheet_names)})" if others else ""
    return _named(path.name, loaded.lazy(), header_row, tuple(names), [f"{path.name}: sheet {used}{number}"])


def list_sheets(source: Any) -> list[str]:
    """List the sheets of a workbook; none of anything else, or of a file that cannot be opened as one."""
    if not isinstance(source, str | Path) or Path(source).suffix.lower() not in EXCEL:
        return []
    try:
        return list(fastexcel.read_excel(Path(source)).sheet_names)
    except fastexcel.FastExcelError:  # the reader says what is wrong
        return []


def _refuse_sparse(path: Path, sheet: str) -> None:
    """Refuse a sheet with a cell so far from the others that the table between them would fill the memory."""
    if path.suffix.lower() not in (".xlsx", ".xlsm"):
        return
    try:
        with zipfile.ZipFile(path) as book:
            member = _find_sheet(book, sheet)
            cells, rows, columns = _measure(book, member) if member else (0, 0, 0)
    except (
        zipfile.BadZipFile,
        ElementTree.ParseError,
        KeyError,
        OSError,
        zlib.error,
    ):  # the reader says what is wrong
        return
    if rows * columns > max(MOST_CELLS, SPARSE * cells):
        raise UnreadableTable(
            f"{path.name}: sheet {sheet} reaches to row {rows:,} and column {columns:,} with {cells:,} cells: a "
            "stray one is far from the table. Delete the empty rows and columns behind it, or save it as CSV.",
            file=path.name,
        )


def _find_sheet(book: zipfile.ZipFile, sheet: str) -> str | None:
    """File of a sheet in a workbook's archive."""
    places = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    files = {place.get("Id"): place.get("Target", "") for place in places}
    for one in ElementTree.fromstring(book.read("xl/workbook.xml")).iter():
        if one.tag.endswith("}sheet") and one.get("name") == sheet:
            target = next(
                (files[value] for key, value in one.items() if key.endswith("}id") and value in files), ""
            )
            return target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
    return None


def _measure(book: zipfile.ZipFile, member: str) -> tuple[int, int, int]:
    """Number of cells of a sheet, and its last row and column."""
    cells, last_row, columns, rest = 0, 0, set[bytes](), b""
    with book.open(member) as stream:
        while chunk := stream.read(CHUNK):
            text, cut, tail = (rest + chunk).rpartition(b"<")
            found = _CELL.findall(text)
            cells += len(found)
            columns.update(column for column, _ in found)
            last_row = max(last_row, *(int(row) for _, row in found)) if found else last_row
            rest = cut + tail
    letters = max(columns, key=lambda name: (len(name), name), default=b"")
    return cells, last_row, functools.reduce(lambda number, letter: 26 * number + letter - 64, letters, 0)


def _no_workbook(path: Path) -> str:
    """Sentence on why a file that should be a workbook cannot be opened."""
    with path.open("rb") as stream:
        is_zip = stream.read(4) == b"PK\x03\x04"
    if is_zip and path.suffix.lower() != ".xls":
        return f"{path.name} is damaged, or a zip archive and no workbook. Save it again in Excel, or as CSV."
    return _what_it_is(path, "the workbook that its name says") or (
        f"{path.name} is not an Excel workbook. If it is text, rename it to {path.stem}.csv."
    )


def _open_parquet(path: Path, files: list[Path]) -> SourceTable:
    if not files:
        raise UnreadableTable(
            f"The folder {path.name or path} holds no table called inspections, and no Parquet files.",
            file=str(path),
        )
    try:
        return _typed(path.name, pl.scan_parquet(files, glob=False), (f"{path.name}: Parquet",))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise UnreadableTable(f"{path.name} is not a Parquet file, or is damaged.", file=path.name) from None


def _named(
    name: str, frame: pl.LazyFrame, header_row: int, names: tuple[str, ...], notes: list[str]
) -> SourceTable:
    """A table of text; its rows are numbered as a spreadsheet numbers them."""
    if header_row > 1:
        notes.append(f"{name}: the header is row {header_row}; {header_row - 1} above it left out")
    if not header_row:
        notes.append(f"{name}: no header; the columns are called {', '.join(names)}")
    repeated = frozenset(n.removesuffix(" (2)") for n in names if n.endswith(" (2)"))
    return SourceTable(
        name, frame.with_row_index(ROW, offset=header_row + 1), names, tuple(notes), repeated & set(names)
    )
