"""What the first passes over the rows find: ranges, counts, moments and the triangular factor of their columns.

Every function here is of one block, or puts the results of blocks together in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.core.errors import BadStates, InputError
from rekka.model import inputs
from rekka.model.clock import Clock
from rekka.model.likelihood import Pairs
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
        """Which columns are what."""
        return self.source.reading

    def without_groups(self) -> Watched:
        """The same: it asks for them only where a pass says so."""
        return self

    def at(self, stage: str, *, grouped: bool = False) -> Watched:
        """The same for another purpose, which may need the rows' groups."""
        return replace(self, stage=stage, grouped=grouped)

    def map(self, function: Callable[[Block], Result]) -> Iterator[Result]:
        """The function's result for each block, in their order."""
        if self.on_pass is not None:
            self.on_pass(self.stage)
        source = self.source if self.grouped else self.source.without_groups()
        return source.map(partial(_take_block, self.clock, function) if self.clock.columns else function)


def _take_block(clock: Clock, function: Callable[[Block], Result], block: Block) -> Result:
    return function(block._replace(x=clock.take(block.x, block.dt)))


class Overview(NamedTuple):
    """Rows, the range of each covariate (p,), sums over the rows of each start and end, (K, K); some groups."""

    rows: int
    low: Array
    high: Array
    counts: NDArray[np.int64]
    pairs: Pairs
    marked: NDArray[np.uint64]  # hashes of one group in MARKED, where groups are read

    def with_states(self, n_states: int) -> Overview:
        """The same with room for so many states."""
        room = (0, n_states - len(self.counts))
        weight, years = (np.pad(table, (room, room)) for table in self.pairs)
        return self._replace(counts=np.pad(self.counts, (room, room)), pairs=Pairs(weight, years))


def look_over(source: Source) -> Overview:
    """The first pass, in which every value is checked."""
    whole: Overview | None = None
    for part in source.map(_look_over_block):
        whole = part if whole is None else _add_overviews(whole, part)
    if whole is None:
        raise InputError("The table has no rows. At least one is needed.")
    inputs.refuse_weightless(whole.pairs.weight)
    return whole


def _look_over_block(block: Block) -> Overview:
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
    return Overview(block.dt.size, low, high, counts, pairs, np.unique(group[group % np.uint64(MARKED) == 0]))


def _add_overviews(one: Overview, other: Overview) -> Overview:
    n_states = max(len(one.counts), len(other.counts))
    one, other = one.with_states(n_states), other.with_states(n_states)
    pairs = Pairs(*(mine + theirs for mine, theirs in zip(one.pairs, other.pairs, strict=True)))
    low, high = np.minimum(one.low, other.low), np.maximum(one.high, other.high)
    marked = np.union1d(one.marked, other.marked)
    return Overview(one.rows + other.rows, low, high, one.counts + other.counts, pairs, marked)


class Moments(NamedTuple):
    """Weight, mean (p,) and weighted squares of the deviations from it (p,)."""

    weight: float
    mean: Array
    squares: Array

    @classmethod
    def of(cls, values: Array, weight: Array | None = None) -> Moments:
        """Of values (m, p)."""
        m, p = values.shape
        mean, squares = np.zeros(p), np.zeros(p)
        weight = np.ones(m) if weight is None else weight
        if not weight.any():
            return cls(0.0, mean, squares)
        return cls(block_kernel.add_moments(by_column(values), weight, mean, squares), mean, squares)

    @property
    def sd(self) -> Array:
        """Standard deviations (p,), ddof 0."""
        return np.sqrt(self.squares / self.weight)


def add_moments(parts: Iterable[Moments]) -> Moments:
    """Of all parts together (Chan, Golub and LeVeque 1983)."""
    whole: Moments | None = None
    for part in parts:
        if whole is None or whole.weight == 0:
            whole = part
        elif part.weight:
            weight, apart = whole.weight + part.weight, part.mean - whole.mean
            mean = whole.mean + apart * (part.weight / weight)
            between = np.square(apart) * (whole.weight * (part.weight / weight))
            whole = Moments(weight, mean, whole.squares + part.squares + between)
    assert whole is not None  # there is at least one block
    return whole


def stack_factors(parts: Iterable[Array], p: int) -> Array:
    """The triangular factor r (p, p) of all rows from those of the blocks (Demmel and others 2012)."""
    r: Array = np.zeros((0, p))
    for part in parts:
        r = np.asarray(np.linalg.qr(np.concatenate([r, part]), mode="r"))
    return r


def by_column(values: Array) -> Array:
    """The same as (p, m), each covariate in one piece."""
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


def apply_links(links: Sequence[ColumnScaling], block: Block) -> Array:
    """The covariates (m, p) as operators applied in turn transform them."""
    x = block.x
    for link in links:
        x = link.transform(x)
    return x


def refuse_collinear(source: Source, mean: Array, sd: Array, rows: int) -> None:
    """Refuse covariates that no data could tell apart."""
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
    return Moments.of(scaling.transform(block.x), weigh(block, pair_weight))


def orthonormalise(source: Source, scaling: FittedScaling, scaled: Moments, pair_weight: Array | None) -> Array:
    """The triangular factor r (p, p) of the standardised covariates, each row times the root of its share."""
    p = scaled.mean.size
    return stack_factors(source.map(partial(_orthonormalise_block, scaling, scaled, pair_weight)), p)


def _orthonormalise_block(
    scaling: FittedScaling, scaled: Moments, pair_weight: Array | None, block: Block
) -> Array:
    share = weigh(block, pair_weight) / scaled.weight
    return factor_standardised(scaling.transform(block.x), scaled.mean, scaled.sd, share)
