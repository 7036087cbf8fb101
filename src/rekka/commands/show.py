"""``rekka show``: everything about a run, a forecast, a backtest or fitted models, by the folder they are in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import rekka
from rekka.commands import options
from rekka.commands.checks import print_brief
from rekka.commands.study import describe_run
from rekka.core.terminal import echo_json, new_console
from rekka.report.terminal.parts import print_plain, quote

if TYPE_CHECKING:
    from rich.console import Console

    from rekka.study.study import Study

SECTIONS = (
    "overview", "reading", "cases", "methods", "selection", "verdicts", "confirmation", "elements", "calibration",
    "trials", "floor", "presets", "hypotheses", "findings",
)  # fmt: skip
FORECAST = "forecast"  # in a run folder


def show(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN_OR_FOLDER",
            help="A run folder; a folder of rekka forecast, rekka backtest or rekka fit; a model file.",
            show_default=False,
        ),
    ],
    section: Annotated[
        list[str] | None,
        typer.Option("--section", metavar="NAME", help=f"Of a run, only this: {', '.join(SECTIONS)}. Repeatable."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show all of a study, a forecast, a backtest or fitted models: tables, reasons, how it was read, findings.

    For example:

      rekka show run

      rekka show run --section trials --section presets

      rekka show run/forecast

      rekka show models
    """
    for name in section or ():
        if name not in SECTIONS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(SECTIONS)}", param_hint="--section")
    if section is None and _show_other(run, as_json=as_json):
        return
    study = rekka.load_study(run)
    if as_json:
        echo_json(describe_run(study, run) | {"trials": study.documents()["trials"]["trials"]})
        return
    console = new_console()
    if study.trials.is_empty():
        print_plain(console, f"No trial of {run.name} is done yet: rekka compare --resume {quote(run)}")
        return
    for name in section or ("all", "findings"):
        _print_section(console, name, study, run)
    if section is None and (run / FORECAST).is_dir():
        print_plain(console, f"The forecast: rekka show {quote(run / FORECAST)}")


def _print_section(console: Console, name: str, study: Study, run: Path) -> None:
    """Print a section of a study."""
    from rekka.report.terminal import study as terminal

    if name == "findings":
        print_brief(console, rekka.check_study(study), run)
    elif name == "overview":
        from rekka.report.terminal.overview import print_overview

        print_overview(console, rekka.make_report(study, calibrate=False).document, run=run)
    else:
        printers = {
            "all": terminal.print_all,
            "reading": terminal.print_reading,
            "cases": terminal.print_cases,
            "methods": terminal.print_methods,
            "selection": terminal.print_selection,
            "verdicts": terminal.print_verdicts,
            "confirmation": terminal.print_confirmation,
            "elements": terminal.print_elements,
            "calibration": terminal.print_calibration,
            "trials": terminal.print_trials,
            "floor": terminal.print_floor,
            "presets": terminal.print_presets,
            "hypotheses": terminal.print_hypotheses,
        }
        printers[name](console, study)


def _show_other(path: Path, *, as_json: bool) -> bool:
    """Show what is no run: a forecast, a backtest, models; False where it is none of these."""
    from rekka.core.folders import PLAN
    from rekka.fleet.backtest import is_backtest
    from rekka.fleet.models import is_model
    from rekka.fleet.store import is_forecast

    if (path / PLAN).exists():
        return False
    if is_forecast(path):
        _show_forecast(path, as_json=as_json)
    elif is_backtest(path):
        _show_backtest(path, as_json=as_json)
    elif any(map(is_model, [path] if path.is_file() else path.glob("*.json"))):
        _show_models(path, as_json=as_json)
    else:
        return False
    return True


def _show_forecast(folder: Path, *, as_json: bool) -> None:
    from rekka.fleet.document import load_forecast
    from rekka.report.terminal.forecast import print_forecast

    found = load_forecast(folder)
    if as_json:
        echo_json(found.model_dump(mode="json") | {"folder": str(folder)})
    else:
        print_forecast(new_console(), found)


def _show_backtest(folder: Path, *, as_json: bool) -> None:
    from rekka.fleet.backtest import load_backtest
    from rekka.report.terminal.forecast import print_backtest

    found = load_backtest(folder)
    if as_json:
        echo_json(found.to_dict())
    else:
        print_backtest(new_console(), found)


def _show_models(path: Path, *, as_json: bool) -> None:
    from rekka.commands.fit import print_component
    from rekka.study.models import load_models
    from rekka.workflows.fit import ComponentFit

    fits = []
    for one in load_models(path).models:
        file = path if path.is_file() else path / one.file
        model = rekka.ExponentialHazardMarkovModel.from_json(file.read_text(encoding="utf-8-sig"))
        fits.append(ComponentFit(one.name, one.fit.n_rows, one.labels, model, file=file))
    if as_json:
        echo_json([fit.to_dict() for fit in fits])
        return
    for fit in fits:
        print_component(new_console(), fit)
