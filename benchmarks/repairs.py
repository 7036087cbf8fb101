"""Are repairs without a record found? ``python -m benchmarks.repairs``.

Two parts. Ontario's bridges: the years of the last major and minor rehabilitation are kept from the search, and
its verdicts are compared with them. Simulated inventories (``simulated_repairs.py``): every repair, small
improvement and error is known. Where Ontario's table is absent its part is left out, and that is said.

A run is stored in ``results/repairs.json``; ``--page`` writes the section of docs/repairs.md from the stored run.
Exits with 1 if an aim is not met. Ontario has none: its records are incomplete.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import polars as pl
from rich.console import Console

import rekka
from benchmarks import configuration
from benchmarks.aims import Aim, print_aims
from benchmarks.problems import BANDS, CONDITIONS_FILE, ONTARIO_FOLDER
from benchmarks.reproduction_words import put_section, table, wrap
from benchmarks.simulated_repairs import draw_repairs, match
from rekka.report.text import MISSING
from rekka.workflows.repairs import ERROR, REPAIR, SMALL, VERDICTS

RESULT = Path(__file__).with_name("results") / "repairs.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "repairs.md"
SECTION = "repairs"
KINDS = {"major": "LAST MAJOR REHAB", "minor": "LAST MINOR REHAB"}
LARGEST = 3  # ratings by which an interval improved: so many or more
SETS = 20  # simulated inventories
BINS: Sequence[tuple[float, float, Literal["left", "both"]]] = (
    (0.0, 0.1, "left"), (0.1, 0.5, "left"), (0.5, 0.9, "left"), (0.9, 1.0, "both"),
)  # fmt: skip
PRECISION, RECALL, NUMBER = 0.75, 0.95, 0.1  # aims for simulated inventories
Row = dict[str, Any]
Stored = Mapping[str, Any]


def measure_ontario(folder: Path = ONTARIO_FOLDER) -> Row | None:
    """Verdicts on Ontario's intervals beside the recorded rehabilitations; None where the table is absent."""
    if not (folder / CONDITIONS_FILE).exists():
        return None
    panel = rekka.read_panel(
        folder / CONDITIONS_FILE,
        columns={
            "bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH", "keep": list(KINDS.values()),
        },
        state={"bands": list(BANDS), "missing": [0]},
    )  # fmt: skip
    pairs = rekka.pair_visits(panel, upward="keep_all")
    found = rekka.find_repairs(pairs)
    known = found.table.select("bridge_id", "date_1", "date_2", "repair", "small_improvement", "error", "verdict")
    intervals = read_rehabilitations(pairs.frame).join(known, on=["bridge_id", "date_1", "date_2"], how="left")
    return {"model": found.components[0].to_dict(), **judge_intervals(intervals)}


def read_rehabilitations(pairs: pl.DataFrame) -> pl.DataFrame:
    """Intervals with the years of their visits and of rehabilitations, and which of these lie in them.

    ``current`` says that no later rehabilitation is recorded: one in the interval would still be in the table.
    """
    years = [pl.col(name).cast(pl.Float64, strict=False).alias(kind) for kind, name in KINDS.items()]
    found = pairs.with_columns(
        *years, *(pl.col(f"date_{end}").dt.year().alias(f"year_{end}") for end in (1, 2)),
        size=(pl.col("state_1").cast(pl.Int64) - pl.col("state_2").cast(pl.Int64)).clip(0, LARGEST),
    )  # fmt: skip
    inside = [
        pl.col(kind).is_between("year_1", "year_2").fill_null(value=False).alias(f"in_{kind}") for kind in KINDS
    ]
    later = pl.max_horizontal(*KINDS) > pl.col("year_2")
    found = found.with_columns(*inside, current=~later.fill_null(value=False))
    return found.with_columns(recorded=pl.any_horizontal(f"in_{kind}" for kind in KINDS))


def judge_intervals(intervals: pl.DataFrame) -> Row:
    """Shares with a recorded rehabilitation by size and verdict, and by probability; rehabilitations found."""
    better = intervals.filter(pl.col("size") > 0)
    still = intervals.filter(pl.col("size") == 0)
    repaired = {
        f"{kind}: {name}": _count_found(intervals, kind, chosen)
        for kind in KINDS
        for name, chosen in (
            ("probable repair", pl.col("verdict") == REPAIR),
            ("better rating", pl.col("size") > 0),
            ("two ratings better", pl.col("size") > 1),
        )
    }
    return {
        "intervals": len(intervals),
        "by_verdict": [
            {"size": size, "verdict": verdict} | _share_recorded(own)
            for size in range(1, LARGEST + 1)
            for verdict in VERDICTS
            for own in [better.filter(size=size, verdict=verdict)]
            if len(own)
        ],
        "of_verdicts": [{"verdict": name} | _share_recorded(better.filter(verdict=name)) for name in VERDICTS],
        "no_improvement": _share_recorded(still),
        "by_year": [
            {"year": year, "all": len(own), "improved": int((own["size"] > 0).sum())}
            | _share_recorded(own.filter(verdict=REPAIR))
            for (year,), own in sorted(intervals.partition_by("year_2", as_dict=True).items())
        ],
        "by_probability": [
            {"low": low, "high": high}
            | _share_recorded(better.filter(pl.col("repair").is_between(low, high, ends)))
            for low, high, ends in BINS
        ],
        "rehabilitations": repaired,
    }


def _share_recorded(own: pl.DataFrame) -> Row:
    """Intervals, and the share with a recorded rehabilitation: of all, and where none later is recorded."""
    current = own.filter("current")
    return {
        "intervals": len(own),
        "repair": own["repair"].mean() if own["repair"].null_count() == 0 else None,
        **{name: own[f"in_{name}"].mean() for name in KINDS},
        "recorded": own["recorded"].mean(),
        "current": len(current),
        "current_recorded": current["recorded"].mean(),
    }


def _count_found(intervals: pl.DataFrame, kind: str, chosen: pl.Expr) -> Row:
    """Recorded rehabilitations that lie in an interval, and those of them in one that is chosen."""
    own = intervals.filter(f"in_{kind}").group_by("bridge_id", kind).agg(chosen.fill_null(value=False).any())
    return {"recorded": len(own), "found": int(own.drop("bridge_id", kind).to_series().sum())}


def measure_simulated(sets: int = SETS, bridges: int = 300) -> Row:
    """Verdicts on simulated inventories beside the truth, all inventories together."""
    found = []
    for seed in range(1, sets + 1):
        drawn = draw_repairs(bridges=bridges, seed=seed)
        result = rekka.find_repairs(drawn.table)
        if result.reasons:
            raise RuntimeError(f"simulated inventory {seed}: {result.reasons}")
        found.append(match(result.table, drawn.truth))
    rows = pl.concat(found).with_columns(
        happened=pl.when("repaired")
        .then(pl.lit(REPAIR))
        .when("improved")
        .then(pl.lit(SMALL))
        .otherwise(pl.lit(ERROR))
    )
    large = rows.filter(pl.col("improved_by") > 1)
    return {
        "sets": sets,
        "bridges": bridges,
        "improvements": len(rows),
        "table": [
            {"verdict": verdict, "intervals": len(own)}
            | {name: (own["happened"] == name).mean() for name in VERDICTS}
            for verdict in VERDICTS
            for own in [rows.filter(verdict=verdict)]
        ],
        "expected": dict(
            zip(VERDICTS, rows.select(pl.sum("repair", "small_improvement", "error")).row(0), strict=True)
        ),
        "happened": {name: int((rows["happened"] == name).sum()) for name in VERDICTS},
        "recall": {
            "all": (rows.filter("repaired")["verdict"] == REPAIR).mean(),
            "large": (large.filter("repaired")["verdict"] == REPAIR).mean(),
        },
    }


def judge(stored: Stored) -> list[Aim]:
    """Aims for simulated inventories."""
    own = stored["simulated"]
    precision = own["table"][0][REPAIR]
    share = own["recall"]["large"]
    number = own["expected"][REPAIR] / own["happened"][REPAIR]
    return [
        Aim(f"{PRECISION:.0%} of probable repairs are repairs", f"{precision:.1%}", precision >= PRECISION),
        Aim(f"{RECALL:.0%} of repairs by two ratings or more are found", f"{share:.1%}", share >= RECALL),
        Aim(
            f"expected repairs within {NUMBER:.0%} of those that happened", f"{number:.2f} times",
            abs(number - 1) <= NUMBER,
        ),
    ]  # fmt: skip


def describe(stored: Stored) -> str:
    """The section of the page."""
    return "\n\n".join([*_describe_ontario(stored["ontario"]), *_describe_simulated(stored["simulated"])])


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0%}"


def _describe_ontario(found: Stored | None) -> list[str]:
    if found is None:
        return ["Ontario's table was not there to be searched."]
    model, still = found["model"], found["no_improvement"]
    head = (
        "better by",
        "verdict",
        "intervals",
        "mean probability",
        "recorded",
        "major",
        "minor",
        "no later record",
    )
    sizes = {size: str(size) if size < LARGEST else f"{size} or more" for size in range(1, LARGEST + 1)}
    rows = [(sizes[one["size"]], *_cells(one)) for one in found["by_verdict"]]
    rows += [("all", *_cells(one)) for one in found["of_verdicts"]]
    rows.append(("not better", *_cells({"verdict": "all"} | still)))
    bins = [
        (f"{one['low']:.0%} to {one['high']:.0%}", f"{one['intervals']:,}", _percent(one["recorded"]),
         _percent(one["current_recorded"]))
        for one in found["by_probability"]
    ]  # fmt: skip
    recall = []
    for kind in KINDS:
        own = {name.split(": ")[1]: one for name, one in found["rehabilitations"].items() if name.startswith(kind)}
        total = own["probable repair"]["recorded"]
        shares = (_percent(own[name]["found"] / total) for name in own)
        recall.append((kind, f"{total:,}", *shares))
    years = [
        (one["year"], f"{one['all']:,}", _percent(one["improved"] / one["all"]), one["intervals"],
         _percent(one["recorded"]), _percent(one["current_recorded"]))
        for one in found["by_year"]
        if one["intervals"]
    ]  # fmt: skip
    return [
        wrap(
            f"Ontario's bridge condition index in five bands, {found['intervals']:,} intervals between visits of "
            f"2000 to 2013, of which {model['improvements']:,} improved by a band or more (`python -m "
            "benchmarks.repairs`, stored in [repairs.json](../benchmarks/results/repairs.json)). The search did "
            "not see the two columns of rehabilitations. *Recorded* is the share of intervals in which the last "
            "major or minor rehabilitation lies, from the year of the first visit to that of the second; *no "
            "later record* is the same share where no later rehabilitation is recorded, which would have taken "
            "its place in the table."
        ),
        table(head, rows),
        wrap("The same by the probability of a repair, of intervals with a better rating:"),
        table(("probability of a repair", "intervals", "recorded", "no later record"), bins),
        wrap("By the year of the second visit:"),
        table(("year", "intervals", "better", "probable repairs", "recorded", "no later record"), years),
        wrap(
            "Recorded rehabilitations that lie in an interval between two visits, and how many of them lie in one "
            "that is a probable repair, has a better rating at all, or one better by two or more:"
        ),
        table(("rehabilitation", "recorded", "probable repair", "better rating", "better by two or more"), recall),
    ]


def _cells(one: Stored) -> tuple[str, ...]:
    shares = (one[name] for name in ("repair", "recorded", "major", "minor", "current_recorded"))
    return (one["verdict"], f"{one['intervals']:,}", *map(_percent, shares))


def _describe_simulated(found: Stored) -> list[str]:
    rows = [
        (one["verdict"], f"{one['intervals']:,}", *(_percent(one[name]) for name in VERDICTS))
        for one in found["table"]
    ]
    words = ("repairs", "small improvements", "errors")
    sums = ", ".join(
        f"{found['expected'][name]:,.0f} {what} expected and {found['happened'][name]:,} drawn"
        for name, what in zip(VERDICTS, words, strict=True)
    )
    return [
        wrap(
            f"{found['sets']} simulated inventories of {found['bridges']} bridges with 10 visits 2 years apart, "
            "five ratings, 6 % of visits rated one better or worse, 1 % small improvements and 5 % repairs a "
            "year: what had happened where a rating improved."
        ),
        table(("verdict", "intervals", "repair", "small improvement", "error"), rows),
        wrap(
            f"Of the repairs behind an improvement {_percent(found['recall']['all'])} are probable repairs, of "
            f"those behind one by two ratings or more {_percent(found['recall']['large'])}. The probabilities add "
            f"up to {sums}."
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, judge, store; 1 if an aim is not met."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.repairs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--page", action="store_true", help="write the page from the stored run; measure nothing")
    options = parser.parse_args(arguments)
    console = Console(width=max(120, Console().width), highlight=False)
    if options.page:
        stored = json.loads(RESULT.read_text())
        put_section(PAGE, SECTION, describe(stored))
    else:
        stored = _measure(console)
    aims = judge(stored)
    print_aims(aims, console)
    return 1 if any(aim.met is False for aim in aims) else 0


def _measure(console: Console) -> Row:
    setting = configuration.describe(with_msm=False)
    stored: Row = {"configuration": setting, "ontario": measure_ontario()}
    if stored["ontario"] is None:
        console.print("../shared/data/ontario is absent; its part is left out.")
    stored["simulated"] = measure_simulated()
    stored["aims"] = [asdict(aim) for aim in judge(stored)]
    RESULT.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")
    console.print(describe(stored), markup=False)
    return stored


if __name__ == "__main__":
    sys.exit(main())
