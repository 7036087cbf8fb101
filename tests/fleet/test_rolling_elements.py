"""Which models a choice tries, and where it fits them."""

import datetime as dt

import pytest
from benchmarks.choices import Situation, draw_transitions
from benchmarks.simulated_histories import Setting

from rekka.fleet.backtest import choose_case
from rekka.fleet.backtest_rows import Cut
from rekka.fleet.backtest_scores import Settings
from rekka.forecast.forecast import ForecastOptions
from rekka.forecast.uncertainty import NONE
from rekka.model.fit import Options


def choose(rows, covariates, models=None):
    fits = []
    settings = Settings(Cut(rows["date_2"].max()), covariates, Options(threads=1), ForecastOptions(NONE), far=True)
    return choose_case("Pier", rows, settings, models, None, lambda what, *_: fits.append(what)), fits


@pytest.fixture(scope="module")
def rows():
    return draw_transitions(Situation(Setting("errors", 2.0, 6, error=0.1), bridges=80), 0)


def test_elements_that_the_records_cannot_show_are_not_tried(rows):
    never = rows.filter(rows["state_2"] >= rows["state_1"])
    choice, _ = choose(never, ("x",))
    assert choice.tried.filter(step=1)["model"].to_list() == ["trend", "frailty"]
    assert choice.tried.filter(step=1)["level"].unique().to_list() == [0.95]


def test_an_element_that_cannot_gain_at_the_latest_origin_is_not_fitted_at_the_others(rows):
    choice, fits = choose(rows.with_columns(age=30.0 + rows["date_1"].dt.year() - 2000), ("x", "age"))
    first = choice.tried.filter(step=1)
    assert first["model"].to_list() == ["errors", "improvements", "trend", "running", "frailty"]
    hopeless = first.filter(first["reason"].str.contains("cannot gain 1 % at"))
    assert len(hopeless) > 0
    latest = choice.origins["origin"].max()
    assert isinstance(latest, dt.date)
    for name in hopeless["model"]:
        assert [one for one in fits if one.startswith(f"Pier: {name},")] == [f"Pier: {name}, up to {latest}"]
    assert first["origins"].max() > 1


def test_models_that_are_asked_for_are_fitted_at_every_origin(rows):
    choice, _ = choose(rows, ("x",), ("plain", "frailty"))
    origins = choice.origins["origin"].n_unique()
    assert origins > 1
    assert choice.origins["model"].value_counts().sort("model")["count"].to_list() == [origins, origins]
