"""The bands of forecasts hold the truth about as often as they say; benchmarks/bands.py has more sets and ways."""

import json

import pytest
from benchmarks.ageing import AGED_LIMITS, MIDDLE, NO_LAG, START, measure_ageing, true_years
from benchmarks.bands import LIMITS, PREDICTED, RESULT, measure

from rekka.forecast.uncertainty import DELTA


@pytest.fixture(scope="module")
def found():
    return measure(sets=40, bridges=600, kinds=(DELTA,))


@pytest.mark.slow
def test_intervals_of_parameters_and_of_single_members(found):
    assert found.uncertified == 0
    assert LIMITS[0] <= found.together(DELTA, predicted=False) <= LIMITS[1]
    assert PREDICTED[0] <= found.together(DELTA, predicted=True) <= PREDICTED[1]
    assert found.passes


@pytest.mark.slow
def test_ages_that_run_on_within_intervals():
    """Few sets here; the stored run has many, and its shares are within the limits at every gap."""
    found = measure_ageing(sets=40, bridges=600, gaps=(5.0,))
    assert found.uncertified == 0
    assert 0.88 <= found.share(5.0, MIDDLE) <= 1.0
    middle, start, ahead = (found.mean_years(5.0, way) for way in (MIDDLE, START, NO_LAG))
    assert middle == pytest.approx(true_years(), abs=1.0)
    assert start == pytest.approx(middle, abs=0.1)
    assert ahead < middle - 0.8


def test_the_stored_run_is_within_its_limits():
    stored = json.loads(RESULT.read_text())["ageing"]
    assert stored["limits"] == list(AGED_LIMITS)
    shares = {(one["gap"], one["way"]): one["share"] for one in stored["ways"]}
    for gap in (1.0, 2.0, 5.0):
        assert AGED_LIMITS[0] <= shares[gap, MIDDLE] <= AGED_LIMITS[1]
    assert shares[5.0, NO_LAG] < 0.9
