import numpy as np
import polars as pl
import pytest

import rekka
from rekka.study.remarks import remark


@pytest.fixture(scope="module")
def rows():
    inventory = rekka.simulate_inventory()
    found = rekka.read_transitions(
        inventory.inspections, join=[{"file": inventory.inventory}, {"file": inventory.traffic}]
    )
    return rekka.partition_paper(found.frame)


def text(study):
    return "\n".join(remark(study))


def test_both_presets_of_a_small_and_a_smaller_case(rows):
    study = rekka.compare(rows, preset="both", cases=["Longitudinal girder", "Slope protection"])
    said = text(study)
    assert "exact: max, minmax, zscore are one model, and agree wherever there is a maximum (1 case" in said
    assert said.count("Slope protection (max, minmax, zscore, boxcox): no finite maximum: ") == 1
    assert "remedies: a ridge penalty, fewer covariates, or merged states" in said
    assert "paper: boxcox is selected in Longitudinal girder with a log loss of" in said
    paper = study.trials.filter(preset="paper")
    wrong, all_ = int((paper["success"] & ~paper["certified"]).sum()), int(paper["success"].sum())
    assert f"paper: {wrong} of {all_} trials that reported success are not at a certified maximum: " in said
    assert "on the probability floor (boxcox in Longitudinal girder)" in said
    assert "where there is no finite maximum (" in said
    assert "the selection looks at golden rows" in said


def test_one_preset_is_not_named(rows):
    study = rekka.compare(rows, cases=["Abutment"], methods=["max", "zscore"])
    assert remark(study)[-1].startswith("max, zscore are one model, and agree wherever there is a maximum (1 case")


def test_what_holds_of_a_case(rows):
    one = rekka.Partition(
        *(part.filter(case="Abutment") for part in (rows.train, rows.validation, rows.golden)), scheme="given"
    )
    train = one.train.filter(pl.col("state_2") <= 4).with_columns(bridge_area=pl.lit(7.0))
    study = rekka.compare(rekka.Partition(train, one.validation, one.golden, "given"), methods=["zscore"])
    said = text(study)
    assert "Abutment: bridge_area does not vary in the training rows and is left out" in said
    lost = int((one.golden["state_2"] > 4).sum())
    assert f"Abutment: {lost} golden rows beyond the training rows' states, left out of the scores" in said


def test_a_transform_that_fails_is_told_once_with_its_value(rows):
    one = rows.golden.filter(case="Abutment")
    low = np.where(np.arange(len(one)) == 3, -5.0, one["bridge_length"].to_numpy())
    golden = one.with_columns(bridge_length=pl.Series(low))
    study = rekka.compare(
        rekka.Partition(rows.train.filter(case="Abutment"), one.head(0), golden, "given"),
        methods=["boxcox"],
        preset="both",
    )
    said = text(study)
    assert "boxcox): the transform fails: golden rows: boxcox cannot transform bridge_length = -5.0" in said
    assert study.trials["status"].to_list() == ["transform failed"] * 2


def test_a_solver_that_gives_up(rows):
    study = rekka.compare(rows, preset="paper", cases=["Pavement", "Pier", "Deck slab"], methods=["boxcox"])
    failed = study.trials.filter(status="solver failed")
    assert len(failed)
    assert "the solver failed: boxcox in " in text(study)
    for case, message in failed.filter(~pl.col("success")).select("case", "message").rows():
        assert case in text(study)
        assert f"({message})" in text(study)


def test_nothing_is_said_of_what_was_not_scored(rows):
    train = rows.train.filter(case="Abutment")
    study = rekka.compare(rekka.Partition(train, train.head(0), train.head(0), "given"), methods=["zscore"])
    assert study.trials["accuracy"].null_count() == 1
    assert "more accurate" not in text(study)
    assert "log loss" not in text(study)
    assert "fewer than 50 golden rows, so that one row decides: Abutment" in text(study)
