"""What to know of a single member's forecast: that it is there already, or where it leaves the training rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rekka.fleet.eligibility import Lot
from rekka.forecast.ageing import HELD

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Remarks:
    """Sentences for each of n members, and how many members have one of a kind."""

    def __init__(self, n: int) -> None:
        self.lines: list[list[str]] = [[] for _ in range(n)]
        self.counts: Counter[str] = Counter()

    def add(self, who: Mask, kind: str, tell: Callable[[int], str]) -> None:
        """A sentence for some of them."""
        places = np.flatnonzero(who).tolist()
        for place in places:
            self.lines[place].append(tell(place))
        if places:
            self.counts[kind] += len(places)

    @property
    def texts(self) -> list[str | None]:
        """All that there is to say of each member."""
        return ["; ".join(lines) or None for lines in self.lines]


def remark(lot: Lot, years: int) -> Remarks:
    """Remarks on the members of a lot within so many years."""
    found = Remarks(len(lot.rows))
    there = f"in state {lot.threshold} or worse already"
    found.add(lot.start >= lot.threshold - 1, there, lambda _: there)
    for column, name in enumerate(lot.fit.covariates):
        _remark_covariate(found, lot, column, name, years)
    return found


def _remark_covariate(found: Remarks, lot: Lot, column: int, name: str, years: int) -> None:
    """Where a covariate is outside the training rows at the beginning, or comes to be."""
    low, high = float(lot.course.low[column]), float(lot.course.high[column])
    gap = np.zeros(len(lot.rows)) if lot.gap is None else lot.gap
    first = lot.course.at(lot.x, gap)[:, column]
    outside = lot.course.outside(lot.x, gap)[:, column]
    found.add(
        outside,
        f"{name} is outside the range of the training rows",
        lambda place: f"{name} {first[place]:,.6g} is outside the training rows ({low:,.6g} to {high:,.6g})",
    )
    if column not in lot.course.columns:
        return
    later = ~outside & (lot.x[:, column] + gap + years > high)
    when = np.floor(high - first) + 1
    if lot.course.age == HELD:
        kind = f"{name} comes to be held at the largest of the training rows"
        found.add(later, kind, lambda place: f"{name} is held at {high:,.6g} from year {when[place]:.0f} on")
    else:
        kind = f"{name} passes the largest of the training rows"
        found.add(
            later,
            kind,
            lambda place: (
                f"{name} passes {high:,.6g}, the largest of the training rows, in year {when[place]:.0f}"
            ),
        )


def find_outside(lot: Lot, years: int) -> Mask:
    """Whether the covariates (n, T) of each year are outside the training rows."""
    n, times = len(lot.rows), years + 1
    gap = 0.0 if lot.gap is None else lot.gap
    found = np.empty((n, times), dtype=bool)
    for year in range(times if lot.course.moves else 1):
        found[:, year] = lot.course.outside(lot.x, gap + year).any(axis=1)
    if not lot.course.moves:
        found[:] = found[:, :1]
    return found
