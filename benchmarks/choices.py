"""Does ``--models auto`` find the right model? ``python -m benchmarks.choices``.

Each table is drawn from a known model (``simulated_histories.py``): the plain model of pairs, one violation of it,
or two. The function that fits and backtests call for one component, ``choose_case``, then chooses among the plain
model and the elements of histories, with all of the table as its records. Counted are tables for which exactly the
true elements were chosen, only some of them, or one that is not there.

A choice is appended to ``results/choices.jsonl`` as soon as it is made, some tables of each setting in turn, and a
run continues where the last one ended; a setting or rule that has changed begins anew. ``--page`` writes the table
of docs/choosing-models.md from that file. Exits with 1 if an aim is not met.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import polars as pl
from rich.console import Console

from benchmarks.reproduction_words import put_section, table, wrap
from benchmarks.simulated_histories import BEGIN, BRIDGES, NEW, OLD, Setting, draw_inventory
from benchmarks.stored_lines import Record, append_line, read_numbered
from rekka.evaluation.scores import find_wilson
from rekka.fleet import rolling
from rekka.fleet.backtest import choose_case
from rekka.fleet.backtest_rows import Cut
from rekka.fleet.backtest_scores import Settings
from rekka.forecast.forecast import ForecastOptions
from rekka.forecast.uncertainty import NONE
from rekka.model.fit import Options
from rekka.report.text import MISSING

MANY = 1000  # bridges, where BRIDGES are too few to show a violation
ROUNDS = 20
RIVALS = "by support, of all not shown to be worse by LEAST_GAIN"  # the rule of rivals, no constant of rolling.py
PLAIN_AIM, AIM = 0.95, 0.80  # share of tables with the right model: of the plain one, of one violation
DAYS = 365.25  # of a year
CASE = "component"
DIGITS = 5  # of stored figures
STORED = Path(__file__).resolve().parent / "results" / "choices.jsonl"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "choosing-models.md"
SECTION = "choices"


@dataclass(frozen=True)
class Situation:
    """What tables are drawn from, their bridges, and how many are drawn in a round.

    With ``dated`` the age is a covariate of the tables although no hazard depends on it. A ``weak`` element need
    not be found: the plain model is nearly right.
    """

    setting: Setting
    bridges: int = BRIDGES
    a_round: int = 2
    dated: bool = False
    weak: bool = False

    @property
    def title(self) -> str:
        """Name of the setting, and whether tables have the age beside it."""
        return f"{self.setting.name}, with age" if self.dated else self.setting.name

    @property
    def name(self) -> str:
        """Title, with the bridges."""
        return f"{self.title}, {self.bridges:,} bridges"

    @property
    def covariates(self) -> tuple[str, ...]:
        """Covariates of the tables."""
        return ("x", "age") if self.setting.ageing or self.dated else ("x",)

    @property
    def digest(self) -> int:
        """A number that changes where the draw or a constant of the rule does."""
        rule = (
            rolling.ELEMENTS, rolling.MOST_ORIGINS, rolling.LEAST_SPAN, rolling.FEW_ORIGINS, rolling.LEAST_GAIN,
            RIVALS,
        )  # fmt: skip
        return zlib.crc32(repr((self.setting.digest, self.bridges, self.covariates, rule)).encode())

    @property
    def elements(self) -> frozenset[str]:
        """Elements of the true model."""
        one = self.setting
        there = {
            "errors": one.error,
            "improvements": one.improvements,
            "trend": one.trend,
            "running": one.ageing,
            "frailty": one.frailty,
        }
        return frozenset(name for name, value in there.items() if value)

    @property
    def right(self) -> tuple[str, ...]:
        """Models that are right: where hazards grow with age also the plain one, with the age at the middle."""
        true = rolling.name_model(sorted(self.elements))
        return (rolling.PLAIN, true) if true == "running" else (true,)

    @property
    def aim(self) -> float | None:
        """Share of tables that should have a right model; None where there are two violations, or a weak one."""
        if rolling.PLAIN in self.right:
            return PLAIN_AIM
        return AIM if len(self.elements) == 1 and not self.weak else None


def list_situations() -> tuple[Situation, ...]:
    """What is drawn: the plain model, single violations, two at once."""
    fragile = Setting("frailty 0.5, from new, visits every 5 years", 5.0, 7, frailty=0.5, start=NEW)
    aged = Setting("frailty 0.5, from age 0-30, visits every 5 years", 5.0, 7, frailty=0.5, start=OLD)
    mended = Setting("improvements 3 % a year", 2.0, 8, improvements=0.03)
    drifting = Setting("trend -0.05 a year", 2.0, 8, trend=-0.05)
    both = Setting("errors 5 %, improvements 3 %", 2.0, 8, error=0.05, improvements=0.03)
    late = Setting("errors 5 %, trend -0.05", 2.0, 8, error=0.05, trend=-0.05)
    return (
        Situation(Setting("plain", 2.0, 8), a_round=5),
        Situation(Setting("ageing 0.03 a year, visits every 5 years", 5.0, 8, ageing=0.03)),
        Situation(Setting("errors 5 %", 2.0, 8, error=0.05)),
        Situation(Setting("errors 10 %", 2.0, 8, error=0.10)),
        Situation(Setting("errors 10 %, visits every 5 years", 5.0, 7, error=0.10)),
        Situation(Setting("improvements 0.5 % a year", 2.0, 8, improvements=0.005), weak=True),
        Situation(Setting("errors 0.5 %", 2.0, 8, error=0.005), weak=True),
        Situation(mended),
        Situation(mended, MANY),
        Situation(drifting),
        Situation(drifting, MANY),
        Situation(Setting("trend -0.1 a year", 2.0, 8, trend=-0.1)),
        Situation(fragile),
        Situation(fragile, MANY),
        Situation(aged, MANY),
        Situation(aged, MANY, a_round=1, dated=True),
        Situation(both),
        Situation(both, MANY),
        Situation(late),
        Situation(late, MANY),
    )


def draw_transitions(situation: Situation, number: int) -> pl.DataFrame:
    """Transitions of a table, improvements of any size included, with dates."""
    rows = draw_inventory(situation.setting, number, situation.bridges).rows
    later = rows["date_1"] + rows["interval_years"]
    return rows.with_columns(
        case=pl.lit(CASE),
        bridge_id=pl.format("B{}", "bridge"),
        history=pl.lit(1),
        date_1=_to_days(rows["date_1"]),
        date_2=_to_days(later),
    )


def _to_days(years: pl.Series) -> pl.Series:
    """Dates of years as floats: the same wherever a visit is found."""
    days = ((years - BEGIN) * DAYS).round().cast(pl.Int64)
    return pl.select(pl.lit(dt.date(int(BEGIN), 1, 1)) + pl.duration(days=pl.lit(days))).to_series()


def measure_table(situation: Situation, number: int) -> Record:
    """Draw a table and choose its model; a plain record of what was found."""
    clock, rows = process_time(), draw_transitions(situation, number)
    choice = choose(rows, situation.covariates)
    return {
        "setting": situation.name,
        "number": number,
        "digest": situation.digest,
        "chosen": choice.name,
        "visits": choice.tried["visits"].max(),
        "origins": choice.tried["origins"].max(),
        "rps": _short(choice.plain_rps),
        "tried": [
            [
                row["step"],
                row["model"],
                *(_short(row[name]) for name in ("difference", "low", "high")),
                row["reason"],
            ]
            for row in choice.tried.iter_rows(named=True)
            if row["than"] is not None
        ],
        "seconds": _short(process_time() - clock),
    }


def choose(rows: pl.DataFrame, covariates: Sequence[str]) -> rolling.ModelChoice:
    """Choose the model of transitions, all of them its records, as ``rekka fit --models auto`` does."""
    last = rows["date_2"].max()
    assert isinstance(last, dt.date)
    settings = Settings(Cut(last), tuple(covariates), Options(threads=1), ForecastOptions(NONE), far=True)
    return choose_case(CASE, rows, settings, None, None, lambda *_: None)


def _short(value: float | None) -> float | None:
    """The value to DIGITS; None where there is no number."""
    return float(f"{value:.{DIGITS}g}") if value is not None and np.isfinite(value) else None


class Verdict(NamedTuple):
    """Tables of a situation, and for how many of them what was chosen."""

    situation: Situation
    records: Sequence[Record]

    @property
    def chosen(self) -> Counter[str]:
        """Number of tables by model, the most frequent first."""
        return Counter(one["chosen"] for one in self.records)

    @property
    def right(self) -> int:
        """Tables for which exactly a true model was chosen."""
        return sum(self.chosen[name] for name in self.situation.right)

    @property
    def wrong(self) -> int:
        """Tables for which an element was chosen that is not there."""
        true = self.situation.elements | {rolling.PLAIN}
        return sum(many for name, many in self.chosen.items() if set(name.split(rolling.JOIN)) - true)

    @property
    def less(self) -> int:
        """Tables for which no element was chosen that is not there, and one was missed."""
        return len(self.records) - self.right - self.wrong

    @property
    def share(self) -> float:
        """Share of tables with a true model."""
        return self.right / len(self.records)

    @property
    def row(self) -> tuple[str, ...]:
        """Row of the table, under HEADER."""
        many = len(self.records)
        low, high = find_wilson(self.share, many)
        others = [f"{name} {n}" for name, n in self.chosen.most_common() if name not in self.situation.right]
        return (
            self.situation.title,
            f"{self.situation.bridges:,}",
            str(many),
            " or ".join(self.situation.right),
            f"{self.share:.0%}",
            f"{low:.0%} to {high:.0%}",
            f"{self.less / many:.0%}",
            f"{self.wrong / many:.0%}",
            ", ".join(others) or MISSING,
        )

    @property
    def failure(self) -> str | None:
        """The aim that is not met, in words."""
        aim = self.situation.aim
        if aim is None or self.share >= aim:
            return None
        return f"{self.situation.name}: {self.share:.0%}, aim {aim:.0%}"


HEADER = (
    "tables drawn with",
    "bridges",
    "tables",
    "right model",
    "chosen",
    "95 %",
    "an element missed",
    "an element too many or another",
    "chosen instead, tables",
)


def read_stored(file: Path = STORED) -> dict[str, dict[int, Record]]:
    """Records of each situation by number, without those of others than are drawn now."""
    return read_numbered(file, {situation.name: situation.digest for situation in list_situations()})


def run(situations: Sequence[Situation], rounds: int, console: Console, file: Path = STORED) -> None:
    """Choose what is not stored yet, some tables of each situation in turn."""
    stored = read_stored(file)
    for turn in range(rounds):
        for one in situations:
            for number in range(turn * one.a_round, (turn + 1) * one.a_round):
                if number in stored[one.name]:
                    continue
                record = measure_table(one, number)
                append_line(file, record)
                console.print(f"{one.name}, {number}: {record['chosen']} ({record['seconds']:.0f} s)")


def judge(stored: Mapping[str, Mapping[int, Record]]) -> list[Verdict]:
    """Verdict on each situation of which tables are stored."""
    return [Verdict(one, list(stored[one.name].values())) for one in list_situations() if stored[one.name]]


def describe(found: Sequence[Verdict]) -> str:
    """The section of the page: what was done, the table, what fails its aim."""
    misses = [one.failure for one in found if one.failure]
    aims = (
        f"Aims: the plain model in {PLAIN_AIM:.0%} of tables where it is right, the right element in {AIM:.0%} of "
        "tables drawn with exactly one; no aim was set for two, nor for one in 0.5 % of visits or years."
    )
    return "\n\n".join(
        [
            wrap(
                "Tables drawn from known models: 5 ratings, one covariate (two with age). Each bridge is visited "
                "8 times, every 2 years unless said otherwise (every 5 years: 7 times, with ageing 8). The model "
                "is chosen from all records of each table (`python -m benchmarks.choices`, stored in "
                "[choices.jsonl](../benchmarks/results/choices.jsonl))."
            ),
            table(HEADER, [one.row for one in found]),
            wrap(f"{aims} Not met: {'; '.join(misses)}." if misses else f"{aims} All are met."),
        ]
    )


def print_table(found: Sequence[Verdict], console: Console) -> None:
    """One line a situation, then what fails."""
    rows = [HEADER, *(one.row for one in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADER))]
    for row in rows:
        console.print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for one in found:
        if one.failure:
            console.print(f"NOT MET: {one.failure}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Choose what is missing, print; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.choices",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of tables; 0 prints what is stored")
    parser.add_argument("--only", default="", metavar="WORDS", help="settings whose name has these words")
    parser.add_argument("--page", action="store_true", help="write the table of docs/choosing-models.md")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    run([one for one in list_situations() if options.only in one.name], options.rounds, console)
    found = judge(read_stored())
    print_table(found, console)
    if options.page:
        put_section(PAGE, SECTION, describe(found))
    return 1 if any(one.failure for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
