"""The log-likelihood of rows that come in blocks: each block's value, gradient and Hessian, added in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.model.certificate import PLATEAU
from rekka.model.family import EXPONENTIAL, Family, PairRows
from rekka.model.likelihood import Evaluation, Pairs, crude_coefficients, mirror
from rekka.scaling.operators import FittedScaling
from rekka.streaming import block_kernel
from rekka.streaming.blocks import Array, Block, States
from rekka.streaming.passes import Watched, by_column, weigh

REMEMBERED = 2  # a solver may go back by one step at its end


@dataclass(frozen=True, eq=False)
class Design:
    """How rows become the kernel's: W = [1, (z - offset) mix], z the scaled covariates, sorted by their states.

    ``mix`` is upper triangular.
    """

    scaling: FittedScaling
    offset: Array  # (p,)
    mix: Array  # (p, p)
    n_states: int
    pair_weight: Array | None = None  # (K, K)
    family: Family = EXPONENTIAL


class Arranged(NamedTuple):
    """A block as the kernel takes it: rows of one start and end follow each other; W is (p+1, m)."""

    W: Array
    dt: Array
    log_dt: Array
    weight: Array
    start: States
    end: States
    order: NDArray[np.int64]

    @property
    def pairs(self) -> PairRows:
        """The rows as the family takes them."""
        return PairRows(self.W, self.dt, self.log_dt, self.start, self.end, self.weight)


def arrange(design: Design, block: Block) -> Arranged:
    """Sort a block by start and end, and make its design."""
    m = block.dt.size
    order, states = np.empty(m, np.int64), np.empty((2, m), np.int64)
    numbers, W = np.empty((3, m)), np.empty((design.offset.size + 1, m))
    block_kernel.sort_pairs(block.start, block.end, design.n_states, order)
    z = by_column(design.scaling.transform(block.x))
    block_kernel.design_rows(z, order, design.offset, design.mix, W)
    weight = weigh(block, design.pair_weight)
    block_kernel.take_rows(block.dt, block.start, block.end, weight, order, numbers, states)
    return Arranged(W, numbers[0], numbers[1], numbers[2], states[0], states[1], order)


def evaluate_block(design: Design, beta: Array, order: int, block: Block) -> tuple[float, Array, Array]:
    """Value, gradient (K-1, p+1) and the upper triangle of the Hessian of one block."""
    rows = arrange(design, block)
    size = beta.size
    gradient, hessian = np.zeros(beta.shape), np.zeros((size, size) if order > 1 else (1, 1))
    value = design.family.add_pairs(rows.pairs, beta, 0, rows.dt.size, order, gradient, hessian)
    return value, gradient, hessian


def slope_block(design: Design, beta: Array, block: Block) -> tuple[Arranged, Array, Array]:
    """The block as arranged, each row's log-probability (m,), and its slope (K-1, m) in the predictors."""
    rows = arrange(design, block)
    value, slope = np.empty(rows.dt.size), np.zeros((len(beta), rows.dt.size))
    design.family.score_pairs(rows.pairs, beta, 0, rows.dt.size, value, slope)
    return rows, value, slope


@dataclass(frozen=True, eq=False)
class BlockLikelihood:
    """The likelihood of a source's rows at any beta (K-1, p+1). The last evaluations are remembered."""

    source: Watched
    design: Design
    counts: NDArray[np.int64]  # rows of each start and end (K, K)
    pairs: Pairs
    _last: dict[tuple[bytes, int], Evaluation] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return int(self.counts.sum())

    @property
    def n_informative(self) -> int:
        """How many rows start in a state that can be left."""
        return int(self.counts[:-1].sum())

    @property
    def unit(self) -> float:
        """Mean weight of the informative rows."""
        return self.pairs.unit(self.n_informative)

    @property
    def n_states(self) -> int:
        """K, its last state absorbing."""
        return self.design.n_states

    @property
    def n_terms(self) -> int:
        """p + 1."""
        return self.design.offset.size + 1

    def start(self, shift: Array | float = 0.0) -> Array:
        """Coefficients of crude rates, moved, and zero slopes, flattened."""
        return crude_coefficients(self, self.design.family, self.n_terms, shift).ravel()

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
    _, value, _ = slope_block(design, beta, block)
    return int((~(value > PLATEAU)).sum())
