"""Files of an inventory's forecast in a folder: all of them whole, or none.

members.parquet or .csv    a row for each member, by risk
years.parquet or .csv      a row for each member and year
forecast.xlsx              both, with the totals and notes, in one workbook, in place of the two
details.parquet            what a page shows of each member: ratings found and to come, what drives its hazard
network.csv                the totals, by case, year and state
set_aside.csv              who was not forecast, and why
whatif.csv                 where members are repaired: the totals with and without, and their difference
whatif_members.csv         the repaired members, without and with their repair
forecast.json              options, totals and first risks: see document. Written last

All is written beside its place first. The years come some thousand members at a time, and are never held together.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from rekka.core.errors import BadOption, bad_option
from rekka.core.files import (
    flush_file,
    is_unfinished,
    move_file,
    naming,
    remove_file,
    write_text,
    write_whole,
)
from rekka.core.folders import LOCK, PLAN, hold
from rekka.core.sheets import LARGEST_SHEET, guard_table, to_parquet, write_csv
from rekka.fleet.document import FORECAST, ForecastFile
from rekka.fleet.eligibility import REASON
from rekka.fleet.inventory import Fleet
from rekka.fleet.tables import MEANING, write_workbook
from rekka.fleet.what_if import WhatIf

PARQUET, CSV, EXCEL = "parquet", "csv", "xlsx"
FORMATS = (PARQUET, CSV, EXCEL)
WORKBOOK, DETAILS = "forecast.xlsx", "details.parquet"
MARK = b'"rekka-forecast"'  # at the head of every forecast.json
HEAD = 200  # bytes in which it stands
TABLES = {PARQUET: ("members.parquet", "years.parquet"), CSV: ("members.csv", "years.csv"), EXCEL: (WORKBOOK,)}
WHAT_IF = ("whatif.csv", "whatif_members.csv")
OWN = tuple(dict.fromkeys([*sum(TABLES.values(), ()), "network.csv", "set_aside.csv", DETAILS, *WHAT_IF]))


def choose_format(asked: str | None, rows: int) -> str:
    """Choose the format: as asked; else CSV, or Parquet where a sheet would not hold the rows of the years."""
    if asked is None:
        return CSV if rows <= LARGEST_SHEET else PARQUET
    if asked not in FORMATS:
        raise bad_option("format", asked, FORMATS)
    if asked == EXCEL and rows > LARGEST_SHEET:
        raise BadOption(
            f"The years of all members are {rows:,} rows, and an Excel sheet has room for {LARGEST_SHEET:,}. Use "
            "--format parquet, or fewer --years.",
            option="format",
            value=asked,
        )
    return asked


def list_files(form: str, *, details: bool = False, what_if: bool = False) -> tuple[str, ...]:
    """Names of the files of a forecast, with or without details of its members and repaired members."""
    more = [*([DETAILS] if details else []), *(WHAT_IF if what_if else [])]
    return (*TABLES[form], "network.csv", "set_aside.csv", *more, FORECAST)


def refuse_place(folder: Path) -> None:
    """Refuse to write over files that are no earlier forecast, or into a run folder."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BadOption(f"{folder.name} is a file; a folder is needed.", folder=str(folder))
    if (folder / PLAN).exists():
        raise BadOption(
            f"{folder.name} is a run folder. Choose a folder for the forecast, such as {folder.name}/forecast.",
            folder=str(folder),
        )
    if is_forecast(folder):
        return
    for name in (*OWN, FORECAST):
        if (folder / name).exists():
            raise BadOption(
                f"{folder.name} has a file {name} that is no forecast of rekka's. Choose another folder (--out).",
                folder=str(folder),
            )


def is_forecast(folder: Path) -> bool:
    """Whether a folder holds a forecast."""
    file = folder / FORECAST
    return file.is_file() and MARK in file.read_bytes()[:HEAD]


class Writer:
    """Writer of a forecast into a folder: ``add_years`` as they come, then ``finish``, once.

    Years are kept in Parquet files in a scratch folder, ``place``, until all are there.
    """

    def __init__(self, folder: Path, place: Path, form: str) -> None:
        self.folder, self.form, self._place = folder, form, place
        self._largest = folder / TABLES[form][-1]  # the file of the years
        self._parts, self._number = place / "years", 0
        with naming(self._largest):
            self._parts.mkdir()

    def add_years(self, rows: pl.DataFrame) -> None:
        """Keep rows of some members and years."""
        with naming(self._largest):
            rows.write_parquet(self._parts / f"{self._number:06d}.parquet", compression="lz4")
        self._number += 1

    def finish(self, fleet: Fleet, document: ForecastFile, what_if: WhatIf | None = None) -> tuple[Path, ...]:
        """Write all files, and move them into their place."""
        # not by a pattern: the folder's own name may have brackets
        years, place = pl.scan_parquet(sorted(self._parts.iterdir()), glob=False), self._place
        with naming(self._largest):
            if self.form == EXCEL:
                sheets = {"members": fleet.members, "years": years.collect(), "network": fleet.network}
                write_workbook(place / WORKBOOK, sheets, list_notes(document))
            elif self.form == CSV:
                guard_table(years).sink_csv(place / self._largest.name, include_bom=True)
            else:
                years.sink_parquet(place / self._largest.name)
        tables = {"network.csv": fleet.network, "set_aside.csv": tabulate_aside(fleet)}
        if what_if is not None:
            tables |= dict(zip(WHAT_IF, (what_if.network, what_if.members), strict=True))
        if self.form == PARQUET:
            with naming(self.folder / TABLES[PARQUET][0]):
                write_whole(place / TABLES[PARQUET][0], to_parquet(fleet.members))
        elif self.form == CSV:
            tables[TABLES[CSV][0]] = fleet.members
        if fleet.details is not None:
            with naming(self.folder / DETAILS):
                write_whole(place / DETAILS, to_parquet(fleet.details))
        for name, table in tables.items():
            with naming(self.folder / name):
                write_csv(place / name, table)
        with naming(self.folder / FORECAST):
            write_text(place / FORECAST, document.model_dump_json(indent=1) + "\n")
        more = {"details": fleet.details is not None, "what_if": what_if is not None}
        return self._move(list_files(self.form, **more))

    def _move(self, names: tuple[str, ...]) -> tuple[Path, ...]:
        """Move the files into their place, forecast.json last; then an earlier forecast's other files go.

        At every moment each file is the old one or the new one, whole. Where one cannot be moved, those before it
        are put back, if the disk can have two names for a file.
        """
        for name in names:
            with naming(self.folder / name):
                flush_file(self._place / name)
        earlier = self._place / "earlier"
        earlier.mkdir()
        new = [name for name in names if not (self.folder / name).exists()]
        for name in names:
            with contextlib.suppress(OSError):  # there is none, or no second name for it on this disk
                os.link(self.folder / name, earlier / name)
        try:
            for name in names:
                with naming(self.folder / name):
                    move_file(self._place / name, self.folder / name)
        except BaseException:
            self._put_back(earlier, new)
            raise
        for name in OWN:
            if name not in names:
                remove_file(self.folder / name)
        return tuple(self.folder / name for name in names)

    def _put_back(self, earlier: Path, new: Sequence[str]) -> None:
        """Undo the moves: the earlier files come back, and those that had none before them go."""
        with contextlib.suppress(OSError):  # the disk may be gone; the first error is the one to tell
            for file in earlier.iterdir():
                move_file(file, self.folder / file.name)
            for name in new:
                (self.folder / name).unlink(missing_ok=True)


@contextmanager
def open_folder(folder: Path, form: str) -> Iterator[Writer]:
    """Open a folder to write a forecast into, made if need be; without ``finish`` it is left as it was."""
    refuse_place(folder)
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        with hold(folder):
            for old in folder.iterdir():
                if is_unfinished(old) and old.is_dir():
                    shutil.rmtree(old)
            place = folder / f"forecast.{os.getpid()}.unfinished"
            place.mkdir()
            try:
                yield Writer(folder, place, form)
            finally:
                shutil.rmtree(place, ignore_errors=True)
    finally:
        if made and not is_forecast(folder):
            _take_back(folder, made)


def _take_back(folder: Path, made: list[Path]) -> None:
    """Remove the folders that were made in vain."""
    with contextlib.suppress(OSError):  # not empty, or still open
        (folder / LOCK).unlink(missing_ok=True)
        for one in made:
            one.rmdir()


def list_notes(document: ForecastFile) -> list[tuple[str, str]]:
    """Notes for a reader of the tables, each with its subject; the meanings of the columns come last."""
    models = [
        (f"model of {one.case}", f"{one.file}; {one.verdict}; threshold {one.ratings.or_worse(one.threshold)}")
        for one in document.models
    ]
    return [
        *([("NOT CERTIFIED", document.watermark)] if document.watermark else []),
        *(("TEST OF FIT", one.misfit) for one in document.models if one.misfit is not None),
        ("inventory", f"{document.inventory}: {document.members:,} members forecast"),
        ("year 0", str(document.base or "when each member was seen")),
        *models,
        *(("note", note) for note in document.notes),
        *(("understood", note) for note in document.understood),
        *((f"set aside ({one.what})", f"{one.reason}: {one.count:,}") for one in document.aside),
        *((f"remark ({one.case})", f"{one.remark}: {one.count:,}") for one in document.remarks),
        *((f"column {name}", meaning) for name, meaning in MEANING.items()),
    ]


def tabulate_aside(fleet: Fleet) -> pl.DataFrame:
    """Table of excluded members; records excluded in reading come by reason, with the first rows."""
    own = fleet.eligible.aside.with_columns(pl.lit(1, pl.Int64).alias("count"), pl.lit("members").alias("what"))
    read = fleet.eligible.members.aside.rename({"rows": "first_rows"})
    table = pl.concat([own, read], how="diagonal_relaxed")
    order = [*(name for name in table.columns if name not in (REASON, "count", "what", "first_rows")), REASON]
    return table.select(*order, "count", "what", "first_rows")
