import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import rekka
from rekka.model.tables import coefficient_table
from rekka.simulation.rows import draw_ends

DATA = rekka.simulate_transitions(900, n_states=4, seed=8)
X, Y, BRIDGE = DATA.drop("state_2", "bridge_id"), DATA["state_2"], DATA["bridge_id"].to_numpy()
AFFINE = ("max", "minmax", "zscore", None)


def fit(*args, groups=None, sample_weight=None, **options):
    model = rekka.ExponentialHazardMarkovModel(*args, **options)
    return model.fit(X, Y, groups=groups, sample_weight=sample_weight)


@pytest.fixture(scope="module")
def model():
    return fit(units={"age_at_inspection_1": 10, "traffic_mean": 1000})


def test_affine_scalings_are_one_model():
    """Log-likelihood, coefficients, standard errors and predictions to 1e-8 relative."""
    one, *others = (fit(s, groups=BRIDGE) for s in (*AFFINE, StandardScaler()))
    for other in others:
        assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-12)
        np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-8)
        np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=1e-8)
        np.testing.assert_allclose(np.diag(other.covariance_), np.diag(one.covariance_), rtol=1e-8)
        np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), rtol=1e-9)
        assert other.outcome_.iterations == one.outcome_.iterations
        assert other.coefficient_scale_ == "native"


@pytest.mark.parametrize("nasty", ["offset", "tiny", "huge", "twin", "outlier"])
def test_affine_scalings_agree_on_nasty_covariates(nasty):
    rng = np.random.default_rng(1)
    z = rng.normal(size=len(X))
    twin = X["age_at_inspection_1"].to_numpy() + 1e-3 * z
    column = {"offset": 1e6 + z, "tiny": 1e-12 * z, "huge": 1e8 * z, "twin": twin, "outlier": np.r_[1e4, z[1:]]}[
        nasty
    ]
    frame = X.with_columns(nasty=column)
    one, *others = (rekka.ExponentialHazardMarkovModel(s).fit(frame, Y) for s in ("zscore", "minmax", None))
    for other in others:
        assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-8)
        np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6)
        np.testing.assert_allclose(np.diag(other.covariance_), np.diag(one.covariance_), rtol=1e-6)


def at_middle(model):
    """The covariates with the age at the middle of each interval, as the model takes them."""
    age = pl.col("age_at_inspection_1") + pl.col("interval_years") / 2
    return X.with_columns(age)[list(model.covariates_)].to_numpy()


def test_native_and_scaled_coefficients_predict_alike(model):
    rows = at_middle(model)
    eta = model.intercept_ + rows @ model.coef_.T
    z = model.scaling_.transform(rows)
    np.testing.assert_allclose(eta, model.scaled_intercept_ + z @ model.scaled_coef_.T, rtol=1e-10)
    p = rekka.transition_probabilities(np.exp(eta), X["interval_years"].to_numpy())
    np.testing.assert_allclose(
        model.predict_proba(X), p[np.arange(len(X)), X["state_1"].to_numpy() - 1], rtol=1e-9
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("variance", [-1.0, 0.0])
def test_a_point_without_variances_is_shown_without_a_warning(model, variance):
    """As where a solver stopped on a slope: the user sees no message of numpy."""
    inference = replace(model._fit.inference, covariance=variance * model._fit.inference.covariance)
    shown = coefficient_table(replace(model._fit, inference=inference), None, 0.95)
    assert not (shown["se"].to_numpy() > 0).any()


@pytest.mark.parametrize("scaling", ["boxcox", PowerTransformer()])
def test_other_scalings_name_their_units(scaling):
    model = fit(scaling)
    assert model.certificate_.certified
    assert model.coefficient_scale_ == ("boxcox" if scaling == "boxcox" else "PowerTransformer")
    np.testing.assert_allclose(model.coef_, model.scaled_coef_, rtol=1e-10)
    assert set(model.summary()["scale"]) == {model.coefficient_scale_}


def test_scores(model):
    p = model.predict_proba(X)
    assert p.shape == (900, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, p.argmax(axis=1) + 1)
    assert model.score(X, Y) == np.mean(predicted == Y.to_numpy())
    assert model.log_loss(X, Y) == pytest.approx(-model.log_likelihood_ / 900)
    weight = np.arange(900.0)
    observed = p[np.arange(900), Y.to_numpy() - 1]
    assert model.log_loss(X, Y, weight) == pytest.approx(-np.average(np.log(observed), weights=weight))


def test_log_loss_is_exact_where_the_probability_underflows():
    model = fit(covariates=[])
    far = pl.DataFrame({"state_1": [1], "interval_years": [1e5]})
    assert model.log_loss(far, [1]) == pytest.approx(np.exp(model.intercept_[0]) * 1e5)


def test_covariance_is_the_inverse_of_the_numerical_hessian(model):
    rows = at_middle(model)
    theta = np.column_stack([model.intercept_, model.coef_]).ravel()
    step = 1e-4 * np.sqrt(np.diag(model.covariance_))

    def log_likelihood(values):
        beta = values.reshape(3, 5)
        eta = beta[:, 0] + rows @ beta[:, 1:].T
        p = rekka.transition_probabilities(np.exp(eta), X["interval_years"].to_numpy())
        return np.log(p[np.arange(900), X["state_1"].to_numpy() - 1, Y.to_numpy() - 1]).sum()

    block = [0, 1, 4]  # state 1: intercept, age, traffic
    hessian = np.empty((3, 3))
    for r, a in enumerate(block):
        for c, b in enumerate(block):
            signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            bump = np.zeros((4, 15))
            for s, (u, v) in enumerate(signs):
                bump[s, a] += 50 * u * step[a]
                bump[s, b] += 50 * v * step[b]
            values = [log_likelihood(theta + d) for d in bump]
            hessian[r, c] = (values[0] - values[1] - values[2] + values[3]) / (1e4 * step[a] * step[b])
    expected = np.linalg.inv(model.covariance_)[np.ix_(block, block)]
    np.testing.assert_allclose(-hessian, expected, rtol=1e-2)


def test_clustered_errors_are_the_sandwich():
    """Against the sum of outer products of numerical bridge scores, for a model without covariates."""
    model = fit(covariates=[], groups=BRIDGE)
    plain = fit(covariates=[])
    theta, dt = np.exp(model.intercept_), X["interval_years"].to_numpy()
    i, j = X["state_1"].to_numpy() - 1, Y.to_numpy() - 1
    score = np.empty((900, 3))
    for k in range(3):
        bump = np.exp(1e-5 * np.eye(3)[k])
        up, down = (rekka.transition_probabilities(theta * b, dt)[np.arange(900), i, j] for b in (bump, 1 / bump))
        score[:, k] = (np.log(up) - np.log(down)) / 2e-5
    sums = np.array([score[b == BRIDGE].sum(axis=0) for b in np.unique(BRIDGE)])
    G = len(sums)
    sandwich = plain.covariance_ @ (sums.T @ sums * G / (G - 1)) @ plain.covariance_
    np.testing.assert_allclose(model.covariance_, sandwich, rtol=1e-4)
    assert f"clustered by {G} groups" in model.summary().title


def test_weights_count_rows():
    double = rekka.ExponentialHazardMarkovModel().fit(pl.concat([X, X.head(300)]), pl.concat([Y, Y.head(300)]))
    weight = np.r_[np.full(300, 2.0), np.ones(600)]
    weighted = fit(sample_weight=weight)
    assert weighted.log_likelihood_ == pytest.approx(double.log_likelihood_)
    np.testing.assert_allclose(weighted.coef_, double.coef_, rtol=1e-6)
    half = rekka.ExponentialHazardMarkovModel().fit(X.head(450), Y.head(450))
    np.testing.assert_allclose(fit(sample_weight=np.r_[np.ones(450), np.zeros(450)]).coef_, half.coef_, rtol=1e-6)


def test_rows_that_start_in_the_last_state_change_nothing(model):
    """They stay there with certainty: log-likelihood 0, no information, but a prediction."""
    last = X.head(7).with_columns(state_1=4)
    more = rekka.ExponentialHazardMarkovModel(None).fit(
        pl.concat([X, last], how="vertical_relaxed"), [*Y, *[4] * 7]
    )
    assert more.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)
    np.testing.assert_allclose(more.coef_, model.coef_, rtol=1e-7)
    np.testing.assert_array_equal(model.predict_proba(last), [[0, 0, 0, 1]] * 7)
    assert model.log_loss(last, [4] * 7) == 0


def test_class_weights_balance_the_transitions():
    balanced = fit(class_weight="inverse_frequency")
    pair = X["state_1"].to_numpy() * 10 + Y.to_numpy()
    kinds, member, counts = np.unique(pair, return_inverse=True, return_counts=True)
    same = fit(sample_weight=(900 / (len(kinds) * counts))[member])
    np.testing.assert_allclose(balanced.coef_, same.coef_, rtol=1e-8)


def test_ridge_shrinks_slopes_alike_under_every_affine_scaling():
    free, *held = (fit("zscore"), *(fit(s, ridge=20.0) for s in AFFINE))
    for model in held:
        np.testing.assert_allclose(model.coef_, held[0].coef_, rtol=1e-7)
        assert model.aic_ == pytest.approx(held[0].aic_)
    sd = X[list(free.covariates_)].to_numpy().std(axis=0)
    assert ((held[0].coef_ * sd) ** 2).sum() < ((free.coef_ * sd) ** 2).sum()
    assert held[0].log_likelihood_ < free.log_likelihood_
    df = (held[0].aic_ + 2 * held[0].log_likelihood_) / 2
    assert 3 < df < 15
    nothing = fit(ridge=1e9)
    np.testing.assert_allclose(nothing.intercept_, fit(covariates=[]).intercept_, rtol=1e-4)


@pytest.mark.parametrize(
    ("gradient", "likelihood"), [("exact", "exact"), ("numeric", "exact"), ("numeric", "paper")]
)
def test_lbfgs_comes_close_with_zscore(gradient, likelihood, model):
    other = fit(solver="lbfgs", gradient=gradient, likelihood=likelihood)
    assert other.converged_
    assert other.log_likelihood_ <= model.log_likelihood_
    assert other.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=0.05)
    again = fit(solver="lbfgs", gradient=gradient, likelihood=likelihood)
    np.testing.assert_array_equal(again.coef_, other.coef_)  # the seed is reset before each fit
    if gradient == "numeric":
        assert other.outcome_.evaluations > 15 * other.outcome_.iterations


def test_lbfgs_with_constraints_and_ridge_finds_newtons_maximum():
    options = {"effects": {"bridge_length": [1]}, "shared": {"traffic_mean": [[1, 2, 3]]}, "ridge": 2.0}
    newton, other = fit(**options), fit(solver="lbfgs", **options)
    np.testing.assert_allclose(other.coef_, newton.coef_, rtol=0.02, atol=1e-6)
    assert (newton.coef_[1:, 1] == 0).all()
    np.testing.assert_allclose(newton.coef_[:, 3], newton.coef_[0, 3], rtol=1e-12)


def test_model_selection_by_bridge():
    grid = {"scaling": ["max", "zscore", "boxcox"], "ridge": [0.0, 1.0]}
    search = GridSearchCV(
        rekka.ExponentialHazardMarkovModel(n_states=4), grid, cv=GroupKFold(3), scoring="neg_log_loss"
    )
    search.fit(X, Y, groups=BRIDGE)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    result = cross_validate(
        rekka.ExponentialHazardMarkovModel(n_states=4), X, Y, cv=GroupKFold(3), groups=BRIDGE, error_score="raise"
    )
    assert (result["test_score"] > 0.4).all()
    pandas = cross_validate(
        rekka.ExponentialHazardMarkovModel(n_states=4),
        X.to_pandas(),
        Y.to_pandas(),
        groups=BRIDGE,
        cv=GroupKFold(3),
    )
    np.testing.assert_allclose(pandas["test_score"], result["test_score"])


def test_clone_and_pickle(model):
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_extra_columns_and_order_do_not_matter_for_prediction(model):
    np.testing.assert_array_equal(model.predict_proba(DATA[DATA.columns[::-1]]), model.predict_proba(X))


def test_column_names_are_options():
    frame = X.rename({"state_1": "from", "interval_years": "years"})
    other = rekka.ExponentialHazardMarkovModel(start="from", dt="years", covariates=["traffic_mean"]).fit(frame, Y)
    np.testing.assert_array_equal(other.coef_, fit(covariates=["traffic_mean"]).coef_)
    assert other.covariates_ == ("traffic_mean",)


def test_unfitted_model_says_so():
    for call in ("predict", "hazards"):
        with pytest.raises(NotFittedError):
            getattr(rekka.ExponentialHazardMarkovModel(), call)(X)
    for call in ("summary", "to_json"):
        with pytest.raises(NotFittedError):
            getattr(rekka.ExponentialHazardMarkovModel(), call)()


def test_summary_is_a_frame_in_engineers_units(model):
    table = model.summary()
    assert isinstance(table, pl.DataFrame)
    assert table.columns == [
        "state", "term", "estimate", "se", "z", "p", "ci_low", "ci_high", "unit", "hazard_ratio", "hr_low", "hr_high", "scale",
    ]  # fmt: skip
    age = table.row(by_predicate=(pl.col("state") == 2) & (pl.col("term") == "age_at_inspection_1"), named=True)
    assert age["estimate"] == model.coef_[1, 0]
    assert age["se"] == pytest.approx(np.sqrt(model.covariance_[6, 6]))
    assert age["hazard_ratio"] == pytest.approx(np.exp(10 * age["estimate"]))
    assert age["unit"] == 10
    assert age["p"] == pytest.approx(2 * stats.norm.sf(abs(age["estimate"] / age["se"])))
    assert age["ci_high"] - age["ci_low"] == pytest.approx(2 * 1.959963985 * age["se"])
    narrow = model.summary(level=0.5)
    assert (narrow["ci_high"] - narrow["ci_low"] < table["ci_high"] - table["ci_low"]).all()
    text = str(table)
    assert text.count("\n") == 17
    assert "native" in text
    assert "AIC" in text


def test_hazards_have_delta_method_intervals(model):
    table = model.hazards(X.head(2))
    assert len(table) == 6
    x = np.r_[1.0, X[list(model.covariates_)].row(1)]
    se = np.sqrt(x @ model.covariance_[5:10, 5:10] @ x)
    row = table.row(by_predicate=(pl.col("row") == 1) & (pl.col("state") == 2), named=True)
    assert row["hazard_se"] == pytest.approx(row["hazard"] * se)
    assert row["years"] == pytest.approx(1 / row["hazard"])
    assert row["years_se"] == pytest.approx(se / row["hazard"])
    assert row["years_high"] == pytest.approx(row["years"] * np.exp(1.959963985 * se))
    assert row["years_low"] < row["years"] < row["years_high"]
    boxcox = fit("boxcox").hazards(X.head(2))
    assert (boxcox["hazard_se"] > 0).all()


def test_threads_change_nothing():
    data = rekka.simulate_transitions(12_000, seed=2)
    x, y = data.drop("state_2", "bridge_id"), data["state_2"]
    one, two = (rekka.ExponentialHazardMarkovModel(threads=t).fit(x, y) for t in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.covariance_, two.covariance_)


def test_coverage_of_intervals():
    """95 % intervals for the hazards of a model without covariates: between 90 and 99 % of 60 samples."""
    theta = np.array([0.15, 0.1, 0.2])
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(60):
        start, dt = rng.integers(0, 3, 300), rng.uniform(2, 6, 300)
        end = draw_ends(np.tile(theta, (300, 1)), dt, start, rng)
        sample = rekka.ExponentialHazardMarkovModel().fit(
            pl.DataFrame({"state_1": start + 1, "interval_years": dt}), end + 1
        )
        table = sample.summary()
        hits.append((table["ci_low"].to_numpy() < np.log(theta)) & (np.log(theta) < table["ci_high"].to_numpy()))
    assert 0.90 < np.mean(hits) < 0.99


class Framed(rekka.ExponentialHazardMarkovModel):
    """The model behind scikit-learn's nameless arrays: every row starts in state 1, one year passes, and the
    labels in order are the end states. So the checks can see how it fits, predicts, weighs and is copied."""

    def fit(self, X, y, sample_weight=None, groups=None):
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.seen_, end = np.unique(y, return_inverse=True)
        if len(self.seen_) < 2:
            raise ValueError("only one class")
        super().fit(self.frame(X), end + 1, sample_weight, groups)
        self.n_features_in_, self.classes_ = X.shape[1], self.seen_
        del self.feature_names_in_
        return self

    def predict_proba(self, X):
        check_is_fitted(self)
        return super().predict_proba(self.frame(validate_data(self, X, reset=False)))

    def frame(self, X):
        columns = {f"x{c}": X[:, c].astype(float) for c in range(X.shape[1])}
        return pl.DataFrame({"state_1": np.ones(len(X), int), "interval_years": np.ones(len(X)), **columns})


NOT_FOR_FRAMED = {
    "check_all_zero_sample_weights_error": "refused with the model's own words",
    "check_class_weight_classifiers": "class_weight is by transition, not by label",
    "check_classifiers_one_label_sample_weights": "the model needs two states",
    "check_non_transformer_estimators_n_iter": "iterations are in outcome_, with the rest of the solver's account",
    "check_sample_weight_equivalence_on_dense_data": "leaves fewer rows than columns: collinear, refused by design",
}
APPLY_TO_THE_MODEL = {
    "check_decision_proba_consistency", "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable", "check_estimator_repr", "check_estimator_tags_renamed",
    "check_estimators_partial_fit_n_features", "check_estimators_unfitted", "check_fit1d",
    "check_get_params_invariance", "check_mixin_order", "check_no_attributes_set_in_init",
    "check_parameters_default_constructible", "check_set_params", "check_supervised_y_no_nan",
    "check_valid_tag_types",
}  # fmt: skip
OPTIONAL = "check_array_api_input"  # needs a backend of its own


def checks(estimator, names=None):
    """scikit-learn's checks of an estimator, all or the named ones; a listed failure must fail."""
    found = []
    for one, check in estimator_checks_generator(estimator, legacy=True, mark=None):
        name = check.func.__name__
        reason = NOT_FOR_FRAMED.get(name)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason and names is None else []
        if name != OPTIONAL and (names is None or name in names):
            found.append(pytest.param(one, check, marks=marks, id=f"{name}{check.keywords or ''}"))
    return found


# The others need an array without names, which the model refuses; they run behind Framed.
@pytest.mark.parametrize(("estimator", "check"), checks(rekka.ExponentialHazardMarkovModel(), APPLY_TO_THE_MODEL))
def test_scikit_learn_checks_of_the_model(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("estimator", "check"), checks(Framed(ridge=1.0)))
def test_scikit_learn_checks_behind_arrays(estimator, check):
    check(estimator)


def test_one_cluster_has_no_standard_errors():
    model = fit(covariates=[], groups=np.zeros(len(BRIDGE)))
    assert np.isnan(model.covariance_).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(fit(covariates=[], groups=np.arange(len(BRIDGE)) % 2).covariance_).all()
