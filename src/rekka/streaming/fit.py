"""A source of rows and options in, one frozen Fit out: what ``model.fit`` does, by passes over blocks.

1. Look the rows over: every value checked, ranges, counts of each start and end.
2. Fit the operator; choose orthonormal coordinates.
3. Is there a finite maximum?
4. Newton from the highest maximum of a sample of the rows, a pass for every evaluation; again from its others.
5. Certify, infer, survey.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from rekka.core.errors import BadOption
from rekka.model import inputs
from rekka.model.certificate import certify, count_pairs
from rekka.model.clock import Clock, make_clock
from rekka.model.coordinates import (
    LEAST_RANK,
    Coordinates,
    Layout,
    Prior,
    build_layout,
    in_orthonormal,
    in_scaled,
    read_prior,
)
from rekka.model.family import find_family
from rekka.model.fit import Fit, Options, Refit, check_options, linear_algebra, run_lbfgs, settle
from rekka.model.inference import Meat, infer
from rekka.model.likelihood import Pairs, compile_kernels
from rekka.model.restarts import Fewer, Restarts, crude_start, restart
from rekka.model.separation import Separation
from rekka.model.solvers import Outcome, newton
from rekka.model.survey import PERCENT, Survey
from rekka.scaling.operators import FittedScaling
from rekka.scaling.registry import NamedScaler, check_method, fit_links, fits_in_blocks, split_method
from rekka.streaming.blocks import Array, Source
from rekka.streaming.clustered_errors import SCORE_BYTES, add_streamed_row_scores, add_streamed_scores
from rekka.streaming.likelihood import BlockLikelihood, Design
from rekka.streaming.passes import (
    Moments,
    OnPass,
    Overview,
    Watched,
    find_quantiles,
    look_over,
    measure_scaled,
    orthonormalise,
    refuse_collinear,
)
from rekka.streaming.scaling import StreamedTraining
from rekka.streaming.separation import Sampled, find_streamed_separations, sample_rows


@dataclass(frozen=True, eq=False)
class Posed:
    """Rows looked over, the operator fitted, coordinates chosen: what is left is to solve it."""

    source: Watched
    overview: Overview
    layout: Layout
    scaling: FittedScaling
    scaled: Moments
    pair_weight: Array | None
    coordinates: Coordinates[BlockLikelihood]
    prior: Prior | None
    frequency: Array  # how many rows there are of each start and end (K, K), by the weights given

    @property
    def clock(self) -> Clock:
        """The clock of the rows, with their mean interval."""
        return self.source.clock

    @cached_property
    def sample(self) -> Sampled:
        """Some of the rows of each start and end."""
        return sample_rows(self.coordinates.likelihood)

    @cached_property
    def fewer(self) -> Fewer:
        """The sample in the coordinates of all rows, and its maxima."""
        return self.sample.in_coordinates(self.coordinates)

    def separate(self, ridge: float) -> list[Separation]:
        """Directions in which the likelihood may rise for ever; none where a prior holds every coefficient."""
        if self.prior is not None:
            return []
        return find_streamed_separations(self.coordinates, self.layout, ridge, self.sample)

    def meat(self, psi: Array, *, clustered: bool, score_bytes: int) -> Meat | None:
        """The sandwich's middle: of groups, of rows where they have class weights, or None."""
        likelihood, basis = self.coordinates.likelihood, self.coordinates.basis
        gamma = self.coordinates.gamma(psi)
        if clustered:
            return add_streamed_scores(likelihood, basis, gamma, self.overview.marked.size, score_bytes)
        return None if self.pair_weight is None else add_streamed_row_scores(likelihood, basis, gamma)

    def solve(self, options: Options, start: Array | None = None) -> tuple[Array, Array, Outcome]:
        """One solver call: psi, beta (K-1, p+1) and the outcome. ``start`` is a beta for Newton to start from."""
        coordinates = self.coordinates
        if options.solver == "newton":
            known = None if start is None else coordinates.forward @ start.ravel()
            best = self.fewer.maxima[0].psi if known is None and self.fewer.maxima else crude_start(coordinates)
            first = best if known is None else known
            psi, outcome = newton(coordinates.objective, first, options.max_iter, coordinates.unit)
            return psi, coordinates.beta(psi), outcome
        p = self.scaled.mean.size
        likelihood = _likelihood(self, np.zeros(p), np.eye(p))
        beta, outcome = run_lbfgs(
            in_scaled(likelihood, self.scaled.sd, self.layout, options.ridge, self.prior), options
        )
        return coordinates.forward @ beta.ravel(), beta, outcome


def fit_source(
    source: Source,
    options: Options,
    *,
    n_states: int | None = None,
    class_weight: str | None = None,
    clustered: bool = False,
    score_bytes: int = SCORE_BYTES,
    on_pass: OnPass | None = None,
) -> Fit:
    """Fit the rows of a source.

    Parameters
    ----------
    source : Source
        Rows that can be gone through as often as it takes.
    options : Options
        As for rows in memory; the paper's floored likelihood and foreign transformers need those.
    n_states : int, optional
        K; the worst end state by default.
    class_weight : "inverse_frequency", optional
        Weight each row by the inverse frequency of its start and end.
    clustered : bool
        Whether standard errors are clustered by the group that the reading names.
    score_bytes : int
        Memory for the sums of groups; where they need more, there are more passes.
    on_pass : function of a text, optional
        Called before each pass with what it is for.

    """
    _refuse(options)
    with linear_algebra().limit(limits=1, user_api="blas"):
        posed = pose_source(watch(source, options, on_pass), options, n_states, class_weight, clustered=clustered)
        coordinates, layout = posed.coordinates, posed.layout
        separations = posed.separate(options.ridge)
        psi, beta, outcome, restarts = settle(
            coordinates, posed.solve(options), separations, posed.fewer, newton=options.solver == "newton"
        )
        here = coordinates.objective(psi)
        meat = posed.meat(psi, clustered=clustered, score_bytes=score_bytes)
        value = coordinates.pull(psi) - here.value
        plateau = coordinates.likelihood.plateau(coordinates.gamma(psi))
        return Fit(
            n_states=layout.n_states,
            covariates=posed.source.reading.covariates,
            layout=layout,
            scaling=posed.scaling,
            beta=beta,
            inference=infer(coordinates, psi, here, value, posed.scaling, meat),
            outcome=outcome,
            certificate=certify(coordinates, layout, psi, here, plateau, separations, restarts, posed.frequency),
            n_rows=posed.overview.rows,
            survey=survey_source(posed.source, posed.overview.rows),
            clock=posed.clock,
            family=coordinates.likelihood.design.family,
        )


def refit_source(
    source: Source, options: Options, *, n_states: int | None = None, start: Array | None = None
) -> Refit:
    """Solve once and certify what was reached; ``start`` is a beta (K-1, p+1) for Newton to start from."""
    _refuse(options)
    with linear_algebra().limit(limits=1, user_api="blas"):
        posed = pose_source(watch(source, options), options, n_states)
        coordinates, layout = posed.coordinates, posed.layout
        separations = posed.separate(options.ridge)
        psi, beta, outcome = posed.solve(options, start)
        here = coordinates.objective(psi)
        undecided = bool(separations) and not any(separation.certain for separation in separations)
        restarts = Restarts(psi, None, 0, 0.0)
        if undecided:
            restarts = restart(coordinates, psi, separations, posed.fewer)
        plateau = coordinates.likelihood.plateau(coordinates.gamma(psi))
        return Refit(
            n_states=layout.n_states,
            covariates=posed.source.reading.covariates,
            scaling=posed.scaling,
            beta=beta,
            outcome=outcome,
            certificate=certify(coordinates, layout, psi, here, plateau, separations, restarts, posed.frequency),
            log_likelihood=coordinates.pull(psi) - here.value,
            clock=posed.clock,
            family=coordinates.likelihood.design.family,
        )


def watch(source: Source, options: Options, on_pass: OnPass | None = None) -> Watched:
    """The source with its covariates taken at the moment that the options name."""
    return Watched(source, on_pass, clock=make_clock(source.reading.covariates, options.clock, options.advance))


def pose_source(
    source: Watched,
    options: Options,
    n_states: int | None = None,
    class_weight: str | None = None,
    *,
    clustered: bool = False,
) -> Posed:
    """Look the rows over, with their groups if errors are clustered; fit the operator; choose coordinates."""
    names = source.reading.covariates
    overview = look_over(source.at("checking", grouped=clustered))
    count = inputs.count_states(np.array([len(overview.counts) - 1]), n_states)
    overview = overview.with_states(count)
    source = replace(source, clock=source.clock.measured(*overview.pairs))
    layout = build_layout(names, count, options.effects, options.shared)
    inputs.refuse_constant(overview.low, overview.high, names, overview.rows)
    training = StreamedTraining(names, overview.low, overview.high, source, overview.rows)
    scaling = _fit_operator(options.scaling, training)
    refuse_collinear(source.at("coordinates"), *training.moments(), overview.rows)
    pair_weight = weigh_pairs(class_weight, overview)
    frequency = count_pairs(overview.pairs.weight, int(overview.counts[:-1].sum()))
    if pair_weight is not None:
        overview = overview._replace(pairs=Pairs(*(table * pair_weight for table in overview.pairs)))
    scaled, r = _orthonormalise(source.at("coordinates"), scaling, _weigh_informative(pair_weight, overview))
    if not (scaled.sd > 0).all() or np.abs(np.diag(r)).min(initial=np.inf) < LEAST_RANK:
        scaled, r = _orthonormalise(source.at("coordinates"), scaling, pair_weight)
    mix = linalg.solve_triangular(r, np.eye(len(names))) / scaled.sd[:, None] if names else np.zeros((0, 0))
    family = find_family(options.family)
    design = Design(scaling, scaled.mean, mix, count, pair_weight, family)
    prior = read_prior(options.prior, layout.parameter.size)
    likelihood = BlockLikelihood(source, design, overview.counts, overview.pairs)
    coordinates = in_orthonormal(likelihood, scaled.mean, scaled.sd, r, layout, options.ridge, prior)
    compile_kernels(family)
    return Posed(source, overview, layout, scaling, scaled, pair_weight, coordinates, prior, frequency)


def _orthonormalise(source: Watched, scaling: FittedScaling, pair_weight: Array | None) -> tuple[Moments, Array]:
    """The moments of the scaled covariates, and the triangular factor (p, p) of the standardised ones."""
    scaled = measure_scaled(source, scaling, pair_weight)
    if not source.reading.covariates or not (scaled.sd > 0).all():
        return scaled, np.zeros((0, 0))
    return scaled, orthonormalise(source, scaling, scaled, pair_weight)


def _weigh_informative(pair_weight: Array | None, overview: Overview) -> Array | None:
    """The weight of each start and end, 0 for rows that start in the worst state."""
    if not overview.counts[-1].any() or not overview.counts[:-1].any():
        return pair_weight
    table = np.ones(overview.counts.shape) if pair_weight is None else pair_weight.copy()
    table[-1] = 0.0
    return table


def _likelihood(posed: Posed, offset: Array, mix: Array) -> BlockLikelihood:
    design = replace(posed.coordinates.likelihood.design, offset=offset, mix=mix)
    return BlockLikelihood(posed.source, design, posed.overview.counts, posed.overview.pairs)


def weigh_pairs(class_weight: str | None, overview: Overview) -> Array | None:
    """The weight of each start and end (K, K), averaging 1 over the rows that can still worsen; None for none."""
    if class_weight is None:
        return None
    return inputs.weigh_classes(class_weight, overview.counts)


def survey_source(source: Watched, rows: int) -> Survey:
    """The spread of the raw covariates."""
    names = source.reading.covariates
    if not names:
        return Survey(names, np.zeros((0, PERCENT)))
    return Survey(names, find_quantiles(source.at("quantiles"), np.linspace(0.0, 1.0, PERCENT), rows).T)


def _fit_operator(scaling: object, training: StreamedTraining) -> FittedScaling:
    check_method(scaling)
    return fit_links(split_method(scaling.method if isinstance(scaling, NamedScaler) else scaling), training)


def takes_blocks(options: Options) -> bool:
    """Whether a fit with these options can go through its rows in blocks."""
    return options.likelihood != "paper" and fits_in_blocks(options.scaling)


def _refuse(options: Options) -> None:
    """Refuse what needs all rows at once."""
    check_options(options)
    if options.likelihood == "paper":
        raise BadOption("likelihood='paper' needs all rows in memory at once; use the exact one, or fewer rows.")
    if not fits_in_blocks(options.scaling):
        named = isinstance(options.scaling, str | list | tuple | NamedScaler)
        called = repr(options.scaling) if named else f"a {type(options.scaling).__name__}"
        raise BadOption(
            f"scaling is {called}, which needs all rows in memory at once; name one of "
            "rekka's operators, such as zscore, or fit fewer rows."
        )
