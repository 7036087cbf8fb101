"""Hazard families: all that a model assumes of its hazards, in one place.

    predictors eta = X beta' (n, K-1)  ->  hazards theta (n, K-1)  ->  probabilities, steps, years, draws

A family owns five things, and nothing outside ``model/`` does any of them itself:

    link    hazards and log hazards of predictors, their derivatives, and the way back
    pairs   log-probability of rows seen twice, its gradient and Hessian in the coefficients
    step    state probabilities carried over years of constant hazards, their integral and derivatives
    years   mean and median years in a state, years left until a state, when a quantile is reached
    draws   end states of intervals, and the moves of members that live through them

``Family`` does all but the link, for a pure-birth chain whose hazards are constant during a step: such a family is
three methods. A family with a step of its own overrides the methods of pairs, step, years and draws too.
``Exponential`` is the model of the paper, and has compiled code for its pairs.

What rekka relies on: predictors are linear in the covariates, and the first column of X is that of the intercept;
the hazard of a state depends on its own predictor and rises with it, from 0 to infinity; a hazard of 0 means that
a state is never left; the last state is absorbing. States are 0-based.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import bad_option
from rekka.model import kernel, probabilities
from rekka.model.probabilities import row_probabilities, transition_probabilities

Array = NDArray[np.float64]
States = NDArray[np.int64]

FASTEST = 1e8  # a year: who leaves a state at a higher hazard is gone within a second, and goes at this


class PairRows(NamedTuple):
    """Rows as the pair likelihood takes them: X is (p+1, n); rows of one start and end follow each other."""

    X: Array
    dt: Array
    log_dt: Array
    start: States
    end: States
    weight: Array


@dataclass(frozen=True)
class Family(ABC):
    """A pure-birth chain with hazards that are constant during a step, of any link."""

    name: str
    # Whether one unit more of a covariate multiplies a hazard by the same factor wherever the others are.
    proportional: ClassVar[bool] = False

    # Link

    @abstractmethod
    def log_hazards(self, eta: Array) -> Array:
        """Logarithms of the hazards at predictors of any shape."""

    @abstractmethod
    def predictors(self, log_hazards: Array) -> Array:
        """Predictors at which the log hazards are these."""

    @abstractmethod
    def bend(self, eta: Array) -> tuple[Array, Array]:
        """First and second derivative of each log hazard in its own predictor."""

    def from_rates(self, log_rates: Array) -> Array:
        """Predictors at which states are left at about these rates a year: starts, and centres of penalties."""
        return self.predictors(log_rates)

    def hazards(self, eta: Array) -> Array:
        """Hazards per year at predictors of any shape."""
        return np.asarray(np.exp(self.log_hazards(eta)))

    def step_hazards(self, eta: Array) -> Array:
        """Hazards per year as steps take them: none above FASTEST."""
        with np.errstate(over="ignore"):  # what is infinite is fast enough
            return np.asarray(np.minimum(self.hazards(eta), FASTEST))

    def log_ratios(self, before: Array, after: Array, coefficients: Array) -> Array:
        """Log ratios (..., K-1) of hazards at two design rows (p+1,), for coefficients (..., K-1, p+1)."""
        if self.proportional:
            return np.asarray(np.einsum("c,...kc->...k", after - before, coefficients))
        there, here = (self.log_hazards(coefficients @ row) for row in (after, before))
        return np.asarray(there - here)

    def ratios(self, before: Array, after: Array, coefficients: Array) -> Array:
        """The ratios themselves."""
        return np.asarray(np.exp(self.log_ratios(before, after, coefficients)))

    # Pairs

    def add_pairs(
        self, rows: PairRows, beta: Array, lo: int, hi: int, order: int, gradient: Array, hessian: Array
    ) -> float:
        """Weighted log-likelihood of rows lo..hi-1 at beta (K-1, p+1).

        The gradient (K-1, p+1) is added to with order 1, the upper triangle of the Hessian too with order 2.
        """
        value, slope, curve = self.differentiate(rows, beta, lo, hi)
        X, weight = rows.X[:, lo:hi], rows.weight[lo:hi]
        if order > 0:
            gradient += (slope * weight[:, None]).T @ X.T
        if order > 1:
            whole = np.einsum("rms,ur,vr->musv", curve * weight[:, None, None], X, X, optimize=True)
            hessian += np.triu(whole.reshape(hessian.shape))
        return float(weight @ value)

    def score_pairs(self, rows: PairRows, beta: Array, lo: int, hi: int, value: Array, slope: Array) -> None:
        """Fill in log-probability (n,) and slope in the predictors (K-1, n) of rows lo..hi-1, without weights."""
        value[lo:hi], found, _ = self.differentiate(rows, beta, lo, hi)
        slope[:, lo:hi] = found.T

    def differentiate(self, rows: PairRows, beta: Array, lo: int, hi: int) -> tuple[Array, Array, Array]:
        """Log-probability (m,), slope (m, K-1) and curvature (m, K-1, K-1) in the predictors: the chain rule."""
        eta = rows.X[:, lo:hi].T @ beta.T
        slope, curve = np.empty(eta.shape), np.empty((*eta.shape, eta.shape[1]))
        value = kernel.log_probability_rows(
            np.ascontiguousarray(self.log_hazards(eta)), rows.dt[lo:hi], rows.start[lo:hi], rows.end[lo:hi], 2,
            slope, curve,
        )  # fmt: skip
        first, second = self.bend(eta)
        curve *= first[:, :, None] * first[:, None, :]
        curve[:, np.arange(eta.shape[1]), np.arange(eta.shape[1])] += slope * second
        return value, slope * first, curve

    def end_probabilities(self, eta: Array, dt: Array, start: States) -> Array:
        """Probabilities (n, K) of each row's end state; fastest where rows of one start follow each other."""
        years = dt[:, None]
        with np.errstate(over="ignore"):  # a fit gone wrong predicts too
            return row_probabilities(self.hazards(eta) * years, self.log_hazards(eta) + np.log(years), start)

    def matrices(self, theta: Array, years: Array) -> Array:
        """Transition matrices (..., K, K) over so many years (...) of constant hazards theta (..., K-1)."""
        return transition_probabilities(theta, years)

    # Step

    def step(self, p: Array, theta: Array, h: Array | float) -> None:
        """Carry state probabilities p (..., K) over h years, in place; theta (..., K-1), h a number or (...)."""
        probabilities.step(p, theta, h)

    def step_integrated(self, p: Array, theta: Array, h: Array | float, years: Array) -> None:
        """Carry p as ``step`` does, and add the expected years in each state to ``years`` (..., K)."""
        probabilities.step_integrated(p, theta, h, years)

    def step_sloped(self, p: Array, slope: Array, theta: Array, h: Array | float, drive: Array) -> None:
        """Carry p (n, K) and its slope (n, K-1, D, K) = d p / d beta_kd, drive (n, D) = d eta_k / d beta_kd."""
        first, _ = self.bend(self.predictors(_log(theta)))
        push = np.zeros((*theta.shape, 1, p.shape[1]))  # d p / d log theta_k of this step alone
        length = np.broadcast_to(h, p.shape[:1])
        probabilities.step(slope, np.broadcast_to(theta[:, None, None], (*slope.shape[:-1], theta.shape[1])),
                   np.broadcast_to(length[:, None, None], slope.shape[:-1]))  # fmt: skip
        probabilities.step_sloped(p, push, theta, h, np.ones((len(p), 1)))
        slope += (first[:, :, None] * drive[:, None, :])[..., None] * push

    # Years

    def mean_years(self, theta: Array) -> Array:
        """Mean years until a state is left, at constant hazards of any shape."""
        return np.asarray(1.0 / theta)

    def median_years(self, theta: Array) -> Array:
        """Years by which half of the members have left a state, at constant hazards of any shape."""
        return np.asarray(math.log(2) / theta)

    def years_left(self, p: Array, theta: Array, state: int) -> Array:
        """The mean years (...) left until ``state`` at constant hazards, for who is there by p (..., K)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            each = self.mean_years(theta[..., :state])
            still = np.cumsum(each[..., ::-1], axis=-1)[..., ::-1]  # years to go from each state
            return np.asarray(np.where(p[..., :state] > 0.0, p[..., :state] * still, 0.0).sum(axis=-1))

    def cross(self, p: Array, theta: Array, h: Array, state: int, target: float) -> Array:
        """When (n,) in a step of h (n,) years P(``state`` or worse) reaches ``target``; p (n, K)."""
        return probabilities.cross(p, theta, h, state, target)

    # Draws

    def draw_ends(self, theta: Array, dt: Array, start: States, u: Array) -> States:
        """End states (n,) of intervals of dt (n,) years, from uniform numbers u (n,)."""
        a = theta * dt[:, None]
        return pick_ends(row_probabilities(a, np.log(a), start), u)

    def live_through(self, theta: Array, state: States, left: Array, budget: Array, years: Array) -> None:
        """Move members through ``years`` (...) of constant hazards, in place: all moves that there is time for.

        ``state`` (...) is where they are, ``budget`` (..., K) what they can bear in each state and ``left`` (...)
        what is left of it: a member leaves when the hazard, added up since it came, is as much. With exponential
        budgets of mean 1 that is the process itself. Here theta (..., K) has the last state's hazard, 0, too.
        """
        hazard = np.take_along_axis(theta, state[..., None], axis=-1)[..., 0]
        left -= hazard * years
        moving = np.nonzero(left < 0.0)
        over = -left[moving] / hazard[moving]  # years since it left
        while over.size:
            state[moving] += 1
            there = (*moving, state[moving])
            hazards = theta[there]
            rest = budget[there] - hazards * over
            left[moving] = rest
            goes_on = rest < 0.0
            over = -rest[goes_on] / hazards[goes_on]
            moving = tuple(axis[goes_on] for axis in moving)


@final
@dataclass(frozen=True)
class Exponential(Family):
    """Log-linear hazards, theta = exp(eta): the model of the paper. Its pairs are compiled, link and all."""

    name: str = "exponential"
    proportional: ClassVar[bool] = True

    def log_hazards(self, eta: Array) -> Array:
        """Predictors are the log hazards."""
        return eta

    def predictors(self, log_hazards: Array) -> Array:
        """The log hazards themselves."""
        return log_hazards

    def bend(self, eta: Array) -> tuple[Array, Array]:
        """One and zero everywhere."""
        return np.ones_like(eta), np.zeros_like(eta)

    def add_pairs(
        self, rows: PairRows, beta: Array, lo: int, hi: int, order: int, gradient: Array, hessian: Array
    ) -> float:
        """The fused kernel."""
        X, dt, log_dt, start, end, weight = rows
        return float(kernel.sum_block(X, dt, log_dt, start, end, weight, beta, lo, hi, order, gradient, hessian))

    def score_pairs(self, rows: PairRows, beta: Array, lo: int, hi: int, value: Array, slope: Array) -> None:
        """The fused kernel."""
        X, dt, log_dt, start, end, _ = rows
        kernel.rows_block(X, dt, log_dt, start, end, beta, lo, hi, 1, value, slope)

    def step_sloped(self, p: Array, slope: Array, theta: Array, h: Array | float, drive: Array) -> None:
        """Carry both at once: the predictors are the log hazards."""
        probabilities.step_sloped(p, slope, theta, h, drive)


EXPONENTIAL: Final = Exponential()
FAMILIES: dict[str, Family] = {EXPONENTIAL.name: EXPONENTIAL}


def register(family: Family) -> Family:
    """Make a family known by its name, to options and to model files."""
    FAMILIES[family.name] = family
    return family


def find_family(name: str) -> Family:
    """The family of this name."""
    if name not in FAMILIES:
        raise bad_option("family", name, list(FAMILIES))
    return FAMILIES[name]


def pick_ends(p: Array, u: Array) -> States:
    """The first state (n,) at which the cumulative probability, of p (n, K), is above u (n,)."""
    beyond = (p.cumsum(axis=1) <= u[:, None]).sum(axis=1)  # <=: a state of probability 0 is never drawn
    return np.asarray(np.minimum(beyond, p.shape[1] - 1), dtype=np.int64)  # the sum of p may round to just below 1


def _log(values: Array) -> Array:
    """Logarithms; minus infinity of 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))
