"""Partial pooling: the coefficients of all cases share a normal distribution, estimated from all their rows.

    b_c = mean + case_c + own_c,   coefficient (state k, term t) of case c, in units common to all cases

    mean[k, t]     level_t + N(0, states_t^2),   level_t ~ N(centre_t, LEVEL_SPREAD_t^2)
    case_c[t]      N(0, cases_t^2), one for all states of the case: whom traffic wears, it wears in any state
    own_c[k, t]    N(0, rest_t^2), what is left to this state of this case

Common units are z = (x - offset) / scale over the rows of all cases. Every term t, intercept or covariate, has
three spreads. They are those of the largest marginal likelihood, with Laplace's approximation of the integral over
mean and coefficients (H_c the curvature of case c, V the covariance of case + own, O that of the mean; all at the
joint mode):

    log m = sum_c [l_c - d_c' V^-1 d_c / 2 - log |I + V H_c| / 2] - (mean - centre)' O^-1 (mean - centre) / 2
            - log |I + O J| / 2,   d_c = b_c - mean,   J = sum_c V^-1 - V^-1 (H_c + V^-1)^-1 V^-1

A case of 27 rows cannot tell the effects of four covariates in four states; ten cases of 6,500 rows can tell what
such effects are like. The distribution is estimated first, then each case is fitted by itself with it as prior: an
ordinary fit with an ordinary certificate. What a case has many rows for is left as it is.

Evidence for its shape (20 simulated inventories, golden rows). With the logarithms of length, area and traffic, in
which the true hazards are linear, a shift of the case common to its states raised log m by 20, and means by state
that are held to a level common to all states by another 31; each lowered the mean log loss of all ten cases. With
the covariates as they come the first lowered it in six, the second in nine. A model without a spread within cases
was about as good, and would be wrong where states of a case do differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadOption, no_such_case
from rekka.data.categories import NO_CODING
from rekka.evaluation.resampling import Sample
from rekka.model.clock import MIDDLE, check_clock
from rekka.model.coordinates import Prior
from rekka.model.family import EXPONENTIAL, Family
from rekka.model.fit import one_blas_thread
from rekka.model.likelihood import Evaluation, Likelihood, compile_kernels, crude_log_rates
from rekka.model.solvers import newton
from rekka.scaling.registry import fit_scaling

Array = NDArray[np.float64]

# How far the level of all cases may be from its centre: a hazard within a factor of 20 of the crude rate, a hazard
# ratio for one standard deviation within a factor of 2.7. It matters only where the rows say nothing.
LEVEL_SPREAD_INTERCEPT, LEVEL_SPREAD_SLOPE = 3.0, 1.0
# A hazard ratio of 1.01 for one standard deviation is no difference: below, the precision would grow without end
# and no forecast would change. Above, a hazard ratio of e^10, a spread is no information.
SMALLEST_SPREAD, LARGEST_SPREAD = 0.01, 10.0
FIRST_SPREAD = 0.2
MOST_STEPS = 200  # of Newton, for a case or for the mean
MOST_CHANGE = 100.0  # of a variance in one iteration
RELAXATION = 1.5  # longer steps than the factors ask for: 30 % fewer iterations on the simulated inventory
TOLERANCE = 1e-2  # of log m, in log-likelihood units: no forecast would change
HALVINGS = 6


class Spreads(NamedTuple):
    """Standard deviations of each term, (T,): of the mean by state, of cases, and of states within cases."""

    states: Array
    cases: Array
    rest: Array

    @classmethod
    def first(cls, n_terms: int) -> Spreads:
        """Where to start."""
        return cls(*np.full((3, n_terms), FIRST_SPREAD))

    def mean_covariance(self, n_free: int) -> Array:
        """O of the means (F, F), state by state."""
        level = np.full(self.states.size, LEVEL_SPREAD_SLOPE)
        level[0] = LEVEL_SPREAD_INTERCEPT
        return _compound(level, self.states, n_free)

    def case_covariance(self, n_free: int) -> Array:
        """V of a case's coefficients (F, F), state by state."""
        return _compound(self.cases, self.rest, n_free)


def _compound(common: Array, own: Array, n_free: int) -> Array:
    """Covariance of a part that is common to all states and a part of each state's own."""
    return np.kron(np.ones((n_free, n_free)), np.diag(common**2)) + np.kron(np.eye(n_free), np.diag(own**2))


@dataclass(frozen=True, eq=False)
class Member:
    """A case: its likelihood in common units, and which of the F common coefficients it has, (F_c,)."""

    likelihood: Likelihood
    index: NDArray[np.intp]

    def evaluate(self, b: Array, order: int = 2) -> Evaluation:
        """Log-likelihood, gradient and Hessian in the case's coefficients (F_c,)."""
        with np.errstate(invalid="ignore", over="ignore"):  # infinite far out; Newton looks
            return self.likelihood.evaluate(b.reshape(self.likelihood.rows.n_states - 1, -1), order)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The cases and their F common coefficients: K - 1 states by terms; ``centre`` (F,) is that of the means."""

    members: Sequence[Member]
    n_free: int
    n_terms: int
    centre: Array


class Mode(NamedTuple):
    """The joint mode at given spreads: the mean (F,), each case's coefficients, log m, and the mean's covariance.

    ``change`` are the factors by which the three variances of each term should change: 1 where they fit.
    """

    spreads: Spreads
    mean: Array
    coefficients: tuple[Array, ...]
    log_marginal: float
    mean_covariance: Array
    change: Spreads


class _Case(NamedTuple):
    """A case at its mode given the mean: log-likelihood, H, V^-1, (H + V^-1)^-1, and distance from the mean."""

    value: float
    curvature: Array
    precision: Array
    covariance: Array
    away: Array


def find_mode(hierarchy: Hierarchy, spreads: Spreads, mean: Array, coefficients: Sequence[Array]) -> Mode:
    """Newton in the mean, with each case at its own mode given the mean, from the point given."""
    members, n_free = hierarchy.members, hierarchy.n_free
    found, before, cases = list(coefficients), mean, list[_Case]()
    V, around = spreads.case_covariance(n_free), spreads.mean_covariance(n_free)
    precision, precisions = _invert(around), [_invert(V[np.ix_(one.index, one.index)]) for one in members]

    def profile(psi: Array, order: int = 2) -> Evaluation:
        nonlocal before
        for place, case in enumerate(cases):  # each mode follows the mean, to first order
            follow = case.covariance @ case.precision
            found[place] = found[place] + follow @ (psi - before)[members[place].index]
        settled = zip(members, precisions, found, strict=True)
        cases[:] = [_settle(one, P, psi[one.index], b) for one, P, b in settled]
        found[:] = [psi[one.index] + case.away for one, case in zip(members, cases, strict=True)]
        before, away = psi, psi - hierarchy.centre
        value, gradient, hessian = 0.5 * float(away @ precision @ away), precision @ away, precision.copy()
        for one, case in zip(members, cases, strict=True):
            P, d = case.precision, case.away
            value += 0.5 * float(d @ P @ d) - case.value
            gradient[one.index] -= P @ d
            hessian[np.ix_(one.index, one.index)] += P - P @ case.covariance @ P
        return Evaluation(value, gradient, hessian)

    mean, _ = newton(profile, mean, MOST_STEPS)
    here = profile(mean)
    uncertainty = _invert(here.hessian)
    log_marginal = -here.value - 0.5 * (_log_det(around) + _log_det(here.hessian))
    log_marginal += 0.5 * sum(_log_det(case.precision) + _log_det(case.covariance) for case in cases)
    change = _judge_spreads(hierarchy, cases, precision, mean - hierarchy.centre, uncertainty)
    return Mode(spreads, mean, tuple(found), log_marginal, uncertainty, change)


def _settle(one: Member, precision: Array, mean: Array, start: Array) -> _Case:
    """The mode of one case given the mean of its coefficients."""

    def objective(psi: Array, order: int = 2) -> Evaluation:
        value, gradient, hessian = one.evaluate(psi, order)
        pull = precision @ (psi - mean)
        return Evaluation(0.5 * float((psi - mean) @ pull) - value, pull - gradient, precision - hessian)

    b, _ = newton(objective, start, MOST_STEPS)
    here = one.evaluate(b)
    return _Case(here.value, -here.hessian, precision, _invert(precision - here.hessian), b - mean)


def _invert(matrix: Array) -> Array:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _log_det(matrix: Array) -> float:
    """Log determinant of a positive definite matrix; NaN of any other, which no step then accepts."""
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 else np.nan


def _judge_spreads(
    hierarchy: Hierarchy, cases: Sequence[_Case], precision: Array, away: Array, uncertainty: Array
) -> Spreads:
    """Fellner and Schall's factor for each variance: what is seen of its part over what is to be expected.

    With V = sum_g s_g^2 Z_g Z_g', d a normal vector of covariance V whose posterior has mean E d and covariance C,
    s_g^2 changes by |Z_g' V^-1 E d|^2 / tr Z_g' (V^-1 - V^-1 C V^-1) Z_g (Wood and Fasiolo 2017, Biometrics 73).
    It has the fixed points of EM, which is many times slower where a spread is small.
    """
    shape = (hierarchy.n_free, hierarchy.n_terms)
    _, states = _seen_and_expected(precision @ away, precision - precision @ uncertainty @ precision, shape)
    total = np.zeros((2, 2, hierarchy.n_terms))
    for one, case in zip(hierarchy.members, cases, strict=True):
        at = np.ix_(one.index, one.index)
        moved = case.covariance @ case.curvature  # how far d follows when the mean is another
        C = case.covariance + moved @ uncertainty[at] @ moved.T
        pull, left = np.zeros(hierarchy.centre.size), np.zeros_like(uncertainty)
        pull[one.index] = case.precision @ case.away
        left[at] = case.precision - case.precision @ C @ case.precision
        total += _seen_and_expected(pull, left, shape)
    return Spreads(*(_ratio(*part) for part in (states, *total)))


def _seen_and_expected(pull: Array, left: Array, shape: tuple[int, int]) -> Array:
    """Numerator and denominator, by term: of the part common to all states, and of each state's own, (2, 2, T)."""
    q, m = pull.reshape(shape), left.reshape(*shape, *shape)
    common = q.sum(axis=0) ** 2, np.einsum("ktlt->t", m)
    own = (q**2).sum(axis=0), np.einsum("ktkt->t", m)
    return np.array([common, own])


def _ratio(seen: Array, expected: Array) -> Array:
    """Bounded: nothing is expected where no row says anything, and the spread stays."""
    silent = expected <= np.finfo(float).tiny
    ratio = np.where(silent, 1.0, seen / np.where(silent, 1.0, expected))
    return np.clip(ratio, 1.0 / MOST_CHANGE, MOST_CHANGE)


def climb(hierarchy: Hierarchy, here: Mode, max_iter: int) -> tuple[Mode, list[float], bool]:
    """Change the spreads until log m rises by less than TOLERANCE; log m of each iteration; whether it got there.

    Where no step raises log m, this is the top as far as Laplace's approximation can tell: the factors leave out
    how the curvatures depend on the spreads.
    """
    history = [here.log_marginal]
    for _ in range(max_iter):
        there = _step(hierarchy, here)
        if there is None:
            return here, history, bool(np.isfinite(here.log_marginal))
        gain, here = there.log_marginal - here.log_marginal, there
        history.append(here.log_marginal)
        if gain < TOLERANCE:
            return here, history, True
    return here, history, False


def _step(hierarchy: Hierarchy, here: Mode) -> Mode | None:
    """The next mode, with a log m that is no lower; a step that lowers it is halved, in logarithms; or None."""
    for halving in range(HALVINGS + 1):
        power = 0.5 * RELAXATION * 0.5**halving  # 0.5: from variances to standard deviations
        moved = np.array(here.spreads) * np.array(here.change) ** power
        spreads = Spreads(*np.clip(moved, SMALLEST_SPREAD, LARGEST_SPREAD))
        there = find_mode(hierarchy, spreads, here.mean, here.coefficients)
        if there.log_marginal >= here.log_marginal:
            return there
    return None


SCALING = "zscore"  # the operator that a case's prior belongs to
MOST_ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Place:
    """A case among the others: its covariates that vary and those that do not, its K, its own z-score."""

    covariates: tuple[str, ...]
    n_states: int
    offset: Array
    factor: Array  # 0 where a covariate does not vary
    coefficients: Array | None = None  # (K-1, p+1) in common units, at the joint mode

    @classmethod
    def of(cls, sample: Sample) -> Place:
        """Fit the operator on the sample's rows, as a fit to them will."""
        affine = (
            fit_scaling(SCALING, sample.x, sample.covariates, sample.plain).affine() if sample.covariates else None
        )
        offset, factor = affine or (np.zeros(0), np.zeros(0))
        return cls(sample.contrasts, sample.rows.n_states, offset, factor)


@dataclass(frozen=True, eq=False)
class Pooling:
    """The distribution that the cases' coefficients share, in common units.

    ``mean`` (K-1, p+1), intercept first, for the largest K of the cases; ``spreads`` of each term. ``history`` is
    the log marginal likelihood (Laplace) at the start and after each iteration.
    """

    covariates: tuple[str, ...]
    offset: Array
    scale: Array
    mean: Array
    mean_covariance: Array
    spreads: Spreads
    cases: Mapping[str, Place]
    history: tuple[float, ...]
    converged: bool

    @property
    def iterations(self) -> int:
        """Changes of the spreads."""
        return len(self.history) - 1

    @property
    def log_marginal(self) -> float:
        """Log marginal likelihood of all rows of all cases, at the end."""
        return self.history[-1]

    def prior(self, case: str) -> Prior:
        """The prior of a case, for a fit to its rows with ``scaling="zscore"`` and its covariates that vary.

        It is the common distribution in the units of the case's own z-score, with offset o' and factor f':
        b0 + sum b (x - offset) / scale = a0 + sum a (x - o') f' where a = b / (scale f') and
        a0 = b0 + sum b (o' - offset) / scale. A covariate that does not vary is part of the intercept. What is not
        known of the mean, which these rows helped to estimate, widens the intervals of that fit.
        """
        if case not in self.cases:
            raise no_such_case(case, self.cases)
        place = self.cases[case]
        index = _locate(place, self.covariates)
        columns = [self.covariates.index(name) for name in place.covariates]
        offset, scale = self.offset[columns], self.scale[columns]
        vary = np.flatnonzero(place.factor > 0)
        turn = np.zeros((vary.size + 1, offset.size + 1))
        turn[0] = 1.0, *(place.offset - offset) / scale
        turn[1 + np.arange(vary.size), 1 + vary] = 1.0 / (scale[vary] * place.factor[vary])
        change = np.kron(np.eye(place.n_states - 1), turn)
        spread = self.spreads.case_covariance(len(self.mean))
        precision = np.linalg.inv(change @ spread[np.ix_(index, index)] @ change.T)
        unsure = change @ self.mean_covariance[np.ix_(index, index)] @ change.T
        return Prior(change @ self.mean.ravel()[index], 0.5 * (precision + precision.T), unsure)


def pool_cases(
    samples: Mapping[str, Sample],
    *,
    start: Pooling | None = None,
    max_iter: int = MOST_ITERATIONS,
    threads: int | None = None,
    advance: Sequence[str] | None = None,
    clock: str = MIDDLE,
    family: Family = EXPONENTIAL,
) -> Pooling:
    """Estimate the distribution that the cases' coefficients share.

    Parameters
    ----------
    samples : mapping of case to Sample
        Training rows. Cases may differ in K and in covariates; a case without rows is left out. Rows that a fit is
        to be judged on, and rows of the same bridges in other cases, must not be among them.
    start : Pooling or None
        An earlier estimate to start from, of nearly the same rows: a few iterations then suffice.
    max_iter : int
        Changes of the spreads.
    threads : int or None
        For cases of many rows; None takes every core.
    advance, clock
        Which covariates advance and where in an interval they are taken, as in the fits that the priors are for.
    family : Family
        That of the hazards, as in these fits.

    """
    check_clock(clock, advance)
    there = {name: _take(sample, clock, advance) for name, sample in samples.items() if len(sample)}
    if not there:
        raise BadOption("There is no row in any component to pool; give at least one component with rows.")
    places = {name: Place.of(sample) for name, sample in there.items()}
    there = {name: _name_alike(sample) for name, sample in there.items()}
    covariates = tuple(dict.fromkeys(name for sample in there.values() for name in sample.covariates))
    offset, scale = _common_units(there.values(), covariates)
    compile_kernels(family)
    with one_blas_thread():
        hierarchy = _build(list(there.values()), list(places.values()), covariates, offset, scale, threads, family)
        first = _first_mode(hierarchy, list(there), start, covariates)
        mode, history, converged = climb(hierarchy, first, max_iter)
    return Pooling(
        covariates=covariates,
        offset=offset,
        scale=scale,
        mean=mode.mean.reshape(hierarchy.n_free, -1),
        mean_covariance=mode.mean_covariance,
        spreads=mode.spreads,
        cases={
            name: replace(place, coefficients=b.reshape(place.n_states - 1, -1))
            for (name, place), b in zip(places.items(), mode.coefficients, strict=True)
        },
        history=tuple(history),
        converged=converged,
    )


def _take(sample: Sample, clock: str, advance: Sequence[str] | None) -> Sample:
    """The rows as the clock takes them; of the names that advance, those that the case has."""
    names = None if advance is None else [name for name in advance if name in sample.covariates]
    return sample.at(clock, names)


def _name_alike(sample: Sample) -> Sample:
    """The rows with covariates named by what they mean.

    Levels of a category are one term only in cases where they have one reference and consist of the same levels.
    """
    return replace(sample, covariates=sample.contrasts, coding=NO_CODING)


def _common_units(samples: Iterable[Sample], covariates: Sequence[str]) -> tuple[Array, Array]:
    """Mean and standard deviation of each covariate over all rows that have it; 1 where it does not vary."""
    offset, scale = np.zeros(len(covariates)), np.ones(len(covariates))
    samples = list(samples)
    for place, name in enumerate(covariates):
        values = np.concatenate([s.x[:, s.covariates.index(name)] for s in samples if name in s.covariates])
        offset[place] = values.mean()
        scale[place] = values.std() if np.ptp(values) > 0 else 1.0
    return offset, scale


def _locate(place: Place, covariates: Sequence[str]) -> NDArray[np.intp]:
    """Places (F_c,) of a case's coefficients among the common ones, flattened state by state."""
    terms = np.array([0, *(1 + covariates.index(name) for name in place.covariates)])
    states = np.arange(place.n_states - 1)[:, None] * (len(covariates) + 1)
    return np.asarray((states + terms).ravel(), dtype=np.intp)


def _build(
    samples: Sequence[Sample],
    places: Sequence[Place],
    covariates: tuple[str, ...],
    offset: Array,
    scale: Array,
    threads: int | None,
    family: Family,
) -> Hierarchy:
    """Every case's likelihood in common units; the intercepts' centre is the mean of the cases' crude rates."""
    members = []
    for sample, place in zip(samples, places, strict=True):
        order = sample.rows.grouping
        columns = [covariates.index(name) for name in sample.covariates]
        z = (sample.x[order] - offset[columns]) / scale[columns]
        X = np.column_stack([np.ones(len(order)), z])
        likelihood = Likelihood.build(sample.rows.take(order), X, threads, family)
        members.append(Member(likelihood, _locate(place, covariates)))
    centre = np.zeros((max(place.n_states for place in places) - 1, len(covariates) + 1))
    centre[:, 0] = family.from_rates(
        np.mean([crude_log_rates(one.rows.pairs, one.rows.unit).mean() for one in samples])
    )
    return Hierarchy(members, *centre.shape, centre.ravel())


def _first_mode(
    hierarchy: Hierarchy, names: Sequence[str], start: Pooling | None, covariates: tuple[str, ...]
) -> Mode:
    """The mode from crude rates without effects, or from an earlier estimate with the same coefficients."""
    crude = [one.likelihood.start() for one in hierarchy.members]
    if start is None or start.covariates != covariates or start.mean.size != hierarchy.centre.size:
        return find_mode(hierarchy, Spreads.first(hierarchy.n_terms), hierarchy.centre, crude)
    earlier = [start.cases[name].coefficients if name in start.cases else None for name in names]
    first = [one if b is None or b.size != one.size else b.ravel() for one, b in zip(crude, earlier, strict=True)]
    return find_mode(hierarchy, start.spreads, start.mean.ravel(), first)
