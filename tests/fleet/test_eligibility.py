"""Who can be forecast, with what, and from when."""

from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
from fleet_cases import draw_members, eligible_of, fit_model, forecast, make_model

import rekka
from rekka.core.errors import BadOption, InputError, MissingColumns
from rekka.fleet.eligibility import InventoryOptions, find_eligible
from rekka.fleet.members import read_members
from rekka.fleet.models import Matched, Models, match_models


def reasons(eligible) -> dict[str, int]:
    return dict(eligible.aside.group_by("reason").len().rows())


def test_each_member_is_forecast_or_has_a_reason():
    frame = draw_members(20).with_columns(
        state=pl.when(pl.col("bridge_id") == "B-00003").then(6).otherwise("state"),
        traffic_mean=pl.when(pl.col("bridge_id").is_in(["B-00003", "B-00004"]))
        .then(None)
        .otherwise("traffic_mean"),
        bridge_length=pl.when(pl.col("bridge_id") == "B-00005").then(float("nan")).otherwise("bridge_length"),
        date=pl.when(pl.col("bridge_id") == "B-00006").then(pl.date(2024, 1, 1)).otherwise("date"),
        case=pl.when(pl.col("bridge_id").is_in(["B-00007", "B-00008"])).then(pl.lit("Pier")).otherwise("case"),
    )
    eligible = eligible_of(frame, ask=InventoryOptions(since=date(2023, 1, 1)))
    assert reasons(eligible) == {
        "the rating is worse than 4, the worst of the training rows": 1,
        "traffic_mean is missing": 1,
        "bridge_length is missing": 1,
        "seen after 2023-01-01, the day that the forecast counts from": 1,
        "no model in models": 2,
    }
    assert eligible.size == 14
    assert eligible.aside.columns == ["bridge_id", "case", "row", "state", "reason"]
    assert eligible.groups[0].rows["bridge_id"].is_sorted()


def test_years_are_counted_from_the_latest_inspection_by_the_calendar():
    frame = draw_members(2).with_columns(date=pl.Series([date(2020, 7, 1), date(2023, 1, 1)]))
    eligible = eligible_of(frame)
    assert eligible.base == date(2023, 1, 1)
    gaps = dict(zip(eligible.groups[0].rows["date"].to_list(), eligible.groups[0].gap, strict=True))
    assert gaps == {date(2020, 7, 1): 2.5, date(2023, 1, 1): 0.0}
    assert eligible.notes[0] == (
        "years are counted from 2023-01-01; members were last seen up to 2.5 years before, 1.2 on average, and are "
        "first carried there"
    )


def test_a_list_without_dates_counts_from_when_it_was_seen():
    frame = draw_members(3).drop("date")
    eligible = eligible_of(frame)
    assert (eligible.base, eligible.groups[0].gap) == (None, None)
    assert "has no dates: year 0 is when each member was seen" in eligible.notes[0]
    told = eligible_of(frame, ask=InventoryOptions(since=date(2026, 3, 31)))
    assert told.base == date(2026, 3, 31)
    assert told.groups[0].gap is None
    assert told.notes[0].endswith("has no dates: its states are taken for those of 2026-03-31")


def test_what_an_operator_cannot_take_is_set_aside():
    frame = draw_members(9).with_columns(
        traffic_mean=pl.when(pl.col("bridge_id").is_in(["B-00001", "B-00005"]))
        .then(-1e6)
        .otherwise("traffic_mean")
    )
    eligible = eligible_of(frame, make_model(fit=fit_model(scaling="boxcox+zscore")))
    assert reasons(eligible) == {"boxcox+zscore cannot take this traffic_mean": 2}
    assert set(eligible.aside["bridge_id"]) == {"B-00001", "B-00005"}
    assert eligible.size == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"years": 0}, "years is 0; a whole number from 1 to 200 is needed."),
        ({"years": -5}, "years is -5; a whole number from 1 to 200 is needed."),
        ({"years": 201}, "years is 201; a whole number from 1 to 200 is needed."),
        ({"age": "advance"}, "age is 'advance'; it can be advances, held, fixed. Did you mean advances?"),
        ({"intervals": "wald"}, "intervals is 'wald'; it can be delta, normal, bootstrap, none."),
        ({"level": 1.0}, "level is 1.0; a number between 0 and 1 is needed, e.g. 0.95."),
        ({"draws": 50}, "draws is 50; a whole number of at least 100 is needed."),
    ],
)
def test_options_that_are_none(options, message):
    with pytest.raises(BadOption) as error:
        InventoryOptions(**options)
    assert str(error.value) == message


@pytest.mark.parametrize("threshold", [0, 1, 5])
def test_a_threshold_that_is_no_state(threshold):
    with pytest.raises(
        BadOption, match=f"threshold is {threshold}; a state from 2 to 4 is needed, for the model of Deck"
    ):
        eligible_of(draw_members(3), ask=InventoryOptions(threshold=threshold))


def test_what_advances():
    frame = pl.concat([draw_members(4), draw_members(4, case="Pier")])
    models = [make_model("Deck"), make_model("Pier", fit_model(scaling="boxcox+zscore"))]
    eligible = eligible_of(frame, *models, ask=InventoryOptions(advance=("traffic_mean",)))
    assert [group.ageing.names for group in eligible.groups] == [("traffic_mean",)] * 2
    with pytest.raises(BadOption, match="advance names age, which is not a covariate of any model"):
        eligible_of(frame, *models, ask=InventoryOptions(advance=("age",)))


def test_nobody_can_be_forecast():
    frame = draw_members(3).with_columns(state=pl.lit(7))
    with pytest.raises(
        InputError, match=r"no member can be forecast \(the rating is worse than 4, .*: 3 members\)"
    ):
        eligible_of(frame)


def test_covariates_that_are_in_no_table():
    with pytest.raises(MissingColumns, match=r"traffic_mean is not in .*Columns there: .*bridge_length"):
        eligible_of(draw_members(3).drop("traffic_mean"))
    with pytest.raises(
        MissingColumns, match=r"has no dates, and the models need age_at_inspection_1: .*--date COLUMN"
    ):
        eligible_of(draw_members(3).drop("age_at_inspection_1", "date"))


def test_a_column_that_one_model_alone_needs():
    rows = rekka.simulate_transitions(150, n_states=3, seed=2)
    model = rekka.ExponentialHazardMarkovModel(covariates=["bridge_area"]).fit(rows, rows["state_2"])
    frame = pl.concat([draw_members(4), draw_members(3, case="Pier", states=3)])
    eligible = eligible_of(frame, make_model("Deck"), make_model("Pier", model._fit))
    assert reasons(eligible) == {"there is no column bridge_area": 3}


def test_a_day_too_far_away():
    with pytest.raises(BadOption, match="more than 200 years after the latest inspection"):
        eligible_of(draw_members(3), ask=InventoryOptions(since=date(2400, 1, 1)))


def test_states_by_other_names_are_said():
    members = read_members(draw_members(6).with_columns(state=pl.Series(["I", "II", "III", "IV", "I", "II"])))
    model = make_model(labels=("a", "b", "c", "d"))
    eligible = find_eligible(members, match_models(Models("m", (model,)), ["Deck"]), InventoryOptions())
    assert any("the model's states are a, b, c, d, those of" in note for note in eligible.notes)


def test_old_models_do_not_know_their_range():
    eligible = eligible_of(draw_members(3), make_model(fit=replace(fit_model(), survey=None)))
    fleet, years = forecast(eligible)
    assert not years["outside"].any()
    assert set(fleet.remarks["Deck"]) <= {"rated 4 or worse already"}
    assert [note for note in eligible.notes if "earlier version" in note] == [
        "the model of Deck: of an earlier version, without the range of the training rows, so that "
        "extrapolation beyond it is not marked"
    ]


def test_draws_of_two_cases_differ():
    frame = pl.concat([draw_members(4), draw_members(4, case="Pier")])
    ask = InventoryOptions(intervals="normal", draws=100)
    one, other = eligible_of(frame, make_model("Deck"), make_model("Pier"), ask=ask).groups
    assert not np.allclose(one.uncertainty.coefficients[1:], other.uncertainty.coefficients[1:])


def test_cases_that_nobody_asked_for_are_not_set_aside():
    frame = pl.concat([draw_members(4), draw_members(4, case="Pier")])
    members = read_members(frame)
    eligible = find_eligible(members, Matched({"Deck": make_model()}, {}), InventoryOptions())
    assert (eligible.size, len(eligible.aside)) == (4, 0)


def test_the_state_after_the_worst_of_the_training_rows_cannot_be_forecast():
    frame = draw_members(5).with_columns(state=pl.Series([1, 2, 3, 4, 5]))
    eligible = eligible_of(frame)
    assert reasons(eligible) == {"the rating is worse than 4, the worst of the training rows": 1}
    assert eligible.groups[0].rows["state"].max() == 4
