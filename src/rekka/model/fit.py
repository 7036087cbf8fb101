"""Checked rows and options in, one frozen Fit out: scale, choose coordinates, solve, certify, infer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rekka.core.errors import BadOption, bad_option
from rekka.model.certificate import (
    DECREMENT_LIMIT,
    Certificate,
    certify,
    count_pairs,
    is_settled,
    plateau_share,
)
from rekka.model.clock import MIDDLE, Clock, check_clock, make_clock
from rekka.model.coordinates import (
    Coordinates,
    Effects,
    Layout,
    Prior,
    Shared,
    build_layout,
    orthonormal_coordinates,
    read_prior,
    scaled_coordinates,
)
from rekka.model.family import EXPONENTIAL, Family, find_family
from rekka.model.inference import Inference, Meat, add_row_scores, add_scores, infer
from rekka.model.likelihood import Likelihood, Pairs, Rows, compile_kernels
from rekka.model.paper_kernel import floored_log_likelihood
from rekka.model.predictor import Predictor
from rekka.model.restarts import Fewer, Restarts, crude_start, draw_fewer, restart
from rekka.model.separation import Separation, find_separations
from rekka.model.solvers import Outcome, lbfgs, newton, random_start
from rekka.model.survey import FitTest, Resampled, Survey, survey_covariates
from rekka.scaling.operators import FittedScaling
from rekka.scaling.registry import check_method, fit_scaling

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
    prior: Prior | Mapping[str, Any] | None = None
    effects: Effects | None = None
    shared: Shared | None = None
    advance: Sequence[str] | None = None
    clock: str = MIDDLE
    threads: int | None = None
    family: str = EXPONENTIAL.name


@dataclass(frozen=True)
class Fit(Predictor):
    """A fitted model. ``beta`` (K-1, p+1) belongs to the scaled covariates, ``inference`` to native units.

    ``survey`` is None in models that were saved before there was one, ``resampled`` and ``fit_test`` until
    somebody asks for them.
    """

    layout: Layout
    inference: Inference
    outcome: Outcome
    certificate: Certificate
    n_rows: int
    survey: Survey | None = None
    resampled: Resampled | None = None
    fit_test: FitTest | None = None

    @property
    def native(self) -> bool:
        """Whether ``inference`` is in the covariates' own units: wherever the scaling is affine."""
        return not self.covariates or self.scaling.affine() is not None

    @property
    def converged(self) -> bool:
        """The paper's definition: success, finite parameters, finite log-likelihood."""
        return has_converged(self.outcome, self.beta)

    @property
    def coefficients(self) -> Array:
        """Coefficients (K-1, p+1) in the units of ``inference``."""
        return self.inference.coefficients.reshape(self.beta.shape)

    @property
    def covariance_blocks(self) -> Array:
        """Covariance of ``coefficients`` (K-1, p+1, K-1, p+1)."""
        return self.inference.covariance.reshape(self.beta.shape * 2)

    def design(self, x: Array) -> Array:
        """Rows (n, p+1) that ``coefficients`` multiply, intercept first, for raw covariates x (n, p)."""
        return np.column_stack([np.ones(len(x)), x if self.native else self.scaling.transform(x)])


def has_converged(outcome: Outcome, beta: Array) -> bool:
    """The paper's definition: success, finite parameters, finite log-likelihood."""
    return bool(outcome.success and np.isfinite(beta).all() and np.isfinite(outcome.objective))


def check_options(options: Options) -> None:
    """Refuse unknown values and combinations that do not make sense."""
    check_method(options.scaling)
    check_clock(options.clock, options.advance)
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
    if find_family(options.family) is not EXPONENTIAL and options.likelihood == "paper":
        raise BadOption(f"likelihood='paper' has hazards of the exponential family, not {options.family!r}.")
    if not isinstance(options.max_iter, int | np.integer) or options.max_iter < 1:
        raise BadOption(f"max_iter is {options.max_iter!r}; a whole number of at least 1 is needed.")
    if not (isinstance(options.seed, int | np.integer) and options.seed >= 0):
        raise BadOption(f"seed is {options.seed!r}; a whole number of at least 0 is needed.")
    if not (isinstance(options.ridge, int | float | np.number) and 0 <= options.ridge < np.inf):
        raise BadOption(f"ridge is {options.ridge!r}; a finite number of at least 0 is needed.")
    if options.prior is not None and options.ridge:
        raise BadOption("ridge and prior both hold the slopes; give one of them.")
    threads = options.threads
    if threads is not None and (not isinstance(threads, int | np.integer) or threads < 1):
        raise BadOption(f"threads is {threads!r}; a whole number of at least 1 is needed, or None for all cores.")
    for option in ("effects", "shared"):
        if not isinstance(getattr(options, option), Mapping | None):
            raise BadOption(f"{option} is {getattr(options, option)!r}; a dict by covariate name is needed.")


def fit_rows(
    rows: Rows,
    x: Array,
    covariates: tuple[str, ...],
    options: Options,
    groups: NDArray[np.int64] | None = None,
    classes: Array | None = None,
) -> Fit:
    """Fit checked rows.

    ``groups`` (n,) asks for standard errors clustered by it. ``classes`` (n,) are the class weights that the rows'
    weights contain: these are no numbers of rows, and without groups the standard errors are robust by row.
    """
    check_options(options)
    with linear_algebra().limit(limits=1, user_api="blas"):
        return _fit_rows(rows, x, covariates, options, groups, classes)


@lru_cache
def linear_algebra() -> ThreadpoolController:
    """The threads of BLAS. Matrices are small here: threads only wait for each other, long on a busy machine."""
    return ThreadpoolController()


@dataclass(frozen=True)
class Problem:
    """Rows in the kernel's order, scaled, in Newton's coordinates: what is left is to solve it.

    ``x`` (n, p) are the covariates as the clock takes them, in the order given.
    """

    rows: Rows
    x: Array
    z: Array
    order: NDArray[np.intp]
    layout: Layout
    scaling: FittedScaling
    coordinates: Coordinates[Likelihood]
    prior: Prior | None
    clock: Clock

    @property
    def family(self) -> Family:
        """The family of the hazards."""
        return self.coordinates.likelihood.family

    @property
    def held(self) -> bool:
        """Whether a prior holds every coefficient, so that a maximum exists whatever the rows."""
        return self.prior is not None


def pose(
    rows: Rows, x: Array, covariates: tuple[str, ...], options: Options, classes: Array | None = None
) -> Problem:
    """Take the covariates at the clock's moment, fit the operator, transform, choose coordinates.

    ``classes`` (n,) are the class weights that the rows' weights contain; the mean interval is without them.
    """
    weight = rows.weight if classes is None else rows.weight / classes
    pairs = Pairs.of(rows.start, rows.end, rows.dt, weight, rows.n_states)
    clock = make_clock(covariates, options.clock, options.advance).measured(*pairs)
    x = clock.take(x, rows.dt)
    layout = build_layout(covariates, rows.n_states, options.effects, options.shared)
    scaling = fit_scaling(options.scaling, x, covariates)
    order = rows.grouping
    rows, z = rows.take(order), scaling.transform(x[order])
    prior = read_prior(options.prior, layout.parameter.size)
    family = find_family(options.family)
    coordinates = orthonormal_coordinates(rows, z, layout, options.ridge, options.threads, prior, family)
    compile_kernels(family)
    return Problem(rows, x, z, order, layout, scaling, coordinates, prior, clock)


def solve(problem: Problem, options: Options, start: Array | None = None) -> tuple[Array, Array, Outcome]:
    """One solver call: psi, beta (K-1, p+1) and the outcome. ``start`` is a beta for Newton to start from."""
    coordinates = problem.coordinates
    if options.solver == "newton":
        first = crude_start(coordinates) if start is None else coordinates.forward @ start.ravel()
        psi, outcome = newton(coordinates.objective, first, options.max_iter, coordinates.unit)
        return psi, coordinates.beta(psi), outcome
    beta, outcome = _fit_lbfgs(problem, options)
    return coordinates.forward @ beta.ravel(), beta, outcome


def _fit_rows(
    rows: Rows,
    x: Array,
    covariates: tuple[str, ...],
    options: Options,
    groups: NDArray[np.int64] | None,
    classes: Array | None,
) -> Fit:
    problem = pose(rows, x, covariates, options, classes)
    coordinates, layout = problem.coordinates, problem.layout
    separations = [] if problem.held else find_separations(coordinates, layout, options.ridge)
    psi, beta, outcome, restarts = settle(
        coordinates,
        solve(problem, options),
        separations,
        draw_fewer(coordinates),
        newton=options.solver == "newton",
    )
    here = coordinates.objective(psi)
    log_probability, slope = coordinates.likelihood.by_row(coordinates.gamma(psi))
    log_likelihood = coordinates.evaluate(psi, 0).value
    plateau = plateau_share(log_probability)
    return Fit(
        n_states=rows.n_states,
        covariates=covariates,
        layout=layout,
        scaling=problem.scaling,
        beta=beta,
        inference=infer(
            coordinates, psi, here, log_likelihood, problem.scaling, _meat(problem, slope, groups, classes)
        ),
        outcome=outcome,
        certificate=certify(
            coordinates, layout, psi, here, plateau, separations, restarts, _frequency(problem, classes)
        ),
        n_rows=rows.dt.size,
        survey=survey_covariates(problem.x, covariates),
        clock=problem.clock,
        family=problem.family,
    )


def _meat(problem: Problem, slope: Array, groups: NDArray[np.int64] | None, classes: Array | None) -> Meat | None:
    """The sandwich's middle: of groups, of rows where they have class weights, or None where neither is given."""
    likelihood, basis = problem.coordinates.likelihood, problem.coordinates.basis
    if groups is not None:
        return add_scores(likelihood, basis, slope, groups[problem.order])
    return None if classes is None else add_row_scores(likelihood, basis, slope, classes[problem.order])


def _frequency(problem: Problem, classes: Array | None) -> Array:
    """How many rows there are of each start and end (K, K), by the weights given without those of classes."""
    rows = problem.rows
    weight = rows.weight if classes is None else rows.weight / classes[problem.order]
    return count_pairs(Pairs.of(rows.start, rows.end, rows.dt, weight, rows.n_states).weight, rows.n_informative)


def settle(
    coordinates: Coordinates[Any],
    reached: tuple[Array, Array, Outcome],
    separations: Sequence[Separation],
    fewer: Fewer | None,
    *,
    newton: bool,
) -> tuple[Array, Array, Outcome, Restarts]:
    """Look for a higher point than the one reached; Newton's run ends there if there is one."""
    psi, beta, outcome = reached
    restarts = restart(coordinates, psi, separations, fewer)
    if newton and outcome.success and restarts.outcome is not None and restarts.shortfall > DECREMENT_LIMIT:
        psi, outcome = restarts.psi, restarts.outcome  # a higher maximum than the one next to crude rates
        beta, restarts = coordinates.beta(psi), restarts._replace(shortfall=0.0)
    return psi, beta, outcome, restarts


@dataclass(frozen=True)
class Refit(Predictor):
    """A fit among many, of resampled or simulated rows: no other starts, no standard errors."""

    outcome: Outcome
    certificate: Certificate
    log_likelihood: float

    @property
    def converged(self) -> bool:
        """The paper's definition: success, finite parameters, finite log-likelihood."""
        return has_converged(self.outcome, self.beta)

    @property
    def at_maximum(self) -> bool:
        """Whether it reached a maximum, certified or local."""
        return self.outcome.success and self.certificate.at_maximum


def refit_rows(
    rows: Rows, x: Array, covariates: tuple[str, ...], options: Options, start: Array | None = None
) -> Refit:
    """Solve once and certify what was reached; ``start`` is a beta (K-1, p+1) for Newton to start from.

    Where Newton plainly reached a maximum (``is_settled``), nothing more is asked: it is a local maximum, and a
    higher one may lie elsewhere, or at infinity beyond a dip. Otherwise a separation is looked for, and if one is
    found that need not rise for ever, other starts decide, as in ``fit_rows``.
    """
    check_options(options)
    with linear_algebra().limit(limits=1, user_api="blas"):
        problem = pose(rows, x, covariates, options)
        coordinates, layout = problem.coordinates, problem.layout
        psi, beta, outcome = solve(problem, options, start)
        here = coordinates.objective(psi)
        plain = problem.held or is_settled(coordinates, here)
        separations = [] if plain else find_separations(coordinates, layout, options.ridge)
        undecided = bool(separations) and not any(separation.certain for separation in separations)
        restarts = Restarts(psi, None, 0, 0.0)
        if undecided:
            restarts = restart(coordinates, psi, separations, draw_fewer(coordinates))
        log_probability, _ = coordinates.likelihood.by_row(coordinates.gamma(psi))
        plateau = plateau_share(log_probability)
        return Refit(
            n_states=rows.n_states,
            covariates=covariates,
            scaling=problem.scaling,
            beta=beta,
            outcome=outcome,
            certificate=certify(
                coordinates, layout, psi, here, plateau, separations, restarts, _frequency(problem, None)
            ),
            log_likelihood=coordinates.evaluate(psi, 0).value,
            clock=problem.clock,
            family=problem.family,
        )


def _fit_lbfgs(problem: Problem, options: Options) -> tuple[Array, Outcome]:
    """The paper's solver in the coordinates of the scaling."""
    rows, layout = problem.rows, problem.layout
    scaled = scaled_coordinates(
        rows, problem.z, layout, options.ridge, options.threads, problem.prior, problem.family
    )
    if options.likelihood != "paper":
        return run_lbfgs(scaled, options)
    X = np.ascontiguousarray(scaled.likelihood.X.T)

    def floored(psi: Array) -> float:
        beta = np.ascontiguousarray(scaled.beta(psi))
        value = floored_log_likelihood(X, beta, rows.start, rows.end, rows.dt, rows.weight)
        return scaled.pull(psi) - float(value)

    start = random_start(layout.n_parameters, options.seed)
    floored(start)  # compiled, or loaded, before the clock starts
    psi, outcome = lbfgs(floored, start, options.max_iter, with_gradient=False, unit=scaled.unit)
    return scaled.beta(psi), outcome


def run_lbfgs(scaled: Coordinates[Any], options: Options) -> tuple[Array, Outcome]:
    """L-BFGS-B on the exact likelihood: beta (K-1, p+1) and the outcome."""

    def exact(psi: Array) -> tuple[float, Array]:
        value, gradient, _ = scaled.objective(psi, 1)
        return value, gradient

    def value(psi: Array) -> float:
        return scaled.objective(psi, 0).value

    start = random_start(scaled.centre.size, options.seed)
    if options.gradient == "numeric":
        psi, outcome = lbfgs(value, start, options.max_iter, with_gradient=False, unit=scaled.unit)
    else:
        psi, outcome = lbfgs(exact, start, options.max_iter, with_gradient=True, unit=scaled.unit)
    return scaled.beta(psi), outcome
