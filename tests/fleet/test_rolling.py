"""Models chosen by rolling origins: what is compared, by which visits, and what becomes of the choice."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.linalg import expm

import rekka
from histories_table import make_inspections
from rekka.core.errors import BadOption, MissingColumns
from rekka.fleet import rolling
from rekka.fleet.backtest import Backtest, choose_case, confirm_choice
from rekka.fleet.backtest_rows import Cut, link_chains
from rekka.fleet.backtest_scores import CaseResult, Settings
from rekka.fleet.histories import leave_out_far
from rekka.fleet.rolling import choose_model, describe_model, elements_of, list_origins, open_origins, read_models
from rekka.forecast.forecast import ForecastOptions
from rekka.model.certificate import Verdict
from rekka.model.fit import Options

UNTIL = dt.date(2010, 12, 31)
SETTINGS = Settings(Cut(UNTIL), (), Options(), ForecastOptions("none"), far=True)


def pair(table: pl.DataFrame) -> pl.DataFrame:
    return rekka.read_transitions(table, rules={"upward": "keep_all"}).frame


@pytest.fixture(scope="module")
def erring() -> pl.DataFrame:
    return pair(make_inspections(150, errors=0.12))


@pytest.fixture(scope="module")
def compared(erring: pl.DataFrame) -> rolling.Rolling:
    cuts = list_origins(erring, UNTIL)
    found = open_origins("all", erring, cuts, UNTIL, (), SETTINGS, lambda model, origin: None)
    choose_model(found, ["errors"])
    return found


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Backtest, Any]:
    place = tmp_path_factory.mktemp("backtest")
    table = make_inspections(150, errors=0.12)
    found = rekka.backtest(table, models=["errors"], until=2010, covariates=[], draws=100, out=place)
    return found, place


def test_names_of_models_are_read_in_any_order() -> None:
    assert read_models("auto") is None
    assert read_models("plain, trend+errors,errors+trend") == ("plain", "errors+trend")
    assert describe_model("errors+running") == "errors, running clock"
    options = elements_of("errors+trend")
    assert (options.errors, options.trend, options.improvements) == ("adjacent-common", "common", None)
    assert not elements_of("plain").on
    with pytest.raises(BadOption, match=r"'trends'.*Did you mean trend"):
        read_models("errors+trends")
    with pytest.raises(BadOption, match="'plain'"):
        read_models("plain+errors")


def draw_dates(gap: int, years: int) -> pl.DataFrame:
    first = pl.Series([dt.date(2000 + year, 1, 1) for year in range(0, years, gap)])
    second = pl.Series([dt.date(2000 + year + gap, 1, 1) for year in range(0, years, gap)])
    return pl.DataFrame({"date_1": first, "date_2": second, "interval_years": [float(gap)] * len(first)})


@pytest.mark.parametrize(
    ("gap", "years", "back"),
    [
        (2, 8, [2, 3, 4]),
        (2, 20, [2, 3, 4, 5, 6]),
        (1, 20, [1, 2, 3, 4, 5]),
        (5, 30, [5, 7, 9, 11, 13]),
        (5, 10, [5]),
    ],
)
def test_origins_leave_visits_before_and_after(gap: int, years: int, back: list[int]) -> None:
    end = dt.date(2000 + years, 12, 31)
    found = list_origins(draw_dates(gap, years), end)
    assert [end.year - cut.moment.year for cut in found] == back
    assert list_origins(draw_dates(gap, years), dt.date(1999, 1, 1)) == ()


def test_an_origin_on_29_february_is_a_day() -> None:
    end = dt.date(2008, 2, 29)
    assert next(cut.moment for cut in list_origins(draw_dates(1, 4), end)) == dt.date(2007, 2, 28)


def test_improvements_of_any_size_are_kept_and_only_near_ones_train() -> None:
    states = {"A": "acacb", "B": "abcba"}
    rows = [(b, f"{2000 + n}-01-01", s) for b, one in states.items() for n, s in enumerate(one)]
    table = pl.DataFrame(rows, schema=["bridge_id", "date", "state"], orient="row")
    every = pair(table)
    assert len(every) == 8
    assert set(every["history"]) == {1}
    assert len(link_chains(every.with_columns(case=pl.lit("all")), Cut(dt.date(2000, 6, 1)))) == 8
    near = leave_out_far(every)
    assert near.select("bridge_id", "state_1", "state_2").rows() == [
        ("A", 1, 3), ("A", 1, 3), ("A", 3, 2), ("B", 1, 2), ("B", 2, 3), ("B", 3, 2), ("B", 2, 1),
    ]  # fmt: skip
    assert near["history"].to_list() == [1, 2, 2, 1, 1, 1, 1]


def test_every_later_visit_is_scored_as_the_model_itself_forecasts_it(compared: rolling.Rolling) -> None:
    origin = compared.origins[0]
    chains, theta = origin.visits.chains, np.append(np.exp(origin.plain.coefficients[:, 0]), 0.0)
    generator = np.diag(theta[:-1], 1) - np.diag(theta)
    members = origin.frame.filter(pl.col("date_2") > origin.cut.moment)
    assert len(chains) == len(members)  # no visit is left out
    some = np.random.default_rng(0).choice(len(chains), 40, replace=False)
    scores = compared.done["plain", 0].scores
    assert scores is not None
    for visit in some.tolist():
        start, end = origin.visits.start[visit], origin.visits.end[visit]
        p = expm(generator * chains.horizon[visit])[start]
        reached = np.arange(len(p)) >= end
        assert scores["rps"][visit] == pytest.approx(np.square(p.cumsum() - reached).sum(), abs=1e-10)
        assert scores["brier"][visit] == pytest.approx(np.square(p - np.eye(len(p))[end]).sum(), abs=1e-10)


def test_what_comes_after_the_end_changes_nothing(erring: pl.DataFrame) -> None:
    choice = choose_case("all", erring, SETTINGS, ("errors",), None, lambda *_: None)
    later = pl.col("date_2") > UNTIL
    spoilt = erring.with_columns(state_2=pl.when(later).then(3).otherwise("state_2").cast(pl.Int16))
    again = choose_case("all", spoilt, SETTINGS, ("errors",), None, lambda *_: None)
    assert choice.name == "errors"
    assert again.tried.equals(choice.tried)
    assert again.summary == choice.summary


def test_errors_are_found_and_described(compared: rolling.Rolling) -> None:
    choice = choose_model(compared, ["errors"])
    assert choice.name == "errors"
    assert choice.tried["kept"].to_list() == [True, True]
    line = choice.tried.row(1, named=True)
    assert line["high"] < 0
    assert line["difference"] == pytest.approx(line["rps"] - choice.tried["rps"][0])
    assert "errors; lowers the error (ranked probability score) of forecasts up to" in choice.summary
    assert choice.histories.errors == "adjacent-common"
    assert choice.origins["origin"].n_unique() == len(compared.origins)


def test_no_element_is_added_where_the_plain_model_is_right() -> None:
    table = rekka.simulate_inventory(120, preset="plain", seed=2).inspections.filter(pl.col("case") == "Pier")
    rows = pair(table)
    end = rows["date_2"].max()
    settings = replace(SETTINGS, cut=Cut(end))
    choice = choose_case("Pier", rows, settings, ("errors", "improvements", "trend"), None, lambda *_: None)
    assert choice.name == "plain"
    assert choice.summary.startswith("Pier: the plain model; none of errors, improvements, trend is shown to")
    assert not choice.tried["kept"][1:].any()
    assert choice.tried["reason"][1:].null_count() == 0


def test_a_model_that_is_not_certified_is_stood_in_for(compared: rolling.Rolling) -> None:
    some = replace(compared, done=dict(compared.done), before=dict(compared.before))
    last = len(some.origins) - 1
    some.done["errors", last] = compared.done["errors", last]._replace(reason="no maximum")
    assert some.stand_in("errors", last).equals(some.done["plain", last].scores)
    row = rolling._describe(some, 1, "errors", "plain", 0.95, kept=False)
    assert row["certified_at"] == last
    assert row["reason"] is None
    some.done["errors", 0] = compared.done["errors", 0]._replace(reason="no maximum")
    row = rolling._describe(some, 1, "errors", "plain", 0.95, kept=False)
    assert row["reason"] == f"not certified at {some.origins[0].cut.moment}: no maximum"
    assert row.get("rps") is None


def test_small_gains_are_not_worth_an_element(compared: rolling.Rolling) -> None:
    some = replace(
        compared, done=dict(compared.done), supports={"trend": -50.0, "frailty": -40.0, "running": -30.0}
    )
    for place in range(len(some.origins)):
        plain = compared.done["plain", place].scores
        assert plain is not None
        slightly = plain.with_columns(pl.col("rps") * 0.995)
        some.done["errors", place] = compared.done["errors", place]._replace(scores=slightly)
    row = rolling._describe(some, 1, "errors", "plain", 0.95, kept=False)
    assert row["reason"] == "lowers the score by less than 1 %"


def test_only_elements_that_the_records_can_show_are_tried(compared: rolling.Rolling) -> None:
    assert rolling._extend(compared, "plain") == ["errors", "improvements", "trend", "frailty"]
    assert rolling._extend(compared, "trend") == ["errors+trend", "improvements+trend", "trend+frailty"]
    latest = compared.origins[0]
    steady = replace(latest, train=latest.train.filter(pl.col("state_2") >= pl.col("state_1")))
    assert rolling._extend(replace(compared, origins=(steady,)), "plain") == ["trend", "frailty"]
    aged = replace(steady, plain=replace(latest.plain, clock=replace(latest.plain.clock, names=("age",))))
    assert rolling._extend(replace(compared, origins=(aged,)), "plain") == ["trend", "running", "frailty"]


def test_what_cannot_gain_at_the_latest_origin_is_not_fitted_at_the_others(
    compared: rolling.Rolling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forecast_alike(self: rolling.Rolling, name: str, origin: rolling.Origin, warm: Any) -> rolling.Forecasts:
        plain = self.done["plain", self.origins.index(origin)]
        assert plain.scores is not None
        return plain._replace(scores=plain.scores.with_columns(pl.col("rps") * 0.995))

    monkeypatch.setattr(rolling.Rolling, "_forecast", forecast_alike)
    many, latest = len(compared.origins), compared.origins[0].cut.moment
    some = replace(compared, done={key: one for key, one in compared.done.items() if key[0] == "plain"}, before={})
    (row,), best = rolling._compare(some, 1, ["trend"], "plain", sift=True)
    assert (row["reason"], best) == (f"cannot gain 1 % at {latest}", None)
    assert len(some.done) == many + 1
    (row,), best = rolling._compare(some, 1, ["trend"], "plain")  # asked for by name: at all of them
    assert (row["reason"], best) == ("lowers the score by less than 1 %", None)
    assert len(some.done) == 2 * many


def test_records_without_a_day_inside_keep_the_plain_model() -> None:
    rows = pair(make_inspections(20, visits=2))
    choice = choose_case("all", rows, replace(SETTINGS, cut=Cut(dt.date(2001, 1, 1))), None, None, lambda *_: None)
    assert choice.name == "plain"
    assert "no others could be compared" in choice.summary


def test_a_backtest_chooses_inside_its_years_and_is_tested_after_them(tested: tuple[Backtest, Any]) -> None:
    found, _ = tested
    assert found.until == "2010-12-31"
    assert found.cases["model"].to_list() == ["errors"]
    assert found.choices[0].origins["origin"].max() < dt.date(2010, 12, 31)
    assert set(found.scores["forecaster"]) == {"model", "plain", "no_covariates", "persistence"}
    assert found.cases["confirmed"].item() in (True, None)
    assert "On visits that no choice has seen" in found.cases["summary"].item()
    assert "Inspectors rate one better in" in found.cases["summary"].item()
    assert found.forecasts["date"].min() > dt.date(2010, 12, 31)


def test_a_stopped_choice_continues_from_its_folder(
    tested: tuple[Backtest, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, place = tested
    kept = sorted(file.name for file in (place / "models").iterdir())
    assert len(kept) == 2 * found.models["origins"][0]
    fitted: list[str] = []
    before = rolling.Rolling._forecast
    monkeypatch.setattr(
        rolling.Rolling, "_forecast", lambda self, name, *rest: (fitted.append(name), before(self, name, *rest))[1]
    )
    (place / "models" / kept[0]).unlink()
    table = make_inspections(150, errors=0.12)
    again = rekka.backtest(table, models=["errors"], until=2010, covariates=[], draws=100, out=place)
    assert len(fitted) == 1
    assert again.models["rps"].to_list() == pytest.approx(found.models["rps"].to_list(), abs=1e-6)
    assert again.models["kept"].equals(found.models["kept"])
    fitted.clear()  # other rows: nothing is taken
    fewer = table.filter(pl.col("bridge_id") != "F01")
    rekka.backtest(fewer, models=["errors"], until=2010, covariates=[], draws=100, out=place)
    assert len(fitted) == len(kept)
    assert {"models.csv", "origins.csv", "scores.csv"} <= {file.name for file in place.iterdir()}


@pytest.mark.parametrize(
    ("ends", "confirmed"), [((-0.2, -0.1), True), ((-0.1, 0.1), None), ((0.1, 0.2), False), ((None, None), None)]
)
def test_later_years_confirm_or_refute(ends: tuple[float | None, float | None], confirmed: bool | None) -> None:
    line = {"by": "all", "score": "rps", "forecaster": "model", "less": "plain", "low": ends[0], "high": ends[1]}
    schema = {"low": pl.Float64, "high": pl.Float64}
    result = CaseResult("x", model="errors", scores=pl.DataFrame([line], schema_overrides=schema))
    assert confirm_choice(result) is confirmed
    assert confirm_choice(replace(result, model=None)) is None


def test_what_does_not_go_together_is_refused() -> None:
    table = make_inspections(30)
    with pytest.raises(BadOption, match="errors adjacent is given, and models chooses"):
        rekka.backtest(table, models="auto", errors="adjacent")
    with pytest.raises(BadOption, match="clock running is given, and models chooses"):
        rekka.backtest(table, models="auto", clock="running")
    with pytest.raises(BadOption, match="no penalty"):
        rekka.backtest(table, models="auto", ridge=1.0)
    with pytest.raises(BadOption, match="until_visit is the number of a round"):
        rekka.backtest(table, models="auto", until_visit=3)
    pairs = rekka.read_transitions(table, rules={"upward": "keep"}).frame
    with pytest.raises(MissingColumns, match="models are compared from days inside the records"):
        rekka.backtest(pairs.drop("date_1", "date_2"), models="auto")
    with pytest.raises(MissingColumns, match="no column history"):
        rekka.backtest(pairs.drop("history"), models="auto")


def test_without_until_the_last_years_are_kept_for_the_test() -> None:
    found = rekka.backtest(make_inspections(60), models=["plain"], covariates=[], draws=100)
    assert found.until == "2010-12-31"  # 30 % of 2000 to 2014 are 4 years
    assert found.cases["model"].item() == "plain"
    assert "plain" not in found.scores["forecaster"].to_list()


def test_models_are_chosen_where_no_later_visit_can_test_them() -> None:
    """A study of all records chooses its elements so; with one model given such a backtest is refused."""
    found = rekka.backtest(make_inspections(60), models=["plain"], until=2030, covariates=[], draws=100)
    assert [one.name for one in found.choices] == ["plain"]
    assert found.scores.is_empty()


def draw_change(bridges: int = 200, seed: int = 1) -> pl.DataFrame:
    """Yearly visits to bridges that deteriorated six times as fast before 2004 as after it."""
    rng, rows = np.random.default_rng(seed), []
    state = np.zeros(bridges, dtype=int)
    for year in range(2000, 2015):
        rows += [(f"B{b:03d}", f"{year}-06-01", "abcdef"[s]) for b, s in enumerate(state.tolist())]
        rate = 0.36 if year < 2004 else 0.06
        state = np.minimum(state + (rng.random(bridges) < rate), 5)
    return pl.DataFrame(rows, schema=["bridge_id", "date", "state"], orient="row")


def test_recent_records_are_chosen_where_rates_have_changed() -> None:
    table = draw_change()
    found = rekka.backtest(
        table, models=["plain"], half_life="auto", since="auto", until=2012, draws=100, covariates=[]
    )
    (choice,) = found.choices
    window = choice.window
    assert window is not None
    assert window.words in choice.summary
    assert len(choice.tried) == 1 + 6
    fits = rekka.fit_components(table, models=["plain"], since="auto", covariates=[], test_fit=False)
    chosen = fits.components[0].choice
    assert chosen is not None
    assert chosen.window is not None
    begin = chosen.window.begin(dt.date(2014, 6, 1))
    late = rekka.fit_components(table, since=begin, covariates=[], test_fit=False)
    assert fits.models["all"].intercept_.tolist() == pytest.approx(
        late.models["all"].intercept_.tolist(), abs=1e-9
    )
    half = rekka.fit_components(table, models=["plain"], half_life="auto", covariates=[], test_fit=False)
    assert half.models["all"].half_life in (8.0, 4.0, 2.0)
    with pytest.raises(BadOption, match=r"half_life is 'auto'.*Give models"):
        rekka.backtest(table, half_life="auto", until=2012)


def test_a_window_that_does_not_know_a_rating_is_no_rival_there() -> None:
    rows, rng = [], np.random.default_rng(0)
    for b in range(60):
        state, gone = 0, b < 30
        for year in range(2000, 2015):
            if gone and year > 2005 and year % 7:  # the worst are hardly seen in the last years
                continue
            rows.append((f"B{b:02d}", f"{year}-06-01", "abcd"[state]))
            state = min(state + int(rng.random() < (0.6 if gone else 0.05)), 3)
    table = pl.DataFrame(rows, schema=["bridge_id", "date", "state"], orient="row")
    found = rekka.backtest(table, models="plain", since="auto", until=2012, covariates=[], draws=100)
    reasons = found.origins["reason"].drop_nulls().to_list()
    assert any("its rows know no rating worse than" in reason for reason in reasons)
    assert found.cases["model"].item() is not None


def test_a_chosen_window_is_tested_against_the_plain_model_of_all_rows() -> None:
    found = rekka.backtest(draw_change(), models=["plain"], since="auto", until=2012, covariates=[], draws=100)
    assert found.choices[0].window is not None
    plain = rekka.backtest(draw_change(), models=["plain"], until=2012, covariates=[], draws=100)
    alone = plain.scores.filter(pl.col("less").is_null(), by="all", score="rps", forecaster="model")
    theirs = alone["mean"].item()
    ours = found.scores.filter(pl.col("less").is_null(), by="all", score="rps", forecaster="plain")
    assert ours["mean"].item() == theirs
    assert "from 20" in found.cases["summary"].item()  # the days that the fit is of


def test_later_visits_do_not_decide_which_ratings_are_read_as_one() -> None:
    rng, rows = np.random.default_rng(4), []
    for b in range(100):
        state = 1
        for year in range(2000, 2016):
            rows.append((f"B{b:03d}", f"{year}-06-01", state))
            state = min(state + int(rng.random() < 0.18), 7)
    table = pl.DataFrame(rows, schema=["bridge_id", "date", "state"], orient="row")
    asked: dict[str, Any] = {"models": ["plain"], "until": 2008, "covariates": [], "draws": 100}
    whole = rekka.backtest(table, **asked)
    known = rekka.backtest(table.filter(pl.col("date") < "2010"), **asked)
    assert whole.labels == known.labels
    assert whole.origins["rps"].to_list() == known.origins["rps"].to_list()


def test_a_kept_forecast_is_of_the_same_ageing(tmp_path: Path) -> None:
    rows = pair(make_inspections(60, errors=0.12)).with_columns(x=pl.col("date_1").dt.year() - 1980.0)
    asked: dict[str, Any] = {
        "models": ["running"],
        "covariates": ["x"],
        "until": 2010,
        "draws": 100,
        "out": tmp_path,
    }
    still = rekka.backtest(rows, **asked)
    moving = rekka.backtest(rows, **asked, advance=["x"])
    assert still.models["rps"].to_list() != moving.models["rps"].to_list()


def test_improvements_are_no_misfit_of_the_plain_model() -> None:
    table = rekka.simulate_inventory(80, preset="plain", seed=2, error=0.03).inspections.filter(case="Pier")
    found = rekka.backtest(table, models="plain", covariates=[], draws=100)
    alone = rekka.backtest(table, until=found.until, covariates=[], draws=100)
    assert found.cases["fit_p_value"].item() == alone.cases["fit_p_value"].item()


def _score_like(
    compared: rolling.Rolling, moves: dict[str, float], supports: dict[str, float], few: float = 0.0
) -> tuple[rolling.Rolling, list[dict[str, Any]]]:
    """Models that score as the plain one does, but for ``moves``: at every visit, and ``few`` at every second."""
    some = replace(compared, done=dict(compared.done), supports=supports)
    for place in range(len(some.origins)):
        one = compared.done["plain", place]
        assert one.scores is not None
        for name, move in moves.items():
            uneven = few * (pl.int_range(pl.len()) % 2) if move else pl.lit(0.0)
            scores = one.scores.with_columns(pl.col("rps") + move + uneven)
            some.done[name, place] = rolling.OriginScores(scores, None, None)
    return some, [{"model": name, "rps": some.join(name, "rps").mean(), "reason": None} for name in moves]


def test_of_models_that_forecast_alike_the_one_that_fits_best_is_kept(compared: rolling.Rolling) -> None:
    supports = {"trend": -50.0, "frailty": -40.0, "running": -30.0}
    worth = rolling.LEAST_GAIN * float(compared.join("plain", "rps").mean())
    some, rows = _score_like(compared, {"trend": 0.0, "frailty": 0.5 * worth, "running": 2 * worth}, supports)
    assert some.compare("frailty", "trend", 0.95).low > 0  # shown to be worse, by less than is worth an element
    best = rolling._choose_best(some, rows)
    assert best is not None
    assert best["model"] == "frailty"
    worse = rolling._choose_best(some, [rows[0], rows[2]])
    assert worse is not None
    assert worse["model"] == "trend"


def test_a_rival_need_not_be_shown_to_be_better_than_the_model_before(compared: rolling.Rolling) -> None:
    worth = rolling.LEAST_GAIN * float(compared.join("plain", "rps").mean())
    some, rows = _score_like(
        compared, {"trend": 0.0, "frailty": 0.1 * worth}, {"trend": -50.0, "frailty": -40.0}, worth
    )
    rows[1]["reason"] = "not shown to forecast better"
    best = rolling._choose_best(some, rows)
    assert best is not None
    assert best["model"] == "frailty"
    rows[0]["reason"] = "not shown to forecast better"  # none is shown to be better: the model before stays
    assert rolling._choose_best(some, rows) is None
    rows[0]["reason"] = None
    out = {"model": "frailty", "reason": "not certified"}  # has no score
    best = rolling._choose_best(some, [rows[0], out])
    assert best is not None
    assert best["model"] == "trend"


def test_a_model_that_forecasts_as_well_as_the_one_that_is_kept_has_a_reason(
    compared: rolling.Rolling, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, rows = _score_like(compared, {"trend": 0.0, "frailty": 1e-9}, {"trend": -50.0, "frailty": -40.0})
    known = {row["model"]: row for row in rows}
    monkeypatch.setattr(rolling, "_describe", lambda _, step, name, *args, **more: known[name])
    found, best = rolling._compare(some, 1, ["trend", "frailty"], "plain")
    assert best == "frailty"
    assert found[0]["reason"] == "another forecasts alike and fits all records better"
    assert (found[1]["reason"], found[1]["kept"]) == (None, True)


def test_how_well_models_fit_is_compared_on_the_same_rows(compared: rolling.Rolling) -> None:
    some, rows = _score_like(compared, {"trend": 0.0, "errors": 1e-9}, {"trend": -50.0, "errors": 1e9})
    assert some.count_excluded("trend") > some.count_excluded("errors")
    best = rolling._choose_best(some, rows)
    assert best is not None
    assert best["model"] == "trend"


def test_models_are_fitted_to_all_rows_up_to_the_end_to_see_which_fits_best(compared: rolling.Rolling) -> None:
    some = replace(compared, supports={})
    found = some.support("plain")
    fit = rolling._fit(some.train, some.origins[0].covariates, some.settings, "plain")
    assert found == pytest.approx(fit.inference.log_likelihood - fit.inference.degrees_of_freedom, rel=1e-9)
    assert len(some.train) > len(some.origins[0].train)


def test_a_fit_that_is_no_maximum_does_not_win_by_its_likelihood(
    compared: rolling.Rolling, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = rolling._fit(compared.train, compared.origins[0].covariates, compared.settings, "plain")
    poor = replace(fit, certificate=replace(fit.certificate, verdict=Verdict.NOT_A_MAXIMUM))
    assert not poor.certificate.certified
    monkeypatch.setattr(rolling, "_fit", lambda *asked, **options: poor)
    assert replace(compared, supports={}).support("plain") == -np.inf


def test_a_component_that_cannot_be_compared_has_a_reason_and_the_others_are_chosen() -> None:
    whole = pair(make_inspections(60)).with_columns(
        x=pl.lit(1.0) + pl.int_range(pl.len()) % 3, case=pl.lit("whole")
    )
    holes = whole.with_columns(
        case=pl.lit("holes"), x=pl.when(pl.col("date_2") > dt.date(2009, 1, 1)).then(None).otherwise("x")
    )
    rows = pl.concat([whole, holes])
    found = rekka.backtest(rows, models="plain", covariates=["x"], until=2010, draws=100)
    assert found.cases["case"].to_list() == ["holes", "whole"]
    assert found.choices[0].reason is not None
    assert "x" in found.choices[0].reason
    assert found.choices[1].reason is None


def test_a_damaged_file_of_forecasts_is_made_again(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"models": "plain", "covariates": [], "until": 2010, "draws": 100, "out": tmp_path}
    before = rekka.backtest(make_inspections(40), **asked)
    for file in (tmp_path / "models").iterdir():
        file.write_bytes(b"damaged")
    assert rekka.backtest(make_inspections(40), **asked).models.equals(before.models)
