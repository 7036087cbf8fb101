"""``rekka compare``, ``rekka show``, ``rekka fit``: from transitions to a selection, and to fitted models."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import rekka
from rekka.commands import telling
from rekka.commands.data import AsJson, Tables, Until, echo_json
from rekka.commands.reading import Reader, reads_tables
from rekka.errors import BadOption, MissingColumns, count_of, no_such_case

if TYPE_CHECKING:
    from rekka.study.study import Study
    from rekka.study.trial import Trial

STOPPED = 130
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
Use = Annotated[
    str | None,
    typer.Option("--use", metavar="LIST", help="Only these covariates, such as age_at_inspection_1,traffic_mean."),
]
Only = Annotated[list[str] | None, typer.Option("--only", metavar="CASE", help="Only this case. Repeatable.")]


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
            help="What accuracy is weighed against: seconds, evaluations or auto (the preset's; default)."
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
        "methods": _split(methods),
        "presets": _split(preset),
        "cases": None if not only else tuple(only),
        "covariates": _split(use),
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
            f"No trial of {run.name} is done yet: rekka compare --resume {quote(run)}",
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


@reads_tables
def fit(
    tables: Tables,
    reader: Reader,
    scaling: Annotated[
        str, typer.Option(help="Scaling of the covariates, such as zscore or boxcox+zscore.")
    ] = "zscore",
    only: Only = None,
    use: Use = None,
    ridge: Annotated[float, typer.Option(min=0, help="Penalty on slopes, in z-scored units.")] = 0.0,
    unit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Unit of a hazard ratio, such as traffic_mean=1000. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where the models go: a .json file for one case, a folder for several."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the model to all rows of each case: coefficients in native units, hazard ratios, certificate.

    Standard errors are clustered by bridge. Beside the models stand their coefficients as CSV.

    For example:

      rekka fit transitions.csv --only "Main girder" --out girder.json

      rekka fit inspections.xlsx --unit age_at_inspection_1=10 --unit traffic_mean=1000 --out models
    """
    units = dict(_read_unit(text) for text in unit or ())
    errors, console = Console(stderr=True), Console()
    with errors.status(f"Reading {escape(tables[0].name)} ..."):
        found = reader.transitions(tables)
    if found.frame.is_empty():
        errors.print(f"No two visits make a transition. rekka check {quote(tables[0])} says why.", markup=False)
        raise typer.Exit(1)
    cases = _choose(found.frame["case"].unique().sort().to_list(), only)
    files = _place_models(cases, out)
    told, coefficients, failed = [], [], 0
    for case in cases:
        rows = found.frame.filter(case=case)
        names = [name for name in _split(use) or found.covariates if name not in rows or rows[name].n_unique() > 1]
        model = rekka.ExponentialHazardMarkovModel(scaling, ridge=ridge, covariates=names, units=units or None)
        try:
            with errors.status(f"Fitting {escape(case)} ..."):
                model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())
        except (MissingColumns, BadOption):
            raise
        except rekka.InputError as error:  # of this case; the others go on
            failed += 1
            errors.print(f"{case} cannot be fitted: {error}\n", highlight=False, markup=False)
            told.append({"case": case, "reason": str(error)})
            continue
        if case in files:
            files[case].parent.mkdir(parents=True, exist_ok=True)
            files[case].write_text(model.to_json() + "\n", encoding="utf-8")
        coefficients += [{"case": case} | row for row in model.summary().to_dicts()]
        told.append(_describe_model(case, model) | {"file": str(files[case]) if case in files else None})
        if not as_json:
            _print_model(console, case, len(rows), model)
    written = _write_coefficients(coefficients, out) if out is not None and coefficients else None
    if as_json:
        echo_json(told)
    elif written is None:
        console.print("Nothing was written; --out says where.", highlight=False)
    else:
        models = f"{out} (the model{'s' if len(files) > 1 else ''})"
        console.print(f"written: {models}, {written}", highlight=False, markup=False)
    if failed:
        raise typer.Exit(1)


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
        f"next: rekka show {quote(folder)}",
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


def quote(path: Path) -> str:
    """A path as a shell reads it."""
    return shlex.quote(str(path))


def _go_on(folder: Path) -> str:
    if (folder / "study.toml").exists():
        return f"Go on with: rekka compare --resume {quote(folder)}"
    return "Nothing was begun yet."


def _split(names: str | None) -> tuple[str, ...] | None:
    """A list in an option."""
    return None if names is None else tuple(name.strip() for name in names.split(","))


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


def _read_unit(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not like traffic_mean=1000", param_hint="--unit") from None


def _choose(there: list[str], only: list[str] | None) -> list[str]:
    for name in only or ():
        if name not in there:
            raise no_such_case(name, there)
    return list(dict.fromkeys(only or there))


def _place_models(cases: list[str], out: Path | None) -> dict[str, Path]:
    """The file of each case's model."""
    if out is None:
        return {}
    if out.suffix.lower() == ".json":
        if len(cases) > 1:
            raise BadOption(
                f"{out.name} is one file, and there are {count_of(len(cases), 'case')}. Give a folder, or --only."
            )
        return {cases[0]: out}
    taken: dict[str, Path] = {}
    for case in cases:
        slug = re.sub(r"[^\w]+", "-", case.lower()).strip("-") or "case"
        names = (f"{slug}{f'-{number}' if number else ''}.json" for number in range(len(cases) + 1))
        taken[case] = next(out / name for name in names if out / name not in taken.values())
    return taken


def _describe_model(case: str, model: Any) -> dict[str, Any]:
    """A fitted model as plain data."""
    return {
        "case": case,
        "states": model.n_states_,
        "log_likelihood": model.log_likelihood_,
        "certificate": str(model.certificate_.verdict),
        "reasons": model.certificate_.reasons,
        "coefficients": model.summary().to_dicts(),
    }


def _write_coefficients(coefficients: list[dict[str, Any]], out: Path) -> Path:
    """All coefficients as a table that Excel opens."""
    import polars as pl

    path = out.with_suffix(".csv") if out.suffix.lower() == ".json" else out / "coefficients.csv"
    pl.DataFrame(coefficients, infer_schema_length=None).write_csv(path, include_bom=True)
    return path


def _print_model(console: Console, case: str, rows: int, model: Any) -> None:
    """Coefficients and certificate."""
    scale = "native units" if model.coefficient_scale_ == "native" else f"units of {model.coefficient_scale_}"
    table = telling.new_table(
        f"{escape(case)}: {count_of(rows, 'row')}, {model.n_states_} states, log-likelihood "
        f"{model.log_likelihood_:.4f}; {scale}"
    )
    telling.add_columns(table, "state", "term", "estimate", "std.err.", "ratio", "95 % interval", "per")
    table.columns[1].justify = "left"
    for row in model.summary().to_dicts():
        ratio = (row["hazard_ratio"], row["hr_low"], row["hr_high"])
        shown = "", "", ""
        if row["hazard_ratio"] is not None:
            middle, low, high = (f"{value:.4g}" for value in ratio)
            shown = middle, f"{low} to {high}", f"{row['unit']:g}"
        table.add_row(str(row["state"]), escape(row["term"]), f"{row['estimate']:.4g}", f"{row['se']:.2g}", *shown)
    console.print(table)
    console.print("ratio: of the hazard of leaving the state, for so many units more (per).", style="dim")
    console.print(escape(str(model.certificate_)), highlight=False)
    console.print()
