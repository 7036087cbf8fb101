"""Summaries of the training rows that a fit keeps: covariates' quantiles, resampled coefficients, test of fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rekka.core.ratings import Ratings

Array = NDArray[np.float64]

LEAST_SHOWN = 0.1  # rows expected; fewer are said to be fewer
PERCENT = 101  # quantiles of a covariate: 0, 1, ..., 100 %
PERCENTILES = np.linspace(0.0, 1.0, PERCENT)


@dataclass(frozen=True, eq=False)
class Survey:
    """The 0, 1, ..., 100 % quantiles (p, 101) of the raw covariates of the training rows.

    They give typical values, the ranges beyond which a forecast extrapolates, and the rugs of pictures.
    """

    names: tuple[str, ...]
    quantiles: Array

    @property
    def low(self) -> Array:
        """The least value of each covariate (p,)."""
        return self.quantiles[:, 0]

    @property
    def high(self) -> Array:
        """The largest value of each covariate (p,)."""
        return self.quantiles[:, -1]

    @property
    def median(self) -> Array:
        """The middle value of each covariate (p,)."""
        return self.quantiles[:, PERCENT // 2]


def survey_covariates(x: Array, names: tuple[str, ...]) -> Survey:
    """Quantiles of raw covariates x (n, p), each row counted once whatever its weight."""
    return Survey(names, np.quantile(x, PERCENTILES, axis=0).T)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Coefficients of refits to resampled bridges, ``beta`` (B, K-1, p+1).

    They belong to the covariates as the fit itself scales them. Of the draws ``asked`` for, those that
    reached no maximum are left out; ``groups`` is the number of bridges, or whatever was drawn.
    """

    beta: Array
    asked: int
    seed: int
    groups: int


@dataclass(frozen=True)
class Contrast:
    """Number of rows that went from state ``start`` to ``end``, and the number that the model expects.

    States are 1-based; with the same state twice it is the rows that stayed. ``rows`` of them began in ``start``,
    and their intervals were ``years_low`` to ``years_high`` long.
    """

    start: int
    end: int
    years_low: float
    years_high: float
    rows: int
    observed: int
    expected: float

    def describe(self) -> str:
        """'51 of 51 stayed in state 4 over 1 year where 28.0 were expected'; ``Ratings.reword`` puts labels in."""
        stayed, went = f"stayed in state {self.start}", f"went from state {self.start} to {self.end}"
        went = stayed if self.start == self.end else went
        expected = f"{self.expected:,.1f}" if self.expected >= LEAST_SHOWN else f"fewer than {LEAST_SHOWN:g}"
        years = describe_years(self.years_low, self.years_high)
        return f"{self.observed:,} of {self.rows:,} {went} over {years} where {expected} were expected"


@dataclass(frozen=True)
class FitTest:
    """Test of whether a model describes the rows it was fitted to; ``goodness`` says how it is made.

    ``replicates`` sets were simulated. ``contrasts`` are the largest differences between the rows and the model,
    ``causes`` sentences on them with what to do; both are empty where the test does not reject.
    """

    p_value: float
    statistic: float
    level: float
    replicates: int
    without_maximum: int
    unfinished: int
    seed: int
    rows: int
    contrasts: tuple[Contrast, ...] = ()
    causes: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        """Whether the rows differ from the model by more than chance at ``level``."""
        return self.p_value <= self.level

    def describe(self, labels: Sequence[str] | None = None) -> str:
        """The result in one line; ``labels`` are the names of the states, best first."""
        if not self.rejected:
            return f"the model describes its data as far as the test of fit can tell (p = {self.p_value:.2g})"
        facts = Ratings(tuple(labels or ())).reword("; ".join(one.describe() for one in self.contrasts))
        return f"the model does not describe its data (test of fit p = {self.p_value:.2g}): {facts}"

    def to_dict(self, labels: Sequence[str] | None = None) -> dict[str, Any]:
        """Plain data, with the verdict and the line that says it."""
        return asdict(self) | {"rejected": self.rejected, "sentence": self.describe(labels)}


def describe_years(low: float, high: float) -> str:
    """'1 year', '1.5 years', '1 to 2 years'."""
    shortest, longest = (f"{years:.1f}".removesuffix(".0") for years in (low, high))
    if shortest == longest:
        return f"{shortest} year{'' if shortest == '1' else 's'}"
    return f"{shortest} to {longest} years"
