"""Slow plain formulas, independent of the model's code: what a textbook says, in as few lines as it takes.

Nothing here imports from ``rekka.model``: a check compares the two. Random numbers are those of Python's own
generator, whose stream never changes, so that the same rows are drawn in every version and on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from random import Random
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import optimize

Array = NDArray[np.float64]

SQUARINGS, TERMS = 10, 12  # of the matrix exponential: exact to rounding where hazards times years are below 50
COMPLEX_STEP = 1e-30


def generator(theta: Any) -> Any:
    """Generators (..., K, K) of hazards (..., K-1), real or complex."""
    theta = np.asarray(theta)
    free = theta.shape[-1]
    Q = np.zeros((*theta.shape[:-1], free + 1, free + 1), dtype=theta.dtype)
    Q[..., np.arange(free), np.arange(free)] = -theta
    Q[..., np.arange(free), np.arange(1, free + 1)] = theta
    return Q


def exponential(Q: Any) -> Any:
    """exp(Q) of matrices (..., K, K): Taylor's series of Q / 2^SQUARINGS, squared as often."""
    Q = Q / 2.0**SQUARINGS
    term = total = np.broadcast_to(np.eye(Q.shape[-1]), Q.shape)
    for m in range(1, TERMS + 1):
        term = term @ Q / m
        total = total + term
    for _ in range(SQUARINGS):
        total = total @ total
    return total


def erlang(theta: float, years: float, moves: int, *, absorbed: bool = False) -> float:
    """Probability of so many moves at equal hazards, or of at least as many: Poisson."""
    a = theta * years
    each = [math.exp(m * math.log(a) - a - math.lgamma(m + 1)) for m in range(moves + 1)]
    return 1.0 - math.fsum(each[:moves]) if absorbed else each[moves]


def one_move(theta: Sequence[float], years: float) -> float:
    """Probability of one move and no second one, at two different hazards."""
    first, second = theta
    return first * (math.exp(-first * years) - math.exp(-second * years)) / (second - first)


def two_moves(theta: Sequence[float], years: float) -> float:
    """Probability of having arrived in state 3, the last, at two different hazards."""
    first, second = theta
    return 1.0 - (second * math.exp(-first * years) - first * math.exp(-second * years)) / (second - first)


def three_moves(theta: Sequence[float], years: float) -> float:
    """Probability of having arrived in state 4, the last, at three different hazards."""
    total = 1.0
    for k, own in enumerate(theta):
        others = [one for m, one in enumerate(theta) if m != k]
        total -= math.prod(one / (one - own) for one in others) * math.exp(-own * years)
    return total


# Likelihoods


class PlainPairs(NamedTuple):
    """Rows seen twice: states 0-based, years, covariates (n, p)."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    years: Array
    x: Array
    n_states: int

    def frame(self) -> pl.DataFrame:
        """The rows as rekka takes them, covariates x0, x1, ..."""
        columns = {"state_1": self.start + 1, "state_2": self.end + 1, "interval_years": self.years}
        return pl.DataFrame(columns | {f"x{k}": self.x[:, k] for k in range(self.x.shape[1])})


def log_likelihood(rows: PlainPairs, beta: Any) -> Any:
    """Log-likelihood of pairs at coefficients (..., K-1, p+1) by matrices; real or complex."""
    design = np.column_stack([np.ones(len(rows.years)), rows.x])
    theta = np.exp(np.einsum("nc,...kc->...nk", design, beta))
    P = exponential(generator(theta * rows.years[:, None]))
    return np.log(P[..., np.arange(len(rows.years)), rows.start, rows.end]).sum(axis=-1)


def exact_log_likelihood(rows: PlainPairs, beta: Array) -> float:
    """Log-likelihood by the closed form for hazards that all differ, in 60 decimal digits; hazards of any size."""
    with localcontext() as context:
        context.prec = 60
        total = Decimal(0)
        table = [[Decimal(float(one)) for one in own] for own in beta]
        for start, end, years, x in zip(rows.start, rows.end, rows.years, rows.x, strict=True):
            each = [Decimal(1), *(Decimal(float(one)) for one in x)]
            theta = [sum((b * one for b, one in zip(own, each, strict=True)), Decimal(0)).exp() for own in table]
            total += _exact_probability([*theta, Decimal(0)], Decimal(float(years)), int(start), int(end)).ln()
        return float(total)


def _exact_probability(theta: Sequence[Decimal], years: Decimal, start: int, end: int) -> Decimal:
    nodes, found = theta[start : end + 1], Decimal(0)
    for k, own in enumerate(nodes):
        term = (-own * years).exp()
        for m, other in enumerate(nodes):
            term = term if m == k else term / (other - own)
        found += term
    for one in theta[start:end]:
        found *= one
    return found


def climb(rows: PlainPairs, start: Array) -> tuple[float, Array]:
    """Maximum of the plain likelihood from coefficients (K-1, p+1), and where: L-BFGS-B with complex steps."""
    shape = start.shape
    # Covariates are standardised for the optimizer, and intercepts moved to their means: no coefficient changes.
    mean, sd = rows.x.mean(axis=0), rows.x.std(axis=0)
    scaled = rows._replace(x=(rows.x - mean) / sd)
    steps = (1j * COMPLEX_STEP) * np.eye(start.size).reshape(start.size, *shape)

    def descend(flat: Array) -> tuple[float, Array]:
        found = log_likelihood(scaled, flat.reshape(shape) + steps)
        return -float(found[0].real), -found.imag / COMPLEX_STEP

    begin = start.copy()
    begin[:, 1:] *= sd
    begin[:, 0] += start[:, 1:] @ mean
    options = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    found = optimize.minimize(descend, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
    beta = found.x.reshape(shape)
    beta[:, 1:] /= sd
    beta[:, 0] -= beta[:, 1:] @ mean
    return -float(found.fun), beta


def first_rates(rows: PlainPairs) -> Array:
    """Coefficients (K-1, p+1) to start from: moves by years in a state, and no effects."""
    beta = np.zeros((rows.n_states - 1, rows.x.shape[1] + 1))
    for k in range(rows.n_states - 1):
        left = (rows.start <= k) & (rows.end > k)
        beta[k, 0] = math.log(max(left.sum(), 0.5) / max(rows.years[rows.start == k].sum(), 1.0))
    return beta


def mean_years(theta: Sequence[float]) -> float:
    """Mean years through states with these hazards."""
    return math.fsum(1.0 / one for one in theta)


def quantile_years(theta: Sequence[float], share: float) -> float:
    """Years after which this share has passed through states with these hazards: by matrices and halving."""
    rates = np.asarray(theta)

    def arrived(years: float) -> float:
        return float(exponential(generator(rates * years))[0, -1]) - share

    return float(optimize.brentq(arrived, 1e-6, 50.0 * mean_years(theta), xtol=1e-12, rtol=1e-14))


# Draws


def draw_end(random: Random, theta: Sequence[float], start: int, years: float) -> int:
    """State after so many years from ``start``: waiting times one after the other."""
    state, left = start, years
    while state < len(theta):
        left += math.log(1.0 - random.random()) / theta[state]
        if left < 0.0:
            break
        state += 1
    return state


def draw_pairs(
    seed: int,
    n: int,
    beta: Sequence[Sequence[float]],
    draw_x: Callable[[Random], list[float]],
    gaps: Sequence[float],
) -> PlainPairs:
    """Independent rows from known coefficients (K-1, p+1), in any state but the last."""
    random, found = Random(seed), []
    for _ in range(n):
        x = draw_x(random)
        theta = [math.exp(own[0] + math.fsum(b * one for b, one in zip(own[1:], x, strict=True))) for own in beta]
        start, years = random.randrange(len(beta)), random.choice(gaps)
        found.append((start, draw_end(random, theta, start, years), years, x))
    starts, ends, gaps_drawn, covariates = zip(*found, strict=True)
    table = np.array(covariates, float).reshape(n, -1)
    return PlainPairs(np.array(starts), np.array(ends), np.array(gaps_drawn), table, len(beta) + 1)


class DrawnVisits(NamedTuple):
    """Visits of members, in order: member, time, state or rating from 1, covariates (n, p) of the member."""

    member: NDArray[np.int64]
    time: Array
    state: NDArray[np.int64]
    x: Array

    def pair(self, n_states: int) -> PlainPairs:
        """Pairs of visits that follow each other."""
        same = np.flatnonzero(self.member[1:] == self.member[:-1])
        years = self.time[same + 1] - self.time[same]
        return PlainPairs(self.state[same] - 1, self.state[same + 1] - 1, years, self.x[same], n_states)


def draw_visits(
    seed: int,
    members: int,
    beta: Sequence[Sequence[float]],
    gaps: Sequence[float],
    most: int,
    errors: Array | None = None,
    shares: Sequence[float] = (),
) -> DrawnVisits:
    """Visits of members that begin in state 1, 2 to ``most`` each; ``errors`` (K, K): probabilities of ratings.

    ``shares`` are the probabilities that each covariate, 0 or 1, is 1.
    """
    random, found = Random(seed), []
    for member in range(members):
        x = [float(random.random() < share) for share in shares]
        theta = [math.exp(own[0] + math.fsum(b * one for b, one in zip(own[1:], x, strict=True))) for own in beta]
        time, state = 0.0, 0
        for _ in range(random.randint(2, most)):
            rating = state
            if errors is not None:
                rating = int(np.searchsorted(np.cumsum(errors[state]), random.random(), side="right"))
            found.append((member, time, rating + 1, x))
            gap = random.choice(gaps)
            time, state = time + gap, draw_end(random, theta, state, gap)
    member_of, times, states, covariates = zip(*found, strict=True)
    return DrawnVisits(
        np.array(member_of), np.array(times), np.array(states), np.array(covariates, float).reshape(len(times), -1)
    )
