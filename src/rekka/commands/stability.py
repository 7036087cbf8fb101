"""``rekka stability``: whether other rows, another split or another start lead to the same choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import rekka
from rekka.commands import options
from rekka.commands.bars import BEFORE_FIRST, resumable, show_progress
from rekka.commands.options import Flag, asks
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import quote

if TYPE_CHECKING:
    from rekka.study.draws import Unit
    from rekka.study.stability import Stability

RESAMPLES = 200
FLAGS = (
    Flag("--resamples", int, "resamples", None, "Of each kind, for each component and preset.", RESAMPLES, 1),
    Flag("--kinds", options.Text, "kinds", "LIST",
         "bootstrap (bridges with replacement), splits (80 % of the bridges), seeds (solver starts); all three by "
         "default."),
    options.ONLY._replace(place="cases"),
    Flag("--workers", options.Number, "workers", None,
         "Processes that fit side by side. Default: all cores.", least=1),
    options.CLUSTER,
    Flag("--seed", options.Number, "seed", None, "Of the draws. Default: the study's.", least=0),
)  # fmt: skip


@asks(*FLAGS)
def stability(run: options.Run, asked: options.Asked, as_json: options.AsJson = False) -> None:
    """Refit a study's components to resamples and from other starts, to see which choices hold.

    For each component, how often each method reaches a maximum and is chosen. Confirmation rows are not used.
    Every resample is kept in the run folder: a stopped call can be continued, and more --resamples add only new
    ones.

    For example:

      rekka stability run

      rekka stability run --kinds bootstrap --resamples 1000 --only Pier

      rekka stability run --cluster tcp://host:8786
    """
    from rekka.report.terminal.study import print_stability

    with _watch(new_console(stderr=True), _spell(run, asked)) as on_unit:
        found = rekka.stability(run, **asked, on_unit=on_unit)
    if as_json:
        echo_json(_plain(found, run))
    else:
        print_stability(new_console(), found, run)


@contextmanager
def _watch(errors: Console, again: str) -> Iterator[Callable[[Unit, int, int], None]]:
    """Show a bar of draws; a call that is stopped ends with the command that continues it."""
    with resumable(errors, "draws", lambda: True, again) as count, show_progress(errors) as show:
        show("Draws", BEFORE_FIRST, 0, None)

        def on_unit(unit: Unit, done: int, planned: int) -> None:
            count(done, planned)
            show("Draws", f"{unit.case}, {unit.kind} ({unit.preset})", done, planned)

        yield on_unit


def _spell(run: Path, asked: options.Asked) -> str:
    """Command that continues these draws."""
    words = ["rekka stability", quote(run)]
    words += [] if asked["resamples"] == RESAMPLES else [f"--resamples {asked['resamples']}"]
    words += [f"--kinds {quote(','.join(asked['kinds']))}"] if "kinds" in asked else []
    words += [f"--only {quote(case)}" for case in asked.get("cases", ())]
    words += [f"--seed {asked['seed']}"] if "seed" in asked else []
    return " ".join(words)


def _plain(found: Stability, run: Path) -> dict[str, Any]:
    """Plain data of the tables, without refits."""
    asked = {"run": str(run), "kinds": found.kinds, "resamples": found.resamples, "seed": found.seed}
    tables = {name: table.to_dicts() for name, table in found.tables().items() if name != "refits"}
    return asked | tables | {"remarks": found.remarks()}
