"""Bounds of hazards that have no estimate, and models that have them."""

import math

import numpy as np
import pytest
from scipy import linalg, optimize

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
    assert (state, rate) == (3, pytest.approx(-math.log(0.05) / years))
    assert 20.0 < years < 20.0 + 2 * 2.0  # two came into it between two visits: they count for a part of two years
    stays = rows_of((1, 1, 2.0, 20), (1, 2, 2.0, 8), (2, 2, 2.0, 15), (4, 4, 2.0, 10), n_states=5)
    second, fourth = find_bounds(stays)
    assert (second.state, fourth.state, fourth.years) == (2, 4, pytest.approx(20.0))
    assert 30.0 < second.years < 30.0 + 8 * 2.0
    assert find_bounds(rows_of((1, 1, 1.0, 5), (1, 2, 1.0, 5), n_states=2)) == ()
    assert find_bounds(rows_of((1, 3, 1.0, 5), (1, 1, 1.0, 5), n_states=3)) == ()  # state 2 was passed through


def test_one_stay_more_lowers_the_bound_a_little():
    """Rows that came into a state say nearly all of it: one that stayed two years more changes little."""
    rows = ((1, 1, 5.0, 60), (1, 2, 5.0, 40), (2, 2, 5.0, 50), (2, 3, 5.0, 50))
    none, one, ten = (
        find_bounds(rows_of(*rows, *more, n_states=4))[0].rate
        for more in ((), ((3, 3, 2.0, 1),), ((3, 3, 5.0, 10),))
    )
    assert [none, one, ten] == pytest.approx([0.0222, 0.0219, 0.0162], abs=1e-4)


def test_the_bound_is_where_the_profile_likelihood_has_fallen_by_log_20():
    """Against SciPy's matrix exponential and a plain search."""
    rows = rows_of((1, 1, 5.0, 60), (1, 2, 5.0, 40), (2, 2, 3.0, 7), n_states=3)

    def log_likelihood(theta: float, other: float) -> float:
        q = np.array([[-other, other, 0.0], [0.0, -theta, theta], [0.0, 0.0, 0.0]])
        return float(sum(np.log(linalg.expm(q * dt)[i, j]) * n for i, j, dt, n in
                         ((0, 0, 5.0, 60), (0, 1, 5.0, 40), (1, 1, 3.0, 7))))  # fmt: skip

    def profile(theta: float) -> float:
        return -optimize.minimize_scalar(lambda one: -log_likelihood(theta, one), bounds=(0.01, 1.0), method="bounded",
                                         options={"xatol": 1e-9}).fun  # fmt: skip

    assert profile(1e-12) - profile(find_bounds(rows)[0].rate) == pytest.approx(math.log(20), abs=1e-4)


def test_of_a_component_without_departures_there_is_one_bound():
    found = find_common_bound(rows_of((1, 1, 3.0, 50), (2, 2, 6.0, 27), (3, 3, 5.0, 9), n_states=3))
    assert (found.state, found.years) == (None, 312.0)  # nobody can leave the last state
    assert find_common_bound(rows_of((1, 1, 3.0, 4), n_states=1)).years == 12.0


def test_a_model_has_bounds_and_estimates():
    x = np.empty((len(THREE.dt), 0))
    fit = mark_bounds(fit_rows(THREE, x, (), hold_at_bounds(THREE, OPTIONS)), THREE)
    hazards = np.exp(fit.coefficients[:, 0])
    assert hazards[2] == pytest.approx(find_bounds(THREE)[0].rate, rel=1e-6)
    assert fit.certificate.certified
    assert "hardly determined" in fit.certificate.headline
    assert fit.certificate.remarks[0] == describe_bound(find_bounds(THREE)[0])
    assert not any("0 rows leave" in remark for remark in fit.certificate.remarks)
    alone = rows_of((1, 1, 2.0, 20), (1, 2, 2.0, 8), (2, 2, 2.0, 15), (2, 3, 2.0, 2), n_states=3)
    plain = fit_rows(alone, np.empty((len(alone.dt), 0)), (), OPTIONS)
    assert hazards[0] == pytest.approx(math.exp(plain.coefficients[0, 0]), rel=1e-3)


def test_a_bound_has_no_standard_error():
    x = np.empty((len(THREE.dt), 0))
    fit = mark_bounds(fit_rows(THREE, x, (), hold_at_bounds(THREE, OPTIONS)), THREE)
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
    marked = mark_bounds(fit, rows)
    assert marked.inference.covariance[0, 0] >= 1.0  # that of the hold: no row says how fast state 1 is left
    assert "state 1 is held" in marked.certificate.remarks[0]
    assert np.isfinite(fit.coefficients).all()


def test_where_every_hazard_has_an_estimate_nothing_is_held():
    rows = rows_of((1, 1, 1.0, 5), (1, 2, 1.0, 5), n_states=2)
    assert hold_at_bounds(rows, OPTIONS) is OPTIONS
