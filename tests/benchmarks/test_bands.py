"""The bands of forecasts hold the truth about as often as they say; benchmarks/bands.py has more sets and ways."""

import pytest
from benchmarks.bands import LIMITS, PREDICTED, measure

from rekka.forecast.spread import DELTA


@pytest.fixture(scope="module")
def found():
    return measure(sets=40, bridges=600, kinds=(DELTA,))


def test_intervals_of_parameters_and_of_single_members(found):
    assert found.uncertified == 0
    assert LIMITS[0] <= found.together(DELTA, predicted=False) <= LIMITS[1]
    assert PREDICTED[0] <= found.together(DELTA, predicted=True) <= PREDICTED[1]
    assert found.passes
