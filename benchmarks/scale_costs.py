"""What one evaluation of the likelihood costs a row: by states, by covariates, by jumps, by what is asked for.

Start states, end states and years are drawn as everywhere here; the covariates are standard normal, so that there
can be any number of them, and the coefficients are small. Rows are sorted by their states, as in a fit. Each
figure is the fastest evaluation seen, on one thread, in nanoseconds of the processor a row: of the processor,
because others may be using it as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import thread_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems import SEED
from rekka.model.likelihood import Likelihood, Rows, compile_kernels
from rekka.simulation.rows import simulate_transitions

Array = NDArray[np.float64]

ROWS = 100_000
STATES = tuple(range(3, 11))
COVARIATES = (1, 2, 4, 8, 16)
USUAL_STATES, USUAL_COVARIATES = 5, 4
ASKED = ("value", "value, gradient", "value, gradient, Hessian")
ENOUGH_SECONDS = 0.5  # of repeats for one figure
BYTES_A_NUMBER = 8


@dataclass(frozen=True)
class Cost:
    """Nanoseconds a row of one evaluation, and of how many rows of the whole that holds."""

    n_states: int
    covariates: int
    order: int
    ns_per_row: float
    jumps: int | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Needs:
    """What one row needs on average if nothing but this had to be done: see ``count_needs``."""

    bytes_read: float
    exponentials: float
    logarithms: float
    multiply_adds: float


@dataclass(frozen=True)
class Drawn:
    """Rows in the order of a fit, their design, and coefficients near those they were drawn from."""

    rows: Rows
    X: Array
    beta: Array

    @property
    def jumps(self) -> NDArray[np.int64]:
        """Jumps of each row."""
        return self.rows.end - self.rows.start

    def take(self, index: NDArray[np.intp]) -> Drawn:
        """Some of the rows."""
        return Drawn(self.rows.take(index), self.X[index], self.beta)

    def time(self, order: int = 2) -> float:
        """Nanoseconds a row of the fastest evaluation seen."""
        compile_kernels()
        likelihood = Likelihood.build(self.rows, self.X, threads=1)
        fastest, spent = math.inf, 0.0
        while spent < ENOUGH_SECONDS:
            clock = thread_time()
            likelihood.evaluate(self.beta, order)
            seconds = thread_time() - clock
            fastest, spent = min(fastest, seconds), spent + seconds
        return 1e9 * fastest / len(self.rows.dt)


def draw(n_states: int, covariates: int, n_rows: int = ROWS) -> Drawn:
    """Rows of so many states with so many covariates."""
    frame = simulate_transitions(n_rows, n_states=n_states, seed=SEED)
    start, end = (frame[name].to_numpy() - 1 for name in ("state_1", "state_2"))
    rows = Rows(start, end, frame["interval_years"].to_numpy(), np.ones(n_rows), n_states)
    X = np.random.default_rng(SEED).normal(size=(n_rows, covariates + 1))
    X[:, 0] = 1.0
    beta = np.full((n_states - 1, covariates + 1), 0.3 / math.sqrt(covariates))
    beta[:, 0] = np.log(0.12 * 0.85 ** np.arange(n_states - 1))
    return Drawn(rows.take(rows.grouping), X, beta)


def by_states(states: tuple[int, ...] = STATES, n_rows: int = ROWS) -> list[Cost]:
    """Value, gradient and Hessian for each K, four covariates."""
    return [Cost(k, USUAL_COVARIATES, 2, draw(k, USUAL_COVARIATES, n_rows).time()) for k in states]


def by_covariates(covariates: tuple[int, ...] = COVARIATES, n_rows: int = ROWS) -> list[Cost]:
    """Value, gradient and Hessian for each number of covariates, K = 5."""
    return [Cost(USUAL_STATES, p, 2, draw(USUAL_STATES, p, n_rows).time()) for p in covariates]


def by_order(n_rows: int = ROWS) -> list[Cost]:
    """The value alone, with its gradient, with its Hessian; K = 5, four covariates."""
    drawn = draw(USUAL_STATES, USUAL_COVARIATES, n_rows)
    return [Cost(USUAL_STATES, USUAL_COVARIATES, order, drawn.time(order)) for order in range(len(ASKED))]


def by_jumps(n_rows: int = ROWS) -> list[Cost]:
    """Rows of no jump, of one, of two and so on by themselves, rare ones repeated; K = 5, four covariates."""
    drawn = draw(USUAL_STATES, USUAL_COVARIATES, n_rows)
    found = []
    for jumps in range(USUAL_STATES):
        here = np.flatnonzero(drawn.jumps == jumps)
        if here.size:
            cost = drawn.take(np.sort(np.resize(here, max(here.size, n_rows // 5)))).time()
            found.append(Cost(USUAL_STATES, USUAL_COVARIATES, 2, cost, jumps, here.size / n_rows))
    return found


def count_needs(drawn: Drawn) -> Needs:
    """Count what the average row needs, from what ``rekka.model.kernel`` does.

    A row reads its two states, years and their logarithm, weight and design; the state the chain visits that is
    not absorbing costs one exponential; one jump with hazards more than 1 apart costs another and two logarithms,
    a longer one a logarithm. Each pair of visited states adds to one block of the Hessian: p + 1 by p + 1 products
    off its diagonal, the upper triangle on it, and p + 1 products that weigh the design.
    """
    free, p1 = drawn.beta.shape
    rows = drawn.rows
    visited = np.minimum(rows.end, free - 1) - rows.start + 1
    apart = (drawn.jumps == 1) & (_gap(drawn) > 1.0)
    off = visited * (visited - 1) / 2
    products = p1 * visited + visited * p1 * (p1 + 1) / 2 + off * p1 * p1 + (visited + off) * p1
    return Needs(
        float(BYTES_A_NUMBER * (5 + p1)),
        float((visited + apart).mean()),
        float((2 * apart + (drawn.jumps > 1)).mean()),
        float(products.mean()),
    )


def _gap(drawn: Drawn) -> Array:
    """Distance between a = theta dt of the start state and of the next one, 0 for the last."""
    rows = drawn.rows
    a = np.exp(drawn.X @ drawn.beta.T) * rows.dt[:, None]
    a = np.column_stack([a, np.zeros(len(a))])
    at = np.arange(len(a))
    return np.abs(a[at, rows.start] - a[at, np.minimum(rows.start + 1, rows.n_states - 1)])
