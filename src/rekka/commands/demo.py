"""``rekka demo``: the whole way, from raw tables to a selection, on a simulated inventory of the paper's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.report import report_run
from rekka.commands.study import continued, print_answer, print_study, watch
from rekka.core.terminal import new_console
from rekka.report.terminal.parts import print_line

DEMO_FOLDER = Path("rekka-demo")


def demo(
    folder: Annotated[Path, typer.Option(help="Where the simulated tables and the study go.")] = DEMO_FOLDER,
    seed: Annotated[int, typer.Option(help="The same seed draws the same inventory.")] = 20260924,
    verbose: options.Verbose = False,
) -> None:
    """Simulate an inventory, compare four scalings in ten components under both presets, and write the report.

    For example:

      rekka demo --folder demo
    """
    from rekka.simulation.inventory import is_simulated
    from rekka.study.run_folder import clear_run
    from rekka.study.runner import RunOptions
    from rekka.workflows.reports import begin_demo, report_paper

    console, errors = new_console(), new_console(stderr=True)
    again = folder == DEMO_FOLDER and is_simulated(folder)
    with errors.status("Drawing the inventory ..."):
        rekka.write_inventory(folder, seed=seed, force=again)
    run = folder / "study"
    if folder == DEMO_FOLDER:
        clear_run(run)
    with continued(errors, run) as count:
        with watch(errors, count) as (on_trial, on_choice, _):
            study = begin_demo(folder, run, RunOptions(on_trial=on_trial, on_choice=on_choice))
        page, document = report_run(errors, study, run)
        paper = report_paper(document, run)
    if verbose:
        print_study(console, study, run, page)
    else:
        print_answer(console, study, run, page, document)
    print_line(console, f"for researchers, with the paper's tables, figures and hypotheses: {paper}")
    print_line(console, f"next: rekka compare TABLE, with a table of your own; the simulated ones are in {folder}")
