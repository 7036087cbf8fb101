"""One harness for every operator: whatever is in the registry is tested by existing."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_cases import EVERY, HARD, NAMES, X

from rekka.core.errors import ModelFileError, OutsideTrainingRange, ScalingError
from rekka.scaling.registry import fit_scaling, is_affine, name_method
from rekka.scaling.serial import read_scaling, scaling_to_json

GOLDEN = X * 0.98 + 0.6  # other rows, within every operator's reach


def bounded(low, high, **more):
    return st.lists(st.floats(low, high, **more), min_size=1, max_size=25)


COLUMNS = st.one_of(
    bounded(0.0, 1e5),
    bounded(-50.0, 50.0, width=16),  # ties
    bounded(1e6, 1e6 + 20.0),  # far from zero
    st.lists(st.sampled_from([0.0, 1.0, 7.0]), min_size=1, max_size=25),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12),  # anything
)


def in_order(raw, scaled):
    """No two rows change places; equal stays equal."""
    order = np.argsort(raw, kind="stable")
    with np.errstate(over="ignore"):
        return bool(
            (np.diff(scaled[order]) >= 0).all() and (np.diff(scaled[order])[np.diff(raw[order]) == 0] == 0).all()
        )


def attempt(action, *arguments):
    """What an action returns, or the error it raises."""
    try:
        return action(*arguments), None
    except ScalingError as error:
        return None, error


@pytest.mark.parametrize("method", EVERY)
class TestEveryOperator:
    def test_constant_column_becomes_zero_on_any_row(self, method):
        x = X.copy()
        for constant in (7.0, 0.0, -3.3, 0.1, 1e300):
            x[:, 1] = constant
            fitted = fit_scaling(method, x, NAMES)
            z = fitted.transform(x)
            assert (z[:, 1] == 0).all()
            assert np.isfinite(z).all()
            other = x.copy()
            other[:, 1] = np.linspace(-1e9, 1e9, len(x))
            assert (fitted.transform(other)[:, 1] == 0).all()
            assert (fitted.inverse(z)[:, 1] == constant).all()

    def test_order_survives(self, method):
        z = fit_scaling(method, X, NAMES).transform(X)
        for raw, scaled in zip(X.T, z.T, strict=True):
            np.testing.assert_array_equal(np.argsort(raw), np.argsort(scaled))

    def test_rows_do_not_see_each_other(self, method):
        fitted = fit_scaling(method, X, NAMES)
        one_by_one = np.vstack([fitted.transform(row[None]) for row in GOLDEN])
        np.testing.assert_allclose(fitted.transform(GOLDEN), one_by_one, rtol=1e-14)
        np.testing.assert_array_equal(fitted.transform(GOLDEN[::-1]), fitted.transform(GOLDEN)[::-1])

    def test_columns_do_not_see_each_other(self, method):
        together = fit_scaling(method, X, NAMES).transform(X)
        apart = [fit_scaling(method, X[:, [c]], NAMES[c : c + 1]).transform(X[:, [c]]) for c in range(3)]
        np.testing.assert_array_equal(together, np.hstack(apart))

    def test_only_training_rows_are_looked_at(self, method):
        fitted = fit_scaling(method, X, NAMES)
        before = fitted.to_dict()
        fitted.transform(GOLDEN)
        assert fitted.to_dict() == before
        assert fit_scaling(method, X.copy(), list(NAMES)) == fitted
        assert fit_scaling(method, X + 1.0, NAMES) != fitted

    def test_input_is_not_modified_and_may_be_read_only(self, method):
        x = X.copy()
        x[:, 1] = 4.0
        before = x.copy()
        x.flags.writeable = False
        fitted = fit_scaling(method, x, NAMES)
        z = fitted.transform(x)
        z.flags.writeable = False
        fitted.inverse(z)
        np.testing.assert_array_equal(x, before)

    def test_memory_layout_does_not_matter(self, method):
        fitted = fit_scaling(method, X, NAMES)
        wide = np.repeat(X, 2, axis=1)[:, ::2]
        for x in (np.asfortranarray(X), wide):
            assert fit_scaling(method, x, NAMES) == fitted
            np.testing.assert_allclose(fitted.transform(x), fitted.transform(X), rtol=1e-14)

    def test_inverse_undoes(self, method):
        fitted = fit_scaling(method, X, NAMES)
        for x in (X, GOLDEN):
            np.testing.assert_allclose(fitted.inverse(fitted.transform(x)), x, rtol=1e-9)

    def test_dict_and_json_are_exact(self, method):
        fitted = fit_scaling(method, X, NAMES)
        text = scaling_to_json(fitted)
        assert json.loads(text)["scaling"] == fitted.to_dict()
        again = read_scaling(text).scaling
        assert again == fitted
        assert again.method == fitted.method
        assert again.to_dict() == fitted.to_dict()
        np.testing.assert_array_equal(again.transform(GOLDEN), fitted.transform(GOLDEN))
        np.testing.assert_array_equal(again.inverse(fitted.transform(X)), fitted.inverse(fitted.transform(X)))
        assert scaling_to_json(again) == text

    def test_truncated_json_is_refused(self, method):
        text = scaling_to_json(fit_scaling(method, X, NAMES))
        for length in range(0, len(text), max(1, len(text) // 40)):
            with pytest.raises(ModelFileError, match="This is not a rekka scaling of version 1"):
                read_scaling(text[:length])

    def test_copies_are_equal(self, method):
        fitted = fit_scaling(method, X, NAMES)
        for again in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
            assert again == fitted
            assert hash(again) == hash(fitted)

    def test_affine_form_is_the_transform(self, method):
        x = X.copy()
        x[:, 0] = 3.0
        for rows in (X, x):
            fitted = fit_scaling(method, rows, NAMES)
            affine = fitted.affine()
            assert (affine is not None) == is_affine(method)
            if affine is not None:
                offset, factor = affine
                np.testing.assert_allclose(
                    (rows - offset) * factor, fitted.transform(rows), rtol=1e-12, atol=1e-12
                )

    def test_the_name_is_kept(self, method):
        assert fit_scaling(method, X, NAMES).method == method == name_method(method)

    def test_no_covariates(self, method):
        fitted = fit_scaling(method, np.empty((5, 0)), ())
        assert fitted.transform(np.empty((3, 0))).shape == (3, 0)
        assert fitted.inverse(np.empty((3, 0))).shape == (3, 0)
        assert read_scaling(scaling_to_json(fitted)).scaling == fitted

    def test_no_rows_to_transform(self, method):
        assert fit_scaling(method, X, NAMES).transform(np.empty((0, 3))).shape == (0, 3)

    def test_one_row_is_constant(self, method):
        fitted = fit_scaling(method, X[:1], NAMES)
        assert (fitted.transform(X) == 0).all()
        np.testing.assert_array_equal(fitted.inverse(np.zeros((1, 3))), X[:1])

    def test_no_training_rows_are_refused(self, method):
        with pytest.raises(ScalingError, match="no training rows"):
            fit_scaling(method, np.empty((0, 3)), NAMES)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_what_is_not_a_number_is_refused_by_name(self, method, value):
        x = X.copy()
        x[7, 2] = value
        with pytest.raises(ScalingError, match="traffic") as at_fit:
            fit_scaling(method, x, NAMES)
        assert at_fit.value.covariate == "traffic"
        fitted = fit_scaling(method, X, NAMES)
        z, error = attempt(fitted.transform, x)
        if error is None:  # some curves level off, and take infinity
            assert np.isfinite(z).all()
            assert not np.isnan(value)
        else:
            assert isinstance(error, OutsideTrainingRange)
            assert (error.covariate, error.row) == ("traffic", 7)
            assert f"traffic = {error.value}" in str(error)
            np.testing.assert_equal(error.raw, value)

    @pytest.mark.parametrize("name", HARD)
    def test_hard_columns_are_fitted_well_or_refused_by_name(self, method, name):
        x = np.asarray(HARD[name], dtype=float)[:, None]
        fitted, error = attempt(fit_scaling, method, x, ("span",))
        if fitted is None:
            assert "span" in str(error)
            assert error.covariate == "span"
            if not str(error).startswith("After "):  # where a later link speaks, the range is what it was given
                assert (error.low, error.high) == (x.min(), x.max())
        else:
            z = fitted.transform(x)
            assert np.isfinite(z).all()
            assert z.min() < z.max()
            assert in_order(x[:, 0], z[:, 0])

    @settings(max_examples=20, deadline=None)
    @given(column=COLUMNS)
    def test_any_column_is_fitted_well_or_refused(self, method, column):
        x = np.asarray(column)[:, None]
        fitted, error = attempt(fit_scaling, method, x, ("span",))
        if fitted is None:
            assert error.covariate == "span"
            assert x.min() < x.max()
            return
        z = fitted.transform(x)
        assert np.isfinite(z).all()
        assert in_order(x[:, 0], z[:, 0])
        assert (z.min() < z.max()) == (x.min() < x.max())
        again = read_scaling(scaling_to_json(fitted)).scaling
        np.testing.assert_array_equal(again.transform(x), z)
        np.testing.assert_allclose(fitted.transform(x[-1:]), z[-1:], rtol=1e-14)


def test_boxcox_does_not_take_zero_though_its_formula_has_a_value_there():
    fitted = fit_scaling("boxcox", np.array([[1.0], [8.0], [9.0], [10.0], [10.5]]), ("age",))
    assert fitted.exponent[0] > 0
    assert (fitted.shift[0], fitted.transform(np.array([[1e-9]])).size) == (0.0, 1)
    with pytest.raises(OutsideTrainingRange, match="boxcox cannot transform age"):
        fitted.transform(np.array([[0.0]]))
