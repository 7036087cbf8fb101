"""Standard errors, intervals, information criteria, and coefficients in native units.

covariance of psi   H^-1, or H^-1 (sum_g s_g s_g' G / (G-1)) H^-1 clustered by group; rows with class weights,
                    which are no numbers of rows, are each a group of their own where no groups are given
                    plus H^-1 A H^-1 where the mean of the prior is uncertain, A the covariance of its pull
native coefficients J psi, J = (native units per scaled) back;   their covariance J cov J'
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from rekka.model.coordinates import Coordinates
from rekka.model.likelihood import Evaluation, Likelihood
from rekka.scaling.operators import FittedScaling

Array = NDArray[np.float64]
CHUNK = 16_384  # rows whose scores are held at once


@dataclass(frozen=True)
class Inference:
    """Coefficients (F,) and their covariance (F, F), state by state, intercept first."""

    coefficients: Array
    covariance: Array
    kind: str  # "observed information", "sandwich, clustered by 417 groups" or "sandwich, robust by row"; weights
    log_likelihood: float
    degrees_of_freedom: float
    aic: float
    bic: float

    def weighted(self, half_life: float | None) -> Inference:
        """The inference of rows weighted by their dates: a weighted log-likelihood has no AIC and BIC."""
        if half_life is None:
            return self
        kind = f"{self.kind}, weighted by a half-life of {half_life:g} years"
        return replace(self, kind=kind, aic=float("nan"), bic=float("nan"))


class Meat(NamedTuple):
    """Sum over groups of the outer product of their scores in psi, (P, P), and the number of groups.

    Groups without a row that can still worsen are not counted. ``by_row`` says that each row is its own group.
    """

    squares: Array
    groups: int
    by_row: bool = False

    @property
    def kind(self) -> str:
        """Name of the standard errors."""
        return "sandwich, robust by row" if self.by_row else f"sandwich, clustered by {self.groups} groups"


def infer(
    coordinates: Coordinates[Any],
    psi: Array,
    here: Evaluation,
    log_likelihood: float,
    scaling: FittedScaling,
    meat: Meat | None = None,
) -> Inference:
    """Infer at psi; ``here`` has the derivatives of the penalised objective, ``meat`` the scores of clusters."""
    likelihood = coordinates.likelihood
    to_native = np.kron(np.eye(likelihood.n_states - 1), native_units(scaling, likelihood.n_terms - 1))
    jacobian = to_native @ coordinates.back
    inverse = _inverse(here.hessian)
    covariance, kind = inverse, "observed information"
    free = psi.size
    df = float(free - np.trace(covariance @ coordinates.penalty)) if coordinates.penalty.any() else float(free)
    if meat is not None:
        covariance, kind = _sandwich(covariance, meat), meat.kind
    covariance = covariance + inverse @ coordinates.sway @ inverse
    n = max(likelihood.n_informative, 1)
    return Inference(
        coefficients=jacobian @ psi,
        covariance=jacobian @ covariance @ jacobian.T,
        kind=kind,
        log_likelihood=log_likelihood,
        degrees_of_freedom=df,
        aic=-2.0 * log_likelihood + 2.0 * df,
        bic=-2.0 * log_likelihood + float(np.log(n)) * df,
    )


def native_units(scaling: FittedScaling, p: int) -> Array:
    """The map (p+1, p+1) from scaled to native coefficients of a state; the identity if there is none."""
    units = np.eye(p + 1)
    affine = scaling.affine()
    if affine is not None:
        offset, factor = affine
        units[0, 1:] = -offset * factor
        units[np.arange(1, p + 1), np.arange(1, p + 1)] = factor
    return units


def _inverse(hessian: Array) -> Array:
    """H^-1, or all NaN where H is not positive definite: then there is no variance to speak of."""
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(hessian), np.eye(len(hessian))))
    except (linalg.LinAlgError, ValueError):
        return np.full_like(hessian, np.nan)


def _sandwich(bread: Array, meat: Meat) -> Array:
    """Covariance that allows rows of one group to depend on each other, with the factor G / (G - 1)."""
    if meat.groups < 2:
        return np.full_like(bread, np.nan)
    with np.errstate(over="ignore", invalid="ignore"):  # a fit gone wrong has no errors to speak of
        return np.asarray(bread @ (meat.squares * (meat.groups / (meat.groups - 1))) @ bread)


def add_scores(likelihood: Likelihood, basis: Array, slope: Array, groups: NDArray[np.int64]) -> Meat:
    """The meat of rows in memory: ``slope`` (n, K-1) of each row's log-probability in its predictors."""
    W, weight = likelihood.X, likelihood.rows.weight
    n_groups = int(groups.max()) + 1
    informative = np.unique(groups[likelihood.rows.informative]).size
    score = np.empty((n_groups, slope.shape[1], len(W)))
    with np.errstate(over="ignore", invalid="ignore"):  # a fit gone wrong has no errors to speak of
        for k in range(slope.shape[1]):
            for u in range(len(W)):
                score[:, k, u] = np.bincount(groups, weight * slope[:, k] * W[u], n_groups)
        by_group = score.reshape(n_groups, -1) @ basis
        return Meat(by_group.T @ by_group, informative)


def add_row_scores(likelihood: Likelihood, basis: Array, slope: Array, classes: Array) -> Meat:
    """The meat of rows in memory that do not depend on each other; ``classes`` (n,) are their class weights.

    A row's weight is its class weight c times how often it counts, f: it adds f (c s)(c s)', s without weights.
    """
    squares = np.zeros((basis.shape[1], basis.shape[1]))
    factor = np.sqrt(likelihood.rows.weight * classes)
    for first in range(0, factor.size, CHUNK):
        here = slice(first, first + CHUNK)
        squares += square_scores(likelihood.X[:, here], slope[here], factor[here], basis)
    return Meat(squares, likelihood.n_informative, by_row=True)


def square_scores(W: Array, slope: Array, factor: Array, basis: Array) -> Array:
    """The sum (P, P) of the outer products of rows' scores, of W (p+1, m), slope (m, K-1) and a factor (m,)."""
    with np.errstate(over="ignore", invalid="ignore"):  # a fit gone wrong has no errors to speak of
        score = (factor[:, None] * slope)[:, :, None] * W.T[:, None, :]
        turned = score.reshape(len(factor), -1) @ basis
        return np.asarray(turned.T @ turned)


def normal_quantile(level: float) -> float:
    """The half-width, in standard errors, of a two-sided interval."""
    return float(special.ndtri(0.5 + level / 2))


def two_sided_p(z: Array) -> Array:
    """The probability of a standard normal at least as far from zero."""
    return np.asarray(2.0 * special.ndtr(-np.abs(z)))
