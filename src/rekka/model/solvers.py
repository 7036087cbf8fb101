"""Newton and L-BFGS-B, and the only clock: seconds are the solver call alone.

A solver takes an objective to minimize and a start, and returns where it stopped with an Outcome. It never
raises for an unlucky problem: why it stopped is a value that a person can read.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from rekka.model.likelihood import Evaluation

Array = NDArray[np.float64]

# Half the squared Newton decrement, in log-likelihood units per unit of mean weight, below which one last step is
# taken. That step
# squares the distance, so the point returned is exact to rounding.
DECREMENT_TOLERANCE = 1e-12
# The same relative to the value, which a sum of millions of rows does not know better.
DECREMENT_SHARE = 1e-16
# Relative to the value: where no step improves it and less than this is left to gain, it is down to its rounding
# errors, and the point is the minimum. Sums of 7,000 rows stop 1e-14 of their value short.
ROUNDING = 1e-13
ACCEPT_RATIO = 1e-4
FIRST_RADIUS = 0.5
SMALLEST_RADIUS = 1e-10
BISECTIONS = 60
NEAR_EDGE = 0.9  # a step of this share of the radius is as good as one to its edge
LEVEL = 1e-12  # curvature, relative to the largest, below which a direction is level
START_SPREAD = 0.1  # paper, Definition 3: beta(0) ~ N(0, 0.1^2 I)


class Stop(enum.StrEnum):
    """Reasons for which Newton ends; the value is the sentence that a person reads."""

    CONVERGED = "converged: the Newton decrement is below its tolerance"
    ITERATION_LIMIT = "stopped at the iteration limit before the Newton decrement was small"
    STALLED = "stopped: no step, however short, improves the likelihood"
    NONFINITE = "the likelihood at the start is infinite or undefined"


@dataclass(frozen=True)
class Outcome:
    """Report of a solver on its own run. ``seconds`` is wall-clock time around the one solver call."""

    success: bool
    message: str
    iterations: int
    evaluations: int
    seconds: float
    objective: float


Result = TypeVar("Result")


def timed(run: Callable[[], Result]) -> tuple[Result, float]:
    """Run a solver; its result and its seconds."""
    clock = perf_counter()
    return run(), perf_counter() - clock


class Objective(Protocol):
    """A function to minimize: value, gradient and Hessian (order 2) or value alone (order 0)."""

    def __call__(self, psi: Array, order: int = 2) -> Evaluation:
        """Evaluate at psi."""


def random_start(size: int, seed: int) -> Array:
    """Coefficients (P,) of the paper's start, N(0, 0.1^2), from a generator seeded for every fit."""
    return np.random.default_rng(seed).normal(0.0, START_SPREAD, size)


def newton(objective: Objective, start: Array, max_iter: int, unit: float = 1.0) -> tuple[Array, Outcome]:
    """Trust-region Newton on the exact Hessian.

    1. Evaluate value, gradient g and Hessian H.
    2. Newton step p = -H^-1 g; half its decrement, -g'p / 2, estimates how far the value is from its minimum.
    3. If that is below DECREMENT_TOLERANCE, or DECREMENT_SHARE of the value, take the step and stop.
    4. If H is not positive definite or p is longer than the radius, minimize the quadratic model within it.
    5. Take the step if the value falls as the model says; adapt the radius. Back to 2. Where no step, however
       short, lets it fall: stop, converged if what is left to gain is a rounding error.

    The radius is in standard deviations of the log hazards, because the coordinates are orthonormal. The objective
    is divided by ``unit``, the mean weight of the rows, so that the scale of the weights changes no step.
    """

    def per_unit(psi: Array, order: int = 2) -> Evaluation:
        return objective(psi, order).per(unit)

    clock = perf_counter()
    psi, stop, iterations, evaluations, value = _newton(per_unit, start, max_iter)
    seconds = perf_counter() - clock
    return psi, Outcome(stop is Stop.CONVERGED, stop.value, iterations, evaluations, seconds, value * unit)


def _newton(objective: Objective, psi: Array, max_iter: int) -> tuple[Array, Stop, int, int, float]:
    here = objective(psi)  # 1
    evaluations = 1
    if not _is_finite(here):
        return psi, Stop.NONFINITE, 0, evaluations, here.value
    radius = FIRST_RADIUS
    for iteration in range(1, max_iter + 1):
        newton_step, decrement = solve_newton(here)  # 2
        if decrement <= max(DECREMENT_TOLERANCE, DECREMENT_SHARE * abs(here.value)):  # 3
            last = objective(psi + newton_step)
            # the value is down to its rounding errors here, the gradient is not
            if _is_finite(last) and np.linalg.norm(last.gradient) <= np.linalg.norm(here.gradient):
                psi, here = psi + newton_step, last
            return psi, Stop.CONVERGED, iteration, evaluations + 1, here.value
        while True:
            step = newton_step
            if not np.isfinite(decrement) or np.linalg.norm(step) > radius:  # 4
                step = step_within(here, radius)
            there = objective(psi + step)
            evaluations += 1
            ratio = _gain_ratio(here, there, step)
            if ratio > ACCEPT_RATIO:  # 5
                break
            radius = 0.25 * min(radius, float(np.linalg.norm(step)))
            if radius < SMALLEST_RADIUS:
                rounded = decrement <= ROUNDING * (1.0 + abs(here.value))
                stop = Stop.CONVERGED if rounded else Stop.STALLED
                return psi, stop, iteration, evaluations, here.value
        if ratio < 0.25:
            radius = 0.5 * float(np.linalg.norm(step))
        elif ratio > 0.75:
            radius = max(radius, 2.0 * float(np.linalg.norm(step)))
        psi, here = psi + step, there
    return psi, Stop.ITERATION_LIMIT, max_iter, evaluations, here.value


def _is_finite(here: Evaluation) -> bool:
    """Whether value, gradient and Hessian all are; a sum is finite only if its terms are."""
    return math.isfinite(here.value + float(here.gradient.sum()) + float(here.hessian.sum()))


def _noise(here: Evaluation) -> float:
    """Largest change of the value by rounding alone."""
    return 10.0 * float(np.finfo(float).eps) * max(1.0, abs(here.value))


def _gain_ratio(here: Evaluation, there: Evaluation, step: Array) -> float:
    """The gain as a share of what the quadratic model promised; negative for a step not to take.

    Close to the minimum both are rounding errors, which count as a gain as promised.
    """
    noise = _noise(here)
    promised = -float(here.gradient @ step + 0.5 * step @ here.hessian @ step)
    if not _is_finite(there) or promised <= 0.0 or there.value > here.value + noise:
        return -1.0
    return (here.value - there.value + noise) / (promised + noise)


def solve_newton(here: Evaluation) -> tuple[Array, float]:
    """-H^-1 g and half the squared Newton decrement, 1/2 g' H^-1 g; infinite where H has negative curvature.

    Directions in which the value does not change at all, a state that no row was ever in, are left alone.
    """
    factor, indefinite = linalg.lapack.dpotrf(here.hessian)  # cho_factor takes longer than its own work
    if not indefinite:
        step: Array = -linalg.lapack.dpotrs(factor, here.gradient)[0]
    else:
        values, vectors = np.linalg.eigh(here.hessian)
        pull = vectors.T @ here.gradient
        level = np.abs(values) <= LEVEL * np.abs(values).max(initial=0.0)
        if (values[~level] < 0.0).any() or (np.abs(pull[level]) > LEVEL * max(1.0, abs(here.value))).any():
            return np.zeros_like(here.gradient), np.inf
        step = -vectors[:, ~level] @ (pull[~level] / values[~level])
    return step, -0.5 * float(here.gradient @ step)


def step_within(here: Evaluation, radius: float) -> Array:
    """The minimum of the quadratic model in a ball, from the eigenvalues of H (More and Sorensen 1983).

    The step is -(H + shift)^-1 g with the shift that makes it about as long as the radius, found by bisection;
    where even the smallest shift leaves it shorter, it is lengthened along the direction of negative curvature.
    """
    values, vectors = np.linalg.eigh(here.hessian)
    pull = vectors.T @ here.gradient
    largest = max(1.0, float(np.abs(values).max()))
    low = max(0.0, -float(values[0])) + 1e-12 * largest
    high = low + float(np.linalg.norm(pull)) / radius + largest

    def length(shift: float) -> float:
        return float(np.linalg.norm(pull / (values + shift)))

    shift = low
    short = length(low) <= radius
    if not short:
        for _ in range(BISECTIONS):
            shift = math.sqrt(low * high)
            long = length(shift)
            if NEAR_EDGE * radius <= long <= radius:
                break
            low, high = (shift, high) if long > radius else (low, shift)
    step = -vectors @ (pull / (values + shift))
    if short and values[0] < 0.0:
        step = step + vectors[:, 0] * math.sqrt(max(0.0, radius**2 - float(step @ step)))
    return np.asarray(step)


def lbfgs(
    function: Callable[[Array], float] | Callable[[Array], tuple[float, Array]],
    start: Array,
    max_iter: int,
    *,
    with_gradient: bool,
    unit: float = 1.0,
) -> tuple[Array, Outcome]:
    """SciPy's L-BFGS-B as the paper runs it; a function without a gradient gets two-point differences.

    The function is divided by ``unit``, the mean weight of the rows: SciPy's tolerances are absolute.
    """

    def per_unit(psi: Array) -> Any:
        found = function(psi)
        return (found[0] / unit, found[1] / unit) if isinstance(found, tuple) else found / unit

    options = {"maxiter": max_iter, "maxfun": max(15000, 100 * max_iter * (start.size + 1))}
    with np.errstate(all="ignore"):  # the paper's closed form overflows on its way; its result is judged after
        clock = perf_counter()
        result = optimize.minimize(
            function if unit == 1.0 else per_unit,
            start,
            jac=True if with_gradient else "2-point",
            method="L-BFGS-B",
            options=options,
        )
        seconds = perf_counter() - clock
    message = result.message if isinstance(result.message, str) else result.message.decode()
    value = float(result.fun) * unit
    outcome = Outcome(bool(result.success), message, int(result.nit), int(result.nfev), seconds, value)
    return np.asarray(result.x), outcome
