import json

import numpy as np
import pytest
from scipy import stats
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PowerTransformer, RobustScaler, StandardScaler

from rekka.errors import BadOption, OutsideTrainingRange, ScalingError
from rekka.scaling import METHODS, fit_scaling, scaling_from_dict

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.gamma(2, 10, 80), RNG.normal(5, 30, 80), np.exp(RNG.normal(9, 1, 80))])
NAMES = ("age", "offset", "traffic")


@pytest.mark.parametrize("method", [*METHODS, None])
class TestEveryOperator:
    def test_constant_column_becomes_zero(self, method):
        x = X.copy()
        x[:, 1] = 7.0
        z = fit_scaling(method, x, NAMES).transform(x)
        if method is not None:
            assert (z[:, 1] == 0).all()
        assert np.isfinite(z).all()

    def test_order_survives(self, method):
        z = fit_scaling(method, X, NAMES).transform(X)
        for raw, scaled in zip(X.T, z.T, strict=True):
            np.testing.assert_array_equal(np.argsort(raw), np.argsort(scaled))

    def test_rows_do_not_see_each_other(self, method):
        fitted = fit_scaling(method, X, NAMES)
        np.testing.assert_allclose(fitted.transform(X)[5:6], fitted.transform(X[5:6]), rtol=1e-14)

    def test_dict_round_trips_through_json(self, method):
        fitted = fit_scaling(method, X, NAMES)
        again = scaling_from_dict(json.loads(json.dumps(fitted.to_dict())))
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
        assert again.to_dict() == fitted.to_dict()

    def test_affine_form_is_the_transform(self, method):
        fitted = fit_scaling(method, X, NAMES)
        affine = fitted.affine()
        assert (affine is None) == (method == "boxcox")
        if affine is not None:
            offset, factor = affine
            np.testing.assert_allclose((X - offset) * factor, fitted.transform(X), rtol=1e-12, atol=1e-12)


def test_operators_are_the_papers():
    max_, minmax, zscore = (fit_scaling(m, X, NAMES).transform(X) for m in ("max", "minmax", "zscore"))
    np.testing.assert_array_equal(max_, X / X.max(axis=0))
    np.testing.assert_array_equal(minmax, (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)))
    np.testing.assert_allclose(zscore.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(zscore.std(axis=0, ddof=0), 1)


def test_boxcox_shifts_to_one_and_takes_the_profile_likelihood_exponent():
    fitted = fit_scaling("boxcox", X, NAMES)
    shift = np.maximum(0, 1 - X.min(axis=0))
    for c in range(3):
        theirs, exponent = stats.boxcox(X[:, c] + shift[c])
        assert fitted.to_dict()["exponent"][c] == exponent
        np.testing.assert_allclose(fitted.transform(X)[:, c], theirs, rtol=1e-12)


def test_boxcox_refuses_a_value_outside_its_range():
    fitted = fit_scaling("boxcox", np.arange(10.0)[:, None], ("bridge_length",))
    with pytest.raises(OutsideTrainingRange) as caught:
        fitted.transform(np.array([[2.0], [-3.0]]))
    assert str(caught.value) == (
        "boxcox cannot transform bridge_length = -3.0 (row 1): fitted on 0.0 and above, shift 1.0."
    )
    assert (caught.value.covariate, caught.value.value, caught.value.row) == ("bridge_length", -3.0, 1)


def test_boxcox_that_degenerates_is_a_failure_with_its_reason(monkeypatch):
    monkeypatch.setattr(stats, "boxcox", lambda x: (np.zeros_like(x), -60.0))
    with pytest.raises(ScalingError, match="boxcox turns age into a column without spread"):
        fit_scaling("boxcox", X[:, :1], ("age",))


def test_max_refuses_a_maximum_of_zero_or_below():
    with pytest.raises(ScalingError, match=r"that of depth is -1.0\. Use zscore or minmax"):
        fit_scaling("max", np.array([[-3.0], [-1.0]]), ("depth",))


@pytest.mark.parametrize(
    "scaler",
    [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), MinMaxScaler(),
     MinMaxScaler((-2, 5)), MaxAbsScaler(), RobustScaler(), RobustScaler(with_centering=False)],
    ids=str,
)  # fmt: skip
def test_scikit_learns_affine_scalers_are_known(scaler):
    fitted = fit_scaling(scaler, X, NAMES)
    offset, factor = fitted.affine()
    np.testing.assert_allclose((X - offset) * factor, fitted.transform(X), rtol=1e-10, atol=1e-12)
    assert not hasattr(scaler, "scale_")  # a clone was fitted


def test_other_transformers_stay_in_their_own_units():
    assert fit_scaling(PowerTransformer(), X, NAMES).affine() is None
    assert fit_scaling(MinMaxScaler(clip=True), X, NAMES).affine() is None


def test_foreign_transformer_has_no_json():
    with pytest.raises(BadOption, match="A model scaled by StandardScaler cannot be written as JSON"):
        fit_scaling(StandardScaler(), X, NAMES).to_dict()


def test_a_transformer_that_changes_the_columns_is_refused():
    class Widen:
        def fit(self, x):
            return self

        def transform(self, x):
            return np.hstack([x, x])

    with pytest.raises(ScalingError, match=r"Widen turned 3 covariates into shape \(80, 6\)"):
        fit_scaling(Widen(), X, NAMES).transform(X)


def test_unknown_scaling_names_the_choices():
    with pytest.raises(BadOption, match=r"scaling is 'zscor'; it can be max, minmax.*Did you mean zscore\?"):
        fit_scaling("zscor", X, NAMES)
