"""Means and deviations of covariates that come in blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Moments(NamedTuple):
    """Weight of the rows, mean (p,) and weighted squares of the deviations from it (p,)."""

    weight: float
    mean: Array
    squares: Array

    @classmethod
    def of(cls, values: Array) -> Moments:
        """Moments of values (m, p), each row of weight 1."""
        m, p = values.shape
        if not m:
            return cls(0.0, np.zeros(p), np.zeros(p))
        mean = values.mean(axis=0)
        return cls(float(m), mean, np.square(values - mean).sum(axis=0))

    @property
    def sd(self) -> Array:
        """Standard deviations (p,), ddof 0."""
        return np.sqrt(self.squares / (self.weight or 1.0))

    def plus(self, other: Moments) -> Moments:
        """Moments of both together (Chan, Golub and LeVeque 1983)."""
        if not self.weight or not other.weight:
            return self if self.weight else other
        weight, apart = self.weight + other.weight, other.mean - self.mean
        mean = self.mean + apart * (other.weight / weight)
        between = np.square(apart) * (self.weight * (other.weight / weight))
        return Moments(weight, mean, self.squares + other.squares + between)


def stack_factors(parts: Iterable[Array], p: int) -> Array:
    """The triangular factor r (p, p) of all rows from those of the blocks (Demmel and others 2012)."""
    r: Array = np.zeros((0, p))
    for part in parts:
        r = np.asarray(np.linalg.qr(np.concatenate([r, part]), mode="r"))
    return r
