"""Totals of a network: slopes beside probes and draws, prediction beside simulation."""

from dataclasses import replace

import numpy as np
import pytest
from fleet_cases import draw_members, fit_model

from rekka.fleet.eligibility import take_covariates
from rekka.fleet.network import (
    Totals,
    add_cases,
    find_bounds,
    propagate_gradients,
    total_draws,
    total_path,
)
from rekka.forecast.ageing import plan_ageing
from rekka.forecast.propagation import Propagator, propagate
from rekka.forecast.uncertainty import LOGIT, find_uncertainty

YEARS, THRESHOLD = 6, 3


def setting(scaling: str = "zscore", age: str = "advances", n: int = 30):
    fit = fit_model(scaling=scaling)
    frame = draw_members(n)
    course = plan_ageing(fit, age)
    propagator = Propagator(fit, take_covariates(frame, fit), fit.coefficients[None], course)
    return propagator, frame["state"].to_numpy().astype(np.int64) - 1, np.linspace(0.0, 4.6, n)


def by_slopes(propagator, start, gap, level=0.95) -> Totals:
    path, gradients = zip(*propagate_gradients(propagator, start, YEARS, gap), strict=True)
    tally = total_path(path, start, THRESHOLD, np.stack(gradients))
    uncertainty = find_uncertainty(propagator.fit, "delta", level=level)
    return tally.conclude(uncertainty, propagator.fit.covariance_blocks)


def by_draws(propagator, start, gap, kind="normal", draws=400, seed=1) -> Totals:
    uncertainty = find_uncertainty(propagator.fit, kind, draws=draws, seed=seed)
    path = [p[0] for p in propagate(propagator, start, range(YEARS + 1), gap)]
    some = replace(propagator, coefficients=uncertainty.coefficients[1:])
    drawn = total_draws(some, start, YEARS, gap, THRESHOLD, at_once=7)
    return replace(total_path(path, start, THRESHOLD, None), drawn=drawn).conclude(uncertainty, np.empty(0))


@pytest.mark.parametrize("scaling", ["zscore", "boxcox+zscore"])
@pytest.mark.parametrize("age", ["advances", "held", "fixed"])
@pytest.mark.parametrize("with_gap", [False, True])
def test_slopes_give_what_probes_give(scaling, age, with_gap):
    propagator, start, gap = setting(scaling, age)
    gap = gap if with_gap else None
    ours = by_slopes(propagator, start, gap)
    uncertainty = find_uncertainty(propagator.fit, "delta")
    probes = replace(propagator, coefficients=uncertainty.coefficients)
    sums = total_draws(probes, start, YEARS, gap, THRESHOLD, at_once=10)
    assert ours.expected == pytest.approx(sums.mean[0], abs=1e-12)
    assert ours.deviation == pytest.approx(uncertainty.deviation(sums.mean), rel=1e-6, abs=1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = uncertainty.interval(sums.mean, LOGIT, ours.least, ours.most)
    assert np.array(ours.interval()) == pytest.approx(np.array(theirs), rel=1e-6, abs=1e-9)


def test_totals_are_the_sums_of_members():
    propagator, start, gap = setting()
    totals = by_slopes(propagator, start, gap)
    for year, p in enumerate(propagate(propagator, start, range(YEARS + 1), gap)):
        assert totals.expected[year, :-1] == pytest.approx(p[0].sum(axis=0), abs=1e-9)
        assert totals.expected[year, -1] == pytest.approx(p[0, :, THRESHOLD - 1 :].sum(), abs=1e-9)
    assert totals.expected[:, :-1].sum(axis=1) == pytest.approx([len(start)] * (YEARS + 1), abs=1e-9)


def test_totals_stay_between_what_they_cannot_leave():
    propagator, start, _ = setting()
    least, most = find_bounds(start, 4, THRESHOLD)
    here = np.bincount(start, minlength=4)
    assert least.tolist() == [0, 0, 0, here[3], here[2] + here[3]]
    assert most.tolist() == [here[0], here[0] + here[1], here[:3].sum(), len(start), len(start)]
    totals = by_slopes(propagator, start, None)
    (low, high), (predicted_low, predicted_high) = totals.interval(), totals.predict()
    for low_end, high_end in ((low, high), (predicted_low, predicted_high)):
        assert (low_end >= least - 1e-9).all()
        assert (high_end <= most + 1e-9).all()
    assert (predicted_low == np.floor(predicted_low)).all()
    first = totals.expected[0]
    assert low[0] == pytest.approx(first)  # what was seen is certain
    assert predicted_high[0].tolist() == predicted_low[0].tolist() == np.round(first).tolist()


def test_draws_are_seeded_and_near_the_delta_method():
    propagator, start, gap = setting()
    one, other, third = (by_draws(propagator, start, gap, seed=seed).interval() for seed in (1, 1, 2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, third)
    delta = by_slopes(propagator, start, gap)
    for end, same in zip(one, delta.interval(), strict=True):
        assert end == pytest.approx(same, abs=0.6)  # of 30 members
    for end, same in zip(by_draws(propagator, start, gap).predict(), delta.predict(), strict=True):
        assert end == pytest.approx(same, abs=1)


def test_prediction_intervals_hold_what_simulation_gives():
    propagator, start, _ = setting(n=60)
    totals = by_slopes(propagator, start, None)
    low, high = (end[YEARS, -1] for end in totals.predict())
    drawn = find_uncertainty(propagator.fit, "normal", draws=1500, seed=5).coefficients[1:]
    *_, p = propagate(replace(propagator, coefficients=drawn), start, [YEARS])
    rng = np.random.default_rng(3)
    count = (rng.random(p.shape[:2]) < p[..., THRESHOLD - 1 :].sum(axis=-1)).sum(axis=1)
    inside = ((count >= low) & (count <= high)).mean()
    assert 0.94 < inside < 0.985  # whole numbers: a little more than 95 %
    assert ((count > low) & (count < high)).mean() < 0.95  # and no wider than it need be


def test_cases_add_cases():
    propagator, start, gap = setting()
    small, _, _ = setting("boxcox+zscore")
    one, other = by_slopes(propagator, start, gap), by_slopes(small, start, None)
    both = add_cases([one, other])
    assert both.members == 2 * len(start)
    assert both.expected == pytest.approx(one.expected + other.expected)
    assert both.deviation**2 == pytest.approx(one.deviation**2 + other.deviation**2)
    low, high = both.interval()
    assert (low <= both.expected + 1e-9).all()
    assert (high >= both.expected - 1e-9).all()


def test_cases_with_fewer_states_have_nobody_in_the_others():
    propagator, start, gap = setting()
    fit = fit_model(3)
    fewer = replace(propagator, fit=fit, coefficients=fit.coefficients[None])
    one, other = by_slopes(propagator, start, gap), by_slopes(fewer, np.minimum(start, 2), gap)
    both = add_cases([other, one])
    assert both.states == 4
    assert both.expected[:, 3] == pytest.approx(one.expected[:, 3])
    assert both.expected[:, 2] == pytest.approx(one.expected[:, 2] + other.expected[:, 2])
    assert both.expected[:, 4] == pytest.approx(one.expected[:, 4] + other.expected[:, 3])


def test_draws_of_cases_are_paired_and_missing_intervals_stay_missing():
    propagator, start, gap = setting()
    one, other = by_draws(propagator, start, gap, draws=150), by_draws(propagator, start, gap, draws=100, seed=9)
    both = add_cases([one, other])
    assert both.drawn is not None
    assert both.drawn.mean == pytest.approx(one.drawn.mean[:100] + other.drawn.mean)
    without = add_cases([one, replace(one, drawn=None, why=("it is not certified",))])
    assert np.isnan(without.interval()).all()
    assert np.isnan(without.predict()).all()
    assert without.why == ("it is not certified",)
