"""The rows of each start and end: their triangular factor, and a sample of them to begin with.

The highest maximum of the sample's likelihood, in the coordinates of all rows, is where Newton starts; the others
are where it starts again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rekka.model.coordinates import Coordinates
from rekka.model.likelihood import Likelihood, Rows
from rekka.model.restarts import Fewer, choose_rows, share_sample
from rekka.streaming.blocks import Array, Block
from rekka.streaming.likelihood import BlockLikelihood, Design, arrange
from rekka.streaming.passes import factor, stack_factors

SAMPLE = 250_000  # rows, about: as many as a fit in memory has at most
Pair = tuple[int, int]  # start and end, 0-based


class Part(NamedTuple):
    """Of the rows of one start and end: the factor (p+1, p+1) and sum (p+1,) of W, how many, and some of them."""

    factor: Array
    total: Array
    rows: int
    W: Array  # (p+1, s)
    dt: Array
    weight: Array  # of as many rows as each stands for


@dataclass(frozen=True, eq=False)
class Sampled:
    """The parts of all rows, in the order of start and end; ``whole`` says whether the sample is all there are."""

    parts: dict[Pair, Part]
    whole: bool

    @property
    def size(self) -> int:
        """How many rows are in the sample."""
        return sum(part.dt.size for part in self.parts.values())

    def in_coordinates(self, coordinates: Coordinates[BlockLikelihood]) -> Fewer:
        """The sample's likelihood in the coordinates of all rows."""
        parts = {field.name: getattr(coordinates, field.name) for field in fields(coordinates)}
        return Fewer(Coordinates(**parts | {"likelihood": self._likelihood(coordinates.likelihood.design)}))

    def _likelihood(self, design: Design) -> Likelihood:
        """Of the sample."""
        parts = self.parts.items()
        start, end = (
            np.concatenate([np.full(part.dt.size, pair[place]) for pair, part in parts]) for place in (0, 1)
        )
        weight = np.concatenate([part.weight for _, part in parts])
        dt = np.concatenate([part.dt for _, part in parts])
        W = np.concatenate([part.W for _, part in parts], axis=1)
        return Likelihood.build(Rows(start, end, dt, weight, design.n_states), W.T, family=design.family)


def sample_rows(likelihood: BlockLikelihood) -> Sampled:
    """One pass over all rows."""
    share = share_sample(likelihood.counts, SAMPLE)
    function = partial(_describe_block, likelihood.design, share, likelihood.unit)
    return Sampled(_put_together(likelihood.source.at("sample").map(function)), likelihood.n_informative <= SAMPLE)


def _describe_block(design: Design, share: Array, unit: float, block: Block) -> dict[Pair, Part]:
    """Of each start and end, with a share of the rows in the sample, and all that lie far out."""
    rows = arrange(design, block)
    edges = np.flatnonzero(np.diff(rows.start * design.n_states + rows.end, prepend=-1, append=-1))
    found = {}
    for low, high in pairwise(edges.tolist()):
        pair = int(rows.start[low]), int(rows.end[low])
        W = rows.W[:, low:high].copy()
        some, stands_for = choose_rows(W, rows.weight[low:high], float(share[pair]), unit)
        place, total = low + some, W.sum(axis=1)
        kept = (rows.W[:, place], rows.dt[place], rows.weight[place] * stands_for)
        found[pair] = Part(factor(W), total, high - low, *kept)
    return found


def _put_together(blocks: Iterable[dict[Pair, Part]]) -> dict[Pair, Part]:
    held: dict[Pair, list[Part]] = {}
    for block in blocks:
        for pair, part in block.items():
            held.setdefault(pair, []).append(part)
    return {pair: _join(held[pair]) for pair in sorted(held)}


def _join(parts: list[Part]) -> Part:
    return Part(
        stack_factors((part.factor for part in parts), parts[0].total.size),
        np.sum([part.total for part in parts], axis=0),
        sum(part.rows for part in parts),
        np.concatenate([part.W for part in parts], axis=1),
        np.concatenate([part.dt for part in parts]),
        np.concatenate([part.weight for part in parts]),
    )
