"""A whole inventory forecast: beside plain sums, the matrix exponential and forecasts of single members."""

import threading
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
from fleet_cases import COVARIATES, draw_members, eligible_of, fit_model, fit_short, forecast, make_model
from scipy.linalg import expm

from rekka.fleet import inventory as module
from rekka.fleet.document import describe_fleet, describe_watermark
from rekka.fleet.eligibility import InventoryOptions
from rekka.fleet.tables import MEANING, add_years, choose_years, rank_members
from rekka.forecast.forecast import ForecastOptions, forecast_rows, make_cohort, years_until

KEYS = ["case", "bridge_id"]


def two_cases(n: int = 30) -> pl.DataFrame:
    return pl.concat([draw_members(n), draw_members(n // 2, seed=5, states=3, case="Pier")])


def two_models():
    return make_model("Deck"), make_model("Pier", fit_model(3, "boxcox+zscore"))


@pytest.fixture(scope="module")
def both():
    """A fleet of two cases, and all its years."""
    return forecast(eligible_of(two_cases(), *two_models()))


def test_totals_are_the_sums_of_members_and_rows_of_probabilities_add_up(both):
    fleet, years = both
    states = [name for name in years.columns if name.startswith("p_")]
    assert states == ["p_1", "p_2", "p_3", "p_4"]
    total = years.select(pl.sum_horizontal(states)).to_series().to_numpy()
    assert np.abs(total - 1.0).max() < 1e-12
    assert years.filter(case="Pier")["p_4"].null_count() == 15 * 9
    for (case, year), rows in years.group_by("case", "year"):
        mine = fleet.network.filter(scope="case", case=case, year=year)
        for state, expected in mine.filter(what="in this state").select("state", "expected").rows():
            assert rows[f"p_{state}"].sum() == pytest.approx(expected, abs=1e-9)
        worse = mine.filter(what="in this state or worse")["expected"].item()
        assert rows["reached"].sum() == pytest.approx(worse, abs=1e-9)
    every = fleet.network.filter(scope="network", what="in this state or worse").sort("year")["expected"]
    by_case = fleet.network.filter(scope="case", what="in this state or worse").group_by("year").agg(
        pl.col("expected").sum()
    )  # fmt: skip
    assert every.to_numpy() == pytest.approx(by_case.sort("year")["expected"].to_numpy(), abs=1e-9)
    assert fleet.network.filter(scope="network")["case"].unique().to_list() == ["all cases"]
    assert fleet.network.filter(scope="network", what="in this state or worse")["state"].null_count() == 9


def test_reached_never_decreases(both):
    _, years = both
    rise = years.with_columns(rise=pl.col("reached").diff().over(KEYS)).drop_nulls("rise")["rise"]
    assert rise.min() > -1e-13
    assert years["reached"].max() <= 1.0


def test_a_member_by_hand():
    """Carried from its last inspection to year 0 by whole years and a rest, then year by year, by expm."""
    fit = fit_model()
    frame = draw_members(2).with_columns(
        state=pl.Series([2, 1]), date=pl.Series([date(2020, 7, 1), date(2023, 1, 1)])
    )
    fleet, years = forecast(eligible_of(frame, ask=InventoryOptions(years=3)))
    x = frame.select(COVARIATES).to_numpy()[0]
    p = np.array([0.0, 1.0, 0.0, 0.0])
    age, passed = x[0], []
    for h in (1.0, 1.0, 0.5, 1.0, 1.0, 1.0):
        theta = np.exp(fit.coefficients @ np.array([1.0, age + h / 2, *x[1:]]))
        p = p @ expm(h * (np.diag([*-theta, 0.0]) + np.diag(theta, 1)))
        age += h
        passed.append(p)
    mine = years.filter(bridge_id=frame["bridge_id"][0])
    ours = mine.select("p_1", "p_2", "p_3", "p_4").to_numpy()
    assert ours == pytest.approx(np.array(passed[2:]), abs=1e-12)
    assert mine["expected_state"].to_numpy() == pytest.approx(ours @ [1, 2, 3, 4])
    assert mine["date"].to_list() == [date(year, 1, 1) for year in (2023, 2024, 2025, 2026)]
    row = fleet.members.filter(bridge_id=frame["bridge_id"][0]).row(0, named=True)
    assert (row["gap_years"], row["state"], row["last_seen"]) == (2.5, 2, date(2020, 7, 1))
    assert row["reached_0"] == pytest.approx(passed[2][3], abs=1e-12)
    assert row["reached_3"] == mine["reached"][-1]


def test_members_are_as_forecasts_of_single_rows_say():
    frame = draw_members(12).drop("date")
    ask = InventoryOptions(years=8, threshold=3)
    fleet, _ = forecast(eligible_of(frame, ask=ask))
    mine = fleet.members.sort("row")
    start, x = mine["state"].to_numpy() - 1, mine.select(COVARIATES).to_numpy()
    cohort = make_cohort(fit_model(), start, x, ForecastOptions("delta"))
    theirs, until = forecast_rows(cohort, 8, 3), years_until(cohort, 3)
    assert mine["reached_8"].to_numpy() == pytest.approx(theirs.reached[:, 8], abs=1e-12)
    assert mine["expected_state_8"].to_numpy() == pytest.approx(theirs.expected[:, 8])
    for side in ("low", "high"):
        ours = mine[f"reached_8_{side}"].to_numpy()
        assert ours == pytest.approx(getattr(theirs, f"reached_{side}")[:, 8], rel=1e-6)
        assert mine[f"mean_years_{side}"].to_numpy() == pytest.approx(until[f"mean_{side}"].to_numpy(), rel=1e-4)
    for ours, name in (
        ("mean_years", "mean"),
        ("median_years", "median"),
        ("years_10", "q10"),
        ("years_90", "q90"),
    ):
        assert mine[ours].to_numpy() == pytest.approx(until[name].to_numpy(), rel=1e-8, abs=1e-10)
    assert "median_calendar_year" not in mine.columns


def test_units_and_order_do_not_matter(monkeypatch):
    monkeypatch.setattr(module, "UNIT", 6)
    frame = two_cases(20)
    ask = InventoryOptions(years=4, member_intervals=False)
    first, years = forecast(eligible_of(frame, *two_models(), ask=ask), units_at_once=1)
    again, same = forecast(eligible_of(frame, *two_models(), ask=ask), units_at_once=7)
    assert first.members.equals(again.members)
    assert first.network.equals(again.network)
    assert years.equals(same)
    shuffled, other = forecast(eligible_of(frame.sample(fraction=1, shuffle=True, seed=3), *two_models(), ask=ask))
    assert first.members.drop("row").equals(shuffled.members.drop("row"))
    assert first.network.equals(shuffled.network)
    assert years.equals(other)
    monkeypatch.setattr(module, "UNIT", 9)
    larger, wide = forecast(eligible_of(frame, *two_models(), ask=ask))
    assert wide.select("p_1", "reached").to_numpy() == pytest.approx(
        years.select("p_1", "reached").to_numpy(), abs=1e-13
    )
    assert larger.network["expected"].to_numpy() == pytest.approx(first.network["expected"].to_numpy(), abs=1e-10)
    assert larger.members["bridge_id"].equals(first.members["bridge_id"])


def test_draws_are_seeded_and_intervals_can_be_left_out():
    frame = draw_members(5)
    ask = InventoryOptions(years=3, intervals="normal", draws=100, seed=4)
    one, other = (forecast(eligible_of(frame, ask=ask))[0] for _ in range(2))
    assert one.network.equals(other.network)
    assert one.members.equals(other.members)
    assert one.member_intervals
    another = forecast(eligible_of(frame, ask=replace(ask, seed=5)))[0]
    assert not one.network["low"].equals(another.network["low"])
    assert one.network["expected"].equals(another.network["expected"])
    without = replace(ask, member_intervals=False)
    fleet = forecast(eligible_of(frame, ask=without))[0]
    assert not fleet.member_intervals
    assert "mean_years_low" not in fleet.members.columns
    none = InventoryOptions(years=3, intervals="none")
    fleet = forecast(eligible_of(frame, ask=none))[0]
    ends = ["low", "high", "predicted_low", "predicted_high"]
    assert fleet.network.select(ends).null_count().row(0) == (len(fleet.network),) * 4


def test_many_members_have_no_intervals_of_their_own_unless_asked_for(monkeypatch):
    monkeypatch.setattr(module, "FEW_MEMBERS", 9)
    eligible = eligible_of(draw_members(10))
    fleet, _ = forecast(eligible)
    assert not fleet.member_intervals
    assert fleet.notes[-1] == "10 members are many: the intervals of each are left out, unless --member-intervals"
    assert forecast(replace(eligible, options=InventoryOptions(years=8, member_intervals=True)))[
        0
    ].member_intervals


def test_members_go_by_risk(both):
    fleet, _ = both
    members = fleet.members
    ranked = members.filter(~pl.col("there"))
    assert members["there"].is_sorted()
    assert ranked["rank"].to_list() == list(range(1, len(ranked) + 1))
    assert ranked["mean_years"].is_sorted()
    there = members.filter("there")
    assert there["rank"].null_count() == len(there)
    assert (there["reached_8"] == 1.0).all()
    assert (there["mean_years"] == 0.0).all()
    assert (there["state"] >= there["threshold"]).all()
    assert there["state"].is_sorted(descending=True)
    assert fleet.remarks["Deck"]["rated 4 or worse already"] == len(there.filter(case="Deck"))


def test_who_may_never_get_there_goes_by_the_end_and_ties_by_name():
    table = pl.DataFrame(
        {
            "bridge_id": ["D", "C", "B", "A"],
            "case": ["x"] * 4,
            "row": [1, 2, 3, 4],
            "state": [1] * 4,
            "there": [False] * 4,
            "mean_years": [9.0, 5.0, 9.0, None],
            "reached_7": [0.9, 0.9, 0.9, 0.8],
        }
    )
    assert rank_members(table, 7)["bridge_id"].to_list() == ["C", "B", "D", "A"]


def test_remarks_say_who_leaves_the_training_rows():
    fit = fit_model()
    oldest, longest = fit.survey.high[0], fit.survey.high[1]
    frame = draw_members(4).with_columns(
        state=pl.lit(1),
        date=pl.lit(date(2023, 1, 1)),
        age_at_inspection_1=pl.Series([oldest - 2.5, oldest + 5, 30.0, 30.0]),
        bridge_length=pl.Series([20.0, 20.0, longest + 100, 20.0]),
    )
    names = frame["bridge_id"].to_list()

    def remarks(**options):
        ask = InventoryOptions(years=8, **options)
        fleet, years = forecast(eligible_of(frame, ask=ask))
        table = fleet.members
        outside = years.filter("outside").group_by("bridge_id").agg(pl.col("year").min())
        return dict(table.select("bridge_id", "remark").rows()), dict(outside.rows()), table, fleet.remarks["Deck"]

    told, outside, table, counts = remarks()
    assert told[names[0]] == f"older than any in the data ({oldest:.3g} years) from year 3 on"
    assert told[names[1]].startswith(f"age_at_inspection_1 {oldest + 5:.3g} is outside ")
    assert told[names[2]] == (
        f"bridge_length {longest + 100:,.0f} is outside the training rows ({fit.survey.low[1]:.3g} to {longest:,.0f})"
    )
    assert told[names[3]] is None
    assert outside == {names[0]: 3, names[1]: 0, names[2]: 0}
    assert dict(table.select("bridge_id", "outside").rows()) == {name: name != names[3] for name in names}
    assert counts == {
        "age_at_inspection_1 is outside the range of the training rows": 1,
        "comes to be older than any in the data": 1,
        "bridge_length is outside the range of the training rows": 1,
    }
    told, outside, *_ = remarks(age="held")
    assert told[names[0]] == f"age_at_inspection_1 is held at {oldest:.3g} from year 3 on"
    assert outside == {names[1]: 0, names[2]: 0}
    told, outside, *_ = remarks(age="fixed")
    assert told[names[0]] is None
    assert outside == {names[1]: 0, names[2]: 0}


def test_a_fit_that_is_not_certified_is_marked_everywhere():
    frame = two_cases()
    fleet, years = forecast(eligible_of(frame, make_model("Deck", fit_short()), two_models()[1]))
    assert not fleet.certified
    assert describe_watermark(fleet).startswith("NOT CERTIFIED: ")
    assert describe_watermark(fleet).endswith("(Deck).")
    for table in (fleet.members, years, fleet.network.filter(scope="case")):
        assert dict(table.select("case", "certified").unique().rows()) == {"Deck": False, "Pier": True}
    network = fleet.network
    assert not network.filter(scope="network")["certified"].any()
    for scope, case in (("case", "Deck"), ("network", "all cases")):
        assert network.filter(scope=scope, case=case)["low"].null_count() == len(
            network.filter(scope=scope, case=case)
        )
    assert network.filter(case="Pier")["low"].null_count() == 0
    assert fleet.members.filter(case="Deck")["mean_years_low"].null_count() == len(
        fleet.members.filter(case="Deck")
    )
    assert any(note.startswith("Deck: no intervals, because the fit is not a certified") for note in fleet.notes)
    document = describe_fleet(fleet, "models")
    assert document.watermark == describe_watermark(fleet)
    assert [model.certified for model in document.models] == [False, True]


def test_columns_of_the_inventory_that_are_called_like_ours_stay_apart():
    frame = draw_members(5).with_columns(rank=pl.lit(7.0), remark=pl.lit(1.0), owner=pl.lit("City"))
    members = eligible_of(frame).members
    assert {"rank", "remark"} <= set(members.covariates)
    fleet, _ = forecast(eligible_of(frame))
    assert fleet.members["rank (inventory)"].to_list() == [7.0] * 5
    assert fleet.members["rank"].drop_nulls().to_list() == list(range(1, 6 - fleet.members["there"].sum()))


def test_every_column_has_its_meaning(both):
    fleet, years = both
    known = {part for name in MEANING for part in name.split(", ")}
    for name in {*fleet.members.columns, *years.columns, *fleet.network.columns} - set(COVARIATES):
        general = name.replace("_8", "_N").replace("_5", "_N").replace("reached_0", "reached_N")
        general = "p_K" if name.startswith("p_") else general
        general = "..._calendar_year" if "calendar_year" in name else general
        assert general in known, name


def test_calendar_years_and_dates():
    assert add_years(date(2024, 2, 29), 1) == date(2025, 2, 28)
    assert add_years(date(2024, 2, 29), 4) == date(2028, 2, 29)
    assert choose_years(30) == [0, 5, 10, 20, 30]
    assert choose_years(7) == [0, 5, 7]
    fleet, _ = forecast(eligible_of(draw_members(8).with_columns(date=pl.lit(date(2023, 7, 1)))))
    for row in fleet.members.iter_rows(named=True):
        for years, calendar in (("mean_years", "mean_calendar_year"), ("years_90", "calendar_year_90")):
            assert row[calendar] == int(np.floor(2023.5 + row[years]))


def test_members_that_may_never_get_there_are_blank():
    fit = fit_model()
    slow = fit.inference.coefficients.reshape(3, -1).copy()
    slow[:, 0] -= 800.0
    never = replace(fit, inference=replace(fit.inference, coefficients=slow.ravel()))
    ask = InventoryOptions(years=2, intervals="none")
    fleet, _ = forecast(eligible_of(draw_members(4).with_columns(state=pl.lit(1)), make_model(fit=never), ask=ask))
    assert fleet.members["median_years"].null_count() == 4
    assert fleet.members["median_calendar_year"].null_count() == 4


def test_work_that_is_stopped_ends(monkeypatch):
    monkeypatch.setattr(module, "UNIT", 4)
    seen = []

    def stop(rows: pl.DataFrame) -> None:
        seen.append(rows)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        module.forecast_fleet(
            eligible_of(draw_members(40), ask=InventoryOptions(years=8, intervals="none")), on_years=stop
        )
    assert len(seen) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rekka-fleet")]


def test_progress_adds_up_to_all_members():
    for options in ({}, {"intervals": "normal", "draws": 100}, {"intervals": "none"}):
        ask, done = InventoryOptions(years=2, **options), []
        module.forecast_fleet(eligible_of(two_cases(10), *two_models(), ask=ask), on_progress=done.append)
        assert sum(done) == pytest.approx(15)
