"""Whether the likelihood of rows that come in blocks has a finite maximum.

Where a sample of the rows rules every direction out, so do all of them, and that is the usual end. Otherwise
passes look for the rows that a direction violates most, until it violates none or there is none left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rekka.model.coordinates import Coordinates
from rekka.model.layout import Layout
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
from rekka.streaming.passes import Watched
from rekka.streaming.sample import Sampled

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
