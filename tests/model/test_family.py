"""The seam for model families: families written here, in one file, run through everything that a fit is asked for.

``Scaled`` has another link and ``Paced`` another step; both are the exponential model in other words, so that every
figure but the intercepts must be that of the exponential fit. Whoever exponentiates a predictor, inverts a hazard or
calls a kernel past the family is off by FACTOR. ``Softplus`` is another model.
"""

import math
from dataclasses import fields, is_dataclass, replace

import numpy as np
import polars as pl
import pytest
from scipy import special
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption, ModelFileError
from rekka.evaluation.pooling import pool_cases
from rekka.evaluation.resampling import Sample
from rekka.evaluation.ridge import choose_ridge
from rekka.fleet.backtest_rows import Chains
from rekka.fleet.backtest_scores import Network
from rekka.fleet.network import propagate_gradients
from rekka.forecast.ageing import plan_ageing
from rekka.forecast.first_passage import find_first_passage
from rekka.forecast.matrices import MEDIAN, lay_out
from rekka.forecast.profiles import profile_covariate
from rekka.forecast.propagation import Propagator, propagate
from rekka.model.family import EXPONENTIAL, FAMILIES, Family, find_family, register
from rekka.model.fit import Options, check_options, fit_rows
from rekka.model.likelihood import Likelihood, Rows
from rekka.model.serial import ModelFile, load_model
from rekka.model.survey import FitTest
from rekka.model.tables import ratio_interval
from rekka.streaming.blocks import FrameSource, Reading
from rekka.streaming.fit import fit_source
from rekka.study.plan import PRESETS
from rekka.study.trial import Fitted

FACTOR = 1.6
COVARIATES = ("age_at_inspection_1", "bridge_length")
FRAME = rekka.simulate_transitions(400, n_states=4, seed=5)


class LogLinear(Family):
    """theta = exp(eta), by the plain code for any link."""

    proportional = True

    def log_hazards(self, eta):
        return eta

    def predictors(self, log_hazards):
        return log_hazards

    def bend(self, eta):
        return np.ones_like(eta), np.zeros_like(eta)


class Scaled(LogLinear):
    """theta = FACTOR exp(eta)."""

    def log_hazards(self, eta):
        return eta + math.log(FACTOR)

    def predictors(self, log_hazards):
        return log_hazards - math.log(FACTOR)


class Paced(LogLinear):
    """theta = exp(eta) in a time that runs FACTOR times as fast as the years."""

    def differentiate(self, rows, beta, lo, hi):
        return super().differentiate(rows._replace(dt=FACTOR * rows.dt), beta, lo, hi)

    def end_probabilities(self, eta, dt, start):
        return super().end_probabilities(eta, FACTOR * dt, start)

    def matrices(self, theta, years):
        return super().matrices(theta, FACTOR * years)

    def step(self, p, theta, h):
        super().step(p, theta, FACTOR * h)

    def step_integrated(self, p, theta, h, years):
        spent = np.zeros_like(years)
        super().step_integrated(p, theta, FACTOR * h, spent)
        years += spent / FACTOR

    def step_sloped(self, p, slope, theta, h, drive):
        super().step_sloped(p, slope, theta, FACTOR * h, drive)

    def from_rates(self, log_rates):
        return log_rates - math.log(FACTOR)

    def mean_years(self, theta):
        return super().mean_years(FACTOR * theta)

    def median_years(self, theta):
        return super().median_years(FACTOR * theta)

    def cross(self, p, theta, h, state, target):
        return super().cross(p, theta, FACTOR * h, state, target) / FACTOR

    def draw_ends(self, theta, dt, start, u):
        return super().draw_ends(theta, FACTOR * dt, start, u)

    def live_through(self, theta, state, left, budget, years):
        super().live_through(theta, state, left, budget, FACTOR * years)


class Softplus(Family):
    """theta = log(1 + exp(eta)): exponential far below, linear far above."""

    def log_hazards(self, eta):
        return np.where(eta < -30.0, eta, np.log(np.logaddexp(0.0, np.maximum(eta, -30.0))))

    def predictors(self, log_hazards):
        theta = np.exp(log_hazards)
        return np.where(log_hazards < -30.0, log_hazards, theta + np.log(-np.expm1(-np.maximum(theta, 1e-14))))

    def bend(self, eta):
        eta = np.maximum(eta, -30.0)
        share = special.expit(eta)
        first = share / np.logaddexp(0.0, eta)
        return first, first * (1.0 - share - first)


SAME = [Scaled("scaled"), Paced("paced")]
TOYS = [*SAME, LogLinear("log-linear"), Softplus("softplus")]


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    for family in TOYS:
        monkeypatch.setitem(FAMILIES, family.name, family)


def fit_model(family: Family = EXPONENTIAL, **options):
    kind = type("Toy", (rekka.ExponentialHazardMarkovModel,), {"_family": family.name})
    return kind(covariates=list(COVARIATES), **options).fit(FRAME, FRAME["state_2"], groups=FRAME["bridge_id"])


@pytest.fixture(scope="module")
def plain():
    return fit_model()


def run_study():
    rows = draw_rows(("Pier",), n=120)
    return rekka.compare(
        rows, methods=["zscore", "boxcox"], select_on="validation", guard={"resamples": 2}, covariates=COVARIATES
    )


@pytest.fixture(scope="module")
def reported():
    """A study of the exponential family, and its report."""
    study = run_study()
    return study, study.report(calibrate=False)


def numbers(value, path=""):
    """Every number in a result, by where it is."""
    if isinstance(value, pl.DataFrame):
        return numbers({name: value[name].to_list() for name in value.columns}, path)
    if is_dataclass(value):
        return numbers({one.name: getattr(value, one.name) for one in fields(value)}, path)
    if isinstance(value, dict):
        return {key: one for name, part in value.items() for key, one in numbers(part, f"{path}.{name}").items()}
    if isinstance(value, list | tuple):
        return numbers(dict(enumerate(value)), path)
    if isinstance(value, np.ndarray):
        return numbers(value.tolist(), path)
    return {path: float(value)} if isinstance(value, int | float) else {}


def assert_same(one, other, rel=1e-6):
    ours, theirs = numbers(one), numbers(other)
    assert ours
    assert ours == pytest.approx(theirs, rel=rel, abs=1e-9, nan_ok=True)


def take_rows(n_states=4):
    start, end = (FRAME[name].to_numpy().astype(np.int64) - 1 for name in ("state_1", "state_2"))
    dt = FRAME["interval_years"].to_numpy()
    return Rows(start, end, dt, np.linspace(0.5, 2.0, dt.size), n_states), FRAME.select(COVARIATES).to_numpy()


def build(family):
    rows, x = take_rows()
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    order = rows.grouping
    return Likelihood.build(rows.take(order), np.column_stack([np.ones(len(z)), z])[order], 1, family)


class TestLikelihood:
    def test_the_compiled_pairs_are_the_plain_ones(self):
        beta = np.random.default_rng(1).normal(-1.5, 0.4, (3, 3))
        compiled, written = build(EXPONENTIAL), build(LogLinear("log-linear"))
        for order in range(3):
            for ours, theirs in zip(compiled.evaluate(beta, order), written.evaluate(beta, order), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
        for ours, theirs in zip(compiled.by_row(beta), written.by_row(beta), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)

    @pytest.mark.parametrize("family", TOYS, ids=lambda one: one.name)
    def test_derivatives(self, family):
        likelihood, beta = build(family), np.random.default_rng(2).normal(-1.0, 0.5, 9)
        here, h = likelihood.evaluate(beta), 1e-5
        for k, one in enumerate(np.eye(9)):
            there, back = (likelihood.evaluate(beta + side * h * one) for side in (1, -1))
            assert here.gradient[k] == pytest.approx((there.value - back.value) / (2 * h), rel=1e-6, abs=1e-6)
            np.testing.assert_allclose(
                here.hessian[k], (there.gradient - back.gradient) / (2 * h), rtol=1e-5, atol=1e-5
            )

    @pytest.mark.parametrize("family", TOYS, ids=lambda one: one.name)
    def test_links_go_there_and_back(self, family):
        eta = np.linspace(-40.0, 12.0, 80)
        np.testing.assert_allclose(family.predictors(family.log_hazards(eta)), eta, rtol=1e-9)
        h = 1e-6
        slope = (family.log_hazards(eta + h) - family.log_hazards(eta - h)) / (2 * h)
        np.testing.assert_allclose(family.bend(eta)[0], slope, rtol=1e-4)


@pytest.mark.parametrize("family", SAME, ids=lambda one: one.name)
class TestTheSameModelInOtherWords:
    def test_fit(self, family, plain):
        ours = fit_model(family)
        assert ours.certificate_.certified
        assert ours.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(ours.intercept_, plain.intercept_ - math.log(FACTOR), rtol=1e-7)
        np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(ours.covariance_, plain.covariance_, rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(ours.predict_proba(FRAME), plain.predict_proba(FRAME), atol=1e-9)
        assert ours.log_loss(FRAME, FRAME["state_2"]) == pytest.approx(plain.log_loss(FRAME, FRAME["state_2"]))

    def test_model_files(self, family):
        ours = fit_model(family)
        text = ours.to_json()
        read = rekka.ExponentialHazardMarkovModel.from_json(text)
        assert read._fit.family == family
        assert (read.predict_proba(FRAME) == ours.predict_proba(FRAME)).all()
        assert read.to_json() == text
        del FAMILIES[family.name]
        with pytest.raises(ModelFileError, match=f"family '{family.name}', which is not known here; exponential"):
            rekka.ExponentialHazardMarkovModel.from_json(text)

    @pytest.mark.parametrize("solver", ["newton", "lbfgs"])
    def test_streamed_fit(self, family, solver):
        reading = Reading("state_1", "state_2", "interval_years", COVARIATES, group="bridge_id")
        options = Options(solver=solver, seed=1)
        ours, theirs = (
            fit_source(FrameSource(FRAME, reading), replace(options, family=name), clustered=True)
            for name in (family.name, "exponential")
        )
        assert ours.family == family
        value = theirs.inference.log_likelihood
        assert ours.inference.log_likelihood == pytest.approx(value, abs=1e-9 if solver == "newton" else 1e-3)
        if solver == "newton":
            np.testing.assert_allclose(ours.inference.covariance, theirs.inference.covariance, rtol=1e-5)

    @pytest.mark.parametrize("intervals", ["delta", "normal", "none"])
    def test_forecasts(self, family, plain, intervals):
        ours, how = fit_model(family), {"intervals": intervals, "draws": 100}
        at = {"age_at_inspection_1": 30.0, "bridge_length": 25.0}
        for ask in (
            lambda model: model.forecast(at, years=[0.5, 1, 20], **how),
            lambda model: model.years_to_reach(4, at, quantiles=[0.1, 0.9], **how),
            lambda model: model.years_to_reach(4, at, quantiles=[1 - 1e-9], age="fixed", **how),
            lambda model: model.sojourn(at, **how),
            lambda model: model.transition_matrix(5, at, **how).probability,
            lambda model: lay_out(model.transition_matrix(1, at), MEDIAN),
        ):
            assert_same(ask(ours), ask(plain), rel=1e-5)

    def test_effects_profiles_and_years(self, family, plain):
        ours = fit_model(family)
        assert_same(ours.marginal_effects(), plain.marginal_effects())
        names = ("years", "years_se", "years_low", "years_high")
        assert_same(ours.hazards(FRAME[:5]).select(names), plain.hazards(FRAME[:5]).select(names))
        faster = FACTOR if isinstance(family, Paced) else 1.0
        for one, other in zip(
            (ours.hazards(FRAME[:5])["hazard"], profile_covariate(ours._fit, "bridge_length").hazard),
            (plain.hazards(FRAME[:5])["hazard"], profile_covariate(plain._fit, "bridge_length").hazard),
            strict=True,
        ):
            np.testing.assert_allclose(np.asarray(one) * faster, np.asarray(other), rtol=1e-6)
        before, after = np.array([20.0, 30.0]), np.array([40.0, 30.0])
        assert_same(ratio_interval(ours._fit, before, after, 0.9), ratio_interval(plain._fit, before, after, 0.9))

    def test_inventories(self, family, plain):
        ours = fit_model(family)
        x, start = FRAME[:6].select(COVARIATES).to_numpy(), np.array([0, 0, 1, 1, 2, 3])
        gap = np.array([0.0, 0.5, 1.7, 2.0, 0.1, 3.0])
        chains = make_chains(start.size)
        budget = np.random.default_rng(0).standard_exponential((2, 1, start.size, 4))

        def ask(fit):
            propagator = Propagator(fit, x, fit.coefficients[None], plan_ageing(fit))
            network = Network(propagator, start, chains)
            return {
                "walk": list(propagate(propagator, start, [1.0, 7.5], gap)),
                "sloped": [p for p, _ in propagate_gradients(propagator, start, 5, gap)],
                "slope": [slope for _, slope in propagate_gradients(propagator, start, 5, gap)],
                "first passage": find_first_passage(propagator, start, 3, [0.1, 0.5], gap=gap, horizon=5),
                "drawn": [states for _, states in network.draw(fit.coefficients[None], budget)],
            }

        assert_same(ask(ours._fit), ask(plain._fit))

    def test_tests_of_fit_and_resampling(self, family, plain):
        ours = fit_model(family)
        asked = [m.check_fit(FRAME, FRAME["state_2"], replicates=19, seed=3).fit_test_ for m in (ours, plain)]
        assert_same(*asked)
        drawn = [
            m.bootstrap(FRAME, FRAME["state_2"], groups=FRAME["bridge_id"], draws=3).resampled_.beta
            for m in (ours, plain)
        ]
        np.testing.assert_allclose(drawn[0][..., 1:], drawn[1][..., 1:], rtol=1e-5, atol=1e-8)

    def test_shrinkage(self, family):
        sample = Sample.of(FRAME.head(150), COVARIATES, 4)
        ours, theirs = (
            choose_ridge(sample, Options(threads=1, family=name), grid=[1.0, 30.0]).values
            for name in (family.name, "exponential")
        )
        assert_same([one.loss for one in ours], [one.loss for one in theirs])
        other = Sample.of(FRAME.tail(150), COVARIATES, 4)
        pooled = [
            pool_cases({"a": sample, "b": other}, threads=1, family=one).mean for one in (family, EXPONENTIAL)
        ]
        shift = np.zeros_like(pooled[0])
        shift[:, 0] = math.log(FACTOR)
        np.testing.assert_allclose(pooled[0] + shift, pooled[1], rtol=1e-4, atol=1e-6)

    @pytest.mark.usefixtures("no_pictures")
    def test_a_study_and_its_report(self, family, reported, monkeypatch):
        theirs, known = reported
        options = PRESETS["exact"].options | {"family": family.name}
        monkeypatch.setitem(PRESETS, "exact", PRESETS["exact"].model_copy(update={"options": options}))
        ours = run_study()
        judged = ("log_likelihood", "accuracy", "log_loss", "brier", "rps", "macro_recall")
        assert_same(ours.trials.select(judged), theirs.trials.select(judged))
        assert ours.trials["method"].equals(theirs.trials["method"])
        report = ours.report(calibrate=False)
        for one, other in zip(report.document.models, known.document.models, strict=True):
            assert (one.method, one.certified) == (other.method, other.certified)
            for part in ("ratios", "years", "forecast"):
                figures = (numbers(model.model_dump()[part]) for model in (one, other))
                first, second = ({k: v for k, v in some.items() if "hazard" not in k} for some in figures)
                assert_same(first, second, rel=1e-4)  # hazards themselves are in the family's own time
        assert "<html" in report.html


def make_chains(members):
    """Two visits of every member, after 2.5 and 6 years."""
    member = np.tile(np.arange(members), 2)
    step = np.repeat([0, 1], members)
    since, horizon = np.repeat([0.0, 2.5], members), np.repeat([2.5, 6.0], members)
    return Chains(np.arange(members), member, np.arange(member.size), since, horizon, step)


def test_another_link_is_another_model(plain):
    """What is asked of a softplus fit agrees with itself, and differs from the exponential fit."""
    ours = fit_model(Softplus("softplus"))
    assert ours.certificate_.certified
    assert abs(ours.log_likelihood_ - plain.log_likelihood_) > 1e-3
    fit, x = ours._fit, FRAME[:4].select(COVARIATES).to_numpy()
    theta = np.log1p(np.exp(fit.design(x) @ fit.coefficients.T))
    table = ours.hazards(FRAME[:4])
    np.testing.assert_allclose(table["hazard"].to_numpy().reshape(theta.shape), theta, rtol=1e-9)
    np.testing.assert_allclose(table["years"].to_numpy().reshape(theta.shape), 1.0 / theta, rtol=1e-9)
    propagator = Propagator(fit, x, fit.coefficients[None], plan_ageing(fit, "fixed"))
    (p,) = propagate(propagator, np.zeros(4, np.int64), [3.0])
    np.testing.assert_allclose(p[0], rekka.transition_probabilities(theta, 3.0)[:, 0], atol=1e-12)
    ratio, _, _ = ratio_interval(fit, x[0], x[1], 0.95)
    np.testing.assert_allclose(ratio, theta[1] / theta[0], rtol=1e-9)
    assert ours.summary()["hazard_ratio"].null_count() == len(ours.summary())


def test_slopes_of_another_link_are_those_of_differences():
    fit = fit_model(Softplus("softplus"))._fit
    x, start = FRAME[:5].select(COVARIATES).to_numpy(), np.array([0, 1, 2, 0, 1])
    course = plan_ageing(fit)

    def sums(coefficients):
        propagator = Propagator(fit, x, coefficients[None], course)
        return [p[0].sum(axis=0) for p in propagate(propagator, start, range(4))]

    propagator = Propagator(fit, x, fit.coefficients[None], course)
    found = [slope for _, slope in propagate_gradients(propagator, start, 3)]
    for place in np.ndindex(fit.coefficients.shape):
        h = np.zeros(fit.coefficients.shape)
        h[place] = 1e-6
        for slope, high, low in zip(found, sums(fit.coefficients + h), sums(fit.coefficients - h), strict=True):
            np.testing.assert_allclose(slope[(slice(None), *place)], (high - low) / 2e-6, rtol=1e-4, atol=1e-6)


def test_files_of_the_exponential_family_do_not_name_it(plain):
    text = plain.to_json()
    assert "family" not in text
    assert ModelFile.model_validate_json(text).to_text() == text
    fitted = Fitted(None, text, None).with_test(FitTest(0.3, 1.0, 0.05, 30, 0, 0, 1, 100))
    assert "family" not in fitted.model
    toy = Fitted(None, fit_model(SAME[0]).to_json(), None).with_test(FitTest(0.3, 1.0, 0.05, 30, 0, 0, 1, 100))
    assert load_model(toy.model)[0].family == SAME[0]


def test_unknown_families_are_refused():
    with pytest.raises(BadOption, match="family is 'weibul'; it can be exponential"):
        check_options(Options(family="weibul"))
    with pytest.raises(BadOption, match="exponential family, not 'scaled'"):
        check_options(Options(solver="lbfgs", gradient="numeric", likelihood="paper", family="scaled"))


def test_a_family_registers_itself_by_name(monkeypatch):
    monkeypatch.delitem(FAMILIES, "scaled")
    family = register(Scaled("scaled"))
    assert find_family("scaled") is family
    rows, x = take_rows()
    assert fit_rows(rows, x, COVARIATES, Options(family="scaled")).family is family
