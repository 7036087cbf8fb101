"""Results in memory, by what they were made from: how tables were read, forecasts, pictures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

KEPT = 900.0  # seconds that what nobody asked for stays in memory

Found = TypeVar("Found")


class Memory:
    """Results by key, kept until nobody has asked for it for ``KEPT`` seconds."""

    def __init__(self, most: int, kept: float = KEPT, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._kept, self._clock = most, kept, clock
        self._known: dict[Any, tuple[float, Any]] = {}
        self._asked: dict[Any, tuple[threading.Lock, list[None]]] = {}  # being made, and for how many
        self._lock = threading.Lock()

    def get(self, key: Any) -> Any:
        """The result of this key; None where it is not known."""
        with self._lock:
            self._drop_old()
            return self._known.get(key, (0.0, None))[1]

    def find(self, key: Any, make: Callable[[], Found]) -> Found:
        """The result of ``make`` for this key; several who ask at once wait for one of them."""
        with self._lock:
            self._drop_old()
            own, waiting = self._asked.setdefault(key, (threading.Lock(), []))
            waiting.append(None)
        try:
            with own:
                return self._take(key, make)
        finally:
            with self._lock:
                waiting.pop()
                if not waiting:
                    del self._asked[key]

    def _take(self, key: Any, make: Callable[[], Found]) -> Found:
        with self._lock:
            if key in self._known:
                found: Found = self._known.pop(key)[1]
                self._known[key] = (self._clock(), found)
                return found
        found = make()
        with self._lock:
            self._known[key] = (self._clock(), found)
            while len(self._known) > self._most:
                self._known.pop(next(iter(self._known)))  # the first is the one that was asked for longest ago
        return found

    def _drop_old(self) -> None:
        now = self._clock()
        for key in [key for key, (asked, _) in self._known.items() if now - asked > self._kept]:
            del self._known[key]
