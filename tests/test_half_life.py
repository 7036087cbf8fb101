"""Weights that halve with the years before the last visit: of pairs, of histories, in every call that fits."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.model import inputs

AGE = ["age_at_inspection_1"]


@pytest.fixture(scope="module")
def inspections() -> Any:
    return rekka.simulate_inventory(50, preset="plain", seed=3, error=0.1)


@pytest.fixture(scope="module")
def rows(inspections: Any) -> pl.DataFrame:
    panel = rekka.read_panel(inspections.inspections, join=[{"file": inspections.inventory}])
    return rekka.pair_visits(panel, upward="keep").frame.filter(pl.col("case") == "Pier")


@pytest.fixture(scope="module")
def pairs(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("state_2") >= pl.col("state_1"))


def fit(rows: Any, y: Any = None, half_life: Any = 4.0, covariates: Any = AGE, **options: Any) -> Any:
    known = {name: options.pop(name) for name in ("groups", "histories", "sample_weight") if name in options}
    model = rekka.ExponentialHazardMarkovModel(covariates=covariates, half_life=half_life, **options)
    return model.fit(rows, rows["state_2"] if isinstance(rows, pl.DataFrame) and y is None else y, **known)


def weigh(rows: pl.DataFrame, half_life: float) -> np.ndarray:
    days = (rows["date_1"] - dt.date(1970, 1, 1)).dt.total_days().to_numpy()
    end = days / 365.2425 + rows["interval_years"].to_numpy()
    return np.asarray(0.5 ** ((end.max() - end) / half_life))


def test_pairs_have_the_weight_of_their_second_visit(pairs: pl.DataFrame, tmp_path: Path) -> None:
    groups, weight = pairs["bridge_id"], weigh(pairs, 4.0)
    found, wanted = fit(pairs, groups=groups), fit(pairs, half_life=None, groups=groups, sample_weight=weight)
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-10)
    np.testing.assert_allclose(found.covariance_, wanted.covariance_, rtol=1e-8)
    assert found.log_likelihood_ == pytest.approx(wanted.log_likelihood_, rel=1e-12)
    assert found.summary().title.count("clustered by") == 1
    assert "weighted by a half-life of 4 years" in found.summary().title
    assert "AIC" not in found.summary().title
    assert np.isnan([found.aic_, found.bic_]).all()
    # multiplied with the weights given, and robust by row without groups
    twice = fit(pairs, sample_weight=np.full(len(pairs), 2.0))
    np.testing.assert_allclose(twice.coef_, found.coef_, rtol=1e-9)
    assert "sandwich, robust by row" in twice.summary().title
    # a column of years as numbers, all columns but the date as covariates, a file, a saved model
    years = pairs.select(
        "state_1",
        "interval_years",
        *AGE,
        "bridge_id",
        "state_2",
        seen=1970 + (pairs["date_1"] - dt.date(1970, 1, 1)).dt.total_days() / 365.2425,
    )
    plain = fit(years.drop("bridge_id", "state_2"), pairs["state_2"], covariates=None, date="seen", groups=groups)
    assert plain.covariates_ == tuple(AGE)
    np.testing.assert_allclose(plain.coef_, found.coef_, atol=1e-12)
    years.write_parquet(tmp_path / "rows.parquet")
    stored = fit(tmp_path / "rows.parquet", date="seen", groups="bridge_id")
    np.testing.assert_allclose(stored.covariance_, found.covariance_, rtol=1e-9)
    again = type(found).from_json(found.to_json())
    assert again.half_life == 4.0
    np.testing.assert_array_equal(again.predict_proba(pairs), found.predict_proba(pairs))
    assert "half_life" not in wanted.to_json()
    drawn = found.bootstrap(pairs, pairs["state_2"], groups=groups, draws=8).resampled_.beta
    assert np.abs(drawn.mean(axis=0)[:, 1:] - found.scaled_coef_).max() < 1.5


def test_rows_that_are_histories_of_their_own_are_weighted_pairs(pairs: pl.DataFrame) -> None:
    alone = np.arange(len(pairs))
    np.testing.assert_array_equal(fit(pairs, histories=alone).coef_, fit(pairs).coef_)  # no element
    found = fit(pairs, histories=alone, trend="common")
    p = found.predict_proba(pairs)[alone, pairs["state_2"].to_numpy() - 1]
    assert found.log_likelihood_ == pytest.approx(weigh(pairs, 4.0) @ np.log(p), rel=1e-9)
    assert found.log_likelihood_ > fit(pairs).log_likelihood_


def test_visits_of_histories_are_weighted_by_their_own_dates(rows: pl.DataFrame, tmp_path: Path) -> None:
    known: dict[str, Any] = {"histories": rows["bridge_id", "member", "history"], "groups": rows["bridge_id"]}
    found = fit(rows, errors="adjacent-common", frailty="gamma", **known)
    assert found.certificate_.certified
    assert "clustered by" in found.summary().title
    assert "half-life of 4 years" in found.summary().title
    even, plain = (fit(rows, half_life=h, errors="adjacent-common", **known) for h in (1e12, None))
    np.testing.assert_allclose(even.coef_, plain.coef_, atol=1e-8)
    assert "robust by history" in fit(rows, errors="adjacent-common", histories=known["histories"]).summary().title
    rows.write_parquet(tmp_path / "rows.parquet")
    stored = rekka.ExponentialHazardMarkovModel(covariates=AGE, half_life=4.0, errors="adjacent-common").fit(
        tmp_path / "rows.parquet", histories=["bridge_id", "member", "history"], groups="bridge_id"
    )
    held = fit(rows, errors="adjacent-common", **known)
    np.testing.assert_array_equal(stored.covariance_, held.covariance_)
    early = rows["date_1"].min()
    assert isinstance(early, dt.date)
    old = rows.with_columns(pl.lit(early).alias("date_1"))  # all second visits count, by their years alone
    assert not np.allclose(fit(old, errors="adjacent-common").coef_, held.coef_)


def test_weights_too_small_for_a_number_are_not_absence() -> None:
    weight = inputs.weigh_dates(np.array([0.0, -1.0, -1e6]), 0.5)
    np.testing.assert_array_equal(weight[:2], [1.0, 0.25])
    assert weight[2] > 0.0


@pytest.mark.parametrize("value", [0, -3.0, float("nan"), float("inf"), "5", True])
def test_half_lives_that_are_no_years_are_refused(pairs: pl.DataFrame, value: Any) -> None:
    for options in ({}, {"trend": "common"}):
        with pytest.raises(rekka.InputError, match="a number of years above 0 is needed"):
            fit(pairs, half_life=value, **options)
    with pytest.raises(rekka.InputError, match="a number of years above 0 is needed"):
        rekka.fit_components(pairs, half_life=value)


def test_what_a_half_life_cannot_have_is_refused(pairs: pl.DataFrame, tmp_path: Path) -> None:
    needs = "a half-life needs the date of each first visit"
    for options in ({}, {"errors": "adjacent"}):
        with pytest.raises(rekka.InputError, match=needs):
            fit(pairs.drop("date_1"), **options)
    bare = pairs.drop("date_1", "date_2")
    with pytest.raises(rekka.InputError, match=needs):
        rekka.fit_components(bare, half_life=4)
    with pytest.raises(rekka.InputError, match=needs):
        rekka.backtest(bare, until_visit=3, half_life=4)
    pairs.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(rekka.InputError, match=needs):
        fit(pl.scan_parquet(tmp_path / "rows.parquet").drop("date_1"))
    with pytest.raises(rekka.InputError, match="need rows in memory"):
        rekka.ExponentialHazardMarkovModel(covariates=AGE, half_life=4).fit(
            tmp_path / "rows.parquet", cluster="local"
        )
    with pytest.raises(rekka.InputError, match="cluster is given"):
        rekka.fit_components(tmp_path / "rows.parquet", half_life=4, cluster="local")
    with pytest.raises(rekka.InputError, match="no test of fit"):
        fit(pairs).check_fit(pairs, pairs["state_2"])
    with pytest.raises(rekka.InputError, match="needs fits without a half-life"):
        rekka.likelihood_ratio_test(fit(pairs), fit(pairs))


def test_components_forecasts_and_backtests_take_a_half_life(inspections: Any, pairs: pl.DataFrame) -> None:
    own = fit(pairs, groups=pairs["bridge_id"])
    fits = rekka.fit_components(pairs, covariates=AGE, half_life=4.0)
    model = fits.models["Pier"]
    np.testing.assert_array_equal(model.coef_, own.coef_)
    assert fits.notes == (
        "A visit 4 years before the last one has half its weight.",
        "The test of fit is not made with a half-life: weighted rows do not have the frequencies of the model.",
    )
    plain = rekka.fit_components(pairs, covariates=AGE, test_fit=False)
    once = rekka.forecast_inventory(fits, pairs, years=3, intervals="none")
    again = rekka.forecast_inventory(plain, pairs, years=3, intervals="none", half_life=4.0)
    assert once.network.equals(again.network)
    assert not again.network.equals(rekka.forecast_inventory(plain, pairs, years=3, intervals="none").network)
    found = rekka.backtest(pairs, until=2012, covariates=[], half_life=4.0, draws=100)
    assert "A visit 4 years before the last one has half its weight." in found.notes
    past = pairs.filter(pl.col("date_2") <= dt.date(2012, 12, 31))
    model = fit(past, groups=past["bridge_id"], covariates=[])
    wanted = model.predict_proba(found.forecasts.select(state_1="state", interval_years="horizon_years"))
    np.testing.assert_allclose(found.forecasts.select("^p_.$").to_numpy(), wanted, atol=1e-9)


def test_only_rows_since_a_day_train(pairs: pl.DataFrame) -> None:
    day = dt.date(2008, 1, 1)
    late = pairs.filter(pl.col("date_1") >= day)
    assert 20 < len(late) < len(pairs)
    found = rekka.fit_components(pairs, covariates=AGE, since=2008, test_fit=False)
    wanted = rekka.fit_components(late, covariates=AGE, test_fit=False)
    np.testing.assert_array_equal(found.models["Pier"].coef_, wanted.models["Pier"].coef_)
    assert found.notes == (f"{len(pairs) - len(late)} transitions that begin before 2008-01-01 left out.",)
    two = pl.concat([pairs, pairs.filter(pl.col("date_1") < day).with_columns(case=pl.lit("Deck"))])
    both = rekka.fit_components(two, covariates=AGE, since="2008-01-01", test_fit=False)
    assert both.reasons == {"Deck": "no transition begins on 2008-01-01 or later; give an earlier day."}
    assert list(both.models) == ["Pier"]
    with pytest.raises(rekka.InputError, match="since is 'soon'"):
        rekka.fit_components(pairs, since="soon")
    with pytest.raises(rekka.InputError, match="since needs the date of each first visit"):
        rekka.fit_components(pairs.drop("date_1"), since=2008)
