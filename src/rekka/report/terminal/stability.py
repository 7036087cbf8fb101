"""A study's refits in a terminal: how often each method was chosen and reached a maximum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from rekka.core.errors import count_of
from rekka.report.terminal.parts import NOTHING, SELECTED, add_columns, group_columns, new_table, print_plain
from rekka.report.terminal.study import print_remarks
from rekka.study.stability import Stability

EXPLORATORY = "†"
MEANING = {
    "bootstrap": "bridges drawn with replacement, scored on the others",
    "splits": "80 % of the bridges, scored on the others",
    "seeds": "the training rows from random starts, scored on the validation rows",
}


def print_stability(console: Console, found: Stability, run: Path) -> None:
    """What was drawn; how often what was chosen and reached a maximum; what to look at; where the files are."""
    cases, methods = count_of(len(found.cases), "case"), count_of(len(found.study.plan.study.methods), "method")
    draws, refits = count_of(found.resamples, "draw"), count_of(len(found.refits), "refit")
    drawn = f"[bold]{cases} by {methods}, {draws} of each kind: {refits}[/], seed {found.seed}"
    console.print(f"{drawn}. No golden row was used.\n", highlight=False)
    for preset in found.study.plan.study.presets:
        for kind in found.kinds:
            _print_kind(console, found, preset, kind)
    kinds = "; ".join(f"{kind}: {MEANING[kind]}" for kind in found.kinds)
    console.print(
        f"{kinds}. {SELECTED} what the study chose. none: nothing was chosen. {EXPLORATORY} exploratory: "
        "fewer than 100 training rows, or than 5 events per parameter.\n",
        style="dim",
        highlight=False,
    )
    print_remarks(console, found.remarks())
    print_plain(
        console,
        f"\nThe draws are in {run / 'stability'}: selection.csv, methods.csv (spread of accuracy, log loss and "
        "cost), statuses.csv, cases.csv, refits.csv.",
    )


def _print_kind(console: Console, found: Stability, preset: str, kind: str) -> None:
    """Cases by methods; as many tables as the terminal's width asks for."""
    tables = (found.selection, found.methods)
    here = (table.filter(preset=preset, kind=kind) for table in tables)
    chosen, fitted = (table.rows_by_key(["case", "method"], named=True, unique=True) for table in here)
    methods = found.study.plan.study.methods
    small = {case for case, why in found.cases.select("case", "exploratory").rows() if why}
    lines = []
    for case in found.cases["case"]:
        cells = [_cell(chosen[case, method], fitted[case, method]["certified"]) for method in methods]
        lines.append([escape(case) + (f" {EXPLORATORY}" if case in small else ""), *cells])
        lines[-1].append(_percent(chosen[case, methods[0]]["none"]))
    for group in group_columns(console, [*methods, "none"], lines):
        table = new_table(f"{kind}, preset {preset}: chosen / maximum reached, %")
        add_columns(table, "case", *(name for _, name in group))
        for line in lines:
            table.add_row(line[0], *(line[place] for place, _ in group))
        console.print(table)
    console.print()


def _cell(chosen: dict[str, Any], certified: float) -> str:
    """'62 / 98*'."""
    text = f"{_percent(chosen['chosen'])} / {_percent(certified)}"
    return f"[bold]{text}{SELECTED}[/]" if chosen["in_study"] else f"{text} "


def _percent(share: float | None) -> str:
    """A share in whole percent; only none and all are 0 and 100."""
    if share is None:
        return NOTHING
    return str(min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share))
