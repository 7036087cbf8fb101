"""The rows of a fit, and every question that a fit asks about them.

``model.fit`` computes nothing row by row: it asks ``Observations``, which answer from arrays in memory (here) or
by passes over blocks (``streaming.fit``). A likelihood of whole histories is one more class that answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rekka.model.certificate import count_pairs, is_settled, plateau_share
from rekka.model.clock import Clock
from rekka.model.coordinates import Axes, Coordinates, orthonormalise
from rekka.model.family import Family
from rekka.model.inference import Meat, add_row_scores, add_scores
from rekka.model.likelihood import Evaluation, Likelihood, Pairs, Rows
from rekka.model.restarts import Fewer, sample_held
from rekka.model.separation import Constraints, constrain_held
from rekka.scaling.operators import FittedScaling
from rekka.scaling.registry import fit_scaling

Array = NDArray[np.float64]


class Observations(Protocol):
    """Checked rows with covariates taken at the clock's moment, and the likelihoods made of them."""

    @property
    def covariates(self) -> tuple[str, ...]:
        """Names of the p covariates."""

    @property
    def n_rows(self) -> int:
        """Number of rows n."""

    @property
    def n_states(self) -> int:
        """K; state K is absorbing."""

    @property
    def clock(self) -> Clock:
        """The clock, with the mean interval of the rows."""

    @property
    def frequency(self) -> Array:
        """Number of rows of each start and end (K, K), by the weights given, without those of classes."""

    @property
    def starts_on_sample(self) -> bool:
        """Whether Newton starts from the best maximum of a sample, because an evaluation is a pass over files."""

    def fit_scaling(self, method: Any) -> FittedScaling:
        """Fit a scaling operator on the raw covariates."""

    def orthonormal(self, scaling: FittedScaling, family: Family) -> tuple[Any, Axes]:
        """The likelihood of W = [1, (z - mean) / sd r^-1], z the scaled covariates, and mean, sd and r."""

    def plain(self, scaling: FittedScaling, family: Family) -> Any:
        """The likelihood of [1, z], z the scaled covariates."""

    def constrain(self, coordinates: Coordinates[Any]) -> Callable[[list[int], Array], Constraints]:
        """Give the constraints of a group of states on directions without a maximum (``separation``)."""

    def sample(self, coordinates: Coordinates[Any]) -> Fewer | None:
        """A sample of the rows to try other starts on; None where they are tried on all rows."""

    def settles(self, coordinates: Coordinates[Any], here: Evaluation) -> bool:
        """Whether a point is so plainly a maximum that no separation need be looked for (``is_settled``)."""

    def score(self, coordinates: Coordinates[Any], psi: Array) -> tuple[float, Meat | None]:
        """The share of rows on the plateau at psi, and the sums of scores for robust standard errors, if asked."""

    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles (q, p) of the raw covariates, each row counted once."""


@dataclass(frozen=True, eq=False)
class HeldObservations:
    """Rows in memory, with raw covariates x (n, p) at first visits.

    ``groups`` (n,) ask for standard errors clustered by them. ``classes`` (n,) are the class weights that the
    rows' weights contain: without groups the standard errors are then robust by row.
    """

    rows: Rows
    x: Array
    covariates: tuple[str, ...]
    kind: Clock
    groups: NDArray[np.int64] | None = None
    classes: Array | None = None
    threads: int | None = None
    starts_on_sample = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.dt.size

    @property
    def n_states(self) -> int:
        """K; state K is absorbing."""
        return self.rows.n_states

    @cached_property
    def pairs(self) -> Pairs:
        """Sums over the rows of each start and end, by the weights given."""
        rows = self.rows
        weight = rows.weight if self.classes is None else rows.weight / self.classes
        return Pairs.of(rows.start, rows.end, rows.dt, weight, rows.n_states)

    @cached_property
    def clock(self) -> Clock:
        """The clock, with the mean interval of the rows."""
        return self.kind.measured(*self.pairs)

    @property
    def frequency(self) -> Array:
        """Number of rows of each start and end (K, K), by the weights given."""
        return count_pairs(self.pairs.weight, self.rows.n_informative)

    @cached_property
    def taken(self) -> Array:
        """Raw covariates (n, p) at the clock's moment."""
        return self.kind.take(self.x, self.rows.dt)

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The kernel's order of the rows: those of one start and end follow each other."""
        return self.rows.grouping

    def fit_scaling(self, method: Any) -> FittedScaling:
        """Fit a scaling operator, of rekka's or elsewhere, on the raw covariates."""
        return fit_scaling(method, self.taken, self.covariates)

    def orthonormal(self, scaling: FittedScaling, family: Family) -> tuple[Likelihood, Axes]:
        """The likelihood in orthonormal columns, and these."""
        z = scaling.transform(self.taken[self.order])
        return orthonormalise(self.rows.take(self.order), z, self.threads, family)

    def plain(self, scaling: FittedScaling, family: Family) -> Likelihood:
        """The likelihood of the scaled covariates."""
        z = scaling.transform(self.taken[self.order])
        X = np.column_stack([np.ones(len(z)), z])
        return Likelihood.build(self.rows.take(self.order), X, self.threads, family)

    def constrain(self, coordinates: Coordinates[Likelihood]) -> Callable[[list[int], Array], Constraints]:
        """The constraints of all rows."""
        return partial(constrain_held, coordinates.likelihood)

    def sample(self, coordinates: Coordinates[Likelihood]) -> Fewer | None:
        """A sample where there are more than 5,000 rows that can still worsen."""
        return sample_held(coordinates)

    def settles(self, coordinates: Coordinates[Likelihood], here: Evaluation) -> bool:
        """Whether the standard error of every row's log hazard rules a separation out."""
        return is_settled(coordinates, here)

    def score(self, coordinates: Coordinates[Likelihood], psi: Array) -> tuple[float, Meat | None]:
        """The share of rows on the plateau, and the scores of groups, or of rows with class weights."""
        likelihood, basis = coordinates.likelihood, coordinates.basis
        log_probability, slope = likelihood.by_row(coordinates.gamma(psi))
        meat = None
        if self.groups is not None:
            meat = add_scores(likelihood, basis, slope, self.groups[self.order])
        elif self.classes is not None:
            meat = add_row_scores(likelihood, basis, slope, self.classes[self.order])
        return plateau_share(log_probability), meat

    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles (q, p) of the raw covariates."""
        return np.quantile(self.taken, probabilities, axis=0)
