import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rekka.evaluation.calibration import (
    BIN_ROWS,
    MOST_BINS,
    MOVES,
    SCHEMA,
    cut_bins,
    share_interval,
    tabulate_reliability,
)
from rekka.evaluation.scores import mean_interval


@given(st.integers(0, 500), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_bins_are_few_large_and_in_order_with_equals_together(n, seed, decimals):
    forecast = np.random.default_rng(seed).beta(0.5, 2.0, n).round(decimals)
    bins = cut_bins(forecast)
    size = np.bincount(bins)
    assert size.size <= MOST_BINS
    assert size.size == 0 or size.min() >= min(BIN_ROWS, forecast.size)
    order = np.argsort(forecast, kind="stable")
    assert (np.diff(bins[order]) >= 0).all()
    assert all(len(set(bins[forecast == value])) == 1 for value in np.unique(forecast))


def test_bins_of_different_forecasts_are_of_equal_size():
    assert np.bincount(cut_bins(np.random.default_rng(0).random(1000))).tolist() == [100] * 10
    assert np.bincount(cut_bins(np.random.default_rng(0).random(70))).tolist() == [20, 20, 30]
    assert cut_bins(np.array([0.2, 0.1])).tolist() == [0, 0]


def test_a_curve_by_hand():
    """State 1 to 3 with two groups of forecasts; rows in the worst state are in no curve."""
    low, high = [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]
    p = np.array([low] * 20 + [high] * 20 + [[0, 0.6, 0.4]] * 20 + [[0, 0, 1.0]] * 5)
    start = np.repeat([0, 0, 1, 2], [20, 20, 20, 5])
    end = np.array([0] * 17 + [1] * 3 + [0] * 4 + [1] * 10 + [2] * 6 + [1] * 20 + [2] * 5)
    bridge = np.array([f"B{row % 13}" for row in range(65)])
    ours = tabulate_reliability(p, start, end, bridge, 0.95)
    moves = ours.filter(event=MOVES)
    assert moves["forecast"].to_list() == pytest.approx([0.1, 0.4, 0.8])
    assert moves["observed"].to_list() == pytest.approx([3 / 20, 0, 16 / 20])
    assert moves["rows"].to_list() == [20, 20, 20]
    assert moves["end"].to_list() == [None] * 3
    best = ours.filter(end=1)  # rows that start in 2 cannot end in 1
    assert best["forecast"].to_list() == pytest.approx([0.2, 0.9])
    assert best["observed"].to_list() == pytest.approx([4 / 20, 17 / 20])
    worst = ours.filter(end=3)
    assert worst["forecast"].to_list() == pytest.approx([0.0, 0.3, 0.4])
    assert worst["observed"].to_list() == pytest.approx([0, 6 / 20, 0])
    theirs = mean_interval((end[20:40] == 2).astype(float), bridge[20:40])
    assert worst.row(1, named=True)["low"] == pytest.approx(max(theirs.low, 0))
    assert worst.row(1, named=True)["high"] == pytest.approx(theirs.high)
    assert worst["bridges"].to_list() == [13] * 3


def test_a_share_of_none_or_all_has_an_interval_too():
    bridge = np.array([f"B{row % 8}" for row in range(24)])
    none, every = (share_interval(np.full(24, value), bridge, 0.95) for value in (0.0, 1.0))
    exact = stats.binomtest(0, 8).proportion_ci(0.95, method="exact")
    assert (none.low, none.high) == (0, pytest.approx(exact.high))
    assert (every.low, every.high) == (pytest.approx(1 - exact.high), 1)


def test_one_bridge_tells_nothing_of_others():
    assert share_interval(np.array([0.0, 1.0]), np.array(["A", "A"]), 0.95)[1:3] == (0, 1)
    alike = share_interval(np.zeros(5), np.full(5, "A"), 0.95)
    assert (alike.low, alike.high) == (0, pytest.approx(0.975))


def test_no_rows_have_an_empty_table():
    none = np.zeros(0, np.int64)
    ours = tabulate_reliability(np.zeros((0, 4)), none, none, np.zeros(0, np.str_), 0.95)
    assert ours.height == 0
    assert dict(ours.schema) == SCHEMA
