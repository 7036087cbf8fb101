"""What a fit keeps of the rows it was fitted on, so that forecasts can be made from a saved model alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PERCENT = 101  # quantiles of a covariate: 0, 1, ..., 100 %


@dataclass(frozen=True, eq=False)
class Survey:
    """How the raw covariates of the training rows are spread: their 0, 1, ..., 100 % quantiles (p, 101).

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

    def outside(self, x: Array) -> NDArray[np.bool_]:
        """Which raw covariates x (..., p) lie outside the range of the training rows."""
        return np.asarray((x < self.low) | (x > self.high))


def survey_covariates(x: Array, names: tuple[str, ...]) -> Survey:
    """The spread of raw covariates x (n, p), each row counted once whatever its weight."""
    return Survey(names, np.quantile(x, np.linspace(0.0, 1.0, PERCENT), axis=0).T)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Coefficients of refits to bridges drawn again, ``beta`` (B, K-1, p+1).

    They belong to the covariates as the fit itself scales them. Of the draws ``asked`` for, those that
    reached no maximum are left out; ``groups`` is the number of bridges, or whatever was drawn.
    """

    beta: Array
    asked: int
    seed: int
    groups: int
