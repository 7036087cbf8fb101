"""``fit_components`` with elements of histories, and ``rank_bridges``."""

from itertools import pairwise

import polars as pl
import pytest

import rekka
from histories_table import make_inspections
from rekka.core.errors import BadOption, InputError
from rekka.core.ratings import Ratings
from rekka.fleet.histories import HistoryOptions


@pytest.fixture(scope="module")
def fits():
    return rekka.fit_components(make_inspections(errors=0.0), frailty="gamma")


def test_fast_bridges_come_first(fits, tmp_path):
    table = rekka.rank_bridges(fits, out=tmp_path / "rank.parquet")
    assert pl.read_parquet(tmp_path / "rank.parquet").equals(table)
    kinds = table["bridge"].str.slice(0, 1)
    assert (kinds.head(20) == "F").sum() >= 18
    assert (kinds.tail(20) == "S").sum() >= 18
    assert table["factor"].is_sorted(descending=True)
    assert ((table["low"] < table["factor"]) & (table["factor"] < table["high"])).all()
    assert table["factor"].mean() == pytest.approx(1.0, abs=0.05)
    assert set(table["by"]) == {"bridge"}
    own = fits.models["all"].frailty_
    assert table["factor"].to_list() == own["frailty"].to_list()


def test_a_file_of_another_kind_is_refused_before_any_work(fits, tmp_path):
    with pytest.raises(BadOption, match="There is no folder nowhere"):
        rekka.rank_bridges(fits, out=tmp_path / "nowhere" / "rank.csv")
    with pytest.raises(InputError, match="no frailty"):
        rekka.rank_bridges(rekka.fit_components(make_inspections(errors=0.0), test_fit=False))


def test_rows_out_of_order_are_put_in_order(fits):
    shuffled = make_inspections(errors=0.0).sample(fraction=1.0, shuffle=True, seed=1)
    again = rekka.fit_components(shuffled, frailty="gamma").models["all"]
    assert again.log_likelihood_ == pytest.approx(fits.models["all"].log_likelihood_, abs=1e-9)


def test_a_history_starts_anew_after_an_improvement_that_is_left_out():
    rows = pl.DataFrame(
        {
            "bridge_id": ["A"] * 4,
            "history": [1] * 4,
            "visit_1": [4, 1, 2, 3],
            "state_1": [1, 1, 2, 2],
            "state_2": [2, 2, 2, 1],
        }
    )
    cut = HistoryOptions(frailty="gamma").cut(rows)
    assert cut.excluded == 1
    assert cut.rows["visit_1"].to_list() == [1, 2, 4]
    assert cut.histories["history"].to_list() == [1, 1, 2]
    assert HistoryOptions(errors="adjacent").cut(rows).excluded == 0


def test_errors_by_one_rating_do_not_explain_a_rating_more_than_two_better_than_the_worst():
    ratings = {"A": [2, 5, 4, 3, 2, 3, 1], "B": [1, 2, 3, 2, 1]}
    pairs = [(name, 1, v, *pair) for name, own in ratings.items() for v, pair in enumerate(pairwise(own))]
    rows = pl.DataFrame(pairs, schema=["bridge_id", "history", "visit_1", "state_1", "state_2"], orient="row")
    cut = HistoryOptions(errors="adjacent").cut(rows)
    assert cut.excluded == 1  # from 3 to 2 after a 5; then 2, 3, 1 is possible
    assert cut.rows.filter(bridge_id="A")["history"].to_list() == [1] * 3 + [2] * 2
    assert HistoryOptions(errors="adjacent", improvements="common").cut(rows).excluded == 0
    assert "more than two better" in HistoryOptions(errors="adjacent").explain_excluded(1)


def test_probabilities_of_the_first_state_are_read_from_text():
    assert HistoryOptions(first="0.6,0.3,0.1").estimator["first"] == [0.6, 0.3, 0.1]
    with pytest.raises(BadOption, match=r"a probability for each rating such as 0\.6,0\.3,0\.1"):
        HistoryOptions(first="0.6,x")


def test_a_frailty_of_members_keeps_bridges_apart():
    rows = pl.DataFrame(
        {"bridge_id": ["A", "B"], "member": ["P1", "P1"], "history": [1, 1], "state_1": [1, 1], "state_2": [1, 2]}
    )
    cut = HistoryOptions(frailty="gamma", frailty_by="member").cut(rows)
    assert cut.groups.to_list() == ["A / P1", "B / P1"]


def test_ratings_in_names_of_errors():
    assert Ratings(("a", "b", "c")).reword("errors: state 2 rated 3") == "errors: rating b rated c"
