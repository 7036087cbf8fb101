"""How many of many members: quantiles of a count in which every member has its own probability.

A count of independent members is Poisson-binomial. Three sums over members are kept, which can be streamed:

    mean = sum p,   variance = sum p (1 - p),   third = sum p (1 - p) (1 - 2 p)

and it is taken for s + Binomial(n, q) with the same three: q = (1 - third / variance) / 2,
n = variance / (q (1 - q)), s = mean - n q. Neither n nor s need be whole for the incomplete beta function. This is
exact where all probabilities are equal or certain. A normal quantile corrected for skewness, from the same sums,
is wrong about small counts ten times as often.

What is not known of the parameters comes in as a mixture: every set of them has sums of its own.

The network: how many members will be in each state, and at a threshold or worse, with two kinds of interval.

    expected number   the sum over members of their probabilities
    low, high         of the expected number: what the parameters' uncertainty leaves open
    predicted         of the number itself: that, and the chance in each member's own course

By the delta method the gradient G of the totals in the coefficients is carried along in one pass: variance G' C G,
on the logit scale between what a total cannot leave: members that are there for good, members that can still come.
By draws every set of coefficients is walked through, and has totals of its own. Cases are fitted separately, and
what is uncertain in one is independent of the others: that members of one bridge may go together is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rekka.forecast.propagation import YEAR, States, Walkers, cross_gap, walk
from rekka.forecast.uncertainty import DELTA, NONE, Spread, draw_interval
from rekka.model.inference import normal_quantile

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


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over some members of a case, of Q quantities: states 1 to K, then the threshold or worse.

    ``sums`` are (1, T, Q) at the estimate, ``drawn`` (B, T, Q) at draws, ``gradient`` (T, Q, K-1, p+1).
    """

    members: int
    least: Array  # (Q,): what a total cannot leave
    most: Array
    sums: Moments
    drawn: Moments | None = None
    gradient: Array | None = None

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.members + other.members,
            self.least + other.least,
            self.most + other.most,
            self.sums + other.sums,
            None if self.drawn is None or other.drawn is None else self.drawn + other.drawn,
            None if self.gradient is None or other.gradient is None else self.gradient + other.gradient,
        )


def find_bounds(start: States, n_states: int, threshold: int) -> tuple[Array, Array]:
    """Between which numbers (Q,) each total stays for members that set out in states ``start``, 0-based."""
    here = np.bincount(start, minlength=n_states).astype(np.float64)
    least = np.zeros(n_states + 1)
    least[n_states - 1], least[n_states] = here[-1], here[threshold - 1 :].sum()
    return least, np.append(here.cumsum(), here.sum())


def reach(p: Array, threshold: int) -> Array:
    """Probability of ``threshold``, 1-based, or worse; the states' probabilities may add up to a hair above 1."""
    return np.asarray(np.minimum(p[..., threshold - 1 :].sum(axis=-1), 1.0))


def add_threshold(p: Array, threshold: int) -> Array:
    """State probabilities (..., K) with that of the threshold or worse as the last column."""
    return np.concatenate([p, reach(p, threshold)[..., None]], axis=-1)


def tally_path(path: Sequence[Array], start: States, threshold: int, gradient: Array | None) -> Tally:
    """The sums over members of their probabilities (n, K) at each time."""
    sums = [sum_members(add_threshold(p, threshold)[None]) for p in path]
    least, most = find_bounds(start, path[0].shape[-1], threshold)
    whole = None if gradient is None else _with_threshold(gradient, threshold)
    return Tally(start.size, least, most, _over_time(sums), None, whole)


def _join(sums: Sequence[Moments], join: Callable[[Sequence[Array]], Array]) -> Moments:
    """Some sums made one, each of the three by itself."""
    names = ("mean", "variance", "third")
    return Moments(*(join([getattr(one, name) for one in sums]) for name in names))


def _over_time(sums: Sequence[Moments]) -> Moments:
    """Sums (B, Q) at each time as (B, T, Q)."""
    return _join(sums, lambda arrays: np.stack(arrays, axis=1))


def _with_threshold(gradient: Array, threshold: int) -> Array:
    """Gradients (T, K, K-1, p+1) with that of the threshold or worse as the last quantity."""
    return np.concatenate([gradient, gradient[:, threshold - 1 :].sum(axis=1, keepdims=True)], axis=1)


def walk_sloped(
    walkers: Walkers, start: States, years: int, gap: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """P (n, K) after 0, 1, ..., ``years`` years, and the gradient (K, K-1, p+1) of its sum over members.

    A column of the design that stays as it is multiplies what the intercept does: slopes are carried for the
    intercept and for the columns that move, and no others.
    """
    first, last = walkers.design(0.0, YEAR), walkers.design(years + (0.0 if gap is None else gap))
    moving = np.flatnonzero((first != last).any(axis=0))
    fixed = np.setdiff1d(np.arange(first.shape[1]), moving)
    p = walkers.set_out(start)[0]
    slope = np.zeros((start.size, p.shape[1] - 1, 1 + moving.size, p.shape[1]))

    def carry(elapsed: Array | float, h: Array | float) -> None:
        drive = np.ascontiguousarray(walkers.design(elapsed, h)[:, [0, *moving]])
        walkers.family.step_sloped(p, slope, walkers.hazards(elapsed, h)[0], h, drive)

    def total() -> Array:
        found = np.empty((p.shape[1], p.shape[1] - 1, first.shape[1]))
        found[:, :, fixed] = np.einsum("nd,nkj->jkd", first[:, fixed], slope[:, :, 0])
        found[:, :, moving] = np.einsum("nkdj->jkd", slope[:, :, 1:])
        return found

    elapsed = cross_gap(gap, walkers.course, carry)
    yield p.copy(), total()
    for year in range(years):
        carry(elapsed + year, YEAR)
        yield p.copy(), total()


def tally_draws(
    walkers: Walkers,
    start: States,
    years: int,
    gap: Array | None,
    threshold: int,
    *,
    at_once: int,
    on_sets: Callable[[int], None] = lambda _: None,
) -> Moments:
    """The sums (B, T, Q) at every set of coefficients of the walkers, some sets ``at_once``."""
    found = []
    for first in range(0, len(walkers.coefficients), at_once):
        some = walkers.coefficients[first : first + at_once]
        path = walk(Walkers(walkers.fit, walkers.x, some, walkers.course), start, range(years + 1), gap)
        found.append(_over_time([sum_members(add_threshold(p, threshold)) for p in path]))
        on_sets(len(some))
    return _join(found, np.concatenate)


@dataclass(frozen=True, eq=False)
class Totals:
    """The totals of a case, or of several: T times by Q quantities.

    ``deviation`` is the standard error of the expected numbers by the delta method, ``drawn`` their sums at draws;
    with neither there are no intervals, and ``why`` says why, where that was not asked for.
    """

    members: int
    states: int
    level: float
    least: Array
    most: Array
    sums: Moments  # (1, T, Q)
    deviation: Array | None = None  # (T, Q)
    drawn: Moments | None = None  # (B, T, Q)
    why: tuple[str, ...] = ()

    @property
    def expected(self) -> Array:
        """Expected numbers (T, Q)."""
        return np.asarray(self.sums.mean[0])

    def interval(self) -> tuple[Array, Array]:
        """Of the expected numbers; NaN where there is none."""
        if self.drawn is not None:
            return draw_interval(self.drawn.mean, self.level)
        if self.deviation is None:
            return np.full_like(self.expected, np.nan), np.full_like(self.expected, np.nan)
        room = (self.expected - self.least) * (self.most - self.expected)
        free = room > 0.0
        width = np.where(free, self.most - self.least, 1.0)
        middle = special.logit(np.where(free, (self.expected - self.least) / width, 0.5))
        error = normal_quantile(self.level) * self.deviation * width / np.where(free, room, 1.0)
        ends = (self.least + width * special.expit(middle + side * error) for side in (-1.0, 1.0))
        low, high = (np.where(free, end, self.expected) for end in ends)
        return low, high

    def predict(self) -> tuple[Array, Array]:
        """Of the numbers themselves, in whole members; NaN where there is none."""
        if self.drawn is not None:
            sums, weight = self.drawn, np.full(len(self.drawn.mean), 1.0 / len(self.drawn.mean))
        elif self.deviation is not None:
            middle = self.sums.each(lambda values: values[0])
            sums, weight = mix_normal(middle, self.deviation, self.least, self.most)
        else:
            return self.interval()
        tail = (1.0 - self.level) / 2
        low, high = (find_quantile(share, sums, weight, self.members) for share in (tail, 1.0 - tail))
        return low, high


def conclude(tally: Tally, spread: Spread, covariance: Array) -> Totals:
    """The totals of a case from all its members; ``covariance`` (K-1, p+1, K-1, p+1) is the coefficients'."""
    deviation = None
    if spread.kind == DELTA and tally.gradient is not None:
        g = tally.gradient
        with np.errstate(over="ignore", invalid="ignore"):  # covariates beyond all reason have no interval
            variance = np.einsum("tqkd,kdlc,tqlc->tq", g, covariance, g, optimize=True)
        deviation = np.sqrt(np.maximum(variance, 0.0))
    return Totals(
        members=tally.members,
        states=tally.least.size - 1,
        level=spread.level,
        least=tally.least,
        most=tally.most,
        sums=tally.sums,
        deviation=deviation,
        drawn=None if spread.kind == NONE else tally.drawn,
        why=() if spread.why is None else (spread.why,),
    )


def add_up(cases: Sequence[Totals]) -> Totals:
    """The totals of all cases: sums add, variances of the parameters' part add, draws are paired as they come."""
    states = max(one.states for one in cases)
    return reduce(_add, [_widen(one, states) for one in cases])


def _add(one: Totals, other: Totals) -> Totals:
    deviation = drawn = None
    if one.deviation is not None and other.deviation is not None:
        deviation = np.hypot(one.deviation, other.deviation)
    if one.drawn is not None and other.drawn is not None:
        count = min(len(one.drawn.mean), len(other.drawn.mean))
        drawn = one.drawn.each(lambda values: values[:count]) + other.drawn.each(lambda values: values[:count])
    return Totals(
        members=one.members + other.members,
        states=one.states,
        level=one.level,
        least=one.least + other.least,
        most=one.most + other.most,
        sums=one.sums + other.sums,
        deviation=deviation,
        drawn=drawn,
        why=(*one.why, *(why for why in other.why if why not in one.why)),
    )


def _widen(one: Totals, states: int) -> Totals:
    """The same with states that the case does not have, and nobody in them."""
    missing = states - one.states

    def widen(values: Array) -> Array:
        return np.insert(values, [one.states] * missing, 0.0, axis=-1)

    return Totals(
        members=one.members,
        states=states,
        level=one.level,
        least=widen(one.least),
        most=widen(one.most),
        sums=one.sums.each(widen),
        deviation=None if one.deviation is None else widen(one.deviation),
        drawn=None if one.drawn is None else one.drawn.each(widen),
        why=one.why,
    )
