import numpy as np
import pytest

from rekka.model.likelihood import Likelihood, Rows


def problem(n, n_states=4, p=2, seed=0):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, n_states - 1, n)
    end = np.minimum(n_states - 1, start + rng.integers(0, 3, n))
    rows = Rows(start, end, rng.uniform(1, 6, n), rng.uniform(0.5, 2, n), n_states)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, p))])
    beta = rng.normal(0, 0.2, (n_states - 1, p + 1)) + np.eye(1, p + 1) * -1.5
    return rows, X, beta


def test_gradient_and_hessian_are_derivatives():
    rows, X, beta = problem(200)
    likelihood = Likelihood.build(rows, X, threads=1)
    _, gradient, hessian = likelihood.evaluate(beta)
    step = 1e-6
    for f in range(beta.size):
        bump = np.zeros(beta.size)
        bump[f] = step
        up, down = (likelihood.evaluate(beta + s * bump.reshape(beta.shape)) for s in (1, -1))
        assert gradient[f] == pytest.approx((up.value - down.value) / (2 * step), rel=1e-6, abs=1e-5)
        np.testing.assert_allclose(hessian[f], (up.gradient - down.gradient) / (2 * step), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(hessian, hessian.T)


def test_any_number_of_threads_gives_the_same_bits():
    rows, X, beta = problem(30_000)
    one, *others = (Likelihood.build(rows, X, threads=t).evaluate(beta) for t in (1, 2, 3, 8))
    for other in others:
        assert one.value == other.value
        np.testing.assert_array_equal(one.gradient, other.gradient)
        np.testing.assert_array_equal(one.hessian, other.hessian)


def test_value_alone_is_the_same_value():
    rows, X, beta = problem(500)
    likelihood = Likelihood.build(rows, X, threads=1)
    assert likelihood.evaluate(beta, order=0).value == likelihood.evaluate(beta).value


def test_by_row_sums_to_the_whole():
    rows, X, beta = problem(9_000)
    likelihood = Likelihood.build(rows, X, threads=2)
    value, slope = likelihood.by_row(beta)
    whole = likelihood.evaluate(beta)
    assert rows.weight @ value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(
        ((rows.weight[:, None] * slope).T @ X).ravel(), whole.gradient, rtol=1e-9, atol=1e-9
    )


def test_order_of_rows_does_not_matter():
    rows, X, beta = problem(3_000)
    order = rows.grouping
    grouped = Likelihood.build(rows.take(order), X[order], threads=1).evaluate(beta)
    as_is = Likelihood.build(rows, X, threads=1).evaluate(beta)
    assert grouped.value == pytest.approx(as_is.value, rel=1e-12)
    np.testing.assert_allclose(grouped.hessian, as_is.hessian, rtol=1e-10, atol=1e-9)
