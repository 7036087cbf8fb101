"""The rows of a fit, and every question that a fit asks about them.

``model.fit`` computes nothing row by row: it asks ``Observations``, which answer from arrays in memory (here) or
by passes over blocks (``streaming.fit``). A likelihood of whole histories is one more class that answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rekka.model.certificate import count_pairs, is_settled, plateau_share
from rekka.model.clock import Clock
from rekka.model.coordinates import Axes, Coordinates, orthonormalise
from rekka.model.family import Family
from rekka.model.inference import Meat, add_row_scores, add_scores
from rekka.model.likelihood import Evaluation, Likelihood, Pairs, Rows
from rekka.model.restarts import Fewer, sample_held
from rekka.model.separation import Constrain, constrain_held
from rekka.scaling.operators import FittedScaling
from rekka.scaling.registry import fit_scaling

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Observations(ABC):
    """Checked rows with p covariates taken at the clock's moment, and the likelihoods made of them."""

    covariates: tuple[str, ...]
    clock: Clock  # with the mean interval of the rows
    counts: NDArray[np.int64]  # rows of each start and end (K, K)
    pairs: Pairs  # sums over them, by the weights given, without those of classes
    # Whether Newton starts from the best maximum of a sample, because an evaluation is a pass over the rows.
    starts_on_sample: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return int(self.counts.sum())

    @property
    def n_states(self) -> int:
        """K; state K is absorbing."""
        return len(self.counts)

    @property
    def frequency(self) -> Array:
        """Number of rows of each start and end (K, K), by the weights given (``count_pairs``)."""
        return count_pairs(self.pairs.weight, int(self.counts[:-1].sum()))

    @abstractmethod
    def fit_scaling(self, method: Any, plain: Collection[str] = ()) -> FittedScaling:
        """Fit a scaling operator on the raw covariates; ``plain`` ones stay as they are."""

    @abstractmethod
    def orthonormal(self, scaling: FittedScaling, family: Family) -> tuple[Any, Axes]:
        """The likelihood of W = [1, (z - mean) / sd r^-1], z the scaled covariates, and mean, sd and r."""

    @abstractmethod
    def plain(self, scaling: FittedScaling, family: Family) -> Any:
        """The likelihood of [1, z], z the scaled covariates."""

    @abstractmethod
    def constrain(self, coordinates: Coordinates[Any]) -> Constrain:
        """A function that gives the constraints of a group of states on directions without a maximum."""

    @abstractmethod
    def sample(self, coordinates: Coordinates[Any]) -> Fewer | None:
        """A sample of the rows to try other starts on; None where they are tried on all rows."""

    @abstractmethod
    def settles(self, coordinates: Coordinates[Any], here: Evaluation) -> bool:
        """Whether a point is so plainly a maximum that no separation need be looked for (``is_settled``)."""

    @abstractmethod
    def score(self, coordinates: Coordinates[Any], psi: Array) -> tuple[float, Meat | None]:
        """The share of rows on the plateau at psi, and the scores for robust standard errors, if asked for."""

    @abstractmethod
    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles (q, p) of the raw covariates, each row counted once."""


@dataclass(frozen=True, eq=False)
class HeldObservations(Observations):
    """Rows in memory, with raw covariates x (n, p) at the clock's moment. Made by ``fit.hold``.

    ``groups`` (n,) ask for standard errors clustered by them. ``classes`` (n,) are the class weights that the
    rows' weights contain: without groups the standard errors are then robust by row.
    """

    rows: Rows
    x: Array
    groups: NDArray[np.int64] | None
    classes: Array | None
    threads: int | None

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The kernel's order of the rows: those of one start and end follow each other."""
        return self.rows.grouping

    def fit_scaling(self, method: Any, plain: Collection[str] = ()) -> FittedScaling:
        """Fit an operator, of rekka's or from elsewhere."""
        return fit_scaling(method, self.x, self.covariates, plain)

    def orthonormal(self, scaling: FittedScaling, family: Family) -> tuple[Likelihood, Axes]:
        """The likelihood of rows in the kernel's order."""
        z = scaling.transform(self.x[self.order])
        return orthonormalise(self.rows.take(self.order), z, self.threads, family)

    def plain(self, scaling: FittedScaling, family: Family) -> Likelihood:
        """The likelihood of rows in the kernel's order."""
        X = np.column_stack([np.ones(self.n_rows), scaling.transform(self.x[self.order])])
        return Likelihood.build(self.rows.take(self.order), X, self.threads, family)

    def constrain(self, coordinates: Coordinates[Likelihood]) -> Constrain:
        """The constraints of all rows."""
        return partial(constrain_held, coordinates.likelihood)

    def sample(self, coordinates: Coordinates[Likelihood]) -> Fewer | None:
        """A sample where there are more than 5,000 rows that can still worsen."""
        return sample_held(coordinates)

    def settles(self, coordinates: Coordinates[Likelihood], here: Evaluation) -> bool:
        """Whether the standard error of every row's log hazard rules a separation out."""
        return is_settled(coordinates, here)

    def score(self, coordinates: Coordinates[Likelihood], psi: Array) -> tuple[float, Meat | None]:
        """The scores of groups, or of rows with class weights."""
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
        return np.quantile(self.x, probabilities, axis=0)
