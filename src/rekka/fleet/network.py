"""Network totals: expected numbers of members in each state, and at a threshold or worse, with two intervals.

    expected number   the sum over members of their probabilities
    low, high         interval of the expected number: uncertainty of the parameters
    predicted         interval of the number itself: that, and the chance in each member's own ageing

By the delta method the gradient G of the totals in the coefficients is propagated in one pass: variance G' C G, on
the logit scale between the bounds that a total cannot leave. By draws every set of coefficients is propagated, and
has totals of its own. Cases are fitted separately and taken as independent. Members of one bridge are independent
given its frailty; without a frailty, that they may deteriorate together is not counted.

The number itself is a count of independent members, each with its own probability: Poisson-binomial. Three sums
over members are kept, which can be streamed:

    mean = sum p,   variance = sum p (1 - p),   third = sum p (1 - p) (1 - 2 p)

and it is taken for s + Binomial(n, q) with the same three: q = (1 - third / variance) / 2,
n = variance / (q (1 - q)), s = mean - n q. Neither n nor s need be whole for the incomplete beta function. This is
exact where all probabilities are equal or certain. A normal quantile corrected for skewness, from the same sums,
is wrong about small counts ten times as often.

Where members of a bridge share a frailty, its count is a mixture over the nodes of the frailty: mean, variance and
third central moment of each bridge's count take the place of the sums over its members.

Uncertain parameters make the count a mixture: every set of them has sums of its own.

Where ``shocks`` are known, a second, wider prediction interval adds them: half the difference between the expected
numbers at hazards one standard deviation above and below is a standard error besides that of the parameters. Of
several cases they add up as if all were struck at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rekka.forecast.propagation import YEAR, Propagator, States, propagate, step_gaps
from rekka.forecast.uncertainty import DELTA, NONE, STEP, Uncertainty, draw_interval
from rekka.model.inference import normal_quantile

Array = NDArray[np.float64]

CERTAIN = 1e-9  # variance below which a count is known
EVEN = 1.0 - 1e-9  # |third / variance| is held at this: from there on a binomial is Poisson's to nine digits
GUESSES = 3  # at a quantile, before its bracket is halved
FARTHEST = 1e-9  # share of a normal distribution, beyond which it is not looked at
GRID = np.arange(-100, 101) / 20  # standard errors at which what is normal is looked at
GRID_WEIGHT = np.exp(-0.5 * GRID**2) / np.exp(-0.5 * GRID**2).sum()


@dataclass(frozen=True, eq=False)
class CountMoments:
    """Three sums over members that describe a count, all of one shape."""

    mean: Array
    variance: Array
    third: Array

    def each(self, change: Callable[[Array], Array]) -> CountMoments:
        """Apply a function to all three."""
        return CountMoments(change(self.mean), change(self.variance), change(self.third))

    def __add__(self, other: CountMoments) -> CountMoments:
        return CountMoments(self.mean + other.mean, self.variance + other.variance, self.third + other.third)

    def __sub__(self, other: CountMoments) -> CountMoments:
        """Moments of the other members, where some of those that are counted are taken out."""
        return self + other.each(np.negative)


def sum_members(q: Array) -> CountMoments:
    """Moments (B, Q) of counts of members with probabilities q (B, n, Q)."""
    variance = q * (1.0 - q)
    return CountMoments(q.sum(axis=1), variance.sum(axis=1), (variance * (1.0 - 2.0 * q)).sum(axis=1))


def sum_bridges(q: Array, weight: Array, bridge: NDArray[np.int64]) -> CountMoments:
    """Moments (B, Q) of counts of members of ``bridge`` (n,) that share a frailty.

    q (B, n, N, Q) are probabilities of members at each node together with the node's, weight (B, n, N) the node's
    given all visits of the bridge.
    """
    own = np.divide(q, weight[..., None], out=np.zeros_like(q), where=weight[..., None] > 0.0)
    order = np.argsort(bridge, kind="stable")
    first = np.flatnonzero(np.diff(bridge[order], prepend=-1))
    spread = own * (1.0 - own)
    mean, variance, third = (
        np.add.reduceat(each[:, order], first, axis=1) for each in (own, spread, spread * (1.0 - 2.0 * own))
    )
    share = weight[:, order[first], :, None]
    middle = (share * mean).sum(axis=2)
    apart = mean - middle[:, :, None]
    within = (share * variance).sum(axis=2)
    return CountMoments(
        middle.sum(axis=1),
        (within + (share * apart**2).sum(axis=2)).sum(axis=1),
        (share * (third + 3.0 * apart * (variance - within[:, :, None]) + apart**3)).sum(axis=(1, 2)),
    )


def sum_lanes(propagator: Propagator, p: Array, threshold: int) -> CountMoments:
    """Moments (B, Q) of counts of members with lanes p (B, lanes, K)."""
    bridge = propagator.sharing
    if bridge is None:
        return sum_members(add_threshold(p, threshold))
    lanes = p.reshape(len(p), bridge.size, -1, p.shape[-1])
    return sum_bridges(lane_threshold(lanes, threshold), lanes.sum(axis=-1), bridge)


class Swap(NamedTuple):
    """Moments (B, T, Q) of counts ``before`` and ``after`` repairs, and of the ``change``.

    ``before`` and ``after`` count the same members; the change counts repaired members after their repair, and
    those that the same quantity does not count without it.
    """

    before: CountMoments
    after: CountMoments
    change: CountMoments


def swap_members(
    propagator: Propagator,
    start: States,
    years: int,
    gap: Array | None,
    threshold: int,
    old: NDArray[np.intp],
    *,
    at_once: int,
) -> Swap:
    """Moments at every set of coefficients, some sets ``at_once``, where members ``old`` (r,) are repaired.

    The last r members of the propagator are those of ``old`` after their repair. With A members counted after the
    repair and B without it, both of the r repaired members,

        A - B = (A + (r - B)) - r

    and A + (r - B) is a count of 2 r members: each repaired one after its repair, and each that is not counted
    without it. Members that are not repaired are in both totals, and cancel. Given the parameters, and the frailty
    of their bridge, the two futures of a member are independent of each other.
    """
    members = np.arange(start.size)
    new = members[start.size - old.size :]
    before = members[: start.size - old.size]
    after = np.concatenate([np.setdiff1d(before, old), new])
    bridge = propagator.sharing
    found: list[list[CountMoments]] = []
    for first in range(0, len(propagator.coefficients), at_once):
        some = propagator.take_sets(slice(first, first + at_once))
        sums: list[list[CountMoments]] = [[], [], []]
        for p in propagate(some, start, range(years + 1), gap, by_lane=True):
            lanes = p.reshape(len(p), start.size, -1, p.shape[-1])
            q, weight = lane_threshold(lanes, threshold), lanes.sum(axis=-1)
            sums[0].append(_count_members(q, weight, bridge, before))
            sums[1].append(_count_members(q, weight, bridge, after))
            q[:, old] = weight[:, old, :, None] - q[:, old]
            sums[2].append(_count_members(q, weight, bridge, np.concatenate([old, new])))
        found.append([_over_time(each) for each in sums])
    return Swap(*(_join(parts, np.concatenate) for parts in zip(*found, strict=True)))


def _count_members(
    q: Array, weight: Array, bridge: NDArray[np.int64] | None, members: NDArray[np.intp]
) -> CountMoments:
    """Moments (B, Q) of counts of some members with lanes q (B, n, N, Q) and weights (B, n, N) of the lanes."""
    if bridge is None:
        return sum_members(np.clip(q[:, members, 0], 0.0, 1.0))
    return sum_bridges(q[:, members], weight[:, members], bridge[members])


def lane_threshold(p: Array, threshold: int) -> Array:
    """Append the probability of the threshold or worse to those of lanes (..., K)."""
    return np.concatenate([p, p[..., threshold - 1 :].sum(axis=-1, keepdims=True)], axis=-1)


def share_up_to(count: Array, sums: CountMoments) -> Array:
    """Probability of ``count`` or fewer, for each of the sums."""
    known = sums.variance < CERTAIN
    variance = np.where(known, 1.0, sums.variance)
    q = 0.5 * (1.0 - np.clip(sums.third / variance, -EVEN, EVEN))
    n = variance / (q * (1.0 - q))
    k = count - (sums.mean - n * q)
    inside = (k > -1.0) & (k < n)
    found = special.betainc(np.where(inside, n - k, 1.0), np.where(inside, k + 1.0, 1.0), 1.0 - q)
    found = np.where(inside, found, k >= n)
    return np.asarray(np.where(known, count > sums.mean - 0.5, found))


def find_quantile(share: float, sums: CountMoments, weight: Array, most: int) -> Array:
    """Smallest number (...), at most ``most``, up to which ``share`` of a mixture (B, ...) lies.

    It is above a number that is too small, and at most one that is large enough; both close in on it. The number
    between them that is looked at is first the quantile of a normal distribution, corrected for skewness, then
    where one as wide has the share, given the share up to the last number, and from ``GUESSES`` on the middle.
    """
    each = sums.each(lambda values: values.reshape(len(values), -1))
    mean = weight @ each.mean
    apart = each.mean - mean
    variance = np.maximum(weight @ (each.variance + apart**2), CERTAIN)  # rounding may carry it below 0
    third = weight @ (each.third + 3.0 * each.variance * apart + apart**3)
    width, goal = np.sqrt(variance), _find_deviate(share)
    guess = mean - 0.5 + goal * width + (goal**2 - 1.0) / 6.0 * third / variance
    low, high = np.full_like(mean, -1.0), np.full_like(mean, float(most))
    looks, rest = 0, np.flatnonzero(high - low > 1.0)
    while rest.size:
        wanted = np.ceil(guess[rest]) if looks < GUESSES else np.floor(0.5 * (low[rest] + high[rest]))
        here = np.clip(wanted, low[rest] + 1.0, high[rest] - 1.0)
        found = weight @ share_up_to(here, each.each(itemgetter((slice(None), rest))))
        enough = found >= share
        low[rest], high[rest] = np.where(enough, low[rest], here), np.where(enough, here, high[rest])
        guess[rest] = here + (goal - _find_deviate(found)) * width[rest]
        looks, rest = looks + 1, rest[high[rest] - low[rest] > 1.0]
    return high.reshape(sums.mean.shape[1:])


def _find_deviate(share: float | Array) -> Array:
    """Standard deviations from its mean up to which a share of a normal distribution lies; none are infinite."""
    return np.asarray(special.ndtri(np.clip(share, FARTHEST, 1.0 - FARTHEST)))


def mix_normal(sums: CountMoments, deviation: Array, least: Array, most: Array) -> tuple[CountMoments, Array]:
    """Moments (G, ...), weights (G,) for a mean that is normal on the logit scale from ``least`` to ``most``."""
    room = (sums.mean - least) * (most - sums.mean)
    free = (room > 0.0) & (deviation > 0.0)
    room, width = np.where(free, room, 1.0), np.where(free, most - least, 1.0)
    middle = special.logit(np.where(free, (sums.mean - least) / width, 0.5))
    moved = middle + GRID.reshape(-1, *[1] * middle.ndim) * (deviation * width / room)
    mean = np.where(free, least + width * special.expit(moved), sums.mean)
    return _move(sums, mean, least, most), GRID_WEIGHT


def mix_clipped(sums: CountMoments, deviation: Array, least: Array, most: Array) -> tuple[CountMoments, Array]:
    """Moments (G, ...) and weights (G,) for a mean that is normal and kept from ``least`` to ``most``."""
    moved = sums.mean + GRID.reshape(-1, *[1] * sums.mean.ndim) * deviation
    return _move(sums, np.clip(moved, least, most), least, most), GRID_WEIGHT


def _move(sums: CountMoments, mean: Array, least: Array, most: Array) -> CountMoments:
    """Moments (G, ...) at other means: variance goes with the mean as a binomial's, skewness with the variance."""
    room = (sums.mean - least) * (most - sums.mean)
    scale = np.where(room > 0.0, (mean - least) * (most - mean) / np.where(room > 0.0, room, 1.0), 1.0)
    return CountMoments(mean, sums.variance * scale, sums.third * scale)


@dataclass(frozen=True, eq=False)
class Totals:
    """Totals over members, of Q quantities at T times: members in states 1 to K, then at the threshold or worse.

    ``sums`` are (1, T, Q) at the estimate, ``drawn`` (B, T, Q) at draws, ``gradient`` (T, Q, K-1, p+1) that of
    the expected numbers in the coefficients of one case, ``deviation`` (T, Q) their standard error by the delta
    method, ``shock`` (T, Q) what a shared error of one standard deviation adds to them. With neither draws nor
    deviation there are no intervals, and ``why`` says why, where they were asked for.
    """

    members: int
    least: Array  # (Q,): between these bounds every total stays
    most: Array
    sums: CountMoments
    level: float = 0.95
    drawn: CountMoments | None = None
    gradient: Array | None = None
    deviation: Array | None = None
    shock: Array | None = None
    why: tuple[str, ...] = ()

    def __add__(self, other: Totals) -> Totals:
        """Totals of both: sums and gradients add, variances of cases add, draws are paired as they come."""
        drawn = None
        if self.drawn is not None and other.drawn is not None:
            count = min(len(self.drawn.mean), len(other.drawn.mean))
            drawn = self.drawn.each(lambda a: a[:count]) + other.drawn.each(lambda a: a[:count])
        return Totals(
            members=self.members + other.members,
            least=self.least + other.least,
            most=self.most + other.most,
            sums=self.sums + other.sums,
            level=self.level,
            drawn=drawn,
            gradient=_combine(np.add, self.gradient, other.gradient),
            deviation=_combine(np.hypot, self.deviation, other.deviation),
            shock=_combine(np.add, self.shock, other.shock),
            why=tuple(dict.fromkeys((*self.why, *other.why))),
        )

    @property
    def states(self) -> int:
        """Number of states, K."""
        return self.least.size - 1

    @property
    def expected(self) -> Array:
        """Expected numbers (T, Q)."""
        return np.asarray(self.sums.mean[0])

    def interval(self) -> tuple[Array, Array]:
        """Interval of the expected numbers (T, Q); NaN where there is none."""
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
        """Prediction interval (T, Q) of the numbers themselves, in whole members; NaN where there is none."""
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

    def predict_shocked(self) -> tuple[Array, Array]:
        """Prediction interval (T, Q) with shared errors, at least that of ``predict``; NaN where there is none."""
        narrow = self.predict()
        drawn = None if self.drawn is None else self.drawn.mean.std(axis=0, ddof=1)
        deviation = self.deviation if drawn is None else drawn
        if self.shock is None or deviation is None:
            return np.full_like(self.expected, np.nan), np.full_like(self.expected, np.nan)
        if not self.shock.any():
            return narrow
        middle = self.sums.each(lambda values: values[0])
        sums, weight = mix_clipped(middle, np.hypot(deviation, self.shock), self.least, self.most)
        tail = (1.0 - self.level) / 2
        low, high = (find_quantile(share, sums, weight, self.members) for share in (tail, 1.0 - tail))
        return np.minimum(low, narrow[0]), np.maximum(high, narrow[1])

    def swap(self, before: Totals, after: Totals) -> Totals:
        """Totals with ``after`` in place of ``before``, which are totals of some of the members."""
        least, most = (
            getattr(self, end) - getattr(before, end) + getattr(after, end) for end in ("least", "most")
        )

        def change(own: CountMoments, old: CountMoments, new: CountMoments) -> CountMoments:
            sums = own - old + new
            return replace(sums, mean=np.clip(sums.mean, least, most))  # rounding may carry it beyond

        drawn = gradient = None
        if self.drawn is not None and before.drawn is not None and after.drawn is not None:
            drawn = change(self.drawn, before.drawn, after.drawn)
        if self.gradient is not None and before.gradient is not None and after.gradient is not None:
            gradient = self.gradient - before.gradient + after.gradient
        return replace(
            self,
            least=least,
            most=most,
            sums=change(self.sums, before.sums, after.sums),
            drawn=drawn,
            gradient=gradient,
            shock=None,
        )

    def conclude(self, uncertainty: Uncertainty, covariance: Array) -> Totals:
        """Totals of a case with their intervals; ``covariance`` (K-1, p+1, K-1, p+1) is the coefficients'.

        A gradient (T, Q, 1, r) along the directions of the covariance takes the identity.
        """
        deviation = None
        if uncertainty.kind == DELTA and self.gradient is not None:
            g = self.gradient
            with np.errstate(over="ignore", invalid="ignore"):  # covariates beyond all reason have no interval
                variance = np.einsum("tqkd,kdlc,tqlc->tq", g, covariance, g, optimize=True)
            deviation = np.sqrt(np.maximum(variance, 0.0))
        return replace(
            self,
            level=uncertainty.level,
            gradient=None,
            deviation=deviation,
            drawn=None if uncertainty.kind == NONE else self.drawn,
            why=() if uncertainty.why is None else (uncertainty.why,),
        )

    def widen(self, states: int) -> Totals:
        """Totals with further states, and nobody in them."""

        def widen(values: Array) -> Array:
            return np.insert(values, [self.states] * (states - self.states), 0.0, axis=-1)

        return replace(
            self,
            least=widen(self.least),
            most=widen(self.most),
            sums=self.sums.each(widen),
            deviation=None if self.deviation is None else widen(self.deviation),
            shock=None if self.shock is None else widen(self.shock),
            drawn=None if self.drawn is None else self.drawn.each(widen),
        )


def _combine(function: np.ufunc, one: Array | None, other: Array | None) -> Array | None:
    return None if one is None or other is None else np.asarray(function(one, other))


def add_cases(cases: Sequence[Totals]) -> Totals:
    """Totals of all cases together, with the states of the one that has most."""
    states = max(one.states for one in cases)
    return reduce(add, [one.widen(states) for one in cases])


def find_bounds(start: States, n_states: int, threshold: int) -> tuple[Array, Array]:
    """Bounds (Q,) that totals of members in states ``start`` (n,), 0-based, cannot leave."""
    here = np.bincount(start, minlength=n_states).astype(np.float64)
    least = np.zeros(n_states + 1)
    least[n_states - 1], least[n_states] = here[-1], here[threshold - 1 :].sum()
    return least, np.append(here.cumsum(), here.sum())


def at_or_beyond(p: Array, threshold: int) -> Array:
    """Probability of ``threshold``, 1-based, or worse; rounding may add the states up to a little above 1."""
    return np.asarray(np.minimum(p[..., threshold - 1 :].sum(axis=-1), 1.0))


def add_threshold(p: Array, threshold: int) -> Array:
    """Append the probability of the threshold or worse to state probabilities (..., K)."""
    return np.concatenate([p, at_or_beyond(p, threshold)[..., None]], axis=-1)


def total_path(path: Sequence[Array], start: States, threshold: int, gradient: Array | None) -> Totals:
    """Totals of members with probabilities (n, K) at each time, and gradients (T, K, K-1, p+1)."""
    sums = [sum_members(add_threshold(p, threshold)[None]) for p in path]
    least, most = find_bounds(start, path[0].shape[-1], threshold)
    whole = None if gradient is None else _with_threshold(gradient, threshold)
    return Totals(start.size, least, most, _over_time(sums), gradient=whole)


def total_lanes(propagator: Propagator, path: Sequence[Array], threshold: int) -> Totals:
    """Totals of members with lanes (1, lanes, K) at each time, whose condition is not known and may improve."""
    sums = _over_time([sum_lanes(propagator, p, threshold) for p in path])
    members, bounds = len(propagator.x), np.zeros(sums.mean.shape[-1])
    return Totals(members, bounds, bounds + members, sums)


def _join(sums: Sequence[CountMoments], join: Callable[[Sequence[Array]], Array]) -> CountMoments:
    """Join moments, each of the three by itself."""
    names = ("mean", "variance", "third")
    return CountMoments(*(join([getattr(one, name) for one in sums]) for name in names))


def _over_time(sums: Sequence[CountMoments]) -> CountMoments:
    """Stack moments (B, Q) at each time to (B, T, Q)."""
    return _join(sums, lambda arrays: np.stack(arrays, axis=1))


def _with_threshold(gradient: Array, threshold: int) -> Array:
    """Append the gradient of the threshold or worse to gradients (T, K, K-1, p+1)."""
    return np.concatenate([gradient, gradient[:, threshold - 1 :].sum(axis=1, keepdims=True)], axis=1)


def propagate_gradients(
    propagator: Propagator, start: States, years: int, gap: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """State probabilities (n, K) after 0, 1, ..., ``years`` years, and the gradient (K, K-1, p+1) of their sum.

    A column of the design that stays constant multiplies what the intercept does: slopes are propagated for the
    intercept and for the columns that change, and no others.
    """
    first, last = propagator.design(0.0, YEAR), propagator.design(years + (0.0 if gap is None else gap))
    moving = np.flatnonzero((first != last).any(axis=0))
    fixed = np.setdiff1d(np.arange(first.shape[1]), moving)
    p = propagator.start_in(start)[0]
    slope = np.zeros((start.size, p.shape[1] - 1, 1 + moving.size, p.shape[1]))

    def carry(elapsed: Array | float, h: Array | float) -> None:
        drive = np.ascontiguousarray(propagator.design(elapsed, h)[:, [0, *moving]])
        propagator.family.step_sloped(p, slope, propagator.hazards(elapsed, h)[0], h, drive)

    def total() -> Array:
        found = np.empty((p.shape[1], p.shape[1] - 1, first.shape[1]))
        found[:, :, fixed] = np.einsum("nd,nkj->jkd", first[:, fixed], slope[:, :, 0])
        found[:, :, moving] = np.einsum("nkdj->jkd", slope[:, :, 1:])
        return found

    elapsed = step_gaps(gap, carry, yearly=propagator.yearly)
    yield p.copy(), total()
    for year in range(years):
        carry(elapsed + year, YEAR)
        yield p.copy(), total()


def find_shock(
    propagator: Propagator,
    start: States,
    years: int,
    gap: Array | None,
    threshold: int,
    tempos: tuple[float, float],
) -> Array:
    """Half the difference (2, T, Q) of expected numbers between two tempos of the hazards: true, recorded."""
    slow, fast = (
        np.array(
            [
                [add_threshold(one[0], threshold).sum(axis=0) for one in (p, some.record(p))]
                for p in propagate(some, start, range(years + 1), gap)
            ]
        )
        for some in (replace(propagator, tempo=tempo) for tempo in tempos)
    )
    return np.moveaxis(0.5 * (fast - slow), 1, 0)


def find_slopes(sums: CountMoments) -> Array:
    """Gradient (T, Q, 1, r) of expected numbers from sets (2 r, T, Q) to both sides along r directions."""
    mean = sums.mean
    return np.asarray(np.moveaxis((mean[0::2] - mean[1::2]) / (2.0 * STEP), 0, -1)[:, :, None, :])


def total_draws(
    propagator: Propagator,
    start: States,
    years: int,
    gap: Array | None,
    threshold: int,
    *,
    at_once: int,
    on_sets: Callable[[int], None] = lambda _: None,
    recorded: bool = False,
) -> CountMoments:
    """Moments (B, T, Q) of the totals at every set of coefficients of the propagator, some sets ``at_once``.

    With ``recorded`` they have 2 Q quantities: true states, then the ratings that inspectors record.
    """
    found = []
    for first in range(0, len(propagator.coefficients), at_once):
        some = propagator.take_sets(slice(first, first + at_once))
        sums = []
        for p in propagate(some, start, range(years + 1), gap, by_lane=True):
            seen = (p, some.record(p)) if recorded else (p,)
            parts = [sum_lanes(some, one, threshold) for one in seen]
            sums.append(_join(parts, lambda arrays: np.concatenate(arrays, axis=-1)))
        found.append(_over_time(sums))
        on_sets(len(some.coefficients))
    return _join(found, np.concatenate)
