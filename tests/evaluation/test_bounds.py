"""Bounds of hazards that have no estimate, and models that have them."""

import math

import numpy as np
import pytest

from rekka.evaluation.bounds import (
    bound_rate,
    describe_bound,
    find_bounds,
    find_common_bound,
    hold_at_bounds,
    mark_bounds,
)
from rekka.model.fit import Options, fit_rows
from rekka.model.likelihood import Rows
from rekka.model.tables import coefficient_table, hazard_table

OPTIONS = Options(threads=1)
NOTHING = np.empty((0, 0))


def rows_of(*moves: tuple[int, int, float, int], n_states: int) -> Rows:
    """Rows (start, end, years, how many), states counted from 1."""
    start, end, dt = (np.concatenate([np.full(n, move[k]) for *move, n in moves]) for k in range(3))
    return Rows(start - 1, end - 1, dt.astype(float), np.ones(len(dt)), n_states)


# Nobody leaves state 3, in which ten were for two years each; two came into it.
THREE = rows_of((1, 1, 2.0, 20), (1, 2, 2.0, 8), (2, 2, 2.0, 15), (2, 3, 2.0, 2), (3, 3, 2.0, 10), (4, 4, 2.0, 3),
                n_states=4)  # fmt: skip


def test_the_bound_is_what_the_years_allow():
    assert bound_rate(312.0) == pytest.approx(0.0096, abs=5e-5)
    assert math.exp(-bound_rate(40.0) * 40.0) == pytest.approx(0.05)
    assert bound_rate(0.0) == math.inf


def test_only_states_that_nobody_leaves_have_a_bound():
    ((state, years, rate),) = find_bounds(THREE)
    assert (state, years) == (3, 20.0)  # those that came into it between two visits do not count
    assert rate == pytest.approx(-math.log(0.05) / 20)
    assert find_bounds(rows_of((1, 1, 1.0, 5), (1, 2, 1.0, 5), n_states=2)) == ()
    assert find_bounds(rows_of((1, 3, 1.0, 5), (1, 1, 1.0, 5), n_states=3)) == ()  # state 2 was passed through
    assert (
        find_bounds(rows_of((1, 2, 1.0, 5), (4, 4, 1.0, 5), n_states=4)) == ()
    )  # in 2 and 3 at both visits: nobody


def test_of_a_component_without_departures_there_is_one_bound():
    found = find_common_bound(rows_of((1, 1, 3.0, 50), (2, 2, 6.0, 27), (3, 3, 5.0, 9), n_states=3))
    assert (found.state, found.years) == (None, 312.0)  # nobody can leave the last state
    assert find_common_bound(rows_of((1, 1, 3.0, 4), n_states=1)).years == 12.0


def test_a_model_has_bounds_and_estimates():
    x = np.empty((len(THREE.dt), 0))
    fit = mark_bounds(fit_rows(THREE, x, (), hold_at_bounds(THREE, OPTIONS)), find_bounds(THREE))
    hazards = np.exp(fit.coefficients[:, 0])
    assert hazards[2] == pytest.approx(-math.log(0.05) / 20, rel=1e-6)
    assert fit.certificate.certified
    assert "hardly determined" in fit.certificate.headline
    assert fit.certificate.remarks[0] == describe_bound(find_bounds(THREE)[0])
    assert not any("0 rows leave" in remark for remark in fit.certificate.remarks)
    alone = rows_of((1, 1, 2.0, 20), (1, 2, 2.0, 8), (2, 2, 2.0, 15), (2, 3, 2.0, 2), n_states=3)
    plain = fit_rows(alone, np.empty((len(alone.dt), 0)), (), OPTIONS)
    assert hazards[0] == pytest.approx(math.exp(plain.coefficients[0, 0]), rel=1e-3)


def test_a_bound_has_no_standard_error():
    x = np.empty((len(THREE.dt), 0))
    fit = mark_bounds(fit_rows(THREE, x, (), hold_at_bounds(THREE, OPTIONS)), find_bounds(THREE))
    errors = coefficient_table(fit, None, 0.95)["se"].to_list()
    assert [math.isnan(error) for error in errors] == [False, False, True]
    hazards = hazard_table(fit, np.empty((1, 0)), 0.95)
    assert [math.isnan(value) for value in hazards["hazard_high"]] == [False, False, True]
    assert np.isfinite(hazards["hazard"].to_numpy()).all()


def test_states_that_nobody_stays_in_are_held():
    rows = rows_of((1, 2, 1.0, 6), (2, 2, 1.0, 10), (2, 3, 1.0, 4), n_states=3)
    assert find_bounds(rows) == ()
    fit = fit_rows(rows, np.empty((len(rows.dt), 0)), (), hold_at_bounds(rows, OPTIONS))
    assert fit.certificate.certified
    assert np.isfinite(fit.coefficients).all()


def test_where_every_hazard_has_an_estimate_nothing_is_held():
    rows = rows_of((1, 1, 1.0, 5), (1, 2, 1.0, 5), n_states=2)
    assert hold_at_bounds(rows, OPTIONS) is OPTIONS
