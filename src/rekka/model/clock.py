"""Covariates that advance with time, such as age, and the moment of an interval at which a fit takes them.

    middle   the age at the middle of the interval: the first visit's plus half the years between the two visits
    start    the age at the first visit, as in the paper
    running  the age at the middle of each step of at most a year, into which fits of histories cut intervals

Tables hold the age at the first visit under either clock. ``Clock.take`` turns it into the age that the hazards of
an interval belong to; fits call it before their scaling is fitted, predictions before it is applied. A hazard that
was fitted with the age at the start is about that of an age half an interval later: forecasts let the age lag by
that much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, bad_option, did_you_mean

Array = NDArray[np.float64]

MIDDLE, START, RUNNING = "middle", "start", "running"
CLOCKS = (MIDDLE, START)  # of pairs; histories take RUNNING too
AGE_NAMES = ("age_at_inspection_1", "age", "age_years")  # covariates that are taken for ages by their name


@dataclass(frozen=True)
class Clock:
    """The covariates that advance, by name and place, the moment they are taken at, and the mean interval.

    ``mean_years`` is the weighted mean of the training intervals that start in a state that can still worsen; None
    before a fit, and in old model files.
    """

    kind: str = MIDDLE
    names: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()
    mean_years: float | None = None

    def take(self, x: Array, dt: Array) -> Array:
        """Covariates (n, p) that the hazards of intervals of dt years (n,) belong to; x (n, p) at first visits."""
        if self.kind in (START, RUNNING) or not self.columns:
            return x
        taken = x.copy(order="K")
        for column in self.columns:
            taken[:, column] += 0.5 * dt
        return taken

    def lags(self, name: str) -> bool:
        """Whether a covariate was fitted at the start of intervals, and belongs to hazards half of one later."""
        return self.kind == START or name not in self.names

    def lag(self, name: str) -> float:
        """Years by which it is then behind; 0 where the mean interval is not known."""
        return 0.5 * (self.mean_years or 0.0) if self.lags(name) else 0.0

    def early(self, name: str) -> float:
        """Years by which the first visits come before the age that a fit takes; 0 where it takes that at them."""
        return 0.0 if self.lags(name) or self.kind == RUNNING else 0.5 * (self.mean_years or 0.0)

    def measured(self, weight: Array, years: Array) -> Clock:
        """The clock with the mean interval of the training rows that can still worsen; of all where none can.

        Both are sums over the rows of each start and end, (K, K): of the weights given, and of weight times years.
        """
        part = slice(None, -1) if weight[:-1].any() else slice(None)
        return replace(self, mean_years=float(years[part].sum() / weight[part].sum()))

    @property
    def taken(self) -> str:
        """Where in an interval a fit takes what advances, in words; empty where nothing does."""
        if not self.names:
            return ""
        verb = "is" if len(self.names) == 1 else "are"
        if self.kind == RUNNING:
            return f"{' and '.join(self.names)} {'advances' if verb == 'is' else 'advance'} within each interval"
        return f"{' and '.join(self.names)} {verb} taken at the {self.kind} of each interval"

    @property
    def words(self) -> str:
        """One sentence for outputs, of fits and the forecasts from them; empty where nothing advances."""
        if not self.names:
            return ""
        advance = f"{self.taken}; forecasts advance {'it' if len(self.names) == 1 else 'them'} by the year"
        if self.kind != START:
            return f"{advance}."
        if self.mean_years is None:
            return f"{advance}, without a lag: this model, of an earlier version, does not know its mean interval."
        return f"{advance}, {self.lag(self.names[0]):.3g} years behind: half the mean interval."


def make_clock(covariates: Sequence[str], kind: str = MIDDLE, advance: Sequence[str] | None = None) -> Clock:
    """The clock of a fit to these covariates; ``advance`` names those that advance, None takes ages by name."""
    check_clock(MIDDLE if kind == RUNNING else kind, advance)
    names = find_advancing(covariates, advance)
    return Clock(kind, names, tuple(list(covariates).index(name) for name in names))


def check_clock(kind: Any, advance: Any) -> None:
    """Refuse an unknown clock, and a text in place of a list of names."""
    if kind not in CLOCKS:
        raise bad_option("clock", kind, CLOCKS)
    if isinstance(advance, str):
        raise BadOption(
            f"advance is the text {advance!r}; a list of covariates is needed, such as [{advance!r}].",
            option="advance",
            value=advance,
        )


def find_advancing(
    covariates: Sequence[str], advance: Sequence[str] | None, default: Sequence[str] = AGE_NAMES
) -> tuple[str, ...]:
    """The covariates that advance, in their order; names that are no covariate are refused."""
    for name in advance or ():
        if name not in covariates:
            raise BadOption(
                f"advance names {name}, which is not a covariate of this model; {', '.join(covariates) or 'none'} "
                f"are.{did_you_mean(name, covariates)}",
                option="advance",
                value=name,
            )
    wanted = tuple(default if advance is None else advance)
    return tuple(name for name in covariates if name in wanted)
