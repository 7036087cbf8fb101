"""Errors of inspection, frailty and the rest as a fit has found them: what records say of true states.

``Records`` belongs to a fit of histories. ``filter_visits`` follows the true state of each bridge through its
visits: the probability of each rating before it is seen, and the true state and the frailty given all visits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import interpolate, special

from rekka.model.elements import LEAST_PHI, NEW, ONE_NODE, TREND_YEARS, Elements, Nodes, place_nodes
from rekka.model.family import Family
from rekka.model.histories import Histories
from rekka.model.inference import normal_quantile

Array = NDArray[np.float64]

FINER = 16  # points between two nodes at which a posterior density is interpolated, for its quantiles
LEAST_WEIGHT = 1e-300
CHUNK = 2048  # bridges that are followed at once: their nodes and states stay in memory


class ElementEstimate(NamedTuple):
    """A quantity with standard error and interval; these are NaN where it is at a boundary or fixed."""

    name: str
    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Frailties:
    """Frailty of each group given all its visits: mean and the ends of a 95 % interval, (G,) each."""

    groups: tuple[str, ...]
    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Records:
    """Estimates of the elements: parameters ``extra`` (Q,), their covariance (Q, Q), NaN for those at a boundary.

    ``age_units`` are mean and standard deviation of the ages at first visits, ``last`` the date of the last
    training visit as a number (0 without dates), ``date`` the column of dates, ``nodes`` the number of frailty
    nodes, 1 where there is none or its variance is 0. ``cross`` (F, Q) is the covariance of the coefficients, in
    units of ``Inference``, with the parameters; None in files of version 0.10. ``by`` names what a frailty belongs
    to, where the groups had a name. ``earliest`` is the date of the first training visit; before it the trend is
    that of then.
    """

    elements: Elements
    extra: Array
    covariance: Array
    nodes: int
    age_units: tuple[float, float]
    last: float
    date: str | None
    boundaries: tuple[str, ...] = ()
    frailties: Frailties | None = None
    cross: Array | None = None
    by: str | None = None
    earliest: float | None = None

    @cached_property
    def errors(self) -> Array:
        """E (K, K): probability of each rating in each true state; the identity without errors."""
        return self.elements.error_matrix(self.extra)[0]

    @property
    def frailty_variance(self) -> float | None:
        """Variance of the frailty; None without it."""
        return float(self.extra[self.elements.parts["frailty"]][0]) if self.elements.frailty else None

    @property
    def improvements(self) -> Array | None:
        """Probability (K,) of a silent improvement of each state within a year; None without them."""
        if self.elements.improvements is None:
            return None
        return np.asarray(special.expit(self.elements.improvement_logits(self.extra)))

    @property
    def trend(self) -> Array | None:
        """Slope (K-1,) of each log hazard per calendar year; None without a trend."""
        return self.elements.slopes(self.extra) / TREND_YEARS if self.elements.trend else None

    def first(self, age: Array) -> Array:
        """Probabilities (n, K) of the true state at a first visit at these ages (n,)."""
        elements, K = self.elements, self.elements.n_states
        if elements.probabilities is not None:
            return np.broadcast_to(elements.probabilities, (age.size, K))
        mean, sd = self.age_units
        return np.asarray(special.softmax(elements.first_logits(self.extra, (age - mean) / sd), axis=1))

    def place(self) -> Nodes:
        """Frailty nodes; one node of 1 without frailty."""
        variance = self.frailty_variance
        if self.nodes == 1 or variance is None:
            return ONE_NODE
        return place_nodes(max(variance, LEAST_PHI), self.nodes)

    def estimates(self, level: float) -> list[ElementEstimate]:
        """Every parameter in its own terms: probabilities, the variance, slopes a year, logits of the first state.

        Intervals of probabilities are symmetric on the logit scale, that of the variance on the log scale.
        """
        width, parts, names = normal_quantile(level), self.elements.parts, self.elements.names
        _, slopes = self.elements.error_matrix(self.extra)
        error_part = parts["errors"]
        found = []
        for q, name in enumerate(names):
            value, variance, scale = float(self.extra[q]), float(self.covariance[q, q]), 1.0
            if q in range(*error_part.indices(len(names))):
                where = ((1, 0), (0, 1))[q] if self.elements.common_errors else self.elements.errors_at[q]
                gradient = slopes[:, where[0], where[1]]
                block = self.covariance[error_part, error_part]
                known = np.isfinite(np.diag(block))
                value = float(self.errors[where])
                spread = gradient[known] @ block[np.ix_(known, known)] @ gradient[known]
                error = float(np.sqrt(spread)) if known[q] else np.nan
                found.append(_on_logits(name, value, error, width))
            elif q in range(*parts["improvements"].indices(len(names))):
                value = float(special.expit(value))
                found.append(_on_logits(name, value, float(np.sqrt(variance)) * value * (1 - value), width))
            elif q in range(*parts["frailty"].indices(len(names))):
                error = float(np.sqrt(variance))
                wide = float(np.exp(width * error / value)) if value > 0 else np.nan
                found.append(ElementEstimate(name, value, error, value / wide, value * wide))
            else:
                scale = TREND_YEARS if q in range(*parts["trend"].indices(len(names))) else 1.0
                error = float(np.sqrt(variance)) / scale
                value /= scale
                found.append(ElementEstimate(name, value, error, value - width * error, value + width * error))
        return found


def _on_logits(name: str, value: float, error: float, width: float) -> ElementEstimate:
    """An estimated probability with its interval on the logit scale."""
    if not 0 < value < 1 or not np.isfinite(error):
        return ElementEstimate(name, value, np.nan, np.nan, np.nan)
    middle, half = float(special.logit(value)), width * error / (value * (1 - value))
    return ElementEstimate(
        name, value, error, float(special.expit(middle - half)), float(special.expit(middle + half))
    )


class Filtered(NamedTuple):
    """Probabilities given visits, by visit and by history.

    ``ratings`` (V, K) are the probabilities of each visit's rating given the visits of its bridge before it.
    ``posterior`` (H, N, K) is the joint distribution of frailty node and true state at the last visit of each
    history, given all visits of its bridge.
    """

    ratings: Array
    posterior: Array


def filter_visits(
    seen: Histories,
    records: Records,
    theta: Array,
    family: Family,
    nodes: Nodes | None = None,
    unseen: NDArray[np.bool_] | None = None,
) -> Filtered:
    """Follow all bridges through their visits; ``theta`` (S, K-1) are the hazards of the steps at frailty 1.

    A history's first visit is predicted too, where the first state is not given. ``nodes`` of the frailty are
    those of the records by default. The ratings of ``unseen`` visits (V,) are not known, and say nothing.
    """
    K, nodes = records.elements.n_states, records.place() if nodes is None else nodes
    found = Filtered(np.empty((seen.observed.size, K)), np.empty((seen.age.size, nodes.log_eps.size, K)))
    for low in range(0, seen.n_bridges, CHUNK):
        some = np.arange(low, min(low + CHUNK, seen.n_bridges))
        _follow(seen, some, records, nodes, theta, family, found, unseen)
    return found


def _follow(
    seen: Histories,
    bridges: NDArray[np.int64],
    records: Records,
    nodes: Nodes,
    theta: Array,
    family: Family,
    found: Filtered,
    unseen: NDArray[np.bool_] | None,
) -> None:
    """Follow some bridges, visit by visit."""
    elements, E, K = records.elements, records.errors, records.elements.n_states
    eps, weight = np.exp(nodes.log_eps), np.exp(nodes.log_weight)
    rho = records.improvements
    mass = np.broadcast_to(weight, (bridges.size, weight.size)).copy()
    alpha = np.zeros((bridges.size, weight.size, K))
    current = np.zeros(bridges.size, dtype=np.int64)  # history that each bridge is in
    for rank in range(int(np.diff(seen.bridges)[bridges].max())):
        here = np.flatnonzero(seen.bridges[bridges] + rank < seen.bridges[bridges + 1])
        visit = seen.bridges[bridges[here]] + rank
        history = seen.begins[visit]
        new = history >= 0
        current[here[new]] = history[new]
        if elements.first == NEW:
            pi = np.broadcast_to(np.eye(K)[0], (int(new.sum()), K))
        elif elements.pattern is None and elements.probabilities is None:
            pi = np.eye(K)[seen.observed[visit[new]]]
        else:
            pi = records.first(seen.age[history[new]])
        alpha[here[new]] = mass[here[new], :, None] * pi[:, None, :]
        count = seen.steps[visit + 1] - seen.steps[visit]
        for j in range(int(count.max(initial=0))):
            moving = np.flatnonzero(count > j)
            step = seen.steps[visit[moving]] + j
            p = np.ascontiguousarray(alpha[here[moving]])
            hazards = np.ascontiguousarray(theta[step][:, None, :] * eps[:, None])
            h = np.ascontiguousarray(np.broadcast_to(seen.h[step][:, None], p.shape[:2]))
            family.step(p, hazards, h)
            if rho is not None:
                improve(p, rho, h)
            alpha[here[moving]] = p
        found.ratings[visit] = alpha[here].sum(axis=1) @ E
        given = E[:, seen.observed[visit]].T
        if unseen is not None:
            given = np.where(unseen[visit][:, None], 1.0, given)
        joint = alpha[here] * given[:, None, :]
        total = joint.sum(axis=(1, 2))
        never = np.flatnonzero(total == 0.0)  # the rating is taken as the true state where it could not be
        joint[never] = mass[here[never], :, None] * np.eye(K)[seen.observed[visit[never]]][:, None, :]
        total[never] = 1.0
        alpha[here] = joint / total[:, None, None]
        mass[here] = alpha[here].sum(axis=2)
        found.posterior[current[here]] = alpha[here]
    visits = slice(seen.bridges[bridges[0]], seen.bridges[bridges[-1] + 1])
    histories = seen.begins[visits][seen.begins[visits] >= 0]
    own = seen.bridge_of_history[histories] - bridges[0]
    part = found.posterior[histories]  # given the visits up to its last; the node's mass is given all
    before = part.sum(axis=2, keepdims=True)
    share = np.divide(part, before, out=np.zeros_like(part), where=before > 0)
    found.posterior[histories] = share * mass[own][:, :, None]


def improve(p: Array, rho: Array, h: Array | float, until: int | None = None) -> None:
    """Move p (..., K), in place, one state up with probability 1 - (1 - rho_k)^h; rho (..., K) a year.

    With ``until`` only states better than it, 0-based, improve.
    """
    last = p.shape[-1] if until is None else until
    down = p[..., 1:last] * -np.expm1(np.asarray(h)[..., None] * np.log1p(-rho[..., 1:last]))
    p[..., 1:last] -= down
    p[..., : last - 1] += down


def summarise_frailty(names: tuple[str, ...], nodes: Nodes, posterior: Array) -> Frailties:
    """Mean and 95 % interval of each group's frailty from the nodes' weights (G, N) given its visits."""
    mean = posterior @ np.exp(nodes.log_eps)
    if nodes.log_eps.size == 1:
        return Frailties(names, mean, mean, mean)
    fine = np.linspace(nodes.log_eps[0], nodes.log_eps[-1], FINER * (nodes.log_eps.size - 1) + 1)
    logs = np.log(np.maximum(posterior, LEAST_WEIGHT))
    density = np.exp(interpolate.CubicSpline(nodes.log_eps, logs, axis=1)(fine))
    below = np.cumsum(density, axis=1) - 0.5 * density
    below /= density.sum(axis=1, keepdims=True)
    ends = [np.exp([np.interp(share, row, fine) for row in below]) for share in (0.025, 0.975)]
    return Frailties(names, mean, ends[0], ends[1])
