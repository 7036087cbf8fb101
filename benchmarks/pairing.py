"""Pairing five million inspection records beside pandas: ``python -m benchmarks.pairing``.

All get the same dataframe in memory and give transitions with interval, age, length and mean traffic. "pandas" is
a plain groupby-shift. "pandas, same table" gives what rekka gives: visit and row numbers, one record a day, and a
count of every reason; rekka lists the records set aside besides. The records are those of a simulated inventory,
once in the order an agency appends them (by date), once shuffled. Each run is a process of its own: some for the
time, one for the peak memory. Before a timed run memory is touched, because the first touch of a page costs a
virtual machine more than anything measured here.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

import rekka
from benchmarks import configuration
from benchmarks.problems import SEED

RESULT = Path(__file__).with_name("results") / "pairing.json"
RECORDS = 5_000_000
REPEATS = 3
ORDERS = ("by date", "shuffled")
PLAIN, SAME, NOTHING = "pandas", "pandas, same table", "the frame alone"
RIVALS = ("rekka", PLAIN, SAME, NOTHING)
TOUCHED = 3_000_000_000  # bytes
MEMBER = ["bridge_id", "case", "member"]
AIM = 5.0  # times faster than pandas


@dataclass(frozen=True)
class Pairing:
    """Seconds of each repeat, peak megabytes of the process, and how many transitions came out."""

    rival: str
    order: str
    records: int
    seconds: tuple[float, ...]
    megabytes: float
    transitions: int


def measure(records: int = RECORDS, repeats: int = REPEATS) -> list[Pairing]:
    """Each rival on each order, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        files = _write(Path(folder), records)
        return [
            _run(rival, order, file, repeats if rival != NOTHING else 1)
            for order, file in files.items()
            for rival in RIVALS
        ]


def ratios(found: Sequence[Pairing]) -> dict[tuple[str, str], float]:
    """How many times faster than each way of pandas, by the medians, in each order."""
    time = {(p.rival, p.order): median(p.seconds) for p in found}
    return {
        (rival, order): time[rival, order] / time["rekka", order] for order in ORDERS for rival in (PLAIN, SAME)
    }


def _write(folder: Path, records: int) -> dict[str, Path]:
    """The records as one table: bridge, case, member, date, state, completion, length, traffic."""
    bridges = max(50, records // 48)
    rekka.write_inventory(folder, bridges, preset="plain", seed=SEED, format="parquet")
    inventory = pl.scan_parquet(folder / "inventory.parquet").select(
        "bridge_id", "bridge_length", completed=pl.date("completion_year", 1, 1)
    )
    table = (
        pl.scan_parquet(folder / "inspections.parquet")
        .join(
            pl.scan_parquet(folder / "traffic.parquet"),
            on=["bridge_id", "visit"],
            how="left",
            maintain_order="left",
        )
        .join(inventory, on="bridge_id", how="left", maintain_order="left")
        .drop("visit")
        .with_columns(
            state=pl.col("state").replace_strict({letter: k for k, letter in enumerate("abcde", start=1)}),
        )
        .collect()
        .head(records)
    )
    files = {order: folder / f"{order}.parquet" for order in ORDERS}
    table.sort("date", maintain_order=True).write_parquet(files["by date"])
    table.sample(fraction=1, shuffle=True, seed=SEED).write_parquet(files["shuffled"])
    return files


def _run(rival: str, order: str, file: Path, repeats: int) -> Pairing:
    timed = _call(rival, file, repeats)
    lean = _call(rival, file, 0)
    return Pairing(
        rival, order, timed["records"], tuple(timed["seconds"]), lean["megabytes"], timed["transitions"]
    )


def _call(rival: str, file: Path, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.pairing", "--child", rival, str(file), str(repeats)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def _child(rival: str, file: Path, repeats: int) -> None:
    """Read, pair and print the figures as JSON; 0 repeats mean once, for the memory."""
    frame = pl.read_parquet(file)
    pair = {"rekka": _pair_by_rekka, PLAIN: _pair_by_pandas, SAME: _pair_the_same, NOTHING: len}[rival]
    table = frame.to_pandas() if rival in (PLAIN, SAME) else frame
    seconds = []
    for _ in range(max(repeats, 1)):
        if repeats:
            touched = np.ones(TOUCHED // 8)
            del touched
        begin = perf_counter()
        count = pair(table)
        seconds.append(perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {"records": len(frame), "seconds": seconds, "megabytes": peak, "transitions": count}
    sys.stdout.write(json.dumps(figures))


def _pair_by_rekka(table: pl.DataFrame) -> int:
    return len(rekka.read_transitions(table).frame)


def _sort_and_shift(table: Any) -> Any:
    """The way one would write it: sort, group, shift."""
    import pandas as pd

    visits = table.sort_values([*MEMBER, "date"])
    following = visits.groupby(MEMBER)[["date", "state", "traffic"]].shift(-1)
    visits["date_2"], visits["state_2"] = following["date"], following["state"]
    visits["traffic_mean"] = (visits["traffic"] + following["traffic"]) / 2
    visits["interval_years"] = (pd.to_datetime(visits["date_2"]) - pd.to_datetime(visits["date"])).dt.days / 365.25
    visits["age"] = (pd.to_datetime(visits["date"]) - pd.to_datetime(visits["completed"])).dt.days / 365.25
    return visits


def _pair_by_pandas(table: Any) -> int:
    """And drop what does not fit."""
    visits = _sort_and_shift(table).dropna(subset=["state_2", "bridge_length", "traffic_mean", "age"])
    return len(
        visits[(visits["state_2"] >= visits["state"]) & (visits["interval_years"] > 0) & (visits["age"] >= 0)]
    )


def _pair_the_same(table: Any) -> int:
    """The same table as rekka's, and a count of the reasons."""
    table = table.assign(row=np.arange(len(table))).sort_values("state", ascending=False, kind="stable")
    visits = _sort_and_shift(table.drop_duplicates([*MEMBER, "date"]))
    members = visits.groupby(MEMBER)
    visits["visit_1"] = members.cumcount() + 1
    visits["row_2"] = members["row"].shift(-1)
    tests = {
        "last": visits["state_2"].isna(),
        "upward": visits["state_2"] < visits["state"],
        "completed later": visits["age"] < 0,
        "missing": visits[["bridge_length", "traffic_mean", "age"]].isna().any(axis=1),
    }
    visits["reason"] = np.select(list(tests.values()), list(tests), "kept")
    visits["reason"].value_counts()
    return len(visits[visits["reason"] == "kept"].sort_values("row"))


def print_table(found: Sequence[Pairing], console: Console) -> None:
    """Seconds, memory and the ratio."""
    table = Table("order", "who", title=f"Pairing {found[0].records:,} inspection records")
    for column in ("median s", "fastest s", "peak MB", "transitions"):
        table.add_column(column, justify="right")
    for p in found:
        table.add_row(
            p.order,
            p.rival,
            f"{median(p.seconds):.2f}",
            f"{min(p.seconds):.2f}",
            f"{p.megabytes:,.0f}",
            f"{p.transitions:,}",
        )
    console.print(table)
    for (rival, order), ratio in ratios(found).items():
        verdict = f" (aim {AIM:g}: {'met' if ratio >= AIM else 'NOT MET'})" if rival == PLAIN else ""
        console.print(f"{order}: {ratio:.1f} times faster than {rival}{verdict}", highlight=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairing", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        rival, file, repeats = options.child
        _child(rival, Path(file), int(repeats))
        return
    setting = configuration.describe(with_msm=False)
    found = measure(options.records, options.repeats)
    print_table(found, Console())
    times = [{"rival": rival, "order": order, "times": ratio} for (rival, order), ratio in ratios(found).items()]
    result = {"configuration": setting, "pairing": [asdict(p) for p in found], "ratios": times}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
