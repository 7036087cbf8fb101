"""The benchmark of the test's false-alarm rate: its rows are what it says, and its figures follow from its sets."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks import calibration

SETTING = calibration.Setting("held-out", 60, "model")


@pytest.mark.parametrize("truth", calibration.TRUTHS)
def test_members_go_on_where_they_ended(truth):
    training, later, follows = calibration.draw_members(replace(SETTING, truth=truth), 3, 1)
    assert len(training) == len(later) == 60
    start, end = (np.concatenate([getattr(s.rows, name) for s in (training, later)]) for name in ("start", "end"))
    linked = follows >= 0
    assert linked.sum() == 3 * 30  # all intervals of a member but the first
    np.testing.assert_array_equal(start[linked], end[follows[linked]])
    bridge, x = np.concatenate([training.bridge, later.bridge]), np.concatenate([training.x, later.x])
    np.testing.assert_array_equal(bridge[linked], bridge[follows[linked]])
    np.testing.assert_array_equal(
        x[linked, 1], x[follows[linked], 1]
    )  # traffic stays, age advances by the interval
    years = np.concatenate([training.rows.dt, later.rows.dt])[follows[linked]]
    np.testing.assert_allclose(x[linked, 0] - x[follows[linked], 0], years)


def test_a_rate_is_of_its_sets(monkeypatch):
    monkeypatch.setattr(
        calibration, "judge", lambda setting, number, replicates, seed: (number % 20 == 0, True, 1)
    )
    rate = calibration.measure(SETTING, 100, 19, 1)
    assert (rate.sets, rate.rejected, rate.share, rate.uncertified, rate.unfinished) == (100, 5, 0.05, 0, 100)
    assert 0.02 < rate.low < 0.05 < rate.high < 0.12
    assert rate.passes is True
    assert replace(rate, share=0.08).passes is False
    assert replace(rate, truth="time").passes is None


def test_a_set_is_judged():
    rejected, _, unfinished = calibration.judge(SETTING, 1, 19, 1)
    assert rejected in (True, False)
    assert unfinished == 0
