"""Histories of visits: rows chained, cut into steps of constant hazards, and their likelihood.

A history is one member between two repairs; a bridge (a group) is one or more histories that share a frailty and
are independent of other bridges. Likelihood and gradient are those of ``history_kernel``, with the chain rule for
covariates and for the parameters of ``elements``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from rekka.core.errors import BadOption, BadStates, BadValues, InputError, name_rows, renumber_rows
from rekka.model import history_kernel
from rekka.model.clock import RUNNING, START, Clock
from rekka.model.elements import LEAST_PHI, NEW, ONE_NODE, SPAN, TREND_YEARS, Elements, Nodes, place_nodes
from rekka.model.family import Family
from rekka.model.likelihood import count_threads, run_blocks

Array = NDArray[np.float64]
States = NDArray[np.int64]
Places = NDArray[np.int64]

BLOCK_VISITS = 1024  # visits, about, whose bridges a thread takes at once
WHOLE_YEAR = 1e-6  # years by which an interval may exceed whole years and still be cut into as many steps
SAME_DATE = 0.05  # years by which the end of a row and the start of the next may differ


class Chain(NamedTuple):
    """Rows (n,) to be chained: states 0-based, end -1 where a history has one visit, x (n, p) at first visits.

    ``history`` and ``bridge`` are whole numbers from 0, ``date`` the year of the first visit as a number, or None.
    ``names`` are those of the bridges by number, ``row`` the rows' numbers in their table where they are others.
    """

    start: States
    end: States
    dt: Array
    x: Array
    history: Places
    bridge: Places
    date: Array | None = None
    names: tuple[str, ...] | None = None
    row: Places | None = None

    @property
    def years(self) -> Array:
        """Years of each row; 0 where there is one visit."""
        return np.where(self.end >= 0, np.nan_to_num(self.dt), 0.0)


@contextmanager
def numbering_rows(number: NDArray[Any] | None) -> Iterator[None]:
    """Name rows of a block in errors by their ``number`` (n,) in the table; None where they are the table's."""
    try:
        yield
    except InputError as error:
        if number is None or number[-1] == number.size - 1:
            raise
        found = renumber_rows(error, number)
        raise type(found)(f"{found} ({number.size:,} rows were looked at together.)", **found.values) from None


@dataclass(frozen=True, eq=False)
class Histories:
    """Visits and steps as the kernel takes them. Made by ``chain_rows``.

    Arrays of visits: ``observed``, ``begins`` (number of the history that begins there, or -1), ``steps`` (V+1,),
    ``row`` (of the table), ``when`` in years after the last visit of all. Of steps: years ``h``, raw covariates
    ``x`` (S, p), ``time`` in years after the last visit of all. Of histories: raw ``age`` at their first visit.
    """

    observed: States
    begins: Places
    steps: Places
    row: Places
    when: Array
    bridges: Places
    h: Array
    x: Array
    time: Array
    age: Array
    last: float

    @property
    def n_bridges(self) -> int:
        """Number of bridges."""
        return self.bridges.size - 1

    @cached_property
    def by_bridge(self) -> Any:
        """The sparse matrix (B, S) that adds up what steps have by bridge."""
        each = np.ones(self.h.size), np.arange(self.h.size), self.steps[self.bridges]
        return sparse.csr_matrix(each, shape=(self.n_bridges, self.h.size))

    @cached_property
    def bridge_of_history(self) -> Places:
        """Bridge of each history."""
        visit = np.repeat(np.arange(self.n_bridges), np.diff(self.bridges))
        return visit[self.begins >= 0]

    @cached_property
    def edges(self) -> list[int]:
        """Bridges at which blocks of about BLOCK_VISITS visits begin, and the end."""
        block = self.bridges[:-1] // BLOCK_VISITS
        return [*np.flatnonzero(np.diff(block, prepend=-1)).tolist(), self.n_bridges]


def check_chain(rows: Chain, advancing: Sequence[int] = ()) -> NDArray[np.intp]:
    """An order in which rows of a bridge, and of a history, follow each other; refuse broken chains."""
    bad = np.flatnonzero((rows.end >= 0) & ~(rows.dt > 0))
    if bad.size:
        raise BadValues(f"The years between two visits are not above 0 in {name_rows(bad)}.", rows=bad.tolist())
    first = np.full(int(rows.history.max()) + 1, -1)
    first[rows.history[::-1]] = rows.bridge[::-1]
    split = np.flatnonzero(rows.bridge != first[rows.history])
    if split.size:
        raise split_history(split.tolist())
    order = order_rows(rows)
    history = rows.history[order]
    follows = np.flatnonzero(history[1:] == history[:-1]) + 1  # places of rows that follow one of their history
    before, after = order[follows - 1], order[follows]
    alone = np.flatnonzero(rows.end[before] < 0)
    lone = np.union1d(before[alone], after[rows.end[after] < 0])
    if lone.size:
        raise BadStates(
            f"y is missing in {name_rows(lone)}, whose history has other rows. Only a history of one visit has no "
            "second rating; leave such rows out, or correct histories.",
            rows=lone.tolist(),
        )
    wrong = np.flatnonzero(rows.end[before] != rows.start[after])
    if wrong.size:
        wrong = wrong[np.argsort(after[wrong])]
        broken, at = after[wrong], int(wrong[0])
        raise BadStates(
            f"{name_rows(broken)}: the history's row before ends in state {rows.end[before[at]] + 1}, and this "
            f"one starts in state {rows.start[after[at]] + 1}. Rows of a history must be in order of time, each "
            "starting where the one before ended; sort them, or start another history where visits are missing.",
            rows=broken.tolist(),
        )
    if rows.date is not None:
        gap = rows.date[after] - (rows.date[before] + rows.dt[before])
        wrong = np.flatnonzero(np.abs(gap) > SAME_DATE)
        if wrong.size:
            wrong = wrong[np.argsort(after[wrong])]
            years = float(gap[wrong[0]])
            raise BadValues(
                f"{name_rows(after[wrong])}: the date of the first visit is {abs(years):.3g} years "
                f"{'after' if years > 0 else 'before'} the end of the history's row before. Rows of a history "
                "must follow each other without a gap; sort them, or start another history after a gap.",
                rows=after[wrong].tolist(),
            )
    for column in advancing:
        back = np.sort(after[rows.x[after, column] < rows.x[before, column]])
        if back.size:
            raise BadValues(
                f"{name_rows(back)}: the age is below that of the history's row before. Rows of a history must be "
                "in order of time; sort them, or start another history.",
                rows=back.tolist(),
            )
    return order


def split_history(rows: Sequence[int]) -> InputError:
    """Error of rows whose group is not that of their history."""
    return InputError(
        f"{name_rows(rows)}: the group differs from that of the first row of the same history. All rows of a "
        "history belong to one bridge; correct histories or groups.",
        rows=list(rows),
    )


def order_rows(rows: Chain) -> NDArray[np.intp]:
    """Rows by bridge, history and date; stable, so that without dates rows of a history stay in their order."""
    keys = (rows.history, rows.bridge) if rows.date is None else (rows.date, rows.history, rows.bridge)
    return np.lexsort(keys)


def chain_rows(
    rows: Chain, elements: Elements, clock: Clock, dates: tuple[float | None, float | None] = (None, None)
) -> Histories:
    """Chain rows and cut intervals into steps; the trend is that of ``dates``, by default those of the visits.

    Steps are of at most a year where the clock runs or improvements happen, else an interval is one step.
    """
    order = check_chain(rows, clock.columns)
    start, end, history, bridge = (part[order] for part in (rows.start, rows.end, rows.history, rows.bridge))
    x, years = rows.x[order], rows.years[order]
    begins = np.diff(history, prepend=-1) != 0
    seen = end >= 0
    stop = np.cumsum(begins + seen.astype(np.int64))  # visits up to each row
    n = int(stop[-1])
    first_at, second_at = (stop - seen - 1)[begins], (stop - 1)[seen]
    observed, row, number = np.empty(n, np.int64), np.empty(n, np.int64), np.full(n, -1, np.int64)
    observed[first_at], observed[second_at] = start[begins], end[seen]
    row[first_at], row[second_at] = order[begins], order[seen]
    number[first_at] = np.arange(first_at.size)
    visit_bridge = np.empty(n, np.int64)
    visit_bridge[first_at], visit_bridge[second_at] = bridge[begins], bridge[seen]
    edges = np.flatnonzero(np.diff(visit_bridge, prepend=-1, append=-1))
    age = x[begins, clock.columns[0]] if clock.columns else np.zeros(first_at.size)
    # Each visit: the years before it, the row whose covariates it has, and how far these are before that row's
    length, source, back = np.zeros(n), np.zeros(n, np.int64), np.zeros(n)
    length[second_at], source[second_at] = years[seen], np.flatnonzero(seen)
    if elements.first == NEW:
        finish = age + np.add.reduceat(years, np.flatnonzero(begins))
        _check_new(clock, age, finish, order[begins], bridge[begins])
        length[first_at], source[first_at], back[first_at] = age, np.flatnonzero(begins), age
    fine = clock.kind == RUNNING or elements.improvements is not None
    whole = np.maximum(np.ceil(length - WHOLE_YEAR), 1.0) if fine else np.ones(n)
    count = np.where(length > 0, whole, 0.0).astype(np.int64)
    steps = np.concatenate([[0], np.cumsum(count)])
    h = np.repeat(length / np.maximum(count, 1), count)
    place = np.arange(h.size) - np.repeat(steps[:-1], count)
    span = np.repeat(length, count)
    later = (place + 0.5) * h if clock.kind == RUNNING else np.zeros(h.size) if clock.kind == START else 0.5 * span
    shift = later - np.repeat(back, count)
    taken = x[np.repeat(source, count)]
    for column in clock.columns:
        taken[:, column] += shift
    time, final, when = np.zeros(h.size), 0.0, np.zeros(n)
    if rows.date is not None:
        date = rows.date[order]
        first, last = dates
        final = float((date + years).max()) if last is None else last
        when[first_at], when[second_at] = date[begins] - final, (date + years)[seen] - final
        least = date.min() if first is None else first
        time = np.clip(date[np.repeat(source, count)] + shift, least, final) - final
    return Histories(observed, number, steps, row, when, edges, h, taken, time, age, final)


def _check_new(clock: Clock, age: Array, finish: Array, row: Places, bridge: Places) -> None:
    """Refuse first="new" where the years since a member was new are not known."""
    if not clock.columns:
        raise BadOption(
            'first="new" follows a member from age 0, and no covariate here is an age. Add the age at the first '
            "visit to covariates, or name it in advance.",
            option="first",
        )
    young = row[age < 0]
    if young.size:
        raise BadValues(f"The age at the first visit is below 0 in {name_rows(young)}.", rows=young.tolist())
    ended = np.full(int(bridge.max()) + 1, np.inf)
    np.minimum.at(ended, bridge, finish)  # other members of the bridge are seen at the same time, and may be new
    later = np.sort(row[age > ended[bridge] + WHOLE_YEAR])
    if later.size:
        raise BadOption(
            f"{name_rows(later)}: a second history of the same bridge begins here, after a repair or a cut, and "
            'first="new" takes members for new at age 0. Use first="given", or leave such histories out.',
            option="first",
            rows=later.tolist(),
        )


def find_impossible(histories: Histories, elements: Elements) -> Places:
    """Visits whose rating no true state can have given the visits before; empty where all are possible."""
    K = elements.n_states
    pattern = np.eye(K, dtype=bool) if elements.pattern is None else elements.pattern
    conditional = elements.pattern is None and elements.first != NEW and elements.probabilities is None
    support = np.ones(K, dtype=bool) if elements.probabilities is None else elements.probabilities > 0
    found, best = [], 0
    observed, begins, count = (
        histories.observed.tolist(),
        histories.begins.tolist(),
        np.diff(histories.steps).tolist(),
    )
    allowed = [set(np.flatnonzero(pattern[:, o]).tolist()) for o in range(K)]
    able = [set(np.flatnonzero(support).tolist()), set(range(K))]
    for v, (o, b, m) in enumerate(zip(observed, begins, count, strict=True)):
        if b >= 0 and elements.first != NEW:
            states = allowed[o] if conditional else allowed[o] & able[0]
        else:
            low = 0 if b >= 0 else best - (m if elements.improvements else 0)
            states = {s for s in allowed[o] if s >= low and (m or b < 0 or s == 0)}
        if not states:
            found.append(v)
            states = allowed[o]
        best = min(states)
    return np.asarray(found, dtype=np.int64)


class HistoryScores(NamedTuple):
    """Log-likelihood, scores of bridges (B, F), and the nodes' weights given all visits of each bridge (B, N)."""

    value: float
    scores: Array
    posterior: Array
    by_visit: Array


@dataclass(frozen=True, eq=False)
class HistoryLikelihood:
    """Log-likelihood of histories as a function of coefficients of the design W (S, p+1) and extra parameters.

    ``age`` (histories,) is standardised. ``nodes`` is the number of frailty nodes; 1 is no frailty. ``share`` (V,)
    are weights of the visits: log L is then the sum of w_v log p(o_v | all earlier visits of the bridge).
    """

    histories: Histories
    elements: Elements
    W: Array
    age: Array
    family: Family
    nodes: int
    threads: int = 1
    span: float = SPAN
    names: tuple[str, ...] | None = None  # of the bridges
    share: Array | None = None

    @classmethod
    def build(
        cls,
        histories: Histories,
        elements: Elements,
        W: Array,
        family: Family,
        nodes: int,
        threads: int | None,
        age_units: tuple[float, float] | None = None,
    ) -> HistoryLikelihood:
        """Standardise ages, by those of all blocks or its own, and count threads."""
        mean, sd = measure_ages(histories.age) if age_units is None else age_units
        age = (histories.age - mean) / sd
        return cls(histories, elements, np.ascontiguousarray(W), age, family, nodes, count_threads(threads))

    @property
    def n_states(self) -> int:
        """K; no hazard leaves state K."""
        return self.elements.n_states

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients, (K-1)(p+1)."""
        return (self.n_states - 1) * int(self.W.shape[1])

    def with_nodes(self, nodes: int, span: float = SPAN) -> HistoryLikelihood:
        """The likelihood with another number of nodes, over another range (``elements.SPAN``)."""
        return replace(self, nodes=nodes, span=span)

    def evaluate(self, parameters: Array, differentiate: bool = True) -> HistoryScores:
        """Value and scores; below LEAST_PHI the value is linear in the variance of the frailty."""
        elements = self.elements
        place = self.n_coefficients + elements.parts["frailty"].start
        short = LEAST_PHI - parameters[place] if elements.frailty and self.nodes > 1 else 0.0
        if short <= 0.0:
            return self._evaluate(parameters, differentiate)
        inside = parameters.copy()
        inside[place] = LEAST_PHI
        found = self._evaluate(inside, True)
        return found._replace(value=found.value - short * float(found.scores[:, place].sum()))

    def _evaluate(self, parameters: Array, differentiate: bool) -> HistoryScores:
        seen, elements, K = self.histories, self.elements, self.n_states
        beta = parameters[: self.n_coefficients].reshape(K - 1, -1)
        extra = parameters[self.n_coefficients :]
        eta = self.W @ beta.T
        decades = seen.time / TREND_YEARS
        if elements.trend:
            eta += decades[:, None] * elements.slopes(extra)
        theta = np.ascontiguousarray(self.family.step_hazards(eta))
        nodes = self.place(extra)
        errors, d_matrix = elements.error_matrix(extra)
        pi = self.first(extra)
        logit = elements.improvement_logits(extra)
        log_stay = -np.logaddexp(0.0, logit) if elements.improvements else np.empty(0)
        B, N = seen.n_bridges, nodes.log_eps.size
        size = (lambda *shape: np.zeros(shape)) if differentiate else (lambda *shape: np.zeros((1,) * len(shape)))
        log_scale = np.empty(seen.observed.size)
        d_eta, d_pi, d_errors = size(*theta.shape), size(*pi.shape), size(B, K, K)
        d_stay, posterior = size(B, K), size(B, N)
        eps, weight = np.exp(nodes.log_eps), np.exp(nodes.log_weight)
        edges, share = seen.edges, np.empty(0) if self.share is None else self.share

        def block(i: int) -> None:
            history_kernel.pass_bridges(
                edges[i], edges[i + 1], seen.bridges, seen.observed, seen.begins, seen.steps, seen.h, theta, pi,
                errors, log_stay, eps, nodes.stride, weight, differentiate, log_scale, d_eta, d_pi, d_errors,
                d_stay, posterior, share,
            )  # fmt: skip

        run_blocks(block, len(edges) - 1, self.threads)
        value = float(log_scale.sum() if self.share is None else log_scale @ self.share)
        if not differentiate:
            return HistoryScores(value, np.zeros((0, parameters.size)), posterior, log_scale)
        scores = np.zeros((B, parameters.size))
        bend, _ = self.family.bend(eta)
        d_eta *= bend
        terms = self.W.shape[1]
        for k in range(K - 1):
            scores[:, k * terms : (k + 1) * terms] = seen.by_bridge @ (d_eta[:, k, None] * self.W)
        rest, parts = scores[:, self.n_coefficients :], elements.parts
        rest[:, parts["errors"]] = d_errors.reshape(B, -1) @ d_matrix.reshape(-1, K * K).T
        if elements.frailty and N > 1:
            rest[:, parts["frailty"]] = (posterior @ nodes.d_log_weight)[:, None]
        if elements.improvements:
            by_state = -d_stay * special.expit(logit)
            rest[:, parts["improvements"]] = self._gather(by_state[:, 1:], parts["improvements"])
        if elements.trend:
            rest[:, parts["trend"]] = self._gather(seen.by_bridge @ (d_eta * decades[:, None]), parts["trend"])
        if elements.free_first:
            d_logit = pi * (d_pi - (pi * d_pi).sum(axis=1, keepdims=True))
            own = [np.bincount(seen.bridge_of_history, d_logit[:, k], B) for k in range(1, K)]
            if elements.aged:
                slope = d_logit @ np.arange(K) * self.age
                own.append(np.bincount(seen.bridge_of_history, slope, B))
            rest[:, parts["first"]] = np.stack(own, axis=1)
        return HistoryScores(value, scores, posterior, log_scale)

    @staticmethod
    def _gather(by_state: Array, part: slice) -> Array:
        """Derivatives (B, K-1) as those of the parameters: added up where one is common to all states."""
        return by_state if part.stop - part.start == by_state.shape[1] else by_state.sum(axis=1, keepdims=True)

    def place(self, extra: Array) -> Nodes:
        """Frailty nodes at these parameters; one node of 1 without frailty."""
        return place_frailty(self.elements, extra, self.nodes, self.span)

    def first(self, extra: Array) -> Array:
        """Probabilities (histories, K) of the true state that each history begins with."""
        elements, n, K = self.elements, self.age.size, self.n_states
        if elements.first == NEW:
            return np.ascontiguousarray(np.broadcast_to(np.eye(K)[0], (n, K)))
        if elements.probabilities is not None:
            return np.ascontiguousarray(np.broadcast_to(elements.probabilities, (n, K)))
        if elements.free_first:
            return np.ascontiguousarray(special.softmax(elements.first_logits(extra, self.age), axis=1))
        return np.eye(K)[self.histories.observed[self.histories.begins >= 0]]


def place_frailty(elements: Elements, extra: Array, nodes: int, span: float) -> Nodes:
    """Frailty nodes at these parameters; one node of 1 without frailty."""
    if nodes == 1 or not elements.frailty:
        return ONE_NODE
    variance = float(extra[elements.parts["frailty"]][0])
    return place_nodes(max(variance, LEAST_PHI), nodes, span)


def measure_ages(age: Array) -> tuple[float, float]:
    """Mean and standard deviation of the ages at first visits; 0 and 1 where there is one value."""
    sd = float(age.std())
    return (float(age.mean()), sd) if sd > 0 else (0.0, 1.0)
