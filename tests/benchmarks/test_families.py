"""The benchmark of other hazards: its objective is rekka's likelihood, a record has what the page needs, and runs continue."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.problems import SEED
from benchmarks.reproduction_words import find_marks

import rekka
from benchmarks import families, families_page
from rekka.data.partition import Partition
from rekka.model.elements import LEAST_PHI
from rekka.scaling.registry import REGISTRY

SETTINGS = {setting.name: setting for setting in families.SETTINGS}
AGE = "age_at_inspection_1"
COVARIATES = (AGE, "traffic_mean")
TINY = 90


def draw_rows(n=TINY, seed=4):
    """Rows of three states as two visits each of so many members, two to a bridge."""
    rows = rekka.simulate_transitions(n, n_states=3, seed=seed)
    numbers = pl.int_range(n, eager=True)
    return rows.with_columns(
        bridge_id=(numbers // 2).cast(pl.String),
        member=numbers.cast(pl.String),
        history=pl.lit(0),
        case=pl.lit("Pier"),
    )


@pytest.fixture(scope="module", autouse=True)
def registered():
    """Other tests run on every operator that is registered: this one is there for these alone."""
    families.register_log_age()
    yield
    REGISTRY.pop(families.LOG_AGE)


@pytest.fixture(scope="module")
def rows():
    return draw_rows()


@pytest.fixture(scope="module")
def histories():
    """Histories of up to five visits, with errors of inspection."""
    drawn = rekka.simulate_inventory(25, preset="plain", seed=2, error=0.1)
    join = [{"file": drawn.inventory}, {"file": drawn.traffic}]
    found = rekka.read_transitions(drawn.inspections, join=join, rules={"upward": "keep"}).frame
    return found.filter(case="Main girder")


@pytest.fixture
def small(monkeypatch):
    """The benchmark with one tiny case, and few iterations."""
    train, golden = draw_rows(), draw_rows(40, 5)
    data = families.Data(Partition(train, golden.head(0), golden, ""), train, COVARIATES)
    monkeypatch.setattr(families, "draw", lambda setting: data)
    monkeypatch.setattr(families, "MOST_ITERATIONS", 3)


def pose(setting, method, rows):
    model = families.fit_ours(setting, method, COVARIATES, rows)
    return model, families.Objective.of(model, rows, families.name_histories(setting, rows))


def test_settings_have_names_and_digests_of_their_own():
    assert len(SETTINGS) == len(families.SETTINGS)
    assert len({setting.digest for setting in SETTINGS.values()}) == len(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_objective_is_the_log_likelihood(name, rows, histories):
    setting = SETTINGS[name]
    rows = histories if setting.visits and "errors" in setting.options else rows
    model, objective = pose(setting, "minmax", rows)
    assert objective.value(objective.maximum) == pytest.approx(model.log_likelihood_, abs=1e-8)
    assert objective.start.size == objective.maximum.size == len(objective.bounds)
    assert objective.value(objective.start) < model.log_likelihood_
    bounded = [low for low, _ in objective.bounds if np.isfinite(low)]
    assert bounded == ([LEAST_PHI] if "frailty" in setting.options else [])


def test_the_start_is_that_of_the_fit(rows):
    """The elements begin where the first start of a fit of histories has them."""
    from rekka.model import history_fit

    seen = []
    plain = history_fit.find_starts

    def watch(coordinates, observed, elements):
        seen.append(plain(coordinates, observed, elements)[0][coordinates.basis.shape[1] :])
        return plain(coordinates, observed, elements)

    for options in ({"errors": "adjacent-common"}, {"frailty": "gamma"}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(history_fit, "find_starts", watch)
            _, objective = pose(families.Setting("one", options), "zscore", rows)
        np.testing.assert_allclose(objective.start[objective.fit.beta.size :], seen.pop(), atol=1e-12)


def test_pairs_go_the_way_of_the_estimator(rows):
    """Without elements the paper's optimizer takes the steps that solver="lbfgs" does."""
    _, objective = pose(SETTINGS["exponential"], "zscore", rows)
    psi, found = families.climb_as_paper(objective)
    model = rekka.ExponentialHazardMarkovModel(
        "zscore", covariates=list(COVARIATES), solver="lbfgs", gradient="numeric", seed=SEED, threads=1
    )
    model.fit(rows, rows["state_2"])
    own = model.outcome_
    assert (found["iterations"], found["evaluations"]) == (own.iterations, own.evaluations)
    assert (found["success"], found["message"]) == (own.success, own.message)
    assert found["log_likelihood"] == pytest.approx(model.log_likelihood_, abs=1e-10)
    np.testing.assert_allclose(psi.reshape(2, -1)[:, 1:], model.scaled_coef_, atol=1e-10)
    predictor = objective.predictor(psi)
    golden = rows.head(20)
    scores = families.score(predictor, golden)
    assert scores.log_loss == pytest.approx(model.log_loss(golden, golden["state_2"]), abs=1e-10)


def test_the_logarithm_of_age_makes_hazards_powers_of_age(rows):
    model, _ = pose(SETTINGS["Weibull"], "zscore", rows)
    traffic = float(rows["traffic_mean"].mean())
    x = np.array([[10.0, traffic], [20.0, traffic], [40.0, traffic]])
    steps = np.diff(model._fit.log_hazards(x), axis=0)
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-10)
    np.testing.assert_allclose(model._fit.scaling.inverse(model._fit.scaling.transform(x)), x)
    with pytest.raises(rekka.InputError, match="age_at_inspection_1 = 0"):
        model._fit.scaling.transform(np.array([[0.0, traffic]]))


def test_a_trial_has_what_the_page_needs(small, tmp_path, monkeypatch):
    """Three trials of a new run: the tables are written from their records."""
    stored = {name: {} for name in SETTINGS}
    for name, method in (("exponential", "zscore"), ("frailty", "max"), ("errors", "boxcox")):
        record = families.measure_trial(SETTINGS[name], "Pier", method)
        json.dumps(record, allow_nan=False)
        assert record["rows"] == TINY
        assert record["ours"]["certified"]
        assert record["paper"]["iterations"] <= 3
        assert record["paper"]["shortfall"] is None or record["paper"]["shortfall"] > -1e-6
        stored[name]["Pier", method] = record
    page = tmp_path / "families.md"
    marks = [mark for name in (families_page.ANSWER, families_page.TABLES) for mark in find_marks(name)]
    page.write_text("\n".join(marks))
    monkeypatch.setattr(families_page, "claim", lambda holds, sentence: sentence)  # on three trials nothing holds
    families_page.write_page(stored, page)
    text = page.read_text()
    assert "| exponential | z-score | 0 of 1 | " in text
    assert "| frailty | max | " in text


def test_a_setting_may_take_one_row_of_each_bridge():
    rows = draw_rows()
    data = families.Data(Partition(rows, rows, rows, ""), rows, COVARIATES)
    single = data.train(SETTINGS["frailty, drawn with frailty, a row a bridge"], "Pier")
    assert single["bridge_id"].n_unique() == len(single) == TINY // 2


def test_large_cases_are_left_to_rekka_where_the_setting_says_so(small):
    record = families.measure_trial(replace(SETTINGS["exponential"], most=TINY - 1), "Pier", "zscore")
    assert record["paper"] is None
    assert record["ours"]["certified"]


def test_a_scaling_that_cannot_be_fitted_is_a_failure(small, monkeypatch):
    data = families.draw(SETTINGS["Weibull"])
    young = replace(data.parts, train=data.parts.train.with_columns(pl.lit(-1.0).alias(AGE)))
    monkeypatch.setattr(families, "draw", lambda setting: replace(data, parts=young))
    record = families.measure_trial(SETTINGS["Weibull"], "Pier", "zscore")
    assert record["ours"] is None
    assert record["paper"] is None
    assert record["failure"]


def test_golden_rows_that_a_scaling_cannot_take_fail_the_trial(small, monkeypatch):
    data = families.draw(SETTINGS["Weibull"])
    old = replace(data.parts, golden=data.parts.golden.with_columns(pl.lit(-100.0).alias(AGE)))
    monkeypatch.setattr(families, "draw", lambda setting: replace(data, parts=old))
    monkeypatch.setattr(families, "MOST_ITERATIONS", 500)
    record = families.measure_trial(SETTINGS["Weibull"], "Pier", "zscore")
    assert record["paper"]["success"]
    assert not record["paper"]["converged"]
    assert "logage cannot transform" in record["paper"]["refused"]
    assert record["paper"]["log_loss"] is None


def test_a_run_continues_where_the_last_one_ended(tmp_path, monkeypatch):
    calls, file, setting = [], tmp_path / "stored.jsonl", SETTINGS["errors"]

    def measure(setting, case, method):
        calls.append((case, method))
        return {"setting": setting.name, "digest": setting.digest, "case": case, "method": method}

    monkeypatch.setattr(families, "measure_trial", measure)
    console = Console(quiet=True)
    families.run([setting], console, file, ["Pier"])
    with file.open("a") as stream:
        stream.write('{"setting": "err')  # stopped here
    families.run([setting], console, file, ["Pier", "Bearing"])
    assert len(calls) == len(set(calls)) == 8
    with file.open("a") as stream:
        stream.write(json.dumps({"setting": "errors", "digest": 0, "case": "Deck", "method": "max"}) + "\n")
    assert set(families.read_stored(file)["errors"]) == set(calls)  # not one of a setting that has changed since


def test_rekkas_side_is_fitted_again_beside_what_is_stored(small, tmp_path):
    setting, file = SETTINGS["errors"], tmp_path / "stored.jsonl"
    record = families.measure_trial(setting, "Pier", "zscore")
    refused = record | {"method": "max", "failure": "constant", "ours": None, "paper": None}
    worse = record | {"ours": record["ours"] | {"log_likelihood": -999.0, "certified": False}}
    file.write_text("".join(json.dumps(one) + "\n" for one in (worse, refused)))
    families.run_again([SETTINGS["frailty"]], file)
    assert families.read_stored(file)["errors"]["Pier", "zscore"] == worse
    families.run_again([setting], file)
    found = families.read_stored(file)["errors"]
    assert found["Pier", "max"] == refused
    again = found["Pier", "zscore"]
    assert again["paper"]["shortfall"] == pytest.approx(record["paper"]["shortfall"], abs=1e-6)
    assert again["paper"] | {"shortfall": 0.0} == record["paper"] | {"shortfall": 0.0}
    times = {"seconds": 0.0}
    assert again["ours"] | times == record["ours"] | times


def test_the_page_has_what_is_stored():
    text = families_page.PAGE.read_text()
    stored = families.read_stored()
    for name, own in families_page.describe(stored).items():
        begin, end = find_marks(name)
        assert text.split(begin)[1].split(end)[0].strip() == own
