import numpy as np
import pytest
from scaling_cases import FLAT_PEAK, HARD, NAMES, YEARS, X
from scipy import stats
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, PowerTransformer, RobustScaler, StandardScaler

from rekka.core.errors import BadOption, OutsideTrainingRange, ScalingError
from rekka.scaling.registry import BEYOND, METHODS, REGISTRY, check_method, fit_scaling, is_affine, name_method
from rekka.scaling.transformer import CovariateScaler


def column(*values):
    return np.asarray(values, dtype=float)[:, None]


class TestThePapersOperators:
    def test_affine_ones(self):
        max_, minmax, zscore = (fit_scaling(m, X, NAMES).transform(X) for m in ("max", "minmax", "zscore"))
        np.testing.assert_array_equal(max_, X / X.max(axis=0))
        np.testing.assert_array_equal(minmax, (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)))
        np.testing.assert_allclose(zscore, (X - X.mean(axis=0)) / X.std(axis=0, ddof=0), rtol=1e-12, atol=1e-14)

    def test_boxcox_shifts_to_one_and_takes_the_profile_likelihood_exponent(self):
        fitted = fit_scaling("boxcox", X, NAMES)
        shift = np.maximum(0, 1 - X.min(axis=0))
        np.testing.assert_array_equal(fitted.shift, shift)
        for c in range(3):
            theirs, exponent = stats.boxcox(X[:, c] + shift[c])
            assert fitted.to_dict()["exponent"][c] == pytest.approx(exponent, abs=1e-6)  # each to its search's end
            np.testing.assert_allclose(fitted.transform(X)[:, c], theirs, rtol=1e-6)


class TestBeyondThePaper:
    def test_log_has_the_shift_of_boxcox(self):
        np.testing.assert_allclose(
            fit_scaling("log", X, NAMES).transform(X), np.log(X + np.maximum(0, 1 - X.min(axis=0))), rtol=1e-14
        )

    def test_yeojohnson_is_scipys(self):
        fitted = fit_scaling("yeojohnson", X, NAMES)
        for c in range(3):
            theirs, exponent = stats.yeojohnson(X[:, c])
            assert fitted.exponent[c] == exponent
            np.testing.assert_allclose(fitted.transform(X)[:, c], theirs, rtol=1e-12)

    def test_chain_is_one_after_the_other(self):
        boxcox = fit_scaling("boxcox", X, NAMES).transform(X)
        expected = fit_scaling("zscore", boxcox, NAMES).transform(boxcox)
        np.testing.assert_array_equal(fit_scaling("boxcox+zscore", X, NAMES).transform(X), expected)
        np.testing.assert_allclose(expected.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(expected.std(axis=0), 1)

    @pytest.mark.parametrize(
        ("ours", "theirs", "x"),
        [
            ("zscore", StandardScaler(), X),
            ("minmax", MinMaxScaler(), X),
            ("max", MaxAbsScaler(), np.abs(X)),
            ("robust", RobustScaler(), X),
            ("boxcox+zscore", PowerTransformer(method="box-cox"), np.abs(X) + 1),
            ("yeojohnson+zscore", PowerTransformer(), X),
        ],
        ids=str,
    )
    def test_ours_is_scikit_learns(self, ours, theirs, x):
        """To 1e-6 where an exponent is found by search, to 1e-12 elsewhere."""
        tolerance = 1e-6 if isinstance(theirs, PowerTransformer) else 1e-12
        fitted = fit_scaling(ours, x, NAMES)
        other = x * 0.9 + 0.2
        theirs.fit(x)
        np.testing.assert_allclose(
            fitted.transform(other), theirs.transform(other), rtol=tolerance, atol=tolerance
        )
        z = fitted.transform(x)
        np.testing.assert_allclose(fitted.inverse(z), theirs.inverse_transform(z), rtol=tolerance)


class TestOutOfRange:
    def test_boxcox(self):
        fitted = fit_scaling("boxcox", np.arange(10.0)[:, None], ("bridge_length",))
        x = np.full((13, 1), 2.0)
        x[12] = -3.0
        with pytest.raises(OutsideTrainingRange) as caught:
            fitted.transform(x)
        error = caught.value
        assert str(error) == (
            "boxcox cannot transform bridge_length = -3.0 (row 12): fitted on 0.0 to 9.0, shift 1.0."
        )
        assert (error.method, error.covariate, error.value, error.raw, error.row) == (
            "boxcox", "bridge_length", -3.0, -3.0, 12,
        )  # fmt: skip
        assert (error.low, error.high, error.shift) == (0.0, 9.0, 1.0)

    @pytest.mark.parametrize("method", ["boxcox", "log", "boxcox+zscore", "log+zscore"])
    def test_the_edge_itself_is_refused_and_what_is_above_it_is_not(self, method):
        fitted = fit_scaling(method, column(*range(10)), ("length",))
        assert np.isfinite(fitted.transform(column(-0.999))).all()
        for value in (-1.0, -1.001):
            with pytest.raises(OutsideTrainingRange, match=rf"^(boxcox|log) cannot transform length = {value} "):
                fitted.transform(column(value))

    def test_overflow(self):
        fitted = fit_scaling("boxcox", column(*HARD["skewed to the left"]), ("age",))
        with pytest.raises(
            OutsideTrainingRange, match=r"boxcox cannot transform age = 1e\+200 \(row 1\): fitted on"
        ):
            fitted.transform(column(50.0, 1e200))
        fitted = fit_scaling("zscore", column(1e-9, 2e-9, 4e-9), ("strain",))
        with pytest.raises(
            OutsideTrainingRange, match=r"zscore cannot transform strain = 1e\+300 .*: fitted on 1e-09 to 4e-09\.$"
        ) as caught:
            fitted.transform(column(1e300))
        assert caught.value.shift is None

    def test_a_later_link_says_what_it_was_given(self):
        fitted = fit_scaling(
            "zscore+log", np.column_stack([np.arange(5.0), [1.0, 2.0, 3.0, 4.0, 10.0]]), ("age", "length")
        )
        with pytest.raises(OutsideTrainingRange) as caught:
            fitted.transform(np.array([[1.0, 2.0], [2.0, -9.0]]))
        error = caught.value
        low, high = -3 / np.sqrt(10), 6 / np.sqrt(10)
        assert (error.method, error.covariate, error.row, error.raw) == ("log", "length", 1, -9.0)
        assert (error.value, error.low, error.high, error.shift) == pytest.approx(
            (-13 / np.sqrt(10), low, high, 1 - low)
        )
        assert str(error) == (
            f"log cannot transform length = {error.value} after zscore (row 1, where length is -9.0): "
            f"fitted on {error.low} to {error.high}, shift {error.shift}."
        )

    def test_of_a_long_chain_all_earlier_links_are_named(self):
        fitted = fit_scaling("minmax+zscore+log", column(0, 1, 2), ("age",))
        with pytest.raises(OutsideTrainingRange, match=r"after minmax\+zscore \(row 0, where age is -50\.0\)"):
            fitted.transform(column(-50))

    def test_the_way_back(self):
        fitted = fit_scaling("boxcox", 1.0 / (0.1 + stats.norm.cdf(X[:, 1:2] / 30)), ("age",))
        assert fitted.exponent[0] < 0
        with pytest.raises(OutsideTrainingRange, match=r"boxcox cannot undo age = 1000.0 \(row 0\)"):
            fitted.inverse(column(1000.0))


class TestTraps:
    def test_max_refuses_a_maximum_of_zero_or_below(self):
        with pytest.raises(ScalingError, match=r"that of depth is -1.0\. Use zscore or minmax") as caught:
            fit_scaling("max", column(-3, -1), ("depth",))
        assert (caught.value.covariate, caught.value.value) == ("depth", -1.0)
        with pytest.raises(ScalingError, match=r"that of depth is 0.0"):
            fit_scaling("max", column(-3, 0), ("depth",))

    @pytest.mark.parametrize("method", ["boxcox", "boxcox+zscore"])
    def test_boxcox_that_loses_its_spread(self, method):
        """SciPy issue 16674: eighteen different values all become 0.159572."""
        with pytest.raises(ScalingError) as caught:
            fit_scaling(method, column(*FLAT_PEAK), ("cost",))
        assert str(caught.value) == (
            "boxcox turns cost into a column without spread (lambda -6.267, values 1.47976e+07 to 1.74257e+07 after "
            "the shift). Use zscore, or measure the covariate from another zero."
        )
        error = caught.value
        assert (error.method, error.covariate, error.low, error.high) == (
            "boxcox",
            "cost",
            14797627.54,
            17425665.02,
        )
        assert error.exponent == pytest.approx(-6.2668, abs=1e-3)

    def test_boxcox_short_of_overflow(self):
        """SciPy issue 18389: years need an exponent near 99; SciPy warns and stops where values reach 1e304."""
        with pytest.raises(
            ScalingError, match=r"boxcox turns year into a column with values too large to compute with"
        ):
            fit_scaling("boxcox", column(*YEARS), ("year",))

    def test_yeojohnson_that_loses_its_spread(self):
        with pytest.raises(
            ScalingError, match=r"yeojohnson turns cost into a column without spread \(lambda -1\.92,"
        ):
            fit_scaling("yeojohnson+zscore", column(*FLAT_PEAK), ("cost",))

    def test_ranges_that_look_alike_are_told_in_full(self):
        with pytest.raises(
            ScalingError, match=r"\(values 999999999999999\.0 to 1000000000000001\.0 after the shift\)"
        ):
            fit_scaling("log", column(*HARD["1e15 +- 1"]), ("x",))

    @pytest.mark.parametrize(("method", "name"), [("boxcox", "1e-300"), ("yeojohnson", "both ends")])
    def test_where_scipy_finds_no_exponent(self, method, name):
        with pytest.raises(ScalingError, match=rf"^{method} finds no exponent for x \(values .*\)\. Use zscore"):
            fit_scaling(method, column(*HARD[name]), ("x",))

    def test_robust_without_an_interquartile_range(self):
        with pytest.raises(ScalingError) as caught:
            fit_scaling("robust", column(*[5.0] * 50, 6.0), ("lanes",))
        assert str(caught.value) == (
            "robust divides by the interquartile range, but that of lanes is 0: half of its values or more are 5.0 "
            "(all: 5 to 6). Use zscore or minmax."
        )

    @pytest.mark.parametrize(
        ("method", "name"), [("zscore", "subnormal"), ("minmax", "both ends"), ("max", "subnormal")]
    )
    def test_a_division_by_next_to_nothing_or_by_infinity(self, method, name):
        with pytest.raises(ScalingError, match=rf"^{method} divides x by \S+, which leaves no usable numbers"):
            fit_scaling(method, column(*HARD[name]), ("x",))

    @pytest.mark.parametrize("factor", [1e-200, 1e200, 2.0**-500, 2.0**900])
    def test_zscore_of_squares_that_vanish_or_overflow(self, factor):
        plain = fit_scaling("zscore", X, NAMES).transform(X)
        np.testing.assert_allclose(fit_scaling("zscore", X * factor, NAMES).transform(X * factor), plain, rtol=1e-12, atol=1e-13)  # fmt: skip

    def test_zscore_far_from_zero(self):
        z = fit_scaling("zscore", column(*HARD["1e15 +- 1"]), ("x",)).transform(column(*HARD["1e15 +- 1"]))
        np.testing.assert_allclose(z.std(), 1.0, rtol=1e-15)
        np.testing.assert_allclose(z.mean(), 0.0, atol=1e-15)

    def test_in_a_chain_the_error_says_after_what(self):
        with pytest.raises(ScalingError, match=r"^After zscore, robust divides by the interquartile range"):
            fit_scaling("zscore+robust", column(*[5.0] * 50, 6.0), ("lanes",))


class TestTheOption:
    def test_the_families(self):
        assert METHODS == ("max", "minmax", "zscore", "boxcox")
        assert set(METHODS) <= set(REGISTRY)
        for method in (*REGISTRY, *BEYOND):
            check_method(method)

    @pytest.mark.parametrize(
        ("option", "name"),
        [
            (None, "none"), ("none", "none"), ("zscore", "zscore"), (["boxcox", "zscore"], "boxcox+zscore"),
            (("log", "zscore"), "log+zscore"), (["zscore"], "zscore"), ("boxcox + zscore", "boxcox+zscore"),
            (["log+minmax", "zscore"], "log+minmax+zscore"), ("zscore+zscore", "zscore+zscore"),
        ],
    )  # fmt: skip
    def test_ways_to_write_a_method(self, option, name):
        check_method(option)
        assert name_method(option) == name
        assert fit_scaling(option, X, NAMES).method == name
        assert fit_scaling(option, X, NAMES) == fit_scaling(name, X, NAMES)

    def test_affine_by_name(self):
        for method in ("none", "max", "robust", "minmax+zscore"):
            assert is_affine(method)
        for method in ("boxcox", "boxcox+zscore", "minmax+log"):
            assert not is_affine(method)
        with pytest.raises(BadOption, match="scaling is 'unknown'"):
            is_affine("unknown")

    def test_none_changes_nothing_constants_included(self):
        x = X.copy()
        x[:, 1] = 7.0
        fitted = fit_scaling(None, x, NAMES)
        np.testing.assert_array_equal(fitted.transform(x), x)
        np.testing.assert_array_equal(fitted.inverse(x), x)
        assert fitted.transform(x) is not x

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ("zscor", r"scaling is 'zscor'; it can be max, minmax, .*, None, an object.*\. Did you mean zscore\?"),
            ("boxcox+zscor", r"scaling is 'boxcox\+zscor', and 'zscor' is no operator; .* Did you mean zscore\?"),
            (["boxcox", "zs"], r"scaling is \['boxcox', 'zs'\], and 'zs' is no operator; .*transform\.$"),
            ("boxcox+", r"and '' is no operator"),
            ("", r"scaling is ''; it can be"),
            ([], r"scaling is \[\]; it can be"),
            (["zscore", None], r"it can be max"),
            (3, r"scaling is 3; it can be max"),
            (StandardScaler, r"scaling is <class .*; it can be max"),
            (CovariateScaler("z-score"), r"method is 'z-score'; .*, None\. Did you mean zscore\?"),
            (CovariateScaler(StandardScaler()), r"method is StandardScaler\(\); .*None\.$"),
        ],
    )
    def test_unknown_methods_name_the_choices(self, option, message):
        with pytest.raises(BadOption, match=message):
            check_method(option)
        with pytest.raises(BadOption, match=message):
            fit_scaling(option, X, NAMES)

    def test_our_own_transformer_is_not_foreign(self):
        assert fit_scaling(CovariateScaler("log+zscore"), X, NAMES) == fit_scaling("log+zscore", X, NAMES)


class TestForeign:
    @pytest.mark.parametrize(
        "scaler",
        [StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False), MinMaxScaler(),
         MinMaxScaler((-2, 5)), MaxAbsScaler(), RobustScaler(), RobustScaler(with_centering=False)],
        ids=str,
    )  # fmt: skip
    def test_scikit_learns_affine_scalers_are_known(self, scaler):
        fitted = fit_scaling(scaler, X, NAMES)
        offset, factor = fitted.affine()
        np.testing.assert_allclose((X - offset) * factor, fitted.transform(X), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(fitted.inverse(fitted.transform(X)), X, rtol=1e-10)
        assert not hasattr(scaler, "scale_")  # a clone was fitted

    def test_other_transformers_stay_in_their_own_units(self):
        assert fit_scaling(PowerTransformer(), X, NAMES).affine() is None
        assert fit_scaling(MinMaxScaler(clip=True), X, NAMES).affine() is None

    def test_no_json(self):
        with pytest.raises(BadOption, match="A model scaled by StandardScaler cannot be written as JSON"):
            fit_scaling(StandardScaler(), X, NAMES).to_dict()

    def test_a_transformer_that_changes_the_columns_is_refused(self):
        class Widen:
            def fit(self, x):
                return self

            def transform(self, x):
                return np.hstack([x, x])

        fitted = fit_scaling(Widen(), X, NAMES)
        with pytest.raises(ScalingError, match=r"Widen turned 3 covariates into shape \(80, 6\)"):
            fitted.transform(X)
        with pytest.raises(BadOption, match="Widen has no inverse_transform"):
            fitted.inverse(X)
