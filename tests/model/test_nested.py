"""Tests between nested models: against the formulas by hand, and what is refused."""

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rekka
from rekka.core.errors import BadOption

AGE, TRAFFIC = "age_at_inspection_1", "traffic_mean"


def fit(rows, *names, groups=None, **options):
    model = rekka.ExponentialHazardMarkovModel(covariates=list(names), **options)
    return model.fit(rows, rows["state_2"], groups=groups)


@pytest.fixture(scope="module")
def rows():
    return rekka.simulate_transitions(500, n_states=4, seed=2)


def test_a_joint_wald_test_is_that_of_all_coefficients_of_a_covariate(rows):
    model = fit(rows, AGE, TRAFFIC, groups=rows["bridge_id"])
    found = model.wald_tests()
    assert found["covariate"].to_list() == [AGE, TRAFFIC, "all covariates"]
    assert found["df"].to_list() == [3, 3, 6]
    for place, columns in enumerate(([1], [2], [1, 2])):
        here = [3 * state + column for state in range(3) for column in columns]
        b = np.column_stack([model.intercept_, model.coef_]).ravel()[here]
        statistic = b @ np.linalg.inv(model.covariance_[np.ix_(here, here)]) @ b
        assert found["chi_squared"][place] == pytest.approx(statistic, rel=1e-9)
        assert found["p"][place] == pytest.approx(stats.chi2.sf(statistic, len(here)), rel=1e-9)
    assert "clustered by" in str(found)


def test_it_does_not_depend_on_an_affine_scaling(rows):
    one, other = (fit(rows, AGE, TRAFFIC, scaling=name).wald_tests() for name in ("zscore", "minmax"))
    assert one["chi_squared"].to_numpy() == pytest.approx(other["chi_squared"].to_numpy(), rel=1e-6)


def test_a_coefficient_that_states_share_is_tested_once(rows):
    shared = fit(rows, AGE, shared={AGE: [[1, 2, 3]]}).wald_tests()
    assert shared["df"].to_list() == [1]
    model = fit(rows, AGE, TRAFFIC, effects={TRAFFIC: [2]})
    assert model.wald_tests()["df"].to_list() == [3, 1, 4]


def test_a_likelihood_ratio_is_twice_the_difference(rows):
    small, large = fit(rows, AGE), fit(rows, AGE, TRAFFIC)
    test = rekka.likelihood_ratio_test(small, large)
    statistic = 2 * (large.log_likelihood_ - small.log_likelihood_)
    assert test == (statistic, 3, pytest.approx(stats.chi2.sf(statistic, 3)))
    shared = fit(rows, AGE, shared={AGE: [[1, 2, 3]]})
    assert rekka.likelihood_ratio_test(shared, small).degrees_of_freedom == 2


def test_where_nothing_is_there_one_in_twenty_is_rejected():
    rejected = 0
    for seed in range(60):
        drawn = rekka.simulate_transitions(150, n_states=3, seed=seed)
        noise = pl.Series("noise", np.random.default_rng(seed).normal(size=len(drawn)))
        drawn = drawn.with_columns(noise)
        rejected += rekka.likelihood_ratio_test(fit(drawn, AGE), fit(drawn, AGE, "noise")).p_value < 0.05
    assert stats.binomtest(rejected, 60, 0.05).pvalue > 0.001


def test_a_table_of_models(rows):
    found = rekka.nested_models({"none": fit(rows), "age": fit(rows, AGE), "both": fit(rows, AGE, TRAFFIC)})
    assert found["parameters"].to_list() == [3, 6, 9]
    assert found["df"].to_list() == [None, 3, 3]
    aic = -2 * found["log_likelihood"] + 2 * found["parameters"]
    assert found["aic"].to_numpy() == pytest.approx(aic.to_numpy())
    assert str(found).startswith("500 rows; each model against the one above it")


@pytest.mark.parametrize(
    ("smaller", "larger", "message"),
    [
        ({"names": [AGE, TRAFFIC]}, {"names": [AGE]}, "has traffic_mean, and the larger one does not"),
        ({"names": [AGE]}, {"names": [AGE]}, "3 parameters, the second 3|6 parameters, the second 6"),
        ({"names": [AGE], "scaling": "boxcox"}, {"names": [AGE, TRAFFIC]}, "not affine"),
        ({"names": [AGE], "ridge": 1.0}, {"names": [AGE, TRAFFIC]}, "without a penalty"),
        (
            {"names": [AGE], "class_weight": "inverse_frequency"},
            {"names": [AGE, TRAFFIC]},
            "without class weights",
        ),
        (
            {"names": [AGE], "class_weight": "inverse_frequency", "groups": True},
            {"names": [AGE, TRAFFIC]},
            "without class weights",
        ),
        ({"names": [AGE], "clock": "start"}, {"names": [AGE, TRAFFIC]}, "with another clock: the values of age"),
        ({"names": [AGE], "n": 499}, {"names": [AGE, TRAFFIC]}, "other rows: 499 with 4 states, 500 with 4"),
        ({"names": [AGE], "turned": True}, {"names": [AGE, TRAFFIC]}, "values of age_at_inspection_1 differ"),
        (
            {"names": [AGE], "effects": {AGE: [1, 2]}},
            {"names": [AGE, TRAFFIC], "effects": {AGE: [2, 3]}},
            "age_at_inspection_1 acts on state 1, and in the larger one it does not",
        ),
        (
            {"names": [AGE]},
            {"names": [AGE, TRAFFIC], "shared": {AGE: [[1, 2, 3]]}},
            "shares coefficients that the smaller one does not",
        ),
    ],
)
def test_what_is_not_comparable_is_refused(rows, smaller, larger, message):
    def make(names, n=500, turned=False, groups=False, **options):
        own = rows.head(n)
        own = own.with_columns(pl.col(AGE) + 1.0) if turned else own
        return fit(own, *names, groups=own["bridge_id"] if groups else None, **options)

    with pytest.raises(BadOption, match=message):
        rekka.likelihood_ratio_test(make(**smaller), make(**larger))


def test_a_fit_that_is_no_maximum_is_refused(rows):
    with pytest.raises(BadOption, match="not certified"):
        rekka.likelihood_ratio_test(fit(rows, AGE, solver="lbfgs", max_iter=1), fit(rows, AGE, TRAFFIC))
    with pytest.raises(BadOption, match="at least two models"):
        rekka.nested_models({"one": fit(rows)})


def test_goodness_is_the_test_of_fit(rows):
    model = fit(rows, AGE)
    assert (
        model.goodness(rows, rows["state_2"], seed=3) == model.check_fit(rows, rows["state_2"], seed=3).fit_test_
    )


def test_the_scorer_is_minus_the_log_loss_and_leaves_out_what_the_fold_does_not_know(rows):
    model = fit(rows.filter(pl.col("state_2") < 4), AGE)
    assert model.n_states_ == 3
    known = rows.filter(pl.col("state_2") < 4)
    score = rekka.log_loss_scorer(model, rows, rows["state_2"])
    assert score == pytest.approx(-model.log_loss(known, known["state_2"]))
    worst = rows.filter(pl.col("state_2") == 4)
    assert np.isnan(rekka.log_loss_scorer(model, worst, worst["state_2"]))


def test_a_pipeline_of_arrays(rows):
    names = ["state_1", "interval_years", AGE, TRAFFIC]
    X, y = rows.select(names).to_numpy(), rows["state_2"].to_numpy()
    scale = ColumnTransformer([("pass", "passthrough", [0, 1]), ("scale", StandardScaler(), [2, 3])])
    pipeline = make_pipeline(scale, rekka.ExponentialHazardMarkovModel(None, start="x0", dt="x1", advance=[]))
    pipeline.fit(X, y)
    model = fit(rows, AGE, TRAFFIC, advance=[])
    assert pipeline[-1].log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-8)
    assert pipeline.predict_proba(X) == pytest.approx(model.predict_proba(rows), abs=1e-6)
    scores = cross_val_score(
        pipeline, X, y, groups=rows["bridge_id"].to_numpy(), scoring=rekka.log_loss_scorer, cv=GroupKFold(3)
    )
    assert np.isfinite(scores).all()
