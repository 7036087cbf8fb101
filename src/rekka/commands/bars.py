"""A bar for work that takes longer than two seconds; nothing where nobody looks on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def new_bar(errors: Console) -> Progress:
    """A bar on a terminal, gone when it is done; its task says ``what`` is counted, and then what is at hand."""
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
    """Yield what a verb calls with a stage, a name, how much is done, and of how much: a new bar a stage."""
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
    """Yield what a function calls with a name, how many are done, and of how many."""
    with show_progress(errors) as show:
        yield lambda name, done, total: show(what, name, done, total)
