"""Values of cells: dates, states and numbers from text, as agencies write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import pairwise

import polars as pl

from rekka.core.errors import BadOption, BadStates, BadValues
from rekka.core.ratings import LETTERS, ROMAN, name_groups
from rekka.data.mapping import State

BLANK = ("", "-", "--", ".", "―", "ー", "\u2212", "na", "n/a", "nan", "none", "null", "#n/a", "未点検")
SPACES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u2060\ufeff"  # and those of no width
FIRST_YEAR, LAST_YEAR = 1700, 2200
FIRST_DAY, LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date(FIRST_YEAR, 1, 1), date(LAST_YEAR, 12, 31)))
FISCAL_MONTH = 4  # Japan's fiscal year begins in April
MONTHS = 12
CENTURY_TURN = 70  # a year of two digits is 19yy from here on; no inspection programme is older
MOST_STATES = 20
INDEX_ENDS = (0.0, 100.0)  # of an index, where placeholders are; 0 is no damage where higher is worse
GIVEN = "as given"
ROUND_STEPS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.1, 0.05, 0.01)  # of limits that are proposed for an index
RECOGNISED = 0.5  # share of the records that must be on a scale for it to be the one
_FULL_WIDTH = 0xFEE0  # from a letter to its full width
_STYLES = {  # kinds of scale, and how each is written
    "Roman numerals": (
        ROMAN, tuple(map(str.upper, ROMAN)), tuple(map(chr, range(0x2160, 0x216A))),
        tuple(map(chr, range(0x2170, 0x217A))),
    ),
    "letters": (
        LETTERS, tuple(map(str.upper, LETTERS)), tuple(chr(ord(one) + _FULL_WIDTH) for one in LETTERS),
        tuple(chr(ord(one.upper()) + _FULL_WIDTH) for one in LETTERS),
    ),
}  # fmt: skip
_RATED = 9  # highest of whole numbers whose bands are named as ratings: 9 to 0 of the National Bridge Inventory
NOT_APPLICABLE = "N"  # beside ratings from 0 to 9, as in the National Bridge Inventory: nobody rated
INVENTORY_ENDS = 9, 0  # of its ratings, the best first
BEYOND_FIVE = 6  # the least number that a scale from 1, the best, to 5 does not have
_ERAS = {"m": 1867, "明治": 1867, "t": 1911, "大正": 1911, "s": 1925, "昭和": 1925, "h": 1988, "平成": 1988,
         "r": 2018, "令和": 2018}  # fmt: skip


@dataclass(frozen=True)
class IndexEnd:
    """Records whose index is exactly 0 or exactly 100, as it is written, with their first row numbers."""

    value: float
    count: int
    texts: tuple[str, ...]
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scale:
    """States' names, best first, how they were recognised, and what to do if that is the wrong way round.

    ``state`` is the scale as a mapping says it, so that another table can be read by the very same; ``ends`` is
    filled only where the states are bands of an index. ``repairs``: columns that may be of repairs by their names,
    where the table has no column that is read as such; None where it has one.
    """

    names: tuple[str, ...]
    words: str
    turn: str = ""
    state: State | None = None
    ends: tuple[IndexEnd, ...] = ()
    repairs: tuple[str, ...] | None = None


def clean_text(column: pl.Expr) -> pl.Expr:
    """Full width as half width, no blanks around, blank as missing."""
    text = column.str.normalize("NFKC").str.strip_chars(SPACES)
    return pl.when(text.str.to_lowercase().is_in(BLANK).not_()).then(text)


def means_none(column: pl.Expr) -> pl.Expr:
    """Whether a text is blank or 0: no date, or a size that is not known."""
    text = clean_text(column)
    return text.is_null() | (text.cast(pl.Float64, strict=False) == 0).fill_null(value=False)


def read_numbers(column: pl.Expr, dtype: pl.DataType, decimal: str = ".") -> pl.Expr:
    """Numbers, with thousands separated or not; what is not a finite number is missing."""
    if dtype == pl.String:
        text = clean_text(column)
        thousands = "," if decimal == "." else "."
        grouped = rf"^[+-]?\d{{1,3}}(?:\{thousands}\d{{3}})+(?:\{decimal}\d+)?$"
        text = (
            pl.when(text.str.contains(grouped))
            .then(text.str.replace_all(thousands, "", literal=True))
            .otherwise(text)
        )
        column = text.str.replace(decimal, ".", literal=True) if decimal != "." else text
    number = column.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)


def holds_numbers(column: pl.Expr, decimal: str = ".") -> pl.Expr:
    """Whether a column of text holds numbers and blanks only, and not blanks alone."""
    number = read_numbers(column, pl.String(), decimal).is_not_null()
    return (number | clean_text(column).is_null()).all() & number.any()


def read_counts(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Whole numbers, such as a visit's; what is not one is missing."""
    number = read_numbers(column, dtype)
    return pl.when(number == number.floor()).then(number).cast(pl.Int32, strict=False)


def take_dates(column: pl.Expr) -> pl.Expr:
    """Dates of a column that holds dates or times; of a year that no inspection can be of, as the year 0, null."""
    date = column.cast(pl.Date)
    return pl.when(date.to_physical().is_between(FIRST_DAY, LAST_DAY)).then(date)


def read_dates(
    texts: pl.Series, formats: str | Sequence[str], *, fiscal: bool = False, where: str = ""
) -> pl.Series:
    """Dates of distinct texts, null where none of the formats fits.

    A year alone is its first day (of January, or of April for a fiscal year), a month its first day. ``fiscal``
    says that the column's name makes years without a mark fiscal ones, ``where`` is named in an error.
    """
    wanted = [formats] if isinstance(formats, str) else list(formats)
    frame = texts.alias("text").to_frame()
    text = clean_text(pl.col("text")).str.to_lowercase()
    tries = [
        one
        for name in wanted
        for one in (_auto(frame, text, fiscal, where) if name == "auto" else [_reader(name)])
    ]
    if not any("%" in name for name in wanted):
        tries.insert(
            0, _reader("iso")
        )  # a date with its year first cannot be mistaken; Excel's own look like that
    dates = frame.select(pl.coalesce([read(text) for read in tries])).to_series()
    return dates.set(~dates.dt.year().is_between(FIRST_YEAR, LAST_YEAR), None)


# Formats by their patterns. A month or a day that is not there is the first: of a fiscal year, April.
_SLASHED = r"^(?<{0}>\d{{1,2}})[/.-](?<{1}>\d{{1,2}})[/.-](?<year>\d{{4}})(?:[ t].*)?$"
_PATTERNS = {
    "iso": r"^(?<year>\d{4})[-/.年月](?<month>\d{1,2})[-/.年月](?<day>\d{1,2})日?(?:[ t].*)?$",
    "compact": r"^(?<year>\d{4})(?<month>\d{2})(?<day>\d{2})(?:\.0)?$",
    "month": r"^(?<year>\d{4})[/年-](?<month>\d{1,2})月?$",
    "year": r"^(?<year>\d{4})(?:\.0)?年?$",
    "fy": r"^fy ?(?<year>\d{4})$",
    "年度": r"^(?<year>\d{4})年度$",
    "fiscal_year": r"^(?:fy ?)?(?<year>\d{4})(?:\.0)?(?:年度?)?$",
    "dmy": _SLASHED.format("day", "month"),
    "mdy": _SLASHED.format("month", "day"),
}
_FISCAL = ("fy", "年度", "fiscal_year")


def _auto(frame: pl.DataFrame, text: pl.Expr, fiscal: bool, where: str) -> list[Callable[[pl.Expr], pl.Expr]]:
    """Formats that cannot be mistaken, and day and month in the order that the values themselves show."""
    slashed = frame.select(text=text).filter(pl.col("text").str.contains(_PATTERNS["dmy"]))["text"]
    parts = slashed.str.extract_groups(_PATTERNS["dmy"]).struct
    beyond = [parts.field(place).cast(pl.Int64) > MONTHS for place in ("day", "month")]
    day_first, month_first = slashed.filter(beyond[0] & ~beyond[1]), slashed.filter(beyond[1] & ~beyond[0])
    either = slashed.filter(~beyond[0] & ~beyond[1])
    if len(day_first) and len(month_first):
        raise BadValues(
            f"{where}{day_first[0]} has the day first and {month_first[0]} the month. Say dmy or mdy for all, or "
            "both in the order in which they are to be tried.",
            problem="dates_both",
            value=day_first[0],
            other=month_first[0],
        )
    if len(either) and not len(day_first) and not len(month_first):
        raise BadValues(
            f"{where}Dates such as {either[0]} can be day or month first, and the others do not show which. "
            "Say dmy or mdy (--dates dmy for inspections).",
            problem="dates_either",
            value=either[0],
        )
    plain = ("iso", "compact", "month", "fy", "年度", "fiscal_year" if fiscal else "year")
    era = partial(_read_era, fiscal=fiscal)
    return [*map(_reader, plain), era, _reader("dmy" if len(day_first) else "mdy")]


def _reader(name: str) -> Callable[[pl.Expr], pl.Expr]:
    """Return the function that reads dates of a format, null where it does not fit."""
    if name in _PATTERNS:
        return partial(_read_pattern, name=name)
    special = {"mmyy": _read_mmyy, "era": _read_era}
    return special.get(name) or (lambda text: text.str.to_date(name, strict=False))


def _read_pattern(text: pl.Expr, name: str) -> pl.Expr:
    pattern, first = _PATTERNS[name], {"month": FISCAL_MONTH if name in _FISCAL else 1, "day": 1}
    field = text.str.extract_groups(pattern).struct.field
    rest = [field(one) if f"<{one}>" in pattern else pl.lit(str(first[one])) for one in first]
    return _to_date(pl.format("{}-{}-{}", field("year"), *rest))


def _read_mmyy(text: pl.Expr) -> pl.Expr:
    """Read months such as 617, June 2017: the leading zero is often lost."""
    parts = text.str.extract_groups(r"^(\d{1,2})(\d{2})(?:\.0)?$")
    short = parts.struct.field("2").cast(pl.Int64)
    year = short + pl.when(short >= CENTURY_TURN).then(1900).otherwise(2000)
    return _to_date(pl.format("{}-{}-1", year, parts.struct.field("1")))


def _read_era(text: pl.Expr, *, fiscal: bool = False) -> pl.Expr:
    """Read dates of Japanese eras: 平成26年6月1日, 平成26年度, H26.6.1; the first year may be 元."""
    month_and_day = r"(?:(\d{1,2})(?:[月./-](?:(\d{1,2})日?)?)?)?"
    pattern = rf"^({'|'.join(_ERAS)})\.?(元|\d{{1,2}})(年度)?(?:[年./-]{month_and_day})?$"
    field = text.str.extract_groups(pattern).struct.field
    year = field("1").replace_strict(_ERAS, default=None) + field("2").replace("元", "1").cast(pl.Int64)
    begins = pl.when(field("3").is_not_null() | fiscal).then(pl.lit(str(FISCAL_MONTH))).otherwise(pl.lit("1"))
    return _to_date(pl.format("{}-{}-{}", year, field("4").fill_null(begins), field("5").fill_null("1")))


def _to_date(text: pl.Expr) -> pl.Expr:
    return text.str.to_date("%Y-%m-%d", strict=False)


def read_states(
    texts: pl.Series, counts: pl.Series, spec: State, decimal: str = ".", *, inventory: bool = False
) -> tuple[pl.DataFrame, Scale]:
    """States 1, 2, ... of distinct texts.

    Returns a frame of ``state`` (null where the text means none), ``blank`` (not inspected) and ``outside`` (a
    number beyond the ends of the scale). With ``inventory`` the components are those of the National Bridge
    Inventory: numbers that go beyond 5 are its ratings.
    """
    frame = texts.cast(pl.String).alias("text").to_frame().with_columns(count=counts)
    frame = frame.with_columns(label=_canonical_text(pl.col("text")))
    if _has_not_applicable(frame, spec):
        spec, inventory = spec.model_copy(update={"missing": [*spec.missing, NOT_APPLICABLE]}), True
    missing = [_canonical(str(one)) for one in spec.missing]
    frame = frame.with_columns(label=pl.when(pl.col("label").is_in(missing).not_()).then("label"))
    frame = frame.with_columns(number=read_numbers(pl.col("label"), pl.String(), decimal))
    states, scale = _apply(frame, spec, missing, inventory)
    scale = replace(scale, turn=_explain_turn(spec, scale.names), state=_settle(spec, scale.names))
    if states["state"].null_count() == len(states) and frame["label"].null_count() < len(frame):
        raise BadStates(
            f"None of the states is on the scale {', '.join(scale.names)}: {_examples(frame)}. Correct labels, "
            "or best and worst; or leave them out, as numbers from 1, letters and Roman numerals are recognised.",
            problem="states_off_scale",
            labels=list(scale.names),
            examples=_examples(frame),
        )
    return states.with_columns(blank=frame["label"].is_null()), scale


def _has_not_applicable(frame: pl.DataFrame, spec: State) -> bool:
    """Whether a column has N among ratings from 0 to 9, where it means that there is nothing to rate."""
    mark = _canonical(NOT_APPLICABLE)
    given = [_canonical(str(one)) for one in (*spec.missing, *_list_labels(spec))]
    others = frame.filter(pl.col("label") != mark)
    if len(others.drop_nulls("label")) == len(frame.drop_nulls("label")) or mark in given:
        return False
    rated = int(others.filter(pl.col("label").str.contains(r"^\d$"))["count"].sum())
    return rated > RECOGNISED * int(others["count"].sum())


def _list_labels(spec: State) -> list[str | int]:
    """Labels of a scale, those of groups one by one."""
    return [one for group in spec.labels or () for one in (group if isinstance(group, list) else [group])]


def _settle(spec: State, names: Sequence[str]) -> State:
    """Scale with nothing left to be recognised."""
    if spec.bands is not None or spec.best is not None or spec.labels is not None:
        return spec
    if all(name.isdecimal() for name in names):
        return State(best=int(names[0]), worst=int(names[-1]), missing=spec.missing)
    return State(labels=list(names), missing=spec.missing)


def turn_round(spec: State) -> State | None:
    """Scale with its two ends exchanged, however it was given; None for one limit of an index, which has one way.

    >>> turn_round(State(best=9, worst=0)).worst, turn_round(State()).worst_first
    (9, True)
    """
    if spec.bands is not None:
        return spec.model_copy(update={"bands": spec.bands[::-1]}) if len(spec.bands) > 1 else None
    if spec.best is not None:
        return spec.model_copy(update={"best": spec.worst, "worst": spec.best})
    if spec.labels is not None:
        return spec.model_copy(update={"labels": spec.labels[::-1]})
    return spec.model_copy(update={"worst_first": not spec.worst_first})


def merge_with_next(spec: State, names: Sequence[str], state: int) -> State | None:
    """Scale on which a state, from 1, and the next worse one are one; None where only one would be left of two.

    >>> merge_with_next(State(labels=["a", "b", "c"]), ["a", "b", "c"], 2).labels
    ['a', ['b', 'c']]
    """
    if not 1 <= state < len(names) or len(names) < 3:
        return None
    if spec.bands is not None:
        return spec.model_copy(update={"bands": [*spec.bands[: state - 1], *spec.bands[state:]]})
    groups = _list_groups(spec) if spec.labels is not None else [[name] for name in names]
    merged = [*groups[: state - 1], groups[state - 1] + groups[state], *groups[state + 1 :]]
    labels: list[str | int | list[str | int]] = [one[0] if len(one) == 1 else list(one) for one in merged]
    return State(labels=labels, missing=spec.missing)


def _explain_turn(spec: State, names: Sequence[str]) -> str:
    """Sentence on what to do if the scale was read from its wrong end, which depends on how it was given."""
    if spec.bands is not None and len(spec.bands) == 1:
        return (
            "With one limit a higher index is better. If a lower one is, take an index that counts the other way; "
            "and check that the column is the index that is meant (--state COLUMN)."
        )
    if spec.bands is not None:
        given, turned = (",".join(f"{limit:g}" for limit in some) for some in (spec.bands, spec.bands[::-1]))
        better = "higher" if spec.bands[0] > spec.bands[-1] else "lower"
        return (
            f"By --bands {given} a {better} index is better. If it is worse, write the limits the other way round "
            f"(--bands {turned}); if not, check that the column is the index that is meant (--state COLUMN)."
        )
    if spec.best is not None:
        return f"Exchange the two ends: --best {spec.worst} --worst {spec.best}."
    if spec.labels is not None:
        turned = ",".join("/".join(group) for group in _list_groups(spec)[::-1])
        return f"Write the labels the other way round, best first: --labels {turned}."
    if spec.worst_first:
        return f"Leave out --worst-first, by which {names[0]} is the best."
    return f"If {names[0]} is the worst, say --worst-first; or give --best and --worst, or --labels, best first."


def _examples(frame: pl.DataFrame) -> str:
    """Commonest states as they are written."""
    return ", ".join(frame.drop_nulls("label").sort("count", descending=True)["text"].head(5))


def _apply(
    frame: pl.DataFrame, spec: State, missing: Sequence[str], inventory: bool
) -> tuple[pl.DataFrame, Scale]:
    if spec.bands is not None:
        return _by_bands(frame, spec.bands)
    if spec.best is not None and spec.worst is not None:
        return _by_ends(frame, spec.best, spec.worst, f"from {spec.best}, the best, to {spec.worst}, the worst")
    if spec.labels is not None:
        groups = _list_groups(spec)
        _check_labels(groups, missing)
        return _by_labels(frame, groups, GIVEN)
    states, scale = _recognise(frame, inventory)
    return _turn(states, scale) if spec.worst_first else (states, scale)


def _list_groups(spec: State) -> list[list[str]]:
    """Labels of each state, as a mapping gives them."""
    return [[str(one) for one in (group if isinstance(group, list) else [group])] for group in spec.labels or ()]


def _turn(states: pl.DataFrame, scale: Scale) -> tuple[pl.DataFrame, Scale]:
    """Turn a scale round."""
    names = scale.names[::-1]
    words = f"{', '.join(names)}, best first, the recognised order turned round"
    return states.with_columns(state=len(names) + 1 - pl.col("state")), Scale(names, words)


def _canonical_text(column: pl.Expr) -> pl.Expr:
    """Lower case, half width, 3 for 3.0 and 03."""
    return clean_text(column).str.to_lowercase().str.replace(r"^0*(\d+)(?:\.0+)?$", "$1")


def _canonical(text: str) -> str:
    found = pl.select(_canonical_text(pl.lit(text))).item()
    return text if found is None else str(found)


def _by_labels(frame: pl.DataFrame, groups: list[list[str]], how: str) -> tuple[pl.DataFrame, Scale]:
    numbered = list(enumerate(groups, start=1))
    places = {_canonical("/".join(group)): place for place, group in numbered}  # a label may have a slash in it
    places |= {_canonical(label): place for place, group in numbered for label in group}
    state = pl.col("label").replace_strict(places, default=None, return_dtype=pl.Int16)
    names = name_groups(groups)
    words = f"{', '.join(names)}, best first, {how}"
    outside = pl.col("label").is_not_null() & state.is_null() & (how == GIVEN)
    return frame.select(state=state, outside=outside), Scale(names, words)


def _check_labels(groups: list[list[str]], missing: Sequence[str]) -> None:
    """Refuse labels that no record can have, or that mean two states."""
    if not all(groups):
        raise BadOption("state.labels hold a group without labels.")
    seen: list[str] = []
    for label in (label for group in groups for label in group):
        text = _canonical(label)
        if pl.select(clean_text(pl.lit(text))).item() is None:
            raise BadOption(f"state.labels hold {label!r}, which means that nobody looked. Leave it out.")
        if text in seen:
            raise BadOption(f"state.labels hold a label twice: {label!r}. Upper and lower case are one.")
        if text in missing:
            raise BadOption(f"{label!r} is both in state.labels and in state.missing.")
        seen.append(text)


def _by_ends(frame: pl.DataFrame, best: int, worst: int, words: str) -> tuple[pl.DataFrame, Scale]:
    step = 1 if worst > best else -1
    number = abs(worst - best) + 1
    if number > MOST_STATES:
        raise BadOption(
            f"From {best} to {worst} there are {number:,} states; at most {MOST_STATES} are taken. Give bands.",
            problem="states_many",
            low=min(best, worst),
            high=max(best, worst),
        )
    names = tuple(str(rank) for rank in range(best, worst + step, step))
    whole = pl.col("number") == pl.col("number").floor()
    state = (pl.col("number") - best) * step + 1
    inside = state.is_between(1, len(names)) & whole
    return frame.select(
        state=pl.when(inside).then(state).cast(pl.Int16), outside=(inside.not_()).fill_null(value=False)
    ), Scale(names, words)


def _by_bands(frame: pl.DataFrame, bands: Sequence[float]) -> tuple[pl.DataFrame, Scale]:
    """A continuous index: limits that fall mean that higher is better, limits that rise that it is worse."""
    number = pl.col("number")
    falling = len(bands) == 1 or bands[0] > bands[-1]
    beyond = [(number < limit) if falling else (number >= limit) for limit in bands]
    state = pl.when(number.is_not_null()).then(pl.sum_horizontal(beyond) + 1).cast(pl.Int16)
    inner = [f"{min(pair):g} to {max(pair):g}" for pair in pairwise(bands)]
    ends = ("{:g} and above", "below {:g}") if falling else ("below {:g}", "{:g} and above")
    names = _name_whole(frame, bands) or (ends[0].format(bands[0]), *inner, ends[1].format(bands[-1]))
    words = f"an index in bands: {'; '.join(names)}"
    found = _find_ends(frame, INDEX_ENDS if falling else INDEX_ENDS[1:])
    return frame.select(state=state, outside=pl.lit(value=False)), Scale(names, words, ends=found)


def _name_whole(frame: pl.DataFrame, bands: Sequence[float]) -> tuple[str, ...]:
    """Names of bands of ratings 9 to 0: from 8 to below 9 there is 8 alone; none of other indices."""
    seen = frame["number"].drop_nulls()
    limits = [_RATED + 1, *(int(limit) for limit in bands), 0]
    whole = bool(((seen == seen.floor()) & seen.is_between(0, _RATED)).all()) and [*limits[1:-1]] == [*bands]
    if not whole or any(first <= second for first, second in pairwise(limits)):
        return ()
    return name_groups([[str(one) for one in range(high - 1, low - 1, -1)] for high, low in pairwise(limits)])


def _find_ends(frame: pl.DataFrame, values: Sequence[float]) -> tuple[IndexEnd, ...]:
    """Records with exactly such a value: more often a placeholder than a measurement."""
    found = {value: frame.filter(number=value) for value in values}
    return tuple(
        IndexEnd(value, int(rows["count"].sum()), tuple(rows["text"]))
        for value, rows in found.items()
        if not rows.is_empty()
    )


def _recognise(frame: pl.DataFrame, inventory: bool) -> tuple[pl.DataFrame, Scale]:
    """Roman numerals, letters, or whole numbers from 1, if most records are on such a scale."""
    filled = frame.filter(pl.col("label").is_not_null())
    records = int(filled["count"].sum())
    if not records:
        raise BadStates("Every state is blank: there is no condition to model.", problem="states_blank")
    for kind, styles in _STYLES.items():
        labels = styles[0]
        seen = filled.filter(pl.col("label").is_in(labels))
        if seen["count"].sum() > RECOGNISED * records:
            last = max(labels.index(label) for label in seen["label"])
            written = max(styles, key=lambda style: _count_written(seen, style))
            groups = [[label] for label in written[: max(last + 1, 2)]]
            rare = _rare(seen, labels[last], groups[-1][0])
            return _by_labels(frame, groups, f"recognised as {kind}{rare}")
    return _recognise_numbers(frame, filled, records, inventory)


def _count_written(seen: pl.DataFrame, style: Sequence[str]) -> int:
    """Number of records that are written in a style: Ⅲ, III or iii."""
    return int(seen.filter(pl.col("text").str.strip_chars(SPACES).is_in(style))["count"].sum())


def _rare(seen: pl.DataFrame, worst: str, written: str = "") -> str:
    """A word on a worst state that may be a slip: it decides how long the scale is."""
    count = int(seen.filter(label=worst)["count"].sum())
    return f"; {written or worst} stands there only {'once' if count == 1 else 'twice'}" if count in (1, 2) else ""


def suggest_bands(weighted: Iterable[tuple[float, int]]) -> tuple[float, ...]:
    """Limits, highest first, that cut an index into five bands of about as many records, in round numbers.

    ``weighted`` holds values and their records. Zeros, which are more often placeholders, are not counted.
    """
    weighted = sorted((number, count) for number, count in weighted if number != 0)
    total, done, cuts, shares = sum(count for _, count in weighted), 0, [], [0.2, 0.4, 0.6, 0.8]
    if len(weighted) < 2:
        return ()
    for number, count in weighted:
        done += count
        while shares and done >= shares[0] * total:
            cuts.append(number)
            shares.pop(0)
    low, high = weighted[0][0], weighted[-1][0]
    found: set[float] = set()
    for step in ROUND_STEPS:  # the roundest numbers that are different
        found = {one for cut in cuts if low < (one := round(round(cut / step) * step, 2)) < high}
        if len(found) == len(set(cuts)):
            break
    return tuple(sorted(found, reverse=True))


def _propose_bands(limits: Sequence[float]) -> str:
    """Sentences on the limits that an index is cut at, with those that its values suggest."""
    if not limits:
        return "Give bands: --bands 85,75,70,60 where higher is better, --bands 5,10,20 where it is worse."
    falling, rising = (",".join(f"{limit:g}" for limit in some) for some in (limits, limits[::-1]))
    other = f", --bands {rising} where it is worse" if len(limits) > 1 else ""
    return (
        f"Give bands: --bands {falling} where higher is better{other}. These limits are proposed from your data: "
        "fifths of the records. Give your agency's limits if it has any."
    )


def _recognise_numbers(
    frame: pl.DataFrame, filled: pl.DataFrame, records: int, inventory: bool
) -> tuple[pl.DataFrame, Scale]:
    numbers = filled.filter(pl.col("number").is_not_null())
    examples = _examples(filled)
    if numbers["count"].sum() <= RECOGNISED * records:
        raise BadStates(
            f"The states are not understood: {examples}. Numbers from 1, letters from a and Roman numerals are; "
            "for others give the labels, best first (--labels).",
            problem="states_unknown",
            examples=examples,
            values=filled["text"].head(20).to_list(),
        )
    low, high = float(numbers["number"].min()), float(numbers["number"].max())  # type: ignore[arg-type]
    if (numbers["number"] != numbers["number"].floor()).any() or high > MOST_STATES:
        raise BadStates(
            f"The states run from {low:g} to {high:g}: an index, not a scale of states. "
            + _propose_bands(suggest_bands(numbers.select("number", "count").rows())),
            problem="states_index",
            low=low,
            high=high,
        )
    best, last = INVENTORY_ENDS
    if inventory and low >= last and BEYOND_FIVE <= high <= best:
        return _by_ends(
            frame, best, last, f"numbers, {best} taken as the best and {last} as the worst, as bridges are rated"
        )
    if low < 1:
        raise BadStates(
            f"The states run from {low:g} to {high:g}. Say which end is best, such as --best 9 --worst 0; "
            f"or that {low:g} means that nobody looked, --not-inspected {low:g}.",
            problem="states_from_zero",
            low=low,
            high=high,
        )
    worst = max(int(high), 2)
    rare = _rare(numbers, str(worst))
    return _by_ends(frame, 1, worst, f"numbers, 1 taken as the best and {worst} as the worst{rare}")
