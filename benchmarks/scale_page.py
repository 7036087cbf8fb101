"""The page on performance, written from stored results alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.reproduction_words import bullets, show_range, wrap
from benchmarks.scale_cost_tables import (
    tell_limits,
    tell_machine,
    tell_refits,
    tell_rivals,
    tell_row_costs,
    tell_start,
)
from benchmarks.scale_tables import tell_curve, tell_fits, tell_memory, tell_passes
from benchmarks.stored_results import describe_accuracy, describe_pairing, describe_small_fits, describe_study

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
Stored = Mapping[str, Any]


def write_page(stored: Stored) -> str:
    """The page; where a sentence that draws a conclusion no longer holds, there is none."""
    parts = [
        *_introduce(stored),
        "## A nation's inventory",
        *tell_fits(stored),
        "## From a thousand rows to twenty million",
        *tell_curve(stored),
        "## Where the time goes",
        *tell_passes(stored),
        "## What a row costs",
        *tell_row_costs(stored),
        "## Memory",
        *tell_memory(stored),
        "## Compared with the machine's limits",
        *tell_machine(stored),
        "## The largest tables of msm and the paper's way",
        *tell_rivals(stored),
        "## A thousand refits",
        *tell_refits(stored),
        "## Small fits, msm and the paper's way",
        *describe_small_fits(),
        *describe_study(),
        "## Pairing inspections",
        *describe_pairing(),
        "## Numerical accuracy",
        *describe_accuracy(),
        "## Start-up time and the compilation cache",
        *tell_start(stored),
        "## Limits",
        *tell_limits(),
        "## Repeat it",
        *_repeat(),
    ]
    return "\n\n".join(parts) + "\n"


def _introduce(stored: Stored) -> list[str]:
    settings = stored["configurations"]
    setting = settings["fits"]
    versions = setting["versions"]
    days = sorted({one["date"][:10] for one in settings.values()})
    rival = f", R {versions['R']} and msm {versions['msm']}" if "msm" in versions else ""
    return [
        "# Performance",
        wrap(
            "Seconds and memory of large and small fits, where the time goes, how close that is to the limits "
            "of the machine, and what R's msm and the paper's way need for the same rows. `python -m "
            "benchmarks.scale` measures the large fits, stores them in "
            "[scale.json](../benchmarks/results/scale.json) and writes this page from the stored results; no "
            "measured number was typed by hand."
        ),
        wrap(
            f"Measured {' and '.join(days)} on one machine ({setting['processor']}, {setting['cores']} cores), "
            f"with rekka {versions['rekka']}, Python {versions['python']}, NumPy {versions['numpy']}, Numba "
            f"{versions['numba']}, Polars {versions['polars']}{rival}. The load average when a part began was "
            f"{show_range(list(stored['load'].values()), '{:.1f}'.format)}: where it is not near 0, others were "
            "using the cores too, and the seconds are too high. Compare ratios within one run rather than seconds "
            "between runs. Rows are simulated, with K = 5 states and four covariates unless stated otherwise; "
            "compilation is never timed, except in the table on starting."
        ),
    ]


def _repeat() -> list[str]:
    return [
        "```\npython -m benchmarks.scale\n```",
        *bullets(
            [
                "`--quick` exercises everything on few rows in a minute or two and stores nothing.",
                "`--only PART` measures one part again (fits, curve, costs, rivals, refits or start) and stores "
                "it with the others, with its own date and load.",
                "`--page` writes this page from what is stored; a test compares the two.",
                "Without R and msm, or without the `cluster` extra, the rest still runs.",
            ]
        ),
    ]
