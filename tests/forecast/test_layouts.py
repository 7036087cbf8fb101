"""Matrices as tables: sums, medians, columns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rekka
from rekka.forecast.matrices import LAYOUTS, Matrix, lay_out, round_together

NOTHING = np.full((3, 3), np.nan)


def matrix(theta=(0.2, 0.1), years=1.0, **changes):
    hazard = np.array(theta)
    p = rekka.transition_probabilities(hazard, years)
    states = len(p)
    given = {
        "probability": p,
        "low": p * 0.9,
        "high": np.minimum(p * 1.1, 1.0),
        "hazard": hazard,
        "hazard_low": hazard / 2,
        "hazard_high": hazard * 2,
        "years": years,
        "level": 0.95,
        "intervals": "delta",
        "course": "covariates stay as they are",
        "advancing": (),
        "covariates": {"age": 40.0, "traffic_mean": 8000.0},
        "labels": tuple(str(state) for state in range(1, states + 1)),
        "certified": True,
        "notes": (),
        "case": "Pier",
    }
    return Matrix(**given | changes)


def test_square():
    one = matrix()
    table = lay_out(one)
    assert table.columns == [
        "case",
        "years",
        "from_state",
        "from_label",
        "to_1",
        "to_2",
        "to_3",
        "certified",
        "covariates",
    ]
    np.testing.assert_array_equal(table.select("to_1", "to_2", "to_3").to_numpy(), one.probability)
    assert table["covariates"][0] == "age=40; traffic_mean=8000"
    assert "from_label" not in str(table)
    assert "covariates" not in str(table)


def test_long_has_the_pairs_that_can_be_with_their_intervals():
    one = matrix(years=2.0)
    table = lay_out(one, "long")
    assert table.select("from_state", "to_state").rows() == [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]
    upper = np.triu_indices(3)
    for name, values in (("probability", one.probability), ("low", one.low), ("high", one.high)):
        np.testing.assert_array_equal(table[name], values[upper])
    assert set(table["years"]) == {2.0}
    assert "95 % intervals (delta)" in table.title


def test_percent_sums_to_100_in_every_row():
    table = lay_out(matrix(), "percent")
    names = ["stays_percent", "worse_by_1_percent", "worse_by_2_percent"]
    assert [name for name in table.columns if name.endswith("percent")] == names
    rows = table.select(names).rows()
    assert [round(sum(filter(None, row)), 9) for row in rows] == [100.0] * 3
    assert rows[0] == (81.9, 17.2, 0.9)
    assert rows[1][2] is None
    assert rows[2] == (100.0, None, None)
    assert lay_out(matrix(), "percent", decimals=0).select(names).rows()[0] == (82.0, 17.0, 1.0)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(lambda some: sum(some) > 0.01),
    st.integers(0, 4),
)
def test_rounding_together_keeps_the_sum_and_stays_near(shares, decimals):
    rounded = round_together(shares, decimals)
    unit = 10**decimals
    assert sum(round(value * unit) for value in rounded) == 100 * unit
    for value, share in zip(rounded, shares, strict=True):
        assert abs(value - 100 * share / sum(shares)) < 1 / unit * (1 + 1e-6)


def test_ties_go_to_the_better_state():
    assert round_together([1 / 3, 1 / 3, 1 / 3], 0) == [34.0, 33.0, 33.0]


def test_medians_are_those_of_the_exponential_distribution():
    table = lay_out([matrix(years=1.0), matrix(years=5.0)], "median")
    assert len(table) == 1  # the years of a matrix have no part in it
    row = table.row(0, named=True)
    assert 1 - np.exp(-0.2 * row["t1_years"]) == pytest.approx(0.5)
    assert row["t2_years"] == pytest.approx(np.log(2) / 0.1)
    assert (row["t1_low_years"], row["t1_high_years"]) == pytest.approx((np.log(2) / 0.4, np.log(2) / 0.1))
    assert row["shape"] == 1.0
    assert "as given" not in table.title


def test_medians_say_for_which_age_they_are():
    assert "for age as given, as if it stayed" in lay_out(matrix(advancing=("age",)), "median").title


def test_a_state_that_is_never_left_has_an_endless_median():
    assert lay_out(matrix(theta=(0.2, 0.0)), "median")["t2_years"][0] == np.inf


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cases_with_different_numbers_of_states_stand_in_one_table(layout):
    small = matrix(theta=(0.3,), case="Deck", labels=("good", "poor"))
    table = lay_out([matrix(), small], layout)
    assert set(table["case"]) == {"Pier", "Deck"}
    last = {"square": "to_3", "percent": "worse_by_2_percent", "median": "t2_years"}.get(layout)
    if last is not None:
        assert table.filter(case="Deck")[last].is_null().all()
    if layout == "square":
        assert table["from_label"].to_list() == ["1", "2", "3", "good", "poor"]
        assert "good" in str(table)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_not_certified_says_so_everywhere(layout):
    watermark = "NOT CERTIFIED: for a test."
    ends = dict.fromkeys(("low", "high"), NOTHING) | {
        name: np.full(2, np.nan) for name in ("hazard_low", "hazard_high")
    }
    bad = matrix(certified=False, intervals="none", notes=(watermark,), **ends)
    table = lay_out(bad, layout)
    assert table.title.startswith(f"Pier: {watermark}")
    assert not table["certified"].any()
    if layout in ("long", "median"):
        assert "no intervals" in table.title
        assert table["low" if layout == "long" else "t1_low_years"].is_null().all()


def test_a_case_without_a_name_is_not_printed():
    table = lay_out(replace(matrix(), case=None, notes=("Look.",)))
    assert table.title.startswith("Look.")
    assert "case" not in str(table)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (matrix(), {"layout": "cube"}, "layout is 'cube'; it can be square, long, percent, median"),
        ([], {}, "There is no matrix to lay out"),
        (matrix(), {"decimals": 7}, "decimals is 7; a whole number from 0 to 6"),
        (matrix(), {"decimals": True}, "decimals is True"),
    ],
)
def test_wrong_options_are_refused(given, options, message):
    with pytest.raises(rekka.InputError, match=message):
        lay_out(given, **options)
