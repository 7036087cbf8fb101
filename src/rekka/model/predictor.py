"""Coefficients and their operator: all that a forecast needs of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rekka.model.clock import Clock
from rekka.model.family import EXPONENTIAL, Family, States, pick_ends
from rekka.model.likelihood import Likelihood, Rows
from rekka.scaling.operators import FittedScaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Predictor:
    """``beta`` (K-1, p+1) belongs to the covariates as ``clock`` takes and ``scaling`` transforms them."""

    n_states: int
    covariates: tuple[str, ...]
    scaling: FittedScaling
    beta: Array
    clock: Clock = field(default_factory=Clock, kw_only=True)
    family: Family = field(default=EXPONENTIAL, kw_only=True)

    def scale(self, x: Array, dt: Array) -> Array:
        """Scaled covariates (n, p) of intervals of dt years (n,), for raw x (n, p) at their first visits."""
        return self.scaling.transform(self.clock.take(x, dt))

    def predictors(self, x: Array) -> Array:
        """eta (n, K-1) at raw covariates x (n, p), taken as they are given."""
        return np.asarray(self.beta[:, 0] + self.scaling.transform(x) @ self.beta[:, 1:].T)

    def log_hazards(self, x: Array) -> Array:
        """Log hazards (n, K-1) at raw covariates x (n, p), taken as they are given."""
        return self.family.log_hazards(self.predictors(x))

    def probabilities(self, start: States, dt: Array, x: Array) -> Array:
        """pi (n, K) of each row's end state."""
        order = np.argsort(start, kind="stable")
        eta = self.predictors(self.clock.take(x, dt))[order]  # errors name rows in the order given
        p = np.empty((start.size, self.n_states))
        p[order] = self.family.end_probabilities(eta, dt[order], start[order])
        return p

    def draw_ends(self, start: States, dt: Array, x: Array, u: Array) -> States:
        """End states (n,) drawn with uniform numbers u (n,)."""
        return pick_ends(self.probabilities(start, dt, x), u)

    def log_probabilities(self, rows: Rows, x: Array) -> Array:
        """log pi (n,) of each row's own end state, exact however small pi is."""
        order = rows.grouping
        X = np.column_stack([np.ones(len(x)), self.scale(x, rows.dt)])[order]
        value = np.empty(len(x))
        value[order] = Likelihood.build(rows.take(order), X, family=self.family).by_row(self.beta)[0]
        return value
