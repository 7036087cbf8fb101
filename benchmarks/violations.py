"""Do the tests of assumptions find what is wrong, and nothing else? ``python -m benchmarks.violations``.

Each inventory is drawn from a setting (``simulated_histories.py``), paired with improvements by one rating kept,
fitted by the model of pairs, which leaves them out, and tested (``find_violations``). Counted are the inventories
in which each assumption is found to be contradicted: power where the setting breaks it, false alarms where it does
not. Where hazards grow with age the fit takes the age at the start of an interval, as the paper does.

A result is appended to ``results/violations.jsonl`` as soon as it is there, and a run continues where the last one
ended; a setting that has changed begins anew. ``--page`` writes the table of docs/model.md from that file. Exits
with 1 if an aim is not met.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import polars as pl
from rich.console import Console
from scipy import stats

from benchmarks import simulated_histories
from benchmarks.reproduction_words import put_section, table, wrap
from benchmarks.simulated_histories import NEW, OLD, Setting, draw_inventory
from benchmarks.stored_lines import Record, append_line, read_numbered
from rekka import ExponentialHazardMarkovModel
from rekka.core.language import MISSING
from rekka.evaluation.violations import CLOCK, ERRORS, FRAILTY, IMPROVEMENTS, LEVEL, PAST, TREND

SETS, PLAIN_SETS = 200, 500  # inventories of a setting; of one in which nothing is wrong
BRIDGES, FEW, MANY = 500, 200, 1000
POWER = 0.9
ALARM_LEVEL = 0.99  # of the binomial range of false alarms
NAMES = (ERRORS, IMPROVEMENTS, FRAILTY, TREND, CLOCK, PAST)
STORED = Path(__file__).with_name("results") / "violations.jsonl"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "model.md"
SECTION = "violations"


@dataclass(frozen=True)
class Case:
    """A setting, the number of its bridges, the covariates of the fit, and the assumption that it breaks."""

    setting: Setting
    wrong: str = ""
    bridges: int = BRIDGES
    covariates: tuple[str, ...] = ("x",)

    @property
    def name(self) -> str:
        """The setting in words."""
        bridges = f", {self.bridges:,} bridges" if self.bridges != BRIDGES else ""
        return f"{self.setting.name}{bridges}{'' if self.covariates else ', no covariates'}"

    @property
    def digest(self) -> int:
        """A number that changes where the draw or the model that is fitted does."""
        return zlib.crc32(repr((self.setting.digest, self.bridges, self.covariates)).encode())

    @property
    def sets(self) -> int:
        """Number of inventories."""
        return SETS if self.wrong else PLAIN_SETS


def list_cases() -> Iterator[Case]:
    """What is simulated: first where nothing is wrong."""
    gaps = ((1.0, 8), (2.0, 8), (5.0, 7))
    for gap, visits in gaps:
        plain = Setting(f"plain, gap {gap:g}", gap, visits)
        yield from (Case(plain, bridges=bridges) for bridges in (FEW, BRIDGES, MANY))
        yield Case(plain, covariates=())
    for error in (0.05, 0.10):
        for gap, visits in gaps[1:]:
            yield Case(Setting(f"errors {100 * error:g} %, gap {gap:g}", gap, visits, error=error), ERRORS)
    yield Case(Setting("improvements 3 %, gap 2", 2.0, 8, improvements=0.03), IMPROVEMENTS)
    for start, words in ((NEW, "from new"), (OLD, "from age 0-30")):
        yield Case(Setting(f"frailty 0.5, {words}", 5.0, 7, frailty=0.5, start=start), FRAILTY)
    yield Case(Setting("trend -0.05, gap 2", 2.0, 8, trend=-0.05), TREND)
    for gap in (1.0, 2.0, 5.0):
        setting = Setting(f"ageing 0.03, gap {gap:g}", gap, 8, ageing=0.03)
        yield Case(setting, CLOCK, covariates=("x", "age"))


def measure(case: Case, number: int) -> Record:
    """Draw one inventory, fit the pairs, test; a plain record of what was found."""
    effect = simulated_histories.EFFECT if case.covariates else 0.0  # without x in the fit it must not act
    with patch.object(simulated_histories, "EFFECT", effect):
        rows = draw_inventory(case.setting, number, case.bridges).rows
    visit = pl.int_range(pl.len()).over("bridge")
    rows = rows.with_columns(bridge_id="bridge", history=1, visit_1=visit, visit_2=visit + 1)
    fitted = rows.filter(pl.col("state_2") >= pl.col("state_1"))
    clock = "start" if case.setting.ageing else "middle"
    model = ExponentialHazardMarkovModel(covariates=list(case.covariates), clock=clock, threads=1)
    model.fit(fitted, fitted["state_2"], groups=fitted["bridge_id"])
    tests = model.find_violations(rows)
    return {
        "case": case.name,
        "number": number,
        "digest": case.digest,
        "certified": model.certificate_.certified,
        "adjusted": {one.name: float(f"{one.adjusted:.3g}") for one in tests if one.adjusted is not None},
        "untested": {one.name: one.reason["say"].rpartition(".")[2] for one in tests if one.reason is not None},
    }


def read_stored(file: Path = STORED) -> dict[str, dict[int, Record]]:
    """Records of each case by number, without those of cases that have changed and half-written lines."""
    return read_numbered(file, {case.name: case.digest for case in list_cases()}, "case")


def run(cases: Sequence[Case], most: int, console: Console, file: Path = STORED) -> None:
    """Measure what is not stored yet."""
    stored = read_stored(file)
    for case in cases:
        numbers = [number for number in range(min(case.sets, most)) if number not in stored[case.name]]
        for number in numbers:
            append_line(file, measure(case, number))
        if numbers:
            console.print(f"{case.name}: {len(stored[case.name]) + len(numbers)} inventories")


@dataclass(frozen=True)
class Counted:
    """The inventories of a case, and in how many each assumption is found to be contradicted."""

    case: Case
    records: Sequence[Record]

    def found(self, name: str) -> int:
        """Inventories in which one assumption is contradicted."""
        return sum(one["adjusted"].get(name, 1.0) <= LEVEL for one in self.records)

    @property
    def any(self) -> int:
        """Inventories in which some assumption is contradicted."""
        return sum(min(one["adjusted"].values(), default=1.0) <= LEVEL for one in self.records)

    @property
    def first(self) -> int:
        """Inventories in which the assumption that does not hold has the smallest p-value of all."""
        return sum(
            self.case.wrong in one["adjusted"]
            and one["adjusted"][self.case.wrong] <= min(LEVEL, *one["adjusted"].values())
            for one in self.records
        )

    @property
    def noted(self) -> float:
        """Share of the inventories in which the reason for no test of the clock names an error."""
        return sum(one["untested"].get(CLOCK) == "same_intervals" for one in self.records) / len(self.records)

    def share(self, name: str) -> str:
        """Share of the inventories, a dash where the test was made in none."""
        if not any(name in one["adjusted"] for one in self.records):
            return MISSING
        return f"{self.found(name) / len(self.records):.1%}"

    def fails(self) -> Iterator[str]:
        """Aims that are not met, in words."""
        n = len(self.records)
        if self.case.wrong == CLOCK:
            return
        if self.case.wrong:
            if self.found(self.case.wrong) < POWER * n:
                yield f"{self.case.name}: found in {self.found(self.case.wrong) / n:.0%}"
        elif self.any > stats.binom.ppf(ALARM_LEVEL, n, LEVEL):
            yield f"{self.case.name}: false alarms in {self.any / n:.1%}"


def collect(stored: Mapping[str, Mapping[int, Record]]) -> list[Counted]:
    """Counts of the cases that were measured."""
    found = (Counted(case, [one for _, one in sorted(stored[case.name].items())]) for case in list_cases())
    return [one for one in found if one.records]


HEADER = ("setting", "inventories", "any", *NAMES, "right one first")


def tabulate(found: Sequence[Counted]) -> list[tuple[str, ...]]:
    """Rows of the table, under HEADER; what the setting breaks is set in bold."""
    rows = []
    for one in found:
        n, wrong = len(one.records), one.case.wrong
        shares = [f"**{one.share(name)}**" if name == wrong else one.share(name) for name in NAMES]
        first = f"{one.first / n:.0%}" if wrong not in ("", CLOCK) else ""
        rows.append((one.case.name, str(n), f"{one.any / n:.1%}", *shares, first))
    return rows


def describe(found: Sequence[Counted]) -> str:
    """The section of the page: what was done, the table, what fails its aim."""
    parts = [
        wrap(
            f"Simulated inventories of {BRIDGES} bridges, unless said otherwise, with 7 or 8 visits each, fitted "
            "as pairs (`python -m benchmarks.violations`, stored in "
            "[violations.jsonl](../benchmarks/results/violations.jsonl)): the share of inventories in which each "
            f"test contradicts its assumption, at {100 * LEVEL:g} % for all tests of an inventory together. Bold: "
            "what the setting breaks. A dash: not tested. The last column says how often the smallest p-value is "
            "that of what is wrong."
        ),
        table(HEADER, tabulate(found)),
    ]
    misses = [words for one in found for words in one.fails()]
    aims = (
        f"Aims: where nothing is wrong, findings within the {ALARM_LEVEL:.0%} binomial limit of "
        f"{100 * LEVEL:g} %; what is wrong found in {POWER:.0%} of inventories, ageing apart."
    )
    parts.append(wrap(f"{aims} Not met: {'; '.join(misses)}." if misses else f"{aims} All are met."))
    noted = [f"{one.noted:.0%} (gap {one.case.setting.gap:g})" for one in found if one.case.wrong == CLOCK]
    if noted:
        parts.append(
            wrap(
                "Ageing, the age taken at the start of the interval: no test is made. The share of inventories in "
                "which the reason says how far the fitted hazards are off, and names `--clock running`: "
                f"{', '.join(noted)}. In the others they are off by less than 5 %."
            )
        )
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, print; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.violations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--sets", type=int, default=PLAIN_SETS, help="at most, of each setting; 0 prints what is stored"
    )
    parser.add_argument("--only", default="", metavar="WORDS", help="settings whose name has these words")
    parser.add_argument("--page", action="store_true", help="write the table of docs/model.md")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    run([case for case in list_cases() if options.only in case.name], options.sets, console)
    found = collect(read_stored())
    for row in (HEADER, *tabulate(found)):
        console.print("  ".join(row))
    failures = [words for one in found for words in one.fails()]
    for words in failures:
        console.print(f"NOT MET: {words}")
    if options.page:
        put_section(PAGE, SECTION, describe(found))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
