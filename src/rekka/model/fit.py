"""Checked rows and options in, one frozen Fit out: scale, choose coordinates, solve, certify, infer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rekka.errors import BadOption, bad_option
from rekka.model import kernel
from rekka.model.certificate import DECREMENT_LIMIT, Certificate, certify
from rekka.model.coordinates import orthonormal_coordinates, scaled_coordinates
from rekka.model.inference import Inference, infer
from rekka.model.layout import Effects, Layout, Shared, build_layout
from rekka.model.likelihood import Likelihood, Rows, compile_kernels
from rekka.model.paper_kernel import floored_log_likelihood
from rekka.model.restarts import crude_start, restart
from rekka.model.separation import find_separations
from rekka.model.solvers import Outcome, lbfgs, newton, random_start
from rekka.scaling.fitting import check_method, fit_scaling
from rekka.scaling.operators import FittedScaling

Array = NDArray[np.float64]

SOLVERS = ("newton", "lbfgs")
GRADIENTS = ("exact", "numeric")
LIKELIHOODS = ("exact", "paper")


@dataclass(frozen=True)
class Options:
    """How to fit; the estimator's constructor documents each."""

    scaling: Any = "zscore"
    solver: str = "newton"
    gradient: str = "exact"
    likelihood: str = "exact"
    max_iter: int = 500
    seed: int = 0
    ridge: float = 0.0
    effects: Effects | None = None
    shared: Shared | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Fit:
    """A fitted model. ``beta`` (K-1, p+1) belongs to the scaled covariates, ``inference`` to native units."""

    n_states: int
    covariates: tuple[str, ...]
    layout: Layout
    scaling: FittedScaling
    beta: Array
    inference: Inference
    outcome: Outcome
    certificate: Certificate
    n_rows: int

    @property
    def native(self) -> bool:
        """Whether ``inference`` is in the covariates' own units: wherever the scaling is affine."""
        return not self.covariates or self.scaling.affine() is not None

    @property
    def converged(self) -> bool:
        """The paper's definition: success, finite parameters, finite log-likelihood."""
        finite = np.isfinite(self.beta).all() and np.isfinite(self.outcome.objective)
        return bool(self.outcome.success and finite)

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


def check_options(options: Options) -> None:
    """Refuse unknown values and combinations that do not make sense."""
    check_method(options.scaling)
    for option, choices in (("solver", SOLVERS), ("gradient", GRADIENTS), ("likelihood", LIKELIHOODS)):
        if getattr(options, option) not in choices:
            raise bad_option(option, getattr(options, option), choices)
    if options.solver == "newton" and (options.gradient != "exact" or options.likelihood != "exact"):
        raise BadOption(
            "solver='newton' uses the exact likelihood with its exact gradient and Hessian. "
            "Use solver='lbfgs' with gradient='numeric' or likelihood='paper'."
        )
    if options.likelihood == "paper" and options.gradient != "numeric":
        raise BadOption(
            "likelihood='paper' is floored and has no exact gradient; use gradient='numeric', as the paper does."
        )
    if not isinstance(options.max_iter, int | np.integer) or options.max_iter < 1:
        raise BadOption(f"max_iter is {options.max_iter!r}; a whole number of at least 1 is needed.")
    if not (isinstance(options.seed, int | np.integer) and options.seed >= 0):
        raise BadOption(f"seed is {options.seed!r}; a whole number of at least 0 is needed.")
    if not (isinstance(options.ridge, int | float | np.number) and 0 <= options.ridge < np.inf):
        raise BadOption(f"ridge is {options.ridge!r}; a finite number of at least 0 is needed.")
    threads = options.threads
    if threads is not None and (not isinstance(threads, int | np.integer) or threads < 1):
        raise BadOption(f"threads is {threads!r}; a whole number of at least 1 is needed, or None for all cores.")
    for option in ("effects", "shared"):
        if not isinstance(getattr(options, option), Mapping | None):
            raise BadOption(f"{option} is {getattr(options, option)!r}; a dict by covariate name is needed.")


def fit_rows(
    rows: Rows, x: Array, covariates: tuple[str, ...], options: Options, groups: NDArray[np.int64] | None = None
) -> Fit:
    """Fit checked rows; ``groups`` (n,) asks for standard errors clustered by it."""
    check_options(options)
    with _linear_algebra().limit(limits=1, user_api="blas"):
        return _fit_rows(rows, x, covariates, options, groups)


@lru_cache
def _linear_algebra() -> ThreadpoolController:
    """The threads of BLAS. Matrices are small here: threads only wait for each other, long on a busy machine."""
    return ThreadpoolController()


def _fit_rows(
    rows: Rows, x: Array, covariates: tuple[str, ...], options: Options, groups: NDArray[np.int64] | None
) -> Fit:
    layout = build_layout(covariates, rows.n_states, options.effects, options.shared)
    scaling = fit_scaling(options.scaling, x, covariates)
    order = rows.grouping
    rows, z = rows.take(order), scaling.transform(x[order])
    coordinates = orthonormal_coordinates(rows, z, layout, options.ridge, options.threads)
    compile_kernels()
    separations = find_separations(coordinates, layout, options.ridge)
    if options.solver == "newton":
        psi, outcome = newton(coordinates.objective, crude_start(coordinates), options.max_iter)
        restarts = restart(coordinates, psi, separations)
        if outcome.success and restarts.outcome is not None and restarts.shortfall > DECREMENT_LIMIT:
            psi, outcome = restarts.psi, restarts.outcome  # a higher maximum than the one next to crude rates
            restarts = restarts._replace(shortfall=0.0)
        beta = coordinates.beta(psi)
    else:
        beta, outcome = _fit_lbfgs(rows, z, layout, options)
        psi = coordinates.forward @ beta.ravel()
        restarts = restart(coordinates, psi, separations)
    here = coordinates.objective(psi)
    log_probability, slope = coordinates.likelihood.by_row(coordinates.gamma(psi))
    log_likelihood = coordinates.evaluate(psi, 0).value
    members = None if groups is None else groups[order]
    return Fit(
        n_states=rows.n_states,
        covariates=covariates,
        layout=layout,
        scaling=scaling,
        beta=beta,
        inference=infer(coordinates, psi, here, log_likelihood, scaling, slope, members),
        outcome=outcome,
        certificate=certify(coordinates, layout, psi, here, log_probability, separations, restarts),
        n_rows=rows.dt.size,
    )


def _fit_lbfgs(rows: Rows, z: Array, layout: Layout, options: Options) -> tuple[Array, Outcome]:
    """The paper's solver in the coordinates of the scaling."""
    scaled = scaled_coordinates(rows, z, layout, options.ridge, options.threads)
    start = random_start(layout.n_parameters, options.seed)

    def exact(psi: Array) -> tuple[float, Array]:
        value, gradient, _ = scaled.objective(psi, 1)
        return value, gradient

    def value(psi: Array) -> float:
        return scaled.objective(psi, 0).value

    X = np.ascontiguousarray(scaled.likelihood.X.T)

    def floored(psi: Array) -> float:
        beta = np.ascontiguousarray(scaled.beta(psi))
        value = floored_log_likelihood(X, beta, rows.start, rows.end, rows.dt, rows.weight)
        return 0.5 * float(psi @ scaled.penalty @ psi) - float(value)

    if options.likelihood == "paper":
        floored(start)  # compiled, or loaded, before the clock starts
        psi, outcome = lbfgs(floored, start, options.max_iter, with_gradient=False)
    elif options.gradient == "numeric":
        psi, outcome = lbfgs(value, start, options.max_iter, with_gradient=False)
    else:
        psi, outcome = lbfgs(exact, start, options.max_iter, with_gradient=True)
    return scaled.beta(psi), outcome
