import numpy as np
import pytest

from rekka.model.likelihood import Evaluation, Rows, crude_log_rates
from rekka.model.solvers import Stop, lbfgs, newton, random_start, step_within


def rosenbrock(x, order=2):
    a, b = x
    value = 100 * (b - a**2) ** 2 + (1 - a) ** 2
    gradient = np.array([-400 * a * (b - a**2) - 2 * (1 - a), 200 * (b - a**2)])
    hessian = np.array([[1200 * a**2 - 400 * b + 2, -400 * a], [-400 * a, 200.0]])
    return Evaluation(value, gradient, hessian)


def saddle(x, order=2):
    """A saddle at the origin, minima at (0, +-1)."""
    a, b = x
    value = a**2 + (b**2 - 1) ** 2
    return Evaluation(value, np.array([2 * a, 4 * b * (b**2 - 1)]), np.diag([2.0, 12 * b**2 - 4]))


def test_newton_reaches_the_minimum_exactly():
    x, outcome = newton(rosenbrock, np.array([-1.2, 1.0]), 500)
    np.testing.assert_allclose(x, 1, rtol=1e-9)
    assert outcome.success
    assert outcome.message == Stop.CONVERGED
    assert outcome.evaluations >= outcome.iterations
    assert outcome.seconds > 0


def test_newton_leaves_a_saddle():
    x, outcome = newton(saddle, np.array([0.5, 0.0]), 500)
    assert outcome.success
    assert abs(x[1]) == pytest.approx(1)


def test_newton_says_that_it_ran_out_of_iterations():
    _, outcome = newton(rosenbrock, np.array([-1.2, 1.0]), 3)
    assert not outcome.success
    assert outcome.message == Stop.ITERATION_LIMIT
    assert outcome.iterations == 3


def test_newton_stalls_where_the_derivatives_lie():
    def lying(x, order=2):
        return Evaluation(float(x[0]), np.array([-1.0]), np.array([[1.0]]))

    _, outcome = newton(lying, np.array([0.0]), 50)
    assert not outcome.success
    assert outcome.message == Stop.STALLED


def test_newton_refuses_a_start_without_a_value():
    _, outcome = newton(lambda x, order=2: Evaluation(np.nan, x, np.eye(1)), np.zeros(1), 50)
    assert outcome.message == Stop.NONFINITE


def test_newton_steps_back_from_infinity():
    def walled(x, order=2):
        if x[0] > 3:
            return Evaluation(np.inf, np.zeros(1), np.eye(1))
        return Evaluation(float((x[0] - 2.9) ** 4), np.array([4 * (x[0] - 2.9) ** 3]), np.array([[12 * (x[0] - 2.9) ** 2 + 1e-3]]))  # fmt: skip

    x, outcome = newton(walled, np.array([-40.0]), 500)
    assert outcome.success
    assert x[0] == pytest.approx(2.9, abs=0.1)


def test_lbfgs_reports_scipys_words():
    def value_and_gradient(x):
        return rosenbrock(x)[:2]

    x, outcome = lbfgs(value_and_gradient, np.array([-1.2, 1.0]), 500, with_gradient=True)
    np.testing.assert_allclose(x, 1, atol=1e-3)
    assert outcome.success
    assert "CONVERGENCE" in outcome.message
    _, numeric = lbfgs(lambda x: rosenbrock(x).value, np.array([-1.2, 1.0]), 500, with_gradient=False)
    assert numeric.evaluations > outcome.evaluations


def test_the_random_start_is_reset():
    np.testing.assert_array_equal(random_start(5, 3), random_start(5, 3))
    assert random_start(20000, 1).std() == pytest.approx(0.1, rel=0.05)


def test_crude_rates_are_occurrence_over_exposure():
    rows = Rows(np.array([0, 0, 1]), np.array([0, 2, 1]), np.array([2.0, 4.0, 1.0]), np.ones(3), 3)
    typical = 7 / 3
    expected = np.log([1.5 / (2 + 2 + typical), 1.5 / (2 + 1 + typical)])
    np.testing.assert_allclose(crude_log_rates(rows.pairs, rows.unit), expected)


def test_a_state_nobody_was_in_has_a_crude_rate_too():
    rows = Rows(np.array([0, 2]), np.array([0, 2]), np.ones(2), np.ones(2), 4)
    assert np.isfinite(crude_log_rates(rows.pairs, rows.unit)).all()


@pytest.mark.parametrize("radius", [10.0, 1.0])
def test_astep_within_the_radius_is_not_lengthened(radius):
    """Only negative curvature leads to the edge; a minimum inside is taken as it is."""
    gradient, hessian = np.array([1.0, 4.0]), np.diag([1.0, 2.0])
    step = step_within(Evaluation(0.0, gradient, hessian), radius)
    if radius == 10:
        np.testing.assert_allclose(step, [-1.0, -2.0], rtol=1e-9)
    else:
        assert 0.9 <= np.linalg.norm(step) <= 1.0
    edge = step_within(Evaluation(0.0, np.zeros(2), np.diag([-1.0, 2.0])), radius)
    np.testing.assert_allclose(np.abs(edge), [radius, 0.0], atol=1e-9)


def test_a_value_that_never_falls_is_a_stall():
    def wall(x, order=2):
        return Evaluation(1.0 + float(np.abs(x).sum()), np.array([-1.0]), np.array([[1.0]]))

    _, outcome = newton(wall, np.zeros(1), 50)
    assert (outcome.success, outcome.message) == (False, Stop.STALLED)


def test_a_row_that_passes_through_counts_in_every_state_it_leaves():
    """One row from 1 to 3 in two years, a year in each: the same rate of leaving 1 and 2."""
    rows = Rows(np.array([0]), np.array([2]), np.array([2.0]), np.ones(1), 3)
    np.testing.assert_allclose(np.exp(crude_log_rates(rows.pairs, rows.unit)), [1.5 / 3.0, 1.5 / 3.0])
