"""Exact quantiles of columns that are never sorted whole.

1. A sample of evenly spaced rows gives edges, about equally many rows between two of them.
2. One pass counts the rows below and at every edge: each rank that is wanted is at an edge, or between two.
3. Where it is between two, another pass collects the values there: for all percentiles about a twentieth of them.

The values are those of np.quantile, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rekka.scaling.operators import ColumnScaling
from rekka.streaming.blocks import Array, Block, Source
from rekka.streaming.passes import apply_links

Ranks = NDArray[np.int64]
EDGES = 2048
SAMPLE = 32_768  # rows, about


def find_quantiles(source: Source, probabilities: Array, rows: int, links: Sequence[ColumnScaling] = ()) -> Array:
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


def _sample_block(links: tuple[ColumnScaling, ...], every: int, block: Block) -> Array:
    return apply_links(links, block.take(np.arange(0, block.dt.size, every)))


def _order_statistics(source: Source, links: tuple[ColumnScaling, ...], edges: list[Array], ranks: Ranks) -> Array:
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


def _count_block(links: tuple[ColumnScaling, ...], edges: list[Array], block: Block) -> list[tuple[Ranks, Ranks]]:
    columns = np.sort(apply_links(links, block), axis=0).T
    return [
        (np.searchsorted(column, edge), np.searchsorted(column, edge, side="right"))
        for column, edge in zip(columns, edges, strict=True)
    ]


def _collect(
    source: Source, links: tuple[ColumnScaling, ...], edges: list[Array], gaps: list[list[int]]
) -> list[dict[int, Array]]:
    """The sorted values in each gap that is asked for."""
    held: list[dict[int, list[Array]]] = [{gap: [] for gap in wanted} for wanted in gaps]
    if any(gaps):
        for parts in source.map(partial(_collect_block, links, edges, gaps)):
            for c, gap, values in parts:
                held[c][gap].append(values)
    return [{gap: np.sort(np.concatenate(parts)) for gap, parts in one.items()} for one in held]


def _collect_block(
    links: tuple[ColumnScaling, ...], edges: list[Array], gaps: list[list[int]], block: Block
) -> list[tuple[int, int, Array]]:
    columns = np.sort(apply_links(links, block), axis=0).T
    return list(_cut(columns, edges, gaps))


def _cut(columns: Array, edges: list[Array], gaps: list[list[int]]) -> Iterator[tuple[int, int, Array]]:
    for c, (column, edge, wanted) in enumerate(zip(columns, edges, gaps, strict=True)):
        first = np.concatenate([[0], np.searchsorted(column, edge, side="right")])
        last = np.concatenate([np.searchsorted(column, edge), [column.size]])
        for gap in wanted:
            yield c, gap, column[first[gap] : last[gap]].copy()
