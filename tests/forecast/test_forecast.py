"""Forecasts of single members: published numbers, agreement with msm, monotone curves, refusals."""

import subprocess
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.core.errors import BadOption, BadStates, BadValues, InputError
from rekka.forecast.forecast import AT_REST, forecast_rows, make_cohort, years_until
from rekka.model.certificate import Verdict

AGE, TRAFFIC = "age_at_inspection_1", "traffic_mean"


@pytest.fixture(scope="module")
def rows():
    return rekka.simulate_transitions(1200, n_states=5, seed=2)


@pytest.fixture(scope="module")
def model(rows):
    return rekka.ExponentialHazardMarkovModel(covariates=[AGE, TRAFFIC]).fit(rows, rows["state_2"])


@pytest.fixture(scope="module")
def psoriasis(psor):
    return rekka.ExponentialHazardMarkovModel(dt="months", covariates=[]).fit(psor, psor["state_2"])


class TestPublished:
    """shared/reference/REFERENCE.md; months where it says years."""

    def test_months_in_each_state_with_standard_errors(self, psoriasis):
        found = psoriasis.sojourn(intervals="delta")
        np.testing.assert_allclose(found["mean"], [10.9594, 6.36295, 3.84880], atol=6e-5)
        np.testing.assert_allclose(found["mean_se"], [1.2280, 0.73340, 0.50127], atol=6e-5)

    def test_months_until_the_worst_state(self, psoriasis):
        found = psoriasis.years_to_reach(4, pl.DataFrame({"state_1": [1, 2, 3]}), intervals="delta")
        np.testing.assert_allclose(found["mean"], np.cumsum([3.84880, 6.36295, 10.9594])[::-1], atol=2e-4)

    def test_the_matrix_over_ten_months(self, psoriasis):
        first = psoriasis.transition_matrix(10, intervals="none").probability[0]
        np.testing.assert_allclose(first, [0.401535, 0.268313, 0.139683, 0.190469], atol=6e-7)
        by_forecast = psoriasis.forecast(years=[10.0], intervals="none").probability[0, 0]
        np.testing.assert_allclose(by_forecast, first, rtol=1e-12)

    def test_hazard_ratios_show_in_the_years(self, psor):
        complete = psor.drop_nulls()
        model = rekka.ExponentialHazardMarkovModel(
            dt="months",
            covariates=["ollwsdrt", "hieffusn"],
            shared={"hieffusn": [[1, 2, 3]], "ollwsdrt": [[1, 2]]},
        ).fit(complete, complete["state_2"])
        states = [
            model.sojourn({"ollwsdrt": o, "hieffusn": h}, intervals="none")["mean"] for o, h in ((0, 0), (0, 1))
        ]
        np.testing.assert_allclose(states[0] / states[1], 1.64598, atol=2e-4)
        other = model.sojourn({"ollwsdrt": 1, "hieffusn": 0}, intervals="none")["mean"]
        np.testing.assert_allclose(states[0] / other, [0.56519, 0.56519, 1.64084], atol=3e-4)


SCRIPT = """
library(msm)
set.seed(1)
q <- rbind(c(0, .1, 0, 0), c(0, 0, .1, 0), c(0, 0, 0, .1), c(0, 0, 0, 0))
m <- msm(state ~ months, subject = ptnum, data = psor, qmatrix = q, gen.inits = TRUE,
         control = list(fnscale = 500, reltol = 1e-15, maxit = 5000))
s <- sojourn.msm(m)
p <- pmatrix.msm(m, t = 10, ci = "normal", B = 500)
e <- efpt.msm(m, tostate = 4, ci = "normal", B = 500)
show <- function(x) cat(sprintf("%.10g", c(x)), "\\n")
show(s$estimates); show(s$L); show(s$U)
show(p$estimates[1, ]); show(p$L[1, ]); show(p$U[1, ])
show(e[, 1:3])
"""


def test_msm_agrees_in_years_matrices_and_their_intervals(msm, psoriasis, tmp_path):
    script = tmp_path / "psor.R"
    script.write_text(SCRIPT)
    done = subprocess.run([msm, str(script)], capture_output=True, text=True, check=True)
    lines = [np.array([float(x) for x in line.split()]) for line in done.stdout.splitlines() if line.strip()]
    years = psoriasis.sojourn(intervals="delta")
    for column, theirs in zip(("mean", "mean_low", "mean_high"), lines[:3], strict=True):
        np.testing.assert_allclose(years[column], theirs, rtol=1e-4)
    matrix = psoriasis.transition_matrix(10, draws=2000)
    np.testing.assert_allclose(matrix.probability[0], lines[3], rtol=1e-5)
    np.testing.assert_allclose(matrix.low[0], lines[4], rtol=0.04)  # 500 draws of msm, 2,000 of ours
    np.testing.assert_allclose(matrix.high[0], lines[5], rtol=0.04)
    reach = psoriasis.years_to_reach(4, pl.DataFrame({"state_1": [1, 2, 3]}), draws=2000)
    mean, low, high = lines[6].reshape(3, 3).T  # R writes column by column, a state at a time
    np.testing.assert_allclose(reach["mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(reach["mean_low"], low, rtol=0.04)
    np.testing.assert_allclose(reach["mean_high"], high, rtol=0.04)


@pytest.fixture(scope="module")
def found(model):
    return model.forecast({AGE: 30.0}, 40, draws=300)


class TestForecast:
    def test_it_begins_where_the_member_is(self, found):
        np.testing.assert_array_equal(found.probability[0, 0], [1, 0, 0, 0, 0])
        assert found.years.tolist() == list(range(41))
        for name in ("probability", "expected", "reached"):
            at = getattr(found, name)[:, 0]
            np.testing.assert_allclose(getattr(found, f"{name}_low")[:, 0], at)
            np.testing.assert_allclose(getattr(found, f"{name}_high")[:, 0], at)

    def test_condition_only_worsens(self, found):
        for name in ("expected", "expected_low", "expected_high", "reached", "reached_low", "reached_high"):
            assert (np.diff(getattr(found, name)[0]) >= -1e-12).all()
        assert (np.diff(found.predicted_low[0]) >= 0).all()
        assert (np.diff(found.predicted_high[0]) >= 0).all()

    def test_bands_hold_the_estimate_and_probabilities_add_up(self, found):
        assert ((found.expected_low <= found.expected) & (found.expected <= found.expected_high)).all()
        np.testing.assert_allclose(found.probability.sum(axis=-1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(found.reached, found.probability[..., 3:].sum(axis=-1), rtol=1e-14)
        np.testing.assert_allclose(found.expected, found.probability @ np.arange(1, 6), rtol=1e-14)

    def test_predicted_states_hold_what_the_level_says(self, found):
        below = np.cumsum(found.probability[0], axis=-1)  # at the estimate; the mixture over draws is close to it
        inside = [
            b[high - 1] - (b[low - 2] if low > 1 else 0.0)
            for b, low, high in zip(below, found.predicted_low[0], found.predicted_high[0], strict=True)
        ]
        assert min(inside) > 0.93

    def test_ages_beyond_those_seen_are_marked(self, model, found):
        oldest = model.survey_.high[0]
        np.testing.assert_array_equal(found.outside[0], 30.0 + found.years > oldest)
        held = model.forecast({AGE: 30.0}, 40, age="held", intervals="none")
        assert not held.outside.any()
        assert (held.reached <= found.reached + 1e-15).all()  # age raises every hazard here

    def test_the_table_has_all_of_it(self, found):
        made = found.table()
        assert made.height == 41
        assert {"years", "p_1", "p_1_low", "expected_state", "p_4_or_worse", "predicted_low", "outside"} <= set(
            made.columns
        )
        assert str(made).startswith(
            "ratings over the years; age_at_inspection_1 advancing by the year (fitted at the middle of each "
            "interval); 95% intervals"
        )

    def test_rows_of_a_frame_each_with_its_state(self, model, rows):
        some = rows.head(4)
        found = model.forecast(some, [5.0], age="fixed", intervals="none")
        before = pl.col(AGE) - 2.5  # the age at the first visit, of which the given one is the middle's
        later = model.predict_proba(some.with_columns(before, interval_years=pl.lit(5.0)))
        np.testing.assert_allclose(found.probability[:, 0], later, rtol=1e-12)
        assert found.start.tolist() == some["state_1"].to_list()

    def test_delta_and_draws_tell_about_the_same(self, model):
        delta, normal = (model.forecast(years=[20.0], intervals=kind, draws=4000) for kind in ("delta", "normal"))
        for name in ("expected_low", "expected_high", "reached_low", "reached_high"):
            assert getattr(delta, name)[0, 0] == pytest.approx(getattr(normal, name)[0, 0], rel=0.05)


def test_years_to_reach_agree_with_the_curve(model):
    found = model.years_to_reach(4, {AGE: 40.0}, quantiles=[0.25], draws=300)
    (when,) = found["q25"]
    curve = model.forecast({AGE: 40.0}, [when], intervals="none")
    assert curve.reached[0, 0] == pytest.approx(0.25, abs=1e-10)
    row = found.row(0, named=True)
    assert row["predicted_low"] < row["mean_low"] < row["mean"] < row["mean_high"] < row["predicted_high"]


def test_a_model_that_is_no_maximum_is_watermarked(model):
    doubtful = replace(model._fit, certificate=replace(model._fit.certificate, verdict=Verdict.SHORT_OF_MAXIMUM))
    cohort = make_cohort(doubtful, np.array([0]), model.survey_.median[None])
    found = forecast_rows(cohort, 5)
    assert not found.certified
    assert str(found).startswith("NOT CERTIFIED: ")
    assert "No intervals: the fit is not a certified maximum" in str(found)
    assert np.isnan(found.reached_low).all()
    assert not found.table()["certified"].any()
    assert str(years_until(cohort, 4)).startswith("NOT CERTIFIED: ")


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"years": -5}, BadOption, r"years is -5; a whole number of at least 1 is needed"),
        ({"years": [3.0, 1.0]}, BadOption, r"times of at least 0, in order, are needed"),
        ({"years": [-1.0]}, BadOption, r"times of at least 0, in order"),
        ({"years": 500}, BadOption, r"years goes to 500; at most 200 can be forecast"),
        ({"years": "ten"}, BadOption, r"a whole number or a list of times in years is needed"),
        ({"start": 6}, BadStates, r"row 0: state 6 is above K = 5, the worst state of the training rows"),
        ({"start": 0}, BadStates, r"start is 0 in row 0; whole numbers from 1, the best state, are needed"),
        ({"start": "b"}, BadOption, r"start is 'b'. The ratings are 1, 2, 3, 4, 5, best first"),
        ({"threshold": 6}, BadOption, r"The state to reach is 6; a whole number from 2 to 5"),
        ({"threshold": 1}, BadOption, r"The state to reach is 1"),
        ({"threshold": "1"}, BadOption, r"threshold is '1', the best rating, which every member has reached"),
        ({"threshold": "six"}, BadOption, r"threshold is 'six'. The ratings are 1, 2, 3, 4, 5, best first"),
        ({"X": {"traffic": 3.0}}, BadOption, r"traffic is not a covariate of this model"),
        ({"X": {AGE: float("nan")}}, BadValues, r"missing or infinite"),
        ({"X": pl.DataFrame({AGE: [1.0], TRAFFIC: [1.0]})}, BadOption, r"X has no column state_1"),
        ({"X": pl.DataFrame({AGE: [], TRAFFIC: []})}, InputError, r"X has no rows"),
        ({"age": "stops"}, BadOption, r"age is 'stops'; it can be advances, held, fixed"),
    ],
)
def test_what_cannot_be_forecast_is_refused(model, options, error, sentence):
    with pytest.raises(error, match=sentence):
        model.forecast(**options)


def test_quantiles_and_matrices_are_checked(model, rows):
    with pytest.raises(BadOption, match=r"quantiles holds 1\.5; numbers between 0 and 1"):
        model.years_to_reach(4, quantiles=[1.5])
    with pytest.raises(InputError, match="X has 3 rows; a matrix is for one member"):
        model.transition_matrix(1, rows.head(3))


def test_an_old_model_asks_for_covariates(model):
    old = replace(model._fit, survey=None)
    assert (
        make_cohort(old, np.array([0]), np.array([[30.0, 5000.0]]), options=replace(AT_REST, intervals="none"))
        .outside()
        .sum()
        == 0
    )
    from_file = rekka.ExponentialHazardMarkovModel()
    from_file._adopt(old, [AGE, TRAFFIC])
    with pytest.raises(
        BadValues, match=r"traffic_mean: no value is given, and this model file, of an earlier version"
    ):
        from_file.forecast({AGE: 30.0})


def test_effects_in_words(model):
    found = model.marginal_effects({AGE: "+10"}, draws=200)
    sentence, *_ = found.sentences()
    assert sentence.startswith("Ten more years of age shorten the mean time from rating 1 to 4 or worse from ")
