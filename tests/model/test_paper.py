import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rekka
from rekka.model import paper
from rekka.model.likelihood import Rows
from rekka.model.paper_kernel import floored_log_likelihood

THETA, DT = np.array([0.374, 0.2527, 0.1629, 0.1079]), 3.0


def test_printed_proposition_1_is_the_cumulative_probability():
    """The paper's Eq. transition-prob gives P(S(dt) <= j), not pi_ij; figures from METHOD.md, section 1."""
    printed = [paper.printed_proposition_1(THETA, DT, 1, j) for j in range(1, 5)]
    true_row = rekka.transition_probabilities(THETA, DT)[0]
    np.testing.assert_allclose(printed, [0.3256, 0.7663, 0.9610, 0.9967], atol=5e-5)
    np.testing.assert_allclose(true_row, [0.3256, 0.4407, 0.1947, 0.0357, 0.0033], atol=5e-5)
    np.testing.assert_allclose(printed, np.cumsum(true_row)[:4], rtol=1e-12)


def test_printed_proposition_1_is_no_distribution():
    assert [paper.printed_proposition_1(THETA, 0.0, 1, j) for j in range(1, 5)] == pytest.approx([1] * 4)
    row = [paper.printed_proposition_1(THETA, DT, 1, j) for j in range(1, 5)]
    assert 1 - sum(row) < -2  # the complement rule would make pi_1K negative


def test_corrected_closed_form_is_right_where_hazards_differ():
    theta = np.repeat(THETA[None], 5, axis=0)
    ours = rekka.transition_probabilities(THETA, DT)
    for i in range(4):
        for j in range(i, 5):
            theirs = paper.floored_probability(theta, np.full(5, DT), i, j)
            np.testing.assert_allclose(theirs, ours[i, j], rtol=1e-9, atol=1e-14)


def test_floors_ruin_it_where_hazards_are_close():
    """Hazards spread by relative 1e-3, 1e-5, 1e-8 around 0.3: wrong digits, then nonsense."""
    wrong = []
    for spread in (1e-1, 1e-3, 1e-5, 1e-8):
        theta = 0.3 * (1 + spread * np.arange(9))
        exact = rekka.transition_probabilities(theta, 2.0)[0, 8]
        wrong.append(abs(paper.floored_probability(theta[None], np.array([2.0]), 0, 8)[0] / exact - 1))
    assert wrong[0] < 0.1
    assert wrong[1] > 1e3
    assert wrong[2] > 1e6


def test_floored_likelihood_is_flat_where_exact_still_falls():
    rows = Rows(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1), np.ones(1), 2)
    X = np.ones((1, 1))
    likelihood = paper.FlooredLikelihood.build(rows, X)
    floored = [likelihood.value(np.array([[eta]])) for eta in (4.0, 5.0, 6.0)]
    assert floored == pytest.approx([np.log(1e-12)] * 3)


@given(st.integers(0, 2**32 - 1), st.integers(2, 7))
@settings(max_examples=60, deadline=None)
def test_compiled_likelihood_is_the_plain_one(seed, n_states):
    rng = np.random.default_rng(seed)
    n = 40
    start = rng.integers(0, n_states, n)
    end = np.array([rng.integers(s, n_states) for s in start])
    order = np.lexsort((end, start))
    rows = Rows(start[order], end[order], rng.gamma(2, 2, n), rng.uniform(0.5, 2, n), n_states)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    beta = rng.normal(0, 1, (n_states - 1, 3))
    ours = floored_log_likelihood(X, beta, rows.start, rows.end, rows.dt, rows.weight)
    theirs = paper.FlooredLikelihood.build(rows, X).value(beta)
    close = np.exp(X @ beta.T)
    gaps = np.abs(close[:, :, None] - close[:, None, :])[:, *np.triu_indices(n_states - 1, 1)]
    # close hazards cancel, in both alike but not by the same digits
    assert ours == pytest.approx(theirs, rel=1e-9 if gaps.min(initial=1.0) > 0.05 else 1e-2)


def test_compiled_likelihood_floors_what_overflows():
    rows = Rows(np.zeros(3, np.int64), np.array([0, 1, 2]), np.ones(3), np.ones(3), 3)
    X = np.full((3, 1), 1e6)
    beta = np.array([[1.0], [2.0]])
    with np.errstate(all="ignore"):
        theirs = paper.FlooredLikelihood.build(rows, X).value(beta)
    ours = floored_log_likelihood(X, beta, rows.start, rows.end, rows.dt, rows.weight)
    assert ours == theirs == pytest.approx(3 * np.log(1e-12))
