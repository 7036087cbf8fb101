"""Sections of the page on performance from other stored runs: small fits, study, pairing, accuracy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.reproduction_words import table, wrap
from rekka.report.text import MISSING

RESULTS = Path(__file__).resolve().parent / "results"
Row = Mapping[str, Any]
TOLERANCE = 1e-3  # log-likelihood units below the best of msm's methods: as in ``aims.py``


def _read(name: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return stored


def describe_small_fits() -> Iterator[str]:
    """Fits of the paper's ten sizes and of Ontario's bridges, by rekka, msm and the paper's way."""
    stored = _read("latest")
    aims = {one["aim"]: one["figure"] for one in stored["aims"]}
    versions = stored["configuration"]["versions"]
    yield wrap(
        "`make bench` times rekka, R's msm by the fastest of its methods that converges, and the paper's way "
        "(closed form in NumPy, numeric gradient, L-BFGS-B, z-score) in one run on the same rows: K = 5, the "
        "optimizer alone, one thread each, the fastest of several fits. Measured with rekka "
        f"{versions['rekka']}, stored in [latest.json](../benchmarks/results/latest.json). Ratios are theirs "
        "over ours."
    )
    header = (
        "rows of",
        "rows",
        "log-likelihood",
        "msm's",
        "rekka, ms",
        "msm, s",
        "ratio",
        "paper's way, s",
        "ratio",
    )
    yield table(header, [_compare(one) for one in stored["comparisons"]])
    yield wrap(
        "Judged by our median and their fastest: msm on Ontario's rows "
        f"{_before(aims, '1000 times msm, Ontario')}, the paper's way on the ten simulated components "
        f"{_before(aims, '200 times the paper', 'every simulated case')}. Of Ontario's 11,709 transitions the "
        "426 that start in the worst state are left out, because they carry no information."
    )


def _compare(one: Row) -> tuple[str, ...]:
    ours = next(run for run in one["runs"] if run["method"] == "newton, 1 thread")
    paper = next(run for run in one["runs"] if (run["rival"], run["method"]) == ("paper", "zscore"))
    msm = _fastest([run for run in one["runs"] if run["rival"] == "msm" and run["converged"]])
    name = "Ontario's bridges (real)" if one["name"] == "ontario" else f"{one['name']} (simulated)"
    return (
        name,
        f"{one['rows']:,}",
        f"{ours['log_likelihood']:.6f}",
        f"{msm['log_likelihood']:.6f}" if msm else MISSING,
        f"{1000 * ours['seconds']:.1f}",
        f"{msm['seconds']:.2f}" if msm else MISSING,
        f"{msm['seconds'] / ours['seconds']:,.0f}" if msm else MISSING,
        f"{paper['seconds']:.2f}",
        f"{paper['seconds'] / ours['seconds']:,.0f}",
    )


def _fastest(runs: Sequence[Row]) -> Row | None:
    """The fastest of msm's runs that end near the best of them."""
    if not runs:
        return None
    best = max(run["log_likelihood"] for run in runs)
    return min((run for run in runs if run["log_likelihood"] > best - TOLERANCE), key=lambda run: run["seconds"])


def _before(aims: Mapping[str, str], *words: str) -> str:
    figure = next(figure for aim, figure in aims.items() if all(word in aim for word in words))
    return figure.split(" by our median")[0]


def describe_study() -> Iterator[str]:
    """The paper's 40 trials: optimizer time of rekka and of the paper's way."""
    stored = _read("study")
    found = stored["summary"]
    methods = ", ".join(f"{name} {times:,.0f}" for name, times in found["times_by_method"].items())
    yield wrap(
        f"The {found['trials']} trials of the paper's study (ten simulated components by four scalings, the same "
        f"rows) take {found['seconds']['rekka']:.3f} s of optimizer time with rekka and "
        f"{found['seconds']['rival']:.0f} s the paper's way: {found['times']:,.0f} times as long ({methods}). "
        f"{found['rival_at_same_maximum']} of the paper's {found['trials']} trials end at the certified maximum, "
        f"and {found['rival_success_elsewhere']} of its {found['rival_success']} reported successes do not. "
        f"`python -m benchmarks.study`, rekka {stored['configuration']['versions']['rekka']}, stored in "
        "[study.json](../benchmarks/results/study.json)."
    )


def describe_pairing() -> Iterator[str]:
    """Records to transitions, by rekka and by pandas."""
    stored = _read("pairing")
    records = stored["pairing"][0]["records"]
    yield wrap(
        f"From {records:,} inspection records to transitions (`python -m benchmarks.pairing`, rekka "
        f"{stored['configuration']['versions']['rekka']}, two cores, stored in "
        "[pairing.json](../benchmarks/results/pairing.json)). Seconds are medians; memory is the peak of the "
        "process, the records included. A bare groupby-shift gives no visit numbers, row numbers or reasons."
    )
    names = {
        "rekka": "rekka",
        "pandas, same table": "pandas, the same table with reasons",
        "pandas": "pandas, bare groupby-shift",
    }
    seconds = {(one["rival"], one["order"]): median(one["seconds"]) for one in stored["pairing"]}
    memory = {name: max(one["megabytes"] for one in stored["pairing"] if one["rival"] == name) for name in names}
    rows = [
        (
            words,
            *(f"{seconds[name, order]:.1f}" for order in ("by date", "shuffled")),
            f"{memory[name] / 1000:.1f}",
        )
        for name, words in names.items()
    ]
    yield table(("", "sorted by date, s", "shuffled, s", "peak memory, GB"), rows)


def describe_accuracy() -> Iterator[str]:
    """Largest errors against 50-digit arithmetic."""
    found = _read("latest")["accuracy"]
    yield wrap(
        "Largest errors against 50-digit arithmetic on 10,000 drawn problems (`python -m benchmarks.accuracy`)."
    )
    rows = [(name, f"{one['error']:.1e}") for name, one in found.items() if one["error"] > 0]
    yield table(("quantity", "largest relative error"), rows)
