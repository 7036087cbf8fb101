"""Maxima of the likelihood: closed forms, a second optimizer; and the certificate, which knows a maximum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rekka.core.language import say
from rekka.estimator import ExponentialHazardMarkovModel
from rekka.model.certificate import Verdict
from rekka.model.likelihood import Likelihood, Rows
from rekka.verification.engine import Comparison, Numbers, compare, verifies
from rekka.verification.formulas import (
    PlainPairs,
    climb,
    draw_pairs,
    exact_log_likelihood,
    first_rates,
)

Array = NDArray[np.float64]

SAME = 1e-9  # log-likelihood units between a stored maximum and this fit
OTHER = 1e-8  # between this fit and that of another optimizer, which stops a little below
AFFINE = ("max", "minmax", "zscore")


def fit(rows: PlainPairs, **options: Any) -> ExponentialHazardMarkovModel:
    """Fit pairs, with all their covariates, from their ages at first visits if there are any."""
    frame = rows.frame()
    names = [name for name in frame.columns if name.startswith("x")]
    given: dict[str, Any] = {"covariates": names, "n_states": rows.n_states, "threads": 1, **options}
    return ExponentialHazardMarkovModel(**given).fit(frame, frame["state_2"])


def list_verdict(model: ExponentialHazardMarkovModel) -> str:
    """Name a fit's verdict, as the language files do."""
    return Verdict(model.certificate_.verdict).name.lower()


def draw_two(random: Any) -> list[float]:
    """Draw two covariates, one of them skewed."""
    return [round(random.uniform(0.0, 6.0), 1), round(math.exp(0.7 * random.gauss(0.0, 1.0)), 2)]


def draw_one(random: Any) -> list[float]:
    """Draw one covariate."""
    return [round(random.uniform(-1.0, 1.0), 2)]


ORACLES = {  # seed, rows, coefficients, covariates, years between visits
    "three_states": (3, 240, [[-2.0, 0.6], [-1.4, -0.4]], draw_one, [1.0, 2.0, 5.0]),
    "four_states": (4, 300, [[-2.2, 0.2, 0.1], [-1.6, -0.1, 0.2], [-1.2, 0.1, -0.1]], draw_two, [1.0, 3.0, 5.0]),
    "five_states": (5, 300, [[-1.8, 0.5], [-1.6, 0.0], [-1.4, -0.5], [-1.2, 0.3]], draw_one, [2.0, 5.0, 10.0]),
}


def draw_oracle(name: str) -> PlainPairs:
    """Rows of one of the sets whose maximum is stored."""
    seed, n, beta, draw_x, gaps = ORACLES[name]
    return draw_pairs(seed, n, beta, draw_x, gaps)


@verifies("binomial", "maxima", source="formula")
def binomial(numbers: Numbers) -> Iterator[Comparison]:
    """Two states and one interval: the maximum, its hazard and its standard error in closed form."""
    for stayed, left, years in ((90, 10, 2.0), (37, 63, 5.0), (499, 1, 1.0)):
        n = stayed + left
        ends = np.repeat([0, 1], [stayed, left])
        rows = PlainPairs(np.zeros(n, dtype=np.int64), ends, np.full(n, years), np.zeros((n, 0)), 2)
        model = fit(rows)
        a = -math.log(stayed / n)
        counts = {"stayed": f"{stayed}", "left": f"{left}", "years": f"{years:g}"}
        value = stayed * math.log(stayed / n) + left * math.log(left / n)
        error = math.sqrt((1.0 - math.exp(-a)) / (n * a**2 * math.exp(-a)))
        for key, expected, got in (
            ("binomial_value", value, model.log_likelihood_),
            ("binomial_hazard", a / years, math.exp(model.intercept_[0])),
            ("binomial_error", error, math.sqrt(model.covariance_[0, 0])),
        ):
            yield compare(say(f"verify.item.{key}", **counts), expected, got, relative=1e-10)


@verifies("oracle", "maxima", source="optimizer")
def oracle(numbers: Numbers) -> Iterator[Comparison]:
    """Certified maxima of simulated rows, as stored, and beside SciPy's L-BFGS-B on a likelihood by matrices."""
    for name in ORACLES:
        rows, stored = draw_oracle(name), numbers["oracle"][name]
        model = fit(rows)
        place = {"set": say(f"verify.set.{name}")}
        value = model.log_likelihood_
        yield compare(say("verify.item.verdict", **place), "certified", list_verdict(model))
        yield compare(say("verify.item.stored_maximum", **place), stored["log_likelihood"], value, within=SAME)
        other, beta = climb(rows, first_rates(rows))
        yield compare(say("verify.item.second_optimizer", **place), other, value, within=OTHER)
        found = np.column_stack([model.intercept_, model.coef_])
        furthest = float(np.abs(found - beta).max())
        yield compare(say("verify.item.coefficients_apart", **place), 0.0, furthest, within=1e-3)


@verifies("two_maxima", "maxima", source="decimal")
def two_maxima(numbers: Numbers) -> Iterator[Comparison]:
    """Simulated rows whose likelihood has two maxima: the lower one is a maximum, and the fit is at the higher."""
    stored = numbers["two_maxima"]
    rows = read_heavy(stored)
    model = fit(rows)
    yield compare(say("verify.item.verdict", set=say("verify.set.two_maxima")), "certified", list_verdict(model))
    yield compare(say("verify.item.higher"), stored["higher"], model.log_likelihood_, within=SAME)
    there = np.column_stack([model.intercept_, model.coef_])
    yield compare(
        say("verify.item.higher_exact"), exact_log_likelihood(rows, there), model.log_likelihood_, within=SAME
    )
    lower = np.array(stored["lower_at"])
    states = rows.start, rows.end, rows.years, np.ones(len(rows.years)), rows.n_states
    design = np.column_stack([np.ones(len(rows.years)), rows.x])
    found = Likelihood.build(Rows(*states), design, 1).evaluate(lower)
    yield compare(say("verify.item.lower"), exact_log_likelihood(rows, lower), found.value, within=SAME)
    step = np.linalg.solve(found.hessian, found.gradient.ravel())
    decrement = -0.5 * float(found.gradient.ravel() @ step)
    yield compare(say("verify.item.lower_slope"), 0.0, decrement, within=1e-9)
    curved = "yes" if np.linalg.eigvalsh(found.hessian).max() < 0.0 else "no"
    yield compare(say("verify.item.lower_curved"), "yes", curved)


def read_heavy(stored: Mapping[str, Any]) -> PlainPairs:
    """Rows with a heavy-tailed covariate; states are stored from 1."""
    start, end, years, x = (np.array(column) for column in zip(*stored["rows"], strict=True))
    states = start.astype(np.int64) - 1, end.astype(np.int64) - 1
    return PlainPairs(*states, years, x[:, None], 5)


@verifies("separation", "certificate", source="design")
def separation(numbers: Numbers) -> Iterator[Comparison]:
    """Rows of which it is known whether a finite maximum exists, and what the certificate says."""
    overlap = [(1, 1, 1, 0), (1, 2, 1, 0), (1, 1, 2, 1), (1, 2, 2, 1), (1, 1, 1, 2), (1, 2, 3, 2)]
    apart = [(1, 1, 1, 0), (1, 1, 1, 1), (1, 2, 1, 2), (1, 2, 1, 3)]
    hurried = [(1, 1, 5, 0)] * 3 + [(1, 2, 5, 0)] * 3 + [(1, 2, 5, 1)] * 5
    hurried += [(2, 2, 5, 0)] * 2 + [(2, 3, 5, 0)] * 2 + [(2, 3, 5, 1)] * 8 + [(2, 2, 5, 1)]
    stays = [(1, 1, 1, 0), (1, 2, 1, 1), (1, 1, 2, 1), (1, 2, 1, 0), (2, 2, 1, 0), (2, 2, 2, 1)]
    for name, table, states, options, expected in (
        ("overlap", overlap, 2, {}, "certified"),
        ("apart", apart, 2, {}, "no_finite_maximum"),
        ("touching", [*apart, (1, 1, 1, 1.5), (1, 2, 1, 1.5)], 2, {}, "no_finite_maximum"),
        ("penalised", apart, 2, {"ridge": 0.1}, "certified"),
        ("hurried", hurried, 3, {}, "certified"),
        ("nobody_leaves", stays, 3, {"ridge": 1.0}, "no_finite_maximum"),
    ):
        start, end, years, x = (np.array(column) for column in zip(*table, strict=True))
        rows = PlainPairs(start - 1, end - 1, years.astype(float), x.astype(float)[:, None], states)
        item = say("verify.item.separation", rows=say(f"verify.set.{name}"))
        yield compare(item, expected, list_verdict(fit(rows, **options)))


@verifies("stopped_short", "certificate", source="optimizer")
def stopped_short(numbers: Numbers) -> Iterator[Comparison]:
    """A solver that is stopped too early is not certified, and the distance that it had left is measured."""
    rows = draw_oracle("four_states")
    short = fit(rows, max_iter=2)
    yield compare(say("verify.item.stopped"), "short_of_maximum", list_verdict(short))
    highest, _ = climb(rows, first_rates(rows))
    left = highest - short.log_likelihood_
    yield compare(say("verify.item.shortfall"), left, short.certificate_.shortfall, relative=1e-5)


@verifies("affine", "certificate", source="theory")
def affine(numbers: Numbers) -> Iterator[Comparison]:
    """Max, min-max and z-score scaling are one model: log-likelihood, coefficients, errors and forecasts agree."""
    rows = draw_oracle("four_states")
    frame = rows.frame()
    plain = fit(rows, scaling=None)
    expected = _describe(plain, frame)
    for scaling in AFFINE:
        found = _describe(fit(rows, scaling=scaling), frame)
        for what, value in expected.items():
            item = say(f"verify.item.affine_{what}", scaling=say(f"method.{scaling}"))
            if isinstance(value, float):
                yield compare(item, value, found[what], within=SAME)
            else:
                furthest = float(np.abs(np.asarray(found[what]) - value).max())
                yield compare(item, 0.0, furthest, within=1e-7)


def _describe(model: ExponentialHazardMarkovModel, frame: pl.DataFrame) -> dict[str, Any]:
    errors = np.sqrt(np.diag(model.covariance_))
    return {
        "value": float(model.log_likelihood_),
        "coefficients": np.column_stack([model.intercept_, model.coef_]),
        "errors": errors,
        "forecasts": model.predict_proba(frame),
    }
