import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rekka


def test_reference_values():
    """theta = (1, 2, 3, 4), dt = 1; from REFERENCE.md, exact small checks."""
    p = rekka.transition_probabilities([1, 2, 3, 4], 1)
    np.testing.assert_allclose(p[0], [0.36787944, 0.23254416, 0.14699594, 0.09291916, 0.1596613], atol=5e-9)
    np.testing.assert_allclose(p[1, 1:], [0.13533528, 0.17109643, 0.16223036, 0.53133793], atol=5e-9)
    np.testing.assert_allclose(p[2, 2:4], [0.04978707, 0.09441429], atol=5e-9)
    assert p[2, 4] == pytest.approx(0.85579864, abs=5e-9)
    assert p[4, 4] == 1


def test_shapes_broadcast():
    assert rekka.transition_probabilities([0.1, 0.2], 1.0).shape == (3, 3)
    assert rekka.transition_probabilities(np.full((4, 1, 2), 0.1), np.ones(7)).shape == (4, 7, 3, 3)
    assert rekka.transition_probabilities([0.1], np.ones((2, 0))).shape == (2, 0, 2, 2)


@settings(max_examples=200, deadline=None)
@given(hnp.arrays(float, st.integers(1, 9), elements=st.floats(0, 1e3)), st.floats(0, 50))
def test_rows_are_distributions_over_worse_states(theta, dt):
    p = rekka.transition_probabilities(theta, dt)
    assert (p >= 0).all()
    assert (np.tril(p, -1) == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-13)


def test_no_time_and_no_hazard_mean_no_change():
    np.testing.assert_array_equal(rekka.transition_probabilities([0.3, 0.1], 0.0), np.eye(3))
    p = rekka.transition_probabilities([0.3, 0.0, 0.1], 5.0)
    assert p[0, 2] == 0
    assert p[1, 1] == 1


def test_two_intervals_make_one():
    theta = np.array([0.3, 0.31, 0.05, 0.9])
    half, whole = (rekka.transition_probabilities(theta, t) for t in (2.0, 4.0))
    np.testing.assert_allclose(half @ half, whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("theta", "dt", "message"),
    [
        ([-0.1], 1.0, r"theta has 1 value\(s\) that are negative, missing or infinite \(first: -0.1\)"),
        ([0.1], float("nan"), r"dt has 1 value\(s\)"),
        ([np.inf], 1.0, "theta has 1"),
        (0.1, 1.0, "theta needs at least one hazard in its last axis"),
        ("abc", 1.0, "theta must be an array of numbers"),
        (np.ones((3, 2)), np.ones(4), "cannot be broadcast together"),
    ],
)
def test_wrong_input_is_refused(theta, dt, message):
    with pytest.raises(rekka.InputError, match=message):
        rekka.transition_probabilities(theta, dt)
