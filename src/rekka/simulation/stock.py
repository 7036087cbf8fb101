"""Draw a bridge stock from known hazards: bridges with their visits, their members, and the members' states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.simulation.elements import DrawnElements
from rekka.simulation.soiling import Repairs

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

LETTERS = ("a", "b", "c", "d", "e")  # a best
ROUNDS = 5
FIRST_ROUND = 12 * 2004  # month of the first round, counted from year 0; a bridge's own is within a year after it
ROUND_MONTHS, JITTER_MONTHS = 60, 4
# Age at the third round is 62 - Gamma(2.2, 7) years: a stock of the growth years with a tail of younger bridges.
# It is skewed to the left; its Box-Cox exponent is about 2.3, and transformed ages are near 1e4.
OLDEST, AGE_SHAPE, AGE_SCALE = 62.0, 2.2, 7.0
FIRST_STATES = (0.40, 0.29, 0.17, 0.09, 0.05)  # probabilities of a..e at a member's first visit
WITHOUT_FIFTH = 0.06  # share of the allotted training rows whose member is gone at the fifth round

TERMS = ("intercept", "age_at_inspection_1", "log(bridge_length)", "log(bridge_area)", "log(traffic_mean)")
# A case's hazards of leaving a, b, c, d, per year, for a bridge at _CENTRE; its effects on the log hazard
# of a standard deviation (_SPREAD) of age, log length, log area, log traffic; its mean members on a bridge.
_HAZARDS = {
    "Main girder": ((0.11, 0.08, 0.06, 0.05), (0.30, 0.15, -0.10, 0.20), 2.0),
    "Pier": ((0.09, 0.07, 0.06, 0.05), (0.35, 0.05, 0.10, 0.05), 1.2),
    "Bearing": ((0.14, 0.11, 0.08, 0.07), (0.25, 0.20, -0.05, 0.25), 1.6),
    "Deck slab": ((0.12, 0.10, 0.08, 0.06), (0.30, 0.05, 0.15, 0.35), 1.3),
    "Cross girder": ((0.10, 0.08, 0.07, 0.05), (0.25, 0.10, 0.05, 0.20), 0.6),
    "Longitudinal girder": ((0.10, 0.09, 0.06, 0.05), (0.30, 0.15, -0.05, 0.15), 0.4),
    "Abutment": ((0.08, 0.07, 0.06, 0.05), (0.35, -0.05, 0.10, 0.05), 0.8),
    "Expansion joint": ((0.18, 0.14, 0.11, 0.09), (0.20, 0.10, 0.05, 0.40), 0.7),
    "Slope protection": ((0.12, 0.09, 0.08, 0.06), (0.25, 0.10, -0.10, 0.05), 0.3),
    "Pavement": ((0.20, 0.15, 0.12, 0.09), (0.15, -0.05, 0.10, 0.40), 1.1),
}
_CENTRE = np.array([48.0, 3.3, 5.4, 8.0])
_SPREAD = np.array([8.7, 0.85, 1.05, 1.2])
# Each state's share of the effects: age matters most to sound members, traffic to damaged ones.
_BY_STATE = np.array([[1.2, 1.0, 1.0, 0.8], [1.0, 1.2, 0.8, 1.0], [0.9, 0.8, 1.2, 1.1], [0.7, 1.0, 1.0, 1.2]])
_PREFIXES = ("MG", "PR", "BR", "DS", "CG", "LG", "AB", "EJ", "SP", "PV")
CASES = tuple(_HAZARDS)


def true_coefficients() -> Array:
    """Intercept and coefficients in native units, (cases, states left, TERMS), in the order of CASES."""
    beta = np.empty((len(CASES), len(LETTERS) - 1, len(TERMS)))
    for case, (rates, effects, _) in enumerate(_HAZARDS.values()):
        slopes = np.round(np.array(effects) * _BY_STATE / _SPREAD, 5)
        beta[case] = np.column_stack([np.round(np.log(rates) - slopes @ _CENTRE, 5), slopes])
    return beta


@dataclass(frozen=True)
class Bridges:
    """Bridges with their values as written; visits are (n, ROUNDS), ``month`` is counted from year 0."""

    names: pl.Series
    completion_year: Ints
    length: Array
    width: Array
    month: Ints
    day: Ints
    traffic: Ints

    @cached_property
    def months(self) -> Array:
        """Months of the visits: 12 year + (month - 1) + (day - 1) / days in the month."""
        starts = self._month_starts()
        days = ((starts + 1).astype("datetime64[D]") - starts.astype("datetime64[D]")).astype(np.int64)
        return np.asarray(self.month + (self.day - 1) / days)

    @cached_property
    def ages(self) -> Array:
        """Age in years at the visits, not above 0 before completion."""
        return (self.months - 12.0 * self.completion_year[:, None]) / 12.0

    @property
    def opening(self) -> Ints:
        """First round (0-based) after completion."""
        return np.asarray(np.argmax(self.ages > 0, axis=1))

    def log_hazards(self, r: int, trend: float = 0.0) -> Array:
        """Log hazards (n, cases, states left) between round r and the next; ``trend`` is a slope a year."""
        traffic = np.log(self.traffic[:, r : r + 2].mean(axis=1))
        x = [np.ones(len(self.names)), self.ages[:, r], np.log(self.length), np.log(self.length * self.width)]
        beta = true_coefficients()
        eta = np.column_stack([*x, traffic]) @ beta.reshape(-1, len(TERMS)).T
        eta = eta.reshape(-1, *beta.shape[:2])
        if trend:
            eta += trend * ((self.months[:, r] - FIRST_ROUND) / 12.0)[:, None, None]
        return np.asarray(eta)

    def inventory(self) -> pl.DataFrame:
        """One row a bridge."""
        columns = {"completion_year": self.completion_year, "bridge_length": self.length}
        return pl.DataFrame({"bridge_id": self.names, **columns, "bridge_width": self.width})

    def traffic_table(self) -> pl.DataFrame:
        """One row a bridge and round since its completion."""
        bridge, visit = np.nonzero(self.ages > 0)
        name = self.names.gather(bridge)
        return pl.DataFrame({"bridge_id": name, "visit": visit + 1, "traffic": self.traffic[bridge, visit]})

    def dates(self, bridge: Ints, visit: Ints) -> pl.Series:
        """Dates of some visits."""
        days = self._month_starts().astype("datetime64[D]").astype(np.int32) + (self.day - 1).astype(np.int32)
        return pl.Series("date", days[bridge, visit]).cast(pl.Date)

    def _month_starts(self) -> NDArray[np.datetime64]:
        return (self.month - 12 * 1970).astype("datetime64[M]")


@dataclass(frozen=True)
class DrawnMembers:
    """Members in the order of the table; number, first and last round and first state are 0-based."""

    bridge: Ints
    case: Ints
    number: Ints
    first: Ints
    last: Ints
    state: Ints

    @classmethod
    def build(cls, bridge: Ints, case: Ints, first: Ints, last: Ints, u: Array) -> DrawnMembers:
        """Sorted and numbered; u in [0, 1) picks the first state."""
        order = np.lexsort((first, case, bridge))
        bridge, case = bridge[order], case[order]
        state = np.searchsorted(np.cumsum(FIRST_STATES)[:-1], u[order], side="right")
        return cls(bridge, case, _rank(bridge * len(CASES) + case), first[order], last[order], state)


def draw_bridges(first: int, n: int, total: int, rng: np.random.Generator) -> Bridges:
    """Bridges ``first`` (0-based) and after; longer ones are wider and busier, wider busier, older narrower."""
    jitter = rng.integers(-JITTER_MONTHS, JITTER_MONTHS + 1, (n, ROUNDS))
    month = FIRST_ROUND + rng.integers(0, 12, (n, 1)) + ROUND_MONTHS * np.arange(ROUNDS) + jitter
    age = np.clip(OLDEST - rng.gamma(AGE_SHAPE, AGE_SCALE, n), 1.0, None)
    z_age = (age - _CENTRE[0]) / _SPREAD[0]
    z_length, z_width, z_traffic = rng.standard_normal((3, n))
    log_traffic = 8.0 + 0.35 * z_length + 0.3 * z_width + 1.1 * z_traffic
    drift = rng.normal(0.01, 0.05, (n, 1)) * np.arange(ROUNDS) + rng.normal(0.0, 0.03, (n, ROUNDS))
    return Bridges(
        _name_bridges(first, n, total),
        np.floor(month[:, 2] / 12.0 - age).astype(np.int64),
        np.round(np.exp(3.2 + 0.9 * z_length) + 2.0, 1),
        np.round(2.0 + np.exp(1.8 + 0.15 * z_length - 0.08 * z_age + 0.42 * z_width), 1),
        month,
        rng.integers(1, 29, (n, ROUNDS)),
        np.maximum(np.round(np.exp(log_traffic[:, None] + drift)), 10.0).astype(np.int64),
    )


def draw_members(bridges: Bridges, rng: np.random.Generator) -> DrawnMembers:
    """A random number of members of each case on each bridge, in every round since completion."""
    n, mean = len(bridges.names), np.array([members for _, _, members in _HAZARDS.values()])
    one = np.arange(len(CASES)) == 0  # a bridge has a main girder
    number = one + rng.poisson(mean - one, (n, len(CASES)))
    bridge = np.repeat(np.arange(n), number.sum(axis=1))
    case = np.repeat(np.tile(np.arange(len(CASES)), n), number.ravel())
    last = np.full(bridge.size, ROUNDS - 1)
    return DrawnMembers.build(bridge, case, bridges.opening[bridge], last, rng.random(bridge.size))


def allot_members(
    bridges: Bridges, counts: Iterable[tuple[int, int, int]], validates: Bools, rng: np.random.Generator
) -> DrawnMembers:
    """Members that make exactly so many rows of each case: rounds 3 to 4; rounds 4 to 5 of both sets of bridges.

    1. Members in rounds 4 and 5 are spread over the bridges that validate, and over the others. Every bridge has
       a main girder there.
    2. Some bridges, the same for all cases, were inspected before round 4: their members train.
    3. A few members that train are gone in round 5.
    """
    turn, opening = rng.permutation(len(bridges.names)), bridges.opening
    columns: list[tuple[Ints, ...]] = []
    for case, (train, validation, golden) in enumerate(counts):
        weight = np.sqrt(bridges.length) * rng.gamma(1.0, 1.0, len(turn))
        sides = ((validation, np.flatnonzero(validates)), (golden, np.flatnonzero(~validates)))
        later = np.concatenate([_spread(number, side, weight, case == 0, rng) for number, side in sides])  # 1
        gone = round(WITHOUT_FIFTH * train)
        trains = np.argsort(np.argsort(turn[later], kind="stable")) < train - gone  # 2
        lost = rng.choice(later[trains], gone)  # 3
        bridge = np.concatenate([later, lost])
        first = np.concatenate([np.where(trains, opening[later], 3), opening[lost]])
        last = np.concatenate([np.full(later.size, 4), np.full(gone, 3)])
        columns.append((bridge, np.full(bridge.size, case), first, last))
    bridge, case_of, first, last = (np.concatenate(column) for column in zip(*columns, strict=True))
    return DrawnMembers.build(bridge, case_of, first, last, _stratify(2 * case_of + (first < 3), rng))


def draw_states(
    bridges: Bridges,
    members: DrawnMembers,
    repairs: Repairs,
    rng: np.random.Generator,
    soil: np.random.Generator,
    elements: DrawnElements = DrawnElements(),  # noqa: B008 (frozen)
    streams: Sequence[np.random.Generator] = (),
) -> tuple[Ints, Bools]:
    """Ratings (m, ROUNDS), 0-based, -1 where there is no visit; and which of them a repair made better.

    ``streams`` are three generators, of frailty, improvements and errors, where there are elements.
    """
    frail, improving, erring = streams or (rng, rng, rng)  # of which nothing is drawn without elements
    moving = improving if elements.improvements else rng
    dt = np.diff(bridges.months, axis=1) / 12.0
    states = np.full((members.bridge.size, ROUNDS), -1)
    lifted = np.zeros(states.shape, dtype=bool)
    state = members.state
    factor = elements.frailties(len(bridges.names), len(CASES), frail)[members.bridge, members.case]
    for r in range(ROUNDS):
        visited = (members.first <= r) & (r <= members.last)
        if r > 0:
            theta = np.exp(bridges.log_hazards(r - 1, elements.trend))[members.bridge, members.case]
            theta *= factor[:, None]
            moved = elements.advance(state, theta, dt[members.bridge, r - 1], advance, moving)
            moved, better = repairs.lift(members.bridge, r, state, moved, soil)
            state = np.where(members.first < r, moved, state)
            lifted[:, r] = better & visited & (members.first < r)
        states[visited, r] = state[visited]
    return elements.rate(states, len(LETTERS), erring), lifted


def advance(state: Ints, theta: Array, dt: Array, rng: np.random.Generator) -> Ints:
    """States after dt years, drawn exactly: the time in state k is exponential with hazard theta[:, k].

    Waiting times, not the transition probabilities: the draw owes nothing to the kernel that it helps to test.
    """
    left, end = dt, state
    for k in range(theta.shape[1]):
        wait = rng.standard_exponential(state.size) / theta[:, k]
        leaves = (end == k) & (wait < left)
        left, end = np.where(leaves, left - wait, left), end + leaves
    return end


def tabulate_inspections(bridges: Bridges, members: DrawnMembers, states: Ints) -> pl.DataFrame:
    """One row a visit of a member, member by member."""
    member, visit = np.nonzero(states >= 0)
    bridge, case = members.bridge[member], members.case[member]
    most = int(members.number.max()) + 1
    labels = [f"{prefix}-{number + 1:02d}" for prefix in _PREFIXES for number in range(most)]
    return pl.DataFrame(
        {
            "bridge_id": bridges.names.gather(bridge),
            "case": pl.Series(CASES).gather(case),
            "member": pl.Series(labels).gather(case * most + members.number[member]),
            "visit": visit + 1,
            "date": bridges.dates(bridge, visit),
            "state": pl.Series(LETTERS).gather(states[member, visit]),
        }
    )


def _name_bridges(first: int, n: int, total: int) -> pl.Series:
    digits = pl.int_range(first + 1, first + n + 1, eager=True).cast(pl.String).str.zfill(max(5, len(str(total))))
    return ("B-" + digits).alias("bridge_id")


def _spread(number: int, bridges: Ints, weight: Array, everywhere: bool, rng: np.random.Generator) -> Ints:
    """Bridge of each of so many members: at random by weight, after one on each if ``everywhere``."""
    one = int(everywhere)
    share = weight[bridges] / weight[bridges].sum()
    return np.repeat(bridges, one + rng.multinomial(number - one * bridges.size, share))


def _stratify(group: Ints, rng: np.random.Generator) -> Array:
    """Uniform numbers, spread evenly within each group, so that rare states occur in small groups too."""
    order = np.lexsort((rng.random(group.size), group))
    size = np.bincount(group)[group[order]]
    u = np.empty(group.size)
    u[order] = (_rank(group[order]) + rng.random(group.size)) / size
    return u


def _rank(key: Ints) -> Ints:
    """Place of each entry among its equals, which stand together."""
    begins = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    sizes = np.diff(np.r_[begins, key.size])
    return np.asarray(np.arange(key.size) - np.repeat(begins, sizes))
