"""``rekka compare``, ``rekka show``, ``rekka confirm``: from transitions to a choice, and its confirmation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import rekka
from rekka.commands import options
from rekka.commands.bars import BEFORE_FIRST, resumable, show_progress
from rekka.commands.checks import print_brief
from rekka.commands.options import Flag, asks, plans_study, reads_tables
from rekka.commands.report import print_place, report_run
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_plain, quote

if TYPE_CHECKING:
    from rekka.study.choice import Choice
    from rekka.study.rows import StudyRows
    from rekka.study.study import Study
    from rekka.study.trial import Trial

    OnTrial = Callable[[Trial, int, int], None]
    OnChoice = Callable[[Choice, int, int], None]
    OnModel = Callable[[str, int, int], None]

RUN = Path("rekka-run")
SECTIONS = (
    "cases", "methods", "selection", "verdicts", "confirmation", "elements", "calibration", "trials", "floor",
    "presets", "hypotheses",
)  # fmt: skip
REFITTING = "refitting resamples"

Data = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[DATA]",
        help="Inspections or transitions (CSV, Excel, Parquet, a folder), or a study file (.toml). "
        "Without it, the built-in inventory.",
        show_default=False,
    ),
]


@reads_tables
@plans_study
@asks(
    Flag("--workers", int, "workers", None,
         "Processes that fit side by side. Timings are then taken afterwards, one by one.", 1, 1),
    options.CLUSTER, options.MEMORY,
)  # fmt: skip
def compare(
    reader: options.Reader,
    data: Data = None,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run folder to make.")] = RUN,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="Continue a run that was stopped or killed.")
    ] = None,
    *,
    plan: dict[str, Any],
    asked: options.Asked,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html into the run folder (the default).")
    ] = True,
    as_json: options.AsJson = False,
) -> None:
    """Compare methods: fit, time and score every component by every method, choose, and confirm the choice.

    The choice is made on validation rows; the chosen method is scored once on the confirmation rows, which nothing
    has used before. Everything is kept in a run folder: --resume continues a run that was stopped or killed.

    For example:

      rekka compare

      rekka compare inspections.xlsx --out run

      rekka compare transitions.parquet --preset both --methods all --out run2

      rekka compare inspections.xlsx --models auto --out run5

      rekka compare transitions.parquet --rule pareto --preset paper --out as-in-the-paper

      rekka compare transitions.parquet --cluster tcp://host:8786 --out run3

      rekka compare nation/ --memory 1GB --out run4

      rekka compare --resume run
    """  # fmt: skip
    from rekka.study.compare import Request, begin_study, continue_study
    from rekka.study.runner import RunOptions

    folder = resume or out
    errors = new_console(stderr=True)
    large: list[str] = []  # cases that are gone through block by block

    def on_rows(rows: StudyRows) -> None:
        large.extend(rows.large)
        print_plain(errors, rows.tell_memory())

    with watch(errors, folder) as (on_trial, on_choice, on_model):
        act = begin_study if resume is None else continue_study
        how = RunOptions(**asked, on_trial=on_trial, on_choice=on_choice, on_rows=on_rows, on_model=on_model)
        study = act(Request(data or (), reader, plan), folder, how)
    page = report_run(errors, study, folder) if report and not large else None
    if report and large:
        told = "No report yet: it reads all rows into memory. Where there is room: rekka report"
        print_plain(errors, f"{told} {quote(folder)}")
    if as_json:
        echo_json(_plain(study, folder) | {"report": None if page is None else str(page)})
    else:
        print_study(new_console(), study, folder, page)


def show(
    run: options.Run,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section", metavar="NAME", help=f"Only this: {', '.join(SECTIONS)} or findings. Repeatable."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a study: its components, methods, selection, every trial, hypotheses and what to look at.

    For example:

      rekka show run

      rekka show run --section trials --section presets
    """
    from rekka.report.terminal import study as terminal

    study = rekka.load_study(run)
    if as_json:
        echo_json(_plain(study, run) | {"trials": study.documents()["trials"]["trials"]})
        return
    console = new_console()
    if study.trials.is_empty():
        print_plain(console, f"No trial of {run.name} is done yet: rekka compare --resume {quote(run)}")
        return
    if not section:
        terminal.print_all(console, study)
        print_brief(console, rekka.check_study(study), run)
        return
    for name in section:
        if name not in (*SECTIONS, "findings"):
            raise typer.BadParameter(
                f"{name!r} is none of {', '.join(SECTIONS)}, findings", param_hint="--section"
            )
        if name == "findings":
            print_brief(console, rekka.check_study(study), run)
        else:
            getattr(terminal, f"print_{name}")(console, study)


def confirm(
    run: options.Run,
    force: Annotated[
        bool, typer.Option("--force", help="Look a second time; the result is marked as such.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Score what a study chose on its confirmation rows, once.

    rekka compare does this at its end, unless it was run with --no-confirm. A second look at the same rows, in
    this run or in another run of the same parent folder, is refused: it would allow choosing the better of two.

    For example:

      rekka compare inspections.xlsx --no-confirm --out run

      rekka confirm run
    """
    from rekka.report.terminal.study import print_confirmation

    study = rekka.confirm(run, force=force)
    if as_json:
        echo_json({"run": str(run), "looks": [look.model_dump(mode="json") for look in study.looks]})
        return
    print_confirmation(new_console(), study)


def print_study(console: Console, study: Study, folder: Path, page: Path | None) -> None:
    """Print the closing summary: what converged, what was selected and why, what to look at, where files are."""
    from rekka.report.terminal import study as terminal

    sections = (terminal.print_headline, terminal.print_methods, terminal.print_selection, terminal.print_floor)
    for section in (*sections, terminal.print_confirmation, terminal.print_elements):
        section(console, study)
    print_brief(console, rekka.check_study(study), folder)
    files = "study.toml runs it again, trials.csv has every trial, models/ every fit."
    print_plain(console, f"\nThe run is in {folder}: {files}")
    if page is not None:
        print_place(console, page)
    name = quote(folder)
    told = f"next: rekka stability {name}, then rekka report {name}" if page else f"next: rekka report {name}"
    print_plain(console, told)


@contextmanager
def watch(errors: Console, folder: Path) -> Iterator[tuple[OnTrial, OnChoice, OnModel]]:
    """Show bars of trials, choices and models; a run that is stopped ends with the command that continues it."""
    again, plan = f"rekka compare --resume {quote(folder)}", folder / "study.toml"
    with resumable(errors, "trials", plan.exists, again) as count, show_progress(errors) as show_bar:
        show_bar("Trials", BEFORE_FIRST, 0, None)

        def on_choice(choice: Choice, done: int, planned: int) -> None:
            show_bar("Choices", f"{choice.case} ({choice.preset}): {choice.chosen or 'none'}", done, planned)

        def on_trial(trial: Trial, done: int, planned: int) -> None:
            count(done, planned)
            show_bar("Trials", f"{trial.key}: {trial.status}", done, planned)
            if done == planned:  # the first choice may take as long as all trials
                show_bar("Choices", REFITTING, 0, None)

        def on_model(what: str, done: int, total: int) -> None:
            show_bar("Models", what, done, total or None)

        yield on_trial, on_choice, on_model


def _plain(study: Study, folder: Path) -> dict[str, Any]:
    """Plain data of a study."""
    from dataclasses import asdict

    tables = ("methods", "selection", "verdicts", "optimism", "confirmation", "agreement", "presets", "floor")
    found = {name: getattr(study, name).to_dicts() for name in tables}
    judged = [asdict(one) for one in study.hypotheses]
    counts = {"run": str(folder), "done": len(study.trials), "planned": study.planned, "partition": study.scheme}
    findings = [finding.to_dict() for finding in rekka.check_study(study)]
    return counts | found | {"hypotheses": judged, "findings": findings}
