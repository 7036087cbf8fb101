import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from rekka.model import kernel

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import accuracy


def evaluate(eta, dt, start, end):
    """Value, slope, curvature of one row; states 0-based."""
    eta = np.atleast_2d(np.asarray(eta, float))
    slope, curve = np.empty(eta.shape), np.empty((*eta.shape, eta.shape[1]))
    value = kernel.log_probability_rows(
        eta, np.array([float(dt)]), np.array([start]), np.array([end]), 2, slope, curve
    )
    return value[0], slope[0], curve[0]


def generator(theta):
    Q = np.zeros((len(theta) + 1,) * 2)
    for k, rate in enumerate(theta):
        Q[k, k], Q[k, k + 1] = -rate, rate
    return Q


def test_accuracy_against_50_digits():
    worst = accuracy.worst_errors(accuracy.draw_cases(600, seed=1))
    assert accuracy.passes(worst), worst


@pytest.mark.parametrize("n_states", [2, 3, 5, 8])
def test_value_equals_the_matrix_exponential(n_states):
    rng = np.random.default_rng(n_states)
    for _ in range(50):
        eta, dt = rng.normal(-1.5, 1.0, n_states - 1), rng.uniform(0.5, 8)
        theirs = expm(generator(np.exp(eta)) * dt)
        for i in range(n_states - 1):
            for j in range(i, n_states):
                ours = evaluate(eta, dt, i, j)[0]
                assert math.exp(ours) == pytest.approx(theirs[i, j], rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("jumps", range(5))
def test_slope_and_curvature_are_derivatives_of_the_value(jumps):
    eta, dt, step = np.array([-1.2, -0.3, -2.0, -1.2 + 1e-9, -0.7]), 2.5, 1e-5
    _, slope, curve = evaluate(eta, dt, 0, jumps)
    for m in range(5):
        bump = np.eye(5)[m] * step
        up, down = evaluate(eta + bump, dt, 0, jumps), evaluate(eta - bump, dt, 0, jumps)
        assert slope[m] == pytest.approx((up[0] - down[0]) / (2 * step), abs=1e-8)
        np.testing.assert_allclose(curve[m], (up[1] - down[1]) / (2 * step), atol=1e-8)


def test_equal_hazards_are_erlang():
    theta, dt = 0.7, 3.0
    for jumps in range(6):
        value, _, _ = evaluate(np.full(9, np.log(theta)), dt, 1, 1 + jumps)
        expected = (theta * dt) ** jumps * math.exp(-theta * dt) / math.factorial(jumps)
        assert math.exp(value) == pytest.approx(expected, rel=1e-14)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(-200, 200), min_size=1, max_size=9),
    st.floats(1e-3, 1e2),
    st.data(),
)
def test_log_probability_is_finite_and_never_above_zero(eta, dt, data):
    start = data.draw(st.integers(0, len(eta) - 1))
    end = data.draw(st.integers(start, len(eta)))
    value, slope, curve = evaluate(eta, dt, start, end)
    assert np.isfinite(value)
    assert value <= 0.0
    assert np.isfinite(slope).all()
    assert np.isfinite(curve).all()


def test_series_and_table_meet_without_a_step():
    """The two forms for many jumps agree where one hands over to the other."""
    below, above = (np.log([0.5, 3.0, kernel.SERIES_WIDTH * (1 + side * 1e-9), 1.0]) for side in (-1, 1))
    for end in (2, 3, 4):
        ours, theirs = evaluate(below, 1.0, 0, end), evaluate(above, 1.0, 0, end)
        assert ours[0] == pytest.approx(theirs[0], rel=1e-7)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("eta", "start", "end", "value"),
    [
        ([1e4, 0.0], 0, 1, -1.0),  # left in an instant, then one year in state 2
        ([1e4, 1e4], 0, 2, 0.0),
        ([1e4], 0, 0, -np.inf),
        ([-1e4], 0, 1, -1e4),
        ([0.0, 1e4], 0, 1, -1.0 - 1e4),  # log a_1 - a_1 - log a_2
        ([0.0, 1e4, -1.0], 0, 2, None),  # state 2 is skipped
        ([1e4, -1e4, 0.0], 0, 2, -1e4 - 0.4586751453870819),
    ],
)
def test_hazards_beyond_all_numbers_have_their_limits(eta, start, end, value):
    ours, slope, curve = evaluate(eta, 1.0, start, end)
    if value is None:
        value = evaluate([0.0, -1.0], 1.0, 0, 1)[0]
    assert ours == pytest.approx(value, rel=1e-12, abs=1e-15)
    if np.isfinite(value):
        assert np.isfinite(slope).all()
        assert np.isfinite(curve).all()


def test_a_lane_does_not_see_its_neighbours():
    rng = np.random.default_rng(0)
    rows = 200
    a = np.exp(rng.normal(0, 2.5, (rows, 5)))
    start = rng.integers(0, 5, rows)
    together = np.empty((rows, 6))
    start = np.sort(start)
    kernel.probability_rows(a, np.log(a), start, 0, together)
    for row in range(rows):
        alone = np.empty((1, 6))
        one = slice(row, row + 1)
        kernel.probability_rows(a[one], np.log(a[one]), start[one], 0, alone)
        np.testing.assert_allclose(together[row], alone[0], rtol=1e-14)


def test_compiled_code_equals_plain_python():
    """The same functions run uncompiled give the same numbers, by every path."""
    script = Path(__file__).with_name("kernel_cases.py")
    texts = [
        subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": flag},
        ).stdout
        for flag in ("0", "1")
    ]
    ours, theirs = (json.loads(text) for text in texts)
    assert len(ours) > 100
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
