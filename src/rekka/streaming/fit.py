"""Fits of rows that come in blocks: the questions of ``model.observations``, answered by passes over a source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from rekka.core.errors import BadOption
from rekka.model import inputs
from rekka.model.clock import make_clock
from rekka.model.coordinates import Axes, Coordinates
from rekka.model.family import Family
from rekka.model.fit import Fit, Options, Refit, check_options, fit_observations, refit_observations
from rekka.model.inference import Meat
from rekka.model.likelihood import Evaluation, Pairs
from rekka.model.observations import Observations
from rekka.model.restarts import Fewer
from rekka.model.separation import Constrain
from rekka.scaling.operators import FittedScaling, PartialScaling, pick_scaled
from rekka.scaling.registry import NamedScaler, check_method, fit_links, fits_in_blocks, split_method
from rekka.streaming.blocks import Array, Source
from rekka.streaming.clustered_errors import SCORE_BYTES, add_streamed_row_scores, add_streamed_scores
from rekka.streaming.likelihood import BlockLikelihood, Design
from rekka.streaming.passes import (
    FirstPass,
    OnPass,
    Watched,
    factor_scaled,
    find_quantiles,
    look_over,
    measure_scaled,
    refuse_collinear,
)
from rekka.streaming.scaling import StreamedTraining
from rekka.streaming.separation import constrain_sampled


@dataclass(frozen=True, eq=False)
class StreamedObservations(Observations):
    """Rows of a source, looked over once. Made by ``observe``.

    ``pair_weight`` (K, K) is the class weight of each start and end. ``clustered`` asks for standard errors by the
    groups of the source, whose sums may take ``score_bytes``.
    """

    starts_on_sample = True

    source: Watched
    overview: FirstPass
    pair_weight: Array | None
    clustered: bool
    score_bytes: int

    def fit_scaling(self, method: Any, plain: Collection[str] = ()) -> FittedScaling:
        """Fit one of rekka's operators; refuse covariates that are constant or collinear."""
        seen = self.overview
        return fit_streamed_scaling(self.source, seen.low, seen.high, seen.rows, method, plain)

    def orthonormal(self, scaling: FittedScaling, family: Family) -> tuple[BlockLikelihood, Axes]:
        """The likelihood in orthonormal columns, and these."""
        axes = self._find_axes(scaling, self._weigh_informative())
        if not axes.independent:
            axes = self._find_axes(scaling, self.pair_weight)
        p = axes.mean.size
        mix = linalg.solve_triangular(axes.r, np.eye(p)) / axes.sd[:, None] if p else np.zeros((0, 0))
        return self._likelihood(Design(scaling, axes.mean, mix, self.n_states, self.pair_weight, family)), axes

    def plain(self, scaling: FittedScaling, family: Family) -> BlockLikelihood:
        """The likelihood of the scaled covariates."""
        p = len(self.covariates)
        return self._likelihood(Design(scaling, np.zeros(p), np.eye(p), self.n_states, self.pair_weight, family))

    def _likelihood(self, design: Design) -> BlockLikelihood:
        overview = self.overview
        if self.pair_weight is not None:
            overview = overview._replace(pairs=Pairs(*(table * self.pair_weight for table in overview.pairs)))
        return BlockLikelihood(self.source, design, overview)

    def _find_axes(self, scaling: FittedScaling, pair_weight: Array | None) -> Axes:
        """Mean and deviation of the scaled covariates, and the triangular factor of the standardised ones."""
        source = self.source.at("coordinates")
        scaled = measure_scaled(source, scaling, pair_weight)
        if not self.covariates or not (scaled.sd > 0).all():
            return Axes(scaled.mean, scaled.sd, np.zeros((0, 0)))
        return Axes(scaled.mean, scaled.sd, factor_scaled(source, scaling, scaled, pair_weight))

    def _weigh_informative(self) -> Array | None:
        """The weight of each start and end, 0 for rows that start in the worst state."""
        counts = self.overview.counts
        if not counts[-1].any() or not counts[:-1].any():
            return self.pair_weight
        table = np.ones(counts.shape) if self.pair_weight is None else self.pair_weight.copy()
        table[-1] = 0.0
        return table

    def constrain(self, coordinates: Coordinates[BlockLikelihood]) -> Constrain:
        """The constraints of a sample, and passes for those that it does not have."""
        return partial(constrain_sampled, coordinates.likelihood)

    def sample(self, coordinates: Coordinates[BlockLikelihood]) -> Fewer:
        """The sample's likelihood in the coordinates of all rows."""
        likelihood = coordinates.likelihood
        return Fewer(coordinates.of(likelihood.sample.likelihood(likelihood.design)))

    def settles(self, coordinates: Coordinates[BlockLikelihood], here: Evaluation) -> bool:
        """False: it would take a pass, and the sample most often rules a separation out."""
        return False

    def score(self, coordinates: Coordinates[BlockLikelihood], psi: Array) -> tuple[float, Meat | None]:
        """The share of rows on the plateau, and the scores of groups, or of rows with class weights."""
        likelihood, basis, gamma = coordinates.likelihood, coordinates.basis, coordinates.gamma(psi)
        meat = None
        if self.clustered:
            groups = self.overview.marked.size
            meat = add_streamed_scores(likelihood, basis, gamma, groups, self.score_bytes)
        elif self.pair_weight is not None:
            meat = add_streamed_row_scores(likelihood, basis, gamma)
        return likelihood.plateau(gamma), meat

    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles (q, p) of the raw covariates."""
        if not self.covariates:
            return np.zeros((len(probabilities), 0))
        return find_quantiles(self.source.at("quantiles"), probabilities, self.n_rows)


def fit_streamed_scaling(
    source: Watched, low: Array, high: Array, rows: int, method: Any, plain: Collection[str]
) -> FittedScaling:
    """Fit an operator on covariates of this range (p,); refuse covariates that are constant or collinear."""
    names = source.reading.covariates
    inputs.refuse_constant(low, high, names, rows)
    training = StreamedTraining(names, low, high, source, rows)
    check_method(method)
    links = split_method(method.method if isinstance(method, NamedScaler) else method)
    kept = tuple(name for name in names if name in plain)
    if kept:
        some = training.pick(pick_scaled(names, kept))
        fitted: FittedScaling = PartialScaling(names, kept, fit_links(links if some.names else (), some))
    else:
        fitted = fit_links(links, training)
    refuse_collinear(source.at("coordinates"), *training.moments(), rows)
    return fitted


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
    """Fit the rows of a source (``model.fit.fit_observations``).

    Parameters
    ----------
    source : Source
        Rows that can be passed over as often as it takes.
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
    found = observe(source, options, n_states, class_weight, on_pass, clustered=clustered, score_bytes=score_bytes)
    return fit_observations(found, options)


def refit_source(
    source: Source, options: Options, *, n_states: int | None = None, start: Array | None = None
) -> Refit:
    """Refit the rows of a source (``model.fit.refit_observations``); ``start`` is a beta (K-1, p+1)."""
    _refuse(options)
    return refit_observations(observe(source, options, n_states), options, start)


def observe(
    source: Source,
    options: Options,
    n_states: int | None = None,
    class_weight: str | None = None,
    on_pass: OnPass | None = None,
    *,
    clustered: bool = False,
    score_bytes: int = SCORE_BYTES,
) -> StreamedObservations:
    """Make the first pass: every value checked, ranges, counts of each start and end, groups if asked for."""
    clock = make_clock(source.reading.covariates, options.clock, options.advance)
    watched = Watched(source, on_pass, clock=clock)
    overview = look_over(watched.at("checking", grouped=clustered))
    overview = overview.with_states(inputs.count_states(np.array([len(overview.counts) - 1]), n_states))
    clock = clock.measured(*overview.pairs)
    return StreamedObservations(
        source.reading.covariates,
        clock,
        overview.counts,
        overview.pairs,
        replace(watched, clock=clock),
        overview,
        None if class_weight is None else inputs.weigh_classes(class_weight, overview.counts),
        clustered,
        score_bytes,
    )


def takes_blocks(options: Options) -> bool:
    """Whether rows can be fitted in blocks with these options."""
    return options.likelihood != "paper" and options.half_life is None and fits_in_blocks(options.scaling)


def _refuse(options: Options) -> None:
    """Refuse what needs all rows at once."""
    check_options(options)
    if options.likelihood == "paper":
        raise BadOption("likelihood='paper' needs all rows in memory at once; use the exact one, or fewer rows.")
    refuse_whole_rows(options)


def refuse_whole_rows(options: Options) -> None:
    """Refuse a scaling that cannot be fitted in blocks."""
    if not fits_in_blocks(options.scaling):
        named = isinstance(options.scaling, str | list | tuple | NamedScaler)
        called = repr(options.scaling) if named else f"a {type(options.scaling).__name__}"
        raise BadOption(
            f"scaling is {called}, which needs all rows in memory at once; name one of "
            "rekka's operators, such as zscore, or fit fewer rows."
        )
