"""Elements of a likelihood of histories, each optional, and their parameters.

    errors         P(rating o | true state s) = E[s, o], multinomial logits of the entries that a pattern allows
    frailty        a factor of all hazards of a bridge, gamma with mean 1 and variance phi
    improvements   small unrecorded work: state k becomes k - 1 with probability rho_k a year
    trend          slope of the log hazards in calendar time, 0 at the last training visit
    first          the true state at the first visit of a history

Parameters stand behind the coefficients, in the order above: logits of errors, phi, logits of improvements,
slopes of the trend per TREND_YEARS, log pi_s - log pi_1 and its slope in standardised age. A logit of minus
infinity is a probability of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from rekka.core.errors import BadOption, bad_option
from rekka.model.clock import CLOCKS, RUNNING

Array = NDArray[np.float64]

ADJACENT, ADJACENT_COMMON = "adjacent", "adjacent-common"
GAMMA = "gamma"
COMMON, EACH = "common", "each"
GIVEN, NEW = "given", "new"
TREND_YEARS = 10.0  # years of one unit of the trend's parameters: log hazards change by about one
LEAST_PHI = 1e-6  # below it the likelihood is linear in phi
SPAN = 30.0  # log of the prior density, relative to its mode, at which the nodes end
LOWEST = -20.0  # least node of log eps: nothing happens to a bridge with a smaller frailty, and it stands for all
NODE_STEP = 0.35  # of log eps: the trapezoid's error is about exp(-pi^2 / step)
LEAST_NODES = 32
LOG_2 = float(np.log(2.0))


class Nodes(NamedTuple):
    """Nodes log eps (N,) and log weights (N,) of the trapezoid rule, and the derivative of the weights in phi.

    The nodes do not move with phi. eps doubles every ``stride`` nodes, so that the kernel can square its matrices.
    """

    log_eps: Array
    log_weight: Array
    d_log_weight: Array
    stride: int


ONE_NODE = Nodes(np.zeros(1), np.zeros(1), np.zeros(1), 1)  # a frailty of 1: none


def place_nodes(phi: float, count: int, span: float = SPAN) -> Nodes:
    """At least ``count`` nodes of log eps over the range of a gamma density of mean 1 and variance phi."""
    low, high = _find_ends(span * phi)
    stride = max(1, int(np.ceil((count - 1) * LOG_2 / (high - low))))
    return _weigh_nodes(phi, low, high, stride)


def place_common_nodes(variances: Array, step: float, most: int) -> list[Nodes]:
    """Nodes of log eps that several variances share, with the weights of each; about ``most`` at most.

    They are ``step`` apart, or 16 over the range of the least variance where that is closer.
    """
    known = np.maximum(variances, LEAST_PHI)
    low, high = _find_ends(SPAN * float(known.max()))
    narrow = np.diff(_find_ends(SPAN * float(known.min())))[0] / (LEAST_NODES / 2)
    stride = int(np.ceil(LOG_2 / max(min(step, narrow), (high - low) / most)))
    return [_weigh_nodes(phi, low, high, stride) for phi in known]


def _weigh_nodes(phi: float, low: float, high: float, stride: int) -> Nodes:
    """Multiples of log 2 / stride from ``low`` to ``high``.

    The first has the weight of all that would lie below it, where the density is e^(u / phi).
    """
    shape = 1.0 / phi
    u = LOG_2 / stride * np.arange(np.floor(low * stride / LOG_2), np.ceil(high * stride / LOG_2) + 1)
    log_density = -shape * _excess(u)
    slope = shape**2 * _excess(u)
    fall = shape * LOG_2 / stride  # of the log density from node to node below the first
    log_density[0] -= np.log(-np.expm1(-fall))
    slope[0] += shape * fall / np.expm1(min(fall, 700.0))
    log_weight = log_density - special.logsumexp(log_density)
    return Nodes(u, log_weight, slope - np.exp(log_weight) @ slope, stride)


def _find_ends(depth: float) -> tuple[float, float]:
    """Least and largest log eps: where e^u - u - 1 is ``depth``, and no less than LOWEST."""

    def rise(u: float) -> float:
        return float(_excess(np.float64(u))) - depth

    low = optimize.brentq(rise, -(depth + 1.0) * (1 + 1e-9), -1e-12, xtol=1e-15)
    return max(low, LOWEST), optimize.brentq(rise, 1e-12, np.sqrt(2.0 * depth) * (1 + 1e-9), xtol=1e-15)


def _excess(u: Any) -> Any:
    """e^u - 1 - u, without cancellation: a small variance multiplies it by the square of its inverse."""
    series = 0.5 * u * u * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * (1 + u / 6 * (1 + u / 7)))))
    return np.where(np.abs(u) < 1e-2, series, np.expm1(u) - u)


def count_nodes(phi: float) -> int:
    """Number of nodes for this variance: NODE_STEP apart, and LEAST_NODES of them where that is more."""
    low, high = _find_ends(SPAN * max(phi, LEAST_PHI))
    return max(LEAST_NODES, int(np.ceil((high - low) / NODE_STEP)))


@dataclass(frozen=True, eq=False)
class Elements:
    """Which elements a likelihood of K states has. Made by ``read_elements``.

    ``pattern`` (K, K) is True where an error is possible, None without errors; ``probabilities`` (K,) are those
    of the first true state where they are given. ``aged`` says that the first state depends on age.
    """

    n_states: int
    pattern: NDArray[np.bool_] | None = None
    common_errors: bool = False
    frailty: bool = False
    improvements: str | None = None
    trend: str | None = None
    first: str = GIVEN
    probabilities: Array | None = None
    aged: bool = False

    @property
    def free_first(self) -> bool:
        """Whether the distribution of the first true state is estimated."""
        return self.pattern is not None and self.first == GIVEN and self.probabilities is None

    @cached_property
    def errors_at(self) -> tuple[tuple[int, int], ...]:
        """State and rating of each logit of errors; those of the first middle state where they are common."""
        if self.pattern is None:
            return ()
        off = self.pattern & ~np.eye(self.n_states, dtype=bool)
        return tuple((int(s), int(o)) for s, o in np.argwhere(off))

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Place of each element's parameters behind the coefficients; an element that is off has none."""
        free = self.n_states - 1
        sizes = {
            "errors": min(2, len(self.errors_at)) if self.common_errors else len(self.errors_at),
            "frailty": int(self.frailty),
            "improvements": {None: 0, COMMON: 1, EACH: free}[self.improvements],
            "trend": {None: 0, COMMON: 1, EACH: free}[self.trend],
            "first": free + self.aged if self.free_first else 0,
        }
        found, place = {}, 0
        for name, size in sizes.items():
            found[name] = slice(place, place + size)
            place += size
        return found

    @property
    def size(self) -> int:
        """Number of parameters behind the coefficients."""
        return int(self.parts["first"].stop)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each parameter, states and ratings from 1."""
        names = [f"errors: state {s + 1} rated {o + 1}" for s, o in self.errors_at]
        if self.common_errors:
            names = ["errors: rated one better", "errors: rated one worse"]
        names += ["frailty: variance"] * self.frailty
        for element, option, where in (
            ("improvements", self.improvements, range(2, self.n_states + 1)),
            ("trend", self.trend, range(1, self.n_states)),
        ):
            names += [element] if option == COMMON else [f"{element}: state {k}" for k in where] if option else []
        if self.free_first:
            names += [f"first visit: state {k}" for k in range(2, self.n_states + 1)]
            names += ["first visit: age, standardised"] * self.aged
        return tuple(names)

    @cached_property
    def logits(self) -> NDArray[np.bool_]:
        """Mask of the parameters that are logits of a probability, which may be 0."""
        found = np.zeros(self.size, dtype=bool)
        found[self.parts["errors"]] = True
        found[self.parts["improvements"]] = True
        found[self.parts["first"]] = True
        if self.aged and self.free_first:
            found[-1] = False
        return found

    def error_matrix(self, extra: Array) -> tuple[Array, Array]:
        """E (K, K), and its derivatives (q, K, K) in the logits of errors."""
        K, logit = self.n_states, extra[self.parts["errors"]]
        matrix, slopes = np.eye(K), np.zeros((logit.size, K, K))
        if not logit.size:
            return matrix, slopes
        if self.common_errors:
            share = _softmax(logit)
            for q, move in enumerate((-1, 1)):
                for s in range(K):
                    if 0 <= s + move < K:
                        matrix[s, s + move] += share[q]
                        matrix[s, s] -= share[q]
                        for r in range(2):
                            change = share[q] * ((q == r) - share[r])
                            slopes[r, s, s + move] += change
                            slopes[r, s, s] -= change
            return matrix, slopes
        state, rating = (np.array(one, dtype=np.int64) for one in zip(*self.errors_at, strict=True))
        table = np.where(matrix > 0, 0.0, -np.inf)
        table[state, rating] = logit
        matrix = special.softmax(table, axis=1)
        share, each = matrix[state, rating], np.arange(logit.size)
        slopes[:, state, rating] = (state == state[:, None]) * share * (np.eye(logit.size) - share[:, None])
        slopes[each, state, state] = -matrix[state, state] * share
        return matrix, slopes

    def improvement_logits(self, extra: Array) -> Array:
        """Logits (K,) of an improvement within a year; minus infinity from state 1."""
        logit = np.full(self.n_states, -np.inf)
        if self.improvements:
            logit[1:] = extra[self.parts["improvements"]]
        return logit

    def slopes(self, extra: Array) -> Array:
        """Slopes (K-1,) of the log hazards per TREND_YEARS."""
        return np.zeros(self.n_states - 1) + (extra[self.parts["trend"]] if self.trend else 0.0)

    def first_logits(self, extra: Array, age: Array) -> Array:
        """Log probabilities (n, K), up to a constant, of the first true state at standardised ages (n,)."""
        part = extra[self.parts["first"]]
        level = np.concatenate([[0.0], part[: self.n_states - 1]])
        slope = part[-1] if self.aged else 0.0
        return level + np.arange(self.n_states) * slope * age[:, None]


def _softmax(logit: Array) -> Array:
    """Probabilities (q,) of outcomes with these logits relative to one more."""
    top = max(0.0, float(logit.max(initial=0.0)))
    weight = np.exp(logit - top)
    return np.asarray(weight / (weight.sum() + np.exp(-top)))


def check_elements(errors: Any, frailty: Any, improvements: Any, trend: Any, clock: Any, first: Any) -> None:
    """Refuse unknown values of the options, before any row is read."""
    if isinstance(errors, str) and errors not in (ADJACENT, ADJACENT_COMMON):
        raise bad_option("errors", errors, ["None", ADJACENT, ADJACENT_COMMON, "a K x K pattern of 0 and 1"])
    for option, value, choices in (
        ("frailty", frailty, (GAMMA,)),
        ("improvements", improvements, (COMMON, EACH)),
        ("trend", trend, (COMMON, EACH)),
    ):
        if value is not None and not (isinstance(value, str) and value in choices):
            raise bad_option(option, value, ["None", *choices])
    if clock not in (*CLOCKS, RUNNING):
        raise bad_option("clock", clock, [*CLOCKS, RUNNING])
    if isinstance(first, str) and first not in (GIVEN, NEW):
        raise bad_option("first", first, [GIVEN, NEW, "K probabilities"])


def read_elements(
    n_states: int,
    *,
    errors: Any = None,
    frailty: Any = None,
    improvements: Any = None,
    trend: Any = None,
    first: Any = GIVEN,
    aged: bool = False,
) -> Elements:
    """Elements of these options for K states; ``aged`` says that there is a covariate that advances."""
    pattern = _read_pattern(errors, n_states)
    given = None if isinstance(first, str) else _read_probabilities(first, n_states)
    return Elements(
        n_states,
        pattern,
        isinstance(errors, str) and errors == ADJACENT_COMMON,
        frailty is not None,
        improvements,
        trend,
        first if isinstance(first, str) else GIVEN,
        given,
        aged and pattern is not None and given is None and first == GIVEN,
    )


def _read_pattern(errors: Any, K: int) -> NDArray[np.bool_] | None:
    if errors is None:
        return None
    if isinstance(errors, str):
        away = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
        return np.asarray(away <= 1)
    pattern = _as_numbers("errors", errors)
    if pattern.shape != (K, K) or not np.isin(pattern, (0.0, 1.0)).all():
        raise BadOption(
            f"errors has shape {pattern.shape}; a pattern of 0 and 1 with a row for each of {K} true states and a "
            f"column for each of {K} ratings is needed, 1 where a state can be rated so.",
            option="errors",
        )
    return np.asarray((pattern > 0) | np.eye(K, dtype=bool))


def _read_probabilities(first: Any, K: int) -> Array:
    given = _as_numbers("first", first)
    if given.shape != (K,) or (given < 0).any() or not np.isclose(given.sum(), 1.0, rtol=0.0, atol=1e-9):
        raise BadOption(
            f"first is {np.array2string(given, threshold=10)}; {K} probabilities that add up to 1 are needed, one "
            f"for each state, or {GIVEN!r} or {NEW!r}.",
            option="first",
        )
    return given


def _as_numbers(option: str, value: Any) -> Array:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadOption(f"{option} is {value!r}; numbers are needed.", option=option) from None
