"""``rekka compare``, ``rekka confirm``: from transitions to a choice, and its confirmation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import rekka
from rekka.commands import options
from rekka.commands.bars import BEFORE_FIRST, resumable, show_progress
from rekka.commands.checks import print_brief
from rekka.commands.options import Flag, asks, plans_study, reads_tables
from rekka.commands.report import report_run
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import list_commands, print_line, print_plain, quote

if TYPE_CHECKING:
    from rekka.report.document import Document
    from rekka.study.choice import Choice
    from rekka.study.rows import StudyRows
    from rekka.study.study import Study
    from rekka.study.trial import Trial

    Count = Callable[[int, int], None]
    OnTrial = Callable[[Trial, int, int], None]
    OnChoice = Callable[[Choice, int, int], None]
    OnModel = Callable[[str, int, int], None]

RUN = Path("rekka-run")
REFITTING = "refitting resamples"

Data = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[DATA]",
        help="Inspections or transitions (CSV, Excel, Parquet, a folder), or a study file (.toml). "
        "Without it, 600 simulated bridges.",
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
        bool, typer.Option("--report/--no-report", help="Write report.html into the run folder.")
    ] = True,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare methods: fit, time and score every component by every method, choose, and confirm the choice.

    Prints the answer: how many members, when, how far to trust it, what to do. --verbose and rekka show RUN print
    everything.

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

    if not data and resume is None:
        print_plain(errors, "No table given: these are simulated bridges.")
    with continued(errors, folder) as count:
        with watch(errors, count) as (on_trial, on_choice, on_model):
            act = begin_study if resume is None else continue_study
            how = RunOptions(**asked, on_trial=on_trial, on_choice=on_choice, on_rows=on_rows, on_model=on_model)
            study = act(Request(data or (), reader, plan), folder, how)
        page, document = report_run(errors, study, folder) if report and not large else (None, None)
    if as_json:
        echo_json(describe_run(study, folder) | {"report": None if page is None else str(page)})
    elif verbose:
        print_study(new_console(), study, folder, page)
    else:
        print_answer(new_console(), study, folder, page, document, large=bool(large))


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


def print_answer(
    console: Console,
    study: Study,
    folder: Path,
    page: Path | None,
    document: Document | None,
    *,
    large: bool = False,
) -> None:
    """Print the answer of a study, and the commands that say more; ``large`` rows are not read again for it."""
    from rekka.report.summarize import outline, summarize
    from rekka.report.terminal.overview import count_findings, print_overview
    from rekka.report.terminal.tables import WORDS

    if document is None:
        document = outline(study) if large else summarize(study)
    print_overview(console, document, page, folder)
    name = quote(folder)
    if large:
        print_plain(console, WORDS("terminal.study.large").replace("RUN", name))
    report = {} if page or large else {f"rekka report {name}": WORDS("terminal.study.more_report")}
    told = report | {
        f"rekka show {name}": WORDS("terminal.study.more_show"),
        f"rekka checks {name}": count_findings(document.findings),
        f"rekka stability {name}": WORDS("terminal.study.more_stability"),
    }
    for line in list_commands(told):
        print_line(console, line)


def print_study(console: Console, study: Study, folder: Path, page: Path | None) -> None:
    """Print everything: how the tables were read, what was selected and why, every trial, what to look at."""
    from rekka.report.terminal.study import print_all
    from rekka.report.terminal.tables import WORDS

    print_all(console, study)
    print_brief(console, rekka.check_study(study), folder)
    files = "study.toml runs it again, trials.csv has every trial, models/ every fit."
    print_plain(console, f"\nThe run is in {folder}: {files}")
    if page is not None:
        print_line(console, WORDS("terminal.page", page=page))


def continued(errors: Console, folder: Path) -> AbstractContextManager[Count]:
    """Count trials; a run that is stopped, also in its report, ends with the command that continues it."""
    again = f"rekka compare --resume {quote(folder)}"
    return resumable(errors, "trials", (folder / "study.toml").exists, again)


@contextmanager
def watch(errors: Console, count: Count) -> Iterator[tuple[OnTrial, OnChoice, OnModel]]:
    """Show bars of trials, choices and models."""
    with show_progress(errors) as show_bar:
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


def describe_run(study: Study, folder: Path) -> dict[str, Any]:
    """Plain data of a study, without its trials."""
    from dataclasses import asdict

    tables = ("methods", "selection", "verdicts", "optimism", "confirmation", "agreement", "presets", "floor")
    found = {name: getattr(study, name).to_dicts() for name in tables}
    judged = [asdict(one) for one in study.hypotheses]
    counts = {"run": str(folder), "done": len(study.trials), "planned": study.planned, "partition": study.scheme}
    findings = [finding.to_dict() for finding in rekka.check_study(study)]
    return counts | found | {"hypotheses": judged, "findings": findings}
