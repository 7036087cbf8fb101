"""Small inspection tables of every layout that rekka reads, and ways to damage them, for ``benchmarks.fuzz``.

A table is a ``Sheet``: names and rows of plain values, so that a mutation is a few lines, and one writer makes
text, a workbook or Parquet of it. Gentle mutations leave most tables readable, so that the code behind the readers
is reached; harsh ones need not. Everything is drawn from one generator: seed and number give the same file again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import xlsxwriter

Rng = np.random.Generator

NUMBERS = (
    "", " ", "nan", "NaN", "inf", "-inf", "1e308", "-1e308", "1e-320", "9" * 400, "-1", "0", "-0.0", "1,5", "1e5",
    "1.234.567", "1_000", "0x10", str(2**63), str(-(2**63) - 1), "\uff11\uff12", "\u0663", "\xbd", "1 000", "12%",
    "NULL", "N/A", "-", "?", "true",
)  # fmt: skip
DATES = (
    "0000-00-00", "0001-01-01", "9999-12-31", "1900-02-29", "2023-02-29", "2014-13-45", "99999999", "-5", "45000",
    "2014", "H26.6.1", "令和99年1月1日", "平成0年1月1日", "S64.1.7", "FY2014", "2014年度", "1/2/3", "31.12.2014",
    "2014-06-01T25:61:00", "2014-06-01 00:00:00+09:00", "12/2014", "0617", "\u0662\u0660\u0661\u0664-06-01",
)  # fmt: skip
TEXTS = (
    "=1+1", "=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "-", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x00",
    "a\x00b", "\x07", "\r", "line\nbreak", "tab\tinside", '"', "'", '""', ",", ";", "a" * 300, "橋" * 120,
    "\U0001f309", "\U0001f469\u200d\U0001f467", "\u0645\u0631\u062d\u0628\u0627", "\u202egnippilf",
    "\ufeff", "\u200b", "e\u0301", "[bold]x[/]", "[/]", "{year}", "%s", "../../etc", "con", "NUL", "a/b\\c:d*e?f",
    "\ud7ff", "\u2163", "<script>alert(1)</script>", "\uff24\uff45\uff43\uff4b",
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "cp932", "latin-1")
SEPARATORS = (",", ",", ",", ";", "\t", "|")


@dataclass
class Sheet:
    """A table as plain values: names, rows, and which columns are numbers that may be damaged gently."""

    names: list[str]
    rows: list[list[Any]]
    case: str | None = None
    covariates: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)

    def place(self, name: str) -> int:
        """The number of a column."""
        return self.names.index(name)


@dataclass(frozen=True)
class Sample:
    """A file to feed to the commands, the options that read it, and how it was made."""

    path: Path
    options: tuple[str, ...]
    made: tuple[str, ...]


def pick(rng: Rng, some: Sequence[Any]) -> Any:
    """One of them."""
    return some[int(rng.integers(len(some)))]


# Start tables


@dataclass(frozen=True)
class Visit:
    """One inspection of one component of a bridge."""

    bridge: int
    component: str
    day: date
    state: int
    built: int
    length: float
    traffic: float


def draw_visits(rng: Rng) -> list[Visit]:
    """A few bridges with one to three components, inspected every few years, getting worse."""
    components = ["Deck", "Pier", "Bearing"][: int(rng.integers(1, 4))]
    visits = []
    for bridge in range(int(rng.integers(3, 10))):
        built, length = int(rng.integers(1950, 1995)), float(np.round(np.exp(rng.normal(3.2, 0.9)), 1))
        for component in components:
            day, state = date(int(rng.integers(1996, 2004)), int(rng.integers(1, 13)), int(rng.integers(1, 29))), 1
            for _ in range(int(rng.integers(2, 5))):
                traffic = float(np.round(np.exp(rng.normal(8, 1))))
                visits.append(Visit(bridge, component, day, state, built, length, traffic))
                day += timedelta(days=int(rng.integers(500, 2400)))
                state = min(4, state + int(rng.poisson(0.6)))
    return visits


def make_long(rng: Rng) -> Sheet:
    """Inspection records with obvious names."""
    rows = [
        [f"B-{v.bridge:03d}", v.component, v.day.isoformat(), v.state, v.built, v.length, v.traffic]
        for v in draw_visits(rng)
    ]
    names = ["bridge_id", "component", "date", "rating", "year_built", "bridge_length", "traffic"]
    return Sheet(names, rows, "component", ["year_built", "bridge_length", "traffic"])


def make_letters(rng: Rng) -> Sheet:
    """States as letters, Roman numerals, or words that an option lists."""
    sheet = make_long(rng)
    kind = pick(rng, ("abcd", ("I", "II", "III", "IV"), ("good", "fair", "poor", "severe")))
    for row in sheet.rows:
        row[3] = kind[row[3] - 1]
    sheet.options = ["--labels", "good,fair,poor,severe"] if kind[0] == "good" else []
    return sheet


def make_dates(rng: Rng) -> Sheet:
    """Dates in one of many formats."""
    sheet = make_long(rng)
    form, option = pick(
        rng,
        (
            ("%d.%m.%Y", "dmy"), ("%m/%d/%Y", "mdy"), ("%Y%m%d", None), ("%Y/%m/%d", None), ("%Y", None),
            ("%Y-%m", None), ("%m%y", "mmyy"), ("FY%Y", None), ("%Y年%m月%d日", None),
        ),
    )  # fmt: skip
    for row in sheet.rows:
        row[2] = date.fromisoformat(row[2]).strftime(form)
    sheet.options = ["--dates", option] if option else []
    return sheet


def make_japanese(rng: Rng) -> Sheet:
    """Japanese headers, eras and Roman ratings."""
    sheet = make_long(rng)
    sheet.names = ["橋梁番号", "部材種別", "点検年月日", "健全度", "架設年", "橋長", "交通量"]
    sheet.case, sheet.covariates = "部材種別", ["架設年", "橋長", "交通量"]
    for row in sheet.rows:
        day = date.fromisoformat(row[2])
        row[2] = f"平成{day.year - 1988}年{day.month}月{day.day}日"
        row[3] = "ⅠⅡⅢⅣ"[row[3] - 1]
    return sheet


def make_index(rng: Rng) -> Sheet:
    """A condition index that bands cut."""
    sheet = make_long(rng)
    sheet.names[3] = "BCI"
    for row in sheet.rows:
        row[3] = round(float(95 - 12 * (row[3] - 1) - rng.uniform(0, 8)), 2)
    sheet.options = ["--state", "BCI", "--bands", "85,75,60"]
    return sheet


def make_wide(rng: Rng) -> Sheet:
    """A row for each bridge, a column for each year."""
    years = list(range(2000, 2000 + int(rng.integers(4, 10))))
    rows: list[list[Any]] = []
    for bridge in range(int(rng.integers(5, 20))):
        state, row = 1, [f"S{bridge}", int(rng.integers(1950, 1995)), round(float(rng.uniform(5, 90)), 1)]
        for _ in years:
            row.append(state if rng.random() < 0.7 else None)
            state = min(5, state + int(rng.random() < 0.3))
        rows.append(row)
    return Sheet(["ID", "YEAR BUILT", "DECK LENGTH", *map(str, years)], rows, None, ["YEAR BUILT", "DECK LENGTH"])


def make_transitions(rng: Rng) -> Sheet:
    """Transitions already paired, with up to three covariates."""
    covariates = ["age", "bridge_length", "salt"][: int(rng.integers(0, 4))]
    rows = []
    for _ in range(int(rng.integers(10, 60))):
        start = int(rng.integers(1, 4))
        end = min(4, start + int(rng.poisson(0.7)))
        values = [round(float(np.exp(rng.normal(3, 0.7))), 2) for _ in covariates]
        case = pick(rng, ("Deck", "Pier"))
        rows.append([f"B{rng.integers(12)}", case, start, end, round(float(rng.uniform(1, 8)), 2), *values])
    names = ["bridge_id", "case", "state_1", "state_2", "interval_years", *covariates]
    return Sheet(names, rows, "case", covariates)


STARTS = (
    make_long,
    make_letters,
    make_dates,
    make_japanese,
    make_index,
    make_wide,
    make_transitions,
    make_transitions,
)


# Mutations of cells, columns and rows


def some_rows(rng: Rng, sheet: Sheet, most: float = 0.2) -> list[list[Any]]:
    """One row, or a share of them."""
    if not sheet.rows:
        return []
    count = max(1, int(rng.uniform(0, most) * len(sheet.rows)))
    return [sheet.rows[int(place)] for place in rng.choice(len(sheet.rows), count, replace=False)]


def wild_covariate(rng: Rng, sheet: Sheet) -> None:
    """An odd number in some cells of a covariate."""
    if sheet.covariates:
        place, value = sheet.place(pick(rng, sheet.covariates)), pick(rng, NUMBERS)
        for row in some_rows(rng, sheet):
            row[place] = value


def wild_name(rng: Rng, sheet: Sheet) -> None:
    """A component renamed, as a whole."""
    if sheet.case and sheet.rows:
        place, name = sheet.place(sheet.case), pick(rng, TEXTS)
        old = pick(rng, sheet.rows)[place]
        for row in sheet.rows:
            row[place] = name if row[place] == old else row[place]


def wild_bridge(rng: Rng, sheet: Sheet) -> None:
    """A bridge renamed in some rows."""
    name = pick(rng, TEXTS)
    for row in some_rows(rng, sheet):
        row[0] = name


def wild_cell(rng: Rng, sheet: Sheet) -> None:
    """Odd values anywhere."""
    for row in some_rows(rng, sheet, 0.5):
        row[int(rng.integers(len(row)))] = pick(rng, NUMBERS + DATES + TEXTS)


def wild_dates(rng: Rng, sheet: Sheet) -> None:
    """Odd dates in the third column, in a few rows or in most."""
    for row in some_rows(rng, sheet, pick(rng, (0.1, 0.9))):
        row[2] = pick(rng, DATES)


def wild_states(rng: Rng, sheet: Sheet) -> None:
    """Odd states in some cells."""
    place = min(3, len(sheet.names) - 1)
    value = pick(rng, (*NUMBERS[:12], 0, 9, 99, -3, 2.5, "z", "\u2164", 10**12))
    for row in some_rows(rng, sheet, 0.3):
        row[place] = value


def set_covariate(rng: Rng, sheet: Sheet) -> None:
    """A covariate that is constant, a multiple of another, a rank, nearly constant, or blank."""
    if not sheet.covariates:
        return
    place, other = (sheet.place(pick(rng, sheet.covariates)) for _ in range(2))
    kind = int(rng.integers(6))
    for number, row in enumerate(sheet.rows):
        value = row[other] if isinstance(row[other], int | float) else 1
        row[place] = (7, value * 2, number, 1 + (number == 0) * 1e-9, None, value * 1e150)[kind]


def add_column(rng: Rng, sheet: Sheet) -> None:
    """A further column: text, empty, numbers, a copy, under an odd name or one that is known."""
    name = pick(
        rng, (*TEXTS, "note", "traffic_mean", "age_at_inspection_1", "area", "member", "visit", "repair_year")
    )
    kind, copied = int(rng.integers(4)), int(rng.integers(len(sheet.names)))
    for number, row in enumerate(sheet.rows):
        row.append(("text", None, number % 7, row[copied])[kind])
    sheet.names.append(str(name))


def drop_column(rng: Rng, sheet: Sheet) -> None:
    """A column less."""
    if len(sheet.names) > 1:
        place = int(rng.integers(len(sheet.names)))
        gone = sheet.names.pop(place)
        sheet.covariates = [name for name in sheet.covariates if name != gone]
        sheet.case = None if sheet.case == gone else sheet.case
        for row in sheet.rows:
            row.pop(place)


def drop_covariate(rng: Rng, sheet: Sheet) -> None:
    """A covariate less."""
    if sheet.covariates:
        place = sheet.place(sheet.covariates.pop())
        sheet.names.pop(place)
        for row in sheet.rows:
            row.pop(place)


def rename_column(rng: Rng, sheet: Sheet) -> None:
    """A column under another name, perhaps one that is taken."""
    place = int(rng.integers(len(sheet.names)))
    old, new = sheet.names[place], str(pick(rng, (*TEXTS, *sheet.names, "")))
    sheet.names[place] = new
    sheet.covariates = [name for name in sheet.covariates if name != old]
    sheet.case = None if sheet.case == old else sheet.case


def swap_columns(rng: Rng, sheet: Sheet) -> None:
    """Two columns whose values are exchanged."""
    one, other = (int(rng.integers(len(sheet.names))) for _ in range(2))
    for row in sheet.rows:
        row[one], row[other] = row[other], row[one]


def thin_rows(rng: Rng, sheet: Sheet) -> None:
    """Rows that are gone: some, most, all but one, all."""
    share = pick(rng, (0.3, 0.3, 0.8, 1.0))
    kept = [row for row in sheet.rows if rng.random() > share]
    sheet.rows = kept or sheet.rows[: int(rng.integers(2))]


def repeat_rows(rng: Rng, sheet: Sheet) -> None:
    """Rows that stand there twice."""
    sheet.rows += [list(row) for row in some_rows(rng, sheet, 1.0)]


def shuffle_rows(rng: Rng, sheet: Sheet) -> None:
    """The rows in another order."""
    rng.shuffle(sheet.rows)


def keep_one(rng: Rng, sheet: Sheet) -> None:
    """Only one bridge, or only one component."""
    if sheet.rows:
        place = sheet.place(sheet.case) if sheet.case and rng.random() < 0.5 else 0
        kept = pick(rng, sheet.rows)[place]
        sheet.rows = [row for row in sheet.rows if row[place] == kept]


def blank_case(rng: Rng, sheet: Sheet) -> None:
    """Components without a name."""
    if sheet.case:
        for row in some_rows(rng, sheet, pick(rng, (0.2, 1.0))):
            row[sheet.place(sheet.case)] = pick(rng, (None, "", " "))


def still_states(rng: Rng, sheet: Sheet) -> None:
    """Nothing moves, or everything ends in one state."""
    place = min(3, len(sheet.names) - 1)
    value = sheet.rows[0][place] if sheet.rows else 1
    for row in sheet.rows:
        row[place] = value


Mutation = Callable[[Rng, Sheet], None]
GENTLE: tuple[Mutation, ...] = (
    wild_covariate, wild_covariate, wild_name, wild_bridge, set_covariate, set_covariate, add_column,
    drop_covariate, repeat_rows, shuffle_rows, wild_states, thin_rows,
)  # fmt: skip
HARSH: tuple[Mutation, ...] = (
    wild_cell, wild_dates, wild_states, drop_column, rename_column, swap_columns, thin_rows, keep_one, blank_case,
    still_states, add_column,
)  # fmt: skip


# Files


def damage_bytes(rng: Rng, data: bytes) -> tuple[bytes, str]:
    """A file cut short, with bytes flipped, put in, doubled, or in another encoding."""
    place = int(rng.integers(len(data) + 1))
    kind = pick(rng, ("truncate", "flip", "insert", "nul", "double", "mark", "crlf", "reencode", "empty", "quote"))
    if kind == "truncate":
        return data[:place], kind
    if kind == "flip":
        flipped = bytearray(data)
        for spot in rng.integers(0, max(len(data), 1), 5):
            if len(data):
                flipped[int(spot)] ^= 1 << int(rng.integers(8))
        return bytes(flipped), kind
    if kind == "double":
        return data[:place] + data[place // 2 :], kind
    if kind == "crlf":
        return data.replace(b"\n", pick(rng, (b"\r\n", b"\r", b"\n\n"))), kind
    if kind == "reencode":
        return data.decode("utf-8", "replace").encode(
            pick(rng, ("utf-16", "utf-32", "cp932", "utf-7")), "replace"
        ), kind
    inserted = {"insert": rng.bytes(20), "nul": b"\x00" * 3, "mark": b"\xef\xbb\xbf", "quote": b'"', "empty": b""}[
        kind
    ]
    return (b"" if kind == "empty" else data[:place] + inserted + data[place:]), kind


def spell(value: Any) -> str:
    """A value as text."""
    return "" if value is None else str(value)


def write_text(rng: Rng, sheet: Sheet, path: Path) -> list[str]:
    """Delimited text in some encoding."""
    encoding, separator = pick(rng, ENCODINGS), pick(rng, SEPARATORS)
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    if rng.random() < 0.05:
        text.write("A title above the header\n")
    writer.writerow(sheet.names)
    writer.writerows([[spell(value) for value in row] for row in sheet.rows])
    path.write_bytes(text.getvalue().encode(encoding, "replace"))
    return [encoding]


def write_workbook(rng: Rng, sheet: Sheet, path: Path) -> list[str]:
    """An Excel workbook, with numbers and days of its own."""
    days = rng.random() < 0.5
    with xlsxwriter.Workbook(path, {"nan_inf_to_errors": True, "strings_to_formulas": False}) as book:
        book.set_properties({"created": datetime(2000, 1, 1)})  # the same bytes at any time
        page = book.add_worksheet()
        form = book.add_format({"num_format": "yyyy-mm-dd"})
        for r, row in enumerate([sheet.names, *sheet.rows]):
            for c, value in enumerate(row):
                day = read_day(value) if days else None
                if day is not None:
                    page.write_datetime(r, c, day, form)
                elif isinstance(value, int | float) and abs(value) < 1e300:
                    page.write_number(r, c, value)
                else:
                    page.write_string(r, c, spell(value)[:32_000])
    return ["days" if days else "texts"]


def read_day(value: Any) -> datetime | None:
    """An ISO date that a workbook can hold."""
    try:
        day = datetime.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None
    except ValueError:
        return None
    return day if day is not None and day.year >= 1900 else None


KINDS: tuple[tuple[str, Callable[[Any, int], Any]], ...] = (
    ("struct", lambda value, number: {"a": spell(value), "b": number}),
    ("binary", lambda value, number: spell(value).encode()),
    ("list", lambda value, number: [spell(value)] * (number % 3)),
    ("decimal", lambda value, number: Decimal(number) / 4),
    ("boolean", lambda value, number: number % 2 == 0),
    ("zoned", lambda value, number: datetime(2014, 6, 1, number % 24, tzinfo=UTC)),
    ("day", lambda value, number: date(1 + number * 400 % 9999, 1, 1)),
    ("duration", lambda value, number: timedelta(days=number)),
    ("null", lambda value, number: None),
    ("huge", lambda value, number: 2**62 + number),
)


def write_parquet(rng: Rng, sheet: Sheet, path: Path, harsh: bool) -> list[str]:
    """Parquet: a column of mixed values becomes text; in a harsh table one column has an odd type."""
    names: list[str] = []
    made = ["typed"]
    for name in sheet.names:  # a frame has no two columns of one name
        names.append(name if name not in names else f"{name}_{len(names)}")
    columns = {}
    for place, name in enumerate(names):
        values = [row[place] for row in sheet.rows]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            values = [None if value is None else spell(value) for value in values]
        columns[name] = pl.Series(name, values, strict=False)
    if harsh and rng.random() < 0.5:
        place = int(rng.integers(len(names)))
        kind, turn = pick(rng, KINDS)
        columns[names[place]] = pl.Series(names[place], [turn(row[place], n) for n, row in enumerate(sheet.rows)])
        made.append(kind)
    elif rng.random() < 0.2:
        columns = {name: s.cast(pl.Categorical) if s.dtype == pl.String else s for name, s in columns.items()}
        made.append("categorical")
    pl.DataFrame(list(columns.values())).write_parquet(path)
    return made


def make_sample(seed: int, number: int, folder: Path) -> Sample:
    """The table of this number, in a file."""
    rng = np.random.default_rng([seed, number])
    start = pick(rng, STARTS)
    sheet: Sheet = start(rng)
    harsh = bool(rng.random() < 0.25)
    steps = [pick(rng, HARSH if harsh else GENTLE) for _ in range(int(rng.integers(1, 4)))]
    for step in steps:
        step(rng, sheet)
    form = pick(rng, ("csv", "csv", "csv", "xlsx", "parquet"))
    path = folder / f"table-{number}.{form}"
    made = [start.__name__, form, *(step.__name__ for step in steps)]
    if form == "csv":
        made += write_text(rng, sheet, path)
    elif form == "xlsx":
        made += write_workbook(rng, sheet, path)
    else:
        made += write_parquet(rng, sheet, path, harsh)
    if rng.random() < 0.08:
        data, kind = damage_bytes(rng, path.read_bytes())
        path.write_bytes(data)
        made.append(kind)
    return Sample(path, tuple(sheet.options), tuple(made))
