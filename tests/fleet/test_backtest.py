"""A model fitted to the past, and what its forecasts were worth."""

import datetime as dt
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from threadpoolctl import threadpool_limits

import rekka
from rekka.core.errors import BadOption, InputError, MissingColumns
from rekka.core.folders import plain
from rekka.evaluation.scores import mean_interval
from rekka.fleet import backtest_scores as backtest_totals
from rekka.fleet.backtest import Backtest, backtest
from rekka.fleet.backtest_rows import Cut, PairedRecords, _follow, link_chains, prepare, read_cut
from rekka.fleet.backtest_scores import NETWORKS, Network, draw_networks, forecast_visits
from rekka.forecast.ageing import plan_ageing
from rekka.forecast.propagation import Propagator
from rekka.forecast.uncertainty import NORMAL, Uncertainty
from rekka.model.family import EXPONENTIAL
from rekka.simulation.stock import advance

UPWARD = "upward move: the condition improved"
RATES = np.array([0.16, 0.12, 0.09])  # of leaving states 1 to 3, a year
SLOPES = np.array([0.5, 0.3, -0.2])  # of the log hazard by standard deviation of length
ONTARIO = {
    "columns": {"bridge": "ID", "completed": "YEAR BUILT", "length": "DECK LENGTH"},
    "state": {"bands": [85, 75, 70, 60], "missing": [0]},
}


def draw_visits(bridges: int, seed: int, years: range = range(2000, 2014, 2)) -> pl.DataFrame:
    """Inspections of bridges by known, constant hazards: states 1 to 4, a length, a year of completion."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(bridges)
    theta = RATES * np.exp(z[:, None] * SLOPES)
    built, state = rng.integers(1950, 1995, bridges), rng.integers(0, 3, bridges)
    rows = []
    for number, year in enumerate(years):
        if number:
            state = advance(state, theta, np.full(bridges, float(years.step)), rng)
        rows.append(
            pl.DataFrame(
                {
                    "bridge": [f"B{place:04d}" for place in range(bridges)],
                    "date": [dt.date(year, 6, 1)] * bridges,
                    "state": state + 1,
                    "length": 30.0 + 10.0 * z,
                    "completed": built,
                }
            )
        )
    return pl.concat(rows).sort("bridge", "date")


def read(visits: pl.DataFrame, **changes: Any) -> rekka.Panel:
    return rekka.read_panel(visits, **{"state": {"best": 1, "worst": 5}, **changes})


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices are small here: threads only wait for each other."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture(scope="module", autouse=True)
def few_simulations() -> Iterator[None]:
    """Draw few networks, and leave the test of fit out, which ``test_fit_test.py`` is about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backtest_totals, "NETWORKS", 200)
        patch.setattr(backtest_totals, "check_fit", lambda *_, **__: None)
        yield


@pytest.fixture(scope="module")
def panel() -> rekka.Panel:
    return read(draw_visits(150, 1))


@pytest.fixture(scope="module")
def found(panel) -> Backtest:
    return backtest(panel, until=2006, draws=100)


def train(panel: rekka.Panel, until: dt.date, covariates: tuple[str, ...]) -> Any:
    rows = rekka.pair_visits(panel).frame.filter(pl.col("date_2") <= until)
    model = rekka.ExponentialHazardMarkovModel(covariates=list(covariates))
    return model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())


def account(hazards: Callable[[float], np.ndarray], start: int, years: float) -> np.ndarray:
    """The distribution after so many years, year by year, by the exponential of a matrix."""
    p = np.eye(len(hazards(0.0)) + 1)[start]
    now = 0.0
    while now < years:
        h = min(1.0, years - now)
        theta = hazards(now + h / 2)
        generator = np.diag(np.append(-theta, 0.0)) + np.diag(theta, 1)
        p, now = p @ expm(generator * h), now + h
    return p


@pytest.mark.parametrize("age", ["advances", "held", "fixed"])
def test_forecasts_and_scores_equal_a_plain_account(age):
    autumn = pl.col("date").dt.year().is_in([2008, 2012])  # forecasts that do not end with a whole year
    visits = draw_visits(50, 1).with_columns(
        pl.when(autumn).then(pl.col("date").dt.offset_by("107d")).otherwise("date")
    )
    panel, names = read(visits), ("age_at_inspection_1", "bridge_length")
    found = backtest(panel, until="2006-12-31", age=age, draws=100)
    model, bare = (train(panel, dt.date(2006, 12, 31), use) for use in (names, ()))
    rows = rekka.pair_visits(panel).frame
    origin = {row["bridge_id"]: row for row in rows.filter(date_1=dt.date(2006, 6, 1)).iter_rows(named=True)}
    middle = pl.col("age_at_inspection_1") + pl.col("interval_years") / 2
    oldest = rows.filter(pl.col("date_2") <= dt.date(2006, 12, 31)).select(middle.max()).item()
    where = found.forecasts.select("state", "horizon_years").unique().rows()
    known = {
        (state, years): account(lambda t: np.exp(bare.intercept_), state - 1, years) for state, years in where
    }
    assert len(found.forecasts) == len(rows.filter(pl.col("date_1") >= dt.date(2006, 6, 1))) == 150
    scores = {"model": [], "no_covariates": [], "persistence": []}
    for row in found.forecasts.iter_rows(named=True):
        first = origin[row["bridge_id"]]

        def hazards(t: float, first: Any = first) -> np.ndarray:
            limit = max(first[names[0]], oldest) if age == "held" else math.inf
            years = first[names[0]] + (0.0 if age == "fixed" else t)
            return np.exp(model.intercept_ + model.coef_ @ [min(years, limit), first[names[1]]])

        p = account(hazards, row["state"] - 1, row["horizon_years"])
        np.testing.assert_allclose([row[f"p_{k}"] for k in range(1, 5)], p, atol=1e-12)
        assert row["state"] == first["state_1"]
        same, q = np.eye(4)[row["state"] - 1], known[row["state"], row["horizon_years"]]
        for name, each in (("model", p), ("no_covariates", q), ("persistence", same)):
            scores[name].append(score_by_hand(each, row["observed"] - 1))
    assert {round(row["horizon_years"], 2) for row in found.forecasts.iter_rows(named=True)} == {2.29, 4.0, 6.29}
    bridge = found.forecasts["bridge_id"].to_numpy()
    values = {name: np.array(each) for name, each in scores.items()}
    everything = found.scores.filter(by="all")
    for place, score in enumerate(("rps", "brier", "log_loss_exact", "log_loss", "accuracy")):
        for name, each in values.items():
            ours = everything.filter(pl.col("less").is_null(), score=score, forecaster=name).row(0, named=True)
            theirs = mean_interval(each[:, place], bridge)
            ends = theirs[1:3] if math.isfinite(theirs.mean) else (None, None)
            assert (ours["mean"], ours["low"], ours["high"]) == pytest.approx((theirs.mean, *ends), abs=1e-12)
        ours = everything.filter(score=score, less="no_covariates").row(0, named=True)
        theirs = mean_interval((values["model"] - values["no_covariates"])[:, place], bridge)
        assert (ours["mean"], ours["low"], ours["high"]) == pytest.approx(theirs[:3], abs=1e-12)


def score_by_hand(p: np.ndarray, end: int) -> tuple[float, ...]:
    seen = np.eye(len(p))[end]
    rps = sum((p[: k + 1].sum() - seen[: k + 1].sum()) ** 2 for k in range(len(p)))
    exact = -math.log(p[end]) if p[end] else math.inf
    return rps, ((p - seen) ** 2).sum(), exact, min(exact, -math.log(1e-12)), float(np.argmax(p) == end)


def test_a_fixed_age_is_the_models_own_forecast_over_the_whole_time(panel):
    found = backtest(panel, until=2006, age="fixed", draws=100).forecasts
    rows = rekka.pair_visits(panel).frame.filter(date_1=dt.date(2006, 6, 1))
    wanted = found.join(rows.select("bridge_id", "age_at_inspection_1", "bridge_length"), on="bridge_id")
    wanted = wanted.rename({"state": "state_1", "horizon_years": "interval_years"})
    wanted = wanted.with_columns(
        pl.col("age_at_inspection_1") - pl.col("interval_years") / 2
    )  # it is the middle's
    model = train(panel, dt.date(2006, 12, 31), ("age_at_inspection_1", "bridge_length"))
    ours = wanted.select("p_1", "p_2", "p_3", "p_4").to_numpy()
    np.testing.assert_allclose(ours, model.predict_proba(wanted), atol=1e-12)


def test_groups_and_counts_add_up(found):
    listed = found.forecasts
    for by, group in (("horizon", pl.col("horizon_years").round()), ("year", pl.col("date").dt.year())):
        counted = dict(listed.group_by(group.cast(pl.Int64).alias("group")).len().rows())
        lines = found.scores.filter(by=by, score="rps", forecaster="model").filter(pl.col("less").is_null())
        assert dict(lines.select("group", "visits").rows()) == counted
    totals = found.totals.filter(pl.col("or_worse").not_())
    year = pl.col("date").dt.year()
    groups = [("all", None, pl.lit(value=True))]
    groups += [("year", value, year == value) for value in (2008, 2010, 2012)]
    groups += [("up to year", value, year <= value) for value in (2008, 2010, 2012)]
    groups += [("start", value, pl.col("state") == value) for value in (1, 2, 3, 4)]
    for by, group, among in groups:
        here, some = totals.filter(pl.col("group").eq_missing(group), by=by), listed.filter(among)
        assert here["observed"].to_list() == [int((some["observed"] == k).sum()) for k in range(1, 5)]
        assert here["unchanged"].to_list() == [int((some["state"] == k).sum()) for k in range(1, 5)]
        np.testing.assert_allclose(here["expected"], [some[f"p_{k}"].sum() for k in range(1, 5)])
        assert set(here["visits"]) == {len(some)}
    worse = found.totals.filter("or_worse", by="all").row(0, named=True)
    assert (worse["state"], worse["observed"]) == (4, int((listed["observed"] == 4).sum()))


@pytest.mark.slow
def test_totals_of_known_hazards_lie_in_their_prediction_intervals(monkeypatch):
    """12 networks, fitted and forecast: about 95 % of the totals, and about half in intervals of 50 %."""
    monkeypatch.setattr(backtest_totals, "NETWORKS", 400)
    inside: dict[float, list[bool]] = {0.95: [], 0.5: []}
    for seed in range(12):
        rows = rekka.pair_visits(read(draw_visits(120, 100 + seed)))
        for level, seen in inside.items():
            found = backtest(rows, until=2006, covariates=["bridge_length"], level=level, draws=100, threshold=3)
            assert found.cases["certified"].all()
            seen.append(found.totals.filter("or_worse", by="all")["inside"].item())
    assert 10 <= sum(inside[0.95]) <= 12  # 11.4 expected; fewer than 10 with a chance of 2 %
    assert 3 <= sum(inside[0.5]) <= 9


def test_nothing_after_the_moment_reaches_the_fit():
    visits = draw_visits(150, 2)
    late = pl.col("date") > dt.date(2006, 12, 31)
    worst = visits.with_columns(state=pl.when(late).then(4).otherwise("state"))
    longer = worst.with_columns(length=pl.when(late).then(pl.col("length") * 100).otherwise("length"))
    cut = visits.filter(~late | (pl.col("date") < dt.date(2009, 1, 1)))
    first = backtest(read(visits), until=2006, draws=100)
    p = ["p_1", "p_2", "p_3", "p_4"]
    for other in (longer, cut):
        second = backtest(read(other), until=2006, draws=100)
        both = first.forecasts.join(second.forecasts, on=["bridge_id", "date"], suffix="_other")
        assert len(both) >= 150
        np.testing.assert_array_equal(both.select(p), both.select(f"{name}_other" for name in p))
        columns = ["certified", "covariates", "states", "training_rows", "training_bridges"]
        assert first.cases.select(columns).equals(second.cases.select(columns))
    assert set(backtest(read(longer), until=2006, draws=100).forecasts["observed"]) == {4}


@pytest.mark.parametrize("since", [2002, "2002-01-01", dt.date(2002, 1, 1)])
def test_old_transitions_can_be_left_out(panel, since):
    found = backtest(panel, until=2006, since=since, draws=100)
    rows = rekka.pair_visits(panel).frame
    span = (pl.col("date_2") <= dt.date(2006, 12, 31)) & (pl.col("date_1") >= dt.date(2002, 1, 1))
    assert found.cases["training_rows"].item() == len(rows.filter(span)) == 300
    assert "300 transitions of 150 bridges from 2002-01-01 up to 2006-12-31;" in str(found)
    assert found.since == "2002-01-01"


def write_out(bridge: str, states: str, first: int = 2000) -> list[dict[str, Any]]:
    """A bridge visited every second year; a dot is a year without a visit."""
    seen = [(first + 2 * place, int(state)) for place, state in enumerate(states) if state != "."]
    return [
        {"bridge": bridge, "date": dt.date(year, 6, 1), "state": state, "length": 20.0} for year, state in seen
    ]


BROKEN = {
    "kept": "1112334",  # 2000 to 2012
    "late break": "1122312",  # improved in 2010: 2008 is scored, 2010 and 2012 are lost
    "break at the moment": "1132223",  # from 2004 to 2006: later visits start anew, and 2006 is the origin
    "break over it": "1123122",  # improved from 2006 to 2008: all later visits are lost
    "gap": "112..34",  # seen in 2004, then in 2010
    "new": "....123",  # never seen before
    "gone": "1123...",
}  # fmt: skip


@pytest.fixture(scope="module")
def broken() -> pl.DataFrame:
    rows = [row for name, states in BROKEN.items() for row in write_out(name, states)]
    others = draw_visits(60, 3).select("bridge", "date", pl.col("state").cast(pl.Int64), "length")
    return pl.concat([pl.DataFrame(rows).select(others.columns), others])


def test_chains_break_where_pairs_were_set_aside(broken):
    found = backtest(read(broken), until=2006, draws=100)
    listed = found.forecasts.filter(pl.col("bridge_id").is_in(list(BROKEN)))
    chains = {
        str(name): [
            (row["date"].year, row["horizon_years"], row["state"], row["observed"]) for row in rows.to_dicts()
        ]
        for (name,), rows in listed.group_by("bridge_id", maintain_order=True)
    }
    assert chains == {
        "kept": [(2008, 2.0, 2, 3), (2010, 4.0, 2, 3), (2012, 6.0, 2, 4)],
        "late break": [(2008, 2.0, 2, 3)],
        "break at the moment": [(2008, 2.0, 2, 2), (2010, 4.0, 2, 2), (2012, 6.0, 2, 3)],
        "gap": [(2010, 6.0, 2, 3), (2012, 8.0, 2, 4)],
    }
    assert found.lost.rows() == [("all", UPWARD, 2, 5)]
    said = str(found)
    assert "5 later visits of 2 members not scored, because a pair on the way was excluded (upward move" in said
    assert "What is scored are members that were not repaired" in said


def test_without_a_panel_lost_visits_are_a_lower_bound(broken):
    rows = rekka.pair_visits(read(broken))
    found = backtest(rows, until=2006, draws=100)
    # of "break over it" the transitions 2008 to 2012 are there; of "late break" that from 2010 to 2012
    assert found.lost.rows() == [("all", UPWARD, 2, 5)]
    assert "At least 5 later visits of 2 members not scored" in str(found)
    short = broken.filter(~((pl.col("bridge") == "break over it") & (pl.col("date") > dt.date(2009, 1, 1))))
    assert backtest(read(short), until=2006, draws=100).lost.rows() == [("all", UPWARD, 2, 3)]
    assert backtest(rekka.pair_visits(read(short)), until=2006, draws=100).lost.rows() == [("all", UPWARD, 1, 2)]
    bare = backtest(rows.frame, until=2006, draws=100)
    assert bare.lost.rows() == [("all", "no transition leads on", 2, 5)]
    assert bare.forecasts.equals(found.forecasts)
    assert bare.totals.equals(found.totals)


def test_a_new_history_is_not_the_old_ones_chain(broken):
    found = backtest(read(broken, rules={"upward": "restart"}), until=2006, draws=100)
    listed = found.forecasts.filter(pl.col("bridge_id").is_in(["late break", "break over it"]))
    assert listed.select("bridge_id", "history", "observed").rows() == [("late break", 1, 3)]
    assert found.lost.rows() == [("all", UPWARD, 2, 5)]
    with pytest.raises(BadOption, match="until_visit needs visits that are numbered through"):
        backtest(rekka.pair_visits(read(broken, rules={"upward": "restart"})), until_visit=3)
    with pytest.raises(BadOption, match="here visits are only counted, member by member"):
        backtest(read(broken), until_visit=3)


def test_states_that_the_training_rows_do_not_know():
    visits = draw_visits(80, 4)
    early = pl.col("date") <= dt.date(2006, 12, 31)
    milder = visits.with_columns(state=pl.when(early).then(pl.min_horizontal("state", 3)).otherwise("state"))
    found = backtest(read(milder), until=2006, draws=100)
    case = found.cases.row(0, named=True)
    reached = milder.filter(~early, state=4)
    assert (case["states"], case["threshold"], case["beyond_states"]) == (3, 3, len(reached))
    assert case["visits"] == 240 - len(reached) == len(found.forecasts)
    assert (
        f"{len(reached)} later visits with a rating worse than 3, the worst that any training row ends in"
        in str(found)
    )
    asked = backtest(read(milder), until=2006, threshold=4, draws=100)
    assert "Rating 4 is worse than 3, the worst of the training rows, and not forecast." in str(asked)
    assert asked.totals["or_worse"].sum() == 0


def draw_two_cases() -> pl.DataFrame:
    """Four cases: one that can be fitted, one with no maximum, one that never changes, one begun too late."""
    good = draw_visits(60, 5).with_columns(case=pl.lit("good"))
    # all long bridges worsen at once, no short one ever does
    odd = draw_visits(30, 6).with_columns(
        case=pl.lit("separated"),
        state=pl.when(pl.col("date").dt.year() == 2000).then(1).when(pl.col("length") > 30).then(2).otherwise(1),
    )
    still = draw_visits(10, 7).with_columns(case=pl.lit("still"), state=pl.lit(1))
    late = draw_visits(10, 8, range(2008, 2014, 2)).with_columns(case=pl.lit("late"))
    return pl.concat([part.with_columns(pl.col("state").cast(pl.Int64)) for part in (good, odd, still, late)])


@pytest.fixture(scope="module")
def mixed() -> Backtest:
    return backtest(read(draw_two_cases()), until=2006, draws=100)


def test_cases_that_fail_are_kept_and_the_others_go_on(mixed):
    told = dict(mixed.cases.select("case", "summary").rows())
    assert list(told) == ["good", "late", "separated", "still"]
    assert mixed.cases["certified"].to_list() == [True, None, False, None]
    first = "; the first ends at 2010-06-01. Give a later until."
    assert (
        f"late: not forecast: no transition ends by 2006-12-31, so that there is nothing to fit{first}"
        in told["late"]
    )
    assert "still: not forecast: Every row stays in rating 1" in told["still"]
    assert told["separated"].startswith("NOT CERTIFIED: the model is where its optimizer stopped")
    assert "without a prediction interval: the fit is not a certified maximum" in told["separated"]
    assert "Exploratory, too small to conclude from: 90 training rows, fewer than 100" in told["separated"]
    assert set(mixed.scores["case"]) == set(mixed.totals["case"]) == {"good", "separated"}
    for table in (mixed.scores, mixed.totals, mixed.forecasts):
        assert dict(table.select("case", "certified").unique().rows()) == {"good": True, "separated": False}
    assert (
        mixed.totals.filter(case="separated").select("predicted_low", "inside").null_count().row(0)
        == (mixed.totals.filter(case="separated").height,) * 2
    )
    assert mixed.totals.filter(case="good")["inside"].null_count() == 0


def test_a_ridge_lets_a_separated_case_be_forecast_with_intervals():
    found = backtest(read(draw_two_cases()), until=2006, draws=100, ridge=1.0, cases=["separated"])
    assert found.cases.select("case", "certified").rows() == [("separated", True)]
    assert found.totals["inside"].null_count() == 0


def test_everything_is_plain_data(mixed):
    kept = json.loads(json.dumps(plain(mixed.to_dict()), allow_nan=False, default=str))
    assert [case["case"] for case in kept["cases"]] == ["good", "late", "separated", "still"]
    assert len(kept["scores"]) == len(mixed.scores)
    assert (kept["until"], kept["since"], kept["age"], kept["seed"]) == ("2006-12-31", None, "advances", 0)
    empty = backtest(read(draw_two_cases()), until=2006, draws=100, cases=["late"])
    assert (len(empty.scores), len(empty.totals), len(empty.forecasts)) == (0, 0, 0)
    assert empty.scores.columns == mixed.scores.columns
    assert empty.totals.columns == mixed.totals.columns


def test_the_same_seed_gives_the_same_result_however_much_is_drawn_at_once(panel, found, monkeypatch):
    seen: list[tuple[str, int, int]] = []
    monkeypatch.setattr(backtest_totals, "ROWS_AT_ONCE", 4_000)
    again = backtest(panel, until=2006, draws=100, on_progress=lambda *done: seen.append(done))
    assert again.totals.equals(found.totals)
    assert again.scores.equals(found.scores)
    assert len(seen) > 5
    assert seen[-1] == ("all", 200, 200)
    assert not backtest(panel, until=2006, draws=100, seed=1).totals.equals(found.totals)
    monkeypatch.setattr(backtest_totals, "MOST_VISITS", 1)
    backtest(panel, until=2006, draws=100, on_progress=lambda *done: seen.append(done))
    assert seen[-1] == ("all", 100, 100)


def test_ages_under_other_names(panel):
    rows = rekka.pair_visits(panel).frame.rename({"age_at_inspection_1": "old"})
    assert "covariates stay as they are" in str(backtest(rows, until=2006, draws=100))
    named = backtest(rows, until=2006, draws=100, advance=["old"])
    assert "old advancing by the year" in str(named)
    assert named.scores.equals(backtest(panel, until=2006, draws=100).scores)
    still = rows.with_columns(new=pl.lit(3.0))  # does not vary, and is left out
    assert backtest(still, until=2006, draws=100, advance=["old", "new"]).scores.equals(named.scores)


def test_drawn_networks_follow_the_exact_distribution(panel, monkeypatch):
    """With known coefficients the mean over networks is the sum of the probabilities, to four standard errors."""
    monkeypatch.setattr(backtest_totals, "NETWORKS", NETWORKS)
    cut = Cut(dt.date(2006, 12, 31))
    frame, _ = prepare(PairedRecords(rekka.pair_visits(panel)), cut, None)
    chains = link_chains(frame, cut)
    fit = train(panel, dt.date(2006, 12, 31), ("age_at_inspection_1", "bridge_length"))._fit
    course = plan_ageing(fit)
    x = frame[chains.origin].select(fit.covariates).to_numpy()
    start = frame[chains.origin]["state_1"].to_numpy().astype(np.int64) - 1
    sure = Uncertainty(NORMAL, 0.95, np.repeat(fit.coefficients[None], 201, axis=0))
    network = Network(Propagator(fit, x, fit.coefficients[None], course), start, chains)
    drawn = draw_networks(network, sure, chains.step, int(chains.step.max()) + 1, seed=0, case="all")
    assert drawn is not None
    p = forecast_visits(fit, course, x[chains.member], start[chains.member], chains.horizon)
    for step in range(drawn.shape[1]):
        here = p[chains.step == step]
        error = np.sqrt((here * (1 - here)).sum(axis=0) / len(drawn))
        assert (np.abs(drawn[:, step].mean(axis=0) - here.sum(axis=0)) <= 4 * error + 1e-9).all()
        uncertainty = drawn[:, step].std(axis=0)
        np.testing.assert_allclose(uncertainty, np.sqrt((here * (1 - here)).sum(axis=0)), rtol=0.1, atol=1e-9)


@given(
    hazards=st.lists(st.floats(0.0, 5.0), min_size=1, max_size=5),
    start=st.integers(0, 5),
    years=st.floats(0.01, 20.0),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_members_leave_when_their_budget_is_used_up(hazards, start, years, seed):
    n_states = len(hazards) + 1
    start = min(start, n_states - 1)
    budget = np.random.default_rng(seed).exponential(size=n_states)
    state, time = start, years
    while state < n_states - 1 and hazards[state] * time > budget[state]:
        time -= budget[state] / hazards[state]
        state += 1
    theirs, left = np.array([[[start]]]), budget[None, None, None, start].copy()
    theta = np.array([*hazards, 0.0])[None, None, None]
    EXPONENTIAL.live_through(theta, theirs, left, budget[None, None, None], np.array([years]))
    assert theirs.item() == state
    assert left.item() == pytest.approx(budget[state] - (hazards[state] if state < n_states - 1 else 0.0) * time)


def test_rounds_of_inspections(tmp_path):
    drawn = rekka.simulate_inventory(60, preset="plain", seed=4)
    joined = [{"file": drawn.inventory}, {"file": drawn.traffic}]
    panel = rekka.read_panel(drawn.inspections, join=joined)
    found = backtest(panel, until_visit=3, cases=["Pier", "Bearing"], draws=100)
    rows = rekka.pair_visits(panel).frame.filter(pl.col("case") == "Pier")
    assert set(found.forecasts["origin_visit"]) == {3}
    assert set(found.forecasts["visit"]) == {4, 5}
    assert set(found.scores["by"]) == {"all", "horizon", "visit"}
    assert set(found.totals["by"]) == {"all", "visit", "up to visit", "start"}
    assert found.cases.filter(case="Pier")["training_rows"].item() == len(rows.filter(pl.col("visit_2") <= 3))
    assert len(found.forecasts.filter(case="Pier")) == len(rows.filter(pl.col("visit_2") > 3))
    assert "of 2 rounds." in str(found)
    assert [note.split(" of")[0] for note in found.notes] == ["traffic_mean"]
    assert not backtest(panel, until_visit=3, cases=["Pier"], covariates=["bridge_length"], draws=100).notes


def test_members_that_are_not_told_apart():
    """Two members of a bridge in a table of transitions without rows and members: each is forecast one step."""
    rows = rekka.pair_visits(read(draw_visits(80, 9))).frame.drop("row_1", "row_2")
    twice = pl.concat([rows, rows])
    found = backtest(twice, until=2006, covariates=["bridge_length"], draws=100)
    once = backtest(rows, until=2006, covariates=["bridge_length"], draws=100)
    assert once.cases["visits"].item() == 240
    assert found.cases["visits"].item() == 160
    assert "160 chains ended early, because several transitions start at one visit" in str(found)


def test_transitions_that_go_nowhere_make_no_circle():
    """A transition of no time at all, in a table that somebody made."""
    rows = rekka.pair_visits(read(draw_visits(40, 9))).frame.drop("row_1", "row_2")
    odd = rows.filter(date_1=dt.date(2006, 6, 1)).with_columns(
        date_1="date_2", visit_1="visit_2", state_1="state_2"
    )
    frame, _ = prepare(PairedRecords(rekka.read_transitions(pl.concat([rows, odd]))), read_cut(2006), None)
    chains = link_chains(frame, read_cut(2006))
    assert len(chains) == 120
    assert int(chains.step.max()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Say up to when the model may know anything, in one way"),
        ({"until": 2006, "until_visit": 3}, "Say up to when the model may know anything, in one way"),
        ({"until": "soon"}, "until is 'soon'; a date such as 2008-12-31 or a year such as 2008 is needed"),
        ({"until": "2008-13-01"}, "until is '2008-13-01'; a date"),
        ({"until": 2006, "since": "x"}, "since is 'x'; a date"),
        ({"until_visit": 0}, "until_visit is 0; a whole number of at least 1"),
        ({"until_visit": True}, "until_visit is True"),
        ({"until": 2006, "draws": 20}, "draws is 20; a whole number of at least 100"),
        ({"until": 2006, "threshold": 1}, "threshold is 1; a whole number of at least 2"),
        ({"until": 2006, "level": 1.5}, "level is 1.5"),
        ({"until": 2006, "age": "grows"}, "age is 'grows'; it can be advances, held, fixed"),
        ({"until": 2006, "scaling": "zsore"}, "zsore"),
        ({"until": 2006, "cases": ["Pier"]}, "There is no component 'Pier'"),
        ({"until": 2006, "advance": ["bridge_id"]}, "advance names bridge_id, which is not a covariate"),
    ],
)  # fmt: skip
def test_wrong_options(panel, options, message):
    with pytest.raises(BadOption, match=message.replace("(", r"\(")):
        backtest(panel, **options)


def test_tables_that_cannot_be_used(panel, tmp_path):
    rows = rekka.pair_visits(panel).frame
    with pytest.raises(MissingColumns, match=r"date_1, date_2 are not in the table"):
        backtest(rows.drop("date_1", "date_2"), until=2006)
    with pytest.raises(MissingColumns, match=r"lenght is not in the table. Columns there"):
        backtest(rows, until=2006, covariates=["lenght"])
    with pytest.raises(InputError, match="No two visits make a transition"):
        backtest(replace(rekka.pair_visits(panel), frame=rows.head(0)), until=2006)
    better = rows.with_columns(
        state_2=pl.when(pl.col("date_1") < dt.date(2010, 1, 1)).then("state_2").otherwise(1)
    )
    assert "Condition may only worsen in this model" in backtest(better, until=2006).cases["reason"].item()
    undated = rows.with_columns(date_2=pl.when(pl.int_range(pl.len()) > 9).then("date_2"))
    assert backtest(undated, until=2006, draws=100).notes == (
        "10 transitions without a bridge, a component or a date left out",
    )
    told = f"no transition ends after 2020-12-31, the last one ends at {rows['date_2'].max()}. Let the model know less"
    with pytest.raises(InputError, match=told):
        backtest(rows, until=2020, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    recent = backtest(rows, until=2006, since=2007, draws=100)
    assert "of those that begin on 2007-01-01 or later. Give an earlier since." in str(recent)
    far = rows.with_columns(
        bridge_length=pl.when(pl.col("date_1") >= dt.date(2006, 1, 1)).then(-1e3).otherwise("bridge_length")
    )
    assert (
        "cannot transform bridge_length"
        in backtest(far, until=2006, scaling="boxcox", draws=100).cases["reason"].item()
    )


def test_ontario(ontario):
    """Real bridges: rates of decay fell eightfold from 2000 to 2010, and a model of the early years shows it."""
    panel = rekka.read_panel(ontario / "bridge_data.csv", ONTARIO)
    found = backtest(panel, until=2008, age="fixed", clock="start", draws=100)
    case = found.cases.row(0, named=True)
    counts = (
        "training_rows",
        "training_bridges",
        "members",
        "visits",
        "lost_members",
        "lost_visits",
        "beyond_states",
    )
    assert [case[name] for name in counts] == [6_458, 2_334, 2_188, 5_143, 558, 1_144, 0]
    assert found.lost.select("reason", "visits").rows() == [
        (UPWARD, 972),
        ("completed after the first visit", 172),
    ]
    worse = found.totals.filter("or_worse", by="all").row(0, named=True)
    assert (worse["observed"], round(worse["expected"]), worse["inside"]) == (1_359, 1_828, False)
    lately = backtest(panel, until=2008, since=2006, age="fixed", clock="start", draws=100)
    assert lately.totals.filter("or_worse", by="all")["inside"].item()
    losses = [
        one.scores.filter(pl.col("less").is_null(), by="all", score="log_loss_exact", forecaster="model")[
            "mean"
        ].item()
        for one in (found, lately)
    ]
    assert losses[0] == pytest.approx(0.5690, abs=1e-4)
    assert losses[1] < 0.45


def test_a_visit_from_which_two_transitions_go_on_leads_nowhere():
    """Of members that are not told apart: which of the two is its own cannot be known."""
    frame = pl.DataFrame(
        {
            "bridge_id": ["A"] * 3,
            "case": ["Pier"] * 3,
            "visit_1": [1, 2, 2],
            "visit_2": [2, 3, 4],
            "state_1": [1, 1, 1],
            "state_2": [1, 2, 3],
        }
    )
    follower, doubtful = _follow(frame, np.ones(3, bool))
    assert (follower.tolist(), doubtful.tolist()) == ([-1, -1, -1], [True, False, False])
    follower, doubtful = _follow(frame.head(2), np.ones(2, bool))
    assert (follower.tolist(), doubtful.tolist()) == ([1, -1], [False, False])


def test_a_component_without_a_usable_pair_is_named_with_the_reason():
    """Before, it was absent from the results, and asked for by name it was said not to be in the table."""
    lacking = draw_visits(10, 7).with_columns(case=pl.lit("lacking"), length=pl.lit(None, pl.Float64))
    good = draw_visits(80, 5).with_columns(case=pl.lit("good"))
    records = read(pl.concat([good, lacking.select(good.columns)]))
    why = "no pair of visits can be used (bridge_length is missing: "
    found = backtest(records, until=2006, draws=100, test_fit=False)
    assert found.cases["case"].to_list() == ["good", "lacking"]
    assert found.cases["reason"][1].startswith(why)
    assert set(found.scores["case"]) == {"good"}
    alone = backtest(records, until=2006, draws=100, cases=["lacking"])
    assert alone.cases["reason"].item().startswith(why)
    fits = rekka.fit_components(rekka.pair_visits(records), test_fit=False)
    assert list(fits.models) == ["good"]
    assert fits.reasons["lacking"].startswith(why)
    with pytest.raises(BadOption, match="Components there: good, lacking"):
        rekka.fit_components(rekka.pair_visits(records), only=["absent"])
