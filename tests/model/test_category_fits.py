"""Categories in a fit: the same model as 0/1 columns made by hand, as msm's factors, in every kind of frame."""

import pickle
import subprocess
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import rekka
from rekka import ExponentialHazardMarkovModel as Model
from rekka.data.categories import CodingRules
from rekka.streaming import blocks
from rekka.streaming.any_size import LazyTable, code_table, fit_table, read_columns

AGE = "age_at_inspection_1"
NAMES = [AGE, "material", "interstate"]


def make(rows: int = 1500, seed: int = 3) -> pl.DataFrame:
    data = rekka.simulate_transitions(rows, n_states=3, seed=seed)
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["concrete", "steel", "timber"], rows, p=[0.6, 0.3, 0.1])
    return data.with_columns(material=pl.Series(kinds), interstate=pl.Series(rng.random(rows) < 0.3))


def by_hand(data: pl.DataFrame) -> pl.DataFrame:
    return data.with_columns(
        steel=(pl.col("material") == "steel").cast(pl.Float64),
        timber=(pl.col("material") == "timber").cast(pl.Float64),
        interstate=pl.col("interstate").cast(pl.Float64),
    )


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    return make()


@pytest.fixture(scope="module")
def model(data: pl.DataFrame) -> Model:
    return Model(covariates=NAMES).fit(data, data["state_2"], groups=data["bridge_id"])


def test_a_category_is_its_columns_of_0_and_1(data, model):
    plain = Model(covariates=[AGE, "steel", "timber", "interstate"])
    plain.fit(by_hand(data), data["state_2"], groups=data["bridge_id"])
    assert model.covariates_ == (AGE, "material: steel", "material: timber", "interstate: yes")
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-8)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.covariance_, plain.covariance_, rtol=1e-5, atol=1e-9)
    assert "material: relative to concrete" in str(model.summary())
    tests = model.wald_tests()
    assert tests["covariate"].to_list() == [AGE, "material", "interstate", "all covariates"]
    assert tests["df"].to_list() == [2, 4, 2, 8]


@pytest.mark.parametrize("scaling", ["max", "boxcox", "boxcox+zscore", "robust", None])
def test_no_scaling_touches_the_columns_of_a_category(data, scaling):
    fitted = Model(scaling, covariates=NAMES).fit(data, data["state_2"])
    x = np.column_stack([data[AGE].to_numpy(), np.eye(3)[np.arange(len(data)) % 3]])
    z = fitted.scaling_.transform(x)
    np.testing.assert_array_equal(z[:, 1:], x[:, 1:])
    np.testing.assert_allclose(fitted.scaling_.inverse(z), x, rtol=1e-9)
    again = Model.from_json(fitted.to_json())
    np.testing.assert_array_equal(again.predict_proba(data), fitted.predict_proba(data))
    assert again.coding_ == fitted.coding_
    assert again.to_json() == fitted.to_json()


def test_every_kind_of_frame_gives_the_same_fit(data, model):
    pandas = data.to_pandas()
    pandas["material"] = pandas["material"].astype("category")
    for frame in (pandas, data.to_arrow(), data.with_columns(pl.col("material").cast(pl.Categorical))):
        other = Model(covariates=NAMES).fit(frame, data["state_2"], groups=data["bridge_id"])
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(other.predict_proba(frame), model.predict_proba(data))
    query = Model(covariates=NAMES).fit(data.lazy(), "state_2", groups="bridge_id")
    np.testing.assert_array_equal(query.coef_, model.coef_)


def test_blocks_give_the_fit_of_rows_in_memory(monkeypatch, data):
    monkeypatch.setattr("rekka.streaming.any_size.WHOLE", 100)
    for scaling in ("zscore", "boxcox"):
        options = Model(scaling)._options()
        table = LazyTable("rows", data.lazy(), tuple(data.columns), len(data))
        reading = read_columns(table.columns, "state_1", "interval_years", NAMES, "state_2")
        reading, coding = code_table(table, reading, CodingRules())
        fit = fit_table(replace(table, query=coding.code(table.query)), reading, replace(options, coding=coding))
        held = Model(scaling, covariates=NAMES).fit(data, data["state_2"])
        np.testing.assert_allclose(fit.beta, held._fit.beta, rtol=1e-6, atol=1e-8)
        assert fit.scaling.to_dict()["plain"] == ["material: steel", "material: timber", "interstate: yes"]
    assert blocks.WHOLE > 100


def test_numbers_can_be_declared_categories(data):
    numbered = data.with_columns(route=pl.Series(np.arange(len(data)) % 3 + 1))
    fitted = Model(covariates=[AGE, "route"], categories=["route"]).fit(numbered, data["state_2"])
    assert fitted.covariates_ == (AGE, "route: 2", "route: 3")
    decimal = numbered.with_columns(pl.col("route").cast(pl.Float64))
    np.testing.assert_array_equal(fitted.predict_proba(decimal), fitted.predict_proba(numbered))
    with pytest.raises(rekka.InputError, match="categories names lane"):
        Model(covariates=[AGE], categories=["lane"]).fit(numbered, data["state_2"])


def test_unseen_and_missing_levels(data, model):
    strange = data.head(9).with_columns(material=pl.lit("brick"))
    with pytest.warns(UserWarning, match=r"no training row has brick \(9 rows\); taken as concrete"):
        given = model.predict_proba(strange)
    np.testing.assert_array_equal(given, model.predict_proba(strange.with_columns(material=pl.lit("concrete"))))
    strict = Model(covariates=NAMES, unseen="refuse").fit(data, data["state_2"])
    with pytest.raises(rekka.InputError, match="no training row has brick"):
        strict.predict(strange)
    gaps = data.with_columns(material=pl.when(pl.col(AGE) > 55).then("material"))
    with pytest.raises(rekka.InputError, match=r'material is missing in .* missing="level"'):
        Model(covariates=NAMES).fit(gaps, data["state_2"])
    level = Model(covariates=NAMES, missing="level").fit(gaps, data["state_2"])
    assert "material: missing" in level.covariates_ or level.coding_.categories[0].reference == "missing"
    level.predict(gaps)


def test_texts_that_are_no_categories_are_refused(data):
    with pytest.raises(rekka.InputError, match="bridge_id holds"):
        Model().fit(data, data["state_2"])
    with pytest.raises(rekka.InputError, match="units names material"):
        Model(covariates=NAMES, units={"material": 2}).fit(data, data["state_2"])


def test_effects_and_shared_take_a_category_or_a_term(data):
    fitted = Model(covariates=NAMES, effects={"material": [1]}, shared={"interstate: yes": [[1, 2]]})
    fitted.fit(data, data["state_2"])
    assert (fitted.coef_[1, 1:3] == 0).all()
    assert fitted.coef_[0, 3] == pytest.approx(fitted.coef_[1, 3])


def test_a_level_that_separates_is_named(data):
    stayed = (pl.col("state_1") == 2) & (pl.col("state_2") == 2) & (pl.col(AGE) > 40)
    kept = (pl.col("state_1") == 1) & (pl.col("state_2") == 2) & (pl.col(AGE) > 45)
    timber = data.with_columns(material=pl.when(stayed | kept).then(pl.lit("brick")).otherwise("material"))
    fitted = Model(covariates=NAMES).fit(timber, data["state_2"])
    assert fitted.certificate_.maximum_exists is False
    assert "state 2: no row with material = brick leaves it" in "; ".join(fitted.certificate_.reasons)


def test_pipelines_and_searches_take_frames_with_text(data):
    frame = data.select("state_1", "interval_years", *NAMES).to_pandas()
    search = GridSearchCV(
        make_pipeline(clone(Model(covariates=NAMES))),
        {"exponentialhazardmarkovmodel__scaling": ["zscore", "minmax"]},
        scoring=rekka.log_loss_scorer,
        cv=2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(frame, data["state_2"].to_numpy())
    assert np.isfinite(search.best_score_)


def test_a_scaler_says_what_to_do_with_text(data):
    with pytest.raises(rekka.InputError, match="material holds text, which is not scaled"):
        rekka.CovariateScaler().fit(data.select(AGE, "material"))


def test_a_coded_query_can_be_sent_to_a_cluster(data):
    table = LazyTable("rows", data.lazy(), tuple(data.columns), len(data))
    _, coding = code_table(
        table, read_columns(table.columns, "state_1", "interval_years", NAMES, "state_2"), CodingRules()
    )
    sent = pickle.loads(pickle.dumps(coding.code(data.lazy())))
    assert sent.collect().select(coding.terms).equals(coding.code(data.lazy()).collect().select(coding.terms))


SCRIPT = """
library(msm)
d <- read.csv(commandArgs(TRUE)[1])
d$material <- relevel(factor(d$material), ref = "concrete")
q <- rbind(c(0, .1, 0), c(0, 0, .1), c(0, 0, 0))
m <- msm(state ~ time, subject = id, data = d, qmatrix = q, covariates = ~ age + material, center = FALSE,
         control = list(fnscale = 500, reltol = 1e-15, maxit = 5000))
cat(sprintf("%.12g", c(m$minus2loglik, m$estimates, sqrt(diag(m$covmat)))), sep = " ")
"""


def test_msm_agrees_on_a_factor(msm, tmp_path):
    data = make(400, 7).with_columns(age=(pl.col(AGE) - 45) / 10)
    lines = ["id,time,state,age,material"]
    columns = data.select("state_1", "state_2", "interval_years", "age", "material")
    for row, (i, j, dt, age, kind) in enumerate(columns.rows()):
        lines += [f"{row},0,{i},{age!r},{kind}", f"{row},{dt!r},{j},{age!r},{kind}"]
    file, script = tmp_path / "pairs.csv", tmp_path / "fit.R"
    file.write_text("\n".join(lines))
    script.write_text(SCRIPT)
    done = subprocess.run([msm, str(script), str(file)], capture_output=True, text=True, check=True)
    theirs = np.array([float(x) for x in done.stdout.split()])
    ours = Model(covariates=["age", "material"], clock="start").fit(data, data["state_2"])
    assert ours.certificate_.certified
    assert -2 * ours.log_likelihood_ == pytest.approx(theirs[0], rel=1e-8)
    coefficients = np.column_stack([ours.intercept_, ours.coef_]).T.ravel()
    errors = np.sqrt(np.diag(ours.covariance_)).reshape(2, 4).T.ravel()
    np.testing.assert_allclose(coefficients, theirs[1:9], atol=1e-4)
    np.testing.assert_allclose(errors, theirs[9:17], rtol=1e-3)
