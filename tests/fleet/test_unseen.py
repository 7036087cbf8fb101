"""Members that were last inspected long ago: who they are, where they are listed, and that totals have them."""

from datetime import date

import polars as pl
import pytest

import rekka
from component_tables import state_export
from rekka.fleet.document import ForecastFile
from rekka.fleet.members import read_members

LATE = tuple(f"{17000 + bridge:06d}" for bridge in range(10))  # seen in the first two visits alone


@pytest.fixture(scope="module")
def table():
    full = state_export(150, 5, seed=7)
    gone = pl.col("Structure Number").is_in(LATE) & (pl.col("Inspection Date") > "2015-12-01")
    return full.filter(~gone)


@pytest.fixture(scope="module")
def fits(table):
    return rekka.fit_components(table, test_fit=False)


@pytest.fixture(scope="module")
def found(fits, table):
    return rekka.forecast_inventory(fits, table, years=5, intervals="none", top=7)


def test_the_usual_interval_is_the_median_of_the_members(table):
    intervals = read_members(table, {"state": {"best": 9, "worst": 0}}).intervals
    assert set(intervals) == {"Deck", "Superstructure", "Substructure"}
    assert list(intervals.values()) == pytest.approx([2.0] * 3, abs=0.02)


def test_a_second_look_at_one_of_many_is_no_interval(table):
    last = table.sort("Inspection Date").unique("Structure Number", keep="last").sort("Structure Number")
    again = last.head(1).with_columns(pl.lit("2024-11-30").alias("Inspection Date"))
    assert read_members(pl.concat([last, again]), {"state": {"best": 9, "worst": 0}}).intervals == {}


def test_they_are_marked_and_have_no_rank(found):
    members = found.members
    late = members.filter("long_unseen")
    assert set(late["bridge_id"]) <= set(LATE)
    assert late.height == members.filter(pl.col("bridge_id").is_in(LATE)).height > 0
    assert late["rank"].null_count() == late.height
    assert members["rank"].drop_nulls().to_list() == list(range(1, members["rank"].count() + 1))
    assert members.filter(~pl.col("there") & ~pl.col("long_unseen"))["rank"].null_count() == 0
    assert late["remark"].str.contains(r"last inspected long ago \(usual: every 2 years\)").all()


def test_totals_have_them_and_the_first_list_does_not(found):
    document = found.document
    assert document.unseen == found.members["long_unseen"].sum()
    assert not {risk.bridge_id for risk in document.risks} & set(LATE)
    assert {risk.bridge_id for risk in document.long_unseen} <= set(LATE)
    assert len(document.long_unseen) == min(7, document.unseen)
    assert sum(model.members for model in document.models) == found.members.height == document.members
    start = found.network.filter(scope="network", year=0, what="in this state")
    assert start["expected"].sum() == pytest.approx(found.members.height)


def test_a_later_day_makes_nobody_late(fits, table, found):
    later = rekka.forecast_inventory(fits, table, years=2, intervals="none", since="2030")
    assert later.members["long_unseen"].sum() == found.members["long_unseen"].sum()
    before = rekka.forecast_inventory(fits, table, years=2, intervals="none", since="2016-01-31")
    assert before.members["long_unseen"].sum() == 0
    assert before.document.base == date(2016, 1, 31)


def test_without_visits_the_interval_is_the_models(fits, table):
    last = table.sort("Inspection Date").group_by("Structure Number", maintain_order=True).last()
    found = rekka.forecast_inventory(fits, last, years=2, intervals="none")
    assert set(found.members.filter("long_unseen")["bridge_id"]) <= set(LATE)
    assert found.document.unseen > 0
    mean = {model.case: model.interval for model in found.document.models}
    assert mean == {case: model.clock_.mean_years for case, model in fits.models.items()}


def test_a_list_without_dates_has_no_such_members(fits, table):
    last = table.group_by("Structure Number", maintain_order=True).last().drop("Inspection Date")
    listed = last.with_columns(age=pl.lit(30.0), traffic_mean=pl.col("ADT").cast(pl.Float64))
    found = rekka.forecast_inventory(fits, listed, years=2, intervals="none")
    assert "long_unseen" not in found.members.columns
    assert (found.document.unseen, found.document.long_unseen) == (0, ())


def test_forecasts_of_earlier_versions_are_read(found):
    plain = found.document.model_dump(mode="json", exclude={"unseen", "long_unseen"})
    for model in plain["models"]:
        del model["unseen"], model["interval"]
    assert ForecastFile.model_validate(plain).unseen == 0
