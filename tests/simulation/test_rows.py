import numpy as np
import polars as pl
import pytest

import rekka
from rekka.simulation import rows

# Drawn with the default seed before anything of the drawing was changed.
FIRST_ROW = ("B-000123", 1, 3, 5.21, 37.7, 12.7, 100.4, 4600.0)
SUM_OF_ENDS = 2549


def test_the_columns_are_the_papers():
    data = rekka.simulate_transitions(500)
    assert data.columns == [
        "bridge_id", "state_1", "state_2", "interval_years", "age_at_inspection_1", "bridge_length", "bridge_area",
        "traffic_mean",
    ]  # fmt: skip
    assert (data["state_2"] >= data["state_1"]).all()
    assert set(data["state_1"]) == {1, 2, 3, 4}
    assert data["state_2"].max() == 5


def test_the_same_seed_draws_the_same_rows():
    assert rekka.simulate_transitions(50, seed=1).equals(rekka.simulate_transitions(50, seed=1))
    assert not rekka.simulate_transitions(50, seed=1).equals(rekka.simulate_transitions(50, seed=2))


def test_ends_follow_their_distribution():
    """Observed shares of the end states against exact probabilities, by chi-square on 40,000 draws."""
    from rekka.simulation.rows import draw_ends

    theta, rng = np.array([0.3, 0.1, 0.5]), np.random.default_rng(0)
    end = draw_ends(np.tile(theta, (40_000, 1)), np.full(40_000, 4.0), np.zeros(40_000, np.int64), rng)
    expected = rekka.transition_probabilities(theta, 4.0)[0] * 40_000
    assert (((np.bincount(end, minlength=4) - expected) ** 2) / expected).sum() < 16.3  # p = 0.001, 3 df


def test_age_is_skewed_to_the_left_and_traffic_to_the_right():
    data = rekka.simulate_transitions(5_000)
    skew = data.select(pl.col("age_at_inspection_1").skew(), pl.col("traffic_mean").skew()).row(0)
    assert skew[0] < -0.5
    assert skew[1] > 2


@pytest.mark.parametrize("options", [{"n_rows": 0}, {"n_rows": 5, "n_states": 1}])
def test_nothing_to_draw_is_refused(options):
    with pytest.raises(rekka.InputError, match="at least 1 row and 2 states are needed"):
        rekka.simulate_transitions(**options)


def test_one_row_can_be_drawn():
    assert len(rekka.simulate_transitions(1)) == 1


def test_ends_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    whole = rekka.simulate_transitions(3_000, seed=5)
    monkeypatch.setattr(rows, "_DRAWN_AT_ONCE", 700)
    assert rekka.simulate_transitions(3_000, seed=5).equals(whole)


def test_bridges_are_named_by_six_digits_and_more_where_they_are_needed():
    found = rows._name_bridges(np.array([0, 17, 999_999, 1_234_567]))
    assert found.to_list() == ["B-000000", "B-000017", "B-999999", "B-1234567"]


def test_drawn_values_stay_what_they_were():
    """A published seed keeps its rows: the README, the docs and stored benchmarks were made from them."""
    first = rekka.simulate_transitions(1_000).row(0)
    assert first == FIRST_ROW
    assert rekka.simulate_transitions(1_000)["state_2"].sum() == SUM_OF_ENDS
