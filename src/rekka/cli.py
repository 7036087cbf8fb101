"""Command line: all commands together, and their errors as sentences and exit codes."""

from __future__ import annotations

import ast
import atexit
import functools
import gc
import logging
from collections import Counter, UserDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import rekka
from rekka.core.errors import RekkaError
from rekka.core.files import WINDOWS
from rekka.core.terminal import echo, show_text, take_every_letter

_WRONG_USAGE: type[Exception] = typer.BadParameter.__mro__[1]  # of click, which typer brings along without a name
CANNOT_GO_ON, WRONG_USAGE, STOPPED = 1, 2, 130  # exit codes; the last is what shells say of Ctrl-C

# The module of each command. It is loaded when the command is called, so that the list of all commands,
# `rekka --help`, is there at once.
COMMANDS = {
    "app": "app",
    "demo": "demo",
    "compare": "study",
    "show": "show",
    "confirm": "study",
    "report": "report",
    "checks": "checks",
    "stability": "stability",
    "fit": "fit",
    "forecast": "forecast",
    "matrix": "matrix",
    "effects": "effects",
    "bridges": "bridges",
    "repairs": "repairs",
    "backtest": "backtest",
    "simulate": "data",
    "check": "data",
    "transitions": "data",
    "docs": "docs",
    "verify": "verify",
}


@functools.cache
def read_summary(name: str) -> str:
    """First paragraph of a command's docstring, read from its source: the module is not loaded."""
    module = find_spec(f"rekka.commands.{COMMANDS[name]}")
    assert module is not None
    assert isinstance(module.loader, InspectLoader)
    tree = ast.parse(module.loader.get_source(module.name) or "")
    found = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name)
    return " ".join((ast.get_docstring(found) or "").split("\n\n")[0].split())


class _Command(TyperCommand):
    """Command that refuses an option given twice where it takes one value; click would keep the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and count the options beforehand."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(one for one in given if _takes_one(one)).items():
            if times > 1:
                told = f"it takes one value and is given {times} times. Give it once."
                raise typer.BadParameter(told, ctx=ctx, param_hint=option.opts[0])
        return super().parse_args(ctx, args)


def _takes_one(parameter: Any) -> bool:
    """Whether a parameter is an option of one value; a flag that is set twice is set."""
    return (
        parameter.param_type_name == "option"
        and not (parameter.multiple or parameter.count)
        and not (parameter.is_flag and not parameter.secondary_opts)
    )


class _Commands(UserDict[str, Any]):
    """Commands by name, each made when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return _make_command(name, getattr(import_module(f"rekka.commands.{self.data[name]}"), name))


@functools.cache
def _make_command(name: str, command: Callable[..., None]) -> Any:
    """Make a command with its options, which takes a while."""
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    one.command(name, cls=_Command)(_guard(command))
    return typer.main.get_command(one)


@contextmanager
def _shown() -> Iterator[None]:
    """Show control characters of what was typed in messages about wrong usage, which typer prints by itself."""
    try:
        yield
    except _WRONG_USAGE as error:
        error.args = tuple(map(show_text, error.args))
        error.__dict__["message"] = show_text(str(error.__dict__["message"]))
        raise


class _Group(TyperGroup):
    """Group of all commands; their list shows their first lines, without loading any."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands(COMMANDS)

    def make_context(self, *given: Any, **options: Any) -> Any:
        """Read the options before the command's name."""
        with _shown():
            return super().make_context(*given, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's own options, and run it."""
        with _shown():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, in the order of the list."""
        return list(self.commands)

    def get_help_option(self, ctx: Any) -> Any:
        """Option --help, without typer's check of its default by pydantic, which takes a tenth of a second."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Format the help without loading any command."""
        listed = copy(self)
        listed.commands = {name: TyperCommand(name, help=read_summary(name)) for name in COMMANDS}
        super(_Group, listed).format_help(ctx, formatter)


app = typer.Typer(
    name="rekka",
    cls=_Group,
    help="Deterioration models you can trust, from infrastructure inspection records.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        echo(f"rekka {rekka.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Deterioration models you can trust, from infrastructure inspection records."""


class _Printer(logging.Handler):
    """Handler that prints what the library logs on standard error; above the bar, if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print to where standard error is at the moment, which a bar may have changed."""
        echo(record.getMessage(), err=True)


@contextmanager
def _printing_log() -> Iterator[None]:
    """Print what the library logs while a command runs."""
    logger, printer = logging.getLogger("rekka"), _Printer(logging.INFO)
    level = logger.level
    logger.addHandler(printer)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(printer)


def _describe_system(error: OSError) -> str:
    """Sentence 'table.csv: Permission denied.'; where the system names no file, its whole sentence."""
    cause = error.strerror or str(error) or type(error).__name__
    if WINDOWS and isinstance(error, PermissionError):
        cause = f"{cause.rstrip('.')}. If another program has it open, close it there"
    return f"{Path(str(error.filename)).name if error.filename else 'A file cannot be used'}: {cause.rstrip('.')}."


def _guard(command: Callable[..., None]) -> Callable[..., None]:
    """Guard a command: wrong inputs end in a sentence and an exit code, not in a traceback."""

    @functools.wraps(command)
    def guarded(*args: Any, **options: Any) -> None:
        try:
            with _printing_log():
                command(*args, **options)
        except KeyboardInterrupt:
            echo("Stopped.", err=True)
            raise typer.Exit(STOPPED) from None
        except RekkaError as error:
            echo(f"{type(error).__name__}: {error}", err=True)
            raise typer.Exit(WRONG_USAGE if type(error).__name__ == "BadOption" else CANNOT_GO_ON) from None
        except BrokenPipeError:  # whoever read what is printed has gone; typer ends quietly
            raise
        except OSError as error:
            echo(_describe_system(error), err=True)
            raise typer.Exit(CANNOT_GO_ON) from None

    return guarded


def main() -> None:
    """Entry point of the ``rekka`` command."""
    take_every_letter()
    atexit.register(gc.freeze)  # else the interpreter spends a second at the end on tidying what goes anyway
    app()
