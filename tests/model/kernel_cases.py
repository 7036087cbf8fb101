"""Numbers from the kernel and the likelihood by every path, as JSON; run compiled and uncompiled."""

import json

import numpy as np

from rekka.model import kernel
from rekka.model.likelihood import Likelihood, Rows

rng = np.random.default_rng(7)
numbers: list[float] = []
for spread in (0.1, 2.0, 6.0):
    eta = rng.normal(0.0, spread, (12, 4))
    start = rng.integers(0, 4, 12)
    end = np.minimum(4, start + rng.integers(0, 5, 12))
    slope, curve = np.empty((12, 4)), np.empty((12, 4, 4))
    value = kernel.log_probability_rows(eta, np.full(12, 2.0), start, end, 2, slope, curve)
    numbers += [*value, *slope.ravel(), *curve.ravel()]
    order = np.argsort(start)
    p = np.empty((12, 5))
    kernel.probability_rows(np.exp(eta), eta, start[order], 0, p)
    numbers += p.ravel().tolist()
    rows = Rows(start, end, np.full(12, 2.0), np.ones(12), 5)
    X = np.column_stack([np.ones(12), rng.normal(size=12)])
    likelihood = Likelihood.build(rows, X, threads=1)
    evaluation = likelihood.evaluate(rng.normal(0.0, spread, (4, 2)))
    numbers += [evaluation.value, *evaluation.gradient, *evaluation.hessian.ravel()]
    by_row = likelihood.by_row(rng.normal(0.0, 0.5, (4, 2)))
    numbers += [*by_row[0], *by_row[1].ravel()]
    numbers.append(likelihood.evaluate(np.zeros((4, 2)), order=0).value)
    numbers += likelihood.evaluate(rng.normal(0.0, spread, (4, 2)), order=1).gradient.tolist()
# nearly certain: huge hazards, then a tiny one; the same into the absorbing state; hazards beyond all numbers
eta = np.array([[4.0, 4.5, -9.0, -8.0], [5.0, 4.5, 4.2, 4.8], [0.0, 900.0, 0.5, 950.0], [0.0, 900.0, -9.0, 950.0]])
slope, curve = np.empty((4, 4)), np.empty((4, 4, 4))
ends = np.array([2, 4, 3, 3])
value = kernel.log_probability_rows(eta, np.ones(4), np.zeros(4, np.int64), ends, 2, slope, curve)
numbers += [*value, *slope.ravel(), *curve.ravel()]
print(json.dumps([float(x) for x in numbers]))
