import numpy as np

from rekka.model.coordinates import build_layout


def test_every_coefficient_is_free_by_default():
    layout = build_layout(["age", "length"], 4, None, None)
    assert layout.n_parameters == 9
    np.testing.assert_array_equal(layout.select, np.eye(9))
    assert layout.name(4) == "state 2: age"


def test_effects_and_shared():
    layout = build_layout(["age", "length"], 4, {"age": [2, 3]}, {"length": [[1, 3]]})
    expected = [[0, -1, 1], [2, 3, 4], [5, 6, 1]]
    np.testing.assert_array_equal(layout.parameter.reshape(3, 3), expected)
    assert layout.name(1) == "states 1, 3: length"
    assert layout.states_of(1) == [1, 3]
    np.testing.assert_array_equal(layout.term_of, [0, 2, 0, 1, 2, 0, 1])
    assert layout.select.sum() == 8


def test_a_covariate_may_act_nowhere():
    layout = build_layout(["age"], 3, {"age": []}, None)
    assert layout.n_parameters == 2


def test_states_are_shared_in_whatever_order_they_are_named():
    one, other = (build_layout(["age"], 4, None, {"age": [group]}) for group in ([1, 2], [2, 1]))
    np.testing.assert_array_equal(other.parameter, one.parameter)
    assert other.name(1) == "states 1, 2: age"
