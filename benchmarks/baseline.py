"""The frozen baseline: numbers of the demo and of Ontario's bridges that later versions are held against.

Runs rekka's commands as a user would, in an empty folder, and keeps what must not change without a reason:
log-likelihoods, coefficients with standard errors, scores, choices, confirmations, forecasts of the network and of
the first members, transition matrices, and the backtest.

    python -m benchmarks.baseline            compare with results/baseline.json; exit code 1 if a number differs
    python -m benchmarks.baseline --write    replace the stored numbers, after a change that is meant

Processors differ in the last digits of numeric gradients and of Box-Cox's exponent: where many numbers differ a
little, write the earlier version on this machine first (``--write`` in a checkout of it), and compare with that.

Times, digests and texts are left out. Ontario's part is left out where ../shared/data/ontario is absent.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tomli_w

import rekka

FILE = Path(__file__).parent / "results" / "baseline.json"
ONTARIO = Path(__file__).resolve().parents[2] / "shared" / "data" / "ontario"
TOLERANCE = 1e-12  # of each number, relative to itself or to 1, whichever is larger
DIFFERENCES_SHOWN = 20
YEARS = (0, 1, 5, 10, 20, 30)  # whose totals are kept

TRIAL = ("converged", "certified", "log_likelihood", "accuracy", "log_loss", "macro_recall", "brier", "rps")
CONFIRMED = ("method", "rows", "accuracy", "accuracy_low", "accuracy_high", "log_loss", "log_loss_low",
             "log_loss_high", "persistence_accuracy", "no_covariates_log_loss")  # fmt: skip
COEFFICIENT = ("estimate", "se", "ci_low", "ci_high")
NETWORK = ("members", "expected", "low", "high", "predicted_low", "predicted_high")
RISK = ("bridge_id", "case", "member", "state", "reached", "mean_years", "median_years", "years_10", "years_90")

MAPPING: dict[str, Any] = {
    "columns": {"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
    "state": {"bands": [85, 75, 70, 60], "missing": [0]},
    "join": [
        {
            "file": str(ONTARIO / "bridge_condition_open_data_2017_update_final.csv"),
            "names": ["id", "name", "latitude", "longitude", "built", "length", "width"],
            "columns": {"bridge": "id", "width": "width"},
            "agree": {"column": "length", "relative": 0.1, "absolute": 2},
        }
    ],
}


def main() -> int:
    """Compare with the stored numbers, or store them."""
    parser = argparse.ArgumentParser(description="Hold rekka against its frozen numbers.")
    parser.add_argument("--write", action="store_true", help="store the numbers instead of comparing them")
    wanted = parser.parse_args()
    found = measure()
    if wanted.write:
        FILE.write_text(json.dumps({"version": rekka.__version__, **found}, indent=1) + "\n", encoding="utf-8")
        print(f"{sum(1 for _ in walk(found)):,} values written to {FILE.name}")
        return 0
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    differences = list(compare({name: stored[name] for name in found}, found))
    for place, was, now in differences[:DIFFERENCES_SHOWN]:
        print(f"{place}: {was} in version {stored['version']}, {now} now")
    print(f"{len(differences):,} of {sum(1 for _ in walk(found)):,} values differ by more than {TOLERANCE:g}")
    return 1 if differences else 0


def measure() -> dict[str, Any]:
    """All numbers of this version, by data set."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        found = {"demo": measure_demo(place)}
        if ONTARIO.is_dir():
            found["ontario"] = measure_ontario(place)
        return found


def measure_demo(place: Path) -> dict[str, Any]:
    """The ten simulated components: `rekka demo`, then each command with the settings a user starts with."""
    run_command(place, "demo", "--folder", "demo")
    both = run_command(place, "show", "demo/study", "--json")
    return {"paper and exact conditions": keep_study(both), **measure_table(place, ["demo"], "demo-run")}


def measure_ontario(place: Path) -> dict[str, Any]:
    """Ontario's bridges: the same commands, and the backtest from 2008."""
    (place / "ontario.toml").write_text(tomli_w.dumps(MAPPING), encoding="utf-8")
    table = [str(ONTARIO / "bridge_data.csv"), "--mapping", "ontario.toml"]
    found = measure_table(place, table, "ontario-run")
    found["backtest"] = keep_numbers(run_command(place, "backtest", *table, "--until", "2008-12-31", "--json"))
    return found


def measure_table(place: Path, table: Sequence[str], run: str) -> dict[str, Any]:
    """Compare, fit, forecast and matrix on one table."""
    run_command(place, "compare", *table, "--out", run, "--no-report")
    fits = run_command(place, "fit", *table, "--out", f"{run}-models", "--json")
    forecast = run_command(place, "forecast", run, *table, "--out", f"{run}-forecast", "--json")
    matrices = run_command(place, "matrix", f"{run}-models", "--years", "1,5", "--json")
    return {
        "study": keep_study(run_command(place, "show", run, "--json")),
        "fits": {one["case"]: keep_fit(one) for one in fits},
        "forecast": keep_forecast(forecast),
        "matrices": {one["case"]: [m["probability"] for m in one["matrices"]] for one in matrices["cases"]},
    }


def keep_study(shown: dict[str, Any]) -> dict[str, Any]:
    """Trials by component, preset and method; what was chosen; how it was confirmed."""
    return {
        "trials": {
            f"{one['case']}, {one['preset']}, {one['method']}": pick(one, TRIAL) for one in shown["trials"]
        },
        "chosen": {f"{one['case']}, {one['preset']}": one["chosen"] for one in shown["selection"]},
        "confirmed": {
            f"{one['case']}, {one['preset']}": pick(one, CONFIRMED) for one in shown["confirmation"] or ()
        },
    }


def keep_fit(one: dict[str, Any]) -> dict[str, Any]:
    """Log-likelihood and coefficients of a fitted component; the reason where there is none."""
    if "coefficients" not in one:
        return pick(one, ("reason",))
    terms = {f"{row['state']}, {row['term']}": pick(row, COEFFICIENT) for row in one["coefficients"]}
    return pick(one, ("states", "log_likelihood", "certificate")) | {"coefficients": terms}


def keep_forecast(document: dict[str, Any]) -> dict[str, Any]:
    """Totals by year and state, and the members listed first."""
    totals = {
        f"{one['scope']}, {one['case']}, {one['what']}, {one['state']}, year {one['year']}": pick(one, NETWORK)
        for one in document["network"]
        if one["year"] in YEARS
    }
    first = [pick(one, RISK) for one in document["risks"]]
    return pick(document, ("members", "there", "outside")) | {"totals": totals, "first": first}


def keep_numbers(value: Any) -> Any:
    """Plain data without its texts."""
    if isinstance(value, dict):
        kept = {name: keep_numbers(item) for name, item in value.items() if name not in ("versions", "seconds")}
        return {name: item for name, item in kept.items() if item is not None}
    if isinstance(value, list):
        return [keep_numbers(item) for item in value]
    return None if isinstance(value, str) else value


def pick(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Some of the values of a row."""
    return {name: row[name] for name in names}


def run_command(place: Path, *words: str) -> Any:
    """Run `rekka WORDS` in a folder; what it prints, read as JSON where --json is among the words."""
    command = [sys.executable, "-c", "from rekka.cli import main; main()", *words]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not (done.stdout or done.returncode == 0):
        raise SystemExit(f"rekka {' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout) if "--json" in words else None


def compare(was: Any, now: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every value that differs: where it is, the stored one and this version's."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in {**was, **now}:
            yield from compare(was.get(name), now.get(name), f"{place} / {name}" if place else name)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from compare(one, other, f"{place} [{index}]")
    elif not equal(was, now):
        yield place, was, now


def equal(was: Any, now: Any) -> bool:
    """Whether two values are the same; numbers up to the tolerance."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (was, now)]
    if all(numbers):
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(was == now)


def walk(value: Any) -> Iterator[Any]:
    """All values inside."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from walk(item)
    else:
        yield value


if __name__ == "__main__":
    sys.exit(main())
