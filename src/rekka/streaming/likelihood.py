"""Log-likelihood of rows that come in blocks: value, gradient and Hessian of each block, added in order.

A sample of the rows is drawn in one pass: Newton starts from the highest maximum of its likelihood, in the
coordinates of all rows, and again from its others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.model.certificate import PLATEAU
from rekka.model.family import EXPONENTIAL, Family, PairRows
from rekka.model.likelihood import Evaluation, Likelihood, PairLikelihood, Pairs, Rows, mirror
from rekka.model.moments import stack_factors
from rekka.model.restarts import Pair, draw_sample, share_sample
from rekka.scaling.operators import FittedScaling
from rekka.streaming import block_kernel
from rekka.streaming.blocks import Array, Block
from rekka.streaming.passes import FirstPass, Watched, by_column, factor, weigh

SAMPLE = 250_000  # rows, about: as many as a fit in memory has at most
REMEMBERED = 2  # a solver may go back by one step at its end


@dataclass(frozen=True, eq=False)
class Design:
    """The kernel's design, W = [1, (z - offset) mix], z the scaled covariates; ``mix`` is triangular."""

    scaling: FittedScaling
    offset: Array  # (p,)
    mix: Array  # (p, p)
    n_states: int
    pair_weight: Array | None = None  # (K, K)
    family: Family = EXPONENTIAL


def arrange(design: Design, block: Block) -> tuple[PairRows, NDArray[np.int64]]:
    """Rows of a block sorted by start and end, with their design W (p+1, m), and the order (m,) they came in."""
    m = block.dt.size
    order, states = np.empty(m, np.int64), np.empty((2, m), np.int64)
    numbers, W = np.empty((3, m)), np.empty((design.offset.size + 1, m))
    block_kernel.sort_pairs(block.start, block.end, design.n_states, order)
    z = by_column(design.scaling.transform(block.x))
    block_kernel.design_rows(z, order, design.offset, design.mix, W)
    weight = weigh(block, design.pair_weight)
    block_kernel.take_rows(block.dt, block.start, block.end, weight, order, numbers, states)
    return PairRows(W, numbers[0], numbers[1], states[0], states[1], numbers[2]), order


def evaluate_block(design: Design, beta: Array, order: int, block: Block) -> tuple[float, Array, Array]:
    """Value, gradient (K-1, p+1) and the upper triangle of the Hessian of one block."""
    rows, _ = arrange(design, block)
    size = beta.size
    gradient, hessian = np.zeros(beta.shape), np.zeros((size, size) if order > 1 else (1, 1))
    value = design.family.add_pairs(rows, beta, 0, rows.dt.size, order, gradient, hessian)
    return value, gradient, hessian


class Slopes(NamedTuple):
    """Rows of a block, their order, and each row's log-probability (m,) and slope (K-1, m) in the predictors."""

    rows: PairRows
    order: NDArray[np.int64]
    value: Array
    slope: Array


def slope_block(design: Design, beta: Array, block: Block) -> Slopes:
    """Log-probabilities of a block's rows and their slopes at beta (K-1, p+1), without weights."""
    rows, order = arrange(design, block)
    value, slope = np.empty(rows.dt.size), np.zeros((len(beta), rows.dt.size))
    design.family.score_pairs(rows, beta, 0, rows.dt.size, value, slope)
    return Slopes(rows, order, value, slope)


class PairPart(NamedTuple):
    """Rows of one start and end: the factor (p+1, p+1) and sum (p+1,) of W, their number, and some of them."""

    factor: Array
    total: Array
    rows: int
    W: Array  # (p+1, s)
    dt: Array
    weight: Array  # of as many rows as each stands for


@dataclass(frozen=True, eq=False)
class Sampled:
    """The parts of all rows, in the order of start and end; ``whole`` says whether the sample is all there are."""

    parts: dict[Pair, PairPart]
    whole: bool

    @property
    def size(self) -> int:
        """Number of rows in the sample."""
        return sum(part.dt.size for part in self.parts.values())

    def likelihood(self, design: Design) -> Likelihood:
        """The likelihood of the sample, each row counted for those it stands for."""
        parts = self.parts.items()
        start, end = (
            np.concatenate([np.full(part.dt.size, pair[place]) for pair, part in parts]) for place in (0, 1)
        )
        weight = np.concatenate([part.weight for _, part in parts])
        dt = np.concatenate([part.dt for _, part in parts])
        W = np.concatenate([part.W for _, part in parts], axis=1)
        return Likelihood.build(Rows(start, end, dt, weight, design.n_states), W.T, family=design.family)


def _describe_block(design: Design, share: Array, unit: float, block: Block) -> dict[Pair, PairPart]:
    """Parts of a block by start and end, with a share of the rows in the sample, and all that lie far out."""
    rows, _ = arrange(design, block)
    found = {}
    for pair, run, place, stands_for in draw_sample(rows, share, unit):
        W = rows.X[:, run].copy()
        total = W.sum(axis=1)
        kept = (rows.X[:, place], rows.dt[place], rows.weight[place] * stands_for)
        found[pair] = PairPart(factor(W), total, run.stop - run.start, *kept)
    return found


def _put_together(blocks: Iterable[dict[Pair, PairPart]]) -> dict[Pair, PairPart]:
    held: dict[Pair, list[PairPart]] = {}
    for block in blocks:
        for pair, part in block.items():
            held.setdefault(pair, []).append(part)
    return {pair: _join(held[pair]) for pair in sorted(held)}


def _join(parts: list[PairPart]) -> PairPart:
    return PairPart(
        stack_factors((part.factor for part in parts), parts[0].total.size),
        np.sum([part.total for part in parts], axis=0),
        sum(part.rows for part in parts),
        np.concatenate([part.W for part in parts], axis=1),
        np.concatenate([part.dt for part in parts]),
        np.concatenate([part.weight for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class BlockLikelihood(PairLikelihood):
    """The pair likelihood of a source's rows. The last evaluations are remembered: each is a pass."""

    source: Watched
    design: Design
    overview: FirstPass  # its sums by start and end have the class weights
    _last: dict[tuple[bytes, int], Evaluation] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.overview.rows

    @property
    def n_informative(self) -> int:
        """Number of rows that start in a state that can be left."""
        return int(self.overview.counts[:-1].sum())

    @property
    def pairs(self) -> Pairs:
        """Sums over the rows of each start and end."""
        return self.overview.pairs

    @property
    def family(self) -> Family:
        """The family of the hazards."""
        return self.design.family

    @property
    def n_terms(self) -> int:
        """Columns of the design, p + 1."""
        return self.design.offset.size + 1

    def evaluate(self, beta: Array, order: int = 2) -> Evaluation:
        """Log-likelihood with gradient (order 1) and Hessian (order 2); what is not asked for is zero."""
        beta = np.ascontiguousarray(beta).reshape(self.n_states - 1, self.n_terms)
        key = (beta.tobytes(), order)
        if key not in self._last:
            parts = self.source.at("likelihood").map(partial(evaluate_block, self.design, beta, order))
            self._last[key] = _add(parts, beta.size, order)
            if len(self._last) > REMEMBERED:
                del self._last[next(iter(self._last))]
        return self._last[key]

    @cached_property
    def sample(self) -> Sampled:
        """Some of the rows of each start and end, by one pass."""
        function = partial(_describe_block, self.design, share_sample(self.overview.counts, SAMPLE), self.unit)
        return Sampled(_put_together(self.source.at("sample").map(function)), self.n_informative <= SAMPLE)

    def plateau(self, beta: Array) -> float:
        """The share of rows at or under the probability that counts as a plateau."""
        count = partial(_count_plateau, self.design, np.ascontiguousarray(beta))
        return sum(self.source.at("plateau").map(count)) / self.n_rows


def _add(parts: Iterable[tuple[float, Array, Array]], size: int, order: int) -> Evaluation:
    value, gradient, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    for one, slope, curve in parts:
        value += one
        gradient += slope.ravel()
        if order > 1:
            hessian += curve
    return Evaluation(value, gradient, mirror(hessian) if order > 1 else hessian)


def _count_plateau(design: Design, beta: Array, block: Block) -> int:
    return int((~(slope_block(design, beta, block).value > PLATEAU)).sum())
