"""National Bridge Inventory's yearly files: a row for each bridge and route, and three ratings in a row.

FHWA publishes one comma-separated file a state and year. A rating stands in every file until the next inspection,
so visits go by the date of inspection, and an inspection that stands in several files counts once. Items are those
of the Recording and Coding Guide (FHWA-PD-96-001); lengths are in metres.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from rekka.core.errors import InputError, UnreadableTable, missing_columns
from rekka.data.attributes import translate
from rekka.data.mapping import State
from rekka.data.panel import PROBLEMS, Panel, RecordProblem, code_dates, code_states, first_problem
from rekka.data.reading import TableReading
from rekka.data.tables import ROW
from rekka.data.text import HEAD_BYTES, collect, name_columns
from rekka.data.values import CENTURY_TURN, Scale, clean_text, means_none, read_dates, read_numbers, read_states

CASES = {
    "Deck": "DECK_COND_058",
    "Superstructure": "SUPERSTRUCTURE_COND_059",
    "Substructure": "SUBSTRUCTURE_COND_060",
}
RATINGS = tuple(CASES.values())
STATE, STRUCTURE, RECORD_TYPE = "STATE_CODE_001", "STRUCTURE_NUMBER_008", "RECORD_TYPE_005A"
INSPECTED, BUILT, RECONSTRUCTED = "DATE_OF_INSPECT_090", "YEAR_BUILT_027", "YEAR_RECONSTRUCTED_106"
LENGTH, WIDTH, ADT, ADT_YEAR = "STRUCTURE_LEN_MT_049", "DECK_WIDTH_MT_052", "ADT_029", "YEAR_ADT_030"
DATES = {INSPECTED: "mmyy", BUILT: "year", RECONSTRUCTED: "year"}
NUMBERS = (LENGTH, WIDTH, ADT, ADT_YEAR)
NEEDED = (STATE, STRUCTURE, RECORD_TYPE, *RATINGS, *DATES, *NUMBERS)
ENDINGS = (".txt", ".csv")
ON_THE_BRIDGE = "1"  # item 5A: the route is on the bridge; 2 and letters are routes under it
NOT_APPLICABLE = "N"  # items 58 to 60 of a culvert
UNKNOWN_ADT_YEAR = 9  # a year of one digit, of a count that nobody can date
SCALE = State(best=9, worst=0, missing=[NOT_APPLICABLE])
TURN = (
    "Ratings of the National Bridge Inventory go from 9, the best, to 0: check that the items and dates are as "
    "FHWA publishes them."
)
QUOTE = "'"
# A field with the comma before it. A quote closes a field only before a comma or the line's end: 'O'NEIL RD'.
FIELD = r",(?:'(?:[^']|'+ *[^', ])*'+ *|[^,]*)"
PLAIN_LINE = r"^(?:[^',]*|'[^']*')(?:,(?:[^',]*|'[^']*'))*$"
FIRST_ROW = 2  # as a spreadsheet shows it, under the header


class NbiProblem(enum.IntEnum):
    """Problems of records of the inventory, beyond those of any table (below 20)."""

    MISFIT = 20
    OTHER_ROUTE = 21
    NOT_APPLICABLE = 22
    REPEATED = 23


NBI_PROBLEMS: dict[int, str] = {
    NbiProblem.MISFIT: "the row has more or fewer fields than the header",
    NbiProblem.OTHER_ROUTE: f"not the route on the bridge ({RECORD_TYPE})",
    NbiProblem.NOT_APPLICABLE: f"not applicable ({NOT_APPLICABLE})",
    NbiProblem.REPEATED: "the same inspection, repeated in another year's file",
}


@dataclass(frozen=True)
class _File:
    """One file: what it is called in messages, and the year in that name."""

    path: Path
    label: str
    year: int | None


def read_nbi(files: Any) -> Panel:
    """Read the yearly files of the National Bridge Inventory.

    Parameters
    ----------
    files : path or list of paths
        Delimited files, or folders of them. They are put in the order of the years in their names (MD18.txt,
        2018MD.txt) where all have one, otherwise they stay as given: of an inspection that stands in several,
        the last file's values are used.

    Returns
    -------
    Panel
        Three records a row, of the cases Deck, Superstructure and Substructure; state 1 is the rating 9. Its
        ``column`` names the file and the item of a record, its ``row`` the row in that file.

    Examples
    --------
    >>> import rekka
    >>> from pathlib import Path
    >>> names = "STATE_CODE_001,STRUCTURE_NUMBER_008,RECORD_TYPE_005A,ROUTE_PREFIX_005B,YEAR_BUILT_027,ADT_029,"
    >>> names += "YEAR_ADT_030,STRUCTURE_LEN_MT_049,DECK_WIDTH_MT_052,DECK_COND_058,SUPERSTRUCTURE_COND_059,"
    >>> names += "SUBSTRUCTURE_COND_060,CULVERT_COND_062,DATE_OF_INSPECT_090,YEAR_RECONSTRUCTED_106"
    >>> for file, deck, date in [("MD16.txt", 7, "616"), ("MD18.txt", 6, "618")]:
    ...     row = f"24,100000010001,1,1,1957,8000,2015,24.7,10,{deck},6,5,N,{date},0"
    ...     _ = Path(file).write_text(f"{names}{chr(10)}{row}")
    >>> pairs = rekka.pair_visits(rekka.read_nbi(["MD16.txt", "MD18.txt"]), max_gap=6)
    >>> pairs.frame.select("case", "state_1", "state_2").rows()
    [('Deck', 3, 4), ('Superstructure', 4, 4), ('Substructure', 5, 5)]

    """
    sources = _find_files(files)
    notes: list[str] = []
    texts = pl.concat([_open(source, place, notes) for place, source in enumerate(sources)])
    name = sources[0].label if len(sources) == 1 else f"{sources[0].label} to {sources[-1].label}"
    seen = _survey(texts, name)
    rows = _read_rows(texts, seen, name, notes)
    if len(sources) > 1:
        rows = rows.join(
            _find_last(rows, name).lazy(), on=["bridge_id", "date"], how="left", maintain_order="left"
        )
    else:
        rows = rows.with_columns(last=pl.col("file"))
    visits, scale = _lay_out(rows, seen)
    number = int(seen.filter(pl.col("item") == INSPECTED)["count"].sum())
    return Panel(
        name=name,
        visits=visits,
        records=number * len(CASES),
        scale=scale,
        problems=PROBLEMS | NBI_PROBLEMS,
        notes=(*_describe_files(name, sources, number, scale), *notes),
        files=tuple(source.path for source in sources),
        reading=TableReading(kind="nbi", mapping={"state": {"best": 9, "worst": 0}}, labels=scale.names),
    )


def is_nbi(source: Any) -> bool:
    """Whether a source is files of the National Bridge Inventory, by the header of the first of them."""
    try:
        first = _find_files(source)[0].path
        with first.open("rb") as stream:
            return STRUCTURE.encode() in stream.readline(HEAD_BYTES).upper()
    except (InputError, OSError):
        return False


def _find_files(files: Any) -> list[_File]:
    """Files that are meant, by year."""
    single = isinstance(files, str | Path) or not isinstance(files, Iterable)
    paths = [path for one in ([files] if single else files) for path in _expand(one)]
    if not paths:
        raise UnreadableTable("No files were given. Give the paths of yearly files, or a folder of them.")
    names = Counter(path.name for path in paths)
    labels = [path.name if names[path.name] == 1 else f"{path.parent.name}/{path.name}" for path in paths]
    found = [_File(path, label, _find_year(label)) for path, label in zip(paths, labels, strict=True)]
    years = [file.year for file in found if file.year is not None]
    return sorted(found, key=lambda file: file.year or 0) if len(years) == len(found) else found


def _expand(source: Any) -> list[Path]:
    """A file as it is, a folder as its text files."""
    if not isinstance(source, str | Path):
        raise InputError(f"A {type(source).__name__} is not a path. Give the paths of yearly files, or a folder.")
    path = Path(source)
    if not path.exists():
        raise UnreadableTable(f"There is no file {path}.", file=str(path))
    endings = " or ".join(ENDINGS)
    if path.is_dir():
        inside = sorted(file for file in path.iterdir() if file.suffix.lower() in ENDINGS)
        if not inside:
            raise UnreadableTable(f"The folder {path.name} holds no files that end in {endings}.", file=str(path))
        return inside
    if path.suffix.lower() not in ENDINGS:
        raise UnreadableTable(
            f"{path.name} ends in {path.suffix or 'nothing'}; the inventory's delimited files end in {endings}. "
            "Save it as comma-separated text.",
            file=path.name,
        )
    return [path]


def _find_year(label: str) -> int | None:
    """2018 from 2018MD.txt or MD18.txt."""
    if found := re.search(r"(?<!\d)(?:19|20)\d\d(?!\d)", label):
        return int(found[0])
    if found := re.search(r"(?<!\d)\d\d(?!\d)", label):
        return int(found[0]) + (1900 if int(found[0]) >= CENTURY_TURN else 2000)
    return None


def _open(source: _File, place: int, notes: list[str]) -> pl.LazyFrame:
    """Needed items of a file as text, with the row, the file's place and label, and whether the row fits.

    Polars reads a file whose quotes and rows are regular. One stray apostrophe would shift the fields behind it,
    so a file that has any is taken apart by ``FIELD``, several times slower.
    """
    names = _read_header(source)
    lines = _scan(source.path, {"line": pl.String}, separator="\x1f", quote_char=None, truncate_ragged_lines=True)
    line = pl.col("line")
    width = line.str.replace_all(r"'[^']*'", "").str.count_matches(",", literal=True) + 1
    plain = (line.str.contains(PLAIN_LINE) & (width == len(names))).fill_null(value=False)
    checked = collect(lines.select(rows=line.is_not_null().sum(), plain=plain.all()), source.label)
    if not checked["rows"].item():
        raise UnreadableTable(f"{source.label} has a header and no rows below it.", file=source.label)
    about = {"file": pl.lit(place, pl.UInt32), "label": pl.lit(source.label)}
    if checked["plain"].item():
        frame = _scan(source.path, dict.fromkeys(names, pl.String), separator=",", quote_char=QUOTE)
        return frame.select(ROW, *NEEDED, fits=pl.lit(value=True), **about)
    notes.append(f"{source.label}: stray apostrophes or commas, or blank rows; read field by field")
    fields = pl.col("fields").list
    items = {name: fields.get(names.index(name), null_on_oob=True) for name in NEEDED}
    items = {name: item.str.slice(1).str.strip_chars(f" {QUOTE}") for name, item in items.items()}
    return (
        lines.filter(line.is_not_null())
        .select(ROW, fields=("," + line).str.extract_all(FIELD))
        .with_columns(fits=fields.len() == len(names))
        .select(ROW, **{name: pl.when("fits").then(item) for name, item in items.items()}, fits="fits", **about)
    )


def _read_header(source: _File) -> list[str]:
    """Columns' names; all that are needed must be among them."""
    with source.path.open("rb") as stream:
        line = stream.readline(HEAD_BYTES)
    if not line.strip():
        raise UnreadableTable(
            f"{source.label} is empty. A header and at least one row are needed.", file=source.label
        )
    if b"\0" in line:
        raise UnreadableTable(
            f"{source.label} is not text: it holds zero bytes. Save it as comma-separated text.", file=source.label
        )
    fields = [name.strip(" '\"\r\n").upper() for name in line.decode("utf-8-sig", "replace").split(",")]
    names = name_columns(source.label, [fields], 1, None)
    absent = [name for name in NEEDED if name not in names]
    if absent:
        raise missing_columns(absent, names, source.label)
    return names


def _scan(path: Path, schema: dict[str, type[pl.String]], **options: Any) -> pl.LazyFrame:
    """Rows under the header, numbered as a spreadsheet numbers them."""
    return pl.scan_csv(
        path,
        has_header=False,
        skip_rows=1,
        schema=schema,
        encoding="utf8-lossy",  # names of rivers and roads may be Latin-1; what we need is ASCII
        row_index_name=ROW,
        row_index_offset=FIRST_ROW,
        glob=False,
        **options,
    )


def _survey(texts: pl.LazyFrame, name: str) -> pl.DataFrame:
    """Distinct values of ratings, dates and numbers, and how often each stands there: item, value, count."""
    pairs = texts.select(*RATINGS, *DATES, *NUMBERS).unpivot(variable_name="item")
    return collect(pairs.group_by("item", "value").agg(count=pl.len()), name).sort("item", "value")


def _read_rows(texts: pl.LazyFrame, seen: pl.DataFrame, name: str, notes: list[str]) -> pl.LazyFrame:
    """Read bridge and inspection of each row; ratings stay text."""
    values = {item: seen.filter(pl.col("item") == item) for item in (*DATES, *NUMBERS)}
    meant = {item: read_dates(values[item]["value"], form) for item, form in DATES.items()}
    meant |= {item: _positive(values[item]["value"]) for item in NUMBERS}
    notes += [note for item in meant if item != INSPECTED for note in _unread(name, values[item], meant[item])]
    value = {item: translate(item, values[item], found) for item, found in meant.items()}
    # Maryland is 24, and 243 in files that have the region's digit behind it
    state = _text(STATE).str.head(2).str.zfill(2)
    return texts.select(
        ROW,
        "file",
        "label",
        "fits",
        *RATINGS,
        on_the_bridge=_text(RECORD_TYPE).eq_missing(pl.lit(ON_THE_BRIDGE)),
        bridge_id=pl.format("{}-{}", state, _text(STRUCTURE)),
        date=value[INSPECTED],
        date_problem=_date_problem(values[INSPECTED], meant[INSPECTED]),
        completed=value[BUILT],
        repair_1=value[RECONSTRUCTED],
        bridge_length=value[LENGTH],
        bridge_area=value[LENGTH] * value[WIDTH],
        traffic=pl.when(value[ADT_YEAR] != UNKNOWN_ADT_YEAR).then(value[ADT]),
    )


def _text(item: str) -> pl.Expr:
    """Text without the blanks it is padded with, null where nothing is left."""
    text = pl.col(item).str.strip_chars()
    return pl.when(text != "").then(text)


def _positive(texts: pl.Series) -> pl.Series:
    """Numbers; 0 stands for one that is not known."""
    number = read_numbers(pl.col("text"), pl.String())
    return texts.alias("text").to_frame().select(pl.when(number > 0).then(number)).to_series()


def _date_problem(values: pl.DataFrame, dates: pl.Series) -> pl.Expr:
    """Problem of each inspection's date, 0 for one that is understood."""
    codes = (
        values.with_columns(date=dates).select(code_dates(clean_text(pl.col("value")), pl.col("date"))).to_series()
    )
    return translate(INSPECTED, values, codes).fill_null(RecordProblem.BLANK_DATE)


def _unread(name: str, values: pl.DataFrame, meant: pl.Series) -> list[str]:
    """A sentence on values of an item that mean nothing; blank and 0 mean none."""
    odd = values.filter(meant.is_null() & ~means_none(pl.col("value")))
    if odd.is_empty():
        return []
    count = odd["count"].sum()
    return [
        f"{name}: {count:,} value{'s' if count > 1 else ''} of {odd['item'][0]} taken as missing, such as "
        f"{odd['value'][0]!r}"
    ]


def _find_last(rows: pl.LazyFrame, name: str) -> pl.DataFrame:
    """Last file of each inspection that stands in several: bridge_id, date, last."""
    usable = rows.filter("on_the_bridge", pl.col("bridge_id").is_not_null(), pl.col("date").is_not_null())
    files = usable.group_by("bridge_id", "date").agg(first=pl.col("file").min(), last=pl.col("file").max())
    return collect(files.filter(pl.col("first") < pl.col("last")).drop("first"), name)


def _lay_out(rows: pl.LazyFrame, seen: pl.DataFrame) -> tuple[pl.LazyFrame, Scale]:
    """A record for each rating, with its state and the first of its problems."""
    ratings = seen.filter(pl.col("item").is_in(RATINGS)).group_by("value").agg(pl.col("count").sum())
    read, scale = read_states(ratings["value"], ratings["count"], SCALE)
    ratings = ratings.hstack(read)
    items = pl.lit(pl.Series([list(RATINGS)], dtype=pl.List(pl.String))).first()
    records = rows.with_columns(item=items, state_text=pl.concat_list(RATINGS)).explode("item", "state_text")
    records = records.with_columns(state_problem=_state_problem(ratings))
    names = {item: case for case, item in CASES.items()}
    problem = first_problem(
        (~pl.col("fits"), NbiProblem.MISFIT),
        (pl.col("bridge_id").is_null(), RecordProblem.NO_BRIDGE),
        (~pl.col("on_the_bridge"), NbiProblem.OTHER_ROUTE),
        pl.col("state_problem"),
        pl.col("date_problem"),
        (pl.col("file") < pl.col("last"), NbiProblem.REPEATED),
    )
    attributes = ("completed", "repair_1", "bridge_length", "bridge_area", "traffic")
    visits = records.select(
        ROW,
        "bridge_id",
        "date",
        *attributes,
        "state_text",
        column=pl.format("{} {}", "label", "item"),
        case=pl.col("item").replace_strict(names, return_dtype=pl.String),
        member=pl.lit(""),
        state=translate("state_text", ratings, ratings["state"]),
        problem=problem,
    )
    return visits, replace(scale, turn=TURN)


def _state_problem(ratings: pl.DataFrame) -> pl.Expr:
    """Problem of each rating's text, 0 for a state."""
    is_none = clean_text(pl.col("value")).str.to_uppercase() == NOT_APPLICABLE
    codes = ratings.select(first_problem((is_none, NbiProblem.NOT_APPLICABLE), code_states())).to_series()
    return translate("state_text", ratings, codes).fill_null(RecordProblem.BLANK_STATE)


def _describe_files(name: str, sources: list[_File], rows: int, scale: Scale) -> list[str]:
    """Notes on how the files were read."""
    by_year = all(source.year is not None for source in sources)
    order = "by the years in their names" if by_year else "in the order given"
    several = [
        f"{name}: {len(sources)} files {order}; an inspection in several files is taken from the last of them"
    ]
    return [
        *(several if len(sources) > 1 else []),
        f"{name}: {rows:,} rows of the National Bridge Inventory, each a record of {', '.join(CASES)}",
        f"{name}: states are {scale.words}; dates are months, and years built or reconstructed their first days",
        f"{name}: area is {LENGTH} times {WIDTH}; a length, width or {ADT} of 0 is taken as missing, and "
        f"{ADT} too where {ADT_YEAR} is blank, 0 or {UNKNOWN_ADT_YEAR}",
    ]
