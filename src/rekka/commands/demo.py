"""``rekka demo``: the whole way, from raw tables to a selection, on a simulated inventory of the paper's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import rekka
from rekka.commands.checks import print_brief
from rekka.commands.report import print_place, report_run
from rekka.commands.study import watch
from rekka.core.files import has_mark
from rekka.core.terminal import new_console
from rekka.report.terminal.parts import print_plain, quote

DEMO_FOLDER = Path("rekka-demo")
TRUTH_MARK = b'"formula": "The hazard of leaving state k'  # in the file beside every simulated inventory


def demo(
    folder: Annotated[Path, typer.Option(help="Where the simulated tables and the study go.")] = DEMO_FOLDER,
    seed: Annotated[int, typer.Option(help="The same seed draws the same inventory.")] = 20260924,
) -> None:
    """Simulate an inventory, compare four scalings in ten components under both presets, and write the report.

    Example: rekka demo --folder demo
    """
    from rekka.report.terminal.study import print_all
    from rekka.study.compare import Request, begin_study
    from rekka.study.run_folder import clear_run
    from rekka.study.runner import RunOptions

    console, errors = new_console(), new_console(stderr=True)
    truth = folder / "truth.json"
    again = folder == DEMO_FOLDER and truth.is_file() and has_mark(TRUTH_MARK)(truth)
    with errors.status("Drawing the inventory ..."):
        rekka.write_inventory(folder, seed=seed, force=again)
    run = folder / "study"
    if folder == DEMO_FOLDER:
        clear_run(run)
    options: dict[str, dict[str, Any]] = {"partition": {"scheme": "paper"}, "study": {"presets": ("both",)}}
    with watch(errors, run) as (on_trial, on_choice, _):
        how = RunOptions(on_trial=on_trial, on_choice=on_choice)
        study = begin_study(Request([folder], options=options), run, how)
    page = report_run(errors, study, run)
    print_all(console, study)
    print_brief(console, rekka.check_study(study), run)
    print_plain(
        console,
        f"\nThe raw tables are in {folder}, the study in {run}: study.toml runs it again, trials.csv has every "
        "trial, models/ every fit.",
    )
    print_place(console, page)
    forecast = f"rekka forecast {quote(run)} {quote(folder)}"
    print_plain(console, f"next: {forecast}, then rekka compare with a table of your own")
