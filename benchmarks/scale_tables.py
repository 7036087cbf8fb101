"""The large fit on the page on performance: its ways, the curve, its passes, its memory; from the stored run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.aims import LARGEST_EXPONENT
from benchmarks.reproduction_words import claim, table, wrap
from benchmarks.scale_fits import EQUAL, HELD, HELD_ONE, STREAMED
from benchmarks.scaling import LINEAR_FROM, Point, exponent
from rekka.core.errors import count_of
from rekka.report.text import MISSING

Stored = Mapping[str, Any]
Row = Mapping[str, Any]
GROWN = 1.3  # times the memory of a quarter of the rows: a reader's haste, not the rows
STAGES = {  # what the passes are for, in more words than a fit has for them
    "checking": "checking every value; ranges, counts",
    "means and deviations": "means and deviations, for the scaling",
    "coordinates": "coordinates: collinear covariates, orthonormal columns",
    "sample": "factors of each start and end, for separation; a sample",
    "likelihood": "likelihood with gradient and Hessian",
    "plateau": "rows of hardly any probability",
    "quantiles": "quantiles of the covariates",
}


def show(value: float | None, form: str = ",.1f") -> str:
    """One decimal, or another form; a dash where there is none."""
    return MISSING if value is None else format(value, form)


def significant(value: float | None, digits: int = 3) -> str:
    """'0.0123', '4.56', '7,890': so many digits, never a power of ten."""
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{decimals}f}"


def _by_way(stored: Stored) -> dict[str, Row]:
    return {one["way"]: one for one in stored["fits"]}


def tell_fits(stored: Stored) -> Iterator[str]:
    """The table of ways, what they agree on, and the aims."""
    fits, drawn = _by_way(stored), stored["drawn"]
    yield wrap(
        f"{drawn['rows']:,} transitions in {count_of(drawn['files'], 'Parquet file')} of "
        f"{drawn['megabytes'] / 1000:.2f} GB, drawn in {drawn['seconds']:.0f} s. Each fit is a process of its "
        "own and goes from the path of the folder to a certified maximum with standard errors: read and check "
        "the rows, scale by z-score, search for separation, Newton, other starts, certificate. Peak memory is "
        "that of the whole process, Python and all libraries included."
    )
    yield table(
        ("way", "seconds", "optimizer", "processor", "rows a second", "evaluations", "peak memory"),
        [_fit_row(one) for one in stored["fits"]],
    )
    missing = [one for one in stored["fits"] if one["seconds"] is None]
    for one in missing:
        yield wrap(f"{one['way']}: {one['note']}.")
    yield wrap(_agree(stored["agreement"]))
    held, alone = fits[HELD], fits[HELD_ONE]
    if held["seconds"] and alone["seconds"]:
        yield wrap(
            f"Two threads make the whole fit {alone['seconds'] / held['seconds']:.2f} times as fast as one, its "
            f"optimizer {alone['optimizer_seconds'] / held['optimizer_seconds']:.2f} times."
        )
    yield table(
        ("aim", "figure", "met"),
        [
            (one["aim"], one["figure"], {True: "yes", False: "no", None: MISSING}[one["met"]])
            for one in stored["aims"]
        ],
    )


def _fit_row(one: Row) -> tuple[str, ...]:
    if one["seconds"] is None:
        return (one["way"], *[MISSING] * 6)
    memory = f"{one['megabytes'] / 1000:.2f} GB"
    if one["workers_megabytes"]:
        memory += ", workers " + " and ".join(f"{each / 1000:.2f} GB" for each in one["workers_megabytes"])
    return (
        one["way"],
        f"{one['seconds']:.1f}",
        f"{one['optimizer_seconds']:.1f}",
        show(one["processor_seconds"]),
        f"{one['rows_a_second']:,.0f}",
        str(one["evaluations"]),
        memory,
    )


def _agree(agreement: Sequence[Row]) -> str:
    same = [one["way"] for one in agreement if one["largest"] == 0.0]
    near = [one for one in agreement if one["largest"] > 0.0]
    found = []
    if same:
        found.append(f"{_join(same)} {'give' if len(same) > 1 else 'gives'} exactly the same bits as {HELD}.")
    found += [
        claim(
            one["largest"] <= EQUAL,
            f"{one['way']} differs from it by {one['largest']:.0e} at most, relative: log-likelihood, "
            "coefficients and standard errors.",
        )
        for one in near
    ]
    return " ".join(found)


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{'; '.join(names[:-1])}; and {names[-1]}"


def tell_curve(stored: Stored) -> Iterator[str]:
    """One evaluation and one fit by rows."""
    points = list(stored["curve"])
    fits = _by_way(stored)
    held, alone = fits[HELD], fits[HELD_ONE]
    rows = [
        (
            f"{p['rows']:,}",
            *(show(p[f"ns_per_row_{t}"]) for t in ("1_thread", "2_threads")),
            *(significant(p[f"fit_seconds_{t}"]) for t in ("1_thread", "2_threads")),
            str(p["fit_evaluations"]),
        )
        for p in points
    ]
    rows.append(
        (
            f"{held['rows']:,}",
            show(alone["ns_per_row"]),
            show(held["ns_per_row"]),
            significant(alone["optimizer_seconds"]),
            significant(held["optimizer_seconds"]),
            str(held["evaluations"]),
        )
    )
    yield wrap(
        "One evaluation is value, gradient and Hessian together; a fit is its optimizer alone. Up to a million "
        "rows an evaluation is timed by itself, the fastest of many, on one thread in processor time; for the "
        "largest table it is the optimizer's seconds divided by rows and evaluations, which includes reading "
        "the columns again, block by block. Small tables gain nothing from a second thread: a block has at "
        "least 4,096 rows."
    )
    yield table(
        (
            "rows",
            "ns a row, 1 thread",
            "ns a row, 2 threads",
            "fit, s, 1 thread",
            "fit, s, 2 threads",
            "evaluations",
        ),
        rows,
    )
    power = exponent([Point(**point) for point in points])
    yield wrap(
        claim(
            power < LARGEST_EXPONENT,
            f"From {LINEAR_FROM:,} rows to {points[-1]['rows']:,} the cost of an evaluation grows with the rows "
            f"to the power {power:.2f}.",
        )
    )


def tell_passes(stored: Stored) -> Iterator[str]:
    """Seconds by stage, held and streamed side by side."""
    profiles = {one["way"]: one for one in stored["passes"]}
    held, streamed = profiles[HELD], profiles[STREAMED]
    stages = list(dict.fromkeys(p["stage"] for one in (held, streamed) for p in one["passes"]))
    yield wrap(
        "A large fit makes several passes over its rows, block by block; each pass adds up a sum, a range or a "
        "small factor of each block. The table gives the seconds of the passes by purpose, on two threads, with "
        "the rows held in memory and streamed from the files in every pass. Processor seconds add both threads."
    )
    yield table(
        ("stage", "passes", "held, s", "share", "processor, s", "streamed, s", "share", "processor, s"),
        [
            ("loading the columns", MISSING, *_part(held, held["loading"]), MISSING, *[MISSING] * 3),
            *(
                (STAGES.get(stage, stage), *_stage(held, stage), *_stage(streamed, stage)[1:])
                for stage in stages
            ),
            ("between the passes: Newton on the sample, and the rest", MISSING, *_part(held, held["between"]),
            MISSING, *_part(streamed, streamed["between"]), MISSING),
            ("**in all**", str(sum(one["passes"] for one in held["passes"])), *_part(held, held["seconds"]),
             MISSING, *_part(streamed, streamed["seconds"]), MISSING),
        ],
    )  # fmt: skip
    yield wrap(
        f"The optimizer's own seconds are {significant(held['optimizer'])} held and "
        f"{significant(streamed['optimizer'])} streamed. A pass that does nothing but read and check the rows "
        f"takes {significant(held['nothing'], 2)} s held and {significant(streamed['nothing'], 2)} s streamed: "
        "that part of every pass is reading."
    )


def _stage(profile: Row, stage: str) -> tuple[str, ...]:
    """Passes, seconds, share and processor seconds of one stage."""
    found = next((one for one in profile["passes"] if one["stage"] == stage), None)
    if found is None:
        return (MISSING,) * 4
    return str(found["passes"]), *_part(profile, found["seconds"]), f"{found['processor_seconds']:.2f}"


def _part(profile: Row, seconds: float) -> tuple[str, str]:
    return f"{seconds:.2f}", f"{seconds / profile['seconds']:.0%}"


def tell_memory(stored: Stored) -> Iterator[str]:
    """Bytes a row where rows are held; where they are streamed, that the peak does not grow with them."""
    fits, some = _by_way(stored), stored["quarter"]
    streamed = fits[STREAMED]["megabytes"]
    yield wrap(
        "Peak of the process after a first fit of 300,000 rows, which is Python, the libraries and the blocks at "
        "work, and after the fit of all rows; bytes a row are the difference divided by the rows."
    )
    held = [_memory_row(fits[way]) for way in (HELD, HELD_ONE) if fits[way]["seconds"] is not None]
    yield table(
        ("way", "rows", "before, MB", "after, MB", "bytes a row"),
        [
            *held,
            (STREAMED, f"{fits[STREAMED]['rows']:,}", show(fits[STREAMED]["base_megabytes"], ",.0f"),
             show(streamed, ",.0f"), MISSING),
            ("streamed", f"{some['rows']:,}", MISSING, f"{some['megabytes']:,.0f}", MISSING),
        ],
    )  # fmt: skip
    yield wrap(
        "In memory a row takes its columns as they are in the files: eight bytes for each of two states, years "
        "and covariates where they are 64-bit numbers, with no copy beyond the blocks at work. "
        + claim(
            streamed < GROWN * some["megabytes"],
            "Streamed, memory holds the blocks at work and those read ahead, and does not grow with the rows.",
        )
    )


def _memory_row(one: Row) -> tuple[str, ...]:
    more = 1e6 * (one["megabytes"] - one["base_megabytes"]) / one["rows"]
    peaks = f"{one['base_megabytes']:,.0f}", f"{one['megabytes']:,.0f}"
    return one["way"], f"{one['rows']:,}", *peaks, f"{more:.1f}"
