"""Every number of shared/reference/REFERENCE.md; source: R's msm 1.7 on its data set psor."""

import numpy as np
import polars as pl
import pytest

import rekka


def fit(pairs: pl.DataFrame, covariates: list[str], **options):
    model = rekka.ExponentialHazardMarkovModel(dt="months", covariates=covariates, **options)
    return model.fit(pairs, pairs["state_2"])


@pytest.fixture(scope="module")
def model(psor):
    assert len(psor) == 501
    return fit(psor, [])


@pytest.fixture(scope="module")
def pairs(psor):
    complete = psor.drop_nulls()
    assert len(complete) == 449
    return complete


class TestNoCovariates:
    def test_likelihood(self, model):
        assert -2 * model.log_likelihood_ == pytest.approx(1246.01528, abs=1e-5)
        assert model.certificate_.certified

    def test_hazards_and_mean_months_in_state(self, model, psor):
        table = model.hazards(psor.head(1))
        # the third is .25982151 at the exact maximum; msm stopped 1.1e-7 before it
        np.testing.assert_allclose(table["hazard"], [0.0912459, 0.1571597, 0.2598214], atol=1.2e-7)
        np.testing.assert_allclose(table["years"], [10.9594, 6.36295, 3.84880], atol=6e-5)
        np.testing.assert_allclose(table["years_se"], [1.2280, 0.73340, 0.50127], atol=6e-5)

    def test_probabilities_over_ten_months(self, model):
        first = pl.DataFrame({"state_1": [1], "months": [10.0]})
        expected = [0.401535, 0.268313, 0.139683, 0.190469]
        np.testing.assert_allclose(model.predict_proba(first)[0], expected, atol=6e-7)
        by_hazards = rekka.transition_probabilities(np.exp(model.intercept_), 10.0)[0]
        np.testing.assert_allclose(by_hazards, expected, atol=6e-7)


class TestTwoCovariates:
    def test_all_free(self, pairs):
        model = fit(pairs, ["ollwsdrt", "hieffusn"])
        assert -2 * model.log_likelihood_ == pytest.approx(1112.613303, abs=1e-6)
        np.testing.assert_allclose(model.intercept_, [-2.3443461, -1.6631471, -1.5404480], atol=6e-8)
        np.testing.assert_allclose(model.coef_[:, 0], [-0.3119759, -0.7811921, 0.4547077], atol=6e-8)
        np.testing.assert_allclose(model.coef_[:, 1], [0.8491679, 0.5195055, 0.3321686], atol=6e-8)
        se = np.sqrt(np.diag(model.covariance_)).reshape(3, 3)
        np.testing.assert_allclose(se[:, 0], [0.14678, 0.14768, 0.19147], atol=6e-6)
        np.testing.assert_allclose(se[:, 1], [0.27647, 0.28040, 0.36031], atol=6e-6)
        np.testing.assert_allclose(se[:, 2], [0.38755, 0.29125, 0.30029], atol=6e-6)

    @pytest.mark.parametrize("scaling", ["max", "minmax", "zscore", None])
    def test_shared_coefficients(self, pairs, scaling):
        shared = {"hieffusn": [[1, 2, 3]], "ollwsdrt": [[1, 2]]}
        model = fit(pairs, ["ollwsdrt", "hieffusn"], shared=shared, scaling=scaling)
        assert -2 * model.log_likelihood_ == pytest.approx(1114.89946, abs=5e-6)
        table = model.summary().filter(pl.col("term") != "intercept").sort("term", "state")
        columns = table.select("hazard_ratio", "hr_low", "hr_high").to_numpy()
        hieffusn, ollwsdrt = (1.64598, 1.14831, 2.35934), (0.56519, 0.38535, 0.82897)
        expected = [hieffusn] * 3 + [ollwsdrt] * 2 + [(1.64084, 0.81544, 3.30175)]
        np.testing.assert_allclose(columns, expected, atol=6e-6)

    def test_effects_leave_a_coefficient_out(self, pairs):
        model = fit(pairs, ["ollwsdrt", "hieffusn"], effects={"hieffusn": [1]})
        assert (model.coef_[1:, 1] == 0).all()
        full = fit(pairs, ["ollwsdrt", "hieffusn"])
        assert model.log_likelihood_ < full.log_likelihood_
        assert model.certificate_.certified
        assert model.aic_ == pytest.approx(-2 * model.log_likelihood_ + 2 * 7)
