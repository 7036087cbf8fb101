"""Errors that all members share: estimated from earlier forecasts, and a wider band of totals."""

import datetime as dt
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_backtest import draw_visits
from test_network import YEARS, by_draws, by_slopes, setting

import rekka
from rekka.core.errors import BadOption, MissingColumns
from rekka.evaluation.scores import score_interval
from rekka.fleet import backtest_scores, shock_origins
from rekka.fleet.backtest_scores import _widen
from rekka.fleet.network import Totals, add_cases, find_shock
from rekka.fleet.shocks import Shocks, describe_shocks, estimate_shocks
from rekka.forecast.propagation import propagate

WIDER = ["predicted_shock_low", "predicted_shock_high", "inside_shock", "interval_score", "interval_score_shock"]


@pytest.fixture(scope="module", autouse=True)
def few_networks():
    """Draw few networks, at few origins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backtest_scores, "NETWORKS", 200)
        patch.setattr(shock_origins, "NETWORKS", 200)
        patch.setattr(shock_origins, "ORIGINS", 4)
        yield


def draw_residuals(sigma: float, seed: int, rows: int = 4000) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    slope, variance = rng.uniform(20.0, 80.0, rows), rng.uniform(50.0, 400.0, rows)
    missed = sigma * slope * rng.standard_normal(rows) + np.sqrt(variance) * rng.standard_normal(rows)
    columns = {"origin": 2000 + np.arange(rows) % 5, "year": 2006 + np.arange(rows) % 3}
    figures = {"observed": 500.0 + missed, "expected": np.full(rows, 500.0), "variance": variance, "slope": slope}
    return pl.DataFrame({"case": ["Pier"] * rows} | columns | figures)


class TestEstimate:
    @pytest.mark.parametrize("sigma", [0.2, 0.3, 0.6])
    def test_known_errors_are_recovered(self, sigma):
        found = estimate_shocks(draw_residuals(sigma, 1))["Pier"]
        assert found.sigma == pytest.approx(sigma, rel=0.1)
        assert found.origins == (2000, 2001, 2002, 2003, 2004)
        assert found.years == (2006, 2007, 2008)
        assert found.rows == 4000

    def test_forecasts_that_missed_by_chance_alone_have_none(self):
        rows = draw_residuals(0.0, 2)
        assert estimate_shocks(rows)["Pier"].sigma < 0.05
        less = rows.with_columns(observed=0.9 * pl.col("observed") + 50.0)  # less than chance
        assert estimate_shocks(less)["Pier"].sigma == 0.0

    def test_cases_are_estimated_by_themselves(self):
        rows = pl.concat(
            [draw_residuals(0.5, 3, 50), draw_residuals(0.1, 4, 50).with_columns(case=pl.lit("Deck"))]
        )
        both = estimate_shocks(rows)
        assert both["Pier"] == estimate_shocks(rows.filter(case="Pier"))["Pier"]
        assert both["Pier"].sigma > 2 * both["Deck"].sigma

    def test_too_few_rows_are_no_estimate(self):
        found = estimate_shocks(draw_residuals(0.5, 1, 2))["Pier"]
        assert found.sigma is None
        assert describe_shocks({"Pier": found}) == [
            "Pier: no wider band: 2 pairs of an earlier forecast and a later year, and 3 are needed; records of more "
            "years allow it."
        ]
        still = draw_residuals(0.5, 1, 9).with_columns(slope=0.0)  # nothing that hazards could change
        assert estimate_shocks(still)["Pier"].sigma is None

    def test_a_missing_column_is_named(self):
        with pytest.raises(MissingColumns, match="slope"):
            estimate_shocks(draw_residuals(0.5, 1, 5).drop("slope"))

    def test_few_years_stretch_the_band(self):
        assert Shocks(0.3).stretch(0.95) == 1.0
        assert Shocks(0.3, (2004,), (2005, 2006, 2007), 3).stretch(0.95) == pytest.approx(
            3.1824 / 1.95996, rel=1e-4
        )


class TestWords:
    def test_size_and_source_are_said(self):
        one = Shocks(0.336, (2004, 2005, 2007), (2005, 2006, 2008), 5)
        assert describe_shocks({"Pier": one}) == [
            "The wider band adds errors that all members share, as large as 3 earlier forecasts (2004 to 2007; 5 "
            "years forecast in all) missed by: in one forecast of three hazards are too high or too low by a factor of "
            "1.4 or more."
        ]
        given, none = Shocks(0.1), replace(one, sigma=0.0)
        assert describe_shocks({"Deck": given, "Pier": none}) == [
            "The wider band adds errors that all members share, as large as given: in one forecast of three hazards "
            "are too high or too low by a factor of 1.1 (Deck) or more.",
            "Pier: the wider band is no wider: 3 earlier forecasts (2004 to 2007; 5 years forecast in all) missed by no "
            "more than chance explains.",
        ]

    @pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf")])
    def test_a_size_that_is_none_is_refused(self, sigma):
        with pytest.raises(BadOption, match="a number of at least 0 is needed"):
            Shocks(sigma)


def test_interval_scores():
    found = score_interval(np.array([2.0, 2.0, 2.0]), np.array([5.0, 5.0, 5.0]), np.array([3.0, 1.0, 7.0]), 0.95)
    assert found.tolist() == pytest.approx([3.0, 3.0 + 40.0, 3.0 + 80.0])


@cache
def make_totals(sigma: float, drawn: bool = False) -> Totals:
    propagator, start, gap = setting()
    totals = by_draws(propagator, start, gap, draws=100) if drawn else by_slopes(propagator, start, gap)
    return replace(totals, shock=find_shock(propagator, start, YEARS, gap, 3, Shocks(sigma).tempos)[0])


class TestTotals:
    @pytest.mark.parametrize("drawn", [False, True])
    def test_the_wider_band_holds_the_other_one(self, drawn):
        narrow, wide = make_totals(0.4, drawn).predict(), make_totals(0.4, drawn).predict_shocked()
        assert (wide[0] <= narrow[0]).all()
        assert (wide[1] >= narrow[1]).all()
        assert (wide[1] - wide[0])[-1, -1] > 1.2 * (narrow[1] - narrow[0])[-1, -1]
        totals = make_totals(0.4, drawn)
        assert (wide[0] >= np.minimum(totals.least, narrow[0])).all()
        assert (wide[1] <= np.maximum(totals.most, narrow[1])).all()

    @pytest.mark.parametrize("drawn", [False, True])
    def test_without_errors_it_is_the_other_one(self, drawn):
        assert np.array_equal(make_totals(0.0, drawn).predict_shocked(), make_totals(0.0, drawn).predict())

    def test_it_is_missing_where_nothing_is_known(self):
        totals = make_totals(0.4)
        assert np.isnan(replace(totals, shock=None).predict_shocked()).all()
        assert np.isnan(replace(totals, deviation=None).predict_shocked()).all()
        assert np.isnan(add_cases([totals, replace(totals, shock=None)]).predict_shocked()).all()

    def test_cases_are_struck_at_once(self):
        totals = make_totals(0.4)
        assert add_cases([totals, totals]).shock == pytest.approx(2.0 * totals.shock)

    @pytest.mark.parametrize("years", [3, 10])
    def test_the_band_is_that_of_drawn_errors(self, years):
        """The expected number moves with the errors as half the difference between two tempos says."""
        propagator, start, _ = setting(n=60)
        sigma, threshold = 0.3, 3
        half = find_shock(propagator, start, years, None, threshold, Shocks(sigma).tempos)[0, -1, -1]
        drawn = []
        for u in np.random.default_rng(4).normal(0.0, sigma, 300):
            *_, p = propagate(replace(propagator, tempo=float(np.exp(u))), start, [years])
            drawn.append(p[0, :, threshold - 1 :].sum())
        assert half == pytest.approx(np.std(drawn), rel=0.12)

    def test_a_tempo_multiplies_all_hazards(self):
        propagator, start, _ = setting()
        fixed = replace(propagator, ageing=replace(propagator.ageing, columns=np.empty(0, np.intp)))
        *_, fast = propagate(replace(fixed, tempo=2.0), start, [3.0])
        *_, slow = propagate(fixed, start, [6.0])
        assert fast == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("shock", [0.0, 5.0, 40.0])
def test_drawn_numbers_are_moved(shock):
    drawn = np.random.default_rng(1).poisson(50, 405)
    low, high, inside, narrow, wide = _widen(drawn, shock, (20, 100), 75, 0.95)
    first, last = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    assert (low, high) == (first, last) if shock == 0.0 else (low < first and high > last)
    assert low >= 20
    assert high <= 100
    assert inside == (low <= 75 <= high)
    assert (narrow, wide) == pytest.approx(
        tuple(float(score_interval(a, b, 75, 0.95)) for a, b in ((first, last), (low, high)))
    )


@cache
def read_visits(bridges: int = 150) -> rekka.Transitions:
    panel = rekka.read_panel(draw_visits(bridges, 1, range(1996, 2014, 2)), state={"best": 1, "worst": 5})
    return rekka.pair_visits(panel)


@cache
def find_backtest() -> rekka.Backtest:
    return rekka.backtest(read_visits(), until=2008, shocks=True, draws=100, test_fit=False)


class TestBacktest:
    def test_totals_have_both_intervals(self):
        found = find_backtest()
        totals = found.totals
        assert totals.columns[-5:] == WIDER
        assert (totals["predicted_shock_low"] <= totals["predicted_low"]).all()
        assert (totals["predicted_shock_high"] >= totals["predicted_high"]).all()
        case = found.cases.row(0, named=True)
        assert case["shock"] >= 0.0
        assert case["shock_source"].startswith("4 earlier forecasts (2004 to 2007; 6 years forecast in all)")
        assert "inside the wider one; mean interval score" in case["summary"]
        assert WIDER[0] in found.to_dict()["totals"][0]

    def test_nothing_else_changes_and_later_visits_say_nothing(self):
        rows = read_visits()
        plain = rekka.backtest(rows, until=2008, draws=100, test_fit=False)
        found = find_backtest()
        assert plain.totals.equals(found.totals.drop(WIDER))
        assert "shock" not in plain.cases.columns
        worse = rows.frame.with_columns(
            state_2=pl.when(pl.col("date_2") > dt.date(2008, 12, 31)).then(4).otherwise("state_2")
        )
        other = rekka.backtest(replace(rows, frame=worse), until=2008, shocks=True, draws=100, test_fit=False)
        assert other.cases["shock"].item() == found.cases["shock"].item()
        assert not other.totals.equals(found.totals)

    def test_a_size_may_be_given(self):
        options: dict[str, Any] = {"until": 2008, "draws": 100, "test_fit": False}
        found, wider = (rekka.backtest(read_visits(), shocks=size, **options) for size in (0.3, Shocks(0.6)))
        assert found.cases["shock_source"].item() == "given"
        line, other = (one.totals.filter("or_worse", by="all").row(0, named=True) for one in (found, wider))
        ends = [(one["predicted_shock_low"], one["predicted_shock_high"]) for one in (line, other)]
        assert ends[1][0] <= ends[0][0] < line["predicted_low"] < line["predicted_high"] < ends[0][1] <= ends[1][1]

    def test_too_short_records_have_no_wider_band(self):
        found = rekka.backtest(read_visits(), until=1999, shocks=True, draws=100, test_fit=False)
        assert not set(WIDER) & set(found.totals.columns)
        assert "all: no wider band: no pair of an earlier forecast" in found.cases["summary"].item()

    def test_what_is_refused(self):
        with pytest.raises(BadOption, match="the moment is a round of inspections"):
            rekka.backtest(
                rekka.simulate_inventory(20, preset="plain", seed=1).inspections, until_visit=3, shocks=True
            )
        with pytest.raises(BadOption, match="shocks is 'much'; True"):
            rekka.backtest(read_visits(), until=2008, shocks="much")


@pytest.fixture(scope="module")
def inspections() -> pl.DataFrame:
    visits = draw_visits(100, 2, range(2000, 2014, 2))
    return visits.with_columns(state=pl.col("state").replace_strict({k: "abcd"[k - 1] for k in range(1, 5)}))


@pytest.fixture(scope="module")
def fits(inspections):
    return rekka.fit_components(inspections, test_fit=False)


class TestForecast:
    def test_the_network_has_both_intervals(self, fits, inspections):
        options: dict[str, Any] = {"years": 5, "member_intervals": False}
        found = rekka.forecast_inventory(fits, inspections, shocks=True, **options)
        plain = rekka.forecast_inventory(fits, inspections, **options)
        assert found.network.drop(WIDER[:2]).equals(plain.network)
        assert (found.network[WIDER[0]] <= found.network["predicted_low"]).all()
        assert (found.network[WIDER[1]] >= found.network["predicted_high"]).all()
        (shocks,) = found.document.shocks
        assert (shocks.case, shocks.origins) == ("all", (2008, 2009, 2010, 2011))
        assert "shocks" not in plain.document.model_dump()
        assert WIDER[0] not in plain.document.model_dump()["network"][0]

    @pytest.mark.parametrize("intervals", ["delta", "normal"])
    def test_a_given_size_and_histories(self, inspections, intervals):
        rows = inspections.filter(pl.col("bridge") < "B0060")
        fits = rekka.fit_components(rows, errors="adjacent-common", covariates=[], test_fit=False)
        found = rekka.forecast_inventory(
            fits, rows, shocks=0.5, years=5, intervals=intervals, draws=100, member_intervals=False
        )
        last = found.network.filter(year=5, what="in this state or worse").row(0, named=True)
        for name in ("", "recorded_"):
            assert last[f"{name}predicted_shock_low"] < last[f"{name}predicted_low"]
            assert last[f"{name}predicted_shock_high"] > last[f"{name}predicted_high"]

    def test_models_of_histories_are_fitted_again_with_their_own_elements(self, inspections):
        fits = rekka.fit_components(inspections, improvements="common", covariates=[], test_fit=False)
        found = rekka.forecast_inventory(fits, inspections, shocks=True, years=5)
        (shocks,) = found.document.shocks
        assert shocks.case == "all"
        assert shocks.origins

    def test_what_is_refused(self, fits, inspections):
        with pytest.raises(BadOption, match="intervals is 'none'"):
            rekka.forecast_inventory(fits, inspections, shocks=True, intervals="none")
        undated = inspections.group_by("bridge").last().drop("date").with_columns(age_at_inspection_1=40.0)
        with pytest.raises(MissingColumns, match=r"date is not in .* give inspections with dates"):
            rekka.forecast_inventory(fits, undated, shocks=True)
