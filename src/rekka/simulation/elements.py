"""Elements of histories in a simulated stock: errors of inspection, frailty, silent improvements, a trend.

Each has a generator of its own, so that it moves no other draw; a value of 0 draws nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Advance = Callable[[Ints, Array, Array, np.random.Generator], Ints]

LIMITS = {  # least and greatest value of each option, and what it is
    "error": (0.0, 1.0, "a probability from 0 to 1 is needed, e.g. 0.05"),
    "frailty": (0.0, 10.0, "a variance from 0 to 10 is needed, e.g. 0.5"),
    "improvements": (0.0, 1.0, "a probability a year from 0 to 1 is needed, e.g. 0.03"),
    "trend": (-1.0, 1.0, "a slope of the log hazards a year, from -1 to 1, is needed, e.g. -0.02"),
}
FORMULA = {
    "error": "At each visit the inspector rates one better or one worse than the state with probability error, "
    "half each; a can only be rated worse, e only better.",
    "frailty": "All hazards of a bridge's members of one case are multiplied by a factor, gamma with mean 1 and "
    "variance frailty.",
    "improvements": "The time between two visits is cut into equal steps of at most a year; after each step of h "
    "years the state becomes one better with probability 1 - (1 - improvements)^h.",
    "trend": "trend times the years from 1 January 2004 to the first visit is added to all log hazards.",
}


@dataclass(frozen=True)
class DrawnElements:
    """Checked values: probability of an error, variance of the frailty, improvements a year, trend a year."""

    error: float = 0.0
    frailty: float = 0.0
    improvements: float = 0.0
    trend: float = 0.0

    @classmethod
    def check(cls, **values: Any) -> DrawnElements:
        """Elements of these values, or what is wrong with one."""
        for option, value in values.items():
            low, high, needed = LIMITS[option]
            number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
            if not number or not low <= value <= high:
                raise BadOption(f"{option} is {value!r}; {needed}.", option=option)
        return cls(**{option: float(value) for option, value in values.items()})

    @property
    def on(self) -> dict[str, float]:
        """Values that are not 0, by option."""
        return {option: value for option, value in asdict(self).items() if value}

    @property
    def formula(self) -> str:
        """Sentences on the elements that are on, behind those on the hazards."""
        return "".join(f" {FORMULA[option]}" for option in self.on)

    def frailties(self, bridges: int, cases: int, rng: np.random.Generator) -> Array:
        """Factor of the hazards of each bridge and case."""
        if not self.frailty:
            return np.ones((bridges, cases))
        return rng.gamma(1.0 / self.frailty, self.frailty, (bridges, cases))

    def advance(self, states: Ints, theta: Array, dt: Array, step: Advance, rng: np.random.Generator) -> Ints:
        """States after dt years by ``step``; with improvements in steps of at most a year."""
        if not self.improvements:
            return step(states, theta, dt, rng)
        count = np.ceil(dt)
        h = dt / count
        better = 1.0 - (1.0 - self.improvements) ** h
        for j in range(int(count.max(initial=0))):
            moved = step(states, theta, h, rng)
            moved = np.maximum(moved - (rng.random(states.size) < better), 0)
            states = np.where(j < count, moved, states)
        return states

    def rate(self, states: Ints, n_states: int, rng: np.random.Generator) -> Ints:
        """Ratings of states of any shape, 0-based; -1, where there is no visit, stays."""
        if not self.error:
            return states
        bounds = np.cumsum(error_matrix(n_states, self.error), axis=1)[:, :-1]
        rated = (rng.random(states.shape)[..., None] >= bounds[states]).sum(axis=-1)
        return np.where(states >= 0, rated, states)


def error_matrix(n_states: int, error: float) -> Array:
    """E (K, K), true state by rating: errors of one with this probability, half each way, one way at the ends."""
    matrix = np.eye(n_states) * (1.0 - error)
    for s in range(n_states):
        ways = [o for o in (s - 1, s + 1) if 0 <= o < n_states]
        matrix[s, ways] = error / len(ways)
    return matrix
