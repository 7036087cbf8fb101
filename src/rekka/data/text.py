"""Delimited text as agencies export it: encoding, separator and header are recognised.

``collect`` runs any query over a user's table: what polars cannot read is an error of ours.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from rekka.core.errors import UnreadableTable, bad_option, count_of
from rekka.core.files import is_full_disk
from rekka.core.sheets import unguard_table, unguard_text

_FOLDERS = re.compile(r"(?:/[^/\s'\"]+)+/(?=[^/\s'\"])")  # of a path in a message of polars


def collect(
    frame: pl.LazyFrame, name: str, *, engine: Literal["streaming", "in-memory"] = "streaming"
) -> pl.DataFrame:
    """Run a query."""
    with reading(name):
        return frame.collect(engine=engine)


@contextmanager
def reading(name: str, into: Path | None = None) -> Iterator[None]:
    """Turn errors of polars into ``UnreadableTable`` while a table is read.

    Where it goes ``into`` a folder on its way, an error of that folder's disk is left to the writer.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if into is not None and is_full_disk(error, into):
            raise
        reason = _FOLDERS.sub("", str(error).strip().splitlines()[0]).rstrip(".")
        raise UnreadableTable(f"{name} cannot be read to its end: {reason}.", file=name) from None


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
HEAD_BYTES = 1 << 20  # enough for the header; a longer first line is no table
HEADER_SEARCH = 20  # rows above which a header must stand
HELD_BYTES = 256 << 20  # smaller files are parsed once and held; larger ones once for each question, in parts
REWRITTEN_BYTES = 1 << 30  # of a file whose rows polars would misread; it is rewritten in memory
CHUNK = 1 << 20
MOST_COLUMNS = 5_000
DAMAGED = 0.1  # share of the characters beyond ASCII that may be wrong in an encoding that is recognised yet
JAPANESE = 0.5  # share of characters that must stand beside another for Shift_JIS; accents stand alone

CONTROL = 0.01  # share of control characters above which a file is no text; tables have a stray one at most
ROW = "row"  # the row's number: as a spreadsheet shows it for files, from 0 for dataframes
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x19\x1c-\x1f\x7f]")
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
         codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip


class FileOptions(BaseModel):
    """Format of a file, as a user gives it; None means that it is recognised. ``header_row`` counts from 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    encoding: str | None = None
    separator: str | None = None
    sheet: str | int | None = None
    header_row: int | None = Field(default=None, ge=0)
    names: list[str] | None = None
    decimal: Literal[".", ","] = "."


@dataclass(frozen=True)
class TextFormat:
    """Format of a text file as it was found; ``header_row`` counts from 1, 0 if there is none."""

    encoding: str
    separator: str
    header_row: int
    names: tuple[str, ...]


def scan_text(path: Path, options: FileOptions) -> tuple[pl.LazyFrame, TextFormat]:
    """Scan text columns under the header's names; also return the format that was found."""
    encoding = options.encoding or _recognise_encoding(path)
    try:
        "a".encode(encoding)  # rot13 and its like are known names too, and no text
    except (LookupError, ValueError):
        raise bad_option("encoding", encoding, ["utf-8", "cp932", "latin-1"]) from None
    head = list(_head_lines(path, encoding))
    separator = options.separator or _recognise_separator(head)
    most = max(HEADER_SEARCH, (options.header_row or 0) + 1)
    rows: list[list[str]] = []
    try:
        rows += islice(csv.reader(head, delimiter=separator), most)
    except csv.Error as error:
        raise _unsplit(path.name, len(rows) + 1, error) from None
    header_row = find_header(rows, options)
    named = name_columns(path.name, rows, header_row, options.names)
    names = number_names([unguard_text(name) for name in named])
    found = TextFormat(encoding, separator, header_row, tuple(names))
    source: Path | io.BytesIO = path
    rewritten = not _check_rows(path, found)
    if rewritten and path.stat().st_size > REWRITTEN_BYTES:
        raise UnreadableTable(
            f"{path.name} has short or blank rows, or quotation marks inside fields, and is too large to be put "
            "right on the way. Save it as Parquet, or with every field of every row.",
            file=path.name,
        )
    if rewritten:
        source = io.BytesIO(_rewrite(path, found))
    elif codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig", "ascii") or _ends_in_cr(head):
        source = io.BytesIO(_recode(path, encoding))
    frame = pl.scan_csv(
        source,
        has_header=False,
        skip_rows=0 if rewritten else header_row,
        schema=dict.fromkeys(names, pl.String),
        separator=separator,
        quote_char='"',
        glob=False,
    )
    frame = unguard_table(frame)  # what a table of ours, or a spreadsheet's, has before a text like a formula
    if path.stat().st_size <= HELD_BYTES:
        frame = collect(frame, path.name).lazy()
    return frame, found


def find_header(rows: Sequence[Sequence[str]], options: FileOptions) -> int:
    """Number of the header's row: as given, 0 where names are, else the first half as wide as the widest."""
    if options.header_row is not None:
        return options.header_row
    if options.names is not None:
        return 0
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
    widest = max(filled, default=0)
    return next((number for number, count in enumerate(filled, start=1) if count and 2 * count >= widest), 1)


def name_columns(
    file: str, rows: Sequence[Sequence[str]], header_row: int, names: Sequence[str] | None
) -> list[str]:
    """Column names: given, or from the header, blanks inside closed up; a name used twice gets a number."""
    if header_row > len(rows):
        raise UnreadableTable(
            f"{file} has {count_of(len(rows), 'row')}; the header cannot be row {header_row}.", file=file
        )
    width = max((len(row) for row in rows[header_row:]), default=len(names or ()))
    raw = list(names) if names is not None else (rows[header_row - 1] if header_row else [])
    if names is not None and len(names) != width:
        raise UnreadableTable(
            f"{file} has {count_of(width, 'column')} and {count_of(len(names), 'name')} for them.", file=file
        )
    if header_row and not any(name.strip() for name in raw):
        raise UnreadableTable(
            f"{file}: row {header_row}, where the header should be, is blank. Give the header's row with "
            "header_row.",
            file=file,
        )
    cleaned = [" ".join(name.split()) or f"column {place}" for place, name in enumerate(raw, start=1)]
    cleaned += [f"column {place}" for place in range(len(cleaned) + 1, width + 1)] if not header_row else []
    if len(cleaned) > MOST_COLUMNS:
        raise UnreadableTable(
            f"{file} has {len(cleaned):,} columns in its header; at most {MOST_COLUMNS:,} are read. "
            "Is the separator right?",
            file=file,
        )
    return number_names(cleaned)


def number_names(names: Sequence[str]) -> list[str]:
    """Names, each once: the second of one name is 'name (2)', and so is one that we use ourselves."""
    seen, given = Counter([ROW]), {ROW, *names}
    unique: list[str] = []
    for name in names:
        own = name
        while seen[name] and own in given:
            seen[name] += 1
            own = f"{name} ({seen[name]})"
        seen[name] += not seen[name]
        unique.append(own)
    return unique


def _recognise_encoding(path: Path) -> str:
    """UTF-8 if every byte is; else Shift_JIS where characters stand in runs; else Latin-1.

    A file of one of the first two with a few wrong bytes is taken for it, to be refused there: as Latin-1 it would
    be read, and mean nothing.
    """
    with path.open("rb") as stream:
        start = stream.read(4)
    for mark, name in _BOMS.items():
        if start.startswith(mark):
            return name
    if _decodes(path, "utf-8"):
        return "utf-8"
    japanese = _is_japanese(path)
    if japanese and _decodes(path, "cp932"):
        return "cp932"
    if _nearly_decodes(path, "utf-8"):
        return "utf-8"
    return "cp932" if japanese and _nearly_decodes(path, "cp932") else "latin-1"


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as stream:
        try:
            while chunk := stream.read(CHUNK):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _nearly_decodes(path: Path, encoding: str) -> bool:
    """Whether the file's beginning has characters beyond ASCII, and most are right."""
    with path.open("rb") as stream:
        text = stream.read(HEAD_BYTES).decode(encoding, "replace")
    beyond = sum(character > "\x7f" for character in text)
    return beyond >= 1 / DAMAGED and text.count("\ufffd") <= DAMAGED * beyond


def _is_japanese(path: Path) -> bool:
    """Whether the characters beyond ASCII mostly stand beside another when read as Shift_JIS."""
    beyond = in_runs = 0
    with path.open(encoding="cp932", newline="", errors="replace") as stream:
        while chunk := stream.read(CHUNK):
            wide = [ord(c) > 127 for c in chunk]
            beyond += sum(wide)
            in_runs += sum(
                w and (before or after)
                for before, w, after in zip([False, *wide], wide, [*wide[1:], False], strict=False)
            )
    return in_runs >= JAPANESE * beyond


def _head_lines(path: Path, encoding: str) -> Iterator[str]:
    """Whole lines from the beginning of the file."""
    with path.open("rb") as stream:
        data = stream.read(HEAD_BYTES)
        is_all = not stream.read(1)
    if b"\0" in data and not codecs.lookup(encoding).name.startswith(("utf-16", "utf-32")):
        hint = _name_utf16(data)
        raise UnreadableTable(
            f"{path.name} is not a text table: it holds zero bytes. Give CSV, Parquet or an Excel workbook"
            f"{f'; or encoding {hint}, if it is such text' if hint else ''}.",
            file=path.name,
        )
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(data, final=is_all)
    except UnicodeError as error:
        raise _undecodable(path, encoding, error) from None
    text = text.lstrip("\ufeff")
    if not text.strip():
        raise empty_file(path.name)
    if len(_CONTROLS.findall(text)) > CONTROL * len(text):
        raise UnreadableTable(
            f"{path.name} is not a text table: it is full of control characters. Give CSV, Parquet or an Excel "
            "workbook.",
            file=path.name,
        )
    lines = list(io.StringIO(text, newline=""))  # not splitlines(): a cell may hold other line breaks
    if not is_all and len(lines) == 1:
        raise UnreadableTable(
            f"{path.name}: its first line is longer than {HEAD_BYTES:,} bytes. Is this a table with a row a line?",
            file=path.name,
        )
    yield from lines if is_all else lines[:-1]


def empty_file(file: str) -> UnreadableTable:
    """Error for a file with nothing in it."""
    return UnreadableTable(
        f"{file} is empty. A header and at least one row are needed.", problem="empty", file=file
    )


def _name_utf16(data: bytes) -> str:
    """UTF-16 of one byte order, if the zero bytes are as in Western or Japanese text of it."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    if max(even, odd) < len(data) / 20 or min(even, odd) > max(even, odd) / 20:
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _undecodable(path: Path, encoding: str, error: UnicodeError) -> UnreadableTable:
    """Error for a byte that is not in the encoding; its place is looked up in the whole file."""
    try:
        path.read_bytes().decode(encoding)
    except UnicodeError as first:
        error = first
    if not isinstance(error, UnicodeDecodeError):  # of the file as a whole, as UTF-16 without its mark
        reason = str(error).rstrip(".")
        return UnreadableTable(
            f"{path.name} is not {encoding}: {reason}. Leave encoding out to have it recognised.", file=path.name
        )
    line = error.object[: error.start].decode(encoding, "replace").count("\n") + 1
    return UnreadableTable(
        f"{path.name} is not {encoding}: byte {error.object[error.start]:#04x} in line {line:,}, at position "
        f"{error.start:,}. Leave encoding out to have it recognised, or correct the file there.",
        file=path.name,
    )


def _recognise_separator(lines: Sequence[str]) -> str:
    """Separator that splits the first lines into the most even and widest rows."""

    def fit(separator: str) -> tuple[int, int]:
        try:
            widths = [len(row) for row in csv.reader(lines[:HEADER_SEARCH], delimiter=separator) if any(row)]
        except csv.Error:
            return 0, 0
        usual = max(set(widths), key=widths.count, default=1)
        return (widths.count(usual) if usual > 1 else 0), usual

    return max(SEPARATORS, key=fit)


def _ends_in_cr(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].endswith("\r")


def _recode(path: Path, encoding: str) -> bytes:
    """File as UTF-8 with line feeds, in memory."""
    with path.open(encoding=encoding) as stream:
        try:
            return stream.read().encode()
        except UnicodeError as error:
            raise _undecodable(path, encoding, error) from None


def _check_rows(path: Path, found: TextFormat) -> bool:
    """Refuse the first row that does not fit the header; whether polars reads them all as they are meant.

    It does not where a row is short, blank or padded with separators, where a quotation mark stands inside a
    field (it would run to the next one and swallow the rows between), and where lines end in a carriage return.
    """
    width, regular, last = len(found.names), found.header_row <= 1, 0
    with path.open(encoding=found.encoding, newline=None) as stream:
        reader = csv.reader(stream, delimiter=found.separator, strict=True)
        number = 0
        try:
            for number, row in enumerate(reader, start=1):
                regular &= '"' not in "".join(row)
                if number > found.header_row:
                    last = number if row else last
                    if len(row) != width:
                        regular = False
                        _check_row(path.name, number, row, width, found.separator)
            ends = stream.newlines or ""
        except csv.Error as error:
            raise _unsplit(path.name, number + 1, error) from None
        except UnicodeError as error:
            raise _undecodable(path, found.encoding, error) from None
    if not last:
        raise UnreadableTable(f"{path.name} has a header and no rows below it.", problem="empty", file=path.name)
    return regular and "\r" not in ([ends] if isinstance(ends, str) else ends)


def _rewrite(path: Path, found: TextFormat) -> bytes:
    """Rows below the header as plain CSV in UTF-8, all of its width, without blank ones at the end."""
    out, blanks, width = io.StringIO(), 0, len(found.names)
    writer = csv.writer(out, delimiter=found.separator, lineterminator="\n")
    with path.open(encoding=found.encoding, newline=None) as stream:
        for number, row in enumerate(csv.reader(stream, delimiter=found.separator, strict=True), start=1):
            if number <= found.header_row:
                continue
            if not row:
                blanks += 1
                continue
            writer.writerows([[""] * width] * blanks)  # so that the rows keep their numbers
            writer.writerow([*row, *[""] * width][:width])
            blanks = 0
    return out.getvalue().encode()


def _unsplit(file: str, row: int, error: csv.Error) -> UnreadableTable:
    if "field larger" in str(error):
        what = f"has a field of more than {csv.field_size_limit():,} characters. Is a quotation mark open there?"
        return UnreadableTable(f"{file}: row {row} {what}", file=file, row=row)
    return UnreadableTable(
        f"{file}: row {row} cannot be split into fields ({error}). "
        'A quotation mark is open or stands inside a field; write it twice ("") there.',
        file=file,
        row=row,
    )


def _check_row(file: str, number: int, row: Sequence[str], width: int, separator: str) -> None:
    """Refuse a row that is wider than the header, or split by another separator."""
    if len(row) > width and any(cell.strip() for cell in row[width:]):
        raise UnreadableTable(
            f"{file}: row {number} has {len(row)} fields and the header has {width}. "
            f"Put quotation marks around fields that hold {SEPARATORS.get(separator, repr(separator))}, or give "
            "the header's row with header_row.",
            file=file,
            row=number,
        )
    for other, word in SEPARATORS.items():
        if len(row) == 1 and width > 1 and other != separator and row[0].count(other) == width - 1:
            raise UnreadableTable(
                f"{file}: row {number} is separated by {word} and the header by "
                f"{SEPARATORS.get(separator, repr(separator))}. Save the table with one separator.",
                file=file,
                row=number,
            )
