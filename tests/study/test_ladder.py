"""The ladder: simpler models where no method of the plan serves; and the model without covariates as a method."""

import math

import polars as pl
import pytest
from study_cases import draw_rows, log_of, untimed

import rekka
from rekka.model.serial import load_model
from rekka.study.explanations import in_english
from rekka.study.ladder import LADDER
from rekka.study.models import choose_models, load_models
from rekka.study.plan import PLAIN
from rekka.study.trial import judge_plain

QUICK = {"guard": {"resamples": 4}}


def stay(rows: pl.DataFrame, case: str) -> pl.DataFrame:
    """The rows of a case with nobody leaving a state."""
    return rows.with_columns(state_2=pl.when(pl.col("case") == case).then("state_1").otherwise("state_2"))


def small_rows() -> pl.DataFrame:
    """A large case, and one of 24 training rows, which no scaling serves."""
    return pl.concat([draw_rows(("Deck slab",), n=600), draw_rows(("Pier",), n=40)])


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> rekka.Study:
    return rekka.compare(
        small_rows(), methods=["zscore", "boxcox"], **QUICK, out=tmp_path_factory.mktemp("l") / "run"
    )


def test_a_small_component_is_pooled_with_the_others(run):
    choice = run.choice("Pier")
    assert (choice.chosen, choice.rungs) == ("pooled", ("pooled",))
    assert run.choice("Deck slab").rungs == ()
    why = run.selection.filter(case="Pier")["why"].item()
    assert "no scaling has a" in why
    assert why.endswith("(24 rows, 12 departures); pooled with 1 other component instead")
    assert run.trials["method"].to_list() == ["zscore", "boxcox"] * 2  # the plan's
    assert run.ladder.select("case", "method", "certified", "chosen").rows() == [("Pier", "pooled", True, True)]
    assert run.model("Pier").predict(small_rows().head(3)).shape == (3,)
    assert (
        run.verdicts.filter(case="Pier", method="pooled")["why"].item().startswith("pooled serves where no method")
    )


def test_confirmation_rows_are_looked_at_once_with_the_rung(run):
    assert len(run.looks) == 1
    assert run.confirmation.filter(case="Pier")["method"].to_list() == ["pooled"]


def test_a_run_with_rungs_is_read_resumed_and_forecast_from(run):
    again = rekka.load_study(run.folder)
    assert again.choices == run.choices
    assert untimed(again).equals(untimed(run))
    assert again.ladder.drop("seconds", "seconds_low", "seconds_high").equals(
        run.ladder.drop("seconds", "seconds_low", "seconds_high")
    )
    assert (run.folder / "ladder.csv").exists()
    models = load_models(run.folder)
    assert [(one.case, one.chosen) for one in models.models] == [("Deck slab", True), ("Pier", True)]
    resumed = rekka.resume_study(run.folder)
    assert resumed.choices == run.choices


def test_a_damaged_rung_is_fitted_again(run):
    (file,) = (run.folder / "trials").glob("*pier-exact-pooled.json")
    file.write_text("{}")
    assert rekka.load_study(run.folder).choice("Pier") is None  # until the run is resumed
    again = rekka.resume_study(run.folder)
    assert f"recomputed: trials/{file.name}" in log_of(run.folder)
    assert again.choices == run.choices
    assert again.ladder["log_loss"].to_list() == run.ladder["log_loss"].to_list()


def test_checks_and_report_take_a_rung(run):
    codes = {finding.code: finding.verdict for finding in rekka.check_study(run)}
    assert codes["R701"] == "passed"
    document = run.report().document
    answer = next(one for one in document.answers if one.case == "Pier")
    assert (answer.method, answer.reason) == ("pooled", "rung")


def test_one_component_goes_on_to_ridge():
    study = rekka.compare(draw_rows(("Pier",), n=40), methods=["zscore"], **QUICK)
    assert study.choice("Pier").chosen == "ridge"
    assert study.choice("Pier").rungs == ("ridge",)  # there is nobody to pool with


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"guard": {"resamples": 2, "ladder": False}}, "none: "),
        ({"rule": "pareto", "select_on": "validation"}, "none: "),
    ],
)
def test_where_there_is_no_ladder_nothing_is_chosen(options, why):
    rows = draw_rows(("Pier",), n=40).with_columns(traffic_mean=pl.col("state_2").cast(pl.Float64))
    study = rekka.compare(rows, methods=["zscore"], **options)
    assert (study.choices[0].chosen, study.choices[0].rungs) == (None, ())
    assert study.selection["why"].item().startswith(why)
    assert study.ladder.is_empty()


def test_without_any_departure_the_bound_is_stated():
    rows = stay(draw_rows(), "Pier").with_columns(
        state_1=pl.when(pl.col("case") == "Pier").then(1).otherwise("state_1"),
        state_2=pl.when(pl.col("case") == "Pier").then(1).otherwise("state_2"),
    )
    study = rekka.compare(rows, methods=["zscore"], **QUICK)
    choice = study.choice("Pier")
    years = rows.filter(case="Pier", part="train")["interval_years"].sum()
    assert (choice.chosen, choice.rungs) == (None, ())
    assert choice.bounds[0].years == pytest.approx(years)
    assert choice.bounds[0].rate == pytest.approx(-math.log(0.05) / years)
    why = study.selection.filter(case="Pier")["why"].item()
    assert why == (
        f"none: no departure in {years:,.4g} member-years: fewer than {choice.bounds[0].rate:.2g} a year with 95 % "
        "confidence"
    )


def bounded_rows() -> pl.DataFrame:
    """One case without covariates that vary, in which nobody leaves state 3 of 4."""
    rows = draw_rows(("Pier",), n=300)
    last, end = pl.col("state_1") == 3, pl.col("state_2")
    return rows.with_columns(
        state_1=pl.when(last & (end == 4)).then(4).otherwise("state_1"),
        state_2=pl.when(last).then(end).otherwise(pl.min_horizontal(end, 3)),
    )


def test_a_state_without_departures_has_a_bound():
    study = rekka.compare(bounded_rows(), covariates=[], **QUICK)
    choice = study.choice("Pier")
    assert study.trials["method"].to_list() == [PLAIN]
    assert (choice.chosen, choice.rungs) == ("bound", ("bound",))
    assert [one.state for one in choice.bounds] == [3]
    why = in_english(study.explain(choice))
    assert why.startswith("the model without covariates has no certified maximum")
    assert "leaving rating 3 has a hazard of at most" in why
    (state, years, rate) = choice.bounds[0].model_dump().values()
    stayed = bounded_rows().filter(pl.col("part") == "train", pl.col("state_1") == state)
    assert years > stayed["interval_years"].sum()  # those who came into it between two visits were at risk, too
    assert rate == pytest.approx(-math.log(0.05) / years)
    text = study.read_fitted(choice.key).model
    assert load_model(text)[0].coefficients[2, 0] == pytest.approx(math.log(rate), abs=1e-6)
    (note,) = (note for note in choose_models(study).notes if "bound" in note)
    assert note.startswith("Pier: the hazard of leaving state 3 is an upper bound")
    assert "upper bound" in study.ladder["reason"].item()
    assert study.rungs[0].certificate.remarks[0].startswith("the hazard of leaving state 3 is an upper bound")


def test_without_covariates_one_model_is_fitted():
    study = rekka.compare(draw_rows(), covariates=[], preset="both", **QUICK)
    assert study.trials.select("preset", "method").unique().sort("preset").rows() == [
        ("exact", PLAIN),
        ("paper", PLAIN),
    ]
    assert study.choice("Pier", "exact").chosen == PLAIN
    assert (
        study.selection.filter(case="Pier", preset="exact")["why"].item() == f"{PLAIN}: no other model was tried"
    )


def test_a_run_without_covariates_is_read_and_resumed(tmp_path):
    study = rekka.compare(draw_rows(), covariates=[], **QUICK, out=tmp_path / "run")
    again = rekka.load_study(tmp_path / "run")
    assert untimed(again).equals(untimed(study))
    assert again.plan == study.plan
    assert rekka.resume_study(tmp_path / "run").choices == study.choices


def test_the_model_without_covariates_is_a_method():
    study = rekka.compare(draw_rows(n=300), methods=["zscore", PLAIN], select_on="folds", **QUICK)
    rows = study.read_rows().case("Pier", "folds")
    trial = next(one for one in study.results if (one.key.case, one.key.method) == ("Pier", PLAIN))
    assert trial.scores.log_loss == pytest.approx(judge_plain(rows, study.plan.study.seed).scores.log_loss)
    refits = rekka.stability(study, resamples=2, workers=1).refits
    assert set(refits["method"]) == {"zscore", PLAIN}
    assert set(LADDER) == {"pooled", "ridge", PLAIN, "bound"}


@pytest.mark.slow
def test_workers_climb_the_same():
    ours = rekka.compare(small_rows(), methods=["zscore"], workers=2, **QUICK)
    theirs = rekka.compare(small_rows(), methods=["zscore"], **QUICK)
    assert ours.choices == theirs.choices
    assert all(trial.timed for trial in ours.rungs)


def test_methods_that_are_one_model_are_shown_as_one():
    study = rekka.compare(
        draw_rows(n=300), methods=["max", "zscore", "boxcox"], preset="both", guard={"resamples": 1}
    )
    (equals,) = study.equals
    assert (equals.method, equals.also) == ("zscore", ("max",))
    assert equals.spread < 1e-6
    parts = {(one.preset, one.method): one.same_as for one in study.report().document.methods}
    assert parts["exact", "max"] == "zscore"
    assert {parts[key] for key in parts if key != ("exact", "max")} == {None}
