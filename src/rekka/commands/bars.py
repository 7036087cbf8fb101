"""Progress bars for commands, and the end of a command that was stopped; nothing where nobody looks on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rekka.report.terminal.parts import print_plain
from rekka.streaming.cluster.clients import ClusterError

BEFORE_FIRST = "starting"
STOPPED = 130  # exit code


def new_bar(errors: Console) -> Progress:
    """Make a bar on a terminal, gone when it is done; it shows ``what`` is counted, then the item at hand."""
    return Progress(
        TextColumn("{task.fields[what]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


@contextmanager
def show_progress(errors: Console) -> Iterator[Callable[[str, str, float, float | None], None]]:
    """Yield a callback for a stage, a name, how much is done, and of how much: each stage has a bar."""
    with new_bar(errors) as bar:
        task, now = None, ""

        def show(stage: str, name: str, done: float, total: float | None) -> None:
            nonlocal task, now
            if task is None or stage != now:
                if task is not None:
                    bar.remove_task(task)
                task, now = bar.add_task(name, total=total, what=stage), stage
            bar.update(task, description=name, completed=done, total=total)

        yield show


@contextmanager
def count_progress(errors: Console, what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback for a name, how many are done, and of how many."""
    with show_progress(errors) as show:
        yield lambda name, done, total: show(what, name, done, total)


@contextmanager
def resumable(
    errors: Console, what: str, kept: Callable[[], bool], again: str
) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback that counts work; where it is stopped or fails, print the command that continues it.

    ``kept`` says whether anything is kept that can be continued.
    """
    finished = total = 0
    go_on = f"What is done is kept. Continue with: {again}"

    def count(done: int, planned: int) -> None:
        nonlocal finished, total
        finished, total = done, planned

    try:
        yield count
    except KeyboardInterrupt:
        after = f" after {finished:,} of {total:,} {what}" if total else ""
        print_plain(errors, f"Stopped{after}. {go_on if kept() else 'Nothing was begun yet.'}")
        raise typer.Exit(STOPPED) from None
    except (OSError, ClusterError):
        if kept():
            print_plain(errors, go_on)
        raise
