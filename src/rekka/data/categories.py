"""Categories: columns of text, booleans or declared numbers as covariates, one 0/1 column for each level but one.

A ``Coding`` is fitted on the training rows and applied unchanged to all others. It turns ``material`` into
``material: steel``, ``material: timber``, ...: 1 where the row has that level, 0 elsewhere. The reference level,
the most frequent one, has no column: every effect is relative to it. After the coding there are columns of numbers
only, which is all that scalings, kernels and solvers see.

A level with fewer than 5 departures cannot have an effect of its own: such levels become one level, "other", if
they have 5 departures together, else part of the reference. A column of yes and no has "no" as its reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from rekka.core.errors import BadCovariates, BadOption, BadValues, bad_option, count_of, name_rows, name_some
from rekka.data.attributes import NAMES, NO, YES, is_text, level_text
from rekka.data.text import collect

FEWEST = 5  # departures that a level needs for an effect of its own
MOST_LEVELS = 50  # a column with more is a name or a remark, not a category
OTHER, MISSING = "other", "missing"  # levels that the rules make
NO_WORDS = frozenset({"no", "n", "false", "0", "いいえ", "無", "無し", "なし"})
YES_WORDS = frozenset({"yes", "y", "true", "1", "はい", "有", "有り", "あり"})
REFERENCE, REFUSE = "reference", "refuse"
UNSEEN = (REFERENCE, REFUSE)
MERGE = "merge"
RARE = (MERGE, REFUSE)
ERROR, LEVEL = "error", "level"
MISSING_RULES = (ERROR, LEVEL)


@dataclass(frozen=True)
class Level:
    """A level of the training rows: its rows, those that departed to a worse state, the level it is taken as."""

    name: str
    rows: int
    departures: int
    into: str


@dataclass(frozen=True)
class Category:
    """A column whose values are names: its levels in the training rows, the most frequent first.

    ``yes_no`` says that the words for yes and no in several languages are read as these. Where there is a level
    "missing", missing values have it.
    """

    name: str
    reference: str
    levels: tuple[Level, ...]
    yes_no: bool = False

    @property
    def missing(self) -> bool:
        """Whether missing values are a level of their own."""
        return any(level.name == MISSING for level in self.levels)

    @property
    def kept(self) -> tuple[str, ...]:
        """Levels with an effect of their own, after the merging, without the reference."""
        return tuple(dict.fromkeys(level.into for level in self.levels if level.into != self.reference))

    @property
    def typical(self) -> str:
        """The most frequent level, after the merging; the reference among equals."""
        rows: dict[str, int] = {self.reference: 0}
        for level in self.levels:
            rows[level.into] = rows.get(level.into, 0) + level.rows
        return max(rows, key=lambda name: rows[name])

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the 0/1 columns: 'material: steel'."""
        return tuple(f"{self.name}: {level}" for level in self.kept)

    @property
    def merged(self) -> tuple[Level, ...]:
        """Levels that are taken as another one."""
        return tuple(level for level in self.levels if level.into != level.name)

    def find(self, term: str) -> str:
        """The level of a term."""
        return self.kept[self.terms.index(term)]

    def read(self, text: pl.Expr) -> pl.Expr:
        """The level that a text is taken as; null where it is missing or was not seen in the training rows."""
        into = {level.name: level.into for level in self.levels}
        return self.spell(text).replace_strict(into, default=None, return_dtype=pl.String)

    def find_unseen(self, text: pl.Expr) -> pl.Expr:
        """Whether a text is a level that no training row had."""
        return self.spell(text).is_not_null() & self.read(text).is_null()

    def spell(self, text: pl.Expr) -> pl.Expr:
        """The text as levels are written: words for yes and no as these, missing values as their level."""
        if self.yes_no:
            word = text.str.to_lowercase()
            yes, no = word.is_in(sorted(YES_WORDS)), word.is_in(sorted(NO_WORDS))
            text = pl.when(yes).then(pl.lit(YES)).when(no).then(pl.lit(NO)).otherwise(text)
        return text.fill_null(MISSING) if self.missing else text

    def place(self, level: object) -> dict[str, float]:
        """The 0/1 columns of a member with this level, merged or not; a level that is not known is refused."""
        text = (YES if level else NO) if isinstance(level, bool) else str(level)
        known = {one.name: one.into for one in self.levels} | {into: into for into in self.kept}
        found = pl.select(self.spell(pl.lit(text))).item()
        if found not in known:
            raise BadOption(
                f"{self.name} is {text!r}; it can be {name_some([self.reference, *self.kept])}.",
                option=self.name,
                value=text,
                choices=[self.reference, *self.kept],
            )
        return {term: float(kept == known[found]) for kept, term in zip(self.kept, self.terms, strict=True)}

    def notes(self) -> list[str]:
        """Sentences on the levels that were merged, and on a category that none is left of."""
        by_target: dict[str, list[Level]] = {}
        for level in self.merged:
            by_target.setdefault(level.into, []).append(level)
        said = []
        for into, levels in by_target.items():
            names = ", ".join(f"{level.name} ({level.departures} of {level.rows:,})" for level in levels)
            target = f"the reference level, {into}" if into == self.reference else f"one level, {into}"
            said.append(f"{self.name}: levels with fewer than {FEWEST} departures are taken as {target}: {names}")
        if not self.kept:
            said.append(f"{self.name} is left out: no level but {self.reference} has {FEWEST} departures")
        return said


@dataclass(frozen=True)
class Unseen:
    """Levels of new rows that no training row had, with their number of rows."""

    column: str
    rows: dict[str, int]
    reference: str

    def __str__(self) -> str:
        names = ", ".join(f"{level} ({count_of(count, 'row')})" for level, count in self.rows.items())
        return f"{self.column}: no training row has {names}"


@dataclass(frozen=True)
class Coding:
    """How categories become columns of numbers; ``unseen`` is what becomes of levels that no training row had."""

    categories: tuple[Category, ...] = ()
    unseen: str = REFERENCE

    def __bool__(self) -> bool:
        return bool(self.categories)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are categories."""
        return tuple(category.name for category in self.categories)

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of all 0/1 columns."""
        return tuple(term for category in self.categories for term in category.terms)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the levels that were merged."""
        return tuple(note for category in self.categories for note in category.notes())

    def find(self, name: str) -> Category | None:
        """The category of this name, or that a term of this name belongs to."""
        return next((one for one in self.categories if name == one.name or name in one.terms), None)

    def name_contrast(self, covariate: str) -> str:
        """A covariate by what it means: of a term the level, or the levels merged into it, and the reference.

        >>> levels = (Level("steel", 9, 9, "steel"), Level("oak", 9, 9, "oak"))
        >>> coding = Coding((Category("kind", "steel", levels),))
        >>> coding.name_contrast("kind: oak"), coding.name_contrast("age")
        ('kind: oak against steel', 'age')
        """
        category = self.find(covariate)
        if category is None:
            return covariate
        into = category.find(covariate)
        levels = sorted(level.name for level in category.levels if level.into == into)
        return f"{category.name}: {', '.join(levels)} against {category.reference}"

    def expand(self, covariates: Iterable[str]) -> tuple[str, ...]:
        """Covariates with the terms of each category in its place."""
        found = {category.name: category.terms for category in self.categories}
        return tuple(term for name in covariates for term in found.get(name, (name,)))

    def columns(self, covariates: Iterable[str]) -> tuple[str, ...]:
        """Columns of a table that hold these covariates: a category for its terms."""
        source = {term: category.name for category in self.categories for term in category.terms}
        return tuple(dict.fromkeys(source.get(name, name) for name in covariates))

    def expand_keys(self, table: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """An option by covariate, such as ``effects``, with a category's value given to each of its terms."""
        if table is None or not self:
            return None if table is None else dict(table)
        named = {name: value for name, value in table.items() if name not in self.names}
        terms = {t: table[one.name] for one in self.categories if one.name in table for t in one.terms}
        return terms | named  # a term's own value comes before that of its category

    def collapse(self, values: Mapping[str, float]) -> dict[str, float | str]:
        """Covariates by name, with the level of a category in place of its terms."""
        found: dict[str, float | str] = {}
        for name, value in values.items():
            category = self.find(name)
            if category is None:
                found[name] = value
            elif value == 1.0:
                found[category.name] = category.find(name)
            else:
                found.setdefault(category.name, category.reference)
        return found

    def keep(self, names: Iterable[str]) -> Coding:
        """The coding of some of the categories."""
        wanted = set(names)
        return replace(self, categories=tuple(one for one in self.categories if one.name in wanted))

    def expressions(self, schema: Mapping[str, Any]) -> list[pl.Expr]:
        """The 0/1 columns of all terms; null where the value is missing, or unseen and to be refused."""
        made = []
        for category in self.categories:
            if category.name not in schema:
                continue
            text = level_text(category.name, schema)
            level = category.read(text)
            if self.unseen == REFERENCE:
                level = pl.when(category.spell(text).is_not_null()).then(level.fill_null(category.reference))
            pairs = zip(category.kept, category.terms, strict=True)
            made += [(level == kept).cast(pl.Float64).alias(term) for kept, term in pairs]
        return made

    def code(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """A table with the 0/1 columns of its categories."""
        made = self.expressions(frame.collect_schema()) if self else []
        return frame.with_columns(made) if made else frame

    def find_unseen(self, frame: pl.LazyFrame, name: str = "the table") -> list[Unseen]:
        """Levels that no training row had, in the columns that the table has."""
        found = []
        schema = frame.collect_schema() if self else {}
        for category in self.categories:
            if category.name in schema:
                text = level_text(category.name, schema)
                strange = frame.select(level=category.spell(text).filter(category.find_unseen(text)))
                counts = collect(
                    strange.group_by("level").len().sort("len", "level", descending=[True, False]), name
                )
                if len(counts):
                    found.append(Unseen(category.name, dict(counts.iter_rows()), category.reference))
        return found


NO_CODING = Coding()


def find_categories(
    schema: Mapping[str, Any], covariates: Sequence[str], declared: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Covariates that are categories: columns of text or booleans, and numbers that are declared as such."""
    if isinstance(declared, str):
        raise BadOption(f"categories is the text {declared!r}; a list of column names is needed.")
    strange = [name for name in declared or () if name not in covariates]
    if strange:
        raise BadOption(
            f"categories names {strange[0]}, which is not a covariate of this model; {name_some(covariates)} are.",
            option="categories",
            value=strange[0],
        )
    return tuple(name for name in covariates if name in (declared or ()) or is_text(schema[name]))


def check_coding(unseen: Any, rare: Any = MERGE, missing: Any = ERROR) -> None:
    """Refuse unknown values of the options of categories."""
    given = {"unseen": (unseen, UNSEEN), "rare": (rare, RARE), "missing": (missing, MISSING_RULES)}
    for option, (value, choices) in given.items():
        if value not in choices:
            raise bad_option(option, value, choices)


@dataclass(frozen=True)
class CodingRules:
    """Rules by which an estimator codes categories; wrong ones are refused.

    ``declared`` are numbers that are categories. ``chosen`` says that covariates were named: texts that were not,
    such as bridge_id, are refused.
    """

    declared: Sequence[str] | None = None
    unseen: str = REFERENCE
    rare: str = MERGE
    missing: str = ERROR
    chosen: bool = True

    def __post_init__(self) -> None:
        check_coding(self.unseen, self.rare, self.missing)

    def for_coding(self) -> dict[str, Any]:
        """The rules as ``fit_coding`` takes them."""
        return {"unseen": self.unseen, "rare": self.rare, "missing": self.missing == LEVEL}


def fit_coding(
    frame: pl.LazyFrame,
    names: Sequence[str],
    departed: pl.Expr,
    *,
    references: Mapping[str, str] | None = None,
    unseen: str = REFERENCE,
    rare: str = MERGE,
    missing: bool = False,
    judge: bool = True,
    where: str = "the table",
) -> Coding:
    """Fit the coding of categories on training rows; ``departed`` says which rows moved to a worse state.

    ``references`` are levels to compare with, by category, where they are not to be the most frequent ones. With
    ``judge`` a column with too many levels is refused.

    >>> import polars as pl
    >>> rows = pl.LazyFrame({"kind": ["steel"] * 9 + ["timber"] * 8, "moved": [True] * 17})
    >>> coding = fit_coding(rows, ["kind"], pl.col("moved"))
    >>> coding.categories[0].reference, coding.terms
    ('steel', ('kind: timber',))
    """
    schema = frame.collect_schema()
    found = []
    for name in names:
        text = level_text(name, schema)
        grouped = frame.group_by(level=text).agg(rows=pl.len(), departures=departed.sum().cast(pl.Int64))
        counts = collect(grouped.sort("level"), where)
        if judge:
            refuse_names(name, counts, where)
        chosen = (references or {}).get(name)
        found.append(fit_category(name, counts, reference=chosen, rare=rare, missing=missing, where=where))
    return Coding(tuple(found), unseen)


def fit_category(
    name: str,
    counts: pl.DataFrame,
    *,
    reference: str | None = None,
    rare: str = MERGE,
    missing: bool = False,
    where: str = "the table",
) -> Category:
    """Fit a category from its levels' rows and departures; the level null are its missing values."""
    if missing:
        counts = counts.with_columns(pl.col("level").fill_null(MISSING))
    counts = counts.drop_nulls("level")
    known = [level for level in counts["level"] if level != MISSING]
    words = {level.lower() for level in known}
    yes_no = words <= YES_WORDS | NO_WORDS and bool(words & YES_WORDS) and bool(words & NO_WORDS)
    bare = Category(name, "", (), yes_no)
    spelled = counts.group_by(level=bare.spell(pl.col("level"))).agg(pl.col("rows", "departures").sum())
    spelled = spelled.sort("rows", "level", descending=[True, False])
    levels = [Level(level, rows, departures, level) for level, rows, departures in spelled.iter_rows()]
    if not levels:
        raise BadValues(f"{where}: {name} has no value in any row. Leave it out of covariates.", column=name)
    if reference is None or reference not in [level.name for level in levels]:
        reference = NO if yes_no else levels[0].name
    return replace(bare, reference=reference, levels=_merge(name, levels, reference, rare))


def _merge(name: str, levels: list[Level], reference: str, rare: str) -> tuple[Level, ...]:
    """Levels with too few departures taken as one, or as the reference where they have too few together."""
    few = [level for level in levels if level.departures < FEWEST and level.name != reference]
    if few and rare == REFUSE:
        listed = ", ".join(f"{level.name} ({count_of(level.departures, 'departure')})" for level in few)
        raise BadCovariates(
            f"{name} has levels with fewer than {FEWEST} departures: {listed}. Merge them with others in the "
            'table, or have them merged with rare="merge".',
            covariates=[name],
        )
    named = [level.name for level in levels if level.name.lower() == OTHER]
    together = sum(level.departures for level in levels if level in few or level.name in named)
    into = (named[0] if named else OTHER) if together >= FEWEST else reference
    return tuple(replace(level, into=into) if level in few else level for level in levels)


def refuse_names(name: str, counts: pl.DataFrame, where: str) -> None:
    """Refuse a column that has too many different texts for a category."""
    counts = counts.drop_nulls("level")
    different, rows = len(counts), int(counts["rows"].sum())
    if different > MOST_LEVELS or (different > 2 and 2 * different > rows):
        texts = counts.filter(pl.col("level").cast(pl.Float64, strict=False).is_null())
        if 0 < 2 * len(texts) < different:
            raise BadValues(
                f"{where}: {name} holds {texts['level'][0]!r} in {count_of(texts['rows'][0], 'row')}, and numbers "
                "in others; numbers are needed. Correct the text, or leave the column out of covariates.",
                column=name,
            )
        some = ", ".join(repr(level) for level in counts["level"].head(3))
        raise BadValues(
            f"{where}: {name} holds {different:,} different texts in {rows:,} rows, such as {some}; a category "
            f"has at most {MOST_LEVELS}, each in several rows. Leave it out of covariates, or group its levels.",
            column=name,
        )


def refuse_missing(frame: pl.LazyFrame, names: Sequence[str], where: str = "the table") -> None:
    """Refuse categories that are missing in some rows."""
    schema = frame.collect_schema() if names else {}
    for column in names:
        absent = frame.select(absent=level_text(column, schema).is_null())
        bad = collect(absent.with_row_index("row").filter("absent").select("row"), where)["row"].to_numpy()
        if bad.size:
            rows = collect(frame.select(pl.len()), where).item()
            raise BadValues(
                f"{column} is missing in {bad.size} of {rows} rows ({name_rows(bad)}). Exclude such rows, fill "
                'them in, or fit with missing="level", which makes missing values a level of their own.',
                column=column,
                rows=bad.tolist(),
            )


def refuse_single(coding: Coding) -> None:
    """Refuse a category that has one level in all rows."""
    for category in coding.categories:
        if len(category.levels) == 1:
            raise BadCovariates(
                f"{category.name} is {category.reference!r} in all {category.levels[0].rows} training rows: its "
                "effect cannot be separated from the intercept. Leave it out of covariates.",
                covariates=[category.name],
            )


def refuse_named(names: Iterable[str]) -> None:
    """Refuse columns of names that nobody asked for as covariates, such as bridge_id."""
    for name in names:
        if name in NAMES:
            raise BadValues(
                f"{name} holds names, and would be a covariate. Name the covariates to use: covariates=[...].",
                column=name,
            )
