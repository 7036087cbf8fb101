"""``rekka compare``, ``rekka show``, ``rekka confirm``: from transitions to a choice, and its confirmation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import rekka
from rekka.commands import telling
from rekka.commands.bars import new_bar
from rekka.commands.checks import print_brief
from rekka.commands.data import AsJson, Until
from rekka.commands.reading import Only, Reader, Use, reads_tables, split_list
from rekka.commands.report import print_place, report_run
from rekka.core.terminal import echo_json, new_console
from rekka.streaming.cluster.failures import ClusterError

if TYPE_CHECKING:
    from rekka.study.choosing import Choice
    from rekka.study.large import LargeRows
    from rekka.study.study import Study
    from rekka.study.trial import Trial

    OnTrial = Callable[[Trial, int, int], None]
    OnChoice = Callable[[Choice, int, int], None]

STOPPED = 130  # exit code
RUN = Path("rekka-run")
SECTIONS = (
    "cases", "methods", "selection", "verdicts", "confirmation", "calibration", "trials", "floor", "presets",
    "hypotheses",
)  # fmt: skip
BEFORE_FIRST = "starting"
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
Workers = Annotated[
    int,
    typer.Option(min=1, help="Processes that fit side by side. Timings are then taken afterwards, one by one."),
]


Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Fit on a Dask cluster: its scheduler's address, such as tcp://host:8786, or local or local:4 for "
        "worker processes on this machine.",
    ),
]


Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="How much memory may be used, such as 1GB: a table of transitions in Parquet may be larger. Default: "
        "half of what is free.",
    ),
]


@reads_tables
def compare(
    reader: Reader,
    data: Data = None,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run folder to make.")] = RUN,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was stopped or killed.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Scalings, such as zscore,boxcox+zscore; paper (max,minmax,zscore,boxcox; the default), beyond "
            "(boxcox+zscore,yeojohnson+zscore,log+zscore,robust), small (ridge,pooled) or all.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="exact (Newton, exact likelihood; the default), paper (its conditions) or both."
        ),
    ] = None,
    clock: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Where ages are taken: at the middle of each interval (the default of exact), or at its start "
            "(as in the paper; of paper and both).",
        ),
    ] = None,
    only: Only = None,
    use: Use = None,
    partition: Annotated[
        str | None,
        typer.Option(metavar="SCHEME", help="auto (the default), paper (visits 3 to 4; 4 to 5), bridge or date."),
    ] = None,
    until: Until = None,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How to choose: guarded (certified, stable, no less accurate, log loss not worse; the default) "
            "or pareto (the paper's, over accuracy and cost).",
        ),
    ] = None,
    select_on: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS",
            help="What methods are judged on: validation, folds, golden (optimistic), or auto: validation, folds "
            "where it is small, golden for --rule pareto.",
        ),
    ] = None,
    default: Annotated[
        str | None,
        typer.Option(metavar="METHOD", help="The method that others have to match. Default: zscore."),
    ] = None,
    accuracy_margin: Annotated[
        float | None, typer.Option(metavar="SHARE", help="How much less accurate is not lower. Default: 0.")
    ] = None,
    log_loss_margin: Annotated[
        float | None, typer.Option(metavar="NATS", help="How much more log loss is not worse. Default: 0.02.")
    ] = None,
    resamples: Annotated[
        int | None, typer.Option(min=0, help="Resamples in which a choice must reach a maximum. Default: 20.")
    ] = None,
    confirm: Annotated[
        bool | None,
        typer.Option("--confirm/--no-confirm", help="Score the choice on the golden rows, once (the default)."),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What accuracy is weighed against: seconds, evaluations or auto (the preset's; default).",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the split and of the start. Default: 20260924.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Timings of each trial. Default: 1.")] = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    memory: Memory = None,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html into the run folder (the default).")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Compare methods: fit, time and score every case by every method, choose, and confirm the choice.

    Methods are judged on validation rows; what was chosen is scored once on the golden rows, which nothing has
    seen. Everything is kept in a run folder: a run that was stopped or killed goes on with --resume.

    For example:

      rekka compare

      rekka compare inspections.xlsx --out run

      rekka compare transitions.parquet --preset both --methods all --out run2

      rekka compare transitions.parquet --rule pareto --preset paper --out as-in-the-paper

      rekka compare transitions.parquet --cluster tcp://host:8786 --out run3

      rekka compare nation/ --memory 1GB --out run4

      rekka compare --resume run
    """  # fmt: skip
    from rekka.study.request import Request, begin_study, continue_study

    split = {"scheme": partition or ("date" if until else None), "until": until, "seed": seed}
    trials = {
        "methods": split_list(methods),
        "presets": split_list(preset),
        "clock": clock,
        "cases": None if not only else tuple(only),
        "covariates": split_list(use),
        "rule": rule,
        "select_on": select_on,
        "confirm": confirm,
        "cost": cost,
        "seed": seed,
        "repeats": repeats,
    }
    guard = {
        "default": default,
        "accuracy_margin": accuracy_margin,
        "log_loss_margin": log_loss_margin,
        "resamples": resamples,
    }
    options = {"partition": _given(split), "study": _given(trials), "guard": _given(guard)}
    request = Request(data or (), reader.mapping, reader.changes, reader.nbi, reader.allow, options)
    folder = resume or out
    errors = new_console(stderr=True)
    large: list[str] = []  # cases that are gone through block by block

    def on_rows(rows: LargeRows) -> None:
        large.extend(rows.large)
        errors.print(rows.tell_memory(), highlight=False, markup=False)

    with watch(errors, folder) as (on_trial, on_choice):
        act = begin_study if resume is None else continue_study
        study = act(
            request,
            folder,
            workers=workers,
            cluster=cluster,
            memory=memory,
            on_trial=on_trial,
            on_choice=on_choice,
            on_rows=on_rows,
        )
    page = report_run(errors, study, folder) if report and not large else None
    if report and large:
        errors.print(_skip_report(folder), highlight=False, markup=False)
    if as_json:
        echo_json(_plain(study, folder) | {"report": None if page is None else str(page)})
    else:
        print_study(new_console(), study, folder, page)


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section", metavar="NAME", help=f"Only this: {', '.join(SECTIONS)} or findings. Repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a study: its cases, methods, selection, every trial, hypotheses and what to look at.

    For example:

      rekka show run

      rekka show run --section trials --section presets
    """
    study = rekka.load_study(run)
    if as_json:
        echo_json(_plain(study, run) | {"trials": study.documents()["trials"]["trials"]})
        return
    console = new_console()
    if study.trials.is_empty():
        console.print(
            f"No trial of {run.name} is done yet: rekka compare --resume {telling.quote(run)}",
            highlight=False,
            markup=False,
        )
        return
    if not section:
        telling.print_all(console, study)
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
            getattr(telling, f"print_{name}")(console, study)


def confirm(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    force: Annotated[
        bool, typer.Option("--force", help="Look a second time; the result is marked as such.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score what a study chose on its golden rows: once.

    rekka compare does this at its end, unless it was run with --no-confirm. A second look at the same golden rows,
    in this run or in one beside it, is no confirmation: whoever looks twice can choose the better of two.

    For example:

      rekka compare inspections.xlsx --no-confirm --out run

      rekka confirm run
    """
    study = rekka.confirm(run, force=force)
    if as_json:
        echo_json({"run": str(run), "looks": [look.model_dump(mode="json") for look in study.looks]})
        return
    telling.print_confirmation(new_console(), study)


def print_study(console: Console, study: Study, folder: Path, page: Path | None) -> None:
    """The closing summary: what converged, what was selected and why, what to look at, where the files are."""
    telling.print_headline(console, study)
    telling.print_methods(console, study)
    telling.print_selection(console, study)
    telling.print_floor(console, study)
    telling.print_confirmation(console, study)
    print_brief(console, rekka.check_study(study), folder)
    console.print(
        f"\nThe run is in {folder}: study.toml runs it again, trials.csv has every trial, models/ every fit.",
        highlight=False,
        markup=False,
    )
    if page is not None:
        print_place(console, page)
    name = telling.quote(folder)
    told = f"next: rekka stability {name}, then rekka report {name}" if page else f"next: rekka report {name}"
    console.print(told, highlight=False, markup=False)


@contextmanager
def watch(errors: Console, folder: Path) -> Iterator[tuple[OnTrial, OnChoice]]:
    """A bar of trials, then one of choices; a run that is interrupted ends with the way to go on."""
    finished = total = 0
    try:
        with new_bar(errors) as progress:
            task = progress.add_task(BEFORE_FIRST, total=None, what="Trials")

            def on_choice(choice: Choice, done: int, planned: int) -> None:
                told = f"{choice.case} ({choice.preset}): {choice.chosen or 'none'}"
                progress.update(task, what="Choices", completed=done, total=planned, description=told)

            def on_trial(trial: Trial, done: int, planned: int) -> None:
                nonlocal finished, total, task
                finished, total = done, planned
                progress.update(task, completed=done, total=planned, description=f"{trial.key}: {trial.status}")
                if done == planned:  # the first choice may take as long as all trials
                    progress.remove_task(task)
                    task = progress.add_task(REFITTING, total=None, what="Choices")

            yield on_trial, on_choice
    except KeyboardInterrupt:
        told = f"Stopped{f' after {finished} of {total} trials' if total else ''}. {_go_on(folder)}"
        errors.print(told, highlight=False, markup=False)
        raise typer.Exit(STOPPED) from None
    except (OSError, ClusterError):
        if (folder / "study.toml").exists():
            errors.print(f"What is done is kept. {_go_on(folder)}", highlight=False, markup=False)
        raise


def _skip_report(folder: Path) -> str:
    return (
        f"No report yet: it reads all rows into memory. Where there is room: rekka report {telling.quote(folder)}"
    )


def _go_on(folder: Path) -> str:
    if (folder / "study.toml").exists():
        return f"Go on with: rekka compare --resume {telling.quote(folder)}"
    return "Nothing was begun yet."


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _plain(study: Study, folder: Path) -> dict[str, Any]:
    """A study as plain data."""
    from dataclasses import asdict

    tables = ("methods", "selection", "verdicts", "optimism", "confirmation", "agreement", "presets", "floor")
    found = {name: getattr(study, name).to_dicts() for name in tables}
    judged = [asdict(one) for one in study.hypotheses]
    counts = {"run": str(folder), "done": len(study.trials), "planned": study.planned, "partition": study.scheme}
    findings = [finding.to_dict() for finding in rekka.check_study(study)]
    return counts | found | {"hypotheses": judged, "findings": findings}
