"""Standard errors clustered by bridge, where there are more bridges than fit into memory at once.

    meat = sum_g s_g s_g',   s_g the sum of the scores of bridge g's rows

A first pass lists the bridges, as hashes of their names. Then so many of them at a time as fit have their scores
added up, in a pass of their own; rows of other bridges are not computed in it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from rekka.model.inference import Meat
from rekka.streaming import block_kernel
from rekka.streaming.blocks import Array, Block, Source
from rekka.streaming.likelihood import BlockLikelihood, Design, slope_block

Hashes = NDArray[np.uint64]
SCORE_BYTES = 256_000_000  # for the sums of the bridges of one pass
MERGE = 1 << 22  # hashes that are kept before doubles are taken out
CHUNK = 65_536


def list_groups(source: Source) -> Hashes:
    """The hashes of all groups, sorted."""
    merged, waiting = np.empty(0, np.uint64), []
    for part in source.map(_list_block):
        waiting.append(part)
        if sum(one.size for one in waiting) > MERGE:
            merged, waiting = np.unique(np.concatenate([merged, *waiting])), []
    return np.unique(np.concatenate([merged, *waiting]))


def _list_block(block: Block) -> Hashes:
    assert block.group is not None  # the reading names a column of them
    return np.unique(block.group)


def add_streamed_scores(
    likelihood: BlockLikelihood, basis: Array, beta: Array, score_bytes: int = SCORE_BYTES
) -> Meat:
    """The meat of all groups; scores (F,) are turned by ``basis`` (F, P)."""
    source = likelihood.source
    groups = list_groups(source.at("bridges", grouped=True))
    at_once = max(1, score_bytes // (8 * beta.size))
    squares = np.zeros((basis.shape[1], basis.shape[1]))
    sums = np.empty((min(at_once, groups.size), beta.size))
    for first in range(0, groups.size, at_once):
        some = groups[first : first + at_once]
        scores = sums[: some.size]
        scores[:] = 0.0
        function = partial(_score_block, likelihood.design, np.ascontiguousarray(beta), some[0], some[-1])
        for hashes, rows in source.at("scores by bridge", grouped=True).map(function):
            block_kernel.add_rows(scores, np.searchsorted(some, hashes), rows)
        for low in range(0, some.size, CHUNK):
            turned = scores[low : low + CHUNK] @ basis
            squares += turned.T @ turned
    return Meat(squares, groups.size)


def _score_block(
    design: Design, beta: Array, lowest: np.uint64, highest: np.uint64, block: Block
) -> tuple[Hashes, Array]:
    """The hash of each row whose group is in the range, and its score (m, F)."""
    group = block.group
    assert group is not None  # the reading names a column of them
    here = (group >= lowest) & (group <= highest)
    rows, _, slope = slope_block(design, beta, block if here.all() else block.take(here))
    score = np.empty((rows.dt.size, beta.size))
    block_kernel.score_rows(slope, rows.W, rows.weight, score)
    return group[here][rows.order], score
