"""Changes of covariates as engineers speak of them: ten more years of age, twice the traffic.

A change is written '+10' or '-10' (so many more or fewer), or 'x2' (so many times). Unless told otherwise, age
changes by ten years, traffic doubles, and any other covariate goes up by a round step, the largest of 1, 2 and 5
times a power of ten within the middle half of the training rows; down where up would leave their range.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, did_you_mean
from rekka.model.clock import AGE_NAMES
from rekka.model.fit import Fit

Array = NDArray[np.float64]

YEARS_OF_AGE, TIMES_TRAFFIC = 10.0, 2.0  # what engineers speak of
TRAFFIC = "traffic_mean"
QUARTERS = (25, 75)  # percent: the middle half
ROUND = (5.0, 2.0, 1.0)  # times a power of ten
COUNTS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
MINUS = ("-", "\u2212")
_WRITTEN = re.compile(r"\s*(?P<sign>[+\-xX*\u00d7\u2212])\s*(?P<number>\S.*)")


class Noun(NamedTuple):
    """What one and many units of a covariate are called, and the whole of it."""

    one: str
    many: str
    whole: str


NOUNS = dict.fromkeys(AGE_NAMES, Noun("year of age", "years of age", "age")) | {
    "bridge_length": Noun("metre of length", "metres of length", "length"),
    "bridge_width": Noun("metre of width", "metres of width", "width"),
    "bridge_area": Noun("square metre of area", "square metres of area", "area"),
    TRAFFIC: Noun("vehicle a day", "vehicles a day", "traffic"),
}


@dataclass(frozen=True)
class Change:
    """One covariate by so much: ``amount`` is added, or multiplied by where ``times``."""

    covariate: str
    amount: float
    times: bool = False

    def apply(self, value: float) -> float:
        """The value after the change."""
        return value * self.amount if self.times else value + self.amount

    @property
    def written(self) -> str:
        """As it is given: '+10', 'x2'."""
        return f"x{self.amount:g}" if self.times else f"{self.amount:+g}"

    @property
    def spelled(self) -> str:
        """As a cell of a table, which a spreadsheet must not take for a formula: 'plus 10', 'times 2'."""
        if self.times:
            return f"times {self.amount:g}"
        return f"{'plus' if self.amount > 0 else 'minus'} {abs(self.amount):g}"

    @property
    def plural(self) -> bool:
        """Whether the words take a verb in the plural."""
        return not self.times and self.covariate in NOUNS and abs(self.amount) != 1

    @property
    def words(self) -> str:
        """The subject of a sentence: 'Ten more years of age', 'Twice the traffic', 'An increase of load by 5'."""
        noun = NOUNS.get(self.covariate)
        if self.times:
            return f"{_say_times(self.amount)} the {noun.whole if noun else self.covariate}"
        size, more = abs(self.amount), self.amount > 0
        if noun is None:
            return f"{'An increase' if more else 'A decrease'} of {self.covariate} by {size:,.10g}"
        return f"{_say_count(size)} {'more' if more else 'fewer'} {noun.one if size == 1 else noun.many}"


def plan_changes(fit: Fit, x: Array, given: Mapping[str, str | float] | None = None) -> tuple[Change, ...]:
    """A change for each covariate, from raw covariates x (p,): the one given, or the usual one."""
    named = dict(given or {})
    for name in named:
        if name not in fit.covariates:
            raise BadOption(
                f"changes names {name}, which is not a covariate of this model; "
                f"{', '.join(fit.covariates) or 'none'} are.{did_you_mean(name, fit.covariates)}",
                option="changes",
                value=name,
            )
    found = []
    for place, name in enumerate(fit.covariates):
        change = read_change(name, named[name]) if name in named else _choose_change(fit, place, float(x[place]))
        if change.apply(float(x[place])) == x[place]:
            raise BadOption(
                f"{change.written} leaves {name} at {x[place]:g}, where it is. Give a number to add, such as +1, "
                "or another value to start from.",
                option="changes",
                value=name,
            )
        found.append(change)
    return tuple(found)


def read_change(name: str, written: str | float) -> Change:
    """A change as it is written: '+10', '-10', 'x2'; a number is added."""
    text = written if isinstance(written, str) else f"{float(written):+}"
    found = _WRITTEN.fullmatch(text)
    sign = found["sign"] if found else "+"
    try:
        number = float(found["number"]) if found else math.nan
    except ValueError:
        number = math.nan
    number, times = (-number, False) if sign in MINUS else (number, sign != "+")
    if not math.isfinite(number) or number == 0 or (times and number < 0):
        raise BadOption(
            f"changes gives {written!r} for {name}; +10 or -10 is needed to add, x2 to multiply.",
            option="changes",
            value=written,
        )
    return Change(name, number, times)


def round_step(width: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten within a width; 1 where there is none."""
    if not (math.isfinite(width) and width > 0):
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in ROUND if factor * power <= width * (1 + 1e-9))


def _choose_change(fit: Fit, place: int, value: float) -> Change:
    name = fit.covariates[place]
    if name in AGE_NAMES:
        return Change(name, YEARS_OF_AGE)
    if name == TRAFFIC and value != 0:
        return Change(name, TIMES_TRAFFIC, times=True)
    if fit.survey is None:
        raise BadOption(
            f"There is no usual change of {name}: this model file, of an earlier version, does not know how its "
            "training rows are spread. Say what changes (+5, x2), or fit the model again.",
            option="changes",
            value=name,
        )
    low, high = (float(fit.survey.quantiles[place, percent]) for percent in QUARTERS)
    step = round_step(high - low)
    down = value + step > fit.survey.high[place] and value - step >= fit.survey.low[place]
    return Change(name, -step if down else step)


def _say_count(size: float) -> str:
    """'Ten', '20', '2.5'."""
    return COUNTS[int(size)] if size == int(size) and size < len(COUNTS) else f"{size:,.10g}"


def _say_times(factor: float) -> str:
    """'Twice', 'Half', '1.5 times'."""
    named = {2.0: "Twice", 0.5: "Half"}
    return named[factor] if factor in named else f"{_say_count(factor)} times"
