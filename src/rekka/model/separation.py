"""Does the likelihood have a finite maximum? One small linear program for each state.

For state k let A be the rows that ended in k and B the rows that left it. Moving the coefficients of k along d
sends the likelihood to zero unless x.d <= 0 on A and x.d >= 0 on B. So if no direction d does that, other than
those with x.d = 0 on all of them, a finite maximum exists.

If one does, the likelihood may rise along it for ever, but need not: a hazard that grows without bound also
hurries the rows of B through k into states they may leave before they are seen. It rises for ever for certain
where x.d > 0 only on rows that ended in the absorbing state. Both questions are linear programs. What they
leave open is decided by fitting again from far along d, and by looking whether the best fit has run away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special

from rekka.model.coordinates import Coordinates
from rekka.model.layout import INTERCEPT, Layout

Array = NDArray[np.float64]

ROWS_AT_FIRST = 500  # constraints are added where they are violated, so that a million rows stay cheap
ROWS_AT_A_TIME = 250
FEASIBILITY = 1e-9  # rows are scaled to length 1 and |d| <= 1
MARGIN = 1e-6
TINY = 1e-300
LOGISTIC_STEPS = 30
VANISHING = 1e-6  # a weight that goes to zero: the rows may be separated
RANK = 1e-12


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

    def sentence(self) -> str:
        """Which state, which covariates."""
        return describe_separations([self])[0]

    def fact(self) -> str:
        """The same without the state."""
        if self.nobody_left:
            return "no row leaves it"
        if self.nobody_stayed:
            return "no row ends in it"
        covariates = ", ".join(term for term in self.terms if term != INTERCEPT)
        return f"the rows that left it are told apart from those that ended in it by {covariates}"


def describe_separations(separations: Sequence[Separation]) -> list[str]:
    """A sentence for each thing that holds, with all the states it holds of."""
    states: dict[str, list[int]] = {}
    for one in separations:
        states.setdefault(one.fact(), []).extend(one.states)
    return [
        f"state{'s' if len(names) > 1 else ''} {', '.join(map(str, names))}: {fact}"
        for fact, names in states.items()
    ]


def find_separations(coordinates: Coordinates, layout: Layout, ridge: float) -> list[Separation]:
    """All states, or groups of states with shared coefficients, that have a separating direction."""
    found = []
    for states in _connected(layout):
        one = _separate(coordinates, layout, states, ridge)
        if one is not None:
            found.append(one)
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


def _separate(coordinates: Coordinates, layout: Layout, states: list[int], ridge: float) -> Separation | None:
    rows, W = coordinates.likelihood.rows, coordinates.likelihood.X
    p1 = len(layout.terms)
    numbers = np.unique(layout.parameter.reshape(-1, p1)[states])
    numbers = numbers[numbers >= 0]
    if ridge > 0:  # a penalised slope cannot run away, whatever the likelihood does
        numbers = numbers[layout.term_of[numbers] == 0]
    # directions in standardised free parameters: bounded, readable, and the same under every affine scaling
    to_gamma = (coordinates.basis @ coordinates.standard[:, numbers]).reshape(layout.n_states - 1, p1, -1)
    constraints, must_be_zero, left, stayed = [], [], 0, 0
    for k in states:
        ended = rows.end == k
        passed = (rows.start <= k) & (rows.end > k)
        constraints += [-W[:, ended].T @ to_gamma[k], W[:, passed].T @ to_gamma[k]]
        must_be_zero += [np.zeros(ended.sum(), bool), rows.end[passed] < rows.n_states - 1]
        left, stayed = left + int(passed.sum()), stayed + int(ended.sum())
    C = np.concatenate(constraints)
    if _direction(C, np.zeros(len(C), bool)) is None:
        return None
    term = layout.term_of[numbers]
    for certain, zero in ((True, np.concatenate(must_be_zero)), (False, np.zeros(len(C), bool))):
        for d in _simplest_first(C, zero, term):
            if d is not None:
                used = dict.fromkeys(layout.terms[t] for t in term[np.abs(d) > 1e-7 * np.abs(d).max()])
                return Separation(
                    states=tuple(k + 1 for k in states),
                    terms=tuple(used),
                    parameters=numbers,
                    direction=coordinates.standard[:, numbers] @ d,
                    certain=certain,
                    nobody_left=left == 0,
                    nobody_stayed=stayed == 0,
                )
    return None


def _simplest_first(C: Array, zero: NDArray[np.bool_], term: NDArray[np.int64]) -> Iterator[Array | None]:
    """Directions in the intercepts alone, then with one covariate, then with all."""
    terms = [int(t) for t in np.unique(term)]
    for wanted in ([0], *([0, t] for t in terms if t), terms):
        columns = np.flatnonzero(np.isin(term, wanted))
        d = _direction(C[:, columns], zero)
        if d is None:
            yield None
            continue
        full = np.zeros(term.size)
        full[columns] = d
        yield full


def _direction(C: Array, zero: NDArray[np.bool_]) -> Array | None:
    """A d with C d >= 0, and C d = 0 where ``zero``, but not C d = 0 everywhere; None if there is none.

    The rows are rewritten in an orthonormal basis of their own span, so that neither the size of a covariate
    nor an outlier in another state matters: maximize sum U e subject to U e >= 0, |e| <= 1, C d = U e.
    """
    left, sizes, right = np.linalg.svd(C, full_matrices=False)
    rank = int((sizes > RANK * sizes.max(initial=0.0)).sum())
    if rank == 0:
        return None
    U = left[:, :rank]
    U = U / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), TINY)
    if not zero.any() and _has_weights(U):
        return None
    active = np.unique(np.linspace(0, len(U) - 1, min(len(U), ROWS_AT_FIRST)).astype(np.int64))
    while True:
        e = _maximize(U, active, zero)
        side = U @ e
        if side.max() <= MARGIN:
            return None
        violation = np.where(zero, np.abs(side), -side)
        violation[active] = 0.0
        if violation.max() <= FEASIBILITY:
            return np.asarray(right[:rank].T @ (e / sizes[:rank]))
        worst = np.argsort(violation)[-ROWS_AT_A_TIME:]
        active = np.union1d(active, worst[violation[worst] > FEASIBILITY])


def _has_weights(U: Array) -> bool:
    """Whether some y > 0 has U'y = 0, which proves that there is no direction (Stiemke 1915): no program needed.

    U e >= 0 with |e| <= 1 then gives y'U e <= |U'y|_1, so that no entry of U e is above |U'y|_1 / min y: MARGIN
    at most, as the program has it. The y of a logistic fit is such a one where the fit is finite; Newton finds it
    in a few steps, or gives up where y goes to zero.
    """
    e = np.zeros(U.shape[1])
    for _ in range(LOGISTIC_STEPS):
        y = special.expit(-(U @ e))
        gradient, least = U.T @ y, float(y.min())
        if np.abs(gradient).sum() < least * MARGIN:
            return True
        if least < VANISHING:
            return False
        e += linalg.solve((U * (y * (1.0 - y))[:, None]).T @ U, gradient, assume_a="pos")
    return False


def _maximize(U: Array, active: NDArray[np.int64], zero: NDArray[np.bool_]) -> Array:
    """The linear program on the active rows alone."""
    equal, above = active[zero[active]], active[~zero[active]]
    aim = U.sum(axis=0)
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
