"""The command line: the commands together, and what becomes of their errors."""

from __future__ import annotations

import atexit
import functools
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import rekka
from rekka.commands import data, study
from rekka.commands.backtest import backtest
from rekka.commands.checks import checks
from rekka.commands.demo import demo
from rekka.commands.effects import effects
from rekka.commands.fit import fit
from rekka.commands.forecast import forecast
from rekka.commands.matrix import matrix
from rekka.commands.report import report
from rekka.commands.stability import stability
from rekka.commands.study import STOPPED

CANNOT_GO_ON, WRONG_USAGE = 1, 2  # exit codes

app = typer.Typer(
    name="rekka",
    help="Deterioration models you can trust, from infrastructure inspection records.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rekka {rekka.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Deterioration models you can trust, from infrastructure inspection records."""


def _register(command: Callable[..., None]) -> None:
    """Add a command whose wrong inputs end in a sentence and an exit code, not in a traceback."""

    @functools.wraps(command)
    def guarded(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(STOPPED) from None
        except rekka.InputError as error:
            typer.echo(f"{type(error).__name__}: {error}", err=True)
            raise typer.Exit(WRONG_USAGE if type(error).__name__ == "BadOption" else CANNOT_GO_ON) from None
        except OSError as error:
            name = Path(str(error.filename)).name if error.filename else "A file"
            typer.echo(f"{name}: {error.strerror or 'it cannot be read or written'}.", err=True)
            raise typer.Exit(CANNOT_GO_ON) from None

    app.command()(guarded)


for _command in (
    demo,
    study.compare,
    study.show,
    study.confirm,
    report,
    checks,
    stability,
    fit,
    forecast,
    matrix,
    effects,
    backtest,
    data.simulate,
    data.check,
    data.transitions,
):
    _register(_command)


def main() -> None:
    """Entry point of the ``rekka`` command."""
    atexit.register(gc.freeze)  # else the interpreter spends a second at the end on tidying what goes anyway
    app()
