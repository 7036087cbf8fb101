"""The page on performance, of a stored run alone: what stands where."""

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
        "## The distance to the machine's limits",
        *tell_machine(stored),
        "## Beside msm and the paper's way",
        *tell_rivals(stored),
        "## A thousand refits",
        *tell_refits(stored),
        "## Starting, and the cache of what is compiled",
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
            "What rekka costs: seconds and memory of a large fit, by row, state, covariate, jump and thread; "
            "where the time goes; how far that is from what the machine can do at best; and what others need for "
            "the same. `python -m benchmarks.scale` measures all of it, stores it in "
            "[benchmarks/results](../benchmarks/results/scale.json) and writes this page from there: no measured "
            "number was typed by hand."
        ),
        wrap(
            f"Measured {' and '.join(days)} on one machine ({setting['processor']}, {setting['cores']} cores), "
            f"with rekka {versions['rekka']}, Python {versions['python']}, NumPy {versions['numpy']}, Numba "
            f"{versions['numba']}, Polars {versions['polars']}{rival}. The load average when a part began was "
            f"{show_range(list(stored['load'].values()), '{:.1f}'.format)}: where it is not near 0, others were "
            "using the cores as well, and seconds are too high rather than too low. Ratios of one run are what "
            "counts. Rows are simulated, K = 5 with four covariates unless another number is said; compiling is "
            "never on a clock, but for the table on starting."
        ),
    ]


def _repeat() -> list[str]:
    return [
        "```\npython -m benchmarks.scale\n```",
        *bullets(
            [
                "`--quick` exercises everything on few rows in a minute or two and stores nothing.",
                "`--only PART` measures one part anew (fits, curve, costs, rivals, refits or start) and stores it "
                "beside the others, with its own date and load.",
                "`--page` writes this page from what is stored; a test compares the two.",
                "Without R and msm the rest still runs, and so it does without the `cluster` extra.",
            ]
        ),
    ]
