"""Are models of histories right where their assumptions hold? ``python -m benchmarks.histories_coverage``.

Each inventory is drawn from exactly the model (``simulated_histories.py``), fitted by it and, with improvements
left out, by the model of pairs. Compared with the truth: hazards, 95 % intervals of all parameters, and the
forecast of a bridge that was still rated 1 at each visit up to year 20. Fits without a certificate have no
intervals: they are counted and left out. So are the intervals of a parameter at its boundary, which has none.

A fit is appended to ``results/histories_coverage.jsonl`` as soon as it is done, and a run continues where the last
one ended; a setting that has changed begins anew. ``--page`` writes the table of docs/histories.md from that file.
Exits with 1 if an aim is not met.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from scipy import stats

from benchmarks.reproduction_words import put_section, show_range, table, wrap
from benchmarks.simulated_histories import (
    AGE,
    AHEAD,
    BRIDGES,
    ORIGIN,
    POOR,
    RATES,
    Setting,
    World,
    draw_inventory,
    forecast_poor,
    list_settings,
)
from benchmarks.stored_lines import Record, append_line, read_numbered
from rekka import ExponentialHazardMarkovModel

Array = NDArray[np.float64]

SETS, BLOCK = 200, 20  # inventories of a setting; those of one setting that are fitted before the next one's turn
LEVEL, LIMITS = 0.95, (0.93, 0.97)
CELL_LEVEL = 0.99  # of the binomial range of one parameter's share
RATIO = 0.05  # by which a mean hazard may differ from the truth
FORECAST_ERRORS = 3.0  # standard errors by which the mean forecast may differ from the truth ...
FORECAST_BIAS = 0.01  # ... or by so much: the mean of a curved function of estimates is not that of its truth
DIGITS = 5  # of stored figures
HISTORIES, PAIRS = "histories", "pairs"
STORED = Path(__file__).resolve().parent / "results" / "histories_coverage.jsonl"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "histories.md"
SECTION = "histories_coverage"


def measure_inventory(setting: Setting, number: int, bridges: int = BRIDGES) -> Record:
    """Draw one inventory, fit both models, forecast; a plain record of what was found."""
    clock = perf_counter()
    rows, last = draw_inventory(setting, number, bridges)
    model = setting.model().fit(rows, rows["state_2"], histories=rows["bridge"], groups=rows["bridge"])
    pairs = rows.filter(pl.col("state_2") >= pl.col("state_1"))
    simple = setting.pair_model().fit(pairs, pairs["state_2"], groups=pairs["bridge"])
    return {
        "setting": setting.name,
        "number": number,
        "digest": setting.digest,
        "last": round(last, 3),
        "forecast": _short(forecast_poor(setting.world(last), setting.gap)),
        HISTORIES: _describe(model, setting, list(setting.truth(last))),
        PAIRS: _describe(simple, setting, [name for name in setting.truth(last) if " of state " in name]),
        "seconds": _short(perf_counter() - clock),
    }


def _describe(model: ExponentialHazardMarkovModel, setting: Setting, names: Sequence[str]) -> Record:
    """Estimates and ends of intervals in the order of the true parameters, and the forecast."""
    found = model.summary(LEVEL)
    terms = zip(found["state"].to_list(), found["term"].to_list(), strict=True)
    own = [term if state is None else f"{term} of state {state}" for state, term in terms]
    if own != list(names):
        raise ValueError(f"{setting.name}: the fit has {own}, the truth {list(names)}.")
    columns = {name: [_short(v) for v in found[name].to_list()] for name in ("estimate", "ci_low", "ci_high")}
    certificate = model.certificate_
    forecast = _short(forecast_poor(World.of(model), setting.gap))
    return {
        "certified": certificate.certified,
        "reasons": list(certificate.reasons),
        "forecast": forecast,
    } | columns


def _short(value: float | None) -> float | None:
    """The value to DIGITS; None where there is no number."""
    return float(f"{value:.{DIGITS}g}") if value is not None and np.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class Coverage:
    """What the inventories of a setting gave with one model: certified fits alone."""

    setting: Setting
    kind: str
    records: Sequence[Record]

    @cached_property
    def certified(self) -> list[Record]:
        """Records whose fit is certified."""
        return [one for one in self.records if one[self.kind]["certified"]]

    @cached_property
    def names(self) -> list[str]:
        """Parameters, in the order of the estimates."""
        every = list(self.setting.truth(0.0))
        return every if self.kind == HISTORIES else [name for name in every if " of state " in name]

    @cached_property
    def truth(self) -> Array:
        """True parameters (fits, parameters); NaN where none is to be covered."""
        values = [self.setting.truth(one["last"]) for one in self.certified]
        return np.array([[one[name] for name in self.names] for one in values]).reshape(-1, len(self.names))

    def _column(self, name: str) -> Array:
        values = [one[self.kind][name] for one in self.certified]
        return np.array(values, dtype=np.float64).reshape(-1, len(self.names))

    @cached_property
    def estimates(self) -> Array:
        """Estimated parameters (fits, parameters)."""
        return self._column("estimate")

    @cached_property
    def intervals(self) -> NDArray[np.bool_]:
        """Which intervals there are (fits, parameters)."""
        return np.isfinite(self._column("ci_low")) & np.isfinite(self.truth)

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """Which intervals are there and hold the truth (fits, parameters)."""
        with np.errstate(invalid="ignore"):
            inside = (self._column("ci_low") <= self.truth) & (self.truth <= self._column("ci_high"))
        return np.asarray(inside & self.intervals)

    @property
    def share(self) -> float:
        """Share of all intervals that hold the truth."""
        return float(self.held.sum() / max(self.intervals.sum(), 1))

    @property
    def missing(self) -> int:
        """Intervals that are not there because the parameter is at its boundary."""
        return int((np.isfinite(self.truth) & ~self.intervals).sum())

    @cached_property
    def cells(self) -> dict[str, tuple[int, int, bool]]:
        """For each parameter: intervals that hold the truth, intervals, and whether the first is in its range."""
        found = {}
        for name, held, there in zip(self.names, self.held.sum(axis=0), self.intervals.sum(axis=0), strict=True):
            if there:
                low, high = stats.binom.interval(CELL_LEVEL, there, LEVEL)
                found[name] = int(held), int(there), bool(low <= held <= high)
        return found

    @property
    def outside(self) -> list[str]:
        """Parameters whose share is outside its binomial range."""
        return [name for name, (_, _, within) in self.cells.items() if not within]

    @cached_property
    def ratios(self) -> Array:
        """Mean of each estimated hazard over the truth (K-1,), at the reference age where age acts."""
        log_ratio = np.zeros((len(self.certified), len(RATES)))
        for k in range(len(RATES)):
            for term, weight in (("intercept", 1.0), ("age", AGE)):
                name = f"{term} of state {k + 1}"
                if name in self.names:
                    place = self.names.index(name)
                    log_ratio[:, k] += weight * (self.estimates[:, place] - self.truth[:, place])
        return np.asarray(np.exp(log_ratio).mean(axis=0))

    @cached_property
    def forecasts(self) -> Array:
        """Forecast and truth of each fit, (fits, 2)."""
        return np.array([[one[self.kind]["forecast"], one["forecast"]] for one in self.certified])

    @property
    def forecast(self) -> tuple[float, float, float]:
        """Mean forecast, mean truth, and the standard error of their difference."""
        mean, truth = self.forecasts.mean(axis=0)
        error = np.diff(self.forecasts, axis=1).std(ddof=1) / np.sqrt(len(self.forecasts))
        return float(mean), float(truth), float(error)

    def fails(self) -> Iterator[str]:
        """Aims that are not met, in words."""
        if np.abs(self.ratios - 1.0).max() > RATIO:
            yield f"hazards {show_range(self.ratios.tolist(), _two)} of the truth"
        if not LIMITS[0] <= self.share <= LIMITS[1]:
            yield f"intervals cover {self.share:.1%}"
        for name in self.outside:
            held, there, _ = self.cells[name]
            yield f"{name} covered {held} of {there} times"
        mean, truth, error = self.forecast
        if abs(mean - truth) > max(FORECAST_ERRORS * error, FORECAST_BIAS):
            yield f"forecast {mean:.3f}, truth {truth:.3f}"


def _two(value: float) -> str:
    return f"{value:.2f}"


def read_stored(file: Path = STORED) -> dict[str, dict[int, Record]]:
    """Records of each setting by number, without those of settings that have changed and half-written lines."""
    return read_numbered(file, {setting.name: setting.digest for setting in list_settings()})


def run(settings: Sequence[Setting], sets: int, console: Console, file: Path = STORED) -> None:
    """Fit what is not stored yet, some inventories of each setting in turn."""
    stored = read_stored(file)
    for low in range(0, sets, BLOCK):
        for setting in settings:
            numbers = [n for n in range(low, min(low + BLOCK, sets)) if n not in stored[setting.name]]
            for number in numbers:
                append_line(file, measure_inventory(setting, number))
            if numbers:
                console.print(f"{setting.name}: {numbers[-1] + 1} of {sets}")


def collect(stored: Mapping[str, Mapping[int, Record]]) -> list[tuple[Coverage, Coverage]]:
    """Coverage of each setting with both models; settings with fewer than two certified fits are left out."""
    found = []
    for setting in list_settings():
        records = [one for _, one in sorted(stored[setting.name].items())]
        both = Coverage(setting, HISTORIES, records), Coverage(setting, PAIRS, records)
        if all(len(one.certified) > 1 for one in both):
            found.append(both)
    return found


HEADER = (
    "setting",
    "inventories",
    "certified",
    "hazards / truth",
    "intervals that hold",
    "parameters outside",
    f"P({POOR} or worse)",
    "truth",
    "pairs: hazards / truth",
    "intervals",
    f"P({POOR} or worse)",
)


def tabulate(found: Sequence[tuple[Coverage, Coverage]]) -> list[tuple[str, ...]]:
    """Rows of the table, under HEADER."""
    return [
        (
            own.setting.name,
            str(len(own.records)),
            f"{len(own.certified) / len(own.records):.0%}",
            show_range(own.ratios.tolist(), _two),
            f"{own.share:.1%}",
            f"{len(own.outside)} of {len(own.cells)}",
            f"{own.forecast[0]:.3f}",
            f"{own.forecast[1]:.3f}",
            show_range(pairs.ratios.tolist(), _two),
            f"{pairs.share:.0%}",
            f"{pairs.forecast[0]:.3f}",
        )
        for own, pairs in found
    ]


def describe(found: Sequence[tuple[Coverage, Coverage]]) -> str:
    """The section of the page: what was done, the table, what fails its aim."""
    some = min(len(own.records) for own, _ in found), max(len(own.records) for own, _ in found)
    parts = [
        wrap(
            f"Simulated inventories of {BRIDGES} bridges, drawn from exactly the model that is fitted, "
            f"{show_range(some)} of each setting (`python -m benchmarks.histories_coverage`, stored in "
            "[histories_coverage.jsonl](../benchmarks/results/histories_coverage.jsonl)): means of the four "
            "estimated hazards over the truth; the share of all 95 % intervals that hold the truth; how many "
            f"parameters have a share outside its {CELL_LEVEL:.0%} binomial range (one in a hundred does by "
            f"chance); and the mean forecast of P({POOR} or worse {AHEAD} years later) for a bridge that was "
            f"rated 1 at each visit up to its year {ORIGIN}. Beside them the pair model, improvements left out."
        ),
        table(HEADER, tabulate(found)),
    ]
    misses = [f"{own.setting.name}: {', '.join(fails)}" for own, _ in found if (fails := list(own.fails()))]
    aims = (
        f"Aims: hazards within {RATIO:.0%}, intervals {LIMITS[0]:.0%} to {LIMITS[1]:.0%}, each parameter within "
        f"its range, the mean forecast within {FORECAST_ERRORS:g} of its standard errors or {FORECAST_BIAS:g}."
    )
    parts.append(wrap(f"{aims} Not met: {'; '.join(misses)}." if misses else f"{aims} All are met."))
    if missing := [f"{own.missing} ({own.setting.name})" for own, _ in found if own.missing]:
        parts.append(
            wrap(
                "A probability or a variance that is 0 at the maximum has no interval, and is not counted: "
                f"{', '.join(missing)}."
            )
        )
    return "\n\n".join(parts)


def write_page(found: Sequence[tuple[Coverage, Coverage]], page: Path = PAGE) -> None:
    """Put the section between its marks in the page."""
    put_section(page, SECTION, describe(found))


def print_table(found: Sequence[tuple[Coverage, Coverage]], console: Console, cells: bool) -> None:
    """One line a setting, then what fails; ``cells`` prints every parameter too."""
    rows = [HEADER, *tabulate(found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADER))]
    for row in rows:
        console.print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    for own, _ in found:
        for failure in own.fails():
            console.print(f"NOT MET: {own.setting.name}: {failure}")
        reasons = {r for one in own.records for r in one[HISTORIES]["reasons"]}
        for reason in sorted(reasons):
            console.print(f"not certified: {own.setting.name}: {reason}")
        for name, (held, there, within) in own.cells.items() if cells else ():
            place = own.names.index(name)
            bias = float((own.estimates - own.truth)[:, place].mean())
            console.print(
                f"  {own.setting.name}: {name}: {held / there:.1%} of {there}{'' if within else ' OUTSIDE'}, mean "
                f"error {bias:+.4f}"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit what is missing, print; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.histories_coverage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", type=int, default=SETS, help="of each setting; 0 prints what is stored")
    parser.add_argument("--only", default="", metavar="WORDS", help="settings whose name has these words")
    parser.add_argument("--without", default="", metavar="WORDS", help="no settings whose name has these words")
    parser.add_argument("--cells", action="store_true", help="print every parameter")
    parser.add_argument("--page", action="store_true", help="write the table of docs/histories.md")
    options = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    wanted = [
        setting
        for setting in list_settings()
        if options.only in setting.name and not (options.without and options.without in setting.name)
    ]
    run(wanted, options.sets, console)
    found = collect(read_stored())
    print_table(found, console, options.cells)
    if options.page:
        write_page(found)
    return 1 if any(list(own.fails()) for own, _ in found) else 0


if __name__ == "__main__":
    sys.exit(main())
