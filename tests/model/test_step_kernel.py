"""Steps of constant hazards against the exact kernel, matrix exponentials and differences."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekka
from rekka.model import step_kernel

HAZARDS = st.one_of(st.just(0.0), st.floats(1e-9, 30.0), st.floats(-12.0, 14.0).map(np.exp))  # up to a million


@st.composite
def steps(draw):
    """A start state, hazards and years."""
    states = draw(st.integers(2, 9))
    theta = np.array(draw(st.lists(HAZARDS, min_size=states - 1, max_size=states - 1)))
    return draw(st.integers(0, states - 1)), theta, draw(st.floats(0.0, 3.0))


def generator(theta):
    q = np.zeros((theta.size + 1, theta.size + 1))
    for k, hazard in enumerate(theta):
        q[k, k], q[k, k + 1] = -hazard, hazard
    return q


def begin(start, theta, h, rows=1):
    p = np.zeros((rows, theta.size + 1))
    p[:, start] = 1.0
    return p, np.tile(theta, (rows, 1)), np.full(rows, h)


@settings(max_examples=300, deadline=None)
@given(steps())
def test_a_step_is_exact_in_every_state(one):
    start, theta, h = one
    p, hazards, years = begin(start, theta, h)
    step_kernel.step_rows(p, hazards, years)
    exact = rekka.transition_probabilities(theta, h)[start]
    np.testing.assert_allclose(p[0], exact, rtol=1e-12, atol=1e-200)


@settings(max_examples=60, deadline=None)
@given(steps())
def test_a_step_equals_the_matrix_exponential(one):
    start, theta, h = one
    theta = np.minimum(theta, 30.0)  # beyond, more digits would be needed
    p, hazards, years = begin(start, theta, h)
    step_kernel.step_rows(p, hazards, years)
    exact = mpmath.expm(mpmath.matrix(generator(theta) * h))[start, :]  # SciPy's is off by 1e-6 for equal hazards
    np.testing.assert_allclose(p[0], np.array(exact, dtype=float).ravel(), rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(steps())
def test_time_spent_is_the_integral(one):
    start, theta, h = one
    theta = np.minimum(theta, 30.0)
    p, hazards, years = begin(start, theta, h)
    spent = np.zeros_like(p)
    step_kernel.integrate_rows(p, hazards, years, spent)
    size = theta.size + 1
    double = np.zeros((2 * size, 2 * size))  # exp [[Q, I], [0, 0]] h has the integral of exp Q u above its corner
    double[:size, :size], double[:size, size:] = generator(theta) * h, np.eye(size) * h
    exact = mpmath.expm(mpmath.matrix(double))[start, size:]
    np.testing.assert_allclose(spent[0], np.array(exact, dtype=float).ravel(), rtol=0, atol=1e-11)
    assert spent.sum() == pytest.approx(h, abs=1e-12)
    alone, _, _ = begin(start, theta, h)
    step_kernel.step_rows(alone, hazards, years)
    np.testing.assert_array_equal(p, alone)


@settings(max_examples=60, deadline=None)
@given(steps())
def test_time_spent_adds_up_and_feeds_the_next_state(one):
    start, theta, h = one
    p, hazards, years = begin(start, theta, h)
    spent = np.zeros_like(p)
    step_kernel.integrate_rows(p, hazards, years, spent)
    assert spent.sum() == pytest.approx(h, rel=1e-12, abs=1e-300)
    for k in range(start, theta.size):  # who has left state k left it at its hazard while there
        left = p[0, k + 1 :].sum()
        assert theta[k] * spent[0, k] == pytest.approx(left, rel=1e-11, abs=1e-200)


@pytest.mark.parametrize("fastest", [1.0, 1e5])
def test_derivatives_are_those_of_the_step(fastest):
    rng = np.random.default_rng(3)
    theta, h = np.exp(rng.normal(-1.5, 1.0, (150, 4))), rng.uniform(0, 3, 150)
    theta[::3, 1] *= fastest
    drive = np.column_stack([np.ones(150), rng.normal(size=150)])
    first = rng.dirichlet(np.ones(5), 150)
    slope = rng.normal(size=(150, 4, 2, 5))

    def carry(shift_k, shift_d, by):
        moved = theta.copy()
        moved[:, shift_k] *= np.exp(by * drive[:, shift_d])
        p = first + by * slope[:, shift_k, shift_d]
        step_kernel.step_rows(p, moved, h)
        return p

    ours, p = slope.copy(), first.copy()
    step_kernel.slope_rows(p, theta, h, ours, drive)
    for k in range(4):
        for d in range(2):
            theirs = (carry(k, d, 1e-5) - carry(k, d, -1e-5)) / 2e-5
            np.testing.assert_allclose(ours[:, k, d], theirs, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(steps(), st.floats(0.001, 0.999))
def test_a_crossing_is_where_the_probability_is(one, target):
    start, theta, h = one
    state = theta.size
    p, hazards, years = begin(start, theta, h)
    found, end = np.empty(1), p.copy()
    step_kernel.cross_rows(p, hazards, years, state, target, found)
    step_kernel.step_rows(end, hazards, years)
    if end[0, state] < target:
        assert found[0] == h
    elif start < state:
        there = p.copy()
        step_kernel.step_rows(there, hazards, found)
        assert there[0, state] == pytest.approx(target, abs=1e-9)


def test_rows_do_not_see_each_other():
    rng = np.random.default_rng(0)
    theta, h = np.exp(rng.normal(-2, 2, (200, 3))), rng.uniform(0, 2, 200)
    together = rng.dirichlet(np.ones(4), 200)
    apart = together.copy()
    step_kernel.step_rows(together, theta, h)
    for i in range(200):
        step_kernel.step_rows(apart[i : i + 1], theta[i : i + 1], h[i : i + 1])
    np.testing.assert_allclose(together, apart, rtol=1e-13)


def test_a_hazard_that_nobody_meets_costs_nothing_and_changes_nothing():
    p, theta, h = begin(1, np.array([1e300, 0.2]), 1.0)
    step_kernel.step_rows(p, theta, h)
    np.testing.assert_allclose(p[0], [0.0, np.exp(-0.2), -np.expm1(-0.2)], rtol=1e-14)
