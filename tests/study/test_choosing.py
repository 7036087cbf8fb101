"""A study's choice: on which rows, with which evidence, how optimistic."""

import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from study_cases import draw_rows

import rekka
from rekka.core.errors import BadOption
from rekka.evaluation.scores import mean_interval
from rekka.evaluation.selection import Guard, RuleEvidence, Standing, Step
from rekka.model.serial import load_model
from rekka.study import choice as choosing
from rekka.study.case_rows import FEW_BRIDGES, FEW_VALIDATION, FOLDS, choose_rows
from rekka.study.choice import Choice, Contest, apply_rule, choose_case
from rekka.study.explanations import explain_case, explain_method, in_english
from rekka.study.plan import TrialPlan
from rekka.study.scores import score_sample
from rekka.study.trial import Key

GOLDEN_COLUMNS = ("state_1", "state_2", "interval_years", "age_at_inspection_1", "bridge_length", "traffic_mean")


def enough_rows(seed: int = 3) -> pl.DataFrame:
    """One case with validation rows enough to judge on."""
    return draw_rows(("Pier",), n=1200, seed=seed)


@pytest.fixture(scope="module")
def study() -> rekka.Study:
    return rekka.compare(enough_rows())


def test_methods_are_judged_on_validation_rows_where_there_are_enough(study):
    rows = enough_rows().filter(part="validation")
    assert len(rows) >= FEW_VALIDATION
    assert rows["bridge_id"].n_unique() >= FEW_BRIDGES
    assert study.trials["judged_on"].unique().to_list() == ["validation"]
    assert study.trials["scored"].to_list() == [len(rows)] * 4
    model = study.model("Pier", "zscore")
    assert study.trials.filter(method="zscore")["log_loss"][0] == pytest.approx(
        model.log_loss(rows, rows["state_2"])
    )


def test_rows_to_judge_on():
    many = pl.DataFrame({"bridge_id": [str(k) for k in range(FEW_VALIDATION)]})
    few_bridges = many.with_columns(
        bridge_id=(pl.col("bridge_id").cast(pl.Int64) % (FEW_BRIDGES - 1)).cast(pl.String)
    )
    assert choose_rows("auto", many) == "validation"
    assert choose_rows("auto", many.head(FEW_VALIDATION - 1)) == "folds"
    assert choose_rows("auto", few_bridges) == "folds"
    for asked in ("validation", "folds", "golden"):
        assert choose_rows(asked, many) == asked


@pytest.mark.parametrize(("rule", "select_on", "judged"), [
    ("guarded", "auto", "validation"), ("pareto", "auto", "golden"), ("pareto", "validation", "validation"),
    ("guarded", "golden", "golden"), ("guarded", "folds", "folds"),
])  # fmt: skip
def test_rule_and_rows_are_two_options(rule, select_on, judged):
    study = rekka.compare(
        enough_rows(), methods=["zscore"], rule=rule, select_on=select_on, guard={"resamples": 2}
    )
    assert study.cases["judged_on"].to_list() == [judged]
    assert study.choices[0].rule == rule
    assert len(study.confirmation) == (judged != "golden")


def test_no_choice_sees_a_golden_row(study):
    """Golden rows that say the opposite change nothing but the confirmation."""
    rows = enough_rows()
    poisoned = rows.with_columns(
        state_2=pl.when(pl.col("part") == "golden").then(4).otherwise("state_2"),
        traffic_mean=pl.when(pl.col("part") == "golden").then(1e6).otherwise("traffic_mean"),
    )
    other = rekka.compare(poisoned)
    assert other.choices == study.choices
    assert other.trials.drop("seconds", "seconds_low", "seconds_high").equals(
        study.trials.drop("seconds", "seconds_low", "seconds_high")
    )
    assert other.confirmation["log_loss"][0] != study.confirmation["log_loss"][0]


def test_the_evidence_is_paired_row_by_row_and_clustered_by_bridge(study):
    rows = enough_rows().filter(part="validation")
    case = study.read_rows().case("Pier", "validation")
    losses = {}
    for method in ("zscore", "boxcox"):
        fit = load_model(study.read_fitted(Key(case="Pier", preset="exact", method=method)).model)[0]
        losses[method] = score_sample(fit, case.judged[0]).loss
    lenient = choose_case(contest(study, guard=Guard(accuracy_margin=1.0, resamples=0)))
    ours = next(one for one in lenient.verdicts if one.method == "boxcox")
    theirs = mean_interval(losses["boxcox"] - losses["zscore"], rows["bridge_id"].to_numpy())
    assert (ours.difference, ours.low, ours.high) == pytest.approx(theirs[:3], rel=1e-9)
    assert ours.bridges == rows["bridge_id"].n_unique()


def contest(study: rekka.Study, plan: TrialPlan | None = None, guard: Guard | None = None) -> Contest:
    keys = {m: Key(case="Pier", preset="exact", method=m) for m in study.plan.study.methods}
    trials = {trial.key.method: trial for trial in study.results}
    models = {method: study.read_fitted(key).model for method, key in keys.items()}
    rows = study.read_rows().case("Pier", study.plan.study.judges_on)
    return Contest(rows, "exact", plan or study.plan.study, guard or study.plan.guard, trials, models)


def test_optimism_is_naive_against_nested(study):
    """Nested: what the rule chooses on four fifths of the bridges, scored on the last fifth, in turn."""
    pareto = TrialPlan(rule="pareto", select_on="validation")
    choice = choose_case(contest(study, pareto))
    assert choice.optimism.folds == FOLDS
    assert choice.optimism.naive_log_loss == pytest.approx(
        next(v.log_loss for v in choice.verdicts if v.method == choice.chosen)
    )
    if choice.optimism.changed == 0:
        assert choice.optimism.nested_accuracy == pytest.approx(choice.optimism.naive_accuracy)


def test_selecting_on_noise_is_optimistic():
    """Of many methods that forecast noise equally well, the best on some rows is not the best on others."""
    rng = np.random.default_rng(5)
    gaps = []
    for seed in range(6):
        rows = draw_rows(("Pier",), n=300, seed=100 + seed).with_columns(
            age_at_inspection_1=pl.Series(rng.gamma(2, 2, 300)), bridge_length=pl.Series(rng.gamma(1, 9, 300))
        )
        found = rekka.compare(
            rows,
            methods=["zscore", "boxcox", "log", "yeojohnson"],
            rule="pareto",
            select_on="golden",
            cost="seconds",
        )
        one = found.optimism.row(0, named=True)
        gaps.append(one["naive_accuracy"] - one["nested_accuracy"])
    assert np.mean(gaps) > 0


def test_a_case_of_few_validation_rows_is_judged_in_folds():
    study = rekka.compare(draw_rows(("Pier",), n=200), methods=["zscore", "boxcox"], guard={"resamples": 2})
    rows = draw_rows(("Pier",), n=200).filter(pl.col("part") != "golden")
    assert study.cases["judged_on"].to_list() == ["folds"]
    assert study.trials["scored"].to_list() == [len(rows)] * 2
    assert study.optimism["folds"].to_list() == [FOLDS] * len(study.optimism)


def test_resamples_decide_who_is_stable():
    study = rekka.compare(draw_rows(("Pier",), n=60), methods=["zscore"], guard={"resamples": 10, "ladder": False})
    verdict = study.choices[0].verdicts[0]
    assert verdict.step is Step.STABLE  # 36 training rows, three covariates
    assert verdict.certified < Guard(resamples=10).needed
    assert verdict.drawn <= 10
    assert study.choices[0].chosen is None


def test_drawing_ends_when_the_rest_decides_nothing(study):
    sure, hard = (contest(study, guard=Guard(resamples=10, stable_share=share)) for share in (0.9, 1.0))
    enough = sure.share("zscore")
    assert enough.certified == Guard(resamples=10).needed == 8
    assert enough.drawn >= 8
    fails = hard.share("zscore")
    assert fails.drawn == 10 or fails.certified == fails.drawn - 1


def test_no_resamples_no_step(study):
    found = contest(study, guard=Guard(resamples=0)).share("zscore")
    assert (found.drawn, found.value) == (0, 1.0)


def test_sentences_name_step_figure_and_threshold(study):
    guard = study.plan.guard
    trials = {trial.key.method: trial for trial in study.results}
    base = study.choices[0].model_dump()
    made = {
        Step.ACCURACY: (
            {"accuracy": 0.5, "log_loss": 0.9},
            ['"accuracy not lower"', "0.5000 is below zscore's", "0.01"],
        ),
        Step.BETTER: (
            {"difference": -0.03, "low": -0.07, "high": 0.01, "bridges": 40, "log_loss": 0.9, "accuracy": 0.7},
            ["does not replace zscore", "lower by 0.0300 (interval -0.0700 to +0.0100, 40 bridges), not shown"],
        ),
        Step.LOG_LOSS: (  # runs before 0.10.0
            {"difference": 0.03, "low": 0.01, "high": 0.05, "bridges": 40, "log_loss": 0.9, "accuracy": 0.7},
            ["higher by 0.0300 (interval +0.0100 to +0.0500, 40 bridges)", "not shown to be within 0.02"],
        ),
        Step.STABLE: (
            {"certified": 1, "drawn": 6},
            ["in 1 of the first 6 resamples; the 95% interval of that share ends below 90%"],
        ),
        Step.CERTIFIED: (
            {"log_loss": 9.5, "at_floor": 43},
            ['"a certified maximum"', "9.500, zscore's", "43 rows on the probab"],
        ),
    }
    for step, (figures, words) in made.items():
        verdict = {"method": "boxcox", "kept": False, "step": step, **figures}
        others = [one for one in base["verdicts"] if one["method"] != "boxcox"]
        choice = Choice.model_validate(base | {"default": "zscore", "verdicts": [*others, verdict]})
        told = in_english(explain_method(choice, choice.verdicts[-1], guard, trials["boxcox"]))
        for word in words:
            assert word in told, told


def test_nothing_certified_is_told_with_remedies():
    rows = draw_rows(("Pier",)).with_columns(state_1=pl.lit(1), state_2=pl.lit(1))
    study = rekka.compare(rows)
    assert study.choices[0].chosen is None
    why = study.selection["why"][0]
    assert why.startswith("none: ")
    assert re.search(r"no departure in [\d.]+ member-years: fewer than [\d.]+ a year with 95 % confidence", why)
    assert study.confirmation.is_empty()
    with pytest.raises(BadOption, match="Nothing was chosen for Pier"):
        study.model("Pier")


def test_the_chosen_model_needs_no_name(study):
    chosen = study.choices[0].chosen
    assert study.model("Pier").log_likelihood_ == study.model("Pier", chosen).log_likelihood_
    assert in_english(explain_case(study.choices[0], study.plan.guard, {t.key.method: t for t in study.results}))


def test_the_default_can_be_another():
    study = rekka.compare(enough_rows(), methods=["zscore", "boxcox"], guard={"default": "boxcox", "resamples": 2})
    assert study.choices[0].default == "boxcox"


@pytest.mark.parametrize(("guard", "message"), [
    ({"default": "zscor"}, "Did you mean zscore"), ({"margin": 1}, "guard.margin is not known"),
    ({"log_loss_margin": 5.0}, "is not an option any more"),
    ({"accuracy_margin": -1}, "guard.accuracy_margin"), ({"stable_share": 2}, "guard.stable_share"),
])  # fmt: skip
def test_a_wrong_guard_is_refused(guard, message):
    with pytest.raises(BadOption, match=message):
        rekka.compare(enough_rows(), guard=guard)


@pytest.mark.parametrize("options", [{"rule": "best"}, {"select_on": "train"}])
def test_a_wrong_rule_is_refused(options):
    with pytest.raises(BadOption, match="it can be"):
        rekka.compare(enough_rows(), **options)


@pytest.mark.slow
def test_workers_choose_the_same(study):
    assert rekka.compare(enough_rows(), workers=2).choices == study.choices


def test_ridge_and_pooled_are_dearer_than_every_scaling():
    rows = draw_rows(("Pier", "Deck slab"), n=150)
    study = rekka.compare(
        rows, methods=["zscore", "ridge", "pooled"], guard={"resamples": 2}, select_on="validation"
    )
    for choice in study.choices:
        costs = {verdict.method: verdict.cost for verdict in choice.verdicts}
        assert min(costs["ridge"], costs["pooled"]) > costs["zscore"]


def test_a_default_that_is_not_there_is_told():
    study = rekka.compare(enough_rows(), methods=["max", "boxcox"], guard={"resamples": 2})
    assert study.choices[0].default in ("max", "boxcox")
    why = study.selection["why"][0]
    assert "replaces" in why or "zscore is not among the methods" in why
    with pytest.raises(BadOption, match="The default robust is not among the methods: max, boxcox"):
        rekka.compare(enough_rows(), methods=["max", "boxcox"], guard={"default": "robust"})


def test_certified_fits_that_nothing_can_judge():
    rows = draw_rows(("Pier",), n=300).filter(pl.col("part") != "validation")
    study = rekka.compare(rows, methods=["zscore"], select_on="validation")
    assert study.choices[0].chosen == "zscore"  # nothing can be shown to be better
    assert "none of the validation rows can be scored" in study.selection["why"][0]


def test_validation_rows_that_cannot_be_scored_do_not_count():
    rows = enough_rows().with_columns(
        state_2=pl.when(pl.col("part") == "validation").then(9).otherwise("state_2"),
    )
    study = rekka.compare(rows, methods=["zscore"], guard={"resamples": 2})
    assert study.cases["judged_on"].to_list() == ["folds"]


def test_a_study_without_its_choices_can_be_shown(study):
    import dataclasses

    early = dataclasses.replace(study, choices=())
    assert early.selection["why"].to_list() == ["not chosen yet: go on with the run"]
    assert not early.trials["selected"].any()


def test_where_convergence_is_enough_it_is_enough_in_resamples_too(study):
    """The paper's own sense: its optimizer says success where no certificate is given."""
    found = rekka.compare(
        draw_rows(("Pier",), n=120),
        methods=["zscore"],
        preset="paper",
        select_on="validation",
        guard={"certified": False, "resamples": 3},
    )
    verdict = found.choices[0].verdicts[0]
    assert found.choices[0].chosen == "zscore"
    assert verdict.certified == verdict.drawn == 2  # of 3: the last decides nothing


def test_pareto_ties_go_to_the_default():
    tie, slow, wrong = Standing(True, 0.6, 0.8, 7.0), Standing(True, 0.6, 0.8, 8.0), Standing(True, 0.5, 0.8, 7.0)

    def choose(**standings: Standing) -> str | None:
        nothing = lambda *_: pytest.fail("pareto asks for nothing else")  # noqa: E731
        return apply_rule("pareto", Guard(), standings, RuleEvidence(nothing, nothing, nothing), 0.0).chosen

    assert choose(max=tie, zscore=tie) == choose(zscore=tie, max=tie) == "zscore"
    assert choose(max=tie, zscore=slow) == choose(max=tie, zscore=wrong) == "max"


@pytest.mark.parametrize(("picked", "changed"), [("max", 0), ("boxcox", FOLDS)])
def test_a_fold_that_picks_the_same_model_under_another_scaling_has_not_changed(picked, changed, monkeypatch):
    """Max, min-max and z-score are one model: picking another of them is no other choice."""

    class Rows:
        bridges, scores = 100, SimpleNamespace(accuracy=0.5, log_loss=1.0)

        def folds(self, k, seed):
            return [(None, None)] * k

        def take(self, rows):
            return self

        def join(self, parts):
            return self

    monkeypatch.setattr(choosing, "_judge_outside", lambda contest, outside: {})
    monkeypatch.setattr(choosing, "_apply", lambda contest, judged: SimpleNamespace(chosen=picked))
    contest = SimpleNamespace(judged=dict.fromkeys(("zscore", picked), Rows()), plan=SimpleNamespace(seed=1))
    assert choosing.measure_optimism(contest, "zscore").changed == changed
