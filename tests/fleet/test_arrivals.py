"""Years until a state for many members: the same as ``pass_through``."""

from dataclasses import replace

import numpy as np
import pytest
from fleet_cases import draw_members, fit_model

from rekka.fleet.eligibility import take_covariates
from rekka.fleet.first_passage import find_arrivals
from rekka.forecast.ageing import plan_course
from rekka.forecast.first_passage import pass_through
from rekka.forecast.propagation import Walkers, walk
from rekka.forecast.uncertainty import spread_out

QUANTILES = (0.1, 0.5, 0.9)


def setting(age: str = "advances", n: int = 12):
    fit = fit_model()
    frame = draw_members(n)
    course = plan_course(fit, age)
    walkers = Walkers(fit, take_covariates(frame, fit.covariates), fit.coefficients[None], course)
    return walkers, frame["state"].to_numpy().astype(np.int64) - 1, np.linspace(0.0, 7.3, n)


@pytest.mark.parametrize("age", ["advances", "held", "fixed"])
@pytest.mark.parametrize("with_gap", [False, True])
def test_the_same_as_one_by_one(age, with_gap):
    walkers, start, gap = setting(age)
    gap = gap if with_gap else None
    ours = find_arrivals(walkers, start, 2, QUANTILES, gap=gap, horizon=9)
    theirs = pass_through(walkers, start, 2, QUANTILES, gap)
    assert ours.mean == pytest.approx(theirs.mean, rel=1e-8)
    assert ours.quantile == pytest.approx(theirs.quantile, rel=1e-9, abs=1e-11)
    *_, p = walk(walkers, start, [9], gap)
    assert ours.reached == pytest.approx(p[..., 2:].sum(axis=-1), abs=1e-13)
    there = start >= 2
    assert (ours.mean[:, there] == 0).all()
    assert (ours.quantile[:, there] == 0).all()


def test_the_slowest_are_followed_to_the_end():
    walkers, start, _ = setting(n=5)
    slow = replace(walkers, coefficients=walkers.coefficients - [[7.0, 0, 0, 0]])
    ours = find_arrivals(slow, start, 3, QUANTILES)
    theirs = pass_through(slow, start, 3, QUANTILES)
    assert theirs.mean.max() > 1000
    assert ours.mean == pytest.approx(theirs.mean, rel=1e-8)
    assert ours.quantile == pytest.approx(theirs.quantile, rel=1e-8)


def test_many_sets_of_coefficients_at_once():
    walkers, start, gap = setting()
    spread = spread_out(walkers.fit, "delta")
    ours = find_arrivals(replace(walkers, coefficients=spread.coefficients), start, 2, (), gap=gap, horizon=5)
    for place in (0, 3, len(spread.coefficients) - 1):
        alone = replace(walkers, coefficients=spread.coefficients[place : place + 1])
        theirs = find_arrivals(alone, start, 2, (), gap=gap, horizon=5)
        assert ours.mean[place] == pytest.approx(theirs.mean[0], rel=1e-9)
        assert ours.reached[place] == pytest.approx(theirs.reached[0], abs=1e-13)
    loose = find_arrivals(
        replace(walkers, coefficients=spread.coefficients), start, 2, (), gap=gap, horizon=5, settled=1e-7
    )
    assert spread.deviation(loose.mean) == pytest.approx(spread.deviation(ours.mean), rel=1e-3, abs=1e-9)
