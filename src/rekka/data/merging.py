"""Ratings that are read as one, because too few records leave them for a model to know how fast that happens.

A boundary between two ratings is kept if enough transitions cross it. Of a scale from 9 to 0 the ends are seldom
crossed: bridges are repaired before they come to 3. Merging leaves all other boundaries and their crossings alone,
so that one count of the moves is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import polars as pl

from rekka.core.errors import count_of
from rekka.data.mapping import State
from rekka.data.panel import Panel
from rekka.data.partition import find_training
from rekka.data.reading import TableReading
from rekka.data.values import Scale, read_states

FEW_RATINGS = 5  # scales up to this length are made for few records: a to e, 1 to 5, I to IV
# Departures from a rating that a component needs, on average, in the rows that a study trains on. The 95 %
# interval of a rate known by n departures is a factor of exp(1.96 / sqrt(n)) either way: less than 2 for 10. Of
# the twelve components of four simulated exports (400 to 600 bridges, four covariates) eleven then had a certified
# maximum that was stable across resamples.
ENOUGH_DEPARTURES = 10
FEWER_DEPARTURES = (ENOUGH_DEPARTURES, 5, 2)  # what a small table has to do with, to keep three ratings
POOR = ("5", "4")  # where a bridge becomes Poor (23 CFR 490.409), which owners ask for: kept with half as many
LEAST_BOUNDARIES = 2

Group = tuple[int, ...]  # states from 1 that are one
Label = str | int | list[str | int]


def is_mergeable(panel: Panel) -> bool:
    """Whether ratings may be merged: on a long scale that was recognised, or given by its two ends."""
    given = State() if panel.reading is None else State.model_validate(panel.reading.given)
    return len(panel.scale.names) > FEW_RATINGS and given.merge and given.labels is None and given.bands is None


@dataclass(frozen=True)
class Groups:
    """States that are one, and the departures from each state but the last in the rows that a study trains on."""

    states: tuple[Group, ...]
    departures: tuple[int, ...]
    enough: int = ENOUGH_DEPARTURES  # departures a component that keep a boundary


def choose_groups(moves: pl.DataFrame, names: Sequence[str]) -> Groups:
    """Choose the states that are one, of transitions counted by case, states and visits.

    Where fewer than two boundaries between states have enough departures, fewer have to do; all states stay where
    that does not help either.
    """
    rows, share = find_training(moves)
    worse = rows.filter(pl.col("state_2") > pl.col("state_1"))
    components, boundaries = max(worse["case"].n_unique(), 1), list(enumerate(pairwise(names), start=1))
    crossed = [worse.filter(pl.col("state_1") <= k, pl.col("state_2") > k)["transitions"] for k, _ in boundaries]
    departures = tuple(round(share * int(counts.sum())) for counts in crossed)
    for enough in FEWER_DEPARTURES:
        needed = {pair: components * enough / (2 if pair == POOR else 1) for _, pair in boundaries}
        cuts = [k for k, pair in boundaries if departures[k - 1] >= needed[pair]]
        if len(cuts) >= LEAST_BOUNDARIES:
            groups = tuple(tuple(range(a + 1, b + 1)) for a, b in pairwise([0, *cuts, len(names)]))
            return Groups(groups, departures, enough)
    return Groups(tuple((k,) for k in range(1, len(names) + 1)), departures)


def merge_panel(panel: Panel, moves: pl.DataFrame) -> Panel:
    """Panel on the scale that the moves are enough for, as if its groups were given as labels; and notes."""
    names = panel.scale.names
    groups = choose_groups(moves, names)
    merged = [group for group in groups.states if len(group) > 1]
    if not merged:
        return panel
    labels: list[Label] = [
        names[group[0] - 1] if len(group) == 1 else [names[k - 1] for k in group] for group in groups.states
    ]
    notes = [f"{panel.name}: {_explain(names, group, groups)}" for group in merged]
    return apply_scale(replace(panel, notes=(*panel.notes, *notes)), State(labels=labels))


def apply_scale(panel: Panel, spec: State) -> Panel:
    """Panel with the ratings of each group of ``spec.labels`` as one; its reading is that of these groups."""
    names, was = panel.scale.names, panel.scale.state or State()
    spec = spec.model_copy(update={"missing": was.missing})
    read, scale = read_states(pl.Series(names), pl.Series([1] * len(names)), spec)
    places = dict(enumerate(read["state"].to_list(), start=1))
    state = pl.col("state").replace_strict(places, default=None, return_dtype=pl.Int16)
    return replace(
        panel,
        visits=panel.visits.with_columns(state=state),
        scale=replace(scale, turn=panel.scale.turn, repairs=panel.scale.repairs),
        reading=_settle(panel.reading, scale),
    )


def _settle(reading: TableReading | None, scale: Scale) -> TableReading | None:
    """Reading with the merged scale in the place of the recognised one."""
    if reading is None or scale.state is None:
        return reading
    state = scale.state.model_dump(mode="json", exclude_defaults=True)
    return reading.model_copy(update={"mapping": reading.mapping | {"state": state}, "labels": scale.names})


def _explain(names: Sequence[str], group: Group, groups: Groups) -> str:
    """Sentence on ratings that were merged."""
    ratings, inner = [names[k - 1] for k in group], group[:-1]
    most = max(groups.departures[k - 1] for k in inner)
    few = f"only {count_of(most, 'departure')}" if most else "no departure"
    source = ratings[0] if len(inner) == 1 else f"any of {_join(ratings[:-1])}"
    return (
        f"ratings {_join(ratings)} are read as one: the rows that a study trains on have {few} from {source}, and "
        f"a model needs {groups.enough} for each component; --keep-ratings keeps them apart"
    )


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
