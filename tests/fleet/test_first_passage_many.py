"""First passage times of many members: dropped when settled, they have the same as when followed to the end."""

from dataclasses import replace

import numpy as np
import pytest
from fleet_cases import draw_members, fit_model

from rekka.fleet.eligibility import take_covariates
from rekka.fleet.inventory import SETTLED
from rekka.forecast.ageing import plan_ageing
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.propagation import Propagator, propagate
from rekka.forecast.uncertainty import find_uncertainty

QUANTILES = (0.1, 0.5, 0.9)


def find_settled(*asked, settled=SETTLED, **more):
    return find_first_passage(*asked, settled=settled, **more)


def setting(age: str = "advances", n: int = 12):
    fit = fit_model()
    frame = draw_members(n)
    course = plan_ageing(fit, age)
    propagator = Propagator(fit, take_covariates(frame, fit), fit.coefficients[None], course)
    return propagator, frame["state"].to_numpy().astype(np.int64) - 1, np.linspace(0.0, 7.3, n)


@pytest.mark.parametrize("age", ["advances", "held", "fixed"])
@pytest.mark.parametrize("with_gap", [False, True])
def test_the_same_as_one_by_one(age, with_gap):
    propagator, start, gap = setting(age)
    gap = gap if with_gap else None
    ours = find_settled(propagator, start, 2, QUANTILES, gap=gap, horizon=9)
    theirs = find_first_passage(propagator, start, 2, QUANTILES, gap)
    assert ours.mean == pytest.approx(theirs.mean, rel=1e-8)
    assert ours.quantile == pytest.approx(theirs.quantile, rel=1e-9, abs=1e-11)
    *_, p = propagate(propagator, start, [9], gap)
    assert ours.reached == pytest.approx(p[..., 2:].sum(axis=-1), abs=1e-13)
    there = start >= 2
    assert (ours.mean[:, there] == 0).all()
    assert (ours.quantile[:, there] == 0).all()


def test_the_slowest_are_followed_to_the_end():
    propagator, start, _ = setting(n=5)
    slow = replace(propagator, coefficients=propagator.coefficients - [[7.0, 0, 0, 0]])
    ours = find_settled(slow, start, 3, QUANTILES)
    theirs = find_first_passage(slow, start, 3, QUANTILES)
    assert theirs.mean.max() > 1000
    assert ours.mean == pytest.approx(theirs.mean, rel=1e-8)
    assert ours.quantile == pytest.approx(theirs.quantile, rel=1e-8)


def test_many_sets_of_coefficients_at_once():
    propagator, start, gap = setting()
    uncertainty = find_uncertainty(propagator.fit, "delta")
    ours = find_settled(
        replace(propagator, coefficients=uncertainty.coefficients), start, 2, (), gap=gap, horizon=5
    )
    for place in (0, 3, len(uncertainty.coefficients) - 1):
        alone = replace(propagator, coefficients=uncertainty.coefficients[place : place + 1])
        theirs = find_settled(alone, start, 2, (), gap=gap, horizon=5)
        assert ours.mean[place] == pytest.approx(theirs.mean[0], rel=1e-9)
        assert ours.reached[place] == pytest.approx(theirs.reached[0], abs=1e-13)
    loose = find_settled(
        replace(propagator, coefficients=uncertainty.coefficients), start, 2, (), gap=gap, horizon=5, settled=1e-7
    )
    assert uncertainty.deviation(loose.mean) == pytest.approx(uncertainty.deviation(ours.mean), rel=1e-3, abs=1e-9)
