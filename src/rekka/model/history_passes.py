"""Passes over blocks of whole bridges: what a fit of histories needs of rows, added in the order of the blocks.

Rows in memory are one block, or several; ``streaming.histories`` has those of files and clusters.
Every function is of one block, at module level, so that it can be sent to workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rekka.core.errors import BadStates, name_rows
from rekka.model.certificate import PLATEAU
from rekka.model.clock import RUNNING, Clock
from rekka.model.coordinates import Axes
from rekka.model.elements import SPAN, Elements, Nodes
from rekka.model.family import Family
from rekka.model.histories import (
    Chain,
    HistoryLikelihood,
    chain_rows,
    check_chain,
    find_impossible,
    numbering_rows,
    place_frailty,
)
from rekka.model.inputs import check_covariates, weigh_dates
from rekka.model.likelihood import Pairs
from rekka.model.moments import Moments, stack_factors
from rekka.model.records import Frailties, summarise_frailty
from rekka.scaling.operators import FittedScaling
from rekka.scaling.registry import fit_scaling

Array = NDArray[np.float64]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Blocks(ABC, Generic[Item]):
    """Blocks that can be passed over as often as needed; ``threads`` are those that the work on one may take."""

    threads: int
    on_pass: Callable[[str], None] | None

    @abstractmethod
    def run(self, function: Callable[[Item], Result]) -> Iterator[Result]:
        """Result of the function for each block, in their order."""

    @abstractmethod
    def then(self, function: Callable[[Item], Result]) -> Blocks[Result]:
        """Blocks that a function makes of these: kept where they are in memory, else computed in every pass."""

    def map(self, function: Callable[[Item], Result], stage: str) -> Iterator[Result]:
        """Do as ``run``, and say what the pass is for."""
        if self.on_pass is not None:
            self.on_pass(stage)
        return self.run(function)


@dataclass(frozen=True, eq=False)
class HeldBlocks(Blocks[Item]):
    """Blocks in memory, one after the other."""

    items: tuple[Item, ...]
    threads: int = 1
    on_pass: Callable[[str], None] | None = None

    def run(self, function: Callable[[Item], Result]) -> Iterator[Result]:
        """Result of the function for each block, in their order."""
        return map(function, self.items)

    def then(self, function: Callable[[Item], Result]) -> Blocks[Result]:
        """Blocks that a function makes of these."""
        return HeldBlocks(tuple(map(function, self.items)), self.threads, self.on_pass)


class HistoryOverview(NamedTuple):
    """Counts and ranges of the first pass; improvements are counted in ``pairs`` (K, K) as rows that stayed.

    ``first`` (K,) are the ratings that histories begin with, ``low`` and ``high`` (p,) the range of covariates as
    the clock takes them, ``age`` the moments (1,) of the ages at first visits, ``dates`` the earliest and last.
    """

    rows: int
    bridges: int
    pairs: Pairs
    first: NDArray[np.int64]
    low: Array
    high: Array
    age: Moments
    dates: tuple[float, float]

    @property
    def n_pairs(self) -> int:
        """Rows with a second rating."""
        return int(self.pairs.weight.sum())

    @property
    def age_units(self) -> tuple[float, float]:
        """Mean and standard deviation of the ages at first visits; 0 and 1 where there is one value."""
        sd = float(self.age.sd[0])
        return (float(self.age.mean[0]), sd) if sd > 0 else (0.0, 1.0)

    def with_states(self, n_states: int) -> Self:
        """The overview with room for so many states."""
        room = (0, n_states - self.first.size)
        pairs = Pairs(*(np.pad(table, (room, room)) for table in self.pairs))
        return self._replace(pairs=pairs, first=np.pad(self.first, room))

    def plus(self, other: HistoryOverview) -> HistoryOverview:
        """Both together."""
        K = max(self.first.size, other.first.size)
        one, two = self.with_states(K), other.with_states(K)
        return HistoryOverview(
            one.rows + two.rows,
            one.bridges + two.bridges,
            Pairs(*(mine + theirs for mine, theirs in zip(one.pairs, two.pairs, strict=True))),
            one.first + two.first,
            np.minimum(one.low, two.low),
            np.maximum(one.high, two.high),
            one.age.plus(two.age),
            (min(one.dates[0], two.dates[0]), max(one.dates[1], two.dates[1])),
        )


def take_rows(clock: Clock, rows: Chain) -> Array:
    """Covariates (n, p) of rows as the clock takes them, those of one visit at that visit."""
    return rows.x if clock.kind == RUNNING else clock.take(rows.x, rows.years)


def look_over(blocks: Blocks[Chain], clock: Clock) -> HistoryOverview:
    """The first pass, in which chains are checked."""
    whole: HistoryOverview | None = None
    for part in blocks.map(partial(look_over_block, clock), "checking"):
        whole = part if whole is None else whole.plus(part)
    assert whole is not None  # tables without rows are refused before
    if not whole.n_pairs:
        raise BadStates("No row has a second rating, so nothing says how condition changes.")
    return whole


def look_over_block(clock: Clock, rows: Chain) -> HistoryOverview:
    """Check the chains of a block, and count."""
    with numbering_rows(rows.row):
        order = check_chain(rows, clock.columns)
    begins = order[np.diff(rows.history[order], prepend=-1) != 0]
    pair = rows.end >= 0
    worse = np.maximum(rows.start, rows.end)
    K = int(worse.max()) + 1
    age = rows.x[begins, clock.columns[0]] if clock.columns else np.zeros(begins.size)
    taken, ends = take_rows(clock, rows), np.array([np.inf, -np.inf])
    if rows.date is not None:
        ends = np.array([rows.date.min(), (rows.date + rows.years).max()])
    return HistoryOverview(
        rows.start.size,
        int(rows.bridge.max()) + 1,
        Pairs.of(rows.start[pair], worse[pair], rows.dt[pair], np.ones(int(pair.sum())), K),
        np.bincount(rows.start[begins], minlength=K),
        taken.min(axis=0),
        taken.max(axis=0),
        Moments.of(age[:, None]),
        (float(ends[0]), float(ends[1])),
    )


@dataclass(frozen=True, eq=False)
class Posing:
    """How rows of a block become its likelihood; ``axes`` are the orthonormal columns of the steps."""

    elements: Elements
    clock: Clock
    scaling: FittedScaling
    family: Family
    dates: tuple[float, float]
    age_units: tuple[float, float]
    threads: int
    half_life: float | None = None
    axes: Axes | None = None

    def build(self, rows: Chain) -> HistoryLikelihood:
        """The likelihood of a block's bridges."""
        assert self.axes is not None  # they are found before
        seen = chain_rows(rows, self.elements, self.clock, self.dates)
        z, (mean, sd, r) = self.scaling.transform(seen.x), self.axes
        W = np.ones((len(z), z.shape[1] + 1))
        if z.shape[1]:
            W[:, 1:] = linalg.solve_triangular(r, ((z - mean) / sd).T, trans="T").T
        built = HistoryLikelihood.build(
            seen, self.elements, W, self.family, 1, self.threads, age_units=self.age_units
        )
        share = None if self.half_life is None else weigh_dates(seen.when, self.half_life)
        return replace(built, names=rows.names, share=share)


def measure_steps(posing: Posing, rows: Chain) -> Moments:
    """Moments of the scaled covariates of a block's steps; refuse ratings that cannot follow those before."""
    with numbering_rows(rows.row):
        seen = chain_rows(rows, posing.elements, posing.clock, posing.dates)
        wrong = find_impossible(seen, posing.elements)
        if wrong.size:
            wrong = wrong[np.argsort(seen.row[wrong])]
            raise _refuse_impossible(rows, seen.row[wrong], int(seen.observed[wrong[0]]), posing.elements)
    return Moments.of(posing.scaling.transform(seen.x))


def _refuse_impossible(rows: Chain, at: NDArray[np.int64], rating: int, elements: Elements) -> BadStates:
    row = int(at[0])
    what = "errors of inspection as the pattern has them" if elements.pattern is not None else "these elements"
    remedy = "errors='adjacent' or improvements='common'"
    if elements.pattern is not None:
        remedy = "improvements='common', allow it in the pattern"
    return BadStates(
        f"{name_rows(at)} ({at.size} of {rows.end.size}): rating {rating + 1} cannot follow the visits before it "
        f"(the row starts in {rows.start[row] + 1}) under {what}. Use {remedy}, or start another "
        "history there.",
        rows=at.tolist(),
    )


def factor_steps(posing: Posing, moments: Moments, sd: Array, rows: Chain) -> Array:
    """The triangular factor of a block's standardised steps, each times the root of its share."""
    seen = chain_rows(rows, posing.elements, posing.clock, posing.dates)
    z = (posing.scaling.transform(seen.x) - moments.mean) / sd / np.sqrt(moments.weight)
    return np.asarray(np.linalg.qr(z, mode="r"))


class HistorySums(NamedTuple):
    """Log-likelihood, gradient (P,), and the sum of the outer products (P, P) of the bridges' scores."""

    value: float
    gradient: Array
    squares: Array


class Parameters(NamedTuple):
    """Parameters of the likelihood with the frailty nodes to integrate with."""

    parameters: Array
    nodes: int
    span: float


def sum_block(place: Parameters, basis: Array, block: HistoryLikelihood) -> HistorySums:
    """Value and derivatives of a block in the coordinates of ``basis`` (F + Q, P + Q)."""
    with np.errstate(all="ignore"):  # infinite far out; whoever asked looks
        found = block.with_nodes(place.nodes, place.span).evaluate(place.parameters)
        scores = found.scores @ basis
        return HistorySums(found.value, scores.sum(axis=0), scores.T @ scores)


def count_plateau(place: Parameters, block: HistoryLikelihood) -> tuple[int, int]:
    """Visits of a block at or under the probability that counts as a plateau, and all."""
    found = block.with_nodes(place.nodes, place.span).evaluate(place.parameters, False).by_visit
    return int((~(found > PLATEAU)).sum()), int(found.size)


def gather_frailty(place: Parameters, block: HistoryLikelihood) -> Frailties:
    """Frailties of a block's bridges given their visits."""
    own = replace(block.with_nodes(place.nodes, place.span), share=None)
    names = own.names if own.names is not None else tuple(map(str, range(own.histories.n_bridges)))
    nodes = own.place(place.parameters[own.n_coefficients :])
    return summarise_frailty(names, nodes, own.evaluate(place.parameters).posterior)


@dataclass(frozen=True, eq=False)
class SummedHistories:
    """The likelihood of all blocks: a sum of theirs. ``n_terms`` are the columns of the design."""

    blocks: Blocks[HistoryLikelihood]
    elements: Elements
    family: Family
    n_terms: int
    nodes: int = 1
    span: float = SPAN

    @property
    def n_states(self) -> int:
        """K; no hazard leaves state K."""
        return self.elements.n_states

    def with_nodes(self, nodes: int, span: float = SPAN) -> SummedHistories:
        """The likelihood with another number of nodes, over another range (``elements.SPAN``)."""
        return replace(self, nodes=nodes, span=span)

    def place(self, extra: Array) -> Nodes:
        """Frailty nodes at these parameters; one node of 1 without frailty."""
        return place_frailty(self.elements, extra, self.nodes, self.span)

    def sum(self, parameters: Array, basis: Array) -> HistorySums:
        """Value, gradient and squares of scores in the coordinates of ``basis``, by a pass."""
        size = basis.shape[1]
        value, gradient, squares = 0.0, np.zeros(size), np.zeros((size, size))
        for part in self.blocks.map(partial(sum_block, self._at(parameters), basis), "likelihood"):
            value += part.value
            gradient += part.gradient
            squares += part.squares
        return HistorySums(value, gradient, squares)

    def plateau(self, parameters: Array) -> float:
        """The share of visits at or under the probability that counts as a plateau."""
        counted = list(self.blocks.map(partial(count_plateau, self._at(parameters)), "plateau"))
        return sum(low for low, _ in counted) / sum(visits for _, visits in counted)

    def frailties(self, parameters: Array) -> Frailties:
        """Frailty of each bridge given its visits."""
        parts = list(self.blocks.map(partial(gather_frailty, self._at(parameters)), "frailties"))
        names = tuple(name for part in parts for name in part.groups)
        figures = (np.concatenate([getattr(part, one) for part in parts]) for one in ("mean", "low", "high"))
        return Frailties(names, *figures)

    def _at(self, parameters: Array) -> Parameters:
        return Parameters(parameters, self.nodes, self.span)


@dataclass(frozen=True, eq=False)
class HistoryObservations:
    """Checked rows of histories in blocks of whole bridges, looked over once. Made by ``observe_histories``.

    Scaling and quantiles are those of all rows at once; ``streaming.histories`` finds them by passes.
    """

    covariates: tuple[str, ...]
    blocks: Blocks[Chain]
    clock: Clock  # with the mean interval of the rows
    overview: HistoryOverview

    def fit_scaling(self, method: Any, plain: Collection[str] = ()) -> FittedScaling:
        """Fit an operator, of rekka's or from elsewhere; refuse covariates that are constant or collinear."""
        x = self._take()
        check_covariates(x, self.covariates)
        return fit_scaling(method, x, self.covariates, plain)

    def quantiles(self, probabilities: Array) -> Array:
        """Quantiles (q, p) of the covariates of rows."""
        return np.asarray(np.quantile(self._take(), probabilities, axis=0))

    def _take(self) -> Array:
        return np.concatenate(list(self.blocks.run(partial(take_rows, self.clock))))

    def pose(
        self, scaling: FittedScaling, elements: Elements, family: Family, half_life: float | None = None
    ) -> tuple[SummedHistories, Axes]:
        """The likelihood in orthonormal columns of the steps, and these."""
        seen, p = self.overview, len(self.covariates)
        posing = Posing(
            elements, self.clock, scaling, family, seen.dates, seen.age_units, self.blocks.threads, half_life
        )
        moments = Moments.of(np.zeros((0, p)))
        for part in self.blocks.map(partial(measure_steps, posing), "coordinates"):
            moments = moments.plus(part)
        sd = np.where(moments.sd > 0, moments.sd, 1.0)
        r = np.zeros((0, 0))
        if p:
            r = stack_factors(self.blocks.map(partial(factor_steps, posing, moments, sd), "coordinates"), p)
        axes = Axes(moments.mean, sd, r)
        posing = replace(posing, axes=axes)
        return SummedHistories(self.blocks.then(posing.build), elements, family, p + 1), axes


def observe_histories(blocks: Blocks[Chain], covariates: tuple[str, ...], clock: Clock) -> HistoryObservations:
    """Make the first pass over blocks."""
    overview = look_over(blocks, clock)
    return HistoryObservations(covariates, blocks, clock, overview)
