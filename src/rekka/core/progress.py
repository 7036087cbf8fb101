"""How a verb says how far it has got."""

from __future__ import annotations

from collections.abc import Callable

# What is done, of which component or file, how much of it is done, and of how much; None where that is not known.
OnProgress = Callable[[str, str, float, float | None], None]


def say_nothing(stage: str, name: str, done: float, total: float | None) -> None:
    """Nobody looks on."""
