"""Training, validation and golden rows, split by bridge: a function of names and a seed, on any machine.

Bridges are put in the order of a SHA-256 of seed and name, and shares are cut from that order. No random generator
is involved, so no library version can change a split, and a bridge cannot stand in two held-out parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import polars as pl

from rekka.errors import BadOption, InputError, missing_columns

PAPER_SEED = 20260924  # paper, Dataset Description
PAPER_ROW_CAP = 20_000  # paper, Dataset Description; rows of a case
PAPER_VALIDATION = 0.2  # paper, Dataset Description; share of the bridges of the later rows
PARTS = ("train", "validation", "golden")
MOSTLY_LATE = (
    0.4  # share of the rows that the paper's split must use to be chosen by itself; five full rounds: 0.5
)


@dataclass(frozen=True)
class Partition:
    """Three frames of transitions; ``scheme`` says in words how they were made."""

    train: pl.DataFrame
    validation: pl.DataFrame
    golden: pl.DataFrame
    scheme: str

    def counts(self) -> pl.DataFrame:
        """Rows of each case in each part."""
        numbers = [(pl.col("part") == name).sum().cast(pl.Int64).alias(name) for name in PARTS]
        return self.rows().group_by("case").agg(numbers).sort("case")

    def rows(self) -> pl.DataFrame:
        """All rows in one frame, with their ``part``."""
        parts = (self.train, self.validation, self.golden)
        return pl.concat(part.with_columns(part=pl.lit(name)) for part, name in zip(parts, PARTS, strict=True))


def order_bridges(names: Iterable[Any], seed: int | str) -> list[Any]:
    """Each bridge once, in an order that only its name and the seed decide."""
    return sorted(set(names), key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())


def split_bridges(names: Iterable[Any], shares: Mapping[str, float], seed: int) -> dict[Any, str]:
    """The part of each bridge; shares are of bridges, rounded so that they add up."""
    if not shares or any(not 0 <= share <= 1 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-9:
        raise BadOption(f"shares are {dict(shares)}; numbers between 0 and 1 that add up to 1 are needed.")
    bridges = order_bridges(names, seed)
    part_of: dict[Any, str] = {}
    done = 0.0
    for part, share in shares.items():
        first, done = round(done * len(bridges)), done + share
        part_of |= dict.fromkeys(bridges[first : round(done * len(bridges))], part)
    return part_of


def partition_paper(
    transitions: Any,
    *,
    seed: int = PAPER_SEED,
    row_cap: int | None = PAPER_ROW_CAP,
    keep_training_bridges_out: bool = False,
) -> Partition:
    """The paper's protocol: third-to-fourth visits train; fourth-to-fifth, split by bridge, are held out.

    The split is over all cases together, so a bridge is on one side in every case: 20 % of the bridges
    validate, 80 % are golden. Above ``row_cap`` rows a case keeps some of its bridges, whole, by name and seed.
    With ``keep_training_bridges_out`` a bridge that trained is not held out: its later rows are left out.
    """
    frame = _read(transitions, ("bridge_id", "case", "visit_1", "visit_2"))
    wanted = pl.col("visit_1").is_in([3, 4]) & (pl.col("visit_2") == pl.col("visit_1") + 1)
    frame = _cap(frame.filter(wanted), row_cap, seed)
    train, later = frame.filter(pl.col("visit_1") == 3), frame.filter(pl.col("visit_1") == 4)
    validation, golden, words = _hold_out(train, later, PAPER_VALIDATION, keep_training_bridges_out, seed)
    return Partition(train, validation, golden, f"visits 3 to 4 train; visits 4 to 5 {words}")


def partition_by_date(
    transitions: Any,
    *,
    until: Any,
    validation: float = PAPER_VALIDATION,
    seed: int = PAPER_SEED,
    keep_training_bridges_out: bool = False,
) -> Partition:
    """Rows whose second visit is not after ``until`` train; later ones, split by bridge, are held out.

    A row that begins before ``until`` and ends after it is a later row: its end was not known then.
    With ``keep_training_bridges_out`` a bridge that trained is not held out: its later rows are left out.
    """
    frame = _read(transitions, ("bridge_id", "case", "date_2"))
    train, later = frame.filter(pl.col("date_2") <= until), frame.filter(pl.col("date_2") > until)
    validated, golden, words = _hold_out(train, later, validation, keep_training_bridges_out, seed)
    return Partition(train, validated, golden, f"second visits up to {until} train; later ones {words}")


def partition_by_bridge(
    transitions: Any, *, train: float = 0.6, validation: float = 0.2, golden: float = 0.2, seed: int = PAPER_SEED
) -> Partition:
    """By bridge alone: every row of a bridge is in one part. The shares are of bridges."""
    frame = _read(transitions, ("bridge_id", "case"))
    shares = {"train": train, "validation": validation, "golden": golden}
    part = _part_column(frame, shares, seed)
    words = ", ".join(f"{share:.0%} {name}" for name, share in shares.items())
    parts = {name: frame.filter(part == name) for name in PARTS}
    return Partition(**parts, scheme=f"by bridge, {words}, seed {seed}")


def partition_auto(transitions: Any, *, seed: int = PAPER_SEED) -> Partition:
    """As its column ``part`` says; or the paper's, where the visits are its five rounds; otherwise by bridge.

    Visits that were only counted look like rounds too; there the paper's split would leave most of them out.
    """
    frame = _read(transitions, ("bridge_id", "case"))
    if "part" in frame.columns and set(frame["part"].drop_nulls()) <= set(PARTS):
        parts = {name: frame.filter(pl.col("part") == name).drop("part") for name in PARTS}
        return Partition(**parts, scheme="as the column part says")
    rounds = set(frame["visit_1"].unique()) if {"visit_1", "visit_2"} <= set(frame.columns) else set()
    if {3, 4} <= rounds <= {1, 2, 3, 4}:
        late = frame["visit_1"].is_in([3, 4]).mean()
        if isinstance(late, float) and late >= MOSTLY_LATE:
            return partition_paper(frame, seed=seed)
    return partition_by_bridge(frame, seed=seed)


def choose_split(scheme: str, *, until: Any = None, seed: int = PAPER_SEED) -> Callable[[pl.DataFrame], Partition]:
    """The function that splits: auto, paper, bridge, or date with ``until``."""
    if scheme == "date":
        return partial(partition_by_date, until=until, seed=seed)
    schemes = {"auto": partition_auto, "paper": partition_paper, "bridge": partition_by_bridge}
    return partial(schemes[scheme], seed=seed)


def mark_parts(transitions: Any, split: Callable[[pl.DataFrame], Partition]) -> pl.DataFrame:
    """The transitions with their ``part``; null for those in none, such as visits 1 to 2 under the paper's."""
    frame = _read(transitions, ("bridge_id", "case")).with_row_index("place")
    parts = split(frame).rows().select("place", "part")
    return frame.join(parts, on="place", how="left", maintain_order="left").drop("place")


def number_folds(bridges: Sequence[Any], k: int) -> dict[Any, int]:
    """The fold of each bridge, in turn, in the order given: as equal in number as can be."""
    return {bridge: place % k for place, bridge in enumerate(bridges)}


def fold_bridges(transitions: Any, k: int, *, seed: int = PAPER_SEED) -> pl.Series:
    """The fold, 0 to k - 1, of each row: whole bridges, as equal in number as can be."""
    frame = _read(transitions, ("bridge_id",))
    bridges = order_bridges(frame["bridge_id"], seed)
    if not isinstance(k, int) or not 2 <= k <= len(bridges):
        raise BadOption(f"k is {k}; a whole number from 2 to the number of bridges ({len(bridges)}) is needed.")
    fold = number_folds(bridges, k)
    return frame["bridge_id"].replace_strict(fold, return_dtype=pl.Int64).rename("fold")


def _read(transitions: Any, columns: tuple[str, ...]) -> pl.DataFrame:
    frame: pl.DataFrame = nw.from_native(transitions, eager_only=True).to_polars()
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise missing_columns(missing, frame.columns)
    if frame["bridge_id"].null_count():
        raise InputError(
            f"bridge_id is missing in {frame['bridge_id'].null_count()} rows; a split needs every name."
        )
    return frame.with_columns(pl.col(name).cast(pl.Int64) for name in columns if name.startswith("visit_"))


def _hold_out(
    train: pl.DataFrame, later: pl.DataFrame, validation: float, keep_training_bridges_out: bool, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame, str]:
    """Validation and golden rows of the later ones, and the words for it."""
    if keep_training_bridges_out:
        later = later.join(train, on="bridge_id", how="anti", maintain_order="left")
    shares = {"validation": validation, "golden": 1 - validation}
    part = _part_column(later, shares, seed)
    out = ", no bridge that trained" if keep_training_bridges_out else ""
    words = f"by bridge, {validation:.0%} validation, {1 - validation:.0%} golden{out}, seed {seed}"
    return later.filter(part == "validation"), later.filter(part == "golden"), words


def _part_column(frame: pl.DataFrame, shares: Mapping[str, float], seed: int) -> pl.Series:
    part_of = split_bridges(frame["bridge_id"], shares, seed)
    return frame["bridge_id"].replace_strict(part_of, return_dtype=pl.String)


def _cap(frame: pl.DataFrame, row_cap: int | None, seed: int) -> pl.DataFrame:
    """At most ``row_cap`` rows a case: whole bridges, while they fit."""
    if row_cap is None:
        return frame
    # in an order of its own: that of the split would cap the golden rows away
    places = {bridge: place for place, bridge in enumerate(order_bridges(frame["bridge_id"], f"cap {seed}"))}
    kept = (
        frame.group_by("case", "bridge_id")
        .len()
        .with_columns(place=pl.col("bridge_id").replace_strict(places, return_dtype=pl.Int64))
        .sort("case", "place")
        .filter(pl.col("len").cum_sum().over("case") <= row_cap)
    )
    return frame.join(kept, on=["case", "bridge_id"], how="semi", maintain_order="left")
