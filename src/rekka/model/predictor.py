"""Coefficients and their operator: all that a forecast needs of a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rekka.model import kernel
from rekka.model.likelihood import Likelihood, Rows
from rekka.scaling.operators import FittedScaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Predictor:
    """``beta`` (K-1, p+1) belongs to the covariates as ``scaling`` transforms them."""

    n_states: int
    covariates: tuple[str, ...]
    scaling: FittedScaling
    beta: Array

    def log_hazards(self, x: Array) -> Array:
        """eta (n, K-1) for raw covariates x (n, p)."""
        return np.asarray(self.beta[:, 0] + self.scaling.transform(x) @ self.beta[:, 1:].T)

    def probabilities(self, start: NDArray[np.int64], dt: Array, x: Array) -> Array:
        """pi (n, K) of each row's end state."""
        order = np.argsort(start, kind="stable")
        p, in_order = np.empty((2, start.size, self.n_states))
        eta, years = self.log_hazards(x)[order], dt[order, None]  # errors name rows in the order given
        with np.errstate(over="ignore"):  # a fit gone wrong predicts too
            kernel.probability_rows(np.exp(eta) * years, eta + np.log(years), start[order], 0, in_order)
        p[order] = in_order
        return p

    def log_probabilities(self, rows: Rows, x: Array) -> Array:
        """log pi (n,) of each row's own end state, exact however small pi is."""
        order = rows.grouping
        X = np.column_stack([np.ones(len(x)), self.scaling.transform(x)])[order]
        value = np.empty(len(x))
        value[order] = Likelihood.build(rows.take(order), X).by_row(self.beta)[0]
        return value
