"""Soil clean tables as agencies' exports are soiled: repairs, blanks, copies, mixed dates and letters, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

RECORDED = 0.7  # share of the repaired bridges whose repair_year is written
REPAIRED_FROM = 2  # state c, 0-based: a repair lifts every member that was there or worse to a or b
STRAY = ("-", "未点検")  # not inspected
SLASHED, COMPACT = "%Y/%-m/%-d", "%Y%m%d"  # 2014/6/1 and 20140601
FULL_WIDTH_A = 0xFF21  # code point of the full-width capital A


@dataclass(frozen=True)
class Repairs:
    """Repairs of one block: the round (0-based) that first sees each bridge's repair, 0 where there is none."""

    round: Ints

    def lift(
        self, bridge: Ints, r: int, before: Ints, after: Ints, rng: np.random.Generator
    ) -> tuple[Ints, Bools]:
        """States after round r's repairs, and which members were lifted; a lifted one is better than before."""
        lifted = (self.round[bridge] == r) & (before >= REPAIRED_FROM)
        return np.where(lifted, rng.integers(0, 2, bridge.size), after), lifted


def draw_repairs(n_bridges: int, n_rounds: int, share: float, rng: np.random.Generator) -> Repairs:
    """A share of the bridges is repaired once, before a round drawn from the second to the last."""
    when = rng.integers(1, n_rounds, n_bridges)
    return Repairs(np.where(rng.random(n_bridges) < share, when, 0))


def record_repairs(
    inventory: pl.DataFrame,
    repairs: Repairs,
    years: Ints,
    bridge: Ints,
    lifted: Bools,
    rng: np.random.Generator,
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Inventory with ``repair_year``, a year between two visits' years (n, rounds), and the counts.

    ``lifted`` (m, rounds) says which members were seen better than the time before; bridges without one were
    not repaired. Some repairs are not recorded.
    """
    moves = np.bincount(bridge, weights=lifted.sum(axis=1), minlength=len(inventory)).astype(np.int64)
    recorded = (moves > 0) & (rng.random(len(inventory)) < RECORDED)
    n, seen = np.arange(len(inventory)), np.maximum(repairs.round, 1)
    year = rng.integers(years[n, seen - 1] + 1, years[n, seen])
    column = pl.Series("repair_year", year).set(pl.Series(~recorded), None)
    counts = {
        "repaired_bridges": int((moves > 0).sum()),
        "recorded_repairs": int(recorded.sum()),
        "upward_moves": int(moves.sum()),
        "upward_moves_recorded": int(moves[recorded].sum()),
    }
    return inventory.with_columns(column), counts


def soil_blanks(
    frame: pl.DataFrame, names: Sequence[str], share: float, rng: np.random.Generator
) -> tuple[pl.DataFrame, dict[str, int]]:
    """A share of each named column left blank."""
    blanked = [frame[name].set(pl.Series(rng.random(len(frame)) < share), None) for name in names]
    counts = {f"blank_{name}": column.null_count() for name, column in zip(names, blanked, strict=True)}
    return frame.with_columns(blanked), counts


def soil_inspections(
    frame: pl.DataFrame, letters: Sequence[str], share: float, rng: np.random.Generator
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Inspections with text dates, soiled states and duplicated rows; the counts are of the rows as written.

    Where kinds meet in one state the later of upper case, full width, stray text and blank is what is written.
    A row that contradicts another on the same day repeats one with a plain letter, with another letter.
    """
    soiled, plain, letter = _soil_states(frame.with_columns(_soil_dates(frame, share, rng)), letters, share, rng)
    copied = np.flatnonzero(rng.random(len(frame)) < share)
    contradicted = np.flatnonzero((rng.random(len(frame)) < share) & plain)
    other = (letter[contradicted] + rng.integers(1, len(letters), contradicted.size)) % len(letters)
    contradiction = soiled[contradicted].with_columns(state=pl.Series(letters).gather(other))
    place = np.concatenate([np.arange(len(frame)), copied, contradicted])
    written = pl.concat([soiled, soiled[copied], contradiction])[np.argsort(place, kind="stable")]
    counts = _count(written, letters) | {
        "exact_copies": int(copied.size),
        "contradicting_rows": int(contradicted.size),
    }
    return written, counts


def _soil_dates(frame: pl.DataFrame, share: float, rng: np.random.Generator) -> pl.Expr:
    """Dates as text: a share with slashes, a share without any separator, the others ISO."""
    slashed, compact = (pl.lit(pl.Series(rng.random(len(frame)) < share)) for _ in range(2))
    date = pl.col("date").dt
    return (
        pl.when(compact)
        .then(date.to_string(COMPACT))
        .when(slashed)
        .then(date.to_string(SLASHED))
        .otherwise(date.to_string("%Y-%m-%d"))
        .alias("date")
    )


def _soil_states(
    frame: pl.DataFrame, letters: Sequence[str], share: float, rng: np.random.Generator
) -> tuple[pl.DataFrame, Bools, Ints]:
    """Frame with soiled states, which rows kept a plain letter, and the letter (0-based) each row had."""
    forms = [*letters, *_upper(letters), *_full_width(letters), *STRAY, None]
    letter = frame["state"].replace_strict(dict(zip(letters, range(len(letters)), strict=True))).to_numpy()
    upper, full, stray, blank = (rng.random(len(frame)) < share for _ in range(4))
    form = letter + len(letters) * np.select([full, upper], [2, 1], 0)
    form = np.where(stray, 3 * len(letters) + rng.integers(0, len(STRAY), len(frame)), form)
    form = np.where(blank, len(forms) - 1, form)
    return (
        frame.with_columns(pl.Series("state", forms, dtype=pl.String).gather(form)),
        form < len(letters),
        letter.astype(np.int64),
    )


def _count(written: pl.DataFrame, letters: Sequence[str]) -> dict[str, int]:
    """Soiled cells in the inspections as written, copies included."""
    state, date = pl.col("state"), pl.col("date")
    counts = written.select(
        blank_state=state.is_null().sum(),
        stray_text=state.is_in(STRAY).sum(),
        upper_case=state.is_in(_upper(letters)).sum(),
        full_width=state.is_in(_full_width(letters)).sum(),
        slashed_dates=date.str.contains("/", literal=True).sum(),
        compact_dates=date.str.contains(r"^\d{8}$").sum(),
    )
    return {name: int(value) for name, value in counts.row(0, named=True).items()}


def _upper(letters: Sequence[str]) -> list[str]:
    return [letter.upper() for letter in letters]


def _full_width(letters: Sequence[str]) -> list[str]:
    return [chr(FULL_WIDTH_A + ord(letter.upper()) - ord("A")) for letter in letters]
