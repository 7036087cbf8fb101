"""Training, validation and golden rows, split by bridge: a function of names and a seed, on any machine.

Bridges are put in the order of a SHA-256 of seed and name, and shares are cut from that order. No random generator
is involved, so no library version can change a split, and a bridge cannot stand in two held-out parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.errors import BadOption, InputError, missing_columns
from rekka.data.text import collect

Places = NDArray[np.intp]

PAPER_SEED = 20260924  # paper, Dataset Description
PAPER_ROW_CAP = 20_000  # paper, Dataset Description; rows of a case
PAPER_VALIDATION = 0.2  # paper, Dataset Description; share of the bridges of the later rows
PARTS = ("train", "validation", "golden")
SHARES = {"train": 0.6, "validation": 0.2, "golden": 0.2}  # of the bridges, where they alone decide
COLUMNS = ("bridge_id", "case")  # what a split needs
PAPER_COLUMNS = (*COLUMNS, "visit_1", "visit_2")
DATE_COLUMNS = (*COLUMNS, "date_2")
ROWS_AT_ONCE = 4_000_000  # whose bridges are listed together
MANY_BRIDGES = (
    1_000_000  # above it they are distinguished by a number of 64 bits: names take several times the room
)
NAMES_AT_ONCE = 65_536  # as Python's own texts, which take much more room
TABLE = "the table"  # as errors name it
MOSTLY_LATE = (
    0.4  # share of the rows that the paper's split must use to be chosen by itself; five full rounds: 0.5
)


@dataclass(frozen=True)
class Partition:
    """Transitions split into rows that train, validate and confirm.

    ``train``, ``validation`` and ``golden`` (confirmation rows) are dataframes with the columns of the table that
    was split; ``scheme`` says in words how.

    Examples
    --------
    >>> import rekka, polars as pl
    >>> rekka.partition_auto(rekka.simulate_transitions(300).with_columns(case=pl.lit("Deck"))).counts().columns
    ['case', 'train', 'validation', 'golden']

    """

    train: pl.DataFrame
    validation: pl.DataFrame
    golden: pl.DataFrame
    scheme: str

    def counts(self) -> pl.DataFrame:
        """Number of rows of each case in each part."""
        numbers = [(pl.col("part") == name).sum().cast(pl.Int64).alias(name) for name in PARTS]
        return self.rows().group_by("case").agg(numbers).sort("case")

    def rows(self) -> pl.DataFrame:
        """All rows in one frame, with their ``part``."""
        parts = (self.train, self.validation, self.golden)
        return pl.concat(part.with_columns(part=pl.lit(name)) for part, name in zip(parts, PARTS, strict=True))


@dataclass(frozen=True)
class LazyPartition:
    """Partition of a table that is not in memory: three queries over it."""

    train: pl.LazyFrame
    validation: pl.LazyFrame
    golden: pl.LazyFrame
    scheme: str

    def by_part(self) -> list[pl.LazyFrame]:
        """Rows of each part, with its name as ``part``, in the order of ``Partition.rows``."""
        parts = (self.train, self.validation, self.golden)
        return [part.with_columns(part=pl.lit(name)) for part, name in zip(parts, PARTS, strict=True)]

    def collect(self) -> Partition:
        """Read the rows into memory."""
        train, validation, golden = pl.collect_all([self.train, self.validation, self.golden])
        return Partition(train, validation, golden, self.scheme)


def order_bridges(names: Iterable[Any], seed: int | str) -> list[Any]:
    """Put bridges, each once, in an order that only their names and the seed decide."""
    return sorted(set(names), key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())


def split_bridges(names: Iterable[Any], shares: Mapping[str, float], seed: int) -> dict[Any, str]:
    """Part of each bridge; shares are of bridges, rounded so that they add up."""
    bridges = order_bridges(names, seed)
    part_of: dict[Any, str] = {}
    for part, here in _cut(len(bridges), shares):
        part_of |= dict.fromkeys(bridges[here], part)
    return part_of


def _cut(bridges: int, shares: Mapping[str, float]) -> Iterator[tuple[str, slice]]:
    """Slice of so many bridges, in their order, for each part."""
    if not shares or any(not 0 <= share <= 1 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-9:
        raise BadOption(f"shares are {dict(shares)}; numbers between 0 and 1 that add up to 1 are needed.")
    done = 0.0
    for part, share in shares.items():
        first, done = round(done * bridges), done + share
        yield part, slice(first, round(done * bridges))


def place_bridges(names: pl.Series, seed: int | str) -> Places:
    """Places of different names in the order of ``order_bridges``, (n,), without a list of them.

    Sixteen bytes of the SHA-256 decide: that two of them are equal has never been seen.
    """
    numbers = np.empty((len(names), 2), dtype=">u8")
    for first in range(0, len(names), NAMES_AT_ONCE):
        some = names[first : first + NAMES_AT_ONCE].to_list()
        digests = b"".join(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:16] for name in some)
        numbers[first : first + len(some)] = np.frombuffer(digests, dtype=">u8").reshape(-1, 2)
    return np.lexsort((numbers[:, 1], numbers[:, 0]))


def partition_paper(
    transitions: Any,
    *,
    seed: int = PAPER_SEED,
    row_cap: int | None = PAPER_ROW_CAP,
    keep_training_bridges_out: bool = False,
) -> Partition:
    """Split by the paper's protocol: third-to-fourth visits train; fourth-to-fifth, by bridge, are held out.

    The split is over all cases together, so a bridge is on one side in every case: 20 % of the bridges
    validate, 80 % are golden.

    Parameters
    ----------
    transitions : dataframe
        With bridge_id, case, visit_1 and visit_2.
    seed : int
        Decides, with the names, the order of the bridges.
    row_cap : int or None
        Above it a case keeps some of its bridges, whole, by name and seed.
    keep_training_bridges_out : bool
        Whether later rows of a bridge that trained are left out of the held-out parts.

    Examples
    --------
    >>> import rekka
    >>> rows = rekka.pair_visits(rekka.read_panel(rekka.simulate_inventory().inspections)).frame
    >>> rekka.partition_paper(rows).counts().row(0, named=True)
    {'case': 'Abutment', 'train': 271, 'validation': 91, 'golden': 438}

    """
    frame = _check_rows(_to_lazy(transitions), PAPER_COLUMNS)
    return _split_as_paper(frame, seed, row_cap, keep_training_bridges_out).collect()


def _split_as_paper(
    frame: pl.LazyFrame, seed: int, row_cap: int | None = PAPER_ROW_CAP, keep_training_bridges_out: bool = False
) -> LazyPartition:
    wanted = pl.col("visit_1").is_in([3, 4]) & (pl.col("visit_2") == pl.col("visit_1") + 1)
    frame = _cap(frame.filter(wanted), row_cap, seed)
    train, later = frame.filter(pl.col("visit_1") == 3), frame.filter(pl.col("visit_1") == 4)
    validation, golden, words = _hold_out(train, later, PAPER_VALIDATION, keep_training_bridges_out, seed)
    return LazyPartition(train, validation, golden, f"visits 3 to 4 train; visits 4 to 5 {words}")


def partition_by_date(
    transitions: Any,
    *,
    until: Any,
    validation: float = PAPER_VALIDATION,
    seed: int = PAPER_SEED,
    keep_training_bridges_out: bool = False,
) -> Partition:
    """Split at a date: rows whose second visit is not after ``until`` train; later ones are held out by bridge.

    A row that begins before ``until`` and ends after it is a later row: its end was not known then.

    Parameters
    ----------
    transitions : dataframe
        With bridge_id, case and date_2.
    until : date
        Last day of the training rows' second visits.
    validation : float
        Share of the later rows' bridges that validate; the others are golden.
    seed, keep_training_bridges_out
        As in ``partition_paper``.

    Examples
    --------
    >>> import rekka
    >>> from datetime import date
    >>> found = rekka.read_transitions(rekka.simulate_inventory(50, preset="plain").inspections)
    >>> parts = rekka.partition_by_date(found.frame, until=date(2019, 3, 31))
    >>> parts.train["date_2"].max() <= date(2019, 3, 31)
    True

    """
    frame = _check_rows(_to_lazy(transitions), DATE_COLUMNS)
    return _split_by_date(frame, until, seed, validation, keep_training_bridges_out).collect()


def _split_by_date(
    frame: pl.LazyFrame,
    until: Any,
    seed: int,
    validation: float = PAPER_VALIDATION,
    keep_training_bridges_out: bool = False,
) -> LazyPartition:
    train, later = frame.filter(pl.col("date_2") <= until), frame.filter(pl.col("date_2") > until)
    validated, golden, words = _hold_out(train, later, validation, keep_training_bridges_out, seed)
    return LazyPartition(train, validated, golden, f"second visits up to {until} train; later ones {words}")


def partition_by_bridge(
    transitions: Any, *, train: float = 0.6, validation: float = 0.2, golden: float = 0.2, seed: int = PAPER_SEED
) -> Partition:
    """Split by bridge alone: every row of a bridge is in one part. The shares are of bridges, and add up to 1.

    Examples
    --------
    >>> import rekka, polars as pl
    >>> rows = rekka.simulate_transitions(300).with_columns(case=pl.lit("Deck"))
    >>> parts = rekka.partition_by_bridge(rows, train=0.5, validation=0.25, golden=0.25)
    >>> sum(map(len, (parts.train, parts.validation, parts.golden)))
    300

    """
    shares = {"train": train, "validation": validation, "golden": golden}
    return _split_by_bridge(_check_rows(_to_lazy(transitions), COLUMNS), shares, seed).collect()


def _split_by_bridge(frame: pl.LazyFrame, shares: Mapping[str, float], seed: int) -> LazyPartition:
    words = ", ".join(f"{share:.0%} {name}" for name, share in shares.items())
    parts = _part_rows(frame, shares, seed)
    return LazyPartition(**{name: parts[name] for name in PARTS}, scheme=f"by bridge, {words}, seed {seed}")


def partition_auto(transitions: Any, *, seed: int = PAPER_SEED) -> Partition:
    """Split as a column ``part`` says; or as the paper, where the visits are its five rounds; else by bridge.

    Visits that were only counted look like rounds too; there the paper's split would leave most of them out.

    Examples
    --------
    >>> import rekka, polars as pl
    >>> rekka.partition_auto(rekka.simulate_transitions(300).with_columns(case=pl.lit("Deck"))).scheme
    'by bridge, 60% train, 20% validation, 20% golden, seed 20260924'

    """
    return split_lazily(_to_lazy(transitions), "auto", seed=seed).collect()


def _split_by_itself(frame: pl.LazyFrame, seed: int) -> LazyPartition:
    columns = frame.collect_schema().names()
    if "part" in columns and set(_distinct(frame, "part").drop_nulls()) <= set(PARTS):
        parts = {name: frame.filter(pl.col("part") == name).drop("part") for name in PARTS}
        return LazyPartition(**parts, scheme="as the column part says")
    if {"visit_1", "visit_2"} <= set(columns):
        visits = collect(frame.group_by("visit_1").agg(transitions=pl.len()), TABLE)
        if _are_rounds(visits):
            return _split_as_paper(_whole_visits(frame), seed)
    return _split_by_bridge(frame, SHARES, seed)


def _are_rounds(moves: pl.DataFrame) -> bool:
    """Whether the visits, of transitions counted by ``visit_1``, are the paper's five rounds."""
    late = moves.filter(pl.col("visit_1").is_in([3, 4]))["transitions"]
    rounds = {3, 4} <= set(moves["visit_1"]) <= {1, 2, 3, 4}
    return rounds and int(late.sum()) >= MOSTLY_LATE * int(moves["transitions"].sum())


def find_training(moves: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Find the transitions that a study trains on by itself, of counts by visits, and what share of them does."""
    if _are_rounds(moves):
        return moves.filter(visit_1=3, visit_2=4), 1.0
    return moves, SHARES["train"]


def choose_split(scheme: str, *, until: Any = None, seed: int = PAPER_SEED) -> Callable[[Any], Partition]:
    """Return the function that splits a dataframe: by auto, paper, bridge, or date with ``until``."""
    return lambda frame: split_lazily(_to_lazy(frame), scheme, until=until, seed=seed).collect()


def split_lazily(frame: pl.LazyFrame, scheme: str, *, until: Any = None, seed: int = PAPER_SEED) -> LazyPartition:
    """Split a table that need not be in memory; only the names of its bridges are held."""
    frame = _check_rows(frame, {"date": DATE_COLUMNS, "paper": PAPER_COLUMNS}.get(scheme, COLUMNS))
    if scheme == "date":
        return _split_by_date(frame, until, seed)
    if scheme == "paper":
        return _split_as_paper(frame, seed)
    return _split_by_itself(frame, seed) if scheme == "auto" else _split_by_bridge(frame, SHARES, seed)


def mark_parts(transitions: Any, split: Callable[[pl.DataFrame], Partition]) -> pl.DataFrame:
    """Mark each transition with its ``part``; null for those in none, such as visits 1 to 2 under the paper's."""
    frame = _check_rows(_to_lazy(transitions), COLUMNS).collect().with_row_index("place")
    parts = split(frame).rows().select("place", "part")
    return frame.join(parts, on="place", how="left", maintain_order="left").drop("place")


def number_folds(bridges: Sequence[Any], k: int) -> dict[Any, int]:
    """Fold of each bridge, in turn, in the order given: as equal in number as can be."""
    return {bridge: place % k for place, bridge in enumerate(bridges)}


def fold_bridges(transitions: Any, k: int, *, seed: int = PAPER_SEED) -> pl.Series:
    """Fold, 0 to k - 1, of each row: whole bridges, as equal in number as can be.

    Examples
    --------
    >>> import rekka
    >>> rekka.fold_bridges(rekka.simulate_transitions(100), 5).n_unique()
    5

    """
    names = _check_rows(_to_lazy(transitions), ("bridge_id",)).collect()["bridge_id"]
    bridges = order_bridges(names, seed)
    if not isinstance(k, int) or not 2 <= k <= len(bridges):
        raise BadOption(f"k is {k}; a whole number from 2 to the number of bridges ({len(bridges)}) is needed.")
    return names.replace_strict(number_folds(bridges, k), return_dtype=pl.Int64).rename("fold")


def _to_lazy(transitions: Any) -> pl.LazyFrame:
    frame: pl.DataFrame = nw.from_native(transitions, eager_only=True).to_polars()
    return frame.lazy()


def _check_rows(frame: pl.LazyFrame, columns: tuple[str, ...]) -> pl.LazyFrame:
    """Refuse a table without the columns of a split, or with a bridge that has no name."""
    there = frame.collect_schema().names()
    if missing := [name for name in columns if name not in there]:
        raise missing_columns(missing, there)
    if rows := collect(frame.select(pl.col("bridge_id").null_count()), TABLE).item():
        raise InputError(f"bridge_id is missing in {rows} rows; a split needs every name.")
    return _whole_visits(frame) if "visit_1" in columns else frame


def _whole_visits(frame: pl.LazyFrame) -> pl.LazyFrame:
    return frame.with_columns(pl.col("visit_1", "visit_2").cast(pl.Int64))


def _distinct(frame: pl.LazyFrame, name: str) -> pl.Series:
    """Each value of a column once, in no order."""
    return collect(frame.select(pl.col(name).unique()), TABLE).to_series()


def _hold_out(
    train: pl.LazyFrame, later: pl.LazyFrame, validation: float, keep_training_bridges_out: bool, seed: int
) -> tuple[pl.LazyFrame, pl.LazyFrame, str]:
    """Split later rows into validation and golden ones; also return the words for it."""
    if keep_training_bridges_out:
        later = later.join(train, on="bridge_id", how="anti", maintain_order="left")
    shares = {"validation": validation, "golden": 1 - validation}
    parts = _part_rows(later, shares, seed)
    out = ", no bridge that trained" if keep_training_bridges_out else ""
    words = f"by bridge, {validation:.0%} validation, {1 - validation:.0%} golden{out}, seed {seed}"
    return parts["validation"], parts["golden"], words


def _part_rows(frame: pl.LazyFrame, shares: Mapping[str, float], seed: int) -> dict[str, pl.LazyFrame]:
    """Rows of each part, in the order of the table; shares are of bridges."""
    names = list_bridges(frame)
    order = place_bridges(names, seed)
    key = pl.col("bridge_id")
    if len(names) > MANY_BRIDGES:
        names, key = names.hash(0), key.hash(0)
    return {part: _keep(frame, key, names, order, here) for part, here in _cut(len(names), shares)}


def _keep(frame: pl.LazyFrame, key: pl.Expr, names: pl.Series, order: Places, here: slice) -> pl.LazyFrame:
    """Rows of some bridges, in the order of the table; of most bridges, those that are not of the others."""
    most = here.stop - here.start > len(order) / 2
    others = np.concatenate([order[: here.start], order[here.stop :]]) if most else order[here]
    listed = names.gather(np.sort(others)).to_frame().lazy()
    return frame.join(
        listed, left_on=key, right_on=names.name, how="anti" if most else "semi", maintain_order="left"
    )


def list_bridges(frame: pl.LazyFrame) -> pl.Series:
    """Name of each bridge once, in no order; of very many rows some of the bridges at a time."""
    rows = collect(frame.select(pl.len()), TABLE).item()
    slices = -(-rows // ROWS_AT_ONCE)
    if slices <= 1:
        return _distinct(frame, "bridge_id")
    slice_of = pl.col("bridge_id").hash(0) % slices
    return pl.concat([_distinct(frame.filter(slice_of == number), "bridge_id") for number in range(slices)])


def _cap(frame: pl.LazyFrame, row_cap: int | None, seed: int) -> pl.LazyFrame:
    """Keep at most ``row_cap`` rows a case: whole bridges, while they fit."""
    if row_cap is None:
        return frame
    counts = collect(frame.group_by("case", "bridge_id").agg(rows=pl.len()), TABLE)
    names = counts["bridge_id"].unique()
    # in an order of its own: that of the split would cap the golden rows away
    places = names.gather(place_bridges(names, f"cap {seed}")).to_frame().with_row_index("place")
    kept = (
        counts.join(places, on="bridge_id")
        .sort("case", "place")
        .filter(pl.col("rows").cum_sum().over("case") <= row_cap)
        .select("case", "bridge_id")
    )
    return frame.join(kept.lazy(), on=["case", "bridge_id"], how="semi", maintain_order="left")
