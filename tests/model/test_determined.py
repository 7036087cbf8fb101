"""What the certificate says of estimates that few rows decide, of weights, and of rows that say nothing."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import rekka
from rekka.model.certificate import FEW_EVENTS, MOST_NAMED, Verdict, _conditioning, count_pairs
from rekka.model.coordinates import Coordinates, build_layout
from rekka.model.fit import Options
from rekka.model.likelihood import Evaluation, Likelihood, Rows
from rekka.streaming.blocks import FrameSource, Reading
from rekka.streaming.fit import fit_source


def frame(rows):
    """Rows of (start, end, years, x)."""
    start, end, dt, x = zip(*rows, strict=True)
    return pl.DataFrame({"state_1": start, "interval_years": dt, "x": np.asarray(x, float)}), list(end)


def fit(rows, weight=None, **options):
    X, y = frame(rows)
    return rekka.ExponentialHazardMarkovModel(threads=1, **options).fit(X, y, weight)


def mixed(n=300, seed=3, n_states=3):
    """Simulated rows with a weight, a covariate, and some that start in the worst state."""
    data = rekka.simulate_transitions(n, n_states=n_states, seed=seed)
    return data.select("state_1", "interval_years", "state_2", "bridge_id", x="age_at_inspection_1")


def features(data):
    return data.drop("state_2", "bridge_id")


# Of 40 rows with x below 2 none leaves, of 40 above all do, but for one pair that overlaps by a hair.
NEARLY = [(1, 1, 1, v) for v in np.linspace(0, 1.99, 40)] + [(1, 2, 1, v) for v in np.linspace(2.01, 4, 40)]
NEARLY += [(1, 1, 1, 2.001), (1, 2, 1, 1.999)]


class TestHardlyDetermined:
    def test_near_separation_is_named(self):
        certificate = fit(NEARLY).certificate_
        assert certificate.verdict is Verdict.CERTIFIED
        assert not certificate.determined
        assert str(certificate).startswith("certified: a maximum of the likelihood, but hardly determined\n")
        remark = certificate.remarks[0]
        assert remark.startswith("hardly determined: the effect of x on leaving state 1 (estimate ")
        assert remark.endswith(" per standard deviation): a few rows decide it")

    def test_the_figures_are_those_of_the_standardised_covariate(self):
        model = fit(NEARLY)
        sd = np.std([x for *_, x in NEARLY])
        row = model.summary().filter(term="x").row(0, named=True)
        remark = model.certificate_.remarks[0]
        assert f"(estimate {row['estimate'] * sd:,.3g}, standard error {row['se'] * sd:,.4g} per" in remark

    def test_a_plain_fit_has_no_such_remark(self):
        certificate = rekka.ExponentialHazardMarkovModel().fit(features(mixed()), mixed()["state_2"]).certificate_
        assert certificate.determined
        assert certificate.remarks == ()
        assert certificate.headline == certificate.verdict == "certified: a maximum of the likelihood"

    def test_few_departures_are_counted(self):
        """Three events for three covariates and an intercept."""
        rng = np.random.default_rng(1)
        x = rng.normal(size=(40, 3))
        end = np.where(np.isin(np.arange(40), [3, 17, 30]), 2, 1)
        X = pl.DataFrame(
            {"state_1": 1, "interval_years": np.full(40, 2.0), "a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}
        )
        certificate = rekka.ExponentialHazardMarkovModel(ridge=0.001).fit(X, end).certificate_
        assert certificate.certified
        assert "3 rows leave state 1, for " in " ".join(certificate.remarks)
        assert certificate.headline.endswith(", but hardly determined")

    def test_departures_are_beside_the_coefficients_of_their_state(self):
        rows = [(1, 1, 1, i % 5) for i in range(50)] + [(1, 2, 1, i % 5) for i in range(30)]
        rows += [(2, 2, 1, i % 5) for i in range(20)] + [(2, 3, 1, 1), (2, 3, 1, 3)]
        remarks = " ".join(fit(rows).certificate_.remarks)
        assert "2 rows leave state 2, for 2 coefficients: fewer than 5 for each" in remarks
        assert "leave state 1" not in remarks
        remarks = " ".join(fit(rows, effects={"x": [1]}).certificate_.remarks)
        assert "2 rows leave state 2, for 1 coefficient:" in remarks
        remarks = " ".join(fit(rows, shared={"x": [[1, 2]]}).certificate_.remarks)
        assert "2 rows leave state 2, for 1 coefficient:" in remarks
        assert "states 1, 2" not in remarks  # 32 rows leave either, for 3

    def test_rows_of_weight_0_do_not_count_and_weights_are_numbers_of_rows(self):
        rows = [(1, 1, 1, i % 5) for i in range(20)] + [(1, 2, 1, i % 5) for i in range(12)]
        assert fit(rows).certificate_.determined
        weight = np.ones(len(rows))
        weight[-4:] = 0
        assert "8 rows leave state 1" in fit(rows, weight).certificate_.remarks[0]
        assert fit(rows, 2 * weight).certificate_.determined  # 16 rows

    def test_a_prior_that_holds_the_coefficients_needs_no_departures(self):
        rows = [(1, 1, 1, i % 5) for i in range(20)] + [(1, 2, 1, 1), (1, 2, 1, 3)]
        held = {"mean": [-2.0, 0.0], "precision": [[1e4, 0.0], [0.0, 1e4]]}
        assert not fit(rows).certificate_.determined
        assert fit(rows, prior=held).certificate_.determined

    def test_small_weights_are_made_to_average_one(self):
        table = np.array([[6.0, 2.0], [0.0, 9.0]])
        np.testing.assert_allclose(count_pairs(table, 8), table)
        np.testing.assert_allclose(count_pairs(table * 1e-6, 8)[0], table[0])
        np.testing.assert_allclose(count_pairs(table * 50, 8), table * 50)
        assert FEW_EVENTS == 5


def test_the_weakest_direction_is_named_where_all_weights_are_small():
    """18 terms of the same small weight: none is above .3, which was an IndexError."""
    layout = build_layout(["a", "b", "c", "d", "e"], 4, None, None)
    P = layout.n_parameters
    assert P == 18
    hessian = np.eye(P) - 0.999 * np.full((P, P), 1 / P)
    identity = np.eye(P)
    coordinates = Coordinates(
        None, identity, identity, identity, identity, np.zeros((P, P)), np.zeros(P), 0.0, 0.0
    )
    condition, words = _conditioning(coordinates, layout, Evaluation(1.0, np.zeros(P), hessian))
    assert condition == pytest.approx(1000, rel=0.01)
    assert words.count(" with ") + words.count(" against ") == MOST_NAMED - 1
    assert words.startswith("state ")


class TestNobodyLeaves:
    ROWS = ((1, 1, 1, 0), (1, 2, 1, 1), (1, 1, 2, 1), (1, 2, 1, 0), (2, 2, 1, 0), (2, 2, 2, 1))

    def test_no_penalty_is_offered(self):
        reasons = fit(self.ROWS, n_states=3).certificate_.reasons
        assert reasons[0] == "state 2: no row leaves it, so there is no finite maximum (separation)"
        assert reasons[1].startswith(
            "where no row leaves a state: merge it with the next state, collect longer records"
        )
        assert len(reasons) == 2
        assert "a ridge penalty does not help" in reasons[1]

    def test_nor_where_the_effect_is_shared(self):
        reasons = fit(self.ROWS, n_states=3, shared={"x": [[1, 2]]}).certificate_.reasons
        assert reasons[0] == "state 2: no row leaves it, so there is no finite maximum (separation)"
        assert len(reasons) == 2

    def test_where_everybody_leaves(self):
        reasons = fit([(1, 2, 1, 0), (1, 2, 1, 1), (1, 2, 2, 3)]).certificate_.reasons
        assert reasons[0].startswith("state 1: no row ends in it")
        assert "a ridge penalty does not help" in reasons[1]

    def test_separation_by_covariates_keeps_its_remedy(self):
        rows = [(1, 1, 1, 0), (1, 1, 1, 1), (1, 2, 1, 2), (1, 2, 1, 3)]
        assert fit(rows).certificate_.reasons[1] == "remedies: a ridge penalty, fewer covariates, or merged states"


class TestScaleOfTheWeights:
    @pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
    def test_it_changes_neither_coefficients_nor_verdict_nor_iterations(self, scale):
        data = mixed()
        weight = np.random.default_rng(0).choice([0.5, 1.0, 1.5], len(data))
        model = rekka.ExponentialHazardMarkovModel(threads=1)
        plain = model.fit(features(data), data["state_2"], weight)
        coefficients, outcome, certificate = plain.coef_, plain.outcome_, plain.certificate_
        other = rekka.ExponentialHazardMarkovModel(threads=1).fit(features(data), data["state_2"], scale * weight)
        np.testing.assert_allclose(other.coef_, coefficients, rtol=1e-9)
        assert other.outcome_.iterations == outcome.iterations
        assert other.certificate_.headline == certificate.headline == Verdict.CERTIFIED
        assert other.log_likelihood_ == pytest.approx(scale * plain.log_likelihood_, rel=1e-9)

    @pytest.mark.parametrize("scale", [1e-6, 1e6])
    def test_a_fit_that_stopped_short_is_as_far_from_its_maximum(self, scale):
        data = mixed()
        model = rekka.ExponentialHazardMarkovModel(threads=1, max_iter=1)
        near = model.fit(features(data), data["state_2"]).certificate_
        far = model.fit(features(data), data["state_2"], np.full(len(data), scale)).certificate_
        assert far.verdict is near.verdict is Verdict.SHORT_OF_MAXIMUM
        assert far.decrement == pytest.approx(near.decrement, rel=1e-6)
        assert far.shortfall == pytest.approx(near.shortfall, rel=1e-6)

    def test_lbfgs_stops_where_it_stopped(self):
        data = mixed()
        model = rekka.ExponentialHazardMarkovModel(threads=1, solver="lbfgs")
        plain = model.fit(features(data), data["state_2"])
        iterations, coefficients = plain.outcome_.iterations, plain.coef_
        small = model.fit(features(data), data["state_2"], np.full(len(data), 2.0**-20))
        assert small.outcome_.iterations == iterations
        np.testing.assert_allclose(small.coef_, coefficients, rtol=1e-6)

    @pytest.mark.parametrize("scale", [1e-6, 1e6])
    def test_no_finite_maximum_stays_none(self, scale):
        rows = [
            (2, 2, 1.0, 0.0),
            (1, 2, 2, 2),
            (2, 2, 2, 1),
            (1, 2, 5, 0),
            (2, 3, 5, 1),
            (2, 2, 3, 0),
            (1, 1, 5, 4),
        ]
        assert fit(rows, np.full(7, scale)).certificate_.verdict is Verdict.NO_FINITE_MAXIMUM


class TestRowsThatStartInTheWorstState:
    def more(self, data, rows=200):
        worst = int(data["state_2"].max())
        draw = np.random.default_rng(2).exponential(400, rows)
        names = [f"more {i}" for i in range(rows)]
        parts = {"state_1": worst, "interval_years": 1.0, "state_2": worst, "bridge_id": names, "x": draw}
        more = pl.DataFrame(parts).select(pl.col(name).cast(data[name].dtype) for name in data.columns)
        return pl.concat([data, more])

    @pytest.mark.parametrize("options", [{}, {"ridge": 2.0}, {"class_weight": "inverse_frequency"}], ids=str)
    @pytest.mark.parametrize("clustered", [False, True])
    def test_they_change_no_number(self, options, clustered):
        data = mixed().filter(pl.col("state_1") < 3).with_columns(bridge_id=pl.col("bridge_id").cast(pl.String))
        fits = []
        for rows in (data, self.more(data)):
            groups = rows["bridge_id"].to_numpy() if clustered else None
            model = rekka.ExponentialHazardMarkovModel(threads=1, **options)
            fits.append(model.fit(features(rows), rows["state_2"], groups=groups))
        one, other = (model._fit for model in fits)
        assert other.n_rows == one.n_rows + 200
        for name in ("coefficients", "covariance", "log_likelihood", "degrees_of_freedom", "aic", "bic"):
            np.testing.assert_allclose(getattr(other.inference, name), getattr(one.inference, name), rtol=1e-8)
        assert other.inference.kind == one.inference.kind
        for name, value in one.certificate.figures.items():
            if isinstance(value, float) and name not in ("decrement", "shortfall"):
                assert getattr(other.certificate, name) == pytest.approx(value, rel=1e-6)
        assert (other.outcome.iterations, other.certificate.headline) == (
            one.outcome.iterations,
            one.certificate.headline,
        )
        n = int((data["state_1"] < 3).sum())
        inference = one.inference
        assert inference.bic == pytest.approx(
            -2 * inference.log_likelihood + np.log(n) * inference.degrees_of_freedom
        )

    def test_a_covariate_that_varies_in_them_alone_is_a_verdict(self):
        data = mixed(100).filter(pl.col("state_1") < 3).with_columns(x=pl.lit(1.0))
        data = self.more(data.with_columns(bridge_id=pl.col("bridge_id").cast(pl.String)), 20)
        model = rekka.ExponentialHazardMarkovModel(threads=1).fit(features(data), data["state_2"])
        assert model.certificate_.verdict is Verdict.NOT_IDENTIFIED

    def test_the_crude_start_does_not_see_them(self):
        rows = Rows(np.array([0, 0, 1, 1, 0]), np.array([0, 1, 1, 2, 2]), np.arange(1.0, 6), np.ones(5), 3)
        more = Rows(*(np.append(part, [v] * 4) for part, v in zip((rows.start, rows.end, rows.dt, rows.weight), (2, 2, 50.0, 1.0), strict=True)), 3)  # fmt: skip
        from rekka.model.likelihood import crude_log_rates

        np.testing.assert_allclose(
            crude_log_rates(more.pairs, more.unit), crude_log_rates(rows.pairs, rows.unit), rtol=1e-12
        )


class TestClassWeights:
    READING = Reading("state_1", "state_2", "interval_years", ("x",))

    @pytest.fixture
    def data(self):
        return mixed(400)

    def by_hand(self, data, model, given=None):
        """H^-1 (sum f c^2 s s') H^-1 n / (n - 1) in native units, with s by finite differences."""
        free, n = model.n_states_ - 1, len(data)
        rows = Rows(data["state_1"].to_numpy() - 1, data["state_2"].to_numpy() - 1, data["interval_years"].to_numpy(), np.ones(n), free + 1)  # fmt: skip
        x = data.select("x").to_numpy()
        order = rows.grouping
        design = np.column_stack([np.ones(n), x])[order]
        plain = Likelihood.build(rows.take(order), design, 1)
        beta = np.asarray(model._fit.coefficients)
        pairs = data.group_by("state_1", "state_2").len()
        able = pairs.filter(pl.col("state_1") <= free)
        count = data.join(pairs, on=["state_1", "state_2"], how="left", maintain_order="left")["len"].to_numpy()
        c = (able["len"].sum() / (len(able) * count))[order]
        f = np.ones(n) if given is None else given[order]
        step, scores = 1e-6, np.empty((n, beta.size))
        for q in range(beta.size):
            away = np.zeros(beta.size)
            away[q] = step
            high, low = (plain.by_row(beta + s * away.reshape(beta.shape))[0] for s in (1, -1))
            scores[:, q] = (high - low) / (2 * step)
        weighted = Likelihood.build(replace(rows.take(order), weight=f * c), design, 1)
        bread = np.linalg.inv(-weighted.evaluate(beta).hessian)
        meat = (scores * (f * c**2)[:, None]).T @ scores
        able_rows = int((rows.start < free).sum())
        return np.sqrt(np.diag(bread @ meat @ bread) * able_rows / (able_rows - 1)), np.sqrt(np.diag(bread))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_errors_are_robust(self, data, weighted):
        given = np.random.default_rng(1).integers(1, 4, len(data)).astype(float) if weighted else None
        model = rekka.ExponentialHazardMarkovModel(class_weight="inverse_frequency", threads=1)
        model.fit(features(data), data["state_2"], given)
        robust, naive = self.by_hand(data, model, given)
        found = np.sqrt(np.diag(model.covariance_))
        np.testing.assert_allclose(found, robust, rtol=1e-5)
        assert np.abs(found / naive - 1).max() > 0.05
        assert model._fit.inference.kind == "sandwich, robust by row"

    def test_they_are_those_of_each_row_as_a_group(self, data):
        model = rekka.ExponentialHazardMarkovModel(class_weight="inverse_frequency", threads=1)
        alone = model.fit(features(data), data["state_2"]).covariance_
        grouped = model.fit(features(data), data["state_2"], groups=np.arange(len(data)))
        np.testing.assert_allclose(alone, grouped.covariance_, rtol=1e-9)
        assert "clustered by" in grouped._fit.inference.kind

    def test_without_them_errors_are_those_of_the_information(self, data):
        weight = np.full(len(data), 2.0)
        model = rekka.ExponentialHazardMarkovModel(threads=1).fit(features(data), data["state_2"], weight)
        assert model._fit.inference.kind == "observed information"

    def test_in_blocks_too(self, data, monkeypatch):
        model = rekka.ExponentialHazardMarkovModel(class_weight="inverse_frequency", threads=1)
        whole = model.fit(features(data), data["state_2"])._fit
        streamed = fit_source(FrameSource(data, self.READING, 1, 64), Options(), class_weight="inverse_frequency")
        np.testing.assert_allclose(
            streamed.inference.covariance, whole.inference.covariance, rtol=1e-8, atol=1e-12
        )
        assert streamed.inference.kind == whole.inference.kind == "sandwich, robust by row"
        monkeypatch.setattr("rekka.streaming.any_size.WHOLE", 100)
        held = model.fit(features(data), data["state_2"])._fit
        np.testing.assert_allclose(held.inference.covariance, whole.inference.covariance, rtol=1e-8, atol=1e-12)
        assert held.inference.kind == whole.inference.kind
        assert held.certificate.remarks == whole.certificate.remarks
