"""Fits of histories: published maxima, truth recovered from simulations, boundaries, certificates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from history_cases import REFERENCE, as_chain, needs_reference

from rekka.core.errors import InputError
from rekka.model import history_fit
from rekka.model.certificate import Verdict
from rekka.model.clock import Clock
from rekka.model.elements import Elements, read_elements
from rekka.model.fit import Fit, Options, fit_rows
from rekka.model.histories import Chain
from rekka.model.history_fit import fit_observed_histories
from rekka.model.history_passes import HeldBlocks, observe_histories
from rekka.model.inputs import weigh_dates
from rekka.model.likelihood import Rows, count_threads

PATTERN = np.eye(4) + np.diag([1, 1, 0], 1) + np.diag([1, 1, 0], -1)


def fit_histories(
    rows: Chain, covariates: tuple[str, ...], options: Options, elements: Elements, clock: Clock, **more: Any
) -> Fit:
    """Fit rows in memory."""
    blocks = HeldBlocks((rows,), count_threads(options.threads))
    return fit_observed_histories(observe_histories(blocks, covariates, clock), options, elements, **more)


def simulate(
    bridges: int = 400,
    visits: int = 6,
    *,
    error: float = 0.0,
    variance: float = 0.0,
    rho: float = 0.0,
    trend: float = 0.0,
    slope: float = 0.02,
    seed: int = 0,
    K: int = 4,
    oldest: int = 9,
) -> tuple[Chain, np.ndarray]:
    """Members followed from new in steps of a twentieth of a year, then rated every two years; true frailties."""
    rng = np.random.default_rng(seed)
    eps = rng.gamma(1 / variance, variance, bridges) if variance else np.ones(bridges)
    age = rng.integers(0, oldest + 1, bridges).astype(float)
    state, h, finest = np.zeros(bridges, np.int64), 0.05, 20
    last = 2000.0 + 2 * (visits - 1)

    def rate() -> np.ndarray:
        u = rng.random(bridges)
        return np.clip(state - (u < error) + (u > 1 - error), 0, K - 1)

    ratings, done = [], -age  # years since the first visit
    for visit in range(visits):
        while (done < 2 * visit - h / 2).any():
            moving = done < 2 * visit - h / 2
            year = np.maximum(2000.0 + done, 2000.0)
            log_hazard = -2.6 + slope * (age + done + h / 2) + trend * (year - last)
            leave = (rng.random(bridges) < -np.expm1(-eps * np.exp(log_hazard) * h)) & (state < K - 1)
            state = state + (leave & moving)
            if rho:
                whole = np.isclose(np.round((done + h) * finest) % finest, 0)
                state = state - ((rng.random(bridges) < rho) & moving & whole & (state > 0))
            done = done + h * moving
        ratings.append(rate())
    each = np.arange(bridges)
    start, end = (np.stack(part, axis=1).ravel() for part in (ratings[:-1], ratings[1:]))
    years = np.tile(2.0 * np.arange(visits - 1), bridges)
    number = np.repeat(each, visits - 1)
    rows = Chain(
        start, end, np.full(start.size, 2.0), (age[number] + years)[:, None], number, number, 2000.0 + years
    )
    return rows, eps


def fit(rows: Chain, clock: str = "running", K: int = 4, **options: Any) -> Fit:
    """Fit with age as the covariate."""
    elements = read_elements(K, **options, aged=True)
    return fit_histories(rows, ("age",), Options(), elements, Clock(clock, ("age",), (0,)))


def near(found: Fit, level: float = -2.6, slope: float = 0.02, errors: float = 4.0) -> None:
    """Assert that coefficients are within some standard errors of the truth, and that these say something."""
    se = np.sqrt(np.diag(found.inference.covariance)).reshape(3, 2)
    assert (np.abs(found.coefficients - [level, slope]) < errors * se).all()
    assert (se < [1.0, 0.1]).all()


@needs_reference
def test_maximum_of_msm() -> None:
    data = pl.read_csv(REFERENCE / "misclassified.csv")
    x = data.select("cov1", "cov2").to_numpy().astype(float)
    rows = as_chain(data["id"], data["time"], data["state"].to_numpy(), x)
    elements = read_elements(4, errors=PATTERN, first=[1, 0, 0, 0])
    plain = fit_histories(rows._replace(x=rows.x[:, :0]), (), Options(), elements, Clock())
    assert plain.certificate.certified
    # msm stopped 7e-7 below the maximum, and its estimates 1e-5 beside it
    assert 6294.11456315 - 2e-6 < -2 * plain.inference.log_likelihood < 6294.11456315
    np.testing.assert_allclose(np.exp(plain.coefficients[:, 0]), [0.59110490, 0.60265846, 0.52186631], atol=2e-5)
    assert plain.records is not None
    found = [plain.records.errors[at] for at in ((0, 1), (1, 0), (1, 2), (2, 1))]
    np.testing.assert_allclose(found, [0.0028825934, 0.12940512, 0.020060158, 0.0990213761], atol=2e-5)
    both = fit_histories(rows, ("cov1", "cov2"), Options(scaling=None), elements, Clock())
    assert 6223.37509357 - 2e-6 < -2 * both.inference.log_likelihood < 6223.37509357
    ratios = np.exp(both.coefficients[:, 1:])
    np.testing.assert_allclose(ratios[:, 0], [1.329, 1.188, 1.191], atol=6e-4)
    np.testing.assert_allclose(ratios[:, 1], [0.7912, 0.9917, 0.9645], atol=6e-5)


@needs_reference
@pytest.mark.slow
def test_ontario_is_certified_above_msm() -> None:
    subject, year, state = np.loadtxt(REFERENCE / "ontario_cut.csv", delimiter=",", skiprows=1, dtype=int).T
    found = fit_histories(
        as_chain(subject, year, state), (), Options(), read_elements(5, errors="adjacent"), Clock()
    )
    assert found.certificate.certified
    assert -2 * found.inference.log_likelihood == pytest.approx(32934.362823, abs=1e-5)


def test_all_elements_off_is_the_fit_of_pairs() -> None:
    rows, _ = simulate(200, slope=0.0)
    found = fit(rows, "middle")
    worse = Rows(rows.start, rows.end, rows.dt, np.ones(rows.dt.size), 4)
    wanted = fit_rows(worse, rows.x, ("age",), Options())
    assert found.inference.log_likelihood == pytest.approx(wanted.inference.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(found.coefficients, wanted.coefficients, atol=1e-7)
    np.testing.assert_allclose(found.inference.covariance, wanted.inference.covariance, rtol=1e-4, atol=1e-9)
    p = found.probabilities(rows.start, rows.dt, rows.x)
    np.testing.assert_allclose(p, wanted.probabilities(rows.start, rows.dt, rows.x), atol=1e-7)


def test_weighted_histories_without_elements_are_weighted_pairs() -> None:
    rows, _ = simulate(200, slope=0.0)
    assert rows.date is not None
    weight = weigh_dates(rows.date + rows.dt - 2010.0, 3.0)
    assert weight.max() == 1.0 > weight.min() > 0.0
    elements, options = read_elements(4), Options(half_life=3.0)
    clock = Clock("middle", ("age",), (0,))
    found = fit_histories(rows, ("age",), options, elements, clock, clustered=True)
    own = Rows(rows.start, rows.end, rows.dt, weight, 4)
    wanted = fit_rows(own, rows.x, ("age",), options, rows.bridge, weight)
    assert found.certificate.certified
    assert found.inference.log_likelihood == pytest.approx(wanted.inference.log_likelihood, abs=1e-10)
    np.testing.assert_allclose(found.coefficients, wanted.coefficients, atol=1e-7)
    assert "weighted by a half-life of 3 years" in found.inference.kind
    informative = np.unique(rows.bridge[rows.start < 3]).size  # the pair model counts these groups alone
    factor = [G / (G - 1) for G in (200, informative)]
    np.testing.assert_allclose(
        found.inference.covariance / factor[0], wanted.inference.covariance / factor[1], rtol=1e-4, atol=1e-9
    )


def test_errors_and_improvements_are_told_from_deterioration() -> None:
    rows, _ = simulate(error=0.06, rho=0.04, seed=3)
    found = fit(rows, errors="adjacent-common", improvements="common")
    assert found.certificate.certified
    near(found)
    assert found.records is not None
    for one, truth in zip(found.records.estimates(0.9999)[:3], (0.06, 0.06, 0.04), strict=True):
        assert one.low < truth < one.high < 0.15


def test_frailty_is_found_and_groups_are_ranked() -> None:
    rows, eps = simulate(250, 9, variance=0.6, error=0.03, slope=0.0, seed=5, oldest=0)
    elements = read_elements(4, errors="adjacent-common", frailty="gamma", first=[1, 0, 0, 0])
    found = fit_histories(rows._replace(x=rows.x[:, :0]), (), Options(), elements, Clock())
    assert found.certificate.certified
    error = np.sqrt(np.diag(found.inference.covariance))
    assert (np.abs(found.coefficients[:, 0] + 2.6) < 4 * error).all()
    assert found.records is not None
    variance = next(one for one in found.records.estimates(0.999) if one.name == "frailty: variance")
    assert 0.05 < variance.low < 0.6 < variance.high < 3.0
    frailties = found.records.frailties
    assert frailties is not None
    assert np.corrcoef(frailties.mean, eps)[0, 1] > 0.5
    inside = (frailties.low < eps) & (eps < frailties.high)
    assert 0.9 < inside.mean() < 0.995
    assert any("nodes; with twice as many" in remark for remark in found.certificate.remarks)


def test_a_trend_ends_at_the_last_visit() -> None:
    rows, _ = simulate(800, trend=-0.1, slope=0.02, seed=6)
    found = fit(rows, trend="common")
    near(found)
    assert found.records is not None
    assert found.records.last == 2010.0
    one = found.records.estimates(0.9999)[0]
    assert one.low < -0.1 < one.high < 0.0


def test_boundaries_are_said_and_certified() -> None:
    rows, _ = simulate(100, 5, error=0.0, seed=7)
    found = fit(rows, errors="adjacent-common", frailty="gamma", first="new")
    assert found.certificate.certified
    assert found.records is not None
    assert found.records.boundaries
    for name in found.records.boundaries:
        assert any(name in remark and "boundary" in remark for remark in found.certificate.remarks)
    assert found.inference.degrees_of_freedom == 6 + 3 - len(found.records.boundaries)


CHAIN: list[dict[str, Any]] = [  # nested models, each with one element more
    {"improvements": "common"},
    {"improvements": "common", "errors": "adjacent-common"},
    {"improvements": "common", "errors": "adjacent-common", "trend": "common"},
    {"improvements": "common", "errors": "adjacent-common", "trend": "common", "frailty": "gamma"},
]


def test_warm_starts_reach_the_maximum_of_cold_ones_with_fewer_evaluations() -> None:
    rows, _ = simulate(120, 7, error=0.05, rho=0.03, trend=-0.04, variance=0.4, seed=11)
    fewer = rows._replace(**{  # the first half of the years
        name: value[rows.date < 2006.0]
        for name, value in rows._asdict().items()
        if isinstance(value, np.ndarray) and rows.date is not None
    })  # fmt: skip

    def start(rows: Chain, warm: tuple[Fit, ...] = (), covariates: bool = True, **options: Any) -> Fit:
        elements = read_elements(4, **options, aged=covariates)
        if not covariates:
            return fit_histories(
                rows._replace(x=rows.x[:, :0]), (), Options(), elements, Clock("running"), warm=warm
            )
        scaling = "minmax" if warm else "zscore"
        clock = Clock("running", ("age",), (0,))
        return fit_histories(rows, ("age",), Options(scaling=scaling), elements, clock, warm=warm)

    worse = Rows(rows.start, np.maximum(rows.start, rows.end), rows.dt, np.ones(rows.dt.size), 4)
    spent = np.zeros(2)
    known: tuple[Fit, ...] = (fit_rows(worse, rows.x, ("age",), Options()),)
    for options in CHAIN:
        cold, warm = start(rows, **options), start(rows, known, **options)
        assert warm.certificate.certified
        assert warm.inference.log_likelihood == pytest.approx(cold.inference.log_likelihood, abs=1e-6)
        spent += np.array([warm.outcome.evaluations, cold.outcome.evaluations])
        known = (warm,)
    assert spent[0] < 0.85 * spent[1]
    early = start(fewer, **CHAIN[-1])
    bare = start(fewer, covariates=False, **CHAIN[2])
    for past in (early, bare):  # fewer rows; fewer rows, covariates and elements
        again = start(rows, (past,), **CHAIN[-1])
        assert again.inference.log_likelihood == pytest.approx(cold.inference.log_likelihood, abs=1e-6)
        assert again.certificate.starts == (0 if past is early else 1)
        assert past is bare or again.outcome.evaluations < cold.outcome.evaluations
    back = start(rows, (cold,), covariates=False, **CHAIN[0])  # more elements and covariates than are fitted
    wanted = start(rows, covariates=False, **CHAIN[0])
    assert back.inference.log_likelihood == pytest.approx(wanted.inference.log_likelihood, abs=1e-6)
    # errors of another form, and held at 0: they start from a small probability
    assert cold.records is not None
    held = replace(
        cold,
        records=replace(
            cold.records, extra=np.where(np.arange(cold.records.extra.size) == 0, -np.inf, cold.records.extra)
        ),
    )
    options = CHAIN[1] | {"errors": "adjacent"}
    again, wanted = start(rows, (held,), **options), start(rows, **options)
    assert again.inference.log_likelihood == pytest.approx(wanted.inference.log_likelihood, abs=1e-6)


def test_earlier_fits_that_do_not_match_are_not_started_from() -> None:
    rows, _ = simulate(100, 5, error=0.05, seed=12)
    cold = fit(rows, errors="adjacent-common")
    other = fit(rows, errors="adjacent-common", K=5)
    failed = replace(cold, inference=replace(cold.inference, coefficients=np.full(6, np.nan)))
    elements, clock = read_elements(4, errors="adjacent-common", aged=True), Clock("running", ("age",), (0,))
    found = fit_histories(rows, ("age",), Options(), elements, clock, warm=(other, failed))
    assert found.outcome.evaluations == cold.outcome.evaluations
    np.testing.assert_array_equal(found.beta, cold.beta)


def fit_outliers(bridges: int, seed: int) -> Fit:
    """Ratings of which a tenth are wrong, with two covariates that say nothing and have outliers."""
    rows, _ = simulate(bridges, 4, error=0.1, seed=seed, slope=0.0)
    x = np.exp(1.5 * np.random.default_rng(1000 + seed).normal(size=(bridges, 2)))[rows.bridge]
    elements = read_elements(4, errors="adjacent-common")
    return fit_histories(rows._replace(x=x, date=None), ("traffic", "length"), Options(), elements, Clock())


@pytest.mark.parametrize(
    ("bridges", "seed", "lower", "higher"), [(60, 16, -172.600, -172.274), (120, 12, -383.998, -383.450)]
)
def test_the_higher_of_two_maxima_is_found(
    bridges: int, seed: int, lower: float, higher: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = fit_outliers(bridges, seed)
    assert found.certificate.certified
    assert found.inference.log_likelihood == pytest.approx(higher, abs=2e-3)
    assert found.certificate.starts > 3
    monkeypatch.setattr(history_fit, "SMALL", 0)  # all usual starts end at the other one
    alone = fit_outliers(bridges, seed)
    assert alone.certificate.certified
    assert alone.inference.log_likelihood == pytest.approx(lower, abs=2e-3)


def test_a_maximum_below_a_likelihood_that_rises_for_ever_is_not_certified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = fit_outliers(40, 17)
    assert found.certificate.verdict is Verdict.NO_FINITE_MAXIMUM
    assert "units higher towards ever larger state" in found.certificate.reasons[0]
    assert found.certificate.shortfall > 1.0
    slightly = fit_outliers(120, 7)  # higher elsewhere by less than the rows can tell
    assert slightly.certificate.certified
    assert 0.0 < slightly.certificate.shortfall < 1.0
    assert any("the rows do not tell which holds" in remark for remark in slightly.certificate.remarks)
    monkeypatch.setattr(history_fit, "SMALL", 0)
    alone = fit_outliers(40, 17)
    assert alone.certificate.certified  # the same maximum: what is said of it has changed
    np.testing.assert_allclose(found.beta, alone.beta, atol=1e-6)


def test_separated_pairs_with_errors_have_no_finite_maximum() -> None:
    x = np.random.default_rng(3).normal(size=(80, 1))
    start, number = np.zeros(80, np.int64), np.arange(80)
    rows = Chain(start, start + (x[:, 0] > 0), np.full(80, 2.0), x, number, number)
    elements = read_elements(2, errors="adjacent-common")
    found = fit_histories(rows, ("x",), Options(), elements, Clock())
    assert found.certificate.verdict is Verdict.NO_FINITE_MAXIMUM
    assert not found.certificate.maximum_exists
    assert any("state 1: x" in reason for reason in found.certificate.reasons)


def test_what_cannot_be_fitted_is_refused() -> None:
    rows, _ = simulate(20, error=0.1, seed=8)
    with pytest.raises(InputError, match=r"rating \d cannot follow the visits before it"):
        fit(rows, frailty="gamma")
    with pytest.raises(InputError, match="All rows belong to one bridge"):
        fit(rows._replace(bridge=np.zeros_like(rows.bridge)), errors="adjacent", frailty="gamma")
    elements = read_elements(4, errors="adjacent")
    with pytest.raises(InputError, match="ridge is 1"):
        fit_histories(rows, ("age",), Options(ridge=1.0), elements, Clock())
    for options, words in (
        ({"errors": np.ones((2, 2))}, "errors has shape"),
        ({"first": [0.5, 0.2, 0.2, 0.2]}, "4 probabilities that add up to 1"),
        ({"errors": [["a"]]}, "numbers are needed"),
    ):
        with pytest.raises(InputError, match=words):
            read_elements(4, **options)
