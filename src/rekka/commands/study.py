"""``rekka compare``, ``rekka show``: from transitions to a selection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import rekka
from rekka.commands import telling
from rekka.commands.data import AsJson, Until, echo_json
from rekka.commands.reading import Only, Reader, Use, reads_tables, split_list

if TYPE_CHECKING:
    from rekka.study.study import Study
    from rekka.study.trial import Trial

STOPPED = 130  # exit code
RUN = Path("rekka-run")
SECTIONS = ("cases", "methods", "selection", "trials", "floor", "presets", "hypotheses")
BEFORE_FIRST = "starting (half a minute on first use)"

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
            "(boxcox+zscore,yeojohnson+zscore,log+zscore,robust) or all.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="exact (Newton, exact likelihood; the default), paper (its conditions) or both."
        ),
    ] = None,
    only: Only = None,
    use: Use = None,
    partition: Annotated[
        str | None,
        typer.Option(metavar="SCHEME", help="auto (the default), paper (visits 3 to 4; 4 to 5), bridge or date."),
    ] = None,
    until: Until = None,
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
    as_json: AsJson = False,
) -> None:
    """Compare scaling methods: fit, time and score every case by every method, and select.

    Everything is kept in a run folder, trial by trial: a run that was stopped or killed goes on with --resume.

    For example:

      rekka compare

      rekka compare inspections.xlsx --out run

      rekka compare transitions.parquet --preset both --methods all --out run2

      rekka compare --resume run
    """  # fmt: skip
    from rekka.study.request import Request, begin_study, continue_study

    split = {"scheme": partition or ("date" if until else None), "until": until, "seed": seed}
    trials = {
        "methods": split_list(methods),
        "presets": split_list(preset),
        "cases": None if not only else tuple(only),
        "covariates": split_list(use),
        "cost": cost,
        "seed": seed,
        "repeats": repeats,
    }
    options = {"partition": _given(split), "study": _given(trials)}
    request = Request(data or (), reader.mapping, reader.changes, reader.nbi, options)
    folder = resume or out
    errors = Console(stderr=True)
    with watch(errors, folder) as on_trial:
        act = begin_study if resume is None else continue_study
        study = act(request, folder, workers=workers, on_trial=on_trial)
    if as_json:
        echo_json(_plain(study, folder))
    else:
        print_study(Console(), study, folder)


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section", metavar="NAME", help=f"Only this: {', '.join(SECTIONS)} or remarks. Repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a study: its cases, methods, selection, every trial, hypotheses and what to look at.

    For example:

      rekka show run

      rekka show run --section trials --section presets
    """
    from rekka.study.remarks import remark

    study = rekka.load_study(run)
    if as_json:
        echo_json(_plain(study, run) | {"trials": study.documents()["trials"]["trials"]})
        return
    console = Console()
    if study.trials.is_empty():
        console.print(
            f"No trial of {run.name} is done yet: rekka compare --resume {telling.quote(run)}",
            highlight=False,
            markup=False,
        )
        return
    if not section:
        telling.print_all(console, study, remark(study))
        return
    for name in section:
        if name not in (*SECTIONS, "remarks"):
            raise typer.BadParameter(f"{name!r} is none of {', '.join(SECTIONS)}, remarks", param_hint="--section")
        if name == "remarks":
            telling.print_remarks(console, remark(study))
        else:
            getattr(telling, f"print_{name}")(console, study)


def print_study(console: Console, study: Study, folder: Path) -> None:
    """The closing summary: what converged, what was selected and why, what to look at, where the files are."""
    from rekka.study.remarks import remark

    telling.print_headline(console, study)
    telling.print_methods(console, study)
    telling.print_selection(console, study)
    telling.print_floor(console, study)
    telling.print_remarks(console, remark(study))
    console.print(
        f"\nThe run is in {folder}: study.toml runs it again, trials.csv has every trial, models/ every fit.\n"
        f"next: rekka show {telling.quote(folder)}",
        highlight=False,
        markup=False,
    )


@contextmanager
def watch(errors: Console, folder: Path) -> Iterator[Callable[[Trial, int, int], None]]:
    """A bar of trials; a run that is interrupted ends with the way to go on."""
    columns = (
        TextColumn("Trials"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    finished = total = 0
    try:
        with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
            task = progress.add_task(BEFORE_FIRST, total=None)

            def on_trial(trial: Trial, done: int, planned: int) -> None:
                nonlocal finished, total
                finished, total = done, planned
                progress.update(task, completed=done, total=planned, description=f"{trial.key}: {trial.status}")

            yield on_trial
    except KeyboardInterrupt:
        told = f"Stopped{f' after {finished} of {total} trials' if total else ''}. {_go_on(folder)}"
        errors.print(told, highlight=False, markup=False)
        raise typer.Exit(STOPPED) from None
    except OSError:
        if (folder / "study.toml").exists():
            errors.print(f"What is done is kept. {_go_on(folder)}", highlight=False, markup=False)
        raise


def _go_on(folder: Path) -> str:
    if (folder / "study.toml").exists():
        return f"Go on with: rekka compare --resume {telling.quote(folder)}"
    return "Nothing was begun yet."


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _plain(study: Study, folder: Path) -> dict[str, Any]:
    """A study as plain data."""
    from dataclasses import asdict

    from rekka.study.remarks import remark

    tables = ("methods", "selection", "agreement", "presets", "floor")
    found = {name: getattr(study, name).to_dicts() for name in tables}
    judged = [asdict(one) for one in study.hypotheses]
    counts = {"run": str(folder), "done": len(study.trials), "planned": study.planned, "partition": study.scheme}
    return counts | found | {"hypotheses": judged, "remarks": remark(study)}
