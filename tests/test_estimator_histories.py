"""Options of the estimator for histories: what a user gives, gets and is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import rekka
from rekka import ExponentialHazardMarkovModel as Model


def make_rows(bridges: int = 60, seed: int = 1) -> pl.DataFrame:
    """Ratings of four visits a bridge that go up and down, as inspectors' do."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for b in range(bridges):
        state, age, year = int(rng.integers(1, 3)), float(rng.integers(1, 30)), float(rng.integers(2000, 2003))
        rating = state
        for _ in range(3):
            years = float(rng.integers(1, 4))
            state = min(state + int(rng.random() < 0.12 * years), 4)
            seen = int(np.clip(state + rng.choice([-1, 0, 1], p=[0.1, 0.8, 0.1]), 1, 4))
            known = {"bridge": f"B{b}", "state_1": rating, "state_2": seen, "interval_years": years}
            rows.append(known | {"age": age, "date_1": year})
            rating, age, year = seen, age + years, year + years
    return pl.DataFrame(rows)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    return make_rows()


@pytest.fixture(scope="module")
def model(rows: pl.DataFrame) -> Model:
    made = Model(covariates=["age"], errors="adjacent-common", trend="common", threads=1)
    return made.fit(rows, rows["state_2"], histories=rows["bridge"], groups=rows["bridge"])


def test_attributes_and_summary(model: Model) -> None:
    assert model.certificate_.certified
    assert model.errors_ is not None
    np.testing.assert_allclose(model.errors_.sum(axis=1), 1.0, atol=1e-12)
    assert model.trend_ is not None
    assert model.trend_.shape == (3,)
    assert model.frailty_ is None
    assert model.improvements_ is None
    assert model.first_ is not None
    assert model.first_(np.array([5.0, 40.0])).shape == (2, 4)
    table = model.summary()
    assert table.filter(pl.col("term") == "errors: rated one better")["estimate"][0] == model.errors_[1, 0]
    assert table.filter(pl.col("term") == "trend")["estimate"][0] == pytest.approx(model.trend_[0])
    assert "sandwich, clustered by 60 groups" in table.title


def test_predictions_with_all_visits_add_up_to_the_likelihood(model: Model, rows: pl.DataFrame) -> None:
    p = model.predict_proba(rows, histories=rows["bridge"])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    rated = np.log(p[np.arange(len(rows)), rows["state_2"].to_numpy() - 1]).sum()
    begins = rows.unique("bridge", keep="first", maintain_order=True)
    assert model.first_ is not None
    assert model.errors_ is not None
    first = model.first_(begins["age"].to_numpy()) @ model.errors_
    first_rated = np.log(first[np.arange(len(begins)), begins["state_1"].to_numpy() - 1]).sum()
    assert rated + first_rated == pytest.approx(model.log_likelihood_, abs=1e-8)
    alone = model.predict_proba(rows)
    np.testing.assert_allclose(alone[::3], p[::3], atol=1e-12)  # first rows have no earlier visit
    assert not np.allclose(alone, p)
    assert model.log_loss(rows, rows["state_2"]) > 0


def test_predictions_follow_dates_in_whatever_order_rows_are(rows: pl.DataFrame) -> None:
    model = Model(covariates=[], errors="adjacent-common")
    model.fit(rows, rows["state_2"], histories=rows["bridge"])
    shuffled = rows.with_row_index("place").sample(fraction=1.0, shuffle=True, seed=1)
    one = model.predict_proba(rows, histories=rows["bridge"])
    other = model.predict_proba(shuffled, histories=shuffled["bridge"])
    np.testing.assert_allclose(other, one[shuffled["place"].to_numpy()], atol=1e-12)


def test_a_rating_that_is_to_come_says_nothing_of_the_frailty() -> None:
    place = pl.int_range(pl.len()).over("bridge")
    rows = make_rows(bridges=40).with_columns(place=place, history=place // 2)
    identity, bridge = rows.select("bridge", "history"), rows["bridge"]
    model = Model(covariates=["age"], errors="adjacent-common", frailty="gamma", threads=1)
    model.fit(rows, rows["state_2"], histories=identity, groups=bridge)
    # The end of a first history's last row is unknown, so how far ahead it lies does not matter to the second one.
    ahead = pl.when(pl.col("place") == 1).then(30.0).otherwise("interval_years")
    soon, late = (
        model.predict_proba(some, histories=identity, groups=bridge)
        for some in (rows, rows.with_columns(interval_years=ahead))
    )
    second = rows["history"].to_numpy() == 1
    np.testing.assert_allclose(late[second], soon[second], atol=1e-12)
    assert np.abs(late - soon).max() > 0.1


def test_a_model_file_keeps_all_of_it(model: Model, rows: pl.DataFrame) -> None:
    text = model.to_json()
    again = Model.from_json(text)
    assert again.to_json() == text
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert again.errors == "adjacent-common"
    assert again.summary().equals(model.summary(), null_equal=True)
    damaged = text.replace('"parameters": [', '"parameters": [0.5,', 1)
    assert damaged != text
    with pytest.raises(rekka.InputError, match="damaged"):
        Model.from_json(damaged)


def test_elements_that_are_off_leave_the_pair_model(rows: pl.DataFrame) -> None:
    worse = rows.with_columns(pl.max_horizontal("state_1", "state_2").alias("state_2"))
    plain = Model(covariates=["age"]).fit(worse, worse["state_2"])
    assert "errors" not in plain.to_json()
    assert "records" not in plain.to_json()
    alone = pl.concat([worse, worse.head(1).with_columns(bridge=pl.lit("single"))], how="vertical")
    y = pl.concat([worse["state_2"], pl.Series([None], dtype=pl.Int64)])
    each = [f"{i}" for i in range(len(alone))]
    chained = Model(covariates=["age"]).fit(alone, y, histories=each)
    assert chained.log_likelihood_ == plain.log_likelihood_
    assert np.array_equal(chained.coef_, plain.coef_)


@pytest.mark.parametrize(
    ("options", "given", "words"),
    [
        ({"errors": "near"}, {}, "errors is 'near'; it can be None, adjacent"),
        ({"frailty": "normal"}, {}, "frailty is 'normal'"),
        ({"clock": "late"}, {}, "clock is 'late'; it can be middle, start, running"),
        ({"first": "old"}, {}, "first is 'old'"),
        ({"trend": "common", "date": "when"}, {}, "when is not in the table, and a trend needs"),
        ({"errors": "adjacent", "class_weight": "inverse_frequency"}, {}, "takes no weights"),
        (
            {"errors": "adjacent", "solver": "lbfgs"},
            {},
            "solver is 'lbfgs', which a fit of histories does not take",
        ),
        ({"errors": "adjacent"}, {"sample_weight": np.ones(180)}, "takes no weights"),
        ({"errors": "adjacent"}, {"histories": ["a"]}, r"histories has shape \(1,\)"),
        (
            {"errors": "adjacent"},
            {"histories": np.zeros(180), "groups": None},
            "the history's row before ends in state",
        ),
        ({"errors": np.eye(4)}, {}, "cannot follow the visits before it"),
        ({"errors": "adjacent", "frailty": "gamma"}, {"groups": np.zeros(180)}, "one bridge"),
        ({"errors": "adjacent", "first": "new", "covariates": []}, {}, "no covariate here is an age"),
        ({}, {}, "Condition may only worsen"),
    ],
)
def test_bad_input_is_refused(rows: pl.DataFrame, options: Any, given: Any, words: str) -> None:
    known = {"histories": rows["bridge"], "groups": rows["bridge"]} | given
    with pytest.raises(rekka.InputError, match=words):
        Model(**({"covariates": ["age"]} | options)).fit(rows, rows["state_2"], **known)


def test_what_is_not_there_yet_is_refused(model: Model, rows: pl.DataFrame) -> None:
    for call in (
        lambda: model.bootstrap(rows, rows["state_2"], groups=rows["bridge"]),
        lambda: model.check_fit(rows, rows["state_2"]),
        lambda: rekka.likelihood_ratio_test(model, model),
    ):
        with pytest.raises(rekka.InputError, match=r"of histories .* is not supported yet"):
            call()
    with pytest.raises(rekka.InputError, match="The rows are in memory here"):
        Model(covariates=["age"], errors="adjacent").fit(rows, rows["state_2"], cluster="local")
    plain = Model(covariates=["age"]).fit(rows.filter(pl.col("state_2") >= pl.col("state_1")), y_of(rows))
    with pytest.raises(rekka.InputError, match="forecasts from one rating alone"):
        plain.predict_proba(rows, histories=rows["bridge"])


def y_of(rows: pl.DataFrame) -> pl.Series:
    return rows.filter(pl.col("state_2") >= pl.col("state_1"))["state_2"]


def test_categories_are_columns_of_0_and_1(rows: pl.DataFrame) -> None:
    kind = pl.col("bridge").str.slice(1).cast(pl.Int64) % 3
    named = rows.with_columns(
        material=kind.replace_strict({0: "steel", 1: "oak", 2: "steel"}), oak=(kind == 1).cast(pl.Float64)
    )
    single = named.head(1).with_columns(bridge=pl.lit("alone"), material=pl.lit("oak"), oak=1.0)
    named, y = pl.concat([named, single]), [*rows["state_2"], None]
    options: dict[str, Any] = {"errors": "adjacent-common", "threads": 1, "scaling": "max"}
    given = {"histories": named["bridge"], "groups": named["bridge"]}
    model = Model(covariates=["age", "material"], effects={"material": [1, 2]}, **options).fit(named, y, **given)
    numbers = Model(covariates=["age", "oak"], effects={"oak": [1, 2]}, **options).fit(named, y, **given)
    assert model.covariates_ == ("age", "material: oak")
    assert model.log_likelihood_ == pytest.approx(numbers.log_likelihood_, abs=1e-9)
    np.testing.assert_allclose(model.coef_, numbers.coef_, atol=1e-7)
    again = Model.from_json(model.to_json())
    p = again.predict_proba(named, histories=named["bridge"])
    assert np.array_equal(p, model.predict_proba(named, histories=named["bridge"]))
    np.testing.assert_allclose(p, numbers.predict_proba(named, histories=named["bridge"]), atol=1e-8)
    with pytest.warns(UserWarning, match="no training row has iron"):
        model.predict_proba(named.with_columns(material=pl.lit("iron")))


def test_categories_without_elements_are_those_of_pairs(rows: pl.DataFrame) -> None:
    worse = rows.with_columns(pl.max_horizontal("state_1", "state_2").alias("state_2")).with_columns(
        material=pl.Series(np.resize(["steel", "oak"], len(rows)))
    )
    each = np.arange(len(worse)).astype(str)
    chained = Model(covariates=["age", "material"]).fit(worse, worse["state_2"], histories=each)
    plain = Model(covariates=["age", "material"]).fit(worse, worse["state_2"])
    assert chained.coding_ == plain.coding_
    assert np.array_equal(chained.coef_, plain.coef_)
