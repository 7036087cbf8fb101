import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rekka.evaluation.scores import Interval, mean_interval

unhurried = settings(max_examples=50, deadline=None)


def jackknife(values, bridge, confidence=0.95):
    """Every bridge left out in turn, by regression on a constant; Kish's number of bridges from design weights."""
    names = sorted(set(bridge.tolist()))
    keep = [bridge != name for name in names]
    means = [np.linalg.lstsq(np.ones((k.sum(), 1)), values[k], rcond=None)[0][0] for k in keep]
    mean = np.linalg.lstsq(np.ones((len(values), 1)), values, rcond=None)[0][0]
    variance = (len(names) - 1) / len(names) * sum((m - mean) ** 2 for m in means)
    share = np.array([np.mean(~k) for k in keep])
    freedom = max(1 / np.sum(share**2) - 1, 1)
    return stats.t.interval(confidence, freedom, mean, math.sqrt(variance))


def sandwich(values, bridge):
    """The cluster-robust variance of an intercept, (X'X)^-1 sum X_g'u_g u_g'X_g (X'X)^-1, times G / (G - 1)."""
    X = np.ones((len(values), 1))
    bread = np.linalg.inv(X.T @ X)
    u = values - X @ bread @ X.T @ values
    names = np.unique(bridge)
    meat = sum(np.outer(X[bridge == n].T @ u[bridge == n], X[bridge == n].T @ u[bridge == n]) for n in names)
    return float((len(names) / (len(names) - 1) * bread @ meat @ bread)[0, 0])


@st.composite
def draws(draw, least=2):
    sizes = draw(st.lists(st.integers(1, 6), min_size=least, max_size=12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bridge = np.repeat([f"B-{number}" for number in range(len(sizes))], sizes)
    return rng.normal(size=bridge.size) + rng.normal(size=len(sizes)).repeat(sizes), bridge


@unhurried
@given(draws(), st.floats(0.5, 0.99))
def test_the_interval_is_its_definition(rows, confidence):
    values, bridge = rows
    ours = mean_interval(values, bridge, confidence)
    np.testing.assert_allclose((ours.low, ours.high), jackknife(values, bridge, confidence), rtol=1e-9, atol=1e-12)
    assert (ours.rows, ours.bridges) == (len(values), len(set(bridge)))
    assert ours.mean == pytest.approx((ours.low + ours.high) / 2)


@unhurried
@given(draws(), st.integers(1, 5))
def test_with_bridges_of_one_size_it_is_the_robust_regressions(rows, size):
    values, bridge = rows
    bridge = np.repeat(np.arange(len(values)), size)
    values = np.repeat(values, size) + np.linspace(0, 1, bridge.size)
    ours = mean_interval(values, bridge)
    reach = stats.t.ppf(0.975, len(values) // size - 1) * math.sqrt(sandwich(values, bridge))
    assert ours.high - ours.mean == pytest.approx(reach, rel=1e-9)


@unhurried
@given(draws())
def test_with_bridges_of_unequal_size_it_is_no_narrower_than_their_weights_allow(rows):
    values, bridge = rows
    ours = mean_interval(values, bridge)
    plain = stats.t.ppf(0.975, ours.bridges - 1) * math.sqrt(sandwich(values, bridge))
    least = np.unique(bridge, return_counts=True)[1].min() / len(values)  # of what a bridge weighs
    assert ours.high - ours.mean >= plain * (1 - 1 / ours.bridges) / (1 - least) * (1 - 1e-9)


@unhurried
@given(draws(), st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_names_matter(rows, random):
    values, bridge = rows
    ours = mean_interval(values, bridge)
    order = np.array(random.sample(range(len(values)), len(values)))
    np.testing.assert_allclose(mean_interval(values[order], bridge[order]), ours, rtol=1e-9, atol=1e-12)
    numbers = np.array([1000 - int(name[2:]) for name in bridge])
    for names in (numbers, numbers.astype(str), bridge.astype(object)):
        np.testing.assert_allclose(mean_interval(values, names), ours, rtol=1e-9, atol=1e-12)


@unhurried
@given(draws(), st.floats(-5, 5), st.floats(0.01, 100))
def test_it_moves_and_stretches_with_the_values(rows, shift, scale):
    values, bridge = rows
    ours, moved = mean_interval(values, bridge), mean_interval(shift + scale * values, bridge)
    expected = [shift + scale * figure for figure in (ours.mean, ours.low, ours.high)]
    np.testing.assert_allclose((moved.mean, moved.low, moved.high), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n", [2, 3, 50])
def test_one_row_on_every_bridge_gives_the_t_interval(n):
    values = np.random.default_rng(n).normal(3, 2, n)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    ours = mean_interval(values, np.arange(n), 0.9)
    np.testing.assert_allclose((ours.low, ours.high), theirs, rtol=1e-12)


def test_an_example_by_hand():
    ours = mean_interval(np.array([1.0, 3.0, 2.0, 6.0]), np.array(["a", "a", "b", "c"]))
    moved = (4 - 3, 10 / 3 - 3, 2 - 3)  # without a, b, c; the mean of all is 3
    se = math.sqrt(2 / 3 * sum(m**2 for m in moved))
    freedom = 16 / (4 + 1 + 1) - 1
    assert ours.mean == 3
    assert ours.high - 3 == pytest.approx(stats.t.ppf(0.975, freedom) * se)
    assert (ours.rows, ours.bridges) == (4, 3)


def test_rows_copied_within_bridges_add_no_certainty():
    values, bridge = np.random.default_rng(0).normal(size=30), np.arange(30)
    ours, copied = mean_interval(values, bridge), mean_interval(np.repeat(values, 7), np.repeat(bridge, 7))
    np.testing.assert_allclose(copied[:3], ours[:3], rtol=1e-12)
    naive = mean_interval(np.repeat(values, 7), np.arange(210))
    assert naive.high - naive.low < 0.5 * (ours.high - ours.low)


def test_one_bridge_with_nearly_all_rows_leaves_wide_but_finite_bounds():
    values = np.random.default_rng(0).normal(size=1000)
    bridge = np.r_[np.zeros(998, int), 1, 2]
    ours = mean_interval(values, bridge)
    assert 1 < ours.high - ours.mean < 1e3


def test_no_rows():
    ours = mean_interval(np.zeros(0), np.zeros(0, dtype=np.str_))
    assert math.isnan(ours.mean)
    assert ours[1:] == (-math.inf, math.inf, 0, 0)


def test_one_bridge_has_a_mean_but_no_bounds():
    assert mean_interval(np.array([1.0, 3.0]), np.array(["a", "a"])) == Interval(2.0, -math.inf, math.inf, 2, 1)


@pytest.mark.parametrize("constant", [0.0, 0.1, -7.25])
def test_values_without_variance_have_no_width(constant):
    ours = mean_interval(np.full(9, constant), np.arange(9) // 2)
    np.testing.assert_allclose(ours[:3], constant, rtol=1e-14)


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_an_infinite_or_undefined_mean_has_no_bounds(odd):
    """An exact log loss may be infinite: a row that the model holds to be impossible."""
    ours = mean_interval(np.array([1.0, odd, 2.0]), np.arange(3))
    np.testing.assert_equal(ours, Interval(odd, -math.inf, math.inf, 3, 3))


def test_it_holds_the_truth_about_as_often_as_it_says():
    """A short look; benchmarks/clusters.py has the long one."""
    rng = np.random.default_rng(20260924)
    held, naive, sets = 0, 0, 1000
    for _ in range(sets):
        bridge = np.repeat(np.arange(30), rng.integers(1, 11, 30))
        values = rng.normal(size=30)[bridge] + rng.normal(size=bridge.size)
        ours, theirs = mean_interval(values, bridge), mean_interval(values, np.arange(values.size))
        held += ours.low <= 0 <= ours.high
        naive += theirs.low <= 0 <= theirs.high
    assert 0.93 < held / sets < 0.975
    assert naive / sets < 0.75
