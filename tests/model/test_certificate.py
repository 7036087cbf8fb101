from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.model.certificate import Verdict, _conditioning, _judge, describe_errors, plateau_share
from rekka.model.coordinates import build_layout
from rekka.model.restarts import Restarts
from rekka.model.separation import Separation


def frame(rows):
    """Rows of (start, end, dt, x)."""
    start, end, dt, x = zip(*rows, strict=True)
    return pl.DataFrame({"state_1": start, "interval_years": dt, "x": np.asarray(x, float)}), list(end)


def fit(rows, **options):
    X, y = frame(rows)
    return rekka.ExponentialHazardMarkovModel(**options).fit(X, y)


OVERLAP = [(1, 1, 1, 0), (1, 2, 1, 0), (1, 1, 2, 1), (1, 2, 2, 1), (1, 1, 1, 2), (1, 2, 3, 2)]
SEPARATED = [(1, 1, 1, 0), (1, 1, 1, 1), (1, 2, 1, 2), (1, 2, 1, 3)]


def test_overlapping_rows_are_certified():
    certificate = fit(OVERLAP).certificate_
    assert certificate.certified
    assert certificate.verdict is Verdict.CERTIFIED
    assert certificate.maximum_exists
    assert certificate.decrement < 1e-12
    assert certificate.positive_definite
    assert certificate.reasons == ()
    assert certificate.figures["plateau_train"] == 0


def test_separated_rows_have_no_finite_maximum():
    model = fit(SEPARATED)
    certificate = model.certificate_
    assert certificate.verdict is Verdict.NO_FINITE_MAXIMUM
    assert not certificate.maximum_exists
    assert certificate.reasons[0] == (
        "state 1: the rows that left it and those that ended in it are separated by x, "
        "so there is no finite maximum (separation)"
    )
    assert "ridge" in certificate.reasons[1]
    assert -1e-6 < model.log_likelihood_ <= 0  # a likelihood above 1 would be a rounding error


def test_quasi_separated_rows_have_no_finite_maximum():
    """One row of each kind on the boundary: only weakly separated."""
    assert fit([*SEPARATED, (1, 1, 1, 1.5), (1, 2, 1, 1.5)]).certificate_.verdict is Verdict.NO_FINITE_MAXIMUM


def test_ridge_is_a_remedy():
    model = fit(SEPARATED, ridge=0.1)
    assert model.certificate_.certified
    assert np.isfinite(model.coef_).all()


def test_ridge_does_not_save_a_state_that_nobody_leaves():
    rows = [(1, 1, 1, 0), (1, 2, 1, 1), (1, 1, 2, 1), (1, 2, 1, 0), (2, 2, 1, 0), (2, 2, 2, 1)]
    certificate = fit(rows, n_states=3, ridge=1.0).certificate_
    assert certificate.verdict is Verdict.NO_FINITE_MAXIMUM
    assert certificate.reasons[0] == "state 2: no row leaves it, so there is no finite maximum (separation)"


def test_a_separated_state_can_have_a_finite_maximum():
    """At x = 1 every row left state 1, which would send its hazard to infinity in a logistic model. But they
    were seen in state 2, which is left fast there: a hazard without bound would hurry them through."""
    first = [(1, 1, 5, 0)] * 3 + [(1, 2, 5, 0)] * 3 + [(1, 2, 5, 1)] * 5
    second = [(2, 2, 5, 0)] * 2 + [(2, 3, 5, 0)] * 2 + [(2, 3, 5, 1)] * 8 + [(2, 2, 5, 1)]
    model = fit(first + second)
    assert model.certificate_.certified, model.certificate_
    assert "but the likelihood falls that way: this maximum stands" in " ".join(model.certificate_.remarks)
    assert np.abs(model.coef_).max() < 5


def test_a_state_nobody_was_in_is_not_identified():
    rows = [(1, 1, 1, 0), (1, 2, 1, 0), (1, 1, 2, 1), (1, 2, 2, 1)]
    X, y = frame(rows)
    model = rekka.ExponentialHazardMarkovModel(covariates=[], n_states=4).fit(X, y)
    assert model.certificate_.verdict in (Verdict.NO_FINITE_MAXIMUM, Verdict.NOT_IDENTIFIED)
    assert "state 2: no row leaves it" in str(model.certificate_)


def test_unidentified_alone():
    """Nobody was ever seen in or through state 3: the likelihood does not know its hazard."""
    rows = [(1, 1, 1, 0), (1, 2, 1, 0), (1, 1, 2, 1), (1, 2, 2, 1), (2, 2, 1, 0), (4, 4, 1, 0), (4, 5, 1, 0)]
    X, y = frame(rows)
    model = rekka.ExponentialHazardMarkovModel(covariates=[]).fit(X, y)
    assert not model.certificate_.certified
    assert np.isnan(model.covariance_).all()


def test_stopping_early_is_short_of_the_maximum():
    data = rekka.simulate_transitions(500)
    X, y = data.drop("state_2", "bridge_id"), data["state_2"]
    short = rekka.ExponentialHazardMarkovModel(max_iter=2).fit(X, y)
    assert not short.outcome_.success
    assert not short.converged_
    assert "iteration limit" in short.outcome_.message
    certificate = short.certificate_
    assert certificate.verdict is Verdict.SHORT_OF_MAXIMUM
    full = rekka.ExponentialHazardMarkovModel().fit(X, y)
    left = full.log_likelihood_ - short.log_likelihood_
    assert certificate.shortfall == pytest.approx(left, rel=1e-6)
    assert certificate.decrement == pytest.approx(left, rel=0.1)


def test_success_is_not_convergence():
    """L-BFGS-B with the paper's likelihood says success short of the maximum under max scaling."""
    data = rekka.simulate_transitions(700, seed=3)
    X, y = data.drop("state_2", "bridge_id"), data["state_2"]
    options = {"solver": "lbfgs", "gradient": "numeric", "likelihood": "paper"}
    fits = {s: rekka.ExponentialHazardMarkovModel(s, **options).fit(X, y) for s in ("max", "minmax")}
    best = rekka.ExponentialHazardMarkovModel().fit(X, y)
    stopped = [m for m in fits.values() if m.outcome_.success and not m.certificate_.certified]
    assert stopped
    for model in stopped:
        assert model.log_likelihood_ < best.log_likelihood_
    agreement = rekka.affine_agreement({"zscore": best.log_likelihood_} | {n: m.log_likelihood_ for n, m in fits.items()})  # fmt: skip
    assert not agreement.agree
    assert set(agreement.short) <= {"max", "minmax"}


def test_far_away_is_not_a_maximum_or_on_the_plateau():
    data = rekka.simulate_transitions(300, seed=3)
    X, y = data.drop("state_2", "bridge_id"), data["state_2"]
    model = rekka.ExponentialHazardMarkovModel("boxcox", solver="lbfgs", gradient="numeric", likelihood="paper", max_iter=1).fit(X, y)  # fmt: skip
    assert not model.certificate_.certified
    assert model.certificate_.plateau_train > 0
    assert "at or under probability 1e-12" in " ".join(model.certificate_.remarks)


def test_golden_rows_on_the_plateau_are_counted():
    model = fit([(1, 1, 1, 0), (1, 2, 1, 0)] * 20, covariates=[])
    X, y = frame([(1, 1, 0.1, 0), (1, 2, 1e-14, 0)])
    certificate = model.certify(X, y)
    assert certificate.plateau_golden == 0.5
    assert "50.00% of confirmation rows" in str(certificate)
    assert model.certificate_.plateau_golden is None


def test_figures_do_not_depend_on_the_scaling():
    data = rekka.simulate_transitions(900)
    X, y = data.drop("state_2", "bridge_id"), data["state_2"]
    fits = [
        rekka.ExponentialHazardMarkovModel(s).fit(X, y).certificate_ for s in ("max", "minmax", "zscore", None)
    ]
    conditions = [c.condition_number for c in fits]
    np.testing.assert_allclose(conditions, conditions[0], rtol=1e-6)
    assert len({c.weakest_direction for c in fits}) == 1


def test_weakly_determined_direction_is_named():
    rng = np.random.default_rng(0)
    data = rekka.simulate_transitions(400, n_states=3)
    twin = data["bridge_length"].to_numpy() * (1 + 1e-3 * rng.normal(size=400))
    X = data.select("state_1", "interval_years", "bridge_length").with_columns(twin=twin)
    model = rekka.ExponentialHazardMarkovModel().fit(X, data["state_2"])
    assert model.certificate_.certified
    assert model.certificate_.condition_number > 1e4
    assert "twin" in model.certificate_.weakest_direction
    assert "weakly determined along" in " ".join(model.certificate_.remarks)
    assert model.certificate_.remarks[0].endswith("its covariate nearly repeats the others")


def test_certificate_reads_as_text():
    text = str(fit(OVERLAP * 4).certificate_)
    assert text.startswith("certified: a maximum of the likelihood\n")
    assert "distance to the maximum" in text


def test_agreement_names_the_fit_that_stopped_short():
    agreement = rekka.affine_agreement({"max": -100.96, "minmax": -100.0, "zscore": -100.0})
    assert not agreement.agree
    assert agreement.short == {"max": pytest.approx(0.96)}
    assert rekka.affine_agreement([("max", -5.0), ("zscore", -5.0 - 1e-9)]).agree
    assert not rekka.affine_agreement({"max": -5.0, "zscore": float("nan")}).agree


NOBODY_LEFT = Separation((2,), ("intercept",), np.array([1]), np.ones(1), True, True, False)


@pytest.mark.parametrize(
    ("escapes", "condition", "decrement", "shortfall", "verdict", "words"),
    [
        (
            [NOBODY_LEFT],
            1.0,
            0.0,
            0.0,
            Verdict.NO_FINITE_MAXIMUM,
            "so there is no finite maximum (separation)",
        ),
        ([], 1e13, 0.0, 0.0, Verdict.NOT_IDENTIFIED, "the likelihood does not change along state 1: age"),
        (
            [],
            10.0,
            np.inf,
            0.0,
            Verdict.NOT_A_MAXIMUM,
            "the curvature is not that of a maximum along state 1: age",
        ),
        ([], 10.0, 0.3, 0.0, Verdict.SHORT_OF_MAXIMUM, "about 0.3 log-likelihood units remain (limit 1e-06)"),
        ([], 10.0, 0.0, 3.27, Verdict.SHORT_OF_MAXIMUM, "about 3.3 log-likelihood units remain"),
        ([], 10.0, 1e-7, 1e-9, Verdict.CERTIFIED, None),
    ],
)
def test_the_gravest_finding_is_the_verdict(escapes, condition, decrement, shortfall, verdict, words):
    restarts = Restarts(np.zeros(1), None, 4, shortfall)
    found, reasons = _judge(escapes, condition, decrement, restarts, "state 1: age")
    assert found is verdict
    assert reasons == [] if words is None else words in reasons[0]


def test_a_point_between_two_hills_is_not_a_maximum():
    """One step of L-BFGS-B from the paper's start ends where the likelihood curves the wrong way."""
    data = rekka.simulate_transitions(500, seed=1)
    X, y = data.drop("state_2", "bridge_id"), data["state_2"]
    model = rekka.ExponentialHazardMarkovModel("max", solver="lbfgs", max_iter=1, seed=2).fit(X, y)
    assert model.certificate_.verdict in (Verdict.NOT_A_MAXIMUM, Verdict.SHORT_OF_MAXIMUM)
    assert model.certificate_.maximum_exists


@pytest.mark.parametrize(("sign", "joined"), [(1, "against"), (-1, "with")])
@pytest.mark.parametrize("turned", [1, -1])
def test_the_weakest_direction_says_which_way_terms_go(sign, joined, turned, monkeypatch):
    """What a covariate gives, its near twin can take; and the direction turned round is the same direction."""
    eigh = np.linalg.eigh
    monkeypatch.setattr("numpy.linalg.eigh", lambda matrix: (eigh(matrix)[0], turned * eigh(matrix)[1]))
    here = SimpleNamespace(hessian=np.array([[1.0, 0.0, 0.0], [0.0, 1.0, sign * 0.99], [0.0, sign * 0.99, 1.0]]))
    layout = build_layout(["length", "twin"], 2, None, None)
    condition, words = _conditioning(SimpleNamespace(standard=np.eye(3)), layout, here)
    assert condition == pytest.approx(1.99 / 0.01)
    assert sorted(words.split(f" {joined} ")) == ["state 1: length", "state 1: twin"]


def test_a_probability_that_is_no_number_is_on_the_plateau():
    level = np.log(1e-12)
    assert plateau_share(np.array([0.0, level, np.nan, -np.inf])) == 0.75
    assert plateau_share(np.array([0.0, np.nextafter(level, 0)])) == 0.0


def test_the_rate_of_a_state_is_not_named_beside_an_effect_on_it():
    """Both are uncertain for one reason; alone, the rate is named."""
    layout = build_layout(["age"], 3, {"age": [1]}, None)
    coordinates = SimpleNamespace(standard=np.eye(3), unit=1.0)
    remarks = describe_errors(
        coordinates, layout, np.zeros(3), SimpleNamespace(hessian=np.diag([0.01, 0.01, 1.0]))
    )
    assert "the effect of age on leaving state 1" in remarks[0]
    assert "the rate of" not in remarks[0]
    remarks = describe_errors(
        coordinates, layout, np.zeros(3), SimpleNamespace(hessian=np.diag([1.0, 0.01, 0.01]))
    )
    assert "the rate of leaving state 2" in remarks[0]
