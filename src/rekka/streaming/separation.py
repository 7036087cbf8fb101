"""The rows of each start and end: their triangular factor, and a sample of them to begin with.

The highest maximum of the sample's likelihood, in the coordinates of all rows, is where Newton starts; the others
are where it starts again.

Whether the likelihood of rows that come in blocks has a finite maximum.

Where a sample of the rows rules every direction out, so do all of them, and that is the usual end. Otherwise
passes look for the rows that a direction violates most, until it violates none or there is none left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rekka.model.coordinates import Coordinates, Layout
from rekka.model.likelihood import Likelihood, Rows
from rekka.model.restarts import Fewer, choose_rows, share_sample
from rekka.model.separation import (
    FEASIBILITY,
    ROWS_AT_A_TIME,
    Columns,
    Constraints,
    Mask,
    Separation,
    list_directions,
    separate,
    to_length_one,
)
from rekka.streaming.blocks import Array, Block
from rekka.streaming.likelihood import BlockLikelihood, Design, arrange
from rekka.streaming.passes import Watched, factor, stack_factors

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


ENOUGH = 20_000  # constraints to begin with, about
Group = tuple[list[int], Array]  # states, 0-based, and the map (K-1, p+1, q) from directions to coefficients


@dataclass(frozen=True, eq=False)
class StreamedConstraints:
    """The constraints of a group of states: the triangular factor of all of them, and a sample."""

    source: Watched
    design: Design
    group: Group
    triangle: Array
    total: Array
    rows: Array
    must_be_zero: Mask
    left: NDArray[np.int64]
    stayed: NDArray[np.int64]
    whole: bool

    @property
    def known(self) -> tuple[Array, Mask]:
        """The sample."""
        return self.rows, self.must_be_zero

    def factor(self, columns: Columns) -> tuple[Array, Array]:
        """Singular values and right singular vectors, one a row, of all rows in these columns."""
        _, sizes, right = np.linalg.svd(self.triangle[:, columns], full_matrices=False)
        return sizes, right

    def aim(self, columns: Columns, basis: Array) -> Array:
        """The sum of all rows."""
        return np.asarray(self.total[columns] @ basis)

    def look(self, columns: Columns, basis: Array, e: Array, certain: bool) -> tuple[float, Array, Mask]:
        """The largest U e of all rows in a basis, and rows that violate what is asked, the worst first."""
        function = partial(_look_block, self.design, self.group, columns, basis, e, certain)
        parts = list(self.source.map(function))
        violation = np.concatenate([part[1] for part in parts])
        worst = np.argsort(-violation, kind="stable")[:ROWS_AT_A_TIME]
        rows, zero = (np.concatenate([part[place] for part in parts])[worst] for place in (2, 3))
        return max(part[0] for part in parts), rows, zero


def find_streamed_separations(
    coordinates: Coordinates[BlockLikelihood], layout: Layout, ridge: float, sample: Sampled
) -> list[Separation]:
    """All states, or groups of states with shared coefficients, that have a separating direction."""
    likelihood = coordinates.likelihood
    source = likelihood.source.at("separation")

    def constrain(states: list[int], to_gamma: Array) -> Constraints:
        return _constrain(source, likelihood.design, (states, to_gamma), sample)

    found = (
        separate(coordinates, layout, *group, constrain) for group in list_directions(coordinates, layout, ridge)
    )
    return [one for one in found if one is not None]


def _constrain(source: Watched, design: Design, group: Group, sample: Sampled) -> StreamedConstraints:
    """The rows that ended in a state of the group, with a minus, and those that left it."""
    states, to_gamma = group
    q, last = to_gamma.shape[-1], design.n_states - 1
    factors, total, rows, zero = [np.zeros((0, q))], np.zeros(q), [np.zeros((0, q))], [np.zeros(0, bool)]
    left, stayed = np.zeros((2, len(states)), np.int64)
    thin = max(1, sample.size // ENOUGH)
    for place, k in enumerate(states):
        for (start, end), part in sample.parts.items():
            if not start <= k <= end:
                continue
            sign = -1.0 if end == k else 1.0
            factors.append(part.factor @ to_gamma[k])
            total += sign * (part.total @ to_gamma[k])
            some = part.W[:, ::thin].T
            rows.append(sign * (some @ to_gamma[k]))
            zero.append(np.full(len(some), k < end < last))
            (left if end > k else stayed)[place] += part.rows
    return StreamedConstraints(
        source, design, group, np.concatenate(factors), total, np.concatenate(rows), np.concatenate(zero), left,
        stayed, whole=sample.whole and thin == 1,
    )  # fmt: skip


def _list_rows(design: Design, group: Group, block: Block) -> Iterator[tuple[Array, Mask]]:
    """The constraints of a block, and which of them must be zero."""
    rows = arrange(design, block)
    states, to_gamma = group
    for k in states:
        ended = rows.end == k
        passed = (rows.start <= k) & (rows.end > k)
        yield -rows.W[:, ended].T @ to_gamma[k], np.zeros(ended.sum(), bool)
        yield rows.W[:, passed].T @ to_gamma[k], rows.end[passed] < design.n_states - 1


def _look_block(
    design: Design, group: Group, columns: Columns, basis: Array, e: Array, certain: bool, block: Block
) -> tuple[float, Array, Array, Mask]:
    kinds = list(_list_rows(design, group, block))
    C, zero = (np.concatenate([kind[place] for kind in kinds]) for place in (0, 1))
    side = to_length_one(C[:, columns] @ basis) @ e
    violation = np.where(zero & certain, np.abs(side), -side)
    worst = np.argsort(-violation, kind="stable")[:ROWS_AT_A_TIME]
    worst = worst[violation[worst] > FEASIBILITY]
    return float(side.max(initial=-np.inf)), violation[worst], C[worst], zero[worst]
