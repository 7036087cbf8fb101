"""Do intervals of network totals hold where all members are struck together? ``python -m benchmarks.shocks``.

Inventories of 500 bridges are drawn with hazards that are multiplied by a factor in each calendar year, the
same for all bridges: independent from year to year, or a random walk. They are inspected every two years for 14
years. The model of pairs is fitted to the first ten calendar years and forecasts the numbers of the others,
with the prediction interval of independent members and the wider one (``rekka.backtest(..., shocks=True)``),
which is estimated from forecasts inside the first ten years. Counted is how often each holds the number found
in a year, and the mean interval score.

An inventory is appended to ``results/shocks.jsonl`` as soon as it is done, and a run continues where the last
one ended. ``--page`` writes the table of docs/intervals.md. ``--ontario`` compares both intervals on Ontario's
bridges, for models fitted up to 2004, 2005 and 2006 and counted up to 2008, where choices may be made.
``--test`` does it for those fitted up to 2008, counted from 2009 to 2013: nothing may be chosen on these years,
so that every run of it is logged in ``results/shocks_test.json``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console

import rekka
from benchmarks.problems import BANDS, CONDITIONS_FILE, ONTARIO_FOLDER, SEED
from benchmarks.reproduction_words import put_section, table, wrap
from benchmarks.simulated_histories import BRIDGES, EFFECT, FIRST, RATES, STATES, UNEVEN
from benchmarks.stored_lines import Record, append_line, read_numbered
from rekka.simulation.stock import advance

Array = NDArray[np.float64]

SETS, BLOCK = 100, 10  # inventories of a setting; those of one setting before the next one's turn
BEGIN, UNTIL, END, GAP = (
    2000,
    2009,
    2014,
    2.0,
)  # first visits; fitted up to the end of that year; last; years between
DRAWS = 100
LEVEL = 0.95
POOR = 4
RESULTS = Path(__file__).resolve().parent / "results"
STORED, TEST = RESULTS / "shocks.jsonl", RESULTS / "shocks_test.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "intervals.md"
SECTION = "shocks"
COLUMNS = ("state", "or_worse", "group", "observed", "predicted_low", "predicted_high",
           "predicted_shock_low", "predicted_shock_high", "interval_score", "interval_score_shock")  # fmt: skip
MODELS: Mapping[str, Mapping[str, Any]] = {
    "pairs": {},
    "errors, improvements, trend": {"errors": "adjacent", "improvements": "common", "trend": "common"},
}
CHOOSING, LAST_CHOSEN, LAST = (2004, 2005, 2006), 2008, 2013


@dataclass(frozen=True)
class Setting:
    """How the log hazards differ from year to year, with standard deviation ``sigma``."""

    name: str
    sigma: float
    walks: bool = False

    @property
    def digest(self) -> int:
        """A number that changes where the draw does."""
        drawn = (
            SEED,
            BRIDGES,
            RATES.tolist(),
            EFFECT,
            FIRST.tolist(),
            UNEVEN,
            BEGIN,
            UNTIL,
            END,
            GAP,
            DRAWS,
            POOR,
        )
        return zlib.crc32(repr((self, drawn)).encode())


SETTINGS = (
    Setting("no shocks", 0.0),
    Setting("each year 0.3", 0.3),
    Setting("each year 0.6", 0.6),
    Setting("random walk 0.2", 0.2, walks=True),
)


def draw_rows(setting: Setting, number: int) -> pl.DataFrame:
    """Transitions of all bridges, with dates and a covariate x."""
    key = (zlib.crc32(setting.name.encode()), number)
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=key))
    shocks = rng.normal(0.0, setting.sigma, END - BEGIN + 4)
    shocks = shocks.cumsum() if setting.walks else shocks
    x, seen = rng.standard_normal(BRIDGES), BEGIN + rng.uniform(0.0, GAP, BRIDGES)
    state, parts = rng.choice(STATES, BRIDGES, p=FIRST), []
    while (seen < END).any():
        now, end, found = seen.copy(), seen + GAP * rng.uniform(*UNEVEN, BRIDGES), state.copy()
        while (now < end).any():  # hazards are constant within a calendar year
            stop = np.minimum(np.floor(now) + 1.0, end)
            year = np.minimum(now.astype(np.int64) - BEGIN, shocks.size - 1)
            theta = np.exp(EFFECT * x + shocks[year])[:, None] * RATES
            found = np.where(now < end, advance(found, theta, stop - now, rng), found)
            now = stop
        columns = {"bridge_id": np.arange(BRIDGES).astype(str), "state_1": state + 1, "state_2": found + 1}
        parts.append(pl.DataFrame(columns | {"x": x, "from": seen, "to": end}).filter(pl.col("to") < END))
        state, seen = found, end
    day = {f"date_{k}": _as_date(pl.col(name)) for k, name in ((1, "from"), (2, "to"))}
    rows = pl.concat(parts).with_columns(**day, case=pl.lit("member"), history=pl.lit(1))
    years = (pl.col("date_2") - pl.col("date_1")).dt.total_days() / 365.25
    return rows.with_columns(interval_years=years).sort("bridge_id", "date_1").drop("from", "to")


def _as_date(years: pl.Expr) -> pl.Expr:
    start = pl.lit(dt.date(BEGIN, 1, 1))
    return (start + pl.duration(days=((years - BEGIN) * 365.25).cast(pl.Int64))).cast(pl.Date)


def measure(setting: Setting, number: int) -> Record:
    """Draw an inventory, forecast its last years, and compare; a plain record."""
    found = rekka.backtest(
        draw_rows(setting, number), until=UNTIL, covariates=["x"], threshold=POOR, shocks=True, draws=DRAWS,
        level=LEVEL, test_fit=False, allow=["R109"],
    )  # fmt: skip
    return {"setting": setting.name, "number": number, "digest": setting.digest} | describe_bands(found)


def describe_bands(found: rekka.Backtest) -> Record:
    """Shared error, and the numbers of every later year with both intervals."""
    case = found.cases.row(0, named=True)
    record = {"sigma": case["shock"], "source": case["shock_source"], "certified": case["certified"], "totals": []}
    if set(COLUMNS) <= set(found.totals.columns):
        record["totals"] = [list(row) for row in found.totals.filter(by="year").select(COLUMNS).rows()]
    return record


def read_stored(file: Path = STORED) -> dict[str, dict[int, Record]]:
    """Records of each setting by number, without those of settings that have changed and half-written lines."""
    return read_numbered(file, {setting.name: setting.digest for setting in SETTINGS})


def run(sets: int, console: Console, file: Path = STORED) -> None:
    """Measure what is not stored yet, some inventories of each setting in turn."""
    stored = read_stored(file)
    for low in range(0, sets, BLOCK):
        for setting in SETTINGS:
            numbers = [n for n in range(low, min(low + BLOCK, sets)) if n not in stored[setting.name]]
            for number in numbers:
                append_line(file, measure(setting, number))
            if numbers:
                console.print(f"{setting.name}: {numbers[-1] + 1} of {sets}")


def read_totals(records: Sequence[Record]) -> pl.DataFrame:
    """Rows of all records that have both intervals, in COLUMNS, with what is inside and how much wider one is."""
    rows = [row for one in records for row in one["totals"]]
    frame = pl.DataFrame(rows, schema=list(COLUMNS), orient="row", infer_schema_length=None)
    low, high, wide_low, wide_high = (pl.col(name) for name in COLUMNS[4:8])
    return frame.with_columns(
        inside=pl.col("observed").is_between(low, high),
        inside_shock=pl.col("observed").is_between(wide_low, wide_high),
        width=high - low,
        width_shock=wide_high - wide_low,
    )


HEADER = (
    "shocks of the log hazards", "inventories", "estimated, median", "holds", "wider holds", "times as wide",
    "interval score", "wider", "each rating: holds", "wider holds", "interval score", "wider",
)  # fmt: skip


def tabulate(stored: Mapping[str, Mapping[int, Record]]) -> list[tuple[str, ...]]:
    """Rows of the table, under HEADER."""
    found = []
    for setting in SETTINGS:
        records = [one for _, one in sorted(stored[setting.name].items())]
        if not any(one["totals"] for one in records):
            continue
        sizes = [one["sigma"] for one in records if one["sigma"] is not None]
        totals = read_totals(records)
        worse, each = totals.filter("or_worse"), totals.filter(~pl.col("or_worse"))
        wider = worse["width_shock"].sum() / worse["width"].sum()
        found.append((setting.name, str(len(records)), f"{np.median(sizes):.2f}", *_shares(worse),
                      f"{wider:.2f}", *_scores(worse), *_shares(each), *_scores(each)))  # fmt: skip
    return found


def _shares(rows: pl.DataFrame) -> Iterator[str]:
    return (f"{rows[name].mean():.1%}" for name in ("inside", "inside_shock"))


def _scores(rows: pl.DataFrame) -> Iterator[str]:
    return (f"{rows[name].mean():.1f}" for name in ("interval_score", "interval_score_shock"))


def describe(stored: Mapping[str, Mapping[int, Record]]) -> str:
    """The section of the page."""
    told = (
        f"Simulated inventories of {BRIDGES} bridges, inspected every {GAP:g} years from {BEGIN} to {END - 1}, "
        f"fitted up to {UNTIL} (`python -m benchmarks.shocks`, stored in "
        "[shocks.jsonl](../benchmarks/results/shocks.jsonl)). Counted are the numbers of visits in rating "
        f"{POOR} or worse in a year from {UNTIL + 1} to {END - 1}, then those in each single rating: how often "
        f"the {LEVEL:.0%} prediction interval and the wider one hold them, and the mean interval scores (lower is "
        "better)."
    )
    return "\n\n".join([wrap(told), table(HEADER, tabulate(stored))])


def read_ontario(last: int, upward: str, folder: Path = ONTARIO_FOLDER) -> rekka.Transitions | None:
    """Transitions of Ontario's bridges that end by the end of a year; None if they are absent."""
    if not (folder / CONDITIONS_FILE).exists():
        return None
    panel = rekka.read_panel(
        folder / CONDITIONS_FILE,
        columns={"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
        state={"bands": list(BANDS), "missing": [0]},
    )
    found = rekka.pair_visits(panel, upward=upward)
    return replace(found, frame=found.frame.filter(pl.col("date_2").dt.year() <= last))


def measure_ontario(until: int, last: int, name: str) -> Record | None:
    """Both intervals of a model fitted up to a year, counted up to another; None if the records are absent."""
    options = MODELS[name]
    rows = read_ontario(last, "keep" if options else "set_aside")
    if rows is None:
        return None
    found = rekka.backtest(rows, until=until, shocks=True, draws=500, level=LEVEL, test_fit=False, **options)
    return {"model": name, "until": until, "last": last} | describe_bands(found)


def summarize(record: Record) -> Record:
    """Coverage and mean interval score of both intervals: of the threshold or worse, and of each rating."""
    kept = {name: record[name] for name in ("model", "until", "last", "sigma", "source")}
    if not record["totals"]:
        return kept
    totals = read_totals([record])
    for name, rows in (("or_worse", totals.filter("or_worse")), ("each", totals.filter(~pl.col("or_worse")))):
        kept[name] = {"numbers": len(rows)} | {
            key: round(float(rows[key].mean()), 4)  # type: ignore[arg-type]
            for key in ("inside", "inside_shock", "width", "width_shock", "interval_score", "interval_score_shock")
        }
    return kept


def compare_ontario(untils: Sequence[int], last: int, names: Sequence[str], console: Console) -> list[Record]:
    """Summaries of each model and year, printed as they are done."""
    found = []
    for name in names:
        for until in untils:
            record = measure_ontario(until, last, name)
            if record is None:
                console.print("Ontario's records are not there to be forecast.")
                return []
            found.append(summarize(record))
            console.print_json(json.dumps(found[-1]))
    return found


def log_test(names: Sequence[str], console: Console, file: Path = TEST) -> None:
    """Forecast 2009 to 2013 from 2008, and append what was found to the log of all such looks."""
    found = compare_ontario((LAST_CHOSEN,), LAST, names, console)
    if not found:
        return
    looks = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    looks.append(
        {"number": len(looks) + 1, "day": str(dt.date.today()), "version": rekka.__version__, "found": found}
    )
    file.write_text(json.dumps(looks, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=SETS, help="inventories of each setting")
    parser.add_argument("--page", action="store_true", help="write the table of docs/intervals.md")
    parser.add_argument("--ontario", action="store_true", help="models fitted up to 2004, 2005, 2006 instead")
    parser.add_argument("--test", action="store_true", help="models fitted up to 2008 instead; logged")
    parser.add_argument("--model", choices=list(MODELS), action="append", help="of Ontario; default all")
    asked, console = parser.parse_args(arguments), Console()
    names = asked.model or list(MODELS)
    if asked.ontario:
        compare_ontario(CHOOSING, LAST_CHOSEN, names, console)
    elif asked.test:
        log_test(names, console)
    else:
        run(asked.sets, console)
        stored = read_stored()
        console.print("\n".join(" | ".join(row) for row in (HEADER, *tabulate(stored))), highlight=False)
        if asked.page:
            put_section(PAGE, SECTION, describe(stored))
    return 0


if __name__ == "__main__":
    sys.exit(main())
