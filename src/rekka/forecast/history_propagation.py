"""Propagation of members with a history: errors of inspection, frailty, silent improvements, a frozen trend.

A member starts from the joint distribution of its true state and its frailty, given all visits of its bridge
(``Past``): one lane for each node of the frailty, with hazards eps times those of frailty 1. Without a past it
starts from a known true state, with frailty 1: matrices, years in a rating and effects are those of a typical
bridge.

p is the distribution of the true state. What an inspector will record is p E (``record``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rekka.forecast.ageing import Ageing
from rekka.forecast.propagation import YEAR, Mask, Places, Propagator, States
from rekka.forecast.uncertainty import Uncertainty
from rekka.model.clock import Clock
from rekka.model.elements import ONE_NODE, Nodes, place_common_nodes
from rekka.model.fit import Fit
from rekka.model.histories import Chain, Histories, chain_rows, order_rows
from rekka.model.records import Records, improve

Array = NDArray[np.float64]

NODE_STEP = 0.5  # of log eps, at most: where bridges have many visits the fit has needed closer nodes
MOST_NODES = 96  # about, of a set of parameters; or as many as the fit has needed


class Past(NamedTuple):
    """Visits of members up to now: the history (n,) that each member is in, and its last visit (n,) as a year.

    Without dates, or where the model has no trend, the years are None.
    """

    seen: Histories
    history: NDArray[np.int64]
    visited: Array | None

    def take(self, members: NDArray[Any]) -> Past:
        """Past of some of the members, each as often as it is named."""
        return Past(self.seen, self.history[members], None if self.visited is None else self.visited[members])


class Renewal(NamedTuple):
    """Members (n,) repaired at time 0: their true states, 0-based, or -1 of the others; and their frailties.

    A frailty is NaN where a member keeps that of its bridge.
    """

    state: States
    frailty: Array


def chain_past(fit: Fit, rows: Chain, member: NDArray[np.int64]) -> Past:
    """Past of members whose last history is ``member`` (n,), numbers of histories of the rows."""
    records = fit.records
    assert records is not None  # a fit of histories
    seen = chain_rows(rows, records.elements, fit.clock, (records.earliest, records.last))
    first = seen.row[seen.begins >= 0]  # a row of each history, in the order of the kernel
    place = np.full(int(rows.history.max()) + 1, -1, dtype=np.int64)
    place[rows.history[first]] = np.arange(first.size)
    if records.trend is None or rows.date is None:
        return Past(seen, place[member], None)
    ends = np.full(place.size, -np.inf)
    np.maximum.at(ends, rows.history, rows.date + rows.years)
    return Past(seen, place[member], ends[member])


class HistoryEnds(NamedTuple):
    """Last visit of each history, in the order in which they appear: rating (m,) 0-based, covariates (m, p)."""

    history: NDArray[np.int64]
    state: States
    x: Array


def find_ends(rows: Chain, clock: Clock) -> HistoryEnds:
    """Find the last visit of each history, with the covariates that advance by then."""
    ordered = order_rows(rows)
    _, last = np.unique(rows.history[ordered][::-1], return_index=True)
    at = ordered[ordered.size - 1 - last]  # last row of each history, by its number
    _, first = np.unique(rows.history, return_index=True)
    at = at[np.argsort(first)]
    alone = rows.end[at] < 0
    x = rows.x[at].copy()
    for column in clock.columns:
        x[:, column] += rows.years[at]
    return HistoryEnds(rows.history[at], np.where(alone, rows.start[at], rows.end[at]), x)


def see_once(fit: Fit, start: States, x: Array, date: Array | None = None) -> Past:
    """Past of members that were rated once, in states ``start`` (n,), 0-based, at covariates x (n, p)."""
    alone = np.arange(start.size)
    nothing = np.full(start.size, -1)
    rows = Chain(start, nothing, np.full(start.size, np.nan), x, alone, alone, date)
    return chain_past(fit, rows, alone)


@dataclass(frozen=True, eq=False)
class HistoryPropagator(Propagator):
    """Members of a model of histories; ``extra`` (B, Q) are the sets of the elements' parameters.

    ``improving`` says whether silent improvements go on as before. ``since`` (n,) are the years from the last
    training visit to each member's own, at most 0: up to 0 the trend goes on. Members of a ``renewal`` start in a
    true state that is known, with the frailty that the past of their bridge says, or that is given.
    """

    extra: Array
    past: Past | None
    improving: bool = True
    since: Array | None = None
    renewal: Renewal | None = None

    @cached_property
    def records(self) -> list[Records]:
        """Records of each set."""
        own = self.fit.records
        assert own is not None  # a fit of histories
        return [replace(own, extra=extra) for extra in self.extra]

    @cached_property
    def _nodes(self) -> list[Nodes]:
        """Nodes of the frailty, the same for all sets, with the weights of each."""
        if self.past is None or self.records[0].nodes == 1:
            return [ONE_NODE] * len(self.records)
        variances = np.array([records.frailty_variance or 0.0 for records in self.records])
        fitted = self.fit.records.place().log_eps if self.fit.records is not None else np.zeros(2)
        step = min(NODE_STEP, float(fitted[1] - fitted[0]))
        return place_common_nodes(variances, step, max(MOST_NODES, fitted.size))

    @cached_property
    def _eps(self) -> Array:
        """Frailties (B, N) of the nodes."""
        return np.exp(np.stack([nodes.log_eps for nodes in self._nodes]))

    @cached_property
    def _rho(self) -> Array | None:
        """Probability (B, 1, K) of an improvement within a year; None without any."""
        found = [records.improvements for records in self.records]
        if not self.improving or any(one is None for one in found):
            return None
        return np.stack([one for one in found if one is not None])[:, None, :]

    @property
    def lanes(self) -> int:
        """Nodes of the frailty."""
        return int(self._eps.shape[1])

    @property
    def yearly(self) -> bool:
        """Whether covariates move, improvements happen, or the trend goes on for a while."""
        return self.ageing.moves or self._rho is not None or self.since is not None

    def take_sets(self, sets: slice) -> Self:
        """Propagator with some of the sets of coefficients."""
        return replace(self, coefficients=self.coefficients[sets], extra=self.extra[sets])

    def take_members(self, rows: Mask | NDArray[np.intp]) -> Self:
        """Propagator of some members that are on their way, each as often as it is named."""
        since, renewal = self.since, self.renewal
        return self._keep(
            replace(
                self,
                x=self.x[rows],
                since=None if since is None else since[rows],
                renewal=None if renewal is None else Renewal(renewal.state[rows], renewal.frailty[rows]),
            )
        )

    def _keep(self, found: Self) -> Self:
        """Hand on what is the same for all members."""
        found.__dict__.update({name: self.__dict__[name] for name in KEPT if name in self.__dict__})
        return found

    def predictors(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Predictors (B, n, K-1) at frailty 1, with the trend up to the last training visit."""
        eta = super().predictors(elapsed, years)
        if self.since is not None:
            slopes = np.stack([records.trend for records in self.records if records.trend is not None])
            time = np.minimum(self.since + elapsed + 0.5 * np.asarray(years), 0.0)
            eta = eta + time[:, None] * slopes[:, None, :]
        return np.asarray(eta)

    def typical_hazards(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Hazards a year (B, n, K-1) at frailty 1 in a step of so many years that begins after ``elapsed``."""
        return super().hazards(elapsed, years)

    def hazards(self, elapsed: Array | float, years: Array | float = 0.0) -> Array:
        """Hazards a year (B, lanes, K-1) in a step of so many years that begins after ``elapsed``."""
        theta = self.typical_hazards(elapsed, years)
        B, _, free = theta.shape
        eps = self._eps[:, None, :, None]
        if self.renewal is not None:
            given = self.renewal.frailty[None, :, None, None]
            eps = np.where(np.isnan(given), eps, given)
        return np.ascontiguousarray((theta[:, :, None, :] * eps).reshape(B, -1, free))

    def start_in(self, start: States) -> Array:
        """Lanes (B, L, K) of members given their past; in states ``start`` (n,), 0-based, without one."""
        if self.past is None:
            return super().start_in(start)
        seen, found = self.past.seen, []
        design = self.fit.design(seen.x)
        for coefficients, records, nodes in zip(self.coefficients, self.records, self._nodes, strict=True):
            posterior = self.fit.filter(seen, records, design @ coefficients.T, nodes).posterior
            joint = posterior[self.past.history]
            if self.renewal is not None:
                new = np.flatnonzero(self.renewal.state >= 0)
                weight = joint[new].sum(axis=2)  # of each node, given all visits of the bridge
                joint[new] = 0.0
                joint[new, :, self.renewal.state[new]] = weight
            found.append(joint.reshape(-1, self.fit.n_states))
        return np.stack(found)

    def draw_start(self, repeats: int, rng: np.random.Generator) -> tuple[Array, States]:
        """Draw frailties and true states (R, B, n) of members; those of one bridge have one frailty."""
        assert self.past is not None  # members are drawn given their visits
        joint = self.start_in(np.empty(0, np.int64)).reshape(len(self.extra), -1, self.lanes, self.fit.n_states)
        bridge = self.past.seen.bridge_of_history[self.past.history]
        _, first, own = np.unique(bridge, return_index=True, return_inverse=True)
        below = joint[:, first].sum(axis=3).cumsum(axis=2)
        u = rng.random((repeats, *below.shape[:2], 1)) * below[..., -1:]
        node = np.minimum((below <= u).sum(axis=3), self.lanes - 1)[:, :, own]
        given = np.take_along_axis(joint[None], node[..., None, None], axis=3)[..., 0, :].cumsum(axis=3)
        u = rng.random((*node.shape, 1)) * given[..., -1:]
        state = np.minimum((given <= u).sum(axis=3), self.fit.n_states - 1)
        return np.take_along_axis(self._eps[None], node, axis=2), state

    def draw_improvements(self, state: States, h: Array, rng: np.random.Generator) -> None:
        """Improve states (R, B, n), in place, as at the end of steps of h (n,) years."""
        if self._rho is None:
            return
        rho = self._rho[:, 0][np.arange(len(self._rho))[None, :, None], state]
        state -= rng.random(state.shape) < -np.expm1(h * np.log1p(-rho))

    def draw_ratings(self, state: States, rng: np.random.Generator) -> States:
        """Draw the ratings (R, B, n) that inspectors record of true states."""
        below = np.stack([records.errors for records in self.records]).cumsum(axis=2)
        own = below[np.arange(len(below))[None, :, None], state]
        beyond = (own <= rng.random((*state.shape, 1))).sum(axis=3)
        return np.asarray(np.minimum(beyond, self.fit.n_states - 1), dtype=np.int64)

    def step(self, p: Array, theta: Array, h: Array | float) -> None:
        """Carry p (B, lanes, K) over h years, a number or (n,), in place."""
        years = h if np.ndim(h) == 0 else np.repeat(np.asarray(h), self.lanes)
        self.family.step(p, theta, years)
        if self._rho is not None:
            improve(p, self._rho, years)

    def step_until(self, p: Array, theta: Array, h: float, state: int, years: Array) -> None:
        """Carry p as ``step`` does, and add the years in each state; who reaches ``state`` stays there."""
        self.family.step_integrated(p, theta, h, years)
        if self._rho is not None:
            improve(p, self._rho, h, state)

    def years_left(self, p: Array, theta: Array, state: int) -> Array:
        """Mean years (B, lanes) left until ``state`` if all years are like this one."""
        if self._rho is None:
            return super().years_left(p, theta, state)
        once, there, years = self._pass_year(theta, self._rho[:, :, None, :], state)
        still = solve_passage(once, there, years)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(p[..., :state] > 0.0, p[..., :state] * still, 0.0).sum(axis=-1))

    def _pass_year(self, theta: Array, rho: Array, state: int) -> tuple[Array, Array, Array]:
        """Matrix (..., s, s) of a year among the states better than ``state``.

        Also probabilities (..., s) of reaching it within the year, and years (..., s) spent before.
        """
        shape = (*theta.shape[:-1], state)
        p = np.broadcast_to(np.eye(self.fit.n_states)[:state], (*shape, self.fit.n_states)).copy()
        hazards = np.broadcast_to(theta[..., None, :], (*shape, theta.shape[-1])).copy()
        years = np.zeros_like(p)
        self.family.step_integrated(p, hazards, YEAR, years)
        improve(p, rho, YEAR, state)
        return p[..., :state], p[..., state:].sum(axis=-1), years[..., :state].sum(axis=-1)

    def reach(self, sets: Places, p: Array, theta: Array, t: Array, state: int) -> Array:
        """Probability (r,) of ``state`` or worse after t (r,) years like this one, for lanes p (r, lanes, K)."""
        if self._rho is None:
            years = np.broadcast_to(t[:, None], p.shape[:2])
            after = np.einsum("rlj,rljk->rlk", p, self.family.matrices(theta, years))
            return np.asarray(after[..., state:].sum(axis=(1, 2)))
        once = self._pass_year(theta, self._rho[sets][:, :, None, :], state)[0]
        here = p.copy()
        whole = np.floor(t).astype(np.int64)
        left = whole.copy()
        while left.any():  # years by repeated squaring
            odd = (left & 1) == 1
            here[odd, :, :state] = np.einsum("rlj,rljk->rlk", here[odd, :, :state], once[odd])
            once, left = once @ once, left >> 1
        here[..., state:] = 0.0
        self.family.step(here, theta, np.repeat((t - whole)[:, None], here.shape[1], axis=1))
        return np.asarray(1.0 - here[..., :state].sum(axis=(1, 2)))

    def gather(self, values: Array) -> Array:
        """Values (B, n, ...) of members from those of their lanes (B, lanes, ...), added up."""
        if self.lanes == 1:
            return values
        return np.asarray(values.reshape(len(values), -1, self.lanes, *values.shape[2:]).sum(axis=2))

    @property
    def until_now(self) -> Propagator:
        """Propagator from the last visits to time 0, up to which silent improvements happened in any case."""
        return self if self.improving else replace(self, improving=True)

    @property
    def sharing(self) -> NDArray[np.int64] | None:
        """Number (n,) of the bridge that each member shares a frailty with; None without frailty."""
        if self.past is None or self.lanes == 1:
            return None
        return np.asarray(self.past.seen.bridge_of_history[self.past.history])

    @property
    def errs(self) -> bool:
        """Whether inspectors err, so that records differ from the true state."""
        return self.records[0].elements.pattern is not None

    def record(self, p: Array) -> Array:
        """Probabilities (B, ..., K) of the rating that an inspector records, for true states p (B, ..., K)."""
        errors = np.stack([records.errors for records in self.records])
        return np.asarray(np.einsum("b...k,bko->b...o", p, errors))


KEPT = ("records", "_nodes", "_eps", "_rho")  # the same for all members


def solve_passage(once: Array, there: Array, years: Array) -> Array:
    """Mean years (..., s) until passage, from each of s states, if all years are alike.

    ``once`` (..., s, s) are probabilities of a year among the states, ``there`` (..., s) of passage within it,
    ``years`` (..., s) spent in it before passage. States are eliminated without a subtraction (Grassmann, Taksar
    and Heyman 1985), so that passages which take a million years keep their digits; infinite where there is none.
    """
    once, there, years = once.copy(), there.copy(), years.copy()
    size = years.shape[-1]
    leave = np.empty_like(years)
    with np.errstate(divide="ignore", invalid="ignore"):
        for s in range(size - 1, -1, -1):
            leave[..., s] = there[..., s] + once[..., s, :s].sum(axis=-1)
            share = np.where(leave[..., s, None] > 0.0, once[..., :s, s] / leave[..., s, None], np.inf)
            share = np.where(once[..., :s, s] > 0.0, share, 0.0)
            once[..., :s, :s] += _times(share[..., None], once[..., s, None, :s])
            there[..., :s] += _times(share, there[..., s, None])
            years[..., :s] += _times(share, years[..., s, None])
        found = np.empty_like(years)
        for s in range(size):
            before = _times(once[..., s, :s], found[..., :s]).sum(axis=-1)
            found[..., s] = np.where(leave[..., s] > 0.0, (years[..., s] + before) / leave[..., s], np.inf)
    return found


def _times(one: Array, other: Array) -> Array:
    """Products in which 0 times infinity is 0."""
    return np.asarray(np.where((one == 0.0) | (other == 0.0), 0.0, one * other))


def make_propagator(
    fit: Fit,
    x: Array,
    uncertainty: Uncertainty,
    ageing: Ageing,
    past: Past | None = None,
    *,
    improving: bool = True,
    renewal: Renewal | None = None,
) -> Propagator:
    """Propagator of members with covariates x (n, p) at every set of parameters, by the kind of the fit.

    A model of pairs starts from the states that it is given, so that it needs no ``renewal``.
    """
    if fit.records is None:
        return Propagator(fit, x, uncertainty.coefficients, ageing)
    assert uncertainty.extra is not None  # those of a fit of histories
    since = None
    if past is not None and past.visited is not None:
        early = np.minimum(past.visited - fit.records.last, 0.0)
        since = early if (early < 0.0).any() else None
    return HistoryPropagator(
        fit,
        x,
        uncertainty.coefficients,
        ageing,
        extra=uncertainty.extra,
        past=past,
        improving=improving,
        since=since,
        renewal=renewal,
    )
