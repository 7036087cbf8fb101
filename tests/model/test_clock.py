"""Ages at the middle of intervals or at their start: in every fit, prediction and forecast, and nowhere twice."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from benchmarks.ageing import ORIGIN, SLOPE, STATE, Ageing, draw_rows, true_years

import rekka
from rekka.core.errors import BadOption
from rekka.evaluation.pooling import pool_cases
from rekka.evaluation.resampling import Sample
from rekka.evaluation.ridge import choose_ridge, score_path
from rekka.forecast.ageing import HELD, plan_ageing
from rekka.model.bootstrap import bootstrap_rows
from rekka.model.clock import CLOCKS, make_clock
from rekka.model.fit import Options, fit_rows
from rekka.streaming.blocks import ArraySource
from rekka.streaming.fit import fit_source, refit_source

AGE, NAMES = "age_at_inspection_1", ("age_at_inspection_1", "bridge_length")
ROWS = rekka.simulate_transitions(500, n_states=4, seed=8)
LATER = ROWS.with_columns(pl.col(AGE) + pl.col("interval_years") / 2)  # the age at the middle, in the table itself
SAMPLE, SAMPLE_LATER = (Sample.of(rows, NAMES, 4) for rows in (ROWS, LATER))
PLAIN = Options(clock="start", threads=1)


def fit(rows, **options):
    model = rekka.ExponentialHazardMarkovModel(covariates=NAMES, n_states=4, **options)
    return model.fit(rows, rows["state_2"], groups=rows["bridge_id"].to_numpy())


def test_take_adds_half_the_interval_to_what_advances_and_changes_nothing_else():
    x, dt = np.array([[30.0, 7.0], [40.0, 8.0]]), np.array([5.0, 2.0])
    taken = make_clock(("age", "length")).take(x, dt)
    np.testing.assert_array_equal(taken, [[32.5, 7.0], [41.0, 8.0]])
    np.testing.assert_array_equal(x, [[30.0, 7.0], [40.0, 8.0]])
    assert make_clock(("age", "length"), "start").take(x, dt) is x
    assert make_clock(("age", "length"), advance=()).take(x, dt) is x
    assert make_clock(("a", "b"), advance=["b"]).names == ("b",)


@pytest.mark.parametrize("scaling", ["zscore", "boxcox", None])
def test_middle_is_start_with_half_the_interval_more_in_every_number(scaling):
    middle, start = fit(ROWS, scaling=scaling), fit(LATER, scaling=scaling, clock="start")
    np.testing.assert_array_equal(middle.coef_, start.coef_)
    np.testing.assert_array_equal(middle.covariance_, start.covariance_)
    np.testing.assert_array_equal(middle.survey_.quantiles, start.survey_.quantiles)
    assert middle.scaling_.method == start.scaling_.method
    np.testing.assert_array_equal(middle.predict_proba(ROWS), start.predict_proba(LATER))
    ends = ROWS["state_2"]
    np.testing.assert_array_equal(middle.log_probabilities(ROWS, ends), start.log_probabilities(LATER, ends))
    assert middle.certify(ROWS, ends) == start.certify(LATER, ends)
    assert middle.log_loss(ROWS, ends) == pytest.approx(-middle.log_likelihood_ / len(ROWS))
    assert str(middle.hazards(ROWS)) == str(start.hazards(ROWS))  # at the age as given
    groups = ROWS["bridge_id"].to_numpy()
    drawn = [one.bootstrap(rows, ends, groups=groups, draws=3) for one, rows in ((middle, ROWS), (start, LATER))]
    np.testing.assert_array_equal(drawn[0].resampled_.beta, drawn[1].resampled_.beta)


def test_an_age_that_does_not_advance_is_that_of_the_start():
    np.testing.assert_array_equal(fit(ROWS, advance=()).coef_, fit(ROWS, clock="start").coef_)
    rows, use = ROWS.rename({AGE: "years_open"}), ["years_open", NAMES[1]]
    model = rekka.ExponentialHazardMarkovModel(covariates=use, n_states=4, advance=["years_open"])
    model.fit(rows, rows["state_2"])
    np.testing.assert_array_equal(model.coef_, fit(ROWS).coef_)
    assert model.clock_.names == ("years_open",)


def fit_here(rows, options):
    return fit_rows(rows.rows, rows.x, NAMES, options)


def test_blocks_refits_ridges_and_pools_take_the_same_moment():
    middle = replace(PLAIN, clock="middle")
    ours, theirs = fit_here(SAMPLE, middle), fit_here(SAMPLE_LATER, PLAIN)

    def source(sample):
        training = rekka.model.inputs.Training(sample.rows, sample.x, None)
        return ArraySource(training, NAMES, 1, 100)

    streamed = fit_source(source(SAMPLE), middle, n_states=4)
    again = fit_source(source(SAMPLE_LATER), PLAIN, n_states=4)
    np.testing.assert_array_equal(streamed.beta, again.beta)
    np.testing.assert_array_equal(streamed.survey.quantiles, again.survey.quantiles)
    np.testing.assert_allclose(streamed.beta, ours.beta, atol=1e-7)
    assert streamed.clock.mean_years == pytest.approx(ours.clock.mean_years) == ROWS["interval_years"].mean()
    assert SAMPLE.rows.start.max() < 3  # nobody starts in the worst state
    assert streamed.clock.names == ours.clock.names == (AGE,)
    refitted = refit_source(source(SAMPLE), middle, n_states=4)
    np.testing.assert_allclose(refitted.beta, theirs.beta, atol=1e-7)
    ridges = (3.0, 30.0)
    np.testing.assert_array_equal(
        score_path(SAMPLE, SAMPLE, middle, ridges), score_path(SAMPLE_LATER, SAMPLE_LATER, PLAIN, ridges)
    )
    chosen = [choose_ridge(rows, how) for rows, how in ((SAMPLE, middle), (SAMPLE_LATER, PLAIN))]
    assert chosen[0].values == chosen[1].values
    assert chosen[0].options.clock == "middle"
    pooled, pooled_later = (
        pool_cases({"a": rows, "b": rows}, threads=1, clock=how.clock)
        for rows, how in ((SAMPLE, middle), (SAMPLE_LATER, PLAIN))
    )
    np.testing.assert_array_equal(pooled.prior("a").mean, pooled_later.prior("a").mean)
    drawn = bootstrap_rows(ours, SAMPLE.rows, SAMPLE.x, np.arange(len(SAMPLE)), middle, draws=2)
    drawn_later = bootstrap_rows(theirs, SAMPLE.rows, SAMPLE_LATER.x, np.arange(len(SAMPLE)), PLAIN, draws=2)
    np.testing.assert_array_equal(drawn.beta, drawn_later.beta)


def test_the_mean_interval_counts_weights():
    weight = np.where(ROWS["interval_years"] > 5, 3.0, 1.0)
    model = rekka.ExponentialHazardMarkovModel(covariates=NAMES).fit(ROWS, ROWS["state_2"], sample_weight=weight)
    assert model.clock_.mean_years == pytest.approx(np.average(ROWS["interval_years"], weights=weight))


def test_the_mean_interval_is_of_rows_that_can_worsen_without_class_weights():
    long = ROWS.head(200).with_columns(state_1=pl.lit(4), state_2=pl.lit(4), interval_years=pl.lit(50.0))
    rows = pl.concat([ROWS, long], how="vertical_relaxed")
    training = rekka.model.inputs.Training(Sample.of(rows, NAMES, 4).rows, Sample.of(rows, NAMES, 4).x, None)
    streamed = fit_source(
        ArraySource(training, NAMES, 1, 100), PLAIN, n_states=4, class_weight="inverse_frequency"
    )
    fits = [fit(rows), fit(rows, class_weight="inverse_frequency"), fit(ROWS, class_weight="inverse_frequency")]
    for clock in (streamed.clock, *(one.clock_ for one in fits)):
        assert clock.mean_years == pytest.approx(ROWS["interval_years"].mean())


def test_the_mean_interval_of_rows_that_cannot_worsen_is_that_of_all():
    assert make_clock(("age",)).measured(np.diag([0.0, 2.0]), np.diag([0.0, 6.0])).mean_years == 3.0


def test_wrong_options_are_refused():
    for options, message in (
        ({"clock": "late"}, "clock is 'late'; it can be middle, start, running."),
        ({"advance": "age"}, "advance is the text 'age'; a list of covariates is needed"),
        ({"advance": ["bridge_lenght"]}, r"advance names bridge_lenght, .* Did you mean bridge_length\?"),
    ):
        with pytest.raises(BadOption, match=message):
            fit(ROWS, **options)


def test_a_covariate_that_repeats_the_age_at_the_middle_is_refused():
    """Beside the age at the first visit it is no duplicate; beside that at the middle it is."""
    rows = ROWS.with_columns(halfway=pl.col(AGE) + pl.col("interval_years") / 2)
    use = [AGE, "halfway"]
    assert rekka.ExponentialHazardMarkovModel(covariates=use, clock="start").fit(rows, rows["state_2"]).converged_
    with pytest.raises(rekka.core.errors.BadCovariates, match="halfway duplicates age_at_inspection_1"):
        rekka.ExponentialHazardMarkovModel(covariates=use).fit(rows, rows["state_2"])


def test_a_forecast_of_a_model_with_ages_at_the_start_lags_by_half_the_mean_interval():
    start = fit(ROWS, clock="start")
    lag = start.clock_.mean_years / 2
    middle = replace(start._fit, clock=make_clock(NAMES))  # the same hazards, no lag
    x = {AGE: 40.0, "bridge_length": 60.0}
    ours = start.forecast(x, 20, intervals="none").probability
    model = fit(ROWS)
    model._adopt(middle, ["state_1"])
    theirs = model.forecast({**x, AGE: 40.0 - lag}, 20, intervals="none").probability
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    fixed = [one.forecast(x, 20, age="fixed", intervals="none").probability for one in (start, model)]
    np.testing.assert_array_equal(*fixed)  # the age as given
    assert f"fitted at the start of each interval: behind by {lag:.3g} years, half the mean interval" in str(
        start.years_to_reach(4, x)
    )


def test_held_stops_at_the_oldest_age_as_the_fit_took_it():
    for clock in CLOCKS:
        found = fit(ROWS, clock=clock)._fit
        course = plan_ageing(found, HELD)
        asked = course.model_input(np.array([[60.0, 50.0]]), 100.0, 1.0)
        assert asked[0, 0] == pytest.approx(found.survey.high[0])


def test_a_lag_does_not_take_the_youngest_out_of_what_an_operator_takes():
    model = fit(ROWS, clock="start", scaling="log+zscore")
    youngest = {AGE: float(ROWS[AGE].min()), "bridge_length": 50.0}
    assert np.isfinite(model.forecast(youngest, 5, intervals="none").expected).all()


@pytest.mark.parametrize("gap", [1.0, 2.0, 5.0])
def test_known_hazards_that_grow_with_age_give_the_years_until_a_state(gap):
    """Exact simulation with age running on within intervals: both clocks come to the truth, no lag runs ahead."""
    rows = draw_rows(Ageing(gap), bridges=30_000, seed=5)
    truth = true_years()
    found = {}
    for clock in CLOCKS:
        model = rekka.ExponentialHazardMarkovModel(covariates=["age"], n_states=STATE, clock=clock, threads=1)
        model.fit(rows, rows["state_2"])
        assert model.coef_[:, 0] == pytest.approx(SLOPE, abs=0.008)
        found[clock] = model.years_to_reach(STATE, {"age": ORIGIN}, intervals="none")["mean"].item()
    assert found == pytest.approx({"middle": truth, "start": truth}, rel=0.01)


def test_first_visits_are_earlier_than_the_middle_and_not_than_the_start():
    weight, years = np.array([[2.0, 1.0], [0.0, 0.0]]), np.array([[8.0, 4.0], [0.0, 0.0]])
    for kind, early, lag in (("middle", 2.0, 0.0), ("start", 0.0, 2.0)):
        clock = make_clock(["age"], kind).measured(weight, years)
        assert (clock.early("age"), clock.lag("age")) == (early, lag)
