"""Standard errors clustered by bridge, where there are more bridges than fit into memory at once.

    meat = sum_g s_g s_g',   s_g the sum of the scores of bridge g's rows

Bridges are known by a hash of their names. As many of them at a time as fit, a range of hashes, have their scores
added up in a table, in a pass of their own; rows of other bridges are not computed in it.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.model.inference import Meat, square_scores
from rekka.streaming import block_kernel
from rekka.streaming.blocks import Array, Block
from rekka.streaming.likelihood import BlockLikelihood, Design, slope_block
from rekka.streaming.passes import MARKED

Hashes = NDArray[np.uint64]
SCORE_BYTES = 256_000_000  # for the sums of the bridges of one pass
SCORE_SHARE = 16  # of a limit they have one part in so many; what is read and made on the way takes most of it
ALL = 1 << 64  # hashes there can be
FULL = 0.8  # share of the places beyond which looking for one takes too long
ROOM = 0.95  # of that, planned to be taken
CHUNK = 65_536


def leave_for_scores(limit: int) -> int:
    """Bytes of a limit that the sums of bridges may take."""
    return min(SCORE_BYTES, limit // SCORE_SHARE)


class GroupSums(NamedTuple):
    """Sums (c, F) of groups by their hash (c,); ``taken`` says which of the places are."""

    hashes: Hashes
    taken: NDArray[np.bool_]
    sums: Array

    @classmethod
    def of(cls, size: int, places: int) -> GroupSums:
        """An empty one for sums of so many numbers."""
        return cls(np.zeros(places, np.uint64), np.zeros(places, bool), np.zeros((places, size)))

    def clear(self) -> None:
        """Take all out."""
        for part in self:
            part[:] = 0


def add_streamed_scores(
    likelihood: BlockLikelihood, basis: Array, beta: Array, marked: int, score_bytes: int = SCORE_BYTES
) -> Meat:
    """The meat of all groups; scores (F,) are turned by ``basis`` (F, P). One group in MARKED is ``marked``."""
    beta = np.ascontiguousarray(beta)
    places = int(min(score_bytes // (8 * beta.size + 9), 2 * likelihood.n_rows)) + 1
    table = GroupSums.of(beta.size, places)
    width = -(-ALL // max(1, -(-marked * MARKED // max(int(ROOM * FULL * places), 1))))
    squares, groups, low = np.zeros((basis.shape[1], basis.shape[1])), 0, 0
    while low < ALL:
        if not _fill(table, likelihood, beta, low, min(low + width, ALL) - 1):
            width = width * 3 // 4
            continue
        taken = np.flatnonzero(table.taken)
        for first in range(0, taken.size, CHUNK):
            turned = table.sums[taken[first : first + CHUNK]] @ basis
            squares += turned.T @ turned
        groups, low = groups + taken.size, low + width
    return Meat(squares, groups)


def add_streamed_row_scores(likelihood: BlockLikelihood, basis: Array, beta: Array) -> Meat:
    """The meat of rows that do not depend on each other and have class weights, those of the design."""
    function = partial(_square_block, likelihood.design, basis, np.ascontiguousarray(beta))
    squares = sum(likelihood.source.at("scores by row").map(function), np.zeros((basis.shape[1],) * 2))
    return Meat(squares, likelihood.n_informative, by_row=True)


def _square_block(design: Design, basis: Array, beta: Array, block: Block) -> Array:
    """The sum (P, P) of the outer products of the scores of a block's rows."""
    rows, _, _, slope = slope_block(design, beta, block)
    classes = 1.0 if design.pair_weight is None else design.pair_weight[rows.start, rows.end]
    return square_scores(rows.X, slope.T, np.sqrt(rows.weight * classes), basis)


def _fill(table: GroupSums, likelihood: BlockLikelihood, beta: Array, lowest: int, highest: int) -> bool:
    """One pass for the groups of a range; whether there was room for them."""
    table.clear()
    source = likelihood.source.at("scores by bridge", grouped=True)
    most, count = int(FULL * len(table.taken)) + 1, 0
    function = partial(_score_block, likelihood.design, beta, np.uint64(lowest), np.uint64(highest))
    for hashes, rows in source.map(function):
        count = block_kernel.add_hashed(table.hashes, table.taken, table.sums, hashes, rows, count, most)
        if count > most:
            return False
    return True


def _score_block(
    design: Design, beta: Array, lowest: np.uint64, highest: np.uint64, block: Block
) -> tuple[Hashes, Array]:
    """The hash of each row whose group is in the range, and its score (m, F)."""
    group = block.group
    assert group is not None  # the reading names a column of them
    here = (group >= lowest) & (group <= highest) & (block.start < design.n_states - 1)
    rows, order, _, slope = slope_block(design, beta, block if here.all() else block.take(here))
    score = np.empty((rows.dt.size, beta.size))
    block_kernel.score_rows(slope, rows.X, rows.weight, score)
    return group[here][order], score
