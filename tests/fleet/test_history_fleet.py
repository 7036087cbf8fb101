"""Inventories and backtests of models of histories: the same numbers as the model itself, from all visits."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.core.language import load_words
from rekka.report.fitted import sketch_forecast
from rekka.report.overview import make_overview

OPTIONS: dict[str, Any] = {"errors": "adjacent-common", "improvements": "common", "trend": "common"}
AGE = ["age_at_inspection_1"]


def slip(state: list[str], seed: int) -> list[str]:
    """Ratings as inspectors who err by one in 16 % of visits record them."""
    scale, moves = "abcde", np.random.default_rng(seed).choice([-1, 0, 1], len(state), p=[0.08, 0.84, 0.08])
    return [
        scale[min(max(scale.index(one) + move, 0), 4)] for one, move in zip(state, moves.tolist(), strict=True)
    ]


@pytest.fixture(scope="module")
def panel() -> rekka.Panel:
    inventory = rekka.simulate_inventory(60, preset="plain", seed=3)
    visits = inventory.inspections.filter(pl.col("case") == "Bearing")
    visits = visits.with_columns(state=pl.Series(slip(visits["state"].to_list(), 3)))
    return rekka.read_panel(visits, join=[{"file": inventory.inventory}])


@pytest.fixture(scope="module")
def inspections(panel: rekka.Panel) -> pl.DataFrame:
    names = {"bridge_id": "bridge", "case": "component"}
    columns = ["bridge_id", "case", "member", "date", "state_text", "completed"]
    found = panel.visits.select(name for name in columns if name in panel.columns).collect()
    return found.rename(names | {"state_text": "rating"})


@pytest.fixture(scope="module")
def fits(inspections: pl.DataFrame) -> Any:
    return rekka.fit_components(inspections, covariates=AGE, **OPTIONS)


@pytest.fixture(scope="module")
def improving(inspections: pl.DataFrame) -> Any:
    return rekka.fit_components(inspections, covariates=AGE, improvements="common")


def test_members_are_forecast_from_all_of_their_visits(fits: Any, inspections: pl.DataFrame) -> None:
    model = fits.models["Bearing"]
    found = rekka.forecast_inventory(fits, inspections, years=10, intervals="none")
    pairs = rekka.read_transitions(inspections, rules={"upward": "keep"}).frame
    pairs = pairs.sort("bridge_id", "member", "history", "date_1")
    known = {
        "y": pairs["state_2"],
        "histories": pairs["bridge_id", "member", "history"],
        "groups": pairs["bridge_id"],
    }
    alone = model.forecast(pairs, [0, 4, 10], intervals="none", **known)
    last = pairs.group_by("bridge_id", "member", "history", maintain_order=True).last()
    last = last.with_columns(reached=pl.Series(alone.reached[:, 0]), place=pl.int_range(pl.len()))
    now = last.filter(pl.col("date_2") == inspections["date"].max()).head(1)
    bridge, member = now["bridge_id"][0], now["member"][0]
    row = found.members.filter((pl.col("bridge_id") == bridge) & (pl.col("member") == member))
    place = now["place"][0]
    np.testing.assert_allclose(row["reached_10"][0], alone.reached[place, 2], atol=1e-9)
    recorded = alone.recorded[place, 2, model.n_states_ - 2 :].sum()
    np.testing.assert_allclose(row["recorded_10"][0], recorded, atol=1e-9)
    assert row["unimproved_10"][0] >= row["reached_10"][0] - 1e-12


def test_intervals_of_members_are_about_their_forecasts(improving: Any, inspections: pl.DataFrame) -> None:
    found = rekka.forecast_inventory(improving, inspections, years=10, since="2030").members
    assert improving.models["Bearing"].improvements_[1] > 0.001
    for name in ("reached_10", "mean_years"):
        inside = (found[f"{name}_low"] <= found[name] + 1e-9) & (found[name] <= found[f"{name}_high"] + 1e-9)
        assert inside.all(), name


def test_small_repairs_end_with_year_0_where_they_are_left_out(improving: Any, inspections: pl.DataFrame) -> None:
    network = rekka.forecast_inventory(improving, inspections, years=10, since="2030", intervals="none").network
    begin, end = (network.filter(pl.col("year") == year) for year in (0, 10))
    np.testing.assert_allclose(begin["unimproved"], begin["expected"], rtol=1e-12)
    assert (end["unimproved"] - end["expected"]).abs().max() > 0.1


def test_totals_are_sums_over_members_and_have_intervals(fits: Any, inspections: pl.DataFrame) -> None:
    found = rekka.forecast_inventory(fits, inspections, years=10, member_intervals=False)
    end = found.network.filter((pl.col("year") == 10) & (pl.col("what") == "in this state or worse"))
    members = found.members
    for total, each in (("expected", "reached_10"), ("recorded", "recorded_10"), ("unimproved", "unimproved_10")):
        np.testing.assert_allclose(end[total][0], members[each].sum(), rtol=1e-9)
    for name in ("", "recorded_"):
        low, middle, high = (
            end[one][0] for one in (f"{name}low", "recorded" if name else "expected", f"{name}high")
        )
        assert low < middle < high
        assert end[f"{name}predicted_low"][0] <= low
    drawn = rekka.forecast_inventory(
        fits, inspections, years=10, intervals="normal", draws=400, member_intervals=False
    ).network.filter((pl.col("year") == 10) & (pl.col("what") == "in this state or worse"))
    width = end["high"][0] - end["low"][0]
    assert abs((drawn["high"][0] - drawn["low"][0]) / width - 1) < 0.5
    assert any("inspectors are expected to record" in note for note in found.fleet.notes)


def test_a_list_of_members_starts_from_one_rating(fits: Any) -> None:
    table = pl.DataFrame(
        {"bridge": ["B1", "B2"], "component": ["Bearing"] * 2, "rating": ["a", "c"], AGE[0]: [12, 40]}
    )
    found = rekka.forecast_inventory(fits, table, years=5, intervals="none")
    model = fits.models["Bearing"]
    rows = pl.DataFrame({"state_1": [1, 3], "age_at_inspection_1": [12.0, 40.0]})
    alone = model.forecast(rows, 5, intervals="none")
    by_bridge = dict(found.members.select("bridge_id", "reached_5").rows())
    np.testing.assert_allclose([by_bridge["B1"], by_bridge["B2"]], alone.reached[:, 5], atol=1e-9)


@pytest.mark.parametrize(
    "options", [OPTIONS | {"clock": "running"}, {"errors": "adjacent-common", "frailty": "gamma"}]
)
def test_backtests_count_what_inspectors_record(panel: rekka.Panel, options: dict[str, Any]) -> None:
    found = rekka.backtest(panel, until="2018", covariates=AGE, draws=100, test_fit=False, **options)
    assert found.cases["reason"].to_list() == [None]
    totals = found.totals.filter(pl.col("by") == "all")
    each = totals.filter(~pl.col("or_worse"))
    assert each["observed"].sum() == each["visits"][0] == len(found.forecasts)
    np.testing.assert_allclose(each["expected"].sum(), len(found.forecasts))
    middle = 0.5 * (totals["predicted_low"] + totals["predicted_high"])
    half = 0.5 * (totals["predicted_high"] - totals["predicted_low"])
    assert (
        (totals["expected"] - middle).abs() < 0.6 * half + 1
    ).all()  # networks are drawn about what is expected
    assert (found.forecasts["observed"] < found.forecasts["state"]).any()  # improvements are scored too
    scores = found.scores.filter((pl.col("by") == "all") & (pl.col("score") == "log_loss"))
    assert scores.filter(pl.col("forecaster") == "no covariates")["mean"].is_finite().all()  # the same elements
    plain = rekka.backtest(panel, until="2018", covariates=AGE, draws=100, test_fit=False)
    assert len(plain.forecasts) < len(found.forecasts)


def test_what_was_found_after_the_day_of_year_0_is_not_known(fits: Any, inspections: pl.DataFrame) -> None:
    day = inspections["date"].sort()[inspections.height // 2]
    known = inspections.filter(pl.col("date") <= day)
    once, again = (
        rekka.forecast_inventory(fits, some, years=5, since=day, intervals="none").members.sort(
            "bridge_id", "member"
        )
        for some in (inspections, known)
    )
    np.testing.assert_allclose(once["reached_5"], again["reached_5"], rtol=1e-12)
    pairs = rekka.read_transitions(inspections, rules={"upward": "keep"}).frame
    later = rekka.forecast_inventory(fits, pairs, years=5, since=day, intervals="none").members
    assert (later["last_seen"] <= day).all()


def test_models_are_fitted_again_as_they_were(inspections: pl.DataFrame) -> None:
    other = inspections.with_columns(component=pl.lit("Deck"))
    both = pl.concat([inspections, other])
    plain = rekka.fit_components(both, covariates=[], test_fit=False)
    options: dict[str, Any] = {"years": 5, "intervals": "none", "errors": "adjacent-common"}
    found = rekka.forecast_inventory(plain, inspections, **options)  # without the deck
    assert set(found.members["case"]) == {"Bearing"}
    assert found.fleet.eligible.groups[0].fit.covariates == ()
    with pytest.raises(rekka.InputError, match="belongs to rekka fit"):
        rekka.forecast_inventory(plain, inspections, clock="start")


def test_rows_of_a_forecast_may_be_in_any_order(fits: Any, inspections: pl.DataFrame) -> None:
    pairs = rekka.read_transitions(inspections, rules={"upward": "keep"}).frame
    identity = ["bridge_id", "member", "history"]
    sums = [
        fits.models["Bearing"]
        .forecast(some, 5, intervals="none", y=some["state_2"], histories=some[identity], groups=some["bridge_id"])
        .reached.sum(axis=0)
        for some in (pairs.sort(*identity, "date_1"), pairs.sort(*identity, "date_1").reverse())
    ]
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-12)


def test_a_bootstrap_is_not_advised_where_there_is_none(fits: Any, inspections: pl.DataFrame) -> None:
    with pytest.raises(rekka.InputError, match="models of histories do not have"):
        rekka.forecast_inventory(fits, inspections, intervals="bootstrap")


def test_a_forecast_says_that_the_trend_ends(fits: Any, inspections: pl.DataFrame) -> None:
    found = rekka.forecast_inventory(fits, inspections, years=10, intervals="none")
    models = [group.model for group in found.fleet.eligible.groups]
    (note,) = make_overview(sketch_forecast(found.document, models), load_words("en")).notes
    told = next(line for line in fits.components[0].elements if line.startswith("Hazards"))
    verb = "fell" if note.startswith("Hazards fell") else "rose"
    assert note.startswith(f"Hazards {verb} by ")
    assert verb in told or "none is possible" in told
    assert ("(perhaps not at all)" in note) == ("none is possible" in told)
