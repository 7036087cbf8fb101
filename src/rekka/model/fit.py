"""Fit a model to observations: options, the fit in numbered steps, and the frozen ``Fit`` that comes of it.

The steps are written once (``fit_observations``), for rows in memory, in files or on a cluster: they ask
``observations`` whatever they need to know of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rekka.core.errors import BadOption, bad_option
from rekka.data.categories import NO_CODING, Coding
from rekka.model.certificate import DECREMENT_LIMIT, Certificate, certify
from rekka.model.clock import MIDDLE, Clock, check_clock, make_clock
from rekka.model.coordinates import (
    Coordinates,
    Effects,
    Layout,
    Prior,
    Shared,
    build_layout,
    in_orthonormal,
    in_scaled,
    read_prior,
)
from rekka.model.elements import Nodes
from rekka.model.family import EXPONENTIAL, Family, States, find_family, pick_ends
from rekka.model.histories import Chain, Histories, chain_rows
from rekka.model.inference import Inference, infer
from rekka.model.likelihood import Likelihood, Pairs, Rows, compile_kernels
from rekka.model.observations import HeldObservations, Observations
from rekka.model.paper_kernel import floored_log_likelihood
from rekka.model.records import Filtered, Records, filter_visits
from rekka.model.restarts import Fewer, Restarts, crude_start, restart
from rekka.model.separation import Separation, find_separations, name_levels
from rekka.model.solvers import Outcome, lbfgs, newton, random_start
from rekka.model.survey import PERCENTILES, FitTest, Resampled, Survey
from rekka.scaling.operators import FittedScaling
from rekka.scaling.registry import check_method

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Predictor:
    """Coefficients and their operator: all that a forecast needs of a fit.

    ``beta`` (K-1, p+1) belongs to the covariates as ``clock`` takes and ``scaling`` transforms them.
    """

    n_states: int
    covariates: tuple[str, ...]
    scaling: FittedScaling
    beta: Array
    clock: Clock = field(default_factory=Clock, kw_only=True)
    family: Family = field(default=EXPONENTIAL, kw_only=True)
    coding: Coding = field(default=NO_CODING, kw_only=True)  # of the categories among the covariates
    records: Records | None = field(default=None, kw_only=True)  # of a fit of histories: what ratings say

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table that hold the covariates: a category is one, whatever its levels."""
        return self.coding.columns(self.covariates)

    def describe(self, x: Array) -> dict[str, float | str]:
        """Raw covariates x (p,) by name, a category by its level."""
        return self.coding.collapse(dict(zip(self.covariates, x.tolist(), strict=True)))

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
        """pi (n, K) of each row's end state; of its next rating for a fit of histories."""
        if self.records is not None:
            alone = np.arange(start.size)
            return self.ratings(Chain(start, start, dt, x, alone, alone), np.ones(start.size, dtype=bool))
        order = np.argsort(start, kind="stable")
        eta = self.predictors(self.clock.take(x, dt))[order]  # errors name rows in the order given
        p = np.empty((start.size, self.n_states))
        p[order] = self.family.end_probabilities(eta, dt[order], start[order])
        return p

    def ratings(self, rows: Chain, unseen: NDArray[np.bool_]) -> Array:
        """Probabilities (n, K) of the rating at each row's end, given the visits of its bridge up to its start.

        The ends of ``unseen`` rows (n,) are not known.
        """
        assert self.records is not None  # a fit of histories
        dates = self.records.earliest, self.records.last
        seen = chain_rows(rows, self.records.elements, self.clock, dates)
        p = np.empty((rows.start.size, self.n_states))
        second = seen.begins < 0
        found = self.filter(seen, self.records, self.predictors(seen.x), unseen=second & unseen[seen.row]).ratings
        p[seen.row[second]] = found[second]
        return p

    def filter(
        self,
        seen: Histories,
        records: Records,
        eta: Array,
        nodes: Nodes | None = None,
        unseen: NDArray[np.bool_] | None = None,
    ) -> Filtered:
        """Follow bridges through their visits, with the predictors of their steps (S, K-1) without a trend."""
        if records.trend is not None:
            eta = eta + seen.time[:, None] * records.trend
        return filter_visits(seen, records, self.family.step_hazards(eta), self.family, nodes, unseen)

    def draw_ends(self, start: States, dt: Array, x: Array, u: Array) -> States:
        """End states (n,) drawn with uniform numbers u (n,)."""
        return pick_ends(self.probabilities(start, dt, x), u)

    def log_probabilities(self, rows: Rows, x: Array) -> Array:
        """log pi (n,) of each row's own end state, exact however small pi is."""
        if self.records is not None:
            p = self.probabilities(rows.start, rows.dt, x)
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(p[np.arange(len(x)), rows.end]))
        order = rows.grouping
        X = np.column_stack([np.ones(len(x)), self.scale(x, rows.dt)])[order]
        value = np.empty(len(x))
        value[order] = Likelihood.build(rows.take(order), X, family=self.family).by_row(self.beta)[0]
        return value


SOLVERS = ("newton", "lbfgs")
GRADIENTS = ("exact", "numeric")
LIKELIHOODS = ("exact", "paper")


@dataclass(frozen=True)
class Options:
    """Options of a fit; the estimator's constructor documents each."""

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
    half_life: float | None = None
    coding: Coding = NO_CODING  # of the categories among the covariates, whose 0/1 columns no scaling changes


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
    years = options.half_life
    usual = isinstance(years, int | float | np.number) and not isinstance(years, bool)
    if years is not None and not (usual and 0 < years < np.inf):
        raise BadOption(
            f"half_life is {years!r}; a number of years above 0 is needed, or None for equal weights.",
            option="half_life",
            value=years,
        )
    threads = options.threads
    if threads is not None and (not isinstance(threads, int | np.integer) or threads < 1):
        raise BadOption(f"threads is {threads!r}; a whole number of at least 1 is needed, or None for all cores.")
    for option in ("effects", "shared"):
        if not isinstance(getattr(options, option), Mapping | None):
            raise BadOption(f"{option} is {getattr(options, option)!r}; a dict by covariate name is needed.")


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
        """Whether the fit reached a maximum, certified or local."""
        return self.outcome.success and self.certificate.at_maximum


@lru_cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread: matrices are small, and its threads only wait for each other."""
    limit: AbstractContextManager[Any] = _threadpools().limit(limits=1, user_api="blas")
    return limit


@dataclass(frozen=True, eq=False)
class Problem:
    """Observations, scaled and in Newton's coordinates: what is left is to solve it."""

    observations: Observations
    layout: Layout
    scaling: FittedScaling
    coordinates: Coordinates[Any]
    sd: Array  # (p,), of the scaled covariates
    prior: Prior | None
    options: Options

    @cached_property
    def sample(self) -> Fewer | None:
        """A sample of the rows for other starts; None where those are tried on all rows."""
        return self.observations.sample(self.coordinates)

    def separate(self) -> list[Separation]:
        """Directions in which the likelihood may rise for ever; none where a prior holds every coefficient."""
        if self.prior is not None:
            return []
        constrain = self.observations.constrain(self.coordinates)
        found = find_separations(self.coordinates, self.layout, self.options.ridge, constrain)
        return [name_levels(one, self.coordinates, self.layout, self.options.coding) for one in found]

    def predictor(self, beta: Array) -> dict[str, Any]:
        """The fields of a ``Predictor`` with these coefficients (K-1, p+1)."""
        return {
            "n_states": self.observations.n_states,
            "covariates": self.observations.covariates,
            "scaling": self.scaling,
            "beta": beta,
            "clock": self.observations.clock,
            "family": find_family(self.options.family),
            "coding": self.options.coding,
        }


class Reached(NamedTuple):
    """Where a solver stopped: psi (P,), beta (K-1, p+1) and the outcome."""

    psi: Array
    beta: Array
    outcome: Outcome


def fit_observations(observations: Observations, options: Options) -> Fit:
    """Fit a model, certify it, and keep what a forecast needs.

    1. Fit the scaling operator on the covariates, taken at the clock's moment; number the free parameters.
    2. Choose orthonormal coordinates.
    3. Look for directions in which the likelihood has no finite maximum.
    4. Solve: Newton from crude rates, or the best maximum of a sample; L-BFGS-B from the paper's random start.
    5. Start again elsewhere; Newton's run ends at a higher maximum if there is one.
    6. At that point, take derivatives, the share of rows on the plateau, and scores of groups or rows.
    7. Certify the point; infer standard errors; survey the covariates.
    """
    with one_blas_thread():
        problem = pose(observations, options)  # 1, 2
        coordinates = problem.coordinates
        separations = problem.separate()  # 3
        reached = solve(problem)  # 4
        (psi, beta, outcome), restarts = settle(problem, reached, separations)  # 5
        here = coordinates.objective(psi)  # 6
        plateau, meat = observations.score(coordinates, psi)
        log_likelihood = coordinates.pull(psi) - here.value
        return Fit(  # 7
            **problem.predictor(beta),
            layout=problem.layout,
            inference=infer(coordinates, psi, here, log_likelihood, problem.scaling, meat),
            outcome=outcome,
            certificate=certify(
                coordinates, problem.layout, psi, here, plateau, separations, restarts, observations.frequency
            ),
            n_rows=observations.n_rows,
            survey=Survey(observations.covariates, observations.quantiles(PERCENTILES).T),
        )


def refit_observations(observations: Observations, options: Options, start: Array | None = None) -> Refit:
    """Solve once and certify what was reached; ``start`` is a beta (K-1, p+1) for Newton to start from.

    Where Newton plainly reached a maximum (``is_settled``), nothing more is asked: it is a local maximum, and a
    higher one may lie elsewhere, or at infinity beyond a dip. Otherwise a separation is looked for, and if one is
    found that need not rise for ever, other starts decide, as in ``fit_observations``.
    """
    with one_blas_thread():
        problem = pose(observations, options)
        coordinates = problem.coordinates
        psi, beta, outcome = solve(problem, start)
        here = coordinates.objective(psi)
        separations = [] if observations.settles(coordinates, here) else problem.separate()
        restarts = Restarts(psi, None, 0, 0.0)
        if separations and not any(separation.certain for separation in separations):
            restarts = restart(coordinates, psi, separations, problem.sample)
        plateau, _ = observations.score(coordinates, psi)
        return Refit(
            **problem.predictor(beta),
            outcome=outcome,
            certificate=certify(
                coordinates, problem.layout, psi, here, plateau, separations, restarts, observations.frequency
            ),
            log_likelihood=coordinates.pull(psi) - here.value,
        )


def pose(observations: Observations, options: Options) -> Problem:
    """Fit the scaling operator, number the free parameters, choose orthonormal coordinates."""
    layout = lay_out(observations.covariates, observations.n_states, options)
    scaling = observations.fit_scaling(options.scaling, options.coding.terms)
    prior, family = read_prior(options.prior, layout.parameter.size), find_family(options.family)
    likelihood, axes = observations.orthonormal(scaling, family)
    coordinates = in_orthonormal(likelihood, axes, layout, options.ridge, prior)
    compile_kernels(family)
    return Problem(observations, layout, scaling, coordinates, axes.sd, prior, options)


def lay_out(covariates: Sequence[str], n_states: int, options: Options) -> Layout:
    """Number the free parameters; ``effects`` and ``shared`` may name a category for all its terms."""
    coding = options.coding
    return build_layout(
        covariates, n_states, coding.expand_keys(options.effects), coding.expand_keys(options.shared)
    )


def solve(problem: Problem, start: Array | None = None) -> Reached:
    """Call the solver once. ``start`` is a beta (K-1, p+1) for Newton to start from."""
    coordinates, options = problem.coordinates, problem.options
    if options.solver == "lbfgs":
        beta, outcome = _solve_lbfgs(problem)
        return Reached(coordinates.forward @ beta.ravel(), beta, outcome)
    if start is not None:
        first = coordinates.forward @ start.ravel()
    elif problem.observations.starts_on_sample and problem.sample is not None and problem.sample.maxima:
        first = problem.sample.maxima[0].psi
    else:
        first = crude_start(coordinates)
    psi, outcome = newton(coordinates.objective, first, options.max_iter, coordinates.unit)
    return Reached(psi, coordinates.beta(psi), outcome)


def _solve_lbfgs(problem: Problem) -> tuple[Array, Outcome]:
    """L-BFGS-B in the coordinates of the scaling, on the exact likelihood or the paper's: beta (K-1, p+1)."""
    options = problem.options
    likelihood = problem.observations.plain(problem.scaling, find_family(options.family))
    scaled = in_scaled(likelihood, problem.sd, problem.layout, options.ridge, problem.prior)
    start = random_start(scaled.centre.size, options.seed)
    if options.likelihood == "paper":
        rows, X = likelihood.rows, np.ascontiguousarray(likelihood.X.T)

    def exact(psi: Array) -> tuple[float, Array]:
        value, gradient, _ = scaled.objective(psi, 1)
        return value, gradient

    def value(psi: Array) -> float:
        return scaled.objective(psi, 0).value

    def floored(psi: Array) -> float:
        beta = np.ascontiguousarray(scaled.beta(psi))
        found = floored_log_likelihood(X, beta, rows.start, rows.end, rows.dt, rows.weight)
        return scaled.pull(psi) - float(found)

    if options.gradient == "exact":
        psi, outcome = lbfgs(exact, start, options.max_iter, with_gradient=True, unit=scaled.unit)
    else:
        function = floored if options.likelihood == "paper" else value
        function(start)  # compiled, or loaded, before the clock starts
        psi, outcome = lbfgs(function, start, options.max_iter, with_gradient=False, unit=scaled.unit)
    return scaled.beta(psi), outcome


def settle(problem: Problem, reached: Reached, separations: Sequence[Separation]) -> tuple[Reached, Restarts]:
    """Look for a higher point than the one reached; Newton's run ends there if there is one."""
    coordinates = problem.coordinates
    restarts = restart(coordinates, reached.psi, separations, problem.sample)
    better = restarts.outcome if restarts.shortfall > DECREMENT_LIMIT else None
    if problem.options.solver == "newton" and reached.outcome.success and better is not None:
        reached = Reached(restarts.psi, coordinates.beta(restarts.psi), better)
        restarts = restarts._replace(shortfall=0.0)  # a higher maximum than the one next to crude rates
    return reached, restarts


def fit_rows(
    rows: Rows,
    x: Array,
    covariates: tuple[str, ...],
    options: Options,
    groups: NDArray[np.int64] | None = None,
    classes: Array | None = None,
) -> Fit:
    """Fit checked rows in memory, with raw covariates x (n, p) at first visits.

    ``groups`` and ``classes`` are those of ``HeldObservations``.
    """
    check_options(options)
    fit = fit_observations(hold(rows, x, covariates, options, groups, classes), options)
    return replace(fit, inference=fit.inference.weighted(options.half_life))


def refit_rows(
    rows: Rows, x: Array, covariates: tuple[str, ...], options: Options, start: Array | None = None
) -> Refit:
    """Refit checked rows in memory (``refit_observations``)."""
    check_options(options)
    return refit_observations(hold(rows, x, covariates, options), options, start)


def hold(
    rows: Rows,
    x: Array,
    covariates: tuple[str, ...],
    options: Options,
    groups: NDArray[np.int64] | None = None,
    classes: Array | None = None,
) -> HeldObservations:
    """Rows in memory as observations: counted, with covariates taken at the clock's moment."""
    K, weight = rows.n_states, rows.weight if classes is None else rows.weight / classes
    counts = np.bincount(rows.start * K + rows.end, minlength=K * K).reshape(K, K)
    pairs = Pairs.of(rows.start, rows.end, rows.dt, weight, K)
    clock = make_clock(covariates, options.clock, options.advance).measured(*pairs)
    x = clock.take(x, rows.dt)
    return HeldObservations(covariates, clock, counts, pairs, rows, x, groups, classes, options.threads)
