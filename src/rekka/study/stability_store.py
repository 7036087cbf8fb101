"""Draws as they are made: kept in memory, or in a run folder, each block written whole before the next is begun.

stability/draws-SEED/   a file for each block of draws, sealed with its own SHA-256 and marked with the run
stability/*.csv         tables of what was asked for last

A block that is damaged, or of another run or seed, is made again. One that holds fewer draws than are wanted is
added to; one that holds more is left as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import polars as pl

from rekka.core.errors import DamagedFile
from rekka.core.files import make_folder, remove_unfinished
from rekka.core.folders import LOG
from rekka.core.seals import read_sealed, write_sealed
from rekka.core.sheets import write_csv
from rekka.study.records import add_line
from rekka.study.stability_draws import SCHEMA

STABILITY = "stability"
_DRAWS = "rekka-draws"


class Block(NamedTuple):
    """A place for draws of one kind of a case under a preset, from number ``first`` on."""

    preset: str
    case: str
    kind: str
    first: int


class Drawn(Protocol):
    """What is needed of the place draws are kept in."""

    def take(self, block: Block) -> pl.DataFrame:
        """The draws of a block that are there."""

    def keep(self, block: Block, draws: pl.DataFrame) -> None:
        """All draws of a block, old and new."""

    def note(self, line: str) -> None:
        """Keep a line of the log."""


class DrawnInMemory:
    """Draws in memory only."""

    def __init__(self) -> None:
        self._blocks: dict[Block, pl.DataFrame] = {}

    def take(self, block: Block) -> pl.DataFrame:
        """The draws of a block that are there."""
        return self._blocks.get(block, pl.DataFrame(schema=SCHEMA))

    def keep(self, block: Block, draws: pl.DataFrame) -> None:
        """All draws of a block, old and new."""
        self._blocks[block] = draws

    def note(self, line: str) -> None:
        """Nothing to write to."""


class DrawnInFiles:
    """Draws in a run folder, held by the caller. ``run`` marks the run; cases are numbered as they come."""

    def __init__(self, folder: Path, run: str, seed: int, cases: tuple[str, ...]) -> None:
        self.path, self._log = folder / STABILITY, folder / LOG
        self.mark: list[str | int] = [run, seed]
        self._draws = self.path / f"draws-{seed}"
        self._numbers = {case: number for number, case in enumerate(cases, start=1)}
        make_folder(self._draws)
        remove_unfinished([self.path, self._draws])

    def take(self, block: Block) -> pl.DataFrame:
        """The draws of a block that are there; none where its file is not whole or not of this run."""
        file = self._file(block)
        if not file.exists():
            return pl.DataFrame(schema=SCHEMA)
        try:
            found, draws = _read_block(file, self.mark)
            if found != block:
                raise DamagedFile(f"{file.name} is of another block.", file=str(file))
        except DamagedFile:
            self.note(f"made again: {file.name} is not whole, or not of this run")
            return pl.DataFrame(schema=SCHEMA)
        return draws

    def keep(self, block: Block, draws: pl.DataFrame) -> None:
        """Write a block whole."""
        body = {"run": self.mark, "block": list(block), "draws": draws.to_dict(as_series=False)}
        write_sealed(self._file(block), _DRAWS, body)

    def write_tables(self, tables: Mapping[str, pl.DataFrame]) -> None:
        """Tables for people, as a study's are."""
        for name, table in tables.items():
            write_csv(self.path / f"{name}.csv", table)

    def note(self, line: str) -> None:
        """Add a line to the run's log."""
        add_line(self._log, f"stability: {line}")

    def _file(self, block: Block) -> Path:
        """The case by its number: a name may hold what no file's name can."""
        number = self._numbers[block.case]
        return self._draws / f"{number:03d}-{block.preset}-{block.kind}-{block.first:05d}.json"


def find_seeds(folder: Path) -> list[int]:
    """The seeds of the draws in a run folder."""
    names = (path.name.removeprefix("draws-") for path in (folder / STABILITY).glob("draws-*"))
    return sorted(int(name) for name in names if name.isdecimal())


def read_draws(folder: Path, run: str, seed: int) -> list[tuple[Block, pl.DataFrame]]:
    """The blocks of draws that are whole and of this run, as they are; nothing is written."""
    found = []
    for file in sorted((folder / STABILITY / f"draws-{seed}").glob("*.json")):
        with contextlib.suppress(DamagedFile):  # made again when stability is asked for again
            found.append(_read_block(file, [run, seed]))
    return found


def _read_block(file: Path, mark: list[str | int]) -> tuple[Block, pl.DataFrame]:
    body = read_sealed(file, _DRAWS)
    try:
        if [body["run"], list(body["draws"])] != [mark, list(SCHEMA)]:
            raise DamagedFile(f"{file.name} is of another run.", file=str(file))
        return Block(*body["block"]), pl.DataFrame(body["draws"], schema=SCHEMA)
    except (KeyError, TypeError):
        raise DamagedFile(f"{file.name} is not as it was written.", file=str(file)) from None
