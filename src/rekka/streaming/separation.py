"""Whether the likelihood of rows that come in blocks has a finite maximum.

Where a sample of the rows rules every separating direction out, so do all rows, and that is the usual end.
Otherwise passes look for the rows that a direction violates most, until it violates none or there is none left.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rekka.model.separation import (
    FEASIBILITY,
    ROWS_AT_A_TIME,
    Columns,
    Constraints,
    Mask,
    constrain_rows,
    to_length_one,
)
from rekka.streaming.blocks import Array, Block
from rekka.streaming.likelihood import BlockLikelihood, Design, arrange
from rekka.streaming.passes import Watched

ENOUGH = 20_000  # constraints to begin with, about
Group = tuple[list[int], Array]  # states, 0-based, and the map (K-1, p+1, q) from directions to coefficients


def constrain_sampled(likelihood: BlockLikelihood, states: list[int], to_gamma: Array) -> Constraints:
    """The constraints of the sample's rows, the triangular factor of all of them, and a search in passes."""
    q, last = to_gamma.shape[-1], likelihood.n_states - 1
    factors, total, rows, zero = [np.zeros((0, q))], np.zeros(q), [np.zeros((0, q))], [np.zeros(0, bool)]
    left, stayed = np.zeros((2, len(states)), np.int64)
    sample = likelihood.sample
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
    source = likelihood.source.at("separation")
    return Constraints(
        np.concatenate(rows),
        np.concatenate(zero),
        left,
        stayed,
        whole=sample.whole and thin == 1,
        factor=np.concatenate(factors),
        total=total,
        search=partial(_search, source, likelihood.design, (states, to_gamma)),
    )


def _search(
    source: Watched, design: Design, group: Group, columns: Columns, basis: Array, e: Array, certain: bool
) -> tuple[float, Array, Mask]:
    """The largest U e of all rows in a basis, and rows that violate what is asked, the worst first."""
    parts = list(source.map(partial(_search_block, design, group, columns, basis, e, certain)))
    violation = np.concatenate([part[1] for part in parts])
    worst = np.argsort(-violation, kind="stable")[:ROWS_AT_A_TIME]
    rows, zero = (np.concatenate([part[place] for part in parts])[worst] for place in (2, 3))
    return max(part[0] for part in parts), rows, zero


def _search_block(
    design: Design, group: Group, columns: Columns, basis: Array, e: Array, certain: bool, block: Block
) -> tuple[float, Array, Array, Mask]:
    C, zero, _ = constrain_rows(arrange(design, block)[0], design.n_states, *group)
    side = to_length_one(C[:, columns] @ basis) @ e
    violation = np.where(zero & certain, np.abs(side), -side)
    worst = np.argsort(-violation, kind="stable")[:ROWS_AT_A_TIME]
    worst = worst[violation[worst] > FEASIBILITY]
    return float(side.max(initial=-np.inf)), violation[worst], C[worst], zero[worst]
