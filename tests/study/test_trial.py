"""One trial: what became of it is a value, whatever the rows are."""

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from study_cases import COVARIATES, draw_rows

import rekka
from rekka.estimator import ExponentialHazardMarkovModel
from rekka.evaluation.scores import Scores
from rekka.model.certificate import Verdict
from rekka.model.fit import Options, refit_rows
from rekka.model.solvers import Outcome
from rekka.scaling.registry import METHODS
from rekka.scaling.serial import read_scaling
from rekka.study import trial as module
from rekka.study.case_rows import score_folds
from rekka.study.plan import PartitionPlan, TrialPlan
from rekka.study.rows import StudyRows, split_rows
from rekka.study.scores import BridgeScores, score_sample
from rekka.study.trial import Case, Fitted, Key, Status, Trial, describe_case, run_trial, spread, time_trial

SEED = 20260924


def case_rows(
    rows: pl.DataFrame, covariates: tuple[str, ...] | None = None, name: str = "Pier"
) -> module.CaseRows:
    return split_rows(rows, PartitionPlan(), TrialPlan(covariates=covariates)).case(name)


def pier(**columns: pl.Expr | pl.Series) -> module.CaseRows:
    return case_rows(draw_rows(("Pier",)).with_columns(**columns))


def run(rows: module.CaseRows, method: str = "zscore", preset: str = "exact") -> Fitted:
    return run_trial(rows, Key(case="Pier", preset=preset, method=method), SEED)


@pytest.mark.parametrize("method", ["zscore", "boxcox", "ridge"])
@pytest.mark.parametrize("part", ["golden", "folds"])
def test_fits_and_scores_take_the_age_where_the_study_does(method, part):
    """With the age at the middle, all is as with tables that hold it and the age at the start."""
    rows = dataclasses.replace(pier(), judged_on=part)
    later = pl.col("age_at_inspection_1") + pl.col("interval_years") / 2
    moved = {name: frame.with_columns(later) for name, frame in rows.table.items()}
    ours = run(rows, method)
    theirs = run(dataclasses.replace(rows, table=moved, clock="start"), method)
    assert ours.trial.scores == theirs.trial.scores
    assert ours.trial.log_likelihood == theirs.trial.log_likelihood
    assert ExponentialHazardMarkovModel.from_json(ours.model).clock == "middle"
    assert ExponentialHazardMarkovModel.from_json(theirs.model).clock == "start"
    assert run(dataclasses.replace(rows, clock="start"), method).trial.scores != ours.trial.scores


class TestALuckyFit:
    def test_it_is_the_estimators(self):
        rows = pier()
        fitted = run(rows)
        theirs = ExponentialHazardMarkovModel("zscore", covariates=list(COVARIATES)).fit(
            rows.frame("train"), rows.frame("train")["state_2"], groups=rows.frame("train")["bridge_id"]
        )
        trial = fitted.trial
        assert trial.status is Status.CERTIFIED
        assert trial.reason is None
        assert trial.converged
        assert trial.certified
        assert trial.eligible
        assert trial.log_likelihood == theirs.log_likelihood_
        golden = rows.frame("golden").filter(pl.col("state_2") <= theirs.n_states_)
        assert trial.scores.accuracy == np.mean(theirs.predict(golden) == golden["state_2"].to_numpy())
        assert trial.scores.log_loss_exact == theirs.log_loss(golden, golden["state_2"])
        ours = ExponentialHazardMarkovModel.from_json(fitted.model)
        np.testing.assert_array_equal(ours.coef_, theirs.coef_)
        assert read_scaling(fitted.scaling).scaling.method == "zscore"

    def test_its_seconds_are_the_solver_call_alone(self):
        trial = run(pier()).trial
        assert trial.seconds == (trial.outcome.seconds,)
        assert trial.timed
        assert len(time_trial(pier(), trial.key, SEED, 3)) == 3

    @pytest.mark.parametrize("method", [*METHODS, "boxcox+zscore", "log+zscore"])
    def test_one_thread_gives_the_same_bits(self, method):
        key = Key(case="Pier", preset="exact", method=method)
        one, two = (run_trial(pier(), key, SEED, threads=threads).with_seconds(()) for threads in (1, None))
        assert one.trial.model_dump_json() == two.trial.model_dump_json()
        assert one.scaling == two.scaling

    def test_no_golden_rows(self):
        fitted = run(case_rows(draw_rows(("Pier",)).filter(pl.col("part") == "train")))
        assert fitted.trial.status is Status.CERTIFIED
        assert fitted.trial.scores.rows == 0
        assert math.isnan(fitted.trial.scores.accuracy)

    def test_golden_rows_with_states_that_no_training_row_has(self):
        golden = pl.col("part") == "golden"
        rows = draw_rows(("Pier",)).filter(golden | (pl.col("state_2") < 4))
        scores = run(case_rows(rows)).trial.scores
        lost = len(rows.filter(golden & (pl.col("state_2") == 4)))
        assert scores.unsupported == lost > 0
        assert scores.rows == len(rows.filter(golden)) - lost


class TestFailuresAreValues:
    def test_no_training_rows(self):
        rows = draw_rows().filter((pl.col("case") != "Pier") | (pl.col("part") != "train"))
        fitted = run(case_rows(rows))
        assert fitted.trial.status is Status.NOT_FITTED
        assert fitted.trial.reason == "no training row of this component; 36 confirmation rows"
        assert fitted.model is None
        assert fitted.trial.timed
        assert not fitted.trial.eligible
        case = describe_case(case_rows(rows))
        assert (case.train, case.golden, case.n_states) == (0, 36, 0)
        assert case.persistence.unsupported == 36

    def test_one_state_only(self):
        rows = pier(state_1=pl.lit(1), state_2=pl.lit(1))
        fitted = run(rows)
        assert fitted.trial.status is Status.NOT_FITTED
        assert "only one state" in fitted.trial.reason
        assert describe_case(rows).n_states == 1
        assert describe_case(rows).no_covariates.rows == 0

    def test_collinear_covariates(self):
        fitted = run(pier(double=pl.col("traffic_mean") * 2))
        assert fitted.trial.status is Status.NOT_FITTED
        assert "duplicates" in fitted.trial.reason
        assert "Leave one of them out" in fitted.trial.reason

    def test_one_row(self):
        rows = draw_rows(("Pier",))
        train = rows.filter((pl.col("part") == "train") & (pl.col("state_2") > 1)).head(1)
        for preset in ("exact", "paper"):
            fitted = run(case_rows(pl.concat([train, rows.filter(part="golden")])), preset=preset)
            assert not fitted.trial.certified
            assert fitted.trial.reason

    def test_a_transform_that_cannot_be_fitted(self):
        fitted = run(pier(age_at_inspection_1=-pl.col("age_at_inspection_1")), "max")
        assert fitted.trial.status is Status.TRANSFORM_FAILED
        assert "max scaling divides by the largest value" in fitted.trial.reason

    @pytest.mark.parametrize("preset", ["exact", "paper"])
    def test_a_golden_value_out_of_range(self, preset):
        rows = draw_rows(("Pier",)).with_columns(
            bridge_length=pl.when(
                pl.col("bridge_id") == draw_rows(("Pier",)).filter(part="golden")["bridge_id"][4]
            )
            .then(pl.when(pl.col("part") == "golden").then(-90.0).otherwise("bridge_length"))
            .otherwise("bridge_length")
        )
        bridge = rows.filter(part="golden")["bridge_id"][4]
        trial = run(case_rows(rows), "boxcox", preset).trial
        train = rows.filter(part="train")["bridge_length"]
        assert trial.status is Status.TRANSFORM_FAILED
        assert f"boxcox cannot transform bridge_length = -90.0 (bridge {bridge})" in trial.reason
        assert f"fitted on {train.min()} to {train.max()}" in trial.reason
        assert trial.scores is None
        assert not trial.converged
        assert not trial.eligible
        assert trial.outcome is not None

    @pytest.mark.parametrize("error", [np.linalg.LinAlgError("singular"), FloatingPointError("overflow")])
    def test_linear_algebra_that_gives_up(self, monkeypatch, error):
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(module, "_fit", fail)
        trial = run(pier()).trial
        assert trial.status is Status.SOLVER_FAILED
        assert trial.reason == f"the fit could not be computed: {error}"

    def test_a_mistake_of_ours_is_no_failed_trial(self, monkeypatch):
        def fail(*_: object) -> None:
            raise TypeError("ours")

        monkeypatch.setattr(module, "_fit", fail)
        with pytest.raises(TypeError):
            run(pier())


class TestJudgement:
    """What the solver says and what the certificate says, put together."""

    def judge(
        self, verdict: Verdict, *reasons: str, success: bool = True, plateau: float = 0.0, **more: Any
    ) -> Any:
        trial = run(pier()).trial
        certificate = dataclasses.replace(
            trial.certificate, verdict=verdict, reasons=reasons, plateau_train=plateau
        )
        outcome = dataclasses.replace(trial.outcome, success=success, message="ABNORMAL", **more)
        return module._judge(outcome, certificate, success and math.isfinite(outcome.objective))

    def test_certified(self):
        assert self.judge(Verdict.CERTIFIED) == (Status.CERTIFIED, None)

    def test_the_data_are_to_blame_whatever_the_solver_says(self):
        for success in (True, False):
            assert self.judge(Verdict.NO_FINITE_MAXIMUM, "a", "b", success=success) == (Status.NO_MAXIMUM, "a; b")
            assert self.judge(Verdict.NOT_IDENTIFIED, "a", success=success) == (Status.NOT_DETERMINED, "a")

    def test_success_that_is_none(self):
        assert self.judge(Verdict.SHORT_OF_MAXIMUM, "3 remain") == (Status.UNCERTIFIED, "3 remain")
        words = "33% of the training rows are at the probability floor; 3 remain"
        assert self.judge(Verdict.SHORT_OF_MAXIMUM, "3 remain", plateau=1 / 3) == (Status.UNCERTIFIED, words)

    def test_a_solver_that_gave_up(self):
        assert self.judge(Verdict.SHORT_OF_MAXIMUM, "3 remain", success=False) == (
            Status.SOLVER_FAILED, "ABNORMAL; 3 remain",
        )  # fmt: skip

    def test_a_solver_that_gave_up_where_it_should(self):
        """Not converged in the paper's sense, so not scored and not selected; but nothing was wrong."""
        status, reason = self.judge(Verdict.CERTIFIED, success=False)
        assert status is Status.SOLVER_FAILED
        assert reason == "ABNORMAL; where it stopped is a maximum all the same"

    def test_success_at_infinity(self):
        status, reason = self.judge(Verdict.NONFINITE, "beta is infinite", objective=math.inf)
        assert status is Status.SOLVER_FAILED
        assert reason == "it reports success at a log-likelihood of -inf, which no rows have; beta is infinite"


class TestConstantCovariates:
    def test_they_are_left_out(self):
        rows = pier(flat=pl.lit(3.5))
        assert rows.constant == ("flat",)
        assert rows.covariates == COVARIATES
        assert run(rows).with_seconds((1.0,)) == run(pier()).with_seconds((1.0,))

    def test_they_may_vary_in_golden_rows(self):
        golden = pl.when(pl.col("part") == "golden").then(9.0).otherwise(1.0)
        assert run(pier(flat=golden)).trial.scores == run(pier()).trial.scores

    @pytest.mark.parametrize("method", ["max", "minmax", "zscore"])
    def test_a_column_of_zeros_is_what_the_operators_make_of_them(self, method):
        """So leaving them out is the paper's model: zeros change no hazard."""
        rows = pier(flat=pl.lit(3.5))
        scaled = rekka.CovariateScaler(method).fit(
            rows.frame("train").with_columns(flat=3.5).select("flat", "traffic_mean")
        )
        z = np.asarray(
            scaled.transform(rows.frame("golden").with_columns(flat=3.5).select("flat", "traffic_mean"))
        )
        assert (z[:, 0] == 0).all()

    def test_all_of_them(self):
        rows = pier(**{name: pl.lit(1.0) for name in COVARIATES})
        assert rows.covariates == ()
        for method in METHODS:
            assert run(rows, method).trial.status is Status.CERTIFIED
        assert run(rows).trial.scores == describe_case(rows).no_covariates


class TestWarningsStayInside:
    def test_huge_values(self):
        """Under -W error, which pytest.ini sets, a single warning would fail."""
        rows = pier(traffic_mean=pl.col("traffic_mean") * 1e140, bridge_length=pl.col("bridge_length") * 1e-200)
        for preset in ("exact", "paper"):
            for method in (*METHODS, "yeojohnson+zscore", "none"):
                trial = run(rows, method, preset).trial
                assert trial.certified or trial.reason

    def test_the_papers_box_cox(self):
        """Ages near 58, in a few cases younger: exponent near 5, values near 1e8."""
        rng = np.random.default_rng(3)
        n = len(draw_rows(("Pier",)))
        rows = pier(age_at_inspection_1=pl.Series(58.0 - rng.gamma(1.2, 6.0, n).clip(0, 57)))
        trial = run(rows, "boxcox", "paper").trial
        assert not trial.certified
        assert trial.reason

    def test_those_of_libraries(self, monkeypatch):
        def warn(*given: object) -> ExponentialHazardMarkovModel:
            warnings.warn("ill-conditioned", stacklevel=1)
            np.float64(1e308) * 10
            return fit(*given)

        fit = module._fit
        monkeypatch.setattr(module, "_fit", warn)
        assert run(pier()).trial.certified
        time_trial(pier(), run(pier()).trial.key, SEED, 1)


class TestKeeping:
    @pytest.mark.parametrize("preset", ["exact", "paper"])
    def test_a_trial_comes_back_from_json(self, preset):
        trial = run(pier(), "boxcox", preset).trial
        assert Trial.model_validate_json(trial.model_dump_json()) == trial

    def test_scores_that_are_no_numbers_come_back(self):
        rows = case_rows(draw_rows(("Pier",)).filter(pl.col("part") == "train"))
        case = describe_case(rows)
        again = Case.model_validate_json(case.model_dump_json())
        assert math.isnan(again.persistence.accuracy)
        with_golden = describe_case(pier())
        assert with_golden.persistence.log_loss_exact == math.inf
        assert Case.model_validate_json(with_golden.model_dump_json()) == with_golden

    def test_new_seconds_change_nothing_else(self):
        fitted = run(pier())
        timed = fitted.with_seconds((3.0, 1.0, 2.0))
        assert timed.trial.seconds == (3.0, 1.0, 2.0)
        assert timed.trial.outcome == dataclasses.replace(fitted.trial.outcome, seconds=3.0)
        assert ExponentialHazardMarkovModel.from_json(timed.model).outcome_.seconds == 3.0
        assert timed.with_seconds(fitted.trial.seconds) == fitted

    def test_no_seconds_are_not_a_number(self):
        bare = run(pier()).with_seconds(())
        assert not bare.trial.timed
        assert math.isnan(bare.trial.outcome.seconds)
        assert math.isnan(ExponentialHazardMarkovModel.from_json(bare.model).outcome_.seconds)
        assert bare.with_seconds((1.0,)).trial.timed

    def test_a_trial_without_a_fit_has_none(self):
        failed = run(pier(age_at_inspection_1=-pl.col("age_at_inspection_1")), "max")
        assert failed.with_seconds((1.0,)) is failed


def test_spread():
    assert spread((3.0, 1.0, 2.0)) == (2.0, 1.0, 3.0)
    assert all(map(math.isnan, spread(())))


def test_a_key_reads_well():
    assert str(Key(case="Pier", preset="exact", method="max")) == "Pier, max (exact)"


def test_a_covariate_of_two_values_varies():
    train = draw_rows(("Pier",)).with_columns(steel=pl.int_range(pl.len()) % 2, old=pl.lit(1.0))
    case = StudyRows(train.with_columns(part=pl.lit("train")), ("steel", "old"), "").case("Pier")
    assert (case.covariates, case.constant) == (("steel",), ("old",))


def test_forecasts_in_folds_are_of_their_own_bridges():
    """With one model for all folds they are those of all rows together."""
    train = draw_rows(("Pier",))
    case = StudyRows(train.with_columns(part=pl.lit("train")), COVARIATES, "").case("Pier")
    fitted = refit_rows(case.training.rows, case.training.x, COVARIATES, Options())
    folds = score_folds(case.training, lambda _: fitted, 1)
    whole = BridgeScores.of(score_sample(fitted, case.training), case.training.bridge, case.n_states)
    assert folds.names.equals(whole.names)
    np.testing.assert_array_equal(folds.size, whole.size)
    np.testing.assert_allclose(folds.loss, whole.loss)


def test_what_was_not_fitted_needs_no_timing():
    key = Key(case="Pier", preset="exact", method="max")
    failed = Trial(key=key, status=Status.NOT_FITTED, reason="none", converged=False)
    assert failed.timed
    assert failed.model_copy(update={"seconds": (0.1,)}).timed
    assert not failed.model_copy(update={"outcome": Outcome(True, "", 1, 1, 0.1, 0.0)}).timed


def test_a_case_without_coefficients_has_no_events_per_parameter():
    nothing = Scores.empty()
    none = {"train": 0, "validation": 0, "golden": 5, "bridges": 0, "moves": 0, "covariates": (), "constant": ()}
    case = Case(name="Pier", judged_on="golden", n_states=1, persistence=nothing, no_covariates=nothing, **none)
    assert math.isnan(case.events_per_parameter)
    assert case.model_copy(update={"n_states": 3, "moves": 10}).events_per_parameter == 5.0
