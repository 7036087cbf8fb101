"""Free parameters of a model: layout, prior, and the coordinates a solver works in.

    beta (K-1, p+1), flattened state by state, = select @ phi        Layout: select (F, P) of zeros and ones
    log prior = -(beta - mean)' precision (beta - mean) / 2          Prior: precision (F, F), positive definite
    eta_k = W gamma_k,   gamma = basis @ psi,   beta = back @ psi    Coordinates: psi (P,)

Every state has an intercept of its own; a covariate may act on some states only (``effects``), and states may
share one coefficient (``shared``). A prior holds every coefficient, so that a maximum always exists.

Newton and the certificate work in orthonormal coordinates: W and basis have orthonormal columns, so that
transformed covariates of size 1e8 or two nearly equal covariates do no harm. L-BFGS-B works in the coordinates the
scaling gives it, because that is what the study is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rekka.core.errors import BadOption, did_you_mean
from rekka.model.family import EXPONENTIAL, Family
from rekka.model.likelihood import Evaluation, Likelihood, LikelihoodProtocol, Rows

Array = NDArray[np.float64]
INTERCEPT = "intercept"

Effects = Mapping[str, Sequence[int]]
Shared = Mapping[str, Sequence[Sequence[int]]]


@dataclass(frozen=True)
class Layout:
    """Coefficient f belongs to state f // (p+1) and term f % (p+1); ``parameter[f]`` is -1 if it is absent."""

    terms: tuple[str, ...]
    n_states: int
    parameter: NDArray[np.int64]

    @property
    def n_parameters(self) -> int:
        """P, the number of free parameters."""
        return int(self.parameter.max()) + 1

    @property
    def select(self) -> Array:
        """The map from free parameters to coefficients, (F, P)."""
        matrix = np.zeros((self.parameter.size, self.n_parameters))
        present = self.parameter >= 0
        matrix[np.flatnonzero(present), self.parameter[present]] = 1.0
        return matrix

    @property
    def term_of(self) -> NDArray[np.int64]:
        """The term, 0 for the intercept, of each free parameter."""
        first = np.array([np.flatnonzero(self.parameter == q)[0] for q in range(self.n_parameters)])
        return first % len(self.terms)

    def states_of(self, parameter: int) -> list[int]:
        """The states, 1-based, in which a free parameter stands."""
        return [int(f) // len(self.terms) + 1 for f in np.flatnonzero(self.parameter == parameter)]

    def name(self, parameter: int) -> str:
        """'state 2: traffic_mean', or 'states 1, 2: ...' where it is shared."""
        states = self.states_of(parameter)
        label = ", ".join(map(str, states))
        return f"state{'s' if len(states) > 1 else ''} {label}: {self.terms[self.term_of[parameter]]}"


def build_layout(
    covariates: Sequence[str], n_states: int, effects: Effects | None, shared: Shared | None
) -> Layout:
    """Number the free parameters, state by state; checks both options against covariates and states."""
    effects, shared = dict(effects or {}), dict(shared or {})
    for option, table in (("effects", effects), ("shared", shared)):
        for name in table:
            if name not in covariates:
                raise BadOption(
                    f"{option} names {name}, which is not a covariate of this model. "
                    f"Covariates: {', '.join(covariates) or 'none'}.{did_you_mean(name, covariates)}",
                    option=option,
                    value=name,
                )
    for name, states in effects.items():
        _check_states("effects", name, states, n_states)
    parameter = np.full((n_states - 1, len(covariates) + 1), -1, dtype=np.int64)
    leader = {}
    for name, groups in shared.items():
        acts = effects.get(name, range(1, n_states))
        if isinstance(groups, str) or not all(isinstance(group, Sequence) for group in groups):
            raise BadOption(
                f"shared gives {groups!r} for {name}; a list of groups of states is needed, e.g. [[1, 2]]."
            )
        for group in groups:
            _check_states("shared", name, group, n_states)
            for state in group:
                if state not in acts:
                    raise BadOption(f"shared names state {state} for {name}, but effects leaves it out there.")
                if (name, state) in leader:
                    raise BadOption(f"shared names state {state} twice for {name}.")
                leader[name, state] = min(group)
    count = 0
    for state in range(1, n_states):
        for t, name in enumerate([INTERCEPT, *covariates]):
            first = leader.get((name, state), state)
            if t and state not in effects.get(name, range(1, n_states)):
                continue
            if first < state:
                parameter[state - 1, t] = parameter[first - 1, t]
            else:
                parameter[state - 1, t] = count
                count += 1
    return Layout((INTERCEPT, *covariates), n_states, parameter.ravel())


def _check_states(option: str, name: str, states: object, n_states: int) -> None:
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise BadOption(f"{option} gives {states!r} for {name}; a list of states is needed, e.g. [1, 2].")
    for state in states:
        if state not in range(1, n_states):
            raise BadOption(
                f"{option} names state {state} for {name}; covariates can act on states 1 to {n_states - 1} "
                f"(K = {n_states}, and state {n_states} is never left).",
                option=option,
                value=state,
            )


@dataclass(frozen=True, eq=False)
class Prior:
    """Mean (F,) and precision (F, F) of the coefficients.

    ``uncertainty`` (F, F) is the covariance of the mean, where that was estimated: it moves no coefficient and
    widens their intervals.
    """

    mean: Array
    precision: Array
    uncertainty: Array | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which ``read_prior`` takes."""
        known = {} if self.uncertainty is None else {"uncertainty": self.uncertainty.tolist()}
        return {"mean": self.mean.tolist(), "precision": self.precision.tolist()} | known


def read_prior(given: Prior | Mapping[str, Any] | None, size: int) -> Prior | None:
    """A checked prior of ``size`` coefficients."""
    if given is None:
        return None
    parts = given.to_dict() if isinstance(given, Prior) else given
    if not isinstance(parts, Mapping) or set(parts) - {"uncertainty"} != {"mean", "precision"}:
        raise BadOption(f"prior is a {type(given).__name__}; mean and precision are needed, or None.")
    mean, precision = (np.asarray(parts[name], dtype=np.float64) for name in ("mean", "precision"))
    uncertainty = np.asarray(parts.get("uncertainty", np.zeros((size, size))), dtype=np.float64)
    if mean.shape != (size,) or precision.shape != (size, size) or uncertainty.shape != (size, size):
        raise BadOption(
            f"prior has mean {mean.shape} and precision {precision.shape}; this model has {size} coefficients, "
            f"so that ({size},) and ({size}, {size}) are needed.",
            size=size,
        )
    finite = all(np.isfinite(part).all() for part in (mean, precision, uncertainty))
    if not finite or not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision)[0] <= 0:
        raise BadOption("prior: the precision must be symmetric and positive definite, and everything finite.")
    return Prior(mean, precision, uncertainty if "uncertainty" in parts else None)


Seen = TypeVar("Seen", bound=LikelihoodProtocol)
Other = TypeVar("Other", bound=LikelihoodProtocol)
LEAST_RANK = 1e-10  # least diagonal of the triangular factor of standardised columns that are independent


@dataclass(frozen=True)
class Coordinates(Generic[Seen]):
    """A likelihood as a function of P free coordinates psi, with a penalty (psi - c)' S (psi - c) / 2 + constant.

    The centre c of a ridge is zero. It is kept as a point: with a precise prior the terms of the square multiplied
    out are large, and their difference has too few digits left for Newton to finish on.
    """

    likelihood: Seen
    basis: Array  # (F, P)
    back: Array  # (F, P)
    forward: Array  # (P, F), psi of allowed coefficients of the scaled covariates
    standard: Array  # (P, P), psi = standard @ free parameters of the standardised covariates
    penalty: Array  # (P, P)
    centre: Array  # (P,)
    constant: float
    sway: Array  # (P, P), covariance of the penalty's slope, where the prior's mean is itself uncertain

    @property
    def unit(self) -> float:
        """Mean weight of the rows that can still worsen: limits and tolerances are multiples of it."""
        return self.likelihood.unit

    def gamma(self, psi: Array) -> Array:
        """Coefficients of W, (K-1, p+1)."""
        return (self.basis @ psi).reshape(self.likelihood.n_states - 1, -1)

    def beta(self, psi: Array) -> Array:
        """Coefficients of the scaled covariates, (K-1, p+1)."""
        return (self.back @ psi).reshape(self.likelihood.n_states - 1, -1)

    def evaluate(self, psi: Array, order: int = 2) -> Evaluation:
        """Log-likelihood without the penalty, with gradient and Hessian in psi."""
        with np.errstate(invalid="ignore", over="ignore"):  # infinite far out; whoever asked looks
            value, gradient, hessian = self.likelihood.evaluate(self.basis @ psi, order)
            return Evaluation(value, self.basis.T @ gradient, self.basis.T @ hessian @ self.basis)

    def objective(self, psi: Array, order: int = 2) -> Evaluation:
        """The function that a solver minimizes: minus the log-likelihood plus the penalty."""
        value, gradient, hessian = self.evaluate(psi, order)
        slope = self.penalty @ (psi - self.centre)
        return Evaluation(self.pull(psi) - value, slope - gradient, self.penalty - hessian)

    def pull(self, psi: Array) -> float:
        """The penalty at psi."""
        away = psi - self.centre
        return 0.5 * float(away @ self.penalty @ away) + self.constant

    def of(self, likelihood: Other) -> Coordinates[Other]:
        """These coordinates with another likelihood, such as that of a sample."""
        return replace(cast("Coordinates[Other]", self), likelihood=likelihood)


class Axes(NamedTuple):
    """Mean and deviation (p,) of scaled covariates z, and r (p, p): (z - mean) / sd r^-1 is orthonormal."""

    mean: Array
    sd: Array
    r: Array

    @property
    def independent(self) -> bool:
        """Whether every column varies, and none is made up of the others."""
        return bool((self.sd > 0).all()) and np.abs(np.diag(self.r)).min(initial=np.inf) >= LEAST_RANK


def scaled_coordinates(
    rows: Rows,
    z: Array,
    layout: Layout,
    ridge: float,
    threads: int | None,
    prior: Prior | None = None,
    family: Family = EXPONENTIAL,
) -> Coordinates[Likelihood]:
    """Coordinates of scaled covariates z (n, p) as they are: psi are the free coefficients themselves."""
    likelihood = Likelihood.build(rows, np.column_stack([np.ones(len(z)), z]), threads, family)
    return in_scaled(likelihood, moments(z, rows)[1], layout, ridge, prior)


def in_scaled(likelihood: Seen, sd: Array, layout: Layout, ridge: float, prior: Prior | None) -> Coordinates[Seen]:
    """Coordinates of a likelihood of scaled covariates, whose standard deviations are ``sd`` (p,)."""
    select = layout.select
    ridges = _ridge(layout, ridge * np.concatenate([[0.0], sd]) ** 2)
    return Coordinates(
        likelihood,
        basis=select,
        back=select,
        forward=np.asarray(np.linalg.pinv(select), dtype=np.float64),
        standard=np.diag(1.0 / np.concatenate([[1.0], sd])[layout.term_of]),
        **_penalty(ridges, prior, select),
    )


def orthonormal_coordinates(
    rows: Rows,
    z: Array,
    layout: Layout,
    ridge: float,
    threads: int | None,
    prior: Prior | None = None,
    family: Family = EXPONENTIAL,
) -> Coordinates[Likelihood]:
    """Orthonormal columns of scaled covariates z (n, p), and an orthonormal basis of the coefficients allowed."""
    return in_orthonormal(*orthonormalise(rows, z, threads, family), layout, ridge, prior)


def orthonormalise(rows: Rows, z: Array, threads: int | None, family: Family) -> tuple[Likelihood, Axes]:
    """The likelihood of rows whose scaled covariates z (n, p) are made orthonormal, and how."""
    n, p = z.shape
    axes = _find_axes(z, informative_weight(z, rows))
    if not axes.independent:  # columns that only the rows that start in K keep apart
        axes = _find_axes(z, rows.weight)
    W = np.ones((n, p + 1))
    W[:, 1:] = (z - axes.mean) / axes.sd
    W[:, 1:] = linalg.solve_triangular(axes.r, W[:, 1:].T, trans="T").T if p else 0.0
    return Likelihood.build(rows, W, threads, family), axes


def in_orthonormal(
    likelihood: Seen, axes: Axes, layout: Layout, ridge: float, prior: Prior | None
) -> Coordinates[Seen]:
    """Coordinates of a likelihood of the orthonormal W = [1, (z - mean) / sd r^-1]."""
    (mean, sd, r), p = axes, axes.mean.size
    identity = np.eye(layout.n_states - 1)
    to_standard = linalg.block_diag(1.0, r)  # gamma_k from coefficients of the standardised covariates
    from_scaled = np.block([[np.ones((1, 1)), mean[None, :]], [np.zeros((p, 1)), np.diag(sd)]])
    to_gamma = to_standard @ from_scaled
    basis, upper = np.linalg.qr(np.kron(identity, to_standard) @ layout.select)
    to_scaled = linalg.solve_triangular(to_gamma, np.eye(p + 1))
    inverse = linalg.solve_triangular(upper, np.eye(layout.n_parameters))
    back = np.kron(identity, to_scaled) @ basis
    back[layout.parameter < 0] = 0.0  # absent coefficients are zero, not nearly zero
    ridges = inverse.T @ _ridge(layout, np.full(p + 1, ridge) * (np.arange(p + 1) > 0)) @ inverse
    return Coordinates(
        likelihood,
        basis=basis,
        back=back,
        forward=basis.T @ np.kron(identity, to_gamma),
        standard=upper,
        **_penalty(ridges, prior, back),
    )


def _penalty(ridges: Array, prior: Prior | None, back: Array) -> dict[str, Any]:
    """The ridge, or the prior of the coefficients back @ psi, as a function of psi."""
    if prior is None:
        return {"penalty": ridges, "centre": np.zeros(len(ridges)), "constant": 0.0, "sway": np.zeros_like(ridges)}
    penalty = ridges + back.T @ prior.precision @ back
    centre = np.linalg.solve(penalty, back.T @ prior.precision @ prior.mean)
    short = back @ centre - prior.mean  # zero, unless the layout does not allow the prior's mean
    pull = back.T @ prior.precision
    sway = np.zeros_like(penalty) if prior.uncertainty is None else pull @ prior.uncertainty @ pull.T
    constant = 0.5 * float(short @ prior.precision @ short)
    return {"penalty": penalty, "centre": centre, "constant": constant, "sway": sway}


def _find_axes(z: Array, weight: Array) -> Axes:
    mean, sd = _moments(z, weight)
    share = np.sqrt(weight / weight.sum())[:, None]
    r = np.asarray(np.linalg.qr((z - mean) / sd * share, mode="r")) if sd.size else np.zeros((0, 0))
    return Axes(mean, sd, r)


def moments(z: Array, rows: Rows) -> tuple[Array, Array]:
    """Weighted mean and standard deviation of each column, so that a row of weight 2 is two rows.

    Rows that start in the worst state say nothing of a hazard, and do not count.
    """
    return _moments(z, informative_weight(z, rows))


def _moments(z: Array, weight: Array) -> tuple[Array, Array]:
    mean = np.average(z, axis=0, weights=weight)
    return mean, np.sqrt(np.average((z - mean) ** 2, axis=0, weights=weight))


def informative_weight(z: Array, rows: Rows) -> Array:
    """The rows' weights, 0 for rows that start in the worst state; unless a column of z varies in those alone."""
    able = rows.informative
    if able.all() or not able.any() or (np.ptp(z[able], axis=0) == 0).any():
        return rows.weight
    return np.where(able, rows.weight, 0.0)


def _ridge(layout: Layout, weight_of_term: Array) -> Array:
    """Ridge on each free slope, in standardised units; never on an intercept."""
    return np.diag(weight_of_term[layout.term_of])
