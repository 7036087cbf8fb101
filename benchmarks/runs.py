"""What a rival hands back for one problem."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """One fit: the fastest seen. ``seconds`` is the optimizer alone, ``call_seconds`` the user's whole call.

    A failed fit has a ``note`` that says why, and no figures.
    """

    rival: str
    method: str
    converged: bool
    log_likelihood: float | None = None
    seconds: float | None = None
    call_seconds: float | None = None
    repeats: int = 1
    median_seconds: float | None = None
    note: str = ""
