"""Separation: whether the likelihood has a finite maximum, by one small linear program for each state.

For state k let A be the rows that ended in k and B the rows that left it. Moving the coefficients of k along d
sends the likelihood to zero unless x.d <= 0 on A and x.d >= 0 on B. So if no direction d does that, other than
those with x.d = 0 on all of them, a finite maximum exists.

If one does, the likelihood may rise along it for ever, but need not: a hazard that grows without bound also
hurries the rows of B through k into states they may leave before they are seen. It rises for ever for certain
where x.d > 0 only on rows that ended in the absorbing state. Both questions are linear programs. What they
leave open is decided by fitting again from far along d, and by looking whether the best fit has run away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from rekka.data.categories import Coding
from rekka.model.coordinates import INTERCEPT, Coordinates, Layout
from rekka.model.family import PairRows
from rekka.model.likelihood import Likelihood

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Columns = NDArray[np.intp]
# The largest U e of all rows in a basis, U of length 1, and rows that violate what is asked, the worst first.
Search = Callable[[Columns, Array, Array, bool], tuple[float, Array, Mask]]
Constrain = Callable[[list[int], Array], "Constraints"]

ROWS_AT_FIRST = 500
ROWS_AT_A_TIME = 250
FEASIBILITY = 1e-9  # rows are scaled to length 1 and |d| <= 1
MARGIN = 1e-6
TINY = 1e-300
LOGISTIC_STEPS = 30
VANISHING = 1e-6  # a weight this near 0 or 1: only the program can tell
RANK = 1e-12
LEVEL_MOVES = 1e-6  # of the largest change of a level's hazard along a direction: less is none
SPAN = 1e-4  # the smallest singular value of rows that span, relative to the largest


@dataclass(frozen=True, eq=False)
class Separation:
    """A direction d in psi along which no row's probability goes to zero."""

    states: tuple[int, ...]  # 1-based
    terms: tuple[str, ...]
    parameters: NDArray[np.int64]  # free parameters of these states
    direction: Array
    certain: bool  # the likelihood rises along it for ever, whatever the coefficients
    nobody_left: bool
    nobody_stayed: bool
    levels: str = ""  # what the levels of a category have to do with it, in words

    def fact(self) -> str:
        """The separation in words, without the state."""
        if self.nobody_left:
            return "no row leaves it"
        if self.nobody_stayed:
            return "no row ends in it"
        if self.levels:
            return self.levels
        covariates = ", ".join(term for term in self.terms if term != INTERCEPT)
        return f"the rows that left it and those that ended in it are separated by {covariates}"


def describe_separations(separations: Sequence[Separation]) -> list[str]:
    """Sentences, one for each fact, with all the states it holds of."""
    states: dict[str, list[int]] = {}
    for one in separations:
        states.setdefault(one.fact(), []).extend(one.states)
    return [
        f"state{'s' if len(names) > 1 else ''} {', '.join(map(str, names))}: {fact}"
        for fact, names in states.items()
    ]


def advise(separations: Sequence[Separation]) -> list[str]:
    """Remedies for each kind of separation; a penalty holds slopes, not the rate of a state."""
    found = {
        "where no row leaves a state: merge it with the next state, collect longer records, or use an upper bound "
        "of its hazard; a ridge penalty does not help": any(one.nobody_left for one in separations),
        "where no row ends in a state: merge it with a neighbour, or collect shorter intervals; a ridge penalty "
        "does not help": any(one.nobody_stayed and not one.nobody_left for one in separations),
        "where a level decides: merge it with another level, share its effect between states, or use a ridge "
        "penalty": any(one.levels for one in separations),
        "remedies: a ridge penalty, fewer covariates, or merged states": any(
            not (one.nobody_left or one.nobody_stayed or one.levels) for one in separations
        ),
    }
    return [words for words, holds in found.items() if holds]


def name_levels(
    separation: Separation, coordinates: Coordinates[Any], layout: Layout, coding: Coding
) -> Separation:
    """The separation in words of levels, where the terms of one category alone make it up."""
    used = [term for term in separation.terms if term != INTERCEPT]
    category = coding.find(used[0]) if used else None
    if category is None or not set(used) <= set(category.terms):
        return separation
    intercept, *slopes = coordinates.beta(separation.direction)[separation.states[0] - 1]
    slope = dict(zip(layout.terms[1:], slopes, strict=True))
    moved = {category.reference: intercept}
    moved |= {level: intercept + slope[term] for level, term in zip(category.kept, category.terms, strict=True)}
    size = LEVEL_MOVES * max(map(abs, moved.values()))
    words = []
    for verb, sign in (("no", -1.0), ("every", 1.0)):
        levels = [level for level, move in moved.items() if sign * move > size]
        if levels:
            words.append(f"{verb} row with {category.name} = {' or '.join(levels)} leaves it")
    return replace(separation, levels=", ".join(words))


@dataclass(frozen=True, eq=False)
class Constraints:
    """Rows c (q,) of which a direction d asks that c.d >= 0: those that left a state, and minus those that ended.

    Those that left for a state that is left again ``must_be_zero``, c.d = 0, for a rise that is certain. ``rows``
    (n, q) are all of them, or a sample; of a sample the triangular ``factor`` and the ``total`` (q,) of all are
    known, and ``search`` passes over all for rows that a direction violates.
    """

    rows: Array
    must_be_zero: Mask
    left: NDArray[np.int64]  # rows that left each state of the group
    stayed: NDArray[np.int64]  # rows that ended in each
    whole: bool = True  # whether ``rows`` are all
    factor: Array | None = None
    total: Array | None = None
    search: Search | None = None

    def decompose(self, columns: Columns) -> tuple[Array, Array]:
        """Singular values and right singular vectors, one a row, of all rows in these columns."""
        rows = self.rows if self.factor is None else self.factor
        _, sizes, right = np.linalg.svd(rows[:, columns], full_matrices=False)
        return sizes, right

    def aim(self, columns: Columns, basis: Array) -> Array:
        """A sum of all rows in a basis, each times something positive."""
        if self.total is None:
            return np.asarray(to_length_one(self.rows[:, columns] @ basis).sum(axis=0))
        return np.asarray(self.total[columns] @ basis)


def constrain_rows(
    rows: PairRows, n_states: int, states: list[int], to_gamma: Array
) -> tuple[Array, Mask, NDArray[np.int64]]:
    """Constraints (n, q) of s states, which must be zero, and how many rows ended in and left each (2, s)."""
    constraints, must_be_zero, counts = [], [], []
    for k in states:
        ended = rows.end == k
        passed = (rows.start <= k) & (rows.end > k)
        constraints += [-rows.X[:, ended].T @ to_gamma[k], rows.X[:, passed].T @ to_gamma[k]]
        must_be_zero += [np.zeros(ended.sum(), bool), rows.end[passed] < n_states - 1]
        counts.append((ended.sum(), passed.sum()))
    return np.concatenate(constraints), np.concatenate(must_be_zero), np.array(counts, dtype=np.int64).T


def constrain_held(likelihood: Likelihood, states: list[int], to_gamma: Array) -> Constraints:
    """The constraints of all rows in memory."""
    rows, zero, (stayed, left) = constrain_rows(likelihood.arranged, likelihood.n_states, states, to_gamma)
    return Constraints(rows, zero, left, stayed)


def find_separations(
    coordinates: Coordinates[Any], layout: Layout, ridge: float, constrain: Constrain | None = None
) -> list[Separation]:
    """All states, or groups of states with shared coefficients, that have a separating direction.

    ``constrain(states, to_gamma)`` gives the constraints of a group; None takes a likelihood in memory.
    """
    constrain = constrain or partial(constrain_held, coordinates.likelihood)
    groups = list_directions(coordinates, layout, ridge)
    found = (separate(coordinates, layout, *group, constrain) for group in groups)
    return [one for one in found if one is not None]


def list_directions(
    coordinates: Coordinates[Any], layout: Layout, ridge: float
) -> list[tuple[list[int], NDArray[np.int64], Array]]:
    """Groups of states, 0-based, their free parameters (q,), and the map (K-1, p+1, q) from those to gamma.

    Directions are in standardised free parameters: bounded, readable, and the same under every affine scaling.
    """
    p1 = len(layout.terms)
    found = []
    for states in _connected(layout):
        numbers = np.unique(layout.parameter.reshape(-1, p1)[states])
        numbers = numbers[numbers >= 0]
        if ridge > 0:  # a penalised slope cannot run away, whatever the likelihood does
            numbers = numbers[layout.term_of[numbers] == 0]
        to_gamma = coordinates.basis @ coordinates.standard[:, numbers]
        found.append((states, numbers, to_gamma.reshape(layout.n_states - 1, p1, -1)))
    return found


def _connected(layout: Layout) -> list[list[int]]:
    """States, 0-based, grouped by the parameters they share."""
    by_state = layout.parameter.reshape(layout.n_states - 1, -1)
    groups: list[list[int]] = []
    for k, mine in enumerate(by_state):
        touching = [g for g in groups if np.isin(mine[mine >= 0], by_state[g]).any()]
        merged = sorted([k, *(j for g in touching for j in g)])
        groups = [g for g in groups if g not in touching] + [merged]
    return sorted(groups)


def separate(
    coordinates: Coordinates[Any],
    layout: Layout,
    states: list[int],
    numbers: NDArray[np.int64],
    to_gamma: Array,
    constrain: Constrain,
) -> Separation | None:
    """The simplest direction that separates these states, one that rises for certain before others."""
    rows = constrain(states, to_gamma)
    if not has_direction(rows, np.arange(numbers.size)):
        return None
    term = layout.term_of[numbers]
    for certain in (True, False):
        for d in _simplest_first(rows, certain, term):
            if d is not None:
                used = dict.fromkeys(layout.terms[t] for t in term[np.abs(d) > 1e-7 * np.abs(d).max()])
                moved = np.abs(to_gamma[states] @ d).max(axis=1) > 1e-7 * np.abs(to_gamma[states] @ d).max()
                return Separation(
                    states=tuple(k + 1 for k, moves in zip(states, moved, strict=True) if moves),
                    terms=tuple(used),
                    parameters=numbers,
                    direction=coordinates.standard[:, numbers] @ d,
                    certain=certain,
                    nobody_left=not rows.left[moved].any(),
                    nobody_stayed=not rows.stayed[moved].any(),
                )
    return None


def _simplest_first(rows: Constraints, certain: bool, term: NDArray[np.int64]) -> Iterator[Array | None]:
    """Directions in the intercepts alone, then with one covariate, then with all."""
    terms = [int(t) for t in np.unique(term)]
    for wanted in ([0], *([0, t] for t in terms if t), terms):
        columns = np.flatnonzero(np.isin(term, wanted))
        d = find_direction(rows, columns, certain=certain)
        if d is None:
            yield None
            continue
        full = np.zeros(term.size)
        full[columns] = d
        yield full


def has_direction(rows: Constraints, columns: Columns) -> bool:
    """Whether ``find_direction`` finds one, certain or not; most often without a program."""
    if rows.whole:
        _, U, zero = _orient(rows, columns, certain=False)
        known = _screen(U, zero)
        if known is not None:
            return known
    return find_direction(rows, columns, certain=False) is not None


def find_direction(rows: Constraints, columns: Columns, *, certain: bool) -> Array | None:
    """A d with C d >= 0, and C d = 0 where it must be, but not C d = 0 everywhere; None if there is none.

    The rows are rewritten in an orthonormal basis of their own span, so that neither the size of a covariate
    nor an outlier in another state matters: maximize sum U e subject to U e >= 0, |e| <= 1, C d = U e. Rows
    constrain where they are violated, so that a million rows stay cheap; and where some rows rule every
    direction out, the others need not be looked at.
    """
    basis, U, zero = _orient(rows, columns, certain=certain)
    if not basis.size or ((rows.whole or _spans(U)) and _screen(U, zero) is False):
        return None
    aim = rows.aim(columns, basis)
    active = np.unique(np.linspace(0, len(U) - 1, min(len(U), ROWS_AT_FIRST)).astype(np.int64))
    while True:
        e = _maximize(U, active, zero, aim)
        side = U @ e
        if side.max() <= MARGIN and (rows.whole or _spans(U)):
            return None
        violation = np.where(zero, np.abs(side), -side)
        violation[active] = 0.0
        if violation.max() > FEASIBILITY:
            worst = np.argsort(violation)[-ROWS_AT_A_TIME:]
            active = np.union1d(active, worst[violation[worst] > FEASIBILITY])
            continue
        if rows.search is None:
            return np.asarray(basis @ e)
        largest, more, must_be_zero = rows.search(columns, basis, e, certain)
        if largest <= MARGIN:
            return None
        if not len(more):
            return np.asarray(basis @ e)
        active = np.concatenate([active, np.arange(len(U), len(U) + len(more))])
        U = np.concatenate([U, to_length_one(more[:, columns] @ basis)])
        zero = np.concatenate([zero, must_be_zero & certain])


def _orient(rows: Constraints, columns: Columns, *, certain: bool) -> tuple[Array, Array, Mask]:
    """An orthonormal basis of what the rows span, the rows in hand there, of length 1, and which must be zero."""
    sizes, right = rows.decompose(columns)
    rank = int((sizes > RANK * sizes.max(initial=0.0)).sum())
    basis = right[:rank].T / sizes[:rank]
    return basis, to_length_one(rows.rows[:, columns] @ basis), rows.must_be_zero & certain


def to_length_one(U: Array) -> Array:
    """Rows divided by their length."""
    return np.asarray(U / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), TINY))


def _spans(U: Array) -> bool:
    """Whether some rows span what all do, so that what they rule out is ruled out."""
    sizes = np.linalg.svd(U, compute_uv=False)
    return len(U) >= U.shape[1] and bool(sizes[-1] > SPAN * sizes[0])


def _screen(U: Array, zero: Mask) -> bool | None:
    """Whether there is a direction, where Newton's steps of a logistic fit prove it; None where they do not.

    A row that must be zero counts on both sides: V is U and, below it, -U of those rows.

    No, if some y > 0 has V'y = 0 (Stiemke 1915). V e >= 0 with |e| <= 1 then gives y'V e <= |V'y|_1, so that no
    entry of V e is above |V'y|_1 / min y: MARGIN at most, as the program has it. The y of a logistic fit is such
    a one where the fit is finite.

    Yes, if a step has V e above 2 MARGIN in every row: this e is feasible in the program, which maximizes a
    weighted mean of V e. Its maximum is above 2 MARGIN too, and so is the largest entry there.
    """
    V = np.concatenate([U, -U[zero]])
    e = np.zeros(V.shape[1])
    for _ in range(LOGISTIC_STEPS):
        side = V @ e
        if side.size and side.min() > 2 * MARGIN * np.abs(e).max(initial=0.0) > 0:
            return True
        y = special.expit(-side)
        gradient, least = V.T @ y, float(y.min(initial=1.0))
        if np.abs(gradient).sum() < least * MARGIN or not e.size:
            return False
        if least < VANISHING or y.max() > 1.0 - VANISHING:
            return None
        e += np.linalg.solve((V * (y * (1.0 - y))[:, None]).T @ V, gradient)
    return None


def _maximize(U: Array, active: NDArray[np.int64], zero: Mask, aim: Array) -> Array:
    """The linear program on the active rows alone."""
    equal, above = active[zero[active]], active[~zero[active]]
    result = optimize.linprog(
        -aim
        / max(np.abs(aim).max(), TINY),  # of size 1, as the tolerances suppose: a million rows defeat HiGHS else
        A_ub=-U[above] if above.size else None,
        b_ub=np.zeros(above.size) if above.size else None,
        A_eq=U[equal] if equal.size else None,
        b_eq=np.zeros(equal.size) if equal.size else None,
        bounds=(-1, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return np.asarray(result.x)
