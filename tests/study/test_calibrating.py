"""The calibration of a study's model."""

import numpy as np
import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption
from rekka.evaluation.goodness import find_links

QUICK = {"methods": ["zscore"], "guard": {"resamples": 2}}


@pytest.fixture(scope="module")
def study() -> rekka.Study:
    return rekka.compare(draw_rows(("Pier",), n=300), select_on="validation", **QUICK)


@pytest.mark.parametrize("part", ["train", "validation", "golden"])
def test_of_the_chosen_model(study, part):
    found = study.calibration("Pier", rows=part, replicates=19)
    rows = draw_rows(("Pier",), n=300).filter(part=part)
    assert found.rows == len(rows)
    assert int(found.counts["observed"].sum()) == len(rows)
    model = study.model("Pier")
    expected = 1 - model.predict_proba(rows)[np.arange(len(rows)), rows["state_1"].to_numpy() - 1]
    assert found.by_start["expected"].sum() == pytest.approx(expected.sum())
    assert 0 < found.goodness.p_value <= 1


def test_golden_rows_only_after_the_look():
    study = rekka.compare(draw_rows(("Pier",), n=300), confirm=False, select_on="validation", **QUICK)
    with pytest.raises(BadOption, match="have not been looked at with zscore"):
        study.calibration("Pier", rows="golden")
    assert study.calibration("Pier", replicates=0).rows > 0


def test_golden_rows_of_a_study_judged_on_them():
    study = rekka.compare(draw_rows(("Pier",), n=300), rule="pareto", **QUICK)
    assert study.calibration("Pier", rows="golden", replicates=0).rows == 90


def test_wrong_rows(study):
    with pytest.raises(BadOption, match="it can be train, validation, golden"):
        study.calibration("Pier", rows="test")


class TestLinks:
    frame = pl.DataFrame(
        {
            "bridge_id": ["A", "A", "A", "B"],
            "case": ["Pier"] * 4,
            "member": ["1", "1", "2", "1"],
            "visit_1": [1, 2, 2, 2],
            "visit_2": [2, 3, 3, 3],
            "state_1": [1, 2, 2, 2],
            "state_2": [2, 3, 3, 3],
        }
    )

    def test_visits_of_a_member_follow_each_other(self):
        assert find_links(self.frame).tolist() == [-1, 0, -1, -1]

    def test_no_visits_no_links(self):
        assert find_links(self.frame.drop("visit_1")) is None
        assert find_links(self.frame.with_columns(visit_1=pl.lit(None, pl.Int64))) is None

    def test_members_without_names_link_nothing_where_that_is_not_sure(self):
        assert find_links(self.frame.drop("member")).tolist() == [-1, -1, -1, -1]

    def test_a_state_between_two_rows_breaks_the_link(self):
        repaired = self.frame.with_columns(state_1=pl.Series([1, 1, 2, 2]))
        assert find_links(repaired).tolist() == [-1] * 4

    def test_a_new_history_begins_anew(self):
        anew = self.frame.with_columns(history=pl.Series([1, 2, 1, 1]))
        assert find_links(anew).tolist() == [-1] * 4
