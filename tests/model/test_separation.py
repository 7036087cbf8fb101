"""The linear programs, against answers known by hand and against brute force."""

import numpy as np
import pytest
from scipy import optimize

from rekka.model import separation
from rekka.model.coordinates import build_layout, orthonormal_coordinates
from rekka.model.likelihood import Rows
from rekka.model.separation import (
    Constraints,
    Separation,
    advise,
    describe_separations,
    find_direction,
    find_separations,
)

# state 1: overlapping; state 2: left at 2 and 3, not at 0 to 1
START, END, SPREAD = [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1, 2, 2], [0.0, 0.5, 1.5, 1, 0, 1, 2, 3]


def separations(start, end, x, n_states, ridge=0.0, effects=None, shared=None):
    x = np.atleast_2d(np.asarray(x, float)).T if np.ndim(x) == 1 else np.asarray(x, float)
    rows = Rows(np.asarray(start), np.asarray(end), np.ones(len(start)), np.ones(len(start)), n_states)
    layout = build_layout([f"x{c}" for c in range(x.shape[1])], n_states, effects, shared)
    return find_separations(orthonormal_coordinates(rows, x, layout, ridge, 1), layout, ridge)


def test_complete_separation_names_state_and_covariate():
    x = np.column_stack([[0.0, 1, 2, 3, 0.5, 2.5], [3.0, 1, 4, 1, 5, 9]])
    (one,) = separations([0] * 6, [0, 0, 1, 1, 0, 1], x, 2)
    assert one.states == (1,)
    assert one.terms == ("intercept", "x0")
    assert one.certain


def test_overlap_has_none():
    assert separations([0] * 4, [0, 1, 0, 1], [0.0, 1, 2, 3], 2) == []


def test_only_the_states_concerned_are_named():
    found = separations(START, END, SPREAD, 3)
    assert [s.states for s in found] == [(2,)]


def test_a_group_with_a_shared_coefficient_is_one_question():
    assert separations(START, END, SPREAD, 3, shared={"x0": [[1, 2]]}) == []


def test_without_the_effect_there_is_no_separation():
    assert separations(START, END, SPREAD, 3, effects={"x0": [1]}) == []


def test_ridge_holds_slopes_but_not_intercepts():
    assert separations([0] * 4, [0, 0, 1, 1], [0.0, 1, 2, 3], 2, ridge=1.0) == []
    (one,) = separations([0] * 3, [1, 1, 1], [0.0, 1, 2], 2, ridge=1.0)
    assert one.nobody_stayed
    assert describe_separations([one]) == ["state 1: no row ends in it"]


def test_all_rows_are_looked_at_however_many():
    """The one row that breaks the separation is not among the first constraints."""
    n = 5000
    x = np.linspace(0, 1, n)
    end = (x > 0.5).astype(int)
    assert separations(np.zeros(n, int), end, x, 2)
    end[7] = 1
    assert separations(np.zeros(n, int), end, x, 2) == []


def direction(C):
    none = np.zeros(0, np.int64)
    rows = Constraints(C, np.zeros(len(C), bool), none, none)
    return find_direction(rows, np.arange(C.shape[1]), certain=False)


@pytest.mark.parametrize("seed", range(40))
def test_directions_agree_with_brute_force(seed):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(rng.integers(3, 12), 2))
    angles = np.linspace(0, 2 * np.pi, 20001)
    best = (C @ np.stack([np.cos(angles), np.sin(angles)])).min(axis=0).max()
    if abs(best) > 1e-3:
        assert (direction(C) is not None) == (best > 0)


def test_the_objective_does_not_grow_with_the_rows(monkeypatch):
    """HiGHS gave up on a million rows (no solution at all) when the objective was their plain sum."""
    sizes = []

    def record(c, **options):
        sizes.append(np.abs(c).max())
        return linprog(c, **options)

    linprog = optimize.linprog
    monkeypatch.setattr(optimize, "linprog", record)
    monkeypatch.setattr(separation, "_screen", lambda U, zero: None)
    x = np.random.default_rng(0).normal(size=(5000, 3))
    assert separations([0] * 5000, [0, 1] * 2500, x, 2) == []
    assert sizes
    assert max(sizes) <= 1.0


def draw_rows(rng):
    """A small table such as components have: few rows, ties, constant-by-state and far covariates."""
    n, n_states, p = int(rng.integers(2, 45)), int(rng.integers(2, 6)), int(rng.integers(0, 4))
    start = rng.integers(0, n_states - 1, n)
    end = np.minimum(start + rng.poisson(rng.uniform(0.1, 1.5), n), n_states - 1)
    end[0] = n_states - 1
    kinds = (
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, 3, n).astype(float),
        lambda: np.exp(rng.normal(8, 2, n)),
        lambda: end + rng.normal(size=n) * rng.choice([1e-3, 0.3]),
    )
    x = np.column_stack([np.zeros((n, 0)), *(kinds[rng.integers(4)]() for _ in range(p))])
    independent = np.linalg.matrix_rank(np.column_stack([np.ones(n), x])) == p + 1  # others are refused earlier
    return (start, end, x, n_states) if independent else draw_rows(rng)


@pytest.mark.parametrize("seed", range(50))
def test_the_screen_changes_no_verdict(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    start, end, x, n_states = draw_rows(rng)
    shared = {"x0": [[1, 2]]} if n_states > 2 and x.shape[1] and seed % 5 == 0 else None
    ours = separations(start, end, x, n_states, shared=shared)
    monkeypatch.setattr(separation, "_screen", lambda U, zero: None)
    plain = separations(start, end, x, n_states, shared=shared)
    assert [(s.states, s.terms, s.certain) for s in ours] == [(s.states, s.terms, s.certain) for s in plain]
    for mine, theirs in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(mine.direction, theirs.direction)


def test_most_questions_need_no_program(monkeypatch):
    monkeypatch.setattr(optimize, "linprog", lambda *a, **k: pytest.fail("a linear program was solved"))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 2))
    assert separations([0] * 200, rng.integers(0, 2, 200), x, 2) == []


def test_separated_states_need_one_program_each(monkeypatch):
    """Whether a state is separated needs none, nor do simpler directions that do not separate it."""
    programs = []

    def record(c, **options):
        programs.append(c.size)
        return linprog(c, **options)

    linprog = optimize.linprog
    monkeypatch.setattr(optimize, "linprog", record)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 3))
    end = (x.sum(axis=1) > 0).astype(int)
    (one,) = separations([0] * 40, end, x, 2)
    assert one.certain
    assert programs == [4]


@pytest.mark.parametrize(("left", "stayed", "advice"), [
    (True, False, ["where no row leaves a state"]), (False, True, ["where no row ends in a state"]),
    (True, True, ["where no row leaves a state"]), (False, False, ["remedies: a ridge penalty"]),
])  # fmt: skip
def test_each_kind_of_separation_has_its_own_remedy(left, stayed, advice):
    """A ridge is no remedy where a rate has no maximum."""
    one = Separation(
        (2,), ("age",), np.array([1]), np.ones(1), certain=True, nobody_left=left, nobody_stayed=stayed
    )
    found = advise([one])
    assert [words.startswith(begin) for words, begin in zip(found, advice, strict=True)] == [True]
