"""Choice of a ridge by cross-validation: folds of whole bridges, log loss of the rows left out.

    b(ridge) = arg max  l(b) - ridge / 2 sum of squared slopes, in z-scored units, intercepts left alone

The grid counts in moves, the number of states that the rows leave: the information on a slope is about that many,
so that a ten-thousandth of it is as good as no ridge, and a hundred times it as good as no covariates.

Of the values whose log loss is not clearly above the least (by more than a standard error of the difference,
clustered by bridge) the strongest is taken. The least itself follows the noise of a small case: on golden rows of
100 simulated inventories (``benchmarks/small_samples.py``) the mean log loss of this rule, and of the least, was
.878 and .919 with 27 training rows, .840 and .848 with 86. With 216 rows or more (25 inventories) the least was
mostly better, by up to .011. The usual rule, with the standard error of the loss itself, leaves out all covariates
up to 300 rows, and cost .01 to .03 more than the least above.

A ridge does not hold intercepts. Where no row leaves a state, or none stays, its hazard has no maximum: it is held
at the rate of all states together, within a factor of e or so; other intercepts are left alone. Without that, one
row that leaves such a state among those left out costs an infinite log loss whatever the ridge, and nothing could
be compared. A centre at the state's own crude rate, or a wider hold, did worse by .02 to .03 with 27 rows.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption
from rekka.data.partition import PAPER_SEED
from rekka.evaluation.resampling import Sample, folds
from rekka.evaluation.scores import Interval, mean_interval
from rekka.model.coordinates import Coordinates, Layout, Prior, build_layout, moments, scaled_coordinates
from rekka.model.family import Family, find_family
from rekka.model.fit import Options, check_options, lay_out, one_blas_thread
from rekka.model.likelihood import Likelihood, Rows, compile_kernels
from rekka.model.restarts import crude_start
from rekka.model.solvers import newton
from rekka.scaling.registry import fit_scaling

Array = NDArray[np.float64]

FOLDS = 5
GRID = tuple(float(10.0 ** (step / 2)) for step in range(-8, 5))  # shares of the number of moves
ONE_STANDARD_ERROR = 0.6827  # confidence of an interval one standard error to each side
HOLD = 1.0  # standard deviation of a log hazard that is held at the rate of all states
UNHELD = 1e-6  # precision of an intercept that need not be held, where a prior must name one


class Edge(enum.StrEnum):
    """Meanings of a choice at the edge of the grid, or of none."""

    WEAKEST = "the weakest of the grid: as good as no ridge"
    STRONGEST = "the strongest of the grid: as good as no covariates"
    ONE_BRIDGE = "all rows are of one bridge, none can be left out: the strongest, as good as no covariates"
    NO_COVARIATES = "no covariate varies: there is nothing to shrink"


class RidgeValue(NamedTuple):
    """A value tried: log loss of the rows left out, and how much more it is than the least, with intervals."""

    ridge: float
    loss: Interval
    excess: Interval


@dataclass(frozen=True, eq=False)
class RidgeChoice:
    """The ridge chosen; ``options`` are those to fit these rows with.

    ``least`` is the ridge of the least log loss. ``held`` are the states, 1-based, that no row leaves or none
    stays in: where there are any, ``options`` have the ridge as part of a prior that holds their intercepts too.
    """

    ridge: float
    least: float
    values: tuple[RidgeValue, ...]
    edge: Edge | None
    held: tuple[int, ...]
    options: Options


def choose_ridge(
    sample: Sample,
    options: Options,
    *,
    folds: int = FOLDS,
    seed: int | str = PAPER_SEED,
    grid: Sequence[float] | None = None,
) -> RidgeChoice:
    """Choose the ridge for fitting these rows.

    The choice is part of the fit. Whoever judges a ridge fit on other rows calls this on the rows of that fit
    only, anew for each fold: nested cross-validation. The log losses in the result are those that chose; the one
    of the ridge chosen promises too much.

    Parameters
    ----------
    sample : Sample
        The training rows.
    options : Options
        How to fit; their solver is not used here, and their ridge is what is chosen. No prior.
    folds : int
        Whole bridges, at most as many as there are bridges.
    seed : int or str
        Of the folds.
    grid : sequence of float or None
        Ridges to try; None takes ``GRID`` times the number of moves.

    """
    check_options(options)
    if options.prior is not None:
        raise BadOption("prior already holds the slopes; choose a ridge without it.")
    if not len(sample):
        raise BadOption("There are no rows to choose a ridge on; at least one is needed.")
    ridges = _ridges(sample, grid)
    names = np.unique(sample.bridge)
    with one_blas_thread():
        if not _varying(_scale(sample, options)).any():
            return _conclude(sample, options, 0.0, 0.0, (), Edge.NO_COVARIATES)
        if len(names) < 2:
            return _conclude(sample, options, ridges[-1], ridges[-1], (), Edge.ONE_BRIDGE)
        losses = _leave_out(sample, options, ridges, folds, seed)
    least = int(losses.mean(axis=0).argmin())
    values = tuple(
        RidgeValue(
            ridge, mean_interval(loss, sample.bridge), mean_interval(loss - losses[:, least], sample.bridge)
        )
        for ridge, loss in zip(ridges, losses.T, strict=True)
    )
    chosen = _strongest(losses, least, sample.bridge)
    edge = {0: Edge.WEAKEST, len(ridges) - 1: Edge.STRONGEST}.get(chosen)
    return _conclude(sample, options, ridges[chosen], ridges[least], values, edge)


def _strongest(losses: Array, least: int, bridge: NDArray[np.str_]) -> int:
    """The last value whose loss is within a standard error of the least."""
    for place in range(losses.shape[1] - 1, least, -1):
        if mean_interval(losses[:, place] - losses[:, least], bridge, ONE_STANDARD_ERROR).low <= 0.0:
            return place
    return least


def _ridges(sample: Sample, grid: Sequence[float] | None) -> tuple[float, ...]:
    """Checked values, the weakest first."""
    rows = sample.rows
    moves = max(float(rows.weight @ (rows.end - rows.start)), 1.0)
    values = tuple(sorted(moves * share for share in GRID) if grid is None else sorted(map(float, grid)))
    if not values or not all(0 < value < np.inf for value in values):
        raise BadOption(f"grid is {grid!r}; finite ridges above 0 are needed: without one no maximum need exist.")
    return values


def _leave_out(sample: Sample, options: Options, ridges: Sequence[float], k: int, seed: int | str) -> Array:
    """The log loss of each row under each ridge (n, values), fitted to the other folds."""
    compile_kernels(find_family(options.family))
    losses = np.empty((len(sample), len(ridges)))
    for outside, inside in folds(sample.bridge, k, seed):
        losses[inside] = score_path(sample.take(outside), sample.take(inside), options, ridges)
    return losses


def score_path(train: Sample, other: Sample, options: Options, ridges: Sequence[float]) -> Array:
    """The log loss of the rows of ``other`` (n, values) under each ridge, weakest first, fitted to ``train``.

    The problem is posed once; from the strongest ridge on each fit starts where the last one ended. The covariates
    are standardised and not made orthonormal: a ridge needs no full rank, and few rows may not have it.
    """
    train, other = (sample.at(options.clock, options.advance) for sample in (train, other))
    scaling = fit_scaling(options.scaling, train.x, train.covariates, train.plain)
    order, turned = train.rows.grouping, other.rows.grouping
    rows, z = train.rows.take(order), scaling.transform(train.x[order])
    vary = _varying(z)
    mean, sd = moments(z[:, vary], rows)
    layout = _layout(train, options, vary)
    family = find_family(options.family)
    plain = scaled_coordinates(rows, (z[:, vary] - mean) / sd, layout, 1.0, options.threads, family=family)
    held, centre = _hold_intercepts(plain, layout)
    new = (scaling.transform(other.x[turned])[:, vary] - mean) / sd
    design = np.column_stack([np.ones(len(new)), new])
    left = Likelihood.build(other.rows.take(turned), design, options.threads, family)
    losses, psi = np.empty((len(other), len(ridges))), crude_start(plain)
    for place in reversed(range(len(ridges))):
        posed = replace(plain, penalty=ridges[place] * plain.penalty + held, centre=centre)
        psi, _ = newton(posed.objective, psi, options.max_iter, posed.unit)
        losses[turned, place] = -left.by_row(posed.beta(psi))[0]
    return losses


def _scale(sample: Sample, options: Options) -> Array:
    """The scaled covariates (n, p) of the rows that the operator is fitted on."""
    x = sample.at(options.clock, options.advance).x
    return fit_scaling(options.scaling, x, sample.covariates, sample.plain).transform(x)


def _varying(z: Array) -> NDArray[np.bool_]:
    """Columns with more than one value."""
    return np.ptp(z, axis=0) > 0 if len(z) else np.zeros(z.shape[1], bool)


def _layout(train: Sample, options: Options, vary: NDArray[np.bool_]) -> Layout:
    """The layout of the covariates that vary in these rows."""
    names = [name for name, varies in zip(train.covariates, vary, strict=True) if varies]
    lay_out(train.covariates, train.rows.n_states, options)  # checks both
    given = (options.coding.expand_keys(table) or {} for table in (options.effects, options.shared))
    effects, shared = ({name: table[name] for name in table if name in names} for table in given)
    return build_layout(names, train.rows.n_states, effects, shared)


def _hold_intercepts(posed: Coordinates[Likelihood], layout: Layout) -> tuple[Array, Array]:
    """Penalty (P, P) and centre (P,) of the intercepts."""
    places = layout.parameter.reshape(layout.n_states - 1, -1)[:, 0]
    precision, rate = find_intercepts(posed.likelihood.rows, posed.likelihood.family)
    held, centre = np.zeros_like(posed.penalty), np.zeros(len(posed.penalty))
    held[places, places], centre[places] = precision, rate
    return held, centre


def find_without_rate(rows: Rows) -> NDArray[np.bool_]:
    """Mask (K-1,) of states that no row leaves, or no row stays in."""
    k = np.arange(rows.n_states - 1)[:, None]
    left, stayed = (rows.start <= k) & (rows.end > k), rows.end == k
    return np.asarray(~(left.any(axis=1) & stayed.any(axis=1)))


def find_intercepts(rows: Rows, family: Family) -> tuple[Array, float]:
    """The precision of each state's intercept (K-1,), zeros where all have a maximum; and that of the common rate.

    Half a move in one interval more, as in the crude rates of each state: a rate where nothing moved.
    """
    without = find_without_rate(rows)
    precision = np.where(without, HOLD**-2, UNHELD) if without.any() else np.zeros(without.size)
    free = rows.start < rows.n_states - 1
    typical = float(rows.weight @ rows.dt) / float(rows.weight.sum())
    moves, years = rows.weight @ (rows.end - rows.start), (rows.weight * rows.dt)[free].sum()
    return precision, float(family.from_rates(np.log((moves + 0.5) / (years + typical))))


def _conclude(
    sample: Sample, options: Options, ridge: float, least: float, values: tuple[RidgeValue, ...], edge: Edge | None
) -> RidgeChoice:
    held = tuple((np.flatnonzero(find_without_rate(sample.rows)) + 1).tolist())
    fitted = replace(options, ridge=ridge)
    if held and ridge > 0:
        fitted = replace(options, ridge=0.0, prior=_as_prior(sample, options, ridge))
    return RidgeChoice(ridge, least, values, edge, held, fitted)


def _as_prior(sample: Sample, options: Options, ridge: float) -> Prior:
    """The ridge and the hold of the intercepts as a prior of the coefficients of the scaled covariates.

    standardised slope = sd a,  standardised intercept = a0 + mean . a,  sd and mean of the scaled covariates
    """
    z = _scale(sample, options)
    mean, sd = moments(z, sample.rows)
    layout = lay_out(sample.covariates, sample.rows.n_states, options)
    precision, rate = find_intercepts(sample.rows, find_family(options.family))
    times = np.bincount(layout.parameter[layout.parameter >= 0], minlength=layout.n_parameters)
    weight = np.where(layout.parameter >= 0, ridge / times[layout.parameter], ridge)  # a shared slope counts once
    centre = np.zeros((layout.n_states - 1, len(layout.terms)))
    centre[:, 0] = rate
    weight.reshape(centre.shape)[:, 0] = precision
    turn = np.eye(len(layout.terms))
    turn[0, 1:], turn[1:, 1:] = mean, np.diag(sd)
    change = np.kron(np.eye(layout.n_states - 1), turn)
    return Prior(np.linalg.solve(change, centre.ravel()), change.T @ (weight[:, None] * change))
