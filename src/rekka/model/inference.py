"""Standard errors, intervals, information criteria, native units: after the clock has stopped.

covariance of psi   H^-1, or H^-1 (sum_g s_g s_g' G / (G-1)) H^-1 clustered by group
                    plus H^-1 A H^-1 where the mean of the prior is uncertain, A the covariance of its pull
native coefficients J psi, J = (native units per scaled) back;   their covariance J cov J'
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from rekka.model.coordinates import Coordinates
from rekka.model.likelihood import Evaluation
from rekka.scaling.operators import FittedScaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Inference:
    """Coefficients (F,) and their covariance (F, F), state by state, intercept first."""

    coefficients: Array
    covariance: Array
    kind: str  # "observed information" or "sandwich, clustered by 417 groups"
    log_likelihood: float
    degrees_of_freedom: float
    aic: float
    bic: float


def infer(
    coordinates: Coordinates,
    psi: Array,
    here: Evaluation,
    log_likelihood: float,
    scaling: FittedScaling,
    slope: Array,
    groups: NDArray[np.int64] | None,
) -> Inference:
    """All of it at psi; ``here`` has the derivatives of the penalised objective, ``slope`` is (n, K-1)."""
    states = coordinates.likelihood.rows.n_states - 1
    to_native = np.kron(np.eye(states), native_units(scaling, coordinates.likelihood.X.shape[0] - 1))
    jacobian = to_native @ coordinates.back
    inverse = _inverse(here.hessian)
    covariance, kind = inverse, "observed information"
    free = psi.size
    df = float(free - np.trace(covariance @ coordinates.penalty)) if coordinates.penalty.any() else float(free)
    if groups is not None:
        covariance, n_groups = _sandwich(coordinates, covariance, slope, groups)
        kind = f"sandwich, clustered by {n_groups} groups"
    covariance = covariance + inverse @ coordinates.sway @ inverse
    n = coordinates.likelihood.rows.dt.size
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


def _sandwich(
    coordinates: Coordinates, bread: Array, slope: Array, groups: NDArray[np.int64]
) -> tuple[Array, int]:
    """Covariance that allows rows of one group to depend on each other, with the factor G / (G - 1)."""
    W, weight = coordinates.likelihood.X, coordinates.likelihood.rows.weight
    n_groups = int(groups.max()) + 1
    score = np.empty((n_groups, slope.shape[1], len(W)))
    with np.errstate(over="ignore", invalid="ignore"):  # a fit gone wrong has no errors to speak of
        for k in range(slope.shape[1]):
            for u in range(len(W)):
                score[:, k, u] = np.bincount(groups, weight * slope[:, k] * W[u], n_groups)
        by_group = score.reshape(n_groups, -1) @ coordinates.basis
        meat = by_group.T @ by_group * (n_groups / (n_groups - 1)) if n_groups > 1 else np.full_like(bread, np.nan)
        return bread @ meat @ bread, n_groups


def normal_quantile(level: float) -> float:
    """The half-width, in standard errors, of a two-sided interval."""
    return float(special.ndtri(0.5 + level / 2))


def two_sided_p(z: Array) -> Array:
    """The probability of a standard normal at least as far from zero."""
    return np.asarray(2.0 * special.ndtr(-np.abs(z)))
