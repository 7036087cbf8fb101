import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics

from rekka.core.errors import BadStates, BadValues
from rekka.evaluation.scores import (
    LOG_FLOOR,
    PROBABILITY_FLOOR,
    Scores,
    score,
    score_persistence_rows,
    score_rows,
    split_supported,
)

NUMBERS = ("accuracy", "log_loss", "log_loss_exact", "macro_recall", "brier", "rps")


def score_plainly(p, start, end):
    """The definitions, row by row and state by state."""
    right, floored, exact, brier, rps, classes, floor = [], [], [], [], [], {}, 0
    for row, i, j in zip(p.tolist(), start.tolist(), end.tolist(), strict=True):
        best = max(range(len(row)), key=lambda s: (row[s], -s))
        right.append(best == j)
        classes.setdefault((i, j), []).append(best == j)
        floor += row[j] <= PROBABILITY_FLOOR
        floored.append(-math.log(max(row[j], PROBABILITY_FLOOR)))
        exact.append(-math.log(row[j]) if row[j] > 0 else math.inf)
        brier.append(sum((q - (s == j)) ** 2 for s, q in enumerate(row)))
        rps.append(sum((sum(row[: s + 1]) - (s >= j)) ** 2 for s in range(len(row))))
    n = len(right)
    recall = sum(sum(c) / len(c) for c in classes.values()) / len(classes)
    means = [sum(right) / n, sum(floored) / n, sum(exact) / n, recall, sum(brier) / n, sum(rps) / n]
    return Scores(n, 0, floor, *means)


def log(p):
    with np.errstate(divide="ignore"):
        return np.log(p)


def draw(n, n_states, seed, sparse=False):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_states, 0.05 if sparse else 1.0), n)
    start = rng.integers(0, n_states, n)
    end = np.minimum(start + rng.integers(0, 3, n), n_states - 1)
    return p, log(p[np.arange(n), end]), start, end


def assert_same(ours, theirs, **tolerance):
    assert (ours.rows, ours.unsupported, ours.at_floor) == (theirs.rows, theirs.unsupported, theirs.at_floor)
    for name in NUMBERS:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), err_msg=name, **tolerance)


@pytest.mark.parametrize(
    ("n", "n_states", "seed", "sparse"), [(1, 2, 0, False), (300, 5, 1, False), (300, 7, 2, True)]
)
def test_scores_are_their_definitions(n, n_states, seed, sparse):
    p, log_p, start, end = draw(n, n_states, seed, sparse)
    assert_same(score(p, log_p, start, end), score_plainly(p, start, end), rtol=1e-12, atol=1e-14)


def test_an_example_by_hand():
    p = np.array([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    start, end = np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2])
    ours = score(p, log(p[range(4), end]), start, end, unsupported=3)
    assert (ours.rows, ours.unsupported, ours.at_floor) == (4, 3, 1)
    assert ours.accuracy == 0.5  # the tie in row 1 goes to the better state, which is wrong
    assert ours.macro_recall == pytest.approx((1 + 0 + 1 / 2) / 3)
    assert ours.log_loss == pytest.approx(-(math.log(0.7) + math.log(0.4) + math.log(1e-12)) / 4)
    assert ours.log_loss_exact == math.inf
    assert ours.brier == pytest.approx((0.14 + 0.56 + 2 + 0) / 4)
    assert ours.rps == pytest.approx(((0.3**2 + 0.1**2) + (0.4**2 + 0.2**2) + 1 + 0) / 4)


@pytest.mark.parametrize("seed", range(3))
def test_scores_agree_with_scikit_learn(seed):
    p, log_p, start, end = draw(400, 5, seed)
    ours = score(p, log_p, start, end)
    labels = np.arange(5)
    assert ours.log_loss_exact == pytest.approx(metrics.log_loss(end, p, labels=labels), rel=1e-12)
    assert ours.brier == pytest.approx(
        metrics.brier_score_loss(end, p, labels=labels, scale_by_half=False), rel=1e-12
    )
    assert ours.accuracy == metrics.accuracy_score(end, p.argmax(axis=1))
    seen, forecast = start * 5 + end, start * 5 + p.argmax(axis=1)
    recall = metrics.recall_score(seen, forecast, labels=np.unique(seen), average="macro")
    assert ours.macro_recall == pytest.approx(recall, rel=1e-12)


def test_exact_log_loss_sees_what_the_floor_hides():
    p, start, end = np.array([[1.0, 0.0]] * 2), np.zeros(2, int), np.ones(2, int)
    ours = score(p, np.array([-1000.0, -2000.0]), start, end)
    assert ours.log_loss == -LOG_FLOOR
    assert ours.log_loss_exact == 1500
    assert ours.at_floor == 2


def test_a_probability_of_exactly_the_floor_is_at_it():
    p, start, end = np.array([[1 - 1e-12, 1e-12]] * 2), np.zeros(2, int), np.ones(2, int)
    assert score(p, np.log(p[:, 1]), start, end).at_floor == 2
    assert score(p, np.log([1e-12, 1.01e-12]), start, end).at_floor == 1


@pytest.mark.parametrize("hole", ["p", "log_p", "infinite"])
def test_a_forecast_that_is_no_number_is_the_worst_one(hole):
    p, start, end = np.tile([0.0, 1.0, 0.0, 0.0], (2, 1)), np.array([1, 1]), np.array([1, 1])
    log_p = np.zeros(2)
    if hole == "log_p":
        log_p[1] = np.nan
    else:
        p[1, 1] = np.nan if hole == "p" else np.inf  # argmax would find just this state
    ours = score(p, log_p, start, end)
    assert (ours.accuracy, ours.at_floor, ours.macro_recall) == (0.5, 1, 0.5)
    assert ours.log_loss == -LOG_FLOOR / 2
    assert ours.log_loss_exact == math.inf
    certain = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])  # the farthest miss
    theirs = score(certain, np.array([0.0, -np.inf]), start, end)
    assert ours == theirs


def test_no_rows_have_no_scores():
    none = np.zeros(0, dtype=int)
    for ours in (
        score(np.zeros((0, 4)), np.zeros(0), none, none, 7),
        score_persistence_rows(none, none, 4).mean(7),
    ):
        assert (ours.rows, ours.unsupported, ours.at_floor) == (0, 7, 0)
        assert all(math.isnan(getattr(ours, name)) for name in NUMBERS)
        assert ours.to_dict().keys() == Scores.empty().to_dict().keys()


def test_scores_are_plain_data():
    ours = score(*draw(50, 4, 0))
    assert Scores(**json.loads(json.dumps(ours.to_dict()))) == ours
    assert {type(value) for value in ours.to_dict().values()} == {int, float}


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32])
def test_narrow_integers_do_not_overflow(kind):
    p, log_p, start, end = draw(400, 40, 5)
    assert score(p, log_p, start.astype(kind), end.astype(kind)) == score(p, log_p, start, end)


def test_what_does_not_belong_together_is_refused():
    p, log_p, start, end = draw(5, 3, 0)
    with pytest.raises(BadValues, match=r"'start': \(4,\).*p must be \(n, K\), the others \(n,\)"):
        score(p, log_p, start[:4], end)
    with pytest.raises(BadStates, match=r"row 2 goes from state 0 to 3 \(0-based\).*3 states.*split_supported"):
        score(p, log_p, np.zeros(5, int), np.array([0, 1, 3, 0, 0]))


def test_supported_rows_have_both_states_within_the_training_ones():
    start, end = np.array([0, 2, 3, 2, -1]), np.array([2, 3, 3, 2, 0])
    np.testing.assert_array_equal(split_supported(start, end, 3), [True, False, False, True, False])


STATES = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[hnp.arrays(np.int64, n, elements=st.integers(0, 4)) for _ in range(2)])
)


@given(STATES)
def test_persistence_is_right_where_nothing_changed(states):
    start, end = states
    ours, unchanged = score_persistence_rows(start, end, 5).mean(), float(np.mean(start == end))
    assert ours.accuracy == unchanged
    assert ours.log_loss == pytest.approx((1 - unchanged) * 27.631021115928547)
    assert ours.log_loss_exact == (0 if unchanged == 1 else math.inf)
    assert ours.at_floor == np.sum(start != end)
    assert ours.brier == pytest.approx(2 * (1 - unchanged))
    assert ours.rps == pytest.approx(np.mean(np.abs(end - start)))  # what it is of a certain forecast


@given(STATES)
def test_a_perfect_forecast_loses_nothing(states):
    start, end = states
    ours = score(np.eye(5)[end], np.zeros(len(end)), start, end)
    assert (ours.accuracy, ours.macro_recall) == (1, 1)
    assert (ours.log_loss, ours.log_loss_exact, ours.brier, ours.rps, ours.at_floor) == (0, 0, 0, 0, 0)


@given(st.integers(1, 60), st.integers(2, 8), st.integers(0, 2**32 - 1), st.booleans())
def test_scores_keep_their_bounds_and_do_not_see_the_order_of_rows(n, n_states, seed, sparse):
    rows = draw(n, n_states, seed, sparse)
    ours = score(*rows)
    assert 0 <= ours.accuracy <= 1
    assert 0 <= ours.macro_recall <= 1
    assert 0 <= ours.log_loss <= -LOG_FLOOR * (1 + 1e-12)
    assert ours.log_loss_exact >= ours.log_loss * (1 - 1e-12)
    assert 0 <= ours.brier <= 2
    assert 0 <= ours.rps <= n_states - 1
    order = np.random.default_rng(seed).permutation(n)
    assert_same(score(*(a[order] for a in rows)), ours, rtol=1e-12, atol=1e-14)


SIMPLEX = hnp.arrays(float, 4, elements=st.floats(0.01, 1)).map(lambda a: a / a.sum())


@given(SIMPLEX, SIMPLEX)
def test_no_forecast_beats_the_truth_in_expectation(truth, forecast):
    """Proper scores: the expectation under the true p is least for p itself."""
    end, start = np.arange(4), np.zeros(4, int)

    def expected(p, name):
        one = [score(p[None], np.log(p[j : j + 1]), start[:1], end[j : j + 1]) for j in end]
        return sum(w * getattr(s, name) for w, s in zip(truth, one, strict=True))

    for name in ("log_loss", "log_loss_exact", "brier", "rps"):
        assert expected(truth, name) <= expected(forecast, name) + 1e-12


def test_a_probability_at_the_floor_is_at_it():
    start = end = np.zeros(3, np.int64)
    log_p = np.array([LOG_FLOOR, np.nextafter(LOG_FLOOR, 0.0), -np.inf])
    assert score_rows(np.tile([1.0, 0.0], (3, 1)), log_p, start, end).mean().at_floor == 2


def test_a_logarithm_above_all_numbers_is_no_forecast():
    zero = np.zeros(1, np.int64)
    found = score_rows(np.array([[1.0, 0.0]]), np.array([np.inf]), zero, zero)
    assert not found.right[0]
    assert found.log_p[0] == -np.inf


def test_the_state_after_the_last_is_not_supported():
    assert split_supported(np.array([0, 2, 0, 3]), np.array([2, 2, 3, 3]), 3).tolist() == [
        True,
        True,
        False,
        False,
    ]
