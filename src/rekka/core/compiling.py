"""Compiled kernels: made on first use, kept on disk, and a wait for them announced.

Numba keeps compiled code beside the source, or in a folder of the user's where that cannot be written
(``NUMBA_CACHE_DIR`` names another), so the wait comes once after an installation. It is announced in the log
``rekka``, level INFO. Where there is no place to keep them, as in a read-only container, each process compiles its
own kernels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache as once
from threading import Lock, Timer
from typing import Any

import numba
from numba.core import event

PATIENCE = 1.0  # seconds of compiling that need no announcement
COMPILING = "Compiling the numerical kernels: once after an installation, half a minute or so."
NO_PLACE = (
    "The compiled kernels cannot be kept, so every start compiles them again, half a minute or so: "
    "NUMBA_CACHE_DIR can name a folder that can be written."
)
LOGGER = logging.getLogger("rekka")

_NUMBA: Any = numba  # whose types differ from version to version


def njit(*signature: Any, cache: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """numba's ``njit``, which keeps what it compiles if there is a place for it."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return _NUMBA.njit(*signature, cache=cache, **options)(function)
        except RuntimeError as error:
            if "cannot cache function" not in str(error):
                raise
            warn_of_no_place()
            return _NUMBA.njit(*signature, **options)(function)

    return compiled


def announce() -> None:
    """Say that kernels are being compiled."""
    LOGGER.info(COMPILING)


@once
def warn_of_no_place() -> None:
    """Say, once in a process, that kernels cannot be kept."""
    LOGGER.warning(NO_PLACE)


class Announcer(event.Listener):
    """Listener to compilations that announces ours, once, if they take longer than ``patience`` seconds."""

    def __init__(self, tell: Callable[[], None], patience: float = PATIENCE) -> None:
        self._announce, self._patience = tell, patience
        self._lock, self._under_way = Lock(), 0
        self._timer: Timer | None = None

    def on_start(self, event: Any) -> None:
        """Start the clock at a kernel that was not on disk."""
        if not _is_ours(event):
            return
        with self._lock:
            self._under_way += 1
            if self._timer is None:
                self._timer = Timer(self._patience, self._look)
                self._timer.daemon = True  # an interpreter that wants to end need not wait for it
                self._timer.start()

    def on_end(self, event: Any) -> None:
        """Count a kernel that is compiled."""
        if _is_ours(event):
            with self._lock:
                self._under_way -= 1

    def _look(self) -> None:
        with self._lock:
            waiting = self._under_way > 0
            if not waiting:
                self._timer = None  # a later kernel may take longer
        if waiting:
            self._announce()


def _is_ours(event: Any) -> bool:
    return bool(event.data["dispatcher"].py_func.__module__.startswith("rekka."))


_NUMBA.core.event.register("numba:compile", Announcer(announce))
