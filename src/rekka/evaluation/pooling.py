"""Partial pooling: the coefficients of all cases share a normal distribution, estimated from all their rows.

A case of 27 rows cannot tell the effects of four covariates in four states; ten cases of 6,500 rows can tell what
such effects are like. The distribution (``hierarchy``) is estimated first, then each case is fitted by itself with
it as prior: an ordinary fit with an ordinary certificate. What a case has many rows for is left as it is.

    z = (x - offset) / scale over the rows of all cases: units common to all, in which the distribution is stated

Evidence for its shape (20 simulated inventories, golden rows). With the logarithms of length, area and traffic, in
which the true hazards are linear, a shift of the case common to its states raised log m by 20, and means by state
that are held to a level common to all states by another 31; each lowered the mean log loss of all ten cases. With
the covariates as they come the first lowered it in six, the second in nine. A model without a spread within cases
was about as good, and would be wrong where states of a case do differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rekka.core.errors import BadOption, name_some, no_such_case
from rekka.evaluation.hierarchy import Hierarchy, Member, Mode, Spreads, climb, find_mode
from rekka.evaluation.resampling import Sample
from rekka.model.clock import MIDDLE, check_clock
from rekka.model.family import EXPONENTIAL, Family
from rekka.model.layout import INTERCEPT
from rekka.model.likelihood import Likelihood, compile_kernels, crude_log_rates
from rekka.model.prior import Prior
from rekka.scaling.fitting import fit_scaling

Array = NDArray[np.float64]

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
        """With the operator fitted on the sample's rows, as a fit to them will."""
        affine = fit_scaling(SCALING, sample.x, sample.covariates).affine() if sample.covariates else None
        offset, factor = affine or (np.zeros(0), np.zeros(0))
        return cls(sample.covariates, sample.rows.n_states, offset, factor)


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
    advance: tuple[str, ...] | None = None
    clock: str = MIDDLE

    @property
    def n_states(self) -> int:
        """The largest K of the cases."""
        return len(self.mean) + 1

    @property
    def iterations(self) -> int:
        """Changes of the spreads."""
        return len(self.history) - 1

    @property
    def log_marginal(self) -> float:
        """Of all rows of all cases, at the end."""
        return self.history[-1]

    def table(self) -> pl.DataFrame:
        """Mean effect on the log hazard by state, and spreads, of a standard deviation over all cases' rows.

        ``between_states`` is the spread of the mean effects, ``between_cases`` how far a case is from them in all
        its states, ``within_cases`` how far a state of a case is from the rest of the case.
        """
        means = {f"state_{k + 1}": self.mean[k] for k in range(len(self.mean))}
        spreads = dict(zip(("between_states", "between_cases", "within_cases"), self.spreads, strict=True))
        return pl.DataFrame({"term": [INTERCEPT, *self.covariates], **means, **spreads})

    def prior(self, case: str) -> Prior:
        """The prior of a case, for a fit to its rows with ``scaling="zscore"`` and its covariates that vary.

        What is not known of the mean, which these rows helped to estimate, widens the intervals of that fit.
        """
        if case not in self.cases:
            raise no_such_case(case, self.cases)
        spread = self.spreads.case_covariance(len(self.mean))
        return self._state_prior(self.cases[case], spread, self.mean_covariance)

    def prior_elsewhere(self, sample: Sample) -> Prior:
        """The prior of a case that is not among these; it is wider by what is not known of the mean."""
        place = Place.of(_take(sample, self.clock, self.advance))
        strangers = [name for name in place.covariates if name not in self.covariates]
        if strangers or place.n_states > self.n_states:
            raise BadOption(
                f"The cases pooled have {self.n_states} states and the covariates {name_some(self.covariates)}; "
                f"this one has {place.n_states} states and {name_some(place.covariates)}. Pool it with the others."
            )
        return self._state_prior(place, self.spreads.case_covariance(len(self.mean)) + self.mean_covariance)

    def _state_prior(self, place: Place, covariance: Array, uncertainty: Array | None = None) -> Prior:
        """The same normal distribution in the units of the case's own z-score, with offset o' and factor f'.

        b0 + sum b (x - offset) / scale = a0 + sum a (x - o') f':  a = b / (scale f'),  a0 = b0 + sum b (o' -
        offset) / scale. A covariate that does not vary is part of the intercept.
        """
        index = _locate(place, self.covariates)
        offset, scale = (of[self._columns(place)] for of in (self.offset, self.scale))
        vary = np.flatnonzero(place.factor > 0)
        turn = np.zeros((vary.size + 1, offset.size + 1))
        turn[0] = 1.0, *(place.offset - offset) / scale
        turn[1 + np.arange(vary.size), 1 + vary] = (
            1.0 / (scale * np.where(place.factor > 0, place.factor, 1.0))[vary]
        )
        change = np.kron(np.eye(place.n_states - 1), turn)
        precision = np.linalg.inv(change @ covariance[np.ix_(index, index)] @ change.T)
        unsure = None if uncertainty is None else change @ uncertainty[np.ix_(index, index)] @ change.T
        return Prior(change @ self.mean.ravel()[index], 0.5 * (precision + precision.T), unsure)

    def _columns(self, place: Place) -> list[int]:
        return [self.covariates.index(name) for name in place.covariates]


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
        raise BadOption("There is no row in any case to pool; give at least one case with rows.")
    covariates = tuple(dict.fromkeys(name for sample in there.values() for name in sample.covariates))
    offset, scale = _common_units(there.values(), covariates)
    places = {name: Place.of(sample) for name, sample in there.items()}
    compile_kernels(family)
    with threadpool_limits(limits=1, user_api="blas"):  # matrices are small: threads only wait for each other
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
            name: Place(
                place.covariates, place.n_states, place.offset, place.factor, b.reshape(place.n_states - 1, -1)
            )
            for (name, place), b in zip(places.items(), mode.coefficients, strict=True)
        },
        history=tuple(history),
        converged=converged,
        advance=None if advance is None else tuple(advance),
        clock=clock,
    )


def _take(sample: Sample, clock: str, advance: Sequence[str] | None) -> Sample:
    """The rows as the clock takes them; of the names that advance, those that the case has."""
    names = None if advance is None else [name for name in advance if name in sample.covariates]
    return sample.at(clock, names)


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
    """Which of the common coefficients, flattened state by state, a case has."""
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
    centre[:, 0] = family.from_rates(np.mean([crude_log_rates(sample.rows).mean() for sample in samples]))
    return Hierarchy(members, *centre.shape, centre.ravel())


def _first_mode(
    hierarchy: Hierarchy, names: Sequence[str], start: Pooling | None, covariates: tuple[str, ...]
) -> Mode:
    """From crude rates without effects; or from an earlier estimate, where it has the same coefficients."""
    crude = [one.likelihood.start() for one in hierarchy.members]
    if start is None or start.covariates != covariates or start.mean.size != hierarchy.centre.size:
        return find_mode(hierarchy, Spreads.first(hierarchy.n_terms), hierarchy.centre, crude)
    earlier = [start.cases[name].coefficients if name in start.cases else None for name in names]
    first = [one if b is None or b.size != one.size else b.ravel() for one, b in zip(crude, earlier, strict=True)]
    return find_mode(hierarchy, start.spreads, start.mean.ravel(), first)
