"""Passes over rows in blocks: ranges, counts, moments, triangular factors, and exact quantiles.

Every function is of one block, or puts the results of blocks together in their order. Quantiles are found without
sorting a column whole:

1. A sample of evenly spaced rows gives edges, about equally many rows between two of them.
2. One pass counts the rows below and at every edge: each rank that is wanted is at an edge, or between two.
3. Where it is between two, another pass collects the values there: for all percentiles about a twentieth of them.

The values are those of np.quantile, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadStates, InputError
from rekka.model import inputs
from rekka.model.clock import Clock
from rekka.model.likelihood import Pairs
from rekka.model.moments import Moments, stack_factors
from rekka.scaling.operators import ColumnScaling, FittedScaling
from rekka.streaming import block_kernel
from rekka.streaming.blocks import Array, Block, Reading, Result, Source

MOST_STATES = 256  # sums are kept for each start and end
MARKED = 256  # one group in so many is counted, to know about how many there are
OnPass = Callable[[str], None]  # called with what the pass is for, before it begins


@dataclass(frozen=True, eq=False)
class Watched:
    """A source that says what each pass is for, with covariates as the clock takes them."""

    source: Source
    on_pass: OnPass | None = None
    stage: str = "reading"
    grouped: bool = False
    clock: Clock = field(default_factory=Clock)

    @property
    def reading(self) -> Reading:
        """The roles of the columns."""
        return self.source.reading

    def without_groups(self) -> Watched:
        """All of it: groups are asked for only where a pass says so."""
        return self

    def at(self, stage: str, *, grouped: bool = False) -> Watched:
        """The source for another purpose, which may need the rows' groups."""
        return replace(self, stage=stage, grouped=grouped)

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order."""
        if self.on_pass is not None:
            self.on_pass(self.stage)
        source = self.source if self.grouped else self.source.without_groups()
        return source.map(partial(_take_block, self.clock, function) if self.clock.columns else function)


def _take_block(clock: Clock, function: Callable[[Block], Result], block: Block) -> Result:
    return function(block._replace(x=clock.take(block.x, block.dt)))


class FirstPass(NamedTuple):
    """Rows, the range of each covariate (p,), sums over the rows of each start and end, (K, K); some groups."""

    rows: int
    low: Array
    high: Array
    counts: NDArray[np.int64]
    pairs: Pairs
    marked: NDArray[np.uint64]  # hashes of one group in MARKED, where groups are read

    def with_states(self, n_states: int) -> FirstPass:
        """Counts with room for so many states."""
        room = (0, n_states - len(self.counts))
        weight, years = (np.pad(table, (room, room)) for table in self.pairs)
        return self._replace(counts=np.pad(self.counts, (room, room)), pairs=Pairs(weight, years))


def look_over(source: Source) -> FirstPass:
    """The first pass, in which every value is checked."""
    whole: FirstPass | None = None
    for part in source.map(_look_over_block):
        whole = part if whole is None else _add_passes(whole, part)
    if whole is None:
        raise InputError("The table has no rows. At least one is needed.")
    inputs.refuse_weightless(whole.pairs.weight)
    return whole


def _look_over_block(block: Block) -> FirstPass:
    n_states = int(block.end.max(initial=0)) + 1
    if n_states > MOST_STATES:
        raise BadStates(
            f"There is a state {n_states}; so many rows can have {MOST_STATES} at most. "
            "Is that the column of states?"
        )
    pairs = Pairs.of(block.start, block.end, block.dt, block.weight, n_states)
    counts = np.bincount(block.start * n_states + block.end, minlength=n_states**2).reshape(n_states, n_states)
    low, high = block.x.min(axis=0, initial=np.inf), block.x.max(axis=0, initial=-np.inf)
    group = np.empty(0, np.uint64) if block.group is None else block.group
    return FirstPass(block.dt.size, low, high, counts, pairs, np.unique(group[group % np.uint64(MARKED) == 0]))


def _add_passes(one: FirstPass, other: FirstPass) -> FirstPass:
    n_states = max(len(one.counts), len(other.counts))
    one, other = one.with_states(n_states), other.with_states(n_states)
    pairs = Pairs(*(mine + theirs for mine, theirs in zip(one.pairs, other.pairs, strict=True)))
    low, high = np.minimum(one.low, other.low), np.maximum(one.high, other.high)
    marked = np.union1d(one.marked, other.marked)
    return FirstPass(one.rows + other.rows, low, high, one.counts + other.counts, pairs, marked)


def measure_values(values: Array, weight: Array | None = None) -> Moments:
    """Moments of values (m, p) with weights (m,)."""
    m, p = values.shape
    mean, squares = np.zeros(p), np.zeros(p)
    weight = np.ones(m) if weight is None else weight
    if not weight.any():
        return Moments(0.0, mean, squares)
    return Moments(block_kernel.add_moments(by_column(values), weight, mean, squares), mean, squares)


def add_moments(parts: Iterable[Moments]) -> Moments:
    """Moments of all parts together."""
    return reduce(Moments.plus, parts)


def by_column(values: Array) -> Array:
    """Values (m, p) as (p, m), each covariate in one piece."""
    return np.ascontiguousarray(values.T)


def factor(columns: Array) -> Array:
    """The triangular factor of rows whose covariates are (p, m), which are used up."""
    r = np.empty((len(columns), len(columns)))
    block_kernel.triangle(columns, r)
    return r


def factor_standardised(values: Array, mean: Array, scale: Array, share: Array) -> Array:
    """The triangular factor of (values - mean) / scale, each row times the root of its share."""
    columns = np.empty((values.shape[1], len(values)))
    block_kernel.standardise(by_column(values), mean, scale, share, columns)
    return factor(columns)


@dataclass(frozen=True, eq=False)
class PickedColumns:
    """Some of the covariates, as the first link of operators that are fitted on them alone."""

    columns: NDArray[np.intp]

    def transform(self, x: Array) -> Array:
        """Columns that are picked, (m, q)."""
        return np.asfortranarray(x[:, self.columns])


Link = ColumnScaling | PickedColumns


def apply_links(links: Sequence[Link], block: Block) -> Array:
    """The covariates (m, p) as operators applied in turn transform them."""
    x = block.x
    for link in links:
        x = link.transform(x)
    return x


def refuse_collinear(source: Source, mean: Array, sd: Array, rows: int) -> None:
    """Refuse covariates that are linear combinations of others."""
    names = source.reading.covariates
    if names:
        r = stack_factors(source.map(partial(_factor_block, mean, sd, rows)), len(names))
        inputs.refuse_collinear(r, names, rows)


def _factor_block(mean: Array, sd: Array, rows: int, block: Block) -> Array:
    return factor_standardised(block.x, mean, sd, np.full(block.dt.size, 1.0 / rows))


def weigh(block: Block, pair_weight: Array | None) -> Array:
    """Row weights, times those of their start and end."""
    return block.weight if pair_weight is None else block.weight * pair_weight[block.start, block.end]


def measure_scaled(source: Source, scaling: FittedScaling, pair_weight: Array | None) -> Moments:
    """The weighted moments of the scaled covariates."""
    return add_moments(source.map(partial(_measure_scaled_block, scaling, pair_weight)))


def _measure_scaled_block(scaling: FittedScaling, pair_weight: Array | None, block: Block) -> Moments:
    return measure_values(scaling.transform(block.x), weigh(block, pair_weight))


def factor_scaled(source: Source, scaling: FittedScaling, scaled: Moments, pair_weight: Array | None) -> Array:
    """The triangular factor r (p, p) of the standardised covariates, each row times the root of its share."""
    function = partial(_factor_scaled_block, scaling, scaled, pair_weight)
    return stack_factors(source.map(function), scaled.mean.size)


def _factor_scaled_block(
    scaling: FittedScaling, scaled: Moments, pair_weight: Array | None, block: Block
) -> Array:
    share = weigh(block, pair_weight) / scaled.weight
    return factor_standardised(scaling.transform(block.x), scaled.mean, scaled.sd, share)


Ranks = NDArray[np.int64]
EDGES = 2048
SAMPLE = 32_768  # rows, about


def find_quantiles(source: Source, probabilities: Array, rows: int, links: Sequence[Link] = ()) -> Array:
    """np.quantile (q, p) of the covariates of all ``rows`` rows, as operators applied in turn transform them."""
    position = (rows - 1) * np.asarray(probabilities, dtype=np.float64)
    lower = np.floor(position).astype(np.int64)
    upper = np.minimum(lower + 1, rows - 1)
    ranks = np.unique(np.concatenate([lower, upper]))
    links = tuple(links)
    sample = np.concatenate(list(source.map(partial(_sample_block, links, max(1, rows // SAMPLE)))))
    edges = [_space_edges(column) for column in sample.T]
    values = _order_statistics(source, links, edges, ranks)
    below, above = values[np.searchsorted(ranks, lower)], values[np.searchsorted(ranks, upper)]
    return _interpolate(below, above, (position - lower)[:, None])


def _interpolate(below: Array, above: Array, part: Array) -> Array:
    """Between two order statistics, from the nearer of them, as numpy does it."""
    apart = above - below
    return np.where(part < 0.5, below + apart * part, above - apart * (1.0 - part))


def _space_edges(values: Array) -> Array:
    there = np.unique(values)
    return there[np.unique(np.linspace(0, there.size - 1, min(EDGES, there.size)).astype(np.int64))]


def _sample_block(links: tuple[Link, ...], every: int, block: Block) -> Array:
    return apply_links(links, block.take(np.arange(0, block.dt.size, every)))


def _order_statistics(source: Source, links: tuple[Link, ...], edges: list[Array], ranks: Ranks) -> Array:
    """The values (r, p) at these ranks, counted from 0, of each column."""
    below = [np.zeros(len(one), dtype=np.int64) for one in edges]
    upto = [np.zeros(len(one), dtype=np.int64) for one in edges]
    for counted in source.map(partial(_count_block, links, edges)):
        for c, (left, right) in enumerate(counted):
            below[c] += left
            upto[c] += right
    gaps = [_find_gaps(upto[c], below[c], ranks) for c in range(len(edges))]
    between = _collect(source, links, edges, gaps)
    found = np.empty((ranks.size, len(edges)))
    for c, edge in enumerate(edges):
        place = np.searchsorted(upto[c], ranks, side="right")  # the first edge with the rank at or below it
        for r, rank in enumerate(ranks.tolist()):
            e = int(place[r])
            if e < edge.size and below[c][e] <= rank:
                found[r, c] = edge[e]
            else:
                found[r, c] = between[c][e][rank - (upto[c][e - 1] if e else 0)]
    return found


def _find_gaps(upto: Ranks, below: Ranks, ranks: Ranks) -> list[int]:
    """Gaps in which a wanted rank lies; gap e is before edge e, the last one after all."""
    place = np.searchsorted(upto, ranks, side="right")
    inside = np.append(below, np.iinfo(np.int64).max)[place] > ranks
    return [int(gap) for gap in np.unique(place[inside])]


def _count_block(links: tuple[Link, ...], edges: list[Array], block: Block) -> list[tuple[Ranks, Ranks]]:
    columns = np.sort(apply_links(links, block), axis=0).T
    return [
        (np.searchsorted(column, edge), np.searchsorted(column, edge, side="right"))
        for column, edge in zip(columns, edges, strict=True)
    ]


def _collect(
    source: Source, links: tuple[Link, ...], edges: list[Array], gaps: list[list[int]]
) -> list[dict[int, Array]]:
    """The sorted values in each gap that is asked for."""
    held: list[dict[int, list[Array]]] = [{gap: [] for gap in wanted} for wanted in gaps]
    if any(gaps):
        for parts in source.map(partial(_collect_block, links, edges, gaps)):
            for c, gap, values in parts:
                held[c][gap].append(values)
    return [{gap: np.sort(np.concatenate(parts)) for gap, parts in one.items()} for one in held]


def _collect_block(
    links: tuple[Link, ...], edges: list[Array], gaps: list[list[int]], block: Block
) -> list[tuple[int, int, Array]]:
    columns = np.sort(apply_links(links, block), axis=0).T
    return list(_cut(columns, edges, gaps))


def _cut(columns: Array, edges: list[Array], gaps: list[list[int]]) -> Iterator[tuple[int, int, Array]]:
    for c, (column, edge, wanted) in enumerate(zip(columns, edges, gaps, strict=True)):
        first = np.concatenate([[0], np.searchsorted(column, edge, side="right")])
        last = np.concatenate([np.searchsorted(column, edge), [column.size]])
        for gap in wanted:
            yield c, gap, column[first[gap] : last[gap]].copy()
