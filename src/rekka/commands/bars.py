"""A bar for work that takes longer than two seconds; nothing where nobody looks on."""

from __future__ import annotations

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
