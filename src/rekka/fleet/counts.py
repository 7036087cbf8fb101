"""How many of many members: quantiles of a count in which every member has its own probability.

A count of independent members is Poisson-binomial. Three sums over members are kept, which can be streamed:

    mean = sum p,   variance = sum p (1 - p),   third = sum p (1 - p) (1 - 2 p)

and it is taken for s + Binomial(n, q) with the same three: q = (1 - third / variance) / 2,
n = variance / (q (1 - q)), s = mean - n q. Neither n nor s need be whole for the incomplete beta function. This is
exact where all probabilities are equal or certain. A normal quantile corrected for skewness, from the same sums,
is wrong about small counts ten times as often.

What is not known of the parameters comes in as a mixture: every set of them has sums of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

CERTAIN = 1e-9  # variance below which a count is known
EVEN = 1.0 - 1e-9  # |third / variance| is held at this: from there on a binomial is Poisson's to nine digits
GRID = np.arange(-100, 101) / 20  # standard errors at which what is normal is looked at


@dataclass(frozen=True, eq=False)
class Moments:
    """The three sums, all of one shape."""

    mean: Array
    variance: Array
    third: Array

    def each(self, change: Callable[[Array], Array]) -> Moments:
        """The same done to all three."""
        return Moments(change(self.mean), change(self.variance), change(self.third))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.mean + other.mean, self.variance + other.variance, self.third + other.third)


def sum_members(q: Array) -> Moments:
    """The sums over members of probabilities (B, n, Q): each (B, Q)."""
    spread = q * (1.0 - q)
    return Moments(q.sum(axis=1), spread.sum(axis=1), (spread * (1.0 - 2.0 * q)).sum(axis=1))


def share_up_to(count: Array, sums: Moments) -> Array:
    """The probability of ``count`` or fewer, for each of the sums."""
    known = sums.variance < CERTAIN
    variance = np.where(known, 1.0, sums.variance)
    q = 0.5 * (1.0 - np.clip(sums.third / variance, -EVEN, EVEN))
    n = variance / (q * (1.0 - q))
    k = count - (sums.mean - n * q)
    inside = (k > -1.0) & (k < n)
    found = special.betainc(np.where(inside, n - k, 1.0), np.where(inside, k + 1.0, 1.0), 1.0 - q)
    found = np.where(inside, found, k >= n)
    return np.asarray(np.where(known, count > sums.mean - 0.5, found))


def find_quantile(share: float, sums: Moments, weight: Array, most: int) -> Array:
    """The smallest number (...), ``most`` at the most, up to which ``share`` of a mixture (B, ...) lies."""
    low = np.full(sums.mean.shape[1:], -1.0)  # too small
    high = np.full_like(low, float(most))  # large enough
    while (high - low > 1.0).any():
        middle = np.floor(0.5 * (low + high))
        enough = np.tensordot(weight, share_up_to(middle, sums), axes=1) >= share
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def mix_normal(sums: Moments, deviation: Array, least: Array, most: Array) -> tuple[Moments, Array]:
    """Sums (G, ...) and weights (G,) for a mean that is normal on the logit scale from ``least`` to ``most``.

    The variance goes with the mean as a binomial's does, and the skewness with the variance.
    """
    room = (sums.mean - least) * (most - sums.mean)
    free = (room > 0.0) & (deviation > 0.0)
    room, width = np.where(free, room, 1.0), np.where(free, most - least, 1.0)
    middle = special.logit(np.where(free, (sums.mean - least) / width, 0.5))
    moved = middle + GRID.reshape(-1, *[1] * middle.ndim) * (deviation * width / room)
    mean = np.where(free, least + width * special.expit(moved), sums.mean)
    scale = np.where(free, (mean - least) * (most - mean) / room, 1.0)
    weight = np.exp(-0.5 * GRID**2)
    return Moments(mean, sums.variance * scale, sums.third * scale), weight / weight.sum()
